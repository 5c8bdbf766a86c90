"""Robust PCA:  min ‖L‖_* + λ‖S‖₁  subject to  L + S = X on the observed cells           (Candès, Li, Ma & Wright, 2011)

One pass is one step of the relaxed method of multipliers. With Y the dual variable, μ the penalty and
m = x − s + y/μ, both S and Y follow from M, so M is all that a row keeps.

local    ℓ = m V diag(1 − 1/(μσ)) Vᵀ                    singular value thresholding of M, row by row
         y = (m − ℓ) μ/μ⁺                               scaled dual variable, a subgradient of ‖·‖_* at L
         t = x − ℓ + y,   c = clip(t, ±λ/μ⁺),   s = t − c          [not observed: c = 0, so that s is free]
         r = x − ℓ − s = c − y                          μ⁺c is a subgradient of λ‖·‖₁ at S: r = 0 is the optimum
         m⁺ = ℓ + y + αr                                relaxed: α = 1.3
stats    G = Q M⁺ᵀ M⁺,   ‖R‖²,   ‖Y‖²,   ‖X‖²           rows of Q: directions near the leading right singular vectors
update   M⁺ᵀM⁺ ≈ Gᵀ (G Qᵀ)⁻¹ G = V diag(σ²) Vᵀ          the next Q: V and some more, so that the rank can grow
         μ⁺ = 1.2 μ until ‖μR‖/‖Y‖ = 3 ‖R‖/‖X‖          then fixed, but doubled wherever R falls slowly

One residual R measures both the constraint and, times μ, how far the two subgradients differ. Where recovery is exact
some twenty passes are enough. Other data have parts of many sizes, and a penalty μ settles those of size about 1/μ:
large ones move slowly once μ is high, small ones while it is low. So μ rises only when the parts that it suits are done
and R stands still, and never above the value at which both residuals meet their tolerances together; there it falls
back and rises anew, more slowly. (A penalty that grows without end stops where the constraint holds, which is not the
optimum.) The objective of the trace is ‖L‖_* + λ‖X − L‖₁, an upper bound of the minimum. A row of weight 2 is the row
twice: its copies have equal s and y, and count twice in G. M, σ and μ are in units of the data's size, a power of two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.linear._least_absolute import least_absolute
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.spectra import leading_axes, whole_axes
from unmix.model import Model
from unmix.model.capabilities import Components, Reconstructs

RELAX, SLOW_RELAX = 1.3, 1.8  # over-relaxation, and that where R falls slowly; any value in (0, 2) converges
GROWTH = 1.2  # of the penalty from pass to pass
DUAL, LOOSE = 100.0, 1000.0  # how much larger than `tol` the relative dual residual may be; the same in a hard fit
HARD = 7  # changes of the penalty that make a fit hard: it has risen from HOLD to LOOSE
HOLD, BACK = 3.0, 30.0  # (dual residual)/(primal residual) up to which μ grows, and to which it falls back
FIRST_CLIP = 4.0  # medians of |x| at which the first pass clips X
WINDOW, LONGER = 10, 5  # passes over which the fall of R is measured, and how many more after each change of μ
SLOW = 0.95  # a fall per pass that is too slow
CHANGES = 30  # of the penalty; then the last stays, so that the iteration converges
STEPS = 60  # of the iteration for new rows, in which it recovers what it recovers exactly; the others take far more
EXACT_COLUMNS = 64  # columns up to which the exact decomposition costs nothing
AXES_LIMIT = 8.0  # of the cells of axes of length one, and of the random directions before them


class Search(NamedTuple):
    """Passes of this window (−1: μ still grows), √(primal · dual) in its first, and changes of μ so far."""

    passes: int = -1
    merit: float = 0.0
    changes: int = 0


class Parts(NamedTuple):
    """`axes[:rank]` is V; all axes are Q, unless the `whole` Gram matrix is collected (Q = I, then not kept).

    x is multiplied by `unit`, and all that is not free of units belongs to that, but for the `singular_values`.
    `mu` and `ratio` are μ⁺ and μ/μ⁺ of the coming pass; `primal` and `dual` the relative residuals of the one before.
    """

    axes: Annotated[np.ndarray, Array("q d", low=-AXES_LIMIT, high=AXES_LIMIT)]
    rank: Annotated[int, Array(kind="i", low=0, high="q", name="r")]
    shrink: Annotated[np.ndarray, Array("r")]
    singular_values: Annotated[np.ndarray, Array("r", low=0.0)]
    whole: bool
    lam: Annotated[float, Array(low=POSITIVE)]
    unit: Annotated[float, Array(low=POSITIVE)]
    mu: Annotated[float, Array(low=POSITIVE)]
    ratio: Annotated[float, Array(low=POSITIVE)]
    primal: Annotated[float, Array(low=0.0)]
    dual: Annotated[float, Array(low=0.0)]
    step: Annotated[int, Array(kind="i", low=0)]
    seed: Annotated[int, Array(kind="i", low=0)]
    search: Search


class Stats(NamedTuple):
    """G, and the squared norms of R, Y/μ and X."""

    gram: Annotated[np.ndarray, Array("g d")]
    residual: float
    dual: float
    data: float


class Hidden(NamedTuple):
    """What a row keeps: m, and in the closing pass its scores and its sparse part too."""

    m: Annotated[np.ndarray, Array("m d")]
    scores: Annotated[np.ndarray, Array("m s")]
    sparse: Annotated[np.ndarray, Array("m t")]


class RobustPCA(Reconstructs, Components, Model):
    """A low-rank matrix plus sparse corruption: robust PCA by convex optimisation.

    A few cells may be wrong by any amount; the low-rank part is recovered nonetheless, exactly where it is incoherent.

    Parameters
    ----------
    n_components : int or None, default=None
        Maximum number of components of the low-rank part; None lets the nuclear norm decide alone.
    lam : float or None, default=None
        Weight λ of the sparse part; None for 1/√max(n, d), with n the number of rows: with weights their sum. Weights
        that sum to less than the rows are first scaled to sum to them, so that only their ratios matter; a λ that is
        given is for weights as they are.
    mu : float or None, default=None
        Penalty μ of the method of multipliers, then held fixed; None for one that follows the data.
    tol : float, default=1e-7
        The fit ends when ‖X − L − S‖_F ≤ tol ‖X‖_F and the relative dual residual is at most 100 tol, or 1000 tol
        once slow progress has changed μ seven times. (In float32 tol is at least ten times the machine's precision.)
    max_iter : int, default=3000
        Maximum number of passes. Exact recovery takes about 20, noisy data some hundreds, and columns or rows whose
        scales differ by orders of magnitude a thousand or more.
    random_state : int, RandomState or None, default=None
        Seed of the first directions in which singular vectors are sought.

    Attributes
    ----------
    components_ : ndarray of shape (rank, d)
        Right singular vectors of the low-rank part.
    singular_values_ : ndarray of shape (rank,)
        Its singular values.
    rank_, n_components_ : int
        Its rank.
    low_rank_, sparse_ : ndarray of shape (n, d)
        L and S of the rows of `fit`, if these were in memory. (Not where a callback ended the fit early.)
    lambda_ : float
        λ.
    primal_residual_, dual_residual_ : float
        How far the last pass was from the optimum, relative to ‖X‖ and ‖Y‖.

    Notes
    -----
    `transform` gives the scores of new rows by least absolute deviations, argmin_c ‖x − cV‖₁: what the components do
    not explain is taken to be sparse.

    References
    ----------
    Candès, Li, Ma & Wright (2011), Robust principal component analysis?, Journal of the ACM 58(3).
    Lin, Chen & Ma (2010), The augmented Lagrange multiplier method for exact recovery of corrupted low-rank matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import RobustPCA
    >>> rng = np.random.default_rng(0)
    >>> low = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 80))
    >>> wrong = rng.random(low.shape) < 0.05
    >>> model = RobustPCA(random_state=0).fit(np.where(wrong, 50.0, low))
    >>> model.rank_, bool(np.allclose(model.low_rank_, low, atol=1e-3))
    (3, True)
    """

    missing = True
    stateful = True
    collect = "memory"
    power = 1  # rows are measured in a unit of the data
    exempt: ClassVar[dict[str, str]] = {
        "monotone": "the method of multipliers lowers its distance to the optimum, not the objective, in every pass",
        "online": "a pass goes on from the dual variables that the same rows left, which new rows do not have",
    }

    degrees: ClassVar[dict[str, int | None]] = {
        "mu": -1, "singular_values_": 1, "low_rank_": 1, "sparse_": 1, "transform": 1,
    }  # fmt: skip

    components_: Annotated[np.ndarray, Array("r d")]
    singular_values_: Annotated[np.ndarray, Array("r", low=0.0)]
    n_components_: Annotated[int, Array(kind="i", name="r")]
    rank_: Annotated[int, Array(kind="i", name="r")]
    lambda_: float
    primal_residual_: float
    dual_residual_: float
    low_rank_: Annotated[np.ndarray, Array("n d", maybe=True)]
    sparse_: Annotated[np.ndarray, Array("n d", maybe=True)]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "lam": [Interval(Real, 0.0, None, closed="neither"), None],
        "mu": [Interval(Real, 0.0, None, closed="neither"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam: float | None = None,
        mu: float | None = None,
        tol: float = 1e-7,
        max_iter: int = 3000,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.mu = mu
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # -- the model --

    def check(self, shape: Shape) -> None:
        """Refuse more components than rows or columns."""
        most = min(shape.n, shape.d)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} is more than {shape.n} rows and {shape.d} columns allow: "
                f"give at most {most}, or None"
            )

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """L = 0; a penalty at which the first pass clips X a few medians from zero; random directions."""
        d, rows = data.x.shape[1], self.shape.rows
        given = self.lam and self.lam * self.shape.root  # ‖L‖_* grows with √w, ‖S‖₁ with w
        lam = given or np.sqrt(rows / self.shape.weight) / np.sqrt(max(rows, d))
        size = typical(data)
        most = -np.finfo(data.x.dtype).minexp  # so that 1/unit is a normal number too
        unit = 2.0 ** -int(np.clip(np.frexp(size)[1], -most, most))
        mu = self.mu / unit if self.mu else lam / (FIRST_CLIP * size * unit)
        width, whole = self._width(0, full=True)
        axes = np.zeros((0, d)) if whole else rng.normal(scale=d**-0.5, size=(width, d))
        none = np.zeros(0)
        return Parts(
            axes, 0, none, none, whole, float(lam), unit, float(mu), 1.0, 1.0, 1.0, 0, int(rng.integers(2**31)),
            Search(),
        )  # fmt: skip

    def local(self, U: Parts, b: Block) -> Local:
        """One step of every row, and what the next singular value thresholding needs of them."""
        from unmix.kernels.robust_split import split

        x, V = b.x, U.axes[: U.rank]
        n, d = x.shape
        unit = x.dtype.type(U.unit)
        scores = self.encode(U, b) * unit if b.z is None else (b.z.m @ V.T) * U.shrink
        low = scores @ V
        m = low.copy() if b.z is None else b.z.m
        sparse = np.empty((n, d) if b.closing else (0, 0), x.dtype)
        ratio, cut = np.full(n, U.ratio, x.dtype), np.full(n, U.lam / U.mu, x.dtype)
        relax = SLOW_RELAX if U.search.changes else RELAX
        sums = split(x, unit, mask(b), m, ratio, cut, relax, low, sparse)
        new = low  # the kernel has put m⁺ in its place
        gram = b.weighted(new).T @ new if U.whole else b.weighted(new @ U.axes.T).T @ new
        residual, dual, data, absolute = (b.sum(v) for v in sums.T)
        z = Hidden(new, scores / unit, sparse) if b.closing else Hidden(new, scores[:, :0], sparse.reshape(n, 0))
        return Local(z, Stats(gram, residual, dual, data), U.lam * absolute / (U.unit * self.shape.root))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """The singular values and vectors of M⁺ that L will keep, the next Q, and the next penalty."""
        primal = np.sqrt(stats.residual / stats.data) if stats.data > 0 else 0.0
        dual = np.sqrt(stats.residual / stats.dual) if stats.dual > 0 else float(stats.residual > 0)
        sigma, axes = whole_axes(stats.gram) if U.whole else leading_axes(U.axes, stats.gram)
        rank = int(np.sum(sigma * U.mu > 1.0))
        full = rank + 3 > len(axes)  # there may be more above the threshold than Q has room for
        rank = min(rank, self.n_components or rank)
        width, whole = self._width(rank, full)
        kept = axes[: rank if whole else width]
        if not whole and len(kept) < width:
            fresh = np.random.default_rng([U.seed, U.step]).normal(size=(width - len(kept), axes.shape[1]))
            fresh -= (fresh @ kept.T) @ kept
            kept = np.concatenate([kept, fresh / np.linalg.norm(fresh, axis=1, keepdims=True)])
        mu, search = self._next_mu(U, stats, float(np.sqrt(primal * dual)))
        step, sigma = U.step + 1, sigma[:rank]
        return Parts(
            np.ascontiguousarray(kept), rank, 1.0 - 1.0 / (U.mu * sigma), (sigma - 1.0 / U.mu) / U.unit, whole, U.lam,
            U.unit, mu, U.mu / mu, float(primal), float(dual), step, U.seed, search,
        )  # fmt: skip

    def penalty(self, U: Parts) -> float:
        """‖L‖_*."""
        return float(U.singular_values.sum()) / self.shape.root  # the objective is then divided as the weights were

    def goal(self, U: Parts, first: float) -> bool:
        """Whether the constraint holds and the two subgradients agree."""
        tol = self._tol(self.shape.dtype)
        return U.step > 0 and U.primal <= tol and U.dual <= (LOOSE if U.search.changes >= HARD else DUAL) * tol

    def described(self, U: Any, data: Any) -> Described:
        """Axes, their images and the dual variables of each row."""
        return Described(Parts, Stats, Hidden)

    def publish(self, fit: Fit) -> None:
        """The low-rank part's singular vectors and values; both parts if the rows were in memory."""
        U, root = fit.U, fit.shape.root
        self.components_, self.singular_values_ = U.axes[: U.rank].copy(), U.singular_values * root
        self.rank_ = self.n_components_ = U.rank
        self.lambda_, self.primal_residual_, self.dual_residual_ = U.lam / root, U.primal, U.dual
        for name in ("low_rank_", "sparse_"):
            self.__dict__.pop(name, None)
        if fit.z is not None:
            self.low_rank_ = fit.z.scores @ self.components_.astype(fit.z.scores.dtype)
            self.sparse_ = fit.z.sparse

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Scores argmin_c ‖x − cV‖₁ over the observed cells: the same iteration with V fixed, and a μ for each row.

        Rows that it recovers exactly are done soon; the others are finished by Newton steps.
        """
        from unmix.kernels.robust_split import split

        V, tol = U.axes[: U.rank], self._tol(b.x.dtype)
        scores: np.ndarray = np.zeros((len(b.x), len(V)), b.x.dtype)
        if not len(V):
            return scores
        largest = np.abs(b.x).max(axis=1) * np.finfo(b.x.dtype).eps ** 2  # in units of it squares stay within range
        size = np.maximum(medians(b), largest).astype(b.x.dtype)
        unit = np.ldexp(np.ones_like(size), np.frexp(size)[1] - 1)[:, None]
        x, one, seen, cut = b.x / unit, b.x.dtype.type(1), mask(b), FIRST_CLIP * size / unit[:, 0]
        ratio, m, no = np.ones_like(cut), np.clip(x, -cut[:, None], cut[:, None]), np.empty((0, 0), x.dtype)
        going = np.ones(len(x), bool)
        for _ in range(STEPS):
            current = m @ V.T
            scores[going] = current[going]  # a row that is done stays as it is, whatever rows are beside it
            new = current @ V
            sums = split(x, one, seen, m, ratio, cut, RELAX, new, no)
            m = new
            residual, dual, data = sums[:, 0], sums[:, 1], sums[:, 2]
            going &= (residual > tol**2 * data) | (residual > (DUAL * tol) ** 2 * dual)
            if not going.any():
                break
            shrunk = np.where(data < DUAL**2 * dual, cut / x.dtype.type(GROWTH), cut)
            cut, ratio = shrunk, shrunk / np.maximum(cut, np.finfo(x.dtype).tiny)
        rest, left = np.flatnonzero(going), 0
        for rows in np.array_split(rest, -(-len(rest) * V.size >> 20)) if len(rest) else ():
            A = V[None] if b.observed is None else V * b.observed[rows, None]
            scores[rows], gap = least_absolute(x[rows].astype(np.float64), A.astype(np.float64))
            left += int((~(gap < 1e-3)).sum())
        if left:
            warnings.warn(
                f"RobustPCA: the scores of {left} rows are rough, ‖x − cV‖₁ may be 0.1 % or more above its minimum: "
                "look for cells in them that differ by many orders of magnitude",
                ConvergenceWarning,
                stacklevel=2,
            )
        return scores * unit

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """The low-rank rows that have these scores."""
        return np.asarray(z @ U.axes[: U.rank])

    def _tol(self, dtype: Any) -> float:
        return min(max(float(self.tol), 10.0 * float(np.finfo(dtype).eps)), 1e9)  # whose squares are numbers

    def _next_mu(self, U: Parts, stats: Stats, merit: float) -> tuple[float, Search]:
        """Growth to a moderate penalty; from there a step up, or back from the top, when the residuals fall slowly."""
        s = U.search
        if self.mu is not None or stats.data == 0 or (U.step > 0 and stats.dual == 0):
            return U.mu, s
        # the penalty at which both residuals are equal; the first pass has no Y yet
        balance = U.mu * float(np.sqrt(stats.dual / stats.data)) if U.step else float("inf")
        if s.passes < 0 and GROWTH * U.mu < HOLD * balance:
            return GROWTH * U.mu, s
        s = s._replace(passes=s.passes + 1)
        if s.passes == 0:
            return U.mu, s._replace(merit=merit)
        window = WINDOW + LONGER * s.changes
        if s.passes < window or s.changes == CHANGES:
            return U.mu, s
        if merit < SLOW**window * s.merit:
            return U.mu, s._replace(passes=0, merit=merit)
        mu = 2.0 * U.mu if U.mu < LOOSE * balance else BACK * balance
        return mu, Search(-1, 0.0, s.changes + 1)

    def _width(self, rank: int, full: bool) -> tuple[int, bool]:
        """How many directions to follow, and whether the whole Gram matrix is cheaper."""
        n, d = self.shape.n, self.shape.d
        first = min(max(16, d // 16), 256)
        width = min(rank + (max(first, rank) if full else max(8, rank // 8)), n, d)
        return width, d <= EXACT_COLUMNS or 8 * n * width + 12 * width**2 >= n * d + 10 * d**2

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[RobustPCA, np.ndarray, Callable[[Any], None]]:
        """Rank 3, and one cell in twenty wrong."""
        low = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 90))
        X = low + np.where(rng.random(low.shape) < 0.05, rng.choice([-20.0, 20.0], low.shape), 0.0)

        def check(model: Any) -> None:
            assert model.rank_ == 3
            left = low - low @ model.components_.T @ model.components_
            assert np.abs(left).max() < 1e-2
            if "low_rank_" in vars(model):
                assert np.abs(model.low_rank_ - low).max() < 1e-2

        return cls(random_state=0), X, check


def mask(b: Block) -> np.ndarray:
    """The observed cells as the kernel wants them."""
    return np.empty((0, 0), bool) if b.observed is None else b.observed


def medians(b: Block) -> np.ndarray:
    """Median of |x| over the observed cells of each row; where it is 0, the mean."""
    a = np.abs(b.x)
    count = np.full(len(a), a.shape[1]) if b.observed is None else b.observed.sum(axis=1)
    a.sort(axis=1)  # cells that were not observed hold 0: they come first
    middle = a.shape[1] - count + np.maximum(count - 1, 0) // 2
    value = a[np.arange(len(a)), np.minimum(middle, a.shape[1] - 1)]
    return np.asarray(np.where(value > 0, value, a.sum(axis=1) / np.maximum(count, 1)))


def typical(b: Block) -> float:
    """Root mean square of the rows' medians of |x|, or of the columns' if that is larger; 1 where X is 0.

    No outlier moves it, and rows or columns of a large scale count for what they are.
    """
    largest, stride = float(np.abs(b.x).max(initial=0.0)) or 1.0, max(1, b.x.size >> 17)
    x = b.x[:, ::stride].astype(np.float64) / largest  # squares stay within range
    thin = Block(x, b.w, None, None if b.observed is None else b.observed[:, ::stride])
    value = max(np.sqrt(b.sum(medians(thin) ** 2) / b.total), np.sqrt(np.mean(column_medians(thin) ** 2)))
    return (float(value) or 1.0) * largest


def column_medians(b: Block) -> np.ndarray:
    """Weighted median of |x| over the observed cells of each column; 0 where there are none."""
    a, w = np.abs(b.x.T), np.ones(len(b.x)) if b.w is None else b.w
    order = np.argsort(a, axis=1)
    weights = w[order] if b.observed is None else np.take_along_axis(w * b.observed.T, order, axis=1)
    total = np.cumsum(weights, axis=1)
    middle = np.argmax(total >= total[:, -1:] / 2, axis=1)
    columns = np.arange(len(a))
    return np.asarray(a[columns, order[columns, middle]])
