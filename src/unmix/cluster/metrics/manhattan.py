"""Σ |x − u|, whose best centres are medians."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.cluster._parts import Parts
from unmix.cluster.metrics.base import Metric, Rows, rounded, rows_of
from unmix.engine.block import Block
from unmix.maths.arrays import Array

CUTS_INSIDE = 5  # of the bin that holds the median
STEPS_OUTSIDE = 3  # on either side of it
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of the mean of a bin, relative to its size
GRID_EDGES = 2 + (CUTS_INSIDE + 2) + 2 * STEPS_OUTSIDE  # the centre, the bin's mean, the bin and around it


class Bins(NamedTuple):
    """Sums per cluster, and per bin of its grid: Σw(x − u) and Σw."""

    N: Annotated[np.ndarray, Array("k")]
    total: Annotated[np.ndarray, Array("k d g+1")]
    V: Annotated[np.ndarray, Array("k")]
    weight: Annotated[np.ndarray, Array("k d g+1")]


class Grid(NamedTuple):
    """For each cluster and column the edges on which the median is sought; quantiles of each column, to begin with."""

    edges: Annotated[np.ndarray, Array("k d g")]
    quantiles: Annotated[np.ndarray, Array("d g-1")]
    sought: float = 0.0  # at most what the objective per row may gain when the medians are found


class Manhattan(Metric):
    """Σ_j |x_j − u_j|; the best centre is the median, which is not a sum over rows. But the cost of a centre is:

        c(e) = Σ_{x ≤ e} w(e − x) + Σ_{x > e} w(x − e)

    needs only the weight and the sum of the cells in the bins between the edges e of a grid. The present centre is one
    of them, so the best never makes the objective worse. The median is in the bin where the weight passes one half: the
    next grid cuts that bin, has its mean (the median itself when it is the only value left there), and reaches out to
    the width of the cluster in geometric steps, since rows may move.
    """

    name = "manhattan"
    kinds = Grid, Bins
    power = 1
    sparse = False

    def frame(self, sample: Block, params: dict[str, Any]) -> Any:
        """Quantiles of the columns."""
        super().frame(sample, params)
        b, d = self.enter((), sample), sample.x.shape[1]
        w = np.ones(len(b.x)) if b.w is None else b.w
        quantiles = np.zeros((d, GRID_EDGES - 1))
        for j in range(d):
            seen = slice(None) if b.observed is None else b.observed[:, j]
            x, v = b.x[seen, j].astype(np.float64), w[seen]
            if v.sum() > 0:
                order = np.argsort(x, kind="stable")
                at = np.searchsorted(np.cumsum(v[order]), np.linspace(0, 1, GRID_EDGES + 1)[1:-1] * v.sum())
                quantiles[j] = x[order][np.minimum(at, len(x) - 1)]
        return Grid(np.zeros((0, d, GRID_EDGES)), quantiles)

    def names(self, d: int) -> dict[str, Any]:
        """Also the number of edges."""
        return super().names(d) | {"g": GRID_EDGES}

    def sought(self, frame: Any) -> float:
        """What finding the medians may gain."""
        return float(frame.sought)

    def enter(self, frame: Any, b: Block) -> Block:
        """The rows."""
        self.check(sp.issparse(b.x))
        return b

    def framed(self, frame: Any, centers: np.ndarray) -> Any:
        """The quantiles, and each centre."""
        wide = np.broadcast_to(frame.quantiles, (len(centers), *frame.quantiles.shape))
        return frame._replace(edges=np.sort(np.concatenate([wide, centers[..., None]], axis=2), axis=2))

    def pairs(self, x: Any, observed: Any, centers: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
        """Σ |x − u| over the observed cells."""
        out = np.empty((len(x), len(centers)), x.dtype)
        for k, u in enumerate(centers.astype(x.dtype, copy=False)):
            away = np.abs(x - u)
            out[:, k] = away.sum(axis=1) if observed is None else (away * observed).sum(axis=1)
        return out

    def costs(self, U: Parts, b: Block) -> np.ndarray:
        """Σ |x − u| over the observed cells."""
        return self.pairs(b.x, b.observed, U.centers)

    def shown(self, costs: np.ndarray) -> np.ndarray:
        """The distance itself."""
        return costs

    def cost_of(self, shown: float) -> float:
        """The distance itself."""
        return shown

    def length(self, moves: np.ndarray) -> np.ndarray:
        """Σ |Δu|."""
        return np.asarray(np.abs(moves).sum(axis=1))

    def half_apart(self, centers: np.ndarray) -> np.ndarray:
        """½ min Σ |u_k − u_j|, less rounding."""
        if len(centers) == 1:
            return np.zeros(1)
        from scipy.spatial.distance import cdist

        apart = cdist(centers, centers, "cityblock")
        np.fill_diagonal(apart, np.inf)
        return np.asarray(0.5 * apart.min(axis=1) * (1 - (centers.shape[1] + 8) * np.finfo(np.float64).eps))

    def nearest(self, U: Parts, b: Block) -> tuple[Rows, Any]:
        """Nearest centres by bounds and distances; sums over the bins."""
        from unmix.kernels import kmeans_manhattan

        known, z = b.z is not None, rows_of(b)
        path, drift, _, half = U.scratch
        if b.observed is not None:
            half = np.zeros_like(half)  # the way may lead through unseen columns
        columns = np.ascontiguousarray(U.centers.T.astype(np.float64))
        eps = float(np.finfo(b.x.dtype).eps)
        kmeans_manhattan.nearest(b.x, seen_of(b), columns, path, drift, half, eps, known, *z)
        return z, self.sums(U, b, z)

    def sums(self, U: Parts, b: Block, z: Rows) -> Any:
        """Sums over the bins of each cluster."""
        from unmix.kernels import kmeans_manhattan

        w = np.empty(0) if b.w is None else b.w
        path, edges = U.scratch.path, U.frame.edges
        return Bins(*kmeans_manhattan.sums(b.x, seen_of(b), U.centers, edges, z.label, w, path, z.upper))

    def _edges(self, U: Parts, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """The cost of each edge, and where the present centre is among them."""
        edges = U.frame.edges
        weight, total = np.cumsum(stats.weight, axis=2), np.cumsum(stats.total, axis=2)
        steps = edges - U.centers[..., None]
        cost = steps * (2 * weight[..., :-1] - weight[..., -1:]) - 2 * total[..., :-1] + total[..., -1:]
        return cost, np.abs(steps).argmin(axis=2)[..., None]

    def best(self, U: Parts, stats: Any) -> np.ndarray:
        """The best edges."""
        cost, own = self._edges(U, stats)
        at = cost.argmin(axis=2)[..., None]
        lowest = np.take_along_axis(cost, at, 2)
        better = (lowest < np.take_along_axis(cost, own, 2)) & (stats.weight.sum(axis=2, keepdims=True) > 0)
        return np.where(better, np.take_along_axis(U.frame.edges, at, 2), U.centers[..., None])[..., 0]

    def left(self, U: Parts, stats: Any, centers: np.ndarray) -> np.ndarray:
        """The costs at the best edges."""
        return np.maximum(self._edges(U, stats)[0].min(axis=2), 0.0).sum(axis=1)

    def reframe(self, U: Parts, stats: Any, centers: np.ndarray) -> Any:
        """The next grid: around where the weight passes one half."""
        edges, weight = U.frame.edges, np.cumsum(stats.weight, axis=2)
        cost, _ = self._edges(U, stats)
        whole = weight[..., -1]
        at = np.minimum((weight < 0.5 * whole[..., None]).sum(axis=2), GRID_EDGES)[..., None]
        inside = np.maximum(np.take_along_axis(stats.weight, at, 2)[..., 0], 1e-300)
        mean = U.centers + np.take_along_axis(stats.total, at, 2)[..., 0] / inside
        low = np.take_along_axis(edges, np.maximum(at - 1, 0), 2)[..., 0]
        high = np.take_along_axis(edges, np.minimum(at, GRID_EDGES - 1), 2)[..., 0]
        low = np.where(at[..., 0] == 0, high - 4 * np.abs(high - mean), low)  # the outer bins have one edge
        high = np.where(at[..., 0] == GRID_EDGES, low + 4 * np.abs(mean - low), high)
        mean = np.clip(mean, low, high)
        spread = np.maximum(cost.min(axis=2), 0.0) / np.maximum(whole, 1e-300)
        width = np.maximum(high - low, 1e-6 * spread)
        cuts = [low + (high - low) * i / (CUTS_INSIDE + 1) for i in range(CUTS_INSIDE + 2)]
        reach = np.maximum(spread / np.maximum(width, 1e-300), 1.0)
        steps = [width * reach ** (i / STEPS_OUTSIDE) for i in range(1, STEPS_OUTSIDE + 1)]
        new = np.stack([centers, mean, *cuts, *(low - s for s in steps), *(high + s for s in steps)], axis=2)
        fresh = self.framed(U.frame, centers).edges
        new = np.sort(np.where((whole > 0)[..., None], new, fresh), axis=2)
        rounding = ROUNDING * np.maximum(np.abs(high), np.abs(U.centers))
        found = high - mean <= np.maximum(1e-9 * spread, rounding)  # a bin has its right edge: one value is left
        sought = float(np.where(found, 0.0, inside * (high - low)).sum() / max(float(stats.N.sum()), 1e-300))
        return U.frame._replace(edges=rounded(new, U.eps), sought=sought)

    def beside(
        self, center: np.ndarray, k: int, stats: Any, left: float, turn: int, rng: np.random.Generator, share: float
    ) -> np.ndarray:
        """A small way off in every column."""
        return center + share * left / (max(stats.N[k], 1e-300) * len(center)) * rng.standard_normal(len(center))

    def variations(self, U: Parts, stats: Any) -> tuple[float, float | None]:
        """The median of all rows is not a function of those of the clusters."""
        return float(stats.V.sum()), None


def seen_of(b: Block) -> np.ndarray:
    """The mask of observed cells, empty when they all are."""
    return np.empty((0, 0), bool) if b.observed is None else b.observed
