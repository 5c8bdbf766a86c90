"""Regressions of one column on the others, from rows that one Gaussian has filled: what is curved, and what has steps.

Both tell how far the column is from what the Gaussian expects, x_m − F_m, of the filled row F:

    curves    Σ_l a_l F_l + Σ_r c_r exp(−½ ‖s ∘ (F − F_r)‖² / h²)         ridge; h and the ridge by leave-one-out
    trees     the mean over trees of the mean of the leaf that F falls in      extremely randomised (Geurts et al. 2006)

s stretches the columns that go with m. Trees are scikit-learn's, kept as arrays.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from unmix.maths.arrays import POSITIVE, Array
from unmix.maths.distances import differences

PLACES = 120  # rows about which curves bend, at most
WIDTHS = (0.5, 1.5)  # times the median distance
RIDGES = np.logspace(-2, 4, 13)
LINEAR = 10.0  # how much less the linear terms are held back
TREES = 30
LEAF = 3  # rows, at least
PIECE = 1 << 16  # rows times trees that are followed at a time


class Curves(NamedTuple):
    """A smooth regression of the columns of one group."""

    columns: Annotated[np.ndarray, Array("t", "i", 0, "w-1")]
    stretch: Annotated[np.ndarray, Array("w", low=0.0)]
    places: Annotated[np.ndarray, Array("r w")]
    width: Annotated[float, Array(low=POSITIVE)]
    bend: Annotated[np.ndarray, Array("r t")]
    slope: Annotated[np.ndarray, Array("w t")]
    constant: Annotated[np.ndarray, Array("t")]
    error: Annotated[np.ndarray, Array("t", low=0.0)]

    def predict(self, F: np.ndarray) -> np.ndarray:
        """What the columns should be in filled rows."""
        near = bumps(F * self.stretch, self.places, self.width)
        return np.asarray(F[:, self.columns] + self.constant + F @ self.slope + near @ self.bend)


def curves(F: np.ndarray, target: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> Curves:
    """The smooth regression whose leave-one-out error is least."""
    gap = target - F[:, columns]
    stretch = stretches(F, target)
    z = F * stretch
    places = z[np.sort(rng.permutation(len(z))[:PLACES])]
    square = differences(z, places)
    middle = float(np.median(square)) or 1.0
    found: tuple[float, Curves] | None = None
    for width in WIDTHS:
        h = float(np.sqrt(middle) * width)
        K = np.exp(-0.5 * differences(places, places) / h**2)
        value, vector = np.linalg.eigh(K)
        kept = value > 1e-8 * value[-1]
        white = vector[:, kept] / np.sqrt(value[kept])
        center = F.mean(axis=0)
        features = np.hstack([(F - center) * LINEAR, np.exp(-0.5 * square / h**2) @ white])
        c, constant, error = ridge(features, gap)
        slope, bend = c[: F.shape[1]] * LINEAR, white @ c[F.shape[1] :]
        total = float((error**2).sum())
        if found is None or total < found[0]:
            model = Curves(columns, stretch, places, h, bend, slope, constant - center @ slope, error)
            found = total, model
    assert found is not None
    return found[1]


def stretches(F: np.ndarray, target: np.ndarray) -> np.ndarray:
    """How much each column counts in distances: the more, the closer it goes with the target."""
    a = F - F.mean(axis=0)
    b = target - target.mean(axis=0)
    size = np.sqrt((a**2).sum(axis=0))[:, None] * np.sqrt((b**2).sum(axis=0))
    related = np.abs(a.T @ b / np.maximum(size, 1e-300)).max(axis=1)
    spread = np.maximum(F.std(axis=0), 1e-6)
    return np.asarray((0.1 + related) / np.maximum(spread, 0.1))


def bumps(z: np.ndarray, places: np.ndarray, width: float) -> np.ndarray:
    """exp(−½ distance² / width²) to each place."""
    return np.asarray(np.exp(-0.5 * differences(z, places) / width**2))


def ridge(features: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, constants and leave-one-out errors by the ridge for which these are least."""
    n, center, mean = len(features), features.mean(axis=0), target.mean(axis=0)
    x, y = features - center, target - mean
    value, vector = np.linalg.eigh(x.T @ x)
    value = np.maximum(value, 0.0)
    scores, along = x @ vector, vector.T @ (x.T @ y)
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for r in RIDGES:
        shrunk = 1.0 / (value + r)
        lever = np.minimum((scores**2) @ shrunk + 1.0 / n, 0.99)
        off = (y - scores @ (along * shrunk[:, None])) / (1.0 - lever)[:, None]
        error = np.sqrt((off**2).mean(axis=0))
        if best is None or (error**2).sum() < best[0]:
            best = float((error**2).sum()), vector @ (along * shrunk[:, None]), error
    assert best is not None
    return best[1], mean - center @ best[1], best[2]


class Trees(NamedTuple):
    """Trees of the columns of one group, their nodes one after the other; a leaf is its own child."""

    columns: Annotated[np.ndarray, Array("t", "i", 0, "w-1")]
    column: Annotated[np.ndarray, Array("b", "i", 0, "w-1")]
    roots: Annotated[np.ndarray, Array("a", "i", 0, "b-1")]
    threshold: Annotated[np.ndarray, Array("b")]
    left: Annotated[np.ndarray, Array("b", "i", 0, "b-1")]
    right: Annotated[np.ndarray, Array("b", "i", 0, "b-1")]
    value: Annotated[np.ndarray, Array("b t")]
    depth: Annotated[int, Array(kind="i", low=0, high=10_000)]
    error: Annotated[np.ndarray, Array("t", low=0.0)]

    def predict(self, F: np.ndarray) -> np.ndarray:
        """What the columns should be in filled rows."""
        step = max(1, PIECE // len(self.roots))
        parts = [self._piece(F[a : a + step]) for a in range(0, len(F), step)]
        return np.concatenate(parts) if parts else F[:, self.columns]

    def _piece(self, F: np.ndarray) -> np.ndarray:
        x, rows = F.astype(np.float32), np.arange(len(F))
        node = np.repeat(self.roots[:, None], len(F), axis=1)
        for _ in range(self.depth):
            less = x[rows, self.column[node]] <= self.threshold[node]
            node = np.where(less, self.left[node], self.right[node])
        return np.asarray(F[:, self.columns] + self.value[node].mean(axis=0))


def trees(F: np.ndarray, target: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> Trees:
    """Extremely randomised trees."""
    gap, x = target - F[:, columns], np.ascontiguousarray(F, dtype=np.float32)
    leaf, seeds = min(LEAF, max(1, len(F) // 10)), rng.integers(2**31 - 1, size=TREES)
    y = np.ascontiguousarray(gap)
    with config_context(skip_parameter_validation=True):  # which would take as long as the trees
        grown = [ExtraTreeRegressor(min_samples_leaf=leaf, max_features=1.0, random_state=int(s)) for s in seeds]
        made = [one.fit(x, y, check_input=False).tree_ for one in grown]
    counts = np.array([t.node_count for t in made])
    roots = np.cumsum(counts) - counts
    own = np.arange(counts.sum())
    at = np.repeat(roots, counts)
    left, right = (np.concatenate([getattr(t, side) for t in made]) for side in ("children_left", "children_right"))
    leaves = left < 0
    column = np.concatenate([t.feature for t in made])
    value = np.concatenate([t.value[:, :, 0] for t in made])
    return Trees(
        columns,
        np.where(leaves, 0, column).astype(np.int64),
        roots,
        np.where(leaves, 0.0, np.concatenate([t.threshold for t in made])),
        np.where(leaves, own, left + at).astype(np.int64),
        np.where(leaves, own, right + at).astype(np.int64),
        value.astype(np.float64),
        int(max(t.max_depth for t in made)),
        gap.std(axis=0),
    )
