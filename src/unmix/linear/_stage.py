"""What the ways to fit a linear model have in common."""

from __future__ import annotations

from typing import ClassVar

from unmix.engine.stage import Stage


class Way(Stage):
    """A way to fit: a step is `local` on every block, or on the moments that stand for them, and `update`.

    Nothing that is learnt about a single row outlives the step, so `Local.z` is None. The ways of PCA also have
    `axes(U)`, the principal axes that the parts stand for.
    """

    accelerate: ClassVar[bool] = True
    even: ClassVar[bool] = False  # online: every row counts the same, however long ago it was seen
