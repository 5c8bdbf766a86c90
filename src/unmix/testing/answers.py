"""Laws of what a fit finds, whatever the rows come as: dense or sparse, complete or not, in either precision."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from unmix.engine.config import config
from unmix.model.capabilities import Imputes
from unmix.testing.cases import law
from unmix.testing.compare import Broken, close, demand, refuses
from unmix.testing.problem import Problem

DRAWS = 40  # of missing cells


@law("planted")
def the_planted_parts_are_found(p: Problem) -> None:
    """`fit` finds the parts that `example` planted, says why it ended, and counts its steps."""
    model = p.fitted()
    p.check(model)
    demand(model.result_ in ("converged", "solved", "max_iter"), f"result_ is {model.result_!r}")
    demand(len(model.trace_) <= model.n_iter_, "trace_ has more steps than n_iter_ says")
    numbers = [s.number for s in model.trace_]
    demand(numbers == list(range(1, len(numbers) + 1)), f"the steps of trace_ are numbered {numbers}")


@law("monotone", acceleration=(False, True))
def the_objective_never_gets_worse(p: Problem, acceleration: bool) -> None:
    """In no accepted step of any stage does the objective rise."""
    model = p.model(tol=0.0, max_iter=40)
    with config(acceleration=acceleration):
        model.fit(p.X)
    for name, trace in [("last", model.trace_), *((stage.name, stage.trace) for stage in model.stages_)]:
        objective = np.array([s.objective for s in trace if s.accepted and not np.isnan(s.objective)])
        rises = np.diff(objective) > 1e-9 * np.abs(objective[:-1]) + 1e-12
        if rises.any():
            i = int(rises.argmax())
            raise Broken(f"stage {name!r}: it rose from {objective[i]:.9g} to {objective[i + 1]:.9g}")


@law("sparse")
def dense_is_csr(p: Problem) -> None:
    """CSR rows give the answer of the same dense rows; a model that does not take them says what to do."""
    X, S = p.X, sp.csr_array(p.X)
    if not p.cls.sparse:
        refuses(TypeError, "toarray", p.model().fit, S)
        return
    with config(block_rows=64):
        dense, sparse = p.model().fit(X), p.model().fit(S)
    close(dense.parts, sparse.parts, rtol=1e-5, what="parts of dense and of CSR rows")
    close(dense.transform(X), sparse.transform(S), rtol=1e-5, what="transform of dense and of CSR rows")


@law("missing")
def nan_is_not_observed(p: Problem) -> None:
    """NaN is a cell that nobody observed: the parts are found without it, and a row of NaN has no say.

    A model that does not take missing cells says which cell is one; a column without a value is refused by name, unless
    the model takes such columns (`empty_columns`).
    """
    X, holes = p.X, p.X
    holes[np.random.default_rng(2).random(X.shape) < 0.03] = np.nan
    if not p.cls.missing:
        row, column = np.argwhere(np.isnan(holes))[0]
        refuses(ValueError, "contains NaN", p.model().fit, holes)
        refuses(ValueError, f"row {row}, column {column}", p.model().fit, holes)
        return
    fitted = p.model().fit(holes)
    p.check(fitted)
    demand(all(stage.result != "nonfinite" for stage in fitted.stages_), "a stage met a number that is not finite")
    empty_row = holes.copy()
    empty_row[3] = np.nan
    fitted = p.model().fit(empty_row)
    demand(np.isfinite(fitted.transform(empty_row)).all(), "transform of a row of NaN is not finite")
    empty_column = holes.copy()
    empty_column[:, 1] = np.nan
    if p.cls.empty_columns:
        fitted = p.model().fit(empty_column)
        demand(np.isfinite(fitted.transform(empty_column)).all(), "transform with a column of NaN is not finite")
    else:
        refuses(ValueError, "NaN only in column 1", p.model().fit, empty_column)
    model, U = p.early(X)
    alone = model.local(U, p.blocks(X)[0])
    joined = model.local(U, p.blocks(np.vstack([X, np.full((1, X.shape[1]), np.nan)]))[0])
    close(joined.loss, alone.loss, rtol=1e-9, what="the loss with a row of NaN and without it")


@law("imputation")
def imputation_knows_how_sure_it_is(p: Problem) -> None:
    """Imputed rows keep their observed cells, nine in ten 90 % intervals hold the cell, draws agree with the mean.

    Asked of models that impute (`Imputes`), on a tenth of the cells of the planted problem; of draws, that their mean
    and their standard deviation are those that the model expects. A model that cannot impute says why.
    """
    X, holes = p.X, p.X
    gone = np.random.default_rng(3).random(X.shape) < 0.1
    holes[gone] = np.nan
    if not issubclass(p.cls, Imputes) or not p.cls.missing:
        return
    model = p.model().fit(holes)
    if model.why_not():
        refuses(ValueError, model.why_not(), model.impute, holes)
        return
    mean, deviation = model.impute(holes, return_std=True)
    draws = model.impute(holes, n_draws=DRAWS, random_state=0)
    for what, rows in (("impute(X)", model.impute(holes)), ("impute(X, return_std=True)", mean), ("a draw", draws[0])):
        demand(np.array_equal(rows[~gone], X[~gone]), f"{what} changed an observed cell")
        demand(np.isfinite(rows).all(), f"{what} left a cell that is not finite")
    demand((deviation[~gone] == 0).all(), "the standard deviation of an observed cell is not 0")
    again = model.impute(holes, n_draws=1, random_state=0)[0]
    demand(np.array_equal(again, draws[0]), "the same random_state gave another draw")
    held = float((np.abs(X - mean)[gone] <= 1.645 * deviation[gone]).mean())
    slack = 3 * np.sqrt(0.09 / gone.sum()) + 0.02
    demand(abs(held - 0.9) < slack, f"{held:.1%} of the 90 % intervals of missing cells hold the cell")
    away = (draws[:, gone] - mean[gone]) / np.maximum(deviation[gone], 1e-300)
    bias, spread = float(np.abs(away.mean(axis=0)).mean()), float(np.sqrt((away**2).mean()))
    demand(bias < 1.5 / np.sqrt(DRAWS), f"draws are {bias:.2f} standard deviations from their mean, on average")
    demand(0.9 < spread < 1.1, f"draws vary by {spread:.2f} of the standard deviations that the model gives")


@law("float32")
def float32_in_float32_out(p: Problem) -> None:
    """Rows in float32 give fitted attributes and z in float32, the planted parts, and nearly the same objective."""
    double, single = p.fitted(), p.model().fit(p.X.astype(np.float32))
    p.check(single)
    kind = single.transform(p.X.astype(np.float32)).dtype
    demand(kind == np.float32, f"transform gives {kind}")
    for name, value in vars(single).items():
        public = name.endswith("_") and not name.startswith("_")
        if public and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            demand(value.dtype == np.float32, f"{name} is {value.dtype}")
    if not double.trace_:  # a closed form
        return
    last = double.trace_[-1].objective, single.trace_[-1].objective
    close(*last, rtol=1e-2, what="the last objective in float64 and in float32")
