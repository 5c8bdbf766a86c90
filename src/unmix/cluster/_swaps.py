"""Where medoids are found: rounds on the matrix of all distances, or on those of samples of the rows.

*FasterPAM* (Schubert & Rousseeuw 2021) looks at one row after another and swaps it with the medoid for
which it lowers Σ w D most, if it does; it ends when no row helps. *Voronoi iteration* assigns rows, then takes from
each cluster the row with the least Σ w D within it; it is cheaper and ends sooner, in worse optima. A round looks at
every row once.

Distances are held in single precision (half the traffic). Equal rows are merged, and looked at in an order of their
own: the fit does not depend on the order of the rows. With given first medoids it is the order of X (of equal rows the
first counts), as in FasterPAM.

Where the matrix exceeds the memory budget, a round finds the medoids of a sample that holds the best medoids so far;
all rows decide which are better (as CLARA, Kaufman & Rousseeuw 1990). One more round confirms the last.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.cluster._distances import Distance, Frame, check_symmetric, find, negative, refuse_negative
from unmix.engine.block import Block
from unmix.engine.config import get_config
from unmix.engine.described import Described
from unmix.engine.sample import distinct
from unmix.engine.stage import Stage
from unmix.maths.arrays import Array
from unmix.maths.seeding import far_apart

SAMPLES, SAMPLE_ROWS = 5, 4096  # samples where the matrix does not fit, and how many rows each has if it may
UNKNOWN = float(np.finfo(np.float64).max)  # a loss that was not yet seen
UNWEIGHTED = "init names rows of weight 0 or without an observed cell: give rows that count"


class Parts(NamedTuple):
    """U: the medoids, and what their distances need."""

    # (K, d); 0 where a cell was not observed; (K, 0) for a precomputed matrix
    centers: Annotated[np.ndarray, Array("k c")]
    seen: Annotated[np.ndarray, Array("k c", "b")] | None  # which cells were observed
    medoids: Annotated[np.ndarray, Array("k", "i", -1, "n-1")]  # rows of a precomputed matrix, else −1
    frame: Frame
    events: Events


class Events(NamedTuple):
    """What the user should know about how they were found."""

    sampled: int  # rows of a sample, 0 where all were used
    distinct: int  # different rows, where those were too few


class Held(NamedTuple):
    """Different rows that count, and their distances."""

    rows: np.ndarray  # (n, d), or the numbers (n,) of rows of a precomputed matrix
    seen: np.ndarray | None
    w: np.ndarray
    first: np.ndarray | None  # given medoids among them
    points: np.ndarray  # what is compared in place of the rows
    frame: Frame
    unit: float  # by which distances of points are larger than those of rows
    D: np.ndarray | None  # flat; None where it does not fit
    scale: float  # of a weighted sum over D, to the mean distance of rows
    sample: int  # rows of a sample where D does not fit, else 0


class Near(NamedTuple):
    """The nearest medoid of each row and the next, and their distances: what the next round would find out again."""

    near: Annotated[np.ndarray, Array("h", "i", 0, "k-1")]
    next: Annotated[np.ndarray, Array("h", "i", 0, "k-1")]
    first: Annotated[np.ndarray, Array("h")]
    second: Annotated[np.ndarray, Array("h", "x")]


class Chosen(NamedTuple):
    """Medoids among the held rows."""

    medoids: Annotated[np.ndarray, Array("k", "i", 0, "h-1")]
    # rows looked at since the last swap; where samples are drawn, how many were
    looked: Annotated[int, Array(kind="i", low=0)]
    done: bool
    loss: float
    sample: int  # rows of a sample, 0 where all rows were held
    scratch: Near | None = None


class Swaps(Stage):
    """Rounds of swaps, or of Voronoi iteration, on all distances."""

    name, over = "swaps", "whole"

    def __init__(self, model: Any) -> None:
        self.K, self.init, self.rounds = model.n_clusters, model.init, model.max_iter
        self.distance = Distance(model.metric, model.metric_params)
        self.fast = model.method == "fasterpam" and model.n_clusters > 1

    # ---------------------------------------------------------------- what is held

    def open(self, data: Block, rng: np.random.Generator) -> Held:
        """Equal rows merged, in the order in which they are looked at, and all distances if they fit."""
        if self.distance.metric == "precomputed":
            return self._given(data, rng)
        if data.observed is not None:
            self.distance.refuse_missing()
        whole = distinct(data)
        if whole.observed is not None:
            whole = picked(whole, np.flatnonzero(whole.observed.any(axis=1)))
        n, most, given = len(whole.x), int(np.sqrt(get_config().budget / 4)), not isinstance(self.init, str)
        order = rng.permutation(n)
        if given and n <= most:  # as the rows stand in X, equal ones where the first does
            place, at = np.unique(find(whole.x, whole.observed, data.x, data.observed), return_index=True)
            order = place[np.argsort(at)]
            order = order[order >= 0]  # −1: of weight 0, or without an observed cell
        whole = picked(whole, order)
        rows, seen = whole.x, whole.observed
        w = np.ones(n) if whole.w is None else whole.w
        first = None
        if given:
            asked = np.asarray(self.init)
            first = find(rows, seen, data.x[asked], None if data.observed is None else data.observed[asked])
            if (first < 0).any():
                raise ValueError(UNWEIGHTED)
        frame, points, unit = self.distance.frame(rows, seen, w)
        sample = min(most, max(SAMPLE_ROWS, 20 * self.K), n)
        held = Held(rows, seen, w, first, points, frame, unit, None, 1.0, sample)
        if n > most:
            self._check_samples(most)
            return held
        D, scale = self._matrix(held, slice(None)) if n > self.K else (np.zeros((0, 0), np.float32), 1.0)
        return held._replace(D=D.reshape(-1), scale=scale / (unit * float(w.sum())), sample=0)

    def _matrix(self, held: Held, rows: Any) -> tuple[np.ndarray, float]:
        scaled = held.frame._replace(far=held.frame.far * held.unit)
        return self.distance.matrix(scaled, held.points[rows], None if held.seen is None else held.seen[rows])

    def _given(self, data: Block, rng: np.random.Generator) -> Held:
        """The matrix that the user gives, as it is; a row of weight 0 does not count."""
        D, w = data.x, np.ones(len(data.x)) if data.w is None else data.w
        check_symmetric(D, "metric", rng)
        rows, first = np.flatnonzero(w > 0), None if isinstance(self.init, str) else np.asarray(self.init)
        if len(rows) < len(D):
            need, budget = D.itemsize * len(rows) ** 2, get_config().budget
            if need > budget:
                raise MemoryError(
                    f"the distances of the rows of positive weight take {need} bytes, but the memory budget is "
                    f"{budget}: drop the other rows first, or raise unmix.config(memory_budget=…)"
                )
            D = D[np.ix_(rows, rows)]
            if first is not None and not np.isin(first, rows).all():
                raise ValueError(UNWEIGHTED)
            first = None if first is None else np.searchsorted(rows, first)
        if pair := negative(D):
            refuse_negative(D[pair], *rows[list(pair)])
        return Held(rows, None, w[rows], first, rows, Frame(0.0, None), 1.0, D.reshape(-1), 1.0 / float(w.sum()), 0)

    def _check_samples(self, most: int) -> None:
        """Refuse samples that are too small for this many medoids."""
        if most < 2 * self.K:
            raise MemoryError(
                f"n_clusters={self.K} needs samples of at least {2 * self.K} rows, whose distances take "
                f"{16 * self.K**2} bytes, but the memory budget is {get_config().budget}: raise "
                "unmix.config(memory_budget=…)"
            )

    # ---------------------------------------------------------------- rounds

    def start(self, before: Any, data: Held, rng: np.random.Generator) -> Chosen:
        """First medoids."""
        n = len(data.w)
        if n <= self.K:  # all rows, some more than once
            return Chosen(np.arange(self.K) % n, 0, True, 0.0, data.sample)
        if data.first is not None:
            first = data.first.astype(np.int64)
        elif data.D is not None:
            first = self._first(data.D, data.w, rng)
        else:
            some = rng.choice(n, data.sample, replace=False)
            first = some[self._first(self._matrix(data, some)[0].reshape(-1), data.w[some], rng)]
        return Chosen(first, 0, False, self._loss(data, first) if data.sample else UNKNOWN, data.sample)

    def _first(self, D: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.init == "build":
            from unmix.kernels import medoids as kernels

            return np.asarray(kernels.build(D, w, self.K))
        if self.init == "random":
            return rng.choice(len(w), self.K, replace=False, p=w / w.sum())
        matrix = D.reshape(len(w), -1)
        return far_apart(w, self.K, rng, lambda some: matrix[some].T.astype(np.float64), distinct=True)

    def step(self, U: Chosen, data: Held, rng: np.random.Generator) -> tuple[Chosen, float]:
        """Look at every row once, or at a sample."""
        if len(data.w) <= self.K:
            return U, 0.0
        if data.D is None:
            return self._sampled(U, data, rng)
        new, before = self._round(U, data.D, data.w)
        return new, before * data.scale

    def _round(self, U: Chosen, D: np.ndarray, w: np.ndarray) -> tuple[Chosen, float]:
        """The next medoids, and the loss of those before."""
        from unmix.kernels import medoids as kernels

        index, n = U.medoids.copy(), len(w)
        if not self.fast:
            loss, changed = kernels.alternate(D, w, index)
            return U._replace(medoids=index, done=not changed, loss=loss), loss
        if U.scratch is None:
            near = Near(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, D.dtype), np.zeros(n, D.dtype))
            before = kernels.nearest_two(D, w, index, *near)
        else:
            near, before = Near(*(v.copy() for v in U.scratch)), U.loss
        loss, looked = kernels.fasterpam(D, w, index, *near, U.looked)
        return U._replace(medoids=index, looked=looked, done=looked >= n, loss=loss, scratch=near), before

    def _sampled(self, U: Chosen, data: Held, rng: np.random.Generator) -> tuple[Chosen, float]:
        """The medoids of a sample, if they are better for all rows than those before; the end after the last."""
        if U.looked == SAMPLES:
            return U._replace(done=True), U.loss
        others = np.setdiff1d(np.arange(len(data.w)), U.medoids)
        some = np.concatenate([U.medoids, rng.choice(others, data.sample - self.K, replace=False)])
        D, w = self._matrix(data, some)[0].reshape(-1), data.w[some]
        found = Chosen(np.arange(self.K), 0, False, UNKNOWN, 0)
        for _ in range(self.rounds):
            found, _ = self._round(found, D, w)
            if found.done:
                break
        loss = self._loss(data, some[found.medoids])
        index, least = (some[found.medoids], loss) if loss < U.loss else (U.medoids, U.loss)
        return U._replace(medoids=index, looked=U.looked + 1, loss=least), U.loss

    def _loss(self, data: Held, index: np.ndarray) -> float:
        """Mean distance of all rows to the nearest medoid."""
        rows, seen, total = data.rows, data.seen, 0.0
        known, step = None if seen is None else seen[index], max(1, (1 << 20) // (rows.shape[1] + self.K))
        for a in range(0, len(rows), step):
            part = slice(a, a + step)
            D = self.distance.between(data.frame, rows[part], None if seen is None else seen[part], rows[index], known)
            total += float(data.w[part] @ D.min(axis=1))
        return total / float(data.w.sum())

    def goal(self, U: Chosen, first: float) -> bool:
        """Done when every row was looked at since the last swap, or enough samples were drawn."""
        return U.done

    def described(self, U: Any, data: Held) -> Described:
        """Medoids among the held rows."""
        if type(U) is Chosen and type(U.sample) is int and U.sample != data.sample:
            raise ValueError(
                f"it has medoids of {f'samples of {U.sample}' if U.sample else 'all'} rows, but the memory budget of "
                f"this fit allows {f'samples of {data.sample}' if data.sample else 'all'}: set "
                "unmix.config(memory_budget=…) to that of the fit that was broken off"
            )
        return Described(Chosen, Any, Any, {"k": self.K, "h": len(data.w)})

    def hand(self, U: Chosen, data: Held) -> Parts:
        """The medoids as rows."""
        n = len(data.w)
        events = Events(data.sample, n if n <= self.K else 0)
        return Parts(*self._rows(U.medoids, data), data.frame, events)

    def _rows(self, index: np.ndarray, data: Held) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        if data.rows.ndim == 1:
            return np.zeros((self.K, 0)), None, data.rows[index]
        seen = None if data.seen is None else data.seen[index]
        return data.rows[index].astype(np.float64), seen, np.full(self.K, -1)


def picked(b: Block, index: np.ndarray) -> Block:
    """Some rows of a block, in this order."""
    return Block(
        b.x[index],
        None if b.w is None else b.w[index],
        None,
        None if b.observed is None else b.observed[index],
    )
