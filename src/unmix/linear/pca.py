"""Principal component analysis: the directions of largest variance, x ≈ zV + μ, and their Gaussian model.

local    z = (x − μ) Vᵀ      loss = |x − μ − zV|²
stats    n, Σ x, Σ x xᵀ      update   V = leading eigenvectors of the covariance       [moments: one pass, then no data]

Where the smaller side of X is its rows, the n×n Gram matrix has the same spectrum (solve: dual). Where both sides are
large, subspace iteration with some more directions than asked for (Halko, Martinsson & Tropp 2011), a pass a step:

local    Y = (x − μ) Qᵀ
stats    n, Σ x, Σ |x|², Y' = Σ Yᵀ(x − μ)         update   Q = leading eigenvectors of Y'ᵀ (Y'Qᵀ)⁻¹ Y'         [Nyström]

With missing cells the model is x ~ N(μ, V diag(λ − σ²) Vᵀ + σ²I), fitted by EM over the observed cells (`_latent.py`).
Inside, variances are divided by n; what is published is divided by n − 1.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from scipy.special import gammaln
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state

from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.layout import Shape
from unmix.engine.moments import Moments, block_rows, is_sparse, moments
from unmix.engine.sample import mean
from unmix.engine.trace import Fit
from unmix.linear import _latent
from unmix.linear._latent import CellLoadings, Loadings, canonical
from unmix.model import Model

EXACT = 2000  # up to this smaller side the whole spectrum is cheaper than passes over the rows
DRAWS = 20  # random data sets of parallel analysis


class Parts(NamedTuple):
    """Mean, axes (rows) with their variances, mean variance of the other directions, total variance; all over n."""

    shift: np.ndarray
    mean: np.ndarray
    components: np.ndarray
    variances: np.ndarray
    noise: np.ndarray
    total: np.ndarray
    step: np.ndarray
    seed: np.ndarray


class Subspace(Parts):
    """Parts that subspace iteration improves: no d×d matrix is ever made."""

    __slots__ = ()


class Image(NamedTuple):
    """Statistics of subspace iteration: n, Σ (x−s), Σ |x−s|² and Q Σ (x−s)(x−s)ᵀ."""

    n: float
    sum: np.ndarray
    square: float
    image: np.ndarray


class PCA(Model):
    """Principal component analysis.

    Parameters
    ----------
    n_components : int, float, "mle", "parallel" or None, default=None
        How many components: a number; the share of the variance that they explain; as many as Minka's evidence
        ("mle") or parallel analysis (each has more variance than unrelated columns show by chance) finds; None for all.
    copy : bool, default=True
        Has no effect: X is never changed.
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
        Has no effect: every iteration is orthonormalised.
    random_state : int, RandomState or None, default=None
        Seed of "randomized", "arpack" and parallel analysis.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Principal axes, by falling variance; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (k,)
        Variance along each axis (over n − 1, or over Σw − 1 with weights), its share of the total, and the singular
        value of the centred rows.
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
    sparse = True
    missing = True
    accelerate = True

    _bessel: float = 1.0  # n/(n − 1)

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

    # -- which way --

    def check(self, shape: Shape) -> None:
        """Whether so many components exist, and whether the solver can count them."""
        k, least = self.n_components, min(shape.n, shape.d)
        if isinstance(k, Integral) and k > least:
            raise ValueError(
                f"n_components={k} must be between 0 and min(n_samples, n_features)={least} with "
                f"svd_solver={self.svd_solver!r}: take at most {least}"
            )
        if k == "mle" and shape.n < shape.d:
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features: try 'parallel'")
        if self.svd_solver in ("randomized", "arpack") and not (k is None or isinstance(k, Integral)):
            raise ValueError(f"n_components={k!r} cannot be counted with svd_solver={self.svd_solver!r}: give a number")

    def route(self, shape: Shape) -> str:
        """The covariance, the Gram matrix or a singular value decomposition; passes where both sides are large."""
        if not shape.complete or self.svd_solver == "randomized":
            return "rows"
        if self.svd_solver == "arpack" or (self.svd_solver == "full" and not shape.sparse and shape.in_memory):
            return "direct"
        few = isinstance(self.n_components, Integral) and 10 * self.n_components < min(shape.n, shape.d)
        if self.svd_solver == "auto" and few and min(shape.n, shape.d) > EXACT:
            return "rows"
        return "direct" if shape.d > shape.n and shape.in_memory and self.svd_solver == "auto" else "moments"

    def block_rows(self, shape: Shape) -> int | None:
        """Larger blocks where the d×d moments are large."""
        return block_rows(shape) if self.route(shape) == "moments" else None

    def sample_rows(self, shape: Shape) -> int:
        """Where moments are enough, the sample only gives their origin."""
        return 1024 if self.route(shape) == "moments" else super().sample_rows(shape)

    def passes(self, route: str) -> int:
        """Enough for EM, which alone needs many: `settled` ends the other ways."""
        return 1000

    def _power(self) -> int:
        if self.iterated_power != "auto":
            return int(self.iterated_power)
        least = min(self._shape.n, self._shape.d)
        return 7 if isinstance(self.n_components, Integral) and self.n_components < 0.1 * least else 4

    def tolerance(self) -> float:
        """EM ends when a pass gains little; nothing else is iterated until it converges."""
        return 0.0 if self._complete else float(self.tol or 1e-6)

    def settled(self, U: Any) -> bool | None:
        """The closed form is there after one step, subspace iteration after its power iterations."""
        if isinstance(U, CellLoadings):
            return None
        return int(U.step) > (self._power() if isinstance(U, Subspace) else 0)

    def rate(self, step: int, weight: float, seen: float) -> float:
        """Moments are exact, so that every row counts the same, however long ago it was seen."""
        return weight / seen if isinstance(self._parts_, Parts) else super().rate(step, weight, seen)

    @property
    def _complete(self) -> bool:
        return not hasattr(self, "_shape") or self._shape.complete

    def _worker(self) -> Any:
        worker = super()._worker()
        worker._bessel = self._bessel
        return worker

    # -- the model --

    def start(self, sample: Block, rng: np.random.Generator) -> Any:
        """No axes yet, or random ones for subspace iteration, or those of the filled sample for EM."""
        d = sample.x.shape[1]
        shift = mean(sample).astype(sample.x.dtype).astype(np.float64)
        if sample.observed is not None or not self._complete:
            return self._first_loadings(sample, shift)
        seed = rng.integers(2**32, size=4)
        shape = getattr(self, "_shape", None)
        empty = Parts(shift, shift, np.zeros((0, d)), np.zeros(0), np.array(0.0), np.array(0.0), np.array(0), seed)
        if shape is None or (self.route(shape) != "rows" and d <= 2 * EXACT):
            return empty
        least = min(shape.n, d)
        wide = (self.n_components if isinstance(self.n_components, Integral) else least) + self.n_oversamples
        Q = np.linalg.qr(rng.standard_normal((d, min(wide, least))))[0].T
        return Subspace(*empty._replace(components=Q, variances=np.zeros(len(Q))))

    def _first_loadings(self, sample: Block, shift: np.ndarray) -> CellLoadings:
        n, d = sample.x.shape
        k = min(getattr(self, "_shape", Shape(n, d, sample.x.dtype)).n, d) - 1
        k = min(self.n_components, max(k, 1)) if isinstance(self.n_components, Integral) else max(k, 1)
        if (size := 8 * d * (k + 1) ** 2) > get_config().budget:
            raise ValueError(
                f"n_components={self.n_components!r} with missing cells needs statistics of {size / 1e9:.1f} GB: give "
                "a smaller number of components"
            )
        step = max(1, n // (20 * d + 1000))
        seen = np.ones(sample.x.shape, bool) if sample.observed is None else sample.observed
        x = ((sample.x - shift) * seen)[::step].astype(np.float64)
        S = x.T @ x / max(1.0, seen[::step].mean() * len(x))
        values, V = leading(S, k)
        noise = max(float(np.trace(S) - values.sum()) / max(1, d - k), 1e-3 * float(np.trace(S)) / d, 1e-12)
        floor = np.full(d, (1e-10 if sample.x.dtype == np.float64 else 1e-7) * max(float(np.trace(S)) / d, 1e-300))
        W = np.sqrt(np.maximum(values - noise, 1e-3 * noise))[:, None] * V
        return CellLoadings(shift, shift, W, np.full(d, noise), floor, np.eye(k))

    def local(self, U: Any, b: Block) -> Local:
        """z, statistics and squared error of rows (with EM: −log p), or of the moments that stand for them."""
        if isinstance(U, CellLoadings):
            return Local(self.encode(U, b), *_latent.local(U, b)[1:])
        if isinstance(b.x, Moments):
            s = b.x.about(U.mean - U.shift)
            V = U.components
            return Local(None, b.x, float(np.trace(s.scatter) - np.einsum("aj,aj->", V @ s.scatter, V)))
        if isinstance(U, Subspace):
            return self._image(U, b)
        stats = moments(b, U.shift) if b.observed is None else _latent.expected_moments(gaussian(U), b)
        x, z, square = self._project(U, b)
        if x is None:
            loss = square - np.einsum("ia,ia->i", z, z)
        else:
            r = x - z @ U.components
            loss = np.einsum("ij,ij->i", r, r if b.observed is None else r * b.observed)
        return Local(self._white(U, z), stats, b.sum(loss))

    def _image(self, U: Subspace, b: Block) -> Local:
        """Y = (x−μ)Qᵀ and its product with the centred rows, moved to the origin; CSR rows are centred implicitly."""
        x, y, square = self._project(U, b)
        yw = b.weighted(y)
        total = yw.sum(axis=0, dtype=np.float64)
        if x is None:
            image = np.asarray((b.x.T @ yw).T, dtype=np.float64) - np.outer(total, U.mean)
            xw = b.x.sum(axis=0, dtype=np.float64) if b.w is None else b.w @ b.x
            s = np.asarray(xw, dtype=np.float64).ravel() - b.total * U.mean
        else:
            image = (yw.T @ x).astype(np.float64)
            s = np.ones(len(x), x.dtype) @ x if b.w is None else b.w.astype(x.dtype) @ x
            square = np.einsum("ij,ij->i", x, x)
        n, norm = b.total, b.sum(square)
        loss = norm - b.sum(np.einsum("ia,ia->i", y, y))
        delta = (U.mean - U.shift).astype(np.float64)
        q = U.components.astype(np.float64) @ delta
        image = image + np.outer(total, delta) + np.outer(q, s + n * delta)
        k = len(self._axes(U)[0])
        stats = Image(n, s + n * delta, norm + 2.0 * float(s @ delta) + n * float(delta @ delta), image)
        return Local(self._white(U, y[:, :k]), stats, loss)

    def _project(self, U: Parts, b: Block) -> tuple[Any, np.ndarray, Any]:
        """Centred rows (None for CSR), z on all axes of U, and |x − μ|² (for CSR)."""
        x = b.x
        if is_sparse(x):
            z = x @ U.components.T - U.mean @ U.components.T
            return None, z, x.multiply(x).sum(axis=1) - 2.0 * (x @ U.mean) + U.mean @ U.mean
        x = x - U.mean
        if b.observed is not None:  # cells that were not observed: what the Gaussian model expects of them
            G, seen = gaussian(U), b.observed
            z = [_latent.posterior(G, c.x, c.observed).mean.T for c in _latent.chunks(b, len(G.loadings))]
            x = np.where(seen, x, np.concatenate(z) @ G.loadings).astype(b.x.dtype)
        return x, x @ U.components.T, None

    def update(self, U: Any, stats: Any) -> Any:
        """Axes from the moments, from the image of a subspace, or by a step of EM."""
        if isinstance(U, CellLoadings):
            return _latent.update(U, stats, isotropic=True)
        centre = stats.sum / stats.n
        if isinstance(stats, Image):
            return self._iterate(U, stats, centre)
        d = len(centre)
        S = stats.centred()[1] / stats.n
        if isinstance(self.n_components, Integral) and 8 * self.n_components <= d:
            values, V = leading(S, int(self.n_components))
            k = len(values)
        else:
            values, V = leading(S, d)
            k = self._count(values, V, np.diag(S), stats.n, U.seed)
        total = max(float(np.trace(S)), 0.0)
        return U._replace(
            mean=U.shift + centre, components=V[:k], variances=values[:k], total=np.array(total), step=U.step + 1,
            noise=np.array(rest(total, values[:k], stats.n, d)),
        )  # fmt: skip

    def _iterate(self, U: Subspace, s: Image, centre: np.ndarray) -> Subspace:
        """Nyström's approximation of the covariance from its product with Q."""
        Q = U.components
        Y = s.image / s.n - np.outer(Q @ centre, centre)
        small = Y @ Q.T
        t, P = np.linalg.eigh((small + small.T) / 2)
        use = t > max(t[-1], 0.0) * len(Q) * np.finfo(float).eps
        root = (P[:, use] / np.sqrt(t[use])).T @ Y
        _, sigma, V = np.linalg.svd(root, full_matrices=False)
        lost = len(Q) - len(sigma)
        if lost:  # fewer directions than asked for: any others that are orthogonal
            V = np.linalg.qr(np.vstack([V, Q]).T)[0].T[: len(Q)]
            sigma = np.append(sigma, np.zeros(lost))
        V = V * canonical(V)[:, None]
        total = max(s.square / s.n - float(centre @ centre), 0.0)
        new = U._replace(
            mean=U.shift + centre, components=V, variances=sigma**2, total=np.array(total), step=U.step + 1
        )
        kept = self._axes(new)[1]
        return new._replace(noise=np.array(rest(total, kept, s.n, V.shape[1])))

    def solve(self, x: Any, w: np.ndarray | None, rng: np.random.Generator) -> Subspace:
        """A singular value decomposition of the centred rows, or of the smaller of the matrices they make."""
        (n, d), weight = x.shape, float(x.shape[0] if w is None else w.sum())
        centre = mean(Block(x, w))
        half = None if w is None else np.sqrt(w)
        k = min(n, d) if not isinstance(self.n_components, Integral) else int(self.n_components)
        square = (x.multiply(x) if is_sparse(x) else np.square(x, dtype=np.float64)).T @ (
            np.ones(n) if w is None else w
        )
        var = np.maximum(np.asarray(square).ravel() / weight - centre * centre, 0.0)
        if is_sparse(x) or self.svd_solver == "arpack":
            rows = centred_operator(x, centre, half)
            dense = None
        else:
            dense = (x - centre.astype(x.dtype)).astype(np.float64, copy=False)
            if half is not None:
                dense = dense * half[:, None]
            var = np.einsum("ij,ij->j", dense, dense) / weight
        if self.svd_solver == "arpack" and k < min(n, d):
            _, sigma, V = scipy.sparse.linalg.svds(rows, k=k, tol=self.tol, v0=rng.uniform(-1, 1, min(n, d)))
            order = np.argsort(-sigma)
            values, V = sigma[order] ** 2 / weight, V[order]
        elif self.svd_solver == "full" and dense is not None:
            _, sigma, V = scipy.linalg.svd(dense, full_matrices=False, check_finite=False)
            values = sigma**2 / weight
        else:
            if dense is None:
                gram = gram_of(x, centre, half)
                image = rows.rmatmat
            else:
                gram = dense @ dense.T
                image = dense.T.__matmul__
            values, left = leading(gram / weight, min(n, d) if not isinstance(self.n_components, Integral) else k)
            # axes of positive variance come out as they are; those of none, as any that are orthogonal
            V = scipy.linalg.qr(image(left.T), mode="economic", check_finite=False)[0].T
        k = self._count(values, V, var, weight, rng.integers(2**32, size=4))
        V = V[:k] * canonical(V[:k])[:, None]
        total = float(var.sum())
        noise = rest(total, values[:k], weight, d)
        seed = np.zeros(4, np.int64)
        return Subspace(centre, centre, V, values[:k], np.array(noise), np.array(total), np.array(1), seed)

    def _count(self, values: np.ndarray, V: np.ndarray, var: np.ndarray, n: float, seed: np.ndarray) -> int:
        """How many components n_components asks for, given the whole spectrum."""
        k, most = self.n_components, min(len(values), int(np.ceil(n)))
        if k is None or isinstance(k, Integral):
            return most if k is None else min(int(k), most)
        if k == "mle":
            return minka(values, n)
        if k == "parallel":
            return parallel(values, V, var, n, np.random.default_rng(seed))
        share = np.cumsum(values) / max(float(values.sum()), 1e-300)
        return min(int(np.searchsorted(share, k, side="right")) + 1, most)

    def _axes(self, U: Any) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Axes kept, their variances, the mean variance of the others and the total."""
        if not isinstance(U, CellLoadings):
            k = self.n_components if isinstance(U, Subspace) and isinstance(self.n_components, Integral) else None
            return U.components[:k], U.variances[:k], float(U.noise), float(U.total)
        W = U.loadings.astype(np.float64)
        d, noise = W.shape[1], float(U.noise[0])
        t, P = np.linalg.eigh(W @ W.T)
        t, V = t[::-1], P[:, ::-1].T @ W
        V = V / np.sqrt(np.maximum(t, 1e-300))[:, None]
        V = V * canonical(V)[:, None]
        values = np.maximum(t, 0.0) + noise
        total = float(values.sum() + (d - len(values)) * noise)
        if not (self.n_components is None or isinstance(self.n_components, Integral)):
            n = max(float(self._shape.weight), 1.0) if hasattr(self, "_shape") else 1.0
            var = np.einsum("aj,aj->j", W, W) + noise
            whole = np.append(values, np.full(d - len(values), noise))
            k = min(self._count(whole, V, var, n, np.zeros(4, np.int64)), len(values))
            noise = float(whole[k:].mean())
            V, values = V[:k], values[:k]
        return V.astype(U.loadings.dtype), values.astype(U.loadings.dtype), noise, total

    def _plain(self, U: Any) -> Parts:
        """Parts as mean, axes and variances, whichever way they were found."""
        V, values, noise, total = self._axes(U)
        kind = V.dtype
        return Parts(
            U.shift, U.mean, V, values, np.array(noise, kind), np.array(total, kind), np.array(1), np.zeros(4, np.int64)
        )

    def _white(self, U: Any, z: np.ndarray) -> np.ndarray:
        if not self.whiten:
            return z
        scale = np.sqrt(self._axes(U)[1] * self._bessel)
        return z / np.maximum(scale, np.finfo(z.dtype).eps).astype(z.dtype)

    def encode(self, U: Any, b: Block) -> np.ndarray:
        """Projection on the axes."""
        return self._white(U, self._project(self._plain(U), b)[1])

    def decode(self, U: Any, z: np.ndarray) -> np.ndarray:
        """Rows of the plane that the axes span."""
        V, values, _, _ = self._axes(U)
        if self.whiten:
            z = z * np.sqrt(values * self._bessel).astype(z.dtype)
        return z @ V.astype(z.dtype, copy=False) + U.mean

    def log_density(self, U: Any, b: Block) -> np.ndarray:
        """Log-density of each row under the Gaussian model."""
        P = self._plain(U)
        G = gaussian(P, self._bessel)
        if b.observed is not None:
            chunks = _latent.chunks(b, len(G.loadings))
            return np.concatenate([-_latent.posterior(G, c.x, c.observed).loss for c in chunks]).astype(b.x.dtype)
        d, k = len(P.mean), len(P.components)
        noise = float(G.noise[0])
        values = np.maximum(P.variances.astype(np.float64) * self._bessel, noise)
        x, z, square = self._project(P, b)
        inside = (z.astype(np.float64) ** 2) @ (1.0 / values) if k else np.zeros(len(z))
        if k == d:
            outside = np.zeros(len(z))
        elif x is None:
            outside = np.maximum(square - np.einsum("ia,ia->i", z, z), 0.0) / noise
        else:
            r = x - z @ P.components
            outside = np.einsum("ij,ij->i", r, r) / noise
        constant = d * np.log(2 * np.pi) + np.log(values).sum() + (d - k) * np.log(noise)
        return (-0.5 * (inside + outside + constant)).astype(b.x.dtype)  # type: ignore[no-any-return]

    def publish(self, fit: Fit) -> None:
        """Publish axes and variances under scikit-learn's names, over n − 1."""
        V, values, noise, total = self._axes(fit.U)
        n = fit.weight
        self._bessel = n / (n - 1.0) if n > 1.0 else 1.0
        self.components_ = V
        self.explained_variance_ = values * self._bessel
        self.explained_variance_ratio_ = values / total if total > 0 else np.zeros(len(values))
        self.singular_values_ = np.sqrt(values * n)
        self.mean_ = fit.U.mean
        self.noise_variance_ = noise * self._bessel
        self.n_components_ = len(V)
        self.n_samples_ = round(n) if fit.message == "online" else fit.n_rows

    # -- what a user may ask --

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of the rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        score : float
        """
        logp = self.score_samples(X)
        w = None if sample_weight is None else _check_sample_weight(sample_weight, logp, dtype=np.float64)
        return float(np.average(logp.astype(np.float64), weights=w))

    def _n_parameters(self) -> int:
        """Free numbers of the Gaussian that PCA stands for: axes, variances along them and of the rest, mean."""
        k, d = self.components_.shape
        return d * k - k * (k - 1) // 2 + 1 + d

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model, V diag(λ − σ²) Vᵀ + σ²I.

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        check_is_fitted(self)
        V, values = self.components_, np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        return (V.T * values) @ V + self.noise_variance_ * np.eye(V.shape[1], dtype=V.dtype)  # type: ignore[no-any-return]

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance, by the inversion lemma.

        Returns
        -------
        precision : ndarray of shape (d, d)
        """
        check_is_fitted(self)
        G = gaussian(self._plain(self._parts_), self._bessel)
        noise = G.noise[0]
        V, values = self.components_, np.maximum(self.explained_variance_, noise)
        inside = 1.0 / values - 1.0 / noise
        return ((V.T * inside) @ V + np.eye(V.shape[1]) / noise).astype(V.dtype)  # type: ignore[no-any-return]

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """Return new rows drawn from the Gaussian model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, d)
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state)
        (k, d), noise = self.components_.shape, self.noise_variance_
        z = rng.standard_normal((n_samples, k)) * np.sqrt(np.maximum(self.explained_variance_ - noise, 0.0))
        x = self.mean_ + z @ self.components_ + rng.standard_normal((n_samples, d)) * np.sqrt(noise)
        return x.astype(self.components_.dtype)  # type: ignore[no-any-return]

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


# -- the equations --


def leading(S: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a covariance, falling and not negative, and their eigenvectors as rows."""
    d = len(S)
    if 8 * k <= d and k > 0:
        values, V = scipy.linalg.eigh(S, subset_by_index=[d - k, d - 1], check_finite=False)
    else:
        values, V = np.linalg.eigh(S)
        values, V = values[d - k :], V[:, d - k :]
    V = V[:, ::-1].T
    return np.maximum(values[::-1], 0.0), V * canonical(V)[:, None]


def rest(total: float, values: np.ndarray, n: float, d: int) -> float:
    """Mean variance of the directions that were left out: the σ² of probabilistic PCA."""
    others = min(int(np.ceil(n)), d) - len(values)
    return max(total - float(values.sum()), 0.0) / others if others > 0 else 0.0


def gaussian(U: Parts, factor: float = 1.0) -> Loadings:
    """The latent model with the covariance of the parts times a factor; σ² not below what rounding leaves."""
    V, values, noise = U.components, U.variances * factor, float(U.noise) * factor
    if (
        len(V) == V.shape[1]
    ):  # nothing is left out: the smallest variance may stand for all the directions that share it
        noise = float(values.min())
    precision = np.finfo(V.dtype).eps
    noise = max(noise, precision * float(values.max(initial=float(U.total) * factor)), 1e-300)
    W = np.sqrt(np.maximum(values - noise, 0.0))[:, None] * V
    d = V.shape[1]
    return Loadings(U.shift, U.mean, W, np.full(d, noise), np.zeros(d), np.eye(len(V)))


def centred_operator(x: Any, centre: np.ndarray, half: np.ndarray | None) -> Any:
    """√w (x − μ) as an operator; x stays as it is."""
    h = np.ones(x.shape[0]) if half is None else half
    return scipy.sparse.linalg.LinearOperator(
        x.shape, dtype=np.float64,
        matvec=lambda v: h * (x @ v.ravel() - centre @ v.ravel()),
        rmatvec=lambda u: x.T @ (h * u.ravel()) - centre * (h @ u.ravel()),
        matmat=lambda v: h[:, None] * (x @ v - centre @ v),
        rmatmat=lambda u: x.T @ (h[:, None] * u) - np.outer(centre, h @ u),
    )  # fmt: skip


def gram_of(x: Any, centre: np.ndarray, half: np.ndarray | None) -> np.ndarray:
    """√w (x − μ)(x − μ)ᵀ √w of CSR or dense rows, centred implicitly."""
    G = x @ x.T
    G = (G.toarray() if is_sparse(x) else G).astype(np.float64)
    g = x @ centre
    G += float(centre @ centre) - g[:, None] - g
    return G if half is None else half[:, None] * G * half


def minka(values: np.ndarray, n: float) -> int:
    """The number of components of largest evidence (Minka 2001, Laplace's approximation)."""
    d = len(values)
    values = np.maximum(values, np.finfo(float).eps * max(float(values[0]), 1e-300))
    best, best_k = -np.inf, 0
    for k in range(d):
        noise = values[k:].mean()
        shrunk = np.append(values[:k], np.full(d - k, noise))
        i = np.arange(1, k + 1)
        halves = (d - i + 1) / 2.0
        prior = -k * np.log(2.0) + float((gammaln(halves) - halves * np.log(np.pi)).sum())
        m = d * k - k * (k + 1) / 2.0
        pairs = np.triu(np.ones((k, d), bool), 1)
        gaps = (1.0 / shrunk[None, :] - 1.0 / shrunk[:k, None])[pairs] * (values[:k, None] - values[None, :])[pairs]
        if (gaps <= 0).any():
            continue
        curvature = float(np.log(gaps).sum()) + m * np.log(n)
        fit = -0.5 * n * (float(np.log(values[:k]).sum()) + (d - k) * np.log(noise))
        evidence = prior + fit + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * curvature - 0.5 * k * np.log(n)
        if evidence > best:
            best, best_k = evidence, k
    return best_k


def parallel(values: np.ndarray, V: np.ndarray, var: np.ndarray, n: float, rng: np.random.Generator) -> int:
    """How many leading variances exceed the largest that unrelated Gaussian columns show by chance.

    Horn's (1965) parallel analysis with deflation (Dobriban & Owen 2019): the unrelated columns have the variances that
    the components before leave, so that a strong component does not hide a weaker one.
    """
    d, free = len(var), max(int(np.ceil(n)) - 1, 1)
    left, m = var.copy(), min(free, d)
    for t, (value, v) in enumerate(zip(values[:m], V, strict=False)):
        chance = np.empty(DRAWS)
        for i in range(DRAWS):
            if free >= d:  # Bartlett's factor of a Wishart matrix: no n×d data are drawn
                A = np.tril(rng.standard_normal((d, d)), -1)
                A[np.diag_indices(d)] = np.sqrt(rng.chisquare(free - np.arange(d)))
            else:
                A = rng.standard_normal((d, free))
            A *= np.sqrt(left * (m / (m - t)))[:, None]  # what is left lies in m − t dimensions
            chance[i] = np.linalg.norm(A, 2) ** 2 / n
        if value <= np.quantile(chance, 0.95):
            return t
        left = np.maximum(left - value * v * v, 0.0)
    return min(m, len(values), len(V))
