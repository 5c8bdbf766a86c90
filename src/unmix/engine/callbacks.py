"""Callbacks, progress and cancel: scikit-learn's own callback protocol, wrapped here and nowhere else."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from unmix.engine.config import Settings
from unmix.engine.trace import Fit

AFTER = 1.0  # seconds before anything is shown
_screen = threading.Lock()


class Passes:
    """Tells an estimator's callbacks of each pass, and hears from them whether to stop."""

    def __init__(self, estimator: Any, bare: Any, X: Any, shape: Any) -> None:
        self.estimator, self.bare, self.X, self.shape = estimator, bare, X, shape
        self.most = bare.passes(bare.route(shape))
        self.context = estimator._init_callback_context(max_subtasks=self.most)
        self.bar: Callable[[int, float], None] | None = None

    def begin(self) -> None:
        """The fit begins."""
        self.context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def __call__(self, number: int, best: Any) -> bool:
        """A pass has ended; True to stop. `best` gives the best start so far, for callbacks that ask for a model."""
        if self.bar is not None:
            self.bar(number, best().objective)
        task = self.context.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        stop = task.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, reconstruction_attributes=lambda: self._attributes(best())
        )
        return bool(stop)

    def end(self) -> None:
        """The fit has ended."""
        self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X)

    def _attributes(self, start: Any) -> dict[str, Any]:
        """The fitted attributes of the best parts so far, as if the fit had stopped here."""
        shadow = copy.copy(self.estimator)
        last = start.trace[-1]
        shadow._shape = self.bare._shape
        shape = self.shape
        loss = last.objective * shape.weight
        shadow._finish(
            Fit(
                start.U,
                None,
                loss,
                last.objective,
                shape.weight,
                shape.n,
                shape.dtype,
                [*start.trace],
                "stopped",
                "",
                start.stats,
            )
        )
        return {k: v for k, v in shadow.__dict__.items() if k.endswith("_") or k == "_shape"}


@contextmanager
def watched(passes: Passes, settings: Settings) -> Iterator[None]:
    """Begin and end of a fit for the callbacks, and a bar when a person watches."""
    passes.begin()
    columns = ("bar", "count", "objective {task.fields[objective]}")
    with _shown(type(passes.estimator).__name__, passes.most, columns, settings, objective="…") as tell:
        passes.bar = lambda number, objective: tell(completed=number, objective=f"{objective:.6g}")
        yield
    passes.end()


@contextmanager
def stages(title: str, settings: Settings) -> Iterator[Callable[[str], None]]:
    """A line that tells a person who watches what long work is at."""
    with _shown(title, None, ("spinner", "{task.fields[stage]}"), settings, stage="") as tell:
        yield lambda stage: tell(stage=stage)


@contextmanager
def _shown(
    title: str, total: int | None, columns: tuple[str, ...], settings: Settings, **fields: Any
) -> Iterator[Callable[..., None]]:
    """Progress by rich, when a person watches, that appears only for what takes longer."""
    wanted = settings.progress is True or (settings.progress == "auto" and _person())
    if not wanted or not _screen.acquire(blocking=False):  # one at a time: that of the work that others are a part of
        yield lambda **news: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    known = {"bar": BarColumn, "count": MofNCompleteColumn, "spinner": SpinnerColumn}
    parts = [known[c]() if c in known else TextColumn(c) for c in columns]
    text = TextColumn("{task.description}")
    progress = Progress(text, *parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = progress.add_task(title, total=total, **fields)
    timer = threading.Timer(AFTER, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda **news: progress.update(task, **news)
    finally:
        timer.cancel()
        progress.stop()
        _screen.release()


def _person() -> bool:
    """Whether somebody watches: a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
