"""Tables as people have them: every dialect, encoding and format, against pandas' own reading; hostile files."""

import bz2
import datetime as dt
import gzip
import hashlib
import io
import json
import os
import pickle
import resource
import shutil
import signal
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmix.table.read import TableError, read
from unmix.table.values import Tally, numbers

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the shared data")


def frame_of(raw):
    """All rows as a pandas frame."""
    return raw.slice(0, raw.n).to_pandas()


def kinds(raw):
    """The types, in words."""
    return {f.name: str(f.type) for f in raw.schema}


def put(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def people():
    """A table of every kind of column, with holes."""
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "id": [f"K{i:04d}" for i in range(n)],
            "height": rng.normal(170, 10, n).round(2),
            "visits": rng.integers(0, 2000, n),
            "city": rng.choice(["Köln", "São Paulo", "Zürich"], n),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2019-03-14") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    frame.loc[3:5, "height"] = np.nan
    frame.loc[7:9, "city"] = None
    return frame


def same(raw, frame):
    """The same names and values as a frame."""
    got = frame_of(raw)
    assert list(got.columns) == list(frame.columns)
    for name in frame:
        a, b = got[name], frame[name]
        assert (a.isna() == b.isna()).all(), name
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a.astype(float), b, rtol=1e-14)
        elif b.dtype.kind == "M":
            assert (a.dropna().astype("datetime64[us]") == b.dropna().astype("datetime64[us]")).all(), name
        else:
            assert a.dropna().tolist() == b.dropna().tolist(), name


WRITTEN = {
    "comma": ({}, "utf-8", []),
    "semicolon and decimal comma": ({"sep": ";", "decimal": ","}, "utf-8", ["separated by ';' with decimal commas"]),
    "tab": ({"sep": "\t"}, "utf-8", ["separated by tabs"]),
    "bar": ({"sep": "|"}, "utf-8", ["separated by '|'"]),
    "all quoted": ({"quoting": 1}, "utf-8", []),
    "carriage return": ({"lineterminator": "\r"}, "utf-8", []),
    "windows": ({"lineterminator": "\r\n"}, "utf-8", []),
    "mark": ({}, "utf-8-sig", []),
    "utf-16": ({}, "utf-16", ["read as UTF-16-LE (not UTF-8)"]),
    "utf-16 without a mark": ({}, "utf-16-le", ["read as UTF-16-LE (not UTF-8)"]),
    "utf-16 the other way": ({"sep": "\t"}, "utf-16-be", ["read as UTF-16-BE (not UTF-8)"]),
    "latin": ({"sep": ";", "decimal": ","}, "latin-1", ["read as Windows-1252 (not UTF-8)"]),
    "NA": ({"na_rep": "NA"}, "utf-8", []),
    "dash": ({"na_rep": "-"}, "utf-8", ["'-' is taken for missing (6 cells)"]),
    "question": ({"na_rep": "?"}, "utf-8", ["'?' is taken for missing (6 cells)"]),
    "#N/A": ({"na_rep": "#N/A"}, "utf-8", []),
    "German dates": ({"sep": ";", "decimal": ",", "date_format": "%d.%m.%Y"}, "utf-8", []),
    "American dates": ({"date_format": "%m/%d/%Y"}, "utf-8", []),
    "British dates": ({"date_format": "%d/%m/%Y"}, "utf-8", []),
    "short years": ({"date_format": "%m/%d/%y"}, "utf-8", []),
    "names of months": ({"date_format": "%d-%b-%Y"}, "utf-8", []),
    "times": ({"date_format": "%Y-%m-%dT%H:%M:%S"}, "utf-8", []),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_dialects_and_encodings(how, people, tmp_path):
    options, encoding, notes = WRITTEN[how]
    path = tmp_path / "t.csv"
    path.write_bytes(people.to_csv(index=False, **options).encode(encoding))
    raw = read(path)
    same(raw, people)
    assert raw.headed
    assert raw.index is None
    assert [n for n in notes if n not in raw.notes] == []
    if not notes and not options.get("sep"):
        assert raw.notes == []


@pytest.mark.parametrize("pack", ["gz", "bz2", "zst", "xz", "zip"])
def test_packed_text_is_told_by_its_content(pack, people, tmp_path):
    path = tmp_path / f"t.csv.{pack}"
    if pack == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as f:
            f.write(people.to_csv(index=False).encode())
    else:
        people.to_csv(path, index=False)
    same(read(path), people)
    lying = tmp_path / "lying.csv"
    shutil.copy(path, lying)
    same(read(lying), people)


def test_standard_input(people, monkeypatch):
    class Input:
        buffer = io.BytesIO(people.to_csv(index=False).encode())

    monkeypatch.setattr(sys, "stdin", Input)
    raw = read("-")
    folder = raw._end.peek()[2][0][0]
    assert os.path.isdir(folder)
    same(raw, people)
    raw.close()
    assert not os.path.exists(folder)


def column(tmp_path, cells, name="t.csv", sep=";"):
    """One column of text beside another one, read."""
    raw = read(put(tmp_path, f"x{sep}y\n" + "".join(f"{c}{sep}a\n" for c in cells), name))
    return raw, raw.slice(0, raw.n).column(0).to_pylist()


NUMBERS = {
    "thousands": (["1,234.5", "12,345,678.25", "999.0"], [1234.5, 12345678.25, 999]),
    "thousands the other way": (["1.234,5", "12.345.678,25", "999,0"], [1234.5, 12345678.25, 999]),
    "blanks": (["1 234", "12 345 678", "999"], [1234, 12345678, 999]),
    "narrow blanks": (["1\u202f234,5", "12\u00a0345,25", "999,1"], [1234.5, 12345.25, 999.1]),
    "Swiss": (["1'234.50", "12'345.25", "999.10"], [1234.5, 12345.25, 999.1]),
    "dollars": (["$1,200.50", "$3.00", "-$7.25", "($8.00)"], [1200.5, 3, -7.25, -8]),
    "euros": (["1.200,50 €", "3,00 €", "-7,25 €"], [1200.5, 3, -7.25]),
    "per cent": (["12 %", "7%", "0.5 %"], [12, 7, 0.5]),
    "plain": (["+1.5", "-2", "1e3", ".5", "3."], [1.5, -2, 1000, 0.5, 3]),
    "three decimals": (["1,234", "0,125", "17,500"], [1.234, 0.125, 17.5]),
    "typographic minus": (["−1.5", "2.5"], [-1.5, 2.5]),
    "infinite": (["inf", "-inf", "1.5"], [np.inf, -np.inf, 1.5]),
    "holes": (["1.5", "", "NA", "?", "-", "--", ".", "null", "None", "nan", "N/A", "missing"], [1.5] + [None] * 11),
}


@pytest.mark.parametrize("how", NUMBERS)
def test_numbers_as_people_write_them(how, tmp_path):
    cells, values = NUMBERS[how]
    _, got = column(tmp_path, cells)
    assert got == values


CODES = [
    *(["00123", "04567", "90210"], ["+4915112345678", "+4915112345679"], ["2020-1", "x7"], ["0x1F", "0x2A"]),
    *(["1.2.3", "1.2.4"], ["10-20", "20-30"], ["192.168.0.1", "10.0.0.1"], ["555-1234", "555-9876"]),
    ["18:00:00", "19:30:00"],
]


@pytest.mark.parametrize("cells", CODES)
def test_codes_stay_text(cells, tmp_path):
    raw, got = column(tmp_path, cells)
    assert got == cells
    assert kinds(raw)["x"] == "string"


def test_points_are_thousands_only_beside_decimal_commas(tmp_path):
    assert column(tmp_path, ["1.234", "2.345"])[1] == [1.234, 2.345]
    raw = read(put(tmp_path, "x;y\n1.234;0,5\n2.345;1,25\n"))
    assert raw.slice(0, 2).to_pylist() == [{"x": 1234, "y": 0.5}, {"x": 2345, "y": 1.25}]


def test_integers_beyond_float_and_int64(tmp_path):
    raw, got = column(tmp_path, ["1234567890123456789", "1234567890123456788", "5"])
    assert got == [1234567890123456789, 1234567890123456788, 5]
    assert kinds(raw)["x"] == "int64"
    same_length = ["12345678901234567890123", "12345678901234567890124"]
    assert column(tmp_path, same_length)[1] == same_length
    assert column(tmp_path, ["1" + "0" * 25, "7"])[1] == ["1" + "0" * 25, "7"]


def test_a_few_words_among_numbers_are_holes_and_many_make_text(tmp_path):
    raw, got = column(tmp_path, [*map(str, range(100)), "unknown", "unknown", "too high"])
    assert got == [*range(100), None, None, None]
    assert any("column 'x' holds numbers but for 3 cells" in n and "'unknown'" in n for n in raw.notes)
    many = [*map(str, range(100)), *(f"V{i}" for i in range(11))]
    assert column(tmp_path, many)[1] == many


def far(tmp_path, first, last, n=200_000):
    """A column whose end is not like the pieces that are looked at."""
    at = int(0.87 * n)
    cells = [first(i) for i in range(n)]
    cells[at : at + len(last)] = last
    body = "".join(f"{c},{i % 7}.5,some text that is long enough\n" for i, c in enumerate(cells))
    raw = read(put(tmp_path, "x,y,z\n" + body))
    return raw, raw.slice(0, raw.n).column(0).to_pylist(), cells


def test_what_turns_up_late_is_no_error(tmp_path):
    raw, got, cells = far(tmp_path, lambda i: str(i), ["unknown"] * 3)
    assert got == [None if c == "unknown" else int(c) for c in cells]
    assert any("3 cells ('unknown')" in n for n in raw.notes)
    raw, got, cells = far(tmp_path, lambda i: str(i), [f"A{i}" for i in range(30)])
    assert got == cells
    raw, got, cells = far(tmp_path, lambda i: str(i % 9), ["2.5"])
    assert got == list(map(float, cells))
    raw, got, cells = far(tmp_path, lambda i: str(i + 10), ["007"])
    assert got == cells
    raw, got, cells = far(tmp_path, lambda i: "", ["7", "8.5"])
    assert got == [float(c) if c else None for c in cells]
    raw, got, cells = far(tmp_path, lambda i: f"{1 + i % 12:02d}/{1 + i % 11:02d}/2020", ["25/12/2020"])
    assert got[int(0.87 * 200_000)] == dt.datetime(2020, 12, 25)
    assert got[1] == dt.datetime(2020, 2, 2)
    raw, got, cells = far(tmp_path, lambda i: "true", ["maybe"])
    assert got == cells
    assert kinds(raw)["y"] == "double"


def test_bytes_that_are_not_utf_8_far_into_the_file(tmp_path):
    text = "name,x\n" + "".join(f"anna,{i}\n" for i in range(300_000))
    raw = read(put(tmp_path, text.encode() + "Köln,7\n".encode("latin-1")))
    assert raw.slice(raw.n - 1, raw.n).to_pylist() == [{"name": "Köln", "x": 7}]
    assert "read as Windows-1252 (not UTF-8)" in raw.notes


def test_dates_are_told_by_their_values(tmp_path):
    day, month = ["25/12/2020", "01/02/2021"], ["12/25/2020", "01/02/2021"]
    assert column(tmp_path, day)[1][1] == dt.datetime(2021, 2, 1)
    assert column(tmp_path, month)[1][1] == dt.datetime(2021, 1, 2)
    raw, got = column(tmp_path, ["01/02/2021", "03/04/2021"], sep=",")
    assert got == [dt.datetime(2021, 1, 2), dt.datetime(2021, 3, 4)]
    assert any("could be day/month or month/day: taken for month/day" in n for n in raw.notes)
    assert column(tmp_path, ["01.02.2021", "03.04.2021"])[1][0] == dt.datetime(2021, 2, 1)
    _, got = column(tmp_path, ["2020-01-01T10:00:00.250Z", "2020-01-01T10:00:00+02:00"])
    assert [t.replace(tzinfo=None) for t in got] == [
        dt.datetime(2020, 1, 1, 10, 0, 0, 250_000),
        dt.datetime(2020, 1, 1, 8),
    ]
    assert column(tmp_path, ["25/12/2020", "12/25/2020"])[1] == ["25/12/2020", "12/25/2020"]


def test_days_that_are_none(tmp_path):
    """MySQL writes 0000-00-00; strptime takes 30.02. for 1 March."""
    for right, wrong in (("2021-03-04", ["0000-00-00", "2021-02-30"]), ("04.03.2021", ["30.02.2021", "31.04.2021"])):
        raw, got = column(tmp_path, [right] * 30 + wrong)
        assert got == [dt.datetime(2021, 3, 4)] * 30 + [None, None]
        assert any(f"column 'x' holds dates but for 2 cells ('{wrong[0]}'" in n for n in raw.notes)
    raw, got = column(tmp_path, ["05.06.99", "07.08.21"])
    assert got == [dt.datetime(1999, 6, 5), dt.datetime(2021, 8, 7)]


HEADERS = {
    "names above numbers": ("a,b\n1,2\n3,4\n", ["a", "b"]),
    "numbers alone": ("1,2\n3,4\n5,6\n", None),
    "text that comes again": ("p,x\ne,y\np,x\np,y\n", None),
    "years": ("country,2019,2020,2021\nPeru,1.5,2,3\nMali,4,5,6\n", ["country", "2019", "2020", "2021"]),
    "positions": ("0,1,2\n0.5,0.1,0.7\n0.3,0.2,0.9\n", ["0", "1", "2"]),
    "text with names": ("name,city\nAnn,Rome\nBob,Oslo\n", ["name", "city"]),
    "number among names": ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n", None),
}


@pytest.mark.parametrize("how", HEADERS)
def test_header_or_none(how, tmp_path):
    text, names = HEADERS[how]
    raw = read(put(tmp_path, text))
    assert raw.headed == (names is not None)
    assert raw.names == (names or [f"column {j + 1}" for j in range(len(raw.names))])
    assert raw.n == text.count("\n") - raw.headed
    other = read(tmp_path / "t.csv", header=not raw.headed)
    assert other.headed != raw.headed
    assert other.n == text.count("\n") - other.headed


def test_what_comes_before_a_table(tmp_path):
    body = "name;amount;when\nAnn;1,5;01.02.2020\nBob;2,5;13.02.2020\nCy;3,5;14.02.2020\n"
    for top in ("", "# made by hand\n# on a Monday\n", "Report 2020\n\n", "Report 2020;;\n", "sep=;\n", "%comment\n"):
        raw = read(put(tmp_path, top + body))
        assert raw.names == ["name", "amount", "when"], top
        assert raw.slice(0, 3, ["amount"]).column(0).to_pylist() == [1.5, 2.5, 3.5]
    raw = read(put(tmp_path, "# x y z\n1 2 3\n4 5 6\n", "t.txt"))
    assert raw.names == ["x", "y", "z"]
    assert raw.n == 2


def test_runs_of_blanks(tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 4))
    lines = "".join("  " + "   ".join(f"{v:.6e}" for v in row) + " \n" for row in x)
    for name in ("t.data", "t.txt", "t.dat", "t"):
        raw = read(put(tmp_path, lines, name))
        np.testing.assert_allclose(frame_of(raw).to_numpy(), x, rtol=1e-6)
    raw = read(put(tmp_path, "p q  r s\n" + lines, "u.txt"))
    assert raw.names == ["p", "q", "r", "s"]
    np.testing.assert_allclose(frame_of(raw).to_numpy(), x, rtol=1e-6)
    raw = read(put(tmp_path, '"New York" 5 1.5\n"Rome" 6 2.5\n"Oslo" 6 2.5\n', "v.txt"))
    assert raw.slice(0, 1).to_pylist() == [{"column 1": "New York", "column 2": 5, "column 3": 1.5}]


def test_quotes_trailing_separators_and_rows_with_names(tmp_path):
    raw = read(put(tmp_path, 'a,b\n1,"two\nlines, and ""more"""\n2,"5"" pipe"\n3,5" pipe\n'))
    assert raw.slice(0, 3, ["b"]).column(0).to_pylist() == ['two\nlines, and "more"', '5" pipe', '5" pipe']
    raw = read(put(tmp_path, "a;b;\n1;2;\n3;4;\n"))
    assert raw.names == ["a", "b"]
    raw = read(put(tmp_path, "a;b\n1;2;\n3;4;\n"))
    assert raw.names == ["a", "b"]
    raw = read(put(tmp_path, '"x" "y"\n"first" 1.5 2\n"second" 3 4\n', "r.txt"))
    assert raw.names == ["row names", "x", "y"]
    raw = read(put(tmp_path, "a, b, c\n1, 2, red \n3, NA, blue\n"))
    assert raw.names == ["a", "b", "c"]
    assert raw.slice(0, 2).to_pylist() == [{"a": 1, "b": 2, "c": "red"}, {"a": 3, "b": None, "c": "blue"}]


def test_signs_are_no_holes_where_they_are_all_there_is(tmp_path):
    raw = read(put(tmp_path, "x,class\n" + "1,+\n2,-\n" * 5))
    assert raw.slice(0, 2, ["class"]).column(0).to_pylist() == ["+", "-"]


def test_names_are_unique_and_the_index_is_known(tmp_path, people):
    raw = read(put(tmp_path, "a,a,,a (2)\n1,2,3,4\n5,6,7,8\n"))
    assert raw.names == ["a", "a (3)", "column 3", "a (2)"]
    assert any("more than one column is called 'a'" in n for n in raw.notes)
    people.to_csv(tmp_path / "i.csv")
    raw = read(tmp_path / "i.csv")
    assert raw.index == "column 1"
    assert any("is an index that pandas wrote" in n for n in raw.notes)
    people[::-1].to_csv(tmp_path / "i.csv")
    assert read(tmp_path / "i.csv").index is None


def test_ragged_rows(tmp_path):
    good = [f"{i},{i},x" for i in range(300)]
    raw = read(put(tmp_path, "a,b,c\n" + "\n".join([*good[:99], "1,2", *good[99:], "1,2,3,4"]) + "\n"))
    assert raw.n == 300
    assert any("2 rows left out" in n and "line 101, 303" in n and "line 101 has 2" in n for n in raw.notes)
    with pytest.raises(TableError, match=r"line 2: 2 fields where 4 are expected"):
        read(put(tmp_path, "a,b,c,d\n1,2\n3,4\n5,6\n"))
    with pytest.raises(TableError, match=r"line 6: 2 fields where 3 are expected, separated by ','; 20 of 320 rows"):
        read(put(tmp_path, "a,b,c\n" + "\n".join([*good[:4], *["1,2"] * 20, *good[4:]]) + "\n"))


def test_frames_and_queries(people):
    polars = pl.from_pandas(people)
    table = pa.Table.from_pandas(people)
    relation = duckdb.sql("select * from people where visits >= 0")
    for source in (people, polars, polars.lazy().filter(pl.col("visits") >= 0), nw.from_native(polars), table, relation,
                   table.to_batches()[0], table.to_reader(), {c: people[c].tolist() for c in people},
                   people.astype(object).where(people.notna(), None).to_dict("records")):  # fmt: skip
        raw = read(source)
        same(raw, people)
        assert raw.in_memory
        assert raw.files == []
    assert read(people.set_index("id")).names == list(people.columns)
    assert read(people[people.visits > 100]).names == list(people.columns)
    for wrong in (7, None, people["height"], table.column(0)):
        with pytest.raises(TypeError, match="is no table: give a path, a frame"):
            read(wrong)
    for empty in (people[:0], {}, [], {"a": [1], "b": [1, 2]}):
        with pytest.raises(TableError):
            read(empty)


def test_frames_with_columns_of_every_type():
    table = pa.table(
        {
            "money": pa.array([1, 2], pa.decimal128(8, 2)),
            "level": pa.array(["a", "b"]).dictionary_encode(),
            "time": pa.array([dt.time(1), None]),
            "for": pa.array([dt.timedelta(seconds=90), None]),
            "place": pa.array([{"lat": 1.5, "lon": 2.5}, None]),
            "tags": pa.array([["x"], []]),
            "bytes": pa.array([b"ab", None]),
            "large": pa.array(["ab", None], pa.large_string()),
            "nothing": pa.nulls(2),
        }
    )
    raw = read(table)
    wanted = ["double", "dictionary<values=string, indices=int32, ordered=0>", "string", "double", "double", "double"]
    assert [str(t) for t in raw.schema.types] == [*wanted, "string", "string", "string", "null"]
    assert "place.lat" in raw.names
    assert raw.slice(0, 1, ["for", "place.lon", "time"]).to_pylist() == [
        {"for": 90.0, "place.lon": 2.5, "time": "01:00:00"}
    ]
    raw = read(
        pd.DataFrame({"size": pd.Categorical([3, 1, 3]), "month": pd.period_range("2020-01", periods=3, freq="M")})
    )
    assert raw.slice(1, 2).to_pylist() == [{"size": "1", "month": dt.datetime(2020, 2, 1)}]
    frame = pd.DataFrame([[1, "x"], ["y", 2.5]], columns=["a", "a"])
    raw = read(frame)
    assert raw.names == ["a", "a (2)"]
    assert raw.slice(0, 2).to_pylist() == [{"a": "1", "a (2)": "x"}, {"a": "y", "a (2)": "2.5"}]


def test_columnar_files(people, tmp_path):
    people.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=7)
    feather.write_feather(people, tmp_path / "t.feather", chunksize=11)
    table = pa.Table.from_pandas(people)
    with pa.ipc.new_stream(str(tmp_path / "t.arrows"), table.schema) as w:
        w.write_table(table, max_chunksize=13)
    (tmp_path / "many").mkdir()
    pq.write_table(table.slice(0, 20), tmp_path / "many" / "a.parquet")
    pq.write_table(table.slice(20), tmp_path / "many" / "b.parquet")
    for name in ("t.parquet", "t.feather", "t.arrows", "many"):
        for budget in (None, 100):
            raw = read(tmp_path / name, budget=budget)
            same(raw, people)
            assert raw.in_memory == (budget is None)
            assert [len(b.schema) for b in raw.batches(["city", "id"])] == [2] * len(list(raw.batches(["id"])))
            assert sum(len(b) for b in raw.batches()) == len(people)
            for start, stop in ((0, 1), (5, 33), (40, 60), (59, 60), (3, 3), (12, 40)):
                part = raw.slice(start, stop, ["visits", "id"]).to_pandas()
                assert part["id"].tolist() == people["id"][start:stop].tolist()
                assert part["visits"].tolist() == people["visits"][start:stop].tolist()


def test_excel(people, tmp_path):
    pytest.importorskip("fastexcel")
    pytest.importorskip("openpyxl")
    people.to_excel(tmp_path / "t.xlsx", index=False)
    same(read(tmp_path / "t.xlsx"), people)
    shutil.copy(tmp_path / "t.xlsx", tmp_path / "lying.csv")
    same(read(tmp_path / "lying.csv"), people)
    with pd.ExcelWriter(tmp_path / "u.xlsx") as w:
        people.to_excel(w, sheet_name="first", index=False, startrow=3)
        w.sheets["first"].cell(1, 1, "A report")
        people.to_excel(w, sheet_name="second")
    raw = read(tmp_path / "u.xlsx")
    same(raw, people)
    assert any("the sheet 'first' is read, not 'second'" in n for n in raw.notes)


def test_excel_without_its_package(people, tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    people.to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(TableError, match=r"pip install 'unmix\[excel\]'"):
        read(tmp_path / "t.xlsx")


def test_json(people, tmp_path):
    for name, options in {
        "t.jsonl": {"orient": "records", "lines": True},
        "t.json": {"orient": "records"},
        "u.json": {"orient": "split", "index": False},
        "v.json": {"orient": "columns"},
    }.items():
        people.to_json(tmp_path / name, date_format="iso", **options)
        raw = read(tmp_path / name)
        same(raw, people)
    mixed = [{"a": 1, "b": {"c": 2}}, {"a": "x", "d": 5}]
    raw = read(put(tmp_path, "".join(json.dumps(r) + "\n" for r in mixed), "m.ndjson"))
    assert raw.n == 2
    assert set(raw.names) == {"a", "b.c", "d"}


def test_arff(tmp_path):
    text = """% a comment
@RELATION weather
@attribute 'the outlook' {sunny, 'very rainy', overcast}
@attribute temperature real
@attribute grade {0,1,2}
@attribute note string
@DATA
sunny,85.5,1,'a note'
'very rainy',?,0,?
overcast,70,2,b
"""
    raw = read(put(tmp_path, text, "t.arff"))
    assert raw.names == ["the outlook", "temperature", "grade", "note"]
    assert raw.slice(0, 3).to_pylist()[1] == {
        "the outlook": "very rainy",
        "temperature": None,
        "grade": "0",
        "note": None,
    }
    column = raw.slice(0, 3).column(0).chunk(0)
    assert column.dictionary.to_pylist() == ["sunny", "very rainy", "overcast"]
    with pytest.raises(TableError, match="sparse ARFF"):
        read(put(tmp_path, text.split("sunny,85")[0] + "{0 sunny}\n", "s.arff"))


def test_numpy_files(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    np.save(tmp_path / "x.npy", x)
    raw = read(tmp_path / "x.npy")
    assert (raw.names, raw.headed) == (["column 1", "column 2", "column 3"], False)
    np.testing.assert_array_equal(frame_of(raw).to_numpy(), x)
    np.save(
        tmp_path / "s.npy", np.array([(1, 2.5, "a"), (3, 4.5, "b")], dtype=[("i", ">i4"), ("f", "f4"), ("s", "U3")])
    )
    assert read(tmp_path / "s.npy").slice(0, 2).to_pylist() == [
        {"i": 1, "f": 2.5, "s": "a"},
        {"i": 3, "f": 4.5, "s": "b"},
    ]
    np.savez(tmp_path / "z.npz", X=x, y=np.arange(40), names=np.array(["a", "b", "c"]), other=np.arange(7))
    raw = read(tmp_path / "z.npz")
    assert raw.names == ["a", "b", "c", "y"]
    assert any("'other'" in n for n in raw.notes)
    np.save(tmp_path / "o.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="Python objects"):
        read(tmp_path / "o.npy")
    np.save(tmp_path / "3.npy", np.zeros((2, 2, 2)))
    with pytest.raises(TableError, match=r"shape \(2, 2, 2\)"):
        read(tmp_path / "3.npy")


def test_larger_than_memory_goes_to_a_file_that_vanishes(people, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spool"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "spool").mkdir()
    long = pd.concat([people] * 3000, ignore_index=True)
    long.to_csv(tmp_path / "t.csv", index=False)
    raw = read(tmp_path / "t.csv", budget=1 << 20)
    assert not raw.in_memory
    assert len(os.listdir(tmp_path / "spool")) == 1
    assert raw.slice(100_000, 100_003).to_pylist() == read(tmp_path / "t.csv").slice(100_000, 100_003).to_pylist()
    assert kinds(raw)["visits"] == "int64"
    assert sum(len(b) for b in raw.batches(["visits"])) == len(long)
    del raw
    assert os.listdir(tmp_path / "spool") == []
    query = read(duckdb.sql("select *, city::enum('Köln', 'São Paulo', 'Zürich') as c from long"), budget=1 << 20)
    assert not query.in_memory
    same(read(query.slice(0, 60, list(people.columns))), people)
    del query
    assert os.listdir(tmp_path / "spool") == []


def test_a_full_disk_is_one_sentence_and_nothing_is_left(people, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    pd.concat([people] * 3000).to_csv(tmp_path / "t.csv", index=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(TableError, match=r"the disk is full: .* set TMPDIR"):
            read(tmp_path / "t.csv", budget=1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert os.listdir(tmp_path / "spool") == []


def truncated(data):
    return data[: 2 * len(data) // 3]


def parquet_bytes(frame):
    f = io.BytesIO()
    frame.to_parquet(f)
    return f.getvalue()


def npz_bytes():
    f = io.BytesIO()
    np.savez(f, X=np.zeros((50, 3)))
    return f.getvalue()


def zip_bytes():
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("a.txt", "x")
        z.writestr("b.txt", "y")
    return f.getvalue()


CSV = ("x,y\n" + "1.5,a\n" * 40_000).encode()
BAD = {
    "empty": (b"", "is empty: there is nothing to read"),
    "blank": (b"\n\n  \n", "is empty: there is nothing to read"),
    "only a header": (b"name,age,city\n", r"only a header \(name, age, city\) and no rows"),
    "PDF": (b"%PDF-1.7\n...", "is a PDF document"),
    "PNG": (b"\x89PNG\r\n\x1a\n....", "is a PNG picture"),
    "ELF": (b"\x7fELF....", "is a program"),
    "pickle": (pickle.dumps([1, 2, 3]), "is a Python pickle"),
    "zip": (zip_bytes(), "is a zip archive of 2 files"),
    "page": (b"<!DOCTYPE html><html>no access</html>", "is a web page"),
    "random": (np.random.default_rng(0).bytes(5000), "binary"),
    "zeros": (b"a,b\n1,2\n\0\0\0\n3,4\n", "bytes of zero"),
    "truncated gzip": (truncated(gzip.compress(CSV)), "cannot be unpacked to its end"),
    "damaged gzip": (gzip.compress(CSV)[:60] + b"\xff" * 60, "cannot be unpacked to its end"),
    "truncated bz2": (truncated(bz2.compress(CSV)), "cannot be unpacked to its end"),
    "truncated parquet": (truncated(parquet_bytes(pd.DataFrame({"x": range(1000)}))), "looks truncated or damaged"),
    "truncated npz": (truncated(npz_bytes()), "truncated or damaged"),
    "truncated npy": (b"\x93NUMPY\x01\x00v\x00{'descr", "looks truncated or damaged"),
    "open quote": (b'a,b\n1,x\n2,"y\n3,z\n4,w\n', "quotation mark .* is not closed"),
    "open quote early": (b'a,b\n"1,x\n' + b"2,y\n" * 50, "quotation mark|fields where"),
    "damaged JSON": (b'{"a": 1}\n{"a": \n', "is damaged"),
    "scalar JSON": (b"[[]]", "no columns|no rows|no table"),
    "arff without data": (b"@relation x\n@attribute a real\n", "no @data line"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_files_are_one_sentence(what, tmp_path):
    data, sentence = BAD[what]
    with pytest.raises(TableError, match=sentence) as e:
        read(put(tmp_path, data))
    assert "\n" not in str(e.value)
    assert (tmp_path / "t.csv").read_bytes() == data


def test_files_that_are_not_there(tmp_path):
    put(tmp_path, "a,b\n1,2\n", "customers.csv")
    with pytest.raises(FileNotFoundError, match=r"did you mean 'customers\.csv'"):
        read(tmp_path / "custmers.csv")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        read(tmp_path / "nowhere" / "customers.csv")
    with pytest.raises(TableError, match=r"is a folder without Parquet files \(it holds customers.csv\)"):
        read(tmp_path)


def test_files_that_may_not_be_read(tmp_path, monkeypatch):
    path = put(tmp_path, "a,b\n1,2\n")
    opened = open

    def closed(file, *args, **kwargs):  # root may read all
        if file == str(path):
            raise PermissionError(13, "Permission denied")
        return opened(file, *args, **kwargs)

    monkeypatch.setattr("builtins.open", closed)
    with pytest.raises(PermissionError, match="may not be read by you"):
        read(path)


@pytest.mark.slow
def test_ten_thousand_columns(tmp_path):
    x = np.random.default_rng(0).integers(0, 9, (12, 10_000))
    names = ",".join(f"c{j}" for j in range(10_000))
    raw = read(put(tmp_path, names + "\n" + "\n".join(",".join(map(str, row)) for row in x)))
    assert (raw.n, len(raw.names)) == (12, 10_000)
    np.testing.assert_array_equal(np.column_stack([c.to_numpy() for c in raw.slice(0, 12).columns]), x)


NAMES = st.lists(
    st.text("abcdefghij_ äß", min_size=1, max_size=8).map(str.strip).filter(bool), min_size=2, max_size=5, unique=True
)
WORDS = st.text("abcdefg XYZäß,;|\t\"'", max_size=12).map(str.strip)
SIMPLE = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def tables(draw):
    """A random frame, the way it is written, and the bytes."""
    names = draw(NAMES)
    n = draw(st.integers(3, 30))
    columns = {}
    for j, name in enumerate(names):
        kind = draw(st.sampled_from(["float", "int", "text", "date", "bool"])) if j else "float"
        value = {
            "float": st.floats(-1e9, 1e9).map(lambda v: round(v, 3) + 0.0),
            "int": st.integers(-(10**9), 10**9),
            "text": WORDS.filter(lambda w: any(c.isalpha() for c in w)).map(lambda w: "w" + w),
            "date": st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2069, 1, 1)).map(
                lambda t: t.replace(microsecond=0)
            ),
            "bool": st.booleans(),
        }[kind]
        columns[name] = draw(st.lists(value, min_size=n, max_size=n))
    frame = pd.DataFrame(columns)
    frame[names[0]] += 0.125  # a number in every first column: a header is known by what is below it
    sep = draw(st.sampled_from([",", ";", "\t", "|"]))
    decimal = "," if sep == ";" and draw(st.booleans()) else "."
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quoting = draw(st.sampled_from([0, 1, 2]))
    text = frame.to_csv(index=False, sep=sep, decimal=decimal, lineterminator=end, quoting=quoting)
    return frame, text.encode(encoding)


@SIMPLE
@given(tables())
def test_random_frames_in_random_dialects(tmp_path_factory, drawn):
    frame, data = drawn
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(data)
    same(read(path), frame)


@SIMPLE
@given(st.lists(st.text("+-−$€()%‰ .,'15eEinf", max_size=8)), st.sampled_from(".,"))
def test_whatever_stands_around_a_number_it_is_read_or_left(cells, point):
    values = numbers(pa.array(["+-0.875", "-$-3", "$-3", *cells], pa.string()), point, Tally())
    assert values[:3].to_pylist() == [None, None, -3]


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.randoms(use_true_random=False), st.integers(1, 12))
def test_mutated_files_give_an_answer_or_a_sentence(tmp_path_factory, drawn, random, changes):
    data = bytearray(drawn[1])
    for _ in range(changes):
        at = random.randrange(len(data) + 1)
        how = random.randrange(4)
        if how == 0:
            data[at:at] = bytes([random.randrange(256)])
        elif how == 1:
            del data[at : at + random.randrange(20)]
        elif how == 2:
            data[at:at] = random.choice(
                [b'"', b"\n", b"\r", b"\0", b",,", b";", b"\xff\xfe", b"'", b"\\", b"#", b"\x1f\x8b"]
            )
        else:
            data[at:at] = data[: random.randrange(60)]
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(data)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        raw = read(path)
        assert raw.slice(0, raw.n).num_rows == raw.n > 0
    except (TableError, OSError) as e:
        assert str(e)
        assert "\n" not in str(e)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def bytes_of(write):
    f = io.BytesIO()
    write(f)
    return f.getvalue()


def every_format():
    """A small table in every format."""
    frame = pd.DataFrame({"x": np.arange(40) * 1.5, "c": ["a", "b"] * 20, "d": pd.date_range("2020-01-01", periods=40)})
    text = frame.to_csv(index=False).encode()
    arff = "@relation x\n@attribute a real\n@attribute 'b c' {p,q}\n@data\n" + "1.5,p\n2.5,q\n" * 20
    return {
        "parquet": bytes_of(frame.to_parquet),
        "feather": bytes_of(lambda f: feather.write_feather(frame, f)),
        "xlsx": bytes_of(lambda f: frame.to_excel(f, index=False)),
        "npy": bytes_of(lambda f: np.save(f, np.ones((30, 3)))),
        "npz": npz_bytes(),
        "jsonl": frame.to_json(orient="records", lines=True, date_format="iso").encode(),
        "json": frame.to_json(date_format="iso").encode(),
        "arff": arff.encode(),
        "gz": gzip.compress(text),
        "bz2": bz2.compress(text),
        "zst": pa.compress(text, "zstd", asbytes=True),
        "zip": bytes_of(lambda f: frame.to_csv(f, index=False, compression={"method": "zip", "archive_name": "a"})),
    }


@pytest.mark.slow
@pytest.mark.parametrize("format", every_format())
def test_damaged_files_of_every_format_give_an_answer_or_a_sentence(format, tmp_path):
    whole = every_format()[format]
    path = tmp_path / "t"
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(data)))
            data[at : at + int(rng.integers(12))] = rng.bytes(int(rng.integers(6)))
        if rng.random() < 0.3:
            data = data[: int(rng.integers(1, len(data)))]
        path.write_bytes(data)
        try:
            raw = read(path)
            assert raw.slice(0, raw.n).num_rows == raw.n
        except (TableError, OSError) as e:
            assert "\n" not in str(e)
        assert path.read_bytes() == data


def test_pipes(people, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    data = people.to_csv(index=False).encode()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[data])
    writer.start()
    same(read(tmp_path / "pipe"), people)
    writer.join()


def test_rows_are_read_by_several_threads(tmp_path):
    frame = pd.DataFrame({"i": np.arange(50_000), "t": [f"r{i}" for i in range(50_000)]})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=7000)
    frame.to_csv(tmp_path / "t.csv", index=False)
    starts = np.random.default_rng(0).integers(0, 49_000, 200).tolist()
    for name in ("t.parquet", "t.csv"):
        raw = read(tmp_path / name, budget=1000)
        assert not raw.in_memory
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(lambda a, raw=raw: raw.slice(a, a + 1000).to_pydict(), starts))
        for a, part in zip(starts, parts, strict=True):
            assert part == frame[a : a + 1000].to_dict("list")


@needs_data
@pytest.mark.parametrize("name", ["cloud/cloud.data.gz", "foetal-ecg/FOETAL_ECG.dat.gz", "lee/similarities0-1.txt.gz",
                                  "clustering/uci/wine.data.gz", "golub-all-aml/ALL_AML_data.txt.gz"])  # fmt: skip
def test_shared_matrices_of_text(name):
    np.testing.assert_allclose(frame_of(read(DATA / name)).to_numpy(float), np.loadtxt(DATA / name), rtol=1e-14)


@needs_data
@pytest.mark.parametrize("name", ["airquality.csv", "boys.csv.gz", "sleep.csv.gz", "mammographic_masses.csv.gz"])
def test_shared_tables_with_holes(name):
    same(read(DATA / "missing" / name), pd.read_csv(DATA / "missing" / name, na_values="?"))


@needs_data
def test_shared_table_of_letters():
    from scipy.io import arff

    text = gzip.decompress((DATA / "letter" / "letter.arff.gz").read_bytes()).decode()
    truth = pd.DataFrame(arff.loadarff(io.StringIO(text))[0])
    got = frame_of(read(DATA / "letter" / "letter.arff.gz"))
    np.testing.assert_array_equal(got.iloc[:, :-1].to_numpy(float), truth.iloc[:, :-1].to_numpy(float))
    assert got.iloc[:, -1].tolist() == truth.iloc[:, -1].str.decode("ascii").tolist()


def test_excel_takes_text_that_comes_late_and_rows_where_they_are(tmp_path):
    late = pd.DataFrame({"x": np.arange(1500) / 7, "late": [i if i < 1200 else f"t{i}" for i in range(1500)]})
    late.to_excel(tmp_path / "late.xlsx", index=False)
    raw = read(tmp_path / "late.xlsx")
    assert raw.slice(0, raw.n).column("late").null_count == 0
    frame = pd.DataFrame({"x": np.arange(20) / 7, "y": np.arange(20) * 1.5})
    for above in (1, 3):
        frame.to_excel(tmp_path / "low.xlsx", index=False, startrow=above)
        raw = read(tmp_path / "low.xlsx")
        assert (raw.n, raw.names) == (20, ["x", "y"])
        np.testing.assert_allclose(raw.slice(0, 20).column("y").to_pylist(), frame["y"])


def test_json_columns_are_joined_by_their_keys(tmp_path):
    (tmp_path / "t.json").write_text('{"a": {"0": 1, "1": 2, "2": 3}, "b": {"2": 30, "0": 10, "1": 20}}')
    assert read(tmp_path / "t.json").slice(0, 3).to_pydict() == {"a": [1, 2, 3], "b": [10, 20, 30]}


def test_what_names_something_stays_as_it_is(tmp_path):
    two = [9 * 10**17 + i if i % 2 else 10**20 + i for i in range(30)]
    rows = "".join(f"{10**19 + i},{two[i]},00{i} 555 100,-0{i:02d},{i}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("one,two,phone,code,x\n" + rows)
    got = read(tmp_path / "t.csv").slice(0, 2).to_pydict()
    assert got["one"] == [str(10**19), str(10**19 + 1)]
    assert got["two"] == [str(10**20), str(9 * 10**17 + 1)]
    assert (got["phone"][0], got["code"][0]) == ("000 555 100", "-000")
