"""How a fit went and what it found, for notebooks: only what is known without looking at rows again."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix.engine.site import Documented
from unmix.engine.trace import picture
from unmix.model.capabilities import Components, Groups

SHOWN = 8  # components
SHOWN_GROUPS = 20
NAMED = 3  # columns that name a component, or a group
APART = 0.5  # standard deviations from the mean, below which a column does not name a group
WEAK = 0.3  # of the strongest loading, below which a column does not name a component
CELLS = 1 << 22  # of loadings that are looked at
LONG = 40  # characters of a name
WAYS = ("more", "less")


class Found(Documented):
    """What a model shows in a notebook."""

    def findings(self) -> list[str]:
        """Sizes and weights of groups, and what sets them apart; shares and leading columns of components."""
        return _lines(self) if hasattr(self, "_parts_") else []

    def _html_repr(self) -> str:
        went = picture(self.trace_, self.result_) if hasattr(self, "_parts_") else ""  # type: ignore[attr-defined]
        return went + super()._html_repr()


def _lines(model: Any) -> list[str]:
    told = _groups(model) + _apart(model) if isinstance(model, Groups) else []
    told += _components(model) if isinstance(model, Components) else []
    sparse = vars(model).get("sparse_")
    return told + ([] if sparse is None else [f"{np.mean(sparse != 0):.1%} of the cells have a sparse part"])


def _groups(model: Any) -> list[str]:
    """How many rows each group has, and what it weighs in a mixture."""
    labels, weights = model.kept_labels, vars(model).get("weights_")
    weights = [] if weights is None else [f"{w:.3g}" for w in weights]
    try:
        k = len(model.get_feature_names_out())
    except AttributeError:  # a model of one's own, whose z are not its groups
        k = len(weights)
    sizes = [] if labels is None else np.bincount(labels[labels >= 0], minlength=k).tolist()
    k = max(k, len(sizes))
    told = f" of {listed([f'{n:,}' for n in sizes])} rows" if sizes else ""
    return [f"{k} group{'s' * (k != 1)}{told}"] + ([f"weights {listed(weights)}"] if weights else [])


def _apart(model: Any) -> list[str]:
    """In which columns each group lies high or low; of tables, whose columns are in standard deviations about 0."""
    recipe = vars(model).get("recipe_")
    centres = next((vars(model)[name] for name in ("cluster_centers_", "means_") if name in vars(model)), None)
    if recipe is None or recipe.how != "standardised" or centres is None or np.ndim(centres) != 2:
        return []
    away = np.asarray(centres) / [d for use in recipe.uses for d in use.deviations]
    out = []
    for g, row in enumerate(away[:SHOWN]):
        far = [j for j in np.argsort(-np.abs(row), kind="stable")[:NAMED] if abs(row[j]) >= APART]
        sides = {way: [_name(recipe.names, j) for j in far if (row[j] > 0) == (way == "more")] for way in WAYS}
        told = "; ".join(f"{way} {', '.join(names)}" for way, names in sides.items() if names)
        out.append(f"group {g + 1}: {told or 'near the mean in every column'}")
    return out + [f"… and {len(away) - SHOWN} more"] * (len(away) > SHOWN)


def _components(model: Any) -> list[str]:
    """What each component describes, and the columns that it is made of, those of the two signs against each other."""
    k = len(model.components_)
    if k * model.n_features_in_ > CELLS:
        return []
    names, loadings, shares = model.column_names, model.loadings(), model.explained()
    out = []
    for i, row in enumerate(loadings[:SHOWN]):
        order = np.argsort(-np.abs(row), kind="stable")[:NAMED]
        strong = [j for j in order if abs(row[j]) > 0 and abs(row[j]) >= WEAK * abs(row[order[0]])]
        sides = [[_name(names, j) for j in strong if (row[j] > 0) == up] for up in (True, False)]
        share = "" if shares is None or not np.isfinite(shares[i]) else f" ({100 * float(shares[i]):.3g}%)"
        made = " against ".join(", ".join(side) for side in sides if side)
        out.append(f"component {i + 1}{share}" + (f": {made}" if made else ""))
    return out + [f"… and {k - SHOWN} more"] * (k > SHOWN)


def _name(names: list[str] | None, j: int) -> str:
    """A column by name, else by number."""
    name = f"x{j}" if names is None else str(names[j])
    return name if len(name) <= LONG else f"{name[: LONG - 1]}…"


def listed(items: list[str]) -> str:
    """So many of these as are read."""
    return ", ".join(items[:SHOWN_GROUPS]) + f" and {len(items) - SHOWN_GROUPS} more" * (len(items) > SHOWN_GROUPS)
