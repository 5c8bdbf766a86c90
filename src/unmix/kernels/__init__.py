"""Compiled inner loops: Numba, serial, free of the GIL, imported by the method that uses them, with NumPy twins.

A kernel that calls another must have it `inlined`. Left to itself, the compiler may keep a callee separate; then a
process that compiled both calls a different copy than one that found its caller in the cache, and where sums may be
reordered the two differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

SUMS = frozenset({"reassoc", "contract", "nsz"})  # sums in vector registers, products and sums in one rounding
FUSED = frozenset({"contract"})  # products and sums in one rounding
STRICT: frozenset[str] = frozenset()


def kernel(fastmath: Collection[str] = STRICT) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that the models call, kept in a cache on disk."""
    from numba import njit

    return njit(cache=True, nogil=True, error_model="numpy", fastmath=set(fastmath) or False)


def inlined(fastmath: Collection[str] = STRICT) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as a piece of the kernels that call it."""
    from numba import njit

    return njit(error_model="numpy", fastmath=set(fastmath) or False, forceinline=True)
