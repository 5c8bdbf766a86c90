"""Bayesian Gaussian mixture:  π ~ Dirichlet or broken sticks,  Λ_k ~ Wishart(W₀, ν₀),  μ_k ~ N(m₀, (β₀Λ_k)⁻¹).

The parts are the posteriors q(π), q(μ_k, Λ_k) = N(μ_k | m_k, (β_k Λ_k)⁻¹) Wishart(Λ_k | W_k, ν_k); Σ_k = (ν_k W_k)⁻¹.

local    z_ik ∝ ρ_ik = c_k N(x_i | m_k, Σ_k)             loss = −Σ_i log Σ_k ρ_ik
         log c_k = E log π_k + ½ (E log|Λ_k| − log|ν_k W_k| − d/β_k − ε tr ν_k W_k)
stats    N, A, B of the Gaussian mixture                                     [x measured from the fixed origin U.shift]
update   β_k = β₀ + N_k     ν_k = ν₀ + N_k     m_k = (β₀ m₀ + A_k) / β_k
         W_k⁻¹ = W₀⁻¹ + B_k + N_k εI + β₀ m₀m₀ᵀ − β_k m_k m_kᵀ
         α_k = α₀ + N_k,  or the sticks  v_k ~ Beta(1 + N_k, α₀ + Σ_{j>k} N_j)
penalty  KL(q(π, μ, Λ) ‖ p)

loss + penalty is minus the lower bound of log p(X), so the bound never falls. ε is a variance that the rows are taken
to have on top of their own. diag, spherical: W_k is diagonal, or a multiple of I (the mean of the diagonal). tied: one
W for all, with the K-th part of the statistics of all; its divergence counts K times.

Missing cells: the bound is that of the observed cells; the moments of the missing ones are those under m_k, Σ_k. A row
without an observed cell does not count.

Blei & Jordan (2006); Bishop (2006), section 10.2; the parametrisation is that of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Online
from unmix.engine.trace import Fit
from unmix.kernels import gaussian_rows as rows
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.dirichlet import divergence, expected_weights
from unmix.mixture._base import DEAD_SHARE
from unmix.mixture._gaussian import NO_SCRATCH, RUNNING, GaussianBase, Scratch, nearest, split
from unmix.mixture._wishart import log_det_of, log_gamma, multi_digamma, scatters, traces
from unmix.mixture.covariances import Stats, floored, floored_matrices, is_matrix, moments_of, unit
from unmix.model.peer import Peer

SINGULAR = 1e-12  # share of the largest variance, below which the rows' own covariance cannot be a prior
PRIOR_FLOOR = 1e-290  # of a variance that is a prior, so that its inverse is a number

PerComponent = Annotated[np.ndarray, Array("k", low=0.0)]


class Events(NamedTuple):
    """Of each component, whether its covariance is singular and was raised to a floor."""

    floored: Annotated[np.ndarray, Array("k", "i", 0)]


class Parts(NamedTuple):
    """q, the priors that come from the data, and what follows: E π, Σ, factors, log ρ without the Gaussian."""

    shift: Annotated[np.ndarray, Array("d")]
    mean_prior: Annotated[np.ndarray, Array("d")]
    covariance_prior: Annotated[np.ndarray, Array("prior")]
    counts: Annotated[np.ndarray, Array("k", low=0.0)]
    concentration: Annotated[np.ndarray, Array("concentration", low=POSITIVE)]
    mean_precision: Annotated[np.ndarray, Array("k", low=POSITIVE)]
    dof: Annotated[np.ndarray, Array("dof", low=POSITIVE)]
    weights: Annotated[np.ndarray, Array("k", low=0.0)]
    means: Annotated[np.ndarray, Array("k d")]
    covariances: Annotated[np.ndarray, Array("covariances")]
    factors: Annotated[np.ndarray, Array("covariances")]
    log_weights: Annotated[np.ndarray, Array("k")]
    events: Events
    scratch: Scratch = NO_SCRATCH


class BayesianGaussianMixture(GaussianBase):
    """Overlapping groups, as many as the data need: Gaussians with priors, by variational inference.

    The priors count for some rows, so the scale of `sample_weight` matters: weights that sum to 1 are evidence of one.

    Parameters
    ----------
    n_components : int, default=1
        Maximum number of Gaussians, K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A covariance each; one for all; variances each; one variance each.
    tol : float, default=1e-3
        The fit ends when a pass raises the lower bound per row by no more.
    reg_covar : float, default=1e-6
        ε, added to the variances.
    max_iter : int, default=100
        Maximum number of passes; with 0 the start is the answer.
    n_init : int, default=1
        Starts; the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        First assignment of a sample of the rows.
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, default="dirichlet_process"
        Sticks broken one after the other, or a symmetric Dirichlet.
    weight_concentration_prior : float, optional
        α₀; small values let components vanish. 1/K by default.
    mean_precision_prior : float, optional
        β₀, how many rows m₀ counts for. 1 by default.
    mean_prior : array of shape (d,), optional
        m₀. By default the mean of the rows (of large data of a sample of them).
    degrees_of_freedom_prior : float, optional
        ν₀ > d − 1. By default d.
    covariance_prior : float or array, optional
        W₀⁻¹, of shape (d, d), (d,) for diag or a number for spherical. By default the covariance of the rows (of large
        data of a sample of them).
    total_samples : float, optional
        How many rows the steps of `partial_fit` stand for; by default those seen so far.
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
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : ndarray
        E π, m, Σ = (ν W)⁻¹ and its inverse, as for `GaussianMixture`.
    weight_concentration_ : ndarray of shape (K,), or a tuple of two
        α; for the process both parameters of the sticks.
    mean_precision_ : ndarray of shape (K,)
        β.
    degrees_of_freedom_ : ndarray of shape (K,), or float for tied
        ν.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_
        The priors that were used.
    lower_bound_ : float
        The bound without the terms of the priors alone: scikit-learn's number.
    lower_bounds_ : list of float
        The same at the parts that each pass began with (where an extrapolation was dropped, the last one again).
    log_evidence_ : float
        The whole bound: log p(X) is at least this. It may be compared between fits of different K and priors.
    n_active_ : int
        Components that hold the weight of a row or more.
    labels_ : ndarray of int of shape (n,)
        The likeliest component of each training row, where the rows were in memory.
    converged_ : bool
        Whether the stopping rule was met.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from unmix import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.array([[0, 0], [8, 0], [0, 8]])[np.arange(300) % 3] + rng.normal(size=(300, 2))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # which says that components have vanished
    ...     model = BayesianGaussianMixture(8, weight_concentration_prior=0.01, max_iter=500, random_state=0).fit(X)
    >>> model.n_active_
    3
    """

    weighed_against: ClassVar[str] = "the priors"
    exempt: ClassVar[dict[str, str]] = {
        "scale of weights": "twice the weight is twice the evidence beside the priors",
    }
    peer = Peer(
        "sklearn.mixture",
        "weights_ means_ covariances_ precisions_ precisions_cholesky_ converged_ lower_bound_ lower_bounds_ "
        "weight_concentration_ weight_concentration_prior_ mean_precision_ mean_precision_prior_ mean_prior_ "
        "degrees_of_freedom_ degrees_of_freedom_prior_ covariance_prior_",
    )

    weight_concentration_: tuple[PerComponent, PerComponent] | PerComponent
    mean_precision_: Annotated[np.ndarray, Array("k")]
    degrees_of_freedom_: Annotated[Any, Array("dof")]
    weight_concentration_prior_: float
    mean_precision_prior_: float
    degrees_of_freedom_prior_: float
    mean_prior_: Annotated[np.ndarray, Array("d")]
    covariance_prior_: Annotated[Any, Array("prior")]
    n_active_: int
    log_evidence_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weight_concentration_prior_type": [StrOptions({"dirichlet_process", "dirichlet_distribution"})],
        "weight_concentration_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "mean_precision_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "mean_prior": [None, "array-like"],
        "degrees_of_freedom_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "covariance_prior": [None, "array-like", Interval(Real, 0.0, None, closed="neither")],
        "total_samples": [None, Interval(Real, 0.0, None, closed="neither")],
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
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        total_samples: float | None = None,
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
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.total_samples = total_samples
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are too few rows or a prior has the wrong shape or values."""
        super().check(shape)
        d, kind = shape.d, self.covariance_type
        if self.degrees_of_freedom_prior is not None and self.degrees_of_freedom_prior <= d - 1:
            raise ValueError(f"degrees_of_freedom_prior={self.degrees_of_freedom_prior}: give more than {d - 1}, d − 1")
        wanted = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[kind]
        for name, shape_of in (("mean_prior", (d,)), ("covariance_prior", wanted)):
            value = getattr(self, name)
            if value is not None and (np.shape(value) != shape_of or not np.isfinite(value).all()):
                raise ValueError(f"{name} has shape {np.shape(value)}: give finite numbers in the shape {shape_of}")
        if self.covariance_prior is not None:
            prior = np.asarray(self.covariance_prior, dtype=np.float64)
            if is_matrix(kind):
                good = np.allclose(prior, prior.T) and np.linalg.eigvalsh(prior)[0] > 0
            else:
                good = bool((prior > 0).all())
            if not good:
                raise ValueError("covariance_prior is not positive definite: give a covariance")

    # ---------------------------------------------------------------- the contract

    def start(self, before: np.ndarray | None, data: Block, rng: np.random.Generator) -> Parts:
        """Priors from the sample where none are given; posteriors of a first assignment."""
        shift, x, w, stats = self._first(before, data, rng)
        m0 = w @ x / w.sum() if self.mean_prior is None else np.asarray(self.mean_prior, dtype=np.float64) - shift
        covariance = self._covariance(x, w, data) if self.covariance_prior is None else self.covariance_prior
        W0 = np.array(covariance, dtype=np.float64)
        return self._posterior(shift, m0, W0, stats)

    def go_on(self, U: Any) -> Any:
        """The parts of the last fit, where they suit, with the priors that are given now."""
        process = self.weight_concentration_prior_type == "dirichlet_process"
        if super().go_on(U) is None or (U.concentration.ndim == 2) != process:
            return None
        if self.mean_prior is not None:
            U = U._replace(mean_prior=np.asarray(self.mean_prior, dtype=np.float64) - U.shift)
        if self.covariance_prior is not None:
            U = U._replace(covariance_prior=np.array(self.covariance_prior, dtype=np.float64))
        return U

    def _covariance(self, x: np.ndarray, w: np.ndarray, sample: Block) -> np.ndarray:
        """Covariance of a sample, unbiased, in the shape of the prior; raised where it is singular."""
        kind, rows = self.covariance_type, max(float(w.sum()), float(len(w)))
        total = max(rows - 1.0, 1.0) * (w.sum() / rows)
        x = x - w @ x / w.sum()
        full = (x.T * w) @ x / total
        if sample.observed is not None:  # variances of what was seen, correlations of the rows filled with means
            seen = w @ (sample.observed if sample.w is None else sample.observed[sample.w > 0])
            scale = np.sqrt(w.sum() / np.where(seen > 0, seen, 1.0))
            full *= np.outer(scale, scale)
        variances = np.diagonal(full)
        if is_matrix(kind):
            covariance, _, low = floored_matrices(full[None], full[None] + 0.0, 0.0, self._floor())
            if not low[0] and np.linalg.eigvalsh(full)[0] > SINGULAR * variances.max():
                return full
            return covariance[0] + max(self.reg_covar, SINGULAR * float(variances.max())) * np.eye(len(full))
        least = max(self.reg_covar, SINGULAR * float(variances.max()), PRIOR_FLOOR)
        return np.asarray(np.maximum(variances, least) if kind == "diag" else max(float(variances.mean()), least))

    def _rows_of(self, U: Parts, b: Block, collect: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        blank = None if b.observed is None else ~b.observed.any(axis=1)
        if blank is not None and blank.any():
            b = b._replace(w=np.where(blank, 0.0, 1.0 if b.w is None else b.w))
        z, log_p, totals = super()._rows_of(U, b, collect)
        log_p = log_p + U.log_weights.max()
        if blank is not None:
            log_p[blank] = 0.0
        return z, log_p, totals

    def described(self, U: Any, data: Any) -> Described:
        """By the covariance type and that of the prior of the weights."""
        kind, K, d = self.covariance_type, self.n_components, self.shape.d
        process = self.weight_concentration_prior_type == "dirichlet_process"
        more = {
            "prior": {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[kind],
            "concentration": (2, K) if process else (K,),
            "dof": () if kind == "tied" else (K,),
        }
        return Described(Parts, Stats, Any, self.names() | more)

    def _mixing(self, U: Parts) -> np.ndarray:
        return np.asarray(np.exp((U.log_weights - U.log_weights.max()).astype(np.float64)))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Posteriors given the moments."""
        return self._posterior(U.shift, U.mean_prior, U.covariance_prior, stats)

    def _posterior(self, shift: np.ndarray, m0: np.ndarray, W0: np.ndarray, stats: Stats) -> Parts:
        """Posteriors given the moments and the priors that come from the data; W0 is W₀⁻¹."""
        (N, A, B), (K, d), kind = stats, stats.A.shape, self.covariance_type
        if N.min() < -DEAD_SHARE * abs(N).sum() or not N.sum() > 0:
            raise np.linalg.LinAlgError("a component of negative weight")
        N = np.maximum(N, 0.0)
        alpha0, beta0, nu0 = self._priors(d)
        beta = beta0 + N
        means = (beta0 * m0 + A) / beta[:, None]
        scatter, square = scatters(kind, W0, B, beta0, m0, beta, means)
        nu: Any
        if kind == "tied":
            nu = np.array(nu0 + N.sum() / K)
            raw, second, ridge = scatter / nu, square / nu, self.reg_covar * float(N.sum() / K / nu)
        else:
            nu, each = nu0 + N, (-1,) + (1,) * (scatter.ndim - 1)
            added = self.reg_covar * N.reshape(each) * unit(kind, d)
            raw, second, ridge = (scatter + added) / nu.reshape(each), (square + added) / nu.reshape(each), 0.0
        covariances, factors, low = floored(kind, raw, second, ridge, self._floor(), K)
        concentration: Any = alpha0 + N
        if self.weight_concentration_prior_type == "dirichlet_process":
            after = np.append(np.cumsum(N[::-1])[-2::-1], 0.0)
            concentration = np.array([1.0 + N, alpha0 + after])
        weights, log_weights = expected_weights(concentration)
        # log ρ without the Gaussian: what is uncertain about π, Λ and μ
        log_weights = log_weights + 0.5 * (d * np.log(2.0 / nu) + multi_digamma(nu, d) - d / beta)
        log_weights = log_weights - 0.5 * self.reg_covar * traces(kind, factors, d)
        new = Parts(
            shift, m0, W0, N, concentration, beta, nu, weights, means, covariances, factors, log_weights, Events(low)
        )
        return self._complete(new)

    def _priors(self, d: int) -> tuple[float, float, float]:
        """α₀, β₀ and ν₀."""
        given = self.weight_concentration_prior, self.mean_precision_prior, self.degrees_of_freedom_prior
        usual = 1.0 / self.n_components, 1.0, float(d)
        alpha0, beta0, nu0 = (u if g is None else float(g) for g, u in zip(given, usual, strict=True))
        return alpha0, beta0, nu0

    def goal(self, U: Parts, first: float) -> float:
        """`tol` is a gain of the whole bound, as scikit-learn's is: a share of it for each row."""
        return float(self.tol) / self.shape.weight

    def penalty(self, U: Parts) -> float:
        """KL(q ‖ p) of weights, means and precisions."""
        (K, d), kind = U.means.shape, self.covariance_type
        alpha0, beta0, nu0 = self._priors(d)
        nu, beta, gap = U.dof, U.mean_precision, U.means - U.mean_prior
        if is_matrix(kind):
            y = np.einsum("kj,kji->ki", gap, np.broadcast_to(U.factors, (K, d, d)))
            precision = U.factors @ np.swapaxes(U.factors, -1, -2)
            trace, log_det0 = (precision * U.covariance_prior).sum(axis=(-2, -1)), log_det_of(U.covariance_prior, d)
        else:
            factors = U.factors.reshape(K, -1)
            y, prior = gap * factors, np.broadcast_to(U.covariance_prior, d)
            trace, log_det0 = (np.broadcast_to(factors**2, (K, d)) * prior).sum(axis=1), log_det_of(prior, d)
        log_det = 2.0 * rows.log_det(kind, U.factors, d) - d * np.log(nu)  # of W
        of_means = 0.5 * (d * (beta0 / beta - 1.0 + np.log(beta / beta0)) + beta0 * (y * y).sum(axis=1)).sum()
        of_precisions = (
            0.5 * (nu0 * (-log_det0 - log_det) + trace - nu * d + (nu - nu0) * multi_digamma(nu, d))
            + log_gamma(nu0, d) - log_gamma(nu, d)
        )  # fmt: skip
        of_precisions = float(K * of_precisions if kind == "tied" else of_precisions.sum())
        return float(of_means) + of_precisions + divergence(U.concentration, alpha0)

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts:
        """The parts of a fit, with the heaviest cut in two, or with the two merged that lose least by it."""
        return self._cut(fit.U) if more else self._joined(fit.U, fit.stats)

    def online(self) -> Online:
        """`total_samples` is how many rows the statistics stand for."""
        return Online(total=self.total_samples)

    def _cut(self, U: Parts) -> Parts:
        kind = self.covariance_type
        more = [np.concatenate([a, a[:1]]) for a in (U.counts, U.means, U.covariances, U.factors)]
        more[2:] = (U.covariances, U.factors) if kind == "tied" else more[2:]
        N, means, covariances, _ = split(kind, np.array([len(U.counts)]), *more)
        return self.update(U, moments_of(kind, N, means, covariances))

    def _joined(self, U: Parts, stats: Stats) -> Parts:
        (N, A, B), kind = stats, self.covariance_type
        a, b = nearest(kind, U.counts, U.means, U.covariances)
        one = np.delete(np.eye(len(N)), b, axis=0)  # (K − 1, K): who becomes whom
        one[a, b] = 1.0
        return self.update(U, Stats(one @ N, one @ A, B if kind == "tied" else one @ B))

    def notes(self, U: Parts) -> list[str]:
        """Which components vanished, and which covariances are singular."""
        out, gone = [], np.flatnonzero(U.counts < 1.0).tolist()
        if gone:
            out.append(f"components {gone} have vanished: {len(U.counts) - len(gone)} hold the rows")
        if gone and self._drowned(U):
            out.append(f"the columns have no width beyond reg_covar={self.reg_covar:g}: scale them or lower reg_covar")
        return out + self._singular(U, "raise reg_covar or give a covariance_prior")

    def _drowned(self, U: Parts) -> bool:
        """Whether variances are hardly more than `reg_covar`."""
        every = np.diagonal(U.covariances, axis1=-2, axis2=-1) if is_matrix(self.covariance_type) else U.covariances
        return bool(np.median(every) <= 2.0 * self.reg_covar)

    def publish(self, fit: Fit) -> None:
        """Set the posteriors, the priors and the bounds."""
        super().publish(fit)
        U, (K, d) = fit.U, fit.U.means.shape
        process = self.weight_concentration_prior_type == "dirichlet_process"
        self.weight_concentration_ = tuple(a.astype(fit.dtype) for a in U.concentration) if process else U.concentration
        self.mean_precision_ = U.mean_precision
        self.degrees_of_freedom_ = float(U.dof) if self.covariance_type == "tied" else U.dof
        alpha0, beta0, nu0 = self._priors(d)
        self.weight_concentration_prior_, self.mean_precision_prior_ = alpha0, beta0
        self.degrees_of_freedom_prior_ = nu0
        self.mean_prior_ = U.mean_prior + U.shift
        prior = U.covariance_prior
        self.covariance_prior_ = prior if prior.ndim else float(prior)
        self.n_active_ = int((U.counts >= 1.0).sum())
        self.log_evidence_ = -(fit.loss + self.penalty(U))
        wishart0 = 0.5 * nu0 * (d * np.log(2.0) - log_det_of(prior, d)) + log_gamma(nu0, d)
        weights0 = -K * betaln(1.0, alpha0) if process else gammaln(K * alpha0) - K * gammaln(alpha0)
        constant = weights0 + K * (0.5 * d * np.log(beta0) - wishart0) - 0.5 * fit.weight * d * rows.LOG_2PI
        self.lower_bound_ = float(self.log_evidence_ - constant)
        self.lower_bounds_ = [float(-v * fit.weight - constant) for v in fit.objectives]

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[BayesianGaussianMixture, np.ndarray, Callable[[Any], None]]:
        """Three Gaussians, and two components more than there are."""
        means = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 2.0], [0.0, 6.0, -2.0]])
        axes = np.eye(3) + 0.3 * rng.normal(size=(3, 3, 3))
        label = np.arange(300) % 3
        X = means[label] + np.einsum("nij,nj->ni", axes[label], rng.normal(size=(300, 3)))

        def found(model: Any) -> None:
            assert model.n_active_ == 3
            order = ((model.means_[:, None] - means) ** 2).sum(axis=2).argmin(axis=0)
            np.testing.assert_allclose(model.means_[order], means, atol=0.4)
            np.testing.assert_allclose(model.weights_[order], 1 / 3, atol=0.05)

        model = cls(5, weight_concentration_prior=1e-2, tol=1e-5, max_iter=300, total_samples=300, random_state=0)
        return model, X, found
