"""`unmix apply`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, SAY, Ask, asking, out


@click.command("apply", short_help="What a saved model says of each row.")
@asking(
    click.argument("model", type=click.Path()),
    click.argument("file", type=click.Path(allow_dash=True)),
    out("the table with what the model says of each row"),
    click.option("--header/--no-header", default=None, help="Whether the first line of the file names the columns."),
    click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads to use.  [default: all cores]"),
    click.option("--labels", is_flag=True, hidden=True),  # what `transform` once needed
    FORCE,
    *SAY,
)
def command(ask: Ask, model: str, labels: bool) -> None:
    """Let MODEL (a .unmix file) say of each row of FILE what it is: its group, its scores, how odd it is.

    \b
    Examples:
      unmix apply groups.unmix new.csv --out new_groups.csv
      unmix apply groups.unmix new.csv --out - | head

    The columns are read, scaled and coded as those of the table that the model was fitted to; FILE may have others
    beside, which are carried through. An imputer fills the empty cells.
    """
    import unmix
    from unmix.cli.ends import write
    from unmix.cli.files import check_targets
    from unmix.cli.filling import keep_filled
    from unmix.cli.fits import loaded, result_names, results, show
    from unmix.cli.session import session
    from unmix.cli.tables import like
    from unmix.model.capabilities import Groups

    with session(ask) as say:
        check_targets(ask, [ask.file, model])
        estimator = loaded(model)
        source = like(ask.file, estimator, ask.header, say)
        if isinstance(estimator, unmix.Imputer):
            keep_filled(estimator, source, None, None, say)
            return
        if isinstance(estimator, Groups):
            show(estimator, source, None, say)
        write(say, source, result_names(estimator), results(estimator, source))
        if ask.out is None:
            say.next("apply", "--out", "results.csv", why="each row with what the model says")
