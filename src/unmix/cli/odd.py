"""Rows that do not belong: which, how odd, and in what."""

from __future__ import annotations

from typing import Any

import numpy as np

import unmix
from unmix.cli.session import Session
from unmix.engine.sources import Source
from unmix.explanation.rows import reasons
from unmix.explanation.words import plural, table
from unmix.table import Table


def judged(source: Source, alpha: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A detector that has seen the rows, their p-values, by which it decides, and which are called odd."""
    detector = unmix.OutlierDetector(alpha=alpha, control="fdr", random_state=seed)
    odd = detector.fit_predict(source) < 0
    return detector, detector.tail_p_values_, odd


def show(source: Source, p: np.ndarray, odd: np.ndarray, alpha: float, most: int, say: Session) -> None:
    """How many rows are odd, and the oddest with their reasons."""
    count = int(odd.sum())
    level = f"{100 * alpha:g}%"
    if count:
        verb = "looks" if count == 1 else "look"
        say.show(
            f"{plural(count, 'row')} of {source.n:,} {verb} odd (the aim: at most {level} false alarms among them)"
        )
    else:
        say.show(f"no row of {source.n:,} looks odd (the aim: at most {level} false alarms); the least usual ones:")
    order = np.lexsort((np.arange(len(p)), p, ~odd))
    first = order[: max(min(count, most), min(3, source.n))]
    why = reasons(source, first)
    ids = source.role("id") if isinstance(source, Table) else []
    raw = source.raw if isinstance(source, Table) else None
    rows, given = [], []
    for i, because in zip(first.tolist(), why, strict=True):
        cells = raw.slice(i, i + 1, ids) if raw is not None and ids else None
        names = [] if cells is None else [str(cells.column(c)[0].as_py()) for c in ids]
        rows.append([str(i + 1), *([", ".join(names)] if ids else []), _p(p[i]), "yes" if odd[i] else "no", because])
        given.append(
            {"row": i + 1, "id": dict(zip(ids, names, strict=True)), "p_value": p[i], "odd": odd[i], "why": because}
        )
    say.show("")
    heads = ["row", *([", ".join(ids)] if ids else []), "p-value", "odd", "where it differs most"]
    say.show(table(heads, rows, left=1 + bool(ids), wrap=[len(heads) - 1]))
    if count > len(first):
        say.show(f"… and {count - len(first)} more: --out has all")
    say.give(rows=source.n, odd=count, alpha=alpha, oddest=given)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "<0.0001"
