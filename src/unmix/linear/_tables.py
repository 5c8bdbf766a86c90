"""The tables of a principal component analysis: where rows and columns lie, and how well the components show them.

Of rows x_i of weight w_i, with z_ia = (x_i − μ) v_a and λ_a the variance along axis a,

    rows      scores z_ia            cos²  z_ia² / |x_i − μ|²       contributions  w_i z_ia² / Σ_i w_i z_ia²
    columns   loadings √λ_a v_aj     cos²  (√λ_a v_aj / s_j)²       contributions  v_aj²

s_j is the standard deviation of column j, so √λ_a v_aj / s_j is its correlation with component a. Over all components
there are, cos² sums to 1; over rows, or over columns, contributions do. Rows and columns that took no part in the fit
(supplementary ones) lie where the others would: a row at its scores, a column y at cov(y, z_a) / √λ_a.

A biplot shows both, rows at z_a / c_a and columns at c_a v_a with c_a = (√λ_a √n)^scale: their inner products are the
cells, as far as two components describe them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.config import get_config
from unmix.engine.sources import as_source
from unmix.model.frames import frame


class Points(NamedTuple):
    """Rows or columns among the components.

    Attributes
    ----------
    names : list of str
        Names of the columns, or numbers of the rows.
    coordinates : ndarray of shape (m, k)
        Scores of rows, loadings of columns.
    cos2 : ndarray of shape (m, k)
        Share of each point's squared distance from the mean, or of the column's variance, along each component.
    contributions : ndarray of shape (m, k) or None
        Share of each component's variance that the point makes up; None for supplementary points.
    correlations : ndarray of shape (m, k) or None
        Of columns, with the components; None for rows.
    components : list of str
        Names of the components.
    """

    names: list[str]
    coordinates: np.ndarray
    cos2: np.ndarray
    contributions: np.ndarray | None
    correlations: np.ndarray | None
    components: list[str]

    def frame(self, what: str = "coordinates") -> Any:
        """Return one of the tables as a data frame: a row for each point, a column for each component."""
        tables = {
            "coordinates": self.coordinates, "cos2": self.cos2, "contributions": self.contributions,
            "correlations": self.correlations,
        }  # fmt: skip
        known = [name for name, table in tables.items() if table is not None]
        if what not in known:
            raise ValueError(f"what={what!r}: choose one of {', '.join(map(repr, known))}")
        return frame({"name": np.asarray(self.names), **dict(zip(self.components, tables[what].T, strict=True))})  # type: ignore[union-attr]


class Tables(NamedTuple):
    """What `PCA.tables` gives.

    Attributes
    ----------
    variance, share, together : ndarray of shape (k,)
        Variance along each component, its share of the whole, and that of the components up to it.
    rows, columns : Points
        Of the rows of X and of its columns.
    supplementary_rows, supplementary_columns : Points or None
        Of those that took no part in the fit.
    """

    variance: np.ndarray
    share: np.ndarray
    together: np.ndarray
    rows: Points
    columns: Points
    supplementary_rows: Points | None
    supplementary_columns: Points | None


class Biplot(NamedTuple):
    """What `PCA.biplot` gives.

    Attributes
    ----------
    rows : ndarray of shape (n, 2)
        A point for each row.
    columns : ndarray of shape (d, 2)
        The end of an arrow from (0, 0) for each column.
    names : list of str
        Of the columns.
    titles : list of str
        Of both axes: the component and the share of the variance that it describes.
    """

    rows: np.ndarray
    columns: np.ndarray
    names: list[str]
    titles: list[str]


class Sums(NamedTuple):
    """Scores and squared distances from the mean of rows, their weights, and the mean squares of columns."""

    z: np.ndarray
    squares: np.ndarray
    w: np.ndarray
    columns: np.ndarray


def tables(pca: Any, X: Any, w: np.ndarray | None, bessel: float, more_rows: Any, more_columns: Any) -> Tables:
    """The tables of a fitted PCA; w are the weights of the rows or None, variances over n times `bessel` are published.

    Where cells are missing the rows, filled in with what is expected, vary less than the model says: a column's
    variance is then at least what the components give it.
    """
    heads = [str(name) for name in pca.get_feature_names_out()]
    found = sums(pca.stream("centred", X), pca, w)
    loadings = np.asarray(pca.loadings(), dtype=np.float64).T
    variances = np.maximum(found.columns * bessel, (loadings**2).sum(axis=1))
    correlations = ratio(loadings, np.where(constant(found, pca.mean_), 0.0, np.sqrt(variances))[:, None])
    names = pca.column_names or [f"x{j}" for j in range(len(loadings))]
    own = np.asarray(pca.components_, dtype=np.float64).T ** 2
    extra_rows = None if more_rows is None else rows(sums(pca.stream("centred", more_rows), pca, None), heads)
    return Tables(
        pca.explained_variance_, pca.explained_variance_ratio_, np.cumsum(pca.explained_variance_ratio_),
        rows(found, heads)._replace(contributions=ratio(found.w[:, None] * found.z**2, found.w @ found.z**2)),
        Points(names, loadings, correlations**2, own, correlations, heads), extra_rows,
        None if more_columns is None else columns(more_columns, found, bessel, heads),
    )  # fmt: skip


def biplot(pca: Any, X: Any, axes: tuple[int, int], scale: float, n: float) -> Biplot:
    """Two components of a fitted PCA as a picture of rows and columns; n rows were fitted."""
    two, k = list(axes), len(pca.components_)
    if len(two) != 2 or not all(0 <= a < k for a in two):
        raise ValueError(f"axes={axes!r}: give two of the {k} components, from 0 to {k - 1}")
    if not 0 <= scale <= 1:
        raise ValueError(f"scale={scale!r}: give a number from 0 (rows as they are) to 1 (columns as they are)")
    length = np.sqrt(pca.explained_variance_[two].astype(np.float64) * n) ** scale
    z = sums(pca.stream("centred", X), pca, None).z[:, two]
    names, heads = pca.column_names or [f"x{j}" for j in range(len(pca.mean_))], pca.get_feature_names_out()
    titles = [f"{heads[a]} ({100 * pca.explained_variance_ratio_[a]:.1f} %)" for a in two]
    return Biplot(ratio(z, length), pca.components_[two].T * length, names, titles)


def sums(blocks: Iterable[Any], pca: Any, w: np.ndarray | None) -> Sums:
    """What the tables need of rows, block by block; CSR rows come as they are, dense ones less the mean."""
    V, mean = pca.components_.astype(np.float64), pca.mean_.astype(np.float64)
    z, squares, total, at = [], [], np.zeros(len(mean)), 0
    for block in blocks:
        x = block.astype(np.float64)
        weight = np.ones(x.shape[0]) if w is None else w[at : at + x.shape[0]]
        at += x.shape[0]
        if sp.issparse(x):
            x2 = x.multiply(x)
            z.append(x @ V.T - V @ mean)
            squares.append(np.asarray(x2.sum(axis=1)).ravel() - 2.0 * (x @ mean) + mean @ mean)
            own, each = np.repeat(weight, np.diff(x.indptr)), x.data - mean[x.indices]
            total += np.bincount(x.indices, own * each**2, len(mean))  # squares less squares would be rounding
            held = np.bincount(x.indices, own, len(mean))
            total += mean**2 * np.where(x.count_nonzero(axis=0) < x.shape[0], weight.sum() - held, 0.0)
        else:
            z.append(x @ V.T)
            squares.append(np.einsum("ij,ij->i", x, x))
            total += weight @ (x * x)
    every = np.ones(at) if w is None else w
    return Sums(np.concatenate(z), np.concatenate(squares), every, total / every.sum())


def constant(found: Sums, mean: np.ndarray) -> np.ndarray:
    """Columns that vary no more than rounding of their mean makes them."""
    rounding = np.finfo(mean.dtype).eps + np.sqrt(len(found.z)) * np.finfo(np.float64).eps
    return np.asarray(np.sqrt(found.columns) <= 2.0 * rounding * np.abs(mean))


def rows(found: Sums, heads: list[str]) -> Points:
    """Scores and cos² of rows, which took no part in the fit as far as this says."""
    names = [str(i) for i in range(len(found.z))]
    return Points(names, found.z, ratio(found.z**2, found.squares[:, None]), None, None, heads)


def columns(Y: Any, found: Sums, bessel: float, heads: list[str]) -> Points:
    """Columns that took no part in the fit, of the same rows, over those where each was observed."""
    source = as_source(Y)
    if source.n != len(found.z):
        raise ValueError(f"supplementary_columns has {source.n} rows, but X has {len(found.z)}: give the same rows")
    y = source.whole(get_config().budget)
    y = np.asarray(y.toarray() if sp.issparse(y) else y, dtype=np.float64)
    places = [place(column, found) for column in y.T]
    loadings, correlations = (np.stack(both) for both in zip(*places, strict=True))
    names = source.names or [f"y{j}" for j in range(source.d)]
    return Points(list(names), loadings * np.sqrt(bessel), correlations**2, None, correlations, heads)


def place(y: np.ndarray, found: Sums) -> tuple[np.ndarray, np.ndarray]:
    """cov(y, z_a) / √λ_a of a column, and its correlations with the components, over the rows that show it."""
    seen = ~np.isnan(y) & (found.w > 0)
    if not seen.any():
        raise ValueError("a supplementary column has no value in any row of X: leave it out")
    z, w = found.z[seen], found.w[seen] / found.w[seen].sum()
    z, y = z - w @ z, y[seen] - w @ y[seen]
    loadings = ratio((w * y) @ z, np.sqrt(w @ z**2))
    return loadings, ratio(loadings, np.sqrt(w @ y**2))


def ratio(a: Any, b: Any) -> np.ndarray:
    """a/b, and 0 where b is 0: points at the mean, columns and components that do not vary."""
    return np.asarray(np.where(b != 0, a, 0.0) / np.where(b != 0, b, 1.0))
