"""Hard clusters as Gaussians: the classification likelihood of a clustering, less what its parameters cost.

    icl = p log n − 2 Σ_k [ N_k log(N_k / n) + Σ_{i in k} log N(x_i | μ_k, Σ_k) ]

Clusters may so differ in size, shape and direction, which sums of distances do not see (Biernacki, Celeux & Govaert
2000, with memberships of 0 and 1).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

ENOUGH = 8  # rows for each number of a Gaussian
LEAST = 1e-9  # of a column's variance


def clouds(x: np.ndarray, w: np.ndarray | None, labels: list[np.ndarray]) -> np.ndarray:
    """The criterion for several clusterings of the same rows, in which NaN is a cell that was not observed."""
    w = np.ones(len(x)) if w is None else w
    seen, d = ~np.isnan(x), x.shape[1]
    x = np.where(seen, x, 0.0).astype(np.float64)
    x = (x - (w @ x) / (w @ seen)) * seen
    size = np.sqrt((w @ x**2) / (w @ seen))
    x /= np.where(size > 0, size, 1.0)  # the unit of a column does not matter
    if not seen.all():  # variances only
        return np.array([gaussians(x, seen, w, label, full=False) for label in labels])
    while d > 1 and w.sum() < ENOUGH * d * (d + 3) / 2:
        d -= 1
    if d < x.shape[1]:  # the principal axes for which there are rows enough
        x = x @ np.linalg.svd(np.sqrt(w)[:, None] * x, full_matrices=False)[2][:d].T
        seen = seen[:, : x.shape[1]]
    return np.array([gaussians(x, seen, w, label, full=True) for label in labels])


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
        C = (S + (d + 1) * (S.sum(axis=0) / w.sum() + LEAST * np.eye(d))) / (N[:, None, None] + d + 1)
        inside = N @ np.linalg.slogdet(C)[1] + np.sum(np.linalg.inv(C) * S)
    else:
        S = Z @ y**2
        C = (S + 2 * (S.sum(axis=0) / M.sum(axis=0) + LEAST)) / (M + 2)
        inside = np.sum(M * np.log(C) + S / C)
    log_l = N @ np.log(np.maximum(N, 1e-300) / w.sum()) - 0.5 * (inside + np.log(2 * np.pi) * M.sum())
    p = K - 1 + K * (d + (d * (d + 1) / 2 if full else d))
    return float(p * np.log(w.sum()) - 2 * log_l)
