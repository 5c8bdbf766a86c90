"""Products of CSR rows with dense factors that hold k numbers a row, so that each nonzero meets one line of memory.

Short lines of a tall factor are fetched before their turn. Of long ones a tall factor is taken tile by tile, so that
they are in the cache: `at` remembers how far each row is. A row is left at its first column beyond the tile; the last
tile leaves nothing, so that columns need not be in order.
"""

from __future__ import annotations

from unmix.kernels import SUMS, inlined, kernel
from unmix.kernels.lanes import fetch, fma, load8, splat8, store

TILE = 3 << 18  # bytes of a factor that stay in the cache of a core
NONZEROS_PER_TILE = 16  # that a row should have, at least
AHEAD = 16  # nonzeros that a short line is fetched before its turn


@inlined()
def _tiles(indptr, U):
    """Count the tiles of a factor."""
    nonzeros = (indptr[-1] - indptr[0]) // max(1, len(indptr) - 1)
    return max(1, min(-(-U.size * U.itemsize // TILE), nonzeros // NONZEROS_PER_TILE))


@inlined()
def _edge(d, tile, tiles):
    """Return the first column beyond a tile; beyond the last one there is none."""
    return d * tile // tiles if tile < tiles else 1 << 62


@inlined(SUMS)
def _times(data, indices, indptr, U, out):
    """Add to out X U."""
    d, k = U.shape
    at, tiles = indptr[:-1].copy(), _tiles(indptr, U)
    for tile in range(1, tiles + 1):
        edge = _edge(d, tile, tiles)
        for i in range(len(at)):
            t, stop = at[i], indptr[i + 1]
            while t + 3 < stop and indices[t + 3] < edge:
                a, b, c, e = indices[t], indices[t + 1], indices[t + 2], indices[t + 3]
                va, vb, vc, ve = data[t], data[t + 1], data[t + 2], data[t + 3]
                for q in range(k):
                    out[i, q] += (va * U[a, q] + vb * U[b, q]) + (vc * U[c, q] + ve * U[e, q])
                t += 4
            while tile == tiles and t < stop:
                j, v = indices[t], data[t]
                for q in range(k):
                    out[i, q] += v * U[j, q]
                t += 1
            at[i] = t


@inlined()
def _short_times(data, indices, indptr, U, out):
    """Set out = X U where the rows of U fit three registers; these overlap at the end of a row, where they agree."""
    d, k = U.shape
    second, third, last = min(8, k - 8), k - 8, len(indices) - 1
    U, sums, nothing = U.reshape(d * k), out.reshape(len(out) * k), splat8(data.dtype.type(0))
    for i in range(len(out)):
        a, b, c, o = nothing, nothing, nothing, i * k
        for t in range(indptr[i], indptr[i + 1]):
            ahead = indices[min(t + AHEAD, last)] * k
            fetch(U, ahead)
            fetch(U, ahead + 8)
            fetch(U, ahead + k - 1)
            j, v = indices[t] * k, splat8(data[t])
            a, b, c = fma(v, load8(U, j), a), fma(v, load8(U, j + second), b), fma(v, load8(U, j + third), c)
        store(sums, o, a)
        store(sums, o + second, b)
        store(sums, o + third, c)


@inlined()
def _near_times(data, indices, indptr, U, out):
    """Do the same where U is in the cache: fetching would take longer than the sums."""
    d, k = U.shape
    second, third = min(8, k - 8), k - 8
    U, sums, nothing = U.reshape(d * k), out.reshape(len(out) * k), splat8(data.dtype.type(0))
    for i in range(len(out)):
        a, b, c, o = nothing, nothing, nothing, i * k
        for t in range(indptr[i], indptr[i + 1]):
            j, v = indices[t] * k, splat8(data[t])
            a, b, c = fma(v, load8(U, j), a), fma(v, load8(U, j + second), b), fma(v, load8(U, j + third), c)
        store(sums, o, a)
        store(sums, o + second, b)
        store(sums, o + third, c)


@kernel(SUMS)
def times(data, indices, indptr, U, out):
    """Set out = X U for CSR X of shape (n, d) and dense U of shape (d, k)."""
    if 8 < U.shape[1] <= 24:
        if U.size * U.itemsize <= TILE:
            _near_times(data, indices, indptr, U, out)
        else:
            _short_times(data, indices, indptr, U, out)
    else:
        out[:] = 0
        _times(data, indices, indptr, U, out)


@inlined(SUMS)
def _transposed_times(data, indices, indptr, Z, out):
    """Add to out Xᵀ Z."""
    d, k = out.shape
    at, tiles = indptr[:-1].copy(), _tiles(indptr, out)
    for tile in range(1, tiles + 1):
        edge = _edge(d, tile, tiles)
        for i in range(len(at)):
            t, stop = at[i], indptr[i + 1]
            while t < stop and indices[t] < edge:
                j, v = indices[t], data[t]
                for q in range(k):
                    out[j, q] += v * Z[i, q]
                t += 1
            at[i] = t


@inlined()
def _short_transposed_times(data, indices, indptr, Z, out):
    """Add to out Xᵀ Z where the rows of Z fit three registers."""
    d, k = out.shape
    second, third, last, n = min(8, k - 8), k - 8, len(indices) - 1, len(Z)
    Z, sums = Z.reshape(n * k), out.reshape(d * k)
    for i in range(n):
        o = i * k
        a, b, c = load8(Z, o), load8(Z, o + second), load8(Z, o + third)
        for t in range(indptr[i], indptr[i + 1]):
            ahead = indices[min(t + AHEAD, last)] * k
            fetch(sums, ahead)
            fetch(sums, ahead + 8)
            fetch(sums, ahead + k - 1)
            j, v = indices[t] * k, splat8(data[t])
            e, f = fma(v, a, load8(sums, j)), fma(v, b, load8(sums, j + second))
            g = fma(v, c, load8(sums, j + third))
            store(sums, j, e)
            store(sums, j + second, f)
            store(sums, j + third, g)


@inlined()
def _near_transposed_times(data, indices, indptr, Z, out):
    """Do the same where the sums are in the cache."""
    d, k = out.shape
    second, third, n = min(8, k - 8), k - 8, len(Z)
    Z, sums = Z.reshape(n * k), out.reshape(d * k)
    for i in range(n):
        o = i * k
        a, b, c = load8(Z, o), load8(Z, o + second), load8(Z, o + third)
        for t in range(indptr[i], indptr[i + 1]):
            j, v = indices[t] * k, splat8(data[t])
            e, f = fma(v, a, load8(sums, j)), fma(v, b, load8(sums, j + second))
            g = fma(v, c, load8(sums, j + third))
            store(sums, j, e)
            store(sums, j + second, f)
            store(sums, j + third, g)


@kernel(SUMS)
def add_transposed_times(data, indices, indptr, Z, out):
    """Add to out Xᵀ Z for CSR X of shape (n, d) and dense Z of shape (n, k)."""
    if 8 < Z.shape[1] <= 24:
        if out.size * out.itemsize <= TILE:
            _near_transposed_times(data, indices, indptr, Z, out)
        else:
            _short_transposed_times(data, indices, indptr, Z, out)
    else:
        _transposed_times(data, indices, indptr, Z, out)
