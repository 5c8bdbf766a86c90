"""Numbers so large or small that sums of them, or of their squares, leave a precision."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_range(cells: np.ndarray, d: int, rules: Any) -> None:
    """Refuse cells of d columns so large or small that sums of squares (power 1: of a row) leave the precision."""
    power, precision = rules.power, np.dtype(np.float64) if rules.double else cells.dtype
    if not power:
        return
    limits = np.finfo(precision)
    size = max(float(cells.max(initial=0)), -float(cells.min(initial=0)))
    if power == 2:
        what, largest, smallest = "squares", 0.1 * np.sqrt(limits.max / max(cells.size, 1)), 1e3 * np.sqrt(limits.tiny)
    else:
        what, largest, smallest = "sums", limits.max / d, limits.tiny
    if size > largest or 0 < size < smallest:
        raise ValueError(f"X reaches {size:.0e} in size, and {what} of that are beyond {precision}: {remedy(size)}")


def remedy(size: float) -> str:
    """By what to multiply X, of this size, so that it is about 1."""
    return f"multiply X by 1e{int(np.clip(-np.round(np.log10(size)), -300, 300)):+d}"
