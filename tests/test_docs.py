"""Every example of the documentation runs, and prints what the page says; so do the examples of every docstring."""

import dataclasses
import doctest
import importlib
import importlib.util
import pkgutil
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import unmix
from unmix.cli.main import main
from unmix.model.facts import GIVES, TAKES, facts, words

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(p.stem for p in DOCS.glob("*.md"))
MODULES = ["unmix", *sorted(m.name for m in pkgutil.walk_packages(unmix.__path__, "unmix."))]
NUMBER = re.compile(r"\d+(?:\.\d+)?")
QUESTIONS = ("how_many", "how_sure", "outliers", "clustering", "which_linear_model", "ica", "holes")


def from_docs(name):
    """A module of the folder of the pages."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib")
    return from_docs("pictures")


def promised(code):
    """What the comments behind and below calls of print say."""
    out, after = [], False
    for line in code.splitlines():
        if line.lstrip().startswith("print("):
            out += re.findall(r"\)  # (.*)", line)
            after = True
        elif after and line.startswith("# "):
            out.append(line[2:])
        else:
            after = False
    return " ".join(out)


def agree(said, found):
    """The same words and whole numbers; other numbers to 10 %, or 0.02 where they are small."""
    said, found = " ".join(said.split()), " ".join(found.split())
    if NUMBER.sub("x", said) != NUMBER.sub("x", found):
        return False
    pairs = zip(NUMBER.findall(said), NUMBER.findall(found), strict=True)
    near = [a == b if (a + b).isdigit() else abs(float(a) - float(b)) <= max(0.02, 0.1 * float(a)) for a, b in pairs]
    return all(near)


@pytest.mark.parametrize("page", PAGES)
def test_page(page, pictures, tmp_path, monkeypatch):
    code = pictures.blocks(DOCS / f"{page}.md")
    if not code:
        pytest.skip("a page without examples")
    if any("dask" in block for block in code):
        pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # an example that warns is no example
        warnings.filterwarnings("ignore", "Port")  # another test's Dask may be there
        names, printed = pictures.run(DOCS / f"{page}.md")
    for block, below, found in zip(code, pictures.outputs(DOCS / f"{page}.md"), printed, strict=True):
        said = promised(block) + " " + below
        assert agree(said, found), f"{page}.md says\n{said}\nbut the code prints\n{found}"
    pictures.draw(names, page, tmp_path)
    shown = re.findall(r"\(_static/(\w+\.svg)\)", (DOCS / f"{page}.md").read_text())
    assert sorted(shown) == sorted(p.name for p in tmp_path.glob("*.svg"))


def test_the_pages_that_promise_examples_have_them(pictures):
    for page in QUESTIONS:
        assert len(pictures.blocks(DOCS / f"{page}.md")) > 3
        assert page in (DOCS / "user_guide.md").read_text().split()


def test_a_wrong_comment_is_noticed():
    code = "print(x)  # k = 3: 2.50 and 'a'\nprint(y)\n# over\n# two lines"
    assert agree(promised(code), "k = 3: 2.51 and 'a'\nover two\nlines\n")
    for wrong in ("k = 4: 2.51 and 'a' over two lines", "k = 3: 2.81 and 'a' over two lines", "k = 3: 2.51 and 'a'"):
        assert not agree(promised(code), wrong)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


# ---------------------------------------------------------------- facts, in one place


def cells(page, head):
    """The table of a page whose first line has this head: name of the row → its other cells."""
    lines = page.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("|") and head in line)
    rows = {}
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        first, *others = (c.strip() for c in line.strip("|").split(" | "))
        rows[first] = others
    return rows


def test_tables_of_models_are_what_the_classes_say():
    tables = from_docs("tables")
    marked = [page for page in tables.PAGES if tables.MARKED.search(page.read_text())]
    assert {page.name for page in marked} >= {"README.md", "index.md", "engine.md"}
    for page in marked:
        text = page.read_text()
        assert tables.written(text) == text, f"{page.name} differs from the classes: run python -m docs.tables"


def test_the_command_line_says_the_same():
    listed = CliRunner().invoke(main, ["models"]).output
    for name, cls in unmix.models().items():
        told = facts(cls)
        said = listed.split(f"{name}: {told.finds}")[1].split("\n")[1]
        assert words(told, TAKES) in said
        assert words(told, GIVES) in said


def test_what_is_said_of_missing_cells_is_what_the_classes_say():
    told = cells(DOCS / "guide.md", "what happens to a row with missing cells")
    for name, cls in unmix.models().items():
        (said,) = (text for names, (text,) in told.items() if f"`{name}`" in names)
        assert ("an error" in said) != cls.missing, name


def test_what_is_said_of_metrics_is_what_they_take():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 4)) < 0.5).astype(float)
    holes = X.copy()
    holes[0, 0] = np.nan
    for metric, (*_, nan, csr) in cells(DOCS / "clustering.md", "| `metric` |").items():
        model = unmix.KMeans(2, metric=metric.strip('"'), random_state=0)
        for flag, rows in ((nan, holes), (csr, sp.csr_array(X))):
            if flag == "✓":
                model.fit(rows)
            else:
                with pytest.raises((TypeError, ValueError), match="metric"):
                    model.fit(rows)


def test_defaults_in_the_table_of_settings_are_the_code():
    said = {name.strip("`"): default for name, (default, _) in cells(DOCS / "guide.md", "| setting |").items()}
    settings = unmix.engine.config.Settings()
    assert list(said) == [f.name for f in dataclasses.fields(settings)]
    assert said["runner"] == f'"{settings.runner}"'
    assert said["progress"] == f'"{settings.progress}"'
    assert float(said["checkpoint_seconds"]) == settings.checkpoint_seconds
    assert (said["acceleration"] == "on") == settings.acceleration


def test_every_result_is_explained():
    said = set(re.findall(r'^- "(\w+)":', (DOCS / "guide.md").read_text(), re.MULTILINE))
    assert said == {"converged", "solved", "max_iter", "nonfinite", "stopped"}
