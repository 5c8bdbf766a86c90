"""Trees of plain values and arrays in one file: a zip of a JSON text and `.npy` arrays. Reading it executes nothing."""

from __future__ import annotations

import glob
import importlib
import io
import json
import os
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


class PackError(ValueError):
    """A value that the format cannot hold, or a file that is not of the format."""


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
                    np.lib.format.write_array(f, a, allow_pickle=False)
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


def read(path: str | os.PathLike[str], own: str = "unmix") -> Any:
    """Read a value that `write` wrote; `own` is the module of the reader's own classes."""
    try:
        with zipfile.ZipFile(path) as z:
            content = json.loads(z.read("content.json"))
            count = sum(name.endswith(".npy") for name in z.namelist())
            arrays = [np.load(io.BytesIO(z.read(f"{i}.npy")), allow_pickle=False) for i in range(count)]
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as e:
        raise PackError(f"{os.fspath(path)!r} is not a file of this format, or it is damaged: {e}") from e
    try:
        return _restore(content, arrays, own)
    except (KeyError, IndexError, TypeError, AttributeError, ImportError) as e:
        raise PackError(f"{os.fspath(path)!r} is not a file of this format, or it is damaged: {e!r}") from e


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


def _restore(v: Any, arrays: list[np.ndarray], own: str) -> Any:
    if isinstance(v, list):
        return [_restore(a, arrays, own) for a in v]
    if not isinstance(v, dict):
        return v
    kind, of = v["!"], v["of"]
    if kind == "array":
        return arrays[of]
    if kind == "dtype":
        return np.dtype(of)
    if kind == "strings":
        return np.array(of, dtype=object)
    if kind == "csr":
        return sp.csr_array(tuple(_restore(a, arrays, own) for a in of), shape=tuple(v["shape"]))
    if kind == "dict":
        return {k: _restore(a, arrays, own) for k, a in of.items()}
    items = [_restore(a, arrays, own) for a in of]
    return tuple(items) if v["as"] is None else find(v["as"], tuple, own)._make(items)


def find(name: str, base: type, own: str = "unmix") -> Any:
    """The class `module:Name`, of this package or of the reader's own module: reading a file imports nothing else."""
    module, _, qualname = name.partition(":")
    if module != own and module.split(".")[0] != "unmix":
        raise PackError(f"the file names {name!r}, which is not part of unmix: load it through the class itself")
    cls = importlib.import_module(module)
    for part in qualname.split("."):
        cls = getattr(cls, part)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise PackError(f"the file names {name!r}, which is not a {base.__name__}")
    return cls
