"""What all sections of a report look at: the table, some of its rows, and what one section found for the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unmix.table import Table
from unmix.table.part import part_of, rows_of

ROWS = 5_000  # that are looked at, spread evenly over longer tables


@dataclass
class View:
    """A table as a report looks at it."""

    table: Table
    given: str  # the line of Python that opens it
    seed: int
    tell: Callable[[str], None]
    some: Table = field(init=False)
    numbers: np.ndarray = field(init=False)  # which rows of the table these are
    x: np.ndarray = field(init=False)  # these rows, columns of variance 1
    usual: np.ndarray | None = None  # how often each row counts where odd ones are few: these not at all
    components: Any = None  # principal components of `x`, once they are known
    labels: np.ndarray | None = None  # the group of each row of `some`, once there are groups

    def __post_init__(self) -> None:
        self.some = part_of(self.table, ROWS).suited("standardised")
        self.numbers = rows_of(self.table.n, ROWS)
        self.x = self.some.read(0, self.some.n).astype(np.float64)

    @property
    def without_odd(self) -> str:
        """The lines of Python, and the argument, by which odd rows do not count."""
        if self.usual is None:
            return ""
        return f"odd = unmix.OutlierDetector(random_state={self.seed}).fit_predict(table) < 0\n"

    @property
    def partial(self) -> bool:
        """Whether only some rows are looked at."""
        return self.some.n < self.table.n

    @property
    def looked_at(self) -> str:
        """Which rows, in words."""
        return f"{self.some.n:,} rows, spread evenly over the {self.table.n:,}" if self.partial else "all rows"

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
