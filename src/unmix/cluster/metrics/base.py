"""What k-means asks of a metric.

A metric maps rows to where clusters are sought (`enter`), finds the nearest centres there and their statistics
(`nearest`), gives the best centres for these (`best`), and maps centres back (`leave`). What it needs besides the
centres is its *frame*, a tree of arrays that U carries.

*V*, which statistics hold for each cluster, is the sum over its rows of the metric's cost: a distance to the power of
`power`. The loss is `share` · V.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from unmix.cluster._parts import Events, Parts, unmoved
from unmix.engine.block import Block
from unmix.maths.arrays import Array


class Rows(NamedTuple):
    """z: the cluster of each row, and its bounds."""

    label: Annotated[np.ndarray, Array("m", "i", 0, "k-1")]
    upper: Annotated[np.ndarray, Array("m", "x")]  # distance to the own centre − path
    lower: Annotated[np.ndarray, Array("m", "x")]  # at most the distance to any other centre + drift


class Metric(ABC):
    """A distance of rows and centres, and the centres that are best by it. Holds no state."""

    name: ClassVar[str]
    share: ClassVar[float] = 1.0  # of V in the loss
    power: ClassVar[int] = 2  # of the distance that bounds are about, in V
    sparse: ClassVar[bool] = True  # whether it takes CSR rows
    kinds: ClassVar[tuple[Any, Any]]  # of its frame and of its statistics

    def check(self, sparse: bool) -> None:
        """Refuse CSR rows where it cannot take them."""
        if sparse and not self.sparse:
            raise TypeError(f"metric={self.name!r} needs dense data. Use '.toarray()' to convert it to dense.")

    def names(self, d: int) -> dict[str, Any]:
        """What a description of parts calls by name: the kind of the frame, the columns where clusters are sought."""
        return {"frame": self.kinds[0], "e": d}

    # -- where clusters are sought --

    def frame(self, sample: Block, params: dict[str, Any]) -> Any:
        """What `enter` needs, fixed before the first pass; refuses `metric_params` that it does not know."""
        if params:
            raise ValueError(f"metric_params={sorted(params)}: metric={self.name!r} has none, leave them out")
        return ()

    def framed(self, frame: Any, centers: np.ndarray) -> Any:
        """The frame for centres that no pass has seen."""
        return frame

    def reframe(self, U: Parts, stats: Any, centers: np.ndarray) -> Any:
        """The frame of the next pass."""
        return U.frame

    def sought(self, frame: Any) -> float:
        """An upper bound on what a better frame alone, with the same labels, could still gain per row."""
        return 0.0

    def enter(self, frame: Any, b: Block) -> Block:
        """The rows where clusters are sought; refuses rows that cannot be mapped there."""
        return b

    def filled(self, frame: Any, b: Block) -> Block:
        """The same for first centres to be drawn from."""
        return self.enter(frame, b)

    def enter_centers(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres that a user gave, where clusters are sought."""
        return self.project(centers)

    def leave(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres as a user wants them."""
        return centers

    def project(self, centers: np.ndarray) -> np.ndarray:
        """The nearest point that can be a centre."""
        return centers

    def at(self, U: Parts, centers: np.ndarray) -> Parts:
        """Parts with other centres, which no pass has seen."""
        frame = self.framed(U.frame, centers)
        return U._replace(centers=centers, frame=frame, scratch=unmoved(len(centers)), events=Events())

    # -- distances --

    @abstractmethod
    def pairs(self, x: Any, observed: Any, centers: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
        """Costs of all rows and centres; `own` is ‖x_i‖² where that is known."""

    @abstractmethod
    def costs(self, U: Parts, b: Block) -> np.ndarray:
        """The same for a block that has entered, with care for rounding."""

    @abstractmethod
    def shown(self, costs: np.ndarray) -> np.ndarray:
        """Costs as `transform` gives them; may overwrite its argument."""

    @abstractmethod
    def cost_of(self, shown: float) -> float:
        """The cost that belongs to a distance as `transform` gives it."""

    @abstractmethod
    def length(self, moves: np.ndarray) -> np.ndarray:
        """How far each centre moved."""

    @abstractmethod
    def half_apart(self, centers: np.ndarray) -> np.ndarray:
        """½ min_{j≠k} of the distance between centres, or a little less."""

    # -- a pass --

    @abstractmethod
    def nearest(self, U: Parts, b: Block) -> tuple[Rows, Any]:
        """Nearest centres of a block that has entered, by bounds and distances; sums over the rows of each."""

    @abstractmethod
    def sums(self, U: Parts, b: Block, z: Rows) -> Any:
        """Sums over the rows of each cluster, whatever the labels are; sets the upper bounds."""

    @abstractmethod
    def best(self, U: Parts, stats: Any) -> np.ndarray:
        """The best centres for these rows."""

    @abstractmethod
    def left(self, U: Parts, stats: Any, centers: np.ndarray) -> np.ndarray:
        """What is left of V in each cluster with the best centres."""

    @abstractmethod
    def beside(
        self, center: np.ndarray, k: int, stats: Any, left: float, turn: int, rng: np.random.Generator, share: float
    ) -> np.ndarray:
        """A centre a small way from that of cluster k, so that the next pass cuts the cluster in two.

        `left` is what is left of V there, `share` the part of the cluster's width to go, `turn` how often it was tried.
        """

    @abstractmethod
    def variations(self, U: Parts, stats: Any) -> tuple[float, float | None]:
        """What is left of the loss within clusters, and what it is with one cluster; None where that is unknown."""


def rows_of(b: Block) -> Rows:
    """What the last pass left, as a copy, or room for it."""
    n = b.x.shape[0]
    return Rows(*(v.copy() for v in b.z)) if b.z is not None else Rows(np.zeros(n, np.int32), np.empty(n), np.empty(n))


def rounded(a: np.ndarray, eps: float) -> np.ndarray:
    """Numbers that the data's precision holds."""
    return a.astype(np.float32).astype(np.float64) if eps > 1e-10 else a
