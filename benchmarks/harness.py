"""How a case is measured and how the outcome is told.

A case builds its data from a seed, has contestants, and states the quality that all of them must reach. Every
contestant lives in a process of its own, which builds the data, warms up on a small fit and then waits: so no library
patches another, imports and compilation are not timed, and only one contestant computes at a time. They run in turn,
A B A B.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.metadata
import importlib.util
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from benchmarks.processor import LIMITED, limit_onedal

OURS = "unmix"
LEVEL = 0.95  # "level with" a rival: at least this ratio, as two runs of one program differ by so much
PAUSE = 0.25  # seconds between two contestants: idle OpenMP threads spin for up to 0.2 s
PATIENCE = 900.0  # seconds after which a contestant is given up
ENOUGH = 12.0  # seconds of one contestant in one case after which it is not repeated


# ------------------------------------------------------------------------------------------- what a case says


class Quality(NamedTuple):
    """What all contestants must reach: a number, where less is better unless `higher`."""

    name: str
    higher: bool = False
    slack: float = 1e-6  # relative
    goal: float | None = None  # None: what the case's reference reaches

    def reached(self, value: float, goal: float) -> bool:
        """Whether a value is as good as the goal, up to the slack."""
        return self.gap(value, goal) <= self.slack

    def gap(self, value: float, goal: float) -> float:
        """How much worse than the goal a value is, relative to the goal; negative where it is better."""
        if not math.isfinite(value):
            return math.inf
        worse = goal - value if self.higher else value - goal
        return worse / abs(goal) if goal else worse


class Target(NamedTuple):
    """The ratio of time that we aim at: the fastest of the rivals over ours."""

    ratio: float
    rivals: tuple[str, ...]

    def __str__(self) -> str:
        who = self.rivals[0] if len(self.rivals) == 1 else "the fastest of " + ", ".join(self.rivals)
        return f"level with {who}" if self.ratio == 1 else f"{self.ratio:g}× {who}"

    @property
    def least(self) -> float:
        """The least ratio that counts as met."""
        return LEVEL if self.ratio == 1 else self.ratio


class Goal(NamedTuple):
    """What the reference reached, in how many passes (None where it does not say), and who it was."""

    quality: float
    passes: int | None = None
    whose: str = ""


class Contestant(NamedTuple):
    """A way to do the job of a case: a method `build(case, data, goal) -> (fit, read)`.

    `fit()` is timed; `read(fitted)` turns what it returns into a dict that the case can score. `goal` is None in the
    warm-up and for the reference; for the others a contestant may use it to find out, untimed, how long it must run.
    """

    name: str
    build: Callable[..., tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]]
    needs: str = ""  # the module that it cannot do without
    note: str = ""


def contestant(name: str, needs: str = "", note: str = "") -> Callable[[Any], Any]:
    """Mark a method of a case as a contestant."""

    def mark(build: Any) -> Any:
        build.contestant = Contestant(name, build, needs, note)
        return build

    return mark


@dataclass
class Case:
    """A job, the contestants that do it, and what is asked of ours.

    Subclasses define `data` and `score` and mark their contestants.
    """

    name: str
    title: str
    quality: Quality
    targets: tuple[Target, ...] = ()
    reference: str | None = None  # the contestant whose quality is the goal
    without: tuple[str, ...] = ()  # contestants that do not take part in this case

    def data(self, size: str) -> Any:
        """The data, from a seed; size is "full", "quick" or "warm"."""
        raise NotImplementedError

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """The quality of a result, by one yardstick for all contestants."""
        raise NotImplementedError

    def goal(self, data: Any, run: Callable[[], Goal]) -> Goal:
        """The goal, asked in the reference's process: what `run`, a run of the reference to its own stop, reaches."""
        return run()

    def contestants(self) -> dict[str, Contestant]:
        """Every contestant of the case, ours first."""
        found = [
            v.contestant for c in reversed(type(self).__mro__) for v in vars(c).values() if hasattr(v, "contestant")
        ]
        found = [c for c in found if c.name not in self.without]
        return {c.name: c for c in sorted(found, key=lambda c: not c.name.startswith(OURS))}

    def measure(self, size: str = "full", repeat: int = 3, only: Iterable[str] | None = None) -> Report:
        """Run the contestants in turn and report."""
        return _measure(self, size, repeat, only)


# ------------------------------------------------------------------------------------------- the outcome


class Run(NamedTuple):
    """One timed fit."""

    seconds: float
    peak: float  # bytes above what the process held before the fit
    quality: float
    passes: int | None


@dataclass
class Row:
    """What one contestant did."""

    name: str
    runs: list[Run] = field(default_factory=list)
    problem: str = ""  # why there are no runs
    note: str = ""

    @property
    def best(self) -> float:
        """Seconds of the fastest run."""
        return min((r.seconds for r in self.runs), default=math.nan)

    @property
    def median(self) -> float:
        """Seconds of the median run."""
        return statistics.median(r.seconds for r in self.runs) if self.runs else math.nan

    @property
    def peak(self) -> float:
        """Bytes of the hungriest run."""
        return max((r.peak for r in self.runs), default=math.nan)

    def quality(self, higher: bool) -> float:
        """The worst quality of all runs."""
        return (min if higher else max)((r.quality for r in self.runs), default=math.nan)


class Verdict(NamedTuple):
    """A target beside what was measured."""

    target: str
    measured: str
    met: bool | None  # None: nothing to compare with, or data too small to judge by


@dataclass
class Report:
    """The outcome of a case."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    verdicts: list[Verdict]
    notes: list[str] = field(default_factory=list)
    broken: bool = False  # ours did not run, or did not reach the quality

    def __str__(self) -> str:
        lines = [f"### {self.title}", "", table(self.head, self.rows), ""]
        lines += [f"- target: {v.target}; measured {v.measured}: {said(v.met)}" for v in self.verdicts]
        lines += [f"- {note}" for note in self.notes]
        return "\n".join(lines) + "\n"


def said(met: bool | None) -> str:
    """The verdict in a word."""
    return "not judged" if met is None else "**met**" if met else "**missed**"


def judge(target: Target, rows: dict[str, Row], goal: float, quality: Quality) -> Verdict:
    """The fastest rival that reached the quality, over ours; missed where ours did not reach it."""
    ours = rows[OURS]
    if not ours.runs:
        return Verdict(str(target), "nothing: ours failed", False)
    if not quality.reached(ours.quality(quality.higher), goal):
        return Verdict(str(target), "ours did not reach the quality", False)
    rivals = [rows[r] for r in target.rivals if r in rows and rows[r].runs]
    rivals = [r for r in rivals if quality.reached(r.quality(quality.higher), goal)]
    if not rivals:
        return Verdict(str(target), "no rival that ran reached the quality", None)
    fastest = min(rivals, key=lambda r: r.best)
    ratio = fastest.best / ours.best
    return Verdict(str(target), f"{ratio:.2f}× {fastest.name}", ratio >= target.least)


def report(case: Case, rows: dict[str, Row], goal: Goal | None, judged: bool = True) -> Report:
    """The table of a case, its verdicts and its notes."""
    quality, value = case.quality, math.nan if goal is None else goal.quality
    ours = rows.get(OURS, Row(OURS))
    head = (
        "contestant",
        "best s",
        "median s",
        "time / ours",
        "peak MB",
        "memory / ours",
        "passes",
        quality.name,
        "reached",
        "runs",
    )
    lines = []
    for row in rows.values():
        if not row.runs:
            lines.append(
                (row.name, "–" if row.problem.endswith("not installed") else "failed", *[""] * (len(head) - 2))
            )
            continue
        got = row.quality(quality.higher)
        reached = quality.reached(got, value)
        lines.append(
            (
                row.name,
                f"{row.best:.3g}",
                f"{row.median:.3g}",
                ratio(row.best, ours.best),
                "–" if math.isnan(row.peak) else f"{row.peak / 1e6:.0f}",
                ratio(row.peak, ours.peak) if ours.peak >= 1e6 else "–",  # below a page or so a ratio says nothing
                "–" if row.runs[-1].passes is None else str(row.runs[-1].passes),
                f"{got:.7g}",
                "yes" if reached else f"no, by {quality.gap(got, value):.1e}",
                str(len(row.runs)),
            )
        )
    better = "at least" if quality.higher else "at most"
    whose = f" (set by {goal.whose})" if goal is not None and goal.whose else ""
    notes = [f"quality asked of all: {quality.name} {better} {value:.7g}{whose}"]
    notes += [f"{r.name}: {r.problem or r.note}" for r in rows.values() if r.problem or (r.note and r.runs)]
    verdicts = [judge(t, rows, value, quality) for t in case.targets] if OURS in rows else []
    if not judged:
        verdicts = [v._replace(met=None) for v in verdicts]
    broken = OURS in rows and not (ours.runs and quality.reached(ours.quality(quality.higher), value))
    return Report(case.name, case.title, head, lines, verdicts, notes, broken)


def ratio(a: float, b: float) -> str:
    """A ratio to three digits."""
    return "–" if not (b > 0 and math.isfinite(a)) else f"{a / b:.2f}" if a / b < 100 else f"{a / b:.0f}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table whose columns are also aligned on a terminal."""
    widths = [max(len(c) for c in column) for column in zip(head, *rows, strict=True)]

    def line(cells: Iterable[str]) -> str:
        padded = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


# ------------------------------------------------------------------------------------------- measuring


def _measure(case: Case, size: str, repeat: int, only: Iterable[str] | None) -> Report:
    rows: dict[str, Row] = {}
    workers: dict[str, Worker] = {}
    for name, who in case.contestants().items():
        if only is not None and name not in only:
            continue
        rows[name] = Row(name, note=who.note)
        if who.needs and importlib.util.find_spec(who.needs) is None:
            rows[name].problem = f"{who.needs} is not installed"
        else:
            workers[name] = Worker(case, name, size)
    try:
        for name, worker in workers.items():
            rows[name].problem = worker.hear()
            if worker.answer and not rows[name].problem:
                rows[name].note = "; ".join(filter(None, [rows[name].note, worker.answer]))
        live = [n for n in workers if not rows[n].problem]
        goal, first = _goal(case, rows, workers, live)
        for name in [n for n in live if n != first]:
            rows[name].problem = workers[name].ask("prepare", goal)
        for _ in range(repeat):
            for name in live:
                row = rows[name]
                spent = sum(r.seconds for r in row.runs)
                if row.problem or len(row.runs) >= repeat or (row.runs and spent + row.best > ENOUGH):
                    continue
                time.sleep(PAUSE)
                row.problem = workers[name].ask("run")
                if not row.problem:
                    row.runs.append(workers[name].answer)
        return report(case, rows, goal, judged=size == "full")
    finally:
        for worker in workers.values():
            worker.close()


def _goal(
    case: Case, rows: dict[str, Row], workers: dict[str, Worker], live: list[str]
) -> tuple[Goal | None, str | None]:
    """The goal, and the contestant that set it; its run counts as its first."""
    if case.quality.goal is not None:
        return Goal(case.quality.goal), None
    name = case.reference if case.reference in live else None
    if name is None:  # the reference is not installed: whoever ran first sets the goal
        name = next((n for n in live if not n.startswith(OURS)), live[0] if live else None)
    if name is None:
        return None, None
    rows[name].problem = workers[name].ask("goal")
    if rows[name].problem:
        return None, name
    goal, run = workers[name].answer
    if run is not None:
        rows[name].runs.append(run)
    return goal._replace(whose=name), name


class Worker:
    """The parent's end of a contestant's process."""

    def __init__(self, case: Case, name: str, size: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, case, name, size))
        self.process.start()
        theirs.close()
        self.answer: Any = None

    def ask(self, *command: Any) -> str:
        """Send a command; the problem with it, or "" with the answer in `answer`."""
        try:
            self.pipe.send(command)
        except OSError:
            return "its process ended"
        return self.hear(watch=command[0] in ("run", "goal"))

    def hear(self, watch: bool = False) -> str:
        """Wait for the answer; meanwhile watch what processes of its own the contestant's process feeds."""
        begin, base, most = time.monotonic(), descendants(self.process.pid) if watch else 0, 0
        while not self.pipe.poll(0.05):
            if watch:
                most = max(most, descendants(self.process.pid) - base)
            if time.monotonic() - begin > PATIENCE:
                self.process.kill()
                return f"gave up after {PATIENCE:.0f} s"
            if not self.process.is_alive() and not self.pipe.poll():
                return "its process ended"
        try:
            problem, self.answer = self.pipe.recv()
        except EOFError:
            return "its process ended"
        if problem:
            print(self.answer, file=sys.stderr, flush=True)  # the whole story
            return str(problem)
        if isinstance(self.answer, Run):
            self.answer = self.answer._replace(peak=self.answer.peak + most)
        elif watch and self.answer and self.answer[1] is not None:
            self.answer = (self.answer[0], self.answer[1]._replace(peak=self.answer[1].peak + most))
        return ""

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self.pipe.send(("stop",))
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def serve(pipe: Any, case: Case, name: str, size: str) -> None:
    """The life of a contestant's process: warm up, build the data, then do as told."""
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what libraries and their processes print must not stand between our tables
    os.dup2(nowhere, 2)
    who = case.contestants()[name]
    limited = limit_onedal() if who.needs in ("sklearnex", "daal4py") else ""
    fit = read = data = None

    def one() -> Run:
        nonlocal fit
        base = settle()
        begin = time.perf_counter()
        fitted = fit()
        seconds = time.perf_counter() - begin
        peak = high_water() - base
        result = read(fitted)
        return Run(seconds, peak, float(case.score(data, result)), result.get("passes"))

    def build(goal: Goal | None) -> None:
        nonlocal fit, read
        fit, read = who.build(case, data, goal)

    def set_goal() -> tuple[Goal, Run | None]:
        build(None)
        runs: list[Run] = []

        def run() -> Goal:
            runs.append(one())
            return Goal(runs[-1].quality, runs[-1].passes)

        goal = case.goal(data, run)
        if not runs:
            build(goal)
        return goal, runs[-1] if runs else None

    def begin() -> str:
        nonlocal data
        small = case.data("warm")
        warm_fit, warm_read = who.build(case, small, None)
        case.score(small, warm_read(warm_fit()))
        data = case.data(size)
        return limited

    commands = {"goal": set_goal, "prepare": build, "run": one}
    if not answer(pipe, begin):
        return
    while True:
        try:
            command, *arguments = pipe.recv()
        except EOFError:
            return
        if command == "stop":
            return
        answer(pipe, commands[command], *arguments)


def answer(pipe: Any, f: Callable[..., Any], *arguments: Any) -> bool:
    """Send (problem, what the function returns)."""
    try:
        pipe.send(("", f(*arguments)))
        return True
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else ""
        pipe.send((f"failed: {type(error).__name__}: {first}"[:160], traceback.format_exc()))
        return False


# ------------------------------------------------------------------------------------------- memory


def settle() -> float:
    """Give back what is free, start a new high-water mark, and return the bytes that the process holds."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        return math.nan
    return status("VmRSS")


def high_water() -> float:
    """The most bytes that the process held since `settle`."""
    return status("VmHWM")


def status(key: str, pid: int | str = "self") -> float:
    """A figure of /proc, in bytes; NaN where there is none."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next(float(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))
    except (OSError, StopIteration):
        return math.nan


def descendants(pid: int | None) -> float:
    """Bytes held by the processes that a process started, and theirs."""
    total = 0.0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                for child in f.read().split():
                    held = status("VmRSS", child)
                    total += (0 if math.isnan(held) else held) + descendants(int(child))
    except OSError:
        pass
    return total


# ------------------------------------------------------------------------------------------- ours, with a goal


def passes_until(
    make: Callable[[int], Any], X: Any, most: int, enough: Callable[[Any], bool], good: Callable[[Any], bool]
) -> int:
    """How many passes our model needs to be good enough; found untimed.

    `enough` sees the fitted model after each pass of one long fit and may be rough (the objective in a trace belongs to
    the parts with which the pass began); from there the least passes whose fit is `good` are sought one by one.
    """
    passes = 0

    class Stop:
        def setup(self, estimator: Any, context: Any) -> None: ...

        def teardown(self, estimator: Any, context: Any) -> None: ...

        def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

        def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
            nonlocal passes
            if fitted_estimator is None:
                return False
            passes += 1
            return enough(fitted_estimator)

    make(most).set_callbacks(Stop()).fit(X)
    tried = range(max(1, passes - 1), min(passes + 5, most + 1))
    return next((p for p in tried if good(make(p).fit(X))), most if passes == most else passes + 5)


def least_passes(good: Callable[[int], bool], begin: int, most: int) -> int:
    """The least passes that are good enough, where more is better: doubling, then halving; `most` if none are."""
    low, high = 0, begin
    while not good(high):
        if high >= most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


# ------------------------------------------------------------------------------------------- the page


class Machine:
    """What was measured on, without names of hosts or paths."""

    packages: ClassVar = (
        "unmix", "numpy", "scipy", "numba", "scikit-learn", "scikit-learn-intelex", "faiss-cpu", "gensim", "tomotopy",
        "nimfa", "tensorly", "cmfrec", "cornac", "implicit", "scikit-surprise",
    )  # fmt: skip

    def __str__(self) -> str:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        versions = ", ".join(f"{p} {v}" for p in self.packages if (v := self.version(p)))
        return f"{cores} cores, {self.cpu()}, {self.memory()}; Python {platform.python_version()}; {versions}"

    @staticmethod
    def version(package: str) -> str:
        """The version of a package, or "" where it is not installed."""
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            if package == "unmix":
                import unmix

                return str(unmix.__version__)
            return ""

    @staticmethod
    def cpu() -> str:
        """The name that the processor gives itself."""
        try:
            with open("/proc/cpuinfo") as f:
                return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
        except (OSError, StopIteration):
            return platform.processor() or platform.machine()

    @staticmethod
    def memory() -> str:
        """The memory of the machine."""
        try:
            return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
        except (ValueError, OSError, AttributeError):
            return "memory unknown"


def summary(runs: dict[str, list[Report]]) -> str:
    """One line per target, and a column per processor."""
    found = {(r.title, v.target): {} for reports in runs.values() for r in reports for v in r.verdicts}
    for processor, reports in runs.items():
        for r in reports:
            for v in r.verdicts:
                found[r.title, v.target][processor] = f"{v.measured}: {said(v.met)}"
    rows = [(*key, *(cells.get(p, "–") for p in runs)) for key, cells in found.items()]
    return table(("case", "target", *runs), rows)


@dataclass
class Whole:
    """A whole run on one processor."""

    machine: str
    repeat: int
    minutes: float
    reports: list[Report]

    @classmethod
    def of(cls, saved: dict[str, Any]) -> Whole:
        """From JSON."""
        reports = [
            Report(**r | {"rows": [tuple(c) for c in r["rows"]], "verdicts": [Verdict(*v) for v in r["verdicts"]]})
            for r in saved["reports"]
        ]
        return cls(**saved | {"reports": reports})


def page(runs: dict[str, Whole]) -> str:
    """The whole page of results: of each processor that was measured."""
    lines = [
        "# Results",
        "",
        "Written by `python -m benchmarks`; how it is measured is told in [README.md](README.md). Ratios are the "
        "peer's figure over ours: above 1, ours is faster or smaller.",
        "",
    ]
    for processor, run in runs.items():
        lines += [
            f"- **{processor}**: {run.machine}. Best of up to {run.repeat} runs, in turn; {run.minutes:.0f} minutes."
        ]
    lines += ["", f"As a processor without AVX-512 (`--processor avx2`): {LIMITED}", ""] if len(runs) > 1 else [""]
    lines += ["## Targets", "", summary({p: run.reports for p, run in runs.items()}), ""]
    for processor, run in runs.items():
        lines += [f"## Cases, {processor}", "", "\n".join(map(str, run.reports))]
    return "\n".join(lines)


def tell(text: str = "") -> None:
    """Print at once."""
    print(text, file=sys.stdout, flush=True)
