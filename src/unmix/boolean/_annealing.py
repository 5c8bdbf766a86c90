"""Where the roles of multi-assignment clustering come from: passes at a temperature that falls.

While it is high every row belongs to all sets of roles and every role may have every permission; as it falls, roles
part. Below 1 rows keep the probabilities that they have, and roles go on until each permission is there or is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from unmix.boolean._noise import Parts, Stats, doubt, energies, gathered, grants, improved, noise, shares
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.stage import Stage

HEAT = 0.4  # first temperature, over √(d Σ_d v_d), v the variances of the columns: about where roles part
COOLER, HOTTER = (
    0.15,
    1.5,
)  # times that, for a start: below, it remembers the rows that it began with, above it does not
COLDEST = 1e-3  # where no rows speak for or against a permission it may stay undecided
DECIDED = 0.01  # β nearer than this to 0 or 1
LEAN = 0.3  # by which first roles lean to a row, from ½
JITTER = 0.05  # and to chance
CONTRAST = 1.0  # first logits of q₁ and q₀ above and below that of the share of ones
LEAST_CONTRAST = 0.25  # of q₁ − q₀, below which roles have not parted yet, and the first guess stays
EXTREME = 0.02  # first share of ones, at least, and of zeros


class Annealing(Stage):
    """Passes at falling temperatures, for a working copy of the model."""

    name, most = "annealing", 2000

    def __init__(self, model: Any) -> None:
        self.model = model

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """Roles that lean to rows drawn at random; q₁ and q₀ about the share of ones."""
        model = self.model
        x, seen = model.cells(data, sample=True)
        w = np.ones(x.shape[0]) if data.w is None else data.w
        ones = np.asarray(w @ x, dtype=np.float64).ravel()
        count = np.full(x.shape[1], w.sum()) if seen is None else np.asarray(w @ seen, dtype=np.float64)
        mean = ones / np.maximum(count, np.finfo(float).tiny)
        k, d = model.n_components, x.shape[1]
        rows = rng.choice(len(w), k, replace=len(w) < k, p=w / w.sum())
        first = np.asarray(x[rows].toarray() if sp.issparse(x) else x[rows], dtype=np.float64)
        lean = 2.0 * first - 1.0 if seen is None else (2.0 * first - 1.0) * seen[rows]
        absent = 0.5 - LEAN * lean + JITTER * rng.uniform(-1.0, 1.0, size=(k, d))
        middle = logit(np.clip(ones.sum() / max(count.sum(), np.finfo(float).tiny), EXTREME, 1.0 - EXTREME))
        heat = model.temperature
        if heat == "auto":
            share = COOLER * (HOTTER / COOLER) ** rng.random()
            heat = max(2.0, share * HEAT * float(np.sqrt(d * (mean * (1.0 - mean)).sum())))
        return Parts(absent, float(expit(middle + CONTRAST)), float(expit(middle - CONTRAST)), float(heat))

    def local(self, U: Parts, b: Block) -> Local:
        """Probabilities of the sets at max(T, 1), and the statistics of rows weighted by them."""
        x, seen = self.model.cells(b)
        s = grants(U, self.model.sets, b.x.dtype)
        z, value = shares(energies(U, s, x, seen), max(U.temperature, 1.0))
        return Local(None, gathered(z, b, x), -b.sum(value))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Roles and noise at a lower temperature."""
        sets = self.model.sets
        U = U._replace(temperature=max(U.temperature * self.model.cooling, COLDEST))
        absent = improved(U, stats, sets, self.model.shape.weight)
        found = noise(absent, stats, sets)
        least = LEAST_CONTRAST if U.temperature > 1 else 0.0
        if found is None or not found[0] - found[1] > least:
            found = U.granted, U.stray
        return Parts(absent, *found, U.temperature)

    def penalty(self, U: Parts) -> float:
        """T (n/d) Σ KL(β ‖ ½)."""
        return U.temperature * self.model.shape.weight / U.absent.shape[1] * doubt(U.absent)

    def goal(self, U: Parts, first: float) -> bool:
        """Whether every role has or has not every permission."""
        undecided = np.minimum(U.absent, 1.0 - U.absent).max(initial=0.0) > DECIDED
        return U.temperature <= 1.0 and (not undecided or U.temperature <= COLDEST)

    def described(self, U: Any, data: Any) -> Described:
        """As those of the model."""
        return self.model.described(U, data)  # type: ignore[no-any-return]
