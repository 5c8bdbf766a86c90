"""Hard clusters as densities: the classification likelihood of a clustering, less what its parameters cost.

    icl = p log n − 2 Σ_k [ N_k log(N_k / n) + Σ_{i in k} ( log N(x_i | μ_k, Σ_k) + Σ_c log θ_kc(x_ic) ) ]

Numbers are Gaussian in a cluster, each with a covariance Σ_k of its own or all with one Σ, whichever is lower; a
category c has the shares θ_kc of its levels. So clusters may differ in size, shape and direction, which sums of
distances do not see, and many columns with few rows cost no more than they tell (Biernacki, Celeux & Govaert 2000,
with memberships of 0 and 1).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from unmix.selection.columns import categories

ROWS_PER_PARAMETER = 8  # of a Gaussian, at least
VARIANCE_FLOOR = 1e-9  # share of a column's variance


def clouds(x: np.ndarray, w: np.ndarray | None, labels: list[np.ndarray]) -> np.ndarray:
    """The criterion for several clusterings of the same rows, in which NaN is a cell that was not observed."""
    w = np.ones(len(x)) if w is None else w
    kinds = categories(x)
    numbers = np.setdiff1d(np.arange(x.shape[1]), [j for kind in kinds for j in kind.columns])
    kept = [shares(kind.codes, w, label) for label in labels for kind in kinds]
    told = np.sum(np.reshape(kept, (len(labels), len(kinds))), axis=1)
    x, seen = x[:, numbers], ~np.isnan(x[:, numbers])
    x = np.where(seen, x, 0.0).astype(np.float64)
    count = np.maximum(w @ seen, 1e-300)
    x = (x - (w @ x) / count) * seen
    size = np.sqrt((w @ x**2) / count)
    size[size <= 1e-12 * np.abs(x).max(initial=0.0)] = 0.0
    x /= np.where(size > 0, size, 1.0)  # the unit of a column does not matter
    x, seen = x[:, size > 0], seen[:, size > 0]
    if not seen.all():  # variances only
        return told + [gaussians(x, seen, w, label, full=False) for label in labels]
    d = x.shape[1]
    while d > 1 and w.sum() < ROWS_PER_PARAMETER * d * (d + 3) / 2:
        d -= 1
    if d:
        values, axes = eigh(x.T * w @ x, subset_by_index=(x.shape[1] - d, x.shape[1] - 1))
        x = x @ axes[:, values > 1e-8 * values[-1]]  # along principal axes for which there are enough rows
    return told + [gaussians(x, seen[:, : x.shape[1]], w, label, full=True) for label in labels]


def gaussians(x: np.ndarray, seen: np.ndarray, w: np.ndarray, labels: np.ndarray, full: bool) -> float:
    """p log n − 2 log L of hard clusters that are Gaussians, with covariances or with variances only.

    The lower of two: each has its own, with a few rows of the common one added so that none can collapse; or all have
    the common one.
    """
    (n, d), K = x.shape, int(labels.max()) + 1
    Z = sp.csr_array((w, (labels, np.arange(n))), shape=(K, n))
    N, M = Z @ np.ones(n), Z @ seen.astype(np.float64)
    y = (x - (Z @ x / np.maximum(M, 1e-300))[labels]) * seen
    if full:
        S = np.array([(y[labels == k].T * w[labels == k]) @ y[labels == k] for k in range(K)])
        one = S.sum(axis=0) / w.sum() + VARIANCE_FLOOR * np.eye(d)
        C = (S + (d + 1) * one) / (N[:, None, None] + d + 1)
        own = N @ np.linalg.slogdet(C)[1] + np.sum(np.linalg.inv(C) * S)
        common = w.sum() * np.linalg.slogdet(one)[1] + np.sum(np.linalg.inv(one) * S.sum(axis=0))
    else:
        S = Z @ y**2
        one = S.sum(axis=0) / M.sum(axis=0) + VARIANCE_FLOOR
        C = (S + 2 * one) / (M + 2)
        own, common = np.sum(M * np.log(C) + S / C), np.sum(M.sum(axis=0) * np.log(one) + S.sum(axis=0) / one)
    each = d * (d + 1) / 2 if full else d
    cost = np.log(w.sum())
    inside = min(own + cost * K * each, common + cost * each)
    log_n = N @ np.log(np.maximum(N, 1e-300) / w.sum())
    return float(inside + np.log(2 * np.pi) * M.sum() + cost * (K - 1 + K * d) - 2 * log_n)


def shares(codes: np.ndarray, w: np.ndarray, labels: np.ndarray) -> float:
    """p log n − 2 log L of the levels of a category, of which −1 was not observed, within hard clusters."""
    seen = codes >= 0
    count = sp.coo_array((w[seen], (labels[seen], codes[seen])), shape=(labels.max() + 1, codes.max() + 1)).toarray()
    total = count.sum(axis=1, keepdims=True)
    log_l = np.sum(count * np.log(np.maximum(count, 1e-300) / np.maximum(total, 1e-300)))
    return float(np.log(w.sum()) * count.shape[0] * (count.shape[1] - 1) - 2 * log_l)
