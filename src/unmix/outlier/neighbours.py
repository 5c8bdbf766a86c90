"""A density from the distance to the k-th neighbour, which assumes no shape of groups.

Of a row x and its k-th neighbour among the rows of the fit, the mean square of the differences of a cell is

    q(x) = mean_j (x_j − x_(k),j)²  over the cells that both show

and log f(x) = −½ d (1 + log 2π (q + r)), d the cells that x shows: f ∝ q^(−d/2), as a ball of that radius has k rows.
"""

from __future__ import annotations

import numpy as np

from unmix.engine.block import Block
from unmix.engine.sample import distinct
from unmix.maths.distances import differences

COMPARED_ROWS = 2048  # of the fit, at most, that others are compared with
UNSHARED_SQUARE = 2.0  # mean square of a cell's difference, of scaled columns, for rows that share no cell


class Neighbours:
    """The weighted rows that a row is compared with; NaN means not observed."""

    def __init__(self, k: float, floor: float) -> None:
        self.k, self.floor = k, floor

    def fit(self, x: np.ndarray, w: np.ndarray | None, offset: float) -> Neighbours:
        """Keep the rows, equal ones merged; of many a sample, evenly by their weight from `offset` in [0, 1) on."""
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
        self.rows, self.weight = whole, weight
        return self

    def score_samples(self, x: np.ndarray) -> np.ndarray:
        """log f of each row; a row of the fit is a neighbour of itself."""
        step = max(1, (1 << 22) // len(self.weight))
        return np.concatenate([self._scores(x[a : a + step]) for a in range(0, len(x), step)])

    def _scores(self, x: np.ndarray) -> np.ndarray:
        new, old = block(x), self.rows
        d = np.full(len(x), x.shape[1]) if new.observed is None else new.observed.sum(axis=1)
        if new.observed is None and old.observed is None:
            q = self._kth(differences(new.x, old.x)) / x.shape[1]
        else:
            seen, known = (np.ones(b.x.shape) if b.observed is None else b.observed.astype(float) for b in (new, old))
            shared = seen @ known.T
            q = self._kth(
                np.where(shared > 0, differences(new.x, old.x, seen, known) / np.maximum(shared, 1), UNSHARED_SQUARE)
            )
        return np.asarray(-0.5 * d * (1 + np.log(2 * np.pi * (q + self.floor))))

    def _kth(self, apart: np.ndarray) -> np.ndarray:
        """The distance within which rows of weight k are, or half of all weight where that is less."""
        k = min(self.k, self.weight.sum() / 2) * (1 - 1e-12)
        many = int(np.ceil(k / self.weight.min()))  # rows that are enough at any weight
        if (self.weight == 1).all():
            return np.partition(apart, many - 1, axis=1)[:, many - 1]
        some = np.argpartition(apart, min(many, len(self.weight)) - 1, axis=1)[:, :many]
        near = np.take_along_axis(apart, some, axis=1)
        order = np.argsort(near, axis=1)
        total = np.cumsum(np.take_along_axis(self.weight[some], order, axis=1), axis=1)
        return np.take_along_axis(near, order, axis=1)[np.arange(len(apart)), (total >= k).argmax(axis=1)]


def block(x: np.ndarray) -> Block:
    """Rows, and which cells are observed where some are not."""
    nan = np.isnan(x)
    return Block(np.where(nan, 0.0, x), None, None, ~nan) if nan.any() else Block(np.ascontiguousarray(x), None)
