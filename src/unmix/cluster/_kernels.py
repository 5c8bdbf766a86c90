"""The kernel of a clustering, and the matrix of those of all its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unmix.engine.config import get_config
from unmix.maths.kernels import Kernel


def kernel_of(model: Any) -> Kernel:
    """The kernel that a model's parameters name."""
    return Kernel(model.kernel, model.gamma, model.degree, model.coef0, model.kernel_params)


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
