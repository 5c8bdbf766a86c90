"""k-means:  X ≈ Z U,  each row of Z picks one row of U.

local    z_i = argmin_k ‖x_i − u_k‖²                          [over the observed cells of row i]
stats    N_k = Σ_{z_i=k} w_i     A_k = Σ_{z_i=k} w_i x_i     V_k = Σ_{z_i=k} w_i ‖x_i − u_k‖²
         H_kj = the part of N_k whose cell j was not observed
update   u_kj = A_kj / (N_k − H_kj)                           [where nothing was observed, u_kj stays]

An *empty cluster* can go anywhere without making the objective worse. It goes beside the mean of the cluster with the
most variation left, V_k − Σ_j (N_k − H_kj)(Δu_kj)², a small way in a direction drawn by a fixed seed: so the next pass
cuts that cluster in two.

*Bounds.* Row i keeps an upper bound on the distance to its centre and a lower bound on that to any other. When centres
move, ‖x − u_k‖ changes by at most ‖Δu_k‖; U keeps how far each centre has moved (`path`) and, for each, the
farthest that any other has moved, pass by pass (`drift`). The upper bound is kept less `path`, the lower one plus
`drift`, so bounds of any earlier pass hold, and where they leave no doubt no distance is computed. Nor is it where a
row is nearer to its centre than half the distance from there to the next (`half`). Bounds decide no label: labels,
sums and loss have the same bits without them.

Other metrics change what the rows are, what ‖·‖ is and what the best centre is (`metrics/`); the rest stays. First
centres are in `_starts.py`, k-means|| in `_scalable.py`, limits on the sizes of clusters in `_limits.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.cluster import _starts
from unmix.cluster._example import round_clusters
from unmix.cluster._limits import check_limits, within_limits
from unmix.cluster._parts import Events, Parts, Scratch, unmoved
from unmix.cluster._scalable import KMeansParallel
from unmix.cluster._whiten import Whiten
from unmix.cluster.metrics import METRICS, Metric
from unmix.cluster.metrics.base import Rows, rounded
from unmix.engine import layout
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes, Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Geometry, Groups, Space
from unmix.model.peer import Peer
from unmix.model.starved import scarce, starved

SPARSE_BLOCK_ROWS = 4096  # at least
DENSE_BLOCK_ROWS, DENSE_BLOCK_BYTES = 2048, 32 << 20  # at least this many rows, unless they take more bytes than that
REFILL_STEP = 0.1  # of a cluster's width, from its centre to that of an empty cluster
SMALL = 1 << 21  # products of a pass, up to which all distances are made anew
GROW_STEP = 0.5  # the same, to that of an additional cluster
ANY_GAIN = np.finfo(float).tiny  # a goal that any gain is above, where more passes are wanted
NEGLIGIBLE_VARIATION = 1e-12  # of the data's variance: a cluster with no more than that is not cut


class KMeans(ClusterMixin, Groups, Geometry, Model):
    """Clusters around centres.

    Minimises Σ_i w_i min_k ‖x_i − u_k‖², or another distance.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    init : str, array of shape (n_clusters, d) or callable, default="k-means++"
        First centres. Large data are sampled first, except by "k-means||".

        - "k-means++": rows drawn far apart (of several candidates each time the one that helps most);
        - "k-means||": the same for data of any size, by six passes over all rows, whose result does not depend on
          how the rows are cut;
        - "random": rows drawn at random;
        - "partition": the means of a random partition of the rows;
        - "spread": the mean, then row by row in random order those at least `apart` from all centres so far;
        - these centres, or what `init(X, n_clusters, random_state)` returns.
    n_init : int or "auto", default="auto"
        Starts, of which the best is kept; "auto" is 10 for "random", "partition" and callables, else 1.
    max_iter : int, default=300
        Maximum number of passes over the data.
    tol : float, default=1e-4
        Stop when the squared moves of the centres in a pass sum to no more than tol · v, v the mean variance of the
        columns; and where no label changes.
    verbose : int, default=0
        Above 0, print a line for each pass.
    random_state : int, RandomState instance or None, default=None
        Seed of the first centres.
    copy_x : bool, default=True
        No effect here: X is never changed.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        No effect here: both give the same centres, and bounds on distances are kept where they pay.
    metric : {"euclidean", "cosine", "mahalanobis", "manhattan", "hamming"}, default="euclidean"
        What is minimised, summed over rows: the squared distance; 1 − cos of rows and centres scaled to length one (a
        row of zeros counts 1); the squared distance by the inverse covariance of the data; Σ_j |x_j − u_j|, whose
        centres are medians; the number of cells that differ, for cells of 0 and 1, whose centres are majorities.
        Missing cells do not count, except that "cosine" refuses them. CSR rows: "euclidean", "cosine", "hamming".
    metric_params : dict or None, default=None
        For "mahalanobis": `{"VI": array of shape (d, d)}`, the inverse covariance in place of that of the data.
    apart : float or None, default=None
        The minimum distance between centres of `init="spread"`, as `transform` gives distances. None: half the distance
        of the last of `n_clusters` centres that are each put as far as possible from those before; then there are
        enough such rows.
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
        The same for one cluster of all rows; not for "manhattan", where it is not a function of sums.
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
    double = True
    tied = ("init", "min_size", "max_size")
    peer = Peer(
        "sklearn.cluster",
        "cluster_centers_ labels_ inertia_",
        more=lambda model: {"_n_threads": 1, "_n_features_out": len(model.cluster_centers_)},
        refusal=lambda model: (
            ""
            if model.metric == "euclidean"
            else f"scikit-learn's KMeans has no metric={model.metric!r}, only euclidean"
        ),
    )

    degrees: ClassVar[dict[str, int | None]] = {  # of euclidean distances
        "init": 1, "apart": 1, "cluster_centers_": 1, "inertia_": 2, "within_variation_": 2, "between_variation_": 2,
        "total_variation_": 2, "transform": 1,
    }  # fmt: skip

    cluster_centers_: Annotated[np.ndarray, Array("k d")]
    labels_: Annotated[np.ndarray, Array("n", "i", 0, "k-1", maybe=True)]
    inertia_: float
    within_variation_: float
    total_variation_: Annotated[float, Array(kind="x", maybe=True)]
    between_variation_: Annotated[float, Array(kind="x", maybe=True)]

    small: bool = False  # while a fit runs: all distances are made anew in every pass
    forgetful: bool = True  # online: clusters may starve, and users are told

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "k-means||", "random", "partition", "spread"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "copy_x": ["boolean"],
        "algorithm": [StrOptions({"lloyd", "elkan"})],
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
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
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
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.metric = metric
        self.metric_params = metric_params
        self.apart = apart
        self.min_size = min_size
        self.max_size = max_size

    @property
    def _metric(self) -> Metric:
        return METRICS[self.metric]

    @property
    def _limited(self) -> bool:
        return self.min_size is not None or self.max_size is not None

    # ---------------------------------------------------------------- start

    def at(self, shape: Shape) -> Any:
        """A working copy, which knows whether bounds would save less than they cost."""
        copy = super().at(shape)
        copy.small = shape.n * shape.d * self.n_clusters <= SMALL
        copy.stateful, copy.forgetful = not copy.small, shape.online
        return copy

    def check(self, shape: Shape) -> None:
        """Refuse more clusters than rows, first centres of another shape, and sizes that cannot be."""
        _starts.check_start(self.init, self.n_clusters, self.n_init, shape)
        self._metric.check(shape.sparse)
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn("algorithm='elkan' doesn't make sense for a single cluster", RuntimeWarning, stacklevel=2)
        if self._limited:
            check_limits(self.min_size, self.max_size, self.n_clusters, shape)

    def starts(self) -> int:
        """As `n_init` says; given centres need one."""
        return _starts.restarts(self.init, self.n_init)

    @property
    def power(self) -> int:  # type: ignore[override]
        """That of distances in the objective."""
        return self._metric.power

    def sizes(self, shape: Shape) -> Sizes:
        """Large blocks: statistics are as large as the centres, and kernels cut blocks to fit the cache."""
        dense = min(DENSE_BLOCK_ROWS, DENSE_BLOCK_BYTES // (shape.d * shape.dtype.itemsize))
        rows = max(4 * layout.block_rows(shape), SPARSE_BLOCK_ROWS if shape.sparse else dense)
        return Sizes(shape.n if self._limited else rows, _starts.sample_rows(self.init, self.n_clusters, shape))

    def stages(self, shape: Shape) -> list[Stage]:
        """The covariance of all rows where `start` sees some of them; k-means||; then passes of this model."""
        sampled = (self.sizes(shape).sample or 0) < shape.n
        whiten = [Whiten(self)] if self.metric == "mahalanobis" and not self.metric_params and sampled else []
        parallel = [KMeansParallel(self)] if isinstance(self.init, str) and self.init == "k-means||" else []
        return [*whiten, *parallel, self]

    def start(self, before: Parts | None, data: Block, rng: np.random.Generator) -> Parts:
        """First centres, and the origin and scale of the data, unless an earlier stage found them."""
        if before is not None:
            return before
        metric, k, eps = self._metric, self.n_clusters, float(np.finfo(data.x.dtype).eps)
        cloud = _starts.cloud_of(data, metric, self.metric_params or {})
        centers = _starts.first_centers(self.init, k, data, cloud, metric, rng, self.apart)
        if metric.power == 1:
            centers = rounded(centers, eps)
        frame = metric.framed(cloud.frame, centers)
        return Parts(centers, cloud.mean, cloud.variance, eps, frame, unmoved(len(centers)), Events())

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts | None:
        """The centres of a fit, and one more beside that of the cluster that varies most."""
        if not more:
            return None
        metric, U, N, V = self._metric, fit.U, fit.stats.N, fit.stats.V
        widest = int(np.argmax(V))
        new = metric.beside(U.centers[widest], widest, fit.stats, V[widest], len(N), rng, GROW_STEP)
        return metric.at(U, rounded(np.vstack([U.centers, new]), U.eps if metric.power == 1 else 0.0))

    def described(self, U: Any, data: Any) -> Described:
        """As the metric needs it."""
        names = self._metric.names(self.shape.d) | {"k": self.n_clusters}
        return Described(Parts, self._metric.kinds[1], Rows, names)

    # ---------------------------------------------------------------- local, stats

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest centres by bounds and distances; sums over the rows of each. Labels are published, bounds are not."""
        metric = self._metric
        entered = metric.enter(U.frame, b)
        if self._limited:
            z, stats = within_limits(metric, U, entered, self.min_size, self.max_size, self.shape.n)
        else:
            z, stats = metric.nearest(U, entered)
        return Local(z.label if b.closing else z, stats, metric.share * float(stats.V.sum()))

    # ---------------------------------------------------------------- update

    def update(self, U: Parts, stats: Any) -> Parts:
        """The best centres for these rows; empty clusters cut the one that varies most."""
        metric = self._metric
        centers = metric.best(U, stats)
        events = self._refill(U, stats, centers) if stats.N.min() <= 0 else Events(tried=U.events.tried)
        if metric.power == 1:
            centers = rounded(centers, U.eps)
        frame = metric.reframe(U, stats, centers)
        moves = metric.length(centers - U.centers)
        few = scarce(stats.N) if self.forgetful else 0
        events = events._replace(moved=float((moves**metric.power).sum()), scarce=few)
        return U._replace(centers=centers, frame=frame, scratch=self._moved(U, centers, moves), events=events)

    def _refill(self, U: Parts, stats: Any, centers: np.ndarray) -> Events:
        """Put the centres of empty clusters beside those with the most variation left, in place."""
        metric, N = self._metric, stats.N
        left, empty, refilled = metric.left(U, stats, centers), np.flatnonzero(N <= 0), 0
        for k in empty:
            widest = int(np.argmax(left))
            if left[widest] <= NEGLIGIBLE_VARIATION * N[widest] * U.variance:
                break
            turn = U.events.tried + refilled
            rng = np.random.default_rng(turn)
            centers[k] = metric.beside(centers[widest], widest, stats, left[widest], turn, rng, REFILL_STEP)
            left[widest] /= 2
            refilled += 1
        return Events(refilled, U.events.tried + refilled, len(empty) - refilled)

    def _moved(self, U: Parts, centers: np.ndarray, moves: np.ndarray) -> Scratch:
        """How far the centres have moved, and how far apart they are: what bounds need."""
        if self.small:
            return U.scratch
        metric = self._metric
        size = np.maximum(metric.length(centers), metric.length(U.centers))
        moved = np.where(moves > 0, moves + U.eps * (size + moves), 0.0)  # they are rounded to the data's precision
        others = np.full(len(moved), moved.max())
        others[moved.argmax()] = np.delete(moved, moved.argmax()).max(initial=0.0)
        half = metric.half_apart(centers - U.shift) - U.eps * size.max()
        return Scratch(U.scratch.path + moved, U.scratch.drift + others, moved, half)

    def goal(self, U: Parts, first: float) -> float | bool:
        """Done when the centres have moved by no more than `tol` times the mean variance of a column, in all.

        Not while a cluster was just refilled, nor while medians are sought that matter. A pass that gains nothing is
        the end in any case: then rounding alone moves the centres.
        """
        far = self.tol * float(U.variance)
        if U.events.refilled or self._metric.sought(U.frame) > self._metric.share * far / self.n_clusters:
            return False
        return True if U.events.moved <= far else ANY_GAIN if self.tol > 0 else 0.0

    def notes(self, U: Parts) -> list[str]:
        """Clusters that no row is left for, and those that online steps have nearly forgotten."""
        empty, k, out = U.events.empty, self.n_clusters, []
        if empty:
            out.append(
                f"Number of distinct clusters ({k - empty}) found smaller than n_clusters ({k}): X has only about "
                f"{k - empty} distinct rows"
            )
        return out + starved(U.events.scarce - empty, k, "clusters", self.shape.online)

    # ---------------------------------------------------------------- what users see

    def publish(self, fit: Fit) -> None:
        """Centres, labels and inertia."""
        self.cluster_centers_ = self._metric.leave(fit.U.frame, fit.U.centers).copy()
        self.inertia_ = float(fit.loss)
        within, total = self._metric.variations(fit.U, fit.stats)
        self.within_variation_ = within / fit.shape.weight
        for name in ("total_variation_", "between_variation_"):
            self.__dict__.pop(name, None)
        if total is not None:
            weight = fit.shape.weight
            self.total_variation_, self.between_variation_ = total / weight, (total - within) / weight
        self.__dict__.pop("labels_", None)
        if fit.z is not None:
            self.labels_ = fit.z

    @property
    def space(self) -> Space:
        """Rows by the metric; medians and majorities minimise plain distances, and only lengths make clouds."""
        squared = self.metric in ("euclidean", "mahalanobis", "cosine")
        return Space(self.metric, squared, clouds=self.metric in ("euclidean", "mahalanobis", "manhattan"))

    def centers(self) -> np.ndarray:
        """`cluster_centers_`."""
        return self.cluster_centers_

    def distances(self, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Rows and the metric; by the covariance of the fit the rows in whose space distances are Euclidean."""
        if self.metric == "mahalanobis":
            return self._metric.enter(self.parts.frame, Block(x)).x, "euclidean"
        return x, self.metric

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the centres."""
        metric = self._metric
        return metric.shown(metric.costs(U, metric.enter(U.frame, b))).astype(b.x.dtype, copy=False)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest centre, whatever limits the fit kept."""
        z, _ = self._metric.nearest(U, self._metric.enter(U.frame, b._replace(z=None, w=None)))
        return z.label

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """The nearest centre of each row of distances."""
        out: np.ndarray = self._metric.leave(U.frame, U.centers)[z.argmin(axis=1)]
        return out

    def for_new_rows(self) -> Any:
        """Limits are for the rows of the fit."""
        return super().for_new_rows().set_params(min_size=None, max_size=None)

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
            raise ValueError(
                "metric='manhattan': medians are not sums, so partial_fit cannot continue from them; use fit"
            )
        if self._limited:
            raise ValueError("min_size and max_size are about all rows, and partial_fit sees only some: use fit")
        return super().partial_fit(X, y, sample_weight, rate=rate)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit the model and return `labels_`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of int32 of shape (n,)
        """
        return self.fit(X, y, sample_weight=sample_weight).labels_  # type: ignore[no-any-return]

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
            Labels; or distances, as `transform` gives them, of which the smallest counts. (Memberships mix the centres:
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
        return -self.loss_of(X, sample_weight)[0]

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[KMeans, np.ndarray, Callable[[Any], None]]:
        """Four round clusters of different sizes, apart by many times their width."""
        X, found = round_clusters(rng)
        return cls(4, random_state=0), X, found
