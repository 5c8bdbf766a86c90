"""Criteria for the number of parts k: each gives a value per k, its standard error where it has one, and a vote.

    aic       2 p − 2 log L                      p free parameters, L the likelihood           lowest
    bic       p log n − 2 log L                                                                 lowest
    icl       bic + 2 Σ_i H(z_i)                 H the entropy of row i's memberships           lowest
              of hard clusters bic, each of them a Gaussian (classification likelihood)
    nll       − log L / n                        always falls: where the curve bends            bend
    heldout   mean over folds of − log p(held-out row)                                          one-SE rule
    entries   Σ (x − x̂)² / Σ (x − x̄)² over held-out cells, of folds of cells                    one-SE rule
    stability 1 − r / r_rand: how well a clustering of one half predicts that of another        highest
    calinski_harabasz  (D(1) − D(k)) / (k − 1) · (n − k) / D(k),   D the sum of squared distances     highest
    silhouette  mean (b − a) / max(a, b)                                                        highest
    gap       E log D(k) of structureless data − log D(k), D the loss                           one-SE rule

The one-SE rule takes the smallest k whose value is within one standard error of the best, where the error is that of
the difference between the two, fold by fold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unmix.engine.config import get_config
from unmix.engine.draws import generator
from unmix.engine.sources import Source, as_source
from unmix.engine.sources.base import human
from unmix.model import fit_together
from unmix.model.capabilities import Completes, Density, Geometry
from unmix.selection.clouds import clouds
from unmix.selection.likeness import Likeness, log_losses, quick, squares
from unmix.selection.question import LIKENESS_ROWS, Question

SILHOUETTE_ROWS = 10_000  # enough for two digits
COVARIANCE_ROWS = 100_000  # enough for the covariances of clusters
WORDS = {  # what a person reads, and the unit of the values
    "aic": ("Akaike information (AIC)", "−2 log-likelihood + cost"),
    "bic": ("Bayesian information (BIC)", "−2 log-likelihood + cost"),
    "icl": ("classification likelihood (ICL)", "−2 log-likelihood + cost"),
    "nll": ("likelihood (NLL)", "nats per row"),
    "heldout": ("likelihood of held-out rows", "nats per row"),
    "entries": ("error at held-out cells", "share of variance"),
    "stability": ("stability of halves", "1: the same groups"),
    "calinski_harabasz": ("Calinski–Harabasz ratio", "variance between : within"),
    "silhouette": ("silhouette", "mean, −1 to 1"),
    "gap": ("gap statistic", "log of the loss saved"),
}
HIGH_IS_GOOD = ("calinski_harabasz", "silhouette", "stability", "gap")


class Score(NamedTuple):
    """A criterion at every k, low is good; NaN where it says nothing."""

    value: np.ndarray
    error: np.ndarray  # standard error, 0 where there is none
    runs: np.ndarray | None = None  # (folds, k): what the values are means of


def _likelihood(q: Question) -> tuple[np.ndarray, np.ndarray]:
    return q.evidence[:, 0], np.array([m.n_parameters() for m in q.models], dtype=float)


def aic(q: Question) -> Score:
    """2 p − 2 log L."""
    log_l, p = _likelihood(q)
    return Score(2 * p - 2 * log_l, np.zeros(len(p)))


def bic(q: Question) -> Score:
    """Return p log n − 2 log L."""
    log_l, p = _likelihood(q)
    return Score(p * np.log(q.weight.sum()) - 2 * log_l, np.zeros(len(p)))


def icl(q: Question) -> Score:
    """bic + twice the entropy of the memberships; of hard clusters (entropy 0) bic with a Gaussian for each."""
    if isinstance(q.model, Density):
        value, error, _ = bic(q)
        return Score(value + 2 * q.evidence[:, 1], error)
    x, w = q.rows(COVARIANCE_ROWS)
    return Score(clouds(x, w, q.labels(x)), np.zeros(len(q.ks)))


def nll(q: Question) -> Score:
    """− log L / n."""
    log_l, p = _likelihood(q)
    return Score(-log_l / q.weight.sum(), np.zeros(len(p)))


def heldout(q: Question) -> Score:
    """− log p of rows that the fit did not see; of documents every second token, given the others."""
    fold, alive = np.full(q.source.n, -1), np.flatnonzero(q.weight > 0)
    fold[alive] = generator(q.seed, "folds").permutation(len(alive)) % q.folds
    runs = np.full((q.folds, len(q.ks)), np.nan)
    for f in range(q.folds):
        models = [q.sized(k) for k in q.ks]
        seen = q.weight * (fold != f)
        fit_together(models, q.source, [seen] * len(models), [q.seed] * len(models))
        out = np.flatnonzero(fold == f)
        rows = as_source(q.source.take(out))  # which has no names of columns to complain about
        for i, m in enumerate(models):
            if isinstance(m, Completes):
                log_p, tokens = m.completions(rows)
                runs[f, i] = -(q.weight[out] @ log_p) / (q.weight[out] @ tokens)
            else:
                runs[f, i] = -np.average(m.score_samples(rows), weights=q.weight[out])
    return _mean(runs)


def with_holes(source: Source) -> np.ndarray:
    """All rows, dense and in float64; NaN where nothing was observed."""
    x = source.whole(get_config().budget)
    if isinstance(x, np.ndarray):
        return x.astype(np.float64)
    if 8.0 * source.n * source.d > get_config().budget:
        raise MemoryError(
            f"held-out entries of {source.n} × {source.d} cells are looked at in dense rows, which take "
            f"{human(8.0 * source.n * source.d)}: take fewer rows, or raise the budget"
        )
    if source.absent == "zero":
        return np.asarray(x.toarray(), dtype=np.float64)
    out = np.full(x.shape, np.nan)
    out[np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices] = x.data
    return out


def column_means(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Means of the cells that are not NaN; of columns without any, the mean of all cells."""
    total, count = weight @ np.nan_to_num(x), weight @ ~np.isnan(x)
    return np.where(count > 0, total / np.maximum(count, 1e-300), total.sum() / max(count.sum(), 1e-300))


def entries(q: Question) -> Score:
    """Squared error of cells that the fit did not see, over that of the columns' means."""
    x = with_holes(q.source)
    seen = ~np.isnan(x)
    fold = np.where(seen, generator(q.seed, "cells").integers(q.folds, size=x.shape), -1)
    w = q.weight[:, None] * np.ones(x.shape[1])
    runs = np.full((q.folds, len(q.ks)), np.nan)
    for f in range(q.folds):
        out = fold == f
        masked = np.where(out, np.nan, x)
        mean = column_means(masked, q.weight)
        if not q.model.empty_columns:
            masked[:, ~(seen & ~out).any(axis=0)] = 0.0
        models = [q.sized(k) for k in q.ks]
        fit_together(models, masked, [q.w] * len(models), [q.seed] * len(models))
        total = float((w * (np.where(out, x, 0) - mean) ** 2)[out].sum())
        size = float((w * np.where(out, x, 0) ** 2).sum())
        total = max(total, 1e-12 * size) or 1.0  # columns may not vary
        for i, m in enumerate(models):
            guess = np.asarray(m.inverse_transform(m.transform(masked)), dtype=np.float64)
            error = float((w * (np.where(out, x, 0) - guess) ** 2)[out].sum())
            runs[f, i] = error / total if error > 1e-20 * size else 0.0  # less is rounding
    return _mean(runs)


def stability(q: Question) -> Score:
    """Minus 1 − r / r_rand: how well a clustering of one half of the rows predicts that of the other."""
    from unmix.validate import stability as measure

    x, w = q.rows(SILHOUETTE_ROWS)
    if w is not None:
        x = x[generator(q.seed, "weights").choice(len(x), len(x), p=w / w.sum())]
    value, error = np.full(len(q.ks), np.nan), np.zeros(len(q.ks))
    for i, k in enumerate(q.ks):
        if 1 < k <= len(x) // 2:
            s = measure(q.sized(k).set_params(**q.free), x, method="transfer", random_state=q.seed)
            value[i], error[i] = -s.score, s.se
    return Score(value, error)


def silhouette(q: Question) -> Score:
    """Minus the mean silhouette by the model's own distance, of a sample of large data."""
    from unmix.validate import silhouette as measure

    x, w = q.rows(SILHOUETTE_ROWS)
    whole, labels = len(x) == q.source.n, q.labels(x)
    own = q.models[0]  # a mixture sees rows by densities: of its groups plain distances are taken
    rows, metric = own.distances(x) if isinstance(own, Geometry) else (x, "euclidean")
    if metric not in ("euclidean", "precomputed"):  # which take missing cells
        seen = ~np.isnan(rows).any(axis=1)
        rows, labels, w = rows[seen], [v[seen] for v in labels], None if w is None else w[seen]
    value, error = np.full(len(q.ks), np.nan), np.zeros(len(q.ks))
    for i, label in enumerate(labels):
        sizes = np.bincount(label if w is None else label[w > 0])
        if (sizes > 0).sum() > 1 and sizes.max() > 1:
            s = measure(rows, label, metric=metric, per_row=not whole, sample_weight=w)
            value[i] = -s.score
            if s.per_row is not None:  # of a draw of the rows
                error[i] = np.nanstd(s.per_row) / np.sqrt(len(rows))
    return Score(value, error)


def calinski_harabasz(q: Question) -> Score:
    """Minus the variance between clusters over that within, each by its degrees of freedom."""
    one, rows = q.sized(1).set_params(**q.free), q.rows(SILHOUETTE_ROWS)
    total = squares(one, fit_together([one], q.source, [q.w], [q.seed])[0], *rows)
    k, n = np.array(q.ks, dtype=float), q.weight.sum()
    within = np.array([squares(m, f, *rows) for m, f in zip(q.models, q.fits, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -(total - within) / (k - 1) * (n - k) / within
    return Score(np.where((k > 1) & (k < n), value, np.nan), np.zeros(len(k)))


def gap(q: Question) -> Score:
    """How much lower the log loss is than for rows without structure, which are uniform along the principal axes."""
    x, w = q.rows(LIKENESS_ROWS)
    like = Likeness(q, x, w)
    own, kind = log_losses(*quick(q, x, w, q.ks), x, w), "uniform" if "uniform" in like.kinds else like.kinds[0]
    draws = (like.draw(kind, generator(q.seed, "gap", i)) for i in range(q.references))
    runs = np.array([log_losses(*quick(q, y, w, q.ks), y, w) for y in draws])
    value = own - runs.mean(axis=0)
    return Score(value, runs.std(axis=0, ddof=1) * np.sqrt(1 + 1 / q.references))


def _mean(runs: np.ndarray) -> Score:
    return Score(runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs)), runs)


CRITERIA: dict[str, Callable[[Question], Score]] = {
    f.__name__: f for f in (aic, bic, icl, nll, heldout, entries, stability, calinski_harabasz, silhouette, gap)
}
