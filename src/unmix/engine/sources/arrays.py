"""Sources over arrays: NumPy in memory or mapped from disk, CSR, and whatever can be sliced like an array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources.base import (
    PIECE,
    Columns,
    Sequential,
    Source,
    check_shape,
    choose,
    float_type,
    not_a_number,
)

SMALL = 1 << 22  # bytes of an array that is put in the order and the type that passes need once for all of them


class Array(Source):
    """A 2-d array. Rows are views of it where dtype and order allow; other dtypes are converted block by block."""

    kind = "array"

    def __init__(self, x: Any, columns: Columns | None = None, names: list[str] | None = None, path: str = "") -> None:
        check_array(x, path)
        self.columns = choose(columns, names, x.shape[1])
        self.names = names if names is None or self.columns is None else [names[j] for j in self.columns]
        self.path = path
        mapped = x.filename if isinstance(x, np.memmap) else None
        self.files = [path] if path else [str(mapped)] if mapped else []
        self.x = numbers(x) if x.dtype.kind == "O" else x
        self.n, self.d = x.shape[0], x.shape[1] if self.columns is None else len(self.columns)
        self.dtype = float_type([self.x.dtype])
        self.in_memory = isinstance(self.x, np.ndarray) and not isinstance(self.x, np.memmap)
        self.in_order = self.in_memory and self.n * self.d * self.dtype.itemsize <= SMALL
        if self.in_order:
            self.x, self.columns = self._rows_of(self.x), None

    def _read(self, start: int, stop: int) -> Any:
        return self.x[start:stop] if self.in_order else self._rows_of(self.x[start:stop])

    def take(self, index: Any) -> Any:
        """Rows of a sorted index, by NumPy's own indexing where the data are NumPy's."""
        if isinstance(self.x, np.ndarray):
            return self._rows_of(self.x[self._check_index(index)])
        return super().take(index)

    def whole(self, budget: float | None = None) -> Any:
        """The array itself where dtype and order allow, a converted copy otherwise."""
        if not self.in_memory or self.x.dtype != self.dtype or self.columns is not None:
            self.check_budget(budget)
        return self._rows_of(self.x[:])

    def _rows_of(self, x: Any) -> np.ndarray:
        if isinstance(x, np.ma.MaskedArray):
            x = np.ma.filled(x.astype(self.dtype), np.nan)
        x = np.asarray(x)
        rows = np.ascontiguousarray(x if self.columns is None else x[:, self.columns], dtype=self.dtype)
        return rows if rows.flags.aligned else rows.copy()  # memory decides on the last bits (`tree.settle`)

    def __getstate__(self) -> dict[str, Any]:
        # A mapped file travels to another process as its path, not as its contents.
        return {k: v for k, v in self.__dict__.items() if k != "x" or not self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.path:
            self.x = np.load(self.path, mmap_mode="r", allow_pickle=False)


class Slabs(Sequential):
    """An array stored in chunks of rows (Zarr, HDF5): read in slabs of whole chunks, so that each is decoded once."""

    kind = "chunks"

    def __init__(self, x: Any, columns: Columns | None = None) -> None:
        super().__init__()
        check_array(x)
        self.x, self.columns = x, choose(columns, None, x.shape[1])
        self.n, self.d = x.shape[0], x.shape[1] if self.columns is None else len(self.columns)
        self.dtype = float_type([x.dtype])
        chunk = int(x.chunks[0])
        self.slab: int = chunk * max(1, PIECE // max(1, chunk * x.shape[1] * np.dtype(x.dtype).itemsize))

    def _origin(self, start: int) -> int:
        return start - start % self.slab

    def _pieces(self, origin: int) -> Iterator[Any]:
        for a in range(origin, self.n, self.slab):
            x = np.asarray(self.x[a : min(a + self.slab, self.n)])
            yield np.require(x if self.columns is None else x[:, self.columns], self.dtype, ("C", "A"))

    def _sample(self) -> list[int]:
        slabs = list(range(0, self.n, self.slab))
        return slabs[:: max(1, len(slabs) // 4)]


class Csr(Source):
    """A sparse matrix as CSR; rows are views of its arrays. Other formats are converted once.

    Explicit zeros say nothing and are dropped, unless absent entries were not observed: then they are values. Entries
    for the same cell are added up, as SciPy does, but not then: the sum of two ratings is not a rating.
    """

    kind = "csr"
    sparse = True
    in_memory = True
    doubt = ""  # why the entries cannot be read as what was observed

    def __init__(self, x: Any, columns: Columns | None = None, path: str = "") -> None:
        if x.ndim != 2:
            raise ValueError(f"Expected 2D array, got a sparse array of shape {x.shape} instead; use x.reshape(1, -1)")
        check_kind(x.dtype)
        columns = choose(columns, None, x.shape[1])
        csr = sp.csr_array(x)
        lost = x.nnz - csr.nnz
        if columns is not None:
            csr = sp.csr_array(csr[:, columns])
        check_csr(csr)
        if not csr.has_canonical_format:
            csr, lost = csr.copy(), lost + csr.nnz
            csr.sum_duplicates()
            lost -= csr.nnz
        self.doubt = doubt(x, lost)
        self.given, self.x, self.names = csr, without_zeros(csr), None
        self.n, self.d = csr.shape
        check_shape(self.n, self.d, path)
        self.dtype = float_type([csr.dtype])

    @property
    def nbytes(self) -> int:
        """Bytes of values, column indices and row pointers."""
        return int(self.x.nnz * self.dtype.itemsize + self.x.indices.nbytes + self.x.indptr.nbytes)

    def reading(self, absent: str) -> Source:
        """The same rows; refused where the matrix does not tell what was observed."""
        if absent == "unobserved" and self.doubt:
            raise ValueError(f"X cannot be read with absent='unobserved': {self.doubt}")
        out: Any = super().reading(absent)
        if out is not self:
            out.x = self.given if absent == "unobserved" else without_zeros(self.given)
        return out

    def _read(self, start: int, stop: int) -> Any:
        ptr = self.x.indptr[start : stop + 1]
        a, b = ptr[0], ptr[-1]
        values = self.x.data[a:b].astype(self.dtype, copy=False)
        return csr_of(values, self.x.indices[a:b], ptr - a, (stop - start, self.d))

    def take(self, index: Any) -> Any:
        """Rows of a sorted index."""
        return self.x[self._check_index(index)].astype(self.dtype, copy=False)

    def whole(self, budget: float | None = None) -> Any:
        """The matrix itself where its dtype allows."""
        if self.x.dtype != self.dtype:
            self.check_budget(budget)
        return self.x.astype(self.dtype, copy=False)


def doubt(x: Any, lost: int) -> str:
    """Why a sparse matrix that lost entries on the way to CSR does not tell what was observed; "" where it does."""
    if x.format in ("bsr", "dia"):
        return f"its sparse format, {x.format.upper()}, also stores cells that were never set; pass CSR, CSC or COO"
    return twice(*x.tocoo().coords) if lost else ""


def twice(row: np.ndarray, column: np.ndarray, rows: Any = None, columns: Any = None) -> str:
    """What to say about the first cell that occurs more than once; "" if there is none."""
    order = np.lexsort([column, row])
    again = np.flatnonzero((np.diff(row[order]) == 0) & (np.diff(column[order]) == 0))
    if not len(again):
        return ""
    i, j = (at[order[again[0]]] for at in (row, column))
    i, j = i if rows is None else rows[i], j if columns is None else columns[j]
    return (
        f"row {i}, column {j} occurs more than once; keep one entry per cell, or merge them by "
        "unmix.triples(row, column, value, duplicates='mean'), 'sum' or 'last'"
    )


def csr_of(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> Any:
    """A CSR array over these arrays, which are known to be sorted and free of duplicates."""
    out = sp.csr_array(shape, dtype=data.dtype)
    out.data, out.indices, out.indptr = data, indices, indptr  # the constructor would copy slices of large arrays
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def entries(x: Any, kept: np.ndarray) -> Any:
    """CSR rows with only those of their entries for which `kept` is True."""
    before = np.concatenate([[0], np.cumsum(kept)]).astype(x.indptr.dtype)
    return csr_of(x.data[kept], x.indices[kept], before[x.indptr], x.shape)


def check_csr(x: Any) -> None:
    """Compiled loops go through its indices unchecked."""
    try:
        x.check_format(full_check=True)
    except ValueError as e:
        raise ValueError(
            f"Input X is a sparse matrix whose arrays do not fit together ({e}): make it anew from its entries, as "
            "scipy.sparse.csr_array((values, (rows, columns)), shape=(n, d))"
        ) from e


def without_zeros(x: Any) -> Any:
    """CSR rows without explicit zeros: the same array where there are none."""
    kept = x.data != 0
    return x if kept.all() else entries(x, kept)


def check_array(x: Any, path: str = "") -> None:
    """Two dimensions, real numbers, at least one row and column; scikit-learn's words where it has some."""
    where = f" in {path}" if path else ""
    if x.dtype.names:
        raise ValueError(
            f"X is a structured array with fields {', '.join(x.dtype.names)}{where}; turn it into a 2-d array with "
            "numpy.lib.recfunctions.structured_to_unstructured(X), or into a data frame"
        )
    if len(x.shape) < 2:
        got = "1D" if len(x.shape) else "scalar"
        raise ValueError(
            f"Expected 2D array, got {got} array instead{where}:\narray={np.asarray(x)}.\nReshape your data either "
            "using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a "
            "single sample."
        )
    if len(x.shape) > 2:
        raise ValueError(
            f"Found array with dim {len(x.shape)}{where}, shape {tuple(x.shape)}; expected 2: rows × columns. "
            "X.reshape(len(X), -1) puts everything about a row into columns"
        )
    check_kind(x.dtype, x, where)
    check_shape(x.shape[0], x.shape[1], path)


def check_kind(dtype: np.dtype[Any], x: Any = None, where: str = "") -> None:
    """Numbers, or objects that may turn out to be numbers."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported{where}: dtype={dtype}. Pass real and imaginary parts as columns of their own, "
            "or the modulus numpy.abs(X)"
        )
    if dtype.kind in "USTMmV":
        first = "" if x is None or 0 in x.shape else f" (first value {np.asarray(x[:1]).ravel()[0]!s:.80})"
        raise ValueError(
            f"X has dtype {dtype}{where}{first}, but numbers are needed; convert it with X.astype(float), or encode "
            "text and dates as numbers"
        )


def numbers(x: np.ndarray) -> np.ndarray:
    """An array of objects as float64, if they are numbers; None and pandas.NA become NaN."""
    try:
        return x.astype(np.float64)
    except (TypeError, ValueError):
        out = np.empty(x.shape)
        for (i, j), v in np.ndenumerate(x):
            try:
                out[i, j] = np.nan if v is None or type(v).__name__ in ("NAType", "NaTType") else float(v)
            except TypeError as e:
                raise TypeError(f"{e}: X[{i}, {j}] = {v!r:.80}; every cell must be a number or NaN") from None
            except ValueError:
                raise not_a_number(v, i, j) from None
        return out
