"""Fitted attributes that show the parts are results: only a fit writes them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args, get_origin

import numpy as np

from unmix.engine.described import fields


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
    if isinstance(value, np.ndarray) and np.array_equal(value, vars(model).get(name)):
        return
    first = [k for k in model.get_params(deep=False) if k == "init" or (k.endswith("_init") and k != "n_init")]
    ways = [f"fit from parts of your own ({', '.join(first)})"] if first else []
    ways += ["set it on the estimator that to_sklearn() gives"] if model.peer else []
    raise AttributeError(
        f"{name} is a result: {type(model).__name__} computes with the parts of its fit, which setting {name} "
        f"would not change; {' or '.join(ways) or 'fit again'}"
    )
