"""Single rows: in which of their cells they differ from the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unmix.engine.sources.base import Source
from unmix.explanation.columns import Plain
from unmix.explanation.words import called, decimals, number, percent

TOLD = 3  # cells of a row
SAMPLED = 20_000  # rows, evenly spread, that stand for the others
FAR = 2.0  # standard deviations, from which on a cell is told
RARE = 0.02  # share of a level, up to which it is told
USUAL = (0.05, 0.95)  # quantiles that are said to be usual


def reasons(source: Source, rows: Sequence[int] | np.ndarray) -> list[str]:
    """For each of the rows, in words, the cells that are furthest from what is usual in their columns.

    Parameters
    ----------
    source : Source
        A `Table`, or rows of numbers.
    rows : sequence of int
        Numbers of rows, from 0 on.
    """
    plain = Plain(source)
    if source.sparse:
        return ["" for _ in rows]
    step = max(1, source.n // SAMPLED)
    width = max(1, source.n // 50)
    edges = [*range(0, source.n, width), source.n]
    usual = np.concatenate([plain.read(a, b)[-a % step :: step].copy() for a, b in pairwise(edges) if b > a])
    with np.errstate(invalid="ignore"):
        known = np.where(np.isfinite(usual), usual, np.nan)
    return [_why(plain, known, plain.read(int(i), int(i) + 1)[0]) for i in rows]


def _why(plain: Plain, usual: np.ndarray, x: np.ndarray) -> str:
    """The reasons of one row."""
    found: list[tuple[float, str]] = []
    at = 0
    for use in plain.uses:
        column, cell = usual[:, at : at + use.width], x[at : at + use.width]
        at += use.width
        column = column[~np.isnan(column).any(axis=1)]
        if not np.isfinite(cell).all() or not len(column):
            continue
        if use.levels:
            j = int(cell.argmax()) if use.width > 1 else int(cell[0])
            share = float(column[:, j].mean() if use.width > 1 else abs(1 - j - column[:, 0].mean()))
            if share <= RARE:
                found.append(
                    (-np.log(max(share, 1e-6)), f"{called(use.name)} = {use.levels[j]} (in {percent(share)} of rows)")
                )
            continue
        values, value = column[:, 0], float(cell[0])
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        unit = (high - low) / 1.349 or float(values.std())
        a, b = np.quantile(values, USUAL)
        if not unit or abs(value - middle) < FAR * unit or a <= value <= b:
            continue
        places = decimals(float(values.std())) if (values % 1).any() else 0
        usually = " to ".join(dict.fromkeys(number(float(v), places) for v in (a, b)))
        found.append((abs(value - middle) / unit, f"{called(use.name)}: {number(value, places)} (usually {usually})"))
    found.sort(key=lambda pair: -pair[0])
    return "; ".join(text for _, text in found[:TOLD]) or "no single cell: an unusual combination"
