"""What a model of groups says without the rows that it was fitted to: the same sums, of rows drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.engine.sources import Source, as_source
from unmix.table.recipe import Recipe
from unmix.table.table import Table

DRAWS = 20_000


def drawn(model: Any) -> tuple[Source, np.ndarray]:
    """Rows drawn from a fitted mixture, in the units of the table, and their groups."""
    X, labels = model.sample(DRAWS)
    recipe: Recipe | None = model.recipe
    if recipe is None:
        return as_source(np.asarray(X)), labels
    return Table.like(_cells(recipe, np.asarray(X, dtype=np.float64)), recipe), labels


def _cells(recipe: Recipe, X: np.ndarray) -> dict[str, Any]:
    """Rows as cells of a table: of a category the likeliest level."""
    out: dict[str, Any] = {}
    for use, values in zip(recipe.uses, recipe.decode(X).values(), strict=True):
        if use.levels:
            code = values.argmax(axis=1) if values.ndim == 2 else values.astype(int)
            out[use.name] = [use.levels[c] for c in code]
        else:
            out[use.name] = values
    return out
