"""Any file or frame that people have, read into typed Arrow columns."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.table.errors import TableError, not_there
from unmix.table.formats import from_path
from unmix.table.found import Found
from unmix.table.frames import from_object
from unmix.table.plain import Field

__all__ = ["Raw", "TableError", "read"]

INDEX_NAMES = ("", "Unnamed: 0", "index", "level_0", "rownames", "row names", "row.names")


class Raw:
    """The columns of a table as they were read: typed, nothing left out, nothing scaled.

    Attributes
    ----------
    names : list of str
        Names of the columns, each once.
    schema : pyarrow.Schema
        Their types: numbers, truth values, strings, dictionaries, dates, nulls; none nested.
    n : int
        Number of rows.
    headed : bool
        Whether the table has names of its own.
    notes : list of str
        What a person should know about how it was read.
    index : str or None
        The column that pandas (0, 1, 2 …) or R (1, 2, 3 …) wrote to number the rows.
    files : list of str
        The files that it was read from.
    in_memory : bool
        Whether the columns are in memory, as opposed to a file.
    """

    def __init__(self, found: Found) -> None:
        self._kept, self._fields = found.kept, {f.name: f for f in found.fields}
        self.names = [f.name for f in found.fields]
        self.schema = pa.schema([(f.name, f.type) for f in found.fields])
        self.n = int(found.kept.n)
        self.headed, self.notes, self.files = found.headed, found.notes, found.files
        self.in_memory = found.in_memory
        self._end = weakref.finalize(self, remove, found.folders)
        self.index = self._numbering(found)

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, a few megabytes at a time.

        Parameters
        ----------
        columns : list of str, optional
            Names of the columns wanted; all by default.
        """
        fields = self._chosen(columns)
        positions = sorted({f.position for f in fields})
        at = {p: i for i, p in enumerate(positions)}
        schema = pa.schema([(f.name, f.type) for f in fields])
        for batch in self._kept.batches(positions):
            arrays = [f.of(batch.column(at[f.position])) for f in fields]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def slice(self, start: int, stop: int, columns: list[str] | None = None) -> pa.Table:
        """Rows start to stop (which is not among them) as a table; may be called from several threads."""
        start, stop, _ = slice(start, stop).indices(self.n)
        fields = self._chosen(columns)
        positions = sorted({f.position for f in fields})
        at = {p: i for i, p in enumerate(positions)}
        table = self._kept.take(start, max(start, stop), positions)
        arrays = [f.of(table.column(at[f.position])) for f in fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema([(f.name, f.type) for f in fields]))

    def close(self) -> None:
        """Remove what was written to disk; the table cannot be read afterwards."""
        self._end()

    def _chosen(self, columns: list[str] | None) -> list[Field]:
        return [self._fields[name] for name in (self.names if columns is None else columns)]

    def _numbering(self, found: Found) -> str | None:
        """The first column, if it numbers the rows and is called as programs call such a column."""
        if not self.names or found.original not in INDEX_NAMES or self.n < 2:
            return None
        name = self.names[0]
        if not pa.types.is_integer(self.schema.field(name).type):
            return None
        first = self.slice(0, 1, [name]).column(0)[0].as_py()
        at = first
        for batch in self.batches([name]) if first in (0, 1) else ():
            x = batch.column(0)
            if x.null_count or not np.array_equal(x.to_numpy(), np.arange(at, at + len(x))):
                return None
            at += len(x)
        if first not in (0, 1):
            return None
        who = "pandas" if first == 0 else "another program"
        self.notes.append(f"column {found.original or name!r} is an index that {who} wrote")
        return name


def remove(folders: list[str]) -> None:
    """Leave nothing behind."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def read(source: Any, *, header: bool | None = None, budget: float | None = None) -> Raw:
    """Read a table, whatever it is in.

    Parameters
    ----------
    source : path, frame, Arrow data, or plain lists
        A file (CSV and other delimited text, Excel, JSON lines, Parquet, Feather, ARFF, `.npy`, `.npz`; text may be
        packed with gzip, bzip2, xz or zstd), a folder of Parquet files, "-" for standard input; a frame of pandas,
        polars (lazy ones, too) or narwhals; a DuckDB relation or anything else with an Arrow stream; a list of dicts
        or a dict of lists.
    header : bool, optional
        Whether the first row of a text file or sheet names the columns; by default told from the values.
    budget : float, optional
        Bytes of memory to count on; by default the memory budget of `unmix.config`. A table that takes more than a
        quarter of it is kept in a temporary file, which is removed with the table.

    Returns
    -------
    raw : Raw
    """
    settings = get_config()
    limit = (settings.budget if budget is None else budget) / 4
    if not isinstance(source, (str, os.PathLike)):
        with progress_line("reading the table", settings) as tell:
            return Raw(from_object(source, limit, tell))
    folders: list[str] = []
    path, name = os.path.expanduser(os.fspath(source)), os.fspath(source)
    try:
        if path != "-" and not os.path.exists(path):
            raise not_there(path)
        if path == "-":
            path, name = spooled(sys.stdin.buffer, "standard input", folders), "standard input"
        elif not os.path.isfile(path) and not os.path.isdir(path):  # a pipe
            with open(path, "rb") as pipe:
                path = spooled(pipe, name, folders)
        with progress_line(f"reading {Path(name).name}", settings) as tell:
            found = from_path(path, name, header, limit, tell)
            found.folders += folders
            return Raw(found)
    except BaseException:
        remove(folders)
        raise


def spooled(pipe: IO[bytes], name: str, folders: list[str]) -> str:
    """What comes through a pipe in a temporary file, which can be looked at more than once."""
    folder = tempfile.mkdtemp(prefix="unmix-")
    folders.append(folder)
    path = str(Path(folder, "input"))
    try:
        with open(path, "wb") as f:
            shutil.copyfileobj(pipe, f, 1 << 20)
    except OSError as e:
        raise TableError(f"{name} cannot be kept in {folder} ({e}): set TMPDIR to a larger disk") from e
    return path
