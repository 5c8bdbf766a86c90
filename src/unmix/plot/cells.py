"""A picture of what is missing: where cells are empty, and which are empty together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources import as_source
from unmix.engine.sources.arrow import is_frame
from unmix.explanation.words import percent
from unmix.plot.canvas import FILL, SMALL, at_least, bare, panels, plain, titled
from unmix.table import Table
from unmix.table.table import read

ROWS = 200  # bins of rows
COLUMNS = 40  # columns that have a line of their own; more share bins
NARROW = 100  # bins of columns
PATTERNS = 12  # of empty cells
OF_NUMBERS = (".npy", ".npz", ".zarr")  # files without words, whose rows are read block by block
BLOCK = 4 << 20  # cells that are looked at at a time


class Holes(NamedTuple):
    """Empty cells, counted: per bin of rows and column, and rows by which of their cells are empty (packed bits)."""

    names: list[str]
    rows: np.ndarray  # in each bin
    empty: np.ndarray  # (bins, d)
    patterns: Counter[bytes]


def missing(X: Any, ax: Any = None, *, patterns: int = PATTERNS) -> Any:
    """Draw where cells are empty, and which are empty together.

    Parameters
    ----------
    X : Table, data frame, array, file, or what else has rows
        Read once, block by block. In arrays NaN is an empty cell, in sparse rows what was not observed.
    ax : sequence of two matplotlib Axes, or one that both pictures share, optional
        Where to draw; by default in a figure of its own.
    patterns : int, default=12
        Patterns of empty cells that are shown, the most frequent first.

    Returns
    -------
    ax : array of two matplotlib Axes
        On the left rows from left to right and columns from top to bottom, darker where more cells are empty; on the
        right which columns are empty together, and in which share of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import unmix
    >>> X = np.arange(40.0).reshape(10, 4)
    >>> X[2:5, 1:3] = np.nan
    >>> left, right = unmix.plot.missing(X)
    >>> left.get_title(loc="left")
    '15% of the cells are empty'
    """
    at_least(1, patterns=patterns)
    holes = count_holes(X)
    n, d = int(holes.rows.sum()), len(holes.names)
    if not n:
        raise ValueError("X has no rows: there is nothing to show")
    share = holes.empty.sum(axis=0) / n
    wide = d > COLUMNS
    most = np.sort(np.argsort(-share, kind="stable")[: COLUMNS // 2]) if wide else np.arange(d)
    common = together(holes, most, d).most_common(patterns)
    height = min(1.6 + 0.24 * min(d, COLUMNS), 9.0)
    (left, right), own = panels(ax, [1.7, 1.0 if not wide else 1.5], 8.4, max(height, 2.8))
    shares = holes.empty / holes.rows[:, None]
    edges = np.linspace(0, d, min(d, NARROW) + 1).astype(int) if wide else np.arange(d + 1)
    shades = np.stack([shares[:, a:b].mean(axis=1) for a, b in pairwise(edges)])
    left.imshow(
        shades, cmap="Blues", vmin=0, vmax=1, aspect="auto", extent=(0, n, d - 0.5, -0.5), interpolation="nearest"
    )
    left.set_xlabel(f"row, of {n:,}")
    if wide:
        left.set_ylabel(f"column, of {d:,}")
    else:
        names_beside(left, holes.names, share, np.arange(d))
    titled(left, f"{percent(float(share.mean()))} of the cells are empty", small=not own)
    bare(left, "left", "bottom", "top", "right")
    for x, (pattern, _) in enumerate(common):
        gone = np.flatnonzero(np.frombuffer(pattern, bool))
        right.plot(np.full(len(most), x), np.arange(len(most)), "s", color="0.9", ms=6, mew=0)
        right.plot(np.full(len(gone), x), gone, "s", color=FILL, ms=6, mew=0)
    right.set(xlim=(-0.6, len(common) - 0.4), ylim=(len(most) - 0.5, -0.5))
    right.set_xticks(range(len(common)), [percent(rows / n) for _, rows in common], rotation=90, fontsize=SMALL)
    if wide:
        names_beside(right, holes.names, share, most)
    else:
        right.set_yticks([])
    right.tick_params(length=0)
    right.set_xlabel("share of the rows")
    many = len(together(holes, most, d))
    more = f": {len(common)} of {many:,} patterns" if many > len(common) else ""
    titled(right, (f"{len(most)} emptiest columns" if wide else "Empty together") + more, small=not own)
    bare(right)
    return np.array([left, right], dtype=object)


def names_beside(ax: Any, names: list[str], share: np.ndarray, which: np.ndarray) -> None:
    """Columns by name, and how much of each is empty."""
    told = [f"{plain(names[j])}  {percent(float(share[j])) if share[j] else '·'}" for j in which]
    ax.set_yticks(range(len(which)), told, fontsize=SMALL)
    ax.tick_params(axis="y", length=0)


def together(holes: Holes, which: np.ndarray, d: int) -> Counter[bytes]:
    """How many rows have which of these columns empty, as bytes of 0 and 1."""
    out: Counter[bytes] = Counter()
    for bits, rows in holes.patterns.items():
        out[np.unpackbits(np.frombuffer(bits, np.uint8), count=d)[which].tobytes()] += rows
    return out


def count_holes(X: Any) -> Holes:
    """Look at every cell once."""
    names, n, blocks = opened(X)
    bins = max(1, min(n, ROWS))
    rows, count, patterns, at = np.zeros(bins, int), np.zeros((bins, len(names))), Counter[bytes](), 0
    for empty in blocks:
        if not len(empty):
            continue
        bin_ = (np.arange(at, at + len(empty)) * bins) // n
        starts = np.flatnonzero(np.diff(bin_, prepend=-1))
        count[bin_[starts]] += np.add.reduceat(empty, starts, axis=0, dtype=np.int64)
        rows += np.bincount(bin_, minlength=bins)
        packed, times = np.unique(np.packbits(empty, axis=1), axis=0, return_counts=True)
        for row, number in zip(packed, times.tolist(), strict=True):
            patterns[row.tobytes()] += number
        at += len(empty)
    return Holes(names, rows, count, patterns)


def opened(X: Any) -> tuple[list[str], int, Iterator[np.ndarray]]:
    """Names of the columns, how many rows, and which cells are empty, block by block."""
    suffix = Path(X).suffix.lower() if isinstance(X, (str, Path)) else None
    if isinstance(X, (Table, dict)) or is_frame(X) or (suffix is not None and suffix not in OF_NUMBERS):
        raw = X.raw if isinstance(X, Table) else read(X)
        return [str(name) for name in raw.names], raw.n, _of_table(raw)
    source = as_source(X)
    names = [f"x{j}" for j in range(source.d)] if source.names is None else [str(name) for name in source.names]
    return names, source.n, _of_rows(source)


def _of_table(raw: Any) -> Iterator[np.ndarray]:
    """Empty cells of all columns, also of those that models do not use."""
    import pyarrow.compute as pc

    step = max(1, BLOCK // len(raw.names))
    for a in range(0, raw.n, step):
        some = raw.slice(a, min(a + step, raw.n), raw.names)
        yield np.stack([pc.is_null(c, nan_is_null=True).to_numpy() for c in some.columns], axis=1)


def _of_rows(source: Any) -> Iterator[np.ndarray]:
    """NaN, and what sparse rows say was not observed."""
    step = max(1, BLOCK // source.d)
    bounds = list(pairwise([*range(0, source.n, step), source.n]))
    for block in source.batches(bounds):
        x = block()
        if not sp.issparse(x):
            yield np.isnan(x)
            continue
        empty = np.full(x.shape, source.absent == "unobserved")
        row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        empty[row, x.indices] = np.isnan(x.data)
        yield empty
