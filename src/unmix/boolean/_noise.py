"""Rows whose cells come from their roles, or from noise:  the energies of sets of roles, and the next parts.

With s_Ld = 1 − β_Ld the probability that the set L grants d, a cell is 1 with the probability

    q₁ = ε r + 1 − ε    where it is granted            q₀ = ε r    where it is not

local    ℓ_iL = Σ_d log p(x_id | q₀) + s_Ld (c₁ x_id + c₀ (1 − x_id)),    c₁ = log q₁/q₀,  c₀ = log (1−q₁)/(1−q₀)
         γ_iL ∝ exp(ℓ_iL / T)            loss_i = −T log mean_L exp(ℓ_iL / T)            [over the known cells]
stats    A_Ld = Σ_i γ_iL x_id            N_L = Σ_i γ_iL            less, for each d, what did not know the cell
update   Δ_kd = Σ_{L ∋ k} β_{L∖k,d} (c₁ A_Ld + c₀ B_Ld),    B = N − A:  what the rows say for u_kd = 1
         β_kd = 1/(1 + exp(Δ_kd d/(n T))),  role after role;  as T → 0 it is 0 or 1
         q₁, q₀ = the shares of ones among granted cells and among others, Σ s A / Σ s (A + B), Σ β A / Σ β (A + B)

Each step lowers F = Σ_i loss_i + T (n/d) Σ_kd KL(β_kd ‖ ½), at any T, and so does a lower T.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import entr, expit

from unmix.boolean._sets import products
from unmix.engine.block import Block
from unmix.maths.arrays import Array

FLOOR = 1e-6  # of the probability of either value of a cell, and of its complement
SURE = 1e-9  # share of the rows by which roles must gain from a change


class Parts(NamedTuple):
    """U: how sure it is that a role does not have a permission, and how often cells are 1."""

    absent: Annotated[np.ndarray, Array("k d", low=0.0, high=1.0)]  # β
    granted: Annotated[float, Array(low=0.0, high=1.0)]  # q₁
    stray: Annotated[float, Array(low=0.0, high=1.0)]  # q₀
    temperature: Annotated[float, Array(low=0.0)]  # of β; 0 where roles are Boolean

    @property
    def noise_rate(self) -> float:
        """ε."""
        return float(min(max(1.0 - (self.granted - self.stray), 0.0), 1.0))

    @property
    def noise_density(self) -> float:
        """r; a half where there is no noise."""
        rate = self.noise_rate
        return float(min(max(self.stray / rate, 0.0), 1.0)) if rate > 0 else 0.5

    @property
    def weights(self) -> tuple[float, float]:
        """c₁ and c₀: what a 1 and a 0 say for a grant."""
        return float(np.log(self.granted / self.stray)), float(np.log((1.0 - self.granted) / (1.0 - self.stray)))


class Stats(NamedTuple):
    """Sums per set of roles; `holes` is 0 where every cell was known."""

    A: Annotated[np.ndarray, Array("l d")]
    N: Annotated[np.ndarray, Array("l")]
    holes: Annotated[np.ndarray, Array("l d")] | float


def grants(U: Parts, sets: np.ndarray, dtype: Any) -> np.ndarray:
    """s_Ld, the probability that each set grants each permission."""
    return np.asarray(1.0 - products(U.absent.astype(np.float64), sets), dtype=dtype)


def energies(U: Parts, s: np.ndarray, x: Any, seen: np.ndarray | None) -> np.ndarray:
    """ℓ_iL of dense or CSR rows, (n, M)."""
    c1, c0 = (s.dtype.type(c) for c in U.weights)
    for_one, for_zero = np.log(U.stray), np.log1p(-U.stray)
    ones = np.asarray(x.sum(axis=1)).ravel()
    cells = x.shape[1] if seen is None else seen.sum(axis=1)
    base = (ones * for_one + (cells - ones) * for_zero).astype(s.dtype)
    zeros = (c0 * s.sum(axis=1)) if seen is None else seen @ (c0 * s).T
    return np.asarray(x @ ((c1 - c0) * s).T + zeros + base[:, None])


def shares(energy: np.ndarray, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """γ and minus the loss of each row."""
    T = energy.dtype.type(temperature)
    top = energy.max(axis=1)
    z = np.exp((energy - top[:, None]) / T)
    total = z.sum(axis=1)
    z /= total[:, None]
    return z, top + T * (np.log(total) - np.log(energy.dtype.type(energy.shape[1])))


def gathered(z: np.ndarray, b: Block, x: Any) -> Stats:
    """The statistics of a block."""
    zw = b.weighted(z)
    A = np.asarray((x.T @ zw).T)
    holes = 0.0 if b.observed is None else zw.T @ (~b.observed).astype(zw.dtype)
    return Stats(A, zw.sum(axis=0), holes)


def sides(stats: Stats) -> tuple[np.ndarray, np.ndarray]:
    """A and B: the weight of ones and of zeros in each column, for each set."""
    A = np.maximum(stats.A, 0.0)
    return A, np.maximum(stats.N[:, None] - stats.holes - A, 0.0)


def improved(U: Parts, stats: Stats, sets: np.ndarray, weight: float) -> np.ndarray:
    """β given the statistics, role after role."""
    A, B = sides(stats)
    c1, c0 = U.weights
    speaks = c1 * A + c0 * B
    absent = np.array(U.absent, dtype=np.float64)
    k, d = absent.shape
    for role in range(k):
        mine = np.flatnonzero((sets == role).any(axis=1))
        said = (products(absent, sets[mine], without=role) * speaks[mine]).sum(axis=0)  # Δ
        if U.temperature > 0:
            absent[role] = expit(-said * d / (weight * U.temperature))
        else:
            absent[role] = np.where(np.abs(said) > SURE * weight, (said < 0).astype(np.float64), absent[role])
    return absent


def noise(absent: np.ndarray, stats: Stats, sets: np.ndarray) -> tuple[float, float] | None:
    """q₁ and q₀ given roles and statistics; None where one kind of cells is missing."""
    A, B = sides(stats)
    beta = products(absent, sets)
    zero, one = float((beta * (A + B)).sum()), float(((1.0 - beta) * (A + B)).sum())
    if not (zero > 0 and one > 0):
        return None
    stray, granted = float((beta * A).sum()) / zero, float(((1.0 - beta) * A).sum()) / one
    low, high = FLOOR, 1.0 - FLOOR
    return min(max(granted, low), high), min(max(stray, low), high)


def doubt(absent: np.ndarray) -> float:
    """Σ KL(β ‖ ½): how far roles are from knowing nothing."""
    return float((np.log(2.0) - entr(absent) - entr(1.0 - absent)).sum())
