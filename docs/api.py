"""Pages of the reference, made from the classes: what users call on one page, what a model is made of on another."""

import inspect
import re
import sys
from itertools import chain
from pathlib import Path

import tables

import unmix
import unmix.mixture
import unmix.outlier
import unmix.plot
import unmix.testing
import unmix.validate
from unmix.model.contract import Contract
from unmix.model.facts import HEADS, facts

FAMILIES = {
    "unmix.linear": "Components and factors",
    "unmix.cluster": "Clusterings",
    "unmix.mixture": "Mixtures",
    "unmix.nonneg": "Non-negative parts",
    "unmix.topic": "Topics",
}
ORDER = [
    "fit",
    "fit_transform",
    "fit_predict",
    "partial_fit",
    "predict",
    "predict_proba",
    "transform",
    "inverse_transform",
]
INSIDE = {"U", "b", "fit", "stats", "before", "shape", "given", "method", "unit", "x", "job", "seed", "data", "more"}
QUESTIONS = {
    "Questions": [
        "report",
        "select",
        "Select",
        "Selection",
        "explain",
        "OutlierDetector",
        "Imputer",
        "pool",
        "dimension",
    ],
    "Rows and tables": ["Table", "TableEncoder", "TableError", "as_source", "triples"],
    "Settings and files": ["config", "get_config", "set_config", "load", "models", "Model"],
}
ROOMS = {
    "validate": (unmix.validate, "How sure is a clustering?"),
    "outlier": (unmix.outlier, "Scores, p-values and false discoveries"),
    "mixture": (unmix.mixture, "Families of columns for `Mixture`"),
    "plot": (unmix.plot, "Pictures"),
    "testing": (unmix.testing, "The laws, for models of one's own"),
}


def for_users(cls):
    """Names of the public methods and properties of a model that are not part of the contract, in the order of use."""
    names = [name for name in dir(cls) if not name.startswith("_") and not hidden(cls, name)]
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def hidden(cls, name):
    """Whether a name is an attribute of the class, a method of the contract, or scikit-learn's routing."""
    thing = inspect.getattr_static(cls, name)
    if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) or name in vars(Contract):
        return True
    if isinstance(thing, property):
        return True
    if not callable(getattr(cls, name, None)) or inspect.isclass(thing):
        return True
    takes = list(inspect.signature(getattr(cls, name)).parameters)
    takes = takes[1:] if takes[:1] == ["self"] else takes
    own = (getattr(cls, name).__doc__ or "").strip()
    return not own or (bool(takes) and takes[0] in INSIDE) or ("Returns" not in own and "Parameters" not in own)


def first(thing):
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def model_page(name, cls):
    """The equations, what the model takes, how it is called, each method, its attributes, examples."""
    equations = inspect.cleandoc(sys.modules[cls.__module__].__doc__)
    told = facts(cls)
    lines = [f"# {name}", "", f"{told.finds[:1].upper()}{told.finds[1:]}.", ""]
    flags = {HEADS[fact]: on for fact, on in told._asdict().items() if fact != "finds"}
    lines += ["| " + " | ".join(flags) + " |", "|" + ":-:|" * len(flags)]
    lines += ["| " + " | ".join("✓" if on else "–" for on in flags.values()) + " |", ""]
    if cls.peer:
        at = f"https://scikit-learn.org/stable/modules/generated/{public(cls.peer)}.html"
        lines += [
            f"Takes the place of [`{public(cls.peer)}`]({at}): see [what differs](../coming_from_scikit_learn.md).",
            "",
        ]
    methods = for_users(cls)
    lines += ["```{eval-rst}", f".. currentmodule:: {cls.__module__}", f".. autoclass:: {name}", "```", ""]
    lines += ["## Attributes of every fitted model", "", "```{eval-rst}"]
    common = inspect.cleandoc(unmix.Model.__doc__).partition("Attributes\n----------\n")[2]
    lines += [re.sub(r"^(\w+) : (.+)$", r"``\1`` : \2", line) for line in common.splitlines()] + ["```", ""]
    lines += ["## Methods", "", "| | |", "|---|---|"]
    lines += [f"| [`{m}`](#{cls.__module__}.{name}.{m}) | {first(getattr(cls, m))} |" for m in methods]
    lines += ["", "```{eval-rst}"]
    for m in methods:
        lines += [f".. automethod:: {cls.__module__}.{name}.{m}"]
    lines += ["```", "", "## What is computed", "", "```text", equations, "```", ""]
    for what, why in {**cls.exempt, **cls.exempt_checks}.items():
        lines += [f"- *Exempt from* `{what}`: {why}"]
    if gallery(name):
        lines += ["", "## Examples", "", "```{eval-rst}", f".. minigallery:: unmix.{name}", "```"]
    return "\n".join(lines) + "\n"


def gallery(name):
    """Whether an example of the gallery uses this."""
    return any(f"unmix.{name}(" in page.read_text() for page in Path(__file__).parent.glob("gallery/*/*.py"))


def public(peer):
    """The name of scikit-learn's class as people import it."""
    module, _, name = peer.rpartition(".") if isinstance(peer, str) else (peer.__module__, "", peer.__name__)
    return ".".join([part for part in module.split(".") if not part.startswith("_")] + [name])


def listing(names, where):
    """A line for each of these, with a link to its page."""
    lines = ["| | |", "|---|---|"]
    for name, thing in names:
        lines += [f"| [`{name}`]({where.format(name=name)}) | {first(thing)} |"]
    return lines


def thing_page(name, thing):
    """A function or a class that is no model, with all of its methods."""
    lines = [f"# {name}", "", "```{eval-rst}", ".. currentmodule:: unmix"]
    if inspect.isclass(thing):
        lines += [
            f".. autoclass:: unmix.{name}",
            "   :members:",
            "   :inherited-members: BaseEstimator, tuple, ValueError",
        ]
    else:
        lines += [f".. autofunction:: unmix.{name}"]
    lines += ["```", ""]
    if gallery(name):
        lines += ["## Examples", "", "```{eval-rst}", f".. minigallery:: unmix.{name}", "```", ""]
    return "\n".join(lines)


def room_page(room, title, module):
    """All of a module's public names."""
    lines = [f"# unmix.{room}", "", f"{title}.", "", "```{eval-rst}", f".. currentmodule:: unmix.{room}"]
    for name in module.__all__:
        thing = getattr(module, name)
        kind = "autoclass" if inspect.isclass(thing) else "autofunction"
        lines += [f".. {kind}:: unmix.{room}.{name}"] + ["   :members:"] * inspect.isclass(thing)
    return "\n".join([*lines, "```", ""])


def contract_page():
    """What a model is made of, for those who write one."""
    lines = [
        "# What a model is made of",
        "",
        "For those who write one: users need none of it. `examples/skeleton.py` is a whole model on one screen,",
        "[The engine](../engine.md) tells what calls what, and CONTRIBUTING.md how to add one in an hour.",
        "",
        "## The contract",
        "",
        "```{eval-rst}",
        ".. autoclass:: unmix.model.contract.Contract",
        "   :members:",
    ]
    lines += ["   :inherited-members:", "   :undoc-members:", "```", "", "## What may be asked of a model", ""]
    lines += ["```{eval-rst}", ".. automodule:: unmix.model.capabilities", "   :members:", "```", ""]
    return "\n".join(lines)


def pages():
    """Path below the folder of the pages → text."""
    out = {}
    models = unmix.models()
    lines = ["# Models", "", "All take row weights; what else each takes:", ""]
    lines += [tables.models(), ""]
    for module, title in FAMILIES.items():
        inside = {name: cls for name, cls in models.items() if cls.__module__.startswith(module + ".")}
        lines += [f"## {title}", "", *listing(inside.items(), "{name}.md"), ""]
        out |= {f"models/{name}.md": model_page(name, cls) for name, cls in inside.items()}
    lines += ["```{toctree}", ":hidden:", ":maxdepth: 1", "", *models, "```", ""]
    out["models/index.md"] = "\n".join(lines)
    lines = ["# Reference", "", "Everything public, from the code itself.", "", "## [Models](../models/index.md)", ""]
    lines += ["Each has a page with its parameters, attributes and every method.", ""]
    for title, names in QUESTIONS.items():
        lines += [f"## {title}", "", *listing([(n, getattr(unmix, n)) for n in names], "{name}.md"), ""]
        out |= {f"api/{name}.md": thing_page(name, getattr(unmix, name)) for name in names}
    lines += ["## Rooms", "", "| | |", "|---|---|"]
    for room, (module, title) in ROOMS.items():
        lines += [f"| [`unmix.{room}`]({room}.md) | {title} |"]
        out[f"api/{room}.md"] = room_page(room, title, module)
    out["api/contract.md"] = contract_page()
    every = [*chain.from_iterable(QUESTIONS.values()), *ROOMS, "contract"]
    lines += ["| [the contract](contract.md) | What a model is made of |", ""]
    lines += ["```{toctree}", ":hidden:", ":maxdepth: 1", "", "../models/index", *every, "```", ""]
    out["api/index.md"] = "\n".join(lines)
    return out


def write(folder):
    """Write all pages, where they changed."""
    for name, text in pages().items():
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
