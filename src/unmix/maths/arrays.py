"""How arrays of a record are described, beside their names: so many numbers of a kind, within bounds."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

POSITIVE = 5e-324  # the least float64 above zero


class Array(NamedTuple):
    """So many numbers: sizes by name, separated by blanks; their kind; the least and the largest that they may be.

    Kinds are "f" (finite), "x" (floats of any value), "i" (whole) and "b" (truth values). `name` makes the number
    itself a size; what is `maybe` there may be missing among the attributes of a model.
    """

    dims: str = ""
    kind: str = "f"
    low: float = -inf
    high: float | str = inf
    name: str = ""
    maybe: bool = False
