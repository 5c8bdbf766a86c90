"""Mixture of factor analysers: against the models that it contains, SciPy's densities, and planted analysers."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import unmix
from unmix import PCA, FactorAnalysis, GaussianMixture, MixtureOfFactorAnalyzers
from unmix.engine.block import Block
from unmix.mixture import _analyzers as rows

KINDS = [("diagonal", False), ("diagonal", True), ("isotropic", False), ("isotropic", True)]


def planted(n=1500, d=12, K=3, q=2, apart=1.0, seed=0):
    rng = np.random.default_rng(seed)
    means, W = apart * rng.normal(size=(K, d)), rng.normal(size=(K, q, d))
    noise, label = rng.uniform(0.2, 0.6, size=(K, d)), np.arange(n) % K
    X = means[label] + np.einsum("na,naj->nj", rng.normal(size=(n, q)), W[label])
    return X + rng.normal(size=X.shape) * np.sqrt(noise[label]), label, (means, W, noise)


def holes(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def quietly(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **kwargs)


def log_density(model, X):
    """Row by row, of the observed cells, by SciPy."""
    out = np.zeros(len(X))
    for i, x in enumerate(np.asarray(X, dtype=float)):
        o = ~np.isnan(x)
        if o.any():
            terms = [
                multivariate_normal(m[o], C[np.ix_(o, o)]).logpdf(x[o])
                for m, C in zip(model.means_, model.get_covariance(), strict=True)
            ]
            out[i] = logsumexp(np.log(model.weights_) + terms)
    return out


# ---------------------------------------------------------------- the models that it contains


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_one_component_is_factor_analysis(k, missing):
    X = planted(600, K=1, q=3)[0]
    X = holes(X) if missing else X
    truth = quietly(FactorAnalysis(k, tol=1e-9, max_iter=5000), X)
    model = quietly(MixtureOfFactorAnalyzers(1, k, tol=1e-11, max_iter=3000, reg_covar=0.0), X)
    assert model.score(X) == pytest.approx(truth.score(X), abs=1e-6)
    np.testing.assert_allclose(model.get_covariance()[0], truth.get_covariance(), atol=1e-2)
    assert model.n_parameters() == truth.n_parameters()


@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_real_columns_that_factors_reproduce(data):
    """Where a noise variance falls to its floor, EM is slow; the two must still find one optimum."""
    X = data().data
    truth = quietly(FactorAnalysis(2, tol=1e-9, max_iter=5000), X)
    model = quietly(MixtureOfFactorAnalyzers(1, 2, tol=1e-12, max_iter=5000, reg_covar=0.0), X)
    assert model.score(X) == pytest.approx(truth.score(X), abs=1e-6)


@pytest.mark.parametrize("missing", [False, True])
def test_full_rank_is_a_gaussian_mixture(missing):
    X = np.random.default_rng(0).permutation(planted(600, 4, 2, 2, apart=3.0)[0])
    X = holes(X, 0.1) if missing else X
    options = {"tol": 1e-11, "max_iter": 3000, "random_state": 0, "reg_covar": 0.0}
    truth = quietly(GaussianMixture(2, **options), X)
    model = quietly(MixtureOfFactorAnalyzers(2, 4, **options), X)
    assert model.score(X) == pytest.approx(truth.score(X), abs=1e-6)
    assert model.n_parameters() == truth.n_parameters()
    order = truth.means_[:, 0].argsort(), model.means_[:, 0].argsort()
    np.testing.assert_allclose(model.get_covariance()[order[1]], truth.covariances_[order[0]], atol=1e-3)


def test_without_factors_it_is_a_diagonal_mixture():
    X = planted(600, 5, 2, 1, apart=3.0)[0]
    options = {"tol": 1e-11, "max_iter": 3000, "random_state": 0, "reg_covar": 0.0}
    truth = quietly(GaussianMixture(2, covariance_type="diag", **options), X)
    model = quietly(MixtureOfFactorAnalyzers(2, 0, **options), X)
    assert model.score(X) == pytest.approx(truth.score(X), abs=1e-8)
    assert model.n_parameters() == truth.n_parameters()
    assert model.factors(X).shape == (600, 0)


@pytest.mark.parametrize("missing", [False, True])
def test_isotropic_noise_is_probabilistic_pca(missing):
    X = planted(500, 6, 1, 2)[0]
    X = holes(X) if missing else X
    model = quietly(MixtureOfFactorAnalyzers(1, 2, noise="isotropic", tol=1e-12, max_iter=3000, reg_covar=0.0), X)
    assert np.ptp(model.noise_variance_) < 1e-9 * model.noise_variance_.max()
    if missing:
        truth = quietly(PCA(2, tol=1e-12), X)  # by EM, with variances divided by n − 1 for the user
        np.testing.assert_allclose(abs(unit(model.components_[0]) @ truth.components_.T), np.eye(2), atol=1e-3)
        return
    S = np.cov(X.T, bias=True)
    values = np.linalg.eigvalsh(S)[::-1]
    noise = values[2:].mean()  # Tipping & Bishop (1999)
    C = S * 0 + noise * np.eye(6)
    axes = np.linalg.eigh(S)[1][:, ::-1][:, :2]
    C += (axes * (values[:2] - noise)) @ axes.T
    np.testing.assert_allclose(model.get_covariance()[0], C, atol=1e-5)
    assert model.score(X) == pytest.approx(multivariate_normal(X.mean(axis=0), C).logpdf(X).mean(), abs=1e-8)


def unit(W):
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def test_a_mixture_of_isotropic_analysers_is_one_of_pcas():
    """Each component is the probabilistic PCA of the rows weighted by its responsibilities."""
    X = planted(900, 6, 2, 2, apart=2.0)[0]
    model = quietly(MixtureOfFactorAnalyzers(2, 2, noise="isotropic", tol=1e-12, max_iter=3000, random_state=0), X)
    for k, z in enumerate(model.predict_proba(X).T):
        S = np.cov(X.T, aweights=z, bias=True)
        values = np.linalg.eigvalsh(S)[::-1]
        np.testing.assert_allclose(model.noise_variance_[k], values[2:].mean(), rtol=1e-4)
        found = np.linalg.eigvalsh(model.get_covariance()[k])[::-1]
        np.testing.assert_allclose(found[:2], values[:2], rtol=1e-4)


# ---------------------------------------------------------------- densities and passes


@pytest.mark.parametrize(("noise", "shared"), KINDS)
def test_densities_are_scipys(noise, shared):
    X = planted(90)[0]
    H = holes(X)
    H[5] = np.nan
    for data in (X, H):
        model = quietly(
            MixtureOfFactorAnalyzers(3, 2, noise=noise, shared_noise=shared, random_state=0, max_iter=5), data
        )
        np.testing.assert_allclose(model.score_samples(data), log_density(model, data), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.predict_proba(data).sum(axis=1), 1.0)
    assert model.score_samples(H)[5] == 0
    np.testing.assert_allclose(model.predict_proba(H)[5], model.weights_, rtol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.transform(H)), model.predict_proba(H) @ model.means_)


def test_two_ways_to_one_answer():
    """Features and cells give the same responsibilities, densities and statistics."""
    X = planted(200)[0]
    w = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    U = quietly(MixtureOfFactorAnalyzers(3, 2, max_iter=2, random_state=0), X).parts
    fast, sure = rows.by_features(U, X, w, True), rows.by_cells(U, X, w, None, True)
    for a, b in zip((*fast[:2], *fast[2]), (*sure[:2], *sure[2]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())


def test_numbers_that_would_cancel_go_the_sure_way(monkeypatch):
    X = planted(200)[0]
    X[:, 0] = X[:, 1] + 1e-7 * X[:, 2]  # nearly a copy: its noise falls to the floor
    model = quietly(MixtureOfFactorAnalyzers(3, 2, random_state=0, reg_covar=0.0), X.astype(np.float32))
    monkeypatch.setattr(rows, "by_features", None)
    assert float(model.parts.scratch.spread) * np.finfo(np.float32).eps > 1e-3
    np.testing.assert_allclose(model.score_samples(X.astype(np.float32)), log_density(model, X), rtol=1e-2)


def test_rows_with_and_without_holes_in_other_blocks():
    """Complete blocks hand back one A for all columns, others one for each; their sum is that of all rows together."""
    X = planted(400)[0]
    X[250:] = holes(X[250:])
    with unmix.config(block_rows=100):
        cut = quietly(MixtureOfFactorAnalyzers(3, 2, random_state=0, max_iter=8), X)
    with unmix.config(block_rows=400):
        whole = quietly(MixtureOfFactorAnalyzers(3, 2, random_state=0, max_iter=8), X)
    np.testing.assert_allclose(cut.get_covariance(), whole.get_covariance(), rtol=1e-6, atol=1e-8)


def test_batches_may_or_may_not_have_holes():
    X = planted(900, apart=3.0)[0]
    model = MixtureOfFactorAnalyzers(3, 2, random_state=0)
    for batch in (X[:300], holes(X[300:600]), X[600:]):
        model.partial_fit(batch)
    assert np.isfinite(model.score(X))
    assert model.score(X) > quietly(MixtureOfFactorAnalyzers(1, 2), X).score(X)


# ---------------------------------------------------------------- planted analysers


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_planted_analysers_are_found(share):
    X, label, (means, W, noise) = planted(3000, 20, 3, 3)
    model = quietly(MixtureOfFactorAnalyzers(3, 3, tol=1e-6, random_state=0), holes(X, share) if share else X)
    assert adjusted_rand_score(model.labels_, label) > (0.98 if not share else 0.95)
    order = ((model.means_[:, None] - means) ** 2).sum(axis=2).argmin(axis=0)
    np.testing.assert_allclose(model.noise_variance_[order], noise, atol=0.12)
    for k, own in zip(order, W, strict=True):
        cosines = np.linalg.svd(np.linalg.qr(model.components_[k].T)[0].T @ np.linalg.qr(own.T)[0])[1]
        assert cosines.min() > 0.98


def test_groups_that_differ_in_their_factors_alone():
    """k-means and diagonal mixtures see one cloud, so the start must not be k-means."""
    X, label, _ = planted(1500, 10, 2, 1, apart=0.0)
    model = quietly(MixtureOfFactorAnalyzers(2, 1, init_params="random", n_init=5, tol=1e-6, random_state=0), X)
    assert adjusted_rand_score(model.labels_, label) > 0.5
    plain = quietly(GaussianMixture(2, covariance_type="diag", n_init=5, random_state=0), X)
    assert adjusted_rand_score(plain.labels_, label) < 0.4


@pytest.mark.parametrize("noise", ["diagonal", "isotropic"])
def test_shared_noise(noise):
    rng = np.random.default_rng(0)
    means, W = 2.0 * rng.normal(size=(2, 8)), rng.normal(size=(2, 2, 8))
    psi, label = rng.uniform(0.2, 1.0, 8), np.arange(2000) % 2
    psi = np.full(8, 0.5) if noise == "isotropic" else psi
    X = means[label] + np.einsum("na,naj->nj", rng.normal(size=(2000, 2)), W[label])
    X += rng.normal(size=X.shape) * np.sqrt(psi)
    shared = quietly(MixtureOfFactorAnalyzers(2, 2, noise=noise, shared_noise=True, tol=1e-7, random_state=0), X)
    own = quietly(MixtureOfFactorAnalyzers(2, 2, noise=noise, tol=1e-7, random_state=0), X)
    assert np.array_equal(shared.noise_variance_[0], shared.noise_variance_[1])
    np.testing.assert_allclose(shared.noise_variance_[0], psi, atol=0.1)
    assert shared.score(X) < own.score(X) < shared.score(X) + 0.02
    assert shared.n_parameters() == own.n_parameters() - (8 if noise == "diagonal" else 1)
    assert shared.bic(X) < own.bic(X)


def test_factor_scores_rebuild_rows():
    X, _, _ = planted(600, 30, 2, 2, apart=2.0)
    for data in (X, holes(X)):
        model = quietly(MixtureOfFactorAnalyzers(2, 2, tol=1e-6, random_state=0), data)
        label, Z = model.predict(data), model.factors(data)
        assert Z.shape == (600, 2)
        rebuilt = model.means_[label] + np.einsum("na,naj->nj", Z, model.components_[label])
        noise = model.noise_variance_[label]
        assert np.nanmean((data - rebuilt) ** 2 / noise) < 1.1
        C, mean = model.get_covariance()[label[0]], model.means_[label[0]]
        o = ~np.isnan(data[0])
        W = model.components_[label[0]]
        np.testing.assert_allclose(Z[0], W[:, o] @ np.linalg.solve(C[np.ix_(o, o)], (data[0] - mean)[o]), rtol=1e-6)
    for W, psi in zip(model.components_, model.noise_variance_, strict=True):
        G = (W / psi) @ W.T
        assert abs(G[0, 1]) < 1e-9 * G[0, 0]
        assert G[0, 0] >= G[1, 1]
        assert (W[np.arange(2), np.abs(W).argmax(axis=1)] > 0).all()


# ---------------------------------------------------------------- what else may be asked


def test_imputation_is_that_of_the_same_gaussians():
    X = planted(150)[0]
    H = holes(X)
    H[7] = np.nan
    model = quietly(MixtureOfFactorAnalyzers(3, 2, random_state=0), H)
    same = GaussianMixture.from_parameters(*model.gaussians())
    mean, deviation = model.impute(H, return_std=True)
    other, spread = same.impute(H, return_std=True)
    np.testing.assert_allclose(mean, other, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(deviation, spread, rtol=1e-6, atol=1e-8)
    seen = ~np.isnan(H)
    assert np.array_equal(mean[seen], H[seen])
    draws = model.impute(H, n_draws=400, random_state=0)
    gone = ~seen
    np.testing.assert_allclose(draws.mean(axis=0)[gone], mean[gone], atol=6 * deviation.max() / 20)
    assert np.mean(draws.std(axis=0)[gone] / deviation[gone]) == pytest.approx(1.0, abs=0.02)
    away = np.abs(X - mean)[gone] / deviation[gone]
    assert 0.9 < (away < 2).mean() < 0.99


def test_sample_and_criteria():
    X = planted(900, apart=3.0)[0]
    model = quietly(MixtureOfFactorAnalyzers(3, 2, tol=1e-6, random_state=0), X)
    draws, y = model.sample(30_000)
    weights, means, C = model.gaussians()
    np.testing.assert_allclose(np.bincount(y) / len(y), weights, atol=0.01)
    np.testing.assert_allclose(np.cov(draws[y == 1].T), C[1], atol=0.15)
    np.testing.assert_allclose(draws[y == 1].mean(axis=0), means[1], atol=0.05)
    K, q, d = 3, 2, 12
    p = K - 1 + K * d + K * (d * q - 1 + d)
    assert model.n_parameters() == p
    assert model.bic(X) == pytest.approx(p * np.log(len(X)) - 2 * model.score_samples(X).sum())
    assert model.aic(X) == pytest.approx(2 * p - 2 * model.score_samples(X).sum())
    z = model.predict_proba(X)
    entropy = -(z * np.log(np.maximum(z, 1e-300))).sum()
    assert model.icl(X) == pytest.approx(model.bic(X) + 2 * entropy)
    assert model.lower_bound_ == pytest.approx(model.score(X))


def test_given_parameters():
    _, _, (means, W, noise) = planted()
    model = MixtureOfFactorAnalyzers.from_parameters([0.2, 0.3, 0.5], means, W, noise, random_state=0)
    X, y = model.sample(4000)
    np.testing.assert_allclose(model.score_samples(X[:50]), log_density(model, X[:50]))
    assert adjusted_rand_score(model.predict(X), y) > 0.9
    again = quietly(model.set_params(warm_start=True, tol=1e-6), X)
    assert again.result_ == "converged"
    np.testing.assert_allclose(again.weights_, [0.2, 0.3, 0.5], atol=0.03)  # in their order
    model = MixtureOfFactorAnalyzers.from_parameters([0.2, 0.3, 0.5], means, W, noise)
    before = model.score(X)
    assert model.partial_fit(X, rate=1.0).score(X) > before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [0.5, 0.4, 0.2]}, r"weights sums to 1\.1: give numbers"),
        ({"means": np.zeros((3, 5))}, r"means has shape \(3, 5\): .* \(3, 12\)"),
        ({"components": np.zeros((3, 12))}, r"components has shape \(3, 12\): .*\(K, q, d\)"),
        ({"noise_variance": np.zeros((3, 12))}, "noise_variance holds a number that is not positive"),
    ],
)
def test_wrong_parameters_are_named(change, message):
    _, _, (means, W, noise) = planted()
    given = {"weights": np.full(3, 1 / 3), "means": means, "components": W, "noise_variance": noise}
    with pytest.raises(ValueError, match=message):
        MixtureOfFactorAnalyzers.from_parameters(**given | change)


def uneven():
    """Two factors in columns of very different units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) @ rng.normal(size=(2, 6)) + 0.7 * rng.normal(size=(600, 6))
    return X * [1.0, 1.0, 1.0, 3.0, 9.0, 0.3]


@pytest.mark.parametrize(("noise", "shared"), KINDS[1:])
def test_a_warm_start_keeps_to_the_noise_that_is_asked_for(noise, shared):
    X = uneven()
    model = quietly(MixtureOfFactorAnalyzers(2, 2, random_state=0, warm_start=True), X)
    fresh = quietly(MixtureOfFactorAnalyzers(2, 2, noise=noise, shared_noise=shared, random_state=0), X)
    quietly(model.set_params(noise=noise, shared_noise=shared), X)
    np.testing.assert_array_equal(model.noise_variance_, fresh.noise_variance_)
    assert len(quietly(model, X).trace_) < len(fresh.trace_)  # parts of such noise suit


def test_given_noise_is_as_it_is_asked_for():
    W, psi = np.ones((2, 1, 3)), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    given = [0.5, 0.5], np.zeros((2, 3)), W
    of = MixtureOfFactorAnalyzers.from_parameters
    with pytest.raises(ValueError, match=r"noise_variance differs, .* the same for every column"):
        of(*given, psi, noise="isotropic")
    with pytest.raises(ValueError, match=r"noise_variance differs, .* the same for every component"):
        of(*given, psi * [[1.0], [2.0]], shared_noise=True)
    of(*given, psi, shared_noise=True)
    model = of(*given, np.full((2, 3), 0.1) * [[1.0], [2.0]] * [1.0, 1.0, 1.0 + 1e-12], noise="isotropic")
    assert (model.noise_variance_ == model.noise_variance_[:, :1]).all()


# ---------------------------------------------------------------- how many


def test_how_many_components():
    X = planted(900, 8, 3, 1, apart=3.0)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = unmix.select(MixtureOfFactorAnalyzers(n_factors=1), X, k=range(1, 6), random_state=0)
    assert answer.k == 3
    assert answer.model.components_.shape == (3, 1, 8)


def test_how_many_factors():
    X = planted(600, 7, 2, 2, apart=2.0)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = unmix.select(
            MixtureOfFactorAnalyzers(2, tol=1e-5), X, k=range(1, 9), parameter="n_factors", random_state=0
        )
        chosen = unmix.Select(MixtureOfFactorAnalyzers(2), k=[1, 2], parameter="n_factors", random_state=0).fit(X)
    assert answer.k == 2
    assert (answer.criterion, answer.parameter) == ("bic", "n_factors")
    assert answer.sentence.startswith("2 factors")
    assert "k = 8" in answer.reason  # more factors than columns
    assert answer.model.components_.shape == (2, 2, 7)
    assert (np.diff(answer.table["objective"]) < 1e-4).all()  # a factor more never fits worse
    assert chosen.k_ == chosen.model_.n_factors == 2


def test_only_numbers_of_the_model_are_chosen():
    with pytest.raises(ValueError, match=r"parameter='n_init' is no number of .*: take n_components, n_factors"):
        unmix.select(MixtureOfFactorAnalyzers(2), planted(50)[0], parameter="n_init")


def test_neighbours_fit_no_worse():
    X = planted(600, 8, 3, 2, apart=2.0)[0]
    fit = quietly(MixtureOfFactorAnalyzers(3, 2, random_state=0, tol=1e-6), X)
    shape, rng = fit.shape, np.random.default_rng(0)

    def likelihood(model, parts):
        return -model.at(shape).local(parts, Block(X)).loss / len(X)

    class Found:
        U = fit.parts

    more = MixtureOfFactorAnalyzers(3, 3)
    assert likelihood(more, more.at(shape).neighbour(Found, True, rng)) > fit.score(X) - 0.1
    for K, up in ((2, False), (4, True)):
        near = MixtureOfFactorAnalyzers(K, 2)
        parts = near.at(shape).neighbour(Found, up, rng)
        assert len(parts.weights) == K
        assert parts.weights.sum() == pytest.approx(1.0)
        assert np.isfinite(likelihood(near, parts))


@pytest.mark.parametrize(("noise", "shared"), KINDS)
def test_with_a_factor_fewer_passes_begin_in_the_model(noise, shared):
    """What the lost factor leaves to the noise is one for all columns or components where the noise is."""
    X = uneven()
    options = {"noise": noise, "shared_noise": shared}
    fit = quietly(MixtureOfFactorAnalyzers(2, 3, random_state=0, tol=1e-8, max_iter=2000, **options), X)

    class Found:
        U = fit.parts

    less = MixtureOfFactorAnalyzers(2, 2, **options).at(fit.shape)
    parts, losses = less.neighbour(Found, False, np.random.default_rng(0)), []
    assert noise == "diagonal" or (parts.noise == parts.noise[:, :1]).all()
    assert not shared or (parts.noise == parts.noise[0]).all()
    for _ in range(4):
        found = less.local(parts, Block(X))
        losses.append(found.loss)
        parts = less.update(parts, found.stats)
    assert (np.diff(losses) < 0).all()


# ---------------------------------------------------------------- hostile input


def test_components_that_lose_their_rows_are_reset_and_told():
    _, _, (means, W, noise) = planted()
    X = planted()[0]
    far = means.copy()
    far[2] += 1e4
    model = MixtureOfFactorAnalyzers.from_parameters(np.full(3, 1 / 3), far, W, noise, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="lost all their rows and were reset"):
        model.fit(X)
    assert (model.weights_ > 0.1).all()


def test_copies_and_constant_columns_are_told():
    X = planted(300)[0]
    X[:, 3] = X[:, 2]
    X[:, 4] = 7.0
    with pytest.warns(ConvergenceWarning, match="noise fell to its floor"):
        model = MixtureOfFactorAnalyzers(2, 3, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert (model.noise_variance_ > 0).all()


@pytest.mark.parametrize("n", [3, 4, 8])
def test_fewer_rows_than_columns(n):
    X = np.random.default_rng(0).normal(size=(n, 30))
    model = quietly(MixtureOfFactorAnalyzers(2, 5, random_state=0), X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.factors(X)).all()


def test_more_factors_than_columns():
    X = planted(200, 4, 2, 1, apart=3.0)[0]
    model = quietly(MixtureOfFactorAnalyzers(2, 9, random_state=0), X)
    assert model.components_.shape == (2, 4, 4)
    with pytest.raises(ValueError, match="n_factors=9 is more than the 4 columns of X"):
        MixtureOfFactorAnalyzers(2, 9).check_parameters(model.shape)


def test_a_row_far_out_has_an_answer():
    X = planted(300)[0]
    model = quietly(MixtureOfFactorAnalyzers(3, 2, random_state=0), X)
    out = model.predict_proba(np.vstack([X[:1], 1e8 * np.ones((1, 12))]))
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_statistics_beyond_the_budget_are_refused():
    X = holes(planted(100)[0])
    with unmix.config(memory_budget=1000), pytest.raises(ValueError, match=r"n_factors=10 .* missing cells need"):
        MixtureOfFactorAnalyzers(3, 10).fit(X)


@pytest.mark.parametrize(("noise", "shared"), KINDS)
@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
def test_the_likelihood_never_falls(noise, shared, init):
    X = holes(planted(300)[0], 0.1)
    model = MixtureOfFactorAnalyzers(
        3, 2, noise=noise, shared_noise=shared, init_params=init, tol=0.0, max_iter=40, random_state=0
    )
    with unmix.config(acceleration=False):
        bounds = np.array(quietly(model, X).lower_bounds_)
    assert (np.diff(bounds) > -1e-9).all()
