"""The density behind `OutlierDetector()`: each column by itself, how columns go together, how near other rows are.

    log s(x) = { log N(y | m, diag v) + 2 log p_4(y) + 2 log p_8(y) + 6 log f_10(y) + 6 log f_20(y) } / 17

of y = (x − centre) / scale. The first factor sees what is far out anywhere and cannot adapt to a group of outliers; the
mixtures of four and of eight Gaussians see rows that no group of rows is like; the densities by the distances to the
tenth and the twentieth neighbour know groups of any shape. (Such a mean is not a normalised density; scores do not need
one.) In more than 100 columns there are hardly rows enough for the covariances of groups: there one Gaussian with 32
axes and the same variance about them (`plane.py`) takes the place of both mixtures.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from unmix.engine.config import get_config
from unmix.engine.site import Documented
from unmix.engine.sources import as_source
from unmix.maths.arrays import POSITIVE, Array
from unmix.mixture.gaussian import GaussianMixture
from unmix.model.capabilities import Density, Imputes
from unmix.model.files import Files
from unmix.outlier.neighbours import Neighbours
from unmix.outlier.plane import Plane

ROWS_PER_COMPONENT = 20  # at least
FAR = 100.0  # spreads beyond which a cell says nothing about its column's scale
FIT_RANGE = 1e4  # spreads: a cell beyond it would swamp the digits of all others in the sums of a fit
WIDE = 100  # columns from which on one Gaussian of low rank takes the place of mixtures
AXES = 32  # of it
OWN_RIDGE = 0.1  # added to the variances of scaled columns by themselves


class RowDensity(Files, Density, Imputes, DensityMixin, Documented, BaseEstimator):
    """Geometric mean of a Gaussian with independent columns, of Gaussian mixtures and of neighbours' densities.

    All on scaled columns: centre and scale are the mean and standard deviation of a column's cells after those further
    than 100 spreads (quartile distance / 1.349) from the median were moved there. NaN means not observed.

    Parameters
    ----------
    n_components : int, default=8
        Components of the larger mixture; the smaller has half as many. Fewer where there are not 20 rows for each. In
        more than 100 columns one Gaussian of low rank takes the place of both.
    n_neighbors : int, default=10
        The neighbour whose distance counts, beside that of twice the rank; half of the rows where there are not twice
        as many. Of more than 2048 rows they are sought in a sample of that many, with each of which every scored
        row is compared.
    reg_covar : float, default=0.01
        Added to the mixtures' variances and the neighbours' squared distances per cell, in units of the columns'
        variances.
    random_state : int, RandomState or None, default=None
        Seed of the mixtures' starts and of the sample of neighbours.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (d,)
        What columns are measured from, and in.
    own_ : GaussianMixture
        Scaled columns by themselves.
    together_ : list of GaussianMixture or Plane
        How scaled columns go together: the mixtures, the larger last, or the one Gaussian.
    neighbors_ : Neighbours
        Rows that others are compared with.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from unmix.outlier import RowDensity
    >>> X = load_iris().data
    >>> density = RowDensity(random_state=0).fit(X)
    >>> bool(density.score_samples([[9.0, 1.0, 1.0, 5.0]])[0] < density.score_samples(X).min())
    True
    """

    center_: Annotated[np.ndarray, Array("d")]
    scale_: Annotated[np.ndarray, Array("d", low=POSITIVE)]
    own_: GaussianMixture
    together_: list[GaussianMixture | Plane]
    neighbors_: Neighbours

    _doc_page = "api/outlier.html#unmix.outlier.{name}"
    missing: ClassVar[bool] = True  # takes rows with cells that were not observed
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_components: int = 8, *, n_neighbors: int = 10, reg_covar: float = 0.01, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.reg_covar = reg_covar
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RowDensity:
        """Fit the factors.

        Parameters
        ----------
        X : anything with rows
            Held in memory.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            How many times each row counts; the scales of columns take rows of any weight above 0 alike.

        Returns
        -------
        self
        """
        self._validate_params()
        x = self._rows(X)
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, x, ensure_non_negative=True)
            x, w = x[w > 0], w[w > 0]
        self.n_features_in_ = x.shape[1]
        self.center_, self.scale_ = scales(x)
        scaled = self._scaled(x)
        own = GaussianMixture(1, covariance_type="diag", reg_covar=OWN_RIDGE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # scores do not need the last digit
            near = np.clip(scaled, -FIT_RANGE, FIT_RANGE)
            self.own_ = own.fit(near, sample_weight=w)
            self.together_ = self._together(near, w)
        offset = check_random_state(self.random_state).random_sample()
        self.neighbors_ = Neighbours.of(scaled, w, int(self.n_neighbors), float(self.reg_covar), offset)
        return self

    def _together(self, x: np.ndarray, w: np.ndarray | None) -> list[GaussianMixture | Plane]:
        """How columns go together, as far as so many rows can tell."""
        most = max(1, len(x) // ROWS_PER_COMPONENT)
        if x.shape[1] > WIDE:
            return [Plane.of(x, w, min(AXES, most), self.reg_covar, self.random_state)]
        sizes = sorted({min(most, k) for k in (max(1, self.n_components // 2), self.n_components)})
        options = {"reg_covar": self.reg_covar, "max_iter": 50, "random_state": self.random_state}
        return [GaussianMixture(k, **options).fit(x, sample_weight=w) for k in sizes]

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log s(x) of each row's observed cells.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        log_density : ndarray of shape (n,)
        """
        check_is_fitted(self)
        x = self._rows(X)
        if x.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {x.shape[1]} features, but RowDensity is expecting {self.n_features_in_} features")
        y = self._scaled(x)
        together = np.mean([m.score_samples(y) for m in self.together_], axis=0)
        return np.asarray((self.own_.score_samples(y) + 4 * together + 12 * self.neighbors_.log_density(y)) / 17)

    def expected_cells(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each cell of dense rows should be given the others of its row, by the larger mixture; its spread."""
        mean, deviation = self.together_[-1].expected_cells(self._scaled(x))
        with np.errstate(over="ignore"):
            return self.center_ + mean * self.scale_, deviation * self.scale_

    def surprise(self, x: np.ndarray) -> np.ndarray:
        """How strange each cell is given the others of its row, by the larger mixture."""
        return self.together_[-1].surprise(self._scaled(x))

    def _contradiction(self, state: dict[str, Any], names: dict[str, Any]) -> str:
        mixtures = [m for m in (state["own_"], *state["together_"]) if isinstance(m, GaussianMixture)]
        known = state["together_"] and all(m.n_features_in_ == names["d"] for m in mixtures)
        return "" if known else f"its models are not those of {names['d']} columns"

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.clip((x - self.center_) / self.scale_, -1e100, 1e100)  # squares stay within range

    def _rows(self, X: Any) -> np.ndarray:
        source = as_source(X)
        if source.sparse:
            raise TypeError(
                "Sparse data was passed for X, but RowDensity needs dense data: use '.toarray()', or give the detector "
                "a model that takes sparse rows, such as KMeans or PCA"
            )
        x: np.ndarray = source.whole(get_config().budget).astype(np.float64)
        if np.isinf(x).any():
            i, j = np.argwhere(np.isinf(x))[0]
            raise ValueError(
                f"Input X contains infinity: row {i}, column {j} holds {x[i, j]}. Replace it by NaN if it was not "
                "observed, or correct it."
            )
        return x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def scales(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale of the columns, which a few cells cannot move far; 1 for columns that do not vary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of which nothing was seen
        power = np.frexp(np.nanmax(np.abs(x), axis=0, initial=0.0))[1]
        x = np.ldexp(x, -power)  # takes no digits, and keeps squares from overflow and underflow
        low, middle, high = np.nanpercentile(x, [25, 50, 75], axis=0)
        spread = (high - low) / 1.349
        spread = np.where(spread > 0, FAR * spread, np.inf)  # most cells are equal: all count
        near = np.clip(x, middle - spread, middle + spread)
        varies = np.nanmax(near, axis=0) > np.nanmin(near, axis=0)  # of equal cells rounding makes a deviation, too
        center, scale = (np.ldexp(f(near, axis=0), power) for f in (np.nanmean, np.nanstd))
    return np.nan_to_num(center), np.where(varies & (scale > 0), scale, 1.0)
