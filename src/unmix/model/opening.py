"""What a model is given: rows that it takes, columns that it knows, weights that count."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_sample_weight

from unmix.engine.layout import Shape
from unmix.engine.sources import Source, as_source
from unmix.engine.sources.arrow import is_frame
from unmix.table.table import Table

EXTREME = 40  # powers of two: no number of rows is beyond, and float32 holds squares of such weights
HOPELESS = 900  # powers of two: the loss of a row, times that, may be beyond float64


def tabled(estimator: Any, X: Any) -> Any:
    """X; of a table, a frame or a file the numbers by the recipe of the estimator's fit, where it has one."""
    known, apart = estimator.__dict__.get("recipe_"), isinstance(X, (Table, str, os.PathLike))
    if known is None or not (apart or is_frame(X)):
        return X
    if known.whole and not apart:
        _check_feature_names(estimator, X, reset=False)
    return Table.like(X, known)


def source_for(model: Any, X: Any, reset: bool) -> Any:
    """X as a source; of a table the numbers that the model takes: by the recipe of its fit, where it has one."""
    if not reset:
        X = tabled(model, X)
    if reset and model.columns_as == "coded" and is_frame(X):
        X = Table.every(X)
    if isinstance(X, Table):
        return X.suited(model.columns_as) if reset else X
    return as_source(X, absent=None if model.absent == "zero" else model.absent)


def check_kind(model: Any, source: Any) -> None:
    """Refuse sparse rows, or a meaning of their absent entries, that the model does not take."""
    name = type(model).__name__
    if model.absent != "unobserved":
        refuse_unobserved(source, name, model.missing)
    if source.sparse and not model.sparse:
        raise TypeError(
            f"Sparse data was passed for X, but {name} needs dense data. Use '.toarray()' to convert it to dense."
        )


def refuse_unobserved(source: Any, who: str, missing: bool) -> None:
    """Refuse rows whose absent entries were not observed, on behalf of what would read them as zeros."""
    if source.absent == "unobserved":
        dense = "pass dense rows with NaN there, or " if missing else ""
        raise ValueError(
            f"X says that the entries it does not hold were not observed, but {who} reads them as zeros: {dense}"
            'as_source(X, absent="zero") if they are zeros'
        )


def names_of(source: Any) -> np.ndarray | None:
    """Names of the columns, if they are strings."""
    names = None if source.names is None else np.asarray(source.names, dtype=object)
    return None if names is None or not all(isinstance(s, str) for s in names) else names


def learn_names(model: Any, source: Any) -> None:
    """Remember the columns of a fit."""
    names, model.n_features_in_ = names_of(source), source.d
    model.__dict__.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = names
    learn_recipe(model, source)


def learn_recipe(estimator: Any, source: Any) -> None:
    """Remember how the columns of a table became numbers."""
    estimator.__dict__.pop("recipe_", None)
    if source.recipe is not None:
        estimator.recipe_ = source.recipe


def check_names(model: Any, X: Any, source: Any) -> None:
    """Refuse columns other than those of the fit."""
    names, known = source.names, model.__dict__.get("feature_names_in_")
    nameless = known is None and type(X) is np.ndarray  # nothing to compare: looking for names takes a while
    tabled = isinstance(X, Source) or source.recipe is not None
    if not nameless and not tabled and (names is None or hasattr(X, "columns")):
        _check_feature_names(model, X, reset=False)
    if names is not None and known is not None and list(names) != list(known):
        raise ValueError(
            f"The feature names should match those that were passed during fit: got {list(names)[:5]}, "
            f"expected {list(known)[:5]}"
        )
    if source.d != model.n_features_in_:
        raise ValueError(
            f"X has {source.d} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input: pass the columns that it was fitted on"
        )


def weights(sample_weight: Any, n: int) -> tuple[np.ndarray | None, float, int]:
    """Weights of n rows, None where every row counts once, their sum, and how many are positive."""
    if sample_weight is None:
        return None, float(n), n
    w = _check_sample_weight(sample_weight, Length(n), dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):  # told in words
        total = float(w.sum())
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight reaches {w.max():.1e}, and its sum is beyond float64: divide it by {w.max():.1e}"
        )
    return None if (w == 1).all() else w, total, int(np.count_nonzero(w))


def handy(w: np.ndarray | None, shape: Shape, against: str = "") -> tuple[np.ndarray | None, Shape]:
    """Weights as passes take them: extreme ones divided by a power of two, which `shape.unit` remembers.

    Products with them would leave float32, then float64; only their ratios matter, unless they are weighed `against`
    something that is not divided.
    """
    if w is None:
        return w, shape
    size, power = float(w.max()), int(np.frexp(w.max())[1]) - 1
    if size == 0 or abs(power) <= EXTREME:
        return w, shape
    remedy = "scale it so that it sums to the number of rows"
    if against:
        raise ValueError(
            f"sample_weight reaches {size:.1e}, which is no number of rows to weigh against {against}: {remedy}"
        )
    if abs(power) > HOPELESS:
        raise ValueError(f"sample_weight reaches {size:.1e}, and sums weighted by that are beyond float64: {remedy}")
    w, unit = np.ldexp(w, -power), 2.0**power
    shape = shape._replace(weight=float(w.sum()), counted=int(np.count_nonzero(w)), unit=unit)
    return None if (w == 1).all() else w, shape


def as_given(w: np.ndarray | None, shape: Shape) -> tuple[np.ndarray | None, Shape]:
    """The same weights in the user's own unit."""
    if shape.unit == 1:
        return w, shape
    w = np.full(shape.n, shape.unit) if w is None else w * shape.unit
    return w, shape._replace(weight=shape.weight * shape.unit, unit=1.0)


def shape_of(model: Any, source: Any, weight: float, counted: int) -> Shape:
    """What a model may know about the data before the first pass."""
    absent, names = source.absent == "unobserved", model.__dict__.get("feature_names_in_")
    memory, nbytes, known = source.in_memory, source.nbytes or 0, None if names is None else tuple(names)
    shape = Shape(source.n, source.d, source.dtype, source.sparse, weight, not absent, memory, nbytes, absent, known)
    if source.recipe is not None:
        shape = shape._replace(kinds=source.recipe.kinds, levels=source.recipe.levels)
    return shape._replace(counted=counted)


class Length:
    """Stands for X where only its length matters: nothing of a stream is loaded to check the weights."""

    def __init__(self, n: int) -> None:
        self.shape = (n, 1)
        self.dtype = np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]
