"""The squared euclidean distance, and the kernels that cosine, Mahalanobis and Hamming share with it.

Rows of length one have ‖x − u‖² = 2(1 − cos), whitened rows have Mahalanobis' distance, and ‖x − u‖² counts the cells
that differ where all cells are 0 or 1.
"""

from __future__ import annotations

from math import log2
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.cluster._parts import Parts
from unmix.cluster.metrics.base import Metric, Rows, rows_of
from unmix.engine import tree
from unmix.engine.block import Block
from unmix.maths.arrays import Array
from unmix.maths.distances import squared_distances, squares

SINGLE_VARIANCE = 1e-28, 1e28  # of data whose squared distances are taken in float32


class Stats(NamedTuple):
    """Sums per cluster; `holes` is 0 where every cell was observed."""

    N: Annotated[np.ndarray, Array("k")]
    A: Annotated[np.ndarray, Array("k e")]
    V: Annotated[np.ndarray, Array("k")]
    holes: Annotated[np.ndarray, Array("k e")] | float


class Euclidean(Metric):
    """‖x − u‖²; the best centre is the mean of the observed cells."""

    name = "euclidean"
    kinds: ClassVar[tuple[Any, Any]] = tuple[()], Stats

    # -- distances --

    def pairs(self, x: Any, observed: Any, centers: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
        """‖x − u‖² over the observed cells."""
        return squared_distances(x, observed, centers, own)

    def costs(self, U: Parts, b: Block) -> np.ndarray:
        """The same, of dense rows about the mean of the data, computed in float64: a centre is 0 from itself.

        In float64 they stay where float32 does not hold squares.
        """
        if b.x.dtype == np.float32 and U.variance and not SINGLE_VARIANCE[0] < U.variance < SINGLE_VARIANCE[1]:
            U, b = tree.settle(U, np.float64), b._replace(x=b.x.astype(np.float64))
        if sp.issparse(b.x):
            return squared_distances(b.x, None, U.centers)
        x = b.x - U.shift if b.observed is None else np.where(b.observed, b.x - U.shift, b.x.dtype.type(0))
        wide, centers = x.astype(np.float64, copy=False), (U.centers - U.shift).astype(np.float64, copy=False)
        return squared_distances(wide, b.observed, centers).astype(b.x.dtype, copy=False)

    def shown(self, costs: np.ndarray) -> np.ndarray:
        """‖x − u‖."""
        return np.sqrt(costs, out=costs)

    def cost_of(self, shown: float) -> float:
        """Its square."""
        return shown**2

    def length(self, moves: np.ndarray) -> np.ndarray:
        """‖Δu‖."""
        return np.asarray(np.sqrt((moves**2).sum(axis=1)))

    def half_apart(self, centers: np.ndarray) -> np.ndarray:
        """½ min_{j≠k} ‖u_k − u_j‖, less rounding."""
        return half_apart(centers)

    # -- a pass --

    def nearest(self, U: Parts, b: Block) -> tuple[Rows, Any]:
        """Nearest centres by bounds and distances; sums over the rows of each."""
        known, z = b.z is not None, rows_of(b)
        bounds = float(np.finfo(b.x.dtype).eps), known, *z
        path, drift, moved, half = U.scratch
        if sp.issparse(b.x) or b.observed is not None:
            from unmix.kernels import kmeans_cells

            cells = Cells(U, b)
            if b.observed is not None:
                half = np.zeros_like(half)  # the way may lead through unseen columns
            kmeans_cells.nearest(*cells.rows, cells.columns, *cells.rule, path, drift, half, *bounds)
            return z, self._sums(U, b, z, cells)
        from unmix.kernels import kmeans_dense

        w = np.empty(0) if b.w is None else b.w
        power = -round(0.5 * log2(U.variance)) if U.variance > 0 else 0
        scale = b.x.dtype.type(2.0 ** (min(max(power, -126), 126) if b.x.itemsize == 4 else power))
        N, A, V = kmeans_dense.lloyd(b.x, w, U.centers, U.shift, scale, path, drift, moved, half, *bounds)
        return z, Stats(N, A, V, 0.0)

    def sums(self, U: Parts, b: Block, z: Rows) -> Any:
        """Σw, Σw x and Σw ‖x − u‖²."""
        whole = sp.issparse(b.x) or b.observed is not None
        return self._sums(U, b, z, Cells(U, b if whole else b._replace(observed=np.ones(b.x.shape, bool))))

    def _sums(self, U: Parts, b: Block, z: Rows, cells: Cells) -> Stats:
        from unmix.kernels import kmeans_cells

        w = np.empty(0) if b.w is None else b.w
        N, A, V, seen = kmeans_cells.sums(*cells.rows, U.centers, *cells.rule, z.label, w, U.scratch.path, z.upper)
        return Stats(N, A, V, 0.0 if b.observed is None else N[:, None] - seen)

    def best(self, U: Parts, stats: Any) -> np.ndarray:
        """Means; where nothing was observed, what was there."""
        N, A, _, holes = stats
        if isinstance(holes, float) and N.min() > 0:
            return A / N[:, None]
        count = N[:, None] - holes
        known = count > 1e-9 * N[:, None]
        return A / count if known.all() else np.where(known, A / np.where(known, count, 1.0), U.centers)

    def left(self, U: Parts, stats: Any, centers: np.ndarray) -> np.ndarray:
        """V − n ‖u′ − u‖²."""
        N, _, V, holes = stats
        return np.where(N > 0, V - ((N[:, None] - holes) * (centers - U.centers) ** 2).sum(axis=1), 0.0)

    def beside(
        self, center: np.ndarray, k: int, stats: Any, left: float, turn: int, rng: np.random.Generator, share: float
    ) -> np.ndarray:
        """A small way off in a direction drawn at random."""
        way = rng.standard_normal(len(center))
        step = share * np.sqrt(left / (max(stats.N[k], 1e-300) * len(center)))
        return np.asarray(center + step * way / np.linalg.norm(way))

    def variations(self, U: Parts, stats: Any) -> tuple[float, float | None]:
        """About the means of the clusters, and about the mean of all rows."""
        N, A, V, holes = stats
        count = N[:, None] - holes + np.zeros_like(A)
        one = A.sum(axis=0) / np.maximum(count.sum(axis=0), 1e-300)
        centers = np.where(count > 1e-9 * N[:, None], A / np.where(count > 0, count, 1.0), one)
        within = float(V.sum() - (count * (np.where(count > 0, U.centers, 0.0) - centers) ** 2)[count > 0].sum())
        return within, within + float((count * (centers - one) ** 2).sum())


class Cells:
    """The cells of a block that count, as the kernel wants them."""

    def __init__(self, U: Parts, b: Block) -> None:
        missing = b.observed is not None
        if b.observed is not None:
            indptr = np.concatenate([[0], np.cumsum(b.observed.sum(axis=1))])
            self.rows = indptr, np.nonzero(b.observed)[1], b.x[b.observed]
        else:
            self.rows = b.x.indptr, b.x.indices, b.x.data
        centers = U.centers.astype(np.float64)
        self.columns = np.ascontiguousarray(centers.T)
        square = (centers**2).sum(axis=1)
        base = np.zeros_like(square) if missing else square
        self.rule = base, missing, float(np.sqrt(square.max()))


def half_apart(centers: np.ndarray) -> np.ndarray:
    """½ min_{j≠k} ‖u_k − u_j‖, or a little less: what rounding may have added is taken off."""
    out, own = np.zeros(len(centers)), squares(centers)
    if len(centers) == 1:
        return out
    slack = (centers.shape[1] + 8) * np.finfo(np.float64).eps
    for i in range(0, len(centers), 512):
        part = slice(i, i + 512)
        square = own[part, None] + own - 2 * (centers[part] @ centers.T) - slack * (own[part, None] + own)
        np.fill_diagonal(square[:, i:], np.inf)
        out[part] = 0.5 * np.sqrt(np.maximum(square.min(axis=1), 0.0))
    return out
