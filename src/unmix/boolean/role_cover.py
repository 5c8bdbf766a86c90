"""Exact role covers:  X = Z ⊗ U, no grant lost and none extra, with the fewest roles (minimum biclique cover).

local    z_ik = 1 where role k lies within row i (every cell of it is 1, or unknown), less the roles that the others of
         the row make needless, small ones first                   loss_i = Σ_j [x_ij = 1] [no role of the row holds j]
stats    N_k = Σ_i w_i z_ik
update   none: which roles a cover needs shows in all rows together, so they are found in rounds on all of them
         (`_search.py`):     min_U  K   so that  x_ij = ∨_k z_ik u_kj  wherever x_ij was observed

A role that grants nothing extra is a biclique of the graph of users and permissions, and roles may as well be maximal
ones. Equal users and permissions are merged, pairs that follow from others are dropped (`_problem.py`), all maximal
bicliques are listed where they are not too many, and the fewest that cover every pair are chosen: a set cover, reduced,
searched, and proved by integer programming (`_covering.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from unmix.boolean._search import Covering, Parts
from unmix.boolean._truth import packed
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Reconstructs


class Stats(NamedTuple):
    """How many rows have each role."""

    N: Annotated[np.ndarray, Array("k", low=0.0)]


class RoleCover(Reconstructs, Model):
    """Fewest roles that give everybody exactly what they have.

    X is a list of who may do what: a row for each user, a column for each permission, 1 where it is granted, 0 where it
    is not, NaN where nobody knows. The roles cover every 1 and no 0; an unknown cell may be covered and need not.

    Parameters
    ----------
    prices : tuple of three numbers, default=(1.0, 0.0, 0.0)
        What a role costs, what giving a role to a user costs, and what a permission in a role costs: the weighted
        structural complexity. By default only the number of roles counts, and then it can be proved to be the least.
        With other prices the cover is a good one, and `lower_bound_` is a simple one.
    fixed : array of shape (k, d) or None, default=None
        Roles that exist already and stay as they are: they come first in `roles_`, and others are added for what they
        leave.
    apart : list of pairs of columns or None, default=None
        Permissions that no role may join (separation of duties), by number or by name. Roles that are fixed are not
        asked.
    threshold : float or None, default=None
        A cell is 1 where it exceeds this. None: X holds 0, 1 and NaN, and other numbers are refused.
    time_limit : float, default=60.0
        Seconds after which the search ends with the best cover it has; an integer programme that has begun ends, too. A
        fit that ended by it may be another one next time.
    max_candidates : int, default=200_000
        Up to so many maximal bicliques all are listed, and the least number of roles can be proved. Where there are
        more, candidates are generated.
    max_iter : int, default=1000
        Maximum number of rounds.
    random_state : int, RandomState instance or None, default=None
        Seed of the local search.

    Attributes
    ----------
    roles_ : ndarray of bool of shape (k, d)
        The permissions of each role: fixed ones first, then those that most users have.
    assignments_ : ndarray of bool of shape (n, k)
        The roles of each user: none that the others make needless.
    lower_bound_ : float
        No cover has fewer roles (costs less, with other `prices`).
    optimal_ : bool
        Whether the cover is proved to be the least: it costs `lower_bound_`.
    cost_ : float
        What the cover costs: the number of roles, unless there are other `prices`.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import RoleCover
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> model = RoleCover().fit(X)
    >>> model.roles_.astype(int)
    array([[0, 0, 1, 1],
           [1, 1, 0, 0]])
    >>> model.assignments_.astype(int).tolist(), model.optimal_
    ([[0, 1], [1, 1], [1, 0], [1, 0]], True)
    """

    sparse = True
    missing = True
    collect = True
    power = 0
    columns_as = "given"
    tied = ("fixed",)
    exempt: ClassVar[dict[str, str]] = {
        "online": "which roles a cover needs shows in all rows together: a batch cannot change them",
    }
    degrees: ClassVar[dict[str, int | None]] = {"threshold": 1}

    roles_: Annotated[np.ndarray, Array("k d", "b")]
    assignments_: Annotated[np.ndarray, Array("n k", "b", maybe=True)]
    lower_bound_: float
    optimal_: bool
    cost_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prices": [tuple, list],
        "fixed": ["array-like", None],
        "apart": [list, tuple, np.ndarray, None],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "time_limit": [Interval(Real, 0, None, closed="neither")],
        "max_candidates": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        prices: tuple[float, float, float] = (1.0, 0.0, 0.0),
        fixed: Any = None,
        apart: Any = None,
        threshold: float | None = None,
        time_limit: float = 60.0,
        max_candidates: int = 200_000,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.prices = prices
        self.fixed = fixed
        self.apart = apart
        self.threshold = threshold
        self.time_limit = time_limit
        self.max_candidates = max_candidates
        self.max_iter = max_iter
        self.random_state = random_state

    # ---------------------------------------------------------------- before the fit

    def check(self, shape: Shape) -> None:
        """Refuse prices that are none, fixed roles of other columns, pairs of columns that are not there."""
        prices = list(self.prices)
        if len(prices) != 3 or not all(isinstance(p, Real) and 0 <= p < np.inf for p in prices) or prices[0] <= 0:
            raise ValueError(
                f"prices={self.prices!r}: give three numbers, of a role (above 0), of a role given to a user and of a "
                "permission in a role (0 or more)"
            )
        self.fixed_roles(shape)
        self.pairs_apart(shape)

    def fixed_roles(self, shape: Shape) -> np.ndarray:
        """The roles that are held fixed, (k, d)."""
        if self.fixed is None:
            return np.zeros((0, shape.d), bool)
        fixed = np.asarray(self.fixed)
        if fixed.ndim != 2 or fixed.shape[1] != shape.d:
            raise ValueError(
                f"fixed is an array of shape {fixed.shape}: give a row for each role and a column for each of the "
                f"{shape.d} columns of X"
            )
        if not np.isin(fixed, (0, 1)).all():
            raise ValueError("fixed holds other values than 0 and 1: give 1 where a role holds a permission, else 0")
        return fixed.astype(bool)

    def pairs_apart(self, shape: Shape) -> np.ndarray:
        """The pairs of columns that no role may join, (s, 2)."""
        pairs = (
            [] if self.apart is None else [p if isinstance(p, (tuple, list, np.ndarray)) else [p] for p in self.apart]
        )
        out = [tuple(self._column(c, shape) for c in pair) for pair in pairs]
        if any(len(pair) != 2 or pair[0] == pair[1] for pair in out):
            raise ValueError(f"apart={self.apart!r}: give pairs of two different columns, as in [(0, 3)]")
        return np.array(out, np.int64).reshape(-1, 2)

    def _column(self, asked: Any, shape: Shape) -> int:
        if isinstance(asked, str) and shape.names is not None and asked in shape.names:
            return shape.names.index(asked)
        if isinstance(asked, (int, np.integer)) and 0 <= asked < shape.d:
            return int(asked)
        raise ValueError(
            f"apart names column {asked!r}: give numbers from 0 to {shape.d - 1}, or names of columns of X"
        )

    def stages(self, shape: Shape) -> list[Stage]:
        """Rounds of search on all rows."""
        return [Covering(self, shape)]

    # ---------------------------------------------------------------- the contract

    def local(self, U: Parts, b: Block) -> Local:
        """Which roles each row has, and how many of its grants no role holds."""
        from unmix.kernels import bits

        rows = self._packed(b)
        z = self._roles_of(U, rows.ones, rows.may)
        lost, _ = bits.errors(rows.ones, bits.product(bits.pack(z), bits.pack(U.roles)))
        w = np.ones(len(z)) if b.w is None else b.w
        return Local(z, Stats(w @ z.astype(np.float64)), float(w @ lost))

    def _packed(self, b: Block) -> Any:
        return packed(b, self.threshold, type(self).__name__, self.shape.names)

    def _roles_of(self, U: Parts, ones: np.ndarray, may: np.ndarray) -> np.ndarray:
        from unmix.kernels import bicliques, bits

        order = np.argsort(U.roles.sum(axis=1), kind="stable")
        return np.asarray(bicliques.assigned(ones, may, bits.pack(U.roles), order))

    def notes(self, U: Parts) -> list[str]:
        """Covers that are not proved to be the least, fixed roles that nobody can have."""
        out = []
        if not self._is_least(U) and self._counts:
            way = "raise time_limit" if U.events.listed else "raise max_candidates and time_limit"
            out.append(
                f"{len(U.roles)} roles cover X, and fewer than {U.least:.0f} do not: whether a number between suffices "
                f"is not proved; {way} to know more"
            )
        if U.events.idle:
            out.append(
                f"{U.events.idle} of the roles in fixed grant something extra to every row of X, so nobody has them: "
                "leave them out"
            )
        return out

    @property
    def _counts(self) -> bool:
        """Whether the number of roles is all that counts."""
        return tuple(self.prices) == (1, 0, 0)

    def _is_least(self, U: Parts) -> bool:
        return bool(U.price <= U.least + 1e-6)

    def described(self, U: Any, data: Any) -> Described:
        """Roles over the columns."""
        return Described(Parts, Stats, Any, {"d": self.shape.d})

    def publish(self, fit: Fit) -> None:
        """Roles, who has them, and what is proved."""
        U = fit.U
        self.roles_ = np.asarray(U.roles)
        self.lower_bound_, self.cost_ = float(U.least), self._cost(fit)
        self.optimal_ = bool(self.cost_ <= self.lower_bound_ + 1e-6)
        self.__dict__.pop("assignments_", None)
        if fit.z is not None:
            self.assignments_ = fit.z

    def _cost(self, fit: Fit) -> float:
        """What the roles cost as they are given; nobody asks what fixed ones grant, nor who has them."""
        if self._counts or fit.stats is None:
            return float(fit.U.price)
        own, (role, member, grant) = len(self.fixed_roles(fit.shape)), self.prices
        members = float(fit.stats.N[own:].sum()) * fit.shape.unit
        return float(role * len(fit.U.roles) + member * members + grant * float(fit.U.roles[own:].sum()))

    @property
    def _n_features_out(self) -> int:
        return len(self.roles_)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """1 for each role of a row, else 0."""
        rows = self._packed(b)
        return self._roles_of(U, rows.ones, rows.may).astype(b.x.dtype)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """What roles grant together: 1 where any of them does."""
        return ((z > 0.5).astype(np.float64) @ U.roles > 0).astype(z.dtype)

    def findings(self) -> list[str]:
        """How many roles, and whether fewer can do."""
        roles = vars(self).get("roles_")
        if roles is None:
            return []
        proof = "proved to be the fewest" if self.optimal_ else f"at least {self.lower_bound_:g} are needed"
        return [f"{len(roles)} roles" + (f", {proof}" if self._counts else f" at a cost of {self.cost_:g}")]

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[RoleCover, np.ndarray, Callable[[Any], None]]:
        """Five roles, of which neighbours share permissions; users have one or two."""
        truth = np.zeros((5, 20), bool)
        for k in range(5):
            truth[k, np.arange(4 * k, 4 * k + 6) % 20] = True
        first, second = rng.integers(5, size=150), rng.integers(5, size=150)
        X = (truth[first] | truth[np.where(np.arange(150) < 75, first, second)]).astype(float)

        def found(model: Any) -> None:
            assert model.optimal_, "the cover is not proved"
            roles = {tuple(role) for role in model.roles_.tolist()}
            assert roles == {tuple(role) for role in truth.tolist()}, "the roles are not those that were planted"

        return cls(threshold=0.5, random_state=0), X, found
