"""Data that enter a model only through their moments: n, Σ x, Σ x xᵀ about one fixed origin.

The origin s can be taken out before the product or after it:

    Σ w (x−s)(x−s)ᵀ = Σ w x xᵀ − s aᵀ − a sᵀ + n s sᵀ        a = Σ w x

After it, the rows are used as they are: that is all that CSR rows allow, and it saves a copy of dense rows; but digits
cancel where s is large beside the spread of the rows, so dense rows go that way only where it is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block

NEAR = 16.0  # s² ≤ 16 spreads: at most log2(17) ≈ 4 of the 53 bits cancel
PEEK = 64  # rows that tell the spread


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
        sd = np.outer(self.sum, delta)
        return Moments(self.n, self.sum - self.n * delta, self.scatter - sd - sd.T + self.n * np.outer(delta, delta))

    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (from the origin s) and scatter about it: Σ w (x−μ)(x−μ)ᵀ."""
        mean = self.sum / self.n
        return mean, self.scatter - np.outer(mean, self.sum)


def moments(b: Block, shift: np.ndarray) -> Moments:
    """Moments of a complete block about `shift`; a block that already is moments comes back as it is."""
    if isinstance(b.x, Moments):
        return b.x
    if sp.issparse(b.x):
        xw = b.x if b.w is None else sp.diags_array(b.w) @ b.x
        total = np.asarray(xw.sum(axis=0, dtype=np.float64)).ravel()
        return Moments(b.total, total, (b.x.T @ xw).toarray().astype(np.float64)).about(shift.astype(np.float64))
    after = b.x.dtype == np.float64 and near(b.x, shift)
    x = b.x if after else b.x - shift
    total = np.add.reduce(x, axis=0, dtype=np.float64) if b.w is None else b.w @ x.astype(np.float64, copy=False)
    if b.w is not None:
        x = x * np.sqrt(b.w).astype(x.dtype)[:, None]
    m = Moments(b.total, total, x.T @ x)  # NumPy sees that it is a square: half the work (syrk)
    return m.about(shift) if after else m


def near(x: np.ndarray, shift: np.ndarray) -> bool:
    """Whether the origin lies within a few spreads of zero in every column, judged from some of the rows."""
    some = x[:: max(1, len(x) // PEEK)] - shift
    return bool((shift * shift * len(some) <= NEAR * np.einsum("ij,ij->j", some, some)).all())
