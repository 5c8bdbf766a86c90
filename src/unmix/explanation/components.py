"""Components, factors, parts and topics: which columns each is made of, and how much of the data it describes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unmix.explanation.words import as_text, percent, plural, shortened, table

TOLD = 5  # columns that are told of a component
WEAK = 0.25  # of the strongest, below which none is
SHOWN = 20  # columns in the table of loadings; `to_dict` has them all
SHOWN_COMPONENTS = 30


@dataclass(frozen=True)
class Component:
    """A component.

    Attributes
    ----------
    name : str
        "component 1" and so on.
    explained : float or None
        The share of the variance of the data that it describes.
    loadings : dict
        How strongly each column enters, by name, the strongest first.
    """

    name: str
    explained: float | None
    loadings: dict[str, float]


@dataclass(frozen=True)
class FoundComponents:
    """What a model of components found.

    Attributes
    ----------
    model : str
        Name of the model.
    components : list of Component
        In their order.
    shares : bool
        Whether loadings are shares that sum to 1; else they have signs.
    correlations : bool
        Whether loadings are correlations of columns with the component.
    """

    model: str
    components: list[Component]
    shares: bool
    correlations: bool = False

    @property
    def explained(self) -> float | None:
        """The share of the variance that all describe together."""
        known = [c.explained for c in self.components if c.explained is not None]
        return float(sum(known)) if known else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"model": self.model, "components": [asdict(c) for c in self.components], "explained": self.explained}

    def __str__(self) -> str:
        return as_text(self)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        shown, total, rows = self.components[:SHOWN_COMPONENTS], 0.0, []
        known = self.explained is not None
        for i, c in enumerate(shown):
            total += c.explained or 0.0
            told = [percent(c.explained or 0.0), percent(min(total, 1.0))] if known else []
            rows.append([str(i + 1), *told, self._words(c)])
        heads = ["component", *(["describes", "together"] if known else []), "made of"]
        yield table(heads, rows, wrap=[len(heads) - 1])
        if len(self.components) > len(shown):
            yield f"… and {len(self.components) - len(shown)} more components"
        yield ""
        yield from self._loadings(options.max_width, shown)

    def _words(self, c: Component) -> str:
        """The columns that it is made of."""
        some = list(c.loadings.items())[:TOLD]
        strong = [(name, v) for name, v in some if abs(v) >= WEAK * abs(some[0][1]) and v]
        return ", ".join(f"{name} {self._written(v)}" for name, v in strong) or "nothing"

    def _written(self, value: float) -> str:
        if self.shares:
            return percent(value)
        return f"{value:+.2f}".replace("-", "−") if abs(value) >= 0.005 else "0.00"

    def _loadings(self, width: int, shown: list[Component]) -> Iterator[Any]:
        """The table of loadings, as many components side by side as there is room for."""
        if len(shown) < 2:
            return
        names = list(dict.fromkeys(name for c in shown for name in list(c.loadings)[: max(2, SHOWN // len(shown))]))
        few = len(shown[0].loadings) <= SHOWN
        names = [name for name in shown[0].loadings if few or name in names][:SHOWN]
        room = min(max(map(len, names)), max(12, width // 3))
        beside = max(1, (width - room) // 9)
        for a in range(0, len(shown), beside):
            part = shown[a : a + beside]
            rows = [[shortened(n, room), *(self._written(c.loadings[n]) for c in part)] for n in names]
            yield table(["loadings", *(str(a + i + 1) for i in range(len(part)))], rows)
            yield ""
        if (left := len(shown[0].loadings) - len(names)) > 0:
            yield f"({plural(left, 'more column')} with weaker loadings)"
        if self.correlations:
            yield "Loadings are correlations of columns with the component, from −1 to 1."


def found_components(model: Any, columns: list[str]) -> FoundComponents:
    """What a fitted model of components says of these columns."""
    loadings, explained, recipe = model.loadings(), model.explained(), model.recipe
    alike = recipe is not None and recipe.how == "standardised" and explained is not None
    if alike:  # covariances with columns, of deviation 1 where they are numbers, or more where they have holes
        seen = np.array([v for use in recipe.uses for v in use.deviations])
        loadings = loadings / np.maximum(seen, np.sqrt((loadings**2).sum(axis=0)))
    out = []
    for i, row in enumerate(loadings):
        order = np.argsort(-np.abs(row), kind="stable")
        share = None if explained is None else float(explained[i])
        out.append(Component(f"component {i + 1}", share, {columns[j]: float(row[j]) for j in order}))
    return FoundComponents(type(model).__name__, out, bool(model.shares), alike)
