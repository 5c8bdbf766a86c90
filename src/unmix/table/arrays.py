"""NumPy's files: a matrix, a structured array, or several arrays of as many rows."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from tokenize import TokenError
from typing import Any

import numpy as np
import pyarrow as pa

from unmix.table.errors import TableError, reading
from unmix.table.found import Found, Tell, check, stream
from unmix.table.store import BATCH

BROKEN = (
    ValueError,
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    SyntaxError,
    TokenError,
    RuntimeError,
)
PICKLED = "it holds Python objects, which are not loaded: save numbers or strings, or give a frame"


def npy(path: str, name: str, limit: float, tell: Tell) -> Found:
    """One array."""
    with reading(name, "a NumPy file", *BROKEN):
        a = loaded(name, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    return columns(named("", a, name), name, limit, tell, [path])


def npz(path: str, name: str, limit: float, tell: Tell) -> Found:
    """Several arrays: a matrix, and whatever has a value for each of its rows beside it."""
    with reading(name, "a NumPy archive", *BROKEN), np.load(path, allow_pickle=False) as z:
        keys = list(z.files)
        if {"indices", "indptr", "format"} <= set(keys):
            raise TableError(
                f"{name} holds a sparse matrix: open it with scipy.sparse.load_npz and give that to a model, which "
                "takes it as it is"
            )
        arrays = {key: loaded(name, lambda key=key: z[key]) for key in keys}
    usable = {k: a for k, a in arrays.items() if a.ndim in (1, 2) and a.size and a.dtype.kind not in "OVc"}
    if not usable and len(arrays) == 1:
        return columns(named("", next(iter(arrays.values())), name), name, limit, tell, [path])
    if not usable:
        shapes = ", ".join(f"{k} {a.shape}" for k, a in list(arrays.items())[:5]) or "nothing"
        raise TableError(f"{name} holds no table ({shapes}): save an array with a row for each case")
    main = max(usable, key=lambda k: (usable[k].ndim, usable[k].size))
    n, width = len(usable[main]), usable[main].shape[-1]
    titles = [k for k, a in usable.items() if a.shape == (width,) and a.dtype.kind == "U" and usable[main].ndim == 2]
    found = []
    for key in sorted(usable, key=lambda k: k != main):
        if len(usable[key]) == n and key not in titles:
            part = named(key, usable[key], name)
            given = usable[titles[0]].tolist() if key == main and titles else []
            found += [(given[i] if given else label, x) for i, (label, x) in enumerate(part)]
    left = [k for k, a in arrays.items() if k not in titles and (k not in usable or len(a) != n)]
    result = columns(found, name, limit, tell, [path], bool(titles) or usable[main].ndim == 1)
    if left:
        result.notes.append(f"arrays left out, which have no value for each row: {', '.join(map(repr, left[:5]))}")
    return result


def loaded(name: str, load: Any) -> np.ndarray:
    """An array from a file that may not run code."""
    try:
        return np.asanyarray(load())
    except ValueError as e:
        if "allow_pickle" in str(e) or "Object arrays" in str(e):
            raise TableError(f"{name}: {PICKLED}") from e
        raise


def named(key: str, a: np.ndarray, name: str) -> list[tuple[str, np.ndarray]]:
    """The columns of an array with their names."""
    if a.dtype.names and a.ndim == 1:
        return [(f, a[f]) for f in a.dtype.names if a[f].ndim == 1]
    if a.ndim == 1:
        return [(key, a)]
    if a.ndim != 2 or a.dtype.kind not in "biufUSM":
        raise TableError(
            f"{name} holds an array of shape {a.shape} and type {a.dtype}, which is no table: save a matrix of numbers "
            "with a row for each case"
        )
    return [("" if not key else f"{key} {j + 1}", a[:, j]) for j in range(a.shape[1])]


def columns(
    found: list[tuple[str, np.ndarray]],
    name: str,
    limit: float,
    tell: Tell,
    files: list[str],
    headed: bool | None = None,
) -> Found:
    """Arrays of one length as columns, copied a few megabytes at a time."""
    check(len(found[0][1]) if found else 0, len(found), name)
    n, width = len(found[0][1]), sum(x.dtype.itemsize for _, x in found)
    step = max(1, BATCH // max(1, width))

    def batches() -> Iterator[Any]:
        for at in range(0, n, step):
            parts = [arrow_of(x[at : at + step], name) for _, x in found]
            yield pa.RecordBatch.from_arrays(parts, names=[label for label, _ in found])

    first = pa.schema([(label, arrow_of(x[:1], name).type) for label, x in found])
    result = stream(batches(), first, limit, tell, name)
    own = any(label for label, _ in found) if headed is None else headed
    return replace(result, files=files, headed=own)


def arrow_of(x: np.ndarray, name: str) -> Any:
    """Part of a column as Arrow has it."""
    x = np.ascontiguousarray(x)
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if x.dtype.kind == "f" and x.dtype.itemsize > 8:
        x = x.astype(np.float64)
    try:
        made = pa.array(x.astype(object) if x.dtype.kind in "US" else x, from_pandas=True)
        return made.cast(pa.string()) if pa.types.is_null(made.type) and x.dtype.kind == "U" else made
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        SystemError,
    ) as e:  # NumPy raises the last for letters that are none
        raise TableError(
            f"{name} holds values of type {x.dtype}, which no column can hold: save numbers or text"
        ) from e
