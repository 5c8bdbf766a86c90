"""What is known beside the votes of criteria: halves of the rows, data without groups, other looks at the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unmix.engine.sources import as_source
from unmix.model.capabilities import Density
from unmix.selection.clouds import clouds
from unmix.selection.columns import dominant
from unmix.selection.fits import all_fits, ridged
from unmix.selection.halves import PAIR_ROWS, STEADY, halves, steadiness
from unmix.selection.judge import Judgement, judge
from unmix.selection.likeness import CLEAR_EXCESS, here, structure
from unmix.selection.question import Question

MAJORITY = 0.7  # of the halves that outvotes all rows
ROWS_PER_NUMBER = 2  # of a group's Gaussian: with fewer, the cost of numbers decides and not the rows
FAR_EXCESS = 2 * CLEAR_EXCESS  # over clouds without skew, where only a skewed one is like the rows
MOST_STEADY = 2  # regions of one cloud that are looked for, at most: more of them come out of any skewed cloud


@dataclass
class Evidence:
    """What is known about the number of parts."""

    first: int  # what the first criterion chooses
    halves: Counter[int]  # what it chooses on halves of the rows
    k: int = 0  # the choice of both
    excess: dict[str, float] = field(default_factory=dict)  # over data without groups, in standard deviations, by kind
    steady: dict[int, float] = field(default_factory=dict)  # agreement of two halves on k groups, where asked
    alike: int | None = None  # for mixtures of Gaussians: what groups of one shape would make of the same labels
    numbers: int = 0  # of one of its Gaussians ...
    rows: int = 0  # ... which so many rows have to tell
    columns: list[str] = field(default_factory=list)  # that hold nearly all of the variance
    scaled: int | None = None  # the choice for columns of equal variance, where some dominate

    @property
    def clear(self) -> bool:
        """Whether the rows gain clearly more from groups than rows without groups do."""
        return all(v >= CLEAR_EXCESS for v in self.excess.values())

    @property
    def scarce(self) -> bool:
        """Whether a criterion that counts numbers cannot see as many Gaussians as there may be groups."""
        return (
            self.alike is not None and self.alike > self.k and self.rows < ROWS_PER_NUMBER * self.numbers * self.alike
        )

    @property
    def no_gaps(self) -> bool:
        """Whether only one skewed cloud explains the rows as well as groups do, and other clouds far less."""
        *plain, skewed = self.excess or [""]
        return not self.clear and skewed == "skewed" and min(self.excess[kind] for kind in plain) >= FAR_EXCESS


def gather(q: Question, model: Any, chosen: list[str], found: Judgement, tell: Callable[[str], None]) -> Evidence:
    """Ask for everything that bears on the choice; `model` is the one that the user gave."""
    e = _seen(q, chosen, found, tell)
    if len(q.ks) > 1 and not q.pairwise and (q.rowwise or ridged(q.model)):
        _scaled(q, model, chosen, e, tell)
    return e


def held(e: Evidence) -> int:
    """The number of groups that the evidence leaves."""
    if e.k == 1 or e.clear:
        return e.k
    return max((k for k, v in e.steady.items() if v >= STEADY), default=1)


def _seen(q: Question, chosen: list[str], found: Judgement, tell: Callable[[str], None]) -> Evidence:
    """What halves, other shapes of groups and data without groups say of rows as they are."""
    vote = found.votes[chosen[0]]
    e = Evidence(vote, halves(q, chosen, vote, tell), vote)
    if e.halves and np.count_nonzero(q.weight) <= PAIR_ROWS:  # else halves know less than all rows do
        most, count = e.halves.most_common(1)[0]
        e.k = most if count >= MAJORITY * e.halves.total() and count > e.halves[vote] else vote
    if not q.groups or q.pairwise:
        return e
    if ridged(q.model) and isinstance(q.model, Density) and len(q.ks) > 1:
        x, w = q.rows(PAIR_ROWS)
        e.alike = q.ks[int(np.argmin(np.where(found.sound | ~found.sound.any(), clouds(x, w, q.labels(x)), np.inf)))]
        e.numbers = round(q.models[-1].n_parameters() / q.ks[-1])
        e.rows = round(float(q.weight.sum()))
        e.k = e.alike if e.scarce else e.k
    if max(q.ks) > 1:
        tell("comparing with data that have no groups")
        e.excess = structure(q, max(e.k, 2))
    if e.k > 1 and e.no_gaps:
        e.steady = {k: steadiness(q, k) for k in q.ks if 1 < k <= min(e.k, MOST_STEADY)}
    return e


def _scaled(q: Question, model: Any, chosen: list[str], e: Evidence, tell: Callable[[str], None]) -> None:
    """Whether a few columns hold nearly all of the variance, and what columns of equal variance would give."""
    x, w = q.rows(PAIR_ROWS)
    x = x.astype(np.float64)
    x = x[:, ~np.isnan(x).all(axis=0)]
    deviation = np.nanstd(x, axis=0)
    large = dominant(deviation**2)
    if large is None:
        return
    tell("fitting columns of equal variance")
    names = q.source.names
    e.columns = [repr(str(names[j])) if names is not None else str(j) for j in large]
    rows = (x - np.nanmean(x, axis=0)) / np.where(deviation > 0, deviation, 1.0)
    other = replace(q, model=model, source=as_source(rows), w=w, known={}, told={})
    with here():
        all_fits(other, lambda _: None)
        e.scaled = held(_seen(other, chosen, judge(other, chosen), lambda _: None))
