"""The one training loop. No model loops over data, tests convergence, restarts or prints.

A fit is a short list of stages (`stage.py`). A stage is made of steps: passes over the rows (`passes.py`) or rounds on
data that are held (`rounds.py`). All starts of a fit go through a stage together. A stage has converged when a step
improves the objective per row by no more than its goal; what it hands on is where the next one starts. One closing
pass at the parts that the last stage hands on makes z, loss and parts agree.

The loop asks for passes (`Ask`) and somebody else makes them: so several fits can share the reading of each pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf, nan
from typing import Any

from unmix.engine import layout, tree
from unmix.engine.block import Block
from unmix.engine.callbacks import Interrupts
from unmix.engine.checkpoint import Checkpoint
from unmix.engine.config import Settings
from unmix.engine.draws import Draws, generator
from unmix.engine.layout import Run, Shape
from unmix.engine.passes import Passes, Steps, count
from unmix.engine.rounds import OnMoments, Rounds
from unmix.engine.rows import Rules, concatenate
from unmix.engine.runners import Ask
from unmix.engine.sample import check_columns, sample_of
from unmix.engine.stage import Stage, checked
from unmix.engine.start import Start
from unmix.engine.trace import Ended, Fit, Step

INTERRUPTED_AT_THE_END = (
    "interrupted in the last look at the rows: the parts were kept, but nothing about single rows, such as labels_; "
    "predict and transform give it"
)


class Incomplete(Exception):  # noqa: N818  nothing went wrong
    """Cells are missing, and then the model is fitted in other stages."""


def by_interrupt(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C, or was raised by what Ctrl-C broke off: a kernel, a file that was being written."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or by_interrupt(error.__cause__ or error.__context__)
    )


class Loop:
    """The state of a running fit, and what happens in it, in order."""

    def __init__(
        self, job: Any, work: Any, source: Any, rules: Rules, settings: Settings, samples: dict[Any, Block]
    ) -> None:
        self.model, self.work, self.source, self.w = job.model, work, source, job.w
        self.rules, self.seed, self.settings, self.watch = rules, job.seed, settings, job.watch
        self.first, self.last, self.beat, self.samples = job.first, job.last, job.beat, samples
        self.online, sizes = self.model.online(), self.model.sizes(self.shape)
        rows = settings.block_rows or sizes.block or layout.block_rows(self.shape)
        batch = self.online.batch if job.learnt is None else None
        self.batches = layout.batches(self.shape, min(rows, batch or rows), batch)
        self.runs = [r for runs in self.batches for r in runs]
        self.stages = checked(self.model)
        self.over_moments: Any = None
        self.rivals: list[Any] = []  # the parts of starts that were not the best
        self.stopped = ""  # why, in words, once somebody has stopped the fit
        self.began = time.perf_counter()
        self.begin()

    def begin(self) -> None:
        """No stage has begun; only the last one of them where first parts are given."""
        self.index = 0 if self.first is None else max(0, len(self.stages) - 1)
        self.number = self.batches_done = 0
        self.weight_seen = 0.0
        self.ended: list[list[Ended]] = []  # stages that have ended, for each start

    @property
    def shape(self) -> Shape:
        """The shape, as the model knows it."""
        shape: Shape = self.model.shape
        return shape

    @property
    def stage(self) -> Any:
        """The stage that runs."""
        return self.stages[self.index]

    @property
    def at_last_stage(self) -> bool:
        """Whether the stage that runs is the last."""
        return self.index >= len(self.stages) - 1

    def purpose(self, what: str) -> str:
        """What random numbers are for: something in this stage."""
        return f"{what} {self.index}" if self.index or what != "init" else what

    # -- the fit --

    def run(self) -> Steps[Fit | None]:
        """Start or resume, stage after stage, then one closing pass."""
        if not self.stages:
            return self.nothing_to_learn()
        checkpoint = Checkpoint.of(self)
        starts = checkpoint.resume(self)  # before anything is drawn: the seed of the fit is in the file
        while True:
            try:
                best = yield from self._stages(starts, checkpoint)
                break
            except Incomplete:
                starts = None
                for i in range(self.model.starts()):
                    self.work.forget(i)
                self.begin()
        if best is None:
            return None
        done = yield from self._close(best)
        if not self.stopped:  # who stopped a fit may want to go on with it
            checkpoint.remove()
        return done

    def _stages(self, starts: list[Start] | None, checkpoint: Checkpoint) -> Steps[Start | None]:
        """Every stage in turn; the best start, with the parts that the last one hands on, or None if it is beaten."""
        handed, starts = yield from self.earlier(self.model.starts(), starts, checkpoint)
        way, starts = yield from self._stage(handed, starts, checkpoint)
        best = self._best(starts)
        if best.objective >= self.beat < inf:
            return None
        self.rivals = [s.U for s in starts if s is not best]
        best.U = tree.settle(self.stage.hand(best.U, way.data), tree.DOUBLE)
        self.over_moments = way.data if self.stage.over == "moments" else None
        return best

    def earlier(
        self, n: int, starts: list[Start] | None, checkpoint: Checkpoint
    ) -> Steps[tuple[list[Any], list[Start] | None]]:
        """Every stage but the last: what they hand on for n starts, and the starts of the last that are known."""
        handed: list[Any] = [None] * n
        while not self.at_last_stage:
            way, ended = yield from self._stage(handed, starts, checkpoint)
            handed = [self.stage.hand(s.U, way.data) for s in ended]
            self.ended.append([Ended(self.stage.name, s.result, s.trace, s.message) for s in ended])
            if self.stage.stateful:
                for s in ended:
                    self.work.forget(s.index)
            self.index, self.number, starts = self.index + 1, 0, None
        return handed, starts

    def _stage(
        self, handed: list[Any], starts: list[Start] | None, checkpoint: Checkpoint
    ) -> Steps[tuple[Any, list[Start]]]:
        """One stage, from what was handed on or from starts that are under way."""
        way = self._way()
        yield from way.open()
        if starts is None:
            starts = self._starts(way, handed)
        else:
            checkpoint.check(self, starts, way.data)
        yield from self._steps(way, starts, checkpoint)
        for s in starts:
            way.end(s)
        return way, starts

    def _way(self) -> Any:
        """How the stage makes its steps."""
        if self.stage.over == "rows":
            return Passes(self)
        alike = self.stage.over == "moments" and type(self.stage).step is Stage.step
        return OnMoments(self) if alike else Rounds(self)

    def _starts(self, way: Any, handed: list[Any]) -> list[Start]:
        if self.first is not None:
            starts = [way.begin(i, U) for i, U in enumerate(self.first)]
            for s in starts:
                s.last = self.last
            return starts
        closed = self.stage.over == "whole" and self.stage.most == 0  # a closed form draws as it has always done
        data, out, what = way.first_data(), [], "solve" if closed else self.purpose("init")
        for i, before in enumerate(handed):
            U = self.stage.start(before, data, Draws(self.seed, what, i))
            out.append(way.begin(i, U))
        return out

    def _steps(self, way: Any, starts: list[Start], checkpoint: Checkpoint) -> Steps[None]:
        """Step after step until all starts have ended, somebody stops the fit, or there were enough."""
        most = self.model.max_iter if self.stage.most is None else self.stage.most
        live = [s for s in starts if s.result == "running"]
        self.watch.stage(self.stage.name, way.word, most)
        amid = ""  # which part of a step
        try:
            while live and self.number < most and not self.stopped:
                amid = "make"
                yield from way.make(live)
                amid = "judge"
                live = self._judge(way, live)
                amid = ""
                over = self.at_last_stage and not (live and self.number < most)  # then there is nothing to stop
                if self.watch.step(self.number, lambda: self._best(starts), self._snapshot(way, starts)) and not over:
                    self.stopped = f"stopped by a callback after {way.word} {self.number}{self._of_stage()}"
                checkpoint.save(self, starts, at_once=bool(self.stopped))
        except BaseException as error:
            if not by_interrupt(error):
                raise
            Interrupts.count += 1
            self.stopped = (
                f"interrupted after {way.word} {self.number}{self._of_stage()}: the best parts so far were kept"
            )
            if not amid or (amid == "make" and way.undo(live)):  # else starts are at different steps
                checkpoint.save(self, starts, at_once=True)
        for s in live:
            self._run_out(s, way.word)

    def _run_out(self, s: Start, word: str) -> None:
        """A start that would go on ends here: the fit was stopped, or there were steps enough."""
        steps = count(self.number, word)
        if self.stopped:
            s.result, s.message = "stopped", self.stopped
        elif self.stage.most is not None:
            s.result, s.message = "solved", f"solved in {steps if self.number else 'closed form'}"
        else:
            s.result, s.message = "max_iter", f"not converged after {steps}"
            if s.trace:
                gain = s.objective_before - s.trace[-1].objective
                s.unfinished = self.stage.unfinished(s.U, s.trace[0].objective, gain)

    def _judge(self, way: Any, live: list[Start]) -> list[Start]:
        """The starts that go on after a step; in the last stage those that lag too far behind are dropped."""
        for s in live:
            way.judge(s)
        if self.at_last_stage and (len(live) > 1 or self.beat < inf):
            best = min(self.beat, *(s.objective for s in live))
            for s in live:
                if s.result == "running" and s.is_hopeless(best):
                    s.result = "stopped"
                    s.message = f"dropped after {way.word} {self.number}: too far behind the best start"
                    self.work.forget(s.index)
        return [s for s in live if s.result == "running"]

    def _of_stage(self) -> str:
        """Which stage, where there are several."""
        return f" of the stage {self.stage.name!r}" if len(self.stages) > 1 else ""

    def _best(self, starts: list[Start]) -> Start:
        return min(starts, key=lambda s: s.objective)

    def _snapshot(self, way: Any, starts: list[Start]) -> Callable[[], Fit] | None:
        """The fit as it would be if it ended now, for who watches the last stage."""
        if not self.at_last_stage:
            return None

        def now() -> Fit:
            best = self._best(starts)
            return self._unclosed(self.stage.hand(way.final(best), way.data), best)

        return now

    def _unclosed(self, U: Any, best: Start) -> Fit:
        """A fit without the closing pass: what the last step told, and nothing of single rows."""
        stats = best.stats if len(self.batches) == 1 else tree.scale(best.stats, self.shape.weight)
        last = best.objective if best.objective < inf else nan
        fit = self.fit_of(U, best, stats, last * self.shape.weight, None, last)
        return fit._replace(trace=[*best.trace])  # the trace of a running fit grows

    def fit_of(self, U: Any, best: Start, stats: Any, loss: float, z: Any = None, objective: float = nan) -> Fit:
        """What a start has found."""
        earlier, more = [stage[best.index] for stage in self.ended], best.unfinished
        loss *= self.shape.unit  # in the user's weights, as what is made of it
        told = best.trace, best.result, best.message
        return Fit(U, z, loss, objective, self.shape, *told, stats, earlier, more, self.rivals)

    def nothing_to_learn(self) -> Fit:
        """The parts follow from the parameters alone: the data are not read."""
        best = Start(0, self.model.start(None, None, generator(self.seed, "init")), result="solved")
        best.message = "solved without the data"
        return self.fit_of(tree.settle(best.U), best, None, nan)

    # -- what steps ask for --

    @property
    def sample(self) -> Any:
        """Rows for `start`: all distinct rows of small data, a draw by global row index of large data.

        For moments, which need but an origin, equal rows are not sought. None for a stage that wants no rows.
        """
        wanted = self.stage.sizes(self.shape).sample
        if wanted == 0:
            return None
        m = min(self.shape.n, wanted or layout.sample_rows(self.shape))
        merged = self.stage.over != "moments"
        key = m, merged, id(self.w), self.rules
        if key not in self.samples:
            self.samples[key] = sample_of(self.source, self.w, self.rules, m, merged)
        self.look(self.samples[key].observed is not None)
        return self.samples[key]

    def look(self, missing: bool) -> None:
        """Whoever sees rows says whether cells are missing: the stages may then be others, and the fit begins anew."""
        if not missing or not self.shape.complete:
            return
        before = [(s.name, s.over) for s in self.stages]
        self.expect_missing()
        if [(s.name, s.over) for s in self.stages] != before:
            raise Incomplete

    def expect_missing(self) -> None:
        """The model knows from now on that cells are missing."""
        self.model = self.model.at(self.shape._replace(complete=False))
        self.stages = checked(self.model)

    def weight_of(self, runs: list[Run]) -> float:
        """How many rows some runs count for."""
        start, stop = runs[0].start, runs[-1].stop
        return float(stop - start) if self.w is None else float(self.w[start:stop].sum())

    def record(self, s: Start, objective: float, began: float) -> None:
        """A step of a start, that began then, has been made."""
        now = time.perf_counter()
        s.trace.append(Step(len(s.trace) + 1, objective, now - self.began, self.shape.n / max(now - began, 1e-9)))

    # -- the closing pass --

    def _close(self, best: Start) -> Steps[Fit]:
        """One more local pass at the final parts, so that z, loss and parts agree."""
        model = self.model
        wanted = model.collect is True or (model.collect == "memory" and self.source.in_memory)
        z = None
        if self.over_moments is not None:
            out = model.local(best.U, Block(self.over_moments, closing=True))
            stats, loss = out.stats, float(out.loss)
        else:
            # what the last pass left for each row is of use only to the stage that left it
            keep = wanted or (model.stateful and self.stage is model)
            try:
                totals, seen = yield Ask(model, {best.index: best.U}, self.runs, keep, closing=True)
            except KeyboardInterrupt:
                if not best.trace and self.stage.over == "rows":  # nothing was learnt
                    raise
                Interrupts.count += 1
                self.stopped = INTERRUPTED_AT_THE_END
                best.result, best.message = "stopped", self.stopped
                return self._unclosed(best.U, best)
            check_columns(seen, self.rules)
            stats, loss = totals[best.index]
            if wanted:
                self.work.commit(best.index)
                z = concatenate(list(self.work.blocks(best.index, self.runs)))
        objective = (loss + model.penalty(best.U)) / self.shape.weight
        return self.fit_of(best.U, best, stats, loss, z, objective)
