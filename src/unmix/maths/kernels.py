"""Kernels K(x, y) = ⟨φ(x), φ(y)⟩ of rows, the matrix of those of all rows, and rows whose φ span the others'."""

from __future__ import annotations

from numbers import Real
from types import NoneType
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from unmix.maths.distances import about_one, squares
from unmix.maths.seeding import far_apart

KERNELS = "additive_chi2 chi2 cosine laplacian linear poly polynomial precomputed rbf sigmoid"
PARAMETERS = {
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "chi2": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "polynomial": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}
CELLS = 1 << 19  # of the matrix that are made at a time, so that they are still in the cache when they become kernels
SPANNED = 1e-10  # of ‖φ(x)‖²: a row of which so little is left adds nothing but rounding


class Kernel:
    """A kernel with its parameters; linear and radial ones are measured from a shift, on which only rounding depends.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNELS`, or a function of two rows.
    gamma, degree, coef0
        Of the kernels that have them; gamma=None for 1/d ("chi2": 1).
    own : dict
        More parameters: of a function, or in place of those above.
    """

    def __init__(self, kernel: Any, gamma: Any = None, degree: Any = 3, coef0: Any = 1, own: Any = None) -> None:
        self.kernel, self.own = kernel, own or {}
        names = PARAMETERS.get(kernel, ()) if isinstance(kernel, str) else ()
        every = {"gamma": gamma, "degree": degree, "coef0": coef0}
        self.params = {k: every[k] for k in names}
        if kernel == "chi2" and gamma is None:
            del self.params["gamma"]  # whose default is 1, not 1/d
        self.params |= self.own

    @property
    def semidefinite(self) -> bool:
        """Whether it is known to be positive semi-definite: then distances and variances are what they should be."""
        if self.kernel in ("poly", "polynomial"):
            return self.params["coef0"] >= 0 and float(self.params["degree"]).is_integer()
        return self.kernel in ("linear", "rbf", "laplacian", "chi2", "cosine")

    def check(self) -> None:
        """Refuse parameters that the kernel does not take."""
        if isinstance(self.kernel, str):
            takes = PARAMETERS.get(self.kernel, ())
            for name, value in self.own.items():
                if name not in takes:
                    raise ValueError(
                        f"kernel_params has {name!r}, but kernel={self.kernel!r} takes {' and '.join(takes) or 'none'}"
                    )
                if not isinstance(value, (Real, NoneType)):
                    raise ValueError(f"kernel_params has {name}={value!r}: give a number")

    def squares(self, x: Any, shift: np.ndarray) -> np.ndarray:
        """K(x_i, x_i)."""
        x, n = x.astype(np.float64, copy=False), x.shape[0]
        if self.kernel == "linear":
            if sp.issparse(x):
                return squares(x) - 2 * (x @ shift) + shift @ shift
            x = x - shift
            return np.asarray(np.einsum("ij,ij->i", x, x))
        if self.kernel in ("rbf", "laplacian", "chi2"):
            return np.ones(n)
        if callable(self.kernel):
            each = (x[[i]] for i in range(n)) if sp.issparse(x) else iter(x)
            return np.array([float(self.kernel(v, v, **self.own)) for v in each])
        parts = (x[a : a + 32] for a in range(0, n, 32))
        return np.concatenate([np.diagonal(self.between(part, part, shift)) for part in parts])

    def between(self, x: Any, y: Any, shift: np.ndarray) -> np.ndarray:
        """K(x_i, y_j)."""
        x, y = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
        sparse = sp.issparse(x) or sp.issparse(y)
        if self.kernel not in ("linear", "rbf"):
            return self._named(x, y)
        x, y = (x, y) if sparse else (x - shift, y - shift)
        inner = np.ascontiguousarray(dense_product(x, y))
        if self.kernel == "rbf":
            return self._radial(inner, squares(x), squares(y), x.shape[1])
        if sparse:
            inner += shift @ shift - (x @ shift)[:, None] - y @ shift
        return inner

    def _radial(self, inner: np.ndarray, own: np.ndarray, other: np.ndarray, d: int) -> np.ndarray:
        """exp(−γ‖x − y‖²) in the place of the inner products of rows of these squared lengths."""
        from unmix.kernels.radial import radial

        gamma = self.params["gamma"]
        radial(inner, own, other, 1.0 / d if gamma is None else float(gamma))
        return inner

    def _named(self, x: Any, y: Any = None) -> np.ndarray:
        """The kernels that scikit-learn computes; without y those of x and itself, half of which are asked for."""
        from sklearn.metrics.pairwise import pairwise_kernels

        if self.kernel == "cosine":
            x, y = (v if v is None or sp.issparse(v) else about_one(v) for v in (x, y))
        if y is not None and sp.issparse(x) != sp.issparse(y):
            x, y = sp.csr_array(x), sp.csr_array(y)
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.asarray(pairwise_kernels(x, y, metric=self.kernel, **self.params), dtype=np.float64)
        if not np.isfinite(out).all():
            raise ValueError(
                f"kernel={self.kernel!r} gives values that are not finite for these rows: scale X, or lower gamma"
            )
        return out

    def matrix(self, x: Any, shift: np.ndarray) -> np.ndarray:
        """K(x_i, x_j) of all pairs of rows."""
        x, n = x.astype(np.float64, copy=False), x.shape[0]
        if callable(self.kernel):
            return self._named(x)
        out, step = np.empty((n, n)), max(1, CELLS // n)
        pieces = [slice(a, a + step) for a in range(0, n, step)]
        if self.kernel not in ("linear", "rbf") or sp.issparse(x):
            for piece in pieces:
                out[piece] = self.between(x[piece], x, shift)
            return out
        x = x - shift
        own = squares(x)
        for piece in pieces:
            np.matmul(x[piece], x.T, out=out[piece])
            if self.kernel == "rbf":
                self._radial(out[piece], own[piece], own, x.shape[1])
        return out


def dense_product(x: Any, y: Any) -> np.ndarray:
    """⟨x_i, y_j⟩ of dense or CSR rows, as an array."""
    out = x @ y.T
    return out.toarray() if sp.issparse(out) else np.asarray(out)


def landmarks(
    kernel: Kernel, x: Any, w: np.ndarray, m: int, shift: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """At most m rows whose φ span those of the others well, and the lower triangular L with L Lᵀ = K of these rows.

    Rows far apart in the space of the kernel, as k-means++ draws them: on six of seven sets they left less of the
    variance than uniform draws and than pivoted Cholesky decompositions, greedy or random, on the last one about as
    little. Those that the others span are left out.
    """
    own = kernel.squares(x, shift)

    def apart(some: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(own[:, None] + own[some] - 2 * kernel.between(x, x[some], shift), 0.0))

    index = np.unique(far_apart(w, m, rng, apart))
    K = kernel.matrix(x[index], shift)
    L, order, rank, _ = scipy.linalg.lapack.dpstrf(K, tol=SPANNED * float(np.abs(K.diagonal()).max()), lower=1)
    if rank == 0:  # φ(x) is 0 for all rows, and any of them will do
        return index[:1], np.ones((1, 1))
    return index[order[:rank] - 1], np.tril(L[:rank, :rank])
