"""What is given to be filled, as numbers; and the same thing with its cells filled.

    an array      its cells; those that hold NaN are filled
    a table       its columns by a recipe (`unmix.table`): numbers, and for each level of a category whether it is that

A table is given back as what it came as: a frame of pandas or polars, else an Arrow table. Whole numbers get whole
numbers, categories one of their levels, and nothing that was there is touched.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from unmix.engine.config import get_config
from unmix.engine.sources import as_source
from unmix.engine.sources.arrow import is_frame
from unmix.table.kinds import amounts, is_amount
from unmix.table.recipe import Recipe, Use
from unmix.table.table import Table

WHOLE = ("integer", "count", "boolean")


def is_table(X: Any) -> bool:
    """Whether X has columns of kinds, rather than being an array."""
    records = type(X) is dict or (isinstance(X, list) and bool(X) and isinstance(X[0], dict))
    return records or isinstance(X, (Table, str, os.PathLike)) or is_frame(X)


class Grid:
    """An array of numbers."""

    def __init__(self, X: Any) -> None:
        source = as_source(X)
        if source.sparse:
            raise TypeError(
                "Sparse data was passed for X, but the cells that it does not hold are zeros, not missing: there is "
                "nothing to impute. Use '.toarray()' and NaN for what was not observed."
            )
        self.source, self.whole = source, source.whole(get_config().budget)
        self.x = np.array(self.whole, dtype=np.float64)
        if np.isinf(self.x).any():
            i, j = np.argwhere(np.isinf(self.x))[0]
            raise ValueError(
                f"Input X contains infinity: row {i}, column {j} holds {self.x[i, j]}. Replace it by NaN if it was not "
                "observed, or correct it."
            )
        self.missing = np.isnan(self.x)

    def filled(self, values: np.ndarray) -> np.ndarray:
        """The array with these values in its empty cells."""
        out = np.array(self.whole)
        with np.errstate(over="ignore"):
            out[self.missing] = values[self.missing]
        return out

    def deviations(self, values: np.ndarray) -> np.ndarray:
        """Standard deviations, 0 where a cell was observed."""
        with np.errstate(over="ignore"):
            return np.where(self.missing, values, 0.0).astype(self.whole.dtype)


class Sheet:
    """A table, its columns as numbers by a recipe, and one value for columns that have one."""

    def __init__(self, X: Any, known: Recipe, constants: dict[str, Any]) -> None:
        self.native = X
        self.table = Table.like(X, known)
        self.recipe, self.constants, self.raw = known, constants, self.table.raw
        self.x = np.array(self.table.read(0, self.table.n), dtype=np.float64)
        self.missing = np.repeat(
            np.column_stack([self.empty(use.name) for use in known.uses]), [use.width for use in known.uses], axis=1
        )

    def empty(self, name: str) -> np.ndarray:
        """Which cells of a column hold nothing."""
        column = self._column(name)
        if is_amount(column.type):
            return ~np.isfinite(amounts(column))  # infinities are taken for missing, and said to be
        return np.asarray(column.is_null().to_numpy(zero_copy_only=False))

    def unknown(self) -> list[str]:
        """Columns with levels that the recipe has not seen."""
        new = np.isnan(self.x) & ~self.missing
        uses = zip(self.recipe.uses, self.recipe.spans, strict=True)
        return [use.name for use, (a, _) in uses if use.levels and new[:, a].any()]

    def filled(self, values: np.ndarray) -> Any:
        """The table with these values, in numbers, in its empty cells."""
        import pyarrow as pa

        decoded, put = self.recipe.decode(values), {}
        for use in self.recipe.uses:
            rows = np.flatnonzero(self.empty(use.name))
            if len(rows):
                put[use.name] = rows, native(use, decoded[use.name][rows], self.raw.schema.field(use.name).type)
        for name, value in self.constants.items():
            rows = np.flatnonzero(self.empty(name)) if name in self.raw.names else np.zeros(0, dtype=int)
            if len(rows):
                put[name] = (
                    rows,
                    pa.array([value] * len(rows)).cast(inner(self.raw.schema.field(name).type), safe=False),
                )
        return self._with(put)

    def deviations(self, values: np.ndarray) -> Any:
        """The table with standard deviations in place of cells: 0 where a cell was observed.

        Of a category, and of yes and no, that of its level's being right or wrong, √(p (1 − p)). Columns that are no
        part of the imputation, such as names of the rows, dates and text, are as they were: they tell whose row it is.
        """
        out, at = {}, 0
        for use in self.recipe.uses:
            own = values[:, at : at + use.width] * (1.0 if use.levels or use.kind == "boolean" else use.scale)
            out[use.name] = np.where(self.empty(use.name), own[:, 0], 0.0)
            at += use.width
        out |= {name: np.zeros(self.raw.n) for name in self.constants if name in self.raw.names}
        return self._replaced(out)

    def _column(self, name: str) -> Any:
        import pyarrow as pa

        column = self.raw.slice(0, self.raw.n, [name]).column(0)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def _replaced(self, columns: dict[str, np.ndarray]) -> Any:
        """The table as what it came as, with columns of numbers in place of some of its own."""
        import pyarrow as pa

        home = kind(self.native)
        if home == "pandas":
            out, first = self.native.copy(), len(self.raw.names) - self.native.shape[1]
            for name, column in columns.items():
                if (j := self.raw.names.index(name) - first) >= 0:
                    out.isetitem(j, column)
            return out
        if home == "polars":
            return collected(self.native).with_columns([framed(pa.array(x)).alias(name) for name, x in columns.items()])
        table = self.raw.slice(0, self.raw.n)
        for name, column in columns.items():
            table = table.set_column(table.column_names.index(name), name, pa.array(column))
        return table

    def _with(self, put: dict[str, tuple[np.ndarray, Any]]) -> Any:
        """The table as what it came as, with cells put in."""
        home = kind(self.native)
        if home == "pandas":
            out, first = self.native.copy(), len(self.raw.names) - self.native.shape[1]
            for name, (rows, cells) in put.items():
                j = self.raw.names.index(name) - first
                if j >= 0:
                    out.isetitem(j, put_into(out.iloc[:, j].copy(), rows, cells))
            return out
        columns = {name: placed(self._column(name), *cells) for name, cells in put.items()}
        if home == "polars":
            frame = collected(self.native)
            new = [framed(column).alias(name).cast(frame.schema[name]) for name, column in columns.items()]
            return frame.with_columns(new)
        table = self.raw.slice(0, self.raw.n)
        for name, column in columns.items():
            j = table.column_names.index(name)
            table = table.set_column(j, name, column.cast(table.schema.field(name).type))
        return table


def kind(X: Any) -> str:
    """Whose frame it is."""
    home = type(X).__module__.partition(".")[0]
    return home if home in ("pandas", "polars") else "arrow"


def durations(X: Any, names: list[str]) -> list[str]:
    """Columns of a frame that hold durations, by their names in a table, whose last ones are those of the frame."""
    home = kind(X)
    if home == "polars":
        import polars

        return [name for name, t in X.lazy().collect_schema().items() if t == polars.Duration]
    held = [t.kind == "m" for t in X.dtypes] if home == "pandas" else []
    return [name for name, long in zip(names[len(names) - len(held) :], held, strict=True) if long]


def collected(frame: Any) -> Any:
    """A frame of polars that is not lazy."""
    return frame.collect() if type(frame).__name__ == "LazyFrame" else frame


def put_into(column: Any, rows: np.ndarray, cells: Any) -> Any:
    """A column of pandas with cells put into rows; those of a category come as text, and levels may be numbers."""
    import pyarrow as pa

    values = cells.to_pylist()
    if column.dtype.name == "category":
        levels = column.cat.categories
        try:
            values = cells.cast(pa.array(levels, from_pandas=True).type).to_pylist()
        except pa.ArrowException:  # levels of several types
            values = [{str(level): level for level in levels}.get(v, v) for v in values]
        column = column.cat.add_categories([level for level in dict.fromkeys(values) if level not in levels])
    column.iloc[rows] = values
    return column


def framed(data: Any) -> Any:
    """Arrow data as polars has it."""
    import polars

    return polars.from_arrow(data)


def inner(t: Any) -> Any:
    """The type of a column's values."""
    import pyarrow as pa

    return t.value_type if pa.types.is_dictionary(t) else t


def native(use: Use, values: np.ndarray, t: Any) -> Any:
    """Cells of a column as Arrow has them: numbers, whole ones where the column's are, or levels by their shares."""
    import pyarrow as pa

    if use.levels:
        return pa.array([use.levels[i] for i in values.argmax(axis=1)], pa.string()).cast(inner(t))
    if use.kind in WHOLE:
        values = np.round(values)
    if pa.types.is_boolean(t):
        return pa.array(values > 0.5)
    return pa.array(values).cast(t, safe=False)


def placed(column: Any, rows: np.ndarray, cells: Any) -> Any:
    """An Arrow column with cells put into rows."""
    import pyarrow as pa

    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    at = np.arange(len(column))
    at[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, cells.cast(column.type)]).take(pa.array(at))
