"""First parts: random ones, given ones, and those of a non-negative double SVD."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.engine.draws import generator
from unmix.engine.range import remedy

EPS = float(np.finfo(float).eps)
UNSCALED_FACTOR = 2.0**20  # data whose mean is within this factor of one are taken as they are, without a copy
LOADS_FLOOR = 1e-6  # share of a part's mean that a load starts from where zeros would stay
NEGLIGIBLE_LOAD = 1e-6  # share of the largest load below which NNDSVD's is rounding, and counts as zero


class Sample(NamedTuple):
    """A sample of the rows in float64, divided by `scale`."""

    x: Any
    w: np.ndarray
    observed: np.ndarray | None
    total: np.ndarray  # (d,) Σ w x
    seen: np.ndarray  # (d,) Σ w over the rows that show a column
    level: float  # mean of the observed cells; 1 if it is 0
    scale: float  # a power of four, 1 for data of ordinary size


def measured(b: Block, levels: tuple[float, float]) -> Sample:
    """The sample in its own unit; an error where its level is beyond what the loss can take."""
    x = b.x.astype(np.float64, copy=False)
    w = np.ones(x.shape[0]) if b.w is None else b.w * max(1.0, len(b.w) / b.w.sum())  # small weights are shares
    seen = w.sum() * np.ones(x.shape[1]) if b.observed is None else w @ b.observed
    total = np.asarray(w @ x).ravel()
    level = total.sum() / max(seen.sum(), 1.0) or 1.0
    if not levels[0] <= level <= levels[1]:
        raise ValueError(
            f"X is about {level:.0e} in size, and its squared error is beyond the range of float64: {remedy(level)}"
        )
    usual = 1 / UNSCALED_FACTOR <= level <= UNSCALED_FACTOR
    scale = 1.0 if usual else 4.0 ** round(np.log2(level) / 2)
    return Sample(x / scale if scale != 1 else x, w, b.observed, total / scale, seen, level / scale, scale)


def check_given(name: str, value: Any, wanted: tuple[int, int]) -> None:
    """Refuse first parts or amounts of another shape, and such as no factorisation has."""
    given = np.asarray(value)
    if given.shape != wanted:
        raise ValueError(f"{name} has shape {given.shape}: these data and n_components need {wanted}")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
        raise ValueError(f"{name} must be finite, not negative and not all zero")


def given_loads(components: Any, unit: float) -> np.ndarray:
    """Loads of given components, divided by their unit."""
    return np.array(np.asarray(components).T, dtype=np.float64, order="C") / unit


def random_loads(sample: Sample, k: int, rng: np.random.Generator) -> np.ndarray:
    """Half-normal loads of the size that fits the level of the data."""
    return np.sqrt(sample.level / k) * np.abs(rng.standard_normal((len(sample.total), k)))


def svd_loads(sample: Sample, k: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Loads of a non-negative double SVD of the rows, missing cells at the mean of their column."""
    x = sample.x
    if sample.observed is not None:
        x = np.where(sample.observed, x, sample.total / np.maximum(sample.seen, EPS))
    root = np.sqrt(sample.w)[:, None]
    x = (sp.diags_array(root.ravel()) @ x if sp.issparse(x) else root * x) / sample.level
    return np.sqrt(sample.level) * filled(nndsvd(x, k), kind, rng)


def nndsvd(x: Any, k: int) -> np.ndarray:
    """Loads of a non-negative double SVD [Boutsidis & Gallopoulos 2008]: of each singular pair the heavier sign.

    The right singular vectors come from subspace iteration on XᵀX, so that a row of weight two is the row twice. It
    begins with the same directions for every seed: the answer is that of X, and nothing of it is drawn.
    """
    d = x.shape[1]
    Q = np.linalg.qr(generator(0, "init").standard_normal((d, min(d, k + 10))))[0]
    for _ in range(7):
        Q = np.linalg.qr(x.T @ (x @ Q))[0]
    left = x @ Q
    values, vectors = np.linalg.eigh(left.T @ left)
    order = np.argsort(-values)[:k]
    V, S = Q @ vectors[:, order], np.sqrt(np.maximum(values[order], 0))
    W = left @ vectors[:, order] / np.where(S > 0, S, 1)
    loads = np.empty((d, k))
    for q in range(k):
        signs = [(np.maximum(a * W[:, q], 0), np.maximum(a * V[:, q], 0)) for a in (1, -1)]
        norms = [(np.linalg.norm(a), np.linalg.norm(c)) for a, c in signs]
        best = int(norms[1][0] * norms[1][1] > norms[0][0] * norms[0][1])
        sigma = norms[best][0] * norms[best][1]
        loads[:, q] = np.sqrt(S[q] * sigma) * signs[best][1] / max(norms[best][1], EPS)
    loads[:, 0] = np.sqrt(S[0]) * np.abs(V[:, 0])
    loads[loads < NEGLIGIBLE_LOAD * loads.max(initial=0)] = 0
    return loads


def filled(loads: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Zeros kept ("nndsvd"), filled with the mean of the data, here 1 ("nndsvda"), or at random ("nndsvdar")."""
    zeros = loads == 0
    if kind == "nndsvda":
        loads[zeros] = 1.0
    elif kind == "nndsvdar":
        loads[zeros] = np.abs(rng.standard_normal(int(zeros.sum()))) / 100
    return loads


def without_zeros(loads: np.ndarray) -> np.ndarray:
    """Loads that multiplicative steps can move: a zero would stay."""
    return np.maximum(loads, LOADS_FLOOR * loads.mean(axis=0) + EPS * loads.mean())
