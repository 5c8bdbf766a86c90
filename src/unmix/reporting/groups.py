"""Which groups of rows there are, how sure that is, and what sets each apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.explanation import FoundGroups
from unmix.explanation.columns import Plain, sums
from unmix.explanation.groups import Trait, found_groups
from unmix.explanation.words import listed, percent, plural
from unmix.reporting.candidates import Found, candidates, one_cloud
from unmix.reporting.leading import CRITERION
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View
from unmix.selection.answer import MANY, PIECES
from unmix.table.kinds import AMOUNTS

FEWEST = 10  # rows that are asked for groups
POINTS = 5000  # of the map, at most
HEAT = 12  # columns of the picture of what sets groups apart
LISTED = 4  # groups whose shares are in the first sentence
TITLE = "Which groups there are"
SURENESS = {
    "sure": "Sure: all rows, halves of them and other looks at them agree on that number. On planted tables that was "
    "right in 95 of 100 and more.",
    "open": "Open: all rows, halves of them and other looks at them do not agree on one number. On planted tables the "
    "number was right in 6 of 10 then: take the range.",
}
SAID = {
    "sure": "The {rows} fall into {groups}{sizes}",
    "open": "The {rows} may fall into {groups}{sizes}, but how many is open",
}


def groups(view: View) -> Section | None:
    """Ask several models for groups, and tell those of the best."""
    if view.some.n < FEWEST:
        return None
    view.tell("groups")
    tried, best = candidates(view)
    answer = best.tried.answer
    code = f"{view.opening}\n{best.tried.how}"
    curve, why = _curve(answer, best.k), tuple(t.words for t in tried)
    low, high = answer.range
    skewed = any(t.answer.k == 1 for t in tried) and low > 1 and one_cloud(best, view.seed)
    if best.k == 1 or low == 1 or skewed:
        return _one(view, best, skewed, Section("groups", "Groups", TITLE, "", [], curve, code, {}, why))
    labels = np.asarray(best.model.predict(best.tried.every))
    found = found_groups(best.name, Plain(view.some), sums(Plain(view.some), [labels]), view.some.role("id"))
    sizes = f" ({listed([percent(g.share) for g in found.groups])} of them)" if best.k <= LISTED else ""
    told = SAID[answer.sureness].format(rows=view.rows, groups=plural(best.k, "group"), sizes=sizes)
    told += f": {low} to {high} can be defended." if high > low else "."
    told += _apart(found)
    where = f"The groups below are those of {best.name}, found in {view.looked_at}{best.tried.among}."
    if view.left_out:
        where += " Rows that do not fit were left out; then each was given to the group that it is nearest to."
    said = [SURENESS[answer.sureness], where]
    if best.tried.leading:
        said[0] = answer.reason
    elif len(tried) > 1 or high > low:
        said[1] += (
            f" Of the numbers that can be defended, and that there are rows enough to tell, {best.k} makes the rows "
            f"likeliest, and of the models with {best.k} groups this one does. To judge all models alike, each group "
            "is taken for a Gaussian."
        )
    if best.k > MANY and answer.sureness == "open":
        said.append(PIECES)
        told += " So many may also be pieces of one gradient."
    code += "" if best.made == "model" else f"\nmodel = {best.made}"
    code += "\nprint(unmix.explain(model, table))" if best.tried.every is view.some else ""
    shown = [
        part for part in (_map(view, labels, best.tried.plane), _members(view, found), _effects(found), *curve) if part
    ]
    facts = {
        "groups": best.k,
        "range": [int(low), int(high)],
        "sureness": answer.sureness,
        "model": best.name,
        "labels": labels.tolist(),
        "rows": (view.numbers + 1).tolist() if view.partial else None,  # that these are of; None: all
        "sizes": [g.rows for g in found.groups],
        "apart": [[t.text for t in g.traits[:5]] for g in found.groups],
        "typical": [None if g.typical is None else int(view.numbers[g.typical.row]) + 1 for g in found.groups],
    }
    return Section("groups", "Groups", TITLE, told, said, shown, code, facts, why)


def _one(view: View, best: Found, skewed: bool, asked: Section) -> Section:
    """What is told where one cloud explains the rows as well."""
    told = f"There are no clear groups: the {view.rows} are one cloud, as far as these columns tell."
    if best.k > 1:
        cut = f"the {view.rows} may be cut into {best.k}"
        told = f"There are no clear groups: {cut}, but one cloud explains them as well."
    answer, why = best.tried.answer, asked.why
    reason, sureness = answer.reason, answer.sureness
    if skewed:
        reason, sureness = f"One skewed cloud explains the rows as well as {best.k} groups of {best.name} do.", "open"
        why += (f"{reason} It has the same axes, and along each the density of the rows made to have one mode.",)
    facts = {"groups": 1, "range": [1, int(answer.range[1])], "sureness": sureness, "reason": reason}
    drawn = _map(view, np.zeros(view.some.n, int), best.tried.plane)
    shown = [*([drawn] if drawn else []), *asked.shown]
    return asked._replace(answer=told, shown=shown, facts=facts, why=why)


def _apart(found: FoundGroups) -> str:
    """What sets the groups apart, by the columns that do it best."""
    names = [unit.name for unit in found.units[:3]]
    return f" They differ most in {listed([repr(n) for n in names])}." if len(names) > 1 else ""


def _map(view: View, labels: np.ndarray, plane: np.ndarray | None = None) -> Chart | None:
    """Rows on the first two components, or on two columns that are all there is."""
    uses, pca, meaning = view.some.recipe.uses, view.components, ""
    overlap = " Groups that overlap here may be apart in other directions."
    if plane is not None:
        z, labels, axes = plane[view.fits], labels[view.fits], ["component 1", "component 2"]
        where = "on the first two components of the columns that were looked at here"
    elif pca is not None and pca.n_components_ > 1:
        z, axes = np.asarray(pca.transform(view.usual), dtype=np.float64)[:, :2], ["component 1", "component 2"]
        labels = labels[view.fits]
        where, meaning = "on the first two components", f" {view.axes}"
    elif len(uses) == 2 and all(use.kind in AMOUNTS for use in uses):
        z, axes = np.column_stack([*view.some.recipe.decode(view.x).values()]), [use.name for use in uses]
        where, overlap = "by their two columns", ""
    else:
        return None
    known = np.isfinite(z).all(axis=1)
    z, labels = z[known], labels[known]
    step = -(-len(z) // POINTS) or 1
    points = [[float(f"{a:.5g}"), float(f"{b:.5g}"), int(g) + 1] for (a, b), g in
              zip(z[::step], labels[::step], strict=True)]  # fmt: skip
    one_of = "" if step == 1 else f" One row in {step} is drawn."
    grouped = bool(labels.any())
    caption = f"Rows {where}{', by group' * grouped}.{meaning}{overlap * grouped}{one_of}"
    return Chart("dots", caption, {"points": points, "step": step, "x": axes[0], "y": axes[1]})


def _members(view: View, found: FoundGroups) -> Grid:
    """A line for each group."""
    rows = []
    for g in found.groups:
        typical = "" if g.typical is None else view.name_of(g.typical.row)
        rows.append([str(g.label + 1), g.words, typical, f"{g.rows:,}", percent(g.share)])
    heads = ["group", "what sets it apart", "a typical row", "rows", "share"]
    return Grid(
        "What sets each group apart from the other rows, strongest first, in the units of the table.", heads, rows, 3
    )


def _effects(found: FoundGroups) -> Chart:
    """How far each group is from the others in each column, in standard deviations of the column."""
    names, cells = [], []  # columns as the picture calls them
    for name in (unit.name for unit in found.units[:HEAT]):
        traits = [(g.name, t) for g in found.groups for t in g.traits if t.column == name]
        level = max((t for _, t in traits), key=lambda t: abs(t.effect)).level if traits else ""
        row = f"{name} = {level}" if level else name
        names.append(row)
        for group, t in traits:
            value, text = _of_level(found, group, t, level)
            cells.append({"group": group, "column": row, "value": round(value, 2), "text": text})
    caption = "How much higher (purple) or lower (brown) a group is than the other rows, in standard deviations of the "
    caption += "column." + " Blank: no cell of the group is known." * (len(cells) < len(names) * len(found.groups))
    return Chart("heat", caption, {"cells": cells, "columns": names, "groups": [g.name for g in found.groups]})


def _of_level(found: FoundGroups, group: str, trait: Trait, level: str) -> tuple[float, str]:
    """What a trait is of another level of its category, which is compared for all groups."""
    if trait.level == level:
        return float(trait.effect), trait.text
    g = next(g for g in found.groups if g.name == group)
    own, every = g.centre[trait.column][level], found.centre[trait.column][level]
    others = (every - g.share * own) / max(1.0 - g.share, 1e-12)
    spread = max(every * (1.0 - every), 1e-12) ** 0.5
    return (own - others) / spread, f"{trait.column} = {level}: {percent(own)} (others {percent(max(others, 0.0))})"


def _curve(answer: Any, k: int) -> list[Chart | Grid]:
    """What the criterion says of each k."""
    columns, name = answer.columns, answer.criterion
    if name not in columns or len(columns["k"]) < 2:
        return []
    values = np.asarray(columns[name], dtype=np.float64)
    points = [[int(at), float(v)] for at, v in zip(columns["k"], values, strict=True) if np.isfinite(v)]
    from unmix.selection.criteria import HIGH_IS_GOOD, WORDS

    high_is_good = name in (*HIGH_IS_GOOD, CRITERION)
    best = (max if high_is_good else min)(points, key=lambda point: point[1])[0] if points else k
    words = WORDS[name][0] if name in WORDS else name
    words = f"{words[0].upper()}{words[1:]}"
    caption = f"{words} for each number of groups: {'higher' if high_is_good else 'lower'} is better. The ring marks "
    caption += "the number told here, the band what can be defended"
    caption += "." if best == k else ", of which the number told was chosen as said above."
    low, high = answer.range
    return [Chart("curve", caption, {"points": points, "choice": k, "low": low, "high": high,
                                     "x": "number of groups", "y": words})]  # fmt: skip
