"""The latent linear model  x = zW + μ + ε,  z ~ N(0, I),  ε ~ N(0, diag ψ),  where some cells of x are missing.

Only the observed cells o of a row enter its likelihood. EM with parameter expansion (Liu, Rubin & Wu 1998): the step
lets z ~ N(a, R), then absorbs a and R into μ and W, which makes it several times faster and costs k×k numbers.

local    M = I + W_o ψ_o⁻¹ W_oᵀ      m = M⁻¹ W_o ψ_o⁻¹ (x_o − μ_o)      E[ẑẑᵀ] = (M⁻¹ + mmᵀ, m; mᵀ, 1)      ẑ = (z, 1)
         loss = ½ Σ_o ((x − mW − μ)²/ψ + log 2πψ) + ½ mᵀm + ½ log|M|              [the inversion and determinant lemmas]
stats    A_j = Σ_{i: j observed} E[ẑẑᵀ]     B_j = Σ (x_ij − s_j) E[ẑ]     C_j = Σ (x_ij − s_j)²     N = Σ_i E[ẑẑᵀ]
update   (w_j, μ_j) = A_j⁻¹ B_j     rest_j = C_j − B_jᵀ A_j⁻¹ B_j     ψ_j = rest_j / n_j     μ += aW     W ← chol(R)ᵀ W

where n_j, the last entry of A_j, is the number of rows that show j. Factor analysis is this model; probabilistic PCA is
this model with one ψ for all columns, Σ_j rest_j / Σ_j n_j.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.linalg

from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.distances import dense
from unmix.maths.moments import Moments

CHUNK_NUMBERS = 1 << 19  # in a k×k×rows array: about 4 MiB


class Loadings(NamedTuple):
    """Parts of the model; z of `transform` is z of the model times `rotation`. The noise stays above its floor."""

    shift: Annotated[np.ndarray, Array("d")]
    mean: Annotated[np.ndarray, Array("d")]
    loadings: Annotated[np.ndarray, Array("f d")]
    noise: Annotated[np.ndarray, Array("d", low=POSITIVE)]
    floor: Annotated[np.ndarray, Array("d", low=0.0)]
    rotation: Annotated[np.ndarray, Array("f f")]


class CellLoadings(Loadings):
    """The same parts, learnt cell by cell because some cells are missing."""

    __slots__ = ()


class Cells(NamedTuple):
    """The statistics A, B, C, N; symmetric matrices as their lower triangles, columns of X last."""

    second: Annotated[np.ndarray, Array("t d")]
    cross: Annotated[np.ndarray, Array("f+1 d")]
    square: Annotated[np.ndarray, Array("d")]
    latent: Annotated[np.ndarray, Array("t")]


class Posterior(NamedTuple):
    """p(z | x_o) of some rows: z ~ N(m, HᵀH), rows last; with x − μ (0 in unobserved cells) and −log p(x_o)."""

    residual: np.ndarray
    mean: np.ndarray
    half: np.ndarray
    loss: np.ndarray


def posterior(U: Loadings, x: np.ndarray, observed: np.ndarray | None) -> Posterior:
    """What the observed cells of each row say about its z; the k×k systems of all rows at once, in float64."""
    W, noise = U.loadings.astype(np.float64), U.noise.astype(np.float64)
    k = len(W)
    xc = (x - U.mean).astype(np.float64)
    scaled = W / noise
    if observed is None:
        M, constant = (scaled @ W.T)[:, :, None], np.log(2 * np.pi * noise).sum()
    else:
        xc *= observed
        i, j = np.tril_indices(k)
        M = np.empty((k, k, len(x)))
        M[i, j] = M[j, i] = (W[i] * scaled[j]) @ observed.T.astype(np.float64)
        constant = observed @ np.log(2 * np.pi * noise)
    M[np.arange(k), np.arange(k)] += 1.0
    half, logdet = inverse_factor(M)
    m = np.einsum("pan,pn->an", half, np.einsum("pan,an->pn", half, scaled @ xc.T))
    r = xc - m.T @ W
    if observed is not None:
        r *= observed
    loss = 0.5 * ((r * r) @ (1.0 / noise) + np.einsum("an,an->n", m, m) + logdet + constant)
    return Posterior(xc, m, half, loss)


def inverse_factor(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H = L⁻¹ and log|M|, M = LLᵀ, of many small matrices (last axis) at once: every step runs over all of them."""
    k = len(M)
    L, H = np.zeros_like(M), np.zeros_like(M)
    for j in range(k):
        L[j, j] = np.sqrt(M[j, j] - np.einsum("pn,pn->n", L[j, :j], L[j, :j]))
        L[j + 1 :, j] = (M[j + 1 :, j] - np.einsum("apn,pn->an", L[j + 1 :, :j], L[j, :j])) / L[j, j]
        H[j, :j] = -np.einsum("pn,pan->an", L[j, :j], H[:j, :j]) / L[j, j]
        H[j, j] = 1.0 / L[j, j]
    diagonal = L[np.arange(k), np.arange(k)]
    return H, 2.0 * np.log(diagonal).sum(axis=0)


def chunks(n: int, k: int) -> Iterator[slice]:
    """Rows in pieces whose k×k systems fit the cache."""
    step = max(64, CHUNK_NUMBERS // max(1, k * k))
    return (slice(i, i + step) for i in range(0, n, step))


def infer(U: Loadings, x: Any, observed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """E[z | x_o] and −log p(x_o) of each row, in float64."""
    x = dense(x)
    found = [posterior(U, x[c], None if observed is None else observed[c]) for c in chunks(len(x), len(U.loadings))]
    return np.concatenate([p.mean.T for p in found]), np.concatenate([p.loss for p in found])


def hidden(U: Loadings, x: Any, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[z | x_o], (n, k), and Cov[z | x_o], (n, k, k), of each row, in float64."""
    x = dense(x)
    found = [posterior(U, x[c], observed[c]) for c in chunks(len(x), len(U.loadings))]
    covariances = [np.einsum("pan,pbn->nab", p.half, p.half) for p in found]
    return np.concatenate([p.mean.T for p in found]), np.concatenate(covariances)


def conditional(U: Loadings, x: Any, observed: Any) -> tuple[np.ndarray, np.ndarray]:
    """E[x | x_o] and Var[x | x_o] of every cell, in float64; observed cells are themselves, without variance."""
    x = dense(x)
    W, noise = U.loadings.astype(np.float64), U.noise.astype(np.float64)
    mean, variance = x.astype(np.float64), np.zeros(x.shape)
    for c in chunks(len(x), len(W)):
        seen = observed[c]
        p = posterior(U, x[c], seen)
        mean[c] = np.where(seen, mean[c], U.mean + p.mean.T @ W)
        spread = np.tile(noise, (len(seen), 1))
        for h in np.broadcast_to(p.half, (*p.half.shape[:2], len(seen))):
            spread += (h.T @ W) ** 2
        variance[c] = np.where(seen, 0.0, spread)
    return mean, variance


def drawn(U: Loadings, x: Any, observed: Any, rng: np.random.Generator) -> np.ndarray:
    """Rows whose missing cells are drawn, jointly, given the observed ones, in float64."""
    x = dense(x)
    W, noise = U.loadings.astype(np.float64), U.noise.astype(np.float64)
    out = x.astype(np.float64)
    for c in chunks(len(x), len(W)):
        p = posterior(U, x[c], observed[c])
        z = p.mean + np.einsum("pan,pn->an", p.half, rng.standard_normal(p.mean.shape))
        new = U.mean + z.T @ W + rng.standard_normal(out[c].shape) * np.sqrt(noise)
        out[c] = np.where(observed[c], out[c], new)
    return out


def expect(U: Loadings, x: Any, w: np.ndarray | None, observed: np.ndarray | None) -> tuple[Cells, float]:
    """The statistics A, B, C, N about the origin U.shift, and −log p of the observed cells."""
    x = dense(x)
    k, d = U.loadings.shape
    t = (k + 1) * (k + 2) // 2
    total, loss = Cells(np.zeros((t, d)), np.zeros((k + 1, d)), np.zeros(d), np.zeros(t)), 0.0
    for c in chunks(len(x), k):
        seen = None if observed is None else observed[c]
        p = posterior(U, x[c], seen)
        weight = np.ones(len(p.loss)) if w is None else w[c]
        for into, part in zip(total, sums(p, weight, seen), strict=True):
            into += part
        loss += float(p.loss.sum() if w is None else weight @ p.loss)
    return moved(total, (U.mean - U.shift).astype(np.float64)), loss


def sums(p: Posterior, weight: np.ndarray, seen: np.ndarray | None) -> Cells:
    """A, B, C, N of weighted rows about the current mean; of complete rows A has one column, which stands for all."""
    k, n = p.mean.shape
    i, j = np.tril_indices(k + 1)
    one = np.vstack([p.mean, np.ones((1, n))])
    E = one[i] * one[j]
    inner = i < k
    E[inner] += np.einsum("pan,pan->an", p.half[:, i[inner]], p.half[:, j[inner]])
    E *= weight
    if seen is None:
        latent = E.sum(axis=1)
        second = latent[:, None]
    else:
        latent = E @ seen.any(axis=1)  # a row without an observed cell does not count
        second = E @ seen.astype(np.float64)
    return Cells(second, (one * weight) @ p.residual, weight @ (p.residual * p.residual), latent)


def moved(s: Cells, delta: np.ndarray) -> Cells:
    """Statistics about the mean, about an origin from which the mean is `delta` away."""
    k = len(s.cross) - 1
    row = np.tril_indices(k + 1)[0] == k
    square = s.square + delta * (2.0 * s.cross[k] + delta * s.second[-1])
    return s._replace(cross=s.cross + delta * s.second[row], square=square)


class Regressed(NamedTuple):
    """The next μ and W; for each column what they leave of its squares, and how many cells that is of."""

    mean: np.ndarray
    loadings: np.ndarray
    rest: np.ndarray
    cells: np.ndarray


def regress(U: Loadings, s: Cells) -> Regressed:
    """The expanded M-step of μ and W, which does not depend on ψ.

    LinAlgError where extrapolated statistics cannot come from any data.
    """
    k, d = U.loadings.shape
    A, N = unpack(s.second, k + 1).T, unpack(s.latent, k + 1)
    delta, count = U.mean - U.shift, A[:, k, k]
    B = s.cross.T - delta[:, None] * A[:, k]
    C = s.square - delta * (2.0 * s.cross[k] - delta * count)
    blind = ~(count > 0)  # a column that no row of an online batch has shown stays as it is
    if blind.any():
        blind = np.broadcast_to(blind, d)
        A, B = np.array(np.broadcast_to(A, (d, k + 1, k + 1))), B.copy()
        A[blind], B[blind] = np.eye(k + 1), np.vstack([U.loadings, np.zeros(d)]).T[blind]
    np.linalg.cholesky(A)
    T = np.linalg.solve(A[0], B.T).T if len(A) == 1 else np.linalg.solve(A, B[:, :, None])[:, :, 0]
    rest = np.where(blind, 0.0, np.maximum(C - np.einsum("ja,ja->j", T, B), 0.0))
    N = N / N[k, k]
    a, R = N[k, :k], N[:k, :k] - np.outer(N[k, :k], N[k, :k])
    W = T[:, :k].T
    mean, loadings = U.mean + T[:, k] + a @ W, np.linalg.cholesky(R).T @ W
    return Regressed(mean, loadings, rest, np.where(blind, 0.0, np.broadcast_to(count, d)))


def maximise(U: Loadings, s: Cells, isotropic: bool) -> Loadings:
    """The expanded M-step, with one ψ for all columns if `isotropic`."""
    r = regress(U, s)
    return U._replace(mean=r.mean, loadings=r.loadings, noise=noise_of(r.rest, r.cells, U.noise, U.floor, isotropic))


def noise_of(rest: np.ndarray, count: np.ndarray, before: np.ndarray, floor: np.ndarray, isotropic: bool) -> np.ndarray:
    """ψ of what is left of the squares of so many cells; where there are none it stays as it was."""
    if isotropic:
        return np.maximum(np.full(len(rest), rest.sum() / count.sum()), floor)
    blind = ~(count > 0)
    return np.where(blind, before, np.maximum(rest / np.where(blind, 1.0, count), floor))


def unpack(triangle: np.ndarray, k: int) -> np.ndarray:
    """Symmetric k×k matrices from their lower triangles."""
    i, j = np.tril_indices(k)
    full = np.empty((k, k, *triangle.shape[1:]))
    full[i, j] = full[j, i] = triangle
    return full


def expected_moments(U: Loadings, x: Any, w: np.ndarray | None, observed: np.ndarray) -> Moments:
    """Moments about U.shift that complete rows would have, given the observed cells: E[x | x_o] and Cov[x | x_o]."""
    k, d = U.loadings.shape
    W, noise = U.loadings.astype(np.float64), U.noise.astype(np.float64)
    n, total, scatter = 0.0, np.zeros(d), np.zeros((d, d))
    for c in chunks(len(x), k):
        seen = observed[c]
        p = posterior(U, x[c], seen)
        weight = seen.any(axis=1) * (1.0 if w is None else w[c])
        expected = np.where(seen, p.residual, p.mean.T @ W)
        n += weight.sum()
        total += weight @ expected
        scatter += (expected.T * weight) @ expected
        scatter[np.diag_indices(d)] += (weight @ ~seen) * noise
        for h in np.broadcast_to(p.half, (k, k, len(seen))):
            spread = np.where(seen, 0.0, h.T @ W)
            scatter += (spread.T * weight) @ spread
    return Moments(n, total, scatter).about((U.shift - U.mean).astype(np.float64))


def first_noise(S: np.ndarray, k: int, enough: bool) -> np.ndarray:
    """(1 − k/2d) of the variance that the other columns do not explain; half of the variance where rows are too few."""
    d, var = len(S), np.diag(S)
    if not enough:
        return 0.5 * var
    scale = np.sqrt(np.where(var > 0, var, 1.0))
    try:
        L = np.linalg.cholesky(S / np.outer(scale, scale) + 1e-6 * np.eye(d))
    except np.linalg.LinAlgError:  # columns alike to the rounding of single precision
        return 0.5 * var
    H = scipy.linalg.solve_triangular(L, np.eye(d), lower=True)
    return var * np.clip((1.0 - 0.5 * k / d) / np.einsum("ij,ij->j", H, H), 0.005, 1.0)
