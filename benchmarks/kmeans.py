"""k-means from the same start: a fixed number of passes where nothing is clustered, to convergence where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

PASSES = 20
MOST = 300
AS_FAISS = "unmix, as far as faiss"


@dataclass
class KMeansCase(Case):
    """Lloyd's algorithm, started from rows drawn with a seed, or by k-means++ where it runs to convergence."""

    shape: tuple[int, int, int] = (0, 0, 0)  # rows, columns, clusters
    dtype: str = "float64"
    clustered: bool = False

    def data(self, size: str) -> Any:
        n, d, K = self.shape
        if size != "full":
            n, d, K = (n // 50, min(d, 32), min(K, 16)) if size == "quick" else (8 * K + 1000, d, K)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d), dtype=np.float32).astype(self.dtype)
        if self.clustered:  # round clusters, a few of which touch
            X += (2 * rng.standard_normal((K, d))).astype(self.dtype)[rng.integers(K, size=n)]
            from sklearn.cluster import kmeans_plusplus

            return X, kmeans_plusplus(X[:20_000], K, random_state=0)[0]
        return X, X[rng.choice(n, K, replace=False)]

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Sum of squared distances to the nearest centre, in float64."""
        X, _ = data
        U = np.asarray(result["centers"], np.float64)
        norms, total = (U * U).sum(axis=1) / 2, 0.0
        for a in range(0, len(X), 20_000):
            x = X[a : a + 20_000].astype(np.float64)
            total += (x * x).sum() + 2 * (norms - x @ U.T).min(axis=1).sum()
        return float(total)

    @property
    def limit(self) -> int:
        """The most passes."""
        return MOST if self.clustered else PASSES

    @contestant("unmix")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, U = data
        return lambda: unmix.KMeans(len(U), init=U, n_init=1, max_iter=self.limit, tol=0).fit(X), _centers

    @contestant("scikit-learn", needs="sklearn")
    def sklearn(self, data, goal):
        from sklearn.cluster import KMeans

        X, U = data
        return lambda: KMeans(len(U), init=U, n_init=1, max_iter=self.limit, tol=0).fit(X), _centers

    @contestant("scikit-learn elkan", needs="sklearn", note="algorithm='elkan'")
    def elkan(self, data, goal):
        from sklearn.cluster import KMeans

        X, U = data
        return lambda: KMeans(len(U), init=U, n_init=1, max_iter=self.limit, tol=0, algorithm="elkan").fit(X), _centers

    @contestant("intelex", needs="sklearnex")
    def intelex(self, data, goal):
        from sklearnex.cluster import KMeans

        X, U = data
        return lambda: KMeans(len(U), init=U, n_init=1, max_iter=self.limit, tol=0).fit(X), _centers

    @contestant(AS_FAISS, needs="faiss", note="ends with the first pass whose inertia is no higher than that of faiss")
    def early(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, U = data
        passes = PASSES
        if goal is not None:
            fit, read = self.faiss(data, goal)
            near = self.score(data, read(fit())) / len(X)
            trace = unmix.KMeans(len(U), init=U, n_init=1, max_iter=self.limit, tol=0).fit(X).trace_
            passes = next((i for i, step in enumerate(trace, 1) if step.objective <= near), len(trace))
        return lambda: unmix.KMeans(len(U), init=U, n_init=1, max_iter=passes, tol=0).fit(X), _centers

    @contestant("faiss", needs="faiss", note="knows float32 only, and stops when its objective in float32 stays")
    def faiss(self, data, goal):
        import faiss

        X, U = (np.ascontiguousarray(a, np.float32) for a in data)
        passes = PASSES if goal is None or goal.passes is None else goal.passes

        def fit():
            km = faiss.Kmeans(
                X.shape[1], len(U), niter=passes, max_points_per_centroid=len(X), min_points_per_centroid=1
            )
            km.train(X, init_centroids=U)
            km.index.search(X, 1)  # the labels, which the others give as well
            return km

        return fit, lambda km: {"centers": km.centroids, "passes": len(km.obj)}


def _centers(m: Any) -> dict[str, Any]:
    return {"centers": m.cluster_centers_, "passes": int(m.n_iter_)}


def _name(n: int) -> str:
    return f"{n // 1_000_000}M" if n >= 1_000_000 else f"{n // 1000}k"


def _cases():
    for n, d, K in ((200_000, 64, 100), (50_000, 512, 256)):
        for dtype in ("float32", "float64"):
            yield KMeansCase(
                f"kmeans-plain-{_name(n)}x{d}-{dtype}",
                f"KMeans, {_name(n)}×{d}, K={K}, {dtype}, unclustered, {PASSES} passes",
                Quality("inertia", slack=1e-4 if dtype == "float32" else 1e-6),
                (Target(1, ("intelex",)),),
                "scikit-learn",
                ("scikit-learn elkan", AS_FAISS),
                (n, d, K),
                dtype,
            )
    n, d, K = 1_000_000, 16, 50
    yield KMeansCase(
        "kmeans-plain-1Mx16-float64",
        f"KMeans, 1M×16, K={K}, float64, unclustered, {PASSES} passes",
        Quality("inertia", slack=1e-6),
        (Target(2, ("scikit-learn",)),),
        "scikit-learn",
        ("scikit-learn elkan", AS_FAISS),
        (n, d, K),
    )
    for n, d, K in ((1_000_000, 16, 50), (200_000, 64, 100), (50_000, 512, 256)):
        yield KMeansCase(
            f"kmeans-clustered-{_name(n)}x{d}",
            f"KMeans, {_name(n)}×{d}, K={K}, float64, clustered, to convergence",
            Quality("inertia", slack=1e-6),
            (Target(2, ("scikit-learn", "scikit-learn elkan", "intelex", "faiss")),),
            "scikit-learn",
            (),
            (n, d, K),
            "float64",
            True,
        )


CASES = list(_cases())
