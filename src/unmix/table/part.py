"""Which rows stand for all of a long table."""

from __future__ import annotations

import numpy as np

PIECES = 400  # of a table that stand for all of it


def rows_of(n: int, rows: int) -> np.ndarray:
    """The numbers of about so many of n rows, in pieces spread evenly; of all where there are hardly more."""
    if n <= 2 * rows:
        return np.arange(n)
    pieces = min(PIECES, rows)
    starts = np.linspace(0, n - rows // pieces, pieces).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(rows // pieces))
