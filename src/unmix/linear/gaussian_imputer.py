"""One Gaussian, fitted to rows with holes:  x ~ N(μ, Σ).        [x measured from the fixed origin U.shift, in U.units]

local    r̂ = x − μ, missing cells m as the observed ones o have it:  r̂_m = Σ_mo Σ_oo⁻¹ r_o
         C_i = Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om, 0 elsewhere        loss = −Σ_i log N(x_o | μ_o, Σ_oo)
stats    N = Σ_i 1       A = Σ_i (μ + r̂_i)       B = Σ_i [(μ + r̂_i)(μ + r̂_i)ᵀ + C_i]       and per column what was seen
update   μ = A / N       Σ = (B/N − μ μᵀ + ρ D) / (1 + ρ)                   D = diag(variances of the sample's columns)

This is EM (Dempster, Laird & Rubin 1977): log p(x_o) − ½ρN (log|Σ| + tr D Σ⁻¹) never falls. The second term is the
prior: ρN further rows, say, of unrelated columns, which keep Σ from being singular where there are more columns than
rows can tell apart. With nothing missing the first update is the answer.

What the parameters themselves are worth is told by the bootstrap: EM again, from the fit, on rows drawn with
replacement (`bootstrap_means_`, `bootstrap_covariances_`). Draws of missing cells take one of these each, which makes
them proper multiple imputations (Honaker & King 2010), and standard deviations count how far their conditional means
are apart. Of many rows fewer are drawn, n_b, and what the estimates deviate is made shorter by √(n_b/n).

As a residual variance of a regression over n rows on p columns is too small by (n − p − 1)/n, so is C, and once more so
where the estimate is of rows drawn from rows: then C is made larger by n/(n − p − 1), in draws by n/(n − 2(p + 1)), at
most by 2; p counts the observed cells of the row, n the rows that show a column, on average. Where n_b < n, too: C of
an estimate whose deviations are made shorter by c = √(n_b/n) loses c² p/n_b = p/n to its slopes, and c/n_b to μ.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.draws import turn
from unmix.engine.sample import centre_of
from unmix.engine.trace import Fit
from unmix.linear._normal import Normal, Parts, Stats, measured, most_rows, resampled, told
from unmix.maths import gaussian
from unmix.maths.arrays import Array
from unmix.model import Model, fit_together
from unmix.model.capabilities import Density, Drawing, Gaussians, Imputes
from unmix.model.results import AllOrNothing

USUAL_RIDGE = 0.1  # rows of the prior for each column
LEAST_RIDGE = {"float32": 1e-6, "float64": 1e-9}  # share of the rows: where columns are copies of others
MANY = 1000  # rows for each column, beside which what parameters are worth adds a thousandth to a variance, or less
CONSTANT = 1e-12  # share of a column's mean square that a variance counts as where there is none


class GaussianImputer(Density, Imputes, Model):
    """Missing cells as one Gaussian has them: their means, how sure they are, and proper draws of them.

    `transform` fills each missing cell with its conditional mean given the observed cells of its row; `impute` also
    gives standard deviations, or draws for multiple imputation. For columns that are related linearly; rows may miss
    any cells, new rows others than those of the fit.

    Parameters
    ----------
    missing_values : float, default=np.nan
        What stands for a missing cell, beside NaN, which always does.
    add_indicator : bool, default=False
        Whether `transform` adds a column of 0 and 1 for each column with missing cells in `fit`: where they were.
    keep_empty_features : bool, default=False
        Whether columns without any value in `fit` are kept, filled with 0; else `transform` drops them.
    ridge : float or "auto", default="auto"
        How many rows the prior of unrelated columns counts for; "auto" is a tenth of the number of columns, nothing
        beside many rows and a help beside few. At least a 1e-9th of the rows (1e-6th in float32), so that constant
        columns and copies do no harm.
    tol : float, default=1e-6
        The fit ends when a pass raises the log-likelihood per row by no more.
    max_iter : int, default=200
        Maximum number of passes.
    n_bootstrap : int, default=20
        How many estimates from rows drawn with replacement tell what the parameters are worth. The draws of `impute`
        take them in turn, so that for m draws m of them are best. With 0, parameters are taken for known.
    random_state : int, RandomState or None, default=None
        Seed of the bootstrap, and of draws.

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
        μ.
    covariance_ : ndarray of shape (d, d)
        Σ.
    bootstrap_means_, bootstrap_covariances_ : ndarray of shape (n_bootstrap, d) and (n_bootstrap, d, d)
        The same, estimated from rows drawn with replacement. (Not after `partial_fit`.)

    Notes
    -----
    Cells must be missing at random: whether one is may depend on the observed cells, not on its own value.

    References
    ----------
    Honaker & King (2010), What to do about missing values in time-series cross-section data, American Journal of
    Political Science 54(2).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from unmix import GaussianImputer
    >>> X = load_iris().data.copy()
    >>> X[::10, 2] = np.nan  # 1.4 in the first row
    >>> filled, deviation = GaussianImputer(random_state=0).fit(X).impute(X, return_std=True)
    >>> filled[0].round(1).tolist(), deviation[0].round(2).tolist()
    ([5.1, 3.5, 1.5, 0.2], [0.0, 0.0, 0.35, 0.0])
    """

    missing = True
    empty_columns = True
    accelerate: ClassVar[bool] = True
    name = "em"
    columns_as: ClassVar[str] = "given"

    degrees: ClassVar[dict[str, int | None]] = {
        "mean_": 1, "covariance_": 2, "bootstrap_means_": 1, "bootstrap_covariances_": 2, "transform": 1,
    }  # fmt: skip

    mean_: Annotated[np.ndarray, Array("d")]
    covariance_: Annotated[np.ndarray, Array("d d")]
    bootstrap_means_: Annotated[np.ndarray, Array("b d", maybe=True)]
    bootstrap_covariances_: Annotated[np.ndarray, Array("b d d", maybe=True)]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "missing_values": [Real],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_bootstrap": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        ridge: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        n_bootstrap: int = 20,
        random_state: Any = None,
    ) -> None:
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.ridge = ridge
        self.tol = tol
        self.max_iter = max_iter
        self.n_bootstrap = n_bootstrap
        self.random_state = random_state

    # -- the model --

    def _share(self) -> float:
        """ρ: what the prior counts for beside the rows."""
        rows = max(self.shape.rows, 1.0)
        ridge = USUAL_RIDGE * self.shape.d if self.ridge == "auto" else float(self.ridge)
        return max(ridge / rows, LEAST_RIDGE[self.shape.dtype.name])

    def masked(self, b: Block) -> Block:
        """The block, cells that hold `missing_values` taken for missing ones."""
        if np.isnan(self.missing_values):
            return b
        held = b.x != b.x.dtype.type(self.missing_values)
        seen = held if b.observed is None else held & b.observed
        return b if seen.all() else b._replace(x=np.where(seen, b.x, b.x.dtype.type(0)), observed=seen)

    def start(self, before: Any, data: Block, rng: np.random.Generator) -> Parts:
        """The covariance of the sample, missing cells at the mean, but the variances those of the observed cells."""
        data = self.masked(data)
        d, shift = data.x.shape[1], centre_of(data)
        w = np.ones(len(data.x)) if data.w is None else data.w
        seen = np.ones(data.x.shape, bool) if data.observed is None else data.observed
        count = w @ seen
        empty, per_row = count <= 0, np.where(count > 0, count, 1.0)
        y = (data.x.astype(np.float64) - shift) * seen
        variance = w @ y**2 / per_row
        square = variance + shift**2
        least = CONSTANT * np.where(square > 0, square, square.max(initial=0.0) or 1.0)
        prior = np.where(empty, 1.0, np.maximum(variance, least))
        units = np.ldexp(1.0, np.frexp(np.sqrt(prior))[1])
        y, prior = y / units, prior / units**2
        S = (y * w[:, None]).T @ y / np.sqrt(np.outer(per_row, per_row))
        S[np.diag_indices(d)] += np.where(empty, prior, 0.0)
        covariance, factor = self._with_prior(S, prior)
        rows = float(seen.mean()) * self.shape.rows
        return Parts(shift, units, np.zeros(d), covariance, factor, prior, rows, empty, w @ ~seen > 0)

    def _with_prior(self, S: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ = (S + ρD)/(1 + ρ), and its factor; a LinAlgError where that is no covariance."""
        share = self._share()
        covariance = ((S + S.T) / 2 + share * np.diag(prior)) / (1.0 + share)
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.5 * share * prior))
        L = np.linalg.cholesky(covariance / np.outer(scale, scale))
        return covariance, np.linalg.inv(L).T / scale[:, None]

    def _log_density(self, U: Parts, b: Block, log_p: np.ndarray) -> np.ndarray:
        """log p of observed cells in their own units."""
        logs = np.log(U.units.astype(np.float64))
        return log_p - (logs.sum() if b.observed is None else b.observed @ logs)

    def local(self, U: Parts, b: Block) -> Local:
        """Expected moments of rows, and minus the log-density of what was observed of them."""
        b = self.masked(b)
        if b.w is not None and not b.w.all():  # of a bootstrap's rows most are often none
            some = b.w > 0
            b = b._replace(x=b.x[some], w=b.w[some], observed=None if b.observed is None else b.observed[some])
        w, mean = np.ones(len(b.x)) if b.w is None else b.w, U.mean.astype(np.float64)
        found = gaussian.complete(measured(U, b), b.observed, mean, U.factor, w=w)
        N, A, B = float(w.sum()), w @ found.rows, found.rows.T @ b.weighted(found.rows)
        if found.spread.size:
            B += found.spread
        moved = A + N * mean
        B += np.outer(A, mean) + np.outer(mean, moved)
        seen = np.full(len(mean), N) if b.observed is None else w @ b.observed
        missing = np.zeros(len(mean)) if b.observed is None else w @ ~b.observed
        return Local(None, Stats(N, moved, B, seen, missing), -float(w @ self._log_density(U, b, found.log_p)))

    def update(self, U: Parts, stats: Stats) -> Parts:
        """The M-step, with the prior."""
        if not stats.N > 0:
            raise np.linalg.LinAlgError("no rows")
        mean = stats.A / stats.N
        covariance, factor = self._with_prior(stats.B / stats.N - np.outer(mean, mean), U.prior)
        rows = float(stats.seen.mean() / stats.N) * self.shape.rows
        return Parts(U.shift, U.units, mean, covariance, factor, U.prior, rows, stats.seen <= 0, stats.missing > 0)

    def penalty(self, U: Parts) -> float:
        """½ρN (log|Σ| + tr D Σ⁻¹)."""
        trace = float(U.prior @ np.einsum("ij,ij->i", U.factor, U.factor))
        log_det = 2.0 * float(np.log(U.units).sum() - np.log(np.diagonal(U.factor)).sum())
        return 0.5 * self._share() * self.shape.weight * (log_det + trace)

    def described(self, U: Any, data: Any) -> Described:
        """Parameters and moments."""
        return Described(Parts, Stats, holds=lambda U: bool((np.diagonal(U.factor) > 0).all()))

    def publish(self, fit: Fit) -> None:
        """Publish mean and covariance; estimates of an earlier bootstrap go."""
        for name in ("bootstrap_means_", "bootstrap_covariances_"):
            self.__dict__.pop(name, None)
        self.mean_, self.covariance_ = told(fit.U, fit.U.mean, fit.U.covariance)

    # -- what the parameters are worth --

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the Gaussian, and again to rows drawn with replacement.

        Parameters
        ----------
        X : anything with rows
            An array, a data frame, the path of a file or folder, a Dask collection, a function that returns an
            iterator of blocks. NaN means not observed.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            How many times each row counts.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight=sample_weight)
        if self.n_bootstrap and self.result_ != "stopped":
            means, covariances = self._bootstrap(X, sample_weight)
            with AllOrNothing(self):
                self.bootstrap_means_ = means.astype(self.mean_.dtype)
                self.bootstrap_covariances_ = covariances.astype(self.mean_.dtype)
        return self

    def _bootstrap(self, X: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances of EM on rows drawn with replacement, from where the fit ended, in the units of X."""
        source, w, _ = self.admit(X, sample_weight)
        U, rows = self.parts, self.shape.rows
        size = int(min(max(round(rows), 1), most_rows(len(U.mean))))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        x, counts = resampled(self, source, w, size, seed)
        ridge = self._share() * size  # the same share of the rows
        models = [GaussianImputer(ridge=ridge, tol=self.tol, max_iter=self.max_iter, n_bootstrap=0) for _ in counts]
        first = U._replace(shift=np.zeros(len(U.shift)), units=np.ones(len(U.units)))
        fit_together(models, x, counts, [seed] * len(models), first=[first] * len(models))
        c = np.sqrt(size / max(rows, size))
        means = np.stack([(1 - c) * U.mean + c * m.parts.mean for m in models])
        return told(U, means, np.stack([(1 - c) * U.covariance + c * m.parts.covariance for m in models]))

    # -- missing cells --

    def _estimate(self, i: int) -> Normal:
        """The estimate of the bootstrap number i."""
        U, C = self.parts, self.bootstrap_covariances_[i].astype(np.float64)
        mean = (self.bootstrap_means_[i].astype(np.float64) - U.shift) / U.units
        return Normal(mean, gaussian.factor_of(C / np.outer(U.units, U.units)))

    @property
    def _estimates(self) -> int:
        return len(self.bootstrap_means_) if "bootstrap_means_" in vars(self) else 0

    def doubts(self) -> list[Normal]:
        """The estimates of the bootstrap, unless there are so many rows that they agree."""
        return [] if self.shape.rows > MANY * self.shape.d else [self._estimate(i) for i in range(self._estimates)]

    def drawing(self, seed: int, number: int) -> Drawing:
        """The estimate of the bootstrap whose turn it is."""
        B = self._estimates
        return Drawing(seed, number, self._estimate(turn(seed, number, B)) if B else None)

    def _told(self, U: Parts, rows: np.ndarray) -> np.ndarray:
        """Rows in the units of X; columns that were never seen 0 where they are kept, else NaN."""
        out = rows * U.units + U.shift
        out[:, U.empty] = 0.0 if self.keep_empty_features else np.nan
        return np.asarray(out)

    def expected(self, U: Parts, b: Block) -> np.ndarray:
        """What the Gaussian expects of missing cells."""
        mean = U.mean.astype(np.float64)
        return self._told(U, gaussian.complete(measured(U, b), b.observed, mean, U.factor).rows + mean)

    def conditional(self, U: Parts, b: Block) -> tuple[np.ndarray, np.ndarray]:
        """The same, and how sure it is: its own variance, and how far the estimates of the bootstrap are from it."""
        x, mean = measured(U, b), U.mean.astype(np.float64)
        found = gaussian.complete(x, b.observed, mean, U.factor, variances=True)
        middle, variance, known = found.rows + mean, found.variances, self.given or []
        if known:
            variance *= gaussian.wider(U.rows, b.observed, 1)  # type: ignore[arg-type]
        for one in known:
            gap = gaussian.complete(x, b.observed, one.mean, one.factor).rows + one.mean - middle
            variance += gap**2 / len(known)
        deviation = np.sqrt(variance) * U.units
        deviation[:, U.empty] = np.nan
        return self._told(U, middle), deviation

    def drawn(self, U: Parts, b: Block) -> np.ndarray:
        """Missing cells drawn from the Gaussian of this draw given the observed ones."""
        one, noise = self.given.parts, self.given.generator(b).standard_normal(b.x.shape)
        if one is None:
            one = Normal(U.mean.astype(np.float64), U.factor)
        else:
            noise *= np.sqrt(gaussian.wider(U.rows, b.observed, 2))  # type: ignore[arg-type]
        found = gaussian.complete(measured(U, b), b.observed, one.mean, one.factor, noise=noise)
        return self._told(U, found.rows + one.mean)

    def log_density(self, U: Parts, b: Block) -> np.ndarray:
        """The log-density of each row's observed cells."""
        b = self.masked(b)
        found = gaussian.complete(measured(U, b), b.observed, U.mean.astype(np.float64), U.factor)
        return self._log_density(U, b, found.log_p).astype(b.x.dtype)

    def gaussians(self) -> Gaussians:
        """The Gaussian."""
        return Gaussians.one(self.mean_, self.covariance_)

    def n_parameters(self) -> int:
        """Means, variances and covariances."""
        d = len(self.mean_)
        return d + d * (d + 1) // 2

    # -- what an imputer gives --

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """The rows with their missing cells filled, and indicators of these where they are wanted."""
        kept = np.ones(len(U.empty), bool) if self.keep_empty_features else ~U.empty
        seen = self.masked(b).observed
        out = self.fill(U, b)[:, kept]
        if not self.add_indicator:
            return out
        gone = np.zeros((len(out), len(kept)), bool) if seen is None else ~seen
        return np.hstack([out, gone[:, U.holed].astype(out.dtype)])

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Rows as they were: dropped columns NaN, and with indicators missing cells, too."""
        kept = np.flatnonzero(np.ones(len(U.empty), bool) if self.keep_empty_features else ~U.empty)
        out = np.full((len(z), len(U.empty)), np.nan, z.dtype)
        out[:, kept] = z[:, : len(kept)]
        if self.add_indicator:
            holed = out[:, U.holed]
            holed[z[:, len(kept) :] > 0] = np.nan
            out[:, U.holed] = holed
        return out

    @property
    def _n_features_out(self) -> int:
        U = self.parts
        kept = len(U.empty) if self.keep_empty_features else int((~U.empty).sum())
        return kept + (int(U.holed.sum()) if self.add_indicator else 0)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` gives.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns of X, where `fit` saw none.

        Returns
        -------
        names : ndarray of str
            The columns' own, then `missingindicator_…`.
        """
        check_is_fitted(self)
        U, names = self.parts, _check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[~U.empty]
        more = [f"missingindicator_{name}" for name in names[U.holed]] if self.add_indicator else []
        return np.concatenate([kept, np.asarray(more, dtype=object)])

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[Any, np.ndarray, Callable[[Any], None]]:
        """Related columns."""
        d = 5
        loads = rng.normal(size=(2, d))
        mean, covariance = np.arange(1.0, d + 1.0), loads.T @ loads + 0.3 * np.eye(d)
        X = rng.multivariate_normal(mean, covariance, 400)

        def check(model: Any) -> None:
            np.testing.assert_allclose(model.mean_, mean, atol=0.4)
            np.testing.assert_allclose(model.covariance_, covariance, atol=0.3 * covariance.max())

        return cls(n_bootstrap=3, random_state=0), X, check
