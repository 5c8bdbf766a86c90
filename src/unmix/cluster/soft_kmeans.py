"""Soft k-means:  X ≈ Z U,  the rows of Z are memberships that add up to 1.

local    φ_ik ∝ exp(−‖x_i − u_k‖²/β)                          [over the observed cells of row i]
         loss_i = −β log Σ_k exp(−‖x_i − u_k‖²/β)
stats    N_k = Σ w_i φ_ik     A_k = Σ w_i φ_ik (x_i − U.shift)     H_kj = the part of N_k whose cell j was not observed
         V_k = Σ w_i φ_ik ‖x_i − u_k‖²
update   u_kj = U.shift_j + A_kj / (N_k − H_kj)               [where nothing was observed, u_kj stays]

The loss is min over φ_i of Σ_k φ_ik ‖x_i − u_k‖² + β Σ_k φ_ik log φ_ik, so both steps lower it: it never rises. As
β → 0 it becomes the squared distance to the nearest centre, and the model k-means: passes are therefore not
extrapolated, which would lead from the same start to other optima. It is also EM for Gaussians of one
fixed variance β/2 and equal shares: where β is much larger than the variance between clusters, centres coincide.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.cluster import _starts
from unmix.cluster._example import round_clusters
from unmix.cluster.metrics.euclidean import Euclidean
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes
from unmix.engine.trace import Fit
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.distances import beyond
from unmix.model import Model
from unmix.model.capabilities import Geometry, Groups
from unmix.model.starved import scarce, starved

EUCLIDEAN = Euclidean()
GROW_STEP = 0.5  # of a cluster's width, from its centre to that of an additional cluster
NEGLIGIBLE_SHARE = 1e-9  # of the rows, at most, that belong to a lost centre
COINCIDENCE_DISTANCE = 1e-3  # of the data's standard deviation, at most, between centres that coincide


class Events(NamedTuple):
    """What happened to centres."""

    lost: int = 0  # that no row belongs to any more
    scarce: int = 0  # of hardly any weight


class Parts(NamedTuple):
    """U: the centres, and the stiffness of the memberships."""

    centers: Annotated[np.ndarray, Array("k d")]
    shift: Annotated[np.ndarray, Array("d")]  # about the mean of the data: fixed
    variance: Annotated[float, Array(low=0.0)]  # mean over the columns of the data: fixed
    beta: Annotated[float, Array(low=POSITIVE)]
    events: Events


class Stats(NamedTuple):
    """Sums per cluster about the shift; `holes` is 0 where every cell was observed."""

    N: Annotated[np.ndarray, Array("k")]
    A: Annotated[np.ndarray, Array("k d")]
    V: Annotated[np.ndarray, Array("k")]
    holes: Annotated[np.ndarray, Array("k d")] | float


class SoftKMeans(ClusterMixin, Groups, Geometry, Model):
    """Clusters around centres, with memberships.

    Minimises −β Σ_i w_i log Σ_k exp(−‖x_i − u_k‖²/β).

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    beta : float or "auto", default="auto"
        How far memberships reach, in squared units of the data: a row that is nearer to one centre than to another by
        β (in squared distance) belongs e times as much to it. "auto" is 2/K of the mean variance of the columns, K the
        number of clusters: the β of Gaussians that have 1/K of the data's variance, about what K clusters leave.
    init : {"k-means++", "random"} or array of shape (n_clusters, d), default="k-means++"
        First centres, as for `KMeans`.
    n_init : int or "auto", default="auto"
        Starts, of which the best is kept; "auto" is 10 for "random", else 1.
    max_iter : int, default=300
        Maximum number of passes over the data.
    tol : float, default=1e-6
        Stop when a pass improves the objective per row by no more than tol times the mean variance of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the first centres.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
        The centres.
    labels_ : ndarray of int32 of shape (n,)
        The cluster that each row belongs to most.
    beta_ : float
        The β that was used.
    objective_ : float
        −β Σ w log Σ_k exp(−‖x − u_k‖²/β): what was minimised.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import SoftKMeans
    >>> X = np.array([[0.0], [1], [5], [9], [10]])
    >>> model = SoftKMeans(n_clusters=2, beta=4.0, random_state=0).fit(X)
    >>> model.transform(X)[2].round(3).tolist()
    [0.5, 0.5]
    """

    sparse = True
    missing = True
    collect = True
    double = True
    tied = ("init",)

    degrees: ClassVar[dict[str, int | None]] = {
        "init": 1, "beta": 2, "cluster_centers_": 1, "beta_": 2, "objective_": 2,
    }  # fmt: skip

    cluster_centers_: Annotated[np.ndarray, Array("k d")]
    labels_: Annotated[np.ndarray, Array("n", "i", 0, "k-1", maybe=True)]
    beta_: float
    objective_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        beta: float | str = "auto",
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.beta = beta
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Refuse more clusters than rows, and first centres of another shape."""
        _starts.check_start(self.init, self.n_clusters, self.n_init, shape)

    def starts(self) -> int:
        """As many as k-means makes."""
        return _starts.restarts(self.init, self.n_init)

    def sizes(self, shape: Shape) -> Sizes:
        """The sample that k-means draws from."""
        return Sizes(sample=_starts.sample_rows(self.init, self.n_clusters, shape))

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """The first centres of k-means, and the origin and scale of the data."""
        cloud = _starts.cloud_of(data, EUCLIDEAN, {})
        centers = _starts.first_centers(self.init, self.n_clusters, data, cloud, EUCLIDEAN, rng)
        return Parts(centers, cloud.mean, cloud.variance, self._reach(cloud.variance), Events())

    def _reach(self, variance: float) -> float:
        """β."""
        beta = 2 * variance / self.n_clusters if self.beta == "auto" else float(self.beta)
        return max(beta, float(np.finfo(float).tiny))

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts | None:
        """The centres of a fit, and one more beside that of the cluster that varies most."""
        if not more:
            return None
        U, stats = fit.U, fit.stats
        k = int(np.argmax(stats.V))
        new = EUCLIDEAN.beside(U.centers[k], k, stats, stats.V[k], 0, rng, GROW_STEP)
        return U._replace(centers=np.vstack([U.centers, new]), beta=self._reach(U.variance), events=Events())

    def _about(self, shift: np.ndarray, b: Block) -> Any:
        """Rows about the shift in float64, 0 where not observed; CSR rows about zero."""
        if sp.issparse(b.x):
            return b.x.astype(np.float64)
        x = b.x - shift.astype(np.float64)
        return x if b.observed is None else np.where(b.observed, x, 0.0)

    def _squares(self, U: Parts, b: Block, x: Any) -> np.ndarray:
        """Squared distances of rows to the centres, over the observed cells."""
        u = U.centers.astype(np.float64) - (0.0 if sp.issparse(x) else U.shift)
        own = x.power(2).sum(axis=1) if sp.issparse(x) else np.einsum("ij,ij->i", x, x)
        other = (u**2).sum(axis=1) if b.observed is None else b.observed.astype(np.float64) @ (u**2).T
        return np.maximum(np.asarray(own)[:, None] + other - 2 * (x @ u.T), 0.0)

    def _ordered(self, U: Parts, b: Block, x: Any, square: np.ndarray) -> np.ndarray:
        """The same where only their order counts: less ‖x‖² of rows so far out that they are the same to rounding."""
        u = U.centers.astype(np.float64) - (0.0 if sp.issparse(x) else U.shift)
        far = beyond(square.min(axis=1), (u**2).sum(axis=1)) > 0
        if not far.any():
            return square
        other = (u**2).sum(axis=1) if b.observed is None else b.observed.astype(np.float64) @ (u**2).T
        return np.where(far[:, None], other - 2 * (x @ u.T), square)

    def _members(self, U: Parts, square: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Memberships by squared distances, the least of these, and what exp of the others' excess sums to."""
        near = square.min(axis=1)
        with np.errstate(over="ignore"):
            z = np.exp((near[:, None] - square) / U.beta)
        total = z.sum(axis=1)
        z /= total[:, None]
        return z, near, total

    def local(self, U: Parts, b: Block) -> Local:
        """Memberships, and sums weighted by them. Labels are published; memberships come from `transform`."""
        x = self._about(U.shift, b)
        square = self._squares(U, b, x)
        z, near, total = self._members(U, square)
        if b.closing and (order := self._ordered(U, b, x, square)) is not square:
            z = self._members(U, order)[0]
        loss = near - U.beta * np.log(total)
        zw = b.weighted(z)
        N = zw.sum(axis=0)
        A = np.asarray((x.T @ zw).T) - np.outer(N, U.shift) if sp.issparse(x) else zw.T @ x
        holes: np.ndarray | float = 0.0
        if b.observed is not None:
            holes = zw.T @ (~b.observed).astype(np.float64)
            loss = np.where(b.observed.any(axis=1), loss, 0.0)  # a row without an observed cell does not count
        V = np.einsum("ik,ik->k", zw, square)
        z = z.astype(b.x.dtype)
        return Local(z.argmax(axis=1).astype(np.int32) if b.closing else z, Stats(N, A, V, holes), b.sum(loss))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Means of the observed cells, weighted by memberships; a centre that no row belongs to stays."""
        N, A, _, holes = stats
        count = N[:, None] - holes
        known = count > 1e-9 * np.maximum(N[:, None], 1e-300)
        centers = np.where(known, U.shift + A / np.where(known, count, 1.0), U.centers)
        lost = np.count_nonzero(N / N.sum() <= NEGLIGIBLE_SHARE)
        return U._replace(centers=centers, events=Events(int(lost), scarce(N)))

    def goal(self, U: Parts, first: float) -> float:
        """`tol` times the mean variance of a column."""
        return self.tol * U.variance

    def notes(self, U: Parts) -> list[str]:
        """Centres without rows, and centres that coincide."""
        out = []
        if lost := U.events.lost:
            out.append(f"no row belongs to {lost} of {self.n_clusters} centres: ask for fewer, or raise beta")
        close = np.linalg.norm(U.centers[:, None] - U.centers, axis=2) < COINCIDENCE_DISTANCE * U.variance**0.5
        if same := int(np.triu(close, 1).any(axis=0).sum()):
            out.append(
                f"{same} of {self.n_clusters} centres coincide with others: beta={U.beta:.3g} is larger than the "
                "variance that separates them; lower it, or ask for fewer clusters"
            )
        return out + starved(U.events.scarce - U.events.lost, self.n_clusters, "clusters", self.shape.online)

    # ---------------------------------------------------------------- what users see

    def described(self, U: Any, data: Any) -> Described:
        """Centres and sums."""
        return Described(Parts, Stats, Any, {"k": self.n_clusters})

    def publish(self, fit: Fit) -> None:
        """Centres, labels, β and the objective."""
        self.cluster_centers_ = fit.U.centers.copy()
        self.beta_ = float(fit.U.beta)
        self.objective_ = float(fit.loss)
        self.__dict__.pop("labels_", None)
        if fit.z is not None:
            self.labels_ = fit.z

    def centers(self) -> np.ndarray:
        """`cluster_centers_`."""
        return self.cluster_centers_

    def dispersion(self, fit: Fit, x: np.ndarray, w: np.ndarray | None) -> float:
        """The squares of (some) rows' distances to the nearest centre: the loss, a free energy, may be negative."""
        from sklearn.metrics.pairwise import nan_euclidean_distances

        near = nan_euclidean_distances(x, self.cluster_centers_).min(axis=1)
        return float(np.average(near**2, weights=w) * fit.weight)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest centre."""
        x = self._about(U.shift, b)
        return self._ordered(U, b, x, self._squares(U, b, x)).argmin(axis=1).astype(np.int32)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Memberships: how much of each cluster a row is, which add up to 1."""
        x = self._about(U.shift, b)
        return self._members(U, self._ordered(U, b, x, self._squares(U, b, x)))[0].astype(b.x.dtype)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Z U: centres mixed by memberships."""
        return z @ U.centers.astype(z.dtype, copy=False)

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[SoftKMeans, np.ndarray, Callable[[Any], None]]:
        """Four round clusters of different sizes, apart by many times their width."""
        X, found = round_clusters(rng)
        return cls(4, random_state=0), X, found
