"""What all sections of a report look at: the table, some of its rows, and what one section found for the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unmix.table import Table, TableError
from unmix.table.part import rows_of

ROWS = 5_000  # that are looked at, spread evenly over longer tables


@dataclass
class View:
    """A table as a report looks at it."""

    table: Table
    whole: str  # the lines of Python that open it
    seed: int
    tell: Callable[[str], None]
    some: Table = field(init=False)
    numbers: np.ndarray = field(init=False)  # which rows of the table these are
    x: np.ndarray = field(init=False)  # these rows, columns of variance 1
    usual: Table = field(init=False)  # `some` without the rows that do not fit, where these are few
    left_out: bool = False  # whether there are such rows
    fits: np.ndarray = field(init=False)  # which rows of `some` these are
    components: Any = None  # principal components of `x`, once they are known
    axes: str = ""  # what the first two of them are made of, in a sentence

    def __post_init__(self) -> None:
        self.some = self.table.part(ROWS).suited("standardised")
        self.numbers = rows_of(self.table.n, ROWS)
        self.x = self.some.read(0, self.some.n).astype(np.float64)
        self.usual, self.fits = self.some, np.ones(self.some.n, bool)

    def leave_out(self, odd: np.ndarray) -> None:
        """Rows that do not fit, which would be groups of their own and make the units of columns theirs."""
        try:
            self.usual, self.left_out, self.fits = self.some.only(~odd).suited("standardised"), True, ~odd
        except TableError:  # without them no column varies
            return

    @property
    def given(self) -> str:
        """The lines of Python that give the rows that are looked at."""
        return f"{self.whole}\ntable = table.part({ROWS})" if self.partial else self.whole

    @property
    def opening(self) -> str:
        """The lines of Python that give the table without the rows that do not fit."""
        if not self.left_out:
            return self.given
        odd = f"odd = unmix.OutlierDetector(random_state={self.seed}).fit_predict(table) < 0"
        return f"{self.given}\n{odd}\nusual = table.only(~odd)"

    @property
    def named(self) -> str:
        """What that table is called there."""
        return "usual" if self.left_out else "table"

    @property
    def partial(self) -> bool:
        """Whether only some rows are looked at."""
        return self.some.n < self.table.n

    @property
    def looked_at(self) -> str:
        """Which rows, in words."""
        return f"{self.some.n:,} rows, spread evenly over the {self.table.n:,}" if self.partial else "all rows"

    @property
    def rows(self) -> str:
        """The rows that are looked at, as a sentence calls them."""
        return f"{self.some.n:,} rows looked at" if self.partial else "rows"

    @property
    def holes(self) -> bool:
        """Whether cells are missing in columns that are used."""
        return any(c.seen.missing for c in self.table.columns if c.role == "used")

    def name_of(self, row: int) -> str:
        """What a row of `some` is called: its number among all rows, and its identifiers."""
        ids = self.some.role("id")
        cells = self.some.raw.slice(row, row + 1, ids) if ids else None
        told = [] if cells is None else [str(cells.column(c)[0].as_py()) for c in ids]
        return ", ".join([f"row {self.numbers[row] + 1:,}", *told])
