"""The estimator, written once: everything that users call."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unmix.engine import layout, tree
from unmix.engine.callbacks import Callbacks
from unmix.engine.config import get_config
from unmix.engine.jobs import Job, fit_all
from unmix.engine.layout import Shape
from unmix.engine.learn import Learnt
from unmix.engine.rows import Rules, concatenate
from unmix.engine.runners import runner
from unmix.engine.sources import as_source
from unmix.engine.trace import Ended, Fit, Step
from unmix.model.contract import Contract
from unmix.model.files import ModelFiles
from unmix.model.found import Found
from unmix.model.opening import as_given, check_kind, check_names, handy, learn_names, shape_of, source_for, weights
from unmix.model.parameters import Parameters
from unmix.model.peer import Returns
from unmix.model.results import AllOrNothing, Results
from unmix.model.telling import warn_of_fit, warn_of_notes
from unmix.table.recipe import Recipe

KEPT_STATISTICS = 64 << 20  # bytes of them that a fitted estimator keeps for `partial_fit`
KEPT_STEPS = 1000  # of online learning in `trace_`


class Model(
    Contract,
    ModelFiles,
    Returns,
    Results,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    Found,
    Parameters,
):
    """Base of all models: X ≈ Z U.

    A subclass implements `start`, `local`, `update` and `publish`; the other methods of the contract (`contract.py`)
    have defaults.

    Attributes
    ----------
    trace_ : list of Step
        One entry per step of the last stage: its number, the objective per row, seconds, rows per second, whether it
        counted.
    result_ : str
        Why the fit ended: "converged", "solved" (there was a fixed number of steps to make), "max_iter", "nonfinite" or
        "stopped"; "running" after `partial_fit`.
    n_iter_ : int
        Steps of the last stage, at least 1 unless `max_iter` is 0.
    stages_ : list of Ended
        Name, result and trace of the stages before the last.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, where they have names.
    recipe_ : Recipe
        How the columns of a `Table` became numbers, where the model was fitted to one.
    """

    trace_: list[Step]
    result_: str
    n_iter_: int
    stages_: list[Ended]
    n_features_in_: int
    recipe_: Recipe
    _dtype_: np.dtype
    _parts_: Any
    _online_: tuple[Any, int, float]

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : anything with rows
            An array, a sparse matrix, a data frame, the path of a file or folder, a Dask collection, a function that
            returns an iterator of blocks. NaN means not observed, where the model takes missing values.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            How many times each row counts.

        Returns
        -------
        self
        """
        self.fit_with(X, sample_weight)
        return self

    @with_callbacks
    def fit_with(self, X: Any, sample_weight: Any, given: Any = None, collect: bool = False) -> Fit:
        """Fit, from what was given beside the parameters, and return what was found; the z of all rows if wanted."""
        with AllOrNothing(self):
            self._validate_params()
            source, w, shape = self._open(X, sample_weight, True, self.weighed_against)
            worker = self.at(shape)
            worker.given, worker.collect = given, collect or worker.collect
            worker.check(shape)
            settings, watch, first = get_config(), Callbacks(self, X), self._warm(worker)
            with watch.watching(settings):
                (done,) = fit_all([Job(worker, w, self._seed(), watch, *first)], source, settings)
            self._take(done)
        watch.ended(done)
        warn_of_fit(self, done, w)
        return done  # type: ignore[no-any-return]

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model and return the rows' z, as `fit(X)` followed by `transform(X)` does.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    @available_if(lambda self: "online" not in self.exempt)
    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, rate: float | None = None) -> Any:
        """Take one online step: stats ← (1 − ρ) stats + ρ (n/|b|) stats_b, then the parts from them.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; X is the new batch of rows.
        rate : float in (0, 1], optional
            The weight ρ of this batch; by default it falls from step to step.

        Returns
        -------
        self
        """
        if rate is not None and not 0 < rate <= 1:
            raise ValueError(f"rate={rate!r}: give a number above 0 and at most 1")
        with AllOrNothing(self):
            self._validate_params()
            first = not hasattr(self, "_parts_")
            before_parts = self.__dict__.get("_parts_")
            source, w, shape = self._open(X, sample_weight, first, self.weighed_against or "other batches")
            shape = shape._replace(online=True, counted=shape.counted + (0 if first else self._shape.counted))
            worker, learnt, before, stages = self.at(shape), Learnt(rate=rate), [], None
            if first:
                worker.check(shape)
            elif not hasattr(self, "_online_"):
                raise ValueError(
                    f"the statistics of this fit were too large to keep (more than {KEPT_STATISTICS >> 20} MiB), so "
                    "partial_fit cannot go on from it: call partial_fit from the first batch on"
                )
            else:
                learnt = Learnt(tree.settle(self._parts_, tree.DOUBLE), *self._online_, rate)
                before, stages = self.trace_[1 - KEPT_STEPS :], self.stages_
            settings = replace(get_config(), checkpoint=None)
            (done,) = fit_all([Job(worker, w, self._seed(), learnt=learnt)], source, settings)
            self._shape = done.shape
            self._finish(done._replace(trace=[*before, *done.trace], stages=stages or done.stages))
            self._online_ = learnt.stats, learnt.steps, learnt.seen
        if notes := self.notes(learnt.U):
            known = [] if first else self.notes(before_parts)
            warn_of_notes(self, [note for note in notes if note not in known])
        return self

    def _warm(self, worker: Any) -> tuple[list[Any] | None, float]:
        """Where a fit goes on from: the last parts, and the last objective; or nothing."""
        known = self.warm_start and hasattr(self, "_parts_") and self._shape.d == worker.shape.d
        U = worker.go_on(self._parts_) if known else None
        if U is None:
            return None, np.inf
        return [U], next((s.objective for s in reversed(self.trace_) if s.accepted), np.inf)

    def _take(self, done: Fit) -> None:
        """Become what a fit found."""
        self._shape = done.shape
        self.__dict__.pop("_online_", None)
        if "online" not in self.exempt and tree.nbytes(done.stats) <= KEPT_STATISTICS:  # where partial_fit goes on
            self._online_ = tree.scale(done.stats, 1.0 / done.shape.weight), len(done.trace), done.weight
        self._finish(done)

    def _finish(self, fit: Fit) -> None:
        """Publish the parts under the names that users know, in the precision of the data."""
        self._dtype_, self.trace_, self.result_, self.stages_ = fit.dtype, fit.trace, fit.result, fit.stages
        self.n_iter_ = max(1 if self.max_iter is None else min(1, self.max_iter), len(fit.trace))
        before = self.__dict__.get("_parts_")
        self.publish(fit)
        for name, value in self.__dict__.items():
            if isinstance(value, np.ndarray) and name.endswith("_") and not name.startswith("_"):
                self.__dict__[name] = tree.settle(value, fit.dtype)
        if self.__dict__.get("_parts_") is before:  # `publish` may have its own
            self._parts_ = fit.U

    def adopt(self, U: Any, shape: Shape, stats: Any) -> None:
        """Become a model of given parts; `stats`, per row, is what `partial_fit` goes on from."""
        with AllOrNothing(self):
            self._shape, self.n_features_in_ = shape, shape.d
            self._finish(Fit(U, None, np.nan, np.nan, shape, [], "solved", "parameters given", stats, []))
            self._online_ = stats, 1, 0.0

    def attributes_of(self, fit: Fit) -> dict[str, Any]:
        """The fitted attributes that this fit would give, for callbacks that ask for a model on the way."""
        shadow = copy.copy(self)
        shadow._shape = fit.shape
        with AllOrNothing(shadow):
            shadow._finish(fit)
        return {k: v for k, v in shadow.__dict__.items() if k.endswith("_") or k == "_shape"}

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, (int, np.integer)):
            return int(state)
        return secrets.randbits(31) if state is None else int(check_random_state(state).randint(2**31 - 1))

    def _runs(self, shape: Shape) -> list[layout.Run]:
        rows = get_config().block_rows or self.sizes(shape).block or layout.block_rows(shape)
        return layout.batches(shape, rows)[0]

    def _open(self, X: Any, sample_weight: Any, reset: bool, against: str = "") -> tuple[Any, np.ndarray | None, Shape]:
        """X as a source that this model accepts, the weights, and the shape; `against` what these are weighed."""
        X = self.rows_of(X, reset)
        source = source_for(self, X, reset)
        check_kind(self, source)
        if reset:
            learn_names(self, source)
        else:
            check_names(self, X, source)
        w, weight, counted = weights(sample_weight, source.n)
        return source, *handy(w, shape_of(self, source, weight, counted), against)

    # ---------------------------------------------------------------- rows of new data

    def transform(self, X: Any) -> Any:
        """Return the hidden rows Z of X at the fitted parts: scores, memberships, distances to centres.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        return self.rows("encode", X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows that hidden rows stand for: X ≈ Z U.

        Parameters
        ----------
        X : array of shape (n, k)
            Hidden rows, as `transform` returns them.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        check_is_fitted(self)
        wanted = self._n_features_out
        if wanted == 0 and np.shape(X)[1:] == (0,):  # a fit without a part
            return self.decode(self._parts_, np.asarray(X))
        source = as_source(X)
        if source.d != wanted:
            raise ValueError(f"X has {source.d} columns, but inverse_transform needs the {wanted} that transform gives")
        U = tree.settle(self._parts_, source.dtype)
        return self.decode(U, source.whole(get_config().budget))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the loss per row: for a density model the mean log-likelihood.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        loss, weight = self.loss_of(X, sample_weight)
        return -loss / weight

    # ---------------------------------------------------------------- what questions asked of any model need

    @property
    def parts(self) -> Any:
        """The fitted parts, U."""
        check_is_fitted(self)
        return self._parts_

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns of `fit`, or None where they had none."""
        names = self.__dict__.get("feature_names_in_")
        return None if names is None else list(names)

    def admit(self, X: Any, sample_weight: Any = None) -> tuple[Any, np.ndarray | None, Shape]:
        """X as a source that this model takes, the weights of its rows or None, and its shape; raise as `fit` would."""
        source, w, shape = self._open(X, sample_weight, reset=True)
        return source, *as_given(w, shape)

    def weigh(self, X: Any, sample_weight: Any = None) -> tuple[np.ndarray | None, float]:
        """The weights of the rows of X, None where every row counts once, and their sum."""
        _, w, shape = self._open(X, sample_weight, reset=False)
        w, shape = as_given(w, shape)
        return w, shape.weight

    def loss_of(self, X: Any, sample_weight: Any = None) -> tuple[float, float]:
        """The loss of the rows of X at the fitted parts, Σ w loss, and Σ w; X is read once."""
        check_is_fitted(self)
        source, w, shape = self._open(X, sample_weight, reset=False)
        work, U = runner(source, w, Rules.of(self, source), get_config()), tree.settle(self._parts_, tree.DOUBLE)
        try:
            totals, _ = work.sweep(self.for_new_rows(), {0: U}, self._runs(shape), False)
        finally:
            work.close()
        loss = float(totals[0][1])
        if np.isnan(loss):
            raise ValueError(
                f"the loss of X is beyond {shape.dtype}: are its units those of the rows that the model was fitted to?"
            )
        return loss * shape.unit, shape.weight * shape.unit

    def check_parameters(self, shape: Shape) -> None:
        """Raise as `fit` would where parameters are wrong, or do not suit data of this shape."""
        self._validate_params()
        self.at(shape).check(shape)

    def rows(self, method: str, X: Any, given: Any = None) -> Any:
        """A method of the contract, as "encode" or "assign", on every block of X at the fitted parts, as one array."""
        return concatenate(list(self.stream(method, X, given)))

    def stream(self, method: str, X: Any, given: Any = None) -> Iterator[Any]:
        """The same block by block, in order, X never held in memory. The method finds `given` on the working copy."""
        check_is_fitted(self)
        source, _, shape = self._open(X, None, reset=False)
        vars(worker := self.for_new_rows())["given"] = given
        work = runner(source, None, Rules.of(self, source), get_config())
        try:
            yield from work.apply(worker, self._parts_, method, self._runs(shape))
        finally:
            work.close()

    def for_new_rows(self) -> Any:
        """The working copy that methods on new rows travel with."""
        return self.at(self._shape)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)  # type: ignore[attr-defined,no-any-return]

    # ---------------------------------------------------------------- scikit-learn's protocol

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parts_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse
        tags.input_tags.allow_nan = self.missing
        tags.input_tags.positive_only = self.nonnegative
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def fit_together(
    models: list[Any],
    X: Any,
    weights: list[Any],
    seeds: list[int],
    first: list[Any] | None = None,
    beat: list[float] | None = None,
) -> list[Any]:
    """Fit unfitted models to the same rows, which each pass reads once for all; `first` parts where they are known.

    A model that will not get below an objective to `beat` stays unfitted, and None is in its place.
    """
    source, jobs = as_source(X), []
    for i, (model, weight) in enumerate(zip(models, weights, strict=True)):
        model._validate_params()
        source, w, shape = model._open(source, weight, True, model.weighed_against)
        worker = model.at(shape)
        worker.check(shape)
        parts = None if first is None else [first[i]]
        jobs.append(Job(worker, w, seeds[i], first=parts, beat=np.inf if beat is None else beat[i]))
    fits = fit_all(jobs, source, replace(get_config(), checkpoint=None))
    for model, done in zip(models, fits, strict=True):
        if done is not None:
            with AllOrNothing(model):
                model._take(done)
    return fits
