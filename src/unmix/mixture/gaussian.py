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
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.mixture._base import DEAD_SHARE
from unmix.mixture._gaussian import (
    NO_SCRATCH,
    RUNNING,
    WEIGHT_FLOOR,
    GaussianBase,
    Scratch,
    join,
    nearest,
    split,
)
from unmix.mixture._start import nearest_of
from unmix.mixture.covariances import (
    Stats,
    as_matrices,
    covariances_of_factors,
    factors_of_covariances,
    factors_of_precisions,
    floored,
    in_shape_of,
    is_matrix,
    mean_squares,
    moments_of,
    n_free,
    narrowest,
    shape_of,
    squares,
    unit,
)
from unmix.model.peer import Peer
from unmix.model.starved import scarce, starved

ROUNDING = {"float32": 1e-5, "float64": 1e-9}  # of correlations, up to which columns follow from each other
NAMED = 4  # columns that have no width
RESETS_LIMIT = 3  # per component: one that becomes empty after that stays empty
PARAMETERS = {"weights": "weights_init", "means": "means_init", "covariances": "precisions_init"}


class Events(NamedTuple):
    """Of each component: how often it was reset; whether its covariance is singular and was raised to a floor."""

    resets: Annotated[np.ndarray, Array("k", "i", 0)]
    floored: Annotated[np.ndarray, Array("k", "i", 0)]


class Parts(NamedTuple):
    """π, μ, Σ and its factors P with P Pᵀ = Σ⁻¹."""

    shift: Annotated[np.ndarray, Array("d")]
    weights: Annotated[np.ndarray, Array("k", low=0.0)]
    means: Annotated[np.ndarray, Array("k d")]
    covariances: Annotated[np.ndarray, Array("covariances")]
    factors: Annotated[np.ndarray, Array("covariances")]
    events: Events
    scratch: Scratch = NO_SCRATCH


class GaussianMixture(GaussianBase):
    """Overlapping groups: a mixture of Gaussians, fitted by EM.

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
        Maximum number of passes; with 0 the start is the answer.
    n_init : int, default=1
        Starts; the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        First assignment of a sample of the rows: by k-means; to the nearest of spread-out rows; at random; to the
        nearest of random rows.
    weights_init : array of shape (K,), optional
        First weights π.
    means_init : array of shape (K, d), optional
        First means μ.
    precisions_init : array, optional
        First Σ⁻¹, of shape (K, d, d), (d, d), (K, d) or (K,) by the covariance type.
    fixed : tuple of {"weights", "means", "covariances"}, default=()
        What keeps the value of its `*_init` (of covariances: `precisions_init`); EM fits the rest.
    random_state : int, RandomState or None, default=None
        Seed of the starts, of `sample` and of what `impute` draws.
    warm_start : bool, default=False
        Whether a further `fit` goes on from the parts of the last one, where they suit; `n_init` and what a start would
        take then do not count.
    verbose : int, default=0
        Above 0, print a line for every `verbose_interval` passes.
    verbose_interval : int, default=10
        See `verbose`.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weights of the components, π, which add up to 1.
    means_ : ndarray of shape (K, d)
        Means of the components, μ.
    covariances_ : ndarray
        Covariances Σ, of shape (K, d, d), (d, d), (K, d) or (K,) by the covariance type.
    precisions_ : ndarray
        Their inverses, of the same shape.
    precisions_cholesky_ : ndarray
        Upper triangular P with P Pᵀ = Σ⁻¹; for diag and spherical the inverse standard deviations.
    converged_ : bool
        Whether the stopping rule was met.
    lower_bound_ : float
        Mean log-likelihood of the training rows at the fitted parts.
    lower_bounds_ : list of float
        The same at the parts that each pass began with (where an extrapolation was dropped, the last one again).
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

    tied: ClassVar[tuple[str, ...]] = ("fixed", "weights_init", "means_init", "precisions_init")

    peer = Peer(
        "sklearn.mixture",
        "weights_ means_ covariances_ precisions_ precisions_cholesky_ converged_ lower_bound_ lower_bounds_",
    )

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "fixed": [tuple, list],
        "random_state": ["random_state"],
        **RUNNING,
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
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
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
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are too few rows or a first guess has the wrong shape or values."""
        super().check(shape)
        K, d = self.n_components, shape.d
        given = {"weights_init": (K,), "means_init": (K, d), "precisions_init": shape_of(self.covariance_type, K, d)}
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

    def stages(self, shape: Shape) -> list[Stage]:
        """A short k-means, unless the parameters are given or components are numbered by means that are held."""
        return [self] if self._given or "means" in self.fixed else super().stages(shape)

    @property
    def _given(self) -> bool:
        return all(v is not None for v in (self.weights_init, self.means_init, self.precisions_init))

    def start(self, before: np.ndarray | None, data: Block, rng: np.random.Generator) -> Parts:
        """First parts: a hard or random assignment of a sample, then the guesses that were given in their places."""
        shift, x, _, stats = self._first(before, data, rng)
        K, d, kind = self.n_components, x.shape[1], self.covariance_type
        one = np.broadcast_to(unit(kind, d), shape_of(kind, K, d))
        U = self._maximum(Parts(shift, stats.N, np.zeros((K, d)), one, np.zeros(0), quiet(K)), stats, ())
        U = U._replace(events=U.events._replace(resets=np.zeros(K, np.int64)))
        return self._with_given(U, tuple(PARAMETERS))

    def _with_given(self, U: Parts, names: Any) -> Parts:
        """The parts, with what was given of these parameters in its place."""
        given = {name: getattr(self, PARAMETERS[name]) for name in names}
        if (weights := given.get("weights")) is not None:
            U = U._replace(weights=np.asarray(weights, dtype=np.float64))
        if (means := given.get("means")) is not None:
            U = U._replace(means=np.asarray(means, dtype=np.float64) - U.shift)
        if (precisions := given.get("covariances")) is not None:
            factors = factors_of_precisions(self.covariance_type, np.array(precisions, dtype=np.float64))
            U = U._replace(factors=factors, covariances=covariances_of_factors(self.covariance_type, factors))
        return self._complete(U)

    def go_on(self, U: Any) -> Any:
        """The parts of the last fit, where they suit, with what is held now."""
        suiting = super().go_on(U)
        return suiting if suiting is None or not self.fixed else self._with_given(suiting, self.fixed)

    def _assignment(self, x: np.ndarray, w: np.ndarray, shift: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self._given:
            return np.full((len(x), self.n_components), 1.0 / self.n_components)  # all given: the rows say nothing
        if "means" in self.fixed:  # a start of its own would number the components in another order
            return nearest_of(np.asarray(self.means_init, dtype=np.float64) - shift, x)
        return super()._assignment(x, w, shift, rng)

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts | None:
        """The parts of a fit, with the heaviest cut in two, or with the two joined that lose least by it."""
        return None if self.fixed else self._cut(fit.U) if more else self._joined(fit.U)

    def _cut(self, U: Parts) -> Parts:
        one = (lambda a: a) if self.covariance_type == "tied" else (lambda a: np.concatenate([a, a[:1]]))
        weights, means = np.append(U.weights, 0.0), np.concatenate([U.means, U.means[:1]])
        parts = split(
            self.covariance_type, np.array([len(U.weights)]), weights, means, one(U.covariances), one(U.factors)
        )
        return self._complete(Parts(U.shift, *parts, quiet(len(weights))))

    def _joined(self, U: Parts) -> Parts:
        """Two made one Gaussian of their mean and covariance."""
        kind = self.covariance_type
        a, b = nearest(kind, U.weights, U.means, U.covariances)
        weights, means, full = U.weights.copy(), U.means.copy(), as_matrices(kind, U.covariances, *U.means.shape)
        means[a], full[a] = join(np.maximum(weights[[a, b]], WEIGHT_FLOOR), means[[a, b]], full[[a, b]])
        weights[a] += weights[b]
        weights, means, full = (np.delete(v, b, axis=0) for v in (weights, means, full))
        covariances = U.covariances if kind == "tied" else in_shape_of(kind, full)
        factors = U.factors if kind == "tied" else factors_of_covariances(kind, covariances)
        new = U._replace(weights=weights, means=means, covariances=covariances, factors=factors)
        return self._complete(new._replace(events=quiet(len(weights))))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Weights, means and covariances from the moments; collapsed components reset, singular covariances floored."""
        return self._maximum(U, stats, self.fixed)

    def _maximum(self, U: Parts, stats: Stats, fixed: Any) -> Parts:
        (N, A, B), kind, d = stats, self.covariance_type, stats.A.shape[1]
        total = float(N.sum())
        if (N < 0).any() or not total > 0:
            raise np.linalg.LinAlgError("a component of negative weight")
        dead = N / total <= DEAD_SHARE
        count = np.where(dead, 1.0, N)
        weights, means = np.where(dead, 0.0, N) / total, np.where(dead[:, None], U.means, A / count[:, None])
        covariances, factors, low = U.covariances, U.factors, np.zeros(len(N), np.int64)
        if "covariances" not in fixed:
            second = mean_squares(kind, B, count, total, d)
            raw = second - squares(kind, weights, means)
            if "means" in fixed:  # the rows' own means are beside those that are held
                raw += squares(kind, weights, means - U.means)
            if kind != "tied" and dead.any():  # as they were
                second[dead], raw[dead] = unit(kind, d), U.covariances[dead] - self.reg_covar * unit(kind, d)
            covariances, factors, low = floored(kind, raw, second, self.reg_covar, self._floor(), len(N))
        resets = U.events.resets
        if (dead & (resets < RESETS_LIMIT)).any():
            again = np.flatnonzero(dead & (resets < RESETS_LIMIT))
            if not fixed:
                weights, means, covariances, factors = split(kind, again, weights, means, covariances, factors)
            resets = resets + np.isin(np.arange(len(N)), again)
        weights, means = U.weights if "weights" in fixed else weights, U.means if "means" in fixed else means
        return self._complete(Parts(U.shift, weights, means, covariances, factors, Events(resets, low)))

    def described(self, U: Any, data: Any) -> Described:
        """By the covariance type."""
        return Described(Parts, Stats, Any, self.names())

    def notes(self, U: Parts) -> list[str]:
        """What happened to components that collapsed."""
        out, lost, resets = [], np.flatnonzero(U.events.resets).tolist(), int(U.events.resets.sum())
        if lost and self.fixed:
            out.append(f"components {lost} lost all their rows, and stay where they are because {self.fixed} is fixed")
        elif lost:
            out.append(f"components {lost} lost all their rows and were reset ({resets} times): try fewer components")
        out += starved(scarce(U.weights), len(U.weights), "components", self.shape.online)
        out += self._singular(U, "raise reg_covar, scale the columns or take fewer components")
        given = self.covariance_type, U.weights, U.means, U.covariances, self.reg_covar
        least = narrowest(*given, ROUNDING[self.shape.dtype.name], self.shape.rows)
        thin = (least <= 2.0 * self.reg_covar) & (U.events.floored == 0)
        if thin.any() and "covariances" not in self.fixed:
            out.append(
                f"components {np.flatnonzero(thin).tolist()} have no width in some direction beyond "
                f"reg_covar={self.reg_covar:g}: {self._why_thin(U, thin)}"
            )
        return out

    def _why_thin(self, U: Parts, thin: np.ndarray) -> str:
        """Why components have no width, and what to do."""
        every = np.diagonal(U.covariances, axis1=-2, axis2=-1) if is_matrix(self.covariance_type) else U.covariances
        every = every[:, None] if self.covariance_type == "spherical" else every
        variances = np.broadcast_to(every, U.means.shape)
        low = (variances <= 2.0 * self.reg_covar) & thin[:, None]
        low &= ~low.all(axis=1, keepdims=True)  # of equal rows, and of small numbers, all columns are
        total = U.weights @ (variances + (U.means - U.weights @ U.means) ** 2)
        flat = low & (variances - self.reg_covar <= ROUNDING[self.shape.dtype.name] * total)
        if flat.any():
            return (
                f"within them columns {self._named(flat)} hold one value, as categories and whole numbers do; take "
                "Mixture, which knows these for what they are, or leave them out"
            )
        if low.any():
            return f"columns {self._named(low)} are small beside it; scale the columns or lower reg_covar"
        return (
            "a constant column, equal rows, fewer rows than columns, or numbers that are small beside it; scale "
            "the columns or lower reg_covar, try fewer components or another covariance_type"
        )

    def _named(self, some: np.ndarray) -> str:
        """The columns that are so in any component."""
        at, names = np.flatnonzero(some.any(axis=0)), self.column_names
        return ", ".join(str(j) if names is None else repr(names[j]) for j in at[:NAMED]) + " …" * (len(at) > NAMED)

    def publish(self, fit: Fit) -> None:
        """Set weights_, means_, covariances_ and their kin."""
        super().publish(fit)
        self.lower_bound_ = -fit.loss / fit.weight
        self.lower_bounds_ = [-v for v in fit.objectives]

    def n_parameters(self) -> int:
        """Free numbers of weights, means and covariances, but for what is fixed."""
        K, d = map(int, self.means_.shape)
        own = {"weights": K - 1, "means": K * d, "covariances": n_free(self.covariance_type, K, d)}
        return sum(n for name, n in own.items() if name not in self.fixed)

    @classmethod
    def from_parameters(
        cls, weights: Any, means: Any, covariances: Any, *, covariance_type: str = "full", **params: Any
    ) -> GaussianMixture:
        """Return a mixture with given parameters, ready for `sample`, `predict` and `score` without a fit.

        Parameters
        ----------
        weights : array of shape (K,)
            Weights of the components, π, which add up to 1.
        means : array of shape (K, d)
            Means of the components, μ.
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
        return cls(len(mu), covariance_type=covariance_type, **params)._at(pi, mu, sigma, params)

    def _at(self, pi: np.ndarray, mu: np.ndarray, sigma: np.ndarray, params: dict[str, Any]) -> GaussianMixture:
        """Become the mixture of these parameters."""
        self._validate_params()
        (K, d), kind = mu.shape, self.covariance_type
        wanted, shape = shape_of(kind, K, d), Shape(K, d, np.dtype(np.float64), weight=1.0)
        if sigma.shape != wanted:
            raise ValueError(f"covariances has shape {sigma.shape}: give the shape {wanted}")
        factors = factors_of_covariances(kind, sigma)
        self.set_params(weights_init=pi, means_init=mu, precisions_init=np.broadcast_to(unit(kind, d), wanted))
        try:
            self.check(shape)
        except ValueError as e:
            raise ValueError(str(e).replace("_init", "")) from None  # the names of `from_parameters`
        self.set_params(**{name: params.get(name) for name in PARAMETERS.values()})
        shift = pi @ mu
        U = self._complete(Parts(shift, pi, mu - shift, sigma, factors, quiet(K)))
        self.adopt(U, shape, moments_of(kind, pi, mu - shift, sigma))
        return self

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


def quiet(K: int) -> Events:
    """K components to which nothing has happened."""
    return Events(np.zeros(K, np.int64), np.zeros(K, np.int64))
