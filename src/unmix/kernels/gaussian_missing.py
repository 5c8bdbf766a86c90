"""Rows with missing cells under K Gaussians with full covariances: one pattern of missing columns after the other.

With r = x − μ, 0 where a cell is missing, Λ the precision, m the missing and o the observed columns of a pattern:

    C = (Λ_mm)⁻¹        r̂_m = −C (Λ r)_m = E[x_m | x_o] − μ_m        r̂_o = r_o
    log p(x_o) = −½ |P' r̂|² + log|P| − ½ log|Λ_mm| − ½ |o| log 2π

so only the small Λ_mm has to be factored, and the quadratic form cannot become negative. C is the conditional
covariance: Σ z C is added to the second moments.

`patterns` does this for the passes of a mixture. `complete` does it for one Gaussian, and whoever calls it multiplies
whole matrices before (Λ r) and after (r̂ r̂', P' r̂), so that only what depends on a row's own pattern is left here. Where
most cells are missing it factors the covariance of the others: C = Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om, |Λ_mm| = |Λ| |Σ_oo|.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import FUSED, inlined, kernel
from unmix.kernels.lanes import aligned, fma, load8, splat8, store, times

LANES = 8  # rows of small matrices are as long as whole registers
LEAST_PIVOT = 1e-15  # of a diagonal entry, or of one, below which rounding may not take a pivot
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


@kernel(FUSED)
def complete(observed, order, first, w, precision, covariance, log_det, v, noise, r, variance, half, spread):
    """Sets the missing cells of r, where the observed ones hold x − μ, to their conditional mean; v is r Λ.

    Where the arrays are not empty: draws with the standard normal `noise` in place of means, the conditional `variance`
    of each missing cell, and Σ w C added to `spread`. Sets half the log-determinant of Λ_mm, given half that of Λ. Rows
    order[first[g]:first[g + 1]] share the pattern g.
    """
    d = r.shape[1]
    most = (d + LANES - 1) // LANES * LANES
    missing, seen = np.empty(d, np.int64), np.empty(d, np.int64)
    C, T = aligned(d * most, np.float64), aligned(d * most, np.float64)  # rows of this length, one after the other
    row, mean, push = aligned(most, np.float64), aligned(most, np.float64), np.zeros(d)
    for g in range(first.size - 1):
        m, own = 0, 0
        for j in range(d):
            if observed[order[first[g]], j]:
                seen[own] = j
                own += 1
            else:
                missing[m] = j
                m += 1
        wide = (m + LANES - 1) // LANES * LANES
        size = 0.0
        if 0 < m <= own:
            some_of(precision, missing, m, wide, C, most)
            size = invert(C, most, m, wide, row)
        elif m:
            size = log_det + left_by_others(covariance, missing, m, wide, seen, own, T, row, C, most)
        if noise.size:
            square_root(C, most, m, T)
        weight = 0.0
        for at in range(first[g], first[g + 1]):
            i = order[at]
            half[i] = size
            weight += w[i]
            combine_rows(C, most, m, wide, v[i], missing, mean)
            if noise.size:
                for a in range(m):
                    push[a] = noise[i, missing[a]]
                    for b in range(a + 1):
                        mean[a] -= T[a * most + b] * push[b]
            for a in range(m):
                r[i, missing[a]] = -mean[a]
                if variance.size:
                    variance[i, missing[a]] = C[a * most + a]
        if spread.size:
            for a in range(m):
                for b in range(m):
                    spread[missing[a], missing[b]] += weight * C[a * most + b]


@inlined(FUSED)
def some_of(A, index, m, wide, C, step):
    """Sets the first m rows of C to those rows and columns of A, and to zeros up to their width."""
    for a in range(m):
        for b in range(m):
            C[a * step + b] = A[index[a], index[b]]
        for b in range(m, wide):
            C[a * step + b] = 0.0


@inlined(FUSED)
def combine_rows(C, step, m, wide, by, index, out):
    """Sets out to Σ_b by[index[b]] C_b, over the first m rows of C."""
    for j in range(0, wide, 8):
        total = splat8(0.0)
        for b in range(m):
            total = fma(splat8(by[index[b]]), load8(C, b * step + j), total)
        store(out, j, total)


@inlined(FUSED)
def invert(A, step, m, wide, row):
    """Makes the first m rows and columns of A, which is symmetric, their inverse; returns half the log-determinant.

    Gauss and Jordan's way, whose inner loops run along rows without a sum; pivots of a positive definite matrix need
    no search.
    """
    half, product = 0.0, 1.0
    for k in range(m):
        pivot = max(A[k * step + k], LEAST_PIVOT)
        product *= pivot
        if k % 8 == 7:  # so few that their product stays in range
            half += 0.5 * np.log(product)
            product = 1.0
        inverse = 1.0 / pivot
        for j in range(0, wide, 8):
            store(row, j, times(load8(A, k * step + j), splat8(inverse)))
        for a in range(m):
            if a != k:
                factor = A[a * step + k]
                for j in range(0, wide, 8):
                    store(A, a * step + j, fma(splat8(-factor), load8(row, j), load8(A, a * step + j)))
                A[a * step + k] = -factor * inverse
        for j in range(0, wide, 8):
            store(A, k * step + j, load8(row, j))
        A[k * step + k] = inverse
    return half + 0.5 * np.log(product)


@inlined(FUSED)
def left_by_others(covariance, missing, m, wide, seen, own, T, row, C, step):
    """Sets C to what the seen columns leave of the missing ones; returns half the log-determinant of Σ_oo."""
    width = (own + LANES - 1) // LANES * LANES
    some_of(covariance, seen, own, width, T, step)
    half = invert(T, step, own, width, row)
    some_of(covariance, missing, m, wide, C, step)
    for a in range(m):  # row is Σ_mo Σ_oo⁻¹, a row at a time
        combine_rows(T, step, own, width, covariance[missing[a]], seen, row)
        for b in range(a + 1):
            total = 0.0
            for c in range(own):
                total += row[c] * covariance[missing[b], seen[c]]
            C[a * step + b] -= total
            C[b * step + a] = C[a * step + b]
        C[a * step + a] = max(C[a * step + a], LEAST_PIVOT * covariance[missing[a], missing[a]])
    return half


@inlined(FUSED)
def square_root(A, step, m, L):
    """Sets L to the lower triangular root of the first m rows and columns of A."""
    for a in range(m):
        for b in range(a):
            total = A[a * step + b]
            for c in range(b):
                total -= L[a * step + c] * L[b * step + c]
            L[a * step + b] = total / L[b * step + b]
        total = A[a * step + a]
        for c in range(a):
            total -= L[a * step + c] * L[a * step + c]
        L[a * step + a] = np.sqrt(max(total, LEAST_PIVOT * A[a * step + a], 1e-300))
