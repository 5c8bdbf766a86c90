"""Spectra of covariances: leading axes, of the whole matrix or of its product with a few directions; how many count.

Axes are rows, by falling variance, with canonical signs. Variances are divided by n.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.linalg.lapack import dsyevd
from scipy.special import gammaln

from unmix.maths.order import canonical

SMALL = 64  # columns of a matrix
PARALLEL_DRAWS = 20  # random data sets of parallel analysis
DENSE_SIDE = 300  # of a matrix whose singular values are all computed to have the largest
TINY = float(np.finfo(float).tiny)  # no variance of data whose squares float64 holds is below


# -- from the whole matrix --


def eigh(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As NumPy's; of a small matrix by LAPACK itself, since NumPy's way to it takes longer than the work."""
    if len(S) > SMALL:
        return np.linalg.eigh(S)
    values, V, failed = dsyevd(S, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the eigenvalues of a matrix were not found")
    return values, np.ascontiguousarray(V)


def leading(S: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a covariance, falling and not negative, and their eigenvectors as rows."""
    d = len(S)
    if 8 * k <= d and k > 0:
        values, V = scipy.linalg.eigh(S, subset_by_index=[d - k, d - 1], check_finite=False)
    else:
        values, V = eigh(S)
        values, V = values[d - k :], V[:, d - k :]
    return np.maximum(values[::-1], 0.0), canonical(V[:, ::-1].T)


def whole_axes(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values of M, descending, and right singular vectors as rows, from MᵀM."""
    values, vectors = np.linalg.eigh(gram)
    return np.sqrt(np.maximum(values[::-1], 0.0)), canonical(vectors.T[::-1])


def dual(gram: np.ndarray, image: Callable[[np.ndarray], np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues of M Mᵀ, which are those of MᵀM, and their axes; `image` is the product with Mᵀ or c Mᵀ."""
    values, left = leading(gram, k)
    # axes of positive variance come out as they are; those of none, as any that are orthogonal
    return values, scipy.linalg.qr(image(left.T), mode="economic", check_finite=False)[0].T


# -- from the product with a few directions: Nyström's approximation Yᵀ (Y Qᵀ)⁺ Y of S, given Y = Q S --


def nystrom(Q: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many eigenvalues and axes as Q has directions; those that S does not have are 0, with any orthogonal axes."""
    small = Y @ Q.T
    t, P = np.linalg.eigh((small + small.T) / 2)
    use = t > max(t[-1], 0.0) * len(Q) * np.finfo(float).eps
    root = (P[:, use] / np.sqrt(t[use])).T @ Y
    _, sigma, V = np.linalg.svd(root, full_matrices=False)
    lost = len(Q) - len(sigma)
    if lost:
        V = np.linalg.qr(np.vstack([V, Q]).T)[0].T[: len(Q)]
        sigma = np.append(sigma, np.zeros(lost))
    return sigma**2, canonical(V)


def ritz(Q: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The axes of what Q spans, and the variance along each, which is exact: Ritz values and vectors."""
    small = Y @ Q.T
    t, P = np.linalg.eigh((small + small.T) / 2)
    return np.maximum(t[::-1], 0.0), canonical(P[:, ::-1].T @ Q)


def leading_axes(Q: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The singular values and axes of `whole_axes` from G = Q MᵀM, by decompositions of small matrices alone."""
    H = G @ Q.T
    h, W = np.linalg.eigh(0.5 * (H + H.T))
    inverse = np.where(h > 1e-14 * max(h[-1], 0.0), 1.0, 0.0) / np.sqrt(np.where(h > 0, h, 1.0))
    basis, R = np.linalg.qr(G.T)
    E = R @ (W * inverse)
    values, vectors = np.linalg.eigh(E @ E.T)
    return np.sqrt(np.maximum(values[::-1], 0.0)), canonical((basis @ vectors[:, ::-1]).T)


# -- from products with blocks of directions --


def lanczos(
    times: Callable[[np.ndarray], np.ndarray], first: np.ndarray, fixed: np.ndarray, k: int, tol: float, room: int
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """The k largest eigenvalues of a symmetric matrix, their vectors, the least Ritz value, whether they are settled.

    Block Lanczos iteration: each block is the matrix times the last, made orthogonal to all before it, so that a
    product costs hardly more than that with one vector. Eigenvalues are those of the matrix on the space that the
    blocks span (Ritz values): none is larger than the true one, and the least one is not below the least of all.

    Parameters
    ----------
    times : callable
        The product with a block (n, b).
    first : ndarray of shape (n, b)
        The first block, b ≥ k.
    fixed : ndarray of shape (n,)
        A unit vector that all are to be orthogonal to.
    k : int
        How many.
    tol : float
        What ‖Sv − λv‖ may be, relative to λ.
    room : int
        The most directions to span; not more than n − 1.
    """
    n, b = first.shape
    basis, H, m, look = np.empty((n, room + 1), order="F"), np.zeros((room, room)), 0, 0
    basis[:, 0] = fixed
    block = orthonormal(first, basis[:, :1])[0]
    while True:
        basis[:, m + 1 : m + 1 + b] = block
        image, m = times(block), m + b
        spanned = basis[:, 1 : m + 1]
        H[:m, m - b : m] = spanned.T @ image
        H[m - b : m, :m] = H[:m, m - b : m].T
        block, R = orthonormal(image, basis[:, : m + 1])
        full = m + b > room
        if m >= look or full:
            values, S = np.linalg.eigh(H[:m, :m])
            top = values[::-1][:k]
            scale = float(np.abs(values).max()) or 1.0  # whose square may be beyond float64
            error = np.linalg.norm(R / scale @ S[m - b :, ::-1][:, :k], axis=0)
            settled = bool((error <= np.maximum(tol * np.abs(top) / scale, 4 * np.finfo(float).eps)).all())
            if settled or full:
                return top, spanned @ S[:, ::-1][:, :k], float(values[0]), settled
            look = m + m // 8  # a spectrum of what is spanned costs more and more


def orthonormal(block: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis Q of what a block has beside others, which are orthonormal, and R: block ≈ others + QR.

    Twice, since the first time rounding leaves something of the others where little is left of the block.
    """
    block = block - others @ (others.T @ block)
    Q, R = np.linalg.qr(block - others @ (others.T @ block))
    Q, again = np.linalg.qr(Q - others @ (others.T @ Q))
    return Q, again @ R


# -- rows that are centred implicitly --


def centred_operator(x: Any, centre: np.ndarray, half: np.ndarray | None) -> Any:
    """√w (x − μ) as an operator; x stays as it is."""
    h = np.ones(x.shape[0]) if half is None else half
    return scipy.sparse.linalg.LinearOperator(
        x.shape, dtype=np.float64,
        matvec=lambda v: h * (x @ v.ravel() - centre @ v.ravel()),
        rmatvec=lambda u: x.T @ (h * u.ravel()) - centre * (h @ u.ravel()),
        matmat=lambda v: h[:, None] * (x @ v - centre @ v),
        rmatmat=lambda u: x.T @ (h[:, None] * u) - np.outer(centre, h @ u),
    )  # fmt: skip


def centred_gram(x: Any, centre: np.ndarray, half: np.ndarray | None) -> np.ndarray:
    """√w (x − μ)(x − μ)ᵀ √w of CSR or dense rows."""
    G = x @ x.T
    G = (G.toarray() if sp.issparse(x) else G).astype(np.float64)
    g = x @ centre
    G += float(centre @ centre) - g[:, None] - g
    return G if half is None else half[:, None] * G * half


# -- how many axes count, and what the others have --


def rest(total: float, values: np.ndarray, n: float, d: int) -> float:
    """Mean variance of the directions that n rows could vary in and that were left out.

    With n = d it is the maximum-likelihood σ² of probabilistic PCA, for which all directions count.
    """
    others = min(int(np.ceil(n)), d) - len(values)
    return max(total - float(values.sum()), 0.0) / others if others > 0 else 0.0


def count(
    wanted: Any,
    values: np.ndarray,
    V: np.ndarray,
    var: np.ndarray,
    n: float,
    seed: np.ndarray,
    precision: float | None = None,
) -> int:
    """How many axes are `wanted`, of all that there are: a number, a share of the variance, "mle", "parallel" or None.

    `var` are the variances of the columns, n is the number of rows, and the `seed` is that of parallel analysis. With
    the `precision` of the rows, one direction at least is left out: for None, one that varies.
    """
    available = min(len(values), int(np.ceil(n)))
    if precision is not None:
        available = min(available, len(var) - 1)
        if wanted is None:
            vary = int(np.count_nonzero(values > len(var) * precision * values[0]))
            available = min(available, max(vary - 1, 0))
    if wanted is None or isinstance(wanted, Integral):
        return available if wanted is None else min(int(wanted), available)
    if wanted == "mle":
        return min(minka(values, n), available)
    if wanted == "parallel":
        return min(parallel(values, V, var, n, np.random.default_rng(seed)), available)
    share = np.cumsum(values / max(float(var.sum()), TINY))  # as a user adds up explained_variance_ratio_
    return min(int(np.searchsorted(share, wanted, side="right")) + 1, available)


def minka(values: np.ndarray, n: float) -> int:
    """The number of components of largest evidence, at least 1 (Minka 2001, Laplace's approximation)."""
    d = len(values)
    rounding = np.finfo(float).eps * max(float(values[0]), TINY)
    rank = int(np.count_nonzero(values > d * rounding))
    values = np.maximum(values, rounding)
    best, best_k = -np.inf, 1
    for k in range(1, min(d, rank + 1)):
        noise = values[k:].mean()
        shrunk = np.append(values[:k], np.full(d - k, noise))
        i = np.arange(1, k + 1)
        halves = (d - i + 1) / 2.0
        prior = -k * np.log(2.0) + float((gammaln(halves) - halves * np.log(np.pi)).sum())
        m = d * k - k * (k + 1) / 2.0
        pairs = np.triu(np.ones((k, d), bool), 1)
        gaps = (1.0 / shrunk[None, :] - 1.0 / shrunk[:k, None])[pairs] * (values[:k, None] - values[None, :])[pairs]
        if (gaps <= 0).any():
            continue
        curvature = float(np.log(gaps).sum()) + m * np.log(n)
        fit = -0.5 * n * (float(np.log(values[:k]).sum()) + (d - k) * np.log(noise))
        evidence = prior + fit + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * curvature - 0.5 * k * np.log(n)
        if evidence > best:
            best, best_k = evidence, k
    return best_k


def squared_norm(A: np.ndarray) -> float:
    """The square of the largest singular value; of large matrices by Lanczos, to nine digits."""
    if min(A.shape) <= DENSE_SIDE:
        return float(np.linalg.norm(A, 2) ** 2)
    from scipy.sparse.linalg import LinearOperator, eigsh

    square = LinearOperator((len(A), len(A)), matvec=lambda x: A @ (A.T @ x), dtype=A.dtype)
    return float(eigsh(square, 1, tol=1e-9, v0=np.ones(len(A)), return_eigenvectors=False)[0])


def parallel(values: np.ndarray, V: np.ndarray, var: np.ndarray, n: float, rng: np.random.Generator) -> int:
    """How many leading variances exceed the largest that unrelated Gaussian columns show by chance.

    Horn's (1965) parallel analysis with deflation (Dobriban & Owen 2019): the unrelated columns have the variances that
    the components before leave, so that a strong component does not hide a weaker one.
    """
    d, free = len(var), max(int(np.ceil(n)) - 1, 1)
    left, m = var.copy(), min(free, d)
    for t, (value, v) in enumerate(zip(values[:m], V, strict=False)):
        chance = np.empty(PARALLEL_DRAWS)
        for i in range(PARALLEL_DRAWS):
            if free >= d:  # Bartlett's factor of a Wishart matrix: no n×d data are drawn
                A = np.tril(rng.standard_normal((d, d)), -1)
                A[np.diag_indices(d)] = np.sqrt(rng.chisquare(float(free) - np.arange(d)))
            else:
                A = rng.standard_normal((d, free))
            A *= np.sqrt(left * (m / (m - t)))[:, None]  # what is left lies in m − t dimensions
            chance[i] = squared_norm(A) / n
        if value <= np.quantile(chance, 0.95):
            return t
        left = np.maximum(left - value * v * v, 0.0)
    return min(m, len(values), len(V))
