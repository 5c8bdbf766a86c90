"""Every public class and function shows how it is used, in its own docstring; `test_docs.py` runs these examples."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import unmix
import unmix.mixture
import unmix.outlier
import unmix.validate

DOCS = Path(__file__).parents[1] / "docs"
PACKAGES = (unmix, unmix.validate, unmix.outlier, unmix.mixture)
ELSEWHERE = {"Model": "examples/skeleton.py is a whole model, and the tests run it"}


def listed():
    """What the pages refer to."""
    for page in sorted(DOCS.glob("*.md")):
        for name in re.findall(r"\.\. auto(?:class|function):: ([\w.]+)", page.read_text()):
            module, _, last = name.rpartition(".")
            yield last, getattr(importlib.import_module(module), last)


PUBLIC = dict(listed()) | {name: getattr(package, name) for package in PACKAGES for name in package.__all__}


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in sorted(PUBLIC) if name not in ELSEWHERE])
def test_examples(name):
    thing = PUBLIC[name]
    own = inspect.cleandoc(vars(thing).get("__doc__") or thing.__doc__ or "")  # not one that is inherited
    assert re.search(r"^Examples\n-+\n", own, re.MULTILINE), f"{name} has no section of examples"
    examples = doctest.DocTestParser().get_examples(own)
    assert any(example.want for example in examples), f"the examples of {name} show nothing"


def test_what_is_public_was_found():
    assert {"KMeans", "select", "silhouette", "OutlierDetector", "Student", *unmix.models()} <= set(PUBLIC)
