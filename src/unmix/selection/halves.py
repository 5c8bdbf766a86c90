"""How the choice varies: the same question asked of halves of the rows.

A row of a half counts twice. Halves are drawn without replacement, in pairs that share no row: a bootstrap's equal rows
would be groups of their own to a mixture, while a sum over a half, doubled, varies as one over a bootstrap sample does
(McCarthy 1969). Each k starts from the parts that all rows have given it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.metrics import adjusted_rand_score

from unmix.engine.draws import generator
from unmix.engine.sources import as_source
from unmix.model import Model, fit_together
from unmix.selection.judge import judge
from unmix.selection.likeness import here, quick
from unmix.selection.question import Question

PAIRS = 5  # of halves
PAIR_ROWS = 4000  # of both halves, at most
NEAR = 3  # ks on each side of the choice that halves choose from
QUICK = ("aic", "bic", "icl", "calinski_harabasz", "silhouette")  # criteria that need no further fits
STEADY = 0.8  # adjusted Rand index of the groups that two halves find, from which on they are the same groups


def halves(q: Question, chosen: list[str], k: int, tell: Callable[[str], None]) -> Counter[int]:
    """How many halves of the rows choose which k, among those near a choice; none where halves cannot be asked."""
    ks = [i for i in q.ks if k - NEAR <= i <= k + NEAR]
    if q.pairwise or chosen[0] not in QUICK or len(ks) < 2:
        return Counter()
    votes: Counter[int] = Counter()
    x, w = q.rows(PAIR_ROWS)
    if len(x) < 4 * ks[-1]:
        return Counter()
    w = np.ones(len(x)) if w is None else w
    for i, rows in enumerate(_split(q, x)):
        tell(f"asking half {i + 1} of {2 * PAIRS} of the rows")
        half = replace(q, ks=ks, source=as_source(x[rows]), w=w[rows] * (w.sum() / w[rows].sum()), known={}, told={})
        refit(q, half)
        votes[judge(half, chosen).votes[chosen[0]]] += 1
    return votes


def refit(q: Question, half: Question) -> None:
    """Fit every k to a half of the rows, from the parts of all where parts are not rows themselves."""
    once = {"n_init": 1} if "n_init" in q.model.get_params(deep=False) else {}
    models = [q.sized(k).set_params(**q.free, **once) for k in half.ks]
    first = None
    if type(q.model).neighbour is not Model.neighbour:
        first = [m.go_on(q.known[k][1].U) for m, k in zip(models, half.ks, strict=True)]
    with here():
        fits = fit_together(models, half.source, [half.w] * len(models), [q.seed] * len(models), first)
    half.known.update(zip(half.ks, zip(models, fits, strict=True), strict=True))


def steadiness(q: Question, k: int) -> float:
    """Mean adjusted Rand index of the k groups that two halves of the rows find, each from a start of its own."""
    x, w = q.rows(PAIR_ROWS)
    if not (q.groups and q.model.labels_new_rows) or q.pairwise or len(x) < 4 * k:
        return float("nan")
    found: list[np.ndarray] = []
    for rows in _split(q, x):
        (model,), _ = quick(q, x[rows], None if w is None else w[rows], [k])
        found.append(model.predict(as_source(x)))
    return (
        float("nan")
        if not found
        else float(np.mean([adjusted_rand_score(a, b) for a, b in zip(found[::2], found[1::2], strict=True)]))
    )


def _split(q: Question, x: np.ndarray) -> list[np.ndarray]:
    """Halves of the rows, pair by pair; none where a column would not be observed in one of them."""
    orders = [generator(q.seed, "halves", i).permutation(len(x)) for i in range(PAIRS)]
    out = [np.sort(rows) for order in orders for rows in np.array_split(order, 2)]
    return [] if any(np.isnan(x[rows]).all(axis=0).any() for rows in out) else out
