"""Gaussian mixture:  p(x) = Σ_k π_k N(x | μ_k, Σ_k).                         [x measured from the fixed origin U.shift]

local    z_ik = π_k N(x_i | μ_k, Σ_k) / p(x_i)          loss = −Σ_i log p(x_i)
stats    N_k = Σ_i z_ik       A_k = Σ_i z_ik x_i        B_k = Σ_i z_ik x_i x_iᵀ
update   π = N / ΣN           μ_k = A_k / N_k           Σ_k = B_k / N_k − μ_k μ_kᵀ + εI

Σ_k is full; tied: one for all, Σ = ΣB/ΣN − Σ π_k μ_k μ_kᵀ + εI; diag: its diagonal; spherical: the mean of that.

Missing cells: z from the density of the observed cells; in A and B a missing cell stands with its conditional mean, and
its conditional covariance is added to B. A row of which nothing was observed has z = π and loss 0.

A component that holds less than 1e-12 of the weight is reset, three times at most: it takes half of the heaviest one,
the two means half a standard deviation to either side along its longest axis. A covariance that is singular in spite
of ε keeps its axes, in units of the root mean squares of the columns, and has its eigenvalues raised to a floor.
Statistics that no rows can have (N_k < 0, or a variance clearly below 0) are an error: only extrapolation makes them.

Parameters that are held fixed stay as they were given; of the others the update is the maximum given those, so with μ
held Σ_k = B_k/N_k − m mᵀ + (m − μ_k)(m − μ_k)ᵀ + εI, m = A_k/N_k. Nothing is reset then.

Dempster, Laird & Rubin (1977); missing cells: Ghahramani & Jordan (1994); online: Cappé & Moulines (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.kernels import gaussian_rows as rows
from unmix.mixture._base import DEAD
from unmix.mixture._gaussian import (
    GaussianBase,
    Stats,
    as_matrices,
    covariances_of_factors,
    factors_of_covariances,
    factors_of_precisions,
    in_shape_of,
    join,
    moments_of,
    nearest,
    split,
)

RESETS = 3
PARAMETERS = {"weights": "weights_init", "means": "means_init", "covariances": "precisions_init"}


class Parts(NamedTuple):
    """π, μ, Σ, and what follows from Σ: factors P with P Pᵀ = Σ⁻¹, natural parameters, their spread; events."""

    shift: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    factors: np.ndarray
    natural: np.ndarray
    spread: np.ndarray
    resets: np.ndarray
    floored: np.ndarray


class GaussianMixture(GaussianBase):
    """Gaussian mixture fitted by EM.

    Parameters
    ----------
    n_components : int, default=1
        Number of Gaussians K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A covariance each; one for all; variances each; one variance each.
    tol : float, default=1e-3
        The fit ends when a pass raises the mean log-likelihood by no more.
    reg_covar : float, default=1e-6
        ε, added to the variances.
    max_iter : int, default=100
        The most passes.
    n_init : int, default=1
        Starts; the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        First assignment of a sample of the rows: by k-means; to the nearest of spread-out rows; at random; to the
        nearest of random rows.
    weights_init : array of shape (K,), optional
        First π.
    means_init : array of shape (K, d), optional
        First μ.
    precisions_init : array, optional
        First Σ⁻¹, of shape (K, d, d), (d, d), (K, d) or (K,) by the covariance type.
    fixed : tuple of {"weights", "means", "covariances"}, default=()
        What keeps the value of its `*_init` (of covariances: `precisions_init`); EM fits the rest.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of `sample`.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        π.
    means_ : ndarray of shape (K, d)
        μ.
    covariances_ : ndarray
        Σ, in the shape of `precisions_init`.
    precisions_ : ndarray
        Σ⁻¹.
    precisions_cholesky_ : ndarray
        Upper triangular P with P Pᵀ = Σ⁻¹; for diag and spherical the inverse standard deviations.
    converged_ : bool
        Whether the stopping rule was met.
    lower_bound_ : float
        Mean log-likelihood of the training rows at the fitted parts.
    labels_ : ndarray of int of shape (n,)
        The likeliest component of each training row, where the rows were in memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from unmix import GaussianMixture
    >>> model = GaussianMixture(2, random_state=0).fit(load_iris().data)
    >>> sorted(model.weights_.round(2).tolist())
    [0.33, 0.67]
    >>> pair = GaussianMixture.from_parameters([0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], covariance_type="spherical")
    >>> pair.predict([[1.9], [2.1]]).tolist()
    [0, 1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "fixed": [tuple, list],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        fixed: Any = (),
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.fixed = fixed
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are too few rows or a first guess has the wrong shape or values."""
        super().check(shape)
        K, d = self.n_components, shape.d
        given = {"weights_init": (K,), "means_init": (K, d), "precisions_init": self._shape_of(K, d)}
        for name, wanted in given.items():
            value = getattr(self, name)
            if value is not None and (np.shape(value) != wanted or not np.isfinite(value).all()):
                raise ValueError(f"{name} has shape {np.shape(value)}: give finite numbers in the shape {wanted}")
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
            if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
                raise ValueError(f"weights_init sums to {weights.sum():.6g}: give numbers of at least 0 that sum to 1")
        if self.precisions_init is not None:
            factors_of_precisions(self.covariance_type, np.asarray(self.precisions_init, dtype=np.float64))
        for name in self.fixed:
            if name not in PARAMETERS:
                raise ValueError(f"fixed={self.fixed!r}: give names of {', '.join(PARAMETERS)}")
            if getattr(self, PARAMETERS[name]) is None:
                raise ValueError(f"fixed holds {name!r}, but {PARAMETERS[name]} is None: give the value to hold")

    # ---------------------------------------------------------------- the contract

    def start(self, sample: Block, rng: np.random.Generator) -> Parts:
        """First parts: a hard or random assignment of a sample, then the guesses that were given in their places."""
        shift, x, _, stats = self._first(sample, rng)
        K, d, kind = self.n_components, x.shape[1], self.covariance_type
        none = np.zeros(K, np.int64)
        unit = np.broadcast_to(np.eye(d) if kind in ("full", "tied") else 1.0, self._shape_of(K, d))
        start = Parts(shift, stats.N, np.zeros((K, d)), unit, *(np.zeros(0),) * 3, none, none)
        U = self._maximum(start, stats, ())._replace(resets=none)
        weights, means, covariances, factors = U.weights, U.means, U.covariances, U.factors
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
        if self.means_init is not None:
            means = np.asarray(self.means_init, dtype=np.float64) - shift
        if self.precisions_init is not None:
            factors = factors_of_precisions(kind, np.array(self.precisions_init, dtype=np.float64))
            covariances = covariances_of_factors(kind, factors)
        return self._complete(U._replace(weights=weights, means=means, covariances=covariances, factors=factors))

    def _assignment(self, x: np.ndarray, w: np.ndarray, shift: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.weights_init is not None and self.means_init is not None and self.precisions_init is not None:
            return np.full((len(x), self.n_components), 1.0 / self.n_components)  # all given: the rows say nothing
        if "means" in self.fixed:  # a start of its own would number the components in another order
            centres = np.asarray(self.means_init, dtype=np.float64) - shift
            return np.eye(len(centres))[((centres**2).sum(axis=1) - 2.0 * x @ centres.T).argmin(axis=1)]
        return super()._assignment(x, w, shift, rng)

    def grow(self, fit: Fit, rng: np.random.Generator) -> Parts | None:
        """The parts of a fit, the heaviest of them cut in two."""
        if self.fixed:
            return None
        U = fit.U
        one = (lambda a: a) if self.covariance_type == "tied" else (lambda a: np.concatenate([a, a[:1]]))
        weights, means = np.append(U.weights, 0.0), np.concatenate([U.means, U.means[:1]])
        parts = split(
            self.covariance_type, np.array([len(U.weights)]), weights, means, one(U.covariances), one(U.factors)
        )
        new = dict(zip(("weights", "means", "covariances", "factors"), parts, strict=True))
        none = np.zeros(len(weights), np.int64)
        return self._complete(U._replace(**new, resets=none, floored=none))

    def merge(self, fit: Fit, rng: np.random.Generator) -> Parts | None:
        """The parts of a fit, the two that lose least by it made one Gaussian of their mean and covariance."""
        if self.fixed:
            return None
        U, kind = fit.U, self.covariance_type
        a, b = nearest(kind, U.weights, U.means, U.covariances)
        weights, means, full = U.weights.copy(), U.means.copy(), as_matrices(kind, U.covariances, *U.means.shape)
        means[a], full[a] = join(np.maximum(weights[[a, b]], 1e-300), means[[a, b]], full[[a, b]])
        weights[a] += weights[b]
        weights, means, full = (np.delete(v, b, axis=0) for v in (weights, means, full))
        covariances = U.covariances if kind == "tied" else in_shape_of(kind, full)
        factors = U.factors if kind == "tied" else factors_of_covariances(kind, covariances)
        none = np.zeros(len(weights), np.int64)
        new = U._replace(weights=weights, means=means, covariances=covariances, factors=factors)
        return self._complete(new._replace(resets=none, floored=none))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Weights, means and covariances from the moments; collapsed components reset, singular covariances floored."""
        return self._maximum(U, stats, self.fixed)

    def _maximum(self, U: Parts, stats: Stats, fixed: Any) -> Parts:
        N, A, B = stats
        total = float(N.sum())
        if (N < 0).any() or not total > 0:
            raise np.linalg.LinAlgError("a component of negative weight")
        kind, d = self.covariance_type, A.shape[1]
        dead = N / total <= DEAD
        count = np.where(dead, 1.0, N)
        weights, means = np.where(dead, 0.0, N) / total, np.where(dead[:, None], U.means, A / count[:, None])
        gap = means - U.means if "means" in fixed else None  # from the means that are held to those of the rows
        if "covariances" in fixed:
            covariances, factors, floored = U.covariances, U.factors, np.zeros(len(N), np.int64)
        elif kind == "tied":
            second = rows.unpack(B, d) / total
            raw = second - (weights * means.T) @ means
            if gap is not None:
                raw += (weights * gap.T) @ gap
            covariances, factors, low = self._floored(raw[None], second[None], self.reg_covar)
            covariances, factors, floored = covariances[0], factors[0], np.repeat(low, len(N))
        else:
            if kind == "full":
                second = rows.unpack(B, d) / count[:, None, None]
                raw = second - means[:, :, None] * means[:, None, :]
                raw += 0.0 if gap is None else gap[:, :, None] * gap[:, None, :]
            elif kind == "diag":
                second = B / count[:, None]
                raw = second - means**2
                raw += 0.0 if gap is None else gap**2
            else:
                second = B / (count * d)
                raw = second - (means**2).mean(axis=1)
                raw += 0.0 if gap is None else (gap**2).mean(axis=1)
            second[dead], raw[dead] = 1.0, U.covariances[dead]
            if kind == "full":
                second[dead], raw[dead] = np.eye(d), U.covariances[dead] - self.reg_covar * np.eye(d)
                covariances, factors, floored = self._floored(raw, second, self.reg_covar)
            else:
                raw[dead] -= self.reg_covar
                covariances, factors, floored = self._floored_variances(raw, second, self.reg_covar)
        resets = U.resets
        if (dead & (resets < RESETS)).any():
            again = np.flatnonzero(dead & (resets < RESETS))
            if not fixed:
                weights, means, covariances, factors = split(kind, again, weights, means, covariances, factors)
            resets = resets + np.isin(np.arange(len(N)), again)
        weights, means = U.weights if "weights" in fixed else weights, U.means if "means" in fixed else means
        next_U = U._replace(weights=weights, means=means, covariances=covariances, factors=factors)
        return self._complete(next_U._replace(resets=resets, floored=floored))

    def notes(self, U: Parts) -> list[str]:
        """What happened to components that collapsed."""
        out, lost = [], np.flatnonzero(U.resets).tolist()
        if lost and self.fixed:
            out.append(f"components {lost} lost all their rows, and stay where they are because {self.fixed} is fixed")
        elif lost:
            out.append(
                f"components {lost} lost all their rows and were reset "
                f"({int(U.resets.sum())} times): fewer components may do"
            )
        if U.floored.any():
            out.append(
                f"components {np.flatnonzero(U.floored).tolist()} have a singular covariance, raised to a floor: "
                "raise reg_covar, scale the columns or take fewer components"
            )
        matrix = self.covariance_type in ("full", "tied")
        least = (
            np.linalg.eigvalsh(U.covariances)[..., 0] if matrix else U.covariances.reshape(len(U.weights), -1).min(1)
        )
        thin = np.broadcast_to(least <= 2.0 * self.reg_covar, len(U.weights)) & (U.floored == 0)
        if thin.any() and "covariances" not in self.fixed:
            out.append(
                f"components {np.flatnonzero(thin).tolist()} have no width in some direction but reg_covar: a constant "
                "column, equal rows, or fewer rows than columns; fewer components or another covariance_type may do"
            )
        return out

    def publish(self, fit: Fit) -> None:
        """Set weights_, means_, covariances_ and their kin."""
        super().publish(fit)
        self.lower_bound_ = -fit.loss / fit.weight

    def _n_parameters(self) -> int:
        K, d = map(int, self.means_.shape)
        own = {"weights": K - 1, "means": K * d, "covariances": super()._n_parameters() - K * d - K + 1}
        return sum(n for name, n in own.items() if name not in self.fixed)

    @classmethod
    def from_parameters(
        cls, weights: Any, means: Any, covariances: Any, *, covariance_type: str = "full", **params: Any
    ) -> GaussianMixture:
        """Return a mixture with given parameters, ready for `sample`, `predict` and `score` without a fit.

        Parameters
        ----------
        weights : array of shape (K,)
            π.
        means : array of shape (K, d)
            μ.
        covariances : array
            Σ, of shape (K, d, d), (d, d), (K, d) or (K,) by the covariance type.
        covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
            As for the class.
        **params
            Other parameters of the class, such as `random_state`.

        Returns
        -------
        model : GaussianMixture
        """
        pi, mu, sigma = (np.array(v, dtype=np.float64) for v in (weights, means, covariances))
        if mu.ndim != 2:
            raise ValueError(f"means has shape {mu.shape}: give a row for each component")
        K, d = mu.shape
        model = cls(K, covariance_type=covariance_type, **params)
        model._validate_params()
        wanted, shape = model._shape_of(K, d), Shape(K, d, np.dtype(np.float64))
        if sigma.shape != wanted:
            raise ValueError(f"covariances has shape {sigma.shape}: give the shape {wanted}")
        factors = factors_of_covariances(covariance_type, sigma)
        unit = np.broadcast_to(np.eye(d) if covariance_type in ("full", "tied") else 1.0, wanted)
        model.set_params(weights_init=pi, means_init=mu, precisions_init=unit)
        try:
            model.check(shape)
        except ValueError as e:
            raise ValueError(str(e).replace("_init", "")) from None  # the names of this method
        model.set_params(**{name: params.get(name) for name in PARAMETERS.values()})
        shift, none = pi @ mu, np.zeros(K, np.int64)
        U = Parts(shift, pi, mu - shift, sigma, factors, np.zeros(0), np.zeros(0), none, none)
        U = model._complete(U)
        model._shape, model.n_features_in_ = shape, d
        model._finish(Fit(U, None, np.nan, np.nan, 1.0, 0, shape.dtype, [], "given", "parameters given", None))
        model._online_ = (moments_of(covariance_type, pi, mu - shift, sigma), 1, 0.0)  # what partial_fit goes on from
        return model

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[GaussianMixture, np.ndarray, Callable[[Any], None]]:
        """Three Gaussians of different shape in three dimensions."""
        means = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 2.0], [0.0, 6.0, -2.0]])
        axes = np.eye(3) + 0.3 * rng.normal(size=(3, 3, 3))
        label = np.arange(600) % 3
        X = means[label] + np.einsum("nij,nj->ni", axes[label], rng.normal(size=(600, 3)))

        def found(model: Any) -> None:
            order = ((model.means_[:, None] - means) ** 2).sum(axis=2).argmin(axis=0)
            assert sorted(order) == [0, 1, 2]
            np.testing.assert_allclose(model.means_[order], means, atol=0.4)
            np.testing.assert_allclose(model.covariances_[order], axes @ axes.transpose(0, 2, 1), atol=0.6)
            np.testing.assert_allclose(model.weights_, 1 / 3, atol=0.05)

        return cls(3, tol=1e-4, random_state=0), X, found
