"""What each kind of file or frame becomes: told by content, read by the library made for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unmix.engine.sources.columnar import parquet_files
from unmix.table.errors import TableError, forbidden, reading
from unmix.table.plain import Field, fields_of, unique
from unmix.table.store import Memory, ParquetFiles, Store
from unmix.table.streams import opened
from unmix.table.text import Columns, TextTable

Tell = Callable[[str], None]


@dataclass
class Found:
    """What a source holds: where its columns are kept and what there is to say."""

    kept: Any
    fields: list[Field]
    headed: bool = True
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # to be removed with the table
    original: str | None = None  # what the source calls its first column

    @property
    def in_memory(self) -> bool:
        """Whether the columns are in memory."""
        return isinstance(self.kept, Memory)


def from_path(path: str, name: str, header: bool | None, limit: float, tell: Tell) -> Found:
    """The table in a file or folder."""
    if os.path.isdir(path):
        return parquet(path, name, limit)
    try:
        with open(path, "rb") as f:
            head = f.read(16)
    except PermissionError:
        raise forbidden(name) from None
    if head.startswith(b"PAR1"):
        return parquet(path, name, limit)
    return of_text(TextTable(opened(path, name), header, limit, tell).read(), [path])


def of_text(columns: Columns, files: list[str]) -> Found:
    """A table of text that was read."""
    notes = list(columns.notes)
    width = len(columns.types)
    given = columns.names or ("",) * width
    names = unique(list(given), notes)
    fields, dropped = [], 0
    for j, (name, t, plan) in enumerate(zip(names, columns.types, columns.plans, strict=True)):
        if not given[j] and columns.names and plan.kind == "empty":
            dropped += 1
            continue
        cast = t != plan.type
        fields.append(Field(name, t, j, (lambda c: pc.cast(c, pa.int64())) if cast else (lambda c: c)))
    if dropped:
        notes.append(f"{dropped} column{'s' * (dropped > 1)} without a name or a value left out")
    folders = [columns.folder] if columns.folder else []
    original = given[0] if columns.names else None
    return Found(columns.kept, fields, columns.names is not None, notes, files, folders, original)


def parquet(path: str, name: str, limit: float) -> Found:
    """Parquet: a file, or all files below a folder; in memory where they fit."""
    import pyarrow.parquet as pq

    files = [str(f) for f in parquet_files(Path(path))] if os.path.isdir(path) else [path]
    if not files:
        inside = sorted(os.listdir(path))
        some = ", ".join(inside[:5]) + (" …" if len(inside) > 5 else "") if inside else "nothing"
        raise TableError(f"{name} is a folder without Parquet files (it holds {some}): give one of the files in it")
    groups, size, schema = [], 0, None
    for file in files:
        with reading(file, "a Parquet file", pa.ArrowInvalid, OSError, EOFError):
            footer = pq.read_metadata(file)
            own = pq.read_schema(file).remove_metadata()
        if schema is not None and own.names != schema.names:
            raise TableError(f"{file} has other columns than {files[0]}: give files that hold the same table")
        schema = own if schema is None else pa.unify_schemas([schema, own], promote_options="permissive")
        groups.append([footer.row_group(i).num_rows for i in range(footer.num_row_groups)])
        size += sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    kept: Any = ParquetFiles(files, schema, groups)
    check(kept.n, len(schema), name)
    if 2 * size <= limit or len(set(schema.names)) < len(schema):
        tables = []
        for file in files:
            with reading(file, "a Parquet file", pa.ArrowInvalid, OSError, EOFError):
                tables.append(pq.ParquetFile(file).read().cast(schema))
        kept = Memory(pa.concat_tables(tables))
    return arrow(kept, files)


def arrow(kept: Any, files: list[str]) -> Found:
    """Arrow columns, wherever they are kept."""
    notes: list[str] = []
    fields = fields_of(kept.schema, notes)
    return Found(kept, fields, notes=notes, files=files, original=kept.schema.names[0] if len(kept.schema) else None)


def check(n: int, d: int, name: str) -> None:
    """At least one row and one column."""
    if not d:
        raise TableError(f"{name} holds no columns: give a table with at least one")
    if not n:
        raise TableError(f"{name} holds columns but no rows: check whether its export was complete")


def stream(reader: Any, limit: float, tell: Tell) -> Found:
    """A stream of record batches: kept in memory while it fits."""
    store = Store(limit)
    plain = pa.schema([pa.field(f.name, f.type) for f in reader.schema])
    try:
        for batch in reader:
            store.add(batch)
            tell(f"{store.n:,} rows")
    except BaseException:
        store.drop()
        raise
    check(store.n, len(plain), "the stream")
    found = arrow(store.done(reader.schema), [])
    found.folders += [store.folder] if store.folder else []
    return found


def from_object(source: Any, limit: float, tell: Tell) -> Found:
    """The table in an object: a frame, Arrow data, plain lists."""
    if isinstance(source, pa.Table):
        check(source.num_rows, source.num_columns, "the table")
        return arrow(Memory(source), [])
    if isinstance(source, pa.RecordBatch):
        return from_object(pa.Table.from_batches([source]), limit, tell)
    if type(source).__module__.partition(".")[0] == "pandas":
        return from_object(pa.Table.from_pandas(source, preserve_index=False), limit, tell)
    if hasattr(source, "__arrow_c_stream__"):
        return stream(pa.RecordBatchReader.from_stream(source), limit, tell)
    raise TypeError(f"a {type(source).__name__} is no table: give a path, a frame, Arrow data, or a dict of lists")
