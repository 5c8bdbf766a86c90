"""Components from the kernel matrix of all rows: over the whole, no step, since the start is the closed form.

    K̃ = K − 1μᵀK − Kμ1ᵀ + μᵀKμ        μ = w/Σw          √w K̃ √w u_a = ρ_a u_a          coef_a = √w u_a / √ρ_a

Equal rows are merged. Since u_a is orthogonal to √w, a product of √w K̃ √w with directions that are so, too, is one of
√w K √w, made orthogonal to √w: the matrix itself need not be centred.

A linear kernel of more rows than columns does without that matrix, by singular vectors of the rows:

    √w K̃ √w = F Fᵀ        F = √w (x − Σ μ x)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.runners import PIECES, each
from unmix.engine.sample import centre_of, distinct
from unmix.engine.stage import Stage
from unmix.linear._kernel_parts import Parts, stored
from unmix.linear._pre_image import Ways
from unmix.maths.kernels import Kernel
from unmix.maths.order import signs
from unmix.maths.spectra import lanczos

FEW_ROWS = 200  # whose whole spectrum is found sooner than a part of it
SETTLED = 1e-10  # ‖K̃v − ρv‖ / ρ of Lanczos iteration, where `tol` is 0
BLOCKS = 8  # that Lanczos iteration must have room for: with fewer it hardly settles
BESIDE = 4  # directions of a block beyond those that are wanted
SPANNED = 4  # the share of n that Lanczos iteration may span: beyond 1/4 LAPACK is faster
ZERO, NEGATIVE = 1e-12, 1e-5  # of the largest eigenvalue: what is none, and what no rounding makes


class Held(NamedTuple):
    """Rows, their weights, and the kernels of all pairs; in place of these `Linear` has the rows from their mean on."""

    rows: Any
    w: np.ndarray
    K: np.ndarray
    shift: np.ndarray


class Solver(NamedTuple):
    """What a user asks of the eigenvectors."""

    wanted: int | None
    kind: str
    tol: float
    most: int | None
    power: int | str
    drop: bool  # components whose eigenvalue is zero


class Spectrum(Stage):
    """The leading eigenvectors of the centred kernel matrix."""

    name, over, most = "spectrum", "whole", 0

    def __init__(self, kernel: Kernel, solver: Solver, ways: Ways, shape: Shape) -> None:
        self.kernel, self.solver, self.ways, self.n = kernel, solver, ways, shape.n

    def open(self, data: Block, rng: np.random.Generator) -> Held:
        """The kernel matrix of the different rows."""
        if self.kernel.kernel == "precomputed":
            w = np.ones(data.x.shape[0]) if data.w is None else data.w
            return Held(data.x[:0], w, data.x.astype(np.float64, copy=False), np.zeros(data.x.shape[1]))
        data, shift = distinct(data), centre_of(data)
        w = np.ones(data.x.shape[0]) if data.w is None else data.w
        return Held(data.x, w, self.kernel.matrix(data.x, shift), shift)

    def start(self, before: Any, data: Held, rng: np.random.Generator) -> Parts:
        """The components that are wanted."""
        w = data.w
        mu, half = w / w.sum(), np.sqrt(w)
        down, across, largest = self._means(data, mu, rng)
        k = min(self.n if self.solver.wanted is None else int(self.solver.wanted), self.n)
        values, u, least = self._solve(data, half, down, across, min(k, len(w)), rng)
        rounding = 4 * np.finfo(float).eps * w.sum() * max(largest, np.abs(across).max())
        least = least if least < -NEGATIVE * float(values.max(initial=0.0)) - rounding else 0.0
        values, u = kept(cleaned(values, rounding, self.kernel), u, k, self.solver.drop)
        each = np.divide(u, half[:, None], out=np.zeros_like(u), where=half[:, None] > 0)
        turned = signs(each.T)
        coef = turned * half[:, None] * u / np.sqrt(np.where(values > 0, values, 1.0))
        parts = Parts(
            stored(data.rows), coef, down @ coef, mu, np.array(max(float(mu @ across), 0.0)), values,
            turned * each * np.sqrt(values), across, np.zeros((0, len(data.shift))), data.shift, least, np.array(0),
        )  # fmt: skip
        return parts._replace(dual=self.ways.learn(parts, w))

    def _means(self, data: Held, mu: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
        """Means of the columns of K and of its rows, and the largest |K(x, x)|."""
        K = data.K
        down = across = K @ mu
        if self.kernel.kernel == "precomputed":  # which need be symmetric only once it is centred
            down = mu @ K
            refuse_lopsided(K, down, across, rng)
        return down, across, float(np.abs(K.diagonal()).max())

    def _solve(
        self, data: Held, half: np.ndarray, down: np.ndarray, across: np.ndarray, k: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Eigenvalues of √w K̃ √w, falling, their vectors, and the least that showed."""
        K, n, (_, kind, tol, most, power, _) = data.K, len(half), self.solver
        width = min(k + BESIDE, n - 1)
        if kind == "randomized":
            room, least_room = width * (1 + int(power if power != "auto" else 7 if k < 0.1 * n else 4)), width
        else:
            room, least_room = n // SPANNED, BLOCKS * width
        if kind in ("auto", "randomized") and n > FEW_ROWS and least_room <= room < n:
            first = rng.standard_normal((n, width))
            fixed = half / np.sqrt(half @ half)

            def times(Q: np.ndarray) -> np.ndarray:  # Qᵀ K, since BLAS would copy K to multiply it from the right
                left, out = (half[:, None] * Q).T, np.empty((Q.shape[1], n))

                def columns(i: int) -> None:
                    part = slice(n * i // PIECES, n * (i + 1) // PIECES)
                    out[:, part] = left @ K[:, part]

                each(columns)
                return half[:, None] * out.T

            values, u, least, settled = lanczos(times, first, fixed, k, tol or SETTLED, room)
            if settled or kind == "randomized":
                return values, u, least
        C = K - down
        C -= across[:, None] - float(down @ (half * half)) / float(half @ half)
        C *= half[:, None] * half
        if kind == "arpack" and k < n:
            return by_arpack(C, k, tol, most, rng)
        if k < n // 8 and self.kernel.semidefinite:
            values, u = scipy.linalg.eigh(C, subset_by_index=[n - k, n - 1], overwrite_a=True, check_finite=False)
        else:
            values, u = scipy.linalg.eigh(C, overwrite_a=True, check_finite=False, driver="evd")
        return values[::-1][:k], u[:, ::-1][:, :k], float(values[0])

    def described(self, U: Any, data: Any) -> Described:
        """Nobody sees these parts before they are the model's."""
        return Described(Parts)


class Linear(Spectrum):
    """The same for a linear kernel of dense rows that are more than their columns."""

    @staticmethod
    def suits(kernel: Kernel, solver: Solver, shape: Shape) -> bool:
        """Whether it does what is asked for: the other solvers are known by their products with the whole matrix."""
        narrow = not shape.sparse and shape.d < shape.n
        return kernel.kernel == "linear" and solver.kind in ("auto", "dense") and narrow

    def open(self, data: Block, rng: np.random.Generator) -> Held:
        """The different rows, from their mean on."""
        data, shift = distinct(data), centre_of(data)
        w = np.ones(len(data.x)) if data.w is None else data.w
        return Held(data.x, w, data.x - shift, shift)

    def _means(self, data: Held, mu: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
        """By way of the mean of the rows."""
        across = data.K @ (mu @ data.K)
        return across, across, float(np.einsum("ij,ij->i", data.K, data.K).max())

    def _solve(
        self, data: Held, half: np.ndarray, down: np.ndarray, across: np.ndarray, k: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Squared singular values of F and its left singular vectors."""
        F = half[:, None] * (data.K - (half * half) @ data.K / (half @ half))
        few, width = min(F.shape), k + BESIDE
        if self.solver.kind == "auto" and few > FEW_ROWS and BLOCKS * width <= few // SPANNED:
            fixed, first = half / np.sqrt(half @ half), rng.standard_normal((len(F), width))
            values, u, _, settled = lanczos(
                lambda Q: F @ (F.T @ Q), first, fixed, k, self.solver.tol or SETTLED, few // SPANNED
            )
            if settled:
                return values, u, 0.0
        u, sigma, _ = scipy.linalg.svd(F, full_matrices=False, overwrite_a=True, check_finite=False)
        return sigma[:k] ** 2, u[:, :k], 0.0


def by_arpack(
    C: np.ndarray, k: int, tol: float, most: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """The same by Lanczos iteration with restarts."""
    try:
        first = rng.uniform(-1, 1, len(C))
        values, u = scipy.sparse.linalg.eigsh(C, k, which="LA", tol=tol, maxiter=most, v0=first)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        raise ValueError(
            f"eigen_solver='arpack' found only {len(error.eigenvalues)} of {k} components in max_iter={most}: raise "
            "max_iter or tol, or take eigen_solver='auto'"
        ) from error
    order = np.argsort(-values)
    return values[order], u[:, order], float(values.min())


def refuse_lopsided(K: np.ndarray, down: np.ndarray, across: np.ndarray, rng: np.random.Generator) -> None:
    """Refuse a matrix that is not symmetric once it is centred, by a look at some of its rows."""
    some = rng.choice(len(K), min(64, len(K)), replace=False)
    apart = np.abs((K[some] - down) - across[some, None] - ((K[:, some].T - across) - down[some, None]))
    if apart.max() > 1e-6 * np.abs(K[some]).max():
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        raise ValueError(
            f"kernel='precomputed' needs a symmetric matrix, but row {some[i]}, column {j} holds {K[some[i], j]:.6g} "
            f"and row {j}, column {some[i]} {K[j, some[i]]:.6g}: pass (K + K.T) / 2"
        )


def kept(values: np.ndarray, u: np.ndarray, k: int, drop: bool) -> tuple[np.ndarray, np.ndarray]:
    """Without the eigenvalues that are zero, or k of them; vectors of eigenvalue zero, and any that lack, are zero."""
    if drop:
        return values[values > 0], u[:, values > 0]
    lack = k - len(values)
    return np.append(values, np.zeros(lack)), np.pad(np.where(values > 0, u, 0.0), ((0, 0), (0, lack)))


def cleaned(values: np.ndarray, rounding: float, kernel: Kernel) -> np.ndarray:
    """Eigenvalues without those that rounding made; negative ones are refused, since their components have no scale."""
    top, low = float(values.max(initial=0.0)), float(values.min(initial=0.0))
    if low < -NEGATIVE * top - rounding:
        worst = f"{low / top:.2g} of the largest" if top > 0 else f"{low:.2g}, and none is positive"
        name = kernel.kernel if isinstance(kernel.kernel, str) else "callable"
        raise ValueError(
            f"There are significant negative eigenvalues ({worst}) among the n_components={len(values)} that were "
            f"asked for: kernel={name!r} is not positive semi-definite on these rows. Ask for fewer components, or "
            "choose another kernel, gamma or coef0"
        )
    return np.where(values > max(ZERO * top, rounding), values, 0.0)
