"""Kernel PCA of a few components: the Gram matrix of a radial kernel, then its leading eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

SIZES = {"full": 4000, "quick": 600, "warm": 300}


@dataclass
class KernelPCACase(Case):
    """Concentric sources, or clusters in more columns; the kernel's width is that of the rows."""

    columns: int = 2
    k: int = 5

    def data(self, size: str) -> Any:
        rng, n = np.random.default_rng(0), SIZES[size]
        if self.columns == 2:
            angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(np.arange(n) % 2, 3.0, 0.5)
            X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.standard_normal((n, 2))
            return X, 0.25
        X = rng.standard_normal((n, self.columns))
        X += 2 * rng.standard_normal((10, self.columns))[rng.integers(10, size=n)]
        return X, 1 / (5 * self.columns)

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Variance of φ(x) within the span of the components, from the eigenvectors alone."""
        from sklearn.metrics.pairwise import rbf_kernel

        X, gamma = data
        K = rbf_kernel(X, gamma=gamma)
        Q = np.linalg.qr(np.asarray(result["vectors"], np.float64) - np.mean(result["vectors"], axis=0))[0]
        return float(np.vdot(Q, K @ Q))

    @contestant("unmix")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, gamma = data
        model = unmix.KernelPCA(self.k, kernel="rbf", gamma=gamma, random_state=0)
        return lambda: model.fit(X), _vectors

    @contestant("scikit-learn", needs="sklearn", note="eigen_solver='arpack'")
    def arpack(self, data, goal):
        return self._theirs(data, "arpack")

    @contestant("scikit-learn randomized", needs="sklearn", note="eigen_solver='randomized'")
    def randomized(self, data, goal):
        return self._theirs(data, "randomized")

    def _theirs(self, data: Any, solver: str) -> Any:
        from sklearn.decomposition import KernelPCA

        X, gamma = data
        model = KernelPCA(self.k, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0)
        return lambda: model.fit(X), _vectors


def _vectors(model: Any) -> dict[str, Any]:
    return {"vectors": model.eigenvectors_}


CASES = [
    KernelPCACase(
        f"kernel_pca-{d}",
        f"KernelPCA, 4k×{d}, rbf, k=5",
        Quality("variance captured", higher=True, slack=1e-9),
        (Target(1, ("scikit-learn",)),),
        "scikit-learn",
        (),
        d,
    )
    for d in (2, 64)
]
