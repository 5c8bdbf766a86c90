"""Some rows of a long table, spread evenly over it."""

from __future__ import annotations

import numpy as np

from unmix.table.table import Table

PIECES = 400  # of a table that stand for all of it


def rows_of(n: int, rows: int) -> np.ndarray:
    """The numbers of about so many of n rows, in pieces spread evenly; of all where there are hardly more."""
    if n <= 2 * rows:
        return np.arange(n)
    starts = np.linspace(0, n - max(1, rows // PIECES), PIECES).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(max(1, rows // PIECES)))


def part_of(table: Table, rows: int) -> Table:
    """These rows as a table of their own, whose columns are taken for what they are in the whole."""
    at = rows_of(table.n, rows)
    return table if len(at) == table.n else table.only(at)
