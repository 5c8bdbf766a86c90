"""Roles chosen one after another from candidates:  of those that are left, the one that explains most.

local    z_ij = whether role j, after those before it, gains row i anything:  v_i · u_j > 0, where
         v_id = w⁺ for a 1, −w⁻ for a 0, 0 for a cell that is unknown or that roles before have covered
         loss_i = w⁺ · ones that no role covers + w⁻ · zeros that one does
stats    G_c = Σ_i max(0, v_i · c)                                             for each candidate c
update   the next role is the candidate of the largest G

So k roles take k passes; the roles of a row are chosen in their order, in passes as for new rows.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from unmix.boolean._base import BooleanModel, known
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array

PIECE = 1 << 22  # rows × candidates that are looked at together
ROUNDING = 1e-9  # of gains, within which the first candidate is taken


class Candidates(NamedTuple):
    """Roles that may be chosen, 0.0 or 1.0."""

    sets: Annotated[np.ndarray, Array("c d", low=0.0, high=1.0)]


class Stats(NamedTuple):
    """What each candidate would gain."""

    gains: Annotated[np.ndarray, Array("c")]


class Parts(NamedTuple):
    """U: the roles, those not chosen yet empty, how many are chosen, and the candidates."""

    roles: Annotated[np.ndarray, Array("k d", low=0.0, high=1.0)]
    chosen: Annotated[int, Array(kind="i", low=0, high="k")]
    candidates: Annotated[np.ndarray, Array("c d", low=0.0, high=1.0)]


class GreedyRoles(BooleanModel):
    """Base of models that choose roles from candidates: a subclass has a first stage that gives these, and `worth`."""

    name = "choosing"
    exempt: ClassVar[dict[str, str]] = {
        "online": "roles are chosen one after another, each by a pass over all rows: a batch cannot change them"
    }

    def worth(self) -> tuple[float, float]:
        """w⁺ and w⁻: what a 1 that is covered is worth, and what a 0 that is covered costs."""
        raise NotImplementedError

    @property
    def most(self) -> int:  # type: ignore[override]
        """A pass for each role."""
        return int(self.n_components)

    def start(self, before: Candidates, data: Block, rng: np.random.Generator) -> Parts:
        """No role yet."""
        return Parts(np.zeros((self.n_components, data.x.shape[1])), 0, before.sets)

    def local(self, U: Parts, b: Block) -> Local:
        """Assignments of roles that are chosen, and what each candidate would gain."""
        (ones, zeros), (plus, minus) = self._sides(b), (b.x.dtype.type(v) for v in self.worth())
        z, covered = self._assigned(U, ones, zeros)
        value = np.where(covered, 0, plus * ones - minus * zeros).astype(b.x.dtype)
        gains = np.zeros(len(U.candidates))
        w = np.ones(len(value)) if b.w is None else b.w
        pieces = max(1, -(-len(value) * len(U.candidates) // PIECE))
        for piece in np.array_split(np.arange(len(U.candidates)), pieces):
            gains[piece] = w @ np.maximum(value @ U.candidates[piece].T, 0.0).astype(np.float64)
        loss = np.where(covered, minus * zeros, plus * ones).sum(axis=1, dtype=np.float64)
        return Local(z if b.closing else None, Stats(gains), b.sum(loss))

    def _sides(self, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Cells that are known to be 1, and to be 0."""
        x, seen = self.cells(b)
        return x, known(x, seen)

    def _assigned(self, U: Parts, ones: np.ndarray, zeros: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which roles each row has, and which of its cells these cover."""
        plus, minus = self.worth()
        value = (plus * ones - minus * zeros).astype(ones.dtype)
        covered = np.zeros(ones.shape, dtype=bool)
        z = np.zeros((len(ones), len(U.roles)), dtype=bool)
        for j in range(U.chosen):
            role = U.roles[j] > 0.5
            z[:, j] = np.where(covered, 0, value)[:, role].sum(axis=1) > 0
            covered |= z[:, j, None] & role
        return z, covered

    def update(self, U: Parts, stats: Stats) -> Parts:
        """One role more, if one gains anything."""
        gains = stats.gains
        if U.chosen == len(U.roles) or not len(gains) or not gains.max() > 0:
            return U
        best = int(np.flatnonzero(gains >= (1.0 - ROUNDING) * gains.max())[0])
        roles = np.array(U.roles)
        roles[U.chosen] = U.candidates[best]
        return Parts(roles, U.chosen + 1, U.candidates)

    def hand(self, U: Parts, data: Any) -> Parts:
        """The roles without the candidates."""
        return U._replace(candidates=U.candidates[:0].copy())

    def described(self, U: Any, data: Any) -> Described:
        """Roles, candidates and what these gain."""
        return Described(Parts, Stats, Any, {"k": self.n_components})

    def notes(self, U: Parts) -> list[str]:
        """Roles that nothing is left for."""
        left = len(U.roles) - U.chosen
        return [f"{left} of {len(U.roles)} roles are empty: no candidate gains anything more, so ask for fewer"] * (
            left > 0
        )

    def publish(self, fit: Fit) -> None:
        """Set roles_ and assignments_."""
        super().publish(fit)
        self.roles_ = fit.U.roles > 0.5

    def roles_of(self, U: Parts) -> np.ndarray:
        """The roles."""
        return np.asarray(U.roles)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """1 for each role of a row, else 0."""
        return self._assigned(U, *self._sides(b))[0].astype(b.x.dtype)
