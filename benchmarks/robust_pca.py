"""Robust PCA: low rank plus sparse, beside the inexact augmented Lagrangian of Lin, Chen & Ma (2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant

CORRUPT = 0.05
ERROR = 1e-5  # what Candès et al. (2011) call recovered


@dataclass
class RobustPCACase(Case):
    """The planted problem of Candès et al. (2011): rank 5 %, signs in 5 % of the cells."""

    side: int = 1000

    def data(self, size: str) -> Any:
        n = {"full": self.side, "quick": 150, "warm": 60}[size]
        rank = n // 20
        rng = np.random.default_rng(0)
        L = rng.normal(0, n**-0.5, (n, rank)) @ rng.normal(0, n**-0.5, (n, rank)).T
        S = np.zeros(n * n)
        cells = rng.choice(n * n, int(CORRUPT * n * n), replace=False)
        S[cells] = rng.choice([-1.0, 1.0], len(cells))
        return L + S.reshape(n, n), L

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Relative error of the low-rank part."""
        _, L = data
        return float(np.linalg.norm(result["L"] - L) / np.linalg.norm(L))

    @contestant("unmix")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, _ = data
        return lambda: unmix.RobustPCA().fit(X), lambda m: {"L": m.low_rank_, "passes": int(m.n_iter_)}

    @contestant(
        "ALM, Gram", needs="scipy", note="inexact ALM in NumPy; leading eigenvectors of the Gram matrix (LAPACK syevr)"
    )
    def gram(self, data, goal):
        return lambda: inexact_alm(data[0], shrink_gram), _low_rank

    @contestant("ALM, SVD", note="inexact ALM in NumPy; full SVD (LAPACK gesdd)")
    def svd(self, data, goal):
        return lambda: inexact_alm(data[0], shrink_svd), _low_rank

    @contestant(
        "tensorly", needs="tensorly", note="robust_pca; it counts the nuclear norm once per mode, so λ is doubled"
    )
    def tensorly(self, data, goal):
        from tensorly.decomposition import robust_pca

        X, _ = data
        lam, size, norm = 2 * max(X.shape) ** -0.5, np.linalg.norm(X), np.linalg.norm(X, 2)

        def fit():
            L, _ = robust_pca(
                X, reg_E=lam, mu_init=1.25 / norm, learning_rate=1.2, tol=1e-8 * size, n_iter_max=200, verbose=0
            )
            return L, None

        return fit, _low_rank


def inexact_alm(
    X: np.ndarray, shrink: Any, tol: float = 1e-7, growth: float = 1.5, most: int = 200
) -> tuple[np.ndarray, int]:
    """Minimise ‖L‖* + λ‖S‖₁ subject to L + S = X; (L, iterations)."""
    lam = max(X.shape) ** -0.5
    size, norm = np.linalg.norm(X), np.linalg.norm(X, 2)
    Y = X / max(norm, np.abs(X).max() / lam)
    mu = 1.25 / norm
    L = np.zeros_like(X)
    T, S = np.empty_like(X), np.empty_like(X)
    step = 0
    while step < most:
        step += 1
        np.divide(Y, mu, out=Y)
        np.subtract(X, L, out=T)
        T += Y
        np.clip(T, -lam / mu, lam / mu, out=S)
        np.subtract(T, S, out=S)  # soft threshold
        np.subtract(X, S, out=T)
        np.add(T, Y, out=L)
        L = shrink(L, 1 / mu)
        T -= L
        Y += T
        Y *= mu
        if np.linalg.norm(T) <= tol * size:
            break
        mu *= growth
    return L, step


def shrink_svd(A: np.ndarray, cut: float) -> np.ndarray:
    """Singular values less the cut."""
    U, s, V = np.linalg.svd(A, full_matrices=False)
    k = int((s > cut).sum())
    return (U[:, :k] * (s[:k] - cut)) @ V[:k]


def shrink_gram(A: np.ndarray, cut: float) -> np.ndarray:
    """The same through the eigenvectors of AᵀA above the cut: A V diag(1 − cut/s) Vᵀ."""
    from scipy.linalg import eigh

    G = A.T @ A
    values, V = eigh(G, subset_by_value=(cut * cut, np.inf), driver="evr", overwrite_a=True, check_finite=False)
    return (A @ V * (1 - cut / np.sqrt(values))) @ V.T


def _low_rank(fitted: Any) -> dict[str, Any]:
    L, passes = fitted
    return {"L": np.asarray(L), "passes": passes}


CASES = [
    RobustPCACase(
        "robust_pca",
        "RobustPCA, 1000×1000, rank 50, 5 % corrupted, float64",
        Quality("relative error of L", slack=0, goal=ERROR),
        (Target(4, ("ALM, Gram",)),),
        without=("tensorly",),  # two SVDs an iteration and hundreds of iterations: minutes
    ),
    RobustPCACase(
        "robust_pca-small",
        "RobustPCA, 300×300, rank 15, 5 % corrupted, float64",
        Quality("relative error of L", slack=0, goal=ERROR),
        (Target(1, ("ALM, Gram", "ALM, SVD", "tensorly")),),
        side=300,
    ),
]
