"""Latent Dirichlet allocation: what the documents need of the topics' pseudo-counts λ (word by word)."""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, kernel
from unmix.kernels.special import digamma, exponential, log_gamma


@kernel(SUMS)
def topics(weight, shared, beta, top):
    """Fill beta and top from E[log β_vk] = ψ(λ_vk) − shared_k; returns Σ λ E[log β] and Σ E[log β]."""
    V, K = weight.shape
    row, elog, scaled = np.empty(K), np.empty(K), np.empty(K)
    product, total = 0.0, 0.0
    for v in range(V):
        row[:] = weight[v]
        for k in range(K):
            elog[k] = digamma(row[k]) - shared[k]
        largest = elog[0]
        for k in range(1, K):
            largest = max(largest, elog[k])
        for k in range(K):
            scaled[k] = exponential(elog[k] - largest)
        for k in range(K):
            product += row[k] * elog[k]
            total += elog[k]
        beta[v, :K] = scaled
        top[v] = largest
    return product, total


@kernel(SUMS)
def sum_log_gamma(weight):
    """Σ log Γ(λ)."""
    V, K = weight.shape
    total = 0.0
    for v in range(V):
        for k in range(K):
            total += log_gamma(weight[v, k])
    return total
