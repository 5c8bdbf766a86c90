"""Rows far apart, for whoever starts from some: greedy k-means++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unmix.maths.distances import dense, squared_distances, squares


def plus_plus(
    x: Any,
    observed: np.ndarray | None,
    w: np.ndarray,
    k: int,
    rng: np.random.Generator,
    pairs: Callable[..., np.ndarray] = squared_distances,
) -> np.ndarray:
    """Greedy k-means++: each time several rows by weight × squared distance so far; the one that leaves least stays."""
    trials = 2 + int(np.log(k))
    weight = w if observed is None else w * observed.any(axis=1)
    seen, own = None if observed is None else observed.astype(x.dtype), squares(x)
    index = np.empty(k, np.int64)
    index[0] = rng.choice(len(w), p=weight / weight.sum())
    near = pairs(x, seen, dense(x[index[:1]]), own)[:, 0]
    for i in range(1, k):
        chance = np.cumsum(w * near)
        if not chance[-1] > 0:  # every row is a centre already
            chance = np.cumsum(weight)
        some = np.searchsorted(chance, rng.random(trials) * chance[-1], side="right").clip(0, len(w) - 1)
        nearer = np.minimum(near[:, None], pairs(x, seen, dense(x[some]), own))
        best = int(np.argmin(w @ nearer))
        index[i], near = some[best], nearer[:, best].copy()
    return index
