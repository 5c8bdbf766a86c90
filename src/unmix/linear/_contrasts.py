"""How far from Gaussian a component is: E[G(y)] − E[G(ν)], ν Gaussian, y of mean 0 and variance 1.

    "logcosh"    G = log cosh(αy)/α      for all sources; 1 ≤ α ≤ 2
    "exp"        G = −e^(−y²/2)          for very heavy tails, or where some rows are wrong
    "cube"       G = y⁴/4                the kurtosis: quick, for sources without heavy tails
    a function   g and its derivative; G is the integral of g, which is tabulated

For a Gaussian y of n rows √n (mean G − E[G(ν)]) has the variance  var G(ν) − ½ E[g′(ν)]²  (since y is scaled to
variance 1): by that one can tell whether a component is one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

NONE = np.zeros(0)
GRID = np.linspace(-12.0, 12.0, 4801)  # on which integrals over a Gaussian are exact to rounding
BELL = np.exp(-0.5 * GRID**2)
BELL /= BELL.sum()
REACH, POINTS = 60.0, 120_001  # of the table of a function's integral
USUAL = 8.0  # standard deviations within which the slope of a function is looked at


class Contrast(NamedTuple):
    """A contrast and what is known of it.

    `rows(y, w)` gives w g(y) of components, one in each row of y, and their sums Σ w G, Σ w g′, Σ w g².
    """

    rows: Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
    gauss: float  # E[G(ν)]
    spread: float  # standard deviation of √n (mean G − E[G(ν)]) for Gaussian rows
    bend: tuple[float, float | None]  # −least and largest g′; None: there is no bound
    few: tuple[int, float] | None  # the kernel's number of it and α, for few rows; None: it is a user's function


def contrast(fun: Any, fun_args: dict[str, Any] | None) -> Contrast:
    """The contrast that the parameters name."""
    args = tuple(sorted(fun_args.items())) if fun_args else ()
    try:
        return _contrast(fun, args)
    except TypeError:  # arguments that cannot be looked up
        return _contrast.__wrapped__(fun, args)


@lru_cache(maxsize=32)
def _contrast(fun: Any, args: tuple[tuple[str, Any], ...]) -> Contrast:
    rows: Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
    bend: tuple[float, float | None]
    few = None
    if fun == "logcosh":
        alpha = float(dict(args).get("alpha", 1.0))
        rows, bend, few = _Logcosh(alpha), (0.0, alpha), (0, alpha)
    elif fun == "exp":
        rows, bend, few = _bell, (2.0 * float(np.exp(-1.5)), 1.0), (1, 1.0)
    elif fun == "cube":
        rows, bend, few = _cube, (0.0, None), (2, 1.0)
    else:
        rows = table = _Tabulated(fun, dict(args))
        slope = np.gradient(table.g, table.y)[np.abs(table.y) < USUAL]
        bend = max(-float(slope.min()), 0.0), max(float(slope.max()), 0.0)
    g, sums = rows(GRID[:, None].copy(), None)  # each number a component of its own
    G = sums[:, 0]
    mean = float(BELL @ G)
    variance = float(BELL @ (G - mean) ** 2) - 0.5 * float(BELL @ (g[:, 0] * GRID)) ** 2  # E[g′(ν)] = E[ν g(ν)]
    return Contrast(rows, mean, float(np.sqrt(max(variance, np.finfo(float).tiny))), bend, few)


class _Logcosh:
    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def __call__(self, y: np.ndarray, w: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        from unmix.kernels.ica_rows import logcosh

        g, sums = np.empty_like(y), np.empty((len(y), 3))
        logcosh(y, self.alpha, NONE if w is None else w, g, sums)
        return g, sums


def _bell(y: np.ndarray, w: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    from unmix.kernels.ica_rows import bell

    g, sums = np.empty_like(y), np.empty((len(y), 3))
    bell(y, NONE if w is None else w, g, sums)
    return g, sums


def _cube(y: np.ndarray, w: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    from unmix.kernels.ica_rows import cube

    g, sums = np.empty_like(y), np.empty((len(y), 3))
    cube(y, NONE if w is None else w, g, sums)
    return g, sums


class _Tabulated:
    """A user's function, which gives g and g′, the latter of every number or its mean over each row."""

    def __init__(self, fun: Callable[..., Any], args: dict[str, Any]) -> None:
        self.fun, self.args = fun, args
        self.y = np.linspace(-REACH, REACH, POINTS)
        self.g = np.asarray(self._ask(self.y[None].copy())[0], dtype=np.float64)[0]
        if not np.isfinite(self.g).all():
            raise ValueError(f"fun={fun!r} is not finite on all of [−{REACH:.0f}, {REACH:.0f}]: give one that is")
        pieces = 0.5 * (self.g[1:] + self.g[:-1]) * (self.y[1] - self.y[0])
        G = np.concatenate([[0.0], np.cumsum(pieces)])
        self.G = G - G[POINTS // 2]

    def _ask(self, y: np.ndarray) -> tuple[Any, Any]:
        out = self.fun(y, **self.args)
        right = isinstance(out, tuple) and len(out) == 2 and np.shape(out[0]) == y.shape
        if not right or np.shape(out[1]) not in (y.shape, y.shape[:1]):
            raise ValueError(
                f"fun={self.fun!r} must return two arrays: g of each number, of the shape of y, and its derivative, of "
                "the same shape or averaged over the last axis, as in lambda y: (y**3, (3 * y**2).mean(axis=-1))"
            )
        return out

    def __call__(self, y: np.ndarray, w: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        g, slope = (np.asarray(v) for v in self._ask(y.copy()))
        if w is not None and slope.ndim == 1:
            raise ValueError(
                f"fun={self.fun!r} averages its derivative over the rows, which have weights here: let it return the "
                "derivative at each number"
            )
        G = np.interp(y, self.y, self.G)
        beyond = np.abs(y) > REACH
        G = np.where(beyond, G + g * (y - np.clip(y, -REACH, REACH)), G)  # as steep as at the row itself, or less
        w = np.ones(y.shape[1]) if w is None else w
        slopes = slope * y.shape[1] if slope.ndim == 1 else slope @ w
        sums = np.stack([G @ w, slopes, (g * g) @ w], axis=1).astype(np.float64)
        return np.ascontiguousarray(g * w, dtype=y.dtype), sums
