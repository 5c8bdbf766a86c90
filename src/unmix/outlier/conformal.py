"""Calibrated outlier detection: every row is scored by a model that has not seen it, and compared with such scores.

The n rows are dealt to `cv` folds at random; s_i is the score of row i under the model fitted without its fold. Then

    a training row    p_i  = (1 + #{j ≠ i: s_j ≥ s_i}) / n
    a new row         p(x) = (1 + Σ_f #{j in fold f: s_j ≥ s^f(x)}) / (n + 1)              s^f: the model without fold f

*Guarantee.* If row i is exchangeable with the other rows, then so is s_i with the other scores, because folds are dealt
at random: P(p_i ≤ α) ≤ α, whatever the model and the distribution. For a new row the same holds fold by fold; of the
sum over folds P(p ≤ α) ≤ 2α and a little is proved (Vovk 2015; Barber, Candès, Ramdas & Tibshirani 2021). Where the
models of the folds agree p is uniform; where they differ it is pulled to the middle, so that small ones are too large:
for three clusters by k-means (cv=3) in 59 rows of two columns of Student's t with 5 degrees of freedom, P(p ≤ 0.1) =
0.08 and P(p ≤ 0.9) = 0.98 (1500 draws).

*Cells.* The same within each column: s_ij is how strange cell j of row i is given the others of its row, by the model
without the row's fold, and it is compared with those of column j that were observed, n_j instead of n.

*Limits.* It holds on average over training sets and rows, not for each one. No p-value is below 1/(n + 1). Outliers
among the training rows make p-values larger, never smaller than they should be: strange rows then hide each other. In
particular the p-values of the training rows are the ranks of their scores: a share α of them is at most α whether there
are outliers or not, and no procedure can control a false discovery rate by them. What finds outliers among the training
rows is the tail of their scores (`unmix.outlier.tail`), which takes that tail to be smooth: no guarantee, but noise of
many kinds was tried.
"""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.engine.site import Documented
from unmix.engine.sources import Source
from unmix.maths.arrays import Array
from unmix.model.adapter import opened, pairwise, streams
from unmix.model.files import Files
from unmix.model.opening import learn_recipe, tabled
from unmix.outlier.density import RowDensity
from unmix.outlier.reasons import Reason, odd_cells
from unmix.outlier.scores import cell_spread, dense, pieces, row_scores, spread, strangeness
from unmix.outlier.tail import benjamini_hochberg, tail_p_values
from unmix.outlier.units import wrong_units
from unmix.outlier.views import QUESTIONS, seen

STRANGEST = 5  # rows that are named in a notebook


class OutlierDetector(Files, OutlierMixin, Documented, BaseEstimator):
    """Outliers by any model, with p-values: no share of outliers has to be guessed.

    Parameters
    ----------
    model : estimator, optional
        Any model of unmix, or `Select` of one, fitted or not: clones of it are fitted. Densities (`score_samples`) and
        clusterings (`transform`) of scikit-learn for rows in memory. Not those of a precomputed matrix. By default
        `RowDensity`: each column by itself, mixtures of four and eight Gaussians, and the distances to the tenth and
        twentieth neighbour.
    cv : int, default=10
        Folds, each of which is scored by a model fitted to the others.
    alpha : float, default=0.05
        Level of `predict`.
    control : {"fdr", "row"}, default="fdr"
        What alpha is meant to bound: "fdr" the expected share of ordinary rows among those called outliers, by
        Benjamini and Hochberg's rule over the rows of one call; "row" the probability that a row like the others is
        called an outlier. For new rows both hold if the training rows are ordinary; "fdr" of training rows is an
        estimate from the tail of their scores, without a guarantee (see Notes).
    cells : bool, default=False
        Whether cells are judged as well as rows, by a model that `cell_scores` takes.
    by : {None, "density", "reconstruction", "hotelling"}, default=None
        What rows are judged by where a model knows several, as for `scores`: PCA and factor analysis by their density
        (None), by what lies outside their plane, or by T² within it. Cells by what lies outside, or given the others.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of the models where they have none of their own.

    Attributes
    ----------
    p_values_ : ndarray of shape (n,)
        Of the training rows.
    tail_p_values_ : ndarray of shape (n,)
        Of the training rows, those far out by the tail of the scores: what `fit_predict` decides by where
        `control="fdr"`.
    scores_ : ndarray of shape (n,)
        Scores of the training rows, each by the model that has not seen it; larger is stranger.
    cell_p_values_, cell_scores_ : ndarray of shape (n, d)
        The same of the training cells, where `cells=True`; NaN where a cell was not observed.
    models_ : list of estimators
        The model of each fold, fitted without it.
    folds_ : ndarray of int of shape (n,)
        The fold of each training row.
    offset_ : float
        `decision_function` is `score_samples` less this, the largest p-value of an outlier at level alpha per row.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, where they have names.

    Notes
    -----
    `fit_predict` judges the training rows by models that have not seen them, `predict` takes every row for a new one:
    on the training rows the two may differ. With `control="row"` a share alpha of the training rows is always found,
    outliers or not. With `control="fdr"` a training row is found where it lies further out than the other scores let
    expect, so in pure noise hardly ever: in at most 3 of 100 draws of Gaussian, uniform, lognormal, integer and
    Student's t columns (5 degrees of freedom) was anything found. That is measured, not proved: the tail of the
    ordinary scores must be smooth, outliers must be few beside it (about a tenth of the rows), and those not far beyond
    it are missed.

    `predict` with `control="fdr"` bounds the expected share of false ones among the rows of a call if the training rows
    are ordinary ones; outliers among them make it find less. Since no p-value is below 1/(n + 1), k outliers among N
    new rows can be found from at least N / (alpha k) − 1 training rows.

    NaN goes to the model as it is; a density has fewer terms for a row with fewer cells, which then seldom looks
    strange. Rows from files and streams are never held in memory, except by the default model; with `cells=True` a
    number for each of their cells is. A wrong cell makes others of its row look strange: of one row, look at the
    strangest first.

    References
    ----------
    Vovk (2015), Cross-conformal predictors, Annals of Mathematics and Artificial Intelligence 74.
    Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the jackknife+, Annals of Statistics 49.
    Bates, Candès, Lei, Romano & Sesia (2023), Testing for outliers with conformal p-values, Annals of Statistics 51.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix.outlier import OutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> detector = OutlierDetector(alpha=0.01, random_state=0).fit(X)
    >>> detector.predict([[0.0, 0, 0], [4, -4, 4]]).tolist()
    [1, -1]
    >>> detector.p_values([[4.0, -4, 4]]).round(3).tolist()
    [0.002]
    """

    scores_: Annotated[np.ndarray, Array("n", "x")]
    p_values_: Annotated[np.ndarray, Array("n", low=0.0, high=1.0)]
    tail_p_values_: Annotated[np.ndarray, Array("n", low=0.0, high=1.0)]
    cell_scores_: Annotated[np.ndarray, Array("n d", "x", maybe=True)]
    cell_p_values_: Annotated[np.ndarray, Array("n d", "x", maybe=True)]
    folds_: Annotated[np.ndarray, Array("n", "i", 0, "f-1")]
    offset_: Annotated[float, Array(low=0.0, high=1.0)]
    models_: list[Any]
    _units_: list[Any]
    _cell_units_: list[Any]

    exempt_checks: ClassVar[dict[str, str]] = {
        "check_outliers_fit_predict": "fit_predict scores training rows by models that have not seen them",
        "check_outliers_train": "predict bounds a share among the rows of a call, decision_function judges row by row",
    }

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "model": [HasMethods(["fit"]), None],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "control": [StrOptions({"fdr", "row"})],
        "cells": ["boolean"],
        "by": [StrOptions(set(QUESTIONS)), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model: Any = None,
        *,
        cv: int = 10,
        alpha: float = 0.05,
        control: str = "fdr",
        cells: bool = False,
        by: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.cv = cv
        self.alpha = alpha
        self.control = control
        self.cells = cells
        self.by = by
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> OutlierDetector:
        """Fit a model without each fold, and score the fold by it.

        Parameters
        ----------
        X : anything with rows
            As for the model's `fit`.
        y : ignored
            For pipelines.

        Returns
        -------
        self
        """
        self._validate_params()
        source = self._open(X, reset=True)
        self._check_model(source)
        n = source.n
        if n < 2:
            raise ValueError(f"n_samples={n}: a row is judged by the others, so give at least 2 rows, better hundreds")
        rng = check_random_state(self.random_state)
        folds = rng.permutation(n) % min(self.cv, n)
        self.models_, self._units_, self._cell_units_, self.folds_ = [], [], [], folds
        scores, cell = np.empty(n), np.empty((n, source.d) if self.cells else (0, 0))
        with progress_line(type(self).__name__, get_config()) as tell:
            for f in range(folds.max() + 1):
                tell(f"model {f + 1} of {folds.max() + 1}")
                self._fit_without(source, folds == f, self._model(rng.randint(2**31 - 1)), scores, cell)
        if np.isnan(scores).any():
            raise ValueError(f"{np.isnan(scores).sum()} rows have no score: look for infinities or all-empty rows in X")
        self.scores_ = scores
        self.p_values_ = exceed(scores, scores, rounding(source)) / n  # a row exceeds itself: the 1
        self.tail_p_values_ = tail_p_values(scores, self.p_values_)
        for name in ("cell_scores_", "cell_p_values_"):
            self.__dict__.pop(name, None)
        if self.cells:
            self.cell_scores_ = cell
            self.cell_p_values_ = exceed_columns(cell, cell, rounding(source)) / observed(cell)
        largest = math.floor(self.alpha * (n + 1) * (1 + 1e-12))
        self.offset_ = largest / (n + 1)
        if largest == 0:
            warnings.warn(
                f"no p-value from {n} rows is below 1/{n + 1}, so none is at most alpha={self.alpha}: no new row can "
                "be called an outlier; give more rows or raise alpha",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _fit_without(self, source: Any, out: np.ndarray, model: Any, scores: np.ndarray, cell: np.ndarray) -> None:
        """Fit a model without some rows, and write their scores to their places."""
        if source.in_memory:
            rest, mine = (source.take(np.flatnonzero(rows)) for rows in (~out, out))
            model.fit(rest)
            keep, written = None, np.ones(out.sum(), bool)
        else:  # a stream is never taken apart: rows of weight 0 do not count
            rest = mine = source
            model.fit(rest, sample_weight=(~out).astype(np.float64))
            keep, written = ~out, out
        self.models_.append(model)
        view = seen(model, self.by)
        self._units_.append(spread(view, rest, keep))
        scores[out] = row_scores(view, mine, self._units_[-1])[written]
        if self.cells:
            self._cell_units_.append(cell_spread(view, rest, keep))
            cell[out] = strangeness(view, mine, self._cell_units_[-1])[written]

    def p_values(self, X: Any) -> np.ndarray:
        """Return the p-values of new rows: how often a row like those of `fit` is at least as strange.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, but not rows of `fit` itself, whose p-values are `p_values_`.

        Returns
        -------
        p : ndarray of shape (n,)
        """
        return self._judge(X)[0] / (len(self.scores_) + 1)

    def cell_p_values(self, X: Any) -> np.ndarray:
        """Return the p-values of the cells of new rows: how often one of its column is as strange given its row.

        Parameters
        ----------
        X : anything with rows
            As for `p_values`.

        Returns
        -------
        p : ndarray of shape (n, d)
            NaN where a cell was not observed. (1 + Σ_f #{i in fold f: s_ij ≥ s^f_j(x)}) / (n_j + 1), s the absolute
            `cell_scores`, n_j the observed cells of the column in `fit`.
        """
        check_is_fitted(self)
        self._check_cells()
        source = self._open(X, reset=False)
        rank = np.ones((source.n, source.d))
        for f, (model, unit) in enumerate(zip(self._views, self._cell_units_, strict=True)):
            new = strangeness(model, source, unit)
            rank += exceed_columns(new, self.cell_scores_[self.folds_ == f], rounding(source))
        return np.asarray(rank / (observed(self.cell_scores_) + 1))

    def odd_cells(self) -> np.ndarray:
        """Return which cells of the rows of `fit` lie further out than the others let expect.

        As `fit_predict` with `control="fdr"` judges rows: by the tail of the scores, at a false discovery rate of
        `alpha`, without a guarantee. A wrong cell makes others of its row look strange, too, so the strangest of a row
        stands for it; odd are all cells as strange as the least of those that are told from the tail. Of a row with
        several, the strangest is to be looked at first.

        Returns
        -------
        odd : ndarray of bool of shape (n, d)
        """
        check_is_fitted(self)
        self._check_cells()
        score = np.where(np.isnan(self.cell_scores_), -1.0, np.abs(self.cell_scores_))
        worst = score.max(axis=1)
        told = worst[worst >= 0]
        told = told[benjamini_hochberg(tail_p_values(told, rankdata(-told, "max") / max(len(told), 1)), self.alpha)]
        return np.asarray(score >= told.min(initial=np.inf))

    def _check_cells(self) -> None:
        """Cells must have been judged."""
        if "cell_p_values_" not in vars(self):
            raise ValueError("cells=False: this detector judges rows alone; fit OutlierDetector(cells=True) for cells")

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the p-values with ties broken: below its p-value by less than one step, the stranger the more.

        Parameters
        ----------
        X : anything with rows
            As for `p_values`.

        Returns
        -------
        scores : ndarray of shape (n,)
            Smaller is stranger.
        """
        rank, mean = self._judge(X)
        low, middle, high = np.quantile(self.scores_, [0.25, 0.5, 0.75])
        away = np.arctan((mean - middle) / (high - low or 1.0)) / np.pi  # in [−½, ½]
        return np.asarray((rank - np.clip(0.5 + away, 1e-9, 1 - 1e-9)) / (len(self.scores_) + 1))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return `score_samples` less `offset_`: below 0 for outliers at level alpha per row.

        Parameters
        ----------
        X : anything with rows
            As for `p_values`.

        Returns
        -------
        decision : ndarray of shape (n,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return −1 for outliers among new rows and 1 for the others.

        Parameters
        ----------
        X : anything with rows
            As for `p_values`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
            With `control="fdr"` by Benjamini and Hochberg's rule over all rows of X, else row by row.
        """
        if self.control == "fdr":
            return np.where(benjamini_hochberg(self.p_values(X), self.alpha), -1, 1)
        return np.where(self.decision_function(X) < 0, -1, 1)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return −1 for outliers among the rows of X and 1 for the others.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
            With `control="fdr"` by `tail_p_values_`, an estimate without a guarantee; else by `p_values_`.
        """
        self.fit(X)
        return np.where(self._odd(), -1, 1)

    def _odd(self) -> np.ndarray:
        """Which rows of the fit are outliers."""
        if self.control == "fdr":
            return benjamini_hochberg(self.tail_p_values_, self.alpha)
        return self.p_values_ <= self.alpha

    def findings(self) -> list[str]:
        """How many rows of the fit are outliers, and which are the strangest of them."""
        if "p_values_" not in vars(self):
            return []
        odd = np.flatnonzero(self._odd())
        strangest = odd[np.argsort(-self.scores_[odd], kind="stable")][:STRANGEST]
        told = f"{len(odd):,} of {len(self.scores_):,} rows are odd at alpha={self.alpha:g}"
        return [told + f"; the strangest: {', '.join(map(str, strangest))}" * bool(len(odd))]

    def _judge(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """1 + the number of scores that are at least those of each row, fold by fold; and its mean score."""
        check_is_fitted(self)
        source = self._open(X, reset=False)
        rank, mean = np.ones(source.n), np.zeros(source.n)
        with progress_line(type(self).__name__, get_config()) as tell:
            for f, (model, unit) in enumerate(zip(self._views, self._units_, strict=True)):
                tell(f"scores by model {f + 1} of {len(self.models_)}")
                new = row_scores(model, source, unit)
                rank += exceed(new, self.scores_[self.folds_ == f], rounding(source))
                mean += new / len(self.models_)
        return rank, mean

    def reasons(self, X: Any, rows: Any, most: int = 3) -> list[Reason]:
        """Return the cells that make rows odd, with what would be usual in their place.

        Parameters
        ----------
        X : anything with rows
            As for `fit`; rows of `fit` too.
        rows : sequence of int
            The rows of X to look at, such as `np.flatnonzero(detector.fit_predict(X) == -1)`.
        most : int, default=3
            Cells for each row, at most: that without which the row would be most ordinary, then others that are at
            least two spreads from what is usual.

        Returns
        -------
        reasons : list of Reason
            In the order of the rows, the cell that matters most first: `row`, `column`, `name`, `value`, `usual`,
            `spread` and `score`. Each row is judged by the model to which it is strangest: of a row of `fit` that is,
            as a rule, the one that has not seen it.

        Examples
        --------
        >>> import numpy as np
        >>> from unmix.outlier import OutlierDetector
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 10.0] + 50
        >>> X[7] = [50, 150]
        >>> [reason] = OutlierDetector(random_state=0).fit(X).reasons(X, [7], most=1)
        >>> reason.name, reason.value, abs(reason.usual - 50) < 10
        ('x1', 150.0, True)
        """
        check_is_fitted(self)
        source, rows = self._open(X, reset=False), np.asarray(rows, dtype=np.intp)
        if rows.ndim != 1 or (len(rows) and not (rows.min() >= 0 and rows.max() < source.n)):
            raise ValueError(f"rows={rows.tolist()}: give the numbers of rows of X, from 0 to {source.n - 1}")
        if not len(rows):
            return []
        wanted = np.zeros(source.n, bool)
        wanted[rows] = True
        x = np.concatenate([dense(piece) for _, _, piece in pieces(source, wanted)])
        x = x[np.searchsorted(np.flatnonzero(wanted), rows)]
        views = self._views
        by = np.argmax([row_scores(m, x, unit) for m, unit in zip(views, self._units_, strict=True)], axis=0)
        names = vars(self).get("feature_names_in_", [f"x{j}" for j in range(source.d)])
        found: list[list[Reason]] = [[] for _ in rows]
        for f in np.unique(by):
            mine, model = np.flatnonzero(by == f), views[f]
            tau = self._cell_units_[f] if self._cell_units_ else cell_spread(model, source)
            for i, odd in zip(mine, odd_cells(model, x[mine], self._units_[f], tau, most), strict=True):
                found[i] = [Reason(int(rows[i]), j, str(names[j]), *numbers) for j, *numbers in odd]
        return [reason for of_row in found for reason in of_row]

    @property
    def _views(self) -> list[Any]:
        """The models of the folds, as `by` sees them."""
        return [seen(model, self.by) for model in self.models_]

    def _model(self, seed: int) -> Any:
        """A model to fit, with a seed where it has none."""
        model = RowDensity() if self.model is None else clone(self.model)
        if "random_state" in model.get_params(deep=False) and model.random_state is None:
            model.set_params(random_state=seed)
        return model

    def _check_model(self, source: Any) -> None:
        if self.model is None:
            return
        name = type(self.model).__name__
        if pairwise(self.model):
            raise ValueError(f"model={name} takes a precomputed matrix, but folds are of rows: give it rows instead")
        if not (streams(self.model) or source.in_memory):
            raise TypeError(f"model={name} is not a model of unmix, so rows must be in memory: pass an array")

    def _open(self, X: Any, reset: bool) -> Any:
        X = X if reset else tabled(self, X)
        source = opened(RowDensity() if self.model is None else self.model, X)
        if not isinstance(X, Source):
            _check_feature_names(self, X, reset=reset)
        if reset:
            self.n_features_in_ = source.d
            learn_recipe(self, source)
        elif source.d != self.n_features_in_:
            raise ValueError(
                f"X has {source.d} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input: pass the columns that it was fitted on"
            )
        return source

    def _sizes(self, state: dict[str, Any]) -> dict[str, Any]:
        return {**super()._sizes(state), "f": len(state["models_"]) if isinstance(state["models_"], list) else 0}

    def _contradiction(self, state: dict[str, Any], names: dict[str, Any]) -> str:
        return wrong_units(
            state["models_"], state["_units_"], state["_cell_units_"], names["d"], "cell_scores_" in state, self.by
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = (RowDensity() if self.model is None else self.model).__sklearn_tags__().input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.positive_only = inner.positive_only
        return tags


def rounding(source: Any) -> float:
    """How far, relatively, the scores of equal rows may differ."""
    return float(np.sqrt(np.finfo(source.dtype).eps))


def exceed(scores: np.ndarray, calibration: np.ndarray, rounding: float) -> np.ndarray:
    """How many of the calibration scores are at least each score, up to rounding: a copy of a row ties with it."""
    least = scores - rounding * np.maximum(np.abs(scores), 1.0)
    return np.asarray(len(calibration) - np.searchsorted(np.sort(calibration), least, side="left"))


def observed(cells: np.ndarray) -> np.ndarray:
    """How many cells of each column have a score."""
    return np.asarray((~np.isnan(cells)).sum(axis=0))


def exceed_columns(scores: np.ndarray, calibration: np.ndarray, rounding: float) -> np.ndarray:
    """`exceed` column by column, of the cells that have a score; NaN for the others."""
    out = np.full(scores.shape, np.nan)
    for s, c, o in zip(scores.T, calibration.T, out.T, strict=True):
        o[~np.isnan(s)] = exceed(s[~np.isnan(s)], c[~np.isnan(c)], rounding)
    return out
