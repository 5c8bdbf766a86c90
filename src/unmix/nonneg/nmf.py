"""Non-negative matrix factorisation:  x_i ≈ z_i U,  z ≥ 0, U ≥ 0.

Objective, with D the squared error ½(x−y)² or the Kullback–Leibler divergence x log(x/y) − x + y, over observed cells:

    Σ_i w_i { Σ_j D(x_ij, (z_i U)_j) + d·α_W·R(z_i) + α_H·R(U) },      R(a) = λ Σ|a| + ½ (1−λ) Σ a²,   λ = l1_ratio

Squared error, by HALS (coordinate descent, one row of z or column of U at a time):

local    z_i ← sweeps on ½ zᵀGz − cᵀz,  G = U_i U_iᵀ + dα_W(1−λ)I,  c = U_i x_i − dα_Wλ    [U_i: the observed columns]
stats    n = Σ w      A = Σ w z zᵀ      B = Σ w z x      P = Σ w z (z U) over the observed cells
update   U_j ← sweeps on ½ uᵀAu − (A U_j − P_j + B_j)ᵀu + n α_H R(u)      [a bound: A counts rows that do not show j]
         or, where the bound of the multiplicative step  U ← U B/P  promises more, by that

Kullback–Leibler, by multiplicative steps:

local    z ← z·(U(x/y)) / (Σ_j U_j + dα_Wλ),  a few times
stats    n = Σ w      B = Σ w z (x/y)      P = Σ w z over the observed cells
update   U ← U·B / (P + nα_Hλ)

P is summed over what is observed: as a difference from the sum over all cells it would cancel, since z may be huge in
rows that show nothing of a part. For rows without holes it is A U, or Σ w z, and need not be sent. In online steps it
is blended as B is, each batch at the parts that it met.

Data far from one are divided by `Parts.scale`, and the penalties with them: float32 would not hold the squares.

Each step minimises a convex bound q that touches the objective at the present point o. Any y with q(y) ≤ q(o) is still
no worse, and going further than the minimum pays: alternating steps zigzag. So HALS goes on by a share of the way that
it came where q agrees, the more the slower the fit is (`paced`). A factor r becomes s(r) = r + 0.9 (r−1) min(r,1), and
needs no check: for q(s) = s − r log s both ends of s₂ = r² (r<1), 2r−1 (r>1) have q(s₂) ≤ q(1), and s lies between r
and s₂.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.layout import Shape
from unmix.engine.sources.arrays import csr_of
from unmix.engine.trace import Fit
from unmix.model import Model

STRETCH = 0.4  # how far HALS goes on at first, in units of the way that it came; then by the pace of the fit
RELAX = 0.9  # how far a multiplicative step goes on towards the neutral step s₂
FLOOR = 1e-15  # share of a row's or part's total that a multiplicative step leaves, so that it can grow again
EPS = float(np.finfo(float).eps)
USUAL = 2.0**20  # data within this factor of one are taken as they are, without a copy in other units
CHUNK, KEPT = 1 << 17, 1 << 22  # numbers that a step on rows with holes makes for some rows, and for some columns
MOST = 1e30  # a penalty that leaves nothing of data of usual size
STARTS = {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}


class Effort(NamedTuple):
    """How long the z of a row is worked on: at most so many sweeps, or until one moves little (see the kernels)."""

    sweeps: int  # of HALS
    ratio: float
    repeats: int  # of multiplicative steps
    tol: float


FIRST = Effort(1, 0.0, 1, 0.0)  # with first parts: z solved from a mere guess would leave some of them unused
COLD = Effort(100, 1e-3, 20, 0.0)  # the first z of a row
WARM = Effort(8, 0.1, 3, 0.0)  # one that the last pass left
EXACT = Effort(10_000, 1e-9, 2_000, 1e-7)  # the rows of `transform`


class Parts(NamedTuple):
    """U, transposed: the k loads of a feature lie side by side."""

    loads: np.ndarray  # (d, k)
    gram: np.ndarray  # (k, k) U Uᵀ
    kkt: float  # how far from stationary the parts were that these were made from; −1 for first parts
    stretch: float  # how far HALS goes on, in units of the way that it came
    scale: float  # what the data are divided by, a power of four; z and the loads then by its root


class Stats(NamedTuple):
    """See the module; B and P are transposed as the loads are."""

    n: float
    error: float  # Σ w D
    A: np.ndarray
    m: np.ndarray
    B: np.ndarray
    F: np.ndarray  # A (Kullback–Leibler: m) of the blocks without holes
    P: Any  # of the blocks with holes; the number 0 where there are none


def parts(loads: np.ndarray, kkt: float = -1.0, stretch: float = STRETCH, scale: float = 1.0) -> Parts:
    """Parts with their Gram matrix."""
    return Parts(loads, loads.T @ loads, kkt, stretch, scale)


def paced(stretch: float, pace: float) -> float:
    """How far HALS goes on when a pass leaves `pace` of the slope.

    Over-relaxed alternation leaves at least `stretch` of the slowest mode a pass, and just that where it goes as far as
    is best or farther; where it leaves more, going farther pays [Young 1954]. So one follows the other from below.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from unmix import NMF
    >>> X = load_digits().data
    >>> model = NMF(10, random_state=0).fit(X)
    >>> model.components_.shape, bool((model.components_ >= 0).all())
    ((10, 64), True)
    """
    return 0.4 * stretch + 0.54 * min(pace, 1.0) ** 1.5


def relaxed(r: np.ndarray, relax: float) -> np.ndarray:
    """s(r) = r + relax (r−1) min(r, 1)."""
    return r + relax * (r - 1) * np.minimum(r, 1) if relax else r


class NMF(Model):
    """Non-negative matrix factorisation.

    Rows are sums of non-negative parts. Cells that are NaN are left out of the objective; CSR input stays sparse.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Number of parts. "auto": that of `components_init` if it is given, else the number of features; None: the number
        of features.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"} or None, default=None
        The first parts: random ones; those of a non-negative double SVD of a sample of the rows with zeros kept, filled
        with the mean, or filled with small random values; `components_init`. None is "nndsvda" where
        n_components <= min(n, d) and there is one start, else "random". Only the parts have a start: z is solved from
        them, where scikit-learn also starts from a given W.
    solver : {"auto", "hals", "cd", "mu"}, default="auto"
        Coordinate descent ("hals", also under scikit-learn's name "cd"; squared error only) or multiplicative updates.
        "auto" is "hals" for the squared error and "mu" for Kullback–Leibler.
    beta_loss : {"frobenius", "kullback-leibler"} or {2, 1}, default="frobenius"
        What is minimised.
    tol : float, default=1e-4
        The fit has converged when a pass improves the objective by no more than tol times a tenth of the first one.
    max_iter : int, default=200
        The most passes over the data.
    n_init : int, default=1
        Starts; all share each pass, and the best is kept.
    components_init : array of shape (n_components, d) or None, default=None
        Parts to start from where init="custom".
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    alpha_W, alpha_H : float, default=0.0 and "same"
        Strength of the penalties on z (times the number of features) and on the parts (times the number of rows).
    l1_ratio : float, default=0.0
        Share of the penalties that is absolute rather than squared.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, d)
        The parts. Without penalties each sums to one, so that z_iq is the amount of row i that is part q.
    n_components_ : int
        How many there are.
    reconstruction_err_ : float
        √(2 D) over the observed cells at the end of the fit: the Frobenius norm of X − Z U, or its
        Kullback–Leibler likeness. After `partial_fit` an estimate for all rows so far: every batch counts with its rate
        and with the error at the parts that it met, before the step that it led to.
    kkt_residual_ : float
        How far from stationary the parts were before the last step, 0 at a stationary point: with g the slope of the
        objective, Σ u |g| + ū max(−g, 0) over Σ u b, where ū is the mean of a part and b = Σ z x (Kullback–Leibler:
        Σ z x/y). It does not depend on the unit of the data.
    """

    sparse: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
        "init": [StrOptions(STARTS), None],
        "solver": [StrOptions({"auto", "hals", "cd", "mu"})],
        "beta_loss": [StrOptions({"frobenius", "kullback-leibler"}), Interval(Integral, 1, 2, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "components_init": ["array-like", None],
        "random_state": ["random_state"],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        solver: str = "auto",
        beta_loss: str | int = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        n_init: int = 1,
        components_init: Any = None,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.components_init = components_init
        self.random_state = random_state
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio

    # ---------------------------------------------------------------- what the hyper-parameters mean

    @property
    def _kl(self) -> bool:
        return self.beta_loss in ("kullback-leibler", 1)

    @property
    def _multiplicative(self) -> bool:
        return self._kl or self.solver == "mu"

    def _size(self, d: int) -> int:
        """Number of parts for d features."""
        if self.n_components == "auto" and self.components_init is not None:
            return len(self.components_init)
        return d if self.n_components in ("auto", None) else int(self.n_components)  # type: ignore[arg-type]

    @property
    def _free(self) -> bool:
        """Whether the scale of a part is free, as it is without penalties."""
        return not self.alpha_W and self.alpha_H in ("same", 0)

    def _penalties(self, U: Parts) -> tuple[float, float, float, float]:
        """Absolute and squared penalty on z, then the same on the parts for each row of the data; in units of it."""
        z, u = len(U.loads) * self.alpha_W, self.alpha_W if self.alpha_H == "same" else float(self.alpha_H)
        l1, l2 = self.l1_ratio * np.sqrt(U.scale) / self._cost(U), (1 - self.l1_ratio) * U.scale / self._cost(U)
        return min(z * l1, MOST), min(z * l2, MOST), min(u * l1, MOST), min(u * l2, MOST)

    def _cost(self, U: Parts) -> float:
        """What one unit of the objective is to the user."""
        return U.scale if self._kl else U.scale**2

    def _shown(self, U: Parts) -> np.ndarray:
        """What the loads are multiplied by for users: where the scale is free, so that each part sums to one."""
        total = U.loads.sum(axis=0)
        root = np.full_like(total, np.sqrt(U.scale))
        return np.divide(1, total, out=root, where=total > 0) if self._free else root

    def check(self, shape: Shape) -> None:
        """Refuse combinations that have no meaning."""
        k, init = self._size(shape.d), self.init
        if self._kl and self.solver in ("hals", "cd"):
            raise ValueError(
                f"solver={self.solver!r} minimises the squared error only, not beta_loss={self.beta_loss!r}: "
                "use solver='mu'"
            )
        if init is not None and init.startswith("nndsvd") and k > min(shape.n, shape.d):
            raise ValueError(
                f"init={init!r} gives at most min(n, d) = {min(shape.n, shape.d)} parts, and n_components={k}: "
                "ask for fewer, or use init='random'"
            )
        if init == "custom":
            if self.components_init is None:
                raise ValueError("init='custom' starts from components_init, which is None: give an array of parts")
            given = np.asarray(self.components_init)
            if given.shape != (k, shape.d):
                raise ValueError(
                    f"components_init has shape {given.shape}: these data and n_components need {(k, shape.d)}"
                )
            if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
                raise ValueError("components_init must be finite, not negative and not all zero")

    def block_rows(self, shape: Shape) -> int | None:
        """For CSR, rows with some 32 nonzeros a column: adding up (d, k) statistics costs little beside them."""
        if not (shape.sparse and shape.nbytes):
            return None
        nonzeros = max(1.0, shape.nbytes / (shape.dtype.itemsize + 4) / shape.n)
        return int(np.clip(32 * shape.d / nonzeros, 256, max(256, -(-shape.n // 4))))

    def unit(self, U: Parts, first: float) -> float:
        """A tenth of the first objective: what ten passes gain is then judged as scikit-learn judges it."""
        return 0.1 * first

    # ---------------------------------------------------------------- start

    def start(self, sample: Block, rng: np.random.Generator) -> Parts:
        """First parts."""
        d, kind = sample.x.shape[1], self.init
        k = self._size(d)
        x, w = sample.x.astype(np.float64, copy=False), sample.w
        w = np.ones(x.shape[0]) if w is None else w
        seen = w.sum() * np.ones(d) if sample.observed is None else w @ sample.observed
        total = np.asarray(w @ x).ravel()
        level = total.sum() / max(seen.sum(), 1.0) or 1.0
        if not (self._kl or 1e-151 < level < 1e151):
            raise ValueError(
                f"X is about {level:.0e} in size, and its squared error is beyond the range of float64: "
                f"multiply X by {1 / level:.0e}"
            )
        scale = 1.0 if 1 / USUAL <= level <= USUAL else 4.0 ** round(np.log2(level) / 2)
        x, total, level = x / scale if scale != 1 else x, total / scale, level / scale
        if kind is None:
            kind = "nndsvda" if k <= min(x.shape) and self.n_init == 1 else "random"
        if kind == "custom":
            loads = np.array(np.asarray(self.components_init).T, dtype=np.float64, order="C")
            loads /= loads.mean() if self._free else np.sqrt(scale)
        elif kind == "random":
            loads = np.sqrt(level / k) * np.abs(rng.standard_normal((d, k)))
        else:
            if sample.observed is not None:
                x = np.where(sample.observed, x, total / np.maximum(seen, EPS))
            root = np.sqrt(w)[:, None]
            x = (sp.diags_array(root.ravel()) @ x if sp.issparse(x) else root * x) / level
            loads = np.sqrt(level) * nndsvd(x, k, kind, rng)
        if self._multiplicative:  # a zero would stay
            loads = np.maximum(loads, 1e-6 * loads.mean(axis=0) + EPS * loads.mean())
        return parts(loads, scale=scale)

    def grow(self, fit: Fit, rng: np.random.Generator) -> Parts:
        """The parts of a fit, the one that says most cut in two at random: their sum is what it was."""
        U, s = fit.U, fit.stats
        said = s.m * U.loads.sum(axis=0) if self._kl else s.A.diagonal() * U.gram.diagonal()
        most, share = int(np.argmax(said)), rng.random(len(U.loads))
        loads = np.column_stack([U.loads, share * U.loads[:, most]])
        loads[:, most] -= loads[:, -1]
        return parts(loads, scale=U.scale)

    # ---------------------------------------------------------------- local

    def local(self, U: Parts, b: Block) -> Local:
        """Work on z from where the last pass left it."""
        return self._local(U, b, WARM if b.z is not None else FIRST if U.kkt < 0 else COLD)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Solve z to the end, and count it in the parts that users see."""
        l1, l2, _, _ = self._penalties(U)
        solve = self._divergence if self._kl else self._solve
        return solve(U, rescaled(b, U.scale), EXACT, l1, l2)[0] * (b.x.dtype.type(U.scale) / self._shown(U))

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Z U."""
        return (z * self._shown(U)) @ U.loads.T

    def _local(self, U: Parts, b: Block, effort: Effort) -> Local:
        l1, l2, u1, u2 = self._penalties(U)
        z, s = (self._divergence if self._kl else self._squares)(U, rescaled(b, U.scale), effort, l1, l2)
        loss = s.error + l1 * float(s.m.sum()) + 0.5 * l2 * float(np.trace(s.A))
        if u1 or u2:
            loss += s.n * (u1 * float(U.loads.sum()) + 0.5 * u2 * float(np.trace(U.gram)))
        return Local(z, s, loss * self._cost(U))

    def _stats(self, b: Block, z: np.ndarray, error: float, B: np.ndarray, P: Any) -> Stats:
        """The statistics of a block, with those that need no more than z."""
        zw = b.weighted(z)
        A, m = zw.T @ z, zw.sum(axis=0, dtype=np.float64)
        F = m if self._kl else A
        return Stats(b.total, error, A, m, B, F if b.observed is None else np.zeros_like(F), P)

    def _solve(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, np.ndarray]:
        """The squared error: z, and U x for the loss."""
        from unmix.kernels.nmf_hals import hals, masked_hals

        x, loads, real = b.x, U.loads, b.x.dtype.type
        C = times(x, loads)
        if self.solver == "mu":
            return multiply(b, U, C, effort, l1, l2), C
        z = uniform(b, U, C) if b.z is None else b.z.copy()
        tail = effort.sweeps, real(effort.ratio), real(0 if b.z is None else U.stretch)
        if b.observed is None:
            hals(U.gram + real(l2) * np.eye(len(U.gram), dtype=x.dtype), C - real(l1), z, *tail)
        else:
            for part, G in own_grams(loads, b.observed, l2):
                masked_hals(G, C[part] - real(l1), z[part], *tail)
        return z, C

    def _squares(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, Stats]:
        """The squared error: z and the statistics, with ½ Σ w ‖x − zU‖² over the observed cells."""
        x, loads = b.x, U.loads
        z, C = self._solve(U, b, effort, l1, l2)
        zw = b.weighted(z)
        B = transposed_times(x, zw)
        if b.observed is not None:
            y = np.where(b.observed, z @ loads.T, x.dtype.type(0))
            rest = x - y
            return z, self._stats(b, z, 0.5 * b.sum(np.vecdot(rest, rest)), B, double(y.T @ zw))
        s, square = self._stats(b, z, 0.0, B, 0.0), squares(b)
        error = square - 2 * float(np.vdot(zw, C)) + float(np.vdot(s.A, U.gram))
        if error < 64 * np.sqrt(np.finfo(x.dtype).eps) * square:  # the difference has cancelled
            if not sp.issparse(x):
                rest = x - z @ loads.T
                error = b.sum(np.vecdot(rest, rest))
            elif x.dtype != np.float64:
                x, z64, loads = double(x), double(z), double(loads)
                zw = b.weighted(z64)
                error = square - 2 * np.vdot(zw, times(x, loads)) + np.vdot(zw.T @ z64, loads.T @ loads)
        return z, s._replace(error=0.5 * max(float(error), 0.0))

    def _divergence(self, U: Parts, b: Block, effort: Effort, l1: float, l2: float) -> tuple[np.ndarray, Stats]:
        """The Kullback–Leibler divergence: z and the statistics, Σ w (x log(x/y) − x + y) over the observed cells."""
        x, loads, real = b.x, U.loads, b.x.dtype.type
        expected = loads.sum(axis=0) if b.observed is None else b.observed.astype(x.dtype) @ loads
        total = np.asarray(x.sum(axis=1)).reshape(-1, 1)
        if b.z is None:
            share = np.broadcast_to(expected, (x.shape[0], loads.shape[1])).sum(axis=1, keepdims=True)
            z = np.repeat(total / np.where(share > 0, share, 1), loads.shape[1], axis=1).astype(x.dtype)
        else:
            z = b.z.copy()
        relax = RELAX if l2 == 0 else 0.0
        if sp.issparse(x):
            from unmix.kernels.nmf_kl import kl_rows

            w = np.ones(x.shape[0], x.dtype) if b.w is None else b.w.astype(x.dtype)
            B = np.zeros_like(loads)
            options = real(l1), real(l2), real(relax), real(FLOOR), effort.repeats, real(effort.tol)
            loss = kl_rows(x.data, x.indices, x.indptr, w, loads, expected, *options, z, B)
            return z, self._stats(b, z, loss, B, 0.0)
        D = np.broadcast_to(expected + real(l1), z.shape)
        rows = np.arange(len(z))
        for _ in range(effort.repeats):
            old, Dr = z[rows], D[rows]
            seen = ratios(x[rows], old, loads) @ loads
            root = np.sqrt(Dr * Dr + 4 * real(l2) * old * seen)
            r = np.divide(2 * seen, Dr + root, out=np.ones_like(old), where=Dr > 0)
            floor = np.divide(real(FLOOR) * total[rows], Dr, out=np.zeros_like(old), where=Dr > 0)
            z[rows] = np.maximum(old * relaxed(r, relax), floor)
            moved = (np.abs(z[rows] - old) * Dr).sum(axis=1)
            rows = rows[moved > effort.tol * total[rows, 0]]
            if not len(rows):
                break
        ratio, zw = ratios(x, z, loads), b.weighted(z)
        rest = np.log(ratio + (x <= 0), out=ratio.copy()) - 1
        loss = b.sum(np.vecdot(x, rest)) + b.sum(np.vecdot(z, np.broadcast_to(expected, z.shape)))
        P = 0.0 if b.observed is None else double(b.observed.astype(x.dtype).T @ zw)
        return z, self._stats(b, z, loss, ratio.T @ zw, P)

    # ---------------------------------------------------------------- update

    def update(self, U: Parts, s: Stats) -> Parts:
        """Next parts, no worse for the z that the statistics were made of."""
        loads = U.loads
        _, _, u1, u2 = self._penalties(U)
        l1, l2 = s.n * u1, s.n * u2
        G, C = s.A + l2 * np.eye(len(s.A)), s.B - l1 if l1 else s.B
        complete, size = np.ndim(s.P) == 0, float(np.vdot(loads, s.B))
        if complete and not self._multiplicative:
            from unmix.kernels.nmf_hals import residual

            kkt = residual(G, C, loads) / size if size > 0 else 0.0
        else:
            D = s.P + (s.F if self._kl else loads @ s.F)
            slope = D - C + l2 * loads
            down = np.maximum(-slope, 0)
            kkt = float(np.vdot(loads, abs(slope)) + loads.mean(axis=0) @ down.sum(axis=0)) / size if size > 0 else 0.0
        if self._kl:
            D = np.broadcast_to(D + l1, loads.shape)
            r = np.divide(2 * s.B, D + np.sqrt(D * D + 4 * l2 * loads * s.B), out=np.ones_like(loads), where=D > 0)
            new = loads * relaxed(r, RELAX if l2 == 0 else 0.0)
            return parts(np.maximum(new, FLOOR * new.mean(axis=0)), kkt, scale=U.scale)
        if self.solver == "mu":
            new, D = loads, D + l1 + l2 * loads
            for _ in range(10 if complete else 1):
                new = new * relaxed(np.divide(s.B, D, out=np.ones_like(D), where=D > 0), RELAX)
                D = new @ G + l1
            return parts(np.maximum(new, FLOOR * new.mean(axis=0)), kkt, scale=U.scale)
        from unmix.kernels.nmf_hals import hals

        new, C = loads.copy(), C if complete else loads @ G - slope
        stretch = paced(U.stretch, kkt / U.kkt) if U.kkt > 0 else STRETCH
        hals(G, C, new, *((1, 0.0, 0.0) if U.kkt < 0 else (12, 0.1, stretch)))
        if not complete:
            new = better(loads, new, G, s.B, D + l1 + l2 * loads, slope)
        return parts(new, kkt, stretch, U.scale)

    # ---------------------------------------------------------------- what users see

    def publish(self, fit: Fit) -> None:
        """Parts under scikit-learn's names."""
        self.components_ = np.ascontiguousarray((fit.U.loads * self._shown(fit.U)).T)
        self.n_components_ = len(self.components_)
        self.reconstruction_err_ = float(np.sqrt(self._cost(fit.U)) * np.sqrt(2 * fit.stats.error))
        self.kkt_residual_ = float(fit.U.kkt)

    def notes(self, U: Parts) -> list[str]:
        """Parts that the data do not need."""
        empty = int((~(U.loads > 0).any(axis=0)).sum())
        return [f"{empty} of {U.loads.shape[1]} parts are empty: fewer would do"] if empty and U.loads.any() else []

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[Model, np.ndarray, Callable[[Any], None]]:
        """Rows that are sparse sums of four parts with their own and shared features, plus a little noise."""
        U = rng.gamma(2.0, 1.0, (4, 24)) * (rng.random((4, 24)) < 0.4)
        Z = rng.gamma(1.0, 1.0, (300, 4)) * (rng.random((300, 4)) < 0.6)
        X = np.maximum(0, Z @ U + 0.1 * rng.standard_normal((300, 24)))

        def check(model: Any) -> None:
            H = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
            likeness = (H @ (U / np.linalg.norm(U, axis=1, keepdims=True)).T).max(axis=0)
            assert likeness.min() > 0.99, f"planted parts are found to {likeness}"

        return cls(4, random_state=0), X, check


def times(x: Any, loads: np.ndarray) -> np.ndarray:
    """X Uᵀ, (n, k)."""
    if not sp.issparse(x):
        return x @ loads
    from unmix.kernels import nmf_csr

    out = np.empty((x.shape[0], loads.shape[1]), x.dtype)
    nmf_csr.times(x.data, x.indices, x.indptr, loads, out)
    return out


def own_grams(loads: np.ndarray, observed: np.ndarray, l2: float) -> Iterator[tuple[slice, np.ndarray]]:
    """For some rows after the other Σ_j u_j u_jᵀ + l2 over the columns j that a row shows, as `masked_hals` takes it.

    It is the product of all u_j u_jᵀ and of 1 where a cell was seen, else 0: nothing cancels.
    """
    from unmix.kernels.nmf_hals import LANES

    (n, d), k, real = observed.shape, loads.shape[1], loads.dtype
    row, column = np.tril_indices(k)
    rows = max(1, CHUNK // (len(row) * LANES)) * LANES
    wide = max(1, KEPT // len(row))  # columns whose u_j u_jᵀ are made at a time

    def pairs(a: int) -> np.ndarray:
        some = np.ascontiguousarray(loads[a : a + wide].T)
        return some[row] * some[column]

    first = pairs(0)
    for top in range(0, n, rows):
        some = observed[top : top + rows]
        seen = np.zeros((-(-len(some) // LANES) * LANES, d), real)
        seen[: len(some)] = some
        seen = seen.reshape(-1, LANES, d).transpose(0, 2, 1)
        G = first @ seen[:, :wide]
        for a in range(wide, d, wide):
            G += pairs(a) @ seen[:, a : a + wide]
        G[:, row == column] += real.type(l2)
        yield slice(top, top + rows), G


def transposed_times(x: Any, z: np.ndarray) -> np.ndarray:
    """Xᵀ Z, (d, k)."""
    if not sp.issparse(x):
        return x.T @ z
    from unmix.kernels import nmf_csr

    out = np.zeros((x.shape[1], z.shape[1]), x.dtype)
    nmf_csr.add_transposed_times(x.data, x.indices, x.indptr, z, out)
    return out


def rescaled(b: Block, scale: float) -> Block:
    """The block in units of the data."""
    if scale == 1:
        return b
    x, unit = b.x, b.x.dtype.type(scale)
    return b._replace(x=csr_of(x.data / unit, x.indices, x.indptr, x.shape) if sp.issparse(x) else x / unit)


def double(a: Any) -> Any:
    """In float64: the sum of a number and such an array is one, too."""
    return a.astype(np.float64, copy=False)


def squares(b: Block) -> float:
    """Σ w ‖x‖²."""
    if not sp.issparse(b.x):
        return b.sum(np.vecdot(b.x, b.x))
    data = b.x.data.astype(np.float64, copy=False)
    return float(data @ data if b.w is None else (np.repeat(b.w, np.diff(b.x.indptr)) * data) @ data)


def ratios(x: np.ndarray, z: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Return x / (z U)."""
    y = z @ loads.T
    return np.divide(x, np.maximum(y, np.finfo(x.dtype).tiny, out=y), out=y)


def predicted(U: Parts, z: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
    """(z U) Uᵀ over the observed cells."""
    return z @ U.gram if observed is None else np.where(observed, z @ U.loads.T, z.dtype.type(0)) @ U.loads


def uniform(b: Block, U: Parts, C: np.ndarray) -> np.ndarray:
    """First z: as much of every part, as much as fits x best."""
    one = predicted(U, np.ones_like(C), b.observed).sum(axis=1, keepdims=True)
    return np.repeat(C.sum(axis=1, keepdims=True) / np.where(one > 0, one, 1), C.shape[1], axis=1)


def multiply(b: Block, U: Parts, C: np.ndarray, effort: Effort, l1: float, l2: float) -> np.ndarray:
    """Multiplicative steps of z for the squared error:  z ← z C / (z G + l2 z + l1), G over the observed cells."""
    real = C.dtype.type
    z = uniform(b, U, C) if b.z is None else b.z.copy()
    rows = np.arange(len(C))
    for _ in range(effort.repeats):
        old = z[rows]
        D = predicted(U, old, None if b.observed is None else b.observed[rows]) + real(l2) * old + real(l1)
        r = np.divide(C[rows], D, out=np.ones_like(old), where=D > 0)
        z[rows] = np.maximum(old * relaxed(r, RELAX), real(FLOOR) * old.mean(axis=1, keepdims=True))
        moved = (np.abs(z[rows] - old) * D).sum(axis=1)
        rows = rows[moved > effort.tol * (old * D).sum(axis=1)]
        if not len(rows):
            break
    return z


def better(
    old: np.ndarray, em: np.ndarray, G: np.ndarray, B: np.ndarray, D: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """Feature by feature, of two steps the one whose bound falls more: `em` (of curvature G) or the multiplicative one.

    Where rounding makes neither fall, none.
    """
    way = em - old
    fall = -(way * (slope + 0.5 * way @ G)).sum(axis=1)
    factor = relaxed(np.divide(B, D, out=np.ones_like(D), where=D > 0), RELAX)
    other = -(old * (factor - 1) * (slope + 0.5 * D * (factor - 1))).sum(axis=1)  # of curvature D/u
    return np.where((other > np.maximum(fall, 0))[:, None], old * factor, np.where((fall >= 0)[:, None], em, old))


def nndsvd(x: Any, k: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Loads of a non-negative double SVD [Boutsidis & Gallopoulos 2008]: of each singular pair the heavier sign.

    The right singular vectors come from subspace iteration on XᵀX, so that a row of weight two is the row twice.
    """
    d = x.shape[1]
    Q = np.linalg.qr(rng.standard_normal((d, min(d, k + 10))))[0]
    for _ in range(7):
        Q = np.linalg.qr(x.T @ (x @ Q))[0]
    left = x @ Q
    values, vectors = np.linalg.eigh(left.T @ left)
    order = np.argsort(-values)[:k]
    V, S = Q @ vectors[:, order], np.sqrt(np.maximum(values[order], 0))
    W = left @ vectors[:, order] / np.where(S > 0, S, 1)
    loads = np.empty((d, k))
    for q in range(k):
        signs = [(np.maximum(a * W[:, q], 0), np.maximum(a * V[:, q], 0)) for a in (1, -1)]
        norms = [(np.linalg.norm(a), np.linalg.norm(c)) for a, c in signs]
        best = int(norms[1][0] * norms[1][1] > norms[0][0] * norms[0][1])
        sigma = norms[best][0] * norms[best][1]
        loads[:, q] = np.sqrt(S[q] * sigma) * signs[best][1] / max(norms[best][1], EPS)
    loads[:, 0] = np.sqrt(S[0]) * np.abs(V[:, 0])
    loads[loads < 1e-6 * loads.max(initial=0)] = 0
    zeros = loads == 0
    if kind == "nndsvda":
        loads[zeros] = 1.0
    elif kind == "nndsvdar":
        loads[zeros] = np.abs(rng.standard_normal(int(zeros.sum()))) / 100
    return loads
