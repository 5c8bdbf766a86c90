"""The cheapest choice of candidates that covers every pair: set cover, reduced, searched, bounded and proved."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse.csgraph import connected_components

from unmix.boolean._problem import Problem

ROUNDING = 1e-6  # of what HiGHS computes
REDUCING = 2 * 10**9  # comparisons that a reduction may cost
FEW = 3_000_000  # entries of a linear programme that is worth solving
MASTER = 20_000  # sets that it is given at first
ASKED = 40  # how often it is given more


class Cover(NamedTuple):
    """Elements and sets: `down` holds the elements of each set, `along` the sets of each element, as CSR patterns."""

    down: Any
    along: Any
    cost: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the kernels take."""
        return self.down.indptr, self.down.indices, self.along.indptr, self.along.indices, self.cost


class Bound(NamedTuple):
    """What a linear programme says: no cover costs less, and by how much each set makes one dearer."""

    least: float
    dual: np.ndarray
    reduced: np.ndarray


def cover_of(problem: Problem, A: np.ndarray, B: np.ndarray, cost: np.ndarray) -> Cover:
    """Which pairs each candidate covers."""
    from unmix.kernels import bicliques

    pointer = np.cumsum(bicliques.sizes(A, B, problem.first, problem.column))
    items = bicliques.covered(A, B, problem.first, problem.column, pointer)
    return made(sp.csr_array((np.ones(len(items), np.int8), items, pointer), (len(A), len(problem.user))), cost)


def made(down: Any, cost: np.ndarray) -> Cover:
    """A cover from the elements of each set."""
    along = down.T.tocsr()
    for a in (down, along):
        a.sort_indices()
        a.indptr = a.indptr.astype(np.int64)
        a.indices = a.indices.astype(np.int64)
    return Cover(down, along, cost.astype(np.float64))


def reduced(cover: Cover) -> tuple[Cover, np.ndarray, np.ndarray]:
    """A smaller cover with the same answer: it, which sets are left in it, and which are chosen already.

    An element is dropped whose sets include all sets of another, a set that another covers at no higher cost, and a set
    that alone holds an element is chosen, until nothing changes.
    """
    from unmix.kernels import covering

    left, taken = np.arange(len(cover.cost)), np.zeros(0, np.int64)
    for _ in range(20):
        down, cost = cover.down, cover.cost
        before = down.shape
        ptr = cover.arrays[:4]
        kept = ~covering.contained(ptr[2], ptr[3], ptr[0], ptr[1], cost, True, REDUCING)
        cover = made(down[:, kept], cost)
        ptr = cover.arrays[:4]
        useful = np.diff(ptr[0]) > 0
        useful &= ~covering.contained(ptr[0], ptr[1], ptr[2], ptr[3], cost, False, REDUCING)
        cover, left = made(cover.down[useful], cost[useful]), left[useful]
        alone = np.unique(cover.along.indices[cover.along.indptr[:-1][np.diff(cover.along.indptr) == 1]])
        if len(alone):
            taken = np.concatenate([taken, left[alone]])
            others = np.ones(len(left), bool)
            others[alone] = False
            covered = np.zeros(cover.down.shape[1], bool)
            covered[cover.down[alone].indices] = True
            cover, left = made(cover.down[others][:, ~covered], cover.cost[others]), left[others]
        if cover.down.shape == before:
            break
    return cover, left, taken


def matrix(pattern: Any) -> Any:
    """A pattern as SciPy's solvers take it."""
    index = pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)
    return sp.csr_array((np.ones(pattern.nnz), *index), pattern.shape)


def relaxed(cover: Cover, known: np.ndarray, until: float) -> Bound | None:
    """The linear programme: its optimum, duals and reduced costs; None where it is too large or takes too long.

    Of many sets it is given some, those of the cover that is known among them, and more for which its duals ask. Where
    time is over before they ask for none, duals are made so small that no set asks: their sum is a bound, too.
    """
    sizes, told = np.diff(cover.down.indptr), None
    use = known.copy()
    use[np.argsort(-sizes / cover.cost, kind="stable")[:MASTER]] = True
    for _ in range(ASKED):
        left = until - time.monotonic()
        A = matrix(cover.along[:, use])
        if left <= 0 or A.nnz > FEW:
            return told
        limits = {"A_ub": -A, "b_ub": -np.ones(A.shape[0]), "bounds": (0, None)}
        res = linprog(cover.cost[use], **limits, method="highs", options={"time_limit": left})
        if res.status != 0:
            return told
        dual = np.maximum(-res.ineqlin.marginals, 0.0)
        reduced = cover.cost - cover.down @ dual
        wanted = np.flatnonzero(reduced < -ROUNDING)
        safe = dual / max(1.0, float((1.0 - reduced / cover.cost).max()))
        if told is None or safe.sum() > told.least:
            told = Bound(float(safe.sum()), safe, cover.cost - cover.down @ safe)
        if not len(wanted):
            return told
        use[wanted[np.argsort(reduced[wanted], kind="stable")[: MASTER // 2]]] = True
    return told


def proved(cover: Cover, chosen: np.ndarray, until: float, unit: bool) -> tuple[np.ndarray, float]:
    """The cheapest cover found until then, beginning with one that is known, and what none is cheaper than."""
    graph = sp.block_array([[None, matrix(cover.down)], [matrix(cover.along), None]])
    count, label = connected_components(graph, directed=False)
    sets, rows = label[: len(cover.cost)], label[len(cover.cost) :]
    out, total = chosen.copy(), 0.0
    sizes = np.bincount(rows, minlength=count)
    for c in np.argsort(sizes, kind="stable"):
        if not sizes[c]:
            continue
        mine, its = np.flatnonzero(sets == c), np.flatnonzero(rows == c)
        part = made(cover.down[mine][:, its], cover.cost[mine])
        now = time.monotonic()
        end = until if sizes[c] == sizes.max() else now + (until - now) / 4
        best, least = _part(part, chosen[mine], end, unit)
        out[mine] = best
        total += least
    return out, total


def _part(part: Cover, known: np.ndarray, until: float, unit: bool) -> tuple[np.ndarray, float]:
    """One connected part: HiGHS is asked for a cover cheaper than the one that is known."""
    worth, step = float(part.cost[known].sum()), 1.0 if unit else 1e-6 * float(part.cost.sum())
    if unit and worth <= 1:
        return known, worth
    first = relaxed(part, known, until)
    if first is None:
        return known, float(part.cost.min())
    least = np.ceil(first.least - ROUNDING) if unit else first.least
    if least > worth - step + ROUNDING:
        return known, worth
    use = np.flatnonzero(first.reduced <= worth - step - first.least + ROUNDING)  # others are in no cheaper cover
    A = matrix(part.along[:, use])
    if not len(use):
        return known, worth
    res = milp(
        part.cost[use],
        integrality=np.ones(len(use)),
        bounds=(0, 1),
        constraints=[
            LinearConstraint(A, lb=1.0),
            LinearConstraint(part.cost[use][None], ub=worth - step + ROUNDING),
        ],
        options={"time_limit": max(until - time.monotonic(), 0.1), "mip_rel_gap": 0.0},
    )
    if res.status == 2:  # there is none
        return known, worth
    if res.mip_dual_bound is not None and np.isfinite(res.mip_dual_bound):
        bound = float(res.mip_dual_bound)
        least = max(least, np.ceil(bound - ROUNDING) if unit else bound)
    if res.x is None:
        return known, float(min(least, worth))
    found = np.zeros(len(known), bool)
    found[use[res.x > 0.5]] = True
    now = float(part.cost[found].sum())
    if unit and res.status == 0:
        least = now
    return (found, float(min(least, now))) if now < worth else (known, float(min(least, worth)))
