"""Distances of rows by any metric, as k-medoids needs them: in float64 to medoids, in float32 between all rows."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.maths.arrays import Array
from unmix.maths.distances import FAR, about_one, differences, squares

METRICS = """braycurtis canberra chebyshev cityblock correlation cosine dice euclidean hamming haversine jaccard l1 l2
    mahalanobis manhattan minkowski precomputed rogerstanimoto russellrao seuclidean sokalsneath sqeuclidean yule"""
WEIGHTED = """braycurtis canberra chebyshev correlation dice hamming jaccard rogerstanimoto russellrao sokalsneath
    sqeuclidean yule"""
PARAMETERS = dict.fromkeys(WEIGHTED.split(), ("w",)) | {
    "minkowski": ("p", "w"),
    "mahalanobis": ("VI",),
    "seuclidean": ("V",),
}
EUCLIDEAN = ("euclidean", "l2")
PLAIN = ("manhattan", "cityblock", "l1", "minkowski", "chebyshev", "sqeuclidean", "seuclidean", "mahalanobis")
ALIKE = 1e-12  # of distances: they have no digits left that differ
LENGTHS = (*EUCLIDEAN, "mahalanobis", "manhattan", "cityblock", "l1")  # whose clusters are clouds of the rows


class Frame(NamedTuple):
    """What distances need of all rows."""

    far: Annotated[float, Array(low=0.0)]  # the distance of rows that share no observed cell
    shape: Annotated[Any, "spread"]  # inverse covariance ("mahalanobis") or variances ("seuclidean")


class Distance:
    """A metric with its parameters."""

    def __init__(self, metric: Any, params: dict[str, Any] | None) -> None:
        self.metric, self.params = metric, params or {}

    def check(self) -> None:
        """Refuse parameters that the metric does not take."""
        if isinstance(self.metric, str):
            takes = PARAMETERS.get(self.metric, ())
            for name in self.params:
                if name not in takes:
                    raise ValueError(
                        f"metric_params has {name!r}, but metric={self.metric!r} takes {' and '.join(takes) or 'none'}"
                    )

    def refuse_missing(self) -> None:
        """Cells are missing: only the Euclidean distance knows what to do."""
        if self.metric not in EUCLIDEAN:
            raise ValueError(
                f"Input X contains NaN, and metric={self.metric!r} needs every cell: use metric='euclidean', or impute"
            )

    def frame(self, rows: np.ndarray, seen: np.ndarray | None, w: np.ndarray) -> tuple[Frame, np.ndarray, float]:
        """What distances need of the data; rows to compare; the factor of their distances.

        For the Euclidean distance the rows are measured from the mean and scaled to about 1.
        """
        shape = None
        count = w.sum() if seen is None else np.maximum(w @ seen, np.finfo(float).tiny)
        shift = (w @ rows.astype(np.float64)) / count
        rest = rows - shift if seen is None else np.where(seen, rows - shift, 0.0)
        variance = w @ np.square(rest) / count
        if self.metric == "seuclidean" and "V" not in self.params:
            shape = np.where(variance > 0, variance, 1.0)
        if self.metric == "mahalanobis" and "VI" not in self.params:
            shape = np.linalg.pinv((rest.T * w) @ rest / w.sum(), hermitian=True)
        points, unit = rows.astype(np.float64), 1.0
        if self.metric in EUCLIDEAN:
            unit = 2.0 ** -np.round(0.5 * np.log2(variance.max())) if variance.max() > 0 else 1.0
            points = np.ascontiguousarray(rest * unit)
        return Frame(float(np.sqrt(2 * variance.sum())), shape), points, float(unit)

    def between(self, frame: Frame, x: np.ndarray, seen: Any, y: np.ndarray, seen_y: Any) -> np.ndarray:
        """Distances of rows x to rows y in float64; a row without any cell is at distance 0 from all."""
        x, y = x.astype(np.float64), y.astype(np.float64)
        if seen is not None or seen_y is not None:
            self.refuse_missing()
            seen = np.ones(x.shape, bool) if seen is None else seen
            seen_y = np.ones(y.shape, bool) if seen_y is None else seen_y
            common = seen.astype(np.float64) @ seen_y.T
            out = np.sqrt(differences(x, y, seen, seen_y) * (x.shape[1] / np.maximum(common, 1.0)))
            out[common == 0] = frame.far
            out[~seen.any(axis=1)] = 0.0
            return out
        if self.metric in EUCLIDEAN:
            return np.sqrt(differences(x, y))
        if x.shape[1] == 0:
            return np.zeros((len(x), len(y)))
        return self._by_name(frame, x, y)

    def nearest(self, D: np.ndarray, x: np.ndarray, seen: Any, y: np.ndarray, seen_y: Any) -> np.ndarray:
        """Which of the rows y is nearest to each row x, D being their distances.

        Of rows so far out that these are the same to rounding, it is the y with the least ‖y‖² − 2⟨x, y⟩, over what x
        shows, if the distance is Euclidean and y shows every cell.
        """
        label = D.argmin(axis=1).astype(np.int32)
        if self.metric not in EUCLIDEAN or not (seen_y is None or seen_y.all()):
            return label
        y = y.astype(np.float64)
        reach = float(np.sqrt(FAR * squares(y).max()))
        if D.max(initial=0.0) > reach:
            far = D.min(axis=1) > reach
            square = squares(y) if seen is None else seen[far] @ np.square(y).T
            label[far] = (square - 2 * (x[far].astype(np.float64) @ y.T)).argmin(axis=1)
        return label

    def refuse_far(self, D: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Refuse rows so far out that their distances to different rows y are the same to rounding."""
        if self.metric in PLAIN and len(D) and (y != y[0]).any():
            size, reach = np.abs(x).max(axis=1, initial=0.0), float(np.abs(y).max())
            alike = np.ptp(D, axis=1) <= ALIKE * D.max(axis=1)
            if (lost := alike & (size > reach / ALIKE)).any():
                raise ValueError(
                    f"X reaches {size[lost].max():.0e} in size, the medoids {reach:.0e}, and by metric={self.metric!r} "
                    "they are equally far from it, to rounding: are its units those of the rows of the fit?"
                )

    def _by_name(self, frame: Frame, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The distances of scikit-learn and SciPy, or of a function; refused where they are not distances."""
        from sklearn.metrics import pairwise_distances

        more = dict(self.params)
        if self.metric == "cosine":
            x, y = about_one(x), about_one(y)
        if frame.shape is not None:
            more |= {"VI" if self.metric == "mahalanobis" else "V": frame.shape.astype(np.float64)}
        out = np.asarray(pairwise_distances(x, y, metric=self.metric, **more), dtype=np.float64)
        if not np.isfinite(out).all():
            i, j = (int(v[0]) for v in np.nonzero(~np.isfinite(out)))
            raise ValueError(
                f"metric={self.metric!r} gives {out[i, j]} for the rows {x[i][:4]}… and {y[j][:4]}…: "
                "drop such rows or choose another metric"
            )
        if pair := negative(out):
            i, j = pair
            raise ValueError(
                f"metric={self.metric!r} gives {out[i, j]} for the rows {x[i][:4]}… and {y[j][:4]}…: "
                "a distance is 0 or more; give one that is"
            )
        return np.maximum(out, 0.0)

    def matrix(self, frame: Frame, points: np.ndarray, seen: np.ndarray | None) -> tuple[np.ndarray, float]:
        """All distances in float32, and the power of two that they were divided by, so that they stay in range."""
        n, scale = len(points), 0.0
        out = np.empty((n, n), np.float32)
        step = max(1, (1 << 20) // n)
        if self.metric in EUCLIDEAN and seen is None:
            from unmix.kernels.medoids import roots

            columns, squares = np.ascontiguousarray(-2 * points.T), np.einsum("ij,ij->i", points, points)
            d, flat = points.shape[1], out.reshape(-1)
            for a in range(0, n, step):  # the part right of the diagonal, and its mirror image
                b = min(a + step, n)
                products, x, y = points[a:b] @ columns[:, a:], points[a:b].reshape(-1), points[a:].reshape(-1)
                roots(products.reshape(-1), x, squares[a:b], y, squares[a:], d, flat, a)
                out[b:, a:b] = out[a:b, b:].T
            np.fill_diagonal(out, 0.0)
            return out, 1.0
        for a in range(0, n, step):
            part = slice(a, a + step)
            D = self.between(frame, points[part], None if seen is None else seen[part], points, seen)
            scale = scale or (2.0 ** np.round(np.log2(D.max())) if D.max() > 0 else 1.0)
            out[part] = D / scale
        if seen is not None:
            np.fill_diagonal(out, 0.0)
        return out, float(scale)


def negative(D: np.ndarray) -> tuple[int, int] | None:
    """Where the smallest distance is, if it is negative by more than rounding explains."""
    if D.min(initial=0.0) >= 0 or D.min() >= -1e-6 * max(float(abs(D).max()), 1e-3):
        return None
    i, j = np.unravel_index(int(D.argmin()), D.shape)
    return int(i), int(j)


def refuse_negative(value: float, i: int, j: int) -> None:
    """Name two rows whose given distance is negative."""
    raise ValueError(
        f"metric='precomputed': the distance of rows {i} and {j} is {value}, but a distance is 0 or more: "
        "pass distances, not similarities"
    )


def check_symmetric(D: np.ndarray, name: str, rng: np.random.Generator) -> None:
    """Refuse a matrix of pairs of rows some of whose cells differ from their mirror images."""
    i, j = rng.integers(len(D), size=(2, 4096))
    if not np.allclose(D[i, j], D[j, i], rtol=1e-4, atol=1e-6 * abs(D[i, j]).max()):
        raise ValueError(f"{name}='precomputed' needs a symmetric matrix: pass (X + X.T) / 2 if that is meant")


def find(rows: np.ndarray, seen: np.ndarray | None, wanted: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """For each wanted row the first of the rows that equals it cell by cell, −1 where none does.

    Cells that were not observed are 0, and marked in `seen` and `given`.
    """
    rows, wanted = (np.asarray(v, dtype=np.float64) for v in (rows, wanted))
    if seen is not None or given is not None:
        mark = np.ones(rows.shape, bool) if seen is None else seen
        rows = np.where(mark, rows, np.inf)
        wanted = np.where(np.ones(wanted.shape, bool) if given is None else given, wanted, np.inf)
    if len(rows) > len(wanted):
        some = np.flatnonzero(np.isin(rows[:, 0], wanted[:, 0]))  # those that can be equal
    else:
        some = np.arange(len(rows))
    keys = np.ascontiguousarray(rows[some] + 0.0).view(f"V{8 * rows.shape[1]}").ravel().tolist()  # + 0.0: −0 is 0
    place = {key: i for i, key in zip(some[::-1], reversed(keys), strict=True)}
    asked = np.ascontiguousarray(wanted + 0.0).view(f"V{8 * rows.shape[1]}").ravel().tolist()
    return np.array([place.get(key, -1) for key in asked])
