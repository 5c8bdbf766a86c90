"""Runners: who computes a pass. Threads by default, serial, Dask (in `dask.py`).

A runner is opened on a source and its weights; from then on `sweep` gives the totals of a pass for several sets of
parts, `apply` the rows of a method, and z stays here, beside its block.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from unmix.engine import tree
from unmix.engine.config import Settings, get_config
from unmix.engine.layout import Run
from unmix.engine.rows import Rows, Rules, Seen, Swept, added, apply, sweep

FEW = 1 << 22  # bytes of rows that are cut into blocks and looked at once for all passes of a fit
PIECES = 4  # into which a step on large parts is cut: sums have one order, whatever the number of threads


class Ask(NamedTuple):
    """A pass to be made: several sets of parts of one model over some runs; `keep` their z."""

    model: Any
    states: dict[int, Any]
    runs: list[Run]
    keep: bool
    closing: bool = False


class Runner:
    """Threads over the runs of a source; one thread is the serial runner."""

    def __init__(self, source: Any, w: np.ndarray | None, rules: Rules, settings: Settings) -> None:
        self.source, self.w, self.rules, self.jobs = source, w, rules, settings.jobs
        self.holes: dict[int, bool] = {}
        self.few = source.in_memory and source.nbytes is not None and source.nbytes <= FEW
        self.kept: dict[Run, Rows] = {}
        self.z, self.new = Store(settings), Store(settings)

    def close(self) -> None:
        """Give back what z used."""
        self.z.clear()
        self.new.clear()

    # -- one pass --

    def sweep(self, *ask: Any) -> tuple[dict[int, Any], Seen]:
        """(stats, loss) of each set of parts over the runs, added in order; what the rows showed."""
        with one_blas_thread():
            return self.sweeps([(self, Ask(*ask))])[0]

    def sweeps(self, asks: list[tuple[Any, Ask]]) -> list[tuple[dict[int, Any], Seen]]:
        """What `sweep` gives, for several runners on one source that ask for the same runs: rows are read once.

        A fit makes many such passes, and has limited BLAS to one thread for all of them.
        """
        totals = [dict.fromkeys(ask.states) for _, ask in asks]
        seen = [Seen(False, np.False_) for _ in asks]

        runs = asks[0][1].runs

        def all_of(rows: Rows) -> list[Swept]:
            if len(runs) == 1 and len(asks) > 1 and self.jobs > 1:  # threads over the fits, where there is one run
                return list(pool(self.jobs).map(lambda a: a[0]._one(a[1], rows), asks))
            return [work._one(ask, rows) for work, ask in asks]

        with closing(self._map(all_of, runs)) as swept:  # whatever happens, nothing of this pass may run on
            for run, outs in zip(runs, swept, strict=True):
                for i, ((work, ask), out) in enumerate(zip(asks, outs, strict=True)):
                    for s, pair in zip(ask.states, out.sums, strict=True):
                        totals[i][s] = pair if totals[i][s] is None else added(ask.model, totals[i][s], pair)
                    store = work.new if ask.model.accelerate else work.z  # only then may a pass be taken back
                    for s, z in zip(ask.states, out.z or (), strict=False):
                        store.put((s, run.number), z)
                    seen[i] = seen[i] | out.seen
        return list(zip(totals, seen, strict=True))

    def _one(self, ask: Ask, rows: Rows) -> Swept:
        """One run of a pass."""
        before = [self.z.get((s, rows.run.number)) for s in ask.states] if ask.keep else None
        mine = rows if rows.holes is self.holes else self._rows(rows.run, lambda: rows.x)  # else of another's weights
        return sweep(ask.model, mine, list(ask.states.values()), before, ask.keep, ask.closing)

    def commit(self, s: int) -> None:
        """What the last pass left for this set of parts becomes what the next one finds."""
        self.z.move(self.new, s)

    def drop(self, s: int) -> None:
        """Forget what the last pass left for this set of parts."""
        self.new.forget(s)

    def forget(self, s: int) -> None:
        """This set of parts is done with: its z may go."""
        self.z.forget(s)
        self.new.forget(s)

    # -- rows --

    def apply(self, model: Any, U: Any, method: str, runs: list[Run]) -> Iterator[Any]:
        """The model's method on each block, in order."""
        with one_blas_thread(), closing(self._map(lambda rows: apply(model, rows, U, method), runs)) as parts:
            for blocks in parts:
                yield from blocks

    def blocks(self, s: int, runs: list[Run]) -> Iterator[Any]:
        """The z of each block, in order."""
        for run in runs:
            yield from self.z.get((s, run.number))

    def state(self, s: int, runs: list[Run]) -> list[list[Any]]:
        """The z of all runs, for a checkpoint."""
        return [self.z.get((s, run.number)) for run in runs]

    def restore(self, s: int, runs: list[Run], z: list[list[Any]]) -> None:
        """What `state` gave."""
        for run, blocks in zip(runs, z, strict=True):
            self.z.put((s, run.number), blocks)

    def _map(self, f: Callable[[Rows], Any], runs: list[Run]) -> Generator[Any, None, None]:
        """f over the runs in order of the runs; at most a few more under way than there are threads."""
        loads = self.source.batches([(r.start, r.stop) for r in runs])

        def job(run: Run, load: Callable[[], Any]) -> Any:
            return f(self._rows(run, load))

        jobs = zip(runs, loads, strict=True)
        if self.jobs == 1 or len(runs) == 1:
            for j in jobs:
                yield job(*j)
            return
        waiting: deque[Future[Any]] = deque()
        try:
            for j in jobs:
                waiting.append(pool(self.jobs).submit(job, *j))
                if len(waiting) > (2 * self.jobs if self.source.in_memory else self.jobs):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # an error or Ctrl-C: nothing of this pass may run on
            for future in waiting:
                future.cancel()
            for future in waiting:
                if not future.cancelled():
                    future.exception()

    def _rows(self, run: Run, load: Callable[[], Any]) -> Rows:
        if run in self.kept:
            return self.kept[run]
        w = None if self.w is None else self.w[run.start : run.stop]
        rows = Rows(run, load(), w, self.rules, self.holes)
        if self.few:
            self.kept[run] = rows = rows.kept()
        return rows


class Store:
    """z by (set of parts, run): in memory up to a budget, in files of a private folder beyond it."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.held = settings, 0
        self.items: dict[tuple[int, int], Any] = {}
        self.sizes: dict[tuple[int, int], int] = {}  # bytes of those in memory
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def budget(self) -> int:
        """Bytes that it may hold in memory; asked for when there is something to hold, since that takes a while."""
        return self.settings.budget

    def get(self, key: tuple[int, int]) -> Any:
        """The item, or None."""
        item = self.items.get(key)
        if isinstance(item, Path):
            with open(item, "rb") as f:
                return pickle.load(f)
        return item

    def put(self, key: tuple[int, int], item: Any) -> None:
        """Keep an item in place of the one before."""
        self._remove(key)
        size = sum(tree.nbytes(z) for z in item)
        if self.held + size <= self.budget:
            self.items[key], self.sizes[key] = item, size
            self.held += size
            return
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory(prefix="unmix-")
        path = Path(self.folder.name) / f"{key[0]}-{key[1]}-{len(os.listdir(self.folder.name))}"
        with open(path, "wb") as f:
            pickle.dump(item, f, protocol=5)
        self.items[key] = path

    def move(self, other: Store, s: int) -> None:
        """Take over the items of a set of parts."""
        for key in [k for k in other.items if k[0] == s]:
            item = other.get(key)
            other._remove(key)
            self.put(key, item)

    def forget(self, s: int) -> None:
        """Drop the items of a set of parts."""
        for key in [k for k in self.items if k[0] == s]:
            self._remove(key)

    def clear(self) -> None:
        """Drop everything."""
        self.items.clear()
        self.sizes.clear()
        self.held = 0
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None

    def _remove(self, key: tuple[int, int]) -> None:
        item = self.items.pop(key, None)
        self.held -= self.sizes.pop(key, 0)
        if isinstance(item, Path):
            item.unlink()


@cache
def pool(jobs: int) -> ThreadPoolExecutor:
    """The threads that all fits of this process share."""
    return ThreadPoolExecutor(jobs, thread_name_prefix="unmix")


def each(f: Callable[[int], Any]) -> None:
    """f(0) … f(PIECES − 1), on as many threads as the settings allow: for a step on large parts, outside a pass."""
    jobs = get_config().jobs
    list(map(f, range(PIECES)) if jobs == 1 else pool(jobs).map(f, range(PIECES)))


try:  # a limit can only be lifted by the thread that set it, as long as that lives: but fits end in any order
    from threadpoolctl import OpenBLASController

    set_by_anybody: Callable[..., None] = OpenBLASController.clear_controlling_thread
except (ImportError, AttributeError):  # in releases before that rule

    def set_by_anybody(force: bool = False) -> None:
        """Anybody may."""


class Blas:
    """The BLAS libraries of this process, and who wants them to use one thread.

    Fits in several threads overlap and end in any order, and other packages set such limits, too. So the first one in
    sets the limit, the last one out lifts it, and only where it is still the one that was set.
    """

    def __init__(self) -> None:
        self.libraries: list[Any] | None = None
        self.before: list[int] | None = None  # numbers of threads when the limit was set
        self.inside: set[int] = set()
        self.lock = threading.RLock()  # who waits in a generator may be collected, and leave, at any moment

    def enter(self, who: int) -> None:
        """Limit BLAS to one thread, unless somebody has."""
        with self.lock:
            if self.libraries is None:  # once: looking for the libraries takes milliseconds
                import scipy.linalg  # noqa: F401  so that SciPy's own BLAS is among those found

                known = ThreadpoolController().select(user_api="blas")
                self.libraries = known.lib_controllers
            self.inside.add(who)
            if self.before is None:
                self.before = [library.get_num_threads() for library in self.libraries]
                if self.limited:
                    self._set([1] * len(self.before))

    def leave(self, who: int) -> None:
        """Lift the limit when nobody is inside any more."""
        with self.lock:
            self.inside.discard(who)
            if self.inside or self.before is None or self.libraries is None:
                return
            if self.limited:
                now = [library.get_num_threads() for library in self.libraries]
                self._set([old if new == 1 else new for old, new in zip(self.before, now, strict=True)])
            self.before = None

    @property
    def limited(self) -> bool:
        """Whether there is a limit to set and to lift: on one core BLAS has one thread as it is."""
        return self.before != [1] * len(self.before or ())

    def _set(self, threads: list[int]) -> None:
        """Set the libraries' numbers of threads, whoever did it last, and let others do so."""
        set_by_anybody(force=True)
        for library, number in zip(self.libraries or (), threads, strict=True):
            library.set_num_threads(number)
        set_by_anybody(force=True)

    def forked(self) -> None:
        """Nobody is inside: threads do not survive a fork."""
        self.lock, self.inside = threading.RLock(), set()
        self.leave(0)


BLAS = Blas()


class one_blas_thread:  # noqa: N801
    """Limits BLAS to one thread inside a `with` block: the runner's threads share the cores, not BLAS's.

    So the bits do not depend on how many threads BLAS would have used. Ctrl-C may come between any two instructions:
    who was not let out of the block leaves when it is forgotten.
    """

    def __enter__(self) -> None:
        BLAS.enter(id(self))

    def __exit__(self, *exception: Any) -> None:
        BLAS.leave(id(self))

    def __del__(self) -> None:
        if id(self) in BLAS.inside:
            BLAS.leave(id(self))


if hasattr(os, "register_at_fork"):  # threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=pool.cache_clear)
    os.register_at_fork(after_in_child=BLAS.forked)


def runner(source: Any, w: np.ndarray | None, rules: Rules, settings: Settings) -> Any:
    """The runner that the settings ask for; a Dask collection goes to the active client if there is one."""
    wanted = settings.runner
    if wanted in ("threads", "serial") and not (wanted == "threads" and hasattr(source, "collection")):
        return Runner(source, w, rules, settings)
    from unmix.engine.dask import DaskRunner, active_client

    client = active_client(start=wanted == "dask") if isinstance(wanted, str) else wanted
    if client is None:
        return Runner(source, w, rules, settings)
    return DaskRunner(source, w, rules, settings, client)
