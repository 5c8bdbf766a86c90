"""Every example of the documentation runs, and prints what the page says; so do the examples of every docstring."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import warnings
from pathlib import Path

import pytest

import unmix

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(p.stem for p in DOCS.glob("*.md"))
MODULES = sorted(m.name for m in pkgutil.walk_packages(unmix.__path__, "unmix."))
NUMBER = re.compile(r"\d+(?:\.\d+)?")
QUESTIONS = ("how_many", "how_sure", "outliers", "clustering")


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    for block, found in zip(code, printed, strict=True):
        assert agree(promised(block), found), f"{page}.md says\n{promised(block)}\nbut the code prints\n{found}"
    pictures.draw(names, page, tmp_path)
    shown = re.findall(r"\(_static/(\w+\.svg)\)", (DOCS / f"{page}.md").read_text())
    assert sorted(shown) == sorted(p.name for p in tmp_path.glob("*.svg"))


def test_the_pages_that_promise_examples_have_them(pictures):
    for page in QUESTIONS:
        assert len(pictures.blocks(DOCS / f"{page}.md")) > 3
        assert page in (DOCS / "index.md").read_text().split()


def test_a_wrong_comment_is_noticed():
    code = "print(x)  # k = 3: 2.50 and 'a'\nprint(y)\n# over\n# two lines"
    assert agree(promised(code), "k = 3: 2.51 and 'a'\nover two\nlines\n")
    for wrong in ("k = 4: 2.51 and 'a' over two lines", "k = 3: 2.81 and 'a' over two lines", "k = 3: 2.51 and 'a'"):
        assert not agree(promised(code), wrong)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
