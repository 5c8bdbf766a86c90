"""Rotations of factors: zT with loadings T⁻¹W describe the same rows as z with W, and may be easier to read."""

from __future__ import annotations

import numpy as np

from unmix.maths.order import signs


def rotate(W: np.ndarray, noise: np.ndarray, method: str | None) -> np.ndarray:
    """T for factors zT with loadings T⁻¹W: W ψ⁻¹ Wᵀ made diagonal, then the rotation, then canonical signs."""
    k = len(W)
    if k == 0:
        return np.eye(0)
    T = np.linalg.eigh((W / noise) @ W.T)[1][:, ::-1]
    W = np.ldexp(W, -np.frexp(np.abs(W).max())[1])  # loadings about 1, whose powers stay in range
    if method is not None and k > 1:
        T = T @ orthomax(W.T @ T, 0.0 if method == "quartimax" else 1.0)
        if method == "promax":
            T = T @ promax(W.T @ T)
        found = np.linalg.solve(T, W)
        T = T[:, np.argsort(-np.einsum("aj,aj->a", found, found), kind="stable")]
    return T * signs(np.linalg.solve(T, W))


def orthomax(L: np.ndarray, gamma: float, tol: float = 1e-9, steps: int = 500) -> np.ndarray:
    """The orthogonal T that maximises Σ (LT)⁴ − γ/d Σ_a (Σ_j (LT)²_ja)²: varimax for γ = 1, quartimax for γ = 0."""
    T, before = np.eye(L.shape[1]), 0.0
    for _ in range(steps):
        B = L @ T
        u, s, vt = np.linalg.svd(L.T @ (B**3 - gamma / len(B) * B * np.einsum("ja,ja->a", B, B)))
        T = u @ vt
        if s.sum() <= before * (1.0 + tol):
            break
        before = s.sum()
    return T


def promax(L: np.ndarray, power: int = 4) -> np.ndarray:
    """T whose oblique factors zT, of unit variance, have loadings close to those of varimax raised to a power."""
    P = np.linalg.lstsq(L, L * np.abs(L) ** (power - 1), rcond=None)[0]
    if np.linalg.matrix_rank(P) < len(P):
        return np.eye(len(P))
    Q = np.linalg.inv(P).T  # k×k and well conditioned: factors z Q have loadings L P
    return Q / np.linalg.norm(Q, axis=0)
