"""Where results may be written: never over an input, and over another file only where the user says so."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from unmix.cli.options import Ask
from unmix.io.write import TABLES, checked_path


def check_targets(ask: Ask, inputs: list[str], save: str = "--save", tables: Iterable[tuple[str, str]] = ()) -> None:
    """Refuse, before any work, files that cannot or must not be written, and two results in one file.

    `tables` are written beside `--out`, each with the option that asks for it.
    """
    seen: dict[str, str] = {}
    for option, path in (("--out", ask.out), *tables, (save, ask.save)):
        if path is None or path == "-":
            continue
        check_target(option, path, inputs, ask.force)
        if option != save:
            known(option, path)
        place = os.path.realpath(os.path.expanduser(path))
        if place in seen:
            raise ValueError(f"{option} {path!r} is the same file as {seen[place]}: give another name")
        seen[place] = option


def known(option: str, path: str) -> None:
    """Refuse a format that nothing is written in."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLES:
        what = f"files that end in {suffix!r} are not written" if suffix else "the name does not say the format"
        raise ValueError(f"{option} {path!r}: {what}; end it in one of {', '.join(TABLES)}")
    checked_path(path, TABLES)


def check_target(option: str, path: str, inputs: list[str], force: bool) -> None:
    """Refuse a file that is read, one that is there (unless forced), and a folder that is not."""
    target = Path(path).expanduser()
    for read in map(os.path.expanduser, inputs):
        if read == "-" or not os.path.exists(read):
            continue
        if (target.exists() and os.path.samefile(target, read)) or _inside(target, Path(read)):
            raise ValueError(f"{option} {path!r} is what is read: nothing is overwritten; give another name")
    if target.is_dir():
        raise ValueError(f"{option} {path!r} is a folder: give the name of a file")
    if not target.parent.is_dir():
        raise ValueError(f"{option} {path!r}: there is no folder {str(target.parent)!r}; create it first")
    if target.exists() and not target.is_file():
        raise ValueError(f"{option} {path!r} is no file but a device or a pipe: give the name of a file")
    if os.path.lexists(target) and not force:
        raise ValueError(f"{option} {path!r} exists: give another name, or --force to overwrite it")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{option} {path!r}: the folder {str(target.parent)!r} may not be written to by you")


def stem(file: str) -> str:
    """The name of a file, or of a folder of them, without what says its format."""
    name = Path(file.rstrip("/"))
    if name.suffix.lower() in (".gz", ".bz2", ".zst", ".xz"):
        name = name.with_suffix("")
    return name.stem or name.name


def _inside(target: Path, folder: Path) -> bool:
    """Whether a file would become part of a folder that is read."""
    return folder.is_dir() and target.resolve().is_relative_to(folder.resolve())
