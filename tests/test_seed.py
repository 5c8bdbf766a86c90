"""What is deterministic by nature does not depend on the seed, nor on whether one is given."""

import numpy as np
import pytest

import unmix
from unmix.engine import layout

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few passes on purpose
MODELS = unmix.models()
N, K = 6000, 3


def rows(positive=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(K, 5))[np.arange(N) % K] * 4 + rng.normal(size=(N, 5)) + 7
    return np.abs(X) if positive else X


def counts():
    return np.random.default_rng(0).poisson(3.0, size=(N, 5)).astype(float)


# parameters with which nothing is drawn, and the rows; one that draws whatever they are, or nothing ever, says so
UNDRAWN = {
    "PCA": [({}, rows), ({"svd_solver": "full"}, rows), ({"n_components": 2, "svd_solver": "covariance_eigh"}, rows)],
    "ProbabilisticPCA": [({}, rows), ({"n_components": 2}, rows), ({"n_components": 2, "method": "em"}, rows)],
    "KernelPCA": [({"kernel": "rbf", "n_components": 2, "eigen_solver": "dense"}, lambda: rows()[:600])],
    "FactorAnalysis": [({"n_components": 2, "svd_method": "lapack"}, rows), ({"n_components": 2}, rows)],
    "TruncatedSVD": [({"n_components": 2}, rows)],
    "GaussianImputer": [({"n_bootstrap": 0}, rows)],
    "RobustPCA": "the directions in which singular vectors are sought are drawn",
    "FastICA": [({"w_init": np.eye(5)}, rows), ({"w_init": np.eye(5), "algorithm": "deflation"}, rows)],
    "KMeans": [
        ({"n_clusters": K, "init": rows()[:K], "n_init": 1, "metric": metric}, rows)
        for metric in ("euclidean", "manhattan", "mahalanobis", "cosine")
    ],
    "SoftKMeans": [({"n_clusters": K, "init": rows()[:K]}, rows)],
    "KernelKMeans": [({"n_clusters": K, "init": np.arange(600) % K}, lambda: rows()[:600])],
    "KMedoids": "rows are looked at in a random order",
    "PMF": [({"n_components": 0}, rows)],
    "GaussianMixture": [
        (
            {
                "n_components": K,
                "weights_init": np.full(K, 1 / K),
                "means_init": rows()[:K],
                "precisions_init": np.tile(np.eye(5), (K, 1, 1)),
            },
            rows,
        )
    ],
    "BayesianGaussianMixture": "every start is drawn",
    "Mixture": "every start is drawn",
    "MixtureOfFactorAnalyzers": "every start is drawn",
    "NMF": [({"n_components": K, "init": init, "max_iter": 20}, lambda: rows(True)) for init in ("nndsvd", "nndsvda")],
    "MultiAssignmentClustering": "every start is drawn",
    "DiscreteBasis": "nothing is drawn, and there is no random_state",
    "RoleMiner": "nothing is drawn, and there is no random_state",
    "RoundedSVD": "nothing is drawn, and there is no random_state",
    "RoleCover": "the search is drawn",
    "LatentDirichletAllocation": [
        ({"n_components": K, "components_init": counts()[:K] + 1, "max_iter": 5}, counts),
    ],
}
CASES = [
    pytest.param(name, params, data, id=f"{name}-{i}")
    for name, cases in UNDRAWN.items()
    if not isinstance(cases, str)
    for i, (params, data) in enumerate(cases)
]


def test_every_model_is_asked():
    assert set(UNDRAWN) == set(MODELS)


@pytest.mark.parametrize(("name", "params", "data"), CASES)
def test_no_seed_where_nothing_is_drawn(name, params, data, monkeypatch):
    monkeypatch.setattr(layout, "sample_rows", lambda shape: min(shape.n, 500))  # large data are sampled: let these be
    fits = [MODELS[name](**params).fit(data())]
    fits += [MODELS[name](**params).set_params(random_state=seed).fit(data()) for seed in (None, 1, 2)]
    published = [k for k, v in vars(fits[0]).items() if k.endswith("_") and k[0] != "_" and isinstance(v, np.ndarray)]
    assert published
    for other in fits[1:]:
        for attribute in published:
            assert np.array_equal(vars(fits[0])[attribute], vars(other)[attribute]), attribute
