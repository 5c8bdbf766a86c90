"""What the columns of some rows are: numbers, or categories in one or several columns; and which of them dominate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

KINDS_LIMIT = 10  # up to this many different values are kinds rather than amounts ...
ROWS_PER_LEVEL = 10  # ... if there are so many rows for each, or the values are whole numbers
DOMINANT_SHARE, DOMINANT_PART, DOMINANT_RATIO = 0.9, 4, 25.0  # of the variance; of the columns; over the others


class Category(NamedTuple):
    """A category, its level in every row, and the columns that tell it."""

    columns: list[int]
    codes: np.ndarray  # from 0 on; −1: not observed


def few(x: np.ndarray) -> np.ndarray:
    """Which columns hold few different values."""
    out = np.zeros(x.shape[1], dtype=bool)
    for j, c in enumerate(x.T):
        c = c[~np.isnan(c)]
        levels = len(np.unique(c))
        out[j] = 1 < levels <= KINDS_LIMIT and (levels * ROWS_PER_LEVEL <= len(c) or bool((c == np.round(c)).all()))
    return out


def categories(x: np.ndarray) -> list[Category]:
    """The categories among the columns: those of few values, each alone or together with its neighbours.

    Columns of two values belong together where they miss the same cells and a row has the higher value in at most one
    of them: "one-hot" columns.
    """
    out: list[Category] = []
    taken, here = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)  # of the last: rows with a level, cells
    for j in np.flatnonzero(few(x)):
        column = x[:, j]
        seen = ~np.isnan(column)
        values = np.unique(column[seen])
        if len(values) > 2:
            out.append(
                Category([int(j)], np.where(seen, np.searchsorted(values, np.where(seen, column, values[0])), -1))
            )
            here = np.zeros(len(x), dtype=bool)
            continue
        high = seen & (column == values[1])
        if not np.array_equal(seen, here) or out[-1].columns[-1] != j - 1 or (taken & high).any():
            out.append(Category([int(j)], np.where(seen, high, -1).astype(np.int64)))
            taken, here = high, seen
        else:
            out[-1].columns.append(int(j))
            out[-1].codes[high] = len(out[-1].columns)
            taken = taken | high
    return [Category(c, np.unique(codes, return_inverse=True)[1] - int((codes < 0).any())) for c, codes in out]


def dominant(variances: np.ndarray) -> np.ndarray | None:
    """The few columns that hold nearly all of the variance, the largest first; None where none do."""
    order = np.argsort(-variances, kind="stable")
    share = np.cumsum(variances[order]) / max(float(variances.sum()), 1e-300)
    count = int(np.searchsorted(share, DOMINANT_SHARE)) + 1
    if len(variances) < 2 or count > max(1, len(variances) // DOMINANT_PART):
        return None
    least = np.median(variances[order[count:]]) if len(order) > count else np.inf
    return order[:count] if variances[order[0]] > DOMINANT_RATIO * least else None
