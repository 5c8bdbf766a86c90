"""The discrete basis problem: ASSO, written again with plain loops."""

import numpy as np
import pytest

from unmix import DiscreteBasis


def asso(X, k, confidences, bonus, price):
    """Roles and assignments by the definition, cell by cell; NaN counts for nothing."""
    n, d = X.shape
    candidates = set()
    for i in range(d):
        mine = X[X[:, i] == 1]
        for tau in confidences:
            role = []
            for j in range(d):
                known = mine[~np.isnan(mine[:, j]), j]
                role.append(bool(len(known)) and known.mean() >= tau - 1e-12)
            if any(role):
                candidates.add(tuple(role))
    covered, roles, assignments = np.zeros((n, d), bool), [], []
    for _ in range(k):
        best = (0.0, None, None)
        for role in sorted(candidates):
            role = np.array(role)
            value = np.where(covered, 0, np.where(X == 1, bonus, np.where(X == 0, -price, 0)))
            gain = value[:, role].sum(axis=1)
            total = gain[gain > 0].sum()
            if total > best[0] + 1e-9:
                best = (total, role, gain > 0)
        if best[1] is None:
            break
        roles.append(best[1])
        assignments.append(best[2])
        covered |= np.outer(best[2], best[1])
    return np.array(roles), np.array(assignments).T


def table(seed, n=60, d=9, holes=0.0):
    rng = np.random.default_rng(seed)
    X = ((rng.random((n, 4)) < 0.4) @ (rng.random((4, d)) < 0.4)) ^ (rng.random((n, d)) < 0.1)
    return np.where(rng.random((n, d)) < holes, np.nan, X.astype(float))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize(("confidence", "bonus", "price"), [(0.6, 1, 1), ([0.3, 0.5, 0.8], 1, 2), (0.5, 3, 1)])
def test_roles_are_those_of_the_definition(seed, holes, confidence, bonus, price):
    X = table(seed, holes=holes)
    model = DiscreteBasis(3, confidence=confidence, bonus=bonus, price=price).fit(X)
    roles, assignments = asso(X, 3, np.atleast_1d(confidence), bonus, price)
    np.testing.assert_array_equal(model.roles_[: len(roles)], roles)
    np.testing.assert_array_equal(model.assignments_[:, : len(roles)], assignments)
    assert not model.roles_[len(roles) :].any()
    np.testing.assert_array_equal(model.transform(X), model.assignments_)
    product = model.assignments_ @ model.roles_
    errors = bonus * ((X == 1) & ~product).sum() + price * ((X == 0) & product).sum()
    assert -model.score(X) * len(X) == pytest.approx(errors)


def test_a_price_that_is_high_gives_nothing_extra():
    X = table(0)
    product = DiscreteBasis(5, price=100).fit(X).reconstruct(X) > 0.5
    assert not (product & (X == 0)).any()


def test_weights_count_rows():
    X, w = table(1), np.random.default_rng(0).integers(0, 3, 60)
    one = DiscreteBasis(3).fit(X, sample_weight=w)
    np.testing.assert_array_equal(one.roles_, DiscreteBasis(3).fit(np.repeat(X, w, axis=0)).roles_)


def test_roles_that_nothing_is_left_for_are_told():
    X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 5, axis=0)
    with pytest.warns(UserWarning, match=r"2 of 4 roles are empty"):
        model = DiscreteBasis(4).fit(X)
    assert model.result_ == "converged"
    assert not model.roles_[2:].any()


@pytest.mark.parametrize("bad", [[0.5, 1.5], [[0.5]], []])
def test_confidences_that_are_none(bad):
    with pytest.raises(ValueError, match=r"confidence=.*: give numbers above 0 and at most 1"):
        DiscreteBasis(2, confidence=bad).fit(table(0))
    with pytest.raises(ValueError, match="'confidence' parameter"):
        DiscreteBasis(2, confidence=1.5).fit(table(0))
