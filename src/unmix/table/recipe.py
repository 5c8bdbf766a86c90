"""How columns of a table become numbers that a model can compare, and back.

Each column x of the table gives one or more columns of rows, of total variance 1:

    a number           (x − mean) / sd
    yes and no         the same, of 0 and 1; so does a category of two levels
    a category         ([x = l] − p_l) / √(1 − Σ p_l²)        for each level l, whose share is p_l

so that a step of one standard deviation counts as much in each, and a category as much as a number. A recipe says by
`how`: "standardised" as above; "scaled" without taking the means off, for models of what is never negative; "given",
numbers as they are and categories as 0 and 1; "coded", numbers as they are and categories as 0, 1, 2, …, for models
that know what a category is. An empty cell, and a level that the recipe has not seen, is NaN: not observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from unmix.table.kinds import Column, Seen, is_amount, numbers, text_of

HOWS = ("standardised", "scaled", "given", "coded")
LARGE = 2.0**900  # a scale beyond which a cell and its column's mean may be further apart than float64 can say
EQUALS = " = "  # between a column's name and a level, where levels are columns of rows


class Use(NamedTuple):
    """What is made of one column: (x − center) / scale; `levels` of categories, for which these are shares."""

    name: str
    kind: str
    centers: tuple[float, ...]
    scale: float
    levels: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many columns of rows it gives."""
        return len(self.centers)

    @property
    def deviations(self) -> list[float]:
        """Standard deviations of these, in the rows of the fit, where they are standardised."""
        if self.width == 1:
            return [1.0]
        return [float(np.sqrt(p * (1 - p)) / self.scale) for p in self.centers]

    @property
    def names(self) -> list[str]:
        """Names of these."""
        if not self.levels:
            return [self.name]
        shown = self.levels[1:] if self.width == 1 else self.levels
        return [f"{self.name}{EQUALS}{level}" for level in shown]

    def encode(self, column: Any) -> np.ndarray:
        """Cells of an Arrow column as rows of numbers."""
        if not self.levels:
            x = numbers(column, self.name)[:, None]
        else:
            x = self._indicators(codes(column, self.levels))
        unit = self.unit
        return (x / unit - np.array(self.centers) / unit) / (self.scale / unit)

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Rows of numbers in the units of the table."""
        unit = self.unit
        with np.errstate(over="ignore"):
            return np.asarray((rows * (self.scale / unit) + np.array(self.centers) / unit) * unit)

    @property
    def unit(self) -> float:
        """What cells are divided by before they are subtracted from each other, a power of two."""
        return 4.0 if self.scale > LARGE else 1.0

    def _indicators(self, code: np.ndarray) -> np.ndarray:
        if self.width == 1:  # 0 and 1 of two levels; or codes, whose center is 0
            return code[:, None]
        return np.where(np.isnan(code)[:, None], np.nan, code[:, None] == np.arange(self.width))


class Recipe(NamedTuple):
    """What is made of a table's columns, in the order of the rows' columns."""

    how: str
    uses: tuple[Use, ...]
    whole: bool = False  # it takes every column of a table: others must have the same, in order

    @property
    def names(self) -> list[str]:
        """Names of the rows' columns."""
        if self.how == "coded":
            return self.columns
        names: dict[str, int] = {}
        for name in (name for use in self.uses for name in use.names):
            names[name if name not in names else f"{name} ({len(names)})"] = 1  # "a = b" may be a column's own name
        return list(names)

    @property
    def columns(self) -> list[str]:
        """Names of the table's columns."""
        return [use.name for use in self.uses]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the columns of rows of each of the table's columns begin and end."""
        return list(pairwise(accumulate((use.width for use in self.uses), initial=0)))

    @property
    def kinds(self) -> tuple[str, ...] | None:
        """What each column of rows holds, where a model is to know; None where all are numbers like any."""
        return tuple(use.kind for use in self.uses) if self.how == "coded" else None

    @property
    def levels(self) -> tuple[int, ...] | None:
        """How many levels each column of rows has, 0 for numbers, where a model is to know."""
        return tuple(len(use.levels) for use in self.uses) if self.how == "coded" else None

    def fits(self, d: int) -> bool:
        """Whether it gives d columns of finite numbers, as it should in a file."""
        numbers = [v for use in self.uses for v in (*use.centers, use.scale)]
        known = all(use.scale > 0 and use.width == self._width(use) for use in self.uses)
        return self.how in HOWS and known and bool(np.isfinite(numbers).all()) and sum(u.width for u in self.uses) == d

    def _width(self, use: Use) -> int:
        return len(use.levels) if len(use.levels) > 2 and self.how != "coded" else 1

    def encode(self, table: Any) -> np.ndarray:
        """Columns of an Arrow table as rows of numbers."""
        out = np.empty((table.num_rows, sum(use.width for use in self.uses)))
        at = 0
        for use in self.uses:
            out[:, at : at + use.width] = use.encode(table.column(use.name))
            at += use.width
        return out

    def decode(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Rows of numbers (m, d) by column, in the units of the table: numbers (m,), of categories shares (m, levels).

        Of a mean of rows these are the means and the shares of the rows' cells.
        """
        out: dict[str, np.ndarray] = {}
        at = 0
        for use in self.uses:
            x = use.decode(rows[:, at : at + use.width])
            at += use.width
            if use.levels and use.width == 1 and self.how != "coded":
                x = np.column_stack([1.0 - x, x])
            out[use.name] = x if use.levels and self.how != "coded" else x[:, 0]
        return out


def recipe(columns: Sequence[Column], how: str) -> Recipe:
    """The recipe for the columns that are used."""
    return Recipe(how, tuple(use(c.seen, c.kind, how) for c in columns if c.role == "used"))


def use(seen: Seen, kind: str, how: str) -> Use:
    """What is made of a column of this kind."""
    import pyarrow as pa

    comparable = how in ("standardised", "scaled")
    if kind != "category":
        center = seen.mean if how == "standardised" else 0.0
        return Use(seen.name, kind, (center,), (seen.deviation if comparable else 0.0) or 1.0, ())
    counts = seen.levels or {}
    levels = sorted(counts, key=in_order)
    told = pa.array(levels)
    if is_amount(seen.type):  # which were counted as numbers
        told = told.cast(seen.type, safe=False)
    known = tuple(text_of(told).to_pylist())
    if how == "coded":
        return Use(seen.name, kind, (0.0,), 1.0, known)
    share = np.array([counts[level] for level in levels], dtype=np.float64) / seen.filled
    spread = float(np.sqrt(1.0 - (share**2).sum()))
    if len(levels) == 2:
        share, spread = share[1:], spread / np.sqrt(2.0)  # two columns that mirror each other are one
    centers = share if how == "standardised" else np.zeros(len(share))
    return Use(seen.name, kind, tuple(centers.tolist()), spread if comparable else 1.0, known)


def in_order(value: Any) -> tuple[int, float, str]:
    """Numbers before texts, so that a recipe does not depend on which level came first."""
    try:
        return 0, float(value), str(value)
    except ValueError:
        return 1, 0.0, str(value)


def codes(column: Any, levels: Sequence[str]) -> np.ndarray:
    """Which level each cell has, NaN where it is missing or unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    at = pc.index_in(text_of(column), pa.array(levels, pa.string()))
    return np.asarray(at.cast(pa.float64()).to_numpy(zero_copy_only=False))
