"""The whitening of all rows, where `start` saw some of them: a stage before the first pass of "mahalanobis"."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from unmix.cluster._parts import Parts
from unmix.cluster.metrics import METRICS
from unmix.cluster.metrics.base import rounded
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes, Stage
from unmix.maths.arrays import Array
from unmix.maths.gaussian import moments, whitening


class Whiten(Stage):
    """One pass: moments of the rows, from which the frame is made anew; the centres stay where they are.

    local, stats   Σw, Σw x and Σw x xᵀ about the origin of the sample's frame
    update         the frame; centres, origin and scale as it sees them
    """

    name, most = "covariance", 1

    def __init__(self, model: Any) -> None:
        self.model, self.metric = model, METRICS[model.metric]

    def sizes(self, shape: Shape) -> Sizes:
        """The sample of k-means."""
        return self.model.sizes(shape)  # type: ignore[no-any-return]

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """The first centres of k-means, in the frame of the sample."""
        return self.model.start(before, data, rng)  # type: ignore[no-any-return]

    def described(self, U: Any, data: Any) -> Described:
        """The parts of k-means, and moments."""
        return self.model.described(U, data)._replace(stats=Annotated[np.ndarray, Array("2 3 d d")])  # type: ignore[no-any-return]

    def local(self, U: Parts, b: Block) -> Local:
        """Moments of a block."""
        return Local(None, moments(b.x, b.observed, b.w, U.frame.origin.astype(np.float64)), 0.0)

    def update(self, U: Parts, stats: np.ndarray) -> Parts:
        """Enter the frame of all rows."""
        metric, origin = self.metric, rounded(U.frame.origin, U.eps)  # as the blocks saw it
        frame = whitening(origin, stats)
        new = metric.enter_centers(frame, metric.leave(U.frame, np.vstack([U.centers, U.shift])))
        variance = 1.0 if frame.white.any() else 0.0
        return metric.at(U._replace(shift=new[-1], variance=variance, frame=frame), new[:-1])
