"""Ctrl-C at random moments: an estimator is as it was before, or fitted and whole; never half-written."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import unmix
from attack.harness import Child, Report, Slow, digest, example, names

SHARE = 1.5
STEP = 0.004  # seconds that a step takes at least
RESULTS = {"stopped", "converged", "solved", "max_iter"}
PATIENCE = 60.0


def interrupted(name: str, share: float, jobs: int, folder: str) -> str:
    """Fit twice, the second time with Ctrl-C after a share of the seconds of the first; what is wrong, or nothing."""
    model, X = example(name)
    path = Path(folder) / "model"
    with unmix.config(n_jobs=jobs, block_rows=64):
        model.set_callbacks(Slow(STEP))
        began = time.monotonic()
        model.fit(X[: len(X) * 2 // 3])
        before, seconds = digest(model), time.monotonic() - began
        timer = threading.Timer(share * seconds, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            model.fit(X)
            timer.join()  # an interrupt after the fit is none of its
        except KeyboardInterrupt:
            timer.join()
            if model._shape.n != len(X):
                return "" if digest(model) == before else "Ctrl-C was raised, and the model is not what it was"
    if model.result_ not in RESULTS:
        return f"the result is {model.result_!r}"
    model.save(path)  # what is read again is checked against what the class describes
    z, again = model.transform(X[:20]), unmix.load(path).transform(X[:20])
    return "" if np.array_equal(np.asarray(z), np.asarray(again)) else "saved and loaded it is another"


def run(report: Report, rng: np.random.Generator, until: float) -> None:
    """Model after model."""
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            name, share, jobs = str(rng.choice(names())), float(rng.uniform(0, 1.5)), int(rng.choice([1, 3]))
            case: tuple[Any, ...] = name, round(share, 4), jobs
            word, value = Child(interrupted, *case, folder).answer(PATIENCE)
            report.count(case[0])
            if word != "value" or value:
                report.found(f"{case[0]}: {word}: {value}", f"attack.interrupts.interrupted{(*case, folder)}")
