"""Records: lists of dicts and dicts of lists, in Python and in JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from unmix.table.errors import TableError
from unmix.table.found import Found, Tell, arrow, check, stream, typed
from unmix.table.store import Memory
from unmix.table.streams import Text

BLOCK = 32 << 20  # bytes of JSON lines that are parsed at a time, where not all are
MIXED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def looks_like_json(head: bytes) -> bool:
    """Whether a text is JSON: an object, or a list of objects or lists."""
    return re.match(rb"\s*(?:\{\s*(?:\"|\})|\[\s*[\[{])", head[:4096]) is not None


def json_text(text: Text, limit: float, tell: Tell) -> Found:
    """JSON lines, read by PyArrow; any other JSON, read as a whole."""
    with text.open() as f:
        line = f.read(1 << 20).lstrip().split(b"\n", 1)[0]
    try:
        lines = isinstance(json.loads(line), dict)
        first = json.loads(line) if lines else None
        lines = lines and not all(isinstance(v, (list, dict)) for v in first.values())  # type: ignore[union-attr]
    except ValueError:
        lines = False
    found = json_lines(text, limit, tell) if lines else whole(text)
    found.files = [text.path]
    return found


def json_lines(text: Text, limit: float, tell: Tell) -> Found:
    """One object a line: at once where that fits in memory."""
    options = pj.ReadOptions(block_size=BLOCK)
    if 3 * os.path.getsize(text.path) > limit:
        with suppress(pa.ArrowException, AttributeError), text.open() as f:  # PyArrow before 19 cannot
            reader = pj.open_json(f, options)
            return stream(reader, reader.schema, limit, tell, text.name)
    with suppress(pa.ArrowException), text.open() as f:  # a field may come late
        return tidy(pj.read_json(f, options), text.name)
    with text.open() as f:  # values of several kinds in one column, or no JSON after all
        return of_records([parsed(line, text.name) for line in f.read().splitlines() if line.strip()], text.name, True)


def whole(text: Text) -> Found:
    """A JSON text that is one value: a list of objects, or columns by name as pandas writes them."""
    with text.open() as f:
        value = parsed(f.read(), text.name)
    if isinstance(value, dict) and {"columns", "data"} <= set(value) and isinstance(value["data"], list):
        value = [dict(zip(map(str, value["columns"]), row, strict=False)) for row in value["data"]]
    if isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), list):
        inner = next(iter(value.values()))
        value = inner if inner and isinstance(inner[0], dict) else value
    if isinstance(value, dict) and value and all(isinstance(v, dict) for v in value.values()):
        keys = list(dict.fromkeys(key for column in value.values() for key in column))
        value = {k: [column.get(key) for key in keys] for k, column in value.items()}  # rows are known by their keys
    return of_records(value, text.name, True)


def parsed(text: bytes, name: str) -> Any:
    """JSON, or a sentence about what is wrong with it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise TableError(f"{name} begins as JSON but is damaged ({str(e)[:100]}): write or fetch it again") from e


def tidy(table: Any, name: str) -> Found:
    """A table of JSON: its text may hold dates and numbers."""
    check(table.num_rows, table.num_columns, name)
    notes: list[str] = []
    found = arrow(Memory(typed(table, notes)), [])
    found.notes += notes
    return found


def of_records(value: Any, name: str, from_text: bool = False) -> Found:
    """A list of dicts or of rows, or a dict of lists."""
    if isinstance(value, dict):
        single = [k for k, v in value.items() if isinstance(v, (str, bytes, dict)) or not isinstance(v, Iterable)]
        if single:
            raise TableError(f"{name} is no table: {single[0]!r} holds one value where a list of them is needed")
        parts = {str(k): list(v) for k, v in value.items()}
        if len({len(v) for v in parts.values()}) > 1:
            sizes = ", ".join(f"{k!r} {len(v)}" for k, v in list(parts.items())[:4])
            raise TableError(f"{name} is no table: its columns have different lengths ({sizes})")
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        keys = dict.fromkeys(k for row in value for k in row)
        parts = {str(k): [row.get(k) for row in value] for k in keys}
    elif isinstance(value, list) and value and all(isinstance(row, (list, tuple)) for row in value):
        width = max(map(len, value))
        parts = {f"column {j + 1}": [row[j] if j < len(row) else None for row in value] for j in range(width)}
    else:
        raise TableError(f"{name} is no table: give a list of dicts, one for each row, or a dict of lists")
    columns = {k: column_of(v) for k, v in parts.items()}
    check(len(next(iter(columns.values()))) if columns else 0, len(columns), name)
    table = pa.table(columns)
    return tidy(table, name) if from_text else arrow(Memory(table), [])


def column_of(values: Any) -> Any:
    """Values as a column: of text, where they are of several kinds."""
    try:
        return pa.array(values, from_pandas=True)
    except MIXED:
        return pa.array([None if missing(v) else str(v) for v in values], pa.string())


def missing(v: Any) -> bool:
    """Whether a value is none."""
    return v is None or (isinstance(v, float) and v != v)
