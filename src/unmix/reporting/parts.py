"""Non-negative parts that add up to the rows, or topics: where the columns are amounts or counts, many of them zero."""

from __future__ import annotations

from typing import Any

import numpy as np

import unmix
from unmix.explanation import FoundComponents
from unmix.explanation.words import listed, percent, plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View
from unmix.table.kinds import AMOUNTS

FEWEST = 8  # columns
ZEROS = 0.3  # share of the cells, from which on rows are made of few things each
WORDS, RARE = 50, 0.6  # columns of counts, and share of zeros, from which on rows are documents
ROWS = 2_000  # among which the number of parts is chosen
MOST = 12  # parts that are tried
NAMED, TOLD = 3, 6  # columns that name a part, and in the table


def parts(view: View) -> Section | None:
    """Parts of which each row has more or less, and none negative."""
    x = _amounts(view)
    if x is None:
        return None
    counts = all(use.kind == "count" for use in view.some.recipe.uses)
    topics = counts and x.shape[1] >= WORDS and np.isfinite(x).all() and float((x == 0).mean()) >= RARE
    name, word = ("LatentDirichletAllocation", "topic") if topics else ("NMF", "part")
    view.tell(f"{word}s")
    given = view.usual.suited("given" if topics else "scaled")
    most = min(MOST, view.usual.d // 2, view.usual.n // 10)
    if most < 2:
        return None
    step = max(1, given.n // ROWS)
    few: Any = given.read(0, given.n)[::step]
    more: dict[str, Any] = {} if topics else {"max_iter": 500}
    cls = unmix.models()[name]
    answer = unmix.select(cls(random_state=view.seed, **more), few, range(1, most + 1), random_state=view.seed)
    k = int(answer.k or answer.range[0])
    model: Any = cls(k, random_state=view.seed, **more).fit(given)
    found = unmix.explain(model)
    assert isinstance(found, FoundComponents)
    z = np.asarray(model.transform(given), dtype=np.float64)
    has = (z > 0.05 * np.maximum(z.max(axis=0), 1e-300)).mean(axis=0)
    order = np.argsort(-has, kind="stable")
    rows = [[str(i + 1), _made_of(found, int(a), NAMED + TOLD), percent(float(has[a]))] for i, a in enumerate(order)]
    if k < 2:
        answered = f"The columns are amounts, but the {view.rows} are not made of several {word}s, as far as they tell."
    else:
        first = "; ".join(_made_of(found, int(a), NAMED) for a in order[:2])
        whose = f"The {view.rows}" if view.partial else "Rows"
        answered = f"{whose} are sums of {plural(k, word)}, none taken away; the commonest are of {first}."
    heads = [word, "columns in it, the strongest first", "rows that have it"]
    shown: list[Chart | Grid] = [
        Grid(f"What each {word} is made of, and how many rows have some of it.", heads, rows, 2)
    ]
    told = "" if not more else ", max_iter=500"
    fitted = f"unmix.{name}({k}, random_state={view.seed}{told}).fit({view.named})"
    code = f"{view.opening}\nmodel = {fitted}\nprint(unmix.explain(model))"
    said = [f"How many: {answer.reason}"]
    facts = {"model": name, "parts": k, "columns": [list(found.components[int(a)].loadings)[:TOLD] for a in order]}
    return Section(
        "parts", "Parts", f"{word.capitalize()}s that add up to the rows", answered, said, shown, code, facts
    )


def _amounts(view: View) -> np.ndarray | None:
    """The cells as they are, where all columns are amounts from 0 on and many cells are 0."""
    uses = view.some.recipe.uses
    if len(uses) < FEWEST or any(use.kind not in AMOUNTS for use in uses):
        return None
    plain = view.some.suited("given")
    x = np.asarray(plain.read(0, plain.n), dtype=np.float64)
    known = ~np.isnan(x)
    return x if (x[known] >= 0).all() and (x[known] == 0).mean() >= ZEROS else None


def _made_of(found: FoundComponents, i: int, most: int) -> str:
    """The columns of a part, those that hardly matter left out."""
    some = list(found.components[i].loadings.items())[:most]
    return listed([repr(name) for name, v in some if v >= 0.25 * some[0][1]], most)
