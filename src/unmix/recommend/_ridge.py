"""Point estimates by alternating least squares: the most likely users and items (MAP), of ratings or of clicks.

    ratings   Σ (r − μ − b − c − zᵀv)² + λ Σ (‖z‖² + b²) + λ Σ (‖v‖² + c²)          over the observed entries
    clicks    Σ c (1 − zᵀv)² over the observed + Σ (zᵀv)² over all others + λ …,   c = 1 + α r     [Hu et al. 2008]

Of clicks all users share Σ_j v vᵀ over all items, so that only what was observed is visited.
"""

from __future__ import annotations

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.runners import PIECES, each
from unmix.recommend._parts import NOISE_FLOOR, NOISE_WEIGHT, Parts, Stats
from unmix.recommend._sides import (
    Entries,
    design_of,
    entries,
    flat_square,
    in_lanes,
    outer,
    pairs,
    squares,
    weighted_sum,
    weights_of,
)

MANY = 1 << 14  # numbers of items, which are worth threads
LEAST_RIDGE = 1e-6  # that still gives users a law


def users(U: Parts, rows: Entries, biases: bool, ridge: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """The most likely x of the users whose ratings these are, and their part of the objective. Pure."""
    from unmix.kernels.ratings import ridge_rows

    n, p = len(rows.ends) - 1, U.items.shape[1]
    design, offset = design_of(U.items, biases)
    base = design.T @ design if alpha else np.zeros((p, p))
    mean, size, explained = np.empty((n, p)), np.empty(n), np.empty(n)
    seen = rows.values / float(U.unit), rows.columns, rows.ends, float(U.mean) + offset, alpha, np.ones(len(design))
    ridge_rows(*seen, in_lanes(design), flat_square(base), ridge, mean, size, explained)
    return mean, size - explained


def local(U: Parts, b: Block, biases: bool, ridge: float, alpha: float) -> Local:
    """The users of a block, the sums for the items, and the users' part of the objective."""
    rows = entries(b)
    mean, loss = users(U, rows, biases, ridge, alpha)
    w = weights_of(b, len(mean))
    return Local(None, sums(U, rows, mean, w, biases, alpha), float(w @ loss))


def sums(U: Parts, rows: Entries, mean: np.ndarray, w: np.ndarray, biases: bool, alpha: float) -> Stats:
    """Sums for the items of rows, given their users. Pure."""
    from unmix.kernels.ratings import ridge_columns

    d, p, columns = rows.d, mean.shape[1], rows.by_column()
    design, offset = design_of(mean, biases)
    A, g, e = np.zeros((d, len(pairs(p)[0]))), np.zeros((d, p)), np.zeros(d)
    seen = columns.values / float(U.unit), columns.columns, columns.ends, float(U.mean) + offset, alpha, w
    ridge_columns(*seen, in_lanes(design), A, g, e)
    count = np.bincount(rows.columns, np.repeat(w, rows.lengths), d)
    return Stats(float(w.sum()), weighted_sum(w, mean), weighted_sum(w, outer(mean)), A, g, e, count)


def solved(s: Stats, ridge: float, alpha: float) -> np.ndarray:
    """The most likely items, given the sums over users."""
    from unmix.kernels.ratings import ridge_items

    d, p = s.g.shape
    mean, base = np.empty((d, p)), flat_square(squares(s.M, p) if alpha else np.zeros((p, p)))

    def piece(i: int) -> None:  # items do not see each other
        part = slice(*(d * k // PIECES for k in (i, i + 1)))
        ridge_items(s.A[part], s.g[part], base, ridge, mean[part])

    if s.A.size > MANY:
        each(piece)
    else:
        ridge_items(s.A, s.g, base, ridge, mean)
    return mean


def update(U: Parts, s: Stats, ridge: float, alpha: float) -> Parts:
    """The most likely items, and what is left, as noise. Pure."""
    mean = solved(s, ridge, alpha)
    cost = ridge * float((mean**2).sum())
    if alpha:
        return U._replace(items=mean, cost=cost)
    left = np.maximum(s.e - (s.g * mean).sum(axis=1) - ridge * (mean**2).sum(axis=1), 0.0)
    noise = max(float(left.sum()) / max(float(s.N.sum()), 1e-300), NOISE_FLOOR)
    item_noise = (NOISE_WEIGHT + left / noise) / (NOISE_WEIGHT + s.N)
    return U._replace(items=mean, cost=cost, noise=noise, item_noise=item_noise)


def with_laws(U: Parts, ridge: float) -> Parts:
    """The same, with the law of users that λ stands for: x ~ N(0, σ²/λ I)."""
    p = len(U.user_mean)
    return U._replace(user_covariance=np.eye(p) * (float(U.noise) / max(ridge, LEAST_RIDGE)))


def with_items(U: Parts, known: Entries, new: Entries, biases: bool, ridge: float, alpha: float) -> Parts:
    """The same with more items, by users whose ratings of the items that are there are known. Pure."""
    mean = users(U, known, biases, ridge, alpha)[0]
    more = solved(sums(U, new, mean, np.ones(len(mean)), biases, alpha), ridge, alpha)
    return U._replace(
        items=np.vstack([U.items, more]),
        doubt=np.zeros((len(U.items) + len(more), 0)),
        item_noise=np.append(U.item_noise, np.ones(len(more))),
    )
