"""Steps of independent component analysis: which rotation of white rows has the least Gaussian components.

With E = mean of g(y) yᵀ,  ρ = mean of g′(y),  s = −sign(mean G(y) − E[G(ν)])  per component, and D antisymmetric,

    J(e^D W) ≈ J(W) + ⟨D, A⟩ + ½ Σ h_ij D_ij²      A = ½ (sE − (sE)ᵀ)      h_ij = ½ (d_i + d_j),  d = s (ρ − diag E)

bold     far from the solution the fixed point of FastICA, W ← polar(diag ρ − E) W; near it D = −H⁻¹A, H by L-BFGS from
         diag h over the last steps (Ablin, Cardoso & Gramfort 2018). The fixed point takes diag h alone, which is H for
         independent components; those of real data are not quite, and then it takes many times as many steps
safe     W ← polar(C) W,  c_i = (β e_i − E_i) where s_i > 0, (E_i + β′ e_i) where s_i < 0,  −β′ ≤ g′ ≤ β: the linear
         bound of a convex function, so that J never gets worse for log cosh and exp; y³ has no β, nor has a user's g
         that is steeper beyond 8 standard deviations: 3 E[y⁴], or the largest g′ within them, stands for it

One by one (deflation) only row j turns, in the space that the rows before it leave:
    bold     w ∝ ρ e_j − E_j         safe   as above         the rows after it follow by a reflection
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg.lapack import dgesdd, dgesv

from unmix.maths.arrays import Array

MEMORY = 7  # steps that L-BFGS remembers
LEAST_BEND = 0.01  # of h
LONGEST = 1.0  # row sum of |D|: a quasi-Newton step turns no component farther
FAR = 0.05  # 1 − |cos| of the turn by the fixed point: if it is more, that is the step
PERHAPS_FAR = 0.01  # of what `slopes` gives for that: if it is less, the turn is not far
TOO_FAR = 0.3  # the same: if it is more, L-BFGS learns nothing from the step
UNSURE = 100.0  # times shorter must a step be that is the last without one before it
NEARLY = 100.0  # times `tol`
TINY = 1e-300


class Memory(NamedTuple):
    """What L-BFGS knows: the last steps and what they changed in A; the last A and D."""

    steps: Annotated[np.ndarray, Array("c k k")]
    turns: Annotated[np.ndarray, Array("c k k")]
    slope: Annotated[np.ndarray, Array("e k k")]
    step: Annotated[np.ndarray, Array("e k k")]


class Events(NamedTuple):
    """What happened: directions without variance, components that were found one by one and did not converge."""

    lost: Annotated[int, Array(kind="i", low=0)]
    unconverged: Annotated[int, Array(kind="i", low=0)]


class Parts(NamedTuple):
    """y = rotation · whitening (x − mean).

    `measures` of each component, in the last pass: means of G − E[G(ν)], g′, g² and g y; `signs` are 0 where nothing is
    known yet. `active` is the component that is sought (one by one), or −1; `tries` counts its steps; all at once, the
    safe steps: the fixed point is not tried again where it once failed.
    """

    mean: Annotated[np.ndarray, Array("d")]
    whitening: Annotated[np.ndarray, Array("k d")]
    rotation: Annotated[np.ndarray, Array("k k")]
    total: Annotated[np.ndarray, Array(low=0.0)]  # variance of all columns
    signs: Annotated[np.ndarray, Array("k", low=-1.0, high=1.0)]
    measures: Annotated[np.ndarray, Array("4 k")]
    active: Annotated[int, Array(kind="i", low=-1, high="k-1")]
    tries: Annotated[int, Array(kind="i", low=0)]
    done: bool
    events: Events
    scratch: Memory


class Stats(NamedTuple):
    """Of the components in question: Σ w, Σ w g(y) yᵀ; in the columns of `sums` Σ w (G − E[G(ν)]), Σ w g′, Σ w g²."""

    n: float
    gram: Annotated[np.ndarray, Array("a k")]
    sums: Annotated[np.ndarray, Array("a 3")]


@lru_cache(maxsize=8)
def nothing_known(k: int) -> Memory:
    """An empty memory; always the same arrays, so that nobody looks at them anew."""
    none = np.zeros((0, k, k))
    return Memory(none, none, none, none)


def first_parts(
    mean: np.ndarray, whitening: np.ndarray, total: float, lost: int, turn: np.ndarray, one_by_one: bool
) -> Parts:
    """Parts of which only the rotation, the nearest to `turn` or that of Gram and Schmidt, is known."""
    k = len(turn)
    if one_by_one:
        Q, R = np.linalg.qr(turn.T)
        rotation = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T
    else:
        rotation = polar(turn)
    active, done = (0, k < 2) if one_by_one else (-1, False)
    return Parts(
        mean, whitening, rotation, np.array(total), np.zeros(k), np.zeros((4, k)), active, 0, done, Events(lost, 0),
        nothing_known(k),
    )  # fmt: skip


def seen(U: Parts, stats: Stats) -> Parts:
    """The parts with what a pass has told of them."""
    from unmix.kernels.ica_steps import told

    measures, signs, j = U.measures.copy(), U.signs.copy(), U.active
    one = slice(None) if j < 0 else slice(j, j + 1)
    told(stats.n, stats.gram[:, one], stats.sums, measures[:, one], signs[one])
    return U._replace(measures=measures, signs=signs)


def objective(stats: Stats) -> float:
    """J = −Σ |mean G − E[G(ν)]|."""
    return -float(np.abs(stats.sums[:, 0]).sum()) / stats.n


# -- all at once --


def bold(U: Parts, stats: Stats) -> tuple[Parts, float]:
    """The bold step, and 1 − |cos| of the angle by which it turns the component that it turns most, times `UNSURE`.

    Without a step before it the curvature is that of independent components: a short step may be too short a step. Nor
    is it the last one where the fixed point would turn them by more than `NEARLY` times as much.
    """
    new = slopes(stats)
    s, A, unit = new.signs, new.A, np.eye(len(U.rotation))
    if not U.tries and new.about > PERHAPS_FAR:
        Q = fixed_point(stats, new.measures[1])
        if (change := turn_of(Q)) > FAR:
            past = nothing_known(len(Q))
            if change < TOO_FAR:
                past = Memory(past.steps, past.turns, A[None], 0.5 * (Q - Q.T)[None])
            rotation = Q @ U.rotation
            return U._replace(rotation=rotation, signs=s, measures=new.measures, scratch=past), change
    past = remembered(U.scratch, A) if s.tobytes() == U.signs.tobytes() else nothing_known(len(unit))
    D, past = downhill(A, new.h, past)
    half = 0.5 * D
    Q = solved(unit - half, unit + half)  # Cayley: a rotation, to second order e^D
    change = max(turn_of(Q) * (1.0 if len(past.steps) else UNSURE), new.about / NEARLY)
    past = Memory(past.steps, past.turns, A[None], D[None])
    return U._replace(rotation=Q @ U.rotation, signs=s, measures=new.measures, scratch=past), change


class Slopes(NamedTuple):
    """What a pass has told of all components, A, h, and 1 − |cos| of the one that the fixed point turns most.

    The last is nearly so, where it turns them little.
    """

    measures: np.ndarray
    signs: np.ndarray
    A: np.ndarray
    h: np.ndarray
    about: float


def slopes(stats: Stats) -> Slopes:
    """What the statistics tell of the next step."""
    from unmix.kernels import ica_steps

    n, gram, sums = stats
    k = len(gram)
    measures, signs, A, h = np.empty((4, k)), np.empty(k), np.empty((k, k)), np.empty((k, k))
    about = ica_steps.slopes(n, gram, sums, LEAST_BEND, measures, signs, A, h)
    return Slopes(measures, signs, A, h, about)


def fixed_point(stats: Stats, slope: np.ndarray) -> np.ndarray:
    """FastICA's rotation of all components, without changes of sign."""
    from unmix.kernels import ica_steps

    C = np.empty_like(stats.gram)
    ica_steps.fixed_point(stats.n, stats.gram, slope, C)
    return polar(C)


def turn_of(Q: np.ndarray) -> float:
    """1 − |cos| of the component that a rotation turns most."""
    return max(1.0 - min(map(abs, Q.diagonal().tolist())), 0.0)


def safe(U: Parts, stats: Stats, bend: tuple[float, float | None]) -> Parts:
    """A step that never makes J worse where g′ has a bound."""
    new, E = seen(U, stats), stats.gram / stats.n
    C = uphill(E, np.eye(len(E)), np.diagonal(E), new.signs, bend)
    return new._replace(rotation=polar(C) @ U.rotation, scratch=nothing_known(len(E)), tries=U.tries + 1)


def uphill(
    E: np.ndarray, unit: np.ndarray, own: np.ndarray, s: np.ndarray, bend: tuple[float, float | None]
) -> np.ndarray:
    """Rows of C; where g′ has no bound (y³), three times E[y⁴] stands for it, which is none."""
    low, high = bend
    most = 3.0 * own if high is None else np.full(len(own), high)
    return np.where((s > 0)[:, None], most[:, None] * unit - E, E + low * unit)


def remembered(past: Memory, A: np.ndarray) -> Memory:
    """The memory with the step that led here, if it tells of a function that bends upwards."""
    if not len(past.step):
        return past
    step, turn = past.step, A - past.slope
    if np.vdot(step, turn) <= 1e-9 * np.vdot(step, step):
        return past
    if not len(past.steps):
        return past._replace(steps=step, turns=turn)
    steps, turns = past.steps[1 - MEMORY :], past.turns[1 - MEMORY :]
    return past._replace(steps=np.concatenate((steps, step)), turns=np.concatenate((turns, turn)))


def downhill(A: np.ndarray, h: np.ndarray, past: Memory) -> tuple[np.ndarray, Memory]:
    """D = −H⁻¹A, not too long, and the memory; where that leads uphill, D = −A/h and no memory."""
    from unmix.kernels.ica_steps import quasi_newton

    D = np.empty_like(A)
    known = quasi_newton(A, h, past.steps, past.turns, LONGEST, D)
    return D, past if known else nothing_known(len(A))


def polar(M: np.ndarray) -> np.ndarray:
    """The rotation nearest to a matrix."""
    left, _, right, failed = dgesdd(M)
    if failed:
        raise np.linalg.LinAlgError("the singular values of a matrix were not found")
    return np.asarray(left @ right)


def solved(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A⁻¹B by LAPACK itself: NumPy's way to it takes five times as long for the few components of a small fit."""
    _, _, x, failed = dgesv(A, B)
    if failed:
        raise np.linalg.LinAlgError("a matrix is singular")
    return np.asarray(x)


# -- one by one --


def turned(U: Parts, stats: Stats, bend: tuple[float, float | None] | None) -> tuple[Parts, float]:
    """The active component turned by the fixed point of FastICA, or safely where bounds are given; 1 − |cos|."""
    new, j = seen(U, stats), U.active
    E, unit = stats.gram / stats.n, np.eye(len(U.rotation))[j : j + 1]
    if bend is None:
        w = (new.measures[1, j] * unit - E)[0, j:]
    else:
        w = uphill(E, unit, E[:, j], new.signs[j : j + 1], bend)[0, j:]
    w = w / max(float(np.linalg.norm(w)), TINY) if w.any() else unit[0, j:]
    w = -w if w[0] < 0 else w
    mirror = w - unit[0, j:]
    length = float(mirror @ mirror)
    rest = U.rotation[j:]
    if length > 0:
        rest = rest - np.outer(mirror, (2.0 / length) * (mirror @ rest))  # its first row is w, in the old rows
    return new._replace(rotation=np.vstack([U.rotation[:j], rest])), 1.0 - float(w[0])


def on(U: Parts, converged: bool) -> Parts:
    """The next component's turn; the last one follows from the others."""
    k, j = len(U.rotation), U.active + 1
    events = U.events._replace(unconverged=U.events.unconverged + (not converged))
    return U._replace(active=min(j, k - 1), tries=0, done=j >= k - 1, events=events)
