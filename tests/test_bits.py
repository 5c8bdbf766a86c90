"""Boolean matrices as packed bits, against NumPy on truth values."""

import numpy as np
import pytest
import scipy.sparse as sp

from unmix.kernels import bits


def table(n, d, seed=0, p=0.3):
    return np.random.default_rng(seed).random((n, d)) < p


@pytest.mark.parametrize("d", [1, 7, 8, 63, 64, 65, 130])
def test_packing_and_back(d):
    X = table(9, d)
    B = bits.pack(X)
    assert B.shape == (9, bits.words(d))
    assert B.dtype == np.uint64
    np.testing.assert_array_equal(bits.unpack(B, d), X)
    np.testing.assert_array_equal(bits.pack(sp.csr_array(X.astype(float))), B)
    np.testing.assert_array_equal(bits.pack(np.where(X, 0.5, 0.0)), B)
    np.testing.assert_array_equal(bits.unpack(bits.turned(B, d), 9), X.T)
    np.testing.assert_array_equal(bits.popcount(B), X.sum(axis=1))


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_no_rows_or_columns(shape):
    X = np.zeros(shape, bool)
    B = bits.pack(X)
    np.testing.assert_array_equal(bits.unpack(B, shape[1]), X)
    assert bits.turned(B, shape[1]).shape == (shape[1], bits.words(shape[0]))
    assert bits.popcount(B).shape == (shape[0],)


def test_a_sparse_zero_is_not_set():
    X = sp.csr_array((np.array([1.0, 0.0]), (np.array([0, 0]), np.array([1, 2]))), shape=(1, 4))
    np.testing.assert_array_equal(bits.unpack(bits.pack(X), 4), [[False, True, False, False]])


@pytest.mark.parametrize("d", [5, 64, 100])
def test_product_meet_and_errors(d):
    Z, U = table(20, 70, 1, 0.05), table(70, d, 2)
    X = (Z.astype(int) @ U) > 0
    np.testing.assert_array_equal(bits.unpack(bits.product(bits.pack(Z), bits.pack(U)), d), X)
    common = ((Z.astype(int) @ ~U) == 0) & Z.any(axis=1, keepdims=True)
    met = bits.unpack(bits.meet(bits.pack(Z), bits.pack(U)), d)
    np.testing.assert_array_equal(met[Z.any(axis=1)], common[Z.any(axis=1)])
    assert met[~Z.any(axis=1)].all()
    Y = table(20, d, 3)
    lost, extra = bits.errors(bits.pack(X), bits.pack(Y))
    np.testing.assert_array_equal(lost, (X & ~Y).sum(axis=1))
    np.testing.assert_array_equal(extra, (Y & ~X).sum(axis=1))


def test_pairs_of_rows():
    A, B = table(30, 90, 1, 0.02), table(40, 90, 2, 0.8)
    np.testing.assert_array_equal(bits.within(bits.pack(A), bits.pack(B)), (A.astype(int) @ (~B).T) == 0)
    np.testing.assert_array_equal(bits.shared(bits.pack(A), bits.pack(B)), A.astype(int) @ B.T)


def test_unions_of_what_lies_below():
    R, N = table(40, 6, 1, 0.5), table(40, 9, 2)
    found = bits.unpack(bits.below(bits.pack(R), bits.pack(N)), 9)
    for i in range(40):
        inside = [j for j in range(40) if j != i and (R[j] <= R[i]).all() and (j < i or (R[j] != R[i]).any())]
        np.testing.assert_array_equal(found[i], N[inside].any(axis=0) if inside else np.zeros(9, bool))
