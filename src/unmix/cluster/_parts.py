"""U of k-means, which its metrics and its stages share."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.maths.arrays import POSITIVE, Array


class Scratch(NamedTuple):
    """What only saves distances: with zeros here, and rows without bounds, labels, sums and loss are the same."""

    path: Annotated[np.ndarray, Array("k")]  # Σ over passes of ‖Δu_k‖
    drift: Annotated[np.ndarray, Array("k")]  # Σ over passes of max_{j≠k} ‖Δu_j‖
    moved: Annotated[np.ndarray, Array("k")]  # ‖Δu_k‖ of the last pass
    half: Annotated[np.ndarray, Array("k")]  # ½ min_{j≠k} ‖u_k − u_j‖ at least


class Events(NamedTuple):
    """What the last update did: to clusters without rows, and to all of them."""

    refilled: int = 0  # empty clusters that the last update filled
    tried: int = 0  # the same, summed over all updates
    empty: int = 0  # empty clusters that nothing was left for
    scarce: int = 0  # clusters of hardly any weight
    moved: float = 0.0  # Σ ‖Δu_k‖² (for medians Σ ‖Δu_k‖)


class Parts(NamedTuple):
    """U: the centres, and the origin and scale of the data."""

    centers: Annotated[np.ndarray, Array("k e")]
    shift: Annotated[np.ndarray, Array("e")]  # about the mean of the data: fixed
    variance: Annotated[float, Array(low=0.0)]  # mean over the columns of the data (for medians: mean deviation): fixed
    eps: Annotated[float, Array(low=POSITIVE)]  # rounding of the data's precision
    frame: Annotated[Any, "frame"]  # what else the metric needs
    scratch: Scratch
    events: Events


def unmoved(k: int) -> Scratch:
    """Of k centres that no pass has seen."""
    none = np.zeros(k)
    return Scratch(none, none, none, none)
