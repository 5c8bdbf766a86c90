"""Some rows of a long table, spread evenly over it."""

from __future__ import annotations

import numpy as np

from unmix.table.table import Table

PIECES = 400  # of a table that stand for all of it


def rows_of(n: int, rows: int) -> np.ndarray:
    """The numbers of about so many of n rows, in pieces spread evenly; of all where there are hardly more."""
    if n <= 2 * rows:
        return np.arange(n)
    piece = max(1, rows // PIECES)
    starts = np.linspace(0, n - piece, PIECES).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(piece))


def part_of(table: Table, rows: int) -> Table:
    """These rows as a table of their own, whose columns are taken for what they are in the whole."""
    at = rows_of(table.n, rows)
    if len(at) == table.n:
        return table
    import pyarrow as pa

    names = [*table.recipe.columns, *table.role("weight", "id", "label")]
    edges = np.flatnonzero(np.diff(at) > 1) + 1
    some = pa.concat_tables([table.raw.slice(int(part[0]), int(part[-1]) + 1, names) for part in np.split(at, edges)])
    kinds = {c.name: c.kind for c in table.columns if c.role == "used"}
    return Table(
        some, columns=table.recipe.columns, weights=next(iter(table.role("weight")), None), id=table.role("id"),
        label=table.role("label"), kinds=kinds, scale=table.scale,
    )  # fmt: skip
