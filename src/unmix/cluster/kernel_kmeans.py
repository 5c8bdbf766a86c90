"""Kernel k-means:  k-means in the space of a kernel, K(x, y) = ⟨φ(x), φ(y)⟩.

local    z_i = argmin_k ‖φ(x_i) − m_k‖²        m_k = 1/N_k Σ_{j∈k} w_j φ(x_j)
         ‖φ(x) − m_k‖² = K(x, x) − 2/N_k Σ_{j∈k} w_j K(x, x_j) + 1/N_k² Σ_{j∈k} Σ_{l∈k} w_j w_l K(x_j, x_l)
stats    N_k = Σ_{z_i=k} w_i     V_k = Σ_{z_i=k} w_i ‖φ(x_i) − m_k‖²
update   none: a mean m_k is known only through the labels of *all* rows, so the statistics of a block that would give
         the next means are as large as the data. Lloyd's algorithm is made of rounds on the rows in memory.

U holds those rows and the weights w_j/N_k by which each counts in its mean. The kernel matrix is computed once if it
fits the memory budget, else row chunk by row chunk again in each round. Equal rows are merged, so that a row of weight
2 is the row twice.

An *empty cluster* takes the row that is farthest (in weighted squared distance) from its mean, among clusters of more
than one row; so every cluster has a row at the end, unless there are fewer different rows than clusters.

Where the kernel is not positive semi-definite, "squared distances" may be negative, the objective may rise, and labels
may run in circles: the best means are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.cluster._distances import check_symmetric
from unmix.cluster._kernels import Matrix, chunk, kernel_of
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.sample import distinct
from unmix.engine.stage import Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.maths.distances import beyond
from unmix.maths.kernels import KERNELS
from unmix.maths.seeding import far_apart
from unmix.model import Model
from unmix.model.capabilities import Geometry, Groups, Space

UNKNOWN = float(np.finfo(np.float64).max)  # a loss that was not yet seen
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of ‖φ(x)‖² and ‖m‖²: what their difference may owe to it


class Events(NamedTuple):
    """What happened."""

    empty: int  # clusters that no row is left for
    alike: bool = False  # whether what tells rows apart is lost in the rounding of the kernel


class Parts(NamedTuple):
    """U: the means, by the rows that they are made of."""

    rows: Annotated[np.ndarray, Array("r d")]  # (n, d) different rows; (0, d) for a precomputed kernel
    share: Annotated[np.ndarray, Array("s k", low=0.0)]  # (n, K) w_j / N_k where row j is in cluster k, else 0
    square: Annotated[np.ndarray, Array("k")]  # ‖m_k‖²
    # where a linear kernel is measured from: distances do not depend on it, their rounding does
    shift: Annotated[np.ndarray, Array("d")]
    events: Events


class Stats(NamedTuple):
    """Weight and loss of each cluster."""

    N: Annotated[np.ndarray, Array("k")]
    V: Annotated[np.ndarray, Array("k")]


class Labels(NamedTuple):
    """The clusters of the held rows, and those whose means gave them."""

    label: Annotated[np.ndarray, Array("h", "i", 0, "k-1")]
    before: Annotated[np.ndarray, Array("h", "i", 0, "k-1")]  # the labels of the round before
    nearest: bool  # whether `label` are the nearest means of `before`: no row was moved to an empty cluster
    best: Annotated[np.ndarray, Array("h", "i", 0, "k-1")]  # the labels whose nearest means have the least loss so far
    least: float  # that loss
    moved: bool  # whether a label changed in the last round
    events: Events


class KernelLloyd(Stage):
    """Rounds: rows to the nearest means, means of the rows."""

    name, over = "lloyd", "whole"

    def __init__(self, model: Any) -> None:
        self.may_rise = "differences of the kernel are lost in rounding; move the rows to about zero, and scale them"
        if not kernel_of(model).semidefinite:
            remedy = "choose another kernel, gamma or coef0"
            self.may_rise = f"kernel={model.kernel!r} is not positive semi-definite on these rows; {remedy}"
        self.K, self.init, self.tol, self.kernel = model.n_clusters, model.init, model.tol, kernel_of(model)

    def open(self, data: Block, rng: np.random.Generator) -> Matrix:
        """The kernel matrix; equal rows are merged where labels are not given."""
        if self.kernel.kernel == "precomputed":
            check_symmetric(data.x, "kernel", rng)
        elif isinstance(self.init, str):
            whole = distinct(data)
            order = rng.permutation(len(whole.x))
            data = Block(whole.x[order], None if whole.w is None else whole.w[order])
        return Matrix(self.kernel, data.x, np.ones(len(data.x)) if data.w is None else data.w)

    def start(self, before: Any, data: Matrix, rng: np.random.Generator) -> Labels:
        """First labels: of rows drawn far apart in the space of the kernel, random, or given."""
        if not isinstance(self.init, str):
            label = np.asarray(self.init).astype(np.int64)
        elif self.init == "random":
            label = rng.integers(self.K, size=len(data.w))
        else:
            label = data.apart(far_apart(data.w, self.K, rng, data.apart)).argmin(axis=1)
        label, empty = refill(label, data.w, data.own.copy(), self.K)
        return Labels(label, label, False, label, UNKNOWN, True, Events(empty))

    def step(self, U: Labels, data: Matrix, rng: np.random.Generator) -> tuple[Labels, float]:
        """The nearest means of these clusters; ties, to rounding, stay, so that no label runs in circles."""
        return self._next(U, data)

    def _next(self, U: Labels, data: Matrix) -> tuple[Labels, float]:
        w, best, least = data.w, U.best, U.least
        share, N = shares(U.label, w, self.K)
        inner = data.times(share)
        square = np.einsum("jk,jk->k", share, inner)
        apart = data.own[:, None] - 2 * inner + square
        apart[:, N == 0] = np.inf
        here = np.take_along_axis(apart, U.label[:, None], axis=1)[:, 0]
        blur = ROUNDING * (np.abs(data.own) + np.abs(square[U.label]))
        new = np.where(apart.min(axis=1) < here - blur, apart.argmin(axis=1), U.label)
        near = np.take_along_axis(apart, new[:, None], axis=1)[:, 0]
        label, empty = refill(new, w, near, self.K)
        loss = float(w @ here)
        if U.nearest and loss < least:
            best, least = U.before, loss
        nearest, moved = np.array_equal(label, new), not np.array_equal(label[w > 0], U.label[w > 0])
        return Labels(label, U.label, nearest, best, least, moved, Events(empty)), loss / float(w.sum())

    def goal(self, U: Labels, first: float) -> float | bool:
        """Done when no label changes; by `tol`, when the objective hardly does."""
        return True if not U.moved else self.tol * abs(first) if self.tol > 0 else False

    def described(self, U: Any, data: Matrix) -> Described:
        """Labels of the held rows."""
        return Described(Labels, Any, Any, {"k": self.K, "h": len(data.w)})

    def hand(self, U: Labels, data: Matrix) -> Parts:
        """The means by their rows; where the labels that they give would be worse, the means that gave these."""
        label = U.label
        if U.moved:
            ahead, loss = self._next(U, data)
            if self._next(ahead, data)[1] > loss:
                label = U.before if U.nearest else U.best
        share, _ = shares(label, data.w, self.K)
        square = np.einsum("jk,jk->k", share, data.times(share))
        rows = data.rows[:0] if self.kernel.kernel == "precomputed" else data.rows
        events = U.events._replace(alike=min(self.K, len(data.w)) > 1 and alike(data))
        return Parts(rows.astype(np.float64), share, square, data.shift, events)


class KernelKMeans(ClusterMixin, Groups, Geometry, Model):
    """Clusters of any shape: k-means in the space of a kernel.

    Minimises Σ_i w_i min_k ‖φ(x_i) − m_k‖².

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    kernel : str or callable, default="rbf"
        A kernel that `sklearn.metrics.pairwise.pairwise_kernels` knows by name, a function of two rows, or
        "precomputed": X is then the symmetric matrix of K(x_i, x_j) in `fit`. In `transform` and `predict` its rows
        are the kernels of new rows with all rows of `fit`; K(x, x) of a new row is not among them and is taken as 0, so
        distances are then squared distances up to a constant of the row, and labels are right.
    gamma : float, optional
        Of "rbf", "laplacian", "poly", "sigmoid" and "chi2"; by default 1/d (1 for "chi2").
    degree : float, default=3
        Of "poly".
    coef0 : float, default=1
        Of "poly" and "sigmoid".
    kernel_params : dict, optional
        More arguments of a callable kernel; of a named one, in place of those above.
    init : {"k-means++", "random"} or array of int of shape (n,), default="k-means++"
        First clusters: those around rows drawn far apart in the space of the kernel, those of random labels, or these
        labels.
    n_init : int, default=1
        Starts, of which the best is kept.
    max_iter : int, default=300
        Maximum number of rounds.
    tol : float, default=0
        Stop when a round improves the objective by no more than this share of the first one; 0: when no label changes.
    random_state : int, RandomState instance or None, default=None
        Seed of the first clusters.

    Attributes
    ----------
    labels_ : ndarray of int32 of shape (n,)
        The cluster of each row.
    inertia_ : float
        Weighted sum of squared distances to the nearest mean, in the space of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import KernelKMeans
    >>> t = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> ring = np.column_stack([np.cos(t), np.sin(t)])
    >>> X = np.vstack([0.2 * ring, 3 * ring])  # no line separates a ring from what it surrounds
    >>> labels = KernelKMeans(n_clusters=2, gamma=0.5, n_init=5, random_state=0).fit(X).labels_
    >>> bool((labels[:40] == labels[0]).all() and (labels[40:] != labels[0]).all())
    True
    """

    collect = True
    tied = ("init",)
    exempt: ClassVar[dict[str, str]] = {
        "online": "means in the space of a kernel are made of rows: a batch has no statistics that would move them",
    }

    degrees: ClassVar[dict[str, int | None]] = {"gamma": -2}  # of the radial kernel

    labels_: Annotated[np.ndarray, Array("n", "i", 0, "k-1", maybe=True)]
    inertia_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": [StrOptions(set(KERNELS.split())), callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Real],
        "kernel_params": [dict, None],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Refuse more clusters than rows, a precomputed matrix that is not square, and `init` that is not labels."""
        K, n = self.n_clusters, shape.n
        if n < K:
            raise ValueError(f"n_samples={n} should be >= n_clusters={K}: ask for fewer clusters")
        if self.kernel == "precomputed" and n != shape.d:
            raise ValueError(f"kernel='precomputed' needs a square matrix, not {n} × {shape.d}")
        kernel_of(self).check()
        if not isinstance(self.init, str):
            label = np.asarray(self.init)
            if label.shape != (n,) or label.dtype.kind not in "iu" or label.min() < 0 or label.max() >= K:
                raise ValueError(
                    f"init must be {n} labels, integers from 0 to {K - 1}; it is {label.dtype} {label.shape}"
                )

    @property
    def power(self) -> int:  # type: ignore[override]
        """Given kernels are added up as they are."""
        return 1 if self.kernel == "precomputed" else 2

    def stages(self, shape: Shape) -> list[Stage]:
        """Lloyd's algorithm on the kernel matrix."""
        return [KernelLloyd(self)]

    def starts(self) -> int:
        """Given labels are one start."""
        return self.n_init if isinstance(self.init, str) else 1

    def _to_means(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances of a block's rows to the means; of rows far out less the second array."""
        share = U.share.astype(np.float64)
        if self.kernel == "precomputed":
            own = np.zeros(len(b.x))
            if b.closing:
                own = b.x[np.arange(len(b.x)), b.start + np.arange(len(b.x))].astype(np.float64)
            return np.asarray(own[:, None] - 2 * (b.x @ share) + U.square), np.zeros(len(b.x))
        kernel, square = kernel_of(self), U.square.astype(np.float64)
        own = kernel.squares(b.x, U.shift)
        less = beyond(own, square)
        out = (own - less)[:, None] + square
        step = chunk(len(U.rows), 1 << 20)
        for a in range(0, len(b.x), step):
            out[a : a + step] -= 2 * (kernel.between(b.x[a : a + step], U.rows, U.shift) @ share)
        return out, less

    # ---------------------------------------------------------------- the contract

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest means."""
        apart, less = self._to_means(U, b)
        apart[:, ~(U.share > 0).any(axis=0)] = np.inf
        label = apart.argmin(axis=1).astype(np.int32)
        near = np.take_along_axis(apart, label[:, None], axis=1)[:, 0] + less
        w, K = np.ones(len(near)) if b.w is None else b.w, len(U.square)
        return Local(label, Stats(np.bincount(label, w, K), np.bincount(label, w * near, K)), float(w @ near))

    def described(self, U: Any, data: Any) -> Described:
        """The means by their rows; those of a precomputed kernel are not held."""
        kernel_of(self).check()
        held = {"r": 0, "s": self.shape.d} if self.kernel == "precomputed" else {"s": "r"}
        return Described(Parts, Stats, Any, {"k": self.n_clusters, **held})

    def notes(self, U: Parts) -> list[str]:
        """Empty clusters, and rows that the kernel does not tell apart."""
        out = []
        if U.events.alike:
            out.append(
                "the kernel sees all rows as alike: what tells them apart is lost in rounding, and the labels mean "
                "nothing; scale the columns, or give a gamma that suits their distances"
            )
        if U.events.empty:
            out.append(
                f"{U.events.empty} of {self.n_clusters} clusters are empty: there are too few different rows, or the "
                "kernel sees them as alike; scale the columns, or give a gamma that suits their distances"
            )
        return out

    def publish(self, fit: Fit) -> None:
        """Labels and inertia."""
        self.inertia_ = float(fit.loss)
        self.__dict__.pop("labels_", None)
        if fit.z is not None:
            self.labels_ = fit.z

    @property
    def space(self) -> Space:
        """Squared distances in the space of the kernel; a precomputed one says nothing of K(x, x) of new rows."""
        plain = Space("kernel", clouds=False)
        if self.kernel != "precomputed":
            return plain
        why = "does not know K(x, x) of a new row, so there are no distances: give it rows and a kernel"
        return plain._replace(pairwise=True, unknown=f"{type(self).__name__}(kernel='precomputed') {why}")

    def centers(self) -> None:
        """None: means in the space of the kernel are not rows."""
        return None

    def distances(self, x: np.ndarray) -> tuple[np.ndarray, str]:
        """Distances of all pairs of rows in the space of the kernel."""
        K = x if self.kernel == "precomputed" else kernel_of(self).between(x, x, self.parts.shift)
        apart, own = -2.0 * K, np.diagonal(K)
        apart += own[:, None]  # in place: there are n² of them
        apart += own
        return np.sqrt(np.maximum(apart, 0.0, out=apart), out=apart), "precomputed"

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the means in the space of the kernel (precomputed: squared ones, less K(x, x))."""
        apart, less = self._to_means(U, b)
        apart += less[:, None]
        return (apart if self.kernel == "precomputed" else np.sqrt(np.maximum(apart, 0.0))).astype(b.x.dtype)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest mean."""
        return self.local(U, b._replace(w=None)).z

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """There is no way back: a mean in the space of the kernel is not a row."""
        raise ValueError("KernelKMeans has no inverse_transform: a mean in the space of the kernel is not a row of X")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[KernelKMeans, np.ndarray, Callable[[Any], None]]:
        """A ring around a blob: k-means would cut both."""
        angle = rng.uniform(0, 2 * np.pi, 200)
        ring = 4 * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(200)])
        X = np.vstack([np.zeros((100, 3)), ring]) + 0.3 * rng.standard_normal((300, 3))

        def found(model: Any) -> None:
            inside, outside = model.predict(np.zeros((1, 3)))[0], model.predict(ring)
            assert (outside != inside).all(), "the ring was not told from what it surrounds"

        return cls(2, gamma=0.5, n_init=10, random_state=0), X, found


def alike(data: Matrix) -> bool:
    """Whether the mean of ‖φ(x) − m‖², m the mean of all rows, is no more than rounding makes of K(x, x)."""
    share = (data.w / data.w.sum())[:, None]
    spread = float(share[:, 0] @ data.own) - float(share[:, 0] @ data.times(share)[:, 0])
    return bool(abs(spread) <= ROUNDING * float(share[:, 0] @ np.abs(data.own)))


def shares(label: np.ndarray, w: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """w_j / N_k where row j is in cluster k, and N."""
    N = np.bincount(label, w, K)
    share = np.zeros((len(label), K))
    share[np.arange(len(label)), label] = w / np.where(N[label] > 0, N[label], 1.0)
    return share, N


def refill(label: np.ndarray, w: np.ndarray, near: np.ndarray, K: int) -> tuple[np.ndarray, int]:
    """Give each empty cluster the row farthest from its mean, of clusters of more than one; how many stay empty."""
    counts, label, left = np.bincount(label[w > 0], minlength=K), label.copy(), w * near
    for k in np.flatnonzero(counts == 0):
        free = np.where((counts[label] > 1) & (w > 0), left, 0.0)
        row = int(np.argmax(free))
        if not free[row] > 0:
            return label, int((counts == 0).sum())
        counts[label[row]] -= 1
        label[row], left[row], counts[k] = k, 0.0, 1
    return label, 0
