"""Kernel k-means against k-means, explicit features, brute force and planted rings."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels

import unmix
from unmix import KMeans
from unmix.cluster.kernel_kmeans import KernelKMeans, refill
from unmix.maths.kernels import Kernel


def rows(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 2 * rng.standard_normal((4, d))[rng.integers(4, size=n)]


def nearest(X, U):
    return ((X[:, None] - U) ** 2).sum(-1).argmin(axis=1)


def loss_of(G, label, w):
    """Σ_k Σ_{i∈k} w_i K_ii − 1/N_k Σ Σ w w K: the objective from the kernel matrix alone."""
    total = float(w @ np.diag(G))
    for k in set(label.tolist()):
        v = np.where(label == k, w, 0.0)
        total -= v @ G @ v / v.sum()
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_with_a_linear_kernel_it_is_k_means(seed, weighted):
    X = rows(300, 4, seed) + 100.0
    w = np.random.default_rng(seed).random(300) if weighted else None
    first = X[:5]
    hard = KMeans(5, init=first, tol=0).fit(X, sample_weight=w)
    model = KernelKMeans(5, kernel="linear", init=nearest(X, first)).fit(X, sample_weight=w)
    assert np.array_equal(model.labels_, hard.labels_)
    assert model.inertia_ == pytest.approx(hard.inertia_, rel=1e-9)
    new = rows(50, 4, 9) + 100.0
    assert np.array_equal(model.predict(new), hard.predict(new))
    np.testing.assert_allclose(model.transform(new), hard.transform(new), rtol=1e-6)


def test_with_a_polynomial_kernel_it_is_k_means_on_its_features():
    X = rows(200, 2)
    pairs = np.column_stack([X[:, 0] ** 2, X[:, 1] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1]])
    model = KernelKMeans(4, kernel="poly", degree=2, gamma=1.0, coef0=0.0, init=nearest(pairs, pairs[:4])).fit(X)
    hard = KMeans(4, init=pairs[:4], tol=0).fit(pairs)
    assert np.array_equal(model.labels_, hard.labels_)
    assert model.inertia_ == pytest.approx(hard.inertia_, rel=1e-8)


@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "sigmoid", "cosine", "poly", "linear", "precomputed", "callable"]
)
def test_inertia_is_that_of_the_kernel_matrix_and_no_label_can_be_nearer(kernel):
    X, w = rows(120, 3), np.random.default_rng(1).random(120)
    more = {"gamma": 0.1} if kernel in ("rbf", "laplacian", "sigmoid", "poly") else {}
    more |= {"coef0": 0.5} if kernel in ("sigmoid", "poly") else {}
    if kernel == "callable":
        G = pairwise_kernels(X, metric="rbf", gamma=0.2)
        model = KernelKMeans(4, kernel=lambda a, b: np.exp(-0.2 * ((a - b) ** 2).sum()), random_state=0)
    elif kernel == "precomputed":
        G = pairwise_kernels(X, metric="rbf", gamma=0.2)
        model = KernelKMeans(4, kernel=kernel, random_state=0)
    else:
        G = pairwise_kernels(X, metric=kernel, **more, **({"degree": 3} if kernel == "poly" else {}))
        model = KernelKMeans(4, kernel=kernel, random_state=0, **more)
    data = G if kernel == "precomputed" else X
    model.fit(data, sample_weight=w)
    assert model.inertia_ == pytest.approx(loss_of(G, model.labels_, w), rel=1e-7)
    share = np.array([np.where(model.labels_ == k, w, 0) for k in range(4)]).T
    share /= share.sum(axis=0)
    apart = np.diag(G)[:, None] - 2 * G @ share + np.einsum("jk,jk->k", share, G @ share)
    assert np.array_equal(apart.argmin(axis=1), model.labels_)
    assert np.array_equal(model.predict(data), apart.argmin(axis=1))
    if kernel != "precomputed":
        np.testing.assert_allclose(model.transform(X) ** 2, np.maximum(apart, 0), atol=1e-7)


def test_the_best_of_many_starts_is_the_optimum():
    X = rows(9, 2)
    G = pairwise_kernels(X, metric="rbf", gamma=0.3)
    best = min(loss_of(G, np.array(c), np.ones(9)) for c in itertools.product(range(3), repeat=9) if len(set(c)) == 3)
    model = KernelKMeans(3, gamma=0.3, n_init=50, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(best, rel=1e-9)


def test_a_ring_is_told_from_what_it_surrounds_where_k_means_fails():
    model, X, found = KernelKMeans.example(np.random.default_rng(7))
    found(model.fit(X))
    hard = KMeans(2, random_state=0, n_init=5).fit(X)
    assert len(set(hard.labels_[100:].tolist())) == 2


def test_the_objective_never_rises():
    for seed in range(5):
        model = KernelKMeans(6, gamma=0.3, init="random", random_state=seed).fit(rows(300, 3, seed))
        objective = np.array([s.objective for s in model.trace_])
        assert len(objective) > 2
        assert (np.diff(objective) <= 1e-12).all()
        assert model.inertia_ / 300 == pytest.approx(objective[-1], rel=1e-9)


def test_chunks_where_the_matrix_does_not_fit_give_the_same():
    X = rows(700, 3)
    held = KernelKMeans(4, gamma=0.2, random_state=0).fit(X)
    with unmix.config(memory_budget=2_000_000):
        chunked = KernelKMeans(4, gamma=0.2, random_state=0).fit(X)
    assert np.array_equal(held.labels_, chunked.labels_)
    assert chunked.inertia_ == pytest.approx(held.inertia_, rel=1e-12)


def test_the_matrix_is_not_made_where_it_does_not_fit(monkeypatch):
    largest, kernel = 0, Kernel.between

    def watched(self, x, y, shift):
        nonlocal largest
        out = kernel(self, x, y, shift)
        largest = max(largest, out.nbytes)
        return out

    monkeypatch.setattr(Kernel, "between", watched)
    with unmix.config(memory_budget=8_000_000):
        KernelKMeans(3, gamma=0.2, random_state=0).fit(rows(2000, 2))
    assert 0 < largest <= 8_000_000 < 8 * 2000**2


def test_empty_clusters_take_the_farthest_row():
    label, empty = refill(np.array([0, 0, 0, 2]), np.ones(4), np.array([1.0, 5.0, 2.0, 9.0]), 3)
    assert label.tolist() == [0, 1, 0, 2]  # row 3 is farther, but alone in its cluster
    assert empty == 0
    label, empty = refill(np.array([0, 0]), np.ones(2), np.zeros(2), 3)
    assert empty == 2
    X = rows(50, 2)
    model = KernelKMeans(5, kernel="linear", init=np.zeros(50, int)).fit(X)
    assert len(set(model.labels_.tolist())) == 5


def test_fewer_different_rows_than_clusters_is_told():
    X = np.repeat(rows(3, 2), 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="1 of 4 clusters are empty"):
        model = KernelKMeans(4, kernel="linear", random_state=0).fit(X)
    assert model.inertia_ < 1e-9
    assert np.isfinite(model.transform(X)).sum() >= 36


def test_an_end_before_the_optimum_is_told():
    with pytest.warns(ConvergenceWarning, match="not converged after 1 round"):
        model = KernelKMeans(6, init="random", max_iter=1, random_state=0).fit(rows())
    assert model.result_ == "max_iter"
    assert len(model.trace_) == model.n_iter_ == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("gamma", "coef0", "K"), [(0.5, -1.0, 20), (2.0, -3.0, 8), (2.0, -3.0, 20)])
def test_of_a_kernel_that_is_not_positive_the_best_labels_are_kept(gamma, coef0, K, seed):
    X = np.random.default_rng(seed).standard_normal((100, 3))
    G = pairwise_kernels(X, metric="sigmoid", gamma=gamma, coef0=coef0)
    assert np.linalg.eigvalsh(G)[0] < -1
    model = KernelKMeans(K, kernel="sigmoid", gamma=gamma, coef0=coef0, init="random", random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X)
    objective = np.array([s.objective for s in model.trace_])
    loss = loss_of(G, model.labels_, np.ones(100)) / 100
    if K == 8:
        assert loss == pytest.approx(objective.min(), abs=1e-9)
    assert np.abs(objective - loss).min() < 1e-9  # labels that filled an empty cluster are nearest to no means
    assert loss <= objective[-10:].min() + 1e-9
    assert np.array_equal(model.predict(X), model.labels_)
    kept = np.array([s.accepted for s in model.trace_])
    assert (np.diff(objective[kept]) <= 0).all()
    assert model.n_iter_ == len(objective) < 60
    rose = bool((np.diff(objective) > 1e-9).any())
    assert rose or model.result_ == "converged"
    assert (model.result_ == "stopped") == any("is not positive semi-definite" in str(v.message) for v in told)
    assert not any("max_iter" in str(v.message) for v in told)


def test_circles_of_labels_come_to_an_end():
    X, ends = np.random.default_rng(0).standard_normal((100, 3)), []
    for seed in range(10):
        model = KernelKMeans(8, kernel="sigmoid", gamma=2.0, coef0=-3.0, init="random", random_state=seed)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(X)
        ends.append(model.result_)
        if ends[-1] == "stopped":
            assert any("kernel='sigmoid' is not positive semi-definite" in str(w.message) for w in told)
            assert not all(s.accepted for s in model.trace_)
    assert "stopped" in ends
    assert set(ends) <= {"stopped", "converged"}


def test_errors_name_argument_value_and_remedy():
    X = rows(20, 3)
    with pytest.raises(ValueError, match="square matrix, not 20 × 3"):
        KernelKMeans(2, kernel="precomputed").fit(X)
    with pytest.raises(ValueError, match="symmetric"):
        KernelKMeans(2, kernel="precomputed").fit(np.random.default_rng(0).random((20, 20)))
    with pytest.raises(ValueError, match=r"init must be 20 labels, integers from 0 to 1"):
        KernelKMeans(2, init=np.arange(20)).fit(X)
    with pytest.raises(ValueError, match=r"'kernel' parameter of KernelKMeans"):
        KernelKMeans(2, kernel="popcorn").fit(X)
    with pytest.raises(ValueError, match=r"kernel='poly' gives values that are not finite.*scale X"):
        KernelKMeans(2, kernel="poly", degree=5).fit(X * 1e100)
    with pytest.raises(ValueError, match=r"kernel_params has 'foo', but kernel='rbf' takes gamma"):
        KernelKMeans(2, kernel_params={"foo": 1}).fit(X)
    with pytest.raises(ValueError, match=r"kernel_params has 'gamma', but kernel='linear' takes none"):
        KernelKMeans(2, kernel="linear", kernel_params={"gamma": 1}).fit(X)
    with pytest.raises(ValueError, match="no inverse_transform"):
        KernelKMeans(2, random_state=0).fit(X).inverse_transform(np.ones((3, 2)))


def test_labels_that_rounding_moves_in_circles_come_to_an_end():
    X = np.random.default_rng(0).standard_normal((150, 3)) + 1e8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are stopped, and say so
        ends = {KernelKMeans(8, kernel="rbf", random_state=seed).fit(X).result_ for seed in range(40)}
    assert ends <= {"converged", "stopped"}
