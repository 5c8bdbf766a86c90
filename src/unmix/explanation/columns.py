"""Columns of a table or matrix as rows whose sums mean something, and those sums for each group of rows.

A number is itself, of a category each level is a column of 0 and 1 (of two levels the second alone), so that means are
means and shares. One pass gives, for each group g and column j, from the observed cells alone,

    N_gj = Σ w_i        S_gj = Σ w_i (x_ij − c_j)        Q_gj = Σ w_i (x_ij − c_j)²

about c_j, the mean of the first block.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources.base import Source
from unmix.table.recipe import Recipe, Use
from unmix.table.table import Table

SAMPLED = 20_000  # rows, evenly spread, among which the typical ones are looked for


class Plain:
    """The rows of a source in the units of the table, and what their columns are called."""

    def __init__(self, source: Source) -> None:
        self.source, self.n = source, source.n
        if source.recipe is None:
            names = source.names or [str(j) for j in range(source.d)]
            self.recipe = Recipe("given", tuple(Use(str(name), "number", (0.0,), 1.0, ()) for name in names))
        else:
            self.recipe = Recipe("given", tuple(_plain(use) for use in source.recipe.uses))

    @property
    def uses(self) -> tuple[Use, ...]:
        """The columns of the table."""
        return self.recipe.uses

    @property
    def indicators(self) -> np.ndarray:
        """Which columns of rows are 0 and 1 of a level."""
        return np.repeat([bool(use.levels) for use in self.uses], [use.width for use in self.uses])

    def read(self, start: int, stop: int) -> Any:
        """Rows start..stop as float64, NaN where nothing was observed; sparse rows as CSR."""
        if isinstance(self.source, Table):
            return self.recipe.encode(self.source.raw.slice(start, stop, self.recipe.columns))
        return self.source.read(start, stop).astype(np.float64)

    def raw(self, row: int) -> dict[str, Any]:
        """The cells of one row as they were read."""
        if isinstance(self.source, Table):
            cells = self.source.raw.slice(row, row + 1)
            return {name: cells.column(name)[0].as_py() for name in cells.column_names}
        x = self.source.read(row, row + 1)
        x = x.toarray() if sp.issparse(x) else x
        return dict(zip(self.recipe.names, x[0].tolist(), strict=True))


def _plain(use: Use) -> Use:
    width = len(use.levels) if len(use.levels) > 2 else 1
    return Use(use.name, use.kind, (0.0,) * width, 1.0, use.levels)


class Sums(NamedTuple):
    """Sums over each group (K, D), about `centre` (D,); rows and weight of each; some rows, for typical ones."""

    centre: np.ndarray
    N: np.ndarray
    S: np.ndarray
    Q: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    seen: np.ndarray  # rows of the sample
    seen_at: np.ndarray  # their numbers
    seen_of: np.ndarray  # their groups

    def means(self) -> np.ndarray:
        """Means of each group, (K, D); NaN where it has no observed cell."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.S / self.N + self.centre)

    def deviations(self) -> np.ndarray:
        """Standard deviations within each group, (K, D)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(np.maximum(self.Q / self.N - (self.S / self.N) ** 2, 0.0))

    def all(self) -> Sums:
        """The same of all rows as one group."""
        parts = (a.sum(axis=0, keepdims=True) for a in (self.N, self.S, self.Q, self.rows, self.weight))
        N, S, Q, rows, weight = parts
        return self._replace(N=N, S=S, Q=Q, rows=rows, weight=weight)

    def others(self) -> Sums:
        """The same of the rows that are not in each group."""
        whole = self.all()
        names = ("N", "S", "Q", "rows", "weight")
        mine, every = self._asdict(), whole._asdict()
        return self._replace(**{name: every[name] - mine[name] for name in names})


def sums(plain: Plain, labels: Iterable[np.ndarray], w: np.ndarray | None = None) -> Sums:
    """One pass over rows and the labels of their groups, block by block; labels below 0 are of no group."""
    step = max(1, plain.n // SAMPLED)
    out: list[np.ndarray] = []
    centre, kept, at, of = None, [], [], []
    start = 0
    for block in labels:
        label = np.asarray(block, dtype=np.int64).ravel()
        x = plain.read(start, start + len(label))
        if centre is None:
            centre = np.where(plain.indicators, 0.0, _centre(x))  # so that shares of 0 and 1 are exact
        weight = np.ones(len(label)) if w is None else w[start : start + len(label)]
        out = _added(out, _of_block(x, centre, label, weight))
        if not sp.issparse(x):
            first = -start % step
            kept.append(x[first::step].copy())  # a view would hold the whole block
            at.append(np.arange(start + first, start + len(label), step))
            of.append(label[first::step])
        start += len(label)
    if centre is None:
        raise ValueError("the table has no rows: there is nothing to explain")
    seen = np.concatenate(kept) if kept else np.empty((0, len(centre)))
    where, whose = (np.concatenate(a) if a else np.empty(0, np.int64) for a in (at, of))
    N, S, Q, rows, weight = out
    return Sums(centre, N, S, Q, rows, weight, seen, where, whose)


def _centre(x: Any) -> np.ndarray:
    """Where to measure from: near the mean, so that squares lose no digits; of sparse rows 0."""
    if sp.issparse(x):
        return np.zeros(x.shape[1])
    known = np.isfinite(x)
    return np.asarray(np.where(known, x, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _of_block(x: Any, centre: np.ndarray, label: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
    K = max(int(label.max(initial=-1)) + 1, 1)
    inside = np.flatnonzero(label >= 0)
    Z = sp.csr_array((weight[inside], (label[inside], inside)), shape=(K, len(label)))
    rows = np.bincount(label[inside], minlength=K).astype(np.float64)
    total = np.asarray(Z.sum(axis=1)).ravel()
    if sp.issparse(x):
        N = np.broadcast_to(total[:, None], (K, x.shape[1])).copy()
        return [N, (Z @ x).toarray(), (Z @ x.multiply(x)).toarray(), rows, total]
    known = np.isfinite(x)
    away = np.where(known, x - centre, 0.0)
    return [Z @ known.astype(np.float64), Z @ away, Z @ away**2, rows, total]


def _added(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    """Sums of blocks that may have seen different numbers of groups."""
    if not a:
        return b
    K = max(len(a[0]), len(b[0]))
    grown = [[np.concatenate([x, np.zeros((K - len(x), *x.shape[1:]))]) for x in side] for side in (a, b)]
    return [x + y for x, y in zip(*grown, strict=True)]
