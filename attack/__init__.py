"""Attacks on the library, for minutes on end: `python -m attack --minutes 15 --seed 0`.

Each module with a `SHARE` of the time is an attack: `run(report, rng, until)` tries until the clock says so, and
reports what it tried and what it found. Everything follows from the seed that is printed. Short versions run in the
tests.
"""
