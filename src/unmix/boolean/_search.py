"""Where roles of an exact cover are found: rounds on the reduced problem, which hold the candidates.

Where all maximal bicliques can be listed, they are the candidates: a round of local search, then a proof by integer
programming. Else candidates are generated: those of most weight through single pairs, where pairs weigh what the local
search learnt they are worth (those that it kept failing to cover), and by turns what the linear programme says.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.boolean._covering import Cover, cover_of, made, proved, reduced, relaxed
from unmix.boolean._problem import Problem, closed, grown, pose, strangers, unique, whole
from unmix.boolean._truth import packed
from unmix.engine.block import Block
from unmix.engine.config import get_config
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Stage
from unmix.maths.arrays import Array

LISTING = 3 * 10**9  # words that listing all bicliques may look at
SEARCHING = 10**9  # steps of one round of local search
SEEDS = 4000  # pairs through which candidates are generated in a round
OTHERS = 5  # users beside the first whose common permissions are a candidate
KEPT = 40_000  # generated candidates that go on to the next round
GROWING = 10**8  # pairs and roles beside each other, where roles are grown of pairs
PATIENCE = 8  # rounds without a better cover that are the end
PROGRAMME = 15_000  # candidates of a linear programme on generated ones


class Parts(NamedTuple):
    """U: the roles, and what is known of them."""

    roles: Annotated[np.ndarray, Array("k d", "b")]
    least: Annotated[float, Array(low=0.0)]  # what no cover costs less than
    price: Annotated[float, Array(low=0.0)]  # what this one costs
    events: Events


class Events(NamedTuple):
    """What the user should know about how they were found."""

    listed: bool  # all candidates were known
    idle: Annotated[int, Array(kind="i", low=0)]  # fixed roles that nobody can have


class Chosen(NamedTuple):
    """The candidates that make the best cover so far, and what the next round begins with."""

    roles: Annotated[np.ndarray, Array("c w", "i")]  # packed intents
    pool: Annotated[np.ndarray, Array("q w", "i")]  # generated candidates
    weight: Annotated[np.ndarray, Array("p", low=0.0)]  # of the pairs
    least: Annotated[float, Array(low=0.0)]
    round: Annotated[int, Array(kind="i", low=0)]
    idle: Annotated[int, Array(kind="i", low=0)]  # rounds without a better cover
    done: bool


class Held(NamedTuple):
    """The reduced problem and its candidates."""

    problem: Problem
    fixed: np.ndarray  # (k0, d)
    B: np.ndarray  # (K, w) candidates
    listed: bool  # they are all there are
    pointer: np.ndarray  # what is left of them covers `items[pointer[c]:pointer[c + 1]]`
    items: np.ndarray
    cost: np.ndarray
    left: np.ndarray  # their place among the candidates
    taken: np.ndarray  # candidates that every cover may as well have
    rows: int  # pairs that are left
    least: float
    idle: int
    until: float  # when time is over

    @property
    def cover(self) -> Cover:
        """The set cover that is left."""
        shape = len(self.left), self.rows
        return made(sp.csr_array((np.ones(len(self.items), np.int8), self.items, self.pointer), shape), self.cost)


class Covering(Stage):
    """Rounds of search for the cheapest exact cover."""

    name, over = "cover", "whole"

    def __init__(self, model: Any, shape: Shape) -> None:
        self.prices = tuple(float(p) for p in model.prices)
        self.seconds, self.limit, self.threshold = float(model.time_limit), int(model.max_candidates), model.threshold
        self.fixed, self.apart = model.fixed_roles(shape), model.pairs_apart(shape)
        self.owner, self.names = type(model).__name__, shape.names

    @property
    def unit(self) -> bool:
        """Whether the number of roles is all that counts."""
        return self.prices == (1.0, 0.0, 0.0)

    # ---------------------------------------------------------------- what is held

    def open(self, data: Block, rng: np.random.Generator) -> Held:
        """Reduce the problem, and list or generate candidates."""
        from unmix.kernels import bits

        until, d = time.monotonic() + self.seconds, data.x.shape[1]
        rows, fixed = packed(data, self.threshold, self.owner, self.names), self.fixed
        problem = pose(rows, data.w, d, fixed, self.apart)
        counts = np.ones(len(rows.ones)) if data.w is None else data.w
        used = bits.within(bits.pack(fixed), rows.may[counts > 0]).any(axis=1) if len(fixed) else np.zeros(0, bool)
        alone = strangers(problem)
        B, listed = self._candidates(problem, alone)
        A = bits.meet(B, problem.C)
        cost = self._costs(problem, A, B)
        cover = cover_of(problem, A, B, cost)
        useful = np.diff(cover.down.indptr) > 0
        B, cover = B[useful], made(cover.down[useful], cost[useful])
        left, taken = np.arange(len(B)), np.zeros(0, np.int64)
        if listed:
            cover, left, taken = reduced(cover)
        known = len(taken) + bool(cover.down.shape[1]) if listed and self.unit else 0
        least = self._least(problem, float(max(known, len(alone))), len(fixed))
        down = cover.down
        return Held(
            *(problem, fixed, B, listed, down.indptr, down.indices, cover.cost, left, taken, down.shape[1]),
            *(least, int((~used).sum()), until),
        )

    def _candidates(self, problem: Problem, alone: np.ndarray) -> tuple[np.ndarray, bool]:
        """All maximal bicliques, if there are not too many; else those of single users, permissions and pairs."""
        from unmix.kernels import bicliques, bits

        n, d = len(problem.R), len(problem.C)
        if not n:
            return np.zeros((0, problem.R.shape[1]), np.uint64), True
        size = 8 * (problem.R.shape[1] + problem.C.shape[1])
        limit = max(2, min(self.limit, int(get_config().budget // 8 // size)))
        if n < d:
            B, _, every = bicliques.listed(problem.C, problem.R, limit, LISTING)
        else:
            _, B, every = bicliques.listed(problem.R, problem.C, limit, LISTING)
        if every:
            return whole(problem, B)[1], True
        B = np.vstack([problem.R, closed(problem, problem.C)[1]])
        if len(alone) * len(problem.user) <= GROWING:
            users, permissions = grown(problem, alone)
            B = np.vstack([B, closed(problem, bits.pack(users))[1], whole(problem, bits.pack(permissions))[1]])
        return whole(problem, B[unique(B)[0]])[1], False

    def _costs(self, problem: Problem, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """What each candidate costs if all users who may have it do."""
        from unmix.kernels import bits

        role, member, grant = self.prices
        out = np.full(len(B), role)
        if member:
            out += member * (bits.unpack(A, len(problem.R)) @ problem.weight)
        if grant:
            out += grant * (bits.unpack(B, len(problem.C)) @ problem.copies.astype(float))
        return np.maximum(out, 1e-12)

    def _least(self, problem: Problem, roles: float, fixed: int) -> float:
        """A cover costs no less, if it has so many roles besides the fixed ones; all in it are in some role."""
        role, member, grant = self.prices
        return role * (roles + fixed) + member * float(problem.weight.sum()) + grant * float(problem.copies.sum())

    # ---------------------------------------------------------------- rounds

    def start(self, before: Any, data: Held, rng: np.random.Generator) -> Chosen:
        """The greedy cover."""
        from unmix.kernels import covering

        chosen = data.left[covering.greedy(*data.cover.arrays)] if data.rows else data.left[:0]
        roles = data.B[np.concatenate([data.taken, chosen]).astype(np.int64)].view(np.int64)
        first = Chosen(roles, roles[:0], np.ones(data.rows), data.least, 0, 0, not data.rows)
        return first._replace(done=first.done or self._proved(first, data))

    def _proved(self, U: Chosen, data: Held) -> bool:
        """Whether no cover has fewer roles."""
        return self.unit and self.price(U, data) <= U.least + 1e-6

    def price(self, U: Chosen, data: Held) -> float:
        """What a cover costs, the fixed roles included."""
        from unmix.kernels import bits

        B = np.ascontiguousarray(U.roles).view(np.uint64)
        own = self._costs(data.problem, bits.meet(B, data.problem.C), B).sum() if len(B) else 0.0
        return float(own) + self.prices[0] * len(data.fixed)

    def step(self, U: Chosen, data: Held, rng: np.random.Generator) -> tuple[Chosen, float]:
        """Search, then prove; or generate candidates and search."""
        now = self.price(U, data)
        if U.done or time.monotonic() > data.until:
            return U._replace(done=True), now
        new = (self._known if data.listed else self._generated)(U, data, rng)
        better = self.price(new, data) < now - 1e-9
        new = new if better else new._replace(roles=U.roles)
        idle = 0 if better else U.idle + 1
        over = time.monotonic() > data.until or idle >= PATIENCE or self._proved(new, data)
        return new._replace(round=U.round + 1, idle=idle, done=bool(new.done or over)), now

    def _known(self, U: Chosen, data: Held, rng: np.random.Generator) -> Chosen:
        """All candidates are known: local search, then integer programming."""
        from unmix.kernels import covering

        cover, first = data.cover, self._marked(U.roles, data.B[data.left])
        if not U.round:
            weight, state = U.weight.copy(), rng.integers(1, 1 << 62, 1).astype(np.uint64)
            best, least, done = covering.search(*cover.arrays, first, weight, state, SEARCHING // 4), U.least, False
        else:
            weight, done = U.weight, True
            best, part = proved(cover, first, data.until, self.unit)
            needed = self._least(data.problem, part + len(data.taken), len(data.fixed))
            least = max(U.least, needed) if self.unit else U.least
        roles = data.B[np.concatenate([data.taken, data.left[best]]).astype(np.int64)].view(np.int64)
        return U._replace(roles=roles, weight=weight, least=float(least), done=done)

    def _generated(self, U: Chosen, data: Held, rng: np.random.Generator) -> Chosen:
        """Candidates of most weight through single pairs, then local search among all."""
        from unmix.kernels import bits, covering

        problem = data.problem
        known = np.vstack([data.B, *(np.ascontiguousarray(a).view(np.uint64) for a in (U.pool, U.roles))])
        B = np.vstack([known, self._priced(U.weight, problem, rng)])
        B = B[unique(B)[0]]
        A = bits.meet(B, problem.C)
        cover = cover_of(problem, A, B, self._costs(problem, A, B))
        weight = np.maximum(np.rint(3 * U.weight), 1.0)  # whole numbers, so that sums of them are exact
        state = rng.integers(1, 1 << 62, 1).astype(np.uint64)
        best = covering.search(*cover.arrays, self._marked(U.roles, B), weight, state, SEARCHING)
        worth = (cover.down @ (weight / weight.mean())) / cover.cost
        if U.idle % 3 == 2:
            best, weight = self._programme(cover, best, worth, weight, data.until - time.monotonic())
        top = np.argsort(-worth, kind="stable")[:KEPT]
        roles = B[best].view(np.int64)
        return U._replace(
            roles=roles, pool=B[np.sort(top)].view(np.int64), weight=np.maximum(weight / weight.mean(), 1e-3)
        )

    def _programme(
        self, cover: Cover, best: np.ndarray, worth: np.ndarray, weight: np.ndarray, seconds: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What integer programming finds among the best candidates in a third of the time; the pairs' duals."""
        use = best.copy()
        use[np.argsort(-worth, kind="stable")[:PROGRAMME]] = True
        part = made(cover.down[use], cover.cost[use])
        told = relaxed(part, best[use], time.monotonic() + seconds / 3)
        if told is None:
            return best, weight
        found, _ = proved(part, best[use], time.monotonic() + seconds / 3, self.unit)
        out = np.zeros_like(best)
        out[np.flatnonzero(use)[found]] = True
        return out, told.dual / max(float(told.dual.mean()), 1e-12)

    def _priced(self, weight: np.ndarray, problem: Problem, rng: np.random.Generator) -> np.ndarray:
        """Candidates through pairs drawn by their weight, with weights that are shaken a little."""
        from unmix.kernels import bicliques

        m = len(weight)
        some = rng.choice(m, min(SEEDS, m), replace=False, p=weight / weight.sum())
        W = np.zeros((len(problem.R), len(problem.C)))
        W[problem.user, problem.column] = weight * rng.uniform(0.5, 1.5, m)
        u, p = problem.user[some], problem.column[some]
        half = len(some) // 2
        A, _ = bicliques.paths(u[:half], p[:half], W, problem.R, problem.C)
        B, _ = bicliques.paths(p[half:], u[half:], np.ascontiguousarray(W.T), problem.C, problem.R)
        some = rng.choice(m, SEEDS, p=weight / weight.sum())
        shared = crossings(problem, some, rng)
        return np.vstack([closed(problem, A)[1], whole(problem, B)[1], closed(problem, shared)[1]])

    def _marked(self, roles: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Which candidates are among these."""
        known = {row.tobytes() for row in np.ascontiguousarray(roles)}
        return np.array([row.tobytes() in known for row in B], bool)

    def goal(self, U: Chosen, first: float) -> bool:
        """Done when the cover is proved, time is over, or rounds find nothing better."""
        return U.done

    def described(self, U: Any, data: Held) -> Described:
        """Candidates over the distinct permissions."""
        return Described(Chosen, Any, Any, {"w": data.problem.R.shape[1], "p": data.rows})

    # ---------------------------------------------------------------- what is handed on

    def hand(self, U: Chosen, data: Held) -> Parts:
        """Roles over all permissions: the fixed ones, then those with most members first."""
        problem = data.problem
        B = np.ascontiguousarray(U.roles).view(np.uint64)
        B, members = trimmed(problem, B, self.unit)
        cells = problem.roles(B)
        order = np.lexsort([*cells.T[::-1], members]) if len(B) else np.zeros(0, int)
        roles = np.vstack([data.fixed, cells[order[::-1]]])
        role, member, grant = self.prices
        price = role * len(roles) + member * float(members.sum()) + grant * float(cells.sum())
        return Parts(roles, max(U.least, data.least), price, Events(data.listed, data.idle))


def crossings(problem: Problem, pairs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The user of each pair with a few others of its permission: what these have in common is often one true role."""
    from unmix.kernels import bits

    mine = [np.flatnonzero(row) for row in bits.unpack(problem.C, len(problem.R))]
    many = rng.integers(1, OTHERS + 1, len(pairs))
    row = np.repeat(np.arange(len(pairs)), many)
    drawn = [
        u[rng.integers(len(u), size=k)] for u, k in zip((mine[p] for p in problem.column[pairs]), many, strict=True)
    ]
    out = np.zeros((len(pairs), problem.C.shape[1]), np.uint64)
    bits.set_bits(out, np.arange(len(pairs)), problem.user[pairs])
    bits.set_bits(out, row, np.concatenate(drawn))
    return out


def trimmed(problem: Problem, B: np.ndarray, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """Roles less those that are needless, and how many users have each.

    A role keeps permissions that some member is known to need: all that its members have in common or, where `wide` is
    false, those that no other of their roles holds.
    """
    from unmix.kernels import bicliques, bits

    if not len(B):
        return B, np.zeros(0)
    d, need = len(problem.C), problem.N
    order = np.argsort(bits.popcount(B), kind="stable")
    z = bicliques.assigned(need, problem.R, B, order)
    useful = (z * problem.weight[:, None]).sum(axis=0) > 0
    B, z = B[useful], z[:, useful]
    cells, ones = bits.unpack(B, d), bits.unpack(need, d)
    if wide:
        cells = cells & (z.T.astype(np.float64) @ ones > 0)
    else:
        times = z.astype(np.int64) @ cells
        for k in np.argsort(-cells.sum(axis=1), kind="stable"):
            mine = np.flatnonzero(z[:, k])
            spare = cells[k] & ~((times[mine] < 2) & ones[mine]).any(axis=0)
            cells[k] &= ~spare
            times[mine] -= spare
    full = cells.any(axis=1)
    return bits.pack(cells[full]), z[:, full].T @ problem.weight
