"""`roles`: from an access list to roles, and to a page that its owner can read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unmix.access import Analysis, access_list, analysis
from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.reporting.access import sections
from unmix.reporting.report import Report

TABLES = {  # the columns of each
    "roles": pa.schema([("role", pa.string()), ("permission", pa.string())]),
    "members": pa.schema([("user", pa.string()), ("role", pa.string())]),
    "direct": pa.schema([("user", pa.string()), ("permission", pa.string())]),
    "review": pa.schema([("user", pa.string()), ("permission", pa.string()), ("kind", pa.string()),
                         ("called_wrong", pa.bool_()), ("probability", pa.float64()), ("expected", pa.float64())]),
}  # fmt: skip


class Roles(Report):
    """Roles of an access list, and what looks wrong in it.

    `print(found)` gives the summary, `save` the page, `to_dict` everything as plain values.

    Attributes
    ----------
    found : Analysis
        The arrays behind it: `roles`, `members`, `names`, `stable`, `judged`.
    tables : dict of pyarrow.Table
        `roles` (role, permission), `members` (user, role), `direct` (grants that no role explains) and `review`
        (user, permission, kind, called_wrong, probability, expected).
    title, sections, notes
        As of a `Report`.
    """

    def __init__(self, title: str, found: Analysis, code: str, notes: list[str]) -> None:
        super().__init__(title, sections(found, code), notes)
        self.found = found

    @property
    def tables(self) -> dict[str, Any]:
        """Tables of roles, their members, grants that stay direct, and what to review."""
        return {name: pa.Table.from_pylist(self.found.tables[name], schema=s) for name, s in TABLES.items()}

    def table(self, name: str) -> Any:
        """One of the tables.

        Parameters
        ----------
        name : {"roles", "members", "direct", "review"}

        Returns
        -------
        table : pyarrow.Table
        """
        if name not in TABLES:
            raise ValueError(f"name={name!r}: take one of {', '.join(TABLES)}")
        return self.tables[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and for what manages identities.

        Returns
        -------
        found : dict
            What the sections tell, and under "list" the roles with their permissions and members, "direct" and
            "review".
        """
        f = self.found
        users, permissions = (np.array(a, dtype=object) for a in (f.listing.users, f.listing.permissions))
        roles = [
            {
                "role": name,
                "permissions": permissions[f.roles[k]].tolist(),
                "members": users[f.members[:, k]].tolist(),
                "explains": int(f.gained[k]),
                "stability": round(float(f.stable[k]), 3),
            }
            for k, name in enumerate(f.names)
        ]
        rest = {name: f.tables[name] for name in ("direct", "review")}
        return {**super().to_dict(), "list": roles, **rest}


def roles(
    X: Any,
    n_roles: int | None = None,
    *,
    users: Any = None,
    permissions: Any = None,
    fdr: float | None = 0.1,
    names: Sequence[str] | None = None,
    exclude: Sequence[Any] = (),
    dormant: Sequence[Any] = (),
    direct: Any = None,
    random_state: int = 0,
    title: str | None = None,
    header: bool | None = None,
) -> Roles:
    """Find roles in an access list, and grants that look wrong.

    Parameters
    ----------
    X : path, Table, data frame, array or sparse matrix
        Who may do what: pairs of user and permission, a line for each grant; a matrix of 0 and 1 (NaN: nobody knows), a
        row for each user; or a file `.rmp`.
    n_roles : int, optional
        How many roles; by default as many as save more than they cost.
    users, permissions : data frame, Table or path, optional
        What is known of users and of permissions, their ids in the first column: it names roles.
    fdr : float or None, default=0.1
        The share of rightful cells among those that are called wrong, at most, where wrong cells lie anywhere. None:
        no grant is judged.
    names : two names of columns, optional
        Which columns hold users and permissions; by default told by what they are called.
    exclude : sequence of permissions, optional
        Are left out.
    dormant : sequence of users, optional
        Accounts that are not in use: left out.
    direct : sequence of pairs, optional
        Grants that are to stay direct, as of emergency accounts: no role is found for them, and they are not judged.
    random_state : int, default=0
        Seed of the resamples that tell how stable roles are.
    title : str, optional
        What the page is called; by default the name of the file.
    header : bool, optional
        Whether the first line of a file names the columns.

    Returns
    -------
    found : Roles
        `print(found)` for the summary, `found.save("roles.html")` for the page, `found.tables["members"]`, ….

    Examples
    --------
    >>> import unmix
    >>> sales, stock = ["orders", "prices", "clients"], ["shelves", "lorries", "scales"]
    >>> grants = [(f"s{i}", p) for i in range(9) for p in sales] + [(f"w{i}", p) for i in range(9) for p in stock]
    >>> found = unmix.roles(grants, fdr=None)
    >>> sorted(role["permissions"] for role in found.to_dict()["list"])
    [['clients', 'orders', 'prices'], ['lorries', 'scales', 'shelves']]
    """
    with progress_line("roles", get_config()) as tell, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tell("reading the list")
        listing = access_list(X, names=names, header=header)
        found = analysis(
            listing,
            n_roles,
            users=users,
            permissions=permissions,
            fdr=fdr,
            exclude=exclude,
            dormant=dormant,
            direct=direct,
            seed=int(random_state),
            tell=tell,
        )
    file = isinstance(X, (str, Path)) and str(X) != "-"
    asked = {"n_roles": n_roles, "names": names, "header": header}
    more = "".join(f", {key}={value!r}" for key, value in asked.items() if value is not None)
    more += f", fdr={fdr}" * (fdr != 0.1)
    code = f"import unmix\n\nfound = unmix.roles({repr(str(X)) if file else 'X'}{more})"
    told = [str(w.message) for w in heard if issubclass(w.category, UserWarning)]
    notes = [f"{note[0].upper()}{note[1:]}." for note in dict.fromkeys([*found.listing.notes, *told])]
    return Roles(title or (Path(X).name if file else "Access list"), found, code, notes)
