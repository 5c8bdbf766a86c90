"""Stages of independent component analysis before its passes, or in their place.

Whitening    over moments, no step: the frame in which all directions have variance 1
Sampled      over a sample: the same steps as over all rows, on few of them, where rows are many
Images       over nothing: the same steps on principal axes, whose columns take the place of rows
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.engine.described import Described, Scoped
from unmix.engine.layout import Shape
from unmix.engine.moments import block_rows
from unmix.engine.sample import centre_of
from unmix.engine.stage import Sizes, Stage
from unmix.linear._axes import Axes
from unmix.linear._unmixing import Parts, Stats, nothing_known, objective, seen
from unmix.maths.arrays import Array
from unmix.maths.moments import Moments
from unmix.maths.spectra import leading

ORIGIN_ROWS = 1024  # that tell where to measure moments from
ROUNDING = 2.0  # times d times the precision: a share of the largest variance that is nothing


class Frame(NamedTuple):
    """white rows = whitening (x − mean); the variance of all columns; directions that were wanted and have none."""

    mean: Annotated[np.ndarray, Array("d")]
    whitening: Annotated[np.ndarray, Array("k d")]
    total: Annotated[np.ndarray, Array(low=0.0)]
    lost: Annotated[int, Array(kind="i", low=0)]


class Whitening(Stage):
    """The leading principal axes, each divided by its standard deviation."""

    name, over, most = "whitening", "moments", 0

    def __init__(self, k: int, shape: Shape) -> None:
        self.k, self.shape = k, shape

    def sizes(self, shape: Shape) -> Sizes:
        """The sample only gives the moments' origin."""
        return Sizes(block_rows(shape), ORIGIN_ROWS)

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Frame:
        """Where moments are measured from."""
        shift = centre_of(data)
        return Frame(shift, np.zeros((0, len(shift))), np.array(0.0), 0)

    def hand(self, U: Frame, data: Moments) -> Frame:
        """The axes of all rows."""
        centre, scatter = data.centred()
        covariance = scatter / data.n
        values, V = leading(covariance, self.k)
        rounding = ROUNDING * len(centre) * float(np.finfo(self.shape.dtype).eps)
        rank = int(np.count_nonzero(values > rounding * values[0]))
        lost = min(self.k, self.shape.n - 1) - rank
        if rank == 0:  # no column varies: any direction, in which all sources are 0
            rank, values = 1, np.ones(1)
        whitening = V[:rank] / np.sqrt(values[:rank])[:, None]
        return Frame(U.mean + centre, whitening, np.array(covariance.trace()), max(lost, 0))

    def described(self, U: Any, data: Any) -> Described:
        """A frame."""
        return Described(Frame, Moments)


class Trial(NamedTuple):
    """Parts, and what the held rows say of them."""

    parts: Parts
    stats: Stats


class Sampled(Stage):
    """Rounds on a sample; a bold step is looked at before it is taken."""

    name, over = "sample", "sample"

    def __init__(self, model: Any, rows: int) -> None:
        self.model, self.rows = model, rows

    def sizes(self, shape: Shape) -> Sizes:
        """So many rows."""
        return Sizes(None, self.rows)

    def start(self, before: Any, data: Any, rng: np.random.Generator) -> Any:
        """As the model starts."""
        return self._look(self.model.start(before, data, rng), data)

    def _look(self, U: Parts, rows: Block) -> Trial:
        return Trial(U, self.model.look(U, rows).stats)

    def step(self, U: Any, data: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """The bold step, if it is one forward, else the safe one."""
        return self._step(U, data), objective(U.stats)

    def _step(self, U: Trial, rows: Block) -> Trial:
        ahead = self.model.leap(U.parts, U.stats)
        if ahead is not None:
            new = self._look(ahead, rows)
            if objective(new.stats) < objective(U.stats):
                return new
        return self._look(self.model.update(U.parts, U.stats), rows)

    def goal(self, U: Any, first: float) -> bool:
        """As the model says."""
        return bool(U.parts.done)

    def hand(self, U: Any, data: Any) -> Parts:
        """The parts, which are not yet those of all rows."""
        parts: Parts = U.parts
        return parts._replace(done=False, scratch=nothing_known(len(parts.rotation)))

    def described(self, U: Any, data: Any) -> Described:
        """Parts and statistics."""
        return Described(Trial)


class Pixels(NamedTuple):
    """Axes, a row for each column of X, white over the columns; how rows of X are taken apart; the trial."""

    rows: Annotated[np.ndarray, Array("d k")]
    mean: Annotated[np.ndarray, Array("d")]
    undo: Annotated[np.ndarray, Array("k d")]
    total: Annotated[np.ndarray, Array(low=0.0)]
    trial: Annotated[Any, "trial"]


class Images(Sampled):
    """S = W M V: independent over the columns, V the principal axes and M what makes them white over the columns.

    x − mean = a S then gives a = (x − mean) (W M⁻¹ V)ᵀ: M⁻¹V is what the other architecture calls whitening.
    """

    name, over = "images", "nothing"

    def __init__(self, model: Any) -> None:
        super().__init__(model, 0)

    def start(self, before: Axes, data: Any, rng: np.random.Generator) -> Pixels:
        """White axes, and a first rotation of them."""
        varies = before.variances > ROUNDING * float(np.finfo(self.model.shape.dtype).eps) * before.total
        V = before.components[varies].astype(np.float64)
        if not len(V):
            raise ValueError("no column of X varies: there is nothing to unmix")
        centred = V - V.mean(axis=1, keepdims=True)
        values, P = np.linalg.eigh(centred @ centred.T / V.shape[1])
        if not values[0] > ROUNDING * np.finfo(float).eps * values[-1]:
            raise ValueError(
                f"n_components={len(V)} images cannot be independent over {V.shape[1]} columns: ask for fewer"
            )
        root = np.sqrt(values)
        rows = np.ascontiguousarray(((P / root) @ P.T @ centred).T)
        k = len(V)
        lost = min(self.model.most_components(self.model.shape), self.model.shape.n - 1) - k
        U = self.model.start(Frame(np.zeros(k), np.eye(k), np.array(float(k)), max(lost, 0)), None, rng)
        trial = self._look(U, Block(rows))
        return Pixels(rows, before.mean, (P * root) @ P.T @ V, before.total, trial)

    def step(self, U: Pixels, data: Any, rng: np.random.Generator) -> tuple[Pixels, float]:
        """A step on the axes."""
        return U._replace(trial=self._step(U.trial, Block(U.rows))), objective(U.trial.stats)

    def goal(self, U: Pixels, first: float) -> bool:
        """As the model says."""
        return bool(U.trial.parts.done)

    def hand(self, U: Pixels, data: Any) -> Parts:
        """What takes rows of X apart."""
        known = U.trial.parts if U.trial.parts.active < 0 else seen(*U.trial)  # nobody has yet looked at the last one
        parts = known._replace(mean=U.mean, whitening=U.undo, total=U.total)
        return self.model.settled(parts)  # type: ignore[no-any-return]

    def described(self, U: Any, data: Any) -> Described:
        """Axes, parts and statistics; those of the trial are of k columns, as the axes are."""
        return Described(Pixels, Any, Any, {"trial": Scoped(Trial, {"d": "k"})})
