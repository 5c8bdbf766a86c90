"""`unmix cluster`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAVE, SAY, SCALE, TABLE, WEIGHTS, Ask, asking, out


@click.command("cluster", short_help="Find groups of rows.")
@asking(
    *TABLE,
    click.option(
        "-k",
        "--k",
        type=click.IntRange(1),
        metavar="N",
        help="How many groups.  [default: what unmix select finds]",
    ),
    click.option(
        "--model",
        default="",
        help="A model of `unmix models` that gives labels.  [default: KMeans, or Mixture for tables with categories]",
    ),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other parameter of the model."),
    WEIGHTS,
    SCALE,
    *RUN,
    out("the table with each row's group"),
    SAVE,
    FORCE,
    *SAY,
)
def command(ask: Ask, k: int | None, model: str, settings: tuple[str, ...]) -> None:
    """Find groups of rows in FILE: their sizes, their centres, and what sets each apart.

    \b
    Examples:
      unmix cluster table.csv
      unmix cluster customers.xlsx --k 4 --id customer --out groups.csv
      unmix cluster table.parquet --model GaussianMixture --out groups.parquet --save groups.unmix

    Columns that are no part of the groups (identifiers, dates, free text) are carried through to --out. Groups are
    numbered from 1 on. FILE may be larger than memory, or - for the standard input.
    """
    from unmix.cli.choose import asked_of, chosen_model, settled_k
    from unmix.cli.ends import finish
    from unmix.cli.files import check_targets
    from unmix.cli.fits import fitted, made, model_class, show
    from unmix.cli.session import session
    from unmix.cli.tables import opened, weights_of
    from unmix.model.capabilities import Groups

    with session(ask) as say:
        check_targets(ask, [ask.file])
        cls = model_class(model, "--model") if model else None
        if cls is not None and not issubclass(cls, Groups):
            raise click.BadParameter(f"{cls.__name__} finds no groups: say  unmix reduce", param_hint="--model")
        source = opened(ask, say)
        cls, w = cls or chosen_model(source, say), weights_of(source)
        more: list[str] = []
        if k is None:
            answer = asked_of(made(cls, None, settings, ask.seed), source, ask.seed, None, say)
            k = settled_k(answer, say)
            more = ["--k", str(k)]
            if k == 1:
                say.note("the rows do not fall into groups; --k 2 would cut them all the same")
        estimator = fitted(made(cls, k, settings, ask.seed), source, w)
        show(estimator, source, w, say)
        finish(say, source, estimator)
        if ask.out is None:
            say.next("cluster", *more, "--out", "groups.csv", why="each row with its group")
