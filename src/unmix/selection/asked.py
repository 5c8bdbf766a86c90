"""The model that is asked about: an estimator, its class or its name; and which of its parameters is k."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import unmix
from unmix.model import Model

SIZES = ("n_components", "n_clusters")
OTHER_NUMBERS = ("n_init", "n_jobs")  # which say how a fit runs


def estimator(model: Any) -> Any:
    """The estimator that is meant: itself, one of a class, or one of a model's name."""
    if isinstance(model, str):
        known = unmix.models()
        names = {name.lower(): name for name in known}
        if model.lower() not in names:
            near = difflib.get_close_matches(model.lower(), names, n=1)
            hint = f"did you mean {names[near[0]]!r}?" if near else f"take one of {', '.join(known)}"
            raise ValueError(f"model={model!r} is no model of unmix: {hint}")
        model = known[names[model.lower()]]
    if isinstance(model, type) and issubclass(model, BaseEstimator):
        return model()
    if isinstance(model, BaseEstimator):
        return model
    kind = f"an array of shape {model.shape}" if isinstance(model, np.ndarray) else f"a {type(model).__name__}"
    raise ValueError(f"model is {kind}: give the model first and the rows second, as in select('KMeans', X)")


def size_of(model: Any, parameter: str | None = None) -> str:
    """Name of the hyper-parameter that is k: the one that is asked for, or the number of parts."""
    params = model.get_params(deep=False)
    numbers = [name for name in params if name.startswith("n_") and name not in OTHER_NUMBERS]
    if parameter is not None and parameter not in numbers:
        kind = type(model).__name__
        raise ValueError(f"parameter={parameter!r} is no number of {kind} to choose: take {', '.join(numbers)}")
    for name in SIZES if parameter is None else (parameter,):
        if name in params:
            if not isinstance(model, Model):
                kind = f"{type(model).__module__.split('.')[0]}.{type(model).__name__}"
                raise ValueError(f"model={kind}: give a model of unmix, such as unmix.KMeans()")
            return name
    raise ValueError(f"{type(model).__name__} has neither n_components nor n_clusters: there is no k to choose")
