"""Grants that look wrong: how likely each cell of an access list is, told by all other cells, and what follows from it.

**Expected.** Each permission is regressed on all others by ridge regression, for each user by the other users:

    G = (X Xᵀ + λ)⁻¹,   V = G X,   a_d = Σ_i x_id v_id,   b_i = Σ_d x_id v_id
    x̂_id = x_id − v_id / ((1 − a_d)(1 − b_i)/λ + v_id²)

is that prediction for every cell at once: permission d is no regressor of itself, and user i was left out, so x̂_id does
not depend on x_id. The formula is its own mirror image, users regressed on users. λ has the least sum of (x − x̂)².

**Calibrated.** p, the share of ones among cells that are as much expected, rises with x̂: isotonic regression.

**Wrong.** If a share π of all cells was flipped, blindly, then p = π + (1 − 2π) q where a share q was rightly granted,
and a 1 was flipped with probability (1 − q) π / p, a 0 with probability q π / (1 − p). The least expected cells have
p = π + q₀. No list can tell π from q₀, which is grants that are right though nothing foretells them. Everybody has
something, and every permission somebody, so that up to max(n, d) such grants are no surprise: q₀ = 1/min(n, d) is
taken off p to get π. Of 0s, π is no more than the share of 0s among the cells that are expected most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.isotonic import IsotonicRegression

from unmix.engine.config import get_config

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # among which λ is chosen
TRIED = 256  # columns that choose it
LEAST = 200  # ones, and zeros, in a bin of cells that are as much expected
BINS = 50  # of ones alike many, at most: the floor is the first of them, and how sure it is decides what is called
FEWEST = 1000  # grants, below which nothing can be promised
LIKELY = 0.5  # from which on a cell that is not granted may be a grant that is missing


class Review(NamedTuple):
    """Cells that may be wrong, the likeliest first, and those that are called so.

    The false-discovery rate of the first `extras` of extra grants is at most what was asked for, and so is that of the
    first `missings` of missing ones, as far as wrong cells lie anywhere.
    """

    extra: np.ndarray  # (m, 2) user and permission of every grant
    extra_probability: np.ndarray
    extra_expected: np.ndarray  # share of grants among cells as much expected
    extras: int
    missing: np.ndarray  # (m', 2) the same of cells that are not granted, though likely
    missing_probability: np.ndarray
    missing_expected: np.ndarray
    missings: int
    rate: float  # share of all cells that was flipped to a grant, at least
    floor: float  # share of grants among the cells that are least expected


def review(ones: Any, known: np.ndarray | None = None, fdr: float = 0.1) -> Review:
    """Judge every grant of a list, and every cell that is likely to be one.

    Parameters
    ----------
    ones : CSR matrix of shape (n, d)
        Who may do what.
    known : ndarray of bool of shape (n, d), optional
        Cells that are known; by default all are.
    fdr : float, default=0.1
        The share of cells that are right among those that are called wrong.

    Returns
    -------
    review : Review
    """
    n, d = ones.shape
    _afford(n, d)
    x = ones.toarray().astype(np.float32)
    score = expected(x)
    granted = x.ravel() > 0
    use = slice(None) if known is None else np.flatnonzero(known.ravel())
    p, rates = calibrated(score.ravel()[use], granted[use])
    if known is not None:
        whole = np.zeros(n * d, np.float32)
        whole[use] = p
        p = whole
    floor, top = float(rates[0]), float(1.0 - rates[-1])
    enough = len(rates) > 1 and ones.nnz >= FEWEST
    more = max(floor - 1.0 / min(n, d), 0.0) if enough else 0.0
    less = min(more, top)
    q = np.clip((p - floor) / max(1.0 - floor - less, 1e-9), 0.0, 1.0)
    grants = np.flatnonzero(granted)
    lacking = np.flatnonzero(~granted & (p >= LIKELY))
    extra = _ordered(grants, (1 - q[grants]) * more / np.maximum(p[grants], 1e-12), score.ravel()[grants])
    missing = _ordered(lacking, q[lacking] * less / np.maximum(1 - p[lacking], 1e-12), -score.ravel()[lacking])
    at = [np.stack(np.divmod(cells, d), axis=1) for cells, _ in (extra, missing)]
    counts = [listed(w, fdr) for _, w in (extra, missing)]
    return Review(
        at[0], extra[1], p[extra[0]], counts[0], at[1], missing[1], p[missing[0]], counts[1], more, floor
    )  # fmt: skip


def expected(x: np.ndarray) -> np.ndarray:
    """How much the other cells of a list speak for each of its cells; a cell has no say in its own."""
    n, d = x.shape
    wide = d > n
    y = x.T if wide else x
    values, Q = eigh(y.T @ y, overwrite_a=True, check_finite=False)
    values = np.maximum(values, 0.0).astype(np.float32)
    P = y @ Q  # y = P Qᵀ
    some = np.unique(np.linspace(0, y.shape[1] - 1, min(y.shape[1], TRIED)).astype(int))
    errors = [
        float(np.square(left_out(y[:, some], P, values, Q, some, penalty) - y[:, some]).sum(dtype=np.float64))
        for penalty in PENALTIES
    ]
    best = PENALTIES[int(np.argmin(errors))]
    out = left_out(y, P, values, Q, np.arange(y.shape[1]), best)
    return np.ascontiguousarray(out.T) if wide else out


def left_out(
    y: np.ndarray, P: np.ndarray, values: np.ndarray, Q: np.ndarray, columns: np.ndarray, penalty: float
) -> np.ndarray:
    """Predictions of some columns by all others, each row left out."""
    shrunk = 1.0 / (values + np.float32(penalty))
    V = P @ (shrunk[:, None] * Q[columns].T)
    a = np.square(Q[columns]) @ (values * shrunk)
    b = np.square(P) @ shrunk
    weight = np.maximum((1.0 - b)[:, None] * (1.0 - a)[None, :] / penalty, 1e-9) + V * V
    return np.asarray(y - V / weight, dtype=np.float32)


def calibrated(score: np.ndarray, ones: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of ones among cells of about the same score, for each cell; and that of each bin, in rising order."""
    order = np.argsort(score, kind="stable")
    up = np.concatenate([[0], np.cumsum(ones[order])])
    down = np.arange(len(score) + 1) - up
    ends = _bins(up, down, max(LEAST, int(up[-1]) // BINS))
    if len(ends) == 2:  # ones and zeros are apart but for a few
        ends = _bins(up, down, LEAST)
    size = np.diff(ends)
    rates = IsotonicRegression(y_min=0.0, y_max=1.0).fit_transform(
        np.arange(len(size)), np.diff(up[ends]) / size, sample_weight=size
    )
    p = np.empty(len(score), np.float32)
    p[order] = np.repeat(rates, size)
    return p, rates


def _bins(up: np.ndarray, down: np.ndarray, least: int) -> np.ndarray:
    """Where bins end that hold so many ones, and enough zeros."""
    edges, n = [0], len(up) - 1
    for _ in range(min(int(up[-1]), int(down[-1])) // LEAST):
        at = edges[-1]
        reach = max(np.searchsorted(up, up[at] + least), np.searchsorted(down, down[at] + LEAST))
        edges.append(min(int(reach), n))
    inner = [e for e in edges if up[-1] - up[e] >= least and down[-1] - down[e] >= LEAST]
    return np.array(sorted({0, *inner, n}))


def listed(probability: np.ndarray, fdr: float) -> int:
    """How many of the first may be called wrong so that, on average, no more than this share of them is right."""
    mean = np.cumsum(1.0 - probability) / np.arange(1, len(probability) + 1)
    found = np.flatnonzero(mean <= fdr)
    return int(found[-1]) + 1 if len(found) else 0


def _ordered(cells: np.ndarray, probability: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells that are likeliest wrong first; of alike ones those of the lowest score."""
    probability = np.clip(probability, 0.0, 1.0)
    order = np.lexsort((score, -probability))
    return cells[order], probability[order]


def _afford(n: int, d: int) -> None:
    """Refuse lists of which neither side is short, or whose cells do not fit."""
    least, have = 30.0 * n * d + 16.0 * min(n, d) ** 2, get_config().budget
    if least > have:
        raise ValueError(
            f"{n:,} users and {d:,} permissions: judging each cell would take {least:.1e} bytes, which exceeds the "
            f"memory budget of {have:.1e}: raise unmix.config(memory_budget=…), or pass fdr=None to leave it out"
        )
