"""The way back from scores z to rows: φ(x) ≈ m + Σ_a z_a v_a has no exact solution x, but there are good ones.

ridge          x = Σ_j K(z, z_j) c_j        (K_z + α W⁻¹) c = X          [kernel ridge regression of rows on scores]
fixed point    x ← Σ_j g_j K(x, x_j) x_j / Σ_j g_j K(x, x_j)       g = mean + coef z
               [Mika, Schölkopf et al. 1998: the x whose φ(x) is nearest, where K is radial]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from unmix.linear._kernel_parts import Parts, rows_of, steps
from unmix.maths.kernels import Kernel

MOST_STEPS = 200
STILL = 1e-7  # of the spread of the rows: a step that is shorter is the last
VANISHED = 1e-9  # of what a sum is made of: nothing is left of it but rounding


class Ways(NamedTuple):
    """Whether a way back is wanted, which one, and how it is learnt."""

    wanted: bool
    which: str
    alpha: float
    kernel: Kernel

    def learn(self, U: Parts, w: np.ndarray) -> np.ndarray:
        """Coefficients c of ridge regression, where that is wanted."""
        if not self.wanted or self.which != "ridge":
            return U.dual
        half, zero = np.sqrt(w), np.zeros(U.scores.shape[1])
        A = self.kernel.matrix(U.scores, zero)
        A *= half[:, None] * half
        A.flat[:: len(A) + 1] += self.alpha
        try:
            factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError as error:
            raise ValueError(
                f"alpha={self.alpha}: the kernels of the scores are not positive definite with so little added, and "
                "inverse_transform cannot be learnt: raise alpha"
            ) from error
        rows = half[:, None] * rows_of(U)
        return half[:, None] * scipy.linalg.cho_solve(factor, rows, overwrite_b=True, check_finite=False)

    def back(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Rows for scores."""
        out, pieces = np.empty((len(z), len(U.shift))), steps(len(z), len(U.coef))
        one = self._ridge if self.which == "ridge" else self._fixed_point
        for a in pieces:
            out[a : a + pieces.step] = one(U, z[a : a + pieces.step].astype(np.float64))
        return out

    def _ridge(self, U: Parts, z: np.ndarray) -> np.ndarray:
        return self.kernel.between(z, U.scores, np.zeros(z.shape[1])) @ U.dual

    def _fixed_point(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """From the row whose scores are nearest; of all that is passed the nearest φ(x) is kept."""
        rows = np.asarray(rows_of(U), dtype=np.float64)
        g = U.mean + z @ U.coef.T.astype(np.float64)
        apart = np.einsum("jk,jk->j", U.scores, U.scores) - 2 * z @ U.scores.T
        x = rows[apart.argmin(axis=1)]
        best, nearest = x.copy(), np.full(len(z), -np.inf)
        still = (STILL**2) * float(np.einsum("jd,jd->", rows - U.shift, rows - U.shift)) / len(rows)
        for _ in range(MOST_STEPS):
            share = g * self.kernel.between(x, rows, U.shift)
            inner = share.sum(axis=1)  # ⟨φ(x), m + Σ z_a v_a⟩
            nearer = inner > nearest
            best[nearer], nearest[nearer] = x[nearer], inner[nearer]
            some = inner > VANISHED * np.abs(share).sum(axis=1)
            new = np.where(some[:, None], share @ rows / np.where(some, inner, 1.0)[:, None], x)
            moved = float(np.einsum("ij,ij->i", new - x, new - x).max(initial=0.0))
            x = new
            if moved <= still:
                break
        return best


def of(model: Any, kernel: Kernel) -> Ways:
    """The way back that a model's parameters name."""
    wanted = bool(model.fit_inverse_transform) or model.pre_image == "fixed_point"
    return Ways(wanted, model.pre_image, float(model.alpha), kernel)
