"""Files of every kind: told by their content, read by the library made for each."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unmix.engine.sources.columnar import parquet_files
from unmix.table.arrays import npy, npz
from unmix.table.dialect import Dialect
from unmix.table.errors import TableError, forbidden, reading
from unmix.table.found import Found, Tell, arrow, check, stream
from unmix.table.plain import Field, same, unique
from unmix.table.records import json_text, looks_like_json
from unmix.table.sheets import excel
from unmix.table.store import IpcFile, Memory, ParquetFiles
from unmix.table.streams import NotUtf8, Text, opened, western
from unmix.table.text import Columns, TextTable
from unmix.table.values import Plan

OLE = b"\xd0\xcf\x11\xe0"  # Excel before 2007
BROKEN = (pa.ArrowException, OSError, EOFError)


def from_path(path: str, name: str, header: bool | None, limit: float, tell: Tell) -> Found:
    """The table in a file or folder."""
    if os.path.isdir(path):
        return parquet(path, name, limit)
    try:
        with open(path, "rb") as f:
            head = f.read(16)
    except PermissionError:
        raise forbidden(name) from None
    if not head:
        raise TableError(f"{name} is empty: there is nothing to read")
    kind = zipped(path) if head.startswith(b"PK\x03\x04") else ""
    if head.startswith(b"PAR1"):
        return parquet(path, name, limit)
    if head.startswith(b"ARROW1"):
        return ipc_file(path, name, limit)
    if head.startswith(b"FEA1") or head.startswith(b"\xff\xff\xff\xff"):
        return ipc_stream(path, name, head, limit, tell)
    if head.startswith(b"\x93NUMPY"):
        return npy(path, name, limit, tell)
    if kind == "npz":
        return npz(path, name, limit, tell)
    if kind == "excel" or head.startswith(OLE):
        return excel(path, name, header)
    text = opened(path, name)
    try:
        return of_kind(text, header, limit, tell)
    except NotUtf8:
        with text.raw() as f:
            return of_kind(western(text, f.read(1 << 20)), header, limit, tell)


def of_kind(text: Text, header: bool | None, limit: float, tell: Tell) -> Found:
    """The table in a text file: JSON, ARFF, or anything with separators."""
    beginning = text.head()
    if looks_like_json(beginning):
        return json_text(text, limit, tell)
    if re.match(rb"(?:\s|%[^\n]*\n)*@relation\b", beginning[: 1 << 16], re.IGNORECASE):
        return arff(text, beginning, limit, tell)
    return of_text(TextTable(text, header, limit, tell).read(), [text.path])


def zipped(path: str) -> str:
    """What a zip archive is: a workbook, arrays, or "" for anything else."""
    try:
        with zipfile.ZipFile(path) as z:
            names = z.namelist()
    except (zipfile.BadZipFile, OSError, RuntimeError):
        return ""  # said when it is opened as text
    if names and all(n.endswith(".npy") for n in names):
        return "npz"
    return "excel" if any(n.startswith("xl/") for n in names) or {"mimetype", "content.xml"} <= set(names) else ""


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
        whole = t != plan.type
        fields.append(Field(name, t, j, partial(pc.cast, target_type=t) if whole else same))
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
    groups, size = [], 0
    schema: Any = None
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


def ipc_file(path: str, name: str, limit: float) -> Found:
    """An Arrow file (Feather): in memory where it fits, whatever it is packed with."""
    kept: Any = IpcFile(path)
    check(kept.n, len(kept.schema), name)
    if 4 * os.path.getsize(path) <= limit:
        with reading(path, "an Arrow file", *BROKEN), pa.ipc.open_file(pa.OSFile(path)) as reader:
            table = reader.read_all()
            table.validate(full=True)  # Arrow believes what a file says of where values lie
            kept = Memory(table)
    return arrow(kept, [path])


def ipc_stream(path: str, name: str, head: bytes, limit: float, tell: Tell) -> Found:
    """An Arrow stream, or Feather as it once was: read in order."""
    import pyarrow.feather as feather

    with reading(path, "an Arrow file", *BROKEN):
        if head.startswith(b"FEA1"):
            table = feather.read_table(path, memory_map=False)
            table.validate(full=True)
            check(table.num_rows, table.num_columns, name)
            return arrow(Memory(table), [path])
        with pa.ipc.open_stream(pa.OSFile(path)) as reader:
            return replace(stream(checked(reader), reader.schema, limit, tell, name), files=[path])


def checked(batches: Any) -> Iterator[Any]:
    """Record batches from a file, none of which says that it has values outside of itself."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(\{.*\}|\S+)""", re.IGNORECASE | re.DOTALL
)


def arff(text: Text, head: bytes, limit: float, tell: Tell) -> Found:
    """ARFF, Weka's format: a header of ours to read, rows as in any text file."""
    end = re.search(rb"^[ \t]*@data[ \t]*(?:%[^\r\n]*)?(?:\r\n|\n|\r)", head, re.IGNORECASE | re.MULTILINE)
    if end is None:
        raise TableError(
            f"{text.name} begins as an ARFF file but has no @data line: it looks truncated; fetch it again"
        )
    top = head[: end.end()].decode("utf-8", "replace")
    found = [m for line in top.splitlines() if (m := ATTRIBUTE.match(line.strip()))]
    names = [bare(m[1]) for m in found]
    body = head[end.end() :].lstrip()
    if body.startswith(b"{"):
        raise TableError(f"{text.name} is a sparse ARFF file, which is not read: save it as CSV or as dense ARFF")
    if not names or not body:
        raise TableError(f"{text.name} is an ARFF file without {'rows' if names else 'attributes'}: write it again")
    quote = '"' if body.count(b'"') > body.count(b"'") else "'"
    table = TextTable(text, None, limit, tell)
    table.dialect = Dialect(
        ",", quote, "\\", lines=len(top.splitlines()), skip=end.end(), names=tuple(names), width=len(names)
    )
    fixed, levels = {}, {}
    for j, m in enumerate(found):
        if m[2].startswith("{"):
            levels[j] = [bare(v) for v in re.findall(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,{}]+""", m[2])]
        if m[2].startswith("{") or m[2].lower() == "string":
            fixed[j] = Plan("text", odd=("?",), trim=True)
    result = of_text(table.rows(fixed), [text.path])
    for i, f in enumerate(result.fields):
        if f.position in levels:
            kind = pa.dictionary(pa.int32(), pa.string())
            result.fields[i] = Field(f.name, kind, f.position, partial(coded, levels=levels[f.position]))
    return result


def bare(word: str) -> str:
    """A name or level without its quotation marks."""
    word = word.strip()
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word[:1] in ("'", '"') and word[-1:] == word[:1] else word


def coded(column: Any, levels: list[str]) -> Any:
    """Text as categories with given levels; what is none of them is missing."""
    if isinstance(column, pa.ChunkedArray):
        kind = pa.dictionary(pa.int32(), pa.string())
        return pa.chunked_array([coded(c, levels) for c in column.chunks], kind)
    return pa.DictionaryArray.from_arrays(
        pc.index_in(column, pa.array(levels, pa.string())), pa.array(levels, pa.string())
    )
