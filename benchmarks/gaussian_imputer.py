"""Missing cells of many rows: EM for one Gaussian, beside a regression for each column in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

SIZES = {"full": (100_000, 50, 10), "quick": (2_000, 10, 3), "warm": (300, 50, 10)}
MISSING = 0.2


@dataclass
class GaussianImputerCase(Case):
    """Planted factors with noise that differs from column to column, a fifth of the cells missing."""

    def data(self, size: str) -> Any:
        n, d, k = SIZES[size]
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, k)) @ rng.standard_normal((k, d))
        X += rng.standard_normal((n, d)) * rng.uniform(0.3, 1, d)
        return X, np.where(rng.random(X.shape) < MISSING, np.nan, X)

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Root mean squared error of the missing cells."""
        X, holes = data
        return float(np.sqrt(((result["filled"] - X)[np.isnan(holes)] ** 2).mean()))

    @contestant("unmix", note="with 20 estimates of the bootstrap")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        return lambda: unmix.GaussianImputer(random_state=0).fit_transform(data[1]), _filled

    @contestant("unmix, known", note="n_bootstrap=0")
    def known(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        return lambda: unmix.GaussianImputer(n_bootstrap=0).fit_transform(data[1]), _filled

    @contestant("scikit-learn", needs="sklearn", note="IterativeImputer()")
    def sklearn(self, data, goal):
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        return lambda: IterativeImputer(random_state=0).fit_transform(data[1]), _filled


def _filled(X: Any) -> dict[str, Any]:
    return {"filled": X}


CASES = [
    GaussianImputerCase(
        "gaussian_imputer",
        "GaussianImputer, 100k×50, 20 % missing, float64, fit and transform",
        Quality("error of the missing cells", slack=1e-3),
        (Target(20, ("scikit-learn",)),),
        reference="scikit-learn",
    )
]
