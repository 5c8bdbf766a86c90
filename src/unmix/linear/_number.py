"""How many factors? Parallel analysis as factor analysis wants it (Humphreys & Montanelli 1975).

In the correlation matrix R the diagonal gives way to the share of each column that the others explain, 1 − 1/(R⁻¹)_jj,
so that what is left of it is common to several columns. There are as many factors as its leading eigenvalues exceed
those that unrelated Gaussian columns of as many rows show by chance: the t-th of them the 95th percentile of the t-th.
But no more than d columns can tell: k factors have a unique noise only where (d − k)² ≥ d + k (Ledermann 1937).
"""

from __future__ import annotations

import math

import numpy as np

DRAWS = 50  # random data sets
LEVEL = 0.95


def how_many(S: np.ndarray, n: float, rng: np.random.Generator) -> int:
    """The number of factors of a covariance S of n rows; constant columns have none."""
    S = S[np.ix_(np.diag(S) > 0, np.diag(S) > 0)]
    d, free = len(S), max(int(np.ceil(n)) - 1, 1)
    if d < 2:
        return 0
    observed = common(S, free > d)
    chance = np.empty((DRAWS, d))
    for i in range(DRAWS):
        if free > d:  # Bartlett's factor of a Wishart matrix: no n×d data are drawn
            A = np.tril(rng.standard_normal((d, d)), -1)
            A[np.diag_indices(d)] = np.sqrt(rng.chisquare(float(free) - np.arange(d)))
        else:
            A = rng.standard_normal((d, free))
        chance[i] = common(A @ A.T, free > d)
    beyond = observed > np.maximum(np.quantile(chance, LEVEL, axis=0), 0.0)
    return min(int(np.argmin(np.append(beyond, False))), identified(d))


def identified(d: int) -> int:
    """The most factors that d ≥ 2 columns can tell, at least 1."""
    return max(1, math.floor(d + 0.5 - math.sqrt(2 * d + 0.25)))


def common(S: np.ndarray, enough: bool) -> np.ndarray:
    """Eigenvalues, falling, of the correlations with what is common to columns; with all where rows are too few."""
    scale = 1.0 / np.sqrt(np.diag(S))
    R = S * scale * scale[:, None]
    if enough:
        try:
            own = 1.0 / np.diag(np.linalg.inv(R + 1e-10 * np.eye(len(R))))
        except np.linalg.LinAlgError:  # columns that are sums of others
            own = np.zeros(len(R))
        R = R - np.diag(np.clip(own, 0.0, 1.0))
    return np.asarray(np.linalg.eigvalsh(R)[::-1])
