"""The squared error by HALS: coordinate descent, one row of z or column of U at a time.

A sweep minimises a convex bound q that touches the objective at the present point o. Any y with q(y) ≤ q(o) is still
no worse, and going further than the minimum pays, since alternating steps zigzag. So a step continues by a share of the
way it came where q agrees, the more the slower the fit is (`paced`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from unmix.engine.block import Block
from unmix.engine.runners import PIECES, each
from unmix.nonneg._arithmetic import RELAXATION, own_grams, quotient, relaxed, ridge, stationarity
from unmix.nonneg._method import FIRST_STRETCH, Effort, Parts, Stats, make_parts
from unmix.nonneg._squares import SquaredLoss, gradient, last_or_uniform

MANY = 1 << 15  # loads, whose features are worth threads
PARTS_EFFORT = Effort(12, 0.1)  # for the parts of a pass


class Hals(SquaredLoss):
    """Coordinate descent. A row has settled when a sweep moves it by this share of what its first sweep did."""

    first: ClassVar[Effort] = Effort(1, 0.0)
    cold: ClassVar[Effort] = Effort(100, 1e-3)
    warm: ClassVar[Effort] = Effort(8, 0.1)
    exact: ClassVar[Effort] = Effort(10_000, 1e-9)
    zeros_stay: ClassVar[bool] = False

    def amounts(self, U: Parts, b: Block, C: np.ndarray, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """Sweep over z."""
        from unmix.kernels.nmf_hals import hals, masked_hals

        real, gram = C.dtype.type, U.scratch.gram
        z = last_or_uniform(U, b, C)
        how = effort.rounds, real(effort.settled), real(0 if b.z is None else U.scratch.stretch)
        if b.observed is None:
            hals(ridge(gram, l2), C - real(l1), z, *how)
        else:
            for rows, G in own_grams(U.loads, b.observed, l2):
                masked_hals(G, C[rows] - real(l1), z[rows], *how)
        return z

    def update(self, U: Parts, s: Stats, l1: float, l2: float) -> Parts:
        """Sweep over the parts; feature by feature a multiplicative step where cells are missing and it gains more."""
        from unmix.kernels.nmf_hals import hals, residual

        loads, before = U.loads, U.events.kkt
        G, complete = ridge(s.A, l2), np.ndim(s.P) == 0
        if complete:
            C, size = s.B - l1 if l1 else s.B, float(np.vdot(loads, s.B))
            kkt = residual(G, C, loads) / size if size > 0 else 0.0
        else:
            D, slope = gradient(U, s, l1, l2)
            C, kkt = loads @ G - slope, stationarity(loads, slope, s.B)
        stretch = paced(U.scratch.stretch, kkt / before) if before > 0 else FIRST_STRETCH
        new, how = loads.copy(), (*self.first, 0.0) if before < 0 else (*PARTS_EFFORT, stretch)

        def sweep(piece: int) -> None:  # features do not see each other
            part = slice(*(len(new) * i // PIECES for i in (piece, piece + 1)))
            hals(G, C[part], new[part], *how)

        if new.size > MANY:
            each(sweep)
        else:
            hals(G, C, new, *how)
        if not complete:
            new = better(loads, new, G, s.B, D, slope)
        return make_parts(new, U.scale, kkt, stretch)


def paced(stretch: float, pace: float) -> float:
    """How far HALS overshoots when a pass leaves `pace` of the slope.

    Over-relaxed alternation leaves at least `stretch` of the slowest mode a pass, and exactly that where it goes as far
    as is best or farther; where it leaves more, going farther pays [Young 1954]. So one follows the other from below.
    """
    return 0.4 * stretch + 0.54 * min(pace, 1.0) ** 1.5


def better(
    old: np.ndarray, swept: np.ndarray, G: np.ndarray, B: np.ndarray, D: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """Feature by feature, the step whose bound falls more: `swept` (of curvature G) or a multiplicative one.

    Where rounding lets neither fall, the feature stays as it is.
    """
    way = swept - old
    fall = -(way * (slope + 0.5 * way @ G)).sum(axis=1)
    factor = relaxed(quotient(B, D), RELAXATION)
    other = -(old * (factor - 1) * (slope + 0.5 * D * (factor - 1))).sum(axis=1)  # of curvature D/u
    return np.where((other > np.maximum(fall, 0))[:, None], old * factor, np.where((fall >= 0)[:, None], swept, old))
