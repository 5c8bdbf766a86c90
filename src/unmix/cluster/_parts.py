"""U of k-means, which its metrics and its stages share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Scratch(NamedTuple):
    """What only saves distances: with zeros here, and rows without bounds, labels, sums and loss are the same."""

    path: np.ndarray  # Σ over passes of ‖Δu_k‖
    drift: np.ndarray  # Σ over passes of max_{j≠k} ‖Δu_j‖
    moved: np.ndarray  # ‖Δu_k‖ of the last pass
    half: np.ndarray  # ½ min_{j≠k} ‖u_k − u_j‖ at least


class Events(NamedTuple):
    """What the last update did: to clusters without rows, and to all of them."""

    refilled: int = 0  # empty clusters that the last update filled
    tried: int = 0  # the same, summed over all updates
    empty: int = 0  # empty clusters that nothing was left for
    scarce: int = 0  # clusters of hardly any weight
    moved: float = 0.0  # Σ ‖Δu_k‖² (for medians Σ ‖Δu_k‖)


class Parts(NamedTuple):
    """U: the centres, and the origin and scale of the data."""

    centers: np.ndarray
    shift: np.ndarray  # about the mean of the data: fixed
    variance: float  # mean over the columns of the data (for medians: mean deviation): fixed
    eps: float  # rounding of the data's precision
    frame: Any  # what else the metric needs
    scratch: Scratch
    events: Events


def unmoved(k: int) -> Scratch:
    """Of k centres that no pass has seen."""
    none = np.zeros(k)
    return Scratch(none, none, none, none)
