"""Pictures of fits: how one went, and which of several was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unmix.engine.trace import Ended
from unmix.explanation.words import plural
from unmix.model.adapter import adapt
from unmix.model.estimator import Model
from unmix.plot.canvas import FILL, MARK, SMALL, bare, panels, pyplot, titled
from unmix.selection.estimator import Select
from unmix.selection.result import Selection


def choice(selection: Any, ax: Any = None) -> Any:
    """Draw how many parts each criterion would choose, and which number was chosen.

    Parameters
    ----------
    selection : Selection or Select
        What `unmix.select` gives, or a fitted `Select`.
    ax : matplotlib Axes or sequence of them, optional
        As for `Selection.plot`: one, which several criteria share, or one for each.

    Returns
    -------
    ax : matplotlib Axes, or array of them where there are several criteria

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> answer = unmix.select(unmix.KMeans(), load_iris().data, k=range(1, 6), random_state=0)
    >>> axes = unmix.plot.choice(answer)
    """
    pyplot()
    if isinstance(selection, Select):
        check_is_fitted(selection)
        selection = selection.selection_
    if not isinstance(selection, Selection):
        raise TypeError(f"selection is a {type(selection).__name__}: give what unmix.select(model, X) returns")
    return selection.plot(ax)


def trace(model: Any, ax: Any = None, *, gap: bool = False) -> Any:
    """Draw the objective step by step, a panel for each stage of the fit that has one; rejected steps are crosses.

    Parameters
    ----------
    model : estimator
        A fitted model of unmix.
    ax : matplotlib Axes or sequence of them, optional
        Where to draw: one, which the stages share, or one for each. By default in a figure of its own.
    gap : bool, default=False
        Draw how far each step is above the best of its stage, in a logarithmic scale: how fast it converged.

    Returns
    -------
    ax : matplotlib Axes, or array of them where several stages have an objective

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> model = unmix.KMeans(3, random_state=0).fit(load_iris().data)
    >>> ax = unmix.plot.trace(model)
    >>> len(ax.lines[0].get_xdata()) == len([s for s in model.trace_ if s.accepted])
    True
    """
    known = adapt(model)
    if not isinstance(known, Model):
        raise TypeError(f"trace: {type(known).__name__} keeps no trace of its fit; give a fitted model of unmix")
    check_is_fitted(known)
    every = [*known.stages_, Ended(type(known).__name__, known.result_, known.trace_)]
    told = [stage for stage in every if any(np.isfinite(s.objective) for s in stage.trace)] or every[-1:]
    drawn, _ = panels(ax, [1.0 + 0.5 * (stage is told[-1]) for stage in told], min(2.2 + 2.6 * len(told), 11.0), 3.2)
    for panel, stage in zip(drawn, told, strict=True):
        _stage(panel, stage, gap, first=stage is told[0])
    silent = [f"{s.name}: {plural(len(s.trace), 'step')}" for s in every[:-1] if s not in told and s.trace]
    drawn[-1].set_xlabel("step" + (f"   (after {', '.join(silent)})" if silent else ""))
    return np.array(drawn, dtype=object) if len(drawn) > 1 else drawn[0]


def _stage(ax: Any, stage: Ended, gap: bool, first: bool) -> None:
    """One stage: the steps that counted as a line, the others as crosses, at the edge where they are far off."""
    from matplotlib.ticker import MaxNLocator

    step = np.array([s.number for s in stage.trace])
    value = np.array([s.objective for s in stage.trace], dtype=np.float64)
    good = np.array([s.accepted for s in stage.trace], dtype=bool)
    bare(ax, "left", "bottom")
    titled(ax, f"{stage.name}: {stage.result}, {plural(len(step), 'step')}")
    ax.set_xlabel("step")
    if not np.isfinite(value).any():
        ax.set(xticks=[], yticks=[])
        ax.text(
            0.5, 0.5, "a closed form: no objective", transform=ax.transAxes, ha="center", va="center", fontsize=SMALL
        )
        return
    if gap:
        value = value - np.nanmin(value[good] if good.any() else value)
        value = np.where(value > 0, value, np.nan)  # the best itself is at minus infinity
        ax.set_yscale("log")
    if first:
        ax.set_ylabel("above the best, per row" if gap else "objective per row")
    ax.plot(step[good], value[good], "o-", color=FILL, ms=3.5, lw=1.3)
    kept = value[good & np.isfinite(value)]
    bad = ~good & np.isfinite(value)
    if bad.any():
        low, high = (kept.min(), kept.max()) if len(kept) else (value[bad].min(), value[bad].max())
        pad = 0.06 * (high - low) if high > low else 0.05 * abs(high)
        top = high * 2 if gap else high + pad
        ax.plot(step[bad], np.minimum(value[bad], top), "x", color=MARK, ms=5, mew=1.3, label="rejected", clip_on=False)
        ax.legend(frameon=False, fontsize=SMALL, loc="upper right")
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if not gap:
        ax.ticklabel_format(axis="y", useOffset=False)
