"""Nearest centres by Σ_j |x_j − u_kj|, and what medians need: per cluster and column the weight of each bin of a grid.

Bin b of (k, j) holds the cells above edge b − 1 and not above edge b. All in float64, in the order of the columns.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import kernel

FAR = 2.0**24  # of the largest cell of a centre


@kernel()
def nearest(x, observed, columns, path, drift, half, eps, known, labels, upper, lower):
    """Sets the label, the distance (less path) and a lower bound (plus drift) on that to every other centre.

    Rows that are `known` not to have changed, by bounds left from an earlier pass, are passed over.
    """
    d, n_centers = columns.shape
    missing = observed.size > 0
    slack = eps * (d + 8)
    distance, far = np.empty(n_centers), FAR * np.abs(columns).max()
    for i in range(labels.size):
        k = labels[i]
        if known:
            beyond = max(half[k], lower[i] * (1 - 2 * slack) - drift[k] * (1 + slack)) - path[k] * slack
            if upper[i] + path[k] < beyond:
                continue
        distance[:], own = 0.0, 0.0
        for j in range(d):
            if missing and not observed[i, j]:
                continue
            v, column = np.float64(x[i, j]), columns[j]
            if abs(v) > far:  # where |v − u| is |v| to rounding: less that
                own += abs(v)
                for c in range(n_centers):
                    distance[c] += column[c] if v < 0 else -column[c]
                continue
            for c in range(n_centers):
                distance[c] += abs(v - column[c])
        first, second, k = np.inf, np.inf, 0
        for c in range(n_centers):
            if distance[c] < first:
                first, second, k = distance[c], first, c
            elif distance[c] < second:
                second = distance[c]
        labels[i] = k
        lower[i] = second + own + drift[k]


@kernel()
def sums(x, observed, u, grid, labels, w, path, upper):
    """Per centre Σw and Σw|x − u|; per bin Σw and Σw(x − u); per row the distance to its centre, less its path."""
    n_centers, d, n_edges = grid.shape
    missing = observed.size > 0
    N, V = np.zeros(n_centers), np.zeros(n_centers)
    weight, total = np.zeros((n_centers, d, n_edges + 1)), np.zeros((n_centers, d, n_edges + 1))
    for i in range(labels.size):
        k = labels[i]
        by = w[i] if w.size else 1.0
        away = 0.0
        for j in range(d):
            if missing and not observed[i, j]:
                continue
            v, b = np.float64(x[i, j]), 0
            for e in range(n_edges):
                b += v > grid[k, j, e]
            off = v - np.float64(u[k, j])
            away += abs(off)
            weight[k, j, b] += by
            total[k, j, b] += by * off
        N[k] += by
        V[k] += by * away
        upper[i] = away - path[k]
    return N, total, V, weight
