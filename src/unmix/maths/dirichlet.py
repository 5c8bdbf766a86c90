"""Dirichlet distributions, and sticks broken one after the other: expectations, divergences, the likeliest parameters.

Weights π of K parts are a Dirichlet of a concentration (K,), or sticks v_k ~ Beta(a_k, b_k) of one (2, K), with
π_k = v_k Π_{j<k} (1 − v_j).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, digamma, gammaln, zeta

ALPHA_FLOOR = 1e-5  # of a learned α
TOTAL_LIMIT = 1e10  # of the sum of a learned α
ETA_RANGE = 1e-5, 1e3  # of a learned η


def expected_log(concentration: np.ndarray) -> np.ndarray:
    """E log π of a Dirichlet."""
    return np.asarray(digamma(concentration) - digamma(concentration.sum()))


def expected_weights(concentration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E π, made to sum to 1, and E log π, of a Dirichlet (K,) or of sticks (2, K)."""
    if concentration.ndim == 1:
        return concentration / concentration.sum(), expected_log(concentration)
    a, b = concentration
    rest = np.append(1.0, np.cumprod(b / (a + b))[:-1])
    weights = a / (a + b) * rest
    log_rest = np.append(0.0, np.cumsum(digamma(b) - digamma(a + b))[:-1])
    return weights / weights.sum(), digamma(a) - digamma(a + b) + log_rest


def divergence(concentration: np.ndarray, prior: float) -> float:
    """KL(q(π) ‖ p(π)) of a Dirichlet (K,) or of sticks (2, K)."""
    if concentration.ndim == 1:
        K, total = len(concentration), concentration.sum()
        norm = gammaln(total) - gammaln(concentration).sum() - gammaln(K * prior) + K * gammaln(prior)
        return float(norm + ((concentration - prior) * expected_log(concentration)).sum())
    a, b = concentration
    mean = (a - 1.0) * digamma(a) + (b - prior) * digamma(b) - (a + b - 1.0 - prior) * digamma(a + b)
    return float((betaln(1.0, prior) - betaln(a, b) + mean).sum())


def learn_alpha(alpha: np.ndarray, elog: np.ndarray) -> np.ndarray:
    """Return the α ≥ ALPHA_FLOOR that maximises log Γ(Σα) − Σ log Γ(α_k) + Σ α_k elog_k, which is concave.

    There ψ(α_k) = ψ(A) + elog_k, or α_k = ALPHA_FLOOR where that is below it: this leaves one equation, in A = Σα.
    """
    if len(alpha) == 1:  # every α says the same
        return alpha

    def objective(a: np.ndarray) -> float:
        return float(gammaln(a.sum()) - gammaln(a).sum() + a @ elog)

    def follow(log_total: float) -> np.ndarray:
        return np.maximum(inverse_digamma(digamma(np.exp(log_total)) + elog), ALPHA_FLOOR)

    def excess(log_total: float) -> float:
        return float(np.log(follow(log_total).sum()) - log_total)

    low, high = np.log(len(alpha) * ALPHA_FLOOR), np.log(TOTAL_LIMIT)
    best = low
    if excess(low) > 0:
        best = brentq(excess, low, high, xtol=1e-12) if excess(high) < 0 else high
    new = follow(best)
    return new if objective(new) >= objective(alpha) else alpha


def inverse_digamma(y: np.ndarray) -> np.ndarray:
    """Return the x with ψ(x) = y, by Newton steps from Minka's start."""
    x = np.where(y > -2.22, np.exp(np.maximum(y, -2.22)) + 0.5, -1.0 / (np.minimum(y, -2.22) - digamma(1.0)))
    for _ in range(6):
        x -= (digamma(x) - y) / zeta(2, x)  # ζ(2, x) is ψ′(x)
    return x


def learn_eta(elog: float, n_words: int) -> float:
    """Return the η that maximises log Γ(Vη) − V log Γ(η) + V η elog: where ψ(η) − ψ(Vη), which rises, is elog."""

    def slope(log_eta: float) -> float:
        return float(digamma(np.exp(log_eta)) - digamma(n_words * np.exp(log_eta)) - elog)

    low, high = np.log(ETA_RANGE[0]), np.log(ETA_RANGE[1])
    if slope(low) >= 0 or slope(high) <= 0:
        return float(np.exp(low if slope(low) >= 0 else high))
    return float(np.exp(brentq(slope, low, high, xtol=1e-12)))
