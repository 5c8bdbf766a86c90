"""What would be filled into the empty cells, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

import unmix
from unmix.explanation.words import decimals, listed, number, percent
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View

ROWS = 2_000  # that are learnt from
FEWEST = 20
SHOWN = 20  # columns
CELLS, OF_EACH = 12, 3  # empty cells whose filling is shown, and of each column
KNOWN = 0.25  # share of the variance from which on a guess is worth something


def holes(view: View) -> Section | None:
    """How well cells can be guessed from the others of their row, by cells that were held out."""
    if not view.holes or view.some.n < FEWEST:
        return None
    view.tell("empty cells")
    learnt = view.some.part(ROWS)
    imputer = unmix.Imputer(random_state=view.seed).fit(learnt)
    kinds = {use.name: use.kind for use in imputer.recipe.uses} if imputer.recipe else {}
    empty = {c.name: c.seen.missing for c in view.table.columns if c.seen.missing}
    lines: list[tuple[float, list[str]]] = []
    for name, error, plain in zip(imputer.names_, imputer.errors_, imputer.baseline_, strict=True):
        if name not in empty or not np.isfinite(error) or not plain > 0:
            continue
        wrong = kinds.get(name) in ("boolean", "category")
        known = max(float(1.0 - (error / plain if wrong else (error / plain) ** 2)), 0.0)
        places = decimals(float(plain)) + 1
        told = [f"{100 * v:.0f}% wrong" if wrong else f"±{number(float(v), places)}" for v in (error, plain)]
        lines.append((known, [name, f"{empty[name]:,}", *told, percent(known)]))
    if not lines:
        return None
    lines = sorted(lines, key=lambda line: -line[0])[:SHOWN]
    good, poor = ([repr(row[0]) for known, row in lines if (known >= KNOWN) == worth] for worth in (True, False))
    if good:
        answer = f"The empty cells of {listed(good, 3)} can be guessed from the other columns"
    else:
        answer = "No empty cell can be guessed much better than by the mean of its column"
    answer += f"; those of {listed(poor, 3)} hardly." if good and poor else "."
    bars = [{"name": row[0], "value": round(known, 4)} for known, row in lines]
    shown: list[Chart | Grid] = [
        Chart(
            "bars",
            "How much of what varies in a column its other columns tell, by cells that were hidden and guessed.",
            {"bars": bars, "unit": "share of the variance that is known", "percent": True},
        ),
        Grid(
            "What a guess is off by, and what the mean (or the commonest level) is off by, in the units of the column.",
            ["column", "empty", "a guess is off by", "the mean by", "known"],
            [row for _, row in lines],
        ),
        *_filled(view, imputer, {row[0]: row[2] for _, row in lines}),
    ]
    some = "table" if learnt is view.some else f"table.part({ROWS})"
    code = (
        f"{view.given}\nimputer = unmix.Imputer(random_state={view.seed}).fit({some})\n"
        "filled, sd = imputer.impute(table, return_std=True)\nprint(imputer.report())"
    )
    reason = imputer.reason_.rstrip(".")
    said = [
        "Guesses are right as far as cells are missing at random or by what other columns show; where a cell is "
        "missing because of its own value, nobody can tell from the table.",
    ]
    why = (f"Learnt from {learnt.n:,} rows: {reason[:1].lower()}{reason[1:]}.",)
    facts = {"known": {row[0]: known for known, row in lines}, "chosen": imputer.chosen_}
    return Section("holes", "Empty cells", "What the empty cells would hold", answer, said, shown, code, facts, why)


def _filled(view: View, imputer: Any, off: dict[str, str]) -> list[Grid]:
    """Some empty cells, of the columns that are known best, and what would be put there."""
    uses = {use.name: use for use in view.some.recipe.uses}
    empty = np.isnan(view.x[:, [a for a, _ in view.some.recipe.spans]])
    at = {name: np.flatnonzero(empty[:, list(uses).index(name)])[:OF_EACH] for name in off}
    cells = [(int(i), name) for name, rows in at.items() for i in rows][:CELLS]
    if not cells:  # they are in rows that are not looked at
        return []
    rows = sorted({i for i, _ in cells})
    sheet = view.some.rows(np.array(rows, dtype=np.intp))
    filled, deviation = imputer.impute(sheet, return_std=True)
    told = []
    for i, name in cells:
        value, sd = (t.column(name)[rows.index(i)].as_py() for t in (filled, deviation))
        if uses[name].kind in ("boolean", "category"):
            told.append([view.name_of(i), name, str(value), f"{off[name]} where hidden"])
        else:
            places = 0 if uses[name].kind in ("integer", "count") else decimals(uses[name].scale)
            told.append([view.name_of(i), name, number(float(value), places), f"±{number(float(sd), decimals(sd))}"])
    caption = "Some empty cells and what they would hold, with the standard deviation of that."
    return [Grid(caption, ["row", "column", "would hold", "give or take"], told, 2)]
