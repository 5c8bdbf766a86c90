"""Fitted models in files: a zip of arrays and JSON that executes nothing when it is read."""

from __future__ import annotations

import os
from inspect import signature
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unmix.engine import tree
from unmix.engine.described import COUNT, LONG, asked, conform, fields, several
from unmix.engine.layout import Shape
from unmix.engine.stage import Stage
from unmix.io import pack
from unmix.maths.arrays import Array
from unmix.table.recipe import Recipe

FORMAT = 3  # in format 1 the parts of some models had other fields
READABLE = (2, 3)  # in format 2 long traces were no tables
HEAVIEST = 2.0**1000  # sum of weights
OPTIONAL = ("_online_", "feature_names_in_", "recipe_")
WEIGHT = Annotated[float, Array(low=0.0, high=HEAVIEST)]


class Packed(NamedTuple):
    """An estimator inside another's file: its class, its parameters, and its state if it is fitted."""

    kind: str
    params: dict[str, Any]
    state: dict[str, Any] | None


class Files:
    """`save` and `load` of an estimator: of its parameters, and of the fitted attributes that its class declares.

    A class derives from it and annotates its fitted attributes, as `labels_: Annotated[np.ndarray, Array("n", "i")]`; a
    file holds no others. Estimators of unmix may be among the parameters (kept as not fitted) and, in lists and
    dicts too, among the attributes. Hooks: `_state`, `_sizes`, `_contradiction`.
    """

    @property
    def recipe(self) -> Recipe | None:
        """How the columns of a `Table` became numbers, where it was fitted to one."""
        return self.__dict__.get("recipe_")

    def save(self: Any, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: a zip of arrays and JSON that executes nothing when it is read.

        It holds the parameters and what the fit found; what else was set on the estimator (`set_output`, callbacks,
        attributes of your own) is not in it.

        Parameters
        ----------
        path : str or path
            The file; what was there before is replaced in one step.
        """
        check_is_fitted(self)
        kind, params, state = packed_estimator(self, fitted=True)
        value = {"format": FORMAT, "class": kind, "params": params, "state": state}
        pack.write(path, value, check=self._readable)

    def _readable(self, part: os.PathLike[str]) -> None:
        """Refuse to replace a file by one that could not be read again."""
        try:
            type(self).load(part)
        except pack.PackError as e:
            raise pack.PackError(
                f"{type(self).__name__} cannot be saved: {e.__cause__ or e}; nothing was written"
            ) from e

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
        if value["format"] not in READABLE:
            age = "a newer unmix: update unmix to read it" if value["format"] > FORMAT else "an older unmix: fit again"
            raise pack.PackError(f"{os.fspath(path)!r} was written by {age}")
        with pack.refusing(path):
            if value.keys() != {"format", "class", "params", "state"}:
                raise pack.PackError("it holds more or less than a class, its parameters and its state")
            kind = cls if value["class"] == pack.name_of(cls) and cls is not Files else find_model(value["class"])
            if issubclass(kind, cls):
                conform(value["state"], dict[str, Any], {}, "the state")
                return kind._read(value["params"], value["state"])
        raise pack.PackError(f"{os.fspath(path)!r} holds a {kind.__name__}, not a {cls.__name__}: use unmix.load")

    @classmethod
    def _read(cls: Any, params: Any, state: Any) -> Any:
        """An estimator with the parameters and the state of a file, if the class takes them."""
        conform((params, state), tuple[dict[str, Any], dict[str, Any] | None], {}, "the content")
        if unknown := sorted(params.keys() - signature(cls).parameters.keys()):
            raise pack.PackError(f"{unknown} are no parameters of {cls.__name__}")
        if any(isinstance(v, int) and abs(v) >= LONG for v in params.values()):
            raise pack.PackError(f"among the parameters {params} is a number beyond any use")
        try:
            model = cls(**unpacked(params))
            model._validate_params()
        except (ValueError, TypeError) as e:  # TypeError: one that has to be there is not
            raise pack.PackError(str(e)) from e
        if state is not None:
            model._restore(unpacked(state))
        return model

    def _state(self: Any) -> dict[str, Any]:
        """What of a fit goes into the file: every declared attribute that is there."""
        known = declared_by(type(self))
        return {k: v for k, v in self.__dict__.items() if k in known}

    def _restore(self: Any, state: dict[str, Any]) -> None:
        """Become the estimator of a file, if what the file holds is what the class describes.

        An error that is no PackError is none of the file's, and goes its way.
        """
        declared = declared_attributes(type(self), state)
        names = self._sizes(state)
        for name, kind in declared.items():
            if name in state:
                conform(state[name], kind, names, name)
        if why := self._contradiction(state, names):
            raise pack.PackError(why)
        self.__dict__.update(state)

    def _sizes(self, state: dict[str, Any]) -> dict[str, Any]:
        """The sizes that are known before any attribute is looked at; others are what is met first."""
        d = state["n_features_in_"]
        conform(d, Annotated[int, Array(kind="i", low=1)], {}, "n_features_in_")
        check_names(state, d)
        return {"d": d}

    def _contradiction(self, state: dict[str, Any], names: dict[str, Any]) -> str:
        """What is wrong with attributes of which each by itself is of its kind; "" where nothing is."""
        return ""


class ModelFiles(Files):
    """`save` and `load` of a model, whose parts its stage describes."""

    def _state(self: Any) -> dict[str, Any]:
        state = super()._state()
        shape = state["_shape"]._replace(names=None, kinds=None, levels=None)  # which other attributes tell
        return {**state, "_shape": shape}

    def _restore(self: Any, state: dict[str, Any]) -> None:
        declared = declared_attributes(type(self), state)
        check_shape(state)
        columns = state.get("feature_names_in_")
        shape = state["_shape"]._replace(names=None if columns is None else tuple(columns))
        if "recipe_" in state:
            shape = shape._replace(kinds=state["recipe_"].kinds, levels=state["recipe_"].levels)
        state["_shape"] = shape
        U = state["_parts_"]
        said = asked(self.at(shape), U, None)
        names = {"d": shape.d, "n": shape.n, **said.names}
        conform(U, said.parts, names, "_parts_")
        if said.holds is not None and not said.holds(U):
            raise pack.PackError("its parts contradict each other")
        if "_online_" in state:
            if "online" in self.exempt:
                raise pack.PackError("_online_ is no attribute of a model that does not learn online")
            conform(state["_online_"], several(said.stats, COUNT, WEIGHT), names, "_online_")
        if not tree.finite((U, state.get("_online_"))):
            raise pack.PackError("its parts are not finite")
        for name, kind in declared.items():
            if name in state and name not in ("_parts_", "_online_"):
                conform(state[name], kind, names, name)
        self.__dict__.update(state)


# ---------------------------------------------------------------- estimators inside one another


def packed_estimator(estimator: Any, fitted: bool) -> Packed:
    """An estimator as values that a file can hold."""
    cls, params = type(estimator), estimator.get_params(deep=False)
    if not isinstance(params.get("random_state"), (int, np.integer, type(None))):
        params["random_state"] = None  # a generator's state belongs to the process, not to the model
    for name, value in params.items():
        if callable(value):
            raise pack.PackError(
                f"{name} is a function, which the file cannot hold: set it to a name or an array first"
            )
    published = {k for k in vars(estimator) if k.endswith("_") and not k.startswith("_")}
    if fitted and (unknown := sorted(published - declared_by(cls).keys() - params.keys())):
        raise pack.PackError(
            f"{cls.__name__} does not declare {unknown}, so no file can be checked for them: annotate them in the "
            'class, as `labels_: Annotated[np.ndarray, Array("n", "i")]`'
        )
    return Packed(
        pack.name_of(cls),
        {name: packed(value, name, fitted=False) for name, value in params.items()},
        {name: packed(value, name) for name, value in estimator._state().items()} if fitted else None,
    )


def packed(value: Any, name: str, fitted: bool = True) -> Any:
    """A value with `Packed` in the place of the estimators in it."""
    if isinstance(value, Files):
        find_model(pack.name_of(type(value)))  # what could not be read again is not written
        return packed_estimator(value, fitted)
    if isinstance(value, BaseEstimator):
        raise pack.PackError(
            f"{name} is a {type(value).__name__} of {type(value).__module__.partition('.')[0]}, which the file cannot "
            "hold: use a model of unmix, or pickle"
        )
    if isinstance(value, list):
        return [packed(v, f"{name}[{i}]", fitted) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {k: packed(v, f"{name}[{k!r}]", fitted) for k, v in value.items()}
    return value


def unpacked(value: Any) -> Any:
    """The value that `packed` was given; every estimator in it is checked first."""
    if isinstance(value, Packed):
        return find_model(value.kind)._read(value.params, value.state)
    if isinstance(value, list):
        return [unpacked(v) for v in value]
    if isinstance(value, dict):
        return {k: unpacked(v) for k, v in value.items()}
    return value


# ---------------------------------------------------------------- what classes declare


def find_model(name: Any) -> Any:
    """The estimator of the library that has this name; bases of models are none."""
    kind = pack.find(name, Files)
    if not issubclass(kind, BaseEstimator) or (issubclass(kind, Stage) and kind.described is Stage.described):
        raise pack.PackError(f"{name!r} is not a model")
    return kind


def declared_by(cls: Any) -> dict[str, Any]:
    """The fitted attributes that a class declares, with their kinds: a file holds no others."""
    kinds = {name: kind for name, kind in fields(cls).items() if name.endswith("_")}
    shape = {"_shape": Shape} if issubclass(cls, Stage) else {}
    return {"n_features_in_": int, **kinds, **shape, "feature_names_in_": Any, "recipe_": Recipe}


def declared_attributes(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
    """`declared_by`, if the state holds all of them and no others."""
    declared = declared_by(cls)
    if unknown := sorted(state.keys() - declared.keys()):
        raise pack.PackError(f"{unknown} are no attributes of a fitted {cls.__name__}")
    for name, kind in declared.items():
        if name not in state and name not in OPTIONAL and not maybe(kind):
            raise pack.PackError(f"{name} is missing")
    return declared


def maybe(kind: Any) -> bool:
    """Whether an attribute of this kind may be missing."""
    said = get_args(kind)[1] if get_origin(kind) is Annotated else None
    return isinstance(said, Array) and said.maybe


def check_shape(state: dict[str, Any]) -> None:
    """Refuse a shape that no data have, or that contradicts the columns of the fit."""
    shape = state["_shape"]
    conform((shape, state["_dtype_"], state["n_features_in_"]), tuple[Shape, np.dtype, int], {}, "_shape")
    known = shape.dtype in (np.float32, np.float64) and state["_dtype_"] == shape.dtype
    power = 0 < shape.unit < np.inf and np.frexp(shape.unit)[0] == 0.5
    sizes = shape.n >= 0 and shape.d == state["n_features_in_"] > 0 and 0 <= shape.counted < LONG
    if not (known and sizes and power and 0 <= shape.weight < HEAVIEST):
        raise pack.PackError(f"there are no data of the shape {shape}")
    check_names(state, shape.d)


def check_names(state: dict[str, Any], d: int) -> None:
    """Refuse names that are not those of so many columns."""
    if "feature_names_in_" in state:
        columns = state["feature_names_in_"]
        if not (isinstance(columns, np.ndarray) and columns.dtype == object and columns.shape == (d,)):
            raise pack.PackError(f"feature_names_in_ are not the names of {d} columns")
    if "recipe_" in state:
        conform(state["recipe_"], Recipe, {}, "recipe_")
        if not state["recipe_"].fits(d):
            raise pack.PackError(f"recipe_ does not give {d} columns")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model, or an estimator that holds some, that `save` wrote.

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
