"""Documents: rows of word counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block

PSEUDO_COUNT_FLOOR = 1e-8
LARGEST_COUNT = {"f": 1e32, "d": 1e40}  # times its weight, by precision, so that sums over a corpus stay within range


def counts(b: Block) -> Any:
    """The rows as CSR; refuse counts so large that their sums would not stay within range."""
    x = b.x if sp.issparse(b.x) else sp.csr_array(b.x)
    largest = float(x.data.max(initial=0.0)) * (1.0 if b.w is None else max(1.0, float(b.w.max(initial=0.0))))
    if not largest <= (most := LARGEST_COUNT[x.dtype.char]):
        raise ValueError(
            f"a count times a weight of {largest:.3g} in X ({x.dtype}) is above {most:g}: divide X by a constant"
        )
    return x


def halves(x: Any) -> tuple[Any, Any]:
    """Every other token of each document, in the order of the columns, and the rest; parts of a token are shared alike.

    Cell j of a document covers the stretch (c_j − x_j, c_j] of its tokens, c being the running sum; what lies in
    [0, 1), [2, 3), … is seen.
    """
    x = x.copy()
    x.sum_duplicates()
    end = np.empty_like(x.data)
    for i, j in zip(x.indptr[:-1], x.indptr[1:], strict=True):  # no document's rounding depends on those before it
        np.cumsum(x.data[i:j], out=end[i:j])

    def even(c: np.ndarray) -> np.ndarray:
        return np.floor(c / 2) + np.minimum(c % 2, 1.0)

    seen, hidden = x.copy(), x.copy()
    seen.data = np.clip(even(end) - even(end - x.data), 0.0, x.data)
    hidden.data = x.data - seen.data
    seen.eliminate_zeros()
    hidden.eliminate_zeros()
    return seen, hidden
