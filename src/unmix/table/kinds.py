"""What each column of a table holds: numbers, counts, yes and no, categories, dates, identifiers or free text.

One pass looks at every cell; what a column is follows from its type, its values and, for identifiers, its name:

===========  =========================================================================================================
kind         when
===========  =========================================================================================================
empty        no cell holds a value
constant     one value only
boolean      true and false, or 0 and 1
count        whole numbers from 0 or 1 that spread as counts do
integer      other whole numbers
number       other numbers
category     text with few different values that come back, pandas' `category`, Arrow's dictionary
date         dates and times
identifier   a number or a text for each row, none of them twice
text         any other text
===========  =========================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from unmix.engine.sources.base import not_a_number

AMOUNTS = ("number", "integer", "count")
USABLE = (*AMOUNTS, "boolean", "category")
KINDS = (*USABLE, "date", "identifier", "text")  # what a user may call a column

LEVELS = 50  # different values of a text that are categories; more, up to MOST_LEVELS, if rows are many
MOST_LEVELS = 100
ROWS_PER_LEVEL = 3  # at least, or a text is no category
PIECE_ROWS = 1 << 16
COUNTED = 10_000  # different values that are counted one by one
WORDS = 6  # in an identifier, at most, on average
DISPERSION = (0.7, 4.0)  # variance of a count over its mean, at least and at most: codes 1 to 5 have less
LEAST_POWER = -1100  # of two, smaller than any number's
ID_NAME = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|key|index|idx|nr|no|number|code|name|row)($|[^a-z])|(?<=[a-z])I[Dd]$", re.I
)


class Seen(NamedTuple):
    """What one pass saw of a column.

    Missing cells are not counted among the others. `levels` are the different values of texts, the most frequent
    first, None where there are too many to count.
    """

    name: str
    type: Any
    rows: int = 0
    missing: int = 0
    low: Any = None
    high: Any = None
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean, in units of 4**power
    power: int = LEAST_POWER  # 2**power is the size of the largest number: squares in its units are in range
    whole: bool = True  # every number is
    rising: bool = True  # every number is larger than the one before
    levels: dict[Any, int] | None = None
    words: int = 0  # blanks in texts, in all
    first: Any = None  # value
    infinite: int = 0  # cells, which count as missing

    @property
    def filled(self) -> int:
        """Cells that hold a value."""
        return self.rows - self.missing

    @property
    def deviation(self) -> float:
        """Standard deviation of the numbers."""
        return float(np.ldexp(np.sqrt(self.squares / self.filled), self.power)) if self.filled else 0.0

    @property
    def distinct(self) -> int | None:
        """How many different values, None where there are too many to count."""
        return None if self.levels is None else len(self.levels)


class Column(NamedTuple):
    """A column, what it is taken for, and what becomes of it."""

    name: str
    kind: str
    role: str  # "used", "id", "label", "weight" or "left out"
    why: str  # it is left out, in words; "" where it is not
    seen: Seen


def look(raw: Any, wanted: Collection[str] = ()) -> list[Seen]:
    """What one pass sees of each column; in pieces by number of rows, so that the bits do not depend on the file.

    The columns that are `wanted` as numbers are numbers, whatever they came as.
    """
    seen = [Seen(name, type_, levels={}) for name, type_ in zip(raw.schema.names, raw.schema.types, strict=True)]
    for start in range(0, raw.n, PIECE_ROWS):
        piece = raw.slice(start, min(start + PIECE_ROWS, raw.n))
        seen = [_more(one, column, one.name in wanted) for one, column in zip(seen, piece.columns, strict=True)]
    return seen


def _more(seen: Seen, column: Any, amount: bool) -> Seen:
    """What is seen after another piece of the column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    seen = seen._replace(rows=seen.rows + len(column))
    if amount or is_amount(column.type):
        x = numbers(column, seen.name)
        kept = x[np.isfinite(x)]
        infinite = int(np.isinf(amounts(column)).sum()) if is_amount(column.type) and len(kept) < len(x) else 0
        seen = seen._replace(missing=seen.missing + len(x) - len(kept), infinite=seen.infinite + infinite)
        return _numbers(seen, kept)
    seen = seen._replace(missing=seen.missing + column.null_count)
    if column.null_count == len(column):
        return seen
    if pa.types.is_temporal(column.type):
        ends = pc.min_max(column)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        low = low if seen.low is None else min(low, seen.low)
        return seen._replace(low=low, high=high if seen.high is None else max(high, seen.high), levels=None)
    return _texts(seen, column)


def _numbers(seen: Seen, x: np.ndarray) -> Seen:
    """Moments and extremes with more numbers (Chan, Golub & LeVeque)."""
    if not len(x):
        return seen
    n, m = seen.filled - len(x), len(x)
    size = float(np.abs(x).max())
    power = max(seen.power, int(np.frexp(size)[1])) if size else seen.power
    y, before = np.ldexp(x, -power), float(np.ldexp(seen.mean, -power))
    mean = float(y.mean())
    apart = mean - before
    squares = float(np.ldexp(seen.squares, 2 * (seen.power - power))) + float(((y - mean) ** 2).sum())
    with np.errstate(over="ignore"):
        steps = np.diff(x, prepend=seen.high if n and seen.rising else -np.inf)
    levels = seen.levels
    if levels is not None:
        values, counts = np.unique(x, return_counts=True)
        levels = _merged(levels, values.tolist(), counts.tolist())
    return seen._replace(
        low=float(x.min()) if seen.low is None else min(seen.low, float(x.min())),
        high=float(x.max()) if seen.high is None else max(seen.high, float(x.max())),
        mean=float(np.ldexp(before + apart * m / (n + m), power)),
        squares=squares + apart**2 * n * m / (n + m),
        power=power,
        whole=seen.whole and bool((x == np.round(x)).all()),
        rising=seen.rising and bool((steps > 0).all()),
        levels=levels,
        first=float(x[0]) if seen.first is None else seen.first,
    )


def _texts(seen: Seen, column: Any) -> Seen:
    """Different values, and how many words they have."""
    import pyarrow.compute as pc

    text = text_of(column)
    levels = seen.levels
    if levels is not None:
        counts = pc.value_counts(text.drop_null())
        levels = _merged(levels, counts.field(0).to_pylist(), counts.field(1).to_pylist())
    words = pc.sum(pc.count_substring(text, " ")).as_py() or 0
    first = text.drop_null()[0].as_py() if seen.first is None else seen.first
    return seen._replace(levels=levels, words=seen.words + words, first=first)


def _merged(levels: dict[Any, int], values: list[Any], counts: list[int]) -> dict[Any, int] | None:
    """Counts of values together; None where they have become too many."""
    if len(values) > COUNTED:
        return None
    out = {**levels}
    for value, count in zip(values, counts, strict=True):
        out[value] = out.get(value, 0) + count
    return out if len(out) <= COUNTED else None


def kind_of(seen: Seen) -> str:
    """What a column holds."""
    import pyarrow as pa

    t = seen.type
    if not seen.filled:
        return "empty"
    if pa.types.is_temporal(t):
        return "date"
    if seen.distinct == 1:
        return "constant"
    if pa.types.is_boolean(t):
        return "boolean"
    if is_amount(t):
        return _amount_kind(seen)
    if pa.types.is_dictionary(t):
        return "category"
    return _text_kind(seen)


def _amount_kind(seen: Seen) -> str:
    if not seen.whole:
        return "number"
    if seen.levels is not None and set(seen.levels) <= {0.0, 1.0}:
        return "boolean"
    step = seen.rising and seen.high - seen.low == seen.filled - 1
    every = seen.rising or seen.distinct == seen.filled
    named = (step and seen.low in (0.0, 1.0)) or (every and ID_NAME.search(seen.name) is not None)
    if seen.filled > 2 and not seen.missing and named:
        return "identifier"
    least, most = (float(np.ldexp(share * seen.mean * seen.filled, -2 * seen.power)) for share in DISPERSION)
    return "count" if seen.low in (0.0, 1.0) and least <= seen.squares <= most else "integer"


def _text_kind(seen: Seen) -> str:
    distinct, n = seen.distinct, seen.filled
    if distinct is not None and distinct <= max(2, min(LEVELS, n // ROWS_PER_LEVEL)):
        return "category"
    if distinct is not None and distinct <= min(MOST_LEVELS, n // (10 * ROWS_PER_LEVEL)):
        return "category"
    unlike = distinct == n if distinct is not None else bool(ID_NAME.search(seen.name))
    return "identifier" if unlike and seen.words <= WORDS * n else "text"


def is_amount(t: Any) -> bool:
    """Whether an Arrow type holds numbers, or true and false."""
    import pyarrow as pa

    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(check(t) for check in checks)


def text_of(column: Any) -> Any:
    """An Arrow array as text."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string())


def amounts(column: Any) -> np.ndarray:
    """An Arrow array of numbers, truth values or dates (days since 1970) as float64, null as NaN."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        column = column.cast(pa.int64(), safe=False)
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)) / 86_400e6
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def numbers(column: Any, name: str) -> np.ndarray:
    """Cells of an Arrow column as float64."""
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    try:
        x = amounts(column)
        return np.where(np.isinf(x), np.nan, x)  # what no model can compute with was not observed
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        for i, value in enumerate(column):
            try:
                value.cast(pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise not_a_number(value.as_py(), i, name) from None
        raise
