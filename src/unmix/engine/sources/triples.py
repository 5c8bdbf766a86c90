"""Rows from a table of triples (row, column, value), such as who rated what, and how: one line for each entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources.arrays import Csr, check_kind, numbers, twice

MERGES = ("error", "mean", "sum", "last")


class Triples(Csr):
    """A sparse matrix of what triples say; what they do not say was not observed.

    Attributes
    ----------
    rows, columns : ndarray
        What the rows and the columns are called in the triples, in the order of the matrix.
    """

    def __init__(self, x: Any, rows: np.ndarray, columns: np.ndarray, named: bool) -> None:
        super().__init__(x)
        self.absent, self.x = "unobserved", self.given
        self.rows, self.columns = rows, columns
        self.names = [str(c) for c in columns] if named else None

    def __repr__(self) -> str:
        return f"<{self.n} rows × {self.d} columns, {self.x.nnz} entries observed>"


def triples(
    row: Any,
    column: Any,
    value: Any,
    *,
    data: Any = None,
    rows: Any = None,
    columns: Any = None,
    duplicates: str = "error",
) -> Triples:
    """Return the rows that triples (row, column, value) stand for; cells that no triple names were not observed.

    Parameters
    ----------
    row, column, value : arrays of shape (m,), or str
        Who, what, and how much: one entry each. Rows and columns may be called by numbers or by text. With `data`: the
        names of its three columns.
    data : data frame or Arrow table, optional
        The table that holds the triples.
    rows, columns : int or array, optional
        What the rows and columns of the matrix are called, in order; an int n stands for 0 to n − 1. By default those
        that occur, sorted. For new rows of a fitted model pass `columns` of the source that it was fitted on.
    duplicates : {"error", "mean", "sum", "last"}, default="error"
        What to do where a cell occurs more than once.

    Returns
    -------
    source : Source
        A sparse source with `absent="unobserved"`, which models take as X. Its `rows` and `columns` are the names.

    Examples
    --------
    >>> from unmix import triples
    >>> source = triples(["ann", "bob", "bob"], ["tea", "tea", "rum"], [5, 0, 3])
    >>> source.n, source.d, source.names
    (2, 2, ['rum', 'tea'])
    >>> source.absent
    'unobserved'
    """
    if duplicates not in MERGES:
        raise ValueError(f"duplicates={duplicates!r}: take one of {', '.join(MERGES)}")
    if data is not None:
        row, column, value = table_columns(data, [row, column, value])
    for name, a in (("row", row), ("column", column), ("value", value)):
        if np.ma.is_masked(a):
            raise ValueError(f"{name} has masked entries: leave those triples out, as with {name}.compressed()")
    row, column, value = (np.asarray(a) for a in (row, column, value))
    if not row.ndim == column.ndim == value.ndim == 1 or not len(row) == len(column) == len(value) > 0:
        raise ValueError(
            f"row, column and value have the shapes {row.shape}, {column.shape} and {value.shape}: pass three 1-d "
            "arrays of one length, with at least one entry"
        )
    check_kind(value.dtype)
    if value.dtype == np.float16:  # which SciPy's sparse matrices cannot hold
        value = value.astype(np.float32)
    if value.dtype.kind == "O":
        value = numbers(value[:, None])[:, 0]
    i, row_names = positions(row, rows, "row")
    j, column_names = positions(column, columns, "column")
    shape = len(row_names), len(column_names)
    if duplicates == "error":
        x = sp.coo_array((value, (i, j)), shape=shape)
        again = twice(i, j, row_names, column_names)
        if again:
            raise ValueError(again)
    else:
        x = merged(i, j, value, shape, duplicates)
    return Triples(x, row_names, column_names, named=not isinstance(columns, (int, np.integer)))


def merged(i: np.ndarray, j: np.ndarray, value: np.ndarray, shape: tuple[int, int], how: str) -> Any:
    """One entry for each cell: the mean, the sum or the last of its values."""
    order = np.lexsort([j, i])  # stable: the last of equal cells is the last of the triples
    i, j, value = i[order], j[order], value[order]
    first = np.flatnonzero(np.r_[True, (np.diff(i) != 0) | (np.diff(j) != 0)])
    size = np.diff(first, append=len(i))
    if how == "last":
        value = value[first + size - 1]
    else:
        value = np.add.reduceat(value, first, dtype=np.float64 if value.dtype.kind in "biu" else value.dtype)
        value = value / size if how == "mean" else value
    return sp.coo_array((value, (i[first], j[first])), shape=shape)


def positions(keys: np.ndarray, wanted: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Where each key stands among the wanted ones, and these; by default all that occur, sorted."""
    empty = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(len(keys), bool)
    if keys.dtype.kind == "O":
        empty = np.array([k is None or k != k for k in keys])
    if empty.any():
        raise ValueError(f"the {what} of triple {int(np.argmax(empty))} is missing: drop that triple, or name it")
    if keys.dtype.kind == "O" and len({isinstance(k, str) for k in keys}) > 1:
        raise ValueError(f"some {what}s of the triples are called by text and some by numbers: make them all text")
    if wanted is None:
        names, at = np.unique(keys, return_inverse=True)
        return at, names
    names = np.arange(wanted) if isinstance(wanted, (int, np.integer)) else np.asarray(wanted)
    if names.ndim != 1 or len(set(names.tolist())) < len(names) or not len(names):
        raise ValueError(f"{what}s={wanted!r}: give different names in one list, at least one, or how many there are")
    order = np.argsort(names, kind="stable")
    at = order[np.minimum(np.searchsorted(names, keys, sorter=order), len(names) - 1)]
    unknown = names[at] != keys
    if unknown.any():
        raise ValueError(
            f"{what} {keys[np.argmax(unknown)]} of triple {int(np.argmax(unknown))} is not among the {len(names)} "
            f"{what}s asked for: drop such triples, or leave {what}s out to take all that occur"
        )
    return at, names


def table_columns(data: Any, names: list[Any]) -> list[np.ndarray]:
    """Three columns of a data frame or Arrow table."""
    import narwhals as nw

    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError as e:
        raise TypeError(
            f"data is a {type(data).__name__}: pass a data frame or an Arrow table (read a file with pandas or polars)"
        ) from e
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"data has no column {name!r}; it has {', '.join(map(str, frame.columns[:8]))}")
    return [frame[name].to_numpy() for name in names]
