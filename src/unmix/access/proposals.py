"""Roles that an access list proposes: sets of permissions that many have together, worth more than they cost.

Candidates are what the holders of a permission mostly have as well (by several shares of them), and the sets of
permissions that several users have exactly. A user may be given a role who has all of it, so nobody gets anything new;
one is left out whom others serve already. The next role is the one that saves most,

    (grants that no role before explains) − 1 − members − permissions,

until none saves anything: the least weighted structural complexity, greedily (grants that are left cost one each).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

SHARES = (1.0, 0.9, 0.7, 0.5)  # of the holders of a permission that have another
MOST = 4000  # candidates
CHUNK = 1000  # that are weighed at a time
ROUNDS = 1000  # roles, at most
RESAMPLES, KEPT = 3, 0.8  # of users, for stability


class Proposal(NamedTuple):
    """Roles (k, d) and who has them (n, k), in the order in which they were chosen; how many grants each explained."""

    roles: np.ndarray
    members: np.ndarray
    gained: np.ndarray


def proposed(ones: Any, n_roles: int | None = None) -> Proposal:
    """Roles for a list, as many as pay or as are asked for."""
    n, d = ones.shape
    C = candidates(ones)
    x = ones.astype(np.float32)
    size = C.sum(axis=1)
    T = np.ascontiguousarray(C.T, dtype=np.float32)
    overlap = x @ T  # (n, c): how much of each candidate each user has
    may = overlap == size[None, :]
    left = ones.toarray()
    fresh = np.where(may, overlap, 0.0)  # grants that each would explain
    gain, saved = fresh.sum(axis=0), saving(fresh)
    roles, members, gained = [], [], []
    alive = True
    for _ in range(ROUNDS if n_roles is None else n_roles):
        if alive:
            net = saved - size - 1
            pays = bool(net.max() > 0)
            best = int((net if pays or n_roles is None else gain).argmax())
            alive = pays or (n_roles is not None and gain[best] > 0)
        if alive:
            rows = np.flatnonzero(fresh[:, best] >= (2 if pays else 1))
            before, cells = fresh[rows], np.ix_(rows, np.flatnonzero(C[best]))
            gained.append(int(before[:, best].sum()))
            after = before - np.where(may[rows], left[cells].astype(np.float32) @ T[cells[1][0]], 0.0)
            left[cells] = False
            fresh[rows] = after
            gain += after.sum(axis=0) - before.sum(axis=0)
            saved += saving(after) - saving(before)
            roles.append(C[best])
            members.append(np.bincount(rows, minlength=n) > 0)
    k = len(roles)
    return Proposal(
        np.array(roles, bool).reshape(k, d), np.array(members, bool).reshape(k, n).T, np.array(gained, np.int64)
    )


def saving(fresh: np.ndarray) -> np.ndarray:
    """What giving each candidate saves: the grants it explains less one for each member, where that is worth it."""
    return np.asarray(np.maximum(fresh - 1.0, 0.0).sum(axis=0, dtype=np.float64))


def candidates(ones: Any) -> np.ndarray:
    """Sets of permissions, those first that explain most if everybody has them who can."""
    x = ones.astype(np.float32)
    share = (x.T @ x).toarray()
    share /= np.maximum(np.diag(share).copy(), 1.0)[:, None]
    rows, count = np.unique(np.packbits(ones.toarray(), axis=1), axis=0, return_counts=True)
    own = rows[np.argsort(-count, kind="stable")[:MOST]]
    every = np.unique(np.vstack([own, *(np.packbits(share >= least, axis=1) for least in SHARES)]), axis=0)
    worth = np.zeros(len(every))
    for first in range(0, len(every), CHUNK):
        some = np.unpackbits(every[first : first + CHUNK], axis=1, count=ones.shape[1])
        size = some.sum(axis=1, dtype=np.int64)
        worth[first : first + CHUNK] = ((x @ some.T.astype(np.float32)) == size[None, :]).sum(axis=0) * size
    best = np.argsort(-worth, kind="stable")[:MOST]
    return np.unpackbits(every[best[worth[best] > 0]], axis=1, count=ones.shape[1]).astype(bool)


def stability(ones: Any, roles: np.ndarray, n_roles: int | None, seed: int) -> np.ndarray:
    """How surely each role comes back from some of the users: its mean overlap with the most like it."""
    rng, total = np.random.default_rng(seed), np.zeros(len(roles))
    u = roles.astype(np.float32)
    for _ in range(RESAMPLES if len(roles) else 0):
        rows = np.sort(rng.permutation(ones.shape[0])[: max(1, round(KEPT * ones.shape[0]))])
        v = proposed(sp.csr_array(ones[rows]), n_roles).roles.astype(np.float32)
        both = u @ v.T
        either = u.sum(axis=1)[:, None] + v.sum(axis=1)[None, :] - both
        total += (both / np.maximum(either, 1)).max(axis=1, initial=0.0)
    return total / RESAMPLES
