"""Files that `unmix roles` reads and writes beside the access list."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unmix.cli.files import check_target
from unmix.io.write import write_tables
from unmix.table import TableError
from unmix.table.read import read

FILES = {"roles": "roles.csv", "members": "assignments.csv", "direct": "direct.csv", "review": "review.csv"}


def ids(path: str | None, columns: int) -> list[tuple[Any, ...]]:
    """The first columns of a table."""
    if path is None:
        return []
    raw = read(path)
    if len(raw.names) < columns:
        raise TableError(f"{path!r} has {len(raw.names)} columns: give {columns}, with a user in the first")
    found = raw.slice(0, raw.n, raw.names[:columns])
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def check_folder(folder: str, inputs: list[str], force: bool) -> None:
    """Refuse, before any work, a folder that cannot be made, and files that are there."""
    place = Path(folder).expanduser()
    if place.exists() and not place.is_dir():
        raise ValueError(f"--csv {folder!r} is a file: give the name of a folder")
    if not place.parent.is_dir():
        raise ValueError(f"--csv {folder!r}: there is no folder {str(place.parent)!r}; create it first")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise ValueError(f"--csv {folder!r}: that folder may not be written to by you")
    for name in FILES.values() if place.exists() else ():
        check_target("--csv", str(place / name), inputs, force)


def write_folder(found: Any, folder: str, force: bool) -> None:
    """Each table as a file, whole or not at all."""
    place = Path(folder).expanduser()
    place.mkdir(exist_ok=True)
    for table, name in FILES.items():
        write_tables(place / name, [found.table(table)], replace=force)
