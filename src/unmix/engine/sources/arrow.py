"""Tables: every data frame and Arrow stream becomes one Arrow table; its batches become rows of numbers here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from unmix.engine.sources.base import Columns, Source, check_shape, choose, float_type, not_a_number


class Table(Source):
    """An Arrow table in memory; blocks are cut from it without a copy and made into rows when they are read."""

    kind = "table"
    in_memory = True

    def __init__(self, columns: list[Any], names: list[str] | None, chosen: Columns | None = None) -> None:
        import pyarrow as pa

        picked = choose(chosen, names, len(columns))
        labels: list[str | int] = list(names) if names is not None else list(range(len(columns)))
        if picked is not None:
            columns, labels = [columns[j] for j in picked], [labels[j] for j in picked]
            names = names if names is None else [names[j] for j in picked]
        self.n, self.d, self.names = len(columns[0]) if columns else 0, len(columns), names
        check_shape(self.n, self.d)
        for column, label in zip(columns, labels, strict=True):
            if not is_number(column.type):
                raise offender(column, label, 0)
        self.table = pa.Table.from_arrays(columns, names=[str(j) for j in range(len(columns))])
        self.dtype = float_of([c.type for c in columns])

    def _read(self, start: int, stop: int) -> Any:
        return rows(self.table.slice(start, stop - start).to_batches(), self.d, self.dtype)


def rows(batches: list[Any], d: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Record batches of numbers as one C-contiguous array; null is NaN."""
    batches = [b for b in batches if b.num_rows]
    if len(batches) == 1:
        return batch_rows(batches[0], dtype)
    out = np.empty((sum(b.num_rows for b in batches), d), dtype)
    at = 0
    for b in batches:
        out[at : at + b.num_rows] = batch_rows(b, dtype)
        at += b.num_rows
    return out


def batch_rows(batch: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """One record batch as a C-contiguous array."""
    import pyarrow as pa

    types = set(batch.schema.types)
    if len(types) == 1 and pa.types.is_floating(batch.schema.types[0]):
        x = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        return np.require(x, dtype, ("C", "A"))
    out = np.empty((batch.num_rows, batch.num_columns), dtype)
    for j, column in enumerate(batch.columns):
        out[:, j] = column_values(column)
    return out


def column_values(a: Any) -> np.ndarray:
    """An Arrow array of numbers as a NumPy array, null as NaN."""
    import pyarrow as pa

    if pa.types.is_dictionary(a.type):
        a = a.dictionary_decode()
    plain = pa.types.is_floating(a.type) or pa.types.is_integer(a.type)
    if not plain or (a.null_count and not pa.types.is_floating(a.type)):
        a = a.cast(pa.float64(), safe=False)
    return np.asarray(a.to_numpy(zero_copy_only=False))


def is_number(t: Any) -> bool:
    """Whether values of an Arrow type are numbers: integers, floats, decimals, truth values, categories of these."""
    import pyarrow as pa

    if pa.types.is_dictionary(t):
        t = t.value_type
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(check(t) for check in checks)


def float_of(types: list[Any]) -> np.dtype[Any]:
    """float32 where every column is float16 or float32, float64 otherwise."""
    import pyarrow as pa

    small = (pa.float16(), pa.float32())
    return float_type([np.float32 if t in small else np.float64 for t in types])


def offender(column: Any, label: str | int, start: int, where: str = "") -> ValueError:
    """The error for a column that is not numbers, naming its first value."""
    for i, value in enumerate(column):
        if value.is_valid:
            return not_a_number(value.as_py(), start + i, label, where)
    return not_a_number(None, start, label, f"{where} (type {column.type})")


def is_frame(x: Any) -> bool:
    """Whether x is a data frame, lazy or not, an Arrow table or stream: something with typed columns, and dense."""
    package = type(x).__module__.partition(".")[0]
    if package in ("numpy", "builtins", "scipy", "unmix", "dask", "dask_expr") or getattr(x, "ndim", 2) == 1:
        return False
    if package == "pandas":
        return not any(type(t).__name__ == "SparseDtype" for t in x.dtypes)
    import narwhals as nw

    frame = nw.from_native(x, pass_through=True)
    return isinstance(frame, (nw.DataFrame, nw.LazyFrame)) or hasattr(x, "__arrow_c_stream__")


def frame_source(x: Any, columns: Columns | None) -> Source | None:
    """The source for a data frame or an Arrow stream; None when x is neither."""
    package = type(x).__module__.partition(".")[0]
    if getattr(x, "ndim", 2) == 1 or (len(getattr(x, "shape", (0, 0))) == 1):
        return None  # a series: the check of dimensions speaks about it
    if package == "pandas":
        return pandas_source(x, columns)
    table = as_table(x, package)
    return None if table is None else Table(table.columns, table.column_names, columns)


def as_table(x: Any, package: str) -> Any:
    """Any other data frame, Arrow table, batch or stream as an Arrow table; None when x is not one."""
    import pyarrow as pa

    if isinstance(x, pa.Table):
        return x
    if isinstance(x, pa.RecordBatch):
        return pa.Table.from_batches([x])
    if isinstance(x, pa.RecordBatchReader):
        return x.read_all()  # a stream that can be read only once: keep it
    import narwhals as nw

    frame = nw.from_native(x, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return frame.to_arrow()
    if hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__"):
        return pa.table(x)
    return None


def pandas_source(x: Any, columns: Columns | None) -> Source:
    """A pandas frame: its own array where all columns are of one NumPy dtype, Arrow columns otherwise."""
    import pandas as pd
    import pyarrow as pa

    from unmix.engine.sources.arrays import Array, Csr

    names = frame_names(list(x.columns))
    dtypes = list(x.dtypes)
    check_shape(*x.shape)
    if all(isinstance(t, pd.SparseDtype) and t.fill_value == 0 for t in dtypes):
        source = Csr(x.sparse.to_coo(), choose(columns, names, x.shape[1]))
        picked = choose(columns, names, x.shape[1])
        source.names = names if names is None or picked is None else [names[j] for j in picked]
        return source
    if len(set(dtypes)) == 1 and isinstance(dtypes[0], np.dtype) and dtypes[0].kind in "fiubc":
        return Array(x.to_numpy(), columns, names)
    picked = choose(columns, names, x.shape[1])
    picked = list(range(x.shape[1])) if picked is None else picked
    arrays = []
    for j in picked:
        series = x.iloc[:, j]
        if isinstance(series.dtype, pd.SparseDtype):
            series = series.sparse.to_dense()
        try:
            arrays.append(pa.array(series, from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            values = series.tolist()
            bad = (i for i, v in enumerate(values) if not isinstance(v, (int, float, np.number, type(None))))
            i = next(bad, 0)
            raise not_a_number(values[i], i, names[j] if names is not None else j) from None
    return Table(arrays, names if names is None else [names[j] for j in picked])


def frame_names(labels: list[Any]) -> list[str] | None:
    """Column names where all labels are text, None where none are."""
    text = [isinstance(c, str) for c in labels]
    if any(text) and not all(text):
        kinds = sorted({type(c).__name__ for c in labels})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types. X.columns = X.columns.astype(str) makes them all strings"
        )
    return [str(c) for c in labels] if all(text) and labels else None


def table_columns(schema: Any, columns: Columns | None) -> list[str]:
    """Names of the columns to read from a file; an index that pandas stored under a made-up name is left out."""
    names = [n for n in schema.names if not re.fullmatch(r"__index_level_\d+__", n)]
    picked = choose(columns, names, len(names))
    names = names if picked is None else [names[j] for j in picked]
    twice = sorted({n for n in names if schema.names.count(n) > 1})
    if twice:
        raise ValueError(f"the file has several columns named {', '.join(twice)}; choose others with columns=[…]")
    return names


def first_text(pieces: Iterator[Any], label: str, where: str) -> ValueError:
    """The error for a column of a file that is not numbers, from batches of that column alone."""
    start, last = 0, None
    for last in pieces:
        column = last.column(0)
        if column.null_count < len(column):
            return offender(column, label, start, where)
        start += len(column)
    return not_a_number(None, 0, label, where)
