"""The site of the documentation: everything public has a page, links lead somewhere, a notebook's "?" leads there."""

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import unmix
from unmix.engine.site import SITE

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GALLERY = sorted(DOCS.glob("gallery/*/*.py"))


@pytest.fixture(scope="module")
def api():
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("api")
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def pages(api):
    """Every page by its path: those that are written, those made from the classes, those of the gallery."""
    measured = importlib.import_module("measured")
    written = {path.name: path.read_text() for path in DOCS.glob("*.md")}
    shown = {f"auto_{path.relative_to(DOCS).with_suffix('.rst')}": path.read_text() for path in GALLERY}
    return written | api.pages() | {"benchmarks.md": measured.page()} | shown | {"auto_gallery/index.rst": ""}


def classes(api):
    """Every public class, by the page that it is on."""
    for name in {*unmix.__all__, *unmix.models()} - {"plot"}:
        if inspect.isclass(thing := getattr(unmix, name)):
            yield f"models/{name}.md" if name in unmix.models() else f"api/{name}.md", thing
    for room, (module, _) in api.ROOMS.items():
        for thing in (getattr(module, name) for name in module.__all__ if name not in unmix.__all__):
            if inspect.isclass(thing):
                yield f"api/{room}.md", thing


def test_what_pages_import_comes_with_the_docs():
    """`make docs` runs them where nothing else is installed."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [
        *found["dependencies"],
        *(need for name in ("docs", "dask", "plot") for need in found["optional-dependencies"][name]),
    ]
    there = {re.match(r"[\w-]+", need)[0].replace("scikit-learn", "sklearn") for need in asked}
    blocks = [re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL) for path in DOCS.glob("*.md")]
    code = "\n".join([*(block for page in blocks for block in page), *(path.read_text() for path in GALLERY)])
    used = set(re.findall(r"^ *(?:import|from) (\w+)", code, re.MULTILINE)) - {"skeleton"}  # is beside the examples
    assert used - sys.stdlib_module_names - there == set()


def test_every_public_name_has_a_page(api, pages):
    for name in unmix.__all__:
        where = f"models/{name}.md" if name in unmix.models() else f"api/{api.FILES.get(name, name)}.md"
        assert f"# {'unmix.' * (name == 'plot')}{name}\n" in pages[where]
    for room, (module, _) in api.ROOMS.items():
        for name in module.__all__:
            assert re.search(rf":: {name}$|\[`{name}`\]", pages[f"api/{room}.md"], re.MULTILINE), (room, name)


def test_every_method_has_its_place(api, pages):
    """On the page of the class if people call it, else on that for people who write models."""
    inside = api.inside()
    for where, cls in classes(api):
        told = re.findall(r"\.\. auto(?:method|property):: (?:\w+\.)?(\w+)$", pages[where], re.MULTILINE)
        for name in api.public(cls):
            if name not in told and name not in ("partial_fit", "to_sklearn"):
                assert name in inside[api.owner(cls, name)], (where, name)
                assert f"| `{name}` |" in pages["api/contract.md"]
    assert {"fit", "loadings", "impute", "to_sklearn"} <= set(api.for_users(unmix.PCA))
    assert not {"local", "fit_with", "publish", "weigh"} & set(api.for_users(unmix.PCA))
    assert "partial_fit" not in api.for_users(unmix.KernelPCA)
    assert "to_sklearn" not in api.for_users(unmix.Mixture)


def test_methods_say_what_they_take_and_return(api):
    for name, cls in unmix.models().items():
        for method in api.for_users(cls):
            if api.kind_of(cls, method) == "method":
                assert api.SECTIONS.search(api.documented(cls, method)), f"{name}.{method}"


def test_pages_say_what_the_numbers_of_rows_are(api):
    """Not only that there are k of them: distances, memberships, scores."""
    of_all = inspect.getdoc(unmix.Model.transform)
    for name, cls in unmix.models().items():
        assert api.documented(cls, "transform") != of_all, name
    assert api.documented(unmix.KMeans, "transform").startswith(
        f"{of_all.partition(':')[0]}. Distances to the centres."
    )
    assert api.documented(unmix.Model, "transform") == of_all


def test_models_lead_to_the_pages_that_explain_them(api):
    for name, cls in unmix.models().items():
        told = api.see_also(name, api.namesake(cls))[0]
        assert told.startswith("See also [`sklearn."), name
        assert "](../" in told, name
    assert "](../clustering.md#kmeans)" in api.see_also("KMeans", "sklearn.cluster.KMeans")[0]
    assert "](../holes.md)" in api.see_also("pool")[0]


def test_see_also_exists(api):
    for name in {n for near in api.NEAR.values() for n in near} | {api.namesake(c) for c in unmix.models().values()}:
        if name:
            module, _, last = name.rpartition(".")
            if module == "sklearn.impute":
                importlib.import_module("sklearn.experimental.enable_iterative_imputer")
            assert hasattr(importlib.import_module(module), last)


def test_links_lead_somewhere(pages):
    files = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.is_file()}
    pictures = (DOCS / "pictures.py").read_text()
    for where, text in pages.items():
        text = re.sub(r"```\w+\n.*?```", "", text.replace("```{", "'''{"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?://", link) or where == "changelog.md":
                continue
            path, _, anchor = link.partition("#")
            target = (Path(where).parent / path).as_posix() if path else where
            target = re.sub(r"[^/]+/\.\./", "", target)
            if target.startswith("_static/") and target.endswith(".svg"):
                assert f"def {Path(target).stem}(" in pictures or target == "_static/benchmarks.svg", (where, link)
            else:
                assert target in pages or f"{target}.rst" in pages or target in files, (where, link)
            if anchor.startswith("unmix."):
                *_, cls, method = anchor.split(".")
                assert f":: {cls}.{method}\n" in pages[target], (where, link)
        for link in re.findall(r":(?:doc|link): ?`?([\w./]+)`?", text):
            target = re.sub(r"[^/]+/\.\./", "", (Path(where).parent / link).as_posix())
            target = re.sub(r"[^/]+/\.\./", "", target)
            assert f"{target}.md" in pages or f"{target}.rst" in pages, (where, link)


def test_every_page_is_in_a_table_of_contents(pages):
    told = set()
    for where, text in pages.items():
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
            for entry in (line for line in tree.split("\n") if line and not line.startswith(":")):
                told.add(re.sub(r"[^/]+/\.\./", "", (Path(where).parent / entry).as_posix()))
    assert {page.removesuffix(".md") for page in pages if page.endswith(".md")} - told == {"index"}


def test_pages_of_the_gallery_begin_with_a_title_and_are_in_order():
    order = re.search(r'in \(("groups".*?)\)', (DOCS / "conf.py").read_text())[1]
    assert set(re.findall(r"\w+", order)) == {path.parent.name for path in GALLERY}
    recordings = re.findall(r'"(plot_\w+)": ', (DOCS / "conf.py").read_text())
    assert sorted(recordings) == [path.stem for path in GALLERY if path.parent.name == "recordings"]
    for path in GALLERY:
        title, line = path.read_text().split("\n")[1:3]
        assert line == "=" * len(title), path
        compile(path.read_text(), str(path), "exec")


# ---------------------------------------------------------------- from a notebook


ESTIMATORS = [*unmix.models().values(), unmix.Imputer, unmix.OutlierDetector, unmix.Select, unmix.TableEncoder]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_the_question_mark_leads_to_the_page(cls, pages):
    model = cls("KMeans") if cls is unmix.Select else cls()
    link = model._get_doc_link()
    assert link.startswith(SITE)
    page = link.removeprefix(SITE).replace(".html", ".md")
    assert pages[page].startswith(f"# {cls.__name__}\n")
    assert f'href="{link}"' in model._repr_html_()


def test_row_densities_are_on_the_page_of_their_room(pages):
    page, _, anchor = unmix.outlier.RowDensity()._get_doc_link().removeprefix(SITE).partition("#")
    assert anchor == "unmix.outlier.RowDensity"
    assert ":: RowDensity\n" in pages[page.replace(".html", ".md")]


def test_every_public_estimator_has_a_link(api):
    for _, cls in classes(api):
        if issubclass(cls, BaseEstimator):
            assert cls._doc_link_module == "unmix"


def test_models_from_elsewhere_have_no_page_here():
    class Mine(unmix.KMeans):
        __module__ = "mine"

    assert Mine()._get_doc_link() == ""


# ---------------------------------------------------------------- what is kept, and what is made


def test_the_address_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["urls"]["Documentation"] == SITE
    include = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert len(include) == len(set(include))


def test_made_pages_are_ignored(api):
    """The list in the root is the one that the build of a source distribution reads, too."""
    made = [*api.pages(), "benchmarks.md", "_build/index.html", "auto_gallery/index.rst", "_static/tour.svg"]
    made += [
        "_static/seven.html",
        "_static/wines.html",
        "gen_backreferences/unmix.PCA.examples",
        "sg_execution_times.rst",
    ]
    git = ["git", "-C", str(ROOT), "check-ignore", *(f"docs/{name}" for name in made)]
    try:
        found = subprocess.run(git, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("without git")
    if found.returncode == 128:
        pytest.skip("not a checkout")
    assert len(found.stdout.split()) == len(made)
    assert not list(DOCS.rglob("**/.gitignore"))


def test_losses_are_shown(pages):
    measured = importlib.import_module("measured")
    for cases in measured.reports().values():
        for case in cases:
            for name, time, _ in measured.rivals(case):
                assert not name.startswith("unmix")
                if time is not None and time < 1:
                    assert f"| {case['title']} | {name} |" in pages["benchmarks.md"]
