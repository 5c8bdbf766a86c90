"""`unmix info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unmix.cli.options import SAY, TABLE, Ask, asking

SHOWN = 60  # columns in the table; --json has all
LEVELS = 3  # of a category that are shown
ROLES = {"used": "used", "id": "names rows", "label": "label", "weight": "weight", "left out": "left out"}


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
    from unmix.table import Table

    source = opened(ask, say)
    name = "standard input" if ask.file == "-" else Path(ask.file).name
    if not isinstance(source, Table):
        kind = "sparse" if source.sparse else "dense"
        say.show(f"{name}: {plural(source.n, 'row')} × {plural(source.d, 'column')} of numbers, {kind} {source.dtype}")
        say.give(file=ask.file, rows=source.n, columns=source.d, sparse=source.sparse)
        return
    used = len(source.recipe.uses)
    say.show(f"{name}: {plural(source.n, 'row')}, {plural(len(source.columns), 'column')}, of which {used} can be used")
    say.show("")
    say.show(_columns(source))
    if len(source.columns) > SHOWN:
        say.show(f"… and {len(source.columns) - SHOWN} more columns: --json has all")
    say.give(file=ask.file, rows=source.n, columns=[_facts(c) for c in source.columns])
    say.hint(f"next:  unmix select {ask.file}   how many groups;   unmix cluster {ask.file} --out groups.csv")


def _columns(table: Any) -> Any:
    from unmix.explanation.words import percent
    from unmix.explanation.words import table as lines

    rows = []
    for c in table.columns[:SHOWN]:
        missing = percent(c.seen.missing / c.seen.rows) if c.seen.missing else ""
        distinct = f"{c.seen.distinct:,}" if c.seen.distinct is not None and c.kind != "date" else ""
        what = ROLES[c.role] + f": {c.why}" * bool(c.why)
        rows.append([c.name, c.kind, missing, distinct, _values(c), what])
    heads = ["column", "holds", "missing", "different", "values", "becomes"]
    return lines(heads, rows, left=2, wrap=[0, 4, 5])


def _values(c: Any) -> str:
    """The range of numbers and dates with their mean, the commonest levels of what else there is."""
    from unmix.explanation.words import decimals, number, percent

    seen = c.seen
    if c.kind in ("number", "integer", "count"):
        whole = 0 if seen.whole else decimals(seen.deviation)
        low, high = number(seen.low, whole), number(seen.high, whole)
        return f"{low} to {high}, mean {number(seen.mean, decimals(seen.deviation))}"
    if seen.low is not None and c.kind == "date":
        return f"{seen.low} to {seen.high}"
    if c.kind in ("identifier", "text"):
        return f"{_short(seen.first)}, …" if seen.first is not None else ""
    some = sorted((seen.levels or {}).items(), key=lambda level: -level[1])[:LEVELS]
    more = ", …" * (len(seen.levels or {}) > LEVELS)
    return ", ".join(f"{_short(level)} {percent(n / seen.count)}" for level, n in some) + more


def _short(value: Any) -> str:
    from unmix.explanation.words import shortened

    text = str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
    return shortened(" ".join(text.split()), 24)


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
    import unmix
    from unmix.cli.saved import told

    model = unmix.load(ask.file)
    told(model, ask.file, say)
