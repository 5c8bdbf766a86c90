"""`Select`: a model whose number of parts is chosen when it is fitted, for pipelines."""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unmix.engine.described import conform
from unmix.engine.site import Documented
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Density, Groups, Memberships
from unmix.model.files import Files
from unmix.model.frames import frame
from unmix.selection.asked import estimator, size_of
from unmix.selection.choose import select
from unmix.selection.result import Selection


class Told(NamedTuple):
    """What of a selection is in a file, beside what the estimator says itself."""

    criterion: str
    votes: dict[str, int]
    columns: dict[str, np.ndarray]


def _if(capability: type) -> Any:
    return available_if(lambda self: isinstance(estimator(self.model), capability))


class Select(Files, TransformerMixin, MetaEstimatorMixin, Documented, BaseEstimator):
    """A model whose number of parts is chosen when it is fitted.

    Parameters
    ----------
    model : estimator of unmix, its class or its name
        Any model with `n_components` or `n_clusters`.
    k : "auto" or iterable of int, default="auto"
        The numbers to try; "auto" as for `unmix.select`.
    criterion : str or list of str, default="auto"
        As for `unmix.select`.
    folds, references, parameter, random_state
        As for `unmix.select`.

    Attributes
    ----------
    selection_ : Selection
        The answer, with its reason and table.
    k_ : int
        The chosen number.
    range_ : tuple of int
        The least and the largest number that may be defended.
    sureness_ : {"sure", "open"}
        How sure the number is.
    reason_ : str
        Why, in sentences.
    model_ : estimator
        The fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from unmix import KMeans, Select
    >>> Select(KMeans(), k=range(1, 6), random_state=0).fit(load_iris().data).k_
    3
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "model": "no_validation",
        "k": "no_validation",
        "criterion": "no_validation",
        "folds": [Interval(Integral, 2, None, closed="left")],
        "references": [Interval(Integral, 2, None, closed="left")],
        "parameter": [str, None],
        "random_state": ["random_state"],
    }

    selection_: Any
    k_: int
    range_: tuple[int, int]
    sureness_: str
    reason_: str
    model_: Any
    labels_: Annotated[np.ndarray, Array("n", "i", maybe=True)]

    def __init__(
        self,
        model: Any,
        k: Any = "auto",
        criterion: Any = "auto",
        *,
        folds: int = 5,
        references: int = 20,
        parameter: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.k = k
        self.criterion = criterion
        self.folds = folds
        self.references = references
        self.parameter = parameter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Select:
        """Choose k and fit the model.

        Parameters
        ----------
        X : anything with rows
            As for the model's `fit`.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            How many times each row counts.

        Returns
        -------
        self
        """
        options: dict[str, Any] = {"folds": self.folds, "references": self.references, "parameter": self.parameter}
        options["random_state"] = self.random_state
        answer = select(self.model, X, self.k, self.criterion, sample_weight=sample_weight, **options)
        if answer.k is None:
            raise ValueError(f"no k was chosen: {answer.reason}")
        self.selection_, self.k_, self.model_ = answer, answer.k, answer.model
        self.range_, self.sureness_, self.reason_ = answer.range, answer.sureness, answer.reason
        self.n_features_in_ = self.model_.n_features_in_
        if self.model_.column_names is not None:
            self.feature_names_in_ = self.model_.feature_names_in_
        if isinstance(self.model_, Groups) and self.model_.kept_labels is not None:
            self.labels_ = self.model_.kept_labels
        return self

    def findings(self) -> list[str]:
        """The number, how sure it is, and what the chosen model found."""
        if "selection_" not in vars(self):
            return []
        return [self.selection_.sentence, *(self.model_.findings() if isinstance(self.model_, Documented) else [])]

    def transform(self, X: Any) -> Any:
        """Return the hidden rows of X at the chosen model.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        return self.model_.transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Return the rows that hidden rows stand for.

        Parameters
        ----------
        X : array of shape (n, k)
            Hidden rows, as `transform` gives.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        check_is_fitted(self)
        return self.model_.inverse_transform(X)

    @_if(Groups)
    def predict(self, X: Any) -> Any:
        """Return the label of each row by the chosen model.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        check_is_fitted(self)
        return self.model_.predict(X)

    @_if(Memberships)
    def predict_proba(self, X: Any) -> Any:
        """Return how much each row belongs to each part.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    @_if(Density)
    def score_samples(self, X: Any) -> Any:
        """Return the logarithm of the density of each row.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        log_p : ndarray of shape (n,)
        """
        check_is_fitted(self)
        return self.model_.score_samples(X)

    @_if(Groups)
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Choose k, fit, and return the labels.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        return np.asarray(self.fit(X, y, sample_weight=sample_weight).predict(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the chosen model's score.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        return float(self.model_.score(X, sample_weight=sample_weight))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the columns of `transform`.

        Parameters
        ----------
        input_features : ignored
            For pipelines.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.asarray(self.model_.get_feature_names_out(input_features))

    def _state(self) -> dict[str, Any]:
        told = Told(self.selection_.criterion, self.selection_.votes, self.selection_.columns)
        return {**super()._state(), "selection_": told}

    def _contradiction(self, state: dict[str, Any], names: dict[str, Any]) -> str:
        told, model, k = state["selection_"], state["model_"], state["k_"]
        conform(told, Told, {}, "selection_")
        if not isinstance(model, Model) or model.get_params(deep=False)[size_of(model, self.parameter)] != k:
            return f"model_ is no model of {k} parts"
        if model.n_features_in_ != state["n_features_in_"]:
            return "model_ is of other columns"
        ks = told.columns.get("k")
        whole = ks is not None and {"k", "sound", told.criterion, *told.votes} <= told.columns.keys()
        if not whole or any(v.shape != ks.shape or v.ndim != 1 for v in told.columns.values()):
            return "selection_ is not a table with a row for each k"
        answer = (k, state["range_"], state["sureness_"], state["reason_"], model)
        shown = (told.criterion, told.votes, told.columns, size_of(model, self.parameter))
        state["selection_"] = Selection(frame(told.columns), *answer, *shown)
        return ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = estimator(self.model).__sklearn_tags__()
        tags.input_tags, tags.estimator_type = own.input_tags, own.estimator_type
        return tags
