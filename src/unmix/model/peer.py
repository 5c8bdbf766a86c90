"""The way back: a fitted scikit-learn estimator of the same name, with the same attributes and outputs."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

OF_ALL = ("n_features_in_", "feature_names_in_", "n_iter_")  # attributes that every estimator has, if it has them


def nothing(model: Any) -> dict[str, Any]:
    """No other parameters, no other attributes."""
    return {}


class Peer(NamedTuple):
    """What a model says of the class of scikit-learn that has its name.

    Attributes
    ----------
    home : str
        The package that has it.
    attributes : str
        Names of the fitted attributes that both have, with blanks between them.
    more : callable
        Attributes that it keeps for itself, from the fitted model.
    params : callable
        Parameters that are to be others than those of the model.
    refusal : callable
        Why a fitted model has no counterpart, in words; "" where it has one.
    """

    home: str
    attributes: str
    more: Callable[[Any], dict[str, Any]] = nothing
    params: Callable[[Any], dict[str, Any]] = nothing
    refusal: Callable[[Any], str] = lambda model: ""


class Returns:
    """Models with a peer can be handed on to code that wants scikit-learn's own class."""

    peer: ClassVar[Peer | None] = None

    @available_if(lambda self: self.peer is not None)
    def to_sklearn(self: Any) -> Any:
        """Return a fitted scikit-learn estimator of the same name, with the same attributes and outputs.

        It is a plain scikit-learn object, which does not need this library and is fitted anew by scikit-learn.
        Parameters that scikit-learn does not have are left out; values that it does not know become its default or,
        for a number that the fit has found, that number.

        Returns
        -------
        estimator : object
        """
        check_is_fitted(self)
        if why := self.peer.refusal(self):
            raise ValueError(f"to_sklearn: {why}")
        theirs = counterpart(type(self))
        known = set(theirs().get_params(deep=False))
        params = {k: v for k, v in (self.get_params(deep=False) | self.peer.params(self)).items() if k in known}
        estimator = theirs(**{k: value for k, v in params.items() for value in accepted(self, theirs, k, v)})
        has = [name for name in (*OF_ALL, *self.peer.attributes.split()) if hasattr(self, name)]
        for name, value in ({name: getattr(self, name) for name in has} | self.peer.more(self)).items():
            setattr(estimator, name, value.copy() if isinstance(value, np.ndarray) else value)
        return estimator


def counterpart(cls: Any) -> Any:
    """The class of scikit-learn that a model, or what it derives from, is the namesake of."""
    name = next(c.__name__ for c in cls.__mro__ if "peer" in vars(c))
    return getattr(import_module(cls.peer.home), name)


def accepted(model: Any, theirs: Any, name: str, value: Any) -> list[Any]:
    """A parameter, as the class of scikit-learn takes it; empty where its default has to do."""
    for v in (value, vars(model).get(f"{name}_")):
        try:
            theirs(**{name: v})._validate_params()
        except InvalidParameterError:
            continue
        return [deepcopy(v)]
    return []
