import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Reference
from sklearn.pipeline import make_pipeline

import unmix
from unmix import GaussianMixture
from unmix.engine import tree
from unmix.engine.block import Block
from unmix.kernels import gaussian_rows as rows
from unmix.model.lloyd import Centres, Lloyd, Points, scaled

KINDS = ["full", "tied", "diag", "spherical"]


def mixture(n=600, d=4, K=3, gap=2.0, seed=0):
    rng = np.random.default_rng(seed)
    means = gap * rng.normal(size=(K, d))
    axes = np.eye(d) + 0.4 * rng.normal(size=(K, d, d))
    label = rng.integers(K, size=n)
    return means[label] + np.einsum("nij,nj->ni", axes[label], rng.normal(size=(n, d))), label


def start(X, K, kind, seed=0):
    """The same rough start for both libraries."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    precision = {
        "full": np.tile(np.eye(d) / 2 + 0.1, (K, 1, 1)),
        "tied": np.eye(d) / 2 + 0.1,
        "diag": np.full((K, d), 0.5),
        "spherical": np.full(K, 0.5),
    }
    return {
        "covariance_type": kind,
        "weights_init": rng.dirichlet(np.full(K, 9.0)),
        "means_init": X[rng.choice(len(X), K, replace=False)],
        "precisions_init": precision[kind],
        "random_state": 0,
    }


def quiet_fit(model, X, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few passes, or parts that collapse on purpose
        return model.fit(X, **kwargs)


@pytest.mark.parametrize("passes", [1, 7, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_same_start_same_passes_same_numbers_as_scikit_learn(kind, passes):
    X, _ = mixture()
    X = X * [1.0, 30.0, 0.02, 5.0] + [0.0, 300.0, 1.0, -40.0]  # columns in different units
    args = start(X, 3, kind) | {"max_iter": passes, "tol": 0.0}
    with unmix.config(acceleration=False):
        ours = quiet_fit(GaussianMixture(3, **args), X)
    theirs = quiet_fit(Reference(3, **args), X)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-9)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-8)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-9)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-9)
    assert ours.lower_bound_ == pytest.approx(ours.score(X), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_sample_draws_as_scikit_learn_does(kind):
    X, _ = mixture()
    ours = quiet_fit(GaussianMixture(3, covariance_type=kind, random_state=0), X)
    theirs = Reference(3, covariance_type=kind, random_state=0)
    theirs.weights_, theirs.means_, theirs.covariances_ = ours.weights_, ours.means_, ours.covariances_
    theirs.precisions_cholesky_ = ours.precisions_cholesky_
    for a, b in zip(ours.sample(200), theirs.sample(200), strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_start_reaches_a_likelihood_like_scikit_learns(kind, init):
    X, _ = mixture(gap=4.0)
    args = {"covariance_type": kind, "init_params": init, "n_init": 3, "max_iter": 300, "tol": 1e-5, "random_state": 0}
    ours, theirs = quiet_fit(GaussianMixture(3, **args), X), quiet_fit(Reference(3, **args), X)
    assert ours.converged_
    assert ours.score(X) > theirs.score(X) - 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_acceleration_reaches_the_same_optimum_in_fewer_passes(kind):
    X, _ = mixture(n=1500, d=2, gap=1.0, seed=3)
    args = start(X, 3, kind) | {"max_iter": 3000, "tol": 1e-9}
    fast = quiet_fit(GaussianMixture(3, **args), X)
    with unmix.config(acceleration=False):
        plain = quiet_fit(GaussianMixture(3, **args), X)
    assert fast.score(X) > plain.score(X) - 1e-6
    assert fast.n_iter_ < plain.n_iter_ / 1.5
    objective = [s.objective for s in fast.trace_ if s.accepted]
    assert (np.diff(objective) <= 1e-12).all()


@pytest.mark.parametrize("hole", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeats(kind, hole):
    X, _ = mixture(n=300)
    rng = np.random.default_rng(5)
    w = rng.integers(0, 4, size=len(X)).astype(float)
    args = start(X, 3, kind) | {"max_iter": 8, "tol": 0.0}
    X = np.where(rng.random(X.shape) < hole, np.nan, X)
    with unmix.config(acceleration=False):
        weighted = quiet_fit(GaussianMixture(3, **args), X, sample_weight=w)
        repeated = quiet_fit(GaussianMixture(3, **args), np.repeat(X, w.astype(int), axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-7, atol=1e-9)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-10)


def expand(kind, covariances, K, d):
    """All K covariances as matrices."""
    if kind in ("full", "tied"):
        return np.broadcast_to(covariances, (K, d, d))
    return np.array([np.diag(np.broadcast_to(c, d)) for c in covariances])


def brute_force(x, w, weights, means, covariances):
    """z, log p and the moments of rows with NaN, one row and one component at a time, by the textbook."""
    n, d = x.shape
    K = len(weights)
    z, log_p = np.zeros((n, K)), np.zeros(n)
    N, A, B = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    for i in range(n):
        o = ~np.isnan(x[i])
        m = ~o
        density = np.array(weights)
        for k in range(K):
            if o.any():
                density[k] *= multivariate_normal(means[k][o], covariances[k][np.ix_(o, o)]).pdf(x[i, o])
        z[i], log_p[i] = density / density.sum(), np.log(density.sum())
        for k in range(K):
            S = covariances[k]
            full, C = x[i].copy(), np.zeros((d, d))
            gain = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)]) if o.any() else np.zeros((m.sum(), 0))
            full[m] = means[k][m] + gain @ (x[i, o] - means[k][o])
            C[np.ix_(m, m)] = S[np.ix_(m, m)] - gain @ S[np.ix_(o, m)]
            N[k] += w[i] * z[i, k]
            A[k] += w[i] * z[i, k] * full
            B[k] += w[i] * z[i, k] * (np.outer(full, full) + C)
    return z, log_p, N, A, B


@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells_by_brute_force(kind):
    X, _ = mixture(n=300, d=4)
    model = quiet_fit(GaussianMixture(3, covariance_type=kind, random_state=0), X)
    rng = np.random.default_rng(1)
    x, w = X[:40].copy(), rng.integers(0, 3, size=40).astype(float)
    for i, pattern in enumerate(itertools.product([True, False], repeat=4)):  # every pattern, all-missing included
        x[2 * i : 2 * i + 2, list(pattern)] = np.nan
    U, d = model._parts_, 4
    K, observed = 3, ~np.isnan(x)
    out = model.local(U, Block(np.where(observed, x, 0.0), w, None, observed))
    z, log_p, N, A, B = brute_force(x - U.shift, w, U.weights, U.means, expand(kind, U.covariances, K, d))
    B = {"full": rows.pack(B), "tied": rows.pack(B.sum(axis=0)), "diag": np.diagonal(B, axis1=1, axis2=2)}.get(
        kind, np.trace(B, axis1=1, axis2=2)
    )
    np.testing.assert_allclose(out.z, z, atol=1e-10)
    np.testing.assert_allclose(model.score_samples(x), log_p, atol=1e-10)
    assert out.loss == pytest.approx(-w @ log_p, rel=1e-10)
    for name, truth in (("N", N), ("A", A), ("B", B)):
        np.testing.assert_allclose(getattr(out.stats, name), truth, rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 4), np.nan))[0], model.weights_, rtol=1e-12)
    assert model.score_samples(np.full((1, 4), np.nan))[0] == 0.0


def test_nothing_missing_by_the_kernel_of_patterns_is_the_complete_path():
    X, _ = mixture(n=200)
    for kind in ("full", "tied"):
        model = quiet_fit(GaussianMixture(3, covariance_type=kind, random_state=0), X)
        a = model.local(model._parts_, Block(X))
        b = model.local(model._parts_, Block(X, None, None, np.ones(X.shape, bool)))
        np.testing.assert_allclose(a.z, b.z, atol=1e-12)
        for u, v in zip(a.stats, b.stats, strict=True):
            np.testing.assert_allclose(u, v, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_features_and_components_give_the_same_moments(kind):
    X, _ = mixture(n=3000)
    w = np.random.default_rng(2).random(len(X))
    U = quiet_fit(GaussianMixture(3, covariance_type=kind, random_state=0), X)._parts_
    G = rows.Gaussians(kind, U.weights, U.means, U.covariances, U.factors, U.scratch.natural)
    z1, p1, s1 = rows.by_features(G, X, U.shift, w, True)
    z2, p2, s2 = rows.by_components(G, X, U.shift, w, None, True)
    np.testing.assert_allclose(z1, z2, atol=1e-12)
    np.testing.assert_allclose(p1, p2, rtol=1e-12)
    for u, v in zip(s1, s2, strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-10, atol=1e-8)


def test_a_third_of_the_cells_missing_beats_filling_in_means():
    """The planted labels from 70 % of the cells: at least 0.1 of adjusted Rand index ahead of mean-filling."""
    rng = np.random.default_rng(0)
    n, d = 1500, 6
    means = np.array([[0, 0, 0, 0, 0, 0], [3, 3, 0, 0, -3, 0], [0, -3, 3, 3, 0, 3.0]])
    axes = np.eye(d) + 0.5 * rng.normal(size=(3, d, d))
    label = rng.integers(3, size=n)
    X = means[label] + np.einsum("nij,nj->ni", axes[label], rng.normal(size=(n, d)))
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    ours = quiet_fit(GaussianMixture(3, n_init=3, max_iter=500, tol=1e-6, random_state=0), holes)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    theirs = quiet_fit(Reference(3, n_init=3, max_iter=500, tol=1e-6, random_state=0), filled)
    assert adjusted_rand_score(label, ours.predict(holes)) > adjusted_rand_score(label, theirs.predict(filled)) + 0.1
    order = ((ours.means_[:, None] - means) ** 2).sum(axis=2).argmin(axis=0)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(ours.means_[order], means, atol=0.5)
    np.testing.assert_allclose(ours.covariances_[order], axes @ axes.transpose(0, 2, 1), atol=1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4])
def test_float32_far_from_zero(kind, offset):
    X, _ = mixture(n=3000)
    X = (X + offset).astype(np.float32)
    args = start(X, 3, kind) | {"max_iter": 20, "tol": 0.0}
    with unmix.config(acceleration=False):
        single = quiet_fit(GaussianMixture(3, **args), X)
        double = quiet_fit(GaussianMixture(3, **args), X.astype(np.float64))
    assert single.means_.dtype == single.predict_proba(X).dtype == np.float32
    assert not single._parts_.events.floored.any()
    assert single.score(X) == pytest.approx(double.score(X.astype(float)), rel=1e-4)
    np.testing.assert_allclose(single.means_ - offset, double.means_ - offset, atol=1e-2 if offset < 1e4 else 2e-2)
    np.testing.assert_allclose(single.covariances_, double.covariances_, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_tight_clusters_far_apart(kind):
    """Means 1e4 standard deviations from the origin: multiplied-out moments in float32 would be noise."""
    rng = np.random.default_rng(0)
    label = np.arange(900) % 3
    X = (np.array([[0, 0], [100, 0], [0, 100.0]])[label] + 0.01 * rng.normal(size=(900, 2))).astype(np.float32)
    model = quiet_fit(GaussianMixture(3, covariance_type=kind, reg_covar=0.0, random_state=0), X)
    assert adjusted_rand_score(label, model.predict(X)) == 1.0
    variances = np.array([np.diag(c) for c in expand(kind, model.covariances_, 3, 2)])
    np.testing.assert_allclose(variances, 1e-4, rtol=0.3)


def hostile():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    yield "duplicates", np.repeat(x[:2], 20, axis=0), 5
    yield "all rows equal", np.ones((30, 3)), 4
    yield "constant columns", np.hstack([x, np.full((40, 2), 7.0)]), 3
    yield "as many components as rows", x[:12], 12
    yield "one far point", np.vstack([x, np.full((1, 3), 1e8)]), 3
    yield "more columns than rows", rng.normal(size=(10, 30)), 3
    yield "one row", x[:1], 1
    yield "large numbers", 1e150 * x, 2
    yield "small numbers", 1e-150 * x, 2
    yield "collinear", x[:, [0, 0, 1, 1]], 2
    holes = np.where(rng.random(x.shape) < 0.5, np.nan, x)
    holes[0] = np.nan
    yield "holes", holes, 4


@pytest.mark.parametrize("reg", [1e-6, 0.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("X", "K"), [pytest.param(X, K, id=name) for name, X, K in hostile()])
def test_hostile_data_never_crash(X, K, kind, reg):
    model = quiet_fit(GaussianMixture(K, covariance_type=kind, reg_covar=reg, random_state=0), X)
    assert model.result_ in ("converged", "max_iter")
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite(model.lower_bound_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-9)
    assert model.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_component_is_reset_and_reported(kind):
    X, _ = mixture(gap=4.0)
    args = start(X, 3, kind) | {"means_init": np.vstack([X[:2], np.full((1, 4), 1e6)])}
    with pytest.warns(ConvergenceWarning, match=r"components \[2\] lost all their rows and were reset"):
        model = GaussianMixture(3, **args, max_iter=300).fit(X)
    assert model.weights_[2] > 0.05


def test_a_singular_covariance_is_reported():
    X = np.hstack([np.random.default_rng(0).normal(size=(50, 2)), np.zeros((50, 1))])
    with pytest.warns(ConvergenceWarning, match="singular covariance"):
        GaussianMixture(1, reg_covar=0.0).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_statistics_are_an_error_and_update_changes_nothing(kind):
    X, _ = mixture()
    model = quiet_fit(GaussianMixture(3, covariance_type=kind, random_state=0), X)
    U = model._parts_
    stats = model.local(U, Block(X)).stats
    before = [a.copy() for a in tree.leaves((U, stats))]
    model.update(U, stats)
    for a, b in zip(tree.leaves((U, stats)), before, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(np.linalg.LinAlgError):
        model.update(U, stats._replace(N=stats.N - stats.N[0] * 1.5))
    with pytest.raises(np.linalg.LinAlgError):
        model.update(U, stats._replace(B=0.01 * stats.B))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"n_components": 50}, "n_components=50"),
        ({"weights_init": [0.5, 0.4, 0.3]}, "weights_init sums to 1.2"),
        ({"weights_init": [0.5, 0.5]}, "weights_init has shape"),
        ({"means_init": np.zeros((3, 2))}, "means_init has shape"),
        ({"precisions_init": np.zeros((3, 4, 4))}, "precisions_init is not symmetric and positive definite"),
        ({"covariance_type": "diag", "precisions_init": -np.ones((3, 4))}, "not positive"),
    ],
)
def test_wrong_first_guesses_are_named(args, message):
    X, _ = mixture(n=40)
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**({"n_components": 3} | args)).fit(X)


@pytest.mark.parametrize(
    "fixed", [("weights",), ("means",), ("covariances",), ("weights", "means"), ("means", "covariances")]
)
@pytest.mark.parametrize("hole", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_fixed_stays_and_the_objective_never_rises(kind, fixed, hole):
    X, _ = mixture(gap=1.5)
    X = np.where(np.random.default_rng(3).random(X.shape) < hole, np.nan, X)
    args = start(np.nan_to_num(X), 3, kind) | {"max_iter": 30, "tol": 0.0, "reg_covar": 0.0, "fixed": fixed}
    model = quiet_fit(GaussianMixture(3, **args), X)
    given = {"weights": "weights_init", "means": "means_init", "covariances": "precisions_init"}
    for name in given:
        published = getattr(model, "precisions_" if name == "covariances" else f"{name}_")
        same = np.allclose(published, args[given[name]], rtol=1e-9, atol=1e-12)
        assert same == (name in fixed), name
    objective = np.array([s.objective for s in model.trace_ if s.accepted])
    assert (np.diff(objective) <= 1e-10).all()
    assert objective[-1] < objective[0]


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_around_fixed_means_are_those_of_largest_likelihood(kind):
    """One component, so that EM is done after a step: Σ = mean of (x − μ)(x − μ)ᵀ, in the form of the kind."""
    X, _ = mixture()
    mu = X.mean(axis=0) + np.array([1.0, -2.0, 0.0, 0.5])
    args = {"means_init": mu[None], "fixed": ("means",), "reg_covar": 0.0}
    model = quiet_fit(GaussianMixture(1, covariance_type=kind, **args), X)
    S = (X - mu).T @ (X - mu) / len(X)
    truth = {"full": S[None], "tied": S, "diag": np.diag(S)[None], "spherical": np.array([np.trace(S) / 4])}
    np.testing.assert_allclose(model.covariances_, truth[kind], rtol=1e-9)


def test_fixed_needs_values_and_takes_the_nearest_rows():
    X, _ = mixture(gap=6.0)
    with pytest.raises(ValueError, match=r"fixed holds 'means', but means_init is None"):
        GaussianMixture(3, fixed=("means",)).fit(X)
    with pytest.raises(ValueError, match=r"give names of weights, means, covariances"):
        GaussianMixture(3, fixed=("mean",)).fit(X)
    free = quiet_fit(GaussianMixture(3, random_state=0, tol=1e-8, max_iter=500), X)
    held = quiet_fit(GaussianMixture(3, means_init=free.means_[::-1], fixed=("means",), tol=1e-8, max_iter=500), X)
    np.testing.assert_allclose(held.covariances_, free.covariances_[::-1], rtol=1e-3, atol=1e-3)
    assert held.n_parameters() == free.n_parameters() - 12
    far = np.vstack([X[:2], np.full((1, 4), 1e6)])
    with pytest.warns(ConvergenceWarning, match=r"components \[2\] lost all their rows, and stay where they are"):
        GaussianMixture(3, means_init=far, fixed=["means"], random_state=0).fit(X)


def test_criteria_by_their_definitions():
    X, _ = mixture(gap=1.0)
    model = quiet_fit(GaussianMixture(3, random_state=0), X)
    z, log_l, p = model.predict_proba(X), model.score_samples(X).sum(), 2 + 12 + 3 * 10
    entropy = -np.sum(z * np.log(np.where(z > 0, z, 1.0)))
    assert model.n_parameters() == p
    assert model.aic(X) == pytest.approx(2 * p - 2 * log_l, rel=1e-12)
    assert model.bic(X) == pytest.approx(p * np.log(len(X)) - 2 * log_l, rel=1e-12)
    assert model.icl(X) == pytest.approx(p * np.log(len(X)) - 2 * log_l + 2 * entropy, rel=1e-12)
    assert entropy > 1.0
    with unmix.config(block_rows=64):
        assert model.icl(lambda: iter(np.array_split(X, 5))) == pytest.approx(model.icl(X), rel=1e-10)


def test_criteria_weigh_rows():
    X, _ = mixture(gap=1.0)
    w = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    model = quiet_fit(GaussianMixture(3, random_state=0), X, sample_weight=w)
    often = np.repeat(X, w.astype(int), axis=0)
    for name in ("aic", "bic", "icl"):
        criterion = getattr(model, name)
        assert criterion(X, sample_weight=w) == pytest.approx(criterion(often), rel=1e-12)
        assert criterion(X, sample_weight=np.ones(len(X))) == criterion(X) != criterion(X, w)
        with unmix.config(block_rows=64):
            stream = criterion(lambda: iter(np.array_split(X, 5)), sample_weight=w)
        assert stream == pytest.approx(criterion(often), rel=1e-10)
        with pytest.raises(ValueError, match="sample_weight"):
            criterion(X, sample_weight=w[:-1])


def test_the_number_of_clusters_is_a_parameter_too():
    model = GaussianMixture(2, random_state=0).set_params(n_clusters=3, tol=0.1)
    assert model.n_components == model.n_clusters == 3
    assert model.tol == 0.1
    assert "n_clusters" not in model.get_params()
    assert clone(model).n_components == 3
    assert make_pipeline(model).set_params(gaussianmixture__n_clusters=4)[-1].n_components == 4
    with pytest.raises(ValueError, match="Invalid parameter 'n_cluster'"):
        model.set_params(n_cluster=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e153, "float64"), (1e160, "float64"), (1e307, "float64"), (1e19, "float32")]
)
def test_numbers_without_squares_are_refused(kind, scale, dtype):
    X = (scale * np.random.default_rng(0).normal(size=(50, 3))).astype(dtype)
    with pytest.raises(ValueError, match=rf"X reaches .* squares of that are beyond {dtype}: multiply X by 1e"):
        GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)


def test_labels_and_the_number_of_clusters():
    X, _ = mixture()
    model = quiet_fit(GaussianMixture(3, random_state=0), X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.n_clusters == 3
    assert not hasattr(quiet_fit(GaussianMixture(3, random_state=0), lambda: iter([X])), "labels_")
    assert not hasattr(model.partial_fit(X[:50]), "labels_")


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_of_given_parameters_needs_no_fit(kind):
    rng = np.random.default_rng(0)
    weights, means = np.array([0.3, 0.7]), 1e4 + np.array([[0.0, 0.0, 5.0], [4.0, 1.0, 0.0]])
    A = np.eye(3) + 0.3 * rng.normal(size=(2, 3, 3))
    S = A @ A.transpose(0, 2, 1)
    covariances = {"full": S, "tied": S[0], "diag": np.diagonal(S, axis1=1, axis2=2), "spherical": [0.5, 2.0]}[kind]
    model = GaussianMixture.from_parameters(weights, means, covariances, covariance_type=kind, random_state=1)
    full = expand(kind, np.asarray(covariances), 2, 3)
    X, y = model.sample(4000)
    p = np.array([w * multivariate_normal(m, c).pdf(X) for w, m, c in zip(weights, means, full, strict=True)])
    np.testing.assert_allclose(model.score_samples(X), np.log(p.sum(axis=0)), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), (p / p.sum(axis=0)).T, atol=1e-9)
    assert model.score(X) == pytest.approx(np.log(p.sum(axis=0)).mean(), rel=1e-9)
    assert np.mean(y) == pytest.approx(0.7, abs=0.03)
    for k in range(2):
        np.testing.assert_allclose(X[y == k].mean(axis=0), means[k], atol=0.15)
        np.testing.assert_allclose(np.cov(X[y == k].T), full[k], atol=0.35)
    np.testing.assert_allclose(model.covariances_, covariances)
    model.partial_fit(X, rate=0.5)  # goes on from what was given: half the statistics are its own
    np.testing.assert_allclose(model.means_, means, atol=0.15)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([0.5, 0.6], np.zeros((2, 1)), np.ones((2, 1, 1))), "sums to 1.1"),
        (([0.5, 0.5], np.zeros(2), np.ones((2, 1, 1))), "means has shape"),
        (([0.5, 0.5], np.zeros((2, 1)), np.ones((2, 2))), "has shape"),
        (([0.5, 0.5], np.zeros((2, 1)), -np.ones((2, 1, 1))), "covariances is not symmetric and positive definite"),
        (([0.5, 0.5], np.zeros((2, 2)), np.ones((2, 2, 2))), "covariances is not symmetric and positive definite"),
        (([0.5, 0.5], np.zeros((2, 2)), np.full((2, 2, 2), np.nan)), "covariances is not symmetric and positive"),
        (([0.5, 0.5], np.zeros((2, 2)), [[[2.0, 1.0], [0.0, 2.0]]] * 2), "covariances is not symmetric"),
        (([0.5, 0.5], np.zeros((2, 2)), np.ones((2, 2)), "tied"), "covariances is not symmetric and positive definite"),
        (
            ([0.5, 0.5], np.zeros((2, 2)), [[1.0, 1.0], [0.0, 1.0]], "diag"),
            "covariances holds a number that is not pos",
        ),
        (([0.5, 0.5], np.zeros((2, 2)), [-1.0, 1.0], "spherical"), "covariances holds a number that is not positive"),
        (([0.5, 0.5], np.full((2, 1), np.inf), np.ones((2, 1, 1))), "means has shape"),
    ],
)
def test_parameters_that_are_none_are_refused(args, message):
    kind = args[3] if len(args) > 3 else "full"
    with pytest.raises(ValueError, match=message) as error:
        GaussianMixture.from_parameters(*args[:3], covariance_type=kind)
    assert "_init" not in str(error.value)  # names that nobody gave


def test_given_parameters_may_be_held_and_nearly_singular():
    near = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-13]]])
    model = GaussianMixture.from_parameters([1.0], [[0.0, 0.0]], near, fixed=("means",))
    P = model.precisions_cholesky_[0]
    np.testing.assert_allclose(P.T @ near[0] @ P, np.eye(2), atol=1e-2)
    assert P[1, 0] == 0.0


@pytest.mark.parametrize("reg", [1e-6, 0.0])
@pytest.mark.parametrize(
    "name", ["duplicates", "constant columns", "as many components as rows", "more columns than rows"]
)
def test_hostile_data_are_reported(name, reg):
    X, K = next((X, K) for label, X, K in hostile() if label == name)
    with pytest.warns(ConvergenceWarning, match=r"components \[.*\] have (no width|a singular covariance)"):
        GaussianMixture(K, reg_covar=reg, random_state=0).fit(X)


def levels(gap, rng):
    """Two groups of rows in two columns, and three levels that both have, as in a table: columns that sum to zero."""
    x = rng.normal(size=(300, 2)) + gap * (np.arange(300) % 2)[:, None]
    code = np.eye(3)[rng.integers(3, size=300)]
    return np.hstack([x, (code - code.mean(axis=0)) / np.sqrt(1 - (code.mean(axis=0) ** 2).sum())])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_follow_from_each_other_are_no_collapse(kind, dtype):
    X = levels(6.0, np.random.default_rng(0)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        GaussianMixture(2, covariance_type=kind, means_init=X[:2], random_state=0).fit(X)
        GaussianMixture(2, covariance_type=kind, means_init=X[:2], random_state=0).fit(X * [1, 1e3, 1, 1, 1])


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_a_collapse_beside_columns_that_follow_from_each_other_is_reported(kind):
    X = levels(6.0, np.random.default_rng(0))
    if kind == "full":
        X[:40] = X[0] + [40.0, -40.0, 0.0, 0.0, 0.0]  # equal rows
    else:
        X[:, 0] = np.where(X[:, 0] > 3.0, 6.0, 0.0)  # a column that does not vary within components
    with pytest.warns(ConvergenceWarning, match=r"components \[.*\] have no width"):
        GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_columns_of_one_value_within_components_are_named(kind):
    rng = np.random.default_rng(0)
    label = np.arange(200) % 2
    frame = pd.DataFrame(rng.normal(size=(200, 2)) + 6 * label[:, None], columns=["long", "wide"])
    frame["kind"] = np.array(["a", "b"])[label]
    with pytest.warns(ConvergenceWarning, match=r"columns 'kind = b' hold one value.*take Mixture"):
        GaussianMixture(2, covariance_type=kind, random_state=0).fit(unmix.Table(frame))


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_a_column_in_a_large_unit_is_small_and_not_of_one_value(kind):
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 1.0, 1e-4]
    with pytest.warns(ConvergenceWarning, match=r"columns 2 are small beside it; scale the columns"):
        GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)


@pytest.mark.parametrize("what", ["small numbers", "few rows"])
def test_columns_beside_which_the_ridge_is_large_and_few_rows_are_reported(what):
    rng = np.random.default_rng(0)
    X = 1e-5 * levels(6.0, rng) if what == "small numbers" else rng.normal(size=(8, 20))
    with pytest.warns(ConvergenceWarning, match=r"components \[0\] have no width"):
        GaussianMixture(1, random_state=0).fit(X)


def test_one_far_point_is_reported_and_does_not_hide_the_others():
    X, _ = mixture(gap=6.0)
    with pytest.warns(ConvergenceWarning, match=r"components \[\d\] have no width"):
        model = GaussianMixture(4, random_state=0).fit(np.vstack([X, np.full((1, 4), 1e6)]))
    assert adjusted_rand_score(mixture(gap=6.0)[1], model.predict(X)) > 0.95


def test_an_ordinary_fit_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianMixture(3, random_state=0, max_iter=500).fit(mixture(gap=4.0)[0])


def rounds(stage, U, data):
    """The rounds of a stage of k-means, as the engine makes them."""
    for _ in range(stage.most):
        U, _ = stage.step(U, data, np.random.default_rng(0))
        if stage.goal(U, 0.0):
            break
    return U


def clusters(x, K):
    """What a short k-means of these rows hands on."""
    stage, data = Lloyd(None, K), scaled(x, np.ones(x.shape[0]))
    return stage.hand(rounds(stage, stage.start(None, data, np.random.default_rng(0)), data), data)


@pytest.mark.parametrize(("n", "d", "K"), [(300, 3, 4), (65, 1, 2), (5, 2, 5), (5000, 2, 7)])
def test_the_short_k_means_of_the_start_is_k_means(n, d, K):
    rng = np.random.default_rng(n)
    x, w = rng.normal(size=(n, d)).astype(np.float32), rng.integers(0, 3, n).astype(float) + (np.arange(n) == 0)
    stage, data = Lloyd(None, K), Points(x, w)
    U = rounds(stage, Centres(x[:K].copy(), None, np.full(n, -1, np.int32)), data)
    twin, before = x[:K].astype(float), np.full(n, -1)
    for _ in range(stage.most):
        labels = ((x[:, None].astype(float) - twin) ** 2).sum(axis=2).argmin(axis=1)
        if (labels != before).sum() <= n // 200:
            break
        before = labels
        for k in range(K):
            if w[labels == k].sum() > 0:
                twin[k] = np.average(x[labels == k], axis=0, weights=w[labels == k])
    np.testing.assert_allclose(U.centers, twin, atol=1e-5)

    where = 10.0 * np.arange(K)
    x = where[np.arange(n) % K, None] + rng.normal(size=(n, d))
    labels = clusters(x, K)
    assert len({(i % K, k) for i, k in enumerate(labels)}) == K
    far = clusters(sp.csr_array(1e200 * x), K)
    assert len(set(zip(labels.tolist(), far.tolist(), strict=True))) == K


def test_a_far_row_does_not_hide_groups():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(np.arange(300) % 3, 0.05), 1e7][:, None]
    found = np.sort(GaussianMixture(4, random_state=0).fit(X).means_[:, 0])
    np.testing.assert_allclose(found, [0, 1, 2, 1e7], atol=0.05)


# ---------------------------------------------------------------- a fit that goes on from the last


@pytest.mark.parametrize("kind", KINDS)
def test_fits_of_one_pass_that_go_on_are_one_long_fit(kind):
    X, _ = mixture()
    with unmix.config(acceleration=False):
        whole = quiet_fit(GaussianMixture(3, max_iter=6, tol=0.0, **start(X, 3, kind)), X)
        steps = GaussianMixture(3, max_iter=1, tol=0.0, warm_start=True, **start(X, 3, kind))
        bounds = [bound for _ in range(6) for bound in quiet_fit(steps, X).lower_bounds_]
    assert bounds == whole.lower_bounds_
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_array_equal(getattr(steps, name), getattr(whole, name))
    assert (steps.n_iter_, steps.stages_) == (1, [])


def test_going_on_is_what_scikit_learn_does():
    X, _ = mixture()
    ours = GaussianMixture(3, max_iter=4, warm_start=True, tol=1e-5, **start(X, 3, "full"))
    theirs = Reference(3, max_iter=4, warm_start=True, tol=1e-5, **start(X, 3, "full"))
    with unmix.config(acceleration=False):
        for _ in range(30):
            quiet_fit(ours, X), quiet_fit(theirs, X)
            np.testing.assert_allclose(ours.lower_bounds_, theirs.lower_bounds_, rtol=1e-10)
            np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-8)
            assert ours.converged_ == theirs.converged_
            if ours.converged_:
                break
    assert ours.converged_


def test_a_fit_of_one_pass_that_goes_on_notices_that_it_has_converged():
    X, _ = mixture()
    model = GaussianMixture(3, max_iter=1, warm_start=True, random_state=0)
    fits = next(i for i in range(100) if quiet_fit(model, X).converged_)
    assert fits > 1
    assert model.n_iter_ == 1


def test_parts_that_do_not_suit_are_not_gone_on_from():
    X, _ = mixture(d=3, K=3)
    model = quiet_fit(GaussianMixture(3, covariance_type="tied", warm_start=True, random_state=0), X)
    for change, x in (({"covariance_type": "diag"}, X), ({"n_components": 2}, X), ({}, X[:, :2])):
        fresh = clone(model.set_params(**change))
        np.testing.assert_array_equal(quiet_fit(model, x).means_, quiet_fit(fresh, x).means_)
        assert model.stages_
    model = GaussianMixture(3, random_state=0)  # and nothing is gone on from unasked
    assert quiet_fit(quiet_fit(model, X), X).stages_


def test_what_is_held_is_held_where_a_fit_goes_on():
    X, _ = mixture()
    model = quiet_fit(GaussianMixture(3, warm_start=True, random_state=0), X)
    weights = np.array([0.5, 0.3, 0.2])
    quiet_fit(model.set_params(fixed=("weights",), weights_init=weights), X)
    np.testing.assert_array_equal(model.weights_, weights)
    assert model.stages_ == []


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_pass_the_start_is_the_answer(kind):
    X, _ = mixture()
    first = start(X, 3, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = GaussianMixture(3, max_iter=0, **first).fit(X)
    for name in ("weights", "means", "precisions"):
        np.testing.assert_allclose(getattr(ours, f"{name}_"), first[f"{name}_init"], rtol=1e-12)
    assert (ours.n_iter_, ours.converged_) == (0, False)
    np.testing.assert_array_equal(ours.labels_, ours.predict(X))
    assert (ours.lower_bounds_, ours.result_) == ([], "max_iter")
    quiet_fit(ours.set_params(max_iter=100, warm_start=True), X)
    assert ours.lower_bound_ > ours.lower_bounds_[0]


def test_the_bound_of_each_pass():
    X, _ = mixture()
    ours, theirs = (
        quiet_fit(c(3, max_iter=3, tol=0.0, **start(X, 3, "full")), X) for c in (GaussianMixture, Reference)
    )
    np.testing.assert_allclose(ours.lower_bounds_, theirs.lower_bounds_, rtol=1e-12)
    assert ours.lower_bound_ > ours.lower_bounds_[-1]
    assert ours.partial_fit(X).lower_bounds_ == []
