"""An entry that a sparse matrix does not hold is zero, or was not observed: who says it, and what follows."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import unmix
from unmix import as_source, triples
from unmix.engine import tree
from unmix.engine.block import Block, Local
from unmix.engine.rows import Rules
from unmix.engine.sample import distinct, mean, whole_block
from unmix.model import fit_together


class Parts(NamedTuple):
    v: np.ndarray  # (d,)


class Stats(NamedTuple):
    A: np.ndarray  # (d,)
    B: np.ndarray  # (d,)


class Tastes(unmix.Model):
    """One taste:  x_ij ≈ z_i v_j  over the entries (i, j) that were observed.

    local    z_i = Σ_j x_ij v_j / Σ_j v_j²
    stats    A_j = Σ_i w_i z_i x_ij      B_j = Σ_i w_i z_i²
    update   v = A / B                                          [of a column that nobody observed: stays]
    """

    sparse, missing, absent, collect = True, True, "unobserved", True

    def __init__(self, max_iter=200, tol=1e-10, random_state=0):
        self.max_iter, self.tol, self.random_state = max_iter, tol, random_state

    def start(self, before, data, rng):
        return Parts(mean(data))

    def local(self, U, b):
        (n, d), (i, j, x) = b.x.shape, entries(b)
        square = np.bincount(i, U.v[j] ** 2, n)
        z = np.bincount(i, x * U.v[j], n) / np.where(square > 0, square, 1)
        w = np.ones(n) if b.w is None else b.w
        stats = Stats(np.bincount(j, (w * z)[i] * x, d), np.bincount(j, (w * z**2)[i], d))
        return Local(z, stats, float(w[i] @ (x - z[i] * U.v[j]) ** 2))

    def update(self, U, stats):
        return Parts(np.where(stats.B > 0, stats.A / np.where(stats.B > 0, stats.B, 1), U.v))

    def goal(self, U, first):
        return self.tol * first

    def publish(self, fit):
        self.components_, self.z_ = fit.U.v[None], fit.z

    def encode(self, U, b):
        return self.local(U, b).z[:, None]


class Lenient(Tastes):
    """The same, where nobody need have observed a column."""

    empty_columns = True


def entries(b):
    """Rows, columns and values of what was observed."""
    if b.absent:
        return np.repeat(np.arange(b.x.shape[0]), np.diff(b.x.indptr)), b.x.indices, b.x.data.astype(np.float64)
    i, j = np.nonzero(np.ones(b.x.shape, bool) if b.observed is None else b.observed)
    return i, j, b.x[i, j].astype(np.float64)


@pytest.fixture(scope="module")
def planted():
    """Dense rows with NaN, the same as CSR with explicit zeros, and the planted parts."""
    rng = np.random.default_rng(3)
    z, v = rng.uniform(1, 2, 600), rng.uniform(1, 3, 50)
    X = np.outer(z, v) + rng.normal(0, 0.01, (600, 50))
    X[rng.random(X.shape) > 0.1] = np.nan
    X[0], X[1, 0] = np.nan, 0.0  # somebody who observed nothing, and a rating of zero
    return X, csr(X), v


def csr(X):
    """The cells of X that are not NaN."""
    i, j = np.nonzero(~np.isnan(X))
    return sp.csr_array((X[i, j], (i, j)), shape=X.shape)


def direction(model):
    return model.components_[0] / np.linalg.norm(model.components_)


def same(a, b, rtol=1e-9):
    np.testing.assert_allclose(a.components_, b.components_, rtol=rtol)
    np.testing.assert_allclose(a.z_, b.z_, rtol=rtol)
    assert a.n_iter_ == b.n_iter_


# ---------------------------------------------------------------- a model whose absent entries were not observed


def test_planted_parts_are_found_from_a_tenth_of_the_entries(planted):
    _, S, v = planted
    model = Tastes().fit(S)
    assert model.result_ == "converged"
    np.testing.assert_allclose(direction(model)[1:], (v / np.linalg.norm(v))[1:], rtol=0.02)
    assert model.z_[0] == 0  # who observed nothing has nothing of the part
    assert model.transform(S)[0] == 0


def test_dense_rows_with_nan_give_the_same_numbers(planted):
    X, S, _ = planted
    assert S.nnz == (~np.isnan(X)).sum()
    with unmix.config(block_rows=64):
        dense = Tastes().fit(X)
        same(Tastes().fit(S), dense)
        same(Tastes().fit(as_source(S, absent="unobserved")), dense)
        np.testing.assert_allclose(Tastes().fit(S).score(S), dense.score(X), rtol=1e-9)
    one = Tastes().fit(S.astype(np.float32))
    assert one.components_.dtype == np.float32
    np.testing.assert_allclose(direction(one), direction(dense), rtol=1e-4)


def test_every_way_in_gives_the_same_bits(planted, tmp_path):
    _, S, _ = planted
    sp.save_npz(tmp_path / "s.npz", S)
    i, j = S.tocoo().coords
    ways = {
        "csc": S.tocsc(),
        "coo": S.tocoo(),
        "npz": tmp_path / "s.npz",
        "stream": lambda: (S[a : a + 47] for a in range(0, 600, 47)),
        "triples": triples(i, j, S.data, rows=600, columns=50),
        "pickled": pickle.loads(pickle.dumps(as_source(S, absent="unobserved"))),
    }
    for block_rows in (64, 1000):
        with unmix.config(block_rows=block_rows):
            wanted = Tastes().fit(S)
            for name, way in ways.items():
                model = Tastes().fit(way)
                assert np.array_equal(model.components_, wanted.components_), name
                assert np.array_equal(model.z_, wanted.z_), name
            with unmix.config(runner="serial"):
                assert np.array_equal(Tastes().fit(S).components_, wanted.components_)


def lazy(S):
    """The rows of S as a Dask array."""
    import dask.array as da

    at = da.from_array(np.arange(600)[:, None], chunks=(150, 1))
    return at.map_blocks(lambda i: S[i[:, 0]], dtype=S.dtype, chunks=((150,) * 4, (50,)), meta=S[:0])


def test_dask_keeps_explicit_zeros(planted):
    pytest.importorskip("distributed")
    from distributed import Client

    _, S, _ = planted
    blocks = lazy(S)
    assert as_source(blocks, absent="unobserved").whole().nnz == S.nnz
    ends = np.r_[S.indptr[:-1], S.nnz + 1]  # the last entry once more
    twice = sp.csr_array((np.r_[S.data, 1.0], np.r_[S.indices, S.indices[-1]], ends), S.shape)
    with pytest.raises(
        ValueError, match=r"chunk that begins with row 450: .*row 149, column \d+ occurs more than once"
    ):
        Tastes().fit(lazy(twice))
    with unmix.config(block_rows=64):
        wanted = Tastes(max_iter=5, tol=0).fit(S)
        assert np.array_equal(Tastes(max_iter=5, tol=0).fit(blocks).components_, wanted.components_)
        client = Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=2)
        try:
            with unmix.config(runner=client):
                for X in (S, blocks):
                    model = Tastes(max_iter=5, tol=0).fit(X)
                    assert np.array_equal(model.components_, wanted.components_)
        finally:
            client.close()


def test_weights(planted):
    _, S, _ = planted
    w = np.random.default_rng(0).integers(0, 3, 600)
    twice = Tastes(tol=0, max_iter=30).fit(S[np.repeat(np.arange(600), w)])
    model = Tastes(tol=0, max_iter=30).fit(S, sample_weight=w)
    np.testing.assert_allclose(model.components_, twice.components_, rtol=1e-9)


def test_online_steps(planted):
    _, S, _ = planted
    model = Tastes()
    for a in range(0, 600, 200):
        model.partial_fit(S[a : a + 200])
    assert np.corrcoef(direction(model), direction(Tastes().fit(S)))[0, 1] > 0.99


def test_an_explicit_zero_is_a_value(planted):
    X, S, _ = planted
    without = S.copy()
    without.eliminate_zeros()
    assert without.nnz == S.nnz - 1
    bare = X.copy()
    bare[1, 0] = np.nan
    assert Tastes().fit(S).components_[0, 0] < 0.99 * Tastes().fit(without).components_[0, 0]
    with unmix.config(block_rows=64):
        same(Tastes().fit(without), Tastes().fit(bare))


def test_a_stored_nan_is_an_absent_entry(planted):
    _, S, _ = planted
    holes = S.copy()
    holes.data[::7] = np.nan
    i, j = holes.tocoo().coords
    kept = ~np.isnan(holes.data)
    less = sp.csr_array((holes.data[kept], (i[kept], j[kept])), shape=S.shape)
    assert np.array_equal(Tastes().fit(holes).components_, Tastes().fit(less).components_)
    assert np.isnan(holes.data).any()  # nothing passed in is changed
    holes.data[3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        Tastes().fit(holes)
    with pytest.raises(ValueError, match="cannot mark a cell as missing"):
        unmix.KMeans(2).fit(less * np.nan)


def test_a_column_that_nobody_observed(planted):
    X, S, _ = planted
    i, j = S.tocoo().coords
    S = sp.csr_array((S.data[j != 4], (i[j != 4], j[j != 4])), shape=S.shape)
    with pytest.raises(ValueError, match=r"X holds no entry in column 4: nothing was observed.*Drop that column"):
        Tastes().fit(S)
    with pytest.raises(ValueError, match="X holds no entry in column 4"):
        Tastes().partial_fit(S)
    with pytest.raises(ValueError, match="X holds no entry in column 'i4'"):
        Tastes().fit(triples(i[j != 4], [f"i{k}" for k in j[j != 4]], S.data, columns=[f"i{k}" for k in range(50)]))
    X = X.copy()
    X[:, 4] = np.nan
    with unmix.config(block_rows=64):
        same(Lenient().fit(S), Lenient().fit(X))
    assert np.isfinite(Lenient().fit(S).components_).all()
    seen_by_nobody_who_counts = np.ones(600)
    seen_by_nobody_who_counts[S[:, [7]].tocoo().coords[0]] = 0
    rest = Lenient().fit(S, sample_weight=seen_by_nobody_who_counts)
    assert rest.result_ == "converged"
    with pytest.raises(ValueError, match="no entry in column"):
        Tastes().fit(S, sample_weight=seen_by_nobody_who_counts)


# ---------------------------------------------------------------- who says it, and who refuses


def test_a_model_that_reads_zeros_refuses(planted):
    _, S, _ = planted
    source = as_source(S, absent="unobserved")
    for model in (unmix.KMeans(2, random_state=0), unmix.NMF(2), unmix.GaussianMixture(2)):
        with pytest.raises(ValueError, match=rf"{type(model).__name__} reads them as zeros.*absent=\"zero\""):
            model.fit(source)
    said = unmix.KMeans(2, random_state=0).fit(as_source(source, absent="zero"))
    assert np.array_equal(said.labels_, unmix.KMeans(2, random_state=0).fit(S).labels_)
    with pytest.raises(ValueError, match="reads them as zeros"):
        said.predict(source)


def test_what_a_source_says():
    S = sp.csr_array(np.eye(3))
    assert as_source(S).absent == as_source(S, absent="zero").absent == "zero"
    said = as_source(S, absent="unobserved")
    assert said.absent == as_source(said).absent == "unobserved"
    assert np.shares_memory(said.x.data, S.data)
    assert as_source(np.eye(3), absent="unobserved").absent == "zero"  # dense rows hold every entry
    assert as_source(lambda: iter([said, said])).absent == "unobserved"
    with pytest.raises(ValueError, match=r"absent='nothing'.*'zero' or 'unobserved'"):
        as_source(S, absent="nothing")
    for other in (sp.dia_array(np.eye(3)), sp.bsr_array(np.eye(4), blocksize=(2, 2))):
        assert as_source(other).absent == "zero"
        with pytest.raises(ValueError, match="pass CSR, CSC or COO"):
            as_source(other, absent="unobserved")


def test_entries_for_one_cell_are_added_only_where_absent_is_zero():
    value, at = np.array([1.0, 2, 3]), (np.array([0, 1, 1]), np.array([0, 2, 2]))
    coo = sp.coo_array((value, at), shape=(2, 3))
    rows = sp.csr_array((value, at[1], np.array([0, 1, 3])), shape=(2, 3))
    for S in (coo, rows, rows.tocsc()):
        assert as_source(S).whole().toarray()[1, 2] == 5
        for refuse in (lambda S: as_source(S, absent="unobserved"), Tastes().fit, lambda S: Tastes().fit(as_source(S))):
            with pytest.raises(ValueError, match=r"row 1, column 2 occurs more than once.*duplicates='mean'"):
                refuse(S)
    with pytest.raises(ValueError, match=r"block 1 of the iterator: .*row 1, column 2 occurs more than once"):
        Tastes().fit(lambda: iter([sp.csr_array(np.eye(3)), rows]))
    with pytest.raises(ValueError, match=r"block 1 of the iterator: .*row 1, column 2 occurs more than once"):
        fit_together([Tastes()], lambda: iter([sp.csr_array(np.eye(3)), rows]), [None], [0])


# ---------------------------------------------------------------- rows on their way


def pair():
    """Rows of the same values, one of them with an explicit zero."""
    return sp.csr_array((np.array([1.0, 0, 1, 1]), np.array([0, 1, 0, 0]), np.array([0, 2, 3, 4])), shape=(3, 3))


@pytest.mark.parametrize("columns", [None, [1, 0]])
def test_explicit_zeros_survive(columns, tmp_path):
    S, wanted = pair(), [2, 1, 1]
    sp.save_npz(tmp_path / "s.npz", S)
    for way in (S, S.tocsc(), S.tocoo(), tmp_path / "s.npz", lambda: iter([S[:1], S[1:]])):
        source = as_source(way, columns=columns, absent="unobserved")
        for s in (source, pickle.loads(pickle.dumps(source)) if not callable(way) else source):
            assert list(np.diff(s.whole().indptr)) == wanted
            assert list(np.diff(s.read(0, 3).indptr)) == wanted
            assert list(np.diff(s.take([0, 0, 2]).indptr)) == [2, 2, 1]
            assert [read().nnz for read in s.batches([(0, 1), (1, 3)])] == [2, 2]


def test_rows_are_equal_where_they_were_observed_alike(monkeypatch):
    S = pair()
    zero = distinct(Block(S))
    assert zero.x.shape[0] == 1
    assert list(zero.w) == [3]
    seen = distinct(Block(S, absent=True))
    assert seen.absent
    assert seen.observed is None
    assert sorted(zip(np.diff(seen.x.indptr).tolist(), seen.w.tolist(), strict=True)) == [(1, 2), (2, 1)]
    signed = S.copy()
    signed.data[1] = -0.0
    both = distinct(Block(sp.vstack([S, signed], format="csr"), absent=True))
    assert sorted(both.w) == [2, 4]
    # where the projections of unequal rows collide, the cells decide
    monkeypatch.setattr("unmix.engine.sample.generator", lambda *a: Flat())
    assert sorted(distinct(Block(sp.vstack([S, signed], format="csr"), absent=True)).w) == [2, 4]


class Flat:
    """A generator that tells no rows apart."""

    def normal(self, size):
        return np.zeros(size)


def test_means_are_of_what_was_observed():
    S = pair()
    np.testing.assert_allclose(mean(Block(S, absent=True))[:2], [1, 0])
    np.testing.assert_allclose(mean(Block(S, w=np.array([1.0, 0, 2]))), [1, 0, 0])
    source = as_source(S, absent="unobserved")
    rules = Rules.of(Tastes(), source)
    b = whole_block(source.read(0, 3), None, rules)
    assert b.absent
    assert b.observed is None
    assert b.x.nnz == 4
    assert not Rules.of(Tastes(), as_source(np.eye(3))).absent
    assert not Rules.of(unmix.KMeans(), as_source(S)).absent


# ---------------------------------------------------------------- triples


def test_triples_by_name():
    source = triples(["bob", "ann", "bob"], ["tea", "tea", "rum"], [0, 5, 3])
    assert (source.n, source.d, source.absent, source.dtype) == (2, 2, "unobserved", np.float64)
    assert list(source.rows) == ["ann", "bob"]
    assert source.names == list(source.columns) == ["rum", "tea"]
    assert source.whole().nnz == 3
    np.testing.assert_array_equal(source.whole().toarray(), [[0, 5], [3, 0]])
    model = Tastes().fit(source)
    assert list(model.feature_names_in_) == ["rum", "tea"]
    new = triples(["eve"], ["tea"], [4.0], columns=source.columns)
    assert model.transform(new).shape == (1, 1)
    with pytest.raises(ValueError, match="column gin of triple 0 is not among the 2 columns asked for"):
        triples(["eve"], ["gin"], [4.0], columns=source.columns)
    with pytest.raises(ValueError, match="column 3 of triple 1 is not among the 3 columns"):
        triples([0, 1], [0, 3], [1, 1], rows=2, columns=3)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_triples_of_a_table(package):
    frames = pytest.importorskip(package)
    make = frames.table if package == "pyarrow" else frames.DataFrame
    table = make({"user": ["b", "a", "b"], "item": [7, 7, 2], "stars": [1.0, 2.0, 3.0], "when": [1, 2, 3]})
    source = triples("user", "item", "stars", data=table)
    assert source.names == ["2", "7"]
    np.testing.assert_array_equal(source.whole().toarray(), [[0, 2], [3, 1]])
    with pytest.raises(ValueError, match="data has no column 'rating'; it has user, item, stars, when"):
        triples("user", "item", "rating", data=table)


def test_triples_that_repeat_a_cell():
    given = ["a", "a", "a", "b"], ["x", "x", "y", "x"], [1, 4, 0, 2]
    with pytest.raises(ValueError, match="row a, column x occurs more than once; keep one entry"):
        triples(*given)
    for how, wanted in {"mean": 2.5, "sum": 5, "last": 4}.items():
        source = triples(*given, duplicates=how)
        assert source.whole().toarray()[0, 0] == wanted
        assert source.whole().nnz == 3
    with pytest.raises(ValueError, match="duplicates='first': take one of error, mean, sum, last"):
        triples(*given, duplicates="first")


def test_triples_that_are_none():
    with pytest.raises(ValueError, match="three 1-d arrays of one length"):
        triples([1, 2], [1, 2], [1])
    with pytest.raises(ValueError, match="three 1-d arrays of one length"):
        triples([], [], [])
    with pytest.raises(ValueError, match="numbers are needed"):
        triples([1], [2], ["good"])
    for missing in ([None, "a"], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="the column of triple 0 is missing"):
            triples([1, 2], missing, [1, 2])


def test_no_question_takes_unobserved_entries_for_zeros(planted):
    from sklearn.cluster import KMeans
    from sklearn.ensemble import IsolationForest

    from unmix.outlier import scores
    from unmix.validate import silhouette, stability, variation

    _, S, _ = planted
    source, labels = as_source(S, absent="unobserved"), np.arange(S.shape[0]) % 2
    fitted, density = unmix.KMeans(2, random_state=0).fit(S), IsolationForest(random_state=0).fit(S.toarray())
    for ask in (
        lambda: silhouette(source, labels),
        lambda: variation(source, labels),
        lambda: stability(unmix.KMeans(2), source, n=2),
        lambda: stability(KMeans(2), source, n=2),
        lambda: scores(fitted, source),
        lambda: scores(density, source),
        lambda: unmix.OutlierDetector(unmix.KMeans(2)).fit(source),
        lambda: unmix.OutlierDetector(unmix.PCA(2)).fit(source),
        lambda: unmix.OutlierDetector().fit(source),
    ):
        with pytest.raises(ValueError, match=r"were not observed, but .* reads them as zeros"):
            ask()
    with pytest.raises(ValueError, match=r"RowDensity reads them as zeros: pass dense rows with NaN there, or"):
        unmix.OutlierDetector().fit(source)
    with pytest.raises(ValueError, match=r"LatentDirichletAllocation reads them as zeros: as_source"):
        unmix.LatentDirichletAllocation(2).fit(source)


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (([0, 1], [0, 1], np.ma.masked_equal([1.0, 2.0], 2)), {}, "value has masked entries"),
        (([0, 1], [0, 1], [1.0, 2.0]), {"rows": 0}, "rows=0: give different names"),
        (([0, 1], [0, 1], [1.0, 2.0]), {"columns": []}, "at least one"),
        (([0, 1], [0, 1], [1.0, 2.0]), {"columns": [0, 1, 1]}, "give different names"),
        ((np.array([0, "a"], object), [0, 1], [1.0, 2.0]), {}, "some rows of the triples are called by text"),
        (("a", "b", "c"), {"data": "ratings.csv"}, "data is a str: pass a data frame"),
    ],
)
def test_hostile_triples(given, more, message):
    with pytest.raises((ValueError, TypeError), match=message):
        triples(*given, **more)


def test_triples_in_half_precision():
    assert triples([0, 1], [0, 1], np.array([1, 2], np.float16)).dtype == np.float32
    assert repr(triples([0, 1], [0, 1], [1.0, 2.0])) == "<2 rows × 2 columns, 2 entries observed>"


SPARSE = [name for name in unmix.models() if getattr(unmix, name).sparse and getattr(unmix, name).absent == "zero"]


def with_explicit_zeros(X, rng):
    """The rows as CSR, and the same with zeros among the entries."""
    stored = (X != 0) | (rng.random(X.shape) < 0.3)
    ends = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    return sp.csr_array(X), sp.csr_array((X[stored], np.nonzero(stored)[1], ends), shape=X.shape)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SPARSE)
def test_explicit_zeros_change_no_bits(name):
    rng = np.random.default_rng(0)
    model, X, _ = getattr(unmix, name).example(np.random.default_rng(3))
    plain, stored = with_explicit_zeros(np.where(rng.random(X.shape) < 0.5, X, 0.0), rng)
    assert stored.nnz > plain.nnz
    pieces = lambda: iter([stored[:100], stored[100:]])  # noqa: E731
    a = clone(model).fit(plain)
    for source in (stored, stored.tocsc(), pieces):
        b = clone(model).fit(source)
        if source is pieces:  # blocks of a stream may be cut elsewhere: its size is not known
            a = clone(model).fit(lambda: iter([plain[:100], plain[100:]]))
        for u, v in zip(tree.leaves(a.parts), tree.leaves(b.parts), strict=True):
            np.testing.assert_array_equal(u, v)
        np.testing.assert_array_equal(np.asarray(a.transform(plain)), np.asarray(a.transform(stored)))


def test_explicit_zeros_of_dask_chunks_are_dropped_or_kept():
    da = pytest.importorskip("dask.array")
    plain, stored = with_explicit_zeros(np.eye(6) * 2.0, np.random.default_rng(0))
    chunks = da.concatenate([da.from_array(stored[i : i + 3], chunks=(3, 6), asarray=False) for i in (0, 3)])
    source = as_source(chunks)
    assert source.read(0, 6).nnz == plain.nnz
    kept = source.reading("unobserved")
    assert kept.read(0, 6).nnz == stored.nnz
    assert kept.reading("zero").read(0, 6).nnz == plain.nnz
