"""Which cells make a row odd: those without which it would be ordinary.

Of the cells that are strangest given the others of their row, the first is that which lowers the row's score most when
it is replaced by what would be usual in its place. (A wrong cell makes others of its row look strange, too, sometimes
stranger than itself; with one of them replaced the row is as odd as before.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from unmix.outlier.scores import cells, expected, row_scores

CANDIDATES = 12  # cells of a row, the strangest given the others, of which one is replaced at a time
WORTH_TELLING = 2.0  # spreads from what is usual


class Reason(NamedTuple):
    """A cell that makes its row odd: what it holds, and what would be usual given the other cells of the row.

    Examples
    --------
    >>> from unmix.outlier import Reason
    >>> why = Reason(row=17, column=0, name="alcohol", value=1.4, usual=13.6, spread=0.33, score=-37.0)
    >>> f"{why.name} is {why.value}, usual are {why.usual} ± {why.spread}"
    'alcohol is 1.4, usual are 13.6 ± 0.33'
    """

    row: int
    column: int
    name: str  # of the column; x0, x1, … where columns have no names
    value: float
    usual: float  # in the units of the column
    spread: float  # usual ± spread; both are NaN where a model gives no such numbers
    score: float  # how far it is from what is usual, in spreads


def odd_cells(
    model: Any, x: np.ndarray, unit: np.ndarray | None, tau: np.ndarray | None, most: int
) -> Iterator[list[tuple[int, float, float, float, float]]]:
    """Of each dense row at most so many cells: the column, what it holds, what is usual, its spread, the score.

    `unit` and `tau` are the units of the model's row and cell scores.
    """
    usual, spread = expected(model, x, tau)
    for row, score, mean, deviation in zip(x, cells(model, x, tau), usual, spread, strict=True):
        strange = np.argsort(-np.nan_to_num(np.abs(score), nan=-1.0), kind="stable")[:CANDIDATES]
        strange = strange[~np.isnan(score[strange])]
        if len(strange) and not np.isnan(mean[strange]).any():
            replaced = np.repeat(row[None], len(strange), axis=0)
            replaced[np.arange(len(strange)), strange] = mean[strange]
            strange = strange[np.argsort(row_scores(model, replaced, unit), kind="stable")]
        kept = [j for i, j in enumerate(strange) if i == 0 or abs(score[j]) >= WORTH_TELLING][:most]
        yield [(int(j), *map(float, (row[j], mean[j], deviation[j], score[j]))) for j in kept]  # type: ignore[misc]
