"""Rotations of factors: zT with loadings T⁻¹W describe the same rows as z with W, and may be easier to read."""

from __future__ import annotations

import numpy as np

from unmix.maths.order import signs


def rotate(W: np.ndarray, noise: np.ndarray, method: str | None, kaiser: bool = False, tol: float = 1e-9) -> np.ndarray:
    """T for factors zT with loadings T⁻¹W: W ψ⁻¹ Wᵀ made diagonal, then the rotation, then canonical signs.

    With Kaiser's normalisation every column counts the same for the criterion, however much the factors explain of it;
    promax raises the loadings as they are to a power, as R's does.
    """
    k = len(W)
    if k == 0:
        return np.eye(0)
    T = np.linalg.eigh((W / noise) @ W.T)[1][:, ::-1]
    W = np.ldexp(W, -np.frexp(np.abs(W).max())[1])  # loadings about 1, whose powers stay in range
    if method is not None and k > 1:
        length = np.linalg.norm(W, axis=0)
        seen = W / np.where(length > 0, length, 1.0) if kaiser else W
        T = T @ orthomax(seen.T @ T, 0.0 if method == "quartimax" else 1.0, tol)
        if method == "promax":
            T = T @ promax(W.T @ T)
        if method == "oblimin":
            T = T @ oblimin(seen.T @ T)
        found = np.linalg.solve(T, W)
        T = T[:, np.argsort(-np.einsum("aj,aj->a", found, found), kind="stable")]
    return T * signs(np.linalg.solve(T, W))


def orthomax(L: np.ndarray, gamma: float, tol: float, steps: int = 500) -> np.ndarray:
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


def oblimin(L: np.ndarray, tol: float = 1e-8, steps: int = 1000) -> np.ndarray:
    """T, of unit columns, whose loadings B = LT⁻ᵀ minimise f = ¼ Σ_j Σ_{a≠b} B²_ja B²_jb: direct quartimin.

    Gradient projection (Jennrich 2002): a step down the part of the gradient that is tangent to unit columns, and
    columns made of unit length again; twice as long as the last, and halved until f falls by half of what the slope
    promises.
    """
    T, size = np.eye(L.shape[1]), 1.0
    f, slope = quartimin(L, T)
    for _ in range(steps):
        tangent = slope - T * np.einsum("ab,ab->b", T, slope)
        square = float(np.vdot(tangent, tangent))
        if np.sqrt(square) <= tol * float(np.vdot(L, L)):
            break
        size *= 2.0
        for _ in range(30):
            new = T - size * tangent
            new /= np.linalg.norm(new, axis=0)
            f_new, slope_new = quartimin(L, new)
            if f_new < f - 0.5 * size * square:
                break
            size /= 2.0
        else:  # f falls no more than rounding
            return T
        T, f, slope = new, f_new, slope_new
    return T


def quartimin(L: np.ndarray, T: np.ndarray) -> tuple[float, np.ndarray]:
    """f, and its gradient in T; infinite where T has lost a direction."""
    if np.linalg.cond(T) > 1e8:
        return np.inf, T
    B = np.linalg.solve(T, L.T).T
    others = (B * B) @ (1.0 - np.eye(len(T)))
    return 0.25 * float(np.vdot(B * B, others)), -np.linalg.solve(T.T, (B * others).T @ B)
