"""Where scikit-learn's own tests of mixtures, NMF and LDA fail with our classes, and why.

One dict for each of scikit-learn's test modules; the key is the beginning of a test's name, as a regular expression.
"""

from __future__ import annotations

ITERATES = "compares our W, digit by digit, with the iterates of {}, which is scikit-learn's own and not replaced"

NMF = {
    r"test_convergence_warning\[NMF": ("wording", "the warning says the same in other words"),
    "test_parameter_checking": (
        "wording",
        "solver='cd' with another loss than the squared error is refused in other words",
    ),
    "test_nmf_custom_init_shape_error": ("wording", "a W of another shape is refused in other words"),
    r"test_nmf_n_components_auto\[NMF": ("private", "_n_components; n_components_ is there"),
    "test_non_negative_factorization_consistency": ("private", ITERATES.format("non_negative_factorization")),
    "test_nmf_minibatchnmf_equivalence": ("private", ITERATES.format("MiniBatchNMF")),
    r"test_nmf_custom_init_dtype_error\[NMF": (
        "difference",
        "W and H of another precision than X are converted, where scikit-learn refuses them",
    ),
}

ONLINE_LDA = {
    "test_lda_preplexity_mismatch": ("private", "_perplexity_precomp_distr"),
    r"test_verbosity\[csr_\w+-True": ("wording", "verbose prints a line for each step of each stage, in other words"),
}

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
