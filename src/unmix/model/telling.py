"""What a person is warned of after a fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unmix.engine.trace import Fit

PERCENT = 100.5  # what shares sum to at most, and a little for rounding
SMALL = 0.1  # of a row


def warn_of_fit(model: Any, fit: Fit, w: np.ndarray | None) -> None:
    """A fit that ended too soon, stages that failed, weights that are next to nothing, and what the model notes."""
    name = type(model).__name__
    if fit.result == "max_iter" and fit.unfinished:
        tolerant = "tol" in model.get_params(deep=False)
        remedy = f"raise max_iter{', or tol if this is close enough' if tolerant else ''}"
        warnings.warn(f"{name} {fit.message}: {remedy}", ConvergenceWarning, stacklevel=5)
    elif fit.result in ("nonfinite", "stopped"):
        warnings.warn(f"{name} {fit.message}", ConvergenceWarning, stacklevel=5)
    for stage in fit.stages:
        if stage.result == "nonfinite":
            warnings.warn(f"{name}, stage {stage.name!r}: {stage.message}", ConvergenceWarning, stacklevel=5)
    if model.weighed_against and w is not None and are_shares(w):
        warnings.warn(
            f"{name}: sample_weight sums to {fit.weight:.3g}, as if so many rows had been seen, which is little "
            f"beside {model.weighed_against}: scale it so that it sums to the number of rows",
            UserWarning,
            stacklevel=5,
        )
    warn_of_notes(model, model.notes(fit.U), stacklevel=6)


def are_shares(w: np.ndarray) -> bool:
    """Whether weights look like shares of a whole, which were meant to sum to the number of rows.

    They do where they sum to less than two rows although more of them count, and where they sum to no more than a
    hundred (percent) although none counts for a tenth of a row. Weights that mark rows down, memberships or
    confidences, leave some rows near 1; and small ones of very many rows outweigh priors all the same.
    """
    total, top, counted = float(w.sum()), float(w.max()), int(np.count_nonzero(w))
    return total < min(2, counted) or (total < PERCENT and top < SMALL)


def warn_of_notes(model: Any, notes: list[str], stacklevel: int = 4) -> None:
    """What a model notes of its parts."""
    for note in notes:
        warnings.warn(f"{type(model).__name__}: {note}", ConvergenceWarning, stacklevel=stacklevel)
