"""The picture of a selection: one panel for each criterion."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from unmix.selection.criteria import HIGH_IS_GOOD, WORDS

if TYPE_CHECKING:
    from unmix.selection.result import Selection

SIZE = (6.4, 2.1)  # inches of a panel
LINE = 96  # characters of the reason in a line
GAP = 0.25  # between panels that share one place, as a share of their height
MANY = 25  # ks from which on not every one has a tick


def draw(selection: Selection, ax: Any = None) -> Any:
    """Draw the criteria, each in its own unit, into axes of one's own or into those that are given."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        raise ImportError("plot needs Matplotlib: install it with  pip install 'unmix[plot]'") from None
    names, own = list(selection.votes), ax is None
    if own:
        reason = f"{selection.sentence}\n{textwrap.fill(selection.reason, LINE)}"
        height = SIZE[1] * len(names) + 0.9 + 0.17 * reason.count("\n")
        figure, ax = plt.subplots(len(names), sharex=True, figsize=(SIZE[0], height), layout="constrained")
        figure.suptitle(reason, x=0.02, ha="left", fontsize=8.5)
    panels = np.atleast_1d(np.asarray(ax, dtype=object))
    if len(panels) == 1 < len(names):  # one below the other, within the axes that are given
        panels[0].set_axis_off()
        rows = [(0.0, 1 - (i + 1) / len(names), 1.0, (1 - GAP) / len(names)) for i in range(len(names))]
        panels = np.array([panels[0].inset_axes(row) for row in rows], dtype=object)
    if len(panels) != len(names):
        raise ValueError(f"ax holds {len(panels)} axes: give {len(names)}, one for each of {', '.join(names)}")
    ks, (low, high) = selection.columns["k"], selection.range
    for name, panel in zip(names, panels, strict=True):
        word, unit = WORDS[name]
        value, error = selection.columns[name], selection.columns.get(f"{name}_se")
        panel.axvspan(low - 0.5, high + 0.5, color="0.92", lw=0)
        panel.errorbar(ks, value, error, marker="o", ms=4, capsize=2, color="C0", lw=1.2)
        bad = ~selection.columns["sound"]
        if bad.any() and not bad.all():
            panel.plot(ks[bad], value[bad], "x", ms=8, color="C3", label="collapsed")
            panel.legend(frameon=False, fontsize=8)
        best = list(ks).index(selection.votes[name])
        panel.plot(ks[best], value[best], "o", ms=10, mfc="none", color="black")
        if selection.k is not None:
            panel.axvline(selection.k, color="black", lw=1, ls=":")
        way = "high" if name in HIGH_IS_GOOD else "low"
        panel.set_title(f"{word[0].upper()}{word[1:]}: {way} is good", loc="left", fontsize=9)
        panel.set_ylabel("\n".join(textwrap.wrap(unit, 18)), fontsize=8)
        panel.tick_params(labelsize=8)
        panel.set_xlim(ks[0] - 0.6, ks[-1] + 0.6)
        if len(ks) <= MANY:
            panel.set_xticks(ks)
        else:
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    key = "ring: the criterion's own choice; dotted: the answer"
    key += f"; shaded: {low} to {high}, defensible" if low < high else ""
    panels[-1].set_xlabel(f"k   ({key})" if own else "k", fontsize=8.5)
    if not own:
        panels[0].set_title(selection.title, loc="right", fontsize=9)
    return panels if len(panels) > 1 else panels[0]
