"""An access list as people have it: pairs, a matrix, a file of RMPlib; as users, permissions and a Boolean matrix."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.table import Table, TableError
from unmix.table.read import Raw, read

GLANCE = 1000  # rows that tell most tables from an access list
FEW = 4  # columns of a list of pairs: others would be a table of users who have a group
CALLED = {  # how columns are called that hold users and permissions
    "user": ("user", "userid", "username", "account", "accountid", "employee", "employeeid", "person", "login",
             "principal", "identity", "subject", "who"),
    "permission": ("permission", "permissionid", "entitlement", "entitlementid", "right", "access", "grant", "group",
                   "groupname", "resource", "privilege", "object", "what"),
}  # fmt: skip
SHOWN = 3


@dataclass
class AccessList:
    """Who may do what.

    Attributes
    ----------
    users, permissions : list of str
        What they are called.
    ones : CSR array of bool of shape (n, d)
        The grants.
    known : ndarray of bool or None
        Cells that are known; None where all are.
    notes : list of str
        What a person should know about how it was read.
    """

    users: list[str]
    permissions: list[str]
    ones: Any
    known: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.ones.nnz:
            raise TableError("the access list is empty: give at least one grant, a user with a permission")

    def without(self, users: Sequence[Any], permissions: Sequence[Any]) -> AccessList:
        """The list without some users and permissions."""
        rows = ~_among(self.users, users, "users")
        columns = ~_among(self.permissions, permissions, "permissions")
        known = None if self.known is None else self.known[rows][:, columns]
        names = [[a for a, kept in zip(some, keep, strict=True) if kept]
                 for some, keep in ((self.users, rows), (self.permissions, columns))]  # fmt: skip
        return AccessList(names[0], names[1], sp.csr_array(self.ones[rows][:, columns]), known, self.notes)


def access_list(
    X: Any,
    *,
    names: Sequence[str] | None = None,
    header: bool | None = None,
    users: Any = None,
    permissions: Any = None,
) -> AccessList:
    """Read an access list.

    Parameters
    ----------
    X : path, Table, data frame, array or sparse matrix
        Pairs of user and permission, a line for each grant; or a matrix of 0 and 1, a row for each user, whose first
        column may name the users; or a file `.rmp`.
    names : two names of columns, optional
        Which columns hold users and permissions; by default told by what they are called.
    header : bool, optional
        Whether the first line of a file names the columns.
    users, permissions : sequence of str, optional
        What rows and columns of an array are called.

    Returns
    -------
    listing : AccessList
    """
    if isinstance(X, AccessList):
        return X
    if isinstance(X, (str, os.PathLike)) and str(X).lower().endswith((".rmp", ".rmp.gz")):
        return _rmp(str(X))
    if sp.issparse(X) or isinstance(X, np.ndarray) or (isinstance(X, (list, tuple)) and X and _is_row(X[0])):
        return _array(X, users, permissions)
    return _frame(X.raw if isinstance(X, Table) else read(X, header=header), names)


def is_access_list(raw: Raw) -> bool:
    """Whether a table is a list of pairs by the names of its columns, or a wide matrix of 0 and 1."""
    if None not in _guessed(raw):
        return len(raw.names) <= FEW
    most = len(raw.names) - 1  # but for one of ids
    return raw.n > 1 and most > 7 and all(len(_flags(raw, rows)) >= most for rows in (GLANCE, raw.n))


def _is_row(row: Any) -> bool:
    return isinstance(row, (list, tuple, np.ndarray))


def _frame(raw: Raw, names: Sequence[str] | None) -> AccessList:
    """A table of pairs, or of flags."""
    if not raw.n:
        raise TableError("the access list is empty: give at least one grant, a user with a permission")
    pair = _asked(names, raw.names) if names else _guessed(raw)
    flags = _flags(raw)
    matrix = names is None and None in pair and len(flags) >= max(2, len(raw.names) - 1)
    if not matrix and None in pair and len(raw.names) == 2:
        pair = list(raw.names)
    if None not in pair:
        cells = raw.slice(0, raw.n, [str(name) for name in pair])
        return pairs(cells.column(0).to_pylist(), cells.column(1).to_pylist(), list(raw.notes))
    if not matrix:
        if bad := _not_flags(raw, flags):
            raise TableError(bad)
        raise TableError(
            f"which columns hold users and permissions? There are {', '.join(raw.names[:8])}: say "
            "names=('USER', 'PERMISSION') (--names USER,PERMISSION)"
        )
    ids = [name for name in raw.names if name not in flags or name == raw.index]
    columns = [name for name in flags if name not in ids]
    table = raw.slice(0, raw.n, columns)
    cells = np.column_stack([table[c].to_numpy().astype(float) for c in columns])
    called = [str(v) for v in raw.slice(0, raw.n, ids[:1]).column(0).to_pylist()] if ids else None
    out = _array(cells, called, columns)
    out.notes += raw.notes
    return out


def _not_flags(raw: Raw, flags: list[str]) -> str | None:
    """What is wrong with a matrix whose columns are nearly all 0 and 1."""
    import pyarrow as pa

    odd = [name for name in raw.names[1:] if name not in flags]
    if len(flags) < 2 or not odd or len(odd) > len(flags):
        return None
    column = raw.slice(0, raw.n, odd[:1]).column(0)
    values = [v for v in column.to_pylist() if v not in (0, 1, None)]
    shown = repr(values[0]) if values else str(column.type)
    kind = "a number" if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) else "a value"
    return f"column {odd[0]!r} holds {shown}, {kind} other than 0 and 1: give 1 where it is granted, 0 where it is not"


def _flags(raw: Raw, rows: int | None = None) -> list[str]:
    """The columns that hold nothing but 0, 1 and empty cells, in the first rows or in all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    out, numbers = [], [f.name for f in raw.schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)]
    cells = raw.slice(0, raw.n if rows is None else min(rows, raw.n), numbers)
    for f in raw.schema:
        if pa.types.is_boolean(f.type):
            out.append(f.name)
        elif f.name in numbers:
            values = pc.unique(cells[f.name])
            if len(values) < 5 and all(v in (0, 1, None) or v != v for v in values.to_pylist()):
                out.append(f.name)
    return out


def _asked(names: Sequence[str], known: list[str]) -> list[str | None]:
    if isinstance(names, str) or len(names) != 2 or names[0] == names[1]:
        raise TableError(f"names={names!r}: give two names of columns, of users and of permissions")
    for name in names:
        if name not in known:
            raise TableError(f"names: there is no column {name!r}; there are {', '.join(known[:8])}")
    return list(names)


def _guessed(raw: Raw) -> list[str | None]:
    plain = {"".join(ch for ch in name.lower() if ch.isalnum()): name for name in raw.names}
    return [next((plain[name] for name in called if name in plain), None) for called in CALLED.values()]


def pairs(users: Sequence[Any], permissions: Sequence[Any], notes: list[str] | None = None) -> AccessList:
    """A list from its grants: ids without blanks around them, each grant once."""
    notes = [] if notes is None else notes
    given = [["" if v is None or v != v else str(v) for v in some] for some in (users, permissions)]
    text = [[v.strip() for v in some] for some in given]
    blank = sum(a != b for some, own in zip(text, given, strict=True) for a, b in zip(some, own, strict=True))
    if blank:
        notes.append(f"{blank:,} ids had blanks before or behind them, which are no part of them")
    kept = [(u, p) for u, p in zip(*text, strict=True) if u and p]
    if gone := len(text[0]) - len(kept):
        notes.append(f"{gone:,} lines without a user or a permission left out")
    if not kept:
        raise TableError("the access list is empty: give at least one grant, a user with a permission")
    (who, i), (what, j) = (np.unique([pair[side] for pair in kept], return_inverse=True) for side in (0, 1))
    ones = sp.csr_array((np.ones(len(kept), bool), (i, j)), shape=(len(who), len(what)))
    ones.sum_duplicates()
    if again := len(kept) - ones.nnz:
        notes.append(f"{again:,} grants occur more than once; each counts once")
    return AccessList(who.tolist(), what.tolist(), _truth(ones), None, notes)


def _array(X: Any, users: Any, permissions: Any) -> AccessList:
    """A matrix of 0, 1 and NaN, or two columns of ids."""
    if not sp.issparse(X):
        X = np.asarray(X)
        ids = X.dtype.kind in "OUS" or (X.dtype.kind in "iu" and not np.isin(X, (0, 1)).all())
        if X.ndim == 2 and X.shape[1] == 2 and ids:
            return pairs(X[:, 0].tolist(), X[:, 1].tolist())
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise TableError(f"X is an array of shape {X.shape} and type {X.dtype}: give a matrix of 0 and 1, or pairs")
    values = X.data if sp.issparse(X) else X
    unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if (bad := values[~unknown & (values != 0) & (values != 1)]).size:
        raise TableError(f"X holds {bad[0]}: give 1 where a permission is granted, 0 where not, NaN where nobody knows")
    known = None
    if sp.issparse(X):
        if unknown.any():
            raise TableError("X is sparse and holds NaN: give a dense matrix where cells are unknown")
        ones = sp.csr_array(X != 0)
    else:
        ones, known = sp.csr_array(values == 1), ~unknown if unknown.any() else None
    names = [
        [str(v).strip() for v in given] if given is not None else [f"{what}{k + 1}" for k in range(size)]
        for given, what, size in ((users, "user", ones.shape[0]), (permissions, "permission", ones.shape[1]))
    ]
    for what, some, size in zip(("users", "permissions"), names, ones.shape, strict=True):
        if len(some) != size or len(set(some)) < size:
            raise TableError(
                f"{what} are {len(some):,} names, {len(set(some)):,} different: give {size:,} different ones"
            )
    return AccessList(names[0], names[1], _truth(ones), known)


def _truth(ones: Any) -> Any:
    ones.eliminate_zeros()
    ones.sort_indices()
    return sp.csr_array((np.ones(ones.nnz, bool), ones.indices, ones.indptr), shape=ones.shape)


def _rmp(path: str) -> AccessList:
    """A file of RMPlib: a user and their permissions in a line, lines with # are comments."""
    packed = path.lower().endswith(".gz")
    with gzip.open(path, "rt", encoding="utf-8-sig") if packed else open(path, encoding="utf-8-sig") as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    rows = [row for row in rows if row[0].startswith("u")]
    return pairs([row[0] for row in rows for _ in row[1:]], [p for row in rows for p in row[1:]])


def _among(names: list[str], some: Sequence[Any], what: str) -> np.ndarray:
    """Which names are among some, all of which must be known."""
    asked = {str(v).strip() for v in some}
    if unknown := sorted(asked - set(names)):
        raise TableError(f"{what} to be left out are not in the list: {', '.join(map(repr, unknown[:SHOWN]))}")
    return np.array([name in asked for name in names], bool)
