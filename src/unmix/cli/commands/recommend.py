"""`unmix recommend`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAVE, SAY, Ask, asking, out


@click.command("recommend", short_help="What users would like, and how sure that is.")
@asking(
    click.argument("file", type=click.Path(allow_dash=True)),
    click.option("--user", "users", multiple=True, metavar="ID", help="A user; may be repeated.  [default: see --out]"),
    click.option(
        "--n", "n", type=click.IntRange(1), default=10, show_default=True, help="How many items for each user."
    ),
    click.option("--components", type=click.IntRange(0), default=20, show_default=True, help="Factors of a user."),
    click.option(
        "--caution", type=float, default=0.0, show_default=True, help="Rank by rating less so many deviations."
    ),
    click.option("--seen/--unseen", default=False, help="Whether items that a user has rated may be in the list."),
    click.option(
        "--names",
        metavar="USER,ITEM,RATING",
        help="The columns that hold them.  [default: by their names, or the first three]",
    ),
    click.option("--header/--no-header", default=None, help="Whether the first line of the file names the columns."),
    click.option(
        "--check/--no-check",
        default=True,
        help="Whether to hide a tenth of the ratings first, to say how far off it is.",
    ),
    *RUN,
    out("the recommendations of the users asked for, or of all users"),
    SAVE,
    FORCE,
    *SAY,
)
def command(
    ask: Ask,
    users: tuple[str, ...],
    n: int,
    components: int,
    caution: float,
    seen: bool,
    names: str | None,
    check: bool,
) -> None:
    """Recommend items to users, by a table of ratings with a line for each: user, item, rating.

    \b
    Examples:
      unmix recommend ratings.csv --user 196 --n 10
      unmix recommend ratings.csv --out lists.csv --save taste.unmix
      unmix recommend taste.unmix --user 196

    FILE may also be a model that --save has written; then nothing is fitted.
    """
    from unmix.cli.files import check_targets
    from unmix.cli.recommending import check_users, fitted, keep, read_ratings, saved, show, users_of, written
    from unmix.cli.session import session

    with session(ask) as say:
        if not users and ask.out is None and ask.save is None:
            raise click.UsageError("say for whom: --user ID, or --out lists.csv for all users")
        check_targets(ask, [ask.file])
        if ask.file.lower().endswith(".unmix"):
            model = saved(ask.file)
            check_users(users, model.user_ids_, model.known_users, ask.file)
        else:
            ratings = read_ratings(ask.file, names, ask.header, say)
            known = users_of(ratings)
            check_users(users, known, len(known), ask.file)  # before a fit that takes its time
            model = fitted(ratings, components, check, ask.seed, say)
        how = {"n": n, "exclude_seen": not seen, "caution": caution}
        show(model, users, how, say)
        written(model, users, how, say)
        keep(model, say)
