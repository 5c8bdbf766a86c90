"""How many components stand for the columns, and what they mean."""

from __future__ import annotations

import numpy as np

import unmix
from unmix.explanation import FoundComponents
from unmix.explanation.words import called, listed, percent, plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View

MOST = 20  # components of the scree plot
NAMED = 3  # columns that name a component
TOLD = 8  # components in the table
WEAK = 0.3  # of the strongest loading, below which a column does not name a component


def components(view: View) -> Section | None:
    """Principal components of the columns, and how many are more than chance."""
    d, n = view.usual.d, view.usual.n
    if d < 3 or n < 5:
        return None
    view.tell("components")
    most = min(d, n - 1, MOST)
    scree = unmix.PCA(most, random_state=view.seed).fit(view.usual)
    k = int(unmix.PCA("parallel", random_state=view.seed).fit(view.usual).n_components_)
    view.components = unmix.PCA(min(max(k, 2), d, n - 1), random_state=view.seed)
    view.components.fit(view.usual)
    found = unmix.explain(view.components)
    assert isinstance(found, FoundComponents)
    shares = np.asarray(scree.explained_variance_ratio_, dtype=np.float64)
    told = float(sum(c.explained or 0.0 for c in found.components[:k]))
    if len(found.components) > 1:
        view.axes = f"Component 1 is mostly {_named(found, 0)}, component 2 {_named(found, 1)}."
    if k:
        which = f"{plural(k, 'component')} ({'a combination' if k == 1 else 'combinations'} of columns)"
        tells = f"{'tells' if k == 1 else 'tell'} {percent(told)} of what varies"
        rest = ", the others no more than chance would" if k < len(shares) else ""
        first = "It" if k == 1 else "The first"
        second = f", the second {_named(found, 1)}" if k > 1 else ""
        answer = f"{which} {tells}{rest}. {first} is mostly {_named(found, 0)}{second}."
    else:
        answer = "The columns vary independently: no component tells more than chance would."
    bars = [{"name": str(i + 1), "value": float(v), "on": i < k} for i, v in enumerate(shares)]
    shown: list[Chart | Grid] = [
        Chart(
            "columns",
            "Share of the variance that each component tells; the darker ones tell more than unrelated columns would."
            + f" The first {most}." * (most < min(d, n - 1)),
            {"bars": bars, "x": "component", "y": "share of variance"},
        ),
        *([_made_of(found, k)] if k else []),
    ]
    code = (
        f"{view.opening}\npca = unmix.PCA('parallel', random_state={view.seed}).fit({view.named})"
        "  # as many as are more than chance\nprint(unmix.explain(pca))"
    )
    facts = {
        "components": k,
        "explained": told,
        "loadings": [dict(list(c.loadings.items())[:MOST]) for c in found.components[:k]],
    }
    alike = "every column counts alike" if view.table.scale == "auto" else "columns are taken as they are"
    said = [
        f"Looked at: {view.looked_at}; {alike}. How many: parallel analysis, which compares each "
        "component with what unrelated columns would show by chance once the components before it are taken away."
    ]
    return Section(
        "components", "Components", "Few components instead of many columns", answer, said, shown, code, facts
    )


def _named(found: FoundComponents, i: int) -> str:
    """A component by the columns that it is made of."""
    some = list(found.components[i].loadings.items())[:NAMED]
    strong = [(name, v) for name, v in some if abs(v) >= WEAK * abs(some[0][1])]
    sides = [listed([repr(name) for name, v in strong if (v > 0) == up]) for up in (True, False)]
    return " against ".join(side for side in sides if side)


def _made_of(found: FoundComponents, k: int) -> Grid:
    """What components are made of."""
    rows, total = [], 0.0
    more = f" The first {TOLD} of {k}." if k > TOLD else ""
    for i, c in enumerate(found.components[: min(k, TOLD)]):
        total += c.explained or 0.0
        some = list(c.loadings.items())[:5]
        strong = [(name, f"{v:+.2f}".replace("-", "−")) for name, v in some if abs(v) >= WEAK * abs(some[0][1])]
        words = ", ".join(f"{called(name)} {v}" for name, v in strong)
        rows.append([str(i + 1), words, percent(c.explained or 0.0), percent(min(total, 1.0))])
    heads = ["component", "made of (correlations)", "tells", "together"]
    return Grid(f"Correlations of columns with the components, the strongest first.{more}", heads, rows, 2)
