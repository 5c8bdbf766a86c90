"""Yes or no: p(x) = p^x (1 − p)^(1 − x)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from unmix.maths.arrays import Array
from unmix.mixture.families.base import (
    KJ,
    PROBABILITY_FLOOR,
    ROUNDING,
    Family,
    counts,
    filled,
    over,
    possible,
    ratio,
    sums,
)


class Probabilities(NamedTuple):
    """p and 1 − p, both kept so that float32 does not lose the smaller one."""

    probabilities: Annotated[np.ndarray, Array("k j", low=0.0, high=1.0)]
    complements: Annotated[np.ndarray, Array("k j", low=0.0, high=1.0)]


class Bernoulli(Family):
    """p(x) = p^x (1 − p)^(1 − x), x 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.mixture import Mixture
    >>> rng = np.random.default_rng(0)
    >>> p = np.repeat([[0.9, 0.1, 0.9, 0.1], [0.2, 0.8, 0.2, 0.8]], 1000, axis=0)
    >>> X = (rng.random(p.shape) < p).astype(float)
    >>> model = Mixture(2, family="bernoulli", random_state=0).fit(X)
    >>> sorted(model.parameters_["probabilities"].round(1).tolist())
    [[0.2, 0.8, 0.2, 0.8], [0.9, 0.1, 0.9, 0.1]]
    """

    parameters: ClassVar[Any] = Probabilities
    statistics: ClassVar[Any] = tuple[KJ, KJ]
    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "0 or 1"
    sparse: ClassVar[bool] = True

    def allowed(self, x: np.ndarray) -> np.ndarray:
        """0 and 1."""
        return x * x == x

    def log_density(self, P: Probabilities, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """x log p + (1 − x) log(1 − p)."""
        p, q = (np.log(np.maximum(a, PROBABILITY_FLOOR)) for a in P)
        return np.asarray(x @ (p - q).T + over(seen, q))

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z and Σ z x."""
        return counts(z, seen, x.shape[1]), sums(z, x)

    def update(self, P: Any, stats: Any) -> Probabilities:
        """Share of ones."""
        N, A = stats
        possible((A >= -ROUNDING * N) & (A <= N * (1.0 + ROUNDING)))
        p = np.clip(ratio(A, N, None if P is None else P.probabilities), 0.0, 1.0)
        return Probabilities(p, np.clip(ratio(N - A, N, 1.0 - p), 0.0, 1.0))

    def n_parameters(self, P: Any) -> int:
        """K × d."""
        return int(P.probabilities.size)

    def public(self, P: Any) -> dict[str, np.ndarray]:
        """The probabilities of a one."""
        return {"probabilities": P.probabilities}

    def mean(self, P: Any) -> np.ndarray:
        """p."""
        return np.asarray(P.probabilities)

    def variance(self, P: Any) -> np.ndarray:
        """p (1 − p)."""
        return np.asarray(P.probabilities * P.complements)

    def sample(self, P: Any, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Zeros and ones."""
        p = P.probabilities[k]
        return (rng.random_sample((n, len(p))) < p).astype(np.float64)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """x itself, missing cells at the mean."""
        return filled(x, w, seen)
