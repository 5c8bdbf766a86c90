"""Latent Dirichlet allocation: the topics of documents that are CSR rows, given the words of the topics.

`beta` holds exp(E[log β]) word by word, each word's row divided by its largest entry (whose logarithm is in `top`) and
padded with zeros to a multiple of 8 topics: so every word of a document touches one contiguous row, and neither θ nor
a sum of products can underflow. A sweep over the words of a document is

    θ_k = e^ψ(γ_k)        p_v = Σ_k θ_k β_vk        γ_k ← α_k + θ_k Σ_v n_v β_vk / p_v

(the factor e^−ψ(Σγ) of θ cancels). φ_vk = θ_k β_vk / p_v belongs to the θ of the last sweep, γ follows from φ, and the
bound is that of this φ and this γ: with Σ_k (γ_k − α_k) = Σ_v n_v,

    bound = Σ_v n_v (log p_v + top_v) − Σ_k (γ_k − α_k) log θ_k + log Γ(Σα) − log Γ(Σγ) + Σ_k [log Γ(γ_k) − log Γ(α_k)]

A sweep from the γ of an earlier pass can only raise it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unmix.kernels.lda_special import digamma, exp_digamma, log_gamma, logarithm

FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums over topics in vector registers; their order depends on K alone


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def documents(indptr, indices, counts, weights, beta, top, alpha, gamma, cold, sweeps, tol, words, elog, bounds):
    """Update gamma; fill bounds; add w Σ φ n to words and w E[log θ] to elog, where these have rows."""
    K, padded = gamma.shape[1], beta.shape[1]
    longest = 0
    for i in range(bounds.size):
        longest = max(longest, indptr[i + 1] - indptr[i])
    p = np.empty(longest, beta.dtype)
    theta = np.zeros(padded, beta.dtype)
    gathered = np.empty(padded, beta.dtype)
    floor = 1e-30 if beta.itemsize == 4 else 1e-200
    g = np.empty(K)
    prior, alphas = 0.0, 0.0
    for k in range(K):
        prior -= log_gamma(alpha[k])
        alphas += alpha[k]
    prior += log_gamma(alphas)
    for i in range(bounds.size):
        first, last = indptr[i], indptr[i + 1]
        tokens = 0.0
        for j in range(first, last):
            tokens += counts[j]
        for k in range(K):
            g[k] = alpha[k] + tokens / K if cold else gamma[i, k]
        for _ in range(sweeps):
            for k in range(K):
                theta[k] = max(exp_digamma(g[k]), floor)
            gathered[:] = 0
            for j in range(first, last):
                row = beta[indices[j]]
                total = beta.dtype.type(0)
                for k in range(padded):
                    total += theta[k] * row[k]
                p[j - first] = total
                ratio = counts[j] / total
                for k in range(padded):
                    gathered[k] += ratio * row[k]
            change = 0.0
            for k in range(K):
                new = alpha[k] + np.float64(theta[k]) * np.float64(gathered[k])
                change += abs(new - g[k])
                g[k] = new
            if change < tol * K:
                break
        bound, gammas = prior, 0.0
        for j in range(first, last):
            bound += counts[j] * (logarithm(np.float64(p[j - first])) + top[indices[j]])
        for k in range(K):
            bound += log_gamma(g[k]) - (g[k] - alpha[k]) * logarithm(np.float64(theta[k]))
            gammas += g[k]
            gamma[i, k] = g[k]
        bounds[i] = bound - log_gamma(gammas)
        w = weights[i]
        if words.size:
            for j in range(first, last):
                ratio = beta.dtype.type(w * counts[j] / p[j - first])
                row = words[indices[j]]
                for k in range(padded):
                    row[k] += ratio * theta[k]
        if elog.size:
            shared = digamma(gammas)
            for k in range(K):
                elog[k] += w * (digamma(g[k]) - shared)
    for v in range(words.shape[0]):
        for k in range(padded):
            words[v, k] *= beta[v, k]
