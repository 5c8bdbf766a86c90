"""What may be asked of a model: it derives from the classes below for what it can do, and nothing is guessed.

    Groups         labels of rows                          `predict`, `fit_predict`
    Memberships    shares of the groups in a row           `predict_proba`
    Density        log p(x), free parameters               `score_samples`
    Samples        draws                                   `sample`
    Completes      every other token of a row              `completions`
    Imputes        a cell given the others of its row      `impute`, `surprise`
    Reconstructs   rows rebuilt from their z               `reconstruct`, `impute`
    Components     what z is made of                       `loadings`, `explained`
    Geometry       the distance or kernel of a clustering  `space`, `centers`, `distances`, `dispersion`
    Recommends     what a user would give an item         `predict`, `recommend`
    PerColumn      parameters that name single columns     `numbered`

Each class has its public methods, what a model must implement for them (the contract), and defaults. A class says that
its models may be asked; what depends on parameters is an answer of the instance, with a reason in words. `select`,
`outlier`, `validate` and the command line ask `isinstance(model, Density)`; estimators of other packages come to them
through `unmix.model.adapter`.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from unmix.engine.block import Block
    from unmix.engine.trace import Fit


class Capability:
    """Something that may be asked of a model."""


class Groups(Capability):
    """Each row belongs to one of some groups.

    Contract: `assign(U, b)`.
    """

    def assign(self, U: Any, b: Block) -> np.ndarray:
        """The labels of a block's rows, integers from 0 on. Pure."""
        raise NotImplementedError

    def predict(self: Any, X: Any) -> np.ndarray:
        """Return the label of each row.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        return np.asarray(self.rows("assign", X))

    def fit_predict(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit the model and return the rows' labels.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n,)
        """
        return np.asarray(self.fit(X, y, sample_weight=sample_weight).predict(X))

    @property
    def kept_labels(self) -> np.ndarray | None:
        """`labels_` of the rows of the fit, or None where it kept none: rows from a file, online steps."""
        return vars(self).get("labels_")

    @property
    def labels_new_rows(self) -> bool:
        """Whether rows that were not in the fit get labels too."""
        return True


class Memberships(Groups):
    """Rows belong to groups by shares, which are the rows of `transform`."""

    def predict_proba(self: Any, X: Any) -> np.ndarray:
        """Return how much each row belongs to each group.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        Z : ndarray of shape (n, K)
        """
        return np.asarray(self.rows("encode", X))


class Density(Capability):
    """A density of rows.

    Contract: `log_density(U, b)`, `n_parameters()`; `evidence(U, b)` where memberships are not 0 or 1.
    """

    def log_density(self, U: Any, b: Block) -> np.ndarray:
        """log p(x) of the observed cells of each row of a block. Pure."""
        raise NotImplementedError

    def n_parameters(self) -> int:
        """How many numbers the data could choose.

        Returns
        -------
        n : int
        """
        raise NotImplementedError

    def evidence(self, U: Any, b: Block) -> np.ndarray:
        """Per row log p(x) and, in a second column, the entropy of its memberships; without one it is 0."""
        return self.log_density(U, b)[:, None]

    def score_samples(self: Any, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        log_likelihood : ndarray of shape (n,)
        """
        return np.asarray(self.rows("log_density", X))


class Samples(Capability):
    """Rows can be drawn from the fitted model.

    Contract: `sample(n_samples)`.
    """

    null_by_one_part: ClassVar[bool] = False  # whether draws of one part are what rows without groups look like

    def sample(self, n_samples: int = 1) -> Any:
        """Return rows drawn from the model; of a mixture a pair, the rows and the component of each."""
        raise NotImplementedError


class Completes(Capability):
    """Of a row of counts, half of the tokens can be predicted from the other half.

    Contract: `completion(U, b)`.
    """

    def completion(self, U: Any, b: Block) -> np.ndarray:
        """Per row of a block the log-probability of every other token, given the rest, and how many those are. Pure."""
        raise NotImplementedError

    def completions(self: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Log-probability of every other token of each row, given the rest, and how many those are.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        log_p, tokens : ndarray of shape (n,)
        """
        log_p, tokens = self.rows("completion", X).T
        return log_p, tokens


class Gaussians(NamedTuple):
    """A mixture of K Gaussians in float64."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray  # (K, d, d), or variances (K, d)

    @classmethod
    def one(cls, mean: Any, covariance: Any) -> Gaussians:
        """A single Gaussian."""
        mean, covariance = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
        return cls(np.ones(1), mean[None], covariance[None])

    @classmethod
    def of_type(cls, covariance_type: str, weights: Any, means: Any, covariances: Any) -> Gaussians:
        """A mixture whose covariances are kept as scikit-learn keeps those of a `covariance_type`."""
        means, C = np.asarray(means, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
        if covariance_type == "tied":
            C = np.broadcast_to(C, (len(means), *C.shape))
        elif covariance_type == "spherical":
            C = np.broadcast_to(C[:, None], means.shape)
        return cls(np.asarray(weights, dtype=np.float64), means, C)


class Drawing(NamedTuple):
    """Which draw of missing cells a working copy is to make, and by which parameters, where it draws those, too."""

    seed: int
    number: int
    parts: Any = None

    def generator(self, b: Block) -> np.random.Generator:
        """The random numbers for the rows of a block."""
        from unmix.engine.draws import generator

        return generator(self.seed, "impute", self.number, b.start)


class Imputes(Capability):
    """The fitted model says what a cell should be, given the others of its row.

    Contract: `conditional(U, b)` and `drawn(U, b)`; `gaussians()` where rows are a mixture of Gaussians, else
    `surprise(x)`; `why_not()` where it depends on parameters whether the model can tell. Where they say more:
    `expected(U, b)`, the mean alone, if that takes less time; `masked(b)`, if NaN is not all that stands for a missing
    cell; `doubts()` and `drawing(seed, number)`, if the parameters are not taken for known.
    """

    signed: ClassVar[bool] = True  # whether `surprise` has a sign, and is in standard deviations; else in nats

    def gaussians(self) -> Gaussians:
        """The mixture of Gaussians that rows are drawn from."""
        raise NotImplementedError

    def why_not(self) -> str:
        """The parameter, as `name=value`, for which this instance cannot tell; "" where it can."""
        return ""

    def conditional(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """E[x | x_o] and sd[x | x_o] of the missing cells of a block; what it says of others does not matter. Pure.

        `b.observed` is never None here, and `self.given` what `doubts` gave.
        """
        raise NotImplementedError

    def expected(self, U: Any, b: Block) -> np.ndarray:
        """E[x | x_o] of the missing cells of a block, as `conditional` has it. Pure."""
        return self.conditional(U, b)[0]

    def drawn(self, U: Any, b: Block) -> np.ndarray:
        """The missing cells of a block, drawn jointly given the observed ones of their row. Pure.

        Random numbers come from `self.given.generator(b)`; `b.observed` is never None here.
        """
        raise NotImplementedError

    def masked(self, b: Block) -> Block:
        """The block with the cells that its user takes for missing. Pure."""
        return b

    def doubts(self) -> Any:
        """What `conditional` is to know of how far the parameters may be from the truth."""
        return None

    def drawing(self, seed: int, number: int) -> Drawing:
        """What one draw is made with."""
        return Drawing(seed, number)

    def impute(
        self: Any, X: Any, *, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Return the rows with their missing cells filled; observed cells stay as they are.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns; NaN is a missing cell.
        return_std : bool, default=False
            Whether to return the standard deviation of each cell given the observed ones of its row, too.
        n_draws : int, optional
            As many fillings drawn from the distribution of a row's missing cells, jointly, given its observed ones;
            by default the one of conditional means. The parameters of the model are taken for known, except by
            `GaussianImputer`, whose draws are those of multiple imputation.
        random_state : int, RandomState or None, default=None
            Seed of the draws; by default that of the model, where it has one.

        Returns
        -------
        X : ndarray of shape (n, d)
            The filled rows; with `n_draws` an array of shape (n_draws, n, d).
        std : ndarray of shape (n, d)
            With `return_std`: the standard deviations, 0 where a cell was observed.
        """
        check_is_fitted(self)
        if reason := self.why_not():
            raise ValueError(
                f"{type(self).__name__}({reason}) cannot say what a missing cell should be: take another "
                f"{reason.partition('=')[0]}"
            )
        if n_draws is None:
            return self.rows("fill_and_doubt", X, self.doubts()) if return_std else self.rows("fill", X)
        if return_std:
            raise ValueError("return_std=True with n_draws: draws show their spread themselves; ask for one of the two")
        if not isinstance(n_draws, Integral) or isinstance(n_draws, bool) or n_draws < 1:
            raise ValueError(f"n_draws={n_draws!r}: give a whole number of at least 1")
        state = self.get_params(deep=False).get("random_state") if random_state is None else random_state
        seed = int(check_random_state(state).randint(2**31 - 1))
        return np.stack([self.rows("fill_by_draw", X, self.drawing(seed, i)) for i in range(n_draws)])

    def fill(self, U: Any, b: Block) -> np.ndarray:
        """A block with its missing cells as `expected`, in its precision. Pure."""
        b = self._with_holes(b)
        return b.x if b.observed is None else filled(b, self.expected(U, b))

    def fill_and_doubt(self, U: Any, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """A block with its missing cells as expected, and their standard deviations; 0 for others. Pure."""
        b = self._with_holes(b)
        if b.observed is None:
            return b.x, np.zeros_like(b.x)
        mean, deviation = self.conditional(U, b)
        return filled(b, mean), np.where(b.observed, 0.0, deviation).astype(b.x.dtype)

    def fill_by_draw(self, U: Any, b: Block) -> np.ndarray:
        """A block with its missing cells as `drawn`. Pure."""
        b = self._with_holes(b)
        return b.x if b.observed is None else filled(b, self.drawn(U, b))

    def _with_holes(self, b: Block) -> Block:
        """A block as `masked`; cells that sparse rows do not hold are zeros, and nothing is missing."""
        refuse_sparse(b)
        return self.masked(b)

    def expected_cells(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[x_j | rest] and sd[x_j | rest] of each observed cell of dense rows, NaN for others; where it is signed."""
        from unmix.maths.gaussian import leave_one_out

        return leave_one_out(x, *self.gaussians())

    def surprise(self, x: np.ndarray) -> np.ndarray:
        """How strange each observed cell of dense rows is: (x_j − E[x_j | rest]) / sd[x_j | rest], NaN for others."""
        mean, deviation = self.expected_cells(x)
        return np.asarray((x - mean) / deviation)


def refuse_sparse(b: Block) -> None:
    """Refuse sparse rows, of which no cell is missing."""
    if sp.issparse(b.x):
        raise TypeError(
            "Sparse data was passed for X, but the cells that it does not hold are zeros, not missing: there is "
            "nothing to impute. Use '.toarray()' and NaN for what was not observed."
        )


def filled(b: Block, cells: np.ndarray) -> np.ndarray:
    """The rows of a block, these cells where they were not observed, in the precision of the rows."""
    return np.where(b.observed, b.x, cells.astype(b.x.dtype, copy=False))  # type: ignore[arg-type]


class Reconstructs(Capability):
    """zU is meant to be x itself, not a membership, a distance or a share of words."""

    def reconstruct(self: Any, X: Any) -> np.ndarray:
        """What the fitted model makes of each row: zU.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        return np.asarray(self.inverse_transform(self.transform(X)))

    def impute(
        self: Any, X: Any, *, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Return the rows with their missing cells as zU has them; observed cells stay as they are.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns; NaN is a missing cell.
        return_std, n_draws, random_state
            For models that know how far cells are from zU. This one does not: an error says which do.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        if return_std or n_draws is not None:
            asked = "return_std=True" if return_std else f"n_draws={n_draws!r}"
            raise ValueError(
                f"{asked}: {type(self).__name__} has no law of how far cells are from what it rebuilds. Take "
                "GaussianImputer, PCA, FactorAnalysis or a mixture, which have"
            )
        return self.rows("rebuild", X)

    def rebuild(self: Any, U: Any, b: Block) -> np.ndarray:
        """A block with its missing cells as zU has them. Pure."""
        refuse_sparse(b)
        return b.x if b.observed is None else filled(b, self.decode(U, self.encode(U, b)))


class Components(Capability):
    """z tells how much of each component a row has, and a component is made of columns.

    Contract: `components_`; `loadings()` where these are not what people read, `explained()` where it is known.
    """

    shares: ClassVar[bool] = False  # loadings are shares of a component, which sum to 1, rather than signed

    def loadings(self: Any) -> np.ndarray:
        """What each component is made of: the rows of `components_`, or their shares.

        Returns
        -------
        loadings : ndarray of shape (k, d)
        """
        out = np.asarray(self.components_, dtype=np.float64)
        return out / np.maximum(out.sum(axis=1, keepdims=True), 1e-300) if self.shares else out

    def explained(self) -> np.ndarray | None:
        """The share of the variance of the data that each component describes.

        Returns
        -------
        shares : ndarray of shape (k,) or None
            None where it has no meaning.
        """
        return None


class Space(NamedTuple):
    """How an instance of a clustering sees rows."""

    metric: Any = "euclidean"  # name of the distance, as scikit-learn has it, or a function; "kernel" in its space
    squared: bool = True  # the loss is a sum of squared distances
    pairwise: bool = False  # X is not rows but what each pair of rows has to do with each other
    clouds: bool = True  # clusters are clouds of the rows as they are, not of directions or in the space of a kernel
    unknown: str = ""  # why distances of rows to the clusters are not known; "" where they are


class Geometry(Capability):
    """A clustering by a distance or a kernel, whose `transform` or `centers` tell how far rows are from each cluster.

    Contract: `centers()`; the others where rows are not seen by Euclidean distance and the loss is not its squares.
    """

    @property
    def space(self) -> Space:
        """How this instance sees rows."""
        return Space()

    def centers(self) -> np.ndarray | None:
        """The fitted centres as rows, or None where centres are not rows."""
        raise NotImplementedError

    def distances(self, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Rows, and the metric in which they are as far apart as for the fitted model; or the distances of all pairs.

        The latter with the metric "precomputed".
        """
        return x, self.space.metric

    def dispersion(self, fit: Fit, x: np.ndarray, w: np.ndarray | None) -> float:
        """What a fit leaves of the distances (or squares) to the centres: its loss; x are some of its rows."""
        return float(fit.loss)


class Recommends(Capability):
    """Rows are users, columns items, and cells what the one gives the other.

    Contract: `predict(users, items)`, `recommend(user, n)`.
    """

    def predict(self, users: Any, items: Any = None) -> Any:
        """Return what is expected of users for items, one by one."""
        raise NotImplementedError

    def recommend(self, user: Any, n: int = 10) -> Any:
        """Return the items that a user is expected to like most."""
        raise NotImplementedError


class PerColumn(Capability):
    """Parameters may name single columns, by number or by name.

    Contract: `numbered(shape)`, `per_column()`.
    """

    def numbered(self, shape: Any) -> Any:
        """A clone that gives columns by number, for rows of these columns that come without names and kinds."""
        raise NotImplementedError

    def per_column(self) -> bool:
        """Whether parameters of this instance name columns, so that none may be left out of the rows."""
        raise NotImplementedError
