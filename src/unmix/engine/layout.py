"""Where blocks and runs begin and end: a function of the data's shape alone.

A *block* is what one local step sees, about 1 MiB of rows, so that it stays in a core's cache. A *run* is a sequence of
consecutive blocks; its statistics are added up in order wherever it is computed, and runs are added in order at the
end. So the sum has one order, whoever computes it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

BLOCK_BYTES = 1 << 20
RUN_BYTES = 32 << 20
RUNS = 64  # how many runs to aim for: enough for many threads, few enough to add up


class Shape(NamedTuple):
    """What a model may know about the data before the first pass.

    `absent` says whether entries that sparse rows do not hold were not observed; such rows are not `complete`.
    """

    n: int
    d: int
    dtype: np.dtype
    sparse: bool = False
    weight: float = 0.0
    complete: bool = True
    in_memory: bool = True
    nbytes: int = 0
    absent: bool = False
    names: tuple[str, ...] | None = None  # of the columns
    online: bool = False  # these rows are one batch of many
    counted: int = 0  # rows of positive weight
    unit: float = 1.0  # what extreme weights were divided by, a power of two: `weight` is their sum after that
    kinds: tuple[str, ...] | None = None  # what each column holds, where categories are codes: `unmix.table`
    levels: tuple[int, ...] | None = None  # how many levels it has then, 0 for numbers

    @property
    def root(self) -> float:
        """√unit: what numbers were divided by that grow with √w."""
        return math.sqrt(self.unit)

    @property
    def rows(self) -> float:
        """How many rows the data stand for: the sum of their weights, or the rows that count where these are more.

        So weights above one are counts, while of weights that sum to less than the rows, as normalised ones do, only
        the ratios matter.
        """
        return max(self.weight, float(self.counted))


class Run(NamedTuple):
    """Consecutive blocks: `bounds[i], bounds[i + 1]` are the first row and the end of block i."""

    number: int
    bounds: tuple[int, ...]

    @property
    def start(self) -> int:
        """Global index of the first row."""
        return self.bounds[0]

    @property
    def stop(self) -> int:
        """Global index of the row after the last."""
        return self.bounds[-1]


def block_rows(shape: Shape) -> int:
    """Rows of a block: about 1 MiB of dense rows; of sparse rows a 32nd of them, within 256 and 16384."""
    if shape.sparse:
        return min(max(-(-shape.n // 32), 256), 16384)
    return min(max(BLOCK_BYTES // (shape.d * shape.dtype.itemsize), 64), 65536)


def batches(shape: Shape, rows: int, batch_rows: int | None = None) -> list[list[Run]]:
    """The runs of each batch of a pass; a pass in one batch unless `batch_rows` says otherwise."""
    out: list[list[Run]] = []
    index = 0
    width = shape.n if batch_rows is None else batch_rows
    for start in range(0, shape.n, width):
        stop = min(start + width, shape.n)
        blocks = -(-(stop - start) // rows)
        row_bytes = 8 if shape.sparse else shape.d * shape.dtype.itemsize
        per_run = max(1, min(-(-blocks // RUNS), RUN_BYTES // max(1, rows * row_bytes)))
        edges = [*range(start, stop, rows), stop]
        runs = []
        for i in range(0, blocks, per_run):
            runs.append(Run(index, tuple(edges[i : i + per_run + 1])))
            index += 1
        out.append(runs)
    return out


def sample_rows(shape: Shape) -> int:
    """How many rows a model's `start` sees: all of small data, some tens of thousands of rows of large data."""
    return min(shape.n, max((1 << 22) // shape.d, 1 << 14), 1 << 17)
