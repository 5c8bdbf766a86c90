"""Σ w x yᵀ with y = xQ − c, of CSR rows x and a few directions Q: a row is read once, for both products.

Q and the sums hold k numbers for each column of X, at most 24, so that y stays in three registers and every nonzero
meets one short piece of memory in each. Registers overlap at the end of a piece, where they agree.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel
from unmix.kernels.lanes import fma, load8, splat8, store, times, wide

MOST = 24  # directions
LEAST = 8


@inlined()
def _two(data, indices, indptr, w, Q, c, out, squares):
    """Do it with two registers."""
    k, second = Q.shape[1], Q.shape[1] - 8
    Q, sums = Q.reshape(Q.size), out.reshape(out.size)
    c0, c1 = load8(c, 0), load8(c, second)
    s0, s1 = load8(squares, 0), load8(squares, second)
    norm = 0.0
    for i in range(len(w)):
        a, b, own = c0, c1, 0.0
        for t in range(indptr[i], indptr[i + 1]):
            j, x = indices[t] * k, data[t]
            v = splat8(x)
            a, b = fma(v, load8(Q, j), a), fma(v, load8(Q, j + second), b)
            own += np.float64(x) * np.float64(x)
        weight = splat8(w[i])
        wa, wb = times(weight, a), times(weight, b)
        s0, s1 = fma(wide(wa), wide(a), s0), fma(wide(wb), wide(b), s1)
        norm += w[i] * own
        for t in range(indptr[i], indptr[i + 1]):
            j, v = indices[t] * k, splat8(data[t])
            e, f = fma(v, wa, load8(sums, j)), fma(v, wb, load8(sums, j + second))
            store(sums, j, e)
            store(sums, j + second, f)
    store(squares, 0, s0)
    store(squares, second, s1)
    return norm


@inlined()
def _three(data, indices, indptr, w, Q, c, out, squares):
    """Do it with three registers."""
    k, third = Q.shape[1], Q.shape[1] - 8
    Q, sums = Q.reshape(Q.size), out.reshape(out.size)
    c0, c1, c2 = load8(c, 0), load8(c, 8), load8(c, third)
    s0, s1, s2 = load8(squares, 0), load8(squares, 8), load8(squares, third)
    norm = 0.0
    for i in range(len(w)):
        a, b, d, own = c0, c1, c2, 0.0
        for t in range(indptr[i], indptr[i + 1]):
            j, x = indices[t] * k, data[t]
            v = splat8(x)
            a, b, d = fma(v, load8(Q, j), a), fma(v, load8(Q, j + 8), b), fma(v, load8(Q, j + third), d)
            own += np.float64(x) * np.float64(x)
        weight = splat8(w[i])
        wa, wb, wd = times(weight, a), times(weight, b), times(weight, d)
        s0, s1, s2 = fma(wide(wa), wide(a), s0), fma(wide(wb), wide(b), s1), fma(wide(wd), wide(d), s2)
        norm += w[i] * own
        for t in range(indptr[i], indptr[i + 1]):
            j, v = indices[t] * k, splat8(data[t])
            e, f = fma(v, wa, load8(sums, j)), fma(v, wb, load8(sums, j + 8))
            g = fma(v, wd, load8(sums, j + third))
            store(sums, j, e)
            store(sums, j + 8, f)
            store(sums, j + third, g)
    store(squares, 0, s0)
    store(squares, 8, s1)
    store(squares, third, s2)
    return norm


@kernel()
def add_image(data, indices, indptr, w, Q, c, out, squares):
    """Add Σ w x yᵀ, y = xQ + c, to out (d, k) and Σ w y² to the squares (k); return Σ w |x|². 8 ≤ k ≤ 24."""
    if Q.shape[1] <= 16:
        return _two(data, indices, indptr, w, Q, c, out, squares)
    return _three(data, indices, indptr, w, Q, c, out, squares)
