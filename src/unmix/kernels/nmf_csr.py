"""Products of CSR rows with dense factors that hold k numbers a row, so that each nonzero meets one line of memory.

A tall factor is taken tile by tile, so that those lines are in the cache: `at` remembers how far each row is. A row is
left at its first column beyond the tile; the last tile leaves nothing, so that columns need not be in order.
"""

from __future__ import annotations

from unmix.kernels import SUMS, inlined, kernel

TILE = 3 << 18  # bytes of a factor that stay in the cache of a core
LEAST = 16  # nonzeros that a row should have in a tile


@inlined(SUMS)
def _tiles(indptr, U):
    """Count the tiles of a factor."""
    nonzeros = (indptr[-1] - indptr[0]) // max(1, len(indptr) - 1)
    return max(1, min(-(-U.size * U.itemsize // TILE), nonzeros // LEAST))


@kernel(SUMS)
def times(data, indices, indptr, U, out):
    """Set out = X U for CSR X of shape (n, d) and dense U of shape (d, k)."""
    d, k = U.shape
    at = indptr[:-1].copy()
    tiles = _tiles(indptr, U)
    for tile in range(1, tiles + 1):
        edge = d * tile // tiles
        for i in range(len(at)):
            t, stop = at[i], indptr[i + 1]
            if tile == 1:
                for q in range(k):
                    out[i, q] = 0
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


@kernel(SUMS)
def add_transposed_times(data, indices, indptr, Z, out):
    """Add to out Xᵀ Z for CSR X of shape (n, d) and dense Z of shape (n, k)."""
    d, k = out.shape
    at = indptr[:-1].copy()
    tiles = _tiles(indptr, out)
    for tile in range(1, tiles + 1):
        edge = d * tile // tiles
        for i in range(len(at)):
            t, stop = at[i], indptr[i + 1]
            while t < stop and indices[t] < edge:
                j, v = indices[t], data[t]
                for q in range(k):
                    out[j, q] += v * Z[i, q]
                t += 1
            at[i] = t
