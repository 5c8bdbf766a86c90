"""Rubin's rules: estimates from m imputed tables as one, with the uncertainty that the missing cells add.

    Q̄ = mean of Q_i       W = mean of V_i       B = Σ (Q_i − Q̄)²/(m − 1)       T = W + (1 + 1/m) B
    r = (1 + 1/m) B/W     λ = (1 + 1/m) B/T     ν = (m − 1)/λ²                 (Q − Q̄)/√T is Student's t with ν

With ν_c degrees of freedom in the complete table 1/ν ← λ²/(m − 1) + 1/ν_o, ν_o = (1 − λ) ν_c (ν_c + 1)/(ν_c + 3), which
is never more than ν_c (Barnard & Rubin 1999). It is 0 where all information is missing, W = 0 < B: no interval but the
whole line is known then. The share of the information that is missing is (r + 2/(ν + 3))/(r + 1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t


class Pooled(NamedTuple):
    """What several imputed tables say together; numbers for one estimate, arrays of shape (p,) for p of them.

    Attributes
    ----------
    estimate : float or ndarray
        Mean of the estimates.
    standard_error : float or ndarray
        Square root of the total variance.
    low, high : float or ndarray
        The interval, of the level asked for.
    df : float or ndarray
        Degrees of freedom of Student's t.
    missing_information : float or ndarray
        The share of the information about the estimate that is missing with the cells.
    within, between, total : float or ndarray
        Variances: that of one complete table, that between the tables, and both together. Matrices of shape (p, p)
        where matrices were given.
    """

    estimate: Any
    standard_error: Any
    low: Any
    high: Any
    df: Any
    missing_information: Any
    within: Any
    between: Any
    total: Any


def pool(estimates: Any, variances: Any, *, df_complete: float | None = None, level: float = 0.95) -> Pooled:
    """Pool what was estimated from each of several imputed tables, by Rubin's rules.

    Parameters
    ----------
    estimates : array of shape (m,) or (m, p)
        One estimate, or p of them, from each of m imputed tables.
    variances : array of shape (m,), (m, p) or (m, p, p)
        Their squared standard errors, or their covariances.
    df_complete : float, optional
        Degrees of freedom that the estimate would have in a complete table (of a regression, rows less coefficients);
        by default so many that they do not matter.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    pooled : Pooled
        Estimate, standard error, interval, degrees of freedom, share of missing information, variances.

    References
    ----------
    Rubin (1987), Multiple imputation for nonresponse in surveys.
    Barnard & Rubin (1999), Small-sample degrees of freedom with multiple imputation, Biometrika 86(4).

    Examples
    --------
    The mean of a column, from ten draws of its missing cells:

    >>> import numpy as np
    >>> import unmix
    >>> rng = np.random.default_rng(0)
    >>> X = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.8], [0.8, 1.0]], 500)
    >>> X[:200, 1] = np.nan
    >>> tables = unmix.GaussianImputer(random_state=0).fit(X).impute(X, n_draws=10, random_state=0)
    >>> pooled = unmix.pool(tables[:, :, 1].mean(axis=1), tables[:, :, 1].var(axis=1, ddof=1) / 500, df_complete=499)
    >>> bool(pooled.low < 2.0 < pooled.high)
    True
    """
    Q, V = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    _check(Q, V, df_complete, level)
    m, matrix = len(Q), V.ndim == 3
    estimate, away = Q.mean(axis=0), Q - Q.mean(axis=0)
    within = V.mean(axis=0)
    between = (away.T @ away if matrix else (away**2).sum(axis=0)) / (m - 1)
    total = within + (1.0 + 1.0 / m) * between
    T, more = (np.diagonal(total), (1.0 + 1.0 / m) * np.diagonal(between)) if matrix else (total, total - within)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(T > 0, more / T, 0.0)
        inverse = share**2 / (m - 1)
        if df_complete is not None:
            inverse = inverse + (df_complete + 3.0) / (df_complete * (df_complete + 1.0) * (1.0 - share))
        df = 1.0 / inverse
        missing = share + (1.0 - share) * 2.0 / (df + 3.0)  # (r + 2/(ν + 3))/(r + 1), r = λ/(1 − λ)
    error = np.sqrt(T)
    half = error * np.where(df > 0, t.ppf(0.5 + 0.5 * level, df), np.inf)  # of 0 degrees every value is possible
    found = estimate, error, estimate - half, estimate + half, df, missing, within, between, total
    return Pooled(*(float(v) if np.ndim(v) == 0 else np.asarray(v) for v in found))


def _check(Q: np.ndarray, V: np.ndarray, df_complete: float | None, level: float) -> None:
    """Refuse what are not estimates and their variances."""
    if Q.ndim not in (1, 2) or V.shape not in (Q.shape, (*Q.shape, *Q.shape[1:])):
        raise ValueError(
            f"estimates have shape {Q.shape} and variances {V.shape}: give (m,) and (m,), (m, p) and (m, p), or (m, p) "
            "and (m, p, p) for m imputed tables"
        )
    if len(Q) < 2:
        raise ValueError(f"estimates come from {len(Q)} table(s), which cannot show how they differ: give at least 2")
    if not (np.isfinite(Q).all() and np.isfinite(V).all()):
        raise ValueError("estimates or variances hold NaN or infinity: give finite numbers")
    if ((V if V.ndim < 3 else np.diagonal(V, axis1=1, axis2=2)) < 0).any():
        raise ValueError(f"variances reach down to {V.min():.6g}: give squared standard errors, of at least 0")
    if df_complete is not None and not df_complete > 0:
        raise ValueError(f"df_complete={df_complete!r}: give a number above 0, or None")
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: give a probability between 0 and 1")
