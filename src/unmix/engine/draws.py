"""Random numbers that depend on the seed of a fit and on what they are for, and on nothing else."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np


def generator(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """The random numbers for one purpose: a function of (seed, what for, index) and of nothing else."""
    key = [seed, crc32(purpose.encode()), *(index or (0,))]
    words = np.array(key, np.uint32) if min(key) >= 0 and max(key) < 1 << 32 else key  # the same, in half the time
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def turn(seed: int, number: int, many: int) -> int:
    """Whose turn it is among so many: one after the other, from one that the seed draws.

    So draws of one seed differ as much as may be, and those of many seeds, one of each, differ, too.
    """
    return (int(generator(seed, "turn").integers(many)) + number) % many


class Draws:
    """A generator that is made on the first draw: making one costs more than many a round."""

    def __init__(self, *key: Any) -> None:
        self.key = key

    def __getattr__(self, name: str) -> Any:
        self.__dict__["made"] = made = self.__dict__.get("made") or generator(*self.key)
        return getattr(made, name)
