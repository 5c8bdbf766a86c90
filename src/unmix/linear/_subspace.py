"""Principal axes by subspace iteration (Halko, Martinsson & Tropp 2011): over rows, power + 1 steps.

local    Y = (x − μ) Qᵀ                                 Q: some more directions than axes are asked for
stats    n, Σ x, Σ |x|², Y' = Σ Yᵀ(x − μ)
update   Q = leading eigenvectors of Y'ᵀ (Y'Qᵀ)⁻¹ Y'    [Nyström]
         at last those of Qᵀ(Y'Qᵀ)Q                     [Rayleigh and Ritz: the variance along each axis is exact]

Uncentred axes are the same with μ = 0.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes
from unmix.linear._axes import LEFT_OUT, Axes, Noise, Subspace, no_axes
from unmix.linear._image import Image, image, image_sizes
from unmix.linear._stage import Way
from unmix.maths.spectra import nystrom, ritz


class SubspaceIteration(Way):
    """A few directions, turned towards the leading axes in every pass."""

    name = "subspace"
    accelerate = False  # statistics of different Q do not mix
    even = True

    def __init__(
        self,
        wanted: Any,
        oversamples: int,
        power: int | str,
        shape: Shape,
        noise: Noise = LEFT_OUT,
        centred: bool = True,
    ) -> None:
        self.wanted, self.oversamples, self.power, self.shape = wanted, oversamples, power, shape
        self.noise, self.centred = noise, centred

    def sizes(self, shape: Shape) -> Sizes:
        """Those that suit images."""
        return image_sizes(shape)

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
        empty, d = no_axes(data, rng, self.centred), data.x.shape[1]
        narrow = min(self.shape.n, d)
        wide = (self.wanted if isinstance(self.wanted, Integral) else narrow) + self.oversamples
        Q = np.linalg.qr(rng.standard_normal((d, min(wide, narrow))))[0].T
        return Subspace(*empty._replace(components=Q, variances=np.zeros(len(Q))))

    def local(self, U: Subspace, b: Block) -> Local:
        """Y and its product with the rows, moved to the origin."""
        Q, shift = U.components.T, U.shift.astype(np.float64, copy=False)
        stats, squares = image(b, Q, U.mean if self.centred else U.shift)
        Q = Q.astype(np.float64, copy=False)
        if self.centred:
            return Local(None, stats.moved(Q, U.mean - shift), stats.square - float(squares.sum()))
        q, k = shift @ Q, len(self.axes(U).components)
        captured = squares + (2.0 * (stats.sum @ Q) + stats.n * q) * q
        return Local(None, stats, stats.uncentred(shift) - float(captured[:k].sum()))

    def update(self, U: Subspace, stats: Image) -> Subspace:
        """Nyström's approximation of the covariance from its product with Q; at last what Q itself spans."""
        centre, Q = stats.sum / stats.n, U.components
        last = int(U.step) + 1 >= self._steps and not self.shape.online
        product, mean = stats.centred(Q.T).T, U.shift + centre
        total = max(stats.square / stats.n - float(centre @ centre), 0.0)
        if not self.centred:
            product, total = product + np.outer(Q @ mean, mean), total + float(mean @ mean)
        variances, V = (ritz if last else nystrom)(Q, product)
        rows = max(stats.n, self.shape.counted)
        new = U._replace(mean=mean, components=V, variances=variances, total=np.array(total), step=U.step + 1)
        return new._replace(noise=np.array(self.noise.variance(total, self.axes(new).variances, rows, V.shape[1])))

    def described(self, U: Any, data: Any) -> Described:
        """Axes and their images."""
        return Described(Subspace, Image)

    def axes(self, U: Subspace) -> Axes:
        """The parts without the directions that were only carried along."""
        k = self.wanted if isinstance(self.wanted, Integral) else None
        return U._replace(components=U.components[:k], variances=U.variances[:k])
