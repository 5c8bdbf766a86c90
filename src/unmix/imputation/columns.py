"""What columns are measured in: standard deviations, or the normal scores of their values.

    y = (x − centre) / scale            u = g(y):  P(Y ≤ y) = Φ(u), linear between knots

A model of u is one of y: what is N(m, s²) as u has the mean Σ_q w_q g⁻¹(m + s t_q) as y, t and w of Gauss and Hermite.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import ndtri

from unmix.maths.arrays import POSITIVE, Array

KNOTS = 65
FEW = 5  # different values that a column has at least, to be bent
BEYOND = 0.5  # of a column's range, that draws may lie out of it
NODES, SHARES = np.polynomial.hermite_e.hermegauss(9)
SHARES = SHARES / SHARES.sum()


class Columns(NamedTuple):
    """Centres and scales of columns, and their values at the knots, for those that are bent."""

    center: Annotated[np.ndarray, Array("w")]
    scale: Annotated[np.ndarray, Array("w", low=POSITIVE)]
    low: Annotated[np.ndarray, Array("w")]  # of y: the least that was seen
    high: Annotated[np.ndarray, Array("w")]
    bent: Annotated[np.ndarray, Array("w", "b")]
    values: Annotated[np.ndarray, Array("w q")]
    scores: Annotated[np.ndarray, Array("w q")]

    @classmethod
    def of(cls, x: np.ndarray, given: np.ndarray) -> Columns:
        """Of the rows of a fit; columns that are `given` in their units stay so. Every column has some value."""
        power = np.frexp(np.nanmax(np.abs(x), axis=0))[1]
        small = np.ldexp(x, -power)  # takes no digits, and keeps squares from overflow and underflow
        center, scale = (np.ldexp(f(small, axis=0), power) for f in (np.nanmean, np.nanstd))
        flat = np.nanmax(x, axis=0) == np.nanmin(x, axis=0)
        center = np.where(flat, np.nanmax(x, axis=0), np.where(given, 0.0, center))
        scale = np.where(given | ~(scale > 0) | flat, 1.0, scale)
        y = (x - center) / scale
        values, scores, bent = np.zeros((x.shape[1], KNOTS)), np.zeros((x.shape[1], KNOTS)), np.zeros(x.shape[1], bool)
        for j in np.flatnonzero(~given & ~flat):
            seen, count = np.unique(y[~np.isnan(y[:, j]), j], return_counts=True)
            bent[j] = len(seen) >= FEW
            at = np.linspace(0, len(seen) - 1, KNOTS).astype(int)
            values[j], scores[j] = seen[at], ndtri((np.cumsum(count) - count / 2) / count.sum())[at]
        return cls(center, scale, np.nanmin(y, axis=0), np.nanmax(y, axis=0), bent, values, scores)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """Y of x; cells that are further out than squares can be taken of lie at the end of that range."""
        with np.errstate(over="ignore"):
            return np.clip((x - self.center) / self.scale, -1e6, 1e6)

    def unscaled(self, y: np.ndarray) -> np.ndarray:
        """X of y."""
        return y * self.scale + self.center

    def within(self, y: np.ndarray) -> np.ndarray:
        """Y no further out than what was seen."""
        return np.clip(y, self.low, self.high)

    def near(self, y: np.ndarray) -> np.ndarray:
        """Y that may be drawn: beyond what was seen by some of its range, but no value of a sign that was never seen.

        Of a column with few different values none beyond them.
        """
        more = np.where(self.bent, BEYOND * (self.high - self.low), 0.0)
        zero = -self.center / self.scale
        low = np.where(self.low >= zero, np.maximum(self.low - more, zero), self.low - more)
        high = np.where(self.high <= zero, np.minimum(self.high + more, zero), self.high + more)
        return np.clip(y, low, high)

    def bend(self, y: np.ndarray) -> np.ndarray:
        """U of y."""
        u = y.copy()
        for j in np.flatnonzero(self.bent):
            u[:, j] = np.interp(y[:, j], self.values[j], self.scores[j])
        return u

    def straighten(self, u: np.ndarray) -> np.ndarray:
        """Y of u."""
        y = u.copy()
        for j in np.flatnonzero(self.bent):
            y[:, j] = np.interp(u[:, j], self.scores[j], self.values[j])
        return y

    def moments(self, mean: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of y where u is N(mean, deviation²)."""
        first, second = np.zeros_like(mean), np.zeros_like(mean)
        for t, share in zip(NODES, SHARES, strict=True):
            y = self.straighten(mean + deviation * t)
            first += share * y
            second += share * y**2
        return first, np.sqrt(np.maximum(second - first**2, 0.0))
