"""GaussianImputer against a slow EM of loops, closed forms, scikit-learn's imputers and hostile tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import unmix
from benchmarks.imputation_coverage import coverage
from unmix import GaussianImputer
from unmix.engine.draws import turn
from unmix.maths import gaussian


def planted(n=300, d=5, share=0.25, seed=0):
    """Rows of a Gaussian, complete and with holes."""
    rng = np.random.default_rng(seed)
    loads = rng.normal(size=(d, d))
    X = rng.multivariate_normal(np.arange(d), loads @ loads.T + 0.3 * np.eye(d), n)
    return X, np.where(rng.random(X.shape) < share, np.nan, X)


def conditional(x, mean, covariance):
    """Mean and covariance of the missing cells of one row, and log p of the others, by the book."""
    o, m = ~np.isnan(x), np.isnan(x)
    if not o.any():
        return mean, covariance, 0.0
    S = covariance[np.ix_(o, o)]
    slope = covariance[np.ix_(m, o)] @ np.linalg.inv(S)
    away = x[o] - mean[o]
    log_p = -0.5 * (away @ np.linalg.solve(S, away) + np.linalg.slogdet(2 * np.pi * S)[1])
    return mean[m] + slope @ away, covariance[np.ix_(m, m)] - slope @ covariance[np.ix_(o, m)], log_p


def slow_em(X, w, steps):
    """μ, Σ and the mean log-likelihood of EM, row by row."""
    d = X.shape[1]
    mean, covariance = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    for _ in range(steps):
        first, second, total = np.zeros(d), np.zeros((d, d)), 0.0
        for x, wi in zip(X, w, strict=True):
            m = np.isnan(x)
            centre, C, log_p = conditional(x, mean, covariance)
            full, more = np.where(m, 0.0, x), np.zeros((d, d))
            full[m], more[np.ix_(m, m)] = centre, C
            first, second, total = first + wi * full, second + wi * (np.outer(full, full) + more), total + wi * log_p
        mean = first / w.sum()
        covariance = second / w.sum() - np.outer(mean, mean)
    return mean, covariance, total / w.sum()


def test_with_nothing_missing_it_is_the_covariance():
    X, _ = planted()
    model = GaussianImputer(ridge=0, n_bootstrap=0).fit(X)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.covariance_, np.cov(X.T, bias=True), rtol=1e-7)
    assert model.n_iter_ <= 3
    np.testing.assert_array_equal(model.transform(X), X)


def test_ridge_is_rows_of_unrelated_columns():
    X, _ = planted(n=50)
    S, rho = np.cov(X.T, bias=True), 10 / 50
    model = GaussianImputer(ridge=10, n_bootstrap=0).fit(X)
    np.testing.assert_allclose(model.covariance_, (S + rho * np.diag(np.diag(S))) / (1 + rho), rtol=1e-6)
    usual = GaussianImputer(n_bootstrap=0).fit(X).covariance_
    np.testing.assert_allclose(usual, (S + 0.01 * np.diag(np.diag(S))) / 1.01, rtol=1e-6)


def test_em_against_a_slow_loop():
    _, X = planted(n=120)
    X[5] = np.nan
    w = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    mean, covariance, likelihood = slow_em(X, w, 150)
    model = GaussianImputer(ridge=0, n_bootstrap=0, tol=1e-12, max_iter=500).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.mean_, mean, atol=1e-4)
    np.testing.assert_allclose(model.covariance_, covariance, atol=1e-3)
    assert model.score(X, sample_weight=w) == pytest.approx(likelihood, abs=1e-7)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_cells_by_the_book(share):
    _, holes = planted(share=share, d=7)
    model = GaussianImputer(n_bootstrap=0).fit(holes)
    rows = planted(n=40, share=share, d=7, seed=2)[1]
    rows[0] = np.nan
    filled, deviation = model.impute(rows, return_std=True)
    log_p = model.score_samples(rows)
    for i, x in enumerate(rows):
        m = np.isnan(x)
        centre, C, likelihood = conditional(x, model.mean_, model.covariance_)
        np.testing.assert_allclose(filled[i, m], centre, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(deviation[i, m], np.sqrt(np.diag(C)), rtol=1e-7)
        assert log_p[i] == pytest.approx(likelihood, rel=1e-8, abs=1e-9)
        assert (deviation[i, ~m] == 0).all()
    np.testing.assert_array_equal(filled, model.transform(rows))


def test_draws_have_the_covariance_of_the_cells():
    _, holes = planted(d=4)
    model = GaussianImputer(n_bootstrap=0).fit(holes)
    for x in ([1.0, np.nan, np.nan, 2.0], [np.nan, np.nan, 1.0, np.nan]):
        row, m = np.array([x] * 4000), np.isnan(x)
        draws = model.impute(row, n_draws=1, random_state=0)[0]
        centre, C, _ = conditional(np.array(x), model.mean_, model.covariance_)
        np.testing.assert_array_equal(draws[:, ~m], row[:, ~m])
        error = np.sqrt(np.diag(C) / len(row))
        assert (np.abs(draws[:, m].mean(axis=0) - centre) < 4 * error).all()
        np.testing.assert_allclose(np.cov(draws[:, m].T), C, atol=0.1 * np.diag(C).max())


def test_the_likelihood_never_falls():
    _, X = planted(share=0.5)
    for acceleration in (False, True):
        with unmix.config(acceleration=acceleration):
            model = GaussianImputer(n_bootstrap=0, tol=0.0, max_iter=60).fit(X)
        objective = np.array([s.objective for s in model.trace_ if s.accepted])
        assert (np.diff(objective) <= 1e-10 * np.abs(objective[1:])).all()


def test_errors_are_no_larger_than_those_of_iterative_imputer():
    X, holes = planted(n=500, d=8)
    gone = np.isnan(holes)
    ours = GaussianImputer(n_bootstrap=0).fit_transform(holes)
    theirs = IterativeImputer(max_iter=20, random_state=0).fit_transform(holes)
    assert ((ours - X)[gone] ** 2).mean() <= 1.01 * ((theirs - X)[gone] ** 2).mean()


def test_bootstrap_tells_what_parameters_are_worth():
    """Its spread is that of the estimates of fresh tables."""
    estimates = [GaussianImputer(n_bootstrap=0).fit(planted(n=200, d=3, seed=0)[1]).mean_]
    rng = np.random.default_rng(7)
    X, _ = planted(n=20000, d=3)
    for _ in range(60):
        rows = X[rng.choice(len(X), 200, replace=False)]
        rows = np.where(rng.random(rows.shape) < 0.25, np.nan, rows)
        estimates.append(GaussianImputer(n_bootstrap=0).fit(rows).mean_)
    model = GaussianImputer(n_bootstrap=60, random_state=0).fit(planted(n=200, d=3)[1])
    ratio = model.bootstrap_means_.std(axis=0) / np.std(estimates[1:], axis=0)
    assert (ratio > 0.7).all()
    assert (ratio < 1.4).all()
    assert np.linalg.eigvalsh(model.bootstrap_covariances_).min() > 0


@pytest.mark.parametrize("cls", [GaussianImputer, unmix.Imputer])
def test_draws_one_by_one_vary_as_draws_at_once(cls):
    """Parameters, too: each seed begins with an estimate of its own."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 60)
    X[:, 1] = np.where(rng.random(60) < 0.6, np.nan, X[:, 1])
    model = cls(random_state=0).fit(X)
    rows = np.vstack([X, np.column_stack([np.full(2000, 1.0), np.full(2000, np.nan)])])  # whose noise averages out
    together = model.impute(rows, n_draws=40, random_state=0)[:, 60:, 1].mean(axis=1)
    alone = np.array([model.impute(rows, n_draws=1, random_state=s)[0, 60:, 1].mean() for s in range(40)])
    assert 0.6 < alone.std() / together.std() < 1.6
    order = {turn(7, i, 20) for i in range(20)}
    assert order == set(range(20))


def test_bootstrap_of_many_rows_is_made_shorter(monkeypatch):
    _, X = planted(n=2000, d=3)
    whole = GaussianImputer(n_bootstrap=40, random_state=0).fit(X)
    monkeypatch.setattr("unmix.linear._normal.BOOTSTRAP_ROWS", 200)
    fewer = GaussianImputer(n_bootstrap=40, random_state=0).fit(X)
    ratio = fewer.bootstrap_means_.std(axis=0) / whole.bootstrap_means_.std(axis=0)
    assert (ratio > 0.65).all()
    assert (ratio < 1.5).all()
    np.testing.assert_array_equal(whole.mean_, fewer.mean_)


def test_estimates_made_shorter_lose_what_estimates_of_all_rows_lose(monkeypatch):
    """p/n of a residual variance to slopes, √(n/n_b)/n to means: the same for draws of 1500 rows and of 100."""
    rng = np.random.default_rng(0)
    n, d, rows = 1500, 15, 100
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    monkeypatch.setattr("unmix.linear._normal.BOOTSTRAP_ROWS", rows)
    monkeypatch.setattr("unmix.linear._normal.PER_COLUMN", 1)
    model = GaussianImputer(n_bootstrap=200, random_state=0, ridge=0).fit(X)
    of = [1 / np.diag(np.linalg.inv(C)) for C in (model.covariance_, *model.bootstrap_covariances_)]
    expected = (d - 1 + np.sqrt(n / rows)) / n
    assert abs(np.mean(1 - np.array(of[1:]) / of[0]) - expected) < 0.004


def test_deviations_count_the_parameters():
    _, X = planted(n=25, d=5)
    known = GaussianImputer(n_bootstrap=0).fit(X).impute(X, return_std=True)[1]
    drawn = GaussianImputer(random_state=0).fit(X).impute(X, return_std=True)[1]
    gone = np.isnan(X)
    assert (drawn[gone] > known[gone]).all()


def test_intervals_cover():
    coefficients, cells = coverage(25)
    assert coefficients > 0.85
    assert 0.86 < cells < 0.94


@pytest.mark.slow
def test_intervals_cover_on_many_tables():
    """`python -m benchmarks.imputation_coverage` has many more tables."""
    coefficients, cells = coverage(150)
    assert 0.93 < coefficients < 0.97
    assert 0.87 < cells < 0.93
    assert coverage(50, n_bootstrap=0)[0] < coefficients


# ---------------------------------------------------------------- scikit-learn's protocol for imputers


def test_empty_columns_as_simple_imputer_has_them():
    _, X = planted(n=40)
    X[:, 2] = np.nan
    for keep in (False, True):
        ours = GaussianImputer(keep_empty_features=keep, n_bootstrap=2, random_state=0).fit(X)
        theirs = SimpleImputer(keep_empty_features=keep).fit(X)
        assert ours.transform(X).shape == theirs.transform(X).shape
        assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
        assert np.isfinite(ours.transform(X)).all()
    assert (ours.transform(X)[:, 2] == 0).all()
    alone = GaussianImputer(n_bootstrap=0).fit(np.delete(X, 2, axis=1))
    np.testing.assert_allclose(np.delete(ours.mean_, 2), alone.mean_, rtol=1e-3)


def test_impute_leaves_a_column_that_nobody_saw():
    _, X = planted(n=40)
    X[:, 2] = np.nan
    model = GaussianImputer(n_bootstrap=2, random_state=0).fit(X)
    filled, deviation = model.impute(X, return_std=True)
    assert np.isnan(filled[:, 2]).all()
    assert np.isnan(deviation[:, 2]).all()
    assert np.isfinite(np.delete(filled, 2, axis=1)).all()
    kept = GaussianImputer(n_bootstrap=0, keep_empty_features=True).fit(X).impute(X, n_draws=2)
    assert (kept[:, :, 2] == 0).all()


def test_indicators_as_simple_imputer_has_them():
    X, holes = planted(n=60)
    holes[:, 0] = X[:, 0]
    ours, theirs = GaussianImputer(add_indicator=True, n_bootstrap=0), SimpleImputer(add_indicator=True)
    Z = ours.fit_transform(holes)
    np.testing.assert_array_equal(Z[:, 5:], theirs.fit_transform(holes)[:, 5:])
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    np.testing.assert_array_equal(ours.inverse_transform(Z), holes)


def test_missing_values_may_be_a_number():
    _, X = planted(n=60)
    marked = np.where(np.isnan(X), -999.0, X)
    a = GaussianImputer(n_bootstrap=3, random_state=0).fit(X)
    b = GaussianImputer(missing_values=-999, n_bootstrap=3, random_state=0, add_indicator=True).fit(marked)
    np.testing.assert_allclose(a.transform(X), b.transform(marked)[:, :5])
    np.testing.assert_allclose(b.impute(marked, return_std=True)[1], a.impute(X, return_std=True)[1], rtol=1e-6)
    np.testing.assert_array_equal(b.transform(marked)[:, 5:], np.isnan(X))
    assert b.score(marked) == pytest.approx(a.score(X))


def test_frames_in_and_out():
    _, X = planted(n=60)
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(60) * 2)
    model = GaussianImputer(n_bootstrap=0).fit(frame)
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list("abcde")
    assert list(out.index) == list(frame.index)
    assert not out.isna().any().any()
    polars = pytest.importorskip("polars")
    assert isinstance(model.set_output(transform="polars").transform(frame), polars.DataFrame)


def test_in_a_pipeline_and_cloned():
    X, holes = planted(n=100)
    pipe = make_pipeline(GaussianImputer(n_bootstrap=0), LinearRegression()).fit(holes[:, :4], X[:, 4])
    assert pipe.predict(holes[:, :4]).shape == (100,)
    assert clone(GaussianImputer(ridge=2.0, missing_values=-1)).get_params()["ridge"] == 2.0


def test_float32_and_files(tmp_path):
    _, X = planted(n=100)
    model = GaussianImputer(n_bootstrap=4, random_state=0).fit(X.astype(np.float32))
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.bootstrap_covariances_.dtype == np.float32
    model.save(tmp_path / "model.unmix")
    again = unmix.load(tmp_path / "model.unmix")
    for kind in ({"return_std": True}, {"n_draws": 3, "random_state": 0}):
        a, b = model.impute(X.astype(np.float32), **kind), again.impute(X.astype(np.float32), **kind)
        np.testing.assert_array_equal(a, b)


def test_online_steps_take_parameters_for_known():
    _, X = planted(n=400)
    model = GaussianImputer(n_bootstrap=3, random_state=0).fit(X)
    model.partial_fit(X)
    assert "bootstrap_means_" not in vars(model)
    assert model.impute(X, n_draws=2).shape == (2, 400, 5)


# ---------------------------------------------------------------- hostile tables


def hostile():
    """Tables that break careless imputers, by name."""
    X, holes = planted(n=60)
    rng = np.random.default_rng(3)
    wide = np.where(rng.random((12, 40)) < 0.2, np.nan, rng.normal(size=(12, 40)))
    constant, copies, rows = holes.copy(), np.column_stack([holes, X]), holes.copy()
    constant[:, 1] = np.where(np.isnan(holes[:, 1]), np.nan, 7.0)
    rows[::3] = np.nan
    return {
        "rows of nothing": rows,
        "constant column": constant,
        "copies of columns": copies,
        "more columns than rows": wide,
        "one row": np.array([[1.0, np.nan, 3.0]]),
        "one cell": np.array([[1.0]]),
        "one column": holes[:, :1],
        "zeros": np.where(np.isnan(holes), np.nan, 0.0),
        "nothing but holes": np.full((4, 3), np.nan),
        "far from zero": holes + 1e6,
        "columns of many sizes": holes * 10.0 ** np.arange(-8, 9, 4),
    }


@pytest.mark.parametrize("name", hostile())
@pytest.mark.parametrize("ridge", ["auto", 0.0])
def test_hostile_tables(name, ridge):
    X = hostile()[name]
    model = GaussianImputer(ridge=ridge, n_bootstrap=3, random_state=0, keep_empty_features=True).fit(X)
    filled, deviation = model.impute(X, return_std=True)
    draws = model.impute(X, n_draws=3, random_state=0)
    seen = ~np.isnan(X)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(draws).all()
    assert np.isfinite(deviation[:, seen.any(axis=0)]).all()
    np.testing.assert_array_equal(filled[seen], X[seen])
    assert (draws[:, seen] == X[seen]).all()


def test_a_copy_is_found_again_and_a_constant_stays():
    tables = hostile()
    X, gone = tables["copies of columns"], np.isnan(tables["copies of columns"])
    filled = GaussianImputer(n_bootstrap=0, ridge=0.0).fit_transform(X)
    np.testing.assert_allclose(filled[gone], X[:, 5:][gone[:, :5]], rtol=1e-3, atol=1e-3)
    constant = GaussianImputer(n_bootstrap=0).fit_transform(tables["constant column"])
    np.testing.assert_allclose(constant[:, 1], 7.0, rtol=1e-5)


@pytest.mark.parametrize("power", [-40, 40])
def test_scales(power):
    _, X = planted(n=100)
    scale = 2.0**power
    a, b = (GaussianImputer(n_bootstrap=2, random_state=0).fit(Y) for Y in (X, X * scale))
    np.testing.assert_allclose(b.transform(X * scale), a.transform(X) * scale, rtol=1e-9)
    np.testing.assert_allclose(
        b.impute(X * scale, return_std=True)[1], a.impute(X, return_std=True)[1] * scale, rtol=1e-6
    )


def test_wide_tables_are_better_off_with_the_prior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)) + 0.5 * rng.normal(size=(40, 30))
    gone = rng.random(X.shape) < 0.2
    holes = np.where(gone, np.nan, X)
    usual, bare, mean = (
        ((model.fit_transform(holes) - X)[gone] ** 2).mean()
        for model in (GaussianImputer(n_bootstrap=0), GaussianImputer(n_bootstrap=0, ridge=0), SimpleImputer())
    )
    assert usual < bare
    assert usual < 0.3 * mean


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"ridge": -1}, "ridge"),
        ({"ridge": "much"}, "ridge"),
        ({"n_bootstrap": -1}, "n_bootstrap"),
        ({"tol": -1}, "tol"),
    ],
)
def test_wrong_parameters(wrong, word):
    with pytest.raises(ValueError, match=word):
        GaussianImputer(**wrong).fit(planted()[0])


# ---------------------------------------------------------------- the kernel


def test_rows_share_what_their_pattern_says():
    X, _ = planted(n=50, d=6)
    factor = gaussian.factor_of(np.cov(X.T))
    observed = np.array([[True, False, True, True, False, True], [False] * 5 + [True]])[np.arange(50) % 2]
    order, first = gaussian.together(observed)
    assert len(first) == 3
    assert sorted(order) == list(range(50))
    w = np.random.default_rng(0).random(50)
    found = gaussian.complete(X, observed, X.mean(axis=0), factor, w=w, variances=True)
    spread = np.zeros((6, 6))
    for i in range(50):
        m = ~observed[i]
        C = conditional(np.where(m, np.nan, X[i]), X.mean(axis=0), np.cov(X.T))[1]
        spread[np.ix_(m, m)] += w[i] * C
    np.testing.assert_allclose(found.spread, spread, rtol=1e-9)


def test_factor_of_a_singular_covariance():
    v = np.array([[1.0, 2.0, 0.0]])
    P = gaussian.factor_of(v.T @ v)
    assert np.isfinite(P).all()
    assert (np.diag(P) > 0).all()
    np.testing.assert_allclose(P, np.triu(P))


def test_no_rows_are_completed_as_none():
    x, observed, rng = np.zeros((0, 3)), np.ones((0, 3), bool), np.random.default_rng(0)
    mixture = np.full(2, 0.5), np.zeros((2, 3)), np.stack([np.eye(3)] * 2)
    assert [a.shape for a in gaussian.conditional(x, observed, *mixture)] == [(0, 3), (0, 3)]
    assert gaussian.drawn(x, observed, *mixture, rng=rng).shape == (0, 3)
    found = gaussian.complete(x, observed, np.zeros(3), np.eye(3), w=np.zeros(0), variances=True)
    assert found.rows.shape == found.variances.shape == (0, 3)
    np.testing.assert_array_equal(found.spread, np.zeros((3, 3)))
