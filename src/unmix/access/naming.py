"""Names for roles: the attribute that sets their members or permissions apart, else the most typical permission."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.table import Table, TableError
from unmix.table.read import read

CLEAR = 0.5  # overlap (Jaccard index) of a role's members and those of a value, from which on it names the role
VALUES = 1000  # of an attribute; one of more is an identifier

Attributes = dict[str, np.ndarray]


def attributes(X: Any, known: list[str], what: str, notes: list[str]) -> Attributes:
    """What a table says of users or permissions, in their order; its first column holds their ids."""
    if X is None:
        return {}
    raw = X.raw if isinstance(X, Table) else read(X)
    if len(raw.names) < 2:
        raise TableError(f"{what}= has {len(raw.names)} columns: give ids in the first, and what is known in others")
    columns = raw.slice(0, raw.n)
    place = {str(v).strip(): i for i, v in enumerate(columns.column(0).to_pylist())}
    at = np.array([place.get(name, -1) for name in known])
    if (at < 0).all():
        raise TableError(f"{what}=: column {raw.names[0]!r} holds none of the {what} of the list, as {known[0]!r}")
    if lacking := int((at < 0).sum()):
        notes.append(f"of {lacking:,} {what} no attributes are known")
    out = {}
    for j, name in enumerate(raw.names[1:], 1):
        values = ["" if v is None else str(v).strip() for v in columns.column(j).to_pylist()]
        if len(set(values)) <= min(VALUES, max(2, len(values) // 2)):
            out[name] = np.array([values[i] if i >= 0 else "" for i in at], dtype=object)
    return out


def names_of(
    roles: np.ndarray, members: np.ndarray, ones: Any, permissions: list[str], of: tuple[Attributes, Attributes]
) -> list[str]:
    """A name for each role, each once."""
    holders = np.asarray(ones.sum(axis=0)).ravel()
    out: list[str] = []
    for k, role in enumerate(roles):
        found = [_telling(side, rows) for side, rows in zip(of, (members[:, k], role), strict=True)]
        share, name = max(found, key=lambda f: f[0])
        if share < CLEAR:
            held = np.flatnonzero(role)
            both = np.asarray(ones[members[:, k]].sum(axis=0)).ravel()[held]
            most = held[np.argmax(both / np.maximum(holders[held] + members[:, k].sum() - both, 1))]
            name = permissions[most]
        again = sum(name == old.split(" #")[0] for old in out)
        out.append(f"{name} #{again + 1}" if again else name)
    return out


def _telling(attributes: Attributes, rows: np.ndarray) -> tuple[float, str]:
    """The value that overlaps most with some rows, and how much."""
    best, name = 0.0, ""
    for attribute, values in attributes.items():
        for value, count in zip(*np.unique(values[rows], return_counts=True), strict=True):
            share = count / ((values == value).sum() + rows.sum() - count)
            if value and share > best:
                best, name = float(share), f"{attribute} {value}"
    return best, name
