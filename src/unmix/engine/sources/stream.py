"""A source over a function that gives a fresh iterator of row blocks each time it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources.base import Columns, Sequential, check_shape, float_type


class Factory(Sequential):
    """Blocks from an iterator. One pass at the start counts them; every later pass must give the same rows again.

    Each block is copied before the next is asked for, since iterators are free to fill one buffer again and again,
    and the iterator is only ever advanced by the thread that iterates over `batches`.
    """

    kind = "iterator"
    sequential = True
    idle = 1
    verify_end = True

    def __init__(self, factory: Callable[[], Any], columns: Columns | None = None) -> None:
        super().__init__()
        self.factory, self.columns = factory, columns
        self.n, self.d = 0, -1
        dtypes = set()
        for rows, names, absent in self._blocks():
            if self.d < 0:
                self.d, self.sparse, self.names, self.absent = rows.shape[1], sp.issparse(rows), names, absent
            self.n += rows.shape[0]
            dtypes.add(rows.dtype)
        if self.d < 0:
            raise ValueError(
                "the function passed as X gave no rows: Found array with 0 sample(s) while a minimum of 1 is "
                "required. It must return a new iterator of 2-d blocks each time it is called"
            )
        check_shape(self.n, self.d)
        self.dtype = float_type(dtypes)

    def _blocks(self) -> Iterator[tuple[Any, list[str] | None, str]]:
        """Every block with at least one row, its column names and what its absent entries mean."""
        from unmix.engine.sources import as_source

        blocks = self.factory()
        try:
            blocks = iter(blocks)
        except TypeError:
            raise TypeError(
                f"X is a function that returned {type(blocks).__name__}; it must return an iterator of 2-d blocks"
            ) from None
        for i, block in enumerate(blocks):
            shape = getattr(block, "shape", None)
            if shape is not None and len(shape) == 2 and shape[0] == 0:
                continue
            try:
                source = as_source(block, columns=self.columns, absent=None if self.absent == "zero" else self.absent)
            except (TypeError, ValueError) as e:
                raise type(e)(f"block {i} of the iterator: {e}") from e
            if self.d >= 0 and (source.d != self.d or source.sparse != self.sparse):
                raise ValueError(
                    f"block {i} of the iterator has {source.d} {'sparse' if source.sparse else 'dense'} columns, the "
                    f"blocks before it {self.d} {'sparse' if self.sparse else 'dense'} ones; all must be alike"
                )
            if self.d >= 0 and source.names != self.names:
                raise ValueError(
                    f"block {i} of the iterator has columns {source.names}, the blocks before it {self.names}; "
                    "all must have the same columns in the same order"
                )
            yield source.whole(), source.names, source.absent

    def _pieces(self, origin: int) -> Iterator[Any]:
        for rows, _, _ in self._blocks():
            yield rows

    def _cut(self, piece: Any, a: int, b: int) -> Any:
        return piece[a:b].copy()

    def _ended(self, at: int) -> Exception:
        return ValueError(
            f"the function passed as X gave {self.n} rows when it was first called and "
            f"{f'only {at}' if at < self.n else 'more'} this time; it must return a new iterator over the same rows "
            "each time it is called"
        )

    def _sample(self) -> list[int]:
        return [int(i) for i in np.unique(np.linspace(0, min(self.n, 64) - 1, 4))]
