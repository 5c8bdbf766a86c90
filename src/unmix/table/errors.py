"""What is said of a file that cannot be read: what was found, and what to do."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unmix.engine.sources.columnar import brief


class TableError(ValueError):
    """A table that cannot be read or used: the message says what was found and what to do.

    Attributes
    ----------
    table : Table or None
        The table, where it could be read but none of its columns can be used.

    Examples
    --------
    >>> import unmix
    >>> try:
    ...     unmix.Table({"when": ["2020-01-01", "2020-01-02"]}, columns=["wen"])
    ... except unmix.TableError as e:
    ...     print(e)
    columns='wen': the table has no such column; did you mean 'when'?
    """

    table: Any = None


# What files begin with that hold no table, or none that is read here, and what to do with each.
ANOTHER = "give the table itself as CSV, Excel or Parquet"
SIGNATURES: list[tuple[bytes, str, str]] = [
    (b"%PDF", "a PDF document", "copy the table out of it into a CSV or Excel file"),
    (b"\x89PNG", "a PNG picture", ANOTHER),
    (b"\xff\xd8\xff", "a JPEG picture", ANOTHER),
    (b"GIF8", "a GIF picture", ANOTHER),
    (b"BM6", "a bitmap picture", ANOTHER),
    (b"RIFF", "a sound or video file (RIFF)", ANOTHER),
    (b"\x7fELF", "a program (ELF)", ANOTHER),
    (b"MZ\x90", "a program (Windows)", ANOTHER),
    (b"\xca\xfe\xba\xbe", "a program (Java or macOS)", ANOTHER),
    (b"\xcf\xfa\xed\xfe", "a program (macOS)", ANOTHER),
    (b"SQLite format 3\0", "an SQLite database", "open it with DuckDB or pandas and give the result of a query"),
    (b"\x89HDF", "an HDF5 file", "open it with pandas or h5py and give the table in it"),
    (b"MATLAB 5.0", "a MATLAB file", "open it with scipy.io.loadmat and give the array in it"),
    (b"RDX", "an R workspace", "write the table as CSV in R: write.csv(x, 'x.csv')"),
    (b"RDA", "an R workspace", "write the table as CSV in R: write.csv(x, 'x.csv')"),
    (b"X\n\0\0\0", "an R object (.rds)", "write the table as CSV in R: write.csv(x, 'x.csv')"),
    (b"<stata_dta", "a Stata file", "open it with pandas.read_stata and give the frame"),
    (b"$FL2", "an SPSS file", "open it with pandas.read_spss and give the frame"),
    (b"7z\xbc\xaf", "a 7-zip archive", "unpack it and give the table inside"),
    (b"Rar!", "a RAR archive", "unpack it and give the table inside"),
    (b"ORC", "an ORC file", "open it with pyarrow.orc and give the table"),
    (b"Obj\x01", "an Avro file", ANOTHER),
]
PICKLES = tuple(bytes([0x80, v]) for v in range(2, 6))
MARKUP = (b"<!doctype html", b"<html", b"<?xml", b"<svg", b"<head", b"<body", b"<table")


def told_by(head: bytes) -> tuple[str, str] | None:
    """What a file is that begins so and is no table, and what to do."""
    for magic, what, remedy in SIGNATURES:
        if head.startswith(magic):
            return what, remedy
    if head.startswith(PICKLES):
        return "a Python pickle", "open it with pandas.read_pickle, if you trust where it came from, and give the frame"
    start = head[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(MARKUP):
        what = "an XML file" if start.startswith((b"<?xml", b"<svg")) else "a web page (HTML)"
        return what, "check whether the download is a login or error page, or open it with pandas.read_html or read_xml"
    return None


def not_there(path: str) -> FileNotFoundError:
    """The error for a file that does not exist, with names that are close."""
    at = Path(path)
    folder = at.parent
    if not folder.is_dir():
        return FileNotFoundError(f"there is no folder {str(folder)!r}, so no file {path!r}: check the path")
    with os.scandir(folder) as entries:
        known = [e.name for e in entries]
    lower = {name.lower(): name for name in known}
    near = [lower[m] for m in difflib.get_close_matches(at.name.lower(), lower, n=3, cutoff=0.6)]
    near += [n for n in known if Path(n).stem.lower() == at.stem.lower() and n not in near]
    hint = f"did you mean {' or '.join(map(repr, near[:3]))}?" if near else "check the name and the folder"
    return FileNotFoundError(f"there is no file {path!r}: {hint}")


def damaged(path: str, what: str, e: BaseException) -> TableError:
    """The error for a file that ends too early or is broken inside."""
    return TableError(
        f"{path} begins as {what} but cannot be read to its end ({brief(e)}): it looks truncated or damaged; "
        "fetch or write it again"
    )


@contextmanager
def reading(path: str, what: str, *kinds: Any) -> Iterator[None]:
    """Errors of a library that reads a file, as one of ours."""
    try:
        yield
    except TableError:
        raise
    except PermissionError:
        raise forbidden(path) from None
    except FileNotFoundError:
        raise
    except kinds as e:
        raise damaged(path, what, e) from e


def forbidden(path: str) -> PermissionError:
    """The error for a file that may not be read."""
    return PermissionError(f"{path} may not be read by you: ask for permission, or copy it to where you may")
