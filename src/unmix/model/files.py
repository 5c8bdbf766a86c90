"""Fitted models in files: a zip of arrays and JSON that executes nothing when it is read."""

from __future__ import annotations

import os
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unmix.engine import tree
from unmix.engine.described import LONG, conform, fields, several
from unmix.engine.layout import Shape
from unmix.io import pack
from unmix.maths.arrays import Array

FORMAT = 2  # in format 1 the parts of some models had other fields


class Files:
    """`save` and `load` of an estimator."""

    def save(self: Any, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: a zip of arrays and JSON that executes nothing when it is read.

        Parameters
        ----------
        path : str or path
            The file; what was there before is replaced in one step.
        """
        check_is_fitted(self)
        params = self.get_params(deep=False)
        if not isinstance(params.get("random_state"), (int, np.integer, type(None))):
            params["random_state"] = None  # a generator's state belongs to the process, not to the model
        state = {k: v for k, v in self.__dict__.items() if k not in params and not k.startswith("_skl_")}
        for name, value in params.items():
            if callable(value):
                raise pack.PackError(
                    f"{name} is a function, which the file cannot hold: set it to a name or an array first"
                )
        cls = type(self)
        name = f"{cls.__module__}:{cls.__qualname__}"
        pack.write(path, {"format": FORMAT, "class": name, "params": params, "state": state})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a model that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        model : Model
            Fitted, as it was when it was saved.

        Raises
        ------
        PackError
            A ValueError: the file is not one that `save` wrote, is damaged, or holds arrays that the class cannot use.
        """
        value = pack.read(path, own=pack.modules_of(cls))
        if not isinstance(value, dict) or not isinstance(value.get("format"), int):
            raise pack.PackError(f"{os.fspath(path)!r} does not hold a model: name a file that `save` wrote")
        if value["format"] != FORMAT:
            age = "a newer unmix: update unmix to read it" if value["format"] > FORMAT else "an older unmix: fit again"
            raise pack.PackError(f"{os.fspath(path)!r} was written by {age}")
        try:
            name, params, state = value["class"], value["params"], value["state"]
            own = name == f"{cls.__module__}:{cls.__qualname__}"
            kind = cls if own else pack.find(name, Files)
            model = kind(**params) if issubclass(kind, cls) else None
            if model is not None:
                model._restore(params, state)
        except Exception as e:  # whatever is wrong with a file is one error
            raise pack.damaged(path, e) from e
        if model is None:
            raise pack.PackError(f"{os.fspath(path)!r} holds a {kind.__name__}, not a {cls.__name__}: use unmix.load")
        return model

    def _restore(self: Any, params: dict[str, Any], state: dict[str, Any]) -> None:
        """Become the model of a file, if what the file holds is what the class describes."""
        self._validate_params()
        if any(isinstance(v, int) and abs(v) >= LONG for v in params.values()):
            raise pack.PackError(f"among the parameters {params} is a number beyond any use")
        known = set().union(*(vars(c) for c in type(self).__mro__))
        for name in state:
            if (name in known or not name.endswith("_") or name in params) and name != "_shape":
                raise pack.PackError(f"{name!r} is no attribute of a fitted model")
        check_shape(state)
        shape, U = state["_shape"], state["_parts_"]
        said = self.at(shape).described(U, None)
        names = {"d": shape.d, "n": shape.n, **said.names}
        conform(U, said.parts, names, "_parts_")
        if said.holds is not None and not said.holds(U):
            raise pack.PackError("its parts contradict each other")
        online = state.get("_online_")
        if online is not None:
            conform(online, several(said.stats, int, float), names, "_online_")
        if not tree.finite((U, online)):
            raise pack.PackError("its parts are not finite")
        cls: Any = type(self)
        for name, kind in fields(cls).items():
            if name.endswith("_") and name not in ("_parts_", "_online_"):
                check_attribute(name, kind, state, names)
        self.__dict__.update(state)


def check_shape(state: dict[str, Any]) -> None:
    """Refuse a shape that no data have, or that contradicts the columns of the fit."""
    conform(state["_shape"], Shape, {}, "_shape")
    shape, columns = state["_shape"], state.get("feature_names_in_")
    known = shape.dtype in (np.float32, np.float64) and state["_dtype_"] == shape.dtype
    if not (known and shape.n >= 0 and shape.d == state["n_features_in_"] > 0 and 0 <= shape.weight < LONG):
        raise pack.PackError(f"there are no data of the shape {shape}")
    if columns is not None and not (columns.dtype == object and columns.shape == (shape.d,)):
        raise pack.PackError(f"feature_names_in_ are not the names of {shape.d} columns")


def check_attribute(name: str, kind: Any, state: dict[str, Any], names: dict[str, Any]) -> None:
    """Refuse an attribute that its class describes otherwise, or that is missing though it should be there."""
    said = get_args(kind)[1] if get_origin(kind) is Annotated else None
    if name in state:
        conform(state[name], kind, names, name)
    elif not (isinstance(said, Array) and said.maybe):
        raise pack.PackError(f"{name} is missing")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model of any kind that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : Model

    Examples
    --------
    >>> import os, tempfile
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> path = os.path.join(tempfile.mkdtemp(), "groups.unmix")
    >>> unmix.KMeans(3, random_state=0).fit(load_iris().data).save(path)
    >>> unmix.load(path)
    KMeans(n_clusters=3, random_state=0)
    """
    return Files.load(path)
