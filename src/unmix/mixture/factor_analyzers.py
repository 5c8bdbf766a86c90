"""Mixture of factor analysers:  p(x) = Σ_k π_k N(x | μ_k, W_kᵀ W_k + diag ψ_k),  in component k  x = z W_k + μ_k + ε.

local    M_k = I + W_k ψ_k⁻¹ W_kᵀ     m_ik = M_k⁻¹ W_k ψ_k⁻¹ (x_i − μ_k)     r_ik = π_k p_k(x_i) / p(x_i)
         |W_kᵀ W_k + ψ_k| = |M_k| Π_j ψ_kj         loss = −Σ_i log p(x_i)        [inversion and determinant lemmas: q×q]
stats    A_k = Σ_i r_ik E[ẑẑᵀ]     B_k = Σ_i r_ik E[ẑ] xᵀ     C_kj = Σ_i r_ik x_ij²                         ẑ = (z, 1)
         E[ẑ] = (m, 1)      E[ẑẑᵀ] = (M⁻¹ + mmᵀ, m; mᵀ, 1)
update   π ∝ n_k, the last entry of A_k      (W_k; μ_k) = A_k⁻¹ B_k      rest_kj = C_kj − B_kjᵀ A_k⁻¹ B_kj
         ψ_kj = rest_kj / n_k    isotropic: Σ_j rest_kj / d n_k    shared: Σ_k rest_kj / Σ_k n_k    both: over both sums
         not below its floor; then, as z ~ N(a, R) in the expanded model, μ_k += a W_k, W_k ← chol(R)ᵀ W_k   [latent.py]

The cost of a pass is n·K·d·q, of GaussianMixture n·K·d². One ψ_k for all columns (noise="isotropic") makes it a mixture
of probabilistic PCA; ψ may be shared by the components. x is measured from a fixed origin in fixed units, powers of two
near the columns' standard deviations, so that neither units nor extrapolation across columns matter.

Missing cells: only the observed ones enter r, M and m; A_k, and the n_k below ψ, is then a sum of its own for each
column j, over the rows that have observed it. A row of which nothing was observed has r = π and loss 0, and no say.

A component that holds less than 1e-12 of the weight is reset, three times at most: it takes half of the heaviest one,
the two means half a standard deviation to either side along its longest axis.

Ghahramani & Hinton (1996); Tipping & Bishop (1999); parameter expansion: Liu, Rubin & Wu (1998).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.engine import layout, tree
from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes
from unmix.engine.trace import Fit
from unmix.maths import latent
from unmix.maths.arrays import Array
from unmix.maths.gaussian import chosen
from unmix.mixture._analyzers import Events, Parts, Scratch, Stats, completed, quiet, rotations, rows_of
from unmix.mixture._base import DEAD_SHARE
from unmix.mixture._factors import (
    analysed,
    best_loadings,
    checked,
    constrained,
    covariance,
    covariances,
    is_noise_of,
    joined,
    split,
    stats_of,
    with_factors,
)
from unmix.mixture._start import FromRows
from unmix.model.capabilities import Gaussians
from unmix.model.starved import scarce, starved

TINY = 1e-300  # stands for a weight of zero, by which is divided
RESETS_LIMIT = 3  # per component: one that becomes empty after that stays empty
LEAST_NOISE = {"float32": 1e-5, "float64": 1e-6}  # share of a column's variance
BLOCK_BYTES = 16 << 20  # of a block that is made larger because there are many statistics to add up


class MixtureOfFactorAnalyzers(FromRows):
    """Overlapping groups in many columns: a mixture of Gaussians whose covariances have few factors.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    n_factors : int, default=2
        Factors q of each component, as many as there are columns at most. With 0 columns are independent within a
        component.
    noise : {"diagonal", "isotropic"}, default="diagonal"
        ψ for each column, or one for all of them: components are then probabilistic PCAs.
    shared_noise : bool, default=False
        Whether components have one ψ in common.
    tol : float, default=1e-3
        The fit ends when a pass raises the mean log-likelihood by no more.
    reg_covar : float, default=1e-6
        The least ψ. It is not below 1e-6 of a column's variance (1e-5 in single precision) in any case.
    max_iter : int, default=200
        Maximum number of passes; with 0 the start is the answer.
    n_init : int, default=1
        Starts; the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        First assignment of a sample of the rows: by k-means; to the nearest of spread-out rows; at random; to the
        nearest of random rows.
    random_state : int, RandomState or None, default=None
        Seed of the starts, of `sample` and of what `impute` draws.
    warm_start : bool, default=False
        Whether a further `fit` goes on from the parts of the last one, where they suit.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weights of the components, π, which add up to 1.
    means_ : ndarray of shape (K, d)
        Means of the components, μ.
    components_ : ndarray of shape (K, q, d)
        Loadings W: of each component the strongest factor first, orthogonal in units of the noise.
    noise_variance_ : ndarray of shape (K, d)
        Variances of the noise, ψ.
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
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from unmix import MixtureOfFactorAnalyzers
    >>> X = load_iris().data.copy()
    >>> X[::10, 2] = np.nan  # not observed
    >>> model = MixtureOfFactorAnalyzers(2, 1, random_state=0).fit(X)
    >>> sorted(model.weights_.round(2).tolist())
    [0.33, 0.67]
    >>> model.factors(X).shape
    (150, 1)
    """

    degrees: ClassVar[dict[str, int | None]] = {
        "reg_covar": 2, "means_": 1, "components_": 1, "noise_variance_": 2, "lower_bound_": None,
    }  # fmt: skip

    weights_: Annotated[np.ndarray, Array("k", low=0.0)]
    means_: Annotated[np.ndarray, Array("k d")]
    components_: Annotated[np.ndarray, Array("k f d")]
    noise_variance_: Annotated[np.ndarray, Array("k d", low=0.0)]
    lower_bounds_: list[float]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_factors": [Interval(Integral, 0, None, closed="left")],
        "noise": [StrOptions({"diagonal", "isotropic"})],
        "shared_noise": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 1,
        n_factors: int = 2,
        *,
        noise: str = "diagonal",
        shared_noise: bool = False,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 200,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_factors = n_factors
        self.noise = noise
        self.shared_noise = shared_noise
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.warm_start = warm_start

    def check_parameters(self, shape: Shape) -> None:
        """Also refuse more factors than columns, which would be as many as there are columns."""
        super().check_parameters(shape)
        if self.n_factors > shape.d:
            raise ValueError(f"n_factors={self.n_factors} is more than the {shape.d} columns of X")

    def _size(self, d: int) -> int:
        """Number of factors of d columns."""
        return min(self.n_factors, d)

    @property
    def _isotropic(self) -> bool:
        return self.noise == "isotropic"

    def sizes(self, shape: Shape) -> Sizes:
        """Larger blocks where there are many statistics."""
        rows, many = layout.block_rows(shape), 4 * self.n_components * (self._size(shape.d) + 1)
        most = BLOCK_BYTES // (shape.d * shape.dtype.itemsize)
        return super().sizes(shape)._replace(block=max(rows, min(many, most)))

    # ---------------------------------------------------------------- the start

    def start(self, before: np.ndarray | None, data: Block, rng: np.random.Generator) -> Parts:
        """Factors of the covariance of each component of a first assignment of a sample."""
        shift, x, w = self._about(data)
        K, d = self.n_components, x.shape[1]
        seen = np.ones(x.shape) if data.observed is None else self._counted(data).astype(np.float64)
        if data.observed is not None:
            self._afford(d)
        z = np.eye(K)[before] if before is not None else self._assignment(x, w, shift, rng)
        unit, floor = self._units(shift, (w @ x**2) / np.maximum(w @ seen, TINY))
        v, zw = x / unit, z * w[:, None]
        N, means = zw.sum(axis=0), (zw.T @ v) / np.maximum(zw.T @ seen, TINY)
        S = np.array([covariance((v - means[k]) * seen, seen, zw[:, k]) for k in range(K)])
        q, total = self._size(d), N.sum()
        pooled = np.tensordot(N / total, S, 1)
        like = (q + 1) * total / len(x)  # so many rows of any component say what few of one would not
        S = (N[:, None, None] * S + like * pooled) / (N + like)[:, None, None]
        enough = [data.observed is None and int((zw[:, k] > 0).sum()) > 2 * d for k in range(K)]
        own = [analysed(C, q, floor, self._isotropic, e) for C, e in zip(S, enough, strict=True)]
        loadings, noise = (np.array(a) for a in zip(*own, strict=True))
        if self.shared_noise:
            noise = np.broadcast_to((N / total) @ noise, noise.shape).copy()
            loadings = np.array([best_loadings(C, q, noise[0]) for C in S])
        return completed(Parts(shift, unit, floor, N / total, means, loadings, noise, quiet(K)))

    def _counted(self, data: Block) -> np.ndarray:
        """Which cells of the rows that count were observed."""
        return np.asarray(data.observed if data.w is None else data.observed[data.w > 0])  # type: ignore[index]

    def _afford(self, d: int) -> None:
        """Refuse statistics of missing cells that are beyond the memory budget."""
        q = self._size(d)
        if (size := 4 * self.n_components * d * (q + 1) * (q + 2)) > get_config().budget:
            raise ValueError(
                f"n_factors={self.n_factors} and n_components={self.n_components} with missing cells need statistics "
                f"of {size / 1e9:.1f} GB: give a smaller number of factors"
            )

    def _units(self, shift: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Powers of two near the standard deviations, and the least noise in these units."""
        kind = self.shape.dtype
        varies = variance > (8.0 * np.finfo(kind).eps * shift) ** 2
        mean = float(variance[varies].mean()) if varies.any() else 1.0
        scale = np.full(len(shift), mean) if self._isotropic else np.where(varies, variance, mean)
        unit = np.exp2(np.round(0.5 * np.log2(scale)))
        return unit, np.maximum(LEAST_NOISE[kind.name] * scale, self.reg_covar) / unit**2

    def go_on(self, U: Parts) -> Parts | None:
        """The parts of the last fit, where they are as many, have as many factors and the noise that is asked for."""
        suits = U.loadings.shape[:2] == (self.n_components, self._size(U.means.shape[1]))
        return U if suits and is_noise_of(U, self._isotropic, self.shared_noise) else None

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts:
        """The parts of a fit: the heaviest cut in two, or two joined; or with a factor more or fewer."""
        U, K = fit.U, len(fit.U.weights)
        if self.n_components == K:
            loadings, noise = with_factors(U, self._size(U.means.shape[1]), self._isotropic, self.shared_noise, rng)
            return completed(U._replace(loadings=loadings, noise=noise))
        if more:
            means, loadings, noise = (np.concatenate([a, a[:1]]) for a in (U.means, U.loadings, U.noise))
            new = U._replace(weights=np.append(U.weights, 0.0), means=means, loadings=loadings, noise=noise)
            return completed(split(new, np.array([K]))._replace(events=quiet(K + 1)))
        return joined(U, self._isotropic, self.shared_noise)

    # ---------------------------------------------------------------- passes

    def local(self, U: Parts, b: Block) -> Local:
        """Responsibilities, the statistics of every component, and minus the log-likelihood."""
        z, log_p, stats = rows_of(U, b.x, b.w, b.observed, True)
        return Local(self._left(z, b), stats, -b.sum(log_p))

    def combine(self, total: Stats, stats: Stats) -> Stats:
        """The sum; of complete rows one A stands for all columns."""
        if total.second.shape == stats.second.shape:
            return tree.add_into(total, stats)  # type: ignore[no-any-return]
        return Stats(*(np.add(t, s) for t, s in zip(total, stats, strict=True)))

    def posterior(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities and log p(x) of each row."""
        z, log_p, _ = rows_of(U, b.x, b.w, b.observed, False)
        return z, log_p.astype(b.x.dtype)

    def update(self, U: Parts, stats: Stats) -> Parts:
        """The expanded M-step of every component; those that hold nothing are reset."""
        N = stats.latent[:, -1]
        total = float(N.sum())
        if (N < 0).any() or not total > 0:
            raise np.linalg.LinAlgError("a component of negative weight")
        dead = N / total <= DEAD_SHARE
        means, loadings, noise = U.means.copy(), U.loadings.copy(), U.noise.copy()
        rest, count = np.zeros(noise.shape), np.zeros(noise.shape)
        for k in np.flatnonzero(~dead).tolist():
            means[k], loadings[k], rest[k], count[k] = latent.regress(U.analyser(k), stats.of(k))
        if self.shared_noise:
            noise[:] = latent.noise_of(rest.sum(axis=0), count.sum(axis=0), noise[0], U.floor, self._isotropic)
        else:
            for k in np.flatnonzero(~dead).tolist():
                noise[k] = latent.noise_of(rest[k], count[k], noise[k], U.floor, self._isotropic)
        new = U._replace(weights=np.where(dead, 0.0, N) / total, means=means, loadings=loadings, noise=noise)
        again = dead & (U.events.resets < RESETS_LIMIT)
        if again.any():
            new = split(new, np.flatnonzero(again))._replace(events=Events(U.events.resets + again))
        return completed(new)

    def described(self, U: Any, data: Any) -> Described:
        """By the numbers of components and factors."""
        q = self._size(self.shape.d)
        names = {"k": self.n_components, "f": q, "t": (q + 1) * (q + 2) // 2}
        return Described(Parts, Stats, Any, names, lambda U: isinstance(U.scratch, Scratch))

    # ---------------------------------------------------------------- what comes out

    def notes(self, U: Parts) -> list[str]:
        """Components that collapsed, and noise at its floor."""
        out, lost, resets = [], np.flatnonzero(U.events.resets).tolist(), int(U.events.resets.sum())
        if lost:
            out.append(f"components {lost} lost all their rows and were reset ({resets} times): try fewer components")
        out += starved(scarce(U.weights), len(U.weights), "components", self.shape.online)
        low = U.noise <= U.floor * (1 + 1e-6)
        if low.any():
            which, columns = np.flatnonzero(low.any(axis=1)).tolist(), np.flatnonzero(low.any(axis=0))
            named = ", ".join(map(str, columns[:5])) + (", …" if len(columns) > 5 else "")
            out.append(
                f"components {which} reproduce columns ({named}) exactly: their noise fell to its floor. Take fewer "
                "factors or components, raise reg_covar, or drop columns that are constant or copies"
            )
        return out

    def publish(self, fit: Fit) -> None:
        """Set weights_, means_, components_, noise_variance_ and their kin."""
        super().publish(fit)
        U = fit.U
        self.weights_, self.means_ = U.weights, U.means * U.unit + U.shift
        self.components_, self.noise_variance_ = (rotations(U) @ U.loadings) * U.unit, U.noise * U.unit**2
        self.lower_bound_, self.lower_bounds_ = -fit.loss / fit.weight, [-v for v in fit.objectives]

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Means of the components, mixed by responsibilities."""
        return np.asarray(z @ (U.means * U.unit) + U.shift * z.sum(axis=1, keepdims=True))

    def conditional(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Missing cells by the factors of the components that the observed ones belong to."""
        z, v = self.posterior(U, b)[0].astype(np.float64), U.measured(b.x, b.observed)
        own = [latent.conditional(U.analyser(k), v, b.observed) for k in range(z.shape[1])]  # type: ignore[arg-type]
        means, variances = (np.array(a) for a in zip(*own, strict=True))
        mean = np.einsum("ik,kij->ij", z, means)
        variance = np.einsum("ik,kij->ij", z, variances + (means - mean) ** 2)
        return mean * U.unit + U.shift, np.sqrt(variance) * U.unit

    def drawn(self, U: Parts, b: Block) -> np.ndarray:
        """A component drawn by the observed cells, then its factors, then noise."""
        rng, z = self.given.generator(b), self.posterior(U, b)[0].astype(np.float64)
        which = chosen(z.T, rng)
        out = U.measured(b.x, b.observed)
        for k in np.unique(which):
            i = np.flatnonzero(which == k)
            out[i] = latent.drawn(U.analyser(k), out[i], b.observed[i], rng)  # type: ignore[index]
        return np.asarray(out * U.unit + U.shift)

    def scores(self, U: Parts, b: Block) -> np.ndarray:
        """E[z | x] of each row in its likeliest component."""
        label, v, Q = self.assign(U, b), U.measured(b.x, b.observed), rotations(U)
        out = np.empty((len(label), Q.shape[1]))
        for k in np.unique(label):
            i = np.flatnonzero(label == k)
            seen = None if b.observed is None else b.observed[i]
            out[i] = latent.infer(U.analyser(k), v[i], seen)[0] @ Q[k].T
        return out.astype(b.x.dtype)

    def factors(self, X: Any) -> np.ndarray:
        """Return the factor scores of each row in its likeliest component, which `predict` tells.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        Z : ndarray of shape (n, q)
            E[z | x]: `Z[i] @ components_[k] + means_[k]` is what component k makes of row i.
        """
        return np.asarray(self.rows("scores", X))

    def n_parameters(self) -> int:
        """Free numbers: weights, means, loadings up to a rotation and noise, but of no covariance more than it has."""
        K, q, d = map(int, self.components_.shape)
        own, noise = d * q - q * (q - 1) // 2, 1 if self._isotropic else d
        most = d * (d + 1) // 2
        free = min(K * own + noise, K * most) if self.shared_noise else K * min(own + noise, most)
        return K - 1 + K * d + free

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of each component, WᵀW + diag ψ.

        Returns
        -------
        covariances : ndarray of shape (K, d, d)
        """
        check_is_fitted(self)
        U = self.parts
        return (covariances(U.loadings, U.noise) * np.outer(U.unit, U.unit)).astype(self.shape.dtype)  # type: ignore[no-any-return]

    def gaussians(self) -> Gaussians:
        """The components as full Gaussians."""
        return Gaussians.of_type("full", self.weights_, self.means_, self.get_covariance())

    def draw_component(self, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Rows of component k, n of them."""
        U = self.parts
        q, d = U.loadings.shape[1:]
        v = rng.standard_normal((n, q)) @ U.loadings[k] + rng.standard_normal((n, d)) * np.sqrt(U.noise[k])
        return np.asarray((v + U.means[k]) * U.unit + U.shift)

    @classmethod
    def from_parameters(
        cls, weights: Any, means: Any, components: Any, noise_variance: Any, **params: Any
    ) -> MixtureOfFactorAnalyzers:
        """Return a mixture with given parameters, ready for `sample`, `predict` and `score` without a fit.

        With `warm_start=True` a fit begins with them.

        Parameters
        ----------
        weights : array of shape (K,)
            Weights of the components, π, which add up to 1.
        means : array of shape (K, d)
            Means of the components, μ.
        components : array of shape (K, q, d)
            W.
        noise_variance : array of shape (K, d)
            ψ: the same for all columns with `noise="isotropic"`, for all components with `shared_noise`.
        **params
            Other parameters of the class, such as `random_state`.

        Returns
        -------
        model : MixtureOfFactorAnalyzers
        """
        pi, mu, W, psi = checked(weights, means, components, noise_variance)
        K, q, d = W.shape
        model = cls(K, q, **params)
        model._validate_params()
        psi = constrained(psi, pi, model._isotropic, model.shared_noise)
        shape, shift = Shape(K, d, np.dtype(np.float64), weight=1.0), pi @ mu
        unit, floor = model.at(shape)._units(shift, pi @ (np.einsum("kaj,kaj->kj", W, W) + psi))
        own = (mu - shift) / unit, W / unit, psi / unit**2
        floor = np.minimum(floor, own[2].min(axis=0))
        U = completed(Parts(shift, unit, floor, pi, *own, quiet(K)))
        model.adopt(U, shape, stats_of(U))
        return model

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[MixtureOfFactorAnalyzers, np.ndarray, Callable[[Any], None]]:
        """Three groups of two factors each in eight columns, with noise of different size."""
        means = 3.0 * rng.normal(size=(3, 8))
        W, noise = rng.normal(size=(3, 2, 8)), rng.uniform(0.1, 0.5, size=(3, 8))
        label = np.arange(900) % 3
        X = means[label] + np.einsum("na,naj->nj", rng.normal(size=(900, 2)), W[label])
        X += rng.normal(size=X.shape) * np.sqrt(noise[label])

        def found(model: Any) -> None:
            order = ((model.means_[:, None] - means) ** 2).sum(axis=2).argmin(axis=0)
            assert sorted(order) == [0, 1, 2]
            np.testing.assert_allclose(model.means_[order], means, atol=0.4)
            np.testing.assert_allclose(model.noise_variance_[order], noise, atol=0.2)
            for k, own in zip(order, W, strict=True):
                there = np.linalg.qr(np.asarray(model.components_[k], dtype=float).T)[0]
                assert np.linalg.svd(there.T @ np.linalg.qr(own.T)[0])[1].min() > 0.98
            np.testing.assert_allclose(model.weights_, 1 / 3, atol=0.05)

        return cls(3, 2, tol=1e-4, random_state=0), X, found
