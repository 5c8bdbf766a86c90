"""What the pictures share: axes, colours, and text that is shown as it is."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from unmix.explanation.words import shortened

FILL, PALE, MARK = "#0b5cad", "#9db8d3", "#b4451b"  # those of the report
# Okabe and Ito's colours, told apart by the colour-blind, and two more; symbols tell groups apart in print
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f7f7f", "#b8a900", "#117733",
)  # fmt: skip
SYMBOLS = "os^DvPX"  # 7 and 10 have no common factor: the first 70 groups look different
NOTHING = "0.6"  # grey of what has no group
SMALL = 8.5  # points of secondary text
NAME = 26  # characters of a name


def pyplot() -> Any:
    """Matplotlib, or an error that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("unmix.plot needs Matplotlib: install it with  pip install 'unmix[plot]'") from None
    return plt


def canvas(ax: Any, width: float = 5.6, height: float = 3.6) -> tuple[Any, bool]:
    """The axes to draw into, and whether they are in a figure of their own, which has so many inches."""
    plt = pyplot()
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1], True
    if not isinstance(ax, plt.Axes):
        raise TypeError(f"ax is a {type(ax).__name__}: give Matplotlib's Axes, as plt.subplots()[1], or leave it out")
    return ax, False


def panels(ax: Any, shares: list[float], width: float, height: float) -> tuple[list[Any], bool]:
    """Axes side by side whose widths are so shared: those that are given, or within one, or of a figure of its own."""
    plt, n = pyplot(), len(shares)
    if ax is None:
        figure = plt.figure(figsize=(width, height), layout="constrained")
        return list(figure.subplots(1, n, width_ratios=shares, squeeze=False)[0]), True
    given = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    for one in given:
        canvas(one)
    if len(given) == 1 < n:
        given[0].set_axis_off()
        edges = np.cumsum([0.0, *shares]) / sum(shares)
        gap = 0.18 / n
        places = [(float(a), 0.0, float(b - a) - gap * bool(b < 1), 1.0) for a, b in pairwise(edges)]
        return [given[0].inset_axes(place) for place in places], False
    if len(given) != n:
        raise ValueError(f"ax holds {len(given)} axes: give one, or {n}, one for each panel")
    return given, False


def at_least(least: int, **given: Any) -> None:
    """Refuse an argument that is no whole number of at least so much."""
    for name, value in given.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
            raise ValueError(f"{name}={value!r}: give a whole number of at least {least}")


def plain(name: Any, width: int = NAME) -> str:
    """A name as Matplotlib shows it unchanged: no formula between dollars, not hidden by a line below at its start."""
    text = shortened(" ".join(str(name).split()), width).replace("$", r"\$")
    return " " + text if text.startswith("_") else text


def look(i: int) -> dict[str, Any]:
    """Colour and symbol of group i; −1 has none."""
    if i < 0:
        return {"color": NOTHING, "marker": "."}
    return {"color": COLOURS[i % len(COLOURS)], "marker": SYMBOLS[i % len(SYMBOLS)]}


def bare(ax: Any, *sides: str) -> None:
    """Leave out the frame, but for these sides."""
    for side, line in ax.spines.items():
        line.set_visible(side in sides)


def titled(ax: Any, text: str, small: bool = False) -> None:
    """What a picture says, above it."""
    ax.set_title(text, loc="left", fontsize=SMALL if small else 10)
