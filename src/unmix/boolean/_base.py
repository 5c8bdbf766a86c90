"""What every model of yes and no shares:  x_id = ⋁_k (z_ik ∧ u_kd),  Z the assignments, U the roles.

A cell is 1, 0, or NaN, which means that nobody knows. `cells` makes that of a block of rows, once for all models.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from unmix.boolean._truth import truth
from unmix.engine.block import Block
from unmix.engine.config import get_config
from unmix.engine.layout import Shape
from unmix.engine.sources.arrays import csr_of
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Reconstructs
from unmix.model.found import listed

HALF = 0.5  # between 0 and 1
TINY = 1e-30  # of probabilities, whose logarithm is a number in either precision


class BooleanModel(Reconstructs, Model):
    """A model of yes and no: `start`, `local`, `update` of the contract, and `encode`, the assignments of rows.

    Attributes
    ----------
    roles_ : ndarray of bool of shape (n_components, d)
        Which permissions each role has.
    assignments_ : ndarray of bool of shape (n, n_components)
        Which roles each training row has, where the rows were in memory.
    """

    missing: ClassVar[bool] = True
    collect: bool | str = "memory"
    power: ClassVar[int] = 0  # cells are 0 and 1 before anything is summed
    columns_as: ClassVar[str] = "given"
    degrees: ClassVar[dict[str, int | None]] = {"threshold": 1}

    roles_: Annotated[np.ndarray, Array("k d", "b")]
    assignments_: Annotated[np.ndarray, Array("n k", "b", maybe=True)]

    n_components: int
    threshold: float | None

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are fewer rows than roles."""
        if shape.n < self.n_components:
            raise ValueError(
                f"n_components={self.n_components}, but X has n_samples = {shape.n}: give at most that many components"
            )

    def afford(self, numbers: int, remedy: str) -> None:
        """Raise a ValueError where so many numbers, which grow with the columns, do not fit the memory budget."""
        if 8 * numbers > get_config().budget:
            raise ValueError(
                f"{type(self).__name__} would hold {8 * numbers:.1e} bytes, which exceeds the memory budget of "
                f"{get_config().budget:.1e}: {remedy}, or raise unmix.config(memory_budget=…)"
            )

    def cells(self, b: Block, sample: bool = False) -> tuple[Any, np.ndarray | None]:
        """1.0 where a cell is a yes, else 0.0, dense or CSR; and 1.0 where it is known, None where all are.

        Of a sample nothing is refused: its rows are in another order, and the first pass names the right one.
        """
        threshold = HALF if sample and self.threshold is None else self.threshold
        x = truth(b.x, threshold, type(self).__name__, b.start, self.shape.names)
        if sp.issparse(x):
            return csr_of(np.ones(len(x.data), b.x.dtype), x.indices, x.indptr, x.shape), None
        if b.observed is None:
            return x.astype(b.x.dtype), None
        return (x & b.observed).astype(b.x.dtype), b.observed.astype(b.x.dtype)

    def publish(self, fit: Fit) -> None:
        """Set assignments_, where the rows were in memory."""
        self.__dict__.pop("assignments_", None)
        if fit.z is not None:
            self.assignments_ = fit.z

    def findings(self) -> list[str]:
        """How many permissions each role has, and how many of the training rows have it."""
        if "roles_" not in vars(self):
            return []
        sizes = listed([f"{size:,}" for size in self.roles_.sum(axis=1)])
        told = [f"{len(self.roles_)} role{'s' * (len(self.roles_) != 1)} of {sizes} permissions"]
        if "assignments_" in vars(self):
            told += [f"held by {listed([f'{size:,}' for size in self.assignments_.sum(axis=0)])} rows"]
        return told

    def roles_of(self, U: Any) -> np.ndarray:
        """The roles of some parts, 0.0 or 1.0."""
        raise NotImplementedError

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """1 − Π_k (1 − z_k u_kd): of whole assignments their Boolean product, of probabilities that of a yes."""
        missed = np.log(np.maximum(1.0 - np.clip(z, 0.0, 1.0), TINY))
        return np.asarray(1.0 - np.exp(missed @ self.roles_of(U).astype(z.dtype)), dtype=z.dtype)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)


def known(x: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
    """1.0 where a cell of dense rows is known to be 0."""
    return np.asarray((1.0 if observed is None else observed) - x, dtype=x.dtype)


def some(numbers: np.ndarray, words: str) -> list[str]:
    """A note that names the roles of which something is true, if there are any."""
    return [f"roles {numbers.tolist()} {words}"] if len(numbers) else []
