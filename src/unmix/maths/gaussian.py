"""Gaussians with missing cells: moments of what was observed, and what it says about the rest.

One cell given the others, with P = Σ⁻¹ of the observed cells: x_j is N(x_j − (P(x − μ))_j / P_jj, 1/P_jj); of a mixture
it is the mixture of these with weights ∝ π_k N(rest | k) = π_k N(x | k) / N(x_j | rest, k).

For a Gaussian with precision P, split into observed cells o and hidden cells h:

    E[x_h | x_o] = μ_h + S (x_o − μ_o)          S = −P_hh⁺ P_ho
    precision of x_o alone  =  P_oo − P_oh P_hh⁺ P_ho

Rows are taken together by their *pattern*, the set of cells that they show: what depends on the pattern alone is
computed once for each.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from unmix.maths.arrays import Array

MOST_WIDER = 2.0  # times a variance
COMPLETE_ROWS_PER_COLUMN = 5  # with at least this many, the complete rows alone give the covariance


class Whitening(NamedTuple):
    """y = (x − origin) white;  x = origin + y back;  the distance is (x − u)ᵀ precision (x − u)."""

    origin: Annotated[np.ndarray, Array("d")]
    white: Annotated[np.ndarray, Array("d e")]
    back: Annotated[np.ndarray, Array("e d")]
    precision: Annotated[np.ndarray, Array("d d")]


def moments(x: np.ndarray, observed: np.ndarray | None, w: np.ndarray | None, origin: np.ndarray) -> np.ndarray:
    """Σw, Σw x and Σw x xᵀ about the origin: each over the rows that show both cells, and over the complete rows."""
    x = x.astype(np.float64) - origin
    w = (np.ones(len(x)) if w is None else w)[:, None]
    if observed is None:
        first = np.repeat((w * x).sum(axis=0)[:, None], len(origin), axis=1)
        sums = np.stack([np.full_like(first, w.sum()), first, (w * x).T @ x])
        return np.stack([sums, sums])
    out = []
    for seen in (observed, np.repeat(np.all(observed, axis=1, keepdims=True), len(origin), axis=1)):
        y = np.where(seen, x, 0.0)
        out.append(np.stack([(seen * w).T @ seen, (y * w).T @ seen, (y * w).T @ y]))
    return np.stack(out)


def mean_and_covariance(origin: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From `moments`: of the complete rows if they are enough, since they agree with each other; else cell by cell."""
    enough = sums[1, 0].max() >= COMPLETE_ROWS_PER_COLUMN * len(origin)
    count, first, second = sums[1 if enough else 0]
    count = np.maximum(count, 1e-300)
    first = first / count
    return origin + np.diagonal(first), second / count - first * first.T


def whitening(origin: np.ndarray, sums: np.ndarray) -> Whitening:
    """From `moments`; directions in which nothing varies are left out."""
    mean, covariance = mean_and_covariance(origin, sums)
    value, vector = np.linalg.eigh((covariance + covariance.T) / 2)
    some = value > len(value) * np.finfo(np.float64).eps * max(value[-1], 1e-300)
    root, vector = np.sqrt(value[some]), vector[:, some]
    white, back = vector / root, (vector * root).T
    if not some.any():
        white, back = np.zeros((len(value), 1)), np.zeros((1, len(value)))
    return Whitening(mean, white, back, white @ white.T)


def patterns(observed: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows of each pattern of observed cells, and the pattern."""
    kinds, which = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    return [(order[a:b], seen) for a, b, seen in zip([0, *ends], ends, kinds, strict=False)]


def regression(precision: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How missing cells follow the observed ones (Sᵀ), and F with F Fᵀ the precision of the observed cells alone."""
    P = precision.astype(np.float64)
    between, hidden = P[np.ix_(seen, ~seen)], P[np.ix_(~seen, ~seen)]
    slope = -between @ np.linalg.pinv(hidden, hermitian=True) if hidden.size else np.zeros_like(between)
    alone = P[np.ix_(seen, seen)] + slope @ between.T
    value, vector = np.linalg.eigh((alone + alone.T) / 2) if alone.size else (np.zeros(0), alone)
    return slope, vector * np.sqrt(np.maximum(value, 0.0))


def expected(
    x: np.ndarray, observed: np.ndarray, means: np.ndarray, label: np.ndarray, precision: np.ndarray
) -> np.ndarray:
    """Rows with their missing cells as the observed ones predict them, by the Gaussian about the row's own mean."""
    x = x.astype(np.float64)
    for rows, seen in patterns(observed):
        slope, _ = regression(precision, seen)
        u = means[label[rows]]
        x[np.ix_(rows, ~seen)] = u[:, ~seen] + (x[np.ix_(rows, seen)] - u[:, seen]) @ slope
    return x


def leave_one_out(
    x: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E[x_j | rest] and sd[x_j | rest] of every observed cell; rows with the same cells missing go together.

    Covariances are (K, d, d), or variances (K, d).
    """
    expected, deviation = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
    for rows, seen in patterns(~np.isnan(x)):
        if not seen.any():
            continue
        v = x[np.ix_(rows, seen)]
        shape = (len(weights), *v.shape)
        log_rest, centre, variance = np.empty(shape), np.empty(shape), np.empty((len(weights), 1, v.shape[1]))
        for k, (pi, mu, C) in enumerate(zip(weights, means[:, seen], covariances, strict=True)):
            P = np.diag(1.0 / C[seen]) if C.ndim == 1 else inverse(C[np.ix_(seen, seen)])
            away, diagonal = (v - mu) @ P, np.diag(P)
            variance[k] = 1.0 / diagonal
            centre[k] = v - away / diagonal
            log_x = 0.5 * (np.linalg.slogdet(P)[1] - np.einsum("ij,ij->i", away, v - mu))
            log_rest[k] = np.log(max(pi, 1e-300)) + log_x[:, None] - 0.5 * (np.log(diagonal) - away**2 / diagonal)
        r = np.exp(log_rest - logsumexp(log_rest, axis=0))
        mean = (r * centre).sum(axis=0)
        expected[np.ix_(rows, seen)] = mean
        deviation[np.ix_(rows, seen)] = np.sqrt((r * (variance + (centre - mean) ** 2)).sum(axis=0))
    return expected, deviation


class Completed(NamedTuple):
    """Rows about the mean of a Gaussian, their missing cells expected or drawn, and what else was asked for.

    Variances are 0 where a cell was observed; `spread` is Σ w C, C the covariance of a row's missing cells given the
    others. What was not asked for is empty.
    """

    rows: np.ndarray
    log_p: np.ndarray
    variances: np.ndarray
    spread: np.ndarray


NOTHING = np.zeros((0, 0))


def together(observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in an order in which those of one pattern stand together, and where each pattern begins, with the end."""
    packed = np.packbits(observed, axis=1)
    order = np.lexsort(packed.T)
    changes = (packed[order[1:]] != packed[order[:-1]]).any(axis=1)
    return order, np.concatenate([[0], np.flatnonzero(changes) + 1, [len(observed)]])


def complete(
    x: np.ndarray,
    observed: np.ndarray | None,
    mean: np.ndarray,
    factor: np.ndarray,
    *,
    w: np.ndarray | None = None,
    noise: np.ndarray | None = None,
    variances: bool = False,
) -> Completed:
    """Rows as N(mean, Σ) completes them, in float64; P Pᵀ = Σ⁻¹, P the upper triangular `factor`.

    With weights w their Σ w C is added up; with standard normal `noise` in the shape of x missing cells are drawn.
    log_p is the log-density of the observed cells. Columns are measured in units near their deviations: floors of
    variances and of precisions are those of rounding at 1.
    """
    from unmix.kernels.gaussian_missing import LOG_2PI
    from unmix.kernels.gaussian_missing import complete as fill

    P, r = factor.astype(np.float64, copy=False), x.astype(np.float64) - mean
    n, d = r.shape
    log_det = float(np.log(np.diagonal(P)).sum())
    half, count, spread, var = np.zeros(n), np.full(n, float(d)), NOTHING, NOTHING
    if observed is not None:
        r[~observed] = 0.0
        count = observed.sum(axis=1).astype(np.float64)
        spread = NOTHING if w is None else np.zeros((d, d))
        var = np.zeros((n, d)) if variances else NOTHING
        precision, most = P @ P.T, 2 * count.min(initial=d) < d  # some rows miss more than half of their cells
        root = np.linalg.inv(P) if most else np.zeros((0, d))
        weight = np.ones(n) if w is None else w
        observed, (order, first) = np.ascontiguousarray(observed), together(observed)
        given = weight, precision, root.T @ root, log_det, r @ precision, NOTHING if noise is None else noise
        if n:  # without rows `first` still names one pattern, and the kernel would look for its first row
            fill(observed, order, first, *given, r, var, half, spread)
    y = r @ P
    log_p = log_det - half - 0.5 * (np.einsum("ij,ij->i", y, y) + count * LOG_2PI)
    return Completed(r, np.where(count > 0, log_p, 0.0), var, spread)


def scales(covariance: np.ndarray) -> np.ndarray:
    """The deviations of columns, however unlike in size; of one that does not vary a millionth of the largest."""
    variance = np.diag(covariance)
    return np.asarray(np.sqrt(np.where(variance > 0, variance, 1e-12 * variance.max() or 1.0)))


def factor_of(covariance: np.ndarray) -> np.ndarray:
    """P with P Pᵀ = Σ⁻¹, upper triangular; directions of no variance get a little."""
    scale = scales(covariance)
    R = covariance / np.outer(scale, scale)
    try:
        L = np.linalg.cholesky(R)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(R)
        R = np.asarray(np.linalg.qr((axes * np.sqrt(np.maximum(values, 1e-12 * values[-1]))).T, mode="r"))
        L = R.T * np.sign(np.diagonal(R))
    return np.asarray(np.linalg.inv(L).T / scale[:, None])  # of a triangle: SciPy's solver wakes threads for any size


def completed(x: np.ndarray, observed: np.ndarray, mean: np.ndarray, covariance: np.ndarray, **how: Any) -> Completed:
    """Rows as `complete` has them, by a covariance of columns in any units: powers of two measure them."""
    units = np.ldexp(1.0, np.frexp(scales(covariance))[1])
    factor = factor_of(covariance / np.outer(units, units))
    found = complete((x - mean) / units, observed, np.zeros(len(mean)), factor, **how)
    log_p, variances = found.log_p - observed @ np.log(units), found.variances
    return found._replace(
        rows=found.rows * units, log_p=log_p, variances=variances * units**2 if variances.size else variances
    )


def wider(n: float, observed: np.ndarray, times: int) -> np.ndarray:
    """What variances given the observed cells are multiplied by, (rows, 1), where fits to n rows are too sure of them.

    n/(n − times (p + 1)), p the observed cells of a row: a residual variance of a regression on p columns is too small
    by (n − p − 1)/n, twice where what is fitted to is drawn from another fit's rows. At most `MOST_WIDER`.
    """
    lost = times * (observed.sum(axis=1, keepdims=True) + 1.0)
    n = max(n, 1.0)
    return np.asarray(n / np.maximum(n - lost, n / MOST_WIDER))


def members(
    x: np.ndarray, observed: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of the K Gaussians of a mixture in each row, (K, n); what each expects of the row's cells, and their
    variances, (K, n, d) both. Covariances are (K, d, d), or variances (K, d).
    """
    K, (n, d) = len(weights), x.shape
    log_z, expected, variances = np.empty((K, n)), np.empty((K, n, d)), np.empty((K, n, d))
    for k, (pi, mu, C) in enumerate(zip(weights, means, covariances, strict=True)):
        if C.ndim == 1:
            away = np.where(observed, (x - mu) ** 2 / C + np.log(C), 0.0)
            log_p, expected[k], variances[k] = -0.5 * away.sum(axis=1), mu, C
        else:
            found = completed(x, observed, mu, C, variances=True)
            log_p, expected[k], variances[k] = found.log_p, found.rows + mu, found.variances
        log_z[k] = np.log(max(pi, 1e-300)) + log_p
    return np.exp(log_z - logsumexp(log_z, axis=0)), expected, variances


def conditional(x: np.ndarray, observed: Any, *mixture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[x | x_o] and Var[x | x_o] of the missing cells under a mixture of Gaussians, in float64."""
    return mixed(*members(x.astype(np.float64), observed, *mixture))


def mixed(shares: np.ndarray, expected: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of cells by the shares (K, n) of components in their rows: within them and between."""
    mean = np.einsum("kn,kn...->n...", shares, expected)
    return mean, np.einsum("kn,kn...->n...", shares, variances + (expected - mean) ** 2)


def drawn(x: np.ndarray, observed: Any, *mixture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows whose missing cells are drawn, jointly, given the observed ones, in float64."""
    weights, means, covariances = mixture
    x = x.astype(np.float64)
    which = chosen(members(x, observed, *mixture)[0], rng)
    noise, out = rng.standard_normal(x.shape), x.copy()
    for k in range(len(weights)):
        own = np.flatnonzero(which == k)
        if not len(own):
            continue
        if covariances[k].ndim == 1:
            out[own] = means[k] + noise[own] * np.sqrt(covariances[k])
        else:
            found = completed(x[own], observed[own], means[k], covariances[k], noise=noise[own])
            out[own] = means[k] + found.rows
    return np.where(observed, x, out)


def chosen(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One of K components for each row, by its shares (K, n)."""
    return np.asarray((rng.random(shares.shape[1]) > np.cumsum(shares, axis=0)[:-1]).sum(axis=0))


def inverse(C: np.ndarray) -> np.ndarray:
    """Σ⁻¹; directions of no variance get a little."""
    scale = scales(C)
    values, axes = np.linalg.eigh(C / np.outer(scale, scale))
    axes = axes / scale[:, None]
    return np.asarray((axes / np.maximum(values, 1e-12 * values[-1])) @ axes.T)


def filled(apart: np.ndarray, seen: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Rows about their mean, the cells that were not seen replaced by what is expected of them."""
    out = apart.copy()
    for i in np.flatnonzero(~seen.all(axis=1)):
        a, b = seen[i], ~seen[i]
        out[i, b] = covariance[np.ix_(b, a)] @ np.linalg.lstsq(covariance[np.ix_(a, a)], apart[i, a])[0]
    return out
