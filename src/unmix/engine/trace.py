"""The record of a fit."""

from __future__ import annotations

from typing import Any, NamedTuple

from unmix.engine.layout import Shape


class Step(NamedTuple):
    """One step of a fit: a pass over the data, or a round on what is held of them.

    Attributes
    ----------
    number : int
        The step, from 1.
    objective : float
        What is minimised, per row, at the parts that the step began with; NaN where a stage has none.
    seconds : float
        Time since the fit began.
    rows_per_second : float
        Rows over the seconds of this step.
    accepted : bool
        False when the parts made the objective worse: an extrapolation, which was dropped, or a round of a stage whose
        objective may rise.
    """

    number: int
    objective: float
    seconds: float
    rows_per_second: float
    accepted: bool = True


FINISHED = frozenset({"converged", "solved"})  # results of a fit that came to its end


class Ended(NamedTuple):
    """A stage of a fit that has ended: what it is called, why it ended, its steps, and the result in words."""

    name: str
    result: str
    trace: list[Step]
    message: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}: {self.message or self.result}>"


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
    shape : Shape
        The shape of the data, as the model came to know it.
    trace : list of Step
        One entry per pass.
    result : str
        "converged"; "solved" where a fixed number of steps is all that there is to do; "max_iter", "nonfinite" or
        "stopped"; "running" until then.
    message : str
        The result in words.
    stats : Any
        The total statistics of the closing pass, of weights that sum to `shape.weight`.
    stages : list of Ended
        The stages before the last.
    unfinished : bool
        Whether it ended at `max_iter` although more steps were worth it.
    rivals : list
        The parts of the other starts, as they ended in the last stage.
    """

    U: Any
    z: Any
    loss: float
    objective: float
    shape: Shape
    trace: list[Step]
    result: str
    message: str
    stats: Any
    stages: list[Ended]
    unfinished: bool = False
    rivals: list[Any] = []  # noqa: RUF012  nobody writes to it

    @property
    def converged(self) -> bool:
        """Whether it came to its end, by the stopping rule or by plan."""
        return self.result in FINISHED

    @property
    def objectives(self) -> list[float]:
        """The objective per row at the parts that each pass over these rows began with; of a dropped one, the last."""
        out: list[float] = []
        for s in [] if self.result == "running" else self.trace:
            out.append(s.objective if s.accepted or not out else out[-1])
        return out

    @property
    def weight(self) -> float:
        """Σ w in the user's weights, as `loss` counts them."""
        return self.shape.weight * self.shape.unit

    @property
    def dtype(self) -> Any:
        """Precision of the data."""
        return self.shape.dtype


def picture(trace: list[Step], result: str) -> str:
    """How a fit went, as HTML: a sentence and the objective pass by pass."""
    steps = [s for s in trace if s.accepted]
    if not steps:
        return ""
    words = f"{result} after {len(trace)} step{'s' * (len(trace) > 1)}"
    words += f", {trace[-1].seconds:.2g} s" if trace[-1].seconds else ""  # unknown for a fit in one step
    told = f"; objective {steps[-1].objective:.6g} a row" if steps[-1].objective == steps[-1].objective else ""
    line = f"<div style='font:12px sans-serif;margin:4px 0'>{words}{told}"
    values = [s.objective for s in steps]
    low, span = min(values), (max(values) - min(values)) or 1.0
    if len(values) > 2 and span == span:
        wide = 120 / (len(values) - 1)
        points = " ".join(f"{i * wide:.1f},{22 - 20 * (v - low) / span:.1f}" for i, v in enumerate(values))
        line += (
            " <svg width='124' height='24' viewBox='-2 0 124 24' style='vertical-align:middle'>"
            f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
        )
    return line + "</div>"
