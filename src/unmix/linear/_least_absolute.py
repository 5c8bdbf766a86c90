"""Least absolute deviations of many rows at once, by an interior-point method."""

from __future__ import annotations

import numpy as np

NEWTON_STEPS = 60  # about 10 are usually enough
GAP_TOLERANCE = 1e-9  # relative duality gap at which it ends
FAR = 4.0  # what lies farther out, in medians of |x|, says nothing about a row's size


def least_absolute(x: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return argmin_c ‖x − cA‖₁ of each row and its A, and the duality gap relative to the size of x.

    Mehrotra's primal-dual steps from least squares:  x − cA = u − v,  s = 1 − y,  t = 1 + y,  Ay = 0;  us = vt = 0 is
    the optimum, and Σ us + vt is the gap. With D = 1/(u/s + v/t) a step solves A D Aᵀ δc = −A D (r/s − q/t).
    """
    At = A.transpose(0, 2, 1)
    small = 1e-14 * np.eye(A.shape[1])  # directions in which nothing was observed stay
    c = times(A, x)
    e = x - times(At, c)
    size = np.minimum(np.abs(x), FAR).sum(axis=1, keepdims=True)  # large outliers do not make the others small
    pad = np.minimum(np.abs(e), FAR).mean(axis=1, keepdims=True) + 1e-12 * size
    u, v, s, t = np.maximum(e, 0) + pad, np.maximum(-e, 0) + pad, np.ones_like(x), np.ones_like(x)

    def newton(r: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, ...]:
        g = r / s - q / t
        dc = -np.linalg.solve(M, times(A, D * g)[..., None])[..., 0]
        dy = -D * (times(At, dc) + g)
        return dc, dy, (r + u * dy) / s, (q - v * dy) / t

    for _ in range(NEWTON_STEPS):
        gap = (u * s + v * t).sum(axis=1, keepdims=True)
        going = gap > GAP_TOLERANCE * size
        if not going.any():
            break
        D = 1.0 / (u / s + v / t)
        M = (A * D[:, None]) @ At + small * D.max(axis=1)[:, None, None]
        dc, dy, du, dv = newton(-u * s, -v * t)
        p, q = reach(u, du, v, dv), reach(s, -dy, t, dy)
        ahead = ((u + p * du) * (s - q * dy) + (v + p * dv) * (t + q * dy)).sum(axis=1, keepdims=True)
        centre = (ahead / gap) ** 3 * gap / (2 * x.shape[1])
        dc, dy, du, dv = newton(centre - u * s + du * dy, centre - v * t - dv * dy)
        p, q = going * reach(u, du, v, dv), going * reach(s, -dy, t, dy)
        c, u, v, s, t = c + p * dc, u + p * du, v + p * dv, s - q * dy, t + q * dy
    return c, (gap / size)[:, 0]


def times(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A v, row by row."""
    return np.asarray((A @ v[..., None])[..., 0])


def reach(a: np.ndarray, da: np.ndarray, b: np.ndarray, db: np.ndarray) -> np.ndarray:
    """How far, up to 1, each row may step so that all stay positive."""
    fastest = np.maximum(-da / a, -db / b).max(axis=1, keepdims=True)
    return np.asarray(0.9995 / np.maximum(fastest, 0.9995))
