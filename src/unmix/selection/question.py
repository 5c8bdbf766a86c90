"""What is asked: a model of which k, on which rows; and what every criterion needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from unmix.engine.sample import generator
from unmix.engine.sources import as_source

SQUARED = ("euclidean", "mahalanobis", "cosine")  # metrics of k-means whose loss is squares
CELLS = 1 << 26  # that may be held as dense rows
ROWS = 2000  # of data and of its structureless likenesses, where the two are compared
FEW = 10  # different whole numbers that are kinds rather than amounts
PLAIN = ("euclidean", "l2", "mahalanobis", "manhattan", "cityblock", "l1")  # metrics whose clusters are clouds of rows


@dataclass
class Question:
    """What is asked: a model of which k, on which rows."""

    model: Any
    name: str  # of the hyper-parameter that is k
    ks: list[int]
    source: Any
    w: np.ndarray | None
    seed: int
    folds: int
    references: int
    models: list[Any]
    fits: list[Any]

    @property
    def weight(self) -> np.ndarray:
        """Weights of the rows, ones where there are none."""
        return np.ones(self.source.n) if self.w is None else self.w

    def sized(self, k: int) -> Any:
        """An unfitted model of k parts."""
        return clone(self.model).set_params(**{self.name: k})

    def rows(self, most: int) -> tuple[np.ndarray, np.ndarray | None]:
        """At most so many rows that count, drawn by global index, as dense rows, and their weights."""
        index = np.flatnonzero(self.weight > 0)
        most = max(min(most, CELLS // self.source.d), 100)
        if len(index) > most and not self.pairwise:
            index = np.sort(generator(self.seed, "rows").choice(index, most, replace=False))
        every = self.pairwise or len(index) == self.source.n
        x = self.source.read(0, self.source.n) if every else self.source.take(index)
        return np.asarray(x.toarray() if sp.issparse(x) else x), self.w if every or self.w is None else self.w[index]

    def labels(self, x: np.ndarray) -> list[np.ndarray]:
        """Labels of `rows` for each k: of all rows those of the fit, which keep its limits."""
        whole = len(x) == self.source.n
        rows = as_source(x)  # which has no names of columns to complain about
        return [m.labels_ if whole and hasattr(m, "labels_") else m.predict(rows) for m in self.models]

    @property
    def pairwise(self) -> bool:
        """Whether X is not rows but what each pair of rows has to do with each other."""
        return "precomputed" in (getattr(self.model, "metric", None), getattr(self.model, "kernel", None))

    @property
    def free(self) -> dict[str, Any]:
        """Parameters that lift limits on the sizes of clusters, and starts that were given for one k."""
        given, usual = self.model.get_params(deep=False), type(self.model)().get_params(deep=False)
        named = ("min_size", "max_size", "fixed", "weights_init", "means_init", "precisions_init", "resp_init")
        free = {name: usual[name] for name in named if name in given}
        if not isinstance(given.get("init", ""), str) and not callable(given["init"]):
            free["init"] = usual["init"]
        return free

    @property
    def squared(self) -> bool:
        """Whether the loss of a clustering is a sum of squared distances."""
        metric, medoids = getattr(self.model, "metric", "euclidean"), hasattr(self.model, "method")  # plain distances
        return not hasattr(self.model, "log_density") and not medoids and metric in SQUARED

    @property
    def rowwise(self) -> bool:
        """Whether it is a clustering of rows as they are, not of directions or in the space of a kernel."""
        m = self.model
        grouping = hasattr(m, "assign") and not hasattr(m, "log_density") and not hasattr(m, "kernel")
        return grouping and getattr(m, "metric", "euclidean") in PLAIN

    @cached_property
    def clouds(self) -> bool:
        """Whether its clusters may be seen as Gaussians: no column holds kinds."""
        return self.rowwise and not few(self.rows(ROWS)[0]).any()

    @cached_property
    def evidence(self) -> np.ndarray:
        """Log-likelihood of all rows and, of mixtures, the entropy of their memberships, for each k."""
        out = np.zeros((len(self.ks), 2))
        for i, m in enumerate(self.models):
            at = 0
            for e in m._stream("evidence" if hasattr(m, "evidence") else "log_density", self.source):
                e = np.asarray(e, dtype=np.float64).reshape(len(e), -1)
                out[i, : e.shape[1]] += self.weight[at : at + len(e)] @ e
                at += len(e)
        return out


def few(x: np.ndarray) -> np.ndarray:
    """Which columns hold few different whole numbers."""
    whole = (np.isnan(x) | (x == np.round(x))).all(axis=0)
    return np.array([bool(v) and 1 < len(np.unique(c[~np.isnan(c)])) <= FEW for v, c in zip(whole, x.T, strict=True)])
