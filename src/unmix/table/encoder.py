"""A table as numbers, for scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.engine.site import Documented
from unmix.table.recipe import Recipe
from unmix.table.table import Table


class TableEncoder(TransformerMixin, Documented, BaseEstimator):
    """Numbers from a table with text, categories and holes, as `Table` makes them, for scikit-learn's pipelines.

    Parameters
    ----------
    columns, drop, id, label : list of str, optional
        As for `Table`.
    kinds : dict of str to str, optional
        As for `Table`.
    scale : {"auto", "none"}, default="auto"
        As for `Table`.

    Attributes
    ----------
    recipe_ : Recipe
        How columns become numbers.
    columns_ : list of Column
        Every column of the table, what it is, and what becomes of it.
    notes_ : list of str
        What a person should know about it.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> import unmix
    >>> frame = pd.DataFrame({"age": [31.0, 45, 28, 60], "town": ["Ulm", "Bonn", "Ulm", "Bonn"]})
    >>> unmix.TableEncoder().fit_transform(frame).round(2).tolist()
    [[-0.79, 1.0], [0.31, -1.0], [-1.02, 1.0], [1.5, -1.0]]
    >>> make_pipeline(unmix.TableEncoder(), unmix.KMeans(2, random_state=0)).fit_predict(frame).shape
    (4,)
    """

    recipe_: Recipe

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "columns": ["array-like", None],
        "drop": ["array-like", None],
        "id": ["array-like", str, None],
        "label": ["array-like", str, None],
        "kinds": [dict, None],
        "scale": [StrOptions({"auto", "none"})],
    }

    def __init__(
        self,
        *,
        columns: Any = None,
        drop: Any = None,
        id: Any = None,
        label: Any = None,
        kinds: Any = None,
        scale: str = "auto",
    ) -> None:
        self.columns = columns
        self.drop = drop
        self.id = id
        self.label = label
        self.kinds = kinds
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Look at every column.

        Parameters
        ----------
        X : data frame, path or what else makes a `Table`
            The table.
        y : ignored
            For pipelines.

        Returns
        -------
        self
        """
        self._validate_params()
        table = Table(X, **self.get_params(deep=False))
        self.recipe_, self.columns_, self.notes_ = table.recipe, table.columns, table.notes
        self.n_features_in_ = len(table.columns)
        self.feature_names_in_ = np.array([c.name for c in table.columns], dtype=object)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Give the numbers of a table with the same columns.

        Parameters
        ----------
        X : data frame, path or what else makes a `Table`
            The table.

        Returns
        -------
        rows : ndarray of shape (n, d)
            NaN where a cell is empty, or holds a category that `fit` did not see.
        """
        check_is_fitted(self)
        table = Table.like(X, self.recipe_)
        return np.array(table.read(0, table.n))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of numbers.

        Parameters
        ----------
        input_features : ignored
            For pipelines.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.array(self.recipe_.names, dtype=object)
