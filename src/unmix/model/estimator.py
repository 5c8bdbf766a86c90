"""The contract of a model, and the estimator written once.

A model is one file: hyper-parameters in `__init__`, and the pure methods `start`, `local`, `update`, with `publish` for
the names that users know. Everything that users call is here.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, _check_sample_weight, check_is_fitted

from unmix.engine import layout, tree
from unmix.engine.block import Block, Local
from unmix.engine.callbacks import Passes, watched
from unmix.engine.config import get_config
from unmix.engine.layout import Shape
from unmix.engine.loop import Job, fit_all
from unmix.engine.loop import fit as run_loop
from unmix.engine.rows import Rules, concatenate
from unmix.engine.runners import runner
from unmix.engine.sample import check_columns, distinct, generator, whole_block
from unmix.engine.sources import Source, as_source
from unmix.engine.trace import Fit, Step, picture
from unmix.io import pack

FORMAT = 1
MOST = 64 << 20  # bytes of statistics that a fitted estimator keeps for `partial_fit`


class Model(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator):
    """Base of all models: X ≈ Z U.

    A subclass states what kind of model it is through the class attributes below and implements `start`, `local`,
    `update` and `publish`; the other methods of the contract have defaults.

    Attributes
    ----------
    trace_ : list of Step
        One entry per pass: its number, the objective per row, seconds, rows per second, whether it counted.
    result_ : str
        Why the fit ended: "converged", "max_iter", "nonfinite" or "stopped".
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, where they have names.
    """

    sparse: ClassVar[bool] = False
    missing: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False
    stateful: ClassVar[bool] = False
    accelerate: ClassVar[bool] = False
    collect: ClassVar[bool | str] = False
    exempt: ClassVar[dict[str, str]] = {}  # law → why this model is exempt from it
    exempt_checks: ClassVar[dict[str, str]] = {}  # check of scikit-learn → why this model fails it

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _shape: Shape
    _parts_: Any
    _online_: tuple[Any, int, float]

    # ---------------------------------------------------------------- the contract

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where the hyper-parameters do not suit the shape of the data."""

    def route(self, shape: Shape) -> str:
        """How the data are used: "rows", "moments" (their moments are enough) or "direct" (a closed form)."""
        return "rows"

    def start(self, sample: Block, rng: np.random.Generator) -> Any:
        """First parts, from a sample of the rows."""
        raise NotImplementedError

    def grow(self, fit: Fit, rng: np.random.Generator) -> Any:
        """First parts from a fit of one part fewer, or None, the default: then none are made of it."""
        return None

    def merge(self, fit: Fit, rng: np.random.Generator) -> Any:
        """First parts from a fit of one part more, or None."""
        return None

    def seek(self, U: Any, visit: Callable[[str, Any], Iterator[Any]], rng: np.random.Generator) -> Any:
        """First parts made better by passes of their own: `visit(method, U)` gives a method's result block by block."""
        return U

    def local(self, U: Any, b: Block) -> Local:
        """Solve the z of a block given the parts, and give its additive statistics and its loss. Pure."""
        raise NotImplementedError

    def update(self, U: Any, stats: Any) -> Any:
        """Next parts from the total statistics. Pure."""
        raise NotImplementedError

    def solve(self, x: Any, w: np.ndarray | None, rng: np.random.Generator) -> Any:
        """Parts in closed form from the whole matrix (route "direct")."""
        raise NotImplementedError

    def penalty(self, U: Any) -> float:
        """Terms of the objective that are no sum over rows."""
        return 0.0

    def unit(self, U: Any, first: float) -> float:
        """What `tol` counts in, per row: by default a nat, as suits a log-likelihood."""
        return 1.0

    def settled(self, U: Any) -> bool | None:
        """Whether the parts say themselves that the fit has converged; None leaves it to the objective."""
        return None

    def tolerance(self) -> float:
        """Least improvement of the objective, in units, that is worth another pass."""
        return float(getattr(self, "tol", 0.0) or 0.0)

    def passes(self, route: str) -> int:
        """The most passes that a fit may take."""
        return int(getattr(self, "max_iter", 1))

    def restarts(self) -> int:
        """How many starts a fit makes."""
        n = getattr(self, "n_init", 1)
        if n == "auto":
            init = getattr(self, "init_params", None) or getattr(self, "init", None)
            return 10 if isinstance(init, str) and init == "random" else 1
        return int(n)

    def online(self) -> tuple[int, Callable[[int], float]] | None:
        """None for a batch fit, or (rows of a batch, its rate ρ as a function of the step)."""
        return None

    def made_of(self, U: Any, weight: float) -> Any:
        """Statistics of so many rows that these parts stand for, from which online steps begin.

        None, the default: the first batch replaces what the parts stand for.
        """
        return None

    def rate(self, step: int, weight: float, seen: float) -> float:
        """ρ of a `partial_fit` step: (step + 1)^−0.7, so that what early, poor parts left is forgotten."""
        return float((step + 1) ** -0.7)

    def block_rows(self, shape: Shape) -> int | None:
        """Rows of a block where the model knows better than the engine; a function of the shape alone."""
        return None

    def keep(self, z: Any) -> Any:
        """What `publish` wants of a block's z, of all that `local` left."""
        return z

    def sample_rows(self, shape: Shape) -> int:
        """How many rows `start` should see of large data."""
        return layout.sample_rows(shape)

    def publish(self, fit: Fit) -> None:
        """Set the fitted attributes; `fit.z` is None after an online step."""
        raise NotImplementedError

    def encode(self, U: Any, b: Block) -> Any:
        """Rows of `transform`."""
        return self.local(U, b).z

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """Rows of `inverse_transform`."""
        raise NotImplementedError

    def notes(self, U: Any) -> list[str]:
        """What a person should know of these parts: components that were reset, variances at their floor."""
        return []

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[Model, Any, Callable[[Any], None]]:
        """A small planted problem: a model, X, and a function that checks that the fitted model found the parts."""
        raise NotImplementedError

    # ---------------------------------------------------------------- fitting

    @with_callbacks
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
        self._fit(X, sample_weight, collect=False)
        return self

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

    @available_if(lambda self: hasattr(self, "assign"))
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit the model and return the rows' labels.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

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
        with self._all_or_nothing():
            self._validate_params()
            first = not hasattr(self, "_parts_")
            source, w, shape = self._open(X, sample_weight, reset=first)
            bare = self._bare(shape)
            U, stats, step, seen = None, None, 0, 0.0
            if first:
                bare.check(shape)
            elif not hasattr(self, "_online_"):
                raise ValueError(
                    f"the statistics of this fit were too large to keep (more than {MOST >> 20} MiB), so partial_fit "
                    "cannot go on from it: call partial_fit from the first batch on"
                )
            else:
                U, (stats, step, seen) = self._parts_, self._online_
            settings = get_config()
            work = runner(source, w, self._rules(source), settings)
            try:
                runs = self._runs(shape)
                if U is None:
                    sample = distinct(whole_block(source.read(0, source.n), w, self._rules(source)))
                    U = bare.start(sample, generator(self._seed(), "init"))
                totals, looked = work.sweep(bare, {0: U}, runs, False)
            finally:
                work.close()
            if first:
                check_columns(looked, self._rules(source))
            new, loss = totals[0]
            if not (np.isfinite(loss) and tree.finite(new)):
                raise ValueError("the batch gave statistics that are not finite; the model was left as it was")
            seen += shape.weight
            n = self._total(seen)
            if stats is None:
                stats = tree.scale(bare.made_of(U, n), 1.0 / n)  # None stays None
            new = tree.scale(new, 1.0 / shape.weight)  # per row, so that n may still grow
            if stats is not None:
                new = tree.blend(stats, new, self.rate(step, shape.weight, seen) if rate is None else rate)
            total = tree.scale(new, n)
            U = tree.settle(bare.update(U, total))
            loss *= seen / shape.weight  # as if all rows so far were like these
            objective = (loss + bare.penalty(U)) / seen
            trace = [*getattr(self, "trace_", [])[-999:], Step(step + 1, objective, 0.0, 0.0)]
            done = Fit(U, None, loss, objective, seen, round(seen), shape.dtype, trace, "max_iter", "online", total)
            self._shape = shape
            self._finish(done)
            self._online_ = (new, step + 1, seen)
        return self

    def _total(self, seen: float) -> float:
        """How many rows the statistics of online steps stand for: those seen so far, unless the user says."""
        return float(getattr(self, "total_samples", None) or seen)

    def _fit(self, X: Any, sample_weight: Any, collect: bool) -> Fit:
        """Open the source, run the engine, publish; on an error the estimator is as it was."""
        with self._all_or_nothing():
            self._validate_params()
            source, w, shape = self._open(X, sample_weight, reset=True)
            bare = self._bare(shape)
            bare.check(shape)
            settings = get_config()
            passes = Passes(self, bare, X, shape)
            with watched(passes, settings):
                done = run_loop(
                    bare, source, w, shape, seed=self._seed(), settings=settings, on_pass=passes, collect=collect
                )
            self._take(done, bare)
        self._warn(done)
        return done

    def _take(self, done: Fit, bare: Any) -> None:
        """Become what a fit found."""
        self._shape = bare._shape
        self.__dict__.pop("_online_", None)
        if "online" not in self.exempt and tree.nbytes(done.stats) <= MOST:  # where partial_fit goes on from
            self._online_ = (tree.scale(done.stats, 1.0 / done.weight), len(done.trace), done.weight)
        self._finish(done)

    def _finish(self, fit: Fit) -> None:
        """Publish the parts under the names that users know, in the precision of the data."""
        before = set(self.__dict__)
        self._parts_, self._dtype_ = fit.U, fit.dtype
        self.trace_, self.result_, self.n_iter_ = fit.trace, fit.result, max(1, len(fit.trace))
        self.publish(fit)
        for name in set(self.__dict__) - before | {k for k in self.__dict__ if k.endswith("_")}:
            if not name.startswith("_") and isinstance(self.__dict__[name], np.ndarray):
                self.__dict__[name] = tree.settle(self.__dict__[name], fit.dtype)

    def _warn(self, fit: Fit) -> None:
        name = type(self).__name__
        if fit.result == "max_iter" and self.tolerance() > 0:
            warnings.warn(
                f"{name} {fit.message}: raise max_iter, or tol if this is close enough",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif fit.result in ("nonfinite", "stopped"):
            warnings.warn(f"{name} {fit.message}", ConvergenceWarning, stacklevel=4)
        for note in self.notes(fit.U):
            warnings.warn(f"{name}: {note}", ConvergenceWarning, stacklevel=4)

    def _bare(self, shape: Shape) -> Any:
        """The hyper-parameters alone, for the engine: so a failed fit cannot touch self, and little travels."""
        bare = type(self)(**self.get_params(deep=False))
        bare._shape = shape
        return bare

    def _all_or_nothing(self) -> Any:
        return _AllOrNothing(self)

    def _seed(self) -> int:
        state = getattr(self, "random_state", None)
        if isinstance(state, (int, np.integer)):
            return int(state)
        if state is None:
            return int(np.random.default_rng().integers(2**31))
        return int(check_random_state(state).randint(2**31 - 1))

    def _rules(self, source: Any) -> Rules:
        return Rules(self.missing, self.nonnegative, type(self).__name__, source.names and tuple(source.names))

    def _runs(self, shape: Shape) -> list[layout.Run]:
        rows = get_config().block_rows or self.block_rows(shape) or layout.block_rows(shape)
        return layout.batches(shape, rows)[0]

    def _open(self, X: Any, sample_weight: Any, reset: bool) -> tuple[Any, np.ndarray | None, Shape]:
        """X as a source that this model accepts, the weights, and the shape."""
        source = as_source(X)
        name = type(self).__name__
        if source.sparse and not self.sparse:
            raise TypeError(
                f"Sparse data was passed for X, but {name} needs dense data. Use '.toarray()' to convert it to dense."
            )
        names = None if source.names is None else np.asarray(source.names, dtype=object)
        if reset:
            self.n_features_in_ = source.d
            if names is None or not all(isinstance(s, str) for s in names):
                self.__dict__.pop("feature_names_in_", None)
            else:
                self.feature_names_in_ = names
        else:
            if not isinstance(X, Source) and (names is None or hasattr(X, "columns")):
                _check_feature_names(self, X, reset=False)
            if names is not None and hasattr(self, "feature_names_in_") and list(names) != list(self.feature_names_in_):
                raise ValueError(
                    f"The feature names should match those that were passed during fit: got {list(names)[:5]}, "
                    f"expected {list(self.feature_names_in_)[:5]}"
                )
            if source.d != self.n_features_in_:
                raise ValueError(
                    f"X has {source.d} features, but {name} is expecting {self.n_features_in_} features as input: "
                    "pass the columns that it was fitted on"
                )
        w, weight = None, float(source.n)
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, _Length(source.n), dtype=np.float64, ensure_non_negative=True)
            weight = float(w.sum())
            if (w == 1).all():
                w = None
        shape = Shape(
            source.n, source.d, source.dtype, source.sparse, weight, True, source.in_memory, source.nbytes or 0
        )
        return source, w, shape

    # ---------------------------------------------------------------- rows of new data

    def transform(self, X: Any) -> Any:
        """Return the hidden rows Z of X at the fitted parts.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        return self._rows("encode", X)

    @available_if(lambda self: hasattr(self, "assign"))
    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        return np.asarray(self._rows("assign", X))

    @available_if(lambda self: hasattr(self, "log_density"))
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        log_likelihood : ndarray of shape (n,)
        """
        return np.asarray(self._rows("log_density", X))

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
        check_is_fitted(self)
        source, w, shape = self._open(X, sample_weight, reset=False)
        work = runner(source, w, self._rules(source), get_config())
        try:
            totals, _ = work.sweep(self._worker(), {0: self._parts_}, self._runs(shape), False)
        finally:
            work.close()
        return -float(totals[0][1]) / shape.weight

    def _rows(self, method: str, X: Any) -> Any:
        """A method of the contract on every block of X, as one array."""
        return concatenate(list(self._stream(method, X)))

    def _stream(self, method: str, X: Any) -> Iterator[Any]:
        """A method of the contract on every block of X, block by block in order."""
        check_is_fitted(self)
        source, _, shape = self._open(X, None, reset=False)
        work = runner(source, None, self._rules(source), get_config())
        try:
            yield from work.apply(self._worker(), self._parts_, method, self._runs(shape))
        finally:
            work.close()

    def _worker(self) -> Any:
        """What local steps on new data need of this estimator: hyper-parameters and shape, not the fitted arrays."""
        return self._bare(self._shape)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)  # type: ignore[attr-defined,no-any-return]

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: a zip of arrays and JSON that executes nothing when it is read.

        Parameters
        ----------
        path : str or path
            The file; what was there before is replaced in one step.
        """
        check_is_fitted(self)
        params = self.get_params(deep=False)
        if not isinstance(params.get("random_state"), (int, np.integer, type(None))):
            params["random_state"] = None  # a generator's state belongs to the process, not to the model
        state = {k: v for k, v in self.__dict__.items() if k not in params and not k.startswith("_skl_")}
        for name, value in params.items():
            if callable(value):
                raise pack.PackError(
                    f"{name} is a function, which the file cannot hold: set it to a name or an array first"
                )
        cls = type(self)
        name = f"{cls.__module__}:{cls.__qualname__}"
        pack.write(path, {"format": FORMAT, "class": name, "params": params, "state": state})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a model that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        model : Model
            Fitted, as it was when it was saved.
        """
        value = pack.read(path, own=cls.__module__)
        if not isinstance(value, dict) or "class" not in value:
            raise pack.PackError(f"{os.fspath(path)!r} holds no model")
        if value["format"] > FORMAT:
            raise pack.PackError(f"{os.fspath(path)!r} was written by a newer unmix: update unmix to read it")
        own = value["class"] == f"{cls.__module__}:{cls.__qualname__}"
        kind = cls if own else pack.find(value["class"], Model)
        if not issubclass(kind, cls):
            raise pack.PackError(f"{os.fspath(path)!r} holds a {kind.__name__}, not a {cls.__name__}: use unmix.load")
        model = kind(**value["params"])
        model.__dict__.update(value["state"])
        return model

    # ---------------------------------------------------------------- scikit-learn's protocol

    def _html_repr(self) -> str:
        """scikit-learn's picture of an estimator, and above it how the fit went."""
        html: str = super()._html_repr()
        return picture(self.trace_, self.result_) + html if hasattr(self, "trace_") else html

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
    source = as_source(X)
    jobs, bares = [], []
    for i, (model, weight) in enumerate(zip(models, weights, strict=True)):
        model._validate_params()
        _, w, shape = model._open(source, weight, reset=True)
        bares.append(model._bare(shape))
        bares[-1].check(shape)
        parts = None if first is None else [first[i]]
        jobs.append(Job(bares[-1], w, shape, seeds[i], first=parts, beat=np.inf if beat is None else beat[i]))
    fits = fit_all(jobs, source, replace(get_config(), checkpoint=None))
    for model, bare, done in zip(models, bares, fits, strict=True):
        if done is not None:
            model._take(done, bare)
    return fits


class _AllOrNothing:
    """Inside it an estimator changes; an exception puts it back as it was."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __enter__(self) -> None:
        self.before = copy.copy(self.estimator.__dict__)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None:
            callbacks = {k: v for k, v in self.estimator.__dict__.items() if k.startswith(("_skl_", "_callback"))}
            self.estimator.__dict__.clear()
            self.estimator.__dict__.update(self.before | callbacks)


class _Length:
    """Stands for X where only its length matters: nothing of a stream is loaded to check the weights."""

    def __init__(self, n: int) -> None:
        self.shape = (n, 1)
        self.dtype = np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model of any kind that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : Model
    """
    return Model.load(path)


__all__ = ["FORMAT", "Model", "NotFittedError", "load"]
