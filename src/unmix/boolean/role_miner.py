"""Role mining by common permissions:  candidates are intersections of the rows' sets of permissions.

"fast" takes those of each row and of every pair of rows, "complete" those of any number of rows, which is every set
that some rows have in common, up to a limit. Then roles are chosen one after another (`_greedy.py`), and a row may have
a role only if it is known to lack none of its permissions: nobody gets a permission that they did not have.

local    z_ij = whether row i may have role j, and gains a cell that roles before do not cover
stats    how many cells each candidate would cover that are not covered yet
update   the next role is the candidate that covers most

Vaidya, Atluri & Warner (2006), whose CompleteMiner and FastMiner give the candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.boolean._greedy import Candidates, GreedyRoles
from unmix.boolean._planted import overlapping
from unmix.engine.block import Block
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.sample import distinct
from unmix.engine.stage import Stage


class Intersections(Stage):
    """All rows: what their sets of permissions have in common."""

    name, over, most = "intersections", "whole", 0

    def __init__(self, model: Any) -> None:
        self.model = model

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Candidates:
        """Intersections, those first that cover most cells: permissions × rows that have them all."""
        model, limit = self.model, self.model.max_candidates
        model.cells(data)  # which refuses other cells than 0 and 1 while rows are in their order
        b = distinct(data)
        x, _ = model.cells(b)
        w = np.ones(len(x)) if b.w is None else b.w
        order = np.argsort(-w * x.sum(axis=1), kind="stable")
        own = [bits.tobytes() for bits in np.packbits(x[order] > 0, axis=1)]
        pool = self._closed(own, limit, model.method == "complete")
        sets = np.array([np.frombuffer(bits, np.uint8) for bits in pool], dtype=np.uint8)
        sets = np.unpackbits(sets.reshape(len(pool), -1), axis=1, count=x.shape[1]).astype(np.float64)
        sets = np.unique(sets[sets.any(axis=1)], axis=0)
        may = np.asarray(x if b.observed is None else x + (~b.observed), dtype=np.float64)
        support = w @ (may @ sets.T == sets.sum(axis=1))
        return Candidates(sets[np.argsort(-support * sets.sum(axis=1), kind="stable")[:limit]])

    @staticmethod
    def _closed(own: list[bytes], limit: int, complete: bool) -> dict[bytes, None]:
        """Sets and their intersections, with each other or with what those have in common; about as many as the limit.

        Adding one set at a time and its intersections with all that are there gives the intersections of any number.
        """
        pool: dict[bytes, None] = {}
        rows: list[bytes] = []
        for new in dict.fromkeys(own):
            others = (list(pool) if complete else rows) if len(pool) < limit else []
            pool[new] = None
            if others:
                both = np.frombuffer(b"".join(others), np.uint8).reshape(len(others), -1) & np.frombuffer(new, np.uint8)
                pool.update(dict.fromkeys(bits.tobytes() for bits in both))
            rows.append(new)
        return pool

    def described(self, U: Any, data: Any) -> Described:
        """Candidates."""
        return Described(Candidates, Any, Any)


class RoleMiner(GreedyRoles):
    """Roles from permissions that rows have in common: RoleMiner.

    Parameters
    ----------
    n_components : int, default=2
        Number of roles.
    method : {"fast", "complete"}, default="fast"
        Candidates are intersections of two rows, or of any number of rows.
    max_candidates : int, default=5000
        Most candidates; rows that are frequent and have many permissions come first. With noise the intersections of
        any number of rows soon reach any limit.
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
    >>> from unmix import RoleMiner
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> sorted(RoleMiner(2).fit(X).roles_.astype(int).tolist())
    [[0, 0, 1, 1], [1, 1, 0, 0]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"fast", "complete"})],
        "max_candidates": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        method: str = "fast",
        max_candidates: int = 5000,
        threshold: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.max_candidates = max_candidates
        self.threshold = threshold

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are fewer rows than roles, or too many columns for so many candidates."""
        super().check(shape)
        self.afford(2 * self.max_candidates * shape.d, f"take fewer than max_candidates={self.max_candidates}")

    def worth(self) -> tuple[float, float]:
        """A 0 costs more than all ones of a row can be worth."""
        return 1.0, float(self.shape.d + 1)

    def stages(self, shape: Shape) -> list[Stage]:
        """Candidates, then a pass for each role."""
        return [Intersections(self), self]

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[RoleMiner, np.ndarray, Callable[[Any], None]]:
        """Three roles that share permissions, one or two of them in a row."""
        X, roles, _ = overlapping(rng)

        def found(model: Any) -> None:
            assert {*map(tuple, model.roles_.tolist())} == {*map(tuple, roles.tolist())}

        return cls(3, threshold=0.5), X.astype(np.float64), found
