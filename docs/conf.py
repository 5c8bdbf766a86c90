"""Sphinx: pages in Markdown, one page per model made from its own docstring and class attributes."""

import inspect
import re
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

import unmix
from unmix.model.facts import HEADS, facts

sys.path.insert(0, str(Path(__file__).parent))

project = "unmix"
author = "the unmix developers"
copyright = "2026, the unmix developers"
version = release = unmix.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_theme = "pydata_sphinx_theme"
html_title = "unmix"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_sidebars = {"*": []}  # the models have one
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": {"models/*": [], "*": ["page-toc"]},
    "header_links_before_dropdown": 4,
    "navbar_persistent": ["search-button"],
}
autodoc_typehints = "none"
napoleon_numpy_docstring = True
napoleon_use_rtype = False
exclude_patterns = ["_build", "_static"]
# Equations in docstrings are set in plain text; some docstrings are scikit-learn's and refer to its own pages.
suppress_warnings = ["docutils", "ref.ref", "ref.python"]


def yes(flag):
    return "✓" if flag else "–"


def model_page(name, cls):
    """The equations, what the model takes, its exemptions with their reasons, and its parameters."""
    equations = inspect.cleandoc(sys.modules[cls.__module__].__doc__)
    lines = [f"# {name}", "", "```text", equations, "```", ""]
    flags = {HEADS[fact]: told for fact, told in facts(cls)._asdict().items() if fact != "finds"}
    flags |= {"keeps z between passes": cls.stateful, "accelerated": cls.accelerate}
    lines += ["| " + " | ".join(flags) + " |", "|" + ":-:|" * len(flags)]
    lines += ["| " + " | ".join(map(yes, flags.values())) + " |", ""]
    for what, why in {**cls.exempt, **cls.exempt_checks}.items():
        lines += [f"- *Exempt from* `{what}`: {why}"]
    told = "`trace_`, `result_`, `n_iter_` and `stages_` tell how a fit went: see [the guide](../guide.md)."
    lines += ["", told, "", "```{eval-rst}", f".. autoclass:: {cls.__module__}.{name}"]
    lines += ["   :members:", "   :inherited-members: Model", "```"]
    common = inspect.cleandoc(unmix.Model.__doc__).partition("Attributes\n----------\n")[2]
    lines += ["", "## Attributes of every fitted model", "", "```{eval-rst}"]
    lines += [re.sub(r"^(\w+) : (.+)$", r"``\1`` : \2", line) for line in common.splitlines()] + ["```"]
    return "\n".join(lines)


def make_pages(app):
    folder = Path(app.srcdir) / "models"
    folder.mkdir(exist_ok=True)
    names = []
    for name, cls in unmix.models().items():
        (folder / f"{name}.md").write_text(model_page(name, cls))
        names.append(name)
    toc = "\n".join(names)
    (folder / "index.md").write_text(f"# Models\n\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n")


def skip(app, what, name, obj, skip, options):
    """Leave out scikit-learn's metadata routing."""
    return True if name == "get_metadata_routing" or re.fullmatch(r"set_\w+_request", name) else None


def make_pictures(app):
    import pictures  # runs the code of the pages

    pictures.draw_all(Path(app.srcdir) / "_static")
    import gallery_ica  # recordings, where they are

    gallery_ica.draw_all(Path(app.srcdir) / "_static")


def formula(display):
    """Formulas as MathML, which browsers set by themselves: no script, no network."""

    def visit(writer, node):
        writer.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit, None


def setup(app):
    app.add_html_math_renderer("mathml", formula("inline"), formula("block"))
    app.connect("builder-inited", make_pages)
    app.connect("builder-inited", make_pictures)
    app.connect("autodoc-skip-member", skip)
