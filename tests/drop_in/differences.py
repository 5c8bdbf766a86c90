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

TRUNCATED_SVD: dict[str, tuple[str, str]] = {}
KERNEL_PCA = {
    r"test_precomputed_kernel_not_psd\[randomized": (
        "difference",
        'eigen_solver="randomized" finds the largest eigenvalues, as the others do, not those of largest modulus',
    ),
}

FACTOR_ANALYSIS: dict[str, tuple[str, str]] = {}

# -- FastICA --
FAST_ICA = {
    "test_fastica_convergence_fail": ("wording", "the warning says the same in other words"),
    "test_fastica_eigh_low_rank_warning": ("wording", "the warning is a ConvergenceWarning, which the test ignores"),
}

# -- NMF --
NMF = {
    r"test_convergence_warning\[NMF": ("wording", "the warning says the same in other words"),
    "test_parameter_checking": (
        "wording",
        "solver='cd' with another loss than the squared error is refused in other words",
    ),
    "test_nmf_custom_init_shape_error": ("wording", "a W of another shape is refused in other words"),
    r"test_nmf_n_components_auto\[NMF": ("private", "_n_components; n_components_ is there"),
    "test_non_negative_factorization_checking": ("wording", "an H of zeros is refused in other words"),
    "test_nmf_negative_beta_loss": ("wording", "zeros under a negative beta_loss are refused in other words"),
    "test_nmf_w_h_not_used_warning": ("wording", "the warning says the same in other words"),
    "test_nmf_multiplicative_update_sparse": (
        "difference",
        "beta_loss=1 takes longer steps than beta_loss=0.99999: after twenty passes they are not equally far",
    ),
    "test_nmf_minibatchnmf_equivalence": (
        "difference",
        "the coordinate steps are not those of scikit-learn's `MiniBatchNMF`: W differs after the same number of them",
    ),
    r"test_nmf_custom_init_dtype_error\[NMF": (
        "difference",
        "W and H of another precision than X are converted, where scikit-learn refuses them",
    ),
}

# -- LatentDirichletAllocation --
ONLINE_LDA = {
    "test_lda_preplexity_mismatch": ("private", "_perplexity_precomp_distr"),
    r"test_verbosity\[csr_\w+-True": ("wording", "verbose prints a line for each step of each stage, in other words"),
}

# ---------------------------------------------------------------------------------------------- sklearn.mixture
GAUSSIAN_MIXTURE = {
    "test_check_weights": ("wording", "weights_init of another shape or sum is refused in other words"),
    "test_check_means": ("wording", "means_init of another shape is refused in other words"),
    "test_check_precisions": ("wording", "precisions_init of another shape is refused in other words"),
    "test_gaussian_mixture_fit_convergence_warning": ("wording", "the warning says the same in other words"),
    "test_sample": ("wording", "n_samples=0 is refused in other words"),
    "test_gaussian_mixture_n_parameters": ("private", "_n_parameters; n_parameters() is there"),
    "test_gaussian_mixture_aic_bic": ("private", "_n_parameters; n_parameters() is there"),
    r"test_gaussian_mixture_precisions_init\[": ("private", "_set_parameters"),
    "test_gaussian_mixture_all_init_does_not_estimate": ("private", "_estimate_gaussian_parameters is counted"),
    "test_regularisation": (
        "difference",
        "with reg_covar=0 a covariance that is singular is raised to a floor, with a warning, not an error",
    ),
}
BAYESIAN_MIXTURE = {
    "test_bayesian_mixture_precisions_prior_initialisation": (
        "wording",
        "degrees_of_freedom_prior that is too small is refused in other words",
    ),
    "test_compare_covar_type": ("private", "_check_parameters and _initialize_parameters"),
}
MIXTURE = {
    "test_mixture_n_components_greater_than_n_samples_error": ("wording", "too few rows are refused in other words"),
}

# ----------------------------------------------------------------------------------------------
SECTIONS = {
    "sklearn.cluster.tests.test_k_means": Section(("KMeans",), K_MEANS),
    "sklearn.decomposition.tests.test_pca": Section(("PCA",), PCA),
    "sklearn.decomposition.tests.test_kernel_pca": Section(("KernelPCA",), KERNEL_PCA),
    "sklearn.decomposition.tests.test_factor_analysis": Section(("FactorAnalysis",), FACTOR_ANALYSIS),
    "sklearn.decomposition.tests.test_truncated_svd": Section(("TruncatedSVD",), TRUNCATED_SVD),
    "sklearn.decomposition.tests.test_fastica": Section(("FastICA",), FAST_ICA),
    "sklearn.decomposition.tests.test_nmf": Section(("NMF",), NMF),
    "sklearn.decomposition.tests.test_online_lda": Section(("LatentDirichletAllocation",), ONLINE_LDA),
    "sklearn.mixture.tests.test_gaussian_mixture": Section(("GaussianMixture",), GAUSSIAN_MIXTURE),
    "sklearn.mixture.tests.test_bayesian_mixture": Section(("BayesianGaussianMixture",), BAYESIAN_MIXTURE),
    "sklearn.mixture.tests.test_mixture": Section(("GaussianMixture", "BayesianGaussianMixture"), MIXTURE),
}

# (model, method, parameter) that scikit-learn has and ours has not, or with another default
SIGNATURES: dict[tuple[str, str, str], str] = {
    ("NMF", "__init__", "solver"): 'the default "auto" takes the solver that suits `beta_loss`',
}
