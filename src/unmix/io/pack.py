"""Trees of plain values and arrays in one file: a zip of a JSON text and `.npy` arrays. Reading it executes nothing.

A reader trusts nothing that the file says: entries are stored as they are, one after the other, no larger than the
file; an array takes the bytes that its shape asks for; whatever else is found there is a `PackError`. Each array is
read straight to where it stays, so that a file needs hardly more memory than its size.
"""

from __future__ import annotations

import glob
import importlib
import json
import math
import os
import re
import struct
import threading
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

LOCAL, DIRECTORY, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"  # what the parts of a zip begin with
LARGE = 0xFFFFFFFF  # a size that is told in an extra field
NPY = b"\x93NUMPY\x01\x00"
DTYPE = "[<>|][biufcUS][1-9][0-9]{0,8}"
HEADER = re.compile(rf"{{'descr': '({DTYPE})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), }} *\n")
MODULE = re.compile(r"unmix(\.[a-z_]*[a-z])*")
DEPTH = 64  # of lists in lists
ITEMS = 1 << 21  # of lists and dicts: a few bytes of text are a hundred in memory


class PackError(ValueError):
    """A value that the format cannot hold, or a file that is not of the format, damaged or forged."""


def damaged(path: str | os.PathLike[str], why: Any) -> PackError:
    """The one error of a file that cannot be used: which, why, and what to do."""
    return PackError(
        f"{os.fspath(path)!r} is not a file of unmix, or it is damaged ({why}): take another copy, or save it again"
    )


def write(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value to a file in one step: afterwards there is either the whole new file or what was there before."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_flatten(value, arrays, "value"))
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.part")
    sweep(target)
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as z:
            z.writestr("content.json", text)
            for i, a in enumerate(arrays):
                with z.open(f"{i}.npy", "w", force_zip64=True) as f:
                    np.lib.format.write_array(f, a, version=(1, 0), allow_pickle=False)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def sweep(target: Path) -> None:
    """Remove what processes that were killed while they wrote this file have left beside it."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.*.part"):
        pid = left.name.split(".")[-3]
        if pid.isdigit() and int(pid) != os.getpid() and not alive(int(pid)):
            left.unlink(missing_ok=True)


def alive(pid: int) -> bool:
    """Whether a process is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# ---------------------------------------------------------------- reading


def read(path: str | os.PathLike[str], own: frozenset[str] = frozenset()) -> Any:
    """Read a value that `write` wrote; `own` are the modules of the reader's own classes.

    Raises
    ------
    PackError
        Where the file is not one that `write` wrote, whatever is wrong with it.
    """
    with open(path, "rb") as f:
        try:
            text, arrays = _entries(f)
            if sum(text.count(mark) for mark in (b",", b"[", b"{")) > ITEMS:
                raise PackError("its text holds too many items")
            return _restore(json.loads(text), arrays, own)
        except (ValueError, KeyError, IndexError, TypeError, RecursionError, struct.error, MemoryError) as e:
            raise damaged(path, e) from e


def _entries(f: IO[bytes]) -> tuple[bytes, list[np.ndarray | None]]:
    """The text and the arrays of a zip, entry after entry as `write` wrote them."""
    size, text = os.fstat(f.fileno()).st_size, b""
    arrays: list[np.ndarray | None] = []
    while (mark := f.read(4)) == LOCAL:
        name = f"{len(arrays)}.npy" if text else "content.json"
        length, crc = _entry(f, name, size)
        if text:
            array, found = _array(f, length)
            arrays.append(array)
        else:
            text = f.read(length)
            found = zlib.crc32(text)
        if found != crc:
            raise PackError(f"the bytes of {name} are not those that were written")
    if mark != DIRECTORY or not text:
        raise PackError("it is not a zip of the entries content.json, 0.npy, 1.npy, …, or it is cut off")
    _check_end(f, f.tell() - 4, size, 1 + len(arrays))
    return text, arrays


def _entry(f: IO[bytes], name: str, size: int) -> tuple[int, int]:
    """The length and the checksum of an entry, from what stands before it."""
    _, flags, method, _, _, crc, packed, length, named, more = struct.unpack("<5H3L2H", f.read(26))
    if f.read(named) != name.encode():
        raise PackError(f"there is something else where {name} should be")
    if flags & ~0x800 or method != zipfile.ZIP_STORED:
        raise PackError(f"{name} is compressed or encrypted")
    extra = f.read(more)
    if length == LARGE:
        tag, width, length, packed = struct.unpack("<2H2Q", extra)
        if (tag, width) != (1, 16):
            raise PackError(f"{name} has no size")
    if packed != length or length > size - f.tell():
        raise PackError(f"{name} is longer than the file")
    return length, crc


def _array(f: IO[bytes], length: int) -> tuple[np.ndarray, int]:
    """An array of so many bytes, and their checksum."""
    start = f.read(len(NPY) + 2)
    if start[:-2] != NPY:
        raise PackError("an array has no header")
    text = f.read(int.from_bytes(start[-2:], "little"))
    found = HEADER.fullmatch(text.decode("latin1"))
    if not found:
        raise PackError(f"an array has the header {text[:60]!r}")
    dtype, shape = np.dtype(found[1]), tuple(int(n) for n in found[3].split(",") if n.strip())
    count = math.prod(shape)
    if count * dtype.itemsize != length - len(start) - len(text):
        raise PackError(f"an array of shape {shape} and type {dtype} does not take {length} bytes")
    flat = np.fromfile(f, dtype, count)
    crc = zlib.crc32(flat.view(np.uint8).data, zlib.crc32(text, zlib.crc32(start)))
    return flat.reshape(shape, order="F" if found[2] == "True" else "C"), crc


def _check_end(f: IO[bytes], directory: int, size: int, count: int) -> None:
    """What a zip ends with says how many entries there are and where their directory is; nothing follows it."""
    tail = min(size, 22 + 20 + 56)
    f.seek(size - tail)
    end = f.read(tail)
    mark, _, _, entries, _, _, start, comment = struct.unpack("<4s4H2LH", end[-22:])
    if entries == 0xFFFF or start == LARGE:
        _, _, _, _, _, _, _, entries, _, start = struct.unpack("<4sQ2H2L4Q", end[-98:-42])
    if (mark, entries, start, comment) != (END, count, directory, 0):
        raise PackError("its directory of entries is cut off")


# ---------------------------------------------------------------- values as text and arrays


def _flatten(v: Any, arrays: list[np.ndarray], name: str) -> Any:
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
                return {"!": "strings", "of": v.tolist()}
            raise PackError(f"{name} holds Python objects: only numbers and strings can be saved")
        if not re.fullmatch(DTYPE, v.dtype.str):
            raise PackError(f"{name} is an array of {v.dtype}: only numbers and strings can be saved")
        arrays.append(v)
        return {"!": "array", "of": len(arrays) - 1}
    if sp.issparse(v):
        v = sp.csr_array(v)
        inner = [_flatten(a, arrays, name) for a in (v.data, v.indices, v.indptr)]
        return {"!": "csr", "of": inner, "shape": list(v.shape)}
    if isinstance(v, tuple):
        items = [_flatten(a, arrays, name) for a in v]
        kind = type(v)
        return {
            "!": "tuple",
            "of": items,
            "as": f"{kind.__module__}:{kind.__qualname__}" if hasattr(v, "_fields") else None,
        }
    if isinstance(v, list):
        return [_flatten(a, arrays, f"{name}[{i}]") for i, a in enumerate(v)]
    if isinstance(v, dict):
        return {"!": "dict", "of": {str(k): _flatten(a, arrays, f"{name}[{k!r}]") for k, a in v.items()}}
    raise PackError(f"{name} is a {type(v).__name__}: only numbers, strings, arrays and lists of them can be saved")


def _restore(v: Any, arrays: list[np.ndarray | None], own: frozenset[str], depth: int = 0) -> Any:
    if depth > DEPTH:
        raise PackError("its lists are nested too deeply")

    def inner(of: Any) -> list[Any]:
        if not isinstance(of, list):
            raise PackError("a list is missing")
        return [_restore(a, arrays, own, depth + 1) for a in of]

    if isinstance(v, list):
        return inner(v)
    if not isinstance(v, dict):
        return v
    kind, of = v["!"], v["of"]
    if kind == "array":
        return _take(arrays, of)
    if kind == "dtype" and re.fullmatch(DTYPE, of):
        return np.dtype(of)
    if kind == "strings" and all(isinstance(s, str) for s in of):
        return np.array(of, dtype=object)
    if kind == "csr":
        matrix = sp.csr_array(tuple(inner(of)), shape=tuple(v["shape"]))
        matrix.check_format(full_check=True)
        return matrix
    if kind == "dict" and isinstance(of, dict):
        return {k: _restore(a, arrays, own, depth + 1) for k, a in of.items()}
    if kind != "tuple":
        raise PackError(f"there is a value of the kind {kind!r}")
    items = inner(of)
    return tuple(items) if v["as"] is None else find(v["as"], tuple, own)(*items)  # new fields have defaults


def _take(arrays: list[np.ndarray | None], i: Any) -> np.ndarray:
    """An array, which has one place: two that share memory would change together."""
    found = arrays[i] if type(i) is int and i >= 0 else None
    if found is None:
        raise PackError(f"there is no array {i}, or it is used twice")
    arrays[i] = None
    return found


def modules_of(cls: type) -> frozenset[str]:
    """The modules of a class and of those that it derives from."""
    return frozenset(c.__module__ for c in cls.__mro__)


def find(name: Any, base: type, own: frozenset[str] = frozenset()) -> Any:
    """The class `module:Name`, of this package or of the reader's own modules: reading a file imports nothing else."""
    module, _, qualname = str(name).partition(":")
    if module not in own and not MODULE.fullmatch(module):
        raise PackError(f"it names {name!r}, which is not part of unmix: load it by `load` of its own class")
    try:
        cls = importlib.import_module(module)
        for part in qualname.split("."):
            cls = getattr(cls, part)
    except (ImportError, AttributeError) as e:
        raise PackError(f"it names {name!r}, which this version of unmix does not have") from e
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise PackError(f"it names {name!r}, which is not a {base.__name__}")
    return cls
