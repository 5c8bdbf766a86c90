"""A fit for every k: from the model's own starts, then from the parts of its neighbours, cut in two or joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unmix.engine.draws import generator
from unmix.engine.start import gain_of
from unmix.model import fit_together
from unmix.selection.question import Question

ROUNDS = 3  # of cutting parts in two and joining them


def fitting(q: Question, shape: Any) -> tuple[list[int], str]:
    """The k that the data and the other parameters allow; a sentence on those that they do not."""
    possible, refused = [], {}
    for k in q.ks:
        try:
            q.sized(k).check_parameters(shape)
            possible.append(k)
        except ValueError as error:
            refused[k] = error
    if not possible:
        raise next(iter(refused.values()))
    return possible, f" Not possible: k = {', '.join(map(str, refused))}." if refused else ""


def all_fits(q: Question, tell: Callable[[str], None]) -> tuple[list[Any], list[Any]]:
    """A fit for each k: from the model's own starts, from one part fewer cut in two, from one part more joined."""
    ks, w, seed = q.ks, q.w, q.seed
    models = [q.sized(k) for k in ks]
    tell(f"fitting k = {ks[0]} to {ks[-1]}")
    fits = fit_together(models, q.source, [w] * len(ks), [seed] * len(ks))
    fresh = {"grow": set(ks), "merge": set(ks)}  # fits that were not yet a start of their neighbours
    for name, step in (("grow", 1), ("merge", -1)) * ROUNDS:
        first = {}
        for i, k in enumerate(ks):
            if k - step in fresh[name]:
                near = fits[ks.index(k - step)]
                parts = models[i].neighbour(near, name == "grow", generator(seed, name, i))
                if parts is not None:
                    first[i] = parts
        fresh[name].clear()
        if not first:
            continue
        tell(f"{len(first)} fits from neighbours' parts")
        again = [q.sized(ks[i]) for i in first]
        beat = [np.inf if models[i].notes(fits[i].U) else fits[i].objective for i in first]
        found = fit_together(again, q.source, [w] * len(again), [seed] * len(again), list(first.values()), beat)
        for i, model, fit, before in zip(first, again, found, beat, strict=True):
            if fit is None or rank(model, fit) >= rank(models[i], fits[i]):
                continue
            if before - fit.objective > gain_of(model.goal(fit.U, fit.trace[0].objective)):  # less is the same optimum
                fresh["grow"].add(ks[i])
                fresh["merge"].add(ks[i])
            models[i], fits[i] = model, fit
    return models, fits


def rank(model: Any, fit: Any) -> tuple[bool, float]:
    """Low is good: a fit of which something collapsed may have any likelihood, and comes last."""
    return bool(model.notes(fit.U)), fit.objective


def fitted(q: Question, k: int) -> Any:
    """The fitted model of k parts."""
    if k in q.ks:
        return q.models[q.ks.index(k)]
    model = q.sized(k).set_params(**q.free)
    fit_together([model], q.source, [q.w], [q.seed])
    return model
