"""Factor analysis:  x = zW + μ + ε,  z ~ N(0, I_k),  ε ~ N(0, diag ψ),  so  x ~ N(μ, Σ),  Σ = WᵀW + diag ψ.

local    log p(x) with M = I + W ψ⁻¹ Wᵀ:  |Σ| = |M| Π ψ_j,   z = M⁻¹ W ψ⁻¹ (x − μ)              [never a d×d inverse]
stats    n, Σ x, Σ x xᵀ                            [the data enter only through these: one pass, then no more data]
update   S = covariance;  ψ^-½ S ψ^-½ = V diag(λ) Vᵀ,  λ descending;  G = Σ_{m>k} v_m v_mᵀ,  R = Σ_{m>k} λ_m v_m v_mᵀ
         the best W given ψ      w_m = (λ_m − 1)₊^½ v_m ψ^½           m ≤ k
         minus twice the log-likelihood per row, profiled:  f(θ) = Σ_{m>k} (λ_m − log λ_m) + const        θ = log ψ
         Newton step in θ        ∇ = diag(G − R)       H = R∘G + Σ_{n≤k} (v_n v_nᵀ) ∘ Σ_{m>k} c_nm v_m v_mᵀ
                                 c_nm = (1 − λ_m)(λ_m + λ_n)/(λ_n − λ_m)

The step is shortened until f falls; where it does not, the EM step  ψ = diag(S − WᵀW)  is taken, which never makes it
worse. EM alone needs ten to a hundred times as many steps. (This is `_newton.py`.) With missing cells: EM cell by cell
(`_em.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.moments import block_rows, moments
from unmix.engine.sample import centre_of
from unmix.engine.stage import Sizes
from unmix.engine.trace import Fit
from unmix.linear._em import CellEM
from unmix.linear._newton import Newton, best_loadings, factor, infer, profile
from unmix.linear._number import how_many
from unmix.linear._rotations import rotate
from unmix.linear._stage import Way
from unmix.maths import latent
from unmix.maths.arrays import Array
from unmix.maths.latent import CellLoadings, Loadings
from unmix.model import Model
from unmix.model.capabilities import Components, Density, Gaussians, Imputes, Reconstructs
from unmix.model.peer import Peer

STAGES: dict[type, Way] = {Loadings: Newton(), CellLoadings: CellEM()}  # how a fit continues from parts of each type
OBLIQUE = ("promax", "oblimin")  # rotations to factors that correlate
SMALL_NOISE = 1e-3  # of a column's variance: the inversion lemma divides by the noise, and loses as many digits


class FactorAnalysis(Density, Imputes, Reconstructs, Components, Model):
    """Common factors, and noise of its own in each column: factor analysis.

    Parameters
    ----------
    n_components : int, "parallel" or None, default=None
        Number of factors; as many as parallel analysis finds (what they explain of the correlations is more than
        unrelated columns show by chance, and no more than d columns can tell, (d − k)² ≥ d + k; of a stream by its
        sample of rows); None for as many as there are columns, which is also the most that there are.
    tol : float, default=1e-2
        The fit ends when a step raises the log-likelihood of all rows by no more.
    copy : bool, default=True
        No effect here: X is never changed.
    max_iter : int, default=1000
        Maximum number of steps.
    noise_variance_init : array of shape (d,) or None, default=None
        First guess of ψ; None for one that depends on how well the other columns predict each column.
    svd_method : {"lapack", "randomized"}, default="randomized"
        No effect here: the decomposition is of a d×d matrix, and exact.
    iterated_power : int, default=3
        No effect here, as for `svd_method`.
    rotation : {None, "varimax", "quartimax", "promax", "oblimin"}, default=None
        Rotation of the factors towards few large loadings; promax and oblimin (direct quartimin) let them correlate.
    random_state : int, RandomState or None, default=0
        Seed of parallel analysis and of what `impute` draws.
    kaiser : bool, default=False
        Whether a rotation counts every column the same, however much the factors explain of it (Kaiser's
        normalisation). With it varimax and promax of standardised columns are those of R's `factanal`; without it
        varimax and quartimax are scikit-learn's, and oblimin is that of R's GPArotation.
    rotation_tol : float, default=1e-9
        Varimax, quartimax and promax end where a step gains less than this share of the criterion. R ends them at 1e-5:
        give that for the digits that it prints, of which the third may differ from those of the optimum.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Loadings W.
    noise_variance_ : ndarray of shape (d,)
        ψ.
    mean_ : ndarray of shape (d,)
        μ.
    communalities_ : ndarray of shape (d,)
        Share of each column's variance that the factors explain.
    factor_covariance_ : ndarray of shape (k, k)
        Covariance of z: the identity, unless the rotation is oblique.
    loglike_ : list of float
        Log-likelihood of all rows after each step.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from unmix import FactorAnalysis
    >>> X = load_iris().data.copy()
    >>> X[::10, 2] = np.nan  # not observed
    >>> FactorAnalysis(1, random_state=0).fit(X).noise_variance_.round(2).tolist()
    [0.16, 0.16, 0.01, 0.04]
    """

    sparse = True
    missing = True
    accelerate = True
    peer = Peer(
        "sklearn.decomposition",
        "components_ loglike_ mean_ noise_variance_",
        more=lambda model: in_double(model.parts),  # it divides by the noise in their precision, and loses digits
        params=lambda model: {"n_components": len(model.components_)} if model.n_components == "parallel" else {},
        refusal=lambda model: "scikit-learn has no oblique rotations" if model.rotation in OBLIQUE else "",
    )

    degrees: ClassVar[dict[str, int | None]] = {
        "noise_variance_init": 2,
        "components_": 1,
        "mean_": 1,
        "noise_variance_": 2,
    }

    components_: Annotated[np.ndarray, Array("f d")]
    factor_covariance_: Annotated[np.ndarray, Array("f f")]
    noise_variance_: Annotated[np.ndarray, Array("d", low=0.0)]
    mean_: Annotated[np.ndarray, Array("d")]
    communalities_: Annotated[np.ndarray, Array("d")]
    loglike_: list[float]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 0, None, closed="left"), StrOptions({"parallel"}), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "copy": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "noise_variance_init": ["array-like", None],
        "svd_method": [StrOptions({"randomized", "lapack"})],
        "iterated_power": [Interval(Integral, 0, None, closed="left")],
        "rotation": [StrOptions({"varimax", "quartimax", "promax", "oblimin"}), None],
        "random_state": ["random_state"],
        "kaiser": ["boolean"],
        "rotation_tol": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        tol: float = 1e-2,
        copy: bool = True,
        max_iter: int = 1000,
        noise_variance_init: Any = None,
        svd_method: str = "randomized",
        iterated_power: int = 3,
        rotation: str | None = None,
        random_state: Any = 0,
        kaiser: bool = False,
        rotation_tol: float = 1e-9,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.copy = copy
        self.max_iter = max_iter
        self.noise_variance_init = noise_variance_init
        self.svd_method = svd_method
        self.iterated_power = iterated_power
        self.rotation = rotation
        self.random_state = random_state
        self.kaiser = kaiser
        self.rotation_tol = rotation_tol

    # -- the model --

    def check(self, shape: Shape) -> None:
        """Refuse noise of other columns."""
        if self.noise_variance_init is not None and np.shape(self.noise_variance_init) != (shape.d,):
            raise ValueError(
                f"noise_variance_init has shape {np.shape(self.noise_variance_init)}: give one number for each of the "
                f"{shape.d} columns"
            )

    def check_parameters(self, shape: Shape) -> None:
        """Also refuse more factors than columns, which would be as many as there are columns."""
        super().check_parameters(shape)
        if isinstance(self.n_components, Integral) and self.n_components > shape.d:
            raise ValueError(f"n_components={self.n_components} is more than the {shape.d} columns of X")

    def _size(self, d: int) -> int | None:
        """Number of factors of d columns; None where the data are to tell."""
        k = d if self.n_components is None else self.n_components
        return min(int(k), d) if isinstance(k, Integral) else None

    @property
    def name(self) -> str:  # type: ignore[override]
        """Newton steps, or EM where cells are missing."""
        return self._way.name

    @property
    def over(self) -> str:  # type: ignore[override]
        """Complete rows enter through their moments alone."""
        return self._way.over

    @property
    def _way(self) -> Way:
        return STAGES[Loadings if self.shape.complete else CellLoadings]

    def sizes(self, shape: Shape) -> Sizes:
        """Larger blocks where the d×d moments are large."""
        return Sizes(block_rows(shape))

    def goal(self, U: Loadings, first: float) -> float:
        """`tol` counts nats of all rows together."""
        return self.tol / max(self.shape.rows, 1.0)

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Loadings:
        """Noise from how badly the other columns predict a column, then the best loadings for that noise."""
        d = data.x.shape[1]
        k = self._size(d)
        step = 1 if k is None else max(1, data.x.shape[0] // (20 * d + 1000))
        b = Block(
            data.x[::step],
            None if data.w is None else data.w[::step],
            None,
            None if data.observed is None else data.observed[::step],
        )
        shift = centre_of(data)
        count = np.full(d, b.total)
        if b.observed is None:
            s = moments(b, shift)
        else:
            w = np.ones(len(b.x)) if b.w is None else b.w
            count = w @ b.observed
            count = np.where(count > 0, count, 1.0)
            s = moments(b._replace(x=(b.x - shift) * b.observed), np.zeros(d))
        S = np.asarray(s.scatter, dtype=np.float64) / np.sqrt(np.outer(count, count))
        var = np.diag(S)
        if k is None:
            k = how_many(S, max(b.total, b.x.shape[0]), rng)
        precision = 1e-6 if data.x.dtype == np.float64 else 1e-5
        floor = np.where(var > 0, precision * var, 1e-12 * (min(1.0, float(var.max())) or 1.0))
        if self.noise_variance_init is not None:
            noise = np.maximum(np.asarray(self.noise_variance_init, dtype=np.float64), floor)
        else:
            noise = np.maximum(latent.first_noise(S, k, enough=b.observed is None and b.x.shape[0] > 2 * d), floor)
        _, lam, V = profile(S, noise, k)
        kind = Loadings if data.observed is None and self.shape.complete else CellLoadings
        return kind(shift, shift, best_loadings(noise, lam, V, k), noise, floor, np.eye(k))

    def local(self, U: Loadings, b: Block) -> Local:
        """Statistics and −log p; of rows, or of the moments that stand for them."""
        return STAGES[type(U)].local(U, b)

    def update(self, U: Loadings, stats: Any) -> Loadings:
        """A Newton step on the profiled likelihood, or the step of EM where cells are missing."""
        U = STAGES[type(U)].update(U, stats)
        return self.hand(U, None) if self.shape.online else U  # an online step may be the last

    def hand(self, U: Loadings, data: Any) -> Loadings:
        """The parts with the rotation of their factors, which no step needs."""
        T = rotate(U.loadings, U.noise, self.rotation, self.kaiser, self.rotation_tol)
        return U._replace(rotation=T)

    def described(self, U: Any, data: Any) -> Described:
        """As the way does that continues from such parts."""
        k = self._size(self.shape.d)
        return STAGES.get(type(U), STAGES[Loadings]).described(U, data)._replace(names={} if k is None else {"f": k})

    def encode(self, U: Loadings, b: Block) -> np.ndarray:
        """Factor scores: the posterior mean of z."""
        return infer(U, b)[0]

    def log_density(self, U: Loadings, b: Block) -> np.ndarray:
        """The log-density of each row's observed cells."""
        return infer(U, b)[1]

    def conditional(self, U: Loadings, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """What the factors expect of missing cells, and how sure they are."""
        mean, variance = latent.conditional(U, b.x, b.observed)
        return mean, np.sqrt(variance)

    def drawn(self, U: Loadings, b: Block) -> np.ndarray:
        """Factors drawn given the observed cells, then noise."""
        return latent.drawn(U, b.x, b.observed, self.given.generator(b))

    def decode(self, U: Loadings, z: np.ndarray) -> np.ndarray:
        """Rows that the factors stand for: z times the loadings, plus the mean."""
        return z @ components(U).astype(z.dtype, copy=False) + U.mean

    def notes(self, U: Loadings) -> list[str]:
        """Heywood cases."""
        held = np.flatnonzero(U.noise <= U.floor * (1 + 1e-6))
        if not len(held):
            return []
        names = ", ".join(map(str, held[:5])) + (", …" if len(held) > 5 else "")
        return [
            f"the noise variance of {len(held)} column(s) ({names}) fell to its floor (a Heywood case): the factors "
            "reproduce these columns exactly. Take fewer factors, or drop columns that are constant or copies"
        ]

    def publish(self, fit: Fit) -> None:
        """Publish loadings, noise, communalities and the log-likelihood of each step."""
        U = fit.U
        self.components_, self.noise_variance_, self.mean_ = in_double(U).values()
        self.factor_covariance_ = U.rotation.T @ U.rotation
        common = np.einsum("aj,aj->j", U.loadings, U.loadings)
        self.communalities_ = common / (common + U.noise)
        self.loglike_ = [-s.objective * fit.weight for s in fit.trace[1:] if s.accepted] + [-float(fit.loss)]

    # -- what a user may ask --

    def explained(self) -> np.ndarray:
        """Σ_j w_aj² over the variance of all columns, which factors that correlate share in part."""
        return np.asarray((self.components_**2).sum(axis=1) / np.trace(self.get_covariance()))

    def n_parameters(self) -> int:
        """Free numbers: loadings up to a rotation, noise variances, mean; no more than a Gaussian has."""
        k, d = self.components_.shape
        return min(d * k - k * (k - 1) // 2 + d, d * (d + 1) // 2) + d

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model, WᵀW + diag ψ.

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        U = self._fitted()
        return (U.loadings.T @ U.loadings + np.diag(U.noise)).astype(self.shape.dtype)  # type: ignore[no-any-return]

    def gaussians(self) -> Gaussians:
        """The Gaussian that the model stands for."""
        return Gaussians.one(self.mean_, self.get_covariance())

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance, by the inversion lemma unless that would lose digits.

        Returns
        -------
        precision : ndarray of shape (d, d)
        """
        U = self._fitted()
        covariance = U.loadings.T @ U.loadings + np.diag(U.noise)
        if (U.noise < SMALL_NOISE * np.diag(covariance)).any():
            return np.linalg.inv(covariance).astype(self.shape.dtype)  # type: ignore[no-any-return]
        half = factor(U)[0] @ (U.loadings / U.noise)
        return (np.diag(1.0 / U.noise) - half.T @ half).astype(self.shape.dtype)  # type: ignore[no-any-return]

    def _fitted(self) -> Loadings:
        check_is_fitted(self)
        return self.parts

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[FactorAnalysis, np.ndarray, Callable[[Any], None]]:
        """Twelve columns that load on three factors, four each, with noise of different size."""
        W = np.kron(np.eye(3), np.ones(4)) * rng.uniform(0.8, 1.6, size=12) + 0.1 * rng.normal(size=(3, 12))
        noise = rng.uniform(0.1, 0.5, size=12)
        X = rng.normal(size=(600, 3)) @ W + rng.normal(size=(600, 12)) * np.sqrt(noise) + 5.0

        def check(fitted: Any) -> None:
            covariance = W.T @ W + np.diag(noise)
            assert np.linalg.norm(fitted.get_covariance() - covariance) < 0.15 * np.linalg.norm(covariance)
            assert (np.abs(fitted.noise_variance_ - noise) < 0.12).all()
            found = np.linalg.qr(np.asarray(fitted.components_, dtype=float).T)[0]
            assert np.linalg.svd(found.T @ np.linalg.qr(W.T)[0])[1].min() > 0.99

        return cls(3, random_state=0), X, check


def components(U: Loadings) -> np.ndarray:
    """Loadings of the rotated factors: z rotation · components = z loadings."""
    return np.linalg.solve(U.rotation, U.loadings) if len(U.loadings) else U.loadings


def in_double(U: Loadings) -> dict[str, np.ndarray]:
    """What users see of the parts, not yet in the precision of the data."""
    return {"components_": components(U), "noise_variance_": U.noise, "mean_": U.mean}
