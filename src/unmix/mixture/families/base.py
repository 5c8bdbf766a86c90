"""Families of distributions for `Mixture`: what one component says about its columns.

A family gives the log-densities of rows under K components, additive statistics of rows weighted by responsibilities,
and the parameters of largest likelihood given them. Parameters P are a (named) tuple of arrays. x holds 0 where a cell
is missing; `seen` is 1.0 where a cell was observed and 0.0 elsewhere, or None where all were. All is in float64.

Each update is the maximum of Σ_ik z_ik log p_k(x_i), within bounds that keep logarithms finite: so EM never gets worse.
Statistics that no rows can have are a LinAlgError: only extrapolation makes them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from unmix.engine import tree
from unmix.maths.arrays import Array
from unmix.maths.gaussian import mixed

PROBABILITY_FLOOR = 1e-15  # below which a probability counts as this, so that its logarithm is a number
ROUNDING = 1e-9  # share by which sums of rows may miss their bounds
DIVISOR_FLOOR = 1e-300  # below which a divisor counts as this


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
    other = A.sum(axis=0) / np.maximum(N.sum(axis=0), DIVISOR_FLOOR) if before is None else before
    return np.where(N > 0, A / np.maximum(N, DIVISOR_FLOOR), other)


def possible(condition: Any) -> None:
    """Statistics that no rows can have are an error."""
    if not np.all(condition):
        raise np.linalg.LinAlgError("statistics that no rows can have")


def filled(x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
    """x, its missing cells at the weighted mean of their column."""
    return x if seen is None else x + (1.0 - seen) * (w @ x / np.maximum(w @ seen, DIVISOR_FLOOR))


KJ = Annotated[np.ndarray, Array("k j")]  # of statistics
K = Annotated[np.ndarray, Array("k")]


class MisfitError(ValueError):
    """A cell that a family cannot have made: which of the family's columns, and what is wrong."""

    def __init__(self, column: int, what: str) -> None:
        super().__init__(f"column {column} (of those of the family) {what}")
        self.column, self.what = int(column), what


class Family:
    """Base of all families: a subclass needs `log_density`, `stats` and `update`, and `sample` to be sampled.

    To impute, it needs `mean` and `variance`, and `sample` for draws.

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
    parameters: ClassVar[Any] = Any  # what P and the statistics from a file must look like: `engine/described.py`
    statistics: ClassVar[Any] = Any

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
        names = tree.names(P) or [""] * len(P)
        return tree.rebuild(
            P, [a if name in (self.shared or ()) else a[index] for name, a in zip(names, P, strict=True)]
        )

    def n_parameters(self, P: Any) -> int:
        """How many numbers the data could choose: by default every number of P."""
        return sum(int(np.size(a)) for a in tree.leaves(P))

    def sample(self, P: Any, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draw n rows of component k."""
        raise NotImplementedError(f"{type(self).__name__} does not implement `sample`")

    def mean(self, P: Any) -> np.ndarray | None:
        """The mean row of each component (K, d), or None where it has none."""
        return None

    def variance(self, P: Any) -> np.ndarray | None:
        """The variance of each cell of a component (K, d), or None where it has none."""
        return None

    def cells(self, P: Any, x: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of missing cells under each component, (K, n, d) or (K, 1, d), given the observed ones."""
        mean, variance = self.mean(P), self.variance(P)
        if mean is None or variance is None:
            raise ValueError(
                f"the family {type(self).__name__} does not say what a missing cell should be: give it the methods "
                "`mean` and `variance`"
            )
        return mean[:, None], variance[:, None]

    def complete(self, P: Any, x: np.ndarray, seen: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is expected of missing cells, and their standard deviations, where components have shares z (n, K)."""
        mean, variance = mixed(z.T, *self.cells(P, x, seen))
        return mean, np.sqrt(variance)

    def draw(self, P: Any, k: int, x: np.ndarray, seen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Draw the missing cells of rows of component k, given the observed ones; by default these say nothing."""
        return self.sample(P, k, len(x), rng)

    def public(self, P: Any) -> dict[str, np.ndarray]:
        """The parameters by name."""
        return dict(zip(tree.names(P) or map(str, range(len(P))), P, strict=True))

    def notes(self, P: Any) -> list[str]:
        """What the user should know about these parameters."""
        return []

    def allowed(self, x: np.ndarray) -> np.ndarray | bool:
        """Which values a cell may have."""
        return True

    def check(self, x: Any, seen: np.ndarray | None) -> None:
        """Raise a ValueError where a cell has a value that the family cannot have made."""
        name = type(self).__name__
        if seen is not None and not self.missing:
            i, j = np.argwhere(seen == 0)[0]
            raise MisfitError(j, f"has a missing cell in row {i} of a block, and the family {name} needs every cell")
        bad = ~np.asarray(self.allowed(x.data if sp.issparse(x) else x))
        if not bad.any():
            return
        if sp.issparse(x):
            raise ValueError(f"a cell of X holds {x.data[bad][0]:.6g}, but the family {name} needs {self.needs}")
        bad = bad if seen is None else bad & (seen > 0)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise MisfitError(
                j,
                f"holds {x[i, j]:.6g}, but the family {name} needs {self.needs}: take another family for it, or NaN "
                "for what was not observed",
            )

    def features(self, x: Any, w: np.ndarray, seen: np.ndarray | None) -> Any:
        """Columns in which distance means something, for the k-means of the start: x over its standard deviations."""
        n = np.maximum(np.full(x.shape[1], w.sum()) if seen is None else w @ seen, DIVISOR_FLOOR)
        mean = np.asarray(w @ x).ravel() / n
        if sp.issparse(x):
            variance = np.asarray(w @ (x * x)).ravel() / n - mean**2
            return sp.csr_array(x / np.where(variance > 0, np.sqrt(np.maximum(variance, DIVISOR_FLOOR)), 1.0))
        gap = x - mean if seen is None else (x - mean) * seen
        width = np.sqrt(w @ (gap * gap) / n)
        return gap / np.where(width > 0, width, 1.0)
