"""Mixtures: each row comes from one of several distributions, and which one is hidden."""

from unmix.mixture.gaussian import GaussianMixture

__all__ = ["GaussianMixture"]
