"""How strange is a row, or a cell, to a fitted model? One score for each kind of model; larger is stranger.

    rows   documents           − log p(every other token | the rest) / tokens              `Completes`
           density             − log p(x), of the observed cells                           `Density`
           clusters            min_k ‖x − u_k‖ √(d/o) / σ_k                                `Geometry`
           reconstruction      √ mean_j (r_j / τ_j)²,      r = x − zU                      `Reconstructs`
           (of densities with a plane, such as PCA, this and T² too, where asked for: `views.py`)
    cells  Gaussians           (x_j − E[x_j | rest]) / sd[x_j | rest]                  `Imputes`
           `Mixture`           − log Σ_k z_k(rest) p_k(x_j)
           clusters, others    r_j / τ_j,   r = x − u_k of the nearest centre, or x − zU

σ_k² = (Σ_{i in k} ‖x_i − u_k‖² d/o_i + v) / (n_k + 1) is the spread of a cluster's own rows, with one more row of the
mean spread v, so that a cluster of one row has a spread too. o is the number of observed cells of a row. τ_j is the
mean |r_j| of a column, and at least a thousandth of the mean over columns. Both are measured on reference rows. Where
a clustering has another metric, or centres that lack cells, the distances are those that its `transform` gives.

For PCA − log p(x) is ½ (T² + Q/σ² + Σ log λ_a + (d − k) log σ² + d log 2π) with T² = Σ_a z_a²/λ_a inside the plane and
Q = ‖x − μ − zV‖² outside it: the two classical statistics, each in units of its own variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import euclidean_distances
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.utils.validation import check_is_fitted

from unmix.model.adapter import adapt, opened
from unmix.model.capabilities import Completes, Density, Geometry, Imputes, Reconstructs
from unmix.outlier.views import Inside, seen

PIECE = 1 << 20  # cells of rows that are looked at together


def scores(model: Any, X: Any, *, reference: Any = None, by: str | None = None) -> np.ndarray:
    """Return how strange each row is to a fitted model; larger is stranger.

    Parameters
    ----------
    model : fitted model
        A density (`score_samples`): −log p(x). A clustering: the distance to the nearest centre in units of the
        cluster's spread. A factorisation: the residual in units of the columns' residual spread. Latent Dirichlet
        allocation: the surprise of a word, in nats, given the other half of the document. `Select`: as the model that
        it chose. Densities and clusterings of scikit-learn are taken too.
    X : anything with rows
        As for the model's `fit`.
    reference : anything with rows, optional
        The rows from which a clustering or factorisation measures its spreads, best those of its fit; X by default.
    by : {None, "density", "reconstruction", "hotelling"}, default=None
        What to go by where a model knows several: of PCA and factor analysis the density (None), the residual outside
        the plane in units of the columns' residual spread (Q of process control), or T² = Σ_a (z_a / s_a)² within it,
        s_a the root mean square of z_a over the reference rows.

    Returns
    -------
    scores : ndarray of float64 of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import KMeans
    >>> from unmix.outlier import scores
    >>> X = np.r_[np.zeros((9, 2)), np.ones((9, 2))] + 0.1 * np.random.default_rng(0).normal(size=(18, 2))
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> scores(model, [[0.0, 0.1], [0.5, 0.5]], reference=X).round(1).tolist()
    [1.1, 6.5]
    """
    check_is_fitted(model)
    view = seen(model, by)
    return row_scores(view, X, spread(view, X if reference is None else reference))


def cell_scores(model: Any, X: Any, *, reference: Any = None, by: str | None = None) -> np.ndarray:
    """Return how strange each cell is given the others of its row: signed, in standard deviations or mean deviations.

    `OutlierDetector(cells=True)` makes p-values of them.

    Parameters
    ----------
    model : fitted model
        Gaussian mixtures, PCA, factor analysis: (x_j − E[x_j | rest]) / sd[x_j | rest]. `RowDensity`: the same by its
        mixture. `Mixture`: −log p(x_j | rest) in nats, which has no sign, the columns of a component taken for
        independent (those of "student" nearly are); not for "multinomial", which needs every cell. Other factorisations
        and clusterings: the residual over the column's mean absolute residual; there the cell itself took part in z.
    X : anything with rows
        As for the model's `fit`; held in memory.
    reference : anything with rows, optional
        The rows that give the columns' residuals, best those of the fit; X by default. Gaussians do not need it.
    by : {None, "density", "reconstruction"}, default=None
        "reconstruction" for the residuals of PCA and factor analysis too.

    Returns
    -------
    scores : ndarray of float64 of shape (n, d)
        NaN where a cell was not observed; 0 where the model expects nothing, as of a cell that a medoid lacks.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import PCA
    >>> from unmix.outlier import cell_scores
    >>> X = np.random.default_rng(0).normal(size=(500, 1)) * [1.0, 2.0, 3.0]
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> model = PCA(1).fit(X)
    >>> strange = cell_scores(model, [[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]])
    >>> int(np.abs(strange[1]).argmax()), bool(np.abs(strange[0]).max() < 1)
    (1, True)
    """
    check_is_fitted(model)
    view = seen(model, by)
    return cells(view, X, cell_spread(view, X if reference is None else reference))


# ---------------------------------------------------------------- what the detector calls


def spread(model: Any, reference: Any, keep: np.ndarray | None = None) -> np.ndarray | None:
    """The units of a model's scores, from the reference rows that are kept: σ of clusters, τ of columns, or None."""
    model = adapt(model)
    if isinstance(model, (Completes, Density)):
        return None
    source = opened(model, reference)
    if isinstance(model, Inside):
        return inside_spread(model, source, keep)
    if isinstance(model, Geometry):
        if model.space.unknown:
            raise ValueError(model.space.unknown)
        return cluster_spread(model, source, keep)
    if isinstance(model, Reconstructs):
        return column_spread(model, source, keep)
    raise TypeError(
        f"{type(model).__name__} gives neither a density, distances to centres nor a reconstruction: rows cannot be "
        "scored by it"
    )


def row_scores(model: Any, X: Any, unit: np.ndarray | None) -> np.ndarray:
    """Scores of rows in given units."""
    model = adapt(model)
    if isinstance(model, Completes):
        log_p, tokens = model.completions(X)
        return np.asarray(-log_p / np.maximum(tokens, 1e-300))  # nothing to predict is no surprise: 0
    if isinstance(model, Density):
        return -np.asarray(model.score_samples(X), dtype=np.float64)
    source = opened(model, X)
    out = np.empty(source.n)
    for a, b, x in pieces(source):
        if isinstance(model, Geometry):
            out[a:b] = (distances(model, x) / unit).min(axis=1)
        elif isinstance(model, Inside):
            out[a:b] = ((model.hidden(x) / unit) ** 2).sum(axis=1)
        else:
            r = residuals(model, x) / unit
            out[a:b] = np.sqrt(np.nansum(r * r, axis=1) / np.maximum((~np.isnan(r)).sum(axis=1), 1))
    return out


def cell_spread(model: Any, reference: Any, keep: np.ndarray | None = None) -> np.ndarray | None:
    """The units of a model's cell scores: τ of columns, or None."""
    model = adapt(model)
    why_not = ""
    if isinstance(model, Imputes):
        why_not = model.why_not()
        if not why_not:
            return None
    elif isinstance(model, Reconstructs) or (isinstance(model, Geometry) and model.centers() is not None):
        return column_spread(model, opened(model, reference), keep)
    raise TypeError(
        f"{type(model).__name__}{f'({why_not})' if why_not else ''} does not say what a cell should be given the "
        "others: use a Gaussian mixture, a factorisation or k-means for cells, or `scores` for rows"
    )


def cells(model: Any, X: Any, tau: np.ndarray | None) -> np.ndarray:
    """Scores of cells in given units."""
    model, source = adapt(model), opened(model, X)
    out = np.empty((source.n, source.d))
    for a, b, x in pieces(source):
        if isinstance(model, Imputes):
            out[a:b] = model.surprise(dense(x))
        else:
            r = residuals(model, x) / tau
            out[a:b] = np.where(np.isnan(r) & ~np.isnan(dense(x)), 0.0, r)
    return out


def expected(model: Any, x: np.ndarray, tau: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """What the cells of dense rows should be, and how far from it they usually are; NaN where a model does not say."""
    model = adapt(model)
    if not isinstance(model, Imputes):
        return x - residuals(model, x), np.broadcast_to(np.asarray(tau), x.shape)
    return model.expected_cells(x) if model.signed else (np.full(x.shape, np.nan), np.full(x.shape, np.nan))


def strangeness(model: Any, X: Any, tau: np.ndarray | None) -> np.ndarray:
    """Cell scores of which larger is stranger."""
    found, model = cells(model, X, tau), adapt(model)
    return np.abs(found) if not isinstance(model, Imputes) or model.signed else found


# ---------------------------------------------------------------- clusters


def distances(model: Any, x: Any) -> np.ndarray:
    """Distances to all centres; Euclidean ones as if every cell had been observed."""
    centers = model.centers()
    if centers is None or model.space.metric not in ("euclidean", "l2"):
        return np.asarray(model.transform(x), dtype=np.float64)
    centers = np.asarray(centers, dtype=np.float64)
    if np.isnan(centers).any():  # only the model says how far a row is with which a medoid shares no cell
        return np.asarray(model.transform(x), dtype=np.float64)
    if sp.issparse(x):
        return np.asarray(euclidean_distances(x, centers))
    origin = centers.mean(axis=0)  # differences of squares do not cancel about it
    return np.nan_to_num(nan_euclidean_distances(dense(x) - origin, centers - origin))


def cluster_spread(model: Any, source: Any, keep: np.ndarray | None = None) -> np.ndarray:
    """σ_k of every cluster."""
    count, square = np.zeros(1), np.zeros(1)
    for _, _, x in pieces(source, keep):
        far = distances(model, x)
        nearest = far.argmin(axis=1)
        count = count + np.bincount(nearest, minlength=far.shape[1])
        square = square + np.bincount(nearest, far.min(axis=1) ** 2, minlength=far.shape[1])
    mean = np.sum(square) / max(1.0, np.sum(count))
    return np.sqrt((square + mean) / (count + 1)) if mean > 0 else np.ones_like(square)


# ---------------------------------------------------------------- reconstructions


def residuals(model: Any, x: Any) -> np.ndarray:
    """The observed cells less what the model makes of their row: the nearest centre, or zU."""
    if isinstance(model, Reconstructs):
        return np.asarray(dense(x) - model.reconstruct(x))
    return np.asarray(dense(x) - model.centers()[model.predict(x)])


def column_spread(model: Any, source: Any, keep: np.ndarray | None = None) -> np.ndarray:
    """τ_j of every column."""
    total, count = np.zeros(source.d), np.zeros(source.d)
    for _, _, x in pieces(source, keep):
        r = np.abs(residuals(model, x))
        total += np.nansum(r, axis=0)
        count += (~np.isnan(r)).sum(axis=0)
    mean = total / np.maximum(count, 1)
    return np.maximum(mean, 1e-3 * mean.mean()) if mean.any() else np.ones(source.d)


def inside_spread(model: Inside, source: Any, keep: np.ndarray | None = None) -> np.ndarray:
    """s_a of every component."""
    total, count = np.zeros(model.size), 0
    for _, _, x in pieces(source, keep):
        z = model.hidden(x)
        total, count = total + (z * z).sum(axis=0), count + len(z)
    return np.sqrt(np.where(total > 0, total / max(count, 1), 1.0))


# ---------------------------------------------------------------- rows


def dense(x: Any) -> np.ndarray:
    """Rows as a float64 array."""
    return np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64)


def pieces(source: Any, keep: np.ndarray | None = None) -> Iterator[tuple[int, int, Any]]:
    """(start, stop, rows) in order; of the rows only those that are kept."""
    edges = [*range(0, source.n, max(1, PIECE // source.d)), source.n]
    bounds = list(pairwise(edges))
    for (a, b), read in zip(bounds, source.batches(bounds), strict=True):
        x = read()
        if keep is None:
            yield a, b, x
        elif keep[a:b].any():
            yield a, b, x[keep[a:b]]
