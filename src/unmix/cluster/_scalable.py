"""k-means||: first centres for data of any size, by a few passes over all rows.

local    D_i = distance of row i to the nearest candidate so far;  φ = Σ w_i D_i²
         row i is drawn with probability min(1, l w_i D_i²/φ),  l = 2K:  if its rank u_i/(w_i D_i²) < l/φ
stats    φ, ranks and cells of the rows that may be drawn; the weight of the rows nearest to each candidate
update   the rows that were drawn become candidates
hand     the candidates, with their weights, are thinned out to K by k-means++

u_i is a function of the seed, the round and i alone, and φ is a sum of integers: so what is drawn does not depend on
how the rows are cut into blocks. φ of some rows is at most that of all, so the rows to be drawn are among those with
rank < l/φ of the rows so far: `combine` drops the others. After the rounds of drawing, one more pass weighs the
candidates.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.cluster._parts import Parts
from unmix.cluster.metrics import METRICS
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes, Stage
from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.distances import dense
from unmix.maths.seeding import plus_plus

DRAWING_ROUNDS = 5
CANDIDATES_PER_CLUSTER = 2.0  # that a round draws: l/K
PHI_STEPS = 1 << 44  # parts of a unit in which φ is counted
NEVER = 1e300  # rank of a row that is a candidate already


class Candidates(NamedTuple):
    """U of this stage: the candidates so far as centres, and what the random numbers depend on."""

    parts: Parts
    weight: Annotated[np.ndarray, Array("w")]  # of the rows nearest to each candidate of the last pass
    key: int
    number: Annotated[int, Array(kind="i", low=0, high=DRAWING_ROUNDS + 1)]  # of the round
    unit: Annotated[float, Array(low=POSITIVE)]  # of φ


class Drawn(NamedTuple):
    """What blocks hand back: φ in whole steps, rank and cells of the rows that may be drawn, weight per candidate."""

    phi: Annotated[int, Array(kind="i", low=0, high=1e300)]
    ranks: Annotated[np.ndarray, Array("c")]
    rows: Annotated[np.ndarray, Array("c e")]
    weight: Annotated[np.ndarray, Array("w")]


class KMeansParallel(Stage):
    """The rounds of k-means||, and the pass that weighs the candidates."""

    name, most = "k-means||", DRAWING_ROUNDS + 1

    def __init__(self, model: Any) -> None:
        self.model, self.n_clusters, self.metric = model, model.n_clusters, METRICS[model.metric]
        self.wanted = CANDIDATES_PER_CLUSTER * self.n_clusters  # l

    def sizes(self, shape: Shape) -> Sizes:
        """The sample of k-means."""
        return self.model.sizes(shape)  # type: ignore[no-any-return]

    def goal(self, U: Candidates, first: float) -> bool:
        """Every round is made."""
        return False

    def start(self, before: Parts | None, data: Block, rng: np.random.Generator) -> Candidates:
        """One candidate."""
        first = self.model.start(before, data, rng)
        unit = first.variance * first.centers.shape[1] or 1.0
        return Candidates(first, np.zeros(1), int(rng.integers(2**63)), 0, unit)

    def local(self, U: Candidates, b: Block) -> Local:
        """Draw from a block, or weigh its rows."""
        parts, metric = U.parts, self.metric
        z, sums = metric.nearest(parts, metric.enter(parts.frame, b._replace(z=None)))
        loss = metric.share * float(sums.V.sum())
        if U.number == DRAWING_ROUNDS:
            return Local(None, Drawn(0, np.empty(0), np.empty((0, parts.centers.shape[1])), sums.N), loss)
        share = z.upper**metric.power / U.unit * (1.0 if b.w is None else b.w)
        phi = counted(share)
        uniform = numbers(U.key, U.number, b.start, len(share))
        ranks = np.where(share > 0, uniform / np.where(share > 0, share, 1.0), NEVER)
        index = np.flatnonzero(self._drawn(ranks, phi))
        entered = metric.filled(parts.frame, b)
        x = dense(entered.x[index]).astype(np.float64)
        if entered.observed is not None:
            x = np.where(entered.observed[index], x, parts.shift)
        return Local(None, Drawn(phi, ranks[index], x, sums.N), loss)

    def combine(self, a: Drawn, b: Drawn) -> Drawn:
        """The rows of both that may still be drawn, φ being larger now."""
        phi = a.phi + b.phi
        ranks, rows = np.concatenate([a.ranks, b.ranks]), np.concatenate([a.rows, b.rows])
        kept = self._drawn(ranks, phi)
        return Drawn(phi, ranks[kept], rows[kept], a.weight + b.weight)

    def update(self, U: Candidates, stats: Drawn) -> Candidates:
        """The rows drawn become candidates."""
        centers = np.concatenate([U.parts.centers, self.metric.project(stats.rows)])
        return U._replace(parts=self.metric.at(U.parts, centers), weight=stats.weight, number=U.number + 1)

    def described(self, U: Any, data: Any) -> Described:
        """As many centres as there are candidates."""
        return Described(Candidates, Drawn, Any, self.metric.names(self.model.shape.d))

    def hand(self, U: Candidates, data: Any) -> Parts:
        """K of the candidates, by k-means++."""
        parts, metric = U.parts, self.metric
        scale = parts.variance ** (-1 / metric.power) if parts.variance > 0 else 1.0
        scaled = ((parts.centers - parts.shift) * scale).astype(np.float32)
        rng = stream(U.key, DRAWING_ROUNDS)  # random numbers that no row has used
        weight = U.weight if len(U.weight) == len(scaled) else np.ones(len(scaled))  # stopped before they were weighed
        return metric.at(parts, parts.centers[plus_plus(scaled, None, weight, self.n_clusters, rng, metric.pairs)])

    def _drawn(self, ranks: np.ndarray, phi: int) -> np.ndarray:
        return (ranks < NEVER) & (ranks * (phi / PHI_STEPS) < self.wanted)


def counted(share: np.ndarray) -> int:
    """Σ in whole steps, in any order; beyond 64 bits if need be."""
    whole = np.floor(np.minimum(share, float(PHI_STEPS)))
    rest = ((share - whole).clip(0, 1) * PHI_STEPS).astype(np.int64)
    return int(whole.astype(np.int64).sum()) * PHI_STEPS + int(rest.sum())


def stream(key: int, number: int, skip: int = 0) -> np.random.Generator:
    """The random numbers of a round, four at a time from 4 · skip on."""
    bits = np.random.Philox(key=key + (number << 64))
    bits.advance(skip)
    return np.random.Generator(bits)


def numbers(key: int, number: int, start: int, n: int) -> np.ndarray:
    """The random numbers of n rows, from row `start` on."""
    return stream(key, number, start // 4).random(start % 4 + n)[start % 4 :]
