"""Which rows do not fit, and in what."""

from __future__ import annotations

import warnings

import numpy as np

import unmix
from unmix.explanation.rows import reasons
from unmix.explanation.words import plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View

FEWEST = 20  # rows among which odd ones are sought
SHOWN = 12  # rows in the table
LEAST = 3  # rows that are shown where none is odd
ALPHA = 0.05
FEW = 0.1  # of all rows, up to which odd ones are left out where groups and components are sought
BINS = 40


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
        [view.name_of(int(i)), because or "–", "yes" if out[i] else "no", _p(p[i])]
        for i, because in zip(first, why, strict=True)
    ]
    if count:
        verb = "does" if count == 1 else "do"
        strangest = f"{rows[0][0]} ({why[0] or 'by its combination of values'})"
        answer = f"{plural(count, 'row')} {verb} not fit the others; the strangest is {strangest}."
    else:
        answer = "No row lies further out than the others let expect."
    more = f" The first {len(rows)} of {count}." if count > len(rows) else ""
    shown: list[Chart | Grid] = [
        Grid(f"The strangest rows, and where they differ most from what is usual.{more}",
             ["row", "where it differs", "odd", "p-value"], rows, 3),
        _spread(scores, out),
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
    facts = {
        "odd": count,
        "rows": [int(view.numbers[i]) + 1 for i in np.flatnonzero(out)],
        "strangest": [{"row": r[0], "why": r[1], "odd": r[2] == "yes", "p_value": float(p[i])}
                      for r, i in zip(rows, first, strict=True)],
    }  # fmt: skip
    return Section("odd", "Which rows do not fit", answer, said, shown, code, facts)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "<0.0001"


def _spread(scores: np.ndarray, out: np.ndarray) -> Chart:
    """How scores spread, and where the odd ones are."""
    edges = np.histogram_bin_edges(scores, BINS)
    usual, strange = (np.histogram(scores[rows], edges)[0] for rows in (~out, out))
    bins = [{"low": float(a), "high": float(b), "usual": int(u), "odd": int(o)}
            for a, b, u, o in zip(edges, edges[1:], usual, strange, strict=False)]  # fmt: skip
    return Chart("histogram", "How strange rows are: scores of all rows, the odd ones marked.",
                 {"bins": bins, "x": "score (larger is stranger)", "y": "rows"})  # fmt: skip
