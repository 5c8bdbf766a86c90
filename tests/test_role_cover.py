"""Exact role covers against brute force, planted roles and the shared data."""

import gzip
import itertools
import os
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import unmix
from unmix import RoleCover
from unmix.boolean._covering import made, reduced
from unmix.boolean._problem import grown, pose, strangers
from unmix.boolean._truth import Packed
from unmix.kernels import bicliques, bits, covering
from unmix.validate import match_roles

DATA = Path(os.environ.get("UNMIX_DATA", "../shared/data"))


def table(n, d, seed=0, p=0.4):
    return np.random.default_rng(seed).random((n, d)) < p


def union(n, d, k, seed=0, most=3, size=0.15):
    """Rows that are unions of up to `most` of k roles."""
    rng = np.random.default_rng(seed)
    roles = rng.random((k, d)) < size
    Z = np.zeros((n, k), bool)
    for i in range(n):
        Z[i, rng.choice(k, rng.integers(1, most + 1), replace=False)] = True
    return (Z.astype(int) @ roles) > 0, roles


def all_bicliques(X):
    """Every maximal biclique with users and permissions, by the closures of all sets of users."""
    found = set()
    for r in range(1, len(X) + 1):
        for users in itertools.combinations(range(len(X)), r):
            B = X[list(users)].all(axis=0)
            if B.any():
                found.add((tuple(X[:, B].all(axis=1)), tuple(B)))
    return found


def fewest(X):
    """The least number of bicliques that cover X, by trying all."""
    every = [np.outer(A, B) for A, B in all_bicliques(X)]
    for k in range(len(every) + 1):
        for some in itertools.combinations(every, k):
            if np.array_equal(np.any(some, axis=0) if k else np.zeros_like(X), X):
                return k
    raise AssertionError


def exact(model, X):
    """Nothing is lost and nothing is extra, by the assignments of the fit."""
    given = (model.assignments_.astype(int) @ model.roles_) > 0
    known = ~np.isnan(X) if X.dtype.kind == "f" else np.ones(X.shape, bool)
    return np.array_equal(given[known], (np.nan_to_num(X.astype(float)) > 0)[known])


# ---------------------------------------------------------------- pieces


@pytest.mark.parametrize("seed", range(5))
def test_all_maximal_bicliques_are_listed_once(seed):
    X = table(8, 10, seed)
    A, B, every = bicliques.listed(bits.pack(X), bits.pack(X.T), 10_000, 10**9)
    pairs = [(tuple(a), tuple(b)) for a, b in zip(bits.unpack(A, 8), bits.unpack(B, 10), strict=True) if b.any()]
    assert every
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == all_bicliques(X)


def test_listing_ends_at_its_limits():
    X = table(40, 40)
    assert not bicliques.listed(bits.pack(X), bits.pack(X.T), 50, 10**9)[2]
    A, B, every = bicliques.listed(bits.pack(X), bits.pack(X.T), 10**6, 10_000)
    assert not every
    assert len(A) == len(B)


def test_chains_end_in_bicliques_that_hold_their_pair_and_weigh_what_they_say():
    X = table(30, 40, 3)
    W = np.random.default_rng(0).random(X.shape) * X
    u, p = np.nonzero(X)
    A, worth = bicliques.paths(u, p, W, bits.pack(X), bits.pack(X.T))
    users = bits.unpack(A, 30)
    for t in range(len(u)):
        B = X[users[t]].all(axis=0)
        assert users[t, u[t]]
        assert B[p[t]]
        assert W[users[t]][:, B].sum() >= worth[t] - 1e-9
        assert worth[t] >= W[X[:, p[t]], p[t]].sum() - 1e-9  # the beginning of the chain


def test_covers_reduce_without_changing_their_least_number():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        M = rng.random((12, 15)) < 0.25  # sets × elements
        M[0] |= ~M.any(axis=0)
        cover, left, taken = reduced(made(sp.csr_array(M.astype(np.int8)), np.ones(12)))
        whole = next(k for k in range(13) for s in itertools.combinations(range(12), k) if M[list(s)].any(axis=0).all())
        small, rest = cover.down.toarray() > 0, len(left)
        least = next(
            k
            for k in range(rest + 1)
            for s in itertools.combinations(range(rest), k)
            if small[list(s)].any(axis=0).all()
        )
        assert least + len(taken) == whole


def test_local_search_finds_the_least_cover_of_small_ones():
    for seed in range(5):
        M = np.random.default_rng(seed).random((14, 20)) < 0.2
        M[0] |= ~M.any(axis=0)
        cover = made(sp.csr_array(M.astype(np.int8)), np.ones(14))
        first = covering.greedy(*cover.arrays)
        assert M[first].any(axis=0).all()
        state = np.array([7], np.uint64)
        best = covering.search(*cover.arrays, first, np.ones(20), state, 10**6)
        assert M[best].any(axis=0).all()
        least = next(k for k in range(15) for s in itertools.combinations(range(14), k) if M[list(s)].any(axis=0).all())
        assert best.sum() == least


@pytest.mark.parametrize("seed", range(6))
def test_dropped_pairs_are_covered_wherever_the_others_are(seed):
    X = table(5, 6, seed, 0.5)
    problem = pose(Packed(bits.pack(X), None), None, 6, np.zeros((0, 6), bool), np.zeros((0, 2), np.int64))
    small = bits.unpack(problem.R, len(problem.C))
    kept = np.zeros_like(small)
    kept[problem.user, problem.column] = True
    every = [np.outer(A, B) for A, B in all_bicliques(small)]
    for t in range(1, min(len(every), 5) + 1):
        for some in itertools.combinations(every, t):
            together = np.any(some, axis=0)
            if together[kept].all():
                assert together[small].all()
    assert len(strangers(problem)) <= fewest(X)


def test_roles_grow_from_pairs_that_no_role_joins():
    X, _ = union(150, 60, 10, seed=11, most=4)
    problem = pose(Packed(bits.pack(X), None), None, 60, np.zeros((0, 60), bool), np.zeros((0, 2), np.int64))
    alone = strangers(problem)
    small = bits.unpack(problem.R, len(problem.C))
    for s, t in itertools.combinations(alone, 2):
        u, p, v, q = problem.user[s], problem.column[s], problem.user[t], problem.column[t]
        assert not (small[u, q] and small[v, p])
    users, permissions = grown(problem, alone)
    assert len(users) == len(permissions) == len(alone) <= 10


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize("seed", range(12))
def test_fewest_roles_are_those_of_brute_force(seed):
    X = table(6, 7, seed, 0.5)
    model = RoleCover(random_state=0).fit(X)
    assert exact(model, X)
    assert model.optimal_
    assert len(model.roles_) == fewest(X) == model.lower_bound_ == model.cost_


def test_planted_roles_come_back():
    X, roles = union(300, 60, 10, seed=1, most=2)
    model = RoleCover(random_state=0).fit(X)
    assert exact(model, X)
    assert model.optimal_
    assert len(model.roles_) <= 10
    assert match_roles(model.roles_, roles).mismatch < 0.02


@pytest.mark.filterwarnings("ignore:.*fewer than")
def test_generated_candidates_where_there_are_too_many_to_list():
    X, _ = union(120, 80, 20, seed=2, most=4)
    listed = RoleCover(random_state=0).fit(X)
    model = RoleCover(max_candidates=50, time_limit=3, random_state=0).fit(X)
    assert exact(model, X)
    assert len(model.roles_) <= 1.05 * len(listed.roles_)
    assert model.lower_bound_ <= listed.lower_bound_


def test_unknown_cells_may_be_granted_and_need_not():
    X = np.array([[1, 1, np.nan, 0], [1, 1, 1, 0], [0, 0, np.nan, 1]])
    model = RoleCover(random_state=0).fit(X)
    assert exact(model, X)
    assert len(model.roles_) == 2
    assert model.impute(X)[0, 2] == 1
    X, _ = union(150, 40, 8, seed=3)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X.astype(float))
    model = RoleCover(random_state=0).fit(holes)
    assert exact(model, holes)
    assert len(model.roles_) <= len(RoleCover(random_state=0).fit(X).roles_)


def test_what_nobody_is_known_to_have_is_in_no_role():
    X = np.array([[1.0, np.nan, 0], [1, 0, 0], [np.nan, np.nan, 1]])
    assert not RoleCover(random_state=0).fit(X).roles_[:, 1].any()


def test_fixed_roles_stay_and_others_cover_what_they_leave():
    X, _ = union(100, 30, 6, seed=4)
    free = RoleCover(random_state=0).fit(X)
    held = RoleCover(fixed=free.roles_[:2], random_state=0).fit(X)
    np.testing.assert_array_equal(held.roles_[:2], free.roles_[:2])
    assert exact(held, X)
    assert held.optimal_
    assert len(held.roles_) == len(free.roles_)
    own = X[:1].astype(int)
    more = RoleCover(fixed=np.vstack([own, own]), random_state=0).fit(X)
    assert exact(more, X)
    assert more.lower_bound_ >= 2
    extra = np.ones((1, 30), int)
    with pytest.warns(UserWarning, match="nobody has them"):
        model = RoleCover(fixed=extra, random_state=0).fit(X)
    assert not model.assignments_[:, 0].any()
    assert exact(model, X)


@pytest.mark.parametrize("seed", range(4))
def test_permissions_held_apart_are_in_no_role_together(seed):
    X = table(6, 5, seed, 0.6)
    X[0] = True
    apart = [(0, 1), (2, 4), (1, 3)]
    model = RoleCover(apart=apart, random_state=0).fit(X)
    assert exact(model, X)
    assert model.optimal_
    for p, q in apart:
        assert not (model.roles_[:, p] & model.roles_[:, q]).any()
    every = []
    for r in range(1, 6):
        for some in itertools.combinations(range(5), r):
            if not any(p in some and q in some for p, q in apart):
                A = X[:, some].all(axis=1)
                every += [np.outer(A, np.isin(np.arange(5), some))] if A.any() else []
    every = [e for e in every if not any((e <= o).all() and (e != o).any() for o in every)]
    k = len(model.roles_)
    assert not any(np.array_equal(np.any(s, axis=0), X) for s in itertools.combinations(every, k - 1))


def test_columns_are_held_apart_by_name():
    import pandas as pd

    X = pd.DataFrame([[1, 1, 0], [1, 1, 1]], columns=["order", "approve", "read"])
    model = RoleCover(apart=[("order", "approve")], random_state=0).fit(X)
    assert not (model.roles_[:, 0] & model.roles_[:, 1]).any()
    with pytest.raises(ValueError, match="apart names column 'pay'"):
        RoleCover(apart=[("order", "pay")]).fit(X)


def test_prices_weigh_roles_against_assignments_and_permissions():
    X, _ = union(80, 30, 6, seed=5)
    few = RoleCover(random_state=0).fit(X)
    cheap = RoleCover(prices=(1.0, 1.0, 1.0), random_state=0).fit(X)
    assert exact(cheap, X)

    def complexity(m):
        return len(m.roles_) + m.assignments_.sum() + m.roles_.sum()

    assert complexity(cheap) <= complexity(few)
    assert cheap.lower_bound_ <= complexity(cheap) <= cheap.cost_ + 1e-9
    assert not cheap.optimal_ or cheap.cost_ == pytest.approx(cheap.lower_bound_)


def test_new_users_get_roles_that_grant_nothing_extra():
    X, _ = union(200, 40, 8, seed=6)
    model = RoleCover(random_state=0).fit(X[:150])
    Z = model.transform(X[150:])
    given = (Z @ model.roles_) > 0
    assert not (given & ~X[150:]).any()
    np.testing.assert_array_equal(model.reconstruct(X[150:]) > 0, given)
    assert model.score(X[:150]) == 0
    assert model.score(X[150:]) == pytest.approx(-(X[150:] & ~given).sum(axis=1).mean())


def test_no_role_is_given_that_the_others_make_needless():
    X, _ = union(120, 40, 8, seed=7)
    model = RoleCover(random_state=0).fit(X)
    for i in range(len(X)):
        mine = np.flatnonzero(model.assignments_[i])
        for k in mine:
            assert not np.array_equal(model.roles_[np.setdiff1d(mine, k)].any(axis=0), X[i])


def test_the_order_of_rows_and_of_the_input_does_not_matter():
    X, _ = union(120, 50, 9, seed=8)
    one = RoleCover(random_state=0).fit(X)
    order = np.random.default_rng(0).permutation(len(X))
    for other in (X[order], sp.csr_array(X[order]), X[order].astype(np.float32), X[order].astype(int)):
        np.testing.assert_array_equal(RoleCover(random_state=0).fit(other).roles_, one.roles_)


def test_hostile_tables():
    assert RoleCover().fit(np.zeros((4, 3))).roles_.shape == (0, 3)
    assert RoleCover().fit(np.ones((4, 3))).roles_.tolist() == [[True, True, True]]
    assert RoleCover().fit(np.zeros((4, 3))).transform(np.zeros((2, 3))).shape == (2, 0)
    with pytest.raises(ValueError, match=r"row 1, column 0 holds 2.*threshold"):
        RoleCover().fit([[0, 1], [2, 1]])
    with pytest.raises(ValueError, match=r"row 1, column 0 holds 2"):
        RoleCover().fit(sp.csr_array([[0.0, 1], [2, 1]]))
    with pytest.raises(ValueError, match=r"row 0, column 1 holds -1"):
        RoleCover().fit([[0, 1], [1, 1]]).transform([[0, -1]])
    for bad in ((1, 1), (0, 1, 1), (1, -1, 0), (1, "x", 0)):
        with pytest.raises(ValueError, match="three numbers"):
            RoleCover(prices=bad).fit(np.eye(3))
    for bad in ([[1, 0]], [1, 0, 1]):
        with pytest.raises(ValueError, match="a column for each of the 3 columns"):
            RoleCover(fixed=bad).fit(np.eye(3))
    with pytest.raises(ValueError, match="other values than 0 and 1"):
        RoleCover(fixed=[[1, 2, 0]]).fit(np.eye(3))
    for bad in ([(0, 0)], [(0, 1, 2)]):
        with pytest.raises(ValueError, match="pairs of two different columns"):
            RoleCover(apart=bad).fit(np.eye(3))
    with pytest.raises(ValueError, match="apart names column 3"):
        RoleCover(apart=[(0, 3)]).fit(np.eye(3))
    with pytest.raises(ValueError, match="threshold=-1"):
        RoleCover(threshold=-1.0).fit(sp.csr_array(np.eye(3)))


def test_a_limit_of_time_leaves_a_cover():
    X = table(60, 60, 9, 0.5)
    with pytest.warns(UserWarning, match="is not proved"):
        model = RoleCover(max_candidates=10, time_limit=0.01, random_state=0).fit(X)
    assert exact(model, X)
    assert model.lower_bound_ <= len(model.roles_)


def test_saved_and_told(tmp_path):
    X, _ = union(50, 30, 5, seed=10)
    model = RoleCover(fixed=X[:1].astype(int), apart=[(1, 2)], random_state=0).fit(X)
    model.save(tmp_path / "roles")
    again = unmix.load(tmp_path / "roles")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.optimal_ == model.optimal_
    assert "roles" in model.findings()[0]


# ---------------------------------------------------------------- real access lists


def access_list(name):
    path = DATA / "hp-roles" / f"{name}.txt.gz"
    if not path.exists():
        pytest.skip("the shared data are not there")
    u, p = np.loadtxt(path, dtype=int).T - 1
    return sp.csr_array((np.ones(len(u)), (u, p)))


@pytest.mark.parametrize(
    ("name", "least"), [("hc", 14), ("domino", 20), ("emea", 34), ("apj", 453), ("fire1", 64), ("americas_small", 178)]
)
def test_least_roles_of_real_access_lists_are_proved(name, least):
    X = access_list(name)
    began = time.perf_counter()
    model = RoleCover(random_state=0).fit(X)
    assert time.perf_counter() - began < 300
    assert len(model.roles_) == least
    assert model.optimal_
    assert exact(model, X.toarray())


def planted(name):
    path = DATA / "rmplib" / f"{name}.rmp.gz"
    if not path.exists():
        pytest.skip("the shared data are not there")
    with gzip.open(path, "rt", encoding="utf-8-sig") as f:
        rows = [line.split() for line in f if line.startswith("u")]
    i, j = np.array([(int(r[0][1:]), int(p[1:])) for r in rows for p in r[1:]]).T
    return sp.csr_array((np.ones(len(i)), (i, j)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most", "seconds"),
    [
        ("PLAIN_small_01", 25, 60),
        ("PLAIN_small_03", 25, 60),
        ("PLAIN_small_05", 50, 60),
        ("PLAIN_small_07", 30, 60),
        ("PLAIN_small_08", 50, 60),
        ("PLAIN_medium_01", 1.03 * 150, 60),
        ("PLAIN_medium_03", 1.03 * 200, 8),
        ("PLAIN_medium_05", 1.03 * 200, 60),
        ("PLAIN_large_01", 1.03 * 250, 60),
        ("PLAIN_large_03", 1.03 * 500, 8),
        ("COMP_01.1", 1.05 * 400, 60),
        ("COMP_01.3", 1.05 * 400, 8),
    ],
)
@pytest.mark.filterwarnings("ignore:.*fewer than")
def test_planted_problems_of_a_library_are_covered_by_as_few_roles_as_they_were_made_of(name, most, seconds):
    X = planted(name)
    began = time.perf_counter()
    model = RoleCover(time_limit=seconds, random_state=0).fit(X)
    assert time.perf_counter() - began < 120
    assert len(model.roles_) <= most
    assert exact(model, X.toarray())
