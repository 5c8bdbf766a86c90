"""What every mixture shares:  p(x) = Σ_k π_k p_k(x).

A mixture gives `posterior(U, b)`: the responsibilities z_ik = π_k p_k(x_i) / p(x_i) of a block of rows and log p(x_i).
What is asked of them is written here, once: memberships, labels, densities, information criteria, samples.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Density, Imputes, Memberships, Samples

DEAD_SHARE = 1e-12  # of the weight, below which a component holds nothing


class BaseMixture(DensityMixin, Density, Memberships, Samples, Imputes, Model):
    """A mixture: `start`, `local`, `update` of the contract, and `posterior`, `draw_component`, `n_parameters`.

    Attributes
    ----------
    labels_ : ndarray of int of shape (n,)
        The likeliest component of each training row, where the rows were in memory.
    converged_ : bool
        Whether the stopping rule was met.
    """

    missing: ClassVar[bool] = True
    accelerate: ClassVar[bool] = True
    collect: bool | str = "memory"
    labels_: Annotated[np.ndarray, Array("n", "i", 0, "k-1", maybe=True)]
    converged_: bool
    lower_bound_: float

    n_components: int
    random_state: Any
    _shape: Shape = Shape(0, 0, np.dtype(np.float64))  # until there are rows

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are fewer rows than components."""
        if shape.n < self.n_components:
            raise ValueError(
                f"n_components={self.n_components}, but X has n_samples = {shape.n}: give at most that many components"
            )

    def sizes(self, shape: Shape) -> Sizes:
        """Rows for the start: some for each number of each component."""
        return Sizes(sample=max(1 << 12, 10 * self.n_components * shape.d))

    def points(self, sample: Block) -> tuple[Any, np.ndarray]:
        """Rows of a sample in which distances mean something, and their weights: for the k-means of the start."""
        raise NotImplementedError

    def posterior(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities (n, K) and log p(x) of each row."""
        raise NotImplementedError

    def encode(self, U: Any, b: Block) -> np.ndarray:
        """Responsibilities: the probability of each component, given the row."""
        return self.posterior(U, b)[0]

    def assign(self, U: Any, b: Block) -> np.ndarray:
        """The component of the largest responsibility."""
        return np.asarray(self.posterior(U, b)[0].argmax(axis=1))

    def log_density(self, U: Any, b: Block) -> np.ndarray:
        """Logarithm of the density of the observed cells of each row."""
        return self.posterior(U, b)[1]

    def evidence(self, U: Any, b: Block) -> np.ndarray:
        """Per row log p(x) and the entropy of its responsibilities, in float64."""
        z, log_p = self.posterior(U, b)
        z = z.astype(np.float64)
        return np.column_stack([log_p, -(z * np.log(np.maximum(z, 1e-300))).sum(axis=1)])

    def _left(self, z: np.ndarray, b: Block) -> np.ndarray:
        """What `local` leaves of a block: responsibilities, in the closing pass the labels that are published."""
        return np.asarray(z.argmax(axis=1)) if b.closing else z

    def publish(self, fit: Fit) -> None:
        """Set labels_ and converged_."""
        self.__dict__.pop("labels_", None)  # after an online step those of an earlier fit are no longer right
        if fit.z is not None:
            self.labels_ = fit.z
        self.converged_ = fit.converged

    @property
    def n_clusters(self) -> int:
        """The number of components, under the name that clusterings give it."""
        return self.n_components

    @n_clusters.setter
    def n_clusters(self, value: int) -> None:
        self.n_components = value

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name, as scikit-learn does; `n_clusters` is another name for `n_components`.

        Parameters
        ----------
        **params
            Parameters of the class.

        Returns
        -------
        self
        """
        if "n_clusters" in params:
            params["n_components"] = params.pop("n_clusters")
        return super().set_params(**params)

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def draw_component(self, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Rows of component k of the fitted mixture, n of them."""
        raise NotImplementedError

    # ---------------------------------------------------------------- what users call

    def n_parameters(self) -> int:
        """Return how many numbers the data could choose.

        Returns
        -------
        n_parameters : int
        """
        raise NotImplementedError

    score = Model.score  # the mean log-likelihood; the mixin's is a stub

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's criterion: 2 × number of free parameters − 2 × log-likelihood. Lower is better.

        Parameters
        ----------
        X, sample_weight
            As for `fit`.

        Returns
        -------
        aic : float
        """
        _, log_l, _ = self._evidence(X, sample_weight)
        return 2.0 * self.n_parameters() - 2.0 * log_l

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian criterion: log n × number of free parameters − 2 × log-likelihood. Lower is better.

        Parameters
        ----------
        X, sample_weight
            As for `fit`.

        Returns
        -------
        bic : float
        """
        n, log_l, _ = self._evidence(X, sample_weight)
        return float(self.n_parameters() * np.log(n) - 2.0 * log_l)

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Return the integrated completed likelihood: BIC + 2 Σ_i H(z_i), H the entropy in nats. Lower is better.

        On the scale of BIC, as Biernacki, Celeux & Govaert (2000) times −2: components that share rows cost more, so
        that groups are counted rather than the densities of which a group is made.

        Parameters
        ----------
        X, sample_weight
            As for `fit`.

        Returns
        -------
        icl : float
        """
        n, log_l, entropy = self._evidence(X, sample_weight)
        return float(self.n_parameters() * np.log(n) - 2.0 * log_l + 2.0 * entropy)

    def _evidence(self, X: Any, sample_weight: Any) -> tuple[float, float, float]:
        """Weight of the rows, their log-likelihood and the entropy of their responsibilities."""
        check_is_fitted(self)
        w = None if sample_weight is None else self.weigh(X, sample_weight)[0]
        n, total = 0, np.zeros(2)
        for block in self.stream("evidence", X):
            own = np.ones(len(block)) if w is None else w[n : n + len(block)]
            n, total = n + len(block), total + own @ block
        return float(n if w is None else w.sum()), float(total[0]), float(total[1])

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
        rng, weights = check_random_state(self.random_state), self.parts.weights
        counts = rng.multinomial(n_samples, weights / weights.sum())
        rows = [self.draw_component(k, int(m), rng) for k, m in enumerate(counts)]
        return np.concatenate(rows).astype(self.shape.dtype), np.repeat(np.arange(len(counts)), counts)
