"""`select`: fit every k, judge by one or more criteria, answer with a reason.

All k share each pass over the rows. Then every k is tried again from the parts of k − 1 with one cut in two, and from
those of k + 1 with two joined, and the best sound fit counts. Where k > 1 is about to be chosen for a clustering or a
mixture, rows without groups (uniform in the box of the columns, or of the principal axes; one Gaussian; of whole
numbers the columns shuffled) are fitted as well: unless the data gain clearly more from k parts than these do, the
answer is "no structure", k = 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from unmix.engine.loop import generator
from unmix.engine.sources import as_source
from unmix.model import fit_together
from unmix.selection.criteria import CRITERIA, ROWS, Question, Score, kinds, likeness, log_losses

CLEAR = 3.0  # standard deviations by which data must beat structureless ones
DECISIVE = 10.0  # difference of an information criterion (Kass & Raftery 1995)
ROUNDS = 3  # of cutting parts in two and joining them
LIKENESSES = 10  # of each kind; after FEW of them nobody doubts an excess of BEYOND (t with 3 degrees: 1 in 600)
FEW, BEYOND = 4, 10.0
HIGH = ("silhouette", "stability", "gap")  # criteria of which high is good
AGREE = 1.5  # votes whose ratio is below this agree well enough for the first to count


@dataclass
class Selection:
    """The answer to "how many?".

    Attributes
    ----------
    table : data frame
        One row per k: the objective, whether the fit converged and is sound (nothing of it collapsed: others are not
        chosen), every criterion and its standard error.
    k : int or None
        The choice; None when the criteria disagree too much.
    reason : str
        Why, and how sure it is.
    model : estimator
        Fitted with the chosen k, or None.
    criterion : str
        The criterion that decided.
    votes : dict
        What each criterion would choose.
    """

    table: Any
    k: int | None
    reason: str
    model: Any
    criterion: str
    votes: dict[str, int]
    columns: dict[str, np.ndarray] = field(repr=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw the criteria against k, each scaled to its own range, with the choice marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        ax : matplotlib Axes
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plot needs Matplotlib: install it with  pip install 'unmix[plot]'") from None
        if ax is None:
            ax = plt.subplots(figsize=(6, 3.5), layout="constrained")[1]
        ks = self.columns["k"]
        for name in self.votes:
            value, error = self.columns[name], self.columns.get(f"{name}_se", np.zeros(len(ks)))
            low, span = np.nanmin(value), np.nanmax(value) - np.nanmin(value) or 1.0
            shown = error / span if error.any() else None
            way = "high" if name in HIGH else "low"
            ax.errorbar(ks, (value - low) / span, shown, marker="o", ms=4, capsize=2, label=f"{name} ({way} is good)")
            best = list(ks).index(self.votes[name])
            ax.plot(ks[best], (value[best] - low) / span, "o", ms=9, mfc="none", color="black")
        if self.k is not None:
            ax.axvline(self.k, color="black", lw=1.5, ls=":")
        ax.set(xlabel="k", ylabel="criterion, from its lowest to its highest", title=self.title)
        ax.set_xticks([k for k in ks if len(ks) <= 25 or k % 5 == 0])
        ax.legend(frameon=False)
        return ax

    @property
    def title(self) -> str:
        """The answer in three words."""
        none = self.k == 1 and len(self.columns["k"]) > 1
        return "not decided" if self.k is None else "no structure: k = 1" if none else f"k = {self.k}"

    def _repr_html_(self) -> str:
        shown = {n: v for n, v in self.columns.items() if not (n in ("converged", "sound") and v.all())}
        rows = []
        for i, k in enumerate(self.columns["k"]):
            tag, cells = "th" if k == self.k else "td", [_short(v[i]) for v in shown.values()]
            rows.append("<tr>" + "".join(f"<{tag} style='text-align:right'>{c}</{tag}>" for c in cells) + "</tr>")
        head = "".join(f"<th>{n}</th>" for n in shown)
        return f"<p><b>{self.title}</b>: {self.reason}</p><table><tr>{head}</tr>{''.join(rows)}</table>"

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


def _short(value: Any) -> str:
    """A cell of a table for people."""
    if isinstance(value, (np.bool_, bool)):
        return "yes" if value else "no"
    return str(value) if isinstance(value, Integral) else f"{value:.5g}" if np.isfinite(value) else "–"


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
        One or more of "aic", "bic", "icl", "nll", "heldout", "entries", "stability", "silhouette", "gap"; of several
        the first decides if the others agree well enough. "auto": mixtures by "icl", which counts groups, with "bic",
        which counts the parts that describe them best, as a second opinion; other densities by "bic"; clusterings by
        "silhouette"; topics by "heldout"; other factors by "entries".
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
    source = as_source(X)
    ks = _numbers(k, source.n)
    chosen = _criteria(model, criterion)
    w = None
    if sample_weight is not None:
        w = _check_sample_weight(sample_weight, np.empty((source.n, 1)), dtype=np.float64, ensure_non_negative=True)
    seed = int(random_state) if isinstance(random_state, Integral) else check_random_state(random_state).randint(2**31)
    q = Question(clone(model), name, ks, X, source, w, int(seed), folds, references, [], [])
    q.models, q.fits = _fits(q)
    columns: dict[str, np.ndarray] = {
        "k": np.array(ks),
        "objective": np.array([f.objective for f in q.fits]),
        "converged": np.array([f.result == "converged" for f in q.fits]),
        "sound": np.array([not m.notes(f.U) for m, f in zip(q.models, q.fits, strict=True)]),
    }
    scores = {}
    for c in chosen:
        scores[c] = CRITERIA[c](q)
        sign = -1.0 if c in HIGH else 1.0  # shown as everybody knows them
        columns[c] = sign * scores[c].value
        if scores[c].error.any():
            columns[f"{c}_se"] = scores[c].error
        if columns["sound"].any():
            scores[c] = scores[c]._replace(value=np.where(columns["sound"], scores[c].value, np.nan))
    votes = {c: ks[vote(c, s)] for c, s in scores.items()}
    if chosen == ["icl", "bic"]:  # among those that icl does not clearly refuse, bic has the say
        near = scores["icl"].value <= np.nanmin(scores["icl"].value) + DECISIVE
        votes["icl"] = ks[int(np.argmin(np.where(near, scores["bic"].value, np.inf)))]
    answer, reason = _answer(q, chosen, scores, votes)
    best = None if answer is None else _at(q, answer)
    return Selection(frame(columns), answer, reason, best, chosen[0], votes, columns)


def size_of(model: Any) -> str:
    """Name of the hyper-parameter that is k."""
    params = model.get_params(deep=False)
    for name in ("n_components", "n_clusters"):
        if name in params:
            return name
    raise ValueError(f"{type(model).__name__} has neither n_components nor n_clusters: there is no k to choose")


def _numbers(k: Iterable[int], n: int) -> list[int]:
    ks = sorted({int(v) for v in k if isinstance(v, Integral)} if not isinstance(k, Integral) else {int(k)})
    if not ks or ks[0] < 1:
        raise ValueError(f"k={k!r}: give whole numbers of at least 1, as in k=range(1, 21)")
    fitting = [v for v in ks if v <= n]
    if not fitting:
        raise ValueError(f"k={k!r}: X has {n} rows, and k may be {n} at most")
    return fitting


def _possible(model: Any) -> list[str]:
    """The criteria that a model allows, the usual one first."""
    density, groups = hasattr(model, "log_density"), hasattr(model, "assign")
    out = []
    if density and hasattr(model, "_n_parameters"):
        out += ["icl", "bic", "aic", "nll", "heldout"] if groups else ["bic", "aic", "nll", "heldout"]
    if hasattr(model, "completion"):
        out += ["heldout"]
    if groups:
        out += ["silhouette", "stability", "gap"]
    elif model.missing:
        out += ["entries"]
    return out


def _criteria(model: Any, criterion: str | list[str]) -> list[str]:
    possible = _possible(model)
    if criterion == "auto":
        return possible[:2] if possible[0] == "icl" else possible[:1]
    chosen = [criterion] if isinstance(criterion, str) else list(criterion)
    for c in chosen:
        if c not in possible:
            raise ValueError(f"criterion={c!r}: for {type(model).__name__} choose from {', '.join(possible)}")
    return chosen


def _fits(q: Question) -> tuple[list[Any], list[Any]]:
    """A fit for each k: from the model's own starts, from one part fewer cut in two, from one part more joined."""
    ks, w, seed = q.ks, q.w, q.seed
    models = [q.sized(k) for k in ks]
    fits = fit_together(models, q.source, [w] * len(ks), [seed] * len(ks))
    fresh = {"grow": set(ks), "merge": set(ks)}  # fits that were not yet a start of their neighbours
    for name, step in (("grow", 1), ("merge", -1)) * ROUNDS:
        first = {}
        for i, k in enumerate(ks):
            if k - step in fresh[name]:
                parts = getattr(models[i], name)(fits[ks.index(k - step)], generator(seed, name, i))
                if parts is not None:
                    first[i] = parts
        fresh[name].clear()
        if not first:
            continue
        again = [q.sized(ks[i]) for i in first]
        beat = [np.inf if models[i].notes(fits[i].U) else fits[i].objective for i in first]
        found = fit_together(again, q.source, [w] * len(again), [seed] * len(again), list(first.values()), beat)
        for i, model, fit, before in zip(first, again, found, beat, strict=True):
            if fit is None or _rank(model, fit) >= _rank(models[i], fits[i]):
                continue
            worth = model.tolerance() * model.unit(fit.U, fit.trace[0].objective)
            if before - fit.objective > worth:  # less is the same optimum
                fresh["grow"].add(ks[i])
                fresh["merge"].add(ks[i])
            models[i], fits[i] = model, fit
    return models, fits


def _rank(model: Any, fit: Any) -> tuple[bool, float]:
    """Low is good: a fit of which something collapsed may have any likelihood, and comes last."""
    return bool(model.notes(fit.U)), fit.objective


def vote(name: str, score: Score) -> int:
    """Index of the k that a criterion chooses."""
    value = np.where(np.isnan(score.value), np.inf, score.value)
    best = int(np.argmin(value))
    if name == "nll":  # farthest below the line from first to last
        line = np.linspace(value[0], value[-1], len(value))
        return int(np.argmax(line - value))
    if name == "gap":
        return int(np.argmax(value <= value[best] + score.error[best]))
    if score.runs is not None and len(score.runs) > 1:
        apart = score.runs - score.runs[:, [best]]
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        return int(np.argmax(apart.mean(axis=0) <= error))
    return best


def _answer(q: Question, chosen: list[str], scores: dict[str, Score], votes: dict[str, int]) -> tuple[int | None, str]:
    """The choice, or None, and the reason."""
    first = chosen[0]
    k, few, many = votes[first], min(votes.values()), max(votes.values())
    if many > max(AGREE * few, few + 1) and not _refined(votes):
        said = ", ".join(f"{c} says {v}" for c, v in votes.items())
        return None, f"the criteria disagree: {said}. Look at the table, or name one criterion."
    if k > 1 and hasattr(q.model, "assign"):
        excess = structure(q, k)
        if excess < CLEAR:
            side = "above" if excess > 0 else "below"
            return 1, (
                f"{first} alone would choose {k}, but data without groups, of the same mean and axes, gain as much or "
                f"nearly so: the data are {abs(excess):.1f} standard deviations {side} them, and {CLEAR:.0f} above are "
                "asked for."
            )
    return k, _sure(q, first, scores[first], votes)


def _refined(votes: dict[str, int]) -> bool:
    """ICL counts groups, BIC the Gaussians that they are made of: fewer groups than Gaussians is no contradiction."""
    return set(votes) == {"bic", "icl"} and votes["icl"] <= votes["bic"]


def _sure(q: Question, name: str, score: Score, votes: dict[str, int]) -> str:
    """Why this k, and how sure that is."""
    k = votes[name]
    i, value = q.ks.index(k), np.where(np.isnan(score.value), np.inf, score.value)
    others = np.delete(np.arange(len(value)), i)
    if k == 1 and len(others):
        start = f"one part is enough for {name}: no structure"
    else:
        start = f"{name} chooses {k}"
    if not len(others) or not np.isfinite(value[others]).any():
        return f"{start}; no other k was judged."
    j = int(others[np.argmin(value[others])])
    apart = value[j] - value[i]
    if name in ("aic", "bic", "icl"):
        words = "decisive" if apart > DECISIVE else "strong" if apart > 6 else "positive" if apart > 2 else "weak"
        tail = f"k = {q.ks[j]} comes next, {apart:.3g} higher: {words} evidence"
        if apart < 0:
            tail = f"it is {-apart:.3g} lower at k = {q.ks[j]}, too little to count, and bic prefers {k}"
    elif score.error.any():
        error = max(float(score.error[i]), float(score.error[j]), 1e-300)
        sure = "surely" if apart > 3 * error else "probably" if apart > error else "not surely"
        tail = f"k = {q.ks[j]} comes next, {abs(apart):.3g} {'worse' if apart >= 0 else 'better, within the error'}"
        tail += f" (standard error {error:.2g}): {sure} {k}"
    else:
        tail = f"k = {q.ks[j]} comes next, {abs(apart):.3g} worse"
    more = "".join(f"; {c} would choose {v}" for c, v in votes.items() if c != name and v != k)
    if k == q.ks[-1] and len(q.ks) > 1:
        more += f"; {k} is the largest k that was tried: try larger ones"
    return f"{start}; {tail}{more}."


def structure(q: Question, k: int) -> float:
    """By how many standard deviations the data gain more from k parts than data without groups do."""
    x, _ = q.rows(ROWS)
    x = np.asarray(x.toarray() if hasattr(x, "toarray") else x)
    k = min(k, len(x) // 2)
    one, many = log_losses(q, x, [1, k])
    least = np.inf
    for kind in kinds(x):
        gains: list[float] = []
        while len(gains) < LIKENESSES:
            y = likeness(x, kind, generator(q.seed, kind, len(gains)))
            gains.append(float(-np.diff(log_losses(q, y, [1, k]))[0]))
            if len(gains) >= FEW:
                excess = (one - many - np.mean(gains)) / max(float(np.std(gains, ddof=1)), 1e-9)
                if not 0 < excess < BEYOND:
                    break
        least = min(least, float(excess))
        if least < CLEAR:
            break
    return least


def _at(q: Question, k: int) -> Any:
    """The fitted model of k parts."""
    if k in q.ks:
        return q.models[q.ks.index(k)]
    model = q.sized(k)
    fit_together([model], q.source, [q.w], [q.seed])
    return model


def frame(columns: dict[str, np.ndarray]) -> Any:
    """A data frame of whichever kind is installed."""
    try:
        import pandas as pd

        return pd.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars as pl

        return pl.DataFrame(columns)
    except ImportError:
        import pyarrow as pa

        return pa.table(columns)


def _has(method: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "model_", self.model), method))


class Select(MetaEstimatorMixin, BaseEstimator):
    """A model whose number of parts is chosen when it is fitted.

    Parameters
    ----------
    model : estimator of unmix
        Any model with `n_components` or `n_clusters`.
    k : iterable of int, default=range(1, 21)
        The numbers to try.
    criterion : str or list of str, default="auto"
        As for `unmix.select`.
    folds, references, random_state
        As for `unmix.select`.

    Attributes
    ----------
    selection_ : Selection
        The answer, with its reason and table.
    k_ : int
        The chosen number.
    model_ : estimator
        The fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from unmix import KMeans, Select
    >>> Select(KMeans(), k=range(1, 6), random_state=0).fit(load_iris().data).k_
    2
    """

    def __init__(
        self,
        model: Any,
        k: Any = range(1, 21),
        criterion: Any = "auto",
        *,
        folds: int = 5,
        references: int = 20,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.k = k
        self.criterion = criterion
        self.folds = folds
        self.references = references
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Select:
        """Choose k and fit the model.

        Parameters
        ----------
        X : anything with rows
            As for the model's `fit`.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            How many times each row counts.

        Returns
        -------
        self
        """
        options = {"folds": self.folds, "references": self.references, "random_state": self.random_state}
        answer = select(self.model, X, self.k, self.criterion, sample_weight=sample_weight, **options)
        if answer.k is None:
            raise ValueError(f"no k was chosen: {answer.reason}")
        self.selection_, self.k_, self.model_ = answer, answer.k, answer.model
        self.n_features_in_ = self.model_.n_features_in_
        if hasattr(self.model_, "feature_names_in_"):
            self.feature_names_in_ = self.model_.feature_names_in_
        if hasattr(self.model_, "labels_"):
            self.labels_ = self.model_.labels_
        return self

    def transform(self, X: Any) -> Any:
        """Return the hidden rows of X at the chosen model.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        return self.model_.transform(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Choose k, fit, and return the hidden rows of X.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    @_has("predict")
    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row by the chosen model.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        check_is_fitted(self)
        return np.asarray(self.model_.predict(X))

    @_has("predict")
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Choose k, fit, and return the labels.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the chosen model's score.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        return float(self.model_.score(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = self.model.__sklearn_tags__()
        tags.input_tags, tags.estimator_type = own.input_tags, own.estimator_type
        return tags
