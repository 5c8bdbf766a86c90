"""Dask workers killed (SIGKILL) in a fit: the same bits as on one machine, or an error that says what happened."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np

import unmix
from attack.harness import Report, Slow, digest, example, names, spoken

SHARE = 1.5
STEP = 0.05  # seconds that a step takes at least
BLOCK = 32  # rows


def fit(name: str, runner: Any) -> Any:
    """A fit on threads, or on a cluster."""
    model, X = example(name)
    model.set_params(**{k: 12 for k in ("max_iter",) if k in model.get_params()}).set_callbacks(Slow(STEP))
    with warnings.catch_warnings(), unmix.config(runner=runner, block_rows=BLOCK):
        warnings.simplefilter("ignore")  # twelve steps are not enough
        return model.fit(X)


def killed(name: str, client: Any, share: float, seconds: float, which: int) -> tuple[str, Any]:
    """A fit one of whose workers dies after a share of the seconds that it takes: its digest, or the error."""
    workers = sorted(client.run(os.getpid).values())
    timer = threading.Timer(share * seconds, os.kill, (workers[which % len(workers)], signal.SIGKILL))
    timer.start()
    try:
        return "value", digest(fit(name, client))
    except Exception as e:
        return "error", e
    finally:
        timer.cancel()
        timer.join()


def arrived(client: Any) -> bool:
    """Whether both workers are there: a nanny does not always start one again that was killed while it began."""
    try:
        client.wait_for_workers(2, timeout=60)
    except TimeoutError:
        return False
    return True


def run(report: Report, rng: np.random.Generator, until: float) -> None:
    """Model after model on one cluster, whose workers are started again."""
    import distributed

    truths: dict[str, tuple[int, float]] = {}
    while time.monotonic() < until:  # a cluster whose nanny gave up is replaced
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
            distributed.Client(local, set_as_default=False) as client,
        ):
            while time.monotonic() < until and arrived(client):
                name, share, which = str(rng.choice(names())), float(rng.uniform(0, 1)), int(rng.integers(2))
                if name not in truths:
                    began = time.monotonic()
                    truths[name] = digest(fit(name, "threads")), time.monotonic() - began
                wanted, seconds = truths[name]
                word, value = killed(name, client, share, seconds, which)
                report.count(name)
                if value != wanted and not (word == "error" and spoken(value)):
                    report.found(
                        f"{name} with a worker killed: {word} {value!r}, not {wanted}",
                        f"attack.workers.killed({name!r}, client, {share:.4f}, {seconds:.3f}, {which})",
                    )
