"""Sources over Dask: arrays and data frames whose chunks are computed when their rows are wanted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources.arrays import check_kind, without_zeros
from unmix.engine.sources.arrow import frame_names
from unmix.engine.sources.base import PIECE, Columns, Sequential, Source, check_shape, choose, float_type, not_a_number


class Lazy(Sequential):
    """A Dask array, kept as `collection`: chunks of known numbers of rows, one chunk wide.

    `read` computes the rows asked for and nothing else; passes in order compute whole chunks, several small ones at
    once, so that each is computed once a pass.
    """

    kind = "dask"

    def __init__(self, collection: Any, names: list[str] | None = None) -> None:
        super().__init__()
        check_kind(collection.dtype)
        if collection.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {collection.ndim}D array instead: a Dask array of shape {collection.shape}. "
                "Reshape your data to rows × columns"
            )
        if any(np.isnan(c) for axis in collection.chunks for c in axis):
            collection = collection[:].copy().compute_chunk_sizes()
        if len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        self.n, self.d = (int(s) for s in collection.shape)
        check_shape(self.n, self.d)
        self.sparse, self.names = sp.issparse(collection._meta), names
        self.dtype = float_type([collection.dtype])
        self.given = collection if collection.dtype == self.dtype else collection.astype(self.dtype)
        self.collection = self._by(chunk_values) if self.sparse else self.given
        self.edges = [0, *accumulate(int(c) for c in collection.chunks[0])]

    def reading(self, absent: str) -> Source:
        """The same rows; chunks that do not tell what was observed are refused when they are computed."""
        out = super().reading(absent)
        if out is not self:
            out.collection = self._by(chunk_entries if absent == "unobserved" else chunk_values)  # type: ignore[attr-defined]
        return out

    def _by(self, f: Any) -> Any:
        """The collection, each chunk as a function makes it."""
        return self.given.map_blocks(f, dtype=self.given.dtype, meta=self.given._meta)

    def _read(self, start: int, stop: int) -> Any:
        return self._rows([self.collection[start:stop].compute()], start)

    def _origin(self, start: int) -> int:
        return self.edges[max(0, bisect_right(self.edges, min(start, self.n - 1)) - 1)]

    def _pieces(self, origin: int) -> Iterator[Any]:
        rows = max(1, PIECE // (self.d * self.dtype.itemsize))
        while origin < self.n:
            i = max(bisect_right(self.edges, origin), bisect_right(self.edges, origin + rows) - 1)
            yield self._rows([self.collection[origin : self.edges[i]].compute()], origin)
            origin = self.edges[i]

    def _sample(self) -> list[int]:
        return [0, self._origin(self.n - 1)]


def dask_source(x: Any, columns: Columns | None) -> Lazy:
    """The source for a Dask array or data frame."""
    import dask.array as da

    if isinstance(x, da.Array):
        picked = choose(columns, None, x.shape[1]) if x.ndim == 2 else None
        return Lazy(x if picked is None else x[:, picked])
    if getattr(x, "ndim", 0) != 2 or not hasattr(x, "to_delayed"):
        raise TypeError(
            f"X is a Dask {type(x).__name__}; pass a 2-d dask.array, or a dask.dataframe (Series.to_frame(), "
            "Bag.to_dataframe())"
        )
    return dask_frame(x, columns)


def dask_frame(x: Any, columns: Columns | None) -> Lazy:
    """A Dask data frame as an array: the lengths of its partitions are computed once."""
    import dask
    import dask.array as da
    from pandas.api import types

    names = frame_names(list(x.columns))
    picked = choose(columns, names, len(x.columns))
    if picked is not None:
        x = x[[x.columns[j] for j in picked]]
        names = names if names is None else [names[j] for j in picked]
    check_shape(1, len(x.columns))
    for label, t in x.dtypes.items():
        dates = isinstance(t, np.dtype) and t.kind in "Mm"
        if dates or (types.is_string_dtype(t) and not types.is_object_dtype(t)):
            first = x[label].dropna().head(1, npartitions=-1)
            raise not_a_number(first.iloc[0] if len(first) else None, 0, label)
    lengths = [int(k) for k in x.map_partitions(len).compute()]
    check_shape(sum(lengths), len(x.columns))
    dtype = float_type([t if isinstance(t, np.dtype) and t.kind == "f" else np.float64 for t in x.dtypes])
    starts = [0, *accumulate(lengths)]
    rows = dask.delayed(partition_rows)
    parts = [
        da.from_delayed(rows(part, dtype, start), shape=(k, len(x.columns)), dtype=dtype)
        for part, k, start in zip(x.to_delayed(), lengths, starts, strict=False)
        if k
    ]
    return Lazy(da.concatenate(parts), names)


def chunk_values(x: Any) -> Any:
    """One sparse chunk as CSR without explicit zeros."""
    return without_zeros(sp.csr_array(x))


def chunk_entries(x: Any, block_info: Any = None) -> Any:
    """One sparse chunk as CSR, where absent entries were not observed."""
    from unmix.engine.sources import as_source

    if not x.shape[0]:
        return x
    try:
        return as_source(x, absent="unobserved").whole()
    except ValueError as e:
        start = block_info[0]["array-location"][0][0]
        raise ValueError(f"in the chunk that begins with row {start}: {e}") from e


def partition_rows(frame: Any, dtype: np.dtype[Any], start: int) -> np.ndarray:
    """One partition as numbers."""
    from unmix.engine.sources import as_source

    try:
        return np.asarray(as_source(frame).whole(), dtype=dtype)
    except ValueError as e:
        raise ValueError(f"in the partition that begins with row {start}: {e}") from e
