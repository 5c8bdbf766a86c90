"""The models that may fill cells: densities, whose conditional means they are, and regressions on rows so filled.

Densities are of columns in standard deviations, or of their normal scores (`columns.py`); regressions begin where one
Gaussian ends (`others.py`, `regressions.py`). The mean of a column is a candidate, too: weight on it draws guesses in.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unmix.engine.draws import generator
from unmix.imputation.columns import Columns
from unmix.imputation.others import filled, without_each
from unmix.imputation.regressions import Curves, Trees, curves, trees
from unmix.mixture.gaussian import GaussianMixture

MEAN, BASE, SHRUNK, CURVES, TREES = "column mean", "one Gaussian", "one Gaussian, shrunk", "curves", "trees"
FEWEST = 8  # rows, below which the column means are all that can be told
REGRESSION_ROWS = 2000  # of which regressions are made, at most
ROWS_PER_COMPONENT = 15  # at least
FEW_ROWS = 20  # for each column: where there are fewer, a larger ridge may be right
RARE = 6  # rows of each column that any sample of rows has
STEPS = 60  # of a fit, at most: guesses do not need the last digit


class Density(NamedTuple):
    """A density, of columns as they are or of their normal scores; variances, which are about 1, get the ridge."""

    ridge: float
    bent: bool = False
    components: int = 1


def made(density: Density, seed: int) -> Any:
    """The model of a density, not fitted."""
    return GaussianMixture(density.components, reg_covar=density.ridge, max_iter=STEPS, random_state=seed)


DENSITIES: dict[str, Density] = {
    BASE: Density(0.01),
    SHRUNK: Density(0.2),
    "one Gaussian of normal scores": Density(0.02, bent=True),
    "4 Gaussians": Density(0.05, components=4),
    "8 Gaussians": Density(0.05, components=8),
    "3 Gaussians of normal scores": Density(0.05, bent=True, components=3),
}


class Fits(NamedTuple):
    """Fitted candidates: densities by name, regressions by group of columns."""

    models: dict[str, Any]
    curves: list[Curves]
    trees: list[Trees]


def possible(n: int, d: int) -> list[str]:
    """The candidates for so many rows and columns."""
    if n < FEWEST or d < 2:
        return [MEAN]
    names = [k for k, v in DENSITIES.items() if n >= ROWS_PER_COMPONENT * v.components or v.components == 1]
    return [MEAN, *(name for name in names if name != SHRUNK or n < FEW_ROWS * d), CURVES, TREES]


def some_rows(y: np.ndarray, groups: Sequence[np.ndarray], most: int, rng: np.random.Generator) -> np.ndarray:
    """At most so many rows, drawn at random, but first some that show each group: a rare cell must not be lost."""
    order = rng.permutation(len(y))
    if len(y) > most:
        seen = ~np.isnan(y[order])
        rare = [order[seen[:, own].all(axis=1)][:RARE] for own in groups]
        rows = np.concatenate([*rare, order])
        _, at = np.unique(rows, return_index=True)
        order = rows[np.sort(at)][:most]
    return np.sort(order)


def fit_density(name: str, y: np.ndarray, columns: Columns, seed: int) -> Any:
    """A density of the rows that show something."""
    some = ~np.isnan(y).all(axis=1)
    u = columns.bend(y[some]) if DENSITIES[name].bent else y[some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return made(DENSITIES[name], seed).fit(u)


def fit(
    names: Sequence[str],
    y: np.ndarray,
    columns: Columns,
    groups: Sequence[np.ndarray],
    seed: int,
    tell: Callable[..., None],
) -> Fits:
    """Fit these candidates to rows with holes, in standard deviations."""
    models: dict[str, Any] = {}
    chained = CURVES in names or TREES in names
    for name in DENSITIES:
        if name in names or (chained and name == BASE):
            tell(name)
            models[name] = fit_density(name, y, columns, seed)
    if not chained:
        return Fits(models, [], [])
    rng = generator(seed, "regressions")
    some = some_rows(y, groups, REGRESSION_ROWS, rng)
    rows, (_, mean, covariance) = y[some], models[BASE].gaussians()
    designs = without_each(rows, groups, mean[0], covariance[0])
    smooth, forests = [], []
    for g, (own, F) in enumerate(zip(groups, designs, strict=True)):
        seen = ~np.isnan(rows[:, own]).any(axis=1)
        target = rows[seen][:, own]
        if CURVES in names:
            tell(f"{CURVES}, column {g + 1} of {len(groups)}")
            smooth.append(curves(np.ascontiguousarray(F[seen]), target, own, rng))
        if TREES in names:
            tell(f"{TREES}, column {g + 1} of {len(groups)}")
            forests.append(trees(F[seen], target, own, rng))
    return Fits(models, smooth, forests)


def density_moments(name: str, model: Any, y: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Conditional means and deviations of cells in standard deviations, by a density."""
    if not len(y):
        return y, y
    if not DENSITIES[name].bent:
        mean, deviation = model.impute(y, return_std=True)
        return mean, deviation
    return columns.moments(*model.impute(columns.bend(y), return_std=True))


def guesses(fits: Fits, names: Iterable[str], y: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """What each candidate would put into the cells of rows, and its standard deviation: (candidates, n, d)."""
    names, F = list(names), None
    mean, deviation = np.zeros((len(names), *y.shape)), np.ones((len(names), *y.shape))
    for c, name in enumerate(names):
        if name in fits.models:
            mean[c], deviation[c] = density_moments(name, fits.models[name], y, columns)
        elif name != MEAN:
            if F is None:
                _, centre, covariance = fits.models[BASE].gaussians()
                F = np.ascontiguousarray(filled(y, centre[0], covariance[0]))
            for one in fits.curves if name == CURVES else fits.trees:
                mean[c][:, one.columns] = one.predict(F)
                deviation[c][:, one.columns] = one.error
    return columns.within(mean), deviation
