"""`unmix models`."""

from __future__ import annotations

import click

from unmix.cli.options import SAY, Ask, asking


@click.command("models", short_help="List the models.")
@asking(*SAY)
def command(ask: Ask) -> None:
    """List the models, and what each takes and gives."""
    import unmix
    from unmix.cli.fits import k_name
    from unmix.cli.session import session
    from unmix.model.facts import GIVES, TAKES, facts, words

    with session(ask) as say:
        for name, cls in unmix.models().items():
            told = facts(cls)
            k = k_name(cls)
            say.show(f"{name}: {told.finds}" + f" (--k is {k})" * bool(k))
            both = (("takes", words(told, TAKES)), ("gives", words(told, GIVES)))
            say.show("    " + "; ".join(f"{verb} {what}" for verb, what in both if what))
            say.document[name] = {**told._asdict(), "k": k}
