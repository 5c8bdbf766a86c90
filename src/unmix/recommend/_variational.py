"""Averaging over the posterior: Gaussians for users and for items, independent of each other (variational Bayes).

With x = (z, b) of a user, y = (v, c) of an item, and the laws x ~ N(h, H), y ~ N(g, G), r ~ N(μ + b + c + zᵀv, σ²),

    q(x_i) = N(m_i, S_i), S_i⁻¹ = H⁻¹ + σ⁻² Σ_j E[a_j a_jᵀ], S_i⁻¹ m_i = H⁻¹ h + σ⁻² Σ_j E[a_j (r − μ − c_j)], a = (v,1)

and q(y_j) alike. The laws and σ² are where the bound on the evidence is largest: h and H are the mean and the
covariance of the users, σ² the mean of E[(r − …)²]. A few users' worth of a unit covariance keeps H and G from
collapsing where there are hardly any.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.runners import PIECES, each
from unmix.recommend._parts import NOISE_FLOOR, NOISE_WEIGHT, Parts, Stats
from unmix.recommend._sides import (
    Entries,
    design_of,
    entries,
    outer,
    packed,
    pairs,
    side_of,
    squares,
    weighted_sum,
    weights_of,
)

LOG_2PI = float(np.log(2 * np.pi))
PRIOR_WEIGHT = 1.0  # users and items that are there in advance ...
PRIOR_VARIANCE = 1e-3  # ... and vary by this
MANY = 1 << 14  # numbers of items, which are worth threads


class Found(NamedTuple):
    """What is known of some users."""

    mean: np.ndarray  # (m, p)
    covariance: np.ndarray  # (m, l), upper triangles
    noise: np.ndarray  # (m,): σ² of each over that of all
    told: np.ndarray  # (m, 4): Σ E[t²], ½ log|S⁻¹|, quadratic, Σ E[(r − …)²]


def posterior(U: Parts, rows: Entries, biases: bool) -> Found:
    """q(x) of the users whose ratings these are, in units of the ratings' deviation. Pure."""
    from unmix.kernels.ratings import posterior_rows

    n, p = len(rows.ends) - 1, U.items.shape[1]
    side = side_of(U.items, U.doubt, biases)
    mean, covariance, told = np.empty((n, p)), np.empty((n, len(pairs(p)[0]))), np.empty((n, 4))
    precision, shift = law(U.user_mean, U.user_covariance)[:2]
    tau = 1.0 / float(U.noise)
    seen = rows.values / float(U.unit), rows.columns, rows.ends, float(U.mean) + side.offset
    how = side.spread, np.ones(len(U.items)), side.design, side.cross, side.second, tau, precision, shift
    posterior_rows(*seen, *how, mean, covariance, told)
    noise = (NOISE_WEIGHT + tau * told[:, 3]) / (NOISE_WEIGHT + rows.lengths)
    return Found(mean, covariance, noise, told)


def law(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Precision P of a Gaussian, P times its mean, and log|P| − meanᵀ P mean."""
    mean, covariance = np.asarray(mean, np.float64), np.asarray(covariance, np.float64)
    try:
        root = np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:  # in the precision of the rows it may lose its least variance
        values, axes = np.linalg.eigh(covariance)
        root = axes.T / np.sqrt(np.maximum(values, 1e-7 * values[-1]))[:, None]
    precision = root.T @ root
    shift = precision @ mean
    return precision, shift, float(np.linalg.slogdet(precision)[1] - mean @ shift)


def local(U: Parts, b: Block, biases: bool) -> Local:
    """q(x) of a block's users, the sums for the items, and minus the users' part of the bound."""
    rows = entries(b)
    found = posterior(U, rows, biases)
    w = weights_of(b, len(found.mean))
    size, half, quadratic, _ = found.told.T
    tau = 1.0 / float(U.noise)
    loss = rows.lengths * (LOG_2PI - np.log(tau)) + tau * size - quadratic + 2 * half
    loss = 0.5 * (loss - law(U.user_mean, U.user_covariance)[2])
    return Local(None, sums(U, rows, found, w, biases), float(w @ loss))


def sums(U: Parts, rows: Entries, found: Found, w: np.ndarray, biases: bool) -> Stats:
    """Sums for the items of rows, from what is known of their users. Pure."""
    from unmix.kernels.ratings import posterior_columns

    side, columns = side_of(found.mean, found.covariance, biases), rows.by_column()
    d, p = rows.d, found.mean.shape[1]
    A, g, e = np.zeros((d, len(pairs(p)[0]))), np.zeros((d, p)), np.zeros(d)
    seen = columns.values / float(U.unit), columns.columns, columns.ends, float(U.mean) + side.offset
    posterior_columns(*seen, side.spread, w, side.design, side.cross, side.second, A, g, e)
    m, M = weighted_sum(w, found.mean), weighted_sum(w, outer(found.mean) + found.covariance)
    return Stats(float(w.sum()), m, M, A, g, e, rows.weight_of_columns(w))


@np.errstate(over="ignore", invalid="ignore")
def update(U: Parts, s: Stats) -> Parts:
    """q(y) of every item, then the laws and σ². Pure."""
    p, tau = len(U.user_mean), 1.0 / float(U.noise)
    mean, covariance, told = solved(U, s, tau)
    left = np.maximum(s.e + told[:, 2], 0.0)
    noise = max(float(left.sum()) / max(float(s.N.sum()), 1e-300), NOISE_FLOOR)
    item_noise = (NOISE_WEIGHT + left / noise) / (NOISE_WEIGHT + s.N)
    total = outer(mean).sum(axis=0) + covariance.sum(axis=0)
    if not (np.isfinite(total).all() and np.isfinite(s.M).all() and np.isfinite(s.m).all()):
        return U._replace(cost=float("nan"))  # statistics of no data
    item_law = fitted(float(len(mean)), mean.sum(axis=0), total, p)
    user_law = fitted(s.n, s.m, s.M, p)
    cost = (
        items_cost(mean, covariance, item_law, -2 * float(told[:, 0].sum()))
        + law_cost(item_law[1])
        + law_cost(user_law[1])
    )
    return Parts(mean, covariance, *user_law, *item_law, noise, item_noise, U.mean, U.unit, cost)


def solved(U: Parts, s: Stats, tau: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of each item; ½ log|T⁻¹|, a quadratic form, and Σ E[(r − …)²] − Σ E[t²] of its ratings."""
    from unmix.kernels.ratings import posterior_items

    d, p = s.g.shape
    mean, covariance, told = np.empty((d, p)), np.empty((d, len(pairs(p)[0]))), np.empty((d, 3))
    precision, shift, _ = law(U.item_mean, U.item_covariance)

    def piece(i: int) -> None:  # items do not see each other
        part = slice(*(d * k // PIECES for k in (i, i + 1)))
        posterior_items(s.A[part], s.g[part], tau, precision, shift, mean[part], covariance[part], told[part])

    if covariance.size > MANY:
        each(piece)
    else:
        posterior_items(s.A, s.g, tau, precision, shift, mean, covariance, told)
    return mean, covariance, told


def fitted(n: float, m: np.ndarray, M: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of one side, given Σ E[x] and Σ E[x xᵀ]."""
    mean = m / n if n > 0 else np.zeros(p)
    spread = squares(M, p) - n * np.outer(mean, mean)
    spread = (spread + PRIOR_WEIGHT * PRIOR_VARIANCE * np.eye(p)) / (n + PRIOR_WEIGHT)
    values, axes = np.linalg.eigh(spread)
    least = max(1e-6 * PRIOR_VARIANCE, 1e-13 * float(values[-1]))
    if values[0] < least:  # rounding, or statistics of no data
        spread = (axes * np.maximum(values, least)) @ axes.T
    return mean, spread


def law_cost(covariance: np.ndarray) -> float:
    """What a law itself costs: minus the log-density of its covariance."""
    precision = np.linalg.inv(covariance)
    return float(0.5 * PRIOR_WEIGHT * (PRIOR_VARIANCE * np.trace(precision) + np.linalg.slogdet(covariance)[1]))


def items_cost(mean: np.ndarray, covariance: np.ndarray, of: tuple[np.ndarray, np.ndarray], logs: float) -> float:
    """Σ KL(q(y) ‖ N(g, G)) over the items; `logs` is Σ log|T|."""
    d, p = mean.shape
    precision = np.linalg.inv(of[1])
    apart = mean - of[0]
    quadratic = float((apart @ precision * apart).sum() + covariance.sum(axis=0) @ (packed(precision) * pairs(p)[2]))
    return 0.5 * float(quadratic - d * p + d * np.linalg.slogdet(of[1])[1] - logs)


def predicted(
    U: Parts, found: Found, user: np.ndarray, item: np.ndarray, biases: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of ratings of users (places in `found`) for items, in units of the ratings' deviation. Pure."""
    items, users = side_of(U.items[item], U.doubt[item], biases), side_of(found.mean, found.covariance, biases)
    mean = float(U.mean) + users.offset[user] + items.offset + factors(found.mean, items.design, user, biases)
    twice = pairs(U.items.shape[1])[2]
    doubt = np.einsum("ml,ml,l->m", found.covariance[user], outer(items.design), twice)
    if U.doubt.shape[1]:
        doubt += np.einsum("ml,ml,l->m", users.second[user], U.doubt[item].astype(np.float64), twice)
    noise = float(U.noise) * found.noise[user] * U.item_noise[item].astype(np.float64)
    return mean, np.maximum(doubt, 0.0) + noise


def factors(mean: np.ndarray, design: np.ndarray, user: np.ndarray, biases: bool) -> np.ndarray:
    """Zᵀ v of pairs."""
    k = mean.shape[1] - biases
    return np.einsum("mk,mk->m", mean[user, :k], design[:, :k])


def table(U: Parts, found: Found, biases: bool) -> tuple[np.ndarray, np.ndarray]:
    """The same for every item of every user."""
    items, users = side_of(U.items, U.doubt, biases), side_of(found.mean, found.covariance, biases)
    k, twice = found.mean.shape[1] - biases, pairs(U.items.shape[1])[2]
    mean = float(U.mean) + users.offset[:, None] + items.offset + found.mean[:, :k] @ items.design[:, :k].T
    doubt = (found.covariance * twice) @ outer(items.design).T
    if U.doubt.shape[1]:
        doubt += (users.second * twice) @ U.doubt.T.astype(np.float64)
    return mean, np.maximum(doubt, 0.0) + float(U.noise) * np.outer(found.noise, U.item_noise)


def design_row(U: Parts, item: int, biases: bool) -> tuple[np.ndarray, float]:
    """What users see of one item: its row, and its offset."""
    design, offset = design_of(U.items[[item]], biases)
    return design[0], float(offset[0])


def draws(U: Parts, found: Found, biases: bool, rng: np.random.Generator) -> np.ndarray:
    """Ratings of every item, with one draw of each user."""
    p = found.mean.shape[1]
    root = np.linalg.cholesky(squares(found.covariance, p))
    x = found.mean + np.einsum("mab,mb->ma", root, rng.standard_normal(found.mean.shape))
    mean, variance = table(U, found._replace(mean=x, covariance=np.zeros_like(found.covariance)), biases)
    return np.asarray(mean + np.sqrt(variance) * rng.standard_normal(mean.shape))


def with_items(U: Parts, known: Entries, new: Entries, biases: bool) -> Parts:
    """The same with more items, by the ratings of users whose ratings of the items that are there are known. Pure."""
    s = sums(U, new, posterior(U, known, biases), np.ones(len(new.ends) - 1), biases)
    mean, covariance, told = solved(U, s, 1.0 / float(U.noise))
    noise = (NOISE_WEIGHT + np.maximum(s.e + told[:, 2], 0.0) / float(U.noise)) / (NOISE_WEIGHT + s.N)
    return U._replace(
        items=np.vstack([U.items, mean]),
        doubt=np.vstack([U.doubt, covariance]),
        item_noise=np.append(U.item_noise, noise),
    )


def with_new_item(U: Parts) -> Parts:
    """The same with one item more, of which nothing is known. Pure."""
    items, doubt = np.vstack([U.items, U.item_mean]), np.zeros((len(U.items) + 1, 0))
    if U.doubt.shape[1]:
        doubt = np.vstack([U.doubt, packed(np.asarray(U.item_covariance))])
    return U._replace(items=items, doubt=doubt, item_noise=np.append(U.item_noise, 1.0))


def are_laws(U: Parts) -> bool:
    """Whether covariances from a file are some."""
    for C in (U.user_covariance, U.item_covariance):
        values = np.linalg.eigvalsh(C)
        if not (np.allclose(C, C.T) and values[0] > 1e-14 * values[-1] > 0):
            return False
    a, b, _ = pairs(len(U.user_mean))
    return bool((U.doubt[:, a == b] > 0).all())
