"""What each criterion votes for, which k that makes, and why, in words."""

from __future__ import annotations

import numpy as np

from unmix.model.capabilities import Groups
from unmix.selection.criteria import Score
from unmix.selection.likeness import CLEAR_EXCESS, structure
from unmix.selection.question import Question

DECISIVE = 10.0  # difference of an information criterion (Kass & Raftery 1995)
AGREEING_RATIO = 1.5  # of the largest vote to the smallest, up to which the first criterion decides


def vote(name: str, score: Score) -> int:
    """Index of the k that a criterion chooses."""
    known = np.flatnonzero(~np.isnan(score.value))
    value = np.where(np.isnan(score.value), np.inf, score.value)
    best = int(np.argmin(value))
    if name == "nll" and len(known):  # farthest below the line from first to last
        line = np.interp(known, known[[0, -1]], value[known[[0, -1]]])
        return int(known[np.argmax(line - value[known])])
    if name == "gap":
        return int(np.argmax(value <= value[best] + score.error[best]))
    if score.runs is not None and len(score.runs) > 1:
        apart = score.runs - score.runs[:, [best]]
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        return int(np.argmax(apart.mean(axis=0) <= error))
    return best


def answer(q: Question, chosen: list[str], scores: dict[str, Score], votes: dict[str, int]) -> tuple[int | None, str]:
    """The choice, or None, and the reason."""
    first = chosen[0]
    k, few, many = votes[first], min(votes.values()), max(votes.values())
    if many > max(AGREEING_RATIO * few, few + 1) and not _refined(votes):
        said = ", ".join(f"{c} says {v}" for c, v in votes.items())
        return None, f"the criteria disagree: {said}. Look at the table, or name one criterion."
    if k > 1 and isinstance(q.model, Groups) and not q.pairwise:
        excess = structure(q, k)
        if excess < CLEAR_EXCESS:
            side = "above" if excess > 0 else "below"
            return 1, (
                f"{first} alone would choose {k}, but data without groups, of the same mean and axes, gain as much or "
                f"nearly so: the data are {abs(excess):.1f} standard deviations {side} them, and at least "
                f"{CLEAR_EXCESS:.0f} above are needed."
            )
    return k, _sure(q, first, scores[first], votes)


def left_out(q: Question, sound: np.ndarray) -> str:
    """What the user should know about fits in which something collapsed."""
    if sound.all():
        return ""
    bad = np.flatnonzero(~sound)
    if sound.any():
        return f" Left out, because something collapsed: k = {', '.join(str(q.ks[i]) for i in bad)}."
    return f" Something collapsed in every fit, so do not trust this; {q.models[0].notes(q.fits[0].U)[0]}."


def _refined(votes: dict[str, int]) -> bool:
    """ICL counts groups, BIC the Gaussians that they are made of: fewer groups than Gaussians do not contradict."""
    return set(votes) == {"bic", "icl"} and votes["icl"] <= votes["bic"]


def _sure(q: Question, name: str, score: Score, votes: dict[str, int]) -> str:
    """Why this k, and how sure that is."""
    k = votes[name]
    i, value = q.ks.index(k), np.where(np.isnan(score.value), np.inf, score.value)
    others = np.delete(np.arange(len(value)), i)
    start = f"{name} chooses {k}"
    if not len(others) or not np.isfinite(value[others]).any():
        return f"{start}; no other k was judged."
    if k == 1:
        start = f"one part is enough for {name}" + ": no structure" * isinstance(q.model, Groups)
    j = int(others[np.argmin(value[others])])
    apart = value[j] - value[i]
    if name in ("aic", "bic", "icl"):
        words = "decisive" if apart > DECISIVE else "strong" if apart > 6 else "positive" if apart > 2 else "weak"
        tail = f"k = {q.ks[j]} comes next, {apart:.3g} higher: {words} evidence"
        if apart < 0:
            tail = f"it is {-apart:.3g} lower at k = {q.ks[j]}, too little to count, and bic prefers {k}"
    elif score.error.any():
        error = max(float(score.error[i]), float(score.error[j]), 1e-300)
        sure = "surely" if apart > 3 * error else "probably" if apart > error else "not surely"
        tail = f"k = {q.ks[j]} comes next, {abs(apart):.3g} {'worse' if apart >= 0 else 'better, within the error'}"
        tail += f" (standard error {error:.2g}): {sure} {k}"
    else:
        tail = f"k = {q.ks[j]} comes next, {abs(apart):.3g} worse"
    more = "".join(f"; {c} would choose {v}" for c, v in votes.items() if c != name and v != k)
    if k == q.ks[-1] and len(q.ks) > 1:
        more += f"; {k} is the largest k that was tried: try larger ones"
    return f"{start}; {tail}{more}."
