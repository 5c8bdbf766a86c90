"""`select`: fit every k, judge by one or more criteria, answer with a range, a word for sureness and a reason.

All k share each pass over the rows. Then every k is tried again from the parts of k − 1 with one cut in two, and from
those of k + 1 with two joined, and the best sound fit counts. Halves of the rows are asked the same question: how
their answers vary is how sure the choice is. Where k > 1 is about to be chosen for a clustering or a mixture, rows
without groups (uniform in the box of the columns, or of the principal axes; one Gaussian; categories shuffled) are
fitted as well: unless the data gain clearly more from k parts than these do, the answer is "no structure", k = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.model.capabilities import Completes, Density, PerColumn
from unmix.model.frames import frame
from unmix.selection.answer import answer, disagreement, left_out
from unmix.selection.asked import estimator, size_of
from unmix.selection.criteria import HIGH_IS_GOOD
from unmix.selection.evidence import gather
from unmix.selection.fits import all_fits, fitted, fitting, raise_ridge, settle_ridge
from unmix.selection.judge import Judgement, judge
from unmix.selection.question import Question
from unmix.selection.result import Selection
from unmix.validate.clusterings import seed_of

AUTO = range(1, 11)  # the first k of "auto" ...
LARGEST = 100  # ... and its largest
ROWS_PER_PART = 5  # at least


def select(
    model: Any,
    X: Any,
    k: Iterable[int] | str = "auto",
    criterion: str | list[str] = "auto",
    *,
    sample_weight: Any = None,
    folds: int = 5,
    references: int = 20,
    parameter: str | None = None,
    random_state: Any = None,
) -> Selection:
    """Choose the number of parts of a model.

    Parameters
    ----------
    model : estimator of unmix, its class or its name
        Any model with `n_components` or `n_clusters`, as `unmix.KMeans()` or "KMeans". Its other parameters are kept,
        but for the `reg_covar` of a mixture that nobody set and that does not suit the columns: the reason says so.
    X : anything with rows
        As for `fit`.
    k : "auto" or iterable of int, default="auto"
        The numbers to try. "auto": 1 to 10, and more for as long as the largest is the best, up to 100 or a fifth of
        the rows.
    criterion : str or list of str, default="auto"
        One or more of "aic", "bic", "icl", "nll", "heldout", "entries", "stability", "silhouette", "gap",
        "calinski_harabasz"; of several the first decides if the others agree well enough. "auto": mixtures by "icl",
        which counts groups, with "bic", which counts the parts that describe them best, as a second opinion; other
        densities by "bic"; clusterings by "icl", each cluster seen as a Gaussian, or by "silhouette" where they cannot
        be; topics by "heldout"; other factors by "entries".
    sample_weight : array of shape (n,), optional
        How many times each row counts.
    folds : int, default=5
        Folds of "heldout" and "entries".
    references : int, default=20
        Structureless data sets of "gap".
    parameter : str or None, default=None
        The parameter whose value is chosen, where it is not the number of parts: "n_factors" of a mixture of factor
        analysers.
    random_state : int, RandomState or None, default=None
        Seed of the starts, the folds and the references.

    Returns
    -------
    selection : Selection
        `.k`, `.range`, `.sureness`, `.reason`, `.table`, `.plot()` and the fitted `.model`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import unmix
    >>> answer = unmix.select(unmix.GaussianMixture(), load_iris().data, k=range(1, 6), random_state=0)
    >>> answer.k
    2
    """
    given = estimator(model)
    name = size_of(given, parameter)
    model = clone(given)
    source, w, shape = model.admit(X, sample_weight)
    model = model.numbered(shape) if isinstance(model, PerColumn) else model
    auto = isinstance(k, str) and k == "auto"
    ks = list(AUTO) if auto else _numbers(k)
    q = Question(clone(model), name, ks, source, w, _seed(model, random_state), folds, references)
    chosen = _criteria(q, criterion)
    _at_least_two("folds", folds, source.n if {"heldout", "entries"} & {*chosen} else np.inf)
    _at_least_two("references", references, np.inf)
    if w is not None and w.sum() < 2:
        raise ValueError(
            f"sample_weight sums to {w.sum():.3g}, as if there were that many rows: give counts, not shares"
        )
    q.ks, refused = fitting(q, shape)
    with progress_line(f"select {type(model).__name__}", get_config()) as tell:
        ridge = settle_ridge(q)
        all_fits(q, tell)
        if more := raise_ridge(q):
            ridge = more
            all_fits(q, tell)
        found = _reach(q, chosen, judge(q, chosen, tell), shape, tell) if auto else judge(q, chosen, tell)
        said = disagreement(found)
        if said is None:
            said = answer(q, found, gather(q, model, chosen, found, tell), edge=not auto, mended=bool(more))
    tail = left_out(q, found.sound) + ridge + ("" if auto else refused)
    best, columns = None if said.k is None else fitted(q, said.k), _columns(q, found)
    told = (said.k, said.range, said.sureness, said.reason + tail, best, chosen[0], found.votes, columns, name)
    return Selection(frame(columns), *told)


def _reach(q: Question, chosen: list[str], found: Judgement, shape: Any, tell: Callable[[str], None]) -> Judgement:
    """Try larger k while the largest is the best, as far as the rows allow."""
    most = min(2 * q.ks[-1], LARGEST, int(np.count_nonzero(q.weight)) // ROWS_PER_PART)
    if found.votes[chosen[0]] < q.ks[-1] or most <= q.ks[-1]:
        return found
    before, q.ks = q.ks, [*q.ks, *range(q.ks[-1] + 1, most + 1)]
    q.ks, _ = fitting(q, shape)
    if q.ks == before:
        return found
    all_fits(q, tell)
    return _reach(q, chosen, judge(q, chosen, tell), shape, tell)


def _columns(q: Question, found: Judgement) -> dict[str, np.ndarray]:
    """The columns of the table."""
    out: dict[str, np.ndarray] = {
        "k": np.array(q.ks),
        "objective": np.array([f.objective for f in q.fits]),
        "converged": np.array([f.converged for f in q.fits]),
        "sound": found.sound,
    }
    for c, score in found.scores.items():
        out[c] = -score.value if c in HIGH_IS_GOOD else score.value  # shown with their usual sign
        if score.error.any():
            out[f"{c}_se"] = score.error
    return out


def _at_least_two(name: str, value: Any, most: float) -> None:
    if not isinstance(value, Integral) or not 2 <= int(value) <= most:
        raise ValueError(f"{name}={value!r}: give a whole number of at least 2" + f", at most {most}" * (most < np.inf))


def _seed(model: Any, random_state: Any) -> int:
    given = model.get_params(deep=False).get("random_state") if random_state is None else random_state
    if isinstance(given, Integral) and given < 0:
        raise ValueError(f"random_state={given}: give a whole number of at least 0")
    return seed_of(given)


def _numbers(k: Any) -> list[int]:
    several = isinstance(k, Iterable) and not isinstance(k, str)
    ks: list[Any] = [k] if isinstance(k, Integral) else list(k) if several else []
    if not ks or not all(isinstance(v, Integral) and int(v) >= 1 for v in ks):
        raise ValueError(f"k={k!r}: give whole numbers of at least 1, as in k=range(1, 21), or 'auto'")
    return sorted({int(v) for v in ks})


def _possible(q: Question) -> list[str]:
    """The criteria that a model allows, the usual one first."""
    model = q.model
    groups, out = q.groups, []
    if isinstance(model, Density):
        out += ["icl", "bic", "aic", "nll", "heldout"] if groups else ["bic", "aic", "nll", "heldout"]
    if isinstance(model, Completes):
        out += ["heldout"]
    if groups:
        out += ["silhouette"] if q.pairwise else ["silhouette", "stability", "gap"]
        out += ["calinski_harabasz"] if q.squared else []
        if q.rowwise:
            out.insert(0 if q.clouds else len(out), "icl")
    if model.missing and not q.pairwise:
        out += ["entries"]
    return out


def _criteria(q: Question, criterion: str | list[str]) -> list[str]:
    possible = _possible(q)
    if isinstance(criterion, str) and criterion == "auto":
        return possible[:2] if possible[:2] == ["icl", "bic"] else possible[:1]
    chosen: list[Any] = [criterion] if isinstance(criterion, str) or not criterion else list(criterion)
    for c in chosen:
        if c not in possible:
            raise ValueError(f"criterion={c!r}: for {type(q.model).__name__} choose from {', '.join(possible)}")
    return chosen
