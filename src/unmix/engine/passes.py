"""Steps of a stage over rows: a pass in one or more batches, its statistics, the next parts.

After each batch b of weight |b|, with statistics counted per row,

    stats ← (1 − ρ) stats + ρ stats_b / |b|        U ← update(U, n stats)

which for one batch and ρ = 1 is the ordinary step. The first batch is blended with the statistics that the first parts
stand for, if the model knows them (`Online.first`).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from unmix.engine import tree
from unmix.engine.accelerate import Accelerator
from unmix.engine.layout import Run
from unmix.engine.rows import Seen
from unmix.engine.runners import Ask
from unmix.engine.sample import check_columns
from unmix.engine.start import Start, gain_of, is_flag

T = TypeVar("T")
Steps = Generator[Ask, tuple[dict[int, Any], Seen], T]  # asks for passes, gets (totals, what the rows showed), gives T


class Passes:
    """The steps of a stage over rows, for all starts of a fit at once."""

    word = "pass"
    data: Any = None

    def __init__(self, loop: Any) -> None:
        self.loop, self.batches = loop, loop.batches if loop.at_last_stage else [loop.runs]

    def open(self) -> Steps[None]:
        """Nothing is held."""
        return
        yield

    def first_data(self) -> Any:
        """What `start` sees: a sample of the rows."""
        return self.loop.sample

    def begin(self, index: int, U: Any) -> Start:
        """A start with these first parts."""
        fast = self.loop.settings.acceleration and self.loop.stage.accelerate and len(self.batches) == 1
        return Start(index, tree.settle(U, tree.DOUBLE), accelerator=Accelerator() if fast else None)

    def make(self, live: list[Start]) -> Steps[None]:
        """A pass; leaves each start's objective in its trace and its statistics beside it."""
        loop, losses, began = self.loop, dict.fromkeys((s.index for s in live), 0.0), time.perf_counter()
        for runs in self.batches:
            totals = yield from self.sweep(live, runs)
            weight = loop.shape.weight if len(self.batches) == 1 else loop.weight_of(runs)
            if weight == 0:
                continue
            for s in live:
                stats, loss = totals[s.index]
                losses[s.index] += loss
                if len(self.batches) == 1:
                    s.stats = stats
                else:
                    rho = loop.online.rate(s.U, loop.batches_done, weight, loop.weight_seen + weight)
                    s.stats = blended(loop.online, s.stats, stats, rho, s.U, weight, loop.shape.weight)
                    loop.work.commit(s.index)
                    U = loop.stage.update(s.U, tree.scale(s.stats, loop.shape.weight))
                    s.U = tree.settle(U, tree.DOUBLE)
            loop.batches_done, loop.weight_seen = loop.batches_done + 1, loop.weight_seen + weight
        loop.number += 1
        for s in live:
            loop.record(s, (losses[s.index] + loop.stage.penalty(s.U)) / loop.shape.weight, began)

    def sweep(self, live: list[Start], runs: list[Run]) -> Steps[dict[int, Any]]:
        """(stats, loss) of each start over some runs."""
        loop = self.loop
        totals, seen = yield Ask(loop.stage, {s.index: loop.stage.sent(s.U) for s in live}, runs, loop.stage.stateful)
        if loop.number == 0:
            if len(self.batches) == 1:
                check_columns(seen, loop.rules)
            loop.look(seen.missing)
        return totals

    def undo(self, live: list[Start]) -> bool:
        """Whether a pass that was broken off has left nothing behind: no new z, no parts of some batches."""
        as_before = all(len(s.trace) == self.loop.number for s in live)
        return as_before and not self.loop.stage.stateful and len(self.batches) == 1

    # -- after the pass --

    def judge(self, s: Start) -> None:
        """Accept the pass or not, make the next parts, test convergence."""
        loop, stage = self.loop, self.loop.stage
        now, one = s.trace[-1].objective, len(self.batches) == 1
        made = s.stats if one else (s.stats, s.U)  # batches have already made parts of them
        if not isfinite(now) or not tree.finite(made):
            if s.plain is not None:
                self._reject(s)
            else:
                self._spoilt(s, first_bad(made) if isfinite(now) else "the objective")
            return
        improvement = s.objective_before - now
        if s.plain is not None and improvement < 0:
            self._reject(s)
            return
        s.good = s.U
        first, plain_step, s.plain = s.trace[0].objective, s.plain is None, None
        if one:  # else each batch has made its own step
            loop.work.commit(s.index)
            if not self._advance(s, improvement, plain_step, first):
                return
        if s.has_converged(stage.goal(s.U, first), improvement, plain_step):
            s.result, s.message = "converged", f"converged after {count(loop.number, self.word)}"

    def _advance(self, s: Start, improvement: float, plain_step: bool, first: float) -> bool:
        """The next parts, extrapolated where that is allowed; False when they are not finite.

        Where they are, the plain step is made when somebody wants it: mostly the next pass confirms the other one.
        """
        stage, U = self.loop.stage, None
        if plain_step or improvement > gain_of(stage.goal(s.U, first)):
            U = self._leap(s)
            if U is None and s.accelerator is not None and s.made_of is not None:
                U = self._extrapolate(s, s.accelerator)
        if U is not None:
            done = stage.goal(U[0], first)
            s.plain = None if is_flag(done) and done else (s.U, s.stats)
            s.U, s.made_of = U
            return True
        return self._take_plain(s, (s.U, s.stats))

    def _take_plain(self, s: Start, of: tuple[Any, Any]) -> bool:
        """Go on from the step that parts and statistics give without more ado; False when it is not finite."""
        s.plain, s.made_of = None, of[1]
        U = self._plain(of)
        if not tree.finite(U, like=of[0]):
            self._spoilt(s, first_bad(U))
            return False
        s.U = U
        return True

    def _plain(self, of: tuple[Any, Any]) -> Any:
        return tree.settle(self.loop.stage.update(*of), tree.DOUBLE, like=of[0])

    def _leap(self, s: Start) -> tuple[Any, Any] | None:
        """Parts that the stage itself would rather go on from, if the next pass confirms them."""
        if not self.loop.settings.acceleration:
            return None
        U = self.loop.stage.leap(s.U, s.stats)
        if U is None or not tree.finite(U, like=s.U):
            return None
        return tree.settle(U, tree.DOUBLE, like=s.U), s.stats

    def _extrapolate(self, s: Start, accelerator: Accelerator) -> tuple[Any, Any] | None:
        """Parts made of extrapolated statistics, if there are any and the model can make parts of them."""
        vector = accelerator.propose(flat(s.made_of), flat(s.stats))
        if vector is None:
            return None
        stats = unflat(vector, s.stats)
        try:
            U = tree.settle(self.loop.stage.update(s.U, stats), tree.DOUBLE)
        except np.linalg.LinAlgError:
            accelerator.reject()
            return None
        if not tree.finite(U):
            accelerator.reject()
            return None
        return U, stats

    def _reject(self, s: Start) -> None:
        """The extrapolation, or the leap, made the objective worse: take the plain step after all."""
        s.trace[-1] = s.trace[-1]._replace(accepted=False)
        if s.accelerator is not None:
            s.accelerator.reject()
        self.loop.work.drop(s.index)
        of, s.stats = s.plain, None
        self._take_plain(s, of)

    def _spoilt(self, s: Start, where: str) -> None:
        s.spoilt(where, f"{self.word} {self.loop.number}")
        self.loop.work.forget(s.index)

    def final(self, s: Start) -> Any:
        """The parts that a start would end with: not an extrapolation that no pass has confirmed."""
        if s.plain is None:
            return s.U
        U = self._plain(s.plain)
        return U if tree.finite(U, like=s.plain[0]) else s.plain[0]

    def end(self, s: Start) -> None:
        """A start has ended."""
        s.U, s.plain = self.final(s), None


def blended(online: Any, before: Any, stats: Any, rho: float, U: Any, weight: float, total: float) -> Any:
    """Statistics per row after a batch of some weight, `total` being the weight that the parts stand for."""
    new = tree.scale(stats, 1.0 / weight)
    if before is None and online.first is not None:
        before = tree.scale(online.first(U, total), 1.0 / total)
    return new if before is None else tree.blend(before, new, rho)


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


def count(steps: int, word: str) -> str:
    """The number of steps in words."""
    return f"1 {word}" if steps == 1 else f"{steps} {word}{'es' if word == 'pass' else 's'}"
