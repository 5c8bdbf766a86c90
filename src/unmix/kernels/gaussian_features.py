"""Densities and moments of K Gaussians by features: log π_k N(x | k) = η_k · T(x), moments Σ z T(x).

T(x) of 64 rows at a time, written once per product and never kept: it stays in the first caches, and the products are
of a size at which BLAS does not pack its operands.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel

ROWS = 64
FULL, DIAG, SPHERICAL, LINEAR = 0, 1, 2, 3  # which products of x follow (1, x)


@inlined()
def fill(x, shift, first, kind, xt, T):
    """T(x − shift) of the rows from `first`, one row of T per feature; xt is room for the transposed rows."""
    d, n = xt.shape
    for i in range(n):
        for j in range(d):
            xt[j, i] = x[first + i, j] - shift[j]
    for i in range(n):
        T[0, i] = 1
    for j in range(d):
        for i in range(n):
            T[1 + j, i] = xt[j, i]
    at = 1 + d
    if kind == FULL:
        for a in range(d):
            for b in range(a, d):
                for i in range(n):
                    T[at, i] = xt[a, i] * xt[b, i]
                at += 1
    elif kind == DIAG:
        for j in range(d):
            for i in range(n):
                T[at + j, i] = xt[j, i] * xt[j, i]
    elif kind == SPHERICAL:
        for i in range(n):
            T[at, i] = 0
        for j in range(d):
            for i in range(n):
                T[at, i] += xt[j, i] * xt[j, i]


@kernel()
def log_densities(x, shift, kind, eta, least, z, top):
    """Sets `top` to the largest η_k · T(x) of each row, z to all of them less the largest, −∞ where below `least`."""
    n, d = x.shape
    K, q = eta.shape
    r = min(ROWS, n)
    xt, T = np.empty((d, r), x.dtype), np.empty((q, r), x.dtype)
    for first in range(0, n, ROWS):
        if n - first < r:
            r = n - first
            xt, T = np.empty((d, r), x.dtype), np.empty((q, r), x.dtype)
        fill(x, shift, first, kind, xt, T)
        out = z[first : first + r]
        np.dot(T.T, eta.T, out)
        for i in range(r):
            m = out[i, 0]
            for k in range(1, K):
                m = max(m, out[i, k])
            top[first + i] = m
            for k in range(K):
                v = out[i, k] - m
                out[i, k] = v if v >= least else -np.inf


@kernel()
def normalise(z, top):
    """Turns exp(log-density − top) into responsibilities, and top into log p(x)."""
    n, K = z.shape
    for i in range(n):
        total = z[i, 0]
        for k in range(1, K):
            total += z[i, k]
        top[i] += np.log(total)
        share = 1 / total
        for k in range(K):
            z[i, k] *= share


@kernel()
def moments(x, shift, kind, z, total):
    """Adds Σ_i T(x_i) z_i to `total`, (features, K), in float64."""
    n, d = x.shape
    q, K = total.shape
    piece = np.empty((q, K), x.dtype)
    r = min(ROWS, n)
    xt, T = np.empty((d, r), x.dtype), np.empty((q, r), x.dtype)
    for first in range(0, n, ROWS):
        if n - first < r:
            r = n - first
            xt, T = np.empty((d, r), x.dtype), np.empty((q, r), x.dtype)
        fill(x, shift, first, kind, xt, T)
        np.dot(T, z[first : first + r], piece)
        for f in range(q):
            for k in range(K):
                total[f, k] += piece[f, k]
