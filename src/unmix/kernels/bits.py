"""Boolean matrices as packed bits: product, cover, error, subsets, intersections.

A Boolean matrix of n rows and d columns is B, uint64 of shape (n, w), w = words(d) = ⌈d/64⌉: cell j of a row is bit
j mod 64 of word j div 64, and the bits behind the last cell are 0. It takes an eighth of a byte for a cell.

    pack(X)  (n, d) → (n, w)                unpack(B, d)  (n, w) → (n, d) bool
    turned(B, d)  (n, w) → (d, words(n))    the transposed matrix
    popcount(B)  → (n,)                     how many cells of each row are 1
    product(Z, U)  Z = (n, words(k)), U = (k, w) → (n, w)       (Z ⊗ U)_ij = ∨_k z_ik ∧ u_kj
    errors(X, Y)  → lost (n,), extra (n,)   cells of each row that are 1 in X alone, and in Y alone
    within(A, B)  (a, w), (b, w) → (a, b) bool                  whether row i of A is a subset of row j of B
    shared(A, B)  (a, w), (b, w) → (a, b) int32                 how many cells rows i and j have in common
    meet(Z, U)  Z = (n, words(k)), U = (k, w) → (n, w)          what rows k of U with z_ik = 1 all have (none: all ones)
    below(R, N)  (n, w), (n, w) → (n, w)    ∨ N_j over the rows j with R_j ⊂ R_i (of equal ones those before i)

Where one of many is asked for, `A & B`, `A | B` and `A & ~B` are NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from unmix.kernels import inlined, kernel

WORD = 64  # bits


@intrinsic
def ones_in(_context, bits):
    """How many bits are set."""

    def code(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(bits), code


@intrinsic
def lowest_bit(_context, bits):
    """The place of the lowest bit that is set."""

    def code(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(bits), code


def words(d: int) -> int:
    """How many words hold d cells."""
    return -(-d // WORD)


def pack(X: Any) -> np.ndarray:
    """Rows as bits: 1 where a cell is not 0. X is dense or CSR."""
    n, d = X.shape
    if sp.issparse(X):
        out = np.zeros((n, words(d)), np.uint64)
        row = np.repeat(np.arange(n), np.diff(X.indptr))[X.data != 0]
        column = X.indices[X.data != 0].astype(np.int64)
        set_bits(out, row, column)
        return out
    cells = np.asarray(X)
    cells = cells if cells.dtype == bool else cells != 0
    out = np.zeros((n, 8 * words(d)), np.uint8)
    out[:, : -(-d // 8)] = np.packbits(cells, axis=1, bitorder="little")
    return out.view("<u8").astype(np.uint64, copy=False)


def unpack(B: np.ndarray, d: int) -> np.ndarray:
    """The first d cells of each row, as truth values."""
    raw = np.ascontiguousarray(B).astype("<u8", copy=False).view(np.uint8).reshape(len(B), 8 * B.shape[1])
    if raw.shape[1] == 0:
        return np.zeros((len(B), d), bool)
    return np.unpackbits(raw, axis=1, count=d, bitorder="little").view(bool)


def turned(B: np.ndarray, d: int) -> np.ndarray:
    """The transposed matrix of d rows."""
    return pack(unpack(B, d).T)


def popcount(B: np.ndarray) -> np.ndarray:
    """How many cells of each row are 1."""
    return np.asarray(np.bitwise_count(B).sum(axis=-1, dtype=np.int64))


def errors(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells of each row that are 1 in X alone, and in Y alone."""
    return popcount(X & ~Y), popcount(Y & ~X)


@kernel()
def set_bits(out, row, column):
    """Set one cell after another."""
    for t in range(len(row)):
        j = column[t]
        out[row[t], j >> 6] |= np.uint64(1) << np.uint64(j & 63)


@inlined()
def is_within(A, i, B, j):
    """Whether row i of A is a subset of row j of B."""
    for w in range(A.shape[1]):  # noqa: SIM110  which compiles to no loop
        if A[i, w] & ~B[j, w]:
            return False
    return True


@inlined()
def is_equal(A, i, B, j):
    """Whether two rows are the same."""
    for w in range(A.shape[1]):  # noqa: SIM110
        if A[i, w] != B[j, w]:
            return False
    return True


def product(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The Boolean product: row i is the union of those rows of U that z_i names."""
    out = np.empty((len(Z), U.shape[1]), np.uint64)  # NumPy asks for large pages, where the system has them
    unions(Z, U, out)
    return out


@kernel()
def unions(Z, U, out):
    """Sets the product."""
    w = U.shape[1]
    for i in range(len(Z)):
        fresh = True
        for t in range(Z.shape[1]):
            left = Z[i, t]
            while left:
                k = t * 64 + lowest_bit(left)
                left &= left - np.uint64(1)
                if fresh:
                    for c in range(w):
                        out[i, c] = U[k, c]
                    fresh = False
                else:
                    for c in range(w):
                        out[i, c] |= U[k, c]
        if fresh:
            for c in range(w):
                out[i, c] = np.uint64(0)


@kernel()
def meet(Z, U):
    """Row i is what all of those rows of U have in common that z_i names."""
    n, w = Z.shape[0], U.shape[1]
    out = np.full((n, w), ~np.uint64(0))
    for i in range(n):
        for t in range(Z.shape[1]):
            left = Z[i, t]
            while left:
                k = t * 64 + lowest_bit(left)
                left &= left - np.uint64(1)
                for c in range(w):
                    out[i, c] &= U[k, c]
    return out


@kernel()
def within(A, B):
    """Whether row i of A is a subset of row j of B, for all pairs."""
    out = np.zeros((A.shape[0], B.shape[0]), np.bool_)
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            out[i, j] = is_within(A, i, B, j)
    return out


@kernel()
def shared(A, B):
    """How many cells rows i and j have in common, for all pairs."""
    out = np.zeros((A.shape[0], B.shape[0]), np.int32)
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            total = np.uint64(0)
            for w in range(A.shape[1]):
                total += ones_in(A[i, w] & B[j, w])
            out[i, j] = np.int32(total)
    return out


@kernel()
def below(R, N):
    """The union of N_j over the rows j with R_j within R_i; of equal rows those before i."""
    n = R.shape[0]
    out = np.zeros_like(N)
    for i in range(n):
        for j in range(n):
            if i != j and is_within(R, j, R, i) and (j < i or not is_equal(R, i, R, j)):
                for w in range(N.shape[1]):
                    out[i, w] |= N[j, w]
    return out
