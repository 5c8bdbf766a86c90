"""From the rows of a run to its blocks, and from blocks to statistics: what every runner executes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine import tree
from unmix.engine.block import Block
from unmix.engine.layout import Run
from unmix.engine.range import check_range
from unmix.engine.sources.arrays import csr_of, entries

FAR = 1e-3  # of the numbers whose squares a precision holds


class Rules(NamedTuple):
    """Which cells a model accepts."""

    missing: bool
    nonnegative: bool
    owner: str
    names: tuple[str, ...] | None = None
    absent: bool = False  # whether entries that CSR rows do not hold were not observed
    empty_columns: bool = False  # whether a column may have no observed cell
    power: int = 0  # of cells, that must stay in the range of the rows' precision; 0: the model sees to it
    double: bool = False  # in that of float64

    @classmethod
    def of(cls, model: Any, source: Any) -> Rules:
        """The rules of a model for the cells of a source."""
        names = source.names and tuple(source.names)
        absent = source.sparse and model.absent == "unobserved"
        takes = model.missing, model.nonnegative, type(model).__name__, names, absent, model.empty_columns
        return cls(*takes, model.power, model.double)

    def column(self, j: int) -> str:
        """What to call column j in a message."""
        return f"column {j}" if self.names is None else f"column {self.names[j]!r}"


class Seen(NamedTuple):
    """What the first look at some rows showed: whether cells are missing, and which columns have any value.

    Of complete rows that is one truth value for all columns.
    """

    missing: bool
    columns: Any

    def __or__(self, other: Seen) -> Seen:
        """What two looks showed together."""
        return Seen(self.missing or other.missing, self.columns | other.columns)


class Rows:
    """The rows of one run in memory, with their weights; `holes` remembers which blocks (by first row) miss cells."""

    def __init__(self, run: Run, x: Any, w: np.ndarray | None, rules: Rules, holes: dict[int, bool]) -> None:
        self.run, self.x, self.w, self.rules, self.holes = run, x, w, rules, holes
        self.looked: tuple[list[Block], Seen] | None = None  # where they are kept

    def kept(self) -> Rows:
        """The same rows, whose blocks are cut and looked at once for many passes."""
        self.looked = list(self.blocks()), self.seen()
        return self

    def blocks(self) -> Iterator[Block]:
        """The blocks in order; cells that were not observed hold 0 and are False in `observed`.

        Where absent entries were not observed, a stored NaN becomes an absent entry.
        """
        if self.looked is not None:
            yield from self.looked[0]
            return
        absent = self.rules.absent
        for a, b in zip(self.run.bounds, self.run.bounds[1:], strict=False):
            i, j = a - self.run.start, b - self.run.start
            w = None if self.w is None else self.w[i:j]
            x = cut(self.x, i, j)
            if a not in self.holes:
                self.holes[a] = inspect(x, a, self.rules)
            if absent:
                yield Block(without_nan(x) if self.holes[a] else x, w, None, None, a, False, True)
            elif self.holes[a]:
                observed = ~np.isnan(x)
                yield Block(np.where(observed, x, x.dtype.type(0)), w, None, observed, a)
            else:
                yield Block(x, w, None, None, a)

    def seen(self) -> Seen:
        """What the first look showed; only after the blocks were visited."""
        if self.looked is not None:
            return self.looked[1]
        missing = any([self.holes[a] for a in self.run.bounds[:-1]])
        if self.rules.absent:
            return Seen(True, held_columns(without_nan(self.x) if missing else self.x, self.w))
        if not missing:
            return Seen(False, np.True_ if self.w is None else (self.w > 0).any())
        x = self.x if self.w is None else self.x[self.w > 0]  # a row of weight 0 does not count
        return Seen(True, ~np.isnan(x).all(axis=0))


def cut(x: Any, i: int, j: int) -> Any:
    """Rows i to j without a copy."""
    if isinstance(x, np.ndarray):
        return x[i:j]
    if i == 0 and j == x.shape[0]:
        return x
    p, q = x.indptr[i], x.indptr[j]
    return csr_of(x.data[p:q], x.indices[p:q], x.indptr[i : j + 1] - p, (j - i, x.shape[1]))


def without_nan(x: Any) -> Any:
    """CSR rows whose stored NaN are absent entries."""
    return entries(x, ~np.isnan(x.data))


def held_columns(x: Any, w: np.ndarray | None) -> np.ndarray:
    """Which columns of CSR rows hold an entry in a row of positive weight."""
    columns = x.indices if w is None else x.indices[np.repeat(w > 0, np.diff(x.indptr))]
    out = np.zeros(x.shape[1], bool)
    out[columns] = True
    return out


def squares(cells: np.ndarray) -> float:
    """Their sum, which is finite only where every cell is."""
    return float(np.vdot(cells, cells))


def inspect(x: Any, start: int, rules: Rules) -> bool:
    """Whether cells are missing; raises where a cell is one that the model cannot take."""
    values = x if isinstance(x, np.ndarray) else x.data
    missing = False
    if values.size and not np.isfinite(squares(values)):
        nan = np.isnan(values)
        missing = bool(nan.any())
        inf = np.isinf(values)
        if inf.any():
            raise ValueError(
                f"Input X contains infinity or a value too large for {values.dtype}: {_where(x, inf, start, rules)}. "
                "Replace it by NaN if it was not observed, or correct it."
            )
        if missing and not rules.missing and not rules.absent:
            raise ValueError(
                f"Input X contains NaN: {_where(x, nan, start, rules)}. {rules.owner} needs every cell: "
                "impute the missing ones or drop those rows."
            )
        if missing and sp.issparse(x) and not rules.absent:
            raise ValueError(
                f"Input X contains NaN: {_where(x, nan, start, rules)}. A sparse X cannot mark a cell as missing: "
                "pass a dense X, or drop those rows."
            )
        if not missing or not np.isfinite(squares(values[~nan])):
            check_range(values[~nan], x.shape[1], rules)
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
    """One pass of several sets of parts over one run: each block is read once and used by all of them.

    Parts come in order and in float64, as whoever made them left them.
    """
    if rows.x.dtype != tree.DOUBLE:
        states = [tree.settle(U, rows.x.dtype) for U in states]
    sums: list[Any] = [None] * len(states)
    new: list[list[Any]] = [[] for _ in states]
    for i, b in enumerate(rows.blocks()):
        for s, U in enumerate(states):
            before = None if z is None or z[s] is None else z[s][i]
            out = model.local(U, b._replace(z=before, closing=closing) if closing or before is not None else b)
            sums[s] = added(model, sums[s], (out.stats, float(out.loss)))
            if keep:
                new[s].append(tree.settle(out.z))
    return Swept(sums, new if keep else None, rows.seen())


def added(model: Any, total: Any, pair: tuple[Any, float]) -> tuple[Any, float]:
    """(stats, loss) of rows and of those after them; the first ones are taken over."""
    if total is None:
        return tree.double(pair)  # type: ignore[no-any-return]
    return model.combine(total[0], pair[0]), total[1] + pair[1]


def apply(model: Any, rows: Rows, U: Any, method: str) -> list[Any]:
    """A method of the model, row block by row block, at fixed parts."""
    U = tree.settle(U, rows.x.dtype)
    f: Callable[[Any, Block], Any] = getattr(model, method)
    out = []
    for b in rows.blocks():
        out.append(f(U, b))
        if method == "encode" and not tree.finite(out[-1]):
            refuse_far(b.x)
    return out


def refuse_far(x: Any) -> None:
    """Refuse rows whose z is not finite because their squares are not."""
    size = float(np.abs(x.data if sp.issparse(x) else x).max(initial=0))
    if size > FAR * np.sqrt(np.finfo(x.dtype).max):
        raise ValueError(
            f"X reaches {size:.0e} in size, and squares of that are beyond {x.dtype}: are its units those of the rows "
            "that the model was fitted to?"
        )


def concatenate(parts: list[Any]) -> Any:
    """The blocks' trees as one tree of all rows."""
    first = parts[0]
    if isinstance(first, tuple):
        return tree.rebuild(first, (concatenate(list(p)) for p in zip(*parts, strict=True)))
    if first is None:
        return None
    return sp.vstack(parts, format="csr") if sp.issparse(first) else np.concatenate(parts)
