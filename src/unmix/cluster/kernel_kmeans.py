"""Kernel k-means:  k-means in the space of a kernel, K(x, y) = ⟨φ(x), φ(y)⟩.

local    z_i = argmin_k ‖φ(x_i) − m_k‖²        m_k = 1/N_k Σ_{j∈k} w_j φ(x_j)
         ‖φ(x) − m_k‖² = K(x, x) − 2/N_k Σ_{j∈k} w_j K(x, x_j) + 1/N_k² Σ_{j∈k} Σ_{l∈k} w_j w_l K(x_j, x_l)
stats    N_k = Σ_{z_i=k} w_i     V_k = Σ_{z_i=k} w_i ‖φ(x_i) − m_k‖²
update   m_k from the new labels: Lloyd's algorithm, in `solve`

A mean m_k is known by the labels of *all* rows alone, so the statistics of a block that would give the next means are
as large as the data: the iterations are inside `solve`, on the rows in memory, and U holds those rows and the weights
w_j/N_k by which each counts in its mean. The kernel matrix is computed once if it fits the memory budget, else row
chunk by row chunk again in each iteration. Equal rows are merged, so that a row of weight 2 is the row twice.

An *empty cluster* takes the row that is farthest (in weighted squared distance) from its mean, among clusters of more
than one row; so every cluster has a row at the end, unless there are fewer different rows than clusters.

Where the kernel is not positive semi-definite, "squared distances" may be negative, the objective may rise, and labels
may run in circles: the best labels are kept, by the means that they are nearest to, and the fit ends after ten
iterations that found none better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.layout import Shape
from unmix.engine.sample import distinct
from unmix.engine.trace import Fit, Step
from unmix.model import Model

KERNELS = "additive_chi2 chi2 cosine laplacian linear poly polynomial precomputed rbf sigmoid"
TAKES = {
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "chi2": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "polynomial": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}
IDLE = 10  # iterations without a better objective


class Parts(NamedTuple):
    """U: the means, by the rows that they are made of."""

    rows: np.ndarray  # (n, d) different rows; (0, d) for a precomputed kernel
    share: np.ndarray  # (n, K) w_j / N_k where row j is in cluster k, else 0
    square: np.ndarray  # ‖m_k‖²
    shift: np.ndarray  # where a linear kernel is measured from: distances do not depend on it, their rounding does
    losses: np.ndarray  # per row, at the start of each iteration
    settled: bool
    rose: bool  # the kernel is not positive semi-definite
    empty: int  # clusters that no row is left for


class Stats(NamedTuple):
    """Weight and loss of each cluster."""

    N: np.ndarray
    V: np.ndarray


class KernelKMeans(ClusterMixin, Model):
    """k-means in the space of a kernel: minimise Σ_i w_i min_k ‖φ(x_i) − m_k‖².

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
        The most iterations.
    tol : float, default=0
        Stop when an iteration improves the objective by no more than this share of it; 0: when no label changes.
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
    >>> from unmix.cluster.kernel_kmeans import KernelKMeans
    >>> t = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> ring = np.column_stack([np.cos(t), np.sin(t)])
    >>> X = np.vstack([0.2 * ring, 3 * ring])  # no line separates a ring from what it surrounds
    >>> labels = KernelKMeans(n_clusters=2, gamma=0.5, n_init=5, random_state=0).fit(X).labels_
    >>> bool((labels[:40] == labels[0]).all() and (labels[40:] != labels[0]).all())
    True
    """

    collect = True
    exempt: ClassVar[dict[str, str]] = {
        "online": "means in the space of a kernel are made of rows: a batch has no statistics that would move them",
        "resume": "the iterations are made in memory, in one step: there is nothing to go on from",
    }

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
        """Refuse more clusters than rows, a precomputed matrix that is not square, labels that are none."""
        K, n = self.n_clusters, shape.n
        if n < K:
            raise ValueError(f"n_samples={n} should be >= n_clusters={K}: ask for fewer clusters")
        if self.kernel == "precomputed" and n != shape.d:
            raise ValueError(f"kernel='precomputed' needs a square matrix, not {n} × {shape.d}")
        if isinstance(self.kernel, str):
            takes = TAKES.get(self.kernel, ())
            for name in self.kernel_params or {}:
                if name not in takes:
                    raise ValueError(
                        f"kernel_params has {name!r}, but kernel={self.kernel!r} takes {' and '.join(takes) or 'none'}"
                    )
        if not isinstance(self.init, str):
            label = np.asarray(self.init)
            if label.shape != (n,) or label.dtype.kind not in "iu" or label.min() < 0 or label.max() >= K:
                raise ValueError(
                    f"init must be {n} labels, integers from 0 to {K - 1}; it is {label.dtype} {label.shape}"
                )

    def route(self, shape: Shape) -> str:
        """All rows in memory."""
        return "direct"

    def tolerance(self) -> float:
        """The iterations are in `solve`."""
        return 0.0

    # ---------------------------------------------------------------- kernels

    def _kernel(self, U: Parts, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        """K(x_i, y_j); without y, K(x_i, x_i)."""
        x = x.astype(np.float64)
        if self.kernel == "linear":
            x = x - U.shift
            return np.einsum("ij,ij->i", x, x) if y is None else x @ (y - U.shift).T
        from sklearn.metrics.pairwise import pairwise_kernels

        if y is None:
            if self.kernel in ("rbf", "laplacian", "chi2"):
                return np.ones(len(x))
            if callable(self.kernel):
                return np.array([float(self.kernel(v, v, **(self.kernel_params or {}))) for v in x])
            parts = (x[a : a + 32] for a in range(0, len(x), 32))
            return np.concatenate([np.diagonal(self._kernel(U, part, part)) for part in parts])
        names = TAKES.get(self.kernel, ()) if isinstance(self.kernel, str) else ()
        more: dict[str, Any] = {k: getattr(self, k) for k in names}
        if more.get("gamma", 0) is None and self.kernel == "chi2":
            del more["gamma"]
        more |= self.kernel_params or {}
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.asarray(pairwise_kernels(x, y.astype(np.float64), metric=self.kernel, **more), dtype=np.float64)
        if not np.isfinite(out).all():
            raise ValueError(
                f"kernel={self.kernel!r} gives values that are not finite for these rows: scale X, or lower gamma"
            )
        return out

    def _to_means(self, U: Parts, b: Block) -> np.ndarray:
        """Squared distances of a block's rows to the means."""
        share = U.share.astype(np.float64)
        if self.kernel == "precomputed":
            own = np.zeros(len(b.x))
            if b.closing:
                own = b.x[np.arange(len(b.x)), b.start + np.arange(len(b.x))].astype(np.float64)
            return own[:, None] - 2 * (b.x @ share) + U.square  # type: ignore[no-any-return]
        out = self._kernel(U, b.x)[:, None] + U.square.astype(np.float64)
        step = chunk(len(U.rows), 1 << 20)
        for a in range(0, len(b.x), step):
            out[a : a + step] -= 2 * (self._kernel(U, b.x[a : a + step], U.rows) @ share)
        return out

    # ---------------------------------------------------------------- the fit

    def start(self, sample: Block, rng: np.random.Generator) -> Parts:
        """The clusters of a sample."""
        return self.solve(sample.x, sample.w, rng)

    def solve(self, x: np.ndarray, w: np.ndarray | None, rng: np.random.Generator) -> Parts:
        """Lloyd's algorithm on the rows of the kernel matrix."""
        given = self.kernel == "precomputed"
        K, weight = self.n_clusters, np.ones(len(x)) if w is None else w
        first = None if isinstance(self.init, str) else np.asarray(self.init)
        if given or first is not None:  # labels belong to rows as they are
            rows = x
        else:
            whole = distinct(Block(x, w))
            order = rng.permutation(len(whole.x))
            rows, weight = whole.x[order], np.ones(len(order)) if whole.w is None else whole.w[order]
        shift = weight @ rows.astype(np.float64) / weight.sum()
        if given:
            i, j = rng.integers(len(x), size=(2, 4096))
            if not np.allclose(x[i, j], x[j, i], rtol=1e-4, atol=1e-6 * abs(x[i, j]).max()):
                raise ValueError("kernel='precomputed' needs a symmetric matrix: pass (X + X.T) / 2 if that is meant")
        empty = rows[:0].astype(np.float64)
        U = Parts(
            empty if given else rows.astype(np.float64), np.zeros((0, K)), np.zeros(K), shift, empty, True, False, 0
        )
        matrix = Matrix(self, U, rows)
        tries = []
        for _ in range(1 if first is not None else self.n_init):
            label = self._first(matrix, weight, first, rng)
            tries.append(self._lloyd(matrix, weight, label))
        label, losses, settled, rose, refused = min(tries, key=lambda t: min(t[1]))
        share, _ = shares(label, weight, K)
        square = np.einsum("jk,jk->k", share, matrix.times(share))
        losses = np.array(losses[: self.max_iter]) / weight.sum()
        return U._replace(share=share, square=square, losses=losses, settled=settled, rose=rose, empty=refused)

    def _first(self, matrix: Matrix, w: np.ndarray, given: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        """First labels."""
        if given is not None:
            return given.astype(np.int64)
        n, K = len(w), self.n_clusters
        if self.init == "random":
            return rng.integers(K, size=n)
        trials = 2 + int(np.log(K))
        pick = np.array([rng.choice(n, p=w / w.sum())])
        near, label = matrix.apart(pick)[:, 0], np.zeros(n, np.int64)
        for k in range(1, K):
            total = np.cumsum(w * near)
            if not total[-1] > 0:
                break
            some = np.searchsorted(total, rng.random(trials) * total[-1], side="right").clip(0, n - 1)
            apart = matrix.apart(some)
            best = int(np.argmin(w @ np.minimum(near[:, None], apart)))
            label[apart[:, best] < near] = k
            near = np.minimum(near, apart[:, best])
        return label

    def _lloyd(
        self, matrix: Matrix, w: np.ndarray, label: np.ndarray
    ) -> tuple[np.ndarray, list[float], bool, bool, int]:
        """Labels by distances to means, means by labels, until labels stay; the objective of each, and how it ended."""
        losses: list[float] = []
        K, noise = self.n_clusters, 1e-10 * float(w @ abs(matrix.own))
        label, refused = refill(label, w, matrix.own.copy(), K)
        before = best = label
        least, nearest = np.inf, False  # whether the labels are those nearest to the means of `before`
        while True:
            share, N = shares(label, w, K)
            inner = matrix.times(share)
            square = np.einsum("jk,jk->k", share, inner)
            apart = matrix.own[:, None] - 2 * inner + square
            apart[:, N == 0] = np.inf
            here = np.take_along_axis(apart, label[:, None], axis=1)[:, 0]
            losses.append(float(w @ here))
            idle = len(losses) - 1 - int(np.argmin(losses))
            if nearest and losses[-1] < least:
                least, best = losses[-1], before
            new = np.where(apart.min(axis=1) < here, apart.argmin(axis=1), label)  # ties stay: no label runs in circles
            near = np.take_along_axis(apart, new[:, None], axis=1)[:, 0]
            filled, refused = refill(new, w, near, K)
            new, nearest = filled, np.array_equal(filled, new)
            small = len(losses) > 1 and 0 <= losses[-2] - losses[-1] <= self.tol * abs(losses[-1]) and self.tol > 0
            done = np.array_equal(new[w > 0], label[w > 0]) or small
            if done and losses[-1] <= min(losses) + noise:
                return label, losses, True, False, refused
            if done or idle >= IDLE or len(losses) > self.max_iter:
                rose = bool((np.diff(losses) > noise).any())
                return best if rose else label, losses, not rose and len(losses) <= self.max_iter, rose, refused
            before, label = label, new

    # ---------------------------------------------------------------- the contract

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest means."""
        apart = self._to_means(U, b)
        apart[:, ~(U.share > 0).any(axis=0)] = np.inf
        label = apart.argmin(axis=1).astype(np.int32)
        near = np.take_along_axis(apart, label[:, None], axis=1)[:, 0]
        w, K = np.ones(len(near)) if b.w is None else b.w, len(U.square)
        return Local(label, Stats(np.bincount(label, w, K), np.bincount(label, w * near, K)), float(w @ near))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """The means stay as `solve` found them."""
        return U

    def notes(self, U: Parts) -> list[str]:
        """Empty clusters, an end before the optimum."""
        out = []
        if U.empty:
            out.append(f"{U.empty} of {self.n_clusters} clusters are empty: there are too few different rows")
        if U.rose:
            out.append(
                f"the objective rose in an iteration: kernel={self.kernel!r} is not positive semi-definite on these "
                "rows. The best clusters were kept; choose another kernel, gamma or coef0"
            )
        elif not U.settled:
            out.append(f"not converged after {self.max_iter} iterations: raise max_iter")
        return out

    def publish(self, fit: Fit) -> None:
        """Labels and inertia; the iterations as the trace."""
        U = fit.U
        self.labels_ = fit.z
        self.inertia_ = float(fit.loss)
        fell = U.losses <= np.minimum.accumulate(U.losses)
        self.trace_ = [
            Step(i + 1, float(v), 0.0, 0.0, bool(ok)) for i, (v, ok) in enumerate(zip(U.losses, fell, strict=True))
        ]
        self.n_iter_ = len(U.losses)
        self.result_ = "stopped" if U.rose else "converged" if U.settled else "max_iter"

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the means in the space of the kernel (precomputed: squared ones, less K(x, x))."""
        apart = self._to_means(U, b)
        return (apart if self.kernel == "precomputed" else np.sqrt(np.maximum(apart, 0.0))).astype(b.x.dtype)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest mean."""
        return self.local(U, b._replace(w=None)).z

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """There is no way back: a mean in the space of the kernel is no row."""
        raise ValueError("KernelKMeans has no inverse_transform: a mean in the space of the kernel is no row of X")

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


class Matrix:
    """The kernel matrix of all rows: held where it fits, else made again chunk by chunk."""

    def __init__(self, model: KernelKMeans, U: Parts, rows: np.ndarray) -> None:
        self.model, self.U, self.rows = model, U, rows
        n, self.held = len(rows), None
        self.step = chunk(n, 1 << 22)
        if model.kernel == "precomputed":
            self.held, self.own = rows, np.diagonal(rows).astype(np.float64)
            return
        self.own = model._kernel(U, rows)
        if 8 * n * n <= get_config().budget:
            held = np.empty((n, n))
            for part, block in self.chunks():
                held[part] = block
            self.held = held

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows of the matrix, some at a time."""
        for a in range(0, len(self.rows), self.step):
            part = slice(a, a + self.step)
            yield part, self.model._kernel(self.U, self.rows[part], self.rows) if self.held is None else self.held[part]

    def times(self, share: np.ndarray) -> np.ndarray:
        """Σ_j K(x_i, x_j) share_jk."""
        return np.concatenate([block @ share for _, block in self.chunks()])

    def apart(self, index: np.ndarray) -> np.ndarray:
        """‖φ(x_i) − φ(x_j)‖² of all rows and some."""
        if self.held is None:
            inner = self.model._kernel(self.U, self.rows, self.rows[index])
        else:
            inner = self.held[:, index]
        return np.maximum(self.own[:, None] - 2 * inner + self.own[index], 0.0)  # type: ignore[no-any-return]


def chunk(n: int, cells: int) -> int:
    """So many rows of n cells at a time that they take no more than this, nor an eighth of the memory budget."""
    return max(1, min(cells, get_config().budget // 64) // n)


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
