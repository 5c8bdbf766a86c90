"""`impute` of every model that can: formulas by hand, draws, refusals in words."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student_t
from sklearn.exceptions import NotFittedError

import unmix
from unmix.maths import gaussian
from unmix.mixture import Mixture, Student

MODELS = {
    "PCA": lambda: unmix.PCA(2),
    "FactorAnalysis": lambda: unmix.FactorAnalysis(2),
    "GaussianImputer": lambda: unmix.GaussianImputer(n_bootstrap=2, random_state=0),
    "GaussianMixture": lambda: unmix.GaussianMixture(2, random_state=0),
    "tied": lambda: unmix.GaussianMixture(2, covariance_type="tied", random_state=0),
    "diag": lambda: unmix.GaussianMixture(2, covariance_type="diag", random_state=0),
    "spherical": lambda: unmix.GaussianMixture(2, covariance_type="spherical", random_state=0),
    "BayesianGaussianMixture": lambda: unmix.BayesianGaussianMixture(2, random_state=0),
    "Mixture": lambda: Mixture(2, random_state=0),
    "Student": lambda: Mixture(2, family="student", random_state=0),
}
every = pytest.mark.parametrize("name", MODELS)


def planted(n=300, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(n, 5))
    X[: n // 2] += 6.0
    return X, np.where(rng.random(X.shape) < share, np.nan, X)


@every
def test_the_three_ways_agree(name):
    _, X = planted()
    X[7] = np.nan
    model = MODELS[name]().fit(X)
    gone = np.isnan(X)
    mean, deviation = model.impute(X, return_std=True)
    draws = model.impute(X, n_draws=400, random_state=0)
    np.testing.assert_allclose(model.impute(X), mean, rtol=1e-10, atol=1e-12)
    for filled in (mean, *draws[:3]):
        np.testing.assert_array_equal(filled[~gone], X[~gone])
    assert (deviation[~gone] == 0).all()
    if name == "GaussianImputer":  # with draws of parameters: two estimates
        return
    z = (draws.mean(axis=0) - mean)[gone] / (deviation[gone] / 20)
    assert np.abs(z).mean() < 1.0  # 0.8 of a standard normal
    assert np.median(draws.std(axis=0)[gone] / deviation[gone]) == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(draws[:2], model.impute(X, n_draws=2, random_state=0))
    assert not np.array_equal(draws[0], draws[1])


@every
def test_draws_are_by_the_seed_of_the_model(name):
    _, X = planted(n=60)
    model = MODELS[name]().set_params(random_state=3).fit(X)
    a, b, other = (model.impute(X, n_draws=2, random_state=state) for state in (None, None, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, other)


@every
def test_blocks_precision_and_rows_without_holes(name):
    X, holes = planted()
    model = MODELS[name]().fit(holes)
    whole = model.impute(holes)
    with unmix.config(block_rows=64):
        np.testing.assert_allclose(model.impute(holes), whole, rtol=1e-9, atol=1e-12)
    single = MODELS[name]().fit(holes.astype(np.float32))
    assert all(a.dtype == np.float32 for a in single.impute(holes.astype(np.float32), return_std=True))
    assert single.impute(holes.astype(np.float32), n_draws=1).dtype == np.float32
    mean, deviation = model.impute(X, return_std=True)
    np.testing.assert_array_equal(mean, X)
    assert not deviation.any()
    np.testing.assert_array_equal(model.impute(X, n_draws=2), [X, X])


def test_a_mixture_of_gaussians_by_the_book():
    model = unmix.GaussianMixture.from_parameters(
        [0.3, 0.7], [[0.0, 0.0], [3.0, -2.0]], [[[1.0, 0.6], [0.6, 2.0]], [[0.5, -0.2], [-0.2, 1.0]]]
    )
    mean, deviation = model.impute([[1.0, np.nan]], return_std=True)
    z = np.array([0.3 * norm.pdf(1.0, 0, 1), 0.7 * norm.pdf(1.0, 3, np.sqrt(0.5))])
    z /= z.sum()
    means, variances = np.array([0.6, -2.0 - 0.4 * (1.0 - 3.0)]), np.array([2.0 - 0.36, 1.0 - 0.04 / 0.5])
    expected = z @ means
    assert mean[0, 1] == pytest.approx(expected)
    assert deviation[0, 1] == pytest.approx(np.sqrt(z @ (variances + (means - expected) ** 2)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_many_patterns_at_once_are_each_by_itself(share):
    rng = np.random.default_rng(0)
    K, d = 3, 8
    roots = rng.normal(size=(K, d, d))
    mixture = rng.dirichlet(np.ones(K)), rng.normal(size=(K, d)), roots @ roots.transpose(0, 2, 1) + np.eye(d)
    x, observed = rng.normal(size=(30, d)), rng.random((30, d)) >= share
    mean, variance = gaussian.conditional(x, observed, *mixture)
    for i in range(30):
        o, m = observed[i], ~observed[i]
        if not m.any():
            continue
        log_z, centre, own = [], [], []
        for pi, mu, C in zip(*mixture, strict=True):
            S = C[np.ix_(m, o)] @ np.linalg.inv(C[np.ix_(o, o)]) if o.any() else np.zeros((m.sum(), 0))
            density = multivariate_normal.logpdf(x[i, o], mu[o], C[np.ix_(o, o)]) if o.any() else 0.0
            log_z.append(np.log(pi) + density)
            centre.append(mu[m] + S @ (x[i, o] - mu[o]))
            own.append(np.diag(C[np.ix_(m, m)] - S @ C[np.ix_(o, m)]))
        z = np.exp(log_z - np.max(log_z))
        z /= z.sum()
        np.testing.assert_allclose(mean[i, m], z @ centre, rtol=1e-8)
        np.testing.assert_allclose(variance[i, m], z @ (own + (np.array(centre) - z @ centre) ** 2), rtol=1e-7)


@pytest.mark.parametrize("powers", [[40] * 5, [-40] * 5, [40, -40, 0, 20, -20], [200, -200, 0, 100, -100]], ids=str)
@pytest.mark.parametrize("share", [0.2, 0.7])
def test_columns_in_any_units(powers, share):
    """Bytes beside seconds: every column has its own unit, and nothing is rounded."""
    rng, c = np.random.default_rng(0), np.ldexp(1.0, powers)
    roots = rng.normal(size=(2, 5, 5))
    weights, means, covariances = [0.4, 0.6], rng.normal(size=(2, 5)), roots @ roots.transpose(0, 2, 1) + np.eye(5)
    X = np.where(rng.random((40, 5)) < share, np.nan, rng.normal(size=(40, 5)))
    one = unmix.GaussianMixture.from_parameters(weights, means, covariances)
    other = unmix.GaussianMixture.from_parameters(weights, means * c, covariances * np.outer(c, c))
    for a, b in zip(one.impute(X, return_std=True), other.impute(X * c, return_std=True), strict=True):
        np.testing.assert_allclose(b / c, a, rtol=1e-9)
    drawn = (model.impute(x, n_draws=3, random_state=0) for model, x in ((one, X), (other, X * c)))
    np.testing.assert_allclose(next(drawn), next(drawn) / c, rtol=1e-9)
    for a, b in zip(one.expected_cells(X), other.expected_cells(X * c), strict=True):
        np.testing.assert_allclose(b / c, a, rtol=1e-9)
    np.testing.assert_allclose(gaussian.inverse(covariances[0] * np.outer(c, c)) * np.outer(c, c),
                               np.linalg.inv(covariances[0]), rtol=1e-9)  # fmt: skip


def test_the_density_of_observed_cells_in_any_unit():
    rng, c = np.random.default_rng(0), np.ldexp(1.0, [40, -40, 0])
    C, X = np.eye(3) + 0.5, rng.normal(size=(20, 3))
    observed = rng.random(X.shape) < 0.6
    found = gaussian.completed(X * c, observed, np.zeros(3), C * np.outer(c, c)).log_p
    for x, seen, log_p in zip(X, observed, found, strict=True):
        density = multivariate_normal.logpdf(x[seen], np.zeros(seen.sum()), C[np.ix_(seen, seen)]) if seen.any() else 0
        assert log_p == pytest.approx(density - np.log(c[seen]).sum())


# ---------------------------------------------------------------- families


def test_student_by_the_book():
    model = Mixture(1, family=Student(df=3.0), random_state=0)
    model.fit(planted(share=0.3)[1])
    mu, scale = model.parameters_["means"][0], np.sqrt(model.parameters_["variances"][0])
    row = np.array([[mu[0] + 4 * scale[0], mu[1], np.nan, np.nan, mu[4] - scale[4]]])
    mean, deviation = model.impute(row, return_std=True)
    df, wide = 3 + 3, np.sqrt((3 + 16 + 1) / (3 + 3))
    np.testing.assert_allclose(mean[0, 2:4], mu[2:4])
    np.testing.assert_allclose(deviation[0, 2:4], student_t.std(df) * wide * scale[2:4], rtol=1e-6)
    draws = model.impute(np.repeat(row, 4000, axis=0), n_draws=1, random_state=0)[0][:, 2:4]
    tails = np.abs(draws - mu[2:4]) > 2.5 * wide * scale[2:4]
    assert tails.mean() == pytest.approx(2 * student_t.sf(2.5, df), abs=0.01)
    apart = np.corrcoef(np.abs((draws - mu[2:4]) / scale[2:4]).T)[0, 1]
    assert apart > 0.05  # far rows are far in all columns: one u a row


def test_student_without_a_variance_says_so():
    model = Mixture(1, family=Student(df=1.0), random_state=0).fit(planted(share=0.0)[0])
    deviation = model.impute(np.full((1, 5), np.nan), return_std=True)[1]
    assert np.isinf(deviation).all()


def test_levels_counts_and_truths():
    rng = np.random.default_rng(0)
    label = np.arange(2000) % 2
    X = np.column_stack([
        np.where(rng.random(2000) < 0.9, 2 * label, 1),
        rng.poisson(np.where(label, 9.0, 2.0)),
        rng.random(2000) < np.where(label, 0.9, 0.2),
        rng.exponential(np.where(label, 5.0, 0.5)),
        6.0 * label + rng.normal(size=2000),
    ]).astype(float)  # fmt: skip
    families = [("categorical", [0]), ("poisson", [1]), ("bernoulli", [2]), ("exponential", [3]), ("gaussian", [4])]
    model = Mixture(2, family=families, random_state=0).fit(X)
    rows = np.full((2, 5), np.nan)
    rows[:, 4] = 0.0, 6.0
    mean, deviation = model.impute(rows, return_std=True)
    np.testing.assert_array_equal(mean[:, 0], [0.0, 2.0])
    np.testing.assert_allclose(mean[:, 1], [2.0, 9.0], rtol=0.05)
    np.testing.assert_allclose(mean[:, 2], [0.2, 0.9], atol=0.04)
    np.testing.assert_allclose(mean[:, 3], [0.5, 5.0], rtol=0.1)
    np.testing.assert_allclose(deviation[:, 0], np.sqrt(0.09), atol=0.03)
    np.testing.assert_allclose(deviation[:, 1], np.sqrt([2.0, 9.0]), rtol=0.05)
    np.testing.assert_allclose(deviation[:, 3], [0.5, 5.0], rtol=0.1)
    many = model.impute(np.repeat(rows[1:], 2000, axis=0), n_draws=1, random_state=0)[0]
    assert set(np.unique(many[:, 0])) <= {0.0, 1.0, 2.0}
    assert set(np.unique(many[:, 2])) == {0.0, 1.0}
    assert (many[:, 1] == np.floor(many[:, 1])).all()
    np.testing.assert_allclose(many.mean(axis=0)[1:4], [9.0, 0.9, 5.0], rtol=0.1)
    assert (many[:, 0] == 2).mean() == pytest.approx(0.9, abs=0.03)


def test_a_family_of_ones_own_says_what_it_lacks():
    class Poorer(unmix.mixture.families.Poisson):
        def variance(self, P):
            return None

    X = np.random.default_rng(0).poisson(3.0, (50, 2)).astype(float)
    model = Mixture(1, family=Poorer(), random_state=0).fit(X)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"Poorer does not say .* `mean` and `variance`"):
        model.impute(X)
    assert model.impute(X, n_draws=2).shape == (2, 50, 2)


def test_multinomial_refuses_with_a_sentence():
    X = np.random.default_rng(0).multinomial(20, [0.2, 0.3, 0.5], 40).astype(float)
    model = Mixture(1, family="multinomial", random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"Mixture\(family='multinomial'\) cannot say .* take another family"):
        model.impute(X)


def test_a_frame_of_mixed_columns():
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=400)
    frame = pd.DataFrame({
        "colour": pd.Categorical(np.where(rng.random(400) < 0.95, np.array(["blue", "red"])[label], "green")),
        "size": np.where(rng.random(400) < 0.2, np.nan, 5.0 * label + rng.normal(size=400)),
    })  # fmt: skip
    model = Mixture(2, random_state=0).fit(frame)
    filled = model.impute(frame)
    assert filled.shape == (400, 2)
    gone = frame["size"].isna().to_numpy()
    assert np.corrcoef(filled[gone, 1], label[gone])[0, 1] > 0.9


# ---------------------------------------------------------------- models without a law of noise


@pytest.mark.parametrize("model", [unmix.NMF(3, random_state=0), unmix.RobustPCA(3, random_state=0)])
def test_models_that_rebuild_rows_fill_holes(model):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 1.0, (200, 3)) @ rng.gamma(1.0, 1.0, (3, 12))
    gone = rng.random(X.shape) < 0.1
    holes = np.where(gone, np.nan, X)
    filled = model.fit(holes).impute(holes)
    np.testing.assert_array_equal(filled[~gone], X[~gone])
    assert np.abs(filled - X)[gone].mean() < 0.1 * X.std()
    for more in ({"return_std": True}, {"n_draws": 3}):
        with pytest.raises(ValueError, match=f"{type(model).__name__} has no law .* Take GaussianImputer"):
            model.impute(holes, **more)


# ---------------------------------------------------------------- what cannot be asked


@every
def test_refusals(name):
    X, holes = planted()
    with pytest.raises(NotFittedError):
        MODELS[name]().impute(holes)
    model = MODELS[name]().fit(holes)
    with pytest.raises(ValueError, match="return_std=True with n_draws"):
        model.impute(holes, return_std=True, n_draws=3)
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match=r"n_draws=.*whole number"):
            model.impute(holes, n_draws=wrong)
    with pytest.raises(TypeError, match="toarray"):
        model.impute(sp.csr_array(X))
    with pytest.raises(ValueError, match="features"):
        model.impute(holes[:, :2])
