"""Mixtures: each row comes from one of several distributions, and which one is hidden."""

from unmix.mixture.bayesian import BayesianGaussianMixture
from unmix.mixture.factor_analyzers import MixtureOfFactorAnalyzers
from unmix.mixture.families import (
    Bernoulli,
    Categorical,
    Exponential,
    Family,
    Gaussian,
    Multinomial,
    Poisson,
    Student,
)
from unmix.mixture.gaussian import GaussianMixture
from unmix.mixture.mixture import Mixture

__all__ = [
    "BayesianGaussianMixture",
    "Bernoulli",
    "Categorical",
    "Exponential",
    "Family",
    "Gaussian",
    "GaussianMixture",
    "Mixture",
    "MixtureOfFactorAnalyzers",
    "Multinomial",
    "Poisson",
    "Student",
]
