"""Principal component analysis: the directions of largest variance, x ≈ zV + μ, and their Gaussian model.

local    z = (x − μ) Vᵀ      loss = |x − μ − zV|²
stats    n, Σ x, Σ x xᵀ      update   V = leading eigenvectors of the covariance       [moments: one pass, then no data]

There are four ways to the axes, each in a file of its own:

_covariance   the above
_direct       a closed form of the whole matrix: where rows are fewer than columns, their n×n Gram matrix has the same
              spectrum
_subspace     subspace iteration, a pass a step: where both sides are large
_em           EM over the observed cells, where others are missing, of the model x ~ N(μ, V diag(λ − σ²) Vᵀ + σ²I);
              where all axes are to tell how many are wanted, EM of all and then of these alone

Inside, variances are divided by n; what is published is divided by n − 1.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.engine.trace import Fit
from unmix.linear._axes import project
from unmix.linear._principal import Principal
from unmix.linear._tables import Biplot, Tables, biplot, tables
from unmix.maths.arrays import Array
from unmix.model.peer import Peer

USUAL_TOL = 1e-6  # of EM, in nats per row


class PCA(Principal):
    """Directions of most variance: principal component analysis.

    Parameters
    ----------
    n_components : int, float, "mle", "parallel" or None, default=None
        How many components: a number; the share of the variance that they explain; as many as Minka's evidence
        ("mle", at least 1) or parallel analysis (each has more variance than unrelated columns show by chance) finds;
        None for all, which for "arpack" is one less than the smaller side of X.
    copy : bool, default=True
        No effect here: X is never changed.
    whiten : bool, default=False
        Whether `transform` gives every component unit variance.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        "full" decomposes dense X itself, "covariance_eigh" its covariance, "arpack" iterates for the leading axes,
        "randomized" iterates a subspace in a few passes over the rows. "auto" takes the covariance or the Gram matrix,
        whichever is smaller, and "randomized" where both are large and few components are wanted.
    tol : float, default=0.0
        Tolerance of "arpack"; with missing cells, the gain in log-likelihood per row at which EM ends (1e-6 for 0).
    iterated_power : int or "auto", default="auto"
        Power iterations of "randomized".
    n_oversamples : int, default=10
        Directions that "randomized" carries beyond those asked for.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        No effect here: every iteration is orthonormalised.
    random_state : int, RandomState or None, default=None
        Seed of "randomized", "arpack", parallel analysis and what `impute` draws.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Principal axes, by falling variance; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (k,)
        Variance along each axis, over n − 1, its share of the total, and the singular value of the centred rows times
        √w. With weights n is Σw, or the number of rows of positive weight where that is more; so it is for "mle" and
        "parallel". Nothing else depends on the scale of the weights, and of weights that sum to less than the rows
        only the ratios matter.
    mean_ : ndarray of shape (d,)
        Mean of each column.
    noise_variance_ : float
        Mean variance of the directions left out.
    n_components_, n_samples_ : int
        Components kept, rows seen.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from unmix import PCA
    >>> X = load_iris().data.copy()
    >>> X[::10, 2] = np.nan  # not observed
    >>> PCA(2).fit(X).explained_variance_ratio_.round(2).tolist()
    [0.92, 0.05]
    """

    exempt_checks: ClassVar[dict[str, str]] = dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
        "n_components=None means min(n, d) components, and repeating rows makes n larger where weighting them does not",
    )
    peer = Peer(
        "sklearn.decomposition",
        "components_ explained_variance_ explained_variance_ratio_ singular_values_ mean_ noise_variance_ "
        "n_components_ n_samples_",
        more=lambda model: {"_fit_svd_solver": "full" if model.svd_solver == "auto" else model.svd_solver},
    )
    max_iter = 1000  # of EM, the only way that needs many steps

    degrees: ClassVar[dict[str, int | None]] = {
        "mean_": 1, "explained_variance_": 2, "noise_variance_": 2, "singular_values_": 1, "transform": 1,
    }  # fmt: skip

    singular_values_: Annotated[np.ndarray, Array("c", low=0.0)]
    n_samples_: Annotated[int, Array(kind="i", low=0)]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"mle", "parallel"}),
            None,
        ],
        "copy": ["boolean"],
        "whiten": ["boolean"],
        "svd_solver": [StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 1, None, closed="left")],
        "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Refuse more components than there are, and rules for their number that the solver cannot apply."""
        k, narrow, iterates = self.n_components, min(shape.n, shape.d), self.svd_solver in ("randomized", "arpack")
        if isinstance(k, Integral) and not iterates <= k <= narrow:
            raise ValueError(
                f"n_components={k} must be between {int(iterates)} and min(n_samples, n_features)={narrow} with "
                f"svd_solver={self.svd_solver!r}: take {'at most' if k else 'at least'} {narrow if k else 1}"
            )
        if self.svd_solver == "arpack" and (k == narrow or narrow < 2):
            raise ValueError(
                f"n_components={k} must be strictly less than min(n_samples, n_features)={narrow} with "
                "svd_solver='arpack': take fewer, or svd_solver='full'"
            )
        if k == "mle" and shape.n < shape.d:
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features: try 'parallel'")
        if iterates and not (k is None or isinstance(k, Integral)):
            raise ValueError(
                f"n_components={k!r} cannot be a string or a share with svd_solver={self.svd_solver!r}: give a number"
            )

    @property
    def _em_tol(self) -> float:
        return self.tol or USUAL_TOL

    @property
    def _factor(self) -> float:
        """n/(n − 1), n the rows that the data stand for."""
        n = self.shape.rows
        return n / (n - 1.0) if n > 1.0 else 1.0

    # -- the model --

    def encode(self, U: Any, b: Block) -> np.ndarray:
        """Scores: projections of the rows on the axes."""
        A = self._axes(U)
        z = project(A, b)[1]
        if not self.whiten:
            return z
        scale = np.sqrt(A.variances * self._factor)
        least = np.finfo(z.dtype).eps * (min(1.0, float(scale.max(initial=0.0))) or 1.0)
        return z / np.maximum(scale, least).astype(z.dtype)  # type: ignore[no-any-return]

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """Rows of the plane that the axes span."""
        A = self._axes(U)
        if self.whiten:
            z = z * np.sqrt(A.variances * self._factor).astype(z.dtype)
        return z @ A.components.astype(z.dtype, copy=False) + U.mean

    def centred(self, U: Any, b: Block) -> Any:
        """Rows less the mean, missing cells filled in with what is expected of them; CSR rows as they are."""
        x = project(self._axes(U), b)[0]
        return b.x if x is None else x

    def publish(self, fit: Fit) -> None:
        """Publish axes and variances under scikit-learn's names, over n − 1."""
        A = self._axes(fit.U)
        values, total, n = A.variances, float(A.total), fit.weight
        self.components_ = A.components
        self.explained_variance_ = values * self._factor
        self.explained_variance_ratio_ = values / total if total > 0 else np.zeros(len(values))
        self.singular_values_ = np.sqrt(values * n)
        self.mean_ = A.mean
        self.noise_variance_ = float(A.noise) * self._factor
        self.n_components_ = len(A.components)
        self.n_samples_ = fit.shape.n

    # -- what a user may ask --

    def loadings(self) -> np.ndarray:
        """What each component is made of, √λ_a v_a: of standardised columns their correlations with the component."""
        return np.sqrt(self.explained_variance_)[:, None] * self.components_

    def modes(self, alpha: float = 2.0) -> np.ndarray:
        """Return the rows that lie alpha standard deviations from the mean along each axis: x̄ ± α √λ_t u_t.

        Parameters
        ----------
        alpha : float, default=2.0

        Returns
        -------
        modes : ndarray of shape (k, 2, d)
            For each component the row on its negative and the row on its positive side.
        """
        check_is_fitted(self)
        away = alpha * np.sqrt(self.explained_variance_)[:, None] * self.components_
        return np.stack([self.mean_ - away, self.mean_ + away], axis=1)

    def tables(
        self, X: Any, sample_weight: Any = None, *, supplementary_rows: Any = None, supplementary_columns: Any = None
    ) -> Tables:
        """Return the tables that R's and prince's users know: scores, loadings, cos² and contributions.

        Parameters
        ----------
        X : anything with rows
            The rows of the fit.
        sample_weight : array of shape (n,), optional
            The weights of the fit.
        supplementary_rows : anything with rows, optional
            Rows to place among the others, which took no part in the fit; of the same columns.
        supplementary_columns : anything with rows, optional
            Columns to place among the others, of the same rows; NaN means not observed. Held in memory.

        Returns
        -------
        Tables
            `variance`, `share` and `together` of the components; `rows` and `columns` with `names`, `coordinates`
            (scores, not whitened; loadings √λ_a v_a), `cos2`, `contributions` and, of columns, `correlations`;
            `supplementary_rows` and `supplementary_columns`. Each of these gives data frames: `rows.frame("cos2")`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from unmix import PCA
        >>> X = load_iris(as_frame=True).data
        >>> found = PCA().fit(X).tables(X)
        >>> found.columns.names[0], found.columns.correlations[0, :2].round(2).tolist()
        ('sepal length (cm)', [0.9, 0.39])
        >>> found.rows.contributions.sum(axis=0).round(6).tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        check_is_fitted(self)
        return tables(self, X, self.weigh(X, sample_weight)[0], self._factor, supplementary_rows, supplementary_columns)

    def biplot(self, X: Any, axes: tuple[int, int] = (0, 1), scale: float = 1.0) -> Biplot:
        """Return the points and arrows of a biplot: rows and columns in one picture, as R's `biplot` draws them.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.
        axes : tuple of two int, default=(0, 1)
            The components to show.
        scale : float, default=1.0
            From 0, where distances of rows are as in the data, to 1, where angles of arrows are the correlations of
            columns. Inner products of points and arrows are the same for all: the cells, less the mean.

        Returns
        -------
        Biplot
            `rows`, `columns`, `names` of the columns and `titles` of the axes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from unmix import PCA
        >>> X = load_iris().data
        >>> picture = PCA(2).fit(X).biplot(X)
        >>> picture.rows.shape, picture.columns.shape, picture.titles
        ((150, 2), (4, 2), ['pca0 (92.5 %)', 'pca1 (5.3 %)'])
        """
        check_is_fitted(self)
        return biplot(self, X, axes, scale, self.shape.rows)

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[PCA, np.ndarray, Callable[[Any], None]]:
        """Three directions of different variance among ten columns, and noise."""
        V = np.linalg.qr(rng.normal(size=(10, 3)))[0].T
        X = (rng.normal(size=(600, 3)) * [5.0, 3.0, 2.0]) @ V + 0.3 * rng.normal(size=(600, 10)) + rng.normal(size=10)

        def check(fitted: Any) -> None:
            assert (np.abs(np.einsum("aj,aj->a", fitted.components_, V)) > 0.99).all()
            np.testing.assert_allclose(fitted.explained_variance_, [25.09, 9.09, 4.09], rtol=0.2)
            np.testing.assert_allclose(fitted.noise_variance_, 0.09, rtol=0.2)

        return cls(3, random_state=0), X, check
