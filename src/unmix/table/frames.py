"""Tables in memory: frames of pandas, polars and narwhals, Arrow data, a query, plain lists."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from unmix.table.arrays import columns, named
from unmix.table.found import Found, Tell, arrow, check, stream
from unmix.table.records import MIXED, column_of, of_records
from unmix.table.store import Memory


def from_object(source: Any, limit: float, tell: Tell) -> Found:
    """The table in an object."""
    home = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        check(source.num_rows, source.num_columns, "the table")
        return arrow(Memory(source), [])
    if isinstance(source, (nw.DataFrame, nw.LazyFrame)) or home == "narwhals":
        return from_object(source.to_native(), limit, tell)
    if home == "pandas" and hasattr(source, "columns"):
        return pandas(source)
    if home == "polars" and hasattr(source, "collect"):
        source = source.collect(engine="streaming")
    if home == "polars" and hasattr(source, "columns"):
        return from_object(source.to_arrow(), limit, tell)
    if isinstance(source, np.ndarray):
        return columns(named("", source, "the array"), "the array", limit, tell, [])
    if isinstance(source, (dict, list)):
        return of_records(source, "the table")
    try:
        streams = hasattr(source, "__arrow_c_stream__")
        frame: Any = pa.RecordBatchReader.from_stream(source) if streams else nw.from_native(source)
    except (TypeError, pa.ArrowInvalid):  # one column is no table
        raise TypeError(
            f"a {type(source).__name__} is no table: give a path, a frame (pandas, polars, narwhals), Arrow data, a "
            "DuckDB relation, a list of dicts or a dict of lists"
        ) from None
    if streams:
        return stream(frame, frame.schema, limit, tell, "the table")
    table = frame.collect("pyarrow").to_native() if isinstance(frame, nw.LazyFrame) else frame.to_arrow()
    return from_object(table, limit, tell)


def pandas(frame: Any) -> Found:
    """A pandas frame, column by column: names may occur twice, values may be of any kind."""
    check(len(frame), frame.shape[1], "the frame")
    notes: list[str] = []
    names, parts = [], []
    index = frame.index
    levels = [index.get_level_values(i) for i in range(index.nlevels)]
    if any(level.name is not None or level.dtype.kind not in "iu" for level in levels):
        names += [str(level.name) if level.name is not None else "index" for level in levels]
        parts += [series(level.to_series()) for level in levels]
        notes.append("the frame's index is read as a column")
    names += [".".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns]
    parts += [series(frame.iloc[:, j]) for j in range(frame.shape[1])]
    headed = not (type(frame.columns).__name__ == "RangeIndex" and frame.columns.name is None)
    if not headed:
        names = [*names[: -frame.shape[1]], *("" for _ in range(frame.shape[1]))]
    found = arrow(Memory(pa.Table.from_arrays(parts, names=names)), [])
    found.notes, found.headed = notes + found.notes, headed
    return found


def series(s: Any) -> Any:
    """A pandas column as Arrow has it; of text, where its values are of several kinds."""
    if str(s.dtype).startswith("period"):
        s = s.dt.to_timestamp()
    try:
        return pa.array(s, from_pandas=True)
    except (*MIXED, AttributeError, NotImplementedError):
        return column_of(list(np.asarray(s)))
