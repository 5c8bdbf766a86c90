"""`unmix completion`."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Complete commands with the tab key.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options with the tab key.

    \b
    For this session, or in your shell's start-up file for all:
      bash   eval "$(unmix completion bash)"
      zsh    eval "$(unmix completion zsh)"
      fish   unmix completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "unmix", "_UNMIX_COMPLETE").source())
