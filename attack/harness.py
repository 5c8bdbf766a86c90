"""What attacks share: models to attack, child processes that may die, and a report."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded: children are forked, and threads are not

import numpy as np  # noqa: E402

import unmix  # noqa: E402
from unmix.engine.checkpoint import identity  # noqa: E402

LONG_AGO = 120.0  # seconds without an answer: it hangs
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["attack.warm"])


def attacks() -> dict[str, ModuleType]:
    """Every attack by name: the modules here that have a share of the time."""
    found = {m.name: importlib.import_module(f"attack.{m.name}") for m in pkgutil.iter_modules(folder())
             if m.name not in ("__main__", "warm", "harness")}  # fmt: skip
    return {name: module for name, module in found.items() if "SHARE" in vars(module)}


def folder() -> list[str]:
    """Where the attacks are."""
    return [os.path.dirname(__file__)]


def generator(seed: int, name: str) -> np.random.Generator:
    """The random numbers of an attack."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def names() -> list[str]:
    """Every model."""
    return list(unmix._MODELS)


def example(name: str) -> tuple[Any, np.ndarray]:
    """A model and rows that suit it, small and the same every time."""
    model, X, _ = getattr(unmix, name).example(np.random.default_rng(0))
    return model, np.asarray(X)


def digest(model: Any) -> int:
    """A number that tells fitted models apart to the bit; times of steps do not count."""
    state = {k: v for k, v in vars(model).items() if k.endswith("_") and k not in ("trace_", "stages_", "_online_")}
    return zlib.crc32(b"\0".join(identity((state, [s.objective for s in model.trace_]))))


def spoken(error: Exception) -> bool:
    """Whether an error was raised on purpose, in a sentence: not by arithmetic that was given the wrong arrays.

    NumPy and SciPy raise on purpose, too, but of what they were given on the way; scikit-learn's checks are ours.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = {"unmix", "sklearn"} & set(Path(last.filename).parts)
    return bool(ours) and (last.line or "").startswith("raise") and len(str(error).split()) > 3


@dataclass
class Report:
    """What an attack tried and found."""

    name: str
    seed: int
    tried: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def count(self, kind: str, n: int = 1) -> None:
        """So many more tries of a kind."""
        self.tried += n
        self.kinds[kind] += n

    def found(self, what: str, how: str) -> None:
        """A finding: what happened, and what is needed to see it again."""
        self.findings.append(f"{what}\n    again: {how}")
        print(f"  {self.name}: {self.findings[-1]}", flush=True)

    def tally(self) -> str:
        """How many of what."""
        return ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common(8))

    def __str__(self) -> str:
        return f"{self.name} (seed {self.seed}): {self.tried} tried in {self.seconds:.0f} s, {len(self.findings)} found"


class Child:
    """A function in a process of its own, forked from one that has the kernels loaded."""

    def __init__(self, work: Callable[..., Any], *args: Any) -> None:
        self.pipe, other = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_call, args=(other, work, args), daemon=True)
        self.process.start()
        other.close()

    def begun(self) -> None:
        """Wait until the work begins."""
        if self.pipe.poll(LONG_AGO):
            self.pipe.recv()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()

    def answer(self, patience: float = LONG_AGO) -> tuple[str, Any]:
        """("value", what the function returned), ("error", the traceback), ("died", exit code) or ("hung", None)."""
        try:
            if not self.pipe.poll(patience):
                self.kill()
                return "hung", None
            answer: tuple[str, Any] = self.pipe.recv()
            return self.answer(patience) if answer[0] == "begun" else answer
        except EOFError:
            self.process.join()
            return "died", self.process.exitcode
        finally:
            self.process.join(0 if self.process.is_alive() else None)


def _call(pipe: Any, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    warnings.simplefilter("ignore")
    pipe.send(("begun", None))
    try:
        pipe.send(("value", work(*args)))
    except BaseException:
        pipe.send(("error", traceback.format_exc()))


class Break(Exception):
    """A fit ends here, as if it were killed."""


class Slow:
    """A callback that makes every step take a while, so that there is time to interfere; and breaks off after some."""

    def __init__(self, seconds: float, most: float = np.inf) -> None:
        self.seconds, self.left = seconds, most

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Wait, and count."""
        time.sleep(self.seconds)
        self.left -= context.task_name in ("pass", "round")
        if self.left <= 0:
            raise Break
        return False
