"""Tables from files on the command line: seconds and peak memory of `unmix cluster`, labels written beside the columns.

With `--report` of `unmix report`, which makes a page.

    python -m benchmarks.tables                   # 1M × 50 CSV: numbers, three categories, an id, a date, holes
    python -m benchmarks.tables --gigabytes 5     # one of so many gigabytes
    python -m benchmarks.tables --folder /scratch --keep

The file is made in a temporary folder and read by a process of its own, whose peak memory is `VmHWM`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

COLUMNS = 50
CHUNK = 100_000  # rows that are made at a time
TOWNS = np.array(["Berlin", "Paris", "Madrid", "Roma", "Lisboa", "Wien", "Praha", "Oslo"])
PLANS = np.array(["free", "basic", "plus", "pro"])
RUN = """
import sys, atexit
def tell():
    lines = open("/proc/self/status").read().splitlines()
    print(next(l for l in lines if l.startswith("VmHWM")), file=sys.stderr)
atexit.register(tell)
from unmix.cli.main import main
main(prog_name="unmix")
"""


def chunk(rng: np.random.Generator, first: int, n: int, centres: np.ndarray) -> pa.Table:
    """Rows of as many groups as there are centres."""
    who = rng.integers(0, len(centres), n)
    X = centres[who] + rng.normal(size=(n, centres.shape[1]))
    X = (X * np.logspace(-2, 4, X.shape[1])).round(4)
    X[rng.random(X.shape) < 0.02] = np.nan
    towns = pa.array(TOWNS[(who + (rng.random(n) < 0.3) * rng.integers(0, 8, n)) % len(TOWNS)])
    columns = {
        "customer": pa.array([f"C{i:09d}" for i in range(first, first + n)]),
        "since": pa.array(np.datetime64("2015-01-01") + rng.integers(0, 3650, n)),
        "town": pa.array(towns, mask=rng.random(n) < 0.05),
        "plan": pa.array(PLANS[rng.integers(0, len(PLANS), n)]),
        "active": pa.array(np.where(rng.random(n) < 0.7, "yes", "no")),
    }
    numbers = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(X.shape[1])}
    return pa.table({**columns, **numbers})


def make(path: Path, rows: int | None, size: float) -> int:
    """A CSV file of so many rows, or of so many bytes; return the rows."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=1.5, size=(5, COLUMNS - 5))
    n, writer = 0, None
    with open(path, "wb") as f:
        while n < rows if rows is not None else f.tell() < size:
            table = chunk(rng, n, min(CHUNK, rows - n) if rows is not None else CHUNK, centres)
            writer = writer or pa.csv.CSVWriter(
                f, table.schema, write_options=pa.csv.WriteOptions(quoting_style="none")
            )
            writer.write_table(table)
            n += len(table)
        assert writer is not None
        writer.close()
    return n


def main() -> None:
    """Make a table, cluster it, print what it took."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--gigabytes", type=float, help="of the file, instead of rows")
    asked.add_argument("--folder", help="where the files are made")
    asked.add_argument("--model", default="KMeans")
    asked.add_argument("--k", help="groups; without it, unmix select is asked", default="5")
    asked.add_argument("--report", action="store_true", help="unmix report instead of unmix cluster")
    asked.add_argument("--keep", action="store_true", help="leave the files there")
    ask = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="unmix-tables-", dir=ask.folder))
    source, out = folder / "table.csv", folder / ("report.html" if ask.report else "groups.csv")
    n = make(source, None if ask.gigabytes else ask.rows, (ask.gigabytes or 0) * 1e9)
    print(f"{n:,} rows × {COLUMNS} columns, {source.stat().st_size / 1e9:.2f} GB", flush=True)
    number = [] if ask.k == "auto" else ["--k", ask.k]
    how = ["report"] if ask.report else ["cluster", *number, "--model", ask.model]
    args = [*how, str(source), "--out", str(out), "--json"]
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", RUN, *args], capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    peak = next((int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("VmHWM")), 0)
    written = out.stat().st_size / 1e6 if out.exists() else 0.0
    print(f"exit {done.returncode}, {took:.1f} s, peak {peak / 1e6:.2f} GB, {written:,.1f} MB written")
    if done.returncode:
        print(done.stderr[-2000:])
    if not ask.keep:
        for path in (source, out):
            path.unlink(missing_ok=True)
        os.rmdir(folder)


if __name__ == "__main__":
    main()
