"""A fit is a short list of stages; this is what one of them says, and the engine runs it.

There are two kinds, because there are two loops. *Passes* go over the rows: every block solves its own z given U and
hands back statistics, their sum gives the next U. *Rounds* are steps on data that are held while they last:

    over        what is held                                            for
    "rows"      nothing: passes                                         nearly all models
    "moments"   n, Σ x, Σ x xᵀ, which one pass collects                 spectra, factors, one Gaussian
    "sample"    rows drawn by their global index                        a short k-means before a mixture, a warm start
    "whole"     all rows, within the memory budget                      medoids, kernels, closed forms of a matrix
    "nothing"   None                                                    problems that a user states without data

What one stage hands on is where the next starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unmix.engine import tree
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape

OVER = ("rows", "moments", "sample", "whole", "nothing")


class Sizes(NamedTuple):
    """Rows of a block and of the sample that `start` sees, as functions of the shape alone; None is the engine's.

    A sample of 0 rows is none: `start` gets None for it.

    Blocks are cut once for all stages of a fit, as the model says; each stage has a sample of its own size.
    """

    block: int | None = None
    sample: int | None = None


def falling(U: Any, step: int, weight: float, seen: float) -> float:
    """ρ = (step + 1)^−0.7, so that what early, poor parts left is forgotten."""
    return float((step + 1) ** -0.7)


class Online(NamedTuple):
    """How a model learns from batches of rows: stats ← (1 − ρ) stats + ρ stats_b, per row.

    Attributes
    ----------
    rate : callable
        ρ of a step, given the parts, its number from 0, the weight of the batch, and the weight seen so far with it.
    batch : int or None
        Rows of a batch within `fit`; None for whole passes.
    first : callable or None
        Statistics of so many rows that first parts stand for: `first(U, weight)`. None: the first batch replaces them.
    total : float or None
        How many rows the statistics stand for in `partial_fit`; None for those seen so far.
    """

    rate: Callable[[Any, int, float, float], float] = falling
    batch: int | None = None
    first: Callable[[Any, float], Any] | None = None
    total: float | None = None


class Stage:
    """One stage of a fit. It holds hyper-parameters and the shape: small to send, and nobody writes to it.

    Attributes
    ----------
    name : str
        What callbacks, traces and checkpoints call it.
    over : {"rows", "moments", "sample", "whole", "nothing"}
        What its steps see.
    most : int or None
        The most steps; ending there is the plan, and the result "solved". None: `max_iter` of the model.
    may_rise : str
        Why the objective of rounds may rise, in words, where it may: the best parts are then kept, and a fit that finds
        none better ends.
    stateful : bool
        Whether `local` reads `block.z`, what it left for these rows in the last pass.
    accelerate : bool
        Whether statistics may be extrapolated.
    """

    name: str = "passes"
    over: str = "rows"
    most: int | None = None
    may_rise: str = ""
    stateful: ClassVar[bool] = False
    accelerate: ClassVar[bool] = False

    def open(self, data: Any, rng: np.random.Generator) -> Any:
        """What rounds hold of their data (a `Block`, `Moments` or None); all starts share it, no file keeps it."""
        return data

    def start(self, before: Any, data: Any, rng: np.random.Generator) -> Any:
        """First parts, from what the stage before handed on (None in the first) and from data.

        `data` is a sample of the rows for stages over rows and moments, else what `open` holds.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `start`, which gives first parts")

    def local(self, U: Any, b: Block) -> Local:
        """Solve the z of a block given the parts, and give its statistics and its loss (0 where it has none). Pure."""
        raise NotImplementedError(f"{type(self).__name__} has no `local`, which a pass over rows needs")

    def sent(self, U: Any) -> Any:
        """What of the parts `local` needs in a pass, where that is less than all: only this goes to the workers."""
        return U

    def update(self, U: Any, stats: Any) -> Any:
        """Next parts from the total statistics. Pure.

        numpy.linalg.LinAlgError says that no data have such statistics: an extrapolation went too far.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `update`, which a pass over rows needs")

    def leap(self, U: Any, stats: Any) -> Any:
        """Parts that may be farther ahead than those of `update`: kept if the next pass finds the objective no worse.

        None, the default: there are none. Where they are worse, the fit goes on from what `update` makes. Those that
        `goal` calls done are the last, as they are. Pure.
        """
        return None

    def combine(self, total: Any, stats: Any) -> Any:
        """Statistics of rows and of those after them; may write into the first. Associative, by default their sum."""
        return tree.add_into(total, stats)

    def step(self, U: Any, data: Any, rng: np.random.Generator) -> tuple[Any, float | None]:
        """A round: the next parts, and the objective per row at U (None: the stage ends after `most`). Pure.

        A stage over moments may do without: then `local` sees the moments as one block, and `update` what it gives.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `step`, which rounds over {self.over!r} need")

    def penalty(self, U: Any) -> float:
        """Terms of the objective of passes that are not a sum over rows."""
        return 0.0

    def goal(self, U: Any, first: float) -> float | bool:
        """The gain of the objective per row that is worth another step; True: done; False: not yet.

        `U` are the parts that a step has made, `first` the first objective.
        """
        return 0.0

    def unfinished(self, U: Any, first: float, gain: float) -> bool:
        """Whether a stage that ends at `max_iter` should have gone on: by default where a goal was set.

        `gain` is that of its last step, inf where there was but one.
        """
        goal = self.goal(U, first)
        return not goal if isinstance(goal, (bool, np.bool_)) else goal > 0

    def hand(self, U: Any, data: Any) -> Any:
        """What the next stage starts from; of the last stage the model's parts.

        `data` is what rounds hold, None for a stage over rows. U may be first parts, where a fit is stopped early.
        """
        return U

    def described(self, U: Any, data: Any) -> Described:
        """What parts, statistics and z from a file must look like (`described.py`); the default trusts them.

        Of `U`, which was read, nothing but its type may be relied on. `data` is what rounds hold, else None. A
        ValueError says that the file does not belong to these parameters or data.
        """
        return Described()

    def sizes(self, shape: Shape) -> Sizes:
        """How large blocks and samples should be, where the stage knows better than the engine."""
        return Sizes()


def checked(model: Any) -> list[Stage]:
    """The stages of a model that knows its shape; refuses anything but a list of stages with names of their own."""
    stages = model.stages(model.shape)
    name = type(model).__name__
    if not isinstance(stages, list) or not all(isinstance(s, Stage) for s in stages):
        raise TypeError(f"`stages` of {name} gave {stages!r}: give a list of Stage objects")
    for s in stages:
        if s.over not in OVER:
            raise ValueError(f"the stage {s.name!r} of {name} is over {s.over!r}: choose from {', '.join(OVER)}")
    names = [s.name for s in stages]
    if len(set(names)) < len(names):
        raise ValueError(f"the stages of {name} are called {names}: give each a `name` of its own")
    return stages
