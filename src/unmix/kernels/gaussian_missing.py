"""Rows with missing cells under K Gaussians with full covariances: one pattern of missing columns after the other.

With r = x − μ, 0 where a cell is missing, Λ the precision, m the missing and o the observed columns of a pattern:

    C = (Λ_mm)⁻¹        r̂_m = −C (Λ r)_m = E[x_m | x_o] − μ_m        r̂_o = r_o
    log p(x_o) = −½ |P' r̂|² + log|P| − ½ log|Λ_mm| − ½ |o| log 2π

so only the small Λ_mm has to be factored, and the quadratic form cannot become negative. C is the conditional
covariance: Σ z C is added to the second moments.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel

LOG_2PI = float(np.log(2.0 * np.pi))


@kernel()
def patterns(x, observed, order, first, w, log_weights, log_dets, means, precisions, P, moments, z, log_p, N, A, B):
    """Sets z and log_p of the rows; adds N, Σ z r̂ and the upper triangle of Σ z (r̂ r̂' + C), both about each mean.

    Rows order[first[g]:first[g + 1]] share the pattern g.
    """
    K, d = means.shape
    missing, L, C = np.empty(d, np.int64), np.empty((d, d)), np.empty((K, d, d))
    r, y, v = np.empty((K, d)), np.empty(d), np.empty(d)
    p, weight, half = np.empty(K), np.empty(K), np.empty(K)
    for g in range(first.size - 1):
        m = not_seen(observed[order[first[g]]], missing)
        for k in range(K):
            half[k] = conditional(precisions[k], missing, m, L, C[k])
            weight[k] = 0.0
        for at in range(first[g], first[g + 1]):
            i = order[at]
            for k in range(K):
                rk = r[k]
                for j in range(d):
                    rk[j] = x[i, j] - means[k, j] if observed[i, j] else 0.0
                for a in range(m):
                    total, row = 0.0, precisions[k, missing[a]]
                    for j in range(d):
                        total += row[j] * rk[j]
                    v[a] = total
                for a in range(m):
                    total = 0.0
                    for b in range(m):
                        total += C[k, a, b] * v[b]
                    rk[missing[a]] = -total
                for j in range(d):
                    y[j] = 0.0
                for a in range(d):  # P is upper triangular
                    ra = rk[a]
                    for j in range(a, d):
                        y[j] += P[k, a, j] * ra
                total = 0.0
                for j in range(d):
                    total += y[j] * y[j]
                p[k] = log_weights[k]
                if m < d:
                    p[k] += log_dets[k] - half[k] - 0.5 * (total + (d - m) * LOG_2PI)
            top = p.max()
            total = 0.0
            for k in range(K):
                p[k] = np.exp(p[k] - top)
                total += p[k]
            log_p[i] = top + np.log(total) if m < d else 0.0
            for k in range(K):
                z[i, k] = p[k] / total
                zw = w[i] * p[k] / total
                if not moments or zw == 0.0:
                    continue
                weight[k] += zw
                for a in range(d):
                    share = zw * r[k, a]
                    A[k, a] += share
                    for j in range(a, d):
                        B[k, a, j] += share * r[k, j]
        if moments:
            for k in range(K):
                N[k] += weight[k]
                spread(weight[k], missing, m, C[k], B[k])


@inlined()
def not_seen(observed, missing):
    """Sets the first of `missing` to the columns that were not observed; returns how many there are."""
    m = 0
    for j in range(observed.size):
        if not observed[j]:
            missing[m] = j
            m += 1
    return m


@inlined()
def spread(weight, missing, m, C, B):
    """Adds what the missing columns vary by, given the observed ones."""
    for a in range(m):
        for b in range(a, m):
            B[missing[a], missing[b]] += weight * C[a, b]


@inlined()
def conditional(precision, missing, m, L, C):
    """Sets C to the inverse of the missing columns' precision; returns half the logarithm of its determinant."""
    half = 0.0
    for a in range(m):
        for b in range(a + 1):
            total = precision[missing[a], missing[b]]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            if a == b:
                L[a, a] = np.sqrt(max(total, 1e-15 * precision[missing[a], missing[a]]))
                half += np.log(L[a, a])
            else:
                L[a, b] = total / L[b, b]
    for b in range(m):  # L becomes its own inverse, column after column
        L[b, b] = 1.0 / L[b, b]
        for a in range(b + 1, m):
            total = 0.0
            for c in range(b, a):
                total -= L[a, c] * L[c, b]
            L[a, b] = total / L[a, a]
    for a in range(m):
        for b in range(a + 1):
            total = 0.0
            for c in range(a, m):
                total += L[c, a] * L[c, b]
            C[a, b] = total
            C[b, a] = total
    return half
