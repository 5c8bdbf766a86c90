"""PCA against scikit-learn's, against the definition, and with missing cells against planted parts."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits, load_iris, make_low_rank_matrix
from sklearn.decomposition import PCA as Peer

import unmix
from unmix import PCA
from unmix.engine.block import Block
from unmix.engine.moments import moments
from unmix.maths.spectra import squared_norm

NAMES = [
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "mean_",
    "noise_variance_",
]


def correlated(n, d, rank=None, seed=0):
    rng = np.random.default_rng(seed)
    rank = rank or d
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + 0.1 * rng.normal(size=(n, d)) + 3.0


def assert_same(ours, peer, X, rtol=1e-8):
    for name in NAMES:
        theirs = getattr(peer, name)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(getattr(ours, name), theirs, rtol=rtol, atol=rtol * scale, err_msg=name)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), atol=rtol * 100)
    assert ours.n_components_ == peer.n_components_
    assert ours.n_samples_ == peer.n_samples_


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "arpack", "randomized"])
@pytest.mark.parametrize("shape", [(400, 12), (40, 90)])
def test_every_solver_gives_what_the_exact_peer_gives(solver, shape):
    X = correlated(*shape, rank=8)
    assert_same(PCA(4, svd_solver=solver, random_state=0).fit(X), Peer(4, svd_solver="full").fit(X), X, 1e-6)


@pytest.mark.parametrize("k", [None, 1, 0.5, 0.95, "mle"])
def test_number_of_components(k):
    X = correlated(300, 12, rank=4)
    assert_same(PCA(k).fit(X), Peer(k, svd_solver="full").fit(X), X)


@pytest.mark.parametrize("k", [None, 7, 0.9])
@pytest.mark.parametrize("solver", ["auto", "full"])
def test_dual_where_columns_outnumber_rows(k, solver):
    X = correlated(30, 200, rank=10)
    ours, peer = PCA(k, svd_solver=solver).fit(X), Peer(k, svd_solver="full").fit(X)
    m = min(ours.n_components_, 29)  # the thirtieth has no variance, and so no direction
    np.testing.assert_allclose(ours.explained_variance_, peer.explained_variance_, atol=1e-9)
    np.testing.assert_allclose(ours.components_[:m], peer.components_[:m], atol=1e-6)
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(ours.n_components_), atol=1e-10)


@pytest.mark.parametrize("shape", [(60, 80), (301, 900), (700, 320)])
def test_the_largest_singular_value_of_large_matrices_is_that_of_lapack(shape):
    A = np.random.default_rng(0).normal(size=shape) * np.linspace(1, 3, shape[1])
    assert squared_norm(A) == pytest.approx(np.linalg.norm(A, 2) ** 2, rel=1e-9)


def test_mle_and_parallel_analysis_find_the_planted_number():
    rng = np.random.default_rng(1)
    V = np.linalg.qr(rng.normal(size=(20, 5)))[0].T
    X = (rng.normal(size=(800, 5)) * [9, 5, 3, 2, 1.5]) @ V + 0.5 * rng.normal(size=(800, 20))
    assert PCA("mle").fit(X).n_components_ == 5
    assert PCA("parallel", random_state=0).fit(X).n_components_ == 5
    assert PCA("parallel", random_state=0).fit(rng.normal(size=(500, 20))).n_components_ == 0
    wide = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 300)) + 0.3 * rng.normal(size=(60, 300))
    assert PCA("parallel", random_state=0).fit(wide).n_components_ == 4
    X[rng.random(X.shape) < 0.2] = np.nan
    assert PCA("parallel", random_state=0).fit(X).n_components_ == 5


def test_reconstruction_error_is_the_variance_that_was_dropped():
    X = load_digits().data
    ours = PCA(10).fit(X)
    error = ((X - ours.inverse_transform(ours.transform(X))) ** 2).sum()
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    np.testing.assert_allclose(error, (len(X) - 1) * values[10:].sum(), rtol=1e-10)


def test_whiten():
    X = correlated(300, 8)
    ours, peer = PCA(5, whiten=True).fit(X), Peer(5, whiten=True).fit(X)
    Z = ours.transform(X)
    np.testing.assert_allclose(Z, peer.transform(X), atol=1e-8)
    np.testing.assert_allclose(Z.std(axis=0, ddof=1), 1.0)
    np.testing.assert_allclose(ours.inverse_transform(Z), peer.inverse_transform(Z), atol=1e-8)
    # the density does not depend on how z is scaled
    np.testing.assert_allclose(ours.score_samples(X), PCA(5).fit(X).score_samples(X))
    np.testing.assert_allclose(ours.get_covariance(), PCA(5).fit(X).get_covariance())


@pytest.mark.parametrize("k", [0, 2, 5])
def test_density_is_that_of_the_gaussian_with_the_published_covariance(k):
    X = correlated(200, 5)
    ours = PCA(k).fit(X)
    C = ours.get_covariance()
    truth = multivariate_normal(ours.mean_, C).logpdf(X)
    np.testing.assert_allclose(ours.score_samples(X), truth, rtol=1e-8)
    np.testing.assert_allclose(ours.score(X), truth.mean())
    np.testing.assert_allclose(ours.get_precision() @ C, np.eye(5), atol=1e-7)
    np.testing.assert_allclose(ours.score(X), Peer(k, svd_solver="full").fit(X).score(X))
    # of a row with holes, the density of the cells that are there
    holes = X.copy()
    holes[:, [1, 3]] = np.nan
    seen = [0, 2, 4]
    marginal = multivariate_normal(ours.mean_[seen], C[np.ix_(seen, seen)]).logpdf(X[:, seen])
    np.testing.assert_allclose(ours.score_samples(holes), marginal, rtol=1e-6)


def test_sample_and_modes():
    X = load_iris().data
    ours = PCA(2, random_state=0).fit(X)
    drawn = ours.sample(200_000)
    np.testing.assert_allclose(np.cov(drawn.T), ours.get_covariance(), atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.02)
    low, high = ours.modes(3.0)[1]
    np.testing.assert_allclose(high, X.mean(axis=0) + 3 * np.sqrt(ours.explained_variance_[1]) * ours.components_[1])
    np.testing.assert_allclose(low + high, 2 * X.mean(axis=0))


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
@pytest.mark.parametrize("solver", ["auto", "arpack", "randomized", "covariance_eigh"])
def test_csr_is_dense(shape, solver):
    rng = np.random.default_rng(0)
    dense = np.maximum(rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1])), 0.0)
    S = sp.csr_array(dense)
    ours = PCA(3, svd_solver=solver, random_state=0, iterated_power=30).fit(S)
    peer = Peer(3, svd_solver="full").fit(dense)
    assert_same(ours, peer, dense, 1e-5)
    np.testing.assert_allclose(ours.transform(S), peer.transform(dense), atol=1e-4)
    np.testing.assert_allclose(ours.score_samples(S), ours.score_samples(dense), rtol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "full", "arpack", "randomized"])
@pytest.mark.parametrize("shape", [(200, 6), (20, 50)])
def test_weights_are_repeats(solver, shape):
    X = correlated(*shape, rank=4)
    w = np.random.default_rng(3).integers(0, 4, size=len(X))
    weighted = PCA(3, svd_solver=solver, random_state=0).fit(X, sample_weight=w)
    repeated = Peer(3, svd_solver="full").fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-6)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(weighted.score(X, sample_weight=w), weighted.score(np.repeat(X, w, axis=0)))


def test_batches_of_partial_fit_keep_the_axes():
    X = correlated(600, 6)
    ours = PCA(3)
    for batch in np.array_split(X, 6):
        ours.partial_fit(batch)
    assert (np.abs(np.einsum("aj,aj->a", ours.components_, PCA(3).fit(X).components_)) > 0.99).all()
    X[550:, 2] = np.nan  # holes that come late
    ours.partial_fit(X[500:])
    assert np.isfinite(ours.transform(X)).all()


def planted(seed=0, n=500, d=30, missing=0.3):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(d, 3)))[0].T
    clean = (rng.normal(size=(n, 3)) * [6.0, 4.0, 2.5]) @ V + rng.normal(size=d)
    X = clean + 0.3 * rng.normal(size=(n, d))
    holes = X.copy()
    holes[rng.random(X.shape) < missing] = np.nan
    return V, clean, X, holes


def angle(A, B):
    """Sine of the largest angle between two subspaces."""
    return np.sqrt(max(0.0, 1 - np.linalg.svd(np.asarray(A) @ np.asarray(B).T)[1].min() ** 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_missing_cells_beat_mean_filling(dtype):
    V, clean, X, holes = planted()
    holes = holes.astype(dtype)
    ours = PCA(3).fit(holes)
    mean = np.nanmean(holes, axis=0)
    filled = np.where(np.isnan(holes), mean, holes)
    peer = Peer(3).fit(filled)
    assert ours.result_ == "converged"
    assert ours.components_.dtype == dtype
    # a subspace three times as close, variances without the shrinkage of filling, cells restored four times as well
    assert angle(ours.components_, V) < 0.05
    assert angle(peer.components_, V) > 3 * angle(ours.components_, V)
    np.testing.assert_allclose(ours.explained_variance_, PCA(3).fit(X).explained_variance_, rtol=0.05)
    assert (peer.explained_variance_ < 0.6 * ours.explained_variance_).all()
    np.testing.assert_allclose(ours.noise_variance_, 0.09, rtol=0.1)
    gone = np.isnan(holes)
    error = np.sqrt(((ours.inverse_transform(ours.transform(holes)) - clean)[gone] ** 2).mean())
    naive = np.sqrt(((peer.inverse_transform(peer.transform(filled)) - clean)[gone] ** 2).mean())
    assert error < 0.2
    assert naive > 4 * error


def test_missing_cells_reach_the_optimum_that_complete_rows_have_in_closed_form():
    X = correlated(300, 8, rank=3)
    X[0, 0] = np.nan
    ours, rest = PCA(3, tol=1e-10).fit(X), PCA(3).fit(X[1:])
    # one hole in 2400 cells: the closed form of the other rows must be within its influence
    np.testing.assert_allclose(ours.explained_variance_, rest.explained_variance_, rtol=0.03)
    np.testing.assert_allclose(ours.components_, rest.components_, atol=0.03)
    # and no parameters near the EM solution are better
    U = ours._parts_
    model = ours.for_new_rows()
    observed = ~np.isnan(X)
    b = Block(np.where(observed, X, 0.0), None, None, observed)
    best = model.local(U, b).loss
    rng = np.random.default_rng(0)
    for _ in range(10):
        near = U._replace(loadings=U.loadings + 1e-3 * rng.normal(size=U.loadings.shape), noise=U.noise * 1.001)
        assert model.local(near, b).loss > best


def test_rows_without_any_cell_stand_at_the_mean():
    _, _, _, holes = planted()
    holes[5] = np.nan
    for ours in (PCA(3).fit(holes), PCA(3).fit(np.nan_to_num(holes))):
        np.testing.assert_allclose(ours.transform(holes)[5], 0.0, atol=1e-12)
        assert ours.score_samples(holes)[5] == pytest.approx(0.0)


def test_constant_columns_single_rows_and_pairs():
    X = correlated(50, 4)
    X[:, 2] = 7.0
    ours = PCA().fit(X)
    np.testing.assert_allclose(ours.explained_variance_, Peer().fit(X).explained_variance_, atol=1e-12)
    assert ours.explained_variance_[-1] == pytest.approx(0.0, abs=1e-12)
    one = PCA().fit(X[:1])
    assert one.components_.shape == (1, 4)
    assert one.explained_variance_[0] == 0.0
    np.testing.assert_allclose(one.transform(X[:1]), 0.0)
    two, peer = PCA(1).fit(X[:2]), Peer(1).fit(X[:2])
    np.testing.assert_allclose(two.explained_variance_, peer.explained_variance_)
    np.testing.assert_allclose(two.components_, peer.components_)


def test_float32_far_from_zero():
    X = correlated(5000, 10)
    far = (X + 1000.0).astype(np.float32)
    truth = Peer(4).fit(far.astype(np.float64))
    ours = PCA(4).fit(far)
    assert ours.components_.dtype == ours.transform(far).dtype == np.float32
    np.testing.assert_allclose(ours.explained_variance_, truth.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(ours.components_, truth.components_, atol=1e-3)
    np.testing.assert_allclose(ours.mean_, truth.mean_, rtol=1e-6)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("weights", [False, True])
def test_moments_of_a_block(kind, weights):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(60, 7)).astype(float)
    w = rng.uniform(size=60) if weights else None
    s = rng.normal(size=7)
    m = moments(Block(sp.csr_array(X) if kind == "csr" else X, w), s)
    u = np.ones(60) if w is None else w
    np.testing.assert_allclose(m.n, u.sum())
    np.testing.assert_allclose(m.sum, u @ (X - s))
    np.testing.assert_allclose(m.scatter, (X - s).T @ np.diag(u) @ (X - s))
    np.testing.assert_allclose(m.about(-s).scatter, X.T @ np.diag(u) @ X)
    np.testing.assert_allclose(m.centred()[1] / u.sum(), np.cov(X.T, aweights=u, bias=True))


def test_real_digits_with_holes(data_folder):
    d = np.loadtxt(data_folder / "mnist5k" / "mnist_5k.csv.gz", delimiter=",", max_rows=700)
    X = d[:, :-1] / 255
    X = X[:, X.std(axis=0) > 0.15]
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), X)
    ours, peer = PCA(20, tol=1e-3).fit(holes), Peer(20).fit(filled)
    gone = np.isnan(holes)
    error = ((ours.inverse_transform(ours.transform(holes)) - X)[gone] ** 2).mean()
    naive = ((peer.inverse_transform(peer.transform(filled)) - X)[gone] ** 2).mean()
    assert error < 0.8 * naive


def test_errors_name_the_argument_and_the_remedy():
    X = correlated(20, 5)
    with pytest.raises(ValueError, match=r"n_components=6.*at most 5"):
        PCA(6).fit(X)
    with pytest.raises(ValueError, match="n_samples >= n_features"):
        PCA("mle").fit(X[:3])
    with pytest.raises(ValueError, match=r"n_components=0.5.*randomized"):
        PCA(0.5, svd_solver="randomized").fit(X)
    with unmix.config(memory_budget=500), pytest.raises(ValueError, match="missing cells needs statistics"):
        PCA().fit(np.where(X > 3, np.nan, X))


# ---------------------------------------------------------------- as scikit-learn has it


def test_a_share_that_the_components_just_explain_asks_for_one_more():
    X = np.random.default_rng(0).standard_normal((60, 8))
    for solver in ("auto", "full", "covariance_eigh"):
        shares = PCA(svd_solver=solver).fit(X).explained_variance_ratio_.cumsum()
        theirs = Peer(svd_solver="full").fit(X).explained_variance_ratio_.cumsum()
        for i in range(7):
            assert PCA(shares[i], svd_solver=solver).fit(X).n_components_ == i + 2
            assert Peer(theirs[i], svd_solver="full").fit(X).n_components_ == i + 2


def test_arpack_gives_fewer_axes_than_the_smaller_side():
    X = np.random.default_rng(0).standard_normal((30, 6))
    assert PCA(svd_solver="arpack").fit(X).n_components_ == 5
    with pytest.raises(ValueError, match=r"n_components=6 must be strictly less than .*=6"):
        PCA(6, svd_solver="arpack").fit(X)
    for solver in ("arpack", "randomized"):
        with pytest.raises(ValueError, match=r"n_components=0 must be between 1 and"):
            PCA(0, svd_solver=solver).fit(X)


def test_minkas_choice_is_at_least_one_and_at_most_the_rank():
    rng = np.random.default_rng(0)
    assert PCA("mle").fit(rng.standard_normal((600, 10))).n_components_ == 1
    line = rng.standard_normal((100, 1)) @ rng.standard_normal((1, 20))
    assert PCA("mle").fit(line).n_components_ == 1


def test_variances_along_randomized_axes_are_those_of_the_rows():
    X = np.random.default_rng(0).standard_normal((300, 80))
    model = PCA(5, svd_solver="randomized", random_state=0).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(model.explained_variance_, Z.var(axis=0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(np.cov(Z.T), np.diag(model.explained_variance_), atol=1e-10)


def test_power_iterations_converge_as_fast_as_they_can():
    X = make_low_rank_matrix(60, 100, effective_rank=10, tail_strength=0.5, random_state=0)
    exact = PCA(5, svd_solver="full").fit(X)
    for seed in range(5):
        model = PCA(5, svd_solver="randomized", iterated_power=40, random_state=seed).fit(X)
        np.testing.assert_allclose(model.components_, exact.components_, atol=1e-11)
        assert model.n_iter_ == 42  # a pass for the random directions, one for the variances


def test_parallel_analysis_of_weights_beyond_any_number_of_rows():
    X = np.random.default_rng(0).normal(size=(60, 5))
    model = PCA("parallel", random_state=0).fit(X, sample_weight=np.full(60, 1e30))
    assert model.partial_fit(X[:30]).n_components_ == model.n_components_


def test_columns_that_few_rows_know_are_no_axes_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) @ (2 * rng.normal(size=(3, 30))) + rng.normal(size=(100, 30))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    full = unmix.PCA("parallel").fit(X)
    X[rng.random(X.shape) < 0.3] = np.nan
    for j in (5, 6):
        X[rng.random(100) < 0.8, j] = np.nan
    found = unmix.PCA("parallel").fit(X)
    assert full.n_components_ == 3
    assert abs(found.n_components_ - 3) <= 1
    assert np.allclose(found.explained_variance_[:3], full.explained_variance_, rtol=0.25)
