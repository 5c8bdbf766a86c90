"""The number of cells that differ, for cells of 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.cluster._parts import Parts
from unmix.cluster.metrics.euclidean import Euclidean
from unmix.engine.block import Block


class Hamming(Euclidean):
    """The number of cells that differ; cells and centres are 0 or 1, the best centre is the majority."""

    name = "hamming"

    def enter(self, frame: Any, b: Block) -> Block:
        """The rows, after a look at every cell in the first pass."""
        values = b.x.data if sp.issparse(b.x) else b.x
        if b.z is None and ((values != 0) & (values != 1)).any():
            wrong = values[(values != 0) & (values != 1)][0]
            raise ValueError(
                f"X holds {wrong}, among the rows from {b.start} to {b.start + b.x.shape[0] - 1}: metric='hamming' "
                "needs cells that are 0 or 1. Compare X to a threshold first, or take metric='manhattan'."
            )
        return b

    def enter_centers(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres that a user gave."""
        if not ((centers == 0) | (centers == 1)).all():
            raise ValueError("init holds values that are not 0 or 1: metric='hamming' needs centres of 0 and 1")
        return centers

    def project(self, centers: np.ndarray) -> np.ndarray:
        """0 or 1."""
        return (centers > 0.5).astype(np.float64)

    def shown(self, costs: np.ndarray) -> np.ndarray:
        """How many cells differ."""
        return np.rint(costs, out=costs)

    def cost_of(self, shown: float) -> float:
        """How many cells differ."""
        return shown

    def best(self, U: Parts, stats: Any) -> np.ndarray:
        """The majority; where it is a tie, what it was."""
        ones, zeros = self._votes(stats)
        tie = np.abs(ones - zeros) <= 1e-12 * stats.N[:, None]
        return np.where(tie, U.centers, (ones > zeros).astype(np.float64))

    def left(self, U: Parts, stats: Any, centers: np.ndarray) -> np.ndarray:
        """The votes of the minority."""
        ones, zeros = self._votes(stats)
        return np.where(centers > 0, zeros, ones).sum(axis=1)

    def _votes(self, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """The weight of ones and of zeros in each cell."""
        return stats.A, np.maximum(stats.N[:, None] - stats.holes - stats.A, 0.0)

    def beside(
        self, center: np.ndarray, k: int, stats: Any, left: float, turn: int, rng: np.random.Generator, share: float
    ) -> np.ndarray:
        """The centre but for one cell, that on which the rows of the cluster differ most (or, in turn, the next)."""
        ones, zeros = self._votes(stats)
        differ = np.minimum(ones[k], zeros[k])
        order, many = np.argsort(-differ, kind="stable"), max(1, int((differ > 0).sum()))
        out = center.copy()
        out[order[turn % many]] = 1 - out[order[turn % many]]
        return out

    def variations(self, U: Parts, stats: Any) -> tuple[float, float | None]:
        """Cells that differ from the majority of the cluster, and from that of all rows."""
        ones, zeros = self._votes(stats)
        one = np.minimum(ones.sum(axis=0), zeros.sum(axis=0)).sum()
        return float(np.minimum(ones, zeros).sum()), float(one)
