"""What models say that may be asked of them, and what the adapter finds in estimators of other packages."""

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, Birch, MeanShift
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.decomposition import PCA as TheirPCA
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unmix
from unmix.model.adapter import adapt, pairwise, streams
from unmix.model.capabilities import (
    Completes,
    Components,
    Density,
    Geometry,
    Groups,
    Imputes,
    Memberships,
    PerColumn,
    Recommends,
    Reconstructs,
    Samples,
)
from unmix.outlier import RowDensity

CONTRACT = {
    Groups: ["assign"],
    Density: ["log_density", "n_parameters"],
    Samples: ["sample"],
    Completes: ["completion"],
    Imputes: ["conditional", "drawn"],
    Geometry: ["centers"],
    PerColumn: ["numbered", "per_column"],
    Recommends: ["predict", "recommend"],
}
MIXTURE = {Density, Groups, Memberships, Samples, Imputes}
DECLARED = {
    "PCA": {Density, Samples, Imputes, Reconstructs, Components},
    "ProbabilisticPCA": {Density, Samples, Imputes, Reconstructs, Components},
    "KernelPCA": {Reconstructs},
    "FactorAnalysis": {Density, Imputes, Reconstructs, Components},
    "GaussianImputer": {Density, Imputes},
    "RobustPCA": {Reconstructs, Components},
    "FastICA": {Reconstructs, Components},
    "TruncatedSVD": {Reconstructs, Components},
    "KMeans": {Groups, Geometry},
    "SoftKMeans": {Groups, Geometry},
    "KernelKMeans": {Groups, Geometry},
    "KMedoids": {Groups, Geometry},
    "GaussianMixture": MIXTURE,
    "BayesianGaussianMixture": MIXTURE,
    "Mixture": {*MIXTURE, PerColumn},
    "MixtureOfFactorAnalyzers": MIXTURE,
    "NMF": {Reconstructs, Components},
    "LatentDirichletAllocation": {Completes, Components},
    "MultiAssignmentClustering": {Density, Imputes, Reconstructs},
    "DiscreteBasis": {Reconstructs},
    "RoleMiner": {Reconstructs},
    "RoundedSVD": {Reconstructs},
    "RoleCover": {Reconstructs},
    "PMF": {Recommends, Imputes, Components},
}
EVERY = [*CONTRACT, Memberships, Reconstructs, Components]


def capabilities(model):
    return {c for c in EVERY if isinstance(model, c)}


@pytest.mark.parametrize("name", list(unmix.models()))
def test_models_declare_what_they_can_and_implement_it(name):
    cls = unmix.models()[name]
    assert capabilities(cls()) == DECLARED[name]
    for capability, methods in CONTRACT.items():
        for method in methods if issubclass(cls, capability) else ():
            assert getattr(cls, method) is not getattr(capability, method), f"{name} lacks {method}"
    assert hasattr(cls, "predict") == issubclass(cls, (Groups, Recommends))
    assert hasattr(cls, "score_samples") == issubclass(cls, Density)


def test_what_depends_on_parameters_is_an_answer_of_the_instance():
    assert unmix.KMeans().space.squared
    assert not unmix.KMeans(metric="manhattan").space.squared
    assert not unmix.KMeans(metric="cosine").space.clouds
    assert unmix.KMedoids(metric="precomputed").space.pairwise
    assert not unmix.KernelKMeans().space.unknown
    assert "K(x, x)" in unmix.KernelKMeans(kernel="precomputed").space.unknown
    assert unmix.Mixture(family="multinomial").why_not() == "family='multinomial'"
    assert not unmix.Mixture(family="poisson").why_not()
    assert unmix.Mixture(family=[("poisson", [0])]).per_column()


@pytest.mark.parametrize(
    ("estimator", "wanted"),
    [
        (TheirKMeans(2, n_init=1), {Groups, Geometry}),
        (Birch(n_clusters=2), {Groups, Geometry}),
        (MeanShift(), {Groups, Geometry}),
        (DBSCAN(), {Groups}),
        (TheirMixture(2), {Groups, Density, Imputes}),
        (TheirPCA(1), {Density, Imputes}),
        (StandardScaler(), set()),
        (make_pipeline(StandardScaler(), TheirKMeans(2, n_init=1)), {Groups, Geometry}),
        (unmix.Select(unmix.KMeans(), k=[2]), {Groups, Geometry}),
        (unmix.KMeans(2), {Groups, Geometry}),
        (RowDensity(), {Density, Imputes}),
    ],
)
def test_estimators_come_with_the_capabilities_that_they_have(estimator, wanted):
    X = np.repeat([[0.0, 0.0], [9.0, 5.0]], 30, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
    known = adapt(estimator.fit(X))
    assert capabilities(known) == wanted
    assert type(known).__name__ in (type(estimator).__name__, "KMeans")
    assert not pairwise(estimator)
    assert streams(estimator) == type(estimator).__module__.startswith("unmix")
    if Groups in wanted and known.labels_new_rows:
        np.testing.assert_array_equal(known.predict(X), estimator.predict(X))
    assert not isinstance(known, Groups) or known.labels_new_rows == hasattr(estimator, "predict")


def test_a_precomputed_matrix_is_seen_in_other_packages_too():
    assert pairwise(DBSCAN(metric="precomputed"))
    assert pairwise(unmix.KernelKMeans(kernel="precomputed"))
    assert pairwise(unmix.Select(unmix.KMedoids(metric="precomputed")))
