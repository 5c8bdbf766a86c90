"""What depends on the covariance type of a mixture of Gaussians: full, tied (one for all), diag or spherical.

`kind` is that type. Covariances have the shape (K, d, d), (d, d), (K, d) or (K,); P with P Pᵀ = Σ⁻¹ are their factors,
of the same shape. In the moments B, symmetric matrices are upper triangles.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dtrtri

from unmix.kernels import gaussian_rows as rows
from unmix.maths.arrays import Array
from unmix.mixture._base import DEAD_SHARE

ROUNDING = 1e-5  # share of the mean square: a variance further below 0 than that is not rounding
SMALLEST_SQUARE = 1e-16  # share of the largest mean square, below which a column's counts as this


class Stats(NamedTuple):
    """N, A, B; symmetric matrices as upper triangles."""

    N: Annotated[np.ndarray, Array("k")]
    A: Annotated[np.ndarray, Array("k d")]
    B: Annotated[np.ndarray, Array("moments")]


def is_matrix(kind: str) -> bool:
    """Whether covariances of a kind are matrices."""
    return kind in ("full", "tied")


def shape_of(kind: str, K: int, d: int) -> tuple[int, ...]:
    """Shape of the covariances."""
    return {"full": (K, d, d), "tied": (d, d), "diag": (K, d), "spherical": (K,)}[kind]


def unit(kind: str, d: int) -> np.ndarray | float:
    """The identity, as a covariance of one component."""
    return np.eye(d) if is_matrix(kind) else 1.0


def n_free(kind: str, K: int, d: int) -> int:
    """How many numbers in the covariances the data could choose."""
    return {"full": K * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": K * d, "spherical": K}[kind]


# ---------------------------------------------------------------- moments


def moments(kind: str, z: np.ndarray, x: np.ndarray) -> Stats:
    """The statistics of complete rows, z_ik times each."""
    N, A = z.sum(axis=0), z.T @ x
    if kind == "full":
        mine = [(z[:, k] > 0).nonzero()[0] for k in range(len(N))]
        return Stats(N, A, np.array([rows.pack((x[i] * z[i, k, None]).T @ x[i]) for k, i in enumerate(mine)]))
    if kind == "tied":
        return Stats(N, A, rows.pack((x * z.sum(axis=1, keepdims=True)).T @ x))
    B = z.T @ (x * x)
    return Stats(N, A, B if kind == "diag" else B.sum(axis=1))


def moments_of(kind: str, N: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> Stats:
    """The statistics of N_k rows of each Gaussian."""
    A = N[:, None] * means
    if kind == "full":
        return Stats(N, A, rows.pack(N[:, None, None] * (covariances + means[:, :, None] * means[:, None, :])))
    if kind == "tied":
        return Stats(N, A, rows.pack(N.sum() * covariances + A.T @ means))
    if kind == "diag":
        return Stats(N, A, N[:, None] * (covariances + means**2))
    return Stats(N, A, N * (means.shape[1] * covariances + (means**2).sum(axis=1)))


def mean_squares(kind: str, B: np.ndarray, count: np.ndarray, total: float, d: int) -> np.ndarray:
    """Σ_i z_ik x_i x_iᵀ / count_k in the form of the covariances; tied: over `total`."""
    if kind == "full":
        return np.asarray(rows.unpack(B, d) / count[:, None, None])
    if kind == "tied":
        return np.asarray(rows.unpack(B, d) / total)
    return B / count[:, None] if kind == "diag" else B / (count * d)


def squares(kind: str, weights: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v_k v_kᵀ in the form of the covariances; tied: Σ_k π_k v_k v_kᵀ."""
    if kind == "full":
        return np.asarray(v[:, :, None] * v[:, None, :])
    if kind == "tied":
        return np.asarray((weights * v.T) @ v)
    return v**2 if kind == "diag" else np.asarray((v**2).mean(axis=1))


# ---------------------------------------------------------------- other forms


def as_matrices(kind: str, covariances: np.ndarray, K: int, d: int) -> np.ndarray:
    """Covariances as (K, d, d)."""
    if is_matrix(kind):
        return np.broadcast_to(covariances, (K, d, d)).copy()
    return np.eye(d) * (covariances[:, None, :] if kind == "diag" else covariances[:, None, None])


def in_shape_of(kind: str, full: np.ndarray) -> np.ndarray:
    """Full covariances in the shape of a kind."""
    if kind == "full":
        return full
    variances = np.diagonal(full, axis1=1, axis2=2)
    return variances.copy() if kind == "diag" else variances.mean(axis=1)


def factors_of_covariances(kind: str, covariances: np.ndarray) -> np.ndarray:
    """P with P Pᵀ = Σ⁻¹, upper triangular."""
    good = np.isfinite(covariances).all()
    if not is_matrix(kind):
        if not (good and (covariances > 0).all()):
            raise ValueError("covariances holds a number that is not positive: give variances")
        return np.asarray(1.0 / np.sqrt(covariances))
    one = covariances.reshape(-1, *covariances.shape[-2:])
    lower = [dpotrf(a, lower=1) for a in one]
    if not good or any(failed for _, failed in lower) or not np.allclose(one, one.transpose(0, 2, 1)):
        raise ValueError("covariances is not symmetric and positive definite: give covariances")
    return np.array([dtrtri(L, lower=1)[0].T for L, _ in lower]).reshape(covariances.shape)


def factors_of_precisions(kind: str, precisions: np.ndarray) -> np.ndarray:
    """P with P Pᵀ = the given precisions, upper triangular."""
    if not is_matrix(kind):
        if not (precisions > 0).all():
            raise ValueError("precisions_init holds a number that is not positive: give inverse variances")
        return np.asarray(np.sqrt(precisions))
    symmetric = np.allclose(precisions, np.swapaxes(precisions, -1, -2))
    try:
        lower = np.linalg.cholesky(precisions[..., ::-1, ::-1])  # of reversed columns, so that P is upper triangular
    except np.linalg.LinAlgError:
        symmetric = False
    if not symmetric:
        raise ValueError("precisions_init is not symmetric and positive definite: give inverse covariances")
    return np.ascontiguousarray(lower[..., ::-1, ::-1])


def covariances_of_factors(kind: str, factors: np.ndarray) -> np.ndarray:
    """Σ of factors P with P Pᵀ = Σ⁻¹."""
    if not is_matrix(kind):
        return factors**-2.0
    one = factors.reshape(-1, *factors.shape[-2:])
    inverse = np.array([solve_triangular(P, np.eye(len(P)), lower=False) for P in one])
    return np.asarray((inverse.transpose(0, 2, 1) @ inverse).reshape(factors.shape))


def narrowest(
    kind: str,
    weights: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    ridge: float,
    rounding: float,
    rows: float,
) -> np.ndarray:
    """Each component's least variance in any direction, (K,); of diag and spherical along any column.

    Where columns follow from each other (those of a category's levels sum to a constant) there are directions in which
    no row differs from another: they are left out, being no component's fault. Not so where no more rows than columns
    make it seem so, nor a column that does not vary, since it may be one that is small beside the ridge.
    """
    K, d = means.shape
    if not is_matrix(kind):
        return np.asarray(covariances.reshape(K, -1).min(axis=1))
    least = np.linalg.eigvalsh(covariances)[..., 0]
    apart = means - weights @ means
    total = (covariances if kind == "tied" else np.tensordot(weights, covariances, 1)) + (apart.T * weights) @ apart
    raw = total - ridge * np.eye(d)
    varies = np.diag(raw) > rounding * np.diag(total)
    size = np.sqrt(np.where(varies, np.diag(raw), 1.0))
    R = np.where(varies[:, None] & varies, raw / np.outer(size, size), np.eye(d))
    values, axes = np.linalg.eigh(R)
    m = int(np.count_nonzero(values <= rounding * d))
    if m in (0, d) or rows <= d:
        return np.broadcast_to(least, K)
    others = np.linalg.qr(axes[:, :m] / size[:, None], mode="complete")[0][:, m:]
    return np.broadcast_to(np.linalg.eigvalsh(others.T @ covariances @ others)[..., 0], K)


# ---------------------------------------------------------------- floors


def floored(
    kind: str, raw: np.ndarray, second: np.ndarray, ridge: float, floor: float, K: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ = raw + ridge·I, its factors, and which components' Σ was singular and raised to the floor.

    `second` are the mean squares of which raw is a small difference; the floor is a share of them.
    """
    if kind == "full":
        return floored_matrices(raw, second, ridge, floor)
    if kind == "tied":
        covariances, factors, low = floored_matrices(raw[None], second[None], ridge, floor)
        return covariances[0], factors[0], np.repeat(low, K)
    return floored_variances(raw, second, ridge, floor)


def floored_matrices(
    raw: np.ndarray, second: np.ndarray, ridge: float, floor: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of matrices, which keep their axes, in units of the root mean squares of the columns."""
    K, d, _ = raw.shape
    covariances = raw + ridge * np.eye(d)
    factors, low = np.empty_like(raw), np.zeros(K, np.int64)
    for k in range(K):
        L, failed = dpotrf(covariances[k], lower=1)
        if failed:
            covariances[k] = raised(raw[k], second[k], floor * d) + ridge * np.eye(d)
            low[k] = 1
            L = cholesky(covariances[k], lower=True)
        factors[k] = dtrtri(L, lower=1)[0].T
    return covariances, factors, low


def raised(raw: np.ndarray, second: np.ndarray, floor: float) -> np.ndarray:
    """A singular covariance, its eigenvalues in units of the root mean squares raised to the floor."""
    square = np.diagonal(second)
    if (square < -DEAD_SHARE * np.abs(second).max()).any():
        raise np.linalg.LinAlgError("a negative mean square")
    scale = np.sqrt(np.maximum(square, SMALLEST_SQUARE * square.max()))
    scale[scale == 0] = 1.0
    values, axes = np.linalg.eigh(raw / np.outer(scale, scale))
    if values[0] < -ROUNDING:
        raise np.linalg.LinAlgError("a covariance that is not positive definite")
    axes = axes * scale[:, None]
    return np.asarray((axes * np.maximum(values, floor)) @ axes.T)


def floored_variances(
    raw: np.ndarray, second: np.ndarray, ridge: float, floor: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of variances."""
    variances = raw + ridge
    low = variances <= 0
    if low.any():
        if (raw < -ROUNDING * np.abs(second)).any() or (second < 0).any():
            raise np.linalg.LinAlgError("a negative variance")
        least = floor * np.maximum(second, SMALLEST_SQUARE * second.max())
        variances = np.where(low, np.maximum(least, np.finfo(np.float64).tiny ** 0.9), variances)
    return variances, 1.0 / np.sqrt(variances), np.asarray(low.reshape(len(low), -1).any(axis=1), dtype=np.int64)
