"""How many clusters? `unmix.select` beside the criteria that other packages offer, where the answer is known.

`python -m benchmarks.how_many [sets|others|planted|noise] [draws]`

- sets: A1–A3 and S1–S4 of the sipu collection, and the FCPS sets on which the model fits: those where its published
  adjusted Rand index at the true k is at least 0.95. The tests look at most of them as well.
- others: by the same rule, sets of the sipu collection with one published k that no test of `select` looks at.
- planted: Gaussians of unequal weights and covariances, 20 draws unless told.
- noise: one Gaussian, and uniform rows, 100 draws each unless told; only `unmix.select` is asked, the answer is 1.

Everybody gets the same k: from 1, or from 2 where a method cannot say 1, to 1.3 times the true number and three more.
"unmix" is `select` with its defaults, on KMeans with 5 starts or GaussianMixture with 2; the peers' k-means have 10
starts where they let one say so, their mixtures 2. "?" is a method that did not decide, "missing" one that is not
installed. Seconds are the processor's, mean over the sets. This is about answers, not speed: no part of `make bench`.
The sets are read from the folder UNMIX_DATA. yellowbrick no longer takes scikit-learn's KMeans for a clustering
(`force_model` helps), and pyclustering asks for `numpy.warnings`, which NumPy no longer has: it is supplied.
"""

import importlib.util
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, metrics, mixture

import unmix
from benchmarks.harness import table, tell

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data")) / "clustering"
FITS = 0.95  # published adjusted Rand index from which on a model suits a set
# set: true k, published index of k-means and of a Gaussian mixture; without them it is asked of both
SETS: dict[str, dict[str, tuple[Any, ...]]] = {
    "sets": {
        "sipu/a1": (20,), "sipu/a2": (35,), "sipu/a3": (50,), **{f"sipu/s{i}": (15,) for i in range(1, 5)},
        "fcps/atom": (2, 0.182, 0.028), "fcps/chainlink": (2, 0.093, 0.910), "fcps/engytime": (2, 0.849, 0.982),
        "fcps/hepta": (7, 1.000, 1.000), "fcps/lsun": (3, 0.440, 1.000), "fcps/tetra": (4, 1.000, 1.000),
        "fcps/twodiamonds": (2, 1.000, 1.000), "fcps/wingnut": (2, 0.859, 0.863),
    },
    "others": {"sipu/aggregation": (7, 0.762, 0.998), "sipu/d31": (31, 0.954, 0.945), "sipu/unbalance": (8, 1.0, 1.0)},
}  # fmt: skip
Problem = tuple[str, int, np.ndarray]  # name, true k, rows


def published(part: str, column: int) -> Iterator[Problem]:
    """The sets that suit a model."""
    for name, (k, *index) in SETS[part].items():
        if not index or index[column] >= FITS:
            yield name, k, np.loadtxt(DATA / f"{name}.data.gz", ndmin=2)


def planted(draws: int) -> Iterator[Problem]:
    """Gaussians of which the nearest two are 3 to 6 standard deviations apart, along the line that joins them."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        k, d, n = int(rng.integers(2, 9)), int(rng.choice([2, 5, 10])), int(rng.integers(500, 2001))
        apart, weights = rng.uniform(3, 6), rng.uniform(1, 3, size=k)
        turned = np.linalg.qr(rng.standard_normal((k, d, d)))[0]
        axes = turned * np.exp(rng.uniform(-np.log(2), np.log(2), size=(k, 1, d)))  # standard deviations of ½ to 2
        means = rng.standard_normal((k, d))
        means *= apart / separation(means, axes)
        label = rng.choice(k, size=n, p=weights / weights.sum())
        X = means[label] + np.einsum("nij,nj->ni", axes[label], rng.standard_normal((n, d)))
        yield f"{seed}: {n}×{d}, {apart:.1f} sd", k, X


def separation(means: np.ndarray, axes: np.ndarray) -> float:
    """The least distance of two means, in the mean of their standard deviations along the line that joins them."""
    i, j = np.triu_indices(len(means), 1)
    line = means[i] - means[j]
    spread = sum(np.linalg.norm(np.einsum("pij,pi->pj", axes[g], line), axis=1) for g in (i, j)) / 2
    return float(np.min((line**2).sum(axis=1) / spread))


class Method(NamedTuple):
    """Ways to choose k that share their fits; `f(rows, largest k)` gives an answer for each name."""

    names: tuple[str, ...]
    needs: str
    f: Callable[[np.ndarray, int], Iterable[Any]]


def ours(model: Any) -> Method:
    return Method(("unmix",), "unmix", lambda X, most: [unmix.select(model, X, range(1, most + 1), random_state=0).k])


def indices(X: np.ndarray, most: int) -> Iterator[int]:
    labels = [cluster.KMeans(k, n_init=10, random_state=0).fit_predict(X) for k in range(2, most + 1)]
    yield 2 + np.argmax([metrics.calinski_harabasz_score(X, y) for y in labels])
    yield 2 + np.argmin([metrics.davies_bouldin_score(X, y) for y in labels])
    yield 2 + np.argmax([metrics.silhouette_score(X, y) for y in labels])


def elbow(metric: str) -> Method:
    def f(X: np.ndarray, most: int) -> Iterator[Any]:
        os.environ.setdefault("MPLBACKEND", "Agg")
        make = importlib.import_module("yellowbrick.cluster").KElbowVisualizer
        settings = {"k": (2, most + 1), "metric": metric, "timings": False, "force_model": True}
        yield make(cluster.KMeans(n_init=10, random_state=0), **settings).fit(X).elbow_value_

    return Method((f"yellowbrick, {metric}",), "yellowbrick", f)


def pyclustering(name: str, make: Callable[[Any, list[Any], int], Any]) -> Method:
    def f(X: np.ndarray, most: int) -> Iterator[int]:
        np.warnings = warnings
        found = make(importlib.import_module(f"pyclustering.cluster.{name}"), X.tolist(), most).process()
        yield found.get_amount() if hasattr(found, "get_amount") else len(found.get_clusters())

    return Method((f"pyclustering, {name}",), "pyclustering", f)


def information(X: np.ndarray, most: int) -> Iterator[int]:
    fits = [mixture.GaussianMixture(k, n_init=2, random_state=0).fit(X) for k in range(1, most + 1)]
    yield 1 + np.argmin([m.bic(X) for m in fits])
    yield 1 + np.argmin([m.aic(X) for m in fits])


def bayesian(X: np.ndarray, most: int) -> Iterator[int]:
    model = mixture.BayesianGaussianMixture(n_components=most, n_init=2, max_iter=1000, random_state=0)
    yield np.sum(model.fit(X).weights_ > 0.01)


METHODS = {
    "KMeans": [
        ours(unmix.KMeans(n_init=5)),
        Method(tuple(f"scikit-learn, {i}" for i in ("C.-Harabasz", "D.-Bouldin", "silhouette")), "sklearn", indices),
        *map(elbow, ("distortion", "silhouette", "calinski_harabasz")),
        pyclustering("silhouette", lambda module, x, k: module.silhouette_ksearch(x, 2, k + 1, random_state=0)),
        pyclustering("elbow", lambda module, x, k: module.elbow(x, 1, k, random_state=0)),
        pyclustering("xmeans", lambda module, x, k: module.xmeans(x, None, k, repeat=10, random_state=0)),
        pyclustering("gmeans", lambda module, x, k: module.gmeans(x, k_max=k, repeat=10, random_state=0)),
    ],
    "GaussianMixture": [
        ours(unmix.GaussianMixture(n_init=2)),
        Method(("scikit-learn, BIC", "scikit-learn, AIC"), "sklearn", information),
        Method(("scikit-learn, Bayesian",), "sklearn", bayesian),
    ],
}


def ask(method: Method, X: np.ndarray, most: int) -> list[tuple[Any, float]]:
    """For each name the answer, or why there is none, and the seconds until it came."""
    said: list[tuple[Any, float]] = []
    begin, problem = time.process_time(), "missing"
    try:
        for k in method.f(X, most) if importlib.util.find_spec(method.needs) else ():
            said.append((None if k is None else int(k), time.process_time() - begin))
    except Exception as error:
        problem = type(error).__name__
    return said + [(problem, np.nan)] * (len(method.names) - len(said))


def compare(methods: list[Method], problems: Iterable[Problem]) -> dict[str, int]:
    """Ask everybody about every problem; print what they said, and return how often each was right."""
    names = [name for method in methods for name in method.names]
    right, seconds, lines = dict.fromkeys(names, 0), [], []
    for name, k, X in problems:
        said = [answer for method in methods for answer in ask(method, X, round(1.3 * k) + 3)]
        lines.append((name, str(k), *("?" if a is None else f"**{a}**" if a == k else str(a) for a, _ in said)))
        seconds.append([s for _, s in said])
        for who, (a, _) in zip(names, said, strict=True):
            right[who] += a == k
    mean = np.nanmean(seconds, axis=0)  # NaN of those that never answered
    count = ["–" if np.isnan(s) else str(n) for n, s in zip(right.values(), mean, strict=True)]
    lines += [(f"right of {len(lines)}", "", *count), ("seconds", "", *(f"{s:.2g}" for s in mean))]
    tell(table(("", "true", *names), lines) + "\n")
    return right


def noise(draws: int) -> Counter[tuple[str, str, int]]:
    """How often `unmix.select` says 1 where there is nothing, by model, kind of rows and columns."""
    ones: Counter[tuple[str, str, int]] = Counter()
    for model, kind, d, seed in product(("KMeans", "GaussianMixture"), ("normal", "uniform"), (2, 5), range(draws)):
        X = getattr(np.random.default_rng(seed), kind)(size=(200, d)) * np.linspace(1, 3, d)
        ones[model, kind, d] += unmix.select(getattr(unmix, model)(), X, range(1, 6), random_state=seed).k == 1
    lines = [(*map(str, key), str(said)) for key, said in ones.items()]
    tell(table(("model", "rows", "columns", f"1, of {draws}"), lines) + "\n")
    return ones


def main(part: str = "", draws: str = "") -> None:
    warnings.simplefilter("ignore")
    for name in [part] if part else [*SETS, "planted", "noise"]:
        tell(f"### {name}\n")
        if name == "noise":
            noise(int(draws or 100))
        for column, methods in enumerate(METHODS.values() if name != "noise" else ()):
            compare(methods, planted(int(draws or 20)) if name == "planted" else published(name, column))


if __name__ == "__main__":
    main(*sys.argv[1:])
