"""`unmix report`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAY, SCALE, TABLE, Ask, asking


@click.command("report", short_help="A page that tells what a table holds.")
@asking(
    *TABLE,
    click.option("-o", "--out", type=click.Path(), help="The page to write, .html.  [default: NAME-report.html, here]"),
    SCALE,
    *RUN,
    FORCE,
    *SAY,
)
def command(ask: Ask) -> None:
    """Tell what FILE holds, as a page: its columns, components, groups, odd rows and empty cells.

    \b
    Examples:
      unmix report table.csv
      unmix report customers.xlsx --id customer -o customers.html

    The page begins with a summary in sentences, each with its evidence: pictures, tables, and the lines of Python that
    give the numbers. It is one file that needs no network. Of long tables some rows are looked at, and the page says
    so. FILE may be - for the standard input.
    """
    from pathlib import Path

    import unmix
    from unmix.cli.files import check_target, stem
    from unmix.cli.session import session
    from unmix.cli.tables import opened
    from unmix.table import Table, TableError

    with session(ask) as say:
        name = "standard input" if ask.file == "-" else Path(ask.file).name
        out = ask.out or f"{'table' if ask.file == '-' else stem(ask.file)}-report.html"
        if Path(out).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--out {out!r}: the report is a page; end its name in .html")
        check_target("--out", out, [ask.file], ask.force)
        source = opened(ask, say)
        if not isinstance(source, Table):
            raise TableError(
                f"{ask.file!r} is an array too large, or sparse, to tell its columns apart: give some of its rows as a "
                "table, or more memory by --memory"
            )
        found = unmix.report(source, title=name, random_state=ask.seed, given=_line(ask))
        path = found.save(out, replace=ask.force)
        say.show(found)
        for note in found.notes:
            say.note(note)
        say.give(**found.to_dict(), out=str(path))
        say.hint(f"page written to {path}; open it in a browser")


def _line(ask: Ask) -> str:
    """The line of Python that opens the table as the options say."""
    named = {"columns": ask.columns, "drop": ask.drop, "id": ask.id, "label": ask.label, "kinds": ask.kinds,
             "scale": None if ask.scale == "auto" else ask.scale, "header": ask.header}  # fmt: skip
    told = "".join(f", {k}={v!r}" for k, v in named.items() if v not in (None, {}))
    return f"import unmix\n\ntable = unmix.Table({ask.file!r}{told})"
