"""Families of distributions for `Mixture`: what one component says of its columns.

A family gives the log-densities of rows under K components, additive statistics of rows weighted by responsibilities,
and the parameters of largest likelihood given them. Parameters P are a (named) tuple of arrays. x holds 0 where a cell
is missing; `seen` is 1.0 where a cell was observed and 0.0 elsewhere, or None where all were. All is in float64.

Each update is the maximum of Σ_ik z_ik log p_k(x_i), within bounds that keep logarithms finite: so EM never gets worse.
Statistics that no rows can have are a LinAlgError: only extrapolation makes them.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln

from unmix.engine import tree

LEAST = 1e-15  # a probability of nought
TINY = 1e-300


def over(seen: np.ndarray | None, a: np.ndarray) -> np.ndarray:
    """Σ_j a_kj over the observed columns of each row: (n, K), or (K,) where every cell was observed."""
    return np.asarray(a.sum(axis=1) if seen is None else seen @ a.T)


def sums(z: np.ndarray, x: Any) -> np.ndarray:
    """Σ_i z_ik x_ij, of dense or CSR rows."""
    return np.asarray((x.T @ z).T if sp.issparse(x) else z.T @ x)


def counts(z: np.ndarray, seen: np.ndarray | None, d: int) -> np.ndarray:
    """Σ_i z_ik over the rows that observe column j."""
    return np.repeat(z.sum(axis=0)[:, None], d, axis=1) if seen is None else z.T @ seen


def ratio(A: np.ndarray, N: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    """A / N; where N is 0 what it was before, or in the first place that of all components together."""
    if (N < 0).any():
        raise np.linalg.LinAlgError("a negative weight")
    other = A.sum(axis=0) / np.maximum(N.sum(axis=0), TINY) if before is None else before
    return np.where(N > 0, A / np.maximum(N, TINY), other)


def possible(condition: Any) -> None:
    """Statistics that no rows can have are an error."""
    if not np.all(condition):
        raise np.linalg.LinAlgError("statistics that no rows can have")


class Family:
    """Base of all families: a subclass needs `log_density`, `stats` and `update`, and `sample` to be sampled.

    Attributes
    ----------
    needs : str
        Which cells it takes, in words, for the error message.
    sparse : bool
        Whether its x may be CSR.
    missing : bool
        Whether cells may be missing.
    shared : tuple of str, or None
        The fields of P that all components have in common; every other array of P, and every one of the statistics, has
        the components first. `unmix.select` then cuts and joins components. None, the default, forbids it.

    Examples
    --------
    A family of one's own, the geometric distribution p(x) = p (1 − p)^x:

    >>> import numpy as np
    >>> from unmix.mixture import Family, Mixture
    >>> from unmix.mixture.families import counts, over, sums
    >>> class Geometric(Family):
    ...     def log_density(self, P, x, seen):
    ...         return x @ np.log1p(-P[0]).T + over(seen, np.log(P[0]))
    ...
    ...     def stats(self, P, x, seen, z):
    ...         return counts(z, seen, x.shape[1]), sums(z, x)
    ...
    ...     def update(self, P, stats):
    ...         N, A = stats
    ...         return (np.clip(N / np.maximum(N + A, 1e-300), 1e-9, 1 - 1e-9),)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.geometric(np.repeat([[0.5, 0.1], [0.05, 0.6]], 500, axis=0)) - 1
    >>> model = Mixture(2, family=Geometric(), random_state=0).fit(X)
    >>> sorted(model.parameters_["0"].round(1).tolist())
    [[0.1, 0.6], [0.5, 0.1]]
    """

    needs: ClassVar[str] = "numbers"
    sparse: ClassVar[bool] = False
    missing: ClassVar[bool] = True
    shared: ClassVar[tuple[str, ...] | None] = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    def log_density(self, P: Any, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """log p_k of the observed cells of each row: (n, K)."""
        raise NotImplementedError

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Additive statistics of rows that count z_ik times for component k."""
        raise NotImplementedError

    def update(self, P: Any, stats: Any) -> Any:
        """Parameters from statistics; P are those before, None in the first place."""
        raise NotImplementedError

    def start(self, x: Any, w: np.ndarray, seen: np.ndarray | None, z: np.ndarray) -> Any:
        """First parameters from rows of weights w and first responsibilities z."""
        return self.update(None, self.stats(None, x, seen, z * w[:, None]))

    def take(self, P: Any, index: Any) -> Any:
        """The parameters of some of the components."""
        names = getattr(P, "_fields", [""] * len(P))
        return tree.rebuild(
            P, [a if name in (self.shared or ()) else a[index] for name, a in zip(names, P, strict=True)]
        )

    def n_parameters(self, P: Any) -> int:
        """How many numbers the data could choose: by default every number of P."""
        return sum(int(np.size(a)) for a in tree.leaves(P))

    def sample(self, P: Any, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draw n rows of component k."""
        raise NotImplementedError(f"{type(self).__name__} has no `sample`")

    def mean(self, P: Any) -> np.ndarray | None:
        """The mean row of each component (K, d), or None where there is none."""
        return None

    def public(self, P: Any) -> dict[str, np.ndarray]:
        """The parameters by name."""
        return dict(P._asdict()) if hasattr(P, "_asdict") else {str(i): a for i, a in enumerate(P)}

    def notes(self, P: Any) -> list[str]:
        """What a person should know of these parameters."""
        return []

    def allowed(self, x: np.ndarray) -> np.ndarray | bool:
        """Which values a cell may have."""
        return True

    def check(self, x: Any, seen: np.ndarray | None) -> None:
        """Raise a ValueError where a cell has a value that the family cannot have made."""
        name = type(self).__name__
        if seen is not None and not self.missing:
            i, j = np.argwhere(seen == 0)[0]
            raise ValueError(f"row {i}, column {j} of a block is missing, and the family {name} needs every cell")
        bad = ~np.asarray(self.allowed(x.data if sp.issparse(x) else x))
        if not bad.any():
            return
        if sp.issparse(x):
            raise ValueError(f"a cell of X holds {x.data[bad][0]:.6g}, but the family {name} needs {self.needs}")
        bad = bad if seen is None else bad & (seen > 0)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise ValueError(
                f"column {j} (of those of the family) holds {x[i, j]:.6g}, but the family {name} needs {self.needs}: "
                "take another family for it, or NaN for what was not observed"
            )

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """Columns in which distance means something, for the k-means of the start: x over its standard deviations."""
        n = np.maximum(np.full(x.shape[1], w.sum()) if seen is None else w @ seen, TINY)
        mean = np.asarray(w @ x).ravel() / n
        if sp.issparse(x):
            variance = np.asarray(w @ (x * x)).ravel() / n - mean**2
            return sp.csr_array(x / np.where(variance > 0, np.sqrt(np.maximum(variance, TINY)), 1.0))
        gap = x - mean if seen is None else (x - mean) * seen
        width = np.sqrt(w @ (gap * gap) / n)
        return gap / np.where(width > 0, width, 1.0)


class Probabilities(NamedTuple):
    """p and 1 − p, both kept so that float32 does not lose the smaller one."""

    probabilities: np.ndarray
    complements: np.ndarray


class Bernoulli(Family):
    """p(x) = p^x (1 − p)^(1 − x), x 0 or 1."""

    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "0 or 1"
    sparse: ClassVar[bool] = True

    def allowed(self, x: np.ndarray) -> np.ndarray:
        """0 and 1."""
        return x * x == x

    def log_density(self, P: Probabilities, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """x log p + (1 − x) log(1 − p)."""
        p, q = (np.log(np.maximum(a, LEAST)) for a in P)
        return np.asarray(x @ (p - q).T + over(seen, q))

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z and Σ z x."""
        return counts(z, seen, x.shape[1]), sums(z, x)

    def update(self, P: Any, stats: Any) -> Probabilities:
        """Share of ones."""
        N, A = stats
        possible((A >= -1e-9 * N) & (A <= N * (1.0 + 1e-9)))
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

    def sample(self, P: Any, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Zeros and ones."""
        p = P.probabilities[k]
        return (rng.random_sample((n, len(p))) < p).astype(np.float64)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """x itself, missing cells at the mean."""
        return x if seen is None else x + (1.0 - seen) * (w @ x / np.maximum(w @ seen, TINY))


class Levels(NamedTuple):
    """p_kjl."""

    probabilities: np.ndarray


class Categorical(Family):
    """p(x = l) = p_l for the levels l = 0, 1, … of each column.

    Parameters
    ----------
    levels : int, optional
        How many levels the columns have at most; by default as many as the rows of the start show.
    """

    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "levels 0, 1, 2, …"

    def __init__(self, levels: int | None = None) -> None:
        self.levels = levels

    def allowed(self, x: np.ndarray) -> np.ndarray:
        """Whole numbers from 0."""
        return np.asarray((x >= 0) & (x == np.floor(x)) & (x < 1e6))

    def _indicators(self, x: np.ndarray, seen: np.ndarray | None, L: int) -> Any:
        """CSR rows of d·L cells: 1 for the level that a column has."""
        n, d = x.shape
        if x.size and x.max() >= L:
            i, j = np.argwhere(x >= L)[0]
            raise ValueError(
                f"column {j} (of those of the family) holds level {x[i, j]:.0f}, but only {L} levels are known: "
                f"give Categorical(levels={int(x.max()) + 1})"
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
        return np.asarray(self._indicators(x, seen, L) @ np.log(np.maximum(P.probabilities, LEAST)).reshape(K, -1).T)

    def stats(self, P: Levels, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z [x = l]."""
        L = P.probabilities.shape[2]
        return (sums(z, self._indicators(x, seen, L)).reshape(z.shape[1], -1, L),)

    def update(self, P: Levels, stats: Any) -> Levels:
        """Shares of the levels."""
        (C,) = stats
        N = np.repeat(C.sum(axis=2)[:, :, None], C.shape[2], axis=2)
        possible(C >= -1e-9 * N)
        return Levels(ratio(np.maximum(C, 0.0), N, P.probabilities))

    def n_parameters(self, P: Levels) -> int:
        """K × (levels that a column shows, less one)."""
        return int(len(P.probabilities) * np.maximum((P.probabilities > 0).any(axis=0).sum(axis=1) - 1, 0).sum())

    def sample(self, P: Levels, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Levels."""
        edges = np.cumsum(P.probabilities[k], axis=1)
        u = rng.random_sample((n, len(edges), 1)) * edges[:, -1:]
        return np.asarray((u >= edges[:, :-1]).sum(axis=2), dtype=np.float64)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """A column for each level."""
        return self._indicators(x, seen, int(x.max()) + 1)


def log_factorial(x: Any) -> np.ndarray:
    """Σ_j log x_ij! of each row; small counts from a table, since log Γ costs more than the rest of a pass."""
    values = x.data if sp.issparse(x) else x
    top = int(values.max(initial=0))
    logs = gammaln(np.arange(top + 1) + 1.0)[values.astype(np.int64)] if top < 1 << 16 else gammaln(values + 1.0)
    if sp.issparse(x):
        return np.asarray(sp.csr_array((logs, x.indices, x.indptr), shape=x.shape).sum(axis=1)).ravel()
    return np.asarray(logs.sum(axis=1))


class Rates(NamedTuple):
    """λ."""

    rates: np.ndarray


class Poisson(Family):
    """p(x) = λ^x e^−λ / x!, x a count."""

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
        possible(A >= -1e-9 * N)
        return Rates(np.maximum(ratio(A, N, None if P is None else P.rates), 1e-12))

    def mean(self, P: Rates) -> np.ndarray:
        """λ."""
        return P.rates

    def sample(self, P: Rates, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Counts."""
        return rng.poisson(P.rates[k], (n, P.rates.shape[1])).astype(np.float64)

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """√x, whose variance does not depend on λ; missing cells at the mean."""
        return Bernoulli.features(self, np.sqrt(x), w, seen)  # type: ignore[arg-type]


class Shares(NamedTuple):
    """p of each column, and the mean sum of a row."""

    probabilities: np.ndarray
    lengths: np.ndarray


class Multinomial(Family):
    """p(x) = (Σ x)! Π_j p_j^x_j / x_j!, x counts whose sum is given. No cell may be missing."""

    shared: ClassVar[tuple[str, ...] | None] = ()
    needs: ClassVar[str] = "whole numbers of at least 0"
    sparse: ClassVar[bool] = True
    missing: ClassVar[bool] = False
    allowed = Poisson.allowed

    def log_density(self, P: Shares, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """log (Σ x)! + Σ x log p − log x!."""
        constant = gammaln(np.asarray(x.sum(axis=1)).ravel() + 1.0) - log_factorial(x)
        return np.asarray(x @ np.log(np.maximum(P.probabilities, LEAST)).T + constant[:, None])

    def stats(self, P: Any, x: Any, seen: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Σ z and Σ z x."""
        return z.sum(axis=0), sums(z, x)

    def update(self, P: Any, stats: Any) -> Shares:
        """Shares of the columns."""
        N, A = stats
        total = A.sum(axis=1)
        possible(A + 1e-9 * np.abs(total)[:, None] >= 0)
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


class Means(NamedTuple):
    """1/λ, not below its floor."""

    means: np.ndarray
    floor: np.ndarray


class Exponential(Family):
    """p(x) = e^(−x/m) / m, x at least 0."""

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
        possible(A.min() >= -1e-9 * np.abs(A).max())
        all_ = A.sum(axis=0) / np.maximum(N.sum(axis=0), TINY)
        floor = np.where(all_ > 0, 1e-9 * all_, 1e-9) if P is None else P.floor
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

    def sample(self, P: Means, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws."""
        return rng.exponential(P.means[k], (n, P.means.shape[1]))

    features = Poisson.features


class Normals(NamedTuple):
    """μ about a fixed origin, σ² not below its floor."""

    shift: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    floor: np.ndarray


class Gaussian(Family):
    """p(x) = Π_j N(x_j | μ_j, σ²_j): no correlations (for those see GaussianMixture)."""

    shared: ClassVar[tuple[str, ...] | None] = ("shift", "floor")
    sparse: ClassVar[bool] = True

    def _frame(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Origin, zero where the means are within a standard deviation of it, and least variances."""
        n = np.maximum(np.full(x.shape[1], w.sum()) if seen is None else w @ seen, TINY)
        mean, square = np.asarray(w @ x).ravel() / n, np.asarray(w @ (x * x)).ravel() / n
        near = sp.issparse(x) or bool((2.0 * mean**2 <= square).all())
        shift = np.zeros(len(n)) if near else mean.astype(np.float32).astype(np.float64)
        gap = x if near else (x - shift) * (1.0 if seen is None else seen)
        mean, square = np.asarray(w @ gap).ravel() / n, np.asarray(w @ (gap * gap)).ravel() / n
        variance = square - mean**2
        variance = np.where(variance > 1e-14 * (square + shift**2), variance, square + shift**2)
        return shift, np.where(variance > 0, 1e-9 * variance, 1e-9)

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
        means, variances = _mean_and_variance(N, N, A, B, None, floor)
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
        means, variances = _mean_and_variance(N, N, A, B, P, P.floor)
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

    def sample(self, P: Any, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws."""
        width = np.sqrt(P.variances[k])
        return np.asarray(P.shift + P.means[k] + rng.standard_normal((n, len(width))) * width)

    def notes(self, P: Any) -> list[str]:
        """Components without width."""
        low = np.flatnonzero((P.variances <= P.floor).any(axis=1)).tolist()
        return [f"components {low} have a variance at its floor, a 1e-9 of the column's: fewer may do"] if low else []


def _mean_and_variance(
    N: np.ndarray, M: np.ndarray, A: np.ndarray, B: np.ndarray, P: Any, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """μ = A/M and σ² = (B − A²/M)/N."""
    means = ratio(A, M, None if P is None else P.means)
    scatter = B - means * A
    possible(scatter >= -1e-7 * np.abs(B))
    return means, np.maximum(ratio(np.maximum(scatter, 0.0), N, None if P is None else P.variances), floor)


def _medians(x: np.ndarray, w: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Weighted median of the observed cells of each column."""
    order = np.argsort(x, axis=0, kind="stable")
    mass = np.cumsum(np.take_along_axis(w[:, None] * seen, order, axis=0), axis=0)
    middle = (mass < 0.5 * mass[-1]).sum(axis=0).clip(max=len(x) - 1)
    return np.take_along_axis(x, np.take_along_axis(order, middle[None], axis=0), axis=0)[0]


class Tailed(NamedTuple):
    """μ about a fixed origin, σ² not below its floor, ν."""

    shift: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    floor: np.ndarray
    df: np.ndarray


class Student(Gaussian):
    """Student's t of several columns, x = μ + σ ε / √u with one u ~ Gamma(ν/2, ν/2) per row: far rows pull less.

    E u_ik = (ν_k + p_i)/(ν_k + δ_ik), δ the squared distance in units of σ over the p_i observed cells, weighs the row
    in the means and variances (Peel & McLachlan 2000).

    Parameters
    ----------
    df : float, optional
        Degrees of freedom ν; by default each component's are estimated, within 0.1 and 1000.
    """

    sparse: ClassVar[bool] = False
    LOW, HIGH = 0.1, 1000.0

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
        gap = (x - _medians(x, w, some)) * some
        width = 3.0 * _medians(np.abs(gap), w, some)
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
        means, variances = _mean_and_variance(N, M, A, B, P, P.floor)
        if self.df is not None:
            return P._replace(means=means, variances=variances)
        target = -1.0 - ratio(C, n, np.full(len(n), -1.0))
        low, high = np.full(len(n), np.log(self.LOW)), np.full(len(n), np.log(self.HIGH))
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


FAMILIES: dict[str, type[Family]] = {
    f.__name__.lower(): f for f in (Gaussian, Bernoulli, Categorical, Multinomial, Poisson, Exponential, Student)
}
