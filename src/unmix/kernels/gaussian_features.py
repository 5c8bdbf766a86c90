"""Densities and moments of K Gaussians by features: log π_k N(x | k) = η_k · T(x), moments Σ z T(x).

T(x) of 64 rows at a time, written once per product and never kept: it stays in the first caches. The products are made
by tiles (`tile.py`), of rows and components for the densities, of features and components for the moments: BLAS packs
operands of that size, which costs as much as the product.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel
from unmix.kernels.special import exponential, logarithm
from unmix.kernels.tile import LINE, NUMBERS, VALUES, accumulate, accumulate_one, multiply

ROWS = 64
FULL, DIAG, SPHERICAL, LINEAR = 0, 1, 2, 3  # which products of x follow (1, x)


@inlined()
def by_feature(x, shift, first, n, kind, T):
    """T(x − shift) of n rows from `first`, one row of T per feature; what is beyond these rows may be any numbers."""
    d = x.shape[1]
    for i in range(n):
        for j in range(d):
            T[1 + j, i] = x[first + i, j] - shift[j]
    at = 1 + d
    if kind == FULL:
        for a in range(d):
            for b in range(a, d):
                for i in range(ROWS):
                    T[at, i] = T[1 + a, i] * T[1 + b, i]
                at += 1
    elif kind == DIAG:
        for j in range(d):
            for i in range(ROWS):
                T[at + j, i] = T[1 + j, i] * T[1 + j, i]
    elif kind == SPHERICAL:
        for i in range(ROWS):
            T[at, i] = 0
        for j in range(d):
            for i in range(ROWS):
                T[at, i] += T[1 + j, i] * T[1 + j, i]


@inlined()
def by_row(x, shift, first, n, kind, own, T, F):
    """T(x − shift) but for its 1, of n rows from `first`, F numbers apart; `own` is room for the rows.

    All products of a row are written a line at a time: what is beyond their end is written over.
    """
    d, lanes = x.shape[1], LINE // x.itemsize
    wide = d + lanes
    if kind == FULL:
        for i in range(n):
            row = own[i * wide : i * wide + d]
            for j in range(d):
                row[j] = x[first + i, j] - shift[j]
        for i in range(n):
            row, at = own[i * wide : i * wide + d], i * F + d
            for a in range(d):
                for b in range(0, d - a, lanes):
                    multiply(own, i * wide + a + b, row[a], T, at + b)
                at += d - a
    for i in range(n):
        row, more = T[i * F : i * F + d], T[i * F + d : i * F + 2 * d]
        for j in range(d):
            row[j] = x[first + i, j] - shift[j]
        if kind == DIAG:
            for j in range(d):
                more[j] = row[j] * row[j]
        elif kind == SPHERICAL:
            more[0] = 0
            for j in range(d):
                more[0] += row[j] * row[j]


@inlined()
def normalise(p, least, top, total):
    """Turns columns of log π_k N(x | k) into responsibilities, in place, and `top` into log p(x); `total` is room."""
    K = len(p)
    for i in range(ROWS):
        top[i] = p[0, i]
        total[i] = 0
    for k in range(1, K):
        for i in range(ROWS):
            top[i] = max(top[i], p[k, i])
    for k in range(K):
        for i in range(ROWS):
            v = np.float64(p[k, i] - top[i])
            share = exponential(v)
            p[k, i] = share if v >= least else 0.0
            total[i] += p[k, i]
    for i in range(ROWS):
        top[i] += logarithm(total[i])
        total[i] = 1 / total[i]
    for k in range(K):
        for i in range(ROWS):
            p[k, i] *= total[i]


@kernel()
def responsibilities(x, shift, kind, eta, least, z, log_p):
    """Sets z to the responsibilities of each row, 0 where their logarithm is below `least`, and log_p to log p(x)."""
    n, (K, q) = len(x), eta.shape
    wide, lanes = -(-K // NUMBERS) * NUMBERS, VALUES * LINE // x.itemsize
    numbers = np.zeros(q * wide, x.dtype)
    for k in range(K):
        for f in range(q):
            numbers[f * wide + k] = eta[k, f]
    T, p = np.zeros((q, ROWS), x.dtype), np.empty((wide, ROWS), x.dtype)
    T[0] = 1
    top, total = np.empty(ROWS), np.empty(ROWS)
    features, sums = T.reshape(q * ROWS), p.reshape(wide * ROWS)
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        by_feature(x, shift, first, m, kind, T)
        for k in range(0, wide, NUMBERS):
            for t in range(0, m, lanes):
                accumulate(features, t, ROWS, numbers, k, wide, q, sums, k * ROWS + t, ROWS, 0)
        normalise(p[:K], least, top, total)
        for i in range(m):
            log_p[first + i] = top[i]
            for k in range(K):
                z[first + i, k] = p[k, i]


@inlined()
def weighted(z, w, first, n, out):
    """w_i z_i of n rows from `first`, and zeros."""
    for i in range(n):
        weight = w[first + i] if w.size else w.dtype.type(1)
        for k in range(z.shape[1]):
            out[i, k] = z[first + i, k] * weight
    out[n:] = 0


@kernel()
def moments(x, shift, kind, z, w, total):
    """Adds Σ_i w_i T(x_i) z_i to `total`, (features, K), in float64; all w_i are 1 where w is empty."""
    n, (q, K) = len(x), total.shape
    wide, lanes = -(-K // NUMBERS) * NUMBERS, LINE // x.itemsize
    F = -(-(q - 1) // lanes) * lanes
    whole = F - F % (VALUES * lanes)
    own = np.zeros(ROWS * (x.shape[1] + lanes) if kind == FULL else 0, x.dtype)
    T = np.zeros(ROWS * F + lanes, x.dtype)
    numbers, count = np.zeros((ROWS, wide), x.dtype), np.empty(wide, x.dtype)
    shares, sums, every = numbers.reshape(ROWS * wide), np.empty(wide * F, x.dtype), np.zeros(wide * F)
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        by_row(x, shift, first, m, kind, own, T, F)
        weighted(z, w, first, m, numbers)
        for k in range(0, wide, NUMBERS):
            for f in range(0, whole, VALUES * lanes):
                accumulate(T, f, F, shares, k, wide, m, sums, k * F + f, F, 0)
            for f in range(whole, F, lanes):
                accumulate_one(T, f, F, shares, k, wide, m, sums, k * F + f, F, 0)
        count[:] = 0
        for i in range(m):
            for k in range(wide):
                count[k] += numbers[i, k]
        for k in range(K):
            total[0, k] += count[k]
        for at in range(wide * F):
            every[at] += sums[at]
    for k in range(K):
        for f in range(q - 1):
            total[1 + f, k] += every[k * F + f]
