"""Factor analysis: the covariance is enough for us, scikit-learn decomposes the rows in every iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

SIZES = {"full": (50_000, 100, 10), "quick": (3_000, 30, 4), "warm": (2_000, 100, 10)}


@dataclass
class FactorAnalysisCase(Case):
    """Planted factors with noise that differs from column to column."""

    def data(self, size: str) -> Any:
        n, d, k = SIZES[size]
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, k)) @ rng.standard_normal((k, d))
        X += rng.standard_normal((n, d)) * rng.uniform(0.3, 2, d)
        return X, k

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Log-likelihood per row of N(mean, WᵀW + diag ψ)."""
        X, _ = data
        W, psi, mean = (np.asarray(result[key], np.float64) for key in ("W", "psi", "mean"))
        L = np.linalg.cholesky(W.T @ W + np.diag(psi))
        Y = np.linalg.solve(L, (X - mean).T)
        return float(-0.5 * ((Y * Y).sum() / len(X) + len(psi) * np.log(2 * np.pi)) - np.log(np.diag(L)).sum())

    @contestant("unmix")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, k = data
        return lambda: unmix.FactorAnalysis(k).fit(X), _parts

    @contestant("scikit-learn", needs="sklearn", note="defaults: svd_method='randomized', tol=0.01")
    def sklearn(self, data, goal):
        from sklearn.decomposition import FactorAnalysis

        X, k = data
        return lambda: FactorAnalysis(k, random_state=0).fit(X), _parts

    @contestant("scikit-learn lapack", needs="sklearn", note="svd_method='lapack', tol=0.01")
    def lapack(self, data, goal):
        from sklearn.decomposition import FactorAnalysis

        X, k = data
        return lambda: FactorAnalysis(k, svd_method="lapack").fit(X), _parts


def _parts(m: Any) -> dict[str, Any]:
    return {"W": m.components_, "psi": m.noise_variance_, "mean": m.mean_, "passes": getattr(m, "n_iter_", None)}


CASES = [
    FactorAnalysisCase(
        "factor_analysis",
        "FactorAnalysis, 50k×100, k=10, float64, to convergence",
        Quality("log-likelihood per row", higher=True, slack=1e-7),
        (Target(50, ("scikit-learn", "scikit-learn lapack")),),
        reference="scikit-learn",
    )
]
