"""Rounded singular vectors, beside NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

from unmix import RoundedSVD
from unmix.boolean._planted import apart, overlapping


def table(seed=0, n=80, d=12):
    rng = np.random.default_rng(seed)
    return ((rng.random((n, 3)) < 0.4) @ (rng.random((3, d)) < 0.4)).astype(float)


@pytest.mark.parametrize("sign", ["sum", "largest"])
def test_axes_are_right_singular_vectors_with_the_sign_that_is_asked_for(sign):
    X = table()
    model = RoundedSVD(3, sign=sign, tol=0.0, max_iter=20).fit(X)
    V = np.linalg.svd(X)[2][:3]
    right = V.sum(axis=1) if sign == "sum" else V[np.arange(3), np.abs(V).argmax(axis=1)]
    V = V * np.sign(right)[:, None]
    np.testing.assert_allclose(model.axes_, V, atol=1e-6)
    roles = 0.5 * V.max(axis=1, keepdims=True) < V
    np.testing.assert_array_equal(model.roles_, roles)
    alone = (roles * V).sum(axis=1)
    np.testing.assert_array_equal(model.assignments_, (0.5 * alone < X @ V.T) & (alone > 0.0))


def test_thresholds_are_what_they_say():
    X = table()
    low, high = (RoundedSVD(2, role_threshold=t).fit(X) for t in (0.1, 0.9))
    assert high.roles_.sum() < low.roles_.sum()
    assert (low.roles_ | ~high.roles_).all()
    few, many = (RoundedSVD(2, assignment_threshold=t).fit(X) for t in (0.9, 0.1))
    assert few.assignments_.sum() < many.assignments_.sum()


def test_unknown_cells_are_completed_not_taken_for_zeros():
    X, roles, assignments = apart(np.random.default_rng(0))
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.4, np.nan, X)
    model = RoundedSVD(3).fit(holes)
    np.testing.assert_array_equal(model.roles_, roles)
    assert (model.assignments_ == assignments).mean() > 0.98
    objective = [s.objective for s in model.trace_]
    assert (np.diff(objective) <= 1e-9).all()


def test_sparse_rows_give_the_same():
    X = table()
    one, other = RoundedSVD(3).fit(X), RoundedSVD(3).fit(sp.csr_array(X))
    np.testing.assert_allclose(other.axes_, one.axes_, atol=1e-9)
    np.testing.assert_array_equal(other.assignments_, one.assignments_)


def test_it_is_a_poor_decomposition_where_roles_share_permissions():
    """The weakness that the notes name: singular vectors are orthogonal, roles are not."""
    X, roles, _ = overlapping(np.random.default_rng(0))
    model = RoundedSVD(3).fit(X)
    assert {*map(tuple, model.roles_.tolist())} != {*map(tuple, roles.tolist())}


def test_more_roles_than_columns_are_refused():
    with pytest.raises(ValueError, match=r"n_components=5 is more than the 3 columns"):
        RoundedSVD(5).fit(np.ones((9, 3)))
    with pytest.raises(ValueError, match=r"RoundedSVD needs cells of 0, 1 or NaN"):
        RoundedSVD(1).fit([[0.5, 1.0], [1.0, 0.0]])
