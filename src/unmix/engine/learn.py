"""One more online step with a batch of rows: what `partial_fit` does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmix.engine import tree
from unmix.engine.block import Block
from unmix.engine.checkpoint import Checkpoint
from unmix.engine.described import LONG
from unmix.engine.draws import generator
from unmix.engine.loop import Incomplete, Loop
from unmix.engine.passes import Steps, blended
from unmix.engine.runners import Ask
from unmix.engine.sample import check_columns
from unmix.engine.start import Start
from unmix.engine.trace import Fit, Step


@dataclass
class Learnt:
    """What online steps have learnt: parts and statistics per row, steps taken, weight of the rows seen.

    `rate` is the ρ of the next step, where the user says.
    """

    U: Any = None
    stats: Any = None
    steps: int = 0
    seen: float = 0.0
    rate: float | None = None


def learn(loop: Loop, learnt: Learnt) -> Steps[Fit]:
    """One step of the model with a batch of rows; the first runs the earlier stages on it."""
    if not loop.stages:
        done = loop.nothing_to_learn()
        learnt.U = done.U
        return done
    if learnt.U is None:
        before, data = yield from before_learning(loop)
        U = loop.model.start(before, data, generator(loop.seed, loop.purpose("init")))
        learnt.U = tree.settle(U, tree.DOUBLE)
    totals, seen = yield Ask(loop.model, {0: learnt.U}, loop.runs, False)
    with suppress(Incomplete):  # the model's own step takes rows that miss cells as well
        loop.look(seen.missing)
    if learnt.steps == 0:
        check_columns(seen, loop.rules)
    stats, loss = totals[0]
    if not (np.isfinite(loss) and tree.finite(stats)):
        raise ValueError("the batch gave statistics that are not finite; the model was left as it was")
    weight, step, online = loop.shape.weight, learnt.steps, loop.online
    learnt.seen += weight
    total = online.total or learnt.seen
    rho = online.rate(learnt.U, step, weight, learnt.seen) if learnt.rate is None else learnt.rate
    learnt.stats = blended(online, learnt.stats, stats, rho, learnt.U, weight, total)
    whole = tree.scale(learnt.stats, total)
    try:
        U = tree.settle(loop.model.update(learnt.U, whole), tree.DOUBLE)
    except (np.linalg.LinAlgError, ArithmeticError) as e:
        if step == 0:
            raise
        # a file may hold such
        raise ValueError(f"no rows have the statistics that this model goes on from ({e}): fit it again") from e
    if not tree.finite(U):
        raise ValueError("the batch gave parts that are not finite; the model was left as it was")
    learnt.U, learnt.steps = U, step + 1
    loss *= learnt.seen / weight  # as if all rows so far were like these
    objective = (loss + loop.model.penalty(U)) / learnt.seen
    best = Start(0, U, trace=[Step(step + 1, objective, 0.0, 0.0)], message="online")
    so_far = loop.shape._replace(n=round(min(learnt.seen, LONG - 1)), weight=learnt.seen)
    return loop.fit_of(U, best, whole, loss, None, objective)._replace(shape=so_far)


def before_learning(loop: Loop) -> Steps[tuple[Any, Block]]:
    """What the earlier stages hand on, of the first batch, and a sample of it."""
    while True:
        try:
            (before,), _ = yield from loop.earlier(1, None, Checkpoint(None, {}, 0.0))
            if loop.stopped:
                raise KeyboardInterrupt(loop.stopped)
            return before, loop.sample
        except Incomplete:
            loop.begin()
