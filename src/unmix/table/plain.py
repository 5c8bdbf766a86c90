"""Arrow columns of any type as the few kinds that a table has: numbers, truth values, strings, categories, dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Field:
    """A column of a table: where it is in what was read, and what is made of that."""

    name: str
    type: Any
    position: int
    of: Callable[[Any], Any]


def same(column: Any) -> Any:
    """The column as it is."""
    return column


def unique(names: list[str], notes: list[str]) -> list[str]:
    """Each name once: "column 1" where there is none, "x (2)" where there was an x before."""
    called = [name if name else f"column {j + 1}" for j, name in enumerate(names)]
    often, taken, out = Counter(called), set(called), []
    seen: Counter[str] = Counter()
    for name in called:
        seen[name] += 1
        new = name
        if seen[name] > 1:
            tries = (f"{name} ({i})" for i in range(seen[name], len(called) + 2 + seen[name]))
            new = next(t for t in tries if t not in taken)
            taken.add(new)
        out.append(new)
    twice = [name for name, count in often.items() if count > 1]
    if twice:
        shown = ", ".join(map(repr, twice[:4])) + (" …" if len(twice) > 4 else "")
        notes.append(f"more than one column is called {shown}: the later ones are numbered (2), (3) …")
    return out


def fields_of(schema: Any, notes: list[str]) -> list[Field]:
    """The columns of a table with a schema, those in structures one by one."""
    found: list[tuple[str, Any, int, Callable[[Any], Any]]] = []
    for position, f in enumerate(schema):
        found += leaves(str(f.name), f.type, position, same)
    strange = [
        name for name, t, _, _ in found if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_map(t)
    ]
    if strange:
        notes.append(f"lists are read as text in {', '.join(map(repr, strange[:4]))}")
    names = unique([name for name, *_ in found], notes)
    return [made(name, t, p, f) for name, (_, t, p, f) in zip(names, found, strict=True)]


def leaves(
    name: str, t: Any, position: int, get: Callable[[Any], Any]
) -> list[tuple[str, Any, int, Callable[[Any], Any]]]:
    """A column, or the columns in a structure."""
    if isinstance(t, pa.BaseExtensionType):
        return leaves(name, t.storage_type, position, lambda c: storage(get(c)))
    if not pa.types.is_struct(t):
        return [(name, t, position, get)]
    parts = []
    for i in range(t.num_fields):
        inner = partial(inside, get=get, i=i)
        parts += leaves(f"{name}.{t.field(i).name}", t.field(i).type, position, inner)
    return parts


def inside(column: Any, get: Callable[[Any], Any], i: int) -> Any:
    """One field of a structure."""
    return pc.struct_field(get(column), [i])


def storage(column: Any) -> Any:
    """What an extension type is kept as."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
    return column.storage


def made(name: str, t: Any, position: int, get: Callable[[Any], Any]) -> Field:
    """A column with the type that it has in a table, and how to get there."""
    is_ = pa.types
    to: Any = t
    how: Callable[[Any], Any] = same
    if is_.is_dictionary(t):
        to = pa.dictionary(pa.int32(), pa.string(), t.ordered)  # whoever says category means one, of numbers, too
        how = same if t == to else partial(cast_dictionary, to=to)
    elif is_.is_decimal(t) or is_.is_float16(t):
        to = pa.float64() if is_.is_decimal(t) else pa.float32()
    elif is_.is_large_string(t) or is_.is_string_view(t):
        to = pa.string()
    elif is_.is_duration(t):
        to, how = pa.float64(), seconds
    elif is_.is_time(t):
        to, how = pa.string(), clock
    elif is_.is_binary(t) or is_.is_large_binary(t) or is_.is_fixed_size_binary(t) or is_.is_binary_view(t):
        to, how = pa.string(), letters
    elif is_.is_run_end_encoded(t):
        to, how = t.value_type, pc.run_end_decode
    elif is_.is_nested(t) or not (is_.is_primitive(t) or is_.is_string(t) or is_.is_null(t) or is_.is_boolean(t)):
        to, how = pa.string(), spelled
    if how is same and to != t:
        how = partial(pc.cast, target_type=to)
    return Field(name, to, position, how if get is same else (lambda c: how(get(c))))


def cast_dictionary(column: Any, to: Any) -> Any:
    """Categories with the types of index and value that all have here."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast_dictionary(c, to) for c in column.chunks], to)
    indices, values = pc.cast(column.indices, to.index_type), pc.cast(column.dictionary, to.value_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=to.ordered)


def seconds(column: Any) -> Any:
    """Durations as seconds."""
    per = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
    return pc.divide(pc.cast(pc.cast(column, pa.int64()), pa.float64(), safe=False), per)


def clock(column: Any) -> Any:
    """Times of day as they are written, without fractions where there are none."""
    try:
        return pc.cast(pc.cast(column, pa.time32("s")), pa.string())
    except pa.ArrowInvalid:
        return pc.cast(column, pa.string())


def letters(column: Any) -> Any:
    """Bytes as text, or null where any of them are none."""
    try:
        return pc.cast(pc.cast(column, pa.binary()), pa.string())
    except pa.ArrowInvalid:
        return pc.cast(pa.nulls(len(column)), pa.string())


def spelled(column: Any) -> Any:
    """Lists and whatever else as they would be written."""
    return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
