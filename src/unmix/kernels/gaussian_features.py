"""Densities and moments of K Gaussians by features: log π_k N(x | k) = η_k · T(x), moments Σ z T(x).

T(x) of 64 rows at a time, written once per product and never kept: it stays in the first caches. Where registers are
of 512 bits, BLAS makes the products: they are of a size at which it does not pack its operands. Elsewhere it packs, and
tiles (`tile.py`) are faster: of rows and components for the densities, of features and components for the moments.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel
from unmix.kernels.special import exponential, logarithm
from unmix.kernels.tile import LINE, NUMBERS, VALUES, accumulate, accumulate_one, multiply, registers

ROWS = 64
BLAS = registers()[1] == LINE
FULL, DIAG, SPHERICAL, LINEAR = 0, 1, 2, 3  # which products of x follow (1, x)


@inlined()
def by_feature(x, shift, first, n, kind, xt, T):
    """T(x − shift) of n rows from `first`, one row of T per feature; xt is room for the transposed rows."""
    d = len(xt)
    for i in range(n):
        for j in range(d):
            xt[j, i] = x[first + i, j] - shift[j]
    for i in range(ROWS):
        T[0, i] = 1
    for j in range(d):
        for i in range(ROWS):
            T[1 + j, i] = xt[j, i]
    at = 1 + d
    if kind == FULL:
        for a in range(d):
            for b in range(a, d):
                for i in range(ROWS):
                    T[at, i] = xt[a, i] * xt[b, i]
                at += 1
    elif kind == DIAG:
        for j in range(d):
            for i in range(ROWS):
                T[at + j, i] = xt[j, i] * xt[j, i]
    elif kind == SPHERICAL:
        for i in range(ROWS):
            T[at, i] = 0
        for j in range(d):
            for i in range(ROWS):
                T[at, i] += xt[j, i] * xt[j, i]


@inlined()
def by_row(x, shift, first, n, kind, own, T, F):
    """T(x − shift) of n rows from `first`, F numbers apart; `own` is room for the rows.

    Products of a row are written a line at a time: what is beyond their end is written over.
    """
    d, lanes = x.shape[1], LINE // x.itemsize
    wide = d + lanes
    for i in range(n):
        row = own[i * wide : i * wide + d]
        for j in range(d):
            row[j] = x[first + i, j] - shift[j]
    for i in range(n):
        row, out = own[i * wide : i * wide + d], T[i * F : i * F + 1 + 2 * d]
        if kind == FULL:
            at = i * F + 1 + d
            for a in range(d):
                for b in range(0, d - a, lanes):
                    multiply(own, i * wide + a + b, row[a], T, at + b)
                at += d - a
        elif kind == DIAG:
            for j in range(d):
                out[1 + d + j] = row[j] * row[j]
        elif kind == SPHERICAL:
            out[1 + d] = 0
            for j in range(d):
                out[1 + d] += row[j] * row[j]
    for i in range(n):
        row, out = own[i * wide : i * wide + d], T[i * F : i * F + 1 + d]
        out[0] = 1
        for j in range(d):
            out[1 + j] = row[j]


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
    n, d = x.shape
    K, q = eta.shape
    wide, lanes = -(-K // NUMBERS) * NUMBERS, VALUES * LINE // x.itemsize
    numbers = np.zeros(q * wide, x.dtype)
    for k in range(K):
        for f in range(q):
            numbers[f * wide + k] = eta[k, f]
    xt, T, p = np.zeros((d, ROWS), x.dtype), np.empty((q, ROWS), x.dtype), np.empty((wide, ROWS), x.dtype)
    top, total = np.empty(ROWS), np.empty(ROWS)
    features, sums = T.reshape(q * ROWS), p.reshape(wide * ROWS)
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        by_feature(x, shift, first, m, kind, xt, T)
        if BLAS:
            np.dot(eta, T, p[:K])
        else:
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


@inlined()
def by_blas(x, shift, kind, z, w, total):
    """The moments, by products of matrices."""
    (n, d), (q, K) = x.shape, total.shape
    xt, T = np.zeros((d, ROWS), x.dtype), np.empty((q, ROWS), x.dtype)
    numbers, piece = np.empty((ROWS, K), x.dtype), np.empty((q, K), x.dtype)
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        by_feature(x, shift, first, m, kind, xt, T)
        weighted(z, w, first, m, numbers)
        np.dot(T, numbers, piece)
        for f in range(q):
            for k in range(K):
                total[f, k] += piece[f, k]


@inlined()
def by_tiles(x, shift, kind, z, w, total):
    """The moments, tile by tile."""
    n, (q, K) = len(x), total.shape
    wide, lanes = -(-K // NUMBERS) * NUMBERS, LINE // x.itemsize
    F = -(-q // lanes) * lanes
    whole = F - F % (VALUES * lanes)
    own, T = np.zeros(ROWS * (x.shape[1] + lanes), x.dtype), np.zeros(ROWS * F + lanes, x.dtype)
    numbers, piece = np.zeros((ROWS, wide), x.dtype), np.empty((wide, F), x.dtype)
    shares, sums = numbers.reshape(ROWS * wide), piece.reshape(wide * F)
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        by_row(x, shift, first, m, kind, own, T, F)
        weighted(z, w, first, m, numbers)
        for k in range(0, wide, NUMBERS):
            for f in range(0, whole, VALUES * lanes):
                accumulate(T, f, F, shares, k, wide, m, sums, k * F + f, F, 0)
            for f in range(whole, F, lanes):
                accumulate_one(T, f, F, shares, k, wide, m, sums, k * F + f, F, 0)
        for k in range(K):
            for f in range(q):
                total[f, k] += piece[k, f]


@kernel()
def moments(x, shift, kind, z, w, total):
    """Adds Σ_i w_i T(x_i) z_i to `total`, (features, K), in float64; all w_i are 1 where w is empty."""
    if BLAS:
        by_blas(x, shift, kind, z, w, total)
    else:
        by_tiles(x, shift, kind, z, w, total)
