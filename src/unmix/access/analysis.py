"""All that is told of an access list: its roles, who has them, what they explain, and what looks wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.access.grants import FEWEST, Review, review
from unmix.access.listing import AccessList
from unmix.access.naming import attributes, names_of
from unmix.access.proposals import proposed, stability
from unmix.table import TableError

FIRST = 200  # cells of each kind that are in the table to review, where fewer are called wrong


@dataclass
class Analysis:
    """What was found in an access list.

    Attributes
    ----------
    listing : AccessList
        The list, without what was left out.
    judged : Review or None
        How likely each grant is wrong.
    names : list of str
        The roles.
    roles, members : ndarray of bool of shape (k, d) and (n, k)
    gained : ndarray of int
        How many grants each role explains that those before it do not.
    stable : ndarray
        How surely each role comes back from other users.
    ones : CSR array
        The grants that the roles were found in: without those that look wrong, with those that look missing.
    fdr : float or None
    left_out : dict
        How many users, permissions and direct grants were left out.
    """

    listing: AccessList
    judged: Review | None
    names: list[str]
    roles: np.ndarray
    members: np.ndarray
    gained: np.ndarray
    stable: np.ndarray
    ones: Any
    fdr: float | None
    left_out: dict[str, int]

    @cached_property
    def given(self) -> np.ndarray:
        """What the roles grant, (n, d)."""
        return np.asarray(self.members.astype(np.float32) @ self.roles.astype(np.float32) > 0)

    @cached_property
    def direct(self) -> Any:
        """Grants that no role explains."""
        return sp.csr_array(self.ones.toarray() & ~self.given)

    @property
    def coverage(self) -> float:
        """The share of the grants that roles explain; those that look wrong do not count."""
        return 1.0 - self.direct.nnz / max(self.ones.nnz, 1)

    @cached_property
    def explained(self) -> np.ndarray:
        """For each user "fully", "in part", "not at all", or "no grants"."""
        has, left = (np.diff(a.indptr) for a in (self.ones, self.direct))
        told = np.where(left == 0, "fully", np.where(left < has, "in part", "not at all"))
        return np.where(has == 0, "no grants", told)

    @cached_property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of the tables `roles`, `members`, `direct`, `review`, by name."""
        users, permissions = self.listing.users, self.listing.permissions
        rows, columns = np.nonzero(self.roles), np.nonzero(self.members)
        i, j = self.direct.nonzero()
        return {
            "roles": [{"role": self.names[k], "permission": permissions[d]} for k, d in zip(*rows, strict=True)],
            "members": [{"user": users[u], "role": self.names[k]} for u, k in zip(*columns, strict=True)],
            "direct": [{"user": users[u], "permission": permissions[d]} for u, d in zip(i, j, strict=True)],
            "review": self.to_review(),
        }

    def to_review(self) -> list[dict[str, Any]]:
        """Cells that may be wrong: all that are called so, and the first of the others; the likeliest first."""
        if self.judged is None:
            return []
        r, out = self.judged, []
        for kind, cells, p, share, called in (
            ("extra", r.extra, r.extra_probability, r.extra_expected, r.extras),
            ("missing", r.missing, r.missing_probability, r.missing_expected, r.missings),
        ):
            for at in range(min(len(cells), max(called, FIRST))):
                user, permission = cells[at]
                out.append(
                    {
                        "user": self.listing.users[user],
                        "permission": self.listing.permissions[permission],
                        "kind": kind,
                        "called_wrong": at < called,
                        "probability": round(float(p[at]), 4),
                        "expected": round(float(share[at]), 6),
                    }
                )
        return sorted(out, key=lambda c: (not c["called_wrong"], -c["probability"]))


def analysis(
    listing: AccessList,
    n_roles: int | None,
    *,
    users: Any,
    permissions: Any,
    fdr: float | None,
    exclude: Sequence[Any],
    dormant: Sequence[Any],
    direct: Any,
    seed: int,
    tell: Callable[[str], None],
) -> Analysis:
    """Find roles, and what looks wrong."""
    if n_roles is not None and (isinstance(n_roles, bool) or not 1 <= n_roles <= min(listing.ones.shape)):
        raise ValueError(f"n_roles={n_roles!r}: give a number from 1 to {min(listing.ones.shape)}")
    if fdr is not None and not 0 < fdr < 1:
        raise ValueError(f"fdr={fdr!r}: give a share between 0 and 1, or None to judge no grant")
    kept = listing.without(dormant, exclude)
    marked = set_aside(kept, direct)
    kept = marked or kept
    ones, judged = kept.ones, None
    if fdr is not None:
        tell("grants that look wrong")
        judged = review(ones, kept.known, fdr)
        ones = corrected(ones, judged)
    tell("roles")
    found = proposed(ones, n_roles)
    if n_roles is not None and len(found.roles) < n_roles:
        kept.notes.append(f"{len(found.roles)} roles explain all that roles can: there are no {n_roles}")
    tell("how stable roles are")
    of = (
        attributes(users, kept.users, "users", kept.notes),
        attributes(permissions, kept.permissions, "permissions", kept.notes),
    )
    names = names_of(found.roles, found.members, ones, kept.permissions, of)
    if judged is not None and ones.nnz < FEWEST:
        kept.notes.append(f"{ones.nnz:,} grants are too few to call any of them wrong: {FEWEST:,} are needed")
    out = {
        "dormant users": len(listing.users) - len(kept.users),
        "excluded permissions": len(listing.permissions) - len(kept.permissions),
        "direct grants": 0 if marked is None else len(direct),
    }
    stable = stability(ones, found.roles, n_roles, seed)
    return Analysis(kept, judged, names, found.roles, found.members, found.gained, stable, ones, fdr, out)


def corrected(ones: Any, judged: Review) -> Any:
    """The list without the grants that are called wrong, and with those that are called missing."""
    cells = ones.toarray()
    cells[tuple(judged.extra[: judged.extras].T)] = False
    cells[tuple(judged.missing[: judged.missings].T)] = True
    return sp.csr_array(cells)


def set_aside(listing: AccessList, direct: Any) -> AccessList | None:
    """The list without grants that are to stay direct, as of emergency accounts: nothing is said of these cells."""
    if direct is None or not len(direct):
        return None
    places = [{name: i for i, name in enumerate(some)} for some in (listing.users, listing.permissions)]
    cells = listing.ones.toarray()
    known = np.ones(cells.shape, bool) if listing.known is None else listing.known.copy()
    for pair in direct:
        at = tuple(place.get(str(name).strip(), -1) for place, name in zip(places, pair, strict=True))
        if min(at) < 0 or not cells[at]:
            raise TableError(f"direct= names {tuple(pair)!r}, which is no grant of the list")
        known[at] = False
    return AccessList(listing.users, listing.permissions, sp.csr_array(cells & known), known, listing.notes)
