"""A mixture of factor analysers from the same start to the same log-likelihood.

No package for Python that fits this model to real numbers was found on its registry: cplx-mfa fits complex ones, others
are code beside papers; R has EMMIXmfa. So the rivals are EM as Ghahramani & Hinton (1996) state it, in NumPy, with the
inversion lemma and products by BLAS; and mixtures with full covariances, the nearest thing that people have: another
model with more numbers, which reaches the same likelihood sooner, pass by pass, but at d² instead of d q a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant, least_passes, passes_until

SIZES = {"full": (50_000, 100, 5, 5), "quick": (3_000, 20, 3, 2), "warm": (2_000, 100, 5, 5)}
STOP = 1e-4  # nats per row that a pass of textbook EM must gain
MOST = 500
ROWS = 10_000  # at a time, where the quality is measured


@dataclass
class FactorAnalyzersCase(Case):
    """Planted analysers that overlap; the start: near the planted means, faint loadings, the variances of all rows."""

    def data(self, size: str) -> Any:
        n, d, K, q = SIZES[size]
        rng = np.random.default_rng(0)
        means, W = 0.3 * rng.standard_normal((K, d)), rng.standard_normal((K, q, d)) * rng.uniform(0.3, 1.0, (K, q, 1))
        noise = rng.uniform(0.3, 2.0, (K, d))
        label = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
        X = rng.standard_normal((n, d)) * np.sqrt(noise[label]) + means[label]
        z = rng.standard_normal((n, q))
        for k in range(K):
            X[label == k] += z[label == k] @ W[k]
        near, faint = means + 0.3 * rng.standard_normal((K, d)), 0.3 * rng.standard_normal((K, q, d))
        return X, (np.full(K, 1 / K), near, faint, np.tile(X.var(axis=0), (K, 1)))

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Log-likelihood per row, by Cholesky factors of whole covariances."""
        X, _ = data
        w, means, C = (np.asarray(result[key], np.float64) for key in ("w", "means", "covariances"))
        roots = [np.linalg.inv(np.linalg.cholesky(c)).T for c in C]
        total = 0.0
        for a in range(0, len(X), ROWS):
            x = X[a : a + ROWS]
            logs = np.array(
                [
                    np.log(np.diag(R)).sum() - 0.5 * ((x @ R - m @ R) ** 2).sum(axis=1)
                    for m, R in zip(means, roots, strict=True)
                ]
            )
            logs += np.log(w)[:, None] - 0.5 * X.shape[1] * np.log(2 * np.pi)
            top = logs.max(axis=0)
            total += (top + np.log(np.exp(logs - top).sum(axis=0))).sum()
        return float(total / len(X))

    @contestant("unmix")
    def ours(self, data, goal):
        return self._ours(data, goal, acceleration=True)

    @contestant("unmix, plain EM", note="acceleration switched off; the steps are still those of parameter expansion")
    def plain(self, data, goal):
        return self._ours(data, goal, acceleration=False)

    def _ours(self, data, goal, acceleration):
        import unmix

        unmix.set_config(progress=False, acceleration=acceleration)
        X, start = data

        def model(passes):
            params = {"max_iter": passes, "tol": 0.0, "reg_covar": 0.0, "warm_start": True}
            return unmix.MixtureOfFactorAnalyzers.from_parameters(*start, **params)

        passes = 2
        if goal is not None:
            passes = passes_until(
                model, X, MOST,
                enough=lambda m: -m.trace_[-1].objective >= goal.quality,
                good=lambda m: self.score(data, _parts(m)) >= goal.quality,
            )  # fmt: skip
        return lambda: model(passes).fit(X), _parts

    @contestant("NumPy EM", note="Ghahramani & Hinton (1996), to its stop; the products by BLAS with all threads")
    def textbook(self, data, goal):
        X, start = data
        return lambda: em(X, start, 2 if len(X) == SIZES["warm"][0] else MOST), _textbook_parts

    @contestant("unmix, full", note="GaussianMixture(covariance_type='full'): another model")
    def ours_full(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        return self._full(unmix.GaussianMixture, data, goal)

    @contestant("scikit-learn, full", needs="sklearn", note="GaussianMixture(covariance_type='full'): another model")
    def sklearn_full(self, data, goal):
        from sklearn.mixture import GaussianMixture

        return self._full(GaussianMixture, data, goal)

    def _full(self, cls, data, goal):
        X, (w, means, W, noise) = data
        precisions = np.linalg.inv(_covariances(W, noise))

        def model(passes):
            return cls(
                len(w),
                max_iter=passes,
                tol=0,
                reg_covar=0,
                weights_init=w,
                means_init=means,
                precisions_init=precisions,
            ).fit(X)

        def good(passes):
            return self.score(data, _full_parts(model(passes))) >= goal.quality

        passes = 2 if goal is None else least_passes(good, 4, 64)
        return lambda: model(passes), _full_parts


def em(X: np.ndarray, start: Any, most: int) -> tuple[Any, ...]:
    """EM of the textbook, until a pass gains little."""
    w, means, W, noise = (a.copy() for a in start)
    (K, q, d), n, last, passes = W.shape, len(X), -np.inf, 0
    while passes < most:
        passes += 1
        logs, m, G = np.empty((K, n)), [], []
        for k in range(K):
            xc, scaled = X - means[k], W[k] / noise[k]
            M = np.eye(q) + scaled @ W[k].T
            G.append(np.linalg.inv(M))
            b = xc @ scaled.T
            m.append(b @ G[k])
            quad = (xc * xc) @ (1 / noise[k]) - np.einsum("ij,ij->i", m[k], b)
            size = np.linalg.slogdet(M)[1] + np.log(noise[k]).sum() + d * np.log(2 * np.pi)
            logs[k] = np.log(w[k]) - 0.5 * (quad + size)
        top = logs.max(axis=0)
        z = np.exp(logs - top)
        total = z.sum(axis=0)
        z /= total
        now = float((top + np.log(total)).mean())
        for k in range(K):
            one = np.column_stack([m[k], np.ones(n)])
            rone = one * z[k][:, None]
            A, B = rone.T @ one, rone.T @ X
            A[:q, :q] += z[k].sum() * G[k]
            T = np.linalg.solve(A, B)
            noise[k] = (z[k] @ (X * X) - (T * B).sum(axis=0)) / A[q, q]
            W[k], means[k], w[k] = T[:q], T[q], A[q, q] / n
        if now - last < STOP:
            break
        last = now
    return w, means, W, noise, passes


def _covariances(W: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return W.transpose(0, 2, 1) @ W + noise[:, :, None] * np.eye(noise.shape[1])


def _textbook_parts(r: Any) -> dict[str, Any]:
    w, means, W, noise, passes = r
    return {"w": w, "means": means, "covariances": _covariances(W, noise), "passes": passes}


def _parts(m: Any) -> dict[str, Any]:
    C = _covariances(m.components_, m.noise_variance_)
    return {"w": m.weights_, "means": m.means_, "covariances": C, "passes": int(m.n_iter_)}


def _full_parts(m: Any) -> dict[str, Any]:
    return {"w": m.weights_, "means": m.means_, "covariances": m.covariances_, "passes": int(m.n_iter_)}


CASES = [
    FactorAnalyzersCase(
        "factor_analyzers",
        "MixtureOfFactorAnalyzers, 50k×100, K=5, q=5, float64, overlapping, to the same log-likelihood",
        Quality("log-likelihood per row", higher=True, slack=1e-7),
        (Target(3, ("NumPy EM",)), Target(3, ("scikit-learn, full",))),
        reference="NumPy EM",
    )
]
