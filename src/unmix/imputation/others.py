"""Rows as one Gaussian fills them, and as it would fill them if it did not see one of their columns.

With P = Σ_oo⁻¹ of the observed cells o, B = P Σ_oh for the hidden ones h, and a group m of cells among o (a column, or
the levels of a category),

    off_m = P_mm⁻¹ (P (x_o − μ_o))_m                    x_m less what the rest lets expect of it
    E[x_m | x_o∖m] = x_m − off_m                        E[x_h | x_o∖m] = E[x_h | x_o] − off_m B_m

So a regression of column m learns from rows that look as those in which m is missing will.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmix.maths.gaussian import inverse, patterns


def without_each(y: np.ndarray, groups: Sequence[np.ndarray], mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Rows filled without the cells of each group in turn, (groups, n, d); NaN means not observed."""
    out = np.empty((len(groups), *y.shape))
    single = np.array([len(g) == 1 for g in groups])
    of = np.zeros(y.shape[1], dtype=int)
    for i, columns in enumerate(groups):
        of[columns] = i
    for rows, seen in patterns(~np.isnan(y)):
        o, h = np.flatnonzero(seen), np.flatnonzero(~seen)
        P = inverse(covariance[np.ix_(o, o)]) if len(o) else np.zeros((0, 0))
        away = y[np.ix_(rows, o)] - mean[o]
        pull, B = away @ P, P @ covariance[np.ix_(o, h)]
        full = y[rows].copy()
        full[:, h] = mean[h] + away @ B
        out[:, rows] = full
        off = pull / np.diag(P)
        alone = np.flatnonzero(single[of[o]])
        g = of[o[alone]]
        out[g[:, None], rows, o[alone][:, None]] -= off[:, alone].T
        if len(h):
            out[np.ix_(g, rows, h)] -= off[:, alone].T[:, :, None] * B[alone][:, None, :]
        for wide in np.unique(of[o[~single[of[o]]]]):
            mine = np.flatnonzero(of[o] == wide)
            away_from = np.linalg.solve(P[np.ix_(mine, mine)], pull[:, mine].T).T
            out[wide][np.ix_(rows, o[mine])] -= away_from
            out[wide][np.ix_(rows, h)] -= away_from @ B[mine]
    return out


def filled(y: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Rows with their missing cells as the others let expect them."""
    out = y.copy()
    for rows, seen in patterns(~np.isnan(y)):
        o, h = np.flatnonzero(seen), np.flatnonzero(~seen)
        if len(h):
            slope = inverse(covariance[np.ix_(o, o)]) @ covariance[np.ix_(o, h)] if len(o) else np.zeros((0, len(h)))
            out[np.ix_(rows, h)] = mean[h] + (y[np.ix_(rows, o)] - mean[o]) @ slope
    return out
