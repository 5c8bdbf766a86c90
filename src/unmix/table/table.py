"""A table as people have it: which of its columns a model can use, and the numbers that it gets."""

from __future__ import annotations

import copy
import difflib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from unmix.engine.config import get_config
from unmix.engine.sources.arrow import float_of
from unmix.engine.sources.base import Source
from unmix.table.errors import TableError
from unmix.table.kinds import AMOUNTS, KINDS, USABLE, Column, Seen, amounts, is_amount, kind_of, look
from unmix.table.part import rows_of
from unmix.table.recipe import Recipe, recipe

SCALES = ("auto", "none")
HELD_SHARE = 0.125  # of the memory budget, up to which all rows are held as numbers
SHOWN = 8  # names in a sentence
WHY = {
    "empty": "it is empty",
    "constant": "it holds one value only",
    "date": "it holds dates",
    "text": "it holds free text",
    "identifier": "it tells the rows apart",
}


class Table(Source):
    """A table with text, dates, categories and holes, as rows of numbers that every model takes.

    Columns are told apart (`columns`), what a model cannot use is left out and said (`notes`), numbers are made
    comparable and categories enter as categories. Models that are fitted to a table remember how: give them another
    table, data frame or file with the same columns, and it is read the same way.

    Parameters
    ----------
    data : data frame, path, Arrow table or stream, or dict of columns
        pandas, polars and whatever narwhals knows, lazy or not; a DuckDB relation, so any SQL query; the path of a CSV
        or TSV file of any dialect, Parquet, Feather, Excel, JSON lines, ARFF, `.npy`; "-" is the standard input.
    columns : list of str, optional
        The columns to use; by default all that can be. One that is named but cannot be used is an error.
    drop : list of str, optional
        Columns to leave out.
    id, label : str or list of str, optional
        Columns that name the rows, or say what they are known to be: they are no part of the fit.
    weights : str, optional
        The column that says how many times each row counts.
    kinds : dict of str to str, optional
        What columns are, where the guess is wrong: "number", "integer", "count", "boolean", "category", "date",
        "identifier" or "text", as in ``{"postcode": "category"}``. A date taken for a number is days since 1970.
    scale : {"auto", "none"}, default="auto"
        "auto": every column of the table counts alike, by the formulas of `unmix.table.recipe`; "none": numbers stay as
        they are, and of a category each level is a column of 0 and 1.
    header : bool, optional
        Whether the first line of a text file names the columns; by default its looks decide.

    Attributes
    ----------
    columns : list of Column
        Name, kind, role ("used", "id", "label", "weight", "left out"), why it is left out, what was seen of it.
    notes : list of str
        What a person should know about how the table was read, in sentences.
    recipe : Recipe
        How the columns used became numbers.
    n, d, names
        Rows; columns of numbers, and their names: a category has one for each level.

    Examples
    --------
    >>> import unmix
    >>> who, age, sex = ["ann", "bob", "cid", "dan"], [31, 45, None, 28], ["f", "m", "m", "m"]
    >>> table = unmix.Table({"who": who, "age": age, "sex": sex})
    >>> [(c.name, c.kind, c.role) for c in table.columns]
    [('who', 'identifier', 'id'), ('age', 'integer', 'used'), ('sex', 'category', 'used')]
    >>> table.names
    ['age', 'sex = m']
    >>> unmix.KMeans(2, random_state=0).fit(table).labels_.shape
    (4,)
    """

    kind = "table of kinds"

    def __init__(
        self,
        data: Any,
        *,
        columns: Iterable[str] | None = None,
        drop: Iterable[str] | None = None,
        id: str | Iterable[str] | None = None,
        label: str | Iterable[str] | None = None,
        weights: str | None = None,
        kinds: Mapping[str, str] | None = None,
        scale: str = "auto",
        header: bool | None = None,
    ) -> None:
        if scale not in SCALES:
            raise TableError(f"scale={scale!r}: give 'auto' (every column counts alike) or 'none' (as they are)")
        self.raw = raw = read(data, header=header)
        self.scale = scale
        asked = _Asked(
            self._known("columns", columns),
            self._known("drop", drop) or [],
            self._known("id", id) or [],
            self._known("label", label) or [],
            self._known("weights", weights) or [],
            {self._known("kinds", name)[0]: kind for name, kind in (kinds or {}).items()},  # type: ignore[index]
        )
        self.columns = [asked.column(seen, raw) for seen in look(raw, asked.amounts)]
        self._settle(recipe(self.columns, "standardised" if scale == "auto" else "given"))
        endless = [c for c in self.columns if c.seen.infinite and c.role == "used"]
        told = [
            f"{c.seen.infinite} infinite {said} taken for missing"
            for c in endless
            for said in [f"cell of {c.name!r} is" if c.seen.infinite == 1 else f"cells of {c.name!r} are"]
        ]
        self.notes = [*raw.notes, *told, *left_out(self.columns), *self._told()]
        if not self.recipe.uses:
            name = self.columns[0].name
            error = TableError(
                f"no column can be used: {'; '.join(left_out(self.columns))}. Say what a column holds to use it, "
                f"as kinds={{{name!r}: 'category'}} in Python or --as 'category:{name}' on the command line"
            )
            error.table = self
            raise error

    def _settle(self, how: Recipe) -> None:
        """Give rows by this recipe."""
        self.recipe, self.names, self.n = how, how.names, self.raw.n
        self.d, self.dtype = len(how.names), float_of([self.raw.schema.field(name).type for name in how.columns])
        self.in_memory, self.files = self.raw.in_memory, self.raw.files
        self._rows: np.ndarray | None = None
        self._lock = threading.Lock()

    def suited(self, how: str) -> Table:
        """The same table as rows for a model that takes columns so: "standardised", "scaled", "given" or "coded"."""
        how = "given" if self.scale == "none" and how != "coded" else how
        if how == self.recipe.how:
            return self
        out = copy.copy(self)
        out._settle(recipe(self.columns, how))
        return out

    def only(self, rows: Any) -> Table:
        """Return some rows as a table of their own: columns keep their kinds, but are left out where they do not vary.

        Parameters
        ----------
        rows : array of bool of shape (n,), or of int
            Which rows; numbers of rows rise.

        Returns
        -------
        table : Table
        """
        part, weight = self.rows(rows), next(iter(self.role("weight")), None)
        vary = {seen.name for seen in look(read(part)) if kind_of(seen) not in ("constant", "empty")}
        kinds = {use.name: use.kind for use in self.recipe.uses if use.name in vary}
        return Table(
            part, columns=list(kinds), id=self.role("id"), label=self.role("label"), weights=weight, kinds=kinds,
            scale=self.scale,
        )  # fmt: skip

    def rows(self, rows: Any) -> Any:
        """Return the cells of some rows as they were read, of the columns that are used, weigh, name or label them.

        Parameters
        ----------
        rows : array of bool of shape (n,), or of int
            Which rows; numbers of rows rise.

        Returns
        -------
        cells : pyarrow.Table
        """
        import pyarrow as pa

        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape != (self.n,):
            raise ValueError(f"rows: {rows.shape} truth values of a table of {self.n} rows; give one for each row")
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        if len(at) and not (at[0] >= 0 and at[-1] < self.n and (np.diff(at) > 0).all()):
            raise ValueError(f"rows must be numbers that rise, of 0 to {self.n - 1}; sort them with numpy.unique")
        names = [*self.recipe.columns, *self.role("weight", "id", "label")]
        runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []
        some = [self.raw.slice(int(run[0]), int(run[-1]) + 1, names) for run in runs] or [self.raw.slice(0, 0, names)]
        return pa.concat_tables(some)

    def part(self, rows: int = 5000) -> Table:
        """Return about so many rows, in pieces spread evenly, as a table of their own; this one if it has few more.

        Parameters
        ----------
        rows : int, default=5000
            How many, about.

        Returns
        -------
        table : Table
            As `only` gives it. Tables of up to twice as many rows stay whole.
        """
        at = rows_of(self.n, rows)
        return self if len(at) == self.n else self.only(at)

    @classmethod
    def _of(cls, raw: Any, columns: list[Column], how: Recipe) -> Table:
        """A table whose columns are known."""
        out = cls.__new__(cls)
        out.raw, out.columns, out.scale, out.notes = raw, columns, "none", list(raw.notes)
        out._settle(how)
        return out

    @classmethod
    def like(cls, data: Any, known: Recipe, header: bool | None = None) -> Table:
        """Another table with the columns of a recipe, as rows by that recipe.

        Parameters
        ----------
        data : Table, or what makes one
            It may have more columns, in any order.
        known : Recipe
            Of the table that a model was fitted to.
        header : bool, optional
            As for `Table`.

        Returns
        -------
        table : Table
        """
        raw = data.raw if isinstance(data, Table) else read(data, header)
        if missing := [name for name in known.columns if name not in raw.names]:
            near = difflib.get_close_matches(missing[0], raw.names, 1)
            hint = f" (is it {near[0]!r} here?)" if near else ""
            raise TableError(f"the table has no column {_listed(missing)}{hint}, which the model was fitted to")
        types = raw.schema
        used = [Column(u.name, u.kind, "used", "", Seen(u.name, types.field(u.name).type)) for u in known.uses]
        return cls._of(raw, data.columns if isinstance(data, Table) else used, known)

    @classmethod
    def every(cls, data: Any) -> Table:
        """A table all of whose columns are used as they are, text as categories; dates are an error.

        Parameters
        ----------
        data : what makes a Table
            The table.

        Returns
        -------
        table : Table
        """
        raw = read(data)
        columns = [insisted(seen) for seen in look(raw)]
        return cls._of(raw, columns, recipe(columns, "coded")._replace(whole=True))

    @property
    def weights(self) -> np.ndarray | None:
        """How many times each row counts, from the column of weights."""
        names = [c.name for c in self.columns if c.role == "weight"]
        return amounts(self.raw.slice(0, self.n, names).column(0).combine_chunks()) if names else None

    def role(self, *roles: str) -> list[str]:
        """Names of the columns of these roles.

        Parameters
        ----------
        *roles : str
            As `columns` has them: "used", "id", "label", "weight", "left out".

        Returns
        -------
        names : list of str
        """
        return [c.name for c in self.columns if c.role in roles]

    def _read(self, start: int, stop: int) -> np.ndarray:
        if self.in_memory and self.n * self.d * 8 <= HELD_SHARE * get_config().budget:
            with self._lock:
                if self._rows is None:
                    self._rows = self._encoded(0, self.n)
            return self._rows[start:stop]
        return self._encoded(start, stop)

    def _encoded(self, start: int, stop: int) -> np.ndarray:
        rows = self.recipe.encode(self.raw.slice(start, stop, self.recipe.columns))
        return rows.astype(self.dtype, copy=False)

    def _known(self, what: str, names: str | Iterable[str] | None) -> list[str] | None:
        """Names that the table has; else an error that says which are like them."""
        if names is None:
            return None
        wanted = [names] if isinstance(names, str) else list(names)
        lower = {name.lower(): name for name in reversed(self.raw.names)}
        out = [name if name in self.raw.names else lower.get(str(name).lower(), "") for name in wanted]
        for name, found in zip(wanted, out, strict=True):
            if not found:
                near = difflib.get_close_matches(str(name), self.raw.names, 3)
                hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {_listed(self.raw.names)}"
                raise TableError(f"{what}={name!r}: the table has no such column; {hint}")
        return out

    def _told(self) -> list[str]:
        """How columns were made comparable."""
        if self.scale == "none":
            return []
        used = [use for use in self.recipe.uses if not use.levels]
        out = []
        if len(self.recipe.uses) > 1 and used:
            told = "columns count alike: numbers are divided by their standard deviations"
            out.append(f"{told} (--scale none, or scale='none', leaves them)")
        if many := [use for use in self.recipe.uses if use.levels]:
            shown = ", ".join(f"{use.name} ({len(use.levels)} levels)" for use in many[:SHOWN])
            out.append(f"categories: {shown}" + f" and {len(many) - SHOWN} more" * (len(many) > SHOWN))
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rows, self._lock = None, threading.Lock()

    def __repr__(self) -> str:
        lines = [f"<Table: {self.n:,} rows, {len(self.recipe.uses)} of {len(self.columns)} columns used>"]
        return "\n".join([*lines, *(f"  {c.name}: {c.kind}, {c.why or c.role}" for c in self.columns[:30])])


def read(data: Any, header: bool | None = None) -> Any:
    """The columns of a table as they come; Arrow is imported when it is needed."""
    from unmix.table.read import read

    return read(data, header=header)


class _Asked:
    """What the user said about columns."""

    def __init__(
        self,
        columns: list[str] | None,
        drop: list[str],
        id: list[str],
        label: list[str],
        weights: list[str],
        kinds: dict[str, str],
    ) -> None:
        self.columns, self.drop, self.kinds = columns, drop, kinds
        self.amounts = [name for name, kind in kinds.items() if kind in (*AMOUNTS, "boolean")]
        self.roles = {**dict.fromkeys(id, "id"), **dict.fromkeys(label, "label"), **dict.fromkeys(weights, "weight")}
        for name, kind in kinds.items():
            if kind not in KINDS:
                raise TableError(f"kinds={{{name!r}: {kind!r}}}: a column is one of {', '.join(KINDS)}")
        if self.columns is not None and (both := [name for name in self.columns if name in [*drop, *self.roles]]):
            raise TableError(f"columns={both[0]!r} is also among drop, id, label or weights: name it once")

    def column(self, seen: Seen, raw: Any) -> Column:
        """What becomes of a column."""
        name, kind = seen.name, self.kinds.get(seen.name) or kind_of(seen)
        if name in self.roles:
            if self.roles[name] == "weight" and not is_amount(seen.type):
                raise TableError(f"weights={name!r}: the column holds {seen.first!r}; give one of numbers")
            return Column(name, kind, self.roles[name], "", seen)
        named = name in self.kinds or (self.columns is not None and name in self.columns)
        if name in self.drop or (self.columns is not None and name not in self.columns and name not in self.kinds):
            return Column(name, kind, "left out", "you left it out", seen)
        if name == raw.index and not named:
            return Column(name, "identifier", "left out", "it numbers the rows", seen)
        if kind in USABLE:
            return Column(name, self._checked(seen, kind), "used", "", seen)
        if named and name not in self.kinds:
            return insisted(seen, "columns=")
        role = "id" if kind == "identifier" else "left out"
        return Column(name, kind, role, "" if role == "id" else self._why(seen, kind), seen)

    def _why(self, seen: Seen, kind: str) -> str:
        """Why a column is left out."""
        if kind == "text" and seen.name not in self.kinds:
            return f"{seen.distinct or 'thousands of'} different texts in {seen.filled} rows"
        return WHY[kind]

    def _checked(self, seen: Seen, kind: str) -> str:
        """The kind, if the column can be seen so."""
        if kind == "category" and not seen.levels:
            raise TableError(f"column {seen.name!r} has too many different values for a category: leave it out")
        return kind


def insisted(seen: Seen, argument: str = "") -> Column:
    """A column that is used because somebody insists: its kind, if there is one to compute with."""
    kind = kind_of(seen)
    if kind == "date":
        raise TableError(
            f"{argument}{seen.name!r}: the column holds dates, such as {str(seen.low)[:10]}, and a model needs "
            "numbers or categories: leave it out, or say "
            f" kinds={{{seen.name!r}: 'number'}} in unmix.Table for days since 1970"
        )
    if kind in USABLE:
        return Column(seen.name, kind, "used", "", seen)
    if is_amount(seen.type) or not seen.filled:
        return Column(seen.name, "number", "used", "", seen)
    if kind == "constant":
        return Column(seen.name, "category", "used", "", seen)
    odd = next((level for level in seen.levels or [seen.first] if not is_number(level)), seen.first)
    raise TableError(
        f"{argument}{seen.name!r}: the column holds {seen.distinct or 'thousands of'} different texts, such as "
        f"{str(odd)[:40]!r}: leave it out, or say that they are categories by kinds={{{seen.name!r}: 'category'}} in "
        "unmix.Table, or as pandas' category"
    )


def is_number(text: Any) -> bool:
    """Whether a text is a number that came as text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def left_out(columns: list[Column]) -> list[str]:
    """Which columns are no part of a fit, in sentences: one for each reason."""
    reasons: dict[str, list[str]] = {}
    for c in columns:
        if c.role == "left out" and c.why != "you left it out":
            reasons.setdefault(c.why, []).append(c.name)
    out = []
    for why, names in reasons.items():
        text = why if len(names) == 1 else why.replace("it holds", "they hold").replace("it is", "they are")
        out.append(f"left out: {_listed(names)} ({text})")
    if ids := [c.name for c in columns if c.role == "id"]:
        out.append(f"taken for names of the rows: {_listed(ids)}")
    return out


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:SHOWN])
    return shown + f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
