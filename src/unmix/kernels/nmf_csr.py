"""Products of CSR rows with dense factors that hold k numbers a row, so that each nonzero meets one line of memory."""

from __future__ import annotations

from unmix.kernels import SUMS, kernel


@kernel(SUMS)
def times(data, indices, indptr, U, out):
    """Set out = X U for CSR X of shape (n, d) and dense U of shape (d, k)."""
    k = U.shape[1]
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        four = stop - (stop - start) % 4
        for q in range(k):
            out[i, q] = 0
        for t in range(start, four, 4):
            a, b, c, d = indices[t], indices[t + 1], indices[t + 2], indices[t + 3]
            va, vb, vc, vd = data[t], data[t + 1], data[t + 2], data[t + 3]
            for q in range(k):
                out[i, q] += (va * U[a, q] + vb * U[b, q]) + (vc * U[c, q] + vd * U[d, q])
        for t in range(four, stop):
            j, v = indices[t], data[t]
            for q in range(k):
                out[i, q] += v * U[j, q]


@kernel(SUMS)
def add_transposed_times(data, indices, indptr, Z, out):
    """Add to out Xᵀ Z for CSR X of shape (n, d) and dense Z of shape (n, k)."""
    k = Z.shape[1]
    for i in range(len(indptr) - 1):
        for t in range(indptr[i], indptr[i + 1]):
            j, v = indices[t], data[t]
            for q in range(k):
                out[j, q] += v * Z[i, q]
