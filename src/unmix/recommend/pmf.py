"""Probabilistic matrix factorisation:  r_ij = μ + b_i + c_j + z_iᵀ v_j + ε,  ε ~ N(0, σ²), of observed cells.

Rows are users, and what nobody rated was not observed. With x = (z, b) and a_j = (v_j, 1) of the items, and alike
y = (v, c) and a_i = (z_i, 1) of the users:

posterior="variational": x_i ~ N(h, H), y_j ~ N(g, G) with laws estimated; the posterior by independent Gaussians q

local    q(x_i) = N(m_i, S_i)    S_i⁻¹ = H⁻¹ + σ⁻² Σ_j E[a_j a_jᵀ]    S_i⁻¹ m_i = H⁻¹h + σ⁻² Σ_j E[a_j (r_ij − μ − c_j)]
stats    A_j = Σ_i E[a_i a_iᵀ]    g_j = Σ_i E[a_i (r_ij − μ − b_i)]    e_j = Σ_i E[(r_ij − μ − b_i)²]   Σ m   Σ E[x xᵀ]
update   q(y_j) = N(n_j, T_j)    T_j⁻¹ = G⁻¹ + σ⁻² A_j    T_j⁻¹ n_j = G⁻¹g + σ⁻² g_j;   then h, H, g, G and σ²

posterior="map": the most likely z, v, b, c for a given λ: alternating least squares, S = T = 0

local    x_i = (Σ_j a_j a_jᵀ + λI)⁻¹ Σ_j a_j (r_ij − μ − c_j)
stats    A_j = Σ_i a_i a_iᵀ       g_j = Σ_i a_i (r_ij − μ − b_i)
update   y_j = (A_j + λI)⁻¹ g_j

The prediction for a user has the mean μ + b + c + zᵀv, and the variance of that under q, and of ε: σ² times a factor of
the user and one of the item, by how far their ratings are from what is expected, drawn to 1 as if by 20 ratings.

Ratings are divided by `Parts.unit`, a power of two near their deviation, so that λ does not depend on their unit.
The equations of the two ways are in `_variational.py` and `_ridge.py`, what users ask in `_asking.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.config import get_config
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.stage import Online, Sizes
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.capabilities import Components, Gaussians, Imputes
from unmix.recommend import _ridge, _variational
from unmix.recommend._asking import Asking
from unmix.recommend._parts import Parts, Stats
from unmix.recommend._sides import Entries, design_of, entries, pairs, weights_of
from unmix.recommend.ratings import Ratings, as_ratings, learnt_ids

FIRST_LOADS = 0.3  # size of the first factors of items, in units of the ratings' deviation, whatever their number
FIRST_DOUBT = 1e-2  # their variance
ENTRIES_PER_ITEM = 16  # of a block: adding up the sums of all items then costs little
SUMS = 1 << 17  # numbers for all items: least squares do without more of them, where the ratings are in memory
BLOCKS = 4  # then


class PMF(Asking, Imputes, Components, Model):
    """Factors of users and items from ratings, with how sure each prediction is: probabilistic matrix factorisation.

    Parameters
    ----------
    n_components : int, default=10
        Factors of a user. 0 leaves the biases alone: what users and items get on average.
    posterior : {"auto", "variational", "map"}, default="auto"
        "variational" averages over what users and items may be, and finds by itself how strongly to shrink them; "map"
        takes the most likely ones for a given `regularization`, in a fraction of the time. "auto" is "map" for clicks.
    regularization : float, default=6.0
        λ, for "map": how many ratings' worth of evidence says that a factor or a bias is 0.
    biases : bool, default=True
        Whether there are a mean and biases of users and items beside the factors.
    feedback : {"ratings", "clicks"}, default="ratings"
        What values are: ratings; or how often something was clicked, bought, heard, where what was not is a faint
        sign of dislike. Predictions are then preferences, about 1 for what is liked, without a standard deviation.
    confidence : float, default=1.0
        For clicks: how much more one click counts than none.
    keep_ratings : bool, default=True
        Whether the fitted model, and its file, hold the ratings, by which `predict` and `recommend` know the users of
        the fit. Ratings that were not in memory are not kept.
    max_iter : int, default=200
        Maximum number of passes over the ratings.
    tol : float, default=1e-5
        The fit has converged when a pass improves the objective by no more than tol times the first one.
    n_init : int, default=1
        Number of starts; all share each pass, and the best is kept.
    total_samples : float, optional
        For `partial_fit`: how many users there are in all; by default those seen so far.
    random_state : int, RandomState or None, default=None
        Seed of the first factors.
    verbose : int, default=0
        Above 0, print a line for each pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components + biases, n_items)
        The factors v of the items, one in each row; with biases a row of ones below, by which `transform` has the
        bias of a user as its last column.
    mean_ : float
        μ, of the ratings.
    item_biases_ : ndarray of shape (n_items,)
        c.
    noise_variance_ : float
        σ².
    n_components_ : int
        Factors.
    user_ids_, item_ids_ : ndarray or None
        What users and items are called; None where they have numbers alone, from 0 on.
    ratings_ : Ratings or None
        The ratings of the fit, where they are kept.

    References
    ----------
    Salakhutdinov & Mnih (2008), Probabilistic matrix factorization. Lim & Teh (2007), Variational Bayesian approach to
    movie rating prediction. Hu, Koren & Volinsky (2008), Collaborative filtering for implicit feedback datasets.

    Examples
    --------
    >>> import pandas as pd
    >>> from unmix import PMF
    >>> ratings = pd.DataFrame({
    ...     "user": ["ann", "ann", "bob", "bob", "cid", "cid"],
    ...     "item": ["tea", "rum", "tea", "ale", "rum", "ale"],
    ...     "rating": [5.0, 1.0, 4.0, 2.0, 3.0, 3.0],
    ... })
    >>> model = PMF(1, random_state=0).fit(ratings)
    >>> mean, deviation = model.predict(["ann", "cid"], ["ale", "tea"], return_std=True)
    >>> mean.shape, bool((deviation > 0).all())
    ((2,), True)
    >>> [liked.item for liked in model.recommend("cid", 1)]
    ['tea']
    """

    sparse: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    absent: ClassVar[str] = "unobserved"
    empty_columns: ClassVar[bool] = True
    columns_as: ClassVar[str] = "given"
    exempt_checks: ClassVar[dict[str, str]] = {
        "check_estimator_sparse_array": "`predict` gives of each row the ratings of all items",
        "check_estimator_sparse_matrix": "`predict` gives of each row the ratings of all items",
    }
    collect: bool | str = "memory"
    double: ClassVar[bool] = True
    exempt: ClassVar[dict[str, str]] = {
        "scale of weights": "twice the weight is twice the evidence beside the laws of users and items",
    }
    weighed_against: ClassVar[str] = "the laws of users and items"
    degrees: ClassVar[dict[str, int | None]] = {
        "transform": 1,
        "mean_": 1,
        "item_biases_": 1,
        "noise_variance_": 2,
    }

    components_: Annotated[np.ndarray, Array("p d")]
    mean_: float
    item_biases_: Annotated[np.ndarray, Array("d")]
    noise_variance_: Annotated[float, Array(low=0.0)]
    n_components_: Annotated[int, Array(kind="i", low=0)]
    user_ids_: Any
    item_ids_: Any
    ratings_: Ratings | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 0, None, closed="left")],
        "posterior": [StrOptions({"auto", "variational", "map"})],
        "regularization": [Interval(Real, 0, None, closed="left")],
        "biases": ["boolean"],
        "feedback": [StrOptions({"ratings", "clicks"})],
        "confidence": [Interval(Real, 0, None, closed="neither")],
        "keep_ratings": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "total_samples": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        posterior: str = "auto",
        regularization: float = 6.0,
        biases: bool = True,
        feedback: str = "ratings",
        confidence: float = 1.0,
        keep_ratings: bool = True,
        max_iter: int = 200,
        tol: float = 1e-5,
        n_init: int = 1,
        total_samples: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.posterior = posterior
        self.regularization = regularization
        self.biases = biases
        self.feedback = feedback
        self.confidence = confidence
        self.keep_ratings = keep_ratings
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.total_samples = total_samples
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------- what the hyper-parameters mean

    @property
    def _clicks(self) -> bool:
        return self.feedback == "clicks"

    @property
    def _biased(self) -> bool:
        """Whether there are biases: preferences have none."""
        return self.biases and not self._clicks

    @property
    def _averages(self) -> bool:
        """Whether the posterior is averaged over."""
        return self.posterior == "variational" or (self.posterior == "auto" and not self._clicks)

    @property
    def _alpha(self) -> float:
        return float(self.confidence) if self._clicks else 0.0

    @property
    def _size(self) -> int:
        """Numbers of a user, or an item."""
        return int(self.n_components) + self._biased

    def check(self, shape: Shape) -> None:
        """Refuse combinations of parameters that make no sense, and sums that do not fit."""
        if self._clicks and self.posterior == "variational":
            raise ValueError(
                "posterior='variational' is for ratings, of which most cells say nothing; with feedback='clicks' every "
                "cell does: take posterior='map'"
            )
        if self._size == 0:
            raise ValueError(
                f"n_components=0 and biases={self.biases!r} leave nothing to estimate: take n_components=1"
            )
        p = self._size
        sums, budget = 8 * shape.d * (p * (p + 1) // 2 + p + 2), get_config().budget
        if 3 * sums > budget:
            swap = " Or swap users and items, of whom there are fewer." if shape.n < shape.d else ""
            raise ValueError(
                f"n_components={self.n_components} for n_features={shape.d} items needs sums of {sums / 1e9:.1f} GB, "
                f"three times, and the memory budget is {budget / 1e9:.1f} GB: take fewer components, leave out items "
                f"with few ratings, or raise memory_budget in unmix.config.{swap}"
            )

    def stages(self, shape: Shape) -> list[Any]:
        """Passes; or rounds of least squares where ratings are in memory and sums for the items would be large."""
        if not self._held(shape):
            return [self]
        return [_ridge.Alternating(self.first, self._how(shape.dtype), float(self.tol), self.described(None, None))]

    def _held(self, shape: Shape) -> bool:
        """Whether users and items are solved from the ratings, without sums."""
        p = self._size
        return shape.in_memory and not (shape.online or self._averages) and shape.d * p * (p + 1) // 2 > SUMS

    def _how(self, dtype: Any) -> _ridge.How:
        """What least squares minimise, on rows of this precision."""
        kind = np.float32 if dtype == np.float32 else np.float64
        return _ridge.How(self._biased, float(self.regularization), self._alpha, kind)

    def sizes(self, shape: Shape) -> Sizes:
        """Blocks of sparse rows so large that a block holds some ratings of each item."""
        if not (shape.sparse and shape.nbytes):
            return Sizes()
        if self._held(shape):  # one pass over blocks is made, the last
            return Sizes(max(256, -(-shape.n // BLOCKS)))
        ratings = max(1.0, shape.nbytes / (shape.dtype.itemsize + 4) / shape.n)
        return Sizes(int(np.clip(ENTRIES_PER_ITEM * shape.d / ratings, 256, max(256, -(-shape.n // 8)))))

    def goal(self, U: Parts, first: float) -> float:
        """A share of the first objective."""
        return float(self.tol * abs(first))

    def online(self) -> Online:
        """`total_samples` is how many users the statistics stand for."""
        return Online(total=self.total_samples)

    def rows_of(self, X: Any, reset: bool) -> Any:
        """A frame of ratings as rows; what users and items are called is kept."""
        known = None if reset else vars(self).get("item_ids_")
        X = as_ratings(X, known)
        if reset:
            self.__dict__["user_ids_"], self.__dict__["item_ids_"] = learnt_ids(X)
        return X

    # ---------------------------------------------------------------- start, local, update

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """Small random factors; mean and unit of the ratings."""
        rows = entries(data)
        return self.first(rows, weights_of(data, data.x.shape[0]), rng)

    def first(self, rows: Entries, of_rows: np.ndarray, rng: np.random.Generator) -> Parts:
        """First parts, from ratings and the weights of their users."""
        d, p, w = rows.d, self._size, np.repeat(of_rows, rows.lengths)
        mean, unit, variance = scale_of(rows.values.astype(np.float64, copy=False), w, self._biased)
        if self._clicks:
            if len(rows.values) and rows.values.min() < 0:
                raise ValueError(f"a number of clicks is {rows.values.min():g}: give counts of at least 0")
            mean, unit, variance = 0.0, 1.0, 1.0
        items = np.zeros((d, p))
        items[:, : p - self._biased] = rng.standard_normal((d, p - self._biased))
        items[:, : p - self._biased] *= FIRST_LOADS / max(1, int(self.n_components)) ** 0.5
        law = np.zeros(p), np.eye(p)
        U = Parts(items, np.zeros((d, 0)), *law, *law, variance, np.ones(d), mean, unit, 0.0)
        if not self._averages:
            return U._replace(cost=float(self.regularization) * float((items**2).sum()))
        a, b, _ = pairs(p)
        doubt = np.tile(np.where(a == b, FIRST_DOUBT, 0.0), (d, 1))
        cost = _variational.items_cost(
            items, doubt, law, d * p * float(np.log(FIRST_DOUBT))
        ) + 2 * _variational.law_cost(law[1])
        return U._replace(doubt=doubt, cost=cost)

    def local(self, U: Parts, b: Block) -> Local:
        """The users of a block; in the closing pass their ratings are the z that is kept."""
        if self._averages:
            out = _variational.local(U, b, self._biased)
        else:
            out = _ridge.local(U, b, self._how(b.x.dtype))
        return out._replace(z=rated(b)) if b.closing and self.keep_ratings else out

    def update(self, U: Parts, s: Stats) -> Parts:
        """The items."""
        if self._averages:
            return _variational.update(U, s)
        return _ridge.update(U, s, self._how(np.float64))

    def penalty(self, U: Parts) -> float:
        """What the items cost."""
        return float(U.cost)

    def described(self, U: Any, data: Any) -> Described:
        """Sizes follow from the number of components."""
        p = self._size
        q = p * (p + 1) // 2
        sizes = {"p": p, "q": q, "l": q if self._averages else 0}
        return Described(Parts, Stats, Any, sizes, _variational.are_laws if self._averages else None)

    # ---------------------------------------------------------------- what comes out

    def publish(self, fit: Fit) -> None:
        """Factors, biases and noise in the units of the ratings; the ratings where they are kept."""
        self.show(fit.U)
        self.ratings_ = None if fit.z is None else Ratings.of(fit.z)

    def show(self, U: Parts) -> None:
        """Set what parts are called by users."""
        design, offset = design_of(U.items, self._biased)
        unit = float(U.unit)
        self.components_ = np.ascontiguousarray(design.T)
        self.mean_, self.item_biases_ = float(U.mean) * unit, offset * unit
        self.noise_variance_ = float(U.noise) * unit**2
        self.n_components_ = int(self.n_components)
        self.__dict__.setdefault("user_ids_", None)
        if vars(self).get("item_ids_") is None:
            self.__dict__["item_ids_"] = vars(self).get("feature_names_in_")

    def found(self, U: Parts, rows: Entries) -> _variational.Found:
        """What is known of users by their ratings."""
        if not self._averages:
            U = _ridge.with_laws(U, float(self.regularization))
        return _variational.posterior(U, rows, self._biased)

    def laws(self) -> Parts:
        """The parts, with the law of users."""
        U: Parts = self.parts
        return U if self._averages else _ridge.with_laws(U, float(self.regularization))

    def with_items(self, U: Parts, x: Any, d: int) -> Parts:
        """The parts with the items of x after the first d, whose users are known by their ratings of those."""
        if x.shape[1] == d:
            return U
        known, new = (entries(Block(sp.csr_array(part), absent=True)) for part in (x[:, :d], x[:, d:]))
        if self._averages:
            return _variational.with_items(U, known, new, self._biased)
        return _ridge.with_items(U, known, new, self._how(np.float64))

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """Factors of each user, and the bias as the last."""
        if self._averages:
            mean = self.found(U, entries(b)).mean
        else:
            how = self._how(b.x.dtype)
            mean = _ridge.users(U, entries(b, how.dtype), how)[0]
        return (mean * float(U.unit)).astype(b.x.dtype)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """What users would give every item."""
        design, offset = design_of(U.items, self._biased)
        return (z @ design.T + float(U.unit) * (float(U.mean) + offset)).astype(z.dtype)

    # ---------------------------------------------------------------- missing cells

    def why_not(self) -> str:
        """Preferences have no law of cells."""
        return f"feedback={self.feedback!r}" if self._clicks else ""

    def conditional(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every rating of the users of a block."""
        mean, variance = _variational.table(U, self.found(U, entries(b)), self._biased)
        return float(U.unit) * mean, float(U.unit) * np.sqrt(variance)

    def drawn(self, U: Parts, b: Block) -> np.ndarray:
        """Ratings drawn with one draw of each user, so that those of a user vary together."""
        rng, found = self.given.generator(b), self.found(U, entries(b))
        return float(U.unit) * _variational.draws(U, found, self._biased, rng)

    def gaussians(self) -> Gaussians:
        """The law of a new user's ratings, at the means of the items."""
        U = self.laws()
        design, offset = design_of(U.items, self._biased)
        mean = float(U.mean) + offset + design @ U.user_mean
        covariance = design @ U.user_covariance @ design.T + np.diag(float(U.noise) * U.item_noise)
        return Gaussians.one(mean * float(U.unit), covariance * float(U.unit) ** 2)

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[PMF, np.ndarray, Callable[[Any], None]]:
        """Users with a bias and two tastes rate thirty items."""
        V = rng.standard_normal((2, 30))
        X = 3.0 + rng.standard_normal((240, 2)) @ V + 0.7 * rng.standard_normal((240, 1))
        X += 0.5 * rng.standard_normal(30) + 0.4 * rng.standard_normal(X.shape)

        def check(model: Any) -> None:
            Q = np.linalg.qr(model.components_.astype(np.float64).T)[0].T
            left = np.linalg.norm(V - V @ Q.T @ Q) / np.linalg.norm(V)
            assert left < 0.15, f"{left:.0%} of the planted tastes are not found"
            np.testing.assert_allclose(np.sqrt(model.noise_variance_), 0.4, rtol=0.15)

        return cls(2, total_samples=240, random_state=0), X, check


def scale_of(values: np.ndarray, w: np.ndarray, centred: bool) -> tuple[float, float, float]:
    """Mean (in units), unit and variance (in squared units) of ratings; the unit is a power of two."""
    if not len(values) or not w.sum() > 0:
        return 0.0, 1.0, 1.0
    top = float(np.abs(values).max()) or 1.0
    top = 2.0 ** float(np.floor(np.log2(top)))  # so that no square leaves the range
    values = values / top
    mean = float(np.average(values, weights=w)) if centred else 0.0
    variance = float(np.average((values - mean) ** 2, weights=w))
    if not variance > 1e-24:
        variance = 1.0
    unit = 2.0 ** float(np.round(0.5 * np.log2(variance)))
    return mean / unit, unit * top, variance / unit**2


def rated(b: Block) -> Any:
    """The ratings of a block as CSR rows."""
    if sp.issparse(b.x):
        return b.x
    rows = entries(b)
    return sp.csr_array((rows.values.astype(b.x.dtype), rows.columns, rows.ends), shape=b.x.shape)
