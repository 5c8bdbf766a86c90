"""Pages of the reference, made from the classes: what users call on one page, what a model is made of on another."""

import inspect
import re
import sys
from itertools import chain
from pathlib import Path

import tables

import unmix
import unmix.linear
import unmix.mixture
import unmix.outlier
import unmix.plot
import unmix.recommend
import unmix.testing
import unmix.validate
from unmix.engine.site import Documented
from unmix.model.facts import HEADS, facts
from unmix.model.peer import counterpart

FAMILIES = {
    "unmix.linear": "Components and factors",
    "unmix.cluster": "Clusterings",
    "unmix.mixture": "Mixtures",
    "unmix.nonneg": "Non-negative parts",
    "unmix.topic": "Topics",
    "unmix.boolean": "Roles: parts of yes and no",
    "unmix.recommend": "Recommenders",
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
SECTIONS = re.compile(r"^ *(Parameters|Returns)\n *-{3,}$", re.MULTILINE)  # what a method for users says
NEAR = {  # what answers the like in scikit-learn, where no name is shared
    "ProbabilisticPCA": ["sklearn.decomposition.PCA"],
    "GaussianImputer": ["sklearn.impute.IterativeImputer"],
    "MixtureOfFactorAnalyzers": ["sklearn.mixture.GaussianMixture", "sklearn.decomposition.FactorAnalysis"],
    "SoftKMeans": ["sklearn.cluster.KMeans"],
    "KernelKMeans": ["sklearn.cluster.SpectralClustering"],
    "Imputer": ["sklearn.impute.IterativeImputer", "sklearn.impute.KNNImputer"],
    "OutlierDetector": ["sklearn.ensemble.IsolationForest", "sklearn.neighbors.LocalOutlierFactor"],
    "TableEncoder": ["sklearn.compose.ColumnTransformer"],
    "RobustPCA": ["sklearn.decomposition.PCA"],
    "KMedoids": ["sklearn.cluster.KMeans"],
    "Mixture": ["sklearn.mixture.GaussianMixture"],
    "MultiAssignmentClustering": ["sklearn.decomposition.NMF", "sklearn.mixture.GaussianMixture"],
    "DiscreteBasis": ["sklearn.decomposition.NMF"],
    "RoleMiner": ["sklearn.decomposition.NMF"],
    "RoundedSVD": ["sklearn.decomposition.TruncatedSVD"],
    "RoleCover": ["sklearn.decomposition.NMF"],
    "PMF": ["sklearn.impute.KNNImputer"],
    "Select": ["sklearn.model_selection.GridSearchCV"],
    "config": ["sklearn.config_context"],
    "get_config": ["sklearn.get_config"],
    "set_config": ["sklearn.set_config"],
}
MEANT = {"transform": "encode", "inverse_transform": "decode"}  # whose answer it hands on
QUESTIONS = {
    "Questions": [
        "report",
        "roles",
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
FILES = {"select": "select-function"}  # some systems take select.md and Select.md for one
ROOMS = {
    "validate": (unmix.validate, "How sure is a clustering?"),
    "outlier": (unmix.outlier, "Scores, p-values and false discoveries"),
    "linear": (unmix.linear, "Rank, range and null space"),
    "mixture": (unmix.mixture, "Families of columns for `Mixture`"),
    "recommend": (unmix.recommend, "Baselines and evaluation of recommenders"),
    "plot": (unmix.plot, "Pictures"),
    "testing": (unmix.testing, "The laws, for models of one's own"),
}


def public(cls):
    """Names of the methods and properties of a class, without scikit-learn's metadata routing and Python's own."""
    names = [name for name in dir(cls) if not re.match(r"_|set_\w+_request$|get_metadata_routing$", name)]
    return [name for name in names if owner(cls, name).__module__ != "builtins" and is_method(cls, name)]


def owner(cls, name):
    """The class that a name comes from."""
    return next(base for base in cls.__mro__ if name in vars(base))


def is_method(cls, name):
    """Whether a name is a method or a property, not a value or a class."""
    thing = inspect.getattr_static(cls, name)
    return isinstance(thing, property) or (callable(getattr(cls, name, None)) and not inspect.isclass(thing))


def kind_of(cls, name):
    """What Sphinx calls it."""
    return "property" if isinstance(inspect.getattr_static(cls, name), property) else "method"


def for_users(cls):
    """Names of the methods of a class that people call, in the order of use; the others are its contract."""
    gone = {"partial_fit": "online" in getattr(cls, "exempt", ()), "to_sklearn": not getattr(cls, "peer", True)}
    gone["findings"] = getattr(cls, "findings", None) is Documented.findings  # it has none
    names = [name for name in public(cls) if is_told(cls, name) and not gone.get(name)]
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def is_told(cls, name):
    """Whether a method says what it takes or returns; of what people write themselves every method is told."""
    if kind_of(cls, name) == "property":
        return name.endswith("_") or not issubclass(cls, unmix.Model)
    return SECTIONS.search(documented(cls, name)) or issubclass(cls, (unmix.mixture.Family, unmix.testing.Problem))


def documented(cls, name):
    """The docstring of a method, and the sections of the one that it takes the place of where it has none itself."""
    own, *others = [inspect.getdoc(vars(base)[name]) or "" for base in cls.__mro__ if name in vars(base)] or [""]
    more = next((text for text in [own, *others] if SECTIONS.search(text)), "")
    if name in MEANT and cls is not unmix.Model and owner(cls, name).__module__ == unmix.Model.__module__:
        what = inspect.getdoc(getattr(cls, MEANT[name])).split("\n\n")[0]
        return re.sub(r":.+", f". {what}", own, count=1)  # behind the colon is what holds of all models
    return own if own == more or not more else f"{own}\n\n{more[SECTIONS.search(more).start() :]}"


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
    lines += see_also(name, namesake(cls))
    lines += ["```{eval-rst}", ".. currentmodule:: unmix", f".. autoclass:: {name}", "```", ""]
    lines += ["## Methods", "", *methods(name, cls, for_users(cls))]
    lines += ["## Attributes of every fitted model", "", "```{eval-rst}"]
    common = inspect.cleandoc(unmix.Model.__doc__).partition("Attributes\n----------\n")[2]
    lines += [re.sub(r"^(\w+) : (.+)$", r"``\1`` : \2", line) for line in common.splitlines()] + ["```", ""]
    lines += ["## What is computed", "", "```text", equations, "```", ""]
    for what, why in {**cls.exempt, **cls.exempt_checks}.items():
        lines += [f"- *Exempt from* `{what}`: {why}"]
    return "\n".join([*lines, *examples(name)]) + "\n"


def see_also(name, theirs=None):
    """What is like it in scikit-learn, and the pages that explain it, with links."""
    links = [f"[`{n}`](https://scikit-learn.org/stable/modules/generated/{n}.html)" for n in NEAR.get(name, [theirs])]
    told = ""
    if theirs:
        told = f"See also {links[0]}, whose place it takes: [what differs](../coming_from_scikit_learn.md). "
    elif name in NEAR:
        told = f"See also {', '.join(links)}. "
    told += f"Explained in {' and '.join(where)}." if (where := explained(name)) else ""
    return [told.rstrip(), ""] if told else []


def explained(name):
    """Links to the pages that have a section on it, or name it as what they are about, at their end."""
    links = []
    for path in sorted(Path(__file__).parent.glob("*.md")):
        text = path.read_text()
        about = f"/{FILES.get(name, name)}.md)" in text.partition("\n## Reference\n")[2]
        section = f"#{name.lower()}" * (f"\n## {name}\n" in text)
        links += [f"[{text[2 : text.index(chr(10))]}](../{path.name}{section})"] * bool(about or section)
    return links


def methods(name, cls, names):
    """A table of methods, then each in full."""
    if not names:
        return []
    lines = ["| | |", "|---|---|"]
    lines += [f"| [`{m}`](#unmix.{name}.{m}) | {sentence(documented(cls, m))} |" for m in names]
    lines += ["", "```{eval-rst}", ".. currentmodule:: unmix"]
    for m in names:
        lines += [f".. auto{kind_of(cls, m)}:: {name}.{m}"]
    return [*lines, "```", ""]


def examples(name):
    """The pages of the gallery that use it."""
    return ["", "## Examples", "", "```{eval-rst}", f".. minigallery:: unmix.{name}", "```"] if gallery(name) else []


def gallery(name):
    """Whether an example of the gallery uses this."""
    return any(f"unmix.{name}(" in page.read_text() for page in Path(__file__).parent.glob("gallery/*/*.py"))


def namesake(cls):
    """The name of scikit-learn's class of the same name, as people import it, or None."""
    return f"{cls.peer.home}.{counterpart(cls).__name__}" if cls.peer else None


def sentence(text):
    """The first paragraph of a docstring, on one line of a table."""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def listing(names, where):
    """A line for each of these, with a link to its page."""
    lines = ["| | |", "|---|---|"]
    for name, thing in names:
        lines += [
            f"| [`{name}`]({where.format(file=FILES.get(name, name))}) | {sentence(inspect.getdoc(thing) or '')} |"
        ]
    return lines


def thing_page(name, thing):
    """A function or a class that is no model, with all of its methods."""
    kind = "class" if inspect.isclass(thing) else "function"
    lines = [f"# {name}", "", *see_also(name)]
    lines += ["```{eval-rst}", ".. currentmodule:: unmix", f".. auto{kind}:: {name}", "```", ""]
    if kind == "class":
        lines += ["## Methods", "", *methods(name, thing, names)] if (names := for_users(thing)) else []
    if thing is unmix.Model:
        lines += ["What those who write a model implement is [the contract](contract.md).", ""]
    return "\n".join([*lines, *examples(name), ""])


def room_page(room, title, module):
    """All of a module's public names; those that have a page are but named."""
    lines = [f"# unmix.{room}", "", f"{title}.", ""]
    known = {name: "../models" for name in unmix.models()} | dict.fromkeys(chain.from_iterable(QUESTIONS.values()), ".")
    mine = [name for name in module.__all__ if name not in known or name == room]
    links = [f"[`{name}`]({known[name]}/{FILES.get(name, name)}.md)" for name in module.__all__ if name not in mine]
    lines += [f"On pages of their own: {', '.join(links)}.", ""] if links else []
    lines += ["```{eval-rst}", f".. currentmodule:: unmix.{room}"]
    for name in mine:
        thing = getattr(module, name)
        lines += [f".. auto{'class' if inspect.isclass(thing) else 'function'}:: {name}"]
        for m in for_users(thing) if inspect.isclass(thing) else []:
            lines += ["", f"   .. auto{kind_of(thing, m)}:: {m}"]
        lines += [""]
    return "\n".join([*lines, "```", ""])


def contract_page():
    """What a model is made of, for those who write one; nothing here is a target of links from other pages."""
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
        "   :inherited-members:",
        "   :undoc-members:",
        "   :no-index:",
        "```",
        "",
        "## What may be asked of a model",
        "",
        "```{eval-rst}",
        ".. automodule:: unmix.model.capabilities",
        "   :members:",
        "   :no-index:",
        "```",
        "",
        "## What each class makes of it",
        "",
        "Methods and properties that its users do not call, where they are written.",
        "",
    ]
    for cls, names in inside().items():
        lines += [f"### {cls.__name__}", "", f"`{cls.__module__}`", "", "| | |", "|---|---|"]
        lines += [f"| `{name}` | {sentence(inspect.getdoc(vars(cls)[name]) or '')} |" for name in names] + [""]
    return "\n".join(lines)


def inside():
    """Class → the methods and properties written in it that people do not call."""
    out = {}
    rooms = [getattr(module, name) for module, _ in ROOMS.values() for name in module.__all__]
    others = [getattr(unmix, name) for name in chain.from_iterable(QUESTIONS.values())]
    for model in [thing for thing in [*unmix.models().values(), *others, *rooms] if inspect.isclass(thing)]:
        for name in sorted(set(public(model)) - set(for_users(model))):
            for base in model.__mro__:
                if name in vars(base) and base.__module__.startswith("unmix"):
                    out.setdefault(base, set()).add(name)
    return {cls: sorted(out[cls]) for cls in sorted(out, key=lambda cls: (cls.__module__, cls.__name__))}


def pages():
    """Path below the folder of the pages → text."""
    out = {}
    models = unmix.models()
    lines = ["# Models", "", "All take row weights; what else each takes:", ""]
    lines += [tables.models("[`{0}`]({0}.md)"), ""]
    for module, title in FAMILIES.items():
        inside = {name: cls for name, cls in models.items() if cls.__module__.startswith(module + ".")}
        lines += [f"## {title}", "", *listing(inside.items(), "{file}.md"), ""]
        out |= {f"models/{name}.md": model_page(name, cls) for name, cls in inside.items()}
    lines += ["```{toctree}", ":hidden:", ":maxdepth: 1", "", *models, "```", ""]
    out["models/index.md"] = "\n".join(lines)
    lines = ["# Reference", "", "Everything public, from the code itself.", "", "## [Models](../models/index.md)", ""]
    lines += ["Each has a page with its parameters, attributes and every method.", ""]
    for title, names in QUESTIONS.items():
        lines += [f"## {title}", "", *listing([(n, getattr(unmix, n)) for n in names], "{file}.md"), ""]
        out |= {f"api/{FILES.get(name, name)}.md": thing_page(name, getattr(unmix, name)) for name in names}
    lines += ["## Rooms", "", "| | |", "|---|---|"]
    for room, (module, title) in ROOMS.items():
        lines += [f"| [`unmix.{room}`]({room}.md) | {title} |"]
        out[f"api/{room}.md"] = room_page(room, title, module)
    out["api/contract.md"] = contract_page()
    lines += ["", "For those who write models: [what a model is made of](contract.md).", ""]
    parts = {"Models": ["../models/index"]} | {t: [FILES.get(n, n) for n in names] for t, names in QUESTIONS.items()}
    for title, names in (parts | {"Rooms": list(ROOMS), "Inside": ["contract"]}).items():
        lines += ["```{toctree}", f":caption: {title}", ":hidden:", ":maxdepth: 1", "", *names, "```", ""]
    out["api/index.md"] = "\n".join(lines)
    return out


def write(folder):
    """Write all pages, where they changed."""
    for name, text in pages().items():
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
