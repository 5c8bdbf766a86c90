"""What a Gaussian with missing cells is kept as, and the rows that its bootstrap sees."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.engine.config import get_config
from unmix.engine.draws import generator
from unmix.engine.rows import Rules
from unmix.engine.sample import distinct, whole_block
from unmix.maths.arrays import POSITIVE, Array

BOOTSTRAP_ROWS, PER_COLUMN = 2000, 40  # that are drawn at most for one estimate: so many, or for each column


class Normal(NamedTuple):
    """μ, and the upper triangular P with P Pᵀ = Σ⁻¹; from the origin and in the units of the parts."""

    mean: np.ndarray
    factor: np.ndarray


class Parts(NamedTuple):
    """μ, Σ, its factor P with P Pᵀ = Σ⁻¹, the variances D of the prior, and columns never seen, or with holes.

    Units are powers of two near the columns' standard deviations: columns of all sizes then count alike where
    statistics are extrapolated, and nothing depends on the unit of a column.
    """

    shift: Annotated[np.ndarray, Array("d")]
    units: Annotated[np.ndarray, Array("d", low=POSITIVE)]
    mean: Annotated[np.ndarray, Array("d")]
    covariance: Annotated[np.ndarray, Array("d d")]
    factor: Annotated[np.ndarray, Array("d d")]
    prior: Annotated[np.ndarray, Array("d", low=0.0)]
    rows: Annotated[float, Array(low=0.0)]  # that show a column, on average
    empty: Annotated[np.ndarray, Array("d", "b")]
    holed: Annotated[np.ndarray, Array("d", "b")]


class Stats(NamedTuple):
    """N, A and B, and for each column how many rows show it, and how many do not."""

    N: float
    A: Annotated[np.ndarray, Array("d")]
    B: Annotated[np.ndarray, Array("d d")]
    seen: Annotated[np.ndarray, Array("d")]
    missing: Annotated[np.ndarray, Array("d")]


def measured(U: Parts, b: Block) -> np.ndarray:
    """Rows from the origin of the parts and in their units, in float64."""
    return np.asarray((b.x.astype(np.float64) - U.shift) / U.units)


def with_nan(b: Block) -> np.ndarray:
    """The rows of a block, missing cells NaN."""
    return np.asarray(b.x if b.observed is None else np.where(b.observed, b.x, np.nan))


def told(U: Parts, mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance in the units of X."""
    return mean * U.units + U.shift, covariance * np.outer(U.units, U.units)


def most_rows(d: int) -> int:
    """How many rows are drawn for an estimate at most."""
    return max(BOOTSTRAP_ROWS, PER_COLUMN * d)


def resampled(
    model: Any, source: Any, w: np.ndarray | None, size: int, seed: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows in the units of a fitted model's parts, and for each of its bootstraps how often each was drawn.

    Of few rows the distinct ones in an order of their own: it does not matter whether one is there twice.
    """
    rngs = [generator(seed, "bootstrap", i) for i in range(model.n_bootstrap)]
    if source.n <= most_rows(source.d):
        b = distinct(in_units(model, source, source.whole(get_config().budget), w))
        weight = np.ones(len(b.x)) if b.w is None else b.w
        return with_nan(b), [rng.multinomial(size, weight / weight.sum()).astype(np.float64) for rng in rngs]
    drawn = [rng.choice(source.n, size, p=None if w is None else w / w.sum()) for rng in rngs]
    rows = np.unique(np.concatenate(drawn))
    counts = [np.bincount(np.searchsorted(rows, i), minlength=len(rows)).astype(np.float64) for i in drawn]
    return with_nan(in_units(model, source, source.take(rows), None)), counts


def in_units(model: Any, source: Any, x: np.ndarray, w: np.ndarray | None) -> Block:
    """Rows of a source as one block, in the units of a fitted model's parts."""
    b = model.masked(whole_block(x, w, Rules.of(model, source)))
    x = measured(model.parts, b)
    return b._replace(x=x if b.observed is None else x * b.observed)
