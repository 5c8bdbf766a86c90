"""Data without groups that are otherwise like the given ones, and what a model gains on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import nan_euclidean_distances

from unmix.engine.config import config, get_config
from unmix.model import fit_together
from unmix.selection.clouds import clouds
from unmix.selection.question import Question, few


def gain(q: Question, x: np.ndarray, w: np.ndarray | None, k: int) -> float:
    """What k parts have over one: of clusters that are clouds by their Gaussians, else by the log of the loss."""
    models, fits = quick(q, x, w, [1, k])
    one, many = clouds(x, w, [m.labels_ for m in models]) if q.clouds else log_losses(models, fits, x, w)
    return float(one - many)


def quick(q: Question, x: np.ndarray, w: np.ndarray | None, ks: list[int]) -> tuple[list[Any], list[Any]]:
    """Models and fits of some rows, from one start each."""
    models = [q.sized(k).set_params(**q.free, **({"n_init": 1} if hasattr(q.model, "n_init") else {})) for k in ks]
    with config(runner="serial" if get_config().runner == "serial" else "threads"):  # too few rows to send about
        return models, fit_together(models, x, [w] * len(ks), [q.seed] * len(ks))


def log_losses(models: list[Any], fits: list[Any], x: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """The log of the loss for each k; of a likelihood the loss itself, which is a log already."""
    if hasattr(models[0], "log_density"):
        return np.array([f.loss / f.weight for f in fits])
    return np.log(np.maximum([squares(m, f, x, w) for m, f in zip(models, fits, strict=True)], 1e-300))


def squares(model: Any, fit: Any, x: np.ndarray, w: np.ndarray | None) -> float:
    """The loss of a clustering; a free energy may be negative: then the squares of (some of) its rows' distances."""
    if not hasattr(model, "beta_"):
        return float(fit.loss)
    near = nan_euclidean_distances(x, model.cluster_centers_).min(axis=1)
    return float(np.average(near**2, weights=w) * fit.weight)


def kinds(q: Question, x: np.ndarray) -> tuple[str, ...]:
    """The kinds of structureless data to compare with.

    A mixture of any family has one of its own, k = 1. Else of columns of few whole numbers (yes and no) shuffled ones;
    of others three.
    """
    if hasattr(q.model, "_draw") and not hasattr(q.model, "covariance_type"):
        return ("sample",)
    return ("columns",) if few(x).all() else ("box", "uniform", "gaussian")


def likeness(q: Question, x: np.ndarray, w: np.ndarray | None, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows without groups like x, which miss the same cells and weigh the same.

    Those of one component; or columns of few whole numbers shuffled, the others uniform in their box or that of their
    principal axes, or one Gaussian, rounded where they were.
    """
    seen, p = ~np.isnan(x), None if w is None else w / w.sum()
    if kind == "sample":
        (model,), _ = quick(q, x, w, [1])
        y = np.asarray(model.set_params(random_state=int(rng.integers(2**31))).sample(len(x))[0], dtype=np.float64)
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
