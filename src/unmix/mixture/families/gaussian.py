"""Numbers around a mean: p(x) = Π_j N(x_j | μ_j, σ²_j)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.maths.arrays import POSITIVE, Array
from unmix.mixture.families.base import DIVISOR_FLOOR, KJ, Family, counts, over, possible, ratio, sums

VARIANCE_FLOOR = 1e-9  # of a component, as a share of the column's variance


class Normals(NamedTuple):
    """μ about a fixed origin, σ² not below its floor."""

    shift: Annotated[np.ndarray, Array("j")]
    means: Annotated[np.ndarray, Array("k j")]
    variances: Annotated[np.ndarray, Array("k j", low=POSITIVE)]
    floor: Annotated[np.ndarray, Array("j", low=0.0)]


class Gaussian(Family):
    """p(x) = Π_j N(x_j | μ_j, σ²_j): no correlations (for those see GaussianMixture).

    Parameters
    ----------
    floor : float, default=1e-9
        The smallest variance, as a share of the column's. `Mixture` takes 1e-3 for columns of a table: a few cells that
        happen to be equal are then no reason for a component of their own.
    rounding : float, default=0
        What the numbers were rounded to: variances are at least rounding² / 12, that of what rounding took away.
        `Mixture` takes 1 for the whole numbers of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.mixture import Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0, 5.0], [9.0, 1.0]], 500, axis=0) + rng.normal(size=(1000, 2))
    >>> X[::7, 0] = np.nan
    >>> model = Mixture(2, family="gaussian", random_state=0).fit(X)
    >>> sorted(np.abs(model.parameters_["means"]).round().tolist())
    [[0.0, 5.0], [9.0, 1.0]]
    """

    parameters: ClassVar[Any] = Normals
    statistics: ClassVar[Any] = tuple[KJ, KJ, KJ]
    shared: ClassVar[tuple[str, ...] | None] = ("shift", "floor")
    sparse: ClassVar[bool] = True

    floor: float = VARIANCE_FLOOR  # of families that derive from it
    rounding: float = 0.0

    def __init__(self, floor: float = VARIANCE_FLOOR, rounding: float = 0.0) -> None:
        self.floor = floor
        self.rounding = rounding

    def _frame(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Origin, zero where the means are within a standard deviation of it, and smallest variances."""
        n = np.maximum(np.full(x.shape[1], w.sum()) if seen is None else w @ seen, DIVISOR_FLOOR)
        mean, square = np.asarray(w @ x).ravel() / n, np.asarray(w @ (x * x)).ravel() / n
        near = sp.issparse(x) or bool((2.0 * mean**2 <= square).all())
        shift = np.zeros(len(n)) if near else short(mean)
        gap = x if near else (x - shift) * (1.0 if seen is None else seen)
        mean, square = np.asarray(w @ gap).ravel() / n, np.asarray(w @ (gap * gap)).ravel() / n
        variance = square - mean**2
        variance = np.where(variance > 1e-14 * (square + shift**2), variance, square + shift**2)  # less is rounding
        return shift, np.maximum(np.where(variance > 0, self.floor * variance, self.floor), self.rounding**2 / 12)

    def _centred(self, P: Any, x: Any, seen: np.ndarray | None) -> Any:
        if sp.issparse(x) or not P.shift.any():
            return x
        return x - P.shift if seen is None else (x - P.shift) * seen

    def _distance(self, P: Any, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """Σ_j (x_j − μ_kj)² / σ²_kj over the observed cells, x about the origin."""
        inverse = 1.0 / P.variances
        square = (x * x) @ inverse.T - 2.0 * (x @ (P.means * inverse).T) + over(seen, P.means**2 * inverse)
        return np.maximum(square, 0.0)

    def start(self, x: Any, w: np.ndarray, seen: np.ndarray | None, z: np.ndarray) -> Any:
        """Moments of the first responsibilities."""
        shift, floor = self._frame(x, w, seen)
        frame = Normals(shift, np.zeros((1, 1)), np.ones((1, 1)), floor)
        N, A, B = Gaussian.stats(self, frame, x, seen, z * w[:, None])
        means, variances = mean_and_variance(N, N, A, B, None, floor)
        return Normals(shift, means, variances, floor)

    def log_density(self, P: Any, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """−½ Σ ((x − μ)²/σ² + log 2πσ²)."""
        constant = over(seen, np.log(2.0 * np.pi * P.variances))
        return -0.5 * (self._distance(P, self._centred(P, x, seen), seen) + constant)

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z, Σ z x and Σ z x²."""
        x = self._centred(P, x, seen)
        return counts(z, seen, x.shape[1]), sums(z, x), sums(z, x * x)

    def update(self, P: Any, stats: Any) -> Any:
        """Means and variances."""
        N, A, B = stats
        means, variances = mean_and_variance(N, N, A, B, P, P.floor)
        return P._replace(means=means, variances=variances)

    def n_parameters(self, P: Any) -> int:
        """2 K d."""
        return int(2 * P.means.size)

    def public(self, P: Any) -> dict[str, np.ndarray]:
        """Means and variances."""
        return {"means": P.means + P.shift, "variances": P.variances}

    def mean(self, P: Any) -> np.ndarray:
        """μ."""
        return np.asarray(P.means + P.shift)

    def variance(self, P: Any) -> np.ndarray:
        """σ²."""
        return np.asarray(P.variances)

    def sample(self, P: Any, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws."""
        width = np.sqrt(P.variances[k])
        return np.asarray(P.shift + P.means[k] + rng.standard_normal((n, len(width))) * width)

    def notes(self, P: Any) -> list[str]:
        """Components without width."""
        low = np.flatnonzero((P.variances <= P.floor).any(axis=1)).tolist()
        if not low or self.floor > VARIANCE_FLOOR:  # a floor that somebody chose is no collapse
            return []
        return [f"components {low} have a variance at its floor, 1e-9 of the column's: try fewer components"]


def short(a: np.ndarray) -> np.ndarray:
    """The numbers with the digits of single precision, whatever their size."""
    digits, power = np.frexp(a)
    return np.ldexp(digits.astype(np.float32).astype(np.float64), power)


def mean_and_variance(
    N: np.ndarray, M: np.ndarray, A: np.ndarray, B: np.ndarray, P: Any, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """μ = A/M and σ² = (B − A²/M)/N."""
    means = ratio(A, M, None if P is None else P.means)
    scatter = B - means * A
    possible(scatter >= -1e-7 * np.abs(B))
    return means, np.maximum(ratio(np.maximum(scatter, 0.0), N, None if P is None else P.variances), floor)
