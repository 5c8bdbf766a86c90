"""Prototypes:  X ≈ Z U with Z one-hot.  Copy this file to begin a model: it is a whole one, and the tests run it.

local    z_i = argmin_k ‖x_i − u_k‖²                        [over the observed cells]
stats    N_kd = Σ_i [z_i = k] w_i o_id        A_kd = Σ_i [z_i = k] w_i x_id
update   U = A / N                                          [a prototype that nobody chose stays where it is]
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Geometry, Groups


class Parts(NamedTuple):
    """U: all that `local` needs."""

    prototypes: Annotated[np.ndarray, Array("k d")]  # checked when a file is read: see `described`


class Stats(NamedTuple):
    """A vector space: + and scalar ×, nothing else."""

    N: Annotated[np.ndarray, Array("k d")]
    A: Annotated[np.ndarray, Array("k d")]


class Prototypes(Groups, Geometry, Model):
    """Hard clusters around prototypes.

    Parameters
    ----------
    n_components : int, default=2
        How many prototypes.
    max_iter : int, default=100
        The most passes over the data.
    tol : float, default=1e-4
        A pass that improves the objective by less than `tol` times the first objective is the last.
    n_init : int, default=1
        How many starts; they share every pass.
    random_state : int, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The prototypes.
    labels_ : ndarray of shape (n_samples,)
        Which prototype each row is closest to.

    Examples
    --------
    >>> model = Prototypes(2, random_state=0).fit([[0.0, 1], [1, 0], [9, 8], [8, 9]])
    >>> sorted(model.components_.tolist())
    [[0.5, 0.5], [8.5, 8.5]]
    """

    missing: ClassVar[bool] = True
    collect: bool | str = True  # publish wants every row's z
    degrees: ClassVar[dict[str, int | None]] = {"components_": 1, "transform": 1}  # X in another unit: they are, too
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    # what `publish` sets: files are checked against it
    components_: Annotated[np.ndarray, Array("k d")]
    labels_: Annotated[np.ndarray, Array("n", "i", 0, "k-1", maybe=True)]

    def __init__(
        self,
        n_components: int = 2,
        *,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """As many rows as prototypes are needed."""
        if self.n_components > shape.n:
            raise ValueError(
                f"n_components={self.n_components} is more than the n_samples={shape.n} rows of X: take fewer"
            )

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """Rows drawn at random from a sample."""
        return Parts(data.x[rng.choice(len(data.x), self.n_components, replace=False)].astype(np.float64))

    def local(self, U: Parts, b: Block) -> Local:
        """Label each row, and add up rows and weights by label."""
        d = self._distances(U, b)
        z = d.argmin(axis=1)
        chosen = b.weighted(np.eye(len(U.prototypes), dtype=b.x.dtype)[z])
        seen = np.ones_like(b.x) if b.observed is None else b.observed.astype(b.x.dtype)
        return Local(z, Stats(chosen.T @ seen, chosen.T @ b.x), b.sum(d.min(axis=1)))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Means of the rows that chose each prototype."""
        return Parts(np.where(stats.N > 0, stats.A / np.maximum(stats.N, 1e-300), U.prototypes))

    def goal(self, U: Parts, first: float) -> float:
        """A squared error counts relative to the first one."""
        return self.tol * first

    def described(self, U: Any, data: Any) -> Described:
        """What parts and statistics from a file must be; k is how many prototypes there are, d is known."""
        return Described(Parts, Stats, Any, {"k": self.n_components})

    def publish(self, fit: Fit) -> None:
        """The names that users know."""
        self.components_ = fit.U.prototypes
        if fit.z is not None:
            self.labels_ = fit.z

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Distances to the prototypes."""
        return np.sqrt(self._distances(U, b))

    def assign(self, U: Parts, b: Block) -> np.ndarray:
        """Labels of new rows."""
        return self._distances(U, b).argmin(axis=1)

    def centers(self) -> np.ndarray:
        """The prototypes, for whoever asks how far rows are from them."""
        return self.components_

    def _distances(self, U: Parts, b: Block) -> np.ndarray:
        gap = b.x[:, None] - U.prototypes
        if b.observed is not None:
            gap = gap * b.observed[:, None]
        return np.asarray((gap**2).sum(axis=2))

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[Prototypes, np.ndarray, Callable[[Any], None]]:
        """Three far groups."""
        truth = np.array([[0.0, 0, 0], [9, 0, 4], [0, 8, -7]])
        X = truth[rng.integers(3, size=300)] + rng.normal(size=(300, 3))

        def check(model: Any) -> None:
            gaps = np.linalg.norm(truth[:, None] - model.components_, axis=2)
            assert gaps.min(axis=1).max() < 0.5

        return cls(3, n_init=5, random_state=0), X, check
