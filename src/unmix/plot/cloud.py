"""Rows as points in a plane, by group; or how densely they lie, alone where points would cover each other.

Contours are of a histogram of the group's rows, smoothed by a Gaussian of Scott's width n^(−1/6) in each direction's
standard deviations: within a contour lies that share of the group's rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from unmix.plot.canvas import COLOURS, SMALL, SYMBOLS, look, plain

MANY = 10_000  # rows, from which on points cover each other
LISTED = 20  # groups in the legend
SHARES = (0.9, 0.5)  # of a group's rows within its contours
CELLS = 128  # of the histogram, along each axis
FEWEST = 30  # rows that have contours


class Named(NamedTuple):
    """Labels as numbers, −1 where there is none, and their names."""

    code: np.ndarray
    names: list[str]


def named(labels: Any, n: int) -> Named:
    """Labels of n rows."""
    given = np.asarray(labels)
    if given.ndim == 2 and 1 in given.shape:
        given = given.ravel()
    if given.shape != (n,):
        raise ValueError(f"labels has the shape {given.shape}, but X has {n} rows: give one label per row")
    if given.dtype.kind == "O":  # text, and what else frames hold
        gone = np.array([v is None or (not isinstance(v, str) and str(v) in ("nan", "<NA>", "NaT")) for v in given])
        given = given.astype(str)
    else:
        gone = given != given
    known, code = np.unique(given[~gone], return_inverse=True)
    if len(known) > (most := len(COLOURS) * len(SYMBOLS)):
        raise ValueError(
            f"labels has {len(known)} different values, beyond the {most} that colours and symbols tell apart: give "
            "groups, or cut numbers into ranges"
        )
    out = np.full(n, -1)
    out[~gone] = code
    return Named(out, [f"{v:g}" if given.dtype.kind == "f" else str(v) for v in known])


def cloud(ax: Any, z: np.ndarray, labels: Any, density: bool | None, own: bool) -> str:
    """Draw rows, and say in words what was drawn."""
    groups = None if labels is None else named(labels, len(z))
    seen = np.isfinite(z).all(axis=1)
    z = z[seen]
    many = len(z) > MANY and density is not False
    dense = many if density is None else bool(density)
    if groups is None and many:
        return hexagons(ax, z)
    code = np.zeros(len(z), int) if groups is None else groups.code[seen]
    shown = [-1] * bool((code < 0).any()) + list(range(1 if groups is None else len(groups.names)))
    outlines = [contours(ax, z[code == g], g) if dense else None for g in shown]
    drawn = [o if o and many else points(ax, z[code == g], g) for o, g in zip(outlines, shown, strict=True)]
    if groups is not None:
        legend(ax, drawn, ["no label" if g < 0 else plain(groups.names[g]) for g in shown], own)
    return f"contours hold half and 90% of {'the rows' if groups is None else 'a group'}" if any(outlines) else ""


def points(ax: Any, z: np.ndarray, g: int) -> Any:
    """The rows of a group as symbols."""
    return ax.scatter(*z.T, s=14, lw=0, alpha=0.75, zorder=2 if g >= 0 else 1.5, **look(g))


def hexagons(ax: Any, z: np.ndarray) -> str:
    """How many rows lie where, in a logarithmic scale."""
    drawn = ax.hexbin(*z.T, gridsize=48, mincnt=1, bins="log", cmap="Blues", linewidths=0.1)
    ax.figure.colorbar(drawn, ax=ax, label="rows in a hexagon", pad=0.02)
    return ""


def contours(ax: Any, z: np.ndarray, g: int) -> Any:
    """Where given shares of a group's rows lie most densely, or None where these are too few to say."""
    color = look(g)["color"]
    spread = z.std(axis=0) if len(z) else np.zeros(2)
    if len(z) < FEWEST or not (spread > 0).all():
        return None
    low, high = np.quantile(z, [0.005, 0.995], axis=0)
    pad = 0.25 * (high - low) + 0.05 * spread
    count, x, y = np.histogram2d(z[:, 0], z[:, 1], CELLS, np.stack([low - pad, high + pad], axis=1))
    cell = np.array([x[1] - x[0], y[1] - y[0]])
    width = len(z) ** (-1 / 6) * np.minimum(spread, (high - low) / 4) / cell
    smooth = gaussian_filter(count, np.maximum(width, 0.5), mode="constant")
    falling = np.sort(smooth.ravel())[::-1]
    within = np.cumsum(falling) / max(float(smooth.sum()), 1e-300)
    levels = [float(falling[np.searchsorted(within, share)]) for share in SHARES]
    middle = [(edge[1:] + edge[:-1]) / 2 for edge in (x, y)]
    if levels[0] < levels[1] < falling[0]:
        ax.contourf(*middle, smooth.T, [levels[1], falling[0]], colors=[color], alpha=0.3, zorder=1)
        ax.contour(*middle, smooth.T, levels, colors=[color], linewidths=[1.0, 1.6], zorder=1)
    return ax.plot([], [], color=color, lw=2)[0]


def legend(ax: Any, drawn: list[Any], names: list[str], own: bool) -> None:
    """Groups by name; beside the picture where there is room for it."""
    more = len(names) - LISTED
    if more > 0:
        drawn = [*drawn[:LISTED], ax.plot([], [], " ")[0]]
        names = [*names[:LISTED], f"… and {more} more"]
    where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if own else {"loc": "best"}
    ax.legend(drawn, names, frameon=not own, fontsize=SMALL, handletextpad=0.4, borderaxespad=0.4, **where)
