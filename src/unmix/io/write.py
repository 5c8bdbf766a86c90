"""Rows to a file, as they come: CSV, TSV, Parquet, Feather, JSON lines, Excel or NumPy.

The file appears when it is complete, or not at all.
"""

from __future__ import annotations

import json
import math
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

ROW_GROUP = 16 << 20  # bytes of rows that are written at a time
SHEET = 1_048_576  # rows that a sheet of Excel holds, its header among them
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # characters that a sheet cannot hold

TABLES = (".csv", ".tsv", ".parquet", ".feather", ".jsonl", ".xlsx")  # that hold more than numbers
KNOWN = (*TABLES, ".npy")


def write_rows(path: str | os.PathLike[str], blocks: Iterable[Any], names: Sequence[str] | None = None) -> int:
    """Write blocks of rows one after the other, and return how many rows there were.

    Parameters
    ----------
    path : str or path
        Ends in one of `KNOWN`. An existing file is replaced once all rows are written.
    blocks : iterable of 2-d arrays
        All with the same columns; a 1-d array is one column, CSR blocks are written dense, a block at a time.
    names : sequence of str, optional
        Column names, where the format has any; x0, x1, … by default.
    """
    path = checked_path(path, KNOWN)
    same = alike(blocks)
    first = next(same, None)
    if first is None:
        raise ValueError("blocks is empty: there is nothing to write")
    names = [f"x{j}" for j in range(first.shape[1])] if names is None else [str(name) for name in names]
    if len(names) != first.shape[1]:
        raise ValueError(f"names has {len(names)} entries, but the rows have {first.shape[1]} columns")
    whole = joined(first, same)
    with replacing(path) as f:
        if path.suffix.lower() == ".npy":
            return write_npy(f, whole, names)
        return WRITERS[path.suffix.lower()](f, (as_arrow(x, names) for x in whole))


def write_tables(path: str | os.PathLike[str] | IO[bytes], tables: Iterable[Any], replace: bool = True) -> int:
    """Write Arrow tables of the same columns one after the other, and return how many rows there were.

    Parameters
    ----------
    path : str, path or binary stream
        Ends in one of `TABLES`; to a stream CSV is written.
    tables : iterable of pyarrow.Table
        At least one; it may be empty, and gives the columns.
    replace : bool, default=True
        Whether a file that is there is replaced, once all rows are written; else it is an error.
    """
    if not isinstance(path, (str, os.PathLike)):
        return write_csv(path, iter(tables))
    path = checked_path(path, TABLES)
    with replacing(path, replace) as f:
        return WRITERS[path.suffix.lower()](f, iter(tables))


def checked_path(path: str | os.PathLike[str], known: Sequence[str]) -> Path:
    """The path of a file that can be written, if what it ends in is known and its folder is there."""
    path = Path(path).expanduser()
    if path.suffix.lower() not in known:
        raise ValueError(f"path={str(path)!r}: unknown extension {path.suffix!r}; known are {', '.join(known)}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}; create it first")
    return path


@contextmanager
def replacing(path: str | os.PathLike[str], replace: bool = True) -> Iterator[IO[bytes]]:
    """A file next to `path` to write to, which replaces it at the end and vanishes on an error."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with open(part, "xb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        if not replace and path.exists():
            raise FileExistsError(f"{str(path)!r} has appeared meanwhile: nothing was written; give another name")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def alike(blocks: Iterable[Any]) -> Iterator[np.ndarray]:
    """Blocks as 2-d arrays, with the same columns and dtype as the first."""
    first: np.ndarray | None = None
    for i, block in enumerate(blocks):
        x = np.asarray(block.toarray() if hasattr(block, "toarray") else block)
        x = x[:, None] if x.ndim == 1 else x
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise ValueError(f"block {i} has shape {x.shape} and dtype {x.dtype}; 2-d arrays of numbers are needed")
        if first is None:
            first = x
        if x.shape[1] != first.shape[1]:
            raise ValueError(f"block {i} has {x.shape[1]} columns, the first block {first.shape[1]}; all must be alike")
        if not np.can_cast(x.dtype, first.dtype, "same_kind"):
            raise ValueError(f"block {i} has dtype {x.dtype}, the first block {first.dtype}; all must be alike")
        yield x.astype(first.dtype, copy=False)


def joined(first: np.ndarray, rest: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Small blocks joined into ones of about `ROW_GROUP` bytes."""
    held, size = [first], first.nbytes
    for x in rest:
        if size >= ROW_GROUP:
            yield np.concatenate(held)
            held, size = [], 0
        held.append(x)
        size += x.nbytes
    yield np.concatenate(held)


def write_npy(f: IO[bytes], blocks: Iterator[np.ndarray], names: list[str]) -> int:
    """The header is written again at the end, when the number of rows is known; NumPy leaves room for it to grow."""
    n, header = 0, {"descr": "", "fortran_order": False, "shape": (0, len(names))}
    for x in blocks:
        if not n:
            header["descr"] = np.lib.format.dtype_to_descr(x.dtype)
            np.lib.format.write_array_header_1_0(f, header)
            begin = f.tell()
        f.write(np.ascontiguousarray(x).data)
        n += len(x)
    f.seek(0)
    np.lib.format.write_array_header_1_0(f, {**header, "shape": (n, len(names))})
    assert f.tell() == begin, "the header of the .npy file changed its length"
    f.seek(0, os.SEEK_END)
    return n


def write_parquet(f: IO[bytes], tables: Iterator[Any]) -> int:
    """One row group for each table, so that readers need little memory."""
    import pyarrow.parquet as pq

    first = next(tables)
    plain = [name for name, t in zip(first.column_names, first.schema.types, strict=True) if str(t) != "double"]
    with pq.ParquetWriter(f, first.schema, compression="zstd", use_dictionary=plain) as writer:
        return _each(writer.write_table, first, tables)


def write_csv(f: IO[bytes], tables: Iterator[Any], delimiter: str = ",") -> int:
    """Numbers with as many digits as are needed to read the same bits back."""
    import pyarrow.csv as pc

    first = texts(next(tables))
    with pc.CSVWriter(f, first.schema, write_options=pc.WriteOptions(delimiter=delimiter)) as writer:
        return _each(writer.write_table, first, (texts(table) for table in tables))


def write_tsv(f: IO[bytes], tables: Iterator[Any]) -> int:
    """CSV with tabs."""
    return write_csv(f, tables, "\t")


def write_feather(f: IO[bytes], tables: Iterator[Any]) -> int:
    """Arrow's own file, version 2 of Feather."""
    import pyarrow as pa

    first = texts(next(tables))  # the next ones may have other dictionaries, which the file could not hold
    with pa.ipc.new_file(f, first.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        return _each(writer.write_table, first, (texts(table) for table in tables))


def write_jsonl(f: IO[bytes], tables: Iterator[Any]) -> int:
    """An object a line; what was not observed is null, dates are text."""

    def write(table: Any) -> None:
        for row in table.to_pylist():
            plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
            f.write(json.dumps(plain, ensure_ascii=False, default=str).encode() + b"\n")

    return _each(write, next(tables), tables)


def write_xlsx(f: IO[bytes], tables: Iterator[Any]) -> int:
    """One sheet, by openpyxl."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError:
        raise ImportError("writing .xlsx needs openpyxl: pip install openpyxl, or write .csv instead") from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet("table")

    def cell(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.replace(tzinfo=None)  # Excel knows of no zones
        if value is None or isinstance(value, (bool, int, date)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        out = WriteOnlyCell(sheet, CONTROL.sub("", str(value)))
        out.data_type = "s"  # never a formula, whatever it begins with
        return out

    written = 1

    def write(table: Any) -> None:
        nonlocal written
        written += table.num_rows
        if written > SHEET:
            raise ValueError(f"a sheet of Excel holds {SHEET:,} rows, and the table has more: write .csv or .parquet")
        for row in table.to_pylist():
            sheet.append([cell(value) for value in row.values()])

    first = next(tables)
    sheet.append([cell(name) for name in first.column_names])
    try:
        n = _each(write, first, tables)
    finally:
        sheet.close()
    book.save(f)
    return n


def _each(write: Callable[[Any], Any], first: Any, rest: Iterator[Any]) -> int:
    """Write one table after the other, as the first has its columns."""
    n = 0
    for table in chain([first], rest):
        write(table)
        n += table.num_rows
    return n


def texts(table: Any) -> Any:
    """Dictionaries as the text that they stand for."""
    import pyarrow as pa

    for j, t in enumerate(table.schema.types):
        if pa.types.is_dictionary(t):
            table = table.set_column(j, table.column_names[j], table.column(j).cast(t.value_type))
    return table


def as_arrow(x: np.ndarray, names: list[str]) -> Any:
    """Columns of an array as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_arrays([pa.array(column) for column in np.ascontiguousarray(x.T)], names=names)


WRITERS = {
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".parquet": write_parquet,
    ".feather": write_feather,
    ".jsonl": write_jsonl,
    ".xlsx": write_xlsx,
}
