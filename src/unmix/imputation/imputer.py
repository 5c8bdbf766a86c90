"""Missing cells filled by a combination of models, weighed by how well they fill cells that were held out.

    f = Σ_c w_c E_c[x | x_o]           w by held-out cells, for each column its own (`stacking.py`)
    s: so that 90 % of held-out cells are within 1.645 s of f
    draws ~ p_b(x | x_o)               p_b: a density fitted to a bootstrap of the rows, another one each (`law.py`)
        or f + (m_b − m) + s (x_b − m_b) / s_b

Held-out cells also tell which density p has the right law (`choice.lawful`), and whether f is so much nearer to them
than its conditional means m that draws should lie about f: then m_b and s_b are the mean and deviation by p_b, and x_b
a draw from it. Cells of a row are drawn jointly, and draws vary by what is not known of the parameters, too, as Rubin's
rules ask. A best guess is drawn in to what was seen; draws are not, or what is computed from them is biased.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from unmix.engine.callbacks import progress_line
from unmix.engine.config import get_config
from unmix.engine.draws import generator, turn
from unmix.engine.runners import one_blas_thread
from unmix.engine.site import Documented
from unmix.imputation.candidates import (
    DENSITIES,
    MEAN,
    SHRUNK,
    Fits,
    fit,
    guesses,
    some_rows,
)
from unmix.imputation.choice import choose, reason
from unmix.imputation.columns import Columns
from unmix.imputation.draws import deviates, moments, shown_deviations, with_levels
from unmix.imputation.law import Law, fit_law, nothing
from unmix.imputation.report import Report, how_well
from unmix.imputation.saved import contradiction
from unmix.imputation.stacking import Spread, combined
from unmix.imputation.tables import Grid, Sheet, durations, is_table
from unmix.maths.arrays import Array
from unmix.model import Model
from unmix.model.files import Files
from unmix.model.results import AllOrNothing
from unmix.table.errors import TableError
from unmix.table.recipe import Recipe
from unmix.table.table import Table

FIT_ROWS = 20_000  # of which densities are made, at most


class Imputer(Files, TransformerMixin, Documented, BaseEstimator):
    """Fill the empty cells of any table, say how sure each filling is, and draw several.

    Candidates (one Gaussian, mixtures of several, both of the columns and of their normal scores, smooth regressions,
    trees) fill cells that were held out; each column is then filled by the weighted mean of candidates
    for which that error is least. Nothing has to be chosen.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        Seed of the cells that are held out, of the models and of the draws.

    Attributes
    ----------
    chosen_ : str
        "combination", or the one candidate that filled held-out cells better alone.
    scores_ : dict of str to float
        Mean squared error of held-out cells by candidate, that of the column means being 1; of the combination with
        weights that do not know the cells.
    reason_ : str
        Why so, in a sentence.
    candidates_ : list of str
        The candidates that cells are filled by.
    weights_ : ndarray of shape (columns, candidates)
        How much each counts in each column that is filled.
    names_ : list of str
        Names of these columns.
    errors_, baseline_ : ndarray of shape (columns,)
        Root mean square error of held-out cells in the units of the column, ours and that of its mean; of categories
        and of yes and no the share of wrong ones, and that of the commonest. NaN where none were held out.
    notes_ : list of str
        What a person should know: columns that are left alone, or filled with the one value that they hold.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, where they have names.

    Notes
    -----
    Arrays of floats are filled with floats. Tables (frames, files, `unmix.Table`) keep their columns and types: whole
    numbers get whole numbers, categories a level that was seen; dates, identifiers and free text are left as they are,
    and so are columns without any value (`notes_`). No observed cell is changed. No cell is filled beyond the range of
    its column in `fit`; a draw may lie outside by half of the range, but has no sign that the column never had.

    What is promised holds where cells are missing at random or by what other columns show. Where a cell is missing
    because of its own value, nobody can tell from the table.

    References
    ----------
    Rubin (1987), Multiple Imputation for Nonresponse in Surveys.
    Breiman (1996), Stacked regressions, Machine Learning 24.

    Examples
    --------
    >>> import numpy as np
    >>> import unmix
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=200)
    >>> X = np.column_stack([z, z**2 + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> X[0] = [1.5, np.nan, 0.0]
    >>> filled, std = unmix.Imputer(random_state=0).fit(X).impute(X, return_std=True)
    >>> bool(abs(filled[0, 1] - 2.25) < 0.5), bool(std[0, 1] < 0.5), float(std[0, 0])
    (True, True, 0.0)
    """

    chosen_: str
    scores_: dict[str, float]
    reason_: str
    candidates_: list[str]
    names_: list[str]
    notes_: list[str]
    weights_: Annotated[np.ndarray, Array("g c", low=0.0, high=1.0)]
    errors_: Annotated[np.ndarray, Array("g", "x")]
    baseline_: Annotated[np.ndarray, Array("g", "x")]
    _columns_: Columns
    _spread_: Spread
    _models_: dict[str, Model]
    _law_: Law
    _density_: str
    _about_: bool
    _curves_: list[Any]
    _trees_: list[Any]
    _alive_: Annotated[np.ndarray, Array("d", "b")]
    _recipe_: Recipe | None
    _constants_: dict[str, Any]

    missing: ClassVar[bool] = True  # takes rows with cells that were not observed
    exempt_checks: ClassVar[dict[str, str]] = {}
    _parameter_constraints: ClassVar[dict[str, Any]] = {"random_state": ["random_state"]}

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Imputer:
        """Choose the models by held-out cells, and fit them.

        Parameters
        ----------
        X : array, data frame, path or what else makes a `Table`
            Rows with empty cells, or without: NaN in arrays, whatever stands for nothing in tables. Held in memory.
        y : ignored
            For pipelines.

        Returns
        -------
        self
        """
        self._validate_params()
        with AllOrNothing(self), one_blas_thread(), progress_line(type(self).__name__, get_config()) as tell:
            self._fit(X, tell)
        return self

    def _fit(self, X: Any, tell: Callable[..., None]) -> None:
        """Learn the columns, then the models."""
        given = self._learn(X)
        groups = self._groups()
        x = given.x[:, self._alive_] if isinstance(given, Grid) else given.x
        fixed = [bool(use.levels) for use in self._uses() for _ in range(use.width)] or [False] * x.shape[1]
        self._columns_ = Columns.of(x, np.array(fixed))
        rows, seed = self._columns_.scaled(x), int(check_random_state(self.random_state).randint(2**31 - 1))
        choice = choose(rows, self._columns_, groups, seed, tell)
        self.chosen_, self.scores_ = choice.chosen, choice.scores
        self.candidates_, self.weights_, self._spread_ = choice.candidates, choice.weights, choice.spread
        self.reason_ = reason(choice)
        self.errors_, self.baseline_ = how_well(choice, groups, self._columns_, self._uses())
        some = some_rows(rows, groups, FIT_ROWS, generator(seed, "rows"))
        rows, self._density_, self._about_ = rows[some], choice.law, choice.about
        fits = fit(self.candidates_, rows, self._columns_, groups, seed, tell)
        self._models_, self._curves_, self._trees_ = fits
        law = self._density_
        self._law_ = fit_law(law, rows, self._columns_, groups, seed, tell) if law else nothing(rows.shape[1])

    def transform(self, X: Any) -> Any:
        """Return the table with its empty cells filled.

        Parameters
        ----------
        X : as for `fit`
            With the same columns.

        Returns
        -------
        X : array, frame or Arrow table
            A copy, of the kind, columns and types of X; of files, streams and `Table` an Arrow table.
        """
        given = self._open(X)
        return given.filled(self._means(given)[0])

    def impute(self, X: Any, *, return_std: bool = False, n_draws: int | None = None, random_state: Any = None) -> Any:
        """Return the table with its empty cells filled, how sure that is, or several fillings.

        Parameters
        ----------
        X : as for `transform`
            The table.
        return_std : bool, default=False
            Whether to return the standard deviations of cells, too; of a category √(p (1 − p)), p the probability of
            the level that was put there. 90 % of held-out cells were within 1.645 of them.
        n_draws : int, optional
            As many fillings drawn at random instead, the cells of a row together, for Rubin's rules.
        random_state : int, RandomState or None, default=None
            Seed of the draws; by default that of the imputer.

        Returns
        -------
        X : as from `transform`
            With `n_draws` a list of them, of an array an array of shape (n_draws, n, d).
        std : the same with numbers
            With `return_std`: 0 where a cell was observed; columns of a table that are not imputed are as they were.
        """
        given = self._open(X)
        if n_draws is None:
            mean, deviation = self._means(given)
            out = given.filled(mean)
            return (out, given.deviations(deviation)) if return_std else out
        if return_std:
            raise ValueError("return_std=True with n_draws: draws show their spread themselves; ask for one of the two")
        if not isinstance(n_draws, Integral) or isinstance(n_draws, bool) or n_draws < 1:
            raise ValueError(f"n_draws={n_draws!r}: give a whole number of at least 1")
        state = self.random_state if random_state is None else random_state
        seed = int(check_random_state(state).randint(2**31 - 1))
        with one_blas_thread(), progress_line(type(self).__name__, get_config()) as tell:
            draws = [given.filled(d) for d in self._draws(given, n_draws, seed, tell)]
        return np.stack(draws) if isinstance(given, Grid) else draws

    def findings(self) -> list[str]:
        """Who fills cells best."""
        return [self.reason_] if "reason_" in vars(self) else []

    def report(self) -> Report:
        """Return which candidates fill which column and how well, to be printed.

        Returns
        -------
        report : Report
        """
        check_is_fitted(self)
        uses = self._uses()
        kinds = [use.kind for use in uses] or ["number"] * len(self.names_)
        return Report(self.chosen_, self.reason_, self.scores_, self.names_, kinds, self.errors_, self.baseline_,
                      self.candidates_, self.weights_, self.notes_)  # fmt: skip

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which stay.

        Parameters
        ----------
        input_features : ignored
            For pipelines.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        if "feature_names_in_" in vars(self):
            return np.asarray(self.feature_names_in_)
        return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)

    @property
    def recipe(self) -> Recipe | None:
        """How the columns of a table became numbers, where it was fitted to one."""
        return self.__dict__.get("_recipe_")

    # ------------------------------------------------------------ cells

    def _means(self, given: Grid | Sheet) -> tuple[np.ndarray, np.ndarray]:
        """What is put into every empty cell, and its deviation, in numbers; NaN where a column is left empty."""
        y, rows = self._hollow(given)
        mean, deviation = self._guess(y, self.weights_)
        shown = self._columns_.unscaled(mean), shown_deviations(mean, deviation, self._columns_, self._uses())
        return self._spaced(given, rows, shown[0]), self._spaced(given, rows, shown[1])

    def _guess(self, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The combination's guess of cells, and its spread."""
        fits = Fits(self._models_, self._curves_, self._trees_)
        each, spread = guesses(fits, self.candidates_, y, self._columns_)
        mean, deviation = np.empty_like(y), np.empty_like(y)
        for g, columns in enumerate(self._groups()):
            for j in columns:
                mean[:, j], sigma = combined(weights[g], each[:, :, j].T, spread[:, :, j].T)
                deviation[:, j] = self._spread_.of(sigma, np.full(len(y), g))
        flat = self._columns_.low == self._columns_.high
        return mean, np.where(flat, 0.0, deviation)

    def _draws(self, given: Grid | Sheet, n_draws: int, seed: int, tell: Any) -> Any:
        """Fillings, one after the other."""
        y, rows = self._hollow(given)
        if not len(rows):
            yield from [np.full(given.x.shape, np.nan)] * n_draws
            return
        columns, law, bent = self._columns_, self._law_, bool(self._density_) and DENSITIES[self._density_].bent
        if self._about_ or not self._density_:
            mean, deviation = self._guess(y, unshrunk(self.weights_, self.candidates_))
            full = moments(law, 0, bent, y, columns)[0] if self._density_ else mean

        def expect(one: int, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
            if not self._density_:
                return np.asarray(mean[rows])
            own = moments(law, one, bent, y, columns)[0]
            return np.asarray(mean[rows] + own - full[rows]) if self._about_ else own

        for t in range(n_draws):
            tell(f"draw {t + 1} of {n_draws}")
            rng, one = generator(seed, "draw", t), 1 + turn(seed, t, len(law.weights) - 1) if self._density_ else 0
            known = with_levels(y, partial(expect, one), columns, self._uses(), rng)
            if not self._density_:
                own, spread, z = mean, deviation, rng.standard_normal(y.shape)
            else:
                own, spread, z = deviates(law, one, bent, known, columns, rng)
                if self._about_:
                    own, spread = mean + own - full, deviation
            drawn = np.where(np.isnan(known), columns.near(own + spread * z), known)
            yield self._spaced(given, rows, columns.unscaled(drawn))

    def _hollow(self, given: Grid | Sheet) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have empty cells, in standard deviations, and which they are."""
        x, missing = given.x, given.missing
        if isinstance(given, Grid):
            x, missing = x[:, self._alive_], missing[:, self._alive_]
        rows = np.flatnonzero(missing.any(axis=1))
        return self._columns_.scaled(x[rows]), rows

    def _spaced(self, given: Grid | Sheet, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values of some rows and columns at their places among all."""
        out = np.full(given.x.shape, np.nan)
        columns = np.flatnonzero(self._alive_) if isinstance(given, Grid) else np.arange(given.x.shape[1])
        out[np.ix_(rows, columns)] = values
        return out

    # ------------------------------------------------------------ columns

    def _uses(self) -> tuple[Any, ...]:
        """What is made of a table's columns; of an array nothing is."""
        return () if self._recipe_ is None else self._recipe_.uses

    def _groups(self) -> list[np.ndarray]:
        """The columns of numbers that belong together: one, or the levels of a category."""
        if self._recipe_ is None:
            return [np.array([j]) for j in range(int(self._alive_.sum()))]
        return [np.arange(a, b) for a, b in self._recipe_.spans]

    def _learn(self, X: Any) -> Grid | Sheet:
        """Look at what is to be fitted."""
        self._constants_, self._recipe_, self.notes_ = {}, None, []
        if not is_table(X):
            grid = Grid(X)
            _check_feature_names(self, X, reset=True)
            n, self.n_features_in_ = grid.x.shape
            if n == 0:
                raise ValueError(
                    "Found array with 0 sample(s) while a minimum of 1 is required: give rows to learn from"
                )
            self._alive_ = np.asarray(~grid.missing.all(axis=0))
            self.names_ = [f"x{j}" for j in np.flatnonzero(self._alive_)]
            if not self._alive_.any():
                raise ValueError("X has no observed cell: there is nothing to learn from; give rows that hold values")
            if not self._alive_.all():
                self.notes_.append(f"columns {np.flatnonzero(~self._alive_).tolist()} hold no value and are left empty")
                self._note(self.notes_[-1])
            return grid
        table = X if isinstance(X, Table) else Table(X)
        if long := durations(X, table.raw.names):  # numbers to a model, but a frame wants durations back
            table = Table(X, drop=long)
            table.notes.append(f"left out: {', '.join(map(repr, long))} (durations)")
        known = table.suited("standardised")
        self._recipe_, self.n_features_in_ = known.recipe, len(table.columns)
        self._alive_, self.names_ = np.ones(len(table.columns), bool), list(known.recipe.columns)
        self.feature_names_in_ = np.array([c.name for c in table.columns], dtype=object)
        for c in table.columns:
            if c.kind == "constant" and c.seen.missing and c.why != "you left it out":
                self._constants_[c.name] = c.seen.first
        self.notes_ += [note for note in table.notes if not note.startswith(("columns count alike", "categories:"))]
        if self._constants_:
            self.notes_.append(f"filled with the one value that they hold: {', '.join(map(repr, self._constants_))}")
        return Sheet(X, known.recipe, self._constants_)

    def _open(self, X: Any) -> Grid | Sheet:
        """Look at what is to be filled."""
        check_is_fitted(self)
        if (self._recipe_ is not None) != is_table(X):
            was, now = ("a table", "an array") if self._recipe_ is not None else ("an array", "a table")
            raise TableError(f"Imputer was fitted to {was}, and X is {now}: give the kind that it knows")
        if self._recipe_ is not None:
            sheet = Sheet(X, self._recipe_, self._constants_)
            if unknown := sheet.unknown():
                self._note(
                    f"levels of {', '.join(map(repr, unknown))} were not seen in fit: they stay, and tell nothing"
                )
            return sheet
        grid = Grid(X)
        _check_feature_names(self, X, reset=False)
        if grid.x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {grid.x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: pass the columns that it was fitted on"
            )
        return grid

    def _note(self, text: str) -> None:
        warnings.warn(text, UserWarning, stacklevel=4)

    # ------------------------------------------------------------ files

    def _contradiction(self, state: dict[str, Any], names: dict[str, Any]) -> str:
        self.__dict__.update({k: state[k] for k in ("_recipe_", "_alive_")})
        return contradiction(state, names, self._groups())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def unshrunk(weights: np.ndarray, candidates: list[str]) -> np.ndarray:
    """Weights without the candidates that draw guesses in, as a best guess should be but a draw should not."""
    own = np.where([c in (MEAN, SHRUNK) for c in candidates], 0.0, weights)
    total = own.sum(axis=1, keepdims=True)
    return np.where(total > 0.1, own / np.maximum(total, 0.1), weights)
