"""Canonical signs of components: one rule for all."""

from __future__ import annotations

import numpy as np


def signs(axes: np.ndarray) -> np.ndarray:
    """Signs that make the largest entry of each row positive."""
    if axes.size == 0:
        return np.ones(len(axes))
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return 1.0 - 2.0 * (largest < 0)


def canonical(axes: np.ndarray) -> np.ndarray:
    """Rows with their largest entry positive."""
    return axes * signs(axes)[:, None]
