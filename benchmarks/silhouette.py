"""Exact silhouettes of every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

CHECKED = 200  # rows whose silhouettes are made anew, by the definition


@dataclass
class SilhouetteCase(Case):
    """Round clusters, some of which touch."""

    shape: tuple[int, int, int] = (0, 0, 0)  # rows, columns, clusters

    def data(self, size: str) -> Any:
        n, d, K = self.shape
        n = {"full": n, "quick": n // 10, "warm": 1000}[size]
        rng = np.random.default_rng(0)
        labels = rng.integers(K, size=n)
        return 2 * rng.standard_normal((K, d))[labels] + rng.standard_normal((n, d)), labels

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """The largest error of some rows."""
        X, labels = data
        worst = 0.0
        for i in range(0, len(X), max(1, len(X) // CHECKED)):
            distance = np.sqrt(((X - X[i]) ** 2).sum(axis=1))
            total, count = np.bincount(labels, distance), np.bincount(labels)
            own = labels[i]
            a, b = total[own] / (count[own] - 1), np.delete(total / count, own).min()
            worst = max(worst, abs((b - a) / max(a, b) - result["s"][i]))
        return worst

    @contestant("unmix")
    def ours(self, data, goal):
        from unmix.validate import silhouette

        return lambda: silhouette(*data, per_row=True), lambda found: {"s": found.per_row}

    @contestant("scikit-learn", needs="sklearn")
    def sklearn(self, data, goal):
        from sklearn.metrics import silhouette_samples

        return lambda: silhouette_samples(*data), lambda found: {"s": found}


CASES = [
    SilhouetteCase(
        f"silhouette-{n // 1000}kx{d}",
        f"silhouette, {n // 1000}k×{d}, K={K}, float64, every row",
        Quality("largest error", goal=1e-9),
        targets,
        "scikit-learn",
        (),
        (n, d, K),
    )
    for n, d, K, targets in (
        (20_000, 16, 10, (Target(8, ("scikit-learn",)),)),
        (10_000, 128, 10, (Target(1, ("scikit-learn",)),)),
    )
]
