"""Imports point one way, the loop is written once, and the pages tell what is there."""

import ast
import re
from pathlib import Path

import unmix

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unmix"
FAMILIES = {"linear", "cluster", "mixture", "nonneg", "topic"}
MAY_IMPORT = {
    "kernels": {"kernels"},
    "maths": {"maths", "kernels"},
    "io": {"io"},
    "engine": {"engine", "io", "maths", "kernels"},
    "model": {"model", "engine", "io", "maths", "kernels"},
    **{family: {family, "model", "engine", "maths", "kernels"} for family in FAMILIES},
    "validate": {"validate", "model", "engine", "maths", "kernels"},
    "selection": {"selection", "validate", "model", "engine", "maths"},
    "outlier": {"outlier", "model", "engine", "maths", "kernels", *FAMILIES},
    "cli": {"cli", "engine", "io", "model", *FAMILIES},
}


def imports(path):
    """The parts of unmix that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{a.name}" for a in node.names]
        for name in names:
            if name.startswith("unmix."):
                yield name.split(".")[1], name


def test_imports_point_one_way():
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0]
        if part == "__init__.py":
            continue
        for target, name in imports(path):
            assert target in MAY_IMPORT[part], f"{path.relative_to(SOURCE)} imports {name}"


def test_no_family_imports_anothers_private_names():
    for path in SOURCE.rglob("*.py"):
        for target, name in imports(path):
            own = path.relative_to(SOURCE).parts[0]
            private = any(p.startswith("_") for p in name.split(".")[2:])
            assert not private or target == own, f"{path.relative_to(SOURCE)} imports {name}"


def test_only_the_engine_loops_over_passes():
    loop = re.compile(r"for .* in range\(.*(max_iter|n_iter|max_passes)")
    for path in SOURCE.rglob("*.py"):
        if "engine" not in path.parts:
            assert not loop.search(path.read_text()), path


def test_every_model_is_in_the_read_me_and_says_its_equations():
    page = (ROOT / "README.md").read_text()
    for name, cls in unmix.models().items():
        assert f"`{name}`" in page
        equations = __import__(cls.__module__, fromlist=["_"]).__doc__
        assert all(head in equations for head in ("local", "stats", "update")), name
        assert "Parameters" in cls.__doc__
        assert "Attributes" in cls.__doc__


def test_kernels_call_only_what_is_inlined():
    kinds, calls = {}, []
    for path in (SOURCE / "kernels").glob("*.py"):
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef):
                kinds[function.name] = " ".join(ast.unparse(d) for d in function.decorator_list)
                inner = [
                    c.func.id for c in ast.walk(function) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)
                ]
                calls += [(path.name, function.name, name) for name in inner]
    assert "kernel" in " ".join(kinds.values())
    for file, caller, name in calls:
        if kinds[caller].startswith(("kernel", "inlined")):
            assert not kinds.get(name, "").startswith("kernel"), f"{file}: {caller} calls {name}, which is not inlined"
