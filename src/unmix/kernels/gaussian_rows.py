"""Log-densities of rows under K Gaussians, and the moments of the rows weighted by their responsibilities.

Two ways to the same numbers:

features   log π_k N(x | μ_k, Σ_k) = η_k · T(x),  T(x) = (1, x, products of x), so that the densities are one matrix
           product and the moments, Σ z_k T(x), another. Half the operations of the textbook form, but about the fixed
           origin: only as long as `spread`, by how much the terms of η · T(x) exceed their sum, is small against the
           precision.
centred    (x − μ_k) P_k for one component after the other; any data, and cells may be missing where Σ_k is diagonal.

Rows arrive about the origin. Moments come back in float64 about the origin; symmetric matrices as upper triangles.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

LOG_2PI = float(np.log(2.0 * np.pi))
TILE = 1 << 17  # numbers in a tile of rows: with their copies they stay in the second-level cache
WEIGHT_FLOOR = 1e-300  # stands for a weight of zero, so that its logarithm is a number


class Gaussians(NamedTuple):
    """K weighted Gaussians about the origin; `kind` is full, tied, diag or spherical, P P' = the inverse of Σ."""

    kind: str
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    factors: np.ndarray
    natural: np.ndarray


class Totals(NamedTuple):
    """N = Σ z, A = Σ z x, B = Σ z x x' in the form that the kind needs."""

    N: np.ndarray
    A: np.ndarray
    B: np.ndarray


triangle = cache(np.triu_indices)  # made once: as slow as a pass over few rows


def pack(M: np.ndarray) -> np.ndarray:
    """Upper triangles of the last two axes, row after row."""
    i, j = triangle(M.shape[-1])
    return M[..., i, j]


def unpack(v: np.ndarray, d: int) -> np.ndarray:
    """Symmetric matrices from their upper triangles."""
    i, j = triangle(d)
    M = np.empty((*v.shape[:-1], d, d), dtype=v.dtype)
    M[..., i, j] = v
    M[..., j, i] = v
    return M


def log_det(kind: str, factors: np.ndarray, d: int) -> np.ndarray:
    """Logarithms of |P_k|, halves of those of the precisions' determinants, in float64."""
    if kind in ("full", "tied"):
        factors = np.diagonal(factors, axis1=-2, axis2=-1)
    logs = np.log(factors, dtype=np.float64)
    return np.asarray(d * logs if kind == "spherical" else logs.sum(axis=-1))


def natural(kind: str, weights: np.ndarray, means: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """η: what multiplies each feature. For tied the term −½ |x P|², common to all components, is left out."""
    K, d = means.shape
    if kind == "full":
        precision = factors @ factors.transpose(0, 2, 1)
        linear = np.einsum("kij,kj->ki", precision, means)
        quadratic = -pack(precision * (1.0 - 0.5 * np.eye(d)))
    elif kind == "tied":
        linear = means @ factors @ factors.T
        quadratic = np.empty((K, 0))
    else:
        precision = factors**2 if kind == "diag" else (factors**2)[:, None]
        linear = means * precision
        quadratic = -0.5 * precision
    constant = np.log(np.maximum(weights, WEIGHT_FLOOR)) + log_det(kind, factors, d) - 0.5 * d * LOG_2PI
    constant -= 0.5 * np.einsum("kj,kj->k", linear, means)
    return np.hstack([constant[:, None], linear, quadratic])


def spread(kind: str, means: np.ndarray, covariances: np.ndarray, factors: np.ndarray) -> float:
    """Sum of the absolute terms of x' Λ_k x for an x of the size that is typical of component k; the largest."""
    d = means.shape[1]
    if kind in ("full", "tied"):
        variance = np.diagonal(covariances, axis1=-2, axis2=-1)
        size = np.sqrt(means**2 + variance)
        if kind == "full":
            precision = np.abs(factors @ factors.transpose(0, 2, 1))
            return float(np.einsum("ki,kij,kj->k", size, precision, size).max())
        return float(((size @ np.abs(factors)) ** 2).sum(axis=1).max())
    precision = factors**2 if kind == "diag" else (factors**2)[:, None]
    return float((means**2 * precision).sum(axis=1).max() + d)


def least(dtype: np.dtype) -> Any:
    """Logarithm of the smallest responsibility that counts: products with smaller ones may be denormal, hence slow."""
    return dtype.type(0.8 * np.log(np.finfo(dtype).tiny))


def normalise(log_p: np.ndarray) -> np.ndarray:
    """Turn the columns of log π_k N(x | k) into responsibilities, in place; return log p(x)."""
    top = log_p.max(axis=0)
    log_p -= top
    log_p[log_p < least(log_p.dtype)] = -np.inf
    np.exp(log_p, out=log_p)
    total = log_p.sum(axis=0)
    log_p /= total
    return np.asarray(top + np.log(total))


def by_features(
    G: Gaussians, x: np.ndarray, shift: np.ndarray, w: np.ndarray | None, moments: bool
) -> tuple[np.ndarray, np.ndarray, Totals | None]:
    """Responsibilities (n, K), log p(x) of each row and, if wanted, moments, by features about `shift`."""
    from unmix.kernels import gaussian_features as kernel

    n, d = x.shape
    K, q = G.natural.shape
    x, eta = np.ascontiguousarray(x), np.ascontiguousarray(G.natural)
    code = {"full": kernel.FULL, "diag": kernel.DIAG, "spherical": kernel.SPHERICAL, "tied": kernel.LINEAR}[G.kind]
    z, log_p = np.empty((n, K), x.dtype), np.empty(n, x.dtype)
    kernel.responsibilities(x, shift, code, eta, least(x.dtype), z, log_p)
    centred = x - shift if G.kind == "tied" else x
    if G.kind == "tied":
        y = centred @ G.factors
        log_p -= 0.5 * np.einsum("ij,ij->i", y, y)
    if not moments:
        return z, log_p, None
    weight, total = np.empty(0, x.dtype) if w is None else w.astype(x.dtype), np.zeros((q, K))
    kernel.moments(x, shift, code, z, weight, total)
    B = total[1 + d :].T
    if G.kind == "tied":
        B = pack(((centred if w is None else centred * weight[:, None]).T @ centred).astype(np.float64))
    B = B[:, 0] if G.kind == "spherical" else B
    return z, log_p, Totals(total[0], total[1 : 1 + d].T.copy(), B.copy())


def by_components(
    G: Gaussians, x: np.ndarray, shift: np.ndarray, w: np.ndarray | None, observed: np.ndarray | None, moments: bool
) -> tuple[np.ndarray, np.ndarray, Totals | None]:
    """The same, about one mean after the other; `observed` for kinds diag and spherical only."""
    n, d = x.shape
    K = len(G.means)
    matrix = G.kind in ("full", "tied")
    factors = np.broadcast_to(G.factors, (K, d, d)) if matrix else G.factors.reshape(K, -1)
    constant = np.log(np.maximum(G.weights, WEIGHT_FLOOR), dtype=np.float64)
    if observed is None:
        constant = constant + log_det(G.kind, G.factors, d) - 0.5 * d * LOG_2PI
    N, A = np.zeros(K), np.zeros((K, d))
    B = np.zeros((K, d, d) if matrix else (K, d))
    z, log_p = np.empty((n, K), x.dtype), np.empty(n, x.dtype)
    step = int(np.clip(TILE // (4 * d), 64, 4096))
    for a in range(0, n, step):
        centred = x[a : a + step] - shift
        r = len(centred)
        seen = None if observed is None else observed[a : a + r].astype(x.dtype)
        p = np.empty((K, r), x.dtype)
        for k in range(K):
            xk = centred - G.means[k]
            if seen is not None:
                xk *= seen
            y = xk @ factors[k] if matrix else xk * factors[k]
            p[k] = constant[k] - 0.5 * np.einsum("ij,ij->i", y, y)
            if seen is not None:
                p[k] += seen @ np.broadcast_to(np.log(factors[k]) - 0.5 * LOG_2PI, d).astype(x.dtype)
        log_p[a : a + r] = normalise(p)
        z[a : a + r] = p.T
        if not moments:
            continue
        if w is not None:
            p *= w[a : a + r]
        for k in range(K):
            mean = G.means[k].astype(np.float64)
            xk = centred - G.means[k]
            if seen is not None:
                xk *= seen
            nk, ak = p[k].sum(dtype=np.float64), (p[k] @ xk).astype(np.float64)
            N[k] += nk
            A[k] += ak + nk * mean
            if matrix:
                cross = np.outer(ak, mean)
                B[k] += (xk * p[k][:, None]).T @ xk + cross + cross.T + nk * np.outer(mean, mean)
            else:
                square = (p[k] @ (xk * xk)).astype(np.float64)
                if seen is not None:  # a cell that was not observed varies as the component says
                    square += (nk - p[k] @ seen) * G.covariances[k]
                B[k] += square + 2.0 * ak * mean + nk * mean**2
    if observed is not None:
        log_p[~observed.any(axis=1)] = 0.0
    if not moments:
        return z, log_p, None
    if G.kind == "spherical":
        B = B.sum(axis=1)
    elif matrix:
        B = pack(B.sum(axis=0) if G.kind == "tied" else B)
    return z, log_p, Totals(N, A, B)
