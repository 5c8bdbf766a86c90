"""The one training loop. No model loops over data, tests convergence, restarts or prints.

A pass: every block solves its own z given U and hands back additive statistics; their sum gives the next U. A pass may
come in several batches; after each of them

    stats ← (1 − ρ) stats + ρ (n / |b|) stats_b        U ← update(U, stats)

which for one batch and ρ = 1 is the ordinary fit. The first batch is blended with the statistics that the first parts
stand for, if the model knows them (`made_of`). A fit has converged when a pass improves the objective per row by no
more than tol units, where a unit is a nat for likelihoods and the first objective for losses.

The loop asks for passes (`Ask`) and somebody else makes them: so several fits can share the reading of each pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, TypeVar

import numpy as np

from unmix.engine import layout, tree
from unmix.engine.accelerate import Accelerator
from unmix.engine.block import Block
from unmix.engine.checkpoint import Checkpoint
from unmix.engine.config import Settings
from unmix.engine.layout import Run, Shape
from unmix.engine.moments import Moments
from unmix.engine.rows import Rules, Seen, concatenate, inspect
from unmix.engine.runners import Ask, one_blas_thread, runner
from unmix.engine.sample import check_columns, distinct, generator, mean, origin, whole_block
from unmix.engine.trace import Fit, Step

T = TypeVar("T")
Steps = Generator[Ask, tuple[dict[int, Any], Seen], T]  # asks for passes, gets (totals, what the rows showed), gives T
PATIENCE = 100.0  # a start is hopeless when a hundred times its last improvement would not bring it to the best one


@dataclass
class Start:
    """One of the starts of a fit, and how far it is."""

    index: int
    U: Any
    stats: Any = None
    trace: list[Step] = field(default_factory=list)
    result: str = "max_iter"
    message: str = ""
    made_of: Any = None  # statistics from which U was made
    plain: Any = None  # where U is an extrapolation: the parts that the plain step gives, and their statistics
    good: Any = None  # the parts of the last pass whose objective was finite
    accelerator: Accelerator | None = None

    @property
    def objective(self) -> float:
        """The objective of the last pass that counts."""
        return next((s.objective for s in reversed(self.trace) if s.accepted and isfinite(s.objective)), inf)


def fit(
    model: Any,
    source: Any,
    w: np.ndarray | None,
    shape: Shape,
    *,
    seed: int,
    settings: Settings,
    on_pass: Callable[[int, Any], bool],
    collect: bool,
) -> Fit:
    """Fit a model to a source: every start shares each pass over the rows; the best comes back."""
    return fit_all([Job(model, w, shape, seed, on_pass, collect)], source, settings)[0]


@dataclass
class Job:
    """A fit to be made: a model, weights of the rows, a seed, who hears of each pass, first parts if there are any.

    A fit that will not get below `beat` is given up; None comes back in its place.
    """

    model: Any
    w: np.ndarray | None
    shape: Shape
    seed: int
    on_pass: Callable[[int, Any], bool] = lambda number, best: False
    collect: bool = False
    first: list[Any] | None = None
    beat: float = inf


def fit_all(jobs: list[Job], source: Any, settings: Settings) -> list[Any]:
    """Fit several models to one source; each pass is read once for all of them whose blocks are the same."""
    names = source.names and tuple(source.names)
    works: list[Any] = []
    samples: dict[Any, Block] = {}
    asks: dict[int, tuple[Any, Ask]] = {}
    loops, done = [], {}

    def go_on(i: int, f: Callable[..., Any], *answer: Any) -> None:
        try:
            asks[i] = works[i], f(*answer)
        except StopIteration as stop:
            done[i] = stop.value

    with ExitStack() as closing:
        closing.enter_context(one_blas_thread)
        for i, job in enumerate(jobs):
            rules = Rules(job.model.missing, job.model.nonnegative, type(job.model).__name__, names)
            works.append(runner(source, job.w, rules, settings))
            closing.callback(works[i].close)
            loops.append(Loop(job, works[i], source, rules, settings, samples).run())
            go_on(i, next, loops[i])
        while asks:
            first = asks[min(asks)][1]
            now = [i for i, (_, ask) in asks.items() if ask.runs == first.runs]
            together = [asks.pop(i) for i in now]
            try:
                answers = works[now[0]].sweeps(together)
            except KeyboardInterrupt as stop:
                for i in [*now, *asks]:
                    go_on(i, loops[i].throw, stop)
            else:
                for i, answer in zip(now, answers, strict=True):
                    go_on(i, loops[i].send, answer)
    return [done[i] for i in range(len(jobs))]


class Loop:
    """The state of a running fit, and its steps in the order in which they happen."""

    def __init__(
        self, job: Job, work: Any, source: Any, rules: Rules, settings: Settings, samples: dict[Any, Block]
    ) -> None:
        model, shape = job.model, job.shape
        self.model, self.work, self.source, self.w, self.shape = model, work, source, job.w, shape
        self.rules, self.seed, self.settings, self.on_pass = rules, job.seed, settings, job.on_pass
        self.collect, self.first, self.beat, self.samples = job.collect, job.first, job.beat, samples
        self.online = model.online()
        rows = settings.block_rows or model.block_rows(shape) or layout.block_rows(shape)
        batch = self.online[0] if self.online else None
        self.batches = layout.batches(shape, min(rows, batch or rows), batch)
        self.runs = [r for runs in self.batches for r in runs]
        self.moments: Moments | None = None
        self.began = time.perf_counter()
        self.number = 0
        self.steps = 0

    # -- the fit --

    def run(self) -> Steps[Fit | None]:
        """Start or resume, pass after pass, then one closing pass so that z, loss and parts agree."""
        model, checkpoint = self.model, Checkpoint.of(self)
        starts = checkpoint.resume(self)  # before anything is drawn: the seed of the fit is in the file
        route = yield from self._route()
        if route == "direct":
            U = model.solve(self.source.whole(self.settings.budget), self.w, generator(self.seed, "solve"))
            best = Start(0, U, result="converged", message="solved in closed form")
            return (yield from self._close(best))
        starts = starts or self._starts()
        live = [s for s in starts if s.result == "max_iter"]
        try:
            while live and self.number < model.passes(route):
                yield from self._pass(live)
                live = self._judge(live)
                if self.on_pass(self.number, lambda: self._best(starts)):
                    for s in live:
                        s.result, s.message = "stopped", f"stopped by a callback after pass {self.number}"
                    break
                checkpoint.save(self, starts)
        except KeyboardInterrupt:
            for s in live:
                s.result, s.message = (
                    "stopped",
                    f"interrupted after pass {self.number}: the best parts so far were kept",
                )
        best = self._best(starts)
        if best.objective >= self.beat < inf:
            return None
        if best.plain is not None:  # the parts are an extrapolation that no pass has confirmed
            best.U, best.plain = best.plain[0], None
        if best.result == "max_iter":
            best.message = f"not converged after {count(self.number)}"
        done = yield from self._close(best)
        if best.result != "stopped":  # who stopped a fit may want to go on with it
            checkpoint.remove()
        return done

    def _route(self) -> Steps[str]:
        """How the data are used; a pass that collects their moments may show that cells are missing."""
        route: str = self.model.route(self.shape)
        if route == "moments":
            centre = mean(self.sample).astype(self.shape.dtype).astype(np.float64)
            gatherer = Gatherer(origin(self.sample, centre))
            totals, seen = yield Ask(gatherer, {0: (gatherer.shift,)}, self.runs, False)
            check_columns(seen, self.rules)
            if seen.missing:
                self.shape = self.model._shape = self.shape._replace(complete=False)
                return str(self.model.route(self.shape))
            self.moments = Moments(*totals[0][0]).about(centre - gatherer.shift)
        elif route == "direct":
            missing = inspect(self.source.whole(self.settings.budget), 0, self.rules)
            if missing:
                self.shape = self.model._shape = self.shape._replace(complete=False)
                return str(self.model.route(self.shape))
        return route

    def _starts(self) -> list[Start]:
        starts = []
        for i in range(self.model.restarts() if self.first is None else len(self.first)):
            rng = generator(self.seed, "init", i)
            U = self.model.start(self.sample, rng) if self.first is None else self.first[i]
            U = tree.settle(self.model.seek(U, self._visit, rng) if self.first is None else U)
            fast = self.settings.acceleration and self.model.accelerate and len(self.batches) == 1
            starts.append(Start(i, U, accelerator=Accelerator() if fast else None))
        return starts

    def _visit(self, method: str, U: Any) -> Iterator[Any]:
        """A method of the model on each block, in order: a pass of its own, for the start."""
        return self.work.apply(self.model, tree.settle(U), method, self.runs)

    @property
    def sample(self) -> Block:
        """Rows for `start`: all distinct rows of small data, a draw by global row index of large data."""
        m = min(self.shape.n, self.model.sample_rows(self.shape))
        key = m, id(self.w), self.seed
        if key not in self.samples:
            self.samples[key] = self._sample(m)
        return self.samples[key]

    def _sample(self, m: int) -> Block:
        n = self.shape.n
        if m == n:
            b = whole_block(self.source.read(0, n), self.w, self.rules)
            if b.observed is not None:
                counts = b.observed if b.w is None else b.observed[b.w > 0]
                check_columns(Seen(True, np.asarray(counts.any(axis=0))), self.rules)
            return distinct(b)
        rows = np.arange(n) if self.w is None else np.flatnonzero(self.w > 0)
        index = np.sort(generator(self.seed, "sample").choice(rows, min(m, len(rows)), replace=False))
        return whole_block(self.source.take(index), None if self.w is None else self.w[index], self.rules)

    # -- one pass --

    def _pass(self, live: list[Start]) -> Steps[None]:
        """A pass over the rows, in one or more batches; leaves each start's loss in its trace and updates its parts."""
        begin = time.perf_counter()
        losses = dict.fromkeys((s.index for s in live), 0.0)
        for runs in self.batches:
            totals = yield from self._sweep(live, runs)
            weight = self.shape.weight if len(self.batches) == 1 else self._weight(runs)
            if weight == 0:
                continue
            rho = self.online[1](self.steps) if self.online else 1.0
            self.steps += 1
            for s in live:
                stats, loss = totals[s.index]
                losses[s.index] += loss
                if len(self.batches) > 1:
                    stats = tree.scale(stats, self.shape.weight / weight)
                    before = self.model.made_of(s.U, self.shape.weight) if s.stats is None else s.stats
                    s.stats = stats if before is None else tree.blend(before, stats, rho)
                    self.work.commit(s.index)
                    s.U = tree.settle(self.model.update(s.U, s.stats))
                else:
                    s.stats = stats
        self.number += 1
        now = time.perf_counter()
        for s in live:
            objective = (losses[s.index] + self.model.penalty(s.U)) / self.shape.weight
            speed = self.shape.n / max(now - begin, 1e-9)
            s.trace.append(Step(self.number, objective, now - self.began, speed))

    def _sweep(self, live: list[Start], runs: list[Run]) -> Steps[dict[int, Any]]:
        """(stats, loss) of each start over some runs, or over the moments that stand for them."""
        if self.moments is not None:
            block = Block(self.moments)
            outs = {s.index: self.model.local(s.U, block) for s in live}
            return {i: (out.stats, float(out.loss)) for i, out in outs.items()}
        states = {s.index: s.U for s in live}
        totals, seen = yield Ask(self.model, states, runs, self.model.stateful)
        if self.number == 0 and len(self.batches) == 1:
            check_columns(seen, self.rules)
        return totals

    def _weight(self, runs: list[Run]) -> float:
        start, stop = runs[0].start, runs[-1].stop
        return float(stop - start) if self.w is None else float(self.w[start:stop].sum())

    # -- after the pass --

    def _judge(self, live: list[Start]) -> list[Start]:
        """Accept the pass or not, test convergence, make the next parts; the starts that go on."""
        for s in live:
            self._step(s)
        best = min(self.beat, *(s.objective for s in live))
        for s in live:
            if s.result == "max_iter" and s.objective > best and self._hopeless(s, best):
                s.result, s.message = "stopped", f"dropped after pass {self.number}: too far behind the best start"
                self.work.forget(s.index)
        return [s for s in live if s.result == "max_iter"]

    def _step(self, s: Start) -> None:
        """From the statistics of a pass to the next parts of one start."""
        now, before = s.trace[-1].objective, self._before(s)
        made = s.stats if len(self.batches) == 1 else (s.stats, s.U)  # batches have already made parts of them
        if not isfinite(now) or not tree.finite(made):
            if s.plain is not None:
                self._reject(s)
                return
            self._nonfinite(s, first_bad(made) if isfinite(now) else "the objective")
            return
        if s.plain is not None and now > before:
            self._reject(s)
            return
        improvement = before - now
        s.good = s.U
        unit = self.model.unit(s.U, s.trace[0].objective)
        tol = self.model.tolerance()
        plain_step, s.plain = s.plain is None, None
        if len(self.batches) == 1:  # else each batch has made its own step
            self.work.commit(s.index)
            if not self._advance(s, extrapolate=improvement > tol * unit or plain_step):
                return
        settled = self.model.settled(s.U)
        if settled is None:  # an extrapolation may gain little by chance: only a plain step tells
            small = max(tol * unit, 1e-10 * abs(now))  # a reset of a part may make it worse: that is no convergence
            settled = len(s.trace) > 1 and plain_step and -small <= improvement <= tol * unit
        if settled:
            s.result, s.message = "converged", f"converged after {count(self.number)}"

    def _advance(self, s: Start, extrapolate: bool) -> bool:
        """The next parts, extrapolated where that is allowed; False when they are not finite."""
        plain = tree.settle(self.model.update(s.U, s.stats))
        if not tree.finite(plain):
            self._nonfinite(s, first_bad(plain))
            return False
        U = None
        if s.accelerator is not None and s.made_of is not None and extrapolate:
            U = self._extrapolate(s)
        s.U, s.made_of, s.plain = (plain, s.stats, None) if U is None else (*U, (plain, s.stats))
        return True

    def _extrapolate(self, s: Start) -> tuple[Any, Any] | None:
        """Parts made of extrapolated statistics, if there are any and the model can make parts of them."""
        assert s.accelerator is not None
        vector = s.accelerator.propose(flat(s.made_of), flat(s.stats))
        if vector is None:
            return None
        stats = unflat(vector, s.stats)
        try:
            U = tree.settle(self.model.update(s.U, stats))
        except np.linalg.LinAlgError:
            s.accelerator.reject()
            return None
        if not tree.finite(U):
            s.accelerator.reject()
            return None
        return U, stats

    def _reject(self, s: Start) -> None:
        """The extrapolation made the objective worse: take the plain step after all."""
        assert s.accelerator is not None
        s.trace[-1] = s.trace[-1]._replace(accepted=False)
        s.accelerator.reject()
        self.work.drop(s.index)
        (s.U, s.made_of), s.plain, s.stats = s.plain, None, None

    def _nonfinite(self, s: Start, where: str) -> None:
        """Keep the last good parts and say where it happened."""
        s.result = "nonfinite"
        s.message = f"{where} was not finite in pass {self.number}; the last good parts were kept"
        self.work.forget(s.index)
        if s.good is not None:
            s.U = s.good

    def _before(self, s: Start) -> float:
        """The objective of the pass before the last that counts."""
        return next((t.objective for t in reversed(s.trace[:-1]) if t.accepted), inf)

    def _hopeless(self, s: Start, best: float) -> bool:
        """Whether a hundred times the last improvement would not reach the best start."""
        accepted = [t.objective for t in s.trace if t.accepted]
        return len(accepted) > 2 and accepted[-1] - PATIENCE * (accepted[-2] - accepted[-1]) > best

    def _best(self, starts: list[Start]) -> Start:
        return min(starts, key=lambda s: s.objective)

    # -- the closing pass --

    def _close(self, best: Start) -> Steps[Fit]:
        """One more local pass at the final parts, so that z, loss and parts agree."""
        model = self.model
        wanted = self.collect or model.collect is True or (model.collect == "memory" and self.source.in_memory)
        z = None
        if self.moments is not None:
            out = model.local(best.U, Block(self.moments, closing=True))
            stats, loss = out.stats, float(out.loss)
        else:
            keep = wanted or model.stateful
            totals, seen = yield Ask(model, {best.index: best.U}, self.runs, keep, closing=True)
            check_columns(seen, self.rules)
            stats, loss = totals[best.index]
            if wanted:
                self.work.commit(best.index)
                z = concatenate([model.keep(z) for z in self.work.blocks(best.index, self.runs)])
        objective = (loss + model.penalty(best.U)) / self.shape.weight
        trace = [*best.trace]
        return Fit(
            best.U, z, loss, objective, self.shape.weight, self.shape.n, self.shape.dtype, trace, best.result,
            best.message, stats,
        )  # fmt: skip


class Gatherer:
    """The moments of complete rows as a model of their own: its statistics are the moments."""

    accelerate = False

    def __init__(self, shift: np.ndarray) -> None:
        self.shift = shift

    def local(self, U: Any, b: Block) -> Any:
        """Moments about the fixed origin."""
        from unmix.engine.block import Local
        from unmix.engine.moments import moments

        d = len(self.shift)
        if b.observed is not None:  # the engine will see it in the first look and take another route
            return Local(None, Moments(0.0, np.zeros(d), np.zeros((d, d))), 0.0)
        return Local(None, moments(b, U[0]), 0.0)


def flat(a: Any) -> np.ndarray:
    """The tree's numbers in one vector."""
    return np.concatenate([np.ravel(v) for v in tree.leaves(a)])


def unflat(vector: np.ndarray, like: Any) -> Any:
    """The vector in the shape of the tree."""
    at = 0

    def take(v: Any) -> Any:
        nonlocal at
        size = int(np.size(v))
        piece = vector[at : at + size]
        at += size
        return piece.reshape(np.shape(v)) if np.ndim(v) else float(piece[0])

    return tree.map(take, like)


def first_bad(a: Any, name: str = "a part") -> str:
    """The name of the first field that holds a number that is not finite."""
    if isinstance(a, tuple):
        names = getattr(a, "_fields", [name] * len(a))
        return next((first_bad(v, n) for n, v in zip(names, a, strict=True) if not tree.finite(v)), name)
    return name


def count(passes: int) -> str:
    """The number of passes in words."""
    return "1 pass" if passes == 1 else f"{passes} passes"
