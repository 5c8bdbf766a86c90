"""Factor analysis of complete rows: over moments, Newton steps on the profiled likelihood until a step gains little.

The equations are those of `factor_analysis.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dtrtrs

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.moments import is_sparse, moments
from unmix.linear._stage import Way
from unmix.maths import latent
from unmix.maths.latent import Loadings
from unmix.maths.moments import Moments
from unmix.maths.order import canonical


class Newton(Way):
    """Rows that come online add to the moments; of their missing cells, what the factors expect."""

    name, over = "newton", "moments"

    def local(self, U: Loadings, b: Block) -> Local:
        """Moments, and −log p of the rows that they are made of."""
        if isinstance(b.x, Moments):
            return Local(None, b.x, moments_loss(U, b.x))
        if b.observed is None:
            stats = moments(b, U.shift)
        else:
            stats = latent.expected_moments(U, b.x, b.w, b.observed)
        return Local(None, stats, -b.sum(infer(U, b)[1]))

    def described(self, U: Any, data: Any) -> Described:
        """Loadings and moments."""
        return Described(Loadings, Moments)

    def update(self, U: Loadings, stats: Moments) -> Loadings:
        """A ψ of larger likelihood, and the best W for it."""
        centre, scatter = stats.centred()
        k = len(U.loadings)
        noise, lam, V = newton(scatter / stats.n, U.noise, U.floor, k)
        return U._replace(mean=U.shift + centre, loadings=best_loadings(noise, lam, V, k), noise=noise)


# -- rows, given the parts --


def infer(U: Loadings, b: Block) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean of z, and log p, of rows."""
    if b.observed is not None:
        z, loss = latent.infer(U, b.x, b.observed)
        z = z.astype(b.x.dtype)
        return z @ U.rotation.astype(z.dtype), -loss
    H, logdet = factor(U)
    x = b.x
    half = (H @ (U.loadings / U.noise)).astype(x.dtype)
    if is_sparse(x):
        y = x @ half.T - U.mean @ half.T
        r = U.mean / U.noise
        quad = x.multiply(x) @ (1.0 / U.noise) - 2.0 * (x @ r) + U.mean @ r - np.einsum("ia,ia->i", y, y)
        z = y @ H.astype(y.dtype)
    else:
        xc = x - U.mean
        z = (xc @ half.T) @ H.astype(half.dtype)
        r = xc - z @ U.loadings
        quad = (r * r) @ (1.0 / U.noise) + np.einsum("ia,ia->i", z, z)
    constant = logdet + np.log(2 * np.pi * U.noise.astype(np.float64)).sum()
    return z @ U.rotation.astype(z.dtype), -0.5 * (quad + quad.dtype.type(constant))


def factor(U: Loadings) -> tuple[np.ndarray, float]:
    """H with HᵀH = (I + W ψ⁻¹ Wᵀ)⁻¹, and log|I + W ψ⁻¹ Wᵀ|, in float64."""
    W, noise = U.loadings.astype(np.float64), U.noise.astype(np.float64)
    L = np.linalg.cholesky(np.eye(len(W)) + (W / noise) @ W.T)
    if not len(W):  # LAPACK would complain
        return L, 0.0
    H, _ = dtrtrs(L.T, np.eye(len(W)), trans=1)  # SciPy's wrapper takes as long as all the rest of a row
    return np.asarray(H), 2.0 * float(np.log(np.diag(L)).sum())


def moments_loss(U: Loadings, s: Moments) -> float:
    """−Σ log p of the rows that the moments stand for."""
    s = s.about(U.mean - U.shift)
    H, logdet = factor(U)
    half = H @ (U.loadings / U.noise)
    trace = (np.diag(s.scatter) / U.noise).sum() - np.einsum("aj,aj->", half @ s.scatter, half)
    return 0.5 * (s.n * (logdet + float(np.log(2 * np.pi * U.noise).sum())) + float(trace))


# -- the noise, and the loadings given the noise --


def profile(S: np.ndarray, noise: np.ndarray, k: int) -> tuple[float, np.ndarray, np.ndarray]:
    """f, and the eigenvalues (descending) and eigenvectors of ψ^-½ S ψ^-½."""
    r = 1.0 / np.sqrt(noise)
    lam, V = np.linalg.eigh(S * r * r[:, None])
    lam, V = lam[::-1], V[:, ::-1]
    top = np.maximum(lam[:k], 1.0)
    return float(np.log(noise).sum() + np.log(top).sum() + (lam[:k] / top).sum() + lam[k:].sum()), lam, V


def best_loadings(noise: np.ndarray, lam: np.ndarray, V: np.ndarray, k: int) -> np.ndarray:
    """The W of largest likelihood given ψ."""
    W = np.sqrt(np.maximum(lam[:k] - 1.0, 0.0))[:, None] * V[:, :k].T * np.sqrt(noise)
    return canonical(W)


def newton(S: np.ndarray, noise: np.ndarray, floor: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A ψ with a likelihood no smaller, and the eigenvalues and eigenvectors there."""
    f, lam, V = profile(S, noise, k)
    A, B, la, lb = V[:, :k], V[:, k:], lam[:k], lam[k:]
    G, R = B @ B.T, (B * lb) @ B.T
    slope = np.diag(G) - np.diag(R)
    free = (noise > floor * (1 + 1e-9)) | (slope < 0)  # a variance at its floor may only rise
    first = R * G  # positive semi-definite: what is left of H where the model fits
    H = first.copy()
    for a, value in zip(A.T, la, strict=True):
        if value > 1.0:
            c = (1.0 - lb) * (lb + value) / np.maximum(value - lb, 1e-9 * value)
            H += np.outer(a, a) * ((B * c) @ B.T)
    for hessian in (H, first):
        step = np.zeros(len(noise))
        try:
            inner = hessian[np.ix_(free, free)]
            ridge = 1e-9 * np.trace(inner) / max(1, len(inner)) * np.eye(len(inner))
            step[free] = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(inner + ridge), slope[free])
        except np.linalg.LinAlgError:
            continue
        step = np.clip(step, -4.0, 4.0)
        for length in (1.0, 0.25, 0.0625):
            new = np.maximum(noise * np.exp(length * step), floor)
            f_new, lam_new, V_new = profile(S, new, k)
            if f_new < f:
                low = (new < 0.01 * np.diag(S)) & (new > floor) & (step < 0)
                if low.any():  # heading for zero, which exp(θ) cannot reach: see whether it belongs there
                    least = np.where(low, floor, new)
                    f_least, lam_least, V_least = profile(S, least, k)
                    if f_least < f_new:
                        return least, lam_least, V_least
                return new, lam_new, V_new
    W = best_loadings(noise, lam, V, k)
    new = np.maximum(np.diag(S) - np.einsum("aj,aj->j", W, W), floor)
    f_new, lam_new, V_new = profile(S, new, k)
    return (new, lam_new, V_new) if f_new < f else (noise, lam, V)
