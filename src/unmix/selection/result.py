"""`Selection`: the answer to "how many?", with its table, a plot and a page for notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from unmix.model.capabilities import Groups
from unmix.selection.criteria import HIGH_IS_GOOD


@dataclass
class Selection:
    """The answer to "how many?".

    Attributes
    ----------
    table : data frame
        One row per k: the objective, whether the fit converged and is sound (nothing of it collapsed: others are not
        chosen), every criterion and its standard error.
    k : int or None
        The choice; None when the criteria disagree too much.
    reason : str
        Why, and how sure it is.
    model : estimator
        Fitted with the chosen k, or None.
    criterion : str
        The criterion that decided.
    votes : dict
        What each criterion would choose.

    Examples
    --------
    >>> import numpy as np
    >>> import unmix
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + rng.normal(size=(60, 2))
    >>> answer = unmix.select(unmix.KMeans(), X, k=range(1, 4), random_state=0)
    >>> answer.k, answer.criterion, answer.model.cluster_centers_.shape
    (2, 'icl', (2, 2))
    """

    table: Any
    k: int | None
    reason: str
    model: Any
    criterion: str
    votes: dict[str, int]
    columns: dict[str, np.ndarray] = field(repr=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw the criteria against k, each scaled to its own range, with the choice marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        ax : matplotlib Axes
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plot needs Matplotlib: install it with  pip install 'unmix[plot]'") from None
        if ax is None:
            ax = plt.subplots(figsize=(6, 3.5), layout="constrained")[1]
        ks = self.columns["k"]
        for name in self.votes:
            value, error = self.columns[name], self.columns.get(f"{name}_se", np.zeros(len(ks)))
            low, span = np.nanmin(value), np.nanmax(value) - np.nanmin(value) or 1.0
            shown = error / span if error.any() else None
            way = "high" if name in HIGH_IS_GOOD else "low"
            ax.errorbar(ks, (value - low) / span, shown, marker="o", ms=4, capsize=2, label=f"{name} ({way} is good)")
            best = list(ks).index(self.votes[name])
            ax.plot(ks[best], (value[best] - low) / span, "o", ms=9, mfc="none", color="black")
        if self.k is not None:
            ax.axvline(self.k, color="black", lw=1.5, ls=":")
        ax.set(xlabel="k", ylabel="criterion, from its lowest to its highest", title=self.title)
        ax.set_xticks([k for k in ks if len(ks) <= 25 or k % 5 == 0])
        ax.legend(frameon=False)
        return ax

    @property
    def title(self) -> str:
        """The answer in three words."""
        none = self.k == 1 and isinstance(self.model, Groups) and self.columns["sound"].sum() > 1
        return "not decided" if self.k is None else "no structure: k = 1" if none else f"k = {self.k}"

    def _repr_html_(self) -> str:
        shown = {n: v for n, v in self.columns.items() if not (n in ("converged", "sound") and v.all())}
        rows = []
        for i, k in enumerate(self.columns["k"]):
            tag, cells = "th" if k == self.k else "td", [_short(v[i]) for v in shown.values()]
            rows.append("<tr>" + "".join(f"<{tag} style='text-align:right'>{c}</{tag}>" for c in cells) + "</tr>")
        head = "".join(f"<th>{n}</th>" for n in shown)
        return f"<p><b>{self.title}</b>: {self.reason}</p><table><tr>{head}</tr>{''.join(rows)}</table>"

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


def _short(value: Any) -> str:
    """A cell of a table for people."""
    if isinstance(value, (np.bool_, bool)):
        return "yes" if value else "no"
    return str(value) if isinstance(value, Integral) else f"{value:.5g}" if np.isfinite(value) else "–"


def frame(columns: dict[str, np.ndarray]) -> Any:
    """A data frame of whichever kind is installed."""
    try:
        import pandas as pd

        return pd.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars as pl

        return pl.DataFrame(columns)
    except ImportError:
        import pyarrow as pa

        return pa.table(columns)
