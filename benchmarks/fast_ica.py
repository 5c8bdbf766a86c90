"""Independent components: how long until the sources are found; `python -m benchmarks.fast_ica amari`: how well."""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant, table, tell

SIZES = {"full": (200_000, 20), "quick": (5_000, 8), "warm": (70_000, 20)}
DRAWS = 50
FAILED = 0.1  # an Amari distance above is a failure
PROBLEMS = {  # name: sources, rows
    "5 sources, 5000 rows": (5, 5_000),
    "20 sources, 20000 rows": (20, 20_000),
}


def sources(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Independent sources of variance 1: heavy tails and light ones, by turns, of several shapes."""
    shapes = [
        lambda: rng.laplace(size=n),
        lambda: rng.uniform(-1, 1, size=n),
        lambda: rng.standard_t(5, size=n),
        lambda: rng.choice([-1.0, 1.0], size=n) + 0.3 * rng.standard_normal(n),
        lambda: np.sinh(rng.standard_normal(n)),
        lambda: rng.beta(0.5, 0.5, size=n),
    ]
    S = np.column_stack([shapes[j % len(shapes)]() for j in range(k)])
    return (S - S.mean(axis=0)) / S.std(axis=0)


def amari(unmixing: np.ndarray, mixing: np.ndarray) -> float:
    """How far unmixing · mixing is from a scaled permutation: 0 where it is one, at most 1 (Amari, Cichocki & Yang)."""
    P = np.abs(np.asarray(unmixing, np.float64) @ mixing)
    k = len(P)
    rows = (P / P.max(axis=1, keepdims=True)).sum(axis=1) - 1
    columns = (P / P.max(axis=0, keepdims=True)).sum(axis=0) - 1
    return float((rows.sum() + columns.sum()) / (2 * k * (k - 1)))


@dataclass
class FastICACase(Case):
    """Sources of several shapes, mixed by a random matrix."""

    def data(self, size: str) -> Any:
        n, k = SIZES[size]
        rng = np.random.default_rng(0)
        A = rng.standard_normal((k, k))
        return sources(rng, n, k) @ A.T, A

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """The Amari distance to the truth."""
        return amari(result["unmixing"], data[1])

    @contestant("unmix")
    def ours(self, data, goal):
        import unmix

        unmix.set_config(progress=False)
        X, _ = data
        return lambda: unmix.FastICA(random_state=0).fit(X), _parts

    @contestant("scikit-learn", needs="sklearn", note="whiten_solver='eigh', else its defaults")
    def sklearn(self, data, goal):
        from sklearn.decomposition import FastICA

        X, _ = data
        return lambda: FastICA(whiten_solver="eigh", random_state=0).fit(X), _parts

    @contestant("picard", needs="picard", note="orthogonal (Picard-O), tol=1e-4")
    def picard(self, data, goal):
        from picard import picard

        X, _ = data
        rows = np.ascontiguousarray(X.T)

        def fit():
            K, W, _, steps = picard(rows, tol=1e-4, random_state=0, return_n_iter=True)
            return W @ K, steps

        return fit, lambda found: {"unmixing": found[0], "passes": found[1]}


def _parts(m: Any) -> dict[str, Any]:
    return {"unmixing": m.components_, "passes": int(m.n_iter_)}


CASES = [
    FastICACase(
        "fast_ica",
        "FastICA, 200k×20, 20 sources, float64",
        Quality("Amari distance", slack=0.02),
        (Target(2, ("scikit-learn", "picard")),),
        reference="scikit-learn",
    )
]


# ---------------------------------------------------------------- how well


def found(X: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """The unmixing matrix of everyone."""
    from sklearn.decomposition import FastICA

    import unmix

    out = {
        "unmix": unmix.FastICA(random_state=seed).fit(X).components_,
        "scikit-learn": FastICA(whiten_solver="eigh", random_state=seed).fit(X).components_,
    }
    if importlib.util.find_spec("picard"):
        from picard import picard

        K, W, _ = picard(np.ascontiguousarray(X.T), tol=1e-4, random_state=seed)
        out["picard"] = W @ K
    return out


def compare(draws: int = DRAWS) -> str:
    """A table of the median Amari distance and of failures, problem by problem."""
    import unmix

    unmix.set_config(progress=False)
    rows = []
    for name, (k, n) in PROBLEMS.items():
        told: dict[str, list[float]] = {}
        for seed in range(draws):
            rng = np.random.default_rng([seed, k])
            A = rng.standard_normal((k, k))
            X = sources(rng, n, k) @ A.T
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for who, B in found(X, seed).items():
                    told.setdefault(who, []).append(amari(B, A))
        for who, values in told.items():
            fails = sum(v > FAILED for v in values)
            rows.append((name, who, f"{np.median(values):.5f}", f"{max(values):.4f}", f"{fails} of {draws}"))
    return table(("problem", "who", "median", "worst", f"above {FAILED}"), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["amari"])
    parser.add_argument("--draws", type=int, default=DRAWS)
    tell(compare(parser.parse_args().draws))
