"""Kullback–Leibler factorisation of CSR rows: only the nonzeros are visited."""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, inlined, kernel


@kernel(SUMS)
def kl_rows(data, indices, indptr, w, U, expected, l1, l2, relax, floor, repeats, tol, Z, cross):
    """Multiplicative updates of each row's z at fixed parts, in place, then the row's share of the statistics.

    With T the parts at the row's nonzeros:  y = z T,  r_q = Σ_j T_qj x_j/y_j / (expected_q + l1),  z_q ← z_q s(r_q)
    with s(r) = r + relax (r−1) min(r, 1); a quadratic penalty l2 enters through the minimum of the bound. A row stops
    when its moves add up to `tol` of its total. Then cross_j += w z x_j/y_j.

    Returns Σ_i w_i (Σ_j (x_j log(x_j/y_j) − x_j) + Σ_q z_q expected_q).
    """
    n, k = Z.shape
    zero, one = Z.dtype.type(0), Z.dtype.type(1)
    widest = 1
    for i in range(n):
        widest = max(widest, indptr[i + 1] - indptr[i])
    T = np.empty((k, widest), U.dtype)  # one part a line, so that every loop below is long and contiguous
    ratio = np.empty(widest, U.dtype)
    z = np.empty(k, U.dtype)
    loss = 0.0
    for i in range(n):
        start, m = indptr[i], indptr[i + 1] - indptr[i]
        total = zero
        for t in range(m):
            total += data[start + t]
            for q in range(k):
                T[q, t] = U[indices[start + t], q]
        for q in range(k):
            z[q] = Z[i, q]
        _ratios(data, start, m, z, T, ratio)
        for _ in range(repeats):
            moved = zero
            for q in range(k):
                seen = zero
                for t in range(m):
                    seen += ratio[t] * T[q, t]
                D = expected[q] + l1
                if D > 0:
                    r = 2 * seen / (D + np.sqrt(D * D + 4 * l2 * z[q] * seen))
                    new = max(z[q] * (r + relax * (r - one) * min(r, one)), floor * total / D)
                    moved += abs(new - z[q]) * D
                    z[q] = new
            _ratios(data, start, m, z, T, ratio)
            if moved <= tol * total:
                break
        lost = 0.0
        for q in range(k):
            Z[i, q] = z[q]
            lost += z[q] * expected[q]
        for t in range(m):
            if data[start + t] > 0:
                lost += data[start + t] * (np.log(ratio[t]) - one)
        loss += w[i] * lost
        for t in range(m):
            j = indices[start + t]
            v = w[i] * ratio[t]
            for q in range(k):
                cross[j, q] += v * z[q]
    return loss


@inlined(SUMS)
def _ratios(data, start, m, z, T, out):
    """Set out_t = x_t / (z T)_t for the m nonzeros of a row, four parts at a time."""
    k = len(z)
    four = k - k % 4
    tiny = np.finfo(T.dtype).tiny
    for t in range(m):
        out[t] = tiny
    for q in range(0, four, 4):
        a, b, c, d = z[q], z[q + 1], z[q + 2], z[q + 3]
        for t in range(m):
            out[t] += (a * T[q, t] + b * T[q + 1, t]) + (c * T[q + 2, t] + d * T[q + 3, t])
    for q in range(four, k):
        for t in range(m):
            out[t] += z[q] * T[q, t]
    for t in range(m):
        out[t] = data[start + t] / out[t]
