"""Which independent components can be relied on.

interference     Of n independent rows, component i holds the variance  1/n Σ_{j≠i} V_ij  of the other sources
                     all at once    V_ij = (γ_i + γ_j + τ_j²) / (τ_i + τ_j)²
                     one by one     V_ij = γ_i/τ_i² (j after i),  γ_j/τ_j² + 1 (j before i)
                 with γ = E[g²] − E[g y]²,  τ = |E[g y] − E[g′]|            (Tichavský, Koldovský & Oja 2006)
agreement        the mean squared correlation of a component with what is most like it in other starts
alike_gaussian   Of m Gaussian sources, those m directions that look least Gaussian show  |z| ≤ LEVEL √m + MORE,  z the
                 contrast in its standard deviations: so the m components of smallest |z| may be such if all are below.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

LEVEL, MORE = 1.6, 1.6
RELIABLE = 0.9  # stability
NAMED = 8  # components in a sentence
MOST = 1e12


def interference(measures: np.ndarray, n: float, one_by_one: bool) -> np.ndarray:
    """The variance that each component, of variance 1, is expected to have from other sources."""
    from unmix.kernels import ica_steps

    out = np.empty(measures.shape[1])
    ica_steps.interference(measures.astype(np.float64), one_by_one, MOST, out)
    return np.asarray(np.minimum(out / max(n, 1.0), MOST))


def agreement(rotation: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """1 where there are no other starts."""
    if not others:
        return np.ones(len(rotation))
    squares = [((rotation @ other.T) ** 2).max(axis=1) for other in others]
    return np.asarray(np.clip(np.mean(squares, axis=0), 0.0, 1.0))


def alike_gaussian(z: np.ndarray) -> list[int]:
    """The components that together may be Gaussian sources; of one alone nothing is wrong with it."""
    ordered = sorted((abs(v), i) for i, v in enumerate(z.tolist()))
    count = max((m for m, (v, _) in enumerate(ordered, 1) if v <= LEVEL * sqrt(m) + MORE), default=0)
    return sorted(i for _, i in ordered[:count]) if count > 1 else []


def doubts(z: np.ndarray, stability: np.ndarray) -> list[str]:
    """What is to be said of components that cannot be relied on; z as for `alike_gaussian`."""
    out, alike = [], alike_gaussian(z)
    if alike:
        out.append(
            f"the components {named(alike)} are no less Gaussian than those of Gaussian sources would seem: such "
            "cannot be separated, and these may be any rotation of the true ones. Give more rows, or take "
            f"n_components={max(len(z) - len(alike), 1)} if they are noise"
        )
    weak = sorted(set(np.flatnonzero(stability < RELIABLE).tolist()) - set(alike))
    if weak:
        out.append(
            f"the component(s) {named(weak)} are not reliable (stability_ below {RELIABLE}): other rows, or another "
            "start, would give others. Give more rows, raise n_init, or ask for fewer components"
        )
    return out


def named(which: list[int]) -> str:
    """Numbers of components, not too many."""
    return ", ".join(map(str, which[:NAMED])) + (", …" if len(which) > NAMED else "")
