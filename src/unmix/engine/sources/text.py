"""Sources over delimited text: CSV and TSV, plain (random access) or gzipped (in order).

A first pass over the bytes, without parsing, finds where rows end. So rows a..b are exactly a range of bytes, and
PyArrow parses no more than those.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unmix.engine.sources.arrow import rows
from unmix.engine.sources.base import Columns, Sequential, Source, check_shape, choose, human, not_a_number

CHUNK = 1 << 20  # bytes between two entries of the index
MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "<NA>", "None")
ROW_BYTES_LIMIT = 1 << 26
NEWLINE, RETURN, QUOTE = 10, 13, 34


class Dialect(NamedTuple):
    """How to read the bytes of a file: its separator, whether it has quotes, its columns and which of them to read."""

    path: str
    delimiter: str
    quoted: bool
    width: int  # columns in the file
    picked: list[int]  # the ones to read
    labels: list[str | int]  # what to call these in errors
    truth: frozenset[int] = frozenset()  # those of them that hold true and false

    def table(self, data: Any, types: dict[int, Any] | None = None) -> Any:
        """Whole rows of text as an Arrow table of the picked columns; types are guessed where `types` is None."""
        import pyarrow as pa
        import pyarrow.csv as pc

        names = [str(j) for j in range(self.width)]
        kinds = None if types is None else {str(j): t for j, t in types.items()}
        return pc.read_csv(
            pa.BufferReader(data),
            read_options=pc.ReadOptions(column_names=names, use_threads=False, block_size=max(1, len(data)) + 1),
            parse_options=pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=self.quoted),
            convert_options=pc.ConvertOptions(
                include_columns=[str(j) for j in self.picked], column_types=kinds, null_values=MISSING
            ),
        )

    def rows(self, data: Any, start: int, last: bool, size: int | None = None) -> np.ndarray:
        """Whole rows of text as numbers: `start` is the global index of the first, `size` how many there must be.

        `last` says that the file ends here.
        """
        import pyarrow as pa

        d = len(self.picked)
        if not len(data):
            return np.empty((0, d))
        types = {j: pa.bool_() if j in self.truth else pa.float64() for j in self.picked}
        try:
            table = self.table(data, types)
        except pa.ArrowInvalid as e:
            raise self.explain(e, data, start, last) from None
        if size is not None and table.num_rows != size:
            raise ValueError(f"{self.path}: a quote is not closed near row {start} (rows {start} to {start + size})")
        return rows(table.to_batches(), d, np.dtype(np.float64))

    def explain(self, e: Exception, data: Any, start: int, last: bool) -> ValueError:
        """PyArrow's complaint, with the file, the row counted from its beginning, and what to do."""
        open_end = last and data[-1] != NEWLINE
        size = len(line_ends(data, self.quoted, True))
        bad = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?.*?invalid value '(.*)'", str(e), re.DOTALL)
        if bad:
            j, i, value = int(bad[1]), int(bad[2] or 1), bad[3]
            if open_end and i == size and j == self.width - 1:
                return truncated(self.path, f"it ends in the middle of a row, with {value!r}")
            return not_a_number(value, start + i - 1, self.labels[self.picked.index(j)], f" of {self.path}")
        ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", str(e))
        if ragged:
            i, got = int(ragged[1] or 1), int(ragged[3])
            if open_end and i == size and got < self.width:
                return truncated(self.path, f"its last row, {start + i - 1}, has {got} of {self.width} columns")
            return ValueError(
                f"{self.path}: row {start + i - 1} (counted from 0, without the header) has {got} columns where "
                f"{self.width} are expected; every row needs the same number of {self.delimiter!r} (and a value that "
                "holds one must be in quotes)"
            )
        return ValueError(f"{self.path} cannot be parsed near row {start}: {e}")


class Csv(Source):
    """A plain CSV file: an index of where rows lie in it, made by one pass over its bytes."""

    kind = "csv"

    def __init__(self, path: Path, columns: Columns | None = None) -> None:
        self.path = str(path)
        self.files = [self.path]
        with open(self.path, "rb") as f:
            dialect, self.names, begin = sniff(f, self.path, columns)
            self.offsets, self.counts, quoted = index(f, begin, dialect.quoted, self.path)
        self.dialect = dialect._replace(quoted=quoted)
        self.n, self.d, self.dtype = self.counts[-1], len(dialect.picked), np.dtype(np.float64)
        check_shape(self.n, self.d, self.path)
        first = min(self.n, self._step() // 8 + 1)
        self.dialect = self.dialect._replace(truth=guess(self.dialect, self._text(0, first), first == self.n))
        self.read(self.n - 1, self.n)  # a file that ends in the middle shows here

    def _text(self, start: int, stop: int) -> Any:
        """The bytes of rows start..stop."""
        i = bisect_right(self.counts, start) - 1
        j = bisect_right(self.counts, max(start, stop - 1))
        with open(self.path, "rb") as f:
            f.seek(self.offsets[i])
            data = np.frombuffer(f.read(self.offsets[j] - self.offsets[i]), np.uint8)
        if len(data) < self.offsets[j] - self.offsets[i]:
            raise truncated(self.path, "it has shrunk since it was opened")
        ends = line_ends(data, self.dialect.quoted, True)
        a, b = start - self.counts[i], stop - self.counts[i]
        if len(ends) < b:
            raise ValueError(f"{self.path} has changed since it was opened, or a quote in it is not closed")
        return data[ends[a - 1] if a else 0 : ends[b - 1]]

    def _read(self, start: int, stop: int) -> Any:
        text = self._text(start, stop) if start < stop else b""
        return self.dialect.rows(text, start, stop == self.n, stop - start)


class CsvGz(Sequential):
    """A gzipped CSV file: unpacked and read from its beginning in every pass."""

    kind = "csv.gz"
    sequential = True
    idle = 1

    def __init__(self, path: Path, columns: Columns | None = None) -> None:
        super().__init__()
        self.path = str(path)
        self.files = [self.path]
        with gzip.open(self.path, "rb") as f:
            try:
                dialect, self.names, self.begin = sniff(f, self.path, columns)
                _, counts, quoted = index(f, self.begin, dialect.quoted, self.path)
            except (EOFError, zlib.error, gzip.BadGzipFile) as e:
                raise truncated(self.path, str(e)) from e
        self.dialect = dialect._replace(quoted=quoted)
        self.n, self.d, self.dtype = counts[-1], len(dialect.picked), np.dtype(np.float64)
        check_shape(self.n, self.d, self.path)
        first = next(self._texts())
        last = bool(first[-1] != NEWLINE)
        self.dialect = self.dialect._replace(truth=guess(self.dialect, first, last))

    def _texts(self) -> Iterator[Any]:
        """Whole rows of text, a few megabytes at a time."""
        with gzip.open(self.path, "rb") as f:
            f.seek(self.begin)
            rest = b""
            while chunk := f.read(CHUNK):
                data = np.frombuffer(rest + chunk, np.uint8)
                ends = line_ends(data, self.dialect.quoted, False)
                cut = int(ends[-1]) if len(ends) else 0
                if cut:
                    yield data[:cut]
                rest = data[cut:].tobytes()
            if rest.strip():
                yield np.frombuffer(rest, np.uint8)

    def _pieces(self, origin: int) -> Iterator[Any]:
        at = 0
        for text in self._texts():
            x = self.dialect.rows(text, at, bool(text[-1] != NEWLINE))
            at += len(x)
            yield x

    def _sample(self) -> list[int]:
        return [0, min(self.n, 64) - 1]


def line_ends(data: np.ndarray, quoted: bool, last: bool) -> np.ndarray:
    """Where each row that is not blank ends, one past its newline; newlines inside quotes end nothing.

    The data begin at the start of a row. `last` also counts a row that they end in without a newline.
    """
    ends = np.flatnonzero(data == NEWLINE)
    if quoted:
        ends = ends[np.searchsorted(np.flatnonzero(data == QUOTE), ends) % 2 == 0]
    ends += 1
    if last and len(data) and (not len(ends) or ends[-1] < len(data)):
        ends = np.append(ends, len(data))
    size = np.diff(ends, prepend=0)
    if len(ends) and size.min() <= 2:  # perhaps blank: nothing before the newline but a carriage return
        final = data[ends - 1] == NEWLINE
        bare = (size == 1) & (final | (data[ends - 1] == RETURN))
        bare |= (size == 2) & final & (data[np.maximum(ends - 2, 0)] == RETURN)
        ends = ends[~bare]
    return ends


def index(f: Any, begin: int, quoted: bool, path: str) -> tuple[list[int], list[int], bool]:
    """Byte offsets of row starts about every `CHUNK` bytes, the number of rows before each, and whether quotes occur.

    The last entry of both is the end of the file.
    """
    f.seek(begin)
    offsets, counts = [begin], [0]
    rest, at = b"", begin  # the row under way, and where it begins
    while chunk := f.read(CHUNK):
        if not quoted and b'"' in chunk:
            return index(f, begin, True, path)
        data = np.frombuffer(rest + chunk, np.uint8)
        ends = line_ends(data, quoted, False)
        if len(ends):
            at += int(ends[-1])
            offsets.append(at)
            counts.append(counts[-1] + len(ends))
            data = data[ends[-1] :]
        rest = data.tobytes()
        if len(rest) > ROW_BYTES_LIMIT:
            raise ValueError(
                f"{path}: row {counts[-1]} is longer than {human(ROW_BYTES_LIMIT)}; an unclosed quote makes everything "
                "after it one value"
            )
    if rest:
        offsets.append(at + len(rest))
        counts.append(counts[-1] + len(line_ends(np.frombuffer(rest, np.uint8), quoted, True)))
    return offsets, counts, quoted


def sniff(f: Any, path: str, columns: Columns | None) -> tuple[Dialect, list[str] | None, int]:
    """Separator, quotes, columns and header from the beginning of the file, and where the rows begin.

    A first line in which every field is a number or missing is a row; otherwise it is the header.
    """
    head = f.read(CHUNK)
    data = np.frombuffer(head, np.uint8)
    skip = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    quoted = b'"' in head
    ends = line_ends(data[skip:], quoted, True)
    if not len(ends):
        check_shape(0, 0, path)
    line = head[skip : skip + int(ends[0])]
    try:
        text = line.decode("utf-8").strip("\r\n")
    except UnicodeDecodeError:
        text = line.decode("latin-1").strip("\r\n")
    bare = re.sub(r'"[^"]*"', "", text)
    tabbed = re.search(r"\.tsv(\.gz)?$", path.lower()) is not None
    delimiter = "\t" if tabbed else max(",;\t|", key=bare.count)
    fields = next(csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=delimiter), [""])
    headed = not all(is_numeric(v) for v in fields)
    names = [v.strip() for v in fields] if headed else None
    picked = choose(columns, names, len(fields))
    picked = list(range(len(fields))) if picked is None else picked
    names = names if names is None else [names[j] for j in picked]
    labels: list[str | int] = list(names) if names is not None else list(picked)
    return Dialect(path, delimiter, quoted, len(fields), picked, labels), names, skip + int(ends[0]) * headed


def guess(dialect: Dialect, data: Any, last: bool) -> frozenset[int]:
    """Which of the picked columns hold true and false, from the first rows; text in any of them is an error."""
    import pyarrow as pa

    try:
        table = dialect.table(data)
    except pa.ArrowInvalid as e:
        raise dialect.explain(e, data, 0, last) from None
    truth = frozenset(j for j, t in zip(dialect.picked, table.schema.types, strict=True) if pa.types.is_boolean(t))
    dialect._replace(truth=truth).rows(data, 0, last)
    return truth


def is_numeric(v: str) -> bool:
    """Whether a field of the first line is a number, or stands for a missing one."""
    try:
        float(v)
    except ValueError:
        return v.strip() in MISSING
    return True


def truncated(path: str, why: str) -> ValueError:
    """The error for a file that ends in the middle."""
    return ValueError(f"{path} looks truncated: {why}; fetch or write it again")
