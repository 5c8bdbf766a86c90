"""`unmix outliers`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAVE, SAY, SCALE, TABLE, Ask, asking, out

SHOWN = 10  # rows


@click.command("outliers", short_help="Find rows that do not belong.")
@asking(
    *TABLE,
    click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.05,
        show_default=True,
        help="Share of false alarms to put up with among the rows called odd.",
    ),
    SCALE,
    *RUN,
    out("the table with p_value and odd"),
    SAVE,
    FORCE,
    *SAY,
)
def command(ask: Ask, alpha: float) -> None:
    """Find rows of FILE that do not belong: how odd each is, and in what.

    \b
    Examples:
      unmix outliers table.csv
      unmix outliers payments.parquet --id payment --alpha 0.01 --out odd.csv

    A p-value says how often a row that belongs would look at least as odd. In --out, `odd` is true for the rows that
    are called odd.
    """
    from unmix.cli.ends import keep, write
    from unmix.cli.files import check_targets
    from unmix.cli.odd import judged, show
    from unmix.cli.session import session
    from unmix.cli.tables import opened

    with session(ask) as say:
        check_targets(ask, [ask.file])
        source = opened(ask, say)
        detector, p, odd = judged(source, alpha, ask.seed)
        show(source, p, odd, alpha, SHOWN, say)
        write(say, source, ["p_value", "odd"], iter([[p, odd]]))
        keep(say, detector)
        if ask.out is None:
            say.next("outliers", "--out", "odd.csv", why="each row with its p-value")
