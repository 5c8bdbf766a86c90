"""The parameter `family` of `Mixture`: as users write it, as families and columns, and as a file holds it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from unmix.engine.layout import Shape
from unmix.mixture.families import FAMILIES, Categorical, Family, Gaussian

TABLE_FLOOR = 1e-3  # smallest variance of a number in a table, as a share of the column's
BY_KIND = {"boolean": "bernoulli", "category": "categorical", "count": "poisson", "integer": "whole"}  # else "gaussian"


def groups(
    family: Any, names: Sequence[str] | None, kinds: Sequence[str] | None = None, levels: Sequence[int] | None = None
) -> list[tuple[Family, list[int] | None]]:
    """Each family and the numbers of its columns, None for all; `names` are those of all columns, if they have any.

    `kinds` and `levels` say what columns of a table hold, where it has told.
    """
    pairs = _pairs(family, names, kinds)
    return pairs if levels is None else [(_with_levels(f, columns, levels), columns) for f, columns in pairs]


def _with_levels(f: Family, columns: list[int] | None, levels: Sequence[int]) -> Family:
    """A family that knows how many levels the table's categories have."""
    if not isinstance(f, Categorical) or f.levels is not None:
        return f
    return Categorical(max(levels if columns is None else (levels[j] for j in columns)) or None)


def _pairs(
    family: Any, names: Sequence[str] | None, kinds: Sequence[str] | None
) -> list[tuple[Family, list[int] | None]]:
    if isinstance(family, str) and family == "auto":
        if kinds is None:
            return [(as_family("gaussian"), None)]
        own = [BY_KIND.get(kind, "gaussian") for kind in kinds]
        by_name: dict[str, Family] = {"gaussian": Gaussian(TABLE_FLOOR), "whole": Gaussian(TABLE_FLOOR, rounding=1.0)}
        families = {f: by_name[f] if f in by_name else as_family(f) for f in dict.fromkeys(own)}
        return [(family, [j for j, g in enumerate(own) if g == f]) for f, family in families.items()]
    if isinstance(family, (str, Family)):
        return [(as_family(family), None)]
    pairs = list(family.items() if isinstance(family, dict) else family)
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise ValueError(f'family={family!r}: give pairs such as [("poisson", [0, 1]), ("gaussian", [2])]')
    every = [(as_family(f), np.atleast_1d(np.asarray(columns, dtype=object))) for f, columns in pairs]
    known = [] if names is None else list(names)
    return [(f, [_number(j, known, family) for j in columns]) for f, columns in every]


def _number(column: Any, names: list[str], family: Any) -> int:
    """The number of a column that was given by number or by name."""
    if isinstance(column, Integral):
        return int(column)
    if column in names:
        return names.index(column)
    known = (
        f"X has the columns {names}" if names else "X has no column names: give column numbers, or pass a data frame"
    )
    raise ValueError(f"family={family!r} names the column {column!r}, but {known}")


def check_columns(family: Any, own: list[tuple[Family, list[int] | None]], shape: Shape) -> None:
    """Raise a ValueError where families do not share out the columns, or not by what these hold."""
    covered = np.zeros(shape.d, np.int64)
    for _, columns in own:
        if columns is not None and not (len(columns) and min(columns) >= 0 and max(columns) < shape.d):
            raise ValueError(f"family={family!r} names columns {columns}: X has the columns 0 to {shape.d - 1}")
        covered += 1 if columns is None else np.bincount(columns, minlength=shape.d)
    if (covered != 1).any():
        j = int(np.argmax(covered != 1))
        raise ValueError(f"family={family!r} names column {j} {covered[j]} times: name each column once")
    for f, columns in own if shape.kinds is not None else ():
        for j in range(shape.d) if columns is None else columns:
            if shape.kinds[j] == "category" and not isinstance(f, Categorical):  # type: ignore[index]
                raise ValueError(
                    f"{name_of(shape, None, j)} holds categories, but the family {type(f).__name__} needs {f.needs}: "
                    'take "categorical" for it, as family="auto" does'
                )


def name_of(shape: Shape, columns: list[int] | None, j: int) -> str:
    """What the j-th column of a family is called."""
    j = j if columns is None else columns[j]
    return f"column {j}" if shape.names is None else f"column {shape.names[j]!r}"


def as_family(f: Any) -> Family:
    """A family that was given by name, or as it is."""
    if isinstance(f, Family):
        return f
    if not isinstance(f, str) or f not in FAMILIES:
        raise ValueError(f"family {f!r}: give 'auto', one of {', '.join(FAMILIES)}, or a Family")
    return FAMILIES[f]()


def fill(out: np.ndarray, columns: list[int] | None, f: Family, method: str, value: Any) -> None:
    """Write what a method of a family gave into the family's columns."""
    wanted = len(out), out.shape[1] if columns is None else len(columns)
    out[:, slice(None) if columns is None else columns] = shaped(f, method, value, wanted)


def shaped(f: Family, method: str, value: Any, wanted: tuple[int, ...]) -> np.ndarray:
    """What a method of a family gave, if it has the shape that it should have."""
    if np.shape(value) != wanted:
        raise ValueError(f"`{method}` of the family {f!r} gave the shape {np.shape(value)}: it should be {wanted}")
    return np.asarray(value)


class Saved(tuple[Any, ...]):
    """A family of ours as a file holds it, its name and parameters; what is read from the file is the family."""

    _fields = ("name", "parameters")

    @classmethod
    def _make(cls, items: Any) -> Family:
        name, parameters = items
        return FAMILIES[name](**parameters)


def saved(family: Any) -> Any:
    """`family` of names, numbers and lists."""
    if isinstance(family, Family):
        name = type(family).__name__.lower()
        if FAMILIES.get(name) is not type(family):
            raise ValueError(
                f"family holds {family!r}, a class of your own, which the file cannot hold: save with joblib.dump"
            )
        return Saved((name, vars(family)))
    if isinstance(family, str):
        return family
    pairs = family.items() if isinstance(family, dict) else family
    return [(saved(f), np.atleast_1d(np.asarray(columns, dtype=object)).tolist()) for f, columns in pairs]
