"""One of the starts of a fit, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from math import inf, isfinite
from typing import Any

import numpy as np

from unmix.engine.accelerate import Accelerator
from unmix.engine.trace import Step

PATIENCE = 100.0  # a start is hopeless when a hundred times its last improvement would not bring it to the best one


def is_flag(goal: Any) -> bool:
    """Whether a goal says "done" or "not yet", rather than what gain is worth another step."""
    return isinstance(goal, (bool, np.bool_))


def gain_of(goal: Any) -> float:
    """The gain that is worth another step; any, where the goal says "done" or "not yet"."""
    return 0.0 if is_flag(goal) else float(goal)


@dataclass
class Start:
    """Its parts, what they are made of, and the trace of the stage that it is in."""

    index: int
    U: Any
    stats: Any = None
    trace: list[Step] = field(default_factory=list)
    last: float = inf  # the objective before its first step, where it goes on from another fit
    result: str = "running"
    message: str = ""
    made_of: Any = None  # statistics from which U was made
    plain: Any = None  # where U is an extrapolation: the parts and statistics of which the plain step is made
    next: Any = None  # the parts that a round made, until it is judged
    told: bool = True  # the last step had an objective
    good: Any = None  # the parts of the last step whose objective was finite; where the objective may rise, the best
    unfinished: bool = False  # it ended although more steps were worth it
    must_go_on: bool = False  # the stage itself says that it is not done
    accelerator: Accelerator | None = None

    @property
    def objective(self) -> float:
        """The objective of the last step that counts."""
        return next((s.objective for s in reversed(self.trace) if s.accepted and isfinite(s.objective)), inf)

    @property
    def objective_before(self) -> float:
        """The objective of the step before the last that counts."""
        return next((t.objective for t in islice(reversed(self.trace), 1, None) if t.accepted), self.last)

    def has_converged(self, goal: float | bool, improvement: float, plain: bool = True) -> bool:
        """Whether the last step gained too little; only a plain step tells, an extrapolation may gain little by chance.

        A reset of a part may make the objective worse: that is not convergence, but rounding may, too.
        """
        if is_flag(goal):
            self.must_go_on = not goal
            return bool(goal)
        self.must_go_on = False
        rounding = max(goal, 1e-10 * abs(self.trace[-1].objective))
        return plain and isfinite(improvement) and -rounding <= improvement <= goal

    def is_hopeless(self, best: float) -> bool:
        """Whether a hundred times the last improvement would not reach the best start."""
        accepted = [t.objective for t in self.trace if t.accepted]
        if self.must_go_on or len(accepted) < 3 or not accepted[-1] > best:
            return False
        return accepted[-1] - PATIENCE * (accepted[-2] - accepted[-1]) > best

    def spoilt(self, where: str, step: str) -> None:
        """Something is not finite: keep the last good parts and say where it happened."""
        self.result = "nonfinite"
        self.message = f"{where} was not finite in {step}; the last good parts were kept"
        if self.good is not None:
            self.U = self.good
