"""NMF against scikit-learn, SciPy's NNLS, and NumPy twins of its kernels."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment, minimize, nnls
from sklearn.base import clone
from sklearn.decomposition import NMF as Peer
from sklearn.decomposition._nmf import _beta_divergence

from unmix import NMF, config, select
from unmix.engine import tree
from unmix.engine.block import Block
from unmix.kernels.nmf_csr import NONZEROS_PER_TILE, TILE, add_transposed_times, times
from unmix.kernels.nmf_hals import hals, masked_hals, residual
from unmix.kernels.nmf_kl import kl_rows
from unmix.model import fit_together
from unmix.nonneg import _arithmetic
from unmix.nonneg._arithmetic import own_grams, relaxed
from unmix.nonneg._beta import Beta
from unmix.nonneg._hals import paced
from unmix.nonneg._method import Effort, make_parts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few passes on purpose
KL = {"beta_loss": "kullback-leibler", "solver": "mu"}
KINDS = [{}, {"solver": "mu"}, KL]


def planted(n=150, d=20, k=3, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    U = rng.gamma(2.0, 1.0, (k, d)) * (rng.random((k, d)) < 0.5)
    Z = rng.gamma(1.0, 1.0, (n, k)) * (rng.random((n, k)) < 0.7)
    return np.maximum(0, Z @ U + noise * rng.standard_normal((n, d))), Z, U


def divergence(X, Y):
    """Kullback–Leibler, cell by cell."""
    return np.where(X > 0, X * np.log(np.where(X > 0, X, 1) / np.maximum(Y, 1e-300)), 0) - X + Y


def penalised(X, W, H, alpha_W, alpha_H, ratio, kl):
    """scikit-learn's objective, written out."""
    n, d = X.shape
    fit = divergence(X, W @ H).sum() if kl else 0.5 * ((X - W @ H) ** 2).sum()
    fit += d * alpha_W * (ratio * W.sum() + 0.5 * (1 - ratio) * (W**2).sum())
    return fit + n * alpha_H * (ratio * H.sum() + 0.5 * (1 - ratio) * (H**2).sum())


def likeness(H, U):
    """Least cosine between the planted parts and those found, matched one to one."""
    cos = (H / np.linalg.norm(H, axis=1, keepdims=True)) @ (U / np.linalg.norm(U, axis=1, keepdims=True)).T
    return cos[linear_sum_assignment(-cos)].min()


# -------------------------------------------------------------------- the objective


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("penalty", [{}, {"alpha_W": 0.02, "alpha_H": 0.03, "l1_ratio": 0.4}], ids=["free", "penalty"])
@pytest.mark.parametrize("data", ["dense", "csr", "nan", "sparse nan"])
def test_the_objective_never_rises(kind, penalty, data):
    X, _, _ = planted()
    holes = np.random.default_rng(1).random(X.shape) < {"nan": 0.3, "sparse nan": 0.85}.get(data, 0)
    X = sp.csr_array(X) if data == "csr" else np.where(holes, np.nan, X)
    model = NMF(4, init="random", random_state=0, tol=0, max_iter=40, **kind, **penalty).fit(X)
    objective = np.array([s.objective for s in model.trace_])
    assert (np.diff(objective) <= 1e-10 * objective[:-1]).all()
    assert objective[-1] < 0.9 * objective[0]


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
def test_as_good_as_scikit_learn_at_convergence(kind):
    X, _, _ = planted(noise=0.5)
    ours = [NMF(4, init="random", random_state=s, tol=1e-6, max_iter=500, **kind).fit(X) for s in range(3)]
    peer = [Peer(4, init="random", random_state=s, tol=1e-6, max_iter=500, **kind).fit(X) for s in range(3)]
    best = min(p.reconstruction_err_ for p in peer)
    assert min(m.reconstruction_err_ for m in ours) <= best * 1.0005
    default = NMF(4, random_state=0, **kind).fit(X).reconstruction_err_
    assert default <= Peer(4, random_state=0, **kind).fit(X).reconstruction_err_ * 1.003


def test_no_part_is_lost_to_the_first_guess():
    X, _, _ = planted(n=60, d=12)
    penalty = {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": 0.5}
    fits = [NMF(3, init="random", random_state=s, tol=1e-6, **penalty).fit(X) for s in range(8)]
    objective = [m.trace_[-1].objective for m in fits]
    assert max(objective) < 1.01 * min(objective)


@pytest.mark.parametrize("kl", [False, True])
def test_penalties_mean_what_scikit_learn_means(kl):
    X, _, _ = planted(n=60, d=12)
    penalty = {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": 0.5}
    kind = KL if kl else {}
    model = NMF(3, init="random", random_state=0, tol=1e-8, max_iter=1000, **kind, **penalty).fit(X)
    peer = Peer(3, init="random", random_state=0, tol=1e-8, max_iter=1000, **kind, **penalty)
    W = peer.fit_transform(X)
    ours = penalised(X, model.transform(X), model.components_, 0.01, 0.02, 0.5, kl)
    theirs = penalised(X, W, peer.components_, 0.01, 0.02, 0.5, kl)
    assert ours == pytest.approx(theirs, rel=5e-3)
    assert model.trace_[-1].objective * len(X) == pytest.approx(ours, rel=1e-4)
    error = divergence(X, model.transform(X) @ model.components_).sum() if kl else None
    error = np.sqrt(2 * error) if kl else np.linalg.norm(X - model.transform(X) @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
def test_published_numbers_agree(kind):
    X, _, _ = planted()
    model = NMF(3, random_state=0, tol=1e-6, max_iter=400, **kind).fit(X)
    Z = model.transform(X)
    Y = model.inverse_transform(Z)
    np.testing.assert_allclose(Y, Z @ model.components_)
    error = np.sqrt(2 * divergence(X, Y).sum()) if kind == KL else np.linalg.norm(X - Y)
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-3)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    assert model.n_components_ == 3
    assert (Z >= 0).all()
    assert (model.components_ >= 0).all()
    assert model.kkt_residual_ < 0.01
    np.testing.assert_allclose(NMF(3, random_state=0, tol=1e-6, max_iter=400, **kind).fit_transform(X), Z)


LOSSES = [*KINDS, {"beta_loss": 1.5}, {"alpha_W": 0.02}, {"alpha_W": 0.01, **KL}, {"alpha_H": 0.1}]


@pytest.mark.parametrize("rows", ["dense", "csr", "holes", "stream", "weighted", "float32"])
@pytest.mark.parametrize("kind", LOSSES, ids=str)
def test_the_error_is_that_of_what_is_returned(kind, rows):
    """As scikit-learn defines it: of the observed cells, each as often as its row counts."""
    X, w = planted(noise=0.5)[0] + 0.1, None
    if rows == "holes":
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    if rows == "weighted":
        w = np.arange(len(X)) % 4
    others = {"csr": sp.csr_array(X), "stream": lambda: iter(np.array_split(X, 3)), "float32": X.astype(np.float32)}
    model = NMF(3, random_state=0, max_iter=30, **kind)
    Z = model.fit_transform(others.get(rows, X), sample_weight=w)
    error = model.reconstruction_err_
    times = np.isfinite(X) * (1 if w is None else w[:, None])
    x, y = (np.repeat(a[times > 0], times[times > 0])[:, None] for a in (X, Z.astype(float) @ model.components_))
    beta = 1 if kind.get("solver") == "mu" and "beta_loss" in kind else kind.get("beta_loss", 2)
    truth = _beta_divergence(x, y, np.ones((1, 1)), beta, square_root=True)
    assert error == pytest.approx(truth, rel=1e-5 if rows == "float32" else 1e-9)
    np.testing.assert_array_equal(model.fit(others.get(rows, X), sample_weight=w).transform(others.get(rows, X)), Z)
    assert model.reconstruction_err_ == error


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_a_tolerance_a_fit_goes_on_until_it_is_stationary(dtype):
    """Not until the objective no longer falls: rounding decides when, and the parts then have half of their digits."""
    X = np.abs(np.random.RandomState(42).randn(10, 10)).astype(dtype)
    X[:, ::2] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NMF(5, init="random", random_state=0, tol=0, max_iter=300)
        dense, sparse = (clone(model).fit(x) for x in (X, sp.csr_array(X)))
        assert NMF(5, tol=0, max_iter=3, random_state=0).fit(X).n_iter_ == 3
    assert dense.result_ == sparse.result_ == "converged"
    assert max(dense.kkt_residual_, sparse.kkt_residual_) < 10 * np.finfo(dtype).eps
    close = 1e-12 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(dense.components_, sparse.components_, rtol=close, atol=close * dense.components_.max())


def test_parts_are_stationary_at_the_end():
    X, _, _ = planted(noise=0.5)
    model = NMF(3, random_state=0, tol=1e-14, max_iter=3000).fit(X)
    H, W = model.components_, model.transform(X)
    slope = W.T @ (W @ H - X)
    scale = np.abs(W.T @ X).max()
    assert np.abs(slope[H > 1e-8]).max() < 1e-4 * scale
    assert slope[H <= 1e-8].min(initial=0) > -1e-4 * scale
    assert model.kkt_residual_ < 1e-4


@pytest.mark.parametrize("coupling", [0.1, 0.5, 0.9, 0.99])
def test_the_stretch_finds_a_good_pace(coupling):
    """Pairs of unknowns, each minimised in turn at the other: Young's best fixed over-relaxation is the truth."""
    c, x, y = np.sqrt(np.linspace(0.1, 1, 10) * coupling), np.ones(10), np.ones(10)
    stretch, sizes = 0.4, [np.sqrt(20)]
    for _ in range(30):
        x = x + (1 + stretch) * (c * y - x)
        y = y + (1 + stretch) * (c * x - y)
        sizes.append(np.linalg.norm([x, y]))
        stretch = paced(stretch, sizes[-1] / sizes[-2])
    best = 22 * np.log(2 / (1 + np.sqrt(1 - coupling)) - 1)
    assert np.log(sizes[30] / sizes[8]) < 0.45 * best  # 0.4 for good: 0.25 of it at 0.1, 0.12 at 0.99; 0: 0.07 at 0.99
    assert 0 <= stretch < 1


def test_restarts_keep_the_best():
    X, _, _ = planted(noise=0.5)
    many = NMF(6, n_init=6, random_state=3, tol=1e-6).fit(X).reconstruction_err_
    one = NMF(6, init="random", random_state=3, tol=1e-6).fit(X).reconstruction_err_  # the first of the six
    assert many < 0.995 * one


# -------------------------------------------------------------------- rows of new data


def test_transform_is_nnls():
    X, _, _ = planted(noise=0.5)
    model = NMF(4, random_state=0).fit(X)
    new = np.random.default_rng(3).gamma(1.0, 1.0, (40, X.shape[1]))
    truth = np.array([nnls(model.components_.T, row)[0] for row in new])
    scale = np.abs(truth).max()
    np.testing.assert_allclose(model.transform(new), truth, atol=1e-6 * scale)
    np.testing.assert_allclose(model.transform(sp.csr_array(new)), truth, atol=1e-6 * scale)
    np.testing.assert_allclose(model.transform(new.astype(np.float32)), truth, atol=1e-3 * scale)


def test_transform_of_rows_with_holes_is_nnls_on_what_is_there():
    X, _, _ = planted(noise=0.5)
    model = NMF(4, random_state=0).fit(X)
    new = np.random.default_rng(3).gamma(1.0, 1.0, (40, X.shape[1]))
    new[np.random.default_rng(4).random(new.shape) < 0.4] = np.nan
    new[7] = np.nan
    seen = ~np.isnan(new)
    H = model.components_.T
    truth = [nnls(H[s], r[s])[0] if s.any() else np.zeros(4) for r, s in zip(new, seen, strict=True)]
    np.testing.assert_allclose(model.transform(new), np.array(truth), atol=1e-6 * np.abs(truth).max())


@pytest.mark.parametrize("form", ["dense", "csr", "nan"])
def test_transform_minimises_the_divergence(form):
    X, _, _ = planted(noise=0.5)
    model = NMF(3, random_state=0, **KL).fit(X)
    new = np.random.default_rng(3).poisson(2.0, (6, X.shape[1])).astype(float)
    if form == "nan":
        new[np.random.default_rng(4).random(new.shape) < 0.3] = np.nan
    Z = model.transform(sp.csr_array(new) if form == "csr" else new)
    for x, z in zip(new, Z, strict=True):
        s, H = ~np.isnan(x), model.components_
        f = lambda a, s=s, H=H, x=x: divergence(x[s], a @ H[:, s] + 1e-12).sum()  # noqa: E731
        best = minimize(f, np.full(3, x[s].sum() / 3), bounds=[(0, None)] * 3, options={"ftol": 1e-14, "gtol": 1e-10})
        assert f(z) <= best.fun * (1 + 1e-5)


# -------------------------------------------------------------------- forms of the data


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
def test_csr_is_dense(kind):
    X, _, _ = planted()
    X[X < 0.5] = 0
    dense = NMF(3, random_state=0, **kind).fit(X)
    sparse = NMF(3, random_state=0, **kind).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-6)
    assert sparse.reconstruction_err_ == pytest.approx(dense.reconstruction_err_, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("form", ["dense", "csr", "nan"])
def test_weights_are_repeats(kind, form):
    X, _, _ = planted()
    if form == "nan":
        X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    w = np.random.default_rng(1).integers(0, 3, len(X))
    wrap = sp.csr_array if form == "csr" else np.asarray
    options = {"random_state": 0, "max_iter": 15, "tol": 0.0, "alpha_W": 0.01}
    weighted = NMF(3, **options, **kind).fit(wrap(X), sample_weight=w.astype(float))
    repeated = NMF(3, **options, **kind).fit(wrap(np.repeat(X, w, axis=0)))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-8)
    assert weighted.trace_[-1].objective == pytest.approx(repeated.trace_[-1].objective)


@pytest.mark.parametrize("kind", [{}, KL], ids=["hals", "kl"])
def test_float32(kind):
    X, _, U = planted()
    double = NMF(3, random_state=0, **kind).fit(X)
    for form in (np.asarray, sp.csr_array):
        single = NMF(3, random_state=0, **kind).fit(form(X.astype(np.float32)))
        assert single.components_.dtype == np.float32
        assert single.reconstruction_err_ == pytest.approx(double.reconstruction_err_, rel=1e-3)
        assert likeness(single.components_, U) > 0.97


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("init", [None, "random", "nndsvd", "nndsvdar"])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_measurement_does_not_matter(kind, init, scale):
    X, _, _ = planted(n=80)
    one = NMF(3, init=init, random_state=0, max_iter=30, **kind).fit(X)
    other = NMF(3, init=init, random_state=0, max_iter=30, **kind).fit(X * scale)
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_allclose(other.components_, one.components_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(other.transform(X * scale), one.transform(X) * scale, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("form", ["dense", "csr", "nan"])
@pytest.mark.parametrize(("scale", "dtype"), [(1e-25, "f"), (1e-38, "f"), (1e18, "f"), (1e150, "d"), (1e-150, "d")])
def test_the_range_of_the_data_does_not_matter(kind, form, scale, dtype, tmp_path):
    X, _, _ = planted(n=80)
    if form == "nan":
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    wrap = sp.csr_array if form == "csr" else np.asarray
    options = {"random_state": 0, "max_iter": 20, "tol": 0.0, **kind}
    one, other = NMF(3, **options).fit(X), NMF(3, **options).fit(wrap((X * scale).astype(dtype)))
    near = {"rtol": 2e-3, "atol": 2e-4}
    unit = np.sqrt(scale) if kind == KL else scale
    assert other.result_ == "max_iter"
    assert other.reconstruction_err_ / unit == pytest.approx(one.reconstruction_err_, rel=1e-3)
    np.testing.assert_allclose(other.components_, one.components_, **near)
    new = wrap((X * scale).astype(dtype))
    Z = other.transform(new).astype(float) / scale
    np.testing.assert_allclose(Z, one.transform(X), rtol=2e-3, atol=1e-4 * Z.max())
    Y = other.inverse_transform(other.transform(new)).astype(float) / scale
    np.testing.assert_allclose(Y, one.inverse_transform(one.transform(X)), rtol=2e-3, atol=2e-3)
    assert other.score(new) / unit**2 == pytest.approx(one.score(X), rel=1e-3)
    other.save(tmp_path / "nmf")
    again = NMF.load(tmp_path / "nmf").partial_fit(new, rate=1.0)
    np.testing.assert_allclose(again.components_, one.partial_fit(X, rate=1.0).components_, **near)


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("init", ["random", "custom"])
def test_penalties_are_in_the_units_of_the_user(kind, init):
    """For X → c² X the objective is c⁴ (c² for Kullback–Leibler) times as large at c Z, c U with these penalties."""
    X, _, U = planted(n=80)
    c = 1e-12
    options = {"init": init, "random_state": 0, "max_iter": 20, "tol": 0.0, **kind}
    for ratio in (0.0, 1.0):
        alpha = 0.01 * c ** (ratio if kind == KL else 2 + ratio)
        given = {"components_init": U + 0.1} if init == "custom" else {}
        tiny = {"components_init": c * (U + 0.1)} if init == "custom" else {}
        one = NMF(3, alpha_W=0.01, l1_ratio=ratio, **options, **given).fit(X)
        other = NMF(3, alpha_W=alpha, l1_ratio=ratio, **options, **tiny).fit((c**2 * X).astype(np.float32))
        np.testing.assert_allclose(other.components_ / c, one.components_, rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(other.transform(c**2 * X) / c, one.transform(X), rtol=2e-3, atol=2e-3)
        unit = c**2 if kind == KL else c**4
        assert other.trace_[-1].objective / unit == pytest.approx(one.trace_[-1].objective, rel=1e-3)


def test_data_whose_squares_leave_the_range_of_float64_are_refused():
    X, _, _ = planted(n=30)
    for scale in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"squared error is beyond.*multiply X by"):
            NMF(3).fit(scale * X)
        assert NMF(3, **KL, max_iter=3).fit(scale * X).reconstruction_err_ > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_float32_rows_that_fit_exactly(weighted):
    X, _, _ = planted(noise=0.0)
    X = X.astype(np.float32)
    w = np.random.default_rng(1).integers(1, 4, len(X)).astype(float) if weighted else None
    model = NMF(3, random_state=0, tol=0, max_iter=100).fit(sp.csr_array(X), sample_weight=w)

    def left(Z, H):
        return np.linalg.norm(
            (X - np.asarray(Z, float) @ np.asarray(H, float)) * np.sqrt(1 if w is None else w[:, None])
        )

    U = tree.settle(model.parts, np.float32)
    out = model.at(model.shape).local(U, Block(sp.csr_array(X), w))
    assert np.sqrt(2 * out.loss) == pytest.approx(left(out.z, U.scale * U.loads.T), rel=1e-5)
    truth = left(model.transform(sp.csr_array(X)), model.components_)
    assert truth < 1e-3 * np.linalg.norm(X)
    objective = np.array([s.objective for s in model.trace_])
    assert (np.diff(objective) <= 1e-2 * objective[:-1] + 1e-11 * objective[0]).all()
    assert model.reconstruction_err_ == pytest.approx(truth, rel=0.5)  # both are rounding, of a z of its own each


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_empty_rows_and_columns(kind, form):
    X, _, _ = planted(n=60)
    X[5] = 0
    X[:, 3] = 0
    model = NMF(3, random_state=0, tol=1e-6, max_iter=500, **kind).fit(form(X))
    Z = model.transform(form(X))
    assert np.isfinite(model.components_).all()
    assert np.abs(Z[5]).max() < 1e-10
    assert model.components_[:, 3].max() < 1e-4
    nothing = NMF(2, init="random", random_state=0, **kind).fit(form(np.zeros((8, 5))))
    assert np.isfinite(nothing.components_).all()
    assert nothing.reconstruction_err_ == pytest.approx(0, abs=1e-6)


# -------------------------------------------------------------------- missing cells


def test_a_third_of_the_cells_missing_is_better_left_out_than_filled():
    X, _, U = planted(n=300, d=30, k=4)
    holes = np.random.default_rng(1).random(X.shape) < 0.3
    seen = np.where(holes, np.nan, X)
    model = NMF(4, init="random", n_init=4, random_state=0, tol=1e-6, max_iter=1000).fit(seen)
    filled = np.where(holes, np.nanmean(seen, axis=0), X)
    peer = Peer(4, random_state=0, max_iter=1000, tol=1e-6).fit(filled)
    ours = np.linalg.norm((model.inverse_transform(model.transform(seen)) - X)[holes])
    theirs = np.linalg.norm((peer.transform(filled) @ peer.components_ - X)[holes])
    assert likeness(model.components_, U) > 0.99
    assert ours < 0.2 * theirs


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_alternating_nnls_on_observed_cells_finds_nothing_better(share):
    X, _, _ = planted(n=80, d=16, noise=0.3)
    seen = np.random.default_rng(1).random(X.shape) >= share
    model = NMF(3, random_state=0, tol=1e-8, max_iter=1500).fit(np.where(seen, X, np.nan))
    H = model.components_
    for _ in range(30):
        W = np.array([nnls(H.T[s], x[s])[0] for x, s in zip(X, seen, strict=True)])
        H = np.array([nnls(W[s], x[s])[0] for x, s in zip(X.T, seen.T, strict=True)]).T
    assert model.reconstruction_err_ <= np.linalg.norm((X - W @ H)[seen]) * 1.002


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
def test_masked_local_is_the_complete_one_on_observed_columns(kind):
    """A block whose last columns are unobserved has the z, loss and B of the block without these columns."""
    X, _, U = planted(n=30)
    model = NMF(3, **kind)
    H = np.ascontiguousarray(U.T) + 0.1
    seen = np.zeros(X.shape, bool)
    seen[:, :12] = True
    part = model.local(make_parts(H[:12].copy()), Block(X[:, :12].copy()))
    mask = model.local(make_parts(H), Block(np.where(seen, X, 0), observed=seen))
    np.testing.assert_allclose(mask.z, part.z, rtol=1e-6, atol=1e-9)
    assert mask.loss == pytest.approx(part.loss, rel=1e-8)
    np.testing.assert_allclose(mask.stats.B[:12], part.stats.B, rtol=1e-6, atol=1e-9)
    expected = (mask.z @ H.T).T @ mask.z if kind != KL else np.tile(mask.z.sum(axis=0), (len(H), 1))
    np.testing.assert_allclose(mask.stats.P, np.where(np.arange(20)[:, None] < 12, expected, 0), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("spread", [0, 3])
def test_the_objective_never_rises_on_rows_that_show_little(kind, dtype, spread):
    """Mostly zeros, half of them unobserved: z is huge where a row shows nothing of a part."""
    for seed in (22, 3, 5, 7):
        r = np.random.default_rng(seed)
        X = r.gamma(0.1, 1, (70, 14)) * (r.random((70, 14)) < 0.1) * np.exp(spread * r.standard_normal((70, 1)))
        X = np.where(r.random(X.shape) < 0.5, np.nan, X).astype(dtype)
        model = NMF(4, random_state=0, max_iter=60, tol=0, **kind).fit(X)
        objective = np.array([s.objective for s in model.trace_])
        noise = 10 * np.finfo(dtype).eps * np.nansum(X if kind == KL else X**2, dtype=float) / len(X)
        assert (np.diff(objective) <= 1e-6 * objective[:-1] + noise).all()
        Y = model.transform(X).astype(float) @ model.components_.astype(float)
        D = divergence(X.astype(float), Y) if kind == KL else 0.5 * (X - Y) ** 2
        assert np.nansum(D) <= 1.01 * objective[-1] * len(X) + len(X) * noise


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
def test_columns_that_only_small_rows_show_are_fitted_to_these(kind):
    """The same rows in other units must not drown the columns that they do not show."""
    X, _, _ = planted(n=80, d=10, noise=0.05)
    X += 0.01
    fits = []
    for factor in (1, 1e4, 1e10):
        Y = X.copy()
        Y[40:] *= factor
        Y[40:, :4] = np.nan
        for dtype in (np.float64,) if factor > 1e4 else (np.float64, np.float32):
            H = NMF(3, random_state=0, max_iter=400, tol=0, **kind).fit(Y.astype(dtype)).components_.astype(float)
            Z = np.array([nnls(H.T, x)[0] for x in X[:40]])
            fits.append(np.linalg.norm((Z @ H - X[:40])[:, :4]) / np.linalg.norm(X[:40, :4]))
    assert max(fits) < 0.15, fits


@pytest.mark.parametrize("kind", KINDS, ids=["hals", "mu", "kl"])
@pytest.mark.parametrize("holes", ["first", "last"])
def test_blocks_with_and_without_holes_add_up(kind, holes):
    X, _, U = planted(n=60)
    seen = np.random.default_rng(1).random(X.shape) < 0.6
    seen[30:] |= holes == "first"
    seen[:30] |= holes == "last"
    X, model, H = np.where(seen, X, 0).astype(np.float32), NMF(3, **kind), make_parts((U.T + 0.1).astype(np.float32))
    full = [None if s.all() else s for s in (seen[:30], seen[30:])]
    outs = [model.local(H, Block(x, observed=s)) for x, s in zip((X[:30], X[30:]), full, strict=True)]
    total = tree.add_into(tree.double(outs[0].stats), outs[1].stats)
    z = np.concatenate([out.z for out in outs]).astype(float)
    truth = seen.T @ z if kind == KL else (seen * (z @ H.loads.T)).T @ z
    found = total.P + (total.F if kind == KL else H.loads.astype(float) @ total.F)
    np.testing.assert_allclose(found, truth, rtol=1e-5)
    assert total.P.dtype == np.float64
    assert model.update(H, total).loads == pytest.approx(
        model.update(H, model.local(H, Block(X, observed=seen)).stats).loads, rel=1e-4
    )
    assert np.ndim(model.local(H, Block(X)).stats.P) == 0  # complete data send nothing more


@pytest.mark.parametrize("kind", [{}, {"solver": "mu"}], ids=["hals", "mu"])
def test_online_steps_on_rows_with_holes_come_near_the_batch_fit(kind):
    X, _, _ = planted(n=400, k=4, noise=0.3)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = np.nan
    model = NMF(4, random_state=0, **kind)
    for i in range(100):
        model.partial_fit(X[40 * (i % 10) :][:40])
    batch = NMF(4, random_state=0, tol=1e-6, max_iter=500, **kind).fit(X)
    error = np.sqrt(np.nansum((model.inverse_transform(model.transform(X)) - X) ** 2))
    assert error < (1.2 if not kind else 2.5) * batch.reconstruction_err_
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(10) * error, rel=0.3)  # 4000 rows so far


# -------------------------------------------------------------------- what is refused, what is chosen


def test_choices():
    X, _, U = planted()
    assert NMF(max_iter=2).fit(X).n_components_ == X.shape[1]
    assert NMF(init="custom", components_init=U, max_iter=2).fit(X).n_components_ == len(U)
    assert likeness(NMF(3, solver="cd", random_state=0, max_iter=50).fit(X).components_, U) > 0.98
    assert NMF(3, beta_loss=1, max_iter=3).fit(X).reconstruction_err_ > 0
    with pytest.raises(ValueError, match=r"solver='hals'.*use solver='mu'"):
        NMF(3, solver="hals", beta_loss="kullback-leibler").fit(X)
    with pytest.raises(ValueError, match=r"min\(n, d\) = 20"):
        NMF(30, init="nndsvd").fit(X)
    with pytest.raises(ValueError, match="components_init"):
        NMF(3, init="custom").fit(X)
    with pytest.raises(ValueError, match=r"\(3, 20\)"):
        NMF(3, init="custom", components_init=U[:, :5]).fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        NMF(3).fit(-X)


# -------------------------------------------------------------------- kernels and their twins


def sweeps(G, C, Z, times):
    Z = Z.copy()
    for _ in range(times):
        for q in range(len(G)):
            Z[:, q] = np.maximum(0, Z[:, q] + (C[:, q] - Z @ G[:, q]) / G[q, q])
    return Z


@pytest.mark.parametrize("k", [1, 3, 4, 9])
def test_hals_is_coordinate_descent(k):
    rng = np.random.default_rng(0)
    U, Z = rng.random((k, 15)), rng.random((130, k))
    G, C = U @ U.T, rng.random((130, 15)) @ U.T
    out = Z.copy()
    hals(G, C, out, 3, 0.0, 0.0)
    np.testing.assert_allclose(out, sweeps(G, C, Z, 3), rtol=1e-10, atol=1e-12)
    far = Z.copy()
    hals(G, C, far, 3, 0.0, 0.4)
    twin = np.maximum(0, out + 0.4 * (out - Z))
    f = lambda z: 0.5 * ((z @ G) * z).sum(1) - (C * z).sum(1)  # noqa: E731
    np.testing.assert_allclose(far, np.where((f(twin) <= f(Z))[:, None], twin, out), rtol=1e-9, atol=1e-12)
    alone = Z[70:71].copy()
    hals(G, C[70:71].copy(), alone, 20, 0.1, 0.4)
    crowd = Z.copy()
    hals(G, C, crowd, 20, 0.1, 0.4)
    assert np.array_equal(alone[0], crowd[70])  # a row does not see its neighbours


def test_residual_is_the_projected_gradient():
    rng = np.random.default_rng(0)
    Z, C, G = rng.random((30, 5)), rng.random((30, 5)), np.cov(rng.random((5, 9)))
    slope = Z @ G - C
    truth = (np.abs(slope) * Z).sum() + Z.mean(axis=0) @ np.maximum(-slope, 0).sum(axis=0)
    assert residual(G, C, Z) == pytest.approx(truth)
    hals(G + np.eye(5), C - 0.5, Z, 1000, 0.0, 0.0)
    assert residual(G + np.eye(5), C - 0.5, Z) < 1e-12


def test_masked_hals_is_hals_on_observed_cells():
    rng = np.random.default_rng(0)
    U, Z, x = rng.random((15, 3)), rng.random((20, 3)), rng.random((20, 15))
    seen = rng.random(x.shape) < 0.6
    out = Z.copy()
    C = np.where(seen, x, 0) @ U - 0.1
    for part, G in own_grams(U, seen, 0.2):
        masked_hals(G, C[part], out[part], 4, 0.0, 0.0)
    for i in range(20):
        H = U[seen[i]]
        twin = sweeps(H.T @ H + 0.2 * np.eye(3), (x[i, seen[i]] @ H - 0.1)[None], Z[i : i + 1], 4)
        np.testing.assert_allclose(out[i], twin[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, 4, 7])
def test_csr_products(k):
    rng = np.random.default_rng(0)
    X = sp.random_array((30, 25), density=0.2, rng=rng, format="csr")
    U, Z = rng.random((25, k)), rng.random((30, k))
    out, total = np.empty((30, k)), np.ones((25, k))
    times(X.data, X.indices, X.indptr, U, out)
    add_transposed_times(X.data, X.indices, X.indptr, Z, total)
    np.testing.assert_allclose(out, X @ U)
    np.testing.assert_allclose(total, 1 + X.T @ Z)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_csr_products_with_a_factor_of_several_tiles(order):
    rng = np.random.default_rng(0)
    X = sp.random_array((20, 30_000), density=0.004, rng=rng, format="csr")
    U, Z = rng.random((30_000, 8)), rng.random((20, 8))
    assert U.nbytes > 2 * TILE
    assert X.nnz > 4 * NONZEROS_PER_TILE * 20
    truth, truth_t = X @ U, X.T @ Z
    if order == "shuffled":
        for a, b in zip(X.indptr, X.indptr[1:], strict=False):
            mix = a + rng.permutation(b - a)
            X.indices[a:b], X.data[a:b] = X.indices[mix], X.data[mix]
    out, total = np.empty((20, 8)), np.ones((30_000, 8))
    times(X.data, X.indices, X.indptr, U, out)
    add_transposed_times(X.data, X.indices, X.indptr, Z, total)
    np.testing.assert_allclose(out, truth)
    np.testing.assert_allclose(total, 1 + truth_t)


@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.3, 0.2)])
def test_kl_rows(penalty):
    l1, l2 = penalty
    rng = np.random.default_rng(0)
    X = sp.random_array((30, 25), density=0.3, rng=rng, format="csr")
    U, Z, w = rng.random((25, 6)), rng.random((30, 6)), rng.random(30)
    relax = 0.9 if l2 == 0 else 0.0
    out, cross = Z.copy(), np.zeros((25, 6))
    loss = kl_rows(X.data, X.indices, X.indptr, w, U, U.sum(0), l1, l2, relax, 0.0, 3, 0.0, out, cross)
    x, D = X.toarray(), U.sum(0) + l1
    for _ in range(3):
        seen = (x / (Z @ U.T)) @ U
        Z = Z * relaxed(2 * seen / (D + np.sqrt(D**2 + 4 * l2 * Z * seen)), relax)
    np.testing.assert_allclose(out, Z, rtol=1e-8)
    np.testing.assert_allclose(cross, (x / (Z @ U.T)).T @ (w[:, None] * Z), rtol=1e-8)
    assert loss == pytest.approx((w[:, None] * divergence(x, Z @ U.T)).sum())


def test_the_relaxed_step_never_rises_above_its_bound():
    r = np.exp(np.linspace(-8, 8, 4001))
    s = relaxed(r, 0.9)
    assert (s > 0).all()
    assert (s - r * np.log(s) <= 1 + 1e-12).all()  # the bound of the divergence, 1 at the present point
    assert (np.abs(s - 1) <= 2 * np.abs(r - 1) + 1e-12).all()  # within the reach of a quadratic bound


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_select_cuts_the_part_that_says_most_in_two(loss):
    rng = np.random.default_rng(1)
    X = rng.gamma(0.3, size=(300, 6)) @ rng.gamma(0.3, size=(6, 40)) + 0.1 * rng.random((300, 40))
    model = NMF(9, beta_loss=loss, random_state=0)
    fit = fit_together([model], X, [None], [0])[0]
    U = NMF(10, beta_loss=loss).neighbour(fit, True, np.random.default_rng(0))
    z = model.transform(X)
    power = 2 if loss == "frobenius" else 1
    cut = int(np.argmax((z**power).sum(axis=0) * (model.components_**power).sum(axis=1)))
    np.testing.assert_allclose(U.loads[:, cut] + U.loads[:, 9], fit.U.loads[:, cut])
    np.testing.assert_array_equal(np.delete(U.loads, [cut, 9], axis=1), np.delete(fit.U.loads, cut, axis=1))
    assert (U.loads >= 0).all()
    alone = NMF(10, beta_loss=loss, random_state=0).fit(X)
    table = select(NMF(beta_loss=loss), X, [9, 10], random_state=0).columns
    assert table["objective"][1] <= alone.trace_[-1].objective
    assert table["objective"][1] < table["objective"][0]


# ---------------------------------------------------------------- as scikit-learn takes it


def random_factors(X, k, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((len(X), k)), rng.random((k, X.shape[1]))


@pytest.mark.parametrize("kind", [*KINDS, {"alpha_W": 0.01}, {"beta_loss": 0.5}])
def test_a_fit_goes_on_from_given_amounts_and_parts(kind):
    """From where another fit has ended, one pass is all there is to do; and W counts, not H alone."""
    X, _, _ = planted()
    W, H = random_factors(X, 3)
    model = NMF(3, init="custom", tol=1e-7, max_iter=2000, **kind)
    Z = model.fit_transform(X, None, W, H)
    again = NMF(3, init="custom", max_iter=1, tol=0, **kind).fit(X, W=Z, H=model.components_)
    assert again.trace_[0].objective <= model.trace_[-1].objective * (1 + 1e-6)
    other = NMF(3, init="custom", max_iter=1, tol=0, **kind).fit(X, W=W, H=model.components_)
    assert other.trace_[0].objective != again.trace_[0].objective
    assert again.given is None


@pytest.mark.parametrize("kind", KINDS)
def test_given_amounts_mean_the_same_in_any_unit_and_any_block(kind):
    X, _, _ = planted(n=300)
    W, H = random_factors(X, 3)
    model = NMF(3, init="custom", max_iter=5, tol=0, **kind)
    plain = model.fit(X, W=W, H=H).components_
    with config(block_rows=64):
        np.testing.assert_allclose(model.fit(X, W=W, H=H).components_, plain, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.fit(sp.csr_array(X), W=W, H=H).components_, plain, rtol=1e-8, atol=1e-12)
    large = model.fit(X * 4.0**20, W=W * 2.0**20, H=H * 2.0**20).components_
    np.testing.assert_allclose(large, plain, rtol=1e-8, atol=1e-12)


def test_one_pass_from_given_factors_is_no_worse_than_scikit_learns():
    X, _, _ = planted()
    W, H = random_factors(X, 3)
    for passes in (1, 5, 20):
        ours = NMF(3, init="custom", max_iter=passes, tol=0).fit(X, W=W, H=H)
        theirs = Peer(3, init="custom", max_iter=passes, tol=0).fit(X, W=W.copy(), H=H.copy())
        assert ours.reconstruction_err_ <= theirs.reconstruction_err_ * (1 + 1e-3)


def test_given_factors_are_refused_or_ignored_in_words():
    X, _, _ = planted()
    W, H = random_factors(X, 3)
    with pytest.warns(RuntimeWarning, match="init='custom'"):
        ignored = NMF(3, random_state=0).fit(X, W=W, H=H)
    np.testing.assert_array_equal(ignored.components_, NMF(3, random_state=0).fit(X).components_)
    model = NMF(3, init="custom")
    for what, wrong in (("W has shape", {"W": W[1:]}), ("W must be", {"W": -W}), ("H has shape", {"H": H[:2]})):
        with pytest.raises(ValueError, match=what):
            model.fit(X, **{"W": W, "H": H, **wrong})
    with pytest.raises(ValueError, match="both are None"):
        model.fit(X, W=W)
    assert NMF(init="custom").fit(X, W=W, H=H).n_components_ == 3
    assert NMF(3, init="custom").fit(X, H=H.tolist(), W=W.astype(np.float32)).n_components_ == 3  # any precision


@pytest.mark.parametrize("beta", [-1, 0, 0.5, 1.5, 2.5, 3, "itakura-saito"])
def test_any_beta_divergence_is_lowered_as_fast_as_scikit_learn_does(beta):
    X = planted(n=60, noise=0)[0] + 0.1
    W, H = random_factors(X, 3)
    ours = NMF(3, init="custom", beta_loss=beta, max_iter=20, tol=0).fit(X, W=W, H=H)
    theirs = Peer(3, init="custom", beta_loss=beta, max_iter=20, tol=0, solver="mu").fit(X, W=W.copy(), H=H.copy())
    assert ours.reconstruction_err_ <= theirs.reconstruction_err_
    assert (np.diff([s.objective for s in ours.trace_]) < 0).all()


@pytest.mark.parametrize("beta", [-1.2, 0.0, 0.2, 1.5, 2.5])
def test_a_beta_divergence_and_its_slope_are_what_they_are_called(beta):
    X = planted(n=30, noise=0)[0] + 0.1
    U = make_parts(random_factors(X, 3)[1].T.copy())
    z, s = Beta(beta).local(U, Block(X), Effort(2, 0.0), 0.0, 0.0)
    np.testing.assert_allclose(s.error, _beta_divergence(X, z, U.loads.T, beta), rtol=1e-10)

    def moved(by):
        loads = U.loads.copy()
        loads[4, 1] += by
        return _beta_divergence(X, z, loads.T, beta)

    np.testing.assert_allclose((s.P - s.B)[4, 1], (moved(1e-6) - moved(-1e-6)) / 2e-6, rtol=1e-5)


def test_a_beta_divergence_of_sparse_weighted_and_missing_rows():
    X = planted(n=40, noise=0)[0]
    model = NMF(3, beta_loss=1.5, random_state=0, init="random", max_iter=20, tol=0)
    dense = model.fit(X).components_
    np.testing.assert_allclose(model.fit(sp.csr_array(X)).components_, dense, rtol=1e-9, atol=1e-12)
    twice = np.concatenate([X, X])
    np.testing.assert_allclose(model.fit(X, sample_weight=np.full(40, 2.0)).components_, dense, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.fit(twice).components_, dense, rtol=1e-9, atol=1e-12)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    filled = model.fit(holes).inverse_transform(model.transform(holes))
    assert np.corrcoef(filled[np.isnan(holes)], X[np.isnan(holes)])[0, 1] > 0.9


def test_zeros_have_no_divergence_of_negative_order():
    X = planted()[0]
    with pytest.raises(ValueError, match=r"contains zeros.*positive beta_loss"):
        NMF(3, beta_loss=0, random_state=0).fit(X)
    with pytest.raises(ValueError, match="solver='mu'"):
        NMF(3, beta_loss=0.5, solver="cd").fit(X)


def test_zeros_that_multiplicative_steps_approach_are_shown_as_zeros():
    U = np.kron(np.eye(3), np.ones(4))
    X = np.random.default_rng(0).gamma(2.0, 1.0, (30, 3)) * np.eye(3)[np.arange(30) % 3] @ U
    for kind in ({"solver": "mu"}, KL):
        model = NMF(3, random_state=0, max_iter=500, tol=1e-9, **kind)
        Z = model.fit_transform(X)
        assert not (Z @ model.components_)[X == 0].any()
        np.testing.assert_allclose(Z @ model.components_, X, rtol=1e-5)


def test_a_penalty_that_leaves_nothing_leaves_zeros_whatever_the_solver():
    X = planted()[0]
    for solver in ("cd", "mu"):
        model = NMF(3, alpha_W=50.0, solver=solver, init="random", random_state=0, tol=0, max_iter=200)
        assert not model.fit_transform(X).any()
        assert not model.components_.any()


def test_amounts_of_new_rows_do_not_depend_on_the_solver():
    X = planted()[0]
    model = NMF(3, solver="mu", random_state=0, max_iter=50).fit(X)
    truth = np.array([nnls(model.components_.T, x)[0] for x in X])
    np.testing.assert_allclose(model.transform(X), truth, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k"), [(700, 300, 10), (1, 4000, 30), (3000, 7, 32), (500, 300, 40)])
def test_products_in_pieces_are_the_products(n, d, k, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.random((n, d)).astype(dtype), rng.random((d, k)).astype(dtype)
    z = rng.random((n, k)).astype(dtype)
    for favoured in (True, False):
        monkeypatch.setattr(_arithmetic, "favours_small", lambda favoured=favoured: favoured)
        np.testing.assert_allclose(_arithmetic.times(a, b), a @ b, rtol=1e3 * np.finfo(dtype).eps)
        np.testing.assert_allclose(_arithmetic.transposed_times(a, z), a.T @ z, rtol=1e3 * np.finfo(dtype).eps)


def test_what_has_no_effect_is_taken():
    X = planted()[0]
    plain = NMF(3, random_state=0).fit(X)
    np.testing.assert_array_equal(NMF(3, random_state=0, shuffle=True).fit(X).components_, plain.components_)
