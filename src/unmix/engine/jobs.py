"""Fits to be made, one or several to the same rows: the loops ask for passes, and here they are made together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from unmix.engine.block import Block
from unmix.engine.callbacks import Watch
from unmix.engine.config import Settings
from unmix.engine.learn import Learnt, learn
from unmix.engine.loop import Loop, by_interrupt
from unmix.engine.rows import Rules
from unmix.engine.runners import Ask, one_blas_thread, runner


@dataclass
class Job:
    """A fit to be made: a model that knows its shape, weights of the rows, a seed, who watches, first parts if any.

    `last` is the objective of the step that made those first parts, where the fit goes on from another. A fit that will
    not get below `beat` is given up; None comes back in its place. With `learnt`, what online steps have learnt so far,
    the fit is one more such step.
    """

    model: Any
    w: np.ndarray | None
    seed: int
    watch: Watch = field(default_factory=Watch)
    first: list[Any] | None = None
    last: float = inf
    beat: float = inf
    learnt: Learnt | None = None


def fit_all(jobs: list[Job], source: Any, settings: Settings) -> list[Any]:
    """Fit several models to one source; each pass is read once for all of them whose blocks are the same."""
    works: list[Any] = []
    samples: dict[Any, Block] = {}
    asks: dict[int, tuple[Any, Ask]] = {}
    loops, done = [], {}

    def go_on(i: int, f: Callable[..., Any], *answer: Any) -> None:
        try:
            asks[i] = works[i], f(*answer)
        except StopIteration as stop:
            done[i] = stop.value
        except SystemError as error:  # what a kernel makes of Ctrl-C
            if by_interrupt(error):
                raise KeyboardInterrupt from error
            raise

    with ExitStack() as closing:
        closing.enter_context(one_blas_thread())
        for i, job in enumerate(jobs):
            rules = Rules.of(job.model, source)
            works.append(runner(source, job.w, rules, settings))
            closing.callback(works[i].close)
            loop = Loop(job, works[i], source, rules, settings, samples)
            loops.append(loop.run() if job.learnt is None else learn(loop, job.learnt))
            go_on(i, next, loops[i])
        while asks:
            first = asks[min(asks)][1]
            now = [i for i, (_, ask) in asks.items() if ask.runs == first.runs]
            together = [asks.pop(i) for i in now]
            try:
                answers = works[now[0]].sweeps(together)
            except BaseException as error:
                if not by_interrupt(error):
                    raise
                waiting = [*now, *asks]
                asks.clear()
                for i in waiting:
                    go_on(i, loops[i].throw, KeyboardInterrupt())
            else:
                for i, answer in zip(now, answers, strict=True):
                    go_on(i, loops[i].send, answer)
    return [done[i] for i in range(len(jobs))]
