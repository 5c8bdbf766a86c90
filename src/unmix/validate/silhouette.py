"""Silhouettes: is each row nearer to its own cluster than to the next one?

a_i = Σ_{j in c_i} w_j d(x_i, x_j) / (W_{c_i} − min(1, w_i))     W_k = Σ_{j in k} w_j, the row itself left out
b_i = min_{k ≠ c_i} Σ_{j in k} w_j d(x_i, x_j) / W_k
s_i = (b_i − a_i) / max(a_i, b_i)                                 0 for the only row of a cluster

Of a row that counts w_i times one is itself and the others are at distance 0; if w_i < 1, all of it is itself.
So weights of at most 1 may have any scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from unmix.engine.config import get_config
from unmix.engine.draws import generator
from unmix.engine.rows import Rules, inspect
from unmix.engine.runners import one_blas_thread, pool
from unmix.engine.sources import Source, as_source
from unmix.model.opening import refuse_unobserved
from unmix.validate.clusterings import Groups, blocks, groups, seed_of

PANEL_ROWS = 64  # per cluster, from which whole panels for each are worth it
CHUNK = 512  # rows that are scored at a time by one thread
CELLS = 1 << 21  # distances that a thread holds at a time, where they are not summed as they come


class Silhouette(NamedTuple):
    """What `silhouette` found.

    Attributes
    ----------
    score : float
        The (weighted) mean of the rows' silhouettes.
    se : float
        Its standard error: 0 when every row was scored.
    clusters : ndarray of shape (K,)
        The labels, sorted.
    per_cluster : ndarray of shape (K,)
        The mean over the (sampled) rows of each cluster, NaN where none was drawn.
    per_row : ndarray of shape (n,) or None
        Each row's silhouette, NaN for rows that were not drawn or weigh nothing; None unless asked for.

    Examples
    --------
    >>> from unmix.validate import silhouette
    >>> found = silhouette([[0.0], [1.0], [9.0], [10.0]], [0, 0, 1, 1], per_row=True)
    >>> found.per_cluster.round(2).tolist()
    [0.89, 0.89]
    >>> found.per_row.round(2).tolist()
    [0.89, 0.88, 0.88, 0.89]
    """

    score: float
    se: float
    clusters: np.ndarray
    per_cluster: np.ndarray
    per_row: np.ndarray | None


class Others(NamedTuple):
    """Rows to which distances are taken, sorted by cluster; cluster k is rows starts[k] to starts[k + 1]."""

    x: Any
    w: np.ndarray
    starts: np.ndarray
    first: int  # of these rows in the data
    order: np.ndarray  # which row each of them was
    place: np.ndarray  # where each row went


def silhouette(
    X: Any,
    labels: Any,
    *,
    metric: str | Callable[..., float] = "euclidean",
    sample: int | None = None,
    random_state: Any = None,
    per_row: bool = False,
    sample_weight: Any = None,
) -> Silhouette:
    r"""Mean silhouette of a clustering, (b − a) / max(a, b), from −1 (misplaced) over 0 (at a border) to 1.

    a is the mean distance of a row to the others of its cluster, b to the rows of the nearest other cluster. The n × n
    distances are never held; with Euclidean distances of dense rows they are not even written.

    Parameters
    ----------
    X : anything with rows
        As for `fit` of the models. With NaN, Euclidean distances are over the cells that both rows have, scaled up to
        all columns; pairs of rows without a common cell do not count, and a row without any is left out.
    labels : array of shape (n,)
        The cluster of each row: numbers or strings. A label for noise is a cluster like others; give its rows the
        weight 0 to leave them out.
    metric : str or callable, default="euclidean"
        Any metric of `sklearn.metrics.pairwise_distances`; "precomputed" for an n × n matrix X.
    sample : int, optional
        Score this many rows, drawn at random, each against all rows: so the mean is unbiased, and `se` says how sure it
        is. All rows by default.
    random_state : int, Generator, RandomState or None
        For the sample.
    per_row : bool, default=False
        Whether to return every row's silhouette.
    sample_weight : array of shape (n,), optional
        How many times each row counts; weight 2 is the row twice, at distance 0 from itself. A row of weight below 1
        has nothing of itself among the others: weights of at most 1 are shares, of any scale.

    Returns
    -------
    Silhouette
        A tuple with `score`, `se`, `clusters`, `per_cluster` and `per_row`.

    Raises
    ------
    ValueError
        Where there is nothing to compare: a single cluster, or every row alone in its own; hence for 2 rows.

    Examples
    --------
    >>> from unmix.validate import silhouette
    >>> found = silhouette([[0.0], [1.0], [10.0], [11.0]], ["a", "a", "b", "b"], per_row=True)
    >>> found.per_row.round(4).tolist()
    [0.9048, 0.8947, 0.8947, 0.9048]
    >>> round(found.score, 4)
    0.8997
    """
    source = as_source(X)
    refuse_unobserved(source, "silhouette", missing=True)
    g = groups(labels, source.n, sample_weight)
    _check(source, g, metric, sample)
    rows, exact = _drawn(g, sample, seed_of(random_state))
    s = _silhouettes(source, g, metric, rows, exact)
    known = ~np.isnan(s)
    if not known.any():
        raise ValueError("no row of X shares an observed cell with its cluster and with another: nothing can be scored")
    w = (g.w[rows] if exact else np.ones(len(rows))) * known
    s0, code = np.where(known, s, 0.0), g.code[rows]
    score = float(w @ s0 / w.sum())
    K, m = len(g.names), int(known.sum())
    with np.errstate(invalid="ignore"):
        means = np.bincount(code, w * s0, K) / np.bincount(code, w, K)
    se = 0.0
    if not exact:
        left = 1.0 if g.weighted else 1 - len(rows) / g.n_rows  # drawn with replacement, or without
        se = float(np.sqrt(left * s[known].var(ddof=1) / m)) if m > 1 else float("nan")
    every = None
    if per_row:
        every = np.full(source.n, np.nan)
        every[rows] = s
    return Silhouette(score, se, g.names, means, every)


def _check(source: Source, g: Groups, metric: Any, sample: Any) -> None:
    K = len(g.names)
    if K < 2:
        raise ValueError(f"labels hold one cluster ({g.names[0]!r}): a silhouette compares at least two")
    if g.n_rows == K and g.weight.max() <= 1:
        raise ValueError(f"labels hold {K} clusters for {g.n_rows} rows, each alone in its own: give fewer clusters")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, (int, np.integer)) or sample < 2):
        raise ValueError(f"sample={sample!r}: give a number of rows, at least 2, or None for all")
    if metric == "precomputed" and source.d != source.n:
        raise ValueError(f"metric='precomputed' needs an n × n matrix of distances, but X is {source.n} × {source.d}")


def _drawn(g: Groups, sample: int | None, seed: int) -> tuple[np.ndarray, bool]:
    """The rows to score, sorted, and whether they are all; by weight with replacement: so their mean is unbiased."""
    alive = np.flatnonzero(g.w)
    if sample is None or sample >= len(alive):
        return alive, True
    rng = generator(seed, "silhouette")
    p = g.w[alive] / g.w.sum() if g.weighted else None
    return np.sort(rng.choice(alive, sample, replace=g.weighted, p=p)), False


def _silhouettes(source: Source, g: Groups, metric: Any, rows: np.ndarray, exact: bool) -> np.ndarray:
    """s of some rows."""
    missing, largest = _look(source, metric)
    if metric == "l2":
        metric = "euclidean"
    if metric == "euclidean" and missing:
        metric = "nan_euclidean"
    fused = metric == "euclidean" and not source.sparse
    # A power of two takes no digits, and keeps squares from overflow and underflow.
    scale = 2.0 ** -np.clip(np.frexp(largest)[1], -1000, 1000)
    K, budget = len(g.names), get_config().budget
    with one_blas_thread():
        need = 16 * (len(rows) + 16 * K) * (K + source.d)
        if fused and exact and source.in_memory and len(rows) >= PANEL_ROWS * K and need <= budget:
            return _both_ways(source.whole(), g, rows, scale)
        return _one_way(source, g, rows, metric, fused, scale, max(CHUNK, budget // (32 * (K + source.d))))


def _both_ways(x: np.ndarray, g: Groups, rows: np.ndarray, scale: float) -> np.ndarray:
    """s of all rows, each distance made once: two blocks of rows at a time, as in a tournament.

    In a round every block meets one other, so no two threads add to the same sums, and every sum has one order.
    """
    from unmix.kernels.silhouette import add_both

    K, d = len(g.names), x.shape[1]
    order = np.argsort(g.code[rows], kind="stable")
    counts = np.bincount(g.code[rows], minlength=K)
    starts = np.concatenate([[0], np.cumsum(-(-counts // 16))])  # clusters are whole panels of sixteen rows
    place = np.arange(len(rows)) + np.repeat(16 * starts[:-1] - np.cumsum(counts) + counts, counts)
    panels = int(starts[-1])
    y, w, sums = np.zeros((16 * panels, d)), np.zeros(16 * panels), np.zeros((panels, K, 16))
    y[place], w[place] = x[rows[order]] * np.float64(scale), g.w[rows[order]]
    columns = y.reshape(panels, 16, d).transpose(0, 2, 1).ravel()
    teams = 2 * int(np.clip(panels // 128, 1, 32))  # by the shape alone
    edge = np.arange(teams + 1) * panels // teams

    def meet(pair: tuple[int, int]) -> None:
        i, j = sorted(pair)
        mine, theirs = edge[i : i + 2], edge[j : j + 2]
        add_both(columns, y.reshape(-1), d, w, starts, *mine, *theirs, sums.reshape(-1))

    _mapped(meet, [(i, i) for i in range(teams)])
    last = teams - 1
    for r in range(last):
        _mapped(meet, [(last, r), *(((r + i) % last, (r - i) % last) for i in range(1, teams // 2))])
    S = np.empty((len(rows), K))
    S[order] = sums.transpose(0, 2, 1).reshape(-1, K)[place]
    return _scores(S, None, g, rows)


def _one_way(
    source: Source, g: Groups, rows: np.ndarray, metric: Any, fused: bool, scale: float, held: int
) -> np.ndarray:
    """s of some rows: `held` of them at a time against blocks of all rows."""
    out = np.empty(len(rows))
    together: Others | None = None
    for begin in range(0, len(rows), held):
        batch = rows[begin : begin + held]
        mine = source.take(batch)
        cuts = [slice(a, a + CHUNK) for a in range(0, len(batch), CHUNK)]
        sums = [_Sums(mine[c], batch[c], len(g.names), metric, fused, scale) for c in cuts]
        if metric == "precomputed":
            every: Iterator[Others] = iter([_others(None, g, 0, source.n)])
        elif source.in_memory:
            together = together or _others(source.whole(), g, 0, source.n, scale if fused else None)
            every = iter([together])
        else:
            every = (_others(x, g, a, b, scale if fused else None) for x, a, b in blocks(source))
        for others in every:
            _mapped(partial(_Sums.add, others=others), sums)
        out[begin : begin + held] = np.concatenate([s.scores(g) for s in sums])
    return out


def _mapped(f: Callable[[Any], Any], items: list[Any]) -> None:
    """f of every item, on threads."""
    jobs = get_config().jobs
    list(map(f, items) if jobs == 1 or len(items) == 1 else pool(jobs).map(f, items))


def _look(source: Source, metric: Any) -> tuple[bool, float]:
    """Whether cells are missing, and the largest number; raises where the metric cannot take a cell."""
    takes = metric in ("euclidean", "l2", "nan_euclidean")
    rules = Rules(takes, metric == "precomputed", f"silhouette with metric={metric!r}", None)
    missing, largest = False, 0.0
    for x, a, _ in blocks(source):
        missing |= inspect(x, a, rules)
        if not source.sparse:
            largest = max(largest, float(np.nanmax(np.abs(x), initial=0.0)))
    return missing, largest


def _others(x: Any, g: Groups, a: int, b: int, scale: float | None = None) -> Others:
    """Rows a to b of the data, sorted by cluster; flat and scaled, where a scale is given."""
    code = g.code[a:b]
    order = np.argsort(code, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(b - a)
    starts = np.searchsorted(code[order], np.arange(len(g.names) + 1))
    if x is not None:
        x = x[order] if scale is None else (x[order] * np.float64(scale)).ravel()
    return Others(x, g.w[a:b][order], starts, a, order, place)


class _Sums:
    """Σ w d from some rows to each cluster, over the blocks so far."""

    def __init__(self, x: Any, rows: np.ndarray, K: int, metric: Any, fused: bool, scale: float) -> None:
        self.x, self.rows, self.metric, self.fused = x, rows, metric, fused
        self.known = np.zeros((len(rows), K)) if metric == "nan_euclidean" else None  # Σ w over pairs with a distance
        self.sums = np.zeros((len(rows), K))
        if fused:
            panels, d = -(-len(rows) // 16), x.shape[1]
            padded = np.zeros((panels * 16, d))
            padded[: len(rows)] = x * np.float64(scale)
            self.x = padded.reshape(panels, 16, d).transpose(0, 2, 1).copy()
            self.sums = np.zeros((panels, K, 16))

    def add(self, others: Others) -> None:
        """Distances to more rows."""
        if self.fused:
            from unmix.kernels.silhouette import add_distances

            panels, d, _ = self.x.shape
            x, y, w, starts = self.x.reshape(-1), others.x, others.w, others.starts
            add_distances(x, 0, panels, y, d, w, starts, self.sums.reshape(-1))
            return
        filled = np.flatnonzero(np.diff(others.starts))
        first, step = others.starts[filled], max(1, CELLS // len(others.w))
        for a in range(0, len(self.rows), step):
            piece = slice(a, a + step)
            D = self._distances(piece, others)
            own = self.rows[piece] - others.first
            here = np.flatnonzero((own >= 0) & (own < len(others.w)))
            at = others.place[own[here]]
            D[here, at] = np.where(np.isnan(D[here, at]), np.nan, 0.0)  # from itself, whatever rounding says
            if self.known is not None:
                has = ~np.isnan(D)
                D[~has] = 0.0
                self.known[piece, filled] += np.add.reduceat(has * others.w, first, axis=1)
            self.sums[piece, filled] += np.add.reduceat(D * others.w, first, axis=1)

    def _distances(self, piece: slice, others: Others) -> np.ndarray:
        x = self.x[piece]
        if self.metric == "precomputed":
            dense = x.toarray() if sp.issparse(x) else x
            return dense[:, others.order].astype(np.float64)
        return np.asarray(pairwise_distances(x, others.x, metric=self.metric), dtype=np.float64)

    def scores(self, g: Groups) -> np.ndarray:
        """The silhouettes of these rows."""
        m, K = len(self.rows), len(g.names)
        S = self.sums.transpose(0, 2, 1).reshape(-1, K)[:m] if self.fused else self.sums
        return _scores(S, self.known, g, self.rows)


def _scores(S: np.ndarray, known: np.ndarray | None, g: Groups, rows: np.ndarray) -> np.ndarray:
    """Silhouettes from the sums of distances to each cluster; NaN where too few distances are known."""
    N = np.broadcast_to(g.weight, S.shape) if known is None else known
    each, own, itself = np.arange(len(S)), g.code[rows], np.minimum(g.w[rows], 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        a = S[each, own] / (N[each, own] - itself)
        mean = np.where(N > 0, S / N, np.inf)
        mean[each, own] = np.inf
        b = mean.min(axis=1)
        s = np.where(np.maximum(a, b) > 0, (b - a) / np.maximum(a, b), 0.0)
    unknown = (N[each, own] <= itself) | np.isinf(b)
    return np.where(g.weight[own] <= itself, 0.0, np.where(unknown, np.nan, s))
