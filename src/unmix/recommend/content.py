"""Content: each user's ratings by a ridge regression on what is known of the items.

    r̂_ij = μ + b_i + c_j + f_jᵀ w_i,        w_i = argmin_w Σ_j (e_ij − f_jᵀ w)² + λ ‖w‖²,        e = r − μ − b − c

It knows nothing of what other users like, and can tell of an item that nobody has rated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.recommend._baseline import Baseline, residuals


class ContentRidge(Baseline):
    """Ratings from features of the items, for each user by a ridge regression.

    Parameters
    ----------
    features : array of shape (n_items, f)
        What is known of each item, in the order of `items`.
    items : array of shape (n_items,), optional
        What these items are called; by default in the order in which a fit sorts them.
    penalty : float, default=20.0
        λ, after features have been scaled to a variance of 1.
    regularization : float, default=10.0
        How many ratings' worth of evidence says that a bias is 0.

    Attributes
    ----------
    mean_ : float
        Mean of the ratings.
    user_biases_, item_biases_ : ndarray
        What users and items get beside it.
    coef_ : ndarray of shape (n_users, f)
        w.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from unmix.recommend import ContentRidge
    >>> ratings = pd.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "rating": [5.0, 1.0, 5.0]})
    >>> model = ContentRidge(np.array([[1.0], [0.0], [1.0]]), penalty=1.0).fit(ratings)
    >>> bool(model.coef_[0, 0] > 0)
    True
    """

    def __init__(
        self, features: Any = None, *, items: Any = None, penalty: float = 20.0, regularization: float = 10.0
    ) -> None:
        self.features = features
        self.items = items
        self.penalty = penalty
        self.regularization = regularization

    def _learn(self) -> None:
        n, d = self.ratings_.shape
        F = self._of_items(d)
        spread = F.std(axis=0)
        self.scaled_ = (F - F.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        e = residuals(self.ratings_, self.mean_, self.user_biases_, self.item_biases_)
        self.coef_ = np.zeros((n, F.shape[1]))
        for i in range(n):
            part = slice(e.indptr[i], e.indptr[i + 1])
            f = self.scaled_[e.indices[part]]
            A = f.T @ f + max(self.penalty, 1e-10) * np.eye(F.shape[1])
            self.coef_[i] = np.linalg.solve(A, f.T @ e.data[part])

    def _of_items(self, d: int) -> np.ndarray:
        """Features of the items of the fit, in their order."""
        if self.features is None:
            raise ValueError("features=None: give an array with a row of numbers for each item")
        F = np.asarray(self.features, dtype=np.float64)
        if F.ndim != 2 or not np.isfinite(F).all():
            raise ValueError(f"features of shape {F.shape}: give a row of finite numbers for each item")
        if self.items is None:
            if len(F) != d:
                raise ValueError(f"features has {len(F)} rows for {d} items: give one for each, or say which by items=")
            return F
        names = np.arange(d) if self.item_ids_ is None else self.item_ids_
        at = {str(name): i for i, name in enumerate(self.items)}
        missing = [name for name in names.tolist() if str(name) not in at]
        if missing:
            raise ValueError(f"items has no {missing[0]!r}, which was rated: give features of every item")
        return np.asarray(F[[at[str(name)] for name in names.tolist()]])

    def _expected(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        base = self.mean_ + self.user_biases_[user] + self.item_biases_[item]
        return np.asarray(base + np.einsum("mf,mf->m", self.coef_[user], self.scaled_[item]))
