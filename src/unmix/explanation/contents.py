"""What a column of a table holds, in a few words."""

from __future__ import annotations

from typing import Any

from unmix.explanation.words import decimals, number, percent, shortened
from unmix.table.kinds import AMOUNTS, Column

LEVELS = 3  # of a category that are shown
WIDTH = 24  # characters of a level


def values(c: Column) -> str:
    """The range of numbers and dates with their mean, the commonest levels of what else there is."""
    seen = c.seen
    if c.kind in AMOUNTS:
        whole = 0 if seen.whole else decimals(seen.deviation)
        low, high = number(seen.low, whole), number(seen.high, whole)
        return f"{low} to {high}, mean {number(seen.mean, decimals(seen.deviation))}"
    if seen.low is not None and c.kind == "date":
        return f"{_day(seen.low)} to {_day(seen.high)}"
    if c.kind in ("identifier", "text"):
        return f"{_short(seen.first)}, …" if seen.first is not None else ""
    some = sorted((seen.levels or {}).items(), key=lambda level: -level[1])[:LEVELS]
    more = ", …" * (len(seen.levels or {}) > LEVELS)
    return ", ".join(f"{_short(level)} {percent(n / seen.filled)}" for level, n in some) + more


def _day(value: Any) -> str:
    """A date; with its time, where it has one."""
    return str(value).removesuffix(" 00:00:00")


def _short(value: Any) -> str:
    text = str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
    return shortened(" ".join(text.split()), WIDTH)
