"""What a person is warned of after a fit."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from unmix.engine.trace import Fit


def warn_of_fit(model: Any, fit: Fit) -> None:
    """A fit that ended too soon, stages that failed, weights that are next to nothing, and what the model notes."""
    name, tolerant = type(model).__name__, "tol" in model.get_params(deep=False)
    if fit.result == "max_iter" and fit.unfinished:
        remedy = f"raise max_iter{', or tol if this is close enough' if tolerant else ''}"
        warnings.warn(f"{name} {fit.message}: {remedy}", ConvergenceWarning, stacklevel=5)
    elif fit.result in ("nonfinite", "stopped"):
        warnings.warn(f"{name} {fit.message}", ConvergenceWarning, stacklevel=5)
    for stage in fit.stages:
        if stage.result == "nonfinite":
            warnings.warn(f"{name}, stage {stage.name!r}: {stage.message}", ConvergenceWarning, stacklevel=5)
    if model.weighed_against and fit.weight < min(2, fit.shape.counted):
        warnings.warn(
            f"{name}: sample_weight sums to {fit.weight:.3g}, as if so many rows had been seen, which is nothing "
            f"beside {model.weighed_against}: scale it so that it sums to the number of rows",
            UserWarning,
            stacklevel=5,
        )
    warn_of_notes(model, model.notes(fit.U), stacklevel=6)


def warn_of_notes(model: Any, notes: list[str], stacklevel: int = 4) -> None:
    """What a model notes of its parts."""
    for note in notes:
        warnings.warn(f"{type(model).__name__}: {note}", ConvergenceWarning, stacklevel=stacklevel)
