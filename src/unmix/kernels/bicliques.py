"""Maximal bicliques of a Boolean matrix: pairs (A, B) of users and permissions, each all that the other has in common.

R are the rows as packed bits (`bits.py`), C the columns. Close-by-One (Kuznetsov 1993) lists all of them, each once: B
grows by a permission j at a time, and what its users have in common must then hold nothing new before j. Where they are
too many, `paths` takes for a pair (u, p) the best of a chain: from all users of p on, always the permission of u that
keeps most of the weight within A × B.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel
from unmix.kernels.bits import lowest_bit


@inlined()
def has(B, i, j):
    """Whether cell j of row i is 1."""
    return (B[i, j >> 6] >> np.uint64(j & 63)) & np.uint64(1) != 0


@inlined()
def narrowed(A, t, C, j, out):
    """Those users of row t who have permission j; whether there are any."""
    some = np.uint64(0)
    for w in range(A.shape[1]):
        out[w] = A[t, w] & C[j, w]
        some |= out[w]
    return some != 0


@inlined()
def new_before(users, R, B, t, j, common):
    """Whether these users have a permission before j in common that row t of B does not hold."""
    top = j >> 6
    mask = (np.uint64(1) << np.uint64(j & 63)) - np.uint64(1)
    for w in range(top + 1):
        common[w] = ~B[t, w]
    common[top] &= mask
    work = 0
    for a in range(len(users)):
        left = users[a]
        while left:
            u = a * 64 + lowest_bit(left)
            left &= left - np.uint64(1)
            some = np.uint64(0)
            for w in range(top + 1):
                common[w] &= R[u, w]
                some |= common[w]
            work += top + 1
            if some == 0:
                return False, work
    return True, work


@inlined()
def close(users, R, B, t):
    """Set row t of B to what these users have in common."""
    for w in range(B.shape[1]):
        B[t, w] = ~np.uint64(0)
    work = 0
    for a in range(len(users)):
        left = users[a]
        while left:
            u = a * 64 + lowest_bit(left)
            left &= left - np.uint64(1)
            for w in range(B.shape[1]):
                B[t, w] &= R[u, w]
            work += B.shape[1]
    return work


@kernel()
def listed(R, C, limit, most):
    """All maximal bicliques with users and permissions: (A, B, whether these are all).

    No more than `limit` of them, and no more than `most` words are looked at.
    """
    n, d = R.shape[0], C.shape[0]
    A = np.zeros((limit, C.shape[1]), np.uint64)
    B = np.zeros((limit, R.shape[1]), np.uint64)
    after = np.zeros(limit, np.int64)
    users, common = np.zeros(C.shape[1], np.uint64), np.zeros(R.shape[1] + 1, np.uint64)
    for u in range(n):
        A[0, u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    work = close(A[0], R, B, 0)
    count, t = 1, 0
    while t < count:
        for j in range(after[t], d):
            work += A.shape[1]
            if has(B, t, j) or not narrowed(A, t, C, j, users):
                continue
            found, more = new_before(users, R, B, t, j, common)
            work += more
            if found:
                continue
            if count == limit or work > most:
                return A[:count], B[:count], False
            A[count] = users
            work += close(users, R, B, count)
            after[count] = j + 1
            count += 1
        t += 1
    return A[:count], B[:count], True


@inlined()
def best_next(left, many, members, size, value, W, R):
    """The place in `left` of the permission that keeps most of the weight, and that weight."""
    best, most = 0, -1.0
    for t in range(many):
        q, total = left[t], 0.0
        for i in range(size):
            v = members[i]
            if has(R, v, q):
                total += value[i] + W[v, q]
        if total > most:
            best, most = t, total
    return best, most


@inlined()
def keep(q, members, size, value, W, R):
    """Only the members who have permission q stay; how many there are."""
    kept = 0
    for i in range(size):
        v = members[i]
        if has(R, v, q):
            members[kept], value[kept] = v, value[i] + W[v, q]
            kept += 1
    return kept


@kernel()
def paths(users, permissions, W, R, C):
    """For each pair (u, p) the users of the biclique of most weight W on its chain, and that weight."""
    n, d = W.shape
    out = np.zeros((len(users), C.shape[1]), np.uint64)
    worth = np.zeros(len(users))
    members, value, left = np.empty(n, np.int64), np.empty(n), np.empty(d, np.int64)
    for s in range(len(users)):
        u, p, size, many, total = users[s], permissions[s], 0, 0, 0.0
        for v in range(n):
            if has(C, p, v):
                members[size], value[size] = v, W[v, p]
                total += value[size]
                size += 1
        for q in range(d):
            if q != p and has(R, u, q):
                left[many] = q
                many += 1
        worth[s] = -1.0
        while True:
            if total > worth[s]:
                worth[s] = total
                for w in range(out.shape[1]):
                    out[s, w] = 0
                for i in range(size):
                    out[s, members[i] >> 6] |= np.uint64(1) << np.uint64(members[i] & 63)
            if many == 0:
                break
            best, total = best_next(left, many, members, size, value, W, R)
            size = keep(left[best], members, size, value, W, R)
            many -= 1
            left[best] = left[many]
    return out, worth


@kernel()
def sizes(A, B, first, column):
    """How many of the pairs each biclique covers; those of user u are `column[first[u]:first[u + 1]]`."""
    out = np.zeros(len(A) + 1, np.int64)
    for k in range(len(A)):
        total = 0
        for a in range(A.shape[1]):
            left = A[k, a]
            while left:
                u = a * 64 + lowest_bit(left)
                left &= left - np.uint64(1)
                for t in range(first[u], first[u + 1]):
                    if has(B, k, column[t]):
                        total += 1
        out[k + 1] = total
    return out


@kernel()
def covered(A, B, first, column, pointer):
    """Which pairs each biclique covers, as CSR with these row pointers."""
    out = np.empty(pointer[-1], np.int32)
    for k in range(len(A)):
        at = pointer[k]
        for a in range(A.shape[1]):
            left = A[k, a]
            while left:
                u = a * 64 + lowest_bit(left)
                left &= left - np.uint64(1)
                for t in range(first[u], first[u + 1]):
                    if has(B, k, column[t]):
                        out[at] = t
                        at += 1
    return out


@inlined()
def count_cells(U, k, ones, i, times, by):
    """Add `by` to the count of every cell of row i that role k holds."""
    for w in range(U.shape[1]):
        left = U[k, w] & ones[i, w]
        while left:
            times[w * 64 + lowest_bit(left)] += by
            left &= left - np.uint64(1)


@inlined()
def needless(U, k, ones, i, times):
    """Whether every cell of row i that role k holds is held by another role, too."""
    for w in range(U.shape[1]):
        left = U[k, w] & ones[i, w]
        while left:
            if times[w * 64 + lowest_bit(left)] < 2:
                return False
            left &= left - np.uint64(1)
    return True


@kernel()
def assigned(ones, may, U, order):
    """The roles of each row (n, k): those within what it may have, less those that the others make needless.

    `order` is that in which roles are taken back.
    """
    n, K = len(ones), len(U)
    out = np.zeros((n, K), np.bool_)
    times = np.zeros(64 * U.shape[1], np.int64)
    for i in range(n):
        times[:] = 0
        for k in range(K):
            outside = np.uint64(0)
            for w in range(U.shape[1]):
                outside |= U[k, w] & ~may[i, w]
            if outside == 0:
                out[i, k] = True
                count_cells(U, k, ones, i, times, 1)
        for t in range(K):
            k = order[t]
            if out[i, k] and needless(U, k, ones, i, times):
                out[i, k] = False
                count_cells(U, k, ones, i, times, -1)
    return out
