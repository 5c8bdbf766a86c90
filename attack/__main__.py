"""Run the attacks: `python -m attack --minutes 15 --seed 0 [--only files kills]`."""

from __future__ import annotations

import argparse
import sys
import time

from attack.harness import Report, attacks, generator


def main(arguments: list[str] | None = None) -> int:
    """Run the attacks one after the other and print a table; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m attack", description="Attack the library until the time is over.")
    parser.add_argument("--minutes", type=float, default=15.0, help="for all attacks together")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="by default another every time")
    parser.add_argument("--only", nargs="*", choices=sorted(attacks()), help="some of the attacks")
    asked = parser.parse_args(arguments)
    chosen = {name: attack for name, attack in attacks().items() if not asked.only or name in asked.only}
    whole = sum(attack.SHARE for attack in chosen.values())
    print(f"seed {asked.seed}: {', '.join(chosen)} in {asked.minutes:g} minutes", flush=True)
    reports = []
    for name, attack in chosen.items():
        report, began = Report(name, asked.seed), time.monotonic()
        attack.run(report, generator(asked.seed, name), began + 60.0 * asked.minutes * attack.SHARE / whole)
        report.seconds = time.monotonic() - began
        print(report, flush=True)
        reports.append(report)
    print(f"\n{'attack':<12}{'tried':>8}{'findings':>10}{'seconds':>9}  of what")
    for r in reports:
        print(f"{r.name:<12}{r.tried:>8}{len(r.findings):>10}{r.seconds:>9.0f}  {r.tally()}")
    return int(any(r.findings for r in reports))


if __name__ == "__main__":
    sys.exit(main())
