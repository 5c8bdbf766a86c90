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
