"""Rank, range and null space of a matrix, dense or sparse, with a tolerance said aloud.

A singular value counts where σ > tol σ₁; by default tol = ε max(n, d), which is what rounding leaves of σ₁, with ε the
precision of X. Dense matrices go to NumPy and SciPy. A sparse one is never made dense: the Gram matrix G = WΛWᵀ of its
smaller side has σ² within ε σ₁², which leaves σ the relative error ½ ε σ₁²/σ²: all digits are lost at √ε σ₁, half of
them at ε^¼ σ₁. Values below the latter are those of XW, so that none are lost to the square:

    X W_small = P S Qᵀ        σ_small = S        W_small ← W_small Q
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from unmix.engine.config import get_config
from unmix.maths.order import canonical


def rank(X: Any, tol: float | None = None) -> int:
    """Return the rank of a matrix: how many singular values exceed `tol` times the largest.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The matrix.
    tol : float, optional
        Relative tolerance; by default ε max(n, d), ε the precision of X.

    Returns
    -------
    rank : int

    Examples
    --------
    >>> from unmix.linear import rank
    >>> rank([[1.0, 2], [2, 4], [3, 6]])
    1
    """
    X, tol = _checked(X, tol)
    if not sp.issparse(X):
        return int(np.linalg.matrix_rank(X, rtol=tol))
    return _side(X, tol).rank


def range_space(X: Any, tol: float | None = None) -> np.ndarray:
    """Return an orthonormal basis of the range of a matrix: of all Xv.

    Parameters
    ----------
    X, tol
        As for `rank`.

    Returns
    -------
    basis : ndarray of shape (n, rank)
        A direction in each column; the largest entry of each is positive.

    Examples
    --------
    >>> from unmix.linear import range_space
    >>> range_space([[1.0, 2], [0, 0], [0, 0]]).tolist()
    [[1.0], [0.0], [0.0]]
    """
    X, tol = _checked(X, tol)
    if not sp.issparse(X):
        return canonical(scipy.linalg.orth(X, rcond=tol).T).T
    side = _side(X, tol)
    W = side.vectors[:, : side.rank]
    return canonical((np.linalg.qr(X @ W)[0] if side.right else W).T).T


def null_space(X: Any, tol: float | None = None) -> np.ndarray:
    """Return an orthonormal basis of the null space of a matrix: of all v for which Xv = 0.

    Parameters
    ----------
    X, tol
        As for `rank`.

    Returns
    -------
    basis : ndarray of shape (d, d − rank)
        A direction in each column; the largest entry of each is positive.

    Examples
    --------
    >>> from unmix.linear import null_space
    >>> null_space([[1.0, 0, 0], [0, 1, 0]]).tolist()
    [[0.0], [0.0], [1.0]]
    """
    X, tol = _checked(X, tol)
    if not sp.issparse(X):
        return canonical(scipy.linalg.null_space(X, rcond=tol).T).T
    side = _side(X, tol)
    if side.right:
        return canonical(side.vectors[:, side.rank :].T).T
    _afford(X.shape[1] ** 2)
    whole = scipy.linalg.qr(X.T @ side.vectors[:, : side.rank])[0]
    return canonical(whole[:, side.rank :].T).T


class Side(NamedTuple):
    """Singular vectors of the smaller side, the right one where `right`, in columns by falling σ; the rank."""

    vectors: np.ndarray
    right: bool
    rank: int


def _side(X: Any, tol: float) -> Side:
    """Spectrum of a sparse matrix: of the Gram matrix of its smaller side, small values from their images."""
    right = X.shape[1] <= X.shape[0]
    A = (X if right else X.T.tocsr()).astype(np.float64)
    _afford(3 * A.shape[1] ** 2)
    largest = float(np.abs(A.data).max(initial=0.0)) or 1.0  # in units of it squares stay within range
    A = A / largest
    values, W = np.linalg.eigh((A.T @ A).toarray())
    sigma, W = np.sqrt(np.maximum(values[::-1], 0.0)), W[:, ::-1]
    small = np.flatnonzero(sigma <= np.sqrt(np.sqrt(np.finfo(float).eps)) * sigma[0])
    if len(small):
        _afford(2 * A.shape[0] * len(small))
        _, sigma[small], Q = scipy.linalg.svd(A @ W[:, small], full_matrices=False)
        W[:, small] = W[:, small] @ Q.T
    return Side(W, right, int(np.count_nonzero(sigma > tol * sigma[0])))


def _checked(X: Any, tol: float | None) -> tuple[Any, float]:
    """A matrix of floats, and the tolerance."""
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    if tol is not None and not 0 <= tol < 1:
        raise ValueError(f"tol={tol!r} is relative to the largest singular value: give a number from 0 to below 1")
    return X, float(np.finfo(X.dtype).eps) * max(X.shape) if tol is None else float(tol)


def _afford(numbers: int) -> None:
    """Refuse a dense matrix of so many numbers where it is beyond the memory budget."""
    if 8 * numbers > (budget := get_config().budget):
        raise ValueError(
            f"the spectrum of this sparse matrix needs {8 * numbers / 1e9:.1f} GB, and memory_budget allows "
            f"{budget / 1e9:.1f} GB: TruncatedSVD gives its leading singular values and vectors"
        )
