"""Nearest centres of dense rows, exact for float64 arithmetic although the bulk of the work is single precision.

Scores t_k = ½‖u_k − s‖² − ⟨x − s, u_k − s⟩ order the centres as their distances do. In float32 they are within
e = a ‖x − s‖ + b (a bound, not an estimate), so a centre is out when another's score is lower by more than 2e. Nearly
always one centre is left; where more may be, distances decide, summed in float64. So labels do not depend on how rows
were cut into blocks, nor on which rows the triangle inequality let us skip.

Scores are made for tiles of rows and centres whose sums stay in registers while DEEP columns go by (`tile.py`); the
columns of PANEL rows stay in the first-level cache while all centres go by. ½‖u_k − s‖² is added last, where it costs
the least in rounding.

Rows are read sixteen columns at a time, of which the last sixteen need not all be there: whatever is kept for a row
(centres, sums, rows in float32) has D columns, d rounded up to a multiple of sixteen, and zeros at the end.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, inlined, kernel
from unmix.kernels.lanes import (
    aligned,
    fetch,
    fma,
    higher,
    load,
    load_part,
    lower,
    minus,
    narrow,
    plus,
    splat,
    splat_of,
    store,
    times,
    total,
    transpose,
    where_lower,
    wide,
)
from unmix.kernels.tile import NUMBERS, VALUES, accumulate

PANEL = 64  # rows: four times sixteen lanes
ROWS = 16 * VALUES  # in a tile
DEEP = 128
TILE = 1 << 18  # bytes of rows that stay in the second-level cache from one step to the next
LINE = 64  # bytes
TILE_ROWS = 2048  # at least, among which suspects are sought, so that they fill panels
UNIT = 2.0**-24  # rounding unit of float32
FAR = 2.0**48  # of squared lengths of centres: beyond, ½‖u‖² − ⟨x, u⟩ has digits that ‖x − u‖² has not
SMALLEST_NORMAL = 2.0**-126  # of float32: what underflow may cost


# Rows are passed as (flat array, place of the row): a view of a row costs as much as a row of 16 cells.


@inlined()
def squared_distance(x, p, d, u, q, D):
    """‖x_p − u_q‖² in float64."""
    square, last = splat(0.0), D - 16
    for j in range(0, last, 16):
        e = minus(wide(load(x, p + j)), wide(load(u, q + j)))
        square = fma(e, e, square)
    e = minus(wide(load_part(x, p + last, d - last)), wide(load(u, q + last)))
    return total(fma(e, e, square))


@inlined(SUMS)
def lowest_score(x, p, d, u, shift, n_centers, D):
    """The centre with the lowest ½‖u_k − s‖² − ⟨x_p − s, u_k − s⟩ in float64."""
    lowest, nearest = np.inf, 0
    for k in range(n_centers):
        t = 0.0
        for j in range(d):
            c = np.float64(u[k * D + j]) - np.float64(shift[j])
            t += c * (0.5 * c - (np.float64(x[p + j]) - np.float64(shift[j])))
        if t < lowest:
            lowest, nearest = t, k
    return nearest


@inlined()
def suspects(x, d, D, start, stop, u, labels, upper, lower, path, drift, moved, half, eps, rows, maybe, far, doubt):
    """Count, and list in `rows`, those whose nearest centre may have changed since their bounds were made.

    The distance to the own centre is computed where it can help: where, if the centre came `moved` nearer, it would
    (`doubt` 2, not beyond `far`). Rounding is on the safe side. Lists grow without branches, which are unpredictable.
    """
    slack = eps * (d + 8)
    shrink = 1 - 2 * slack
    for i in range(start, stop):
        k = np.uintp(labels[i])
        beyond = max(half[k], lower[i] * shrink - drift[k] * (1 + slack)) - path[k] * slack
        reach = upper[i] + path[k]
        open_ = not reach < beyond
        far[i - start] = beyond
        doubt[i - start] = open_ + (open_ & (beyond > 0) & (reach - 2 * moved[k] < beyond))
    count, n_maybe = 0, 0
    for r in range(stop - start):
        rows[count], maybe[n_maybe] = start + r, start + r
        count += doubt[r] == 1
        n_maybe += doubt[r] == 2
    for m in range(n_maybe):
        i = maybe[m]
        rows[count] = i
        count += not squared_distance(x, i * d, d, u, labels[i] * D, D) < far[i - start] ** 2
    return count


@inlined()
def single(x, p, d, shift, scale, D, out, r):
    """out_r ← (x_p − shift)·scale in float32."""
    q, by, last = r * D, splat(scale), D - 16
    for j in range(0, last, 16):
        store(out, q + j, narrow(times(minus(load(x, p + j), load(shift, j)), by)))
    store(out, q + last, narrow(times(minus(load_part(x, p + last, d - last), load(shift, last)), by)))


@inlined(SUMS)
def length(x, d):
    """‖x‖² in float64."""
    square = 0.0
    for j in range(d):
        square += np.float64(x[j]) * np.float64(x[j])
    return square


@inlined()
def columns_of(some, D, out):
    """Set out to PANEL rows column by column: out[PANEL·j + r] = some[D·r + j]."""
    for j in range(0, D, 16):
        for r in range(0, PANEL, 16):
            transpose(some, r * D + j, D, out, PANEL * j + r, PANEL)


@inlined()
def lengths(columns, d, out):
    """‖x_r‖² of PANEL rows, in float32."""
    a = b = c = e = splat(np.float32(0))
    for p in range(0, PANEL * d, PANEL):
        x, y, z, t = load(columns, p), load(columns, p + 16), load(columns, p + 32), load(columns, p + 48)
        a, b, c, e = fma(x, x, a), fma(y, y, b), fma(z, z, c), fma(t, t, e)
    put(out, a, b, c, e)


@inlined()
def lowest_of(t, k, low, after, found):
    """The lowest two scores so far and where the lowest is, with those of centre k."""
    return lower(t, low), lower(after, higher(t, low)), where_lower(t, low, k, found)


@inlined()
def two_lowest(scores, half, n_centers, best, second, label):
    """Per row, over all centres: the lowest two scores and where the lowest is."""
    top, zero = splat(np.float32(np.inf)), splat(np.int32(0))
    a0, b0, c0, a1, b1, c1, a2, b2, c2, a3, b3, c3 = top, top, zero, top, top, zero, top, top, zero, top, top, zero
    for k in range(n_centers):
        at, this, h = PANEL * k, splat(np.int32(k)), splat_of(half, k)
        a0, b0, c0 = lowest_of(plus(load(scores, at), h), this, a0, b0, c0)
        a1, b1, c1 = lowest_of(plus(load(scores, at + 16), h), this, a1, b1, c1)
        a2, b2, c2 = lowest_of(plus(load(scores, at + 32), h), this, a2, b2, c2)
        a3, b3, c3 = lowest_of(plus(load(scores, at + 48), h), this, a3, b3, c3)
    put(best, a0, a1, a2, a3)
    put(second, b0, b1, b2, b3)
    put(label, c0, c1, c2, c3)


@inlined()
def put(out, t0, t1, t2, t3):
    """Write 64 numbers."""
    store(out, 0, t0)
    store(out, 16, t1)
    store(out, 32, t2)
    store(out, 48, t3)


@inlined()
def bounds(square, best, second, a, b, exact, unscale, bar, rest):
    """Per row an upper bound on the lowest score, and a lower bound on the distance of a centre with a higher one.

    2e is the bar less the lowest score; ‖x − u‖² = ‖x‖² + 2t.
    """
    for r in range(PANEL):
        error = 2 * (a * np.sqrt(np.float64(square[r])) + b)
        bar[r] = best[r] + error
        rest[r] = np.sqrt(max(0.0, square[r] * exact + 2 * np.float64(second[r]) - error) * unscale)


@inlined()
def decide(x, p, d, u, shift, n_centers, D, scores, half, r, bar, far):
    """Where scores are too close: the nearest of the centres that reach the bar, and the next distance squared.

    Where `far` is less than the least of these, they are all the same to rounding: scores in float64 decide.
    """
    first, second, nearest = np.inf, np.inf, 0
    for k in range(n_centers):
        if not scores[PANEL * k + r] + half[k] > bar:
            distance = squared_distance(x, p, d, u, k * D, D)
            if distance < first:
                first, second, nearest = distance, first, k
            elif distance < second:
                second = distance
    return (nearest, second) if first <= far else (lowest_score(x, p, d, u, shift, n_centers, D), 0.0)


@inlined()
def padded(a, n, d, D):
    """n rows of d columns as rows of D columns."""
    if d == D:
        return a
    out = aligned(n * D, a.dtype)
    for i in range(n):
        for j in range(d):
            out[i * D + j] = a[i * d + j]
    return out


@inlined()
def centres(u, n_centers, d, D, shift, scale, some, away, half):
    """Set `away` to −(u − shift)·scale, NUMBERS by NUMBERS, and half to ½‖u_k − s‖²; return the greatest length."""
    longest = 0.0
    for first in range(0, n_centers, NUMBERS):
        for k in range(first, min(first + NUMBERS, n_centers)):
            r = k - first
            single(u, k * D, d, shift, scale, D, some, r)
            square = length(some[r * D : r * D + d], d)
            half[k] = 0.5 * square
            longest = max(longest, np.sqrt(square))
        for j in range(d):
            for r in range(min(NUMBERS, n_centers - first)):
                away[first * d + NUMBERS * j + r] = -some[r * D + j]
    return longest


@inlined()
def add(A, q, weight, x, u, square):
    """Add weight·x to sixteen columns of A; return the squares of x − u with those before."""
    store(A, q, fma(weight, x, load(A, q)))
    e = minus(x, wide(load(u, q)))
    return fma(e, e, square)


@inlined()
def sums(x, d, start, stop, u, D, labels, w, path, N, A, V, upper):
    """Add to each centre Σw, Σw x, Σw‖x − u‖²; per row the distance to its centre, less the centre's path."""
    last = D - 16
    for i in range(start, stop):
        k = labels[i]
        weight = w[i] if w.size else 1.0
        p, q, by, squares = i * d, k * D, splat(weight), splat(0.0)
        for j in range(0, last, 16):
            squares = add(A, q + j, by, wide(load(x, p + j)), u, squares)
        square = total(add(A, q + last, by, wide(load_part(x, p + last, d - last)), u, squares))
        N[k] += weight
        V[k] += weight * square
        upper[i] = np.sqrt(square) - path[k]


@kernel()
def lloyd(x, w, u, shift, scale, path, drift, moved, between, eps, known, labels, upper, lower):
    """Per centre Σw, Σw x, Σw‖x − u‖²; sets labels and bounds, which where `known` are those of an earlier pass.

    upper: the distance to the own centre, less its path; lower: a bound on that to every other, plus drift.
    """
    (n, d), K = x.shape, len(u)
    D, packed = -(-d // 16) * 16, -(-K // NUMBERS) * NUMBERS
    x, u, shift = x.reshape(n * d), padded(u.reshape(K * d), K, d, D), padded(shift, 1, d, D)
    N, A, V = np.zeros(K), aligned(K * D, np.float64), np.zeros(K)
    some, away, half = aligned(PANEL * D, np.float32), aligned(packed * d, np.float32), aligned(packed, np.float32)
    size = centres(u, K, d, D, shift, scale, some, away, half)
    a, b = (d + 8) * UNIT * size, 4 * UNIT * size**2 + (d + 8) * SMALLEST_NORMAL
    if size > 1e19:  # ½‖u‖² is beyond float32: distances decide
        b = np.inf
    fitting, line = TILE // (d * x.itemsize), LINE // x.itemsize
    tile = max(TILE_ROWS, fitting)
    columns, scores = aligned(PANEL * D, np.float32), aligned(PANEL * packed, np.float32)
    best, second, square = aligned(PANEL, np.float32), aligned(PANEL, np.float32), aligned(PANEL, np.float32)
    found, bar, rest = np.empty(PANEL, np.int32), np.empty(PANEL), np.empty(PANEL)
    rows, maybe = np.empty(tile + 1, np.int64), np.empty(tile + 1, np.int64)
    far, doubt = np.empty(tile), np.empty(tile, np.uint8)
    exact, unscale = 1 - (d + 8) * UNIT, 1.0 / np.float64(scale) ** 2
    for start in range(0, n, tile):
        stop = min(start + tile, n)
        if known:
            count = suspects(
                x, d, D, start, stop, u, labels, upper, lower, path, drift, moved, between, eps, rows, maybe, far, doubt
            )
        else:
            count = stop - start
            for r in range(count):
                rows[r] = start + r
        ahead, share = stop * d, 0  # with much work to do, the next rows are prefetched, if they stay cached that long
        if fitting >= TILE_ROWS and 4 * count > stop - start:
            share = -(-(min(stop + tile, n) - stop) * d // (-(-count // PANEL) * (packed // NUMBERS)))
        for top in range(0, count, PANEL):
            m = min(PANEL, count - top)
            for r in range(m):
                single(x, rows[top + r] * d, d, shift, scale, D, some, r)
            columns_of(some, D, columns)
            lengths(columns, d, square)
            for j in range(0, d, DEEP):
                for k in range(0, packed, NUMBERS):
                    for t in range(0, PANEL, ROWS):
                        p, q, at = PANEL * j + t, k * d + NUMBERS * j, PANEL * k + t
                        accumulate(columns, p, PANEL, away, q, NUMBERS, min(DEEP, d - j), scores, at, PANEL, j)
                    for p in range(ahead, ahead + share, line):
                        fetch(x, p)
                    ahead += share
            two_lowest(scores, half, K, best, second, found)
            bounds(square, best, second, a, b, exact, unscale, bar, rest)
            for r in range(m):
                i, k = rows[top + r], found[r]
                if not second[r] > bar[r]:  # a near tie, or not finite
                    k, near = decide(x, i * d, d, u, shift, K, D, scores, half, r, bar[r], FAR * size**2 * unscale)
                    rest[r] = np.sqrt(min(near, max(0.0, square[r] * exact + best[r] + bar[r]) * unscale))
                labels[i] = k
                lower[i] = rest[r] + drift[k]
        sums(x, d, start, stop, u, D, labels, w, path, N, A, V, upper)
    return N, A.reshape(K, D) if d == D else A.reshape(K, D)[:, :d].copy(), V
