"""Where a change may draw other random numbers: the objective over ten seeds, before and after it.

    python -m benchmarks.seeds OLD            # OLD is the `src` of another checkout
    python -m benchmarks.seeds OLD KMedoids   # cases whose names begin so

The objective is what a fit minimises: a sum of distances, or the perplexity of topics. Where the gap of the
means is within two of its standard errors, the two versions end equally low for all that ten seeds tell.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parents[1]
SEEDS = range(10)
MODELS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "KMedoids": ("n_clusters", [{}, {"init": "random"}, {"method": "alternate"}, {"metric": "manhattan"}]),
    "KernelKMeans": ("n_clusters", [{}, {"kernel": "linear"}, {"kernel": "poly"}]),
    "KMeans": ("n_clusters", [{"init": "k-means||", "n_init": 1}]),
    "LatentDirichletAllocation": ("n_components", [{}, {"learning_method": "online"}]),
}


def tables(counts: bool) -> dict[str, np.ndarray]:
    """Rows of scikit-learn's sets, and planted ones; for topics counts."""
    from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
    from sklearn.preprocessing import scale

    digits = load_digits().data
    if not counts:
        blobs = make_blobs(2000, 10, centers=30, cluster_std=2.0, random_state=0)[0]
        return {"iris": load_iris().data, "wine": scale(load_wine().data), "digits": scale(digits), "blobs": blobs}
    rng = np.random.default_rng(0)
    topics, shares = rng.dirichlet(np.full(500, 0.05), 10), rng.dirichlet(np.full(10, 0.2), 800)
    return {"digits": digits, "planted": rng.poisson(60 * shares @ topics).astype(float)}


def cases() -> Iterator[tuple[str, Callable[[int], float]]]:
    """Name of each case, and its objective for a seed."""
    import unmix

    for name, (parts, variants) in MODELS.items():
        topics = name == "LatentDirichletAllocation"
        for data, X in tables(topics).items():
            for more in variants:
                cls, params = getattr(unmix, name), {parts: 30 if data == "blobs" else 10, **more}

                def objective(seed: int, cls: Any = cls, params: Any = params, X: Any = X) -> float:
                    model = cls(**params, random_state=seed).fit(X)
                    return float(model.perplexity(X)) if hasattr(model, "perplexity") else float(model.inertia_)

                yield " ".join([name, data, *map(str, more.values())]), objective


def worker(wanted: list[str]) -> None:
    """Print the objectives of every case."""
    warnings.simplefilter("ignore")
    for name, objective in cases():
        if not wanted or any(name.startswith(w) for w in wanted):
            print(json.dumps([name, [objective(seed) for seed in SEEDS]]), flush=True)


def main() -> int:
    """Compare two checkouts, and say where the new one ends higher."""
    if sys.argv[1] == "worker":
        worker(sys.argv[2:])
        return 0
    old, *wanted = sys.argv[1:]
    found = []
    for source in (Path(old), HERE / "src"):
        env = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{HERE}"}
        command = [sys.executable, "-m", "benchmarks.seeds", "worker", *wanted]
        out = subprocess.run(command, env=env, cwd=HERE, check=True, capture_output=True, text=True).stdout
        found.append(dict(json.loads(line) for line in out.splitlines()))
    higher = []
    print("| case | mean before | mean after | after / before − 1 | standard error | best before | best after |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, values in found[0].items():
        a, b = np.array(values), np.array(found[1][name])
        gap = b.mean() / a.mean() - 1
        error = np.hypot(a.std(ddof=1), b.std(ddof=1)) / len(a) ** 0.5 / a.mean()
        cells = [name.replace("|", "\\|"), *(f"{v:.6g}" for v in (a.mean(), b.mean())), f"{gap:+.1e}", f"{error:.1e}"]
        print("|", " | ".join([*cells, f"{a.min():.6g}", f"{b.min():.6g}"]), "|")
        if gap > max(2 * error, 1e-6):
            higher.append(name)
    print(f"\n{len(found[0])} cases; higher by more than chance: {', '.join(higher) or 'none'}")
    return bool(higher)


if __name__ == "__main__":
    sys.exit(main())
