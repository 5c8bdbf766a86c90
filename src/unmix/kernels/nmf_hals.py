"""Coordinate descent for many small non-negative quadratic programmes: min ½ zᵀGz − cᵀz, z ≥ 0, one z per row."""

from __future__ import annotations

import numpy as np

from unmix.kernels import FUSED, SUMS, inlined, kernel

LANES = 64  # rows solved side by side: the inner loops run over them, so that they fill vector registers


@kernel(FUSED)
def hals(G, C, Z, sweeps, ratio, extra):
    """Sweep every row of Z towards the minimum of ½ zᵀGz − cᵀz over z ≥ 0, in place.

    A row stops when the largest move of a sweep (in units of the data) is `ratio` times that of its first sweep. Then
    it goes on by `extra` times the way it came, unless that undoes the gain: the objective of a row never rises. Rows
    do not see each other, so a row's result does not depend on its neighbours.
    """
    n, k = Z.shape
    zero = Z.dtype.type(0)
    z = np.empty((k, LANES), Z.dtype)
    c = np.zeros((k, LANES), Z.dtype)
    origin = np.empty((k, LANES), Z.dtype)
    slope = np.empty(LANES, Z.dtype)
    first = np.empty(LANES, Z.dtype)
    move = np.empty(LANES, Z.dtype)
    live = np.empty(LANES, Z.dtype)
    for top in range(0, n, LANES):
        _enter(Z, C, top, z, c, origin, live)
        for sweep in range(sweeps):
            for i in range(LANES):
                move[i] = zero
            for j in range(k):
                if G[j, j] <= 0:
                    continue
                _descent(G, c, z, j, slope)
                inverse = 1 / G[j, j]
                root = np.sqrt(G[j, j])
                for i in range(LANES):
                    step = (max(zero, z[j, i] + slope[i] * inverse) - z[j, i]) * live[i]
                    z[j, i] += step
                    move[i] = max(move[i], abs(step) * root)
            if not _going(sweep, move, ratio, first, live):
                break
        if extra > 0:
            _stretch(G, c, z, origin, extra, slope, move)
        _leave(Z, top, z)


@inlined()
def _enter(Z, C, top, z, c, origin, live):
    """Rows from `top` on into the lanes; those that are left over are zero."""
    m = min(LANES, len(Z) - top)
    for j in range(len(z)):
        for i in range(LANES):
            z[j, i] = c[j, i] = 0
        for i in range(m):
            z[j, i], c[j, i] = Z[top + i, j], C[top + i, j]
        for i in range(LANES):
            origin[j, i] = z[j, i]
    for i in range(LANES):
        live[i] = 1


@inlined()
def _going(sweep, move, ratio, first, live):
    """Whether a lane still moves by more than `ratio` times what it moved in the first sweep; the others stay."""
    going = 0.0
    for i in range(LANES):
        if sweep == 0:
            first[i] = move[i]
        if move[i] <= ratio * first[i]:
            live[i] = 0
        going += live[i]
    return going > 0


@inlined()
def _leave(Z, top, z):
    """The lanes back into the rows."""
    for j in range(len(z)):
        for i in range(min(LANES, len(Z) - top)):
            Z[top + i, j] = z[j, i]


@inlined(FUSED)
def _descent(G, c, z, j, out):
    """Set out = c_j − G_j z for every lane; four terms at a time, to load and store the sum less often."""
    k = len(z)
    for i in range(LANES):
        out[i] = c[j, i]
    four = k - k % 4
    for q in range(0, four, 4):
        g0, g1, g2, g3 = G[j, q], G[j, q + 1], G[j, q + 2], G[j, q + 3]
        for i in range(LANES):
            out[i] -= (g0 * z[q, i] + g1 * z[q + 1, i]) + (g2 * z[q + 2, i] + g3 * z[q + 3, i])
    for q in range(four, k):
        g0 = G[j, q]
        for i in range(LANES):
            out[i] -= g0 * z[q, i]


@inlined(FUSED)
def _stretch(G, c, z, origin, extra, slope, gain):
    """Move z to y = max(0, z + extra (z − origin)) where f(y) ≤ f(origin); f(y) − f(o) = Σ (y−o)(½G(y+o) − c)."""
    k = len(z)
    zero = z.dtype.type(0)
    half = z.dtype.type(0.5)
    middle = np.empty_like(z)
    for j in range(k):
        for i in range(LANES):
            middle[j, i] = half * (max(zero, z[j, i] + extra * (z[j, i] - origin[j, i])) + origin[j, i])
    for i in range(LANES):
        gain[i] = zero
    for j in range(k):
        _descent(G, c, middle, j, slope)
        for i in range(LANES):
            gain[i] += (middle[j, i] - origin[j, i]) * slope[i]
    for j in range(k):
        for i in range(LANES):
            if gain[i] >= 0:
                z[j, i] = max(zero, z[j, i] + extra * (z[j, i] - origin[j, i]))


@kernel(SUMS)
def residual(G, C, Z):
    """Return how far from stationary Z is: Σ |s| z + max(s, 0) z̄  for  s = c − Gz,  z̄ the mean of a column."""
    n, k = Z.shape
    zero = Z.dtype.type(0)
    s, held, up, total = np.empty(k, Z.dtype), np.zeros(k, Z.dtype), np.zeros(k, Z.dtype), np.zeros(k, Z.dtype)
    for i in range(n):
        for q in range(k):
            s[q] = C[i, q]
        for p in range(k):
            a = Z[i, p]
            for q in range(k):
                s[q] -= a * G[p, q]
        for q in range(k):
            held[q] += Z[i, q] * abs(s[q])
            up[q] += max(s[q], zero)
            total[q] += Z[i, q]
    return (held + up * total / n).sum()


@kernel(FUSED)
def masked_hals(G, C, Z, sweeps, ratio, extra):
    """As `hals` where every row has its own G: for each `LANES` rows their lower triangles, lane by lane."""
    n, k = Z.shape
    zero = Z.dtype.type(0)
    half = Z.dtype.type(0.5)
    z = np.empty((k, LANES), Z.dtype)
    c = np.zeros((k, LANES), Z.dtype)
    origin = np.empty((k, LANES), Z.dtype)
    middle = np.empty((k, LANES), Z.dtype)
    slope = np.empty(LANES, Z.dtype)
    first = np.empty(LANES, Z.dtype)
    move = np.empty(LANES, Z.dtype)
    live = np.empty(LANES, Z.dtype)
    for top in range(0, n, LANES):
        own = G[top // LANES]
        _enter(Z, C, top, z, c, origin, live)
        for sweep in range(sweeps):
            for i in range(LANES):
                move[i] = zero
            for j in range(k):
                _own_descent(own, c, z, j, slope)
                diagonal = j * (j + 3) // 2
                for i in range(LANES):
                    g = own[diagonal, i]
                    step = max(zero, z[j, i] + slope[i] / g) - z[j, i] if g > 0 else zero
                    step *= live[i]
                    z[j, i] += step
                    move[i] = max(move[i], abs(step) * np.sqrt(g))
            if not _going(sweep, move, ratio, first, live):
                break
        if extra > 0:  # as in `_stretch`
            for i in range(LANES):
                move[i] = zero
            for j in range(k):
                for i in range(LANES):
                    middle[j, i] = half * (max(zero, z[j, i] + extra * (z[j, i] - origin[j, i])) + origin[j, i])
            for j in range(k):
                _own_descent(own, c, middle, j, slope)
                for i in range(LANES):
                    move[i] += (middle[j, i] - origin[j, i]) * slope[i]
            for j in range(k):
                for i in range(LANES):
                    if move[i] >= 0:
                        z[j, i] = max(zero, z[j, i] + extra * (z[j, i] - origin[j, i]))
        _leave(Z, top, z)


@inlined(FUSED)
def _own_descent(G, c, z, j, out):
    """Set out = c_j − G_j z for every lane, each with its own G."""
    base = j * (j + 1) // 2
    for i in range(LANES):
        out[i] = c[j, i]
    for q in range(j):
        for i in range(LANES):
            out[i] -= G[base + q, i] * z[q, i]
    for q in range(j, len(z)):
        below = q * (q + 1) // 2 + j
        for i in range(LANES):
            out[i] -= G[below, i] * z[q, i]
