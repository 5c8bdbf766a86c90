"""PCA of many rows: one pass for the covariance, then its eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

SIZES = {"full": (200_000, 256, 20), "quick": (5_000, 64, 10), "warm": (2_000, 256, 20)}


@dataclass
class PCACase(Case):
    """Decaying spectrum in white noise."""

    def data(self, size: str) -> Any:
        n, d, k = SIZES[size]
        rng = np.random.default_rng(0)
        parts = rng.standard_normal((2 * k, d)) * np.linspace(3, 0.5, 2 * k)[:, None]
        X = rng.standard_normal((n, d))
        X += rng.standard_normal((n, 2 * k)) @ parts
        X += rng.uniform(-3, 3, d)
        return X, k

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Variance of the rows within the span of the components."""
        X, _ = data
        Q = np.linalg.qr(np.asarray(result["components"], np.float64).T)[0]
        return float((X @ Q).var(axis=0).sum())

    @contestant("unmix")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, k = data
        return lambda: unmix.PCA(k).fit(X), _components

    @contestant("scikit-learn", needs="sklearn", note="svd_solver='covariance_eigh'")
    def sklearn(self, data, goal):
        from sklearn.decomposition import PCA

        X, k = data
        return lambda: PCA(k, svd_solver="covariance_eigh").fit(X), _components

    @contestant("intelex", needs="sklearnex", note="svd_solver='covariance_eigh'")
    def intelex(self, data, goal):
        from sklearnex.decomposition import PCA

        X, k = data
        return lambda: PCA(k, svd_solver="covariance_eigh").fit(X), _components


def _components(model: Any) -> dict[str, Any]:
    return {"components": model.components_}


CASES = [
    PCACase(
        "pca",
        "PCA, 200k×256, k=20, float64",
        Quality("variance captured", higher=True, slack=1e-9),
        (Target(1, ("scikit-learn", "intelex")),),
        reference="scikit-learn",
    )
]
