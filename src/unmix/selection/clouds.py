"""Hard clusters as Gaussians: the classification likelihood of a clustering, less what its parameters cost.

    icl = p log n − 2 Σ_k [ N_k log(N_k / n) + Σ_{i in k} log N(x_i | μ_k, Σ_k) ]

So clusters may differ in size, shape and direction, which sums of distances do not see (Biernacki, Celeux & Govaert
2000, with memberships of 0 and 1).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

ROWS_PER_PARAMETER = 8  # of a Gaussian, at least
VARIANCE_FLOOR = 1e-9  # share of a column's variance


def clouds(x: np.ndarray, w: np.ndarray | None, labels: list[np.ndarray]) -> np.ndarray:
    """The criterion for several clusterings of the same rows, in which NaN is a cell that was not observed."""
    w = np.ones(len(x)) if w is None else w
    seen = ~np.isnan(x)
    x = np.where(seen, x, 0.0).astype(np.float64)
    count = np.maximum(w @ seen, 1e-300)
    x = (x - (w @ x) / count) * seen
    size = np.sqrt((w @ x**2) / count)
    size[size <= 1e-12 * np.abs(x).max(initial=0.0)] = 0.0
    x /= np.where(size > 0, size, 1.0)  # the unit of a column does not matter
    x, seen = x[:, size > 0], seen[:, size > 0]
    if not seen.all():  # variances only
        return np.array([gaussians(x, seen, w, label, full=False) for label in labels])
    d = x.shape[1]
    while d > 1 and w.sum() < ROWS_PER_PARAMETER * d * (d + 3) / 2:
        d -= 1
    if d:
        values, axes = eigh(x.T * w @ x, subset_by_index=(x.shape[1] - d, x.shape[1] - 1))
        x = x @ axes[:, values > 1e-8 * values[-1]]  # along principal axes for which there are enough rows
    return np.array([gaussians(x, seen[:, : x.shape[1]], w, label, full=True) for label in labels])


def gaussians(x: np.ndarray, seen: np.ndarray, w: np.ndarray, labels: np.ndarray, full: bool) -> float:
    """p log n − 2 log L of hard clusters, each a Gaussian with a covariance of its own, or with variances only.

    A few rows of the covariance that all clusters share are added to each, so that no cluster can collapse.
    """
    (n, d), K = x.shape, int(labels.max()) + 1
    Z = sp.csr_array((w, (labels, np.arange(n))), shape=(K, n))
    N, M = Z @ np.ones(n), Z @ seen.astype(np.float64)
    y = (x - (Z @ x / np.maximum(M, 1e-300))[labels]) * seen
    if full:
        S = np.array([(y[labels == k].T * w[labels == k]) @ y[labels == k] for k in range(K)])
        C = (S + (d + 1) * (S.sum(axis=0) / w.sum() + VARIANCE_FLOOR * np.eye(d))) / (N[:, None, None] + d + 1)
        inside = N @ np.linalg.slogdet(C)[1] + np.sum(np.linalg.inv(C) * S)
    else:
        S = Z @ y**2
        C = (S + 2 * (S.sum(axis=0) / M.sum(axis=0) + VARIANCE_FLOOR)) / (M + 2)
        inside = np.sum(M * np.log(C) + S / C)
    log_l = N @ np.log(np.maximum(N, 1e-300) / w.sum()) - 0.5 * (inside + np.log(2 * np.pi) * M.sum())
    p = K - 1 + K * (d + (d * (d + 1) / 2 if full else d))
    return float(p * np.log(w.sum()) - 2 * log_l)
