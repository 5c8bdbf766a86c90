"""What values from a file must look like before anything computes with them, said where their classes are declared.

A kernel does not look where an array ends. So parts, statistics and z are NamedTuples whose annotations say how many
numbers of which kind each array holds, by the names of sizes:

    class Parts(NamedTuple):
        centers: Annotated[np.ndarray, Array("k d")]        # k rows of d finite numbers
        medoids: Annotated[np.ndarray, Array("k", "i", -1, "n-1")]        # k whole numbers from −1 to n − 1
        variance: Annotated[float, Array(low=0.0)]        # a number
        frame: Annotated[Any, "frame"]        # whatever kind the stage's `described` calls by that name

and a stage's `described` says which kinds these are for its parameters, and its sizes. A size that it does not know is
the same wherever it is met.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from math import inf
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from unmix.io.pack import PackError
from unmix.maths.arrays import Array

LONG = 1 << 63  # no whole number reaches it
COUNT = Annotated[int, Array(kind="i", low=0)]
KINDS = {"f": ("float32", "float64"), "x": ("float32", "float64"), "i": ("int32", "int64"), "b": ("bool",)}
TERM = re.compile(r"([a-z]\w*|\d+)([+-]\d+)?")


class Described(NamedTuple):
    """Kinds of a stage's parts, of its statistics and of what it leaves of each block's rows; sizes and kinds by name.

    In a block's z the size `m` is the number of its rows.
    """

    parts: Any = Any
    stats: Any = Any
    z: Any = Any
    names: dict[str, Any] = {}  # noqa: RUF012  nobody writes to it
    holds: Callable[[Any], bool] | None = None  # what else is true of parts of these shapes


class Scoped(NamedTuple):
    """A kind with sizes of its own."""

    kind: Any
    names: dict[str, Any]


class Record(NamedTuple):
    """The kind of a dict whose items are of these kinds; others are not looked at."""

    kinds: dict[str, Any]


class UnfitError(PackError):
    """A file that is what it should be, of another fit."""


def asked(stage: Any, U: Any, data: Any) -> Described:
    """What a stage says of a file's parts. By a ValueError it says whose they are; an error of another kind is ours."""
    try:
        return stage.described(U, data)  # type: ignore[no-any-return]
    except ValueError as e:
        raise UnfitError(str(e)) from e


def several(*kinds: Any, of: type = tuple) -> Any:
    """The kind of a tuple, or of a list, of such items."""
    return types.GenericAlias(of, kinds)


def conform(value: Any, kind: Any, names: dict[str, Any], where: str) -> None:
    """Raise a PackError unless a value is of a kind; sizes that are met are added to `names`."""
    said = None
    if get_origin(kind) is Annotated:
        kind, said = get_args(kind)[:2]
    if isinstance(said, str):
        conform(value, names[said], names, where)
    elif isinstance(said, Array):
        _conform_array(value, said, names, where)
    elif isinstance(kind, Scoped):
        conform(value, kind.kind, names | kind.names, where)
    elif isinstance(kind, Record):
        _expect(isinstance(value, dict), value, "a dict", where)
        for name in value.keys() & kind.kinds.keys():
            conform(value[name], kind.kinds[name], names, f"{where}[{name!r}]")
    elif kind is Any:
        return
    elif get_origin(kind) in (Union, types.UnionType):
        _conform_union(value, get_args(kind), names, where)
    elif get_origin(kind) in (list, tuple, dict):
        _conform_items(value, get_origin(kind), get_args(kind), names, where)
    elif is_dataclass(kind) or (issubclass(kind, tuple) and kind is not tuple):
        _expect(type(value) is kind, value, f"a {kind.__name__}", where)
        for name, inner in fields(kind).items():
            conform(getattr(value, name), inner, names, f"{where}.{name}")
    elif kind is float:
        whole = type(value) is int and abs(value) < LONG
        _expect(whole or isinstance(value, float), value, "a number", where)
    elif kind is int:
        _expect(type(value) is int and abs(value) < LONG, value, "a whole number", where)
    else:
        _expect(isinstance(value, kind), value, f"a {kind.__name__}", where)


@cache
def fields(kind: Any) -> dict[str, Any]:
    """The kinds of a class's fields."""
    return get_type_hints(kind, include_extras=True)


def _expect(condition: Any, value: Any, wanted: str, where: str) -> None:
    if not condition:
        found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:40]
        raise PackError(f"{where} is {found}, not {wanted}")


def _conform_union(value: Any, kinds: tuple[Any, ...], names: dict[str, Any], where: str) -> None:
    """One of several kinds; an error is that of the last."""
    if value is None:
        return _expect(types.NoneType in kinds, value, "there", where)
    others = [kind for kind in kinds if kind is not types.NoneType]
    for kind in others[:-1]:
        try:
            return conform(value, kind, names, where)
        except PackError:
            continue
    return conform(value, others[-1], names, where)


def _conform_items(value: Any, kind: type, inner: tuple[Any, ...], names: dict[str, Any], where: str) -> None:
    _expect(type(value) is kind, value, f"a {kind.__name__}", where)
    if kind is dict:
        for key, item in value.items():
            conform(item, inner[1], names, f"{where}[{key!r}]")
        return
    if (kind is list and len(inner) == 1) or inner[1:] == (...,):
        inner = (inner[0],) * len(value)
    _expect(len(value) == len(inner), value, f"{len(inner)} items", where)
    for i, (item, one) in enumerate(zip(value, inner, strict=True)):
        conform(item, one, names, f"{where}[{i}]")


def _conform_array(value: Any, said: Array, names: dict[str, Any], where: str) -> None:
    if isinstance(value, np.ndarray):
        _expect(value.dtype.name in KINDS[said.kind] and value.dtype.isnative, value, f"of kind {said.kind!r}", where)
    elif said.kind == "i":
        _expect(type(value) is int, value, "a whole number", where)
    else:
        conform(value, float, names, where)
    shape, at = np.shape(value), 0
    for term in said.dims.split():
        size = names.get(term)
        size = size if isinstance(size, tuple) else (_size(term, names, shape[at : at + 1]),)
        _expect(shape[at : at + len(size)] == size, value, f"of shape ({said.dims}), {term} = {size}", where)
        at += len(size)
    _expect(at == len(shape), value, f"of shape ({said.dims})", where)
    if said.kind in "bx" or not np.size(value):
        return
    low, high = max(said.low, -LONG), _size(said.high, names) if isinstance(said.high, str) else said.high
    high = min(high, LONG - 1) if high == inf and said.kind == "i" else high
    least, most = (value, value) if isinstance(value, int) else (np.min(value), np.max(value))
    low = said.low if said.kind == "f" else low
    _expect(low <= least and most <= high and -inf < least and most < inf, value, f"from {low} to {high}", where)
    if said.name:
        _expect(names.setdefault(said.name, int(value)) == value, value, f"{names[said.name]}", where)


def _size(term: str, names: dict[str, Any], found: tuple[int, ...] = ()) -> int:
    """A size by its name, or name and number as in n-1; one that is not known yet is what is found."""
    match = TERM.fullmatch(term)
    assert match, f"{term!r} is not a size"
    name, more = match[1], int(match[2] or 0)
    if name.isdigit():
        return int(name) + more
    while isinstance(names.get(name), str):  # another name of the same size
        name = names[name]
    if name not in names and found:
        names[name] = found[0] - more
    return int(names.get(name, -1)) + more
