"""Small fits, where the arithmetic is nothing and all else is what one waits for: beside scikit-learn, by turns."""

from __future__ import annotations

import math
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.harness import Report, Verdict, ratio

MOST = 1.5  # times scikit-learn's time
SECONDS = 1.0  # per contestant and job
ROUNDS = 7
PARAMS: dict[str, dict[str, Any]] = {  # of each namesake of scikit-learn's
    "PCA": {"n_components": 2},
    "TruncatedSVD": {"n_components": 2, "random_state": 0},
    "KernelPCA": {"n_components": 2},
    "FactorAnalysis": {"n_components": 2},
    "FastICA": {"n_components": 2, "random_state": 0},
    "NMF": {"n_components": 3, "random_state": 0},
    "LatentDirichletAllocation": {"n_components": 3, "random_state": 0},
    "KMeans": {"n_clusters": 3, "random_state": 0},
    "GaussianMixture": {"n_components": 3, "random_state": 0},
    "BayesianGaussianMixture": {"n_components": 3, "random_state": 0},
}
DIGITS = {"KMeans": {"n_clusters": 10}, "PCA": {"n_components": 10}}
SEEDS = {"KMeans": 10, "FastICA": 10}  # whose number of passes is luck: the sum over so many seeds


@dataclass
class Small:
    """Fits of iris and digits with the defaults, and a row given to the fitted model."""

    name: str = "small"
    title: str = "Small fits and single rows, beside scikit-learn"
    targets: tuple = field(default=())

    def measure(self, size: str = "full", repeat: int = 3, only: Iterable[str] | None = None) -> Report:
        """The best of many runs of each, in one fresh process."""
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            found = pool.apply(race, (SECONDS if size == "full" else 0.01,))
        rows, worst = [], (0.0, "")
        for job, ours, theirs in found:
            rows.append((job, f"{1e3 * ours:.3f}", f"{1e3 * theirs:.3f}", ratio(ours, theirs)))
            worst = max(worst, (ours / theirs, job))
        met = worst[0] <= MOST if size == "full" else None
        verdict = Verdict(f"each at most {MOST}× scikit-learn's time", f"{worst[0]:.2f}× at most ({worst[1]})", met)
        head = ("job", "unmix, ms", "scikit-learn, ms", "ours / theirs")
        return Report(self.name, self.title, head, rows, [verdict])


def race(seconds: float) -> list[tuple[str, float, float]]:
    """Every job with the seconds of both, best of many."""
    warnings.simplefilter("ignore")
    from sklearn.base import clone
    from sklearn.datasets import load_digits, load_iris

    import unmix
    from unmix.model.peer import counterpart

    unmix.set_config(progress=False)
    found = []
    for data, X in (("iris", load_iris().data), ("digits", load_digits().data)):
        for name, params in PARAMS.items():
            own = params | (DIGITS.get(name, {}) if data == "digits" else {})
            ours = unmix.models()[name]
            models = [cls(**own) for cls in (ours, counterpart(ours))]
            both = [0.0, 0.0]
            for seed in range(SEEDS.get(name, 1)):
                given = {} if "random_state" not in own else {"random_state": seed}
                fits = [partial(clone(m).set_params(**given).fit, X) for m in models]
                both = [a + b for a, b in zip(both, turns(fits, seconds / SEEDS.get(name, 1)), strict=True)]
            found.append((f"{name}, fit {data}", *both))
            models = [m.fit(X) for m in models]
            for method in ("predict", "transform"):
                if hasattr(models[1], method):
                    calls = [partial(getattr(m, method), X[:1]) for m in models]
                    found.append((f"{name}, {method} a row of {data}", *turns(calls, seconds / 4)))
    return found


def turns(calls: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The best time of each, by turns; what takes longer than it may in all is not repeated, but for the first time."""
    for call in calls:
        call()
    best = [math.inf for _ in calls]
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            end = time.perf_counter() + seconds / ROUNDS
            while best[i] == math.inf or (best[i] < seconds and time.perf_counter() < end):
                begin = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - begin)
    return best


CASES = [Small()]
