"""A running fit in a file: the parts, traces and z of every start. Killed and resumed is never killed, bit for bit."""

from __future__ import annotations

import hashlib
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from unmix.engine.accelerate import Accelerator
from unmix.engine.start import Start
from unmix.io import pack


class Checkpoint:
    """The file of a fit, or nothing where no checkpoint was asked for."""

    def __init__(self, path: Path | None, belongs: dict[str, Any], every: float) -> None:
        self.path, self.belongs, self.every, self.last = path, belongs, every, time.monotonic()

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
        if not isinstance(params.get("random_state"), int):  # then the seed in the file is as good as any
            params.pop("random_state", None)
        belongs = {
            "model": type(loop.model).__name__,
            "parameters": _digest(
                repr(sorted(params.items())), *(v for v in params.values() if isinstance(v, np.ndarray))
            ),
            "data": loop.source.fingerprint(),
            "weights": "none" if loop.w is None else _digest("", loop.w),
            "blocks": _digest(repr(loop.runs)),
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

    def save(self, loop: Any, starts: list[Any]) -> None:
        """Write the state after a pass, if it is time."""
        if self.path is None or time.monotonic() - self.last < self.every:
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
        pack.write(self.path, value)
        self.last = time.monotonic()

    def remove(self) -> None:
        """The fit is over: the file has done its duty."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _digest(text: str, *arrays: np.ndarray) -> str:
    h = hashlib.sha256(text.encode())
    for a in arrays:
        h.update(np.ascontiguousarray(a).tobytes())
    return h.hexdigest()[:16]
