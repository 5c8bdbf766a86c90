"""Missing cells under a mixture of families: what each expects of its columns, and draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.maths.gaussian import chosen
from unmix.mixture.columns import fill


def expected_cells(
    groups: list[Any], parameters: Any, views: list[Any], z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What is expected of missing cells, and their standard deviations, by responsibilities z (n, K); 0 elsewhere."""
    shape = len(z), sum(x.shape[1] for _, x, _ in views)
    mean, deviation = np.zeros(shape), np.zeros(shape)
    for (f, columns), P, (_, x, seen) in zip(groups, parameters, views, strict=True):
        if seen is not None:
            own = f.complete(P, x, seen, z)
            fill(mean, columns, f, "complete", own[0])
            fill(deviation, columns, f, "complete", own[1])
    return mean, deviation


def drawn_cells(
    groups: list[Any], parameters: Any, views: list[Any], z: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Missing cells by a component drawn for each row."""
    which, out = chosen(z.T, rng), np.zeros((len(z), sum(x.shape[1] for _, x, _ in views)))
    state = np.random.RandomState(rng.integers(2**31))
    for k in np.unique(which):
        rows = np.flatnonzero(which == k)
        own = np.zeros((len(rows), out.shape[1]))
        for (f, columns), P, (_, x, seen) in zip(groups, parameters, views, strict=True):
            if seen is not None:
                fill(own, columns, f, "draw", f.draw(P, k, x[rows], seen[rows], state))
        out[rows] = own
    return out
