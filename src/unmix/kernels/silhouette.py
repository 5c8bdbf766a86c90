"""Sums of Euclidean distances from rows to clusters, S_ik = Σ_{j in k} w_j ‖x_i − y_j‖.

Sixteen rows i lie side by side in registers while the rows of a cluster go by, two or four at a time: differences are
squared and summed column by column in float64, so nothing cancels, and one vector root ends them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from unmix.kernels import inlined, kernel
from unmix.kernels.lanes import _vector, aligned, fma, load, minus, splat, splat_of, store, total
from unmix.kernels.tile import registers

MANY_REGISTERS = registers()[0] >= 32  # sums of four rows in sixteen lanes are sixteen of AVX2's, which has no more
TILE = 4  # panels that meet all panels of a cluster before the next do


@intrinsic
def root(_context: Any, a: Any) -> Any:
    """√a."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = _vector(a.dtype, a.width)
        name = f"llvm.sqrt.v{a.width}f{a.dtype.bitwidth}"
        return builder.call(
            cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name), args
        )

    return a(a), code


@inlined()
def one(columns, p, y, i, d, w, s):
    """S + w_i ‖x − y_i‖."""
    t = splat(0.0)
    for j in range(d):
        e = minus(load(columns, p + 16 * j), splat_of(y, i * d + j))
        t = fma(e, e, t)
    return fma(splat_of(w, i), root(t), s)


@inlined()
def two(columns, p, y, i, d, w, s):
    """S + Σ w_j ‖x − y_j‖ over j = i, i + 1."""
    t0, t1, q = splat(0.0), splat(0.0), i * d
    for j in range(d):
        x = load(columns, p + 16 * j)
        e0, e1 = minus(x, splat_of(y, q + j)), minus(x, splat_of(y, q + d + j))
        t0, t1 = fma(e0, e0, t0), fma(e1, e1, t1)
    s = fma(splat_of(w, i), root(t0), s)
    return fma(splat_of(w, i + 1), root(t1), s)


@inlined()
def four(columns, p, y, i, d, w, s):
    """S + Σ w_j ‖x − y_j‖ over j = i … i + 3."""
    t0, t1, t2, t3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    q = i * d
    for j in range(d):
        x = load(columns, p + 16 * j)
        e0, e1 = minus(x, splat_of(y, q + j)), minus(x, splat_of(y, q + d + j))
        e2, e3 = minus(x, splat_of(y, q + 2 * d + j)), minus(x, splat_of(y, q + 3 * d + j))
        t0, t1, t2, t3 = fma(e0, e0, t0), fma(e1, e1, t1), fma(e2, e2, t2), fma(e3, e3, t3)
    s = fma(splat_of(w, i), root(t0), s)
    s = fma(splat_of(w, i + 1), root(t1), s)
    s = fma(splat_of(w, i + 2), root(t2), s)
    return fma(splat_of(w, i + 3), root(t3), s)


@kernel()
def add_distances(columns, first, last, y, d, w, starts, sums):
    """Add to sums[panel, cluster, lane], for panels first … last, the distances to rows y, sorted by cluster.

    A panel is sixteen rows column by column: columns[panel, column, lane].
    """
    K = len(starts) - 1
    for p in range(first, last):
        for k in range(K):
            at, stop = (p * K + k) * 16, starts[k + 1]
            s = load(sums, at)
            i = starts[k]
            while MANY_REGISTERS and i + 4 <= stop:
                s = four(columns, p * 16 * d, y, i, d, w, s)
                i += 4
            while i + 2 <= stop:
                s = two(columns, p * 16 * d, y, i, d, w, s)
                i += 2
            while i < stop:
                s = one(columns, p * 16 * d, y, i, d, w, s)
                i += 1
            store(sums, at, s)


@inlined()
def two_both(columns, p, y, i, d, w, v, s, back, at):
    """As `two`; and back[at:] + v ‖x − y_j‖ for either of the two, lane by lane."""
    t0, t1, q = splat(0.0), splat(0.0), i * d
    for j in range(d):
        x = load(columns, p + 16 * j)
        e0, e1 = minus(x, splat_of(y, q + j)), minus(x, splat_of(y, q + d + j))
        t0, t1 = fma(e0, e0, t0), fma(e1, e1, t1)
    t0, t1 = root(t0), root(t1)
    store(back, at, fma(v, t0, load(back, at)))
    store(back, at + 16, fma(v, t1, load(back, at + 16)))
    s = fma(splat_of(w, i), t0, s)
    return fma(splat_of(w, i + 1), t1, s)


@inlined()
def four_both(columns, p, y, i, d, w, v, s, back, at):
    """As `four`; and back[at:] + v ‖x − y_j‖ for each of the four, lane by lane."""
    t0, t1, t2, t3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    q = i * d
    for j in range(d):
        x = load(columns, p + 16 * j)
        e0, e1 = minus(x, splat_of(y, q + j)), minus(x, splat_of(y, q + d + j))
        e2, e3 = minus(x, splat_of(y, q + 2 * d + j)), minus(x, splat_of(y, q + 3 * d + j))
        t0, t1, t2, t3 = fma(e0, e0, t0), fma(e1, e1, t1), fma(e2, e2, t2), fma(e3, e3, t3)
    t0, t1, t2, t3 = root(t0), root(t1), root(t2), root(t3)
    store(back, at, fma(v, t0, load(back, at)))
    store(back, at + 16, fma(v, t1, load(back, at + 16)))
    store(back, at + 32, fma(v, t2, load(back, at + 32)))
    store(back, at + 48, fma(v, t3, load(back, at + 48)))
    s = fma(splat_of(w, i), t0, s)
    s = fma(splat_of(w, i + 1), t1, s)
    s = fma(splat_of(w, i + 2), t2, s)
    return fma(splat_of(w, i + 3), t3, s)


@kernel()
def add_both(columns, y, d, w, starts, first, last, begin, end, sums):
    """Add to sums[panel, cluster, lane] the distances between panels first … last and begin … end, both ways.

    Clusters are whole panels, starts[k] the first of cluster k; `begin` is either `first` or not below `last`. Each
    distance is made once: what the panel's sixteen rows add to a row of the other side waits in lanes until all panels
    of their cluster have passed a TILE of such rows.
    """
    K = len(starts) - 1
    back = aligned(TILE * 16 * 16, np.float64)
    for m in range(K):
        for tile in range(max(begin, starts[m]), min(end, starts[m + 1]), TILE):
            stop = min(tile + TILE, end, starts[m + 1])
            for k in range(K):
                back[:] = 0.0
                for p in range(max(first, starts[k]), min(last, starts[k + 1], stop)):
                    at = (p * K + m) * 16
                    s, v = load(sums, at), load(w, p * 16)
                    if p >= tile:  # distances within a panel are made both ways
                        for i in range(p * 16, p * 16 + 16, 2):
                            s = two(columns, p * 16 * d, y, i, d, w, s)
                    for i in range(max(tile, p + 1) * 16, stop * 16, 4):
                        place = (i - tile * 16) * 16
                        if MANY_REGISTERS:
                            s = four_both(columns, p * 16 * d, y, i, d, w, v, s, back, place)
                        else:
                            s = two_both(columns, p * 16 * d, y, i, d, w, v, s, back, place)
                            s = two_both(columns, p * 16 * d, y, i + 2, d, w, v, s, back, place + 32)
                    store(sums, at, s)
                if max(first, starts[k]) < min(last, starts[k + 1], stop):
                    for i in range(tile * 16, stop * 16):
                        sums[((i // 16) * K + k) * 16 + i % 16] += total(load(back, (i - tile * 16) * 16))
