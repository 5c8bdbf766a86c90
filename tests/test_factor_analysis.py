"""Factor analysis against scikit-learn's likelihood, against the definition, and with missing cells."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import FactorAnalysis as Peer
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import unmix
from unmix import FactorAnalysis
from unmix.linear._newton import factor, newton, profile
from unmix.linear._rotations import rotate

SETS = {"digits": (load_digits, 10), "iris": (load_iris, 1), "breast": (load_breast_cancer, 5), "wine": (load_wine, 3),
        "diabetes": (load_diabetes, 3)}  # fmt: skip


@pytest.fixture(autouse=True)
def one_blas_thread():
    """The peer's small decompositions crawl when BLAS threads wait for each other."""
    with threadpool_limits(1):
        yield


def planted(n=800, d=15, k=3, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(k, d))
    noise = rng.uniform(0.2, 1.5, size=d)
    X = rng.normal(size=(n, k)) @ W + rng.normal(size=(n, d)) * np.sqrt(noise) + 4.0
    return W, noise, X


@pytest.mark.filterwarnings("ignore")  # the peer may not converge
@pytest.mark.parametrize("name", SETS)
def test_likelihood_is_no_smaller_than_the_peers(name):
    load, k = SETS[name]
    X = load().data
    ours, peer = FactorAnalysis(k).fit(X), Peer(k, svd_method="lapack").fit(X)
    assert ours.result_ == "converged"
    assert ours.loglike_[-1] >= peer.loglike_[-1] - 1e-2
    assert (np.diff(ours.loglike_) >= -1e-9 * np.abs(ours.loglike_[-1])).all()
    assert ours.n_iter_ <= 30


def test_same_optimum_as_the_peer_at_a_tight_tolerance():
    _, _, X = planted()
    ours, peer = FactorAnalysis(3, tol=1e-8).fit(X), Peer(3, tol=1e-8, svd_method="lapack", max_iter=5000).fit(X)
    np.testing.assert_allclose(ours.loglike_[-1], peer.loglike_[-1], rtol=1e-10)
    np.testing.assert_allclose(ours.get_covariance(), peer.get_covariance(), atol=1e-4)
    np.testing.assert_allclose(ours.noise_variance_, peer.noise_variance_, atol=1e-4)
    np.testing.assert_allclose(ours.mean_, peer.mean_)
    signs = np.sign(np.einsum("aj,aj->a", ours.components_, peer.components_))
    np.testing.assert_allclose(ours.components_, peer.components_ * signs[:, None], atol=1e-3)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X) * signs, atol=1e-3)
    np.testing.assert_allclose(ours.score_samples(X), peer.score_samples(X), atol=1e-3)
    assert (ours.components_[np.arange(3), np.abs(ours.components_).argmax(axis=1)] > 0).all()


def test_density_is_that_of_the_gaussian_with_the_published_covariance():
    _, _, X = planted(d=6, k=2)
    ours = FactorAnalysis(2).fit(X)
    C = ours.get_covariance()
    np.testing.assert_allclose(C, ours.components_.T @ ours.components_ + np.diag(ours.noise_variance_))
    truth = multivariate_normal(ours.mean_, C).logpdf(X)
    np.testing.assert_allclose(ours.score_samples(X), truth)
    np.testing.assert_allclose(ours.score(X) * len(X), ours.loglike_[-1])
    np.testing.assert_allclose(ours.get_precision() @ C, np.eye(6), atol=1e-9)
    z = (X - ours.mean_) @ np.linalg.solve(C, ours.components_.T)  # E[z | x]
    np.testing.assert_allclose(ours.transform(X), z)
    holes = X.copy()
    holes[:, [0, 4]] = np.nan
    seen = [1, 2, 3, 5]
    inner = C[np.ix_(seen, seen)]
    np.testing.assert_allclose(
        ours.score_samples(holes), multivariate_normal(ours.mean_[seen], inner).logpdf(X[:, seen])
    )
    z = (X - ours.mean_)[:, seen] @ np.linalg.solve(inner, ours.components_.T[seen])
    np.testing.assert_allclose(ours.transform(holes), z)


def test_newton_step_has_the_slope_and_curvature_of_the_profiled_likelihood():
    """The step must solve H δ = −∇ for the numerical derivatives of f; checked through the step it takes."""
    _, _, X = planted(n=300, d=6, k=2)
    S = np.cov(X.T, bias=True)
    theta = np.log(FactorAnalysis(2).fit(X).noise_variance_) + 0.02

    def f(t):
        return profile(S, np.exp(t), 2)[0]

    def slope(t, h=1e-5):
        return np.array([(f(t + h * e) - f(t - h * e)) / (2 * h) for e in np.eye(6)])

    H = np.array([(slope(theta + 1e-4 * e) - slope(theta - 1e-4 * e)) / 2e-4 for e in np.eye(6)])
    step = np.log(newton(S, np.exp(theta), np.full(6, 1e-9), 2)[0]) - theta
    np.testing.assert_allclose(step, -np.linalg.solve(H, slope(theta)), rtol=1e-2, atol=1e-5)


def varimax(L):
    """The criterion: variance of squared loadings, summed over factors."""
    return np.var(L**2, axis=1).sum()


@pytest.mark.parametrize("rotation", ["varimax", "quartimax"])
def test_orthogonal_rotation_is_the_peers_and_leaves_the_model_alone(rotation):
    _, _, X = planted()
    plain, ours = FactorAnalysis(3, tol=1e-8).fit(X), FactorAnalysis(3, tol=1e-8, rotation=rotation).fit(X)
    peer = Peer(3, rotation=rotation, tol=1e-8, svd_method="lapack", max_iter=5000).fit(X)
    np.testing.assert_allclose(ours.get_covariance(), plain.get_covariance())
    np.testing.assert_allclose(ours.score_samples(X), plain.score_samples(X))
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), plain.inverse_transform(plain.transform(X)))
    match = ours.components_ @ peer.components_.T / np.linalg.norm(ours.components_, axis=1)[:, None]
    match = np.abs(match / np.linalg.norm(peer.components_, axis=1))
    assert (match.max(axis=1) > 0.999).all()
    if rotation == "varimax":
        assert varimax(ours.components_) > varimax(plain.components_)
        assert varimax(ours.components_) >= varimax(peer.components_) - 1e-4
    z = (X - ours.mean_) @ np.linalg.solve(ours.get_covariance(), ours.components_.T)
    np.testing.assert_allclose(ours.transform(X), z, atol=1e-8)


def test_promax_finds_correlated_factors():
    rng = np.random.default_rng(0)
    pattern = np.kron(np.eye(3), np.ones(5)) * rng.uniform(0.7, 1.3, size=15)
    corr = np.array([[1, 0.5, 0.3], [0.5, 1, 0.4], [0.3, 0.4, 1.0]])
    X = rng.multivariate_normal(np.zeros(3), corr, size=4000) @ pattern + 0.4 * rng.normal(size=(4000, 15))
    oblique = FactorAnalysis(3, rotation="promax").fit(X)
    order = np.abs(oblique.components_ @ pattern.T).argmax(axis=0)
    np.testing.assert_allclose(np.abs(oblique.components_[order]), pattern, atol=0.12)
    np.testing.assert_allclose(oblique.factor_covariance_[np.ix_(order, order)], corr, atol=0.15)
    model = oblique.components_.T @ oblique.factor_covariance_ @ oblique.components_ + np.diag(oblique.noise_variance_)
    np.testing.assert_allclose(oblique.get_covariance(), model, atol=1e-9)


@pytest.mark.parametrize("rotation", ["promax", "oblimin"])
def test_shares_are_of_the_whole_variance_where_factors_correlate(rotation):
    rng = np.random.default_rng(0)
    corr = np.array([[1, 0.7, 0.6], [0.7, 1, 0.6], [0.6, 0.6, 1.0]])
    X = rng.multivariate_normal(np.zeros(3), corr, size=2000) @ np.kron(np.eye(3), np.ones(4))
    X += 0.4 * rng.normal(size=X.shape)
    model = FactorAnalysis(3, rotation=rotation).fit(X)
    shares = (model.components_**2).sum(axis=1) / X.var(axis=0).sum()
    np.testing.assert_allclose(model.explained(), shares, rtol=1e-2)
    plain = FactorAnalysis(3).fit(X)
    assert plain.explained().sum() == pytest.approx(1 - plain.noise_variance_.sum() / X.var(axis=0).sum(), rel=1e-3)


@pytest.mark.parametrize("missing", [False, True])
def test_the_factors_are_rotated_once_in_a_fit_and_in_every_online_step(missing, monkeypatch):
    _, _, X = planted()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X) if missing else X
    seen = []

    def counted(*given):
        seen.append(given)
        return rotate(*given)

    monkeypatch.setattr("unmix.linear.factor_analysis.rotate", counted)
    model = FactorAnalysis(3, rotation="varimax", tol=1e-6).fit(X)
    assert len(seen) == 1 < len(model.trace_)
    plain = FactorAnalysis(3, tol=1e-6).fit(X)
    assert varimax(model.components_) > varimax(plain.components_)
    before = len(seen)
    online = FactorAnalysis(3, rotation="varimax").partial_fit(X).partial_fit(X)
    assert varimax(online.components_) > varimax(FactorAnalysis(3).partial_fit(X).partial_fit(X).components_)
    assert len(seen) == before + 4


def test_heywood_cases_are_flagged():
    rng = np.random.default_rng(0)
    # r₁₂ r₁₃ / r₂₃ = 1.62: one factor would have to explain more than all of column 0
    corr = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, 0.5], [0.9, 0.5, 1.0]]) + 0.05 * np.eye(3)
    X = rng.normal(size=(300, 3))
    X = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T))).T @ np.linalg.cholesky(corr).T
    with pytest.warns(ConvergenceWarning, match=r"column\(s\) \(0\).*Heywood"):
        ours = FactorAnalysis(1).fit(X)
    assert ours.communalities_[0] == pytest.approx(1.0, abs=1e-5)
    assert (ours.communalities_[1:] < 0.95).all()
    assert np.isfinite(ours.transform(X)).all()
    _, _, clean = planted()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        FactorAnalysis(3).fit(clean)


def test_communalities():
    W, noise, X = planted(n=20_000)
    common = (W**2).sum(axis=0)
    np.testing.assert_allclose(FactorAnalysis(3).fit(X).communalities_, common / (common + noise), atol=0.03)


def test_missing_cells_beat_mean_filling():
    W, noise, X = planted(n=1000, d=20)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    ours, whole = FactorAnalysis(3).fit(holes), FactorAnalysis(3).fit(X)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    peer = Peer(3).fit(filled)
    C = W.T @ W + np.diag(noise)
    error, naive = (np.linalg.norm(m.get_covariance() - C) / np.linalg.norm(C) for m in (ours, peer))
    assert ours.result_ == "converged"
    assert error < 0.1
    assert naive > 4 * error
    assert np.abs(ours.noise_variance_ - noise).max() < 0.25 < np.abs(peer.noise_variance_ - noise).max()
    np.testing.assert_allclose(ours.noise_variance_, whole.noise_variance_, atol=0.25)
    z, truth = ours.transform(holes), whole.transform(X)
    assert np.abs([np.corrcoef(a, b)[0, 1] for a, b in zip(z.T, truth.T, strict=True)]).min() > 0.9
    holes[7] = np.nan
    np.testing.assert_allclose(ours.transform(holes)[7], 0.0, atol=1e-12)
    assert ours.score_samples(holes)[7] == 0.0


def test_missing_cells_reach_a_maximum():
    _, _, X = planted(n=200, d=8, k=2)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    ours = FactorAnalysis(2, tol=1e-7).fit(holes)
    best = ours.score(holes)
    rng = np.random.default_rng(0)
    U = ours._parts_
    for _ in range(20):
        ours._parts_ = U._replace(
            loadings=U.loadings + 3e-3 * rng.normal(size=U.loadings.shape),
            noise=U.noise * np.exp(3e-3 * rng.normal(size=8)),
            mean=U.mean + 3e-3 * rng.normal(size=8),
        )
        assert ours.score(holes) < best


def test_the_two_ways_agree_where_nothing_is_missing():
    """EM over cells, told that all of them are there, ends where Newton on the moments does."""
    _, _, X = planted(n=400, d=8, k=2)
    holed = np.vstack([X, np.full((1, 8), np.nan)])  # an empty row forces the way of cells
    np.testing.assert_allclose(
        FactorAnalysis(2, tol=1e-8).fit(holed).get_covariance(),
        FactorAnalysis(2, tol=1e-8).fit(X).get_covariance(),
        atol=1e-3,
    )


def test_csr_weights_float32_and_batches():
    rng = np.random.default_rng(0)
    _, _, X = planted(n=400)
    full = FactorAnalysis(3).fit(X)
    sparse = np.where(rng.random(X.shape) < 0.5, 0.0, X)
    np.testing.assert_allclose(
        FactorAnalysis(3).fit(sp.csr_array(sparse)).score_samples(sp.csr_array(sparse)),
        FactorAnalysis(3).fit(sparse).score_samples(sparse),
        rtol=1e-6,
    )
    w = rng.integers(0, 4, size=len(X))
    np.testing.assert_allclose(
        FactorAnalysis(3, tol=1e-8).fit(X, sample_weight=w).get_covariance(),
        FactorAnalysis(3, tol=1e-8).fit(np.repeat(X, w, axis=0)).get_covariance(),
        atol=1e-4,
    )
    single = FactorAnalysis(3).fit(X.astype(np.float32))
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.get_covariance(), full.get_covariance(), atol=1e-2)
    online = FactorAnalysis(3)
    for batch in np.array_split(X, 8):
        online.partial_fit(batch)
    assert np.linalg.norm(online.get_covariance() - full.get_covariance()) < 0.2 * np.linalg.norm(full.get_covariance())
    batch[:, 0] = np.nan
    online.partial_fit(batch)  # holes that come late
    assert np.isfinite(online.score(X))


@pytest.mark.filterwarnings("ignore:.*Heywood")  # said of limits on purpose
def test_limits():
    _, _, X = planted(n=100, d=5, k=2)
    none = FactorAnalysis(0).fit(X)
    np.testing.assert_allclose(none.noise_variance_, X.var(axis=0), rtol=1e-6)
    assert none.transform(X).shape == (100, 0)
    every = FactorAnalysis().fit(X)
    np.testing.assert_allclose(every.get_covariance(), np.cov(X.T, bias=True), atol=0.05)
    two = np.hstack([X, np.full((100, 1), 3.0)])  # a constant column
    with pytest.warns(ConvergenceWarning, match="Heywood"):
        assert np.isfinite(FactorAnalysis(2).fit(two).transform(two)).all()
    _, _, Y = planted()
    given = FactorAnalysis(3, noise_variance_init=np.full(15, 9.0)).fit(Y)
    np.testing.assert_allclose(given.loglike_[-1], FactorAnalysis(3).fit(Y).loglike_[-1], rtol=1e-6)
    H, logdet = factor(given._parts_)
    assert logdet == pytest.approx(-2 * np.log(np.diag(H)).sum())
    more, peer = FactorAnalysis(6).fit(X), Peer(6).fit(X)  # no more factors than columns, as there
    assert more.transform(X).shape == peer.transform(X).shape == (100, 5)
    np.testing.assert_array_equal(more.components_, every.components_)
    with pytest.raises(ValueError, match="noise_variance_init has shape"):
        FactorAnalysis(2, noise_variance_init=np.ones(3)).fit(X)
    with unmix.config(n_jobs=1):
        assert FactorAnalysis(2).fit(X[:2]).components_.shape == (2, 5)


@pytest.mark.parametrize("k", [0, 2, 5])
def test_the_precision_is_the_inverse_of_the_covariance_to_twelve_digits(k):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 5)) + 0.1 * rng.standard_normal((20, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # noise falls to its floor: that is what costs digits
        model = FactorAnalysis(k).fit(X)
    np.testing.assert_allclose(model.get_covariance() @ model.get_precision(), np.eye(5), atol=1e-12)


def test_no_factor_at_all_is_silent(capfd):
    X = np.random.default_rng(0).normal(size=(50, 4))
    model = FactorAnalysis(0).fit(X)
    assert model.transform(X).shape == (50, 0)
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------- R's factanal

# R's datasets: ability.cov, six tests given to 112 people (Smith & Stanley 1983)
ABILITY = np.array([
    [24.641, 5.991, 33.520, 6.023, 20.755, 29.701],
    [5.991, 6.700, 18.137, 1.782, 4.936, 7.204],
    [33.520, 18.137, 149.831, 19.424, 31.430, 50.753],
    [6.023, 1.782, 19.424, 12.711, 4.757, 9.075],
    [20.755, 4.936, 31.430, 4.757, 52.604, 66.762],
    [29.701, 7.204, 50.753, 9.075, 66.762, 135.292],
])  # fmt: skip
UNIQUE = [0.455, 0.589, 0.218, 0.769, 0.052, 0.334]  # printed by factanal(factors = 2, covmat = ability.cov)
VARIMAX = [[0.499, 0.156, 0.206, 0.109, 0.956, 0.785], [0.543, 0.622, 0.860, 0.468, 0.182, 0.225]]
PROMAX = [[0.364, 0, 0, 0, 1.023, 0.811], [0.470, 0.671, 0.932, 0.508, 0, 0]]  # less than 0.1 is not printed
GPA_VARIMAX = [
    0.4994378290,
    0.1560700794,
    0.2057869900,
    0.1085307544,
    0.9562424703,
    0.7847681839,
]  # the same, by its tests
OBLIMIN = [  # GPArotation's tests: oblimin of these loadings, gam = 0, not normalised
    [0.386361590474, -0.011005941877, -0.026292627235, -0.018020052681, 0.990094493910, 0.790565727427],
    [0.474512774150, 0.645872076963, 0.896114110568, 0.488292828170, -0.037071828254, 0.052610955006],
]


def rows_with(S, n):
    """Rows whose covariance, over n, is exactly S."""
    X = np.random.default_rng(0).normal(size=(n, len(S)))
    X = X - X.mean(axis=0)
    return X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / n)).T @ np.linalg.cholesky(S).T


def ability():
    scale = np.sqrt(np.diag(ABILITY))
    return rows_with(ABILITY / np.outer(scale, scale), 112)


def as_in_r(model):
    """Loadings with the signs that R gives them: their sum is positive."""
    return model.components_ * np.sign(model.components_.sum(axis=1))[:, None]


def rotated(rotation, **more):
    """Two factors of the abilities, rotated as R does it."""
    return FactorAnalysis(2, rotation=rotation, kaiser=True, tol=1e-9, **more).fit(ability())


def test_uniquenesses_are_those_of_factanal():
    two, one = (FactorAnalysis(k, tol=1e-9).fit(ability()) for k in (2, 1))
    np.testing.assert_allclose(two.noise_variance_, UNIQUE, atol=6e-4)
    np.testing.assert_allclose(one.noise_variance_, [0.535, 0.853, 0.748, 0.910, 0.232, 0.280], atol=6e-4)
    np.testing.assert_allclose(as_in_r(one), [[0.682, 0.384, 0.502, 0.300, 0.877, 0.849]], atol=6e-4)


def test_varimax_is_that_of_factanal():
    """R's varimax ends where a step gains less than 1e-5 (its eps), ours at 1e-9: its printed digits need its end."""
    early, ours = rotated("varimax", rotation_tol=1e-5), rotated("varimax")
    np.testing.assert_allclose(as_in_r(early), VARIMAX, atol=6e-4)
    np.testing.assert_allclose(np.abs(early.components_[0]), GPA_VARIMAX, atol=1e-5)
    np.testing.assert_allclose(as_in_r(ours), VARIMAX, atol=4e-3)
    even, sooner = (m.components_ / np.sqrt(m.communalities_) for m in (ours, early))
    assert varimax(even) > varimax(sooner)


def test_chi_square_of_factanal():
    """(n − 1 − (2d + 5)/6 − 2k/3) times the discrepancy: printed as 6.11 for two factors and 75.18 for one."""
    X = ability()
    R = X.T @ X / len(X)
    for k, printed in ((1, 75.18), (2, 6.11)):
        C = FactorAnalysis(k, tol=1e-9).fit(X).get_covariance()
        gap = np.linalg.slogdet(C)[1] - np.linalg.slogdet(R)[1] + np.trace(np.linalg.solve(C, R)) - 6
        assert (112 - 1 - 17 / 6 - 2 * k / 3) * gap == pytest.approx(printed, abs=6e-3)


def test_promax_is_that_of_factanal():
    early, ours, printed = rotated("promax", rotation_tol=1e-5), rotated("promax"), np.array(PROMAX)
    for found, atol in ((as_in_r(early), 6e-4), (as_in_r(ours), 1.5e-3)):
        np.testing.assert_allclose(found[printed > 0], printed[printed > 0], atol=atol)
        assert (np.abs(found[printed == 0]) < 0.1).all()
        np.testing.assert_allclose((found**2).sum(axis=1), [1.853, 1.807], atol=atol)  # SS loadings
    np.testing.assert_allclose(ours.noise_variance_, UNIQUE, atol=6e-4)


def test_oblimin_is_that_of_gparotation():
    ours = FactorAnalysis(2, rotation="oblimin", tol=1e-12).fit(ability())
    found = as_in_r(ours)
    order = np.argsort(-np.abs(found[:, 4]))  # R sorts by what the factors explain; both are near 1.8
    np.testing.assert_allclose(found[order], OBLIMIN, atol=1e-4)
    assert np.diag(ours.factor_covariance_) == pytest.approx([1, 1])
    assert abs(ours.factor_covariance_[0, 1]) > 0.3


def test_kaisers_rotation_does_not_depend_on_units():
    X = ability()
    scale = np.array([1.0, 10.0, 0.1, 3.0, 100.0, 0.5])
    for rotation in ("varimax", "quartimax", "oblimin"):
        a, b = (FactorAnalysis(2, rotation=rotation, kaiser=True, tol=1e-12).fit(x) for x in (X, X * scale))
        other = b.components_ / scale
        match = np.abs(a.components_ @ other.T).argmax(axis=1)
        np.testing.assert_allclose(np.abs(a.components_), np.abs(other[match]), atol=1e-4, err_msg=rotation)


def quartimin(L):
    """The criterion of oblimin."""
    squares = L**2
    return sum(squares[a] @ squares[b] for a in range(len(L)) for b in range(len(L)) if a != b) / 4


def test_oblimin_finds_correlated_factors_and_the_least_of_its_criterion():
    rng = np.random.default_rng(0)
    pattern = np.kron(np.eye(3), np.ones(5)) * rng.uniform(0.7, 1.3, size=15)
    corr = np.array([[1, 0.5, 0.3], [0.5, 1, 0.4], [0.3, 0.4, 1.0]])
    X = rng.multivariate_normal(np.zeros(3), corr, size=4000) @ pattern + 0.4 * rng.normal(size=(4000, 15))
    oblique = FactorAnalysis(3, rotation="oblimin").fit(X)
    order = np.abs(oblique.components_ @ pattern.T).argmax(axis=0)
    np.testing.assert_allclose(np.abs(oblique.components_[order]), pattern, atol=0.1)
    np.testing.assert_allclose(np.abs(oblique.factor_covariance_[np.ix_(order, order)]), corr, atol=0.06)
    promax = FactorAnalysis(3, rotation="promax").fit(X)
    least = quartimin(oblique.components_)
    assert least < quartimin(promax.components_)
    T = np.linalg.cholesky(oblique.factor_covariance_).T
    W = T @ oblique.components_  # loadings of factors that do not correlate
    for _ in range(50):  # no other unit factors near these have a smaller criterion
        other = T + 0.02 * rng.normal(size=(3, 3))
        other /= np.linalg.norm(other, axis=0)
        assert quartimin(np.linalg.solve(other, W)) >= least - 1e-9
    plain = FactorAnalysis(3).fit(X)
    np.testing.assert_allclose(oblique.get_covariance(), plain.get_covariance())
    z = (X - oblique.mean_) @ np.linalg.solve(
        oblique.get_covariance(), oblique.components_.T @ oblique.factor_covariance_
    )
    np.testing.assert_allclose(oblique.transform(X), z, atol=1e-8)


# ------------------------------------------------------------------------------------------- how many factors


@pytest.mark.parametrize("k", [0, 1, 3, 5])
@pytest.mark.parametrize("n", [300, 3000])
def test_parallel_analysis_finds_the_planted_number(k, n):
    right = 0
    for seed in range(10):
        rng = np.random.default_rng(100 * k + seed)
        W = rng.normal(size=(k, 20)) * 0.8
        X = rng.normal(size=(n, k)) @ W + rng.normal(size=(n, 20)) * rng.uniform(0.5, 1.5, 20)
        right += len(FactorAnalysis("parallel").fit(X).components_) == k
    assert right >= 9


def test_parallel_analysis_finds_no_more_than_the_columns_can_tell():
    from unmix.linear._number import identified

    for d in range(2, 60):
        told = [k for k in range(1, d) if (d - k) ** 2 >= d + k]
        assert identified(d) == max(told, default=1)
    X = load_iris().data
    assert len(FactorAnalysis("parallel", random_state=0).fit(X).components_) == 1
    assert FactorAnalysis(3).fit(X).n_parameters() == 4 + 10  # as one Gaussian, which three factors of four columns are


def test_parallel_analysis_takes_missing_cells_weights_and_few_rows():
    _, _, X = planted(n=800, d=15, k=3)
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    assert FactorAnalysis("parallel").fit(holes).components_.shape == (3, 15)
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    assert FactorAnalysis("parallel").fit(X, sample_weight=w).components_.shape == (3, 15)
    assert FactorAnalysis("parallel").fit(X * 10.0 ** np.arange(-7, 8)).components_.shape == (3, 15)
    assert len(FactorAnalysis("parallel").fit(np.random.default_rng(0).normal(size=(12, 15))).components_) <= 1
    with pytest.warns(ConvergenceWarning, match="Heywood"):  # of a constant column there is nothing to explain
        assert FactorAnalysis("parallel").fit(np.column_stack([X, np.ones(800)])).components_.shape == (3, 16)


def test_a_model_of_a_found_number_is_saved_and_handed_on(tmp_path):
    _, _, X = planted()
    ours = FactorAnalysis("parallel", rotation="varimax", kaiser=True).fit(X)
    ours.save(tmp_path / "fa.unmix")
    again = unmix.load(tmp_path / "fa.unmix")
    np.testing.assert_array_equal(again.components_, ours.components_)
    assert again.n_components == "parallel"
    theirs = ours.to_sklearn()
    assert theirs.n_components == 3
    np.testing.assert_allclose(theirs.transform(X), ours.transform(X), atol=1e-6)
    with pytest.raises(ValueError, match="oblique"):
        FactorAnalysis(2, rotation="oblimin").fit(X).to_sklearn()


def test_select_finds_the_planted_number():
    _, _, X = planted(n=600, d=12, k=3)
    answer = unmix.select(FactorAnalysis(), X, k=range(1, 6), random_state=0)
    assert answer.k == 3
    assert answer.model.components_.shape == (3, 12)
