"""Rows far apart, to start from: greedy k-means++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unmix.maths.distances import dense, squared_distances, squares


def far_apart(
    w: np.ndarray,
    k: int,
    rng: np.random.Generator,
    costs: Callable[[np.ndarray], np.ndarray],
    *,
    first: np.ndarray | None = None,
    trials: int | None = None,
    distinct: bool = False,
) -> np.ndarray:
    """Indices of k rows: each time several are drawn by weight × cost so far; the one that leaves least stays.

    Parameters
    ----------
    w : ndarray of shape (n,)
        Weights of the rows.
    k : int
        How many.
    rng : Generator
    costs : callable
        Costs (n, m) of all rows seen from the m rows of these indices.
    first : ndarray of shape (n,), optional
        Chances of the first row, and of all rows where no cost is left; by default w.
    trials : int, optional
        How many are drawn each time; by default 2 + log k.
    distinct : bool, default=False
        Whether a row that was taken may not be taken again, whatever it costs.
    """
    trials, first = trials or 2 + int(np.log(k)), w if first is None else first
    index, free = np.empty(k, np.int64), np.ones(len(w), bool)
    index[0] = drawn((first / first.sum()).cumsum(), rng.random())
    near = costs(index[:1])[:, 0]
    for i in range(1, k):
        free[index[i - 1]] = not distinct
        chance = (w * near * free if distinct else w * near).cumsum()
        if not chance[-1] > 0:  # every row is one already
            chance = (first * free if distinct else first).cumsum()
        some = drawn(chance, rng.random(trials))
        if distinct and not (left := free[some]).all():
            some = some[left] if left.any() else np.flatnonzero(free)[:1]
        nearer = np.minimum(near[:, None], costs(some))
        best = int((w @ nearer).argmin())
        index[i], near = some[best], nearer[:, best].copy()
    return index


def drawn(chances: np.ndarray, uniform: Any) -> Any:
    """The rows that uniform numbers from 0 to 1 fall to, by the cumulated chances of the rows."""
    return np.minimum(chances.searchsorted(uniform * chances[-1], side="right"), len(chances) - 1)


def plus_plus(
    x: Any,
    observed: np.ndarray | None,
    w: np.ndarray,
    k: int,
    rng: np.random.Generator,
    pairs: Callable[..., np.ndarray] = squared_distances,
) -> np.ndarray:
    """Indices of k rows far apart by a cost of rows and centres, squared distances by default."""
    weight = w if observed is None else w * observed.any(axis=1)
    seen, own = None if observed is None else observed.astype(x.dtype), squares(x)
    return far_apart(w, k, rng, lambda some: pairs(x, seen, dense(x[some]), own), first=weight)
