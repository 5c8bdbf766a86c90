"""Every criterion at every k, and what each votes for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unmix.selection.criteria import CRITERIA, Score
from unmix.selection.fits import collapsed
from unmix.selection.question import Question

DECISIVE = 10.0  # difference of an information criterion (Kass & Raftery 1995)


class Judgement(NamedTuple):
    """What the criteria say of the fits."""

    scores: dict[str, Score]  # of all fits
    sound: np.ndarray  # whether nothing of a fit collapsed
    votes: dict[str, int]  # k by criterion


def judge(q: Question, chosen: list[str], tell: Callable[[str], None] = lambda _: None) -> Judgement:
    """Ask the criteria about the fits of a question."""
    scores = {}
    sound = np.array([not collapsed(*q.known[k]) for k in q.ks])
    for name in chosen:
        tell(f"judging by {name}")
        scores[name] = CRITERIA[name](q)
    counted = {c: counting(c, s, sound) for c, s in scores.items()}
    votes = {c: q.ks[vote(c, s)] for c, s in counted.items()}
    if chosen == ["icl", "bic"]:  # among those that icl does not clearly reject, bic decides
        near = counted["icl"].value <= np.nanmin(counted["icl"].value) + DECISIVE
        votes["icl"] = q.ks[int(np.argmin(np.where(near, counted["bic"].value, np.inf)))]
    return Judgement(scores, sound, votes)


def counting(name: str, score: Score, sound: np.ndarray) -> Score:
    """The values that count: those of sound fits, if there are any; a bend needs all of the curve."""
    return score if name == "nll" or not sound.any() else score._replace(value=np.where(sound, score.value, np.nan))


def vote(name: str, score: Score) -> int:
    """Index of the k that a criterion chooses."""
    known = np.flatnonzero(~np.isnan(score.value))
    value = np.where(np.isnan(score.value), np.inf, score.value)
    best = int(np.argmin(value))
    if name == "icl":  # the fewest groups that are not clearly rejected
        return int(np.argmax(value <= value[best] + DECISIVE))
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
