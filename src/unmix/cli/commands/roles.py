"""`unmix roles`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAY, Ask, Names, asking


@click.command("roles", short_help="Roles in an access list, and grants that look wrong.")
@asking(
    click.argument("file", type=click.Path(allow_dash=True)),
    click.option("--roles", "n_roles", type=click.IntRange(1), help="How many.  [default: as many as pay]"),
    click.option(
        "--names",
        type=Names(),
        metavar="USER,PERMISSION",
        help="The columns that hold them.  [default: by their names]",
    ),
    click.option("--header/--no-header", default=None, help="Whether the first line of the file names the columns."),
    click.option(
        "--fdr",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.1,
        show_default=True,
        help="Share of rightful cells, at most, among those that are called wrong.",
    ),
    click.option("--judge/--no-judge", default=True, help="Whether to look for grants that look wrong."),
    click.option("--users", type=click.Path(), help="A table of what is known of users, ids first: it names roles."),
    click.option("--permissions", type=click.Path(), help="The same of permissions."),
    click.option("--exclude", type=Names(), help="Permissions to be left out."),
    click.option("--dormant", type=click.Path(), help="A table of accounts not in use, ids first: they are left out."),
    click.option("--direct", type=click.Path(), help="A table of grants that stay direct: user, permission."),
    *RUN,
    click.option("-o", "--out", type=click.Path(), help="The page to write, .html."),
    click.option(
        "--csv", "folder", type=click.Path(), help="Folder for roles.csv, assignments.csv, direct.csv, review.csv."
    ),
    FORCE,
    *SAY,
)
def command(
    ask: Ask,
    n_roles: int | None,
    names: list[str] | None,
    fdr: float,
    judge: bool,
    users: str | None,
    permissions: str | None,
    exclude: list[str] | None,
    dormant: str | None,
    direct: str | None,
    folder: str | None,
) -> None:
    """Find roles in FILE, who may do what: a line for each user and permission, a matrix of 0 and 1, or a file .rmp.

    \b
    Examples:
      unmix roles access.csv --out roles.html
      unmix roles access.csv --names account,group --csv roles/
      unmix roles matrix.csv --users staff.csv --json

    Nobody gets anything new by the roles proposed. Grants that look wrong are told with how likely that is.
    """
    from pathlib import Path

    import unmix
    from unmix.cli.files import check_target
    from unmix.cli.roles import check_folder, ids, write_folder
    from unmix.cli.session import session

    with session(ask) as say:
        inputs = [f for f in (ask.file, users, permissions, dormant, direct) if f]
        if ask.out is not None:
            if Path(ask.out).suffix.lower() not in (".html", ".htm"):
                raise ValueError(f"--out {ask.out!r}: what is written is a page; end its name in .html")
            check_target("--out", ask.out, inputs, ask.force)
        if folder is not None:
            check_folder(folder, inputs, ask.force)
        found = unmix.roles(
            ask.file,
            n_roles,
            users=users,
            permissions=permissions,
            fdr=fdr if judge else None,
            names=names,
            exclude=exclude or (),
            dormant=[row[0] for row in ids(dormant, 1)],
            direct=ids(direct, 2),
            random_state=ask.seed,
            header=ask.header,
        )
        say.show(found)
        for note in found.notes:
            say.note(note)
        say.give(**found.to_dict())
        if ask.out is not None:
            say.give(out=str(found.save(ask.out, replace=ask.force)))
            say.hint(f"page written to {ask.out}; open it in a browser")
        if folder is not None:
            write_folder(found, folder, ask.force)
            say.give(csv=folder)
            say.hint(f"roles.csv, assignments.csv, direct.csv and review.csv written to {folder}")
        if ask.out is None and folder is None:
            say.next("roles", "--out", "roles.html", why="a page with all of it")
