"""Values as JSON and arrays, and back: what `pack` writes and reads. Making them executes nothing."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

DTYPE = "[<>|][biufcUS][1-9][0-9]{0,8}"
MODULE = re.compile(r"unmix(\.[a-z_]*[a-z])*")
DEPTH = 64  # of lists in lists
ROOM = 16 << 20  # bytes that the values of any file may take beside its arrays
ITEM = 50  # bytes that an item of a list takes at most, measured (CPython 3.11 to 3.13)
TABLE = 16  # records from which on they are written as a table
KINDS = {"i": int, "f": float, "b": bool}  # of a table's columns


class PackError(ValueError):
    """A value that the format cannot hold, or a file that is not of the format, damaged or forged."""


class Room:
    """What memory values may take beside arrays: `ROOM`, and an eighth of the file, whose size thus tells its needs."""

    def __init__(self, size: float) -> None:
        self.size, self.taken = size, 0

    def items(self, count: int) -> None:
        """So many items are to be made."""
        self.taken += ITEM * count
        if self.taken > ROOM + self.size / 8:
            raise PackError(
                f"its names and lists need more than the {ROOM >> 20} MiB that a file may hold beside arrays: fit rows "
                "without names (an array), or make fewer steps"
            )

    def strings(self, count: int, text: bytes | np.ndarray) -> None:
        """So many strings are to be made of a text: each is an item, and an item of an array."""
        self.taken += 5 * len(text)
        self.items(2 * count)

    def text(self, text: bytes) -> None:
        """A text is to be read: itself, its characters (of four bytes, where one needs them), its items."""
        if not text.isascii():
            raise PackError("its text is not ASCII")
        self.taken += len(text) * (8 if b"\\u" in text else 3)
        self.items(sum(text.count(mark) for mark in (b",", b"[", b"{", b":")) + text.count(b'"') // 2)


def flatten(v: Any, arrays: list[np.ndarray], room: Room, name: str) -> Any:
    """The value as JSON, its arrays moved to the list."""
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    if isinstance(v, np.generic):
        return v.item()
    if isinstance(v, np.dtype):
        return {"!": "dtype", "of": v.str}
    if isinstance(v, np.ndarray):
        if v.dtype.hasobject:
            if v.ndim == 1 and all(isinstance(s, str) for s in v):
                return {"!": "strings", "of": [flatten(a, arrays, room, name) for a in _encoded(v, room)]}
            raise PackError(f"{name} holds Python objects: only numbers and strings can be saved")
        if not re.fullmatch(DTYPE, v.dtype.str):
            raise PackError(f"{name} is an array of {v.dtype}: only numbers and strings can be saved")
        arrays.append(v)
        return {"!": "array", "of": len(arrays) - 1}
    if sp.issparse(v):
        v = sp.csr_array(v)
        inner = [flatten(a, arrays, room, name) for a in (v.data, v.indices, v.indptr)]
        return {"!": "csr", "of": inner, "shape": list(v.shape)}
    if isinstance(v, range):
        return {"!": "range", "of": [v.start, v.stop, v.step]}
    if isinstance(v, tuple):
        items = [flatten(a, arrays, room, name) for a in v]
        kind = type(v)
        return {
            "!": "tuple",
            "of": items,
            "as": name_of(kind) if hasattr(v, "_fields") else None,
        }
    if isinstance(v, list):
        if len(v) >= TABLE and (kinds := _columns(v)):
            arrays.append(np.array(v, dtype=np.float64))
            room.items(table_items(arrays[-1]))
            return {"!": "table", "of": len(arrays) - 1, "kinds": kinds, "as": name_of(type(v[0]))}
        return [flatten(a, arrays, room, f"{name}[{i}]") for i, a in enumerate(v)]
    if isinstance(v, dict):
        return {"!": "dict", "of": {str(k): flatten(a, arrays, room, f"{name}[{k!r}]") for k, a in v.items()}}
    raise PackError(f"{name} is a {type(v).__name__}: only numbers, strings, arrays and lists of them can be saved")


def _encoded(strings: np.ndarray, room: Room) -> tuple[np.ndarray, np.ndarray]:
    """Strings as bytes, one after the other, and the length of each."""
    pieces = [s.encode("utf-8", "surrogatepass") for s in strings]
    room.strings(len(pieces), text := b"".join(pieces))
    return np.frombuffer(text, np.uint8), np.array([len(piece) for piece in pieces], np.int64)


def name_of(kind: type) -> str:
    """What a file calls a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def _columns(v: list[Any]) -> str:
    """The kinds of the columns, where a list holds records of numbers (the steps of a fit): else nothing."""
    if not all(isinstance(a, tuple) and hasattr(a, "_fields") for a in v):
        return ""
    (_, *columns), *others = {(type(a), *map(type, a)) for a in v}
    letters = {kind: letter for letter, kind in KINDS.items()}
    exact = all(abs(n) <= 1 << 53 for a in v for n in a if type(n) is int)
    return "".join(letters[c] for c in columns) if exact and not others and letters.keys() >= set(columns) else ""


def table_items(a: np.ndarray) -> int:
    """What a table is counted as: its numbers, and twice its records."""
    return a.size + 2 * len(a)


class Reader:
    """Values of a file: its JSON with its arrays in place, each of which has one place."""

    def __init__(self, arrays: list[np.ndarray], own: frozenset[str], room: Room) -> None:
        self.arrays: list[np.ndarray | None] = [*arrays]
        self.own, self.room = own, room

    def value(self, v: Any, depth: int = 0) -> Any:
        """What a piece of JSON stands for; lists and dicts are changed in place, so that there is no second copy."""
        if depth > DEPTH:
            raise PackError("its lists are nested too deeply")
        if isinstance(v, list):
            return self._items(v, depth)
        if not isinstance(v, dict):
            return v
        kind, of = v["!"], v["of"]
        if kind == "array":
            return self._array(of)
        if kind == "dtype" and re.fullmatch(DTYPE, of):
            return np.dtype(of)
        if kind == "strings":  # before format 3 a list of them
            return np.array(of, dtype=object) if all(isinstance(s, str) for s in of) else self._strings(of, depth)
        if kind == "csr":
            parts = self._items(of, depth)
            if [type(a) for a in parts] != [np.ndarray] * 3:  # two numbers would be a matrix of that size
                raise PackError("a sparse matrix is not made of three arrays")
            matrix = sp.csr_array(tuple(parts), shape=tuple(v["shape"]))
            matrix.check_format(full_check=True)
            return matrix
        if kind == "dict" and isinstance(of, dict):
            for key, a in of.items():
                of[key] = self.value(a, depth + 1)
            return of
        if kind == "range":
            return self._range(of)
        if kind == "table":
            return self._table(self._array(of), [KINDS[letter] for letter in v["kinds"]], v["as"])
        if kind != "tuple":
            raise PackError(f"there is a value of the kind {kind!r}")
        items = self._items(of, depth)
        if v["as"] is None:
            return tuple(items)
        record = find(v["as"], tuple, self.own)
        new = record._fields[len(items) :]  # since the file was written
        return record._make([*items, *(record._field_defaults[name] for name in new)])

    def _items(self, of: Any, depth: int) -> list[Any]:
        if not isinstance(of, list):
            raise PackError("a list is missing")
        for i, a in enumerate(of):
            of[i] = self.value(a, depth + 1)
        return of

    def _range(self, of: Any) -> range:
        """Whole numbers, none of which is made before it is asked for."""
        if not (isinstance(of, list) and [type(a) for a in of] == [int] * 3 and max(map(abs, of)) < 1 << 63 and of[2]):
            raise PackError(f"there is a range of {str(of)[:40]}")
        return range(*of)

    def _array(self, i: Any) -> np.ndarray:
        """An array, which has one place: two that share memory would change together."""
        found = self.arrays[i] if type(i) is int and i >= 0 else None
        if found is None:
            raise PackError(f"there is no array {i}, or it is used twice")
        self.arrays[i] = None
        return found

    def _strings(self, of: Any, depth: int) -> np.ndarray:
        """What `_encoded` made of them."""
        text, lengths = self._items(of, depth)
        whole = isinstance(text, np.ndarray) and text.dtype == np.uint8 and text.ndim == 1
        counted = isinstance(lengths, np.ndarray) and lengths.dtype == np.int64 and lengths.ndim == 1
        if not (whole and counted and (lengths >= 0).all() and (lengths <= len(text)).all()):
            raise PackError("strings are not made of bytes and lengths")
        if int(lengths.sum()) != len(text):
            raise PackError("strings are longer or shorter than their bytes")
        self.room.strings(len(lengths), text)
        out, ends = np.empty(len(lengths), object), np.cumsum(lengths).tolist()
        try:
            for i, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
                out[i] = text[start:stop].tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as e:
            raise PackError(f"a string is not one ({e})") from e
        return out

    def _table(self, a: np.ndarray, kinds: list[Any], name: Any) -> list[Any]:
        """Records of numbers."""
        if a.dtype != np.float64 or a.ndim != 2 or a.shape[1] != len(kinds):
            raise PackError(f"a table of {len(kinds)} columns has the shape {a.shape}")
        self.room.items(table_items(a))
        record = find(name, tuple, self.own)._make
        return [record(kind(n) for kind, n in zip(kinds, row.tolist(), strict=True)) for row in a]


def modules_of(cls: type) -> frozenset[str]:
    """The modules of a class and of those that it derives from."""
    return frozenset(c.__module__ for c in cls.__mro__)


def find(name: Any, base: type, own: frozenset[str] = frozenset()) -> Any:
    """The class `module:Name`, of this package or of the reader's own modules: reading a file imports nothing else."""
    module, _, qualname = str(name).partition(":")
    if module not in own and not MODULE.fullmatch(module):
        raise PackError(f"it names {name!r}, which is not part of unmix: load it by `load` of its own class")
    try:
        cls: Any = importlib.import_module(module)
        for part in qualname.split("."):
            cls = getattr(cls, part)
    except (ImportError, AttributeError) as e:
        raise PackError(f"it names {name!r}, which this version of unmix does not have") from e
    kept = isinstance(cls, type) and issubclass(cls, base) and (base is not tuple or hasattr(cls, "_fields"))
    if not kept or name_of(cls) != name:  # a module's own, not one that it only imports
        raise PackError(f"it names {name!r}, which is not a {base.__name__} of ours")
    return cls
