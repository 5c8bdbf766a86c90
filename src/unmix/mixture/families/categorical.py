"""One of several levels: p(x = l) = p_l."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.maths.arrays import Array
from unmix.mixture.families.base import PROBABILITY_FLOOR, ROUNDING, Family, MisfitError, possible, ratio, sums

LEVELS_LIMIT = 1e6  # of a column: more are numbers, not levels


class Levels(NamedTuple):
    """p_kjl."""

    probabilities: Annotated[np.ndarray, Array("k j l", low=0.0)]


class Categorical(Family):
    """p(x = l) = p_l for the levels l = 0, 1, … of each column.

    Parameters
    ----------
    levels : int, optional
        How many levels the columns have at most; by default as many as the rows of the start show.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.mixture import Categorical, Mixture
    >>> rng = np.random.default_rng(0)
    >>> shares = [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]
    >>> X = np.concatenate([rng.choice(3, (1000, 4), p=p) for p in shares]).astype(float)
    >>> model = Mixture(2, family=Categorical(levels=3), random_state=0).fit(X)
    >>> sorted(model.parameters_["probabilities"].mean(axis=1).round(1).tolist())
    [[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    """

    parameters: ClassVar[Any] = Levels
    statistics: ClassVar[Any] = tuple[Annotated[np.ndarray, Array("k j l")]]
    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "levels 0, 1, 2, …"

    def __init__(self, levels: int | None = None) -> None:
        self.levels = levels

    def allowed(self, x: np.ndarray) -> np.ndarray:
        """Whole numbers from 0."""
        return np.asarray((x >= 0) & (x == np.floor(x)) & (x < LEVELS_LIMIT))

    def _indicators(self, x: np.ndarray, seen: np.ndarray | None, L: int) -> Any:
        """CSR rows of d·L cells: 1 for the level that a column has."""
        n, d = x.shape
        if x.size and x.max() >= L:
            i, j = np.argwhere(x >= L)[0]
            raise MisfitError(
                j,
                f"holds level {x[i, j]:.0f}, but only {L} levels are known: "
                f"give Categorical(levels={int(x.max()) + 1})",
            )
        index = x.astype(np.int32) + L * np.arange(d, dtype=np.int32)
        if seen is None:
            ends = d * np.arange(n + 1, dtype=np.int32)
            return sp.csr_array((np.ones(n * d), index.ravel(), ends), shape=(n, d * L))
        cells = seen > 0
        ends = np.append(0, np.cumsum(cells.sum(axis=1))).astype(np.int32)
        return sp.csr_array((np.ones(ends[-1]), index[cells], ends), shape=(n, d * L))

    def start(self, x: Any, w: np.ndarray, seen: np.ndarray | None, z: np.ndarray) -> Levels:
        """Shares of the levels."""
        L = self.levels or int(x.max()) + 1
        even = Levels(np.full((z.shape[1], x.shape[1], L), 1.0 / L))
        return self.update(even, self.stats(even, x, seen, z * w[:, None]))

    def log_density(self, P: Levels, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """log p of the level of each column."""
        K, _, L = P.probabilities.shape
        return np.asarray(
            self._indicators(x, seen, L) @ np.log(np.maximum(P.probabilities, PROBABILITY_FLOOR)).reshape(K, -1).T
        )

    def stats(self, P: Levels, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z [x = l]."""
        L = P.probabilities.shape[2]
        return (sums(z, self._indicators(x, seen, L)).reshape(z.shape[1], -1, L),)

    def update(self, P: Levels, stats: Any) -> Levels:
        """Shares of the levels."""
        (C,) = stats
        N = np.repeat(C.sum(axis=2)[:, :, None], C.shape[2], axis=2)
        possible(C >= -ROUNDING * N)
        return Levels(ratio(np.maximum(C, 0.0), N, P.probabilities))

    def n_parameters(self, P: Levels) -> int:
        """K × (levels that a column shows, less one)."""
        return int(len(P.probabilities) * np.maximum((P.probabilities > 0).any(axis=0).sum(axis=1) - 1, 0).sum())

    def sample(self, P: Levels, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Levels."""
        edges = np.cumsum(P.probabilities[k], axis=1)
        u = rng.random_sample((n, len(edges), 1)) * edges[:, -1:]
        return np.asarray((u >= edges[:, :-1]).sum(axis=2), dtype=np.float64)

    def complete(self, P: Levels, x: np.ndarray, seen: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest level, and √(p (1 − p)), p its probability: levels have no mean."""
        p = np.einsum("nk,kjl->njl", z, P.probabilities)
        best = p.max(axis=2)
        return p.argmax(axis=2).astype(np.float64), np.sqrt(np.maximum(best * (1.0 - best), 0.0))

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """A column for each level."""
        return self._indicators(x, seen, int(x.max()) + 1)
