"""Which rows do not fit, and in what."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

import unmix
from unmix.explanation.rows import reasons
from unmix.explanation.words import decimals, listed, number, plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View
from unmix.table.kinds import AMOUNTS

FEWEST = 20  # rows among which odd ones are sought
SHOWN = 12  # rows in the table
LEAST = 3  # rows that are shown where none is odd
ALPHA = 0.05
FEW = 0.1  # of all rows, up to which odd ones are left out where groups and components are sought
BINS = 40
REACH = 8.0  # interquartile ranges beyond the upper quartile, as far as scores are drawn one by one
ENOUGH = 50  # cells of a column that are needed to speak of its tail
WIDEST = 200  # columns of which single cells are judged


def odd(view: View) -> Section | None:
    """Find the rows that lie further out than the others let expect."""
    if view.some.n < FEWEST:
        return None
    view.tell("rows that do not fit")
    detector = unmix.OutlierDetector(alpha=ALPHA, random_state=view.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = np.asarray(detector.fit_predict(view.some)) < 0
    if 0 < out.sum() <= FEW * len(out):
        view.leave_out(out)
    p, scores, count = detector.tail_p_values_, detector.scores_, int(out.sum())
    first = np.lexsort((-scores, p, ~out))[: max(min(count, SHOWN), LEAST)]
    why = reasons(view.some, first)
    rows = [
        [view.name_of(int(i)), because, "yes" if out[i] else "no", _p(p[i])]
        for i, because in zip(first, why, strict=True)
    ]
    of = f" of the {view.rows}" * view.partial
    if count:
        verb = "does" if count == 1 else "do"
        counted = f"{count:,}" if view.partial else plural(count, "row")
        answer = f"{counted}{of} {verb} not fit the others; the strangest is {rows[0][0]} – {why[0]}."
    else:
        answer = f"{'None' if of else 'No row'}{of} stands out: none is further from the others than is to be expected."
    more = f" The first {len(rows)} of {count}." if count > len(rows) else ""
    shown: list[Chart | Grid] = [
        Grid(f"The strangest rows, and where they differ most from what is usual.{more}",
             ["row", "where it differs", "odd", "p-value"], rows, 3),
        _spread(view, scores, out),
    ]  # fmt: skip
    said = [
        f"Looked at: {view.looked_at}. Each row is scored by models that have not seen it, and called odd where its "
        f"score lies beyond the tail of the others; the aim is at most {ALPHA:.0%} false alarms among the rows called "
        "odd. That is measured on many kinds of noise, not proved."
    ]
    code = (
        f"{view.given}\ndetector = unmix.OutlierDetector(random_state={view.seed})\n"
        "odd = detector.fit_predict(table) < 0\nprint(detector.tail_p_values_[odd])"
    )
    cells = _cells(view)
    if cells.found:
        verb, whose = ("does", "its") if len(cells.found) == 1 else ("do", "their")
        answer += f" {plural(len(cells.found), 'cell')} {verb} not fit the other cells of {whose} row."
    shown += cells.shown
    facts = {
        "odd": count,
        "rows": [int(view.numbers[i]) + 1 for i in np.flatnonzero(out)],
        "cells": [{"row": int(view.numbers[i]) + 1, "column": name} for i, name in cells.found],
        "strangest": [{"row": r[0], "why": r[1], "odd": r[2] == "yes", "p_value": float(p[i])}
                      for r, i in zip(rows, first, strict=True)],
    }  # fmt: skip
    return Section("odd", "Odd rows", "Which rows do not fit", answer, said, shown, code + cells.code, facts)


class Cells(NamedTuple):
    """Cells that do not fit the others of their row: their rows in `view.some` and columns, and how they are shown."""

    found: list[tuple[int, str]]
    shown: list[Grid]
    code: str


def _cells(view: View) -> Cells:
    """Find the numbers that the other numbers of their row do not let expect."""
    recipe = view.some.recipe
    at = [(a, use) for (a, _), use in zip(recipe.spans, recipe.uses, strict=True) if use.kind in AMOUNTS]
    x = view.x[:, [a for a, _ in at]]
    x = x[:, kept := np.flatnonzero((~np.isnan(x)).sum(axis=0) >= ENOUGH)]
    uses = [at[j][1] for j in kept]
    if not 2 <= len(uses) <= WIDEST:
        return Cells([], [], "")
    view.tell("cells that do not fit")
    factors = max(1, min(len(uses) // 2, int(unmix.PCA("parallel", random_state=view.seed).fit(x).n_components_)))
    judge = unmix.OutlierDetector(unmix.PCA(factors), cells=True, alpha=ALPHA, random_state=view.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strange = np.abs(np.where(judge.fit(x).odd_cells(), judge.cell_scores_, 0.0))
    worst = strange.argmax(axis=1)  # a wrong cell makes others of its row look strange
    rows = np.flatnonzero(strange.max(axis=1))
    rows = rows[np.argsort(-strange[rows, worst[rows]], kind="stable")]
    if not len(rows):
        return Cells([], [], "")
    why_odd = judge.reasons(x, rows, most=1)
    found = [(why.row, uses[why.column].name) for why in why_odd]
    told: list[list[str]] = []
    for why in why_odd[:SHOWN]:
        use = uses[why.column]
        value, usual = use.decode(np.array([[why.value], [why.usual]]))[:, 0]
        spread = why.spread * use.scale
        holds = number(float(value), 0 if use.kind in ("integer", "count") else decimals(spread))
        expected, give = (number(float(v), decimals(spread)) for v in (usual, spread))
        told.append([view.name_of(why.row), use.name, holds, f"{expected} ± {give}"])
    more = f" The first {len(told)} of {len(found)}." if len(found) > len(told) else ""
    caption = f"Cells that do not fit, the strangest of each row, and what the others of the row let expect.{more}"
    columns = [at[j][0] for j in kept]
    code = (
        f"\n\nX = table.read(0, table.n)[:, {columns}]  # {listed([repr(use.name) for use in uses], 3)}\n"
        f"judge = unmix.OutlierDetector(unmix.PCA({factors}), cells=True, random_state={view.seed})\n"
        "print(judge.fit(X).odd_cells().nonzero())"
    )
    return Cells(found, [Grid(caption, ["row", "column", "holds", "expected"], told, 2)], code)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "<0.0001"


def _spread(view: View, scores: np.ndarray, out: np.ndarray) -> Chart:
    """How scores spread, and where the odd ones are."""
    low, high = np.quantile(scores, [0.25, 0.75])
    far = high + REACH * (high - low)
    near = scores if scores.max() <= far or not high > low else scores[scores <= far]
    edges = np.histogram_bin_edges(near, BINS)
    usual, strange = (np.histogram(np.minimum(scores[rows], edges[-1]), edges)[0] for rows in (~out, out))
    bins = [{"low": float(a), "high": float(b), "usual": int(u), "odd": int(o)}
            for a, b, u, o in zip(edges, edges[1:], usual, strange, strict=False)]  # fmt: skip
    caption = f"How strange rows are: scores of {'the ' + view.rows if view.partial else 'all rows'}" + (
        ", the odd ones marked." if out.any() else "."
    )
    if beyond := len(scores) - len(near):
        most = number(float(scores.max()), min(decimals(float(scores.max())), 1))
        caption += f" The last bar also holds {plural(beyond, 'row')} further out, up to a score of {most}."
    return Chart("histogram", caption, {"bins": bins, "x": "score (larger is stranger)", "y": "rows"})
