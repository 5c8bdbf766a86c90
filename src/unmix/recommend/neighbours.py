"""Neighbours: a rating from those that similar items got from the same user, or that similar users gave the same item.

    r̂_ij = μ + b_i + c_j + Σ_{l ∈ N(j)} s_jl e_il / (Σ |s_jl| + damping),        e = r − μ − b − c
    s_jl = n_jl / (n_jl + shrinkage) · Σ_i e_ij e_il / (Σ_i e_ij² Σ_i e_il²)^½        over the n_jl users of both

N(j) are the `n_neighbors` most similar items among those that user i rated. By users, the roles change.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from unmix.engine.config import get_config
from unmix.recommend._baseline import Baseline, residuals


class Neighbours(Baseline):
    """Ratings from similar items, or from similar users: nearest neighbours with biases and shrinkage.

    Parameters
    ----------
    n_neighbors : int, default=40
        How many similar items (or users) a prediction is made of, at most.
    by : {"item", "user"}, default="item"
        Whose neighbours.
    shrinkage : float, default=100.0
        How many common ratings it takes until a likeness is believed by half.
    damping : float, default=0.1
        What draws a prediction to the biases where neighbours are hardly alike.
    regularization : float, default=10.0
        How many ratings' worth of evidence says that a bias is 0.

    Attributes
    ----------
    mean_ : float
        Mean of the ratings.
    user_biases_, item_biases_ : ndarray
        What users and items get beside it.
    similarities_ : ndarray of shape (m, m)
        Likeness of all pairs of items, or of users.

    Examples
    --------
    >>> import pandas as pd
    >>> from unmix.recommend import Neighbours
    >>> ratings = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": list("ababb"), "rating": [5, 1, 4, 2, 2]})
    >>> Neighbours().fit(ratings).predict([3], ["a"]).shape
    (1,)
    """

    def __init__(
        self,
        n_neighbors: int = 40,
        *,
        by: str = "item",
        shrinkage: float = 100.0,
        damping: float = 0.1,
        regularization: float = 10.0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.by = by
        self.shrinkage = shrinkage
        self.damping = damping
        self.regularization = regularization

    def _learn(self) -> None:
        if self.by not in ("item", "user"):
            raise ValueError(f"by={self.by!r}: neighbours are those of an 'item' or of a 'user'")
        e = residuals(self.ratings_, self.mean_, self.user_biases_, self.item_biases_)
        rows = e if self.by == "user" else sp.csr_array(e.T)
        m = rows.shape[0]
        if (size := 4 * 8 * m**2) > get_config().budget:
            raise ValueError(
                f"likenesses of all pairs of {m} {self.by}s take {size / 1e9:.1f} GB: take "
                f"by={'item' if self.by == 'user' else 'user'!r}, leave out rare ones, or take PMF"
            )
        seen = sp.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
        squares = sp.csr_array((rows.data**2, rows.indices, rows.indptr), shape=rows.shape)
        common, both = (seen @ seen.T).toarray(), (squares @ seen.T).toarray()
        self.similarities_ = (rows @ rows.T).toarray() / np.sqrt(np.maximum(both * both.T, 1e-300))
        self.similarities_ *= common / np.maximum(common + self.shrinkage, 1e-300)
        np.fill_diagonal(self.similarities_, 0.0)
        self.residuals_ = e if self.by == "item" else sp.csr_array(e.T)  # rows: what a prediction is made of

    def _expected(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        base = self.mean_ + self.user_biases_[user] + self.item_biases_[item]
        one, other = (user, item) if self.by == "item" else (item, user)
        e, out = self.residuals_, np.zeros(len(base))
        for t, (i, j) in enumerate(zip(one, other, strict=True)):
            part = slice(e.indptr[i], e.indptr[i + 1])
            s, values = self.similarities_[j, e.indices[part]], e.data[part]
            if len(s) > self.n_neighbors:
                near = np.argpartition(-s, self.n_neighbors - 1)[: self.n_neighbors]
                s, values = s[near], values[near]
            s = np.maximum(s, 0.0)
            out[t] = s @ values / max(s.sum() + self.damping, 1e-300)
        return np.asarray(base + out)
