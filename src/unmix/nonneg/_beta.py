"""Any β-divergence over the observed cells, y = zU, by multiplicative steps [Févotte & Idier 2011].

    β = 0 (Itakura–Saito):  x/y − log(x/y) − 1           else:  (x^β + (β−1) y^β − β x y^(β−1)) / (β (β−1))

    z ← z (U(x y^(β−2)) / (U y^(β−1) + penalty))^γ       γ = 1/(2−β) for β < 1, 1/(β−1) for β > 2, else 1

and U likewise from B = Σ w z x y^(β−2) and P = Σ w z y^(β−1). Powers of y are dense, so CSR rows are made dense, some
at a time, and in float64: y^(β−2) may be huge. β = 2 and β = 1 have files of their own, which are faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.nonneg._arithmetic import SHARE_FLOOR, double, floored, quotient, stationarity
from unmix.nonneg._divergence import last_or_uniform
from unmix.nonneg._method import Effort, Method, Parts, Stats, make_parts

FITTED_FLOOR = 1e-30  # of a fitted cell, so that its negative powers are numbers
DENSE_NUMBERS = 1 << 18  # cells of rows that are worked on at a time
RANGE = 300.0  # powers of ten within which the divergence of a cell must be


class Beta(Method):
    """Multiplicative steps. A row has settled when a step moves this share of its total."""

    def __init__(self, beta: float) -> None:
        self.beta = beta
        self.power = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
        most = RANGE / max(1.0, abs(beta))
        self.levels = 10.0**-most, 10.0**most

    def cost(self, scale: float) -> float:
        """The divergence has the unit of the data to the power of β."""
        return float(scale**self.beta)

    def accounted(self, U: Parts, s: Stats) -> np.ndarray:
        """Σ w z Σ u."""
        return s.m * U.loads.sum(axis=0)

    def solve(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """Work on z from where the last pass left it."""
        return self.local(U, b, effort, l1, l2)[0]

    def local(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, Stats]:
        """Solve z; its statistics and divergence."""
        loads, error = double(U.loads), 0.0
        B, P = np.zeros_like(loads), np.zeros_like(loads)
        expected = U.loads.sum(axis=0) if b.observed is None else b.observed.astype(b.x.dtype) @ U.loads
        total = np.asarray(b.x.sum(axis=1)).reshape(-1, 1)
        z = double(last_or_uniform(b, expected, total, loads.shape[1]))
        for rows, x, observed in pieces(b):
            if self.beta <= 0 and not (x > 0).all(where=True if observed is None else observed):
                raise ValueError(
                    f"beta_loss={self.beta:g} and X contains zeros, whose divergence from any number is infinite: add "
                    "a small number to X, or take a positive beta_loss"
                )
            z[rows] = self.steps(z[rows], x, observed, loads, effort, l1, l2)
            y = fitted(z[rows], loads)
            zw = z[rows] if b.w is None else z[rows] * b.w[rows, None]
            above, below = self.slopes(x, y, observed)
            B += above.T @ zw
            P += below.T @ zw
            each = self.divergence(x, y) if observed is None else np.where(observed, self.divergence(x, y), 0.0)
            error += float((each.sum(axis=1) if b.w is None else each.sum(axis=1) * b.w[rows]).sum())
        zw = b.weighted(z)
        m = zw.sum(axis=0)
        return z.astype(b.x.dtype, copy=False), Stats(b.total, error, zw.T @ z, m, B, np.zeros_like(m), P)

    def steps(
        self,
        z: np.ndarray,
        x: np.ndarray,
        observed: np.ndarray | None,
        loads: np.ndarray,
        effort: Effort,
        l1: float,
        l2: float,
    ) -> np.ndarray:
        """z after some steps, until they settle."""
        z, rows = z.copy(), np.arange(len(z))
        for _ in range(effort.rounds):
            old = z[rows]
            above, below = self.slopes(x[rows], fitted(old, loads), None if observed is None else observed[rows])
            D = below @ loads + l1 + l2 * old
            new = old * quotient(above @ loads, D) ** self.power
            z[rows] = np.maximum(new, SHARE_FLOOR * old.mean(axis=1, keepdims=True))
            moved = (np.abs(z[rows] - old) * D).sum(axis=1)
            rows = rows[moved > effort.settled * (old * D).sum(axis=1)]
            if not len(rows):
                break
        return z

    def slopes(self, x: np.ndarray, y: np.ndarray, observed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """x y^(β−2) and y^(β−1) of the observed cells: the slope of the divergence in y is their difference."""
        below = y ** (self.beta - 1)
        above = x * (below / y)
        return (above, below) if observed is None else (above * observed, below * observed)

    def divergence(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of each cell."""
        beta = self.beta
        if beta == 0:
            ratio = np.maximum(x, FITTED_FLOOR) / y
            return np.asarray(ratio - np.log(ratio) - 1)
        base = np.maximum(x, FITTED_FLOOR) if beta < 0 else x
        return np.asarray((base**beta + (beta - 1) * y**beta - beta * x * y ** (beta - 1)) / (beta * (beta - 1)))

    def update(self, U: Parts, s: Stats, l1: float, l2: float) -> Parts:
        """U ← U (B / (P + n α_H (λ + (1−λ) U)))^γ."""
        D = s.P + l1 + l2 * U.loads
        new = U.loads * quotient(s.B, D) ** self.power
        return make_parts(floored(new), U.scale, stationarity(U.loads, D - s.B, s.B))


def pieces(b: Block) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Some rows at a time, dense and in float64, and which of their cells were observed."""
    n, d = b.x.shape
    wide = max(1, DENSE_NUMBERS // d)
    for top in range(0, n, wide):
        rows = slice(top, min(top + wide, n))
        x = b.x[rows].toarray() if sp.issparse(b.x) else b.x[rows]
        yield rows, double(x), None if b.observed is None else b.observed[rows]


def fitted(z: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Z U, of which every power is a number."""
    y = z @ loads.T
    return np.maximum(y, FITTED_FLOOR, out=y)
