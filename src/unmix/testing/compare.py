"""How a law compares two things, and how it complains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unmix.engine import tree


class Broken(AssertionError):  # noqa: N818  it says what is wrong
    """A law does not hold."""


class CtrlC(KeyboardInterrupt):
    """Ctrl-C as a law presses it, told from one that a person presses while the laws run."""


def demand(holds: Any, otherwise: str) -> None:
    """Raise what is wrong unless it holds (an `assert` that `python -O` keeps)."""
    if not holds:
        raise Broken(otherwise)


def refuses(kind: type[Exception], word: str, call: Any, *args: Any) -> None:
    """The call raises an error of this kind whose message has this word."""
    try:
        call(*args)
    except kind as error:
        demand(word in str(error), f"the {kind.__name__} should say {word!r}, but says {str(error)!r}")
    else:
        raise Broken(f"a {kind.__name__} that says {word!r} should have been raised")


def close(a: Any, b: Any, rtol: float = 1e-7, what: str = "the two") -> None:
    """Leaf by leaf, to a tolerance relative to the leaf's largest entry (or, since sums may cancel, the tree's)."""
    largest = max((np.abs(v).max(initial=0) for v in tree.leaves(a)), default=0)
    for (name, u), v in zip(named(a), tree.leaves(b), strict=True):
        u, v = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
        demand(u.shape == v.shape, f"{what} differ in shape{name}: {u.shape} and {v.shape}")
        scale = max(np.abs(u).max(initial=0), np.abs(v).max(initial=0), 1e-6 * largest)
        if not np.isclose(u, v, rtol=0, atol=rtol * scale, equal_nan=True).all():
            gap = np.abs(u - v).max()
            raise Broken(f"{what} differ{name} by up to {gap:.3g}; the largest entry is {scale:.3g}")


def same_bits(a: Any, b: Any) -> bool:
    """Whether two trees hold the same numbers, to the last bit."""
    return all(np.array_equal(u, v) for u, v in zip(tree.leaves(a), tree.leaves(b), strict=True))


def named(a: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a tree, each with the words that say where it is."""
    if isinstance(a, tuple):
        for field, value in zip(tree.names(a) or map(str, range(len(a))), a, strict=True):
            yield from named(value, f"{name}.{field}" if name else f" in {field}")
    elif a is not None:
        yield name, a
