"""Latent Dirichlet allocation: the topics of documents that are CSR rows, given the words of the topics.

`beta` holds exp(E[log β]) word by word, each word's row divided by its largest entry (whose logarithm is in `top`) and
padded with zeros to a multiple of 8 topics: so every word of a document touches one contiguous row, and neither θ nor
a sum of products can vanish. A sweep over the words of a document is

    θ_k = e^ψ(γ_k)        p_v = Σ_k θ_k β_vk        γ_k ← α_k + θ_k Σ_v n_v β_vk / p_v

(the factor e^−ψ(Σγ) of θ cancels). φ_vk = θ_k β_vk / p_v belongs to the θ of the last sweep, γ follows from φ, and the
bound is that of this φ and this γ: with Σ_k (γ_k − α_k) = Σ_v n_v,

    bound = Σ_v n_v (log p_v + top_v) − Σ_k (γ_k − α_k) log θ_k + log Γ(Σα) − log Γ(Σγ) + Σ_k [log Γ(γ_k) − log Γ(α_k)]

A sweep from the γ of an earlier pass can only raise it.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, inlined, kernel
from unmix.kernels.special import digamma, exp_digamma, log_gamma, logarithm

THETA_FLOOR = 1e-150  # of θ, whose product with a β of 1 must be a normal number


@inlined(SUMS)
def gather(indices, counts, beta, theta, p, gathered):
    """p_v, and Σ_v n_v β_vk / p_v for each topic; four words at a time share what is loaded of θ and of the sums."""
    gathered[:] = 0.0
    n, padded, zero = indices.size, theta.size, theta.dtype.type(0.0)
    for j in range(0, n - 3, 4):
        a, b, c, d = beta[indices[j]], beta[indices[j + 1]], beta[indices[j + 2]], beta[indices[j + 3]]
        pa = pb = pc = pd = zero
        for k in range(padded):
            t = theta[k]
            pa += t * a[k]
            pb += t * b[k]
            pc += t * c[k]
            pd += t * d[k]
        p[j], p[j + 1], p[j + 2], p[j + 3] = pa, pb, pc, pd
        ra, rb, rc, rd = counts[j] / pa, counts[j + 1] / pb, counts[j + 2] / pc, counts[j + 3] / pd
        for k in range(padded):
            gathered[k] += ra * a[k] + rb * b[k] + rc * c[k] + rd * d[k]
    for j in range(n - n % 4, n):
        a = beta[indices[j]]
        pa = zero
        for k in range(padded):
            pa += theta[k] * a[k]
        p[j] = pa
        ra = counts[j] / pa
        for k in range(padded):
            gathered[k] += ra * a[k]


@kernel(SUMS)
def documents(indptr, indices, counts, weights, beta, top, alpha, gamma, cold, sweeps, tol, words, elog, bounds):
    """Update gamma; fill bounds; add w Σ φ n to words and w E[log θ] to elog, where these have rows."""
    K, padded = gamma.shape[1], beta.shape[1]
    longest = 0
    for i in range(bounds.size):
        longest = max(longest, indptr[i + 1] - indptr[i])
    buffer = np.empty(longest)
    theta = np.zeros(padded)
    gathered = np.empty(padded)
    g = np.empty(K)
    prior, alphas = 0.0, 0.0
    for k in range(K):
        prior -= log_gamma(alpha[k])
        alphas += alpha[k]
    prior += log_gamma(alphas)
    for i in range(bounds.size):
        ids, n = indices[indptr[i] : indptr[i + 1]], counts[indptr[i] : indptr[i + 1]]
        p = buffer[: n.size]
        tokens = n.sum()
        for k in range(K):
            g[k] = alpha[k] + tokens / K if cold else gamma[i, k]
        for _ in range(sweeps):
            for k in range(K):
                theta[k] = max(exp_digamma(g[k]), THETA_FLOOR)
            gather(ids, n, beta, theta, p, gathered)
            change = 0.0
            for k in range(K):
                new = alpha[k] + theta[k] * gathered[k]
                change += abs(new - g[k])
                g[k] = new
            if change < tol * K:
                break
        bound, gammas = prior, 0.0
        for j in range(n.size):
            bound += n[j] * (logarithm(p[j]) + top[ids[j]])
        for k in range(K):
            bound += log_gamma(g[k]) - (g[k] - alpha[k]) * logarithm(theta[k])
            gammas += g[k]
            gamma[i, k] = g[k]
        bounds[i] = bound - log_gamma(gammas)
        w = weights[i]
        if words.size:
            for j in range(n.size):
                ratio = w * n[j] / p[j]
                row = words[ids[j]]
                for k in range(padded):
                    row[k] += ratio * theta[k]
        if elog.size:
            shared = digamma(gammas)
            for k in range(K):
                elog[k] += w * (digamma(g[k]) - shared)
    for v in range(words.shape[0]):
        for k in range(padded):
            words[v, k] *= beta[v, k]
