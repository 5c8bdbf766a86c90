"""k-means against scikit-learn, against brute force, and against planted clusters."""

import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import cluster as peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import unmix
from unmix import GaussianMixture, KMeans, KMedoids, SoftKMeans
from unmix.cluster.metrics.euclidean import Stats, half_apart
from unmix.engine import tree
from unmix.engine.block import Block
from unmix.kernels import kernel, kmeans_cells, kmeans_dense, lanes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few passes on purpose


def blobs(n=600, d=5, k=6, spread=0.6, seed=0):
    rng = np.random.default_rng(seed)
    truth = 3 * rng.standard_normal((k, d))
    label = np.arange(n) % k
    return truth[label] + spread * rng.standard_normal((n, d)), label, truth


def brute(X, U):
    """All squared distances by subtraction over the observed cells, in float64: the independent truth."""
    e = np.asarray(X, dtype=np.float64)[:, None] - np.asarray(U, dtype=np.float64)
    return np.nansum(e * e, axis=-1)


def block(X, w=None, z=None):
    if sp.issparse(X) or not np.isnan(X).any():
        return Block(X, w, z)
    seen = ~np.isnan(X)
    return Block(np.where(seen, X, X.dtype.type(0)), w, z, seen)


# ---------------------------------------------------------------- scikit-learn from the same start


@pytest.mark.parametrize("passes", [1, 2, 5, 40])
@pytest.mark.parametrize(("n", "d", "k"), [(700, 3, 5), (1500, 20, 30), (400, 90, 12)])
def test_same_start_same_passes_same_inertia(n, d, k, passes):
    X = np.random.default_rng(d).standard_normal((n, d))
    ours = KMeans(k, init=X[:k], max_iter=passes, tol=0).fit(X)
    theirs = peer.KMeans(k, init=X[:k], n_init=1, max_iter=passes, tol=0).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    assert np.array_equal(ours.labels_, theirs.labels_)
    assert ours.labels_.dtype == np.int32
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-6, atol=1e-7)
    assert np.array_equal(ours.predict(X[::-1]), theirs.predict(X[::-1]))
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-9)


def test_weights_as_scikit_learn():
    X, _, _ = blobs()
    w = np.random.default_rng(1).uniform(0, 3, len(X))
    ours = KMeans(6, init=X[:6], max_iter=9, tol=0).fit(X, sample_weight=w)
    theirs = peer.KMeans(6, init=X[:6], n_init=1, max_iter=9, tol=0).fit(X, sample_weight=w)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    assert ours.score(X, sample_weight=w) == pytest.approx(-ours.inertia_, rel=1e-12)
    assert np.array_equal(ours.labels_, theirs.labels_)


@pytest.mark.parametrize("n", [3000, 30_000])
def test_tol_means_what_it_means_in_scikit_learn(n):
    X = np.random.default_rng(0).standard_normal((n, 8))
    for tol in (1e-2, 1e-3, 1e-4, 0):
        ours = KMeans(10, init=X[:10], tol=tol, max_iter=1000).fit(X)
        theirs = peer.KMeans(10, init=X[:10], n_init=1, tol=tol, max_iter=1000).fit(X)
        assert ours.result_ == "converged"
        if n == 3000 or tol == 0:  # else the variance is that of a sample, and ours may stop a pass earlier or later
            assert ours.n_iter_ == theirs.n_iter_
            np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-9, atol=1e-9)
        assert abs(ours.n_iter_ - theirs.n_iter_) <= 2


def test_parameters_of_scikit_learn_that_change_nothing_here():
    X = np.random.default_rng(0).standard_normal((300, 4))
    plain = KMeans(5, random_state=0).fit(X)
    other = KMeans(5, random_state=0, algorithm="elkan", copy_x=False).fit(X)
    assert np.array_equal(plain.cluster_centers_, other.cluster_centers_)
    with pytest.warns(RuntimeWarning, match="only one init instead of n_init=10"):
        KMeans(5, init=X[:5], n_init=10).fit(X)
    with pytest.raises(ValueError, match="algorithm"):
        KMeans(5, algorithm="fastest").fit(X)


def test_score_reads_the_rows_once():
    X, reads = np.random.default_rng(0).standard_normal((300, 4)), []

    def blocks():
        reads.append(1)
        yield from np.array_split(X, 3)

    for model in (KMeans(3, random_state=0).fit(X), KMedoids(3, random_state=0).fit(X)):
        once = model.score(X)
        before = len(reads), model.predict(blocks), len(reads)
        assert model.score(blocks) == pytest.approx(once, rel=1e-12)
        assert len(reads) - before[2] == before[2] - before[0]  # as often as predict does


@pytest.mark.parametrize(
    "model",
    [KMeans(3, random_state=0), SoftKMeans(3, beta=0.5, random_state=0), GaussianMixture(3, random_state=0)],
    ids=lambda m: type(m).__name__,
)
def test_clusters_that_starve_while_the_data_drift_are_reported(model):
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            model.partial_fit(places.repeat(40, axis=0) + rng.standard_normal((120, 2)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(40):
            model.partial_fit(places[:2].repeat(60, axis=0) + rng.standard_normal((120, 2)))
    assert len(told) == 1  # not again with every batch
    assert re.search("1 of 3 (clusters|components) have starved", str(told[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(places.repeat(40, axis=0) + rng.standard_normal((120, 2)))


def test_verbose_prints_a_line_for_each_pass(capsys):
    X = np.random.default_rng(0).standard_normal((300, 4))
    model = KMeans(5, random_state=0, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert lines[0].startswith("KMeans, pass 1: objective ")
    assert "change -" in lines[1]
    assert lines[-1] == f"KMeans converged after {model.n_iter_} passes"
    KMeans(5, random_state=0).fit(X)
    assert capsys.readouterr().out == ""


def test_float32_labels_are_the_nearest_of_its_own_centres():
    X = blobs(n=4000, d=12, k=9)[0].astype(np.float32)
    ours = KMeans(9, init=X[:9], max_iter=6, tol=0).fit(X)
    theirs = peer.KMeans(9, init=X[:9], n_init=1, max_iter=6, tol=0).fit(X)
    assert ours.cluster_centers_.dtype == ours.transform(X).dtype == np.float32
    assert np.array_equal(ours.labels_, brute(X, ours.cluster_centers_).argmin(axis=1))
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5)
    assert ours.inertia_ == pytest.approx(brute(X, ours.cluster_centers_).min(axis=1).sum(), rel=1e-12)


# ---------------------------------------------------------------- starts


def test_starts():
    X, label, _ = blobs(n=900, k=9, spread=0.3)
    found = KMeans(9, random_state=0).fit(X)
    assert adjusted_rand_score(label, found.labels_) > 0.99
    assert KMeans(9).starts() == 1
    assert KMeans(9, init="random").starts() == 10
    assert KMeans(9, init=X[:9], n_init=5).starts() == 1
    assert KMeans(9, init="random", n_init=3).starts() == 3
    assert adjusted_rand_score(label, KMeans(9, init="random", random_state=0).fit(X).labels_) > 0.8

    def own(rows, n_clusters, random_state):
        assert n_clusters == 9
        assert rows.shape == X.shape
        assert hasattr(random_state, "randint")
        return X[:9]

    given_rows = KMeans(9, init=X[:9]).fit(X)
    assert np.array_equal(KMeans(9, init=own, n_init=1).fit(X).labels_, given_rows.labels_)
    assert np.array_equal(KMeans(9, random_state=3).fit(X).labels_, KMeans(9, random_state=3).fit(X).labels_)


def test_plus_plus_is_as_good_as_scikit_learns():
    X = np.random.default_rng(0).standard_normal((2000, 2))
    theirs = [brute(X, peer.kmeans_plusplus(X, 30, random_state=s)[0]).min(1).sum() for s in range(12)]

    def error(model, seed):
        return brute(X, model.start(None, Block(X), np.random.default_rng(seed)).centers).min(1).sum()

    ours = [error(KMeans(30), s) for s in range(12)]
    random = [error(KMeans(30, init="random"), s) for s in range(12)]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)
    assert np.mean(ours) < 0.9 * np.mean(random)


def test_a_row_without_weight_is_never_a_centre():
    X, _, _ = blobs(n=200)
    X[::2] += 1000
    w = np.tile([0.0, 1.0], 100)
    for init in ("k-means++", "random"):
        U = KMeans(20, init=init).start(None, Block(X, w), np.random.default_rng(0))
        assert np.abs(U.centers).max() < 500
        assert U.variance < 100


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KMeans(50), "n_samples=20 should be >= n_clusters=50"),
        (KMeans(2, init=np.zeros((3, 2))), r"init has shape \(3, 2\)"),
        (KMeans(2, init=np.full((2, 2), np.nan)), "not finite"),
        (KMeans(2, init="spreads"), "init"),
        (KMeans(0), "n_clusters"),
    ],
)
def test_what_cannot_be_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.random.default_rng(0).standard_normal((20, 2)))


# ---------------------------------------------------------------- CSR and missing cells


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_is_dense(dtype):
    rng = np.random.default_rng(0)
    X = (rng.poisson(0.4, (800, 40)) * rng.uniform(0.5, 2, (800, 40))).astype(dtype)
    w = rng.uniform(0, 2, len(X))
    dense = KMeans(7, init=X[:7], max_iter=12, tol=0).fit(X, sample_weight=w)
    with unmix.config(block_rows=100):
        sparse = KMeans(7, init=X[:7], max_iter=12, tol=0).fit(sp.csr_array(X), sample_weight=w)
    rel = 1e-10 if dtype == np.float64 else 1e-4
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=rel)
    if dtype == np.float64:
        assert np.array_equal(sparse.labels_, dense.labels_)
    assert np.array_equal(dense.predict(sp.csr_array(X)), dense.labels_)
    np.testing.assert_allclose(dense.transform(sp.csr_array(X)), dense.transform(X), rtol=1e-3, atol=1e-3)
    assert (KMeans(7, random_state=0).fit(sp.csr_array(X)).inertia_ / dense.inertia_) < 1.2


def test_planted_clusters_are_found_under_missing_cells():
    X, label, truth = blobs(n=1200, d=8, k=5, spread=0.5)
    X += 1e4  # an offset that would cancel if distances were made of squares
    holes = X.copy()
    rng = np.random.default_rng(1)
    holes[rng.random(X.shape) < 0.3] = np.nan
    model = KMeans(5, n_init=4, random_state=0).fit(holes)
    assert adjusted_rand_score(label, model.labels_) > 0.95
    near = brute(truth + 1e4, model.cluster_centers_).argmin(axis=1)
    assert np.abs(model.cluster_centers_[near] - truth - 1e4).max() < 0.3
    square = brute(holes, model.cluster_centers_)
    assert np.array_equal(model.labels_, square.argmin(axis=1))
    assert model.inertia_ == pytest.approx(square.min(axis=1).sum(), rel=1e-9)
    np.testing.assert_allclose(model.transform(holes), np.sqrt(square), rtol=1e-6, atol=1e-6)
    for k in range(5):  # each centre is the mean of the cells that were observed
        np.testing.assert_allclose(model.cluster_centers_[k], np.nanmean(holes[model.labels_ == k], axis=0), atol=0.02)


def test_a_cell_that_no_row_of_a_cluster_shows_keeps_its_place():
    X = np.array([[0.0, 1.0], [0.2, 3.0], [9.0, np.nan], [9.2, np.nan]])
    model = KMeans(2, init=np.array([[0.0, 0.0], [9.0, 7.0]]), tol=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, [[0.1, 2.0], [9.1, 7.0]])


# ---------------------------------------------------------------- empty clusters, duplicates, extremes


@pytest.mark.parametrize("kind", ["dense", "csr", "nan"])
def test_empty_clusters_are_refilled_and_the_objective_never_gets_worse(kind):
    X, _, _ = blobs(n=800, d=4, k=8, spread=0.2)
    start = np.vstack([X[:3], np.full((5, 4), 1e3) + np.arange(5)[:, None]])  # five centres that no row is near
    if kind == "nan":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = KMeans(8, init=start, tol=0).fit(sp.csr_array(X) if kind == "csr" else X)
    assert len(np.unique(model.labels_)) == 8
    assert model._parts_.events.tried >= 5
    assert model._parts_.events.empty == 0
    objective = np.array([s.objective for s in model.trace_])
    assert (np.diff(objective) <= 1e-12 * objective[0]).all()
    first_three = peer.KMeans(3, init=X[:3], n_init=1).fit(X).inertia_ if kind == "dense" else np.inf
    assert model.inertia_ < 0.5 * first_three
    again = KMeans(8, init=start, tol=0).fit(sp.csr_array(X) if kind == "csr" else X)
    assert np.array_equal(model.labels_, again.labels_)


def test_each_empty_cluster_cuts_the_one_that_varies_most_by_then():
    model = KMeans(5, init=np.arange(10.0).reshape(5, 2))
    U = model.start(None, Block(np.random.default_rng(0).standard_normal((50, 2))), np.random.default_rng(0))
    N, V = np.array([10.0, 10, 0, 0, 10]), np.array([10.0, 8, 0, 0, 1])
    new = model.update(U, Stats(N, N[:, None] * U.centers, V, 0.0))
    assert brute(new.centers[2:4], U.centers).argmin(axis=1).tolist() == [0, 1]
    assert 0 < brute(new.centers[2:3], U.centers[:1])[0, 0] < 1
    assert new.events.refilled == 2
    assert model.goal(new, 1.0) is False


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat(np.random.default_rng(0).standard_normal((3, 4)), 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than n_clusters \(5\)"):
        model = KMeans(5, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-20)
    assert len(np.unique(model.labels_)) == 3


def test_as_many_clusters_as_rows():
    X = np.random.default_rng(0).standard_normal((25, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KMeans(25, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-20)
    assert sorted(model.labels_) == list(range(25))


def test_one_cluster_is_the_mean():
    X, _, _ = blobs()
    model = KMeans(1).fit(X)
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-12)
    assert model.inertia_ == pytest.approx(X.var(axis=0).sum() * len(X))


@pytest.mark.parametrize(
    "change", [lambda X: X * 1e-25, lambda X: X * 1e25, lambda X: X + 1e7, lambda X: np.vstack([X, 1e9 + X[:1]])]
)
def test_scale_offset_and_outliers_do_not_blur_the_labels(change):
    X = change(blobs(n=500, d=6, k=4)[0])
    model = KMeans(4, init=X[:4], max_iter=8, tol=0).fit(X)
    square = brute(X, model.cluster_centers_)
    assert np.array_equal(model.labels_, square.argmin(axis=1))
    assert model.inertia_ == pytest.approx(square.min(axis=1).sum(), rel=1e-9)


def test_inverse_transform_takes_labels_and_distances():
    X, _, _ = blobs()
    model = KMeans(6, random_state=0).fit(X)
    rows = model.cluster_centers_[model.labels_]
    assert np.array_equal(model.inverse_transform(model.labels_), rows)
    near = np.full((6, 6), 0.2) - 0.2 * np.eye(6)  # distances that add up to 1 are distances all the same
    assert np.array_equal(model.inverse_transform(near), model.cluster_centers_)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), rows)
    with pytest.raises(ValueError, match="from 0 to 5"):
        model.inverse_transform(np.array([0, 6]))


def test_online_steps_reach_the_batch_fit():
    X, label, _ = blobs(n=3000, k=5, spread=0.4)
    order = np.random.default_rng(0).permutation(len(X))
    model = KMeans(5, random_state=0)
    for rows in np.array_split(order, 30):
        model.partial_fit(X[rows])
    assert adjusted_rand_score(label, model.predict(X)) > 0.97
    assert not hasattr(model, "labels_")


# ---------------------------------------------------------------- bounds


def lloyd(X, U, passes, keep, edges):
    """Passes over blocks with or without bounds: all labels, totals and losses."""
    model = KMeans(len(U), init=U)
    parts = model.start(None, block(X[:]), np.random.default_rng(0))
    z, out = [None] * (len(edges) - 1), []
    for _ in range(passes):
        cast = tree.settle(parts, X.dtype)
        local = [model.local(cast, block(X[a:b], z=z[i])) for i, (a, b) in enumerate(pairwise(edges))]
        if keep(len(out)):
            z = [p.z for p in local]
        label = np.concatenate([p.z.label for p in local])
        sums = [sum(p.stats[i] for p in local) for i in range(4)]
        out.append((label, *sums, sum(p.loss for p in local), cast.centers))
        parts = model.update(parts, type(local[0].stats)(*sums))
    return out


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["noise", "blobs", "grid", "offset", "duplicates"]),
    form=st.sampled_from(["dense", "csr", "nan"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    k=st.integers(1, 12),
    d=st.integers(1, 7),
)
def test_bounds_change_no_bit(seed, kind, form, dtype, k, d):
    rng = np.random.default_rng(seed)
    n = 150
    X = {
        "noise": lambda: rng.standard_normal((n, d)),
        "blobs": lambda: 4 * rng.standard_normal((k, d))[rng.integers(k, size=n)] + 0.3 * rng.standard_normal((n, d)),
        "grid": lambda: rng.integers(0, 3, (n, d)).astype(float),  # full of ties
        "offset": lambda: 1e4 + 0.02 * rng.standard_normal((n, d)),  # the centres' own rounding matters
        "duplicates": lambda: rng.standard_normal((5, d))[rng.integers(5, size=n)],
    }[kind]().astype(dtype)
    U = X[:k].astype(np.float64)
    if form == "csr":
        X[rng.random(X.shape) < 0.4] = 0
    dense = X
    if form == "nan":
        X[rng.random(X.shape) < 0.2] = np.nan
        U = np.where(np.isnan(X[:k]), 0.0, U)
    if form == "csr":
        X = sp.csr_array(X)
    edges = (0, 1, n // 2, n)
    plain = lloyd(X, U, 7, lambda t: False, edges)
    for keep in (lambda t: True, lambda t: t % 3 == 0):  # bounds of the last pass; bounds of passes long ago
        for a, b in zip(plain, lloyd(X, U, 7, keep, edges), strict=True):
            assert all(np.array_equal(u, v) for u, v in zip(a, b, strict=True))
    for label, *_, centers in plain:  # and the labels are those of brute force
        square = brute(dense, centers)
        chosen = square[np.arange(n), label]
        sizes = np.nansum(dense.astype(float) ** 2, axis=1), (centers.astype(float) ** 2).sum(axis=1).max()
        rounding = 1e-12 * sum(sizes)
        assert (chosen <= square.min(axis=1) + (rounding if form == "csr" else 1e-13 * chosen)).all()


def test_bounds_spare_most_of_the_work():
    X, _, _ = blobs(n=2000, d=6, k=8, spread=0.3)
    model = KMeans(8)
    U, z = model.start(None, Block(X), np.random.default_rng(0)), None
    for _ in range(4):
        local = model.local(U, Block(X, z=z))
        U, z = model.update(U, local.stats), local.z
    assert len(suspects(X, U.centers, *z, *U.scratch)) < 0.1 * len(X)


def suspects(X, centers, label, upper, lower, *moves):
    n, d = X.shape
    rows, maybe, far, doubt = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n), np.empty(n, np.uint8)
    bounds = label, upper, lower, *moves, np.finfo(X.dtype).eps
    whole = np.pad(centers, ((0, 0), (0, -d % 16)))
    return rows[: listed(X.ravel(), d, whole.shape[1], 0, n, whole.ravel(), *bounds, rows, maybe, far, doubt)]


@kernel()
def listed(x, *rest):
    return kmeans_dense.suspects(x, *rest)


# ---------------------------------------------------------------- kernels and their twins


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k"), [(700, 3, 1), (700, 16, 50), (1100, 70, 120), (30, 300, 40)])
def test_nearest_and_its_bound(n, d, k, dtype):
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((k, d)).astype(dtype)
    U[k // 2] = U[0]  # a tie: the first of the two wins
    X[: n // 2] = 20 * U[-1] + 10 * X[: n // 2]
    U[k // 3] = U[-1] + dtype(1e-9 if dtype is np.float64 else 3e-7)  # too near for float32 products to tell them apart
    drift, shift = rng.uniform(0, 1, k).astype(dtype), rng.standard_normal(d).astype(dtype)
    label, upper, lower = np.full(n, k - 1, np.int32), np.full(n, np.inf), np.zeros(n)
    rows = np.flatnonzero(rng.random(n) < 0.8)
    rest = np.setdiff1d(np.arange(n), rows)
    upper[rest], lower[rest] = -np.inf, np.inf  # bounds that leave no doubt
    none = np.zeros(k)
    kmeans_dense.lloyd(X, np.empty(0), U, shift, dtype(0.5), none, drift, none, none, 1e-7, True, label, upper, lower)
    square = brute(X, U)
    assert np.array_equal(label[rows], square.argmin(axis=1)[rows])
    assert (label[rest] == k - 1).all()
    np.put_along_axis(square, square.argmin(axis=1)[:, None], np.inf, axis=1)
    bound, truth = lower[rows] - drift[label[rows]], np.sqrt(square.min(axis=1)[rows])
    assert (bound <= truth * (1 + 1e-6)).all()
    assert k == 1 or (bound >= truth - 0.01).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_their_twin(dtype):
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((300, 7)).astype(dtype), rng.standard_normal((5, 7)).astype(dtype)
    w = rng.uniform(0, 2, 300)
    label, path = rng.integers(0, 4, 300).astype(np.int32), rng.uniform(0, 1, 5).astype(dtype)  # cluster 4 is empty
    Z, square = np.eye(5)[label] * w[:, None], brute(X, U)[np.arange(300), label]
    settled = np.full(300, -np.inf), np.full(300, np.inf)
    none, upper = np.zeros(5), settled[0].copy()
    dense = kmeans_dense.lloyd(X, w, U, X[0], dtype(1), path, none, none, none, 1e-7, True, label, upper, settled[1])
    S = sp.csr_array(X)
    base, other = (U.astype(float) ** 2).sum(axis=1), np.empty(300)
    csr = S.indptr, S.indices, S.data
    cells = kmeans_cells.sums(*csr, U, base, False, float(np.sqrt(base.max())), label, w, path, other)
    for n, a, v, up in ((*dense, upper), (*cells[:3], other)):
        np.testing.assert_allclose(n, Z.sum(axis=0))
        np.testing.assert_allclose(a, Z.T @ X.astype(float), atol=1e-12)
        np.testing.assert_allclose(v, np.bincount(label, w * square, minlength=5), rtol=1e-12)
        np.testing.assert_allclose(up, np.sqrt(square) - path[label], atol=1e-6)


def test_suspects_miss_no_row_that_changes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    U = X[:20].copy()
    square = np.sort(brute(X, U), axis=1)
    label = brute(X, U).argmin(axis=1).astype(np.int32)
    moved = 0.05 * rng.standard_normal(U.shape)
    path = np.sqrt((moved**2).sum(axis=1))
    drift = np.array([np.delete(path, k).max() for k in range(20)])
    upper, lower = np.sqrt(square[:, 0]), np.sqrt(square[:, 1])
    rows = suspects(X, U + moved, label, upper, lower, path, drift, path, half_apart(U + moved))
    changed = np.flatnonzero(brute(X, U + moved).argmin(axis=1) != label)
    assert len(changed)
    assert set(changed) <= set(rows)
    assert len(rows) < len(X)


def test_lanes_and_their_twins():
    @kernel()
    def run(a, b, c, out, label, flat, turned):
        x, y, z = lanes.load(a, 0), lanes.load(b, 0), lanes.load(c, 0)
        lanes.store(out, 0, lanes.fma(x, y, z))
        lanes.store(out, 16, lanes.lower(x, y))
        lanes.store(out, 32, lanes.higher(x, y))
        lanes.store(out, 48, lanes.splat_of(a, 3))
        lanes.store(label, 0, lanes.where_lower(x, y, lanes.splat(np.int32(7)), lanes.splat(np.int32(9))))
        lanes.transpose(flat, 2, 20, turned, 1, 30)
        return lanes.aligned(5, np.float32).ctypes.data % 64

    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 16)).astype(np.float32)
    out, label, turned = np.zeros(64, np.float32), np.zeros(16, np.int32), np.zeros(500, np.float32)
    flat = rng.standard_normal(16 * 20).astype(np.float32)
    assert run(a, b, c, out, label, flat, turned) == 0
    once = (a.astype(np.float64) * b + c).astype(np.float32)
    np.testing.assert_allclose(out[:16], once, rtol=1e-7)
    assert np.array_equal(out[16:], np.concatenate([np.minimum(a, b), np.maximum(a, b), np.full(16, a[3])]))
    assert np.array_equal(label, np.where(a < b, 7, 9))
    block = flat.reshape(16, 20)[:, 2:18]
    assert np.array_equal(turned[1:481].reshape(16, 30)[:, :16], block.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_of_both_kinds_and_their_twins(dtype):
    @kernel()
    def run(a, index, count, out, thin, wide, eight):
        lanes.fetch(a, 10**6)  # beyond the end: no more than a hint
        x, y = lanes.load(a, 0), lanes.load_part(a, index, count)
        lanes.store(out, 0, lanes.plus(x, y))
        lanes.store(out, 16, lanes.minus(x, y))
        lanes.store(out, 32, lanes.times(x, y))
        lanes.store(out, 48, lanes.fma(x, y, y))
        lanes.store(thin, 0, lanes.narrow(x))
        lanes.store(wide, 0, lanes.wide(x))
        lanes.store(eight, 0, lanes.fma(lanes.load8(a, 1), lanes.splat8(a[0]), lanes.load8(a, 2)))
        return lanes.total(x)

    a = np.random.default_rng(0).standard_normal(21).astype(dtype)
    eps = float(np.finfo(dtype).eps)
    for index, count in ((16, 5), (20, 1), (3, 16), (5, 99), (21, 0), (21, -8)):
        out, thin, wide, eight = np.zeros(64, dtype), np.zeros(16, np.float32), np.zeros(16), np.zeros(8, dtype)
        x, y = a[:16], np.zeros(16, dtype)
        y[: max(0, min(count, 16))] = a[index:][: max(0, min(count, 16))]
        assert run(a, index, count, out, thin, wide, eight) == pytest.approx(x.sum(), rel=16 * eps)
        assert np.array_equal(out[:48], np.concatenate([x + y, x - y, x * y]))
        np.testing.assert_allclose(out[48:], x * y + y, rtol=8 * eps)
        assert np.array_equal(thin, x.astype(np.float32))
        assert np.array_equal(wide, x.astype(np.float64))
        np.testing.assert_allclose(eight, a[1:9] * a[0] + a[2:10], rtol=8 * eps)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_half_the_way_to_the_next_centre(offset):
    rng = np.random.default_rng(0)
    U = offset + rng.standard_normal((700, 5))  # more than one part
    U[3] = U[600]
    square = brute(U, U)
    np.fill_diagonal(square, np.inf)
    truth = 0.5 * np.sqrt(square.min(axis=1))
    half = half_apart(U - U.mean(axis=0))
    assert (half <= truth).all()
    np.testing.assert_allclose(half, truth, atol=1e-6)


@pytest.mark.parametrize(
    ("scale", "dtype"), [(c, np.float64) for c in (1e-149, 1e149)] + [(c, np.float32) for c in (1e-40, 1e-30, 1e37)]
)
def test_the_range_of_the_data_does_not_matter(scale, dtype):
    X, _, _ = blobs(n=100, k=2, d=3)
    X /= abs(X).max()
    model = KMeans(2, random_state=0).fit((X * scale).astype(dtype))
    assert adjusted_rand_score(KMeans(2, random_state=0).fit(X).labels_, model.labels_) > 0.95


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e300])
def test_squares_beyond_float64_are_refused(scale):
    X, _, _ = blobs(n=100, k=2, d=3)
    with pytest.raises(ValueError, match=r"X reaches .* squares of that are beyond float64: multiply X by 1e"):
        KMeans(2, random_state=0).fit(X / abs(X).max() * scale)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[4.0, 0.0, 2.0]] * 8, [[0.0, 1.0]] * 50, [[0.3, 0.3]] * 10])
def test_equal_rows_are_no_matter_of_scale(form, rows):
    model = KMeans(1, random_state=0).fit(form(rows))
    assert model.inertia_ == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(model.cluster_centers_[0], rows[0])


def test_sums_beyond_float32_are_no_missing_cells():
    X = np.concatenate([np.full((500, 1), 3e38), np.full((500, 1), -3e38)]).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(np.bincount(KMeans(2, random_state=0).fit_predict(X))) == [500, 500]


def test_an_outlier_whose_square_is_beyond_float32_gets_the_nearest_centre():
    X = np.append(np.random.default_rng(0).standard_normal(1000), [2.7e19, 1.8e19])[:, None]
    w = np.append(np.ones(1000), [1e-60, 1e-62])
    model = KMeans(2, init=[[0.0], [2.7e19]], n_init=1, max_iter=1, tol=0).fit(X, sample_weight=w)
    assert model.predict(X)[-1] == model.predict(X)[-2]


@pytest.mark.parametrize("d", [64, 256, 1024])
def test_scores_of_long_rows_are_as_good_as_their_bound_says(d):
    c = np.sqrt(1.2)
    U = np.array([np.full(d, c), np.full(d, -c * (1 - 0.05 * d * 2.0**-24))])
    X = np.full((1, d), 0.4 * float(np.spacing(np.float32(0.6 * d))) / c)
    label, upper, lower, none = np.zeros(1, np.int32), np.empty(1), np.empty(1), np.zeros(2)
    moves = none, none, none, none
    kmeans_dense.lloyd(X, np.empty(0), U, np.zeros(d), 1.0, *moves, 1e-16, False, label, upper, lower)
    assert label[0] == brute(X, U).argmin()
