"""First factor analysers: from covariances, from neighbours with a component or a factor more or fewer, from a user."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.maths import latent
from unmix.maths.order import signs
from unmix.maths.spectra import leading
from unmix.mixture._analyzers import Parts, Stats, completed, quiet, rotations
from unmix.mixture._gaussian import WEIGHT_FLOOR, join, nearest


def with_factors(
    U: Parts, q: int, isotropic: bool, shared: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """W and ψ of q factors, fewer or more: the weakest are left to the noise, new ones are faint and random.

    What is left is noise as the model has it, else the first pass would score a richer model, and the next seem worse.
    """
    K, have, d = U.loadings.shape
    W = rotations(U) @ U.loadings
    if q < have:
        return W[:, :q], averaged(U.noise + (W[:, q:] ** 2).sum(axis=1), U.weights, isotropic, shared)
    faint = 0.1 * np.sqrt(U.noise)[:, None] * rng.standard_normal((K, q - have, d))
    return np.concatenate([W, faint], axis=1), U.noise


def averaged(noise: np.ndarray, weights: np.ndarray, isotropic: bool, shared: bool) -> np.ndarray:
    """One ψ for all columns if `isotropic`, for all components if `shared`: the mean over them; columns in one unit."""
    if isotropic:
        noise = np.broadcast_to(noise.mean(axis=1, keepdims=True), noise.shape)
    return np.broadcast_to(weights @ noise, noise.shape).copy() if shared else noise.copy()


def is_noise_of(U: Parts, isotropic: bool, shared: bool) -> bool:
    """Whether ψ is one for all columns if `isotropic`, for all components if `shared`, and will stay so.

    Steps make ψ one in the units of the parts: so these must be one, too.
    """
    columns = not isotropic or ((U.unit == U.unit[0]).all() and (U.noise == U.noise[:, :1]).all())
    return bool(columns and (not shared or (U.noise == U.noise[0]).all()))


def constrained(noise: np.ndarray, weights: np.ndarray, isotropic: bool, shared: bool) -> np.ndarray:
    """ψ that a user gave, made equal to the last bit where it must be; a ValueError where it is not nearly."""
    one = averaged(noise, weights, isotropic, shared)
    if not np.allclose(noise, one, atol=0.0):
        same = " and ".join(["column"] * isotropic + ["component"] * shared)
        raise ValueError(f"noise_variance differs, and is to be the same for every {same}: give equal numbers")
    return one


def analysed(S: np.ndarray, q: int, floor: np.ndarray, isotropic: bool, enough: bool) -> tuple[np.ndarray, np.ndarray]:
    """W and ψ that come near a covariance; no loading is zero, which EM would not leave."""
    d = len(S)
    if isotropic:
        rest = np.trace(S) - leading(S, q)[0].sum()
        noise = np.maximum(np.full(d, rest / max(d - q, 1)), np.maximum(floor, 1e-3 * np.trace(S) / d))
    else:
        noise = np.maximum(latent.first_noise(S, q, enough), floor)
    return best_loadings(S, q, noise), noise


def best_loadings(S: np.ndarray, q: int, noise: np.ndarray) -> np.ndarray:
    """The W of largest likelihood given ψ, but no loading zero."""
    root = np.sqrt(noise)
    values, V = leading(S / np.outer(root, root), q)
    return np.asarray(np.sqrt(np.maximum(values - 1.0, 0.01))[:, None] * V * root)


def split(U: Parts, empty: np.ndarray) -> Parts:
    """Each empty component takes half of the heaviest one, the means to either side along its longest axis."""
    weights, means, loadings, noise = (a.copy() for a in (U.weights, U.means, U.loadings, U.noise))
    for k in empty:
        j = int(weights.argmax())
        spread = np.vstack([loadings[j], np.diag(np.sqrt(noise[j]))]) if not loadings.shape[1] else loadings[j]
        _, length, axes = np.linalg.svd(spread, full_matrices=False)
        axis = length[0] * axes[0] * signs(axes[:1])[0]
        means[k], means[j] = means[j] + 0.5 * axis, means[j] - 0.5 * axis
        weights[k] = weights[j] = weights[j] / 2.0
        loadings[k], noise[k] = loadings[j], noise[j]
    return U._replace(weights=weights, means=means, loadings=loadings, noise=noise)


def joined(U: Parts, isotropic: bool, shared: bool) -> Parts:
    """Two made one, the two that lose least by it: the factors of their joint covariance."""
    C, q = covariances(U.loadings, U.noise), U.loadings.shape[1]
    a, b = nearest("full", U.weights, U.means, C)
    weights, means, loadings, noise = (v.copy() for v in (U.weights, U.means, U.loadings, U.noise))
    means[a], both = join(np.maximum(weights[[a, b]], WEIGHT_FLOOR), means[[a, b]], C[[a, b]])
    weights[a] += weights[b]
    if shared:
        loadings[a] = best_loadings(both, q, noise[a])
    else:
        loadings[a], noise[a] = analysed(both, q, U.floor, isotropic, True)
    weights, means, loadings, noise = (np.delete(v, b, axis=0) for v in (weights, means, loadings, noise))
    new = U._replace(weights=weights, means=means, loadings=loadings, noise=noise, events=quiet(len(weights)))
    return completed(new)


def checked(weights: Any, means: Any, components: Any, noise_variance: Any) -> tuple[np.ndarray, ...]:
    """π, μ, W and ψ that a user gave, in float64; a ValueError where they cannot be such."""
    given = {"weights": weights, "means": means, "components": components, "noise_variance": noise_variance}
    out = {name: np.array(value, dtype=np.float64) for name, value in given.items()}
    W = out["components"]
    if W.ndim != 3:
        raise ValueError(f"components has shape {W.shape}: give loadings in the shape (K, q, d)")
    K, q, d = W.shape
    wanted = {"weights": (K,), "means": (K, d), "components": (K, q, d), "noise_variance": (K, d)}
    for name, value in out.items():
        if value.shape != wanted[name] or not np.isfinite(value).all():
            raise ValueError(f"{name} has shape {value.shape}: give finite numbers in the shape {wanted[name]}")
    if (out["weights"] < 0).any() or not np.isclose(total := out["weights"].sum(), 1.0):
        raise ValueError(f"weights sums to {total:.6g}: give numbers of at least 0 that sum to 1")
    if not (out["noise_variance"] > 0).all():
        raise ValueError("noise_variance holds a number that is not positive: give variances")
    return tuple(out.values())


def stats_of(U: Parts) -> Stats:
    """The statistics, per row, that the mixture itself would give."""
    q = U.loadings.shape[1]
    one = np.eye(q + 1)[np.tril_indices(q + 1)] * U.weights[:, None]
    cross = np.concatenate([U.loadings, U.means[:, None]], axis=1) * U.weights[:, None, None]
    square = U.means**2 + np.einsum("kaj,kaj->kj", U.loadings, U.loadings) + U.noise
    return Stats(one[:, :, None].copy(), cross, square * U.weights[:, None], one)


def covariance(away: np.ndarray, seen: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weighted covariance of rows about their mean, unobserved cells 0, of as many cells as the columns have."""
    mine = w > 0
    away, count = away[mine], np.sqrt(np.maximum(w @ seen, WEIGHT_FLOOR))
    return np.asarray((away.T * w[mine]) @ away / np.outer(count, count))


def covariances(loadings: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """WᵀW + diag ψ of each component."""
    return np.asarray(loadings.transpose(0, 2, 1) @ loadings + noise[:, :, None] * np.eye(noise.shape[1]))
