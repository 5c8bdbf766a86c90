"""A short k-means of a sample in single precision: good enough to start from, and quick for few rows."""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, kernel

TILE = 64  # rows side by side in vector registers


@kernel(SUMS)
def lloyd(x, w, centers, labels, few):
    """A round: the nearest centre of each row, then the means of the rows of each; empty ones stay. All in place.

    Returns whether no more than a few labels changed; then the centres stay, too.
    """
    n, d = x.shape
    K = len(centers)
    N, A = np.zeros(K), np.zeros((K, d))
    across = np.zeros((d, TILE), np.float32)
    score, least, nearest = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.zeros(TILE, np.int32)
    changed = 0
    for first in range(0, n, TILE):
        rows = min(TILE, n - first)
        for r in range(rows):
            for j in range(d):
                across[j, r] = x[first + r, j]
        least[:] = np.inf
        for k in range(K):
            score[:] = 0
            for j in range(d):
                c = centers[k, j]
                for r in range(TILE):
                    score[r] += c * (c / 2 - across[j, r])
            for r in range(TILE):
                nearest[r] = np.int32(k) if score[r] < least[r] else nearest[r]
                least[r] = min(score[r], least[r])
        for r in range(rows):
            i, k = first + r, nearest[r]
            changed += labels[i] != k
            labels[i] = k
            N[k] += w[i]
            for j in range(d):
                A[k, j] += w[i] * x[i, j]
    if changed <= few:
        return True
    for k in range(K):
        if N[k] > 0:
            for j in range(d):
                centers[k, j] = A[k, j] / N[k]
    return False
