"""Whether the parts of an imputer in a file belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unmix.engine.described import conform
from unmix.imputation.candidates import BASE, CURVES, DENSITIES, MEAN, TREES
from unmix.imputation.regressions import Curves, Trees


def contradiction(state: dict[str, Any], names: dict[str, Any], groups: Sequence[np.ndarray]) -> str:
    """What is wrong with parts of which each by itself is of its kind; "" where nothing is."""
    w, candidates, density = names["w"], state["candidates_"], state["_density_"]
    if sum(map(len, groups)) != w or len(state["names_"]) != len(groups) or names["g"] != len(groups):
        return "its columns are not those of its numbers"
    if len(candidates) != names["c"] or not set(candidates) <= {MEAN, CURVES, TREES, *DENSITIES}:
        return "its weights are not those of its candidates"
    needed = {c for c in candidates if c in DENSITIES}
    for kind, own, name in ((Curves, state["_curves_"], CURVES), (Trees, state["_trees_"], TREES)):
        if name in candidates:
            needed.add(BASE)
            if len(own) != len(groups):
                return f"its {name} are not those of its columns"
        for one in own:
            conform(one, kind, {"w": w}, name)
    if not needed <= set(state["_models_"]) or any(m.n_features_in_ != w for m in state["_models_"].values()):
        return f"its models are not those of {w} columns"
    if density not in ("", *DENSITIES) or (bool(density) and names["v"] < 2):
        return "its draws are by no density"
    return ""
