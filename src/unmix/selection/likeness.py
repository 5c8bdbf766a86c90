"""Data without groups that are otherwise like the given ones, and what a model gains on them: is there structure?"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.isotonic import isotonic_regression

from unmix.engine.config import config, get_config
from unmix.engine.draws import generator
from unmix.maths.gaussian import filled
from unmix.model import fit_together
from unmix.model.capabilities import Density, Geometry, PerColumn, Samples
from unmix.selection.clouds import clouds
from unmix.selection.columns import Category, categories
from unmix.selection.question import LIKENESS_ROWS, Question

CLEAR_EXCESS = 3.0  # standard deviations by which data must beat structureless ones
LIKENESSES = 10  # of each kind
FIRST_LIKENESSES, SURE_EXCESS = 4, 10.0  # after these few, such an excess is beyond doubt (t with 3 degrees: 1 in 600)
BINS = 64  # of a column whose density is made to have one mode


class Likeness:
    """Draws rows without groups that are like some given ones, miss the same cells and weigh the same.

    sample     of one component, for a mixture of any family
    columns    every column shuffled, where all hold few values (yes and no)
    box        uniform in the box of the columns
    uniform    uniform in the box of the principal axes
    gaussian   one Gaussian
    skewed     correlated as the rows are, each column with its own density made to have one mode

    Among others, categories (columns of few values, or several columns of 0 and 1 together) are shuffled, and whole
    numbers are rounded.
    """

    def __init__(self, q: Question, x: np.ndarray, w: np.ndarray | None) -> None:
        self.q, self.x, self.w = q, x, w
        self.seen, self.categories = ~np.isnan(x), categories(x)
        if (
            len(self.categories) == 1 and len(self.categories[0].columns) == x.shape[1]
        ):  # a category alone is its groups
            self.categories = [Category([j], self.categories[0].codes) for j in range(x.shape[1])]
        self.shuffled = np.isin(np.arange(x.shape[1]), [j for c in self.categories for j in c.columns])
        self.whole = (~self.seen | (x == np.round(x))).all(axis=0)
        self.p = np.full(len(x), 1.0 / len(x)) if w is None else w / w.sum()
        self.cloud, self.there = x[:, ~self.shuffled].astype(np.float64), self.seen[:, ~self.shuffled]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds to compare with."""
        model, plain = self.q.model, ("box", "uniform", "gaussian")
        if isinstance(model, Samples) and model.null_by_one_part:
            return ("sample",)
        if self.shuffled.all():
            return ("columns",)
        # to a mixture, a narrow mode in a wide cloud is a component
        return plain if isinstance(model, Density) else (*plain, "skewed")

    def draw(self, kind: str, rng: np.random.Generator) -> np.ndarray:
        """Rows of a kind."""
        if kind == "sample":
            (model,), _ = quick(self.q, self.x, self.w, [1])
            rows = model.set_params(random_state=int(rng.integers(2**31))).sample(len(self.x))[0]
            return np.where(self.seen, rng.permuted(np.asarray(rows, dtype=np.float64), axis=0), np.nan)
        y = np.empty(self.x.shape)
        for columns, codes in self.categories:
            rows = np.flatnonzero(codes >= 0)
            share = None if self.w is None else self.p[rows] / self.p[rows].sum()
            y[rows[:, None], columns] = self.x[rng.choice(rows, len(rows), share is not None, share)[:, None], columns]
        if not self.shuffled.all():
            y[:, ~self.shuffled] = self._rows(kind, rng)
        y[:, self.whole] = np.round(y[:, self.whole])
        return np.where(self.seen, y, np.nan)

    def _rows(self, kind: str, rng: np.random.Generator) -> np.ndarray:
        low, high = np.nanmin(self.cloud, axis=0), np.nanmax(self.cloud, axis=0)
        if kind == "box":
            return rng.uniform(low, high, self.cloud.shape)
        mean, values, axes = self._axes
        if kind == "skewed":
            normal = (rng.standard_normal(self.cloud.shape) * np.sqrt(values)) @ axes.T
            size = np.sqrt((axes**2) @ values)
            share = ndtr(normal / np.where(size > 0, size, 1.0))
            return np.column_stack([np.interp(u, *self._quantiles[j]) for j, u in enumerate(share.T)])
        if kind == "uniform":
            y = rng.uniform(*self._span, self.cloud.shape)
        else:
            y = rng.standard_normal(self.cloud.shape) * np.sqrt(values)
        width = np.maximum(high - low, np.finfo(float).tiny)
        y = np.mod(mean + y @ axes.T - low, 2 * width)  # mirrored at the ends, where a model may ask for x ≥ 0
        return np.asarray(low + np.minimum(y, 2 * width - y))

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean, and the variances along the principal axes, of the rows that have both cells."""
        p, seen = self.p, self.there
        mean = (p @ np.where(seen, self.cloud, 0.0)) / (p @ seen)
        apart = np.where(seen, self.cloud - mean, 0.0)
        values, axes = np.linalg.eigh((apart.T * p @ apart) / np.maximum(p * seen.T @ seen, 1e-300))
        return mean, np.maximum(values, 0.0), axes

    @cached_property
    def _span(self) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the rows along the principal axes."""
        mean, values, axes = self._axes
        along = filled(np.where(self.there, self.cloud - mean, 0.0), self.there, (axes * values) @ axes.T) @ axes
        return along.min(axis=0), along.max(axis=0)

    @cached_property
    def _quantiles(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [one_mode(c[o], self.p[o]) for c, o in zip(self.cloud.T, self.there.T, strict=True)]


def one_mode(v: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The quantiles (shares, values) of the likeliest density that rises and then falls, of values weighted by p."""
    order = np.argsort(v, kind="stable")
    v, share = v[order], np.cumsum(p[order]) / p.sum()
    edges = np.unique(np.interp(np.linspace(0, 1, BINS + 1), share, v))
    if len(edges) < 4:
        return np.array([0.0, 1.0]), v[[0, -1]]
    mass, width = np.diff(np.interp(edges, v, share)), np.diff(edges)
    mass /= mass.sum()
    best, found = -np.inf, mass
    for top in range(len(mass)):
        up = isotonic_regression((mass / width)[: top + 1], sample_weight=width[: top + 1])
        down = isotonic_regression((mass / width)[top:], sample_weight=width[top:], increasing=False)
        f = np.concatenate([up[:-1], [max(up[-1], down[0])], down[1:]])
        likely = float(mass @ np.log(np.maximum(f, 1e-300)) - np.log(f @ width))
        if likely > best:
            best, found = likely, f * width
    return np.concatenate([[0.0], np.cumsum(found) / found.sum()]), edges


def structure(q: Question, k: int, kinds: tuple[str, ...] | None = None) -> dict[str, float]:
    """By how many standard deviations the data gain more from k parts than data without groups do, kind by kind.

    The first kind that gains nearly as much is the last that is asked; by default all that suit the model.
    """
    x, w = q.rows(LIKENESS_ROWS)
    k = min(k, len(x) // 2)
    if not (isinstance(q.model, PerColumn) and q.model.per_column()):
        x = x[:, ~np.isnan(x).all(axis=0)]
    like, own = Likeness(q, x, w), gain(q, x, w, k)
    out: dict[str, float] = {}
    for kind in kinds or like.kinds:
        gains: list[float] = []
        while len(gains) < LIKENESSES:
            gains.append(gain(q, like.draw(kind, generator(q.seed, kind, len(gains))), w, k))
            if len(gains) >= FIRST_LIKENESSES:
                out[kind] = float((own - np.mean(gains)) / max(float(np.std(gains, ddof=1)), 1e-9))
                if not 0 < out[kind] < SURE_EXCESS:
                    break
        if out[kind] < CLEAR_EXCESS:
            break
    return out


def gain(q: Question, x: np.ndarray, w: np.ndarray | None, k: int) -> float:
    """What k parts have over one: of clusters that are clouds by their Gaussians, else by the log of the loss."""
    models, fits = quick(q, x, w, [1, k])
    one, many = clouds(x, w, [m.labels_ for m in models]) if q.clouds else log_losses(models, fits, x, w)
    return float(one - many)


def quick(q: Question, x: np.ndarray, w: np.ndarray | None, ks: list[int]) -> tuple[list[Any], list[Any]]:
    """Models and fits of some rows, from one start each."""
    once = {"n_init": 1} if "n_init" in q.model.get_params(deep=False) else {}
    models = [q.sized(k).set_params(**q.free, **once) for k in ks]
    with here():
        return models, fit_together(models, x, [w] * len(ks), [q.seed] * len(ks))


def here() -> Any:
    """Fits in this process: there are too few rows to send about."""
    return config(runner="serial" if get_config().runner == "serial" else "threads")


def log_losses(models: list[Any], fits: list[Any], x: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """The log of the loss for each k; of a likelihood the loss itself, which is a log already."""
    if isinstance(models[0], Density):
        return np.array([f.loss / f.weight for f in fits])
    return np.log(np.maximum([squares(m, f, x, w) for m, f in zip(models, fits, strict=True)], 1e-300))


def squares(model: Any, fit: Any, x: np.ndarray, w: np.ndarray | None) -> float:
    """What a clustering leaves of the distances: its loss, unless its geometry says otherwise."""
    return model.dispersion(fit, x, w) if isinstance(model, Geometry) else float(fit.loss)
