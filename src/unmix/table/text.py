"""Delimited text into typed columns, in one pass that nothing in a cell can stop.

PyArrow cuts the file into strings; `values` makes numbers, dates or truth values of them as a sample of the file
(beginning, middle, end) suggests. Where the rest of the file disagrees, the columns in question are planned anew from
what did not fit and the file is read once more.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from unmix.engine.config import get_config
from unmix.table.dialect import NONE, Dialect, sniff
from unmix.table.errors import TableError
from unmix.table.outcome import again, fits, told
from unmix.table.store import Store
from unmix.table.streams import Text
from unmix.table.values import MISSING, Plan, Tally, convert, plan_column

BLOCK, LONGEST = 4 << 20, 256 << 20  # bytes that are parsed at a time; a row that is longer has a quote that is open
RAGGED_SHARE, RAGGED_MOST = 0.01, 1000  # rows of another width that are left out rather than refused
PASSES = 3
Tell = Callable[[str], None]


@dataclass
class Ragged:
    """Rows that have more or fewer fields than the others."""

    first: list[tuple[int, int, str]] = field(default_factory=list)  # line, fields, text
    count: int = 0

    def __call__(self, row: Any) -> str:
        """What PyArrow asks about such a row."""
        self.count += 1
        if len(self.first) < 10:
            self.first.append((row.number or 0, row.actual_columns, row.text))
        return "skip" if self.count <= RAGGED_MOST else "error"


def parse(stream: Any, dialect: Dialect, ragged: Callable[[Any], str], block: int = BLOCK) -> Any:
    """Batches of strings."""
    names = [str(j) for j in range(dialect.width)]
    return csv.open_csv(
        stream,
        csv.ReadOptions(column_names=names, block_size=block, use_threads=False),
        csv.ParseOptions(
            delimiter="\t" if dialect.squeeze else dialect.separator,
            quote_char=dialect.quote or False,
            escape_char=dialect.escape or False,
            newlines_in_values=True,
            invalid_row_handler=ragged,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=MISSING,
            strings_can_be_null=True,
            check_utf8=False,
        ),
    )


def sample(text: Text, dialect: Dialect, ragged: Ragged) -> list[Any]:
    """Columns of strings from some places of the file."""
    batches = []
    for piece in text.looks():
        if piece.strip():
            try:
                reader = parse(pa.BufferReader(piece), dialect, ragged, max(BLOCK, 2 * len(piece)))
                batches += list(reader)
            except pa.ArrowInvalid:
                pass  # the pass over the whole file says what is wrong
    empty = [pa.array([], pa.string())] * dialect.width
    return [pa.concat_arrays(c) for c in zip(*(b.columns for b in batches), strict=True)] if batches else empty


def plans_of(columns: list[Any], separator: str) -> list[Plan]:
    """How to read each column. The decimal mark of the file settles it where a column fits both."""
    marks, commas = [], False
    for cells in columns:
        if pc.any(pc.match_substring_regex(cells, r"\d,\d")).as_py():
            commas = True
            fits = plan_column(cells, ".", False), plan_column(cells, ",", False)
            marks += [fits[0].point] * (fits[0].kind == "number" and fits[0].point == fits[1].point)
        elif pc.any(pc.match_substring_regex(cells, r"^[+-]?(?:0?|\d*)\.(?:\d|\d\d|\d{4,})$")).as_py():
            marks.append(".")  # no thousands
    comma, point = marks.count(","), marks.count(".")
    mark = "," if comma > point or (comma == point and commas and separator == ";") else "."
    return [plan_column(cells, mark, mark == ",") for cells in columns]


def converted(batch: Any, plans: list[Plan], schema: Any) -> tuple[Any, list[Tally]]:
    """A batch of strings as a batch of values, and what it held."""
    tallies = [Tally() for _ in plans]
    columns = [convert(*args) for args in zip(batch.columns, plans, tallies, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema), tallies


def merge(into: list[Tally], new: list[Tally]) -> None:
    """Add what one batch held."""
    for a, b in zip(into, new, strict=True):
        a.values += b.values
        a.whole &= b.whole
        a.dressed |= b.dressed
        if b.strange or b.odd:
            a.words += b.words
            a.odd += b.odd
            a.strange += b.strange


@dataclass
class Columns:
    """What was read of a text file."""

    kept: Any  # Memory or IpcFile
    folder: str | None
    types: list[Any]
    names: tuple[str, ...] | None
    notes: list[str]
    plans: list[Plan]


class TextTable:
    """One text file on its way to columns."""

    def __init__(self, text: Text, header: bool | None, limit: float, tell: Tell) -> None:
        self.text, self.header, self.limit, self.tell = text, header, limit, tell
        self.last: Any = None

    def read(self) -> Columns:
        """Tell its layout, and read it."""
        head = self.text.head()
        if not head.strip():
            raise TableError(f"{self.text.name} is empty: there is nothing to read")
        self.dialect = sniff(head, len(head) < 1 << 20, self.text.name, self.header)
        return self.rows()

    def rows(self, fixed: dict[int, Plan] | None = None) -> Columns:
        """Read the rows in the layout that was found; columns in `fixed` as it says."""
        text, dialect = self.text, self.dialect
        text = replace(text, squeeze=dialect.squeeze)
        if dialect.squeeze:
            lines = text.head().splitlines(keepends=True)[: dialect.lines]
            dialect = replace(dialect, skip=sum(map(len, lines)))
        self.text, self.dialect = replace(text, skip=dialect.skip), dialect
        self.ragged = Ragged()
        columns = sample(self.text, dialect, self.ragged)
        if not any(len(c) for c in columns):
            self._nothing()
        plans = plans_of(columns, dialect.separator)
        for j, plan in (fixed or {}).items():
            plans[j] = plan
        for attempt in range(PASSES):
            store, tallies = self._pass(plans)
            wrong = [j for j, (p, t) in enumerate(zip(plans, tallies, strict=True)) if not fits(p, t)]
            if not wrong:
                return self._done(store, plans, tallies)
            store.drop()
            plans = list(plans)
            for j in wrong:
                plans[j] = again(plans[j], tallies[j], attempt == PASSES - 2)
        raise AssertionError("text fits every column")

    def _nothing(self) -> None:
        """The error for a file without a row that can be read."""
        name, d = self.text.name, self.dialect
        if self.ragged.count:
            raise self._too_ragged(self.ragged.count)
        if d.names and any("\n" in n for n in d.names):
            raise TableError(f"{name}: a quotation mark in its first line is not closed: repair that line")
        if d.names is None:
            raise TableError(f"{name} holds no row that can be read: give a table with a row for each case")
        shown = ", ".join(d.names[:5]) + (" …" if len(d.names) > 5 else "")
        raise TableError(f"{name} holds only a header ({shown}) and no rows: check whether its export was complete")

    def _pass(self, plans: list[Plan], block: int = BLOCK) -> tuple[Store, list[Tally]]:
        """All rows once, as planned."""
        self.ragged, self.last = Ragged(), None
        store, tallies = Store(self.limit), [Tally() for _ in plans]
        schema = pa.schema([(str(j), p.type) for j, p in enumerate(plans)])
        block = min(LONGEST, max(block, 1 << 13) * max(1, len(plans) // 1000))
        try:
            with self.text.open() as stream:
                for batch, seen in self._converted(stream, plans, schema, block):
                    merge(tallies, seen)
                    store.add(batch)
                    self.tell(f"{store.n:,} rows{self._share(stream)}")
        except pa.ArrowInvalid as e:
            store.drop()
            if "straddling" in str(e) and block < LONGEST:
                return self._pass(plans, 8 * block)
            raise self._explain(e, store.n) from e
        except BaseException:
            store.drop()
            raise
        if self.ragged.count > max(RAGGED_SHARE * (store.n + self.ragged.count), 0):
            store.drop()
            raise self._too_ragged(store.n + self.ragged.count)
        return store, tallies

    def _converted(self, stream: Any, plans: list[Plan], schema: Any, block: int) -> Iterator[tuple[Any, list[Tally]]]:
        """Batches in order, converted by the other threads while this one parses."""
        jobs = get_config().jobs
        waiting: deque[Any] = deque()
        with ThreadPoolExecutor(jobs) as pool:
            for batch in parse(stream, self.dialect, self.ragged, block):
                if batch.num_rows:
                    waiting.append(pool.submit(converted, batch, plans, schema))
                    self.last = batch.slice(batch.num_rows - 1)
                if len(waiting) > jobs:
                    yield waiting.popleft().result()
            yield from (w.result() for w in waiting)

    def _share(self, stream: Any) -> str:
        """How much of the file was read, where its length tells."""
        if not self.text.plain or stream.closed:
            return ""
        return f", {100 * stream.f.tell() / max(1, os.path.getsize(self.text.path)):.0f} %"

    def _line(self, number: int) -> int:
        """The line of the file that a row is in, counted from 1, where no field holds a line break."""
        return number + self.dialect.lines

    def _explain(self, e: Exception, rows: int) -> Exception:
        """PyArrow's complaint as a sentence."""
        if self.ragged.count > RAGGED_MOST:
            return self._too_ragged(None)
        if "straddling" in str(e) or "sync" in str(e) or "truncated" in str(e).lower():
            return TableError(
                f"{self.text.name}: a quotation mark near line {self._line(rows)} is not closed, so the rest of the "
                "file would be one value: repair that line"
            )
        return TableError(f"{self.text.name} cannot be read after line {self._line(rows)} ({str(e)[:150]})")

    def _too_ragged(self, total: int | None) -> TableError:
        line, got, shown = self.ragged.first[0]
        count = f"{self.ragged.count} of {total} rows are" if total else f"more than {RAGGED_MOST} rows are"
        opened = " (a quotation mark in it may not be closed)" if "\n" in shown.strip() else ""
        sep = {"\t": "tabs", " ": "blanks", NONE: "line ends"}.get(self.dialect.separator, repr(self.dialect.separator))
        return TableError(
            f"{self.text.name}, line {self._line(line)}{opened}: {got} fields where {self.dialect.width} are expected, "
            f"separated by {sep}; {count} like that: repair these rows, or put quotation marks around values that hold "
            "the separator"
        )

    def _done(self, store: Store, plans: list[Plan], tallies: list[Tally]) -> Columns:
        """The columns, their final types, and what there is to say about them."""
        self._check_end()
        schema = pa.schema([(str(j), p.type) for j, p in enumerate(plans)])
        types = []
        for p, t in zip(plans, tallies, strict=True):
            whole = p.kind == "number" and p.whole and t.whole and not t.dressed
            types.append(pa.int64() if whole else p.type)
        kept = store.done(schema)
        names = self.dialect.names
        called = [names[j] if names and names[j] else f"column {j + 1}" for j in range(self.dialect.width)]
        notes = [*self._layout(plans), *told(called, plans, tallies)]
        return Columns(kept, store.folder, types, names, notes, plans)

    def _check_end(self) -> None:
        """A quote that nothing closes makes one value of the rest of the file."""
        cell = self.last.column(self.last.num_columns - 1)[0].as_py() if self.last is not None else None
        if cell is None or "\n" not in cell.strip("\n"):
            return
        tail = self.text.tail().rstrip()
        if not tail.endswith(str(self.dialect.quote).encode()):
            raise self._open_quote(cell.count("\n"))

    def _open_quote(self, lines: int) -> TableError:
        return TableError(
            f"{self.text.name}: a quotation mark {lines} lines before the end is not closed, so what follows it would "
            "be one value: repair that line"
        )

    def _layout(self, plans: list[Plan]) -> list[str]:
        """What there is to say about the file as a whole."""
        d, notes = self.dialect, []
        names = {"\t": "tabs", " ": "blanks", NONE: ""}
        sep = names.get(d.separator, repr(d.separator))
        commas = any(p.kind == "number" and p.point == "," and not p.whole for p in plans)
        if d.separator not in (",", NONE) or commas:
            notes.append(" ".join([f"separated by {sep}"] * bool(sep) + ["with decimal commas"] * commas))
        spoken = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}.get(self.text.encoding, self.text.encoding.upper())
        if self.text.encoding != "utf-8":
            notes.append(f"read as {spoken} (not UTF-8)")
        notes += d.notes
        if self.ragged.count:
            lines = ", ".join(str(self._line(line)) for line, _, _ in self.ragged.first)
            more = " …" if self.ragged.count > len(self.ragged.first) else ""
            line, got, _ = self.ragged.first[0]
            notes.append(
                f"{self.ragged.count} row{'s' * (self.ragged.count > 1)} left out, which have more or fewer than "
                f"{d.width} fields (line {lines}{more}; line {self._line(line)} has {got})"
            )
        return notes
