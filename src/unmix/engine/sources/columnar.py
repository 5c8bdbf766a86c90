"""Sources over columnar files: Parquet (one file or a folder of them) and Arrow IPC (Feather)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from unmix.engine.sources.arrow import first_text, float_of, is_number, rows, table_columns
from unmix.engine.sources.base import PIECE, Columns, Sequential, check_shape


class Batches(Sequential):
    """Record batches from files: cut without a copy, made into rows by the thread that wants them."""

    def _cut(self, piece: Any, a: int, b: int) -> Any:
        return piece.slice(a, b - a)

    def _rows(self, cuts: list[Any], start: int) -> Any:
        return rows(cuts, self.d, self.dtype)

    def _edges(self) -> list[int]:
        """First rows of the pieces, and n."""
        raise NotImplementedError

    def _origin(self, start: int) -> int:
        edges = self._edges()
        return edges[max(0, bisect_right(edges, min(start, self.n - 1)) - 1)]

    def _sample(self) -> list[int]:
        edges = self._edges()[:-1]
        return [i for i in edges[:: max(1, len(edges) // 4)] if i < self.n]


class Parquet(Batches):
    """Parquet files. The footers say where each row group begins; reading begins there and continues batch by batch.

    Pre-buffering is off and columns are read through small buffers, so that what is held is one batch and, of each
    column, a page or two and its dictionary (some 3 MiB at most), however large the row groups are.
    """

    kind = "parquet"

    def __init__(self, files: list[Path], columns: Columns | None = None, what: str = "") -> None:
        super().__init__()
        import pyarrow.parquet as pq

        self.files = [str(f) for f in files]
        self.groups: list[list[int]] = []  # rows of each row group, file by file
        types: list[Any] = []
        for path in self.files:
            with named(path):
                footer = pq.read_metadata(path)
                schema = footer.schema.to_arrow_schema()
            if not self.groups:
                first, self.names = schema, table_columns(schema, columns)
            else:
                check_same(first, schema, self.names or [], self.files[0], path)
            self.groups.append([footer.row_group(i).num_rows for i in range(footer.num_row_groups)])
            types += [schema.field(name).type for name in self.names or []]
        names = self.names or []
        self.d, self.n = len(names), sum(map(sum, self.groups))
        check_shape(self.n, self.d, what)
        self.starts = [0, *accumulate(r for groups in self.groups for r in groups)]
        self.idle = max(1, min(4, 24 // self.d))  # places kept open, each of which holds pages of every column
        self.dtype = float_of(types)
        for name, t in zip(names * len(self.files), types, strict=True):
            if not is_number(t):
                batches = (b for i in range(len(self.files)) for b in self._batches(i, 0, [name], 1024))
                raise first_text(batches, name, f" of {what}")

    def _edges(self) -> list[int]:
        return self.starts

    def _pieces(self, origin: int) -> Iterator[Any]:
        size = max(64, PIECE // 2 // (self.d * self.dtype.itemsize))
        at = 0
        for i, groups in enumerate(self.groups):
            first = 0
            while first < len(groups) and at < origin:
                at += groups[first]
                first += 1
            if first < len(groups):
                yield from self._batches(i, first, self.names or [], size)

    def _batches(self, file: int, first: int, names: list[str], size: int) -> Iterator[Any]:
        """Batches of one file from row group `first` on."""
        import pyarrow.parquet as pq

        path = self.files[file]
        buffer = min(1 << 18, max(1 << 14, PIECE // 2 // len(names)))
        with named(path), pq.ParquetFile(path, pre_buffer=False, buffer_size=buffer) as f:
            groups = list(range(first, len(self.groups[file])))
            # One thread: on batches this small, handing columns to others costs more time and memory than it saves.
            for batch in f.iter_batches(size, row_groups=groups, columns=names, use_threads=False):
                yield batch.select(names)


class Ipc(Batches):
    """An Arrow IPC file (Feather), mapped into memory and read batch by batch, or an IPC stream, read in order."""

    kind = "arrow"

    def __init__(self, path: Path, columns: Columns | None = None) -> None:
        super().__init__()
        self.path = str(path)
        self.files = [self.path]
        with named(self.path), self._open() as reader:
            schema = reader.schema
            self.names = table_columns(schema, columns)
            self.types = [schema.field(name).type for name in self.names]
            self.whole_file = hasattr(reader, "num_record_batches")
        counts = [b.num_rows for b in self._batches(0, self.names[:1])]
        self.starts = [0, *accumulate(counts)]
        self.n, self.d = self.starts[-1], len(self.names)
        check_shape(self.n, self.d, self.path)
        self.dtype = float_of(self.types)
        for name, t in zip(self.names, self.types, strict=True):
            if not is_number(t):
                raise first_text(self._batches(0, [name]), name, f" of {self.path}")

    @contextmanager
    def _open(self, names: list[str] | None = None) -> Iterator[Any]:
        import pyarrow as pa

        with pa.memory_map(self.path) as f:
            magic = bytes(f.read(6))
            f.seek(0)
            opened = pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream
            options = pa.ipc.IpcReadOptions()
            if names is not None:
                with opened(f) as reader:
                    options.included_fields = [reader.schema.get_field_index(name) for name in names]
                f.seek(0)
            with opened(f, options=options) as reader:
                yield reader

    def _batches(self, first: int, names: list[str]) -> Iterator[Any]:
        with named(self.path), self._open(names) as reader:
            if self.whole_file:
                for i in range(first, reader.num_record_batches):
                    yield reader.get_batch(i).select(names)
            else:
                for batch in reader:
                    yield batch.select(names)

    def _edges(self) -> list[int]:
        return self.starts if self.whole_file else [0, self.n]

    def _pieces(self, origin: int) -> Iterator[Any]:
        return self._batches(bisect_right(self.starts, origin) - 1, self.names or [])


def check_same(first: Any, other: Any, names: list[str], path: str, other_path: str) -> None:
    """Every file of a folder must hold the columns that are read."""
    missing = [n for n in names if n not in other.names]
    extra = [n for n in other.names if n not in first.names]
    if missing or (extra and len(names) == len(first.names)):
        told = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"also has {', '.join(extra)}"] * bool(extra)
        raise ValueError(
            f"the files of a Parquet folder must have the same columns, but {other_path} {' and '.join(told)}, "
            f"compared with {path}; choose columns that all of them have with columns=[…], or read the files one by one"
        )


@contextmanager
def named(path: str) -> Iterator[None]:
    """Errors of the reader, with the file that they are about."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, OSError, EOFError) as e:
        if isinstance(e, FileNotFoundError):
            raise
        raise ValueError(f"{path} cannot be read to its end; it looks truncated or damaged ({brief(e)})") from e


def brief(e: BaseException) -> str:
    """The first line of an error."""
    return (str(e).strip().splitlines() or [type(e).__name__])[0][:200]


def parquet_files(folder: Path) -> list[Path]:
    """Parquet files below a folder, in order of their names; hidden and underscored ones are not data."""
    files = sorted(f for f in folder.rglob("*.parquet") if f.is_file())
    return [f for f in files if not any(p.startswith(("_", ".")) for p in f.relative_to(folder).parts)]
