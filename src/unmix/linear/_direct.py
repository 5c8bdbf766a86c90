"""Principal axes of rows in memory: over the whole matrix, no step, since the start is the closed form.

"full"       singular values and vectors of √w (x − μ)
"arpack"     the leading ones, by Lanczos iteration; x is centred implicitly
otherwise    eigenvectors of the n×n Gram matrix, which has the same spectrum as the covariance, and their images
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.moments import is_sparse
from unmix.engine.sample import mean
from unmix.linear._axes import LEFT_OUT, Noise, Subspace
from unmix.linear._stage import Way
from unmix.maths.order import canonical
from unmix.maths.spectra import centred_gram, centred_operator, count, dual


class Direct(Way):
    """A closed form. Its parts are a subspace: where more rows come, subspace iteration continues from them."""

    name, over, most = "closed form", "whole", 0

    def __init__(self, wanted: Any, solver: str, tol: float, noise: Noise = LEFT_OUT, centred: bool = True) -> None:
        self.wanted, self.solver, self.tol, self.noise, self.centred = wanted, solver, tol, noise, centred

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Subspace:
        """The axes that are wanted."""
        x, w = data.x, data.w
        (n, d), weight = x.shape, float(x.shape[0] if w is None else w.sum())
        middle, half = mean(data), None if w is None else np.sqrt(w)
        centre = middle if self.centred else np.zeros(d)
        k = int(self.wanted) if isinstance(self.wanted, Integral) else min(n, d) - (self.solver == "arpack")
        if is_sparse(x) or self.solver == "arpack":
            var = variances(x, w, centre, weight)
            values, V = self._implicit(x, centre, half, weight, k, rng)
        else:
            y = (x - centre.astype(x.dtype)).astype(np.float64, copy=False)
            y = y if half is None else y * half[:, None]
            var = np.einsum("ij,ij->j", y, y) / weight
            values, V = self._explicit(y, weight, k)
        rows = weight if w is None else max(weight, float(np.count_nonzero(w)))
        k = count(self.wanted, values, V, var, rows, rng.integers(2**32, size=4), self.noise.precision(x.dtype))
        total = float(var.sum())
        noise, seed = self.noise.variance(total, values[:k], rows, d), np.zeros(4, np.int64)
        return Subspace(
            centre, middle, canonical(V[:k]), values[:k], np.array(noise), np.array(total), np.array(1), seed
        )

    def described(self, U: Any, data: Any) -> Described:
        """Axes."""
        return Described(Subspace)

    def _implicit(
        self, x: Any, centre: np.ndarray, half: np.ndarray | None, weight: float, k: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Variances and axes of rows that are not centred: CSR rows would become dense."""
        rows, narrow = centred_operator(x, centre, half), min(x.shape)
        if self.solver == "arpack":
            _, sigma, V = scipy.sparse.linalg.svds(rows, k=k, tol=self.tol, v0=rng.uniform(-1, 1, narrow))
            order = np.argsort(-sigma)
            return sigma[order] ** 2 / weight, V[order]
        return dual(centred_gram(x, centre, half) / weight, rows.rmatmat, k)

    def _explicit(self, rows: np.ndarray, weight: float, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Variances and axes of centred rows."""
        if self.solver == "full":
            _, sigma, V = scipy.linalg.svd(rows, full_matrices=False, check_finite=False)
            return sigma**2 / weight, V
        return dual(rows @ rows.T / weight, rows.T.__matmul__, k)


def variances(x: Any, w: np.ndarray | None, centre: np.ndarray, weight: float) -> np.ndarray:
    """Variance of each column, as E[x²] − μ²."""
    square = x.multiply(x) if is_sparse(x) else np.square(x, dtype=np.float64)
    square = square.T @ (np.ones(x.shape[0]) if w is None else w)
    return np.maximum(np.asarray(square).ravel() / weight - centre * centre, 0.0)
