"""k-medoids:  clusters around rows of the data, for any distance D.

local    z_i = argmin_k D(x_i, m_k)                    loss_i = D(x_i, m_k)
stats    N_k = Σ_{z_i=k} w_i     V_k = Σ_{z_i=k} w_i D(x_i, m_k)
update   none: the medoids are found from the matrix of all distances, D_ij, in `solve`

*FasterPAM* (Schubert & Rousseeuw 2021) looks at one row after the other and lets it take the place of the medoid for
which it lowers Σ w D most, if it does; it ends when no row helps. *Voronoi iteration* assigns rows, then takes from
each cluster the row with the least Σ w D within it; it is cheaper and ends sooner, in worse optima.

A swap needs all pairs of rows, so no block of rows has statistics that would give the next medoids: the iterations are
inside `solve`, on single-precision distances (half the traffic). Labels and loss come from differences x − m in double
precision. Equal rows are merged, and looked at in an order of their own: the fit does not depend on the order of the
rows. With given first medoids it is the order of X (of equal rows the first counts), as in FasterPAM.

Where the matrix is beyond the memory budget, medoids are found in several samples of the rows, each with the best
medoids so far; all rows decide which are best (as CLARA, Kaufman & Rousseeuw 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.layout import Shape
from unmix.engine.sample import distinct
from unmix.engine.trace import Fit, Step
from unmix.maths.distances import differences
from unmix.model import Model

METRICS = """braycurtis canberra chebyshev cityblock correlation cosine dice euclidean hamming haversine jaccard l1 l2
    mahalanobis manhattan minkowski precomputed rogerstanimoto russellrao seuclidean sokalsneath sqeuclidean yule"""
TAKES = dict.fromkeys(
    [
        "braycurtis",
        "canberra",
        "chebyshev",
        "correlation",
        "dice",
        "hamming",
        "jaccard",
        "rogerstanimoto",
        "russellrao",
        "sokalsneath",
        "sqeuclidean",
        "yule",
    ],
    ("w",),
) | {"minkowski": ("p", "w"), "mahalanobis": ("VI",), "seuclidean": ("V",)}
UNWEIGHTED = "init names rows of weight 0 or without an observed cell: give rows that count"
SAMPLES, SAMPLE = 5, 4096  # samples where the matrix does not fit, and how many rows each has if it may


class Parts(NamedTuple):
    """U: the medoids, and what their distances need."""

    centers: np.ndarray  # (K, d); 0 where a cell was not observed; (K, 0) for a precomputed matrix
    seen: np.ndarray | None  # which cells were observed
    medoids: np.ndarray  # rows of a precomputed matrix, else −1
    far: float  # the distance of rows that share no observed cell
    shape: np.ndarray | None  # inverse covariance ("mahalanobis") or variances ("seuclidean")
    losses: np.ndarray  # per row, at the start of each round (of each sample: the least so far)
    settled: bool
    sampled: int  # rows of a sample, 0 where all were used
    distinct: int  # different rows, where those were too few


class Stats(NamedTuple):
    """Weight and loss of each cluster."""

    N: np.ndarray
    V: np.ndarray


class Rows(NamedTuple):
    """z: the cluster of each row, and the medoid that the row is (−1: none)."""

    label: np.ndarray
    medoid: np.ndarray


class KMedoids(ClusterMixin, Model):
    """Clusters around medoids, which are rows of the data: minimise Σ_i w_i min_k D(x_i, m_k).

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    metric : str or callable, default="euclidean"
        A distance that `sklearn.metrics.pairwise_distances` knows by name, a function of two rows, or "precomputed":
        X is then the symmetric matrix of the rows' distances in `fit`, and the distances of new rows to all rows of
        `fit` in `transform` and `predict`. With "euclidean", NaN means not observed: distances are over the cells that
        both rows have, scaled up to all cells (as scikit-learn's nan_euclidean); rows that share none are as far apart
        as two rows are on average; a row without any cell has no say.
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
        The most rounds over the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the first medoids and of the order in which rows are looked at.

    Attributes
    ----------
    medoid_indices_ : ndarray of int of shape (n_clusters,)
        The rows of X that are medoids.
    cluster_centers_ : ndarray of shape (n_clusters, d)
        Those rows; not there for "precomputed".
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
    >>> from unmix.cluster.kmedoids import KMedoids
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMedoids(n_clusters=2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.medoid_indices_.tolist()), model.inertia_
    ([0, 3], 8.0)
    """

    missing = True
    collect = True
    exempt: ClassVar[dict[str, str]] = {
        "online": "medoids need all pairs of rows: a batch cannot change them",
        "resume": "the rounds are made in memory, in one step: there is nothing to go on from",
    }

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
        """Refuse more clusters than rows, a precomputed matrix that is not square, first medoids that are no rows."""
        K, n = self.n_clusters, shape.n
        if n < K:
            raise ValueError(f"n_samples={n} should be >= n_clusters={K}: ask for fewer clusters")
        if self.metric == "precomputed" and n != shape.d:
            raise ValueError(f"metric='precomputed' needs a square matrix of distances, not {n} × {shape.d}")
        if isinstance(self.metric, str):
            takes = TAKES.get(self.metric, ())
            for name in self.metric_params or {}:
                if name not in takes:
                    raise ValueError(
                        f"metric_params has {name!r}, but metric={self.metric!r} takes {' and '.join(takes) or 'none'}"
                    )
        if not isinstance(self.init, str):
            first = np.asarray(self.init)
            if first.shape != (K,) or first.dtype.kind not in "iu":
                raise ValueError(f"init is an array of {first.dtype} {first.shape}: give {K} row indices (integers)")
            if first.min() < 0 or first.max() >= n or len(set(first.tolist())) < K:
                raise ValueError(f"init={first.tolist()}: give {K} different rows from 0 to {n - 1}")

    def route(self, shape: Shape) -> str:
        """The whole matrix at once."""
        if not shape.complete:
            self._refuse_missing()
        return "direct"

    def _refuse_missing(self) -> None:
        if self.metric not in ("euclidean", "l2"):
            raise ValueError(
                f"Input X contains NaN, and metric={self.metric!r} needs every cell: use metric='euclidean', or impute"
            )

    # ---------------------------------------------------------------- distances

    def _distances(self, U: Parts, x: np.ndarray, seen: Any, y: np.ndarray, seen_y: Any) -> np.ndarray:
        """Distances of rows x to rows y in float64."""
        x, y = x.astype(np.float64), y.astype(np.float64)
        if seen is not None or seen_y is not None:
            self._refuse_missing()
            seen = np.ones(x.shape, bool) if seen is None else seen
            seen_y = np.ones(y.shape, bool) if seen_y is None else seen_y
            common = seen.astype(np.float64) @ seen_y.T
            out = np.sqrt(differences(x, y, seen, seen_y) * (x.shape[1] / np.maximum(common, 1.0)))
            out[common == 0] = U.far
            out[~seen.any(axis=1)] = 0.0
            return out
        if self.metric in ("euclidean", "l2"):
            return np.sqrt(differences(x, y))
        from sklearn.metrics import pairwise_distances

        more = dict(self.metric_params or {})
        if U.shape is not None:
            more |= {"VI" if self.metric == "mahalanobis" else "V": U.shape.astype(np.float64)}
        if x.shape[1] == 0:
            return np.zeros((len(x), len(y)))
        out = np.asarray(pairwise_distances(x, y, metric=self.metric, **more), dtype=np.float64)
        if not np.isfinite(out).all():
            i, j = (int(v[0]) for v in np.nonzero(~np.isfinite(out)))
            raise ValueError(
                f"metric={self.metric!r} gives {out[i, j]} for the rows {x[i][:4]}… and {y[j][:4]}…: "
                "drop such rows or choose another metric"
            )
        if pair := negative(out):
            i, j = pair
            raise ValueError(
                f"metric={self.metric!r} gives {out[i, j]} for the rows {x[i][:4]}… and {y[j][:4]}…: "
                "a distance is 0 or more; give one that is"
            )
        return np.maximum(out, 0.0)

    def _to_medoids(self, U: Parts, b: Block) -> np.ndarray:
        """Distances of a block's rows to the medoids."""
        if self.metric == "precomputed":
            out = b.x[:, U.medoids].astype(np.float64)
            if pair := negative(out):
                i, k = pair
                refuse_negative(out[i, k], b.start + i, U.medoids[k])
            return np.maximum(out, 0.0)
        return self._distances(U, b.x, b.observed, U.centers, U.seen)

    # ---------------------------------------------------------------- the fit

    def start(self, sample: Block, rng: np.random.Generator) -> Parts:
        """The medoids of a sample."""
        x = sample.x if sample.observed is None else np.where(sample.observed, sample.x, np.nan)
        return self.solve(x, sample.w, rng)

    def solve(self, x: np.ndarray, w: np.ndarray | None, rng: np.random.Generator) -> Parts:
        """Medoids from the matrix of all distances, or of those in samples."""
        if self.metric == "precomputed":
            return self._solve_given(x, np.ones(len(x)) if w is None else w, rng)
        nan = np.isnan(x) if not np.isfinite(x.sum()) else None
        if nan is not None and nan.any():
            whole = distinct(Block(np.where(nan, x.dtype.type(0), x), w, None, ~nan))
            seen = whole.observed
            some = seen.any(axis=1)  # type: ignore[union-attr]
            whole = whole._replace(
                x=whole.x[some],
                w=None if whole.w is None else whole.w[some],
                observed=seen[some],  # type: ignore[index]
            )
        else:
            whole = distinct(Block(x, w))
        n, K = whole.x.shape[0], self.n_clusters
        most, given = int(np.sqrt(get_config().budget / 4)), not isinstance(self.init, str)
        order = rng.permutation(n)
        if given and n <= most:  # as the rows stand in X, equal ones where the first does
            place, at = np.unique(find(whole.x, whole.observed, x), return_index=True)
            order = place[np.argsort(at)]
            order = order[order >= 0]  # −1: of no weight, or without a cell
        rows, seen = whole.x[order], None if whole.observed is None else whole.observed[order]
        weight = np.ones(n) if whole.w is None else whole.w[order]
        first = find(rows, seen, x[np.asarray(self.init)]) if given else None
        if first is not None and (first < 0).any():
            raise ValueError(UNWEIGHTED)
        U, points, unit = self._geometry(rows, seen, weight)
        if n <= K:
            index, losses, done = np.arange(K) % n, np.zeros(1), True
            return self._chosen(U, rows, seen, index)._replace(losses=losses, settled=done, distinct=n)
        scaled = U._replace(far=U.far * unit)
        if n <= most:
            D, scale = self._matrix(scaled, points, seen)
            index, losses, done = self._best(D, weight, first, rng)
            losses = losses * (scale / unit / weight.sum())
            return self._chosen(U, rows, seen, index)._replace(losses=losses, settled=done)
        size = min(most, max(SAMPLE, 20 * K), n)
        if size < 2 * K:
            raise MemoryError(
                f"n_clusters={K} needs samples of at least {2 * K} rows, whose distances take {16 * K * K} bytes, but "
                f"the memory budget is {get_config().budget}: raise unmix.config(memory_budget=…)"
            )
        trail: list[float] = []
        best = first
        for _ in range(SAMPLES):
            others = np.setdiff1d(np.arange(n), [] if best is None else best)
            drawn = rng.choice(others, size - (0 if best is None else K), replace=False)
            some = drawn if best is None else np.concatenate([best, drawn])
            D, _ = self._matrix(scaled, points[some], None if seen is None else seen[some])
            index, _, done = self._best(D, weight[some], None if best is None else np.arange(K), rng)
            found = some[index]
            loss = self._loss(self._chosen(U, rows, seen, found), rows, seen, weight)
            if not trail or loss < trail[-1]:
                best = found
            trail.append(min([loss, *trail[-1:]]))
        return self._chosen(U, rows, seen, best)._replace(losses=np.array(trail), settled=True, sampled=size)

    def _solve_given(self, D: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> Parts:
        """Medoids from the matrix that the user gives, as it is."""
        i, j = rng.integers(len(D), size=(2, 4096))
        if not np.allclose(D[i, j], D[j, i], rtol=1e-4, atol=1e-6 * abs(D[i, j]).max()):
            raise ValueError("metric='precomputed' needs a symmetric matrix: pass (X + X.T) / 2 if that is meant")
        rows, first = np.flatnonzero(w > 0), None if isinstance(self.init, str) else np.asarray(self.init)
        if len(rows) < len(D):  # a row of no weight is no row
            need = D.itemsize * len(rows) ** 2
            if need > get_config().budget:
                raise MemoryError(
                    f"the distances of the rows of positive weight take {need} bytes, but the memory budget is "
                    f"{get_config().budget}: drop the others before, or raise unmix.config(memory_budget=…)"
                )
            D = D[np.ix_(rows, rows)]
            if first is not None and not np.isin(first, rows).all():
                raise ValueError(UNWEIGHTED)
            first = None if first is None else np.searchsorted(rows, first)
        if pair := negative(D):
            refuse_negative(D[pair], *rows[list(pair)])
        K = self.n_clusters
        U = Parts(np.zeros((K, 0)), None, np.arange(K), 0.0, None, np.zeros(1), True, 0, 0)
        if len(rows) <= K:
            return U._replace(medoids=rows[np.arange(K) % len(rows)], distinct=len(rows))
        index, losses, done = self._best(D, w[rows], first, rng)
        return U._replace(medoids=rows[index], losses=losses / w.sum(), settled=done)

    def _geometry(self, rows: np.ndarray, seen: np.ndarray | None, w: np.ndarray) -> tuple[Parts, np.ndarray, float]:
        """What distances need of the data, in parts without medoids; rows to compare; the factor of their distances.

        For the euclidean distance the rows are measured from the mean and scaled to about 1.
        """
        d, shape = rows.shape[1], None
        count = w.sum() if seen is None else np.maximum(w @ seen, np.finfo(float).tiny)
        shift = (w @ rows.astype(np.float64)) / count
        rest = rows - shift if seen is None else np.where(seen, rows - shift, 0.0)
        with np.errstate(over="ignore"):
            variance = w @ np.square(rest) / count
        if not np.isfinite(variance).all():
            size = f"{abs(rest).max():.0e}"
            raise ValueError(f"X varies by {size}: squares of that are beyond float64. Divide X by {size} first.")
        more = self.metric_params or {}
        if self.metric == "seuclidean" and "V" not in more:
            shape = np.where(variance > 0, variance, 1.0)
        if self.metric == "mahalanobis" and "VI" not in more:
            shape = np.linalg.pinv((rest.T * w) @ rest / w.sum(), hermitian=True)
        points, unit = rows.astype(np.float64), 1.0
        if self.metric in ("euclidean", "l2"):
            unit = 2.0 ** -np.round(0.5 * np.log2(variance.max())) if variance.max() > 0 else 1.0
            points = np.ascontiguousarray(rest * unit)
        K, far = self.n_clusters, float(np.sqrt(2 * variance.sum()))
        return Parts(np.zeros((K, d)), None, np.full(K, -1), far, shape, np.zeros(1), True, 0, 0), points, unit

    def _matrix(self, U: Parts, points: np.ndarray, seen: np.ndarray | None) -> tuple[np.ndarray, float]:
        """All distances in float32, and the power of two that they were divided by, lest they leave its range."""
        n, scale = len(points), 0.0
        out = np.empty((n, n), np.float32)
        step = max(1, (1 << 20) // n)
        if self.metric in ("euclidean", "l2") and seen is None:
            from unmix.kernels.medoids import roots

            columns, squares = np.ascontiguousarray(-2 * points.T), np.einsum("ij,ij->i", points, points)
            d, flat = points.shape[1], out.reshape(-1)
            for a in range(0, n, step):  # the part right of the diagonal, and its mirror image
                b = min(a + step, n)
                products, x, y = points[a:b] @ columns[:, a:], points[a:b].reshape(-1), points[a:].reshape(-1)
                roots(products.reshape(-1), x, squares[a:b], y, squares[a:], d, flat, a)
                out[b:, a:b] = out[a:b, b:].T
            np.fill_diagonal(out, 0.0)
            return out, 1.0
        for a in range(0, n, step):
            part = slice(a, a + step)
            D = self._distances(U, points[part], None if seen is None else seen[part], points, seen)
            scale = scale or (2.0 ** np.round(np.log2(D.max())) if D.max() > 0 else 1.0)
            out[part] = D / scale
        if seen is not None:
            np.fill_diagonal(out, 0.0)
        return out, scale

    def _best(
        self, D: np.ndarray, w: np.ndarray, first: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, bool]:
        """Medoids of the best of the starts, the losses with which its rounds began, and whether it came to an end."""
        from unmix.kernels import medoids

        flat, K = D.reshape(-1), self.n_clusters
        run = medoids.alternate if K == 1 or self.method == "alternate" else medoids.fasterpam
        tries = []
        for _ in range(1 if first is not None or self.init == "build" else self.n_init):
            if first is not None:
                index = first.astype(np.int64)
            elif self.init == "build":
                index = medoids.build(flat, w, K)
            elif self.init == "random":
                index = rng.choice(len(w), K, replace=False, p=w / w.sum())
            else:
                index = far_apart(D, w, K, rng)
            losses, done = run(flat, w, index, min(int(self.max_iter), 1 << 16))
            tries.append((index, losses, bool(done)))
        index, losses, done = min(tries, key=lambda t: t[1][-1])
        return index, losses[:-1], done

    def _chosen(self, U: Parts, rows: np.ndarray, seen: np.ndarray | None, index: Any) -> Parts:
        """Parts with these rows as medoids."""
        return U._replace(centers=rows[index].astype(np.float64), seen=None if seen is None else seen[index])

    def _loss(self, U: Parts, rows: np.ndarray, seen: np.ndarray | None, w: np.ndarray) -> float:
        """Mean distance of all rows to the nearest medoid."""
        total, step = 0.0, max(1, (1 << 20) // (rows.shape[1] + self.n_clusters))
        for a in range(0, len(rows), step):
            part = slice(a, a + step)
            b = Block(rows[part], None, None, None if seen is None else seen[part])
            total += float(w[part] @ self._to_medoids(U, b).min(axis=1))
        return total / float(w.sum())

    # ---------------------------------------------------------------- the contract

    def local(self, U: Parts, b: Block) -> Local:
        """Nearest medoids."""
        D = self._to_medoids(U, b)
        label = D.argmin(axis=1).astype(np.int32)
        near = np.take_along_axis(D, label[:, None], axis=1)[:, 0]
        w = np.ones(len(near)) if b.w is None else b.w
        medoid = np.full(len(near), -1, np.int32)
        if b.closing and self.metric != "precomputed":
            rows = np.flatnonzero((w > 0) & np.isin(b.x[:, 0], U.centers[:, 0]))
            medoid[rows] = find(U.centers, U.seen, b.x[rows], None if b.observed is None else b.observed[rows])
        K = len(U.medoids)
        stats = Stats(np.bincount(label, w, K), np.bincount(label, w * near, K))
        return Local(Rows(label, medoid), stats, float(w @ near))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """The medoids stay as `solve` found them."""
        return U

    def notes(self, U: Parts) -> list[str]:
        """Samples instead of all rows, too few distinct rows, an end before the optimum."""
        out = []
        if U.sampled:
            out.append(
                f"the matrix of distances is beyond the memory budget: medoids come from {SAMPLES} samples of "
                f"{U.sampled} rows, and all rows decided which are best; raise unmix.config(memory_budget=…) for more"
            )
        if 0 < U.distinct < self.n_clusters:
            out.append(f"only {U.distinct} distinct rows for {self.n_clusters} clusters: medoids are repeated")
        if not U.settled:
            out.append(f"not converged after {self.max_iter} rounds: raise max_iter")
        return out

    def publish(self, fit: Fit) -> None:
        """Medoids, labels and inertia; the rounds as the trace."""
        U, K = fit.U, self.n_clusters
        self.inertia_ = float(fit.loss)
        self.labels_ = fit.z.label
        self.trace_ = [Step(i + 1, float(v), 0.0, 0.0) for i, v in enumerate(U.losses)]
        self.n_iter_ = len(U.losses)
        self.result_ = "converged" if U.settled else "max_iter"
        self.__dict__.pop("cluster_centers_", None)
        if self.metric == "precomputed":
            self.medoid_indices_ = np.asarray(U.medoids).copy()
            return
        rows = np.flatnonzero(fit.z.medoid >= 0)[::-1]
        where = np.full(K, -1)
        where[fit.z.medoid[rows]] = rows  # the first of equal rows is written last
        seen = None if U.seen is None else U.seen
        self.medoid_indices_ = where[find(U.centers, seen, U.centers, seen)]  # equal medoids are one row
        self.cluster_centers_ = U.centers.copy() if seen is None else np.where(seen, U.centers, np.nan)

    @property
    def _n_features_out(self) -> int:
        return len(self.medoid_indices_)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the medoids."""
        return self._to_medoids(U, b).astype(b.x.dtype)

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The nearest medoid."""
        return self._to_medoids(U, b).argmin(axis=1).astype(np.int32)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """The nearest medoid's row."""
        if self.metric == "precomputed":
            raise ValueError("metric='precomputed' knows distances, no rows: take X[model.medoid_indices_[labels]]")
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
        mean = super().score(X, y, sample_weight)
        return mean * self._open(X, sample_weight, reset=False)[2].weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.allow_nan = self.metric in ("euclidean", "l2")
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


def far_apart(D: np.ndarray, w: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ for distances: of several rows drawn by weight × distance so far the one that leaves least."""
    trials = 2 + int(np.log(K))
    index = np.empty(K, np.int64)
    index[0] = rng.choice(len(w), p=w / w.sum())
    near = D[index[0]].astype(np.float64)
    for i in range(1, K):
        chance = w * near
        chance[index[:i]] = 0.0
        if not chance.sum() > 0:  # every row is at no distance from a medoid
            chance = w.copy()
            chance[index[:i]] = 0.0
        total = np.cumsum(chance)
        some = np.searchsorted(total, rng.random(trials) * total[-1], side="right").clip(0, len(w) - 1)
        some = some[chance[some] > 0] if (chance[some] > 0).any() else [int(np.argmax(chance))]
        nearer = np.minimum(near, D[some])
        best = int(np.argmin(nearer @ w))
        index[i], near = some[best], nearer[best]
    return index


def negative(D: np.ndarray) -> tuple[int, int] | None:
    """The place of the least distance, if it is negative by more than rounding makes it."""
    if D.min(initial=0.0) >= 0 or D.min() >= -1e-6 * max(float(abs(D).max()), 1e-3):
        return None
    i, j = np.unravel_index(int(D.argmin()), D.shape)
    return int(i), int(j)


def refuse_negative(value: float, i: int, j: int) -> None:
    """Name two rows whose given distance is negative."""
    raise ValueError(
        f"metric='precomputed': the distance of rows {i} and {j} is {value}, but a distance is 0 or more: "
        "pass distances, not similarities"
    )


def find(rows: np.ndarray, seen: np.ndarray | None, wanted: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
    """For each wanted row the first of the rows that equals it cell by cell, −1 where none does.

    Unobserved cells are NaN in `wanted`, or 0 and marked in `given`.
    """
    if given is None and np.isnan(wanted).any():
        given = ~np.isnan(wanted)
    rows, wanted = (np.asarray(v, dtype=np.float64) for v in (rows, wanted))
    if seen is not None or given is not None:
        mark = np.ones(rows.shape, bool) if seen is None else seen
        rows = np.where(mark, rows, np.inf)
        wanted = np.where(np.ones(wanted.shape, bool) if given is None else given, wanted, np.inf)
    some = np.flatnonzero(np.isin(rows[:, 0], wanted[:, 0]))  # those that can be equal
    keys = np.ascontiguousarray(rows[some] + 0.0).view(f"V{8 * rows.shape[1]}").ravel().tolist()  # + 0.0: −0 is 0
    place = {key: i for i, key in zip(some[::-1], reversed(keys), strict=True)}
    asked = np.ascontiguousarray(wanted + 0.0).view(f"V{8 * rows.shape[1]}").ravel().tolist()
    return np.array([place.get(key, -1) for key in asked])
