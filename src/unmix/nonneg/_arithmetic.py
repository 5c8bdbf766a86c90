"""Products with dense or CSR rows, and the steps that the solvers share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from unmix.engine.block import Block
from unmix.engine.sources.arrays import csr_of

RELAXATION = 0.9  # how far a multiplicative step continues towards the neutral step s₂ (see `relaxed`)
SHARE_FLOOR = 1e-15  # share of a row's or part's total that a multiplicative step leaves, so that it can grow again
NOTHING = 1e-14  # share of the total of a row or part at which a number is at that floor
WIDE = {"SkylakeX", "Cooperlake", "SapphireRapids"}  # what OpenBLAS calls processors with registers of 512 bits
SMALL_PRODUCT = 1_000_000  # multiplications up to which OpenBLAS takes a product of matrices for small
SLIM = 32  # columns up to which its way for small ones is the faster
GRAM_NUMBERS = 1 << 17  # numbers in the Gram matrices of rows with holes that are made at a time
PAIR_NUMBERS = 1 << 22  # numbers in the products u_j u_jᵀ that are made at a time


@cache
def favours_small() -> bool:
    """Whether BLAS has a faster way for small matrices, as OpenBLAS has with registers of 512 bits."""
    return any(library.get("architecture") in WIDE for library in threadpool_info())


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B of a slim B; where BLAS favours small matrices, so many rows of A at a time that they are small.

    That takes half to three quarters of the time up to 32 columns. Where the rows are cut depends on the shape and on
    the kind of processor.
    """
    (n, d), k = a.shape, b.shape[1]
    pieces = -(-n * d * k // SMALL_PRODUCT)
    if pieces == 1 or k > SLIM or d * k > SMALL_PRODUCT or not favours_small():
        return np.asarray(a @ b)
    out = np.empty((n, k), a.dtype)
    for i in range(pieces):
        rows = slice(n * i // pieces, n * (i + 1) // pieces)
        np.matmul(a[rows], b, out=out[rows])
    return out


def ridge(gram: np.ndarray, l2: float) -> np.ndarray:
    """G + l2 I."""
    return gram + gram.dtype.type(l2) * np.eye(len(gram), dtype=gram.dtype) if l2 else gram


def times(x: Any, loads: np.ndarray) -> np.ndarray:
    """X Uᵀ, (n, k)."""
    if not sp.issparse(x):
        return product(x, loads)
    from unmix.kernels import nmf_csr

    out = np.empty((x.shape[0], loads.shape[1]), x.dtype)
    nmf_csr.times(x.data, x.indices, x.indptr, loads, out)
    return out


def transposed_times(x: Any, z: np.ndarray) -> np.ndarray:
    """Xᵀ Z, (d, k)."""
    if not sp.issparse(x):
        return product(x.T, z)
    from unmix.kernels import nmf_csr

    out = np.zeros((x.shape[1], z.shape[1]), x.dtype)
    nmf_csr.add_transposed_times(x.data, x.indices, x.indptr, z, out)
    return out


def rescaled(b: Block, scale: float) -> Block:
    """The block with its data divided by `scale`."""
    if scale == 1:
        return b
    x, unit = b.x, b.x.dtype.type(scale)
    return b._replace(x=csr_of(x.data / unit, x.indices, x.indptr, x.shape) if sp.issparse(x) else x / unit)


def double(a: Any) -> Any:
    """The array in float64: its sum with a number or with a float32 array is then in float64, too."""
    return a.astype(np.float64, copy=False)


def squares(b: Block) -> float:
    """Σ w ‖x‖²."""
    if not sp.issparse(b.x):
        alike = b.w is None and b.x.dtype == np.float64
        return float(np.vdot(b.x, b.x)) if alike else b.sum(np.vecdot(b.x, b.x))
    data = double(b.x.data)
    return float(data @ data if b.w is None else (np.repeat(b.w, np.diff(b.x.indptr)) * data) @ data)


def own_grams(loads: np.ndarray, observed: np.ndarray, l2: float) -> Iterator[tuple[slice, np.ndarray]]:
    """Σ_j u_j u_jᵀ + l2 over the columns j that a row shows, some rows at a time, laid out as `masked_hals` takes it.

    It is the product of all u_j u_jᵀ with 1 where a cell was observed and 0 elsewhere: nothing cancels.
    """
    from unmix.kernels.nmf_hals import LANES

    (n, d), k, real = observed.shape, loads.shape[1], loads.dtype
    row, column = np.tril_indices(k)
    rows = max(1, GRAM_NUMBERS // (len(row) * LANES)) * LANES
    wide = max(1, PAIR_NUMBERS // len(row))  # columns whose u_j u_jᵀ are made at a time

    def pairs(a: int) -> np.ndarray:
        some = np.ascontiguousarray(loads[a : a + wide].T)
        return some[row] * some[column]

    first = pairs(0)
    for top in range(0, n, rows):
        some = observed[top : top + rows]
        seen = np.zeros((-(-len(some) // LANES) * LANES, d), real)
        seen[: len(some)] = some
        seen = seen.reshape(-1, LANES, d).transpose(0, 2, 1)
        G = first @ seen[:, :wide]
        for a in range(wide, d, wide):
            G += pairs(a) @ seen[:, a : a + wide]
        G[:, row == column] += real.type(l2)
        yield slice(top, top + rows), G


def quotient(B: np.ndarray, D: np.ndarray) -> np.ndarray:
    """B / D, the factor of a multiplicative step; 1 where D is 0."""
    return np.divide(B, D, out=np.ones_like(D), where=D > 0)


def relaxed(r: np.ndarray, relaxation: float) -> np.ndarray:
    """s(r) = r + relaxation (r−1) min(r, 1): a factor r that goes further, without a check of the objective.

    The bound of a multiplicative step is q(s) = s − r log s. Both ends of s₂ = r² (r<1), 2r−1 (r>1) have
    q(s₂) ≤ q(1), and s lies between r and s₂.
    """
    return r + relaxation * (r - 1) * np.minimum(r, 1) if relaxation else r


def floored(loads: np.ndarray) -> np.ndarray:
    """Loads after a multiplicative step, with enough of each for it to grow again."""
    return np.maximum(loads, SHARE_FLOOR * loads.mean(axis=0))


def cleared(a: np.ndarray, axis: int) -> np.ndarray:
    """Numbers that multiplicative steps have brought to their floor, which is there so that they can grow, are 0."""
    return np.where(a <= NOTHING * a.sum(axis=axis, keepdims=True), a.dtype.type(0), a)


def stationarity(loads: np.ndarray, slope: np.ndarray, B: np.ndarray) -> float:
    """Σ u |g| + ū max(−g, 0) over Σ u b: the published `kkt_residual_`."""
    size = float(np.vdot(loads, B))
    if size <= 0:
        return 0.0
    down = np.maximum(-slope, 0)
    return float(np.vdot(loads, abs(slope)) + loads.mean(axis=0) @ down.sum(axis=0)) / size
