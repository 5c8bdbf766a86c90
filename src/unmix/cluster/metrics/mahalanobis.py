"""The distance by the inverse covariance of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.cluster._parts import Parts
from unmix.cluster.metrics.base import Rows, rows_of
from unmix.cluster.metrics.euclidean import Euclidean, Stats
from unmix.engine.block import Block
from unmix.maths.distances import squared_distances
from unmix.maths.gaussian import Whitening, expected, mean_and_covariance, moments, patterns, regression, whitening


class Mahalanobis(Euclidean):
    """(x − u)ᵀ P (x − u), P the inverse covariance of the data: ‖y − v‖² of whitened rows.

    For a row with missing cells the smallest possible distance counts: that of the observed cells by the inverse of
    their own covariance. The row enters the mean with the cells that make it so. The covariance is then that of the
    complete rows, if they are five times as many as columns or more, else that of all rows that show both cells.
    """

    name = "mahalanobis"
    kinds = Whitening, Stats
    sparse = False

    def names(self, d: int) -> dict[str, Any]:
        """The frame tells how many columns there are where clusters are sought."""
        return {"frame": self.kinds[0]}

    def frame(self, sample: Block, params: dict[str, Any]) -> Any:
        """The whitening, from `VI` or from the covariance of the sample."""
        if set(params) - {"VI"}:
            raise ValueError(f"metric_params={sorted(params)}: metric='mahalanobis' knows 'VI', the inverse covariance")
        self.check(sp.issparse(sample.x))
        weight = np.ones(len(sample.x)) if sample.w is None else sample.w
        count = weight.sum() if sample.observed is None else weight @ sample.observed
        origin = weight @ sample.x.astype(np.float64) / np.maximum(count, 1e-300)
        sums = moments(sample.x, sample.observed, sample.w, origin)
        if "VI" not in params:
            return whitening(origin, sums)
        d, P = sample.x.shape[1], np.array(params["VI"], dtype=np.float64)
        if P.shape != (d, d) or not np.isfinite(P).all() or not np.allclose(P, P.T, rtol=1e-6):
            raise ValueError(
                f"metric_params['VI'] of shape {P.shape}: give a symmetric {d}×{d} matrix of finite numbers"
            )
        value, vector = np.linalg.eigh((P + P.T) / 2)
        if value[0] <= 1e-14 * value[-1]:
            raise ValueError(f"metric_params['VI'] has the eigenvalue {value[0]:.1e}: give a positive definite matrix")
        mean, _ = mean_and_covariance(origin, sums)
        return Whitening(mean, vector * np.sqrt(value), (vector / np.sqrt(value)).T, P)

    def enter(self, frame: Any, b: Block) -> Block:
        """Whitened rows; those with missing cells come later, when their centre is known."""
        self.check(sp.issparse(b.x))
        if b.observed is not None:
            return b
        return b._replace(x=((b.x - frame.origin) @ frame.white).astype(b.x.dtype, copy=False))

    def filled(self, frame: Any, b: Block) -> Block:
        """Whitened rows, with missing cells as the mean of the data predicts them."""
        if b.observed is None:
            return self.enter(frame, b)
        alike = np.zeros(len(b.x), np.int32)
        x = expected(b.x, b.observed, frame.origin[None].astype(np.float64), alike, frame.precision)
        return b._replace(x=((x - frame.origin) @ frame.white).astype(b.x.dtype), observed=None)

    def enter_centers(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Whitened centres."""
        return np.asarray((centers - frame.origin) @ frame.white)

    def leave(self, frame: Any, centers: np.ndarray) -> np.ndarray:
        """Centres among the rows."""
        return np.asarray(frame.origin + centers @ frame.back)

    def costs(self, U: Parts, b: Block) -> np.ndarray:
        """Squared distances; with missing cells pattern by pattern."""
        if b.observed is None:
            return super().costs(U, b)
        centers = self.leave(U.frame, U.centers).astype(np.float64)
        out = np.zeros((len(b.x), len(centers)), b.x.dtype)
        for rows, seen in patterns(b.observed):
            _, factor = regression(U.frame.precision, seen)
            y, v = b.x[np.ix_(rows, seen)] - U.frame.origin[seen], centers[:, seen] - U.frame.origin[seen]
            out[rows] = squared_distances(y @ factor, None, v @ factor)
        return out

    def nearest(self, U: Parts, b: Block) -> tuple[Rows, Any]:
        """As Euclidean; rows with missing cells by all distances."""
        if b.observed is None:
            return super().nearest(U, b)
        z = rows_of(b._replace(z=None))
        z.label[:] = self.costs(U, b).argmin(axis=1)
        z.lower[:] = 0.0  # no bound
        return z, self.sums(U, b, z)

    def sums(self, U: Parts, b: Block, z: Rows) -> Any:
        """As Euclidean, of filled rows."""
        if b.observed is not None:
            centers = self.leave(U.frame, U.centers).astype(np.float64)
            x = expected(b.x, b.observed, centers, z.label, U.frame.precision)
            b = b._replace(x=((x - U.frame.origin) @ U.frame.white).astype(b.x.dtype), observed=None)
        return super().sums(U, b, z)
