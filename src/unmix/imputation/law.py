"""The density that cells are drawn by, and how far its parameters may be from the truth.

    x_h ~ p_b(x_h | x_o)            p_b: the density fitted to rows that weigh as b has them, b = 1 … B

Weights are exponential (Rubin's bootstrap: no column loses all its cells), and each fit goes on from that of all rows,
so that components stay what they are; their number is that of the least BIC. A draw takes one of these densities, so
draws differ by what is not known of the parameters, too, and all cells of a row are drawn together. Of many rows n_b
are weighed, and what an estimate then deviates is made as small as n rows make it.

A residual variance of n rows on p columns is too small by (n − p − 1)/n, and once more so where rows are drawn from
rows: noise is made larger by √(n/(n − 2(p + 1))), by √2 at most, n the rows of a component, p the observed cells of
a row. Where n_b rows are weighed it is no more: slopes that deviate as n rows make them cost p/n of a variance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unmix.engine.draws import generator
from unmix.imputation.candidates import DENSITIES, some_rows
from unmix.imputation.columns import Columns
from unmix.maths import gaussian
from unmix.maths.arrays import Array
from unmix.mixture.gaussian import GaussianMixture
from unmix.model import fit_together

ESTIMATES = 20  # of the bootstrap
BOOTSTRAP_ROWS = 2000  # of which each is made, at most
STEPS, TOL = 200, 1e-6  # EM that ends early has not left the fit that it began with
RIDGE_ROWS = 0.1  # for each column: what the ridge of a component counts for
LEAST_RIDGE, MOST_RIDGE = 1e-4, 0.2
COMPONENTS = (2, 3, 4, 6, 8)  # where there are several, one of these, by BIC


class Law(NamedTuple):
    """Mixtures of Gaussians: of all rows, then those of the bootstrap; none at all where cells get the mean."""

    weights: Annotated[np.ndarray, Array("v k", low=0.0, high=1.0)]
    means: Annotated[np.ndarray, Array("v k w")]
    covariances: Annotated[np.ndarray, Array("v k w w")]
    rows: Annotated[float, Array(low=0.0)]  # that show a column, on average

    def moments(self, i: int, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Conditional means and deviations of missing cells by estimate i."""
        seen = ~np.isnan(u)
        mean, variance = gaussian.conditional(
            np.where(seen, u, 0.0), seen, self.weights[i], self.means[i], self.covariances[i]
        )
        return np.where(seen, u, mean), np.sqrt(np.where(seen, 0.0, variance))

    def drawn(self, i: int, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows whose missing cells are drawn by estimate i, together."""
        seen, mixture = ~np.isnan(u), (self.weights[i], self.means[i], self.covariances[i])
        x = np.where(seen, u, 0.0)
        which = gaussian.chosen(gaussian.members(x, seen, *mixture)[0], rng)
        noise, out = rng.standard_normal(x.shape), x.copy()
        for k, (share, mean, covariance) in enumerate(zip(*mixture, strict=True)):
            own = np.flatnonzero(which == k)
            if len(own):
                more = np.sqrt(gaussian.wider(share * self.rows, seen[own], 2))
                found = gaussian.completed(x[own], seen[own], mean, covariance, noise=more * noise[own])
                out[own] = mean + found.rows
        return np.where(seen, u, out)


def nothing(d: int) -> Law:
    """No law."""
    return Law(np.zeros((0, 0)), np.zeros((0, 0, d)), np.zeros((0, 0, d, d)), 0.0)


def fit_law(
    name: str, y: np.ndarray, columns: Columns, groups: Sequence[np.ndarray], seed: int, tell: Callable[..., None]
) -> Law:
    """A density of rows, and of its bootstrap."""
    kind = DENSITIES[name]
    y = y[~np.isnan(y).all(axis=1)]
    u, (n, d) = columns.bend(y) if kind.bent else y, y.shape
    rows = float((~np.isnan(u)).sum() / d)

    def model(k: int) -> GaussianMixture:
        ridge = kind.ridge  # components collapse about values that are few
        if columns.bent.all():
            ridge = float(np.clip(RIDGE_ROWS * d * k / n, LEAST_RIDGE, MOST_RIDGE))
        return GaussianMixture(k, reg_covar=ridge, max_iter=STEPS, tol=TOL, random_state=seed)

    rng, size = generator(seed, "bootstrap"), min(n, BOOTSTRAP_ROWS)
    some = some_rows(y, groups, size, rng)
    numbers = [k for k in COMPONENTS if k <= kind.components] if kind.components > 1 else [1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tell("draws, how many Gaussians")
        fit = min((model(k).fit(u[some]) for k in numbers), key=lambda m: m.bic(u[some]))
        k = len(fit.weights_)
        if size < n:
            tell(f"draws, Gaussians: {k}")
            fit = model(k).fit(u)
        found = [fit.gaussians()]
        for b in range(ESTIMATES):
            tell(f"draws, the bootstrap {b + 1} of {ESTIMATES}")
            w, again = rng.exponential(size=size), model(k)
            some = some_rows(y, groups, size, rng)
            fit_together([again], u[some], [w * (size / w.sum())], [seed], first=[fit.parts])
            found.append(again.gaussians())
    c = np.sqrt(size / (2.0 * n - size))  # beside the weights, the rows that were taken vary, too
    stacked = [np.stack([one[i] for one in found]) for i in range(3)]
    first, second, third = ((1 - c) * a[:1] + c * a for a in stacked)
    return Law(first, second, third, rows)
