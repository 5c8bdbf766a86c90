"""Multi-assignment clustering:  x_id = ⋁_{k ∈ L_i} u_kd, or noise.

Each row has a set L of at most `max_roles` roles, all sets alike likely, and a cell that is noise, with probability ε,
is 1 with probability r:

    p(x_id = 1 | L) = ε r + (1−ε)(1 − β_Ld)      p(x_id = 0 | L) = ε (1−r) + (1−ε) β_Ld      β_Ld = Π_{k ∈ L} β_kd

β_kd = p(u_kd = 0). A first stage (`_annealing.py`) finds roles at a temperature that falls until β is 0 or 1; then EM
with Boolean roles, whose equations (`_noise.py`) are those of the first at the temperature 1 for rows and 0 for roles.

local    γ_iL = p(x_i | L) / Σ_L p(x_i | L)           loss = −Σ_i log p(x_i)             [over the known cells]
stats    A_Ld = Σ_i γ_iL x_id      N_L = Σ_i γ_iL
update   u_kd = 1 where A and N speak for it, given the other roles: a better likelihood, role after role
         ε r and ε r + 1 − ε = the shares of ones among the cells that no role grants, and among the others

Streich, Frank, Basin & Buhmann (2009); Frank, Streich, Basin & Buhmann (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.boolean._annealing import Annealing
from unmix.boolean._base import BooleanModel, some
from unmix.boolean._noise import Parts, Stats, energies, gathered, grants, improved, noise, shares
from unmix.boolean._planted import overlapping
from unmix.boolean._sets import MOST_SETS, count, membership, subsets
from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape, block_rows
from unmix.engine.stage import Sizes, Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model.capabilities import Density, Imputes

BLOCK_CELLS = 1 << 20  # rows × sets that a block may have


class MultiAssignmentClustering(Density, Imputes, BooleanModel):
    """Roles in an access list with wrong cells: multi-assignment clustering.

    Each row has a few of k roles, and a permission if one of its roles has it. Cells may be wrong: the share of noise
    and how much of it are ones are estimated, and each cell gets a probability that it is noise.

    Parameters
    ----------
    n_components : int, default=2
        Number of roles k.
    max_roles : int, default=2
        Most roles of a row. Every set of at most so many roles gets a probability in every row, so that time and memory
        grow with their number Σ_m C(k, m).
    threshold : float or None, default=None
        A cell above it is a 1, another a 0. None: cells must be 0, 1, or NaN, which is unknown.
    temperature : float or "auto", default="auto"
        First temperature of the annealing, in nats. "auto" is one at which roles of such columns just part.
    cooling : float, default=0.97
        Factor by which it falls in each pass; nearer to 1 is slower, and finds better roles.
    tol : float, default=1e-5
        The fit ends when a pass raises the mean log-likelihood by no more.
    max_iter : int, default=100
        Maximum number of passes after the annealing.
    n_init : int, default=10
        Starts, which share every pass; the likeliest is kept.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of what `impute` draws.

    Attributes
    ----------
    roles_ : ndarray of bool of shape (k, d)
        Which permissions each role has, the largest first.
    assignments_ : ndarray of bool of shape (n, k)
        The likeliest set of roles of each training row, where the rows were in memory.
    noise_rate_ : float
        ε, the share of cells that are noise; part of them agree with the roles by chance.
    noise_density_ : float
        r, the share of ones among them.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import MultiAssignmentClustering
    >>> rng = np.random.default_rng(0)
    >>> roles = np.repeat([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], 4, axis=1)
    >>> X = (rng.random((300, 3)) < 0.4) @ roles > 0
    >>> wrong = rng.random(X.shape) < 0.1
    >>> model = MultiAssignmentClustering(3, max_roles=3, random_state=0).fit(X ^ wrong)
    >>> sorted(model.roles_.sum(axis=1).tolist()), round(model.noise_rate_, 1)
    ([4, 8, 8], 0.2)
    """

    sparse: ClassVar[bool] = True
    signed: ClassVar[bool] = False  # surprise is in nats
    degrees: ClassVar[dict[str, int | None]] = {"threshold": 1, "impute": None, "deviations": None}

    noise_rate_: Annotated[float, Array(low=0.0, high=1.0)]
    noise_density_: Annotated[float, Array(low=0.0, high=1.0)]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "max_roles": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "temperature": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "cooling": [Interval(Real, 0.0, 1.0, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        max_roles: int = 2,
        threshold: float | None = None,
        temperature: float | str = "auto",
        cooling: float = 0.97,
        tol: float = 1e-5,
        max_iter: int = 100,
        n_init: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_roles = max_roles
        self.threshold = threshold
        self.temperature = temperature
        self.cooling = cooling
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are fewer rows than roles, or too many sets of roles."""
        super().check(shape)
        many = count(self.n_components, self.max_roles)
        if many > MOST_SETS:
            raise ValueError(
                f"max_roles={self.max_roles} of n_components={self.n_components} roles are {many} sets of roles, each "
                f"of which gets a probability in every row, and at most {MOST_SETS} are tried: take a smaller "
                "max_roles, or fewer components"
            )
        self.afford(4 * many * shape.d, f"take a smaller max_roles than {self.max_roles}, or fewer components")

    @property
    def sets(self) -> np.ndarray:
        """The roles of each set, n_components where there is none."""
        return subsets(self.n_components, self.max_roles)

    @property
    def members(self) -> np.ndarray:
        """Whether each set has each role."""
        return membership(self.n_components, self.max_roles)

    # ---------------------------------------------------------------- the contract

    def sizes(self, shape: Shape) -> Sizes:
        """Blocks in which all sets of all rows fit."""
        return Sizes(block=max(1, min(block_rows(shape), BLOCK_CELLS // len(self.sets))))

    def stages(self, shape: Shape) -> list[Stage]:
        """Annealing, then passes with Boolean roles."""
        return [Annealing(self), self]

    def start(self, before: Parts, data: Block, rng: np.random.Generator) -> Parts:
        """The roles of the annealing, made Boolean, the largest first."""
        absent = (before.absent > 0.5).astype(np.float64)
        order = np.lexsort([*absent.T[::-1], absent.sum(axis=1)])
        return before._replace(absent=absent[order], temperature=0.0)

    def local(self, U: Parts, b: Block) -> Local:
        """Probabilities of the sets, the statistics of rows weighted by them, and minus the log-likelihood."""
        x, z, log_p = self._solved(U, b)
        assigned = self.members[z.argmax(axis=1)] if b.closing else None
        return Local(assigned, gathered(z, b, x), -b.sum(log_p))

    def _solved(self, U: Parts, b: Block) -> tuple[Any, np.ndarray, np.ndarray]:
        """Cells, probabilities of the sets, and log p of each row."""
        x, seen = self.cells(b)
        return x, *shares(energies(U, grants(U, self.sets, b.x.dtype), x, seen), 1.0)

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Roles, then noise."""
        if (stats.N < 0).any() or not stats.N.sum() > 0:
            raise np.linalg.LinAlgError("a set of roles of negative weight")
        absent = improved(U, stats, self.sets, float(stats.N.sum()))
        found = noise(absent, stats, self.sets)
        if found is None or not found[0] > found[1]:
            found = U.granted, U.stray
        return Parts(absent, *found, 0.0)

    def described(self, U: Any, data: Any) -> Described:
        """Roles, and sums per set of roles."""
        return Described(Parts, Stats, Any, {"k": self.n_components, "l": len(self.sets)})

    def notes(self, U: Parts) -> list[str]:
        """Roles without a permission, and roles that are there twice."""
        roles = U.absent < 0.5
        empty = np.flatnonzero(~roles.any(axis=1))
        first = np.unique(roles, axis=0, return_index=True)[1]
        again = np.setdiff1d(np.arange(len(roles)), [*first, *empty])
        return [
            *some(empty, "have no permission: ask for fewer components"),
            *some(again, "have the permissions of another: ask for fewer components, or raise n_init"),
        ]

    def publish(self, fit: Fit) -> None:
        """Set roles_, assignments_, noise_rate_ and noise_density_."""
        super().publish(fit)
        self.roles_ = fit.U.absent < 0.5
        self.noise_rate_, self.noise_density_ = fit.U.noise_rate, fit.U.noise_density

    def findings(self) -> list[str]:
        """Permissions and rows of each role, and how much is noise."""
        if not (told := super().findings()):
            return []
        share, ones = f"{self.noise_rate_:.1%}", f"{self.noise_density_:.0%}"
        return [*told, f"{share} of the cells are noise, and {ones} of that are ones"]

    def roles_of(self, U: Parts) -> np.ndarray:
        """1 − β."""
        return np.asarray(1.0 - U.absent)

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Probabilities that the row has each role."""
        return self._solved(U, b)[1] @ self.members.astype(b.x.dtype)

    # ---------------------------------------------------------------- what may be asked

    def log_density(self, U: Parts, b: Block) -> np.ndarray:
        """log p(x) of the known cells of each row."""
        return self._solved(U, b)[2]

    def n_parameters(self) -> int:
        """Return how many numbers the data could choose: every cell of the roles, ε and r.

        Returns
        -------
        n : int
        """
        return int(self.parts.absent.size) + 2

    def _granted(self, U: Parts, b: Block) -> tuple[Any, np.ndarray]:
        """Cells, and the probability that the roles of the row grant each."""
        x, z, _ = self._solved(U, b)
        return x, z @ grants(U, self.sets, b.x.dtype)

    def conditional(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """The probability p of a 1, and √(p (1 − p))."""
        granted = self._granted(U, b)[1].astype(np.float64)
        p = U.stray + (U.granted - U.stray) * granted
        return p, np.sqrt(p * (1.0 - p))

    def drawn(self, U: Parts, b: Block) -> np.ndarray:
        """A set of roles drawn by the known cells, then the others by the roles and noise."""
        rng, z = self.given.generator(b), self._solved(U, b)[1].astype(np.float64)
        levels = z.cumsum(axis=1)
        chosen = (levels < rng.random(len(z))[:, None] * levels[:, -1:]).sum(axis=1)
        s = grants(U, self.sets, np.float64)[np.minimum(chosen, z.shape[1] - 1)]
        return np.asarray(rng.random(s.shape) < U.stray + (U.granted - U.stray) * s, dtype=np.float64)

    def surprise(self, x: np.ndarray) -> np.ndarray:
        """−log p(x_j | rest) of every known cell: p(x_j | rest) = 1 / Σ_L γ_L / p(x_j | L), by Bayes."""
        U, seen = self.parts, ~np.isnan(x)
        b = Block(np.where(seen, x, 0.0), observed=seen)
        cells, z, _ = self._solved(U, b)
        p = U.stray + (U.granted - U.stray) * grants(U, self.sets, b.x.dtype)
        told = np.where(cells > 0, z @ (1.0 / p), z @ (1.0 / (1.0 - p)))
        return np.where(seen, np.log(told), np.nan)

    def noise_probability(self, X: Any, *, contrary: bool = False) -> np.ndarray:
        """Return the probability that each cell is noise.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.
        contrary : bool, default=False
            Whether only noise is meant that differs from what the roles say: a grant that no role of the row has, or a
            permission that is missing.

        Returns
        -------
        p : ndarray of shape (n, d)
            NaN where the cell is unknown.
        """
        return np.asarray(self.rows("noise_of", X, bool(contrary)))

    def noise_of(self, U: Parts, b: Block) -> np.ndarray:
        """The same of a block; `self.given` says whether it has to be contrary. Pure."""
        x, granted = self._granted(U, b)
        x = np.asarray(x.toarray() if sp.issparse(x) else x)
        p = np.where(x > 0, 1.0 - granted, granted)  # that the roles say something else
        if not self.given:
            by_chance = np.where(x > 0, U.stray / U.granted, (1.0 - U.granted) / (1.0 - U.stray))
            p = p + (1.0 - p) * by_chance
        p = p.astype(b.x.dtype)
        return p if b.observed is None else np.where(b.observed, p, p.dtype.type(np.nan))

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[MultiAssignmentClustering, np.ndarray, Callable[[Any], None]]:
        """Three roles that share permissions, one or two of them in a row, and a fifth of the cells noise."""
        X, roles, _ = overlapping(rng)
        wrong = rng.random(X.shape) < 0.2
        X = np.where(wrong, rng.random(X.shape) < 0.5, X).astype(np.float64)

        def found(model: Any) -> None:
            assert {*map(tuple, model.roles_.tolist())} == {*map(tuple, roles.tolist())}
            assert abs(model.noise_rate_ - 0.2) < 0.06

        return cls(3, threshold=0.5, temperature=1.0, n_init=1, random_state=0), X, found
