"""Where mixtures of Gaussians start: rows of a sample about their mean, and a first assignment of them."""

from __future__ import annotations

import numpy as np

from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.engine.sample import centre_of
from unmix.engine.stage import Stage
from unmix.mixture._base import BaseMixture
from unmix.model.lloyd import ROUNDS, Lloyd


class FromRows(BaseMixture):
    """A mixture that starts from rows as they are, assigned by `init_params`."""

    init_params: str

    def stages(self, shape: Shape) -> list[Stage]:
        """A short k-means where it gives the first responsibilities."""
        rounds = {"kmeans": ROUNDS, "k-means++": 0}.get(self.init_params)
        return [self] if rounds is None else [Lloyd(self, self.n_components, rounds), self]

    def points(self, sample: Block) -> tuple[np.ndarray, np.ndarray]:
        """The sample's rows about their origin, missing cells at the mean."""
        return self._about(sample)[1:]

    def _about(self, sample: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Origin, the sample's rows about it and their weights."""
        shift = centre_of(sample)
        x = sample.x.astype(np.float64) - shift
        if sample.observed is not None:
            x *= sample.observed  # the mean, for the start alone
        w = np.ones(len(x)) if sample.w is None else sample.w
        return (shift, x, w) if w.all() else (shift, x[w > 0], w[w > 0])

    def _assignment(self, x: np.ndarray, w: np.ndarray, shift: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """First responsibilities of complete rows."""
        K = self.n_components
        if self.init_params == "random":
            z = rng.random((len(x), K))
            return np.asarray(z / z.sum(axis=1, keepdims=True))
        return nearest_of(x[rng.choice(len(x), K, replace=len(x) < K, p=w / w.sum())], x)


def nearest_of(centres: np.ndarray, x: np.ndarray) -> np.ndarray:
    """1 for the centre that each row is nearest to, else 0."""
    return np.asarray(np.eye(len(centres))[((centres**2).sum(axis=1) - 2.0 * x @ centres.T).argmin(axis=1)])
