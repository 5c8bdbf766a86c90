"""What one local step sees (`Block`) and what it hands back (`Local`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Block(NamedTuple):
    """A run of consecutive rows. What a model needs later becomes a new field, never a new argument.

    Attributes
    ----------
    x : ndarray, csr_array or Moments
        The rows, in float32 or float64. Cells that were not observed hold 0.
    w : ndarray of float64 or None
        Row weights; None when every row counts once.
    z : Any
        What the last pass left for these rows; None on the first pass and for new data.
    observed : ndarray of bool or None
        Which cells were observed; None when all of them were.
    start : int
        Global index of the first row.
    closing : bool
        Whether this is the closing pass of a fit: its z is what `publish` sees.
    absent : bool
        Whether entries that CSR rows do not hold were not observed. Then an explicit zero is a value like any other,
        and `observed` is None: what was observed is what x holds.
    """

    x: Any
    w: np.ndarray | None = None
    z: Any = None
    observed: np.ndarray | None = None
    start: int = 0
    closing: bool = False
    absent: bool = False

    @property
    def total(self) -> float:
        """Σ w: how many rows these count for."""
        return float(self.x.shape[0]) if self.w is None else float(self.w.sum())

    def weighted(self, a: Any) -> Any:
        """Rows of a times their weights, in a's precision; a itself when every row counts once."""
        return a if self.w is None else a * self.w.astype(a.dtype, copy=False)[:, None]

    def sum(self, v: np.ndarray) -> float:
        """Σ_i w_i v_i in float64."""
        return float(np.sum(v, dtype=np.float64) if self.w is None else self.w @ v.astype(np.float64, copy=False))


class Local(NamedTuple):
    """What a model's `local` returns for a block.

    Attributes
    ----------
    z : Any
        The hidden part of each row: an array, or a (named) tuple of arrays, whose first axis is the rows.
    stats : Any
        Additive statistics: an array, a float, or a (named) tuple of such.
    loss : float
        Σ_i w_i loss_i over the rows of the block.
    """

    z: Any
    stats: Any
    loss: float
