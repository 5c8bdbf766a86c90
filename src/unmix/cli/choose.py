"""Which model, and how many parts, where the user leaves that open: chosen by what the table holds, and said aloud."""

from __future__ import annotations

from typing import Any

import unmix
from unmix.cli.session import Session
from unmix.cli.tables import weights_of
from unmix.engine.sources import Source
from unmix.explanation.words import table
from unmix.model.capabilities import Groups
from unmix.selection.criteria import WORDS
from unmix.table import Table

ENOUGH = 5_000  # rows that are asked how many groups there are


def chosen_model(source: Source, say: Session, option: str = "--model ") -> Any:
    """The model for what the table holds."""
    recipe = source.recipe
    categories = [] if recipe is None else [use.name for use in recipe.uses if use.levels]
    if categories:
        say.note(
            f"the table has categories, so the model is Mixture, which takes numbers, counts and categories each as "
            f"what they are ({option}KMeans for plain clusters)"
        )
        return unmix.Mixture
    return unmix.KMeans


def asked_of(model: Any, source: Source, seed: int, ks: list[int] | None, say: Session) -> Any:
    """What `select` says of a table; of a very long one, what it says of some of its rows."""
    some = source.part(ENOUGH) if isinstance(source, Table) else source
    if some is not source:
        say.note(f"how many was asked of {some.n:,} rows, spread evenly over the {source.n:,}")
    more: dict[str, Any] = {} if ks is None else {"k": ks}
    return unmix.select(model, some, sample_weight=weights_of(some), random_state=seed, **more)


def shown(answer: Any, say: Session) -> None:
    """The answer of `select`, its reason, and the table behind it."""
    say.show(str(answer))
    say.show("")
    columns = {name: v for name, v in answer.columns.items() if name not in ("converged", "sound") or not v.all()}
    heads = [WORDS[name][0] if name in WORDS else name.replace("_se", " ±") for name in columns]
    rows = []
    for i, k in enumerate(answer.columns["k"]):
        rows.append(["→" if k == answer.k else "", *(_cell(v[i]) for v in columns.values())])
    say.show(table(["", *heads], rows))
    given = {name: values.tolist() for name, values in answer.columns.items()}
    low_high = vars(answer).get("range")
    say.give(
        k=answer.k,
        range=None if low_high is None else list(low_high),
        sureness=vars(answer).get("sureness"),
        reason=answer.reason,
        criterion=answer.criterion,
        votes=answer.votes,
        table=given,
        model=type(answer.model).__name__ if answer.model is not None else None,
        groups=isinstance(answer.model, Groups),
    )


def _cell(value: Any) -> str:
    import numpy as np

    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return str(value)
    return f"{value:,.5g}" if np.isfinite(value) else "–"


def settled_k(answer: Any, say: Session) -> int:
    """The number of groups to take, said aloud."""
    if answer.k is None:
        k = int(answer.votes[answer.criterion])
        say.note(f"how many there are was asked of unmix select – {answer} Taken: {k}; --k N for another number")
        return k
    say.note(f"how many there are was asked of unmix select – {answer} (--k N for another number)")
    return int(answer.k)
