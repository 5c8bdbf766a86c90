"""Components of rows whose kernel matrix is too large, by some of them (Nyström): over rows, one step.

start    landmarks l_j, rows of a sample that span the others well;   L Lᵀ = K(l, l)
local    f = L⁻¹ K(l, x), the features of what the landmarks span of φ(x)
stats    n, Σ f, Σ f fᵀ
update   V = leading eigenvectors of the scatter of f           v_a = Σ_j (L⁻ᵀ V)_ja φ(l_j)
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.linalg

from unmix.engine import layout
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.sample import centre_of
from unmix.engine.stage import Sizes, Stage
from unmix.linear._gram import Solver, cleaned, kept
from unmix.linear._kernel_parts import Csr, Parts, rows_of, steps, stored
from unmix.linear._pre_image import Ways
from unmix.maths.arrays import Array
from unmix.maths.kernels import Kernel, landmarks
from unmix.maths.moments import Moments
from unmix.maths.order import signs

SAMPLE = 4  # rows that landmarks are chosen from, for each of them
LEAST_SAMPLE = 4096
FEATURES = 1 << 21  # numbers of a block's features


class Features(NamedTuple):
    """Landmarks, the way to their features, and the axes of these."""

    rows: Annotated[np.ndarray, Array("s d")] | Csr
    root: Annotated[np.ndarray, Array("s t")]  # L⁻ᵀ
    shift: Annotated[np.ndarray, Array("d")]
    origin: Annotated[np.ndarray, Array("t")]  # where moments are measured from
    mean: Annotated[np.ndarray, Array("t")]
    axes: Annotated[np.ndarray, Array("t k")]
    values: Annotated[np.ndarray, Array("k", low=0.0)]


class Sums(NamedTuple):
    """n, Σ (f−o) and Σ (f−o)(f−o)ᵀ for the origin o."""

    n: float
    sum: Annotated[np.ndarray, Array("t")]
    scatter: Annotated[np.ndarray, Array("t t")]


class Nystrom(Stage):
    """One pass for the moments of the features."""

    name, most = "nystrom", 1

    def __init__(self, kernel: Kernel, solver: Solver, ways: Ways, count: int) -> None:
        self.kernel, self.solver, self.ways, self.count = kernel, solver, ways, count

    def sizes(self, shape: Shape) -> Sizes:
        """Blocks whose features take some MiB, and a sample of some times as many rows as there are landmarks."""
        rows = max(64, min(layout.block_rows(shape), FEATURES // self.count))
        return Sizes(rows, max(LEAST_SAMPLE, SAMPLE * self.count))

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Features:
        """Landmarks; no axes yet."""
        shift, w = centre_of(data), np.ones(data.x.shape[0]) if data.w is None else data.w
        index, L = landmarks(self.kernel, data.x, w, min(self.count, data.x.shape[0]), shift, rng)
        root = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False).T
        origin, empty = np.zeros(len(L)), np.zeros((len(L), 0))
        U = Features(stored(data.x[index]), root, shift, origin, origin, empty, np.zeros(0))
        some = self._features(U, data.x[:LEAST_SAMPLE])
        origin = w[: len(some)] @ some / max(float(w[: len(some)].sum()), np.finfo(float).tiny)
        return U._replace(origin=origin, mean=origin)

    def _features(self, U: Features, x: Any) -> np.ndarray:
        rows, root, pieces = rows_of(U), U.root.astype(np.float64), steps(x.shape[0], len(U.root))
        out = np.empty((x.shape[0], root.shape[1]))
        for a in pieces:
            out[a : a + pieces.step] = self.kernel.between(x[a : a + pieces.step], rows, U.shift) @ root
        return out

    def local(self, U: Features, b: Block) -> Local:
        """Moments of the features, and what the axes so far leave of ‖φ(x) − m‖²."""
        F = self._features(U, b.x)
        left = self.kernel.squares(b.x, U.shift) - np.einsum("ij,ij->i", F, F)
        about = F - U.mean
        z = about @ U.axes
        left += np.einsum("ij,ij->i", about, about) - np.einsum("ij,ij->i", z, z)
        F -= U.origin
        weighted = b.weighted(F)
        return Local(None, Sums(b.total, weighted.sum(axis=0), weighted.T @ F), b.sum(left))

    def update(self, U: Features, stats: Sums) -> Features:
        """As many axes as are wanted."""
        about, S = Moments(*stats).centred()
        values, V = np.linalg.eigh(S)
        k = len(S) if self.solver.wanted is None else int(self.solver.wanted)
        values = cleaned(values[::-1][:k], 4 * np.finfo(float).eps * float(np.trace(stats.scatter)), self.kernel)
        values, V = kept(values, V[:, ::-1][:, :k], k, self.solver.drop)
        return U._replace(mean=U.origin + about, axes=V, values=values)

    def hand(self, U: Features, data: Any) -> Parts:
        """The components by the landmarks."""
        K, size = self.kernel.matrix(rows_of(U), U.shift), len(U.root)
        coef, mu = U.root @ U.axes, U.root @ U.mean
        offset, inner = U.mean @ U.axes, K @ mu
        scores = K @ coef - offset
        turned, square = signs(scores.T), np.array(float(U.mean @ U.mean))
        parts = Parts(
            U.rows, turned * coef, turned * offset, mu, square, U.values, turned * scores, inner,
            np.zeros((0, len(U.shift))), U.shift, 0.0, np.array(size),
        )  # fmt: skip
        return parts._replace(dual=self.ways.learn(parts, np.ones(size)))

    def described(self, U: Any, data: Any) -> Described:
        """Landmarks and moments of their features."""
        return Described(Features, Sums)
