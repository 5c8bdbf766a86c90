"""Multi-assignment clustering: its equations by brute force, planted roles, and what it says of cells."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import unmix
from unmix import MultiAssignmentClustering
from unmix.boolean._sets import count, membership, products, subsets


def planted(noise=0.2, r=0.5, n=400, d=30, k=3, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    roles = rng.random((k, d)) < density
    sets = np.array([np.isin(np.arange(k), s) for m in (1, 2) for s in combinations(range(k), m)])
    assignments = sets[np.arange(n) % len(sets)]
    truth = assignments @ roles
    wrong = rng.random((n, d)) < noise
    X = np.where(wrong, rng.random((n, d)) < r, truth).astype(float)
    return X, roles, assignments, wrong


def same_roles(a, b):
    return {*map(tuple, a.tolist())} == {*map(tuple, b.tolist())}


def brute(roles, rate, density, x, most):
    """log p(x) of one row by the formula of the notes, and p(L | x) for every set L."""
    k = len(roles)
    sets = [s for m in range(most + 1) for s in combinations(range(k), m)]
    likelihood = []
    for s in sets:
        p = 1.0
        for j, v in enumerate(x):
            if not np.isnan(v):
                beta = np.prod([1.0 - roles[a, j] for a in s])
                one = rate * density + (1 - rate) * (1 - beta)
                zero = rate * (1 - density) + (1 - rate) * beta
                p *= one if v else zero
        likelihood.append(p / len(sets))
    total = sum(likelihood)
    return np.log(total), np.array(likelihood) / total, sets


@pytest.fixture(scope="module")
def fitted():
    X, roles, assignments, wrong = planted()
    return MultiAssignmentClustering(3, random_state=0).fit(X), X, roles, assignments, wrong


# ---------------------------------------------------------------- sets


def test_sets_are_all_of_at_most_so_many_roles():
    sets = membership(4, 2)
    assert len(sets) == count(4, 2) == 1 + 4 + 6
    assert {tuple(s) for s in sets} == {
        tuple(np.isin(range(4), s)) for m in (0, 1, 2) for s in combinations(range(4), m)
    }
    assert not sets[0].any()
    assert membership(2, 5).shape == (4, 2)


def test_products_leave_a_role_out():
    beta = np.random.default_rng(0).random((3, 5))
    for i, s in enumerate(membership(3, 3)):
        np.testing.assert_allclose(products(beta, subsets(3, 3))[i], beta[s].prod(axis=0))
        kept = s & (np.arange(3) != 1)
        np.testing.assert_allclose(products(beta, subsets(3, 3), without=1)[i], beta[kept].prod(axis=0))


# ---------------------------------------------------------------- the equations


def test_the_density_is_that_of_the_notes(fitted):
    model, X, *_ = fitted
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)[:20]
    for rows in (X[:20], holes):
        wanted = [brute(model.roles_, model.noise_rate_, model.noise_density_, x, 2)[0] for x in rows]
        np.testing.assert_allclose(model.score_samples(rows), wanted, rtol=1e-9)
    assert model.score_samples(np.full((1, X.shape[1]), np.nan)) == pytest.approx([0.0])


def test_probabilities_of_roles_and_cells_follow_by_bayes(fitted):
    model, X, *_ = fitted
    rate, r = model.noise_rate_, model.noise_density_
    x = X[:5].copy()
    x[:, ::4] = np.nan
    Z, noise, contrary = model.transform(x), model.noise_probability(x), model.noise_probability(x, contrary=True)
    mean, deviation = model.impute(x, return_std=True)
    for i, row in enumerate(x):
        _, gamma, sets = brute(model.roles_, rate, r, row, 2)
        np.testing.assert_allclose(Z[i], [sum(g for g, s in zip(gamma, sets, strict=True) if k in s) for k in range(3)])
        granted = np.array([model.roles_[list(s)].any(axis=0) for s in sets])
        for j, v in enumerate(row):
            p_one = rate * r + (1 - rate) * granted[:, j]
            if np.isnan(v):
                assert np.isnan(noise[i, j])
                assert mean[i, j] == pytest.approx(gamma @ p_one)
                assert deviation[i, j] == pytest.approx(np.sqrt(gamma @ p_one * (1 - gamma @ p_one)))
                continue
            by_noise = rate * (r if v else 1 - r)
            p = p_one if v else 1 - p_one
            assert noise[i, j] == pytest.approx(gamma @ (by_noise / p))
            assert contrary[i, j] == pytest.approx(gamma @ (granted[:, j] != v))


def test_surprise_is_minus_the_log_probability_given_the_rest(fitted):
    model, X, *_ = fitted
    x = X[:4].copy()
    x[0, 3] = np.nan
    told = model.surprise(x)
    assert np.isnan(told[0, 3])
    for i, j in ((0, 0), (1, 5), (3, 29)):
        rest = x[i : i + 1].copy()
        rest[0, j] = np.nan
        wanted = model.score_samples(rest) - model.score_samples(x[i : i + 1])
        assert told[i, j] == pytest.approx(wanted[0])


def test_noise_is_at_the_maximum_of_the_likelihood(fitted):
    model, X, *_ = fitted

    def likelihood(rate, density):
        return np.mean([brute(model.roles_, rate, density, x, 2)[0] for x in X[::4]])

    model = MultiAssignmentClustering(3, random_state=0, tol=1e-12).fit(X[::4])
    best = likelihood(model.noise_rate_, model.noise_density_)
    assert best == pytest.approx(model.score(X[::4]))
    for step in (-0.02, 0.02):
        assert likelihood(model.noise_rate_ + step, model.noise_density_) < best
        assert likelihood(model.noise_rate_, model.noise_density_ + step) < best


def test_draws_have_the_shares_that_are_expected(fitted):
    model, X, *_ = fitted
    x = X[:3].copy()
    x[:, :10] = np.nan
    draws = model.impute(x, n_draws=400, random_state=0)
    assert {*np.unique(draws)} == {0.0, 1.0}
    np.testing.assert_allclose(draws.mean(axis=0), model.impute(x), atol=0.12)


# ---------------------------------------------------------------- planted roles


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_planted_roles_and_noise_are_found(noise, seed):
    X, roles, assignments, wrong = planted(noise, n=600, seed=seed)
    model = MultiAssignmentClustering(3, random_state=0).fit(X)
    assert same_roles(model.roles_, roles)
    assert abs(model.noise_rate_ - noise) < 0.03
    if noise:
        assert abs(model.noise_density_ - 0.5) < 0.1
        p = model.noise_probability(X)
        assert abs(p.mean() - wrong.mean()) < 0.03
        assert p[wrong].mean() > p[~wrong].mean()
    order = [int(np.flatnonzero((roles == role).all(axis=1))[0]) for role in model.roles_]
    assert (model.assignments_ == assignments[:, order]).mean() > (0.99 if noise < 0.3 else 0.85)


@pytest.mark.parametrize("r", [0.2, 0.8])
def test_noise_that_is_mostly_of_one_kind(r):
    X, roles, *_ = planted(0.4, r, n=800, d=40, seed=1)
    model = MultiAssignmentClustering(3, random_state=0).fit(X)
    assert same_roles(model.roles_, roles)
    assert abs(model.noise_rate_ - 0.4) < 0.03
    assert abs(model.noise_density_ - r) < 0.05


def test_unknown_cells_are_not_needed_and_not_taken_for_zeros():
    X, roles, *_ = planted(0.1, n=600)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.4, np.nan, X)
    model = MultiAssignmentClustering(3, random_state=0).fit(holes)
    assert same_roles(model.roles_, roles)
    assert abs(model.noise_rate_ - 0.1) < 0.03


def test_sparse_boolean_and_thresholded_cells_give_the_same():
    X, *_ = planted(0.1)
    one = MultiAssignmentClustering(3, random_state=0).fit(X)
    rng = np.random.default_rng(0)
    for rows, threshold in ((sp.csr_array(X), None), (X.astype(bool), None), (X * rng.integers(1, 9, X.shape), 0.0)):
        other = MultiAssignmentClustering(3, threshold=threshold, random_state=0).fit(rows)
        np.testing.assert_array_equal(other.roles_, one.roles_)
        np.testing.assert_allclose(other.transform(rows), one.transform(X), atol=1e-9)
    np.testing.assert_allclose(one.noise_probability(sp.csr_array(X)), one.noise_probability(X))


def test_rows_are_rebuilt_by_their_roles(fitted):
    model, X, *_ = fitted
    np.testing.assert_array_equal(
        model.inverse_transform(model.assignments_.astype(float)) > 0.5, model.assignments_ @ model.roles_
    )
    assert ((model.reconstruct(X) > 0.5) != X).mean() < 0.15


def test_select_finds_the_number_of_roles():
    X, *_ = planted(0.1, n=600, d=40)
    answer = unmix.select(MultiAssignmentClustering(random_state=0), X, k=range(1, 6), random_state=0)
    assert answer.k == 3


# ---------------------------------------------------------------- what is refused, and what is told


def test_other_numbers_are_refused_by_name():
    import pandas as pd

    X, *_ = planted()
    X[7, 2] = 5
    with pytest.raises(ValueError, match=r"needs cells of 0, 1 or NaN.*row 7, column 2 holds 5.*threshold"):
        MultiAssignmentClustering(3).fit(X)
    frame = pd.DataFrame(X, columns=[f"p{j}" for j in range(X.shape[1])])
    with pytest.raises(ValueError, match="column 'p2' holds 5"):
        MultiAssignmentClustering(3).fit(frame)


def test_too_many_sets_are_refused_with_the_remedy():
    X = np.random.default_rng(0).integers(0, 2, (50, 5))
    with pytest.raises(ValueError, match=r"max_roles=8 of n_components=40 .*take a smaller max_roles"):
        MultiAssignmentClustering(40, max_roles=8).fit(X)
    with unmix.config(memory_budget=10_000), pytest.raises(ValueError, match=r"memory budget.*max_roles than 3"):
        MultiAssignmentClustering(20, max_roles=3).fit(X)


def test_superfluous_roles_are_told():
    X = np.zeros((30, 4))
    with pytest.warns(UserWarning, match=r"have no permission: ask for fewer components"):
        MultiAssignmentClustering(2, random_state=0).fit(X)


def test_online_learning_goes_on_from_a_fit():
    X, roles, *_ = planted(0.1, n=800)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MultiAssignmentClustering(3, random_state=0).fit(X[:400])
        for part in np.array_split(X[400:], 4):
            model.partial_fit(part)
    assert same_roles(model.roles_, roles)


def test_the_annealing_ends_with_roles_that_are_decided(fitted):
    model = fitted[0]
    assert [stage.name for stage in model.stages_] == ["annealing"]
    assert model.stages_[0].result == "converged"
    assert {*np.unique(model.parts.absent)} <= {0.0, 1.0}
