"""The table that a command is about: opened as the options say, some of its rows, and results beside its columns."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import unmix
from unmix.cli.options import Ask
from unmix.cli.session import Session
from unmix.engine.sources import Source, as_source
from unmix.io.write import as_arrow, write_tables
from unmix.model.estimator import Model
from unmix.table import Table, TableError

ARRAYS = (".zarr", ".h5", ".hdf5")  # that no table is made of
WIDE = 10_000  # columns of an array that are still told apart
TYPED = (".parquet", ".feather")  # files that keep the types of columns
CHUNK = 16 << 20  # bytes of rows that are written at a time, about


def opened(ask: Ask, say: Session) -> Source:
    """The table in a file, with its notes said aloud; large arrays and sparse matrices as rows of numbers."""
    if ask.file.lower().endswith(".unmix"):
        raise TableError(f"{ask.file!r} is a saved model: give a table, or say  unmix info {ask.file}")
    if is_array(ask.file):
        return numbers(ask, say)
    table = Table(
        ask.file,
        columns=ask.columns,
        drop=ask.drop,
        id=ask.id,
        label=ask.label,
        weights=ask.weights,
        kinds=ask.kinds,
        scale=ask.scale,
        header=ask.header,
    )
    for note in table.notes:
        say.note(note)
    return table


def like(file: str, model: Any, header: bool | None, say: Session) -> Source:
    """The rows of a file as a fitted model reads them."""
    if model.recipe is None:
        return as_source(file, columns=model.column_names if isinstance(model, Model) else None)
    table = Table.like(file, model.recipe, header)
    for note in table.notes:
        say.note(note)
    return table


def numbers(ask: Ask, say: Session) -> Source:
    """An array as it is: what is asked of single columns cannot be."""
    for option, given in (("--id", ask.id), ("--label", ask.label), ("--as", ask.kinds), ("--drop", ask.drop)):
        if given:
            raise TableError(f"{option}: {ask.file!r} is an array of numbers without names of columns")
    if ask.weights:
        raise TableError(f"--weights: {ask.file!r} is an array of numbers without names of columns")
    if ask.scale == "auto":
        say.note("an array of numbers: its columns are taken as they are, not scaled")
    return as_source(ask.file, columns=ask.columns)


def is_array(path: str) -> bool:
    """Whether a file is an array that does not make a table: sparse, very wide, or larger than memory."""
    suffix = Path(path).suffix.lower()
    if suffix in ARRAYS:
        return True
    if not os.path.isfile(path):
        return False
    if suffix == ".npz":
        return zipfile.is_zipfile(path) and "indptr.npy" in zipfile.ZipFile(path).namelist()
    if suffix != ".npy":
        return False
    try:
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (ValueError, OSError, EOFError):
        return False
    return len(shape) == 2 and (shape[1] > WIDE or os.path.getsize(path) > unmix.get_config().budget / 4)


def weights_of(source: Source) -> np.ndarray | None:
    """How many times each row counts."""
    return source.weights if isinstance(source, Table) else None


def write_beside(
    path: str, source: Source, names: list[str], blocks: Iterable[list[Any]], force: bool
) -> tuple[int, list[str]]:
    """Write the old columns of a table and new ones beside them; return how many rows, and the new names."""
    old = old_names(source)
    new = [unlike(name, old) for name in names]
    times = {} if Path(path).suffix.lower() in TYPED else _times(source)
    tables = (_in_short(table, times) for table in _beside(source, new, blocks))
    if path == "-":
        import sys

        return write_tables(sys.stdout.buffer, tables), new
    return write_tables(path, tables, replace=force), new


def write_table(path: str, table: Any, source: Source | None, force: bool) -> int:
    """Write a table in place of the one that was read, its times as short as there; return how many rows."""
    typed = source is None or Path(path).suffix.lower() in TYPED
    table = table if typed else _in_short(table, _times(source))
    if path == "-":
        import sys

        return write_tables(sys.stdout.buffer, [table])
    return write_tables(path, [table], replace=force)


def old_names(source: Source) -> list[str]:
    """The columns that are written beside results: all of a table, none of a sparse matrix."""
    if isinstance(source, Table):
        return list(source.raw.names)
    if source.sparse:
        return []
    return [str(name) for name in source.names or [f"x{j}" for j in range(source.d)]]


def unlike(name: str, old: list[str]) -> str:
    """A name that no old column has."""
    taken = {o.lower() for o in old}
    names = (name if i == 1 else f"{name} ({i})" for i in range(1, len(old) + 2))
    return next(n for n in names if n.lower() not in taken)


def _beside(source: Source, names: list[str], blocks: Iterable[list[Any]]) -> Iterator[Any]:
    """Tables of the old and the new columns, of so many rows that writing pays."""
    import pyarrow as pa

    rows = max(1, CHUNK // (8 * max(1, len(old_names(source)) + len(names))))
    held: list[list[Any]] = [[] for _ in names]
    at, count = 0, 0
    for block in _marked(blocks):
        if block is not None:
            for column, more in zip(held, block, strict=True):
                column.append(np.asarray(more))
            count += len(block[0])
        if count >= rows or (block is None and count):
            old = _old(source, at, at + count)
            new = [pa.array(np.concatenate(column)) for column in held]
            yield pa.Table.from_arrays([*old.columns, *new], names=[*old.column_names, *names])
            at, held, count = at + count, [[] for _ in names], 0


def _times(source: Source | None) -> dict[str, Any]:
    """The shortest type for each column of times, in text: dates where all are at midnight, then whole seconds."""
    import pyarrow as pa

    if not isinstance(source, Table):
        return {}
    columns = [f.name for f in source.raw.schema if pa.types.is_timestamp(f.type) and f.type.tz is None]
    left = {name: [pa.date32(), pa.timestamp("s"), pa.timestamp("ms")] for name in columns}
    for batch in source.raw.batches(columns) if columns else ():
        left = {name: [t for t in types if _holds(batch.column(name), t)] for name, types in left.items()}
    return {name: types[0] for name, types in left.items() if types}


def _holds(column: Any, shorter: Any) -> bool:
    """Whether a type holds all times of a column."""
    import pyarrow as pa

    try:
        return bool(column.cast(shorter).cast(column.type).equals(column))  # a cast to days drops hours without a word
    except pa.ArrowInvalid:
        return False


def _in_short(table: Any, times: dict[str, Any]) -> Any:
    """A table with its times in shorter types."""
    for name, shorter in times.items():
        j = table.column_names.index(name)
        table = table.set_column(j, name, table.column(j).cast(shorter))
    return table


def _marked(blocks: Iterable[list[Any]]) -> Iterator[list[Any] | None]:
    """The blocks, and None at their end."""
    yield from blocks
    yield None


def _old(source: Source, start: int, stop: int) -> Any:
    """Rows of the old columns as an Arrow table."""
    import pyarrow as pa

    if isinstance(source, Table):
        return source.raw.slice(start, stop)
    if source.sparse:
        return pa.table({})
    return as_arrow(source.read(start, stop), old_names(source))
