"""One model, several questions: how likely is a row, how far from the model's plane, how far out within it?

    density           −log p(x)                                                            what the model says by itself
    reconstruction    Q   = √ mean_j (r_j / τ_j)²,     r = x − zU                           away from the plane
    hotelling         T²  = Σ_a (z_a / s_a)²                                                within the plane

τ_j is the mean |r_j| of a column, s_a the root mean square of z_a, both over the reference rows. A view is the model
with the capabilities that one of the questions needs, and no others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.model.adapter import adapt
from unmix.model.capabilities import Density, Gaussians, Imputes, Reconstructs

QUESTIONS = ("density", "reconstruction", "hotelling")


class Rebuilt(Reconstructs):
    """The model as a plane that rows are near to."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def reconstruct(self, X: Any) -> np.ndarray:
        """What the model makes of each row."""
        return np.asarray(self.model.reconstruct(X))


class Inside(Imputes):
    """The model as a plane in which rows lie somewhere; cells have no place in it, and stay as the model sees them."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def gaussians(self) -> Gaussians:
        """The model's own."""
        return self.model.gaussians()  # type: ignore[no-any-return]

    def why_not(self) -> str:
        """The model's own."""
        return str(self.model.why_not())

    @property
    def size(self) -> int:
        """How many numbers z is."""
        return len(self.model.get_feature_names_out())

    def hidden(self, X: Any) -> np.ndarray:
        """z of each row."""
        return np.asarray(self.model.transform(X), dtype=np.float64)


def seen(model: Any, by: str | None) -> Any:
    """A fitted model as one of the questions sees it; as it is where none is named."""
    if by is None:
        return model
    if by not in QUESTIONS:
        raise ValueError(f"by={by!r}: choose one of {', '.join(map(repr, QUESTIONS))}, or None")
    model = adapt(model)
    if by == "density" and isinstance(model, Density):
        return model
    if by == "reconstruction" and isinstance(model, Reconstructs):
        return Rebuilt(model)
    if by == "hotelling" and isinstance(model, Density) and isinstance(model, Reconstructs):
        return Inside(model)
    raise TypeError(f"{type(model).__name__} cannot be asked by={by!r}: leave `by` out, or take another model")
