"""How much of each candidate goes into the filling of each column, by cells that were held out.

With e_c the errors of candidate c at the held-out cells of a column, and G = Σ e eᵀ over them,

    w = argmin wᵀ (G + τ Ḡ + εI) w         w ≥ 0, Σ w = 1            Ḡ: the mean over cells of all columns

so that a column with few cells goes by what is right for the others, and candidates that are alike share their weight.
Where cells are missing by what other columns show, held-out cells count by the odds that a cell like them is missing.
The guess is f = Σ w_c f_c, its variance

    σ² = Σ w_c (σ_c² + (f_c − f)²)      s = b σ^γ σ̄^(1−γ)        σ̄: the median of the column

with γ of 0, ½ or 1 by likelihood, and b such that 90 % of held-out cells are within 1.645 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression

from unmix.engine.draws import generator
from unmix.maths.arrays import POSITIVE, Array

EVEN = 0.1  # of the least squared error that is added to all: candidates that are alike share their weight
POOL = 30.0  # cells of the others that count beside a column's own, τ
POOL_SPREAD = 20.0  # the same, of spreads
FOLDS = 3
SHARE = 0.15  # of a column's observed cells that a fold hides
FEWEST_CELLS = 6  # observed, in a column of which some are hidden
LEVEL, Z = 0.9, 1.6448536269514722
POWERS = (0.0, 0.5, 1.0)
FEWEST_GONE = 10  # cells that are missing, and that are there, for odds to be told
HELD_BACK = 0.1  # inverse ridge of the regression that tells them
MOST_ODDS = 10.0
FAR = 5.0  # standard deviations


class Held(NamedTuple):
    """Held-out cells: which fold, group and column they are of, what they hold, and what candidates make of them."""

    fold: np.ndarray
    group: np.ndarray
    column: np.ndarray
    truth: np.ndarray
    weight: np.ndarray
    mean: np.ndarray  # (cells, candidates)
    deviation: np.ndarray


class Spread(NamedTuple):
    """What makes of the deviations by candidates those of cells, by group."""

    power: Annotated[np.ndarray, Array("g", low=0.0, high=1.0)]
    typical: Annotated[np.ndarray, Array("g", low=POSITIVE)]
    factor: Annotated[np.ndarray, Array("g", low=POSITIVE)]

    def of(self, sigma: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Standard deviations of cells."""
        g = self.power[group]
        return np.asarray(self.factor[group] * sigma**g * self.typical[group] ** (1.0 - g))


def hidden(y: np.ndarray, groups: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Cells to hide in each fold, (n, groups): no cell twice, no column's cells all, no row's last cell."""
    rng = generator(seed, "held out")
    seen = np.column_stack([~np.isnan(y[:, g]).any(axis=1) for g in groups])
    fold = np.full(seen.shape, -1)
    for g in range(len(groups)):
        rows = rng.permutation(np.flatnonzero(seen[:, g]))
        many = max(1, round(SHARE * len(rows))) if len(rows) >= FEWEST_CELLS else 0
        for f in range(FOLDS):
            fold[rows[f * many : (f + 1) * many], g] = f
    out = [fold == f for f in range(FOLDS)]
    for mask in out:
        bare = (seen & ~mask).sum(axis=1) == 0
        mask[bare] = False
    return out


def odds(y: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """How likely it is that a cell like this one is missing, by the others of its row: (n, groups), about 1."""
    out, seen = np.ones((len(y), len(groups))), ~np.isnan(y)
    inputs = np.hstack([np.where(seen, np.clip(y, -FAR, FAR), 0.0), seen])
    for g, own in enumerate(groups):
        gone = ~seen[:, own].all(axis=1)
        if min(gone.sum(), (~gone).sum()) >= FEWEST_GONE:
            others = np.delete(inputs, [*own, *(own + y.shape[1])], axis=1)
            p = LogisticRegression(C=HELD_BACK, max_iter=200).fit(others, gone).predict_proba(others)[:, 1]
            ratio = p / (1 - p)
            out[:, g] = np.clip(ratio / ratio[~gone].mean(), 1 / MOST_ODDS, MOST_ODDS)
    return out


def gather(
    y: np.ndarray,
    mask: np.ndarray,
    groups: Sequence[np.ndarray],
    f: int,
    likely: np.ndarray,
    guess: tuple[np.ndarray, np.ndarray],
) -> Held:
    """What candidates made of the cells that fold f hid."""
    parts = []
    for g, columns in enumerate(groups):
        rows = np.flatnonzero(mask[:, g])
        for j in columns:
            at = np.full(len(rows), 0)
            parts.append(
                Held(
                    at + f, at + g, at + j, y[rows, j], likely[rows, g], guess[0][:, rows, j].T, guess[1][:, rows, j].T
                )
            )
    return joined(parts)


def joined(parts: Sequence[Held]) -> Held:
    """Cells one after the other."""
    return Held(*(np.concatenate([p[i] for p in parts]) for i in range(len(Held._fields))))


def weigh(held: Held, n_groups: int, use: np.ndarray) -> np.ndarray:
    """Weights of the candidates by group, from some of the cells."""
    error = (np.sqrt(held.weight)[:, None] * (held.truth[:, None] - held.mean))[use]
    pooled = error.T @ error / max(1, len(error))
    out = np.empty((n_groups, error.shape[1]))
    for g in range(n_groups):
        own = error[held.group[use] == g]
        G = own.T @ own + POOL * pooled
        out[g] = simplex(G + EVEN * np.diag(G).min() * np.eye(len(G)))
    return out


def simplex(G: np.ndarray) -> np.ndarray:
    """The w ≥ 0 of sum 1 for which wᵀ G w is least."""
    size = max(float(np.trace(G)), 1e-300)
    value, vector = np.linalg.eigh(G / size + 1e-10 * np.eye(len(G)))
    root = np.sqrt(np.maximum(value, 0.0))[:, None] * vector.T
    heavy = 1e3
    w, _ = nnls(np.vstack([root, np.full((1, len(G)), heavy)]), np.concatenate([np.zeros(len(G)), [heavy]]))
    return np.asarray(w / w.sum())


def combined(weights: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The guess and its deviation, of cells by candidates (cells, candidates)."""
    f = (weights * mean).sum(axis=1)
    square = (weights * (deviation**2 + (mean - f[:, None]) ** 2)).sum(axis=1)
    return f, np.sqrt(np.maximum(square, 1e-20))


def honest(held: Held, n_groups: int) -> np.ndarray:
    """What a combination makes of each cell, weighed without the fold of the cell."""
    out = np.empty(len(held.truth))
    for f in np.unique(held.fold):
        mine = held.fold == f
        w = weigh(held, n_groups, ~mine)[held.group[mine]]
        out[mine] = (w * held.mean[mine]).sum(axis=1)
    return out


def calibrated(held: Held, weights: np.ndarray, guess: np.ndarray) -> Spread:
    """Spreads by which held-out cells are covered as often as they should be; `guess` is what was put there."""
    n_groups = len(weights)
    error = np.abs(held.truth - guess)
    _, sigma = combined(weights[held.group], held.mean, held.deviation)
    power, typical = np.ones(n_groups), np.ones(n_groups)
    for g in range(n_groups):
        own = held.group == g
        if own.any():
            typical[g] = max(np.median(sigma[own]), 1e-9)
            likely = [_likelihood(error[own], sigma[own], float(typical[g]), p) for p in POWERS]
            power[g] = POWERS[int(np.argmax(likely))]
    plain = Spread(power, typical, np.ones(n_groups))
    ratio = error / np.maximum(plain.of(sigma, held.group), 1e-12)
    every = _bound(ratio, held.weight)
    factor = np.full(n_groups, every)
    for g in range(n_groups):
        own = held.group == g
        if own.any():
            n = float(own.sum())
            factor[g] = (n * _bound(ratio[own], held.weight[own]) + POOL_SPREAD * every) / (n + POOL_SPREAD)
    return plain._replace(factor=np.maximum(factor, 1e-6))


def _bound(ratio: np.ndarray, weight: np.ndarray) -> float:
    """What 90 % of ratios, by weight, are within, in units of 1.645; one more, beyond all, is counted with them."""
    order = np.argsort(ratio)
    below = np.cumsum(weight[order]) / (weight.sum() + weight.mean())
    return float(ratio[order][min(int(np.searchsorted(below, LEVEL)), len(ratio) - 1)] / Z)


def _likelihood(error: np.ndarray, sigma: np.ndarray, typical: float, power: float) -> float:
    """How well spreads of this shape tell large errors from small ones."""
    s = np.maximum(sigma**power * typical ** (1.0 - power), 1e-12)
    scale = np.sqrt(np.mean((error / s) ** 2) + 1e-20)
    return float(-np.log(s * scale).sum() + 1e-9 * power)
