"""From the rows of a run to its blocks, and from blocks to statistics: what every runner executes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine import tree
from unmix.engine.block import Block
from unmix.engine.layout import Run
from unmix.engine.sources.arrays import csr_of


class Rules(NamedTuple):
    """Which cells a model accepts."""

    missing: bool
    nonnegative: bool
    owner: str
    names: tuple[str, ...] | None = None

    def column(self, j: int) -> str:
        """How to call column j to a person."""
        return f"column {j}" if self.names is None else f"column {self.names[j]!r}"


class Seen(NamedTuple):
    """What the first look at some rows showed: whether cells are missing, and which columns have any value."""

    missing: bool
    columns: np.ndarray

    def __or__(self, other: Seen) -> Seen:
        """What two looks showed together."""
        return Seen(self.missing or other.missing, self.columns | other.columns)


class Rows:
    """The rows of one run in memory, with their weights; `holes` remembers which blocks (by first row) miss cells."""

    def __init__(self, run: Run, x: Any, w: np.ndarray | None, rules: Rules, holes: dict[int, bool]) -> None:
        self.run, self.x, self.w, self.rules, self.holes = run, x, w, rules, holes

    def blocks(self) -> Iterator[Block]:
        """The blocks in order; cells that were not observed hold 0 and are False in `observed`."""
        for a, b in zip(self.run.bounds, self.run.bounds[1:], strict=False):
            i, j = a - self.run.start, b - self.run.start
            w = None if self.w is None else self.w[i:j]
            x = cut(self.x, i, j)
            if a not in self.holes:
                self.holes[a] = inspect(x, a, self.rules)
            if self.holes[a]:
                observed = ~np.isnan(x)
                yield Block(np.where(observed, x, x.dtype.type(0)), w, None, observed, a)
            else:
                yield Block(x, w, None, None, a)

    def seen(self) -> Seen:
        """What the first look showed; only after the blocks were visited."""
        missing = any(self.holes[a] for a in self.run.bounds[:-1])
        if not missing:
            return Seen(False, np.full(self.x.shape[1], self.w is None or bool((self.w > 0).any())))
        x = self.x if self.w is None else self.x[self.w > 0]  # a row of no weight is no row
        return Seen(True, ~np.isnan(x).all(axis=0))


def cut(x: Any, i: int, j: int) -> Any:
    """Rows i to j without a copy."""
    if not sp.issparse(x):
        return x[i:j]
    if i == 0 and j == x.shape[0]:
        return x
    p, q = x.indptr[i], x.indptr[j]
    return csr_of(x.data[p:q], x.indices[p:q], x.indptr[i : j + 1] - p, (j - i, x.shape[1]))


def inspect(x: Any, start: int, rules: Rules) -> bool:
    """Whether cells are missing; raises where a cell is one that the model cannot take."""
    values = x.data if sp.issparse(x) else x
    missing = False
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = values.size and not np.isfinite(values.sum())
    if suspicious:
        nan = np.isnan(values)
        missing = bool(nan.any())
        inf = np.isinf(values)
        if inf.any():
            raise ValueError(
                f"Input X contains infinity or a value too large for {values.dtype}: {_where(x, inf, start, rules)}. "
                "Replace it by NaN if it was not observed, or correct it."
            )
        if missing and not rules.missing:
            raise ValueError(
                f"Input X contains NaN: {_where(x, nan, start, rules)}. {rules.owner} needs every cell: "
                "impute the missing ones or drop those rows."
            )
        if missing and sp.issparse(x):
            raise ValueError(
                f"Input X contains NaN: {_where(x, nan, start, rules)}. A sparse X cannot mark a cell as missing: "
                "pass a dense X, or drop those rows."
            )
    if rules.nonnegative and values.size:
        negative = values < 0
        if negative.any():
            raise ValueError(
                f"Negative values in data passed to {rules.owner}: {_where(x, negative, start, rules)}. "
                "It needs X >= 0: shift, clip or take another model."
            )
    return missing


def _where(x: Any, flags: np.ndarray, start: int, rules: Rules) -> str:
    """Row, column and value of the first flagged cell."""
    first = int(np.argmax(flags.ravel()))
    if sp.issparse(x):
        i, j, value = int(np.searchsorted(x.indptr, first, side="right")) - 1, int(x.indices[first]), x.data[first]
    else:
        i, j = divmod(first, x.shape[1])
        value = x[i, j]
    return f"row {start + i}, {rules.column(j)} holds {value}"


class Swept(NamedTuple):
    """What one run hands back: (stats, loss) for each set of parts, the new z of each block, the first look."""

    sums: list[tuple[Any, float]]
    z: list[list[Any]] | None
    seen: Seen


def sweep(
    model: Any, rows: Rows, states: list[Any], z: list[list[Any]] | None, keep: bool, closing: bool = False
) -> Swept:
    """One pass of several sets of parts over one run: each block is read once and used by all of them."""
    states = [tree.settle(U, rows.x.dtype) for U in states]
    sums: list[Any] = [None] * len(states)
    new: list[list[Any]] = [[] for _ in states]
    for i, b in enumerate(rows.blocks()):
        for s, U in enumerate(states):
            before = None if z is None or z[s] is None else z[s][i]
            out = model.local(U, b._replace(z=before, closing=closing))
            pair = (out.stats, float(out.loss))
            sums[s] = tree.double(pair) if sums[s] is None else tree.add_into(sums[s], pair)
            if keep:
                new[s].append(tree.settle(out.z))
    return Swept(sums, new if keep else None, rows.seen())


def apply(model: Any, rows: Rows, U: Any, method: str) -> list[Any]:
    """A method of the model, row block by row block, at fixed parts."""
    U = tree.settle(U, rows.x.dtype)
    f: Callable[[Any, Block], Any] = getattr(model, method)
    return [f(U, b) for b in rows.blocks()]


def concatenate(parts: list[Any]) -> Any:
    """The blocks' trees as one tree of all rows."""
    first = parts[0]
    if isinstance(first, tuple):
        return tree.rebuild(first, (concatenate(list(p)) for p in zip(*parts, strict=True)))
    if first is None:
        return None
    return sp.vstack(parts, format="csr") if sp.issparse(first) else np.concatenate(parts)
