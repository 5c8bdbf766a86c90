"""k-medoids on a matrix of distances: rounds of FasterPAM, BUILD, Voronoi iteration; and euclidean distances.

Row j of the symmetric matrix is read as the distances of all rows to row j. A row o keeps its nearest medoid (`near`,
at `first`) and the next (`next`, at `second`). If j becomes a medoid and medoid i leaves, the loss changes by

    Σ_o w min(d_oj − first_o, 0)  +  Σ_{o: near_o = i} w (min(max(d_oj, first_o), second_o) − first_o)

The second sum is what the loss of i costs, kept for all i, plus Σ w min(max(d_oj, first_o) − second_o, 0): so only
rows with d_oj < second_o matter, and sixteen rows are compared at a time to find them.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from unmix.kernels import inlined, kernel
from unmix.kernels.lanes import WIDTH, fma, load, minus, narrow, plus, splat, splat_of, store, times


@intrinsic
def below(_context, a, b):
    """Bit i says whether lane i of a is below that of b."""

    def code(context, builder, signature, args):
        bits = builder.bitcast(builder.fcmp_ordered("<", *args), ir.IntType(a.width))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(a, b), code


@intrinsic
def lowest(_context, bits):
    """The place of the lowest bit that is set."""

    def code(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(bits), code


@intrinsic
def root(_context, a):
    """Square roots."""

    def code(context, builder, signature, args):
        kind = ir.FunctionType(args[0].type, [args[0].type])
        name = f"llvm.sqrt.v{a.width}f{a.dtype.bitwidth}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    return a(a), code


@inlined()
def two_nearest(D, n, medoids, o, near, next, first, second):
    """Find the two nearest medoids of row o."""
    a = b = np.inf
    p = q = 0
    for k in range(len(medoids)):
        d = D[medoids[k] * n + o]
        if d < a:
            b, q, a, p = a, p, d, k
        elif d < b:
            b, q = d, k
    near[o], next[o], first[o], second[o] = p, q, a, b


@inlined()
def add_change(d, a, b, w, i, change):
    """What a row changes in the loss: returned for the new medoid's coming, added for the leaving of its nearest."""
    change[i] += w * (max(d, a) - b)
    return w * min(d - a, 0.0)


@inlined()
def best_leaver(D, n, j, w, near, first, second, leaving, change):
    """The medoid whose place row j should take, and by how much the loss then changes."""
    for k in range(len(change)):
        change[k] = leaving[k]
    come, base, whole = 0.0, j * n, n - n % WIDTH
    for o in range(0, whole, WIDTH):
        bits = below(load(D, base + o), load(second, o))
        while bits:
            t = o + lowest(bits)
            bits &= bits - np.uint64(1)
            come += add_change(
                np.float64(D[base + t]), np.float64(first[t]), np.float64(second[t]), w[t], near[t], change
            )
    for t in range(whole, n):
        if D[base + t] < second[t]:
            come += add_change(
                np.float64(D[base + t]), np.float64(first[t]), np.float64(second[t]), w[t], near[t], change
            )
    best = 0
    for k in range(1, len(change)):
        if change[k] < change[best]:
            best = k
    return best, come + change[best]


@inlined()
def swap(D, n, medoids, i, j, near, next, first, second):
    """Row j takes the place of medoid i."""
    medoids[i] = j
    for o in range(n):
        d = D[j * n + o]
        if near[o] == i:
            if d < second[o]:
                first[o] = d
            else:
                two_nearest(D, n, medoids, o, near, next, first, second)
        elif d < first[o]:
            second[o], next[o], first[o], near[o] = first[o], near[o], d, i
        elif next[o] == i and d > second[o]:
            two_nearest(D, n, medoids, o, near, next, first, second)
        elif d < second[o]:
            second[o], next[o] = d, i


@inlined()
def loss_and_leaving(w, near, first, second, leaving):
    """The loss, and what the leaving of each medoid costs."""
    for k in range(len(leaving)):
        leaving[k] = 0.0
    loss = 0.0
    for o in range(len(w)):
        loss += w[o] * first[o]
        leaving[near[o]] += w[o] * (np.float64(second[o]) - np.float64(first[o]))
    return loss


@kernel()
def nearest_two(D, w, medoids, near, next, first, second):
    """Set the two nearest medoids of every row; the loss."""
    loss = 0.0
    for o in range(len(w)):
        two_nearest(D, len(w), medoids, o, near, next, first, second)
        loss += w[o] * first[o]
    return loss


@kernel()
def fasterpam(D, w, medoids, near, next, first, second, quiet):
    """One round over the rows, each of which is swapped in as soon as that helps (Schubert & Rousseeuw 2021).

    D is the matrix row after row, for at least two medoids; `quiet` counts the rows since the last swap, and after n of
    them nothing is left to do. Changes `medoids` and what belongs to them in place; returns the loss and `quiet`.
    """
    n, K = len(w), len(medoids)
    leaving, change = np.zeros(K), np.zeros(K)
    is_medoid = np.zeros(n, np.bool_)
    for k in range(K):
        is_medoid[medoids[k]] = True
    loss = loss_and_leaving(w, near, first, second, leaving)
    for j in range(n):
        quiet += 1
        if quiet > n:
            break
        if is_medoid[j]:
            continue
        i, gain = best_leaver(D, n, j, w, near, first, second, leaving, change)
        if gain < -1e-12 * abs(loss):
            before, gone = loss, medoids[i]
            swap(D, n, medoids, i, j, near, next, first, second)
            loss = loss_and_leaving(w, near, first, second, leaving)
            if loss < before:
                is_medoid[gone], is_medoid[j] = False, True
                quiet = 0
            else:  # the gain was rounding: the next medoids are so much farther than the nearest
                swap(D, n, medoids, i, gone, near, next, first, second)
                loss = loss_and_leaving(w, near, first, second, leaving)
    return loss, quiet


@kernel()
def build(D, w, K):
    """PAM's greedy start: each time the row that lowers the loss most.

    What a row would gain never rises, so rows are looked at again only while their last gain is the highest.
    """
    n = len(w)
    medoids, nearest, gain = np.empty(K, np.int64), np.empty(n), np.empty(n)
    best, least = 0, np.inf
    for j in range(n):
        total = 0.0
        for o in range(n):
            total += w[o] * D[j * n + o]
        if total < least:
            best, least = j, total
    medoids[0] = best
    for o in range(n):
        nearest[o] = D[best * n + o]
    gain[:] = np.inf
    for k in range(1, K):
        fresh = np.zeros(n, np.bool_)
        for i in range(k):
            gain[medoids[i]] = -1.0
        best = int(np.argmax(gain))
        while not fresh[best]:
            total = 0.0
            for o in range(n):
                total += w[o] * max(nearest[o] - D[best * n + o], 0.0)
            gain[best], fresh[best] = total, True
            best = int(np.argmax(gain))
        medoids[k] = best
        for o in range(n):
            nearest[o] = min(nearest[o], np.float64(D[best * n + o]))
    return medoids


@kernel()
def alternate(D, w, medoids):
    """Rows go to their nearest medoid, then each cluster takes its best row; the loss before, and what has changed."""
    n, K = len(w), len(medoids)
    label = np.empty(n, np.int64)
    loss, changed = 0.0, False
    for o in range(n):
        label[o] = 0
        for k in range(1, K):
            if D[medoids[k] * n + o] < D[medoids[label[o]] * n + o]:
                label[o] = k
        loss += w[o] * D[medoids[label[o]] * n + o]
    for k in range(K):
        members = np.flatnonzero(label == k)
        least = 0.0
        for i in members:
            least += w[i] * D[medoids[k] * n + i]
        for j in members:
            total = 0.0
            for i in members:
                total += w[i] * D[j * n + i]
            if total < least * (1 - 1e-12):
                least, medoids[k], changed = total, j, True
    return loss, changed


@inlined()
def apart(x, i, y, j, d):
    """‖x_i − y_j‖ of flat rows."""
    square = 0.0
    for c in range(d):
        square += (x[i * d + c] - y[j * d + c]) ** 2
    return np.sqrt(square)


@kernel()
def roots(products, x, own, y, squares, d, out, at):
    """‖x_i − y_j‖ from −2 x_iᵀy_j, ‖x_i‖² and ‖y_j‖², or where those cancel to 1e-8 from differences.

    All is flat; they go to the square matrix `out` from its cell (at, at) on.
    """
    m = len(squares)
    whole = m - m % WIDTH
    for i in range(len(own)):
        row = (at + i) * (at + m) + at
        for j in range(0, whole, WIDTH):
            size = plus(splat(own[i]), load(squares, j))
            square = plus(load(products, i * m + j), size)
            store(out, row + j, narrow(root(square)))
            bits = below(square, times(size, splat(1e-8)))
            while bits:
                t = j + lowest(bits)
                bits &= bits - np.uint64(1)
                out[row + t] = apart(x, i, y, t, d)
        for t in range(whole, m):
            out[row + t] = apart(x, i, y, t, d)


def tiled(y: np.ndarray) -> np.ndarray:
    """Rows sixteen by sixteen, a column of the sixteen after the other; zeros fill up the last."""
    n, d = y.shape
    full = np.zeros((-(-n // WIDTH) * WIDTH, d))
    full[:n] = y
    return np.ascontiguousarray(full.reshape(-1, WIDTH, d).transpose(0, 2, 1))


@kernel()
def squares(x, y, d, out):
    """out_ik = ‖x_i − y_k‖², of differences: products would cancel. x is flat, y is flat and tiled, out is flat."""
    n, wide = len(x) // d, len(y) // d
    for t in range(0, wide, WIDTH):
        for i in range(0, n, 2):
            k = min(i + 1, n - 1)  # two rows at a time, for the units that add
            a, b = splat(0.0), splat(0.0)
            for j in range(d):
                cells = load(y, t * d + j * WIDTH)
                u, v = minus(splat_of(x, i * d + j), cells), minus(splat_of(x, k * d + j), cells)
                a, b = fma(u, u, a), fma(v, v, b)
            store(out, i * wide + t, a)
            store(out, k * wide + t, b)


@kernel()
def squares_where_seen(x, seen, y, known, d, out):
    """The same over the cells that both rows show: `seen` and `known` (tiled) are 1 where a cell was, else 0."""
    n, wide = len(x) // d, len(y) // d
    for t in range(0, wide, WIDTH):
        for i in range(n):
            a = splat(0.0)
            for j in range(d):
                if seen[i * d + j]:
                    u = minus(splat_of(x, i * d + j), load(y, t * d + j * WIDTH))
                    a = fma(times(u, u), load(known, t * d + j * WIDTH), a)
            store(out, i * wide + t, a)
