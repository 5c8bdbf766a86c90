"""`unmix`: the group of commands, its help, and what becomes of errors."""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import unmix

COMMANDS = (
    "report",
    "info",
    "select",
    "cluster",
    "reduce",
    "outliers",
    "impute",
    "recommend",
    "roles",
    "fit",
    "apply",
    "models",
    "completion",
)
ALIASES = {"transform": "apply"}  # as it was called before
STOPPED = 130  # as shells say it of Ctrl-C
BAD_INPUT = (ValueError, TypeError, OSError, ImportError, NotImplementedError, OverflowError)
HELP = """Find the hidden parts of data: groups, components, topics, odd rows.

To begin, on any table – text, dates, categories and empty cells may be in it:

\b
  unmix report table.csv                     a page that tells what is in it
  unmix info table.csv                       what the file holds, column by column
  unmix select table.csv                     how many groups there are
  unmix cluster table.csv --out groups.csv   find them; each row with its group
  unmix reduce table.csv --out scores.csv    few components instead of many columns
  unmix outliers table.csv --out odd.csv     rows that do not belong
  unmix impute table.csv --out filled.csv    empty cells filled, and how sure that is
  unmix recommend ratings.csv --user 196     what a user would like
  unmix roles access.csv                     roles in a list of who may do what
  unmix models                               all models, for unmix fit and --model

No file is ever overwritten unless you say --force, and the table that is read never.
"""
EPILOG = """\b
Exit codes:
  0  fine
  1  the data or a file cannot be used; the reason is on stderr
  2  the command line is wrong
  3  results were written, but the fit did not converge or part of it collapsed
  130  stopped by Ctrl-C; nothing is left half-written
"""


class Sentence(click.ClickException):
    """An error as one sentence."""

    exit_code = 1


class Commands(click.Group):
    """Commands that are imported when they are called; errors are one plain sentence, not a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a first session."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of this name."""
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"unmix.cli.commands.{name}").command  # type: ignore[no-any-return]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember what was asked, for commands that say what to ask next."""
        ctx.meta["unmix.asked"] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that is asked for, or one like it."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = difflib.get_close_matches(name.lower(), COMMANDS, 1, 0.5)
            if os.path.exists(name) and not (near and near[0] == name.lower()):
                hint = f"did you mean  unmix info {name} ?"
            else:
                hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command {name!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library says about bad input is what the user reads."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BaseException as e:
            if os.environ.get("UNMIX_DEBUG") or isinstance(e, (SystemExit, GeneratorExit)):
                raise
            if interrupted(e):
                click.echo("stopped: nothing is left half-written", err=True)
                ctx.exit(STOPPED)
            if isinstance(e, OSError) and e.errno == errno.EPIPE:
                raise  # `unmix models | head`: nobody reads on, and click ends quietly
            raise Sentence(sentence(e)) from e


def interrupted(e: BaseException | None) -> bool:
    """Whether an error is Ctrl-C, or what it broke off."""
    return e is not None and (isinstance(e, KeyboardInterrupt) or interrupted(e.__cause__ or e.__context__))


def sentence(e: BaseException) -> str:
    """What a user reads of an error."""
    said = " ".join(str(e).split())
    if isinstance(e, MemoryError):
        return said or "there is not enough memory for this: use fewer columns (--columns) or a smaller table"
    if isinstance(e, OSError) and e.strerror:
        where = f"{e.filename!r}: " if e.filename else ""
        return f"{where}{e.strerror[:1].lower()}{e.strerror[1:]}"
    if isinstance(e, BAD_INPUT) and said:
        return said
    return (
        f"this is a bug in unmix {unmix.__version__} ({type(e).__name__}: {said}). Please report it, with the command; "
        "UNMIX_DEBUG=1 before the command shows where it happened"
    )


@contextmanager
def ending_orderly() -> Iterator[None]:
    """Who ends the process by SIGTERM finds no temporary files of it, as after Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.group(
    cls=Commands,
    help=HELP,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(unmix.__version__, prog_name="unmix")
@click.pass_context
def main(ctx: click.Context) -> None:  # noqa: D103  the help is above
    ctx.with_resource(ending_orderly())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode gets question marks rather than an error
            stream.reconfigure(errors="replace")
