"""How far out is far out, among rows some of which may be outliers: p-values beyond the ranks of scores.

The E largest scores, those beyond u, are taken for draws from a generalised Pareto distribution, whose shape ξ says how
heavy the tail is: 0 for an exponential one, 1/a for one that falls as s^(−a),

    P(S > s) = E/n (1 + ξ (s − u) / σ)^(−1/ξ)

averaged over ξ in [0, 1] and σ by their likelihood, times e^(−3ξ): what the scores leave open counts as heavy tails.
Outliers must have no say in that, and which rows are outliers is not known. So at first the largest tenth is only known
to lie beyond the others (it is censored). Then those that Benjamini and Hochberg's rule finds, and half as many again,
are censored and all others are not, and so on: heavy tails, once they are looked at, explain what was found in them,
and outliers beyond a light tail are found again. E = 75 + 5 times the censored scores, at most a quarter of all.
"""

from __future__ import annotations

import numpy as np

FIRST = 0.1  # share of the scores that is censored at first
MORE = 1.5  # censored scores for every one found
ROUNDS = 8  # of finding and looking again
SHARE, LEAST, EACH = 0.25, 75, 5  # of the scores beyond u: at most, at least, for each censored one
LIGHT = 3.0  # e^(−3ξ) is what is known of shapes beforehand
SHAPES = np.linspace(0.0, 1.0, 41)[:, None]
SCALES = np.exp(np.linspace(-1.6, 0.8, 49))  # in units of the mean excess
POINTS = 512  # of the scores beyond u, evenly by rank, that the likelihood is made of


def tail_p_values(scores: np.ndarray, p: np.ndarray, alpha: float) -> np.ndarray:
    """p-values of scores: from their tail where they are far out, else the ranks p; alpha is the level to be used."""
    censored = int(FIRST * len(scores))
    out = p
    for _ in range(ROUNDS):
        out = tail(scores, p, censored)
        censored = min(censored, round(MORE * benjamini_hochberg(out, alpha).sum()))
    return out


def tail(scores: np.ndarray, p: np.ndarray, censored: int) -> np.ndarray:
    """P(S > s) beyond u, and p elsewhere; the `censored` largest scores are only known to be beyond the others."""
    n = len(scores)
    beyond = int(min(SHARE * n, LEAST + EACH * censored))
    order = np.sort(scores)
    u = order[n - beyond - 1]
    excess = order[order > u] - u
    if len(excess) <= censored + 1:  # ties: there is no tail to speak of
        return p
    seen, last = excess[: len(excess) - censored], excess[len(excess) - censored - 1]
    sigma = (seen.sum() + censored * last) / len(seen) * SCALES
    points = seen if len(seen) <= POINTS else np.quantile(seen, (np.arange(POINTS) + 0.5) / POINTS)
    each = np.stack([surprise(points, SHAPES, s).sum(axis=1) for s in sigma], axis=1)  # (ξ, σ)
    rest = np.stack([surprise(np.array([last]), SHAPES, s)[:, 0] for s in sigma], axis=1)
    log_w = -len(seen) * (np.log(sigma) + (1 + SHAPES) * each / len(points)) - censored * rest - LIGHT * SHAPES
    weight = np.exp(log_w - log_w.max())
    xi, k = np.nonzero(weight > 1e-9)
    weight = weight[xi, k] / weight[xi, k].sum()
    far = np.flatnonzero(scores > u)
    out = np.array(p, dtype=np.float64)
    for s, w, shape in zip(sigma[k], weight, SHAPES[xi], strict=True):
        out[far] -= w * (p[far] - len(excess) / n * np.exp(-surprise(scores[far] - u, shape[:, None], s)[0]))
    return np.clip(out, 0.0, 1.0)


def surprise(excess: np.ndarray, xi: np.ndarray, sigma: float) -> np.ndarray:
    """−log P(S > u + excess | S > u), for every shape a row."""
    y = excess / sigma
    return np.where(xi > 0, np.log1p(xi * y) / np.where(xi > 0, xi, 1.0), y)


def benjamini_hochberg(p: np.ndarray, alpha: float) -> np.ndarray:
    """Which of the hypotheses are rejected, so that the expected share of false rejections is at most alpha.

    Parameters
    ----------
    p : array
        The p-values, of rows or of cells: all are one family. NaN is not a p-value.
    alpha : float
        The level.

    Returns
    -------
    rejected : ndarray of bool of the shape of p

    Examples
    --------
    >>> from unmix.outlier import benjamini_hochberg
    >>> benjamini_hochberg([0.001, 0.02, 0.04, 0.8], alpha=0.05).tolist()
    [True, True, False, False]
    """
    p = np.asarray(p, dtype=np.float64)
    known = np.sort(p[~np.isnan(p)])
    if len(known) and not (known[0] >= 0 and known[-1] <= 1):
        raise ValueError(f"p has values from {known[0]} to {known[-1]}: give p-values, which are between 0 and 1")
    passed = known[known <= alpha * np.arange(1, len(known) + 1) / max(len(known), 1)]
    return p <= passed[-1] if len(passed) else np.zeros(p.shape, bool)
