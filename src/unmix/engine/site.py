"""What an estimator shows in a notebook: what its fit found; a "?" that leads to its page of the documentation."""

from __future__ import annotations

from html import escape
from typing import ClassVar

SITE = "https://unmix.readthedocs.io/en/stable/"  # pyproject.toml has it, too


LINES = "font:12px sans-serif;margin:4px 0;overflow-wrap:anywhere"


class Documented:
    """An estimator with a page of its own, under its name; put it before scikit-learn's `BaseEstimator`."""

    _doc_link_module = "unmix"  # of classes from elsewhere, which have no page here, scikit-learn shows no link
    _doc_link_template = SITE + "{page}"
    _doc_page: ClassVar[str] = "api/{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """What the template is filled with."""
        return {"page": self._doc_page.format(name=type(self).__name__)}

    def findings(self) -> list[str]:
        """What the fit found, in lines for notebooks; none before it.

        Returns
        -------
        lines : list of str
        """
        return []

    def _html_repr(self) -> str:
        """scikit-learn's picture of an estimator, below what it found."""
        told = "".join(f"<div>{escape(line)}</div>" for line in self.findings())
        return (f"<div style='{LINES}'>{told}</div>" if told else "") + super()._html_repr()  # type: ignore[misc]
