"""How commands that fit a model end: the table with its results, the model, and what to do next."""

from __future__ import annotations

from typing import Any

from unmix.cli.fits import result_names, results
from unmix.cli.session import Session
from unmix.cli.tables import write_beside
from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.engine.sources import Source
from unmix.explanation.words import plural


def write(say: Session, source: Source, names: list[str], blocks: Any) -> None:
    """The table with new columns, where the user wants it."""
    if say.ask.out is None:
        return
    with progress_line(f"writing {say.ask.out}", get_config(), source.n) as tell:
        n, new = write_beside(say.ask.out, source, names, _told(blocks, source.n, tell), say.ask.force)
    where = "standard output" if say.piped else say.ask.out
    say.give(out={"file": say.ask.out, "rows": n, "columns": new})
    some = ", ".join(repr(name) for name in new[:3]) + f" and {len(new) - 3} more" * (len(new) > 3)
    say.hint(f"{plural(n, 'row')} written to {where}, with {some} beside the old columns")


def _told(blocks: Any, n: int, tell: Any) -> Any:
    """The blocks, while somebody is told how far they are."""
    done = 0
    for block in blocks:
        yield block
        done += len(block[0])
        tell(f"{done:,} of {n:,} rows", done)


def keep(say: Session, model: Any) -> None:
    """The model in a file, where the user wants it."""
    if say.ask.save is not None:
        model.save(say.ask.save)
        say.give(save=say.ask.save)
        say.hint(f"model kept in {say.ask.save}; for other rows:  unmix apply {say.ask.save} NEW.csv --out new.csv")


def finish(say: Session, source: Source, model: Any) -> None:
    """Write what a model says of each row, and keep it."""
    write(say, source, result_names(model), results(model, source))
    keep(say, model)
