"""Which groups of rows there are, how sure that is, and what sets each apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import unmix
from unmix.explanation import FoundGroups
from unmix.explanation.columns import Plain, sums
from unmix.explanation.groups import found_groups
from unmix.explanation.words import listed, percent, plural
from unmix.reporting.section import Chart, Grid, Section
from unmix.reporting.view import View
from unmix.selection.clouds import clouds

FEWEST = 10  # rows that are asked for groups
WIDE = 30  # columns beyond which groups are sought among the leading components
POINTS = 1500  # of the map
HEAT = 12  # columns of the picture of what sets groups apart
SURENESS = {
    "sure": "all rows, halves of them and other looks at them agree on that number",
    "open": "looks at all rows, at halves of them and from other sides do not agree on one number",
}
SAID = {
    "sure": "The rows fall into {groups}",
    "open": "The rows may fall into {groups}, but how many is open",
}


class Tried(NamedTuple):
    """What `select` said of a model on some rows."""

    model: Any  # as it was asked
    answer: Any
    rows: Any  # that it was asked about, and
    every: Any  # all of them, as the model takes them
    how: str  # lines of Python: the model, and
    named: str  # the rows

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    @property
    def words(self) -> str:
        """The answer with its reason."""
        return f"{self.name}: {self.answer}"

    def fitted(self, k: int) -> Any:
        """The model with k groups."""
        if k == self.answer.k:
            return self.answer.model
        return clone(self.model).set_params(**{self.answer.parameter: k}).fit(self.rows)


class Found(NamedTuple):
    """Groups that can be defended, and how likely they make the rows: low is good, whatever the model."""

    tried: Tried
    k: int
    model: Any
    icl: float


def groups(view: View) -> Section | None:
    """Ask several models for groups, and tell those of the best."""
    if view.some.n < FEWEST:
        return None
    view.tell("groups")
    tried = _tried(view)
    best = min(_defensible(tried), key=lambda f: f.icl)
    answer = best.tried.answer
    asked = f"unmix.select({best.tried.how}, {best.tried.named}, random_state={view.seed})"
    code = f"{view.opening}\nanswer = {asked}\nprint(answer)"
    curve, others = _curve(answer, best.k), [t.words for t in tried]
    low, high = answer.range
    doubted = low == 1 or (answer.sureness == "open" and any(t.answer.k == 1 for t in tried))  # somebody sees one cloud
    if best.k == 1 or doubted:
        told = "There are no clear groups: the rows are one cloud, as far as these columns tell."
        if best.k > 1:
            told = f"There are no clear groups: the rows may be cut into {best.k}, but one cloud is like them as well."
        facts = {"groups": 1, "range": [low, high], "sureness": answer.sureness, "reason": answer.reason}
        return Section("groups", "Which groups there are", told, others, curve, code, facts)
    labels = np.asarray(best.model.predict(best.tried.every))
    found = found_groups(best.tried.name, Plain(view.some), sums(Plain(view.some), [labels]), view.some.role("id"))
    sizes = ", ".join(percent(g.share) for g in found.groups[:6]) + " …" * (len(found.groups) > 6)
    told = SAID[answer.sureness].format(groups=plural(best.k, "group")) + f" ({sizes} of the rows)"
    told += f"; {low} to {high} can be defended" if high > low else ""
    told += f": {_apart(found)}." if _apart(found) else "."
    where = f"Told are those of {best.tried.name}, found in {view.looked_at}"
    where += ", among the leading components, since the columns are many." if view.some.d > WIDE else "."
    if view.left_out:
        where += " Rows that do not fit were left out; then each was given to the group that it is nearest to."
    if sum(t.answer.k != 1 for t in tried) > 1 or high > low:
        where += (
            f" Of all groups that can be defended, these {best.k} are the likeliest where each group is seen as a "
            "Gaussian, which can be asked of every model alike."
        )
    said = [f"How sure: {answer.sureness}: {SURENESS[answer.sureness]}.", *others, where]
    if best.k != answer.k:
        code += f"\nmodel = answer.model.set_params({answer.parameter}={best.k}).fit({best.tried.named})"
    else:
        code += "\nmodel = answer.model"
    code += "\nprint(unmix.explain(model, table))" if view.some.d <= WIDE else ""
    shown = [_map(view, labels), _members(view, found), _effects(found), *curve]
    facts = {
        "groups": best.k,
        "range": [int(low), int(high)],
        "sureness": answer.sureness,
        "model": best.tried.name,
        "labels": labels.tolist() if not view.partial else None,
        "sizes": [g.rows for g in found.groups],
        "apart": [[t.text for t in g.traits[:5]] for g in found.groups],
        "typical": [None if g.typical is None else int(view.numbers[g.typical.row]) + 1 for g in found.groups],
    }
    return Section("groups", "Which groups there are", told, said, [s for s in shown if s], code, facts)


def _tried(view: View) -> list[Tried]:
    """What each model says that suits the columns."""
    usual: Any = view.usual
    every: Any = view.some
    named, seed = view.named, view.seed
    if usual.d > WIDE and view.components is not None:
        usual, every = (np.asarray(view.components.transform(t), dtype=np.float64) for t in (usual, every))
        named = f"unmix.PCA({usual.shape[1]}).fit_transform({named})"
    mixed = view.usual.d <= WIDE and any(use.levels for use in view.usual.recipe.uses)
    out = []
    for name in ("Mixture",) if mixed else ("KMeans", "GaussianMixture"):
        view.tell(f"groups by {name}")
        model = unmix.models()[name](**({} if mixed else {"n_init": 3}), random_state=seed)
        answer = unmix.select(model, usual, random_state=seed)
        out.append(Tried(model, answer, usual, every, f"unmix.{name}({'' if mixed else 'n_init=3'})", named))
    return out


def _defensible(tried: list[Tried]) -> list[Found]:
    """The groups of every model and number that can be defended, judged alike."""
    rows = tried[0].rows
    x = np.asarray(rows if isinstance(rows, np.ndarray) else rows.read(0, rows.n), dtype=np.float64)
    out = []
    for t in tried:
        low, high = t.answer.range
        for k in [1] if t.answer.k == 1 else range(max(low, 2), high + 1):
            model = t.fitted(k)
            icl = float(clouds(x, None, [np.asarray(model.predict(rows))])[0])
            out.append(Found(t, k, model, icl))
    return out


def _apart(found: FoundGroups) -> str:
    """What sets the groups apart, by the columns that do it best."""
    names = [unit.name for unit in found.units[:3]]
    return f"they differ most in {listed([repr(n) for n in names])}" if len(names) > 1 else ""


def _map(view: View, labels: np.ndarray) -> Chart | None:
    """Rows on the first two components."""
    if view.components is None or view.components.n_components_ < 2:
        return None
    z = np.asarray(view.components.transform(view.usual), dtype=np.float64)[:, :2]
    labels = labels[view.fits]
    step = max(1, len(z) // POINTS)
    points = [[round(float(a), 3), round(float(b), 3), int(g) + 1] for (a, b), g in
              zip(z[::step], labels[::step], strict=True)]  # fmt: skip
    caption = "Rows on the first two components, by group. Groups that overlap here may be apart in other directions."
    return Chart("dots", caption, {"points": points, "x": "component 1", "y": "component 2"})


def _members(view: View, found: FoundGroups) -> Grid:
    """A line for each group."""
    rows = []
    for g in found.groups:
        typical = "" if g.typical is None else view.name_of(g.typical.row)
        rows.append([str(g.label + 1), g.words, typical, f"{g.rows:,}", percent(g.share)])
    heads = ["group", "what sets it apart", "a typical row", "rows", "share"]
    return Grid(
        "What sets each group apart from the other rows, strongest first, in the units of the table.", heads, rows, 3
    )


def _effects(found: FoundGroups) -> Chart:
    """How far each group is from the others in each column, in standard deviations of the column."""
    names = [unit.name for unit in found.units[:HEAT]]
    cells = []
    for g in found.groups:
        by = {t.column: t for t in reversed(g.traits)}
        cells += [
            {"group": g.name, "column": name, "value": round(float(by[name].effect), 2), "text": by[name].text}
            for name in names
            if name in by
        ]
    caption = "How much higher (or lower) a group is than the other rows, in standard deviations of the column."
    return Chart("heat", caption, {"cells": cells, "columns": names, "groups": [g.name for g in found.groups]})


def _curve(answer: Any, k: int) -> list[Chart | Grid]:
    """What the criterion says of each k."""
    columns, name = answer.columns, answer.criterion
    if name not in columns or len(columns["k"]) < 2:
        return []
    values = np.asarray(columns[name], dtype=np.float64)
    points = [[int(at), float(v)] for at, v in zip(columns["k"], values, strict=True) if np.isfinite(v)]
    from unmix.selection.criteria import WORDS

    words = WORDS[name][0] if name in WORDS else name
    words = f"{words[0].upper()}{words[1:]}"
    caption = f"{words} for each number of groups; the ring marks those told here, the band what can be defended."
    low, high = answer.range
    return [Chart("curve", caption, {"points": points, "choice": k, "low": low, "high": high,
                                     "x": "number of groups", "y": words})]  # fmt: skip
