"""A look at rows: y = B (x − μ) of independent components, and the sums that the next step is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.engine.block import Block, Local
from unmix.engine.moments import is_sparse
from unmix.linear._contrasts import Contrast
from unmix.linear._unmixing import Parts, Stats

CENTRED = 8.0  # standard deviations from zero up to which rows need not be centred before they are unmixed
FEW = 1 << 14  # products in y of few rows, for which calls cost more than the sums
TILE = 1 << 15  # numbers of y that are looked at together: with their copies they stay in the second-level cache


def look(U: Parts, b: Block, contrast: Contrast) -> Local:
    """Statistics and contrast of the components in question."""
    n, simple = b.total, U.active < 0 and b.w is None and isinstance(b.x, np.ndarray)
    if simple and contrast.few is not None and len(b.x) * U.whitening.size <= FEW:
        from unmix.kernels.ica_rows import few

        k = len(U.rotation)
        gram, sums = np.empty((k, k)), np.empty((k, 3))
        loss = few(*contrast.few, contrast.gauss, b.x, U.mean, U.rotation, U.whitening, U.signs, gram, sums)
        return Local(None, Stats(n, gram, sums), loss)
    gram, sums = tiles(U, b, contrast)
    sums[:, 0] -= contrast.gauss * n
    s = U.signs if U.active < 0 else U.signs[U.active : U.active + 1]
    return Local(None, Stats(n, gram, sums), float(s @ sums[:, 0]))


def tiles(U: Parts, b: Block, contrast: Contrast) -> tuple[np.ndarray, np.ndarray]:
    """Σ g(y) yᵀ and Σ G, Σ g′, Σ g² of the components in question, tile by tile."""
    B, one, sparse = U.rotation @ U.whitening, U.active >= 0, is_sparse(b.x)
    asked = B[U.active : U.active + 1] if one else B
    gram, sums = np.zeros((len(asked), len(B))), np.zeros((len(asked), 3))
    step, near = max(TILE // max(len(asked), 1), 64), sparse or is_near(U, B)
    for a in range(0, b.x.shape[0], step):
        w = None if b.w is None else b.w[a : a + step]
        x = b.x[a : a + step] if near else b.x[a : a + step] - U.mean
        y = np.ascontiguousarray((x @ asked.T).T) if sparse else asked @ x.T
        if near:
            y -= (asked @ U.mean)[:, None]
        g, more = contrast.rows(y, w)
        sums += more
        gram += against(U, g, x, B, near) if one else g @ y.T
    return gram, sums


def is_near(U: Parts, B: np.ndarray) -> bool:
    """Whether rows lie so near to zero that Bx − Bμ has the digits of B(x − μ); of CSR rows, which would become dense,
    nobody asks.
    """
    return bool((np.abs(B) @ np.abs(U.mean)).max() < CENTRED)


def against(U: Parts, g: np.ndarray, x: Any, B: np.ndarray, near: bool) -> np.ndarray:
    """Σ g yᵀ for a single g, by way of Σ g (x − μ)ᵀ: the other components are not made."""
    moved = np.asarray(g @ x, dtype=np.float64)
    if near:
        moved = moved - g.sum(axis=1, keepdims=True, dtype=np.float64) * U.mean
    return np.asarray(moved @ B.T)
