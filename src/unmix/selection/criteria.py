"""Criteria for the number of parts k: each gives a value per k, its standard error where it has one, and a vote.

    aic       2 p − 2 log L                      p free parameters, L the likelihood           lowest
    bic       p log n − 2 log L                                                                 lowest
    icl       bic + 2 Σ_i H(z_i)                 H the entropy of row i's memberships           lowest
    nll       − log L / n                        always falls: where the curve bends            bend
    heldout   mean over folds of − log p(held-out row)                                          one-SE rule
    entries   Σ (x − x̂)² / Σ (x − x̄)² over held-out cells, of folds of cells                    one-SE rule
    stability 1 − r / r_rand: how well a clustering of one half predicts that of another        highest
    silhouette  mean (b − a) / max(a, b)                                                        highest
    gap       E log D(k) of structureless data − log D(k), D the loss                           one-SE rule

The one-SE rule takes the smallest k whose value is within one standard error of the best, where the error is that of
the difference between the two, fold by fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from unmix.engine.config import get_config
from unmix.engine.loop import generator
from unmix.model import fit_together

ROWS = 2000  # of data and of its structureless likenesses, where the two are compared
PIECES = 10_000  # rows whose silhouettes are enough for two digits


class Score(NamedTuple):
    """A criterion at every k, low is good; NaN where it says nothing."""

    value: np.ndarray
    error: np.ndarray  # standard error, 0 where there is none
    runs: np.ndarray | None = None  # (folds, k): what the values are means of


@dataclass
class Question:
    """What is asked: a model of which k, on which rows."""

    model: Any
    name: str  # of the hyper-parameter that is k
    ks: list[int]
    X: Any
    source: Any
    w: np.ndarray | None
    seed: int
    folds: int
    references: int
    models: list[Any]
    fits: list[Any]

    @property
    def weight(self) -> np.ndarray:
        """Weights of the rows, ones where there are none."""
        return np.ones(self.source.n) if self.w is None else self.w

    def sized(self, k: int) -> Any:
        """An unfitted model of k parts."""
        return clone(self.model).set_params(**{self.name: k})

    def rows(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """At most so many rows and their weights, drawn by global index."""
        n = self.source.n
        if n <= most:
            return self.source.read(0, n), self.weight
        index = np.sort(generator(self.seed, "rows").choice(n, most, replace=False))
        return self.source.take(index), self.weight[index]


def _likelihood(q: Question) -> tuple[np.ndarray, np.ndarray]:
    return np.array([-f.loss for f in q.fits]), np.array([m._n_parameters() for m in q.models], dtype=float)


def aic(q: Question) -> Score:
    """2 p − 2 log L."""
    log_l, p = _likelihood(q)
    return Score(2 * p - 2 * log_l, np.zeros(len(p)))


def bic(q: Question) -> Score:
    """Return p log n − 2 log L."""
    log_l, p = _likelihood(q)
    return Score(p * np.log(q.weight.sum()) - 2 * log_l, np.zeros(len(p)))


def icl(q: Question) -> Score:
    """bic + twice the entropy of the memberships."""
    value, error, _ = bic(q)
    for i, m in enumerate(q.models):
        at, entropy = 0, 0.0
        for z in m._stream("encode", q.source):
            z = np.asarray(z, dtype=np.float64)
            h = -(z * np.log(np.maximum(z, 1e-300))).sum(axis=1)
            entropy += float(q.weight[at : at + len(z)] @ h)
            at += len(z)
        value[i] += 2 * entropy
    return Score(value, error)


def nll(q: Question) -> Score:
    """− log L / n."""
    log_l, p = _likelihood(q)
    return Score(-log_l / q.weight.sum(), np.zeros(len(p)))


def heldout(q: Question) -> Score:
    """− log p of rows that the fit did not see; of documents every second token, given the others."""
    fold = generator(q.seed, "folds").permutation(q.source.n) % q.folds
    runs = np.full((q.folds, len(q.ks)), np.nan)
    for f in range(q.folds):
        models = [q.sized(k) for k in q.ks]
        seen = q.weight * (fold != f)
        fit_together(models, q.source, [seen] * len(models), [q.seed] * len(models))
        out = np.flatnonzero((fold == f) & (q.weight > 0))
        rows = q.source.take(out)
        for i, m in enumerate(models):
            if hasattr(m, "completion"):
                log_p, tokens = m._rows("completion", rows).T
                runs[f, i] = -(q.weight[out] @ log_p) / (q.weight[out] @ tokens)
            else:
                runs[f, i] = -np.average(m.score_samples(rows), weights=q.weight[out])
    return _mean(runs)


def entries(q: Question) -> Score:
    """Squared error of cells that the fit did not see, over that of the columns' means."""
    x = q.source.whole(get_config().budget)
    if not isinstance(x, np.ndarray):
        x = x.toarray()
    x = x.astype(np.float64)
    seen = ~np.isnan(x)
    fold = np.where(seen, generator(q.seed, "cells").integers(q.folds, size=x.shape), -1)
    w = q.weight[:, None] * np.ones(x.shape[1])
    runs = np.full((q.folds, len(q.ks)), np.nan)
    for f in range(q.folds):
        out = fold == f
        masked = np.where(out, np.nan, x)
        masked[:, ~(seen & ~out).any(axis=0)] = 0.0
        models = [q.sized(k) for k in q.ks]
        fit_together(models, masked, [q.w] * len(models), [q.seed] * len(models))
        mean = np.nansum(masked * w, axis=0) / np.maximum((w * ~np.isnan(masked)).sum(axis=0), 1e-300)
        total = float((w * (np.where(out, x, 0) - mean) ** 2)[out].sum())
        for i, m in enumerate(models):
            guess = np.asarray(m.inverse_transform(m.transform(masked)), dtype=np.float64)
            runs[f, i] = float((w * (np.where(out, x, 0) - guess) ** 2)[out].sum()) / total
    return _mean(runs)


def stability(q: Question) -> Score:
    """Minus 1 − r / r_rand: how well a clustering of one half of the rows predicts that of the other."""
    from unmix.validate import stability as measure

    x, _ = q.rows(PIECES)
    found = [measure(q.sized(k), x, method="transfer", random_state=q.seed) if k > 1 else None for k in q.ks]
    value = np.array([np.nan if s is None else -s.score for s in found])
    return Score(value, np.array([0.0 if s is None else s.se for s in found]))


def silhouette(q: Question) -> Score:
    """Minus the mean silhouette, of a sample of large data."""
    from unmix.validate import silhouette as measure

    x, w = q.rows(PIECES)
    value, error = np.full(len(q.ks), np.nan), np.zeros(len(q.ks))
    for i, m in enumerate(q.models):
        labels = m.predict(x)
        if len(np.unique(labels)) > 1:
            s = measure(x, labels, sample_weight=None if q.w is None else w, random_state=q.seed)
            value[i], error[i] = -s.score, s.se
    return Score(value, error)


def gap(q: Question) -> Score:
    """How much lower the log loss is than for rows without structure, which are uniform along the principal axes."""
    x, _ = q.rows(ROWS)
    own, kind = log_losses(q, x, q.ks), kinds(x)[-2 if len(kinds(x)) > 1 else 0]
    draws = (likeness(x, kind, generator(q.seed, "gap", i)) for i in range(q.references))
    runs = np.array([log_losses(q, y, q.ks) for y in draws])
    value = own - runs.mean(axis=0)
    return Score(value, runs.std(axis=0, ddof=1) * np.sqrt(1 + 1 / q.references))


def log_losses(q: Question, x: np.ndarray, ks: list[int]) -> np.ndarray:
    """The log of the loss for each k, from one start; of a likelihood the loss itself, which is a log already."""
    models = [q.sized(k) for k in ks]
    if "n_init" in q.model.get_params(deep=False):
        models = [m.set_params(n_init=1) for m in models]
    fits = fit_together(models, x, [None] * len(ks), [q.seed] * len(ks))
    loss = np.array([f.loss / f.weight for f in fits])
    return loss if hasattr(q.model, "log_density") else np.log(np.maximum(loss, 1e-300))


def kinds(x: np.ndarray) -> tuple[str, ...]:
    """The kinds of structureless data to compare with: of whole numbers (counts, yes and no) shuffled columns."""
    return ("columns",) if (np.isnan(x) | (x == np.round(x))).all() else ("box", "uniform", "gaussian")


def likeness(x: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows without groups like x: columns shuffled; uniform in the box of columns or principal axes; one Gaussian."""
    x = np.where(np.isnan(x), np.nanmean(x, axis=0), x).astype(np.float64)
    low, high = x.min(axis=0), x.max(axis=0)
    if kind == "columns":
        return rng.permuted(x, axis=0)
    if kind == "box":
        return rng.uniform(low, high, x.shape)
    mean = x.mean(axis=0)
    _, s, axes = np.linalg.svd(x - mean, full_matrices=False)
    along = (x - mean) @ axes.T
    if kind == "uniform":
        y = rng.uniform(along.min(axis=0), along.max(axis=0), along.shape)
    else:
        y = rng.standard_normal(along.shape) * s / np.sqrt(max(1, len(x) - 1))
    width = np.maximum(high - low, np.finfo(float).tiny)
    y = np.mod(mean + y @ axes - low, 2 * width)  # mirrored at the ends, where a model may ask for x ≥ 0
    return low + np.minimum(y, 2 * width - y)


def _mean(runs: np.ndarray) -> Score:
    return Score(runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs)), runs)


CRITERIA: dict[str, Callable[[Question], Score]] = {
    f.__name__: f for f in (aic, bic, icl, nll, heldout, entries, stability, silhouette, gap)
}
