"""Kernel PCA: principal components in the space of a kernel, K(x, y) = ⟨φ(x), φ(y)⟩.

local    z_a = ⟨φ(x) − m, v_a⟩ = Σ_j coef_ja K(x, x_j) − offset_a          loss = ‖φ(x) − m‖² − |z|²
stats    n, Σ z²
update   none: components are made of rows, v_a = Σ_j coef_ja φ(x_j), and m is the mean of all φ(x_j)

There are two ways to them, each in a file of its own:

_gram       eigenvectors of the centred n×n matrix K̃, divided by √ρ, so that v_a has length 1: a closed form; of a
            linear kernel from the rows themselves, where these have fewer columns
_nystrom    where that matrix does not fit the memory budget: components of what some rows, the landmarks, span of φ(x),
            in one pass; so rows may come from a file that memory does not hold

New rows are centred with the means of the fit: the mean of their own kernels cancels, since Σ_j coef_ja = 0. A row of
weight 2 is the row twice.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes, Stage
from unmix.engine.trace import Fit
from unmix.linear import _pre_image
from unmix.linear._gram import Linear, Solver, Spectrum
from unmix.linear._kernel_parts import Csr, Parts, project, rows_of, well_formed
from unmix.linear._nystrom import Nystrom
from unmix.maths.arrays import Array
from unmix.maths.kernels import Kernel
from unmix.model import Model
from unmix.model.capabilities import Reconstructs
from unmix.model.found import listed
from unmix.model.peer import Peer

LANDMARKS = 1000  # where their number is not given
MATRICES = 16  # bytes for each pair of rows: the matrix, and as much to work in
SUMS = 512  # bytes for each pair of landmarks: the moments of their features, of the runs that are added up
NOT_TO_SPARSE = "there is no inverse_transform to sparse rows: fit to dense ones ('.toarray()')"


class Stats(NamedTuple):
    """Weight of the rows, and Σ w z² of each component."""

    n: float
    power: Annotated[np.ndarray, Array("k", low=0.0)]


class Row(NamedTuple):
    """What the closing pass leaves of a row: its scores, its weight, and, of few rows, the row itself."""

    z: np.ndarray
    w: np.ndarray
    x: Any


class KernelPCA(Reconstructs, Model):
    """Curved directions of most variance: principal components in the space of a kernel.

    Parameters
    ----------
    n_components : int or None, default=None
        How many components; None for all whose eigenvalue is not zero.
    kernel : {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"} or callable, default="linear"
        "rbf" is exp(−γ‖x − y‖²), "poly" (γ⟨x, y⟩ + c)^degree, "sigmoid" tanh(γ⟨x, y⟩ + c), "cosine" ⟨x, y⟩/(‖x‖‖y‖);
        or a function of two rows. Of "precomputed", X is the symmetric matrix of K(x_i, x_j) in `fit`, and in
        `transform` its rows are the kernels of new rows with all rows of `fit`.
    gamma : float, optional
        γ of "rbf", "poly" and "sigmoid"; by default 1/d.
    degree : float, default=3
        Of "poly".
    coef0 : float, default=1
        c of "poly" and "sigmoid".
    kernel_params : dict, optional
        More arguments of a callable kernel.
    alpha : float, default=1.0
        What ridge regression adds to the diagonal where it learns the way back: more is smoother.
    fit_inverse_transform : bool, default=False
        Whether `inverse_transform` is learnt by ridge regression; not from a precomputed kernel, nor to sparse rows.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "dense" asks LAPACK for the eigenvectors, "arpack" ARPACK, "randomized" makes so many products of the matrix
        with a block of directions as `iterated_power` says. "auto" makes as many as the components need to settle where
        few of many are wanted, and asks LAPACK otherwise. For kernel="linear" and dense rows of fewer columns than
        there are rows "auto" and "dense" take singular vectors of the rows, and make no matrix of all pairs.
    tol : float, default=0
        Tolerance of "arpack" and "auto": ‖K̃v − ρv‖ relative to ρ; 0 for one that is hardly more than rounding.
    max_iter : int or None, default=None
        The most restarts of "arpack".
    iterated_power : int or "auto", default="auto"
        Products of "randomized", beside the first.
    remove_zero_eig : bool, default=False
        Whether components are left out whose eigenvalue is zero; without `n_components` they are.
    random_state : int, RandomState or None, default=None
        Seed of the first directions of "auto", "arpack" and "randomized", and of the landmarks.
    copy_X : bool, default=True
        No effect here: X is never changed, and what is kept of it is a copy.
    n_jobs : int or None, default=None
        No effect here: threads are a setting of the engine, `unmix.config(n_jobs=…)`.
    pre_image : {"ridge", "fixed_point"}, default="ridge"
        How `inverse_transform` finds a row for its scores: by ridge regression, or as the row whose φ(x) is nearest, by
        fixed-point iteration. The latter is for kernel="rbf", and nothing needs to be learnt for it.
    n_landmarks : int or None, default=None
        Rows that stand for all (Nyström); None for all rows where their matrix fits the memory budget (16 n² bytes),
        else for at most 1000.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (k,)
        Eigenvalues of the centred kernel matrix, falling: Σ w z² of each component.
    eigenvectors_ : ndarray of shape (n, k)
        Its eigenvectors, where rows are in memory and none was left out: z = K̃ eigenvectors_ / √eigenvalues_. Without
        weights they have length 1, and the largest entry of each is positive. Those of eigenvalue zero are zero.
    X_fit_ : ndarray of shape (n, d)
        The rows of the fit (dense rows in memory, where all were used).
    gamma_ : float
        γ as it was used.
    dual_coef_ : ndarray of shape (n, d)
        Coefficients of the ridge regression that leads back, with `fit_inverse_transform`; beside `X_fit_`.
    X_transformed_fit_ : ndarray of shape (n, k)
        Scores of the rows of the fit, with `fit_inverse_transform`; beside `X_fit_`.
    landmarks_ : ndarray of shape (m, d)
        The rows that stand for all, where some do and they are dense.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import KernelPCA
    >>> t = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> ring = np.column_stack([np.cos(t), np.sin(t)])
    >>> X = np.vstack([0.5 * ring, 3 * ring])  # no line separates a ring from what it surrounds
    >>> z = KernelPCA(1, kernel="rbf", gamma=0.25).fit_transform(X)[:, 0]
    >>> bool(max(z[:40].min(), z[40:].min()) > min(z[:40].max(), z[40:].max()))
    True
    """

    sparse = True
    collect = "memory"
    exempt: ClassVar[dict[str, str]] = {
        "online": "components in the space of a kernel are made of rows: a batch has no statistics to move them by",
        "sparse": "the rows of a fit are among its parts, where sparse ones stay sparse; `transform` gives the same",
    }
    degrees: ClassVar[dict[str, int | None]] = {"gamma": -2, "gamma_": -2, "X_fit_": 1, "landmarks_": 1}  # radial
    peer = Peer(
        "sklearn.decomposition",
        "eigenvalues_ eigenvectors_ X_fit_ gamma_",
        more=lambda model: model.for_sklearn(),
        params=lambda model: {"fit_inverse_transform": False} if model.pre_image == "fixed_point" else {},
        refusal=lambda model: (
            "scikit-learn's KernelPCA has no landmarks: a pipeline of its Nystroem and PCA is the same"
            if int(model.parts.landmarks)
            else ""
        ),
    )

    eigenvalues_: Annotated[np.ndarray, Array("k", low=0.0)]
    eigenvectors_: Annotated[np.ndarray, Array("n k", "x", maybe=True)]
    X_fit_: Annotated[np.ndarray, Array("n d", maybe=True)]
    gamma_: float
    dual_coef_: Annotated[np.ndarray, Array("n d", maybe=True)]
    X_transformed_fit_: Annotated[np.ndarray, Array("n k", maybe=True)]
    landmarks_: Annotated[np.ndarray, Array("r d", maybe=True)]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"}), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "randomized"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "random_state": ["random_state"],
        "copy_X": ["boolean"],
        "n_jobs": [None, Integral],
        "pre_image": [StrOptions({"ridge", "fixed_point"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        pre_image: str = "ridge",
        n_landmarks: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter  # type: ignore[assignment]
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.pre_image = pre_image
        self.n_landmarks = n_landmarks

    # -- which way --

    def check(self, shape: Shape) -> None:
        """Refuse what the kernel, the solver or the rows do not allow."""
        k, n = self.n_components, shape.n
        if self.kernel == "precomputed":
            if self.fit_inverse_transform:
                raise ValueError(
                    "Cannot fit_inverse_transform with a precomputed kernel: X has no rows to go back to; give rows "
                    "and a kernel"
                )
            if n != shape.d:
                raise ValueError(f"kernel='precomputed' needs a square matrix, not {n} × {shape.d}")
            if self.n_landmarks is not None:
                raise ValueError(
                    f"n_landmarks={self.n_landmarks} is for rows: a precomputed matrix is there already, leave it out"
                )
        if self.pre_image == "fixed_point" and self.kernel != "rbf":
            raise ValueError(f"pre_image='fixed_point' is for kernel='rbf', not {self.kernel!r}: take 'ridge'")
        if shape.sparse and self.fit_inverse_transform:
            raise ValueError(NOT_TO_SPARSE)
        if self.eigen_solver == "arpack" and not self._landmarks(shape) and (k is None or k >= n > 1):
            raise ValueError(
                f"n_components={k} must be below n_samples={n} with eigen_solver='arpack': give fewer, or take 'dense'"
            )
        m = self._landmarks(shape)
        if m and k is not None and k > m:
            told = "raise n_landmarks" if self.n_landmarks else "raise memory_budget (unmix.config)"
            raise ValueError(f"n_components={k} components cannot be made of {m} landmarks: ask for fewer, or {told}")

    def _landmarks(self, shape: Shape) -> int:
        """How many rows stand for all; 0 where all do."""
        if self.kernel == "precomputed":
            return 0
        if self.n_landmarks is not None:
            return min(self.n_landmarks, shape.n)
        budget = get_config().budget
        if MATRICES * shape.n**2 <= budget:
            return 0
        return max(1, min(LANDMARKS, isqrt(budget // SUMS), shape.n))

    def _kernel(self, d: int) -> Kernel:
        own = self.kernel_params if callable(self.kernel) else None
        return Kernel(self.kernel, 1 / d if self.gamma is None else self.gamma, self.degree, self.coef0, own)

    def stages(self, shape: Shape) -> list[Stage]:
        """The kernel matrix of all rows, or landmarks."""
        kernel = self._kernel(shape.d)
        k, drop = self.n_components, self.remove_zero_eig or self.n_components is None
        solver = Solver(k, self.eigen_solver, float(self.tol), self.max_iter, self.iterated_power, drop)
        m, ways = self._landmarks(shape), _pre_image.of(self, kernel)
        whole = Linear if Linear.suits(kernel, solver, shape) else Spectrum
        return [Nystrom(kernel, solver, ways, m) if m else whole(kernel, solver, ways, shape)]

    def sizes(self, shape: Shape) -> Sizes:
        """Those of the way."""
        return self.stages(shape)[0].sizes(shape)

    @property
    def power(self) -> int:  # type: ignore[override]
        """Given kernels are added up as they are."""
        return 1 if self.kernel == "precomputed" else 2

    # -- the model --

    def local(self, U: Parts, b: Block) -> Local:
        """Scores, and what they leave of ‖φ(x) − m‖²; of a new row of a precomputed kernel less K(x, x)."""
        kernel, given, n = self._kernel(len(U.shift)), self.kernel == "precomputed", b.x.shape[0]
        known = b.closing and not int(U.landmarks)
        place = places(U, b, given) if known else np.full(n, -1)
        if (place >= 0).all():  # rows of the fit, whose scores are known: no kernel is computed again
            z, inner = U.scores[place].astype(np.float64), U.inner[place].astype(np.float64)
        else:
            z, inner = project(kernel, U, b.x)
        if given:
            own = b.x[np.arange(n), b.start + np.arange(n)].astype(np.float64) if b.closing else np.zeros(n)
        else:
            own = kernel.squares(b.x, U.shift.astype(np.float64))
        square = np.einsum("ia,ia->i", z, z)
        w = np.ones(n) if b.w is None else b.w
        loss = b.sum(own - 2 * inner + float(U.square) - square)
        row = Row(z.astype(b.x.dtype), w, b.x if known and not sp.issparse(b.x) else None) if b.closing else None
        return Local(row, Stats(b.total, w @ (z * z)), loss)

    def described(self, U: Any, data: Any) -> Described:
        """Components by their rows; those of a precomputed kernel are not held."""
        held = {"r": 0, "s": self.shape.d} if self.kernel == "precomputed" else {"s": "r"}
        return Described(Parts, Stats, Any, held, well_formed)

    def notes(self, U: Parts) -> list[str]:
        """A kernel that is none, and rows that stand for all although nobody asked for that."""
        out = []
        if U.least < 0:
            name = self.kernel if isinstance(self.kernel, str) else "callable"
            out.append(
                f"kernel={name!r} is not positive semi-definite on these rows: its centred matrix has an eigenvalue of "
                f"{U.least:.3g} or below, beside {U.values.max(initial=0.0):.3g}; there is no space in which it is an "
                "inner product, so take the components with care, or choose another kernel, gamma or coef0"
            )
        if int(U.landmarks) and self.n_landmarks is None:
            n, need = self.shape.n, MATRICES * self.shape.n**2 / 2**30
            out.append(
                f"the kernel matrix of {n} rows needs {need:.1f} GiB, more than the memory budget, so "
                f"{int(U.landmarks)} landmarks stand for all rows (Nyström): give n_landmarks, or raise memory_budget "
                "(unmix.config)"
            )
        return out

    def publish(self, fit: Fit) -> None:
        """scikit-learn's names."""
        U, unit = fit.U, fit.shape.unit
        for name in ("eigenvectors_", "X_fit_", "dual_coef_", "X_transformed_fit_", "landmarks_"):
            self.__dict__.pop(name, None)
        self.eigenvalues_ = U.values * unit
        self.gamma_ = 1 / fit.shape.d if self.gamma is None else float(self.gamma)
        if int(U.landmarks):
            if not fit.shape.sparse:
                self.landmarks_ = U.rows
        elif fit.z is not None:
            z, w, x = fit.z
            root = np.sqrt(np.where(U.values > 0, U.values, np.inf))
            self.eigenvectors_ = w[:, None] * z / root * np.sqrt(unit)
            if x is not None:
                self.X_fit_ = x
                if len(U.dual):
                    self.X_transformed_fit_ = z
                    self.dual_coef_ = self._by_row(U, x, w)

    def _by_row(self, U: Parts, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The coefficients of merged rows, shared out to the rows by their weights."""
        place = places(U._replace(rows=rows_of(U).astype(x.dtype)), Block(x), given=False)
        total = np.bincount(place[place >= 0], w[place >= 0], len(U.dual))
        share = np.where(place >= 0, w / total[place], 0.0)
        return np.asarray(share[:, None] * U.dual[place])

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Scores: projections on the components in the space of the kernel."""
        return project(self._kernel(len(U.shift)), U, b.x)[0].astype(b.x.dtype)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Rows whose scores these are, or nearly: pre-images."""
        return _pre_image.of(self, self._kernel(len(U.shift))).back(U, z).astype(z.dtype)

    # -- what a user may ask --

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return rows for their scores, by the way that `pre_image` names.

        Parameters
        ----------
        X : array of shape (n, k)
            Scores, as `transform` returns them.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        if not self.fit_inverse_transform and self.pre_image == "ridge":
            raise NotFittedError(
                "inverse_transform was not learnt: set fit_inverse_transform=True and fit again, or, for kernel='rbf', "
                "pre_image='fixed_point'"
            )
        if isinstance(self.parts.rows, Csr):
            raise ValueError(NOT_TO_SPARSE)
        if isinstance(X, np.ndarray) and X.dtype == np.float32:  # whose digits cancel in sums of large coefficients
            return super().inverse_transform(X.astype(np.float64)).astype(np.float32)
        return super().inverse_transform(X)

    def findings(self) -> list[str]:
        """How much the rows vary along each component."""
        values = vars(self).get("eigenvalues_")
        return [] if values is None else [f"eigenvalues {listed([f'{v:.3g}' for v in values])}"]

    def for_sklearn(self) -> dict[str, Any]:
        """What scikit-learn's class computes with beside the attributes that both have."""
        from sklearn.preprocessing import KernelCenterer

        U, kept = self.parts, vars(self)
        root, kernel = np.sqrt(self.eigenvalues_.astype(np.float64)), self._kernel(self.n_features_in_)
        out = {"X_fit_": rows_of(U), "eigenvectors_": U.coef * root}
        if "X_fit_" in kept:
            out = {"X_fit_": self.X_fit_.astype(np.float64), "eigenvectors_": self.eigenvectors_.astype(np.float64)}
        if len(U.dual):
            out |= {"X_transformed_fit_": U.scores, "dual_coef_": U.dual}
        centerer = KernelCenterer().set_output(transform="default")
        if self.kernel == "precomputed":
            means = U.mean @ out["X_fit_"]
        else:
            means = kernel.between(out["X_fit_"], rows_of(U), np.zeros(len(U.shift))) @ U.mean
        centerer.K_fit_rows_, centerer.K_fit_all_ = means, float(U.square)
        centerer.n_features_in_ = len(means)
        return out | {"_centerer": centerer}

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[KernelPCA, np.ndarray, Callable[[Any], None]]:
        """Two concentric sources: the first component tells them apart, which no direction in the plane does."""
        angle = rng.uniform(0, 2 * np.pi, 300)
        radius = np.where(np.arange(300) < 150, 0.5, 3.0) + 0.2 * rng.standard_normal(300)
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), 0.1 * rng.standard_normal(300)])

        def found(model: Any) -> None:
            z = model.transform(X.astype(model.eigenvalues_.dtype))[:, 0]
            low, high = sorted((z[:150], z[150:]), key=np.mean)
            assert low.max() < high.min(), "the first component does not tell the sources apart"

        return cls(3, kernel="rbf", gamma=0.25, pre_image="fixed_point", random_state=0), X, found


def places(U: Parts, b: Block, given: bool) -> np.ndarray:
    """Which of the rows of a fit each row of a block is; −1 for those of no weight, and for sparse ones."""
    n = b.x.shape[0]
    if given:
        return b.start + np.arange(n)
    if sp.issparse(b.x):
        return np.full(n, -1)
    known = {row.tobytes(): i for i, row in enumerate(rows_of(U) + 0.0)}  # −0 has other bytes than 0
    return np.array([known.get(row.tobytes(), -1) for row in b.x + 0.0])
