"""Latent Dirichlet allocation: the small steps that lead to a start, in single precision and without bounds.

`beta` holds max(exp(E[log β_vk]) / max_j exp(E[log β_vj]), FLOOR), padded with zeros as for `documents`; `shares` the
counts of each document divided by its tokens, so that counts of any size stay within range.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, kernel
from unmix.kernels.lda_documents import gather
from unmix.kernels.special import exp_digamma

FLOOR = 1e-18  # of θ and β, whose product must be a normal number


@kernel(SUMS)
def sketch(rows, indptr, indices, shares, tokens, weights, beta, alpha, sweeps, words):
    """Set words to Σ_i w θ share / p of some rows after so many sweeps over each from a fresh γ: times β it is S."""
    K, padded, least = alpha.size, beta.shape[1], np.float32(FLOOR)
    longest = 0
    for i in rows:
        longest = max(longest, indptr[i + 1] - indptr[i])
    buffer = np.empty(longest, np.float32)
    theta = np.zeros(padded, np.float32)
    gathered = np.empty(padded, np.float32)
    g = np.empty(K)
    words[:] = 0.0
    for i in rows:
        ids, n = indices[indptr[i] : indptr[i + 1]], shares[indptr[i] : indptr[i + 1]]
        p = buffer[: n.size]
        unit = 1.0 / max(1.0, 1e-30 * tokens[i])  # of θ, whose factors cancel
        for k in range(K):
            g[k] = alpha[k] + tokens[i] / K
        for _ in range(sweeps):
            for k in range(K):
                theta[k] = max(np.float32(exp_digamma(g[k]) * unit), least)
            gather(ids, n, beta, theta, p, gathered)
            for k in range(K):
                g[k] = alpha[k] + tokens[i] * theta[k] * gathered[k]
        for j in range(n.size):
            ratio = weights[i] * n[j] / p[j]
            row = words[ids[j]]
            for k in range(padded):
                row[k] += ratio * theta[k]


@kernel(SUMS)
def blend(weight, rho, eta, scale, words, beta, totals):
    """λ ← (1 − ρ) λ + ρ (η + scale β Σ words), the sum being over the first axis; set totals to Σ_v λ."""
    V, K = weight.shape
    totals[:] = 0.0
    for v in range(V):
        row = weight[v]
        for k in range(K):
            found = 0.0
            for i in range(words.shape[0]):
                found += words[i, v, k]
            row[k] = (1.0 - rho) * row[k] + rho * (eta + scale * beta[v, k] * found)
            totals[k] += row[k]


@kernel(SUMS)
def expect(weight, shared, beta):
    """Set beta from exp(E[log β_vk]) = e^ψ(λ_vk) / shared_k."""
    V, K = weight.shape
    scaled, rate = np.empty(K), 1.0 / shared
    for v in range(V):
        row = weight[v]
        for k in range(K):
            scaled[k] = exp_digamma(row[k]) * rate[k]
        largest = scaled[0]
        for k in range(1, K):
            largest = max(largest, scaled[k])
        for k in range(K):
            beta[v, k] = max(scaled[k] / largest, FLOOR)
