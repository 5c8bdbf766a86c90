"""Metrics, starts and limits of k-means against brute force, and against planted clusters."""

import warnings
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as Peer
from sklearn.metrics import adjusted_rand_score

import unmix
from unmix import KMeans
from unmix.cluster._scalable import KMeansParallel
from unmix.cluster.metrics import METRICS
from unmix.cluster.metrics.manhattan import GRID_EDGES
from unmix.engine.block import Block
from unmix.kernels import kmeans_limits, kmeans_manhattan
from unmix.model import fit_together
from unmix.testing import check_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short fits on purpose
OTHERS = ["cosine", "mahalanobis", "manhattan", "hamming"]


def planted(metric, n=600, d=8, k=4, seed=0):
    """Rows of k clusters as the metric sees them, and their labels."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % k
    if metric == "cosine":  # directions, at lengths that say nothing
        truth = np.linalg.qr(rng.standard_normal((d, d)))[0][:k]
        X = (truth[label] + 0.12 * rng.standard_normal((n, d))) * rng.lognormal(0, 1.5, (n, 1))
    elif metric == "mahalanobis":  # the corners of a box that was drawn out to a thousand times its length, aslant
        corner = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])[label]
        X = (corner + 0.2 * rng.standard_normal((n, 2))) @ np.array([[1000.0, 500.0], [0.5, 1.0]])
    elif metric == "hamming":
        truth = np.array([[(j // (1 << b)) % 2 for j in range(d)] for b in range(k)])
        X = np.abs(truth[label] - (rng.random((n, d)) < 0.04)).astype(float)
    else:
        X = 4 * rng.standard_normal((k, d))[label] + 0.3 * rng.standard_t(2, (n, d))
    return X, label


def distances(metric, X, U, VI=None):
    """All distances, by SciPy; over the observed cells where some are missing."""
    if np.isnan(X).any():
        e = np.nan_to_num(np.abs(X[:, None] - U))
        return {"manhattan": e.sum(-1), "hamming": e.sum(-1), "euclidean": np.sqrt((e**2).sum(-1))}[metric]
    if metric == "hamming":
        return cdist(X, U, "hamming") * X.shape[1]
    name = {"manhattan": "cityblock"}.get(metric, metric)
    return cdist(X, U, name, VI=VI) if metric == "mahalanobis" else cdist(X, U, name)


def precision(X):
    return np.linalg.inv(np.cov(X.T, bias=True))


def fits(metric, X, **more):
    model = KMeans(4, metric=metric, random_state=0, n_init=5, **more)
    return model.fit(X)


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize("metric", OTHERS)
def test_planted_clusters_distances_labels_and_inertia(metric):
    X, label = planted(metric)
    model = fits(metric, X, tol=0)
    assert adjusted_rand_score(label, model.labels_) > 0.95
    far = distances(metric, X, model.cluster_centers_, precision(X))
    np.testing.assert_allclose(model.transform(X), far, rtol=1e-6, atol=1e-6)
    assert np.array_equal(model.predict(X), model.labels_)
    own = far[np.arange(len(X)), model.labels_]
    assert (own <= far.min(axis=1) + 1e-9).all()
    assert model.inertia_ == pytest.approx((own**2 if metric == "mahalanobis" else own).sum(), rel=1e-9)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9)


def test_euclidean_would_not_have_found_them():
    for metric in ("cosine", "mahalanobis"):  # else the test above says little
        X, label = planted(metric)
        assert adjusted_rand_score(label, fits("euclidean", X).labels_) < 0.5


@pytest.mark.parametrize("metric", OTHERS)
def test_centres_are_what_brute_force_says(metric):
    X, _ = planted(metric, n=501)
    w = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    model = KMeans(4, metric=metric, random_state=0, tol=0).fit(X, sample_weight=w)
    for k in range(4):
        rows = np.repeat(X[model.labels_ == k], w[model.labels_ == k].astype(int), axis=0)
        u = model.cluster_centers_[k]
        if metric == "cosine":
            mean = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).sum(axis=0)
            np.testing.assert_allclose(u, mean / np.linalg.norm(mean), atol=1e-9)
        elif metric == "mahalanobis":
            np.testing.assert_allclose(u, rows.mean(axis=0), rtol=1e-7, atol=1e-7)
        elif metric == "hamming":
            assert np.array_equal(u, rows.mean(axis=0) > 0.5)
        else:  # any point between the middle rows is a median
            cost = np.abs(rows - np.median(rows, axis=0)).sum(axis=0)
            np.testing.assert_allclose(np.abs(rows - u).sum(axis=0), cost, rtol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
@pytest.mark.parametrize("kind", ["planted", "noise", "nan", "float32"])
def test_the_objective_never_gets_worse(metric, kind):
    X, _ = planted(metric, d=20)
    if kind in ("noise", "float32"):
        X = np.random.default_rng(1).standard_normal((700, 12)) + 3
        X = (X > 3).astype(float) if metric == "hamming" else X
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "nan" and metric != "cosine":
        X[np.random.default_rng(2).random(X.shape) < 0.15] = np.nan
    model = KMeans(7, metric=metric, random_state=1, init="random", n_init=1, tol=0, max_iter=60).fit(X)
    objective = np.array([s.objective for s in model.trace_])
    assert len(objective) > 1
    slack = 1e-6 if kind == "float32" else 1e-10
    assert (np.diff(objective) <= slack * objective[:-1]).all()
    assert objective[-1] < objective[0]


@pytest.mark.parametrize("metric", ["manhattan", "hamming"])
def test_missing_cells_do_not_count(metric):
    X, label = planted(metric)
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    model = fits(metric, X, tol=0)
    assert adjusted_rand_score(label, model.labels_) > 0.6
    far = distances(metric, X, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(X), far, rtol=1e-6, atol=1e-6)
    assert model.inertia_ == pytest.approx(far.min(axis=1).sum(), rel=1e-9)
    for k in range(4):
        rows = X[model.labels_ == k]
        middle = np.nanmedian(rows, axis=0) if metric == "manhattan" else np.nanmean(rows, axis=0) > 0.5
        np.testing.assert_allclose(
            np.nansum(np.abs(rows - model.cluster_centers_[k]), axis=0),
            np.nansum(np.abs(rows - middle), axis=0),
            rtol=1e-6,
        )


def test_mahalanobis_of_the_observed_cells_is_by_their_own_covariance():
    X, label = planted("mahalanobis")
    P = precision(X)
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    holes[5] = np.nan
    model = fits("mahalanobis", holes, metric_params={"VI": P})
    far = np.zeros((len(X), 4))
    for i, x in enumerate(holes):
        o = ~np.isnan(x)
        e = x[o] - model.cluster_centers_[:, o]
        far[i] = np.einsum("kj,jl,kl->k", e, np.linalg.inv(np.linalg.inv(P)[np.ix_(o, o)]), e) if o.any() else 0.0
    np.testing.assert_allclose(model.transform(holes), np.sqrt(far), rtol=1e-5, atol=1e-5)
    assert model.inertia_ == pytest.approx(far.min(axis=1).sum(), rel=1e-9)
    whole = ~np.isnan(holes).any(axis=1)
    assert adjusted_rand_score(label[whole], model.labels_[whole]) > 0.9


def test_mahalanobis_is_euclidean_of_whitened_rows():
    X, _ = planted("mahalanobis", n=1501)
    Y = (X - X.mean(axis=0)) @ np.linalg.cholesky(precision(X))
    ours = KMeans(5, metric="mahalanobis", init=X[:5], tol=0, max_iter=9).fit(X)
    theirs = Peer(5, init=Y[:5], n_init=1, tol=0, max_iter=9).fit(Y)
    assert np.array_equal(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    means = [X[theirs.labels_ == k].mean(axis=0) for k in range(5)]
    np.testing.assert_allclose(ours.cluster_centers_, means, rtol=0.05, atol=0.05)
    given = KMeans(5, metric="mahalanobis", metric_params={"VI": np.eye(2)}, init=X[:5], tol=0, max_iter=9).fit(X)
    plain = KMeans(5, init=X[:5], tol=0, max_iter=9).fit(X)
    assert np.array_equal(given.labels_, plain.labels_)
    np.testing.assert_allclose(given.cluster_centers_, plain.cluster_centers_, rtol=1e-9, atol=1e-9)


def test_mahalanobis_takes_the_covariance_of_all_rows_and_leaves_out_what_does_not_vary():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 3)) @ rng.standard_normal((3, 3)) + 5
    X[::2, 0] += 9
    model = KMeans(2, metric="mahalanobis", random_state=0)
    assert model.sizes(model.admit(X)[2]).sample < len(X)
    model.fit(X)
    np.testing.assert_allclose(model._parts_.frame.precision, precision(X), rtol=1e-6)
    wide = np.column_stack([X, X[:, 0] - X[:, 1], np.full(len(X), 7.0)])[:5000]
    again = KMeans(2, metric="mahalanobis", random_state=0).fit(wide)
    far = distances("mahalanobis", X[:5000], again.cluster_centers_[:, :3], precision(X[:5000]))
    np.testing.assert_allclose(again.transform(wide), far, rtol=1e-5)


@pytest.mark.parametrize("metric", ["cosine", "hamming"])
def test_csr_is_dense(metric):
    X, _ = planted(metric)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = 0
    X[9] = 0
    dense, sparse = (KMeans(4, metric=metric, init=X[:4], tol=0).fit(rows) for rows in (X, sp.csr_array(X)))
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-6)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-6)
    assert adjusted_rand_score(dense.labels_, sparse.labels_) > 0.99


def test_a_row_of_zeros_is_at_a_right_angle_to_every_centre():
    X, _ = planted("cosine")
    X[:7] = 0
    for rows in (X, sp.csr_array(X)):
        model = fits("cosine", rows)
        np.testing.assert_allclose(model.transform(rows)[:7], 1.0)
        assert model.inertia_ == pytest.approx(model.transform(rows).min(axis=1).sum(), rel=1e-9)


def test_spherical_k_means_does_not_see_lengths():
    X, _ = planted("cosine")
    Y = X / np.linalg.norm(X, axis=1, keepdims=True)
    one = KMeans(4, metric="cosine", init=X[:4], tol=0).fit(X)
    two = KMeans(4, metric="cosine", init=7 * X[:4], tol=0).fit(Y)
    assert np.array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(np.linalg.norm(one.cluster_centers_, axis=1), 1.0)


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_change_no_bit(metric, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 5)) + 0.1 * rng.integers(0, 2, (300, 5))  # full of ties
    X = ((X > 1.5) if metric == "hamming" else X).astype(dtype)
    model = KMeans(6, metric=metric, init="random", n_init=1, random_state=0, tol=0, max_iter=12)
    plain = KMeans(6, metric=metric, init="random", n_init=1, random_state=0, tol=0, max_iter=12)
    model.fit(X)
    try:
        KMeans.stateful = False
        plain.fit(X)
    finally:
        KMeans.stateful = True
    assert np.array_equal(model.labels_, plain.labels_)
    assert [s.objective for s in model.trace_] == [s.objective for s in plain.trace_]


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
def test_same_bits_streamed_weighted_and_saved(metric, tmp_path):
    X, _ = planted(metric)
    for init in ("k-means++", "k-means||"):
        model = KMeans(4, metric=metric, init=init, random_state=0, max_iter=5, tol=0)
        with unmix.config(block_rows=64, runner="serial"):
            truth = model.fit(X)
        with unmix.config(block_rows=64, n_jobs=2):
            stream = KMeans(**model.get_params()).fit(lambda: iter(np.array_split(X, 7)))
        assert np.array_equal(truth.cluster_centers_, stream.cluster_centers_)
    w = np.random.default_rng(1).integers(0, 3, len(X))
    one = KMeans(4, metric=metric, random_state=0, max_iter=9).fit(X, sample_weight=w)
    two = KMeans(4, metric=metric, random_state=0, max_iter=9).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, rtol=1e-6, atol=1e-6)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-8)
    one.save(tmp_path / "model")
    assert np.array_equal(unmix.load(tmp_path / "model").transform(X), one.transform(X))
    assert fits(metric, X.astype(np.float32)).transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
def test_empty_clusters_are_refilled(metric):
    X, _ = planted(metric, n=400)
    model = KMeans(6, metric=metric, init=np.repeat(X[:1], 6, axis=0), tol=0).fit(X)
    assert len(np.unique(model.labels_)) == 6
    objective = np.array([s.objective for s in model.trace_])
    assert (np.diff(objective) <= 1e-10 * objective[0]).all()


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
def test_select_grows_and_online_steps_learn(metric):
    X, label = planted(metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # medians may not settle
        (done,) = fit_together([KMeans(3, metric=metric)], X, [None], [0])
    grown = KMeans(4, metric=metric).neighbour(done, True, np.random.default_rng(0))
    assert grown.centers.shape == (4, done.U.centers.shape[1])
    model = KMeans(4, metric=metric)
    after = model.local(grown, Block(X))
    assert after.loss <= done.loss * (1 + 1e-9)
    assert model.local(model.update(grown, after.stats), Block(X)).loss <= after.loss * (1 + 1e-9)
    online = KMeans(4, metric=metric, random_state=0)
    if metric == "manhattan":
        with pytest.raises(ValueError, match="medians are not sums"):
            online.partial_fit(X)
        return
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 6):
        online.partial_fit(X[rows])
    assert adjusted_rand_score(label, online.predict(X)) > 0.6


LAWS = {
    "statistics_add": (),
    "weight_two_is_the_row_twice_and_weight_zero_is_no_row": (),
    "a_weighted_fit_is_a_fit_of_repeated_rows": (),
    "dense_is_csr": ("mahalanobis", "manhattan"),
    "nothing_passed_in_is_changed": (),
    "online_with_rate_one_on_all_rows_is_a_batch_step": ("manhattan",),
    "nan_is_not_observed": ("cosine",),
    "float32_in_float32_out": (),
    "the_planted_parts_are_found": (),
}


@pytest.mark.parametrize("metric", OTHERS)
@pytest.mark.parametrize("law", LAWS)
def test_laws(metric, law, monkeypatch):
    if metric in LAWS[law]:
        pytest.skip("refused, with a reason")

    def example(rng):
        X, label = planted(metric, n=240)

        def found(model):
            assert adjusted_rand_score(label, model.predict(X.astype(model.cluster_centers_.dtype))) > 0.9

        starts = 1 if "weighted" in law else 4  # several may find the same, and rounding then says which is best
        return KMeans(4, metric=metric, n_init=starts, random_state=0), X, found

    monkeypatch.setattr(KMeans, "example", example)
    check_model(KMeans, laws=[law])  # which raises


@pytest.mark.parametrize("metric", OTHERS)
def test_killed_and_resumed_is_never_killed(metric, monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 6))
    X = (X > 0) * 1.0 if metric == "hamming" else X
    model = KMeans(6, metric=metric, init="random", n_init=1, random_state=2, tol=0, max_iter=9)
    monkeypatch.setattr(KMeans, "example", lambda rng: (model, X, None))
    check_model(KMeans, laws=["killed_and_resumed_is_never_killed"])  # which raises


# ---------------------------------------------------------------- medians


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["normal", "cauchy", "integers", "two values", "constant", "offset", "tiny"]),
    n=st.integers(1, 60),
    missing=st.booleans(),
)
@example(seed=48, kind="offset", n=48, missing=True)  # values 4e-4 apart at 1e7
def test_medians_by_sums_alone(seed, kind, n, missing):
    rng = np.random.default_rng(seed)
    X = {
        "normal": lambda: rng.standard_normal((n, 3)),
        "cauchy": lambda: rng.standard_cauchy((n, 3)),
        "integers": lambda: rng.integers(0, 5, (n, 3)).astype(float),
        "two values": lambda: rng.integers(0, 2, (n, 3)) * 1e6,
        "constant": lambda: np.full((n, 3), 7.0),
        "offset": lambda: 1e7 + rng.standard_normal((n, 3)),
        "tiny": lambda: 1e-12 * rng.standard_normal((n, 3)),
    }[kind]()
    if missing and n > 1:
        holes = rng.random(X.shape) < 0.3
        holes[0] = False
        X[holes] = np.nan
    w = rng.integers(1, 4, n).astype(float)
    model = KMeans(1, metric="manhattan", init=np.full((1, 3), 100.0), tol=0, max_iter=40).fit(X, sample_weight=w)
    best = 0.0
    for j in range(3):
        column = np.repeat(X[:, j], w.astype(int))
        column = column[~np.isnan(column)]
        best += np.abs(column - np.median(column)).sum()
    assert model.inertia_ == pytest.approx(best, rel=1e-7, abs=1e-7 * np.nanmax(np.abs(X)) * 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
def test_manhattan_kernels_and_their_twins(dtype, missing):
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((90, 5)).astype(dtype), rng.standard_normal((4, 5)).astype(dtype)
    seen = rng.random(X.shape) < 0.7 if missing else np.empty((0, 0), bool)
    mask = seen if missing else np.ones(X.shape, bool)
    w, none, n = rng.uniform(0, 2, 90), np.zeros(4), len(X)
    label, upper, lower = np.zeros(n, np.int32), np.empty(n), np.empty(n)
    columns = np.ascontiguousarray(U.T.astype(float))
    kmeans_manhattan.nearest(X, seen, columns, none, none, none, 1e-7, False, label, upper, lower)
    far = (np.abs(X[:, None].astype(float) - U) * mask[:, None]).sum(-1)
    assert np.array_equal(label, far.argmin(axis=1))
    np.testing.assert_allclose(lower, np.sort(far, axis=1)[:, 1])
    grid = np.sort(rng.standard_normal((4, 5, GRID_EDGES)), axis=2).astype(dtype)
    N, total, V, weight = kmeans_manhattan.sums(X, seen, U, grid, label, w, none, upper)
    np.testing.assert_allclose(upper, far.min(axis=1))
    np.testing.assert_allclose(N, np.bincount(label, w, 4))
    np.testing.assert_allclose(V, np.bincount(label, w * far.min(axis=1), 4))
    twin = np.zeros((2, *total.shape))
    for i in range(n):
        for j in np.flatnonzero(mask[i]):
            b = np.searchsorted(grid[label[i], j], X[i, j])
            twin[:, label[i], j, b] += w[i] * (float(X[i, j]) - float(U[label[i], j])), w[i]
    np.testing.assert_allclose(total, twin[0], atol=1e-12)
    np.testing.assert_allclose(weight, twin[1], atol=1e-12)


# ---------------------------------------------------------------- starts


def test_partition_is_means_of_a_partition():
    X = np.random.default_rng(0).standard_normal((60, 3))
    U = KMeans(4, init="partition").start(None, Block(X), np.random.default_rng(5)).centers
    group = np.random.default_rng(5).permutation(60) % 4
    np.testing.assert_allclose(U, [X[group == k].mean(axis=0) for k in range(4)], atol=1e-12)
    sparse = KMeans(4, init="partition").start(None, Block(sp.csr_array(X)), np.random.default_rng(5)).centers
    np.testing.assert_allclose(U, sparse, atol=1e-12)
    assert KMeans(4, init="partition").starts() == 10
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    seen = ~np.isnan(holes)
    U = KMeans(4, init="partition").start(None, Block(np.nan_to_num(holes), None, None, seen), np.random.default_rng(5))
    np.testing.assert_allclose(U.centers, [np.nanmean(holes[group == k], axis=0) for k in range(4)], atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_spread_is_the_mean_and_then_rows_apart(metric, kind):
    if kind == "csr" and metric in ("mahalanobis", "manhattan"):
        pytest.skip("needs dense rows")
    X, _ = planted(metric)
    rows = sp.csr_array(X) if kind == "csr" else X
    for seed in range(5):
        model = KMeans(5, metric=metric, init="spread")
        parts = model.start(None, Block(rows), np.random.default_rng(seed))
        U = METRICS[metric].leave(parts.frame, parts.centers)
        far = distances(metric, U, U, precision(X)) + np.diag(np.full(5, np.inf))
        if metric in ("euclidean", "mahalanobis", "manhattan"):
            np.testing.assert_allclose(U[0], X.mean(axis=0), atol=1e-9)
        assert np.isclose(distances(metric, U[1:], X, precision(X)).min(axis=1), 0, atol=1e-5).all()
        shortest = far.min()
        assert shortest > 0
        fixed = KMeans(5, metric=metric, init="spread", apart=0.9 * shortest)
        parts = fixed.start(None, Block(rows), np.random.default_rng(seed))
        U = METRICS[metric].leave(parts.frame, parts.centers)
        far = distances(metric, U, U, precision(X)) + np.diag(np.full(5, np.inf))
        assert far.min() >= 0.9 * shortest * (1 - 1e-6)
    with pytest.raises(ValueError, match="apart=1000000"):
        KMeans(5, metric=metric, init="spread", apart=1000000).fit(rows)
    assert KMeans(5, metric=metric, init="spread", random_state=0).fit(rows).inertia_ > 0


def test_spread_follows_the_rule_of_the_notes():
    X = np.random.default_rng(0).standard_normal((200, 2))
    U = KMeans(6, init="spread", apart=0.8).start(None, Block(X), np.random.default_rng(3)).centers
    chosen = [X.mean(axis=0)]
    for i in np.random.default_rng(3).permutation(200):
        if len(chosen) < 6 and min(np.linalg.norm(X[i] - c) for c in chosen) >= 0.8:
            chosen.append(X[i])
    np.testing.assert_allclose(U, chosen, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), kind=st.sampled_from(["noise", "grid", "outlier", "nan"]))
def test_spread_always_finds_enough(seed, k, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 2))
    if kind == "grid":
        X = rng.integers(0, 2, (30, 2)).astype(float)
    if kind == "outlier":
        X[0] = 1e6
    seen = rng.random(X.shape) < 0.7 if kind == "nan" else None
    b = Block(X if seen is None else X * seen, None, None, seen)
    assert KMeans(k, init="spread").start(None, b, rng).centers.shape == (k, 2)


def scalable(X, w, k, key, first, unit, rounds=5):
    """k-means|| as it is written down, one row at a time."""
    chosen = [first]
    for number in range(rounds):
        bits = np.random.Generator(np.random.Philox(key=key + (number << 64)))
        uniform = bits.random(len(X))
        near = w * cdist(X, np.array(chosen), "sqeuclidean").min(axis=1)
        chosen += [X[i] for i in range(len(X)) if uniform[i] < min(1.0, 2 * k * near[i] / near.sum())]
    return np.array(chosen)


@pytest.mark.parametrize("rows", [7, 64, 1000])
def test_k_means_parallel_draws_what_its_definition_says(rows):
    X = np.random.default_rng(0).standard_normal((900, 3)) + 10
    w = np.random.default_rng(1).uniform(0, 2, 900)
    model = KMeans(6, init="k-means||")
    first = model.start(None, Block(X, w), np.random.default_rng(2))
    stage, _ = model.stages(model.admit(X, w)[2])
    assert isinstance(stage, KMeansParallel)
    blocks = [Block(X[a : a + rows], w[a : a + rows], start=a) for a in range(0, len(X), rows)]
    U, totals = stage.start(first, Block(X, w), np.random.default_rng(3)), []
    for _ in range(stage.most):
        totals.append(reduce(stage.combine, (stage.local(U, b).stats for b in blocks)))
        U = stage.update(U, totals[-1])
        assert stage.goal(U, 1.0) is False  # every round is made
    truth = scalable(X, w, 6, U.key, first.centers[0], U.unit)
    np.testing.assert_allclose(U.parts.centers, truth, rtol=1e-12)
    assert len(truth) > 6
    assert cdist(stage.hand(U, None).centers, truth).min(axis=1).max() == 0
    weight = np.bincount(cdist(X, truth).argmin(axis=1), w, len(truth))
    np.testing.assert_allclose(totals[-1].weight, weight, rtol=1e-9)
    np.testing.assert_allclose(U.weight, weight, rtol=1e-9)


def test_k_means_parallel_is_the_same_however_rows_are_cut():
    X = np.random.default_rng(0).standard_normal((3000, 4))
    X[:3] *= 1e6
    first = []
    for rows in (33, 500, 10**6):
        with unmix.config(block_rows=rows):
            first.append(KMeans(20, init="k-means||", random_state=1, max_iter=1, tol=0).fit(X).labels_)
    assert np.array_equal(first[0], first[1])
    assert np.array_equal(first[0], first[2])


def test_k_means_parallel_is_as_good_as_plus_plus():
    rng = np.random.default_rng(0)
    truth = 10 * rng.standard_normal((30, 4))
    X = truth[rng.integers(30, size=6000)] + 0.05 * rng.standard_normal((6000, 4))

    def mean(init):
        fits = [KMeans(30, init=init, n_init=1, random_state=s, max_iter=2, tol=0).fit(X).inertia_ for s in range(8)]
        return np.median(fits)

    assert mean("k-means||") < 1.3 * mean("k-means++") < 0.5 * mean("random")


@pytest.mark.parametrize("form", ["csr", "nan", "duplicates"])
def test_k_means_parallel_takes_what_the_others_take(form):
    X, label = planted("euclidean", k=4)
    if form == "nan":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    if form == "duplicates":
        X, label = np.repeat(X[:4], 50, axis=0), np.repeat(np.arange(4), 50)
    model = KMeans(4, init="k-means||", n_init=3, random_state=0).fit(sp.csr_array(X) if form == "csr" else X)
    assert adjusted_rand_score(label, model.labels_) > 0.9


@pytest.mark.slow
def test_k_means_parallel_on_dask(cluster):
    import dask.array as da

    X = np.random.default_rng(0).standard_normal((400, 4))
    with unmix.config(block_rows=50, runner="serial"):
        truth = KMeans(5, init="k-means||", random_state=0, max_iter=3, tol=0).fit(X)
    with unmix.config(block_rows=50, runner=cluster):
        other = KMeans(5, init="k-means||", random_state=0, max_iter=3, tol=0).fit(da.from_array(X, chunks=(90, -1)))
    assert np.array_equal(truth.cluster_centers_, other.cluster_centers_)


# ---------------------------------------------------------------- variation, codes


def test_variation_within_and_between():
    X, _ = planted("euclidean", n=401)
    w = np.random.default_rng(0).uniform(0, 2, len(X))
    for offset in (0.0, 1e5):
        model = KMeans(5, random_state=0, max_iter=2, tol=0).fit(X + offset, sample_weight=w)
        mean = np.average(X, axis=0, weights=w)
        total = np.average(((X - mean) ** 2).sum(axis=1), weights=w)
        means = np.array([np.average(X[model.labels_ == k], axis=0, weights=w[model.labels_ == k]) for k in range(5)])
        within = np.average(((X - means[model.labels_]) ** 2).sum(axis=1), weights=w)
        assert model.total_variation_ == pytest.approx(total, rel=1e-9)
        assert model.within_variation_ == pytest.approx(within, rel=1e-9)
        between = np.average(((means - mean)[model.labels_] ** 2).sum(axis=1), weights=w)
        assert model.between_variation_ == pytest.approx(between, rel=1e-9)
        assert model.within_variation_ <= model.inertia_ / w.sum()


@pytest.mark.parametrize("metric", OTHERS)
def test_variation_of_other_metrics(metric):
    X, _ = planted(metric)
    model, one = fits(metric, X, tol=0), KMeans(1, metric=metric, tol=0).fit(X)
    assert model.within_variation_ == pytest.approx(model.inertia_ / len(X), rel=1e-9)
    if metric == "manhattan":
        assert not hasattr(model, "total_variation_")
        return
    assert model.total_variation_ == pytest.approx(one.inertia_ / len(X), rel=1e-9)
    assert model.between_variation_ == pytest.approx(model.total_variation_ - model.within_variation_, rel=1e-9)


@pytest.mark.parametrize(("k", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_compress_and_decompress(k, dtype):
    X = np.random.default_rng(0).standard_normal((400, 2))
    model = KMeans(k, init="random", n_init=1, random_state=0, max_iter=2).fit(X)
    codes, book = model.compress(X)
    assert codes.dtype == dtype
    assert np.array_equal(codes, model.predict(X))
    assert np.array_equal(model.decompress(codes), book[codes])
    assert np.square(X - model.decompress(codes)).sum() == pytest.approx(-model.score(X))
    for wrong in (np.array([0, k]), np.array([-1]), np.array([0.0]), np.zeros((2, 2), int)):
        with pytest.raises(ValueError, match=f"from 0 to {k - 1}"):
            model.decompress(wrong)


# ---------------------------------------------------------------- limits


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), kind=st.sampled_from(["random", "ties", "lopsided"]))
def test_assignment_within_limits_is_the_best(seed, k, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 36))
    least, most = int(rng.integers(0, n // k + 1)), int(rng.integers(-(-n // k), n + 1))
    cost = rng.integers(0, 4, (n, k)).astype(float) if kind == "ties" else rng.random((n, k))
    if kind == "lopsided":
        cost[:, 0] -= 2
    label = kmeans_limits.assign(cost, least, most)
    size = np.bincount(label, minlength=k)
    assert least <= size.min()
    assert size.max() <= most
    each, every = sp.kron(sp.eye(n), np.ones((1, k))), sp.kron(np.ones((1, n)), sp.eye(k))
    limits = np.r_[np.full(k, most), np.full(k, -least)]
    truth = linprog(cost.ravel(), A_ub=sp.vstack([every, -every]), b_ub=limits, A_eq=each, b_eq=np.ones(n))
    assert cost[np.arange(n), label].sum() == pytest.approx(truth.fun, abs=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", *OTHERS])
@pytest.mark.parametrize(("least", "most"), [(None, 160), (100, None), (145, 155), (150, 150)])
def test_sizes_are_within_limits(metric, least, most):
    X, _ = planted(metric)
    X = X[np.argsort(np.random.default_rng(0).random(len(X)))]
    X[:350] = X[0]  # most rows are the same
    model = KMeans(4, metric=metric, min_size=least, max_size=most, random_state=0, tol=0, max_iter=30).fit(X)
    size = np.bincount(model.labels_, minlength=4)
    assert size.min() >= (least or 0)
    assert size.max() <= (most or 600)
    objective = np.array([s.objective for s in model.trace_])
    assert (np.diff(objective) <= 1e-9 * objective[:-1] + 1e-12).all()
    nearest = model.transform(X).argmin(axis=1)
    assert (model.predict(X) == nearest).mean() > 0.9
    assert np.array_equal(model.fit_predict(X), model.labels_)
    assert -model.score(X) <= model.inertia_ * (1 + 1e-9)
    assert model.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("form", ["csr", "nan", "float32"])
def test_limits_take_what_the_others_take(form):
    X, _ = planted("euclidean", n=90)
    if form == "nan":
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    rows = {"csr": sp.csr_array, "nan": np.asarray, "float32": np.float32}[form](X)
    model = KMeans(7, min_size=12, max_size=13, random_state=0).fit(rows)
    assert set(np.bincount(model.labels_)) <= {12, 13}
    e = np.nan_to_num(X - model.cluster_centers_[model.labels_])
    assert model.inertia_ == pytest.approx((e**2).sum(), rel=1e-4)


def test_limits_that_do_not_bind_change_nothing():
    X, _ = planted("euclidean")
    plain = KMeans(4, init=X[:4], tol=0).fit(X)
    limited = KMeans(4, init=X[:4], tol=0, min_size=1, max_size=599).fit(X)
    assert np.array_equal(plain.labels_, limited.labels_)
    assert limited.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)


# ---------------------------------------------------------------- what cannot be

rows20 = np.random.default_rng(0).standard_normal((20, 2))


@pytest.mark.parametrize(
    ("model", "X", "error", "message"),
    [
        (KMeans(2, metric="hamming"), rows20, ValueError, "needs cells that are 0 or 1"),
        (KMeans(2, metric="hamming", init=rows20[:2]), (rows20 > 0) * 1.0, ValueError, "not 0 or 1"),
        (KMeans(2, metric="cosine"), np.where(rows20 > 1, np.nan, rows20), ValueError, r"row \d+, column \d.*cosine"),
        (KMeans(2, metric="cosine", init=np.zeros((2, 2))), rows20, ValueError, "no direction"),
        (KMeans(2, metric="manhattan"), sp.csr_array(rows20), TypeError, "manhattan.*toarray"),
        (KMeans(2, metric="mahalanobis"), sp.csr_array(rows20), TypeError, "mahalanobis.*toarray"),
        (KMeans(2, metric="mahalanobis", metric_params={"V": 1}), rows20, ValueError, "knows 'VI'"),
        (KMeans(2, metric="mahalanobis", metric_params={"VI": np.eye(3)}), rows20, ValueError, "symmetric 2×2"),
        (KMeans(2, metric="mahalanobis", metric_params={"VI": -np.eye(2)}), rows20, ValueError, "positive definite"),
        (KMeans(2, metric_params={"VI": np.eye(2)}), rows20, ValueError, "metric='euclidean' has none"),
        (KMeans(2, metric="chess"), rows20, ValueError, "metric"),
        (
            KMeans(2, min_size=11),
            rows20,
            ValueError,
            "min_size=11 × n_clusters=2 is more than the 20 rows: give at most 10",
        ),
        (
            KMeans(2, max_size=9),
            rows20,
            ValueError,
            "max_size=9 × n_clusters=2 is less than the 20 rows: give at least 10",
        ),
        (KMeans(2, min_size=9, max_size=0), rows20, ValueError, "max_size"),
        (KMeans(2, max_size=12), lambda: iter([rows20]), ValueError, "in memory"),
    ],
)
def test_what_cannot_be_is_refused(model, X, error, message):
    with pytest.raises(error, match=message):
        model.fit(X)
    assert not hasattr(model, "labels_")


def test_limits_refuse_weights_blocks_and_online_steps():
    model = KMeans(2, max_size=12)
    with pytest.raises(ValueError, match="leave sample_weight out"):
        model.fit(rows20, sample_weight=np.arange(20))
    with pytest.raises(ValueError, match="block_rows"), unmix.config(block_rows=7):
        model.fit(rows20)
    with pytest.raises(ValueError, match="use fit"):
        model.partial_fit(rows20)
    with pytest.raises(ValueError, match="bytes"), unmix.config(memory_budget=100):
        model.fit(rows20)


def test_new_rows_are_looked_at_too():
    X, _ = planted("hamming")
    model = fits("hamming", X)
    with pytest.raises(ValueError, match="needs cells that are 0 or 1"):
        model.predict(X + 0.5)
    with pytest.raises(TypeError, match="manhattan"):
        fits("manhattan", X).predict(sp.csr_array(X))


def test_k_means_parallel_draws_no_row_that_is_a_candidate_already(monkeypatch):
    from unmix.cluster._scalable import KMeansParallel

    sizes, update = [], KMeansParallel.update

    def watched(self, U, stats):
        out = update(self, U, stats)
        sizes.append(len(out.parts.centers))
        return out

    monkeypatch.setattr(KMeansParallel, "update", watched)
    X = np.repeat([[0.0, 0], [1, 1]], 500, axis=0)
    model = KMeans(2, init="k-means||", random_state=0).fit(X)
    assert model.inertia_ == 0
    assert sizes[0] > 1
    assert len(set(sizes)) == 1  # after the first round every row is at a candidate
