"""A short k-means of a sample, in single precision: where mixtures start."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes, Stage
from unmix.maths.arrays import Array
from unmix.maths.distances import dense, squared_distances
from unmix.maths.seeding import plus_plus

ROWS = 4096  # of the sample
ROWS_PER_CLUSTER = 20  # if that is more
DENSE_CELLS = 1 << 24  # of CSR rows that are made dense
ROUNDS = 20
ROWS_PER_CHANGE = 200  # it ends when no more than one row in this many changes its cluster


class Points(NamedTuple):
    """Rows about their median, scaled to 1 at most, so that single precision holds their squares; their weights."""

    x: Any
    w: np.ndarray


class Centres(NamedTuple):
    """Centres of some of the points, and the cluster of each of these."""

    centers: Annotated[np.ndarray, Array("k c")]
    rows: Annotated[np.ndarray, Array("l", "i", 0, "p-1")] | None  # which of the points; None: all
    label: Annotated[np.ndarray, Array("l", "i", -1, "k-1")]
    done: bool = False


class Lloyd(Stage):
    """Rounds of Lloyd's algorithm; without rounds the start of k-means++. It hands on the labels of the sample.

    Parameters
    ----------
    model : Model
        `model.points(sample)` gives rows in which distances mean something, and their weights.
    K : int
        How many clusters.
    most : int
        How many rounds at most.
    """

    name, over = "k-means", "sample"

    def __init__(self, model: Any, K: int, most: int = ROUNDS) -> None:
        self.model, self.K, self.most = model, K, most

    def sizes(self, shape: Shape) -> Sizes:
        """The sample of the model."""
        return self.model.sizes(shape)  # type: ignore[no-any-return]

    def open(self, data: Block, rng: np.random.Generator) -> Points:
        """The points."""
        return scaled(*self.model.points(data))

    def start(self, before: Any, data: Points, rng: np.random.Generator) -> Centres:
        """k-means++ of some of the points."""
        n, most, index = data.x.shape[0], self._used, None
        if n > most:
            index = np.sort(rng.choice(n, most, replace=False))
        x, w = (data.x, data.w) if index is None else (data.x[index], data.w[index])
        return Centres(dense(x[plus_plus(x, None, w, self.K, rng)]), index, np.full(x.shape[0], -1, np.int32))

    def step(self, U: Centres, data: Points, rng: np.random.Generator) -> tuple[Centres, None]:
        """Points to their nearest centres, then centres to the means of their points; empty ones stay."""
        x, w = (data.x, data.w) if U.rows is None else (data.x[U.rows], data.w[U.rows])
        if sp.issparse(x):
            label = squared_distances(x, None, U.centers).argmin(axis=1).astype(np.int32)
            few = np.count_nonzero(label != U.label) <= len(label) // ROWS_PER_CHANGE
            centers = U.centers if few else means(x, w, label, U.centers)
        else:
            from unmix.kernels.clusters import lloyd

            centers, label = U.centers.copy(), U.label.copy()
            few = lloyd(x, w, centers, label, len(label) // ROWS_PER_CHANGE)
        return Centres(centers, U.rows, label, bool(few)), None

    def described(self, U: Any, data: Points) -> Described:
        """Centres of the points, and the cluster of each that is used."""
        n, c = data.x.shape
        return Described(Centres, Any, Any, {"k": self.K, "c": c, "p": n, "l": min(n, self._used)})

    @property
    def _used(self) -> int:
        """Points that are used at most."""
        return max(ROWS, ROWS_PER_CLUSTER * self.K)

    def goal(self, U: Centres, first: float) -> bool:
        """Done when hardly any point changes."""
        return U.done

    def hand(self, U: Centres, data: Points) -> np.ndarray:
        """The labels of all points."""
        return np.asarray(squared_distances(data.x, None, U.centers).argmin(axis=1))


def scaled(x: Any, w: np.ndarray) -> Points:
    """Rows in the form that rounds want."""
    if sp.issparse(x) and x.shape[0] * x.shape[1] <= DENSE_CELLS:  # so that ties fall as they do for dense rows
        x = x.toarray()
    x = x if sp.issparse(x) else x - np.median(x, axis=0)  # a far row would drag the mean along, and cost digits
    return Points((x / (abs(x).max() or 1.0)).astype(np.float32), w)


def means(x: Any, w: np.ndarray, label: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Means of the CSR rows of each label."""
    groups = sp.csr_array((w, (label, np.arange(len(label)))), shape=(len(centers), len(label)))
    N = groups.sum(axis=1)[:, None]
    return np.where(N > 0, (groups @ x).toarray() / np.maximum(N, 1e-300), centers).astype(np.float32)


def halves(x: Any, rng: np.random.Generator) -> np.ndarray:
    """Labels of two clusters of a few rows: an inner step where a component is cut in two."""
    stage, data = Lloyd(None, 2), scaled(x, np.ones(x.shape[0]))
    U = stage.start(None, data, rng)
    for _ in range(ROUNDS):
        U, _ = stage.step(U, data, rng)
        if U.done:
            break
    return stage.hand(U, data)
