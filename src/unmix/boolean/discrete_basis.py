"""Discrete basis:  few roles whose Boolean product is near X, chosen greedily from associated columns (ASSO).

A candidate for each column i and each confidence τ: the columns j that hold a 1 in a share of at least τ of the rows
that hold a 1 in column i (and know j). Then roles are chosen one after another (`_greedy.py`).

local    z_ij = whether role j, after those before it, gains row i anything        loss = weighed errors
stats    what each candidate would gain            [before, in one pass: Σ_i x_id x_ie and Σ_i x_id o_ie, o: known]
update   the next role is the candidate that gains most

Miettinen, Mielikäinen, Gionis, Das & Mannila (2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.boolean._greedy import Candidates, GreedyRoles
from unmix.boolean._planted import overlapping
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Sizes, Stage
from unmix.maths.arrays import Array

CONFIDENCES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # that "auto" tries together


class Counts(NamedTuple):
    """Rows with a 1 in either column of a pair; rows with a 1 in the first that do not know the second."""

    both: Annotated[np.ndarray, Array("d d")]
    unknown: Annotated[np.ndarray, Array("d d")] | float


class Association(Stage):
    """One pass: how often columns are 1 together."""

    name, most = "association", 1

    def __init__(self, model: Any, confidences: Sequence[float]) -> None:
        self.model, self.confidences = model, confidences

    def sizes(self, shape: Shape) -> Sizes:
        """No sample."""
        return Sizes(sample=0)

    def start(self, before: Any, data: Any, rng: np.random.Generator) -> Candidates:
        """No candidates yet."""
        return Candidates(np.zeros((0, self.model.shape.d)))

    def local(self, U: Candidates, b: Block) -> Local:
        """Count pairs of ones."""
        x, seen = self.model.cells(b)
        x = x.astype(np.float64)
        mine = b.weighted(x).T
        return Local(None, Counts(mine @ x, 0.0 if seen is None else mine @ (1.0 - seen)), 0.0)

    def update(self, U: Candidates, stats: Counts) -> Candidates:
        """Columns that go with each, for every confidence; equal ones once."""
        told = np.maximum(np.diagonal(stats.both)[:, None] - stats.unknown, 0.0)
        share = np.where(told > 0, stats.both / np.maximum(told, 1e-300), 0.0)
        sets = np.vstack([share >= confidence * (1.0 - 1e-9) for confidence in self.confidences])
        sets = np.unique(sets[sets.any(axis=1)], axis=0)
        return Candidates(sets.astype(np.float64))

    def described(self, U: Any, data: Any) -> Described:
        """Candidates, and counts of pairs."""
        return Described(Candidates, Counts, Any)


class DiscreteBasis(GreedyRoles):
    """Roles from columns that go together: the discrete basis problem, by ASSO.

    Parameters
    ----------
    n_components : int, default=2
        Number of roles.
    confidence : float, list of float or "auto", default="auto"
        A column is of the candidate of another where it holds a 1 in at least this share of the rows in which the other
        does; of several, each gives candidates. "auto" is 0.2, 0.3, … 0.9 together.
    bonus : float, default=1.0
        What a 1 that roles cover is worth, w⁺.
    price : float, default=1.0
        What a 0 that roles cover costs, w⁻: large, if a role must not give what nobody has.
    threshold : float or None, default=None
        A cell above it is a 1, another a 0. None: cells must be 0, 1, or NaN, which is unknown.

    Attributes
    ----------
    roles_ : ndarray of bool of shape (k, d)
        Which permissions each role has, in the order in which they were chosen.
    assignments_ : ndarray of bool of shape (n, k)
        Which roles each training row has, where the rows were in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import DiscreteBasis
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> model = DiscreteBasis(2).fit(X)
    >>> model.roles_.astype(int).tolist()
    [[0, 0, 1, 1], [1, 1, 0, 0]]
    >>> model.assignments_.astype(int).tolist()
    [[0, 1], [1, 1], [1, 0], [1, 0]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "confidence": [StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="right"), "array-like"],
        "bonus": [Interval(Real, 0.0, None, closed="neither")],
        "price": [Interval(Real, 0.0, None, closed="left")],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        confidence: Any = "auto",
        bonus: float = 1.0,
        price: float = 1.0,
        threshold: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.confidence = confidence
        self.bonus = bonus
        self.price = price
        self.threshold = threshold

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are fewer rows than roles, or too many columns for all pairs of them."""
        super().check(shape)
        self.afford((3 + len(self._confidences())) * shape.d**2, f"X has {shape.d} columns, all pairs of which count")

    def _confidences(self) -> Sequence[float]:
        if isinstance(self.confidence, str):
            return CONFIDENCES
        out = np.atleast_1d(np.asarray(self.confidence, dtype=np.float64))
        if out.ndim > 1 or not len(out) or not ((out > 0) & (out <= 1)).all():
            raise ValueError(f"confidence={self.confidence!r}: give numbers above 0 and at most 1, or 'auto'")
        return tuple(out.tolist())

    def worth(self) -> tuple[float, float]:
        """The bonus and the price."""
        return float(self.bonus), float(self.price)

    def stages(self, shape: Shape) -> list[Stage]:
        """Candidates from pairs of columns, then a pass for each role."""
        return [Association(self, self._confidences()), self]

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[DiscreteBasis, np.ndarray, Callable[[Any], None]]:
        """Three roles that share permissions, one or two of them in a row."""
        X, roles, _ = overlapping(rng)

        def found(model: Any) -> None:
            assert {*map(tuple, model.roles_.tolist())} == {*map(tuple, roles.tolist())}

        return cls(3, confidence=0.7, threshold=0.5), X.astype(np.float64), found
