"""What "near" and "centre" mean in k-means: one class for each metric.

A metric maps rows to where clusters are sought (`enter`), finds the nearest centres there and their statistics
(`nearest`), gives the best centres for these (`best`), and maps centres back (`leave`). Euclidean, cosine, Mahalanobis
and Hamming share the kernels: rows of length one have ‖x − u‖² = 2(1 − cos), whitened rows have Mahalanobis' distance,
and ‖x − u‖² counts the cells that differ where all cells are 0 or 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.maths.distances import squared_distances, squares

EDGES = 15  # of the grid that a median is sought on
INSIDE, OUTSIDE = 5, 3


class Stats(NamedTuple):
    """Sums per cluster; `holes` is 0 where every cell was observed."""

    N: np.ndarray
    A: np.ndarray
    V: np.ndarray
    holes: np.ndarray | float


class Bins(NamedTuple):
    """Sums per cluster, and per bin of its grid: Σw(x − u) and Σw."""

    N: np.ndarray
    total: np.ndarray
    V: np.ndarray
    weight: np.ndarray


class Rows(NamedTuple):
    """z: the cluster of each row, and its bounds."""

    label: np.ndarray
    upper: np.ndarray  # distance to the own centre − path
    lower: np.ndarray  # at most the distance to any other centre + drift


class Euclidean:
    """‖x − u‖²; the best centre is the mean of the observed cells."""

    name = "euclidean"
    share = 1.0  # of V in the loss
    power = 2  # of the distance that bounds are about, in V

    def frame(self, sample: Block, params: dict[str, Any]) -> Any:
        """What `enter` needs, fixed before the first pass."""
        if params:
            raise ValueError(f"metric_params={sorted(params)}: metric={self.name!r} has none, leave them out")
        return ()

    def enter(self, frame: Any, b: Block) -> Block:
        """The rows where clusters are sought."""
        return b

    def filled(self, frame: Any, b: Block) -> Block:
        """The same for the first centres to be drawn from."""
        return self.enter(frame, b)

    def enter_centers(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres that a user gave."""
        return self.project(centers)

    def leave(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres as a user wants them."""
        return centers

    def project(self, centers: np.ndarray) -> np.ndarray:
        """The nearest that a centre can be."""
        return centers

    def reframe(self, U: Any, stats: Any, centers: np.ndarray) -> Any:
        """What `enter` and `nearest` need in the next pass."""
        return U.frame

    def framed(self, frame: Any, centers: np.ndarray) -> Any:
        """The same for centres that no pass has seen."""
        return frame

    # -- distances --

    def pairs(self, x: Any, observed: Any, centers: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
        """Terms of V for all rows and centres."""
        return squared_distances(x, observed, centers, own)

    def costs(self, U: Any, b: Block) -> np.ndarray:
        """The same for a block that has entered, with care for rounding."""
        if sp.issparse(b.x):
            return squared_distances(b.x, None, U.centers)
        x = b.x - U.shift if b.observed is None else np.where(b.observed, b.x - U.shift, b.x.dtype.type(0))
        return squared_distances(x, b.observed, U.centers - U.shift)

    def shown(self, costs: np.ndarray) -> np.ndarray:
        """What `transform` gives, of costs."""
        return np.sqrt(costs, out=costs)

    def cost_of(self, shown: float) -> float:
        """The term of V that belongs to a distance as `transform` gives it."""
        return shown**2

    def length(self, moves: np.ndarray) -> np.ndarray:
        """How far each centre moved."""
        return np.asarray(np.sqrt((moves**2).sum(axis=1)))

    def half_apart(self, centers: np.ndarray) -> np.ndarray:
        """½ min_{j≠k} of the distance between centres, or a little less."""
        return half_apart(centers)

    # -- a pass --

    def nearest(self, U: Any, b: Block) -> tuple[Rows, Any]:
        """Nearest centres by bounds and distances; sums over the rows of each."""
        w = np.empty(0) if b.w is None else b.w
        known, z = b.z is not None, rows_of(b)
        bounds = float(np.finfo(b.x.dtype).eps), known, *z
        if sp.issparse(b.x) or b.observed is not None:
            from unmix.kernels import kmeans_cells

            cells = Cells(U, b)
            half = U.half if b.observed is None else np.zeros_like(U.half)  # the way may lead through unseen columns
            kmeans_cells.nearest(*cells.rows, cells.columns, *cells.rule, U.path, U.drift, half, *bounds)
            return z, self.sums(U, b, z, cells)
        from unmix.kernels import kmeans_dense

        power = -np.round(0.5 * np.log2(U.variance)) if U.variance > 0 else 0.0
        scale = b.x.dtype.type(2.0 ** (np.clip(power, -126, 126) if b.x.itemsize == 4 else power))
        moves = U.path, U.drift, U.moved, U.half
        N, A, V = kmeans_dense.lloyd(b.x, w, U.centers, U.shift, scale, *moves, *bounds)
        return z, Stats(N, A, V, 0.0)

    def sums(self, U: Any, b: Block, z: Rows, cells: Cells | None = None) -> Any:
        """Sums over the rows of each cluster, whatever the labels are; sets the upper bounds."""
        from unmix.kernels import kmeans_cells

        w = np.empty(0) if b.w is None else b.w
        if cells is None:
            whole = sp.issparse(b.x) or b.observed is not None
            cells = Cells(U, b if whole else b._replace(observed=np.ones(b.x.shape, bool)))
        N, A, V, seen = kmeans_cells.sums(*cells.rows, U.centers, *cells.rule, z.label, w, U.path, z.upper)
        return Stats(N, A, V, 0.0 if b.observed is None else N[:, None] - seen)

    def best(self, U: Any, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """The best centres for these rows, and what is then left of V in each cluster."""
        N, A, V, holes = stats
        count = N[:, None] - holes
        known = count > 1e-9 * N[:, None]
        centers = np.where(known, A / np.where(known, count, 1.0), U.centers)
        return centers, np.where(N > 0, V - (count * (centers - U.centers) ** 2).sum(axis=1), 0.0)

    def beside(
        self, center: np.ndarray, k: int, stats: Any, left: float, turn: int, rng: np.random.Generator, share: float
    ) -> np.ndarray:
        """A centre a small way from that of cluster k, so that the next pass cuts the cluster in two."""
        way = rng.standard_normal(len(center))
        step = share * np.sqrt(left / (max(stats.N[k], 1e-300) * len(center)))
        return np.asarray(center + step * way / np.linalg.norm(way))

    def variations(self, U: Any, stats: Any) -> tuple[float, float | None]:
        """What is left of the loss within clusters, and what it is with one cluster; None where nobody knows."""
        N, A, V, holes = stats
        count = N[:, None] - holes + np.zeros_like(A)
        one = A.sum(axis=0) / np.maximum(count.sum(axis=0), 1e-300)
        centers = np.where(count > 1e-9 * N[:, None], A / np.where(count > 0, count, 1.0), one)
        within = float(V.sum() - (count * (np.where(count > 0, U.centers, 0.0) - centers) ** 2)[count > 0].sum())
        return within, within + float((count * (centers - one) ** 2).sum())


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
            raise ValueError("init holds a centre of zeros, which has no direction: metric='cosine' needs one")
        return self.project(centers)

    def project(self, centers: np.ndarray) -> np.ndarray:
        """Length one; where the rows cancel, any direction is as good."""
        size = np.sqrt(squares(centers))[:, None]
        return np.where(size > 0, centers / np.where(size > 0, size, 1.0), 1.0 / np.sqrt(centers.shape[1]))

    def costs(self, U: Any, b: Block) -> np.ndarray:
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

    def nearest(self, U: Any, b: Block) -> tuple[Rows, Any]:
        """The same, and 1 more for each row of zeros, whose ‖x − u‖² is 1 and not 2."""
        z, stats = super().nearest(U, b)
        return z, self._right(b, z, stats)

    def sums(self, U: Any, b: Block, z: Rows, cells: Cells | None = None) -> Any:
        """As for `nearest`."""
        stats = super().sums(U, b, z, cells)
        return stats if cells is not None else self._right(b, z, stats)

    def _right(self, b: Block, z: Rows, stats: Stats) -> Stats:
        none = np.diff(b.x.indptr) == 0 if sp.issparse(b.x) else ~b.x.any(axis=1)
        if sp.issparse(b.x):
            none |= squares(b.x) == 0
        w = none * 1.0 if b.w is None else none * b.w
        return stats._replace(V=stats.V + np.bincount(z.label, w, minlength=len(stats.N))) if none.any() else stats

    def best(self, U: Any, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """Sums scaled to length one."""
        size = np.sqrt(squares(stats.A))
        known = size > 1e-12 * stats.N
        centers = np.where(known[:, None], stats.A / np.where(known, size, 1.0)[:, None], U.centers)
        return centers, np.where(stats.N > 0, stats.V + 2 * (stats.A * (U.centers - centers)).sum(axis=1), 0.0)

    def beside(self, *args: Any) -> np.ndarray:
        """The same, on the sphere."""
        return self.project(super().beside(*args)[None])[0]

    def variations(self, U: Any, stats: Any) -> tuple[float, float | None]:
        """Σw − Σ_k ‖A_k‖, and Σw − ‖Σ_k A_k‖."""
        weight = stats.N.sum()
        return float(weight - np.sqrt(squares(stats.A)).sum()), float(weight - np.linalg.norm(stats.A.sum(axis=0)))


class Whitening(NamedTuple):
    """y = (x − origin) white;  x = origin + y back;  the distance is (x − u)ᵀ precision (x − u)."""

    origin: np.ndarray
    white: np.ndarray
    back: np.ndarray
    precision: np.ndarray


class Mahalanobis(Euclidean):
    """(x − u)ᵀ P (x − u), P the inverse covariance of the data: ‖y − v‖² of whitened rows.

    Of a row with missing cells, the least that the distance may be counts: that of the observed cells by the inverse of
    their own covariance. The row enters the mean with the cells that make it so. The covariance is then that of the
    complete rows, if they are five times as many as columns or more, else that of all rows that show both cells.
    """

    name = "mahalanobis"

    def frame(self, sample: Block, params: dict[str, Any]) -> Any:
        """The whitening, from `VI` or from the covariance of the sample."""
        if set(params) - {"VI"}:
            raise ValueError(f"metric_params={sorted(params)}: metric='mahalanobis' knows 'VI', the inverse covariance")
        if sp.issparse(sample.x):
            raise TypeError("metric='mahalanobis' needs dense data. Use '.toarray()' to convert it to dense.")
        weight = np.ones(len(sample.x)) if sample.w is None else sample.w
        count = weight.sum() if sample.observed is None else weight @ sample.observed
        origin = weight @ sample.x.astype(np.float64) / np.maximum(count, 1e-300)
        sums = moments(sample, origin)
        if "VI" not in params:
            return whitening(origin, sums)
        d, P = sample.x.shape[1], np.array(params["VI"], dtype=np.float64)
        if P.shape != (d, d) or not np.isfinite(P).all() or not np.allclose(P, P.T, rtol=1e-6):
            raise ValueError(
                f"metric_params['VI'] of shape {P.shape}: give a symmetric {d}×{d} matrix of finite numbers"
            )
        value, vector = np.linalg.eigh((P + P.T) / 2)
        if value[0] <= 1e-14 * value[-1]:
            raise ValueError(f"metric_params['VI'] has the eigenvalue {value[0]:.1e}: give a positive definite matrix")
        mean, _ = mean_and_covariance(origin, sums)
        return Whitening(mean, vector * np.sqrt(value), (vector / np.sqrt(value)).T, P)

    def enter(self, frame: Any, b: Block) -> Block:
        """Whitened rows; those with missing cells come later, when their centre is known."""
        if sp.issparse(b.x):
            raise TypeError("metric='mahalanobis' needs dense data. Use '.toarray()' to convert it to dense.")
        if b.observed is not None:
            return b
        return b._replace(x=((b.x - frame.origin) @ frame.white).astype(b.x.dtype, copy=False))

    def filled(self, frame: Any, b: Block) -> Block:
        """Whitened rows, missing cells as the mean of the data lets expect them."""
        if b.observed is None:
            return self.enter(frame, b)
        label = np.zeros(len(b.x), np.int32)
        x = self._fill(frame, frame.origin[None].astype(np.float64), b, label)
        return b._replace(x=((x - frame.origin) @ frame.white).astype(b.x.dtype), observed=None)

    def enter_centers(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Whitened centres."""
        return np.asarray((centers - frame.origin) @ frame.white)

    def leave(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres among the rows."""
        return np.asarray(frame.origin + centers @ frame.back)

    def costs(self, U: Any, b: Block) -> np.ndarray:
        """Squared distances; with missing cells pattern by pattern."""
        if b.observed is None:
            return super().costs(U, b)
        centers = self.leave(U.frame, U.centers).astype(np.float64)
        out = np.zeros((len(b.x), len(centers)), b.x.dtype)
        for rows, seen in patterns(b.observed):
            _, factor = conditional(U.frame.precision, seen)
            y, v = b.x[np.ix_(rows, seen)] - U.frame.origin[seen], centers[:, seen] - U.frame.origin[seen]
            out[rows] = squared_distances(y @ factor, None, v @ factor)
        return out

    def nearest(self, U: Any, b: Block) -> tuple[Rows, Any]:
        """As Euclidean; rows with missing cells by all distances."""
        if b.observed is None:
            return super().nearest(U, b)
        z = rows_of(b._replace(z=None))
        z.label[:] = self.costs(U, b).argmin(axis=1)
        z.lower[:] = 0.0  # no bound
        return z, self.sums(U, b, z)

    def sums(self, U: Any, b: Block, z: Rows, cells: Cells | None = None) -> Any:
        """As Euclidean, of filled rows."""
        if b.observed is not None:
            x = self._fill(U.frame, self.leave(U.frame, U.centers).astype(np.float64), b, z.label)
            b = b._replace(x=((x - U.frame.origin) @ U.frame.white).astype(b.x.dtype), observed=None)
        return super().sums(U, b, z, cells)

    def _fill(self, frame: Any, centers: np.ndarray, b: Block, label: np.ndarray) -> np.ndarray:
        """Rows whose missing cells make them as near to their centres as can be."""
        x = b.x.astype(np.float64)
        for rows, seen in patterns(b.observed):
            slope, _ = conditional(frame.precision, seen)
            u = centers[label[rows]]
            x[np.ix_(rows, ~seen)] = u[:, ~seen] + (x[np.ix_(rows, seen)] - u[:, seen]) @ slope
        return x


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
            raise ValueError("init holds centres that are not 0 or 1: metric='hamming' needs such")
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

    def best(self, U: Any, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """The majority; where it is a tie, what it was."""
        ones, zeros = self._votes(stats)
        tie = np.abs(ones - zeros) <= 1e-12 * stats.N[:, None]
        centers = np.where(tie, U.centers, (ones > zeros).astype(np.float64))
        return centers, np.where(centers > 0, zeros, ones).sum(axis=1)

    def _votes(self, stats: Any) -> tuple[np.ndarray, np.ndarray]:
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

    def variations(self, U: Any, stats: Any) -> tuple[float, float | None]:
        """Cells that differ from the majority of the cluster, and from that of all rows."""
        ones, zeros = self._votes(stats)
        one = np.minimum(ones.sum(axis=0), zeros.sum(axis=0)).sum()
        return float(np.minimum(ones, zeros).sum()), float(one)


class Grid(NamedTuple):
    """For each cluster and column the edges on which the median is sought; quantiles of each column, to begin with."""

    edges: np.ndarray
    quantiles: np.ndarray
    sought: float = 0.0  # at most what the objective per row may gain when the medians are found


class Manhattan(Euclidean):
    """Σ_j |x_j − u_j|; the best centre is the median, which is no sum over rows. But the cost of a centre is:

        c(e) = Σ_{x ≤ e} w(e − x) + Σ_{x > e} w(x − e)

    needs only the weight and the sum of the cells in the bins between the edges e of a grid. The present centre is one
    of them, so the best never makes the objective worse. The median is in the bin where the weight passes one half: the
    next grid cuts that bin, has its mean (the median itself when it is the only value left there), and reaches out to
    the width of the cluster in geometric steps, since rows may move.
    """

    name = "manhattan"
    power = 1

    def frame(self, sample: Block, params: dict[str, Any]) -> Any:
        """Quantiles of the columns."""
        super().frame(sample, params)
        b, d = self.enter((), sample), sample.x.shape[1]
        w = np.ones(len(b.x)) if b.w is None else b.w
        quantiles = np.zeros((d, EDGES - 1))
        for j in range(d):
            seen = slice(None) if b.observed is None else b.observed[:, j]
            x, v = b.x[seen, j].astype(np.float64), w[seen]
            if v.sum() > 0:
                order = np.argsort(x, kind="stable")
                at = np.searchsorted(np.cumsum(v[order]), np.linspace(0, 1, EDGES + 1)[1:-1] * v.sum())
                quantiles[j] = x[order][np.minimum(at, len(x) - 1)]
        return Grid(np.zeros((0, d, EDGES)), quantiles)

    def enter(self, frame: Any, b: Block) -> Block:
        """The rows."""
        if sp.issparse(b.x):
            raise TypeError("metric='manhattan' needs dense data. Use '.toarray()' to convert it to dense.")
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

    def costs(self, U: Any, b: Block) -> np.ndarray:
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

    def nearest(self, U: Any, b: Block) -> tuple[Rows, Any]:
        """Nearest centres by bounds and distances; sums over the bins."""
        from unmix.kernels import kmeans_manhattan

        known, z = b.z is not None, rows_of(b)
        half = U.half if b.observed is None else np.zeros_like(U.half)
        columns = np.ascontiguousarray(U.centers.T.astype(np.float64))
        eps = float(np.finfo(b.x.dtype).eps)
        kmeans_manhattan.nearest(b.x, seen_of(b), columns, U.path, U.drift, half, eps, known, *z)
        return z, self.sums(U, b, z)

    def sums(self, U: Any, b: Block, z: Rows, cells: Cells | None = None) -> Any:
        """Sums over the bins of each cluster."""
        from unmix.kernels import kmeans_manhattan

        w = np.empty(0) if b.w is None else b.w
        return Bins(*kmeans_manhattan.sums(b.x, seen_of(b), U.centers, U.frame.edges, z.label, w, U.path, z.upper))

    def _edges(self, U: Any, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """The cost of each edge, and where the present centre is among them."""
        edges = U.frame.edges
        weight, total = np.cumsum(stats.weight, axis=2), np.cumsum(stats.total, axis=2)
        steps = edges - U.centers[..., None]
        cost = steps * (2 * weight[..., :-1] - weight[..., -1:]) - 2 * total[..., :-1] + total[..., -1:]
        return cost, np.abs(steps).argmin(axis=2)[..., None]

    def best(self, U: Any, stats: Any) -> tuple[np.ndarray, np.ndarray]:
        """The best edges."""
        cost, own = self._edges(U, stats)
        at = cost.argmin(axis=2)[..., None]
        lowest = np.take_along_axis(cost, at, 2)
        better = (lowest < np.take_along_axis(cost, own, 2)) & (stats.weight.sum(axis=2, keepdims=True) > 0)
        centers = np.where(better, np.take_along_axis(U.frame.edges, at, 2), U.centers[..., None])[..., 0]
        return centers, np.maximum(lowest[..., 0], 0.0).sum(axis=1)

    def reframe(self, U: Any, stats: Any, centers: np.ndarray) -> Any:
        """The next grid: around where the weight passes one half."""
        edges, weight = U.frame.edges, np.cumsum(stats.weight, axis=2)
        cost, _ = self._edges(U, stats)
        whole = weight[..., -1]
        at = np.minimum((weight < 0.5 * whole[..., None]).sum(axis=2), EDGES)[..., None]
        inside = np.maximum(np.take_along_axis(stats.weight, at, 2)[..., 0], 1e-300)
        mean = U.centers + np.take_along_axis(stats.total, at, 2)[..., 0] / inside
        low = np.take_along_axis(edges, np.maximum(at - 1, 0), 2)[..., 0]
        high = np.take_along_axis(edges, np.minimum(at, EDGES - 1), 2)[..., 0]
        low = np.where(at[..., 0] == 0, high - 4 * np.abs(high - mean), low)  # the outer bins have one edge
        high = np.where(at[..., 0] == EDGES, low + 4 * np.abs(mean - low), high)
        mean = np.clip(mean, low, high)
        spread = np.maximum(cost.min(axis=2), 0.0) / np.maximum(whole, 1e-300)
        width = np.maximum(high - low, 1e-6 * spread)
        cuts = [low + (high - low) * i / (INSIDE + 1) for i in range(INSIDE + 2)]
        steps = [width * (np.maximum(spread / np.maximum(width, 1e-300), 1.0)) ** (i / OUTSIDE) for i in (1, 2, 3)]
        new = np.stack([centers, mean, *cuts, *(low - s for s in steps), *(high + s for s in steps)], axis=2)
        fresh = self.framed(U.frame, centers).edges
        new = np.sort(np.where((whole > 0)[..., None], new, fresh), axis=2)
        found = high - mean <= 1e-9 * np.maximum(np.abs(high), spread)  # a bin has its right edge: one value is left
        sought = float(np.where(found, 0.0, inside * (high - low)).sum() / max(float(stats.N.sum()), 1e-300))
        return U.frame._replace(edges=rounded(new, U.eps), sought=sought)

    def beside(
        self, center: np.ndarray, k: int, stats: Any, left: float, turn: int, rng: np.random.Generator, share: float
    ) -> np.ndarray:
        """A small way off in every column."""
        return center + share * left / (max(stats.N[k], 1e-300) * len(center)) * rng.standard_normal(len(center))

    def variations(self, U: Any, stats: Any) -> tuple[float, float | None]:
        """The median of all rows is no function of those of the clusters."""
        return float(stats.V.sum()), None


METRICS: dict[str, Any] = {m.name: m() for m in (Euclidean, Cosine, Mahalanobis, Manhattan, Hamming)}


class Cells:
    """The cells of a block that count, as the kernel wants them."""

    def __init__(self, U: Any, b: Block) -> None:
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


def rows_of(b: Block) -> Rows:
    """What the last pass left, as a copy, or room for it."""
    n = b.x.shape[0]
    return Rows(*(v.copy() for v in b.z)) if b.z is not None else Rows(np.zeros(n, np.int32), np.empty(n), np.empty(n))


def seen_of(b: Block) -> np.ndarray:
    """The mask of observed cells, empty when they all are."""
    return np.empty((0, 0), bool) if b.observed is None else b.observed


def rounded(a: np.ndarray, eps: float) -> np.ndarray:
    """Numbers that the data's precision holds."""
    return a.astype(np.float32).astype(np.float64) if eps > 1e-10 else a


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


# ---------------------------------------------------------------- covariances


def moments(b: Block, origin: np.ndarray) -> np.ndarray:
    """Σw, Σw x and Σw x xᵀ about the origin: each over the rows that show both cells, and over the complete rows."""
    x = b.x.astype(np.float64) - origin
    w = (np.ones(len(x)) if b.w is None else b.w)[:, None]
    if b.observed is None:
        first = np.repeat((w * x).sum(axis=0)[:, None], len(origin), axis=1)
        sums = np.stack([np.full_like(first, w.sum()), first, (w * x).T @ x])
        return np.stack([sums, sums])
    out = []
    for seen in (b.observed, np.repeat(np.all(b.observed, axis=1, keepdims=True), len(origin), axis=1)):
        y = np.where(seen, x, 0.0)
        out.append(np.stack([(seen * w).T @ seen, (y * w).T @ seen, (y * w).T @ y]))
    return np.stack(out)


def mean_and_covariance(origin: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the complete rows, if there are enough, since they agree with each other; else cell by cell."""
    count, first, second = sums[1 if sums[1, 0].max() >= 5 * len(origin) else 0]
    count = np.maximum(count, 1e-300)
    first = first / count
    return origin + np.diagonal(first), second / count - first * first.T


def whitening(origin: np.ndarray, sums: np.ndarray) -> Whitening:
    """From moments; directions in which nothing varies are left out."""
    mean, covariance = mean_and_covariance(origin, sums)
    value, vector = np.linalg.eigh((covariance + covariance.T) / 2)
    some = value > len(value) * np.finfo(np.float64).eps * max(value[-1], 1e-300)
    root, vector = np.sqrt(value[some]), vector[:, some]
    white, back = vector / root, (vector * root).T
    if not some.any():
        white, back = np.zeros((len(value), 1)), np.zeros((1, len(value)))
    return Whitening(mean, white, back, white @ white.T)


def patterns(observed: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows of each pattern of observed cells."""
    kinds, which = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    return [(order[a:b], seen) for a, b, seen in zip([0, *ends], ends, kinds, strict=False)]


def conditional(precision: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How missing cells follow the observed ones, and F with F Fᵀ the precision of the observed cells alone."""
    P = precision.astype(np.float64)
    between, hidden = P[np.ix_(seen, ~seen)], P[np.ix_(~seen, ~seen)]
    slope = -between @ np.linalg.pinv(hidden, hermitian=True) if hidden.size else np.zeros_like(between)
    alone = P[np.ix_(seen, seen)] + slope @ between.T
    value, vector = np.linalg.eigh((alone + alone.T) / 2) if alone.size else (np.zeros(0), alone)
    return slope, vector * np.sqrt(np.maximum(value, 0.0))
