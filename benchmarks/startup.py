"""What a user waits for before anything is computed: the import, and the first fit with nothing compiled yet."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.harness import Report, Verdict, ratio

MORE = 0.5  # seconds that our import may take beyond scikit-learn's
FIRST = 15.0  # seconds that a first fit may take

IMPORTS = {
    "import sklearn": "import sklearn",
    "import unmix": "import unmix",
    "from sklearn.cluster import KMeans": "from sklearn.cluster import KMeans",
    "from unmix import KMeans": "from unmix import KMeans",
}
TIMED = "import time; _t = time.perf_counter()\n{}\nprint('seconds', time.perf_counter() - _t)"
FIT = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import unmix
unmix.set_config(progress=False)
model, X, check = unmix.{}.example(np.random.default_rng(0))
model.fit(X)
"""


@dataclass
class Import:
    """Fresh processes in turn, the file cache warm."""

    name: str = "startup-import"
    title: str = "Import, in a fresh process"
    targets: tuple = field(default=())

    def measure(self, size: str = "full", repeat: int = 3, only: Iterable[str] | None = None) -> Report:
        """Best and median of each import."""
        times: dict[str, list[float]] = {name: [] for name in IMPORTS}
        for turn in range(repeat + 2):  # it is short and noisy; the first turn only fills the file cache
            for name, code in IMPORTS.items():
                seconds, _ = fresh(TIMED.format(code))
                if turn:
                    times[name].append(seconds)
        best = {name: min(t) for name, t in times.items()}
        rows = [
            (n, f"{best[n]:.3f}", f"{statistics.median(t):.3f}", ratio(best[n], best["import unmix"]))
            for n, t in times.items()
        ]
        verdicts = []
        for ours, theirs in (("import unmix", "import sklearn"), list(IMPORTS)[:1:-1]):
            more = best[ours] - best[theirs]
            verdicts.append(Verdict(f"{ours}: at most {MORE} s more than {theirs}", f"{more:+.3f} s", more <= MORE))
        return Report(self.name, self.title, ("import", "best s", "median s", "time / ours"), rows, verdicts)


@dataclass
class FirstFit:
    """Import, compile and fit the model's own small example, with an empty folder for compiled code; then once more."""

    name: str = "startup-first-fit"
    title: str = "First fit of a small problem in a fresh process, import included"
    targets: tuple = field(default=())

    def measure(self, size: str = "full", repeat: int = 3, only: Iterable[str] | None = None) -> Report:
        """One process per model without compiled code, one with it."""
        import unmix

        names = list(unmix._MODELS)[: 1 if size == "warm" else None]
        rows, slowest, broken = [], 0.0, False
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                cold, problem = fresh(TIMED.format(FIT.format(name)), NUMBA_CACHE_DIR=folder)
                warm, _ = fresh(TIMED.format(FIT.format(name)), NUMBA_CACHE_DIR=folder) if not problem else (0.0, "")
            if problem:
                rows.append((name, problem, ""))
                broken = True
                continue
            rows.append((name, f"{cold:.2f}", f"{warm:.2f}"))
            slowest = max(slowest, cold)
        verdict = Verdict(
            f"first fit of each model within {FIRST:g} s", f"{slowest:.1f} s at most", slowest <= FIRST and not broken
        )
        head = ("model", "nothing compiled, s", "compiled before, s")
        return Report(self.name, self.title, head, rows, [verdict], broken=broken)


def fresh(code: str, **environment: str) -> tuple[float, str]:
    """Run code in a fresh process; (the seconds that it printed, what went wrong)."""
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        return float("nan"), ("failed: " + (done.stderr.strip().splitlines() or ["no message"])[-1])[:100]
    return float(done.stdout.split()[-1]), ""


CASES = [Import(), FirstFit()]
