"""`python -m benchmarks.wrong_grants`: a share of real access lists is flipped at random; how much of it is found.

Without arguments americas_small, 1 % of its cells, ten draws. Arguments are names of lists; --rates 0,0.002,0.01,0.03,
--draws 10, --fdr 0.05,0.1,0.2.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from unmix.access.grants import review


def loaded(name: str) -> np.ndarray:
    """A list by its name, as truth values."""
    folder = Path(os.environ.get("UNMIX_DATA", "../shared/data"))
    if (folder / "hp-roles" / f"{name}.txt.gz").exists():
        user, permission = np.loadtxt(folder / "hp-roles" / f"{name}.txt.gz", dtype=int).T
    else:
        with gzip.open(folder / "rmplib" / f"{name}.rmp.gz", "rt", encoding="utf-8-sig") as f:
            rows = [line.split() for line in f if line.startswith("u")]
        user, permission = np.array([(int(r[0][1:]), int(p[1:])) for r in rows for p in r[1:]]).T
    user, permission = user - user.min(), permission - permission.min()
    return sp.csr_array((np.ones(len(user), bool), (user, permission))).toarray()


def draw(truth: np.ndarray, rate: float, seed: int, fdr: float) -> dict[str, float]:
    """What is called wrong of one draw, and what of that is."""
    flipped = np.random.default_rng(seed).random(truth.shape) < rate
    found = review(sp.csr_array(truth ^ flipped), fdr=fdr)
    extra, missing = found.extra[: found.extras], found.missing[: found.missings]
    hits = [int(flipped[tuple(cells.T)].sum()) for cells in (extra, missing)]
    called = len(extra) + len(missing)
    return {
        "called": called,
        "fdr": 1 - sum(hits) / called if called else 0.0,
        "missing": len(missing),
        "missing fdr": 1 - hits[1] / len(missing) if len(missing) else 0.0,
        "found": sum(hits) / max(int(flipped.sum()), 1),
        "promised": found.rate,
    }


def main() -> None:
    """Print a line for each list, rate and false-discovery rate."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("names", nargs="*", default=["americas_small"])
    ask.add_argument("--rates", default="0.01")
    ask.add_argument("--fdr", default="0.1")
    ask.add_argument("--draws", type=int, default=10)
    asked = ask.parse_args()
    print("list                rate    asked  called  realised (worst)  missing (fdr)    found (least)  seconds a draw")
    for name in asked.names:
        truth = loaded(name)
        for rate in map(float, asked.rates.split(",")):
            for fdr in map(float, asked.fdr.split(",")):
                start = time.perf_counter()
                runs = [draw(truth, rate, seed, fdr) for seed in range(asked.draws)]
                took = (time.perf_counter() - start) / asked.draws
                mean = {key: np.mean([r[key] for r in runs]) for key in runs[0]}
                worst, least = max(r["fdr"] for r in runs), min(r["found"] for r in runs)
                print(
                    f"{name:18} {rate:6.3f} {fdr:6.2f} {mean['called']:9.0f} {mean['fdr']:8.3f} ({worst:.3f}) "
                    f"{mean['missing']:7.0f} ({mean['missing fdr']:.3f}) "
                    f"{mean['found']:8.3f} ({least:.3f}) {took:6.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
