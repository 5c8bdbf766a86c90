"""Alternating least squares: a small linear system for each user, and for each item.

An entry (who, what, value) is t = scale · value − offset[what] of a row a = (v, 1) of the other side, v a row of its
`design` and 1 there where there are biases. With A = Σ c a aᵀ and g = Σ c t a over the entries of a row, c its weights:

    ridge_rows       x = (B + λ I + A)⁻¹ g        B the same for all rows

`ridge_columns` adds A and g up, where the entries of a row do not come together; `ridge_items` solves from these sums.

Some entries at a time are copied side by side, as rows (v, 1, t) times √c, and their products are added up in tiles: in
the precision of the design, and these sums in float64. Of clicks (α > 0) c is α · value, and g = Σ (1 + α · value) a.
The bias is eliminated first, and then the factors from the last one on: what is left of a row is at its beginning.

A design has rows of whole cache lines; symmetric matrices that leave are the rows of their upper triangle.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import FUSED, inlined, kernel
from unmix.kernels.lanes import aligned, fma, load8, plus, splat8, store, times, total, wide
from unmix.kernels.tile import LINE, NUMBERS, accumulate_one

LEAST = 1e-12  # of the mean of a diagonal: what is added to it, so that λ = 0 has a solution
PANEL = 128  # entries that lie side by side
ROUND = 16  # numbers of a row are a multiple of it


@inlined(FUSED)
def side_by_side(values, index, first, last, scale, offset, alpha, root, design, k, step, pitch, panel, sums):
    """The rows (v, 1, t) times √c of some entries; adds Σ c, Σ c t and Σ c t² to `sums`."""
    at = 0
    for e in range(first, last):
        j = index[e]
        c, t = root[j], scale * values[e] - offset[j]
        if alpha > 0.0:
            more, c = alpha * values[e], root[j] * np.sqrt(alpha * values[e])
            t = root[j] * (1.0 + more) / np.sqrt(more) if more > 0.0 else 0.0  # by then times √c
            sums[2] += root[j] * root[j] * (1.0 + more) if more > 0.0 else 0.0
        else:
            t *= c
            sums[2] += t * t
        sums[0] += c * c
        sums[1] += c * t
        panel[at + k] = c
        by = splat8(panel[at + k])
        for b in range(0, step, 8):
            store(panel, at + b, times(by, load8(design, j * step + b)))
        panel[at + k], panel[at + k + 1] = c, t
        at += pitch


@inlined(FUSED)
def products(panel, pitch, terms, k, step, S):
    """S[a, b] = Σ of column a of the panel times column b < k, for a ≥ b and a < k + 2."""
    lanes = LINE // panel.itemsize
    for b in range(0, k, lanes):
        for a in range(b, k + 2, NUMBERS):
            accumulate_one(panel, b, pitch, panel, a, pitch, terms, S, a * step + b, step, 0)


@inlined(FUSED)
def gather(values, index, first, last, scale, offset, alpha, root, design, k, step, pitch, panel, S, G, g, s, sums):
    """Adds Σ c v vᵀ to the lower triangle of G, Σ c t v to g, Σ c v to s; sums: Σ c, Σ c t, Σ c t²."""
    sums[:] = 0.0
    pieces = (last - first + PANEL - 1) // PANEL
    for i in range(pieces):
        begin, end = first + (last - first) * i // pieces, first + (last - first) * (i + 1) // pieces
        side_by_side(values, index, begin, end, scale, offset, alpha, root, design, k, step, pitch, panel, sums)
        products(panel, pitch, end - begin, k, step, S)
        for a in range(k):
            for b in range(0, a + 1, 8):
                store(G, a * step + b, plus(load8(G, a * step + b), wide(load8(S, a * step + b))))
        for b in range(0, k, 8):
            store(s, b, plus(load8(s, b), wide(load8(S, k * step + b))))
            store(g, b, plus(load8(g, b), wide(load8(S, (k + 1) * step + b))))


@inlined(FUSED)
def without_bias(G, g, s, count, product, k, step):
    """Eliminates the bias, whose row of the system is (s, count | product)."""
    for a in range(k):
        less = splat8(-s[a] / count)
        for b in range(0, a + 1, 8):
            store(G, a * step + b, fma(less, load8(s, b), load8(G, a * step + b)))
    less = splat8(-product / count)
    for b in range(0, k, 8):
        store(g, b, fma(less, load8(s, b), load8(g, b)))


@inlined(FUSED)
def solve(G, g, x, y, inverse, k, step):
    """Sets x to the solution of G x = g, by a Cholesky root of G from its last row to its first; changes both."""
    trace = 0.0
    for a in range(k):
        trace += G[a * step + a]
    least = LEAST * trace / max(k, 1) + 1e-290
    for back in range(k):
        c = k - 1 - back
        inverse[c] = 1.0 / np.sqrt(max(G[c * step + c] + least, least))
        y[c] = g[c] * inverse[c]
        scale = splat8(inverse[c])
        for b in range(0, c + 1, 8):
            store(G, c * step + b, times(scale, load8(G, c * step + b)))
        less = splat8(-y[c])
        for b in range(0, c, 8):
            store(g, b, fma(less, load8(G, c * step + b), load8(g, b)))
        for a in range(c):
            less = splat8(-G[c * step + a])
            for b in range(0, a + 1, 8):
                store(G, a * step + b, fma(less, load8(G, c * step + b), load8(G, a * step + b)))
    x[:] = 0.0
    for c in range(k):
        lanes = splat8(0.0)
        for b in range(0, c, 8):
            lanes = fma(load8(G, c * step + b), load8(x, b), lanes)  # x is 0 from c on
        x[c] = (y[c] - total(lanes)) * inverse[c]


@inlined(FUSED)
def conclude(G, g, s, count, product, ridge, biased, k, step, x, y, inverse, own, mean):
    """Sets the mean; returns gᵀ times it. The ridge is in G already, but not in the count of the bias."""
    own[:] = g
    count += ridge
    count += LEAST * count + 1e-290
    if biased:
        without_bias(G, g, s, count, product, k, step)
    solve(G, g, x, y, inverse, k, step)
    explained, left = 0.0, product
    for a in range(k):
        mean[a] = x[a]
        explained += own[a] * x[a]
        left -= s[a] * x[a]
    if biased:
        mean[k] = left / count
        explained += product * mean[k]
    return explained


@kernel(FUSED)
def ridge_rows(values, index, ptr, scale, offset, alpha, root, design, k, base, ridge, biased, means, size, explained):
    """Sets the solution of each row, Σ c t², and gᵀ times the solution."""
    step, pitch = (k + ROUND - 1) // ROUND * ROUND, (k + 2 + NUMBERS + ROUND - 1) // ROUND * ROUND
    panel, S = aligned(PANEL * pitch, design.dtype), aligned((k + 2 + NUMBERS) * step, design.dtype)
    G, g, s = aligned(k * step, np.float64), aligned(step, np.float64), aligned(step, np.float64)
    x, y, inverse, own = aligned(step, np.float64), np.empty(k), np.empty(k), np.empty(step)
    sums = np.zeros(3)
    for i in range(len(means)):
        G[:] = base
        g[:] = 0.0
        s[:] = 0.0
        for a in range(k):
            G[a * step + a] += ridge
        begin, end = ptr[i], ptr[i + 1]
        gather(values, index, begin, end, scale, offset, alpha, root, design, k, step, pitch, panel, S, G, g, s, sums)
        explained[i] = conclude(G, g, s, sums[0], sums[1], ridge, biased, k, step, x, y, inverse, own, means[i])
        size[i] = sums[2]


@kernel(FUSED)
def ridge_columns(values, index, ptr, scale, offset, alpha, root, design, k, biased, A, g_out, size):
    """Sets A, g and Σ c t² of each column that holds an entry."""
    step, pitch = (k + ROUND - 1) // ROUND * ROUND, (k + 2 + NUMBERS + ROUND - 1) // ROUND * ROUND
    panel, S = aligned(PANEL * pitch, design.dtype), aligned((k + 2 + NUMBERS) * step, design.dtype)
    G, g, s = aligned(k * step, np.float64), aligned(step, np.float64), aligned(step, np.float64)
    sums = np.zeros(3)
    for j in range(len(g_out)):
        begin, end = ptr[j], ptr[j + 1]
        if begin == end:
            continue
        G[:] = 0.0
        g[:] = 0.0
        s[:] = 0.0
        gather(values, index, begin, end, scale, offset, alpha, root, design, k, step, pitch, panel, S, G, g, s, sums)
        at = 0
        for a in range(k):
            g_out[j, a] = g[a]
            for b in range(a, k):
                A[j, at] = G[b * step + a]
                at += 1
            if biased:
                A[j, at] = s[a]
                at += 1
        if biased:
            g_out[j, k] = sums[1]
            A[j, at] = sums[0]
        size[j] = sums[2]


@kernel(FUSED)
def ridge_items(A, g_in, k, base, ridge, biased, means):
    """Sets the solution of each row of sums."""
    step = (k + ROUND - 1) // ROUND * ROUND
    G, g, s = aligned(k * step, np.float64), aligned(step, np.float64), aligned(step, np.float64)
    x, y, inverse, own = aligned(step, np.float64), np.empty(k), np.empty(k), np.empty(step)
    for j in range(len(means)):
        G[:] = base
        at, count, product = 0, 0.0, 0.0
        for a in range(k):
            g[a] = g_in[j, a]
            for b in range(a, k):
                G[b * step + a] += A[j, at]
                at += 1
            if biased:
                s[a] = A[j, at]
                at += 1
            G[a * step + a] += ridge
        if biased:
            count, product = A[j, at], g_in[j, k]
        conclude(G, g, s, count, product, ridge, biased, k, step, x, y, inverse, own, means[j])
