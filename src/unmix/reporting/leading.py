"""Groups where columns outnumber rows: in the leading components of the columns that vary most.

The centres of k groups lie in a space of k − 1 dimensions, so k groups are sought by k-means in the k − 1 leading
components (Ding & He 2004; Jin & Wang 2016). With more components than that, chance hides the groups from so few rows.

Amounts that vary by factors are compared by their logarithms, where a step is the same factor in every column: among
these, the columns that vary most are kept, as many as there are rows. Other columns count alike.

How many: for each k, by how many standard deviations more of the squares of the data than of clouds without groups is
told by k centres. The clouds are one Gaussian, and one skewed cloud, with the same axes (`selection/likeness.py`); the
one that is more like the rows counts. Planted tables of these looks: `tests/test_report.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import unmix
from unmix.engine.draws import generator
from unmix.engine.sources import as_source
from unmix.explanation.words import plural
from unmix.model.frames import frame
from unmix.reporting.view import View
from unmix.selection.choose import ROWS_PER_PART
from unmix.selection.likeness import CLEAR_EXCESS, Likeness
from unmix.selection.question import Question
from unmix.selection.result import Selection
from unmix.table.kinds import AMOUNTS
from unmix.table.table import Table

MOST = 6  # groups that are sought
FACTOR = 3.0  # the largest amount over the smallest, in most columns, from which on they vary by factors
KINDS, DRAWS = ("gaussian", "skewed"), 20  # of clouds without groups
WITHIN = 2.0  # standard deviations from the best k, up to which another is defensible
STARTS = 5
EXACT = 1e-12  # share of the squares, below which rows are their centres
CRITERION = "excess over one cloud"


class Leading(NamedTuple):
    """Groups in the leading components."""

    k: int
    rows: np.ndarray  # of the fit, as components, and
    every: np.ndarray  # all of them
    answer: Selection
    how: str  # lines of Python that give it
    among: str  # where groups were sought, in words
    plane: np.ndarray  # all rows on the first two components


def leading(view: View) -> Leading | None:
    """The groups of a table of more columns than rows; None where there are too few rows to ask."""
    ks = list(range(2, min(MOST, view.usual.n // ROWS_PER_PART) + 1))
    if not ks:
        return None
    view.tell("groups among the leading components")
    x, how, among = _columns(view)
    scores = unmix.PCA(ks[-1], random_state=view.seed).fit(x[view.fits]).transform(x)
    scores = np.asarray(scores, dtype=np.float64)
    excess = {k: _excess(scores[view.fits, : k - 1], k, view.seed) for k in ks}
    best = max(ks, key=lambda k: excess[k])
    some = [k for k in ks if excess[k] >= max(CLEAR_EXCESS, excess[best] - WITHIN)]
    k, low, high = (best, min(some), max(some)) if some else (1, 1, 1)
    rows, every = scores[view.fits, : best - 1], scores[:, : best - 1]
    model = unmix.KMeans(k, n_init=STARTS, random_state=view.seed).fit(rows)
    side = "more" if excess[best] > 0 else "less"
    told = f"{abs(excess[best]):.1f} standard deviations {side} of the rows than of one cloud with the same axes"
    reason = f"In {plural(best - 1, 'leading component')} {best} centres explain {told}; "
    reason += f"at least {CLEAR_EXCESS:.0f} more are needed."
    columns = {"k": np.array(ks), "sound": np.ones(len(ks), bool), CRITERION: np.array([excess[k] for k in ks])}
    answer = Selection(frame(columns), k, (low, high), "open", reason, model, CRITERION, {}, columns, "n_clusters")
    how += f"\nrows = unmix.PCA({best - 1}).fit_transform(X)"
    how += f"\nmodel = unmix.KMeans({k}, n_init={STARTS}, random_state={view.seed}).fit(rows)"
    among = f", in {plural(best - 1, 'leading component')} of {among}, since there are more columns than rows"
    return Leading(k, rows, every, answer, how, among, scores[:, :2])


def _columns(view: View) -> tuple[np.ndarray, str, str]:
    """All rows in columns that can be compared; lines of Python that give those of the fit, and words."""
    plain: Any = view.some.suited("given")
    x = np.asarray(plain.read(0, plain.n), dtype=np.float64)
    few, amounts = x[view.fits], all(use.kind in AMOUNTS for use in view.some.recipe.uses)
    low, high = np.nanmin(few, axis=0), np.nanmax(few, axis=0)
    zero = float(np.nanmin(few[few > 0], initial=np.inf)) if low.min() == 0 else 0.0
    if not amounts or not low.min() >= 0 or not np.median((high + zero) / (low + zero)) >= FACTOR:
        rows = Table.like(view.some, view.usual.recipe)  # in the units of the usual ones
        return rows.read(0, rows.n).astype(np.float64), f"X = {view.named}", "all columns"
    logs = np.log(np.maximum(x, low) + zero)
    most = np.argsort(-np.nanvar(logs[view.fits], axis=0), kind="stable")[: len(few)]
    how = f'X = {view.named}.suited("given").read(0, {view.named}.n)\nX = np.log(X{f" + {zero:g}" if zero else ""})'
    how = f"import numpy as np\n\n{how}\nX = X[:, np.argsort(-np.nanvar(X, axis=0))[: len(X)]]"
    return logs[:, most], how, f"the logarithms of the {len(most):,} columns that vary most"


def _excess(x: np.ndarray, k: int, seed: int) -> float:
    """By how many standard deviations k centres tell more of the squares than of clouds without groups."""
    like = Likeness(Question(unmix.KMeans(), "n_clusters", [k], as_source(x), None, seed, 2, 2), x, None)
    own, out = _told(x, k, seed), []
    for kind in KINDS:
        others = [_told(like.draw(kind, generator(seed, kind, i)), k, seed) for i in range(DRAWS)]
        out.append((own - np.mean(others)) / max(float(np.std(others, ddof=1)), 1e-9))
    return float(min(out))


def _told(x: np.ndarray, k: int, seed: int) -> float:
    """The log of the squares about one centre over those about k."""
    squares = float(((x - x.mean(axis=0)) ** 2).sum())
    rest = unmix.KMeans(k, n_init=STARTS, random_state=seed).fit(x).inertia_
    return float(np.log(max(squares, 1e-300) / max(rest, EXACT * squares, 1e-300)))
