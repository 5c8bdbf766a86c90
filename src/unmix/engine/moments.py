"""Data that enter a model only through their moments: n, Σ x, Σ x xᵀ about one fixed origin.

The origin s can be taken out before the product or after it:

    Σ w (x−s)(x−s)ᵀ = Σ w x xᵀ − s aᵀ − a sᵀ + n s sᵀ        a = Σ w x

After it, the rows are used as they are: CSR rows allow nothing else, and dense rows save a copy, an eighth of the time.
But digits cancel where s is large beside the spread of the rows, so dense rows go that way only where it is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine import layout
from unmix.engine.block import Block

NEAR = 16.0  # s² up to so many variances: at most log2(17) ≈ 4 of the 53 bits cancel
PEEK = 64  # rows that tell the variances


class Moments(NamedTuple):
    """Σ w, Σ w (x−s) and Σ w (x−s)(x−s)ᵀ for the origin s: all that a Gaussian model needs of complete rows."""

    n: float
    sum: np.ndarray
    scatter: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """One summary row of d columns, so that a block of moments has a shape like a block of rows."""
        return 1, len(self.sum)

    @property
    def dtype(self) -> Any:
        """Always float64."""
        return self.scatter.dtype

    def about(self, delta: np.ndarray) -> Moments:
        """The same moments about the origin s + delta."""
        cross = np.outer(self.sum - (0.5 * self.n) * delta, delta)
        scatter = self.scatter - cross
        scatter -= cross.T
        return Moments(self.n, self.sum - self.n * delta, scatter)

    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean, measured from s, and the scatter about it."""
        mean = self.sum / self.n
        return mean, self.scatter - self.n * np.outer(mean, mean)


def moments(b: Block, shift: np.ndarray) -> Moments:
    """Moments of a complete block about `shift`; a block that already is moments comes back as it is."""
    if isinstance(b.x, Moments):
        return b.x
    x: Any = b.x
    if sp.issparse(x):
        xw = x if b.w is None else sp.diags_array(b.w) @ x
        total = np.asarray(xw.sum(axis=0, dtype=np.float64)).ravel()
        return Moments(b.total, total, (x.T @ xw).toarray().astype(np.float64)).about(shift.astype(np.float64))
    after = x.dtype == np.float64 and near(x, shift)
    if not after:
        x = x - shift
    if b.w is None:
        total = np.ones(len(x), x.dtype) @ x  # by BLAS: twice as fast as sum(), and x is centred where it is float32
    else:
        total = b.w.astype(x.dtype) @ x
        x = x * np.sqrt(b.w).astype(x.dtype)[:, None]
    m = Moments(b.total, total, x.T @ x)  # NumPy knows a square when it sees one: half the work
    return m.about(shift) if after else m


def near(x: np.ndarray, shift: np.ndarray) -> bool:
    """Whether the origin lies within a few standard deviations of zero in every column, judged from some rows."""
    some = x[:: max(1, len(x) // PEEK)] - shift
    return bool((shift * shift * len(some) <= NEAR * np.einsum("ij,ij->j", some, some)).all())


def block_rows(shape: layout.Shape) -> int | None:
    """Rows of a block whose moments are wanted: so many that adding d×d numbers costs little beside making them."""
    return None if shape.sparse else max(layout.block_rows(shape), 4 * shape.d)
