"""The sets of roles that a row may have: all of at most so many, the empty one first."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

MOST_SETS = 1 << 15  # for each of which every row gets a probability


def count(k: int, most: int) -> int:
    """Σ_m C(k, m), m from 0 to most."""
    return sum(comb(k, m) for m in range(min(most, k) + 1))


@lru_cache(maxsize=8)
def subsets(k: int, most: int) -> np.ndarray:
    """The roles of each set, (M, most); where a set has fewer, k stands for none."""
    width = min(most, k)
    rows = [[*members, *[k] * (width - m)] for m in range(width + 1) for members in combinations(range(k), m)]
    out = np.array(rows, dtype=np.int64).reshape(len(rows), width)
    out.setflags(write=False)
    return out


@lru_cache(maxsize=8)
def membership(k: int, most: int) -> np.ndarray:
    """Whether each set has each role, (M, k)."""
    sets = subsets(k, most)
    out = np.zeros((len(sets), k + 1), dtype=bool)
    np.put_along_axis(out, sets, True, axis=1)
    out = np.ascontiguousarray(out[:, :k])
    out.setflags(write=False)
    return out


def products(absent: np.ndarray, sets: np.ndarray, without: int | None = None) -> np.ndarray:
    """β_Ld = Π_{k ∈ L} β_kd for each set L, one role left out if asked: that none of them has the permission."""
    k, d = absent.shape
    padded = np.vstack([absent, np.ones((1, d), absent.dtype)])
    out = np.ones((len(sets), d), absent.dtype)
    for member in sets.T:
        out *= padded[member if without is None else np.where(member == without, k, member)]
    return out
