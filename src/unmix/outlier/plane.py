"""One Gaussian of low rank, for more columns than rows could tell the covariance of:  y ~ N(m, WᵀW + σ²I), W of r rows.

W is made of the leading axes V and variances λ of the rows, w_a = √(λ_a − σ²) v_a, σ² of what they leave. Of a row that
shows the cells o, with W_o their columns and b = W_o (y_o − m_o),

    M_o = σ²I + W_o W_oᵀ              z = M_o⁻¹ b, where the row lies in the plane
    −2 log p(y_o) = |o| log 2π + (|o| − r) log σ² + log |M_o| + (‖y_o − m_o‖² − bᵀz) / σ²

and no d × d matrix is made.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from sklearn.utils.extmath import randomized_svd

from unmix.engine.runners import one_blas_thread
from unmix.maths.arrays import POSITIVE, Array

PIECE = 1 << 22  # numbers of M_o that are made at a time


class Plane(NamedTuple):
    """The Gaussian; NaN in rows means not observed."""

    mean: Annotated[np.ndarray, Array("d")]
    loadings: Annotated[np.ndarray, Array("r d")]
    noise: Annotated[float, Array(low=POSITIVE)]

    @classmethod
    def of(cls, y: np.ndarray, w: np.ndarray | None, r: int, floor: float, random_state: Any) -> Plane:
        """r axes of scaled rows; cells that were not observed lie at their column's mean; σ² is at least `floor`."""
        weight = np.where(np.isnan(y), 0.0, 1.0 if w is None else w[:, None])
        count = np.maximum(weight.sum(axis=0), POSITIVE)
        filled = np.nan_to_num(y)
        mean = (weight * filled).sum(axis=0) / count
        apart = np.sqrt(weight) * (filled - mean)
        with one_blas_thread():  # of so narrow matrices more threads wait for each other most of the time
            _, s, V = randomized_svd(apart, r, random_state=random_state)
        variances = s**2 / count.max()
        left = (apart**2).sum(axis=0) / count
        noise = max((left.sum() - variances.sum()) / max(1, y.shape[1] - r), floor)
        return cls(mean, np.sqrt(np.maximum(variances - noise, 0.0))[:, None] * V, float(noise))

    def score_samples(self, y: np.ndarray) -> np.ndarray:
        """log p of the cells that rows show."""
        with one_blas_thread():
            seen, apart, b, z, log_det = self._solved(y)
        square = np.einsum("ij,ij->i", apart, apart) - np.einsum("ij,ij->i", b, z)
        cells = seen.sum(axis=1)
        constant = cells * np.log(2 * np.pi) + (cells - len(self.loadings)) * np.log(self.noise)
        return np.asarray(-0.5 * (constant + log_det + square / self.noise))

    def expected_cells(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[y_j | rest] and sd[y_j | rest] of the cells that rows show; others are taken for what is expected of them.

        With P the inverse of the covariance, y_j is N(y_j − (P(y − m))_j / P_jj, 1/P_jj) given the rest.
        """
        seen, apart, _, z, _ = self._solved(y)
        W = self.loadings
        inner = np.linalg.inv(self.noise * np.eye(len(W)) + W @ W.T)
        diagonal = np.maximum(1 - np.einsum("aj,ab,bj->j", W, inner, W), 1e-12)  # of σ² P
        away = (apart - z @ W) / diagonal  # for cells that are not seen, apart = zW
        return np.where(seen, y - away, np.nan), np.where(seen, np.sqrt(self.noise / diagonal), np.nan)

    def surprise(self, y: np.ndarray) -> np.ndarray:
        """How many deviations each cell is from what the others let expect."""
        mean, deviation = self.expected_cells(y)
        return np.asarray((y - mean) / deviation)

    def _solved(self, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Which cells are seen, y − m (0 elsewhere), b, z and log |M_o| of every row."""
        seen, W = ~np.isnan(y), self.loadings
        apart = np.where(seen, y - self.mean, 0.0)
        b, r = apart @ W.T, len(W)
        M = self.noise * np.eye(r) + W @ W.T
        z, log_det = np.linalg.solve(M, b.T).T, np.full(len(y), np.linalg.slogdet(M)[1])
        some = np.flatnonzero(~seen.all(axis=1))
        pairs = np.einsum("aj,bj->jab", W, W).reshape(-1, r * r) if len(some) else W
        step = max(1, PIECE // (r * r))
        for rows in (some[i : i + step] for i in range(0, len(some), step)):
            M_o = (seen[rows].astype(float) @ pairs).reshape(-1, r, r) + self.noise * np.eye(r)
            z[rows] = np.linalg.solve(M_o, b[rows][:, :, None])[:, :, 0]
            log_det[rows] = np.linalg.slogdet(M_o)[1]
        return seen, apart, b, z, log_det
