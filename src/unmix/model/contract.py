"""What a model says about itself. A model is a stage over rows (`engine/stage.py`) that also knows its users' names.

The equations are `start`, `local` and `update`; `publish` gives their results the names that users know. Every other
method has a default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.engine.stage import Online, Stage
from unmix.engine.trace import Fit


class Contract(Stage):
    """The declarations and hooks of a model.

    Parts hold parameters. Their field `scratch` holds what only speeds passes up and can be dropped without
    changing the answer, a field `events` what happened on the way: resets, refills, floors.
    """

    sparse: ClassVar[bool] = False  # takes CSR rows
    missing: ClassVar[bool] = False  # takes rows with cells that were not observed
    nonnegative: ClassVar[bool] = False  # needs X >= 0
    absent: ClassVar[str] = "zero"  # how it reads entries that a sparse X does not hold: "zero" or "unobserved"
    columns_as: ClassVar[str] = "standardised"  # how it takes the columns of a `Table`: see `table/recipe.py`
    empty_columns: ClassVar[bool] = False  # takes columns without an observed cell
    collect: bool | str = False  # `publish` needs the z of every row: always, or "memory": of rows in memory
    power: ClassVar[int] = 2  # of cells, whose sums must stay in the range of X's precision; 0: the model sees to it
    double: ClassVar[bool] = False  # it adds them up in float64, whatever the precision of X
    degrees: ClassVar[dict[str, int | None]] = {}  # parameter, attribute or method → d: c X gives c^d of it; else 0
    weighed_against: ClassVar[str] = ""  # what the sum of the weights must outweigh, in words, where there is such
    tied: ClassVar[tuple[str, ...]] = ()  # parameters that, given, suit one number of parts or these rows alone
    exempt: ClassVar[dict[str, str]] = {}  # law → why this model is exempt from it
    exempt_checks: ClassVar[dict[str, str]] = {}  # check of scikit-learn → why this model fails it

    # parameters that the engine reads, for models that do not have them
    max_iter: int = 1
    n_init: Any = 1
    tol: Any = 0.0
    random_state: Any = None
    verbose: int = 0  # above 0: a line is printed
    verbose_interval: int = 1  # for every so many steps
    warm_start: bool = False  # a fit goes on from the last one

    given: Any = None  # in a working copy: what its caller gave beside the parameters, as what a fit begins with

    _shape: Shape  # of the data, in a working copy and after a fit

    @property
    def shape(self) -> Shape:
        """The shape of the data that this working copy is for."""
        return self._shape

    def at(self, shape: Shape) -> Any:
        """A working copy for data of this shape: the parameters, nothing fitted. It alone travels to the workers."""
        copy = type(self)(**self.get_params(deep=False))  # type: ignore[attr-defined]
        vars(copy).update(_shape=shape, given=self.given, collect=self.collect)
        return copy

    # ---------------------------------------------------------------- the fit

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where the hyper-parameters do not suit the shape of the data."""

    def stages(self, shape: Shape) -> list[Stage]:
        """What a fit consists of, in order; empty where `start` alone is enough and the data need not be read."""
        return [self]

    def starts(self) -> int:
        """How many starts a fit makes."""
        return int(self.n_init)

    def goal(self, U: Any, first: float) -> float | bool:
        """By default `tol`, in nats per row, as suits a log-likelihood."""
        return float(self.tol)

    def online(self) -> Online:
        """How it learns from batches."""
        return Online()

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Any:
        """First parts from a fit of one part fewer, if this model is to have one more, or of one part more.

        None, the default: a neighbour gives no start.
        """
        return None

    def go_on(self, U: Any) -> Any:
        """First parts of a fit that starts where the last one ended (`warm_start`), from the parts that it found.

        None: those do not suit the parameters of this one, so it starts anew.
        """
        return U

    def notes(self, U: Any) -> list[str]:
        """What the user should know about these parts: components that were reset, variances at their floor."""
        return []

    def rows_of(self, X: Any, reset: bool) -> Any:
        """X as something with rows, where a model takes other things, too: a table of ratings, one in each line.

        `reset` says that a fit begins, of which it may keep what rows and columns are called; else X is new to it.
        """
        return X

    # ---------------------------------------------------------------- what comes out

    def publish(self, fit: Fit) -> None:
        """Set the fitted attributes; `fit.z` is None after an online step."""
        raise NotImplementedError

    def encode(self, U: Any, b: Block) -> Any:
        """Rows of `transform`."""
        return self.local(U, b).z

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """Rows of `inverse_transform`."""
        raise NotImplementedError

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[Any, Any, Callable[[Any], None]]:
        """A small planted problem: a model, X, and a function that checks that the fitted model found the parts."""
        raise NotImplementedError
