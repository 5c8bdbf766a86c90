"""Processor time before and after a change, on one pinned core: ours beside ours.

    python -m benchmarks.before_after OLD            # OLD is the `src` of another checkout; every case
    python -m benchmarks.before_after OLD iris       # cases whose names begin so

Every case of `python -m benchmarks` (our contestant alone), fits of iris and of digits, ten starts, and the first fit
of a model with nothing compiled. Two processes hold the two versions and take turns; the fastest run of each counts.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
SECONDS = 8.0  # of both versions in a case, beyond which runs are not repeated
RUNS = 40  # at most


def small(name: str) -> Callable[[], Any]:
    """A small fit by the name of its case: data, model, and perhaps ten starts."""
    from sklearn.datasets import load_digits, load_iris

    import unmix

    data, model, *more = name.split("-")
    X = load_iris().data if data == "iris" else load_digits().data
    cls = getattr(unmix, model)
    names = cls().get_params()
    params: dict[str, Any] = {"n_components" if "n_components" in names else "n_clusters": 3 if data == "iris" else 10}
    if model == "RobustPCA":
        params = {}
    if "random_state" in names:
        params["random_state"] = 0
    if more:
        params["n_init"] = 10
    return lambda: cls(**params).fit(X)


def names() -> list[str]:
    """Every case."""
    import unmix
    from benchmarks.__main__ import cases

    every = list(unmix.models())
    digits = ("PCA", "KMeans", "KMedoids", "GaussianMixture", "NMF", "LatentDirichletAllocation", "SoftKMeans")
    tens = ("KMeans", "GaussianMixture", "KMedoids", "SoftKMeans", "NMF", "Mixture")
    mine = [f"iris-{m}" for m in every] + [f"digits-{m}" for m in digits] + [f"iris-{m}-ten" for m in tens]
    large = [n for n in cases() if not n.startswith("startup")]
    return mine + large + [f"cold-{m}" for m in every]


def fit_of(name: str) -> Callable[[], Any]:
    """What is timed."""
    if name.startswith(("iris-", "digits-")):
        return small(name)
    from benchmarks.__main__ import cases

    case = cases()[name]
    build = case.contestants()["unmix"].build
    warm, _ = build(case, case.data("warm"), None)
    warm()
    fit: Callable[[], Any] = build(case, case.data("full"), None)[0]
    return fit


def worker(name: str) -> None:
    """Time fits when asked to."""
    warnings.simplefilter("ignore")
    import unmix

    unmix.set_config(progress=False)
    fit = fit_of(name)
    if name.startswith(("iris-", "digits-")):
        fit()
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        begin = time.process_time()
        for _ in range(count):
            fit()
        print((time.process_time() - begin) / count, flush=True)


def start(source: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """A process on core 0 that imports unmix from there."""
    env = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{HERE}"} | more
    command = ["taskset", "-c", "0", sys.executable, "-m", "benchmarks.before_after", *arguments]
    return subprocess.Popen(command, env=env, cwd=HERE, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True)


def compare(name: str, sources: list[Path]) -> tuple[float, float, int]:
    """The fastest run before and after, and how many runs there were."""
    if name.startswith("cold-"):
        return compare_cold(name, sources)
    workers = [start(s, "worker", name) for s in sources]
    times: list[list[float]] = [[], []]
    try:
        for w in workers:
            if w.stdout is None or w.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{name}: a worker did not start")
        count, begin = 1, time.monotonic()
        while len(times[0]) < RUNS and (time.monotonic() - begin < SECONDS or len(times[0]) < 3):
            turn = [0, 1] if len(times[0]) % 2 else [1, 0]
            for i in turn:
                w = workers[i]
                assert w.stdin is not None
                assert w.stdout is not None
                w.stdin.write(f"{count}\n")
                w.stdin.flush()
                times[i].append(float(w.stdout.readline()))
            if count == 1 and len(times[0]) == 1 and times[0][0] < 0.05:  # short fits are timed several at a time
                count, times = max(1, int(0.1 / times[0][0])), [[], []]
    finally:
        for w in workers:
            w.kill()
    return min(times[0]), min(times[1]), len(times[0])


def compare_cold(name: str, sources: list[Path]) -> tuple[float, float, int]:
    """The first fit of a process that finds no compiled code."""
    model, times = name.removeprefix("cold-"), [[], []]  # type: ignore[var-annotated]
    for turn in range(2):
        for i in [0, 1] if turn else [1, 0]:
            with tempfile.TemporaryDirectory() as empty:
                child = start(sources[i], "cold", model, NUMBA_CACHE_DIR=empty)
                out, _ = child.communicate()
                times[i].append(float(out))
    return min(times[0]), min(times[1]), 2


def cold(model: str) -> None:
    """Import, make the example, fit."""
    warnings.simplefilter("ignore")
    import numpy as np

    import unmix

    unmix.set_config(progress=False)
    estimator, X, _ = getattr(unmix, model).example(np.random.default_rng(0))
    estimator.fit(X)
    print(time.process_time())


def main() -> int:
    """Compare, print a table, and say what got slower."""
    if sys.argv[1] in ("worker", "cold"):
        {"worker": worker, "cold": cold}[sys.argv[1]](sys.argv[2])
        return 0
    old, *wanted = sys.argv[1:]
    sources = [Path(old), HERE / "src"]
    ratios: dict[str, float] = {}
    print(f"{'case':36} {'before s':>10} {'after s':>10} {'after / before':>15} {'runs':>5}")
    for name in [n for n in names() if not wanted or any(n.startswith(w) for w in wanted)]:
        before, after, runs = compare(name, sources)
        ratios[name] = after / before
        print(f"{name:36} {before:10.4g} {after:10.4g} {after / before:15.3f} {runs:5d}", flush=True)
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
    slow = [n for n, r in ratios.items() if r > 1.05]
    print(f"geometric mean {mean:.3f} of {len(ratios)} cases; more than 5 % slower: {', '.join(slow) or 'none'}")
    return int(bool(slow) or mean > 1.02)


if __name__ == "__main__":
    sys.exit(main())
