"""The small linear systems of ratings: one for each user, and sums for each item.

An entry (who, what, value) is value − offset[what] of a row `what` of the other side's `design`. With A = Σ a aᵀ and
g = Σ a t over the entries of a row:

    ridge_rows       (B + λ I + A)⁻¹ g                                      least squares, B the same for all rows
    posterior_rows   C = (H + τ A)⁻¹,  m = C (H h + τ g)                    a Gaussian posterior

where, for the latter, a aᵀ and a t are expectations: the rows of the design are themselves in doubt. `…_columns` only
add A and g up, for the other side; `…_items` solve from the sums. Symmetric matrices are kept as the rows of their
upper triangle, one after the other; a design of least squares has rows of whole registers.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import FUSED, inlined, kernel
from unmix.kernels.gaussian_missing import invert
from unmix.kernels.lanes import aligned, fma, load8, splat8, store, times

LEAST = 1e-12  # of the mean of a diagonal: what is added to it, so that λ = 0 has a solution


# ---------------------------------------------------------------- least squares


@inlined(FUSED)
def gather(values, index, first, last, offset, alpha, w, design, p, wide, G, g):
    """Adds Σ c a aᵀ to G and Σ c t a to g; returns Σ c t². With alpha > 0 clicks: c − 1 in place of c in G, t = 1."""
    size, t = 0.0, first
    for _ in range((last - first) // 2):  # two entries for each look at G
        i, j = wide * index[t], wide * index[t + 1]
        one, two, c, e = 1.0, 1.0, values[t] - offset[index[t]], values[t + 1] - offset[index[t + 1]]
        if alpha > 0.0:
            one, two = alpha * values[t], alpha * values[t + 1]
            c, e = 1.0 + one, 1.0 + two
            size += w[index[t]] * c + w[index[t + 1]] * e
        else:
            size += w[index[t]] * c * c + w[index[t + 1]] * e * e
        one, two = one * w[index[t]], two * w[index[t + 1]]
        c, e = c * w[index[t]], e * w[index[t + 1]]
        for a in range(p):
            s, r = splat8(one * design[i + a]), splat8(two * design[j + a])
            for b in range(a // 8 * 8, wide, 8):
                both = fma(s, load8(design, i + b), load8(G, a * wide + b))
                store(G, a * wide + b, fma(r, load8(design, j + b), both))
        for b in range(0, wide, 8):
            both = fma(splat8(c), load8(design, i + b), load8(g, b))
            store(g, b, fma(splat8(e), load8(design, j + b), both))
        t += 2
    if t < last:
        i, one, c = wide * index[t], 1.0, values[t] - offset[index[t]]
        if alpha > 0.0:
            one = alpha * values[t]
            c = 1.0 + one
            size += w[index[t]] * c
        else:
            size += w[index[t]] * c * c
        one, c = one * w[index[t]], c * w[index[t]]
        for a in range(p):
            s = splat8(one * design[i + a])
            for b in range(a // 8 * 8, wide, 8):
                store(G, a * wide + b, fma(s, load8(design, i + b), load8(G, a * wide + b)))
        for b in range(0, wide, 8):
            store(g, b, fma(splat8(c), load8(design, i + b), load8(g, b)))
    return size


@inlined(FUSED)
def solve(G, g, p, wide):
    """Makes g the solution x of G x = g by a Cholesky root, which takes the place of G's upper triangle."""
    trace = 0.0
    for a in range(p):
        trace += G[a * wide + a]
    for a in range(p):
        G[a * wide + a] += LEAST * trace / p + 1e-290
    for c in range(p):
        root = np.sqrt(max(G[c * wide + c], LEAST * trace / p + 1e-290))
        scale = splat8(1.0 / root)
        for b in range(c // 8 * 8, wide, 8):
            store(G, c * wide + b, times(scale, load8(G, c * wide + b)))
        G[c * wide + c] = root
        g[c] /= root
        for a in range(c + 1, p):
            factor = G[c * wide + a]
            g[a] -= factor * g[c]
            less = splat8(-factor)
            for b in range(a // 8 * 8, wide, 8):
                store(G, a * wide + b, fma(less, load8(G, c * wide + b), load8(G, a * wide + b)))
    for k in range(p):
        c = p - 1 - k
        total = g[c]
        for b in range(c + 1, p):
            total -= G[c * wide + b] * g[b]
        g[c] = total / G[c * wide + c]


@kernel(FUSED)
def ridge_rows(values, index, ptr, offset, alpha, w, design, base, ridge, means, size, explained):
    """Sets the solution of each row, Σ c t², and gᵀ times the solution."""
    n, p = means.shape
    wide = (p + 7) // 8 * 8
    G, g, before = aligned(p * wide, np.float64), aligned(wide, np.float64), np.empty(p)
    for i in range(n):
        G[:] = base
        g[:] = 0.0
        for a in range(p):
            G[a * wide + a] += ridge
        size[i] = gather(values, index, ptr[i], ptr[i + 1], offset, alpha, w, design, p, wide, G, g)
        before[:] = g[:p]
        solve(G, g, p, wide)
        total = 0.0
        for a in range(p):
            means[i, a] = g[a]
            total += before[a] * g[a]
        explained[i] = total


@kernel(FUSED)
def ridge_columns(values, index, ptr, offset, alpha, w, design, A, g_out, size):
    """Sets A, g and Σ c t² of each column that holds an entry; w are the weights of the rows."""
    d, p = g_out.shape
    wide = (p + 7) // 8 * 8
    G, g = aligned(p * wide, np.float64), aligned(wide, np.float64)
    for j in range(d):
        if ptr[j] == ptr[j + 1]:
            continue
        G[:] = 0.0
        g[:] = 0.0
        size[j] = gather(values, index, ptr[j], ptr[j + 1], offset, alpha, w, design, p, wide, G, g)
        at = 0
        for a in range(p):
            g_out[j, a] = g[a]
            for b in range(a, p):
                A[j, at] = G[a * wide + b]
                at += 1


@kernel(FUSED)
def ridge_items(A, g_in, base, ridge, means):
    """Sets the solution of each row of sums."""
    d, p = means.shape
    wide = (p + 7) // 8 * 8
    G, g = aligned(p * wide, np.float64), aligned(wide, np.float64)
    for j in range(d):
        at = 0
        for a in range(p):
            g[a] = g_in[j, a]
            for b in range(a // 8 * 8, a):
                G[a * wide + b] = 0.0
            for b in range(a, p):
                G[a * wide + b] = base[a * wide + b] + A[j, at]
                at += 1
            for b in range(p, wide):
                G[a * wide + b] = 0.0
            G[a * wide + a] += ridge
        solve(G, g, p, wide)
        for a in range(p):
            means[j, a] = g[a]


# ---------------------------------------------------------------- posteriors


@inlined(FUSED)
def collect(values, index, first, last, offset, spread, w, design, cross, second, A, g):
    """Adds Σ E[a aᵀ] to A and Σ E[a t] to g; returns Σ E[t²]."""
    size = 0.0
    for at in range(first, last):
        j = index[at]
        t, own, moment, both, weight = values[at] - offset[j], design[j], second[j], cross[j], w[j]
        size += weight * (t * t + spread[j])
        for q in range(A.size):
            A[q] += weight * moment[q]
        for a in range(g.size):
            g[a] += weight * (t * own[a] - both[a])
    return size


@inlined(FUSED)
def conclude(A, g, tau, prior, shift, p, wide, C, row, mean, covariance):
    """Sets mean and covariance; returns ½ log|C⁻¹|, (H h + τ g)ᵀ m, and E[|a m|²] − 2 gᵀ m summed over the entries."""
    at = 0
    for a in range(p):
        for b in range(a, p):
            C[a * wide + b] = C[b * wide + a] = prior[a, b] + tau * A[at]
            at += 1
        for b in range(p, wide):
            C[a * wide + b] = 0.0
    half, quadratic, left, at = invert(C, wide, p, wide, row), 0.0, 0.0, 0
    for a in range(p):
        total = 0.0
        for b in range(p):
            total += C[a * wide + b] * (shift[b] + tau * g[b])
        mean[a] = total
        quadratic += total * (shift[a] + tau * g[a])
        left -= 2.0 * total * g[a]
    for a in range(p):
        for b in range(a, p):
            value = C[a * wide + b]
            covariance[at] = value
            left += (1.0 if a == b else 2.0) * A[at] * (mean[a] * mean[b] + value)
            at += 1
    return half, quadratic, left


@kernel(FUSED)
def posterior_rows(
    values, index, ptr, offset, spread, w, design, cross, second, tau, prior, shift, means, covariances, told
):
    """Sets mean and covariance of each row, and what is told of it: Σ E[t²], ½ log|C⁻¹|, quadratic, left."""
    n, p = means.shape
    wide = (p + 7) // 8 * 8
    C, row, A, g = aligned(p * wide, np.float64), aligned(wide, np.float64), np.empty(p * (p + 1) // 2), np.empty(p)
    for i in range(n):
        A[:] = 0.0
        g[:] = 0.0
        size = collect(values, index, ptr[i], ptr[i + 1], offset, spread, w, design, cross, second, A, g)
        half, quadratic, left = conclude(A, g, tau, prior, shift, p, wide, C, row, means[i], covariances[i])
        told[i, 0], told[i, 1], told[i, 2], told[i, 3] = size, half, quadratic, left + size


@kernel(FUSED)
def posterior_columns(values, index, ptr, offset, spread, w, design, cross, second, A, g, size):
    """Adds up A, g and Σ E[t²] of each column; w are the weights of the rows."""
    for j in range(len(g)):
        size[j] = collect(values, index, ptr[j], ptr[j + 1], offset, spread, w, design, cross, second, A[j], g[j])


@kernel(FUSED)
def posterior_items(A, g, tau, prior, shift, means, covariances, told):
    """Sets mean and covariance of each row of sums, and ½ log|C⁻¹|, quadratic, left."""
    d, p = means.shape
    wide = (p + 7) // 8 * 8
    C, row = aligned(p * wide, np.float64), aligned(wide, np.float64)
    for j in range(d):
        half, quadratic, left = conclude(A[j], g[j], tau, prior, shift, p, wide, C, row, means[j], covariances[j])
        told[j, 0], told[j, 1], told[j, 2] = half, quadratic, left
