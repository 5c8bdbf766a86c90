"""Fitted models in files: a zip of arrays and JSON that executes nothing when it is read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unmix.io import pack

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
        """
        value = pack.read(path, own=cls.__module__)
        if not isinstance(value, dict) or "class" not in value:
            raise pack.PackError(f"{os.fspath(path)!r} does not hold a model")
        if value["format"] != FORMAT:
            age = "a newer unmix: update unmix to read it" if value["format"] > FORMAT else "an older unmix: fit again"
            raise pack.PackError(f"{os.fspath(path)!r} was written by {age}")
        own = value["class"] == f"{cls.__module__}:{cls.__qualname__}"
        kind = cls if own else pack.find(value["class"], Files)
        if not issubclass(kind, cls):
            raise pack.PackError(f"{os.fspath(path)!r} holds a {kind.__name__}, not a {cls.__name__}: use unmix.load")
        model = kind(**value["params"])
        model.__dict__.update(value["state"])
        return model


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
