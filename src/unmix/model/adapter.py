"""Estimators of other packages, and those that hold one of ours, with the capabilities that they turn out to have.

The one place that looks at which methods and attributes an object has: code that asks a question of any estimator calls
`adapt` and then asks `isinstance(…, Density)` and the like of the result.

    predict or fit_predict                          Groups
    score_samples                                   Density
    a clusterer with transform or cluster_centers_  Geometry
    covariances_ of a covariance_type;
    get_covariance and mean_                        Imputes
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.base import is_clusterer
from sklearn.utils import get_tags

from unmix.engine.config import get_config
from unmix.engine.sources import Source, as_source
from unmix.model.capabilities import Capability, Density, Gaussians, Geometry, Groups, Imputes, Space
from unmix.model.estimator import Model
from unmix.model.opening import refuse_unobserved


def adapt(estimator: Any) -> Any:
    """The estimator where it declares its capabilities, what `Select` chose, or an object that speaks for it.

    Before the fit, ask an estimator of another package for labels and density only: centres and covariances come
    with the fit.
    """
    if declares(estimator):
        return estimator
    if hasattr(estimator, "model_"):  # `Select`
        return adapt(estimator.model_)
    return _kind(type(estimator).__name__, tuple(kind for kind in KINDS if kind.fits(estimator)))(estimator)


def declares(estimator: Any) -> bool:
    """Whether an estimator belongs to unmix, and declares what it can do."""
    return isinstance(estimator, (Model, Capability))


def streams(estimator: Any) -> bool:
    """Whether an estimator takes rows that are not in memory: ours do, and `Select` of one."""
    return declares(getattr(estimator, "model", estimator))


def opened(estimator: Any, X: Any) -> Source:
    """X as a source, if the estimator reads what its absent entries mean."""
    inner = getattr(estimator, "model", estimator)  # of `Select`
    if isinstance(inner, Model) and inner.absent == "unobserved":
        return as_source(X, absent="unobserved")
    source = as_source(X)
    refuse_unobserved(source, type(estimator).__name__, missing=getattr(inner, "missing", False))
    return source


def pairwise(estimator: Any) -> bool:
    """Whether X is not rows but what each pair of rows has to do with each other."""
    if isinstance(estimator, Geometry):
        return estimator.space.pairwise
    return bool(get_tags(estimator).input_tags.pairwise or getattr(estimator, "metric", None) == "precomputed")


class Adapted:
    """Speaks for an estimator; the classes below add what it can do."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any) -> Any:
        """Fit the estimator."""
        self.estimator.fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """The estimator's rows of z."""
        return self.estimator.transform(X)


class Labels(Groups, Adapted):
    """Labels by `predict`, or by `fit_predict` alone: then new rows get none."""

    @staticmethod
    def fits(estimator: Any) -> bool:
        """Whether it labels rows."""
        return hasattr(estimator, "predict") or hasattr(estimator, "fit_predict")

    @property
    def labels_new_rows(self) -> bool:
        """Whether it has `predict`."""
        return hasattr(self.estimator, "predict")

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row."""
        return np.asarray(self.estimator.predict(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit the estimator and return the labels of X."""
        return np.asarray(self.estimator.fit_predict(X))


class LogDensity(Density, Adapted):
    """A score of each row that is, or stands for, a log-density."""

    @staticmethod
    def fits(estimator: Any) -> bool:
        """Whether it scores rows."""
        return hasattr(estimator, "score_samples")

    def score_samples(self, X: Any) -> np.ndarray:
        """Scores of rows, which are held in memory: other packages know nothing of sources."""
        return np.asarray(self.estimator.score_samples(opened(self.estimator, X).whole(get_config().budget)))


class Centres(Geometry, Adapted):
    """A clusterer that tells distances to its clusters, or their centres."""

    @staticmethod
    def fits(estimator: Any) -> bool:
        """Whether it has distances or centres."""
        known = hasattr(estimator, "transform") or hasattr(estimator, "cluster_centers_")
        return known and is_clusterer(estimator)

    @property
    def space(self) -> Space:
        """The metric that it names; Euclidean where it names none."""
        metric = getattr(self.estimator, "metric", "euclidean")
        return Space(metric, pairwise=pairwise(self.estimator))

    def centers(self) -> np.ndarray | None:
        """`cluster_centers_`, where it has them."""
        return getattr(self.estimator, "cluster_centers_", None)


class GaussianCells(Imputes, Adapted):
    """A mixture of Gaussians by its covariance_type, or one Gaussian by `get_covariance`."""

    @staticmethod
    def fits(estimator: Any) -> bool:
        """Whether it has covariances and means."""
        mixture = hasattr(estimator, "covariance_type") and hasattr(estimator, "covariances_")
        return mixture or (hasattr(estimator, "get_covariance") and hasattr(estimator, "mean_"))

    def gaussians(self) -> Gaussians:
        """Its weights, means and covariances."""
        e = self.estimator
        if hasattr(e, "covariances_"):
            return Gaussians.of_type(e.covariance_type, e.weights_, e.means_, e.covariances_)
        return Gaussians.one(e.mean_, e.get_covariance())


KINDS: tuple[Any, ...] = (Labels, LogDensity, Centres, GaussianCells)


@cache
def _kind(name: str, kinds: tuple[type, ...]) -> Any:
    """A class of these capabilities, named as the estimator is: messages speak of it by that name."""
    return type(name, (*kinds, Adapted), {})
