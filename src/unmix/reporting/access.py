"""What is told of an access list: what to review first, the roles, what they explain, and whom."""

from __future__ import annotations

import numpy as np

from unmix.access import Analysis, access_list, analysis, is_access_list
from unmix.explanation.words import listed, percent, plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View

SHOWN = 25  # cells to review
DRAWN = 20  # roles in the picture
TOLD = 60  # roles in the table
NAMED = 6  # permissions of a role
LEFT = 15  # users with most grants that no role explains
MOST_CELLS = 2e7  # of a table of which a report tells the roles


def sections(found: Analysis, code: str) -> list[Section]:
    """The page of an access list."""
    return [_review(found, code), _roles(found, code), _users(found, code)]


def access(view: View) -> Section | None:
    """The roles of a table that is an access list."""
    raw = view.table.raw
    if raw.n * len(raw.names) > MOST_CELLS or not is_access_list(raw):
        return None
    listing = access_list(view.table)
    n, d = listing.ones.shape
    if n * d > MOST_CELLS or min(n, d) < 2:
        return None
    view.tell("roles")
    found = analysis(
        listing, None, users=None, permissions=None, fdr=0.1, exclude=(), dormant=(), direct=None, seed=view.seed,
        tell=view.tell,
    )  # fmt: skip
    told = _roles(found, f"{view.whole}\nfound = unmix.roles(table)")
    judged, facts = _review(found, ""), {**told.facts}
    facts["called_wrong"] = judged.facts["called_wrong"]
    return told._replace(
        key="access", said=[*told.said, judged.answer, "All of it: unmix roles FILE, or unmix.roles."], facts=facts
    )


def _review(found: Analysis, code: str) -> Section:
    """Cells that may be wrong."""
    rows, judged = found.to_review(), found.judged
    called = [c for c in rows if c["called_wrong"]]
    count = {kind: sum(c["kind"] == kind for c in called) for kind in ("extra", "missing")}
    if judged is None:
        answer = "No grant was judged, as nobody asked for it."
    elif called:
        answer = (
            f"{plural(count['extra'], 'grant')} should be reviewed as extra and {count['missing']:,} as missing; about "
            f"{percent(found.fdr or 0.0)} of them, at most, are right if wrong cells lie anywhere."
        )
    else:
        answer = (
            f"No grant stands out enough to be called wrong at {percent(found.fdr or 0.0)} of false alarms: what "
            "is rare here may be right. Begin the review with the grants that are least expected."
        )
    said = [
        "Each cell was predicted from all other cells of the list, without itself. Grants that nothing else speaks for "
        "come first, then permissions that a user lacks whom all like them have.",
    ]
    why = (
        "A permission is regressed on all others, for each user by all other users; among cells that are as much "
        "expected the share of grants is counted. The least expected cells tell how many cells could have been flipped "
        "blindly; grants that may stand alone, as many as there are users or permissions, are taken off. Wrong grants "
        "that repeat, as a role given to many by mistake, look like roles and are not found.",
    )
    shown: list[Chart | Grid] = []
    for kind, caption in (
        ("extra", "Grants that the rest of the list speaks for least"),
        ("missing", "Permissions that users like them have, and they do not"),
    ):
        own = [c for c in rows if c["kind"] == kind]
        if own:
            cells = [[c["user"], c["permission"], "yes" if c["called_wrong"] else "no", percent(c["probability"]),
                      percent(c["expected"])] for c in own[:SHOWN]]  # fmt: skip
            more = f", the first {SHOWN} of {len(own):,}" if len(own) > SHOWN else ""
            heads = ["user", "permission", "called wrong", "wrong, at least", "granted to the like"]
            shown.append(Grid(f"{caption}{more}.", heads, cells, 3))
    facts = {"called_wrong": count, "fdr": found.fdr, "rate": 0.0 if judged is None else judged.rate}
    code = f"{code}\nprint(found.tables['review'].slice(0, 20))"
    return Section("review", "Review", "What to review first", answer, said, shown, code, facts, why)


def _roles(found: Analysis, code: str) -> Section:
    """The roles, and how much each explains."""
    k, n = len(found.names), len(found.listing.users)
    order = np.argsort(-found.gained, kind="stable")
    total = max(found.ones.nnz, 1)
    if k:
        first = order[0]
        members, held = int(found.members[:, first].sum()), int(found.roles[first].sum())
        answer = (
            f"{plural(k, 'role')} explain{'s' * (k == 1)} {percent(found.coverage)} of "
            f"{plural(found.ones.nnz, 'grant')} of {plural(n, 'user')}; the largest, {found.names[first]!r}, has "
            f"{plural(members, 'member')} and {plural(held, 'permission')}."
        )
    else:
        answer = "No set of permissions is shared often enough for a role to save anything: grants are all direct."
    said = [
        "Nobody gets anything new: a role goes to users who have all of it"
        + (", but for grants that are called missing." if found.judged and found.judged.missings else ".")
        + " A role is proposed where it saves more entries, of roles, members and permissions, than it costs.",
        "Stability: how much of a role comes back when a fifth of the users is left out; below 50% it hangs on few.",
    ]
    shown: list[Chart | Grid] = []
    if k:
        bars = [{"name": found.names[r], "value": float(found.gained[r] / total)} for r in order[:DRAWN]]
        more = f", the first {DRAWN} of {k}" if k > DRAWN else ""
        shown.append(Chart("bars", f"Share of all grants that each role explains{more}; each grant counts once.",
                           {"bars": bars, "unit": "share of the grants", "percent": True}))  # fmt: skip
        upto = np.cumsum(found.gained[order]) / total
        if k > 2:
            bars = [{"name": str(r + 1), "value": float(v), "on": True} for r, v in enumerate(upto[:TOLD])]
            shown.append(Chart("columns", "Share of the grants that the first roles explain together.",
                               {"bars": bars, "x": "roles", "y": "share of grants"}))  # fmt: skip
        shown.append(_table(found, order))
    facts = {"roles": k, "coverage": found.coverage, "grants": int(found.ones.nnz), "users": n}
    return Section("roles", "Roles", "The roles behind the list", answer, said, shown,
                   f"{code}\nprint(found.tables['roles'])", facts)  # fmt: skip


def _table(found: Analysis, order: np.ndarray) -> Grid:
    rows = []
    for r in order[:TOLD]:
        held = [found.listing.permissions[d] for d in np.flatnonzero(found.roles[r])]
        rows.append([found.names[r], listed(held, NAMED), f"{len(held):,}", f"{int(found.members[:, r].sum()):,}",
                     f"{int(found.gained[r]):,}", percent(float(found.stable[r]))])  # fmt: skip
    more = f", the first {TOLD} of {len(order)}" if len(order) > TOLD else ""
    heads = ["role (suggested name)", "permissions", "number", "members", "explains", "stability"]
    return Grid(f"Roles, those first that explain most{more}.", heads, rows, 2)


def _users(found: Analysis, code: str) -> Section:
    """Whom the roles explain, and whom not."""
    told = found.explained
    kinds = ["fully", "in part", "not at all", "no grants"]
    count = {kind: int((told == kind).sum()) for kind in kinds}
    n = max(len(told), 1)
    answer = (
        f"Roles explain {plural(count['fully'], 'user')} fully, {count['in part']:,} in part and "
        f"{count['not at all']:,} not at all; {plural(found.direct.nnz, 'grant')} would stay direct."
    )
    bars = [{"name": kind, "value": count[kind] / n} for kind in kinds if count[kind]]
    shown: list[Chart | Grid] = [
        Chart("bars", "Users by how far roles explain them.", {"bars": bars, "unit": "share of users", "percent": True})
    ]
    left = np.diff(found.direct.indptr)
    rows = []
    for u in np.argsort(-left, kind="stable")[:LEFT]:
        if left[u]:
            own = found.direct.indices[found.direct.indptr[u] : found.direct.indptr[u + 1]]
            rows.append([found.listing.users[u], listed([found.listing.permissions[d] for d in own], NAMED),
                         f"{int(left[u]):,}"])  # fmt: skip
    if rows:
        shown.append(
            Grid("Users with most grants that no role explains.", ["user", "direct grants", "number"], rows, 2)
        )
    said = [f"Left out: {listed([plural(v, k[:-1]) for k, v in found.left_out.items() if v])}."]
    facts = {"explained": count, "direct": int(found.direct.nnz), "left_out": found.left_out}
    return Section("users", "Users", "Whom roles explain", answer, said * any(found.left_out.values()), shown,
                   f"{code}\nprint(found.tables['direct'])", facts)  # fmt: skip
