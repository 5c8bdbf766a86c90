"""Nearest centres of dense rows, exact for float64 arithmetic although the bulk of the work is single precision.

Scores t_k = ½‖u_k − s‖² − ⟨x − s, u_k − s⟩ order the centres as their distances do. A float32 matrix product gives
them within e_k = a_k ‖x − s‖ + b_k (a bound, not an estimate), so a centre whose t_k − e_k is beaten by another's t + e is out.
Nearly always one centre is left; where more are, their distances decide, summed in float64. So labels do not
depend on how rows were cut into blocks, nor on which rows the triangle inequality let us skip.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CHUNK = 256  # rows per matrix product: its K × 256 scores stay in the cache
UNIT = 2.0**-24  # rounding unit of float32
TINY = 2.0**-126  # smallest normal float32: what underflow may cost
SUM = {"contract", "reassoc"}  # the order of a sum within one row may change, what enters it may not


@njit(cache=True, nogil=True, fastmath=SUM)
def squared_distance(x, u):
    """‖x − u‖² in float64."""
    total = 0.0
    for j in range(x.size):
        e = np.float64(x[j]) - np.float64(u[j])
        total += e * e
    return total


@njit(cache=True, nogil=True)
def suspects(x, u, labels, upper, lower, path, drift, eps):
    """Rows whose nearest centre may have changed since their bounds were made; rounding is on the safe side."""
    rows = np.empty(labels.size, np.int64)
    count = 0
    slack = eps * (x.shape[1] + 8)
    for i in range(labels.size):
        k = labels[i]
        beyond = lower[i] * (1 - 2 * slack) - drift[k] * (1 + slack) - path[k] * slack
        if upper[i] + path[k] < beyond or np.sqrt(squared_distance(x[i], u[k])) < beyond:
            continue
        rows[count] = i
        count += 1
    return rows[:count]


@njit(cache=True, nogil=True, fastmath=SUM)
def single(row, shift, scale, out):
    """out ← (row − shift)·scale in float32; returns its squared length."""
    length = 0.0
    for j in range(row.size):
        v = np.float32((row[j] - shift[j]) * scale)
        out[j] = v
        length += np.float64(v) * np.float64(v)
    return length


@njit(cache=True, nogil=True, fastmath={"contract"})
def two_lowest(products, half, a, norm, best, second, label):
    """Per column, over k: the lowest two of half_k − a_k·norm − products_k and where the lowest is."""
    for r in range(norm.size):
        best[r] = np.inf
        second[r] = np.inf
        label[r] = 0
    for k in range(half.size):
        row, half_k, a_k = products[k], half[k], a[k]
        for r in range(norm.size):
            t = (half_k - a_k * norm[r]) - row[r]
            second[r] = min(second[r], max(t, best[r]))
            label[r] = k if t < best[r] else label[r]
            best[r] = min(best[r], t)


@njit(cache=True, nogil=True)
def nearest(x, rows, u, shift, scale, drift, labels, lower):
    """Sets, for these rows, the label and a lower bound (plus drift) on the distance to every other centre."""
    n_centers, d = u.shape
    if rows.size == 0:
        return
    centers = np.empty((n_centers, d), np.float32)
    half = np.empty(n_centers, np.float32)  # ½‖u_k − s‖² − b_k
    a = np.empty(n_centers, np.float32)
    b = np.empty(n_centers, np.float32)
    for k in range(n_centers):
        square = single(u[k], shift, scale, centers[k])
        a[k] = (d + 8) * UNIT * np.sqrt(square)
        b[k] = 4 * UNIT * square + (d + 8) * TINY
        half[k] = 0.5 * square - b[k]

    some = np.empty((min(CHUNK, rows.size), d), np.float32)
    square = np.empty(len(some))
    norm = np.empty(len(some), np.float32)
    best, second = np.empty_like(norm), np.empty_like(norm)
    label = np.empty(len(some), np.int32)
    scores = np.empty(n_centers * len(some), np.float32)
    for start in range(0, rows.size, CHUNK):
        m = min(CHUNK, rows.size - start)
        for r in range(m):
            square[r] = single(x[rows[start + r]], shift, scale, some[r])
            norm[r] = np.sqrt(square[r])
        products = scores[: n_centers * m].reshape(n_centers, m)
        np.dot(centers, some[:m].T, products)
        two_lowest(products, half, a, norm[:m], best[:m], second[:m], label[:m])
        for r in range(m):
            i, k = rows[start + r], label[r]
            bar = best[r] + 2 * (a[k] * norm[r] + b[k])  # the most that the best score may be
            beyond = np.float64(second[r])
            exact = np.inf
            if not second[r] > bar:  # a near tie, or not finite: the distances of all that reach the bar decide
                beyond = np.inf
                first = np.inf
                k = 0
                for c in range(n_centers):
                    t = (half[c] - a[c] * norm[r]) - products[c, r]
                    if t > bar:
                        beyond = min(beyond, np.float64(t))
                        continue
                    distance = squared_distance(x[i], u[c])
                    if distance < first:
                        exact = first
                        first = distance
                        k = c
                    elif distance < exact:
                        exact = distance
            square_beyond = max(0.0, square[r] * (1 - 4 * UNIT) + 2 * beyond) / (scale * scale)
            labels[i] = k
            lower[i] = np.sqrt(min(square_beyond, exact)) + drift[k]


@njit(cache=True, nogil=True, fastmath=SUM)
def sums(x, u, labels, w, path):
    """Per centre Σw, Σw x, Σw‖x − u‖²; per row the distance to its centre, less the centre's path."""
    n_centers, d = u.shape
    N, A, V = np.zeros(n_centers), np.zeros((n_centers, d)), np.zeros(n_centers)
    upper = np.empty(labels.size)
    for i in range(labels.size):
        k = labels[i]
        row, center, total = x[i], u[k], A[k]
        weight = w[i] if w.size else 1.0
        square = 0.0
        for j in range(d):
            e = np.float64(row[j]) - np.float64(center[j])
            square += e * e
            total[j] += weight * row[j]
        N[k] += weight
        V[k] += weight * square
        upper[i] = np.sqrt(square) - path[k]
    return N, A, V, upper
