"""Labels: what they are, how two of them compare, and how much of the data's variation they explain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.utils import check_random_state

from unmix.engine.config import get_config
from unmix.engine.rows import Rules, inspect
from unmix.engine.sources import Source, as_source
from unmix.model.opening import refuse_unobserved

PIECE = 8 << 20  # bytes of rows that are read at a time


class Groups(NamedTuple):
    """Labels as numbers 0 … K − 1 of the clusters that weigh something, and the weights of rows and clusters."""

    names: np.ndarray
    code: np.ndarray
    w: np.ndarray
    weight: np.ndarray  # of each cluster
    weighted: bool

    @property
    def n_rows(self) -> int:
        """Rows that weigh something."""
        return int(np.count_nonzero(self.w))


def as_labels(labels: Any, name: str = "labels") -> np.ndarray:
    """A 1-d array of labels without gaps."""
    given = np.asarray(labels)
    if given.ndim == 2 and 1 in given.shape:
        given = given.ravel()
    if given.ndim != 1:
        raise ValueError(f"{name} has the shape {given.shape}: give one label per row")
    if given.dtype.kind in "fc" and not np.isfinite(given).all():
        raise ValueError(f"{name} holds {given[~np.isfinite(given)][0]}: every row needs a label (-1 for noise, say)")
    if given.dtype.kind == "O":
        kinds = {type(v).__name__ for v in given if not isinstance(v, str)}
        if kinds and (len(kinds) > 1 or any(isinstance(v, str) or v is None or v != v for v in given)):
            raise ValueError(
                f"{name} holds {', '.join(sorted(kinds))} among other labels: give only numbers, or only strings"
            )
    return given


def as_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of n rows; ones where none are given."""
    if sample_weight is None:
        return np.ones(n)
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"sample_weight has the shape {w.shape}, but there are {n} rows: give one weight per row")
    if not np.isfinite(w).all() or (w < 0).any():
        bad = int(np.flatnonzero(~np.isfinite(w) | (w < 0))[0])
        raise ValueError(f"sample_weight[{bad}] is {w[bad]}: weights must be finite and not negative")
    if not w.any():
        raise ValueError("sample_weight is 0 for every row: at least one must count")
    return w


def groups(labels: Any, n: int, sample_weight: Any = None) -> Groups:
    """The clusters of n rows."""
    given, w = as_labels(labels), as_weights(sample_weight, n)
    if len(given) != n:
        raise ValueError(f"labels has {len(given)} entries, but X has {n} rows: give one label per row")
    names, inverse = np.unique(given[w > 0], return_inverse=True)
    code = np.zeros(n, dtype=np.int64)
    code[w > 0] = inverse
    return Groups(names, code, w, np.bincount(code, w, len(names)), sample_weight is not None)


def seed_of(random_state: Any) -> int:
    """A seed from whatever stands for one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def blocks(source: Source) -> Iterator[tuple[Any, int, int]]:
    """The rows in order, a few megabytes at a time: (rows, first, end)."""
    step = max(1, PIECE // (8 * source.d))
    edges = [(a, min(a + step, source.n)) for a in range(0, source.n, step)]
    for (a, b), read in zip(edges, source.batches(edges), strict=True):
        yield read(), a, b


# ------------------------------------------------------------------------------------------- two clusterings


def _table(a: Any, b: Any, sample_weight: Any, noise: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """Names of both, the weight of rows in cluster i of a and j of b, and of rows that are noise in both; total."""
    x, y = as_labels(a, "a"), as_labels(b, "b")
    if len(x) != len(y) or not len(x):
        raise ValueError(f"a has {len(x)} labels and b {len(y)}: give one per row, of the same rows, at least one")
    w = as_weights(sample_weight, len(x))
    x, y, w = x[w > 0], y[w > 0], w[w > 0]
    (rows, i), (columns, j) = np.unique(x, return_inverse=True), np.unique(y, return_inverse=True)
    cells, budget = len(rows) * len(columns), get_config().budget
    if 16 * cells > budget:
        raise MemoryError(
            f"{len(rows)} by {len(columns)} clusters need a table of {16 * cells} bytes, but the budget is {budget}: "
            "are these labels? If so, raise memory_budget"
        )
    table = np.bincount(i * len(columns) + j, w, cells).reshape(len(rows), len(columns))
    out_a, out_b = (np.array([n == noise for n in names.tolist()], dtype=bool) for names in (rows, columns))
    both = float(table[np.ix_(out_a, out_b)].sum())
    return rows[~out_a], columns[~out_b], table[np.ix_(~out_a, ~out_b)], both, float(w.sum())


def match(a: Any, b: Any, *, sample_weight: Any = None, noise: Any = -1) -> dict[Any, Any]:
    """The relabelling π of b under which most rows agree with a.

    Parameters
    ----------
    a, b, sample_weight, noise
        As for `clustering_distance`.

    Returns
    -------
    permutation : dict
        For each label of b its label in a; None where b has more clusters than a and this one is left over. Noise is
        not among them: it stays noise.

    Examples
    --------
    >>> from unmix.validate import match
    >>> match(["x", "x", "y", "y"], [1, 1, 0, 1])
    {0: 'y', 1: 'x'}
    """
    rows, columns, table, _, _ = _table(a, b, sample_weight, noise)
    partner = {int(j): rows[i].item() for i, j in zip(*linear_sum_assignment(table, maximize=True), strict=True)}
    return {name: partner.get(j) for j, name in enumerate(columns.tolist())}


def clustering_distance(a: Any, b: Any, *, sample_weight: Any = None, noise: Any = -1) -> float:
    r"""Share of rows on which two clusterings differ under the best relabelling.

    .. math:: d = \min_π \frac{1}{N} \sum_i 1[a_i ≠ π(b_i)]

    The best of the K! relabellings is found by the Hungarian method on the contingency table. Where the clusterings
    have different numbers of clusters, the clusters left over agree with nothing.

    Parameters
    ----------
    a, b : arrays of shape (n,)
        Labels of the same rows: numbers or strings.
    sample_weight : array of shape (n,), optional
        How many times each row counts.
    noise : label, default=-1
        The label of rows that belong to no cluster: noise agrees with noise alone. None where there is no such label.

    Returns
    -------
    distance : float
        From 0 (the same clusters) to below 1.

    Examples
    --------
    >>> from unmix.validate import clustering_distance
    >>> clustering_distance([0, 0, 1, 1], [1, 1, 0, 0])
    0.0
    >>> clustering_distance([0, 0, 1, 1], [1, 1, 0, 1])
    0.25
    """
    _, _, table, both, total = _table(a, b, sample_weight, noise)
    same = float(table[linear_sum_assignment(table, maximize=True)].sum()) + both
    return max(0.0, (total - same) / total)


# ------------------------------------------------------------------------------------------- variation


class Variation(NamedTuple):
    """What `variation` found: within + between = total.

    Attributes
    ----------
    within, between, total : float
        Variation in the clusters, of their centres, and of all rows.
    calinski_harabasz : float
        (between / (K − 1)) / (within / (N − K)): high is good. NaN for a single cluster or N of them.
    davies_bouldin : float
        Mean over clusters of the worst (s_k + s_l) / ‖μ_k − μ_l‖, s the mean distance to the centre: low is good. NaN
        for a single cluster.
    clusters : ndarray of shape (K,)
        The labels, sorted.
    centers : ndarray of shape (K, d)
        The means μ_k; NaN where a cluster has no observed cell of a column.

    Examples
    --------
    >>> from unmix.validate import variation
    >>> found = variation([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    >>> found.within, found.between, found.total
    (1.0, 25.0, 26.0)
    >>> found.centers.ravel().tolist()
    [1.0, 11.0]
    """

    within: float
    between: float
    total: float
    calinski_harabasz: float
    davies_bouldin: float
    clusters: np.ndarray
    centers: np.ndarray


def variation(X: Any, labels: Any, *, sample_weight: Any = None) -> Variation:
    r"""Variation within and between clusters, and the two scores made of them.

    .. math::
        WV = \frac{1}{N} \sum_k \sum_{i ∈ k} ‖x_i − μ_k‖² \qquad
        BV = \frac{1}{N} \sum_k N_k ‖μ_k − μ‖² \qquad WV + BV = \frac{1}{N} \sum_i ‖x_i − μ‖²

    X is read twice, block by block. With NaN every column is taken over its observed cells (its own N, N_k and means),
    and distances to a centre are scaled up to all columns.

    Parameters
    ----------
    X : anything with rows
        As for `fit` of the models.
    labels : array of shape (n,)
        The cluster of each row.
    sample_weight : array of shape (n,), optional
        How many times each row counts.

    Returns
    -------
    Variation
        A tuple with `within`, `between`, `total`, `calinski_harabasz`, `davies_bouldin`, `clusters` and `centers`.

    Examples
    --------
    >>> from unmix.validate import variation
    >>> v = variation([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    >>> v.within, v.between, v.total
    (1.0, 25.0, 26.0)
    >>> v.calinski_harabasz, v.davies_bouldin
    (50.0, 0.2)
    """
    source = as_source(X)
    refuse_unobserved(source, "variation", missing=True)
    g = groups(labels, source.n, sample_weight)
    K, d = len(g.names), source.d
    counts, sums, shift = np.zeros((K, d)), np.zeros((K, d)), None
    for x, observed, code, w in _cells(source, g):
        if shift is None:  # sums about a point among the rows, so that they do not cancel
            shift = x.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        picked = _members(code, w, K)
        counts += picked @ observed
        sums += picked @ np.where(observed, x - shift, 0.0)
    with np.errstate(invalid="ignore"):
        centers = sums / counts
        middle = sums.sum(axis=0) / counts.sum(axis=0)
    squares, spread, seen = np.zeros(d), np.zeros(K), np.zeros(K)
    for x, observed, code, w in _cells(source, g):
        off = np.where(observed, x - shift - centers[code], 0.0) ** 2
        squares += w @ off
        cells = observed.sum(axis=1)
        some = w * (cells > 0)
        spread += np.bincount(code, some * np.sqrt(off.sum(axis=1) * d / np.maximum(cells, 1)), K)
        seen += np.bincount(code, some, K)
    n = counts.sum(axis=0)
    if not n.any():
        raise ValueError("X has no observed cell in the rows that count: there is nothing to measure")
    per = np.divide(1.0, n, out=np.zeros(d), where=n > 0)
    within = float(squares @ per)
    between = float((np.nan_to_num(counts * (centers - middle) ** 2)).sum(axis=0) @ per)
    N = float(g.w.sum())
    harabasz = bouldin = float("nan")
    if 1 < K < N:
        harabasz = (between / (K - 1)) / (within / (N - K)) if within else float("inf")
    if K > 1:
        bouldin = _davies_bouldin(centers, np.divide(spread, seen, out=np.full(K, np.nan), where=seen > 0))
    moved = centers + (0.0 if shift is None else shift)
    return Variation(within, between, within + between, harabasz, bouldin, g.names, moved)


def _cells(source: Source, g: Groups) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of rows that count, in float64: cells (0 where not observed), which are observed, clusters, weights."""
    rules = Rules(True, False, "variation", None)
    for x, a, b in blocks(source):
        inspect(x, a, rules)
        dense = np.asarray(x.toarray() if source.sparse else x, dtype=np.float64)[g.w[a:b] > 0]
        if len(dense):
            observed = ~np.isnan(dense)
            keep = g.w[a:b] > 0
            yield np.where(observed, dense, 0.0), observed, g.code[a:b][keep], g.w[a:b][keep]


def deviations(source: Source) -> np.ndarray:
    """The standard deviation of each column over its observed cells."""
    one = groups(np.zeros(source.n, int), source.n)
    n, mean, square = np.zeros(source.d), np.zeros(source.d), np.zeros(source.d)
    for x, observed, _, _ in _cells(source, one):  # blocks are joined about their own means
        m = observed.sum(axis=0)
        own = x.sum(axis=0) / np.maximum(m, 1)
        apart, both = own - mean, np.maximum(n + m, 1)
        square += (np.where(observed, x - own, 0.0) ** 2).sum(axis=0) + apart**2 * n * m / both
        mean, n = mean + apart * m / both, n + m
    return np.sqrt(square / np.maximum(n, 1))


def _members(code: np.ndarray, w: np.ndarray, K: int) -> sp.csr_array:
    """Row k adds up the rows of cluster k."""
    return sp.csr_array((w, (code, np.arange(len(code)))), shape=(K, len(code)))


def _davies_bouldin(centers: np.ndarray, spread: np.ndarray) -> float:
    distance = nan_euclidean_distances(centers)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (spread[:, None] + spread) / distance
    ratio[(distance == 0) | np.isnan(distance)] = np.inf  # centres that coincide
    np.fill_diagonal(ratio, -np.inf)
    return float(ratio.max(axis=1).mean())
