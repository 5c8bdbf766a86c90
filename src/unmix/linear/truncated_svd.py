"""Truncated singular value decomposition: the best approximation of X by a matrix of rank k, X ≈ Z V, without a mean.

local    z = x Vᵀ      loss = |x − zV|²
stats    n, Σ x, Σ x xᵀ      update   V = leading eigenvectors of Σ x xᵀ: right singular vectors of X, σ² = nλ

That is principal component analysis with the mean 0, and it has the same ways to the axes, each in a file of its own:

_covariance   the above, over moments: one pass, then no data
_direct       a closed form of the whole matrix: where rows are fewer than columns, their n×n Gram matrix; "arpack"
_krylov       a block Krylov space, a pass a block: where both sides are large; CSR rows stay as they are
_subspace     subspace iteration: how a fit goes on where more rows come
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Online, Sizes, Stage
from unmix.engine.trace import Fit
from unmix.linear._axes import Axes, Subspace, project
from unmix.linear._covariance import Covariance
from unmix.linear._direct import Direct
from unmix.linear._krylov import KrylovSpace
from unmix.linear._stage import Way
from unmix.linear._subspace import SubspaceIteration
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Components, Reconstructs
from unmix.model.peer import Peer

SPECTRUM_SIDE = 2000  # up to this smaller side the whole spectrum of dense rows is cheaper than passes over them
SPARSE_SIDE = 200  # the same of CSR rows, whose products with a few directions are cheap


class TruncatedSVD(Reconstructs, Components, Model):
    """Best approximation of a matrix by one of low rank: truncated singular value decomposition.

    Rows are not centred, so that CSR rows stay sparse: of word counts this is latent semantic analysis.

    Parameters
    ----------
    n_components : int, default=2
        The rank k, at most the number of columns. Fewer rows than that have as many components as rows.
    algorithm : {"arpack", "randomized"}, default="randomized"
        "arpack" is Lanczos iteration of a matrix in memory. "randomized" looks at random directions and their images in
        a few passes over the rows, and keeps the best of all that these span (a block Krylov space); where a side of X
        is small, it is the exact spectrum of the moments or of the Gram matrix.
    n_iter : int, default=5
        Power iterations: (n_iter + 2)(n_components + n_oversamples) directions are looked at, as many in a pass as suit
        the rows.
    n_oversamples : int, default=10
        Directions that "randomized" carries beyond those asked for.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        No effect here: every block of directions is orthonormalised.
    random_state : int, RandomState or None, default=None
        Seed of the first directions.
    tol : float, default=0.0
        Tolerance of "arpack", 0 for the precision of the machine. "randomized" with a tolerance goes on until
        ‖Xᵀu − σv‖ ≤ tol σ₁ for every component, however many directions that takes; 0 for as many as `n_iter` says.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Right singular vectors v, by falling singular value; the largest entry of each is positive.
    singular_values_ : ndarray of shape (k,)
        σ, of the rows times √w.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Variance of the columns of `transform(X)`, over n, and its share of that of X. Both are about the mean, which
        the components are not: they need not fall.
    spectral_error_ : float
        The largest singular value of what is left, ‖X − ZV‖₂ = σ_{k+1}: exact from the moments, the Gram matrix or
        "arpack"; after passes an estimate from below, as are the singular values.
    rank_ : int
        How many of the singular values are not rounding: above √(ε max(n, d)) times the largest, ε the precision of X,
        which is what sums of squares can tell. (`unmix.linear.rank` can tell more.)

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from unmix import TruncatedSVD
    >>> X = sp.csr_array([[3.0, 0, 0], [0, 2, 0], [0, 0, 1], [0, 0, 0]])
    >>> svd = TruncatedSVD(2).fit(X)
    >>> svd.singular_values_.tolist(), svd.spectral_error_
    ([3.0, 2.0], 1.0)
    """

    sparse = True
    columns_as: ClassVar[str] = "scaled"
    peer = Peer("sklearn.decomposition", "components_ explained_variance_ explained_variance_ratio_ singular_values_")
    max_iter = 1000  # passes; a tolerance needs some tens at most

    degrees: ClassVar[dict[str, int | None]] = {
        "explained_variance_": 2, "singular_values_": 1, "spectral_error_": 1, "transform": 1,
    }  # fmt: skip

    components_: Annotated[np.ndarray, Array("c d")]
    singular_values_: Annotated[np.ndarray, Array("c", low=0.0)]
    explained_variance_: Annotated[np.ndarray, Array("c", low=0.0)]
    explained_variance_ratio_: Annotated[np.ndarray, Array("c", low=0.0)]
    spectral_error_: Annotated[float, Array(low=0.0)]
    rank_: Annotated[int, Array(kind="i", low=0, high="c")]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"arpack", "randomized"})],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 1, None, closed="left")],
        "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "randomized",
        n_iter: int = 5,
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        tol: float = 0.0,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.tol = tol

    # -- which way --

    def check(self, shape: Shape) -> None:
        """Refuse more components than columns; "arpack" also as many as there are of rows or of columns."""
        k, narrow = self.n_components, min(shape.n, shape.d)
        if k > shape.d:
            raise ValueError(
                f"n_components({k}) must be <= n_features({shape.d}): take at most the {shape.d} columns of X"
            )
        if self.algorithm == "arpack" and k >= narrow:
            raise ValueError(
                f"n_components={k} must be strictly less than min(n_samples={shape.n}, n_features={shape.d}) with "
                "algorithm='arpack': take fewer, or algorithm='randomized'"
            )

    def _way(self, shape: Shape) -> Way:
        """The spectrum of the smaller side where that is small, else passes; one axis more tells what is left."""
        narrow, k = min(shape.n, shape.d), self.n_components
        if self.algorithm == "arpack":
            return Direct(min(k + 1, narrow - 1), "arpack", self.tol, centred=False)
        wide = shape.d > SPECTRUM_SIDE
        if narrow > (SPARSE_SIDE if shape.sparse else SPECTRUM_SIDE) or (wide and not shape.in_memory):
            return KrylovSpace(k, self.n_oversamples, self.n_iter, self.tol, shape)
        if shape.in_memory and shape.d > shape.n:
            return Direct(min(k + 1, narrow), "auto", self.tol, centred=False)
        return self._of(Axes, shape)

    def _of(self, parts: type, shape: Shape) -> Any:
        """How a fit goes on from parts of a type."""
        k = self.n_components
        if issubclass(parts, Subspace):
            return SubspaceIteration(k, self.n_oversamples, self.n_iter, shape, centred=False)
        return Covariance(min(k + 1, shape.d), shape, centred=False)

    def stages(self, shape: Shape) -> list[Stage]:
        """The way that suits such data."""
        return [self._way(shape)]

    def sizes(self, shape: Shape) -> Sizes:
        """Those of the way."""
        return self._way(shape).sizes(shape)

    def online(self) -> Online:
        """Moments are exact, so that every row counts the same, however long ago it was seen."""
        return Online(lambda U, step, weight, seen: weight / seen)

    # -- the model --

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Any:
        """Where a first batch of rows starts, to which more will come."""
        way = self._of(Axes if self.shape.d <= 2 * SPECTRUM_SIDE else Subspace, self.shape)
        return way.start(before, data, rng)

    def local(self, U: Any, b: Block) -> Local:
        """Statistics and squared error of rows, or of the moments that stand for them."""
        way = self._of(type(U), self.shape)
        return way.local(U if isinstance(U, Subspace) else self._axes(U), b)  # type: ignore[no-any-return]

    def update(self, U: Any, stats: Any) -> Any:
        """Axes from the moments, or from the image of a subspace."""
        return self._of(type(U), self.shape).update(U, stats)

    def described(self, U: Any, data: Any) -> Described:
        """As the way does that goes on from such parts."""
        return self._of(type(U), self.shape).described(U, data)  # type: ignore[no-any-return]

    def _axes(self, U: Axes) -> Axes:
        """The parts about zero, without the axes that were only carried along."""
        k = self.n_components
        return U._replace(mean=np.zeros_like(U.mean), components=U.components[:k], variances=U.variances[:k])

    def encode(self, U: Axes, b: Block) -> np.ndarray:
        """Scores: projections on the right singular vectors, UΣ."""
        return project(self._axes(U), b)[1]

    def decode(self, U: Axes, z: np.ndarray) -> np.ndarray:
        """Rows of the plane through zero that the singular vectors span."""
        return np.asarray(z @ self._axes(U).components.astype(z.dtype, copy=False))

    def publish(self, fit: Fit) -> None:
        """Singular values and vectors, and the variances about the mean under scikit-learn's names."""
        U: Axes = fit.U
        A, n, mean = self._axes(U), fit.weight, U.mean
        spread = max(float(U.total) - float(mean @ mean), 0.0)
        self.components_ = A.components
        self.singular_values_ = np.sqrt(A.variances * n)
        self.explained_variance_ = np.maximum(A.variances - (A.components @ mean) ** 2, 0.0)
        self.explained_variance_ratio_ = self.explained_variance_ / (spread or 1.0)
        left = max(float(U.total) - float(A.variances.sum()), 0.0)
        most = min(self.shape.counted, self.shape.d) if self.shape.counted else self.shape.d
        beyond = U.variances[self.n_components :]
        one = float(beyond[0]) if len(beyond) else left if len(A.variances) < most else 0.0
        self.spectral_error_ = float(np.sqrt(one * n))
        floor = np.finfo(fit.dtype).eps * max(self.shape.n, self.shape.d) * A.variances.max(initial=0.0)
        self.rank_ = int(np.count_nonzero(A.variances > floor))

    # -- what a user may ask --

    def explained(self) -> np.ndarray:
        """The share of the variance of the data that each component describes: `explained_variance_ratio_`."""
        return self.explained_variance_ratio_

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[TruncatedSVD, np.ndarray, Callable[[Any], None]]:
        """Three directions of different length among ten columns, and noise."""
        V = np.linalg.qr(rng.normal(size=(10, 3)))[0].T
        X = (rng.normal(size=(600, 3)) * [5.0, 3.0, 2.0]) @ V + 0.3 * rng.normal(size=(600, 10))

        def check(fitted: Any) -> None:
            assert (np.abs(np.einsum("aj,aj->a", fitted.components_, V)) > 0.99).all()
            np.testing.assert_allclose(fitted.singular_values_ / np.sqrt(600), [5.01, 3.01, 2.02], rtol=0.1)
            np.testing.assert_allclose(fitted.spectral_error_ / np.sqrt(600), 0.3, rtol=0.2)

        return cls(3, random_state=0), X, check
