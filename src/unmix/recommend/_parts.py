"""Parts and statistics of a factorisation of ratings, whichever way they are estimated."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from unmix.maths.arrays import POSITIVE, Array

LARGE = 1e30  # in units of the deviation of ratings: nothing is beyond
NOISE_FLOOR = 1e-8  # σ², in units of the variance of the ratings
NOISE_WEIGHT = 20.0  # ratings, as if by which the σ² of one user, or item, is that of all


class Parts(NamedTuple):
    """U: the items, and the laws that users and items are drawn from; all in units of the ratings' deviation."""

    items: Annotated[np.ndarray, Array("d p", low=-LARGE, high=LARGE)]  # E[y]: factors v, and the bias c as the last
    doubt: Annotated[
        np.ndarray, Array("d l", low=-LARGE, high=LARGE)
    ]  # Cov[y], upper triangles; nothing (l = 0) for point estimates
    user_mean: Annotated[np.ndarray, Array("p", low=-LARGE, high=LARGE)]
    user_covariance: Annotated[np.ndarray, Array("p p", low=-LARGE, high=LARGE)]
    item_mean: Annotated[np.ndarray, Array("p", low=-LARGE, high=LARGE)]
    item_covariance: Annotated[np.ndarray, Array("p p", low=-LARGE, high=LARGE)]
    noise: Annotated[float, Array(low=POSITIVE)]  # σ²
    item_noise: Annotated[np.ndarray, Array("d", low=0.0, high=LARGE)]  # that of each item, over σ²
    mean: float  # of all ratings
    unit: Annotated[float, Array(low=POSITIVE)]  # what ratings are divided by, a power of two
    cost: float  # what the items add to the objective


class Stats(NamedTuple):
    """Sums over users; a is (z, 1), t is r − μ − b."""

    n: float  # Σ w
    m: Annotated[np.ndarray, Array("p")]  # Σ w E[x]
    M: Annotated[np.ndarray, Array("q")]  # Σ w E[x xᵀ]
    A: Annotated[np.ndarray, Array("d q")]  # Σ w E[a aᵀ] of the users of an item
    g: Annotated[np.ndarray, Array("d p")]  # Σ w E[a t]
    e: Annotated[np.ndarray, Array("d")]  # Σ w E[t²]
    N: Annotated[np.ndarray, Array("d")]  # Σ w
