"""Where the columns of a table are: in memory, in an Arrow file beside, or in the Parquet files that were given.

Each gives a range of rows, of the columns at some positions (in rising order), as a table, to several threads at once.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from unmix.engine.sources.base import Sequential, human
from unmix.table.errors import TableError, reading

BATCH = 4 << 20  # bytes of a batch, about


class Memory:
    """Columns in memory."""

    def __init__(self, table: Any) -> None:
        self.table, self.schema, self.n = table, table.schema, table.num_rows

    def take(self, start: int, stop: int, positions: list[int]) -> Any:
        """Rows start..stop."""
        return self.table.select(positions).slice(start, stop - start)

    def batches(self, positions: list[int]) -> Iterator[Any]:
        """All rows, a few megabytes at a time."""
        step = max(1, int(BATCH * self.n / max(1, self.table.nbytes)))
        yield from self.table.select(positions).to_batches(max_chunksize=step)


class IpcFile:
    """Columns in an Arrow file, read by batches with ordinary reads: a mapped file would count as memory in use."""

    def __init__(self, path: str, ours: bool = False) -> None:
        self.path, self.ours = path, ours
        self.own = threading.local()
        with reading(path, "an Arrow file", pa.ArrowException, OSError):
            with self._open(None) as reader:
                self.schema = reader.schema
                count = reader.num_record_batches
            with self._open([0] if len(self.schema) else None) as reader:
                self.edges = [0, *accumulate(reader.get_batch(i).num_rows for i in range(count))]
        self.n = self.edges[-1]

    def _open(self, positions: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions()
        if positions is not None:
            options.included_fields = positions
        return pa.ipc.open_file(pa.OSFile(self.path), options=options)

    def _reader(self, positions: list[int]) -> Any:
        """A reader of this thread for these columns, kept for the next call."""
        if vars(self.own).get("positions") != positions:
            self.own.reader, self.own.positions = self._open(positions), list(positions)
        return self.own.reader

    def _batch(self, i: int, positions: list[int]) -> Any:
        with reading(self.path, "an Arrow file", pa.ArrowException, OSError):
            batch = self._reader(positions).get_batch(i)
            if not self.ours:  # Arrow believes what a file says of where values lie
                batch.validate(full=True)
        return batch

    def take(self, start: int, stop: int, positions: list[int]) -> Any:
        """Rows start..stop."""
        first = bisect_right(self.edges, start) - 1
        last = max(first + 1, bisect_right(self.edges, stop - 1)) if start < stop else first
        schema = pa.schema([self.schema.field(p) for p in positions])
        batches = [self._batch(i, positions) for i in range(first, last)]
        return pa.Table.from_batches(batches, schema).slice(
            start - self.edges[min(first, len(self.edges) - 1)], stop - start
        )

    def batches(self, positions: list[int]) -> Iterator[Any]:
        """All rows, batch by batch."""
        for i in range(len(self.edges) - 1):
            batch = self._batch(i, positions)
            step = max(1, int(4 * BATCH * len(batch) / max(1, batch.nbytes)))
            for at in range(0, len(batch), step):
                yield batch.slice(at, step)


class ParquetFiles:
    """Columns in Parquet files: read in place, row after row by places that stay open between calls."""

    def __init__(self, files: list[str], schema: Any, groups: list[list[int]]) -> None:
        self.files, self.schema, self.groups = files, schema, groups
        self.n = sum(map(sum, groups))
        self.open: dict[tuple[int, ...], Places] = {}
        self.lock = threading.Lock()

    def take(self, start: int, stop: int, positions: list[int]) -> Any:
        """Rows start..stop."""
        key = tuple(positions)
        with self.lock:
            places = self.open.setdefault(key, Places(self, positions))
        return places.rows(start, stop)

    def batches(self, positions: list[int]) -> Iterator[Any]:
        """All rows, batch by batch."""
        yield from Places(self, positions).pieces(0)


class Places(Sequential):
    """Open places in Parquet files, for some of the columns."""

    def __init__(self, files: ParquetFiles, positions: list[int]) -> None:
        super().__init__()
        self.parquet, self.n, self.d = files, files.n, max(1, len(positions))
        self.schema = pa.schema([files.schema.field(p) for p in positions])
        self.starts = [0, *accumulate(r for groups in files.groups for r in groups)]
        self.idle = max(1, min(4, 24 // self.d))

    def rows(self, start: int, stop: int) -> Any:
        """Rows start..stop as a table."""
        return self._read(start, stop)

    def _origin(self, start: int) -> int:
        return self.starts[max(0, bisect_right(self.starts, min(start, self.n - 1)) - 1)]

    def _step(self) -> int:
        return max(64, BATCH // 2 // (8 * self.d))

    def _pieces(self, origin: int) -> Iterator[Any]:
        return self.pieces(origin)

    def pieces(self, origin: int) -> Iterator[Any]:
        """Batches from the row group that begins at row `origin` to the end."""
        import pyarrow.parquet as pq

        at = 0
        names = self.schema.names
        for path, groups in zip(self.parquet.files, self.parquet.groups, strict=True):
            wanted = [i for i, edge in enumerate(accumulate([at, *groups[:-1]])) if edge >= origin] if groups else []
            at += sum(groups)
            if not wanted:
                continue
            kinds = (pa.ArrowInvalid, OSError, EOFError)
            with reading(path, "a Parquet file", *kinds), pq.ParquetFile(path, pre_buffer=False) as f:
                for batch in f.iter_batches(self._step(), row_groups=wanted, columns=names, use_threads=False):
                    yield (
                        pa.Table.from_batches([batch]).select(names).cast(self.schema).combine_chunks().to_batches()[0]
                    )

    def _cut(self, piece: Any, a: int, b: int) -> Any:
        return piece.slice(a, b - a)

    def _rows(self, cuts: list[Any], start: int) -> Any:
        return pa.Table.from_batches(cuts, self.schema)


class Store:
    """Takes batches as they come: keeps them in memory while they fit, and goes on in a file on disk when not.

    Parameters
    ----------
    limit : float
        Bytes to hold in memory.
    """

    def __init__(self, limit: float) -> None:
        self.limit, self.held, self.size, self.n = limit, [], 0, 0  # type: ignore[var-annotated]
        self.folder: str | None = None
        self.schema: Any = None
        self.sink: Any = None
        self.writer: Any = None

    def add(self, batch: Any) -> None:
        """Take a batch."""
        self.n += batch.num_rows
        if self.writer is None:
            self.held.append(batch)
            self.size += batch.nbytes
            if self.size > self.limit:
                self._spill()
        else:
            self._write(batch)

    def _spill(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="unmix-")
        self.sink = pa.OSFile(str(Path(self.folder, "table.arrow")), "wb")
        # A file of batches takes one dictionary a column, and the next batch may have another: values are written.
        kinds = [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in self.held[0].schema]
        self.schema = pa.schema(kinds)
        self.writer = pa.ipc.new_file(self.sink, self.schema)
        held, self.held = self.held, []
        for batch in held:
            self._write(batch)

    def _write(self, batch: Any) -> None:
        try:
            self.writer.write_batch(batch.cast(self.schema) if batch.schema != self.schema else batch)
        except OSError as e:
            raise self._full(e) from e

    def _full(self, e: OSError) -> Exception:
        """The error of a disk that takes no more."""
        folder = self.folder
        self.drop()
        if e.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return e
        return TableError(
            f"the disk is full: the table does not fit in {human(self.limit)} of memory and is kept in "
            f"{Path(folder or '').parent} while it is used; free space there, or set TMPDIR to a larger disk"
        )

    def _close(self) -> None:
        self.writer.close()
        self.sink.close()

    def drop(self) -> None:
        """Leave nothing behind."""
        self.held = []
        if self.folder is not None:
            with suppress(OSError):
                self._close()
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = self.writer = None

    def done(self, schema: Any) -> Memory | IpcFile:
        """What was taken."""
        if self.writer is None:
            return Memory(pa.Table.from_batches(self.held, schema).unify_dictionaries())
        try:
            self._close()
        except OSError as e:
            raise self._full(e) from e
        return IpcFile(str(Path(self.folder or "", "table.arrow")), ours=True)
