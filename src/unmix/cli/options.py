"""The options that commands share, and what was asked by them."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any

import click

MEMORY = 4.0  # gigabytes to count on, where the user does not say
KINDS = ("number", "integer", "count", "boolean", "category", "date", "identifier", "text")


@dataclass
class Ask:
    """What the options that commands share say."""

    file: str = ""
    columns: list[str] | None = None
    drop: list[str] | None = None
    id: list[str] | None = None
    label: list[str] | None = None
    weights: str | None = None
    kinds: dict[str, str] = field(default_factory=dict)
    scale: str = "auto"
    header: bool | None = None
    seed: int = 0
    threads: int | None = None
    memory: float = MEMORY
    out: str | None = None
    save: str | None = None
    force: bool = False
    json: bool = False
    quiet: bool = False


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names of columns, separated by commas; one with a comma in it stands in quotes."""

    name = "NAMES"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """The names."""
        if isinstance(value, list):
            return value
        return [name.strip() for name in next(csv.reader([value], skipinitialspace=True), []) if name.strip()]


class Kinds(click.ParamType):  # type: ignore[type-arg]
    """KIND:COLUMN[,COLUMN]."""

    name = "KIND:NAMES"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, str]:
        """The kind of each column."""
        if isinstance(value, dict):
            return value
        kind, colon, names = value.partition(":")
        kind = kind.strip().lower()
        if not colon or not names.strip():
            self.fail(f"{value!r}: say what columns are, as in --as category:Region,Postcode", param, ctx)
        if kind not in KINDS:
            near = difflib.get_close_matches(kind, KINDS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"columns are one of {', '.join(KINDS)}"
            self.fail(f"{kind!r} is no kind of column: {hint}", param, ctx)
        return dict.fromkeys(Names().convert(names, param, ctx), kind)


TABLE = (
    click.argument("file", type=click.Path(allow_dash=True)),
    click.option("--columns", type=Names(), multiple=True, help="Use these columns only, by name: a,b,c."),
    click.option("--drop", type=Names(), multiple=True, help="Use all but these columns."),
    click.option("--id", "id", type=Names(), multiple=True, help="Columns that name the rows."),
    click.option("--label", type=Names(), multiple=True, help="Columns that say what rows are known to be: not used."),
    click.option("--as", "kinds", type=Kinds(), multiple=True, help=f"What columns are: {', '.join(KINDS)}."),
    click.option("--header/--no-header", default=None, help="Whether the first line of the file names the columns."),
)
WEIGHTS = click.option("--weights", metavar="NAME", help="Column that says how many times each row counts.")
SCALE = click.option(
    "--scale",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="auto: every column counts alike, whatever its unit; none: numbers as they are.",
)
RUN = (
    click.option(
        "--seed", type=click.IntRange(0), metavar="N", default=0, show_default=True, help="Same seed, same result."
    ),
    click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads to use.  [default: all cores]"),
    click.option(
        "--memory",
        type=click.FloatRange(0, min_open=True),
        default=MEMORY,
        show_default=True,
        metavar="GB",
        help="Gigabytes to count on; what takes more goes through temporary files.",
    ),
)
SAVE = click.option("--save", type=click.Path(), help="Keep the model in this file (.unmix), for unmix apply.")
FORCE = click.option("--force", is_flag=True, help="Overwrite files that exist (never the table that is read).")
SAY = (
    click.option("--json", is_flag=True, help="Print one JSON document instead of text."),
    click.option("--quiet", is_flag=True, help="Print results only: no notes, no progress."),
)


def out(what: str) -> Any:
    """The option --out, and what is written there."""
    formats = ".csv, .tsv, .parquet, .feather, .jsonl or .xlsx; - for the standard output."
    return click.option("--out", type=click.Path(allow_dash=True), help=f"Write {what}: {formats}")


def asking(*options: Any) -> Callable[[Any], Any]:
    """Give a command these options; those that are fields of `Ask` reach it as one, named ask."""
    known = {f.name for f in fields(Ask)}

    def decorate(command: Any) -> Any:
        @wraps(command)
        def run(**given: Any) -> Any:
            own = {name: value for name, value in given.items() if name not in known}
            return command(Ask(**{name: _one(name, given[name]) for name in known & set(given)}), **own)

        for option in reversed(options):
            run = option(run)
        return run

    return decorate


def _one(name: str, value: Any) -> Any:
    """Options that may be repeated as one list, or one dict; None where they were not given."""
    if name == "kinds":
        return {column: kind for some in value for column, kind in some.items()}
    if name in ("columns", "drop", "id", "label"):
        return [column for some in value for column in some] or None
    return value
