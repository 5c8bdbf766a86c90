"""Equations of Wishart distributions that a Bayesian mixture of Gaussians needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from unmix.kernels import gaussian_rows as rows
from unmix.mixture.covariances import is_matrix


def multi_digamma(nu: Any, d: int) -> Any:
    """Σ_{i<d} ψ((ν − i)/2): E log|Λ| but for d log 2 + log|W|."""
    return digamma(0.5 * (np.asarray(nu)[..., None] - np.arange(d))).sum(axis=-1)


def log_gamma(nu: Any, d: int) -> Any:
    """Σ_{i<d} log Γ((ν − i)/2): the multivariate log-gamma function but for a constant."""
    return gammaln(0.5 * (np.asarray(nu)[..., None] - np.arange(d))).sum(axis=-1)


def scatters(
    kind: str, W0: np.ndarray, B: np.ndarray, beta0: float, m0: np.ndarray, beta: np.ndarray, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W₀⁻¹ + B_k + β₀ m₀m₀ᵀ − β_k m_k m_kᵀ in the form of the covariances, and the sum from which the last is taken."""
    K, d = means.shape
    if kind == "full":
        square = W0 + rows.unpack(B, d) + beta0 * np.outer(m0, m0)
        return square - beta[:, None, None] * means[:, :, None] * means[:, None, :], square
    if kind == "tied":
        square = W0 + rows.unpack(B, d) / K + beta0 * np.outer(m0, m0)
        return square - (beta * means.T) @ means / K, square
    if kind == "diag":
        square = W0 + B + beta0 * m0**2
        return square - beta[:, None] * means**2, square
    square = W0 + (B + beta0 * (m0**2).sum()) / d
    return square - beta * (means**2).mean(axis=1), square


def traces(kind: str, factors: np.ndarray, d: int) -> Any:
    """Traces of the precisions."""
    if is_matrix(kind):
        return (factors**2).sum(axis=(-2, -1))
    return (factors**2).sum(axis=1) if kind == "diag" else d * factors**2


def log_det_of(prior: np.ndarray, d: int) -> float:
    """log|W₀⁻¹|."""
    return float(np.linalg.slogdet(prior)[1] if prior.ndim == 2 else np.log(np.broadcast_to(prior, d)).sum())
