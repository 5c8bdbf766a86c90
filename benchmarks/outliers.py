"""Outliers in real tables: `OutlierDetector()` beside an isolation forest, neighbours, and PyOD's ECOD and COPOD.

`python -m benchmarks.outliers [odd|even|noise] [draws]`

- odd, even: areas under the ROC curve over the sets of the folder `outliers` of UNMIX_DATA, in the order of the
  alphabet. The default was chosen on the odd ones (the first, the third, …); the even ones confirm it. Everybody
  scores the rows of the fit; ours scores each by a model that has not seen it (`scores_`). Isolation forests and ours
  are means over three seeds; k-NN is the distance to the k-th neighbour, on standardised columns, as LOF. "missing" is
  a package that is not installed.
- noise: in how many of 100 draws (or as many as told) `OutlierDetector().fit_predict` finds anything where nothing is,
  and how many of 2 % planted rows, six standard deviations off in every column, it finds in 20; then seconds at several
  sizes.

Labels score, and are in no fit.
"""

import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler

import unmix

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data")) / "outliers"
SEEDS = range(3)
PLANTED = 20  # draws into which rows are planted
Score = Callable[[np.ndarray, int], np.ndarray]  # rows, seed → larger is stranger


def sets(half: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, rows, and which of them are outliers."""
    files = sorted(DATA.glob("*.npz"), key=lambda p: p.stem.partition("_")[2].lower())
    for path in files[{"odd": 0, "even": 1}[half] :: 2]:
        with np.load(path, allow_pickle=True) as d:
            yield path.stem.partition("_")[2], d["X"].astype(np.float64), d["y"].ravel().astype(int)


def ours(X: np.ndarray, seed: int) -> np.ndarray:
    """The default."""
    return unmix.OutlierDetector(random_state=seed).fit(X).scores_


def forest(trees: int) -> Score:
    """An isolation forest."""
    return lambda X, seed: -IsolationForest(n_estimators=trees, random_state=seed).fit(X).score_samples(X)


def neighbour(k: int) -> Score:
    """The distance to the k-th neighbour, the row itself left out."""
    return lambda X, seed: NearestNeighbors(n_neighbors=k).fit(standard(X)).kneighbors()[0][:, -1]


def local(X: np.ndarray, seed: int) -> np.ndarray:
    """The local outlier factor with its usual twenty neighbours."""
    return np.asarray(-LocalOutlierFactor(20).fit(standard(X)).negative_outlier_factor_)


def standard(X: np.ndarray) -> np.ndarray:
    """Standardised columns."""
    return np.asarray(StandardScaler().fit_transform(X))


def pyod(module: str, name: str) -> Score | None:
    """A detector of PyOD, where it is installed."""
    if importlib.util.find_spec("pyod") is None:
        return None
    cls: Any = getattr(importlib.import_module(f"pyod.models.{module}"), name)
    return lambda X, seed: np.asarray(cls().fit(X).decision_scores_)


METHODS: dict[str, tuple[Score | None, bool]] = {  # and whether seeds matter
    "unmix": (ours, True), "forest 100": (forest(100), True), "forest 1000": (forest(1000), True),
    "5-NN": (neighbour(5), False), "10-NN": (neighbour(10), False), "LOF": (local, False),
    "ECOD": (pyod("ecod", "ECOD"), False), "COPOD": (pyod("copod", "COPOD"), False),
}  # fmt: skip


def areas(half: str) -> None:
    """The table of one half, and its means."""
    print(f"{half + ' sets':14}" + "".join(f"{name:>12}" for name in METHODS))
    every = []
    for name, X, y in sets(half):
        row = []
        for score, seeded in METHODS.values():
            seeds = list(SEEDS) if seeded else [0]
            row.append(np.nan if score is None else np.mean([roc_auc_score(y, score(X, s)) for s in seeds]))
        every.append(row)
        print(f"{name:14}" + "".join(told(a) for a in row), flush=True)
    print(f"{'mean':14}" + "".join(told(a) for a in np.mean(every, axis=0)))


def told(area: float) -> str:
    """A number of the table."""
    return f"{'missing' if np.isnan(area) else f'{area:.3f}':>12}"


NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "Gaussian": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(size=size),
    "Student's t, 5": lambda rng, size: rng.standard_t(5, size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
    "integers": lambda rng, size: rng.integers(10, size=size).astype(float),
}


def noise(draws: int) -> None:
    """False alarms, planted rows that are found, seconds."""
    for size in ((300, 3), (1000, 10), (500, 30)):
        for name, draw in NOISE.items():
            rng, alarms, found, false = np.random.default_rng(0), 0, [], []
            for seed in range(draws):
                X = draw(rng, size)
                alarms += bool((labels(X, seed) == -1).any())
                if seed >= PLANTED:
                    continue
                few = max(1, size[0] // 50)
                X[:few] += rng.choice([-6.0, 6.0], size=(few, size[1])) * X.std(axis=0)
                called = labels(X, seed) == -1
                found.append(called[:few].mean())
                false.append(called[few:].sum() / max(1, called.sum()))
            print(
                f"{size[0]}×{size[1]:<4} {name:16} something found in {alarms} of {draws} draws of noise; of planted "
                f"rows {np.mean(found):.2f} found, {np.mean(false):.3f} of those found false",
                flush=True,
            )
    for size in ((2000, 1500), (500, 5000), (20_000, 50), (100_000, 20)):
        X = np.random.default_rng(0).normal(size=size)
        begin = time.perf_counter()
        labels(X, 0)
        print(f"{size[0]}×{size[1]}: {time.perf_counter() - begin:.1f} s", flush=True)


def labels(X: np.ndarray, seed: int) -> np.ndarray:
    """What the detector says without being told anything."""
    return unmix.OutlierDetector(random_state=seed).fit_predict(X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    part, *more = [*sys.argv[1:], "odd"][: max(1, len(sys.argv) - 1)]
    noise(int(more[0]) if more else 100) if part == "noise" else areas(part)
