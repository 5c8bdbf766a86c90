"""`select`: fit every k, judge by one or more criteria, answer with a reason.

All k share each pass over the rows. Then every k is tried again from the parts of k − 1 with one cut in two, and from
those of k + 1 with two joined, and the best sound fit counts. Where k > 1 is about to be chosen for a clustering or a
mixture, rows without groups (uniform in the box of the columns, or of the principal axes; one Gaussian; of whole
numbers the columns shuffled) are fitted as well: unless the data gain clearly more from k parts than these do, the
answer is "no structure", k = 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.model import Model
from unmix.model.capabilities import Completes, Density, Groups, PerColumn
from unmix.selection.answer import DECISIVE, answer, left_out, vote
from unmix.selection.criteria import CRITERIA, HIGH_IS_GOOD
from unmix.selection.fits import all_fits, fitted, fitting
from unmix.selection.question import Question
from unmix.selection.result import Selection, frame
from unmix.validate.clusterings import seed_of


def select(
    model: Any,
    X: Any,
    k: Iterable[int] = range(1, 21),
    criterion: str | list[str] = "auto",
    *,
    sample_weight: Any = None,
    folds: int = 5,
    references: int = 20,
    random_state: Any = None,
) -> Selection:
    """Choose the number of parts of a model.

    Parameters
    ----------
    model : estimator of unmix
        Any model with `n_components` or `n_clusters`; its other parameters are kept.
    X : anything with rows
        As for `fit`.
    k : iterable of int, default=range(1, 21)
        The numbers to try.
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
    random_state : int, RandomState or None, default=None
        Seed of the starts, the folds and the references.

    Returns
    -------
    selection : Selection
        `.k`, `.reason`, `.table`, `.plot()` and the fitted `.model`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import unmix
    >>> answer = unmix.select(unmix.GaussianMixture(), load_iris().data, k=range(1, 6), random_state=0)
    >>> answer.k
    2
    """
    name = size_of(model)
    model = clone(model)
    source, w, shape = model.admit(X, sample_weight)
    model = model.numbered(shape) if isinstance(model, PerColumn) else model
    q = Question(model, name, _numbers(k), source, w, _seed(model, random_state), folds, references, [], [])
    chosen = _criteria(q, criterion)
    _at_least_two("folds", folds, source.n if {"heldout", "entries"} & {*chosen} else np.inf)
    _at_least_two("references", references, np.inf)
    if w is not None and w.sum() < 2:
        raise ValueError(
            f"sample_weight sums to {w.sum():.3g}, as if there were that many rows: give counts, not shares"
        )
    q.ks, refused = fitting(q, shape)
    ks = q.ks
    with progress_line(f"select {type(model).__name__}", get_config()) as tell:
        q.models, q.fits = all_fits(q, tell)
        columns: dict[str, np.ndarray] = {
            "k": np.array(ks),
            "objective": np.array([f.objective for f in q.fits]),
            "converged": np.array([f.converged for f in q.fits]),
            "sound": np.array([not m.notes(f.U) for m, f in zip(q.models, q.fits, strict=True)]),
        }
        scores = {}
        for c in chosen:
            tell(f"judging by {c}")
            scores[c] = CRITERIA[c](q)
            sign = -1.0 if c in HIGH_IS_GOOD else 1.0  # shown with their usual sign
            columns[c] = sign * scores[c].value
            if scores[c].error.any():
                columns[f"{c}_se"] = scores[c].error
            if columns["sound"].any() and c != "nll":  # a bend needs all of the curve
                scores[c] = scores[c]._replace(value=np.where(columns["sound"], scores[c].value, np.nan))
        votes = {c: ks[vote(c, s)] for c, s in scores.items()}
        if chosen == ["icl", "bic"]:  # among those that icl does not clearly reject, bic decides
            near = scores["icl"].value <= np.nanmin(scores["icl"].value) + DECISIVE
            votes["icl"] = ks[int(np.argmin(np.where(near, scores["bic"].value, np.inf)))]
        tell("comparing with data that have no groups")
        best, reason = answer(q, chosen, scores, votes)
        reason += left_out(q, columns["sound"]) + refused
    found = None if best is None else fitted(q, best)
    return Selection(frame(columns), best, reason, found, chosen[0], votes, columns)


def size_of(model: Any) -> str:
    """Name of the hyper-parameter that is k."""
    if isinstance(model, type):
        raise ValueError(f"model is the class {model.__name__}: give an estimator, {model.__name__}()")
    params = model.get_params(deep=False)
    for name in ("n_components", "n_clusters"):
        if name in params:
            if not isinstance(model, Model):
                kind = f"{type(model).__module__.split('.')[0]}.{type(model).__name__}"
                raise ValueError(f"model={kind}: give a model of unmix, such as unmix.KMeans()")
            return name
    raise ValueError(f"{type(model).__name__} has neither n_components nor n_clusters: there is no k to choose")


def _at_least_two(name: str, value: Any, most: float) -> None:
    if not isinstance(value, Integral) or not 2 <= int(value) <= most:
        raise ValueError(f"{name}={value!r}: give a whole number of at least 2" + f", at most {most}" * (most < np.inf))


def _seed(model: Any, random_state: Any) -> int:
    given = model.get_params(deep=False).get("random_state") if random_state is None else random_state
    if isinstance(given, Integral) and given < 0:
        raise ValueError(f"random_state={given}: give a whole number of at least 0")
    return seed_of(given)


def _numbers(k: Any) -> list[int]:
    ks: list[Any] = [k] if isinstance(k, Integral) else list(k) if isinstance(k, Iterable) else []
    if not ks or not all(isinstance(v, Integral) and int(v) >= 1 for v in ks):
        raise ValueError(f"k={k!r}: give whole numbers of at least 1, as in k=range(1, 21)")
    return sorted({int(v) for v in ks})


def _possible(q: Question) -> list[str]:
    """The criteria that a model allows, the usual one first."""
    model = q.model
    groups, out = isinstance(model, Groups), []
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
