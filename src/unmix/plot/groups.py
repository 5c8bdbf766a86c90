"""Pictures of groups of rows: what sets each apart, and how well rows fit theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.explanation.groups import FoundGroups
from unmix.explanation.words import percent
from unmix.plot.canvas import COLOURS, SMALL, at_least, bare, canvas, plain, pyplot, titled
from unmix.validate.silhouette import silhouette

HEAT = 12  # columns of the picture of what sets groups apart, as in the report
DARK = 0.65  # of the strongest, from which on text on it is white
STEPS = 1000  # rows of a cluster that are drawn one by one


def profiles(found: FoundGroups, ax: Any = None, *, most: int = HEAT) -> Any:
    """Draw what sets each group apart: how much higher or lower it is than the other rows, column by column.

    Parameters
    ----------
    found : FoundGroups
        What `unmix.explain(model, X)` gives.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.
    most : int, default=12
        Columns that are shown, those that tell the groups apart best.

    Returns
    -------
    ax : matplotlib Axes
        Each cell is (mean of the group − mean of the other rows) / standard deviation of the column; of a category the
        same of the level that differs most, which is named.

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris(as_frame=True).data
    >>> model = unmix.KMeans(3, n_init=5, random_state=0).fit(X)
    >>> ax = unmix.plot.profiles(unmix.explain(model, X))
    >>> len(ax.get_yticklabels()), len(ax.get_xticklabels())
    (4, 3)
    """
    if not isinstance(found, FoundGroups):
        raise TypeError(f"found is a {type(found).__name__}: give groups, as unmix.explain(model, X) of a clustering")
    at_least(1, most=most)
    names = [unit.name for unit in found.units[:most]]
    effect = np.full((len(names), len(found.groups)), np.nan)
    level = [[""] * len(found.groups) for _ in names]
    for g, group in enumerate(found.groups):
        for trait in group.traits:
            if trait.column in names:
                i = names.index(trait.column)
                effect[i, g], level[i][g] = trait.effect, trait.level
    if not np.isfinite(effect).any():
        raise ValueError("found has no group that could differ from other rows: profiles compares at least two groups")
    leveled = any(any(row) for row in level)
    cell = 1.05 if leveled else 0.8
    width = min(1.3 + 0.075 * max(map(len, map(plain, names))) + cell * len(found.groups), 14.0)
    ax, _ = canvas(ax, width, 1.1 + (0.48 if leveled else 0.36) * len(names))
    top = float(np.nanmax(np.abs(effect))) or 1.0
    colours = pyplot().get_cmap("PuOr").with_extremes(bad="0.9")
    drawn = ax.imshow(np.ma.masked_invalid(effect), cmap=colours, vmin=-top, vmax=top, aspect="auto")
    few = len(found.groups) * cell <= 11.4
    for (i, g), value in np.ndenumerate(effect) if few else ():
        text = f"{round(value, 1) + 0.0:+.1f}".replace("-", "−") if np.isfinite(value) else "–"
        text += f"\n{plain(level[i][g], 12)}" if level[i][g] else ""
        color = "white" if abs(value) > DARK * top else "black"
        ax.text(
            g, i, text, ha="center", va="center", fontsize=SMALL - 1.5 * bool(level[i][g]), color=color, linespacing=0.9
        )
    heads = [group.name if len(found.groups) <= 6 else str(group.label + 1) for group in found.groups]
    if few:
        heads = [f"{head}\n{percent(group.share)}" for head, group in zip(heads, found.groups, strict=True)]
    ax.set_xticks(range(len(heads)), heads, fontsize=SMALL)
    ax.set_yticks(range(len(names)), [plain(name) for name in names], fontsize=SMALL)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.set_xticks(np.arange(1, len(heads)) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, len(names)) - 0.5, minor=True)
    ax.grid(which="minor", color=ax.get_facecolor(), lw=2)
    ax.tick_params(which="minor", length=0)
    bare(ax)
    ax.figure.colorbar(
        drawn, ax=ax, label="standard deviations\nof the column", pad=0.03, aspect=12
    ).outline.set_visible(False)
    return ax


def silhouettes(
    X: Any, labels: Any, ax: Any = None, *, metric: Any = "euclidean", sample: int | None = None,
    random_state: Any = None, sample_weight: Any = None,
) -> Any:  # fmt: skip
    """Draw how well each row fits its cluster: silhouettes, sorted within each cluster.

    Parameters
    ----------
    X : anything with rows
        As for `unmix.validate.silhouette`.
    labels : array of shape (n,)
        The cluster of each row.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.
    metric, sample, random_state, sample_weight
        As for `unmix.validate.silhouette`. Time grows with n²; with `sample` only so many rows are scored and drawn.

    Returns
    -------
    ax : matplotlib Axes
        Each row is a line from 0 to (b − a) / max(a, b); beside each cluster stands its mean.

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = unmix.plot.silhouettes(X, unmix.KMeans(2, random_state=0).fit_predict(X))
    >>> ax.get_title(loc="left")
    'Mean silhouette 0.68'
    """
    found = silhouette(
        X, labels, metric=metric, sample=sample, random_state=random_state, per_row=True, sample_weight=sample_weight
    )
    s = found.per_row
    assert s is not None
    given = np.asarray(labels).ravel()
    some = [-np.sort(-s[(given == name) & ~np.isnan(s)]) for name in found.clusters]
    n = sum(map(len, some))
    ax, _ = canvas(ax, 5.2, float(np.clip(0.3 * len(some), 3.4, 14.0)))
    gap, at, ticks = 0.03 * n, 0.0, []
    for k, mine in enumerate(some):
        if len(mine) > STEPS:  # evenly spread over the sorted ones
            mine = mine[np.linspace(0, len(mine) - 1, STEPS).round().astype(int)]
        edges = at + np.linspace(0, len(some[k]), len(mine) + 1)
        ax.stairs(mine, edges, fill=True, orientation="horizontal", color=COLOURS[k % len(COLOURS)], lw=0)
        ticks.append(at + len(some[k]) / 2)
        at += len(some[k]) + gap
    ax.axvline(0, color="0.5", lw=0.8)
    ax.axvline(found.score, color="0.3", lw=1, ls=":")
    means = [f"{m:.2f}".replace("-", "−") if m == m else "–" for m in found.per_cluster]
    names = [f"{plain(name, 18)}   {mean}" for name, mean in zip(found.clusters, means, strict=True)]
    ax.set_yticks(ticks, names, fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(at, -gap), xlabel="silhouette of the row   (dotted: the mean)", ylabel="cluster, and its mean")
    ax.set_xlim(min(0.0, float(np.nanmin(s))) - 0.02, max(0.0, float(np.nanmax(s))) + 0.02)
    bare(ax, "bottom")
    score = f"{found.score:.2f}".replace("-", "−")
    titled(ax, f"Mean silhouette {score}" + (f" ± {found.se:.2f}, of {n:,} rows" if found.se else ""))
    return ax
