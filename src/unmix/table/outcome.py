"""What a pass over a column of text has shown: whether its plan fits, how to read it otherwise, and what to say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from unmix.table.values import Plan, Tally, dates, plan_column

SHOWN = 4  # names or words in a sentence


def fits(plan: Plan, tally: Tally) -> bool:
    """Whether a column is what its plan says."""
    if plan.kind == "text":
        return True
    if plan.kind == "number":
        return tally.few() and not any(is_code(w) for w in tally.words) and (tally.values > 0 or not tally.strange)
    if plan.kind == "empty":
        return tally.strange == 0
    return tally.strange == 0 or (plan.kind == "date" and tally.values > 0 and tally.few() and not turns(plan, tally))


def turns(plan: Plan, tally: Tally) -> bool:
    """Whether day and month the other way round make dates of cells that are none this way."""
    if not plan.other:
        return False
    words = pa.array(list(tally.words), pa.string())
    return dates(words, plan.other, plan.type).null_count < len(words)


def is_code(word: str) -> bool:
    """Whether digits are a code, such as 00123, and no number."""
    return len(word) > 1 and word.isdigit() and word[0] == "0"


def again(plan: Plan, tally: Tally, last: bool) -> Plan:
    """How to read a column that is not what its plan said."""
    if last:
        return Plan("text", trim=plan.trim)
    if plan.kind == "empty":
        return plan_column(pa.array(list(tally.words), pa.string()), plan.point, plan.point == ",")
    if plan.kind == "date" and turns(plan, tally):
        return replace(plan, formats=plan.other, other=())
    symbols = not any(c.isalnum() for w in tally.words for c in w)
    return Plan("text", odd=() if symbols else tuple(tally.odd), trim=plan.trim)


def listed(items: Iterable[str]) -> str:
    """A few items of a list, quoted."""
    every = list(items)
    shown = [repr(i) for i in every[:SHOWN]]
    if len(every) > SHOWN:
        return f"{', '.join(shown)} and {len(every) - SHOWN} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""


def told(names: list[str], plans: list[Plan], tallies: list[Tally]) -> list[str]:
    """Sentences about columns whose text had to be read with some thought."""
    notes = []
    odd: Counter[str] = Counter()
    groups: dict[str, list[str]] = defaultdict(list)
    for name, plan, tally in zip(names, plans, tallies, strict=True):
        odd += tally.odd
        if tally.words and plan.kind in ("number", "date"):
            some = listed(tally.words)
            cells = f"{tally.strange} cell{'s' * (tally.strange > 1)}"
            notes.append(f"column {name!r} holds {plan.kind}s but for {cells} ({some}), taken for missing")
        if tally.dressed:
            groups["dressed"].append(name)
        if plan.kind == "date" and plan.other and not tally.words:
            groups["day first" if plan.formats[0].startswith("%d") else "month first"].append(name)
        if plan.kind == "date" and plan.formats == ("zone",):
            groups["zone"].append(name)
    if odd:
        words = sorted(odd, key=lambda w: -odd[w])
        notes.insert(
            0, f"{listed(words)} {'is' if len(words) == 1 else 'are'} taken for missing ({sum(odd.values())} cells)"
        )
    sentences = {
        "dressed": "numbers are read without signs for money, per cent and thousands in {}",
        "day first": "the dates in {} could be day/month or month/day: taken for day/month",
        "month first": "the dates in {} could be day/month or month/day: taken for month/day",
        "zone": "times in {} are converted to UTC",
    }
    return notes + [s.format(listed(groups[key])) for key, s in sentences.items() if groups[key]]
