"""Trees of plain values and arrays in one file: a zip of a JSON text and `.npy` arrays. Reading it executes nothing.

A reader trusts nothing that the file says: entries are stored as they are, one after the other, no larger than the
file; an array takes the bytes that its shape asks for; whatever else is found there is a `PackError`. Each array is
read straight to where it stays, so that a file needs hardly more memory than its size.
"""

from __future__ import annotations

import glob
import json
import math
import os
import re
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from unmix.io.values import DTYPE, PackError, Reader, Room, find, flatten, modules_of, name_of

__all__ = ["PackError", "damaged", "find", "modules_of", "name_of", "read", "refusing", "write"]

LOCAL, DIRECTORY, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"  # what the parts of a zip begin with
LARGE = 0xFFFFFFFF  # a size that is told in an extra field
NPY = b"\x93NUMPY\x01\x00"
DAMAGE = (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError, struct.error, MemoryError)
HEADER = re.compile(rf"{{'descr': '({DTYPE})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), }} *\n")


def damaged(path: str | os.PathLike[str], why: Any) -> PackError:
    """The one error of a file that cannot be used: which, why, and what to do."""
    return PackError(
        f"{os.fspath(path)!r} is not a file of unmix, or it is damaged ({why}): take another copy, or save it again"
    )


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of which file it is that something was refused; an error of another kind is one of ours, not the file's."""
    try:
        yield
    except PackError as e:
        raise damaged(path, e) from e


def write(path: str | os.PathLike[str], value: Any, check: Callable[[Path], None] | None = None) -> None:
    """Write a value to a file in one step: afterwards there is either the whole new file or what was there before.

    `check` may refuse the new one.
    """
    arrays: list[np.ndarray] = []
    room = Room(math.inf)
    text = json.dumps(flatten(value, arrays, room, "value")).encode()
    room.size = len(text) + sum(a.nbytes for a in arrays)
    room.text(text)  # what could not be read again is not written
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.part")
    sweep(target)
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as z:
            z.writestr("content.json", text)
            for i, a in enumerate(arrays):
                with z.open(f"{i}.npy", "w", force_zip64=True) as f:
                    np.lib.format.write_array(f, a, version=(1, 0), allow_pickle=False)
        if check is not None:
            check(part)
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
            room = Room(os.fstat(f.fileno()).st_size)
            room.text(text)
            return Reader(arrays, own, room).value(json.loads(text))
        except DAMAGE as e:
            raise damaged(path, e) from e


def _entries(f: IO[bytes]) -> tuple[bytes, list[np.ndarray]]:
    """The text and the arrays of a zip, entry after entry as `write` wrote them."""
    size, text = os.fstat(f.fileno()).st_size, b""
    arrays: list[np.ndarray] = []
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
    mark, _, _, entries, _, length, start, comment = struct.unpack("<4s4H2LH", end[-22:])
    rest = 22
    if entries == 0xFFFF or start == LARGE:
        _, _, _, _, _, _, _, entries, length, start = struct.unpack("<4sQ2H2L4Q", end[-98:-42])
        rest = 98
    if (mark, entries, start, start + length + rest, comment) != (END, count, directory, size, 0):
        raise PackError("its directory of entries is cut off")
