"""The squared error by multiplicative steps [Lee & Seung 2001], over-relaxed (see `relaxed`)."""

from __future__ import annotations

import numpy as np

from unmix.engine.block import Block
from unmix.nonneg._arithmetic import RELAXATION, SHARE_FLOOR, floored, quotient, relaxed, ridge, stationarity
from unmix.nonneg._hals import Hals
from unmix.nonneg._method import Effort, Parts, Stats, make_parts
from unmix.nonneg._squares import SquaredLoss, gradient, last_or_uniform, predicted

EPS = float(np.finfo(float).eps)
HALS = Hals()
PARTS_STEPS = 10  # steps of the parts in a pass over complete rows, where each costs no more than a (k, k) product


class Multiplicative(SquaredLoss):
    """Multiplicative steps. A row has settled when a step changes its fit by this share."""

    def amounts(self, U: Parts, b: Block, C: np.ndarray, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """z ← z C / (z G + l2 z + l1), G over the observed cells."""
        real = C.dtype.type
        z = last_or_uniform(U, b, C)
        rows = np.arange(len(C))
        for _ in range(effort.rounds):
            old = z[rows]
            D = predicted(U, old, None if b.observed is None else b.observed[rows]) + real(l2) * old + real(l1)
            r = quotient(C[rows], D)
            z[rows] = np.maximum(old * relaxed(r, RELAXATION), real(SHARE_FLOOR) * old.mean(axis=1, keepdims=True))
            moved = (np.abs(z[rows] - old) * D).sum(axis=1)
            rows = rows[moved > effort.settled * (old * D).sum(axis=1)]
            if not len(rows):
                break
        return z

    def update(self, U: Parts, s: Stats, l1: float, l2: float) -> Parts:
        """U ← U B / (P + n α_H (λ + (1−λ) U)); with holes P is known at the present parts only, hence one step."""
        D, slope = gradient(U, s, l1, l2)
        G, complete = ridge(s.A, l2), np.ndim(s.P) == 0
        new = U.loads
        for _ in range(PARTS_STEPS if complete else 1):
            new = new * relaxed(quotient(s.B, D), RELAXATION)
            D = new @ G + l1
        new = floored(new)
        size = s.A.diagonal() * (new * new).sum(axis=0)
        new[:, size <= (EPS * EPS) * (size.sum() + s.error)] = 0.0  # a penalty left nothing of these parts
        return make_parts(new, U.scale, stationarity(U.loads, slope, s.B))

    def solve(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """The z of new rows, the same whatever solver finds it: by coordinate descent, which does so sooner."""
        return HALS.solve(U, b, HALS.exact, l1, l2)
