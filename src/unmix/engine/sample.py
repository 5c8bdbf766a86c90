"""Rows as a model's start sees them: one block, equal rows merged; their mean, and where to measure them from."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.engine.layout import Run
from unmix.engine.moments import is_sparse
from unmix.engine.rows import Rows, Rules, Seen


def generator(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    """The random numbers for one purpose: a function of (seed, what for, index) and of nothing else."""
    return np.random.default_rng([seed, crc32(purpose.encode()), index])


def whole_block(x: Any, w: np.ndarray | None, rules: Rules) -> Block:
    """Rows as one block."""
    return next(Rows(Run(0, (0, x.shape[0])), x, w, rules, {}).blocks())


def check_columns(seen: Seen, rules: Rules) -> None:
    """Refuse a column that has no value in any row that counts."""
    if not seen.columns.all():
        raise ValueError(
            f"Input X contains NaN only in {rules.column(int(np.argmin(seen.columns)))}: nothing was observed, so "
            "nothing can be learnt of it. Drop that column."
        )


def distinct(b: Block) -> Block:
    """The rows that count, equal ones merged, in an order of their own.

    So that the first parts do not depend on the order of the rows, nor on whether a row is there twice or weighs 2.
    """
    weight = np.ones(b.x.shape[0]) if b.w is None else b.w
    rows = np.flatnonzero(weight > 0)
    x = b.x[rows]
    ruler = generator(0, "order").normal(size=x.shape[1])
    key = x @ ruler if sp.issparse(x) else (x * ruler).sum(axis=1)
    observed = None if b.observed is None else b.observed[rows]
    if observed is not None:
        key = key + (observed * generator(1, "order").normal(size=x.shape[1])).sum(axis=1)
    order = np.argsort(key, kind="stable")
    new = unlike_the_last(x, observed, order)
    if (new[1:] & (key[order][1:] == key[order][:-1])).any():  # rounding took unequal rows for equal: look at the cells
        order = np.lexsort([*cells_in_order(x, observed), key])
        new = unlike_the_last(x, observed, order)
    w = np.add.reduceat(weight[rows[order]], np.flatnonzero(new))
    order = order[new]
    return Block(x[order], None if (w == 1).all() else w, None, None if observed is None else observed[order])


def unlike_the_last(x: Any, observed: np.ndarray | None, order: np.ndarray) -> np.ndarray:
    """Whether a row differs from the one before it, in this order."""
    out, x = np.ones(len(order), bool), x[order]
    if sp.issparse(x):
        out[1:] = abs(x[1:] - x[:-1]).sum(axis=1) > 0
    else:
        out[1:] = (x[1:] != x[:-1]).any(axis=1)
    if observed is not None:
        observed = observed[order]
        out[1:] |= (observed[1:] != observed[:-1]).any(axis=1)
    return out


def cells_in_order(x: Any, observed: np.ndarray | None) -> list[np.ndarray]:
    """Keys by which just equal rows are equal: the cells; of CSR rows the rank of their bytes."""
    if not sp.issparse(x):
        return [*x.T, *([] if observed is None else observed.T)]
    x = x.copy()
    x.sum_duplicates()
    x.eliminate_zeros()
    ends = zip(x.indptr[:-1], x.indptr[1:], strict=True)
    rows = [x.indices[a:b].tobytes() + x.data[a:b].tobytes() for a, b in ends]
    rank = {row: i for i, row in enumerate(sorted(set(rows)))}
    return [np.array([rank[row] for row in rows])]


def mean(b: Block) -> np.ndarray:
    """Weighted mean of each column over its observed cells, in float64."""
    ones = np.ones(b.x.shape[0]) if b.w is None else b.w
    count = ones.sum() if b.observed is None else ones @ b.observed
    return np.asarray(ones @ b.x.astype(np.float64, copy=False)).ravel() / np.maximum(count, np.finfo(float).tiny)


def origin(b: Block, centre: np.ndarray) -> np.ndarray:
    """Where to measure rows from: zero, which costs no subtraction, if all means are within a standard deviation of it.

    Σ x xᵀ about zero then has no more than twice the rounding of that about the mean. CSR rows are summed about zero in
    float64 in any case.
    """
    if is_sparse(b.x):
        return np.zeros_like(centre)
    square = mean(b._replace(x=np.square(b.x, dtype=np.float64)))
    return np.zeros_like(centre) if (2 * centre**2 <= square).all() else centre
