"""Ratings as people have them: a table with a line for each, a sparse matrix, a table with a column for each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources import Source, as_source
from unmix.engine.sources.arrays import check_csr
from unmix.engine.sources.arrow import is_frame
from unmix.engine.sources.triples import Triples, table_columns, triples
from unmix.maths.arrays import Array

COLUMNS = ["user", "item", "rating"]


class Ratings(NamedTuple):
    """Who rated what, and how: row after row, as a CSR matrix has them."""

    values: Annotated[np.ndarray, Array("e")]
    items: Annotated[np.ndarray, Array("e", "i", 0, "d-1")]
    ends: Annotated[np.ndarray, Array("n+1", "i", 0, "e")]

    @classmethod
    def of(cls, x: Any) -> Ratings:
        """Those of a CSR matrix."""
        return cls(np.asarray(x.data), np.asarray(x.indices, np.int64), np.asarray(x.indptr, np.int64))

    def matrix(self, d: int) -> Any:
        """The CSR matrix."""
        x = sp.csr_array((self.values, self.items, self.ends), shape=(len(self.ends) - 1, d))
        check_csr(x)
        return x


def is_ratings(X: Any) -> bool:
    """Whether X is a data frame with the columns user, item and rating."""
    return is_frame(X) and set(COLUMNS) <= {str(name) for name in names_of(X)}


def names_of(frame: Any) -> list[Any]:
    """The names of a frame's columns."""
    import narwhals as nw

    known = nw.from_native(frame, pass_through=True)
    if isinstance(known, nw.DataFrame):
        return list(known.columns)
    return list(known.collect_schema().names()) if isinstance(known, nw.LazyFrame) else []


def as_ratings(X: Any, items: Any = None) -> Any:
    """The source of a frame of ratings, its items in the order of those known; anything else as it is."""
    if isinstance(X, Source) or not is_ratings(X):
        return X
    user, item, rating = columns_of(X)
    return triples(user, item, rating, columns=None if items is None else np.asarray(items))


def columns_of(frame: Any) -> list[np.ndarray]:
    """Users, items and ratings of a frame, each of one kind, and none missing."""
    user, item, rating = table_columns(frame, COLUMNS)
    rating = np.asarray(rating)
    if not len(rating):
        raise ValueError("the table of ratings is empty: give at least one entry, a line with user, item and rating")
    if rating.dtype.kind not in "fiub":
        bad = next((v for v in rating.tolist() if not is_number(v)), None)
        if bad is not None:
            raise ValueError(f"a rating is {bad!r}, which is no number: drop such lines, or code them as numbers")
        rating = rating.astype(np.float64)
    if rating.dtype.kind == "f" and np.isnan(rating).any():
        at = int(np.flatnonzero(np.isnan(rating))[0])
        raise ValueError(
            f"the rating in line {at} (counted from 0), of user {user[at]!r} for item {item[at]!r}, is missing: drop it"
        )
    return [ids(user, "user"), ids(item, "item"), rating]


def is_number(value: Any) -> bool:
    """Whether a value of a column of objects is a number, or can be read as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def ids(values: Any, what: str) -> np.ndarray:
    """Names of users or items as numbers or as text."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"the {what} of line {int(np.argmax(np.isnan(values)))} (counted from 0) is missing: drop it")
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        return values.astype(np.int64)
    if values.dtype.kind == "O":
        gone = np.array([v is None or v != v for v in values.tolist()])
        if gone.any():
            raise ValueError(f"the {what} of line {int(np.argmax(gone))} (counted from 0) is missing: drop that line")
    return np.array([str(v) for v in values.tolist()], dtype=object)


def ids_of(names: Any) -> np.ndarray | None:
    """What rows or columns of a source are called, as a file can hold it: whole numbers or text."""
    if names is None:
        return None
    names = np.asarray(names)
    return names.astype(np.int64) if names.dtype.kind in "iu" else np.array([str(v) for v in names.tolist()], object)


def learnt_ids(source: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What triples call the rows and the columns; None, None for what is no triples."""
    if isinstance(source, Triples):
        return ids_of(source.rows), ids_of(source.columns)
    return None, None


def places(wanted: Any, known: np.ndarray | None, n: int) -> np.ndarray:
    """Where those are that are wanted among the known ones; n for one that is not known."""
    wanted = np.atleast_1d(np.asarray(wanted))
    if known is None:
        if wanted.dtype.kind not in "iu":
            return np.full(len(wanted), n)
        return np.where((wanted >= 0) & (wanted < n), wanted, n)
    names = wanted.tolist() if known.dtype.kind == "i" else [str(v) for v in wanted.tolist()]
    at = dict(zip(known.tolist(), range(len(known)), strict=True))
    return np.array([at.get(name, n) for name in names], dtype=np.int64)


def one_place(wanted: Any, known: np.ndarray | None, n: int, what: str) -> int:
    """Where one is that must be known."""
    at = int(places([wanted], known, n)[0]) if np.ndim(wanted) == 0 else n
    if at == n:
        first = 0 if known is None else known[:1].tolist()[0]  # as Python writes it
        rest = "fold_in(ratings) makes new ones known" + (
            ", and so does {item: rating, …} in place of a user" * (what == "user")
        )
        raise ValueError(f"{what} {wanted!r} is not among the {n} {what}s of the fit (the first is {first!r}): {rest}")
    return at


def row_of(ratings: Mapping[Any, float], known: np.ndarray | None, d: int) -> Any:
    """The ratings of one new user, {item: rating}, as a row."""
    if not ratings:
        return sp.csr_array((1, d))
    at = [one_place(item, known, d, "item") for item in ratings]
    values = np.array([float(v) for v in ratings.values()])
    if not np.isfinite(values).all():
        raise ValueError(f"ratings {dict(ratings)!r}: every rating must be a finite number")
    order = np.argsort(at)
    return sp.csr_array((values[order], np.asarray(at)[order], [0, len(at)]), shape=(1, d))


def matrix_of(source: Any) -> Any:
    """All rows of a source as CSR, whose absent entries were not observed."""
    source = as_source(source, absent="unobserved")
    x = source.read(0, source.n)
    if sp.issparse(x):
        return x
    seen = ~np.isnan(x)
    return sp.csr_array(
        (x[seen], np.nonzero(seen)[1], np.concatenate([[0], np.cumsum(seen.sum(axis=1))])), shape=x.shape
    )
