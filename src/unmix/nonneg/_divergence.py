"""The Kullback–Leibler divergence Σ w (x log(x/y) − x + y) over the observed cells, y = zU, by multiplicative steps.

Lee & Seung (2001), over-relaxed (see `relaxed`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.nonneg._arithmetic import RELAXATION, SHARE_FLOOR, double, floored, relaxed, stationarity
from unmix.nonneg._method import Effort, Method, Parts, Stats, make_parts


class Divergence(Method):
    """Multiplicative steps. A row has settled when a step moves this share of its total."""

    def cost(self, scale: float) -> float:
        """The divergence has the unit of the data."""
        return scale

    def accounted(self, U: Parts, s: Stats) -> np.ndarray:
        """Σ w z Σ u."""
        return s.m * U.loads.sum(axis=0)

    def solve(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """Work on z from where the last pass left it."""
        return self.local(U, b, effort, l1, l2)[0]

    def local(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, Stats]:
        """Solve z; its statistics and divergence."""
        x, loads = b.x, U.loads
        expected = loads.sum(axis=0) if b.observed is None else b.observed.astype(x.dtype) @ loads
        total = np.asarray(x.sum(axis=1)).reshape(-1, 1)
        z = last_or_uniform(b, expected, total, loads.shape[1])
        if sp.issparse(x):
            error, B = sparse_rows(b, loads, expected, effort, l1, l2, z)
            zw = b.weighted(z)
        else:
            dense_rows(x, loads, expected, total, effort, l1, l2, z)
            ratio, zw = ratios(x, z, loads), b.weighted(z)
            rest = np.log(ratio + (x <= 0), out=ratio.copy()) - 1
            error = b.sum(np.vecdot(x, rest)) + b.sum(np.vecdot(z, np.broadcast_to(expected, z.shape)))
            B = ratio.T @ zw
        A, m = zw.T @ z, zw.sum(axis=0, dtype=np.float64)
        if b.observed is None:
            return z, Stats(b.total, error, A, m, B, m, 0.0)
        return z, Stats(b.total, error, A, m, B, np.zeros_like(m), double(b.observed.astype(x.dtype).T @ zw))

    def update(self, U: Parts, s: Stats, l1: float, l2: float) -> Parts:
        """U ← U B / (P + n α_H λ), and the root of a quadratic where there is a squared penalty."""
        loads = U.loads
        P = s.P + s.F
        slope = P - (s.B - l1 if l1 else s.B) + l2 * loads
        r = factor(loads, s.B, np.broadcast_to(P + l1, loads.shape), l2)
        new = loads * relaxed(r, relaxation(l2))
        return make_parts(floored(new), U.scale, stationarity(loads, slope, s.B))


def last_or_uniform(b: Block, expected: np.ndarray, total: np.ndarray, k: int) -> np.ndarray:
    """The z that the last pass left, as a copy; else as much of every part, so that the row has its total."""
    if b.z is not None:
        return b.z.copy()
    share = np.broadcast_to(expected, (len(total), k)).sum(axis=1, keepdims=True)
    return np.repeat(total / np.where(share > 0, share, 1), k, axis=1).astype(b.x.dtype)


def relaxation(l2: float) -> float:
    """How far a step overshoots: with a squared penalty the bound is a different one, and it must not."""
    return RELAXATION if l2 == 0 else 0.0


def factor(old: np.ndarray, B: np.ndarray, D: np.ndarray, l2: Any) -> np.ndarray:
    """The r for which old·r minimises the bound D u + ½ l2 u² − old B log u; 1 where D is 0."""
    root = np.sqrt(D * D + 4 * l2 * old * B)
    return np.divide(2 * B, D + root, out=np.ones_like(old), where=D > 0)


def ratios(x: np.ndarray, z: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Return x / (z U)."""
    y = z @ loads.T
    return np.divide(x, np.maximum(y, np.finfo(x.dtype).tiny, out=y), out=y)


def sparse_rows(
    b: Block, loads: np.ndarray, expected: np.ndarray, effort: Effort, l1: float, l2: float, z: np.ndarray
) -> tuple[float, np.ndarray]:
    """Step z in place; the divergence and B."""
    from unmix.kernels.nmf_kl import kl_rows

    x, real = b.x, b.x.dtype.type
    w = np.ones(x.shape[0], x.dtype) if b.w is None else b.w.astype(x.dtype)
    B = np.zeros_like(loads)
    how = real(l1), real(l2), real(relaxation(l2)), real(SHARE_FLOOR), effort.rounds, real(effort.settled)
    return kl_rows(x.data, x.indices, x.indptr, w, loads, expected, *how, z, B), B


def dense_rows(
    x: np.ndarray,
    loads: np.ndarray,
    expected: np.ndarray,
    total: np.ndarray,
    effort: Effort,
    l1: float,
    l2: float,
    z: np.ndarray,
) -> None:
    """Step z in place."""
    real = x.dtype.type
    D = np.broadcast_to(expected + real(l1), z.shape)
    rows = np.arange(len(z))
    for _ in range(effort.rounds):
        old, Dr = z[rows], D[rows]
        r = factor(old, ratios(x[rows], old, loads) @ loads, Dr, real(l2))
        floor = np.divide(real(SHARE_FLOOR) * total[rows], Dr, out=np.zeros_like(old), where=Dr > 0)
        z[rows] = np.maximum(old * relaxed(r, relaxation(l2)), floor)
        moved = (np.abs(z[rows] - old) * Dr).sum(axis=1)
        rows = rows[moved > effort.settled * total[rows, 0]]
        if not len(rows):
            break
