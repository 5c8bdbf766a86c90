"""Which k, which range of k, how sure that is, and why, in words.

- sure: halves of the rows and every other look agree on one k. Right in at least 95 of 100 planted tables.
- open: else. Right in 6 of 10: take the range, not the number.

Both where columns count alike. Where few columns dominate "sure" was right in 3 of 4, "open" in none of 12.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unmix.selection.criteria import WORDS, Score
from unmix.selection.evidence import MAJORITY, ROWS_PER_NUMBER, Evidence, held
from unmix.selection.halves import STEADY
from unmix.selection.judge import Judgement, counting
from unmix.selection.likeness import CLEAR_EXCESS
from unmix.selection.question import Question

AGREEING_RATIO = 1.5  # of the largest vote to the smallest, up to which the first criterion decides
MEASURED = "icl"  # the criterion for which "sure" has been measured
SHOWN = 3  # columns that are named
MANY = 6  # groups, beyond which they may be pieces of something else
PIECES = "So many groups may also be pieces of one gradient or of curved groups: look at the rows before you use them."
WITHIN = 2.0  # standard errors from the best value, up to which a k is defensible


class Answer(NamedTuple):
    """The choice, what else could be defended, how sure it is, and why."""

    k: int | None
    range: tuple[int, int]
    sureness: str
    reason: str


def disagreement(found: Judgement) -> Answer | None:
    """The answer where the criteria are too far apart; None where they are not."""
    few, many = min(found.votes.values()), max(found.votes.values())
    if many <= max(AGREEING_RATIO * few, few + 1) or _refined(found.votes):
        return None
    said = ", ".join(f"{WORDS[c][0]} says {v}" for c, v in found.votes.items())
    why = f"The criteria disagree: {said}. Look at the table, or name one criterion."
    return Answer(None, (few, many), "open", why)


def answer(q: Question, found: Judgement, e: Evidence, edge: bool, mended: bool) -> Answer:
    """The choice and why; `edge`: the largest k is a limit that the user set; `mended`: some fits had collapsed."""
    name = next(iter(found.votes))
    k, score = held(e), counting(name, found.scores[name], found.sound)
    low, high = _range(q, e, k, score)
    best = _best(q, found, name)
    unsettled = e.k == 1 and bool(e.excess) and e.clear
    limited = edge and k == q.ks[-1] and len(q.ks) > 1
    doubts = e.scaled not in (None, k) or unsettled or limited or best is not None
    share = e.halves[k] / max(e.halves.total(), 1)
    agreed = low == high and share == 1 and e.first == k
    sure = "sure" if agreed and not doubts and not mended and name == MEASURED else "open"
    said = [
        best and f"The best value is at k = {best}, where something collapsed, so that fit does not count.",
        _domination(q, e, k),
        _criterion(q, name, score, e, k),
        _halves(e, k),
        _gaps(e, k),
        _others(q, found, e, name, k),
        f"{k} is the largest k that was tried: try larger ones." if limited else "",
        PIECES if q.groups and k > MANY and sure == "open" else "",
    ]
    return Answer(k, (low, high), sure, " ".join(s for s in said if s))


def left_out(q: Question, sound: np.ndarray) -> str:
    """What the user should know about fits in which something collapsed."""
    if sound.all():
        return ""
    if sound.any():
        bad = ", ".join(str(q.ks[i]) for i in np.flatnonzero(~sound))
        return f" Left out, because something collapsed: k = {bad}."
    return f" Something collapsed in every fit, so do not trust this; {q.models[0].notes(q.fits[0].U)[0]}."


def _refined(votes: dict[str, int]) -> bool:
    """ICL counts groups, BIC the Gaussians that they are made of: fewer groups than Gaussians do not contradict."""
    return set(votes) == {"bic", "icl"} and votes["icl"] <= votes["bic"]


def _range(q: Question, e: Evidence, k: int, score: Score) -> tuple[int, int]:
    """The least and the largest k that may be defended."""
    if e.k > 1 and not e.clear:  # no groups, or none with gaps between them: then halves only vary in cutting a cloud
        many = {k, e.k} if k == 1 and not e.no_gaps and next(reversed(e.excess.values())) > 0 else {k}
        return 1, max({*many, *([e.scaled] if e.scaled else [])})
    ks = {k, e.first, *e.halves, *(v for v in (e.alike, e.scaled) if v is not None)}
    if k == 1 and e.excess and e.clear:
        ks.add(min(v for v in q.ks if v > 1))
    if not e.halves and score.error.any():
        i = q.ks.index(k)
        error = np.maximum(score.error, score.error[i])
        ks |= {v for v, ok in zip(q.ks, score.value <= score.value[i] + WITHIN * error, strict=True) if ok}
    return min(ks), max(ks)


def _best(q: Question, found: Judgement, name: str) -> int | None:
    """The k of the best value, where that fit collapsed while others did not."""
    value = found.scores[name].value
    if not found.sound.any() or np.isnan(value).all() or name == "nll":
        return None
    i = int(np.nanargmin(value))
    return None if found.sound[i] else q.ks[i]


def _domination(q: Question, e: Evidence, k: int) -> str:
    if not e.columns:
        return ""
    several = len(e.columns) > 1
    named = ", ".join(e.columns[:SHOWN]) + f" and {len(e.columns) - SHOWN} more" * (len(e.columns) > SHOWN)
    who = f"Columns {named} hold" if several else f"Column {named} holds"
    seen = f"the {'distances are those of' if q.rowwise else 'starts see'} {'these' if several else 'it'} alone"
    same = "the same number" if e.scaled == k else str(e.scaled)
    return (
        f"{who} nearly all of the variance, so {seen}: scale the columns first. With columns of equal variance the "
        f"answer would be {same}."
    )


def _criterion(q: Question, name: str, score: Score, e: Evidence, k: int) -> str:
    """What the first criterion says, and by how much."""
    word = WORDS[name][0]
    i, value = q.ks.index(e.first), np.where(np.isnan(score.value), np.inf, score.value)
    others = np.delete(np.arange(len(value)), i)
    start = f"The {word} chooses {e.first}"
    if not len(others) or not np.isfinite(value[others]).any():
        return f"{start}; no other k was judged."
    if e.first == 1 == k:
        start = f"One part is enough for the {word}" + ": no structure" * (q.groups and not e.clear)
    j = int(others[np.argmin(value[others])])
    apart = value[j] - value[i]
    if name in ("aic", "bic", "icl") and apart < 0:
        return f"{start}; it is {-apart:.3g} lower at k = {q.ks[j]}, too little to count."
    if score.error.any():
        error = max(float(score.error[i]), float(score.error[j]))
        return f"{start}; k = {q.ks[j]} comes next, {abs(apart):.3g} {_side(apart)} (standard error {error:.2g})."
    return f"{start}; k = {q.ks[j]} comes next, {abs(apart):.3g} {_side(apart)}."


def _side(apart: float) -> str:
    return "worse" if apart >= 0 else "better, within the error"


def _halves(e: Evidence, k: int) -> str:
    """What halves of the rows choose."""
    total = e.halves.total()
    if not total:
        return ""
    if set(e.halves) == {e.first}:
        return f"All of {total} halves of the rows agree."
    said = ", ".join(f"{n} choose {v}" if n > 1 else f"1 chooses {v}" for v, n in e.halves.most_common())
    decided = e.k != e.first and e.halves[e.k] >= MAJORITY * total
    return f"Of {total} halves of the rows {said}" + ("; as most of them agree, they decide." if decided else ".")


def _gaps(e: Evidence, k: int) -> str:
    """What data without groups say."""
    if e.k == 1 and e.excess and e.clear:
        return (
            f"Yet the rows are not like data without groups: two parts gain {min(e.excess.values()):.1f} standard "
            "deviations more than they would there. There may be groups that are too few rows to be told apart, or one "
            "cloud of another shape."
        )
    if e.k == 1 or e.clear:
        return ""
    excess = list(e.excess.values())[-1]
    if not e.no_gaps:
        side = "above" if excess > 0 else "below"
        return (
            f"But data without groups, of the same mean and axes, gain as much or nearly so from {e.k}: the data are "
            f"{abs(excess):.1f} standard deviations {side} them, and at least {CLEAR_EXCESS:.0f} above are needed."
        )
    told = (
        "But there are no gaps: one skewed cloud with the same columns, correlated in the same way, gains as much or "
        "nearly so."
    )
    if k > 1:
        return (
            f"{told} Still {k} groups describe it usefully: two halves of the rows find the same {k} (agreement "
            f"{e.steady[k]:.2f} of 1). They are regions of one cloud, not separate groups."
        )
    asked = {v: s for v, s in e.steady.items() if np.isfinite(s)}
    if not asked:
        return told
    best = max(asked, key=lambda v: asked[v])
    return (
        f"{told} Nor are its parts the same in two halves of the rows (agreement {asked[best]:.2f} of 1 for {best}; "
        f"{STEADY} are needed)."
    )


def _others(q: Question, found: Judgement, e: Evidence, name: str, k: int) -> str:
    """What the other criteria would choose."""
    out = []
    for c, v in found.votes.items():
        if c != name and v not in (k, e.first):
            told = f"The {WORDS[c][0]} would choose {v}"
            if set(found.votes) == {"icl", "bic"} and v > k:
                whole = "one group" if k == 1 else f"{k} groups"
                told += f": {v} overlapping parts describe the shape of {whole} better than {k}"
            out.append(told + ".")
    if e.alike is not None and e.alike != e.first:
        alike = f"seen as groups of one shape, which cost fewer numbers, they would be {e.alike}."
        if e.alike == e.k and e.rows < ROWS_PER_NUMBER * e.numbers * e.k:
            why = f"But each group has {e.numbers} numbers for {e.rows} rows in all to tell, too many to be paid for"
            out.append(f"{why}: {alike} That counts.")
        else:
            out.append(f"{alike[0].upper()}{alike[1:]}")
    return " ".join(out)
