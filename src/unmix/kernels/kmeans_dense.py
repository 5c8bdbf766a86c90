"""Nearest centres of dense rows, exact for float64 arithmetic although the bulk of the work is single precision.

Scores t_k = ½‖u_k − s‖² − ⟨x − s, u_k − s⟩ order the centres as their distances do. A float32 matrix product gives
them within e_k = a_k ‖x − s‖ + b_k (a bound, not an estimate), so a centre is out when another's t + e is below its
t − e. Nearly always one centre is left; where more are, their distances decide, summed in float64. So labels do not
depend on how rows were cut into blocks, nor on which rows the triangle inequality let us skip.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import FUSED, SUMS, inlined, kernel

CHUNK = 512  # rows per matrix product: its scores stay in the cache
SMALL = 1_000_000  # multiplications in a product that BLAS does without packing, if rows of both factors are contiguous
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


@kernel()
def suspects(x, u, labels, upper, lower, path, drift, eps):
    """Rows whose nearest centre may have changed since their bounds were made; rounding is on the safe side."""
    rows = np.empty(labels.size, np.int64)
    count = 0
    slack = eps * (x.shape[1] + 8)
    for i in range(labels.size):
        k = labels[i]
        beyond = lower[i] * (1 - 2 * slack) - drift[k] * (1 + slack) - path[k] * slack
        if upper[i] + path[k] < beyond or (beyond > 0 and squared_distance(x, i, u, k) < beyond * beyond):
            continue
        rows[count] = i
        count += 1
    return rows[:count]


@inlined(SUMS)
def single(x, i, shift, scale, out, r):
    """out_r ← (x_i − shift)·scale in float32; returns its squared length."""
    length = 0.0
    for j in range(x.shape[1]):
        v = np.float32((x[i, j] - shift[j]) * scale)
        out[r, j] = v
        length += np.float64(v) * np.float64(v)
    return length


@inlined(FUSED)
def two_lowest(products, half, a, norm, best, second, label):
    """Per column, over k: the lowest two of half_k − a_k·norm − products_k and where the lowest is."""
    for r in range(norm.size):
        best[r] = np.inf
        second[r] = np.inf
        label[r] = 0
    for k in range(half.size):
        for r in range(norm.size):
            t = (half[k] - a[k] * norm[r]) - products[k, r]
            second[r] = min(second[r], max(t, best[r]))
            label[r] = k if t < best[r] else label[r]
            best[r] = min(best[r], t)


@inlined()
def decide(x, i, u, products, r, half, a, norm, bar):
    """Where scores are too close: the nearest of the centres that reach the bar, by distance; bounds for all others.

    Returns the centre, the next distance squared, and the lowest score of those that do not reach the bar.
    """
    first, second, beyond, nearest = np.inf, np.inf, np.inf, 0
    for k in range(half.size):
        t = (half[k] - a[k] * norm[r]) - products[k, r]
        if t > bar:
            beyond = min(beyond, np.float64(t))
            continue
        distance = squared_distance(x, i, u, k)
        if distance < first:
            first, second, nearest = distance, first, k
        elif distance < second:
            second = distance
    return nearest, second, beyond


@kernel()
def nearest(x, rows, u, shift, scale, drift, labels, lower):
    """Sets, for these rows, the label and a lower bound (plus drift) on the distance to every other centre."""
    if rows.size == 0:
        return
    n_centers, d = u.shape
    centers = np.empty((n_centers, d), np.float32)
    half = np.empty(n_centers, np.float32)  # ½‖u_k − s‖² − b_k
    a = np.empty(n_centers, np.float32)
    b = np.empty(n_centers, np.float32)
    for k in range(n_centers):
        length = single(u, k, shift, scale, centers, k)
        a[k] = (d + 8) * UNIT * np.sqrt(length)
        b[k] = 4 * UNIT * length + (d + 8) * TINY
        half[k] = 0.5 * length - b[k]

    chunk = min(256, SMALL // (n_centers * d) // 64 * 64)
    small = chunk >= 128
    if not small:
        chunk = CHUNK
    width = min(chunk, rows.size)
    some = np.empty((width, d), np.float32)
    flipped = np.empty(d * width if small else 0, np.float32)
    square, rest = np.empty(width), np.empty(width)
    unscale = 1.0 / np.float64(scale) ** 2
    norm, best, second = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    label = np.empty(width, np.int32)
    scores = np.empty(n_centers * width, np.float32)
    for start in range(0, rows.size, chunk):
        m = min(chunk, rows.size - start)
        for r in range(m):
            square[r] = single(x, rows[start + r], shift, scale, some, r)
            norm[r] = np.sqrt(square[r])
        products = scores[: n_centers * m].reshape(n_centers, m)
        if small:
            columns = flipped[: d * m].reshape(d, m)
            for j in range(d):
                for r in range(m):
                    columns[j, r] = some[r, j]
            np.dot(centers, columns, products)
        else:
            np.dot(centers, some[:m].T, products)
        two_lowest(products, half, a, norm[:m], best, second, label)
        for r in range(m):
            rest[r] = np.sqrt(max(0.0, square[r] * (1 - 4 * UNIT) + 2 * np.float64(second[r])) * unscale)
        for r in range(m):
            i, k = rows[start + r], label[r]
            bar = best[r] + 2 * (a[k] * norm[r] + b[k])  # the most that the best score may be
            if not second[r] > bar:  # a near tie, or not finite
                k, distance, score = decide(x, i, u, products, r, half, a, norm, bar)
                rest[r] = np.sqrt(min(distance, max(0.0, square[r] * (1 - 4 * UNIT) + 2 * score) * unscale))
            labels[i] = k
            lower[i] = rest[r] + drift[k]


@kernel(SUMS)
def sums(x, u, labels, w, path):
    """Per centre Σw, Σw x, Σw‖x − u‖²; per row the distance to its centre, less the centre's path."""
    n_centers, d = u.shape
    N, A, V = np.zeros(n_centers), np.zeros((n_centers, d)), np.zeros(n_centers)
    upper = np.empty(labels.size)
    for i in range(labels.size):
        k = labels[i]
        weight = w[i] if w.size else 1.0
        square = 0.0
        for j in range(d):
            e = np.float64(x[i, j]) - np.float64(u[k, j])
            square += e * e
            A[k, j] += weight * x[i, j]
        N[k] += weight
        V[k] += weight * square
        upper[i] = np.sqrt(square) - path[k]
    return N, A, V, upper
