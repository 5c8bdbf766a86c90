"""Tables of the pages that say what each model takes and gives, and what the laws are, made from the code.

`python -m docs.tables` writes them between their markers; a test fails where a page and the classes differ.
"""

import inspect
import re
import sys
from pathlib import Path

import unmix
from unmix.model.facts import HEADS, facts
from unmix.model.peer import counterpart
from unmix.testing.cases import LAWS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKED = re.compile(r"(<!-- (\w+): made by `python -m docs\.tables` -->\n).*?(<!-- end -->)", re.DOTALL)
NO_EFFECT = re.compile(r"^(\w[\w, ]*) : .*\n    No effect here[:,] (.+(?:\n    .+)*)", re.MULTILINE)


def models(page="`{0}`"):
    """A line for each model: ✓ where a fact holds."""
    lines = [row(["", *HEADS.values()]), "|---|---|" + ":-:|" * (len(HEADS) - 1)]
    for name, cls in unmix.models().items():
        finds, *flags = facts(cls)
        lines += [row([page.format(name), finds, *("✓" if flag else "" for flag in flags)])]
    return "\n".join(lines)


def linked_models():
    """The same, with links to the pages of the models."""
    return models("[`{0}`](models/{0}.md)")


def exemptions():
    """Laws that a model does not keep, and why."""
    lines = [row(["model", "law", "why it cannot hold"]), "|---|---|---|"]
    for name, cls in unmix.models().items():
        lines += [row([f"`{name}`", law, why]) for law, why in cls.exempt.items()]
    return "\n".join(lines)


def laws():
    """What every law says, by the name under which models are exempt from it."""
    lines = [row(["law", "what it says"]), "|---|---|"]
    lines += [row([law.name, inspect.cleandoc(law.check.__doc__).split("\n")[0]]) for law in LAWS]
    return "\n".join(lines)


def namesakes():
    """Models that take the place of a class of scikit-learn."""
    lines = [row(["here", "there"]), "|---|---|"]
    for name, cls in unmix.models().items():
        theirs = f"`{cls.peer.home}.{counterpart(cls).__name__}`" if cls.peer else ""
        lines += [row([f"[`unmix.{name}`](models/{name}.md)", theirs])] if theirs else []
    return "\n".join(lines)


def no_effect():
    """Parameters of scikit-learn that ours take for its sake, and why they change nothing here."""
    lines = [row(["model", "parameter", "why it has no effect"]), "|---|---|---|"]
    for name, cls in unmix.models().items():
        for parameter, why in NO_EFFECT.findall(inspect.getdoc(cls)) if cls.peer else []:
            lines += [row([f"`{name}`", f"`{parameter}`", " ".join(why.split()).rstrip(".")])]
    return "\n".join(lines)


def differences():
    """Where ours do something else than scikit-learn's own tests ask for, and why."""
    path = str(ROOT / "tests" / "drop_in")
    sys.path.insert(0, path)
    from differences import SECTIONS, SIGNATURES

    sys.path.remove(path)
    lines = [row(["model", "what differs"]), "|---|---|"]
    for section in SECTIONS.values():
        names = ", ".join(f"`{name}`" for name in section.names)
        lines += [row([names, why]) for kind, why in section.entries.values() if kind == "difference"]
    lines += [row([f"`{name}`", f"`{parameter}`: {why}"]) for (name, _, parameter), why in SIGNATURES.items()]
    return "\n".join(lines)


def row(cells):
    return "|" + "|".join(f" {c} " if c else " " for c in cells) + "|"


TABLES = {
    "models": models,
    "linked_models": linked_models,
    "exemptions": exemptions,
    "laws": laws,
    "namesakes": namesakes,
    "no_effect": no_effect,
    "differences": differences,
}


def written(text):
    """The text of a page with its tables as the classes have them."""
    return MARKED.sub(lambda m: m[1] + TABLES[m[2]]() + "\n" + m[3], text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text()))
