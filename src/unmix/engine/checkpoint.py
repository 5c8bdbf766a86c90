"""A running fit in a file: the parts, traces and z of every start. Killed and resumed is never killed, bit for bit."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine import tree
from unmix.engine.accelerate import Accelerator
from unmix.engine.described import COUNT, UnfitError, asked, conform, several
from unmix.engine.start import Start
from unmix.engine.trace import Ended, Step
from unmix.io import pack
from unmix.maths.arrays import Array

RESULTS = {"running", "converged", "solved", "max_iter", "nonfinite", "stopped"}


class State(NamedTuple):
    """What a file holds beside whose it is."""

    complete: bool
    stage: Annotated[int, Array(kind="i", low=0, high="stages-1")]
    number: COUNT
    batches: list[float]
    ended: list[list[Ended]]
    seed: COUNT
    seconds: Annotated[float, Array(low=0.0)]
    starts: list[dict[str, Any]]


@dataclass
class Entry:
    """What it holds of a start, its parts and statistics aside."""

    index: int
    trace: list[Step]
    last: float
    result: str
    message: str
    told: bool
    unfinished: bool
    must_go_on: bool


class History(NamedTuple):
    """What an accelerator has seen: the statistics of its last steps."""

    points: Annotated[np.ndarray, Array("seen")]
    images: Annotated[np.ndarray, Array("seen")]
    flags: Annotated[np.ndarray, Array("5")]


ENTRIES = {"z", *(field.name for field in fields(Start))}


class Checkpoint:
    """The file of a fit, or nothing where no checkpoint was asked for."""

    def __init__(self, path: Path | None, belongs: dict[str, Any], every: float) -> None:
        self.path, self.belongs, self.every, self.last = path, belongs, every, time.monotonic()
        self.failed = False  # a warning was given
        self.left: dict[int, Any] = {}  # of each start that is resumed: z of its rows, and what its accelerator saw

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
            "first parts": "none"
            if loop.first is loop.model.given is None
            else _digest((loop.first, loop.model.given)),
            "blocks": _digest(loop.runs),
            "acceleration": str(settings.acceleration),
        }
        return cls(path, belongs, settings.checkpoint_seconds)

    def resume(self, loop: Any) -> list[Any] | None:
        """The starts as they were, or None where there is no file yet."""
        if self.path is None or not self.path.exists():
            return None
        with self._refusing():
            saved = pack.read(self.path, own=pack.modules_of(type(loop.model)))
        known = isinstance(saved, dict) and saved.keys() == {"belongs", *State._fields}
        if not known or not isinstance(saved["belongs"], dict):
            raise ValueError(
                f"checkpoint={str(self.path)!r} is a file of unmix, but not a checkpoint: name another file"
            )
        wrong = [k for k, v in self.belongs.items() if saved["belongs"].get(k) != v]
        if wrong:
            raise ValueError(
                f"checkpoint={str(self.path)!r} belongs to another fit (other {' and '.join(wrong)}): "
                "remove the file, or give this fit a file of its own"
            )
        with self._refusing():
            return self._starts(loop, State(**{name: saved[name] for name in State._fields}))

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Whatever is wrong with the file is one error."""
        try:
            yield
        except UnfitError as e:
            raise ValueError(f"checkpoint={str(self.path)!r} does not fit this run: {e}") from e
        except pack.PackError as e:  # an error of another kind is one of ours, not the file's
            raise ValueError(
                f"checkpoint={str(self.path)!r} is not a checkpoint, or it is damaged ({e}): name another "
                "file, or remove this one if it is a checkpoint of yours"
            ) from e

    def _starts(self, loop: Any, state: State) -> list[Start]:
        """The starts as the file has them; `check` looks at their parts when the stage has its data."""
        if state.complete is False:
            loop.expect_missing()
        conform(state, State, {"stages": len(loop.stages)}, "state")
        if len(state.batches) != 2:
            raise pack.PackError(f"it tells {len(state.batches)} numbers of batches, not 2")
        n = loop.model.starts() if loop.first is None else len(loop.first)
        if len(state.ended) != state.stage - loop.index or {len(state.starts), *map(len, state.ended)} != {n}:
            raise pack.PackError(f"it has not {n} starts in every stage")
        loop.index, loop.number, (loop.batches_done, loop.weight_seen) = state.stage, state.number, state.batches
        loop.seed, loop.ended = state.seed, state.ended
        loop.began -= state.seconds
        out = []
        for i, entry in enumerate(state.starts):
            if entry.keys() != ENTRIES:
                raise pack.PackError(f"starts[{i}] has other entries than a start")
            self.left[i] = entry.pop("z"), entry.pop("accelerator")
            out.append(Start(**entry))
            known = Entry(*(getattr(out[-1], field.name) for field in fields(Entry)))
            conform(known, Entry, {}, f"starts[{i}]")
            steps = len(known.trace)
            if known.index != i or known.result not in RESULTS or (known.result == "running" and steps != state.number):
                raise pack.PackError(f"starts[{i}] is at step {steps} of {state.number}, {known.result}")
        return out

    def check(self, loop: Any, starts: list[Start], data: Any) -> None:
        """Refuse parts, statistics and z that the stage cannot have left; take up z and accelerators where they are."""
        with self._refusing():
            for s in starts:
                self._check_start(loop, s, data)

    def _check_start(self, loop: Any, s: Start, data: Any) -> None:
        (z, history), where = self.left.pop(s.index), f"starts[{s.index}]"
        said = asked(loop.stage, s.U, data)
        names = {"d": loop.shape.d, "n": loop.shape.n, **said.names}
        pair = several(said.parts, said.stats)
        kinds = {"U": said.parts, "stats": said.stats, "made_of": said.stats, "plain": pair, "good": said.parts}
        for name, kind in [*kinds.items(), ("next", said.parts)]:
            value = getattr(s, name)
            if value is not None or name == "U":
                conform(value, kind, dict(names), f"{where}.{name}")
        if said.holds is not None and not said.holds(s.U):
            raise pack.PackError(f"{where}.U contradicts itself")
        if s.result == "running" and not tree.finite(s.U):
            raise pack.PackError(f"{where}.U is not finite")
        if history is not None:
            if not isinstance(history, dict) or history.keys() != set(History._fields):
                raise pack.PackError(f"{where}.accelerator is not what an accelerator has seen")
            size = 0 if s.stats is None else sum(np.size(v) for v in tree.leaves(s.stats))
            steps = next(iter(np.shape(history["points"])), 0)
            conform(History(**history), History, {"seen": (steps, size) if steps else (0,)}, f"{where}.accelerator")
            s.accelerator = Accelerator()
            s.accelerator.restore(history)
        if z is not None:
            conform(z, list[list[Any]], {}, f"{where}.z")
            if [len(blocks) for blocks in z] != [len(run.bounds) - 1 for run in loop.runs]:
                raise pack.PackError(f"{where}.z is of other blocks")
            for run, blocks in zip(loop.runs, z, strict=True):
                for (a, b), rows in zip(pairwise(run.bounds), blocks, strict=True):
                    conform(rows, said.z, names | {"m": b - a}, f"{where}.z")
            loop.work.restore(s.index, loop.runs, z)

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
        except (OSError, pack.PackError) as error:  # a full disk, or more than a file holds, does not end a fit
            if not self.failed:
                remedy = "; make room, or name a file elsewhere" if isinstance(error, OSError) else ""
                warnings.warn(
                    f"checkpoint={str(self.path)!r} could not be written ({error}): the fit goes on, but if it is "
                    f"broken off, it cannot be resumed from here{remedy}",
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
