"""What models of principal axes share: which way leads to the axes, and the Gaussian that they stand for.

There are four ways, each in a file of its own: `_covariance`, `_direct`, `_subspace` and `_em`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Online, Sizes, Stage, falling
from unmix.linear._axes import Axes, Noise, Subspace, gaussian, log_density
from unmix.linear._covariance import Covariance
from unmix.linear._direct import Direct
from unmix.linear._em import AxesEM, ChosenEM, ChosenLoadings
from unmix.linear._subspace import SubspaceIteration
from unmix.maths import latent
from unmix.maths.arrays import Array
from unmix.maths.latent import CellLoadings, Loadings
from unmix.model import Model
from unmix.model.capabilities import Components, Density, Gaussians, Imputes, Reconstructs, Samples

SPECTRUM_SIDE = 2000  # up to this smaller side the whole spectrum is cheaper than passes over the rows


class Principal(Density, Samples, Imputes, Reconstructs, Components, Model):
    """Principal axes with their variances, mean and noise: x ~ N(μ, V diag(λ − σ²) Vᵀ + σ²I)."""

    sparse = True
    missing = True
    noise: ClassVar[Noise] = Noise()  # how σ² follows from the axes

    # parameters of the ways, for models that do not have them
    n_components: int | float | str | None = None
    svd_solver: str = "auto"
    iterated_power: int | str = "auto"
    n_oversamples: int = 10

    components_: Annotated[np.ndarray, Array("c d")]
    explained_variance_: Annotated[np.ndarray, Array("c", low=0.0)]
    explained_variance_ratio_: Annotated[np.ndarray, Array("c", low=0.0)]
    mean_: Annotated[np.ndarray, Array("d")]
    noise_variance_: Annotated[float, Array(low=0.0)]
    n_components_: Annotated[int, Array(kind="i", name="c")]

    # -- which way --

    def _by(self, kind: type, shape: Shape) -> Any:
        """How a fit continues from parts of this type."""
        if issubclass(kind, CellLoadings):
            em = ChosenEM if kind is ChosenLoadings else AxesEM
            return em(self.n_components, self._em_tol, shape, self.noise)
        if kind is Subspace:
            return SubspaceIteration(self.n_components, self.n_oversamples, self.iterated_power, shape, self.noise)
        return Covariance(self.n_components, shape, self.noise)

    @property
    def _em_tol(self) -> float:
        """The gain in nats per row at which EM ends."""
        return float(self.tol)

    def _way(self, shape: Shape) -> Any:
        """How such data are fitted: from a covariance or the rows themselves; passes where both sides are large."""
        if not shape.complete:
            return self._by(CellLoadings, shape)
        k, solver, narrow = self.n_components, self.svd_solver, min(shape.n, shape.d)
        few = isinstance(k, Integral) and 10 * k < narrow
        if solver == "randomized" or (solver == "auto" and few and narrow > SPECTRUM_SIDE):
            return self._by(Subspace, shape)
        dense, wide = shape.in_memory and not shape.sparse, shape.in_memory and shape.d > shape.n
        if solver == "arpack" or (solver == "full" and dense) or (solver == "auto" and wide):
            return Direct(k, solver, self.tol, self.noise)
        return self._by(Axes, shape)

    def _of(self, U: Any) -> Any:
        """How a fit continues from these parts."""
        return self._by(type(U), self.shape)

    def _axes(self, U: Any) -> Axes:
        """The axes that parts of any type stand for."""
        axes: Axes = self._of(U).axes(U)
        return axes

    def stages(self, shape: Shape) -> list[Stage]:
        """The way that suits such data; where EM learns all axes to choose some, EM again with these alone."""
        way = self._way(shape)
        again = isinstance(way, AxesEM) and way.chooses and not shape.online
        return [way, self._by(ChosenLoadings, shape)] if again else [way]

    def sizes(self, shape: Shape) -> Sizes:
        """Those of the way."""
        return self._way(shape).sizes(shape)  # type: ignore[no-any-return]

    def online(self) -> Online:
        """Moments are exact, so that every row counts the same, however long ago it was seen."""

        def rate(U: Any, step: int, weight: float, seen: float) -> float:
            return weight / seen if self._of(U).even else falling(U, step, weight, seen)

        return Online(rate)

    # -- the model --

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Any:
        """Where a first batch of rows starts, to which more will come."""
        way = self._way(self.shape)
        if way.over == "whole":
            way = self._by(Axes if self.shape.d <= 2 * SPECTRUM_SIDE else Subspace, self.shape)
        return way.start(before, data, rng)

    def local(self, U: Any, b: Block) -> Local:
        """Statistics and squared error of rows (with EM: −log p), or of the moments that stand for them."""
        return self._of(U).local(U, b)  # type: ignore[no-any-return]

    def update(self, U: Any, stats: Any) -> Any:
        """Axes from the moments, from the image of a subspace, or by a step of EM."""
        return self._of(U).update(U, stats)

    def described(self, U: Any, data: Any) -> Described:
        """As the way does that continues from such parts."""
        return self._of(U).described(U, data)  # type: ignore[no-any-return]

    # -- the Gaussian --

    @property
    def _factor(self) -> float:
        """What its variances are, over those of the parts, which are divided by n."""
        return 1.0

    def _gaussian(self, U: Any) -> Loadings:
        """The Gaussian as a latent model."""
        return gaussian(self._axes(U), self._factor)

    def log_density(self, U: Any, b: Block) -> np.ndarray:
        """Log-density of each row under the Gaussian model."""
        return log_density(self._axes(U), b, self._factor).astype(b.x.dtype)

    def conditional(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """What the Gaussian expects of missing cells, and how sure it is."""
        mean, variance = latent.conditional(self._gaussian(U), b.x, b.observed)  # type: ignore[arg-type]
        return mean, np.sqrt(variance)

    def drawn(self, U: Any, b: Block) -> np.ndarray:
        """Missing cells drawn from the Gaussian given the observed ones."""
        return latent.drawn(self._gaussian(U), b.x, b.observed, self.given.generator(b))  # type: ignore[arg-type]

    # -- what a user may ask --

    def explained(self) -> np.ndarray:
        """The share of the variance of the data that each component describes: `explained_variance_ratio_`."""
        return self.explained_variance_ratio_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of the rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        logp = self.score_samples(X)
        w = None if sample_weight is None else _check_sample_weight(sample_weight, logp, dtype=np.float64)
        return float(np.average(logp.astype(np.float64), weights=w))

    def n_parameters(self) -> int:
        """Free numbers of the Gaussian: axes, variances along them and of the rest, mean."""
        k, d = self.components_.shape
        return d * k - k * (k - 1) // 2 + 1 + d

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model, V diag(λ − σ²) Vᵀ + σ²I.

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        check_is_fitted(self)
        V, values = self.components_, np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        return (V.T * values) @ V + self.noise_variance_ * np.eye(V.shape[1], dtype=V.dtype)  # type: ignore[no-any-return]

    def gaussians(self) -> Gaussians:
        """The Gaussian that the model stands for."""
        return Gaussians.one(self.mean_, self.get_covariance())

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance, by the inversion lemma.

        Returns
        -------
        precision : ndarray of shape (d, d)
        """
        noise = self._gaussian(self.parts).noise[0]
        V, values = self.components_, np.maximum(self.explained_variance_, noise)
        inside = 1.0 / values - 1.0 / noise
        return ((V.T * inside) @ V + np.eye(V.shape[1]) / noise).astype(V.dtype)  # type: ignore[no-any-return]

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """Return new rows drawn from the Gaussian model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, d)
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state)
        (k, d), noise = self.components_.shape, self.noise_variance_
        z = rng.standard_normal((n_samples, k)) * np.sqrt(np.maximum(self.explained_variance_ - noise, 0.0))
        x = self.mean_ + z @ self.components_ + rng.standard_normal((n_samples, d)) * np.sqrt(noise)
        return x.astype(self.components_.dtype)  # type: ignore[no-any-return]
