"""The planted problem of the models that look for round clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def round_clusters(rng: np.random.Generator) -> tuple[np.ndarray, Callable[[Any], None]]:
    """Four round clusters of different sizes, apart by many times their width; and a check that they were found."""
    truth = np.array([[0.0, 0, 0, 5], [6, 0, 0, 0], [0, 6, 0, -5], [0, 0, 6, 0]])
    label = np.repeat(np.arange(4), (30, 60, 90, 120))
    X = truth[label] + 0.5 * rng.standard_normal((len(label), 4))

    def found(model: Any) -> None:
        apart = np.sqrt(((truth[:, None] - model.cluster_centers_) ** 2).sum(-1))
        assert apart.min(axis=1).max() < 0.5, "a planted centre was not found"
        assert len(set(apart.argmin(axis=1))) == len(truth), "two planted centres share one that was found"

    return X, found
