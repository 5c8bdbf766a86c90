"""A density from the distances to the k-th and the 2k-th neighbour, which assumes no shape of groups.

Of a row x and its k-th neighbour among the rows of the fit, the mean square of the differences of a cell is

    q_k(x) = mean_j (x_j − x_(k),j)²  over the cells that both show

and log f_k(x) = −½ d (1 + log 2π (q_k + r)), d the cells that x shows: f ∝ q^(−d/2), as a ball of that radius has k
rows. log f is the mean of log f_k and log f_2k: the near neighbour sees rows between groups, the far one small groups
that lie apart.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.engine.sample import distinct
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.distances import differences

COMPARED_ROWS = 2048  # of the fit, at most, that others are compared with
FAR = 2  # times as far in rank is the second neighbour
UNSHARED_SQUARE = 2.0  # mean square of a cell's difference, of scaled columns, for rows that share no cell


class Neighbours(NamedTuple):
    """The weighted rows that a row is compared with."""

    k: Annotated[int, Array(kind="i", low=1)]
    floor: Annotated[float, Array(low=0.0)]
    rows: Annotated[np.ndarray, Array("m d")]
    observed: Annotated[np.ndarray, Array("m d", "b")] | None
    weight: Annotated[np.ndarray, Array("m", low=POSITIVE)]

    @classmethod
    def of(cls, x: np.ndarray, w: np.ndarray | None, k: int, floor: float, offset: float) -> Neighbours:
        """Rows to be compared with, equal ones merged; of many a sample, evenly by their weight from `offset` on.

        NaN means not observed; `offset` is in [0, 1).
        """
        blank = np.isnan(x).all(axis=1)
        if blank.any() and not blank.all():  # they are near no row
            x, w = x[~blank], None if w is None else w[~blank]
        if w is not None and w.sum() < len(w):  # shares: as if they were those of that many rows
            w = w * (len(w) / w.sum())
        whole = distinct(block(x)._replace(w=w))
        weight = np.ones(len(whole.x)) if whole.w is None else whole.w
        if len(weight) > COMPARED_ROWS:
            at = (offset + np.arange(COMPARED_ROWS)) * (weight.sum() / COMPARED_ROWS)
            drawn = np.searchsorted(np.cumsum(weight), at, side="right").clip(0, len(weight) - 1)
            rows, count = np.unique(drawn, return_counts=True)
            whole = whole._replace(x=whole.x[rows], observed=None if whole.observed is None else whole.observed[rows])
            weight = count.astype(np.float64)
        return cls(k, floor, whole.x, whole.observed, weight)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """log f of each row; a row of the fit is a neighbour of itself."""
        step = max(1, (1 << 22) // max(len(self.weight), x.shape[1]))
        return np.concatenate([self._log_density(x[a : a + step]) for a in range(0, len(x), step)])

    def _log_density(self, x: np.ndarray) -> np.ndarray:
        new = block(x)
        d = np.full(len(x), x.shape[1]) if new.observed is None else new.observed.sum(axis=1)
        if new.observed is None and self.observed is None:
            apart = differences(new.x, self.rows) / x.shape[1]
        else:
            both = ((new.x, new.observed), (self.rows, self.observed))
            seen, known = (np.ones(rows.shape) if o is None else o.astype(float) for rows, o in both)
            shared = seen @ known.T
            square = differences(new.x, self.rows, seen, known)
            apart = np.where(shared > 0, square / np.maximum(shared, 1), UNSHARED_SQUARE)
        q = np.stack(self._nearest(apart))
        return np.asarray(-0.5 * d * (1 + np.log(2 * np.pi * (q + self.floor))).mean(axis=0))

    def _nearest(self, apart: np.ndarray) -> list[np.ndarray]:
        """The distances within which rows of weight k and 2k are, or half of all weight where that is less."""
        half = self.weight.sum() / 2
        wanted = [min(k, half) * (1 - 1e-12) for k in (self.k, FAR * self.k)]
        many = [int(np.ceil(k / self.weight.min())) for k in wanted]  # rows that are enough at any weight
        if (self.weight == 1).all():
            ordered = np.partition(apart, [m - 1 for m in many], axis=1)
            return [ordered[:, m - 1] for m in many]
        some = np.argpartition(apart, min(many[1], len(self.weight)) - 1, axis=1)[:, : many[1]]
        near = np.take_along_axis(apart, some, axis=1)
        order = np.argsort(near, axis=1)
        near = np.take_along_axis(near, order, axis=1)
        total = np.cumsum(np.take_along_axis(self.weight[some], order, axis=1), axis=1)
        return [near[np.arange(len(apart)), (total >= k).argmax(axis=1)] for k in wanted]


def block(x: np.ndarray) -> Block:
    """Rows, and which cells are observed where some are not."""
    nan = np.isnan(x)
    return Block(np.where(nan, 0.0, x), None, None, ~nan) if nan.any() else Block(np.ascontiguousarray(x), None)
