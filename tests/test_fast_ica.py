"""Independent components: planted sources beside scikit-learn's, equations beside NumPy, real recordings."""

import importlib.util
import os
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.io import wavfile
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.decomposition import FastICA as Peer
from sklearn.exceptions import ConvergenceWarning

import unmix
from benchmarks.fast_ica import amari, sources
from unmix import FastICA
from unmix.engine import tree
from unmix.engine.block import Block
from unmix.engine.layout import Shape
from unmix.linear._contrasts import contrast
from unmix.linear._reliable import agreement, alike_gaussian, interference
from unmix.linear._unmixing import bold, objective, polar, safe, turned

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))
WHOLE = {
    "logcosh": lambda y: np.log(np.cosh(y)),
    "exp": lambda y: -np.exp(-(y**2) / 2),
    "cube": lambda y: y**4 / 4,
}
SLOPES = {
    "logcosh": (np.tanh, lambda y: 1 - np.tanh(y) ** 2),
    "exp": (lambda y: y * np.exp(-(y**2) / 2), lambda y: (1 - y**2) * np.exp(-(y**2) / 2)),
    "cube": (lambda y: y**3, lambda y: 3 * y**2),
}


def planted(n=4000, k=5, seed=0, d=None):
    rng = np.random.default_rng(seed)
    S, A = sources(rng, n, k), rng.standard_normal((d or k, k))
    return S @ A.T + 3.0, A


def third_power(y):
    return y**3, 3 * y**2


def averaged(y):
    return y**3, (3 * y**2).mean(axis=-1)


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube", averaged])
@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
def test_planted_sources_are_found_as_by_the_peer(algorithm, fun):
    X, A = planted()
    ours = FastICA(algorithm=algorithm, fun=fun, random_state=0).fit(X)
    peer = Peer(algorithm=algorithm, fun=fun, random_state=0, tol=1e-8, max_iter=2000).fit(X)
    assert ours.result_ in ("converged", "solved")
    assert amari(ours.components_, A) < max(0.06 if fun == "logcosh" else 0.1, 1.1 * amari(peer.components_, A))
    np.testing.assert_allclose(ours.transform(X).var(axis=0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(X), (X - ours.mean_) @ ours.components_.T, atol=1e-10)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-8)


def test_the_optimum_is_that_of_the_peer():
    """At a tight tolerance both end at the same rotation, but for order and signs."""
    X, _ = planted(seed=3)
    ours = FastICA(tol=1e-12, max_iter=500, random_state=0).fit(X)
    peer = Peer(tol=1e-14, max_iter=5000, random_state=0).fit(X)
    match = np.abs(ours.components_ @ peer.mixing_)
    np.testing.assert_allclose(np.sort(match, axis=1)[:, -1], 1.0, atol=1e-5)
    np.testing.assert_allclose(np.sort(match, axis=1)[:, :-1], 0.0, atol=1e-4)


def test_more_columns_than_sources():
    X, A = planted(k=3, d=8)
    X = X + 0.01 * np.random.default_rng(1).standard_normal(X.shape)
    model = FastICA(3, random_state=0).fit(X)
    assert model.components_.shape == (3, 8)
    assert model.mixing_.shape == (8, 3)
    assert amari(model.components_, A) < 0.03
    np.testing.assert_allclose(model.components_ @ model.mixing_, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(model.explained().sum(), 1.0, atol=1e-3)


def test_many_rows_begin_on_a_sample():
    X, A = planted(n=70_000, k=6, seed=1)
    model = FastICA(random_state=0).fit(X)
    assert [s.name for s in model.stages_] == ["whitening", "sample"]
    assert model.n_iter_ <= 5
    peer = Peer(whiten_solver="eigh", tol=1e-8, random_state=0).fit(X)
    assert amari(model.components_, A) < 1.1 * amari(peer.components_, A) + 1e-4


def test_whiten_says_what_comes_out():
    X, A = planted()
    unit, other = (FastICA(whiten=w, random_state=0).fit(X) for w in ("unit-variance", "arbitrary-variance"))
    np.testing.assert_allclose(other.components_, unit.components_ / np.sqrt(len(X)), rtol=1e-9)
    np.testing.assert_allclose(other.inverse_transform(other.transform(X)), X, atol=1e-8)
    white = (X - X.mean(axis=0)) @ unit.whitening_.T * np.sqrt(len(X))
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(5), atol=1e-9)
    given = FastICA(whiten=False, random_state=0).fit(white)
    assert amari(given.components_ @ unit.whitening_, A) < 0.06
    assert "whitening_" not in vars(given)
    with pytest.warns(UserWarning, match="Ignoring n_components with whiten=False"):
        FastICA(2, whiten=False, random_state=0).fit(white)


def test_a_first_rotation_can_be_given():
    X, _ = planted()
    truth = FastICA(random_state=0, tol=1e-10).fit(X)
    W = truth.components_ @ truth.whitener() / np.sqrt(len(X))
    again = FastICA(w_init=W, n_init=5).fit(X)
    assert again.n_iter_ <= 2
    np.testing.assert_allclose(again.components_, truth.components_, atol=1e-3)


def test_rows_may_have_weights_be_sparse_or_single():
    X, A = planted(n=1500, k=4)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    weighted, repeated = FastICA(random_state=0).fit(X, sample_weight=w), FastICA(random_state=0)
    repeated.fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(weighted.whitening_, repeated.whitening_, rtol=1e-8)
    thin = np.where(np.abs(X) < 2, 0.0, X)
    for algorithm in ("parallel", "deflation"):
        model = FastICA(algorithm=algorithm, random_state=0)
        dense, sparse = model.fit(thin).components_, model.fit(sp.csr_array(thin)).components_
        np.testing.assert_allclose(dense, sparse, atol=1e-6)
    single = FastICA(random_state=0).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    assert amari(single.components_, A) < 0.1


def test_restarts_find_the_best_and_say_how_far_they_agree():
    X, _ = planted(n=600, k=8, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [FastICA(random_state=s, n_init=n).fit(X) for n, s in ((1, 0), (8, 0))]
    assert fits[1].trace_[-1].objective <= fits[0].trace_[-1].objective + 1e-6
    assert (fits[1].stability_ <= 1).all()


# ---------------------------------------------------------------- what cannot be found


def test_gaussian_sources_are_named():
    rng = np.random.default_rng(0)
    S = np.column_stack([rng.laplace(size=(5000, 2)), rng.standard_normal((5000, 2)), rng.uniform(size=5000)])
    with pytest.warns(ConvergenceWarning, match="may be any rotation"):
        model = FastICA(random_state=0).fit(S @ rng.standard_normal((5, 5)))
    assert "n_components=3" in next(n for n in model.notes(model.parts) if "rotation" in n)
    told = model.notes(model.parts)[0]
    assert "components 3, 4 are" in told  # they come last: the others are less Gaussian


@pytest.mark.parametrize("gaussians", [0, 1])
def test_one_gaussian_source_is_allowed(gaussians):
    rng = np.random.default_rng(1)
    S = np.column_stack([sources(rng, 5000, 4), rng.standard_normal((5000, gaussians))])
    k = 4 + gaussians
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FastICA(random_state=0).fit(S @ rng.standard_normal((k, k)))
    assert model.notes(model.parts) == []
    assert (model.stability_ > 0.98).all()


def test_noise_without_sources_is_called_so():
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal((2000, 4))
        with pytest.warns(ConvergenceWarning, match="components 0, 1, 2, 3 are no less Gaussian"):
            FastICA(random_state=seed).fit(X)


def test_stability_is_the_squared_correlation_with_the_source():
    told, true = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        S = np.column_stack([rng.laplace(size=400), rng.uniform(size=400), rng.laplace(size=400)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FastICA(random_state=seed).fit(S)
        r = np.corrcoef(model.transform(S).T, S.T)[:3, 3:] ** 2
        told.append(np.mean(1 - model.stability_))
        true.append(np.mean(1 - r.max(axis=0)))
    assert 0.5 < np.median(told) / np.median(true) < 2.0


def test_constant_columns_copies_and_few_rows():
    X, _ = planted(n=1000, k=3)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 7.0)])
    with pytest.warns(UserWarning, match="small singular values.* 3 directions"):
        model = FastICA(random_state=0).fit(wide)
    assert model.components_.shape == (3, 5)
    np.testing.assert_allclose(model.inverse_transform(model.transform(wide)), wide, atol=1e-8)
    with pytest.warns(UserWarning, match="in 0 directions"):
        assert not FastICA().fit_transform(np.ones((5, 3))).any()
    with pytest.raises(ValueError, match="n_samples=1"):
        FastICA().fit(np.ones((1, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = FastICA(random_state=0).fit(np.random.default_rng(0).standard_normal((5, 9)))
    assert few.components_.shape == (4, 9)


def test_wrong_parameters_are_named():
    X, _ = planted(n=100, k=3)
    for params, words in (
        ({"fun_args": {"alpha": 3}}, r"alpha must be in \[1,2\]"),
        ({"w_init": np.eye(4)}, r"w_init has invalid shape \(4, 4\) -- should be \(3, 3\)"),
        ({"fun": np.tanh}, "must return two arrays"),
        ({"whiten": False, "architecture": "columns"}, "whiten=False"),
        ({"fun": lambda y: (np.where(np.abs(y) > 50, np.inf, y), y)}, "not finite"),
    ):
        with pytest.raises(ValueError, match=words):
            FastICA(**params).fit(X)
    with pytest.raises(ValueError, match="averages its derivative"):
        FastICA(fun=averaged).fit(X, sample_weight=np.full(100, 2.0))
    FastICA(fun=third_power, random_state=0).fit(X, sample_weight=np.full(100, 2.0))
    with pytest.warns(UserWarning, match="it will be set to 3"):
        FastICA(5, random_state=0).fit(X)


# ---------------------------------------------------------------- equations


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fun", list(WHOLE))
def test_kernels_are_their_formulas(fun, dtype):
    rng = np.random.default_rng(0)
    y = (3 * rng.standard_normal((3, 1300))).astype(dtype)
    y[0, :3] = 0, 20, -20
    w = rng.random(1300)
    close = {"rtol": 1e-12 if dtype == np.float64 else 1e-5, "atol": 1e-13 if dtype == np.float64 else 1e-5}
    (g, slope), v = SLOPES[fun], y.astype(float)
    for weights in (None, w):
        got, sums = contrast(fun, None).rows(y, weights)
        by = np.ones(1300) if weights is None else w
        np.testing.assert_allclose(got, g(v) * by, **close)
        np.testing.assert_allclose(sums, np.stack([WHOLE[fun](v) @ by, slope(v) @ by, g(v) ** 2 @ by], axis=1), **close)
    assert got.dtype == dtype


def test_alpha_narrows_the_contrast():
    y = np.random.default_rng(0).standard_normal((2, 1000))
    g, sums = contrast("logcosh", {"alpha": 1.7}).rows(y, None)
    np.testing.assert_allclose(g, np.tanh(1.7 * y), atol=1e-14)
    np.testing.assert_allclose(sums[:, 0], (np.log(np.cosh(1.7 * y)) / 1.7).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums[:, 1], (1.7 * (1 - g**2)).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("fun", list(WHOLE))
def test_constants_of_a_gaussian(fun):
    c, G = contrast(fun, None), WHOLE[fun]
    mean = quad(lambda y: G(y) * norm.pdf(y), -12, 12)[0]
    np.testing.assert_allclose(c.gauss, mean, rtol=1e-9)
    draws = np.random.default_rng(0).standard_normal((2000, 500))
    draws = (draws - draws.mean(axis=1, keepdims=True)) / draws.std(axis=1, keepdims=True)
    np.testing.assert_allclose(np.sqrt(500) * G(draws).mean(axis=1).std(), c.spread, rtol=0.1)


def test_a_function_of_ones_own_is_the_same_contrast():
    y = 2 * np.random.default_rng(0).standard_normal((2, 500))
    ours, theirs = contrast(third_power, None), contrast("cube", None)
    np.testing.assert_allclose(ours.rows(y, None)[1], theirs.rows(y, None)[1], rtol=1e-5)
    np.testing.assert_allclose([ours.gauss, ours.spread], [theirs.gauss, theirs.spread], rtol=1e-4)


def working(model, X):
    """Early parts, and what all rows say of such."""
    done = model.set_params(max_iter=1).fit(X)
    copy = model.at(Shape(*X.shape, X.dtype, weight=float(len(X)), counted=len(X)))
    return done.parts, lambda U: copy.local(U, Block(X)).stats


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("fun", "seed"), list(product(["logcosh", "exp"], range(4))))
def test_safe_steps_never_make_the_contrast_worse(fun, seed):
    X, _ = planted(n=800, k=6, seed=seed)
    U, look = working(FastICA(fun=fun, random_state=seed), X)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]
    U = U._replace(rotation=turn)
    told = [objective(look(U))]
    for _ in range(25):
        U = safe(U, look(U), contrast(fun, None).bend)
        told.append(objective(look(U)))
    assert (np.diff(told) <= 1e-13).all()
    np.testing.assert_allclose(U.rotation @ U.rotation.T, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
@pytest.mark.parametrize("architecture", ["rows", "columns"])
def test_one_by_one_every_component_is_measured_at_last(architecture, fun):
    """The last one, too, which follows from the others and has no passes of its own."""
    X, _ = planted(n=800, k=4)
    X = X if architecture == "rows" else X.T
    model = FastICA(algorithm="deflation", architecture=architecture, fun=fun, random_state=0).fit(X)
    if architecture == "rows":
        y = model.transform(X)
    else:  # x − mean = a S: the parts are independent over the columns, but for their means
        y = model.mixing_ - model.mixing_.mean(axis=0)
        y /= y.std(axis=0)
    told = WHOLE[fun](y).mean(axis=0) - quad(lambda v: WHOLE[fun](v) * norm.pdf(v), -12, 12)[0]
    rows = slice(None) if architecture == "rows" else slice(-1, None)  # those before it are of the pass before
    np.testing.assert_allclose(model.contrast_[rows], told[rows], atol=1e-9)
    assert (model.contrast_ != 0).all()


@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_rows_are_looked_at_as_many_are(monkeypatch, fun, dtype):
    """In one kernel, and tile by tile with BLAS."""
    X = planted(n=600, k=3)[0].astype(dtype)
    U, _ = working(FastICA(fun=fun, random_state=0), X)
    U, model = tree.settle(U, dtype), FastICA(fun=fun).at(Shape(*X.shape, X.dtype, weight=600.0))
    few = model.local(U, Block(X))
    monkeypatch.setattr("unmix.linear._look.FEW", 0)
    many = model.local(U, Block(X))
    tolerance = 1e-12 if dtype is np.float64 else 2e-4
    assert few.stats.n == many.stats.n
    np.testing.assert_allclose(few.stats.gram, many.stats.gram, atol=600 * tolerance)
    np.testing.assert_allclose(few.stats.sums, many.stats.sums, atol=600 * tolerance)
    np.testing.assert_allclose(few.loss, many.loss, atol=600 * tolerance)


@pytest.mark.filterwarnings("ignore")
def test_the_slope_of_a_rotation_is_its_difference_quotient():
    X, _ = planted(n=500, k=4)
    U, look = working(FastICA(random_state=0), X)
    stats = look(U)
    signs = -np.sign(stats.sums[:, 0])
    A = signs[:, None] * stats.gram / stats.n
    A = 0.5 * (A - A.T)
    for i, j in ((0, 1), (2, 3)):
        turn = np.zeros((4, 4))
        turn[i, j], turn[j, i] = 1e-5, -1e-5
        there = [objective(look(U._replace(rotation=polar(np.eye(4) + t * turn) @ U.rotation))) for t in (1, -1)]
        np.testing.assert_allclose((there[0] - there[1]) / 4e-5, A[i, j], rtol=1e-4, atol=1e-7)
    ahead, change = bold(U, stats)
    assert change >= 0
    np.testing.assert_allclose(ahead.rotation @ ahead.rotation.T, np.eye(4), atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_one_by_one_a_step_turns_the_rows_after_it_alone():
    X, _ = planted(n=500, k=4)
    U, look = working(FastICA(algorithm="deflation", random_state=0), X)
    U = U._replace(active=1)
    new, _ = turned(U, look(U), None)
    np.testing.assert_array_equal(new.rotation[0], U.rotation[0])
    np.testing.assert_allclose(new.rotation @ new.rotation.T, np.eye(4), atol=1e-12)
    white = (X - U.mean) @ U.whitening.T
    y = white @ U.rotation[1]
    w = (1 - np.tanh(y) ** 2).mean() * U.rotation[1] - (np.tanh(y)[:, None] * white).mean(axis=0)  # FastICA
    w -= (w @ U.rotation[0]) * U.rotation[0]
    np.testing.assert_allclose(np.abs(new.rotation[1] @ w / np.linalg.norm(w)), 1.0, atol=1e-10)


def test_leaps_that_fail_are_taken_back():
    rejected = 0
    for seed in range(12):
        X = np.random.default_rng(seed).standard_normal((60, 8)) ** 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FastICA(random_state=seed, tol=1e-10, max_iter=100).fit(X)
        steps = np.array([s.objective for s in model.trace_ if s.accepted])
        assert (np.diff(steps) <= 1e-9).all()
        rejected += sum(not s.accepted for s in model.trace_)
    assert rejected > 0


def test_reliability_by_hand():
    assert alike_gaussian(np.array([0.5, -1.0, 40.0])) == [0, 1]
    assert alike_gaussian(np.array([0.5, 30.0, 40.0])) == []
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    np.testing.assert_allclose(agreement(turn, [turn[::-1], -turn]), 1.0)
    assert (agreement(turn, [np.eye(3)]) < 1).all()
    measures = np.array([[-0.1] * 3, [0.7] * 3, [0.4] * 3, [0.5] * 3])  # γ = 0.15, τ = 0.2
    np.testing.assert_allclose(interference(measures, 100, False), 2 * (0.3 + 0.04) / 0.16 / 100)
    np.testing.assert_allclose(interference(measures, 100, True)[0], 2 * 0.15 / 0.04 / 100)


# ---------------------------------------------------------------- images, the other way round


def parts_of_images(rng, n=400, side=16):
    """Pictures made of three parts that do not overlap, each of few pixels."""
    S = np.zeros((3, side, side))
    S[0, 2:6, 2:6] = S[1, 9:13, 3:7] = S[2, 5:9, 10:14] = 1.0
    S = S.reshape(3, -1)
    Z = rng.standard_normal((n, 3)) @ np.array([[1.0, 0.6, 0], [0, 1, 0.6], [0.6, 0, 1]])  # not independent
    return Z @ S + 0.01 * rng.standard_normal((n, S.shape[1])), S


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [100, 400])  # fewer rows than columns, and more
def test_independent_images(n):
    X, S = parts_of_images(np.random.default_rng(0), n)
    model = FastICA(3, architecture="columns", random_state=0).fit(X)
    assert [s.name for s in model.stages_] == ["closed form" if n < 256 else "covariance"]
    match = np.abs(np.corrcoef(model.mixing_.T, S)[:3, 3:])
    assert (match.max(axis=0) > 0.99).all()
    other = np.abs(np.corrcoef(FastICA(3, random_state=0).fit(X).mixing_.T, S)[:3, 3:])
    assert other.max(axis=0).mean() < match.max(axis=0).mean()
    np.testing.assert_allclose(model.components_ @ model.mixing_, np.eye(3), atol=1e-8)
    assert np.linalg.norm(model.reconstruct(X) - X) < 0.2 * np.linalg.norm(X - X.mean(axis=0))
    one = FastICA(3, architecture="columns", algorithm="deflation", random_state=0).fit(X)
    assert (np.abs(np.corrcoef(one.mixing_.T, S)[:3, 3:]).max(axis=0) > 0.99).all()
    weighted = FastICA(3, architecture="columns", random_state=0).fit(X, sample_weight=np.full(n, 2.0))
    np.testing.assert_allclose(weighted.mixing_, model.mixing_, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_independent_images_can_be_saved_and_resumed(tmp_path):
    X = load_digits().data
    model = FastICA(6, architecture="columns", random_state=0).fit(X)
    model.save(tmp_path / "m.unmix")
    again = unmix.load(tmp_path / "m.unmix")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    with unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0):
        FastICA(6, architecture="columns", random_state=0).fit(X)


# ---------------------------------------------------------------- real recordings


def of_data(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {name} in {DATA}")
    return DATA / name


def distortion(found, truth):
    """Signal-to-distortion ratio of each source in decibels, by what is most like it."""
    found, truth = found - found.mean(axis=0), truth - truth.mean(axis=0)
    r = np.abs(np.corrcoef(found.T, truth.T)[: found.shape[1], found.shape[1] :]).max(axis=0)
    return 10 * np.log10(r**2 / (1 - r**2))


def sounds(folder):
    return np.stack([wavfile.read(folder / f"source{i}.wav")[1] for i in (5, 7, 9)], 1).astype(float) - 128


def test_cocktail_party():
    """The mixtures that come with the sounds hold one of them, and noise: their rank is 2."""
    folder = of_data("cocktail-party")
    X, S = np.load(folder / "CPPdata.npz")["X"], sounds(folder)
    with pytest.warns(UserWarning, match="X varies in 2 directions only"):
        model = FastICA(random_state=0).fit(X)
    peer = Peer(2, random_state=0).fit_transform(X)
    ours = distortion(model.transform(X), S[:, :1])
    assert ours > distortion(peer, S[:, :1]) - 0.5
    assert ours > 50


def test_sounds_that_were_mixed_are_found():
    S, ours, theirs = sounds(of_data("cocktail-party")), [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.column_stack([S / S.std(axis=0), rng.standard_normal(len(S))]) @ rng.normal(size=(4, 4))
        ours.append(distortion(FastICA(random_state=seed).fit_transform(X), S))
        theirs.append(distortion(Peer(random_state=seed).fit_transform(X), S))
    assert np.min(ours) > 20
    assert np.median(ours) > np.median(theirs) - 1


def test_two_microphones():
    folder = of_data("two-mic-mixes")
    X = np.stack([wavfile.read(folder / f"speech_x{i}.wav")[1] for i in (1, 2)], 1).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, peer = FastICA(random_state=0).fit(X), Peer(random_state=0, tol=1e-8).fit(X)
    assert np.abs(ours.components_ @ peer.mixing_).max(axis=1).min() > 0.999


def heart_rate(x, rate=250):
    """Beats in a minute, by the distance of peaks of the squared signal."""
    from scipy.signal import find_peaks

    power = np.convolve(np.diff(x) ** 2, np.ones(8), "same")
    peaks, _ = find_peaks(power, height=0.3 * np.sort(power)[-60], distance=int(0.3 * rate))
    return 60 * rate / np.median(np.diff(peaks))


def test_the_heartbeat_of_a_foetus_is_found():
    path = of_data("foetal-ecg") / "FOETAL_ECG.dat.gz"
    X = np.loadtxt(path)[:, 1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        S = FastICA(random_state=0, n_init=5).fit_transform(X)
    rates = np.array([heart_rate(s) for s in S.T])
    mother = heart_rate(X[:, 7])  # on the chest
    assert 60 < mother < 100
    spiky = (S**4).mean(axis=0) > 6
    assert (np.abs(rates[spiky] - mother) < 5).any()
    assert ((rates > 110) & (rates < 180) & spiky).any()


# ---------------------------------------------------------------- beside others


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("picard") is None, reason="picard is not installed")
def test_as_often_right_as_picard():
    from benchmarks.fast_ica import FAILED, found

    ours, theirs = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((8, 8))
        B = found(sources(rng, 4000, 8) @ A.T, seed)
        ours.append(amari(B["unmix"], A))
        theirs.append(amari(B["picard"], A))
    assert np.median(ours) < 1.02 * np.median(theirs)
    assert sum(v > FAILED for v in ours) <= sum(v > FAILED for v in theirs)
