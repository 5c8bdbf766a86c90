"""Units of a file's scores: as many as its models measure by."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.model.adapter import adapt
from unmix.model.capabilities import Completes, Density, Geometry, Imputes
from unmix.model.files import Files
from unmix.outlier.views import Inside, seen


def wrong_units(
    models: list[Any], units: list[Any], cell_units: list[Any], d: int, cells: bool, by: str | None = None
) -> str:
    """Why models of d columns, the units of their row scores and, if cells are judged, of their cells do not agree."""
    if not models or any(not isinstance(m, Files) or vars(m).get("n_features_in_") != d for m in models):
        return f"its models are not those of {d} columns"
    if len(units) != len(models) or len(cell_units) != (len(models) if cells else 0):
        return "it has not as many units as models"
    try:
        views = [adapt(seen(m, by)) for m in models]
    except TypeError as e:
        return str(e)
    of_rows = all(fits(unit, for_rows(m, d)) for m, unit in zip(views, units, strict=True))
    of_cells = all(fits(unit, for_cells(m, d)) for m, unit in zip(views, cell_units, strict=False))
    return "" if of_rows and of_cells else "its units are not those of its models"


def for_rows(model: Any, d: int) -> int | None:
    """How many numbers the units of a model's row scores are: one for each cluster, component or column, or none."""
    if isinstance(model, (Completes, Density)):
        return None
    if isinstance(model, Inside):
        return model.size
    parts: Any = model
    return len(parts.get_feature_names_out()) if isinstance(model, Geometry) else d


def for_cells(model: Any, d: int) -> int | None:
    """How many numbers the units of its cell scores are."""
    return None if isinstance(model, Imputes) else d


def fits(unit: Any, size: int | None) -> bool:
    """Whether units are so many positive numbers, or none."""
    if unit is None or size is None:
        return unit is None and size is None
    known = isinstance(unit, np.ndarray) and unit.dtype == np.float64 and unit.shape == (size,)
    return bool(known and np.isfinite(unit).all() and (unit > 0).all())
