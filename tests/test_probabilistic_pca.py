"""Probabilistic PCA: EM against the closed form, density, posterior and imputation against the Gaussian's formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits, load_iris

import unmix
from unmix import PCA, ProbabilisticPCA
from unmix.maths.latent import CellLoadings
from unmix.model import fit_together


def planted(n=400, d=8, k=3, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(k, d)) * np.linspace(3.0, 1.0, k)[:, None]
    clean = rng.normal(size=(n, k)) @ W + rng.normal(size=d) + 5.0
    return W, clean, clean + noise * rng.normal(size=(n, d))


def with_holes(X, share=0.2, seed=1):
    holes = X.copy()
    holes[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return holes


def gaussian_given(mean, C, row):
    """Mean and covariance of the missing cells of a row given the others."""
    m = np.isnan(row)
    slope = np.linalg.solve(C[np.ix_(~m, ~m)], C[np.ix_(~m, m)]).T
    return mean[m] + slope @ (row[~m] - mean[~m]), C[np.ix_(m, m)] - slope @ C[np.ix_(~m, m)]


# ---------------------------------------------------------------- the maximum of the likelihood


@pytest.mark.parametrize("k", [1, 3, 5])
def test_closed_form_is_that_of_tipping_and_bishop(k):
    _, _, X = planted()
    model = ProbabilisticPCA(k).fit(X)
    values, V = np.linalg.eigh(np.cov(X.T, bias=True))
    values, V = values[::-1], V[:, ::-1].T
    noise = values[k:].mean()
    W = np.sqrt(values[:k] - noise)[:, None] * V[:k]
    np.testing.assert_allclose(model.noise_variance_, noise, rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_, values[:k], rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_, values[:k] / values.sum(), rtol=1e-10)
    np.testing.assert_allclose(np.abs(model.loadings()), np.abs(W), atol=1e-8)
    np.testing.assert_allclose(model.get_covariance(), W.T @ W + noise * np.eye(8), atol=1e-9)
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(8), atol=1e-9)
    assert model.result_ == "solved"
    # the maximum of the likelihood over n: no other σ², and no other scale of W, is better
    best = model.score(X)
    for other in (0.95, 1.05):
        for C in (W.T @ W + other * noise * np.eye(8), other * W.T @ W + noise * np.eye(8)):
            assert multivariate_normal(model.mean_, C).logpdf(X).mean() < best


@pytest.mark.parametrize("shape", [(400, 8), (300, 20), (40, 60)])
def test_em_reaches_the_closed_form(shape):
    _, _, X = planted(*shape)
    closed = ProbabilisticPCA(3).fit(X)
    # the start of EM is the closed form of the rows that it sees, here of all: so it begins anywhere else
    rng, d = np.random.default_rng(1), X.shape[1]
    anywhere = CellLoadings(X[0], X[0], rng.normal(size=(3, d)), np.full(d, 9.0), np.full(d, 1e-9), np.eye(3))
    em = ProbabilisticPCA(3, method="em", tol=1e-13, max_iter=5000)
    fit_together([em], X, [None], [0], [anywhere])
    assert em.result_ == "converged"
    assert em.n_iter_ > 5
    assert -em.trace_[0].objective < closed.score(X) - 1.0
    np.testing.assert_allclose(em.score(X), closed.score(X), rtol=1e-6, atol=1e-6)
    scale = np.abs(closed.get_covariance()).max()
    np.testing.assert_allclose(em.get_covariance(), closed.get_covariance(), atol=1e-6 * scale)
    np.testing.assert_allclose(em.noise_variance_, closed.noise_variance_, rtol=1e-6)
    np.testing.assert_allclose(em.transform(X), closed.transform(X), atol=1e-5)


def test_em_of_many_rows_starts_from_some_and_reaches_the_closed_form():
    _, _, X = planted(20_000)
    closed, em = ProbabilisticPCA(3).fit(X), ProbabilisticPCA(3, method="em").fit(X)
    assert -em.trace_[0].objective < closed.score(X) - 1e-5
    assert 0 <= closed.score(X) - em.score(X) < 1e-6
    np.testing.assert_allclose(-em.trace_[-1].objective, em.score(X), atol=1e-6)


def test_the_objective_of_a_closed_form_is_minus_the_log_likelihood():
    _, _, X = planted()
    w = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    model = ProbabilisticPCA(3)
    fit = model.fit_with(X, w)
    np.testing.assert_allclose(-fit.objective, model.score(X, sample_weight=w), rtol=1e-10)
    wide = planted(40, 60)[2]
    fit = model.fit_with(wide, None)
    np.testing.assert_allclose(-fit.objective, model.score(wide), rtol=1e-10)


@pytest.mark.parametrize("shape", [(14, 23), (30, 5)])
@pytest.mark.parametrize("of", [np.asarray, sp.csr_array])
def test_no_component_is_noise_of_one_variance(shape, of):
    X = np.random.default_rng(0).normal(size=shape)
    model = ProbabilisticPCA(0).fit(of(X))
    assert model.components_.shape == (0, shape[1])
    np.testing.assert_allclose(model.noise_variance_, X.var(axis=0).mean())


def test_more_columns_than_rows():
    _, _, X = planted(40, 200)
    model = ProbabilisticPCA(3).fit(X)
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    np.testing.assert_allclose(model.explained_variance_, values[:3], rtol=1e-9)
    np.testing.assert_allclose(model.noise_variance_, values[3:].mean(), rtol=1e-9)  # over all 197 directions
    np.testing.assert_allclose(
        model.score(X), multivariate_normal(model.mean_, model.get_covariance()).logpdf(X).mean(), rtol=1e-9
    )
    sparse = ProbabilisticPCA(3).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.noise_variance_, model.noise_variance_, rtol=1e-8)
    np.testing.assert_allclose(sparse.score_samples(sp.csr_array(X)), model.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(sparse.denoise(sp.csr_array(X)), model.denoise(X), rtol=1e-8)


def test_subspace_iteration_where_both_sides_are_large(monkeypatch):
    monkeypatch.setattr("unmix.linear._principal.SPECTRUM_SIDE", 50)
    _, _, X = planted(300, 80)
    ours = ProbabilisticPCA(3, random_state=0).fit(X)
    assert ours.n_iter_ > 1
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    np.testing.assert_allclose(ours.explained_variance_, values[:3], rtol=1e-6)
    np.testing.assert_allclose(ours.noise_variance_, values[3:].mean(), rtol=1e-6)


def test_number_of_components():
    _, _, X = planted(800, 12, noise=0.3)
    assert ProbabilisticPCA("mle").fit(X).n_components_ == 3
    assert ProbabilisticPCA("parallel", random_state=0).fit(X).n_components_ == 3
    assert ProbabilisticPCA("parallel", random_state=0).fit(with_holes(X)).n_components_ == 3
    assert ProbabilisticPCA().fit(X).n_components_ == 11
    share = ProbabilisticPCA(0.9).fit(X)
    assert share.explained_variance_ratio_.sum() > 0.9 > share.explained_variance_ratio_[:-1].sum()
    assert ProbabilisticPCA(0.999999).fit(X).n_components_ == 11
    none = ProbabilisticPCA(0).fit(X)
    assert none.transform(X).shape == (800, 0)
    np.testing.assert_allclose(none.noise_variance_, X.var(axis=0).mean())
    np.testing.assert_allclose(none.denoise(X), np.tile(X.mean(axis=0), (800, 1)))
    np.testing.assert_allclose(ProbabilisticPCA(0, method="em").fit(X).noise_variance_, none.noise_variance_, rtol=1e-6)
    # one direction that varies is left to the noise, whatever the rank
    assert ProbabilisticPCA().fit(np.c_[X, np.ones(800), X[:, 0]]).n_components_ == 11
    assert ProbabilisticPCA().fit(X.astype(np.float32)).n_components_ == 11
    assert ProbabilisticPCA().fit(X[:6]).n_components_ == 4
    assert ProbabilisticPCA().fit(X[:, :1]).n_components_ == 0


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_select_finds_the_planted_number(scale):
    _, _, X = planted(300, 8, k=2)
    answer = unmix.select(ProbabilisticPCA(), scale * X, random_state=0)
    assert answer.k == 2, str(answer)
    assert answer.model.n_components_ == 2
    assert "Not possible: k = 8, 9" in unmix.select(ProbabilisticPCA(), X, range(1, 10), random_state=0).reason
    entries = unmix.select(ProbabilisticPCA(), X, range(1, 5), "entries", random_state=0)
    assert entries.k == 2
    bic = unmix.select(ProbabilisticPCA(), X, range(1, 5), "bic", random_state=0)
    three = ProbabilisticPCA(3).fit(X)
    value = three.n_parameters() * np.log(300) - 2 * three.score_samples(X).sum()
    assert bic.columns["bic"][2] == pytest.approx(value)


# ---------------------------------------------------------------- density, posterior, noise-free rows


@pytest.mark.parametrize("k", [0, 2, 4])
@pytest.mark.parametrize("method", ["auto", "em"])
def test_density_is_that_of_scipy(k, method):
    X = load_iris().data if k < 4 else np.c_[load_iris().data, load_iris().data[:, ::-1] ** 0.5]
    model = ProbabilisticPCA(k, method=method).fit(X)
    C = model.get_covariance()
    truth = multivariate_normal(model.mean_, C)
    np.testing.assert_allclose(model.score_samples(X), truth.logpdf(X), rtol=1e-8)
    np.testing.assert_allclose(model.score(X), truth.logpdf(X).mean(), rtol=1e-8)
    w = np.arange(len(X)) % 3
    np.testing.assert_allclose(model.score(X, sample_weight=w), np.average(truth.logpdf(X), weights=w), rtol=1e-8)
    holes = X.copy()
    holes[:, 1] = np.nan
    seen = np.arange(X.shape[1]) != 1
    marginal = multivariate_normal(model.mean_[seen], C[np.ix_(seen, seen)]).logpdf(X[:, seen])
    np.testing.assert_allclose(model.score_samples(holes), marginal, rtol=1e-7)


def test_posterior_is_that_of_the_formula():
    _, _, X = planted()
    model = ProbabilisticPCA(3).fit(X)
    W, noise = model.loadings(), model.noise_variance_
    M = W @ W.T + noise * np.eye(3)
    mean, covariance = model.posterior(X)
    np.testing.assert_allclose(mean, (X - model.mean_) @ np.linalg.solve(M, W).T, atol=1e-10)
    np.testing.assert_allclose(covariance, noise * np.linalg.inv(M), atol=1e-12)
    np.testing.assert_allclose(mean, model.transform(X))
    # rows that miss cells have covariances of their own, which are wider
    holes = with_holes(X)
    with unmix.config(block_rows=64):
        mean, covariances = model.posterior(np.vstack([X[:64], holes]))
    assert covariances.shape == (464, 3, 3)
    np.testing.assert_allclose(covariances[:64], np.broadcast_to(covariance, (64, 3, 3)), atol=1e-12)
    for i in (0, 7, 100):
        o = ~np.isnan(holes[i])
        M = W[:, o] @ W[:, o].T + noise * np.eye(3)
        np.testing.assert_allclose(covariances[64 + i], noise * np.linalg.inv(M), atol=1e-10)
        np.testing.assert_allclose(
            mean[64 + i], np.linalg.solve(M, W[:, o] @ (holes[i, o] - model.mean_[o])), atol=1e-9
        )
    np.testing.assert_allclose(mean[64:], model.transform(holes), atol=1e-10)
    empty_mean, empty = model.posterior(np.full((1, 8), np.nan))  # nothing is known but the prior
    np.testing.assert_allclose(empty_mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(empty[0], np.eye(3), atol=1e-12)


def test_posterior_covers_the_planted_z():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(2, 10))
    Z = rng.normal(size=(5000, 2))
    X = Z @ W + 0.7 * rng.normal(size=(5000, 10))
    model = ProbabilisticPCA(2).fit(X)
    turn = np.linalg.lstsq(model.transform(X), Z, rcond=None)[0]  # W is known up to a rotation
    u, _, vt = np.linalg.svd(turn)
    mean, covariance = model.posterior(X)
    away = Z @ (u @ vt).T - mean
    distance = np.einsum("ia,ab,ib->i", away, np.linalg.inv(covariance), away)
    assert abs((distance < -2 * np.log(0.1)).mean() - 0.9) < 0.02  # χ² with 2 degrees of freedom


def test_noise_free_rows_are_shrunk_projections():
    _, clean, X = planted(noise=2.0)
    model = ProbabilisticPCA(3).fit(X)
    V, shrink = model.components_, 1 - model.noise_variance_ / model.explained_variance_
    expected = model.mean_ + ((X - model.mean_) @ V.T * shrink) @ V
    np.testing.assert_allclose(model.denoise(X), expected, atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), expected, atol=1e-10)
    np.testing.assert_allclose(model.reconstruct(X), expected, atol=1e-10)
    plain = PCA(3).fit(X)
    error = ((model.denoise(X) - clean) ** 2).mean()
    assert error < 0.97 * ((plain.inverse_transform(plain.transform(X)) - clean) ** 2).mean()
    assert error < 0.5 * ((X - clean) ** 2).mean()
    # with holes: E[zW + μ | x_o], which for observed cells is Cov(s, x_o) Cov(x_o)⁻¹ (x_o − μ_o), s = zW
    holes, W = with_holes(X), model.loadings()
    out = model.denoise(holes)
    C = model.get_covariance()
    for i in (0, 5):
        o = ~np.isnan(holes[i])
        truth = model.mean_ + (W.T @ W)[:, o] @ np.linalg.solve(C[np.ix_(o, o)], holes[i, o] - model.mean_[o])
        np.testing.assert_allclose(out[i], truth, atol=1e-9)


def test_sample():
    model = ProbabilisticPCA(2, random_state=0).fit(load_iris().data)
    drawn = model.sample(200_000)
    np.testing.assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), model.mean_, atol=0.02)
    np.testing.assert_array_equal(model.sample(5), model.sample(5))


# ---------------------------------------------------------------- missing cells


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_imputation_is_the_conditional_gaussian(dtype):
    _, _, X = planted()
    holes = with_holes(X).astype(dtype)
    holes[3] = np.nan
    model = ProbabilisticPCA(3).fit(holes)
    filled, deviation = model.impute(holes, return_std=True)
    assert filled.dtype == deviation.dtype == dtype
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], holes[seen])
    assert (deviation[seen] == 0).all()
    C, tight = model.get_covariance().astype(float), 1e-8 if dtype == np.float64 else 1e-4
    for i in np.flatnonzero(~seen.all(axis=1))[:20]:
        mean, covariance = gaussian_given(model.mean_.astype(float), C, holes[i].astype(float))
        np.testing.assert_allclose(filled[i, ~seen[i]], mean, rtol=tight, atol=tight)
        np.testing.assert_allclose(deviation[i, ~seen[i]] ** 2, np.diag(covariance), rtol=tight, atol=tight)
    # draws have these moments, jointly
    row = int(np.flatnonzero((~seen).sum(axis=1) == 3)[0])
    draws = model.impute(np.tile(holes[row], (40_000, 1)), n_draws=1, random_state=0)[0][:, ~seen[row]]
    mean, covariance = gaussian_given(model.mean_.astype(float), C, holes[row].astype(float))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * covariance.max())


def test_intervals_cover_the_cells_that_were_there():
    _, _, X = planted(2000)
    holes = with_holes(X)
    filled, deviation = ProbabilisticPCA(3).fit(holes).impute(holes, return_std=True)
    gone = np.isnan(holes)
    inside = np.abs(X - filled)[gone] < 1.645 * deviation[gone]
    assert abs(inside.mean() - 0.9) < 0.015


def test_missing_cells_by_em():
    W, clean, X = planted(1000, 12)
    holes = with_holes(X, 0.3)
    model = ProbabilisticPCA(3).fit(holes)
    assert model.result_ == "converged"
    np.testing.assert_allclose(model.noise_variance_, 0.25, rtol=0.1)
    full = ProbabilisticPCA(3).fit(X)
    assert np.linalg.norm(model.get_covariance() - full.get_covariance()) < 0.1 * np.linalg.norm(W.T @ W)
    assert np.sqrt(((model.denoise(holes) - clean) ** 2).mean()) < 0.45  # noise has 0.5 in every cell that is there
    assert np.sqrt(((full.denoise(X) - clean) ** 2).mean()) < 0.27
    # no parameters nearby have a larger likelihood of the observed cells
    best = ProbabilisticPCA(3, tol=1e-12, max_iter=5000).fit(holes)
    rng, observed = np.random.default_rng(0), ~np.isnan(holes)
    C = best.get_covariance()
    for _ in range(5):
        turn = 1e-3 * rng.normal(size=(3, 12))
        W = best.loadings() + turn
        other = W.T @ W + best.noise_variance_ * np.eye(12)
        less = sum(
            multivariate_normal(best.mean_[o], S[np.ix_(o, o)]).logpdf(x[o]) * sign
            for S, sign in ((other, 1), (C, -1))
            for x, o in zip(holes, observed, strict=True)
        )
        assert less < 0


@pytest.mark.parametrize("kind", [PCA, ProbabilisticPCA])
@pytest.mark.parametrize("wanted", [0.6, "mle", "parallel"])
def test_the_chosen_number_of_axes_is_fitted_again_where_cells_are_missing(kind, wanted, tmp_path):
    """All axes tell how many there are; the likeliest axes and noise of so many are others than the first of all."""
    _, _, X = planted(300, 12)
    holes = with_holes(X, 0.1)
    chosen = kind(wanted, tol=1e-9, random_state=0).fit(holes)
    given = kind(chosen.n_components_, tol=1e-9).fit(holes)
    assert 0 < chosen.n_components_ < 11
    assert chosen.score(holes) == pytest.approx(given.score(holes), abs=1e-6)
    assert chosen.noise_variance_ == pytest.approx(given.noise_variance_, rel=1e-3)
    np.testing.assert_allclose(chosen.components_, given.components_, atol=1e-3)
    assert [stage.name for stage in chosen.stages_] == ["em"]
    chosen.save(tmp_path / "chosen.unmix")
    np.testing.assert_array_equal(unmix.load(tmp_path / "chosen.unmix").transform(holes), chosen.transform(holes))
    k = chosen.n_components_
    assert chosen.partial_fit(holes[:100]).n_components_ == k
    assert np.isfinite(kind(wanted, random_state=0).partial_fit(holes).partial_fit(holes).score(holes))


def test_batches_of_partial_fit_are_the_closed_form_of_all_rows():
    _, _, X = planted(600)
    online = ProbabilisticPCA(3)
    for batch in np.array_split(X, 6):
        online.partial_fit(batch)
    whole = ProbabilisticPCA(3).fit(X)
    np.testing.assert_allclose(online.get_covariance(), whole.get_covariance(), rtol=1e-6, atol=1e-8)
    online.partial_fit(with_holes(X[:50]))
    assert np.isfinite(online.transform(X)).all()
    with pytest.warns(UserWarning, match="vary in no direction"):
        constant = ProbabilisticPCA(1).partial_fit(np.ones((5, 8)))
    assert np.isfinite(constant.partial_fit(X).score(X))  # though by the parts so far these rows were impossible


# ---------------------------------------------------------------- hostile input


def test_rows_without_noise_are_told():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 6))
    for rows in (low, low.astype(np.float32), np.where(rng.random(low.shape) < 0.02, np.nan, low)):
        with pytest.warns(UserWarning, match="vary in no direction beside the 2 components"):
            model = ProbabilisticPCA(2).fit(rows)
        assert np.isfinite(model.score_samples(rows)).all()
        assert np.isfinite(model.denoise(rows)).all()
        assert model.noise_variance_ > 0
    assert ProbabilisticPCA().fit(low).n_components_ == 1
    with pytest.warns(UserWarning, match="vary in no direction beside the 0 components"):
        same = ProbabilisticPCA().fit(np.full((5, 3), 7.0))
    np.testing.assert_allclose(same.denoise(np.full((2, 3), 7.0)), 7.0)


def test_constant_columns_and_few_rows():
    _, _, X = planted(60)
    X[:, 2] = 7.0
    model = ProbabilisticPCA(3).fit(X)
    np.testing.assert_allclose(model.denoise(X)[:, 2], 7.0, atol=1e-9)
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(8), atol=1e-9)
    few = ProbabilisticPCA(1).fit(X[:3])
    assert np.isfinite(few.score_samples(X)).all()
    digits = load_digits().data  # with columns that never vary
    every = ProbabilisticPCA().fit(digits)
    assert every.n_components_ == np.linalg.matrix_rank(digits - digits.mean(axis=0)) - 1
    assert np.isfinite(every.score(digits))


def test_float32_far_from_zero():
    _, _, X = planted(5000)
    far = (X + 1000.0).astype(np.float32)
    truth, ours = ProbabilisticPCA(3).fit(far.astype(float)), ProbabilisticPCA(3).fit(far)
    assert ours.components_.dtype == ours.denoise(far).dtype == ours.posterior(far)[1].dtype == np.float32
    np.testing.assert_allclose(ours.explained_variance_, truth.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(ours.noise_variance_, truth.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(ours.score(far), truth.score(far.astype(float)), rtol=1e-3)


def test_errors_name_the_argument_and_the_remedy():
    _, _, X = planted(20, 5)
    with pytest.raises(ValueError, match=r"n_components=5 leaves.*n_samples=20.*n_features=5.*take at most 4"):
        ProbabilisticPCA(5).fit(X)
    with pytest.raises(ValueError, match=r"n_components=3 leaves.*n_samples=4 .*take at most 2"):
        ProbabilisticPCA(3).fit(X[:4])
    with pytest.raises(ValueError, match=r"n_samples >= n_features: try 'parallel'"):
        ProbabilisticPCA("mle").fit(X[:3])
    with pytest.raises(ValueError, match=r"'method' parameter of ProbabilisticPCA.*Got 'svd'"):
        ProbabilisticPCA(2, method="svd").fit(X)
    with unmix.config(memory_budget=500), pytest.raises(ValueError, match="missing cells needs statistics"):
        ProbabilisticPCA().fit(np.where(X > 6, np.nan, X))
    with pytest.raises(TypeError, match="nothing to impute"):
        ProbabilisticPCA(2).fit(X).impute(sp.csr_array(X))


# ---------------------------------------------------------------- pictures


def patches(image, side=8):
    """Every patch of an image as a row."""
    return np.lib.stride_tricks.sliding_window_view(image, (side, side)).reshape(-1, side * side)


def averaged(rows, shape, side=8):
    """The image of which these are the patches: where they overlap, their mean."""
    h, w = shape[0] - side + 1, shape[1] - side + 1
    total, count = np.zeros(shape), np.zeros(shape)
    for j, column in enumerate(rows.T):
        at = np.s_[j // side : j // side + h, j % side : j % side + w]
        total[at] += column.reshape(h, w)
        count[at] += 1
    return total / count


def psnr(image, truth):
    return 10 * np.log10(255.0**2 / ((image - truth) ** 2).mean())


def test_patches_of_a_noisy_picture_are_denoised_better_than_by_truncation(data_folder):
    pil = pytest.importorskip("PIL.Image")
    truth = np.asarray(pil.open(data_folder / "images" / "camera.png").convert("L"), dtype=float)
    noisy = truth + 25.0 * np.random.default_rng(0).normal(size=truth.shape)
    rows = patches(noisy.astype(np.float32))
    ours, plain = {}, {}
    for k in (6, 7, 8, 9, 12, 20, 48):  # the best k of PCA is 8
        cut = PCA(k).fit(rows)
        plain[k] = psnr(averaged(cut.inverse_transform(cut.transform(rows)), truth.shape), truth)
        ours[k] = psnr(averaged(ProbabilisticPCA(k).fit(rows).denoise(rows), truth.shape), truth)
    assert max(plain, key=plain.get) == 8
    assert max(ours.values()) > max(plain.values()) + 0.3, (ours, plain)
    assert ours[12] > max(plain.values()) + 0.1  # which k hardly matters
    assert all(ours[k] > plain[k] for k in (9, 12, 20, 48)), (ours, plain)
    # with too few components σ² has signal in it, and too much is shrunk
    assert plain[6] - 0.2 < ours[6] < plain[6]
    assert max(ours.values()) > psnr(noisy, truth) + 7
