"""Truncated SVD of a large sparse matrix whose singular values fall slowly, to the same residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Case, Quality, Target, contestant

SIZES = {"full": (100_000, 50_000, 50), "quick": (4_000, 3_000, 10), "warm": (4_000, 3_000, 10)}
PER_ROW = 50  # nonzeros: 0.1 % of the columns
TOPICS = 400


@dataclass
class TruncatedSVDCase(Case):
    """Rows of words, drawn from many topics; the residual is the largest ‖Aᵀu − σv‖ of a component, over σ₁."""

    def data(self, size: str) -> Any:
        n, d, k = SIZES[size]
        return documents(n, d, np.random.default_rng(0)), k

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """From V alone: σ = ‖Av‖, u = Av/σ, so that Av − σu is 0 and Aᵀu − σv is what is left."""
        X, _ = data
        V = np.asarray(result["V"], np.float64).T
        V = V / np.linalg.norm(V, axis=0)
        AV = X @ V
        sigma = np.linalg.norm(AV, axis=0)
        left = X.T @ (AV / sigma) - V * sigma
        return float(np.linalg.norm(left, axis=0).max() / sigma.max())

    def _good(self, data: Any, read: Any, fit: Any) -> Any:
        return lambda passes: self.score(data, read(fit(passes))) <= self.quality.goal

    @contestant("unmix", note="tol is the residual")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, k = data
        tol = self.quality.goal
        return lambda: unmix.TruncatedSVD(k, tol=tol, random_state=0).fit(X), _components

    @contestant("scikit-learn randomized", needs="sklearn", note="the least n_iter of 8, 16 and 32 that reaches it")
    def randomized(self, data, goal):
        from sklearn.decomposition import TruncatedSVD

        X, k = data

        def fit(passes):
            return TruncatedSVD(k, n_iter=passes, random_state=0).fit(X)

        good = self._good(data, _components, fit)
        passes = 4 if goal is None else next((i for i in (8, 16) if good(i)), 32)
        return lambda: fit(passes), lambda m: _components(m) | {"passes": passes}

    @contestant("scikit-learn arpack", needs="sklearn", note="the largest tol = 10⁻ⁱ that reaches the residual")
    def arpack(self, data, goal):
        from sklearn.decomposition import TruncatedSVD

        X, k = data

        def fit(power):
            return TruncatedSVD(k, algorithm="arpack", tol=10.0**-power, random_state=0).fit(X)

        power = 2 if goal is None else first_good(self._good(data, _components, fit))
        return lambda: fit(power), _components

    @contestant("SciPy propack", note="svds(solver='propack'), the largest tol = 10⁻ⁱ that reaches the residual")
    def propack(self, data, goal):
        from scipy.sparse.linalg import svds

        X, k = data

        def fit(power):
            return svds(X, k, solver="propack", tol=10.0**-power, rng=np.random.default_rng(0), maxiter=100 * k)

        power = 2 if goal is None else first_good(self._good(data, _right, fit))
        return lambda: fit(power), _right


def first_good(good: Any) -> int:
    """The least i from 1 on whose fit is good enough; 8 if none is."""
    return next((i for i in range(1, 8) if good(i)), 8)


def _components(model: Any) -> dict[str, Any]:
    return {"V": model.components_}


def _right(out: Any) -> dict[str, Any]:
    return {"V": out[2]}


def documents(n: int, d: int, rng: np.random.Generator) -> sp.csr_array:
    """Rows of PER_ROW words with weights: each of a topic, whose words are as frequent as Zipf says."""
    frequent = 1.0 / np.arange(1, d + 1) ** 0.7
    word = np.minimum(np.searchsorted(np.cumsum(frequent) / frequent.sum(), rng.random((n, PER_ROW))), d - 1)
    sizes = np.arange(1, TOPICS + 1) ** -0.5
    topic = rng.choice(TOPICS, n, p=sizes / sizes.sum())[:, None]
    own = rng.random((n, PER_ROW)) < 0.5  # half of the words are those of the topic
    step, first = 1 + 30 * rng.integers(1, d, TOPICS + 1), rng.integers(d, size=TOPICS + 1)  # an order of its own
    which = np.where(own, topic, TOPICS)
    columns = ((word * step[which] + first[which]) % d).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), PER_ROW)
    X = sp.coo_array((1.0 + rng.random(n * PER_ROW), (rows, columns.ravel())), shape=(n, d)).tocsr()
    X.sort_indices()
    return X


CASES = [
    TruncatedSVDCase(
        "truncated-svd",
        "Truncated SVD, CSR 100k×50k, 0.1 % filled, k=50, float64, to a residual of 1e-4",
        Quality("residual", slack=0.0, goal=1e-4),
        (Target(1.5, ("scikit-learn randomized", "scikit-learn arpack", "SciPy propack")),),
    )
]
