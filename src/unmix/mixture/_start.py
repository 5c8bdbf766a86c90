"""Where mixtures start: a short k-means of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.maths.distances import dense, squared_distances
from unmix.maths.seeding import plus_plus

ROWS = 4096  # that the k-means sees
PASSES = 20
SMALL = 1 << 24  # cells that may be dense


def in_range(x: Any) -> None:
    """Refuse rows, dense or CSR, whose squares are no numbers."""
    size, limits = float(abs(x).max()), np.finfo(x.dtype)
    if size > 0.1 * np.sqrt(limits.max / max(x.size, 1)) or 0 < size < 1e3 * np.sqrt(
        limits.tiny
    ):  # sums, and the least
        by = f"{size:.0e}"
        raise ValueError(f"X reaches {by}: squares of that are beyond {x.dtype}. Divide X by {by} first.")


def clusters(x: Any, w: np.ndarray, K: int, rng: np.random.Generator, passes: int = PASSES) -> np.ndarray:
    """Labels of a short k-means of dense or CSR rows; without passes those of its start, k-means++."""
    from unmix.kernels.clusters import lloyd

    if sp.issparse(x) and x.shape[0] * x.shape[1] <= SMALL:  # so that ties fall as they do for dense rows
        x = x.toarray()
    x = x if sp.issparse(x) else x - np.median(x, axis=0)  # a far row would take the mean along, and the digits
    x = (x / (abs(x).max() or 1.0)).astype(np.float32)  # which holds the squares of numbers up to 1
    some, weight, rows = x, w, max(ROWS, 20 * K)
    if x.shape[0] > rows:
        index = np.sort(rng.choice(x.shape[0], rows, replace=False))
        some, weight = x[index], w[index]
    centers = dense(some[plus_plus(some, None, weight, K, rng)])
    if not sp.issparse(some):
        lloyd(some, weight, centers, passes)
    else:  # the same steps
        before = np.full(some.shape[0], -1)
        for _ in range(passes):
            labels = squared_distances(some, None, centers).argmin(axis=1)
            if np.count_nonzero(labels != before) <= len(labels) // 200:
                break
            groups = sp.csr_array((weight, (labels, np.arange(len(labels)))), shape=(K, len(labels)))
            N = groups.sum(axis=1)[:, None]
            centers = np.where(N > 0, (groups @ some).toarray() / np.maximum(N, 1e-300), centers).astype(np.float32)
            before = labels
    return np.asarray(squared_distances(x, None, centers).argmin(axis=1))
