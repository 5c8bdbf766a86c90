"""Where scikit-learn's own tests of our namesakes fail, and why; and parameters that ours do not have.

One section for each of scikit-learn's test modules. The key of an entry is the beginning of a test's name, parameters
included (a regular expression); its kind is

    private       it asks for something that scikit-learn keeps for itself
    wording       it asks for the words of a message; ours says the same in others
    difference    ours does something else, on purpose: the reason is for users (docs/coming_from_scikit_learn.md)
"""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    """A test module of scikit-learn: which of our models it is about, and what fails in it."""

    names: tuple[str, ...]
    entries: dict[str, tuple[str, str]]


# ---------------------------------------------------------------------------------------------- sklearn.cluster
K_MEANS = {
    "test_kmeans_relocated_clusters": (
        "difference",
        "an empty cluster is put beside the centre of the one that varies most, not on the farthest row: a pass more",
    ),
    "test_kmeans_init_auto_with_initial_centroids": ("private", "_n_init"),
    "test_n_init_auto": ("private", "_n_init"),
    "test_sample_weight_init": ("private", "_init_centroids"),
    "test_sample_weight_zero": ("private", "_init_centroids"),
    "test_kmeans_verbose": ("wording", "verbose prints a line for each pass, in other words"),
    "test_kmeans_warns_less_centers_than_unique_points": ("wording", "the second sentence of the warning"),
    r"test_wrong_params\[param[1-4]": ("wording", "init of another shape is refused in other words"),
}

# ---------------------------------------------------------------------------------------------- sklearn.decomposition
PCA = {
    "test_sparse_pca_solver_error": ("difference", "sparse rows are taken by every solver"),
    "test_pca_score\\[": (
        "difference",
        "whitening does not change the density: the scores with and without it are equal, not by rounding apart",
    ),
    "test_pca_score_consistency_solvers\\[randomized": (
        "difference",
        "other random directions: the score is 5e-6 to 2e-5 off the exact one, as scikit-learn's is for other seeds",
    ),
    "test_pca_svd_solver_auto": ("private", "_fit_svd_solver"),
    r"test_pca_validation\[auto-3-": ("wording", "the message names the svd_solver that was given, 'auto'"),
    "test_n_components_mle_error": ("wording", "n_components='mle' is refused in other words"),
}

FACTOR_ANALYSIS: dict[str, tuple[str, str]] = {}

# -- NMF --
NMF: dict[str, tuple[str, str]] = {}

# -- LatentDirichletAllocation --
ONLINE_LDA: dict[str, tuple[str, str]] = {}

# ---------------------------------------------------------------------------------------------- sklearn.mixture
GAUSSIAN_MIXTURE: dict[str, tuple[str, str]] = {}
BAYESIAN_MIXTURE: dict[str, tuple[str, str]] = {}
MIXTURE: dict[str, tuple[str, str]] = {}

# ----------------------------------------------------------------------------------------------
SECTIONS = {
    "sklearn.cluster.tests.test_k_means": Section(("KMeans",), K_MEANS),
    "sklearn.decomposition.tests.test_pca": Section(("PCA",), PCA),
    "sklearn.decomposition.tests.test_factor_analysis": Section(("FactorAnalysis",), FACTOR_ANALYSIS),
    "sklearn.decomposition.tests.test_nmf": Section(("NMF",), NMF),
    "sklearn.decomposition.tests.test_online_lda": Section(("LatentDirichletAllocation",), ONLINE_LDA),
    "sklearn.mixture.tests.test_gaussian_mixture": Section(("GaussianMixture",), GAUSSIAN_MIXTURE),
    "sklearn.mixture.tests.test_bayesian_mixture": Section(("BayesianGaussianMixture",), BAYESIAN_MIXTURE),
    "sklearn.mixture.tests.test_mixture": Section(("GaussianMixture", "BayesianGaussianMixture"), MIXTURE),
}

# (model, method, parameter) that scikit-learn has and ours has not, or with another default
SIGNATURES: dict[tuple[str, str, str], str] = {
    ("GaussianMixture", "__init__", "warm_start"): "to come",
    ("GaussianMixture", "__init__", "verbose"): "to come",
    ("GaussianMixture", "__init__", "verbose_interval"): "to come",
    ("BayesianGaussianMixture", "__init__", "warm_start"): "to come",
    ("BayesianGaussianMixture", "__init__", "verbose"): "to come",
    ("BayesianGaussianMixture", "__init__", "verbose_interval"): "to come",
    ("NMF", "__init__", "solver"): 'the default "auto" takes the solver that suits `beta_loss`',
    ("NMF", "__init__", "verbose"): "to come",
    ("NMF", "__init__", "shuffle"): "to come",
    ("NMF", "fit_transform", "W"): "to come",
    ("NMF", "fit_transform", "H"): "to come",
}
