"""Measures of roles, by hand and on planted ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from unmix import RoleCover
from unmix.validate import match_roles, role_errors, role_generalisation, role_stability

X = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]])
U = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
Z = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]])


def test_errors_by_hand():
    found = role_errors(X, U, Z)
    assert found.deviation == pytest.approx(1 / 12)  # (1, 2) is lost
    assert found.coverage == pytest.approx(6 / 7)
    assert found.over_grants == 0
    assert found.n_roles == 2  # nobody has the third
    assert found.complexity == 2 + 3 + 4
    more = role_errors(X, U, Z + np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]))
    assert more.over_grants == pytest.approx(2 / 7)
    assert more.deviation == pytest.approx(3 / 12)
    assert role_errors(sp.csr_array(X), U, Z) == found
    holes = X.astype(float)
    holes[1, 2] = np.nan
    assert role_errors(holes, U, Z)[:3] == (0, 1, 0)


def test_matching_is_one_to_one_and_counts_what_is_missing():
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    same = match_roles(truth[::-1], truth)
    assert same.found.tolist() == [1, 0]
    assert same.mismatch == 0
    one = match_roles(truth[:1], truth)
    assert one.found.tolist() == [0, -1]
    assert one.distance.tolist() == [0, 0.5]
    assert one.mismatch == 0.25
    assert match_roles(np.vstack([truth, [[1, 0, 0, 0]]]), truth).mismatch == pytest.approx(1 / 12)
    rng = np.random.default_rng(0)
    many = rng.random((300, 200)) < 0.2
    order = rng.permutation(300)
    assert match_roles(many[order], many).mismatch == 0  # by packed bits


def planted():
    rng = np.random.default_rng(0)
    roles = np.kron(np.eye(5, dtype=int), np.ones((1, 8), int))
    return (roles[rng.integers(5, size=200)] | roles[rng.integers(5, size=200)]).astype(float), roles


def test_roles_tell_what_new_users_have_from_a_part_of_it():
    rows, _ = planted()
    model = RoleCover(random_state=0).fit(rows[:150])
    told = role_generalisation(model, rows[150:], seen=0.5, random_state=0)
    assert told.error < 0.03
    assert told.found > 0.95
    assert told.precision > 0.9
    with pytest.raises(ValueError, match="between 0 and 1"):
        role_generalisation(model, rows, seen=1.0)


def test_planted_roles_return_and_accidents_do_not():
    rows, roles = planted()
    rows[0] = 0
    rows[0, [0, 9, 17]] = 1  # one user's own
    model = RoleCover(random_state=0).fit(rows)
    stability = role_stability(model, rows, n_resamples=5, share=0.5, random_state=0)
    own = np.array([any(np.array_equal(role, truth) for truth in roles) for role in model.roles_.astype(int)])
    assert own.sum() == 5
    assert (stability[own] > 0.9).all()
    assert (stability[~own] < 0.9).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="X holds 2"):
        role_errors(2 * X, U, Z)
    with pytest.raises(ValueError, match=r"give \(n, d\), \(k, d\) and \(n, k\)"):
        role_errors(X, U, Z.T[:2])
    with pytest.raises(ValueError, match="give the same permissions"):
        match_roles(U, U[:, :3])
    with pytest.raises(ValueError, match="roles is an array"):
        role_errors(X, U[0], Z)
    with pytest.raises(ValueError, match="n_resamples=0"):
        role_stability(RoleCover(), X, n_resamples=0)
