"""k-medoids:  clusters around rows of the data, for any distance D.

local    z_i = argmin_k D(x_i, m_k)                    loss_i = D(x_i, m_k)
stats    N_k = Σ_{z_i=k} w_i     V_k = Σ_{z_i=k} w_i D(x_i, m_k)
update   none: a swap of a medoid for a row needs all pairs of rows, so medoids are found in rounds on the matrix of all
         distances (`_swaps.py`)

Labels and loss come from differences x − m in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.cluster._distances import EUCLIDEAN, LENGTHS, METRICS, Distance, find, negative, refuse_negative
from unmix.cluster._swaps import SAMPLES, Parts, Swaps
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Geometry, Groups, Space


class Stats(NamedTuple):
    """Weight and loss of each cluster."""

    N: Annotated[np.ndarray, Array("k")]
    V: Annotated[np.ndarray, Array("k")]


class Rows(NamedTuple):
    """z: the cluster of each row, and the medoid that the row is (−1: none)."""

    label: Annotated[np.ndarray, Array("m", "i", 0, "k-1")]
    medoid: Annotated[np.ndarray, Array("m", "i", -1, "k-1")]


class KMedoids(ClusterMixin, Groups, Geometry, Model):
    """Clusters around typical rows, the medoids, by any distance.

    Minimises Σ_i w_i min_k D(x_i, m_k), where every m_k is a row of the data.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    metric : str or callable, default="euclidean"
        A distance that `sklearn.metrics.pairwise_distances` knows by name, a function of two rows, or "precomputed":
        X is then the symmetric matrix of the rows' distances in `fit`, and the distances of new rows to all rows of
        `fit` in `transform` and `predict`. With "euclidean", NaN means not observed: distances are over the cells that
        both rows have, scaled up to all cells (as scikit-learn's nan_euclidean); rows that share none are as far apart
        as two rows are on average; a row without any cell does not count.
    metric_params : dict, optional
        More arguments of the distance, as `{"p": 3}` for "minkowski".
    method : {"fasterpam", "alternate"}, default="fasterpam"
        Swaps until none helps; or rows to medoids and medoids to clusters in turn (Voronoi iteration).
    init : {"k-medoids++", "build", "random"} or array of int of shape (n_clusters,), default="k-medoids++"
        First medoids: rows drawn far apart; PAM's greedy choice (the best first row, then each time the row that helps
        most: slow, and FasterPAM hardly needs it); rows drawn at random; or these rows of X: then, unless there are
        samples, rows are looked at in the order of X.
    n_init : int, default=1
        Starts, of which the best is kept.
    max_iter : int, default=300
        Maximum number of rounds over the rows (where the medoids come from samples: also of samples).
    random_state : int, RandomState instance or None, default=None
        Seed of the first medoids and of the order in which rows are looked at.

    Attributes
    ----------
    medoid_indices_ : ndarray of int of shape (n_clusters,)
        The rows of X that are medoids.
    cluster_centers_ : ndarray of shape (n_clusters, d)
        Those rows; absent for "precomputed".
    labels_ : ndarray of int of shape (n,)
        The cluster of each row.
    inertia_ : float
        Weighted sum of the distances to the nearest medoid.

    Notes
    -----
    The matrix of distances, 4 n² bytes for n different rows, is made if it fits `unmix.config(memory_budget=…)`; else
    the medoids come from samples, and a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import KMedoids
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMedoids(n_clusters=2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.medoid_indices_.tolist()), model.inertia_
    ([0, 3], 8.0)
    """

    missing = True
    collect = True
    double = True
    tied = ("init",)
    exempt: ClassVar[dict[str, str]] = {
        "online": "medoids need all pairs of rows: a batch cannot change them",
    }

    degrees: ClassVar[dict[str, int | None]] = {"inertia_": 1, "cluster_centers_": 1, "transform": 1}

    cluster_centers_: Annotated[np.ndarray, Array("k d", "x", maybe=True)]
    labels_: Annotated[np.ndarray, Array("n", "i", 0, "k-1", maybe=True)]
    inertia_: float
    medoid_indices_: Annotated[np.ndarray, Array("k", "i", -1, "n-1", maybe=True)]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions(set(METRICS.split())), callable],
        "metric_params": [dict, None],
        "method": [StrOptions({"fasterpam", "alternate"})],
        "init": [StrOptions({"k-medoids++", "build", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        method: str = "fasterpam",
        init: Any = "k-medoids++",
        n_init: int = 1,
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.method = method
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    # ---------------------------------------------------------------- before the fit

    def check(self, shape: Shape) -> None:
        """Refuse more clusters than rows, a precomputed matrix that is not square, first medoids that are not rows."""
        K, n = self.n_clusters, shape.n
        if n < K:
            raise ValueError(f"n_samples={n} should be >= n_clusters={K}: ask for fewer clusters")
        if self.metric == "precomputed" and n != shape.d:
            raise ValueError(f"metric='precomputed' needs a square matrix of distances, not {n} × {shape.d}")
        self._distance.check()
        if not isinstance(self.init, str):
            first = np.asarray(self.init)
            if first.shape != (K,) or first.dtype.kind not in "iu":
                raise ValueError(f"init is an array of {first.dtype} {first.shape}: give {K} row indices (integers)")
            if first.min() < 0 or first.max() >= n or len(set(first.tolist())) < K:
                raise ValueError(f"init={first.tolist()}: give {K} different rows from 0 to {n - 1}")

    @property
    def power(self) -> int:  # type: ignore[override]
        """Given distances are added up as they are."""
        return 1 if self.metric == "precomputed" else 2

    @property
    def _distance(self) -> Distance:
        return Distance(self.metric, self.metric_params)

    def stages(self, shape: Shape) -> list[Stage]:
        """Rounds on all distances."""
        return [Swaps(self)]

    def starts(self) -> int:
        """Given medoids and PAM's greedy choice are one start."""
        return self.n_init if isinstance(self.init, str) and self.init != "build" else 1

    def _to_medoids(self, U: Parts, b: Block) -> np.ndarray:
        """Distances of a block's rows to the medoids."""
        if self.metric == "precomputed":
            out = b.x[:, U.medoids].astype(np.float64)
            if pair := negative(out):
                i, k = pair
                refuse_negative(out[i, k], b.start + i, U.medoids[k])
            return np.maximum(out, 0.0)
        return self._distance.between(U.frame, b.x, b.observed, U.centers, U.seen)

    def _nearest(self, D: np.ndarray, U: Parts, b: Block) -> np.ndarray:
        """The nearest medoid of each row, by these distances."""
        return self._distance.nearest(D, b.x, b.observed, U.centers, U.seen)

    # ---------------------------------------------------------------- the contract

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest medoids."""
        D = self._to_medoids(U, b)
        label = self._nearest(D, U, b)
        near = np.take_along_axis(D, label[:, None], axis=1)[:, 0]
        w = np.ones(len(near)) if b.w is None else b.w
        medoid = np.full(len(near), -1, np.int32)
        if b.closing and self.metric != "precomputed":
            rows = np.flatnonzero((w > 0) & np.isin(b.x[:, 0], U.centers[:, 0]))
            medoid[rows] = find(U.centers, U.seen, b.x[rows], None if b.observed is None else b.observed[rows])
        K = len(U.medoids)
        stats = Stats(np.bincount(label, w, K), np.bincount(label, w * near, K))
        return Local(Rows(label, medoid), stats, float(w @ near))

    def notes(self, U: Parts) -> list[str]:
        """Samples instead of all rows, too few distinct rows."""
        out = []
        if U.events.sampled:
            out.append(
                f"the matrix of distances exceeds the memory budget: medoids come from {SAMPLES} samples of "
                f"{U.events.sampled} rows, and all rows decided which are best; raise unmix.config(memory_budget=…) "
                "for more"
            )
        if 0 < U.events.distinct < self.n_clusters:
            out.append(f"only {U.events.distinct} distinct rows for {self.n_clusters} clusters: medoids are repeated")
        return out

    def described(self, U: Any, data: Any) -> Described:
        """The medoids' rows, none of a precomputed matrix; what the metric measures with."""
        self._distance.check()
        spread = {"mahalanobis": Annotated[np.ndarray, Array("d d")], "seuclidean": Annotated[np.ndarray, Array("d")]}
        given = self.metric_params or not isinstance(self.metric, str)
        kind = type(None) if given else spread.get(self.metric, type(None))
        columns = 0 if self.metric == "precomputed" else self.shape.d
        return Described(Parts, Stats, Rows, {"k": self.n_clusters, "c": columns, "spread": kind})

    def publish(self, fit: Fit) -> None:
        """Medoids, labels and inertia; during the fit (without z) only the medoids that are rows."""
        U, K, seen = fit.U, self.n_clusters, fit.U.seen
        self.inertia_ = float(fit.loss)
        for name in ("labels_", "medoid_indices_", "cluster_centers_"):
            self.__dict__.pop(name, None)
        if self.metric == "precomputed":
            self.medoid_indices_ = np.asarray(U.medoids).copy()
        else:
            self.cluster_centers_ = U.centers.copy() if seen is None else np.where(seen, U.centers, np.nan)
        if fit.z is None:
            return
        self.labels_ = fit.z.label
        if self.metric != "precomputed":
            rows = np.flatnonzero(fit.z.medoid >= 0)[::-1]
            where = np.full(K, -1)
            where[fit.z.medoid[rows]] = rows  # the first of equal rows is written last
            self.medoid_indices_ = where[find(U.centers, seen, U.centers, seen)]  # equal medoids are one row

    @property
    def space(self) -> Space:
        """Plain distances by the metric."""
        return Space(self.metric, False, self.metric == "precomputed", self.metric in LENGTHS)

    def centers(self) -> np.ndarray | None:
        """The medoids' rows; None where only distances are known."""
        return None if self.metric == "precomputed" else self.cluster_centers_

    def distances(self, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Rows and the metric; distances of all pairs where it has more arguments."""
        if not self.metric_params and self.metric not in ("mahalanobis", "seuclidean"):
            return x, self.metric
        from sklearn.metrics import pairwise_distances

        return pairwise_distances(x, metric=self.metric, **(self.metric_params or {})), "precomputed"

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the medoids."""
        return self._to_medoids(U, b).astype(b.x.dtype)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest medoid."""
        D = self._to_medoids(U, b)
        if self.metric != "precomputed":
            self._distance.refuse_far(D, b.x, U.centers)
        return self._nearest(D, U, b)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """The nearest medoid's row."""
        if self.metric == "precomputed":
            raise ValueError("metric='precomputed' knows distances, not rows: take X[model.medoid_indices_[labels]]")
        centers = U.centers if U.seen is None else np.where(U.seen, U.centers, z.dtype.type(np.nan))
        return centers[z.argmin(axis=1)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of distances to the nearest medoid.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        return -self.loss_of(X, sample_weight)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.allow_nan = self.metric in EUCLIDEAN
        return tags

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[KMedoids, np.ndarray, Callable[[Any], None]]:
        """Four round clusters of different sizes, and a few rows far from all."""
        truth = np.array([[0.0, 0, 0, 5], [6, 0, 0, 0], [0, 6, 0, -5], [0, 0, 6, 0]])
        label = np.repeat(np.arange(4), (30, 60, 90, 120))
        X = truth[label] + 0.5 * rng.standard_normal((len(label), 4))
        X[::60] *= 4

        def found(model: Any) -> None:
            centers = np.nan_to_num(model.cluster_centers_, nan=0.0)
            known = ~np.isnan(model.cluster_centers_)
            apart = np.sqrt(((truth[:, None] - centers) ** 2 * known).sum(-1))
            assert apart.min(axis=1).max() < 1.2, "a planted centre was not found"
            assert len(set(apart.argmin(axis=1))) == len(truth), "two planted centres share one that was found"

        return cls(4, random_state=0), X, found
