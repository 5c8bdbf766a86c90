"""What a source holds: where its columns are kept and what there is to say about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from unmix.table.errors import TableError
from unmix.table.outcome import fits, told
from unmix.table.plain import Field, fields_of
from unmix.table.store import Memory, Store
from unmix.table.values import Plan, Tally, convert, plan_column

Tell = Callable[[str], None]


@dataclass
class Found:
    """What a source holds: where its columns are kept and what there is to say."""

    kept: Any
    fields: list[Field]
    headed: bool = True
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # to be removed with the table
    original: str | None = None  # what the source calls its first column

    @property
    def in_memory(self) -> bool:
        """Whether the columns are in memory."""
        return isinstance(self.kept, Memory)


def arrow(kept: Any, files: list[str]) -> Found:
    """Arrow columns, wherever they are kept."""
    notes: list[str] = []
    fields = fields_of(kept.schema, notes)
    return Found(kept, fields, notes=notes, files=files, original=kept.schema.names[0] if len(kept.schema) else None)


def check(n: int, d: int, name: str) -> None:
    """At least one row and one column."""
    if not d:
        raise TableError(f"{name} holds no columns: give a table with at least one")
    if not n:
        raise TableError(f"{name} holds columns but no rows: check whether its export was complete")


def stream(batches: Iterable[Any], schema: Any, limit: float, tell: Tell, name: str) -> Found:
    """Record batches as they come: kept in memory while they fit."""
    store = Store(limit)
    try:
        for batch in batches:
            store.add(batch)
            tell(f"{store.n:,} rows")
        check(store.n, len(schema), name)
        found = arrow(store.done(schema), [])
    except BaseException:
        store.drop()
        raise
    found.folders += [store.folder] if store.folder else []
    return found


def typed(table: Any, notes: list[str]) -> Any:
    """A table whose columns of strings are made numbers, dates or truth values where that is what they hold."""
    names: list[str] = []
    plans: list[Plan] = []
    tallies: list[Tally] = []
    for j, f in enumerate(table.schema):
        if pa.types.is_string(f.type) or pa.types.is_large_string(f.type):
            cells = table.column(j).cast(pa.string()).combine_chunks()
            cells = pa.concat_arrays(cells.chunks) if isinstance(cells, pa.ChunkedArray) else cells
            plan, tally = plan_column(cells, ".", False), Tally()
            values = convert(cells, plan, tally)
            if not fits(plan, tally):
                plan, tally = Plan("text"), Tally()
                values = convert(cells, plan, tally)
            whole = plan.kind == "number" and plan.whole and tally.whole and not tally.dressed
            table = table.set_column(j, f.name, values.cast(pa.int64()) if whole else values)
            names.append(f.name)
            plans.append(plan)
            tallies.append(tally)
    notes += told(names, plans, tallies)
    return table
