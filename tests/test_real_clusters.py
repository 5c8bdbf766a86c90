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

# set: numbers of clusters of its labellings, adjusted Rand index (the best of them) of k-means (10 starts) and of a
# Gaussian mixture (100 starts), as published
PUBLISHED = {
    "fcps/atom": ((2,), 0.182, 0.028),
    "fcps/chainlink": ((2,), 0.093, 0.910),
    "fcps/engytime": ((2,), 0.849, 0.982),
    "fcps/hepta": ((7,), 1.000, 1.000),
    "fcps/lsun": ((3,), 0.440, 1.000),
    "fcps/target": ((2, 6), 0.635, 0.648),
    "fcps/tetra": ((4,), 1.000, 1.000),
    "fcps/twodiamonds": ((2,), 1.000, 1.000),
    "fcps/wingnut": ((2,), 0.859, 0.863),
    "sipu/a1": ((20,), 0.966, 0.958),
    "sipu/a2": ((35,), 0.967, 0.963),
    "sipu/a3": ((50,), 0.946, 0.946),
    "sipu/aggregation": ((7,), 0.762, 0.998),
    "sipu/birch1": ((100,), 0.944, None),
    "sipu/compound": ((4, 5, 6), 0.756, 0.909),
    "sipu/d31": ((31,), 0.954, 0.945),
    "sipu/flame": ((2,), 0.478, 0.342),
    "sipu/jain": ((2,), 0.324, -0.004),
    "sipu/pathbased": ((3, 4), 0.504, 0.597),
    "sipu/r15": ((8, 9, 15), 1.000, 1.000),
    "sipu/s1": ((15,), 0.987, 0.990),
    "sipu/s2": ((15,), 0.937, 0.942),
    "sipu/s3": ((15,), 0.725, 0.729),
    "sipu/s4": ((15,), 0.631, 0.643),
    "sipu/spiral": ((3,), -0.006, -0.005),
    "sipu/unbalance": ((8,), 1.000, 1.000),
    "uci/ecoli": ((8,), 0.461, 0.606),
    "uci/glass": ((6,), 0.274, 0.243),
    "uci/ionosphere": ((2,), 0.178, 0.401),
    "uci/sonar": ((2,), 0.006, 0.001),
    "uci/statlog": ((7,), 0.358, 0.467),
    "uci/wdbc": ((2,), 0.491, 0.706),
    "uci/wine": ((3,), 0.371, 0.825),
    "uci/yeast": ((10,), 0.145, 0.048),
}
# Where the rows are scaled as for the published fits, without columns that are constant and to a standard deviation of
# 1 of all cells together: reg_covar is a size in these units. The others are taken as they are stored; of these
# compound and ionosphere would miss if they were scaled.
SCALED = {"uci/glass", "uci/statlog", "uci/wine"}
# Ten starts each, but for these. Settings were looked for where the published ones miss: the index there is that of
# one draw, or of a fit that ended before EM or k-means did, and better optima have a lower one.
MEANS = {
    # Ten starts have 0.408–0.475 by the seed, scikit-learn's 0.414–0.476, above 0.451 for one seed in ten of either;
    # the least inertia found (13.850) has 0.431. The columns are of very unequal width: 0.63 if they are made alike.
    "uci/ecoli": {"metric": "mahalanobis"},
    # k-means++: 0.338–0.372, scikit-learn 0.337–0.372, above 0.348 for two seeds in five of either. Random rows: 0.403.
    "uci/statlog": {"init": "random"},
}
MIXTURES = {
    "sipu/aggregation": {"n_init": 100},
    "sipu/compound": {"n_init": 100},
    # The published 0.342 has a mean log-likelihood of −5.0908. Ten starts find 0.321, a hundred 0.291 (−5.0856); where
    # EM ends (tol=1e-8) everybody has 0.226 (−5.0838).
    "sipu/flame": {"n_init": 1},
}


def read(name):
    X = np.loadtxt(DATA / f"{name}.data.gz", ndmin=2)
    labels = [np.loadtxt(f, dtype=int) for f in sorted((DATA / name).parent.glob(f"{Path(name).name}.labels*.gz"))]
    return X, labels


def agreement(found, labels, k):
    fitting = [y for y in labels if len(np.unique(y[y > 0])) == k]
    return max(adjusted_rand_score(y[y > 0], found[y > 0]) for y in fitting)


def assert_as_published(published, model, X, labels, ks, **settings):
    """The median over five seeds of the agreement, the best over the labellings, is as published: three have it."""
    found = []
    for seed in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of many fits some do not converge, as the published ones
            each = [model(k, random_state=seed, **settings).fit(X).labels_ for k in ks]
        found.append(max(map(agreement, each, [labels] * len(ks), ks)))
        as_good = sum(index >= published - 0.01 for index in found)
        if 3 in (as_good, len(found) - as_good):  # the other seeds cannot change it
            break
    assert as_good == 3, found


@pytest.mark.parametrize("name", PUBLISHED)
def test_k_means_agrees_as_published(name):
    ks, published, _ = PUBLISHED[name]
    assert_as_published(published, unmix.KMeans, *read(name), ks, **{"n_init": 10, **MEANS.get(name, {})})


@pytest.mark.parametrize("name", [name for name, row in PUBLISHED.items() if row[2] is not None])
def test_a_mixture_agrees_as_published(name):
    ks, _, published = PUBLISHED[name]
    X, labels = read(name)
    if name in SCALED:
        X = X[:, X.std(axis=0) > 0]
        X = (X - X.mean(axis=0)) / X.std(ddof=1)
    assert_as_published(published, unmix.GaussianMixture, X, labels, ks, **{"n_init": 10, **MIXTURES.get(name, {})})


def chosen(model, name, k):
    X, _ = read(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many fits some do not converge, as the published ones
        return unmix.select(model, X, range(1, round(1.3 * k) + 4), random_state=0)


@pytest.mark.parametrize("name", ["sipu/a1", "sipu/a2", "sipu/a3", *(f"sipu/s{i}" for i in range(1, 5)), "fcps/hepta",
                                  "fcps/tetra", "fcps/twodiamonds"])  # fmt: skip
def test_k_means_finds_the_number_of_clusters(name):
    (k,) = PUBLISHED[name][0]
    answer = chosen(unmix.KMeans(n_init=5), name, k)
    assert answer.k == k, str(answer)


# Not S2 (18 or 15 by the seed; the mixture of 18 has the lower icl) nor S3 (13).
@pytest.mark.parametrize("name", ["sipu/a1", "sipu/a2", "sipu/a3", "sipu/s1", "sipu/s4", "fcps/hepta", "fcps/tetra",
                                  "fcps/twodiamonds", "fcps/lsun", "fcps/engytime"])  # fmt: skip
def test_a_mixture_finds_the_number_of_clusters(name):
    (k,) = PUBLISHED[name][0]
    answer = chosen(unmix.GaussianMixture(n_init=2), name, k)
    assert answer.k == k, str(answer)


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("model", [unmix.KMeans(), unmix.GaussianMixture()])
def test_one_where_there_is_one(model, kind):
    ones = 0
    for seed in range(20):
        X = getattr(np.random.default_rng(seed), kind)(size=(200, 2)) * [1, 3]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of many fits some do not converge
            ones += unmix.select(model, X, range(1, 6), random_state=seed).k == 1
    assert ones >= 19
