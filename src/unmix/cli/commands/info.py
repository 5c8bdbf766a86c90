"""`unmix info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unmix.cli.options import SAY, TABLE, Ask, asking

SHOWN = 60  # columns in the table; --json has all
WIDE = 80  # characters of a screen, from which on there is room for the number of different values
ROLES = {"used": "", "id": "names the rows", "label": "label", "weight": "weight", "left out": "left out"}


@click.command("info", short_help="What a table or a saved model holds.")
@asking(*TABLE, *SAY)
def command(ask: Ask) -> None:
    """Tell what FILE holds: a table, or a saved model (.unmix).

    \b
    Examples:
      unmix info table.csv
      unmix info export.xlsx --as category:Region --drop Comment
      unmix info groups.unmix

    Of each column: what it is taken for, whether it is used, and why not. Where the guess is wrong, say
    --as KIND:COLUMN here and in every other command. FILE may be - for the standard input.
    """
    from unmix.cli.session import session

    with session(ask) as say:
        if ask.file.lower().endswith(".unmix"):
            _model(ask, say)
        else:
            _table(ask, say)


def _table(ask: Ask, say: Any) -> None:
    from unmix.cli.tables import opened
    from unmix.explanation.words import plural
    from unmix.table import Table, TableError

    try:
        source = opened(ask, say)
    except TableError as e:
        if e.table is None:
            raise
        source = e.table  # none of its columns can be used: that is what there is to tell
        say.note(str(e))
    name = "standard input" if ask.file == "-" else Path(ask.file).name
    if not isinstance(source, Table):
        kind = "sparse" if source.sparse else "dense"
        say.show(f"{name}: {plural(source.n, 'row')} × {plural(source.d, 'column')} of numbers, {kind} {source.dtype}")
        say.give(file=ask.file, rows=source.n, columns=source.d, sparse=source.sparse)
        return
    used = len(source.recipe.uses)
    say.show(f"{name}: {plural(source.n, 'row')}, {plural(len(source.columns), 'column')}, of which {used} can be used")
    say.show("")
    say.show(Columns(source.columns))
    if len(source.columns) > SHOWN:
        say.show(f"… and {len(source.columns) - SHOWN} more columns: --json has all")
    say.give(file=ask.file, rows=source.n, columns=[_facts(c) for c in source.columns])
    if used:
        say.next("cluster", "--out", "groups.csv", why="each row with its group")


class Columns:
    """What a table's columns are, as wide as the screen is."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns = columns

    def __rich_console__(self, console: Any, options: Any) -> Any:
        from unmix.explanation.contents import values
        from unmix.explanation.words import percent, shortened, table

        wide, rows = options.max_width >= WIDE, []
        for c in self.columns[:SHOWN]:
            missing = percent(c.seen.missing / c.seen.rows) if c.seen.missing else ""
            distinct = f"{c.seen.distinct:,}" if c.seen.distinct is not None and c.kind != "date" else ""
            told = [text for text in (ROLES[c.role] + f": {c.why}" * bool(c.why), values(c)) if text]
            name = shortened(c.name, max(14, options.max_width // (3 if wide else 4)))
            rows.append([name, c.kind, missing, *([distinct] if wide else []), "; ".join(told)])
        heads = ["column", "holds", "missing", *(["different"] if wide else []), "values"]
        yield table(heads, rows, left=2, wrap=[len(heads) - 1])


def _facts(c: Any) -> dict[str, Any]:
    """A column for machines."""
    seen = c.seen
    numbers = c.kind in ("number", "integer", "count", "boolean") and seen.low is not None
    known = {"min": seen.low, "max": seen.high} if seen.low is not None else {}
    more = {"mean": seen.mean, "sd": seen.deviation} if numbers else {}
    levels = {"levels": {str(k): n for k, n in (seen.levels or {}).items()}} if c.kind == "category" else {}
    return {
        "name": c.name,
        "kind": c.kind,
        "role": c.role,
        "why": c.why,
        "missing": seen.missing,
        "distinct": seen.distinct,
        **known,
        **more,
        **levels,
    }


def _model(ask: Ask, say: Any) -> None:
    from unmix.cli.fits import loaded
    from unmix.cli.saved import told

    told(loaded(ask.file), ask.file, say)
