"""The latent linear model by EM over the observed cells (`maths/latent.py`): over rows, until a step gains little."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.sample import centre_of
from unmix.linear._axes import Axes, Noise
from unmix.linear._stage import Way
from unmix.maths import latent
from unmix.maths.latent import CellLoadings, Cells
from unmix.maths.order import canonical
from unmix.maths.spectra import count, leading

TINY = float(np.finfo(float).tiny)  # no variance of data whose squares float64 holds is below
CHOOSING = 1e-3  # of the mean variance, at least, is σ² while all axes are learnt: a column that few rows know would
# else be told by axes of its own, with any variance


class ChosenLoadings(CellLoadings):
    """The same parts, with as many axes as are wanted and no more."""

    __slots__ = ()


class CellEM(Way):
    """EM cell by cell: a ψ for each column."""

    name = "em"
    isotropic = False

    def local(self, U: CellLoadings, b: Block) -> Local:
        """Expected statistics, and −log p of the observed cells."""
        return Local(None, *latent.expect(U, b.x, b.w, b.observed))

    def described(self, U: Any, data: Any) -> Described:
        """Loadings and the sums of EM."""
        return Described(CellLoadings, Cells)

    def update(self, U: CellLoadings, stats: Cells) -> Any:
        """The M-step."""
        return latent.maximise(U, stats, self.isotropic)


class AxesEM(CellEM):
    """EM cell by cell with one ψ for all columns, x ~ N(μ, V diag(λ − σ²) Vᵀ + σ²I): principal axes."""

    isotropic = True

    def __init__(self, wanted: Any, tol: float, shape: Shape, noise: Noise) -> None:
        self.wanted, self.tol, self.shape, self.noise = wanted, tol, shape, noise

    @property
    def chooses(self) -> bool:
        """Whether all axes tell how many are wanted."""
        return not (self.wanted is None or isinstance(self.wanted, Integral))

    def goal(self, U: CellLoadings, first: float) -> float:
        """EM ends when a pass gains little."""
        return self.tol

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> CellLoadings:
        """The axes of the sample, its missing cells filled with the mean; some of its rows if there are many."""
        n, d = data.x.shape
        shift, k = centre_of(data), self.noise.most(self.shape.n, d)
        k = min(int(self.wanted), k) if isinstance(self.wanted, Integral) else k
        if (size := 8 * d * (k + 1) ** 2) > get_config().budget:
            raise ValueError(
                f"n_components={self.wanted!r} with missing cells needs statistics of {size / 1e9:.1f} GB: give "
                "a smaller number of components"
            )
        step = max(1, n // (20 * d + 1000))
        seen = np.ones(data.x.shape, bool) if data.observed is None else data.observed
        x = ((data.x - shift) * seen)[::step].astype(np.float64)
        S = x.T @ x / max(1.0, seen[::step].mean() * len(x))
        values, V = leading(S, k)
        noise = max(float(np.trace(S) - values.sum()) / max(1, d - k), 1e-3 * float(np.trace(S)) / d) or 1e-12
        share = CHOOSING if self.chooses else _floor(data)
        floor = np.full(d, share * max(float(np.trace(S)) / d, TINY))
        W = np.sqrt(np.maximum(values - noise, 1e-3 * noise))[:, None] * V
        return CellLoadings(shift, shift, W, np.full(d, noise), floor, np.eye(k))

    def axes(self, U: CellLoadings) -> Axes:
        """The axes of WᵀW, as many as are wanted."""
        W = U.loadings.astype(np.float64)
        d, noise = W.shape[1], float(U.noise[0])
        t, P = np.linalg.eigh(W @ W.T)
        t, V = t[::-1], P[:, ::-1].T @ W
        V = canonical(V / np.sqrt(np.maximum(t, TINY))[:, None])
        values = np.maximum(t, 0.0) + noise
        total = float(values.sum() + (d - len(values)) * noise)
        if self.chooses and not isinstance(U, ChosenLoadings):
            var = np.einsum("aj,aj->j", W, W) + noise
            whole = np.append(values, np.full(d - len(values), noise))
            seed = np.zeros(4, np.int64)
            rows, precision = max(self.shape.rows, 1.0), self.noise.precision(self.shape.dtype)
            k = min(count(self.wanted, whole, V, var, rows, seed, precision), len(values))
            noise, V, values = float(whole[k:].mean()), V[:k], values[:k]
        kind = U.loadings.dtype
        return Axes(
            U.shift, U.mean, V.astype(kind), values.astype(kind), np.array(noise, kind), np.array(total, kind),
            np.array(1), np.zeros(4, np.int64),
        )  # fmt: skip


class ChosenEM(AxesEM):
    """EM once more, with as many axes as all of them have told: fewer axes and another σ² are likeliest then."""

    name = "em of the chosen axes"

    def described(self, U: Any, data: Any) -> Described:
        """As before, of fewer axes."""
        return super().described(U, data)._replace(parts=ChosenLoadings)

    def start(self, before: CellLoadings, data: Block, rng: np.random.Generator) -> ChosenLoadings:
        """The leading axes of those before, the others left to σ²."""
        A = self.axes(before)
        noise = np.maximum(float(A.noise), before.floor)
        W = np.sqrt(np.maximum(A.variances - noise[0], 1e-3 * noise[0]))[:, None] * A.components
        floor = before.floor * (_floor(data) / CHOOSING)
        return ChosenLoadings(before.shift, before.mean, W, noise, floor, np.eye(len(W)))


def _floor(data: Block) -> float:
    """The least σ² that rounding lets EM work with, as a share of the mean variance."""
    return 1e-10 if data.x.dtype == np.float64 else 1e-7
