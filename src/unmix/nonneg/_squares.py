"""The squared error ½ Σ w ‖x − zU‖² over the observed cells, whichever solver minimises it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.nonneg._arithmetic import double, squares, times, transposed_times
from unmix.nonneg._method import Effort, Method, Parts, Stats

CANCELLED = 64.0  # the expanded square is not trusted below this many √eps of Σ w ‖x‖²


class SquaredLoss(Method):
    """Statistics and error from z; a solver adds `amounts` and `update`."""

    levels: tuple[float, float] = 1e-151, 1e151

    @abstractmethod
    def amounts(self, U: Parts, b: Block, C: np.ndarray, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """Work on z, given C = X Uᵀ."""

    def cost(self, scale: float) -> float:
        """Squares of the unit of the data."""
        return scale**2

    def accounted(self, U: Parts, s: Stats) -> np.ndarray:
        """Σ w z² Σ u²."""
        return s.A.diagonal() * U.scratch.gram.diagonal()

    def solve(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """Work on z from where the last pass left it."""
        return self.amounts(U, b, times(b.x, U.loads), effort, l1, l2)

    def local(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, Stats]:
        """Solve z; its statistics and squared error."""
        x = b.x
        C = times(x, U.loads)
        z = self.amounts(U, b, C, effort, l1, l2)
        zw = b.weighted(z)
        B, A, m = transposed_times(x, zw), zw.T @ z, zw.sum(axis=0, dtype=np.float64)
        if b.observed is None:
            return z, Stats(b.total, 0.5 * complete_error(U, b, z, zw, C, A), A, m, B, A, 0.0)
        y = np.where(b.observed, z @ U.loads.T, x.dtype.type(0))
        rest = x - y
        error = 0.5 * b.sum(np.vecdot(rest, rest))
        return z, Stats(b.total, error, A, m, B, np.zeros_like(A), double(y.T @ zw))


def complete_error(U: Parts, b: Block, z: np.ndarray, zw: np.ndarray, C: np.ndarray, A: np.ndarray) -> float:
    """Σ w ‖x − zU‖² of rows without holes, expanded unless that cancels."""
    x, square = b.x, squares(b)
    error = square - 2 * float(np.vdot(zw, C)) + float(np.vdot(A, U.scratch.gram))
    if error < CANCELLED * np.sqrt(np.finfo(x.dtype).eps) * square:
        if not sp.issparse(x):
            rest = x - z @ U.loads.T
            error = b.sum(np.vecdot(rest, rest))
        elif x.dtype != np.float64:
            x, z, loads = double(x), double(z), double(U.loads)
            zw = b.weighted(z)
            error = square - 2 * np.vdot(zw, times(x, loads)) + np.vdot(zw.T @ z, loads.T @ loads)
    return max(float(error), 0.0)


def predicted(U: Parts, z: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
    """(z U) Uᵀ over the observed cells."""
    return z @ U.scratch.gram if observed is None else np.where(observed, z @ U.loads.T, z.dtype.type(0)) @ U.loads


def last_or_uniform(U: Parts, b: Block, C: np.ndarray) -> np.ndarray:
    """The z that the last pass left, as a copy; else as much of every part, as much as fits x best."""
    if b.z is not None:
        return b.z.copy()
    one = predicted(U, np.ones_like(C), b.observed).sum(axis=1, keepdims=True)
    return np.repeat(C.sum(axis=1, keepdims=True) / np.where(one > 0, one, 1), C.shape[1], axis=1)


def gradient(U: Parts, s: Stats, l1: float, l2: float) -> tuple[np.ndarray, np.ndarray]:
    """D, such that U B/D is the multiplicative step, and the slope of the objective in the parts."""
    loads = U.loads
    P = s.P + loads @ s.F
    return P + l1 + l2 * loads, P - (s.B - l1 if l1 else s.B) + l2 * loads
