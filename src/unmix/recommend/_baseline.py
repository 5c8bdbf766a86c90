"""What baselines share: ratings as a matrix, biases, and the questions that `PMF` answers, too."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unmix.engine.site import Documented
from unmix.engine.sources import Source, as_source
from unmix.recommend._asking import Recommended
from unmix.recommend.ratings import as_ratings, learnt_ids, matrix_of, one_place, places

SWEEPS = 10  # of the biases, which hardly change after a few


class Baseline(Documented, BaseEstimator):
    """A recommender that is fitted to ratings at once, without passes.

    Contract: `_learn()`, `_expected(user, item)`, `_expected_row(user)`; the latter get places, not ids.
    """

    _doc_page: ClassVar[str] = "api/recommend.html#unmix.recommend.{name}"

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : data frame, source, sparse matrix or array
            Ratings, as `PMF.fit` takes them: a frame with the columns user, item and rating; `unmix.triples`; a sparse
            matrix whose absent entries were not observed; an array with NaN there.
        y : ignored
            For pipelines.

        Returns
        -------
        self
        """
        source = as_ratings(X)
        source = source if isinstance(source, Source) else as_source(source, absent="unobserved")
        self.user_ids_, self.item_ids_ = learnt_ids(source)
        self.ratings_ = sp.csr_array(matrix_of(source)).astype(np.float64)
        self.mean_, self.user_biases_, self.item_biases_ = biases(self.ratings_, self.regularization)  # type: ignore[attr-defined]
        self._learn()
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the ratings that are expected of users for items, one by one.

        Parameters
        ----------
        users, items : arrays of shape (m,)
            Who, and what, as in the ratings of the fit; of others what a new one would get on average.

        Returns
        -------
        ratings : ndarray of shape (m,)
        """
        check_is_fitted(self)
        n, d = self.ratings_.shape
        user, item = np.broadcast_arrays(places(users, self.user_ids_, n), places(items, self.item_ids_, d))
        out = self.mean_ + np.append(self.user_biases_, 0.0)[user] + np.append(self.item_biases_, 0.0)[item]
        known = (user < n) & (item < d)
        out[known] = self._expected(user[known], item[known])
        return np.asarray(out)

    def recommend(self, user: Any, n: int = 10, *, exclude_seen: bool = True) -> list[Recommended]:
        """Return the items that a user is expected to rate highest, the best first.

        Parameters
        ----------
        user : id
            A user of the fit.
        n : int, default=10
            How many items, at most.
        exclude_seen : bool, default=True
            Whether to leave out what the user has rated.

        Returns
        -------
        recommended : list of (item, rating, std)
            The standard deviation is not known, NaN.
        """
        check_is_fitted(self)
        at, d = one_place(user, self.user_ids_, self.ratings_.shape[0], "user"), self.ratings_.shape[1]
        score = self._expected(np.full(d, at), np.arange(d))
        rating = score.copy()
        if exclude_seen:
            score[self.ratings_[[at]].indices] = -np.inf
        best = [int(j) for j in np.argsort(-score, kind="stable")[:n] if score[j] > -np.inf]
        names = range(d) if self.item_ids_ is None else self.item_ids_.tolist()
        return [Recommended(names[j], float(rating[j]), float("nan")) for j in best]

    @property
    def known_users(self) -> int:
        """How many users the fit saw."""
        return int(self.ratings_.shape[0])

    def __sklearn_is_fitted__(self) -> bool:
        return "ratings_" in vars(self)

    def _learn(self) -> None:
        """What is needed beside the ratings and their biases."""
        raise NotImplementedError

    def _expected(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        """Expected ratings of pairs, by their places."""
        raise NotImplementedError


def biases(x: Any, ridge: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean, and biases of users and items: ridge regression, one side after the other."""
    coo = x.tocoo()
    (i, j), r = coo.coords, coo.data
    mean, b, c = float(r.mean()) if len(r) else 0.0, np.zeros(x.shape[0]), np.zeros(x.shape[1])
    users, items = np.bincount(i, minlength=len(b)) + ridge, np.bincount(j, minlength=len(c)) + ridge
    for _ in range(SWEEPS):
        b = np.bincount(i, r - mean - c[j], len(b)) / np.maximum(users, 1e-300)
        c = np.bincount(j, r - mean - b[i], len(c)) / np.maximum(items, 1e-300)
    return mean, b, c


def residuals(x: Any, mean: float, b: np.ndarray, c: np.ndarray) -> Any:
    """The ratings less mean and biases, as CSR."""
    rest = sp.csr_array(x, copy=True)
    rest.data = rest.data - mean - np.repeat(b, np.diff(rest.indptr)) - c[rest.indices]
    return rest
