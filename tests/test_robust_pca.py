"""Robust PCA against planted truths, an independent solver with plain SVDs, and a linear programme."""

import warnings

import numpy as np
import pytest
from scipy.io import loadmat
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import unmix
from unmix import RobustPCA
from unmix.kernels.robust_split import split
from unmix.linear import _least_absolute


def candes(n, corrupted, seed=0):
    """The set-up of Candès et al. (2011), Table 1: rank n/20, factors N(0, 1/n), wrong cells ±1."""
    rng = np.random.default_rng(seed)
    rank = n // 20
    low = rng.normal(0, n**-0.5, (n, rank)) @ rng.normal(0, n**-0.5, (n, rank)).T
    wrong = np.zeros(n * n)
    wrong[rng.choice(n * n, int(corrupted * n * n), replace=False)] = 1
    wrong *= rng.choice([-1.0, 1.0], n * n)
    return low + wrong.reshape(n, n), low, wrong.reshape(n, n)


def planted(n, d, rank, corrupted=0.05, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    wrong = np.where(rng.random((n, d)) < corrupted, rng.choice([-10.0, 10.0], (n, d)), 0.0)
    return low + wrong + noise * rng.normal(size=(n, d)), low


@threadpool_limits.wrap(limits=1)
def admm(X, mu, tol=1e-9, seen=None):
    """The same problem, solved slowly: fixed penalty, plain SVDs, S and Y kept as they are in the textbook."""
    lam = 1 / np.sqrt(max(X.shape))
    L, Y = np.zeros_like(X), np.zeros_like(X)
    for _ in range(2000):
        T = X - L + Y / mu
        S = np.sign(T) * np.maximum(np.abs(T) - lam / mu, 0)
        if seen is not None:
            S = np.where(seen, S, T)
        before = L
        u, s, vt = np.linalg.svd(X - S + Y / mu, full_matrices=False)
        s = np.maximum(s - 1 / mu, 0)
        L = (u * s) @ vt
        R = X - L - S
        Y = Y + mu * R
        if np.linalg.norm(R) + np.linalg.norm(L - before) < tol * np.linalg.norm(X):
            return L, s[s > 0]
    raise AssertionError("the reference did not converge")


def error(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize(
    ("n", "corrupted"),
    [(500, 0.05), (500, 0.1), *(pytest.param(1000, c, marks=pytest.mark.slow) for c in (0.05, 0.1))],
)
def test_table_1_of_candes(n, corrupted):
    X, low, wrong = candes(n, corrupted)
    model = RobustPCA(random_state=0).fit(X)
    assert model.result_ == "converged"
    assert model.rank_ == model.n_components_ == n // 20
    assert model.singular_values_.min() > 0.1 * model.singular_values_.max()  # none of them is noise
    assert error(model.low_rank_, low) < 3e-6
    assert np.array_equal(model.sparse_ != 0, wrong != 0)
    assert np.linalg.norm(X - model.low_rank_ - model.sparse_) < 2e-7 * np.linalg.norm(X)
    assert model.lambda_ == pytest.approx(n**-0.5)


def test_the_parts_are_the_svd_of_the_low_rank_part():
    X, _ = planted(150, 100, 6)
    model = RobustPCA(random_state=0).fit(X)
    _, s, vt = np.linalg.svd(model.low_rank_)
    np.testing.assert_allclose(model.singular_values_, s[:6], rtol=1e-6)
    vt = vt[:6] * np.sign(vt[np.arange(6), np.abs(vt[:6]).argmax(axis=1)])[:, None]
    np.testing.assert_allclose(model.components_, vt, atol=1e-6)


@pytest.mark.parametrize("shape", [(80, 70), (50, 90), (150, 30)])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_optimum_is_that_of_the_textbook_iteration(shape, noise):
    # with noise nothing is recovered exactly, so only a solver that really minimises agrees
    X, _ = planted(*shape, 3, noise=noise)
    L, s = admm(X, mu=0.1 if noise == 0 else 0.5)
    model = RobustPCA(random_state=0, max_iter=3000, tol=1e-8).fit(X)
    assert model.result_ == "converged"
    assert model.rank_ == len(s)
    assert error(model.low_rank_, L) < 1e-5
    objective = model.singular_values_.sum() + model.lambda_ * np.abs(model.sparse_).sum()
    assert model.trace_[-1].objective * len(X) == pytest.approx(objective, rel=1e-4)
    assert objective == pytest.approx(s.sum() + np.abs(X - L).sum() / np.sqrt(max(shape)), rel=1e-6)


def test_data_that_are_no_low_rank_plus_sparse_reach_the_optimum_too():
    X = np.random.default_rng(0).normal(size=(80, 70))
    model = RobustPCA(random_state=0).fit(X)
    L, s = admm(X, mu=0.15)
    assert model.result_ == "converged"
    assert model.rank_ == len(s)
    assert error(model.low_rank_, L) < 1e-5


def test_outliers_of_any_size_cost_no_more_passes():
    X, low = planted(200, 150, 5)
    model = RobustPCA(random_state=0).fit(low + 1000 * (X - low))
    assert error(model.low_rank_, low) < 1e-4
    assert model.n_iter_ < 40


def test_cells_that_were_not_observed_are_completed():
    X, low = planted(200, 150, 5)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    model = RobustPCA(random_state=0).fit(holes)
    assert model.rank_ == 5
    assert error(model.low_rank_, low) < 1e-5
    assert (model.sparse_[np.isnan(holes)] == 0).all()
    noisy, _ = planted(60, 40, 2, noise=0.05)
    seen = np.random.default_rng(2).random(noisy.shape) > 0.1
    L, _ = admm(np.where(seen, noisy, 0.0), mu=0.3, seen=seen)
    model = RobustPCA(random_state=0, tol=1e-8, max_iter=3000).fit(np.where(seen, noisy, np.nan))
    assert error(model.low_rank_, L) < 1e-5


@pytest.mark.parametrize("d", [40, 90])  # the whole Gram matrix, and a basis of directions
def test_a_row_of_weight_two_is_the_row_twice_in_every_pass(d):
    X, _ = planted(100, d, 3, noise=0.05)
    w = np.random.default_rng(1).integers(0, 3, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sixty passes are too few
        weighted = RobustPCA(random_state=0, max_iter=60).fit(X, sample_weight=w)
        repeated = RobustPCA(random_state=0, max_iter=60).fit(np.repeat(X, w, axis=0))
    one, two = (np.array([t.objective for t in m.trace_]) for m in (weighted, repeated))
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert weighted.lambda_ == repeated.lambda_ == pytest.approx(max(w.sum(), d) ** -0.5)
    np.testing.assert_allclose(np.repeat(weighted.low_rank_, w, axis=0), repeated.low_rank_, atol=1e-7)


def test_new_rows_give_their_scores_through_corruption_and_holes():
    X, low = planted(400, 120, 5)
    model = RobustPCA(random_state=0).fit(X[:300])
    truth = low[300:] @ model.components_.T
    Z = model.transform(X[300:])
    np.testing.assert_allclose(Z, truth, atol=1e-4)
    np.testing.assert_allclose(model.inverse_transform(Z), low[300:], atol=1e-4)
    np.testing.assert_allclose(model.fit_transform(X[:300]), model.low_rank_ @ model.components_.T, atol=1e-4)
    assert model.score(X[300:]) == pytest.approx(-model.lambda_ * np.abs(X[300:] - low[300:]).sum() / 100, rel=1e-5)
    plain = np.abs(X[300:] @ model.components_.T - truth).max()
    assert plain > 1  # a projection without the sparse residual is far off
    holes = np.where(np.random.default_rng(1).random(X[300:].shape) < 0.2, np.nan, X[300:])
    np.testing.assert_allclose(model.transform(holes), truth, atol=1e-4)
    holes[0] = np.nan
    assert (model.transform(holes)[0] == 0).all()


def least_absolute(x, V):
    """‖x − cV‖₁ at its minimum, by a linear programme."""
    x, V = x[~np.isnan(x)], V[:, ~np.isnan(x)]
    k, d = V.shape
    return linprog(
        np.r_[np.zeros(k), np.ones(2 * d)],
        A_eq=np.c_[V.T, np.eye(d), -np.eye(d)],
        b_eq=x,
        bounds=[(None, None)] * k + [(0, None)] * 2 * d,
    ).fun


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [12, 60])
def test_scores_are_least_absolute_deviations(d, dtype):
    X, _ = planted(300, d, 4)
    model = RobustPCA(random_state=0).fit(X)
    V, rng = model.components_, np.random.default_rng(1)
    noise, exact = rng.normal(size=(40, d)), rng.normal(size=(40, len(V))) @ V
    wrong = exact.copy()
    wrong[np.arange(40), rng.integers(0, d, 40)] += 20
    holes = [np.where(rng.random(x.shape) < p, np.nan, x) for x, p in ((noise, 0.5), (exact, 0.3), (wrong, 0.3))]
    rows = np.concatenate([noise, np.rint(noise), wrong, *holes])
    rows = rows[~np.isnan(rows).all(axis=1)].astype(dtype)
    size = np.nansum(np.abs(rows), axis=1)
    left = np.nansum(np.abs(rows - model.inverse_transform(model.transform(rows))), axis=1)
    excess = (left - [least_absolute(x, V) for x in rows.astype(float)]) / size
    assert np.abs(excess).max() < (1e-6 if dtype == np.float64 else 1e-5)


def test_scores_do_not_depend_on_how_far_off_a_cell_is():
    """A cell beyond the fit may move away without limit: the sign of its residual is all that counts."""
    X, _ = planted(300, 60, 3)
    model, rows = RobustPCA(random_state=0).fit(X), np.random.default_rng(1).normal(size=(40, 60))
    near, far = (model.transform(rows + np.where(np.arange(60) < 2, off, 0.0)) for off in (1e3, 1e9))
    np.testing.assert_allclose(far, near, atol=1e-4)


def test_rows_whose_scores_were_not_found_are_counted_in_a_warning(monkeypatch):
    X, _ = planted(150, 60, 4)
    model = RobustPCA(random_state=0).fit(X)
    monkeypatch.setattr(_least_absolute, "NEWTON_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"scores of 7 rows are rough"):
        model.transform(np.concatenate([np.random.default_rng(1).normal(size=(7, 60)), np.zeros((2, 60))]))


def test_float32():
    X, low = planted(300, 200, 8)
    model = RobustPCA(random_state=0).fit(X.astype(np.float32))
    assert model.result_ == "converged"
    assert model.low_rank_.dtype == model.sparse_.dtype == model.components_.dtype == np.float32
    assert model.rank_ == 8
    assert error(model.low_rank_, low) < 1e-5


def test_streamed_rows_give_the_same_components():
    X, _ = planted(300, 100, 4)
    whole = RobustPCA(random_state=0).fit(X)
    with unmix.config(block_rows=64, memory_budget=1000):  # z goes to disk
        streamed = RobustPCA(random_state=0).fit(lambda: iter(np.array_split(X, 7)))
    np.testing.assert_allclose(streamed.components_, whole.components_, atol=1e-6)
    assert not hasattr(streamed, "low_rank_")


def test_the_rank_may_be_capped_and_may_grow_beyond_the_first_guess():
    X, low = planted(300, 200, 40, corrupted=0.02)
    model = RobustPCA(random_state=0).fit(X)
    assert model.rank_ == 40
    assert error(model.low_rank_, low) < 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thirty passes are too few
        capped = RobustPCA(5, random_state=0, max_iter=30).fit(X)
    assert capped.rank_ == 5
    assert capped.components_.shape == (5, 200)
    with pytest.raises(ValueError, match=r"n_components=201.*at most 200"):
        RobustPCA(201).fit(X)


def test_a_fixed_penalty_and_a_given_lambda():
    X, _ = planted(100, 80, 3)
    default = RobustPCA(random_state=0).fit(X)
    fixed = RobustPCA(random_state=0, mu=0.05, lam=0.1).fit(X)
    assert fixed._parts_.mu * fixed._parts_.unit == 0.05
    assert fixed.lambda_ == default.lambda_ == pytest.approx(0.1)
    assert error(fixed.low_rank_, default.low_rank_) < 1e-5
    assert RobustPCA(lam=1e-3).fit(X).rank_ == 0  # everything is sparse
    everything = RobustPCA(lam=10.0).fit(X)
    assert error(everything.low_rank_, X) < 1e-6
    assert (everything.sparse_ == 0).all()


@pytest.mark.parametrize(
    ("X", "rank"),
    [
        (np.zeros((20, 10)), 0),
        (np.full((20, 10), 3.0), 1),
        (np.arange(10.0)[None], None),
        (np.arange(10.0)[:, None], None),
        (np.outer(np.arange(1.0, 101), np.ones(80)), 1),
        (np.repeat(np.eye(4), 25, axis=0) @ np.random.default_rng(0).normal(size=(4, 90)), 4),
        (np.full((20, 10), 3e8), 1),
        (np.full((100, 70), 3e-8), 1),
    ],
)
def test_hostile_input(X, rank):
    model = RobustPCA(random_state=0).fit(X)
    assert model.result_ == "converged"
    assert np.linalg.norm(X - model.low_rank_ - model.sparse_) <= 1e-6 * np.linalg.norm(X)
    assert np.isfinite(model.transform(X)).all()
    if rank is not None:
        assert model.rank_ == rank
        np.testing.assert_allclose(model.low_rank_, X, atol=1e-5 * np.abs(X).max())


def test_no_online_fit():
    assert not hasattr(RobustPCA(), "partial_fit")
    assert "dual variables" in RobustPCA.exempt["online"]


def test_the_kernel_is_its_equations():
    rng = np.random.default_rng(0)
    x, m, low = rng.normal(size=(3, 7, 13))
    seen = rng.random(x.shape) < 0.7
    ratio, cut = rng.uniform(0.5, 1, 7), rng.uniform(0.2, 1, 7)
    for mask in (seen, np.empty((0, 0), bool)):
        y = (m - low) * ratio[:, None]
        t = x - low + y
        c = np.clip(t, -cut[:, None], cut[:, None])
        s = t - c
        if len(mask):
            c, s = np.where(seen, c, 0), np.where(seen, s, 0)
        new, sparse = low.copy(), np.empty_like(x)
        sums = split(x / 4, 4.0, mask, m, ratio, cut, 1.3, new, sparse)
        np.testing.assert_allclose(new, low + y + 1.3 * (c - y), atol=1e-14)
        np.testing.assert_allclose(4 * sparse, s, atol=1e-14)
        left = np.where(seen, x - low, 0) if len(mask) else x - low
        expected = [((c - y) ** 2).sum(1), (y**2).sum(1), (x**2).sum(1), np.abs(left).sum(1)]
        np.testing.assert_allclose(sums, np.transpose(expected), rtol=1e-12)


@pytest.mark.parametrize(
    ("seed", "scaled", "bound"),
    [(0, False, 396.745344), (1, False, 386.211941), (2, False, 418.077669), (0, True, 5015.79385)],
)
def test_tall_tables_and_columns_of_any_scale_reach_the_optimum(seed, scaled, bound):
    # ⟨Y, X⟩ of a Y with ‖Y‖₂ ≤ 1 and |Y| ≤ λ bounds the minimum from below: the best of 25,000 steps of the textbook
    X, _ = planted(300, 20, 3, seed=seed)
    if scaled:
        X = X * 10 ** np.random.default_rng(0).uniform(-2, 2, 20)
    model = RobustPCA(random_state=0).fit(X)
    assert model.result_ == "converged"
    assert scaled or model.rank_ == 3
    objective = model.singular_values_.sum() + model.lambda_ * np.abs(X - model.low_rank_).sum()
    assert 0 <= objective / bound - 1 < 5e-7


@pytest.mark.parametrize(
    ("c", "dtype"),
    [(c, np.float64) for c in (1e-200, 1e-6, 3.0, 1e6, 1e155)] + [(c, np.float32) for c in (1e-36, 1e-24, 1e18, 1e35)],
)
def test_the_unit_of_the_data_does_not_matter(c, dtype):
    X, _ = planted(120, 30, 3, noise=0.05 if dtype == np.float64 else 0.0)
    scaled = (c * X).astype(dtype)
    one, other = RobustPCA(random_state=0).fit(X.astype(dtype)), RobustPCA(random_state=0).fit(scaled)
    assert other.result_ == "converged"
    assert other.rank_ == one.rank_
    if dtype == np.float64:
        assert other.n_iter_ == one.n_iter_
    atol = 1e-6 if dtype == np.float64 else 1e-4
    for name in ("low_rank_", "sparse_", "singular_values_"):
        np.testing.assert_allclose(getattr(other, name) / c, getattr(one, name), atol=atol)
    np.testing.assert_allclose(other.trace_[-1].objective / c, one.trace_[-1].objective, rtol=1e-5)
    assert error(other.low_rank_ / c + other.sparse_ / c, scaled / c) < 1e-6
    np.testing.assert_allclose(other.transform(scaled) / c, one.transform(X.astype(dtype)), atol=1e-4)
    np.testing.assert_allclose(other.score(scaled) / c, one.score(X.astype(dtype)), rtol=1e-5)


def test_a_fit_without_a_part_gives_the_centre_back():
    X = np.random.default_rng(0).normal(size=(40, 1)) ** 2
    model = RobustPCA().fit(np.zeros((40, 3)))
    assert model.transform(np.ones((4, 3))).shape == (4, 0)
    np.testing.assert_array_equal(model.inverse_transform(np.ones((4, 0))), np.zeros((4, 3)))
    assert unmix.select(RobustPCA(), X, [1], random_state=0).k == 1


@pytest.mark.parametrize(("dtype", "tiny"), [(np.float64, 1e-300), (np.float32, 1e-30)])
def test_scores_of_a_row_whose_cells_differ_by_all_orders_of_magnitude(dtype, tiny):
    X = np.array([[1.0, 0, 1, 0], [1e12, 0, 1, tiny]], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rough scores
        model = RobustPCA(1, max_iter=5).fit(X)
        scores = model.transform(X)
    assert np.isfinite(scores).all()
    assert np.isfinite(model.inverse_transform(scores)).all()


@pytest.mark.slow
def test_people_are_parted_from_an_escalator(data_folder):
    film = loadmat(data_folder / "escalator-video" / "escalator_data.mat")["X"].astype(np.float32)
    model = RobustPCA(tol=1e-3, random_state=0).fit(film)
    assert model.result_ == "converged"
    assert 60 < model.rank_ < 100
    assert 0.02 < (np.abs(model.sparse_) > 25).mean() < 0.04

    def walker(frames, t):  # where somebody stands in frame 90, and nobody in frame 190
        return frames[:, t].reshape(160, 130).T[33:50, 82:92]

    empty = walker(film, 190)
    assert np.abs(walker(film, 90) - empty).mean() > 40
    assert np.abs(walker(model.low_rank_, 90) - empty).mean() < 10
    assert np.abs(walker(model.low_rank_, 190) - empty).mean() < 3
