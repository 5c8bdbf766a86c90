"""The number of Gaussians of a mixture, k = 1…20: `unmix.select` beside a loop over scikit-learn's, by BIC."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

STARTS = 3


@dataclass
class SelectCase(Case):
    """Planted Gaussians; every k has the same number of k-means starts and the same tolerance."""

    shape: tuple[int, int, int] = (0, 0, 0)  # rows, columns, Gaussians

    def data(self, size: str) -> Any:
        n, d, K = self.shape
        most = 20
        if size != "full":
            n, K, most = n // 10, 3, 4
        rng = np.random.default_rng(0)
        axes = np.eye(d) + 0.3 * rng.standard_normal((K, d, d))
        label = rng.integers(K, size=n)
        X = 4 * rng.standard_normal((K, d))[label] + np.einsum("nij,nj->ni", axes[label], rng.standard_normal((n, d)))
        return X, range(1, most + 1)

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """The lowest BIC per row."""
        return float(np.min(result["bic"])) / len(data[0])

    @contestant("unmix", note="with warm starts, the second opinion by ICL and the comparison with structureless data")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, ks = data
        return lambda: unmix.select(unmix.GaussianMixture(n_init=STARTS), X, ks, random_state=0), _ours

    @contestant("scikit-learn", needs="sklearn", note="a loop over k, no more than the fits and their BIC")
    def sklearn(self, data, goal):
        from sklearn.mixture import GaussianMixture

        X, ks = data

        def fit():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return [GaussianMixture(k, n_init=STARTS, random_state=0).fit(X).bic(X) for k in ks]

        return fit, lambda bic: {"bic": bic, "passes": int(np.argmin(bic)) + 1}


def _ours(answer: Any) -> dict[str, Any]:
    return {"bic": answer.columns["bic"], "passes": answer.k or 0}


CASES = [
    SelectCase(
        "select-gaussian-mixture",
        "select over k = 1…20, GaussianMixture full, 10k×8, 7 Gaussians, 3 starts each (passes: the chosen k)",
        Quality("BIC per row", slack=1e-3),
        (Target(5, ("scikit-learn",)),),
        "scikit-learn",
        (),
        (10_000, 8, 7),
    )
]
