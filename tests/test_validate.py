"""Validation of clusterings: against scikit-learn, brute force, hand examples and planted groups."""

import sys
from itertools import combinations, permutations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, pairwise_distances, silhouette_samples
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unmix
from unmix.engine.sources import as_source
from unmix.kernels.silhouette import add_both, add_distances
from unmix.validate import clustering_distance, match, silhouette, stability, variation
from unmix.validate.clusterings import deviations


def blobs(n=600, d=3, K=4, seed=0, apart=2.0):
    rng = np.random.default_rng(seed)
    labels = np.append(np.arange(K), rng.integers(K, size=n - K))
    return apart * rng.standard_normal((K, d))[labels] + rng.standard_normal((n, d)), labels


def corners(seed=0, each=60):
    """Three tight groups, as far from each other."""
    rng = np.random.default_rng(seed)
    centers = 10 * np.eye(3)
    return np.repeat(centers, each, axis=0) + rng.standard_normal((3 * each, 3)), np.repeat(np.arange(3), each)


# ------------------------------------------------------------------------------------------- silhouette


@pytest.mark.parametrize(("n", "d", "K"), [(700, 1, 2), (1000, 5, 3), (1301, 16, 10), (900, 33, 90), (50, 4, 20)])
def test_silhouette_is_scikit_learns(n, d, K):
    X, labels = blobs(n, d, K)
    theirs = silhouette_samples(X, labels)
    found = silhouette(X, labels, per_row=True)
    np.testing.assert_allclose(found.per_row, theirs, rtol=0, atol=1e-12)
    assert found.score == pytest.approx(theirs.mean(), abs=1e-12)
    assert found.se == 0
    np.testing.assert_allclose(found.per_cluster, [theirs[labels == k].mean() for k in range(K)], atol=1e-12)
    assert found.clusters.tolist() == list(range(K))
    assert silhouette(X, labels).per_row is None


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "sqeuclidean", "chebyshev", "l2"])
def test_silhouette_of_other_metrics(metric):
    X, labels = blobs()
    found = silhouette(X, labels, metric=metric, per_row=True).per_row
    np.testing.assert_allclose(found, silhouette_samples(X, labels, metric=metric), rtol=0, atol=1e-12)


def test_silhouette_of_given_distances_and_of_a_function():
    X, labels = blobs(80)
    D = pairwise_distances(X, metric="manhattan")
    expected = silhouette_samples(X, labels, metric="manhattan")
    for x, metric in ((D, "precomputed"), (sp.csr_array(D), "precomputed"), (X, lambda a, b: np.abs(a - b).sum())):
        np.testing.assert_allclose(silhouette(x, labels, metric=metric, per_row=True).per_row, expected, atol=1e-12)
    some = silhouette(D, labels, metric="precomputed", sample=20, random_state=0, per_row=True).per_row
    assert np.isnan(some).sum() == 60
    np.testing.assert_allclose(some[~np.isnan(some)], expected[~np.isnan(some)], atol=1e-12)


def test_silhouette_by_hand():
    found = silhouette([[0.0], [1.0], [10.0], [11.0], [30.0]], list("aabbc"), per_row=True)
    b = [10.5, 9.5, 9.5, 10.5]
    np.testing.assert_allclose(found.per_row, [*((v - 1) / v for v in b), 0.0], rtol=1e-14)
    assert found.clusters.tolist() == ["a", "b", "c"]
    assert found.per_cluster[2] == 0  # a cluster of one row
    assert silhouette(np.ones((4, 2)), [0, 0, 1, 1]).score == 0  # all rows alike: 0/0


def test_kernels_are_their_numpy_twin():
    rng = np.random.default_rng(0)
    counts, d = [7, 40, 16, 100], 5
    starts = np.concatenate([[0], np.cumsum([-(-c // 16) for c in counts])])
    P, K = int(starts[-1]), len(counts)
    y, w = np.zeros((16 * P, d)), np.zeros(16 * P)
    for c, s in zip(counts, starts, strict=False):
        y[16 * s : 16 * s + c], w[16 * s : 16 * s + c] = rng.standard_normal((c, d)), rng.uniform(0, 3, c)
    code = np.repeat(np.arange(K), 16 * np.diff(starts))
    D = np.sqrt(((y[:, None] - y) ** 2).sum(axis=2)) * w
    twin = np.stack([D[:, code == k].sum(axis=1) for k in range(K)], axis=1)
    columns = y.reshape(P, 16, d).transpose(0, 2, 1).ravel()
    for edges in ([0, P], [0, 3, 4, P]):
        sums = np.zeros(P * K * 16)
        for i, j in combinations(range(len(edges)), 2):
            if i < len(edges) - 1:
                mine, theirs = edges[i : i + 2], edges[j - 1 : j + 1]
                add_both(columns, y.ravel(), d, w, starts, *mine, *theirs, sums)
        np.testing.assert_allclose(sums.reshape(P, K, 16).transpose(0, 2, 1).reshape(-1, K), twin, rtol=1e-13)
    sums = np.zeros(P * K * 16)
    add_distances(columns, 0, P, y.ravel(), d, w, 16 * starts, sums)
    np.testing.assert_allclose(sums.reshape(P, K, 16).transpose(0, 2, 1).reshape(-1, K), twin, rtol=1e-13)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("K", [3, 60])
def test_silhouette_weight_two_is_the_row_twice(metric, K):
    X, labels = blobs(500, K=K)
    w = np.random.default_rng(1).integers(0, 4, len(X))
    a = silhouette(X, labels, metric=metric, sample_weight=w, per_row=True)
    b = silhouette(X.repeat(w, axis=0), labels.repeat(w), metric=metric, per_row=True)
    assert a.score == pytest.approx(b.score, abs=1e-12)
    np.testing.assert_allclose(a.per_row.repeat(w), b.per_row, atol=1e-12)
    np.testing.assert_allclose(a.per_cluster, b.per_cluster, atol=1e-12)
    assert np.isnan(a.per_row[w == 0]).all()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("K", [3, 60])
def test_silhouette_of_weights_below_one(K, missing):
    """Such a row is itself whole, so that shares may have any scale; by loops."""
    X, labels = blobs(300, K=K)
    if missing:
        X[np.random.default_rng(3).random(X.shape) < 0.05] = np.nan
    plain = silhouette(X, labels, per_row=True)
    for w in (0.01, 1 / 300, 1e-9):
        found = silhouette(X, labels, sample_weight=np.full(300, w), per_row=True)
        np.testing.assert_allclose(found.per_row, plain.per_row, atol=1e-9)
        assert found.score == pytest.approx(plain.score)
    w, D, expected = np.random.default_rng(4).uniform(0, 2.5, 300), nan_euclidean_distances(X), np.zeros(300)
    for i in range(300):
        left = w * ~np.isnan(D[i])
        left[i] = max(0.0, w[i] - 1)
        means = [np.average(np.nan_to_num(D[i][labels == k]), weights=left[labels == k]) if left[labels == k].any() else
                 np.nan for k in range(K)]  # fmt: skip
        a, b = means[labels[i]], np.nanmin(np.delete(means, labels[i]))
        expected[i] = 0.0 if np.isnan(a) and (labels == labels[i]).sum() == 1 else (b - a) / max(a, b)
    found = silhouette(X, labels, sample_weight=w, per_row=True)
    np.testing.assert_allclose(found.per_row, expected, atol=1e-9)
    assert found.score == pytest.approx(np.nansum(w * expected) / w[~np.isnan(expected)].sum())


def test_silhouette_of_two_rows():
    for labels in ([0, 0], [0, 1]):
        with pytest.raises(ValueError, match=r"one cluster|each alone"):
            silhouette([[0.0], [1.0]], labels)
    assert silhouette([[0.0], [1.0]], [0, 1], sample_weight=[2, 2]).score == 1  # four rows
    assert silhouette([[0.0], [1.0], [5.0]], [0, 0, 1], sample_weight=[0.1, 0.1, 0.1]).score == pytest.approx(1.55 / 3)


def test_silhouette_over_observed_cells():
    X, labels = blobs(200, d=3)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    X[5] = np.nan
    assert np.isnan(nan_euclidean_distances(np.delete(X, 5, axis=0))).any()  # some pairs share no cell
    D = nan_euclidean_distances(X)
    expected = np.full(len(X), np.nan)
    for i in np.flatnonzero(~np.isnan(X).all(axis=1)):
        other = np.arange(len(X)) != i
        rows = [D[i, other & (labels == k) & ~np.isnan(D[i])] for k in range(4)]
        means = [r.mean() if r.size else np.inf for r in rows]
        a, b = means[labels[i]], min(np.delete(means, labels[i]))
        assert np.isfinite([a, b]).all()
        expected[i] = (b - a) / max(a, b)
    found = silhouette(X, labels, per_row=True)
    np.testing.assert_allclose(found.per_row, expected, atol=1e-12)
    assert found.score == pytest.approx(np.nanmean(expected))


def test_silhouette_sample_is_unbiased_and_knows_its_error():
    X, labels = blobs(400)
    exact = silhouette(X, labels, per_row=True)
    one = silhouette(X, labels, sample=50, random_state=3, per_row=True)
    drawn = ~np.isnan(one.per_row)
    assert drawn.sum() == 50
    np.testing.assert_allclose(one.per_row[drawn], exact.per_row[drawn], atol=1e-12)  # against all rows
    assert one.score == silhouette(X, labels, sample=50, random_state=3).score
    w = np.where(exact.per_row > exact.score, 8.0, 1.0)  # heavy rows are unlike the others
    for weights, m in ((None, 300), (w, 50)):
        truth = silhouette(X, labels, sample_weight=weights).score
        runs = [silhouette(X, labels, sample=m, random_state=i, sample_weight=weights) for i in range(300)]
        scores, errors = np.array([(r.score, r.se) for r in runs]).T
        assert abs(scores.mean() - truth) < 4 * scores.std() / np.sqrt(300)
        assert np.sqrt((errors**2).mean()) == pytest.approx(scores.std(), rel=0.15)
    assert silhouette(X, labels, sample=400).se == 0


def test_silhouette_of_every_source(tmp_path):
    X, labels = blobs(3000, K=5)
    expected = silhouette(X, labels, per_row=True).per_row
    np.save(tmp_path / "x.npy", X)
    for x in (
        sp.csr_array(X),
        tmp_path / "x.npy",
        X.tolist(),
        lambda: iter(np.array_split(X, 7)),
        np.asfortranarray(X),
    ):
        np.testing.assert_allclose(silhouette(x, labels, per_row=True).per_row, expected, atol=1e-12)
    single = silhouette(X.astype(np.float32), labels, per_row=True).per_row
    np.testing.assert_allclose(single, silhouette(X.astype(np.float32).astype(float), labels, per_row=True).per_row)


def test_silhouette_in_little_memory_is_the_same(monkeypatch):
    X, labels = blobs(3000, K=5)
    expected = silhouette(X, labels, per_row=True).per_row
    monkeypatch.setattr("unmix.validate.clusterings.PIECE", 5000)
    monkeypatch.setattr(sys.modules["unmix.validate.silhouette"], "CELLS", 7000)
    with unmix.config(memory_budget=1):
        for x, metric in ((X, "euclidean"), (lambda: iter([X]), "euclidean"), (sp.csr_array(X), "euclidean")):
            np.testing.assert_allclose(silhouette(x, labels, metric=metric, per_row=True).per_row, expected, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("K", [5, 200])
def test_silhouette_has_the_same_bits_on_any_number_of_threads(metric, K):
    X, labels = blobs(6000 if metric == "euclidean" else 1500, K=K)
    found = []
    for jobs in (1, 2, 5):
        with unmix.config(n_jobs=jobs):
            found.append(silhouette(X, labels, metric=metric, per_row=True).per_row)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e-310])
def test_silhouette_at_any_scale(scale):
    X, labels = blobs(400)
    rtol = 1e-12 if scale > 1e-300 else 1e-8  # numbers that small have few digits
    np.testing.assert_allclose(silhouette(X * scale, labels).score, silhouette(X, labels).score, rtol=rtol)


def test_silhouette_far_from_the_origin():
    X, labels = blobs(400)
    X = np.round(X * 1024) / 1024
    assert silhouette(X + 2.0**30, labels).score == pytest.approx(silhouette(X, labels).score, abs=1e-14)


def test_silhouette_changes_nothing():
    X, labels = blobs(400)
    before = X.copy(), labels.copy()
    for metric in ("euclidean", "manhattan"):
        silhouette(X, labels, metric=metric, sample_weight=np.ones(400))
    D = pairwise_distances(X)
    right = silhouette(D, labels, metric="precomputed").score
    np.fill_diagonal(D, 1.0)  # no row is a distance from itself
    assert silhouette(D, labels, metric="precomputed").score == right
    assert D[0, 0] == 1.0
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(labels, before[1])


@pytest.mark.parametrize(
    ("x", "labels", "options", "words"),
    [
        (np.eye(4), [0, 0, 0, 0], {}, "one cluster"),
        (np.eye(4), [0, 1, 2, 3], {}, "each alone"),
        (np.eye(4), [0, 0, 1], {}, "3 entries, but X has 4 rows"),
        (np.eye(4), np.zeros((4, 2)), {}, "one label per row"),
        (np.eye(4), [0, np.nan, 1, 1], {}, "every row needs a label"),
        (np.eye(4), ["a", None, "b", "b"], {}, "NoneType"),
        (np.eye(4), np.array(["a", 1, "b", "b"], object), {}, "int among"),
        (np.eye(4), np.array(["a", np.nan, "b", "b"], object), {}, "float among"),
        (np.eye(4), [0, 1, 2, 3], {"sample_weight": np.full(4, 0.25)}, "each alone"),
        (np.eye(4), [0, 0, 1, 1], {"sample": 1}, "sample=1"),
        (np.eye(4), [0, 0, 1, 1], {"sample": 2.5}, "sample=2.5"),
        (np.eye(4), [0, 0, 1, 1], {"sample_weight": [1, 1, -1, 1]}, "not negative"),
        (np.eye(4), [0, 0, 1, 1], {"sample_weight": [1, 1]}, "one weight per row"),
        (np.eye(4), [0, 0, 1, 1], {"sample_weight": np.zeros(4)}, "at least one"),
        (np.eye(4), [0, 0, 1, 1], {"sample_weight": [1, 1, 0, 0]}, "one cluster"),
        (np.eye(4)[:, :3], [0, 0, 1, 1], {"metric": "precomputed"}, "4 × 3"),
        (-np.eye(4), [0, 0, 1, 1], {"metric": "precomputed"}, "Negative"),
        (np.diag([1, 1, np.inf, 1]), [0, 0, 1, 1], {}, "row 2, column 2 holds inf"),
        (np.diag([1, 1, np.nan, 1]), [0, 0, 1, 1], {"metric": "manhattan"}, "row 2, column 2 holds nan"),
        (np.full((4, 2), np.nan), [0, 0, 1, 1], {}, "nothing can be scored"),
        (np.eye(4), [0, 0, 1, 1], {"metric": "no such"}, "no such"),
    ],
)
def test_silhouette_says_what_is_wrong(x, labels, options, words):
    with pytest.raises(ValueError, match=words):
        silhouette(x, labels, **options)


# ------------------------------------------------------------------------------------------- variation


def test_variation_by_hand():
    v = variation([[0.0], [2.0], [10.0], [12.0]], ["b", "b", "a", "a"])
    assert (v.within, v.between, v.total) == (1, 25, 26)
    assert v.centers.tolist() == [[11], [1]]
    assert v.calinski_harabasz == 50
    assert v.davies_bouldin == pytest.approx(0.2)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_variation_is_scikit_learns(offset, monkeypatch):
    monkeypatch.setattr("unmix.validate.clusterings.PIECE", 4000)
    X, labels = blobs(500)
    X += offset
    v = variation(X, labels)
    rtol = 1e-12 if not offset else 1e-8
    assert v.total == pytest.approx(X.var(axis=0).sum(), rel=rtol)
    centers = np.array([X[labels == k].mean(axis=0) for k in range(4)])
    assert v.within == pytest.approx(((X - centers[labels]) ** 2).sum() / 500, rel=rtol)
    assert v.within + v.between == v.total
    assert v.calinski_harabasz == pytest.approx(calinski_harabasz_score(X, labels), rel=rtol)
    assert v.davies_bouldin == pytest.approx(davies_bouldin_score(X, labels), rel=1e-9 if not offset else 1e-5)
    np.testing.assert_allclose(v.centers, centers)
    for other in (sp.csr_array(X), lambda: iter(np.array_split(X, 7))):
        assert variation(other, labels)[:5] == pytest.approx(v[:5], rel=1e-12)


def test_variation_of_weighted_rows():
    X, labels = blobs(300)
    w = np.random.default_rng(1).integers(0, 4, 300)
    a, b = variation(X, labels, sample_weight=w), variation(X.repeat(w, axis=0), labels.repeat(w))
    assert a[:5] == pytest.approx(b[:5], rel=1e-12)
    X[w == 0] = np.nan  # rows that do not count may hold anything
    assert variation(X, labels, sample_weight=w)[:5] == pytest.approx(b[:5], rel=1e-12)


def test_variation_over_observed_cells():
    X, labels = blobs(300)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    v = variation(X, labels)
    assert v.total == pytest.approx(np.nanvar(X, axis=0).sum(), rel=1e-12)
    within = sum(np.nansum((X[labels == k] - np.nanmean(X[labels == k], axis=0)) ** 2, axis=0) for k in range(4)) / (
        ~np.isnan(X)
    ).sum(axis=0)
    assert v.within == pytest.approx(within.sum(), rel=1e-12)
    X[:, 1] = np.nan
    assert np.isfinite(variation(X, labels)[:5]).all()
    with pytest.raises(ValueError, match="no observed cell"):
        variation(np.full((4, 2), np.nan), [0, 0, 1, 1])


def test_variation_of_extreme_clusterings():
    X, _ = blobs(20)
    single, each = variation(X, np.zeros(20)), variation(X, np.arange(20))
    assert single.within == single.total
    assert np.isnan([single.calinski_harabasz, single.davies_bouldin, each.calinski_harabasz]).all()
    assert each.within == 0
    exact = variation([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1])
    assert (exact.calinski_harabasz, exact.davies_bouldin) == (np.inf, 0)
    assert variation([[0.0], [2.0], [0.0], [2.0]], [0, 0, 1, 1]).davies_bouldin == np.inf  # the same centre


# ------------------------------------------------------------------------------------------- two clusterings


def test_distance_is_the_least_over_all_relabellings():
    rng = np.random.default_rng(0)
    for _ in range(60):
        K, n = int(rng.integers(1, 6)), int(rng.integers(1, 30))
        a, b, w = rng.integers(K, size=n), rng.integers(K, size=n), rng.integers(0, 3, n)
        w[0] += 1
        for weights in (None, w):
            wanted = min(np.average(a != np.array(p)[b], weights=weights) for p in permutations(range(K)))
            assert clustering_distance(a, b, sample_weight=weights) == pytest.approx(wanted, abs=1e-15)
            assert clustering_distance(b, a, sample_weight=weights) == pytest.approx(wanted, abs=1e-15)
        found = match(a, b)
        moved = np.array([-7 if found[v] is None else found[v] for v in b])
        assert np.mean(moved != a) == pytest.approx(clustering_distance(a, b), abs=1e-15)
        kept = [v for v in found.values() if v is not None]
        assert len(kept) == len(set(kept))


def test_distance_by_hand():
    assert clustering_distance([0, 0, 1, 1], ["b", "b", "a", "a"]) == 0
    assert clustering_distance([0, 0, 0, 0], [0, 0, 1, 1]) == 0.5
    assert clustering_distance([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0]) == pytest.approx(4 / 6)
    assert match([0, 0, 0, 0], [5, 5, 5, 6]) == {5: 0, 6: None}
    assert match(["x", "x", "y"], [1, 1, 0]) == {0: "y", 1: "x"}


def test_noise_agrees_with_noise_alone():
    a, b = [-1, -1, 0, 0, 1], [-1, 1, 1, 1, 0]
    assert clustering_distance(a, b) == pytest.approx(1 / 5)
    assert clustering_distance([-1, -1, 0], [0, 0, -1]) == 1
    assert clustering_distance([-1, -1, 0], [0, 0, -1], noise=None) == 0
    assert clustering_distance([-1, -1], [-1, -1]) == 0
    assert clustering_distance(["out", "x"], ["out", "out"], noise="out") == 0.5
    assert match(a, b) == {0: 1, 1: 0}


def test_distance_says_what_is_wrong():
    with pytest.raises(ValueError, match="3 labels and b 2"):
        clustering_distance([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="at least one"):
        clustering_distance([], [])
    with pytest.raises(ValueError, match="b holds nan"):
        match([0, 1], [0, np.nan])
    with unmix.config(memory_budget=1000), pytest.raises(MemoryError, match="100 by 100"):
        clustering_distance(range(100), range(100))


# ------------------------------------------------------------------------------------------- stability


class Known(BaseEstimator):
    """Labels by the first column, some of which are wrong by chance."""

    def __init__(self, wrong=0.0, K=2, random_state=None):
        self.wrong, self.K, self.random_state = wrong, K, random_state

    def fit(self, X, y=None):
        assert isinstance(self.random_state, int)
        self.rng_ = np.random.default_rng(self.random_state)
        return self

    def predict(self, X):
        labels = X[:, 0].astype(int) % self.K
        return np.where(self.rng_.random(len(X)) < self.wrong, self.rng_.integers(self.K, size=len(X)), labels)


@pytest.mark.parametrize("options", [{}, {"noise": 0.3}, {"fraction": 0.5}, {"method": "transfer"}])
@pytest.mark.parametrize("make", [unmix.KMeans, TheirKMeans])
def test_planted_groups_are_stable_at_their_number_alone(options, make):
    X, _ = corners()
    found = {K: stability(make(K, n_init=1 if K == 5 else 10), X, n=8, random_state=0, **options) for K in (2, 3, 5)}
    assert found[3].score == 1
    assert (found[3].r, found[3].se) == (0, 0)
    assert found[5].score + 4 * found[5].se < 1
    assert found[5].n_clusters == 5
    assert found[2].score + 2 * found[2].se < 1  # two of three groups are joined, now these, now those
    for f in found.values():
        assert f.score == pytest.approx(1 - f.r / f.r_rand)
        assert f.adjusted <= f.score + 0.05
        assert f.r_rand == (f.n_clusters - 1) / f.n_clusters


@pytest.mark.parametrize("method", ["pairs", "transfer"])
def test_stability_of_known_labels(method):
    X = np.arange(4000.0)[:, None]
    same = stability(Known(), X, method=method, n=6, random_state=0)
    assert (same.score, same.adjusted, same.r, same.se) == (1, 1, 0, 0)
    random = stability(Known(1.0, 4), X, method=method, n=6, random_state=0)
    assert random.r == pytest.approx(0.75, abs=0.04)
    assert random.r_shuffled == pytest.approx(random.r, abs=0.02)
    assert abs(random.score) < 0.06
    assert abs(random.adjusted) < 0.03
    # Two labellings of which each is right with probability 1 − w/2 differ with probability w − w²/2.
    w = 0.2
    some = stability(Known(w), X, method=method, n=6, random_state=0)
    assert some.r == pytest.approx(w - w * w / 2, abs=0.015)
    assert some.score == pytest.approx(1 - 2 * (w - w * w / 2), abs=0.03)
    assert len(some.runs) == (15 if method == "pairs" else 6)


def test_chance_depends_on_the_sizes_of_the_clusters():
    class Rare(Known):
        def predict(self, X):
            return (X[:, 0] >= 950).astype(int)

    found = stability(Rare(), np.arange(1000.0)[:, None], n=5, random_state=0)
    assert found.r_rand == 0.5
    assert found.r_shuffled == pytest.approx(2 * 0.05 * 0.95, abs=0.02)


def test_standard_error_of_pairs_is_the_jackknifes():
    X, _ = blobs(200, apart=1.0)
    found = stability(unmix.KMeans(4, n_init=1), X, n=7, random_state=1)
    pairs = list(combinations(range(7), 2))
    left = [np.mean([r for r, p in zip(found.runs, pairs, strict=True) if i not in p]) for i in range(7)]
    assert found.r_se == pytest.approx(np.sqrt(6 / 7 * ((left - np.mean(left)) ** 2).sum()))
    assert found.r_se > 0
    assert found.se == pytest.approx(found.r_se / found.r_rand)
    assert found.r == pytest.approx(found.runs.mean())


@pytest.mark.slow
def test_standard_error_tells_how_scores_scatter():
    X, _ = blobs(120, apart=1.0)
    for method in ("pairs", "transfer"):
        runs = [stability(TheirKMeans(4, n_init=1), X, method=method, n=8, random_state=i, n_jobs=1) for i in range(20)]
        scatter, said = np.std([r.score for r in runs]), np.mean([r.se for r in runs])
        assert 0.5 < said / scatter < 2.5


@pytest.mark.parametrize("method", ["pairs", "transfer"])
@pytest.mark.parametrize("make", [unmix.KMeans, unmix.GaussianMixture, TheirKMeans])
def test_stability_does_not_depend_on_threads(method, make):
    X, _ = blobs(200, apart=1.0)
    found = [stability(make(4, n_init=1), X, method=method, n=5, random_state=2, n_jobs=j) for j in (1, 2, 5, None)]
    assert all(f[:8] == found[0][:8] for f in found)
    assert all((f.runs == found[0].runs).all() for f in found)
    assert found[0].r > 0


def test_stability_of_models_without_predict_of_pipelines_and_of_noise():
    X, _ = corners()
    for method in ("pairs", "transfer"):
        for model in (
            AgglomerativeClustering(3),
            make_pipeline(StandardScaler(), TheirKMeans(3, n_init=10)),
            unmix.GaussianMixture(3),
        ):
            assert stability(model, X, method=method, n=4, random_state=0).score == 1
    assert stability(DBSCAN(eps=3), X, n=4, random_state=0).score > 0.9


@pytest.mark.parametrize("method", ["pairs", "transfer"])
def test_stability_of_matrices_of_pairs(method):
    X, _ = corners()
    D = pairwise_distances(X)
    for K in (3, 5):  # the same rows are drawn, so the same medoids are found
        wanted = stability(unmix.KMedoids(K), X, method=method, n=5, random_state=0)
        found = stability(unmix.KMedoids(K, metric="precomputed"), D, method=method, n=5, random_state=0)
        assert found.n_clusters == K
        assert (found.score == 1) == (wanted.score == 1) == (K == 3)
    kernel = unmix.KernelKMeans(3, kernel="precomputed", n_init=5)
    assert stability(kernel, np.exp(-(D**2) / 20), method=method, n=5, random_state=0).score == 1
    tree = AgglomerativeClustering(3, metric="precomputed", linkage="average")
    if method == "pairs":
        assert stability(tree, D, n=5, random_state=0).score == 1
        return
    for model, options, words in (
        (tree, {"method": "transfer"}, "AgglomerativeClustering has no predict"),
        (kernel, {"noise": 0.1}, "noise=0.1 cannot be added to the matrix"),
    ):
        with pytest.raises(ValueError, match=words):
            stability(model, D, n=5, **options)
    with pytest.raises(ValueError, match=r"KernelKMeans takes a precomputed matrix .* 180 × 3"):
        stability(kernel, X, n=5)


def test_stability_of_every_source_and_with_missing_cells(tmp_path):
    X, _ = corners()
    np.save(tmp_path / "x.npy", X)
    expected = stability(unmix.KMeans(5), X, n=4, random_state=0)
    for x in (tmp_path / "x.npy", lambda: iter(np.array_split(X, 4))):
        assert stability(unmix.KMeans(5), x, n=4, random_state=0)[:8] == expected[:8]
    assert stability(unmix.KMeans(3), sp.csr_array(X), n=4, random_state=0).score == 1
    X[::7, 1] = np.nan
    assert stability(unmix.KMeans(3), X, n=4, noise=0.1, random_state=0).score > 0.95


@pytest.mark.parametrize("method", ["pairs", "transfer"])
def test_every_fit_has_a_random_state_of_its_own(method):
    seen = []

    class Seeded(Known):
        def fit(self, X, y=None):
            seen.append(self.random_state)
            return super().fit(X)

    for _ in range(2):
        stability(Seeded(random_state=3), np.arange(40.0)[:, None], method=method, n=4, random_state=0, n_jobs=1)
    half = len(seen) // 2
    assert len(set(seen[:half])) == half == (4 if method == "pairs" else 8)
    assert seen[:half] == seen[half:]


def test_deviations_of_columns_block_by_block(monkeypatch):
    monkeypatch.setattr("unmix.validate.clusterings.PIECE", 1000)
    X, labels = blobs(300)
    X = X[np.argsort(labels)] + 1e6
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    np.testing.assert_allclose(deviations(as_source(X)), np.nanstd(X, axis=0), rtol=1e-9)


def test_a_single_pair_has_no_standard_error():
    X = np.arange(40.0)[:, None]
    assert np.isnan(stability(Known(0.5), X, n=2, random_state=0).se)


def test_a_single_cluster_says_nothing():
    found = stability(Known(K=1), np.arange(20.0)[:, None], n=3, random_state=0)
    assert np.isnan([found.score, found.se, found.adjusted]).all()
    assert found.n_clusters == 1


def test_stability_leaves_the_model_alone():
    X, _ = corners()
    model = unmix.KMeans(3, random_state=5)
    stability(model, X, n=3, random_state=0)
    assert model.random_state == 5
    assert not hasattr(model, "cluster_centers_")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "both"}, "method='both'"),
        ({"n": 1}, "n=1"),
        ({"fraction": 0}, "fraction=0"),
        ({"fraction": 1.5}, "fraction=1.5"),
        ({"fraction": 0.7, "method": "transfer"}, "at most 0.5"),
        ({"noise": -1}, "noise=-1"),
        ({"noise": 0.1, "method": "transfer"}, "method='pairs'"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"fraction": 0.01}, "share no row"),
    ],
)
def test_stability_says_what_is_wrong(options, words):
    with pytest.raises(ValueError, match=words):
        stability(Known(), np.arange(100.0)[:, None], random_state=0, **options)


def test_stability_needs_rows_and_labels():
    with pytest.raises(TypeError, match="StandardScaler has neither"):
        stability(StandardScaler(), np.eye(9))
    with pytest.raises(ValueError, match="at least 4"):
        stability(Known(), np.eye(3))
    with pytest.raises(ValueError, match="sparse"):
        stability(Known(), sp.csr_array(np.eye(9)), noise=0.1)
