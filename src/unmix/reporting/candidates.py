"""Groups that can be defended: what `select` says of every model that suits the columns, judged alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import unmix
from unmix.engine.sources import as_source
from unmix.model.capabilities import Density
from unmix.reporting.leading import leading
from unmix.reporting.view import View
from unmix.selection.asked import size_of
from unmix.selection.clouds import clouds
from unmix.selection.likeness import CLEAR_EXCESS, structure
from unmix.selection.question import Question

WIDE = 30  # columns beyond which groups are sought among the leading components
STARTS = 3


class Tried(NamedTuple):
    """What was said of a model on some rows."""

    model: Any  # as it was asked
    answer: Any
    rows: Any  # that it was asked about, and
    every: Any  # all of them, as the model takes them
    named: str  # lines of Python: the rows, and
    asked: str  # the model,
    how: str  # the answer
    among: str = ""  # where groups were sought, in words
    plane: np.ndarray | None = None  # where they are to be seen, if it is not among all components
    leading: bool = False  # whether there are more columns than rows, and the answer is of `leading`

    @property
    def cells(self) -> np.ndarray:
        """The rows as numbers."""
        rows = self.rows if isinstance(self.rows, np.ndarray) else self.rows.read(0, self.rows.n)
        return np.asarray(rows, dtype=np.float64)

    @property
    def words(self) -> str:
        """The answer with its reason."""
        return f"{type(self.model).__name__}: {self.answer}"

    def fitted(self, k: int) -> Any:
        """The model with k groups, and with what else `select` found to suit the rows."""
        if k == self.answer.k:
            return self.answer.model
        base = self.model if self.answer.model is None else self.answer.model
        return clone(base).set_params(**{self.answer.parameter: k}).fit(self.rows)


class Found(NamedTuple):
    """Groups that can be defended, and how likely they make the rows: low is good, whatever the model."""

    tried: Tried
    k: int
    model: Any
    made: str  # line of Python: the model
    doubted: bool  # whether one cloud can be defended, too
    thin: bool  # whether there are fewer rows than numbers that tell the groups
    icl: float

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__


def candidates(view: View) -> tuple[list[Tried], Found]:
    """What each model says that suits the columns, and the groups that can be defended best."""
    first = leading(view) if len(view.usual.recipe.uses) > max(WIDE, view.usual.n) else None
    if first is not None:
        k, rows, every, answer, how, among, plane = first
        tried = Tried(answer.model, answer, rows, every, "rows", "model", how, among, plane, True)
        return [tried], Found(tried, k, answer.model, "model", False, False, 0.0)
    several = _tried(view)
    return several, _likeliest(_defensible(several))


def one_cloud(best: Found, seed: int) -> bool:
    """Whether one skewed cloud explains the rows as well: to a mixture, a narrow mode in a wide cloud is a group."""
    x = best.tried.cells
    q = Question(best.model, size_of(best.model), [best.k], as_source(x), None, seed, 2, 2)
    return structure(q, best.k, ("skewed",))["skewed"] < CLEAR_EXCESS


def _tried(view: View) -> list[Tried]:
    """What `select` says of each model that suits the columns."""
    usual: Any = view.usual
    every: Any = view.some
    named, seed, among = view.named, view.seed, ""
    columns = len(view.usual.recipe.uses)
    mixed = columns <= WIDE and any(use.levels for use in view.usual.recipe.uses)
    if not mixed and usual.d > WIDE and view.components is not None:
        usual, every = (np.asarray(view.components.transform(t), dtype=np.float64) for t in (usual, every))
        named = f"unmix.PCA({usual.shape[1]}).fit_transform({named})"
        among = ", among the leading components, since the columns are many"
    out = []
    for name in ("Mixture",) if mixed else ("KMeans", "GaussianMixture"):
        view.tell(f"groups by {name}")
        model = unmix.models()[name](**({} if mixed else {"n_init": STARTS}), random_state=seed)
        answer = unmix.select(model, usual, random_state=seed)
        asked = f"unmix.{name}({'' if mixed else f'n_init={STARTS}, '}random_state={seed})"
        how = f"answer = unmix.select({asked}, {named}, random_state={seed})\nprint(answer)"
        out.append(Tried(model, answer, usual, every, named, asked, how, among))
    return out


def _defensible(tried: list[Tried]) -> list[Found]:
    """The groups of every model and number that can be defended, judged alike."""
    out: list[Found] = []
    for t in tried:
        low, high = t.answer.range
        for k in [1] if t.answer.k == 1 else range(max(low, 2), high + 1):
            base = t.asked if t.answer.model is None else "answer.model"
            own = f"{base}.set_params({t.answer.parameter}={k}).fit({t.named})"
            out.append(_found(t, k, t.fitted(k), "answer.model" if k == t.answer.k else own))
    return out


def _found(t: Tried, k: int, model: Any, made: str) -> Found:
    """Groups as they are judged."""
    thin = isinstance(model, Density) and model.n_parameters() > len(t.cells)
    icl = float(clouds(t.cells, None, [np.asarray(model.predict(t.rows))])[0])
    return Found(t, k, model, made, 1 == t.answer.range[0] < k, thin, icl)


def _likeliest(found: list[Found]) -> Found:
    """How many groups: by those that the rows are enough to tell; which: the likeliest of as many.

    A mixture of more numbers than rows sees too many groups or too few, but of a number that is known it finds groups
    of several shapes better than k-means does.
    """
    best = min(found, key=lambda f: (f.doubted or f.thin, f.icl))
    return min((f for f in found if f.k == best.k and f.doubted <= best.doubted), key=lambda f: f.icl)
