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

A loss with its solver is a `Method` in a file of its own: `_hals`, `_multiplicative` (the squared error by U ← U B/P
alone), `_divergence`, `_beta` (other β-divergences). The first three go further than the minimum of their bounds where
that is safe, since alternating steps zigzag.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine import tree
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Components, Reconstructs
from unmix.model.peer import Peer
from unmix.nonneg._arithmetic import cleared, rescaled
from unmix.nonneg._beta import Beta
from unmix.nonneg._divergence import Divergence
from unmix.nonneg._hals import Hals
from unmix.nonneg._method import Effort, Method, Parts, Stats, make_parts
from unmix.nonneg._multiplicative import Multiplicative
from unmix.nonneg._start import check_given, given_loads, measured, random_loads, svd_loads, without_zeros

HALS, MULTIPLICATIVE, DIVERGENCE = Hals(), Multiplicative(), Divergence()
PENALTY_CEILING = 1e30  # a penalty that leaves nothing of data of ordinary magnitude
STATIONARY = 8.0  # units of rounding: what it leaves of the slope
STARTS = {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}
LOSSES: dict[Any, float] = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}  # by β


class Given(NamedTuple):
    """The z and the parts that one fit starts from."""

    W: Any
    H: Any


class NMF(Reconstructs, Components, Model):
    """Non-negative parts that add up to the rows: non-negative matrix factorisation.

    Cells that are NaN are left out of the objective; CSR input stays sparse.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Number of parts. "auto": that of `components_init` if it is given, else the number of features; None: the number
        of features.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"} or None, default=None
        The first parts: random ones; those of a non-negative double SVD of a sample of the rows with zeros kept, filled
        with the mean, or filled with small random values; `components_init`, or the H that `fit` is given. None is
        "nndsvda" where n_components <= min(n, d) and there is one start, else "random". Only the parts have a start,
        from which z is solved, unless `fit` is given a W as well.
    solver : {"auto", "hals", "cd", "mu"}, default="auto"
        Coordinate descent ("hals", also under scikit-learn's name "cd"; squared error only) or multiplicative updates.
        "auto" is "hals" for the squared error and "mu" for other losses.
    beta_loss : float or {"frobenius", "kullback-leibler", "itakura-saito"}, default="frobenius"
        What is minimised: the β-divergence; the names are those of β = 2, 1 and 0. Where β ≤ 0, X may hold no zeros.
        Others than 2 and 1 are slower, and make CSR rows dense, some at a time.
    tol : float, default=1e-4
        The fit has converged when a pass improves the objective by no more than tol times a tenth of the first one.
    max_iter : int, default=200
        Maximum number of passes over the data.
    n_init : int, default=1
        Number of starts; all share each pass, and the best is kept.
    components_init : array of shape (n_components, d) or None, default=None
        Parts to start from where init="custom".
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    alpha_W, alpha_H : float, default=0.0 and "same"
        Strength of the penalties on z (times the number of features) and on the parts (times the number of rows).
    l1_ratio : float, default=0.0
        Share of the penalties that is absolute rather than squared.
    verbose : int, default=0
        Above 0, print a line for each pass.
    shuffle : bool, default=False
        No effect here: coordinates are taken in order, and the answer does not depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, d)
        The parts. Without penalties each sums to one, so that z_iq is the amount of row i that is part q.
    n_components_ : int
        How many there are.
    reconstruction_err_ : float
        √(2 D) over the observed cells, of the Z that `fit_transform` returns and without penalties: the Frobenius norm
        of X − Z U, or its counterpart for other losses. After `partial_fit` an estimate for all rows so far: every
        batch counts with its rate and with the error at the parts that it met, before the step that it led to.
    kkt_residual_ : float
        How far from stationary the parts were before the last step, 0 at a stationary point: with g the slope of the
        objective, Σ u |g| + ū max(−g, 0) over Σ u b, where ū is the mean of a part and b = Σ z x (Kullback–Leibler:
        Σ z x/y). It does not depend on the unit of the data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from unmix import NMF
    >>> X = load_digits().data
    >>> model = NMF(10, random_state=0).fit(X)
    >>> model.components_.shape, bool((model.components_ >= 0).all())
    ((10, 64), True)
    >>> bool((model.transform(X) >= 0).all())
    True
    """

    sparse: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True
    shares: ClassVar[bool] = True
    columns_as: ClassVar[str] = "scaled"
    stateful: ClassVar[bool] = True
    power: ClassVar[int] = 1  # rows are measured in a unit of the data, and the start sees to the squares of that

    degrees: ClassVar[dict[str, int | None]] = {"reconstruction_err_": 1, "transform": 1}  # of the squared error

    peer = Peer(
        "sklearn.decomposition",
        "components_ n_components_ reconstruction_err_",
        params=lambda model: (
            ({} if model.solver in ("cd", "mu") else {"solver": "cd" if model.beta_loss in ("frobenius", 2) else "mu"})
            | ({} if model.components_init is None else {"init": None})  # of which it knows nothing
        ),
    )
    given: Given | None = None  # first z or parts, in the working copy of a fit that was given some

    components_: Annotated[np.ndarray, Array("k d", low=0.0)]
    n_components_: Annotated[int, Array(kind="i", name="k")]
    reconstruction_err_: float
    kkt_residual_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
        "init": [StrOptions(STARTS), None],
        "solver": [StrOptions({"auto", "hals", "cd", "mu"})],
        "beta_loss": [StrOptions(set(LOSSES)), Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "components_init": ["array-like", None],
        "random_state": ["random_state"],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "verbose": ["verbose"],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        solver: str = "auto",
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        n_init: int = 1,
        components_init: Any = None,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
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
        self.verbose = verbose
        self.shuffle = shuffle

    # ---------------------------------------------------------------- what the hyper-parameters mean

    @property
    def _beta(self) -> float:
        return float(LOSSES.get(self.beta_loss, self.beta_loss))

    @property
    def _method(self) -> Method:
        """The equations of the loss and the solver that were asked for."""
        if self._beta == 2:
            return MULTIPLICATIVE if self.solver == "mu" else HALS
        return DIVERGENCE if self._beta == 1 else Beta(self._beta)

    @property
    def _parts_given(self) -> Any:
        """First parts of the user's."""
        return self.components_init if self.given is None or self.given.H is None else self.given.H

    def _size(self, d: int) -> int:
        """Number of parts for d features."""
        if self.n_components == "auto" and self._parts_given is not None:
            return len(self._parts_given)
        return d if self.n_components in ("auto", None) else int(self.n_components)  # type: ignore[arg-type]

    @property
    def _free(self) -> bool:
        """Whether the scale of a part is free, as it is without penalties."""
        return not self.alpha_W and self.alpha_H in ("same", 0)

    def _penalties(self, U: Parts) -> tuple[float, float, float, float]:
        """Absolute and squared penalty on z, then on the parts for each row, in units of the scaled data."""
        if self._free:
            return 0.0, 0.0, 0.0, 0.0
        cost = self._method.cost(U.scale)
        z, u = len(U.loads) * self.alpha_W, self.alpha_W if self.alpha_H == "same" else float(self.alpha_H)
        l1, l2 = self.l1_ratio * np.sqrt(U.scale) / cost, (1 - self.l1_ratio) * U.scale / cost
        top = PENALTY_CEILING
        return min(z * l1, top), min(z * l2, top), min(u * l1, top), min(u * l2, top)

    def _loads(self, U: Parts) -> np.ndarray:
        """The loads, zero where the solver leaves a little for them to grow from."""
        return cleared(U.loads, axis=0) if self._method.zeros_stay else U.loads

    def _shown(self, U: Parts) -> np.ndarray:
        """What the loads are multiplied by for users: where the scale is free, so that each part sums to one."""
        total = U.loads.sum(axis=0)
        root = np.full_like(total, np.sqrt(U.scale))
        return np.divide(1, total, out=root, where=total > 0) if self._free else root

    def _unit(self, scale: float) -> float:
        """What given parts are divided by: where their scale is free, their mean."""
        return float(np.mean(self._parts_given) if self._free else np.sqrt(scale))

    def check(self, shape: Shape) -> None:
        """Refuse combinations of parameters that make no sense."""
        k, init = self._size(shape.d), self.init
        if self._beta != 2 and self.solver in ("hals", "cd"):
            raise ValueError(
                f"solver={self.solver!r} minimises the squared error only, not beta_loss={self.beta_loss!r}: "
                "use solver='mu'"
            )
        if init is not None and init.startswith("nndsvd") and k > min(shape.n, shape.d):
            raise ValueError(
                f"init={init!r} gives at most min(n, d) = {min(shape.n, shape.d)} parts, and n_components={k}: "
                "try fewer components, or init='random'"
            )
        if init == "custom":
            if self._parts_given is None:
                raise ValueError(
                    "init='custom' starts from components_init, or from the H that fit is given, and both are None: "
                    "give an array of parts"
                )
            check_given("components_init or H", self._parts_given, (k, shape.d))
            if self.given is not None and self.given.W is not None:
                check_given("W", self.given.W, (shape.n, k))

    def sizes(self, shape: Shape) -> Sizes:
        """For CSR, enough rows that a column has some 32 nonzeros: adding up (d, k) statistics then costs little."""
        if not (shape.sparse and shape.nbytes):
            return Sizes()
        nonzeros = max(1.0, shape.nbytes / (shape.dtype.itemsize + 4) / shape.n)
        return Sizes(int(np.clip(32 * shape.d / nonzeros, 256, max(256, -(-shape.n // 4)))))

    def goal(self, U: Parts, first: float) -> float | bool:
        """`tol` times a tenth of the first objective: what ten passes gain is then judged as scikit-learn judges it.

        Where it is 0, rounding would decide in which pass the objective no longer falls, when half of the digits of the
        parts are still to come; so the fit goes on until no slope is left.
        """
        if self.tol:
            return self.tol * (0.1 * first)
        return bool(0 <= U.events.kkt <= STATIONARY * np.finfo(self.shape.dtype).eps)

    def unfinished(self, U: Parts, first: float, gain: float) -> bool:
        """Who asks for all passes is not told that there were no more."""
        return self.tol > 0

    # ---------------------------------------------------------------- start

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """First parts."""
        method, k = self._method, self._size(data.x.shape[1])
        rows, kind = measured(data, method.levels), self.init
        if kind is None:
            kind = "nndsvda" if k <= min(rows.x.shape) and self.n_init == 1 else "random"
        if kind == "custom":
            loads = given_loads(self._parts_given, self._unit(rows.scale))
        elif kind == "random":
            loads = random_loads(rows, k, rng)
        else:
            loads = svd_loads(rows, k, kind, rng)
        return make_parts(without_zeros(loads) if method.zeros_stay else loads, rows.scale)

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts | None:
        """The parts of a fit, the one that accounts for most cut in two at random: their sum is what it was."""
        if not more:
            return None
        U = fit.U
        largest, share = int(np.argmax(self._method.accounted(U, fit.stats))), rng.random(len(U.loads))
        loads = np.column_stack([U.loads, share * U.loads[:, largest]])
        loads[:, largest] -= loads[:, -1]
        return make_parts(loads, U.scale)

    # ---------------------------------------------------------------- local and update

    def local(self, U: Parts, b: Block) -> Local:
        """Work on z from where the last pass left it."""
        method, (l1, l2, u1, u2) = self._method, self._penalties(U)
        if b.z is None and U.events.kkt < 0 and self.given is not None and self.given.W is not None:
            W = self.given.W[b.start : b.start + b.x.shape[0]]
            b = b._replace(z=np.asarray(W * (self._unit(U.scale) / U.scale), dtype=b.x.dtype, order="C"))
        effort = method.warm if b.z is not None else method.first if U.events.kkt < 0 else method.cold
        b = rescaled(b, U.scale)
        if b.closing:  # the z of `transform`, so that the error is that of what users see
            b, effort = b._replace(z=method.solve(U, b._replace(z=None), method.exact, l1, l2)), Effort(0, 0.0)
        z, s = method.local(U, b, effort, l1, l2)
        loss = s.error
        if l1 or l2:
            loss += l1 * float(s.m.sum()) + 0.5 * l2 * float(np.trace(s.A))
        if u1 or u2:
            loss += s.n * (u1 * float(U.loads.sum()) + 0.5 * u2 * float(np.trace(U.scratch.gram)))
        return Local(z, s, loss * method.cost(U.scale))

    def update(self, U: Parts, s: Stats) -> Parts:
        """Next parts, no worse for the z that the statistics were made of."""
        _, _, u1, u2 = self._penalties(U)
        return self._method.update(U, s, s.n * u1, s.n * u2)

    def described(self, U: Any, data: Any) -> Described:
        """Loads and sums; of rows without holes what the loss sums."""
        k = self._size(self.shape.d)
        z = Annotated[np.ndarray, Array("m k", low=0.0)]

        @np.errstate(all="ignore")
        def scale_is_in_range(U: Parts) -> bool:
            cost = self._method.cost(np.float64(U.scale))
            return bool(0 < cost < np.inf and U.scale / cost < np.inf)

        return Described(Parts, Stats, z, {"k": k, "whole": (k, k) if self._beta == 2 else (k,)}, scale_is_in_range)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Amounts of the parts, z solved to the end, in the units of `components_`."""
        method, (l1, l2, _, _) = self._method, self._penalties(U)
        return self._amounts(U, method.solve(U, rescaled(b, U.scale), method.exact, l1, l2))

    def _amounts(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """z in units of the parts that users see; of a part that came to nothing there is none."""
        Z = z * (U.scale / self._shown(U)).astype(z.dtype, copy=False)
        return cleared(Z, axis=1) * U.loads.any(axis=0) if self._method.zeros_stay else Z

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Amounts times parts, Z U."""
        return (z * self._shown(U)) @ self._loads(U).T

    # ---------------------------------------------------------------- what users call and see

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, W: Any = None, H: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X, y, sample_weight
            As for other models: anything with rows; ignored; how many times each row counts.
        W : array of shape (n, k), optional
            Where init="custom", the amounts that each row starts from.
        H : array of shape (k, d), optional
            Where init="custom", the first parts, in place of `components_init`.

        Returns
        -------
        self
        """
        self.fit_with(X, sample_weight, self._given(W, H))
        return self

    def _given(self, W: Any, H: Any) -> Given | None:
        """What a fit begins with beside the parameters."""
        if W is None and H is None:
            return None
        if self.init != "custom":
            warnings.warn(
                f"W and H are ignored where init={self.init!r}: use init='custom'", RuntimeWarning, stacklevel=3
            )
            return None
        return Given(*(None if a is None else np.asarray(a) for a in (W, H)))

    def fit_transform(  # type: ignore[override]  # W and H stand where scikit-learn has them
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """Fit the model and return the amounts of the parts in each row, as `fit` and then `transform` do.

        Their error is `reconstruction_err_`.

        Parameters
        ----------
        X, y, W, H, sample_weight
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, k)
        """
        done = self.fit_with(X, sample_weight, self._given(W, H), collect=True)
        if done.z is None:  # it was stopped before it closed
            return np.asarray(self.transform(X))
        return self._amounts(tree.settle(done.U, done.dtype), done.z)

    def publish(self, fit: Fit) -> None:
        """Parts under scikit-learn's names."""
        self.components_ = np.ascontiguousarray((self._loads(fit.U) * self._shown(fit.U)).T)
        self.n_components_ = len(self.components_)
        error = 2 * fit.stats.error * fit.shape.unit
        self.reconstruction_err_ = float(np.sqrt(self._method.cost(fit.U.scale)) * np.sqrt(error))
        self.kkt_residual_ = float(fit.U.events.kkt)

    def notes(self, U: Parts) -> list[str]:
        """Parts that the data do not need."""
        empty = int((~(U.loads > 0).any(axis=0)).sum())
        if not empty or not U.loads.any():
            return []
        return [f"{empty} of {U.loads.shape[1]} parts are empty: try fewer components"]

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
