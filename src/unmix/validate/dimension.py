"""How many dimensions do rows have? How far distances have concentrated, and on what surface the rows lie.

*Concentration.* Of Gaussian noise in D independent columns the squared distance of two rows, in units of the variance
and per column, is

    v = 1/D Σ_j (x_j − y_j)² / σ_j²  ~  Γ(D/2, 4/D),       mean 2, variance 8/D:

the more columns, the more all rows are as far from each other. Of other rows 8/variance is the number of independent
columns whose distances would spread as much: for Gaussian rows (tr Σ)² / tr Σ², Σ the covariance.

*Intrinsic dimension.* Rows of a smooth surface of m dimensions with T_1 < T_2 < … the distances from one of them to its
neighbours, near enough for the density to be the same among them:

    two-NN                log T_2/T_1  is exponential with mean 1/m
    maximum likelihood    1/m̂ = mean over rows of  1/(k − 1) Σ_{j<k} log T_k/T_j            of k neighbours

The first is by likelihood too, the largest tenth of the ratios taken only for large. Levina & Bickel take the mean of m̂
over rows; the inverse of the mean of 1/m̂, the likelihood of all rows together, is MacKay & Ghahramani's correction.
With s_i what row i adds to the slope of the log-likelihood in log m, and i ~ j for rows of which one is a neighbour of
the other, whose ratios are not independent,

    var log m̂ = Σ_i s_i (s_i + Σ_{j ~ i} s_j) / (Σ_i information)²,

and at least 1.6 times what it would be of independent rows (less where only some rows are looked at): on even surfaces
of one to four dimensions it was 1.5 to 1.9 times that, for two neighbours and for ten.

This is chance alone. A density that changes among the neighbours, edges and curvature move m̂ as well, by shares of
about (k/n)^(1/m) near edges and (k/n)^(2/m) elsewhere: of one dimension by less than chance, of three by up to four
times as much. What another k tells of that is too little to correct by: intervals drawn out by it held the dimension of
a cube of five in two of three draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammainc, ndtri
from sklearn.neighbors import NearestNeighbors

from unmix.engine.block import Block
from unmix.engine.config import get_config
from unmix.engine.draws import generator
from unmix.engine.rows import Rules, inspect
from unmix.engine.sample import distinct
from unmix.engine.sources import as_source
from unmix.model.opening import names_of, refuse_unobserved
from unmix.validate.clusterings import seed_of

PAIRS = 200_000  # of rows whose distances are looked at
PIECE = 1 << 20  # cells of rows that are subtracted at a time
SCALES = (3, 5, 10, 20, 40)  # neighbours, from the finest to the coarsest look
LARGEST = 0.1  # share of the ratios T_2/T_1 of which only is used that they are large: outliers are among them
LINKS = 4  # neighbours of a row whose ratios T_2/T_1 are not independent of its own
SHARED = 0.6  # of the variance of an estimate, that rows add which share neighbours, at least
LEAST_ROWS = 5  # different ones, below which nothing is said
FEW_ROWS = 100
FEW_VALUES = 20  # of a column that is no continuous one
COPIES = 0.05  # share of rows beyond which rows are no longer those of continuous columns
COARSE = 0.2  # of the distance to the nearest row: least step of a rounded column that counts
SEEN = 3.0, -0.5  # of log10 n: dimensions from which on those of Gaussian rows came out more than a tenth too few
APART = 0.25  # by how much the estimates may differ


class Estimate(NamedTuple):
    """An intrinsic dimension, and the interval in which chance may have moved it.

    Examples
    --------
    >>> from unmix.validate import Estimate
    >>> print(Estimate(2.04, 1.9, 2.2))
    2.04 (1.9 to 2.2)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


class Dimension(NamedTuple):
    """What `dimension` found; printed, it is a paragraph.

    Attributes
    ----------
    n_rows, n_columns : int
        Complete rows, and columns that are not constant.
    mean, variance : float
        Of the squared distances of rows, in units of the variance and per column. The unit is that of these rows, so
        the mean is 2 but for the pairs that were drawn; what tells is the variance.
    law_mean, law_variance : float
        2 and 8 / n_columns: those of Gaussian noise in as many independent columns.
    effective_columns : float
        8 / variance: independent columns of Gaussian noise whose distances would spread as much.
    gamma_gap : float
        Largest difference between the distribution of the squared distances and the Gamma law of `effective_columns`
        columns: near 0 for Gaussian rows, more for groups or heavy tails.
    two_nn : Estimate
        Intrinsic dimension by the two nearest neighbours, with `value`, `low` and `high`.
    likelihood : Estimate
        Intrinsic dimension by maximum likelihood from `n_neighbors` neighbours.
    scales : dict
        The latter by the number of neighbours: where it falls with that number, the rows are noisy at short distances.
    n_neighbors : int
        Neighbours of `likelihood`.
    notes : tuple of str
        What was left out.
    cautions : tuple of str
        Why the intrinsic dimension is not to be trusted; empty where nothing speaks against it.

    Examples
    --------
    >>> import numpy as np
    >>> import unmix
    >>> found = unmix.dimension(np.random.default_rng(0).normal(size=(400, 5)), random_state=0)
    >>> found.n_columns, found.law_variance, found.trusted
    (5, 1.6, True)
    """

    n_rows: int
    n_columns: int
    mean: float
    variance: float
    law_mean: float
    law_variance: float
    effective_columns: float
    gamma_gap: float
    two_nn: Estimate
    likelihood: Estimate
    scales: dict[int, float]
    n_neighbors: int
    notes: tuple[str, ...]
    cautions: tuple[str, ...]

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the intrinsic dimension."""
        return not self.cautions

    def __str__(self) -> str:
        spread = 100 * np.sqrt(self.variance) / self.mean
        said = [
            f"{self.n_rows} rows of {self.n_columns} columns. Squared distances of rows, in units of the variance and "
            f"per column, have mean {self.mean:.3g} and variance {self.variance:.3g}; those of Gaussian noise in "
            f"{self.n_columns} independent columns have mean {self.law_mean:.3g} and variance {self.law_variance:.3g}. "
            f"They differ by {spread:.0f} % from pair to pair, as much as in {self.effective_columns:.3g} independent "
            "columns.",
            f"Intrinsic dimension: {self.likelihood} by the distances to {self.n_neighbors} neighbours, {self.two_nn} "
            "by those to two. The intervals are of chance alone: edges, curvature and uneven density move the "
            "estimates as well, the further the more dimensions there are.",
            *(f"{note[0].upper()}{note[1:]}." for note in self.notes),
        ]
        if self.cautions:
            said.append(f"Do not trust the intrinsic dimension: {'; '.join(self.cautions)}.")
        return " ".join(said)


class Look(NamedTuple):
    """Rising distances of some rows to their neighbours; which of these rows they are, or −1; the rows, their share."""

    distances: np.ndarray
    others: np.ndarray
    rows: Any
    share: float

    def linked(self, k: int) -> Any:
        """1 for every pair of rows of which one is among the k nearest of the other."""
        near, n = self.others[:, :k], len(self.others)
        i, j = np.nonzero(near >= 0)
        links = sp.csr_array((np.ones(len(i)), (i, near[i, j])), shape=(n, n))
        return ((links + links.T) > 0).astype(np.float64)

    @property
    def logs(self) -> np.ndarray:
        """log T_j."""
        with np.errstate(divide="ignore"):
            return np.log(self.distances)


def dimension(
    X: Any,
    *,
    n_neighbors: int = 10,
    standardize: bool = True,
    sample: int | None = 2000,
    level: float = 0.95,
    random_state: Any = None,
) -> Dimension:
    """Tell how many dimensions rows have: by how alike their distances are, and by the surface that they lie on.

    Parameters
    ----------
    X : anything with rows
        As for `fit` of the models; held in memory. Rows with missing cells are left out, and the answer says so.
    n_neighbors : int, default=10
        Neighbours for the maximum likelihood, at least 3. More are surer, and see less of a curved surface.
    standardize : bool, default=True
        Whether columns are divided by their standard deviation first. Otherwise the unit of the squared distances is
        the mean variance of the columns.
    sample : int or None, default=2000
        Rows whose neighbours are sought, among all rows; None for all.
    level : float, default=0.95
        How often the intervals hold what the estimate is on average over as many other rows of the same surface. Where
        this is curved, has edges, or is seen by too few rows for its dimension, that is not the dimension (see Notes).
    random_state : int, Generator, RandomState or None
        For the sample, and for the pairs of rows whose distances are looked at, where there are more than 200 000.

    Returns
    -------
    Dimension
        A tuple that prints as a paragraph: `mean`, `variance`, `law_mean`, `law_variance`, `effective_columns`,
        `gamma_gap`, `two_nn`, `likelihood`, `scales`, `notes`, `cautions` and `trusted`.

    Notes
    -----
    Of 200 draws of 1000 rows, so many intervals of 95 % held the dimension itself, in %:

    =====================================  ====  ====  ====  ====
    dimension                                 1     2     3     5
    =====================================  ====  ====  ====  ====
    torus (even), two neighbours             92    95    96    82
    torus, 5 neighbours                      94    92    90    12
    torus, 10 neighbours                     94    94    70     0
    Gaussian rows, bent, two neighbours      96    98    92    97
    Gaussian rows, bent, 5 neighbours        93    90    88    60
    Gaussian rows, bent, 10 neighbours       94    78    84     2
    cube (edges), bent, two neighbours       93    94    87    33
    cube, bent, 5 neighbours                 94    82    46     0
    cube, bent, 10 neighbours                94    60     2     0
    =====================================  ====  ====  ====  ====

    The estimates are not far off: with 10 neighbours on average 2.84 for the cube of 3, 4.33 and 4.75 for the cube and
    the Gaussian rows of 5, 5.48 for the torus of 5. Up to 3 the nearest whole number is right.

    References
    ----------
    Facco, d'Errico, Rodriguez & Laio (2017), Estimating the intrinsic dimension of datasets by a minimal neighborhood
    information, Scientific Reports 7.
    Levina & Bickel (2004), Maximum likelihood estimation of intrinsic dimension, NIPS 17.
    MacKay & Ghahramani (2005), Comments on "Maximum likelihood estimation of intrinsic dimension".

    Examples
    --------
    >>> import numpy as np
    >>> import unmix
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 3, size=(1000, 2))
    >>> surface = np.c_[np.sin(t), np.cos(t), t] @ rng.normal(size=(6, 20))  # two numbers behind twenty columns
    >>> found = unmix.dimension(surface, random_state=0)
    >>> round(found.likelihood.value), found.trusted
    (2, True)
    """
    _check(n_neighbors, sample, level)
    seed, source = seed_of(random_state), as_source(X)
    refuse_unobserved(source, "dimension", missing=True)
    x, notes = _complete(source)
    x, n_columns = _scaled(x, standardize, notes)
    v = _squares(x, n_columns, generator(seed, "pairs"))
    variance = float(v.var())
    effective = 8.0 / variance if variance > 0 else float("inf")
    look, copies = _look(x, n_neighbors, sample, generator(seed, "rows"), notes)
    k = min(n_neighbors, look.distances.shape[1])
    scales = {j: _likelihood(look, j, level).value for j in sorted({*SCALES, k}) if j <= look.distances.shape[1]}
    two, all_k = _two_nn(look, level), _likelihood(look, k, level)
    return Dimension(
        x.shape[0], n_columns, float(v.mean()), variance, 2.0, 8.0 / n_columns, effective, _gap(v, effective), two,
        all_k, scales, k, tuple(notes), tuple(_cautions(x.shape[0] - copies, copies, look, two, all_k)),
    )  # fmt: skip


def _check(n_neighbors: Any, sample: Any, level: Any) -> None:
    whole = isinstance(n_neighbors, (int, np.integer)) and not isinstance(n_neighbors, bool)
    if not whole or n_neighbors < 3:
        raise ValueError(f"n_neighbors={n_neighbors!r}: give a number of neighbours, at least 3")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, (int, np.integer)) or sample < 2):
        raise ValueError(f"sample={sample!r}: give a number of rows, at least 2, or None for all")
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: give a share between 0 and 1, such as 0.95")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


# ------------------------------------------------------------------------------------------- rows


def _complete(source: Any) -> tuple[Any, list[str]]:
    """The rows without missing cells, and what to say of the others."""
    x, names = source.whole(get_config().budget), names_of(source)
    rules = Rules(True, False, "dimension", None if names is None else tuple(names), power=2)
    if not inspect(x, 0, rules):
        return x, []
    full = ~np.isnan(x).any(axis=1)
    left = len(x) - int(full.sum())
    if full.sum() < LEAST_ROWS:
        raise ValueError(
            f"{left} of {len(x)} rows of X have missing cells, and distances need complete ones: impute the cells, or "
            "drop the columns that miss most"
        )
    return x[full], [f"left out: {left} of {len(x)} rows with missing cells"]


def _scaled(x: Any, standardize: bool, notes: list[str]) -> tuple[Any, int]:
    """Columns that vary, each or all divided so that their mean variance is 1; how many there are."""
    n = x.shape[0]
    if sp.issparse(x):
        mean = np.asarray(x.mean(axis=0, dtype=np.float64)).ravel()
        square = np.asarray(x.multiply(x).mean(axis=0, dtype=np.float64)).ravel()
        variances = np.maximum(square - mean**2, 0.0) * (n / max(n - 1, 1))
        varies = variances > 1e-14 * square
    else:
        varies = x.max(axis=0) > x.min(axis=0)
        variances = x.var(axis=0, dtype=np.float64) * (n / max(n - 1, 1))
    if not varies.any():
        raise ValueError(f"no column of X varies over its {n} complete rows: there are no distances to look at")
    if not varies.all():
        notes.append(f"left out: {_count(int((~varies).sum()), 'constant column')}")
        x, variances = x[:, varies], variances[varies]
    scale = 1.0 / np.sqrt(variances if standardize else np.full(len(variances), variances.mean()))
    if sp.issparse(x):
        return (x @ sp.diags_array(scale)).tocsr().astype(x.dtype), len(scale)
    middle = x.mean(axis=0, dtype=np.float64)
    return ((x - middle) * scale).astype(x.dtype), len(scale)


def _squares(x: Any, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Squared distances per column, of all pairs of rows or of some."""
    n = x.shape[0]
    if n * (n - 1) // 2 <= PAIRS:
        i, j = np.triu_indices(n, 1)
    else:
        i = rng.integers(n, size=PAIRS)
        j = (i + rng.integers(1, n, size=PAIRS)) % n
    step = max(1, PIECE // x.shape[1])
    parts = [_apart(x[i[a : a + step]], x[j[a : a + step]]) for a in range(0, len(i), step)]
    return np.concatenate(parts) / n_columns


def _apart(x: Any, y: Any) -> np.ndarray:
    """Squared distance of each row from its partner, by the differences: nothing cancels."""
    if sp.issparse(x):
        apart = (x - y).astype(np.float64)
        return np.asarray(apart.multiply(apart).sum(axis=1)).ravel()
    apart = x.astype(np.float64) - y
    return np.asarray(np.einsum("ij,ij->i", apart, apart))


def _gap(v: np.ndarray, effective: float) -> float:
    """The largest difference between the distribution of v and Γ(D/2, 4/D)."""
    if not np.isfinite(effective):
        return 1.0
    law = gammainc(effective / 2, np.sort(v) * effective / 4)
    steps = np.arange(len(v) + 1) / len(v)
    return float(max(np.max(steps[1:] - law), np.max(law - steps[:-1])))


# ------------------------------------------------------------------------------------------- neighbours


def _look(x: Any, k: int, sample: int | None, rng: np.random.Generator, notes: list[str]) -> tuple[Look, int]:
    """Neighbours of some of the different rows; how many rows are copies of others."""
    n = x.shape[0]
    x = distinct(Block(x, None, None, None)).x
    N = x.shape[0]
    if N < LEAST_ROWS:
        raise ValueError(f"X has {N} different complete rows: a dimension needs at least {LEAST_ROWS}, better hundreds")
    if n > N:
        notes.append(f"left out: {_count(n - N, 'row')} equal to others")
    rows = np.arange(N)
    if sample is not None and sample < N:
        rows = np.sort(rng.choice(N, sample, replace=False))
        notes.append(f"neighbours of {sample} rows were sought, among all")
    most = min(N - 1, max(k, *(j for j in SCALES if j <= max(SCALES[0], N // 10))))
    near = NearestNeighbors(n_neighbors=most + 1).fit(x).kneighbors(x[rows], return_distance=False)
    itself = near == rows[:, None]
    itself[~itself.any(axis=1), -1] = True  # rounding put others before the row itself
    squares = np.stack([_apart(x[rows], x[near[:, j]]) for j in range(most + 1)], axis=1)
    squares[itself] = -1.0
    order = np.argsort(squares, axis=1, kind="stable")[:, 1:]
    place = np.full(N, -1)
    place[rows] = np.arange(len(rows))
    others = place[np.take_along_axis(near, order, axis=1)]
    return Look(np.sqrt(np.take_along_axis(squares, order, axis=1)), others, x[rows], len(rows) / N), n - N


def _two_nn(look: Look, level: float) -> Estimate:
    """m from T_2/T_1; of the largest ratios is used only that they are at least the largest of the others."""
    ratio = look.logs[:, 1] - look.logs[:, 0]
    used = max(2, int(np.ceil((1 - LARGEST) * len(ratio))))
    most = np.sort(ratio)[used - 1]
    cut = np.minimum(ratio, most)
    if cut.sum() <= 0:
        return Estimate(*3 * [float("inf")])
    value = (used - 1) / cut.sum()
    return _estimate(value, (ratio <= most) - value * cut, used, look, LINKS, level)


def _likelihood(look: Look, k: int, level: float) -> Estimate:
    """m from the distances to k neighbours."""
    logs = look.logs[:, :k]
    each = (logs[:, -1:] - logs[:, :-1]).mean(axis=1)
    if each.sum() <= 0:
        return Estimate(*3 * [float("inf")])
    value = (len(each) - 1 / (k - 1)) / each.sum()
    return _estimate(value, 1 - value * each, len(each), look, k, level)


def _estimate(value: float, slopes: np.ndarray, information: float, look: Look, k: int, level: float) -> Estimate:
    """The interval about an estimate, in log m."""
    own = float(slopes @ slopes)
    together = max(own * (1 + SHARED * look.share), own + float(slopes @ (look.linked(k) @ slopes)))
    away = float(ndtri((1 + level) / 2)) * np.sqrt(together) / information
    return Estimate(float(value), float(value * np.exp(-away)), float(value * np.exp(away)))


def _cautions(n: int, copies: int, look: Look, two: Estimate, likelihood: Estimate) -> list[str]:
    """Why an intrinsic dimension is not to be trusted."""
    out = []
    if n < FEW_ROWS:
        out.append(f"{n} different rows are few, give hundreds")
    if copies > COPIES * (n + copies):
        out.append(f"{copies} of {n + copies} rows are copies of others")
    few, coarse = _discrete(look.rows, float(np.median(look.distances[:, 0])))
    if few:
        out.append(f"{few} of {look.rows.shape[1]} columns take few values, and dimensions are of continuous ones")
    if coarse:
        out.append(f"{coarse} of {look.rows.shape[1]} columns are rounded to steps as long as rows are apart")
    if likelihood.value > SEEN[0] * np.log10(n) + SEEN[1]:
        out.append(f"{n} rows are too few for so many dimensions, of which there may be more")
    if abs(np.log(two.value / likelihood.value)) > APART:
        out.append("near and far neighbours disagree, as with noise about a surface, or a strongly curved one")
    return out


def _discrete(x: Any, nearest: float) -> tuple[int, int]:
    """How many columns take few values, or one in most rows; and how many others have steps that show at a distance."""
    n = x.shape[0]
    if sp.issparse(x):
        return int((2 * np.bincount(x.indices[x.data != 0], minlength=x.shape[1]) < n).sum()), 0
    ordered = np.sort(x, axis=0)
    steps = ordered[1:] - ordered[:-1]
    half = (n + 1) // 2
    mostly = (ordered[half:] == ordered[: n - half]).any(axis=0)
    few = ((steps > 0).sum(axis=0) < min(FEW_VALUES, n - 1)) | mostly
    step = np.min(steps, axis=0, where=steps > 0, initial=np.inf)
    return int(few.sum()), int((~few & (step > COARSE * nearest)).sum())
