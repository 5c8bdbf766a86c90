"""What is in the table: kinds of columns, empty cells, what is there twice, how alike distances are."""

from __future__ import annotations

import re

import numpy as np

import unmix
from unmix.explanation.contents import values
from unmix.explanation.words import decimals, listed, number, percent, plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View
from unmix.table.kinds import Column

SHOWN = 60  # columns in the table
HOLES_SHOWN = 30  # columns, and
PATTERNS = 6  # patterns of empty cells
NEARLY = 0.95  # share of one value, from which on a column hardly varies
SAME = 0.999  # correlation, from which on two columns say the same
PAIRS = 10  # rows that must know both
NAMES = 5  # in a sentence


def contents(view: View) -> Section:
    """Tell what the table holds, and what about it should be known before anything is computed."""
    table = view.table
    used = [c for c in table.columns if c.role == "used"]
    cells = table.n * len(used)
    empty = sum(c.seen.missing for c in used)
    kinds = _kinds(used)
    odd = [*_hardly_vary(view), *_twice(view)]
    answer = f"{plural(table.n, 'row')} and {plural(len(table.columns), 'column')}"
    verb = "is" if len(used) == 1 else "are"
    answer += f", {kinds}" if len(used) == len(table.columns) else f", of which {len(used):,} {verb} used ({kinds})"
    holes = [c for c in used if c.seen.missing]
    answer += (
        f"; {percent(empty / cells)} of the cells are empty, in {plural(len(holes), 'column')}."
        if empty
        else "; no cell is empty."
    )
    notes = [re.sub(r" \(--.*?\)", "", note) for note in table.notes]  # how to change it is for the command line
    said = [f"{note[0].upper()}{note[1:]}." for note in notes] + odd
    if view.partial:
        answer += f" All that follows is of {view.looked_at}."
    told = _distances(view)
    shown: list[Chart | Grid] = [_columns(table.columns)]
    if holes:
        shown += _empty(view, holes)
    rest = view.opening.removeprefix(view.whole)
    code = f"{view.whole}\nprint(table){rest}\nprint(unmix.dimension({view.named}))  # how alike distances are"
    facts = {
        "rows": table.n,
        "columns": {c.name: {"kind": c.kind, "role": c.role, "missing": c.seen.missing} for c in table.columns},
        "empty_cells": empty,
        "remarks": odd,
        **told[1],
    }
    return Section("contents", "Contents", "What the table holds", answer, said + told[0], shown, code, facts)


def _kinds(used: list[Column]) -> str:
    """How many columns of each kind."""
    words = {
        "number": "of numbers",
        "integer": "of whole numbers",
        "count": "of counts",
        "boolean": "of yes or no",
        "category": "of categories",
    }
    count = {kind: sum(c.kind == kind for c in used) for kind in words}
    some = [f"{n:,} {words[kind]}" for kind, n in count.items() if n]
    return ", ".join(some) if len(some) > 1 else "all " * (len(used) > 1) + some[0].split(" ", 1)[1]


def _columns(columns: list[Column]) -> Grid:
    """A line for each column."""
    roles = {"used": "", "id": "names the rows", "label": "label", "weight": "weight", "left out": "left out"}
    rows, holes = [], any(c.seen.missing for c in columns[:SHOWN])
    for c in columns[:SHOWN]:
        told = [t for t in (roles[c.role] + f": {c.why}" * bool(c.why), values(c)) if t]
        missing = percent(c.seen.missing / c.seen.rows) if c.seen.missing else ""
        distinct = f"{c.seen.distinct:,}" if c.seen.distinct is not None and c.kind != "date" else ""
        rows.append([c.name, c.kind, "; ".join(told), *[missing] * holes, distinct])
    more = f" The first {SHOWN} of {len(columns):,}." if len(columns) > SHOWN else ""
    heads = ["column", "holds", "values", *["empty"] * holes, "different"]
    return Grid(f"Columns, and what each is taken for.{more}", heads, rows, 3)


def _empty(view: View, holes: list[Column]) -> list[Chart | Grid]:
    """Where cells are empty, and which are empty together."""
    most = sorted(holes, key=lambda c: -c.seen.missing)[:HOLES_SHOWN]
    bars = [{"name": c.name, "value": c.seen.missing / c.seen.rows} for c in most]
    out: list[Chart | Grid] = [
        Chart("bars", "Share of empty cells by column.", {"bars": bars, "unit": "share of rows", "percent": True})
    ]
    names = view.some.recipe.columns
    missing = _missing(view)
    patterns, count = np.unique(missing, axis=0, return_counts=True)
    order = np.argsort(-count, kind="stable")[:PATTERNS]
    if len(patterns) > 1:
        rows = []
        for i in order:
            gone = [name for name, out_ in zip(names, patterns[i], strict=True) if out_]
            rows.append([listed(gone, NAMES) or "none", percent(count[i] / len(missing))])
        out.append(Grid(f"What is empty together, in {view.looked_at}.", ["empty columns", "rows"], rows))
    return out


def _missing(view: View) -> np.ndarray:
    """Which cells of the columns used are empty."""
    return np.isnan(view.x[:, [a for a, _ in view.some.recipe.spans]])


def _hardly_vary(view: View) -> list[str]:
    """Columns nearly all of whose cells are the same."""
    out = [(name, 1.0) for name in view.table.recipe.columns if name not in view.some.recipe.columns]
    for use, (a, b) in zip(view.some.recipe.uses, view.some.recipe.spans, strict=True):
        x = view.x[:, a:b]
        x = x[~np.isnan(x).any(axis=1)]
        if not len(x):
            continue
        share = float(np.unique(x, axis=0, return_counts=True)[1].max()) / len(x)
        if share >= NEARLY:
            out.append((use.name, share))
    of = f" in the {view.rows}" * view.partial
    if len(out) > 1:
        names, least = listed([repr(name) for name, _ in out], NAMES), percent(min(share for _, share in out))
        return [f"{names} hardly vary: at least {least} of their cells are the same{of}."]
    return [f"{name!r} hardly varies: {percent(share)} of its cells are the same{of}." for name, share in out]


def _twice(view: View) -> list[str]:
    """Columns and rows that are there twice."""
    out, x = [], view.x
    numbers = [j for j, use in enumerate(np.repeat([not u.levels for u in view.some.recipe.uses],
                                                   [u.width for u in view.some.recipe.uses])) if use]  # fmt: skip
    if 1 < len(numbers) <= 1000:
        names = np.array(view.some.names)[numbers]
        pairs = [(repr(str(names[i])), repr(str(names[j]))) for i, j in _alike(x[:, numbers])]
        out += [f"{a} and {b} say the same (correlation beyond ±{SAME})." for a, b in pairs[:NAMES]]
        if len(pairs) > NAMES:
            out.append(f"So do {plural(len(pairs) - NAMES, 'pair')} of columns more.")
    rows = np.nan_to_num(x[~np.isnan(x).all(axis=1)], nan=np.inf)  # an empty cell is like an empty cell
    double = len(rows) - len(np.unique(rows, axis=0)) if len(rows) else 0
    if double:
        where = f" of the {view.rows}" * view.partial
        verb = "is a copy" if double == 1 else "are copies"
        out.append(f"{plural(double, 'row')}{where} {verb} of others in all columns used.")
    return out


def _alike(x: np.ndarray) -> np.ndarray:
    """Pairs of columns that say the same, where both are known."""
    seen = ~np.isnan(x)
    known = seen.sum(axis=0)
    z = np.where(seen, x - np.where(seen, x, 0.0).sum(axis=0) / np.maximum(known, 1), 0.0)
    m = seen.astype(np.float64)
    n = np.maximum(m.T @ m, 1.0)
    mean, square = z.T @ m / n, (z * z).T @ m / n  # of each column, over the rows that know the other, too
    varies = square - mean * mean
    both = np.sqrt(np.maximum(varies, 0.0) * np.maximum(varies.T, 0.0))
    floor = 1e-9 * np.maximum(np.sqrt(np.outer(np.diag(square), np.diag(square))), 1e-300)
    same = np.abs(z.T @ z / n - mean * mean.T) >= SAME * np.maximum(both, floor)
    return np.argwhere(np.triu(same & (n >= PAIRS), 1))


def _distances(view: View) -> tuple[list[str], dict[str, float]]:
    """How far distances have concentrated, and how many dimensions the rows have."""
    try:
        found = unmix.dimension(view.usual, random_state=view.seed)
    except ValueError:  # too few rows, or complete rows, to have distances
        return [], {}
    like = number(found.effective_columns, min(decimals(found.effective_columns), 1))
    text = (
        f"Distances between rows vary as they would in about {like} unrelated columns: the more there are, the less "
        "near and far differ."
        if found.effective_columns > 1
        else "Distances between rows vary more than they would in a single column: some are far from the others."
    )
    facts = {"effective_columns": float(found.effective_columns)}
    if found.trusted:
        text += f" Around each row, its neighbours spread in about {found.likelihood.value:.2g} directions."
        facts["intrinsic_dimension"] = float(found.likelihood.value)
    return [text], facts
