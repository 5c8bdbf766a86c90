"""Stability: would the same clusters come back from other rows like these?

    pairs     r = mean over pairs of perturbed data sets of d(Z, Z'), compared on the rows that both hold
    transfer  r = d(φ(X'), Z'): the model of one half, as a classifier φ, against the clustering of the other half

d is `clustering_distance`, the share of rows that differ under the best relabelling. r_rand = (K − 1)/K is what random
labels would give for K equal clusters, and stability = 1 − r / r_rand: 1 when nothing differs, 0 for chance.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import ThreadpoolController

from unmix.engine.config import config, cores, get_config
from unmix.engine.draws import generator
from unmix.engine.runners import one_blas_thread
from unmix.engine.sources import Source
from unmix.model.adapter import adapt, opened, pairwise
from unmix.model.capabilities import Groups
from unmix.validate.clusterings import clustering_distance, deviations, seed_of

SUBSAMPLE_SHARE = 0.8  # of the rows, where pairs of subsamples are compared
SHUFFLES = 5  # of the labels of each comparison, for the value that chance gives


class Stability(NamedTuple):
    """What `stability` found.

    Attributes
    ----------
    score : float
        1 − r / r_rand: high is stable. NaN where the model found a single cluster.
    se : float
        Its standard error; NaN for the single pair of n = 2.
    r, r_se : float
        The share of rows that differ, and its standard error.
    r_rand : float
        (K − 1)/K.
    r_shuffled : float
        What chance gives for clusters of these sizes: r after the labels were shuffled.
    adjusted : float
        1 − r / r_shuffled: lower than `score` where clusters are of unequal size.
    n_clusters : int
        K, the largest number of clusters found.
    runs : ndarray
        r of each split ("transfer"), or of each pair (i, j), i < j, of perturbations ("pairs").

    Examples
    --------
    >>> import numpy as np
    >>> import unmix
    >>> from unmix.validate import stability
    >>> X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
    >>> found = stability(unmix.KMeans(2), X, n=4, random_state=0)
    >>> found.score, found.r_rand, len(found.runs)
    (1.0, 0.5, 6)
    """

    score: float
    se: float
    r: float
    r_se: float
    r_rand: float
    r_shuffled: float
    adjusted: float
    n_clusters: int
    runs: np.ndarray


def stability(
    model: Any,
    X: Any,
    *,
    method: str = "pairs",
    n: int = 20,
    fraction: float | None = None,
    noise: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Stability:
    """How well a clustering comes back from perturbed data.

    Parameters
    ----------
    model : estimator
        With `predict`, or `fit_predict` alone: then new rows go to the nearest centre. It is cloned, never changed; its
        random states are set from `random_state`.
    X : anything with rows
        As for `fit` of the models; for those of metric or kernel "precomputed" the square matrix of all pairs of rows.
    method : {"pairs", "transfer"}, default="pairs"
        "pairs" compares clusterings of n perturbed data sets with each other, on common rows; "transfer" splits the
        rows n times in two, and compares each half's own clustering with the one that the other half's model gives it.
    n : int, default=20
        Perturbed data sets, or splits.
    fraction : float, optional
        Share of the rows in each subsample (0.8; all of them where `noise` is given) or half (0.5, the maximum).
    noise : float, optional
        For "pairs": add normal noise of this many standard deviations of each column.
    random_state : int, Generator, RandomState or None
        For the perturbations and the models.
    n_jobs : int, optional
        Threads, over perturbations, on which the result does not depend; by default the engine's setting, -1 for all.

    Returns
    -------
    Stability
        A tuple with `score`, `se`, `r`, `r_se`, `r_rand`, `r_shuffled`, `adjusted`, `n_clusters` and `runs`.

    Notes
    -----
    Standard errors are over the perturbations of these rows (for "pairs" by the jackknife, as pairs share data sets):
    they say how much another n would change the score, not how much other data would.

    Examples
    --------
    >>> import numpy as np, unmix
    >>> from unmix.validate import stability
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 40, axis=0) + rng.standard_normal((120, 2))
    >>> stability(unmix.KMeans(3), X, n=5, random_state=0).score
    1.0
    >>> stability(unmix.KMeans(5), X, method="transfer", n=5, random_state=0).score < 0.9
    True
    """
    source, seed = opened(model, X), seed_of(random_state)
    fraction = _check(model, source, method, n, fraction, noise)
    size = max(1, round(fraction * source.n))
    if method == "transfer":
        splits = _run(lambda i: _transfer(model, source, min(size, source.n // 2), seed, i), n, n_jobs)
        r, chance, sizes = (np.array(v) for v in zip(*splits, strict=True))
        r_se = float(r.std(ddof=1) / np.sqrt(n))
        return _answer(r, r_se, chance, int(sizes.max()))
    sd = None if noise is None else noise * deviations(source)
    found = _run(lambda i: _perturbed(model, source, size, sd, seed, i), n, n_jobs)
    distances, chances = np.zeros((n, n)), []
    for i, j in combinations(range(n), 2):
        both, at, other = np.intersect1d(found[i][0], found[j][0], assume_unique=True, return_indices=True)
        if not len(both):
            raise ValueError(
                f"fraction={fraction!r} of {source.n} rows: two subsamples share no row; give a larger fraction"
            )
        a, b = found[i][1][at], found[j][1][other]
        distances[i, j] = distances[j, i] = clustering_distance(a, b)
        chances.append(clustering_distance(a, generator(seed, "shuffle", i * n + j).permutation(b)))
    pairs = distances[np.triu_indices(n, 1)]
    r_se = float("nan")  # a single pair has no standard error
    if n > 2:
        without = (pairs.sum() - distances.sum(axis=0)) / ((n - 1) * (n - 2) / 2)
        r_se = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    return _answer(pairs, r_se, np.array(chances), max(_count(labels) for _, labels in found))


def _check(model: Any, source: Source, method: str, n: Any, fraction: Any, noise: Any) -> float:
    if not isinstance(adapt(model), Groups):
        raise TypeError(f"{type(model).__name__} has neither predict nor fit_predict: give a model that labels rows")
    if method not in ("pairs", "transfer"):
        raise ValueError(f"method={method!r}: choose 'pairs' or 'transfer'")
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 2:
        raise ValueError(f"n={n!r}: give a number of perturbations, at least 2")
    if source.n < 4:
        raise ValueError(f"X has {source.n} rows: stability needs at least 4")
    most = 0.5 if method == "transfer" else 1.0
    if fraction is None:
        fraction = 0.5 if method == "transfer" else SUBSAMPLE_SHARE if noise is None else 1.0
    if not 0 < fraction <= most:
        raise ValueError(f"fraction={fraction!r}: give a share of the rows above 0 and at most {most} for {method!r}")
    if noise is not None and method == "transfer":
        raise ValueError(f"noise={noise!r} is for method='pairs': 'transfer' perturbs by splitting the rows")
    if noise is not None and not (0 <= noise < np.inf):
        raise ValueError(f"noise={noise!r}: give a share of each column's standard deviation, 0 or more")
    if np.ndim(model.get_params(deep=False).get("init", "")) == 1:
        name = type(model).__name__
        raise ValueError(f"init of {name} refers to rows of X, and subsamples have other rows: give init by name")
    if pairwise(model):
        name = type(model).__name__
        if source.n != source.d:
            raise ValueError(
                f"{name} takes a precomputed matrix of all pairs of rows, but X is {source.n} × {source.d}"
            )
        if noise is not None:
            raise ValueError(
                f"noise={noise!r} cannot be added to the matrix of pairs of rows that {name} takes: leave it out"
            )
        if method == "transfer" and not adapt(model).labels_new_rows:
            raise ValueError(f"{name} has no predict, and a precomputed matrix has no centres: take method='pairs'")
    if noise is not None and source.sparse:
        raise ValueError("noise would fill a sparse X: leave noise out (subsamples), or pass a dense X")
    return float(fraction)


def _run(f: Callable[[int], Any], n: int, n_jobs: int | None) -> list[Any]:
    """f(0) … f(n − 1) on threads; whatever runs inside has one, so bits do not depend on how many there are here."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0 or n_jobs < -1):
        raise ValueError(f"n_jobs={n_jobs!r}: give a number of threads, -1 for every core, or None")
    jobs = get_config().jobs if n_jobs is None else cores() if n_jobs == -1 else n_jobs
    controller = ThreadpoolController()

    def one(i: int) -> Any:
        alone = controller.limit(limits=1, user_api="openmp")
        with config(runner="serial", progress=False, checkpoint=None), alone:
            return f(i)

    with one_blas_thread():
        if jobs == 1:
            return [one(i) for i in range(n)]
        with ThreadPoolExecutor(min(jobs, n)) as threads:  # not the engine's: fits may wait for those
            tasks = [threads.submit(copy_context().run, one, i) for i in range(n)]
            try:
                return [t.result() for t in tasks]
            finally:
                for t in tasks:
                    t.cancel()


def _cut(model: Any, source: Source, rows: np.ndarray, fitted: np.ndarray) -> Any:
    """Some rows; of a matrix of pairs with the columns of the rows that a model is fitted to."""
    x = source.take(rows)
    return x[:, fitted] if pairwise(model) else x


def _fitted(model: Any, x: Any, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """The model fitted to x, and the labels of x; the random states are drawn from rng."""
    own = clone(model)
    names = sorted(k for k in own.get_params() if k == "random_state" or k.endswith("__random_state"))
    own.set_params(**{k: int(rng.integers(2**31 - 1)) for k in names})
    fitted = adapt(own)
    if fitted.labels_new_rows:
        return fitted.fit(x), np.asarray(fitted.predict(x))
    return fitted, np.asarray(fitted.fit_predict(x))


def _classify(model: Any, x: Any, labels: np.ndarray, new: Any) -> np.ndarray:
    """φ: what a clustering of x says about new rows."""
    if model.labels_new_rows:
        return np.asarray(model.predict(new))
    every = np.unique(labels)
    names = every[[name != -1 for name in every.tolist()]] if _count(labels) else every  # noise has no centre
    centers = np.array([np.asarray(x[labels == k].mean(axis=0)).ravel() for k in names])
    return np.asarray(names[pairwise_distances_argmin(new, centers)])


def _transfer(model: Any, source: Source, size: int, seed: int, i: int) -> tuple[float, float, int]:
    """r of one split, both ways; what chance gives; how many clusters there were."""
    rng = generator(seed, "split", i)
    order = rng.permutation(source.n)
    rows = np.sort(order[:size]), np.sort(order[size : 2 * size])
    halves = [_cut(model, source, r, r) for r in rows]
    fits = [_fitted(model, x, rng) for x in halves]
    r, chance = 0.0, 0.0
    for a, b in ((0, 1), (1, 0)):
        new = _cut(model, source, rows[b], rows[a]) if pairwise(model) else halves[b]
        said, own = _classify(fits[a][0], halves[a], fits[a][1], new), fits[b][1]
        r += clustering_distance(own, said) / 2
        chance += float(np.mean([clustering_distance(own, rng.permutation(said)) for _ in range(SHUFFLES)])) / 2
    return r, chance, max(_count(labels) for _, labels in fits)


def _perturbed(
    model: Any, source: Source, size: int, sd: np.ndarray | None, seed: int, i: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a perturbed data set, and their labels."""
    rng = generator(seed, "perturb", i)
    rows = np.sort(rng.choice(source.n, size, replace=False))
    x = _cut(model, source, rows, rows)
    if sd is not None:
        x = (x + sd * rng.standard_normal(x.shape)).astype(source.dtype)
    return rows, _fitted(model, x, rng)[1]


def _count(labels: np.ndarray) -> int:
    return sum(name != -1 for name in np.unique(labels).tolist())


def _answer(r: np.ndarray, r_se: float, chance: np.ndarray, K: int) -> Stability:
    mean, shuffled = float(r.mean()), float(chance.mean())
    if K < 2:
        nan = float("nan")
        return Stability(nan, nan, mean, r_se, 0.0, shuffled, nan, K, r)
    rand = (K - 1) / K
    adjusted = 1 - mean / shuffled if shuffled > 0 else float("nan")
    return Stability(1 - mean / rand, r_se / rand, mean, r_se, rand, shuffled, adjusted, K, r)
