"""What a model takes and what it can be asked, as its class declares it: what every table of models is made from."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from unmix.engine.layout import Shape
from unmix.model.capabilities import Density, Groups, Samples
from unmix.model.estimator import Model

# a table in a file, larger than memory: the stages of a fit to it say whether they need all rows at once
LARGE = Shape(10_000_000, 10, np.dtype(np.float64), weight=1e7, in_memory=False, nbytes=800_000_000)


class Facts(NamedTuple):
    """One row of a table of models: what it finds, the first words of its docstring, then yes or no."""

    finds: str
    missing: bool
    sparse: bool
    nonnegative: bool
    streams: bool
    online: bool
    labels: bool
    density: bool
    draws: bool


HEADS = {
    "finds": "finds",
    "missing": "missing cells",
    "sparse": "sparse",
    "nonnegative": "X ≥ 0 only",
    "streams": "files, Dask",
    "online": "online",
    "labels": "labels",
    "density": "density",
    "draws": "draws",
}
TAKES = ("missing", "sparse", "nonnegative", "streams", "online")
GIVES = ("labels", "density", "draws")


def facts(cls: type[Model]) -> Facts:
    """What a class of models declares, for its default parameters.

    Parameters
    ----------
    cls : type
        A model.

    Returns
    -------
    facts : Facts

    Examples
    --------
    >>> import unmix
    >>> from unmix.model.facts import facts
    >>> facts(unmix.KMedoids).finds
    'clusters around typical rows, the medoids, by any distance'
    >>> facts(unmix.KMedoids).streams  # it needs all pairs of rows
    False
    """
    model: Any = cls()
    finds, _, _ = inspect.cleandoc(cls.__doc__ or "").splitlines()[0].rstrip(".").partition(":")
    return Facts(
        finds=finds[:1].lower() + finds[1:],
        missing=cls.missing,
        sparse=cls.sparse,
        nonnegative=cls.nonnegative,
        streams=all(stage.over != "whole" for stage in model.at(LARGE).stages(LARGE)),
        online="online" not in cls.exempt,
        labels=issubclass(cls, Groups),
        density=issubclass(cls, Density),
        draws=issubclass(cls, Samples),
    )


def words(told: Facts, names: tuple[str, ...]) -> str:
    """Those of the named facts that hold, in words."""
    return ", ".join(HEADS[name] for name in names if told._asdict()[name])
