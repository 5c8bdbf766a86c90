"""Excel workbooks, and those of other programs, through fastexcel."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from unmix.table.dialect import PREAMBLE, begins, is_header
from unmix.table.errors import TableError, damaged
from unmix.table.found import Found, arrow, check, typed
from unmix.table.store import Memory


def excel(path: str, name: str, header: bool | None) -> Found:
    """The first sheet that holds a table."""
    try:
        import fastexcel
    except ImportError:
        raise TableError(
            f"{name} is an Excel workbook, which needs another package: pip install 'unmix[excel]'"
        ) from None
    notes: list[str] = []
    try:
        book = fastexcel.read_excel(path)
        for i, sheet in enumerate(book.sheet_names):
            top = rows_of(book.load_sheet(i, header_row=None, skip_rows=0, n_rows=200, dtypes="string").to_arrow())
            if top:
                others = [s for s in book.sheet_names if s != sheet]
                table, headed = of_sheet(book, i, top, header, notes)
                if others:
                    notes.append(f"the sheet {sheet!r} is read, not {', '.join(map(repr, others[:4]))}")
                check(table.num_rows, table.num_columns, name)
                found = arrow(Memory(typed(table, notes)), [path])
                found.notes, found.headed = found.notes + notes, headed
                return found
    except fastexcel.FastExcelError as e:
        raise damaged(name, "an Excel workbook", e) from e
    raise TableError(f"{name} is an Excel workbook without a filled cell: check whether it was saved")


def rows_of(batch: Any) -> list[list[str]]:
    """Rows of a sheet as text."""
    rows = [[("" if v is None else str(v)) for v in row] for row in zip(*batch.to_pydict().values(), strict=True)]
    return rows if any(any(row) for row in rows) else []


def of_sheet(book: Any, i: int, top: list[list[str]], header: bool | None, notes: list[str]) -> tuple[Any, bool]:
    """A sheet as a table, and whether it has names of its own."""
    width = len(top[0])
    filled = [j for j, row in enumerate(top) if any(row)]
    first = next((j for j in filled[:PREAMBLE] if begins(top[j], width)), filled[0])
    above = sum(j < first for j in filled)
    if above:
        notes.append(f"{above} line{'s' * (above > 1)} before the table left out")
    headed, note = (header, "") if header is not None else is_header([r for r in top[first:] if any(r)], width, ".csv")
    notes += [note] * bool(note)
    sheet = book.load_sheet(i, header_row=None, skip_rows=first + headed, schema_sample_rows=None)
    table = pa.Table.from_batches([sheet.to_arrow()])
    names = [c.strip() for c in top[first]] if headed else [""] * width
    names = (names + [""] * table.num_columns)[: table.num_columns]
    return table.rename_columns(names), bool(headed)
