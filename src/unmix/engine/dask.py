"""The Dask runner: blocks and their z stay in the workers' memory.

The rows of each run are made by a task, so that a lost worker's rows can be made again. A pass submits one task per
worker thread with the runs that it holds and the parts inline, and brings the runs' statistics back; they are added on
the client in the order of the runs. Each pass groups anew by who holds what, so a worker that dies costs a
recomputation and nothing else: z is the result of the pass before, which Dask makes again from its own past.
"""

from __future__ import annotations

import warnings
from asyncio import CancelledError
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine import tree
from unmix.engine.config import Settings
from unmix.engine.layout import Run
from unmix.engine.rows import Rows, Rules, Seen, added, apply, sweep
from unmix.engine.runners import Ask, one_blas_thread
from unmix.engine.sources.arrays import csr_of


def active_client(start: bool) -> Any:
    """The client that is active; else, if asked for, one on this machine that lives as long as the process."""
    try:
        from distributed import Client, default_client
    except ImportError:
        if not start:
            return None
        raise ImportError("runner='dask' needs Dask: install it with  pip install 'unmix[dask]'") from None
    try:
        return default_client()
    except ValueError:
        return Client(set_as_default=True) if start else None


class open_client:  # noqa: N801
    """What fails inside because the client was closed, or has lost its scheduler, says so."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __enter__(self) -> None:
        if self.client.status in ("closing", "closed"):
            self._refuse(None)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, (Exception, CancelledError)) and self.client.status != "running":
            self._refuse(error)

    def _refuse(self, error: BaseException | None) -> None:
        raise RuntimeError(
            f"the Dask client {self.client!r}, on which this was to run, is {self.client.status}: open a new Client "
            "and pass it as unmix.config(runner=…), or choose runner='threads'"
        ) from error


class DaskRunner:
    """Runs of a source spread over the workers of a Dask cluster."""

    def __init__(self, source: Any, w: np.ndarray | None, rules: Rules, settings: Settings, client: Any) -> None:
        self.source, self.w, self.rules, self.client = source, w, rules, client
        self.rows: dict[int, Any] = {}  # run → future of its Rows
        self.z: dict[tuple[int, int], Any] = {}  # (set of parts, run) → future of {(set of parts, run): z}
        self.new: dict[tuple[int, int], Any] = {}

    def close(self) -> None:
        """Release what the workers hold."""
        self.rows.clear()
        self.z.clear()
        self.new.clear()

    def sweeps(self, asks: list[tuple[Any, Ask]]) -> list[tuple[dict[int, Any], Seen]]:
        """What `sweep` gives for several runners on one source; they share the rows that the workers hold."""
        for work, _ in asks:
            if work.w is self.w:
                work.rows = self.rows
        return [work.sweep(*ask) for work, ask in asks]

    def sweep(
        self, model: Any, states: dict[int, Any], runs: list[Run], keep: bool, closing: bool = False
    ) -> tuple[dict[int, Any], Seen]:
        """(stats, loss) of each set of parts over the runs, added in order; what the rows showed."""
        with open_client(self.client):
            return self._sweep(model, states, runs, keep, closing)

    def _sweep(
        self, model: Any, states: dict[int, Any], runs: list[Run], keep: bool, closing: bool
    ) -> tuple[dict[int, Any], Seen]:
        self._load(runs)
        totals: dict[int, Any] = dict.fromkeys(states)
        seen = Seen(False, np.False_)
        state = [tree.settle(U, self.source.dtype) for U in states.values()]
        order = list(states)
        swept: dict[int, Any] = {}
        with _quiet():
            pairs = []
            for worker, group in self._groups(runs):
                past = {k: self.z[k] for r in group for s in order if (k := (s, r.number)) in self.z} if keep else {}
                inputs = [self.rows[r.number] for r in group]
                options = {"workers": [worker], "allow_other_workers": True, "pure": False}
                task = (model, inputs, order, state, list(past), list(past.values()), keep, closing)
                both = self.client.submit(_sweep_group, *task, **options)
                pairs.append((group, both, self.client.submit(_first, both, **options)))
            for group, both, sums in pairs:
                for run, (result, look) in zip(group, sums.result(), strict=True):
                    swept[run.number] = result
                    seen = seen | look
                    if keep:
                        self.new.update({(s, run.number): both for s in order})
        for run in runs:
            for s, pair in zip(order, swept[run.number], strict=True):
                totals[s] = added(model, totals[s], pair)
        return totals, seen

    def commit(self, s: int) -> None:
        """What the last pass left for this set of parts becomes what the next one finds."""
        for key in [k for k in self.new if k[0] == s]:
            self.z[key] = self.new.pop(key)

    def drop(self, s: int) -> None:
        """Forget what the last pass left for this set of parts."""
        for key in [k for k in self.new if k[0] == s]:
            del self.new[key]

    def forget(self, s: int) -> None:
        """This set of parts is done with: its z may go."""
        self.drop(s)
        for key in [k for k in self.z if k[0] == s]:
            del self.z[key]

    def apply(self, model: Any, U: Any, method: str, runs: list[Run]) -> Iterator[Any]:
        """The model's method on each block, in order."""
        with open_client(self.client), _quiet():
            self._load(runs)
            futures = [self.client.submit(_apply, model, self.rows[r.number], U, method, pure=False) for r in runs]
        for future in futures:
            with open_client(self.client):
                blocks = future.result()
            yield from blocks

    def blocks(self, s: int, runs: list[Run]) -> Iterator[Any]:
        """The z of each block, in order."""
        for z in self.state(s, runs):
            yield from z

    def state(self, s: int, runs: list[Run]) -> list[list[Any]]:
        """The z of all runs, for a checkpoint or the user."""
        with open_client(self.client):
            futures = [self.client.submit(_pick, self.z[s, r.number], (s, r.number), pure=False) for r in runs]
            return list(self.client.gather(futures))

    def restore(self, s: int, runs: list[Run], z: list[list[Any]]) -> None:
        """What `state` gave."""
        with open_client(self.client), _quiet():
            for run, blocks in zip(runs, z, strict=True):
                self.z[s, run.number] = self.client.submit(_keep, {(s, run.number): blocks}, pure=False)

    # -- where the rows are --

    def _load(self, runs: list[Run]) -> None:
        """Have every run's rows made by a task of its own, if they are not yet."""
        new = [r for r in runs if r.number not in self.rows]
        if not new:
            return
        from distributed import wait

        with _quiet(), self.client.as_current():
            for run, x in zip(new, self._pieces(new), strict=True):
                w = None if self.w is None else self.w[run.start : run.stop]
                self.rows[run.number] = self.client.submit(_make_rows, run, x, w, self.rules, pure=False)
            wait(list(self.rows.values()))

    def _pieces(self, runs: list[Run]) -> list[Any]:
        """The rows of each run: a slice of a collection, a reader for the worker to call, or the rows themselves."""
        collection = getattr(self.source, "collection", None)
        if collection is not None:
            collection = self.client.persist(collection)
            return [self.client.compute(collection[r.start : r.stop]) for r in runs]
        if self.source.in_memory:
            return [self.source.read(r.start, r.stop) for r in runs]
        if getattr(self.source, "sequential", False):
            return [load() for load in self.source.batches([(r.start, r.stop) for r in runs])]
        return [(self.source, r.start, r.stop) for r in runs]

    def _groups(self, runs: list[Run]) -> list[tuple[str, list[Run]]]:
        """The runs by the worker that holds them, one group per thread of the worker."""
        threads = self.client.nthreads()
        if not threads:  # the last worker died: its nanny may start another
            self.client.wait_for_workers(1, timeout=60)
            threads = self.client.nthreads()
        where = self.client.who_has([self.rows[r.number] for r in runs])
        held: dict[str, list[Run]] = {worker: [] for worker in threads}
        for run in runs:
            holders = [h for h in where.get(self.rows[run.number].key, ()) if h in held] or list(held)
            held[min(holders, key=lambda h: len(held[h]) / threads[h])].append(run)
        return [
            (worker, part)
            for worker, mine in held.items()
            for part in (mine[i :: threads[worker]] for i in range(threads[worker]))
            if part
        ]


def _make_rows(run: Run, x: Any, w: np.ndarray | None, rules: Rules) -> Rows:
    if isinstance(x, tuple):
        source, start, stop = x
        x = source.read(start, stop)
    if sp.issparse(x):
        data, indices, indptr = tree.settle((x.data, x.indices, x.indptr))
        x = csr_of(data, indices, indptr, x.shape)
    return Rows(run, tree.settle(x), tree.settle(w), rules, {})


def _sweep_group(
    model: Any,
    inputs: list[Rows],
    order: list[int],
    states: list[Any],
    keys: list[Any],
    past: list[Any],
    keep: bool,
    closing: bool,
) -> Any:
    """A pass over the runs of one worker thread: for each run its sums and the first look, and all their z."""
    before = {key: kept[1][key] for key, kept in zip(keys, past, strict=True)}
    sums, z, states = [], {}, [tree.settle(U) for U in states]
    with one_blas_thread():
        for rows in inputs:
            index = rows.run.number
            past_z: list[Any] | None = None
            if keep:  # what came from another worker may have any layout in memory
                past_z = [[tree.settle(b) for b in before[s, index]] if (s, index) in before else None for s in order]
            out = sweep(model, rows, states, past_z, keep, closing)
            sums.append((out.sums, out.seen))
            for s, blocks in zip(order, out.z or (), strict=False):
                z[s, index] = blocks
    return sums, z


def _first(pair: Any) -> Any:
    return pair[0]


def _pick(pair: Any, key: tuple[int, int]) -> Any:
    return pair[1][key]


def _keep(z: dict[tuple[int, int], Any]) -> Any:
    return None, z


def _apply(model: Any, rows: Rows, U: Any, method: str) -> list[Any]:
    with one_blas_thread():
        return apply(model, rows, U, method)


class _quiet(warnings.catch_warnings):  # noqa: N801
    """Rows of an array in this process travel inside their task, on purpose: so they survive their worker."""

    def __enter__(self) -> Any:
        out = super().__enter__()
        warnings.filterwarnings("ignore", message="Sending large graph")
        return out
