"""k-medoids against brute force, the kmedoids package and planted clusters."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances

import unmix
from unmix import KMedoids
from unmix.kernels import medoids as kernels
from unmix.maths.distances import differences
from unmix.maths.seeding import far_apart


def rows(n=60, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def loss_of(D, medoids, w=None):
    near = D[:, medoids].min(axis=1)
    return float(near.sum() if w is None else w @ near)


def fasterpam(D, w, medoids):
    """Rounds of the kernel until none helps, medoids in place: the losses, and whether it came to an end."""
    n, flat, looked = len(w), D.reshape(-1), 0
    near = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, D.dtype), np.zeros(n, D.dtype)
    losses = [kernels.nearest_two(flat, w, medoids, *near)]
    while looked < n and len(losses) < 100:
        loss, looked = kernels.fasterpam(flat, w, medoids, *near, looked)
        losses.append(loss)
    return np.array(losses), looked >= n


def pam(D, w, medoids):
    """FasterPAM by its definition: every loss from scratch, the first row that helps takes the best place."""
    medoids, quiet = list(medoids), 0
    while quiet < len(D):
        for j in range(len(D)):
            quiet += 1
            if quiet > len(D):
                break
            if j in medoids:
                continue
            now = loss_of(D, medoids, w)
            tries = [loss_of(D, [*medoids[:i], j, *medoids[i + 1 :]], w) for i in range(len(medoids))]
            if min(tries) < now - 1e-9:
                medoids[int(np.argmin(tries))] = j
                quiet = 0
    return medoids


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [15, 16, 37, 64])
def test_swaps_are_those_of_the_definition(n, dtype):
    rng = np.random.default_rng(n)
    D = cdist(x := rows(n, 2, n), x).astype(dtype)
    w = rng.integers(1, 4, n).astype(float)
    first = rng.choice(n, 4, replace=False)
    found = first.astype(np.int64)
    losses, settled = fasterpam(D, w, found)
    assert list(found) == pam(D.astype(np.float64), w, first)
    assert settled
    assert losses[0] == pytest.approx(loss_of(D.astype(float), first, w), rel=1e-6)
    assert losses[-1] == pytest.approx(loss_of(D.astype(float), found, w), rel=1e-6)
    assert (np.diff(losses) <= 0).all()


def test_no_swap_is_left_and_the_best_of_many_starts_is_the_optimum():
    X = rows(14, 2)
    D = cdist(X, X)
    best = min(loss_of(D, list(c)) for c in itertools.combinations(range(14), 3))
    model = KMedoids(3, n_init=20, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(best, rel=1e-7)
    one = KMedoids(3, init="random", random_state=1).fit(X)
    for i, j in itertools.product(range(3), range(14)):
        swapped = one.medoid_indices_.copy()
        swapped[i] = j
        assert loss_of(D, swapped) >= one.inertia_ * (1 - 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_medoids_are_those_of_the_kmedoids_package(dtype):
    package = pytest.importorskip("kmedoids")
    for seed in range(4):
        X = rows(500, 4, seed)
        D = cdist(X, X).astype(dtype)
        first = np.random.default_rng(seed).choice(500, 12, replace=False)
        theirs = package.fasterpam(D, first.astype(np.uint64), n_cpu=1)
        ours = KMedoids(12, metric="precomputed", init=first).fit(D)
        assert set(ours.medoid_indices_) == set(theirs.medoids.astype(int))
        assert ours.inertia_ == pytest.approx(theirs.loss, rel=1e-6)
        made = KMedoids(12, init=first, random_state=seed).fit(X.astype(dtype))
        assert np.array_equal(made.medoid_indices_, ours.medoid_indices_)


def test_a_given_start_looks_at_rows_as_they_stand_whatever_is_merged_or_left_out():
    X, w = rows(300, 3), np.ones(300)
    X[::7, 0] = np.nan
    plain = KMedoids(9, init=np.arange(9)).fit(X)
    w[-40:] = 0
    more = np.concatenate([X[:260], np.full((40, 3), np.nan), X[260:], X[9:20]])
    again = KMedoids(9, init=np.arange(9)).fit(
        more, sample_weight=np.r_[w[:260], np.ones(40), np.ones(40), 0 * w[9:20]]
    )
    assert np.array_equal(again.cluster_centers_, plain.cluster_centers_, equal_nan=True)
    for wrong, weight in ((299, w), (260, None)):
        with pytest.raises(ValueError, match="init names rows of weight 0 or without an observed cell"):
            KMedoids(2, init=[0, wrong]).fit(X if weight is not None else more, sample_weight=weight)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "chebyshev", "canberra", "sqeuclidean"])
@pytest.mark.parametrize("method", ["fasterpam", "alternate"])
def test_labels_distances_and_loss_belong_to_the_medoids(metric, method):
    X, new = rows(80, 4) + 2, rows(20, 4, 1) + 2
    w = np.random.default_rng(2).random(80)
    model = KMedoids(5, metric=metric, method=method, random_state=0).fit(X, sample_weight=w)
    assert np.array_equal(model.cluster_centers_, X[model.medoid_indices_])
    D = pairwise_distances(X, model.cluster_centers_, metric=metric)
    assert np.array_equal(model.labels_, D.argmin(axis=1))
    assert np.array_equal(model.labels_[model.medoid_indices_], np.arange(5))
    assert model.inertia_ == pytest.approx(w @ D.min(axis=1), rel=1e-7)
    assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=1e-9)
    there = pairwise_distances(new, model.cluster_centers_, metric=metric)
    np.testing.assert_allclose(model.transform(new), there, rtol=1e-6, atol=1e-7)
    assert np.array_equal(model.predict(new), there.argmin(axis=1))
    assert np.array_equal(model.inverse_transform(there), model.cluster_centers_[there.argmin(axis=1)])


@pytest.mark.parametrize(
    ("metric", "params"),
    [("minkowski", {"p": 3}), ("mahalanobis", None), ("seuclidean", None), ("hamming", None), ("jaccard", None)],
)
def test_metrics_with_parameters_and_of_booleans(metric, params):
    X = rows(70, 4) * [1, 5, 2, 1]
    if metric in ("hamming", "jaccard"):
        X = X > 0
        X[:, 0] |= ~X.any(axis=1)
    model = KMedoids(4, metric=metric, metric_params=params, random_state=0).fit(X.astype(float))
    more = params or {}
    if metric == "mahalanobis":
        more = {"VI": np.linalg.inv(np.cov(X.T, bias=True))}
    if metric == "seuclidean":
        more = {"V": X.var(axis=0)}
    D = cdist(X, X[model.medoid_indices_], metric, **more)
    assert model.inertia_ == pytest.approx(D.min(axis=1).sum(), rel=1e-7)


def test_a_callable_is_the_metric_that_it_computes():
    X = rows(40, 3)
    named = KMedoids(3, metric="manhattan", random_state=0).fit(X)
    called = KMedoids(3, metric=lambda a, b: np.abs(a - b).sum(), random_state=0).fit(X)
    assert np.array_equal(named.medoid_indices_, called.medoid_indices_)


def test_precomputed_is_the_metric_that_was_computed():
    X, new = rows(90, 4), rows(7, 4, 1)
    D = cdist(X, X)
    given = KMedoids(4, metric="precomputed", n_init=30, random_state=0).fit(D)
    made = KMedoids(4, n_init=30, random_state=0).fit(X)
    assert given.inertia_ == pytest.approx(made.inertia_, rel=1e-6)
    assert set(given.medoid_indices_) == set(made.medoid_indices_)
    assert given.inertia_ == pytest.approx(loss_of(D, given.medoid_indices_))
    assert np.array_equal(given.predict(cdist(new, X)), cdist(new, X[given.medoid_indices_]).argmin(axis=1))
    assert not hasattr(given, "cluster_centers_")
    with pytest.raises(ValueError, match="medoid_indices_"):
        given.inverse_transform(given.transform(D))


def test_precomputed_rows_of_no_weight_are_no_rows():
    X, w = rows(60, 3), np.random.default_rng(1).integers(0, 3, 60).astype(float)
    D, some = cdist(X, X), w > 0
    first = np.flatnonzero(some)[:4]
    model = KMedoids(4, metric="precomputed", init=first).fit(D, sample_weight=w)
    assert (w[model.medoid_indices_] > 0).all()
    small = KMedoids(4, metric="precomputed", init=np.arange(4)).fit(D[np.ix_(some, some)], sample_weight=w[some])
    assert np.array_equal(np.flatnonzero(some)[small.medoid_indices_], model.medoid_indices_)


def test_voronoi_iteration_is_that_of_the_definition():
    X = rows(50, 2)
    D = cdist(X, X)
    medoids = [0, 1, 2, 3]
    while True:
        label = D[:, medoids].argmin(axis=1)
        new = [int(m[np.argmin(D[np.ix_(m, m)].sum(axis=0))]) for m in (np.flatnonzero(label == k) for k in range(4))]
        if new == medoids:
            break
        medoids = new
    model = KMedoids(4, metric="precomputed", method="alternate", init=[0, 1, 2, 3]).fit(D)
    assert model.medoid_indices_.tolist() == medoids
    swaps = KMedoids(4, metric="precomputed", init=[0, 1, 2, 3]).fit(D)
    assert swaps.inertia_ <= model.inertia_


def test_build_is_that_of_the_definition():
    X = rows(50, 2)
    D, w = cdist(X, X), np.random.default_rng(3).integers(1, 4, 50).astype(float)
    chosen = []
    for _ in range(5):
        chosen.append(int(np.argmin([loss_of(D, [*chosen, j], w) for j in range(50)])))
    assert kernels.build(D.reshape(-1), w, 5).tolist() == chosen


def test_rows_drawn_far_apart_are_different_and_far():
    X = np.vstack([np.tile([[0.0, 0]], (50, 1)), np.tile([[9.0, 0]], (50, 1)), [[0.0, 9]]])
    D = cdist(X, X)
    for seed in range(20):
        index = far_apart(np.ones(101), 3, np.random.default_rng(seed), lambda some: D[:, some], distinct=True)
        assert len({tuple(X[i]) for i in index}) == 3
    none = np.zeros((9, 9))
    same = far_apart(np.ones(9), 5, np.random.default_rng(0), lambda some: none[:, some], distinct=True)
    assert len(set(same.tolist())) == 5


@pytest.mark.parametrize("init", ["k-medoids++", "build", "random"])
def test_every_start_ends_where_no_swap_helps(init):
    X = rows(120, 3)
    model = KMedoids(5, init=init, random_state=0).fit(X)
    again = KMedoids(5, init=model.medoid_indices_, random_state=1).fit(X)
    assert again.inertia_ == pytest.approx(model.inertia_, rel=1e-6)
    assert model.result_ == "converged"
    assert np.diff([s.objective for s in model.trace_]).max(initial=0) <= 0


def test_one_cluster_is_the_row_with_the_least_sum():
    X = rows(50, 3)
    assert KMedoids(1).fit(X).medoid_indices_[0] == cdist(X, X).sum(axis=0).argmin()


def test_medoids_resist_rows_far_away():
    model, X, found = KMedoids.example(np.random.default_rng(3))
    found(model.fit(X))  # asserts that the planted medoids were found


def test_missing_cells_are_left_out_as_nan_euclidean_does():
    X = rows(100, 5)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[7] = np.nan
    some = ~np.isnan(X).all(axis=1)
    model = KMedoids(4, random_state=0).fit(X)
    assert 7 not in model.medoid_indices_
    np.testing.assert_array_equal(model.cluster_centers_, X[model.medoid_indices_])
    D = pairwise_distances(X[some], model.cluster_centers_, metric="nan_euclidean")
    shared = ~np.isnan(D)
    np.testing.assert_allclose(model.transform(X[some])[shared], D[shared], rtol=1e-6, atol=1e-7)
    assert (model.transform(X[7:8]) == 0).all()
    with pytest.raises(ValueError, match=r"contains NaN, and metric='manhattan' needs every cell"):
        KMedoids(4, metric="manhattan").fit(X)
    fitted = KMedoids(4, metric="manhattan").fit(rows(100, 5))
    with pytest.raises(ValueError, match="needs every cell"):
        fitted.predict(X)


def test_rows_that_share_no_cell_are_as_far_as_rows_are_on_average():
    X = rows(400, 4)
    X[0, :2], X[1, 2:] = np.nan, np.nan
    far = KMedoids(2, random_state=0).fit(X)._parts_.frame.far
    pairs = cdist(X[2:], X[2:])
    assert far == pytest.approx(np.sqrt((pairs**2).mean()), rel=0.02)
    X = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 5.0]])
    model = KMedoids(3, random_state=0).fit(X)
    first, second = (list(model.medoid_indices_).index(i) for i in (0, 1))
    apart = model.transform(X)
    assert apart[0, second] == apart[1, first] == pytest.approx(np.sqrt(2 * (1 + 2.25)))
    assert apart[0, first] == apart[1, second] == 0


def test_samples_where_the_matrix_does_not_fit():
    rng = np.random.default_rng(0)
    truth = 10 * rng.standard_normal((5, 3))
    X = truth[rng.integers(5, size=3000)] + rng.standard_normal((3000, 3))
    whole = KMedoids(5, random_state=0).fit(X)
    with unmix.config(memory_budget=200_000), pytest.warns(ConvergenceWarning, match="5 samples of 223 rows"):
        sampled = KMedoids(5, random_state=0).fit(X)
    assert whole.inertia_ <= sampled.inertia_ < 1.05 * whole.inertia_
    assert sampled.inertia_ == pytest.approx(cdist(X, X[sampled.medoid_indices_]).min(axis=1).sum())
    assert sampled.trace_[-1].objective == pytest.approx(sampled.inertia_ / 3000)
    first = sampled.medoid_indices_
    with unmix.config(memory_budget=200_000), pytest.warns(ConvergenceWarning, match="samples"):
        again = KMedoids(5, init=first, random_state=5).fit(X)
    assert again.inertia_ <= sampled.inertia_ * (1 + 1e-9)
    with unmix.config(memory_budget=10_000), pytest.raises(MemoryError, match=r"n_clusters=40.*memory_budget"):
        KMedoids(40).fit(X)


def test_the_matrix_is_not_made_where_it_does_not_fit(monkeypatch):
    largest = 0
    empty = np.empty

    def watched(shape, *args, **more):
        nonlocal largest
        out = empty(shape, *args, **more)
        largest = max(largest, out.nbytes)
        return out

    monkeypatch.setattr(np, "empty", watched)
    with unmix.config(memory_budget=1_000_000), pytest.warns(ConvergenceWarning, match="samples"):
        KMedoids(3, random_state=0).fit(rows(2000, 2))
    assert largest <= 1_000_000


@pytest.mark.parametrize("factor", [1e-150, 1e-20, 1.0, 1e20, 1e100])
def test_any_scale_and_origin(factor):
    X = rows(200, 3)
    truth = KMedoids(4, n_init=10, random_state=0).fit(X)
    scaled = KMedoids(4, n_init=10, random_state=0).fit(X * factor)
    assert scaled.inertia_ == pytest.approx(truth.inertia_ * factor, rel=1e-6)
    moved = KMedoids(4, n_init=10, random_state=0).fit(X + 1e6)
    assert moved.inertia_ == pytest.approx(truth.inertia_, rel=1e-6)
    city = KMedoids(4, metric="manhattan", n_init=10, random_state=0)
    assert city.fit(X * factor).inertia_ == pytest.approx(factor * city.fit(X).inertia_, rel=1e-6)


def test_fewer_different_rows_than_clusters():
    X = np.repeat(rows(3, 2), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 distinct rows for 4 clusters"):
        model = KMedoids(4, random_state=0).fit(X)
    assert model.inertia_ < 1e-6
    assert np.array_equal(X[model.medoid_indices_], model.cluster_centers_)
    same = KMedoids(3, metric="cosine", random_state=0).fit(np.outer(np.arange(1.0, 9), [1, 2]))
    assert same.inertia_ < 1e-9


def test_an_end_before_the_optimum_is_told():
    X = rows(400, 6)
    with pytest.warns(ConvergenceWarning, match="not converged after 1 round: raise max_iter"):
        model = KMedoids(20, init="random", max_iter=1, random_state=0).fit(X)
    assert model.result_ == "max_iter"
    assert len(model.trace_) == model.n_iter_ == 1
    more = KMedoids(20, init="random", random_state=0).fit(X)
    assert len(more.trace_) == more.n_iter_ > 1
    assert more.trace_[0].objective == model.trace_[0].objective > model.inertia_ / 400 > more.inertia_ / 400
    assert more.trace_[-1].objective == pytest.approx(more.inertia_ / 400, rel=1e-6)  # the last round changed nothing


def test_errors_name_argument_value_and_remedy():
    X = rows(20, 3)
    with pytest.raises(ValueError, match=r"square matrix of distances, not 20 × 3"):
        KMedoids(2, metric="precomputed").fit(X)
    with pytest.raises(ValueError, match=r"symmetric.*\(X \+ X\.T\) / 2"):
        KMedoids(2, metric="precomputed").fit(np.random.default_rng(0).random((20, 20)))
    with pytest.raises(ValueError, match=r"init=\[0, 0\].*different rows from 0 to 19"):
        KMedoids(2, init=[0, 0]).fit(X)
    with pytest.raises(ValueError, match=r"init=\[0, 20\]"):
        KMedoids(2, init=[0, 20]).fit(X)
    with pytest.raises(ValueError, match="give 2 row indices"):
        KMedoids(2, init=X[:2]).fit(X)
    with pytest.raises(ValueError, match=r"'metric' parameter of KMedoids.*'nearness'"):
        KMedoids(2, metric="nearness").fit(X)
    with pytest.raises(ValueError, match=r"metric='correlation' gives nan"):
        KMedoids(2, metric="correlation").fit(np.vstack([X, np.ones((1, 3))]))
    with pytest.raises(ValueError, match=r"metric_params has 'foo', but metric='euclidean' takes none"):
        KMedoids(2, metric_params={"foo": 3}).fit(X)
    with pytest.raises(ValueError, match=r"metric_params has 'q', but metric='minkowski' takes p and w"):
        KMedoids(2, metric="minkowski", metric_params={"q": 3}).fit(X)
    with pytest.raises(ValueError, match="weight 0"):
        KMedoids(2, metric="precomputed", init=[0, 1]).fit(cdist(X, X), sample_weight=np.arange(20.0))


def test_single_precision_distances_cost_nothing():
    """The loss of swaps on float32 distances beside that on float64 distances from the same start, same order."""
    for seed in range(3):
        X = rows(600, 8, seed)
        D, w = cdist(X, X), np.ones(600)
        first = np.random.default_rng(seed).choice(600, 15, replace=False)
        single, double = first.astype(np.int64), first.astype(np.int64)
        fasterpam(D.astype(np.float32), w, single)
        fasterpam(D, w, double)
        assert loss_of(D, single) <= loss_of(D, double) * (1 + 1e-6)


def test_negative_distances_are_refused_and_rounding_is_not():
    X = rows(30, 3)
    D = cdist(X, X)
    D[4, 11] = D[11, 4] = -0.5
    with pytest.raises(ValueError, match=r"distance of rows 4 and 11 is -0\.5.*0 or more"):
        KMedoids(3, metric="precomputed", random_state=0).fit(D)
    w = np.ones(30)
    w[:4] = 0
    with pytest.raises(ValueError, match="rows 4 and 11"):
        KMedoids(3, metric="precomputed", random_state=0).fit(D, sample_weight=w)
    w[4] = 0
    model = KMedoids(3, metric="precomputed", random_state=0).fit(D, sample_weight=w)
    new = np.ones((2, 30))
    new[1, model.medoid_indices_[2]] = -1
    with pytest.raises(ValueError, match=f"rows 1 and {model.medoid_indices_[2]} is -1"):
        model.predict(new)
    with pytest.raises(ValueError, match=r"gives -\d.* for the rows .*0 or more"):
        KMedoids(3, metric=lambda a, b: a @ b, random_state=0).fit(X)
    length = np.linalg.norm(X, axis=1)
    cosine = 1 - (X / length[:, None]) @ (X / length[:, None]).T
    assert cosine.min() < 0
    near = KMedoids(3, metric="precomputed", random_state=0).fit(cosine)
    assert near.inertia_ == pytest.approx(cosine[:, near.medoid_indices_].min(axis=1).sum())


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("method", ["fasterpam", "alternate"])
@pytest.mark.parametrize("far", [1e7, 1e8, 1e10])
def test_clusters_far_apart_keep_their_digits(far, method, missing):
    """Each cluster's medoid is then the row with the least sum within it, and the loss is the sum of the two."""
    X = rows(101, 2, 5)
    X[60:] += far
    D = cdist(X, X)
    if missing:
        seen = np.ones(X.shape, bool)
        seen[::7, 0] = False
        X[~seen] = np.nan
        common = seen.astype(float) @ seen.T
        D = np.sqrt(np.nansum((X[:, None] - X) ** 2, axis=2) * 2 / common)
    best = D[:60, :60].sum(axis=0).min() + D[60:, 60:].sum(axis=0).min()
    model = KMedoids(2, method=method, random_state=0).fit(X)
    near = D[:, model.medoid_indices_]
    assert model.inertia_ == pytest.approx(near.min(axis=1).sum(), rel=1e-12)
    assert model.inertia_ == pytest.approx(best, rel=1e-6)
    assert np.array_equal(model.labels_, near.argmin(axis=1))
    np.testing.assert_allclose(model.transform(X), near, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("far", [0.0, 1e8])
@pytest.mark.parametrize(("n", "K", "d"), [(7, 3, 1), (40, 16, 5), (33, 50, 17)])
def test_distances_are_those_of_differences(n, K, d, far):
    X, Y = rows(n, d, 1), rows(K, d, 2)
    X[::2] += far
    Y[::2] += far
    seen, known = (np.random.default_rng(i).random(v.shape) < 0.7 for i, v in enumerate((X, Y)))
    np.testing.assert_allclose(differences(X, Y), cdist(X, Y, "sqeuclidean"), rtol=1e-14)
    shown = (((X[:, None] - Y) ** 2) * (seen[:, None] & known)).sum(axis=2)
    np.testing.assert_allclose(differences(X, Y, seen, known), shown, rtol=1e-14)
    at, out = 4, np.zeros((n + 4, n + 4), np.float32)
    own = (X**2).sum(axis=1)
    kernels.roots((-2 * X @ X.T).reshape(-1), X.reshape(-1), own, X.reshape(-1), own, d, out.reshape(-1), at)
    np.testing.assert_allclose(out[at:, at:], cdist(X, X), rtol=1e-6)
    assert not out[:at].any()
    assert not out[:, :at].any()


def test_a_swap_whose_gain_is_rounding_is_taken_back():
    """Where second medoids are 1e16 times as far, gains drown in rounding: the loss must not rise, and rounds end."""
    for seed in range(10):
        X = rows(60, 2, seed)
        X[30:] += 1e3
        D = cdist(X, X)
        D[:30, 30:] *= 1e14
        D[30:, :30] *= 1e14
        found = np.array([3, 40])
        losses, settled = fasterpam(D, np.ones(60), found)
        assert settled
        assert (np.diff(losses) <= 0).all()
        assert losses[-1] == pytest.approx(loss_of(D, found))


@pytest.mark.parametrize("blank", [False, True])
def test_equal_rows_are_one_row_however_much_a_column_dwarfs_the_others(blank):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        small = np.c_[np.zeros(60), rng.integers(0, 12, 60), rng.integers(0, 2, 60)].astype(float)
        if blank:
            small[rng.random(60) < 0.2, 2] = np.nan
        large = small + np.array([1e17, 0, 0])
        plain = KMedoids(4, init=[0, 1, 2, 3]).fit(small)
        assert KMedoids(4, init=[0, 1, 2, 3]).fit(large).inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
        one, two = (KMedoids(4, random_state=0).fit(large[rng.permutation(60)]).inertia_ for _ in range(2))
        assert one == pytest.approx(two, rel=1e-9)
