"""Sphinx: pages in Markdown, a reference made from the code, a gallery of examples that are run."""

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
html_theme = "pydata_sphinx_theme"
html_title = "unmix"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_sidebars = {"index": [], "benchmarks": []}
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"index": [], "**": ["page-toc"]},
}
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "subsection_order": ExplicitOrder([f"gallery/{name}" for name in ("groups", "components", "holes", "large")]),
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
exclude_patterns = ["_build", "_static", "gallery", "auto_gallery/**.ipynb", "auto_gallery/**.py"]
# Equations in docstrings are set in plain text; some docstrings are scikit-learn's and refer to its own pages.
suppress_warnings = ["docutils", "ref.ref", "ref.python"]


def make_pages(app):
    import api
    import measured

    folder = Path(app.srcdir)
    api.write(folder)
    (folder / "benchmarks.md").write_text(measured.page())
    measured.picture(folder / "_static")


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
