"""Which candidates fill cells best, by cells that were held out, and how sure their combination is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from unmix.engine.draws import generator
from unmix.imputation.candidates import BASE, DENSITIES, MEAN, SHRUNK, fit, guesses, possible, some_rows
from unmix.imputation.columns import Columns
from unmix.imputation.stacking import (
    Held,
    Spread,
    calibrated,
    gather,
    hidden,
    honest,
    joined,
    odds,
    weigh,
)
from unmix.maths.arrays import Array

CHOICE_ROWS = 1500  # of which candidates are chosen, at most
ALONE = 1.02  # times less error must one candidate alone have, chosen without the cells, to be taken
LEAST = 0.02  # weight in some column, below which a candidate is left out
COMBINATION = "combination"
SURE = 2.0  # standard errors by which a law must tell cells better than a plainer one, to be drawn from
BETTER = 0.05  # of the squared error of a law's means, by which the guess of all must be better, to be drawn about
FARTHEST = 5.0  # deviations: a cell further out counts as one that far


class Choice(NamedTuple):
    """What held-out cells say."""

    candidates: list[str]  # that have a weight
    weights: Annotated[np.ndarray, Array("g c", low=0.0, high=1.0)]
    spread: Spread
    scores: dict[str, float]  # mean square error by candidate, in that of the column means
    chosen: str
    held: Held | None
    guess: np.ndarray  # what the chosen puts into held-out cells
    law: str = ""  # the density that draws are made by; "" where there is none
    about: bool = False  # whether draws lie about what the candidates say together, not about the law's own means


def choose(
    y: np.ndarray, columns: Columns, groups: Sequence[np.ndarray], seed: int, tell: Callable[..., None]
) -> Choice:
    """Hide cells, let every candidate fill them, and weigh the candidates."""
    y = y[some_rows(y, groups, CHOICE_ROWS, generator(seed, "choice"))]
    names, parts = possible(int((~np.isnan(y).all(axis=1)).sum()), len(groups)), []
    masks, likely = (hidden(y, groups, seed), odds(y, groups)) if len(names) > 1 else ([], np.ones((0, 0)))
    for f, mask in enumerate(masks):
        rows = mask.any(axis=1)
        if rows.any():
            holed = y.copy()
            for g, own in enumerate(groups):
                holed[np.ix_(mask[:, g], own)] = np.nan
            fits = fit(names, holed, columns, groups, seed + f, lambda what, f=f: tell(f"fold {f + 1}: {what}"))
            guess = guesses(fits, names, holed[rows], columns)
            parts.append(gather(y[rows], mask[rows], groups, f, likely[rows], guess))
    if not parts:
        return unlearnt(groups, columns)
    held = joined(parts)
    total = max(squares(held, np.zeros(1)), 1e-300)
    error = {name: squares(held, held.mean[:, c]) for c, name in enumerate(names)}
    mixed = honest(held, len(groups))
    scores = {COMBINATION: squares(held, mixed) / total}
    scores |= {name: e / total for name, e in sorted(error.items(), key=lambda item: item[1])}
    best = min(names, key=error.__getitem__)
    chosen = COMBINATION if scores[COMBINATION] <= ALONE * picked(held) / total else best
    if chosen == COMBINATION:
        weights = weigh(held, len(groups), np.ones(len(held.truth), bool))
    else:
        weights, mixed = (
            np.tile(np.array(names) == best, (len(groups), 1)).astype(float),
            held.mean[:, names.index(best)],
        )
    weights, keep = pruned(weights)
    kept, law = [name for name, k in zip(names, keep, strict=True) if k], lawful(held, names, mixed)
    held = held._replace(mean=held.mean[:, keep], deviation=held.deviation[:, keep])
    return Choice(kept, weights, calibrated(held, weights, mixed), scores, chosen, held, mixed, *law)


def squares(held: Held, guess: np.ndarray) -> float:
    """Squared error of guesses, each by its weight."""
    return float((held.weight * (held.truth - guess) ** 2).sum())


def picked(held: Held) -> float:
    """Squared error of the candidate that is best in the other folds."""
    square, folds = held.weight[:, None] * (held.truth[:, None] - held.mean) ** 2, np.unique(held.fold)
    by = np.array([square[held.fold == f].sum(axis=0) for f in folds])
    return float(sum(own[np.argmin(by.sum(axis=0) - own)] for own in by))


def pruned(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights without candidates that hardly count, and which are left."""
    keep = weights.max(axis=0) >= LEAST
    weights = weights[:, keep]
    return weights / weights.sum(axis=1, keepdims=True), keep


def unlearnt(groups: Sequence[np.ndarray], columns: Columns) -> Choice:
    """Too little was seen to tell columns from each other: the means."""
    many = len(groups)
    spread = Spread(np.ones(many), np.ones(many), np.ones(many))
    return Choice([MEAN], np.ones((many, 1)), spread, {MEAN: 1.0}, MEAN, None, np.zeros(0))


def lawful(held: Held, names: Sequence[str], guess: np.ndarray) -> tuple[str, bool]:
    """The density to draw by, and whether about the guess of all instead of its own.

    Densities are judged by log σ² + (x − f)²/σ² at held-out cells: squared errors alone prefer what is drawn in. Of
    those that are not surely worse the plainest is taken, of which the least may be wrong where nothing was seen.
    """
    share = held.weight / held.weight.sum()

    def misfit(c: int) -> np.ndarray:
        size = np.maximum(held.deviation[:, c], 1e-3)
        return np.asarray(2.0 * np.log(size) + np.minimum(np.abs(held.truth - held.mean[:, c]) / size, FARTHEST) ** 2)

    def gain(before: np.ndarray, after: np.ndarray) -> float:
        mean = float(share @ (before - after))
        return mean if mean > SURE * float(np.sqrt((share**2) @ (before - after - mean) ** 2)) else 0.0

    by = {name: misfit(c) for c, name in enumerate(names) if name in DENSITIES and name != SHRUNK}
    law = max(by, key=lambda name: (gain(by[BASE], by[name]), name == BASE))
    own, all_of_them = ((held.truth - m) ** 2 for m in (held.mean[:, names.index(law)], guess))
    return law, gain(own, all_of_them) > BETTER * float(share @ own)


def reason(choice: Choice) -> str:
    """Why so, in a sentence."""
    if choice.held is None:
        return "there are too few rows or columns to hold cells out: empty cells get the mean of their column"
    alone = {k: v for k, v in choice.scores.items() if k != COMBINATION}
    best = min(alone, key=alone.__getitem__)
    cells = f"{len(choice.held.truth):,} held-out cells"
    if choice.chosen != COMBINATION:
        return f"{best!r} alone fills {cells} best, with {share(alone[best])} of the column means' squared error"
    mean = choice.weights.mean(axis=0)
    order = np.argsort(-mean)[:3]
    parts = ", ".join(f"{choice.candidates[c]} {100 * mean[c]:.0f}%" for c in order)
    return (
        f"together they fill {cells} with {share(choice.scores[COMBINATION])} of the column means' squared error, "
        f"the best alone, {best!r}, with {share(alone[best])}; most weight: {parts}"
    )


def share(value: float) -> str:
    """A share in per cent."""
    return f"{100 * value:.1f}%"
