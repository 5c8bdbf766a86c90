"""First centres: drawn from a sample of the rows, given, or made by a function that the user supplies.

They are drawn where the metric seeks clusters, from rows about their mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from unmix.cluster.metrics.base import Metric
from unmix.engine import layout
from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.engine.moments import room
from unmix.maths.distances import dense, squares
from unmix.maths.seeding import plus_plus

ROWS_FOR_SCALE = 1 << 12  # of the sample where centres are given: the columns' variance shows
ROWS_DRAWN_FROM = 1 << 14  # of the sample at most, unless the clusters are many
ROWS_PER_CLUSTER = 128  # of the sample, where they are
STARTS_IF_RANDOM = 10  # of n_init="auto"


class Cloud(NamedTuple):
    """A sample as first centres are drawn from it: where clusters are sought, about the mean."""

    x: Any  # the rows less `origin`, 0 where not observed
    observed: np.ndarray | None
    w: np.ndarray
    origin: np.ndarray  # the mean; zero for CSR rows
    mean: np.ndarray
    variance: float  # mean over the columns (for medians: mean deviation)
    frame: Any  # of the metric


# ---------------------------------------------------------------- before anything is read


def is_given(init: Any) -> bool:
    """Whether `init` holds the centres themselves."""
    return not isinstance(init, str) and not callable(init)


def check_start(init: Any, k: int, n_init: int | str, shape: Shape) -> None:
    """Refuse more clusters than rows, and first centres of another shape; say where `n_init` is not heeded."""
    if shape.n < k:
        raise ValueError(f"n_samples={shape.n} should be >= n_clusters={k}: ask for fewer clusters")
    if is_given(init):
        checked(init, k, shape.d)
        if n_init not in ("auto", 1):
            warnings.warn(
                f"Explicit initial center position passed: performing only one init instead of n_init={n_init}",
                RuntimeWarning,
                stacklevel=2,
            )


def checked(centers: Any, k: int, d: int) -> np.ndarray:
    """Centres as an array of their own, if they suit."""
    array = np.array(centers.toarray() if sp.issparse(centers) else centers, dtype=np.float64)
    if array.shape != (k, d):
        raise ValueError(f"init has shape {array.shape}: centres for these data have shape {(k, d)}")
    if not np.isfinite(array).all():
        raise ValueError("init holds values that are not finite: give centres without NaN or infinity")
    return array


def restarts(init: Any, n_init: int | str) -> int:
    """Given centres need one start; "auto" is scikit-learn's."""
    if is_given(init):
        return 1
    if n_init == "auto":
        return 1 if init in ("k-means++", "k-means||", "spread") else STARTS_IF_RANDOM
    return int(n_init)


def sample_rows(init: Any, k: int, shape: Shape) -> int:
    """Enough rows for each cluster to have its share or, where none are drawn, for the columns' variance to show."""
    if is_given(init):
        return min(shape.n, ROWS_FOR_SCALE)
    return min(layout.sample_rows(shape), max(ROWS_DRAWN_FROM, ROWS_PER_CLUSTER * k))


# ---------------------------------------------------------------- of a sample


def cloud_of(sample: Block, metric: Metric, params: dict[str, Any]) -> Cloud:
    """The sample as the metric sees it, its mean and its scale."""
    frame = metric.frame(sample, params)
    b = metric.filled(frame, sample)
    x, seen, w = b.x, b.observed, np.ones(b.x.shape[0]) if b.w is None else b.w
    count = np.maximum(w.sum() if seen is None else w @ seen, np.finfo(float).tiny)
    mean = np.asarray(w @ x, dtype=np.float64) / count
    if sp.issparse(x):
        centered, origin = x.astype(np.float64), np.zeros_like(mean)
        columns = np.asarray(w @ centered.power(2)) / count - mean**2
    else:
        centered, origin = x - mean, mean
        if seen is not None:
            centered[~seen] = 0.0
        away = np.abs(centered, out=room(centered.shape, centered.dtype))
        columns = w @ (away if metric.power == 1 else np.square(away, out=away)) / count
    return Cloud(centered, seen, w, origin, mean, float(np.mean(np.maximum(columns, 0.0))), frame)


def first_centers(
    init: Any,
    k: int,
    sample: Block,
    cloud: Cloud,
    metric: Metric,
    rng: np.random.Generator,
    apart: float | None = None,
) -> np.ndarray:
    """K centres where the metric seeks clusters, as `init` says; for "k-means||" the first candidate."""
    if callable(init):
        return metric.enter_centers(cloud.frame, called(init, k, sample, rng))
    if is_given(init):
        return metric.enter_centers(cloud.frame, checked(init, k, sample.x.shape[1]))
    x, w, origin = cloud.x, cloud.w, cloud.origin
    if init == "partition":
        return metric.project(partition(x, cloud.observed, w, k, cloud.mean - origin, rng) + origin)
    if init == "spread":
        first = metric.project(cloud.mean[None]) - origin
        index = spread_out(x, cloud.observed, w, k, first, apart, metric, rng)
        return metric.project(np.vstack([first, dense(x[index])]) + origin)
    if init == "random":
        repeat = bool(np.count_nonzero(w) < k)
        index = rng.choice(len(w), k, replace=repeat, p=w / w.sum())
    else:  # single precision is enough to draw by, if the numbers are about 1
        scaled = single(x, cloud.variance ** (-1 / metric.power) if cloud.variance > 0 else 1.0)
        one = init == "k-means||"  # the others are drawn by passes over all rows
        index = plus_plus(scaled, cloud.observed, w, 1 if one else k, rng, metric.pairs)
    return metric.project(dense(x[index]) + origin)


def single(x: Any, scale: float) -> Any:
    """The rows times a number, in single precision."""
    if sp.issparse(x):
        return (x * scale).astype(np.float32)
    return np.multiply(x, scale, out=room(x.shape, x.dtype)).astype(np.float32)


def called(init: Callable[..., Any], k: int, sample: Block, rng: np.random.Generator) -> np.ndarray:
    """What the user's function makes of the sample, with means in place of missing cells."""
    state = np.random.RandomState(rng.integers(2**31))
    rows = sample.x
    if sample.observed is not None:
        w = np.ones(len(rows)) if sample.w is None else sample.w
        mean = w @ rows / np.maximum(w @ sample.observed, np.finfo(float).tiny)
        rows = np.where(sample.observed, rows, mean)
    return checked(init(rows, k, random_state=state), k, rows.shape[1])


def partition(
    x: Any, observed: np.ndarray | None, w: np.ndarray, k: int, mean: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The means of a random partition into k parts of sizes as equal as possible; `mean` where nothing was observed."""
    n = x.shape[0]
    groups = sp.csr_array((w, (rng.permutation(n) % k, np.arange(n))), shape=(k, n))
    count = np.asarray(groups.sum(axis=1))[:, None] if observed is None else groups @ observed.astype(np.float64)
    return np.where(count > 0, dense(groups @ x) / np.where(count > 0, count, 1.0), mean)


def spread_out(
    x: Any,
    observed: np.ndarray | None,
    w: np.ndarray,
    k: int,
    first: np.ndarray,
    apart: float | None,
    metric: Metric,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows, in random order, that are at least `apart` from the first centre and from all before: k − 1 of them.

    None: half the distance of the last when each is the farthest. Then each of those is within less than half of their
    distance of a centre, and no two of the same: so there are k.
    """
    weight = w if observed is None else w * observed.any(axis=1)
    order = rng.permutation(np.flatnonzero(weight > 0))
    rows, seen = x[order], None if observed is None else observed[order].astype(x.dtype)
    own, start = squares(rows), metric.pairs(rows, seen, first)[:, 0]

    def nearer(near: np.ndarray, i: int) -> np.ndarray:
        return np.minimum(near, metric.pairs(rows, seen, dense(rows[[i]]), own)[:, 0])

    def traverse(cost: float) -> list[int]:
        found: list[int] = []
        near, at = start, 0
        while len(found) < k - 1 and (near[at:] >= cost).any():
            at += int(np.argmax(near[at:] >= cost))
            found.append(at)
            near, at = nearer(near, at), at + 1
        return found

    if apart is not None:
        index = traverse(metric.cost_of(apart))
        if len(index) < k - 1:
            raise ValueError(
                f"init='spread': only {len(index) + 1} of {k} centres are apart={apart} from each other: make it "
                "smaller, or leave it out"
            )
        return np.asarray(order[index])
    near, far = start, np.inf
    for _ in range(k - 1):
        i = int(np.argmax(near))
        far, near = float(near[i]), nearer(near, i)
    cost = (1 - 1e-6) * far / 2**metric.power if k > 1 else 0.0
    index = traverse(cost)
    while len(index) < min(k - 1, len(order)):  # with missing cells there is no triangle inequality
        cost = cost / 4 if cost > 1e-9 * far else 0.0
        index = traverse(cost)
    return np.asarray(order[np.resize(index, k - 1)] if index else rng.choice(order, k - 1))
