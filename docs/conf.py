"""Sphinx: pages in Markdown, a reference made from the code, a gallery of examples that are run."""

import inspect
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx_gallery.sorting import ExplicitOrder

import unmix

sys.path.insert(0, str(Path(__file__).parent))

project = "unmix"
author = "the unmix developers"
copyright = "2026, the unmix developers"
version = release = unmix.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design", "sphinx_gallery.gen_gallery"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 2
html_theme = "pydata_sphinx_theme"
html_title = "unmix"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_sidebars = {"index": [], "benchmarks": []}
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "auto_gallery/index": []},
}
# Recordings are no part of the project: pages of those that are not there are shown, but not run.
RECORDINGS = {
    "plot_party": "cocktail-party",
    "plot_room": "two-mic-mixes",
    "plot_heart": "foetal-ecg",
    "plot_escalator": "escalator-video",
}
DATA = Path(os.environ.get("UNMIX_DATA", "nowhere"))
absent = "|".join([page for page, folder in RECORDINGS.items() if not (DATA / folder).is_dir()] or ["none"])
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": rf"/(?!({absent})\.py)plot_",
    "subsection_order": ExplicitOrder(
        [f"gallery/{name}" for name in ("groups", "components", "holes", "large", "recordings")]
    ),
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gen_backreferences",
    "doc_module": "unmix",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 60,
    "capture_repr": ("__repr__",),
    "remove_config_comments": True,
}
autodoc_typehints = "none"
napoleon_numpy_docstring = True
napoleon_use_rtype = False
napoleon_use_param = False  # else Sphinx takes the words of types for names, and links them
napoleon_custom_sections = [("Attributes", "params_style")]
default_role = "code"
exclude_patterns = ["_build", "_static", "gallery", "auto_gallery/**.ipynb", "auto_gallery/**.py"]


def make_pages(app):
    import api
    import measured

    folder = Path(app.srcdir)
    api.write(folder)
    (folder / "benchmarks.md").write_text(measured.page())
    measured.picture(folder / "_static")


def complete(app, what, name, obj, options, lines):
    """A method that says nothing of what it takes and returns has it from the one that it takes the place of."""
    import api

    *_, home, method = f"..{name}".split(".")
    if what == "method" and inspect.isclass(cls := getattr(unmix, home, None)) and hasattr(cls, method):
        lines[:] = api.documented(cls, method).splitlines()


def plain(app, what, name, obj, options, lines):
    """Docstrings are text: only what is in backticks, sections and examples mean something to Sphinx."""
    text = "\n".join(lines).split("\n\n")
    text = [part for part in text if ":ref:`" not in part]  # of scikit-learn's own pages
    quoted = re.compile(r"(`[^`]*`|^ *>>>.*$|^ *\.\. .*$)", re.MULTILINE)
    for i, part in enumerate(text):
        if not part.lstrip().startswith((">>>", ".. ")):
            pieces = quoted.split(part)
            pieces[::2] = [re.sub(r"(?<=\w)(?<!\\)_(?!\w)|(?<!\\)\|", r"\\\g<0>", piece) for piece in pieces[::2]]
            text[i] = "".join(pieces)
    lines[:] = "\n\n".join(text).split("\n")


def make_pictures(app):
    import pictures  # runs the code of the pages

    pictures.draw_all(Path(app.srcdir) / "_static")


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
    app.connect("autodoc-process-docstring", complete, priority=400)  # before the sections are read
    app.connect("autodoc-process-docstring", plain, priority=600)  # after
