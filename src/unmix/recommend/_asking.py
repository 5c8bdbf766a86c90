"""What users ask of a recommender: predictions, what to recommend, what is similar, and why."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from unmix.engine.block import Block
from unmix.engine.sources import Source
from unmix.engine.sources.triples import triples
from unmix.model.capabilities import Recommends
from unmix.model.results import AllOrNothing
from unmix.recommend import _variational
from unmix.recommend._parts import Parts
from unmix.recommend._sides import entries, pairs, side_of, squares
from unmix.recommend.ratings import Ratings, as_ratings, learnt_ids, matrix_of, one_place, places, row_of

PAIRS = 1 << 22  # numbers of pairs of users and items that are held at a time


class Recommended(NamedTuple):
    """An item, the rating that is expected, and its standard deviation (NaN where it is not known)."""

    item: Any
    rating: float
    std: float


class Similar(NamedTuple):
    """An item, and how alike tastes for it are: 1 for the same, 0 for nothing in common, −1 for the opposite."""

    item: Any
    likeness: float


class Reason(NamedTuple):
    """A rating that a user gave, and what it adds to the prediction for another item."""

    item: Any
    rating: float
    adds: float


class Explanation(NamedTuple):
    """A prediction in its terms: what a new user would get, `baseline`, and the sum of what `reasons` add."""

    rating: float
    baseline: float
    reasons: list[Reason]


class Asking(Recommends):
    """Questions to a fitted factorisation of ratings. Users and items are called as in the ratings of the fit."""

    # ---------------------------------------------------------------- predictions

    def predict(self: Any, users: Any, items: Any = None, *, return_std: bool = False) -> Any:
        """Return the ratings that are expected of users for items, one by one.

        Parameters
        ----------
        users : array of shape (m,), or anything with rows
            Who; or rows as `fit` takes them, whose ratings of all items are then returned. One user may also be a dict
            {item: rating}: somebody new.
        items : array of shape (m,), optional
            What; one user for many items, or one item for many users, are fine.
        return_std : bool, default=False
            Whether to return the standard deviation of each rating about what is expected, too.

        Returns
        -------
        ratings : ndarray of shape (m,), or (n, n_items)
            Of a user or an item that the fit did not see, what a new one would get on average.
        std : ndarray of the same shape
            With `return_std`.
        """
        check_is_fitted(self)
        if return_std:
            self._refuse_clicks("return_std=True")
        if items is None:
            return self.rows("expect_and_doubt", users) if return_std else self.rows("expect", users)
        known, pad = self._users(users)
        item = places(items, self.item_ids_, self.n_features_in_)
        m = max(len(pad), len(item))
        if not {len(pad), len(item)} <= {1, m}:
            raise ValueError(f"there are {len(pad)} users and {len(item)} items: give one item for each user")
        mean, deviation = self._pairs(known, np.broadcast_to(pad, m), np.broadcast_to(item, m))
        return (mean, deviation) if return_std else mean

    def expect(self: Any, U: Parts, b: Block) -> np.ndarray:
        """The expected ratings of a block's users, for all items. Pure."""
        return np.asarray(self.decode(U, self.encode(U, b)))

    def expect_and_doubt(self: Any, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """The same with standard deviations. Pure."""
        mean, deviation = self.conditional(U, b)
        return mean.astype(b.x.dtype), deviation.astype(b.x.dtype)

    def recommend(
        self: Any, user: Any, n: int = 10, *, exclude_seen: bool = True, caution: float = 0.0
    ) -> list[Recommended]:
        """Return the items that a user is expected to rate highest, the best first.

        Parameters
        ----------
        user : id, or dict
            A user of the fit, or the ratings of a new one: {item: rating}.
        n : int, default=10
            How many items, at most.
        exclude_seen : bool, default=True
            Whether to leave out what the user has rated.
        caution : float, default=0.0
            Items are ranked by the expected rating less so many standard deviations: above 0, those come first of
            which the model is sure.

        Returns
        -------
        recommended : list of (item, rating, std)
        """
        check_is_fitted(self)
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n={n!r}: give a whole number of at least 1")
        if caution:
            self._refuse_clicks(f"caution={caution!r}")
        rows = self._known_user(user)
        (found,) = self._best(rows, n, exclude_seen, caution)
        return found

    def recommend_many(
        self: Any, users: Any = None, n: int = 10, *, exclude_seen: bool = True, caution: float = 0.0
    ) -> Iterator[tuple[Any, list[Recommended]]]:
        """Give (user, recommended) for many users, by default for all of the fit, one after the other.

        Parameters
        ----------
        users : iterable of ids, optional
            Which users of the fit.
        n, exclude_seen, caution
            As for `recommend`.

        Yields
        ------
        user, recommended
        """
        x = self._kept()
        ids = range(x.shape[0]) if self.user_ids_ is None else self.user_ids_.tolist()
        at = np.arange(x.shape[0])
        if users is not None:
            at = np.array([one_place(u, self.user_ids_, x.shape[0], "user") for u in users])
        step = max(1, PAIRS // max(1, self.n_features_in_))
        for first in range(0, len(at), step):
            part = at[first : first + step]
            yield from zip((ids[i] for i in part), self._best(x[part], n, exclude_seen, caution), strict=True)

    def similar(self: Any, item: Any, n: int = 10) -> list[Similar]:
        """Return the items that the same users like and dislike, the most alike first.

        It is the correlation of what users give to two items beside the biases; what is not sure of an item draws it
        to 0.

        Parameters
        ----------
        item : id
            An item of the fit.
        n : int, default=10
            How many.

        Returns
        -------
        similar : list of (item, likeness)
        """
        check_is_fitted(self)
        at = one_place(item, self.item_ids_, self.n_features_in_, "item")
        U, k = self.laws(), int(self.n_components)
        V, H = U.items[:, :k].astype(np.float64), np.asarray(U.user_covariance, np.float64)[:k, :k]
        size = ((V @ H) * V).sum(axis=1)
        if U.doubt.shape[1] and k:
            size += np.einsum("dab,ab->d", squares(U.doubt.astype(np.float64), U.items.shape[1])[:, :k, :k], H)
        likeness = (V @ H @ V[at]) / np.sqrt(np.maximum(size * size[at], 1e-300))
        order = [int(j) for j in np.argsort(-likeness, kind="stable") if j != at][:n]
        return [Similar(self._item(j), float(likeness[j])) for j in order]

    def explain(self: Any, user: Any, item: Any) -> Explanation:
        """Return which of a user's ratings a prediction comes from.

        The expected rating is linear in the ratings of the user, given the items: it is what a new user would get and
        a term for each rating, which may be negative.

        Parameters
        ----------
        user : id, or dict
            A user of the fit, or the ratings of a new one.
        item : id
            An item of the fit.

        Returns
        -------
        explanation : (rating, baseline, reasons)
            Reasons are (item, rating, adds), by falling size of what they add.
        """
        check_is_fitted(self)
        self._refuse_clicks("explain")
        at = one_place(item, self.item_ids_, self.n_features_in_, "item")
        x = self._known_user(user)
        U, rows, unit = self.laws(), entries(Block(x, absent=True)), float(self.parts.unit)
        found, biased = self.found(self.parts, rows), bool(self.biases)
        side = side_of(U.items, U.doubt, biased)
        C = squares(found.covariance[0], found.mean.shape[1])
        pull = C @ side.design[at]
        shift = _variational.law(U.user_mean, U.user_covariance)[1]
        baseline = float(U.mean + side.offset[at] + pull @ shift)
        t = rows.values / unit - float(U.mean) - side.offset[rows.columns]
        adds = (side.design[rows.columns] * t[:, None] - side.cross[rows.columns]) @ pull / float(U.noise)
        reasons = [
            Reason(self._item(int(j)), float(r), float(a) * unit)
            for j, r, a in zip(rows.columns, rows.values, adds, strict=True)
        ]
        reasons.sort(key=lambda reason: -abs(reason.adds))
        return Explanation((baseline + float(adds.sum())) * unit, baseline * unit, reasons)

    # ---------------------------------------------------------------- new users and items

    def fold_in(self: Any, ratings: Any) -> Any:
        """Return a model that knows further ratings, of users and items known or new, without a fit.

        What is new of users follows from the items, and new items from the users who rated them; items of the fit stay
        as they are.

        Parameters
        ----------
        ratings : data frame, or (user, item, rating) arrays
            A frame with the columns user, item and rating. A rating of a cell that was rated before replaces it.

        Returns
        -------
        model : PMF
        """
        x, d = self._kept(), self.n_features_in_
        source = ratings if isinstance(ratings, Source) else as_ratings(ratings)
        if isinstance(ratings, tuple) and len(ratings) == 3:
            source = triples(*ratings)
        if not isinstance(source, Source) or source.absent != "unobserved":
            raise ValueError("ratings: give a data frame with the columns user, item and rating, or unmix.triples(…)")
        more = matrix_of(source).tocoo()
        names = learnt_ids(source)
        users, who = joined(self.user_ids_, x.shape[0], names[0], source.n)
        items, what = joined(self.item_ids_, d, names[1], source.d)
        old = x.tocoo()
        shape = (x.shape[0] if users is None else len(users)), (d if items is None else len(items))
        cell = np.concatenate(
            [old.coords[0] * shape[1] + old.coords[1], who[more.coords[0]] * shape[1] + what[more.coords[1]]]
        )
        value = np.concatenate([old.data, more.data.astype(old.data.dtype)])
        _, last = np.unique(cell[::-1], return_index=True)
        last = len(cell) - 1 - last
        at = np.divmod(cell[last], shape[1])
        every = sp.csr_array((value[last], at), shape=shape)
        out = copy.copy(self)
        vars(out)["_shape"] = self.shape._replace(n=shape[0], d=shape[1], names=None)
        with AllOrNothing(out):
            for name in ("_online_", "feature_names_in_"):
                vars(out).pop(name, None)
            U = self.with_items(self.parts, every, d)
            vars(out).update(_parts_=U, n_features_in_=shape[1], user_ids_=users, item_ids_=items)
            out.ratings_ = Ratings.of(every)
            out.show(U)
            if items is not None and items.dtype.kind == "O":
                out.feature_names_in_ = items
        return out

    # ---------------------------------------------------------------- what these need

    def laws(self: Any) -> Parts:
        """The parts, with the law of users."""
        raise NotImplementedError

    @property
    def known_users(self: Any) -> int:
        """How many users the ratings are of that were kept."""
        return int(self._kept().shape[0])

    def _refuse_clicks(self: Any, what: str) -> None:
        if reason := self.why_not():
            raise ValueError(f"{what} needs ratings: preferences of {reason} have no standard deviation, nor reasons")

    def _item(self: Any, j: int) -> Any:
        return j if self.item_ids_ is None else self.item_ids_.tolist()[j]

    def _kept(self: Any) -> Any:
        """The ratings of the fit as CSR."""
        check_is_fitted(self)
        if self.ratings_ is None:
            raise ValueError(
                "the ratings of the fit were not kept (keep_ratings=False, rows that were not in memory, partial_fit, "
                "or a fit that was stopped): give the ratings of the user, {item: rating}, or rows"
            )
        return self.ratings_.matrix(self.n_features_in_)

    def _known_user(self: Any, user: Any) -> Any:
        """The ratings of one user as a row."""
        if isinstance(user, Mapping):
            return row_of(user, self.item_ids_, self.n_features_in_)
        x = self._kept()
        at = one_place(user, self.user_ids_, x.shape[0], "user")
        return x[[at]]

    def _users(self: Any, users: Any) -> tuple[Any, np.ndarray]:
        """Rows of the users that are asked for, an empty one for those who are not known, and the row of each."""
        if isinstance(users, Mapping):
            return row_of(users, self.item_ids_, self.n_features_in_), np.zeros(1, np.int64)
        x = self._kept()
        at = places(users, self.user_ids_, x.shape[0])
        rows, place = np.unique(at, return_inverse=True)
        some = sp.csr_array(x[rows[rows < x.shape[0]]])
        if len(rows) and rows[-1] == x.shape[0]:
            some = sp.csr_array(sp.vstack([some, sp.csr_array((1, x.shape[1]))], format="csr"))
        return some, place

    def _pairs(self: Any, x: Any, user: np.ndarray, item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of pairs, a piece at a time."""
        U = self.laws()
        if self.why_not():
            mean = self.encode(self.parts, Block(x, absent=True))
            return np.einsum("mk,mk->m", mean[user], np.vstack([U.items, 0 * U.items[:1]])[item]), np.full(
                len(item), np.nan
            )
        found, biased, unit = self.found(self.parts, entries(Block(x, absent=True))), bool(self.biases), float(U.unit)
        U = _variational.with_new_item(U)
        mean, variance = np.empty(len(item)), np.empty(len(item))
        step = max(1, PAIRS // len(pairs(U.items.shape[1])[0]))
        for at in range(0, len(item), step):
            part = slice(at, at + step)
            mean[part], variance[part] = _variational.predicted(U, found, user[part], item[part], biased)
        return mean * unit, np.sqrt(variance) * unit

    def _best(self: Any, x: Any, n: int, exclude_seen: bool, caution: float) -> list[list[Recommended]]:
        """The best items of each row of ratings."""
        b = Block(x, absent=True)
        if self.why_not():
            mean = self.expect(self.parts, b)
            deviation = np.full(mean.shape, np.nan)
            score = mean.astype(np.float64)
        else:
            mean, deviation = self.conditional(self.parts, b)
            score = mean - caution * deviation
        if exclude_seen:
            score[np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices] = -np.inf
        out = []
        for i, row in enumerate(score):
            order = [int(j) for j in np.argsort(-row, kind="stable")[:n] if row[j] > -np.inf]
            out.append([Recommended(self._item(j), float(mean[i, j]), float(deviation[i, j])) for j in order])
        return out


def joined(known: Any, n: int, more: Any, m: int) -> tuple[Any, np.ndarray]:
    """Names known and new, the new ones last, and where each of the latter stands."""
    if known is None and more is None:
        return (None if m <= n else np.arange(m)), np.arange(m)
    known = np.arange(n) if known is None else known
    more = np.arange(m) if more is None else more
    if known.dtype.kind == "O":
        more = np.array([str(v) for v in more.tolist()], dtype=object)
    elif more.dtype.kind == "O":
        raise ValueError(f"{more[0]!r} is text, but users or items of the fit are called by numbers, as {known[0]!r}")
    at = places(more, known, len(known))
    new = at == len(known)
    at = np.where(new, len(known) + np.cumsum(new) - 1, at)
    return np.concatenate([known, more[new]]), at
