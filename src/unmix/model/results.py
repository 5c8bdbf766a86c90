"""Fitted attributes that show the parts are results: only a fit writes them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import numpy as np

from unmix.engine.described import fields


class Results:
    """An estimator whose results only a fit writes."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to write over what shows the parts of a fit: methods compute with those, which would not change."""
        state = self.__dict__
        if name[-1:] == "_" and "_parts_" in state and "_writing" not in state and name in results(type(self)):  # type: ignore[arg-type]
            refuse(self, name, value)
        object.__setattr__(self, name, value)  # `super()` would cost small fits some percent


@cache
def results(cls: Any) -> frozenset[str]:
    """Attributes that a class describes as arrays or numbers of its parts; those of single rows say nothing of them."""

    def shows(kind: Any) -> bool:
        if get_origin(kind) is not Annotated:
            return any(shows(one) for one in get_args(kind))
        return "n" not in getattr(get_args(kind)[1], "dims", "").split()

    return frozenset(name for name, kind in fields(cls).items() if name[0] != "_" and shows(kind))


def refuse(model: Any, name: str, value: Any) -> None:
    """Raise an AttributeError that says what to do instead of setting a result, unless to the numbers that it has."""
    known = vars(model).get(name)
    if isinstance(value, type(known)) and same(value, known):
        return
    first = [k for k in model.get_params(deep=False) if k == "init" or (k.endswith("_init") and k != "n_init")]
    ways = [f"fit from parts of your own ({', '.join(first)})"] if first else []
    ways += ["set it on the estimator that to_sklearn() gives"] if model.peer else []
    raise AttributeError(
        f"{name} is a result: {type(model).__name__} computes with the parts of its fit, which setting {name} "
        f"would not change; {' or '.join(ways) or 'fit again'}"
    )


def same(a: Any, b: Any) -> bool:
    """Whether two results are the same; NaN is like NaN."""
    if isinstance(a, np.ndarray) and a.dtype.kind == "f":
        return np.array_equal(a, b, equal_nan=True)
    return np.array_equal(a, b)


class AllOrNothing:
    """Inside it an estimator changes, and results may be written; an exception puts it back as it was.

    Until there are new parts it computes with the old ones: other threads may go on asking it.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __enter__(self) -> None:
        self.before = copy.copy(self.estimator.__dict__)
        self.estimator.__dict__["_writing"] = True  # which copies inherit, to which callbacks write

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.estimator.__dict__.pop("_writing", None)
        if kind is not None:
            callbacks = {k: v for k, v in self.estimator.__dict__.items() if k.startswith(("_skl_", "_callback"))}
            self.estimator.__dict__.clear()
            self.estimator.__dict__.update(self.before | callbacks)
