"""A table with its empty cells filled: by what, how well, and where it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import unmix
from unmix.cli.session import Session
from unmix.cli.tables import old_names, write_table
from unmix.engine.sources import Source
from unmix.explanation.words import percent, plural, table
from unmix.io.write import as_arrow
from unmix.table import Table


def show(source: Source, seed: int, say: Session) -> Any:
    """Fit an imputer, and tell what it would fill by what."""
    imputer = unmix.Imputer(random_state=seed).fit(source)
    report, empty = imputer.report(), holes(source, imputer.names_)
    total = sum(empty.values())
    cells = source.n * len(empty)
    say.show(
        f"{plural(total, 'empty cell')} of {cells:,} ({percent(total / max(1, cells))}) in "
        f"{plural(sum(n > 0 for n in empty.values()), 'column')} of {len(empty)}"
    )
    say.show("")
    heads = ["column", "empty", "a held-out cell is off by", "mean or commonest", "filled by"]
    rows = [[line[0], f"{empty[line[0]]:,}", *line[1:]] for line in report.lines() if empty[line[0]]]
    if rows:
        say.show(table(heads, rows, wrap=[4]))
        say.show("")
    say.show(f"{imputer.chosen_}: {imputer.reason_}")
    for note in imputer.notes_:
        say.note(note)
    lines = zip(report.names, report.kinds, report.errors, report.baseline, strict=True)
    columns = [{"name": a, "kind": b, "empty": empty[a], "error": c, "baseline": d} for a, b, c, d in lines]
    say.give(rows=source.n, empty=total, chosen=report.chosen, reason=report.reason, scores=report.scores)
    say.give(columns=columns)
    return imputer


def holes(source: Source, names: list[str]) -> dict[str, int]:
    """How many cells of each column are empty."""
    if isinstance(source, Table):
        seen = {c.name: c.seen.missing for c in source.columns}
        return {name: seen[name] for name in names}
    x = source.whole(unmix.get_config().budget)
    return {f"x{j}": int(np.isnan(x[:, j]).sum()) for j in range(source.d)}


def keep_filled(imputer: Any, source: Source, std: str | None, draws: int | None, say: Session) -> None:
    """Write the filled table, its standard deviations and draws, and the imputer, where the user wants them."""
    ask, written = say.ask, []
    if ask.out is not None:
        filled, deviations = imputer.impute(source, return_std=True)
        n = write_table(ask.out, arrow(filled, source), source, ask.force)
        written.append(ask.out)
        where = "standard output" if say.piped else ask.out
        say.hint(f"{plural(n, 'row')} written to {where}, filled")
        say.give(out={"file": ask.out, "rows": n})
    elif std is not None:
        deviations = imputer.impute(source, return_std=True)[1]
    if std is not None:
        write_table(std, arrow(deviations, source), None, ask.force)
        written.append(std)
        say.hint(f"standard deviations written to {std}; 90% of held-out cells were within 1.645 of them")
    if draws is not None and ask.out is not None:
        for i, drawn in enumerate(imputer.impute(source, n_draws=draws)):
            write_table(named(ask.out, i + 1), arrow(drawn, source), source, ask.force)
            written.append(named(ask.out, i + 1))
        first, last = named(ask.out, 1), named(ask.out, draws)
        say.hint(f"{plural(draws, 'draw')} written to {first}" + f" … {last}" * (draws > 1))
    if ask.save is not None:
        imputer.save(ask.save)
        written.append(ask.save)
        say.hint(f"imputer kept in {ask.save}; for other rows:  unmix apply {ask.save} NEW.csv --out filled.csv")
    say.give(written=written)


def arrow(filled: Any, source: Source) -> Any:
    """A filled table as Arrow has it."""
    return as_arrow(filled, old_names(source)) if isinstance(filled, np.ndarray) else filled


def named(path: str | None, i: int) -> str:
    """The name of a draw: filled-1.csv."""
    assert path is not None
    return str(Path(path).with_stem(f"{Path(path).stem}-{i}"))
