"""Arrays of a file with something wrong: in their headers, their shapes, their types, their values."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

Entries = dict[str, bytes]
HEADS = [
    ("<f8", "<f4"), ("<f8", ">f8"), ("<f8", "|O"), ("<f8", "<U2"), ("<f8", "<M8[s]"), ("<f8", "<i8"), ("<i8", "<f8"),
    ("False", "True"), ("(", "(-1, "), ("(", "(1, "), ("(", "(99999999999, "), ("(", "(0, "), (",)", ",) + ()"),
    ("{", "{'a': " + "[" * 200), ("{", "(((("), ("}", "'''"), ("descr", "DESCR"), ("False", "print(1)"), ("\n", " "),
]  # fmt: skip


def entries_of(data: bytes) -> Entries:
    """The entries of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {name: z.read(name) for name in z.namelist()}


def zipped(entries: Entries, deflate: str = "") -> bytes:
    """A zip of entries as ours are; one of them may be compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        for name, data in entries.items():
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED if name == deflate else zipfile.ZIP_STORED)
    return out.getvalue()


def pick(rng: np.random.Generator, items: Any) -> Any:
    """One of several."""
    return items[int(rng.integers(len(items)))]


def some_array(entries: Entries, rng: np.random.Generator) -> str:
    """The name of an array."""
    arrays = [n for n in entries if n.endswith(".npy")]
    return str(pick(rng, arrays)) if arrays else ""


def header(data: bytes, rng: np.random.Generator) -> bytes:
    """The header of an array says something else, or is none."""
    entries = entries_of(data)
    if not (name := some_array(entries, rng)):
        return data
    raw = entries[name]
    size = 10 + int.from_bytes(raw[8:10], "little")
    head = raw[10:size].decode("latin1").replace(*pick(rng, HEADS), 1)
    head = head[: size - 11].ljust(size - 11) + "\n" if rng.random() < 0.5 else head
    start = pick(rng, [raw[:8], b"\x93NUMPY\x02\x00", b"\x93NUMPY\x09\x00", raw[:8], raw[:8], raw[:8]])
    length = len(head) if rng.random() < 0.9 else int(rng.integers(65536))
    entries[name] = start + length.to_bytes(2, "little") + head.encode("latin1") + raw[size:]
    return zipped(entries)


@np.errstate(all="ignore")
def variants(a: np.ndarray) -> dict[str, np.ndarray]:
    """An array with something wrong: its shape, its type, or its values."""
    out = {"another type": a.astype(np.complex128), "half precision": a.astype(np.float16), "texts": a.astype("U3"),
           "whole numbers": np.nan_to_num(a).astype(np.int32), "small numbers": np.nan_to_num(a).astype(np.int8),
           "one axis more": a[None], "empty": np.zeros(0), "a number": np.zeros(()), "doubled": np.concatenate([a, a])
           if a.ndim else a[None], "large": np.full_like(a, 100)}  # fmt: skip
    for axis in range(a.ndim):
        out[f"axis {axis} is shorter"] = np.delete(a, 0, axis=axis) if a.shape[axis] else a[None]
        out[f"axis {axis} is longer"] = np.concatenate([a, np.take(a, [0], axis)], axis) if a.shape[axis] else a[None]
    if a.ndim > 1:
        out |= {"transposed": a.T, "flat": a.ravel()}
    if a.dtype.kind == "f" and a.size:
        for value in (np.nan, np.inf, -np.inf):
            out[f"one is {value}"] = np.where(np.arange(a.size).reshape(a.shape) == a.size // 2, value, a)
        out["negative"] = -np.abs(a) - 1
    elif a.dtype.kind == "i" and a.size:
        out |= {"negative": np.full_like(a, -5), "far out": np.full_like(a, 2**30)}
    return out


def array(data: bytes, rng: np.random.Generator) -> bytes:
    """An array is another."""
    entries = entries_of(data)
    if not (name := some_array(entries, rng)):
        return data
    a = np.load(io.BytesIO(entries[name]))
    return zipped(entries | {name: npy(pick(rng, list(variants(a).values())) if a.dtype.kind in "fib" else a[:0])})


def npy(a: np.ndarray) -> bytes:
    """An array as a file holds it."""
    out = io.BytesIO()
    np.lib.format.write_array(out, a)
    return out.getvalue()
