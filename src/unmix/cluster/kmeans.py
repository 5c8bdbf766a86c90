"""k-means:  X ≈ Z U,  each row of Z picks one row of U.

local    z_i = argmin_k ‖x_i − u_k‖²                          [over the observed cells of row i]
stats    N_k = Σ_{z_i=k} w_i     A_k = Σ_{z_i=k} w_i x_i     V_k = Σ_{z_i=k} w_i ‖x_i − u_k‖²
         H_kj = the part of N_k whose cell j was not observed
update   u_kj = A_kj / (N_k − H_kj)                           [where nothing was observed, u_kj stays]

An *empty cluster* can go anywhere without making the objective worse. It goes beside the mean of the cluster with the
most variation left, V_k − Σ_j (N_k − H_kj)(Δu_kj)², a small way in a direction drawn by a fixed seed: so the next pass
cuts that cluster in two.

*Bounds.* Row i keeps an upper bound on the distance to its centre and a lower bound on that to any other. When centres
move, ‖x − u_k‖ changes by at most ‖Δu_k‖; U counts the way that each centre has come (`path`) and, for each, the
longest that any other has come, pass by pass (`drift`). The upper bound is kept less `path`, the lower one plus
`drift`, so bounds of any earlier pass hold, and where they leave no doubt no distance is computed. Nor is it where a
row is nearer to its centre than half the way from there to the next (`half`). Bounds decide no label: labels, sums and
loss have the same bits without them.

Other metrics change what the rows are, what ‖·‖ is and what the best centre is (`_metrics.py`); the rest stays.

*k-means||.* Round by round every row is drawn with probability min(1, l w_i D_i²/φ), D_i its distance to the nearest
candidate so far, φ = Σ w_i D_i², l = 2K. Row i's random number is a function of the seed, the round and i alone, and φ
is a sum of integers, so the draw does not depend on how rows are cut into blocks. Then the candidates, each with the
weight of the rows nearest to it, are thinned out to K by k-means++.

*Limits* on the sizes of clusters make the local step a minimum-cost flow over all rows at once (one block).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.cluster._metrics import (
    METRICS,
    Rows,
    Stats,
    half_apart,
    moments,
    rounded,
    rows_of,
    whitening,
)
from unmix.engine import layout
from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.maths.distances import dense, squares
from unmix.maths.seeding import plus_plus
from unmix.model import Model

ROUNDS = 5  # of k-means||
UNITS = 1 << 44  # parts of a unit in which its φ is summed


class Parts(NamedTuple):
    """U: the centres, how far they have come, and the scale of the data."""

    centers: np.ndarray
    path: np.ndarray  # Σ over passes of ‖Δu_k‖
    drift: np.ndarray  # Σ over passes of max_{j≠k} ‖Δu_j‖
    moved: np.ndarray  # ‖Δu_k‖ of the last pass
    half: np.ndarray  # ½ min_{j≠k} ‖u_k − u_j‖ at least
    shift: np.ndarray  # about the mean of the data: fixed
    variance: float  # mean over the columns of the data (for medians: mean deviation): fixed
    eps: float  # rounding of the data's precision
    refilled: int  # empty clusters that the last update filled
    tried: int  # the same, summed over all updates
    empty: int  # empty clusters that nothing was left for
    frame: Any = ()  # what the metric needs beside


class Turn(NamedTuple):
    """A round of k-means||: the candidates so far as centres, and what the random numbers depend on."""

    parts: Parts
    key: int
    number: int
    unit: float
    wanted: float


class KMeans(ClusterMixin, Model):
    """Clusters around centres: minimise Σ_i w_i min_k ‖x_i − u_k‖², or another distance.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    init : str, array of shape (n_clusters, d) or callable, default="k-means++"
        First centres. Large data are sampled first, but for "k-means||".

        - "k-means++": rows drawn far apart (of several candidates each time the one that helps most);
        - "k-means||": the same for data of any size, by five passes over all rows, whose result does not depend on
          how the rows are cut;
        - "random": rows drawn at random;
        - "partition": the means of a random partition of the rows;
        - "spread": the mean, then row by row in random order those at least `apart` from all centres so far;
        - these centres, or what `init(X, n_clusters, random_state)` returns.
    n_init : int or "auto", default="auto"
        Starts, of which the best is kept; "auto" is 10 for "random", "partition" and callables, else 1.
    max_iter : int, default=300
        The most passes over the data.
    tol : float, default=1e-4
        Stop when a pass improves the mean squared distance by no more than tol · v / n_clusters, v the mean variance of
        the columns: about where the squared moves of all centres sum to tol · v.
    random_state : int, RandomState instance or None, default=None
        Seed of the first centres.
    metric : {"euclidean", "cosine", "mahalanobis", "manhattan", "hamming"}, default="euclidean"
        What is minimised, summed over rows: the squared distance; 1 − cos of rows and centres scaled to length one (a
        row of zeros counts 1); the squared distance by the inverse covariance of the data; Σ_j |x_j − u_j|, whose
        centres are medians; the number of cells that differ, for cells of 0 and 1, whose centres are majorities.
        Missing cells do not count, except that "cosine" refuses them. CSR rows: "euclidean", "cosine", "hamming".
    metric_params : dict or None, default=None
        For "mahalanobis": `{"VI": array of shape (d, d)}`, the inverse covariance in place of that of the data.
    apart : float or None, default=None
        The least distance between centres of `init="spread"`, as `transform` gives distances. None: half the distance
        of the last of `n_clusters` centres that are each put as far as can be from those before; then there are enough
        such rows.
    min_size, max_size : int or None, default=None
        Limits on the rows of each cluster in `fit`, whose local step is then the best assignment within them (a
        minimum-cost flow): for data in memory, without weights. `labels_` keep the limits; `predict` gives the nearest
        centre.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
        The centres.
    labels_ : ndarray of int32 of shape (n,)
        The cluster of each row.
    inertia_ : float
        What is minimised: the weighted sum of squared distances to the centres, or of what `metric` says.
    within_variation_ : float
        The same per row, about the best centres for the final labels (means, majorities).
    total_variation_ : float
        The same for one cluster of all rows; not for "manhattan", where no sums tell it.
    between_variation_ : float
        Their difference: for "euclidean" Σ_k N_k ‖mean_k − mean‖² / Σ_k N_k.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import KMeans
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[2] != model.labels_[3])
    True
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    """

    sparse = True
    missing = True
    stateful = True
    collect = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "k-means||", "random", "partition", "spread"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "metric": [StrOptions(set(METRICS))],
        "metric_params": [dict, None],
        "apart": [Interval(Real, 0, None, closed="neither"), None],
        "min_size": [Interval(Integral, 1, None, closed="left"), None],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        metric: str = "euclidean",
        metric_params: dict[str, Any] | None = None,
        apart: float | None = None,
        min_size: int | None = None,
        max_size: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.metric = metric
        self.metric_params = metric_params
        self.apart = apart
        self.min_size = min_size
        self.max_size = max_size

    @property
    def _metric(self) -> Any:
        return METRICS[self.metric]

    @property
    def _limits(self) -> bool:
        return self.min_size is not None or self.max_size is not None

    # ---------------------------------------------------------------- start

    def check(self, shape: Shape) -> None:
        """Refuse more clusters than rows, first centres of another shape, and sizes that cannot be."""
        if shape.n < self.n_clusters:
            raise ValueError(f"n_samples={shape.n} should be >= n_clusters={self.n_clusters}: ask for fewer clusters")
        if shape.sparse and self.metric in ("mahalanobis", "manhattan"):
            raise TypeError(f"metric={self.metric!r} needs dense data. Use '.toarray()' to convert it to dense.")
        if self._limits:
            self._check_limits(shape)
        init = self.init
        if not isinstance(init, str) and not callable(init):
            self._check_centers(init, shape.d)

    def _check_limits(self, shape: Shape) -> None:
        n, k, least, most = shape.n, self.n_clusters, self.min_size, self.max_size
        if least is not None and least * k > n:
            raise ValueError(f"min_size={least} × n_clusters={k} is more than the {n} rows: at most {n // k} can be")
        if most is not None and most * k < n:
            raise ValueError(
                f"max_size={most} × n_clusters={k} is less than the {n} rows: at least {-(-n // k)} must be"
            )
        if least is not None and most is not None and least > most:
            raise ValueError(f"min_size={least} is above max_size={most}")
        if not shape.in_memory:
            raise ValueError("min_size and max_size need all rows in memory: pass an array, or leave them out")
        needed, budget = 16 * n * k, get_config().budget
        if needed > budget:
            raise ValueError(
                f"min_size and max_size need the distances of {n} rows to {k} centres, {needed:.1e} bytes, of "
                f"{budget:.1e} allowed: fit a sample of the rows, or raise memory_budget"
            )

    def _check_centers(self, centers: Any, d: int) -> np.ndarray:
        array = np.array(centers.toarray() if sp.issparse(centers) else centers, dtype=np.float64)
        if array.shape != (self.n_clusters, d):
            raise ValueError(f"init has shape {array.shape}: centres for these data have shape {(self.n_clusters, d)}")
        if not np.isfinite(array).all():
            raise ValueError("init holds values that are not finite: give centres without NaN or infinity")
        return array

    def restarts(self) -> int:
        """Given centres need one start; "auto" is scikit-learn's."""
        init = self.init
        if not isinstance(init, str) and not callable(init):
            return 1
        if self.n_init == "auto":
            return 1 if init in ("k-means++", "k-means||", "spread") else 10
        return int(self.n_init)

    def block_rows(self, shape: Shape) -> int:
        """More than most: statistics are as large as the centres, and the kernels cut blocks to fit the cache."""
        if self._limits:
            return shape.n
        least = 4096 if shape.sparse else min(2048, (32 << 20) // (shape.d * shape.dtype.itemsize))
        return max(4 * layout.block_rows(shape), least)

    def sample_rows(self, shape: Shape) -> int:
        """Enough rows that each cluster has its share, and where none are drawn, that the columns' variance shows."""
        if not isinstance(self.init, str) and not callable(self.init):
            return min(shape.n, 1 << 12)
        return min(layout.sample_rows(shape), max(1 << 14, 128 * self.n_clusters))

    def keep(self, z: Rows) -> np.ndarray:
        """Labels are published, bounds are not."""
        return z.label

    def start(self, sample: Block, rng: np.random.Generator) -> Parts:
        """First centres, and the origin and scale of the data."""
        metric = self._metric
        size = float(abs(sample.x).max())
        if size > 1e150 or 0 < size < 1e-150:
            raise ValueError(f"X reaches {size:.0e}: squares of that are beyond float64. Divide X by {size:.0e} first.")
        frame = metric.frame(sample, self.metric_params or {})
        b = metric.filled(frame, sample)
        x, seen, w = b.x, b.observed, np.ones(b.x.shape[0]) if b.w is None else b.w
        count = np.maximum(w.sum() if seen is None else w @ seen, np.finfo(float).tiny)
        shift = np.asarray(w @ x, dtype=np.float64) / count
        if sp.issparse(x):
            centered, origin = x.astype(np.float64), np.zeros_like(shift)
            variance = np.asarray(w @ centered.power(2)) / count - shift**2
        else:
            centered, origin = x - shift, shift
            if seen is not None:
                centered[~seen] = 0.0
            variance = w @ np.abs(centered) ** metric.power / count
        spread = float(np.mean(np.maximum(variance, 0.0)))
        chosen = self.init
        if callable(chosen):
            state = np.random.RandomState(rng.integers(2**31))
            rows = sample.x
            if sample.observed is not None:
                ones = np.ones(len(rows)) if sample.w is None else sample.w
                mean = ones @ rows / np.maximum(ones @ sample.observed, np.finfo(float).tiny)
                rows = np.where(sample.observed, rows, mean)
            given = self._check_centers(chosen(rows, self.n_clusters, random_state=state), rows.shape[1])
            centers = metric.enter_centers(frame, given)
        elif not isinstance(chosen, str):
            centers = metric.enter_centers(frame, self._check_centers(chosen, sample.x.shape[1]))
        elif chosen == "partition":
            centers = metric.project(partition(centered, seen, w, self.n_clusters, shift - origin, rng) + origin)
        elif chosen == "spread":
            first = metric.project(shift[None]) - origin
            least = None if self.apart is None else metric.cost_of(self.apart)
            index = spread_out(centered, seen, w, self.n_clusters, first, least, metric, rng)
            if len(index) < self.n_clusters - 1:
                raise ValueError(
                    f"init='spread': only {len(index) + 1} of {self.n_clusters} centres are apart={self.apart} from "
                    "each other: make it less, or leave it out"
                )
            centers = metric.project(np.vstack([first, dense(centered[index])]) + origin)
        else:
            if chosen == "random":
                repeat = bool(np.count_nonzero(w) < self.n_clusters)
                index = rng.choice(len(w), self.n_clusters, replace=repeat, p=w / w.sum())
            else:  # single precision is enough to draw by, if the numbers are about 1
                scaled = (centered * (spread ** (-1 / metric.power) if spread > 0 else 1.0)).astype(np.float32)
                index = plus_plus(scaled, seen, w, self.n_clusters, rng, metric.pairs)
            centers = metric.project(dense(centered[index]) + origin)
        none, eps = np.zeros(self.n_clusters), float(np.finfo(x.dtype).eps)
        if metric.power == 1:
            centers = rounded(centers, eps)
        frame = metric.framed(frame, centers)
        return Parts(centers, none, none, none, none, shift, spread, eps, 0, 0, 0, frame)

    def grow(self, fit: Fit, rng: np.random.Generator) -> Parts:
        """The centres of a fit, and one more beside that of the cluster that varies most."""
        U, N, V = fit.U, fit.stats.N, fit.stats.V
        widest = int(np.argmax(V))
        new = self._metric.beside(U.centers[widest], widest, fit.stats, V[widest], len(N), rng, 0.5)
        return self._at(U, rounded(np.vstack([U.centers, new]), U.eps if self._metric.power == 1 else 0.0))

    def _at(self, U: Parts, centers: np.ndarray) -> Parts:
        """Parts with these centres, which no pass has seen."""
        none = np.zeros(len(centers))
        frame = self._metric.framed(U.frame, centers)
        return Parts(centers, none, none, none, none, U.shift, U.variance, U.eps, 0, 0, 0, frame)

    # ---------------------------------------------------------------- passes before the first

    def seek(self, U: Parts, visit: Callable[[str, Any], Iterator[Any]], rng: np.random.Generator) -> Parts:
        """The covariance of all rows where `start` saw some of them; the rounds of k-means||."""
        if self.metric == "mahalanobis" and not self.metric_params and self.sample_rows(self._shape) < self._shape.n:
            U = self._whiten(U, visit)
        if not (isinstance(self.init, str) and self.init == "k-means||"):
            return U
        metric, wanted, key = self._metric, 2.0 * self.n_clusters, int(rng.integers(2**63))
        unit = U.variance * U.centers.shape[1] or 1.0
        chosen = U.centers[:1]
        for number in range(ROUNDS):
            phi, ranks, rows = 0, np.empty(0), np.empty((0, U.centers.shape[1]))
            for more, new_ranks, new_rows in visit("draw", Turn(self._at(U, chosen), key, number, unit, wanted)):
                phi += more
                ranks, rows = np.concatenate([ranks, new_ranks]), np.concatenate([rows, new_rows])
                kept = ranks * (phi / UNITS) < wanted
                ranks, rows = ranks[kept], rows[kept]
            chosen = np.concatenate([chosen, metric.project(rows)])
        weight = np.sum(list(visit("weigh", self._at(U, chosen))), axis=0)
        scaled = ((chosen - U.shift) * (U.variance ** (-1 / metric.power) if U.variance > 0 else 1.0)).astype(
            np.float32
        )
        return self._at(U, chosen[plus_plus(scaled, None, weight, self.n_clusters, rng, metric.pairs)])

    def draw(self, turn: Turn, b: Block) -> tuple[int, np.ndarray, np.ndarray]:
        """φ of a block in whole UNITS; rank u/(wD²) and cells of each row with rank < l/φ, as of the block alone.

        φ of all rows is more, so the rows to be drawn are among these.
        """
        U, metric = turn.parts, self._metric
        z, _ = metric.nearest(U, metric.enter(U.frame, b._replace(z=None)))
        share = z.upper**metric.power / turn.unit * (1.0 if b.w is None else b.w)
        whole = np.floor(np.minimum(share, float(UNITS)))
        phi = int(whole.astype(np.int64).sum()) * UNITS + int(
            ((share - whole).clip(0, 1) * UNITS).astype(np.int64).sum()
        )
        bits = np.random.Philox(key=turn.key + (turn.number << 64))
        bits.advance(b.start // 4)  # four numbers at a time
        uniform = np.random.Generator(bits).random(b.start % 4 + len(share))[b.start % 4 :]
        rank = np.where(share > 0, uniform / np.where(share > 0, share, 1.0), 1e300)
        index = np.flatnonzero(rank * (phi / UNITS) < turn.wanted)
        entered = metric.filled(U.frame, b)
        x = dense(entered.x[index]).astype(np.float64)
        if entered.observed is not None:
            x = np.where(entered.observed[index], x, U.shift)
        return phi, rank[index], x

    def weigh(self, U: Parts, b: Block) -> np.ndarray:
        """The weight of the rows nearest to each centre."""
        N: np.ndarray = self._metric.nearest(U, self._metric.enter(U.frame, b._replace(z=None)))[1].N
        return N

    def _whiten(self, U: Parts, visit: Callable[[str, Any], Iterator[Any]]) -> Parts:
        """The whitening of all rows in place of that of the sample."""
        metric, origin = self._metric, U.frame.origin.astype(self._shape.dtype).astype(np.float64)
        frame = whitening(origin, np.asarray(sum(visit("moments", U))))
        new = metric.enter_centers(frame, metric.leave(U.frame, np.vstack([U.centers, U.shift])))
        return self._at(U._replace(shift=new[-1], variance=1.0 if frame.white.any() else 0.0, frame=frame), new[:-1])

    def moments(self, U: Parts, b: Block) -> np.ndarray:
        """Moments of a block about the origin."""
        return moments(b, U.frame.origin.astype(np.float64))

    # ---------------------------------------------------------------- local, stats

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest centres by bounds and distances; sums over the rows of each."""
        metric = self._metric
        entered = metric.enter(U.frame, b)
        z, stats = self._within_limits(U, entered) if self._limits else metric.nearest(U, entered)
        return Local(z, stats, metric.share * float(stats.V.sum()))

    def _within_limits(self, U: Parts, b: Block) -> tuple[Rows, Any]:
        """The best assignment of all rows that keeps the limits."""
        from unmix.kernels import kmeans_limits

        n = b.x.shape[0]
        if b.w is not None:
            raise ValueError("min_size and max_size count rows: leave sample_weight out, or give the rows repeatedly")
        if n != self._shape.n:
            raise ValueError(
                f"min_size and max_size need all {self._shape.n} rows in one block, here are {n}: leave block_rows out"
            )
        costs = self._metric.costs(U, b._replace(x=b.x.astype(np.float64)))
        z = rows_of(b._replace(z=None))
        z.label[:] = kmeans_limits.assign(costs, self.min_size or 0, self.max_size or n)
        z.lower[:] = 0.0  # no bound
        return z, self._metric.sums(U, b, z)

    # ---------------------------------------------------------------- update

    def update(self, U: Parts, stats: Any) -> Parts:
        """The best centres for these rows; empty clusters cut the one that varies most."""
        metric, N = self._metric, stats.N
        centers, left = metric.best(U, stats)
        empty, refilled = np.flatnonzero(N <= 0), 0
        for k in empty:
            widest = int(np.argmax(left))
            if left[widest] <= 1e-12 * N[widest] * U.variance:
                break
            turn = U.tried + refilled
            rng = np.random.default_rng(turn)
            centers[k] = metric.beside(centers[widest], widest, stats, left[widest], turn, rng, 0.1)
            left[widest] /= 2
            refilled += 1
        if metric.power == 1:
            centers = rounded(centers, U.eps)
        size = np.maximum(metric.length(centers), metric.length(U.centers))
        moved = metric.length(centers - U.centers)
        moved = np.where(moved > 0, moved + U.eps * (size + moved), 0.0)  # they are rounded to the data's precision
        others = np.full(len(moved), moved.max())
        others[moved.argmax()] = np.delete(moved, moved.argmax()).max(initial=0.0)
        return U._replace(
            centers=centers,
            path=U.path + moved,
            drift=U.drift + others,
            moved=moved,
            half=metric.half_apart(centers - U.shift) - U.eps * size.max(),
            refilled=refilled,
            tried=U.tried + refilled,
            empty=len(empty) - refilled,
            frame=metric.reframe(U, stats, centers),
        )

    def unit(self, U: Parts, first: float) -> float:
        """What the mean squared distance gains when the centres move by the mean variance of a column, in all."""
        return float(self._metric.share * U.variance / self.n_clusters)

    def settled(self, U: Parts) -> bool | None:
        """Not while a cluster was just refilled, nor while medians are sought that matter."""
        sought = getattr(U.frame, "sought", 0.0)
        return False if U.refilled or sought > self.tol * self.unit(U, 0.0) else None

    def notes(self, U: Parts) -> list[str]:
        """Clusters that no row is left for."""
        if not U.empty:
            return []
        found = self.n_clusters - U.empty
        return [f"{U.empty} of {self.n_clusters} clusters are empty: the rows have {found} distinct values or so"]

    # ---------------------------------------------------------------- what users see

    def publish(self, fit: Fit) -> None:
        """Centres, labels and inertia."""
        self.cluster_centers_ = self._metric.leave(fit.U.frame, fit.U.centers).copy()
        self.inertia_ = float(fit.loss)
        within, total = self._metric.variations(fit.U, fit.stats)
        self.within_variation_ = within / fit.weight
        for name in ("total_variation_", "between_variation_"):
            self.__dict__.pop(name, None)
        if total is not None:
            self.total_variation_, self.between_variation_ = total / fit.weight, (total - within) / fit.weight
        self.__dict__.pop("labels_", None)
        if fit.z is not None:
            self.labels_ = fit.z

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the centres."""
        metric = self._metric
        out: np.ndarray = metric.shown(metric.costs(U, metric.enter(U.frame, b)))
        return out

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest centre, whatever limits the fit kept."""
        z: Rows = self._metric.nearest(U, self._metric.enter(U.frame, b._replace(z=None, w=None)))[0]
        return z.label

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """The nearest centre, of rows of distances."""
        out: np.ndarray = self._metric.leave(U.frame, U.centers)[z.argmin(axis=1)]
        return out

    def _worker(self) -> Any:
        """Limits are for the rows of the fit."""
        bare = super()._worker()
        bare.min_size = bare.max_size = None
        return bare

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, rate: float | None = None) -> Any:
        """Take one online step: stats ← (1 − ρ) stats + ρ (n/|b|) stats_b, then the centres from them.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; X is the new batch of rows.
        rate : float in (0, 1], optional
            The weight ρ of this batch; by default it falls from step to step.

        Returns
        -------
        self
        """
        if self.metric == "manhattan":
            raise ValueError("metric='manhattan': medians are no sums, so partial_fit has none to go on from; use fit")
        if self._limits:
            raise ValueError("min_size and max_size are about all rows, and partial_fit sees some: use fit")
        return super().partial_fit(X, y, sample_weight, rate=rate)

    def compress(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows as numbers of centres, and the centres: a code and its book.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        codes : ndarray of shape (n,)
            The nearest centre of each row, in the smallest unsigned integers that can hold it.
        codebook : ndarray of shape (n_clusters, d)
        """
        codes = self.predict(X)
        return codes.astype(np.min_scalar_type(len(self.cluster_centers_) - 1)), self.cluster_centers_.copy()

    def decompress(self, codes: Any) -> np.ndarray:
        """Return the centres that codes stand for.

        Parameters
        ----------
        codes : array of int of shape (n,)
            What `compress` or `predict` returned.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        check_is_fitted(self)
        label, k = np.asarray(codes), len(self.cluster_centers_)
        if label.ndim != 1 or label.dtype.kind not in "iu" or label.min(initial=0) < 0 or label.max(initial=0) >= k:
            raise ValueError(f"labels must be integers from 0 to {k - 1}: give what predict or compress returns")
        out: np.ndarray = self.cluster_centers_[label]
        return out

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the centres that labels or rows of `transform` stand for.

        Parameters
        ----------
        X : array of int of shape (n,), or array of shape (n, n_clusters)
            Labels; or distances, as `transform` gives them, of which the least counts. (Memberships mix the centres:
            `Z @ model.cluster_centers_`.)

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        return self.decompress(X) if np.ndim(X) == 1 and not isinstance(X, str) else super().inverse_transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances (or of what `metric` says) to the nearest centre.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        mean = super().score(X, y, sample_weight)
        return mean * self._open(X, sample_weight, reset=False)[2].weight

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[KMeans, np.ndarray, Callable[[Any], None]]:
        """Four round clusters of different sizes, apart by many times their width."""
        truth = np.array([[0.0, 0, 0, 5], [6, 0, 0, 0], [0, 6, 0, -5], [0, 0, 6, 0]])
        label = np.repeat(np.arange(4), (30, 60, 90, 120))
        X = truth[label] + 0.5 * rng.standard_normal((len(label), 4))

        def found(model: Any) -> None:
            apart = np.sqrt(((truth[:, None] - model.cluster_centers_) ** 2).sum(-1))
            assert apart.min(axis=1).max() < 0.5, "a planted centre was not found"
            assert len(set(apart.argmin(axis=1))) == len(truth), "two planted centres share one that was found"

        return cls(4, random_state=0), X, found


def partition(
    x: Any, observed: np.ndarray | None, w: np.ndarray, k: int, mean: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The means of a random partition into k parts as equal as can be; `mean` where nothing was observed."""
    n = x.shape[0]
    groups = sp.csr_array((w, (rng.permutation(n) % k, np.arange(n))), shape=(k, n))
    count = np.asarray(groups.sum(axis=1))[:, None] if observed is None else groups @ observed.astype(np.float64)
    return np.where(count > 0, dense(groups @ x) / np.where(count > 0, count, 1.0), mean)


def spread_out(
    x: Any,
    observed: np.ndarray | None,
    w: np.ndarray,
    k: int,
    first: np.ndarray,
    least: float | None,
    metric: Any,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows, in random order, that cost at least `least` seen from the first centre and from all before: k − 1, if any.

    None: a quarter of what the last costs when each is the farthest. Then each of those is within less than half of
    their distance of a centre, and no two of the same: so there are k.
    """
    weight = w if observed is None else w * observed.any(axis=1)
    order = rng.permutation(np.flatnonzero(weight > 0))
    rows, seen = x[order], None if observed is None else observed[order].astype(x.dtype)
    own, start = squares(rows), metric.pairs(rows, seen, first)[:, 0]

    def nearer(near: np.ndarray, i: int) -> np.ndarray:
        return np.minimum(near, metric.pairs(rows, seen, dense(rows[[i]]), own)[:, 0])

    def traverse(least: float) -> list[int]:
        found: list[int] = []
        near, at = start, 0
        while len(found) < k - 1 and (near[at:] >= least).any():
            at += int(np.argmax(near[at:] >= least))
            found.append(at)
            near, at = nearer(near, at), at + 1
        return found

    if least is not None:
        return np.asarray(order[traverse(least)])
    near, far = start, np.inf
    for _ in range(k - 1):
        i = int(np.argmax(near))
        far, near = float(near[i]), nearer(near, i)
    least = (1 - 1e-6) * far / 2**metric.power if k > 1 else 0.0
    index = traverse(least)
    while len(index) < min(k - 1, len(order)):  # with missing cells there is no triangle inequality
        least = least / 4 if least > 1e-9 * far else 0.0
        index = traverse(least)
    return np.asarray(order[np.resize(index, k - 1)] if index else rng.choice(order, k - 1))


__all__ = ["KMeans", "Parts", "Rows", "Stats", "half_apart", "plus_plus"]
