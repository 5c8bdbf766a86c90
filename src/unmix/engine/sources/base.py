"""What every source is: n rows and d columns, any run of which can be read at any time, from any thread.

`Source` is for data where reading rows a..b costs about b − a rows. `Sequential` is for data that are cheap only when
read on from where one stopped (a Parquet row group, a Zarr chunk, an iterator): it re-cuts the pieces that the data
come in to the rows asked for, and holds one piece at a time.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

Bounds = Sequence[tuple[int, int]]
Columns = Sequence[str | int]

KNOWN_BYTES = 256 << 20  # of a file, by which it is known again
PIECE = 4 << 20  # bytes of rows held at a time by sources that read in pieces


class Source:
    """Rows of a matrix, wherever it is stored.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    dtype : numpy dtype
        Of what `read` returns: float32 where the data are float32 or float16, float64 otherwise.
    sparse : bool
        Whether `read` returns `csr_array` rather than a C-contiguous `ndarray`.
    absent : str
        What an entry that CSR rows do not hold means: "zero", or "unobserved" (an explicit zero is then a value, and
        a stored NaN the same as no entry).
    names : list of str or None
        Column names.
    files : sequence of str
        The files that hold the rows.
    in_memory : bool
        Whether the data are in memory already.
    sequential : bool
        Whether every read begins at the first row, so that only passes in order are cheap.
    recipe : Recipe or None
        How columns of a table became these numbers (`unmix.table`); None where they were numbers.
    """

    kind: str = "rows"
    n: int
    d: int
    dtype: np.dtype[Any]
    sparse: bool = False
    absent: str = "zero"
    names: list[str] | None = None
    files: Sequence[str] = ()
    in_memory: bool = False
    sequential: bool = False
    recipe: Any = None

    @property
    def nbytes(self) -> int | None:
        """Bytes of the whole matrix as `read` would return it; None where that is not known without reading it."""
        return None if self.sparse else self.n * self.d * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Any:
        """Rows start..stop, in `self.dtype`; cells without a value hold NaN. Safe to call from several threads."""
        if not 0 <= start <= stop <= self.n:
            raise IndexError(f"rows {start} to {stop} were asked for, but the data have {self.n} rows")
        return self._read(int(start), int(stop))

    def _read(self, start: int, stop: int) -> Any:
        raise NotImplementedError

    def take(self, index: Any) -> Any:
        """The rows of a sorted index (repeats allowed), reading no more than a few megabytes at a time."""
        index = self._check_index(index)
        groups = np.split(index, np.flatnonzero(np.diff(index // self._step())) + 1) if len(index) else []
        bounds = [(int(g[0]), int(g[-1]) + 1) for g in groups]
        parts = (read()[g - a] for read, g, (a, _) in zip(self.batches(bounds), groups, bounds, strict=True))
        return self._assemble(parts, len(index))

    def batches(self, bounds: Bounds) -> Iterator[Callable[[], Any]]:
        """For each (start, stop) a function that gives those rows; call it in any thread.

        The iterator itself belongs to one thread. Bounds in ascending order are read in one go; gaps are allowed.
        """
        for start, stop in bounds:
            yield partial(self.read, start, stop)

    def whole(self, budget: float | None = None) -> Any:
        """The whole matrix in memory, once it is known to fit into `budget` bytes."""
        self.check_budget(budget)
        bounds = list(pairwise([*range(0, self.n, self._step()), self.n]))
        return self._assemble((read() for read in self.batches(bounds)), self.n)

    def check_budget(self, budget: float | None) -> None:
        """Raise MemoryError where the whole matrix would take more than `budget` bytes."""
        if budget is not None and self.nbytes is not None and self.nbytes > budget:
            raise MemoryError(
                f"the data ({self.n} × {self.d}, {self.dtype}) would take {human(self.nbytes)} in memory, but the "
                f"budget is {human(budget)}; raise the budget, use fewer rows or columns (columns=[…]), store "
                "them as float32, or choose a model that reads the rows in blocks"
            )

    def reading(self, absent: str) -> Source:
        """The same rows, where an entry that they do not hold means `absent`; dense rows hold every entry."""
        if absent not in ("zero", "unobserved"):
            raise ValueError(f"absent={absent!r}: an entry that X does not hold is 'zero' or 'unobserved'")
        if not self.sparse or self.absent == absent:
            return self
        out = copy.copy(self)
        out.absent = absent
        return out

    def fingerprint(self) -> str:
        """An identity, so that no checkpoint is resumed on other data: kind, shape, dtype, names, and rows.

        All rows that are in memory; of files their bytes (`pieces_of`), and a few rows, which tell what columns were
        chosen; of whatever else would have to be read a few rows.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.kind, self.n, self.d, self.dtype.str, self.sparse, self.names)).encode())
        if self.in_memory:
            bounds = list(pairwise([*range(0, self.n, self._step()), self.n]))
        else:
            bounds = [(i, i + 1) for i in sorted(set(self._sample()))]
        for path in self.files:
            for piece in pieces_of(path):
                digest.update(piece)
        for a, b in bounds:
            rows = self.read(a, b)
            parts = (rows.indptr, rows.indices, rows.data) if self.sparse else (rows,)
            for part in parts:
                digest.update(np.ascontiguousarray(part, np.int64 if part.dtype.kind == "i" else None).tobytes())
        return digest.hexdigest()

    def _sample(self) -> list[int]:
        """Rows that are cheap to read and say something about the whole."""
        return [int(i) for i in np.linspace(0, self.n - 1, 8)]

    def _step(self) -> int:
        """Rows that make up a piece of a few megabytes."""
        return max(1, PIECE // max(1, (self.nbytes or self.n * self.d) // max(1, self.n)))

    def _check_index(self, index: Any) -> np.ndarray:
        wanted: np.ndarray = np.asarray(index, dtype=np.int64)
        if wanted.ndim != 1 or (
            len(wanted) and (wanted[0] < 0 or wanted[-1] >= self.n or np.diff(wanted).min(initial=0) < 0)
        ):
            raise ValueError(f"index must be a sorted 1-d array of rows from 0 to {self.n - 1}")
        return wanted

    def _assemble(self, parts: Iterator[Any], n: int) -> Any:
        """One matrix of n rows from its consecutive parts."""
        if self.sparse:
            blocks = list(parts)
            return stack(blocks) if blocks else sp.csr_array((0, self.d), dtype=self.dtype)
        out = np.empty((n, self.d), self.dtype)
        at = 0
        for part in parts:
            out[at : at + len(part)] = part
            at += len(part)
        return out


def pieces_of(path: str) -> Iterator[bytes]:
    """Bytes that tell a file from others: all of 256 MiB; of a larger one as many, spread evenly from head to end.

    Of a gzip file the checksum and the length of what it holds.
    """
    with open(path, "rb") as f:
        size = f.seek(0, os.SEEK_END)
        yield b"" if path.endswith(".gz") else size.to_bytes(8, "little")
        count = -(-min(size, KNOWN_BYTES) // PIECE)
        last = max(size - (8 if path.endswith(".gz") else PIECE), 0)
        for at in [last] if path.endswith(".gz") else np.linspace(0, last, count).astype(np.int64):
            f.seek(int(at))
            yield f.read(PIECE)


class Cursor:
    """A place in sequential data: reads on from row `at`, holding the piece that this row lies in."""

    def __init__(self, source: Sequential, start: int) -> None:
        self.source = source
        self.at = source._origin(start)
        self.pieces = iter(source._pieces(self.at))
        self.piece: Any = None
        self.offset = self.size = 0  # how much of the piece is used up, and how much there is

    def advance(self, start: int, stop: int) -> list[Any]:
        """The cuts that make up rows start..stop; what lies before start is skipped."""
        cuts = []
        while self.at < stop:
            if self.offset == self.size and not self._next():
                raise self.source._ended(self.at)
            skip = min(max(0, start - self.at), self.size - self.offset)
            self.at, self.offset = self.at + skip, self.offset + skip
            used = min(self.size - self.offset, stop - self.at)
            if used and self.at >= start:
                cuts.append(self.source._cut(self.piece, self.offset, self.offset + used))
                self.at, self.offset = self.at + used, self.offset + used
        if self.at == self.source.n and self.source.verify_end and (self.offset < self.size or self._next()):
            raise self.source._ended(self.at + 1)
        return cuts

    def _next(self) -> bool:
        """Go on to the next piece; False at the end."""
        self.piece = None  # let go of the last piece before the next is read
        self.piece = next(self.pieces, None)
        self.offset, self.size = 0, 0 if self.piece is None else self.piece.shape[0]
        return self.piece is not None

    def close(self) -> None:
        """Let go of files and memory."""
        self.piece = None
        if hasattr(self.pieces, "close"):
            self.pieces.close()
        self.pieces = iter(())


class Sequential(Source):
    """Data that come in pieces, each cheap only as a whole.

    A subclass says where reading can begin (`_origin`) and what comes from there on (`_pieces`). Readers that
    go on where an earlier `read` stopped continue it, so that reading row after row decodes every piece once.
    """

    idle = 4  # places kept open between calls of `read`
    verify_end = False  # whether to make sure that nothing comes after row n

    def __init__(self) -> None:
        self._cursors: list[Cursor] = []
        self._lock = threading.Lock()

    def _origin(self, start: int) -> int:
        """The last row, at or before `start`, where reading can begin."""
        return 0

    def _pieces(self, origin: int) -> Iterator[Any]:
        """The pieces from row `origin` to the end."""
        raise NotImplementedError

    def _cut(self, piece: Any, a: int, b: int) -> Any:
        return piece[a:b]

    def _rows(self, cuts: list[Any], start: int) -> Any:
        """What `read` returns, from the cuts that it is made of."""
        if not cuts:
            return self._assemble(iter(()), 0)
        x = cuts[0] if len(cuts) == 1 else stack(cuts)
        return sp.csr_array(x, dtype=self.dtype) if self.sparse else np.require(x, self.dtype, ("C", "A"))

    def _ended(self, at: int) -> Exception:
        return ValueError(
            f"the data ended after {at} rows where {self.n} were expected; did they change in the meantime?"
        )

    def _read(self, start: int, stop: int) -> Any:
        cursor = self._claim(start)
        cuts = cursor.advance(start, stop)
        rows = self._rows(cuts, start)
        with self._lock:
            if cursor.at < self.n:
                self._cursors.append(cursor)
            stale = cursor if cursor.at == self.n else self._cursors.pop(0) if len(self._cursors) > self.idle else None
        if stale is not None:
            stale.close()
        return rows

    def _claim(self, start: int) -> Cursor:
        """An open place from which `start` is soon reached, or a new one."""
        with self._lock:
            near = [c for c in self._cursors if self._leads(c, start)]
            if near:
                best = max(near, key=lambda c: c.at)
                self._cursors.remove(best)
                return best
            stale = self._cursors.pop(0) if len(self._cursors) >= self.idle else None
        if stale is not None:
            stale.close()  # before another one takes memory
        return Cursor(self, start)

    def _leads(self, cursor: Cursor, start: int) -> bool:
        """Whether to read on to `start` rather than to begin anew: what lies between is little, or has to be read."""
        return cursor.at <= start and self._origin(start) - cursor.at <= 4 * self._step()

    def batches(self, bounds: Bounds) -> Iterator[Callable[[], Any]]:
        """Rows in order; each piece is read by the thread that iterates, and made into rows by the one that calls."""
        with self._lock:
            stale, self._cursors = self._cursors, []
        for cursor in stale:
            cursor.close()  # a pass needs the memory more than single reads do
        yield from self._pass(bounds)

    def _pass(self, bounds: Bounds) -> Iterator[Callable[[], Any]]:
        cursor: Cursor | None = None
        try:
            for start, stop in bounds:
                if cursor is not None and not self._leads(cursor, start):
                    cursor.close()
                    cursor = None
                cursor = cursor or Cursor(self, start)
                yield partial(self._rows, cursor.advance(start, stop), start)
        finally:
            if cursor is not None:
                cursor.close()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_cursors", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Sequential.__init__(self)
        self.__dict__.update(state)


def stack(parts: list[Any]) -> Any:
    """Parts on top of each other, dense or CSR."""
    if sp.issparse(parts[0]):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)


def float_type(dtypes: Any) -> np.dtype[Any]:
    """float32 where every dtype is float16 or float32, float64 otherwise."""
    kept = (np.dtype(np.float16), np.dtype(np.float32))
    dtypes = [np.dtype(t).newbyteorder("=") for t in dtypes]
    return np.dtype(np.float32 if dtypes and all(t in kept for t in dtypes) else np.float64)


def check_shape(n: int, d: int, what: str = "") -> None:
    """At least one row and one column, in scikit-learn's words; `what` names the file."""
    where = f" in {what}" if what else ""
    if n < 1:
        raise ValueError(f"Found array with 0 sample(s) (shape=({n}, {d})){where} while a minimum of 1 is required.")
    if d < 1:
        raise ValueError(f"Found array with 0 feature(s) (shape=({n}, {d})){where} while a minimum of 1 is required.")


def choose(columns: Columns | str | int | None, names: list[str] | None, d: int) -> list[int] | None:
    """Positions of the columns asked for by name or position; None for all of them."""
    if columns is None:
        return None
    if isinstance(columns, (str, int, np.integer)):
        columns = [columns]
    picked = []
    for c in columns:
        if isinstance(c, (int, np.integer)) and not isinstance(c, (bool, np.bool_)):
            if not -d <= c < d:
                raise ValueError(f"columns={c}: the data have {d} columns, so positions run from 0 to {d - 1}")
            picked.append(int(c) % d)
            continue
        if names is None:
            raise ValueError(f"columns={c!r}: the data have no column names; give positions from 0 to {d - 1}")
        if names.count(str(c)) != 1:
            near = difflib.get_close_matches(str(c), names, n=3) or names[:8]
            state = "is there more than once, so give its position" if c in names else "is not there"
            raise ValueError(f"columns={c!r}: a column of that name {state}; similar names are {', '.join(near)}")
        picked.append(names.index(str(c)))
    if not picked or len(set(picked)) < len(picked):
        raise ValueError(f"columns={list(columns)!r}: name at least one column, and no column twice")
    return picked


def not_a_number(value: Any, row: int, column: str | int, where: str = "") -> ValueError:
    """The error for text (or a date, or a list) where a number is needed."""
    name = f"column {column!r}" if isinstance(column, str) else f"column {column}"
    return ValueError(
        f"{name}{where} holds {value!r} in row {row} (counted from 0), which is not a number. unmix.Table(X) "
        "takes tables with text, categories and dates, unmix.as_source(X, columns=[…]) the columns that are numbers; a "
        "cell without a value must be empty, null or NaN"
    )


def human(nbytes: float) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "bytes" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"
