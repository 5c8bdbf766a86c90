"""The cell-wise half of robust PCA: one sweep over memory from the low-rank rows to the next matrix to decompose."""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, kernel

# reassoc and contract let the sums of a row use vectors; their order depends on the number of columns alone.


@kernel(SUMS)
def split(x, unit, observed, m, ratio, cut, relax, low, sparse):
    """Soft-threshold, move the dual variable and form the next matrix, row by row.

    With y = (m − ℓ) ratio, the scaled dual variable, and t = x − ℓ + y:

        s = soft(t, cut)      c = t − s = clip(t, ±cut)      r = c − y      m⁺ = ℓ + y + relax · r

    where r = x − ℓ − s is the residual of the constraint. A cell that was not observed has cut = 0. All but x and s are
    in units of the data's size, in which x is x · unit: so squares stay within range.

    Parameters
    ----------
    x : array (n, d)
    unit : number of x's type, a power of two
    observed : bool array (n, d), or (0, 0) when every cell was observed
    m : array (n, d)
        The matrix whose low-rank part is `low`.
    ratio, cut : arrays (n,)
        μ/μ⁺ and λ/μ⁺ of each row.
    relax : float
    low : array (n, d)
        ℓ on entry; m⁺ on return.
    sparse : array (n, d), or (0, 0) when s is not wanted
        s on return.

    Returns
    -------
    sums : float64 array (n, 4)
        ‖r‖², ‖y‖², ‖x‖² of each row, and ‖x − ℓ‖₁ over its observed cells.
    """
    n, d = x.shape
    sums = np.empty((n, 4))
    zero = x.dtype.type(0)
    step = x.dtype.type(relax)
    for i in range(n):
        rr, yy, xx, ee = zero, zero, zero, zero
        q, hi = ratio[i], cut[i]
        lo = -hi
        if sparse.shape[0] != 0:  # before the sweep below overwrites ℓ
            for j in range(d):
                t = x[i, j] * unit - low[i, j] + (m[i, j] - low[i, j]) * q
                seen = observed.shape[0] == 0 or observed[i, j]
                sparse[i, j] = (t - min(max(t, lo), hi)) / unit if seen else zero
        if observed.shape[0] == 0:
            for j in range(d):
                y = (m[i, j] - low[i, j]) * q
                a = x[i, j] * unit
                e = a - low[i, j]
                c = min(max(e + y, lo), hi)
                r = c - y
                low[i, j] += y + step * r
                rr += r * r
                yy += y * y
                xx += a * a
                ee += abs(e)
        else:
            for j in range(d):
                y = (m[i, j] - low[i, j]) * q
                a = x[i, j] * unit
                e = a - low[i, j]
                c = min(max(e + y, lo), hi) if observed[i, j] else zero
                r = c - y
                low[i, j] += y + step * r
                rr += r * r
                yy += y * y
                xx += a * a
                ee += abs(e) if observed[i, j] else zero
        sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = rr, yy, xx, ee
    return sums
