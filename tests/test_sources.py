"""Sources: whatever the rows come from, they are the same rows."""

from __future__ import annotations

import decimal
import gzip
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmix.engine.sources import as_source, base
from unmix.io.write import write_rows

pa = pytest.importorskip("pyarrow")
import pyarrow.csv as pc  # noqa: E402
import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

N, D = 1000, 4
NAMES = [f"c{j}" for j in range(D)]
SRC = str(Path(__file__).resolve().parent.parent / "src")


def truth() -> np.ndarray:
    """Rows with holes: NaN in about a tenth of the cells, none in the last column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).round(3)
    X[:, :-1][rng.random((N, D - 1)) < 0.1] = np.nan
    return X


X = truth()


class Sliced:
    """The least that an array on disk offers: shape, dtype and slices."""

    def __init__(self, x, chunks=None):
        self.x, self.shape, self.dtype, self.chunks = x, x.shape, x.dtype, chunks

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self.x[rows]


def blocks(size=37):
    """Blocks of odd sizes in one buffer that is filled again and again, as iterators are free to do."""
    buffer = np.empty((size, D))
    for a in range(0, N, size):
        part = X[a : a + size]
        buffer[: len(part)] = part
        yield buffer[: len(part)]


def table(x=X):
    return pa.table({name: pa.array(x[:, j], from_pandas=True) for j, name in enumerate(NAMES)})


def parquet_folder(path):
    (path / "part=1").mkdir(parents=True)
    pq.write_table(table().slice(0, 333), path / "a.parquet", row_group_size=100)
    pq.write_table(table().slice(333, 0), path / "b.parquet")
    pq.write_table(table().slice(333, 400), path / "part=1" / "c.parquet", row_group_size=400)
    pq.write_table(table().slice(733).select(NAMES[::-1]), path / "z.parquet", row_group_size=7)
    (path / "_SUCCESS").touch()
    (path / "_metadata.parquet").write_bytes(b"not data")
    return path


def csv_text(**options):
    return "\n".join([",".join(NAMES), *(",".join("" if np.isnan(v) else repr(v) for v in row) for row in X.tolist())])


def gz(path, text):
    with gzip.open(path, "wt") as f:
        f.write(text)
    return path


def arrow_stream(path):
    with pa.OSFile(str(path), "wb") as f, pa.ipc.new_stream(f, table().schema) as w:
        w.write_table(table(), max_chunksize=90)
    return path


def saved(path, save, *args, **kwargs):
    save(path, *args, **kwargs)
    return path


def zarr_folder(path):
    zarr = pytest.importorskip("zarr")
    z = zarr.create_array(str(path), shape=X.shape, chunks=(64, 3), dtype="f8")
    z[:] = X
    return path


def dask_array():
    return pytest.importorskip("dask.array").from_array(X, chunks=((300, 0, 1, 699), (3, 1)))


def dask_frame():
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pytest.importorskip("pandas").DataFrame(X, columns=NAMES), npartitions=7)


def pandas_mixed():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=NAMES)
    frame["c1"] = frame["c1"].astype("Float64")
    frame["c2"] = frame["c2"].astype("category")
    frame["c0"] = frame["c0"].astype(object)
    return frame


KINDS = {
    "array": lambda p: X,
    "fortran": lambda p: np.asfortranarray(X),
    "big-endian": lambda p: X.astype(">f8"),
    "objects": lambda p: X.astype(object),
    "masked": lambda p: np.ma.masked_invalid(X),
    "list": lambda p: X.tolist(),
    "sliced": lambda p: Sliced(X),
    "chunked": lambda p: Sliced(X, (13, 2)),
    "memmap": lambda p: np.load(saved(p / "x.npy", np.save, X), mmap_mode="r"),
    "csr": lambda p: sp.csr_matrix(X),
    "coo": lambda p: sp.coo_array(X),
    "pandas": lambda p: pytest.importorskip("pandas").DataFrame(X, columns=NAMES),
    "pandas-mixed": lambda p: pandas_mixed(),
    "polars": lambda p: pytest.importorskip("polars").DataFrame(X, schema=NAMES, nan_to_null=True),
    "polars-lazy": lambda p: pytest.importorskip("polars").DataFrame(X, schema=NAMES).lazy(),
    "arrow": lambda p: table(),
    "arrow-chunked": lambda p: pa.Table.from_batches(table().to_batches(max_chunksize=61)),
    "arrow-batch": lambda p: table().combine_chunks().to_batches()[0],
    "arrow-reader": lambda p: table().to_reader(max_chunksize=100),
    "npy": lambda p: saved(p / "x.npy", np.save, X),
    "npz": lambda p: saved(p / "x.npz", sp.save_npz, sp.csr_array(X)),
    "npz-dense": lambda p: saved(p / "x.npz", np.savez, X),
    "parquet": lambda p: saved(p / "x.parquet", lambda f: pq.write_table(table(), f, row_group_size=300)),
    "parquet-folder": lambda p: parquet_folder(p / "folder"),
    "csv": lambda p: saved(p / "x.csv", Path.write_text, csv_text()),
    "csv-crlf": lambda p: saved(p / "x.csv", Path.write_bytes, csv_text().replace("\n", "\r\n\r\n").encode()),
    "csv-arrow": lambda p: saved(p / "x.csv", lambda f: pc.write_csv(table(), f)),
    "tsv": lambda p: saved(p / "x.tsv", Path.write_text, csv_text().replace(",", "\t") + "\n"),
    "csv-semicolon": lambda p: saved(p / "x.csv", Path.write_text, "\ufeff" + csv_text().replace(",", ";") + "\n\n"),
    "csv-gz": lambda p: gz(p / "x.csv.gz", csv_text()),
    "feather": lambda p: saved(p / "x.feather", lambda f: feather.write_feather(table(), str(f), chunksize=77)),
    "arrow-stream": lambda p: arrow_stream(p / "x.arrow"),
    "zarr": lambda p: zarr_folder(p / "x.zarr"),
    "iterator": lambda p: blocks,
    "iterator-csr": lambda p: lambda: (sp.csr_array(X[a : a + 90]) for a in range(0, N, 90)),
    "iterator-arrow": lambda p: lambda: iter(table().to_batches(max_chunksize=123)),
    "dask-array": lambda p: dask_array(),
    "dask-frame": lambda p: dask_frame(),
}
NAMED = ("pandas", "polars", "arrow", "parquet", "csv", "tsv", "feather", "iterator-arrow", "dask-frame")
REOPENED = ("npy", "parquet", "csv", "csv-gz", "feather", "zarr", "dask-array", "csr", "pandas")


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Each kind, opened once."""
    opened = {}

    def get(kind):
        if kind not in opened:
            opened[kind] = as_source(KINDS[kind](tmp_path_factory.mktemp(kind)))
        return opened[kind]

    return get


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces and chunks so small that a thousand rows make many of them."""
    import unmix.engine.sources as sources
    from unmix.engine.sources import arrays, base, columnar, lazy, text

    for module in (base, arrays, columnar, lazy):
        monkeypatch.setattr(module, "PIECE", 2048)
    monkeypatch.setattr(text, "CHUNK", 701)
    return sources


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_rows(kind, sources):
    source = sources(kind)
    assert (source.n, source.d, source.dtype) == (N, D, np.float64)
    rows = source.read(0, N)
    assert sp.issparse(rows) == source.sparse
    assert source.sparse or rows.flags.c_contiguous
    assert rows.dtype == source.dtype
    np.testing.assert_array_equal(dense(rows), X)
    np.testing.assert_array_equal(dense(source.whole()), X)
    assert source.names == (NAMES if kind.startswith(NAMED) and kind != "csv-none" else None)


@pytest.mark.parametrize("kind", KINDS)
def test_any_range_in_any_order(kind, sources):
    source = sources(kind)

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.integers(0, N), st.integers(0, N)).map(sorted), min_size=1, max_size=5))
    def check(ranges):
        for a, b in ranges:
            np.testing.assert_array_equal(dense(source.read(a, b)), X[a:b])
        index = np.unique(np.ravel(ranges).clip(0, N - 1))
        np.testing.assert_array_equal(dense(source.take(index)), X[index])

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_small_pieces_are_cut_anew(kind, tmp_path, small_pieces):
    """Passes over bounds that agree with no chunk, with gaps, backwards, and the rows of a random sample."""
    source = as_source(KINDS[kind](tmp_path))
    edges = [0, 1, 50, 50, 333, 340, 999, N]
    bounds = list(pairwise(edges))
    for wanted in (bounds, bounds[::2], bounds[::-1]):
        for (a, b), read in zip(wanted, list(source.batches(wanted)), strict=True):
            np.testing.assert_array_equal(dense(read()), X[a:b])
    index = np.sort(np.random.default_rng(1).choice(N, 100))
    np.testing.assert_array_equal(dense(source.take(index)), X[index])
    np.testing.assert_array_equal(dense(source.whole()), X)
    for a in range(0, N, 111):
        np.testing.assert_array_equal(dense(source.read(a, min(a + 111, N))), X[a : a + 111])
    assert dense(source.take([])).shape == (0, D)
    assert dense(source.read(5, 5)).shape == (0, D)


@pytest.mark.parametrize(
    "kind", ["array", "csr", "parquet-folder", "csv", "csv-gz", "feather", "zarr", "iterator", "polars"]
)
def test_threads_do_not_disturb_each_other(kind, sources):
    source = sources(kind)
    starts = np.random.default_rng(2).integers(0, N - 50, 60)
    gate = threading.Barrier(4)

    def read(mine):
        gate.wait()
        return [(a, dense(source.read(a, a + 50))) for a in mine]

    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(read, np.array_split(starts, 4)):
            for a, rows in got:
                np.testing.assert_array_equal(rows, X[a : a + 50])


@pytest.mark.parametrize("kind", REOPENED)
def test_sources_travel_to_other_processes(kind, sources):
    source = sources(kind)
    source.read(3, 5)
    data = pickle.dumps(source)
    if kind == "npy":
        assert len(data) < 2000  # the path, not the rows
    np.testing.assert_array_equal(dense(pickle.loads(data).read(10, 20)), X[10:20])


@pytest.mark.parametrize("kind", KINDS)
def test_fingerprint_tells_data_apart(kind, tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = as_source(KINDS[kind](tmp_path / "one")).fingerprint()
    assert as_source(KINDS[kind](tmp_path / "two")).fingerprint() == first
    other = X.copy()
    other[0, -1] += 1
    (tmp_path / "three").mkdir()
    monkeypatch.setitem(globals(), "X", other)
    monkeypatch.setattr(table, "__defaults__", (other,))
    assert as_source(KINDS[kind](tmp_path / "three")).fingerprint() != first


FILES = [k for k in KINDS if k.startswith(("memmap", "npy", "npz", "parquet", "csv", "tsv", "feather", "ipc"))]


@pytest.mark.parametrize("kind", FILES)
def test_one_cell_anywhere_makes_another_fingerprint(kind, tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    first = as_source(KINDS[kind](tmp_path / "one")).fingerprint()
    for i in (1, len(X) // 3, len(X) - 2):
        other = X.copy()
        other[i, 1] += 1
        folder = tmp_path / f"row{i}"
        folder.mkdir()
        with monkeypatch.context() as here:
            here.setitem(globals(), "X", other)
            here.setattr(table, "__defaults__", (other,))
            assert as_source(KINDS[kind](folder)).fingerprint() != first


def test_a_large_file_is_known_by_pieces_from_head_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 100)
    monkeypatch.setattr(base, "KNOWN_BYTES", 1000)
    path, small = tmp_path / "large", tmp_path / "small"
    path.write_bytes(bytes(range(250)) * 40)
    small.write_bytes(bytes(range(250)) * 3 + b"end")
    pieces = list(base.pieces_of(str(path)))
    assert len(pieces) == 11
    assert pieces[1] == bytes(range(100))
    assert pieces[-1] == bytes(range(150, 250))
    covered = np.zeros(753, bool)
    for at in np.linspace(0, 653, 8).astype(int):
        covered[at : at + 100] = True
    assert covered.all()
    assert len(list(base.pieces_of(str(small)))) == 9


# -- dtypes and values --


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i1", "f8"), ("u8", "f8"), ("?", "f8"), ("g", "f8")],
)
def test_dtypes(dtype, wanted, tmp_path):
    x = (np.arange(30).reshape(10, 3) % 2).astype(dtype)
    kinds = [
        x,
        sp.csr_array(x) if dtype not in ("f2", "g") else x,
        Sliced(x),
        Sliced(x, (2, 3)),
        lambda: iter([x, x[:0]]),
    ]
    if dtype != "g":
        kinds += [saved(tmp_path / "x.npy", np.save, x), pa.table({f"c{j}": x[:, j] for j in range(3)})]
        kinds += [pytest.importorskip("pandas").DataFrame(x), pytest.importorskip("dask.array").from_array(x, chunks=4)]
        pq.write_table(pa.table({f"c{j}": x[:, j] for j in range(3)}), tmp_path / "x.parquet")
        kinds += [tmp_path / "x.parquet"]
    for kind in kinds:
        source = as_source(kind)
        rows = source.read(2, 9)
        assert source.dtype == rows.dtype == np.dtype(wanted)
        assert rows.dtype.isnative
        np.testing.assert_array_equal(dense(rows), x[2:9].astype(wanted))


def test_rows_of_an_array_are_views_and_integers_are_converted_by_block():
    source = as_source(X)
    assert np.shares_memory(source.read(3, 9), X)
    assert source.whole() is X or np.shares_memory(source.whole(), X)
    assert source.in_memory
    csr = sp.csr_array(X)
    assert np.shares_memory(as_source(csr).read(3, 9).data, csr.data)
    few, many = as_source(np.ones((10, 2), np.int64)), as_source(np.ones((1 << 18, 3), np.int64))
    assert (few.x.dtype, few.nbytes) == (np.float64, 160)  # once for all passes
    assert (many.x.dtype, many.nbytes) == (np.int64, 6 << 20)


def test_nothing_passed_in_is_changed():
    csr = sp.csr_array((np.ones(4), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))  # unsorted, a duplicate
    rows = as_source(csr).read(0, 2)
    assert rows.has_canonical_format
    np.testing.assert_array_equal(rows.toarray(), [[2, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(csr.indices, [2, 0, 0, 1])


def test_decimals_truth_values_and_categories_are_numbers(tmp_path):
    t = pa.table(
        {
            "money": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.00")]),
            "flag": pa.array([True, False, None]),
            "count": pa.array([7, None, 9], pa.int64()),
            "small": pa.array([1, 2, None], pa.float16()),
            "level": pa.array([10, 20, 10]).dictionary_encode(),
            "nothing": pa.nulls(3),
        }
    )
    nan = np.nan
    wanted = [[1.25, 1, 7, 1, 10, nan], [nan, 0, nan, 2, 20, nan], [-3, nan, 9, nan, 10, nan]]
    pq.write_table(t, tmp_path / "x.parquet")
    feather.write_feather(t, str(tmp_path / "x.feather"))
    (tmp_path / "x.csv").write_text(
        "money,flag,count,small,level,nothing\n1.25,true,7,1,10,\n,false,NA,2,20,\n-3,,9,nan,10,\n"
    )
    for x in (t, t.to_pandas(), tmp_path / "x.parquet", tmp_path / "x.feather", str(tmp_path / "x.csv")):
        source = as_source(x)
        assert source.names == t.column_names
        np.testing.assert_array_equal(source.read(0, 3), wanted)


def test_quoted_csv_with_newlines_inside_and_latin_names(tmp_path):
    rows = [f'{i},"a ""b"", {i}\n\nnext",{i}.5' for i in range(300)]
    (tmp_path / "x.csv").write_bytes(("id,\u00e9t\u00e9,v\n" + "\r\n".join(rows)).encode("latin-1"))
    source = as_source(tmp_path / "x.csv", columns=["id", "v"])
    assert source.n == 300
    np.testing.assert_array_equal(source.read(100, 103), [[100, 100.5], [101, 101.5], [102, 102.5]])
    assert as_source(tmp_path / "x.csv", columns=[2]).names == ["v"]


def test_a_first_line_of_numbers_is_a_row_and_marks_of_missing_values_are_nan(tmp_path):
    (tmp_path / "x.csv").write_text("1,?\nNA,4\n")
    source = as_source(tmp_path / "x.csv")
    assert source.names is None
    np.testing.assert_array_equal(source.read(0, 2), [[1, np.nan], [np.nan, 4]])


def test_the_only_matrix_of_an_archive(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, y=np.arange(N))
    np.testing.assert_array_equal(as_source(tmp_path / "x.npz").read(3, 9), X[3:9])


def test_real_files(data_folder):
    pd = pytest.importorskip("pandas")
    path = data_folder / "missing" / "horse-colic.csv.gz"
    if not path.exists():
        pytest.skip("the data set is not there")
    frame = pd.read_csv(path, header=None, na_values="?")
    np.testing.assert_array_equal(as_source(path).whole(), frame.to_numpy(float))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_by_position_and_name(kind, tmp_path):
    x = KINDS[kind](tmp_path)
    if kind == "arrow-reader":
        x = x.read_all()
    source = as_source(x, columns=[2, 0])
    assert source.d == 2
    np.testing.assert_array_equal(dense(source.read(5, 9)), X[5:9][:, [2, 0]])
    if source.names:
        assert source.names == ["c2", "c0"]
        named = as_source(x, columns=["c2", "c0"])
        np.testing.assert_array_equal(dense(named.take([1, 7])), X[[1, 7]][:, [2, 0]])
        with pytest.raises(ValueError, match=r"c22.*c2"):
            as_source(x, columns=["c22"])
    else:
        with pytest.raises(ValueError, match="no column names"):
            as_source(x, columns=["c2"])
    with pytest.raises(ValueError, match="4 columns"):
        as_source(x, columns=[4])


def test_pandas_sparse_and_odd_column_labels():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(np.eye(3)), columns=list("abc"))
    source = as_source(frame, columns=["c", "a"])
    assert source.sparse
    assert source.names == ["c", "a"]
    np.testing.assert_array_equal(source.read(0, 3).toarray(), np.eye(3)[:, [2, 0]])
    assert as_source(pd.DataFrame(np.eye(2))).names is None
    with pytest.raises(TypeError, match="string names"):
        as_source(pd.DataFrame(np.eye(2), columns=["a", 1]))
    twice = pd.DataFrame([[1, 2.5, True]], columns=["a", "a", "b"])
    np.testing.assert_array_equal(as_source(twice).read(0, 1), [[1, 2.5, 1]])
    with pytest.raises(ValueError, match="more than once"):
        as_source(twice, columns=["a"])


def test_index_that_pandas_stored_is_left_out(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    frame.to_parquet(tmp_path / "x.parquet")
    assert as_source(tmp_path / "x.parquet").names == ["a"]


def test_an_index_must_be_sorted_and_in_range():
    for index in ([2, 1], [-1], [N]):
        with pytest.raises(ValueError, match="sorted"):
            as_source(X).take(index)
    with pytest.raises(IndexError, match=f"{N} rows"):
        as_source(X).read(0, N + 1)


# -- what is refused, and how --


def test_text_in_a_column_is_named(tmp_path):
    good = ["1.5"] * 5000
    bad = [*good[:4321], "abc", *good[4322:]]
    (tmp_path / "x.csv").write_text("\n".join(["a,b", *(f"{i},{v}" for i, v in enumerate(bad))]))
    gz(tmp_path / "x.csv.gz", (tmp_path / "x.csv").read_text())
    t = pa.table({"a": pa.array([None, 1.0]), "city": pa.array([None, "Paris"])})
    pq.write_table(t, tmp_path / "x.parquet")
    feather.write_feather(t, str(tmp_path / "x.feather"))
    for x, column, value, row in [
        (tmp_path / "x.csv", "b", "abc", 4321),
        (tmp_path / "x.csv.gz", "b", "abc", 4321),
        (tmp_path / "x.parquet", "city", "Paris", 1),
        (tmp_path / "x.feather", "city", "Paris", 1),
        (t, "city", "Paris", 1),
        (t.to_pandas(), "city", "Paris", 1),
        (pytest.importorskip("polars").from_arrow(t), "city", "Paris", 1),
        (t.to_pandas().assign(city=[1, "Paris"]), "city", "Paris", 1),
        (t.set_column(1, "city", pa.array([None, "Paris"]).dictionary_encode()), "city", "Paris", 1),
        (pytest.importorskip("dask.dataframe").from_pandas(t.to_pandas(), npartitions=1), "city", "Paris", 0),
    ]:
        with pytest.raises(ValueError, match=f"column '{column}'.*'{value}' in row {row} .*columns="):
            as_source(x).whole()
        kept = as_source(x, columns=["a"])
        assert kept.d == 1
        kept.whole()
    with pytest.raises(ValueError, match=r"column 1 .*'x' in row 1 "):
        as_source(np.array([[1, 2], [3, "x"]], dtype=object))
    with pytest.raises(ValueError, match=r"column 1 .*'x' in row 1 "):
        as_source([[1, 2], [3, "x"]])
    with pytest.raises(ValueError, match=r"column 'when'.*2020"):
        as_source(pytest.importorskip("pandas").DataFrame({"when": np.array(["2020-01-02"], "M8[s]"), "a": [1.0]}))


def test_in_memory_errors_in_scikit_learns_words():
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\."):
        as_source(np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of \d* is required\."):
        as_source(np.empty((12, 0)))
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead(.|\n)*Reshape your data"):
        as_source(np.arange(3.0))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        as_source(pytest.importorskip("pandas").Series([1.0]))
    with pytest.raises(ValueError, match="Expected 2D array, got scalar"):
        as_source(3.0)
    with pytest.raises(ValueError, match=r"dim 3.*reshape"):
        as_source(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_source(np.ones((2, 2), complex))
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_source(sp.csr_array(np.ones((2, 2), complex)))
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        as_source(np.array([[{"foo": "bar"}, 1.0]], dtype=object))
    with pytest.raises(TypeError, match=r"np\.matrix"):
        as_source(np.asmatrix(np.eye(2)))
    with pytest.raises(ValueError, match="dtype <U1"):
        as_source(np.array([["1", "2"]]))
    with pytest.raises(ValueError, match="row 0 has 2 values, row 1 has 1"):
        as_source([[1, 2], [3]])
    with pytest.raises(TypeError, match=r"dict.*pass a 2-d array"):
        as_source({"a": 1})
    with pytest.raises(TypeError, match=r"only once.*function"):
        as_source(x for x in [np.eye(2)])
    with pytest.raises(ValueError, match="structured"):
        as_source(np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]))
    broken = sp.csr_array(np.eye(3))
    broken.indices[0] = 7
    with pytest.raises(ValueError, match="ind"):
        as_source(broken)


class NotAnArray:
    def __array__(self, dtype=None, copy=None):
        return np.array(X)


def test_what_only_converts_to_an_array_is_converted():
    np.testing.assert_array_equal(as_source(NotAnArray()).read(0, 9), X[:9])


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet", "x.feather", "x.arrow", "x.csv", "x.csv.gz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_truncated_files_are_named(name, share, tmp_path):
    path = tmp_path / name
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    t = pa.table({f"c{j}": x[:, j] for j in range(3)})
    text = "\n".join(["a,b,c", *(",".join(map(repr, row)) for row in x.tolist())])
    {
        "x.npy": lambda: np.save(path, x),
        "x.npz": lambda: sp.save_npz(path, sp.csr_array(x)),
        "x.parquet": lambda: pq.write_table(t, path),
        "x.feather": lambda: feather.write_feather(t, str(path)),
        "x.arrow": lambda: pa.ipc.new_stream(str(path), t.schema).write_table(t, max_chunksize=500),
        "x.csv": lambda: path.write_text(text),
        "x.csv.gz": lambda: gz(path, text),
    }[name]()
    data = path.read_bytes()
    data = data[: int(share * len(data))]
    if name == "x.csv" and share:
        data = data[: data.rindex(b",")]  # the last row lacks a column
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"{name}.*|0 sample.*{name}") as e:
        as_source(path).whole()
    assert any(word in str(e.value) for word in ("truncated", "0 sample(s)"))


def test_files_that_are_missing_unknown_ragged_or_disagree(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet"):
        as_source(tmp_path / "nowhere.parquet")
    (tmp_path / "x.docx").touch()
    with pytest.raises(ValueError, match=r"\.docx.*\.npy.*\.parquet.*\.csv"):
        as_source(tmp_path / "x.docx")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3\n4,5\n")
    with pytest.raises(ValueError, match=r"x\.csv: row 1 .*has 1 columns where 2"):
        as_source(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"0 sample.*x\.csv"):
        as_source(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text('a,b\n1,2\n3,5" pipe\n' + "4,5\n" * 9)
    with pytest.raises(ValueError, match=r"x\.csv"):
        as_source(tmp_path / "x.csv").whole()
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="neither Parquet"):
        as_source(tmp_path / "none")
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "none" / "1.parquet")
    pq.write_table(pa.table({"a": [1.0], "z": [2.0]}), tmp_path / "none" / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet lacks b and also has z.*columns="):
        as_source(tmp_path / "none")
    assert as_source(tmp_path / "none", columns=["a"]).n == 2
    np.savez(tmp_path / "x.npz", a=X, b=X)
    with pytest.raises(ValueError, match=r"2 arrays to choose from \(a, b\)"):
        as_source(tmp_path / "x.npz")
    np.save(tmp_path / "o.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="objects"):
        as_source(tmp_path / "o.npy")


def test_iterators_must_give_the_same_rows_again():
    calls = []

    def shrinking():
        calls.append(1)
        return iter([X[:100], X[100 : 300 - 50 * len(calls)]])

    source = as_source(shrinking)
    assert source.n == 250
    with pytest.raises(ValueError, match="250 rows when it was first called and only 200"):
        source.whole()

    def growing():
        calls.append(1)
        return iter([X[: 10 * len(calls)]])

    with pytest.raises(ValueError, match="more"):
        as_source(growing).whole()
    once = iter([X])
    with pytest.raises(ValueError, match=r"only 0 .*new iterator"):
        as_source(lambda: once).whole()
    with pytest.raises(ValueError, match=r"block 1 .*3 dense columns.*4 dense"):
        as_source(lambda: iter([X, X[:, :3]]))
    with pytest.raises(ValueError, match=r"block 0.*Expected 2D"):
        as_source(lambda: iter([X[0]]))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        as_source(lambda: iter([]))
    with pytest.raises(TypeError, match="iterator"):
        as_source(lambda: 3)


def test_iterators_are_read_a_block_at_a_time():
    given = []

    def noted():
        for a in range(0, N, 100):
            given.append(a)
            yield X[a : a + 100]

    source = as_source(noted)
    given.clear()
    reads = source.batches([(0, 50), (50, 100), (100, 250)])
    next(reads), next(reads)
    assert given == [0]
    next(reads)
    assert given == [0, 100, 200]


def test_budget_names_the_bytes_and_the_way_out(tmp_path):
    source = as_source(saved(tmp_path / "x.parquet", lambda f: pq.write_table(table(), f)))
    assert source.nbytes == N * D * 8
    with pytest.raises(MemoryError, match=r"31\.2 KiB.*budget is 1000 bytes.*float32"):
        source.whole(budget=1000)
    assert as_source(X).whole(budget=10) is not None  # in memory already


def test_dask_reads_only_the_chunks_it_needs():
    da = pytest.importorskip("dask.array")
    made = []

    def chunk(block_info=None):
        a, b = block_info[None]["array-location"][0]
        made.append(a)
        return X[a:b]

    lazy = da.map_blocks(chunk, chunks=((250,) * 4, (D,)), dtype=float, meta=np.empty((0, 0)))
    source = as_source(lazy)
    np.testing.assert_array_equal(source.read(260, 270), X[260:270])
    assert made == [250]
    assert source.collection.shape == (N, D)
    unknown = da.from_array(X, chunks=100)
    unknown = unknown[unknown[:, -1] > 0]
    assert as_source(unknown).n == (X[:, -1] > 0).sum()
    assert np.isnan(unknown.shape[0])  # what was passed in stays as it was


def test_sequential_reads_decode_each_row_group_once(tmp_path, monkeypatch):
    from unmix.engine.sources import base, columnar

    for module in (base, columnar):
        monkeypatch.setattr(module, "PIECE", 64 * D * 8)
    path = saved(tmp_path / "x.parquet", lambda f: pq.write_table(table(), f, row_group_size=500))
    source = as_source(path)
    opened = []
    inner = source._pieces
    monkeypatch.setattr(source, "_pieces", lambda origin: opened.append(origin) or inner(origin))
    for a in range(0, N, 50):
        source.read(a, a + 50)
    assert opened == [0]
    source.take([3, 700, 701])
    assert opened == [0, 0, 500]  # the first row group is left after row 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_streaming_parquet_needs_little_memory(tmp_path):
    """A folder of 320 MB in two files, one of which is a single row group; the process grows by far less.

    The peak is the process's own (VmHWM): the one that `resource` tells is inherited from the parent.
    """
    x = np.random.default_rng(0).normal(size=(1_000_000, 20))
    columns = pa.table({f"c{j}": x[:, j] for j in range(20)})
    for size in (1_000_000, 100_000):
        pq.write_table(columns, tmp_path / f"{size}.parquet", size, use_dictionary=False, compression="none")
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) > 300_000_000
    code = f"""
        import re, numpy as np
        import pyarrow.parquet
        from unmix.engine.sources import as_source, base
        peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
        before = peak()
        source = as_source({str(tmp_path)!r})
        total = 0.0
        for read in source.batches([(a, min(a + 7000, source.n)) for a in range(0, source.n, 7000)]):
            total += read().sum()
        part = source.read(1_600_000, 1_601_000).sum()
        source.take(np.arange(0, source.n, 999))
        print(source.n, total, part, peak() - before)
    """
    env = {"PYTHONPATH": SRC, "PATH": ""}
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, env=env, check=True)
    n, total, part, grown = map(float, out.stdout.split())
    assert n == 2 * len(x)
    np.testing.assert_allclose(total, 2 * x.sum(), rtol=1e-9)
    np.testing.assert_allclose(part, x[600_000:601_000].sum(), rtol=1e-9)
    assert grown < 100, f"reading grew the process by {grown:.0f} MB"


def test_import_stays_light():
    code = (
        "import sys, unmix.engine.sources, unmix.io.write; "
        "heavy = {'pyarrow', 'pandas', 'polars', 'narwhals', 'zarr', 'dask', 'numba'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": SRC, "PATH": ""}, check=True)


# -- writing --


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_written_rows_come_back(suffix, dtype, tmp_path, monkeypatch):
    from unmix.io import write

    monkeypatch.setattr(write, "ROW_GROUP", 3000)
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(500, 3)) * 1e3).astype(dtype)
    if dtype != "i8":
        x[3, 1] = np.nan
    path = tmp_path / f"x.{suffix}"
    assert write_rows(path, (x[a : a + 30] for a in range(0, 500, 30)), ["a", "b", "c"]) == 500
    source = as_source(path)
    np.testing.assert_array_equal(source.whole().astype(dtype), x)
    assert source.names == (None if suffix == "npy" else ["a", "b", "c"])
    assert [f.name for f in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy"])
def test_nothing_is_half_written(suffix, tmp_path, monkeypatch):
    from unmix.io import write

    monkeypatch.setattr(write, "ROW_GROUP", 1)
    path = tmp_path / f"x.{suffix}"
    path.write_text("what was here before")

    def failing():
        yield X
        yield X
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="fire"):
        write_rows(path, failing())
    assert [f.name for f in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "what was here before"
    with pytest.raises(ValueError, match="block 1 has 3 columns"):
        write_rows(path, [X, X[:, :3]])
    with pytest.raises(ValueError, match="names has 1"):
        write_rows(path, [X], ["a"])
    with pytest.raises(ValueError, match="nothing to write"):
        write_rows(path, [])
    assert path.read_text() == "what was here before"
    with pytest.raises(ValueError, match=r"\.docx.*\.parquet"):
        write_rows(tmp_path / "x.docx", [X])
    with pytest.raises(FileNotFoundError, match="no folder"):
        write_rows(tmp_path / "none" / "x.csv", [X])


def test_labels_and_sparse_blocks_can_be_written(tmp_path):
    write_rows(tmp_path / "labels.csv", [np.array([1, 0]), np.array([2])], ["label"])
    assert (tmp_path / "labels.csv").read_text().split() == ['"label"', "1", "0", "2"]
    write_rows(tmp_path / "x.npy", [sp.csr_array(np.eye(2))])
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.eye(2))
