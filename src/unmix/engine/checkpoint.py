"""A running fit in a file: the parts, traces and z of every start. Killed and resumed is never killed, bit for bit."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.accelerate import Accelerator
from unmix.engine.start import Start
from unmix.io import pack

STATE = ("complete", "stage", "number", "batches", "ended", "seed", "seconds", "starts")  # what a file holds


class Checkpoint:
    """The file of a fit, or nothing where no checkpoint was asked for."""

    def __init__(self, path: Path | None, belongs: dict[str, Any], every: float) -> None:
        self.path, self.belongs, self.every, self.last = path, belongs, every, time.monotonic()
        self.failed = False  # a warning was given

    @classmethod
    def of(cls, loop: Any) -> Checkpoint:
        """The checkpoint that the settings ask for."""
        settings = loop.settings
        if settings.checkpoint is None:
            return cls(None, {}, 0.0)
        path = Path(settings.checkpoint)
        if not path.parent.is_dir():
            raise ValueError(
                f"checkpoint={str(path)!r}: the folder {str(path.parent)!r} does not exist; create it first"
            )
        if path.is_dir():
            raise ValueError(f"checkpoint={str(path)!r} is a folder: give the name of a file in it")
        params = loop.model.get_params(deep=False)
        if params.get("random_state") is None:  # then the seed in the file is as good as any
            params.pop("random_state", None)
        belongs = {
            "model": type(loop.model).__name__,
            "parameters": _digest(params),
            "data": loop.source.fingerprint(),
            "weights": "none" if loop.w is None else _digest(loop.w),
            "first parts": "none" if loop.first is None else _digest(loop.first),
            "blocks": _digest(loop.runs),
            "acceleration": str(settings.acceleration),
        }
        return cls(path, belongs, settings.checkpoint_seconds)

    def resume(self, loop: Any) -> list[Any] | None:
        """The starts as they were, or None where there is no file yet."""
        if self.path is None or not self.path.exists():
            return None
        try:
            saved = pack.read(self.path, own=type(loop.model).__module__)
        except pack.PackError as e:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is not a checkpoint, or it is damaged ({e}): remove the file, "
                "or name another"
            ) from e
        if not (isinstance(saved, dict) and saved.keys() >= {"belongs", *STATE}):
            raise ValueError(
                f"checkpoint={str(self.path)!r} is a file of unmix, but not a checkpoint: name another file"
            )
        wrong = [k for k, v in self.belongs.items() if saved["belongs"].get(k) != v]
        if wrong:
            raise ValueError(
                f"checkpoint={str(self.path)!r} belongs to another fit (other {' and '.join(wrong)}): "
                "remove the file, or give this fit a file of its own"
            )
        if not saved["complete"]:
            loop.expect_missing()
        loop.index, loop.number, (loop.batches_done, loop.weight_seen) = (
            saved["stage"],
            saved["number"],
            saved["batches"],
        )
        loop.seed, loop.ended = saved["seed"], saved["ended"]
        loop.began -= saved["seconds"]
        starts = []
        for entry in saved["starts"]:
            z, history = entry.pop("z"), entry.pop("accelerator")
            if z is not None:
                loop.work.restore(entry["index"], loop.runs, z)
            accelerator = None
            if history is not None:
                accelerator = Accelerator()
                accelerator.restore(history)
            starts.append(Start(**entry, accelerator=accelerator))
        return starts

    def save(self, loop: Any, starts: list[Any], at_once: bool = False) -> None:
        """Write the state after a step, if it is time, or at once."""
        if self.path is None or not (at_once or time.monotonic() - self.last >= self.every):
            return
        entries = []
        for s in starts:
            entry = {f.name: getattr(s, f.name) for f in fields(s)}
            live = loop.stage.stateful and s.result not in ("stopped", "nonfinite")  # whose z was forgotten
            entry["z"] = loop.work.state(s.index, loop.runs) if live else None
            entry["accelerator"] = None if s.accelerator is None else s.accelerator.state()
            entries.append(entry)
        seconds = time.perf_counter() - loop.began
        value = {
            "belongs": self.belongs,
            "complete": loop.shape.complete,
            "stage": loop.index,
            "number": loop.number,
            "batches": [loop.batches_done, loop.weight_seen],
            "ended": loop.ended,
            "seed": loop.seed,
            "seconds": seconds,
            "starts": entries,
        }
        try:
            pack.write(self.path, value)
        except OSError as error:  # a full disk does not end a fit
            if not self.failed:
                warnings.warn(
                    f"checkpoint={str(self.path)!r} could not be written ({error}): the fit goes on, but if it is "
                    "broken off, it cannot be resumed from here; make room, or name a file elsewhere",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self.failed = True
        self.last = time.monotonic()

    def remove(self) -> None:
        """The fit is over: the file has done its duty."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _digest(value: Any) -> str:
    h = hashlib.sha256()
    for piece in identity(value):
        h.update(piece)
        h.update(b"\0")
    return h.hexdigest()[:16]


def identity(value: Any, depth: int = 20) -> Iterator[bytes]:
    """Bytes that tell a value from others in any process: `repr` leaves out most of an array, or holds an address."""
    if depth == 0:  # a function that refers to itself
        yield type(value).__qualname__.encode()
    elif isinstance(value, np.integer):
        yield repr(int(value)).encode()
    elif isinstance(value, np.random.RandomState):
        yield from identity(value.get_state(), depth - 1)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, dict):
        yield f"{type(value).__name__} {len(value)}".encode()
        for key in sorted(value, key=repr):
            yield from identity(key, depth - 1)
            yield from identity(value[key], depth - 1)
    elif isinstance(value, (list, tuple, np.ndarray)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from identity(item, depth - 1)
    elif isinstance(value, (set, frozenset)):
        yield from identity(sorted(value, key=repr), depth - 1)
    elif isinstance(value, CodeType):
        yield from identity((value.co_code, value.co_names, value.co_consts), depth - 1)
    elif isinstance(value, FunctionType):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from identity((value.__code__, value.__defaults__, value.__kwdefaults__, cells), depth - 1)
    elif isinstance(value, partial):
        yield from identity((value.func, value.args, value.keywords), depth - 1)
    elif isinstance(value, MethodType):
        yield from identity((value.__func__, value.__self__), depth - 1)
    elif sp.issparse(value):
        yield from identity((value.shape, *value.nonzero(), value.tocsr().data), depth - 1)
    elif hasattr(value, "__array__"):  # a data frame, whose `repr` leaves rows out
        yield from identity(np.asarray(value), depth - 1)
    elif " at 0x" in (text := repr(value)):
        name = getattr(value, "__qualname__", type(value).__qualname__)
        yield from identity((name, getattr(value, "__dict__", {})), depth - 1)
    else:
        yield text.encode()
