"""Imports point one way, the loop is written once, and the pages tell what is there."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import unmix
from benchmarks.sizes import FILE, FUNCTION, code_lines

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unmix"
FAMILIES = {"linear", "cluster", "mixture", "nonneg", "topic", "boolean", "recommend"}
MAY_IMPORT = {
    "kernels": {"kernels"},
    "maths": {"maths", "kernels"},
    "io": {"io"},
    "engine": {"engine", "io", "maths", "kernels"},
    "table": {"table", "engine", "io"},
    "model": {"model", "table", "engine", "io", "maths", "kernels"},
    **{family: {family, "model", "engine", "maths", "kernels"} for family in FAMILIES},
    "validate": {"validate", "model", "engine", "maths", "kernels"},
    "selection": {"selection", "validate", "model", "engine", "maths"},
    "outlier": {"outlier", "model", "engine", "maths", "kernels", *FAMILIES},
    "imputation": {"imputation", "model", "table", "engine", "maths", "kernels", *FAMILIES},
    "explanation": {"explanation", "model", "table", "engine", "maths"},
    "plot": {"plot", "explanation", "selection", "validate", "linear", "table", "engine", "model"},
    "access": {"access", "table", "engine"},
    "reporting": {"reporting", "access", "explanation", "selection", "table", "engine", "io", "model"},
    "__main__.py": {"cli"},
    "cli": {
        "cli",
        "reporting",
        "imputation",
        "explanation",
        "selection",
        "outlier",
        "validate",
        "table",
        "engine",
        "io",
        "model",
        *FAMILIES,
    },
    "testing": {"testing", "model", "engine"},
}


TUPLES = {"_replace", "_make", "_fields", "_asdict", "_field_defaults"}  # NamedTuple's, public by its documentation
OTHERS_PRIVATE = {  # private names that modules use of others' objects, and why
    "_validate_params": "scikit-learn's check of `_parameter_constraints`, which has no public name",
    "_init_callback_context": "scikit-learn's callback protocol",
    "_callbacks": "the same: whether anybody listens",
    "_meta": "Dask's empty frame of the same columns",
    "_MODELS": "the package's list of models, which the command line reads without importing them all",
}
# Every `while` and every `for … break` outside the engine, and why it is no loop of a fit
LOOPS = {
    "io/pack.py:_entries": "entry after entry of a file",
    "boolean/_covering.py:reduced": "reductions of one set cover, until nothing changes: an inner solve",
    "boolean/_problem.py:grown": "what follows from what is known of roles, until nothing does: one start",
    "cluster/_starts.py:spread_out.traverse": "draws: rows far enough from those already taken",
    "cluster/_starts.py:spread_out": "draws: a shorter distance until there are enough rows",
    "cluster/_swaps.py:Swaps._sampled": "the medoids of one small sample: a round of the fit solves them to the end",
    "cluster/kmeans.py:KMeans._refill": "over the empty clusters of one update",
    "kernels/bicliques.py:new_before": "bits of a mask",
    "kernels/bicliques.py:close": "bits of a mask",
    "kernels/bicliques.py:listed": "biclique after biclique of a list that grows",
    "kernels/bicliques.py:paths": "one chain of bicliques",
    "kernels/bicliques.py:sizes": "bits of a mask",
    "kernels/bicliques.py:covered": "bits of a mask",
    "kernels/bicliques.py:count_cells": "bits of a mask",
    "kernels/bicliques.py:needless": "bits of a mask",
    "kernels/bits.py:unions": "bits of a mask",
    "kernels/bits.py:meet": "bits of a mask",
    "kernels/covering.py:greedy": "the greedy start of a set cover",
    "kernels/covering.py:search": "steps of local search within one round",
    "kernels/covering.py:holds": "a binary search",
    "kernels/covering.py:contained": "until one list is found that contains another, or so much work is done",
    "kernels/kmeans_limits.py:seek": "path compression in a minimum-cost flow",
    "kernels/kmeans_limits.py:leads_to": "a path in the same",
    "kernels/kmeans_limits.py:shortest": "ways in the same",
    "kernels/kmeans_limits.py:assign": "the flow itself: one block's assignment",
    "kernels/lanes.py:total.code": "code generation: halves of a register",
    "kernels/lda_documents.py:documents": "one document's γ",
    "kernels/medoids.py:best_leaver": "bits of a mask",
    "kernels/medoids.py:fasterpam": "over the rows of one round",
    "kernels/medoids.py:build": "PAM's greedy start: lazy evaluation of gains",
    "kernels/medoids.py:roots": "bits of a mask",
    "kernels/nmf_csr.py:_times": "pieces of a row",
    "kernels/nmf_csr.py:_transposed_times": "pieces of a row",
    "kernels/nmf_hals.py:hals": "one row's z",
    "kernels/nmf_hals.py:masked_hals": "one row's z",
    "kernels/nmf_kl.py:kl_rows": "one row's z",
    "kernels/silhouette.py:add_distances": "pieces of a row",
    "linear/_pre_image.py:Ways._fixed_point": "one row's pre-image",
    "linear/_least_absolute.py:least_absolute": "interior-point steps to one row's z",
    "linear/_rotations.py:oblimin": "the same, oblique: its steps, and how long each is",
    "linear/_rotations.py:orthomax": "the rotation of one update: a small orthogonal matrix",
    "linear/robust_pca.py:RobustPCA.encode": "one row's z",
    "maths/spectra.py:lanczos": "the leading eigenvectors of one matrix",
    "model/lloyd.py:halves": "two halves of one component, where a start is made of a neighbour's fit",
    "nonneg/_beta.py:Beta.steps": "one row's z",
    "nonneg/_divergence.py:dense_rows": "one row's z",
    "nonneg/_multiplicative.py:Multiplicative.amounts": "one row's z",
    "selection/clouds.py:clouds": "how many columns there are rows enough for",
    "table/streams.py:Stream.read": "pieces of a file",
    "table/streams.py:Stream.skip": "pieces of a file",
    "table/streams.py:Text.tail": "pieces of a file",
    "selection/likeness.py:structure": "draws until a comparison is decided: each is a fit of the engine",
}
SEVERAL_LOOPS = {
    "kernels/covering.py:contained": 2,
    "kernels/kmeans_limits.py:assign": 2,
    "kernels/nmf_csr.py:_times": 2,
    "kernels/silhouette.py:add_distances": 3,
    "linear/_rotations.py:oblimin": 2,
    "selection/likeness.py:structure": 2,
}


@cache
def parsed(path):
    """The syntax tree of a file, which several tests walk."""
    return ast.parse(path.read_text())


@cache
def defined_in(family):
    """The functions that the files of a family define."""
    files = (SOURCE / family).rglob("*.py")
    return {n.name for path in files for n in ast.walk(parsed(path)) if isinstance(n, ast.FunctionDef)}


def imports(path):
    """The parts of unmix that a file imports."""
    for node in ast.walk(parsed(path)):
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


def test_no_family_imports_another():
    for family in FAMILIES:
        for path in (SOURCE / family).rglob("*.py"):
            others = {name for target, name in imports(path) if target in FAMILIES - {family}}
            assert not others, f"{path.relative_to(SOURCE)} imports {others}"


def private(tree):
    """Private names that a file uses of objects other than self, cls and super(), and does not define itself."""
    defined = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    defined |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            defined |= {node.attr} if ast.unparse(node.value) in ("self", "cls") else set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.endswith("__"):
            continue
        if not re.fullmatch(r"self|cls|super\(.*\)", ast.unparse(node.value)) and node.attr not in defined | TUPLES:
            yield node.attr


def test_no_private_attribute_crosses_modules():
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        used = set(private(parsed(path))) - set(OTHERS_PRIVATE)
        assert not used, f"{name} uses {used} of other modules: give what others need a public name"


def inherited(tree, family):
    """Private names of itself that a class of a family uses and no file of the family defines."""
    known = defined_in(family)
    for node in ast.walk(tree):
        own = isinstance(node, ast.Attribute) and node.attr.startswith("_") and ast.unparse(node.value) == "self"
        if own and not node.attr.endswith("__") and node.attr not in known | set(OTHERS_PRIVATE):
            yield node.attr


def test_families_use_public_names_of_the_estimator():
    for family in FAMILIES:
        for path in (SOURCE / family).rglob("*.py"):
            used = set(inherited(parsed(path), family))
            assert not used, f"{path.relative_to(SOURCE)} uses {used} of the estimator: ask for a public name"


def guesses(tree):
    """The names that a file looks for in an object, rather than knowing whether it has them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (ast.unparse(node.func), len(node.args)) in (("hasattr", 2), ("getattr", 3)):
            yield ast.unparse(node.args[1]).strip("'")


def test_capabilities_are_declared_never_guessed():
    for folder in (
        *FAMILIES,
        "selection",
        "outlier",
        "imputation",
        "validate",
        "explanation",
        "plot",
        "cli",
        "testing",
    ):
        for path in (SOURCE / folder).rglob("*.py"):
            name = path.relative_to(SOURCE).as_posix()
            found = set(guesses(parsed(path)))
            assert not found, f"{name} looks whether something has {found}: ask for a capability (isinstance), or adapt"


def ends_early(loop):
    """Whether a `for` has a `break` of its own."""
    inside = list(loop.body)
    while inside:
        node = inside.pop()
        if isinstance(node, ast.Break):
            return True
        if not isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            inside += ast.iter_child_nodes(node)
    return False


def loops(node, where=""):
    """The functions that loop until something is reached."""
    for child in ast.iter_child_nodes(node):
        inner = where
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            inner = f"{where}.{child.name}".strip(".")
        elif isinstance(child, ast.While) or (isinstance(child, ast.For) and ends_early(child)):
            yield where
        yield from loops(child, inner)


def test_only_the_engine_loops():
    found = Counter()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE)
        if name.parts[0] != "engine":
            found.update(f"{name.as_posix()}:{f}" for f in loops(parsed(path)))
    assert set(found) == set(LOOPS), set(found) ^ set(LOOPS)
    several = {name: n for name, n in found.items() if n > 1}
    assert several == SEVERAL_LOOPS, several
    every = re.compile(r"for .* in range\(.*(max_iter|n_iter|max_passes|n_init)")
    for path in SOURCE.rglob("*.py"):
        assert "engine" in path.parts or not every.search(path.read_text()), path


def test_files_are_read_in_ten_minutes():
    for path in SOURCE.rglob("*.py"):
        lines, functions = code_lines(path.read_text())
        assert lines <= FILE, f"{path.relative_to(SOURCE)} has {lines} lines of code"
        assert max(functions.values(), default=0) <= FUNCTION, f"{path.relative_to(SOURCE)}: {functions}"


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
        for function in parsed(path).body:
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
