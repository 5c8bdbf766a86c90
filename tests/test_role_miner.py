"""Role mining by common permissions, beside every intersection there is."""

from itertools import combinations

import numpy as np
import pytest

from unmix import RoleMiner


def closed(X, most):
    """Intersections of at most so many rows, the empty one left out."""
    rows = {frozenset(np.flatnonzero(x == 1)) for x in X}
    several = (some for m in range(1, most + 1) for some in combinations(sorted(rows, key=sorted), m))
    out = {frozenset.intersection(*some) for some in several}
    return out - {frozenset()}


def most_covered(X, sets, covered):
    """How many cells that are not covered the best of some sets would cover."""
    gains = [0]
    for s in sets:
        rows = [i for i, x in enumerate(X) if not (x[list(s)] == 0).any()]
        gains.append(int(((X == 1) & ~covered)[np.ix_(rows, sorted(s))].sum()))
    return max(gains)


def table(seed, n=14, d=7, holes=0.0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 3)) < 0.5) @ (rng.random((3, d)) < 0.5) | (rng.random((n, d)) < 0.05)
    return np.where(rng.random((n, d)) < holes, np.nan, X.astype(float))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("method", "most"), [("fast", 2), ("complete", 14)])
def test_candidates_are_all_intersections(seed, method, most):
    from unmix.boolean.role_miner import Intersections
    from unmix.engine.block import Block

    X = table(seed)
    model = RoleMiner(3, method=method).fit(X)
    found = Intersections(model).start(None, Block(X), np.random.default_rng(0)).sets
    wanted = closed(X, min(most, len({*map(tuple, X)})))
    assert {frozenset(np.flatnonzero(s)) for s in found} == wanted
    assert len(found) == len(wanted)
    worth = [s.sum() * sum((x[s > 0] == 1).all() for x in X) for s in found]
    assert (np.diff(worth) <= 0).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_roles_cover_most_and_give_nothing_extra(seed, holes):
    X = table(seed, holes=holes)
    model = RoleMiner(3, method="complete").fit(X)
    product = model.assignments_ @ model.roles_
    assert not (product & (X == 0)).any()
    covered = np.zeros(X.shape, bool)
    for z, role in zip(model.assignments_.T, model.roles_, strict=True):
        best, before = most_covered(X, closed(X, 14), covered), covered
        covered = covered | np.outer(z, role)
        assert ((X == 1) & covered & ~before).sum() == best


def test_noise_makes_many_candidates_and_the_limit_holds():
    from unmix.boolean.role_miner import Intersections
    from unmix.engine.block import Block

    X = (np.random.default_rng(0).random((200, 30)) < 0.5).astype(float)
    model = RoleMiner(3, method="complete", max_candidates=300).fit(X)
    assert len(Intersections(model).start(None, Block(X), np.random.default_rng(0)).sets) == 300


def test_a_row_counts_as_often_as_it_weighs():
    X = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
    assert RoleMiner(1).fit(X).roles_.tolist() == [[True, True, True, False, False]]
    assert RoleMiner(1).fit(X, sample_weight=[1, 2]).roles_.tolist() == [[False, False, False, True, True]]


def test_other_numbers_are_refused():
    with pytest.raises(ValueError, match=r"RoleMiner needs cells of 0, 1 or NaN.*row 1, column 0 holds 2"):
        RoleMiner(1).fit([[1, 0], [2, 1]])
