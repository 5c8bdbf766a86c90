"""How a fit went and what it found, as HTML for notebooks: only what is known without looking at rows again."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from unmix.engine.trace import picture
from unmix.model.capabilities import Components, Groups

SHOWN = 8  # components
SHOWN_GROUPS = 20
NAMED = 3  # columns that name a component
WEAK = 0.3  # of the strongest loading, below which a column does not name a component
CELLS = 1 << 22  # of loadings that are looked at
LONG = 40  # characters of a name


def shown(model: Any) -> str:
    """How the fit went; then sizes and weights of groups, shares and leading columns of components, a line each."""
    lines = _groups(model) if isinstance(model, Groups) else []
    lines += _components(model) if isinstance(model, Components) else []
    told = "".join(f"<div>{line}</div>" for line in lines)
    style = "font:12px sans-serif;margin:4px 0;overflow-wrap:anywhere"
    return picture(model.trace_, model.result_) + (f"<div style='{style}'>{told}</div>" if lines else "")


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
    told = f" of {_listed([f'{n:,}' for n in sizes])} rows" if sizes else ""
    return [f"{k} group{'s' * (k != 1)}{told}"] + ([f"weights {_listed(weights)}"] if weights else [])


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
    return escape(name if len(name) <= LONG else f"{name[: LONG - 1]}…")


def _listed(items: list[str]) -> str:
    return ", ".join(items[:SHOWN_GROUPS]) + f" and {len(items) - SHOWN_GROUPS} more" * (len(items) > SHOWN_GROUPS)
