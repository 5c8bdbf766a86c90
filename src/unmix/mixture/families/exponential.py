"""Waiting times and sizes: p(x) = e^(−x/m) / m."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from unmix.maths.arrays import POSITIVE, Array
from unmix.mixture.families.base import DIVISOR_FLOOR, KJ, ROUNDING, Family, counts, filled, over, possible, ratio, sums

MEAN_FLOOR = 1e-9  # of a component, as a share of the column's mean


class Means(NamedTuple):
    """1/λ, not below its floor."""

    means: Annotated[np.ndarray, Array("k j", low=POSITIVE)]
    floor: Annotated[np.ndarray, Array("j", low=0.0)]


class Exponential(Family):
    """p(x) = e^(−x/m) / m, x at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.mixture import Mixture
    >>> X = np.random.default_rng(0).exponential(np.repeat([[1.0, 9.0], [9.0, 1.0]], 2000, axis=0))
    >>> model = Mixture(2, family="exponential", random_state=0).fit(X)
    >>> sorted(model.parameters_["means"].round().tolist())
    [[1.0, 9.0], [9.0, 1.0]]
    """

    parameters: ClassVar[Any] = Means
    statistics: ClassVar[Any] = tuple[KJ, KJ]
    shared: ClassVar[tuple[str, ...] | None] = ("floor",)
    needs: ClassVar[str] = "numbers of at least 0"

    def allowed(self, x: np.ndarray) -> np.ndarray:
        """Not negative."""
        return x >= 0

    def log_density(self, P: Means, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """−x/m − log m."""
        return np.asarray(-x @ (1.0 / P.means).T - over(seen, np.log(P.means)))

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z and Σ z x."""
        return counts(z, seen, x.shape[1]), sums(z, x)

    def update(self, P: Any, stats: Any) -> Means:
        """Means."""
        N, A = stats
        possible(A.min() >= -ROUNDING * np.abs(A).max())
        overall = A.sum(axis=0) / np.maximum(N.sum(axis=0), DIVISOR_FLOOR)
        floor = np.where(overall > 0, MEAN_FLOOR * overall, MEAN_FLOOR) if P is None else P.floor
        return Means(np.maximum(ratio(A, N, None if P is None else P.means), floor), floor)

    def n_parameters(self, P: Means) -> int:
        """K × d."""
        return int(P.means.size)

    def public(self, P: Means) -> dict[str, np.ndarray]:
        """The means 1/λ."""
        return {"means": P.means}

    def mean(self, P: Means) -> np.ndarray:
        """1/λ."""
        return P.means

    def variance(self, P: Means) -> np.ndarray:
        """1/λ²."""
        return P.means**2

    def sample(self, P: Means, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws."""
        return rng.exponential(P.means[k], (n, P.means.shape[1]))

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """√x; missing cells at the mean."""
        return filled(np.sqrt(x), w, seen)
