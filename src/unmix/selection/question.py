"""What is asked: a model of which k, on which rows; and what every criterion needs to know about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from unmix.engine.draws import generator
from unmix.engine.sources import as_source
from unmix.model.capabilities import Geometry, Groups
from unmix.selection.asked import SIZES
from unmix.selection.columns import few

DENSE_CELLS = 1 << 26  # that may be held as dense rows
LIKENESS_ROWS = 2000  # of data and of its structureless likenesses, where the two are compared


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
    known: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # model and fit, by k
    told: dict[Any, np.ndarray] = field(default_factory=dict)  # evidence, by model

    @property
    def models(self) -> list[Any]:
        """The fitted models, by k."""
        return [self.known[k][0] for k in self.ks]

    @property
    def fits(self) -> list[Any]:
        """Their fits."""
        return [self.known[k][1] for k in self.ks]

    @property
    def weight(self) -> np.ndarray:
        """Weights of the rows; ones where none are given."""
        return np.ones(self.source.n) if self.w is None else self.w

    def sized(self, k: int) -> Any:
        """An unfitted model of k parts."""
        return clone(self.model).set_params(**{self.name: k})

    def rows(self, most: int) -> tuple[np.ndarray, np.ndarray | None]:
        """At most this many rows that count, drawn by global index, as dense rows, and their weights."""
        index = np.flatnonzero(self.weight > 0)
        most = max(min(most, DENSE_CELLS // self.source.d), 100)
        if len(index) > most and not self.pairwise:
            index = np.sort(generator(self.seed, "rows").choice(index, most, replace=False))
        every = self.pairwise or len(index) == self.source.n
        x = self.source.read(0, self.source.n) if every else self.source.take(index)
        return np.asarray(x.toarray() if sp.issparse(x) else x), self.w if every or self.w is None else self.w[index]

    def labels(self, x: np.ndarray) -> list[np.ndarray]:
        """Labels of `rows` for each k: of all rows those of the fit, which keep its limits."""
        whole = len(x) == self.source.n
        rows = as_source(x)  # which has no names of columns to complain about
        kept = [m.kept_labels if whole else None for m in self.models]
        return [m.predict(rows) if own is None else own for m, own in zip(self.models, kept, strict=True)]

    @property
    def groups(self) -> bool:
        """Whether k is a number of groups, about which rows without groups say something."""
        return isinstance(self.model, Groups) and self.name in SIZES

    @property
    def pairwise(self) -> bool:
        """Whether X is not rows but what each pair of rows has to do with each other."""
        return isinstance(self.model, Geometry) and self.model.space.pairwise

    @property
    def free(self) -> dict[str, Any]:
        """Parameters that lift limits on the sizes of clusters, and starts that were given for one k."""
        given, usual = self.model.get_params(deep=False), type(self.model)().get_params(deep=False)
        return {n: usual[n] for n in self.model.tied if not isinstance(given[n], str) and not callable(given[n])}

    @property
    def squared(self) -> bool:
        """Whether the loss of a clustering is a sum of squared distances."""
        return isinstance(self.model, Geometry) and self.model.space.squared

    @property
    def rowwise(self) -> bool:
        """Whether it is a clustering of rows as they are, not of directions or in the space of a kernel."""
        return isinstance(self.model, Geometry) and self.model.space.clouds

    @cached_property
    def clouds(self) -> bool:
        """Whether its clusters may be seen as Gaussians: some column holds amounts."""
        return self.rowwise and not few(self.rows(LIKENESS_ROWS)[0]).all()

    @property
    def evidence(self) -> np.ndarray:
        """Log-likelihood of all rows and, of mixtures, the entropy of their memberships, for each k."""
        return np.array([self._evidence_of(m) for m in self.models])

    def _evidence_of(self, model: Any) -> np.ndarray:
        if model not in self.told:
            out, at = np.zeros(2), 0
            for e in model.stream("evidence", self.source):
                e = np.asarray(e, dtype=np.float64)
                out[: e.shape[1]] += self.weight[at : at + len(e)] @ e
                at += len(e)
            self.told[model] = out
        return self.told[model]
