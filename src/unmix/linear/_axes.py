"""Principal axes as parts of a model, the projection of rows on them, and the Gaussian that they stand for."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.engine.moments import is_sparse
from unmix.engine.sample import centre_of
from unmix.maths import latent
from unmix.maths.arrays import Array
from unmix.maths.latent import Loadings
from unmix.maths.moments import Moments
from unmix.maths.spectra import rest


class Noise(NamedTuple):
    """What is left to σ²: the directions that the axes leave out, of those that the rows can vary in.

    For a model of maximum likelihood it is all of them, and at least one.
    """

    likelihood: bool = False

    def variance(self, total: float, values: np.ndarray, n: float, d: int) -> float:
        """σ², from the total variance and those along the axes."""
        return rest(total, values, d if self.likelihood else n, d)

    def precision(self, dtype: Any) -> float | None:
        """The precision of the rows, which says whether a direction varies, where one must be left."""
        return float(np.finfo(dtype).eps) if self.likelihood else None

    def most(self, n: int, d: int) -> int:
        """How many axes n rows can tell, where EM learns them: the others are left to σ²."""
        return max(min(n - 1, d) - 1, 0) if self.likelihood else max(min(n, d) - 1, 1)


LEFT_OUT = Noise()


class Axes(NamedTuple):
    """Mean, axes (rows) with their variances, mean variance of the other directions, total variance; all over n.

    `step` counts the steps that made them, `seed` is that of parallel analysis.
    """

    shift: Annotated[np.ndarray, Array("d")]
    mean: Annotated[np.ndarray, Array("d")]
    components: Annotated[np.ndarray, Array("a d")]
    variances: Annotated[np.ndarray, Array("a", low=0.0)]
    noise: Annotated[np.ndarray, Array(low=0.0)]
    total: Annotated[np.ndarray, Array(low=0.0)]
    step: Annotated[np.ndarray, Array(kind="i", low=0)]
    seed: Annotated[np.ndarray, Array("4", "i")]


class Subspace(Axes):
    """The same, and some more axes than asked for, which subspace iteration improves: no d×d matrix is ever made."""

    __slots__ = ()


def no_axes(sample: Block, rng: np.random.Generator | None, centred: bool = True) -> Axes:
    """Where a first step that needs no axes begins; without a generator where nothing will be drawn.

    Where axes are not centred, CSR rows are measured from zero.
    """
    shift = centre_of(sample) if centred or not is_sparse(sample.x) else np.zeros(sample.x.shape[1])
    seed = np.zeros(4, np.int64) if rng is None else rng.integers(2**32, size=4)
    zero = np.array(0.0)
    return Axes(shift, shift, np.zeros((0, sample.x.shape[1])), np.zeros(0), zero, zero, np.array(0), seed)


def project(U: Axes, b: Block) -> tuple[Any, np.ndarray, Any]:
    """Centred rows (None for CSR), z on all axes of U, and |x − μ|² (for CSR).

    Cells that were not observed are what the Gaussian expects of them, given the others.
    """
    x = b.x
    if is_sparse(x):
        z = x @ U.components.T - U.mean @ U.components.T
        return None, z, x.multiply(x).sum(axis=1) - 2.0 * (x @ U.mean) + U.mean @ U.mean
    x = x - U.mean
    if b.observed is not None:
        G = gaussian(U)
        expected = latent.infer(G, b.x, b.observed)[0] @ G.loadings
        x = np.where(b.observed, x, expected).astype(b.x.dtype)
    return x, x @ U.components.T, None


def gaussian(U: Axes, factor: float = 1.0) -> Loadings:
    """The latent model with the covariance of the parts times a factor; σ² not below what rounding leaves."""
    V, values, noise = U.components, U.variances * factor, float(U.noise) * factor
    if len(V) == V.shape[1]:  # nothing is left out: the smallest variance may stand for all directions that share it
        noise = float(values.min())
    precision = np.finfo(V.dtype).eps
    noise = max(noise, precision * float(values.max(initial=float(U.total) * factor)), np.finfo(float).tiny)
    W = np.sqrt(np.maximum(values - noise, 0.0))[:, None] * V
    d = V.shape[1]
    return Loadings(U.shift, U.mean, W, np.full(d, noise), np.zeros(d), np.eye(len(V)))


def log_density(U: Axes, b: Block, factor: float = 1.0) -> np.ndarray:
    """log p(x) of the observed cells of each row, in float64, by the Gaussian with the covariance times a factor.

    Moments count as one row: it has the sum over those that they stand for.
    """
    G = gaussian(U, factor)
    if b.observed is not None:
        return np.asarray(-latent.infer(G, b.x, b.observed)[1])
    n, (k, d), noise = 1.0, U.components.shape, float(G.noise[0])
    values = np.maximum(U.variances.astype(np.float64) * factor, noise)
    if isinstance(b.x, Moments):
        s = b.x.about(U.mean - U.shift)
        along = np.einsum("aj,aj->a", U.components @ s.scatter, U.components)
        n, squares, outside = s.n, along[None], np.array([max(float(np.trace(s.scatter) - along.sum()), 0.0)])
    else:
        x, z, square = project(U, b)
        squares = z.astype(np.float64) ** 2
        if x is None:
            outside = np.maximum(square - np.einsum("ia,ia->i", z, z), 0.0)
        else:
            r = x - z @ U.components
            outside = np.einsum("ij,ij->i", r, r)
    inside = squares @ (1.0 / values) if k else 0.0
    constant = n * (d * np.log(2 * np.pi) + np.log(values).sum() + (d - k) * np.log(noise))
    return np.asarray(-0.5 * (inside + (outside / noise if k < d else 0.0) + constant))
