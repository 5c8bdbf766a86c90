"""Clusters and components that rows have ceased to come to while batches were learnt from, each of which forgets."""

from __future__ import annotations

import numpy as np

SCARCE_SHARE = 0.01  # of the weight of an average part: one with less, of batches that forget, has starved


def scarce(weights: np.ndarray) -> int:
    """How many parts have hardly any weight."""
    return int(np.count_nonzero(weights < SCARCE_SHARE * weights.sum() / len(weights)))


def starved(count: int, K: int, parts: str, online: bool) -> list[str]:
    """What to say of so many of K parts, which after online steps alone is worth saying."""
    if not (count and online):
        return []
    return [
        f"{count} of {K} {parts} have starved: hardly any row of the late batches came to them, so they are where data "
        f"were once. Fit anew to late rows, or ask for fewer {parts}"
    ]
