"""Laws of what a fit finds, whatever the rows come as: dense or sparse, complete or not, in either precision."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from unmix.engine.config import config
from unmix.testing.cases import law
from unmix.testing.compare import Broken, close, demand, refuses
from unmix.testing.problem import Problem


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

    A model that does not take missing cells says which cell is one; a column without a value is refused by name.
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
    refuses(ValueError, "NaN only in column 1", p.model().fit, empty_column)
    model, U = p.early(X)
    alone = model.local(U, p.blocks(X)[0])
    joined = model.local(U, p.blocks(np.vstack([X, np.full((1, X.shape[1]), np.nan)]))[0])
    close(joined.loss, alone.loss, rtol=1e-9, what="the loss with a row of NaN and without it")


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
