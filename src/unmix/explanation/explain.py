"""`explain`: what a fitted model found, in the units of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from unmix.engine.sources import Source, as_source
from unmix.explanation.columns import Plain, sums
from unmix.explanation.components import FoundComponents, found_components
from unmix.explanation.draws import drawn
from unmix.explanation.groups import FoundGroups, found_groups
from unmix.model.adapter import adapt
from unmix.model.capabilities import Components, Groups, Samples
from unmix.model.estimator import Model
from unmix.model.opening import tabled
from unmix.table.table import Table


def explain(model: Any, X: Any = None, sample_weight: Any = None) -> FoundGroups | FoundComponents:
    """Tell what a fitted model found, by column name and in the units of the table.

    Parameters
    ----------
    model : estimator
        A fitted model of groups or of components.
    X : anything with rows, optional
        The rows that it was fitted to, or others with the same columns: a `Table`, a data frame, a file, an array.
        Not needed for components, nor for mixtures, of which rows are drawn where none are given.
    sample_weight : array of shape (n,), optional
        How many times each row counts.

    Returns
    -------
    found : FoundGroups or FoundComponents
        Of groups sizes, centres, and what sets each apart from the other rows; of components loadings by column, the
        strongest first, and the variance explained. `print(found)` is for people, `found.to_dict()` for machines.

    Examples
    --------
    >>> import unmix
    >>> table = unmix.Table({"age": [31, 30, 33, 62, 64, 61], "town": ["Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Bonn"]})
    >>> found = unmix.explain(unmix.KMeans(2, random_state=0).fit(table), table)
    >>> sorted((group.rows, round(group.centre["age"], 1), group.centre["town"]["Ulm"]) for group in found.groups)
    [(3, 31.3, 1.0), (3, 62.3, 0.0)]
    """
    known = adapt(model)
    name = type(known).__name__
    if isinstance(known, Groups):
        if X is None and not isinstance(known, Samples):
            raise ValueError(f"X=None: {name} alone does not tell its groups; give the rows that it was fitted to")
        if X is None:
            source, labels = drawn(known)
            plain = Plain(source)
            return replace(found_groups(name, plain, sums(plain, [labels]), []), drawn=True)
        w = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        source = opened(known, X)
        plain = Plain(source)
        ids = source.role("id") if isinstance(source, Table) else []
        return found_groups(name, plain, sums(plain, _labels(known, source), w), ids)
    if isinstance(known, Components):
        columns = vars(model).get("feature_names_in_", range(known.loadings().shape[1]))
        return found_components(known, [str(c) for c in columns])
    raise TypeError(f"{type(model).__name__} finds neither groups nor components: there is nothing to explain")


def opened(model: Any, X: Any) -> Source:
    """X as the model read it in its fit: a table by the model's recipe, where it has one."""
    return as_source(tabled(model, X))


def _labels(model: Any, source: Source) -> Iterator[np.ndarray]:
    """Labels of all rows, block by block where the model can."""
    if isinstance(model, Model):
        yield from model.stream("assign", source)
    else:
        yield np.asarray(model.predict(source.whole()))
