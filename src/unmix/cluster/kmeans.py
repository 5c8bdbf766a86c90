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
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine import layout
from unmix.engine.block import Block, Local
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.model import Model


class Parts(NamedTuple):
    """U: the centres, how far they have come, and the scale of the data."""

    centers: np.ndarray
    path: np.ndarray  # Σ over passes of ‖Δu_k‖
    drift: np.ndarray  # Σ over passes of max_{j≠k} ‖Δu_j‖
    moved: np.ndarray  # ‖Δu_k‖ of the last pass
    half: np.ndarray  # ½ min_{j≠k} ‖u_k − u_j‖ at least
    shift: np.ndarray  # about the mean of the data: fixed
    variance: float  # mean over the columns of the data: fixed
    eps: float  # rounding of the data's precision
    refilled: int  # empty clusters that the last update filled
    tried: int  # the same, summed over all updates
    empty: int  # empty clusters that nothing was left for


class Stats(NamedTuple):
    """Sums per cluster; `holes` is 0 where every cell was observed."""

    N: np.ndarray
    A: np.ndarray
    V: np.ndarray
    holes: np.ndarray | float


class Rows(NamedTuple):
    """z: the cluster of each row, and its bounds."""

    label: np.ndarray
    upper: np.ndarray  # distance to the own centre − path
    lower: np.ndarray  # at most the distance to any other centre + drift


class KMeans(ClusterMixin, Model):
    """Clusters around means: minimise Σ_i w_i min_k ‖x_i − u_k‖².

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    init : {"k-means++", "random"}, array of shape (n_clusters, d) or callable, default="k-means++"
        First centres: rows drawn far apart (of several candidates each time the one that helps most), rows drawn at
        random, these centres, or what `init(X, n_clusters, random_state)` returns. Large data are sampled first.
    n_init : int or "auto", default="auto"
        Starts, of which the best is kept; "auto" is 10 for "random" and callables, else 1.
    max_iter : int, default=300
        The most passes over the data.
    tol : float, default=1e-4
        Stop when a pass improves the mean squared distance by no more than tol · v / n_clusters, v the mean variance of
        the columns: about where the squared moves of all centres sum to tol · v.
    random_state : int, RandomState instance or None, default=None
        Seed of the first centres.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
        The centres.
    labels_ : ndarray of int32 of shape (n,)
        The cluster of each row.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre.

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
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
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
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # ---------------------------------------------------------------- start

    def check(self, shape: Shape) -> None:
        """Refuse more clusters than rows, and first centres of another shape."""
        if shape.n < self.n_clusters:
            raise ValueError(f"n_samples={shape.n} should be >= n_clusters={self.n_clusters}: ask for fewer clusters")
        init = self.init
        if not isinstance(init, str) and not callable(init):
            self._check_centers(init, shape.d)

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
            return 1 if init == "k-means++" else 10
        return int(self.n_init)

    def block_rows(self, shape: Shape) -> int:
        """More than most: statistics are as large as the centres, and the kernels cut blocks to fit the cache."""
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
        x, seen, w = sample.x, sample.observed, np.ones(sample.x.shape[0]) if sample.w is None else sample.w
        size = float(abs(x).max())
        if size > 1e150 or 0 < size < 1e-150:
            raise ValueError(f"X reaches {size:.0e}: squares of that are beyond float64. Divide X by {size:.0e} first.")
        count = np.maximum(w.sum() if seen is None else w @ seen, np.finfo(float).tiny)
        shift = np.asarray(w @ x, dtype=np.float64) / count
        if sp.issparse(x):
            centered, shift_back = x.astype(np.float64), 0.0
            variance = np.asarray(w @ centered.power(2)) / count - shift**2
        else:
            centered, shift_back = x - shift, shift
            if seen is not None:
                centered[~seen] = 0.0
            variance = w @ centered**2 / count
        spread = float(np.mean(np.maximum(variance, 0.0)))
        chosen = self.init
        if callable(chosen):
            state = np.random.RandomState(rng.integers(2**31))
            rows = x if sp.issparse(x) or seen is None else centered + shift
            centers = self._check_centers(chosen(rows, self.n_clusters, random_state=state), x.shape[1])
        elif not isinstance(chosen, str):
            centers = self._check_centers(chosen, x.shape[1])
        else:
            if chosen == "k-means++":  # single precision is enough to draw by, if the numbers are about 1
                scaled = (centered * (spread**-0.5 if spread > 0 else 1.0)).astype(np.float32)
                index = plus_plus(scaled, seen, w, self.n_clusters, rng)
            else:
                repeat = bool(np.count_nonzero(w) < self.n_clusters)
                index = rng.choice(len(w), self.n_clusters, replace=repeat, p=w / w.sum())
            centers = dense(centered[index]) + shift_back
        none = np.zeros(self.n_clusters)
        return Parts(centers, none, none, none, none, shift, spread, float(np.finfo(x.dtype).eps), 0, 0, 0)

    # ---------------------------------------------------------------- local, stats

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest centres by bounds and distances; sums over the rows of each."""
        n, known = b.x.shape[0], b.z is not None
        w = np.empty(0) if b.w is None else b.w
        label, upper, lower = (v.copy() for v in b.z) if known else (np.zeros(n, np.int32), np.empty(n), np.empty(n))
        bounds = float(np.finfo(b.x.dtype).eps), known, label, upper, lower
        holes: np.ndarray | float = 0.0
        if sp.issparse(b.x) or b.observed is not None:
            from unmix.kernels import kmeans_cells

            cells = Cells(U, b)
            half = U.half if b.observed is None else np.zeros_like(U.half)  # the way may lead through unseen columns
            kmeans_cells.nearest(*cells.rows, cells.columns, *cells.rule, U.path, U.drift, half, *bounds)
            N, A, V, seen = kmeans_cells.sums(*cells.rows, U.centers, *cells.rule, label, w, U.path, upper)
            if b.observed is not None:
                holes = N[:, None] - seen
        else:
            from unmix.kernels import kmeans_dense

            power = -np.round(0.5 * np.log2(U.variance)) if U.variance > 0 else 0.0
            scale = b.x.dtype.type(2.0 ** (np.clip(power, -126, 126) if b.x.itemsize == 4 else power))
            moves = U.path, U.drift, U.moved, U.half
            N, A, V = kmeans_dense.lloyd(b.x, w, U.centers, U.shift, scale, *moves, *bounds)
        return Local(Rows(label, upper, lower), Stats(N, A, V, holes), float(V.sum()))

    # ---------------------------------------------------------------- update

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Means of the observed cells; empty clusters cut the one that varies most."""
        N, A, V, holes = stats
        count = N[:, None] - holes
        known = count > 1e-9 * N[:, None]
        centers = np.where(known, A / np.where(known, count, 1.0), U.centers)
        left = np.where(N > 0, V - (count * (centers - U.centers) ** 2).sum(axis=1), 0.0)
        empty, d = np.flatnonzero(N <= 0), centers.shape[1]
        refilled = 0
        for k in empty:
            widest = int(np.argmax(left))
            if left[widest] <= 1e-12 * N[widest] * U.variance:
                break
            way = np.random.default_rng(U.tried + refilled).standard_normal(d)
            step = 0.1 * np.sqrt(left[widest] / (N[widest] * d))
            centers[k] = centers[widest] + step * way / np.linalg.norm(way)
            left[widest] /= 2
            refilled += 1
        size = np.sqrt(np.maximum((centers**2).sum(axis=1), (U.centers**2).sum(axis=1)))
        moved = np.sqrt(((centers - U.centers) ** 2).sum(axis=1))
        moved = np.where(moved > 0, moved + U.eps * (size + moved), 0.0)  # they are rounded to the data's precision
        others = np.full(len(moved), moved.max())
        others[moved.argmax()] = np.delete(moved, moved.argmax()).max(initial=0.0)
        return U._replace(
            centers=centers,
            path=U.path + moved,
            drift=U.drift + others,
            moved=moved,
            half=half_apart(centers - U.shift) - U.eps * size.max(),
            refilled=refilled,
            tried=U.tried + refilled,
            empty=len(empty) - refilled,
        )

    def unit(self, U: Parts, first: float) -> float:
        """What the mean squared distance gains when the centres move by the mean variance of a column, in all."""
        return U.variance / self.n_clusters

    def settled(self, U: Parts) -> bool | None:
        """Not while a cluster was just refilled."""
        return False if U.refilled else None

    def notes(self, U: Parts) -> list[str]:
        """Clusters that no row is left for."""
        if not U.empty:
            return []
        found = self.n_clusters - U.empty
        return [f"{U.empty} of {self.n_clusters} clusters are empty: the rows have {found} distinct values or so"]

    # ---------------------------------------------------------------- what users see

    def publish(self, fit: Fit) -> None:
        """Centres, labels and inertia."""
        self.cluster_centers_ = fit.U.centers.copy()
        self.inertia_ = float(fit.loss)
        self.__dict__.pop("labels_", None)
        if fit.z is not None:
            self.labels_ = fit.z

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the centres."""
        if sp.issparse(b.x):
            square = squared_distances(b.x, None, U.centers)
        else:
            x = b.x - U.shift if b.observed is None else np.where(b.observed, b.x - U.shift, b.x.dtype.type(0))
            square = squared_distances(x, b.observed, U.centers - U.shift)
        return np.sqrt(square, out=square)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest centre."""
        return self.local(U, b._replace(z=None, w=None)).z.label

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Z U for rows of Z that add up to 1 (one-hot, memberships); rows of distances give the nearest centre."""
        if (z >= 0).all() and np.allclose(z.sum(axis=1), 1.0):
            return z @ U.centers
        return U.centers[z.argmin(axis=1)]

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the centres that labels, one-hot rows or rows of `transform` stand for.

        Parameters
        ----------
        X : array of int of shape (n,), or array of shape (n, n_clusters)
            Labels; or rows that add up to 1, which mix the centres; or distances, of which the least counts.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        if np.ndim(X) != 1 or isinstance(X, str):
            return super().inverse_transform(X)
        label = np.asarray(X)
        if label.dtype.kind not in "iu" or label.min(initial=0) < 0 or label.max(initial=0) >= self.n_clusters:
            raise ValueError(f"labels must be integers from 0 to {self.n_clusters - 1}: give what predict returns")
        return self.cluster_centers_[label]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances to the nearest centre.

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


def squared_distances(x: Any, observed: Any, centers: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
    """‖x_i − u_k‖² over the observed cells, the others being 0 in x; `own` is ‖x_i‖² where that is known."""
    square = centers**2
    out = x @ (-2 * centers.T)
    out += (squares(x) if own is None else own)[:, None]
    out += square.sum(axis=1) if observed is None else observed @ square.T
    return np.maximum(out, 0.0, out=out)


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


def squares(x: Any) -> np.ndarray:
    """‖x_i‖²."""
    return np.asarray(x.power(2).sum(axis=1)).ravel() if sp.issparse(x) else np.einsum("ij,ij->i", x, x)


def dense(x: Any) -> np.ndarray:
    """A few rows as an array."""
    return x.toarray() if sp.issparse(x) else x


def plus_plus(x: Any, observed: np.ndarray | None, w: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Greedy k-means++: each time several rows by weight × squared distance so far; the one that leaves least stays."""
    trials = 2 + int(np.log(k))
    weight = w if observed is None else w * observed.any(axis=1)
    seen, own = None if observed is None else observed.astype(x.dtype), squares(x)
    index = np.empty(k, np.int64)
    index[0] = rng.choice(len(w), p=weight / weight.sum())
    near = squared_distances(x, seen, dense(x[index[:1]]), own)[:, 0]
    for i in range(1, k):
        chance = np.cumsum(w * near)
        if not chance[-1] > 0:  # every row is a centre already
            chance = np.cumsum(weight)
        some = np.searchsorted(chance, rng.random(trials) * chance[-1], side="right").clip(0, len(w) - 1)
        nearer = np.minimum(near[:, None], squared_distances(x, seen, dense(x[some]), own))
        best = int(np.argmin(w @ nearer))
        index[i], near = some[best], nearer[:, best].copy()
    return index
