"""Kernels K(x, y) = ⟨φ(x), φ(y)⟩ of rows, and the matrix of those of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from types import NoneType
from typing import Any

import numpy as np

from unmix.engine.config import get_config
from unmix.maths.distances import about_one

KERNELS = "additive_chi2 chi2 cosine laplacian linear poly polynomial precomputed rbf sigmoid"
PARAMETERS = {
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "chi2": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "polynomial": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}


class Kernel:
    """A kernel with its parameters; a linear one is measured from a shift, on which only rounding depends."""

    def __init__(self, model: Any) -> None:
        self.kernel, self.own = model.kernel, model.kernel_params or {}
        names = PARAMETERS.get(self.kernel, ()) if isinstance(self.kernel, str) else ()
        every = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
        self.params = {k: every[k] for k in names}
        if self.kernel == "chi2" and model.gamma is None:
            del self.params["gamma"]  # whose default is 1, not 1/d
        self.params |= self.own

    @property
    def semidefinite(self) -> bool:
        """Whether it is known to be positive semi-definite: then no round of k-means makes the objective worse."""
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

    def squares(self, x: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """K(x_i, x_i)."""
        x = x.astype(np.float64)
        if self.kernel == "linear":
            x = x - shift
            return np.asarray(np.einsum("ij,ij->i", x, x))
        if self.kernel in ("rbf", "laplacian", "chi2"):
            return np.ones(len(x))
        if callable(self.kernel):
            return np.array([float(self.kernel(v, v, **self.own)) for v in x])
        parts = (x[a : a + 32] for a in range(0, len(x), 32))
        return np.concatenate([np.diagonal(self.between(part, part, shift)) for part in parts])

    def between(self, x: np.ndarray, y: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """K(x_i, y_j)."""
        x, y = x.astype(np.float64), y.astype(np.float64)
        if self.kernel == "linear":
            return np.asarray((x - shift) @ (y - shift).T)
        from sklearn.metrics.pairwise import pairwise_kernels

        if self.kernel == "cosine":
            x, y = about_one(x), about_one(y)
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.asarray(pairwise_kernels(x, y, metric=self.kernel, **self.params), dtype=np.float64)
        if not np.isfinite(out).all():
            raise ValueError(
                f"kernel={self.kernel!r} gives values that are not finite for these rows: scale X, or lower gamma"
            )
        return out


class Matrix:
    """The kernel matrix of all rows: held where it fits, otherwise computed again chunk by chunk."""

    def __init__(self, kernel: Kernel, rows: np.ndarray, w: np.ndarray) -> None:
        self.kernel, self.rows, self.w = kernel, rows, w
        self.shift = w @ rows.astype(np.float64) / w.sum()
        n, self.held = len(rows), None
        self.step = chunk(n, 1 << 22)
        if kernel.kernel == "precomputed":
            self.held, self.own = rows, np.diagonal(rows).astype(np.float64)
            return
        self.own = kernel.squares(rows, self.shift)
        if 8 * n * n <= get_config().budget:
            held = np.empty((n, n))
            for part, block in self.chunks():
                held[part] = block
            self.held = held

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows of the matrix, some at a time."""
        for a in range(0, len(self.rows), self.step):
            part = slice(a, a + self.step)
            yield (
                part,
                self.kernel.between(self.rows[part], self.rows, self.shift) if self.held is None else self.held[part],
            )

    def times(self, share: np.ndarray) -> np.ndarray:
        """Σ_j K(x_i, x_j) share_jk."""
        return np.concatenate([block @ share for _, block in self.chunks()])

    def apart(self, index: np.ndarray) -> np.ndarray:
        """‖φ(x_i) − φ(x_j)‖² of all rows and some."""
        if self.held is None:
            inner = self.kernel.between(self.rows, self.rows[index], self.shift)
        else:
            inner = self.held[:, index]
        return np.asarray(np.maximum(self.own[:, None] - 2 * inner + self.own[index], 0.0))


def chunk(n: int, cells: int) -> int:
    """How many rows of n cells to take at a time: no more than `cells`, nor an eighth of the memory budget."""
    return max(1, min(cells, get_config().budget // 64) // n)
