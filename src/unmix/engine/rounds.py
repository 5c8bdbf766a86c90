"""Steps of a stage on data that are held: moments, a sample, all rows, or nothing."""

from __future__ import annotations

import time
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from unmix.engine import tree
from unmix.engine.block import Block, Local
from unmix.engine.draws import Draws
from unmix.engine.layout import Run
from unmix.engine.moments import moments
from unmix.engine.passes import Passes, Steps, count, first_bad
from unmix.engine.runners import Ask
from unmix.engine.sample import centre_of, check_columns, check_sample, origin, whole_block
from unmix.engine.stage import Stage
from unmix.engine.start import Start
from unmix.maths.moments import Moments

ROUNDING = 1e-12  # of the objective, by which it may rise for no reason
IDLE = 10  # steps without a better objective after which a stage whose objective may rise ends


class Rounds:
    """The steps of a stage on held data, for one start after the other."""

    word = "round"

    def __init__(self, loop: Any) -> None:
        self.loop, self.data = loop, None

    def open(self) -> Steps[None]:
        """Hold what the stage works on."""
        loop, over = self.loop, self.loop.stage.over
        data: Any = None
        if over == "moments":
            data = yield from moments_of(loop)
        elif over == "sample":
            data = loop.sample
        elif over == "whole":
            data = whole_block(loop.source.whole(loop.settings.budget), loop.w, loop.rules)
            check_sample(data, loop.rules)
            loop.look(data.observed is not None)
        self.data = loop.stage.open(data, Draws(loop.seed, loop.purpose("open")))

    def first_data(self) -> Any:
        """What `start` sees: a sample of the rows beside moments, else what is held."""
        return self.loop.sample if self.loop.stage.over == "moments" else self.data

    def begin(self, index: int, U: Any) -> Start:
        """A start with these first parts."""
        return Start(index, tree.settle(U))

    def make(self, live: list[Start]) -> Steps[None]:
        """A round of each start."""
        loop = self.loop
        for s in live:
            began = time.perf_counter()
            rng = Draws(loop.seed, loop.purpose("step"), s.index, loop.number + 1)
            s.next, objective = loop.stage.step(s.U, self.data, rng)
            s.told = objective is not None
            loop.record(s, nan if objective is None else objective, began)
        loop.number += 1
        return
        yield

    def undo(self, live: list[Start]) -> bool:
        """Take back a round that was broken off, so that all starts are at the same step."""
        for s in live:
            del s.trace[self.loop.number :]
            s.next = None
        return True

    def judge(self, s: Start) -> None:
        """Take the next parts, test convergence."""
        loop, stage, now = self.loop, self.loop.stage, s.trace[-1].objective
        U, s.next = tree.settle(s.next), None
        bad = s.told and not isfinite(now)
        if bad or not tree.finite(U):
            s.spoilt("the objective" if bad else first_bad(U), f"round {loop.number}")
            return
        improvement = s.objective_before - now if s.told else inf
        if stage.may_rise and improvement < -ROUNDING * abs(now):
            s.trace[-1] = s.trace[-1]._replace(accepted=False)
        else:
            s.good = s.U
        s.U = U
        if s.has_converged(stage.goal(U, s.trace[0].objective), improvement) and s.trace[-1].accepted:
            s.result, s.message = "converged", f"converged after {count(loop.number, self.word)}"
        elif stage.may_rise and loop.number - 1 - int(np.argmin([t.objective for t in s.trace])) >= IDLE:
            s.result = "stopped"
            s.message = (
                f"found nothing better in {IDLE} rounds; the best of {count(loop.number, self.word)} was kept: "
                f"{stage.may_rise}"
            )

    def final(self, s: Start) -> Any:
        """The parts that a start would end with: where the objective has risen, the best."""
        return s.U if not s.trace or s.trace[-1].accepted else s.good

    def end(self, s: Start) -> None:
        """A start has ended. Where the objective may rise, its last parts are looked at once more.

        Not where it was stopped: who stops a fit does not wait for another round, and the best that was seen is kept.
        """
        stage, loop = self.loop.stage, self.loop
        if stage.may_rise and s.result != "converged" and s.trace and s.trace[-1].accepted:
            now = inf
            if s.result != "stopped":
                _, now = stage.step(s.U, self.data, Draws(loop.seed, loop.purpose("end"), s.index))
            s.U = s.U if now <= s.objective else s.good
        s.U = self.final(s)


class OnMoments(Passes):
    """The same steps as over rows, `local` and `update`, on the moments that stand for all rows."""

    word = "round"

    def __init__(self, loop: Any) -> None:
        self.loop, self.batches = loop, [loop.runs]

    def open(self) -> Steps[None]:
        """Hold the moments."""
        loop = self.loop
        self.data = loop.stage.open((yield from moments_of(loop)), Draws(loop.seed, loop.purpose("open")))

    def sweep(self, live: list[Start], runs: list[Run]) -> Steps[dict[int, Any]]:
        """(stats, loss) of each start; nothing is read."""
        outs = {s.index: self.loop.stage.local(s.U, Block(self.data)) for s in live}
        return {i: (out.stats, float(out.loss)) for i, out in outs.items()}
        yield


def moments_of(loop: Any) -> Steps[Moments]:
    """One pass collects the moments, about an origin near the rows, and moves them to the mean of the sample."""
    sample = loop.sample
    refuse_missing(loop, sample.observed is not None)
    centre = centre_of(sample)
    shift = origin(sample, centre, loop.shape)
    totals, seen = yield Ask(Gather(), {0: (shift,)}, loop.runs, False)
    check_columns(seen, loop.rules)
    loop.look(seen.missing)
    refuse_missing(loop, seen.missing)
    found = Moments(*totals[0][0])
    return found if shift is centre else found.about(centre - shift)


def refuse_missing(loop: Any, missing: bool) -> None:
    """Rows that miss cells have no moments, and the model named the same stages for them."""
    if missing:
        raise ValueError(
            f"the stage {loop.stage.name!r} of {loop.rules.owner} works on moments, which rows with missing cells do "
            "not have: let `stages(shape)` give others where `shape.complete` is False"
        )


class Gather(Stage):
    """The moments of complete rows: its statistics are the moments."""

    def local(self, U: Any, b: Block) -> Local:
        """Moments about the fixed origin."""
        (shift,), d = U, b.x.shape[1]
        if b.observed is not None:  # the engine sees it, and asks for other stages
            return Local(None, Moments(0.0, np.zeros(d), np.zeros((d, d))), 0.0)
        return Local(None, moments(b, shift), 0.0)
