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
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import nan_euclidean_distances

from unmix.engine.block import Block
from unmix.engine.config import config, get_config
from unmix.engine.loop import generator
from unmix.model import fit_together

ROWS = 2000  # of data and of its structureless likenesses, where the two are compared
PIECES = 10_000  # rows whose silhouettes are enough for two digits
FEW = 10  # different whole numbers that are kinds rather than amounts


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

    def rows(self, most: int) -> tuple[np.ndarray, np.ndarray | None]:
        """At most so many rows that count, drawn by global index, as dense rows, and their weights."""
        index = np.flatnonzero(self.weight > 0)
        if len(index) > most and not self.pairwise:
            index = np.sort(generator(self.seed, "rows").choice(index, most, replace=False))
        every = self.pairwise or len(index) == self.source.n
        x = self.source.read(0, self.source.n) if every else self.source.take(index)
        return np.asarray(x.toarray() if sp.issparse(x) else x), self.w if every or self.w is None else self.w[index]

    @property
    def pairwise(self) -> bool:
        """Whether X is not rows but what each pair of rows has to do with each other."""
        return "precomputed" in (getattr(self.model, "metric", None), getattr(self.model, "kernel", None))

    @cached_property
    def evidence(self) -> np.ndarray:
        """Log-likelihood of all rows and, of mixtures, the entropy of their memberships, for each k."""
        out = np.zeros((len(self.ks), 2))
        for i, m in enumerate(self.models):
            at = 0
            for e in m._stream("evidence" if hasattr(m, "evidence") else "log_density", self.source):
                e = np.asarray(e, dtype=np.float64).reshape(len(e), -1)
                out[i, : e.shape[1]] += self.weight[at : at + len(e)] @ e
                at += len(e)
        return out


def _likelihood(q: Question) -> tuple[np.ndarray, np.ndarray]:
    return q.evidence[:, 0], np.array([m._n_parameters() for m in q.models], dtype=float)


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
    return Score(value + 2 * q.evidence[:, 1], error)


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

    x, w = q.rows(PIECES)
    if w is not None:
        x = x[generator(q.seed, "weights").choice(len(x), len(x), p=w / w.sum())]
    value, error = np.full(len(q.ks), np.nan), np.zeros(len(q.ks))
    for i, k in enumerate(q.ks):
        if 1 < k <= len(x) // 2:
            s = measure(q.sized(k), x, method="transfer", random_state=q.seed)
            value[i], error[i] = -s.score, s.se
    return Score(value, error)


def silhouette(q: Question) -> Score:
    """Minus the mean silhouette by the model's own distance, of a sample of large data."""
    from unmix.validate import silhouette as measure

    x, w = q.rows(PIECES)
    whole = len(x) == q.source.n
    labels = [m.labels_ if whole and hasattr(m, "labels_") else m.predict(x) for m in q.models]
    rows, metric = distances(q, x)
    if metric not in ("euclidean", "precomputed"):  # which take missing cells
        seen = ~np.isnan(rows).any(axis=1)
        rows, labels, w = rows[seen], [v[seen] for v in labels], None if w is None else w[seen]
    if w is not None:
        w = w * max(1.0, len(w) / w.sum())  # counts of rows, not shares
    value, error = np.full(len(q.ks), np.nan), np.zeros(len(q.ks))
    for i, label in enumerate(labels):
        sizes = np.bincount(label, w)
        if (sizes > 0).sum() > 1 and sizes.max() > 1:
            s = measure(rows, label, metric=metric, per_row=not whole, sample_weight=w)
            value[i] = -s.score
            if s.per_row is not None:  # of a draw of the rows
                error[i] = np.nanstd(s.per_row) / np.sqrt(len(rows))
    return Score(value, error)


def distances(q: Question, x: np.ndarray) -> tuple[np.ndarray, Any]:
    """Rows, and the metric in which the model sees them; or the distances of all pairs."""
    model = q.models[0]
    metric, more = getattr(model, "metric", "euclidean"), getattr(model, "metric_params", None) or {}
    if hasattr(model, "kernel"):
        K = x if q.pairwise else model._kernel(model._parts_, x, x)
        own = np.diagonal(K)
        return np.sqrt(np.maximum(own[:, None] + own - 2 * K, 0.0)), "precomputed"
    if metric == "mahalanobis" and hasattr(model, "_metric"):
        return model._metric.enter(model._parts_.frame, Block(x)).x, "euclidean"
    if more or metric in ("mahalanobis", "seuclidean"):
        return pairwise_distances(x, metric=metric, **more), "precomputed"
    return x, metric


def gap(q: Question) -> Score:
    """How much lower the log loss is than for rows without structure, which are uniform along the principal axes."""
    x, w = q.rows(ROWS)
    own, found = log_losses(q, x, w, q.ks), kinds(q, x)
    kind = "uniform" if "uniform" in found else found[0]
    draws = (likeness(q, x, w, kind, generator(q.seed, "gap", i)) for i in range(q.references))
    runs = np.array([log_losses(q, y, w, q.ks) for y in draws])
    value = own - runs.mean(axis=0)
    return Score(value, runs.std(axis=0, ddof=1) * np.sqrt(1 + 1 / q.references))


def log_losses(q: Question, x: np.ndarray, w: np.ndarray | None, ks: list[int]) -> np.ndarray:
    """The log of the loss for each k, from one start; of a likelihood the loss itself, which is a log already."""
    bare = {"n_init": 1, "min_size": None, "max_size": None}
    bare = {name: v for name, v in bare.items() if name in q.model.get_params(deep=False)}
    models = [q.sized(k).set_params(**bare) for k in ks]
    with config(runner="serial" if get_config().runner == "serial" else "threads"):  # too few rows to send about
        fits = fit_together(models, x, [w] * len(ks), [q.seed] * len(ks))
    if hasattr(q.model, "log_density"):
        return np.array([f.loss / f.weight for f in fits])
    loss = [f.loss for f in fits]
    if hasattr(models[0], "beta_"):  # a free energy may be negative: take the nearest centres
        near = [nan_euclidean_distances(x, m.cluster_centers_).min(axis=1) ** 2 for m in models]
        loss = [np.average(v, weights=w) for v in near]
    return np.log(np.maximum(loss, 1e-300))


def kinds(q: Question, x: np.ndarray) -> tuple[str, ...]:
    """The kinds of structureless data to compare with.

    A mixture of any family has one of its own, k = 1. Else of columns of few whole numbers (yes and no) shuffled ones;
    of others three.
    """
    if hasattr(q.model, "_draw") and not hasattr(q.model, "covariance_type"):
        return ("sample",)
    return ("columns",) if few(x).all() else ("box", "uniform", "gaussian")


def few(x: np.ndarray) -> np.ndarray:
    """Which columns hold few different whole numbers."""
    whole = (np.isnan(x) | (x == np.round(x))).all(axis=0)
    return np.array([bool(v) and len(np.unique(c[~np.isnan(c)])) <= FEW for v, c in zip(whole, x.T, strict=True)])


def likeness(q: Question, x: np.ndarray, w: np.ndarray | None, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows without groups like x, which miss the same cells and weigh the same.

    Those of one component; or columns of few whole numbers shuffled, the others uniform in their box or that of their
    principal axes, or one Gaussian, rounded where they were.
    """
    seen, p = ~np.isnan(x), None if w is None else w / w.sum()
    if kind == "sample":
        model = q.sized(1).set_params(random_state=int(rng.integers(2**31)))
        fit_together([model], x, [w], [q.seed])
        y = np.asarray(model.sample(len(x))[0], dtype=np.float64)
        return np.where(seen, rng.permuted(y, axis=0), np.nan)
    y, shuffled = np.empty(x.shape), few(x)
    for j in np.flatnonzero(shuffled):
        mine = np.flatnonzero(seen[:, j])
        share = None if p is None else p[mine] / p[mine].sum()
        y[mine, j] = x[rng.choice(mine, len(mine), replace=share is not None, p=share), j]
    if not shuffled.all():
        y[:, ~shuffled] = _cloud(x[:, ~shuffled].astype(np.float64), p, kind, rng)
    whole = (np.isnan(x) | (x == np.round(x))).all(axis=0)
    y[:, whole] = np.round(y[:, whole])
    return np.where(seen, y, np.nan)


def _cloud(x: np.ndarray, p: np.ndarray | None, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows without groups that have the mean, the covariances and the ranges of x."""
    low, high = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
    if kind == "box":
        return rng.uniform(low, high, x.shape)
    seen = ~np.isnan(x)
    p = np.full(len(x), 1.0 / len(x)) if p is None else p
    mean = (p @ np.where(seen, x, 0.0)) / (p @ seen)
    apart = np.where(seen, x - mean, 0.0)
    values, axes = np.linalg.eigh((apart.T * p @ apart) / (p * seen.T @ seen))  # over the rows that have both cells
    values = np.maximum(values, 0.0)
    if kind == "uniform":
        cov = (axes * values) @ axes.T
        for i in np.flatnonzero(~seen.all(axis=1)):  # what the cells that were seen say of the others
            a, b = seen[i], ~seen[i]
            apart[i, b] = cov[np.ix_(b, a)] @ np.linalg.lstsq(cov[np.ix_(a, a)], apart[i, a])[0]
        along = apart @ axes
        y = rng.uniform(along.min(axis=0), along.max(axis=0), along.shape)
    else:
        y = rng.standard_normal(x.shape) * np.sqrt(values)
    width = np.maximum(high - low, np.finfo(float).tiny)
    y = np.mod(mean + y @ axes.T - low, 2 * width)  # mirrored at the ends, where a model may ask for x ≥ 0
    return np.asarray(low + np.minimum(y, 2 * width - y))


def _mean(runs: np.ndarray) -> Score:
    return Score(runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs)), runs)


CRITERIA: dict[str, Callable[[Question], Score]] = {
    f.__name__: f for f in (aic, bic, icl, nll, heldout, entries, stability, silhouette, gap)
}
