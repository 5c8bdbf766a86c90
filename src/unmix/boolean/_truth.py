"""Cells as truth values: 1 is granted, 0 is not, NaN is unknown."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.engine.sources.arrays import entries


class Packed(NamedTuple):
    """Rows of truth values, as packed bits (`kernels/bits.py`)."""

    ones: np.ndarray  # (n, w): cells that are 1
    known: np.ndarray | None  # (n, w): cells that were observed; None where all were

    @property
    def may(self) -> np.ndarray:
        """Cells that are 1, or unknown."""
        return self.ones if self.known is None else self.ones | ~self.known


def truth(x: Any, threshold: float | None, owner: str, start: int = 0, names: Any = None) -> Any:
    """Dense cells as Booleans, CSR rows as CSR rows that hold the cells of value 1.

    A cell is 1 where it exceeds the threshold; without one cells must be 0 or 1, and others are refused by name.
    """
    values = x.data if sp.issparse(x) else x
    if threshold is not None:
        ones = values > threshold
        if sp.issparse(x) and threshold < 0:
            raise ValueError(
                f"threshold={threshold} is below 0, so that the cells that sparse rows do not hold would all be 1: "
                "pass dense rows, or a threshold of 0 or more"
            )
    else:
        ones = values == 1
        if bad := np.flatnonzero(~(ones | (values == 0)).ravel())[:1].tolist():
            i, j, value = _cell(x, bad[0])
            column = f"column {j}" if names is None else f"column {names[j]!r}"
            raise ValueError(
                f"{owner} needs cells of 0, 1 or NaN (unknown): row {start + i}, {column} holds {value}. Say "
                "from where on a cell counts as 1, as in threshold=0.5, or correct it."
            )
    return entries(x, ones) if sp.issparse(x) else ones


def _cell(x: Any, at: int) -> tuple[int, int, Any]:
    """Row, column and value of a cell, or of an entry of CSR rows."""
    if sp.issparse(x):
        return int(np.searchsorted(x.indptr, at, side="right")) - 1, int(x.indices[at]), x.data[at]
    i, j = divmod(at, x.shape[1])
    return i, j, x[i, j]


def packed(b: Block, threshold: float | None, owner: str, names: Any = None) -> Packed:
    """The rows of a block as packed bits; cells that were not observed are not 1."""
    from unmix.kernels import bits

    ones = truth(b.x, threshold, owner, b.start, names)
    if b.observed is None:
        return Packed(bits.pack(ones), None)
    return Packed(bits.pack(ones & b.observed), bits.pack(b.observed))
