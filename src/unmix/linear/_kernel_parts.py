"""Components in the space of a kernel as parts of a model: v_a = Σ_j coef_ja φ(x_j), and m = Σ_j mean_j φ(x_j)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.config import get_config
from unmix.maths.arrays import Array
from unmix.maths.kernels import Kernel

CELLS = 1 << 20  # of a matrix of kernels that are made at a time


class Csr(NamedTuple):
    """Sparse rows."""

    data: Annotated[np.ndarray, Array("e")]
    indices: Annotated[np.ndarray, Array("e", "i", 0, "d-1")]
    indptr: Annotated[np.ndarray, Array("s+1", "i", 0)]


class Parts(NamedTuple):
    """U: the rows that components are made of, how, and where their scores are measured from.

    Of a precomputed kernel there are no rows, only their numbers.
    """

    rows: Annotated[np.ndarray, Array("r d")] | Csr
    coef: Annotated[np.ndarray, Array("s k")]
    offset: Annotated[np.ndarray, Array("k")]  # ⟨v_a, m⟩
    mean: Annotated[np.ndarray, Array("s")]
    square: Annotated[np.ndarray, Array(low=0.0)]  # ‖m‖²
    values: Annotated[np.ndarray, Array("k", low=0.0)]  # eigenvalues of the centred matrix
    scores: Annotated[np.ndarray, Array("s k")]  # z of the rows
    inner: Annotated[np.ndarray, Array("s")]  # ⟨φ(x_j), m⟩
    dual: Annotated[np.ndarray, Array("p d")]  # of the way back by ridge regression, or none
    shift: Annotated[np.ndarray, Array("d")]  # where linear and radial kernels are measured from
    least: float  # the least eigenvalue that showed, where no rounding made it negative; else 0
    landmarks: Annotated[np.ndarray, Array(kind="i", low=0)]  # how many rows stand for all (Nyström); 0: all rows do


def stored(x: Any) -> np.ndarray | Csr:
    """Rows as parts hold them."""
    if sp.issparse(x):
        return Csr(x.data.astype(np.float64), x.indices, x.indptr)
    return np.asarray(x, dtype=np.float64)


def rows_of(U: Any) -> Any:
    """The rows that parts hold, dense or CSR."""
    if not isinstance(U.rows, Csr):
        return U.rows
    return sp.csr_array(tuple(U.rows), shape=(len(U.rows.indptr) - 1, len(U.shift)))


def well_formed(U: Parts) -> bool:
    """Whether CSR rows from a file can be read."""
    if not isinstance(U.rows, Csr):
        return True
    ends = U.rows.indptr
    return bool(ends[0] == 0 and ends[-1] == len(U.rows.data) and (np.diff(ends) >= 0).all())


def steps(n: int, width: int) -> range:
    """Where pieces of n rows begin, whose kernels with `width` others fit the cache and the memory budget."""
    return range(0, n, max(1, min(CELLS, get_config().budget // 64) // max(width, 1)))


def project(kernel: Kernel, U: Parts, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores ⟨φ(x) − m, v_a⟩ of rows, and ⟨φ(x), m⟩; a precomputed kernel has both in the rows themselves."""
    both = np.column_stack([U.coef, U.mean]).astype(np.float64)
    if kernel.kernel == "precomputed":
        out = x @ both
    else:
        rows, pieces = rows_of(U), steps(x.shape[0], len(both))
        out = np.empty((x.shape[0], both.shape[1]))
        for a in pieces:
            out[a : a + pieces.step] = kernel.between(x[a : a + pieces.step], rows, U.shift) @ both
    return out[:, :-1] - U.offset, out[:, -1]
