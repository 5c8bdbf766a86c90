"""Numbers as people read them, and tables of them that fit a screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

DIGITS = 2  # of a column's standard deviation that are shown
NARROW = 20  # characters of a name, at most, where there is little room
WIDTH = 100  # of text that nobody gave a width for


def decimals(spread: float) -> int:
    """Decimals of numbers that vary so much, for `DIGITS` digits of the spread."""
    if not (math.isfinite(spread) and spread > 0):
        return 2
    return min(max(DIGITS - 1 - math.floor(math.log10(spread)), 0), 12)


def number(value: float, places: int) -> str:
    """A number with so many decimals; far from 1, in powers of ten."""
    if not math.isfinite(value):
        return "–"
    if value and (abs(value) >= 1e9 or places > 6):
        return f"{value:.3g}"
    return f"{round(value, places) + 0.0:,.{places}f}"  # + 0.0: no minus before nothing


def percent(share: float) -> str:
    """A share in per cent, more exactly near its ends."""
    if not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}%" if 0 < share < 0.1 or 0.9 < share < 1 else f"{100 * share:.0f}%"


def plural(n: int, one: str, many: str = "") -> str:
    """So many of something."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names as a sentence lists them, the first of many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def called(name: str) -> str:
    """A column as a line names it that has numbers, too: a name that is a number is said to be one."""
    return f"column {name}" if name.removeprefix("-").replace(".", "", 1).isdigit() else name


def shortened(name: str, width: int) -> str:
    """A name that fits, its middle left out."""
    if len(name) <= width:
        return name
    tail = width // 3
    return f"{name[: width - tail - 1]}…{name[len(name) - tail :]}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, wrap: Sequence[int] = ()) -> Any:
    """A table without lines: the first `left` columns flush left, the others flush right; `wrap` may break lines."""
    from rich.table import Table

    out = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for j, head in enumerate(heads):
        flows = j in wrap
        out.add_column(
            head,
            justify="left" if j < left or flows else "right",
            no_wrap=not flows,
            overflow="fold" if flows else "ellipsis",
            ratio=1 if flows and j == max(wrap) else None,
        )
    for row in rows:
        out.add_row(*row)
    return out


def as_text(found: Any, width: int = WIDTH) -> str:
    """What rich would print, as plain text."""
    from io import StringIO

    from rich.console import Console

    sink = StringIO()
    Console(file=sink, width=width, highlight=False, markup=False, emoji=False).print(found)
    return "\n".join(line.rstrip() for line in sink.getvalue().rstrip().splitlines())
