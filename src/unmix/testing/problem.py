"""What a law is asked of: a model's own example, fitted in several ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone

from unmix.engine.block import Block
from unmix.engine.config import config
from unmix.engine.layout import Run
from unmix.engine.rows import Rows, Rules, added


class Problem:
    """The planted problem of a model: `example(rng)`.

    Parameters
    ----------
    cls : type
        The class of the model.
    random_state : int
        Seed of the generator that `example` gets.
    client : distributed.Client, optional
        A Dask cluster, for laws that ask for one.

    Attributes
    ----------
    check : callable
        Raises where a fitted model did not find the planted parts.
    """

    def __init__(self, cls: Any, random_state: int = 0, client: Any = None) -> None:
        try:
            self._model, X, self.check = cls.example(np.random.default_rng(random_state))
        except NotImplementedError as error:
            raise TypeError(
                f"{cls.__name__} has no example for the laws to run on: write the class method example(rng) that gives "
                "a model, X, and a function that raises where the fitted model did not find the parts planted in X"
            ) from error
        self.cls, self._client = cls, client
        self._X = np.asarray(X, dtype=np.float64)
        self._fits: dict[Any, Any] = {}

    @property
    def X(self) -> np.ndarray:  # noqa: N802  the name of the equations
        """The rows: a copy for each law, since a model that breaks one may write into it."""
        return self._X.copy()

    def model(self, **wanted: Any) -> Any:
        """An unfitted model, with the parameters wanted where it has them."""
        model = clone(self._model)
        own = model.get_params(deep=False)
        return model.set_params(**{name: value for name, value in wanted.items() if name in own})

    def fitted(self, **settings: Any) -> Any:
        """The model fitted to the rows with these settings of `unmix.config`, once for all laws: change nothing."""
        key = tuple(sorted(settings.items()))
        if key not in self._fits:
            with config(**settings):
                self._fits[key] = self.model().fit(self.X)
        return self._fits[key]

    def early(self, X: Any) -> tuple[Any, Any]:
        """A working copy of the model, and typical parts: those of a fit that ended early."""
        model = self.model(max_iter=2).fit(X)
        return model.at(model.shape), model.parts

    def blocks(self, X: Any, edges: tuple[int, ...] = (), w: Any = None) -> list[Block]:
        """X as blocks that end at the edges."""
        rules = Rules(self.cls.missing, self.cls.nonnegative, self.cls.__name__)
        return list(Rows(Run(0, edges or (0, X.shape[0])), X, w, rules, {}).blocks())

    @contextmanager
    def cluster(self) -> Iterator[Any]:
        """The Dask client given, the active one, or workers inside this process for as long as it is used."""
        from distributed import Client, LocalCluster

        from unmix.engine.dask import active_client

        client = self._client or active_client(start=False)
        if client is not None:
            yield client
            return
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as local,
            Client(local, set_as_default=False) as client,
        ):
            yield client


def total(model: Any, U: Any, blocks: list[Block]) -> Any:
    """(stats, loss) of the blocks together, as the engine adds them up."""
    sums: Any = None
    for b in blocks:
        out = model.local(U, b)
        sums = added(model, sums, (out.stats, out.loss))
    return sums


def steps_of(model: Any) -> int:
    """How many steps a fitted model made in all stages."""
    return len(model.trace_) + sum(len(stage.trace) for stage in model.stages_)
