"""Latent Dirichlet allocation: what the documents need of the topics' pseudo-counts λ (word by word)."""

from __future__ import annotations

import numpy as np
from numba import njit

from unmix.kernels.lda_special import digamma, exponential, log_gamma

FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def topics(weight, shared, beta, top):
    """Fill beta and top from E[log β_vk] = ψ(λ_vk) − shared_k; returns Σ λ E[log β], Σ E[log β] and Σ log Γ(λ)."""
    V, K = weight.shape
    elog = np.empty(K)
    product, total, gammas = 0.0, 0.0, 0.0
    for v in range(V):
        row = weight[v]
        largest = -np.inf
        for k in range(K):
            elog[k] = digamma(row[k]) - shared[k]
        for k in range(K):
            largest = max(largest, elog[k])
        for k in range(K):
            beta[v, k] = exponential(elog[k] - largest)
            product += row[k] * elog[k]
            total += elog[k]
            gammas += log_gamma(row[k])
        top[v] = largest
    return product, total, gammas
