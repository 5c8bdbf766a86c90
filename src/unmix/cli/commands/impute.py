"""`unmix impute`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAVE, SAY, TABLE, Ask, asking, out


@click.command("impute", short_help="Fill empty cells, and say how sure that is.")
@asking(
    *TABLE,
    click.option("--std", type=click.Path(), help="Write a table of standard deviations, 0 where a cell was there."),
    click.option(
        "--draws",
        type=click.IntRange(1),
        metavar="N",
        help="Write N fillings drawn at random, too: NAME-1, NAME-2, … beside --out.",
    ),
    *RUN,
    out("the table with its empty cells filled"),
    SAVE,
    FORCE,
    *SAY,
)
def command(ask: Ask, std: str | None, draws: int | None) -> None:
    """Fill the empty cells of FILE by the models that fill held-out cells best; say by which, and how well.

    \b
    Examples:
      unmix impute table.csv --out filled.csv
      unmix impute table.csv --out filled.csv --std sure.csv
      unmix impute survey.xlsx --out filled.parquet --draws 5

    Numbers get what is to be expected of them given the other cells of their row, whole numbers whole ones, categories
    their likeliest level. Dates, identifiers and free text stay as they are, and so does every cell that was there.
    Averages and regressions of filled cells look surer than they are: do them on each of several --draws, and combine.
    """
    from unmix.cli.files import check_targets
    from unmix.cli.filling import keep_filled, named, show
    from unmix.cli.session import session
    from unmix.cli.tables import opened

    with session(ask) as say:
        if draws is not None and ask.out in (None, "-"):
            raise click.UsageError("--draws writes files beside --out: say --out filled.csv")
        others = [("--std", std)] if std is not None else []
        others += [("--draws", named(ask.out, i + 1)) for i in range(draws or 0) if ask.out is not None]
        check_targets(ask, [ask.file], tables=others)
        source = opened(ask, say)
        imputer = show(source, ask.seed, say)
        keep_filled(imputer, source, std, draws, say)
        if ask.out is None:
            say.next("impute", "--out", "filled.csv", why="the table with its empty cells filled")
