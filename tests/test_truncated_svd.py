"""Truncated SVD against SciPy's and scikit-learn's, by every way to the axes; rank, range and null space."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD as Peer

import unmix
from unmix import TruncatedSVD
from unmix.engine.block import Block
from unmix.linear import _krylov, null_space, range_space, rank
from unmix.linear._image import image
from unmix.linear._krylov import KrylovSpace
from unmix.testing import laws


class ByKrylov(TruncatedSVD):
    """The same model by passes, however small the matrix: the laws are asked of these too."""

    exempt: ClassVar[dict[str, str]] = {
        "sparse": "dense rows are measured from near their mean, CSR rows from zero: the same answers from other parts",
        "online": "batches are learnt by moments",
    }

    def _way(self, shape):
        return KrylovSpace(self.n_components, self.n_oversamples, self.n_iter, self.tol, shape)


def sparse(n, d, seed=0, share=0.02, power=0.5):
    """A sparse matrix whose singular values fall slowly."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=share, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return sp.csr_array(X @ sp.diags_array((1.0 + np.arange(d)) ** -power))


def truth(X, k):
    """Singular values, k + 1 of them, and right vectors of an exact decomposition."""
    _, s, V = scipy.linalg.svd(X.toarray() if sp.issparse(X) else X, full_matrices=False)
    return np.append(s, 0.0)[: k + 1], V[:k]


def residual(model, X):
    """The largest ‖Xᵀu − σv‖ of a component, over σ₁."""
    V, sigma = model.components_.T, model.singular_values_
    return np.linalg.norm(X.T @ (X @ V) / sigma - V * sigma, axis=0).max() / sigma[0]


def assert_same(model, X, k, rtol=1e-8):
    sigma, V = truth(X, k)
    np.testing.assert_allclose(model.singular_values_, sigma[:k], rtol=rtol)
    np.testing.assert_allclose(model.spectral_error_, sigma[k], rtol=rtol, atol=1e-7 * sigma[0])
    np.testing.assert_allclose(np.abs(np.einsum("ad,ad->a", model.components_, V)), 1.0, rtol=rtol)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=max(1e-9, rtol / 10))


@pytest.mark.parametrize("algorithm", ["arpack", "randomized"])
@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (60, 60)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_every_way_gives_the_exact_decomposition(algorithm, cls, shape, form):
    X = sparse(*shape, share=0.3).toarray() + (0.2 if form is np.asarray else 0.0)
    tol = 0.0 if (cls, algorithm) == (TruncatedSVD, "arpack") else 1e-12
    model = cls(5, algorithm=algorithm, tol=tol, random_state=0).fit(form(X))
    assert_same(model, X, 5)
    np.testing.assert_allclose(model.transform(form(X)), X @ model.components_.T, atol=1e-10)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
def test_scikit_learns_attributes(cls, form):
    X = load_digits().data
    X = sp.csr_array(X) if form == "csr" else X
    ours, peer = cls(6, random_state=0).fit(X), Peer(6, algorithm="arpack").fit(X)
    for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours.explained_variance_, ours.transform(X).var(axis=0), rtol=1e-8)
    assert ours.rank_ == 6


def test_large_sparse_rows_by_passes_against_svds():
    X, k = sparse(6000, 2500, share=0.01), 12
    _, s, _ = svds(X, k + 1, random_state=0)
    model = TruncatedSVD(k, tol=1e-9, random_state=0).fit(X)
    np.testing.assert_allclose(model.singular_values_, s[::-1][:k], rtol=1e-10)
    np.testing.assert_allclose(model.spectral_error_, s[0], rtol=1e-6)
    assert residual(model, X) < 2e-9
    assert model.result_ == "converged"


def test_the_residual_is_what_the_tolerance_says():
    X = sparse(3000, 1000)
    for tol in (1e-2, 1e-4, 1e-8):
        model = TruncatedSVD(8, tol=tol, random_state=0).fit(X)
        assert residual(model, X) <= 1.0001 * tol
    assert len(TruncatedSVD(8, tol=1e-2, random_state=0).fit(X).trace_) < len(model.trace_)


def test_as_many_directions_as_subspace_iteration_give_a_far_smaller_residual():
    X = sparse(3000, 2000, power=0.3)
    ours, peer = TruncatedSVD(20, random_state=0).fit(X), Peer(20, random_state=0).fit(X)
    assert residual(ours, X) < 0.1 * residual(peer, X)
    assert (ours.singular_values_ >= peer.singular_values_ * (1 - 1e-9)).all()  # both are estimates from below


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_space_without_room_is_restarted(monkeypatch, form):
    monkeypatch.setattr(_krylov, "BASIS_BYTES", 0)
    X = sparse(1500, 600)
    X = X if form == "csr" else X.toarray()
    model = ByKrylov(10, tol=1e-7, random_state=0).fit(X)
    assert KrylovSpace(10, 10, 5, 1e-7, model.shape).room == 60
    assert len(model.trace_) * 20 > 60  # it was
    assert_same(model, X, 10, rtol=1e-6)
    objective = [s.objective for s in model.trace_]
    assert (np.diff(objective) <= 1e-12).all()


def test_the_objective_is_the_squared_error():
    X = sparse(500, 300)
    model = ByKrylov(4, tol=1e-10, random_state=0).fit(X)
    s = np.linalg.svd(X.toarray(), compute_uv=False)
    np.testing.assert_allclose(-model.score(X), (s[4:] ** 2).sum() / 500, rtol=1e-8)
    np.testing.assert_allclose(model.trace_[0].objective, (s**2).sum() / 500)
    np.testing.assert_allclose(model.trace_[-1].objective, (s[4:] ** 2).sum() / 500, rtol=1e-6)


def test_the_spectral_error_is_the_norm_of_what_is_left():
    X = load_digits().data
    model = TruncatedSVD(10).fit(X)
    left = X - model.reconstruct(X)
    np.testing.assert_allclose(np.linalg.norm(left, 2), model.spectral_error_, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["arpack", "randomized"])
@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_weights_count_rows(cls, form, algorithm):
    rng = np.random.default_rng(0)
    X = sparse(200, 30, share=0.3).toarray()
    w = rng.integers(0, 4, 200).astype(float)
    model = cls(4, algorithm=algorithm, random_state=0).fit(form(X), sample_weight=w)
    assert_same(model, np.repeat(X, w.astype(int), axis=0), 4)
    scaled = cls(4, algorithm=algorithm, random_state=0).fit(form(X), sample_weight=1e30 * w)
    np.testing.assert_allclose(scaled.singular_values_, 1e15 * model.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(scaled.spectral_error_, 1e15 * model.spectral_error_, rtol=1e-9)


@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
def test_rows_far_from_zero_in_single_precision(cls):
    """Squares about zero would drown what varies."""
    rng = np.random.default_rng(0)
    X = (1e4 + rng.normal(size=(800, 6)) * [9, 6, 4, 3, 2, 1]).astype(np.float32)
    model = cls(3, random_state=0).fit(X)
    assert model.components_.dtype == np.float32
    sigma, _ = truth(X.astype(np.float64), 3)
    np.testing.assert_allclose(model.singular_values_, sigma[:3], rtol=1e-3)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
def test_single_precision(cls, form):
    X = sparse(400, 50, share=0.3).toarray()
    model = cls(5, random_state=0).fit(form(X.astype(np.float32)))
    assert model.transform(form(X.astype(np.float32))).dtype == np.float32
    assert_same(model, X, 5, rtol=1e-4)


@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
def test_matrices_with_nothing_left_to_find(cls):
    low = np.outer(np.arange(1.0, 41), [1.0, 0, 2, 0, 3])
    for X in (low, sp.csr_array(low), low.T, np.zeros((30, 7)), sp.csr_array((30, 7))):
        model = cls(3, random_state=0).fit(X)
        sigma = truth(X, 3)[0]
        np.testing.assert_allclose(model.singular_values_, sigma[:3], atol=1e-6 * (sigma[0] or 1.0))
        assert model.rank_ == np.count_nonzero(sigma > 1e-6)
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-9)
    many = cls(9, random_state=0, tol=1e-10).fit(np.eye(40))  # one singular value, forty times
    np.testing.assert_allclose(many.singular_values_, 1.0)
    np.testing.assert_allclose(many.spectral_error_, 1.0)


@pytest.mark.parametrize("cls", [TruncatedSVD, ByKrylov])
def test_all_components_and_fewer_rows_than_components(cls):
    X = sparse(20, 8, share=0.6).toarray()
    full = cls(8, random_state=0).fit(X)
    assert_same(full, X, 8)
    assert full.spectral_error_ == 0
    np.testing.assert_allclose(full.reconstruct(X), X, atol=1e-9)
    few = cls(8, random_state=0).fit(X[:3])
    assert few.components_.shape == (3, 8)
    np.testing.assert_allclose(few.reconstruct(X[:3]), X[:3], atol=1e-9)


def test_what_cannot_be():
    X = sparse(30, 10, share=0.5)
    with pytest.raises(ValueError, match=r"n_components\(11\) must be <= n_features\(10\)"):
        TruncatedSVD(11).fit(X)
    with pytest.raises(ValueError, match=r"n_components=10 must be strictly less .* algorithm='randomized'"):
        TruncatedSVD(10, algorithm="arpack").fit(X)
    dense = X.toarray()
    dense[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 4 holds nan\. TruncatedSVD needs every cell"):
        TruncatedSVD(2).fit(dense)


def test_a_matrix_that_would_not_fit_in_memory_dense():
    rng = np.random.default_rng(0)
    n, d = 400_000, 100_000  # 320 GB
    entries = 1.0 + rng.random(300_000), (rng.integers(n, size=300_000), rng.integers(d, size=300_000))
    X = sp.coo_array(entries, shape=(n, d)).tocsr()
    model = TruncatedSVD(3, n_iter=1, random_state=0).fit(X)
    assert model.components_.shape == (3, d)
    assert model.singular_values_[0] <= sp.linalg.norm(X)


# ---------------------------------------------------------------- streams, online, Dask


def blocks(X, rows=500) -> Callable[[], object]:
    return lambda: (X[i : i + rows] for i in range(0, X.shape[0], rows))


def test_streams_give_the_same_bits(tmp_path):
    X = np.random.default_rng(0).normal(size=(2300, 2100)) * (1.0 + np.arange(2100)) ** -0.5
    np.save(tmp_path / "rows.npy", X)
    one = TruncatedSVD(4, n_iter=1, random_state=0).fit(X)
    assert [s.name for s in one.stages_] == []
    with unmix.config(runner="serial"):
        serial = TruncatedSVD(4, n_iter=1, random_state=0).fit(X)
    for other in (serial, TruncatedSVD(4, n_iter=1, random_state=0).fit(str(tmp_path / "rows.npy"))):
        np.testing.assert_array_equal(other.components_, one.components_)
        np.testing.assert_array_equal(other.singular_values_, one.singular_values_)


def test_batches_of_rows_add_up():
    X = sparse(1200, 60, share=0.2).toarray()
    batch, online = TruncatedSVD(4).fit(X), TruncatedSVD(4)
    for i in range(0, 1200, 200):
        online.partial_fit(X[i : i + 200])
    np.testing.assert_allclose(online.singular_values_, batch.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(online.explained_variance_, batch.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(online.spectral_error_, batch.spectral_error_, rtol=1e-9)
    np.testing.assert_allclose(online.components_, batch.components_, atol=1e-7)


KRYLOV_LAWS = laws(ByKrylov)


@pytest.mark.parametrize("law", [c for c in KRYLOV_LAWS if c.law.needs != "distributed"], ids=lambda c: c.id)
def test_the_laws_hold_by_passes(law):
    law()


@pytest.mark.slow
def test_sparse_rows_on_dask(cluster):
    X = sparse(3000, 900)
    here = TruncatedSVD(6, tol=1e-6, random_state=0).fit(X)
    with unmix.config(runner=cluster):
        there = TruncatedSVD(6, tol=1e-6, random_state=0).fit(X)
    np.testing.assert_array_equal(there.components_, here.components_)


# ---------------------------------------------------------------- the image of a few directions


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [1, 7, 8, 13, 16, 17, 24, 25, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_image_of_sparse_rows_is_that_of_dense_ones(dtype, width, weighted):
    rng = np.random.default_rng(width)
    X = sparse(90, 70, share=0.1).astype(dtype)
    Q, centre = rng.normal(size=(70, width)).astype(dtype), rng.normal(size=70)
    w = rng.random(90) if weighted else None
    for c in (np.zeros(70), centre):
        x, weights = X.toarray().astype(np.float64) - c, np.ones(90) if w is None else w
        y = x @ Q.astype(np.float64)
        for rows in (X, X.toarray()):
            stats, squares = image(Block(rows, w), Q, c)
            close = {"rtol": 1e-4, "atol": 1e-2} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-9}
            np.testing.assert_allclose(stats.image, x.T @ (weights[:, None] * y), **close)
            np.testing.assert_allclose(stats.sum, weights @ x, **close)
            np.testing.assert_allclose(stats.square, weights @ (x**2).sum(axis=1), **close)
            np.testing.assert_allclose(squares, weights @ y**2, **close)
            moved = stats.moved(Q.astype(np.float64), c)
            np.testing.assert_allclose(moved.image, (x + c).T @ (weights[:, None] * ((x + c) @ Q)), **close)


# ---------------------------------------------------------------- rank, range, null space


@pytest.mark.parametrize("shape", [(40, 25), (25, 40), (30, 30)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
def test_rank_range_and_null_space(form, shape):
    rng = np.random.default_rng(0)
    left = rng.normal(size=(shape[0], 7)) * (rng.random((shape[0], 7)) < 0.5)
    A = left @ (rng.normal(size=(7, shape[1])) * (rng.random((7, shape[1])) < 0.5))
    X = form(A)
    R, N = range_space(X), null_space(X)
    assert rank(X) == np.linalg.matrix_rank(A) == R.shape[1] == 7
    assert N.shape == (shape[1], shape[1] - 7)
    np.testing.assert_allclose(R.T @ R, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(N.T @ N, np.eye(shape[1] - 7), atol=1e-12)
    np.testing.assert_allclose(A @ N, 0, atol=1e-12 * np.linalg.norm(A))
    np.testing.assert_allclose(R @ (R.T @ A), A, atol=1e-12 * np.linalg.norm(A))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_the_tolerance_decides_what_counts(form):
    X = form(np.diag([1.0, 1e-5, 1e-9, 1e-12, 0.0])[:, :4])
    assert [rank(X, tol) for tol in (None, 1e-13, 1e-10, 1e-6, 0.1)] == [4, 4, 3, 2, 1]
    assert null_space(X, 1e-10).shape == (4, 1)
    assert range_space(X, 1e-6).shape == (5, 2)
    huge = form(np.diag([1e200, 1e-100]))
    assert rank(huge) == 1
    assert rank(form(np.zeros((4, 3)))) == 0
    assert null_space(form(np.zeros((4, 3)))).shape == (3, 3)
    with pytest.raises(ValueError, match=r"tol=2 is relative to the largest singular value"):
        rank(X, 2)


def test_a_spectrum_beyond_the_budget_is_refused():
    X = sp.random_array((300, 200), density=0.05, format="csr", rng=np.random.default_rng(0))
    with unmix.config(memory_budget=100_000), pytest.raises(ValueError, match=r"needs 0\.0 GB, and memory_budget"):
        rank(X)
