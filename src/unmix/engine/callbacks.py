"""Callbacks, progress and cancel: scikit-learn's own callback protocol, wrapped here and nowhere else."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unmix.engine.config import Settings
from unmix.engine.trace import Fit


class Passes:
    """Tells an estimator's callbacks of each pass, and hears from them whether to stop."""

    def __init__(self, estimator: Any, bare: Any, X: Any, shape: Any) -> None:
        self.estimator, self.bare, self.X, self.shape = estimator, bare, X, shape
        self.most = bare.passes(bare.route(shape))
        self.context = estimator._init_callback_context(max_subtasks=self.most)
        self.bar: Any = None

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
    if settings.progress is True or (settings.progress == "auto" and _person()):
        with _bar(passes):
            yield
    else:
        yield
    passes.end()


@contextmanager
def _bar(passes: Passes) -> Iterator[None]:
    """A rich bar that appears only for a fit that takes longer than a second."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    objective = TextColumn("objective {task.fields[objective]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), objective, TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(type(passes.estimator).__name__, total=passes.most, objective="…")
    began, shown = time.monotonic(), False

    def tell(number: int, objective: float) -> None:
        nonlocal shown
        if not shown and time.monotonic() - began > 1:
            progress.start()
            shown = True
        progress.update(task, completed=number, objective=f"{objective:.6g}")

    passes.bar = tell
    try:
        yield
    finally:
        if shown:
            progress.stop()


def _person() -> bool:
    """Whether somebody watches: a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
