"""Nearest centres of dense rows, exact for float64 arithmetic although the bulk of the work is single precision.

Scores t_k = ½‖u_k − s‖² − ⟨x − s, u_k − s⟩ order the centres as their distances do. In float32 they are within
e = a ‖x − s‖ + b (a bound, not an estimate), so a centre is out when another's score is lower by more than 2e. Nearly
always one centre is left; where more may be, distances decide, summed in float64. So labels do not depend on how rows
were cut into blocks, nor on which rows the triangle inequality let us skip.

Scores are made for PANEL rows and CENTRES centres at a time, whose sums stay in registers while DEEP columns go by,
which stay in the first-level cache while all centres go by.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, inlined, kernel
from unmix.kernels.lanes import aligned, fma, higher, load, lower, splat, splat_of, store, transpose, where_lower

PANEL = 64  # rows: four times sixteen lanes
CENTRES = 4
DEEP = 128
TILE = 1 << 18  # bytes of rows that stay in the second-level cache from one step to the next
LEAST = 2048  # rows among which suspects are sought, so that they fill panels
UNIT = 2.0**-24  # rounding unit of float32
TINY = 2.0**-126  # smallest normal float32: what underflow may cost


# Rows are passed as (array, index): a view of a row costs as much as a row of 16 cells.


@inlined(SUMS)
def squared_distance(x, i, u, k):
    """‖x_i − u_k‖² in float64."""
    total = 0.0
    for j in range(x.shape[1]):
        e = np.float64(x[i, j]) - np.float64(u[k, j])
        total += e * e
    return total


@inlined()
def suspects(x, start, stop, u, labels, upper, lower, path, drift, moved, half, eps, rows, maybe, far):
    """Count, and list in `rows`, those whose nearest centre may have changed since their bounds were made.

    The distance to the own centre is computed where it can help: where, if the centre came `moved` nearer, it would
    (`maybe`, not beyond `far`). Rounding is on the safe side. Lists grow without branches, which nobody could predict.
    """
    count, n_maybe = 0, 0
    slack = eps * (x.shape[1] + 8)
    for i in range(start, stop):
        k = labels[i]
        beyond = max(half[k], lower[i] * (1 - 2 * slack) - drift[k] * (1 + slack)) - path[k] * slack
        reach = upper[i] + path[k]
        open_ = not reach < beyond
        helps = (beyond > 0) & (reach - 2 * moved[k] < beyond)
        rows[count] = i
        count += open_ & (not helps)
        maybe[n_maybe] = i
        far[n_maybe] = beyond
        n_maybe += open_ & helps
    for m in range(n_maybe):
        i = maybe[m]
        rows[count] = i
        count += not squared_distance(x, i, u, labels[i]) < far[m] * far[m]
    return count


@inlined(SUMS)
def single(x, i, shift, scale, out, r):
    """out_r ← (x_i − shift)·scale in float32."""
    for j in range(x.shape[1]):
        out[r, j] = (x[i, j] - shift[j]) * scale


@inlined(SUMS)
def length(x, r):
    """‖x_r‖² in float64."""
    total = 0.0
    for j in range(x.shape[1]):
        total += np.float64(x[r, j]) * np.float64(x[r, j])
    return total


@inlined()
def columns_of(some, out):
    """Set out to PANEL rows column by column: out[PANEL·j + r] = some[r, j]."""
    d = some.shape[1]
    flat = some.reshape(PANEL * d)
    whole = d - d % 16
    for j in range(0, whole, 16):
        for r in range(0, PANEL, 16):
            transpose(flat, r * d + j, d, out, PANEL * j + r, PANEL)
    for j in range(whole, d):
        for r in range(PANEL):
            out[PANEL * j + r] = some[r, j]


@inlined(SUMS)
def lengths(columns, d, out):
    """‖x_r‖² of PANEL rows, in float32."""
    for r in range(PANEL):
        out[r] = 0
    for j in range(d):
        for r in range(PANEL):
            out[r] += columns[PANEL * j + r] * columns[PANEL * j + r]


@inlined()
def begin(scores, k):
    """Four times sixteen scores of centre k so far."""
    at = PANEL * k
    return load(scores, at), load(scores, at + 16), load(scores, at + 32), load(scores, at + 48)


@inlined()
def keep(scores, k, t0, t1, t2, t3):
    """Keep the scores of centre k."""
    at = PANEL * k
    store(scores, at, t0)
    store(scores, at + 16, t1)
    store(scores, at + 32, t2)
    store(scores, at + 48, t3)


@inlined()
def four(columns, minus, d, start, stop, k, scores):
    """Add columns start ≤ j < stop to the scores of centres k to k + 3, of which `minus` holds −u, four by four."""
    a0, a1, a2, a3 = begin(scores, k)
    b0, b1, b2, b3 = begin(scores, k + 1)
    c0, c1, c2, c3 = begin(scores, k + 2)
    e0, e1, e2, e3 = begin(scores, k + 3)
    for j in range(start, stop):
        p, q = PANEL * j, k * d + CENTRES * j
        x0, x1, x2, x3 = load(columns, p), load(columns, p + 16), load(columns, p + 32), load(columns, p + 48)
        u = splat_of(minus, q)
        a0, a1, a2, a3 = fma(u, x0, a0), fma(u, x1, a1), fma(u, x2, a2), fma(u, x3, a3)
        u = splat_of(minus, q + 1)
        b0, b1, b2, b3 = fma(u, x0, b0), fma(u, x1, b1), fma(u, x2, b2), fma(u, x3, b3)
        u = splat_of(minus, q + 2)
        c0, c1, c2, c3 = fma(u, x0, c0), fma(u, x1, c1), fma(u, x2, c2), fma(u, x3, c3)
        u = splat_of(minus, q + 3)
        e0, e1, e2, e3 = fma(u, x0, e0), fma(u, x1, e1), fma(u, x2, e2), fma(u, x3, e3)
    keep(scores, k, a0, a1, a2, a3)
    keep(scores, k + 1, b0, b1, b2, b3)
    keep(scores, k + 2, c0, c1, c2, c3)
    keep(scores, k + 3, e0, e1, e2, e3)


@inlined()
def two_lowest(scores, n_centers, at, best, second, label):
    """Of sixteen rows, over all centres: the lowest two scores and where the lowest is."""
    low, after, found = splat(np.float32(np.inf)), splat(np.float32(np.inf)), splat(np.int32(0))
    for k in range(n_centers):
        t = load(scores, PANEL * k + at)
        after = lower(after, higher(t, low))
        found = where_lower(t, low, splat(np.int32(k)), found)
        low = lower(t, low)
    store(best, at, low)
    store(second, at, after)
    store(label, at, found)


@inlined()
def bounds(square, best, second, a, b, exact, unscale, bar, rest):
    """Per row the most that the lowest score may be, and the least squared distance of a centre with a higher one.

    2e is the bar less the lowest score; ‖x − u‖² = ‖x‖² + 2t.
    """
    for r in range(PANEL):
        error = 2 * (a * np.sqrt(np.float64(square[r])) + b)
        bar[r] = best[r] + error
        rest[r] = max(0.0, square[r] * exact + 2 * np.float64(second[r]) - error) * unscale


@inlined()
def decide(x, i, u, scores, r, bar):
    """Where scores are too close: the nearest of the centres that reach the bar, and the next distance squared."""
    first, second, nearest = np.inf, np.inf, 0
    for k in range(u.shape[0]):
        if not scores[PANEL * k + r] > bar:
            distance = squared_distance(x, i, u, k)
            if distance < first:
                first, second, nearest = distance, first, k
            elif distance < second:
                second = distance
    return nearest, second


@inlined()
def centres(u, shift, scale, some, minus, half):
    """Set minus to −(u − shift)·scale, four by four, and half to ½‖u_k − s‖²; return the greatest length."""
    K, d = u.shape
    far = 0.0
    for k in range(K):
        single(u, k, shift, scale, some, 0)
        square = length(some, 0)
        half[k] = 0.5 * square
        far = max(far, np.sqrt(square))
        for j in range(d):
            minus[(k - k % CENTRES) * d + CENTRES * j + k % CENTRES] = -some[0, j]
    return far


@inlined(SUMS)
def sums(x, start, stop, u, labels, w, path, N, A, V, upper):
    """Add to each centre Σw, Σw x, Σw‖x − u‖²; per row the distance to its centre, less the centre's path."""
    for i in range(start, stop):
        k = labels[i]
        weight = w[i] if w.size else 1.0
        square = 0.0
        for j in range(x.shape[1]):
            e = np.float64(x[i, j]) - np.float64(u[k, j])
            square += e * e
            A[k, j] += weight * x[i, j]
        N[k] += weight
        V[k] += weight * square
        upper[i] = np.sqrt(square) - path[k]


@kernel()
def lloyd(x, w, u, shift, scale, path, drift, moved, between, eps, known, labels, upper, lower):
    """Per centre Σw, Σw x, Σw‖x − u‖²; sets labels and bounds, which where `known` are those of an earlier pass.

    upper: the distance to the own centre, less its path; lower: a bound on that to every other, plus drift.
    """
    n, d = x.shape
    K = u.shape[0]
    N, A, V = np.zeros(K), np.zeros((K, d)), np.zeros(K)
    padded = -(-K // CENTRES) * CENTRES
    some, minus, half = aligned(PANEL * d).reshape(PANEL, d), aligned(padded * d), aligned(padded)
    size = centres(u, shift, scale, some, minus, half)
    a, b = (d + 8) * UNIT * size, (0.5 * d + 8) * UNIT * size**2 + (d + 8) * TINY  # sums begin with ½‖u‖²
    if size > 1e19:  # ½‖u‖² is beyond float32: distances decide
        b = np.inf
    tile = max(LEAST, TILE // (d * x.itemsize))
    columns, scores = aligned(PANEL * d), aligned(PANEL * padded)
    best, second, square, found = aligned(PANEL), aligned(PANEL), aligned(PANEL), np.empty(PANEL, np.int32)
    bar, rest = np.empty(PANEL), np.empty(PANEL)
    rows, maybe, far = np.empty(tile + 1, np.int64), np.empty(tile + 1, np.int64), np.empty(tile + 1)
    exact, unscale = 1 - (d + 8) * UNIT, 1.0 / np.float64(scale) ** 2
    for start in range(0, n, tile):
        stop = min(start + tile, n)
        if known:
            count = suspects(
                x, start, stop, u, labels, upper, lower, path, drift, moved, between, eps, rows, maybe, far
            )
        else:
            count = stop - start
            for r in range(count):
                rows[r] = start + r
        for top in range(0, count, PANEL):
            m = min(PANEL, count - top)
            for r in range(m):
                single(x, rows[top + r], shift, scale, some, r)
            columns_of(some, columns)
            lengths(columns, d, square)
            for k in range(padded):
                t = splat_of(half, k)
                keep(scores, k, t, t, t, t)
            for j in range(0, d, DEEP):
                for k in range(0, padded, CENTRES):
                    four(columns, minus, d, j, min(j + DEEP, d), k, scores)
            for r in range(0, PANEL, 16):
                two_lowest(scores, K, r, best, second, found)
            bounds(square, best, second, a, b, exact, unscale, bar, rest)
            for r in range(m):
                i, k = rows[top + r], found[r]
                if not second[r] > bar[r]:  # a near tie, or not finite
                    k, near = decide(x, i, u, scores, r, bar[r])
                    rest[r] = min(near, max(0.0, square[r] * exact + best[r] + bar[r]) * unscale)
                labels[i] = k
                lower[i] = np.sqrt(rest[r]) + drift[k]
        sums(x, start, stop, u, labels, w, path, N, A, V, upper)
    return N, A, V
