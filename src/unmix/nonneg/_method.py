"""Parts and statistics of a non-negative factorisation, and what a loss with its solver must know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.maths.arrays import POSITIVE, Array

FIRST_STRETCH = 0.4  # how far HALS overshoots at first, in units of the way it came; then by the pace of the fit


class Scratch(NamedTuple):
    """What speeds up the next pass. Without it the parts mean the same."""

    gram: Annotated[np.ndarray, Array("k k")]  # (k, k) U Uᵀ
    stretch: float  # how far HALS overshoots, in units of the step it took


class Events(NamedTuple):
    """How the fit is getting on."""

    kkt: float  # how far from stationary the parts were that these were made from; −1 for first parts


class Parts(NamedTuple):
    """U, transposed: the k loads of a feature lie side by side."""

    loads: Annotated[np.ndarray, Array("d k", low=0.0)]  # (d, k)
    # what the data are divided by, a power of four; z and the loads are divided by its square root
    scale: Annotated[float, Array(low=POSITIVE)]
    scratch: Scratch
    events: Events


class Stats(NamedTuple):
    """The sums of `unmix.nonneg.nmf`; B and P are transposed, as the loads are."""

    n: float
    error: float  # Σ w D
    A: Annotated[np.ndarray, Array("k k")]
    m: Annotated[np.ndarray, Array("k")]  # Σ w z
    B: Annotated[np.ndarray, Array("d k")]
    F: Annotated[np.ndarray, Array("whole")]  # A (Kullback–Leibler: m) of the blocks without holes
    P: Annotated[np.ndarray, Array("d k")] | float  # of the blocks with holes; the number 0 where there are none


class Effort(NamedTuple):
    """How long z is worked on: for at most this many rounds, or until a round moves it little."""

    rounds: int
    settled: float  # what counts as little: see the solver


def make_parts(loads: np.ndarray, scale: float = 1.0, kkt: float = -1.0, stretch: float = FIRST_STRETCH) -> Parts:
    """Parts with their Gram matrix; first parts unless their `kkt` is given."""
    return Parts(loads, scale, Scratch(loads.T @ loads, stretch), Events(kkt))


class Method(ABC):
    """A loss with a solver. It has no state of a fit.

    Penalties l1 (absolute) and l2 (squared) are in units of the scaled data.

    Attributes
    ----------
    first, cold, warm, exact : Effort
        For z with first parts (solved from a mere guess, z would leave some of them unused); for the first z of a row;
        for one that the last pass left; for the rows of `transform`. By default those of multiplicative steps.
    zeros_stay : bool
        Whether a load that is zero can never grow again.
    levels : tuple of float
        Smallest and largest mean of the data whose loss is within the range of float64.
    """

    first: ClassVar[Effort] = Effort(1, 0.0)
    cold: ClassVar[Effort] = Effort(20, 0.0)
    warm: ClassVar[Effort] = Effort(3, 0.0)
    exact: ClassVar[Effort] = Effort(2_000, 1e-7)
    zeros_stay: ClassVar[bool] = True
    levels: tuple[float, float] = 0.0, np.inf

    @abstractmethod
    def cost(self, scale: float) -> float:
        """What one unit of the loss of data divided by `scale` is in the user's units."""

    @abstractmethod
    def solve(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> np.ndarray:
        """Work on z from where the last pass left it."""

    @abstractmethod
    def local(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, Stats]:
        """Solve z and sum up its statistics, among them the loss without penalties."""

    @abstractmethod
    def update(self, U: Parts, s: Stats, l1: float, l2: float) -> Parts:
        """Next parts, no worse for the z that the statistics were made of."""

    @abstractmethod
    def accounted(self, U: Parts, s: Stats) -> np.ndarray:
        """How much of the data each part accounts for."""
