"""Principal axes from the covariance: over moments, no step, since what they hand on is the closed form.

stats    n, Σ x, Σ x xᵀ
update   V = leading eigenvectors of the covariance                [uncentred axes: of Σ x xᵀ / n]
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.moments import block_rows, moments
from unmix.engine.stage import Sizes
from unmix.linear._axes import LEFT_OUT, Axes, Noise, gaussian, no_axes, project
from unmix.linear._stage import Way
from unmix.maths.latent import expected_moments
from unmix.maths.moments import Moments
from unmix.maths.spectra import count, leading

ORIGIN_ROWS = 1024  # that tell where to measure moments from


class Covariance(Way):
    """The spectrum of the d×d covariance; rows that come online add to its moments."""

    name, over, most = "covariance", "moments", 0
    even = True

    def __init__(self, wanted: Any, shape: Shape, noise: Noise = LEFT_OUT, centred: bool = True) -> None:
        self.wanted, self.counted = wanted, shape.counted  # n_components, and rows that count
        self.noise, self.dtype, self.centred = noise, shape.dtype, centred

    def sizes(self, shape: Shape) -> Sizes:
        """The sample only gives the moments' origin."""
        return Sizes(block_rows(shape), ORIGIN_ROWS)

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Axes:
        """No axes yet: moments do not need any."""
        return no_axes(data, rng if self.wanted == "parallel" else None)

    def local(self, U: Axes, b: Block) -> Local:
        """Moments, and the squared error |x − μ − zV|² of the rows that they are made of."""
        if isinstance(b.x, Moments):
            s, V = b.x.about(U.mean - U.shift), U.components
            return Local(None, b.x, float(np.trace(s.scatter) - np.vdot(V @ s.scatter, V)))
        if b.observed is None:
            stats = moments(b, U.shift)
        else:
            stats = expected_moments(gaussian(U), b.x, b.w, b.observed)
        x, z, square = project(U, b)
        if x is None:
            loss = square - np.einsum("ia,ia->i", z, z)
        else:
            r = x - z @ U.components
            loss = np.einsum("ij,ij->i", r, r if b.observed is None else r * b.observed)
        return Local(None, stats, b.sum(loss))

    def update(self, U: Axes, stats: Moments) -> Axes:
        """As many leading axes as are wanted."""
        centre, rows = stats.sum / stats.n, max(stats.n, self.counted)
        d, mean = len(centre), U.shift + centre
        S = stats.centred()[1] / stats.n
        if not self.centred:
            S = S + np.outer(mean, mean)
        if isinstance(self.wanted, Integral) and 8 * int(self.wanted) <= d:
            values, V = leading(S, int(self.wanted))
            k = len(values)
        else:
            values, V = leading(S, d)
            k = count(self.wanted, values, V, np.diag(S), rows, U.seed, self.noise.precision(self.dtype))
        total = max(float(np.diag(S).sum()), 0.0)
        return U._replace(
            mean=mean, components=V[:k], variances=values[:k], total=np.array(total), step=U.step + 1,
            noise=np.array(self.noise.variance(total, values[:k], rows, d)),
        )  # fmt: skip

    def hand(self, U: Axes, data: Moments) -> Axes:
        """The axes of all rows."""
        return self.update(U, data)

    def described(self, U: Any, data: Any) -> Described:
        """Axes and moments."""
        return Described(Axes, Moments)

    def axes(self, U: Axes) -> Axes:
        """The parts themselves."""
        return U
