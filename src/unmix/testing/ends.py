"""Laws of fits that do not run to their end: stopped, interrupted, killed and resumed, at every step of every stage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from unmix.engine import loop
from unmix.engine.config import config
from unmix.engine.runners import Runner
from unmix.testing.cases import law
from unmix.testing.compare import Broken, CtrlC, demand, same_bits
from unmix.testing.problem import Problem, steps_of


class Killed(Exception):  # noqa: N818  it stands for a signal
    """What `kill` raises: nothing in the library knows it."""


class At:
    """A callback that does something after so many steps, whatever stage they are of.

    Parameters
    ----------
    steps : int
        After how many.
    what : callable
        What to do; a fit stops where it returns True.

    Attributes
    ----------
    stages : list of str
        The stages that began.
    """

    def __init__(self, steps: int, what: Any) -> None:
        self.left, self.what = steps, what
        self.stages: list[str] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to set up."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to tear down."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Note the stages."""
        if context.task_name not in ("fit", "pass", "round"):
            self.stages.append(context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Count the steps."""
        if context.task_name in ("pass", "round"):
            self.left -= 1
            if self.left == 0:
                return bool(self.what())
        return False


def kill() -> None:
    """End a fit as a dying process would: nobody gets to tidy up."""
    raise Killed


def interrupt() -> None:
    """Ctrl-C."""
    raise CtrlC


@contextmanager
def interrupted_amid(step: int, last_start: bool = False) -> Iterator[None]:
    """Inside it, Ctrl-C comes amid this step of a fit, counted over all stages (of the last start, if asked)."""
    begun, record = set(), loop.Loop.record

    def amid(self: Any, s: Any, *rest: Any) -> None:
        begun.add((self.index, len(s.trace)))
        if len(begun) == step and (not last_start or s.index == max(self.model.starts() - 1, 0)):
            raise CtrlC
        record(self, s, *rest)

    with patch.object(loop.Loop, "record", amid):
        yield


@law("stop", how=("callback", "interrupt", "amid"))
def a_fit_can_be_stopped(p: Problem, how: str) -> None:
    """Stopped after or amid any step of any stage, by a callback or by Ctrl-C, a fit has parts that can be used."""
    truth = p.fitted()
    names, steps = [stage.name for stage in truth.stages_], steps_of(truth)
    act = {"callback": lambda: True, "interrupt": interrupt, "amid": lambda: False}[how]
    for step in range(1, steps + 1):
        watch = At(step, act)
        stopped = p.model().set_callbacks(watch)
        if how == "amid":
            with interrupted_amid(step):
                stopped.fit(p.X)
        else:
            stopped.fit(p.X)
        over = how != "amid" and step == steps
        demand(stopped.result_ == "stopped" or over, f"step {step}: result_ is {stopped.result_!r}")
        made = step - (how == "amid")
        demand(steps_of(stopped) == made, f"stopped in step {step}, {steps_of(stopped)} steps are told, not {made}")
        demand(watch.stages[: len(names)] == names, f"step {step}: the stages were {watch.stages}, not {names}")
        finite = np.isfinite(np.asarray(stopped.transform(p.X), dtype=float)).all()
        demand(finite, f"transform is not finite after step {step}")
        demand(stopped.n_iter_ == max(1, len(stopped.trace_)), f"step {step}: n_iter_ is {stopped.n_iter_}")


@law("stop")
def ctrl_c_in_the_closing_pass_keeps_the_parts(p: Problem) -> None:
    """Ctrl-C in the last look at the rows leaves the parts of the whole fit."""
    truth, sweeps, told = p.fitted(), Runner.sweeps, []

    def closing(self: Any, asks: Any) -> Any:
        if any(ask.closing for _, ask in asks):
            told.append(True)
            raise SystemError("a kernel") from CtrlC()  # as the compiler's dispatcher has it
        return sweeps(self, asks)

    with patch.object(Runner, "sweeps", closing):
        stopped = p.model().fit(p.X)
    demand(same_bits(truth.parts, stopped.parts), "the parts are others")
    expected = "stopped" if told else truth.result_
    demand(stopped.result_ == expected, f"result_ is {stopped.result_!r}, not {expected!r}")
    demand(np.array_equal(truth.transform(p.X), stopped.transform(p.X)), "transform gives other bits")


@law("resume")
def killed_and_resumed_is_never_killed(p: Problem) -> None:
    """A fit killed at any step of any stage goes on from its checkpoint to the bits of one that was not.

    It is killed in every step, once after another; and from each of the files that are left it goes on to its end.
    """
    truth = p.fitted(block_rows=100)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        for step in range(1, steps_of(truth) + 1):
            with config(block_rows=100, checkpoint=path, checkpoint_seconds=0.0):
                killed_in(step, p, path)
            if step > 1:
                shutil.copy(path, path.with_suffix(f".{step}"))
        for step in range(1, steps_of(truth) + 1):
            left = path.with_suffix(f".{step}")
            with config(block_rows=100, checkpoint=left):
                resumed = p.model().fit(p.X)
            demand(not left.exists(), f"resumed from step {step}, the fit left its checkpoint behind")
            demand(same_bits(truth.parts, resumed.parts), f"resumed from step {step}, a fit gives other bits")
            for old, new in zip(objectives(truth), objectives(resumed), strict=True):
                demand(np.array_equal(old, new, equal_nan=True), f"resumed from step {step}, a fit gives another trace")


def killed_in(step: int, p: Problem, path: Path) -> None:
    """Begin a fit, or go on with one that was killed in the step before, and kill it in this step."""
    steps = min(step, 2)  # a file is of the step before the kill, so that the killed step is made again
    model = p.model().set_callbacks(At(steps, kill))
    try:
        model.fit(p.X)
    except Killed:
        demand(path.exists() == (step > 1), f"killed in step {step}: is there a checkpoint? {path.exists()}")
        demand("trace_" not in vars(model), f"killed in step {step}, the model looks fitted")
    else:
        raise Broken(f"step {step} did not reach the callbacks")


@law("resume", amid=(False, True))
def ctrl_c_leaves_a_checkpoint(p: Problem, amid: bool) -> None:
    """After Ctrl-C the same call goes on to the same bits: from a checkpoint, or anew where a step was broken off."""
    truth = p.fitted(block_rows=100)
    steps = steps_of(truth)
    for step in {2, steps // 2, steps} - {0}:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            with config(block_rows=100, checkpoint=path):
                if amid:
                    with interrupted_amid(step, last_start=True):
                        p.model().fit(p.X)
                else:
                    p.model().set_callbacks(At(step, interrupt)).fit(p.X)
                    demand(path.exists() or step >= steps, f"no checkpoint after Ctrl-C in step {step}")
                resumed = p.model().fit(p.X)
            demand(same_bits(truth.parts, resumed.parts), f"resumed from step {step}, a fit gives other bits")
            demand(not path.exists(), f"resumed from step {step}, the fit left its checkpoint behind")


def objectives(model: Any) -> list[list[float]]:
    """The objective of every step, stage by stage."""
    return [[s.objective for s in trace] for trace in (model.trace_, *(stage.trace for stage in model.stages_))]
