"""Point estimates by alternating least squares: the most likely users and items (MAP), of ratings or of clicks.

    ratings   Σ (r − μ − b − c − zᵀv)² + λ Σ (‖z‖² + b²) + λ Σ (‖v‖² + c²)          over the observed entries
    clicks    Σ c (1 − zᵀv)² over the observed + Σ (zᵀv)² over all others + λ …,   c = 1 + α r     [Hu et al. 2008]

Of clicks all users share Σ_j v vᵀ over all items, so that only what was observed is visited.

Where the sums for all items are large and the ratings in memory, items are solved as users are, from their own ratings
(`Alternating`, rounds on all rows): the same steps, without the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.runners import PIECES, each
from unmix.engine.stage import Stage
from unmix.recommend._parts import NOISE_FLOOR, NOISE_WEIGHT, Parts, Stats
from unmix.recommend._sides import (
    Entries,
    design_of,
    entries,
    in_lines,
    outer,
    pairs,
    squares,
    weighted_sum,
    weights_of,
)

MANY = 1 << 14  # numbers of items, which are worth threads
LEAST_RIDGE = 1e-6  # that still gives users a law


class How(NamedTuple):
    """What is minimised, and in which numbers products are made."""

    biases: bool
    ridge: float  # λ
    alpha: float  # above 0: clicks
    dtype: Any = np.float64


class Solved(NamedTuple):
    """The most likely members of a side, and what is left of their entries."""

    mean: np.ndarray  # (n, p)
    size: np.ndarray  # (n,): Σ c t²
    explained: np.ndarray  # (n,): gᵀ x


def solved_rows(U: Parts, other: np.ndarray, w: np.ndarray | None, rows: Entries, how: How, threads: bool) -> Solved:
    """The most likely members of a side whose entries these are, given the other one. Pure."""
    from unmix.kernels.ridge import ridge_rows

    n, p = len(rows.ends) - 1, other.shape[1]
    k = p - how.biases
    design, offset = design_of(other, how.biases)
    whole = design if w is None else design * w[:, None]
    base = square_of(design.T @ whole if how.alpha else np.zeros((k, k)), k)
    root = np.ones(len(design)) if w is None else np.sqrt(w)
    seen = 1.0 / float(U.unit), float(U.mean) + offset, how.alpha, root, in_lines(design[:, :k], how.dtype), k, base
    out = Solved(np.empty((n, p)), np.empty(n), np.empty(n))

    def piece(first: int, last: int) -> None:
        part = slice(first, last)
        result = out.mean[part], out.size[part], out.explained[part]
        ridge_rows(rows.values, rows.columns, rows.ends[first : last + 1], *seen, how.ridge, how.biases, *result)

    pieces(piece, rows, threads)
    return out


def pieces(f: Callable[[int, int], None], rows: Entries, threads: bool) -> None:
    """f(first, last) of a few pieces of the rows with about as many entries each, on threads where asked to."""
    n = len(rows.ends) - 1
    if not threads:
        f(0, n)
        return
    cuts = np.searchsorted(rows.ends, np.linspace(0, rows.ends[-1], PIECES + 1))
    cuts[0], cuts[-1] = 0, n
    each(lambda i: f(int(cuts[i]), int(cuts[i + 1])))


def square_of(A: np.ndarray, k: int) -> np.ndarray:
    """The first k rows and columns of a square matrix as kernels have them."""
    out = np.zeros((k, -(-k // 16) * 16))
    out[:, :k] = A[:k, :k]
    return out.reshape(-1)


def users(U: Parts, rows: Entries, how: How, threads: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The most likely x of the users whose ratings these are, and their part of the objective. Pure."""
    own = solved_rows(U, U.items, None, rows, how, threads)
    return own.mean, own.size - own.explained


def local(U: Parts, b: Block, how: How) -> Local:
    """The users of a block, the sums for the items, and the users' part of the objective."""
    rows = entries(b, how.dtype)
    mean, loss = users(U, rows, how)
    w = weights_of(b, len(mean))
    return Local(None, sums(U, rows, mean, w, how), float(w @ loss))


def sums(U: Parts, rows: Entries, mean: np.ndarray, w: np.ndarray, how: How) -> Stats:
    """Sums for the items of rows, given their users. Pure."""
    from unmix.kernels.ridge import ridge_columns

    d, p, columns = rows.d, mean.shape[1], rows.by_column()
    k = p - how.biases
    design, offset = design_of(mean, how.biases)
    A, g, e = np.zeros((d, len(pairs(p)[0]))), np.zeros((d, p)), np.zeros(d)
    seen = 1.0 / float(U.unit), float(U.mean) + offset, how.alpha, np.sqrt(w), in_lines(design[:, :k], how.dtype), k
    ridge_columns(columns.values, columns.columns, columns.ends, *seen, how.biases, A, g, e)
    return Stats(
        float(w.sum()), weighted_sum(w, mean), weighted_sum(w, outer(mean)), A, g, e, rows.weight_of_columns(w)
    )


def solved(s: Stats, how: How) -> np.ndarray:
    """The most likely items, given the sums over users."""
    from unmix.kernels.ridge import ridge_items

    d, p = s.g.shape
    k = p - how.biases
    mean, base = np.empty((d, p)), square_of(squares(s.M, p) if how.alpha else np.zeros((k, k)), k)

    def piece(i: int) -> None:  # items do not see each other
        part = slice(*(d * k // PIECES for k in (i, i + 1)))
        ridge_items(s.A[part], s.g[part], k, base, how.ridge, how.biases, mean[part])

    if s.A.size > MANY:
        each(piece)
    else:
        ridge_items(s.A, s.g, k, base, how.ridge, how.biases, mean)
    return mean


def update(U: Parts, s: Stats, how: How) -> Parts:
    """The most likely items, and what is left, as noise. Pure."""
    mean = solved(s, how)
    return with_solved(U, mean, s.e - (s.g * mean).sum(axis=1), s.N, how)


def with_solved(U: Parts, mean: np.ndarray, left: np.ndarray, count: np.ndarray, how: How) -> Parts:
    """The same with new items; `left` of their ratings is Σ t² − gᵀ y."""
    size = (mean**2).sum(axis=1)
    cost = how.ridge * float(size.sum())
    if how.alpha:
        return U._replace(items=mean, cost=cost)
    left = np.maximum(left - how.ridge * size, 0.0)
    noise = max(float(left.sum()) / max(float(count.sum()), 1e-300), NOISE_FLOOR)
    item_noise = (NOISE_WEIGHT + left / noise) / (NOISE_WEIGHT + count)
    return U._replace(items=mean, cost=cost, noise=noise, item_noise=item_noise)


def with_laws(U: Parts, ridge: float) -> Parts:
    """The same, with the law of users that λ stands for: x ~ N(0, σ²/λ I)."""
    p = len(U.user_mean)
    return U._replace(user_covariance=np.eye(p) * (float(U.noise) / max(ridge, LEAST_RIDGE)))


def with_items(U: Parts, known: Entries, new: Entries, how: How) -> Parts:
    """The same with more items, by users whose ratings of the items that are there are known. Pure."""
    mean = users(U, known, how)[0]
    more = solved_rows(U, mean, None, new.by_column(), how, False).mean
    return U._replace(
        items=np.vstack([U.items, more]),
        doubt=np.zeros((len(U.items) + len(more), 0)),
        item_noise=np.append(U.item_noise, np.ones(len(more))),
    )


class Held(NamedTuple):
    """All ratings, by users and by items."""

    rows: Entries
    columns: Entries
    w: np.ndarray | None
    weight: float
    counted: np.ndarray  # weights of the ratings of each item


class Alternating(Stage):
    """Rounds of least squares on ratings in memory: users, then items, each from their own ratings."""

    name, over = "least squares", "whole"

    def __init__(self, first: Callable[..., Parts], how: How, tol: float, described: Described) -> None:
        self.first, self.how, self.tol, self.known = first, how, tol, described

    def open(self, data: Block, rng: np.random.Generator) -> Held:
        """The ratings, ordered both ways."""
        rows = entries(data, self.how.dtype)
        w = weights_of(data, len(rows.ends) - 1)
        return Held(rows, rows.by_column(), data.w, float(w.sum()), rows.weight_of_columns(w))

    def start(self, before: Any, data: Held, rng: np.random.Generator) -> Parts:
        """Small random factors."""
        w = np.ones(len(data.rows.ends) - 1) if data.w is None else data.w
        return self.first(data.rows, w, rng)

    def step(self, U: Parts, data: Held, rng: np.random.Generator) -> tuple[Parts, float]:
        """All users given the items, and all items given the users; the objective at the first ones."""
        mean, loss = users(U, data.rows, self.how, True)
        total = float(loss.sum() if data.w is None else data.w @ loss) + float(U.cost)
        own = solved_rows(U, mean, data.w, data.columns, self.how, True)
        return with_solved(U, own.mean, own.size - own.explained, data.counted, self.how), total / data.weight

    def goal(self, U: Parts, first: float) -> float:
        """A share of the first objective."""
        return self.tol * abs(first)

    def described(self, U: Any, data: Any) -> Described:
        """As the model says."""
        return self.known
