"""Rubin's rules, by hand and by what they promise."""

import numpy as np
import pytest
from scipy.stats import t

import unmix
from unmix.imputation import Pooled


def test_numbers_by_hand():
    # Q̄ = 2, W = 1, B = 1 (of 1, 2, 3), T = 1 + 4/3, r = 4/3, λ = (4/3)/(7/3) = 4/7, ν = 2 (7/4)² = 6.125
    found = unmix.pool([1.0, 2.0, 3.0], [0.5, 1.0, 1.5])
    assert isinstance(found, Pooled)
    assert (found.estimate, found.within, found.between) == (2.0, 1.0, 1.0)
    assert found.total == pytest.approx(7 / 3)
    assert found.standard_error == pytest.approx(np.sqrt(7 / 3))
    assert found.df == pytest.approx(6.125)
    assert found.missing_information == pytest.approx((4 / 3 + 2 / 9.125) / (7 / 3))
    half = t.ppf(0.975, 6.125) * np.sqrt(7 / 3)
    assert (found.low, found.high) == (pytest.approx(2 - half), pytest.approx(2 + half))


def test_small_samples_by_hand():
    # Barnard & Rubin: ν_o = 3/7 · 20 · 21/23, 1/ν = 1/6.125 + 1/ν_o
    found = unmix.pool([1.0, 2.0, 3.0], [0.5, 1.0, 1.5], df_complete=20)
    assert found.df == pytest.approx(1 / (1 / 6.125 + 23 / (3 / 7 * 20 * 21)))
    assert found.df < 20
    assert unmix.pool([1.0, 2.0, 3.0], [0.5, 1.0, 1.5], df_complete=1e12).df == pytest.approx(6.125)


def test_level():
    wide, narrow = (unmix.pool([1.0, 2.0, 3.0], [0.5, 1.0, 1.5], level=level) for level in (0.99, 0.5))
    assert wide.low < narrow.low < 2 < narrow.high < wide.high
    assert narrow.high - 2 == pytest.approx(t.ppf(0.75, 6.125) * np.sqrt(7 / 3))


def test_vectors_and_matrices_are_pooled_one_by_one():
    rng = np.random.default_rng(0)
    Q, roots = rng.normal(size=(6, 3)), rng.normal(size=(6, 3, 3))
    V = roots @ roots.transpose(0, 2, 1)
    squares = np.diagonal(V, axis1=1, axis2=2)
    by_vector, by_matrix = unmix.pool(Q, squares, df_complete=50), unmix.pool(Q, V, df_complete=50)
    for j in range(3):
        one = unmix.pool(Q[:, j], squares[:, j], df_complete=50)
        for name in ("estimate", "standard_error", "low", "high", "df", "missing_information"):
            value = getattr(one, name)
            assert getattr(by_vector, name)[j] == pytest.approx(value)
            assert getattr(by_matrix, name)[j] == pytest.approx(value)
    np.testing.assert_allclose(by_matrix.between, np.cov(Q.T))
    np.testing.assert_allclose(by_matrix.total, V.mean(axis=0) + (1 + 1 / 6) * np.cov(Q.T))


def test_nothing_missing():
    found = unmix.pool([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    assert (found.between, found.missing_information, found.df) == (0.0, 0.0, np.inf)
    assert found.high == pytest.approx(2 + 1.959964, abs=1e-6)
    assert unmix.pool([2.0, 2.0], [1.0, 1.0], df_complete=10).df == pytest.approx(10 * 11 / 13)


def test_no_variance_at_all():
    found = unmix.pool([2.0, 2.0], [0.0, 0.0])
    assert (found.low, found.high, found.missing_information) == (2.0, 2.0, 0.0)


def test_an_interval_without_degrees_of_freedom_is_the_line():
    found = unmix.pool([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], df_complete=10)
    assert (found.estimate, found.low, found.high, found.df) == (2.0, -np.inf, np.inf, 0.0)
    both = unmix.pool([[1.0, 1.0], [2.0, 2.0]], [[0.0, 1.0], [0.0, 1.0]], df_complete=10)
    assert both.low[0] == -np.inf
    assert np.isfinite(both.low[1])


@pytest.mark.parametrize(
    ("estimates", "variances", "more", "word"),
    [
        ([1.0], [1.0], {}, "at least 2"),
        ([1.0, 2.0], [1.0], {}, "shape"),
        ([1.0, np.nan], [1.0, 1.0], {}, "finite"),
        ([1.0, 2.0], [1.0, -1.0], {}, "squared standard errors"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1.0}, "level=1.0"),
        ([1.0, 2.0], [1.0, 1.0], {"df_complete": 0}, "df_complete=0"),
        (3.0, 1.0, {}, "shape"),
    ],
)
def test_errors_name_the_remedy(estimates, variances, more, word):
    with pytest.raises(ValueError, match=word):
        unmix.pool(estimates, variances, **more)
