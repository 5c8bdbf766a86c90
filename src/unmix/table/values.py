"""Columns of text as numbers, dates, truth values or text: told from a sample, converted piece by piece.

A piece of a column never fails to convert: what does not fit the column's kind becomes null and is counted as a word,
so that the end of the file decides whether a few words stand for missing values or the column is text.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-nan", "-NaN", "null", "NULL", "Null", "None", "<NA>", "#N/A"),
    *("#NA", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),
)
ODD = ("?", "-", "--", "---", ".", "..", "missing", "Missing", "MISSING", "n.a.", "N.A.", "n.a")
WORDS_SHARE, WORDS_KINDS = 0.1, 10  # words in a column of numbers: at most this share of it, and so many different ones
EXACT = 2.0**53  # whole numbers up to here are exact in float64

PLAIN = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
WIDE = r"^[+-]?\d{1,18}$|^[+-]?[1-8]\d{18}$"  # fits int64
MONEY = r"(?:US\$|[$€£¥₹]|USD|EUR|GBP|CHF)"
GAP = "[ \u00a0\u2009\u202f'’]"


def numeral(point: str, mark: str) -> str:
    """Pattern of a number as people write it: signs, thousands in groups of three, currency, per cent."""
    p, m = re.escape(point), re.escape(mark)
    whole = rf"(?:[1-9]\d{{0,2}}(?:{m}\d{{3}})+|[1-9]\d{{0,2}}(?:{GAP}\d{{3}})+|\d+)"
    before = rf"(?:[+−-]?{MONEY}?{GAP}?|{MONEY}?{GAP}?[+−-])"  # one sign: "+-3" is no number
    return rf"^{before}(?:{whole}(?:{p}\d*)?|{p}\d+)(?:[eE][+-]?\d+)?{GAP}?(?:{MONEY}|%|‰)?$"


NUMERAL = {".": numeral(".", ","), ",": numeral(",", ".")}
MOMENTS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
ISO = r"^\d{4}-\d\d-\d\d(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?)?"
ZONE = r"(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$"
DATE = (
    r"^(?:\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)"
    r"|\d{1,2}[ -][A-Za-z]{3,9}[ -](?:\d{4}|\d\d)|[A-Za-z]{3,9} \d{1,2}, ?\d{4})(?:[T ]\d.*)?$"
)


@dataclass(frozen=True)
class Plan:
    """How the text of a column becomes values."""

    kind: str  # "empty", "truth", "number", "wide" (int64, beyond 2^53), "date", "text"
    point: str = "."  # decimal mark
    whole: bool = False  # every number of the sample was written without a decimal mark
    formats: tuple[str, ...] = ()  # of dates: "iso", "zone" or one for strptime
    other: tuple[str, ...] = ()  # the order of day and month to try next, where the sample fits both
    odd: tuple[str, ...] = ()  # what stands for missing beside the usual words
    trim: bool = False

    @property
    def type(self) -> pa.DataType:
        """The type that pieces are converted to."""
        if self.kind == "date":
            return pa.timestamp("us", "UTC" if self.formats == ("zone",) else None)
        kinds = {"empty": pa.null(), "truth": pa.bool_(), "number": pa.float64(), "wide": pa.int64()}
        return kinds.get(self.kind, pa.string())


@dataclass
class Tally:
    """What the pieces of a column have held so far."""

    values: int = 0
    words: Counter[str] = field(default_factory=Counter)  # what did not convert, and how often
    odd: Counter[str] = field(default_factory=Counter)  # what was taken for missing beside the usual words
    strange: int = 0  # how many did not convert in all
    whole: bool = True
    dressed: bool = False  # currency, per cent or thousands were taken off

    def few(self) -> bool:
        """Whether the words are so few that they stand for missing values."""
        return len(self.words) <= WORDS_KINDS and self.strange <= WORDS_SHARE * (self.values + self.strange)


def convert(cells: Any, plan: Plan, tally: Tally) -> Any:
    """A piece of a column, as its plan says; what does not convert is null, and counted."""
    if plan.trim:
        cells = trimmed(cells)
    if plan.kind == "text":
        return without(cells, plan.odd, tally) if plan.odd else cells
    if plan.kind == "number":
        values = numbers(cells, plan.point, tally)
        if plan.whole:
            values = refuse_codes(cells, values)
            tally.whole = tally.whole and are_whole(values)
    elif plan.kind == "truth":
        values = attempt(pc.utf8_lower(cells), "^(?:true|false)$", pa.bool_())
    elif plan.kind == "wide":
        values = refuse_codes(cells, attempt(cells, WIDE, pa.int64()))
    elif plan.kind == "date":
        values = dates(cells, plan.formats, plan.type)
    else:
        values = pa.nulls(len(cells))
    tally.values += len(values) - values.null_count
    if values.null_count > cells.null_count:
        count_words(cells.filter(pc.and_(pc.is_null(values), pc.is_valid(cells))), tally)
    return values


def count_words(left: Any, tally: Tally) -> None:
    """Count what did not convert: words that stand for missing apart."""
    for item in pc.value_counts(trimmed(left)).to_pylist():
        if item["values"] in ODD:
            tally.odd[item["values"]] += item["counts"]
        elif item["values"] is not None:
            tally.strange += item["counts"]
            if item["values"] in tally.words or len(tally.words) <= 20 * WORDS_KINDS:
                tally.words[item["values"]] += item["counts"]


def trimmed(cells: Any) -> Any:
    """Cells without blanks around them; those that then stand for missing are null."""
    cells = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.is_in(cells, pa.array(MISSING, cells.type)), pa.scalar(None, cells.type), cells)


def without(cells: Any, odd: tuple[str, ...], tally: Tally) -> Any:
    """Cells with these words as nulls."""
    gone = pc.is_in(cells, pa.array(odd, cells.type))
    for item in pc.value_counts(cells.filter(gone)).to_pylist():
        tally.odd[item["values"]] += item["counts"]
    return pc.if_else(gone, pa.scalar(None, cells.type), cells)


def attempt(cells: Any, pattern: str, to: Any) -> Any:
    """A cast of the cells that match a pattern; the others are null."""
    try:
        return pc.cast(cells, to) if not pa.types.is_boolean(to) else cast_matching(cells, pattern, to)
    except pa.ArrowInvalid:
        return cast_matching(cells, pattern, to)


def cast_matching(cells: Any, pattern: str, to: Any) -> Any:
    """The same, without hoping that all match."""
    fits = pc.match_substring_regex(cells, pattern)
    return pc.cast(pc.if_else(fits, cells, pa.scalar(None, cells.type)), to)


def numbers(cells: Any, point: str, tally: Tally) -> Any:
    """Cells as float64: at once where all are plain, otherwise with what people write around numbers taken off."""
    plain = cells
    if point == ",":  # a point is no decimal mark here: it must not pass for one
        plain = pc.replace_substring(pc.replace_substring(cells, ".", "·"), ",", ".")
    try:
        return pc.cast(plain, pa.float64())
    except pa.ArrowInvalid:
        values = cast_matching(plain, PLAIN, pa.float64())
    left = pc.and_(pc.is_null(values), pc.is_valid(cells))
    undressed = pc.cast(undress(cells.filter(left), point), pa.float64())
    tally.dressed = tally.dressed or undressed.null_count < len(undressed)
    return pc.replace_with_mask(values, left, undressed)


def undress(cells: Any, point: str) -> Any:
    """Numbers as people write them, "$1,200.50" or "(3)" or "12 %", as plain numerals; null for anything else."""
    cells = pc.utf8_trim_whitespace(cells)
    cells = pc.replace_substring_regex(cells, r"^\(([^()+−-]+)\)$", r"-\1")  # bookkeepers' minus
    infinite = pc.match_substring_regex(cells, "^(?i)[+-]?inf(?:inity)?$")
    fits = pc.match_substring_regex(cells, NUMERAL[point])
    kept = pc.if_else(pc.or_(fits, infinite), cells, pa.scalar(None, cells.type))
    kept = pc.replace_substring_regex(kept, f"{MONEY}|{GAP}|[%‰]", "")
    kept = pc.replace_substring(kept, "−", "-")
    kept = pc.replace_substring(kept, "," if point == "." else ".", "")
    return pc.replace_substring(kept, ",", ".")


def refuse_codes(cells: Any, values: Any) -> Any:
    """Values with null for cells such as 00123, which are codes and no numbers."""
    if not pc.any(pc.and_(pc.starts_with(cells, "0"), pc.greater(pc.binary_length(cells), 1))).as_py():
        return values
    return pc.if_else(pc.match_substring_regex(cells, r"^0\d+$"), pa.scalar(None, values.type), values)


def are_whole(values: Any) -> bool:
    """Whether all numbers are whole, and exact as such."""
    whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), EXACT))
    return pc.all(whole).as_py() is not False


def dates(cells: Any, formats: tuple[str, ...], to: Any) -> Any:
    """Cells as timestamps by the first format that fits each."""
    if formats[0] in ("iso", "zone"):
        try:
            return pc.cast(cells, to)
        except pa.ArrowInvalid:
            days = pc.utf8_slice_codeunits(cells, 0, 10)
            real = pa.array([d for d in pc.unique(days).to_pylist() if is_day(d)], cells.type)
            return cast_matching(
                pc.if_else(pc.is_in(days, real), cells, pa.scalar(None, cells.type)),
                ISO + (ZONE if formats[0] == "zone" else "$"),
                to,
            )
    values = by_format(cells, formats[0])
    for f in formats[1:]:
        values = pc.coalesce(values, by_format(cells, f))
    return values


def is_day(text: str | None) -> bool:
    """Whether a date is one of the calendar: 0000-00-00 and 2021-02-30 are none."""
    try:
        return text is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def by_format(cells: Any, f: str) -> Any:
    """Cells as timestamps by one format; null for 30.02.2020, which strptime takes for 1 March, and for the year 20."""
    values = pc.strptime(cells, f, "us", error_is_null=True)
    if values.null_count == len(values):
        return values
    before = re.findall("%([dmYy])", f).index("d")  # numbers before the day
    end = pc.match_substring_regex(cells, rf"^\D*(?:\d+\D+){{{before}}}(?:29|30|31)(?:\D|$)")
    wrong = pc.or_(pc.less(pc.year(values), 1000), pc.and_(pc.less_equal(pc.day(values), 3), end))
    return pc.if_else(wrong, pa.scalar(None, values.type), values)


def plan_column(cells: Any, point: str, european: bool) -> Plan:
    """How to read a column, told from a sample of its cells (standard words for missing are null already)."""
    cells = cells.drop_null()
    if len(cells) and point == "." and is_plain(cells):  # most columns: the other questions need not be asked
        found = plan_numbers(cells, point)
        assert found is not None
        return found
    trim = bool(len(cells)) and bool(pc.any(pc.match_substring_regex(cells, r"^\s|\s$")).as_py())
    if trim:
        cells = trimmed(cells).drop_null()
    seen = pc.is_in(cells, pa.array(ODD, cells.type))
    odd = tuple(pc.unique(cells.filter(seen)).to_pylist())
    every, cells = cells, cells.filter(pc.invert(seen))
    if not len(cells):
        return Plan("text" if len(odd) > 1 else "empty", trim=trim)  # + and - alone are signs, not holes
    if pc.all(pc.match_substring_regex(pc.utf8_lower(cells), "^(?:true|false)$")).as_py():
        return Plan("truth", trim=trim)
    found = plan_numbers(cells, point) or plan_dates(cells, european)
    if found is not None:
        return replace(found, trim=trim)
    symbols = not pc.any(pc.match_substring_regex(cells, r"[\pL\pN]")).as_py()
    often = tuple(
        w for w in odd if len(w) < 3 or pc.sum(pc.equal(every, w)).as_py() > 1
    )  # once, it is a word like others
    return Plan("text", odd=() if symbols else often, trim=trim)


def plan_numbers(cells: Any, point: str) -> Plan | None:
    """A column of numbers, or None."""
    point = mark_of(cells, point)
    if not point:
        return None
    digits = pc.match_substring_regex(cells, r"^[+-]?\d+$")
    if not pc.all(digits).as_py():
        split = pc.any(pc.match_substring_regex(cells, r"\d[.,]\d|[eE.]")).as_py()
        return Plan("number", point=point, whole=not split and bool(pc.any(digits).as_py()))
    if pc.any(pc.match_substring_regex(cells, r"^[+-]?0\d+$|^\+\d{7,}$")).as_py():
        return Plan("text")
    if not pc.any(pc.match_substring_regex(cells, r"^[+-]?\d{16,}$")).as_py():
        return Plan("number", point=point, whole=True)
    if pc.all(pc.match_substring_regex(cells, WIDE)).as_py():
        return Plan("wide")
    return Plan("text")  # whole numbers beyond any count: they name something


def is_plain(cells: Any) -> bool:
    """Whether all cells are numbers as programs write them."""
    try:
        pc.cast(cells, pa.float64())
        return True
    except pa.ArrowInvalid:
        return False


def mark_of(cells: Any, point: str) -> str:
    """The decimal mark under which the most cells are numbers; "" where they are none."""
    own, other = Tally(), Tally()
    convert(cells, Plan("number", point=point), own)
    if own.strange:
        convert(cells, Plan("number", point="." if point == "," else ","), other)
        if other.values and other.few() and (not own.values or other.strange < own.strange):
            return "." if point == "," else ","
    return point if own.values and own.few() else ""


def plan_dates(cells: Any, european: bool) -> Plan | None:
    """A column of dates, or None: day and month are told apart by the values."""
    n = len(cells)
    for name, pattern in (("zone", ISO + ZONE), ("iso", ISO + "$")):
        share = pc.mean(pc.match_substring_regex(cells, pattern)).as_py()
        if share >= 1 - WORDS_SHARE:
            return fitting_dates(cells, [(name,)])
    like = cells.filter(pc.match_substring_regex(cells, DATE))
    if len(like) < (1 - WORDS_SHARE) * n:
        return None
    first = str(like[0].as_py())
    mark = re.search(r"[./-]", first)
    m = mark[0] if mark else " "
    year = "%Y" if re.search(r"\d{4}", first) else "%y"
    orders = [f"%d{m}%m{m}{year}", f"%m{m}%d{m}{year}", f"{year}{m}%m{m}%d"]
    if re.search("[A-Za-z]{3,}", re.split(r"\d:", first)[0]):
        orders = [f"%d{m}%b{m}{year}", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"]
    elif not (european or m == "."):
        orders[:2] = orders[1::-1]
    shapes = [[order + t for t in MOMENTS] for order in orders]
    return fitting_dates(like, [tuple(f for f in s if by_format(like, f).null_count < len(like)) for s in shapes])


def fitting_dates(cells: Any, ways: list[tuple[str, ...]]) -> Plan | None:
    """The first formats under which the most cells are dates; None where that leaves more than a few words."""
    tried = []
    for formats in filter(None, ways):
        plan, tally = Plan("date", formats=formats), Tally()
        convert(cells, plan, tally)
        if tally.values and tally.few():
            tried.append((tally.strange, plan))
    if not tried:
        return None
    least = min(strange for strange, _ in tried)
    plans = [plan for strange, plan in tried if strange == least]
    return replace(plans[0], other=plans[1].formats if len(plans) > 1 else ())
