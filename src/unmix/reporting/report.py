"""`report`: from a table to a page that tells what is in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.io.write import replacing
from unmix.reporting.access import access
from unmix.reporting.components import components
from unmix.reporting.contents import contents
from unmix.reporting.groups import groups
from unmix.reporting.holes import holes
from unmix.reporting.odd import odd
from unmix.reporting.parts import parts
from unmix.reporting.section import Section
from unmix.reporting.view import View
from unmix.table import Table

SECTIONS: tuple[Callable[[View], Section | None], ...] = (contents, access, groups, components, parts, odd, holes)
# as they are told; a family adds its own here
FIRST = (odd, components)  # are made before the others, which look at what these found


class Report:
    """What a table holds: sentences, and the evidence for each.

    `print(report)` gives the summary, `save` the page, `to_dict` the numbers.

    Attributes
    ----------
    title : str
        What the page is called.
    sections : list of Section
        The questions that were asked, each with its answer, pictures, tables and the lines of Python behind them.
    notes : list of str
        What the models warned of.
    """

    def __init__(self, title: str, sections: list[Section], notes: list[str]) -> None:
        self.title, self.sections, self.notes = title, sections, notes

    @property
    def summary(self) -> list[str]:
        """The answer of each section, in a sentence or two."""
        return [s.answer for s in self.sections]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON.

        Returns
        -------
        found : dict
        """
        facts = {s.key: {"answer": s.answer, **s.facts} for s in self.sections}
        return {"title": self.title, **facts, "notes": self.notes}

    def html(self) -> str:
        """The page, with all that it needs: no network, no other file.

        Returns
        -------
        page : str
        """
        from unmix.reporting.page import page

        return page(self.title, self.sections, self.notes)

    def save(self, path: Any, *, replace: bool = True) -> Path:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Where to, ending in .html.
        replace : bool, default=True
            Whether to replace what is there.

        Returns
        -------
        path : Path
        """
        target = Path(path).expanduser()
        page = self.html().encode(errors="replace")  # names of files need not be text
        with replacing(target, replace) as f:
            f.write(page)
        return target

    def __str__(self) -> str:
        return "\n".join([self.title, "", *(f"{i + 1}. {text}" for i, text in enumerate(self.summary))])

    def _repr_html_(self) -> str:
        from unmix.reporting.page import summary

        return summary(self.title, self.sections, linked=False)


def report(X: Any, *, title: str | None = None, random_state: int = 0, given: str | None = None, **how: Any) -> Report:
    """Tell what a table holds: its columns, components, groups, odd rows and empty cells, with the evidence.

    Parameters
    ----------
    X : Table, data frame, path, array, or what else makes a `Table`
        The rows. Of more than 10 000, about 5000 spread evenly are looked at, and the page says so.
    title : str, optional
        What the page is called; by default the name of the file.
    random_state : int, default=0
        Seed of all models.
    given : str, optional
        The line of Python that opens the table, for the page; by default a guess.
    **how
        As for `Table`: columns, drop, id, label, weights, kinds, scale, header. Every row counts once here.

    Returns
    -------
    report : Report
        `print(report)` for the summary, `report.save("report.html")` for the page, `report.to_dict()` for machines.

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> found = unmix.report(load_iris(as_frame=True).data)
    >>> found.to_dict()["groups"]["groups"]
    3
    """
    with progress_line("report", get_config()) as tell, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        table, line = _opened(X, how)
        view = View(table, given or line, int(random_state), tell)
        made = {ask: ask(view) for ask in dict.fromkeys((*FIRST, *SECTIONS))}
    sections = [section for ask in SECTIONS if (section := made[ask]) is not None]
    told = [str(w.message) for w in heard if issubclass(w.category, UserWarning)]
    if weights := table.role("weight"):
        told.insert(0, f"Every row counts once here: the weights in {weights[0]!r} are not used.")
    return Report(title or _title(X), sections, list(dict.fromkeys(told)))


def _opened(X: Any, how: dict[str, Any]) -> tuple[Table, str]:
    """X as a table, and the line of Python that does it."""
    if isinstance(X, Table):
        if how:
            raise ValueError(f"{next(iter(how))}=: X is a Table already, which knows its columns; say it there")
        return X, "import unmix\n\ntable = X"
    how = {name: _plain(value) for name, value in how.items() if value is not None}
    more = "".join(f", {name}={value!r}" for name, value in how.items())
    named = repr(str(X)) if isinstance(X, (str, Path)) else "X"
    return Table(X, **how), f"import unmix\n\ntable = unmix.Table({named}{more})"


def _plain(value: Any) -> Any:
    """Names as a list, which can be written down."""
    return value if isinstance(value, (str, bool, Mapping)) else list(value)


def _title(X: Any) -> str:
    """The name of the file, where it is one."""
    return Path(X).name if isinstance(X, (str, Path)) and str(X) != "-" else "Your table"
