"""Where the documentation is: the "?" of an estimator in a notebook leads to its page."""

from __future__ import annotations

from typing import ClassVar

SITE = "https://unmix.readthedocs.io/en/stable/"  # pyproject.toml has it, too


class Documented:
    """An estimator with a page of its own, under its name; put it before scikit-learn's `BaseEstimator`."""

    _doc_link_module = "unmix"  # of classes from elsewhere, which have no page here, scikit-learn shows no link
    _doc_link_template = SITE + "{page}"
    _doc_page: ClassVar[str] = "api/{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """What the template is filled with."""
        return {"page": self._doc_page.format(name=type(self).__name__)}
