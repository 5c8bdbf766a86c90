"""Factor analysis:  x = zW + μ + ε,  z ~ N(0, I_k),  ε ~ N(0, diag ψ),  so  x ~ N(μ, Σ),  Σ = WᵀW + diag ψ.

local    log p(x) with M = I + W ψ⁻¹ Wᵀ:  |Σ| = |M| Π ψ_j,   z = M⁻¹ W ψ⁻¹ (x − μ)              [never a d×d inverse]
stats    n, Σ x, Σ x xᵀ                            [the data enter only through these: one pass, then no more data]
update   S = covariance;  ψ^-½ S ψ^-½ = V diag(λ) Vᵀ,  λ descending;  G = Σ_{m>k} v_m v_mᵀ,  R = Σ_{m>k} λ_m v_m v_mᵀ
         the best W given ψ      w_m = (λ_m − 1)₊^½ v_m ψ^½           m ≤ k
         minus twice the log-likelihood per row, profiled:  f(θ) = Σ_{m>k} (λ_m − log λ_m) + const        θ = log ψ
         Newton step in θ        ∇ = diag(G − R)       H = R∘G + Σ_{n≤k} (v_n v_nᵀ) ∘ Σ_{m>k} c_nm v_m v_mᵀ
                                 c_nm = (1 − λ_m)(λ_m + λ_n)/(λ_n − λ_m)

The step is shortened until f falls; where it does not, the EM step  ψ = diag(S − WᵀW)  is taken, which never makes it
worse. EM alone needs ten to a hundred times as many steps. With missing cells: EM cell by cell (`_latent.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.layout import Shape
from unmix.engine.moments import Moments, block_rows, is_sparse, moments
from unmix.engine.sample import mean
from unmix.engine.trace import Fit
from unmix.linear import _latent
from unmix.linear._latent import CellLoadings, Loadings, canonical
from unmix.model import Model


class FactorAnalysis(Model):
    """Factor analysis: correlated columns explained by a few factors, and noise of its own in each column.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of factors; None for as many as there are columns.
    tol : float, default=1e-2
        The fit ends when a step raises the log-likelihood of all rows by no more.
    copy : bool, default=True
        Has no effect: X is never changed.
    max_iter : int, default=1000
        The most steps.
    noise_variance_init : array of shape (d,) or None, default=None
        First guess of ψ; None for one that depends on how well the other columns predict each column.
    svd_method : {"lapack", "randomized"}, default="randomized"
        Has no effect: the decomposition is of a d×d matrix, and exact.
    iterated_power : int, default=3
        Has no effect.
    rotation : {None, "varimax", "quartimax", "promax"}, default=None
        Rotation of the factors towards few large loadings; promax lets the factors correlate.
    random_state : int, RandomState or None, default=0
        Has an effect on which rows of large data the first guess sees.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 0, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "copy": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "noise_variance_init": ["array-like", None],
        "svd_method": [StrOptions({"randomized", "lapack"})],
        "iterated_power": [Interval(Integral, 0, None, closed="left")],
        "rotation": [StrOptions({"varimax", "quartimax", "promax"}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tol: float = 1e-2,
        copy: bool = True,
        max_iter: int = 1000,
        noise_variance_init: Any = None,
        svd_method: str = "randomized",
        iterated_power: int = 3,
        rotation: str | None = None,
        random_state: Any = 0,
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

    # -- the model --

    def check(self, shape: Shape) -> None:
        """Whether there are columns enough."""
        if self.n_components is not None and self.n_components > shape.d:
            raise ValueError(
                f"n_components={self.n_components} is more than the {shape.d} columns of X: take at most {shape.d}"
            )
        if self.noise_variance_init is not None and np.shape(self.noise_variance_init) != (shape.d,):
            raise ValueError(
                f"noise_variance_init has shape {np.shape(self.noise_variance_init)}: give one number for each of the "
                f"{shape.d} columns"
            )

    def route(self, shape: Shape) -> str:
        """Complete rows enter through their moments alone."""
        return "moments" if shape.complete else "rows"

    def block_rows(self, shape: Shape) -> int | None:
        """Larger blocks where the d×d moments are large."""
        return block_rows(shape)

    def unit(self, U: Loadings, first: float) -> float:
        """`tol` counts nats of all rows together."""
        return 1.0 / max(self._shape.weight, 1.0)

    def start(self, sample: Block, rng: np.random.Generator) -> Loadings:
        """Noise from how badly the other columns predict a column, then the best loadings for that noise."""
        d = sample.x.shape[1]
        k = d if self.n_components is None else self.n_components
        step = max(1, sample.x.shape[0] // (20 * d + 1000))
        b = Block(
            sample.x[::step],
            None if sample.w is None else sample.w[::step],
            None,
            None if sample.observed is None else sample.observed[::step],
        )
        shift = mean(sample).astype(sample.x.dtype).astype(np.float64)
        count = np.full(d, b.total)
        if b.observed is None:
            s = moments(b, shift)
        else:
            w = np.ones(len(b.x)) if b.w is None else b.w
            count = np.maximum(w @ b.observed, 1.0)
            s = moments(b._replace(x=(b.x - shift) * b.observed), np.zeros(d))
        S = np.asarray(s.scatter, dtype=np.float64) / np.sqrt(np.outer(count, count))
        var = np.diag(S)
        precision = 1e-6 if sample.x.dtype == np.float64 else 1e-5
        floor = np.where(var > 0, precision * var, 1e-12)
        if self.noise_variance_init is not None:
            noise = np.maximum(np.asarray(self.noise_variance_init, dtype=np.float64), floor)
        else:
            noise = np.maximum(first_noise(S, k, enough=b.observed is None and b.x.shape[0] > 2 * d), floor)
        _, lam, V = profile(S, noise, k)
        kind = Loadings if sample.observed is None and self._complete else CellLoadings
        return kind(shift, shift, best_loadings(noise, lam, V, k), noise, floor, np.eye(k))

    @property
    def _complete(self) -> bool:
        return not hasattr(self, "_shape") or self._shape.complete

    def local(self, U: Loadings, b: Block) -> Local:
        """z, statistics and −log p; of rows, or of the moments that stand for them."""
        if isinstance(b.x, Moments):
            return Local(None, b.x, moments_loss(U, b.x))
        if isinstance(U, CellLoadings):
            z, stats, loss = _latent.local(U, b)
            return Local(z @ U.rotation.astype(z.dtype), stats, loss)
        z, logp = self._rows_of(U, b)
        stats = moments(b, U.shift) if b.observed is None else _latent.expected_moments(U, b)
        return Local(z, stats, -b.sum(logp))

    def update(self, U: Loadings, stats: Any) -> Loadings:
        """A Newton step on the profiled likelihood, or the step of EM where cells are missing."""
        if not isinstance(stats, Moments):
            U = _latent.update(U, stats, isotropic=False)
        else:
            centre, scatter = stats.centred()
            k = len(U.loadings)
            noise, lam, V = newton(scatter / stats.n, U.noise, U.floor, k)
            U = U._replace(mean=U.shift + centre, loadings=best_loadings(noise, lam, V, k), noise=noise)
        return U._replace(rotation=rotate(U.loadings, U.noise, self.rotation))

    def encode(self, U: Loadings, b: Block) -> np.ndarray:
        """The posterior mean of z."""
        return self._rows_of(U, b)[0]

    def log_density(self, U: Loadings, b: Block) -> np.ndarray:
        """The log-density of each row's observed cells."""
        return self._rows_of(U, b)[1]

    def decode(self, U: Loadings, z: np.ndarray) -> np.ndarray:
        """Rows that the factors stand for: z times the loadings, plus the mean."""
        return z @ components(U).astype(z.dtype, copy=False) + U.mean

    def _rows_of(self, U: Loadings, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean of z, and log p, of rows."""
        if b.observed is not None:
            found = [_latent.posterior(U, c.x, c.observed) for c in _latent.chunks(b, len(U.loadings))]
            z = np.concatenate([p.mean.T for p in found]).astype(b.x.dtype)
            return z @ U.rotation.astype(z.dtype), -np.concatenate([p.loss for p in found])
        H, logdet = factor(U)
        x = b.x
        half = (H @ (U.loadings / U.noise)).astype(x.dtype)
        if is_sparse(x):
            y = x @ half.T - U.mean @ half.T
            r = U.mean / U.noise
            quad = x.multiply(x) @ (1.0 / U.noise) - 2.0 * (x @ r) + U.mean @ r - np.einsum("ia,ia->i", y, y)
            z = y @ H.astype(y.dtype)
        else:
            xc = x - U.mean
            z = (xc @ half.T) @ H.astype(half.dtype)
            r = xc - z @ U.loadings
            quad = (r * r) @ (1.0 / U.noise) + np.einsum("ia,ia->i", z, z)
        constant = logdet + np.log(2 * np.pi * U.noise.astype(np.float64)).sum()
        return z @ U.rotation.astype(z.dtype), -0.5 * (quad + quad.dtype.type(constant))

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
        self.components_ = components(U)
        self.factor_covariance_ = U.rotation.T @ U.rotation
        self.noise_variance_ = U.noise
        self.mean_ = U.mean
        common = np.einsum("aj,aj->j", U.loadings, U.loadings)
        self.communalities_ = common / (common + U.noise)
        self.loglike_ = [-s.objective * fit.weight for s in fit.trace[1:] if s.accepted] + [-float(fit.loss)]

    # -- what a user may ask --

    def _n_parameters(self) -> int:
        """Free numbers: loadings up to a rotation, noise variances, mean."""
        k, d = self.components_.shape
        return d * k - k * (k - 1) // 2 + 2 * d

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model, WᵀW + diag ψ.

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        U = self._fitted()
        return (U.loadings.T @ U.loadings + np.diag(U.noise)).astype(self._dtype_)  # type: ignore[no-any-return]

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance, by the inversion lemma.

        Returns
        -------
        precision : ndarray of shape (d, d)
        """
        U = self._fitted()
        half = factor(U)[0] @ (U.loadings / U.noise)
        return (np.diag(1.0 / U.noise) - half.T @ half).astype(self._dtype_)  # type: ignore[no-any-return]

    def _fitted(self) -> Loadings:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self._parts_

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


# -- the equations --


def components(U: Loadings) -> np.ndarray:
    """Loadings of the rotated factors: z rotation · components = z loadings."""
    return np.linalg.solve(U.rotation, U.loadings) if len(U.loadings) else U.loadings


def factor(U: Loadings) -> tuple[np.ndarray, float]:
    """H with HᵀH = (I + W ψ⁻¹ Wᵀ)⁻¹, and log|I + W ψ⁻¹ Wᵀ|, in float64."""
    W, noise = U.loadings.astype(np.float64), U.noise.astype(np.float64)
    L = np.linalg.cholesky(np.eye(len(W)) + (W / noise) @ W.T)
    return scipy.linalg.solve_triangular(L, np.eye(len(W)), lower=True), 2.0 * float(np.log(np.diag(L)).sum())


def moments_loss(U: Loadings, s: Moments) -> float:
    """−Σ log p of the rows that the moments stand for."""
    s = s.about(U.mean - U.shift)
    H, logdet = factor(U)
    half = H @ (U.loadings / U.noise)
    trace = (np.diag(s.scatter) / U.noise).sum() - np.einsum("aj,aj->", half @ s.scatter, half)
    return 0.5 * (s.n * (logdet + float(np.log(2 * np.pi * U.noise).sum())) + float(trace))


def first_noise(S: np.ndarray, k: int, enough: bool) -> np.ndarray:
    """(1 − k/2d) of the variance that the other columns do not explain; half of the variance where rows are too few."""
    d, var = len(S), np.diag(S)
    if not enough:
        return 0.5 * var
    scale = np.sqrt(np.where(var > 0, var, 1.0))
    L = np.linalg.cholesky(S / np.outer(scale, scale) + 1e-6 * np.eye(d))
    H = scipy.linalg.solve_triangular(L, np.eye(d), lower=True)
    return var * np.clip((1.0 - 0.5 * k / d) / np.einsum("ij,ij->j", H, H), 0.005, 1.0)


def profile(S: np.ndarray, noise: np.ndarray, k: int) -> tuple[float, np.ndarray, np.ndarray]:
    """f, and the eigenvalues (descending) and eigenvectors of ψ^-½ S ψ^-½."""
    r = 1.0 / np.sqrt(noise)
    lam, V = np.linalg.eigh(S * r * r[:, None])
    lam, V = lam[::-1], V[:, ::-1]
    top = np.maximum(lam[:k], 1.0)
    return float(np.log(noise).sum() + np.log(top).sum() + (lam[:k] / top).sum() + lam[k:].sum()), lam, V


def best_loadings(noise: np.ndarray, lam: np.ndarray, V: np.ndarray, k: int) -> np.ndarray:
    """The W of largest likelihood given ψ."""
    W = np.sqrt(np.maximum(lam[:k] - 1.0, 0.0))[:, None] * V[:, :k].T * np.sqrt(noise)
    return W * canonical(W)[:, None]


def newton(S: np.ndarray, noise: np.ndarray, floor: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A ψ with a likelihood no smaller, and the eigenvalues and eigenvectors there."""
    f, lam, V = profile(S, noise, k)
    A, B, la, lb = V[:, :k], V[:, k:], lam[:k], lam[k:]
    G, R = B @ B.T, (B * lb) @ B.T
    slope = np.diag(G) - np.diag(R)
    free = (noise > floor * (1 + 1e-9)) | (slope < 0)  # a variance at its floor may only rise
    first = R * G  # positive semi-definite: what is left of H where the model fits
    H = first.copy()
    for a, value in zip(A.T, la, strict=True):
        if value > 1.0:
            c = (1.0 - lb) * (lb + value) / np.maximum(value - lb, 1e-9 * value)
            H += np.outer(a, a) * ((B * c) @ B.T)
    for hessian in (H, first):
        step = np.zeros(len(noise))
        try:
            inner = hessian[np.ix_(free, free)]
            ridge = 1e-9 * np.trace(inner) / max(1, len(inner)) * np.eye(len(inner))
            step[free] = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(inner + ridge), slope[free])
        except np.linalg.LinAlgError:
            continue
        step = np.clip(step, -4.0, 4.0)
        for length in (1.0, 0.25, 0.0625):
            new = np.maximum(noise * np.exp(length * step), floor)
            f_new, lam_new, V_new = profile(S, new, k)
            if f_new < f:
                low = (new < 0.01 * np.diag(S)) & (new > floor) & (step < 0)
                if low.any():  # on the way to zero, which exp(θ) would not reach: see whether it should be there
                    least = np.where(low, floor, new)
                    f_least, lam_least, V_least = profile(S, least, k)
                    if f_least < f_new:
                        return least, lam_least, V_least
                return new, lam_new, V_new
    W = best_loadings(noise, lam, V, k)
    new = np.maximum(np.diag(S) - np.einsum("aj,aj->j", W, W), floor)
    f_new, lam_new, V_new = profile(S, new, k)
    return (new, lam_new, V_new) if f_new < f else (noise, lam, V)


# -- rotations --


def rotate(W: np.ndarray, noise: np.ndarray, method: str | None) -> np.ndarray:
    """T for factors zT with loadings T⁻¹W: W ψ⁻¹ Wᵀ made diagonal, then the rotation, then canonical signs."""
    k = len(W)
    if k == 0:
        return np.eye(0)
    T = np.linalg.eigh((W / noise) @ W.T)[1][:, ::-1]
    if method is not None and k > 1:
        T = T @ orthomax(W.T @ T, 0.0 if method == "quartimax" else 1.0)
        if method == "promax":
            T = T @ promax(W.T @ T)
        found = np.linalg.solve(T, W)
        T = T[:, np.argsort(-np.einsum("aj,aj->a", found, found), kind="stable")]
    return T * canonical(np.linalg.solve(T, W))


def orthomax(L: np.ndarray, gamma: float, tol: float = 1e-9, steps: int = 500) -> np.ndarray:
    """The orthogonal T that maximises Σ (LT)⁴ − γ/d Σ_a (Σ_j (LT)²_ja)²: varimax for γ = 1, quartimax for γ = 0."""
    T, before = np.eye(L.shape[1]), 0.0
    for _ in range(steps):
        B = L @ T
        u, s, vt = np.linalg.svd(L.T @ (B**3 - gamma / len(B) * B * np.einsum("ja,ja->a", B, B)))
        T = u @ vt
        if s.sum() <= before * (1.0 + tol):
            break
        before = s.sum()
    return T


def promax(L: np.ndarray, power: int = 4) -> np.ndarray:
    """T whose oblique factors zT, of unit variance, have loadings close to those of varimax raised to a power."""
    P = np.linalg.lstsq(L, L * np.abs(L) ** (power - 1), rcond=None)[0]
    if np.linalg.matrix_rank(P) < len(P):
        return np.eye(len(P))
    Q = np.linalg.inv(P).T  # k×k and well conditioned: factors z Q have loadings L P
    return Q / np.linalg.norm(Q, axis=0)
