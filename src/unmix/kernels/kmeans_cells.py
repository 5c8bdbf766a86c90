"""Nearest centres of rows that are lists of cells: CSR rows, or the observed cells of rows with missing ones.

CSR: the cells left out are zeros, so ‖x − u_k‖² = base_k + Σ_cells x(x − 2u_k) with base_k = ‖u_k‖².  Missing cells
(`missing`): the cells left out do not count, so it is Σ_cells (x − u_k)² with base_k = 0.  All in float64.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel

ROUNDING = 2.0**-52
FAR = 2.0**48  # of squared lengths of centres: beyond, ‖u‖² − 2⟨x, u⟩ has digits that ‖x − u‖² has not


@kernel()
def nearest(
    indptr, indices, values, columns, base, missing, reach, path, drift, half, eps, known, labels, upper, lower
):
    """Sets the label and a lower bound (plus drift) on the distance to every other centre.

    Rows that are `known` not to have changed, by bounds left from an earlier pass, are passed over.
    """
    d, n_centers = columns.shape
    slack = eps * (d + 8)
    distance = np.empty(n_centers)
    for i in range(labels.size):
        k = labels[i]
        if known:
            beyond = max(half[k], lower[i] * (1 - 2 * slack) - drift[k] * (1 + slack)) - path[k] * slack
            if upper[i] + path[k] < beyond:
                continue
        distance[:] = base
        for p in range(indptr[i], indptr[i + 1]):
            v = np.float64(values[p])
            column = columns[indices[p]]
            if missing:
                for c in range(n_centers):
                    distance[c] += (v - column[c]) * (v - column[c])
            else:
                for c in range(n_centers):
                    distance[c] += v * (v - 2 * column[c])
        first, second, k = np.inf, np.inf, 0
        for c in range(n_centers):
            if distance[c] < first:
                first, second, k = distance[c], first, c
            elif distance[c] < second:
                second = distance[c]
        if first > FAR * reach**2:
            k = nearest_from_afar(indptr, indices, values, i, columns, base, missing, distance)
        labels[i] = k
        lower[i] = np.sqrt(max(0.0, second - rounding(indptr, values, i, d, missing, reach))) + drift[k]


@inlined()
def nearest_from_afar(indptr, indices, values, i, columns, base, missing, scores):
    """The nearest centre of row i where all distances are the same to rounding: they are compared less ‖x‖²."""
    scores[:] = base
    for p in range(indptr[i], indptr[i + 1]):
        v, column = np.float64(values[p]), columns[indices[p]]
        for c in range(scores.size):
            scores[c] += column[c] * ((column[c] if missing else 0.0) - 2 * v)
    return np.argmin(scores)


@inlined()
def rounding(indptr, values, i, d, missing, reach):
    """Bound on the error of row i's squared distance to a centre of length at most `reach`, beyond a relative one."""
    if missing:
        return 0.0
    square = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        square += np.float64(values[p]) * np.float64(values[p])
    return ROUNDING * (2 * d + 8) * (np.sqrt(square) + reach) ** 2


@kernel()
def sums(indptr, indices, values, u, base, missing, reach, labels, w, path, upper):
    """Per centre Σw, Σw x, Σw‖x − u‖² and Σw of each cell; per row the distance to its centre, less its path."""
    n_centers, d = u.shape
    N, A, V = np.zeros(n_centers), np.zeros((n_centers, d)), np.zeros(n_centers)
    cells = np.zeros((n_centers, d) if missing else (0, 0))
    for i in range(labels.size):
        k = labels[i]
        weight = w[i] if w.size else 1.0
        square = base[k]
        for p in range(indptr[i], indptr[i + 1]):
            v, j = np.float64(values[p]), indices[p]
            c = np.float64(u[k, j])
            square += (v - c) * (v - c) if missing else v * (v - 2 * c)
            A[k, j] += weight * v
            if missing:
                cells[k, j] += weight
        square = max(0.0, square)
        N[k] += weight
        V[k] += weight * square
        upper[i] = np.sqrt(square + rounding(indptr, values, i, d, missing, reach)) - path[k]
    return N, A, V, cells
