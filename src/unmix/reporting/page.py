"""A report as one HTML file: text and tables are in the page itself, pictures are drawn by the scripts that it carries.

Whatever comes from a table is escaped: `Html` is text that is HTML already, every other string becomes it by `safe`.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import unmix
from unmix.reporting.section import Chart, Grid, Section

LONG = 24  # characters, from which on a column of words is given room
TALL = 15  # rows, from which on a table is looked at through a window
NOTES = "For those who know the models: said while they were tried, by those that were not taken, too."
SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "page.js")


class Html(str):
    """Text that is HTML."""


def safe(value: Any) -> Html:
    """A value as HTML that shows it."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def tag(name: str, *inside: Any, **attributes: Any) -> Html:
    """An element; `class_` for class, `data_x` for data-x."""
    told = "".join(f' {k.rstrip("_").replace("_", "-")}="{escape(str(v))}"' for k, v in attributes.items())
    return Html(f"<{name}{told}>{''.join(safe(v) for v in inside)}</{name}>")


def page(title: str, sections: list[Section], notes: list[str]) -> str:
    """The whole page."""
    links = [tag("a", s.link, href=f"#{s.key}") for s in sections]
    body = [
        tag("header", tag("p", "unmix report", class_="kind"), tag("h1", title)),
        tag("nav", *links, aria_label="Sections"),
        tag("noscript", tag("p", "Scripts are switched off: sentences and tables are here, pictures are not.")),
        tag("main", summary(title, sections), *map(_section, sections), *_notes(notes)),
        tag("footer", f"Made by unmix {unmix.__version__}. The page holds all that it shows: nothing is loaded."),
    ]
    charts = {f"{s.key}-{i}": {"kind": part.kind, **part.values} for s in sections for i, part in enumerate(s.shown)
              if isinstance(part, Chart)}  # fmt: skip
    data = json.dumps(charts, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    scripts = "".join(f"<script>{_file(name)}</script>" for name in SCRIPTS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} – unmix report</title><style>{_file('page.css')}</style></head><body>"
        f'{"".join(body)}<script type="application/json" id="charts">{data}</script>{scripts}</body></html>\n'
    )


def summary(title: str, sections: list[Section], linked: bool = True) -> Html:
    """The answers, each with a link to its evidence where that is on the same page."""
    lines = [tag("li", s.answer, *_evidence(s) * linked) for s in sections]
    return tag("section", tag("h2", "In short"), tag("ol", *lines), id="summary", aria_label=f"Summary of {title}")


def _evidence(s: Section) -> tuple[Html, ...]:
    return safe(" "), tag("a", "evidence", href=f"#{s.key}", aria_label=f"evidence: {s.title}")


def _section(s: Section) -> Html:
    shown = [_chart(part, f"{s.key}-{i}") if isinstance(part, Chart) else _grid(part) for i, part in enumerate(s.shown)]
    return tag(
        "section",
        tag("h2", s.title),
        tag("p", s.answer, class_="answer"),
        *(tag("p", text) for text in s.said),
        *shown,
        *([tag("details", tag("summary", "How this was found"), *(tag("p", text) for text in s.why))] if s.why else []),
        tag(
            "details",
            tag("summary", "The lines of Python behind these numbers"),
            tag("pre", tag("code", s.code), tabindex="0"),
        ),
        id=s.key,
    )


def _chart(chart: Chart, key: str) -> Html:
    drawn = tag("div", class_="chart", data_chart=key, role="img", aria_label=chart.caption)
    return tag("figure", tag("figcaption", chart.caption), drawn)


def _grid(grid: Grid) -> Html:
    kinds = ["word" if j < grid.left else "number" for j in range(len(grid.heads))]
    for j in range(grid.left):
        kinds[j] += " long" * any(len(row[j]) > LONG for row in grid.rows)
    heads = [tag("th", head, scope="col", class_=kind) for head, kind in zip(grid.heads, kinds, strict=True)]
    rows = [
        tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in grid.rows
    ]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    seen = tag("div", table, class_="wide tall" if len(rows) > TALL else "wide", tabindex="0")
    return tag("figure", tag("figcaption", grid.caption), seen)


def _notes(notes: list[str]) -> list[Html]:
    if not notes:
        return []
    return [
        tag(
            "section",
            tag("h2", "What the models warned of"),
            tag("p", NOTES),
            tag("ul", *(tag("li", n) for n in notes)),
            id="notes",
        )
    ]


@cache
def _file(name: str) -> str:
    """A file of the package; a script may hold no end of a script."""
    return files("unmix.reporting").joinpath(name).read_text(encoding="utf-8").replace("</script", "<\\/script")
