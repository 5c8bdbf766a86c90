"""Soft k-means against its equations, k-means in the limit, and a mixture of Gaussians of one fixed variance."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from unmix import KMeans, select
from unmix.cluster.soft_kmeans import SoftKMeans
from unmix.model import fit_together

pytestmark = pytest.mark.filterwarnings("ignore:.*not converged after.*")  # short fits on purpose


def rows(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 4 * rng.standard_normal((4, d))[rng.integers(4, size=n)]


def squares(X, U, seen=None):
    apart = (np.nan_to_num(X)[:, None] - U) ** 2
    return apart.sum(-1) if seen is None else (apart * seen[:, None]).sum(-1)


def em(X, U, beta, w, passes):
    """The equations of the notes, row by row in NumPy; cells that are NaN are left out."""
    seen = ~np.isnan(X)
    for _ in range(passes):
        z = w[:, None] * softmax(-squares(X, U, seen) / beta, axis=1)
        U = (z.T @ np.nan_to_num(X)) / (z.T @ seen)
    return U


@pytest.mark.parametrize("beta", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("kind", ["dense", "weighted", "missing", "sparse"])
def test_passes_are_those_of_the_equations(kind, beta):
    X, w = rows(), np.ones(200)
    if kind == "weighted":
        w = np.random.default_rng(1).random(200)
    if kind == "missing":
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        w = np.ones(len(X))
    if kind == "sparse":
        X[np.abs(X) < 2] = 0.0
    first = np.nan_to_num(X[:4])
    model = SoftKMeans(4, beta=beta, init=first, tol=0, max_iter=7)
    model.fit(sp.csr_array(X) if kind == "sparse" else X, sample_weight=w)
    U = em(X, first, beta, w, 7)
    np.testing.assert_allclose(model.cluster_centers_, U, rtol=1e-7, atol=1e-9)
    apart = squares(X, U, ~np.isnan(X))
    assert model.objective_ == pytest.approx(-beta * w @ logsumexp(-apart / beta, axis=1), rel=1e-9)
    np.testing.assert_allclose(model.transform(X), softmax(-apart / beta, axis=1), atol=1e-7)
    assert np.array_equal(model.predict(X), apart.argmin(axis=1))
    assert np.array_equal(model.labels_, apart.argmin(axis=1))


@pytest.mark.parametrize("missing", [False, True])
def test_as_beta_goes_to_zero_it_is_k_means(missing):
    X = rows(500, 4)
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
    first = np.nan_to_num(X[[3, 50, 100, 200, 300]])
    w = np.random.default_rng(2).random(len(X))
    hard = KMeans(5, init=first, tol=0).fit(X, sample_weight=w)
    for beta in (1e-6, 1e-200):
        soft = SoftKMeans(5, beta=beta, init=first, tol=0).fit(X, sample_weight=w)
        assert np.array_equal(soft.labels_, hard.labels_)
        np.testing.assert_allclose(soft.cluster_centers_, hard.cluster_centers_, rtol=1e-6, atol=1e-9)
        assert soft.objective_ == pytest.approx(hard.inertia_, rel=1e-6)


def test_it_is_a_mixture_of_gaussians_of_half_beta():
    """The log-likelihood of equal shares and variance β/2 is −objective/β, up to the normalisation."""
    from scipy.stats import multivariate_normal

    X, beta = rows(), 5.0
    model = SoftKMeans(4, beta=beta, random_state=0).fit(X)
    density = np.mean([multivariate_normal(u, beta / 2).pdf(X) for u in model.cluster_centers_], axis=0)
    constant = 200 * (np.log(4) + 1.5 * np.log(np.pi * beta))
    assert np.log(density).sum() == pytest.approx(-model.objective_ / beta - constant, rel=1e-9)


@pytest.mark.parametrize("beta", [0.01, 1.0, 10.0, "auto"])
def test_the_objective_never_rises_and_ends_where_the_equations_hold(beta):
    X = rows(300, 3)
    model = SoftKMeans(5, beta=beta, tol=1e-12, max_iter=2000, random_state=0).fit(X)
    objective = np.array([s.objective for s in model.trace_ if s.accepted])
    assert (np.diff(objective) <= 1e-10 * np.abs(objective[:-1])).all()
    again = em(X, model.cluster_centers_, model.beta_, np.ones(300), 1)
    np.testing.assert_allclose(again, model.cluster_centers_, atol=1e-3)


def test_auto_is_a_share_of_the_variance():
    X = rows(400, 3)
    model = SoftKMeans(4, random_state=0).fit(X)
    assert model.beta_ == pytest.approx(2 * X.var(axis=0).mean() / 4, rel=1e-9)
    scaled = SoftKMeans(4, random_state=0).fit(1e5 * X + 1e7)
    assert scaled.objective_ == pytest.approx(1e10 * model.objective_, rel=1e-9)
    np.testing.assert_allclose(scaled.cluster_centers_, 1e5 * model.cluster_centers_ + 1e7, rtol=1e-6)


def test_rows_halfway_belong_to_both_and_inverse_transform_mixes():
    X = np.array([[0.0], [1], [5], [9], [10]])
    model = SoftKMeans(2, beta=4.0, random_state=0).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(Z.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.inverse_transform(Z), Z @ model.cluster_centers_)


def test_a_beta_beyond_the_variance_is_told():
    X = rows()
    with pytest.warns(ConvergenceWarning, match=r"3 of 4 centres coincide.*lower it"):
        model = SoftKMeans(4, beta=1e4, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, np.tile(X.mean(axis=0), (4, 1)), atol=1e-2)


def test_centres_that_no_row_belongs_to_are_told_and_stay():
    X = rows()
    first = np.vstack([X[:3], [[1e6, 1e6, 1e6]]])
    with pytest.warns(ConvergenceWarning, match="no row belongs to 1 of 4 centres"):
        model = SoftKMeans(4, beta=1.0, init=first).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_[3], first[3])


@pytest.mark.parametrize("beta", ["auto", 2.0])
def test_grown_parts_are_those_of_one_centre_more(beta):
    X = rows()
    three, four = SoftKMeans(3, beta=beta, random_state=0), SoftKMeans(4, beta=beta)
    fit = fit_together([three], X, [None], [0])[0]
    U = four.neighbour(fit, True, np.random.default_rng(0))
    apart = squares(X, fit.U.centers)
    V = (softmax(-apart / fit.U.beta, axis=1) * apart).sum(axis=0)
    np.testing.assert_allclose(fit.stats.V, V, rtol=1e-7)
    np.testing.assert_array_equal(U.centers[:3], fit.U.centers)
    moved = np.linalg.norm(fit.U.centers - U.centers[3], axis=1)
    assert moved.argmin() == V.argmax()
    assert 0 < moved.min() < np.sqrt(V.max() / fit.stats.N[V.argmax()])
    assert U.beta == (pytest.approx(X.var(axis=0).mean() / 2) if beta == "auto" else 2.0)


def test_select_finds_by_growing_what_a_start_of_its_own_misses():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) + 8 * rng.standard_normal((10, 3))[rng.integers(10, size=400)]
    alone = SoftKMeans(10, random_state=0).fit(X)
    table = select(SoftKMeans(random_state=0), X, [9, 10], criterion="silhouette", random_state=0).columns
    assert 400 * table["objective"][1] < 0.8 * alone.objective_


def test_online_steps_come_near_the_batch_fit():
    X = rows(4000, 3, seed=5)
    batch = SoftKMeans(4, random_state=0).fit(X)
    online = SoftKMeans(4, beta=batch.beta_, init=batch.cluster_centers_ + 0.3)
    for part in np.array_split(X, 20):
        online.partial_fit(part)
    np.testing.assert_allclose(online.cluster_centers_, batch.cluster_centers_, atol=0.3)
    assert not hasattr(online, "labels_")


@pytest.mark.parametrize("beta", [0, -1.0, "wide"])
def test_a_bad_beta_is_named(beta):
    with pytest.raises(ValueError, match=r"'beta' parameter of SoftKMeans"):
        SoftKMeans(2, beta=beta).fit(rows())
