"""Rows to a file, as they come: Parquet, CSV or NumPy. The file appears when it is complete, or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

ROW_GROUP = 16 << 20  # bytes of rows that are written at a time

KNOWN = (".parquet", ".csv", ".npy")


def write_rows(path: str | os.PathLike[str], blocks: Iterable[Any], names: Sequence[str] | None = None) -> int:
    """Write blocks of rows one after the other, and return how many rows there were.

    Parameters
    ----------
    path : str or path
        Ends in `.parquet`, `.csv` or `.npy`. An existing file is replaced once all rows are written.
    blocks : iterable of 2-d arrays
        All with the same columns; a 1-d array is one column, CSR blocks are written dense, a block at a time.
    names : sequence of str, optional
        Column names, for Parquet and CSV; x0, x1, … by default.
    """
    path = Path(path).expanduser()
    writers = {".parquet": write_parquet, ".csv": write_csv, ".npy": write_npy}
    if path.suffix.lower() not in writers:
        raise ValueError(f"path={str(path)!r}: unknown extension {path.suffix!r}; known are {', '.join(KNOWN)}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}; create it first")
    checked = alike(blocks)
    first = next(checked, None)
    if first is None:
        raise ValueError("blocks is empty: there is nothing to write")
    names = [f"x{j}" for j in range(first.shape[1])] if names is None else [str(name) for name in names]
    if len(names) != first.shape[1]:
        raise ValueError(f"names has {len(names)} entries, but the rows have {first.shape[1]} columns")
    with replacing(path) as f:
        return writers[path.suffix.lower()](f, joined(first, checked), names)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file next to `path` to write to, which replaces it at the end and vanishes on an error."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with open(part, "xb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
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


def write_parquet(f: IO[bytes], blocks: Iterator[np.ndarray], names: list[str]) -> int:
    """One row group for each joined block, so that readers need little memory."""
    import pyarrow.parquet as pq

    first = next(blocks)
    n, schema = 0, as_arrow(first[:0], names).schema
    with pq.ParquetWriter(f, schema, compression="zstd", use_dictionary=first.dtype.kind != "f") as writer:
        for x in chain([first], blocks):
            writer.write_table(as_arrow(x, names))
            n += len(x)
    return n


def write_csv(f: IO[bytes], blocks: Iterator[np.ndarray], names: list[str]) -> int:
    """Numbers with as many digits as are needed to read the same bits back."""
    import pyarrow.csv as pc

    first = next(blocks)
    n, schema = 0, as_arrow(first[:0], names).schema
    with pc.CSVWriter(f, schema) as writer:
        for x in chain([first], blocks):
            writer.write_table(as_arrow(x, names))
            n += len(x)
    return n


def as_arrow(x: np.ndarray, names: list[str]) -> Any:
    """Columns of an array as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_arrays([pa.array(column) for column in np.ascontiguousarray(x.T)], names=names)
