"""Laws of the local step and its statistics: they add up, weights count rows, nothing is changed, steps learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from unmix.engine import tree
from unmix.engine.config import config
from unmix.engine.draws import generator
from unmix.testing.cases import law
from unmix.testing.compare import close, demand
from unmix.testing.problem import Problem, total


@law("additive")
def statistics_add(p: Problem) -> None:
    """The statistics and the loss of rows are the sums of those of any blocks that they are cut into."""
    X = p.X
    model, U = p.early(X)
    n = len(X)
    whole = total(model, U, p.blocks(X))
    parts = total(model, U, p.blocks(X, (0, 1, n // 3, n // 2, n)))
    close(whole, parts, what="(stats, loss) of all rows and the sum over blocks")


@law("weights")
def weight_two_is_the_row_twice_and_weight_zero_is_no_row(p: Problem) -> None:
    """`local` gives rows of weight 0, 1 and 2 the statistics of rows that are there so many times."""
    X, w = p.X, counts(p)
    twice = np.repeat(X, w.astype(int), axis=0)
    model, U = p.early(twice)
    weighted, repeated = total(model, U, p.blocks(X, w=w)), total(model, U, p.blocks(twice))
    close(weighted, repeated, what="(stats, loss) of weighted and of repeated rows")


@law("weights")
def a_weighted_fit_is_a_fit_of_repeated_rows(p: Problem) -> None:
    """A fit with weights 0, 1 and 2 finds the parts of a fit to rows that are there so many times, in any order."""
    w = counts(p)
    order = np.random.default_rng(2).permutation(int(w.sum()))
    weighted = p.model(max_iter=20).fit(p.X, sample_weight=w)
    repeated = p.model(max_iter=20).fit(np.repeat(p.X, w.astype(int), axis=0)[order])
    close(weighted.parts, repeated.parts, rtol=1e-4, what="parts of weighted and of repeated rows")


def counts(p: Problem) -> np.ndarray:
    """A weight of 0, 1 or 2 for every row."""
    return np.random.default_rng(1).integers(0, 3, size=len(p.X)).astype(float)


@law("online")
def online_with_rate_one_on_all_rows_is_a_batch_step(p: Problem) -> None:
    """`partial_fit` of all rows with rate 1 is a pass of `fit`, from the start and from given parts."""
    X, model = p.X, p.model(max_iter=1, n_init=1)
    with config(acceleration=False):
        batch = p.model(max_iter=1, n_init=1).fit(X)
        online = p.model(max_iter=1, n_init=1).partial_fit(X, rate=1.0)
    close(batch.parts, online.parts, rtol=1e-6, what="parts of one pass and of one online step")
    before = online.parts
    online.partial_fit(X, rate=1.0)
    step = model.at(online.shape)
    pass_ = step.update(before, step.local(before, p.blocks(X)[0]).stats)
    close(pass_, online.parts, rtol=1e-6, what="parts of a second pass and of a second online step")


@law("pure")
def nothing_passed_in_is_changed(p: Problem) -> None:
    """`local`, `update`, `encode`, `step` and `hand` change neither what they are given nor the model, nor `fit` X."""
    X = p.X
    model, U = p.early(X)
    b = p.blocks(X, w=np.full(len(X), 2.0))[0]
    before = pickle.dumps((U, b, vars(model)))
    out = model.local(U, b)
    again = b._replace(z=out.z)
    held = pickle.dumps((U, again, out.stats, vars(model)))
    model.local(U, again)
    if model in model.stages(model.shape):
        model.update(U, out.stats)
    model.encode(U, b)
    demand(pickle.dumps((U, b, vars(model))) == before, "the parts, the block or the model were changed")
    demand(pickle.dumps((U, again, out.stats, vars(model))) == held, "the statistics, z or the model were changed")
    for stage in model.stages(model.shape):
        if stage.over in ("sample", "whole"):
            rounds_are_pure(stage, b)
    frozen = p.X
    frozen.setflags(write=False)
    model.fit(frozen)
    demand(np.array_equal(frozen, p.X), "fit changed X")


def rounds_are_pure(stage: Any, b: Any) -> None:
    """Rounds change neither the parts nor what the engine holds for them, but for a field `room` to work in."""
    before = pickle.dumps((stage, b))
    data = stage.open(b, generator(0, "open"))

    def told() -> bytes:
        return pickle.dumps(data._replace(room=None) if "room" in (tree.names(data) or ()) else data)

    opened = told()
    U = stage.start(None, data, generator(0, "init"))
    for step in range(2 if stage.most is None else min(2, stage.most)):
        held = pickle.dumps(U)
        new, _ = stage.step(U, data, generator(0, "step", step))
        demand(pickle.dumps(U) == held, f"`step` of stage {stage.name!r} changed the parts")
        U = new
    stage.hand(U, data)
    demand(told() == opened, f"stage {stage.name!r} changed what `open` holds")
    demand(pickle.dumps((stage, b)) == before, f"stage {stage.name!r} or the rows were changed")
