"""How far out is far out, among rows some of which may be outliers: p-values beyond the ranks of scores.

The largest scores, the N beyond u, are taken for draws from two groups. By what they exceed u, y = s − u,

    ordinary rows    P(Y > y) = (1 + ξ y / σ)^(−1/ξ)     generalised Pareto: exponential where ξ = 0, else as y^(−1/ξ)
    outliers         anywhere between u and the largest score, a share π of the N

Neither ξ, σ nor π is known: the likelihood of all N scores weighs them, times e^(−2ξ) and 0.97 for π = 0. Outliers
beyond a light tail leave a gap, or pile up where a smooth tail would hardly have any; heavy tails leave none. So

    q_i = N/n Σ_(ξ, σ) weight P(Y > s_i − u)

is small for rows that ordinary ones do not explain, whether they come with heavy tails or not. The further out u is,
the better the first form fits, but outliers must not be most of what is beyond it: N is 75, 3 √n, or four times as many
as the outliers that are to be expected by the largest quarter of the scores, whichever is most.
"""

from __future__ import annotations

import numpy as np

LARGEST, LEAST, ROOT, EACH = 0.25, 75, 3.0, 4.0  # N is from 75 or 3 √n to n/4, and 4 for each outlier expected
SMOOTH = 10  # scores beyond u that are needed to speak of a tail
SHAPES = np.linspace(0.0, 1.0, 21)[:, None, None]
SCALES = np.exp(np.linspace(-1.6, 1.2, 36))[:, None]  # in units of what the nearest excesses say, outliers or not
NEAREST = 0.3  # of the excesses
LIGHT = 2.0  # e^(−2ξ) is what is known of shapes beforehand
NONE, MOST = 0.97, 0.6  # how sure it is that there are no outliers, before any score is seen; their largest share
POINTS = 512  # of the scores beyond u, evenly by rank, that the likelihood is made of


def tail_p_values(scores: np.ndarray, p: np.ndarray) -> np.ndarray:
    """q of the scores beyond u, and the ranks p of the others."""
    n, order = len(scores), np.sort(scores)
    out = np.array(p, dtype=np.float64)
    excess, _ = beyond(order, LARGEST * n)
    if len(excess) < SMOOTH:
        return out
    share = weights(excess)[2]
    excess, u = beyond(order, min(LARGEST * n, max(LEAST, ROOT * np.sqrt(n), EACH * share * len(excess))))
    if len(excess) < SMOOTH:
        return out
    sigma, weight, _ = weights(excess)
    y = scores - u
    far = np.flatnonzero(y > 0)
    i, k = np.nonzero(weight > 1e-10)
    for shape, scale, w in zip(SHAPES[i, :, 0], sigma[k], weight[i, k], strict=True):
        out[far] += w * (len(excess) / n * np.exp(-surprise(y[far], shape, scale)) - p[far])
    return np.clip(out, 0.0, 1.0)


def beyond(order: np.ndarray, count: float) -> tuple[np.ndarray, float]:
    """By how much the `count` last of ordered scores exceed u, the one before them; ties with it are left out."""
    u = order[len(order) - 1 - int(count)]
    return order[order > u] - u, float(u)


def weights(excess: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Scales; how likely each shape (rows) and scale (columns) is, with sum 1; the expected share of outliers."""
    N = len(excess)
    sigma = np.quantile(excess, NEAREST) / -np.log1p(-NEAREST) * SCALES
    y = excess if N <= POINTS else np.quantile(excess, (np.arange(POINTS) + 0.5) / POINTS)
    ordinary = -np.log(sigma) - (1 + SHAPES) * surprise(y, SHAPES, sigma)  # log-densities (ξ, σ, y)
    shares = np.geomspace(1 / N, MOST, 12)
    log_w = [np.log(NONE) + N / len(y) * ordinary.sum(axis=2)]
    for share in shares:
        both = np.logaddexp(np.log1p(-share) + ordinary, np.log(share / excess[-1]))
        log_w.append(np.log((1 - NONE) / len(shares)) + N / len(y) * both.sum(axis=2))
    every = np.stack(log_w) - LIGHT * SHAPES[:, :, 0]
    weight = np.exp(every - every.max())
    weight /= weight.sum()
    return sigma, weight.sum(axis=0), float(shares @ weight.sum(axis=(1, 2))[1:])


def surprise(y: np.ndarray, xi: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """−log P(Y > y)."""
    heavy = np.where(xi > 0, xi, 1.0)
    return np.where(xi > 0, np.log1p(heavy * y / sigma) / heavy, y / sigma)


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
