"""What is left to cover, made as small as it gets without changing the answer (Ene et al. 2008).

Equal users are one, and so are equal permissions. A pair (u, p) need not be looked at where another user u' of p has no
permission that u lacks: a role of u' that holds p can be given to u as well. The same holds with users and permissions
exchanged. What is unknown may be in a role, and need not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unmix.boolean._truth import Packed


class Problem(NamedTuple):
    """Distinct users and permissions, and the pairs that decide."""

    R: np.ndarray  # (n, w) what users may have, packed
    C: np.ndarray  # (d, v) the same by permission
    first: np.ndarray  # (n + 1,) the pairs of user u are first[u] … first[u + 1]
    user: np.ndarray  # (m,)
    column: np.ndarray  # (m,)
    weight: np.ndarray  # (n,) how many users each stands for
    N: np.ndarray  # (n, w) what they are known to have and need a role for
    copies: np.ndarray  # (d,) how many permissions each stands for
    place: np.ndarray  # permission → one of the d, or −1 where nothing is left to grant
    apart: np.ndarray  # (s, 2) of the d, that no role may join

    def roles(self, B: np.ndarray) -> np.ndarray:
        """Intents (k, w), packed, as roles over all permissions (k, ·)."""
        from unmix.kernels import bits

        if not len(self.C):
            return np.zeros((len(B), len(self.place)), bool)
        cells = bits.unpack(B, len(self.C))
        return np.asarray(cells[:, np.maximum(self.place, 0)] & (self.place >= 0))


def unique(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of equal rows, in an order of their own, and which of these each row is."""
    raw = np.ascontiguousarray(key)
    raw = raw.view(np.dtype((np.void, raw.itemsize * raw.shape[1]))).ravel()
    _, first, which = np.unique(raw, return_index=True, return_inverse=True)
    return first, which.ravel()


def pose(rows: Packed, w: np.ndarray | None, d: int, fixed: np.ndarray, apart: np.ndarray) -> Problem:
    """The problem that rows with these weights pose, beside roles that are fixed (k, d)."""
    from unmix.kernels import bits

    counts = np.ones(len(rows.ones)) if w is None else w
    use = np.flatnonzero(counts > 0)
    may, needed, counts = rows.may[use], rows.ones[use], counts[use]
    if len(fixed):
        F = bits.pack(fixed)
        needed = needed & ~bits.product(bits.pack(bits.within(F, may).T), F)
    may = may & np.bitwise_or.reduce(needed, axis=0, initial=np.uint64(0))
    some = np.flatnonzero(bits.popcount(needed))
    may, needed, counts = may[some], needed[some], counts[some]
    one, which = unique(np.hstack([needed, may])) if len(needed) else (np.zeros(0, int), np.zeros(0, int))
    weight = np.bincount(which, counts, len(one))
    R, N, C, M, place, copies = _merged_columns(needed[one], may[one], d, apart)
    apart = place[apart] if len(apart) else np.zeros((0, 2), np.int64)
    apart = apart[(apart >= 0).all(axis=1)]
    kept = N & ~bits.below(R, N)
    blocked = bits.below(C, M)
    blocked[apart.ravel()] = 0
    kept = bits.unpack(kept & ~bits.turned(blocked, len(R)), len(C))
    user, column = np.nonzero(kept)
    first = np.searchsorted(user, np.arange(len(R) + 1))
    return Problem(R, C, first, user, column, weight, N, copies, place, apart)


def _merged_columns(needed: np.ndarray, may: np.ndarray, d: int, apart: np.ndarray) -> tuple[np.ndarray, ...]:
    """Equal permissions as one, in the order of the first of them, unless they are to be held apart."""
    from unmix.kernels import bits

    n = len(needed)
    columns, own = (bits.turned(needed, d), bits.turned(may, d)), np.zeros((d, 1), np.uint64)
    own[apart.ravel(), 0] = 1 + apart.ravel()
    use = np.flatnonzero(bits.popcount(columns[0]) > 0)
    first, which = unique(np.hstack([*columns, own])[use]) if len(use) else (np.zeros(0, int), np.zeros(0, int))
    rank = np.argsort(np.argsort(first))
    place = np.full(d, -1)
    place[use] = rank[which] if len(use) else 0
    kept = use[np.sort(first)]
    M, C = (c[kept] for c in columns)
    copies = np.bincount(place[use], minlength=len(kept))
    return bits.turned(C, n), bits.turned(M, n), C, M, place, copies


def closed(problem: Problem, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Maximal roles from sets of users (k, v): what they have in common, split where permissions are to be apart."""
    from unmix.kernels import bits

    return whole(problem, bits.meet(A, problem.R))


def whole(problem: Problem, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Roles of these permissions (k, w), split where they are to be apart, with all users that may have them."""
    from unmix.kernels import bits

    for p, q in problem.apart:
        has = [((B[:, j >> 6] >> np.uint64(j & 63)) & np.uint64(1)).astype(bool) for j in (p, q)]
        both = np.flatnonzero(has[0] & has[1])
        left, right = B[both].copy(), B[both].copy()
        left[:, p >> 6] &= ~(np.uint64(1) << np.uint64(p & 63))
        right[:, q >> 6] &= ~(np.uint64(1) << np.uint64(q & 63))
        B = np.vstack([np.delete(B, both, axis=0), left, right])
    B = B[bits.popcount(B) > 0]
    if len(problem.apart) and len(B):
        B = B[unique(B)[0]]
    return bits.meet(B, problem.C), B


def strangers(problem: Problem) -> np.ndarray:
    """Pairs no two of which fit into one role: as many roles are needed.

    Pairs (u, p) and (u', p') do not fit where u may not have p', or u' may not have p. Greedy: pairs that fit with the
    fewest others come first.
    """
    from unmix.kernels import bits

    user, column = problem.user, problem.column
    if not len(user):
        return np.zeros(0, np.int64)
    may = bits.unpack(problem.R, len(problem.C))
    seen = np.bincount(user, minlength=len(may))
    fits = may.sum(axis=1)[user] * may.sum(axis=0)[column]
    out: list[int] = []
    alive = np.ones(len(user), bool)
    for t in np.lexsort((seen[user], fits)):
        if alive[t]:
            out.append(int(t))
            alive &= ~(may[user[t], column] & may[user, column[t]])
    return np.array(out)


def grown(problem: Problem, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The roles of pairs that are strangers, if they are all there are: sets of users and of permissions.

    Each pair then is in one of them. Where it fits with one alone, its user and its permission must be in that role,
    which leaves fewer users and permissions that may be in it, and so on.
    """
    from unmix.kernels import bits

    user, column = problem.user, problem.column
    missing = ~bits.unpack(problem.R, len(problem.C))
    A, B = np.zeros((len(seeds), len(problem.R)), bool), np.zeros((len(seeds), len(problem.C)), bool)
    own = np.arange(len(seeds))
    A[own, user[seeds]], B[own, column[seeds]] = True, True
    while True:
        users = B.astype(np.float32) @ missing.T == 0
        permissions = A.astype(np.float32) @ missing == 0
        fits = users[:, user] & permissions[:, column]
        one = np.flatnonzero(fits.sum(axis=0) == 1)
        role, known = fits[:, one].argmax(axis=0), int(A.sum() + B.sum())
        A[role, user[one]], B[role, column[one]] = True, True
        if int(A.sum() + B.sum()) == known:
            return users, permissions
