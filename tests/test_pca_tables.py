"""Tables and biplots of PCA against prince, against R's definitions, and against closed forms."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine

import unmix
from unmix import PCA


def wine():
    X = load_wine().data
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_tables_are_princes():
    prince = pytest.importorskip("prince")
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(load_iris().data, columns=["a", "b", "c", "d"])
    w = np.random.default_rng(0).uniform(0.5, 3.0, len(X))
    for options in ({}, {"sample_weight": w}):
        theirs = prince.PCA(n_components=4, rescale_with_std=False, engine="scipy").fit(X, **options)
        pca = PCA().fit(X, **options)
        ours = pca.tables(X, **options, supplementary_rows=X[:5] + 1.0)
        turn = np.sign((ours.rows.coordinates * theirs.row_coordinates(X).to_numpy()).sum(axis=0))
        np.testing.assert_allclose(ours.rows.coordinates * turn, theirs.row_coordinates(X), atol=1e-8)
        np.testing.assert_allclose(ours.rows.cos2, theirs.row_cosine_similarities(X), atol=1e-8)
        np.testing.assert_allclose(ours.rows.contributions, theirs.row_contributions_, atol=1e-8)
        np.testing.assert_allclose(ours.columns.correlations * turn, theirs.column_correlations, atol=1e-8)
        np.testing.assert_allclose(ours.columns.cos2, theirs.column_cosine_similarities_, atol=1e-8)
        np.testing.assert_allclose(ours.columns.contributions, theirs.column_contributions_, atol=1e-8)
        new = theirs.row_coordinates(X[:5] + 1.0)
        np.testing.assert_allclose(ours.supplementary_rows.coordinates * turn, new, atol=1e-8)


def test_supplementary_columns_are_princes():
    prince = pytest.importorskip("prince")
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(wine()[:, :6], columns=list("abcdef"))
    theirs = prince.PCA(n_components=4, engine="scipy").fit(X, supplementary_columns=["e", "f"])
    active = X[list("abcd")]
    ours = PCA().fit(active).tables(active, supplementary_columns=X[["e", "f"]])
    turn = np.sign((ours.rows.coordinates * theirs.row_coordinates(X).to_numpy()).sum(axis=0))
    assert ours.supplementary_columns.names == ["e", "f"]
    truth = theirs.column_correlations.loc[["e", "f"]]
    np.testing.assert_allclose(ours.supplementary_columns.correlations * turn, truth, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_tables_are_their_definitions(weighted):
    X = wine()
    w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    pca = PCA().fit(X, sample_weight=w)
    found = pca.tables(X, w)
    apart = X - np.average(X, axis=0, weights=w)
    C = np.cov(X.T, fweights=w.astype(int))
    np.testing.assert_allclose(found.rows.coordinates, apart @ pca.components_.T, atol=1e-9)
    np.testing.assert_allclose(found.rows.cos2.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.rows.contributions.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.columns.cos2.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.columns.contributions.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.columns.contributions, found.columns.coordinates**2 / found.variance)
    both = np.column_stack([X, found.rows.coordinates])
    R = np.corrcoef(np.repeat(both, w.astype(int), axis=0).T)[:13, 13:]
    np.testing.assert_allclose(found.columns.correlations, R, atol=1e-9)
    np.testing.assert_allclose(found.columns.coordinates @ found.columns.coordinates.T, C, atol=1e-9)
    np.testing.assert_allclose(found.variance, pca.explained_variance_)
    np.testing.assert_allclose(found.together[-1], 1.0)


def test_fewer_components_are_the_first_of_all():
    X = wine()
    every, few = PCA().fit(X).tables(X), PCA(3, whiten=True).fit(X).tables(X)
    for side in ("rows", "columns"):
        for name in ("coordinates", "cos2", "contributions"):
            a, b = (getattr(getattr(t, side), name) for t in (few, every))
            np.testing.assert_allclose(a, b[:, :3], atol=1e-8, err_msg=f"{side} {name}")
    assert (few.columns.cos2.sum(axis=1) < 1).all()
    assert (few.rows.cos2.sum(axis=1) <= 1 + 1e-9).all()


def test_a_supplementary_row_or_column_that_was_active_lies_where_it_lay():
    X = wine()
    pca = PCA(4).fit(X)
    found = pca.tables(X, supplementary_rows=X[:7], supplementary_columns=X[:, [2, 5]])
    np.testing.assert_allclose(found.supplementary_rows.coordinates, found.rows.coordinates[:7])
    np.testing.assert_allclose(found.supplementary_rows.cos2, found.rows.cos2[:7])
    assert found.supplementary_rows.contributions is None
    for name in ("coordinates", "cos2", "correlations"):
        new, old = (getattr(points, name) for points in (found.supplementary_columns, found.columns))
        np.testing.assert_allclose(new, old[[2, 5]], atol=1e-8, err_msg=name)
    assert found.supplementary_columns.names == ["y0", "y1"]


def test_supplementary_columns_with_missing_cells_go_by_the_others():
    X = wine()
    extra = X[:, :1] + np.random.default_rng(0).normal(size=(len(X), 1))
    extra[::4] = np.nan
    found = PCA(2).fit(X).tables(X, supplementary_columns=extra).supplementary_columns
    rows = np.arange(len(X)) % 4 > 0
    z = PCA(2).fit(X).transform(X)[rows]
    truth = [np.corrcoef(extra[rows, 0], z[:, a])[0, 1] for a in range(2)]
    np.testing.assert_allclose(found.correlations[0], truth, atol=1e-9)


def test_sparse_rows_and_single_precision():
    X = np.where(np.random.default_rng(0).random((200, 12)) < 0.3, np.random.default_rng(1).normal(size=(200, 12)), 0)
    dense, thin = PCA(5).fit(X), PCA(5).fit(sp.csr_array(X))
    for a, b in zip(dense.tables(X)[3:5], thin.tables(sp.csr_array(X))[3:5], strict=True):
        np.testing.assert_allclose(a.cos2, b.cos2, atol=1e-8)
        np.testing.assert_allclose(a.contributions, b.contributions, atol=1e-8)
    single = PCA(5).fit(X.astype(np.float32)).tables(X.astype(np.float32))
    np.testing.assert_allclose(single.rows.cos2, dense.tables(X).rows.cos2, atol=1e-3)


def test_missing_cells_are_filled_with_what_is_expected():
    X = wine()
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    found = PCA(3).fit(holes).tables(holes)
    full = PCA(3).fit(X).tables(X)
    assert (np.abs((found.columns.correlations * full.columns.correlations).sum(axis=0)) > 0).all()
    np.testing.assert_allclose(np.abs(found.columns.correlations), np.abs(full.columns.correlations), atol=0.15)
    np.testing.assert_allclose(found.rows.contributions.sum(axis=0), 1.0)
    assert (found.columns.cos2.sum(axis=1) <= 1 + 1e-9).all()
    assert np.isfinite(found.rows.cos2).all()


def test_names_come_from_frames_and_frames_come_out():
    pd = pytest.importorskip("pandas")
    X = load_iris(as_frame=True).data
    found = PCA(2).fit(X).tables(X)
    assert found.columns.names == list(X.columns)
    out = found.columns.frame("cos2")
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == ["name", "pca0", "pca1"]
    assert out["name"].tolist() == list(X.columns)
    np.testing.assert_allclose(out[["pca0", "pca1"]], found.columns.cos2)
    assert len(found.rows.frame()) == 150
    with pytest.raises(ValueError, match="what='correlations': choose one of 'coordinates', 'cos2', 'contributions'"):
        found.rows.frame("correlations")


def test_constant_columns_and_rows_at_the_mean_are_no_trouble():
    X = np.array([[1.0, 5, 0], [-1, 5, 0], [0, 5, 2], [0, 5, -2], [0, 5, 0]])
    found = PCA(2).fit(X).tables(X)
    np.testing.assert_allclose(found.rows.cos2[4], 0)
    np.testing.assert_allclose(found.columns.correlations[1], 0)
    np.testing.assert_allclose(found.columns.cos2[[0, 2]].sum(axis=1), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [3.0, 0.1, 1e5 / 3, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_column_is_told_by_no_component(value, dtype, weighted):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 4)) + 5).astype(dtype)
    X[:, 0], X[::3, 1] = value, 0.0
    w = rng.uniform(0.5, 2.0, 60) if weighted else None
    for given in (X, sp.csr_array(X)):
        found = PCA(2).fit(given, sample_weight=w).tables(given, sample_weight=w).columns
        np.testing.assert_array_equal(found.cos2[0], 0.0)
        np.testing.assert_array_equal(found.correlations[0], 0.0)
        assert (found.cos2[1:].max(axis=1) > 0.01).all()
    dense = PCA(2).fit(X, sample_weight=w).tables(X, sample_weight=w).columns
    np.testing.assert_allclose(found.cos2, dense.cos2, atol=1e-3 if dtype == np.float32 else 1e-9)


def test_wrong_shapes_are_refused():
    X = wine()
    pca = PCA(2).fit(X)
    with pytest.raises(ValueError, match="supplementary_columns has 3 rows, but X has 178"):
        pca.tables(X, supplementary_columns=X[:3])
    with pytest.raises(ValueError, match="no value in any row"):
        pca.tables(X, supplementary_columns=np.full((178, 1), np.nan))
    with pytest.raises(ValueError, match="13 features"):
        pca.tables(X, supplementary_rows=X[:, :4])
    with pytest.raises(ValueError, match=r"axes=\(0, 2\): give two of the 2 components"):
        pca.biplot(X, axes=(0, 2))
    with pytest.raises(ValueError, match="scale=2"):
        pca.biplot(X, scale=2)
    with pytest.raises(ValueError, match="not fitted"):
        PCA().tables(X)


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0])
def test_inner_products_of_a_biplot_are_the_cells(scale):
    """R's biplot.prcomp: scores / (sdev √n)^scale and rotation · (sdev √n)^scale."""
    X = wine()
    pca = PCA(3).fit(X)
    picture = pca.biplot(X, axes=(0, 2), scale=scale)
    z, V = pca.transform(X)[:, [0, 2]], pca.components_[[0, 2]]
    np.testing.assert_allclose(picture.rows @ picture.columns.T, z @ V, atol=1e-9)
    length = (np.sqrt(pca.explained_variance_[[0, 2]]) * np.sqrt(len(X))) ** scale
    np.testing.assert_allclose(picture.rows, z / length, atol=1e-9)
    np.testing.assert_allclose(picture.columns, V.T * length, atol=1e-9)
    assert picture.titles[1].startswith("pca2 (")
    assert picture.names[0] == "x0"


def test_rows_from_a_file_are_never_whole(tmp_path):
    X = np.random.default_rng(0).normal(size=(5000, 6))
    np.save(tmp_path / "x.npy", X)
    pca = PCA(2).fit(X)
    with unmix.config(runner="serial"):
        ours = pca.tables(tmp_path / "x.npy")
    np.testing.assert_allclose(ours.rows.contributions, pca.tables(X).rows.contributions, atol=1e-12)
