"""A Parquet folder of some gigabytes, fitted with little memory.

`python -m benchmarks.larger_than_memory [GB] [limit GB]`

Each model is fitted in a process of its own; what is printed is the peak of that process's resident memory.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 64
MODELS = {
    "PCA": "unmix.PCA(10)",
    "KMeans": "unmix.KMeans(20, max_iter=5, random_state=0)",
    "GaussianMixture": "unmix.GaussianMixture(8, max_iter=5, random_state=0)",
    "NMF": "unmix.NMF(10, init='random', max_iter=5, random_state=0)",
}
CHILD = r"""
import json, re, sys, time, warnings
import unmix
warnings.simplefilter("ignore")
begin = time.perf_counter()
model = {model}.fit(sys.argv[1])
peak = 1024 * int(re.search(r'VmHWM:\s+(\d+)', open("/proc/self/status").read())[1])  # of this process alone
print(json.dumps({{"peak": peak, "seconds": time.perf_counter() - begin, "passes": model.n_iter_}}))
"""


def write(folder: Path, gigabytes: float) -> int:
    """Non-negative rows with eight groups, as many as make up the size; returns their bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centres = rng.uniform(1, 9, size=(8, COLUMNS))
    rows = 1 << 18
    total = 0
    for i in range(max(1, round(gigabytes * 1e9 / (rows * COLUMNS * 8)))):
        x = np.abs(centres[rng.integers(8, size=rows)] + rng.normal(size=(rows, COLUMNS)))
        table = pa.table({f"c{j}": x[:, j] for j in range(COLUMNS)})
        path = folder / f"{i:04d}.parquet"
        pq.write_table(table, path, row_group_size=1 << 16, compression="none", use_dictionary=False)
        total += path.stat().st_size
    return total


def run(gigabytes: float = 4.0, limit: float = 1.5) -> bool:
    """Write the folder, fit every model, print the peaks; whether all stayed under the limit."""
    folder = Path(tempfile.mkdtemp(prefix="unmix-big-"))
    good = True
    try:
        begin = time.perf_counter()
        size = write(folder, gigabytes)
        print(f"{len(list(folder.iterdir()))} Parquet files, {size / 1e9:.2f} GB ({time.perf_counter() - begin:.0f} s)")
        for name, model in MODELS.items():
            out = subprocess.run(
                [sys.executable, "-c", CHILD.format(model=model), str(folder)], capture_output=True, text=True
            )
            if out.returncode:
                print(f"{name:16} failed: {out.stderr.strip().splitlines()[-1]}")
                good = False
                continue
            r = json.loads(out.stdout)
            peak = r["peak"] / 1e9
            good &= peak < limit
            verdict = "ok" if peak < limit else "TOO MUCH"
            print(
                f"{name:16} peak {peak:.2f} GB (limit {limit}), {r['passes']} passes, {r['seconds']:.0f} s: {verdict}"
            )
    finally:
        shutil.rmtree(folder)
    return good


if __name__ == "__main__":
    sys.exit(0 if run(*map(float, sys.argv[1:])) else 1)
