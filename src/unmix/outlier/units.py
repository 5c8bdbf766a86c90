"""Units of a file's scores: as many as its models measure by."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.model.adapter import adapt
from unmix.model.capabilities import Completes, Density, Geometry, Imputes
from unmix.model.files import Files


def wrong_units(models: list[Any], units: list[Any], cell_units: list[Any], d: int, cells: bool) -> str:
    """Why models of d columns, the units of their row scores and, if cells are judged, of their cells do not agree."""
    if not models or any(not isinstance(m, Files) or vars(m).get("n_features_in_") != d for m in models):
        return f"its models are not those of {d} columns"
    if len(units) != len(models) or len(cell_units) != (len(models) if cells else 0):
        return "it has not as many units as models"
    of_rows = all(fits(unit, for_rows(m, d)) for m, unit in zip(models, units, strict=True))
    of_cells = all(fits(unit, for_cells(m, d)) for m, unit in zip(models, cell_units, strict=False))
    return "" if of_rows and of_cells else "its units are not those of its models"


def for_rows(model: Any, d: int) -> int | None:
    """How many numbers the units of a model's row scores are: one for each cluster or column, or none."""
    kind: Any = adapt(model)
    if isinstance(kind, (Completes, Density)):
        return None
    return len(model.get_feature_names_out()) if isinstance(kind, Geometry) else d


def for_cells(model: Any, d: int) -> int | None:
    """How many numbers the units of its cell scores are."""
    return None if isinstance(adapt(model), Imputes) else d


def fits(unit: Any, size: int | None) -> bool:
    """Whether units are so many positive numbers, or none."""
    if unit is None or size is None:
        return unit is None and size is None
    known = isinstance(unit, np.ndarray) and unit.dtype == np.float64 and unit.shape == (size,)
    return bool(known and np.isfinite(unit).all() and (unit > 0).all())
