"""The record of a fit."""

from __future__ import annotations

from typing import Any, NamedTuple


class Step(NamedTuple):
    """One pass over the data.

    Attributes
    ----------
    number : int
        The pass, from 1.
    objective : float
        What is minimised, per row, at the parts that the pass began with.
    seconds : float
        Time since the fit began.
    rows_per_second : float
        Rows over the seconds of this pass.
    accepted : bool
        False when the parts were an extrapolation that made the objective worse, and were dropped.
    """

    number: int
    objective: float
    seconds: float
    rows_per_second: float
    accepted: bool = True


class Fit(NamedTuple):
    """What a fit found.

    Attributes
    ----------
    U : Any
        The parts.
    z : Any
        The hidden rows from the closing pass, if the model collects them.
    loss : float
        Σ w loss over all rows at U.
    objective : float
        (loss + penalty) per row at U.
    weight : float
        Σ w.
    n_rows : int
        Rows of the data.
    dtype : Any
        Precision of the data.
    trace : list of Step
        One entry per pass.
    result : str
        "converged", "max_iter", "nonfinite" or "stopped".
    message : str
        The result in words.
    stats : Any
        The total statistics of the closing pass.
    """

    U: Any
    z: Any
    loss: float
    objective: float
    weight: float
    n_rows: int
    dtype: Any
    trace: list[Step]
    result: str
    message: str
    stats: Any


def picture(trace: list[Step], result: str) -> str:
    """How a fit went, as HTML: a sentence and the objective pass by pass."""
    steps = [s for s in trace if s.accepted]
    if not steps:
        return ""
    words = f"{result} after {len(trace)} pass{'es' * (len(trace) > 1)}"
    words += f", {trace[-1].seconds:.2g} s" if trace[-1].seconds else ""  # of a fit in one step nobody knows
    line = f"<div style='font:12px sans-serif;margin:4px 0'>{words}; objective {steps[-1].objective:.6g} a row"
    values = [s.objective for s in steps]
    low, span = min(values), (max(values) - min(values)) or 1.0
    if len(values) > 2:
        wide = 120 / (len(values) - 1)
        points = " ".join(f"{i * wide:.1f},{22 - 20 * (v - low) / span:.1f}" for i, v in enumerate(values))
        line += (
            " <svg width='124' height='24' viewBox='-2 0 124 24' style='vertical-align:middle'>"
            f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
        )
    return line + "</div>"
