"""The law of units: whoever measures in millimetres finds what one finds who measures in metres."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.model.capabilities import Groups, Imputes
from unmix.testing.cases import law
from unmix.testing.compare import close, demand
from unmix.testing.problem import Problem

# by powers of two nothing is rounded
UNITS: dict[str, tuple[Any, int]] = {f"2^{p}": (np.float64, p) for p in (40, -40, 300, -300)}
UNITS |= {f"2^{p} in float32": (np.float32, p) for p in (40, -40)}
CLOSE = {np.float64: 1e-6, np.float32: 1e-3}  # of the largest number: fits end by rules, which rounding decides


@law("scale", unit=tuple(UNITS))
def scaling_the_data_scales_the_parts(p: Problem, unit: str) -> None:
    """A fit to c X gives what a fit to X gives, times the power of c that the class names in `degrees`.

    Cells that a model imputes, and how sure it is of them, are c times as large.
    """
    same_in_another_unit(p.model(), p.X, *UNITS[unit])


def same_in_another_unit(model: Any, X: np.ndarray, dtype: Any, p: int, degrees: Any = None) -> None:
    """The answers for 2^p X are those for X times a power of 2^p: the degree that the class, or who asks, names."""
    degrees = {"impute": 1, "deviations": 1} | type(model).degrees | (degrees or {})
    X = X.astype(dtype)
    if "tol" in model.get_params() and dtype is np.float64:  # where accelerated passes end depends on the unit
        model.set_params(tol=1e-3 * model.tol)
    models = scaled(model, 0, degrees), scaled(model, p, degrees)
    one, other = (answers(m, x) | cells(m, x) for m, x in zip(models, (X, X * dtype(2.0) ** p), strict=True))
    demand(one.keys() == other.keys(), f"the attributes are {sorted(one)} and {sorted(other)}")
    for name, value in one.items():
        if (degree := degrees.get(name, 0)) is None:
            continue
        told = f"{name} of X and of 2^{p} X, in the same unit (`degrees` says {degree}),"
        demand(other[name].dtype == value.dtype, f"{told} are {value.dtype} and {other[name].dtype}")
        back = times(other[name], -degree, p)
        if value.dtype.kind in "iub":
            demand(np.array_equal(back, value), f"{told} differ")
        else:
            close(value, back, rtol=CLOSE[dtype], what=told)


def times(value: Any, degree: int | None, p: int) -> Any:
    """A number, or an array of numbers, times 2^(degree p); anything else as it is."""
    if not degree or isinstance(value, (str, type(None))) or callable(value):
        return value
    return np.ldexp(np.asarray(value, dtype=np.float64), np.clip(degree * p, -1000, 1000))[()]


def scaled(model: Any, p: int, degrees: dict[str, int | None]) -> Any:
    """The same model with its parameters in a unit 2^p times smaller."""
    params = model.get_params(deep=False)
    return type(model)(**{k: times(v, degrees.get(k), p) for k, v in params.items()})


def answers(model: Any, X: Any, **fit: Any) -> dict[str, np.ndarray]:
    """All that a fit gives in numbers: attributes, and what it says of the rows."""
    model.fit(X, **fit)
    out = {k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"}
    how = ("n_iter_", "converged_")  # rounding decides on the last pass
    out = {k: np.asarray(v) for k, v in out.items() if isinstance(v, (float, int, np.ndarray)) and k not in how}
    out["transform"] = np.asarray(model.transform(X))
    if isinstance(model, Groups):
        out["predict"] = model.predict(X)
    return out


def cells(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """What a fitted model that imputes puts into some of the cells, and how sure it is."""
    imputes = isinstance(model, Imputes)
    if not imputes or not model.missing or model.why_not():
        return {}
    share = np.where(np.arange(len(X)) % 2, 0.2, 0.7)[:, None]  # rows that miss few cells and rows that miss most
    holes = np.where(np.random.default_rng(3).random(X.shape) < share, X.dtype.type(np.nan), X)
    return dict(zip(("impute", "deviations"), model.impute(holes, return_std=True), strict=True))
