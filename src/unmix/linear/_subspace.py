"""Principal axes by subspace iteration (Halko, Martinsson & Tropp 2011): over rows, power + 1 steps.

local    Y = (x − μ) Qᵀ                                 Q: some more directions than axes are asked for
stats    n, Σ x, Σ |x|², Y' = Σ Yᵀ(x − μ)
update   Q = leading eigenvectors of Y'ᵀ (Y'Qᵀ)⁻¹ Y'    [Nyström]
         at last those of Qᵀ(Y'Qᵀ)Q                     [Rayleigh and Ritz: the variance along each axis is exact]
"""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.linear._axes import Axes, Noise, Subspace, no_axes, project
from unmix.linear._stage import Way
from unmix.maths.arrays import Array
from unmix.maths.spectra import nystrom, ritz


class Image(NamedTuple):
    """Statistics of subspace iteration: n, Σ (x−s), Σ |x−s|² and Q Σ (x−s)(x−s)ᵀ."""

    n: float
    sum: Annotated[np.ndarray, Array("d")]
    square: float
    image: Annotated[np.ndarray, Array("a d")]


class SubspaceIteration(Way):
    """A few directions, turned towards the leading axes in every pass."""

    name = "subspace"
    accelerate = False  # statistics of different Q do not mix
    even = True

    def __init__(self, wanted: Any, oversamples: int, power: int | str, shape: Shape, noise: Noise) -> None:
        self.wanted, self.oversamples, self.power, self.shape, self.noise = wanted, oversamples, power, shape, noise

    def goal(self, U: Subspace, first: float) -> bool:
        """Whether the power iterations that the user asks for are made, a step before them and one after them.

        The first is what random directions need, the last gives the variances.
        """
        return int(U.step) >= self._steps

    @property
    def _steps(self) -> int:
        if self.power != "auto":
            return int(self.power) + 2
        few = isinstance(self.wanted, Integral) and self.wanted < 0.1 * min(self.shape.n, self.shape.d)
        return 9 if few else 6

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Subspace:
        """Random directions."""
        empty, d = no_axes(data, rng), data.x.shape[1]
        narrow = min(self.shape.n, d)
        wide = (self.wanted if isinstance(self.wanted, Integral) else narrow) + self.oversamples
        Q = np.linalg.qr(rng.standard_normal((d, min(wide, narrow))))[0].T
        return Subspace(*empty._replace(components=Q, variances=np.zeros(len(Q))))

    def local(self, U: Subspace, b: Block) -> Local:
        """Y and its product with the centred rows, moved to the origin; CSR rows are centred implicitly."""
        x, y, square = project(U, b)
        yw = b.weighted(y)
        total = yw.sum(axis=0, dtype=np.float64)
        if x is None:
            image = np.asarray((b.x.T @ yw).T, dtype=np.float64) - np.outer(total, U.mean)
            xw = b.x.sum(axis=0, dtype=np.float64) if b.w is None else b.w @ b.x
            s = np.asarray(xw, dtype=np.float64).ravel() - b.total * U.mean
        else:
            image = (yw.T @ x).astype(np.float64)
            s = np.ones(len(x), x.dtype) @ x if b.w is None else b.w.astype(x.dtype) @ x
            square = np.einsum("ij,ij->i", x, x)
        n, norm = b.total, b.sum(square)
        loss = norm - b.sum(np.einsum("ia,ia->i", y, y))
        delta = (U.mean - U.shift).astype(np.float64)
        q = U.components.astype(np.float64) @ delta
        image = image + np.outer(total, delta) + np.outer(q, s + n * delta)
        stats = Image(n, s + n * delta, norm + 2.0 * float(s @ delta) + n * float(delta @ delta), image)
        return Local(None, stats, loss)

    def update(self, U: Subspace, stats: Image) -> Subspace:
        """Nyström's approximation of the covariance from its product with Q; at last what Q itself spans."""
        centre, Q = stats.sum / stats.n, U.components
        last = int(U.step) + 1 >= self._steps and not self.shape.online
        variances, V = (ritz if last else nystrom)(Q, stats.image / stats.n - np.outer(Q @ centre, centre))
        total = max(stats.square / stats.n - float(centre @ centre), 0.0)
        rows = max(stats.n, self.shape.counted)
        new = U._replace(
            mean=U.shift + centre, components=V, variances=variances, total=np.array(total), step=U.step + 1
        )
        return new._replace(noise=np.array(self.noise.variance(total, self.axes(new).variances, rows, V.shape[1])))

    def described(self, U: Any, data: Any) -> Described:
        """Axes and their images."""
        return Described(Subspace, Image)

    def axes(self, U: Subspace) -> Axes:
        """The parts without the directions that were only carried along."""
        k = self.wanted if isinstance(self.wanted, Integral) else None
        return U._replace(components=U.components[:k], variances=U.variances[:k])
