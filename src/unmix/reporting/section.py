"""What a section of a report is made of: sentences, pictures and tables, as plain values."""

from __future__ import annotations

from typing import Any, NamedTuple


class Chart(NamedTuple):
    """A picture: its kind, which `page.js` draws, a sentence on what it shows, and the values."""

    kind: str
    caption: str
    values: dict[str, Any]


class Grid(NamedTuple):
    """A table: a sentence on what it shows, the heads of its columns, its rows as text; `left` columns are words."""

    caption: str
    heads: list[str]
    rows: list[list[str]]
    left: int = 1


class Section(NamedTuple):
    """A question, and what the table says to it.

    `answer` is the sentence of the summary, `said` what stands beside the evidence, `code` the lines of Python that
    give the numbers, `facts` the same for machines, `why` how it was found, for those who ask, `link` its name in the
    line of links on top of the page.
    """

    key: str
    link: str
    title: str
    answer: str
    said: list[str]
    shown: list[Chart | Grid]
    code: str
    facts: dict[str, Any]
    why: tuple[str, ...] = ()
