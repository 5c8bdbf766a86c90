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

Dempster, Laird & Rubin (1977); missing cells: Ghahramani & Jordan (1994); online: Cappé & Moulines (2009).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.engine.block import Block, Local
from unmix.engine.layout import Shape
from unmix.engine.loop import mean
from unmix.engine.trace import Fit
from unmix.kernels import gaussian_rows as rows
from unmix.model import Model

DEAD = 1e-12  # share of the weight below which a component holds nothing
RESETS = 3
INFEASIBLE = 1e-5  # a variance below −1e-5 of the mean square is more than rounding
LIMIT = {"float32": 1e-3, "float64": 1e-10}  # error that multiplied-out densities may have: precision × spread


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


class Stats(NamedTuple):
    """N, A, B; symmetric matrices as upper triangles."""

    N: np.ndarray
    A: np.ndarray
    B: np.ndarray


class GaussianMixture(DensityMixin, Model):
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
    """

    missing: ClassVar[bool] = True
    accelerate: ClassVar[bool] = True

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
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are too few rows or a first guess has the wrong shape or values."""
        K, d = self.n_components, shape.d
        if shape.n < K:
            raise ValueError(f"n_components={K}, but X has n_samples = {shape.n}: give at most that many components")
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
            _factors_of_precisions(self.covariance_type, np.asarray(self.precisions_init, dtype=np.float64))

    def _shape_of(self, K: int, d: int) -> tuple[int, ...]:
        return {"full": (K, d, d), "tied": (d, d), "diag": (K, d), "spherical": (K,)}[self.covariance_type]

    # ---------------------------------------------------------------- the contract

    def sample_rows(self, shape: Shape) -> int:
        """Rows for the start: some for each number of each component."""
        return max(1 << 14, 10 * self.n_components * shape.d)

    def start(self, sample: Block, rng: np.random.Generator) -> Parts:
        """First parts: a hard or random assignment of a sample, then the guesses that were given in their places."""
        K, d, kind = self.n_components, sample.x.shape[1], self.covariance_type
        shift = mean(sample).astype(sample.x.dtype).astype(np.float64)  # blocks in that precision subtract the same
        x = sample.x.astype(np.float64) - shift
        if sample.observed is not None:
            x *= sample.observed  # the mean, for the start alone
        w = np.ones(len(x)) if sample.w is None else sample.w
        x, w = x[w > 0], w[w > 0]
        if self.weights_init is not None and self.means_init is not None and self.precisions_init is not None:
            z = np.full((len(x), K), 1.0 / K) * w[:, None]  # every part is given: the rows say nothing
        else:
            z = self._assignment(x, w, rng) * w[:, None]
        N, A = z.sum(axis=0), z.T @ x
        if kind == "full":
            B = np.array([rows.pack((x * z[:, [k]]).T @ x) for k in range(K)])
        elif kind == "tied":
            B = rows.pack((x * z.sum(axis=1, keepdims=True)).T @ x)
        else:
            B = z.T @ (x * x)
            B = B if kind == "diag" else B.sum(axis=1)
        none = np.zeros(K, np.int64)
        unit = np.broadcast_to(np.eye(d) if kind in ("full", "tied") else 1.0, self._shape_of(K, d))
        start = Parts(shift, N, np.zeros((K, d)), unit, *(np.zeros(0),) * 3, none, none)
        U = self.update(start, Stats(N, A, B))._replace(resets=none)
        weights, means, covariances, factors = U.weights, U.means, U.covariances, U.factors
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
        if self.means_init is not None:
            means = np.asarray(self.means_init, dtype=np.float64) - shift
        if self.precisions_init is not None:
            factors = _factors_of_precisions(kind, np.array(self.precisions_init, dtype=np.float64))
            covariances = _covariances_of_factors(kind, factors)
        return self._complete(U._replace(weights=weights, means=means, covariances=covariances, factors=factors))

    def _assignment(self, x: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """First responsibilities of complete rows."""
        from sklearn.cluster import KMeans, kmeans_plusplus

        K, seed = self.n_components, int(rng.integers(2**31))
        if self.init_params == "random":
            z = rng.random((len(x), K))
            return np.asarray(z / z.sum(axis=1, keepdims=True))
        if len(x) < K:
            centres = x[rng.integers(len(x), size=K)]
        elif self.init_params == "kmeans":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fewer distinct rows than K: the empty ones are reset below
                return np.eye(K)[KMeans(K, n_init=1, max_iter=30, random_state=seed).fit(x, sample_weight=w).labels_]
        elif self.init_params == "k-means++":
            centres = kmeans_plusplus(x, K, sample_weight=w, random_state=seed)[0]
        else:
            centres = x[rng.choice(len(x), K, replace=False, p=w / w.sum())]
        return np.eye(K)[((centres**2).sum(axis=1) - 2.0 * x @ centres.T).argmin(axis=1)]

    def local(self, U: Parts, b: Block) -> Local:
        """Responsibilities, their moments about the origin, and minus the log-likelihood."""
        z, log_p, totals = self._rows_of(U, b, moments=True)
        return Local(z, Stats(*totals), -b.sum(log_p))

    def _rows_of(self, U: Parts, b: Block, moments: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """(z, log p, moments) of a block, the fastest way that the numbers and the missing cells allow."""
        kind = self.covariance_type
        G = rows.Gaussians(kind, U.weights, U.means, U.covariances, U.factors, U.natural)
        if b.observed is not None and kind in ("full", "tied"):
            return _missing(G, b, U.shift, moments)
        error = np.finfo(b.x.dtype).eps * float(U.spread)
        narrow = kind != "full" or b.x.shape[1] <= min(128, 24 + 8 * len(U.weights))  # measured: where features win
        if b.observed is None and narrow and error <= LIMIT[b.x.dtype.name]:
            return rows.by_features(G, b.x, U.shift, b.w, moments)
        return rows.by_components(G, b.x, U.shift, b.w, b.observed, moments)

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Weights, means and covariances from the moments; collapsed components reset, singular covariances floored."""
        N, A, B = stats
        total = float(N.sum())
        if (N < 0).any() or not total > 0:
            raise np.linalg.LinAlgError("a component of negative weight")
        kind, d = self.covariance_type, A.shape[1]
        dead = N / total <= DEAD
        count = np.where(dead, 1.0, N)
        weights, means = np.where(dead, 0.0, N) / total, np.where(dead[:, None], U.means, A / count[:, None])
        if kind == "tied":
            second = rows.unpack(B, d) / total
            raw = second - (weights * means.T) @ means
            covariances, factors, low = self._floored(raw[None], second[None])
            covariances, factors, floored = covariances[0], factors[0], np.repeat(low, len(N))
        else:
            if kind == "full":
                second = rows.unpack(B, d) / count[:, None, None]
                raw = second - means[:, :, None] * means[:, None, :]
            elif kind == "diag":
                second = B / count[:, None]
                raw = second - means**2
            else:
                second = B / (count * d)
                raw = second - (means**2).mean(axis=1)
            second[dead], raw[dead] = 1.0, U.covariances[dead]
            if kind == "full":
                second[dead], raw[dead] = np.eye(d), U.covariances[dead] - self.reg_covar * np.eye(d)
                covariances, factors, floored = self._floored(raw, second)
            else:
                raw[dead] -= self.reg_covar
                covariances, factors, floored = self._floored_variances(raw, second)
        resets = U.resets
        if (dead & (resets < RESETS)).any():
            again = np.flatnonzero(dead & (resets < RESETS))
            weights, means, covariances, factors = _split(kind, again, weights, means, covariances, factors)
            resets = resets + np.isin(np.arange(len(N)), again)
        next_U = U._replace(weights=weights, means=means, covariances=covariances, factors=factors)
        return self._complete(next_U._replace(resets=resets, floored=floored))

    def _floor(self) -> float:
        shape = getattr(self, "_shape", None)
        return max(1e-12, 10.0 * float(np.finfo(np.float64 if shape is None else shape.dtype).eps))

    def _floored(self, raw: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ = raw + εI and its factors; `second` are the mean squares of which raw is a small difference."""
        K, d, _ = raw.shape
        covariances = raw + self.reg_covar * np.eye(d)
        factors, floored = np.empty_like(raw), np.zeros(K, np.int64)
        for k in range(K):
            try:
                L = cholesky(covariances[k], lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                square = np.diagonal(second[k])
                if (square < -DEAD * np.abs(second[k]).max()).any():
                    raise np.linalg.LinAlgError("a negative mean square") from None
                scale = np.sqrt(np.maximum(square, 1e-16 * square.max()))
                scale[scale == 0] = 1.0
                values, axes = np.linalg.eigh(raw[k] / np.outer(scale, scale))
                if values[0] < -INFEASIBLE:
                    raise np.linalg.LinAlgError("a covariance that is not positive definite") from None
                axes = axes * scale[:, None]
                covariances[k] = (axes * np.maximum(values, self._floor() * d)) @ axes.T + self.reg_covar * np.eye(d)
                floored[k] = 1
                L = cholesky(covariances[k], lower=True)
            factors[k] = solve_triangular(L, np.eye(d), lower=True, check_finite=False).T
        return covariances, factors, floored

    def _floored_variances(self, raw: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variances = raw + self.reg_covar
        low = variances <= 0
        if low.any():
            if (raw < -INFEASIBLE * np.abs(second)).any() or (second < 0).any():
                raise np.linalg.LinAlgError("a negative variance")
            floor = self._floor() * np.maximum(second, 1e-16 * second.max())
            variances = np.where(low, np.maximum(floor, np.finfo(np.float64).tiny ** 0.5), variances)
        floored = np.asarray(low.reshape(len(low), -1).any(axis=1), dtype=np.int64)
        return variances, 1.0 / np.sqrt(variances), floored

    def _complete(self, U: Parts) -> Parts:
        """The parts with what follows from weights, means and factors."""
        kind = self.covariance_type
        spread = np.array(rows.spread(kind, U.means, U.covariances, U.factors))
        return U._replace(natural=rows.natural(kind, U.weights, U.means, U.factors), spread=spread)

    def notes(self, U: Parts) -> list[str]:
        """What happened to components that collapsed."""
        out = []
        if U.resets.any():
            out.append(
                f"components {np.flatnonzero(U.resets).tolist()} lost all their rows and were reset "
                f"({int(U.resets.sum())} times): fewer components may do"
            )
        if U.floored.any():
            out.append(
                f"components {np.flatnonzero(U.floored).tolist()} have a singular covariance, raised to a floor: "
                "raise reg_covar, scale the columns or take fewer components"
            )
        return out

    def publish(self, fit: Fit) -> None:
        """Set weights_, means_, covariances_ and their kin."""
        U, kind = fit.U, self.covariance_type
        self.weights_, self.means_, self.covariances_ = U.weights, U.means + U.shift, U.covariances
        self.precisions_cholesky_ = U.factors
        self.precisions_ = U.factors @ np.swapaxes(U.factors, -1, -2) if kind in ("full", "tied") else U.factors**2
        self.converged_ = fit.result == "converged"
        self.lower_bound_ = -fit.loss / fit.weight

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Responsibilities."""
        return self._rows_of(U, b, moments=False)[0]

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """The component of the largest responsibility."""
        return np.asarray(self._rows_of(U, b, moments=False)[0].argmax(axis=1))

    def log_density(self, U: Parts, b: Block) -> np.ndarray:
        """Logarithm of the density of the observed cells of each row."""
        return self._rows_of(U, b, moments=False)[1]

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """The mean row of each mixture of responsibilities."""
        return np.asarray(z @ U.means + U.shift * z.sum(axis=1, keepdims=True))

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    # ---------------------------------------------------------------- what users call

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the responsibilities of the components for each row.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, K)
        """
        return np.asarray(self._rows("encode", X))

    score = Model.score  # the mean log-likelihood; the mixin's is a stub

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion: 2 × number of free parameters − 2 × log-likelihood. Lower is better.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        aic : float
        """
        log_p = self.score_samples(X)
        return float(2.0 * self._n_parameters() - 2.0 * log_p.sum(dtype=np.float64))

    def bic(self, X: Any) -> float:
        """Return the Bayesian criterion: log n × number of free parameters − 2 × log-likelihood. Lower is better.

        Parameters
        ----------
        X : anything with rows
            As for `fit`.

        Returns
        -------
        bic : float
        """
        log_p = self.score_samples(X)
        return float(self._n_parameters() * np.log(len(log_p)) - 2.0 * log_p.sum(dtype=np.float64))

    def _n_parameters(self) -> int:
        K, d = map(int, self.means_.shape)
        covariance = {"full": K * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": K * d, "spherical": K}
        return covariance[self.covariance_type] + K * d + K - 1

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted mixture, component after component.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : ndarray of shape (n_samples, d)
        y : ndarray of int of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples!r}: give at least 1")
        rng, U = check_random_state(self.random_state), self._parts_
        K, d = U.means.shape
        counts = rng.multinomial(n_samples, U.weights / U.weights.sum())
        X = np.empty((n_samples, d), dtype=self._dtype_)
        y = np.repeat(np.arange(K), counts)
        for k in range(K):
            centre = U.means[k] + U.shift
            if self.covariance_type in ("full", "tied"):
                X[y == k] = rng.multivariate_normal(centre, np.broadcast_to(U.covariances, (K, d, d))[k], counts[k])
            else:
                X[y == k] = centre + rng.standard_normal((counts[k], d)) * np.sqrt(U.covariances[k])
        return X, y

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


def _missing(G: rows.Gaussians, b: Block, shift: np.ndarray, moments: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows with missing cells under full or tied covariances, in float64."""
    from unmix.kernels.gaussian_missing import patterns

    K, d = G.means.shape
    means = G.means.astype(np.float64)
    P = np.ascontiguousarray(np.broadcast_to(G.factors, (K, d, d)), dtype=np.float64)
    x, observed = (b.x - shift).astype(np.float64), np.ascontiguousarray(b.observed)
    w = np.ones(len(x)) if b.w is None else b.w
    packed = np.packbits(observed, axis=1)
    order = np.lexsort(packed.T)  # rows of one pattern stand together
    changes = (packed[order[1:]] != packed[order[:-1]]).any(axis=1)
    first = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(x)]])
    log_weights = np.log(np.maximum(G.weights, rows.TINY), dtype=np.float64)
    log_dets = rows.log_det("full", P, d)
    z, log_p = np.empty((len(x), K)), np.empty(len(x))
    N, A, B = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    given = (log_weights, log_dets, means, P @ P.transpose(0, 2, 1), P)
    patterns(x, observed, order, first, w, *given, moments, z, log_p, N, A, B)
    z, log_p = z.astype(b.x.dtype, copy=False), log_p.astype(b.x.dtype, copy=False)
    if not moments:
        return z, log_p, None
    moved = A + N[:, None] * means  # from each mean to the origin, as B is below
    B = rows.pack(B + A[:, :, None] * means[:, None, :] + means[:, :, None] * moved[:, None, :])
    return z, log_p, rows.Totals(N, moved, B.sum(axis=0) if G.kind == "tied" else B)


def _split(
    kind: str, empty: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Each empty component takes half of the heaviest one, the means to either side along its longest axis."""
    weights, means, covariances, factors = weights.copy(), means.copy(), covariances.copy(), factors.copy()
    for k in empty:
        j = int(weights.argmax())
        if kind in ("full", "tied"):
            values, axes = np.linalg.eigh(covariances if kind == "tied" else covariances[j])
            axis = axes[:, -1] * np.sign(axes[np.abs(axes[:, -1]).argmax(), -1]) * np.sqrt(values[-1])
        else:
            variances = np.broadcast_to(covariances[j], means.shape[1])
            axis = np.where(np.arange(len(variances)) == variances.argmax(), np.sqrt(variances), 0.0)
        means[k], means[j] = means[j] + 0.5 * axis, means[j] - 0.5 * axis
        weights[k] = weights[j] = weights[j] / 2.0
        if kind != "tied":
            covariances[k], factors[k] = covariances[j], factors[j]
    return weights, means, covariances, factors


def _factors_of_precisions(kind: str, precisions: np.ndarray) -> np.ndarray:
    """P with P Pᵀ = the given precisions, upper triangular."""
    if kind in ("diag", "spherical"):
        if not (precisions > 0).all():
            raise ValueError("precisions_init holds a number that is not positive: give inverse variances")
        return np.asarray(np.sqrt(precisions))
    symmetric = np.allclose(precisions, np.swapaxes(precisions, -1, -2))
    try:
        lower = np.linalg.cholesky(precisions[..., ::-1, ::-1])  # of reversed columns, so that P is upper triangular
    except np.linalg.LinAlgError:
        symmetric = False
    if not symmetric:
        raise ValueError("precisions_init is not symmetric and positive definite: give inverse covariances")
    return np.ascontiguousarray(lower[..., ::-1, ::-1])


def _covariances_of_factors(kind: str, factors: np.ndarray) -> np.ndarray:
    if kind in ("diag", "spherical"):
        return factors**-2.0
    one = factors.reshape(-1, *factors.shape[-2:])
    inverse = np.array([solve_triangular(P, np.eye(len(P)), lower=False) for P in one])
    return np.asarray((inverse.transpose(0, 2, 1) @ inverse).reshape(factors.shape))
