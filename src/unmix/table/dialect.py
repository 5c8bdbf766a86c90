"""How a text file is laid out: what separates its fields, what comes before its rows, whether the first names columns.

A separator is chosen as CleverCSV does it: by how many lines it cuts alike, and by how many of the cells are then of a
kind that is known (a number, a date, a truth value, nothing). Only the first lines are looked at.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, takewhile

from unmix.table.values import MISSING, ODD

LINES, BYTES, CELLS = 400, 1 << 18, 20_000  # that are looked at
SEPARATORS = ("\t", "|", ";", ",", " ")  # the rarer one is in text, the more it says
NONE = "\x1f"  # separates nothing: a table of one column
PREAMBLE = 30  # lines before a table, at most
KNOWN = re.compile(
    r"[+−-]?[$€£]?[ ]?[+-]?(?:\d+|\d{1,3}(?:[,.' ]\d{3})+)?(?:[.,]\d*)?(?:[eE][+-]?\d+)?[ ]?[%€$£]?"
    r"|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:[T ]\d{1,2}:\d\d.*)?|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?|(?i:true|false)|inf|-inf"
)
HOLES = frozenset((*MISSING, *ODD))


@dataclass(frozen=True)
class Dialect:
    """The layout of a text file."""

    separator: str
    quote: str = '"'
    escape: str = ""
    lines: int = 0  # before the rows: a preamble, comments, the header
    skip: int = 0  # the bytes of these
    names: tuple[str, ...] | None = None
    width: int = 1
    notes: tuple[str, ...] = ()
    squeeze: bool = False  # runs of blanks separate


def known(cell: str) -> bool:
    """Whether a cell is of a kind that is known."""
    cell = cell.strip()
    return cell in HOLES or KNOWN.fullmatch(cell) is not None


def lines_of(head: bytes, complete: bool) -> list[str]:
    """The first lines, with their ends; the last one only if the file ends there."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", head.decode("utf-8", "replace"))
    lines = lines if complete or len(lines) < 2 else lines[:-1]
    sizes = accumulate(map(len, lines))
    enough = sum(size < BYTES for size in sizes) + 1  # few lines suffice where they are long
    return lines[: min(LINES, max(enough, 10))]


def cut(lines: list[str], dialect: Dialect) -> tuple[list[list[str]], list[int]]:
    """Lines as rows of fields without blank ones, and how many lines have passed at the end of each."""
    if dialect.squeeze:
        rows = [(re.split(r"[ \t]+", line.strip()), i) for i, line in enumerate(lines, 1)]
    else:
        reader = csv.reader(
            lines,
            delimiter=dialect.separator,
            quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
            escapechar=dialect.escape or None,
        )
        rows = []
        with suppress(csv.Error):
            rows.extend((row, reader.line_num) for row in reader)
    rows = [(row, i) for row, i in rows if row and row != [""]]
    return [row for row, _ in rows], [i for _, i in rows]


def score(rows: list[list[str]]) -> tuple[float, float, int]:
    """How well a separator fits: the share of rows that it cuts alike, that of known cells, and the width."""
    body = rows[min(PREAMBLE, len(rows) // 2) :] if len(rows) > 12 else rows[1:] or rows
    width, often = Counter(map(len, body)).most_common(1)[0] if body else (1, 0)
    cells = [c for row in body if len(row) == width for c in row][:CELLS]
    return often / max(1, len(body)), sum(map(known, cells)) / max(1, len(cells)), width


def quoting(lines: list[str]) -> tuple[str, str]:
    """The quotation mark, and what escapes it inside."""
    text = "".join(lines)
    single = len(re.findall(r"(?:^|[,;\t|])'[^'\r\n]*'(?=[,;\t|\r\n])", text, re.MULTILINE))
    double = len(re.findall(r'(?:^|[,;\t|])"', text, re.MULTILINE))
    quote = "'" if single > double else '"'
    return quote, "\\" if re.search(rf"\\{quote}(?![,;\t|\r\n])", text) else ""


def choose(lines: list[str], path: str, quote: str, escape: str) -> Dialect:
    """The separator that cuts the most lines alike into the most cells of a known kind."""
    extension = re.sub(r"\.(gz|bz2|zst|xz|zip)$", "", path.lower()).rpartition(".")[2]
    best, found = (0.0, False, 0), Dialect(NONE, quote, escape)
    for rank, separator in enumerate(SEPARATORS):
        tried = Dialect(separator, quote, escape, squeeze=separator == " " and quote not in "".join(lines))
        rows, _ = cut(lines, tried)
        alike, share, width = score(rows)
        headed = bool(rows) and len(rows[0]) == width
        only_decimals = separator == "," and width == 2 and len(rows[0]) == 1 and len(rows) > 1 and share == 1.0
        if width < 2 or alike < 0.5 or only_decimals:
            continue
        if separator == " " and share < (0.95 if extension in ("csv", "tsv") else 0.3):
            continue
        value = round(alike * (0.2 + share) * (0.9 if separator == " " else 1.0), 3)
        value += 0.1 * (separator == "\t" and extension in ("tsv", "tab"))
        if (value, headed, -rank) > best:
            best, found = (value, headed, -rank), replace(tried, width=width)
    return found


def sniff(head: bytes, complete: bool, path: str, header: bool | None) -> Dialect:
    """The layout of a text file from its first bytes.

    Parameters
    ----------
    head : bytes
        The beginning of the file, as UTF-8.
    complete : bool
        Whether that is the whole file.
    path : str
        Its name: the extension decides between separators that fit equally well.
    header : bool or None
        Whether the first row names the columns; None to tell from the values.
    """
    every = lines_of(head, complete)
    top = sum(1 for _ in takewhile(lambda line: line[0] in "#%\r\n", every))
    told = re.match(r'"?sep=(.)"?\s*$', every[top]) if top < len(every) else None
    lines = every[top + bool(told) :]
    quote, escape = quoting(lines)
    found = Dialect(told[1], quote, escape) if told else choose(lines, path, quote, escape)
    rows, ends = cut(lines, found)
    width = score(rows)[2]
    if rows and len(rows[0]) > width + 1 and not any(map(known, rows[0])):
        width = len(rows[0])  # more names than fields: the rows are short, which is said when they are read
    first = next((i for i, row in enumerate(rows[:PREAMBLE]) if begins(row, width)), 0)
    notes = [f"{first} line{'s' * (first > 1)} before the table left out"] * (first > 0)
    comment = [line.lstrip("#% ") for line in every[:top] if line.strip()]
    above = cut(comment[-1:], found)[0] if comment else []
    rows = rows[first:]
    if header is None and above and len(above[0]) == width > 1 and not is_header(rows, width, path)[0]:
        names: list[str] | None = above[0]
        taken = first
        notes.append("the names of the columns are taken from the comment line above them")
    else:
        headed, note = (header, "") if header is not None else is_header(rows, width, path)
        names = (rows[0] if rows else []) if headed else None
        taken = first + headed
        notes += [f"{len(comment)} comment line{'s' * (len(comment) > 1)} at the top left out"] * bool(comment)
        notes += [note] * bool(note)
    passed = ends[taken - 1] if taken and ends else 0
    prefix = "".join(every[: top + bool(told) + passed])
    trailing = all(row[-1] == "" for row in rows[1:] if len(row) == width) and width > 1
    named = None if names is None else tuple(fitted([n.strip() for n in names], width, trailing, notes))
    return replace(
        found, width=width, names=named, lines=prefix_lines(prefix), skip=len(prefix.encode()), notes=tuple(notes)
    )


def prefix_lines(prefix: str) -> int:
    """How many lines there are in a text that ends with one."""
    return len(re.findall(r"\r\n|\n|\r", prefix))


def begins(row: list[str], width: int) -> bool:
    """Whether a row may be the first of the table: as wide as the others, and more than a title in its first cell."""
    filled = sum(bool(c.strip()) for c in row)
    if width > 2 and filled < 2:
        return False
    return len(row) == width or (width > 2 and len(row) == width - 1) or (len(row) == width + 1 and not row[-1].strip())


def fitted(names: list[str], width: int, trailing: bool, notes: list[str]) -> list[str]:
    """As many names as there are columns, where the header has one fewer or one more."""
    if len(names) == width - 1:
        if trailing:
            return [*names, ""]
        notes.append("the rows have one field more than the header: the first column is taken for names of rows")
        return ["row names", *names]
    return names[:width] if len(names) == width + 1 and not names[-1] else names


def counts_on(first: list[str], numbers: int, body: list[list[str]]) -> bool:
    """Whether the numbers in the first row are names: years in a row, or positions from 0 above fractions."""
    counted = [int(c) for c in first if re.fullmatch(r"\d{1,5}", c)]
    if len(counted) < max(2, numbers) or any(b - a != 1 for a, b in pairwise(counted)):
        return False
    positions = counted == list(range(len(first))) and any("." in c or "," in c for row in body for c in row)
    return 1800 <= counted[0] <= 2100 or (positions and len(first) > 2)


def is_header(rows: list[list[str]], width: int, path: str) -> tuple[bool, str]:
    """Whether the first row names the columns, and what to say about it.

    It does where it has words above numbers or dates, and does not where it has numbers there. Numbers that count on by
    one (years, or positions from 0 above fractions) are names, too. Where all is text, it does if none of its cells
    comes again below.
    """
    if not rows:
        return False, ""
    first, body = [c.strip() for c in rows[0]], [r for r in rows[1:] if len(r) == width][: max(20, CELLS // width)]
    first += [""] * (width - len(first))
    if not body:
        return not all(map(known, first)), ""
    words = numbers = again = 0
    for j in range(width):
        below = [c for c in (row[j].strip() for row in body) if c not in HOLES]
        if below and sum(map(known, below)) >= 0.9 * len(below):
            words += not known(first[j])
            numbers += first[j] not in HOLES and known(first[j])
        else:
            again += first[j] in below
    data = "the first line is taken for data, not for names (--header changes that)"
    if numbers and not counts_on([c for c in first if c], numbers, body):
        return (True, "") if words > numbers else (False, data)
    if words or numbers:
        return True, ""
    distinct = len(set(first)) == len(first) and "" not in first[1:]
    listed = width == 1 and not re.search(r"\.csv(\.\w+)?$", path.lower())
    if again or not distinct or listed:
        return False, data
    return True, "all is text: the first line is taken for names (--no-header changes that)"
