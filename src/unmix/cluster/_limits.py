"""Limits on the sizes of clusters: the local step of k-means becomes a minimum-cost flow over all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.cluster._parts import Parts
from unmix.cluster.metrics.base import Metric, Rows, rows_of
from unmix.engine.block import Block
from unmix.engine.config import get_config
from unmix.engine.layout import Shape

BYTES_PER_COST = 16  # a distance, and the kernel's copy of it


def check_limits(min_size: int | None, max_size: int | None, k: int, shape: Shape) -> None:
    """Refuse sizes that k clusters of these rows cannot have, and rows that are not, or do not fit, in memory."""
    n = shape.n
    if min_size is not None and min_size * k > n:
        raise ValueError(f"min_size={min_size} × n_clusters={k} is more than the {n} rows: give at most {n // k}")
    if max_size is not None and max_size * k < n:
        raise ValueError(f"max_size={max_size} × n_clusters={k} is less than the {n} rows: give at least {-(-n // k)}")
    if min_size is not None and max_size is not None and min_size > max_size:
        raise ValueError(f"min_size={min_size} is above max_size={max_size}")
    if not shape.in_memory:
        raise ValueError("min_size and max_size need all rows in memory: pass an array, or leave them out")
    needed, budget = BYTES_PER_COST * n * k, get_config().budget
    if needed > budget:
        raise ValueError(
            f"min_size and max_size need the distances of {n} rows to {k} centres, {needed:.1e} bytes, of "
            f"{budget:.1e} allowed: fit a sample of the rows, or raise memory_budget"
        )


def within_limits(
    metric: Metric, U: Parts, b: Block, min_size: int | None, max_size: int | None, n: int
) -> tuple[Rows, Any]:
    """The best assignment of all n rows that keeps the limits, and the sums over the rows of each cluster."""
    from unmix.kernels import kmeans_limits

    rows = b.x.shape[0]
    if b.w is not None:
        raise ValueError("min_size and max_size count rows: leave sample_weight out, or give the rows repeatedly")
    if rows != n:
        raise ValueError(
            f"min_size and max_size need all {n} rows in one block, but this one has {rows}: leave block_rows out"
        )
    costs = metric.costs(U, b._replace(x=b.x.astype(np.float64)))
    z = rows_of(b._replace(z=None))
    z.label[:] = kmeans_limits.assign(costs, min_size or 0, max_size or n)
    z.lower[:] = 0.0  # no bound
    return z, metric.sums(U, b, z)
