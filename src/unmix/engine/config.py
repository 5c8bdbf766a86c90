"""Settings of the engine, as opposed to those of a model, in one place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

MEMORY_READING_LASTS = 0.1  # seconds: asking the system takes longer than a round of a small fit


@dataclass(frozen=True)
class Settings:
    """What the engine may use and what it shows.

    Attributes
    ----------
    runner : {"threads", "serial", "dask"} or distributed.Client
        Who computes. "dask" takes the client that is active, or starts one on this machine.
    n_jobs : int or None
        Threads; None or -1 for every core that this process may use.
    block_rows : int or None
        Rows in a block; None for about 1 MiB of them. Same data, seed and block size: same bits.
    memory_budget : int, float or None
        Bytes that a fit may hold besides the data (an int), or that share of the free memory (a float);
        None for half of it. What each row's z needs beyond it goes to disk.
    progress : {"auto"} or bool
        A progress bar; "auto" shows one when somebody is watching (a terminal or a notebook).
    checkpoint : str, Path or None
        File that keeps the state of a running fit. After a crash the same call resumes from it.
    checkpoint_seconds : float
        Minimum time between two checkpoints.
    acceleration : bool
        Whether slow fixed points are extrapolated, where the model allows it and the objective agrees.
    """

    runner: Any = "threads"
    n_jobs: int | None = None
    block_rows: int | None = None
    memory_budget: int | float | None = None
    progress: Any = "auto"
    checkpoint: str | Path | None = None
    checkpoint_seconds: float = 30.0
    acceleration: bool = True

    def __post_init__(self) -> None:
        """Refuse values that no fit could use, before one tries to."""
        if isinstance(self.runner, str) and self.runner not in ("threads", "serial", "dask"):
            raise ValueError(f"runner={self.runner!r}: choose 'threads', 'serial', 'dask' or give a distributed.Client")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, int) or self.n_jobs == 0 or self.n_jobs < -1):
            raise ValueError(f"n_jobs={self.n_jobs!r}: give a number of threads, or None for every core")
        if self.block_rows is not None and (not isinstance(self.block_rows, int) or self.block_rows < 1):
            raise ValueError(f"block_rows={self.block_rows!r}: give a positive number of rows, or None")
        number = (int, float, np.integer, np.floating)
        if self.memory_budget is not None and not (isinstance(self.memory_budget, number) and self.memory_budget > 0):
            raise ValueError(f"memory_budget={self.memory_budget!r}: give bytes, a share of the free memory, or None")
        if not isinstance(self.checkpoint_seconds, number) or self.checkpoint_seconds < 0:
            raise ValueError(f"checkpoint_seconds={self.checkpoint_seconds!r}: give a number of seconds, 0 or more")
        if self.progress not in ("auto", True, False):
            raise ValueError(f"progress={self.progress!r}: choose 'auto', True or False")

    @property
    def jobs(self) -> int:
        """Threads to use."""
        if self.runner == "serial":
            return 1
        return cores() if self.n_jobs in (None, -1) else int(self.n_jobs or 1)

    @property
    def budget(self) -> int:
        """Bytes that a fit may hold besides the data."""
        if isinstance(self.memory_budget, (int, np.integer)):
            return int(self.memory_budget)
        return int((self.memory_budget or 0.5) * free_memory())


_global = Settings()
_local: ContextVar[Settings | None] = ContextVar("unmix_settings", default=None)
_names = {f.name for f in fields(Settings)}
_free = -1.0, 0  # when free memory was read last, and what it was


def get_config() -> Settings:
    """Return the settings in force.

    Returns
    -------
    settings : Settings

    Examples
    --------
    >>> import unmix
    >>> unmix.get_config().runner
    'threads'
    """
    return _local.get() or _global


def set_config(**settings: Any) -> None:
    """Change the settings for the whole process.

    Parameters
    ----------
    **settings
        As for `config`.

    Examples
    --------
    >>> import unmix
    >>> before = unmix.get_config().checkpoint_seconds
    >>> unmix.set_config(checkpoint_seconds=5)
    >>> unmix.get_config().checkpoint_seconds
    5
    >>> unmix.set_config(checkpoint_seconds=before)
    """
    global _global
    _global = _with(_global, settings)


@contextmanager
def config(**settings: Any) -> Iterator[Settings]:
    """Change the settings inside a `with` block.

    Parameters
    ----------
    **settings
        Any of `runner`, `n_jobs`, `block_rows`, `memory_budget`, `progress`, `checkpoint`,
        `checkpoint_seconds`, `acceleration`: see `Settings`.

    Examples
    --------
    >>> import unmix
    >>> with unmix.config(n_jobs=1, progress=False) as settings:
    ...     settings.jobs
    1
    """
    token = _local.set(_with(get_config(), settings))
    try:
        yield get_config()
    finally:
        _local.reset(token)


def _with(base: Settings, settings: dict[str, Any]) -> Settings:
    unknown = sorted(set(settings) - _names)
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not a setting: the settings are {', '.join(sorted(_names))}")
    return replace(base, **settings)


def free_memory() -> int:
    """Bytes of memory that are free for new work, as read no longer than a tenth of a second ago."""
    global _free
    now = time.monotonic()
    if now - _free[0] > MEMORY_READING_LASTS:
        _free = now, read_free_memory()
    return _free[1]


def read_free_memory() -> int:
    """What the system says."""
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
