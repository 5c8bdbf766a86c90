"""Leading axes by a block Krylov space (Golub & Underwood 1977; Musco & Musco 2015): over rows, a block a pass.

S = Σ x xᵀ / n. The space of F₁, SF₁, S²F₁ … is grown by a block of orthonormal directions in every pass, and the axes
are the best that all of it spans. Subspace iteration keeps the last block alone, and needs far more passes where
the spectrum falls slowly.

local    Y = xF                                     F: the last block, a direction in each column
stats    n, Σ x, Σ |x|², SF = Σ xᵀY / n
update   T = KᵀSK      R = SF − K(KᵀSF)             K: all blocks, F among them; R: what they do not span
         F = an orthonormal basis of R              [random directions where R has none left]
         T p = λp,  |S(Kp) − λKp| = |Rp_F|          [Rayleigh and Ritz: λ along Kp is exact, and so is the residual]
         K = leading Kp                             [where K is full: thick restart (Wu & Simon 2000)]
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.described import Described, Scoped, several
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes
from unmix.linear._axes import Subspace, no_axes
from unmix.linear._image import MOST, Image, aligned, image, image_sizes
from unmix.linear._stage import Way
from unmix.maths.arrays import Array
from unmix.maths.order import canonical
from unmix.maths.spectra import leading, rest

SPARSE_WIDTH = MOST  # directions of a block, where rows are CSR
BASIS_BYTES = 1 << 30  # of K, at most, unless three times the axes that are carried are more
CHUNK = 64  # directions in one array: so many are added up in one product
FAINT = 1e-6  # a direction of R this much shorter than its longest is rounding, and a σ this much below the largest
LEAST_TOL = 100.0  # in units of the precision of the rows


class Krylov(NamedTuple):
    """The space so far: `basis` and `frame` are K, the frame is F, whose image is not known yet.

    `values` are the leading λ; `residual` is the largest |S(Kp) − λKp|/√(λλ₁) among the axes that are wanted; `looked`
    counts the directions whose image was asked for. Rows are measured from `shift`.
    """

    shift: Annotated[np.ndarray, Array("d")]
    mean: Annotated[np.ndarray, Array("d")]
    frame: Annotated[np.ndarray, Array("d a")]
    basis: Annotated[Any, "basis"]
    projected: Annotated[np.ndarray, Array("m m")]
    values: Annotated[np.ndarray, Array("v", low=0.0)]
    residual: Annotated[float, Array(low=0.0)]
    total: Annotated[float, Array(low=0.0)]
    looked: Annotated[int, Array(kind="i", low=0)]
    seed: Annotated[int, Array(kind="i", low=0)]


class KrylovSpace(Way):
    """Axes about zero, as many as are wanted and some more, by passes over the rows."""

    name = "krylov"
    accelerate = False  # statistics of different F do not mix

    def __init__(self, wanted: int, oversamples: int, power: int, tol: float, shape: Shape) -> None:
        narrow = min(shape.n, shape.d)
        self.wanted, self.shape = min(wanted, narrow), shape
        self.tol = max(tol, LEAST_TOL * float(np.finfo(shape.dtype).eps)) if tol else 0.0
        self.carried = min(self.wanted + oversamples, narrow)
        self.width = min(self.carried, SPARSE_WIDTH) if shape.sparse else self.carried
        self.looks = (power + 2) * self.carried  # directions whose image is asked for, where there is no tolerance
        most = max(BASIS_BYTES // (8 * shape.d), 3 * self.carried)
        self.room = min(max(self.looks, 3 * self.carried), most, shape.d)  # directions in K

    def sizes(self, shape: Shape) -> Sizes:
        """Those that suit images."""
        return image_sizes(shape)

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Krylov:
        """Random directions."""
        d, none = data.x.shape[1], np.zeros(0)
        frame = columns(np.linalg.qr(rng.standard_normal((d, self.width)))[0].T)
        seed = int(rng.integers(2**31))
        shift = no_axes(data, None, False).shift
        return Krylov(shift, shift, frame, (), np.zeros((0, 0)), none, 1.0, 0.0, 0, seed)

    def sent(self, U: Krylov) -> Krylov:
        """The last block: the others have been looked at."""
        return U._replace(basis=(), projected=np.zeros((0, 0)))

    def local(self, U: Krylov, b: Block) -> Local:
        """The image of the last block, and |x|²."""
        stats, _ = image(b, U.frame, U.shift)
        return Local(None, stats, stats.uncentred(U.shift.astype(np.float64, copy=False)))

    def penalty(self, U: Krylov) -> float:
        """Minus what the axes so far have of Σ |x|²: the objective is the squared error that they leave."""
        return -self.shape.weight * float(U.values[: self.wanted].sum())

    def goal(self, U: Krylov, first: float) -> bool:
        """Whether no other block is wanted."""
        return U.frame.shape[1] == 0

    def update(self, U: Krylov, stats: Image) -> Krylov:
        """One more block whose image is known, the axes that all of them span, and the next block."""
        stats = stats.moved(U.frame, U.shift)
        E, K = np.divide(stats.image.T, stats.n, order="C"), joined(U.basis, np.ascontiguousarray(U.frame.T))
        C = products(E, K)
        T, R = bordered(U.projected, C), outside(E, C, K)
        size = float(np.abs(R).max(initial=0.0)) or 1.0  # in units of it squares stay within range
        R /= size
        gram, m, looked = R @ R.T, len(T), U.looked + len(E)
        full = m + self.width > self.room < self.shape.d
        values, P = leading(T, min((self.room + self.carried) // 3 if full else self.carried, m))
        residual = self._residual(values, P[:, m - len(E) :], gram, size) if m >= self.wanted else 1.0
        left = self.room if self.tol else self.looks - looked
        if self.tol and residual <= self.tol:
            left = 0
        if full and left > 0:
            K, T = (combined(P, K),), np.diag(values)
        wide = max(min(self.width, left, self.room - len(T)), 0)
        frame = columns(beside(R, gram, K, wide, np.random.default_rng([U.seed, looked])))
        total = max(stats.square / stats.n, 0.0)
        return Krylov(
            U.shift, stats.sum / stats.n, frame, K, T, values[: self.carried], residual, total, looked, U.seed
        )

    def _residual(self, values: np.ndarray, own: np.ndarray, gram: np.ndarray, size: float) -> float:
        """The largest of the axes that are wanted, given what each has of the last block and RRᵀ, R in units."""
        own, sigma = own[: self.wanted], np.sqrt(values[: self.wanted])
        left = np.sqrt(np.maximum(np.einsum("ka,ka->k", own @ gram, own), 0.0))
        scale = np.maximum(sigma, FAINT * sigma[0]) * sigma[0]
        return float((left * size / scale).max()) if sigma[0] > 0 else 0.0

    def hand(self, U: Krylov, data: Any) -> Subspace:
        """The axes that K spans; where a fit is stopped before the first pass, directions."""
        zero, d = np.array(0.0), len(U.shift)
        V, values = U.frame[:, : self.carried].T, np.zeros(min(self.carried, U.frame.shape[1]))
        if U.basis:
            values, P = leading(U.projected, min(self.carried, len(U.projected)))
            V = canonical(combined(P, U.basis))
        noise = rest(U.total, values[: self.wanted], max(self.shape.weight, self.shape.counted), d)
        return Subspace(U.shift, U.mean, V, values, zero + noise, zero + U.total, np.array(1), np.zeros(4, np.int64))

    def described(self, U: Any, data: Any) -> Described:
        """Blocks of the space, and their images."""
        block = Scoped(Annotated[np.ndarray, Array("b d")], {})
        return Described(Krylov, Image, Any, {"basis": several(block, ...)}, holds)


def holds(U: Krylov) -> bool:
    """Whether T is that of the blocks."""
    return sum(map(len, U.basis)) == len(U.projected)


# -- the space: a tuple of arrays, a direction in each row --


def columns(F: np.ndarray) -> np.ndarray:
    """Directions in columns, which begin with a cache line."""
    out = aligned((F.shape[1], len(F)), np.float64)
    out[:] = F.T
    return out


def joined(K: tuple[np.ndarray, ...], F: np.ndarray) -> tuple[np.ndarray, ...]:
    """K with one more block; short ones share an array."""
    if K and len(K[-1]) + len(F) <= CHUNK:
        return (*K[:-1], np.vstack([K[-1], F]))
    return (*K, F)


def products(E: np.ndarray, K: tuple[np.ndarray, ...]) -> np.ndarray:
    """E Kᵀ."""
    return np.hstack([E @ F.T for F in K])


def combined(P: np.ndarray, K: tuple[np.ndarray, ...]) -> np.ndarray:
    """P K."""
    ends = np.cumsum([len(F) for F in K])
    return sum(p @ F for p, F in zip(np.split(P, ends[:-1], axis=1), K, strict=True))  # type: ignore[return-value]


def outside(E: np.ndarray, C: np.ndarray, K: tuple[np.ndarray, ...]) -> np.ndarray:
    """E − CK: what K does not span of E, given C = E Kᵀ."""
    R, product, at = E.copy(), np.empty_like(E), 0
    for F in K:
        R -= np.matmul(C[:, at : at + len(F)], F, out=product)
        at += len(F)
    return R


def bordered(T: np.ndarray, C: np.ndarray) -> np.ndarray:
    """T with the products of one more block, which are C."""
    m = len(T)
    return np.block([[T, C[:, :m].T], [C[:, :m], (C[:, m:] + C[:, m:].T) / 2]])


def beside(
    R: np.ndarray, gram: np.ndarray, K: tuple[np.ndarray, ...], wide: int, rng: np.random.Generator
) -> np.ndarray:
    """So many orthonormal directions that K does not span: those of R, the longest first, then random ones."""
    g, W = np.linalg.eigh(gram)
    use = np.flatnonzero(g > FAINT**2 * max(g[-1], np.finfo(float).tiny))[::-1][:wide]
    B = (W[:, use] / np.sqrt(g[use])).T @ R
    more = wide - len(use)
    if more:
        B = np.vstack([B, rng.standard_normal((more, R.shape[1])) / np.sqrt(R.shape[1])])
    for _ in range(0 if wide == 0 else 2 if more else 1):  # once more is enough: what R has of K is rounding
        B = outside(B, products(B, K), K)
        g, W = np.linalg.eigh(B @ B.T)
        B = (W / np.sqrt(g)).T @ B
    return B
