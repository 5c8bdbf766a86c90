"""Model files and checkpoints with something wrong in them: refused by the one error, or of use. No crash."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import unmix
from attack.harness import CONTEXT, Break, Child, Report, Slow, example, names, spoken
from attack.mutations import KINDS, WEIGHTS
from unmix.io.pack import PackError
from unmix.io.values import ROOM

SHARE = 8.0
BATCH = 250  # files that a child tries
LARGE, LARGE_BATCH = 1 << 20, 25  # so many of those of more bytes
ROWS = 6_000_000  # of a large model's labels: its file has 24 MB, so that memory is a matter of its size
MOST = 1.2  # times the file's size may be taken in memory
TEXT = 40  # bytes that a byte of text takes at most, and ROOM in all: a list in a list is three bytes of it
NOISE = 4 << 20  # bytes that come and go besides: arenas of 1 MiB, and what a small fit works in (1.7 MiB were seen)
PATIENCE = 240.0


def make(name: str, checkpoint: bool, path: str, step: int) -> bool:
    """Write a good file: a model (a large one: step 0), or a fit after some steps; False where the fit has fewer."""
    model, X = example(name)
    if not checkpoint:
        model.fit(X)
        if step == 0:
            model._shape, model.labels_ = model._shape._replace(n=ROWS), np.zeros(ROWS, np.int32)
        model.save(path)
        return True
    try:
        with unmix.config(checkpoint=path, checkpoint_seconds=0.0, n_jobs=1, block_rows=64):
            model.set_callbacks(Slow(0.0, step)).fit(X)
    except Break:
        return os.path.exists(path)
    return False


def peak(reset: bool = False) -> int:
    """The most memory this process has held (or holds, where it is counted anew)."""
    if reset:
        ctypes.CDLL(None).malloc_trim(0)  # what is free but kept would be taken again unseen
        Path("/proc/self/clear_refs").write_text("5")
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def use(name: str, checkpoint: bool, path: str) -> str:
    """Load a file and work with it: what happened, in a word; an exception where it should not have."""
    model, X = example(name)
    try:
        if checkpoint:
            with unmix.config(checkpoint=path, checkpoint_seconds=1e9, n_jobs=1, block_rows=64):
                model.fit(X)
        else:
            model = unmix.load(path)
    except PackError as e:
        return "refused" if path in str(e) else f"an error that does not name the file: {e}"
    except ValueError as e:
        return "refused" if checkpoint and "checkpoint=" in str(e) else f"another error: {e!r}"
    try:
        z = np.asarray(model.transform(X[:20]))
        if not checkpoint and "online" not in model.exempt:
            model.partial_fit(X[:20])
    except ValueError as e:  # of other parameters: a model of columns that these rows do not have
        return "used" if spoken(e) else f"a raw error: {e!r}"
    return "used" if np.isfinite(z).all() else "not finite"


def measured(name: str, checkpoint: bool, path: str, data: bytes) -> tuple[str, float]:
    """What happened with a file of these bytes, and the memory that it took."""
    Path(path).write_bytes(data)
    before = peak(reset=True)
    try:
        what = use(name, checkpoint, path)
    except Exception as e:
        what = f"raised {type(e).__name__}: {str(e)[:150]}"
    return what, peak() - before


def batch(name: str, checkpoint: bool, good: str, seed: int, at: Any) -> tuple[dict[str, int], list[str]]:
    """Try many files; `at` is where it is, for whoever finds it dead."""
    data, counts, found, path = Path(good).read_bytes(), dict[str, int](), [], f"{good}.{os.getpid()}"
    use(name, checkpoint, good if not checkpoint else path)  # what is loaded once does not count
    for i in range(BATCH if len(data) < LARGE else LARGE_BATCH):
        at.value = i
        kind, wrong = mutant(data, seed, i)
        text = int.from_bytes(wrong[22:26], "little")  # bytes that the first entry says it has
        most = MOST * len(wrong) + min(ROOM, TEXT * text) + NOISE
        what, took = measured(name, checkpoint, path, wrong)
        if took > most:  # once more: what is loaded or compiled once does not count
            what, took = measured(name, checkpoint, path, wrong)
        if took > most:
            what = f"{took / 2**20:.0f} MiB for a file of {len(wrong)} bytes"
        counts[kind] = counts.get(kind, 0) + 1
        if what not in ("used", "refused"):
            found.append(f"{kind}, mutant({seed}, {i}): {what}")
    Path(path).unlink(missing_ok=True)
    return counts, found


def mutant(data: bytes, seed: int, i: int) -> tuple[str, bytes]:
    """A kind of mutation, and the file after it."""
    rng = np.random.default_rng([seed, i])
    kind = str(rng.choice(list(KINDS), p=WEIGHTS))
    return kind, KINDS[kind](data, rng)


def run(report: Report, rng: np.random.Generator, until: float) -> None:
    """Batch after batch, two at a time."""
    memory = "/dev/shm"  # thousands of files: no disk is needed
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as folder:
        while time.monotonic() < until:
            for case, child, at in [begin(report, rng, os.path.join(folder, which)) for which in "ab"]:
                if child is None:
                    continue
                word, value = child.answer(PATIENCE)
                if word != "value":
                    report.found(f"{case[0]}: a process {word} ({value}) at file {at.value}", how(case))
                    continue
                for kind, n in value[0].items():
                    report.count(kind, n)
                for what in value[1]:
                    report.found(f"{case[0]}{' checkpoint' if case[1] else ''}: {what}", how(case))


def begin(report: Report, rng: np.random.Generator, good: str) -> tuple[tuple[Any, ...], Child | None, Any]:
    """A child at work on files that are made of a good one; None where the good one could not be made."""
    name, checkpoint, step = str(rng.choice(names())), bool(rng.random() < 0.3), int(rng.integers(2, 9))
    if rng.random() < 0.1:
        name, checkpoint, step = "KMeans", False, 0
    case, at = (name, checkpoint, step, int(rng.integers(2**31))), CONTEXT.Value("q", 0)
    Path(good).unlink(missing_ok=True)
    made = Child(make, name, checkpoint, good, step).answer()
    if made[0] != "value":
        report.found(f"{name}: a good file: {made}", how(case))
    return case, Child(batch, name, checkpoint, good, case[-1], at) if made == ("value", True) else None, at


def how(case: tuple[Any, ...]) -> str:
    """What it takes to see it again."""
    name, checkpoint, step, seed = case
    return f"attack.files.make({name!r}, {checkpoint}, path, {step}), then mutant(bytes of path, {seed}, i)"
