"""Published clusterings: the adjusted Rand index at the stated k, and the number of clusters that `select` finds."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import unmix

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data")) / "clustering"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.exists(), reason="no UNMIX_DATA")]

# set: clusters, adjusted Rand index of k-means (10 starts) and of a Gaussian mixture (100 starts), as published
PUBLISHED = {
    "fcps/atom": (2, 0.182, 0.028),
    "fcps/chainlink": (2, 0.093, 0.910),
    "fcps/engytime": (2, 0.849, 0.982),
    "fcps/hepta": (7, 1.000, 1.000),
    "fcps/lsun": (3, 0.440, 1.000),
    "fcps/tetra": (4, 1.000, 1.000),
    "fcps/twodiamonds": (2, 1.000, 1.000),
    "fcps/wingnut": (2, 0.859, 0.863),
    "sipu/a1": (20, 0.966, 0.958),
    "sipu/a2": (35, 0.967, 0.963),
    "sipu/a3": (50, 0.946, 0.946),
    "sipu/aggregation": (7, 0.762, 0.998),
    "sipu/d31": (31, 0.954, 0.945),
    "sipu/jain": (2, 0.324, -0.004),
    "sipu/s1": (15, 0.987, 0.990),
    "sipu/s2": (15, 0.937, 0.942),
    "sipu/s3": (15, 0.725, 0.729),
    "sipu/s4": (15, 0.631, 0.643),
    "sipu/spiral": (3, -0.006, -0.005),
    "sipu/unbalance": (8, 1.000, 1.000),
    "uci/ionosphere": (2, 0.178, 0.401),
    "uci/sonar": (2, 0.006, 0.001),
    "uci/wdbc": (2, 0.491, 0.706),
    "uci/yeast": (10, 0.145, 0.048),
}
# Gaussian mixtures whose likelihood ours raise further, to parts that agree less with the labels
HIGHER_LIKELIHOOD = {"sipu/s4"}


def read(name):
    X = np.loadtxt(DATA / f"{name}.data.gz", ndmin=2)
    labels = [np.loadtxt(f, dtype=int) for f in sorted((DATA / name).parent.glob(f"{Path(name).name}.labels*.gz"))]
    return X, labels


def agreement(found, labels, k):
    fitting = [y for y in labels if len(np.unique(y[y > 0])) == k]
    return max(adjusted_rand_score(y[y > 0], found[y > 0]) for y in fitting)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_agreement(name):
    k, means, mixture = PUBLISHED[name]
    X, labels = read(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert agreement(unmix.KMeans(k, n_init=10, random_state=0).fit_predict(X), labels, k) >= means - 0.01
        fitted = unmix.GaussianMixture(k, n_init=20, max_iter=300, random_state=0).fit(X)
    if name not in HIGHER_LIKELIHOOD:
        assert agreement(fitted.predict(X), labels, k) >= mixture - 0.01


def chosen(model, name, k):
    X, _ = read(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unmix.select(model, X, range(1, round(1.3 * k) + 4), random_state=0)


@pytest.mark.parametrize("name", ["sipu/a1", "sipu/a2", "sipu/a3", *(f"sipu/s{i}" for i in range(1, 5)), "fcps/hepta",
                                  "fcps/tetra", "fcps/twodiamonds"])  # fmt: skip
def test_k_means_finds_the_number_of_clusters(name):
    k = PUBLISHED[name][0]
    answer = chosen(unmix.KMeans(n_init=5), name, k)
    assert answer.k == k, str(answer)


@pytest.mark.parametrize("name", ["sipu/s1", "sipu/s2", "sipu/s4", "fcps/hepta", "fcps/tetra", "fcps/twodiamonds",
                                  "fcps/lsun", "fcps/engytime"])  # fmt: skip
def test_a_mixture_finds_the_number_of_clusters(name):
    k = PUBLISHED[name][0]
    answer = chosen(unmix.GaussianMixture(n_init=2), name, k)
    assert answer.k == k, str(answer)


@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
@pytest.mark.parametrize("model", [unmix.KMeans(), unmix.GaussianMixture()])
def test_one_where_there_is_one(model, kind):
    ones = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((200, 2)) if kind == "gaussian" else rng.random((200, 2))) * [1, 3]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ones += unmix.select(model, X, range(1, 6), random_state=seed).k == 1
    assert ones >= 19
