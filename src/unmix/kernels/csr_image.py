"""Σ w x yᵀ with y = xQ + c, and Σ w x, of CSR rows x and a few directions Q: a row is read once, for all products.

Q and the sums hold 8 or 16 numbers for each column of X, so that y stays in two registers and every nonzero meets one
short piece of memory in each. These pieces are fetched before their turn, and are whole cache lines where the arrays
begin with one: together that makes it four times as fast.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel
from unmix.kernels.lanes import fetch, fma, load8, splat8, store, times, wide

AHEAD = 32  # nonzeros that a piece of Q is fetched before its turn


@inlined()
def _one(data, indices, indptr, w, Q, c, out, squares, columns):
    """Do it with one register."""
    Q, sums, last = Q.reshape(Q.size), out.reshape(out.size), len(indices) - 1
    first, total, norm = load8(c, 0), load8(squares, 0), 0.0
    for i in range(len(w)):
        y, own = first, 0.0
        for t in range(indptr[i], indptr[i + 1]):
            x = data[t]
            fetch(Q, 8 * indices[min(t + AHEAD, last)])
            fetch(sums, 8 * indices[t])
            y = fma(splat8(x), load8(Q, 8 * indices[t]), y)
            own += np.float64(x) * np.float64(x)
        weighted = times(splat8(w[i]), y)
        total = fma(wide(weighted), wide(y), total)
        norm += w[i] * own
        for t in range(indptr[i], indptr[i + 1]):
            j = 8 * indices[t]
            columns[indices[t]] += w[i] * data[t]
            store(sums, j, fma(splat8(data[t]), weighted, load8(sums, j)))
    store(squares, 0, total)
    return norm


@inlined()
def _two(data, indices, indptr, w, Q, c, out, squares, columns):
    """Do it with two registers."""
    Q, sums, last = Q.reshape(Q.size), out.reshape(out.size), len(indices) - 1
    first, second, norm = load8(c, 0), load8(c, 8), 0.0
    total, other = load8(squares, 0), load8(squares, 8)
    for i in range(len(w)):
        y, z, own = first, second, 0.0
        for t in range(indptr[i], indptr[i + 1]):
            j, ahead, x = 16 * indices[t], 16 * indices[min(t + AHEAD, last)], data[t]
            fetch(Q, ahead)
            fetch(Q, ahead + 8)
            fetch(sums, j)
            fetch(sums, j + 8)
            v = splat8(x)
            y, z = fma(v, load8(Q, j), y), fma(v, load8(Q, j + 8), z)
            own += np.float64(x) * np.float64(x)
        weight = splat8(w[i])
        wy, wz = times(weight, y), times(weight, z)
        total, other = fma(wide(wy), wide(y), total), fma(wide(wz), wide(z), other)
        norm += w[i] * own
        for t in range(indptr[i], indptr[i + 1]):
            j, v = 16 * indices[t], splat8(data[t])
            columns[indices[t]] += w[i] * data[t]
            store(sums, j, fma(v, wy, load8(sums, j)))
            store(sums, j + 8, fma(v, wz, load8(sums, j + 8)))
    store(squares, 0, total)
    store(squares, 8, other)
    return norm


@kernel()
def add_image(data, indices, indptr, w, Q, c, out, squares, columns):
    """Add Σ w x yᵀ to out (d, k), Σ w y² to squares (k), Σ w x to columns (d); return Σ w |x|². k is 8 or 16."""
    if Q.shape[1] == 8:
        return _one(data, indices, indptr, w, Q, c, out, squares, columns)
    return _two(data, indices, indptr, w, Q, c, out, squares, columns)
