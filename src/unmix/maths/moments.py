"""All that a Gaussian model needs of complete rows: n, Σ x, Σ x xᵀ about one fixed origin."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.maths.arrays import Array


class Moments(NamedTuple):
    """Σ w, Σ w (x−s) and Σ w (x−s)(x−s)ᵀ for the origin s: all that a Gaussian model needs of complete rows."""

    n: float
    sum: Annotated[np.ndarray, Array("d")]
    scatter: Annotated[np.ndarray, Array("d d")]

    @property
    def shape(self) -> tuple[int, int]:
        """One summary row of d columns, so that a block of moments has a shape like a block of rows."""
        return 1, len(self.sum)

    @property
    def dtype(self) -> Any:
        """Always float64."""
        return self.scatter.dtype

    def about(self, delta: np.ndarray) -> Moments:
        """The same moments about the origin s + delta."""
        if not delta.any():
            return self
        cross = np.outer(self.sum - (0.5 * self.n) * delta, delta)
        scatter = self.scatter - cross
        scatter -= cross.T
        return Moments(self.n, self.sum - self.n * delta, scatter)

    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean, measured from s, and the scatter about it."""
        mean = self.sum / self.n
        return mean, self.scatter - self.n * np.outer(mean, mean)
