"""Counts, each by itself or given their sum: Poisson and multinomial."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from unmix.maths.arrays import POSITIVE, Array
from unmix.mixture.families.base import (
    KJ,
    PROBABILITY_FLOOR,
    ROUNDING,
    Family,
    K,
    counts,
    filled,
    over,
    possible,
    ratio,
    sums,
)

RATE_FLOOR = 1e-12
TABLE_SIZE = 1 << 16  # of log-factorials


def log_factorial(x: Any) -> np.ndarray:
    """Σ_j log x_ij! of each row; small counts from a table, since log Γ costs more than the rest of a pass."""
    values = x.data if sp.issparse(x) else x
    top = int(values.max(initial=0))
    logs = gammaln(np.arange(top + 1) + 1.0)[values.astype(np.int64)] if top < TABLE_SIZE else gammaln(values + 1.0)
    if sp.issparse(x):
        return np.asarray(sp.csr_array((logs, x.indices, x.indptr), shape=x.shape).sum(axis=1)).ravel()
    return np.asarray(logs.sum(axis=1))


class Rates(NamedTuple):
    """λ."""

    rates: Annotated[np.ndarray, Array("k j", low=POSITIVE)]


class Poisson(Family):
    """p(x) = λ^x e^−λ / x!, x a count.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.mixture import Mixture
    >>> X = np.random.default_rng(0).poisson(np.repeat([[1.0, 9.0], [8.0, 2.0]], 500, axis=0))
    >>> model = Mixture(2, family="poisson", random_state=0).fit(X)
    >>> sorted(model.parameters_["rates"].round().tolist())
    [[1.0, 9.0], [8.0, 2.0]]
    """

    parameters: ClassVar[Any] = Rates
    statistics: ClassVar[Any] = tuple[KJ, KJ]
    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "whole numbers of at least 0"
    sparse: ClassVar[bool] = True

    def allowed(self, x: np.ndarray) -> np.ndarray:
        """Counts."""
        return np.asarray((x >= 0) & (x == np.floor(x)))

    def log_density(self, P: Rates, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """x log λ − λ − log x!."""
        return np.asarray(x @ np.log(P.rates).T - over(seen, P.rates) - log_factorial(x)[:, None])

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z and Σ z x."""
        return counts(z, seen, x.shape[1]), sums(z, x)

    def update(self, P: Any, stats: Any) -> Rates:
        """Means."""
        N, A = stats
        possible(A >= -ROUNDING * N)
        return Rates(np.maximum(ratio(A, N, None if P is None else P.rates), RATE_FLOOR))

    def mean(self, P: Rates) -> np.ndarray:
        """λ."""
        return P.rates

    def variance(self, P: Rates) -> np.ndarray:
        """λ."""
        return P.rates

    def sample(self, P: Rates, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Counts."""
        return rng.poisson(P.rates[k], (n, P.rates.shape[1])).astype(np.float64)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """√x, whose variance does not depend on λ; missing cells at the mean."""
        return filled(np.sqrt(x), w, seen)


class Shares(NamedTuple):
    """p of each column, and the mean sum of a row."""

    probabilities: Annotated[np.ndarray, Array("k j", low=0.0)]
    lengths: Annotated[np.ndarray, Array("k", low=0.0)]


class Multinomial(Family):
    """p(x) = (Σ x)! Π_j p_j^x_j / x_j!, x counts whose sum is given. No cell may be missing.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.mixture import Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.multinomial(50, p, 300) for p in ([0.7, 0.2, 0.1], [0.1, 0.3, 0.6])])
    >>> model = Mixture(2, family="multinomial", random_state=0).fit(X)
    >>> sorted(model.parameters_["probabilities"].round(1).tolist())
    [[0.1, 0.3, 0.6], [0.7, 0.2, 0.1]]
    """

    parameters: ClassVar[Any] = Shares
    statistics: ClassVar[Any] = tuple[K, KJ]
    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "whole numbers of at least 0"
    sparse: ClassVar[bool] = True
    missing: ClassVar[bool] = False
    allowed = Poisson.allowed

    def log_density(self, P: Shares, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """log (Σ x)! + Σ x log p − log x!."""
        constant = gammaln(np.asarray(x.sum(axis=1)).ravel() + 1.0) - log_factorial(x)
        return np.asarray(x @ np.log(np.maximum(P.probabilities, PROBABILITY_FLOOR)).T + constant[:, None])

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z and Σ z x."""
        return z.sum(axis=0), sums(z, x)

    def update(self, P: Any, stats: Any) -> Shares:
        """Shares of the columns."""
        N, A = stats
        total = A.sum(axis=1)
        possible(A + ROUNDING * np.abs(total)[:, None] >= 0)
        A = np.maximum(A, 0.0)
        d = A.shape[1]
        pooled = np.full_like(A, 1.0 / d) if P is None else P.probabilities
        p = ratio(A, np.repeat(total[:, None], d, axis=1), pooled)
        return Shares(p, ratio(total, N, None if P is None else P.lengths))

    def n_parameters(self, P: Shares) -> int:
        """K × (d − 1)."""
        return int(P.probabilities.size - len(P.probabilities))

    def mean(self, P: Shares) -> np.ndarray:
        """p times the mean sum of a row."""
        return P.probabilities * P.lengths[:, None]

    def sample(self, P: Shares, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Counts, of the mean sum of a row."""
        p = P.probabilities[k] / P.probabilities[k].sum()
        return rng.multinomial(round(float(P.lengths[k])), p, n).astype(np.float64)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """√ of the shares of a row."""
        total = np.maximum(np.asarray(x.sum(axis=1)).ravel(), 1.0)
        return np.sqrt(sp.csr_array(sp.diags_array(1.0 / total) @ x) if sp.issparse(x) else x / total[:, None])
