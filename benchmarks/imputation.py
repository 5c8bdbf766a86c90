"""Missing cells in real tables: `Imputer()` beside the mean, neighbours, chained regressions, and miceforest.

`python -m benchmarks.imputation [odd|even] [rivals] [seeds] [set …]`

Sets come in the order of the alphabet; the default of `Imputer` was chosen on the odd ones (the first, the third, …),
the even ones confirm it. Of each up to 400 rows and 12 columns are drawn, standardised. Then observed cells are
removed: 10, 30 and 50 % at random ("random"); the same shares of two thirds of the columns, the likelier the larger
another column, which stays whole, is ("column"); and 30 % the likelier the larger they are themselves ("value"), of
which nothing can be promised: such cases are printed and not counted. All with three seeds, or as many as told. For
each case are printed

- rmse: root mean square error of the removed cells, of columns of variance 1, ours; and each rival's over the lowest;
- cover: share of removed cells within 1.645 of our standard deviations of what we put there;
- energy: energy distance of the filled rows to the true ones, filled by draws and by means;

as means over seeds, then in how many cases ours is lowest or within 2 % of the lowest, and in how many it is worst.
Chained trees are scikit-learn's `IterativeImputer` with 100 extremely randomised trees and at most 10 rounds, as both
have by default; miceforest is asked for predictions (mean_match_candidates=0), 5 rounds. Rivals' numbers are kept in
the system's temporary folder, as they take long; `rivals` makes them and ends. What is not installed is left out.
"""

import importlib.util
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from scipy.io import arff
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.tree import ExtraTreeRegressor

import unmix

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))
ROWS, COLUMNS = 400, 12
SEEDS = 3
TREES, ROUNDS = 100, 10  # of the chained trees
HOLES = [("random", s) for s in (0.1, 0.3, 0.5)] + [("column", s) for s in (0.1, 0.3, 0.5)] + [("value", 0.3)]
NEAR = 1.02  # times the lowest error is as good
Z90 = 1.6449
Fill = Callable[[np.ndarray, int], np.ndarray]  # rows with NaN, seed → filled rows


# ---------------------------------------------------------------- sets


def shared(name: str, **how: Any) -> np.ndarray:
    """The numbers of a CSV file of the folder of shared data."""
    frame = pd.read_csv(DATA / name, **how)
    return frame.drop(columns=["rownames"], errors="ignore").select_dtypes("number").to_numpy(np.float64)


def plain(name: str) -> np.ndarray:
    """A text file of numbers."""
    return np.loadtxt(DATA / name)


def outlying(name: str) -> np.ndarray:
    """The rows of a set for outlier detection."""
    with np.load(DATA / "outliers" / f"{name}.npz", allow_pickle=True) as d:
        return np.asarray(d["X"], dtype=np.float64)


def letter() -> np.ndarray:
    """Measures of printed letters."""
    import gzip
    import io

    with gzip.open(DATA / "letter" / "letter.arff.gz", "rt") as f:
        return pd.DataFrame(arff.loadarff(io.StringIO(f.read()))[0]).iloc[:, :-1].to_numpy(np.float64)


def sensors() -> np.ndarray:
    """Hourly air quality, −200 where a sensor failed."""
    frame = pd.read_csv(DATA / "missing" / "AirQualityUCI.csv.gz").iloc[:, :15].dropna(how="all")
    return frame.iloc[:, 2:].replace(-200, np.nan).to_numpy(np.float64)


SETS: dict[str, Callable[[], np.ndarray]] = {
    "air sensors": sensors,
    "airquality": lambda: shared("missing/airquality.csv"),
    "boys": lambda: shared("missing/boys.csv.gz"),
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "cloud": lambda: plain("cloud/cloud.data.gz"),
    "crabs": lambda: shared("small-mixtures/crabs.csv")[:, 1:],
    "diabetes": lambda: datasets.load_diabetes().data,
    "digits": lambda: datasets.load_digits().data,
    "ecoli": lambda: plain("clustering/uci/ecoli.data.gz"),
    "glass": lambda: plain("clustering/uci/glass.data.gz"),
    "horse colic": lambda: shared("missing/horse-colic.csv.gz", header=None, na_values="?"),
    "iris": lambda: datasets.load_iris().data,
    "letter": letter,
    "mammographic": lambda: shared("missing/mammographic_masses.csv.gz", na_values="?"),
    "pima": lambda: outlying("29_Pima"),
    "sleep": lambda: shared("missing/sleep.csv.gz"),
    "spambase": lambda: shared("spambase/spambase.csv.gz")[:, :-1],
    "statlog": lambda: plain("clustering/uci/statlog.data.gz"),
    "vowels": lambda: outlying("40_vowels"),
    "wine": lambda: datasets.load_wine().data,
    "yeast": lambda: plain("clustering/uci/yeast.data.gz"),
}


def table(name: str) -> np.ndarray:
    """Rows and columns drawn from a set, standardised; nearly empty and constant columns are no part of it."""
    X = SETS[name]()
    rng = np.random.default_rng(len(name))
    X = X[np.sort(rng.permutation(len(X))[:ROWS])]
    seen = ~np.isnan(X)
    often = np.array([np.unique(x[s], return_counts=True)[1].max() / s.sum() if s.any() else 1.0
                      for x, s in zip(X.T, seen.T, strict=True)])  # fmt: skip
    X = X[:, (seen.mean(axis=0) >= 0.4) & (often <= 0.9)]
    X = X[:, np.sort(rng.permutation(X.shape[1])[:COLUMNS])]
    return np.asarray((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))


def holes(X: np.ndarray, how: str, share: float, seed: int) -> np.ndarray:
    """Which cells are removed."""
    rng = np.random.default_rng(1000 + seed)
    n, d = X.shape
    chance = np.full((n, d), share)
    if how != "random":
        pull = np.argsort(np.argsort(np.nan_to_num(X), axis=0), axis=0) / (n - 1.0)  # by rank
        order = rng.permutation(d)
        whole = order[: max(1, d // 3)]
        if how == "column":
            pull = pull[:, rng.choice(whole, d)]
        odds = np.exp(5 * (pull - 0.5))
        chance = solved(odds, share)
        if how == "column":
            chance[:, whole] = 0.0
    out = (rng.random((n, d)) < chance) & ~np.isnan(X)
    gone = (np.isnan(X) | out).all(axis=1)
    out[np.flatnonzero(gone), rng.integers(d, size=gone.sum())] = False  # a row without any cell is no case
    return out


def solved(odds: np.ndarray, share: float) -> np.ndarray:
    """Probabilities with these odds, times what makes their mean the share, by bisection."""
    low, high = np.full(odds.shape[1], -20.0), np.full(odds.shape[1], 20.0)
    for _ in range(50):
        middle = (low + high) / 2
        p = odds * np.exp(middle) / (1 + odds * np.exp(middle))
        low, high = np.where(p.mean(axis=0) < share, middle, low), np.where(p.mean(axis=0) < share, high, middle)
    return np.asarray(p)


# ---------------------------------------------------------------- rivals


def scikit(make: Callable[[int], Any]) -> Fill:
    """An imputer of scikit-learn."""
    return lambda X, seed: make(seed).fit_transform(X)


class Forest(RegressorMixin, BaseEstimator):
    """`ExtraTreesRegressor()`, without what that does around its trees, which takes longer than these."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Forest":
        """Grow the trees."""
        x = np.ascontiguousarray(X, dtype=np.float32)
        self.trees_ = [
            ExtraTreeRegressor(max_features=1.0, random_state=t).fit(x, y, check_input=False) for t in range(TREES)
        ]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Their mean."""
        x = np.ascontiguousarray(X, dtype=np.float32)
        return np.asarray(np.mean([tree.predict(x, check_input=False) for tree in self.trees_], axis=0))


def chained(X: np.ndarray, seed: int) -> np.ndarray:
    """Chained regressions by trees."""
    with sklearn.config_context(skip_parameter_validation=True):
        return np.asarray(IterativeImputer(Forest(), max_iter=ROUNDS, random_state=seed).fit_transform(X))


def boosted(X: np.ndarray, seed: int) -> np.ndarray:
    """Chained regressions by boosted trees, by miceforest."""
    import miceforest

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    kernel = miceforest.ImputationKernel(frame, num_datasets=1, mean_match_candidates=0, random_state=seed)
    kernel.mice(5)
    return np.asarray(kernel.complete_data(0))


RIVALS: dict[str, Fill] = {
    "mean": scikit(lambda seed: SimpleImputer()),
    "5-NN": scikit(lambda seed: KNNImputer()),
    "ridge": scikit(lambda seed: IterativeImputer(max_iter=20, random_state=seed)),
    "trees": chained,
    **({"miceforest": boosted} if importlib.util.find_spec("miceforest") else {}),
}


class Kept:
    """Errors of rivals, in a file."""

    def __init__(self, half: str) -> None:
        self.path = Path(tempfile.gettempdir()) / f"unmix-imputation-{half}-{sklearn.__version__}.json"
        self.known: dict[str, float] = {}

    def error(self, rival: str, case: str, X: np.ndarray, out: np.ndarray, seed: int) -> float:
        """The error of a rival in a case."""
        key = f"{rival}, {case}"
        if key not in self.known:
            self._read()
        if key not in self.known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                filled = RIVALS[rival](np.where(out, np.nan, X), seed)
            self._read()  # another process may have gone on
            self.known[key] = rmse(X, filled, out)
            part = self.path.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(self.known))
            part.replace(self.path)
        return float(self.known[key])

    def _read(self) -> None:
        if self.path.exists():
            self.known = json.loads(self.path.read_text())


# ---------------------------------------------------------------- ours


def rmse(X: np.ndarray, filled: np.ndarray, out: np.ndarray) -> float:
    """Root mean square error of the removed cells."""
    return float(np.sqrt(np.mean((X - filled)[out] ** 2)))


def energy(X: np.ndarray, Y: np.ndarray) -> float:
    """Energy distance 2 E|x − y| − E|x − x'| − E|y − y'|, over pairs of different rows, as Y is X with other cells."""
    among = [cdist(a, b) for a, b in ((X, Y), (X, X), (Y, Y))]
    both, left, right = ((d.sum() - np.trace(d)) / (len(X) * (len(X) - 1)) for d in among)
    return float(2 * both - left - right)


def ours(X: np.ndarray, out: np.ndarray, seed: int) -> dict[str, float]:
    """Error, coverage, energy distances and seconds."""
    holed = np.where(out, np.nan, X)
    begin = time.perf_counter()
    imputer = unmix.Imputer(random_state=seed).fit(holed)
    filled, std = imputer.impute(holed, return_std=True)
    seconds = time.perf_counter() - begin
    draws = imputer.impute(holed, n_draws=2, random_state=seed)
    known = ~np.isnan(X).any(axis=1)  # rows whose truth is known
    return {
        "rmse": rmse(X, filled, out),
        "cover": float((np.abs(X - filled) <= Z90 * std)[out].mean()),
        "draws": float(np.mean([energy(X[known], d[known]) for d in draws])) if known.any() else np.nan,
        "means": energy(X[known], filled[known]) if known.any() else np.nan,
        "seconds": seconds,
    }


def cases(half: str, only: list[str]) -> Iterator[tuple[str, str, float, np.ndarray]]:
    """Sets, or some of them, and kinds of holes."""
    names = sorted(SETS)[{"odd": 0, "even": 1}[half] :: 2]
    for name in [n for n in names if n in only or not only]:
        X = table(name)
        for how, share in HOLES:
            yield name, how, share, X


def main(half: str, rivals_only: bool, seeds: int, only: list[str]) -> None:
    """Print the cases of one half of the sets, and the summary."""
    kept, counted, shown = Kept(half), [], list(RIVALS)
    print(f"{half + ' sets':14}{'holes':13}{'ours':>7}{'ratio':>7}" + "".join(f"{r:>11}" for r in shown)
          + "  cover  energy: draws, means  seconds")  # fmt: skip
    for name, how, share, X in cases(half, only):
        errors, mine = [], []
        for seed in range(seeds):
            out, case = holes(X, how, share, seed), f"{name}, {how}, {share}, {seed}"
            errors.append([kept.error(r, case, X, out, seed) for r in shown])
            if not rivals_only:
                mine.append(ours(X, out, seed))
        other = np.mean(errors, axis=0)
        if rivals_only:
            print(f"{name:14}{how:7}{100 * share:4.0f} %" + "".join(f"{e:11.3f}" for e in other), flush=True)
            continue
        got = {k: float(np.mean([m[k] for m in mine])) for k in mine[0]}
        lowest = min(got["rmse"], *other)
        if how != "value":
            counted.append([got["rmse"], *other, got["cover"], got["draws"], got["means"]])
        ratios = "".join(f"{e / lowest:11.3f}" for e in other)
        energies = f"{got['draws']:14.4f}{got['means']:8.4f}"
        print(f"{name:14}{how:7}{100 * share:4.0f} %{got['rmse']:8.3f}{got['rmse'] / lowest:7.3f}{ratios}"
              f"{got['cover']:7.2f}{energies}{got['seconds']:9.1f}", flush=True)  # fmt: skip
    if counted:
        summary(np.array(counted), shown)


def summary(counted: np.ndarray, shown: list[str]) -> None:
    """In how many cases ours is best or nearly so, and in how many worst."""
    k = 1 + len(shown)
    e, cover, draws, means = counted[:, :k], counted[:, k], counted[:, k + 1], counted[:, k + 2]
    near = e <= NEAR * e.min(axis=1, keepdims=True)
    for j, who in enumerate(["ours", *shown]):
        told = f"within 2 % of the lowest error in {near[:, j].sum()} of {len(e)} cases ({near[:, j].mean():.0%})"
        ratio = np.exp(np.log(e[:, j] / e.min(axis=1)).mean())
        print(f"{who:12}{told}, worst in {(e.argmax(axis=1) == j).sum()}, {ratio:.3f} times the lowest on average")
    print(f"coverage of 90 % intervals: {cover.min():.2f} to {cover.max():.2f}, mean {cover.mean():.3f}")
    print(f"draws nearer to the truth than means (energy) in {np.mean((draws < means)[~np.isnan(draws)]):.0%} of cases")


if __name__ == "__main__":
    part, *more = sys.argv[1:] or ["odd"]
    numbers = [int(a) for a in more if a.isdigit()]
    main(part, "rivals" in more, [*numbers, SEEDS][0], [a for a in more if a in SETS])
