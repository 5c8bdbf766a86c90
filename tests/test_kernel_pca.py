"""Kernel PCA against scikit-learn, PCA, explicit features, the centred matrix itself and planted problems."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import KernelPCA as Theirs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels

import unmix
from unmix import PCA, KernelPCA
from unmix.linear._gram import Linear
from unmix.maths.kernels import Kernel, landmarks
from unmix.maths.spectra import lanczos
from unmix.testing import check_model


def rows(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 2 * rng.standard_normal((3, d))[rng.integers(3, size=n)]


def concentric(n=400, seed=0):
    """Two concentric sources, and which is which."""
    rng = np.random.default_rng(seed)
    source = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(source, 3.0, 0.5)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.standard_normal((n, 2))
    return X, source


def histogram(x, y):
    return np.minimum(np.abs(x), np.abs(y)).sum()


def alike(ours, theirs, rtol=1e-7):
    """The same columns up to their signs."""
    assert ours.shape == theirs.shape
    turned = np.sign(np.einsum("ia,ia->a", ours, theirs))
    np.testing.assert_allclose(ours * np.where(turned < 0, -1, 1), theirs, rtol=0, atol=rtol * np.abs(theirs).max())


KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.1},
    "poly": {"gamma": 0.3, "degree": 2, "coef0": 0.5},
    "sigmoid": {"gamma": 0.001, "coef0": 0.0},
    "cosine": {},
    "callable": {"kernel": histogram},
}

# ---------------------------------------------------------------- scikit-learn


@pytest.mark.filterwarnings("ignore:KernelPCA. kernel='sigmoid' is not positive")
@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_as_scikit_learn_has_it(kernel, solver):
    X, new = rows(60 if kernel == "callable" else 300), rows(20, seed=1)
    params = {"n_components": 3, "kernel": kernel, "random_state": 0, **KERNELS[kernel]}
    ours, theirs = KernelPCA(eigen_solver=solver, **params).fit(X), Theirs(eigen_solver="dense", **params).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    alike(ours.eigenvectors_, theirs.eigenvectors_)
    largest = ours.eigenvectors_[np.abs(ours.eigenvectors_).argmax(axis=0), range(3)]
    assert (largest > 0).all()
    alike(ours.transform(X), theirs.transform(X))
    alike(ours.transform(new), theirs.transform(new))
    alike(ours.fit_transform(X), theirs.fit_transform(X))
    np.testing.assert_array_equal(ours.X_fit_, X)
    assert ours.gamma_ == theirs.gamma_


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_the_way_back_by_ridge_regression_as_scikit_learn_has_it(kernel, alpha):
    X, new = rows(100), rows(20, seed=1)
    params = {"kernel": kernel, "fit_inverse_transform": True, "alpha": alpha, **KERNELS[kernel]}
    ours, theirs = KernelPCA(4, **params).fit(X), Theirs(4, **params).fit(X)
    wanted = theirs.inverse_transform(theirs.transform(new))
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(new)), wanted, rtol=1e-6, atol=1e-6)
    alike(ours.X_transformed_fit_, theirs.X_transformed_fit_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6 * np.abs(theirs.dual_coef_).max())


def test_all_components_and_those_of_no_variance():
    X = rows(40, 3)
    assert KernelPCA().fit(X).eigenvalues_.shape == (3,)
    five = KernelPCA(5).fit(X)
    assert np.count_nonzero(five.eigenvalues_) == 3
    assert not five.transform(X)[:, 3:].any()
    assert KernelPCA(5, remove_zero_eig=True).fit_transform(X).shape == (40, 3)
    every, theirs = (m(kernel="rbf", gamma=0.1).fit(X) for m in (KernelPCA, Theirs))
    m = int((theirs.eigenvalues_ > 1e-8).sum())
    np.testing.assert_allclose(every.eigenvalues_[:m], theirs.eigenvalues_[:m], rtol=1e-6)
    alike(every.eigenvectors_[:, :10], theirs.eigenvectors_[:, :10])
    V = every.eigenvectors_
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-9)


def test_a_precomputed_kernel_is_the_kernel():
    X, new = rows(80), rows(10, seed=1)
    K, between = pairwise_kernels(X, metric="rbf", gamma=0.1), pairwise_kernels(new, X, metric="rbf", gamma=0.1)
    given, known = KernelPCA(3, kernel="precomputed").fit(K), KernelPCA(3, kernel="rbf", gamma=0.1).fit(X)
    alike(given.transform(between), known.transform(new))
    alike(given.fit_transform(K), known.transform(X))
    alike(given.to_sklearn().transform(between), given.transform(between))
    w = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    alike(given.fit(K, sample_weight=w).transform(between), known.fit(X, sample_weight=w).transform(new))


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_with_a_linear_kernel_it_is_pca(weighted, far):
    X, new = rows(90, 5) + far, rows(20, 5, seed=1) + far
    w = np.random.default_rng(0).uniform(0, 2, 90) if weighted else None
    kernel, plain = KernelPCA(3).fit(X, sample_weight=w), PCA(3).fit(X, sample_weight=w)
    alike(kernel.transform(new), plain.transform(new))
    np.testing.assert_allclose(np.sqrt(kernel.eigenvalues_), plain.singular_values_, rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(12))
def test_a_linear_kernel_without_the_matrix_of_all_pairs_gives_what_that_gives(seed, dtype, monkeypatch):
    rng = np.random.default_rng(seed)
    n, d, k = [(40, 7, None), (40, 7, 3), (40, 7, 50), (700, 260, 2)][seed % 4]
    rank = int(rng.integers(1, d + 1))
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + 10 * rng.normal(size=d)
    X[n // 2 :: 3] = X[0]  # equal rows are merged
    X = X.astype(dtype)
    w = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if seed % 3 else None
    params = {"eigen_solver": ("auto", "dense")[seed % 2], "remove_zero_eig": seed % 5 == 0, "random_state": 0}
    model = KernelPCA(k, fit_inverse_transform=seed % 2 == 0, **params)
    rows_alone = model.fit(X, sample_weight=w)
    monkeypatch.setattr(Linear, "suits", lambda *_: False)
    pairs = KernelPCA(**model.get_params()).fit(X, sample_weight=w)
    top, tol = float(pairs.eigenvalues_[0]), 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(rows_alone.eigenvalues_, pairs.eigenvalues_, rtol=0, atol=tol * top)
    np.testing.assert_array_equal(rows_alone.eigenvalues_ == 0, pairs.eigenvalues_ == 0)
    clear = pairs.eigenvalues_ > 1e-6 * top
    alike(rows_alone.eigenvectors_[:, clear], pairs.eigenvectors_[:, clear], 10 * tol)
    z = rows_alone.transform(X), pairs.transform(X)
    alike(z[0][:, clear], z[1][:, clear], 10 * tol)
    assert rows_alone.score(X) == pytest.approx(pairs.score(X), rel=1e-4, abs=tol * top)
    assert rows_alone.parts.least == pairs.parts.least == 0
    if model.fit_inverse_transform:
        back = rows_alone.inverse_transform(z[0]), pairs.inverse_transform(z[1])
        np.testing.assert_allclose(back[0], back[1], rtol=0, atol=1e-4 * np.abs(X).max())


def test_with_a_polynomial_kernel_it_is_pca_of_its_features():
    X = rows(100, 2)
    pairs = np.column_stack([X[:, 0] ** 2, X[:, 1] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1]])
    model = KernelPCA(3, kernel="poly", degree=2, gamma=1.0, coef0=0.0).fit(X)
    alike(model.transform(X), PCA(3).fit(pairs).transform(pairs))


def test_scores_and_loss_from_the_centred_matrix_itself():
    X, w = rows(60), np.random.default_rng(0).uniform(0.2, 2, 60)
    K, mu = pairwise_kernels(X, metric="rbf", gamma=0.1), w / w.sum()
    centred = K - mu @ K - (K @ mu)[:, None] + mu @ K @ mu
    model = KernelPCA(4, kernel="rbf", gamma=0.1).fit(X, sample_weight=w)
    values = np.linalg.eigvalsh(np.sqrt(w)[:, None] * centred * np.sqrt(w))[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:4], rtol=1e-9)
    z = model.transform(X)
    np.testing.assert_allclose(z, centred @ model.eigenvectors_ / np.sqrt(model.eigenvalues_), atol=1e-10)
    np.testing.assert_allclose((w[:, None] * z).sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose((z * w[:, None]).T @ z, np.diag(model.eigenvalues_), atol=1e-9)
    left = w @ np.diag(centred) - model.eigenvalues_.sum()
    assert -model.score(X, sample_weight=w) * w.sum() == pytest.approx(left, rel=1e-9)


def test_a_row_of_weight_two_is_the_row_twice_on_the_way_back_as_well():
    X, new = rows(60), rows(9, seed=1)
    w = np.random.default_rng(0).integers(0, 3, 60)
    params = {"kernel": "rbf", "gamma": 0.1, "fit_inverse_transform": True, "alpha": 0.1}
    one = KernelPCA(4, **params).fit(X, sample_weight=w)
    two = Theirs(4, **params).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=1e-9)
    alike(one.transform(new), two.transform(new))
    for model in (one, one.to_sklearn()):
        np.testing.assert_allclose(
            model.inverse_transform(model.transform(new)), two.inverse_transform(two.transform(new)), atol=1e-8
        )


def test_equal_rows_are_merged_and_come_back_in_their_order():
    X = np.vstack([rows(30), rows(30), np.where(rows(30) > 0, 0.0, -0.0)])
    params = {"kernel": "rbf", "gamma": 0.1, "fit_inverse_transform": True}
    ours, theirs = KernelPCA(3, **params).fit(X), Theirs(3, **params).fit(X)
    alike(ours.eigenvectors_, theirs.eigenvectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-9)


# ---------------------------------------------------------------- what it is for


def test_the_first_component_tells_concentric_sources_apart_where_no_direction_does():
    for seed in range(5):
        X, source = concentric(seed=seed)
        z = KernelPCA(1, kernel="rbf", gamma=0.25, random_state=0).fit_transform(X)[:, 0]
        low, high = sorted((z[source == 0], z[source == 1]), key=np.mean)
        assert low.max() < high.min()
        for flat in PCA(2).fit_transform(X).T:
            low, high = sorted((flat[source == 0], flat[source == 1]), key=np.mean)
            assert low.max() > high.min()


def curve(n, seed):
    """Three quarters of a circle, and what it looks like with noise."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 1.5 * np.pi, n)
    clean = 3 * np.column_stack([np.cos(t), np.sin(t)])
    return clean, clean + 0.25 * rng.standard_normal((n, 2))


@pytest.mark.parametrize("way", [{"pre_image": "fixed_point"}, {"fit_inverse_transform": True, "alpha": 0.01}], ids=str)
@pytest.mark.parametrize("landmarks", [None, 100])
def test_pre_images_denoise(way, landmarks):
    _, noisy = curve(400, 0)
    _, new = curve(200, 1)
    model = KernelPCA(6, kernel="rbf", gamma=0.1, n_landmarks=landmarks, random_state=0, **way).fit(noisy)
    back = model.inverse_transform(model.transform(new))
    off = np.abs(np.linalg.norm(back, axis=1) - 3).mean(), np.abs(np.linalg.norm(new, axis=1) - 3).mean()
    assert off[0] < 0.6 * off[1]  # the curve is where it was


def test_the_fixed_point_is_the_nearest_image():
    """No point of a fine grid has a φ(x) that is nearer to the projection of φ(x)."""
    _, X = curve(150, 0)
    model = KernelPCA(3, kernel="rbf", gamma=0.3, pre_image="fixed_point").fit(X)
    new = X[:12] + 0.3
    z = model.transform(new)
    U = model.parts
    weights = U.mean + z @ U.coef.T
    x, y = np.meshgrid(np.linspace(-5, 5, 201), np.linspace(-5, 5, 201))
    grid = np.column_stack([x.ravel(), y.ravel()])
    best = (weights @ pairwise_kernels(U.rows, grid, metric="rbf", gamma=0.3)).max(axis=1)
    found = (weights * pairwise_kernels(model.inverse_transform(z), U.rows, metric="rbf", gamma=0.3)).sum(axis=1)
    assert (found > best - 1e-3 * np.abs(best)).mean() > 0.9  # it is a local optimum
    assert (found > 0.9 * best).all()


def test_digits_are_rebuilt():
    X = load_digits().data / 16
    model = KernelPCA(64, kernel="rbf", gamma=0.05, pre_image="fixed_point", random_state=0).fit(X[:1000])
    back = model.inverse_transform(model.transform(X[1000:1200]))
    mean = ((X[1000:1200] - X[:1000].mean(axis=0)) ** 2).mean()
    assert ((back - X[1000:1200]) ** 2).mean() < 0.5 * mean


# ---------------------------------------------------------------- landmarks


def captured(model, X):
    """The share of the variance of φ(x) that the components have."""
    z = model.transform(X)
    return float((z * z).sum())


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "cosine"])
def test_landmarks_are_close_to_all_rows(kernel):
    X = rows(2000, 5)
    params = {"kernel": kernel, "random_state": 0, **KERNELS[kernel]}
    whole, some = KernelPCA(4, **params).fit(X), KernelPCA(4, n_landmarks=150, **params).fit(X)
    np.testing.assert_allclose(some.eigenvalues_, whole.eigenvalues_, rtol=0.02)
    assert (some.eigenvalues_ <= whole.eigenvalues_ * (1 + 1e-9)).all()  # of less than all of φ(x)
    for a in range(4):
        assert abs(np.corrcoef(some.transform(X)[:, a], whole.transform(X)[:, a])[0, 1]) > 0.99
    assert some.landmarks_.shape[0] <= 150
    assert not hasattr(some, "X_fit_")


def test_where_the_matrix_does_not_fit_the_budget_landmarks_stand_for_all_and_it_is_told():
    X, source = concentric(3000)
    with unmix.config(memory_budget=40_000_000), pytest.warns(ConvergenceWarning, match="landmarks stand for all rows"):
        model = KernelPCA(2, kernel="rbf", gamma=0.25, random_state=0).fit(X)
    assert len(model.landmarks_) <= 280
    z = model.transform(X)[:, 0]
    low, high = sorted((z[source == 0], z[source == 1]), key=np.mean)
    assert low.max() < high.min()
    exact = KernelPCA(2, kernel="rbf", gamma=0.25, random_state=0).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-4)
    with unmix.config(memory_budget=40_000_000), warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelPCA(2, kernel="rbf", gamma=0.25, n_landmarks=50, random_state=0).fit(X)  # asked for: nothing to tell


def test_landmarks_of_a_stream(tmp_path):
    X = rows(5000, 3)
    np.save(tmp_path / "x.npy", X)
    params = {"kernel": "rbf", "gamma": 0.2, "n_landmarks": 60, "random_state": 0}
    here = KernelPCA(3, **params).fit(X)
    for data in (tmp_path / "x.npy", lambda: iter(np.array_split(X, 7))):
        there = KernelPCA(3, **params).fit(data)
        assert np.array_equal(here.eigenvalues_, there.eigenvalues_)
        assert np.array_equal(here.transform(X), there.transform(X))


class ByLandmarks(KernelPCA):
    """The same planted problem, by landmarks."""

    @classmethod
    def example(cls, rng):
        model, X, found = super().example(rng)
        return model.set_params(n_landmarks=60), X, found


def test_the_laws_hold_by_landmarks_too():
    check_model(ByLandmarks, skip={"same_bits_on_dask": "it takes a cluster"})


def test_chosen_landmarks_span_more_than_random_ones():
    X = np.vstack([rows(760, 3), rows(40, 3, seed=3) * 4 + 20])
    kernel, shift, w = Kernel("rbf", 0.2), np.zeros(3), np.ones(800)
    K = kernel.matrix(X, shift)

    def left(index):
        C = K[:, index]
        return np.trace(K) - np.vdot(C, np.linalg.solve(K[np.ix_(index, index)] + 1e-9 * np.eye(len(index)), C.T).T)

    rng = np.random.default_rng(0)
    chosen, L = landmarks(kernel, X, w, 40, shift, rng)
    np.testing.assert_allclose(L @ L.T, K[np.ix_(chosen, chosen)], atol=1e-8)
    assert len(set(chosen.tolist())) == len(chosen) > 35
    plain = np.mean([left(rng.choice(800, 40, replace=False)) for _ in range(10)])
    assert np.mean([left(landmarks(kernel, X, w, 40, shift, rng)[0]) for _ in range(10)]) < 0.9 * plain


# ---------------------------------------------------------------- solvers


@pytest.mark.parametrize("decay", [0.5, 0.99, 1.0])
def test_lanczos_against_lapack(decay):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    values = decay ** np.arange(300.0)
    values[-1] = -0.3
    S = Q * values @ Q.T
    fixed = np.ones(300) / np.sqrt(300)
    P = np.eye(300) - np.outer(fixed, fixed)
    wanted, vectors = np.linalg.eigh(P @ S @ P)
    top, found, least, settled = lanczos(S.__matmul__, rng.standard_normal((300, 8)), fixed, 4, 1e-10, 290)
    assert settled
    np.testing.assert_allclose(top, wanted[::-1][:4], rtol=1e-9)
    assert least >= wanted[0] - 1e-9
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(fixed @ found, 0, atol=1e-9)
    if decay == 0.5:
        assert least < 0
        alike(found, vectors[:, ::-1][:, :4])


def test_lanczos_of_a_matrix_of_low_rank():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((500, 2))
    S, fixed = F @ F.T, np.eye(500)[0]
    top, found, _, settled = lanczos(S.__matmul__, rng.standard_normal((500, 9)), fixed, 5, 1e-10, 125)
    assert settled
    np.testing.assert_allclose(top[2:], 0, atol=1e-9)
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-9)


def test_a_spectrum_that_hardly_falls_is_left_to_lapack():
    X = np.eye(400) * np.linspace(1, 1.01, 400)
    ours, theirs = KernelPCA(5, random_state=0).fit(X), Theirs(5, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_the_radial_kernel_against_its_definition(far):
    x, y = rows(70, 3), rows(33, 3, seed=1)
    wanted = np.exp(-0.7 * ((x[:, None] - y) ** 2).sum(axis=2))
    kernel, shift = Kernel("rbf", 0.7), np.full(3, far)
    tolerance = 1e-14 if far == 0 else 1e-8  # 1e6 + x has ten digits of x
    np.testing.assert_allclose(kernel.between(x + far, y + far, shift), wanted, rtol=0, atol=tolerance)
    K = kernel.matrix(x + far, shift)
    np.testing.assert_allclose(K, kernel.between(x + far, x + far, shift), rtol=0, atol=1e-14)
    assert (kernel.between(x, np.full((1, 3), 1e200), np.zeros(3)) < 1e-290).all()


# ---------------------------------------------------------------- kernels that are none


def test_an_indefinite_kernel_is_told_in_words():
    X = rows(300)
    with pytest.warns(ConvergenceWarning, match=r"kernel='sigmoid' is not positive semi-definite on these rows"):
        few = KernelPCA(2, kernel="sigmoid", gamma=1.0, coef0=-1.0, random_state=0).fit(X)
    assert np.isfinite(few.transform(X)).all()
    for solver in ("auto", "dense"):
        with pytest.raises(ValueError, match=r"significant negative eigenvalues .* Ask for fewer components"):
            KernelPCA(kernel="sigmoid", gamma=1.0, coef0=-1.0, eigen_solver=solver).fit(X)
    with pytest.warns(ConvergenceWarning, match="kernel='callable' is not positive"):
        KernelPCA(1, kernel=lambda a, b: -np.abs(a - b).max()).fit(X[:50] * [1, 9, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelPCA(3, kernel="rbf").fit(X)


# ---------------------------------------------------------------- forms of the rows


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine", "sigmoid"])
@pytest.mark.parametrize("landmarks", [None, 30])
def test_sparse_rows_give_what_dense_rows_give(kernel, landmarks, tmp_path):
    X = np.where(np.random.default_rng(0).random((250, 8)) < 0.7, 0.0, rows(250, 8))
    params = {"kernel": kernel, "random_state": 0, "n_landmarks": landmarks, **KERNELS[kernel]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense, sparse = KernelPCA(3, **params).fit(X), KernelPCA(3, **params).fit(sp.csr_array(X))
    alike(sparse.transform(sp.csr_array(X)), dense.transform(X), 1e-6)
    alike(sparse.transform(X), dense.transform(X), 1e-6)
    sparse.save(tmp_path / "model")
    again = unmix.load(tmp_path / "model")
    assert np.array_equal(again.transform(X), sparse.transform(X))
    if landmarks is None:
        alike(sparse.eigenvectors_, dense.eigenvectors_, 1e-6)
        alike(sparse.to_sklearn().transform(sp.csr_array(X)), dense.transform(X), 1e-6)


def test_single_precision_is_near_double():
    X = rows(300)
    one, two = (KernelPCA(3, kernel="rbf", gamma=0.1, random_state=0).fit(x) for x in (X, X.astype(np.float32)))
    assert two.transform(X.astype(np.float32)).dtype == np.float32
    alike(two.transform(X.astype(np.float32)).astype(float), one.transform(X), 1e-5)


def test_frames_and_names():
    frame = load_iris(as_frame=True).data
    out = KernelPCA(2, kernel="rbf").set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["kernelpca0", "kernelpca1"]


def test_rows_far_out_have_no_kernel_with_the_others():
    X = rows(100)
    model = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
    far = model.transform(np.full((1, 4), 1e150))
    np.testing.assert_allclose(far, model.transform(np.full((1, 4), 1e6)))
    np.testing.assert_allclose(far[0], -model.parts.offset)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kernel": "precomputed"}, "needs a square matrix, not 20 × 4"),
        ({"kernel": "precomputed", "fit_inverse_transform": True}, "Cannot fit_inverse_transform with a precomputed"),
        ({"pre_image": "fixed_point"}, "is for kernel='rbf', not 'linear': take 'ridge'"),
        ({"eigen_solver": "arpack"}, "n_components=None must be below n_samples=20"),
        ({"eigen_solver": "arpack", "n_components": 20}, "n_components=20 must be below n_samples=20"),
        ({"n_components": 9, "n_landmarks": 5}, "n_components=9 components cannot be made of 5 landmarks"),
        ({"kernel": "poly", "degree": 400, "gamma": 10.0}, "not finite for these rows: scale X, or lower gamma"),
        ({"kernel": "popcorn"}, "'kernel' parameter of KernelPCA"),
        ({"gamma": -1.0}, "'gamma' parameter of KernelPCA"),
        ({"kernel": "sigmoid", "n_components": 2, "gamma": 1e-3, "alpha": 0.0, "fit_inverse_transform": True}, "alpha"),
    ],
)
def test_what_cannot_be_is_refused_in_words(params, words):
    with pytest.raises(ValueError, match=words):
        KernelPCA(**params).fit(rows(20))


def test_more_that_is_refused():
    X = rows(20)
    with pytest.raises(ValueError, match=r"symmetric matrix, but row \d+, column \d+ holds .* pass \(K \+ K.T\) / 2"):
        KernelPCA(2, kernel="precomputed").fit(np.random.default_rng(0).random((20, 20)))
    with pytest.raises(ValueError, match="n_landmarks=5 is for rows"):
        KernelPCA(2, kernel="precomputed", n_landmarks=5).fit(X @ X.T)
    with pytest.raises(NotFittedError, match=r"set fit_inverse_transform=True and fit again, or, .*'fixed_point'"):
        KernelPCA(2).fit(X).inverse_transform(X[:, :2])
    with pytest.raises(ValueError, match="no inverse_transform to sparse rows"):
        KernelPCA(2, fit_inverse_transform=True).fit(sp.csr_array(X))
    sparse = KernelPCA(2, kernel="rbf", pre_image="fixed_point").fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="no inverse_transform to sparse rows"):
        sparse.inverse_transform(sparse.transform(X))
    with pytest.raises(ValueError, match="cannot be made of"), unmix.config(memory_budget=5000):
        KernelPCA(15).fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        KernelPCA(2, kernel="rbf").fit(np.where(X > 2, np.nan, X))
    with pytest.raises(ValueError, match=r"found only \d of 5 components in max_iter=1: raise max_iter or tol"):
        KernelPCA(5, eigen_solver="arpack", max_iter=1).fit(np.eye(300) * np.linspace(1, 1.01, 300))


def test_a_kernel_of_ones_has_no_components():
    X = rows(30)
    assert KernelPCA(kernel="rbf", gamma=0.0).fit_transform(X).shape == (30, 0)
    assert not KernelPCA(2, kernel="rbf", gamma=0.0).fit_transform(X).any()
    same = np.ones((300, 3))
    assert not KernelPCA(2, kernel="rbf", n_landmarks=5).fit_transform(same).any()
