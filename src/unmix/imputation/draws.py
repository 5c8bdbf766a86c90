"""Cells drawn, and how sure cells are, where columns may be categories.

Categories of a row are drawn one after the other, then its numbers, each given all before it:

    l ~ p(l | x_o)            l' ~ p(l' | x_o, l)            x_h ~ p(x_h | x_o, l, l')

A level has the share that is expected of it, and what goes with it goes with it in draws, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from unmix.imputation.columns import Columns
from unmix.imputation.law import Law
from unmix.maths.gaussian import chosen


def moments(law: Law, i: int, bent: bool, y: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Conditional means and deviations of rows by an estimate of a law."""
    return columns.moments(*law.moments(i, columns.bend(y))) if bent else law.moments(i, y)


def deviates(
    law: Law, i: int, bent: bool, y: np.ndarray, columns: Columns, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Conditional means of rows by an estimate of a law, its deviations, and how many of them a draw is from there."""
    mean, deviation = moments(law, i, bent, y, columns)
    drawn = columns.straighten(law.drawn(i, columns.bend(y), rng)) if bent else law.drawn(i, y, rng)
    return mean, deviation, (drawn - mean) / np.where(deviation > 0, deviation, 1.0)


def with_levels(
    y: np.ndarray,
    expect: Callable[[np.ndarray, np.ndarray], np.ndarray],
    columns: Columns,
    uses: Sequence[Any],
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows whose missing categories are drawn levels, and yes and no are 0 or 1.

    `expect(rows, y)` is what is expected of the cells of these rows, given what y holds by then.
    """
    out = y.copy()
    for use, own in spans(uses):
        rows = np.flatnonzero(np.isnan(y[:, own]).any(axis=1))
        if not len(rows) or not (use.levels or use.kind == "boolean"):
            continue
        mean = expect(rows, out[rows])[:, own]
        if use.levels and use.width > 1:
            level = chosen(shares(mean, use).T, rng)
            code = level[:, None] == np.arange(use.width)
        else:
            code = rng.random(mean.shape) < chance(mean, use, columns, own)
        out[rows, own] = ((code - np.array(use.centers)) / use.scale - columns.center[own]) / columns.scale[own]
    return out


def shown_deviations(mean: np.ndarray, deviation: np.ndarray, columns: Columns, uses: Sequence[Any]) -> np.ndarray:
    """Deviations in numbers; of a category, and of yes and no, √(p (1 − p)), p the probability of what is put there."""
    out = deviation * columns.scale
    for use, own in spans(uses):
        if use.levels:
            p = shares(mean[:, own], use).max(axis=1)
            out[:, own] = np.sqrt(p * (1 - p))[:, None]
        elif use.kind == "boolean":
            p = chance(mean[:, own], use, columns, own).clip(0.0, 1.0)
            out[:, own] = np.sqrt(p * (1 - p))
    return out


def chance(mean: np.ndarray, use: Any, columns: Columns, own: slice) -> np.ndarray:
    """How likely a column of yes and no is yes."""
    return np.asarray((mean * columns.scale[own] + columns.center[own]) * use.scale + use.centers[0])


def spans(uses: Sequence[Any]) -> Iterator[tuple[Any, slice]]:
    """What is made of each column of a table, and where its numbers are."""
    at = 0
    for use in uses:
        yield use, slice(at, at + use.width)
        at += use.width


def shares(y: np.ndarray, use: Any) -> np.ndarray:
    """Probabilities of a category's levels, from its columns of numbers."""
    p = y * use.scale + np.array(use.centers)
    p = np.clip(np.column_stack([1.0 - p, p]) if use.width == 1 else p, 1e-6, None)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
