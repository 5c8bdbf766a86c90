"""Rows as a model's start sees them: one block, equal rows merged; their mean, and where to measure them from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.engine.draws import generator
from unmix.engine.layout import Run, Shape
from unmix.engine.moments import is_sparse, room
from unmix.engine.range import check_range
from unmix.engine.rows import Rows, Rules, Seen, cut, held_columns, inspect
from unmix.engine.sources.arrays import csr_of

FEW_CELLS = 1 << 17  # that are subtracted from in less time than it takes to find out whether that is needed


def whole_block(x: Any, w: np.ndarray | None, rules: Rules) -> Block:
    """Rows as one block, if they are of a size that the model can take."""
    b = next(Rows(Run(0, (0, x.shape[0])), x, w, rules, {}).blocks())
    check_range(b.x.data if sp.issparse(b.x) else b.x, x.shape[1], rules)
    return b


def sample_of(source: Any, w: np.ndarray | None, rules: Rules, m: int, merged: bool = True) -> Block:
    """m rows that count, drawn by their index; where m is all, the distinct rows.

    Where equal ones need not be `merged`, all rows or every so many of them.

    The same rows for every seed: what a model draws it draws from them, and what is no draw (an origin, a scale, a
    first guess) does not depend on the seed.
    """
    if m == source.n:
        b = whole_block(source.read(0, m), w, rules)
        check_sample(b, rules)
        return distinct(b) if merged else b
    rows = np.arange(source.n) if w is None else np.flatnonzero(w > 0)
    if merged:
        index = np.sort(generator(0, "sample").choice(rows, min(m, len(rows)), replace=False))
    else:
        index = rows[:: -(-len(rows) // m)]
    x = source.take(index)
    try:
        return whole_block(x, None if w is None else w[index], rules)
    except ValueError:  # of a cell, which is named by its row among all rows
        for i, row in enumerate(index):
            inspect(cut(x, i, i + 1), int(row), rules)
        raise


def check_columns(seen: Seen, rules: Rules) -> None:
    """Refuse a column that has no value in any row that counts, unless the model allows it."""
    if rules.empty_columns or seen.columns.all():
        return
    column = rules.column(int(np.argmin(seen.columns)))
    what = f"X holds no entry in {column}" if rules.absent else f"Input X contains NaN only in {column}"
    raise ValueError(f"{what}: nothing was observed, so nothing can be learnt about it. Drop that column.")


def check_sample(b: Block, rules: Rules) -> None:
    """The same for a block of all rows."""
    if b.observed is not None:
        counts = b.observed if b.w is None else b.observed[b.w > 0]
        check_columns(Seen(True, np.asarray(counts.any(axis=0))), rules)
    elif b.absent:
        check_columns(Seen(True, held_columns(b.x, b.w)), rules)


def distinct(b: Block) -> Block:
    """The rows that count, equal ones merged, in an order of their own.

    So that the first parts do not depend on the order of the rows, nor on whether a row is there twice or weighs 2.
    Rows are equal where their cells are, and were observed alike.
    """
    weight = np.ones(b.x.shape[0]) if b.w is None else b.w
    rows = np.flatnonzero(weight > 0)
    x = b.x if len(rows) == len(weight) else b.x[rows]
    weights = ruler(0, x.shape[1])
    if sp.issparse(x):
        key = x @ weights
    else:
        key = np.multiply(x, weights, out=room(x.shape, np.float64)).sum(axis=1)
    observed = held(x) if b.absent else None if b.observed is None else b.observed[rows]
    if observed is not None:
        more = ruler(1, x.shape[1])
        key = key + (observed @ more if b.absent else (observed * more).sum(axis=1))
    order = np.argsort(key, kind="stable")
    xs, seen = x[order], None if observed is None else observed[order]
    new = unlike_the_last(xs, seen)
    if (new[1:] & (key[order][1:] == key[order][:-1])).any():  # rounding took unequal rows for equal: look at the cells
        order = np.lexsort([*cells_in_order(x, observed), key])
        xs, seen = x[order], None if observed is None else observed[order]
        new = unlike_the_last(xs, seen)
    w = np.add.reduceat(weight[rows[order]], np.flatnonzero(new))
    if not new.all():
        xs, seen = xs[new], None if seen is None else seen[new]
    return Block(xs, None if (w == 1).all() else w, None, None if b.absent else seen, absent=b.absent)


@lru_cache(maxsize=8)
def ruler(which: int, d: int) -> np.ndarray:
    """Numbers by which d columns are added up to one that orders rows."""
    out = generator(which, "order").normal(size=d)
    out.setflags(write=False)
    return out


def held(x: Any) -> Any:
    """1 for every entry that CSR rows hold."""
    return csr_of(np.ones(len(x.data)), x.indices, x.indptr, x.shape)


def unlike_the_last(x: Any, observed: Any) -> np.ndarray:
    """Whether a row differs from the one before it."""
    out = np.ones(x.shape[0], bool)
    out[1:] = unlike(x)
    if observed is not None:
        out[1:] |= unlike(observed)
    return out


def unlike(a: Any) -> np.ndarray:
    """Whether each row but the first differs from the one before it."""
    if sp.issparse(a):
        return np.asarray(abs(a[1:] - a[:-1]).sum(axis=1) > 0)
    return np.asarray((a[1:] != a[:-1]).any(axis=1))


def cells_in_order(x: Any, observed: Any) -> list[np.ndarray]:
    """Keys that are equal for equal rows only: the cells; of CSR rows the rank of their bytes."""
    if not sp.issparse(x):
        return [*x.T, *([] if observed is None else observed.T)]
    x = x.copy()
    x.sum_duplicates()
    if observed is None:
        x.eliminate_zeros()
    x.data += 0  # so that −0 has the bytes of 0
    ends = zip(x.indptr[:-1], x.indptr[1:], strict=True)
    rows = [x.indices[a:b].tobytes() + x.data[a:b].tobytes() for a, b in ends]
    rank = {row: i for i, row in enumerate(sorted(set(rows)))}
    return [np.array([rank[row] for row in rows])]


def mean(b: Block) -> np.ndarray:
    """Weighted mean of each column over its observed cells, in float64."""
    n, ones = b.x.shape[0], np.ones(b.x.shape[0]) if b.w is None else b.w
    if b.w is None and b.observed is None and not b.absent and not is_sparse(b.x):  # the same, sooner
        return ones @ b.x.astype(np.float64, copy=False) / n
    observed = held(b.x) if b.absent else b.observed
    count = ones.sum() if observed is None else ones @ observed
    return np.asarray(ones @ b.x.astype(np.float64, copy=False)).ravel() / np.maximum(count, np.finfo(float).tiny)


def centre_of(b: Block) -> np.ndarray:
    """The mean as the precision of the rows holds it: blocks of that precision subtract the same."""
    return mean(b).astype(b.x.dtype).astype(np.float64)


def origin(b: Block, centre: np.ndarray, shape: Shape) -> np.ndarray:
    """Where to measure rows from: zero, which costs no subtraction, if all means are within a standard deviation of it.

    Σ x xᵀ about zero then has no more than twice the rounding of that about the mean. CSR rows are summed about zero in
    float64 in any case; of few rows, the centre is subtracted sooner than looked at.
    """
    if is_sparse(b.x):
        return np.zeros_like(centre)
    if shape.n * shape.d <= FEW_CELLS:
        return centre
    square = mean(b._replace(x=np.square(b.x, out=room(b.x.shape, np.float64), dtype=np.float64)))
    return np.zeros_like(centre) if (2 * centre**2 <= square).all() else centre
