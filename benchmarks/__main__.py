"""`python -m benchmarks [names…] [--repeat N] [--quick]`: measure, print, and for a whole run write RESULTS.md."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Machine, page, summary, tell

MODULES = (
    "startup", "pca", "factor_analysis", "kmeans", "kmedoids", "silhouette", "gaussian_mixture", "select", "nmf", "lda",
    "robust_pca",
)  # fmt: skip


def cases() -> dict[str, Any]:
    """Every case by name, in the order of the page."""
    found = [c for m in MODULES for c in importlib.import_module(f"benchmarks.{m}").CASES]
    return {c.name: c for c in found}


def main(arguments: list[str] | None = None) -> int:
    """Run the cases that were asked for; 1 where ours broke or missed the quality that was asked of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases, or the beginnings of their names; all of them by default")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each contestant (3)")
    parser.add_argument("--quick", action="store_true", help="small data: shows that everything runs, no more")
    parser.add_argument("--only", nargs="+", metavar="CONTESTANT", help="these contestants alone")
    parser.add_argument("--output", type=Path, help="file to write (RESULTS.md beside this file for a whole run)")
    parser.add_argument("--list", action="store_true", help="name the cases and their targets")
    options = parser.parse_args(arguments)
    every = cases()
    chosen = [c for n, c in every.items() if not options.names or any(n.startswith(p) for p in options.names)]
    unknown = [p for p in options.names if not any(n.startswith(p) for n in every)]
    if unknown:
        parser.error(f"{unknown[0]!r} is no case: the cases are {', '.join(every)}")
    if options.list:
        for case in chosen:
            tell(f"{case.name:32} {case.title}")
        return 0
    tell(f"{Machine()}\n")
    if options.quick:
        tell("Small data, whatever the titles say: this shows that everything runs; the ratios mean nothing.\n")
    begin, reports = time.monotonic(), []
    for case in chosen:
        reports.append(case.measure("quick" if options.quick else "full", options.repeat, options.only))
        tell(str(reports[-1]))
    minutes = (time.monotonic() - begin) / 60
    tell(f"{summary(reports)}\n\n{minutes:.1f} minutes")
    output = options.output
    if output is None and not (options.names or options.quick or options.only):
        output = Path(__file__).parent / "RESULTS.md"
    if output is not None:
        output.write_text(page(reports, options.repeat, minutes), encoding="utf-8")
    return int(any(r.broken for r in reports))


if __name__ == "__main__":
    sys.exit(main())
