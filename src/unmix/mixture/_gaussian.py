"""What mixtures of Gaussians share, however they are fitted: rows to densities and moments, moments to covariances.

Rows are measured from a fixed origin, U.shift. P with P Pᵀ = Σ⁻¹ are the factors of the covariances; symmetric matrices
travel as upper triangles.
"""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from unmix.engine.block import Block, Local
from unmix.engine.trace import Fit
from unmix.kernels import gaussian_rows as rows
from unmix.maths import gaussian
from unmix.maths.arrays import Array
from unmix.mixture._start import FromRows
from unmix.mixture.covariances import Stats, as_matrices, is_matrix, moments, n_free, shape_of
from unmix.model.capabilities import Gaussians

VARIANCE_FLOOR = 1e-12  # share of the mean square
FEATURES_ERROR = {"float32": 1e-3, "float64": 1e-10}  # that multiplied-out densities may have: precision × spread
WEIGHT_FLOOR = 1e-300  # of a component that is joined with another, so that two empty ones have a mean
RUNNING: dict[str, Any] = {  # what parameters of how a fit runs may be
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
    "verbose_interval": [Interval(Integral, 1, None, closed="left")],
}


class Scratch(NamedTuple):
    """What follows from the parameters and saves time: natural parameters, and how far their terms exceed their sum."""

    natural: Annotated[np.ndarray, Array("natural")]
    spread: Annotated[np.ndarray, Array(low=0.0)]


NO_SCRATCH = Scratch(np.zeros(0), np.zeros(0))


class GaussianBase(FromRows):
    """Parts have at least shift, weights, means, covariances, factors, events.floored and scratch."""

    degrees: ClassVar[dict[str, int | None]] = {
        "reg_covar": 2, "means_init": 1, "precisions_init": -2, "mean_prior": 1, "covariance_prior": 2, "means_": 1,
        "covariances_": 2, "precisions_": -2, "precisions_cholesky_": -1, "mean_prior_": 1, "covariance_prior_": 2,
        "lower_bound_": None, "log_evidence_": None,
    }  # fmt: skip

    weights_: Annotated[np.ndarray, Array("k", low=0.0)]
    means_: Annotated[np.ndarray, Array("k d")]
    covariances_: Annotated[np.ndarray, Array("covariances")]
    precisions_cholesky_: Annotated[np.ndarray, Array("covariances")]
    precisions_: Annotated[np.ndarray, Array("covariances")]
    lower_bounds_: list[float]

    covariance_type: str
    reg_covar: float

    # ---------------------------------------------------------------- rows

    def local(self, U: Any, b: Block) -> Local:
        """Responsibilities, their moments about the origin, and minus the log-likelihood."""
        z, log_p, totals = self._rows_of(U, b, True)
        return Local(self._left(z, b), Stats(*totals), -b.sum(log_p))

    def posterior(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities and log p(x) of each row."""
        return self._rows_of(U, b, False)[:2]

    def _mixing(self, U: Any) -> np.ndarray:
        """What the densities are multiplied by, up to a common factor."""
        return np.asarray(U.weights)

    def _rows_of(self, U: Any, b: Block, collect: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """(z, log p, moments) of a block, the fastest way that the numbers and the missing cells allow."""
        kind = self.covariance_type
        G = rows.Gaussians(kind, self._mixing(U), U.means, U.covariances, U.factors, U.scratch.natural)
        if b.observed is not None and is_matrix(kind):
            return missing(G, b, U.shift, collect)
        error = np.finfo(b.x.dtype).eps * float(U.scratch.spread)
        narrow = kind != "full" or b.x.shape[1] <= min(128, 24 + 8 * len(U.weights))  # measured: where features win
        if b.observed is None and narrow and error <= FEATURES_ERROR[b.x.dtype.name]:
            return rows.by_features(G, b.x, U.shift, b.w, collect)
        return rows.by_components(G, b.x, U.shift, b.w, b.observed, collect)

    def names(self) -> dict[str, Any]:
        """The shapes that depend on the covariance type, for descriptions."""
        kind, K, d = self.covariance_type, self.n_components, self.shape.d
        triangle = d * (d + 1) // 2
        quadratic = {"full": triangle, "tied": 0, "diag": d, "spherical": 1}[kind]
        moments = {"full": (K, triangle), "tied": (triangle,), "diag": (K, d), "spherical": (K,)}[kind]
        return {"k": K, "covariances": shape_of(kind, K, d), "moments": moments, "natural": (K, 1 + d + quadratic)}

    # ---------------------------------------------------------------- the start

    def _first(
        self, labels: np.ndarray | None, sample: Block, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Stats]:
        """Origin, the sample's rows about it and their weights, and the moments of a first assignment of them."""
        shift, x, w = self._about(sample)
        z = np.eye(self.n_components)[labels] if labels is not None else self._assignment(x, w, shift, rng)
        return shift, x, w, moments(self.covariance_type, z * w[:, None], x)

    def go_on(self, U: Any) -> Any:
        """The parts of the last fit, where they are as many Gaussians with covariances of this form."""
        (K, d), kind = U.means.shape, self.covariance_type
        suits = self.n_components == K and U.covariances.shape == shape_of(kind, K, d)
        if suits and U.factors.ndim == 2 and K == d > 1:  # tied or diag: factors of matrices are triangular
            suits = bool(np.tril(U.factors, -1).any()) == (kind == "diag")
        return U if suits else None

    # ---------------------------------------------------------------- covariances

    def _floor(self) -> float:
        """What a variance is raised to where it is lost in rounding, as a share of the mean square."""
        return max(VARIANCE_FLOOR, 10.0 * float(np.finfo(self.shape.dtype).eps))

    def _complete(self, U: Any) -> Any:
        """The parts with what follows from them."""
        kind = self.covariance_type
        natural = rows.natural(kind, self._mixing(U), U.means, U.factors)
        spread = np.array(rows.spread(kind, U.means, U.covariances, U.factors))
        return U._replace(scratch=Scratch(natural, spread))

    # ---------------------------------------------------------------- what comes out

    def _singular(self, U: Any, remedy: str) -> list[str]:
        """A note on singular covariances, if there are any."""
        low = np.flatnonzero(U.events.floored).tolist()
        return [f"components {low} have a singular covariance, raised to a floor: {remedy}"] if low else []

    def publish(self, fit: Fit) -> None:
        """Set weights_, means_, covariances_ and their kin."""
        super().publish(fit)
        U, kind = fit.U, self.covariance_type
        self.weights_, self.means_, self.covariances_ = U.weights, U.means + U.shift, U.covariances
        self.precisions_cholesky_ = U.factors
        self.precisions_ = U.factors @ np.swapaxes(U.factors, -1, -2) if is_matrix(kind) else U.factors**2

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """Means of the components, mixed by responsibilities."""
        return np.asarray(z @ U.means + U.shift * z.sum(axis=1, keepdims=True))

    def _mixture(self, U: Any) -> Gaussians:
        """The components of the parts, about the origin of X."""
        return Gaussians.of_type(self.covariance_type, self._mixing(U), U.means + U.shift, U.covariances)

    def conditional(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Missing cells by the components that the observed ones belong to."""
        mean, variance = gaussian.conditional(b.x, b.observed, *self._mixture(U))
        return mean, np.sqrt(variance)

    def drawn(self, U: Any, b: Block) -> np.ndarray:
        """A component drawn by the observed cells, then the missing ones by it."""
        return gaussian.drawn(b.x, b.observed, *self._mixture(U), rng=self.given.generator(b))

    def n_parameters(self) -> int:
        """Free numbers of weights, means and covariances."""
        K, d = map(int, self.means_.shape)
        return n_free(self.covariance_type, K, d) + K * d + K - 1

    def gaussians(self) -> Gaussians:
        """The components."""
        return Gaussians.of_type(self.covariance_type, self.weights_, self.means_, self.covariances_)

    def draw_component(self, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Rows of component k, n of them."""
        U = self.parts
        K, d = U.means.shape
        centre = U.means[k] + U.shift
        if is_matrix(self.covariance_type):
            return rng.multivariate_normal(centre, np.broadcast_to(U.covariances, (K, d, d))[k], n)
        return np.asarray(centre + rng.standard_normal((n, d)) * np.sqrt(U.covariances[k]))


def missing(G: rows.Gaussians, b: Block, shift: np.ndarray, collect: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows with missing cells under full or tied covariances, in float64."""
    from unmix.kernels.gaussian_missing import patterns

    K, d = G.means.shape
    means = G.means.astype(np.float64)
    P = np.ascontiguousarray(np.broadcast_to(G.factors, (K, d, d)), dtype=np.float64)
    x, observed = (b.x - shift).astype(np.float64), np.ascontiguousarray(b.observed)
    w = np.ones(len(x)) if b.w is None else b.w
    order, first = gaussian.together(observed)
    log_weights = np.log(np.maximum(G.weights, rows.WEIGHT_FLOOR), dtype=np.float64)
    log_dets = rows.log_det("full", P, d)
    z, log_p = np.empty((len(x), K)), np.empty(len(x))
    N, A, B = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    given = (log_weights, log_dets, means, P @ P.transpose(0, 2, 1), P)
    patterns(x, observed, order, first, w, *given, collect, z, log_p, N, A, B)
    z, log_p = z.astype(b.x.dtype, copy=False), log_p.astype(b.x.dtype, copy=False)
    if not collect:
        return z, log_p, None
    moved = A + N[:, None] * means  # from each mean to the origin, as B is below
    B = rows.pack(B + A[:, :, None] * means[:, None, :] + means[:, :, None] * moved[:, None, :])
    return z, log_p, rows.Totals(N, moved, B.sum(axis=0) if G.kind == "tied" else B)


def split(
    kind: str, empty: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Each empty component takes half of the heaviest one, the means to either side along its longest axis."""
    weights, means, covariances, factors = weights.copy(), means.copy(), covariances.copy(), factors.copy()
    for k in empty:
        j = int(weights.argmax())
        if is_matrix(kind):
            values, axes = np.linalg.eigh(covariances if kind == "tied" else covariances[j])
            axis = axes[:, -1] * np.sign(axes[np.abs(axes[:, -1]).argmax(), -1]) * np.sqrt(values[-1])
        else:
            variances = np.broadcast_to(covariances[j], means.shape[1])
            axis = np.where(np.arange(len(variances)) == variances.argmax(), np.sqrt(variances), 0.0)
        means[k], means[j] = means[j] + 0.5 * axis, means[j] - 0.5 * axis
        weights[k] = weights[j] = weights[j] / 2.0
        if kind != "tied":
            covariances[k], factors[k] = covariances[j], factors[j]
    return weights, means, covariances, factors


def nearest(kind: str, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> tuple[int, int]:
    """The two Gaussians for which least is lost when one of their joint mean and covariance replaces both.

    The loss is at most ½ [(π_a + π_b) log|Σ_ab| − π_a log|Σ_a| − π_b log|Σ_b|] (Runnalls 2007).
    """
    w, full = np.maximum(weights, WEIGHT_FLOOR), as_matrices(kind, covariances, *means.shape)
    size = np.linalg.slogdet(full)[1]
    best = (np.inf, 0, 1)
    for a in range(len(w)):
        for b in range(a + 1, len(w)):
            _, cov = join(w[[a, b]], means[[a, b]], full[[a, b]])
            best = min(best, ((w[a] + w[b]) * np.linalg.slogdet(cov)[1] - w[a] * size[a] - w[b] * size[b], a, b))
    return best[1:]


def join(weights: np.ndarray, means: np.ndarray, full: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of two Gaussians as one."""
    p, q = weights / weights.sum()
    apart = means[0] - means[1]
    return p * means[0] + q * means[1], p * full[0] + q * full[1] + p * q * np.outer(apart, apart)
