"""The angle: rows and centres have length one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.cluster._parts import Parts
from unmix.cluster.metrics.base import Rows
from unmix.cluster.metrics.euclidean import Euclidean, Stats
from unmix.engine.block import Block
from unmix.maths.distances import squares


class Cosine(Euclidean):
    """1 − cos(x, u); rows and centres have length one. A row of zeros is as far from every centre as a right angle."""

    name = "cosine"
    share = 0.5

    def enter(self, frame: Any, b: Block) -> Block:
        """Rows of length one."""
        if b.observed is not None:
            i, j = np.argwhere(~b.observed)[0]
            raise ValueError(
                f"Input X contains NaN: row {b.start + i}, column {j}. metric='cosine' needs every cell, for the "
                "length of a row: impute the missing ones or drop those rows."
            )
        by = 1.0 / np.maximum(np.sqrt(squares(b.x.astype(np.float64, copy=False))), 1e-300)
        if sp.issparse(b.x):
            data = (b.x.data * np.repeat(by, np.diff(b.x.indptr))).astype(b.x.dtype)
            return b._replace(x=sp.csr_array((data, b.x.indices, b.x.indptr), shape=b.x.shape))
        return b._replace(x=(b.x * by[:, None]).astype(b.x.dtype))

    def enter_centers(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres of length one."""
        if not (squares(centers) > 0).all():
            raise ValueError(
                "init holds a centre of zeros, which has no direction: metric='cosine' needs centres that have one"
            )
        return self.project(centers)

    def project(self, centers: np.ndarray) -> np.ndarray:
        """Length one; where the rows cancel, any direction is as good."""
        size = np.sqrt(squares(centers))[:, None]
        return np.where(size > 0, centers / np.where(size > 0, size, 1.0), 1.0 / np.sqrt(centers.shape[1]))

    def costs(self, U: Parts, b: Block) -> np.ndarray:
        """2(1 − cos)."""
        out = 2 - 2 * np.asarray(b.x @ U.centers.T)
        return np.maximum(out, 0.0, out=out)

    def shown(self, costs: np.ndarray) -> np.ndarray:
        """1 − cos."""
        costs *= costs.dtype.type(0.5)
        return costs

    def cost_of(self, shown: float) -> float:
        """2(1 − cos)."""
        return 2 * shown

    def nearest(self, U: Parts, b: Block) -> tuple[Rows, Any]:
        """The same, and 1 more for each row of zeros, whose ‖x − u‖² is 1 and not 2."""
        z, stats = super().nearest(U, b)
        return z, self._right(b, z, stats)

    def sums(self, U: Parts, b: Block, z: Rows) -> Any:
        """As for `nearest`."""
        return self._right(b, z, super().sums(U, b, z))

    def _right(self, b: Block, z: Rows, stats: Stats) -> Stats:
        """Rows of zeros at a right angle to their centres."""
        none = np.diff(b.x.indptr) == 0 if sp.issparse(b.x) else ~b.x.any(axis=1)
        if sp.issparse(b.x):
            none |= squares(b.x) == 0
        w = none * 1.0 if b.w is None else none * b.w
        return stats._replace(V=stats.V + np.bincount(z.label, w, minlength=len(stats.N))) if none.any() else stats

    def best(self, U: Parts, stats: Any) -> np.ndarray:
        """Sums scaled to length one."""
        size = np.sqrt(squares(stats.A))
        known = size > 1e-12 * stats.N
        return np.where(known[:, None], stats.A / np.where(known, size, 1.0)[:, None], U.centers)

    def left(self, U: Parts, stats: Any, centers: np.ndarray) -> np.ndarray:
        """V − 2 A (u′ − u)."""
        return np.where(stats.N > 0, stats.V + 2 * (stats.A * (U.centers - centers)).sum(axis=1), 0.0)

    def beside(self, *args: Any) -> np.ndarray:
        """The same, on the sphere."""
        return self.project(super().beside(*args)[None])[0]

    def variations(self, U: Parts, stats: Any) -> tuple[float, float | None]:
        """Σw − Σ_k ‖A_k‖, and Σw − ‖Σ_k A_k‖."""
        weight = stats.N.sum()
        return float(weight - np.sqrt(squares(stats.A)).sum()), float(weight - np.linalg.norm(stats.A.sum(axis=0)))
