"""What a command says, and where: results to the standard output, notes and what to do next to stderr, or one JSON."""

from __future__ import annotations

import json
import math
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import unmix
from unmix.cli.options import Ask
from unmix.engine.config import free_memory
from unmix.explanation.words import as_text

NARROWEST, WIDEST = 40, 120  # characters
PIPED = 100  # where nobody's screen gives a width
DOUBTFUL = 3  # exit code: a fit that did not converge, or of which something collapsed


class Session:
    """A command that runs: what it has said, and how it will end."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.document: dict[str, Any] = {}
        self.notes: list[str] = []
        self.doubtful = False
        self.piped = ask.out == "-"  # the table goes to the standard output, so words do not

    def note(self, text: str) -> None:
        """Something that the user should know."""
        text = " ".join(text.split())
        if text in self.notes:
            return
        self.notes.append(text)
        if not (self.ask.json or self.ask.quiet):
            self._console(err=True).print(f"note: {text}", soft_wrap=not sys.stderr.isatty())

    def hint(self, text: str) -> None:
        """What to do next."""
        if not (self.ask.json or self.ask.quiet):
            self._console(err=True).print(f"\n{text}", soft_wrap=True)

    def next(self, command: str, *more: str, why: str) -> None:
        """The command to give next: this one with its options, as another command or with more of them."""
        asked = list(click.get_current_context().meta["unmix.asked"])
        for written in ("--save", "--plot"):  # files that are there by now
            if written in asked:
                at = asked.index(written)
                del asked[at : at + 2]
        self.hint(f"next:  {shlex.join(['unmix', command, *asked[1:], *more])}   {why}")

    def show(self, what: Any) -> None:
        """A result for people: text, or what rich prints."""
        if self.ask.json:
            return
        console = self._console(err=self.piped)
        if console.is_terminal:
            console.print(what)
        else:
            click.echo(as_text(what, console.width), err=self.piped)

    def give(self, **values: Any) -> None:
        """The same for machines."""
        self.document.update(values)

    def warned(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        """What the library warns of, as a note; what others warn of is no business of the user's."""
        from sklearn.exceptions import ConvergenceWarning

        if issubclass(category, ConvergenceWarning):
            self.doubtful = True
        if issubclass(category, UserWarning):
            self.note(str(message))

    def end(self) -> None:
        """Print the document, and end with the exit code that says how it went."""
        if self.ask.json:
            document = {"unmix": unmix.__version__, **self.document, "notes": self.notes, "doubtful": self.doubtful}
            click.echo(json.dumps(plain(document), indent=2, ensure_ascii=False))
        if self.doubtful:
            click.get_current_context().exit(DOUBTFUL)

    def _console(self, err: bool) -> Any:
        from rich.console import Console

        stream = sys.stderr if err else sys.stdout
        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        screen = console.width if stream.isatty() or console.width != 80 else PIPED
        console.width = min(max(screen, NARROWEST), WIDEST)
        return console


@contextmanager
def session(ask: Ask, **settings: Any) -> Iterator[Session]:
    """Run a command: warnings become notes, progress is shown where somebody watches."""
    out = Session(ask)
    progress = False if ask.quiet else "auto"
    budget = int(min(1e9 * ask.memory, 0.5 * free_memory()))
    frugal = unmix.config(progress=progress, n_jobs=ask.threads, memory_budget=budget, **settings)
    with frugal, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = out.warned
        yield out
    out.end()


def plain(value: Any) -> Any:
    """Values that JSON has: numbers that are not finite are null."""
    import numpy as np

    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, str) else str(value)
