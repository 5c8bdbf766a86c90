"""Callbacks, progress and cancel: scikit-learn's own callback protocol, wrapped here and nowhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite, nan
from typing import Any

from unmix.engine.config import Settings
from unmix.engine.trace import Fit, Step

AFTER = 1.0  # seconds before anything is shown
_screen = threading.Lock()


class Watch:
    """Who hears of the stages and steps of a fit, and may stop it; this one does neither."""

    def stage(self, name: str, word: str, most: int) -> None:
        """A stage begins, of at most so many steps; a step is called by this word."""

    def step(self, number: int, best: Callable[[], Any], fit: Callable[[], Fit] | None) -> bool:
        """A step has ended; True to stop. `best` gives the best start so far, `fit` the fit if it ended now."""
        return False


class Callbacks(Watch):
    """Tells an estimator's callbacks, a bar if a person watches, the screen if it is verbose: fit → stage → step."""

    def __init__(self, estimator: Any, X: Any) -> None:
        self.estimator, self.X = estimator, X
        self.heard = bool(vars(estimator).get("_skl_callbacks"))
        self.context: Any = estimator._init_callback_context(max_subtasks=None) if self.heard else None
        self.every = int(estimator.verbose_interval) if estimator.verbose else 0  # steps to the next line
        self.task: Any = None
        self.bar: Callable[..., None] | None = None

    def stage(self, name: str, word: str, most: int) -> None:
        """A stage begins; the one before has ended."""
        self.name, self.word, self.most = name, word, most
        if self.bar is not None:
            self.bar(completed=0, total=most, stage=name, objective="")
        if self.heard:
            self._end_stage()
            self.task = self.context.subcontext(task_name=name, max_subtasks=most)
            self.task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def step(self, number: int, best: Callable[[], Any], fit: Callable[[], Fit] | None) -> bool:
        """A step has ended."""
        if self.bar is not None:
            objective = best().objective
            told = f"objective {objective:.6g}" if isfinite(objective) else ""
            self.bar(completed=number, total=self.most, stage=self.name, objective=told)
        if self.every and number % self.every == 0:
            print(line_of(f"{self._title()}, {self.word} {number}", best().trace))
        if not self.heard:
            return False
        task = self.task.subcontext(task_name=self.word)
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        attributes = None if fit is None else lambda: self.estimator.attributes_of(fit())
        return bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X, reconstruction_attributes=attributes))

    def ended(self, fit: Fit) -> None:
        """The fit has ended."""
        if self.every:
            print(f"{type(self.estimator).__name__} {fit.message}")

    def _title(self) -> str:
        """The estimator and, unless it is called as its steps are, the stage."""
        name = type(self.estimator).__name__
        return name if self.name == "passes" else f"{name}, {self.name}"

    def _end_stage(self) -> None:
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self.estimator, X=self.X)

    @contextmanager
    def watching(self, settings: Settings) -> Iterator[None]:
        """Begin and end of a fit for the callbacks, and a bar when a person watches."""
        if self.heard:
            self.context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        columns = ("{task.fields[stage]}", "bar", "count", "{task.fields[objective]}", "elapsed", "at most", "left")
        with _shown(type(self.estimator).__name__, None, columns, settings, stage="", objective="") as tell:
            self.bar = tell
            yield
        if self.heard:
            self._end_stage()
            self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X)


def line_of(title: str, trace: list[Step]) -> str:
    """The last step of a trace, as a line to print."""
    now = trace[-1]
    words = [title + ":"] if not isfinite(now.objective) else [f"{title}: objective {now.objective:.6g},"]
    before = next((s.objective for s in reversed(trace[:-1]) if s.accepted), nan)
    if isfinite(now.objective - before):
        words.append(f"change {now.objective - before:+.3g}{'' if now.accepted else ', rejected'},")
    return " ".join([*words, f"{now.seconds:.3g} s"])


class Interrupts:
    """How many fits of this process were ended early by Ctrl-C: a fit keeps what it has, work of many fits ends."""

    count = 0


@contextmanager
def progress_line(title: str, settings: Settings, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A line that tells a person who watches what long work is at; of a known `total`, with the time that is left.

    Such work is made of fits. Where Ctrl-C has ended one of them early, all of the work ends.
    """
    columns = (
        ("spinner", "{task.fields[stage]}", "elapsed") if total is None else ("bar", "{task.fields[stage]}", "left")
    )
    before = Interrupts.count

    def go_on() -> None:
        if Interrupts.count != before:
            raise KeyboardInterrupt

    with _shown(title, total, columns, settings, stage="") as show:

        def tell(stage: str, done: int = 0) -> None:
            go_on()
            if show is not None:
                show(stage=stage, completed=done)

        yield tell
        go_on()


@contextmanager
def _shown(
    title: str, total: int | None, columns: tuple[str, ...], settings: Settings, **fields: Any
) -> Iterator[Callable[..., None] | None]:
    """Progress by rich, when a person watches, that appears only for what takes longer."""
    wanted = settings.progress is True or (settings.progress == "auto" and _person())
    if not wanted or not _screen.acquire(blocking=False):  # one at a time: that of the work that others are a part of
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    known: dict[str, tuple[Any, ...]] = {
        "bar": (BarColumn(),),
        "count": (MofNCompleteColumn(),),
        "spinner": (SpinnerColumn(),),
        "elapsed": (TimeElapsedColumn(),),
        "left": (TimeRemainingColumn(), TextColumn("left")),
    }
    parts = [part for c in columns for part in known.get(c, (TextColumn(c),))]
    progress = Progress(TextColumn("{task.description}"), *parts, console=Console(stderr=True), transient=True)
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
