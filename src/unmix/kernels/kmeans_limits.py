"""The cheapest assignment of rows to clusters whose sizes have limits: a minimum-cost flow.

Every row starts in its cheapest cluster. Where a cluster has too many rows or too few, one row at a time goes along the
cheapest chain of clusters from where there are too many to where there are too few (successive shortest paths). Chains
lead over the clusters, which are few, not over the rows: from k to l it costs min {c_il − c_ik : row i in cluster k}.
One more node stands for all rows together: it takes a row from any cluster that may grow and gives one to any that may
shrink. So the assignment is the best there is, to rounding.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel

NOBODY = -1


@inlined()
def link(i, k, head, after, before):
    """Row i joins cluster k."""
    after[i], before[i] = head[k], NOBODY
    if head[k] != NOBODY:
        before[head[k]] = i
    head[k] = i


@inlined()
def unlink(i, k, head, after, before):
    """Row i leaves cluster k."""
    if before[i] != NOBODY:
        after[before[i]] = after[i]
    else:
        head[k] = after[i]
    if after[i] != NOBODY:
        before[after[i]] = before[i]


@inlined()
def offer(i, k, cost, move, mover):
    """Row i may be the cheapest to move from its cluster k."""
    for j in range(cost.shape[1]):
        extra = cost[i, j] - cost[i, k]
        if j != k and extra < move[k, j]:
            move[k, j], mover[k, j] = extra, i


@inlined()
def seek(i, k, cost, head, after, move, mover):
    """Find other rows for the moves from cluster k for which row i was the cheapest."""
    for j in range(cost.shape[1]):
        if mover[k, j] == i:
            move[k, j], mover[k, j] = np.inf, NOBODY
            r = head[k]
            while r != NOBODY:
                extra = cost[r, j] - cost[r, k]
                if extra < move[k, j]:
                    move[k, j], mover[k, j] = extra, r
                r = after[r]


@inlined()
def leads_to(v, u, came):
    """Whether the chain to u comes through v: then rounding alone would lead it in a circle."""
    while u != NOBODY and u != v:
        u = came[u]
    return u == v


@inlined()
def shortest(move, flow, excess, least, most, far, came):
    """The cheapest ways from clusters with rows to spare to all others, through the hub K or not."""
    hub = len(flow)
    for v in range(hub + 1):
        far[v], came[v] = 0.0 if excess[v] > 0 else np.inf, NOBODY
    for _ in range(hub + 1):
        changed = False
        for u in range(hub + 1):
            if far[u] == np.inf:
                continue
            for v in range(hub + 1):
                if u == v:
                    continue
                if u == hub:
                    step = 0.0 if flow[v] > least else np.inf
                elif v == hub:
                    step = 0.0 if flow[u] < most else np.inf
                else:
                    step = move[u, v]
                if far[u] + step < far[v] and not leads_to(v, u, came):
                    far[v], came[v], changed = far[u] + step, u, True
        if not changed:
            break


@kernel()
def assign(cost, least, most):
    """Labels that minimise Σ_i cost[i, label_i] with at least `least` and at most `most` rows in each cluster."""
    n, K = cost.shape
    labels, size = np.empty(n, np.int32), np.zeros(K, np.int64)
    head, after, before = np.full(K, NOBODY), np.empty(n, np.int64), np.empty(n, np.int64)
    move, mover = np.full((K, K), np.inf), np.full((K, K), NOBODY)
    for i in range(n):
        k = 0
        for j in range(K):
            if cost[i, j] < cost[i, k]:
                k = j
        labels[i] = k
        size[k] += 1
        link(i, k, head, after, before)
        offer(i, k, cost, move, mover)
    hub = K
    flow, excess = np.empty(K, np.int64), np.zeros(K + 1, np.int64)
    for k in range(K):
        flow[k] = min(max(size[k], least), most)
        excess[k] = size[k] - flow[k]
    excess[hub] = flow.sum() - n
    far, came = np.empty(K + 1), np.empty(K + 1, np.int64)
    while excess.max() > 0:
        shortest(move, flow, excess, least, most, far, came)
        end = NOBODY
        for v in range(K + 1):
            if excess[v] < 0 and (end == NOBODY or far[v] < far[end]):
                end = v
        v = end
        excess[end] += 1
        while came[v] != NOBODY:
            u = came[v]
            if u == hub:
                flow[v] -= 1
            elif v == hub:
                flow[u] += 1
            else:
                i = mover[u, v]
                labels[i] = v
                unlink(i, u, head, after, before)
                link(i, v, head, after, before)
                seek(i, u, cost, head, after, move, mover)
                offer(i, v, cost, move, mover)
            v = u
        excess[v] -= 1
    return labels
