"""`Selection`: the answer to "how many?", with its table, a plot and a page for notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from numbers import Integral
from typing import Any

import numpy as np

from unmix.model.capabilities import Groups
from unmix.selection.asked import SIZES


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
    range : tuple of int
        The least and the largest k that may be defended.
    sureness : {"sure", "open"}
        How sure k is. On planted tables whose columns count alike "sure" was right in at least 95 of 100, "open" in 6
        of 10: there take the range and not the number. Where few columns dominate the words are
        worth less: "sure" was right in 3 of 4 there, "open" in none of 12.
    reason : str
        Why, in sentences.
    model : estimator
        Fitted with the chosen k, or None.
    criterion : str
        The criterion that decided.
    votes : dict
        What each criterion would choose.
    parameter : str
        The parameter whose value k is.

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
    range: tuple[int, int]
    sureness: str
    reason: str
    model: Any
    criterion: str
    votes: dict[str, int]
    columns: dict[str, np.ndarray] = field(repr=False)
    parameter: str = SIZES[0]

    def plot(self, ax: Any = None) -> Any:
        """Draw the criteria against k, one below the other, with the choice marked and the range shaded.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            Where to draw: one, which several criteria share, or one for each criterion in the order of `votes`.

        Returns
        -------
        ax : matplotlib Axes, or array of them where there are several criteria
        """
        from unmix.selection.picture import draw

        return draw(self, ax)

    @property
    def title(self) -> str:
        """The answer in three words."""
        return "not decided" if self.k is None else "no structure: k = 1" if self._nothing else f"k = {self.k}"

    @property
    def _nothing(self) -> bool:
        """Whether there are no groups."""
        return self.k == 1 and self._noun == "group" and bool(self.columns["sound"].sum() > 1)

    @property
    def _noun(self) -> str:
        """What is counted."""
        if self.parameter not in SIZES:
            return self.parameter.removeprefix("n_").removesuffix("s")
        return "group" if isinstance(self.model, Groups) else "part"

    @property
    def sentence(self) -> str:
        """The answer and its range in a sentence."""
        low, high = self.range
        some = f"; {low} to {high} are defensible" if high > low else ""
        if self.k is None:
            return f"not decided{some}."
        return f"{self.k} {self._noun}{'s' * (self.k != 1)} ({self.sureness}){some}."

    def _repr_html_(self) -> str:
        shown = {n: v for n, v in self.columns.items() if not (n in ("converged", "sound") and v.all())}
        rows = []
        for i, k in enumerate(self.columns["k"]):
            tag, cells = "th" if k == self.k else "td", [_short(v[i]) for v in shown.values()]
            rows.append("<tr>" + "".join(f"<{tag} style='text-align:right'>{c}</{tag}>" for c in cells) + "</tr>")
        head = "".join(f"<th>{escape(n)}</th>" for n in shown)
        text = f"<p><b>{escape(self.title)}</b>: {escape(self.sentence)} {escape(self.reason)}</p>"
        return f"{text}<table><tr>{head}</tr>{''.join(rows)}</table>"

    def __str__(self) -> str:
        return f"{'no structure: ' * self._nothing}{self.sentence} {self.reason}"


def _short(value: Any) -> str:
    """A cell of a table for people."""
    if isinstance(value, (np.bool_, bool)):
        return "yes" if value else "no"
    return str(value) if isinstance(value, Integral) else f"{value:.5g}" if np.isfinite(value) else "–"
