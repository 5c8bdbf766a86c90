"""Imputer: as good as its rivals or better, honest about how sure it is; every table comes back as it came."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import unmix
from benchmarks.imputation_coverage import regression
from unmix.imputation.candidates import possible
from unmix.imputation.choice import choose
from unmix.imputation.columns import Columns
from unmix.imputation.law import fit_law
from unmix.imputation.others import filled, without_each
from unmix.imputation.regressions import TREES, curves, trees
from unmix.imputation.stacking import hidden, simplex
from unmix.io.pack import PackError

Z90 = 1.6449


def holed(X, share, seed=0):
    rng = np.random.default_rng(seed)
    out = rng.random(X.shape) < share
    out[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(out, np.nan, X), out


def rmse(X, Y, out):
    return np.sqrt(np.mean(((X - Y) / X.std(axis=0))[out] ** 2))


@pytest.fixture(scope="module")
def curved():
    """Columns that are functions of one another, and their holes."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, 300)
    X = np.column_stack([t, t**2, np.sin(2 * t), -t]) + 0.1 * rng.normal(size=(300, 4))
    H, out = holed(X, 0.2)
    return X, H, out, unmix.Imputer(random_state=0).fit(H)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 240
    who = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "id": [f"p{i:04d}" for i in range(n)],
            "height": 160 + 10 * who + rng.normal(0, 2, n),
            "children": rng.poisson(1 + 2 * who),
            "age": pd.array(30 + 10 * who + rng.integers(-5, 5, n), dtype="Int64"),
            "member": pd.array(who == 2, dtype="boolean"),
            "town": pd.Categorical(np.array(["Ulm", "Bonn", "Kiel"])[who], categories=["Kiel", "Ulm", "Bonn", "Rom"]),
            "sex": np.array(["f", "m"])[rng.integers(2, size=n)],
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), unit="D"),
            "remark": [f"many words about person {i}, all of them unlike" for i in range(n)],
            "nothing": np.full(n, np.nan),
            "same": np.where(np.arange(n) % 9 == 0, None, "yes"),
        }
    )
    whole = frame.copy()
    for name in ("height", "age", "member", "town", "sex", "since", "remark"):
        frame.loc[rng.random(n) < 0.15, name] = None
    frame["children"] = frame["children"].astype(float).mask(rng.random(n) < 0.15)
    return whole, frame


@pytest.fixture(scope="module")
def of_frame(frame):
    return unmix.Imputer(random_state=0).fit(frame[1])


# ---------------------------------------------------------------- how good


def test_curves_are_followed_where_lines_cannot(curved):
    X, H, out, imputer = curved
    ours = rmse(X, imputer.transform(H), out)
    others = [SimpleImputer(), KNNImputer(), IterativeImputer(random_state=0)]
    assert ours < 0.8 * min(rmse(X, other.fit_transform(H), out) for other in others)


@pytest.mark.parametrize("load", [load_iris, load_diabetes])
def test_no_worse_than_the_usual_imputers_on_real_tables(load):
    X = load().data
    H, out = holed(X, 0.2)
    ours = rmse(X, unmix.Imputer(random_state=0).fit_transform(H), out)
    others = [SimpleImputer(), KNNImputer(), IterativeImputer(random_state=0)]
    assert ours <= 1.02 * min(rmse(X, other.fit_transform(H), out) for other in others)


def test_a_gaussian_is_filled_as_well_as_by_one_who_knows_it():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(5, 5))
    S = A @ A.T + 0.5 * np.eye(5)
    X = rng.multivariate_normal(np.zeros(5), S, 500)
    H, out = holed(X, 0.2)
    f, std = unmix.Imputer(random_state=0).fit(H).impute(H, return_std=True)
    assert rmse(X, f, out) < 1.08 * rmse(X, filled(H, np.zeros(5), S), out)
    assert 0.86 < (np.abs(X - f) <= Z90 * std)[out].mean() < 0.94
    assert 0.4 < (np.abs(X - f) <= 0.6745 * std)[out].mean() < 0.6


def test_the_choice_is_told(curved):
    imputer = curved[3]
    assert imputer.chosen_ == min(imputer.scores_, key=imputer.scores_.get)
    assert set(imputer.scores_) == {"combination", *possible(300, 4)}
    assert imputer.scores_["curves"] < imputer.scores_["one Gaussian"] < imputer.scores_["column mean"] == 1.0
    np.testing.assert_allclose(imputer.weights_.sum(axis=1), 1)
    told = str(imputer.report())
    assert "held-out" in told and "x0" in told and imputer.reason_ in told  # noqa: PT018
    assert (imputer.errors_ < imputer.baseline_).all()


def test_draws_are_nearer_to_the_truth_than_means(curved):
    X, H, out, imputer = curved
    draws = imputer.impute(H, n_draws=4)
    assert draws.shape == (4, *X.shape)
    assert (draws[:, ~out] == X[~out]).all()
    assert np.std(draws, axis=0)[out].min() > 0
    f, std = imputer.impute(H, return_std=True)
    spread = np.sqrt(((draws - f) ** 2).mean(axis=0))[out]
    assert 0.6 < np.median(spread / std[out]) < 1.3
    # means shrink: the variance of filled columns is too small, that of draws is not
    assert (
        abs(np.mean([d[:, 2].var() for d in draws]) / X[:, 2].var() - 1) < abs(f[:, 2].var() / X[:, 2].var() - 1) + 0.02
    )


def test_cells_of_a_row_are_drawn_together():
    rng = np.random.default_rng(3)
    z = rng.normal(size=600)
    X = np.column_stack([z, z]) + 0.1 * rng.normal(size=(600, 2))
    X = np.column_stack([X, rng.normal(size=600)])
    H = X.copy()
    H[:200, :2] = np.nan  # both: what ties them shows in draws alone
    d = unmix.Imputer(random_state=0).fit(H).impute(H, n_draws=1)[0]
    assert np.corrcoef(d[:200, 0], d[:200, 1])[0, 1] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("how", ["at random", "by the other column"])
def test_rubin_intervals_cover(how):
    """Of a mean, and of the slopes of both columns; `python -m benchmarks.imputation_coverage --imputer` has more."""
    inside = []
    for seed in range(16):
        rng = np.random.default_rng(100 + seed)
        X = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 120)
        H = X.copy()
        likely = 0.4 if how == "at random" else 1 / (1 + np.exp(-2 * X[:, 0]))
        H[rng.random(120) < likely, 1] = np.nan
        draws = unmix.Imputer(random_state=seed).fit(H).impute(H, n_draws=20)
        fits = [regression(d) + regression(d[:, ::-1]) for d in draws]
        q = np.array([[d[:, 1].mean(), a[0], c[0]] for d, (a, _, c, _) in zip(draws, fits, strict=True)])
        v = np.array([[d[:, 1].var(ddof=1) / 120, b[0], e[0]] for d, (_, b, _, e) in zip(draws, fits, strict=True)])
        pooled = unmix.pool(q, v, df_complete=118)
        inside.append((pooled.low < [0, 0.7, 0.7]) & (pooled.high > [0, 0.7, 0.7]))
    assert np.mean(inside) >= 0.89  # 43 of 48: of intervals that hold 95 % nearly always, of 85 % seldom


def test_draws_go_by_a_law_that_is_not_drawn_in():
    """Where the larger half of a column is gone, draws go on as a line does, and vary as that is unsure."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([5, 5], [[1, 0.8], [0.8, 1]], 4000)
    low = X[:, 0] < 5
    H = np.column_stack([X[:, 0], np.where(low, X[:, 1], np.nan)])
    columns = Columns.of(H, np.zeros(2, bool))
    y = columns.scaled(H)
    law = fit_law("one Gaussian", y, columns, [np.array([0]), np.array([1])], 0, lambda what: None)
    means = [columns.unscaled(law.moments(i, y)[0])[:, 1].mean() for i in range(len(law.weights))]
    line = np.polyfit(X[low, 0], X[low, 1], 1)
    expected = np.where(low, X[:, 1], np.polyval(line, X[:, 0]))
    assert abs(means[0] - expected.mean()) < 2e-3
    # that of a line: half of the rows are its residual deviation times the distance from the middle of the others
    away = X[~low, 0].mean() - X[low, 0].mean()
    unsure = 0.5 * 0.6 * np.hypot(1.0, away / X[low, 0].std()) / np.sqrt(low.sum())
    assert 0.6 < np.std(means[1:]) / unsure < 1.5
    drawn = columns.unscaled(law.drawn(1, y, rng))
    assert abs((drawn[:, 1] - expected)[~low].std() / 0.6 - 1) < 0.1
    assert (columns.near(np.full((1, 2), 99.0)) > columns.high).all()
    assert (columns.unscaled(columns.near(np.full((1, 2), -99.0))) >= 0).all()  # nothing below 0 was seen


# ---------------------------------------------------------------- parts


def test_rows_filled_without_a_column_are_those_with_the_column_removed():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(6, 6))
    S, m = A @ A.T + np.eye(6), rng.normal(size=6)
    H, _ = holed(rng.multivariate_normal(m, S, 40), 0.3)
    groups = [np.array([0]), np.array([1, 2]), np.array([3]), np.array([4]), np.array([5])]
    H[np.isnan(H[:, 1]) | np.isnan(H[:, 2]), 1:3] = np.nan
    for own, F in zip(groups, without_each(H, groups, m, S), strict=True):
        bare = H.copy()
        bare[:, own] = np.nan
        np.testing.assert_allclose(F, filled(bare, m, S), rtol=1e-6, atol=1e-8)


def test_kept_trees_say_what_those_of_scikit_learn_say():
    rng = np.random.default_rng(5)
    F = rng.normal(size=(200, 3)).astype(np.float32).astype(float)
    target = np.where(F[:, :2] > 0, 2.0, -1.0) + F[:, 1:]
    ours = trees(F, target, np.array([1, 2]), np.random.default_rng(0)).predict(F)
    seeds = np.random.default_rng(0).integers(2**31 - 1, size=TREES)
    grown = [ExtraTreeRegressor(min_samples_leaf=3, max_features=1.0, random_state=int(s)) for s in seeds]
    theirs = np.mean([one.fit(F, target - F[:, 1:]).predict(F) for one in grown], axis=0)
    np.testing.assert_allclose(ours, F[:, 1:] + theirs)


def test_curves_find_a_parabola():
    rng = np.random.default_rng(6)
    F = rng.normal(size=(300, 2))
    F[:, 1] = 0  # what a line expects
    target = F[:, :1] ** 2
    new = np.column_stack([np.linspace(-1.5, 1.5, 20), np.zeros(20)])
    found = curves(F, target, np.array([1]), rng).predict(new)
    np.testing.assert_allclose(found[:, 0], new[:, 0] ** 2, atol=0.15)


def test_weights_are_the_best_of_the_simplex():
    rng = np.random.default_rng(7)
    A = rng.normal(size=(30, 4)) * [1, 2, 1, 5]
    G = A.T @ A
    w = simplex(G)
    assert w.min() >= 0
    assert abs(w.sum() - 1) < 1e-9
    tries = rng.dirichlet(np.full(4, 0.5), 20_000)
    assert w @ G @ w <= np.einsum("ni,ij,nj->n", tries, G, tries).min() * (1 + 1e-4)


def test_held_out_cells_are_observed_ones_each_once():
    H, _ = holed(np.random.default_rng(8).normal(size=(50, 3)), 0.3)
    masks = hidden(H, [np.array([0]), np.array([1]), np.array([2])], 0)
    total = np.sum(masks, axis=0)
    assert total.max() == 1
    assert not total[np.isnan(H)].any()
    for mask in masks:
        assert not (np.isnan(H) | mask).all(axis=1)[mask.any(axis=1)].any()


def test_bent_columns_come_back():
    x = np.random.default_rng(9).lognormal(size=(200, 1))
    c = Columns.of(x, np.array([False]))
    y = c.scaled(x)
    assert c.bent.all()
    np.testing.assert_allclose(c.straighten(c.bend(y)), y, atol=0.15 * y.std() + 0.2)
    np.testing.assert_allclose(c.unscaled(y), x)
    mean, _ = c.moments(np.zeros((1, 1)), np.ones((1, 1)))
    assert abs(mean[0, 0]) < 0.15  # all of u is all of y, whose mean is 0


# ---------------------------------------------------------------- tables


def test_a_frame_comes_back_as_it_came(frame, of_frame):
    whole, H = frame
    before = H.copy()
    out = of_frame.transform(H)
    pd.testing.assert_frame_equal(H, before)
    assert list(out.columns) == list(H.columns)
    assert (out.dtypes == H.dtypes).all()
    assert out.index.equals(H.index)
    for name in ("height", "children", "age", "member", "town", "sex", "same"):
        assert not out[name].isna().any(), name
    for name in ("id", "since", "remark", "nothing"):
        pd.testing.assert_series_equal(out[name], H[name])
    for name in H.columns:
        seen = H[name].notna()
        pd.testing.assert_series_equal(out[name][seen], H[name][seen])
    assert (out["children"] == out["children"].round()).all()
    assert out["children"].min() >= 0
    assert list(out["town"].cat.categories) == ["Kiel", "Ulm", "Bonn", "Rom"]
    gone = H["town"].isna()
    assert (out["town"][gone].astype(str) == whole["town"][gone].astype(str)).mean() > 0.7
    assert any("'since'" in note for note in of_frame.notes_)
    assert any("'nothing'" in note for note in of_frame.notes_)
    assert any("'same'" in note for note in of_frame.notes_)


def test_deviations_and_draws_of_a_frame(frame, of_frame):
    H = frame[1]
    out, std = of_frame.impute(H, return_std=True)
    assert isinstance(std, pd.DataFrame)
    names = ["id", "since", "remark", "nothing"]  # no part of it: they tell whose row it is
    pd.testing.assert_frame_equal(std[names], H[names])
    used = H.columns.difference(names)
    assert (std[used].to_numpy()[H[used].notna().to_numpy()] == 0).all()
    assert (std["height"][H["height"].isna()] > 0).all()
    assert std["town"].max() <= 0.5
    assert std["nothing"].isna().all()
    draws = of_frame.impute(H, n_draws=3)
    assert len(draws) == 3
    for d in draws:
        assert (d.dtypes == H.dtypes).all()
        assert (d["children"] == d["children"].round()).all()
        seen = H["town"].notna()
        assert (d["town"][seen] == H["town"][seen]).all()
    assert not draws[0]["height"].equals(draws[1]["height"])
    assert not draws[0]["height"].equals(out["height"])


@pytest.mark.parametrize("p", [[0.9, 0.07, 0.03], [0.4, 0.3, 0.2, 0.1]], ids=str)
def test_drawn_levels_have_their_shares(p):
    rng, n, levels = np.random.default_rng(10), 1500, list("wxyz")[: len(p)]
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(levels, n, p=p)})
    frame.loc[:499, "c"] = None
    draws = unmix.Imputer(random_state=0).fit(frame).impute(frame, n_draws=20)
    drawn = np.concatenate([d["c"][:500].to_numpy() for d in draws])
    for level in levels:
        share = (frame["c"][500:] == level).mean()
        assert abs((drawn == level).mean() - share) < 0.015, level  # 10 000 draws by 20 estimates


def test_what_goes_with_a_level_is_drawn_with_it():
    """Where both are missing, and so is a second category."""
    rng = np.random.default_rng(1)
    who = rng.choice(3, 1200, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame({
        "a": rng.normal(size=1200),
        "size": 3.0 * who + rng.normal(size=1200),
        "town": np.array(["Bonn", "Kiel", "Ulm"])[who],
        "member": pd.array((who == 2) ^ (rng.random(1200) < 0.1), dtype="boolean"),
    })  # fmt: skip
    frame.loc[:399, ["size", "town", "member"]] = None
    draws = unmix.Imputer(random_state=0).fit(frame).impute(frame, n_draws=5)
    drawn = pd.concat([d[:400] for d in draws]).groupby("town")
    np.testing.assert_allclose(drawn["size"].mean(), [0.0, 3.0, 6.0], atol=0.4)
    np.testing.assert_allclose(drawn["member"].mean().astype(float), [0.1, 0.1, 0.9], atol=0.1)


def test_polars_and_arrow_come_back_as_they_came(frame):
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    H = frame[1].drop(columns=["same", "nothing"])
    p = pl.from_pandas(H)
    imputer = unmix.Imputer(random_state=0).fit(p)
    out = imputer.transform(p)
    assert isinstance(out, pl.DataFrame)
    assert out.schema == p.schema
    assert out["town"].null_count() == out["height"].null_count() == out["age"].null_count() == 0
    assert out["since"].null_count() == p["since"].null_count()
    std = imputer.impute(p, return_std=True)[1]
    assert isinstance(std, pl.DataFrame)
    assert std.columns == p.columns
    assert std[["id", "since", "remark"]].equals(p[["id", "since", "remark"]])
    assert (std["height"].is_nan() | (std["height"] >= 0)).all()
    table = p.to_arrow()
    spread = imputer.impute(table, return_std=True)[1]
    assert spread.column("id").to_pylist() == p["id"].to_list()
    assert spread.column("height").to_pylist() == std["height"].to_list()
    back = imputer.transform(table)
    assert isinstance(back, pa.Table)
    assert back.column("town").null_count == 0
    assert back.column("height").to_pylist() == out["height"].to_list()


@pytest.mark.parametrize("levels", [[0, 1, 2], [0.5, 1.5, 2.0], [True, False], ["a", 1], ["x", "y"]], ids=str)
def test_levels_of_any_type_come_back(levels):
    rng = np.random.default_rng(0)
    a = np.array(levels, dtype=object)[np.arange(150) % len(levels)]
    a[rng.random(150) < 0.2] = None
    frame = pd.DataFrame({"a": pd.Categorical(a, categories=levels), "x": rng.normal(size=150)})
    imputer = unmix.Imputer(random_state=0).fit(frame)
    for out in (imputer.transform(frame), *imputer.impute(frame, n_draws=2)):
        assert out["a"].dtype == frame["a"].dtype
        assert out["a"].notna().all()
        pd.testing.assert_series_equal(out["a"][frame["a"].notna()], frame["a"].dropna())
    fewer = frame[frame["a"].isna() | (frame["a"] == levels[0])].copy()
    fewer["a"] = fewer["a"].cat.remove_unused_categories()
    assert imputer.transform(fewer)["a"].isin(levels).all()


@pytest.mark.parametrize("home", ["pandas", "polars"])
def test_durations_are_left_alone(home):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": pd.to_timedelta(np.arange(150) * 3.0, unit="s"), "x": rng.normal(size=150)})
    frame["y"] = frame["x"] + rng.normal(size=150)
    frame.loc[::4, "y"] = np.nan
    frame.loc[::5, "t"] = pd.NaT
    given = frame if home == "pandas" else pl.from_pandas(frame)
    imputer = unmix.Imputer(random_state=0).fit(given)
    assert any("'t' (durations)" in note for note in imputer.notes_)
    out = imputer.transform(given)
    assert out["t"].equals(given["t"])
    assert np.isfinite(np.asarray(out["y"])).all()
    assert imputer.impute(given, return_std=True)[1]["t"].equals(given["t"])


def test_unseen_levels_stay_and_are_told(frame, of_frame):
    new = frame[1].iloc[:5].copy()
    new["sex"] = ["f", "m", "other", None, "f"]
    new["height"] = np.nan
    with pytest.warns(UserWarning, match="'sex' were not seen"):
        out = of_frame.transform(new)
    assert out["sex"].iloc[2] == "other"
    assert out["sex"].iloc[3] in ("f", "m")
    assert not out["height"].isna().any()


def test_files_and_tables_give_arrow(frame, tmp_path):
    path = tmp_path / "people.csv"
    frame[1].to_csv(path, index=False)
    out = unmix.Imputer(random_state=0).fit(path).transform(path)
    assert out.column("height").null_count == 0
    table = unmix.Table(frame[1], drop=["height"])
    out = unmix.Imputer(random_state=0).fit(table).transform(table)
    assert out.column("height").null_count == frame[1]["height"].isna().sum()
    assert out.column("children").null_count == 0


# ---------------------------------------------------------------- as an estimator


def test_same_seed_same_cells(curved):
    _, H, _, imputer = curved
    again = clone(imputer).fit(H)
    np.testing.assert_array_equal(again.transform(H), imputer.transform(H))
    np.testing.assert_array_equal(again.impute(H, n_draws=2), imputer.impute(H, n_draws=2))
    other = unmix.Imputer(random_state=1).fit(H)
    assert (other.transform(H) != imputer.transform(H)).any()


def test_kept_and_read_again(curved, frame, of_frame, tmp_path):
    for imputer, H in ((curved[3], curved[1]), (of_frame, frame[1])):
        imputer.save(tmp_path / "i.unmix")
        again = unmix.load(tmp_path / "i.unmix")
        a, b = imputer.transform(H), again.transform(H)
        assert a.equals(b) if isinstance(a, pd.DataFrame) else (a == b).all()
        assert str(again.report()) == str(imputer.report())
        assert again.impute(H, n_draws=1)[0].shape == H.shape
        pickle.loads(pickle.dumps(imputer)).transform(H)


def test_a_file_of_other_parts_is_refused(tmp_path, monkeypatch):
    def everybody(y, columns, groups, seed, tell):
        names = possible(len(y), len(groups))
        found = choose(y, columns, groups, seed, tell)
        return found._replace(candidates=names, weights=np.full((len(groups), len(names)), 1 / len(names)))

    monkeypatch.setattr("unmix.imputation.imputer.choose", everybody)
    H = holed(load_iris().data, 0.2)[0]
    imputer = unmix.Imputer(random_state=0).fit(H)
    imputer.save(tmp_path / "whole.unmix")
    np.testing.assert_array_equal(unmix.load(tmp_path / "whole.unmix").transform(H), imputer.transform(H))
    for name, value in (
        ("_curves_", imputer._curves_[:1]),
        ("candidates_", ["nobody", *imputer.candidates_[1:]]),
        ("_models_", {}),
        ("_density_", "nobody"),
    ):
        broken = pickle.loads(pickle.dumps(imputer))
        setattr(broken, name, value)
        with pytest.raises(PackError):
            broken.save(tmp_path / "broken.unmix")
    left = imputer._trees_[0]
    imputer._trees_[0] = left._replace(left=left.left + 10_000)
    with pytest.raises(PackError):
        imputer.save(tmp_path / "broken.unmix")


def test_in_a_pipeline():
    X, y = load_diabetes(return_X_y=True)
    H, _ = holed(X[:150], 0.1)
    model = make_pipeline(unmix.Imputer(random_state=0), LinearRegression()).fit(H, y[:150])
    assert model.score(H, y[:150]) > 0.3
    assert list(model[0].get_feature_names_out())[:2] == ["x0", "x1"]
    assert model[0].set_output(transform="pandas").transform(H).shape == H.shape


@parametrize_with_checks([unmix.Imputer(random_state=0)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_check(estimator, check):
    with unmix.config(progress=False):
        check(estimator)


# ---------------------------------------------------------------- hostile input


@pytest.mark.filterwarnings("ignore:columns")
def test_little_is_filled_by_means():
    one = unmix.Imputer().fit([[1.0, np.nan, 3.0]])
    assert one.chosen_ == "column mean"
    assert "too few" in one.reason_
    np.testing.assert_array_equal(one.transform([[np.nan, np.nan, 5.0]]), [[1.0, np.nan, 5.0]])
    column = unmix.Imputer().fit(np.array([[1.0], [3.0], [np.nan]]))
    assert column.transform([[np.nan]])[0, 0] == 2.0
    assert column.impute([[np.nan]], return_std=True)[1][0, 0] == pytest.approx(1.0)
    assert column.impute([[np.nan]], n_draws=3).shape == (3, 1, 1)


def test_empty_rows_and_columns():
    X = np.random.default_rng(0).normal(size=(40, 3)) + 5
    X[3] = np.nan
    X[:, 1] = np.nan
    X[7, 0] = np.nan
    with pytest.warns(UserWarning, match="left empty"):
        imputer = unmix.Imputer(random_state=0).fit(X)
    out = imputer.transform(X)
    assert np.isnan(out[:, 1]).all()
    assert np.isfinite(out[:, [0, 2]]).all()
    assert abs(out[3, 0] - 5) < 1
    with pytest.raises(ValueError, match="no observed cell"):
        unmix.Imputer().fit(np.full((4, 2), np.nan))


def test_constant_and_repeated_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    X = np.column_stack([x, x, np.full(60, 7.0), rng.normal(size=60)])
    H = X.copy()
    H[:5, 1], H[5:9, 2] = np.nan, np.nan
    out, std = unmix.Imputer(random_state=0).fit(H).impute(H, return_std=True)
    np.testing.assert_array_equal(out[5:9, 2], 7.0)
    assert (std[5:9, 2] == 0).all()
    np.testing.assert_allclose(out[:5, 1], X[:5, 1], atol=0.3)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_unit_does_not_matter(scale):
    X = np.random.default_rng(0).multivariate_normal([0, 0, 0], np.eye(3) + 1, 60)
    H, _ = holed(X, 0.15)
    plain = unmix.Imputer(random_state=0).fit(H).transform(H)
    np.testing.assert_allclose(
        unmix.Imputer(random_state=0).fit(H * scale).transform(H * scale), plain * scale, rtol=0.05, atol=0.05 * scale
    )


def test_nothing_missing_nothing_changed():
    X = load_iris().data[:60].astype(np.float32)
    imputer = unmix.Imputer(random_state=0).fit(X)
    out, std = imputer.impute(X, return_std=True)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, X)
    assert not std.any()
    new = X[:3].copy()
    new[:, 2] = np.nan
    assert np.abs(imputer.transform(new)[:, 2] - X[:3, 2]).max() < 0.5


@pytest.mark.parametrize("fitted_to_holes", [True, False])
def test_draws_of_a_table_without_empty_cells_are_that_table(fitted_to_holes):
    X = np.random.default_rng(0).normal(size=(20, 3))
    H = holed(X, 0.2)[0] if fitted_to_holes else X
    draws = unmix.Imputer(random_state=0).fit(H).impute(X, n_draws=2)
    np.testing.assert_array_equal(draws, np.stack([X, X]))
    frame = pd.DataFrame(X, columns=list("abc"))
    fitted = unmix.Imputer(random_state=0).fit(pd.DataFrame(H, columns=list("abc")))
    for draw in fitted.impute(frame, n_draws=2):
        pd.testing.assert_frame_equal(draw, frame)


def test_wrong_input_is_told():
    X = np.random.default_rng(0).normal(size=(30, 3))
    imputer = unmix.Imputer(random_state=0).fit(X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        imputer.transform(X[:, :2])
    with pytest.raises(ValueError, match="fitted to an array"):
        imputer.transform({"a": [1.0, None]})
    with pytest.raises(ValueError, match="n_draws=0"):
        imputer.impute(X, n_draws=0)
    with pytest.raises(ValueError, match="ask for one of the two"):
        imputer.impute(X, n_draws=2, return_std=True)
    with pytest.raises(ValueError, match="infinity"):
        unmix.Imputer().fit(np.array([[np.inf, 1.0], [2.0, 3.0]]))
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="nothing to impute"):
        unmix.Imputer().fit(sp.csr_array(X))
    frame = pd.DataFrame(X, columns=list("abc"))
    of_frame = unmix.Imputer(random_state=0).fit(frame)
    with pytest.raises(ValueError, match="no column 'a'"):
        of_frame.transform(frame.rename(columns={"a": "z"}))


# ---------------------------------------------------------------- found by use


def test_a_column_that_few_rows_show_is_among_any_sample_of_rows():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    X[3:, 2] = np.nan
    imputer = unmix.Imputer(random_state=0).fit(X)
    assert not np.isnan(imputer.transform(X)).any()
    assert not np.isnan(imputer.impute(X[:50], n_draws=1)).any()


def test_a_fit_that_fails_leaves_the_old_one():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[::5, 1] = np.nan
    imputer = unmix.Imputer(random_state=0).fit(X)
    before = imputer.transform(X)
    with pytest.raises(ValueError, match="no observed cell"):
        imputer.fit(np.full((3, 2), np.nan))
    np.testing.assert_array_equal(imputer.transform(X), before)


def test_what_is_warned_of_in_fit_is_among_the_notes():
    X = np.random.default_rng(0).normal(size=(12, 3))
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="hold no value"):
        imputer = unmix.Imputer(random_state=0).fit(X)
    assert imputer.notes_ == ["columns [1] hold no value and are left empty"]


def test_yes_and_no_are_as_unsure_as_a_category():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=100), "coin": pd.array(rng.random(100) < 0.5, dtype="boolean")})
    frame.loc[:29, "coin"] = pd.NA
    std = unmix.Imputer(random_state=0).fit(frame).impute(frame, return_std=True)[1]["coin"]
    share = frame["coin"].mean()
    assert std[:30].to_numpy() == pytest.approx(np.sqrt(share * (1 - share)), abs=0.03)


def test_infinite_cells_of_a_table_are_filled_as_they_are_said_to_be():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    frame.loc[0, "a"] = np.inf
    imputer = unmix.Imputer(random_state=0).fit(frame)
    assert any("infinite" in note for note in imputer.notes_)
    filled = imputer.transform(frame)
    assert np.isfinite(filled.to_numpy()).all()
    assert (filled.iloc[1:] == frame.iloc[1:]).all().all()
