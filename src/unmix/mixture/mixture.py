"""Mixture of any family:  p(x) = Σ_k π_k Π_f p_f(x_f | θ_fk),  f the groups of columns, each of its own family.

local    z_ik = π_k p(x_i | θ_k) / p(x_i)               loss = −Σ_i log p(x_i)             [over the observed cells]
stats    N_k = Σ_i z_ik            S_f = the family's sufficient statistics, rows weighted by z
update   π = N / ΣN                θ_f = the parameters of largest likelihood given S_f

Missing cells are left out of the likelihood; a row of which nothing was observed has z = π and loss 0.

Dempster, Laird & Rubin (1977).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from unmix.engine import tree
from unmix.engine.block import Block, Local
from unmix.engine.described import Described, Record, Scoped, fields, several
from unmix.engine.layout import Shape
from unmix.engine.stage import Stage
from unmix.engine.trace import Fit
from unmix.maths.arrays import Array
from unmix.mixture._base import DEAD_SHARE, BaseMixture
from unmix.mixture._cells import drawn_cells, expected_cells
from unmix.mixture.columns import check_columns, fill, groups, name_of, saved, shaped
from unmix.mixture.families import FAMILIES, Family
from unmix.mixture.families.base import MisfitError
from unmix.model.capabilities import PerColumn
from unmix.model.lloyd import Lloyd, halves
from unmix.model.starved import scarce, starved

DRAWS = 200  # of each component, where components are compared
DRAWN_CELLS = 1 << 22  # that these may have in all
SHARED = (
    0.1  # this share of each row of the start belongs to all components alike: a probability of zero would stay zero
)


class Parts(NamedTuple):
    """π, and the parameters of each group of columns."""

    weights: Annotated[np.ndarray, Array("k", low=0.0)]
    families: Annotated[Any, "parameters"]


class Stats(NamedTuple):
    """N, and the statistics of each group of columns."""

    N: Annotated[np.ndarray, Array("k")]
    families: Annotated[Any, "statistics"]


class Mixture(PerColumn, BaseMixture):
    """Groups in counts, categories, yes and no, or mixed columns: a mixture of any families.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    family : str, Family, or list or dict of families and columns, default="auto"
        "gaussian" (without correlations), "bernoulli", "categorical", "multinomial", "poisson", "exponential" or
        "student" for all columns; "auto" chooses by the kind of each column of a data frame or `Table`: "categorical"
        for text and categories, "bernoulli" for yes and no, "poisson" for counts, "gaussian" for other numbers, and for
        arrays; a `Family`, such as `Student(df=4)` or one of your own; or, for columns of different
        kinds, a list of pairs such as ``[("poisson", [0, 1]), ("gaussian", [2])]`` or the dict of them. Columns that
        have names may be named: ``[("poisson", ["visits", "calls"]), ("gaussian", ["age"])]``.
    tol : float, default=1e-3
        The fit ends when a pass raises the mean log-likelihood by no more.
    max_iter : int, default=100
        Maximum number of passes.
    n_init : int, default=1
        Starts; the best is kept.
    init_params : {"kmeans", "random"}, default="kmeans"
        First assignment of a sample of the rows: by k-means on columns scaled as suits the family, or at random.
    random_state : int, RandomState or None, default=None
        Seed of the starts, of `sample` and of what `impute` draws.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weights of the components, π, which add up to 1.
    parameters_ : dict of str to ndarray, or list of dict
        Parameters by name, components first; for columns of different kinds a dict for each.
    means_ : ndarray of shape (K, d)
        Mean row of each component, where the families have means.
    lower_bound_ : float
        Mean log-likelihood of the training rows at the fitted parts.
    labels_ : ndarray of int of shape (n,)
        The likeliest component of each training row, where the rows were in memory.
    converged_ : bool
        Whether the stopping rule was met.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import Mixture
    >>> rng = np.random.default_rng(0)
    >>> rates = np.array([[1.0, 9.0, 4.0], [8.0, 2.0, 4.0]])
    >>> X = rng.poisson(rates[np.arange(1000) % 2]).astype(float)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = Mixture(2, family="poisson", random_state=0).fit(X)
    >>> model.parameters_["rates"][model.means_[:, 0].argsort()].round().tolist()
    [[1.0, 9.0, 4.0], [8.0, 2.0, 4.0]]
    """

    sparse: ClassVar[bool] = True  # where the families take it
    columns_as: ClassVar[str] = "coded"
    null_by_one_part: ClassVar[bool] = True  # columns may be counts or kinds, and only the family knows
    signed: ClassVar[bool] = False  # surprise is in nats
    exempt_checks: ClassVar[dict[str, str]] = {
        f"check_estimator_sparse_{kind}": "it takes predict_proba for that of a classifier, and asks for its tags"
        for kind in ("array", "matrix")
    }

    degrees: ClassVar[dict[str, int | None]] = {"means_": 1, "lower_bound_": None}  # of Gaussians

    weights_: Annotated[np.ndarray, Array("k", low=0.0)]
    means_: Annotated[np.ndarray, Array("k d", maybe=True)]
    parameters_: Annotated[Any, "published"]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "family": [StrOptions({"auto", *FAMILIES}), Family, list, tuple, dict],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "random"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        family: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state

    def check(self, shape: Shape) -> None:
        """Raise a ValueError where there are too few rows or the families do not fit the columns."""
        super().check(shape)
        check_columns(self.family, self._groups(), shape)

    def _groups(self) -> list[tuple[Family, list[int] | None]]:
        """Each family and its columns, None for all."""
        return groups(self.family, self.shape.names, self.shape.kinds, self.shape.levels)

    def numbered(self, shape: Shape) -> Mixture:
        """An unfitted copy whose `family` gives columns by number, for rows that come without names."""
        new = clone(self)
        if not isinstance(self.family, (str, Family)) or shape.kinds is not None:
            new.set_params(family=groups(new.family, shape.names, shape.kinds, shape.levels))
        return new

    def per_column(self) -> bool:
        """Whether columns have families of their own."""
        if isinstance(self.family, str) and self.family == "auto":
            shape = self.__dict__.get("_shape")
            return shape is not None and shape.kinds is not None
        return not isinstance(self.family, (str, Family))

    def why_not(self) -> str:
        """A family that needs every cell of its columns."""
        return "" if all(f.missing for f, _ in self._groups()) else f"family={self.family!r}"

    def surprise(self, x: np.ndarray) -> np.ndarray:
        """−log Σ_k z_k(rest) p_k(x_j) of every observed cell, with p_k(x_j) = z_k(x_j) p(x_j) / π_k by Bayes."""
        out = np.full(x.shape, np.nan)
        for j in range(x.shape[1]):
            rows = np.flatnonzero(~np.isnan(x[:, j]))
            if not len(rows):
                continue
            rest, own = x[rows], np.full((len(rows), x.shape[1]), np.nan)
            rest[:, j], own[:, j] = np.nan, x[rows, j]
            agree = self.predict_proba(rest) * self.predict_proba(own) / np.maximum(self.weights_, 1e-300)
            out[rows, j] = -self.score_samples(own) - np.log(np.maximum(agree.sum(axis=1), 1e-300))
        return out

    def _views(self, b: Block) -> list[tuple[Family, Any, np.ndarray | None]]:
        """Each family with the cells of its columns, checked, in float64."""
        out = []
        for f, columns in self._groups():
            if sp.issparse(b.x) and not f.sparse:
                raise TypeError(
                    f"Sparse data was passed for X, but the family {type(f).__name__} needs dense data. "
                    "Use '.toarray()' to convert it to dense."
                )
            x = (b.x if columns is None else b.x[:, columns]).astype(np.float64, copy=False)
            seen = b.observed if b.observed is None or columns is None else b.observed[:, columns]
            seen = None if seen is None or seen.all() else seen.astype(np.float64)
            try:
                f.check(x, seen)
            except MisfitError as e:
                raise ValueError(f"{name_of(self.shape, columns, e.column)} {e.what}") from None
            out.append((f, x, seen))
        return out

    @property
    def levels_(self) -> dict[str, tuple[str, ...]]:
        """The levels of each category, in the order of its probabilities, of a fit to a data frame or `Table`."""
        return {} if self.recipe is None else {use.name: use.levels for use in self.recipe.uses if use.levels}

    # ---------------------------------------------------------------- the contract

    def stages(self, shape: Shape) -> list[Stage]:
        """A short k-means where it gives the first responsibilities."""
        return [self] if self.init_params == "random" else [Lloyd(self, self.n_components), self]

    def points(self, sample: Block) -> tuple[Any, np.ndarray]:
        """The families' features of a sample."""
        w = np.ones(sample.x.shape[0]) if sample.w is None else sample.w
        return beside([f.features(x, w, seen) for f, x, seen in self._views(sample)]), w

    def start(self, before: np.ndarray | None, data: Block, rng: np.random.Generator) -> Parts:
        """Parameters of a first assignment of a sample, a little of each row given to every component."""
        views, K, n = self._views(data), self.n_components, data.x.shape[0]
        w = np.ones(n) if data.w is None else data.w
        z = rng.dirichlet(np.ones(K), n) if before is None else np.eye(K)[before]
        z = (1.0 - SHARED) * z + SHARED / K
        N = w @ z
        return Parts(N / N.sum(), tuple(f.start(x, w, seen, z) for f, x, seen in views))

    def local(self, U: Parts, b: Block) -> Local:
        """Responsibilities, the families' statistics weighted by them, and minus the log-likelihood."""
        U, views = tree.settle(U, np.float64), self._views(b)
        z, log_p = self._responsibilities(U, views)
        zw = b.weighted(z)
        stats = tuple(f.stats(P, x, seen, zw) for P, (f, x, seen) in zip(U.families, views, strict=True))
        return Local(self._left(z.astype(b.x.dtype), b), Stats(zw.sum(axis=0), stats), -b.sum(log_p))

    def posterior(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities and log p(x) of each row."""
        z, log_p = self._responsibilities(tree.settle(U, np.float64), self._views(b))
        return z.astype(b.x.dtype), log_p.astype(b.x.dtype)

    def _responsibilities(self, U: Parts, views: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        log_z = np.log(np.maximum(U.weights / U.weights.sum(), 1e-300))
        for P, (f, x, seen) in zip(U.families, views, strict=True):
            log_z = log_z + shaped(f, "log_density", f.log_density(P, x, seen), (x.shape[0], len(U.weights)))
        log_p = logsumexp(log_z, axis=1)
        return np.exp(log_z - log_p[:, None]), log_p

    def update(self, U: Parts, stats: Stats) -> Parts:
        """Weights and the parameters of each family."""
        N = stats.N
        if (N < 0).any() or not N.sum() > 0:
            raise np.linalg.LinAlgError("a component of negative weight")
        with np.errstate(all="ignore"):  # the engine notices what is not finite
            families = zip(self._groups(), U.families, stats.families, strict=True)
            return Parts(N / N.sum(), tuple(f.update(P, S) for (f, _), P, S in families))

    def described(self, U: Any, data: Any) -> Described:
        """As the families say, each of its own columns."""
        own = []
        check_columns(self.family, self._groups(), self.shape)
        for f, columns in self._groups():
            names = {"j": self.shape.d if columns is None else len(columns)}
            public = Record(fields(f.parameters) if f.parameters is not Any else {})
            own.append([Scoped(kind, names) for kind in (f.parameters, f.statistics, public)])
        parameters, statistics, published = zip(*own, strict=True)
        kinds = {
            "parameters": several(*parameters),
            "statistics": several(*statistics),
            "published": several(*published, of=list) if self.per_column() else published[0],
        }
        return Described(Parts, Stats, Any, {"k": self.n_components, **kinds})

    def neighbour(self, fit: Fit, more: bool, rng: np.random.Generator) -> Parts | None:
        """The parts of a fit, the heaviest made two by a k-means of draws of it, or two made one."""
        draws = self._draws(fit.U, rng)
        return None if draws is None else self._cut(fit, draws, rng) if more else self._joined(fit, draws)

    def _joined(self, fit: Fit, draws: list[np.ndarray]) -> Parts:
        """Two made one: the a and b with the smallest π_b KL(p_b ‖ p_a), what b's rows lose under a."""
        U, families = fit.U, [f for f, _ in self._groups()]
        K = len(U.weights)
        log_p: Any = sum(f.log_density(P, x, None) for f, P, x in zip(families, U.families, draws, strict=True))
        mean = log_p.reshape(K, -1, K).mean(axis=1)  # of draws of b under a
        cost = U.weights[:, None] * (np.diagonal(mean)[:, None] - mean)
        np.fill_diagonal(cost, np.inf)
        b, a = np.unravel_index(cost.argmin(), cost.shape)
        keep = np.delete(np.arange(K), b)

        def join(s: np.ndarray) -> np.ndarray:
            s = s.copy()
            s[a] += s[b]
            return s[keep]

        parts = Parts(U.weights[keep], tuple(f.take(P, keep) for f, P in zip(families, U.families, strict=True)))
        return self.update(parts, tree.map(join, fit.stats))

    def _cut(self, fit: Fit, draws: list[np.ndarray], rng: np.random.Generator) -> Parts:
        """The heaviest made two by a k-means of draws of it."""
        U, families = fit.U, [f for f, _ in self._groups()]
        K, j = len(U.weights), int(U.weights.argmax())
        n = len(draws[0]) // K
        w, mine, who = np.repeat(U.weights, n), slice(j * n, j * n + n), np.append(np.arange(K), j)
        features = [f.features(x, w, None)[mine] for f, x in zip(families, draws, strict=True)]
        half = (1.0 - SHARED) * np.eye(2)[halves(beside(features), rng)] + 0.5 * SHARED
        z = np.zeros((n, K + 1))
        z[:, [j, K]] = half * fit.stats.N[j] / n

        def cut(s: np.ndarray, new: np.ndarray) -> np.ndarray:
            s = s[who]
            s[[j, K]] = new[[j, K]]
            return s

        more = tuple(f.take(P, who) for f, P in zip(families, U.families, strict=True))
        cuts = tuple(f.stats(P, x[mine], None, z) for f, P, x in zip(families, more, draws, strict=True))
        stats = tree.map(cut, fit.stats, Stats(z.sum(axis=0), cuts))
        return self.update(Parts(U.weights[who], more), stats)

    def _draws(self, U: Parts, rng: np.random.Generator) -> list[np.ndarray] | None:
        """Draws of each component, one after the other, for each family; None where a family cannot be cut or drawn."""
        K, own = len(U.weights), list(zip(self._groups(), U.families, strict=True))
        if any(f.shared is None or type(f).sample is Family.sample for (f, _), _ in own):
            return None
        n, state = max(8, min(DRAWS, DRAWN_CELLS // (K * self.shape.d))), np.random.RandomState(rng.integers(2**31))
        return [np.concatenate([f.sample(P, k, n, state) for k in range(K)]) for (f, _), P in own]

    def notes(self, U: Parts) -> list[str]:
        """Components that hold nothing, and what the families say."""
        dead = np.flatnonzero(U.weights <= DEAD_SHARE).tolist()
        out = [f"components {dead} hold no rows: try fewer components"] if dead else []
        out += starved(scarce(U.weights) - len(dead), len(U.weights), "components", self.shape.online)
        return out + [note for (f, _), P in zip(self._groups(), U.families, strict=True) for note in f.notes(P)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: a zip of arrays and JSON that executes nothing when it is read.

        Parameters
        ----------
        path : str or path
            The file; what was there before is replaced in one step.
        """
        plain = copy.copy(self)
        plain.family = saved(self.family)
        super(Mixture, plain).save(path)

    def publish(self, fit: Fit) -> None:
        """Set weights_, parameters_ and means_."""
        super().publish(fit)
        self.weights_, self.lower_bound_ = fit.U.weights, -fit.loss / fit.weight
        groups = zip(self._groups(), fit.U.families, strict=True)
        named = [{k: np.asarray(v, fit.dtype) for k, v in f.public(P).items()} for (f, _), P in groups]
        self.parameters_ = named if self.per_column() else named[0]
        self.__dict__.pop("means_", None)
        means = self._means(fit.U)
        if means is not None:
            self.means_ = means

    def _means(self, U: Parts) -> np.ndarray | None:
        own = [(f, columns, f.mean(P)) for (f, columns), P in zip(self._groups(), U.families, strict=True)]
        if any(mean is None for _, _, mean in own):
            return None
        means = np.empty((len(U.weights), self.shape.d))
        for f, columns, mean in own:
            fill(means, columns, f, "mean", mean)
        return means

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Means of the components, mixed by responsibilities."""
        means = self._means(U)
        if means is None:
            raise ValueError(
                f"family={self.family!r} has a part without means, so rows cannot be rebuilt from memberships"
            )
        return np.asarray(z @ means.astype(z.dtype))

    def conditional(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """As the families have it: means; of categories the likeliest level, and √(p (1 − p)) of its probability."""
        U, views = tree.settle(U, np.float64), self._views(b)
        return expected_cells(self._groups(), U.families, views, self._responsibilities(U, views)[0])

    def drawn(self, U: Parts, b: Block) -> np.ndarray:
        """A component drawn by the observed cells, then the missing ones by its families."""
        U, views, rng = tree.settle(U, np.float64), self._views(b), self.given.generator(b)
        return drawn_cells(self._groups(), U.families, views, self._responsibilities(U, views)[0], rng)

    def n_parameters(self) -> int:
        """Free numbers of the weights and of each family."""
        own = zip(self._groups(), self.parts.families, strict=True)
        return len(self.parts.weights) - 1 + sum(f.n_parameters(P) for (f, _), P in own)

    def draw_component(self, k: int, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Rows of component k, n of them."""
        x = np.empty((n, self.n_features_in_))
        for (f, columns), P in zip(self._groups(), self.parts.families, strict=True):
            fill(x, columns, f, "sample", f.sample(P, k, n, rng))
        return x

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[Mixture, np.ndarray, Callable[[Any], None]]:
        """Three groups of different widths around zero."""
        means = np.array([[4.0, 0.0, -4.0, 2.0], [-4.0, 3.0, 0.0, 2.0], [0.0, -4.0, 4.0, -3.0]])
        widths = np.array([[1.0, 0.5, 1.0, 1.5], [1.0, 1.0, 0.7, 0.5], [0.5, 1.5, 1.0, 1.0]])
        label = np.arange(600) % 3
        X = means[label] + widths[label] * rng.normal(size=(600, 4))

        def found(model: Any) -> None:
            order = ((model.means_[:, None] - means) ** 2).sum(axis=2).argmin(axis=0)
            assert sorted(order) == [0, 1, 2]
            np.testing.assert_allclose(model.means_[order], means, atol=0.4)
            np.testing.assert_allclose(np.sqrt(model.parameters_["variances"][order]), widths, atol=0.2)
            np.testing.assert_allclose(model.weights_, 1 / 3, atol=0.05)

        return cls(3, tol=1e-4, random_state=0), X, found


def beside(features: list[Any]) -> Any:
    """Columns side by side, dense or CSR."""
    return sp.hstack(features, format="csr") if any(map(sp.issparse, features)) else np.hstack(features)
