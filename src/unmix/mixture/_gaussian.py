"""What mixtures of Gaussians share, however they are fitted: rows to densities and moments, moments to covariances.

Rows are measured from a fixed origin, U.shift. P with P Pᵀ = Σ⁻¹ are the factors of the covariances; symmetric matrices
travel as upper triangles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dtrtri

from unmix.engine.block import Block, Local
from unmix.engine.sample import mean
from unmix.engine.trace import Fit
from unmix.kernels import gaussian_rows as rows
from unmix.mixture._base import DEAD, BaseMixture
from unmix.mixture._start import PASSES, clusters, in_range

INFEASIBLE = 1e-5  # a variance below −1e-5 of the mean square is more than rounding
LIMIT = {"float32": 1e-3, "float64": 1e-10}  # error that multiplied-out densities may have: precision × spread


class Stats(NamedTuple):
    """N, A, B; symmetric matrices as upper triangles."""

    N: np.ndarray
    A: np.ndarray
    B: np.ndarray


class GaussianBase(BaseMixture):
    """Parts have at least shift, weights, means, covariances, factors, natural and spread."""

    covariance_type: str
    reg_covar: float
    init_params: str

    def _shape_of(self, K: int, d: int) -> tuple[int, ...]:
        return {"full": (K, d, d), "tied": (d, d), "diag": (K, d), "spherical": (K,)}[self.covariance_type]

    # ---------------------------------------------------------------- rows

    def local(self, U: Any, b: Block) -> Local:
        """Responsibilities, their moments about the origin, and minus the log-likelihood."""
        z, log_p, totals = self._rows_of(U, b, moments=True)
        return Local(self._left(z, b), Stats(*totals), -b.sum(log_p))

    def posterior(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities and log p(x) of each row."""
        return self._rows_of(U, b, moments=False)[:2]

    def _gaussians(self, U: Any) -> rows.Gaussians:
        return rows.Gaussians(self.covariance_type, U.weights, U.means, U.covariances, U.factors, U.natural)

    def _rows_of(self, U: Any, b: Block, moments: bool) -> tuple[np.ndarray, np.ndarray, Any]:
        """(z, log p, moments) of a block, the fastest way that the numbers and the missing cells allow."""
        kind = self.covariance_type
        G = self._gaussians(U)
        if b.observed is not None and kind in ("full", "tied"):
            return missing(G, b, U.shift, moments)
        error = np.finfo(b.x.dtype).eps * float(U.spread)
        narrow = kind != "full" or b.x.shape[1] <= min(128, 24 + 8 * len(U.weights))  # measured: where features win
        if b.observed is None and narrow and error <= LIMIT[b.x.dtype.name]:
            return rows.by_features(G, b.x, U.shift, b.w, moments)
        return rows.by_components(G, b.x, U.shift, b.w, b.observed, moments)

    # ---------------------------------------------------------------- the start

    def _first(self, sample: Block, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, Stats]:
        """Origin, the sample's rows about it and their weights, and the moments of a first assignment of them."""
        in_range(sample.x)
        shift = mean(sample).astype(sample.x.dtype).astype(np.float64)  # blocks in that precision subtract the same
        x = sample.x.astype(np.float64) - shift
        if sample.observed is not None:
            x *= sample.observed  # the mean, for the start alone
        w = np.ones(len(x)) if sample.w is None else sample.w
        x, w = x[w > 0], w[w > 0]
        z = self._assignment(x, w, shift, rng) * w[:, None]
        kind, N, A = self.covariance_type, z.sum(axis=0), z.T @ x
        if kind == "full":
            mine = [(z[:, k] > 0).nonzero()[0] for k in range(len(N))]
            B = np.array([rows.pack((x[i] * z[i, k, None]).T @ x[i]) for k, i in enumerate(mine)])
        elif kind == "tied":
            B = rows.pack((x * z.sum(axis=1, keepdims=True)).T @ x)
        else:
            B = z.T @ (x * x)
            B = B if kind == "diag" else B.sum(axis=1)
        return shift, x, w, Stats(N, A, B)

    def _assignment(self, x: np.ndarray, w: np.ndarray, shift: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """First responsibilities of complete rows."""
        K = self.n_components
        if self.init_params == "random":
            z = rng.random((len(x), K))
            return np.asarray(z / z.sum(axis=1, keepdims=True))
        if self.init_params == "random_from_data":
            centres = x[rng.choice(len(x), K, replace=len(x) < K, p=w / w.sum())]
            return np.eye(K)[((centres**2).sum(axis=1) - 2.0 * x @ centres.T).argmin(axis=1)]
        return np.eye(K)[clusters(x, w, K, rng, PASSES if self.init_params == "kmeans" else 0)]

    # ---------------------------------------------------------------- covariances

    def _floor(self) -> float:
        shape = getattr(self, "_shape", None)
        return max(1e-12, 10.0 * float(np.finfo(np.float64 if shape is None else shape.dtype).eps))

    def _floored(self, raw: np.ndarray, second: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ = raw + ridge·I and its factors; `second` are the mean squares of which raw is a small difference."""
        K, d, _ = raw.shape
        covariances = raw + ridge * np.eye(d)
        factors, floored = np.empty_like(raw), np.zeros(K, np.int64)
        for k in range(K):
            L, failed = dpotrf(covariances[k], lower=1)
            if failed:
                square = np.diagonal(second[k])
                if (square < -DEAD * np.abs(second[k]).max()).any():
                    raise np.linalg.LinAlgError("a negative mean square")
                scale = np.sqrt(np.maximum(square, 1e-16 * square.max()))
                scale[scale == 0] = 1.0
                values, axes = np.linalg.eigh(raw[k] / np.outer(scale, scale))
                if values[0] < -INFEASIBLE:
                    raise np.linalg.LinAlgError("a covariance that is not positive definite")
                axes = axes * scale[:, None]
                covariances[k] = (axes * np.maximum(values, self._floor() * d)) @ axes.T + ridge * np.eye(d)
                floored[k] = 1
                L = cholesky(covariances[k], lower=True)
            factors[k] = dtrtri(L, lower=1)[0].T
        return covariances, factors, floored

    def _floored_variances(
        self, raw: np.ndarray, second: np.ndarray, ridge: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variances = raw + ridge
        low = variances <= 0
        if low.any():
            if (raw < -INFEASIBLE * np.abs(second)).any() or (second < 0).any():
                raise np.linalg.LinAlgError("a negative variance")
            floor = self._floor() * np.maximum(second, 1e-16 * second.max())
            variances = np.where(low, np.maximum(floor, np.finfo(np.float64).tiny ** 0.5), variances)
        floored = np.asarray(low.reshape(len(low), -1).any(axis=1), dtype=np.int64)
        return variances, 1.0 / np.sqrt(variances), floored

    def _complete(self, U: Any) -> Any:
        """The parts with what follows from weights, means and factors."""
        kind = self.covariance_type
        spread = np.array(rows.spread(kind, U.means, U.covariances, U.factors))
        return U._replace(natural=rows.natural(kind, U.weights, U.means, U.factors), spread=spread)

    # ---------------------------------------------------------------- what comes out

    def publish(self, fit: Fit) -> None:
        """Set weights_, means_, covariances_ and their kin."""
        super().publish(fit)
        U, kind = fit.U, self.covariance_type
        self.weights_, self.means_, self.covariances_ = U.weights, U.means + U.shift, U.covariances
        self.precisions_cholesky_ = U.factors
        self.precisions_ = U.factors @ np.swapaxes(U.factors, -1, -2) if kind in ("full", "tied") else U.factors**2

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """The mean row of each mixture of responsibilities."""
        return np.asarray(z @ U.means + U.shift * z.sum(axis=1, keepdims=True))

    def _n_parameters(self) -> int:
        K, d = map(int, self.means_.shape)
        covariance = {"full": K * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": K * d, "spherical": K}
        return covariance[self.covariance_type] + K * d + K - 1

    def _draw(self, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        U = self._parts_
        K, d = U.means.shape
        centre = U.means[k] + U.shift
        if self.covariance_type in ("full", "tied"):
            return rng.multivariate_normal(centre, np.broadcast_to(U.covariances, (K, d, d))[k], n)
        return np.asarray(centre + rng.standard_normal((n, d)) * np.sqrt(U.covariances[k]))


def moments_of(kind: str, N: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> Stats:
    """The statistics of N_k rows of each Gaussian."""
    A = N[:, None] * means
    if kind == "full":
        return Stats(N, A, rows.pack(N[:, None, None] * (covariances + means[:, :, None] * means[:, None, :])))
    if kind == "tied":
        return Stats(N, A, rows.pack(N.sum() * covariances + A.T @ means))
    if kind == "diag":
        return Stats(N, A, N[:, None] * (covariances + means**2))
    return Stats(N, A, N * (means.shape[1] * covariances + (means**2).sum(axis=1)))


def missing(G: rows.Gaussians, b: Block, shift: np.ndarray, moments: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows with missing cells under full or tied covariances, in float64."""
    from unmix.kernels.gaussian_missing import patterns

    K, d = G.means.shape
    means = G.means.astype(np.float64)
    P = np.ascontiguousarray(np.broadcast_to(G.factors, (K, d, d)), dtype=np.float64)
    x, observed = (b.x - shift).astype(np.float64), np.ascontiguousarray(b.observed)
    w = np.ones(len(x)) if b.w is None else b.w
    packed = np.packbits(observed, axis=1)
    order = np.lexsort(packed.T)  # rows of one pattern stand together
    changes = (packed[order[1:]] != packed[order[:-1]]).any(axis=1)
    first = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(x)]])
    log_weights = np.log(np.maximum(G.weights, rows.TINY), dtype=np.float64)
    log_dets = rows.log_det("full", P, d)
    z, log_p = np.empty((len(x), K)), np.empty(len(x))
    N, A, B = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    given = (log_weights, log_dets, means, P @ P.transpose(0, 2, 1), P)
    patterns(x, observed, order, first, w, *given, moments, z, log_p, N, A, B)
    z, log_p = z.astype(b.x.dtype, copy=False), log_p.astype(b.x.dtype, copy=False)
    if not moments:
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
        if kind in ("full", "tied"):
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


def as_matrices(kind: str, covariances: np.ndarray, K: int, d: int) -> np.ndarray:
    """Covariances as (K, d, d)."""
    if kind in ("full", "tied"):
        return np.broadcast_to(covariances, (K, d, d)).copy()
    return np.eye(d) * (covariances[:, None, :] if kind == "diag" else covariances[:, None, None])


def in_shape_of(kind: str, full: np.ndarray) -> np.ndarray:
    """Full covariances in the shape of a kind."""
    if kind == "full":
        return full
    variances = np.diagonal(full, axis1=1, axis2=2)
    return variances.copy() if kind == "diag" else variances.mean(axis=1)


def nearest(kind: str, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> tuple[int, int]:
    """The two Gaussians that lose least when one of their mean and covariance stands for both.

    The loss is at most ½ [(π_a + π_b) log|Σ_ab| − π_a log|Σ_a| − π_b log|Σ_b|] (Runnalls 2007).
    """
    w, full = np.maximum(weights, 1e-300), as_matrices(kind, covariances, *means.shape)
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


def factors_of_covariances(kind: str, covariances: np.ndarray) -> np.ndarray:
    """P with P Pᵀ = Σ⁻¹, upper triangular."""
    good = np.isfinite(covariances).all()
    if kind in ("diag", "spherical"):
        if not (good and (covariances > 0).all()):
            raise ValueError("covariances holds a number that is not positive: give variances")
        return np.asarray(1.0 / np.sqrt(covariances))
    one = covariances.reshape(-1, *covariances.shape[-2:])
    lower = [dpotrf(a, lower=1) for a in one]
    if not good or any(failed for _, failed in lower) or not np.allclose(one, one.transpose(0, 2, 1)):
        raise ValueError("covariances is not symmetric and positive definite: give covariances")
    return np.array([dtrtri(L, lower=1)[0].T for L, _ in lower]).reshape(covariances.shape)


def factors_of_precisions(kind: str, precisions: np.ndarray) -> np.ndarray:
    """P with P Pᵀ = the given precisions, upper triangular."""
    if kind in ("diag", "spherical"):
        if not (precisions > 0).all():
            raise ValueError("precisions_init holds a number that is not positive: give inverse variances")
        return np.asarray(np.sqrt(precisions))
    symmetric = np.allclose(precisions, np.swapaxes(precisions, -1, -2))
    try:
        lower = np.linalg.cholesky(precisions[..., ::-1, ::-1])  # of reversed columns, so that P is upper triangular
    except np.linalg.LinAlgError:
        symmetric = False
    if not symmetric:
        raise ValueError("precisions_init is not symmetric and positive definite: give inverse covariances")
    return np.ascontiguousarray(lower[..., ::-1, ::-1])


def covariances_of_factors(kind: str, factors: np.ndarray) -> np.ndarray:
    """Σ of factors P with P Pᵀ = Σ⁻¹."""
    if kind in ("diag", "spherical"):
        return factors**-2.0
    one = factors.reshape(-1, *factors.shape[-2:])
    inverse = np.array([solve_triangular(P, np.eye(len(P)), lower=False) for P in one])
    return np.asarray((inverse.transpose(0, 2, 1) @ inverse).reshape(factors.shape))
