"""How good a recommender is: errors of ratings that it did not see, intervals that hold them, lists of what is liked.

Splits never leak: a split by time has nothing in the training part that is later than anything in the test part; one by
users hides part of what each user rated, or the last of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from unmix.recommend.ratings import COLUMNS, names_of, places

HOW = ("random", "user", "time", "new users")


class Scores(NamedTuple):
    """How good predictions of test ratings are.

    Attributes
    ----------
    rmse, mae : float
        Root of the mean squared error, and mean absolute error.
    coverage : float
        Share of the ratings within the intervals of the level asked for; NaN without deviations.
    log_score : float
        Mean log-density of the ratings under the predicted Gaussians; NaN without deviations.
    log_score_constant : float
        The same with one deviation for all, the `rmse` itself: what deviations must beat.
    n : int
        Ratings.
    """

    rmse: float
    mae: float
    coverage: float
    log_score: float
    log_score_constant: float
    n: int


class Ranking(NamedTuple):
    """How good lists of n recommended items are, on average over the users of the test part."""

    precision: float
    recall: float
    ndcg: float
    users: int


def evaluate(model: Any, test: Any, *, level: float = 0.9) -> Scores:
    """Return how well a fitted recommender predicts ratings that it did not see.

    Parameters
    ----------
    model : PMF, Neighbours or ContentRidge
        Fitted to other ratings.
    test : data frame
        With the columns user, item and rating.
    level : float, default=0.9
        Of the intervals whose coverage is counted.

    Returns
    -------
    scores : Scores
    """
    from unmix.recommend.pmf import PMF

    user, item, rating = arrays(test)
    if isinstance(model, PMF) and not model.why_not():
        mean, deviation = model.predict(user, item, return_std=True)
        return scores(rating, mean, deviation, level)
    return scores(rating, model.predict(user, item), None, level)


def scores(rating: np.ndarray, mean: np.ndarray, deviation: np.ndarray | None = None, level: float = 0.9) -> Scores:
    """Return how far predictions are from ratings.

    Parameters
    ----------
    rating, mean, deviation : ndarray of shape (m,)
        What was rated, what was expected, and how sure that was.
    level : float, default=0.9
        Of the intervals.

    Returns
    -------
    scores : Scores
    """
    error = np.asarray(rating, np.float64) - mean
    rmse = float(np.sqrt(np.mean(error**2)))
    constant = log_density(error, np.full(len(error), max(rmse, 1e-300)))
    if deviation is None:
        return Scores(rmse, float(np.abs(error).mean()), np.nan, np.nan, constant, len(error))
    held = float((np.abs(error) <= ndtri(0.5 + level / 2) * deviation).mean())
    return Scores(rmse, float(np.abs(error).mean()), held, log_density(error, deviation), constant, len(error))


def log_density(error: np.ndarray, deviation: np.ndarray) -> float:
    """Mean log-density of errors under Gaussians of these deviations."""
    return float(np.mean(-0.5 * (error / deviation) ** 2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)))


def ranking(model: Any, test: Any, *, n: int = 10, liked: float | None = None) -> Ranking:
    """Return precision, recall and NDCG of the n items that are recommended to each user of the test part.

    Items that a user rated in the fit are not recommended; what is liked and was not rated in the test part counts as
    not liked, so that all three are lower than they would be if everybody had rated everything.

    Parameters
    ----------
    model : PMF, Neighbours or ContentRidge
        Fitted to other ratings.
    test : data frame
        With the columns user, item and rating.
    n : int, default=10
        Length of the lists.
    liked : float, optional
        The rating from which on an item is liked; by default the mean of the test part.

    Returns
    -------
    ranking : Ranking
    """
    user, item, rating = arrays(test)
    least = float(rating.mean()) if liked is None else float(liked)
    good = rating >= least
    total = []
    gain = 1.0 / np.log2(np.arange(n) + 2)
    at = places(user, model.user_ids_, model.known_users)
    for i in np.unique(at[good & (at < model.known_users)]).tolist():
        likes = {str(v) for v in item[good & (at == i)].tolist()}
        who = i if model.user_ids_ is None else model.user_ids_.tolist()[i]
        found = [str(r.item) for r in model.recommend(who, n)]
        hit = np.array([f in likes for f in found], dtype=float)
        ideal = gain[: min(n, len(likes))].sum()
        total.append((hit.sum() / n, hit.sum() / len(likes), float(hit @ gain[: len(hit)]) / ideal))
    if not total:
        raise ValueError(f"no user of the test part likes anything (rating >= {least:g}) and is known to the model")
    precision, recall, ndcg = (float(v) for v in np.mean(total, axis=0))
    return Ranking(precision, recall, ndcg, len(total))


def split(
    ratings: Any, how: str = "random", *, test: float = 0.2, time: str = "time", random_state: Any = None
) -> tuple[Any, Any]:
    """Return a training and a test part of a table of ratings.

    Parameters
    ----------
    ratings : data frame
        With the columns user, item and rating.
    how : {"random", "user", "time", "new users"}, default="random"
        "random": any ratings. "user": a share of what each user rated, at least one of two and more. "time": the
        latest of all ratings; those of the very moment of the cut are all in the test part. "new users": all ratings of
        a share of the users.
    test : float, default=0.2
        The share of the test part.
    time : str, default="time"
        The column that holds the time.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    train, test : data frames
        Of the kind given, their rows in the order given.

    Examples
    --------
    >>> import pandas as pd
    >>> from unmix.recommend import split
    >>> ratings = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [5, 4, 3, 2]})
    >>> ratings["time"] = [1, 2, 3, 4]
    >>> train, test = split(ratings, "time", test=0.5)
    >>> test.time.tolist()
    [3, 4]
    """
    if how not in HOW:
        raise ValueError(f"how={how!r}: take one of {', '.join(HOW)}")
    if not 0 < test < 1:
        raise ValueError(f"test={test!r}: give a share between 0 and 1")
    user = arrays(ratings)[0]
    rng, m = check_random_state(random_state), len(user)
    if how == "time":
        if time not in names_of(ratings):
            raise ValueError(f"time={time!r} is no column of the ratings: say which one holds the time")
        when = column(ratings, time)
        order = np.sort(when)
        out = when >= order[min(m - 1, int(np.ceil((1 - test) * m)))]
    elif how == "random":
        out = np.zeros(m, bool)
        out[rng.permutation(m)[: max(1, round(test * m))]] = True
    else:
        _, at, count = np.unique(user, return_inverse=True, return_counts=True)
        if how == "new users":
            gone = np.zeros(len(count), bool)
            gone[rng.permutation(len(count))[: max(1, round(test * len(count)))]] = True
            out = gone[at]
        else:
            order = np.lexsort([rng.random(m), at])
            place = np.empty(m, np.int64)
            place[order] = np.arange(m) - np.repeat(np.cumsum(count) - count, count)
            wanted = np.where(count > 1, np.clip(np.round(test * count), 1, count - 1), 0)
            out = place < wanted[at]
    if out.all() or not out.any():
        raise ValueError(f"how={how!r}, test={test!r}: one of the parts would be empty; take another share")
    return rows(ratings, ~out), rows(ratings, out)


def folds(ratings: Any, n: int = 5, *, random_state: Any = None) -> list[tuple[Any, Any]]:
    """Return n pairs of a training and a test part; every rating is in one test part.

    Parameters
    ----------
    ratings : data frame
        With the columns user, item and rating.
    n : int, default=5
        How many.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    folds : list of (train, test)
    """
    m = len(arrays(ratings)[0])
    if not 2 <= n <= m:
        raise ValueError(f"n={n!r}: give a number of folds from 2 to {m}")
    fold = check_random_state(random_state).permutation(m) % n
    return [(rows(ratings, fold != f), rows(ratings, fold == f)) for f in range(n)]


def arrays(frame: Any) -> list[np.ndarray]:
    """Users, items and ratings of a frame."""
    from unmix.recommend.ratings import columns_of

    if missing := [name for name in COLUMNS if name not in names_of(frame)]:
        raise ValueError(f"the ratings have no column {missing[0]!r}: they need user, item and rating")
    return columns_of(frame)


def column(frame: Any, name: str) -> np.ndarray:
    """One column of a frame."""
    import narwhals as nw

    return np.asarray(nw.from_native(frame, eager_only=True)[name].to_numpy())


def rows(frame: Any, kept: np.ndarray) -> Any:
    """Some rows of a frame, as a frame of its kind."""
    import narwhals as nw

    return nw.from_native(frame, eager_only=True).filter(kept.tolist()).to_native()
