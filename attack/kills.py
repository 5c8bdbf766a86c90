"""Fits that are killed (SIGKILL) at random moments, and resumed until they end: the same bits as undisturbed ones."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import unmix
from attack.harness import Child, Report, Slow, digest, example, names

SHARE = 2.0
STEP = 0.01  # seconds that a step takes at least
JOBS = (1, 3)


def fit(name: str, jobs: int, path: str | None) -> tuple[int, float]:
    """The digest of a fit with a checkpoint after every step, and its seconds."""
    model, X = example(name)
    began = time.monotonic()
    with unmix.config(checkpoint=path, checkpoint_seconds=0.0, n_jobs=jobs, block_rows=64):
        model.set_callbacks(Slow(STEP)).fit(X)
    return digest(model), time.monotonic() - began


def run(report: Report, rng: np.random.Generator, until: float) -> None:
    """Kill and resume, model after model."""
    truths: dict[Any, Any] = {}
    order = [(name, jobs) for name in names() for jobs in JOBS]
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            for i in rng.permutation(len(order)):
                if time.monotonic() >= until:
                    return
                if order[i] not in truths:
                    truths[order[i]] = Child(fit, *order[i], None).answer()
                one(report, rng, order[i], truths[order[i]], Path(folder) / "state")


def one(report: Report, rng: np.random.Generator, case: tuple[str, int], truth: tuple[str, Any], path: Path) -> None:
    """A fit that is killed once or several times, and then let be."""
    if truth[0] != "value":
        report.found(f"an undisturbed fit: {truth}", f"attack.kills.fit{(*case, None)}")
        return
    wanted, seconds = truth[1]
    moments = [round(float(rng.uniform(0, 1.1 * seconds)), 3) for _ in range(1 + rng.integers(3))]
    done, ended = [], None
    for moment in moments:
        child = Child(fit, *case, str(path))
        child.begun()
        ended = child.answer(moment)
        if ended[0] != "hung":  # it was faster than the kill
            break
        done.append(moment)
    if ended is None or ended[0] == "hung":
        ended = Child(fit, *case, str(path)).answer()
    report.count(f"kills of {case[0]}", len(done))
    if ended[0] != "value" or ended[1][0] != wanted:
        report.found(f"resumed after kills: {ended}, not {wanted}", f"{case} killed after {done} s each, from {path}")
    path.unlink(missing_ok=True)
    left = [p.name for p in path.parent.iterdir()]
    if left:
        report.found(f"files are left behind: {left}", f"{case} killed after {done} s each")
        for name in left:
            (path.parent / name).unlink()
