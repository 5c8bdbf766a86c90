"""Families of distributions for `Mixture`, and what a family of one's own is made of.

`Family` says which methods a family has; `over`, `sums`, `counts`, `ratio` and `possible` do what most of them need.
"""

from unmix.mixture.families.base import Family, counts, over, possible, ratio, sums
from unmix.mixture.families.bernoulli import Bernoulli
from unmix.mixture.families.categorical import Categorical
from unmix.mixture.families.count_data import Multinomial, Poisson
from unmix.mixture.families.exponential import Exponential
from unmix.mixture.families.gaussian import Gaussian
from unmix.mixture.families.student import Student

FAMILIES: dict[str, type[Family]] = {
    f.__name__.lower(): f for f in (Gaussian, Bernoulli, Categorical, Multinomial, Poisson, Exponential, Student)
}

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Exponential",
    "Family",
    "Gaussian",
    "Multinomial",
    "Poisson",
    "Student",
    "counts",
    "over",
    "possible",
    "ratio",
    "sums",
]
