"""A saved model in words, without the table that it was fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unmix.cli.fits import headline, how_it_went
from unmix.cli.session import Session
from unmix.explanation import explain
from unmix.explanation.words import decimals, number, percent, plural, table
from unmix.model.capabilities import Components, Geometry, Groups, Samples
from unmix.model.estimator import Model
from unmix.table.recipe import Recipe

SHOWN = 20  # columns
SHOWN_GROUPS = 8


def told(model: Any, file: str, say: Session) -> None:
    """What a file holds: the model, its columns, and its parts in the units of the table."""
    from rich.padding import Padding

    name = type(model).__name__
    say.show(f"{Path(file).name}: a fitted {name}")
    say.show("  " + " ".join(repr(model).split()))
    say.give(file=file, model=name, parameters={k: str(v) for k, v in model.get_params(deep=False).items()})
    if isinstance(model, Model):
        columns = model.column_names or [str(j) for j in range(model.n_features_in_)]
        recipe = model.recipe
        names = list(recipe.columns) if recipe is not None else columns
        say.show(f"  {how_it_went(model)}, fitted to {plural(len(names), 'column')}:")
        say.show(Padding(_listed(names), (0, 0, 0, 2)))
        say.show("")
        say.give(columns=names, result=model.result_)
        if isinstance(model, Components):
            found = explain(model)
            say.show(f"{headline(found)}")
            say.show("")
            say.show(found)
            say.give(**found.to_dict())
        elif isinstance(model, Groups) and isinstance(model, Samples):
            described = explain(model)
            say.show("its groups, as the model describes them:")
            say.show("")
            say.show(described)
            say.give(**described.to_dict())
        elif isinstance(model, Geometry):
            _centres(model, recipe, columns, say)
    say.hint(f"next:  unmix apply {file} TABLE --out with_results.csv")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:10]) + f" and {len(names) - 10} more" * (len(names) > 10)


def _centres(model: Any, recipe: Recipe | None, columns: list[str], say: Session) -> None:
    """Centres of groups, where the model keeps them as rows."""
    rows = model.centers()
    if rows is None:
        say.show("its groups are told with a table beside:  unmix apply MODEL TABLE")
        return
    rows = np.asarray(rows, dtype=np.float64)
    by = recipe.decode(rows) if recipe is not None else {name: rows[:, j] for j, name in enumerate(columns)}
    lines = []
    for name, values in list(by.items())[:SHOWN]:
        lines.append([name, *_cells(recipe, name, values[:SHOWN_GROUPS])])
    say.show(f"{plural(len(rows), 'group')}; their centres:")
    say.show("")
    say.show(table(["column", *(f"group {g + 1}" for g in range(min(len(rows), SHOWN_GROUPS)))], lines))
    if len(by) > SHOWN or len(rows) > SHOWN_GROUPS:
        say.show("… and more: --json has all")
    say.give(centres={name: values.tolist() for name, values in by.items()})


def _cells(recipe: Recipe | None, name: str, values: np.ndarray) -> list[str]:
    if values.ndim == 1:
        spread = float(values.std()) or abs(float(values.mean()))
        return [number(float(v), decimals(spread)) for v in values]
    levels = next(use.levels for use in recipe.uses if use.name == name) if recipe is not None else ()
    best = values.argmax(axis=1)
    return [f"{levels[j]} {percent(min(max(float(v[j]), 0.0), 1.0))}" for j, v in zip(best, values, strict=True)]
