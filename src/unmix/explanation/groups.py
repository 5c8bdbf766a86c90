"""Groups of rows: how many, where their centres are, and what sets each apart from the other rows.

What sets group g apart in column j is told in standard deviations of the column over all rows:

    effect_gj = (mean of the group − mean of the other rows) / sd of all rows

of numbers; of a category the same of the 0 and 1 of each level, of which the one with the largest difference is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from unmix.explanation.columns import Plain, Sums
from unmix.explanation.words import as_text, called, decimals, number, percent, plural, shortened, table
from unmix.table.recipe import Use

CLEAR = 0.4  # standard deviations, from which on a column is said to set a group apart
TOLD = 4  # columns that are told of a group
SHOWN = 15  # columns in the table of centres; `to_dict` has them all
SHOWN_GROUPS = 30
CELL = 11  # characters of a centre in that table, with the space beside it


@dataclass(frozen=True)
class Unit:
    """How the cells of a column are written."""

    name: str
    kind: str
    places: int

    def written(self, value: Any) -> str:
        """A mean, a share of yes, or the commonest level of a category with its share."""
        if isinstance(value, dict):
            if not value or not np.isfinite(list(value.values())).any():
                return "–"
            level = max(value, key=lambda key: value[key])
            return f"{level} {percent(value[level])}"
        return percent(value) if self.kind == "boolean" else number(value, self.places)


@dataclass(frozen=True)
class Trait:
    """A column in which a group differs from the other rows; of a category one level, whose shares these are."""

    column: str
    level: str
    value: float
    others: float
    effect: float
    text: str


@dataclass(frozen=True)
class Typical:
    """The row nearest to a group's centre, among those that were looked at: its number from 0 on, and its cells."""

    row: int
    cells: dict[str, Any]


@dataclass(frozen=True)
class Group:
    """A group of rows.

    Attributes
    ----------
    label : int
        As `predict` gives it, from 0 on.
    name : str
        "group 1" and so on: the label and one.
    rows : int
        How many rows.
    share : float
        Their share of the weight of all rows.
    centre, spread : dict
        By column the mean and the standard deviation, in the units of the table; of categories the share of each level.
    traits : list of Trait
        What sets it apart, the largest difference first: one entry for each column.
    typical : Typical or None
        The row nearest to the centre.
    """

    label: int
    name: str
    rows: int
    share: float
    centre: dict[str, Any]
    spread: dict[str, Any]
    traits: list[Trait]
    typical: Typical | None

    @property
    def words(self) -> str:
        """What sets it apart, in words."""
        clear = [t for t in self.traits if abs(t.effect) >= CLEAR][:TOLD]
        alone = "all rows" if self.share == 1 else "much like the others" if self.rows else "no rows"
        return "; ".join(t.text for t in clear) or alone


@dataclass(frozen=True)
class FoundGroups:
    """What a clustering found.

    Attributes
    ----------
    model : str
        Name of the model.
    n : int
        Rows.
    groups : list of Group
        In the order of their labels.
    centre : dict
        As for a group, of all rows.
    units : list of Unit
        The columns, those that tell the groups apart best first.
    ids : list of str
        Columns that name the rows.
    drawn : bool
        Whether these are rows drawn from the model, not of a table.
    """

    model: str
    n: int
    groups: list[Group]
    centre: dict[str, Any]
    units: list[Unit] = field(repr=False)
    ids: list[str] = field(default_factory=list)
    drawn: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "model": self.model,
            "rows": self.n,
            "groups": [asdict(group) for group in self.groups],
            "centre": self.centre,
            "columns": [unit.name for unit in self.units],
        }

    def __str__(self) -> str:
        return as_text(self)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        shown = self.groups[:SHOWN_GROUPS]
        counted = ["rows"] * (not self.drawn)
        rows = [[str(g.label + 1), *[f"{g.rows:,}"][: len(counted)], percent(g.share), g.words] for g in shown]
        yield table(["group", *counted, "share", "what sets it apart"], rows, wrap=[2 + len(counted)])
        if len(self.groups) > SHOWN_GROUPS:
            yield f"… and {len(self.groups) - SHOWN_GROUPS} more groups"
        yield ""
        yield from self._centres(options.max_width, shown)
        yield from self._typical(shown)

    def _centres(self, width: int, shown: list[Group]) -> Iterator[Any]:
        """The table of centres, as many groups side by side as there is room for."""
        units = self.units[:SHOWN]
        longest = max(len(unit.name) for unit in units)
        names = min(longest, max(12, width // 3))
        cells = [[unit.written(c[unit.name]) for c in (self.centre, *(g.centre for g in shown))] for unit in units]
        room = min(max(max(len(c) for row in cells for c in row) + 2, 9), max(CELL, (width - names) // 3))
        beside = max(1, (width - names - room) // room)
        for a in range(0, len(shown), beside):
            part = shown[a : a + beside]
            heads = ["centres", "all rows", *(g.name for g in part)]
            rows = [
                [shortened(unit.name, names), *(shortened(c, room - 2) for c in (row[0], *row[1 + a : 1 + a + beside]))]
                for unit, row in zip(units, cells, strict=True)
            ]
            yield table(heads, rows)
            yield ""
        if len(self.units) > len(units):
            more = plural(len(self.units) - len(units), "more column")
            yield f"({more}, in which the groups differ less)"
            yield ""

    def _typical(self, shown: list[Group]) -> Iterator[str]:
        """Rows to look at."""
        known = [g for g in shown if g.typical is not None]
        if not known or self.drawn:
            return
        told = []
        for g in known:
            row = g.typical
            assert row is not None
            name = ", ".join(str(row.cells[c]) for c in self.ids if row.cells.get(c) is not None)
            told.append(f"{g.name}: row {row.row + 1}" + f" ({name})" * bool(name))
        yield "typical rows – " + "; ".join(told)


def found_groups(model: str, plain: Plain, sums: Sums, ids: list[str]) -> FoundGroups:
    """What the sums over the groups of a clustering say."""
    means, spreads, others, whole = sums.means(), sums.deviations(), sums.others().means(), sums.all()
    mean, sd = whole.means()[0], whole.deviations()[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.where(sd > 0, (means - others) / sd, 0.0)
    spans = plain.recipe.spans
    units = {use.name: Unit(use.name, use.kind, decimals(sd[a])) for use, (a, _) in zip(plain.uses, spans, strict=True)}
    centre, within = plain.recipe.decode(means), plain.recipe.decode(spreads)
    typical = _typical(sums, means, sd)
    shares = sums.weight / max(float(sums.weight.sum()), 1e-300)
    groups = []
    for g in range(len(means)):
        traits = [
            _trait(use, units[use.name], means[g, a:b], others[g, a:b], effect[g, a:b])
            for use, (a, b) in zip(plain.uses, spans, strict=True)
        ]
        traits = sorted((t for t in traits if np.isfinite(t.effect)), key=lambda t: -abs(t.effect))
        row = None if typical[g] < 0 else Typical(int(typical[g]), plain.raw(int(typical[g])))
        at = {use.name: _cells(use, centre[use.name][g]) for use in plain.uses}
        by = {use.name: _cells(use, within[use.name][g]) for use in plain.uses if not use.levels}
        groups.append(Group(g, f"group {g + 1}", int(sums.rows[g]), float(shares[g]), at, by, traits, row))
    all_rows = plain.recipe.decode(mean[None])
    told = np.nan_to_num(sums.rows @ np.nan_to_num(effect) ** 2)
    best = sorted(zip(plain.uses, spans, strict=True), key=lambda p: -float(told[p[1][0] : p[1][1]].max()))
    return FoundGroups(
        model,
        int(sums.rows.sum()),
        groups,
        {use.name: _cells(use, all_rows[use.name][0]) for use in plain.uses},
        [units[use.name] for use, _ in best],
        ids,
    )


def _cells(use: Use, value: Any) -> Any:
    """A mean, or the shares of levels by name."""
    return dict(zip(use.levels, map(float, value), strict=True)) if use.levels else float(value)


def _trait(use: Use, unit: Unit, own: np.ndarray, others: np.ndarray, effect: np.ndarray) -> Trait:
    """How a group differs in one column."""
    size = np.abs(own - others) if use.levels else np.abs(effect)
    j = int(np.argmax(np.nan_to_num(size)))
    value, rest, by = float(own[j]), float(others[j]), float(effect[j])
    level = ""
    if use.levels:
        level = use.levels[1] if use.width == 1 else use.levels[j]
        if use.width == 1 and by < 0:  # of two levels that which is more frequent here
            level, value, rest, by = use.levels[0], 1.0 - value, 1.0 - rest, -by
        text = f"{called(use.name)} = {level}: {percent(value)} (others {percent(rest)})"
    else:
        text = f"{called(use.name)}: {unit.written(value)} (others {unit.written(rest)})"
    return Trait(use.name, level, value, rest, by, text)


def _typical(sums: Sums, means: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Of each group the sampled row nearest to its centre, per observed column; −1 where there is none."""
    out = np.full(len(means), -1)
    unit = np.where(sd > 0, sd, 1.0)
    for g in range(len(means)):
        mine = np.flatnonzero(sums.seen_of == g)
        if not len(mine):
            continue
        away = ((sums.seen[mine] - means[g]) / unit) ** 2
        known = np.isfinite(away)
        mean = np.where(known, away, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        mean = mean + (1.0 - known.mean(axis=1))  # a row with holes is no good example
        out[g] = sums.seen_at[mine[int(mean.argmin())]]
    return out
