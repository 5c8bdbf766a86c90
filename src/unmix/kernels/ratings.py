"""Gaussian posteriors of users, and of items: a small linear system for each.

An entry (who, what, value) is t = value − offset[what] of a row a of the other side's `design`. With A = Σ E[a aᵀ] and
g = Σ E[a t] over the entries of a row, where the rows of the design are themselves in doubt:

    posterior_rows   C = (H + τ A)⁻¹,  m = C (H h + τ g)

`posterior_columns` only adds A and g up, for the other side; `posterior_items` solves from the sums. Symmetric matrices
are kept as the rows of their upper triangle, one after the other.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import FUSED, inlined, kernel
from unmix.kernels.gaussian_missing import invert
from unmix.kernels.lanes import aligned


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
