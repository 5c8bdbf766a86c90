"""`select`: fit every k, judge by one or more criteria, answer with a reason.

All k share each pass over the rows. Then every k is tried again from the parts of k − 1 with one cut in two, and from
those of k + 1 with two joined, and the best sound fit counts. Where k > 1 is about to be chosen for a clustering or a
mixture, rows without groups (uniform in the box of the columns, or of the principal axes; one Gaussian; of whole
numbers the columns shuffled) are fitted as well: unless the data gain clearly more from k parts than these do, the
answer is "no structure", k = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from unmix.engine.callbacks import stages
from unmix.engine.config import get_config
from unmix.engine.sample import generator
from unmix.engine.sources import as_source
from unmix.model import Model, fit_together
from unmix.selection.criteria import CRITERIA, Score
from unmix.selection.likeness import Likeness, gain
from unmix.selection.question import ROWS, Question
from unmix.validate.clusterings import seed_of

CLEAR = 3.0  # standard deviations by which data must beat structureless ones
DECISIVE = 10.0  # difference of an information criterion (Kass & Raftery 1995)
ROUNDS = 3  # of cutting parts in two and joining them
LIKENESSES = 10  # of each kind; after FEW of them nobody doubts an excess of BEYOND (t with 3 degrees: 1 in 600)
FEW, BEYOND = 4, 10.0
HIGH = ("calinski_harabasz", "silhouette", "stability", "gap")  # criteria of which high is good
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
        none = self.k == 1 and hasattr(self.model, "assign") and self.columns["sound"].sum() > 1
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
    model, source = clone(model), as_source(X)
    model = model._numbered(source.names) if hasattr(model, "_numbered") else model  # columns by name
    _, w, shape = model._open(source, sample_weight, reset=True)
    q = Question(model, name, _numbers(k), source, w, _seed(model, random_state), folds, references, [], [])
    chosen = _criteria(q, criterion)
    _at_least_two("folds", folds, source.n if {"heldout", "entries"} & {*chosen} else np.inf)
    _at_least_two("references", references, np.inf)
    if w is not None and w.sum() < 2:
        raise ValueError(f"sample_weight sums to {w.sum():.3g}, as if there were so many rows: give counts, not shares")
    q.ks, refused = _fitting(q, shape)
    ks = q.ks
    with stages(f"select {type(model).__name__}", get_config()) as tell:
        q.models, q.fits = _fits(q, tell)
        columns: dict[str, np.ndarray] = {
            "k": np.array(ks),
            "objective": np.array([f.objective for f in q.fits]),
            "converged": np.array([m.result_ == "converged" for m in q.models]),
            "sound": np.array([not m.notes(f.U) for m, f in zip(q.models, q.fits, strict=True)]),
        }
        scores = {}
        for c in chosen:
            tell(f"judging by {c}")
            scores[c] = CRITERIA[c](q)
            sign = -1.0 if c in HIGH else 1.0  # shown as everybody knows them
            columns[c] = sign * scores[c].value
            if scores[c].error.any():
                columns[f"{c}_se"] = scores[c].error
            if columns["sound"].any() and c != "nll":  # a bend needs all of the curve
                scores[c] = scores[c]._replace(value=np.where(columns["sound"], scores[c].value, np.nan))
        votes = {c: ks[vote(c, s)] for c, s in scores.items()}
        if chosen == ["icl", "bic"]:  # among those that icl does not clearly refuse, bic has the say
            near = scores["icl"].value <= np.nanmin(scores["icl"].value) + DECISIVE
            votes["icl"] = ks[int(np.argmin(np.where(near, scores["bic"].value, np.inf)))]
        tell("comparing with data that have no groups")
        answer, reason = _answer(q, chosen, scores, votes)
        reason += _left_out(q, columns["sound"]) + refused
    best = None if answer is None else _at(q, answer)
    return Selection(frame(columns), answer, reason, best, chosen[0], votes, columns)


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
    given = getattr(model, "random_state", None) if random_state is None else random_state
    if isinstance(given, Integral) and given < 0:
        raise ValueError(f"random_state={given}: give a whole number of at least 0")
    return seed_of(given)


def _numbers(k: Any) -> list[int]:
    ks: list[Any] = [k] if isinstance(k, Integral) else list(k) if isinstance(k, Iterable) else []
    if not ks or not all(isinstance(v, Integral) and int(v) >= 1 for v in ks):
        raise ValueError(f"k={k!r}: give whole numbers of at least 1, as in k=range(1, 21)")
    return sorted({int(v) for v in ks})


def _fitting(q: Question, shape: Any) -> tuple[list[int], str]:
    """The k that the data and the other parameters allow; a sentence on those that they do not."""
    fitting, refused = [], {}
    for k in q.ks:
        try:
            q.sized(k)._validate_params()
            q.sized(k)._bare(shape).check(shape)
            fitting.append(k)
        except ValueError as error:
            refused[k] = error
    if not fitting:
        raise next(iter(refused.values()))
    return fitting, f" Not possible: k = {', '.join(map(str, refused))}." if refused else ""


def _possible(q: Question) -> list[str]:
    """The criteria that a model allows, the usual one first."""
    model = q.model
    density, groups = hasattr(model, "log_density"), hasattr(model, "assign")
    out = []
    if density and hasattr(model, "_n_parameters"):
        out += ["icl", "bic", "aic", "nll", "heldout"] if groups else ["bic", "aic", "nll", "heldout"]
    if hasattr(model, "completion"):
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


def _fits(q: Question, tell: Callable[[str], None]) -> tuple[list[Any], list[Any]]:
    """A fit for each k: from the model's own starts, from one part fewer cut in two, from one part more joined."""
    ks, w, seed = q.ks, q.w, q.seed
    models = [q.sized(k) for k in ks]
    tell(f"fitting k = {ks[0]} to {ks[-1]}")
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
        tell(f"{len(first)} fits from neighbours' parts")
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
    known = np.flatnonzero(~np.isnan(score.value))
    value = np.where(np.isnan(score.value), np.inf, score.value)
    best = int(np.argmin(value))
    if name == "nll" and len(known):  # farthest below the line from first to last
        line = np.interp(known, known[[0, -1]], value[known[[0, -1]]])
        return int(known[np.argmax(line - value[known])])
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
    if k > 1 and hasattr(q.model, "assign") and not q.pairwise:
        excess = structure(q, k)
        if excess < CLEAR:
            side = "above" if excess > 0 else "below"
            return 1, (
                f"{first} alone would choose {k}, but data without groups, of the same mean and axes, gain as much or "
                f"nearly so: the data are {abs(excess):.1f} standard deviations {side} them, and {CLEAR:.0f} above are "
                "asked for."
            )
    return k, _sure(q, first, scores[first], votes)


def _left_out(q: Question, sound: np.ndarray) -> str:
    """What a person should know of fits of which something collapsed."""
    if sound.all():
        return ""
    bad = np.flatnonzero(~sound)
    if sound.any():
        return f" Left out, because something collapsed: k = {', '.join(str(q.ks[i]) for i in bad)}."
    return f" Something collapsed in every fit, so do not trust this; {q.models[0].notes(q.fits[0].U)[0]}."


def _refined(votes: dict[str, int]) -> bool:
    """ICL counts groups, BIC the Gaussians that they are made of: fewer groups than Gaussians is no contradiction."""
    return set(votes) == {"bic", "icl"} and votes["icl"] <= votes["bic"]


def _sure(q: Question, name: str, score: Score, votes: dict[str, int]) -> str:
    """Why this k, and how sure that is."""
    k = votes[name]
    i, value = q.ks.index(k), np.where(np.isnan(score.value), np.inf, score.value)
    others = np.delete(np.arange(len(value)), i)
    start = f"{name} chooses {k}"
    if not len(others) or not np.isfinite(value[others]).any():
        return f"{start}; no other k was judged."
    if k == 1:
        start = f"one part is enough for {name}" + ": no structure" * hasattr(q.model, "assign")
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
    x, w = q.rows(ROWS)
    k = min(k, len(x) // 2)
    if not isinstance(getattr(q.model, "family", ""), (list, tuple, dict)):  # whose columns have numbers
        x = x[:, ~np.isnan(x).all(axis=0)]
    like, own = Likeness(q, x, w), gain(q, x, w, k)
    least = np.inf
    for kind in like.kinds:
        gains: list[float] = []
        while len(gains) < LIKENESSES:
            gains.append(gain(q, like.draw(kind, generator(q.seed, kind, len(gains))), w, k))
            if len(gains) >= FEW:
                excess = (own - np.mean(gains)) / max(float(np.std(gains, ddof=1)), 1e-9)
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
    model = q.sized(k).set_params(**q.free)
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
