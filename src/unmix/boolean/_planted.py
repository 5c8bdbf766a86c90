"""Access lists with known roles: what the models of this room show that they find."""

from __future__ import annotations

import numpy as np


def overlapping(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells, three roles that share permissions, and 240 assignments: one or two of the roles each."""
    roles = np.zeros((3, 18), dtype=bool)
    for role, (first, end) in zip(roles, ((0, 8), (6, 13), (12, 18)), strict=True):
        role[first:end] = True
    sets = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=bool)
    assignments = sets[rng.permutation(240) % len(sets)]
    return assignments @ roles, roles, assignments


def apart(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells, three roles without a permission in common, of different size, and 240 rows that have one of them."""
    roles = np.repeat(np.eye(3, dtype=bool), (8, 6, 4), axis=1)
    assignments = np.repeat(np.eye(3, dtype=bool), (100, 80, 60), axis=0)[rng.permutation(240)]
    return assignments @ roles, roles, assignments
