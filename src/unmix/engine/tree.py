"""Parts and statistics are trees: arrays, scalars, or (named) tuples of them. The engine needs no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import starmap, zip_longest
from math import isfinite
from operator import is_
from typing import Any

import numpy as np

DOUBLE = np.dtype(np.float64)  # NumPy makes one of the type anew for every comparison with it


def rebuild(like: Any, values: Any) -> Any:
    """A tuple of the kind of `like` with these values."""
    return like._make(values) if hasattr(like, "_make") else tuple(values)


def names(a: Any) -> list[str] | None:
    """The names of a tuple's fields, None where they have none."""
    return list(a._fields) if hasattr(a, "_fields") else None


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
    """The tree with floating arrays as float64, C-ordered and its own: the start of a sum that belongs to the engine.

    Statistics are handed over: an array that is not a view of another, and occurs once, is taken as it is.
    """
    taken: set[int] = set()

    def own(v: Any) -> Any:
        if isinstance(v, tuple):
            return rebuild(v, [own(u) for u in v])
        if not isinstance(v, np.ndarray):
            return v
        whole = v.flags.carray and not isinstance(v.base, np.ndarray)
        if whole and (v.dtype == DOUBLE or v.dtype.kind != "f") and id(v) not in taken:
            taken.add(id(v))
            return v
        return np.array(v, dtype=np.float64 if v.dtype.kind == "f" else v.dtype, order="C")

    return own(a)


def settle(a: Any, dtype: Any = None, like: Any = None) -> Any:
    """The tree with its arrays aligned and in C order, the floating ones in `dtype` if given (no copy where they are).

    BLAS gives other bits for other memory orders, NumPy for unaligned memory; an array that travelled may have either.
    What the tree shares with one `like` it, which is in order, is not looked at: most of it, after many an update. A
    tuple may have grown.
    """
    if isinstance(a, np.ndarray):
        now = a.dtype
        if a.flags.carray and (dtype is None or now is dtype):  # nearly always, and many times in a pass
            return a
        kind = now if dtype is None or now.kind != "f" else dtype
        return a if a.flags.carray and now == kind else np.require(a, kind, ("C", "A"))
    if not isinstance(a, tuple):
        return a
    new = [v if v is u else settle(v, dtype, u) for v, u in beside(a, like)]
    return a if all(starmap(is_, zip(new, a, strict=True))) else rebuild(a, new)


def beside(a: tuple[Any, ...], like: Any) -> Iterator[tuple[Any, Any]]:
    """Each item of a tuple with that of one `like` it, or None; a tuple may have grown."""
    return zip_longest(a, like[: len(a)] if type(like) is type(a) else ())


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


def finite(a: Any, like: Any = None) -> bool:
    """Whether every number in the tree is finite; those that it shares with one `like` it are."""
    if isinstance(a, np.ndarray):  # bytes are searched in a tenth of the time that `all` takes to begin
        return a.dtype.kind != "f" or b"\0" not in np.isfinite(a).tobytes()
    if isinstance(a, tuple):
        return all([finite(v, u) for v, u in beside(a, like) if v is not u])
    return not isinstance(a, (float, np.floating)) or isfinite(a)


def nbytes(a: Any) -> int:
    """Bytes held by the tree's arrays."""
    return sum(int(v.nbytes) for v in leaves(a) if hasattr(v, "nbytes"))


def is_float(v: Any) -> bool:
    """Whether a leaf holds floating-point numbers."""
    return isinstance(v, float) or (isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind == "f")
