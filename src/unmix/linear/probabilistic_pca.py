"""Probabilistic PCA:  x = zW + μ + ε,  z ~ N(0, I_k),  ε ~ N(0, σ²I),  so  x ~ N(μ, Σ),  Σ = WᵀW + σ²I.

local    E[z | x] = M⁻¹ W (x − μ),   Cov[z | x] = σ² M⁻¹,   M = WWᵀ + σ²I                       loss = −log p(x)
stats    n, Σ x, Σ x xᵀ                               [complete rows: one pass, then no data]
update   S = covariance = V diag(λ) Vᵀ, λ descending;  μ = mean         (Tipping & Bishop 1999: maximum likelihood)
         σ² = Σ_{a>k} λ_a / (d − k),   w_a = (λ_a − σ²)^½ v_a,  a ≤ k

With this W, M is diag(λ): E[z_a | x] = (λ_a − σ²)^½/λ_a · v_aᵀ(x − μ), and Cov[z | x] = diag(σ²/λ) is that of all rows.
Noise-free rows are expected at  E[zW + μ | x] = μ + Σ_a (1 − σ²/λ_a) v_a v_aᵀ(x − μ):  a projection, as in PCA, that
shrinks each axis by the share of noise in its variance.

The ways to the axes are those of PCA (`_principal.py`): the covariance, the n×n Gram matrix where columns outnumber
rows, subspace iteration where both sides are large (its trace has squared errors), and EM over the observed cells where
others are missing. λ is divided by n, and σ² is a mean over all d − k directions that are left out, also over those in
which no row varies: that is the maximum of the likelihood. (PCA divides by n − 1, and does not count those.)
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.linear._axes import Noise, log_density, project
from unmix.linear._principal import Principal
from unmix.maths import latent
from unmix.maths.latent import CellLoadings

LARGEST = float(np.finfo(float).max)
EXACT = {4: 1e-6, 8: 1e-9}  # σ² over the mean variance of a column, by bytes of a number: less is rounding


class ProbabilisticPCA(Principal):
    """Directions of most variance in noise: probabilistic PCA.

    Parameters
    ----------
    n_components : int, float, "mle", "parallel" or None, default=None
        How many components: a number; the share of the variance that they explain; as many as Minka's evidence
        ("mle", at least 1) or parallel analysis (each has more variance than unrelated columns show by chance) finds.
        At least one direction in which rows vary is left to the noise; None for all others.
    method : {"auto", "em"}, default="auto"
        "auto" takes the closed form of complete rows, or subspace iteration where both sides of X are above 2000 and
        few components are wanted, and EM where cells are missing; "em" takes EM always, which reaches the same.
    tol : float, default=1e-6
        EM ends when a step raises the log-likelihood per row by no more.
    max_iter : int, default=1000
        Maximum number of steps of EM.
    random_state : int, RandomState or None, default=None
        Seed of `sample`, of what `impute` draws, of subspace iteration and of parallel analysis.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Principal axes V, by falling variance, of length 1; the largest entry of each is positive. W is `loadings()`,
        which `inverse_transform` multiplies z by.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Variance λ along each axis, noise included, over n, and its share of the total.
    noise_variance_ : float
        σ², of maximum likelihood.
    mean_ : ndarray of shape (d,)
        μ.
    n_components_ : int
        Components kept.

    References
    ----------
    Tipping & Bishop (1999), Probabilistic principal component analysis, Journal of the Royal Statistical Society B 61.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from unmix import ProbabilisticPCA
    >>> X = load_iris().data
    >>> model = ProbabilisticPCA(2).fit(X)
    >>> round(model.noise_variance_, 3)
    0.051
    >>> flower = X[:1].copy()
    >>> flower[0, 2] = np.nan  # was 1.4
    >>> filled, deviation = model.impute(flower, return_std=True)
    >>> filled[0, 2].round(1), deviation[0, 2].round(1)
    (np.float64(1.6), np.float64(0.4))
    """

    noise: ClassVar[Noise] = Noise(likelihood=True)
    degrees: ClassVar[dict[str, int | None]] = {"mean_": 1, "explained_variance_": 2, "noise_variance_": 2}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"mle", "parallel"}),
            None,
        ],
        "method": [StrOptions({"auto", "em"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        method: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Refuse more components than leave a direction to the noise."""
        k, most = self.n_components, max(min(shape.n - 1, shape.d) - 1, 0)
        if isinstance(k, Integral) and k > most:
            raise ValueError(
                f"n_components={k} leaves no direction to the noise: n_samples={shape.n} rows of "
                f"n_features={shape.d} vary in at most {min(shape.n - 1, shape.d)} directions, so take at most {most}"
            )
        if k == "mle" and shape.n < shape.d:
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features: try 'parallel'")

    # -- the model --

    def _way(self, shape: Shape) -> Any:
        """EM where it is asked for, else as the data suggest."""
        return self._by(CellLoadings, shape) if self.method == "em" else super()._way(shape)

    def local(self, U: Any, b: Block) -> Local:
        """Statistics of rows, or of the moments that stand for them, and −log p."""
        out = super().local(U, b)
        if isinstance(U, CellLoadings):
            return out
        if U.step == 0:  # there is no density yet
            return out._replace(loss=0.0)
        with np.errstate(over="ignore"):  # rows that have not varied so far
            return out._replace(loss=min(b.sum(-log_density(self._axes(U), b)), LARGEST))

    def encode(self, U: Any, b: Block) -> np.ndarray:
        """Scores: the posterior mean of z."""
        if b.observed is not None:
            return latent.infer(self._gaussian(U), b.x, b.observed)[0].astype(b.x.dtype)
        A, (values, noise) = self._axes(U), self._spectrum(U)
        z = project(A, b)[1]
        return np.asarray(z * (np.sqrt(values - noise) / values).astype(z.dtype))

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """Rows of the plane, zW + μ."""
        return np.asarray(z @ self._gaussian(U).loadings.astype(z.dtype, copy=False) + U.mean)

    def denoised(self, U: Any, b: Block) -> np.ndarray:
        """E[zW + μ | x] of each row of a block. Pure."""
        return self.decode(U, self.encode(U, b)).astype(b.x.dtype, copy=False)

    def hidden(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """E[z | x] of each row of a block, and Cov[z | x]: of each, or that of all where no cell is missing. Pure."""
        if b.observed is not None:
            mean, covariance = latent.hidden(self._gaussian(U), b.x, b.observed)
            return mean.astype(b.x.dtype), covariance.astype(b.x.dtype)
        values, noise = self._spectrum(U)
        return self.encode(U, b), np.diag(noise / values).astype(b.x.dtype)

    def _spectrum(self, U: Any) -> tuple[np.ndarray, float]:
        """λ and σ², in float64."""
        noise = float(self._gaussian(U).noise[0])
        return np.maximum(self._axes(U).variances.astype(np.float64), noise), noise

    def notes(self, U: Any) -> list[str]:
        """Rows without noise."""
        A = self._axes(U)
        if float(A.noise) * len(A.mean) > EXACT[self.shape.dtype.itemsize] * float(A.total):
            return []
        return [
            f"the rows vary in no direction beside the {len(A.components)} components: σ² is at its floor, and the "
            "likelihood has no maximum. Take fewer components, or PCA"
        ]

    def publish(self, fit: Fit) -> None:
        """Publish axes, variances over n, and σ²."""
        A, total = self._axes(fit.U), float(self._axes(fit.U).total)
        self.components_, self.mean_ = A.components, A.mean
        self.explained_variance_ = A.variances
        self.explained_variance_ratio_ = A.variances / total if total > 0 else np.zeros(len(A.variances))
        self.noise_variance_ = float(self._gaussian(fit.U).noise[0])
        self.n_components_ = len(A.components)

    # -- what a user may ask --

    def loadings(self) -> np.ndarray:
        """What each component is made of, W: (λ_a − σ²)^½ v_a."""
        return np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 0.0))[:, None] * self.components_

    def posterior(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the distribution of each row's z given its observed cells, which is Gaussian.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        mean : ndarray of shape (n, k)
            As `transform` gives it.
        covariance : ndarray of shape (k, k) or (n, k, k)
            The one covariance that all rows share where no cell is missing, else that of each row.
        """
        found = list(self.stream("hidden", X))
        mean, covariance = np.concatenate([m for m, _ in found]), found[0][1]
        if all(C.ndim == 2 for _, C in found):
            return mean, covariance
        return mean, np.concatenate([np.broadcast_to(C, (len(m), *C.shape[-2:])) for m, C in found])

    def denoise(self, X: Any) -> np.ndarray:
        """Return what the rows are expected to be without noise, E[zW + μ | x]; missing cells are filled.

        Along each axis the distance to the mean shrinks by 1 − σ²/λ, the share of the variance that is not noise. So
        components beyond the best number do little harm, as they do to the projection of PCA; with too few, σ² holds
        some of the signal, and PCA may be a little nearer to the truth.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        return np.asarray(self.rows("denoised", X))

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[ProbabilisticPCA, np.ndarray, Callable[[Any], None]]:
        """Three directions of different variance among ten columns, and noise."""
        V = np.linalg.qr(rng.normal(size=(10, 3)))[0].T
        W, mean = np.array([[4.0], [2.5], [1.5]]) * V, rng.normal(size=10)
        X = rng.normal(size=(600, 3)) @ W + 0.5 * rng.normal(size=(600, 10)) + mean

        def check(fitted: Any) -> None:
            covariance = W.T @ W + 0.25 * np.eye(10)
            assert np.linalg.norm(fitted.get_covariance() - covariance) < 0.15 * np.linalg.norm(covariance)
            assert (np.abs(np.einsum("aj,aj->a", fitted.components_, V)) > 0.99).all()
            np.testing.assert_allclose(fitted.noise_variance_, 0.25, rtol=0.1)

        return cls(3, random_state=0), X, check
