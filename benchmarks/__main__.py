"""`python -m benchmarks [names…] [--repeat N] [--quick]`: measure, print, and for a whole run write RESULTS.md."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import Machine, Whole, page, summary, tell
from benchmarks.processor import PROCESSORS, pretend

MODULES = (
    "startup", "pca", "truncated_svd", "kernel_pca", "factor_analysis", "fast_ica", "gaussian_imputer", "kmeans",
    "kmedoids", "silhouette", "gaussian_mixture", "factor_analyzers", "select", "nmf", "lda", "robust_pca", "boolean",
    "recommend", "small",
)  # fmt: skip

HERE = Path(__file__).parent


def cases() -> dict[str, Any]:
    """Every case by name, in the order of the page."""
    found = [c for m in MODULES for c in importlib.import_module(f"benchmarks.{m}").CASES]
    return {c.name: c for c in found}


def again(saved: dict[str, Any], run: Whole) -> dict[str, Any]:
    """A whole run with some cases as they were measured later, which their notes say."""
    new = {r.name: asdict(r) | {"notes": [*r.notes, "measured later than the others"]} for r in run.reports}
    found = {r["name"]: r for r in saved["reports"]} | new
    order = {name: i for i, name in enumerate(cases())}
    return saved | {"reports": sorted(found.values(), key=lambda r: order.get(r["name"], -1))}


def keep(processor: str, run: Whole, whole: bool = True) -> None:
    """Put a run on the page, beside the last one on each other processor; cases of no whole run in their places."""
    file = HERE / "results.json"
    saved = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    saved[processor] = asdict(run) if whole else again(saved[processor], run)
    file.write_text(json.dumps(saved, indent=1), encoding="utf-8")
    runs = {p: Whole.of(saved[p]) for p in PROCESSORS if p in saved}
    (HERE / "RESULTS.md").write_text(page(runs), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the cases that were asked for; 1 where ours broke or missed the quality that was asked of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases, or the beginnings of their names; all of them by default")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each contestant (5)")
    parser.add_argument("--quick", action="store_true", help="small data: shows that everything runs, no more")
    parser.add_argument("--only", nargs="+", metavar="CONTESTANT", help="these contestants alone")
    parser.add_argument("--processor", choices=PROCESSORS, default="native", help="as on such a processor (native)")
    parser.add_argument("--output", type=Path, help="file to write (RESULTS.md beside this file for a whole run)")
    parser.add_argument("--again", action="store_true", help="put these cases in their places on the page")
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
    if options.again and (options.quick or options.only):
        parser.error("--again is for the page, whose cases are measured in full, with all contestants")
    pretend(options.processor)
    tell(f"{Machine()}; processor: {options.processor}\n")
    if options.quick:
        tell("Small data, whatever the titles say: this shows that everything runs; the ratios mean nothing.\n")
    begin, reports = time.monotonic(), []
    for case in chosen:
        reports.append(case.measure("quick" if options.quick else "full", options.repeat, options.only))
        tell(str(reports[-1]))
    minutes = (time.monotonic() - begin) / 60
    tell(f"{summary({options.processor: reports})}\n\n{minutes:.1f} minutes")
    run = Whole(str(Machine()), options.repeat, minutes, reports)
    if options.output is not None:
        options.output.write_text(page({options.processor: run}), encoding="utf-8")
    elif options.again or not (options.names or options.quick or options.only):
        keep(options.processor, run, not options.again)
    return int(any(r.broken for r in reports))


if __name__ == "__main__":
    sys.exit(main())
