"""Rounded singular value decomposition:  X ≈ S V, and what of S and V is large enough is a 1.

local    s_i = argmin_s ‖x_i − s V‖² + λ‖s‖² over the known cells, and what it puts into the others: x̃_i
         loss = that minimum                                                    [λ is there for rows without cells]
stats    M = Σ_i x̃_i x̃_iᵀ
update   V = the k leading eigenvectors of M, which for known cells are the right singular vectors of X

Then, by fixed rules: each v_k gets the sign that the parameter `sign` names; u_kd = 1 where v_kd is above
`role_threshold` times its largest entry; z_ik = 1 where s_ik is above `assignment_threshold` times u_k · v_k, the s_ik
of a row that has role k and nothing else. A good approximation by real numbers, rounded, is in general no good one by
roles.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.boolean._base import BooleanModel, some
from unmix.boolean._planted import apart
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.maths.order import canonical

RIDGE = 1e-6  # λ


class Parts(NamedTuple):
    """U: right singular vectors."""

    axes: Annotated[np.ndarray, Array("k d")]


class Stats(NamedTuple):
    """Second moments."""

    M: Annotated[np.ndarray, Array("d d")]


class RoundedSVD(BooleanModel):
    """Roles by rounding a truncated singular value decomposition: a baseline.

    Parameters
    ----------
    n_components : int, default=2
        Number of roles, at most that of the columns.
    sign : {"sum", "largest"}, default="sum"
        Singular vectors have no sign of their own: make their sum positive, or their largest entry.
    role_threshold : float, default=0.5
        A permission is of a role where the singular vector is above this share of its largest entry.
    assignment_threshold : float, default=0.5
        A row has a role where its score is above this share of the score of a row that has that role alone.
    threshold : float or None, default=None
        A cell above it is a 1, another a 0. None: cells must be 0, 1, or NaN, which is unknown.
    tol : float, default=1e-7
        The fit ends when a pass lowers the squared error by no more than `tol` times the first one.
    max_iter : int, default=200
        Maximum number of passes; without unknown cells three are enough.

    Attributes
    ----------
    roles_ : ndarray of bool of shape (k, d)
        Which permissions each role has, by falling singular value.
    assignments_ : ndarray of bool of shape (n, k)
        Which roles each training row has, where the rows were in memory.
    axes_ : ndarray of shape (k, d)
        The singular vectors that were rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import RoundedSVD
    >>> X = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
    >>> RoundedSVD(2).fit(X).roles_.astype(int).tolist()
    [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]]
    """

    sparse: ClassVar[bool] = True

    axes_: Annotated[np.ndarray, Array("k d")]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "sign": [StrOptions({"sum", "largest"})],
        "role_threshold": [Interval(Real, 0.0, 1.0, closed="left")],
        "assignment_threshold": [Interval(Real, 0.0, None, closed="left")],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        sign: str = "sum",
        role_threshold: float = 0.5,
        assignment_threshold: float = 0.5,
        threshold: float | None = None,
        tol: float = 1e-7,
        max_iter: int = 200,
    ) -> None:
        self.n_components = n_components
        self.sign = sign
        self.role_threshold = role_threshold
        self.assignment_threshold = assignment_threshold
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are more roles than columns, or too many columns for all pairs of them."""
        if self.n_components > shape.d:
            raise ValueError(
                f"n_components={self.n_components} is more than the {shape.d} columns of X, "
                f"n_features = {shape.d}: take at most as many"
            )
        self.afford(3 * shape.d**2, f"X has {shape.d} columns, all pairs of which count")

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """Singular vectors of a sample, unknown cells at the mean of their column."""
        x, seen = self.cells(data, sample=True)
        w = np.ones(x.shape[0]) if data.w is None else data.w
        x = x.astype(np.float64)
        if seen is not None:
            x = x + (1.0 - seen) * (w @ x / np.maximum(w @ seen, np.finfo(float).tiny))
        M = (x.T @ (x * w[:, None])) if not sp.issparse(x) else (x.T @ sp.diags_array(w) @ x).toarray()
        return Parts(self._leading(np.asarray(M)))

    def local(self, U: Parts, b: Block) -> Local:
        """Scores, and the second moments of rows that these complete."""
        x, seen = self.cells(b)
        s = self._scores(U, x, seen)
        if seen is None:
            full = x
            left = np.asarray(x.sum(axis=1)).ravel() - (1.0 + RIDGE) * (s * s).sum(axis=1)  # ‖x‖² = Σ x
        else:
            low = s @ U.axes
            full = np.where(seen > 0, x, low)
            left = (seen * (x - low) ** 2).sum(axis=1) + RIDGE * (s * s).sum(axis=1)
        if sp.issparse(full):
            M = np.asarray((full.T @ (full if b.w is None else sp.diags_array(b.w) @ full)).toarray(), dtype=np.float64)
        else:
            M = full.T @ b.weighted(full)
        return Local(self._assigned(U, s) if b.closing else None, Stats(M), b.sum(left))

    def _scores(self, U: Parts, x: Any, seen: np.ndarray | None) -> np.ndarray:
        """Row by row the least squares over the known cells."""
        right = np.asarray(x @ U.axes.T)
        if seen is None:
            return np.asarray(right / right.dtype.type(1.0 + RIDGE))
        k = len(U.axes)
        pairs = (U.axes[:, None] * U.axes).reshape(k * k, -1).astype(np.float64)
        gram = (seen.astype(np.float64) @ pairs.T).reshape(-1, k, k) + RIDGE * np.eye(k)
        return np.asarray(np.linalg.solve(gram, right.astype(np.float64)[:, :, None])[:, :, 0], dtype=right.dtype)

    def _assigned(self, U: Parts, s: np.ndarray) -> np.ndarray:
        """Whether scores are large enough."""
        alone = (self.roles_of(U) * U.axes).sum(axis=1)
        return np.asarray((s > self.assignment_threshold * alone) & (alone > 0))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Leading eigenvectors, by falling eigenvalue."""
        return Parts(self._leading(stats.M))

    def _leading(self, M: np.ndarray) -> np.ndarray:
        d, k = len(M), self.n_components
        axes = eigh((M + M.T) / 2, subset_by_index=[d - k, d - 1])[1].T[::-1]
        axes = canonical(np.ascontiguousarray(axes))
        return axes if self.sign == "largest" else axes * np.where(axes.sum(axis=1) < 0, -1.0, 1.0)[:, None]

    def goal(self, U: Parts, first: float) -> float:
        """A squared error counts relative to the first one."""
        return self.tol * first

    def described(self, U: Any, data: Any) -> Described:
        """Axes and second moments."""
        return Described(Parts, Stats, Any, {"k": self.n_components})

    def notes(self, U: Parts) -> list[str]:
        """Roles that no entry was large enough for."""
        empty = np.flatnonzero(~self.roles_of(U).any(axis=1))
        return some(empty, "have no permission: lower role_threshold, or ask for fewer components")

    def roles_of(self, U: Parts) -> np.ndarray:
        """1.0 where an entry is above its share of the largest."""
        top = U.axes.max(axis=1, keepdims=True)
        return np.asarray((U.axes > self.role_threshold * top) & (top > 0), dtype=np.float64)

    def publish(self, fit: Fit) -> None:
        """Set roles_, assignments_ and axes_."""
        super().publish(fit)
        self.axes_ = fit.U.axes
        self.roles_ = self.roles_of(fit.U) > 0.5

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """1 for each role of a row, else 0."""
        return self._assigned(U, self._scores(U, *self.cells(b))).astype(b.x.dtype)

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[RoundedSVD, np.ndarray, Callable[[Any], None]]:
        """Three roles without a permission in common, one in each row, and a few wrong cells."""
        X, roles, assignments = apart(rng)
        X = X ^ (rng.random(X.shape) < 0.03)

        def found(model: Any) -> None:
            assert np.array_equal(model.roles_, roles)
            if "assignments_" in vars(model) and len(model.assignments_) == len(assignments):
                assert (model.assignments_ == assignments).mean() > 0.95

        return cls(3, threshold=0.5), X.astype(np.float64), found
