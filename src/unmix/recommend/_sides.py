"""Users and items are alike: of each side a Gaussian for every member, and what the other side's equations need of it.

A member x = (factors, bias) has mean m and covariance C. The other side sees the row a = (factors, 1) of a design, an
offset (the bias), and their second moments. Symmetric matrices are the rows of their upper triangle.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block


class Side(NamedTuple):
    """What one side is to the other."""

    design: np.ndarray  # (m, p) E[a]
    offset: np.ndarray  # (m,) E[bias]
    second: np.ndarray  # (m, l) E[a aᵀ]
    cross: np.ndarray  # (m, p) Cov(a, bias)
    spread: np.ndarray  # (m,) Var(bias)


class Entries(NamedTuple):
    """What was observed, row after row."""

    values: np.ndarray
    columns: np.ndarray
    ends: np.ndarray
    d: int

    @property
    def lengths(self) -> np.ndarray:
        """How many entries each row has."""
        return np.diff(self.ends)

    def by_column(self) -> Entries:
        """The same, column after column."""
        n = len(self.ends) - 1
        csc = sp.csr_array((self.values, self.columns, self.ends), shape=(n, self.d)).tocsc()
        return Entries(csc.data, csc.indices, csc.indptr, n)

    def weight_of_columns(self, w: np.ndarray) -> np.ndarray:
        """The weights of the rows that hold an entry in each column, added up."""
        return np.bincount(self.columns, np.repeat(w, self.lengths), self.d)


def entries(b: Block, dtype: Any = np.float64) -> Entries:
    """What was observed in a block: the entries of CSR rows, or the observed cells of dense ones."""
    x = b.x
    if not sp.issparse(x):
        seen = np.ones(x.shape, bool) if b.observed is None else b.observed
        ends = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        where = np.nonzero(seen)[1].astype(np.int32)
        return Entries(x[seen].astype(dtype), where, ends.astype(np.int32), x.shape[1])
    return Entries(x.data.astype(dtype, copy=False), x.indices, x.indptr, x.shape[1])


@cache
def pairs(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and how often each entry of an upper triangle occurs in the matrix."""
    a, b = np.triu_indices(p)
    return a, b, np.where(a == b, 1.0, 2.0)


def packed(square: np.ndarray) -> np.ndarray:
    """The upper triangles of symmetric matrices."""
    a, b, _ = pairs(square.shape[-1])
    return square[..., a, b]


def squares(triangle: np.ndarray, p: int) -> np.ndarray:
    """The symmetric matrices of upper triangles."""
    a, b, _ = pairs(p)
    out = np.empty((*triangle.shape[:-1], p, p))
    out[..., a, b] = out[..., b, a] = triangle
    return out


def outer(mean: np.ndarray) -> np.ndarray:
    """m mᵀ of every row."""
    a, b, _ = pairs(mean.shape[1])
    return np.asarray(mean[:, a] * mean[:, b])


def design_of(mean: np.ndarray, biases: bool) -> tuple[np.ndarray, np.ndarray]:
    """The rows that the other side sees, and their offsets."""
    mean = np.ascontiguousarray(mean, dtype=np.float64)
    if not biases:
        return mean, np.zeros(len(mean))
    design = mean.copy()
    design[:, -1] = 1.0
    return design, mean[:, -1].copy()


def side_of(mean: np.ndarray, covariance: np.ndarray, biases: bool) -> Side:
    """What the other side's equations need of these means and covariances; without the latter they are 0."""
    design, offset = design_of(mean, biases)
    p, second = mean.shape[1], outer(design)
    cross, spread = np.zeros(design.shape), np.zeros(len(design))
    if covariance.shape[1]:
        own = pairs(p)[1] == p - 1  # where the bias is
        covariance = covariance.astype(np.float64, copy=False)
        if biases:
            second[:, ~own] += covariance[:, ~own]
            cross[:, :-1], spread = covariance[:, own][:, :-1], covariance[:, -1].copy()
        else:
            second += covariance
    return Side(design, offset, second, cross, spread)


def in_lines(design: np.ndarray, dtype: Any) -> np.ndarray:
    """The rows of a design one after the other, each of whole cache lines, in numbers of this kind."""
    m, k = design.shape
    wide, line = -(-k // 16) * 16, 64 // np.dtype(dtype).itemsize
    room = np.zeros(m * wide + line, dtype)
    skip = -(room.ctypes.data // room.itemsize) % line
    flat = room[skip : skip + m * wide]
    flat.reshape(m, wide)[:, :k] = design
    return flat


def weights_of(b: Block, n: int) -> np.ndarray:
    """The weights of a block's rows."""
    return np.ones(n) if b.w is None else b.w


def weighted_sum(w: Any, rows: np.ndarray) -> np.ndarray:
    """Σ w of rows."""
    return np.asarray(w @ rows)
