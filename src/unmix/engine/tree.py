"""Parts and statistics are trees: arrays, scalars, or (named) tuples of them. The engine asks no more of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def rebuild(like: Any, values: Any) -> Any:
    """A tuple of the kind of `like` with these values."""
    return like._make(values) if hasattr(like, "_make") else tuple(values)


def map(f: Callable[..., Any], a: Any, *more: Any) -> Any:
    """f applied leaf by leaf; None stays None."""
    if isinstance(a, tuple):
        return rebuild(a, (map(f, *leaves) for leaves in zip(a, *more, strict=True)))
    return None if a is None else f(a, *more)


def leaves(a: Any) -> Iterator[Any]:
    """Every leaf that is not None, in order."""
    if isinstance(a, tuple):
        for b in a:
            yield from leaves(b)
    elif a is not None:
        yield a


def double(a: Any) -> Any:
    """A copy of the tree whose floating arrays are float64: the start of a sum that belongs to the engine."""
    return map(lambda v: np.array(v, dtype=np.float64) if is_float(v) else np.array(v) if isinstance(v, np.ndarray) else v, a)


def add_into(total: Any, a: Any) -> Any:
    """total + a, in place where a leaf of `total` is an array."""

    def plus(t: Any, v: Any) -> Any:
        if isinstance(t, np.ndarray) and t.ndim:
            t += v
            return t
        return t + v

    return map(plus, total, a)


def scale(a: Any, c: float) -> Any:
    """c · a."""
    return map(lambda v: c * v, a)


def blend(a: Any, b: Any, rho: float) -> Any:
    """(1 − ρ) a + ρ b; exactly b when ρ is 1."""
    return b if rho == 1.0 else map(lambda u, v: (1.0 - rho) * u + rho * v, a, b)


def cast(a: Any, dtype: Any) -> Any:
    """The tree with its floating arrays in `dtype` (no copy where they already are)."""
    return map(lambda v: v.astype(dtype, copy=False) if isinstance(v, np.ndarray) and is_float(v) else v, a)


def finite(a: Any) -> bool:
    """Whether every number in the tree is finite."""
    return all(bool(np.isfinite(v).all()) for v in leaves(a) if is_float(v))


def nbytes(a: Any) -> int:
    """Bytes held by the tree's arrays."""
    return sum(int(v.nbytes) for v in leaves(a) if hasattr(v, "nbytes"))


def is_float(v: Any) -> bool:
    """Whether a leaf holds floating-point numbers."""
    return isinstance(v, float) or (isinstance(v, (np.ndarray, np.generic)) and np.issubdtype(v.dtype, np.floating))
