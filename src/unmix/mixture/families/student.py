"""Numbers around a centre, with far ones among them: Student's t."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from unmix.maths.arrays import POSITIVE, Array
from unmix.mixture.families.base import KJ, K, counts, over, ratio, sums
from unmix.mixture.families.gaussian import Gaussian, mean_and_variance


class Tailed(NamedTuple):
    """μ about a fixed origin, σ² not below its floor, ν."""

    shift: Annotated[np.ndarray, Array("j")]
    means: Annotated[np.ndarray, Array("k j")]
    variances: Annotated[np.ndarray, Array("k j", low=POSITIVE)]
    floor: Annotated[np.ndarray, Array("j", low=0.0)]
    df: Annotated[np.ndarray, Array("k", low=POSITIVE)]


class Student(Gaussian):
    """Student's t of several columns, x = μ + σ ε / √u with one u ~ Gamma(ν/2, ν/2) per row: far rows pull less.

    E u_ik = (ν_k + p_i)/(ν_k + δ_ik), δ the squared distance in units of σ over the p_i observed cells, weighs the row
    in the means and variances (Peel & McLachlan 2000).

    Parameters
    ----------
    df : float, optional
        Degrees of freedom ν; by default each component's are estimated, within 0.1 and 1000.

    Examples
    --------
    Rows from anywhere hardly move the centres:

    >>> import numpy as np
    >>> from unmix.mixture import Mixture, Student
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0, 5.0], [9.0, 1.0]], 500, axis=0) + rng.normal(size=(1000, 2))
    >>> X[::50] = rng.uniform(-100, 100, size=(20, 2))
    >>> model = Mixture(2, family=Student(df=2), random_state=0).fit(X)
    >>> sorted(np.abs(model.parameters_["means"]).round().tolist())
    [[0.0, 5.0], [9.0, 1.0]]
    """

    sparse: ClassVar[bool] = False
    df_range: ClassVar[tuple[float, float]] = (0.1, 1000.0)  # within which ν is looked for

    parameters: ClassVar[Any] = Tailed
    statistics: ClassVar[Any] = tuple[KJ, KJ, KJ, KJ, K, K]

    def __init__(self, df: float | None = None) -> None:
        if df is not None and not df > 0:
            raise ValueError(f"df={df!r}: give a number above 0, or None to estimate it")
        self.df = df

    def start(self, x: Any, w: np.ndarray, seen: np.ndarray | None, z: np.ndarray) -> Tailed:
        """Moments of the first responsibilities; ν = 1 unless it is given, so that far rows make no component."""
        P = super().start(x, w, seen, z)
        df = np.full(z.shape[1], 1.0 if self.df is None else float(self.df))
        return Tailed(P.shift, P.means, P.variances, P.floor, df)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """Distances from the median in units of the median distance, far ones squeezed: they would be clusters."""
        some = np.broadcast_to(1.0, x.shape) if seen is None else seen
        gap = (x - medians(x, w, some)) * some
        width = 3.0 * medians(np.abs(gap), w, some)
        return np.tanh(gap / np.where(width > 0, width, 1.0))

    def _terms(self, P: Tailed, x: Any, seen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """δ and p, x about the origin."""
        p = np.full((len(x), 1), float(x.shape[1])) if seen is None else seen.sum(axis=1, keepdims=True)
        return self._distance(P, x, seen), p

    def log_density(self, P: Tailed, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """log Γ((ν+p)/2) − log Γ(ν/2) − ½ Σ log νπσ² − ½ (ν + p) log(1 + δ/ν)."""
        delta, p = self._terms(P, self._centred(P, x, seen), seen)
        constant = gammaln(0.5 * (P.df + p)) - gammaln(0.5 * P.df) - 0.5 * p * np.log(np.pi * P.df)
        return np.asarray(constant - 0.5 * over(seen, np.log(P.variances)) - 0.5 * (P.df + p) * np.log1p(delta / P.df))

    def stats(self, P: Tailed, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z, Σ z u, Σ z u x, Σ z u x², and for ν Σ z (E log u − E u) and the rows' weight."""
        x, d = self._centred(P, x, seen), x.shape[1]
        delta, p = self._terms(P, x, seen)
        half, u = 0.5 * (P.df + p), (P.df + p) / (P.df + delta)
        logs, zu, some = digamma(half) - np.log(half) + np.log(u) - u, z * u, z * (p > 0)
        A, B = sums(zu, x), sums(zu, x * x)
        return counts(z, seen, d), counts(zu, seen, d), A, B, (some * logs).sum(axis=0), some.sum(axis=0)

    def update(self, P: Tailed, stats: Any) -> Tailed:
        """Means and variances of the weighted rows; ν solves log(ν/2) − ψ(ν/2) + 1 + E(log u − u) = 0."""
        N, M, A, B, C, n = stats
        means, variances = mean_and_variance(N, M, A, B, P, P.floor)
        if self.df is not None:
            return P._replace(means=means, variances=variances)
        target = -1.0 - ratio(C, n, np.full(len(n), -1.0))
        low, high = (np.full(len(n), np.log(df)) for df in self.df_range)
        for _ in range(60):  # the left side falls in ν
            middle = 0.5 * (low + high)
            half = 0.5 * np.exp(middle)
            above = np.log(half) - digamma(half) > target
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return P._replace(means=means, variances=variances, df=np.where(n > 0, np.exp(0.5 * (low + high)), P.df))

    def n_parameters(self, P: Tailed) -> int:
        """2 K d, and K where ν is estimated."""
        return int(2 * P.means.size) + (len(P.df) if self.df is None else 0)

    def public(self, P: Tailed) -> dict[str, np.ndarray]:
        """Means, squared scales σ² and degrees of freedom."""
        return super().public(P) | {"df": P.df}

    def sample(self, P: Tailed, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws."""
        u = rng.chisquare(P.df[k], (n, 1)) / P.df[k]
        centre = P.shift + P.means[k]
        return np.asarray(centre + (super().sample(P, k, n, rng) - centre) / np.sqrt(u))

    def _left(self, P: Tailed, x: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of u given the observed cells of each row, (n, K): degrees of freedom ν + p, and (ν + δ)/(ν + p)."""
        delta, p = self._terms(P, self._centred(P, x, seen), seen)
        return P.df + p, (P.df + delta) / (P.df + p)

    def cells(self, P: Tailed, x: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Student's t with ν + p degrees of freedom, wider for far rows; with 2 or fewer the variance is infinite."""
        df, scale = self._left(P, x, seen)
        wide = np.where(df > 2.0, scale * df / np.maximum(df - 2.0, 1e-300), np.inf)
        return self.mean(P)[:, None], wide.T[:, :, None] * P.variances[:, None]

    def draw(self, P: Tailed, k: int, x: np.ndarray, seen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """u given the observed cells, then the cells."""
        df, scale = (a[:, k] for a in self._left(P, x, seen))
        u = rng.chisquare(df) / (df * scale)
        centre = P.shift + P.means[k]
        return np.asarray(centre + (Gaussian.sample(self, P, k, len(x), rng) - centre) / np.sqrt(u)[:, None])


def medians(x: np.ndarray, w: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Weighted median of the observed cells of each column."""
    order = np.argsort(x, axis=0, kind="stable")
    mass = np.cumsum(np.take_along_axis(w[:, None] * seen, order, axis=0), axis=0)
    middle = (mass < 0.5 * mass[-1]).sum(axis=0).clip(max=len(x) - 1)
    return np.take_along_axis(x, np.take_along_axis(order, middle[None], axis=0), axis=0)[0]
