"""Rows under K factor analysers: densities, responsibilities and statistics, without a matrix of d×d numbers.

Rows are measured from the origin U.shift in the units U.unit, v = (x − s)/u. With M_k = I + W_k ψ_k⁻¹ W_kᵀ = L Lᵀ and
H_k = L⁻¹ the density needs y_k = H_k W_k ψ_k⁻¹ (v − μ_k), as many numbers as there are factors:

    log p_k(x) = c_k + vᵀ ψ_k⁻¹ μ_k − ½ Σ_j v_j²/ψ_kj + ½ |y_k|²          E[z | x, k] = H_kᵀ y_k

features   complete rows: two products with v and two with v² for all components at once, as long as the terms of that
           sum exceed it by little against the precision (`spread`)
cells      missing cells, or terms that would cancel: q×q systems of each row, in float64 (`maths/latent.py`)
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.moments import room
from unmix.kernels.gaussian_rows import LOG_2PI, WEIGHT_FLOOR, normalise
from unmix.maths import latent
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.latent import Cells, Loadings
from unmix.maths.order import signs

FEATURES_ERROR = {"float32": 1e-3, "float64": 1e-10}  # that multiplied-out densities may have: precision × spread


class Scratch(NamedTuple):
    """(H W ψ⁻¹; ψ⁻¹ μ), −1/2ψ, H W ψ⁻¹ μ, c and H, which follow from the parameters; how far terms exceed their sum."""

    linear: Annotated[np.ndarray, Array("k f+1 d")]
    curve: Annotated[np.ndarray, Array("k d")]
    offset: Annotated[np.ndarray, Array("k f")]
    constant: Annotated[np.ndarray, Array("k")]
    half: Annotated[np.ndarray, Array("k f f")]
    spread: Annotated[np.ndarray, Array(low=0.0)]


class Events(NamedTuple):
    """How often each component was reset."""

    resets: Annotated[np.ndarray, Array("k", "i", 0)]


def quiet(K: int) -> Events:
    """K components to which nothing has happened."""
    return Events(np.zeros(K, np.int64))


class Parts(NamedTuple):
    """π, μ, W and ψ in the units `unit` about `shift`; ψ stays above its floor."""

    shift: Annotated[np.ndarray, Array("d")]
    unit: Annotated[np.ndarray, Array("d", low=POSITIVE)]
    floor: Annotated[np.ndarray, Array("d", low=0.0)]
    weights: Annotated[np.ndarray, Array("k", low=0.0)]
    means: Annotated[np.ndarray, Array("k d")]
    loadings: Annotated[np.ndarray, Array("k f d")]
    noise: Annotated[np.ndarray, Array("k d", low=POSITIVE)]
    events: Events
    scratch: Scratch | None = None

    def analyser(self, k: int) -> Loadings:
        """One component, about the same origin."""
        q, d = self.loadings.shape[1:]
        own = (self.means[k], self.loadings[k], self.noise[k], self.floor)
        mean, loadings, noise, floor = (a.astype(np.float64, copy=False) for a in own)
        return Loadings(np.zeros(d), mean, loadings, noise, floor, np.eye(q))

    def measured(self, x: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        """Rows from the origin in the units, in float64; unobserved cells hold 0."""
        v = ((x - self.shift) / self.unit).astype(np.float64)
        return v if observed is None else v * observed


class Stats(NamedTuple):
    """`Cells` of every component, the weights of whose rows are responsibilities; complete rows share one A."""

    second: Annotated[np.ndarray, Array("k t 1")] | Annotated[np.ndarray, Array("k t d")]
    cross: Annotated[np.ndarray, Array("k f+1 d")]
    square: Annotated[np.ndarray, Array("k d")]
    latent: Annotated[np.ndarray, Array("k t")]

    def of(self, k: int) -> Cells:
        """Those of one component."""
        return Cells(self.second[k], self.cross[k], self.square[k], self.latent[k])


def completed(U: Parts) -> Parts:
    """The parts with what follows from them."""
    (K, q, d), W, noise = U.loadings.shape, U.loadings, U.noise
    scaled = W / noise[:, None]
    L = np.linalg.cholesky(np.eye(q) + scaled @ W.transpose(0, 2, 1))
    H = np.linalg.solve(L, np.broadcast_to(np.eye(q), (K, q, q)))
    P = H @ scaled
    sizes = U.means**2 / noise
    logdet = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1) + np.log(noise).sum(axis=1) + d * LOG_2PI
    constant = np.log(np.maximum(U.weights, WEIGHT_FLOOR)) - 0.5 * (logdet + sizes.sum(axis=1))
    spread = (sizes + np.einsum("kaj,kaj->kj", W, W) / noise + 1.0).sum(axis=1).max()
    linear = np.concatenate([P, (U.means / noise)[:, None]], axis=1)
    offset = np.einsum("kaj,kj->ka", P, U.means)
    return U._replace(scratch=Scratch(linear, -0.5 / noise, offset, constant, H, np.array(spread)))


def rows_of(
    U: Any, x: np.ndarray, w: np.ndarray | None, observed: np.ndarray | None, collect: bool
) -> tuple[np.ndarray, np.ndarray, Stats | None]:
    """Responsibilities (n, K), log p in float64 and, if wanted, statistics, the fastest way that the numbers allow."""
    error = np.finfo(x.dtype).eps * float(U.scratch.spread)
    if observed is None and error <= FEATURES_ERROR[x.dtype.name]:
        z, log_p, stats = by_features(U, x, w, collect)
    else:
        z, log_p, stats = by_cells(U, x, w, observed, collect)
    size = np.log(U.unit, dtype=np.float64)  # in units the densities are larger; single precision would lose digits
    log_p = log_p - (size.sum() if observed is None else observed @ size)
    return np.ascontiguousarray(z.T, x.dtype), log_p, stats


def by_features(U: Any, x: np.ndarray, w: np.ndarray | None, collect: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """Complete rows, in their precision; responsibilities are (K, n)."""
    S = U.scratch
    (K, wide, d), n = S.linear.shape, len(x)
    q = wide - 1
    cells, many = n * d, K * wide * n
    space = room((2 * (cells + many),), x.dtype)
    v, v2 = space[: 2 * cells].reshape(2, n, d)
    y, weighted = space[2 * cells :].reshape(2, K, wide, n)
    np.subtract(x, U.shift, out=v)
    v *= 1.0 / U.unit
    np.multiply(v, v, out=v2)
    np.matmul(S.linear.reshape(K * wide, d), v.T, out=y.reshape(K * wide, n))  # the last row of each: vᵀ ψ⁻¹ μ
    y[:, :q] -= S.offset[:, :, None]
    z = S.curve @ v2.T
    z += y[:, q] + S.constant[:, None]
    z += 0.5 * np.einsum("kan,kan->kn", y[:, :q], y[:, :q])
    log_p = normalise(z)
    if not collect:
        return z, log_p, None
    zw = z if w is None else z * w.astype(x.dtype, copy=False)
    y[:, q] = 1.0
    np.multiply(y, zw[:, None], out=weighted)
    cross = (weighted.reshape(K * wide, n) @ v).reshape(K, wide, d).astype(np.float64)
    second = (weighted @ y.transpose(0, 2, 1)).astype(np.float64)
    turn = np.zeros((K, wide, wide))  # from y to z
    turn[:, :q, :q], turn[:, q, q] = S.half.transpose(0, 2, 1), 1.0
    second = turn @ second @ turn.transpose(0, 2, 1)
    second[:, :q, :q] += second[:, q, q, None, None] * (turn @ turn.transpose(0, 2, 1))[:, :q, :q]
    packed = second[:, *np.tril_indices(wide)]
    return z, log_p, Stats(packed[:, :, None].copy(), turn @ cross, zw @ v2, packed)


def by_cells(
    U: Any, x: np.ndarray, w: np.ndarray | None, observed: np.ndarray | None, collect: bool
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Any rows, one component after the other, in float64; responsibilities are (K, n)."""
    (K, q, _), n, v = U.loadings.shape, len(x), U.measured(x, observed)
    analysers = [U.analyser(k) for k in range(K)]
    share = np.log(np.maximum(U.weights, WEIGHT_FLOOR), dtype=np.float64)
    z, log_p, total = np.empty((K, n)), np.empty(n), None
    for c in latent.chunks(n, int(np.ceil(np.sqrt(K) * q))):
        seen = None if observed is None else observed[c]
        found = [latent.posterior(A, v[c], seen) for A in analysers]
        own = share[:, None] - np.array([p.loss for p in found])
        log_p[c] = normalise(own)
        z[:, c] = own
        if collect:
            zw = own if w is None else own * w[c]
            cells = [
                latent.moved(latent.sums(p, r, seen), A.mean) for p, r, A in zip(found, zw, analysers, strict=True)
            ]
            stats = Stats(*(np.stack(a) for a in zip(*cells, strict=True)))
            total = stats if total is None else Stats(*map(np.add, total, stats))
    if observed is not None:
        log_p[~observed.any(axis=1)] = 0.0
    return z, log_p, total


def rotations(U: Any) -> np.ndarray:
    """Orthogonal Q_k whose Q_k W_k are canonical loadings: orthogonal in units of the noise, the strongest first."""
    left = np.linalg.svd(U.loadings / np.sqrt(U.noise)[:, None], full_matrices=False)[0].transpose(0, 2, 1)
    sign = np.array([signs(Q @ W) for Q, W in zip(left, U.loadings * U.unit, strict=True)])
    return np.asarray(left * sign.reshape(*left.shape[:2], 1))
