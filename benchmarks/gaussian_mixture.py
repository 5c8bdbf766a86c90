"""EM for Gaussian mixtures from the same start: twenty passes, and to the same log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.harness import Case, Goal, Quality, Target, contestant, passes_until

PASSES = 20
MOST = 1000
NEAR = 1e-6  # "converged": within this share of the log-likelihood at which EM by itself stands still
SIZES = {"full": (100_000, 32, 16), "quick": (5_000, 8, 4), "warm": (12_000, 32, 16)}


@dataclass
class MixtureCase(Case):
    """An overlapping mixture; the start: near the planted means, equal weights, the covariance of all rows."""

    kind: str = "full"
    converge: bool = False

    def data(self, size: str) -> Any:
        n, d, K = SIZES[size]
        rng = np.random.default_rng(0)
        means = (0.3 if self.kind == "full" else 0.2) * rng.standard_normal((K, d))
        scales = rng.uniform(0.7, 1.3, (K, d, 1))
        roots = scales * (np.linalg.qr(rng.standard_normal((K, d, d)))[0] if self.kind == "full" else np.eye(d))
        label = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
        X = rng.standard_normal((n, d))
        for k in range(K):
            X[label == k] = X[label == k] @ roots[k] + means[k]
        near = means + 0.3 * rng.standard_normal((K, d))
        all_rows = np.cov(X.T) if self.kind == "full" else X.var(axis=0)
        return X, (np.full(K, 1 / K), near, np.array([all_rows] * K)), 2 if size == "warm" else PASSES

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """Log-likelihood per row."""
        X = data[0]
        w, means, covariances = (np.asarray(result[key], np.float64) for key in ("w", "means", "covariances"))
        d, total = X.shape[1], 0.0
        roots = [np.linalg.inv(np.linalg.cholesky(C if C.ndim == 2 else np.diag(C))).T for C in covariances]
        heads = [np.log(np.diag(R)).sum() - 0.5 * d * np.log(2 * np.pi) for R in roots]
        for a in range(0, len(X), 10_000):
            x = X[a : a + 10_000]
            logs = np.array(
                [h - 0.5 * ((x @ R - m @ R) ** 2).sum(axis=1) for h, m, R in zip(heads, means, roots, strict=True)]
            )
            logs += np.log(w)[:, None]
            top = logs.max(axis=0)
            total += (top + np.log(np.exp(logs - top).sum(axis=0))).sum()
        return float(total / len(X))

    def goal(self, data: Any, run: Any) -> Goal:
        """For convergence: where plain EM stands still, less a little; and how many passes EM needs to get there."""
        if not self.converge or find_spec("daal4py") is None:
            return run()
        X, start, _ = data
        trail, parts, step = [], [start], 10
        while len(trail) < 2 or trail[-1] - trail[-2] > 1e-2 * NEAR * abs(trail[-1]):
            parts.append(self._daal(X, parts[-1], step)())  # to go on from there is the same as to have run longer
            trail.append(self.score(data, _daal_parts(parts[-1])))
            parts[-1] = _daal_tuple(parts[-1], self.kind)
            if len(trail) * step >= MOST:
                break
        goal = trail[-1] - NEAR * abs(trail[-1])
        chunk = next(i for i, value in enumerate(trail) if value >= goal)
        passes, here = chunk * step, parts[chunk]
        for _ in range(step):
            passes += 1
            there = self._daal(X, here, 1)()
            here = _daal_tuple(there, self.kind)
            if self.score(data, _daal_parts(there)) >= goal:
                break
        return Goal(goal, passes)

    def _passes(self, data: Any, goal: Goal | None) -> int:
        return goal.passes if self.converge and goal is not None and goal.passes else data[2]

    @contestant("unmix")
    def ours(self, data, goal):
        return self._ours(data, goal, acceleration=True)

    @contestant("unmix, plain EM", note="acceleration switched off")
    def plain(self, data, goal):
        return self._ours(data, goal, acceleration=False)

    def _ours(self, data, goal, acceleration):
        import unmix

        unmix.set_config(progress=False, acceleration=acceleration and self.converge)
        X, (w, means, covariances), _ = data
        precisions = np.linalg.inv(covariances) if self.kind == "full" else 1 / covariances

        def model(passes):
            return unmix.GaussianMixture(
                len(w), covariance_type=self.kind, reg_covar=0, max_iter=passes, tol=0,
                weights_init=w, means_init=means, precisions_init=precisions,
            )  # fmt: skip

        passes = self._passes(data, None)
        if self.converge and goal is not None:
            passes = passes_until(
                model, X, MOST,
                enough=lambda m: -m.trace_[-1].objective >= goal.quality,
                good=lambda m: self.score(data, _parts(m)) >= goal.quality,
            )  # fmt: skip
        return lambda: model(passes).fit(X), _parts

    @contestant("daal4py", needs="daal4py", note="em_gmm, the engine of scikit-learn-intelex")
    def daal(self, data, goal):
        X, start, _ = data
        return self._daal(X, start, self._passes(data, goal)), _daal_parts

    def _daal(self, X, start, passes):
        import daal4py

        w, means, covariances = start
        covariances = [np.ascontiguousarray(np.atleast_2d(C)) for C in covariances]
        algorithm = daal4py.em_gmm(
            nComponents=len(w), maxIterations=passes, accuracyThreshold=1e-300, regularizationFactor=0,
            covarianceStorage="full" if self.kind == "full" else "diagonal",
        )  # fmt: skip
        return lambda: algorithm.compute(X, np.atleast_2d(w), means, covariances)

    @contestant("scikit-learn", needs="sklearn")
    def sklearn(self, data, goal):
        from sklearn.mixture import GaussianMixture

        X, (w, means, covariances), _ = data
        precisions = np.linalg.inv(covariances) if self.kind == "full" else 1 / covariances
        model = GaussianMixture(
            len(w), covariance_type=self.kind, reg_covar=0, max_iter=self._passes(data, goal), tol=0,
            weights_init=w, means_init=means, precisions_init=precisions,
        )  # fmt: skip
        return lambda: model.fit(X), _parts


def _parts(m: Any) -> dict[str, Any]:
    return {"w": m.weights_, "means": m.means_, "covariances": m.covariances_, "passes": int(m.n_iter_)}


def _daal_parts(r: Any) -> dict[str, Any]:
    covariances = np.array(r.covariances)
    covariances = covariances[:, 0] if covariances.shape[1] == 1 else covariances
    return {"w": r.weights.ravel(), "means": r.means, "covariances": covariances, "passes": int(r.nIterations.item())}


def _daal_tuple(r: Any, kind: str) -> tuple[np.ndarray, ...]:
    p = _daal_parts(r)
    return p["w"], p["means"], p["covariances"]


def _cases():
    for kind in ("full", "diag"):
        yield MixtureCase(
            f"gaussian_mixture-{kind}",
            f"GaussianMixture, 100k×32, K=16, {kind}, float64, {PASSES} passes",
            Quality("log-likelihood per row", higher=True, slack=1e-6),
            (Target(1, ("daal4py",)), Target(1, ("scikit-learn",))),
            "scikit-learn",
            ("unmix, plain EM",),
            kind,
        )
    for kind in ("full", "diag"):
        yield MixtureCase(
            f"gaussian_mixture-{kind}-converged",
            f"GaussianMixture, 100k×32, K=16, {kind}, float64, overlapping, to convergence",
            Quality("log-likelihood per row", higher=True, slack=1e-9),
            (Target(1.5, ("daal4py",)),),
            "daal4py",
            ("scikit-learn",),
            kind,
            True,
        )


CASES = list(_cases())
