"""Columns told apart, left out or made into numbers; models that are fitted to tables, and remember how."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import unmix
from unmix.io.pack import PackError
from unmix.table import Table, TableEncoder, TableError

N = 240


@pytest.fixture(scope="module")
def group():
    return np.arange(N) % 2


@pytest.fixture(scope="module")
def frame(group):
    rng = np.random.default_rng(0)
    out = pd.DataFrame(
        {
            "customer id": [f"C{i:05d}" for i in range(N)],
            "age": rng.normal(30 + 20 * group, 4),
            "visits": rng.poisson(3 + 4 * group),
            "town": np.where(rng.random(N) < np.where(group, 0.9, 0.1), "Bonn", "Ulm"),
            "plan": pd.Categorical(rng.choice(["basic", "plus", "pro"], N)),
            "paid": rng.random(N) < 0.3 + 0.4 * group,
            "since": pd.date_range("2020-01-01", periods=N),
            "remark": [f"remark number {i % 150} of a long and winding text that nobody reads" for i in range(N)],
            "country": "DE",
            "fax": None,
        }
    )
    out.loc[::7, "age"] = np.nan
    out.loc[::11, "town"] = None
    return out


def kinds(table):
    return {c.name: (c.kind, c.role) for c in table.columns}


# ---------------------------------------------------------------- kinds


def test_columns_are_told_apart(frame):
    assert kinds(Table(frame)) == {
        "customer id": ("identifier", "id"),
        "age": ("number", "used"),
        "visits": ("count", "used"),
        "town": ("category", "used"),
        "plan": ("category", "used"),
        "paid": ("boolean", "used"),
        "since": ("date", "left out"),
        "remark": ("text", "left out"),
        "country": ("constant", "left out"),
        "fax": ("empty", "left out"),
    }


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        (np.arange(50), "x", "identifier"),
        (np.arange(1, 51), "whatever", "identifier"),
        (np.random.default_rng(0).permutation(50) + 700, "user_id", "identifier"),
        (np.random.default_rng(0).permutation(50) + 700, "userId", "identifier"),
        (np.random.default_rng(0).permutation(50) + 700, "height", "integer"),
        (np.random.default_rng(0).permutation(50) + 700, "width", "integer"),
        (np.arange(50) % 2, "x", "boolean"),
        ((np.arange(50) % 2).astype(float), "x", "boolean"),
        (np.arange(50) % 7, "x", "count"),
        (np.arange(50) % 7 * 1000, "salary", "integer"),
        (np.arange(50) % 5 + 1, "severity", "integer"),
        (np.arange(50) - 25.0, "x", "integer"),
        (np.arange(50) / 3, "id", "number"),
        (["a", "b"] * 25, "x", "category"),
        ([f"k{i}" for i in range(50)], "x", "identifier"),
        ([f"k{i % 40}" for i in range(50)], "x", "text"),
        (["one word after the other and so on up to here " + str(i) for i in range(50)], "x", "text"),
        ([True, None] * 25, "x", "constant"),
    ],
)
def test_kind_of_one_column(values, name, kind):
    table = pa.table({name: values, "other": np.random.default_rng(1).normal(size=50)})
    assert kinds(Table(table))[name][0] == kind


def test_what_users_say_counts(frame):
    table = Table(
        frame,
        drop=["visits"],
        id="remark",
        label=["town"],
        kinds={"since": "number", "country": "identifier", "PAID": "category"},
    )
    found = kinds(table)
    assert found["visits"] == ("count", "left out")
    assert found["remark"][1] == "id"
    assert found["town"] == ("category", "label")
    assert found["since"] == ("number", "used")
    assert found["country"] == ("identifier", "id")
    assert found["paid"] == ("category", "used")
    days = table.recipe.decode(table.read(0, 2))["since"]
    np.testing.assert_allclose(days, [18262.0, 18263.0])  # since 1970


def test_columns_that_are_named_are_all_that_is_used(frame):
    table = Table(frame, columns=["age", "town"], id="customer id")
    assert table.names == ["age", "town = Ulm"]
    assert table.role("id") == ["customer id"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"columns": ["age", "since"]}, "holds dates"),
        ({"columns": ["agee"]}, "did you mean 'age'"),
        ({"drop": ["zzz"]}, "it has 'customer id'"),
        ({"columns": ["age"], "label": "age"}, "name it once"),
        ({"kinds": {"age": "colour"}}, "a column is one of number"),
        ({"scale": "robust"}, "'auto'"),
        ({"weights": "town"}, "give one of numbers"),
        ({"kinds": {"town": "number"}}, "not a number"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(frame, said, words):
    with pytest.raises(ValueError, match=words):
        Table(frame, **said).read(0, 1)


def test_a_table_without_a_usable_column_says_why_of_each(frame):
    with pytest.raises(TableError, match=r"no column can be used: .*'since' \(it holds dates\).*'country'"):
        Table(frame[["since", "country", "fax"]])


def test_notes_say_what_was_left_out(frame):
    said = "\n".join(Table(frame).notes)
    assert "left out: 'since' (it holds dates)" in said
    assert "'remark' (150 different texts in 240 rows)" in said
    assert "taken for names of the rows: 'customer id'" in said
    assert "columns count alike" in said
    assert "columns count alike" not in "\n".join(Table(frame, scale="none").notes)


# ---------------------------------------------------------------- numbers


def test_numbers_are_scikit_learns_scaler_and_encoder(frame):
    table = Table(frame)
    rows = table.read(0, N)
    np.testing.assert_allclose(rows[:, :2], StandardScaler().fit_transform(frame[["age", "visits"]]), rtol=1e-10)
    plan = rows[:, [table.names.index(f"plan = {level}") for level in ("basic", "plus", "pro")]]
    one_hot = OneHotEncoder(sparse_output=False).fit_transform(frame[["plan"]])
    share = one_hot.mean(axis=0)
    np.testing.assert_allclose(plan, (one_hot - share) / np.sqrt(1 - (share**2).sum()))


def test_every_column_of_the_table_has_variance_one(frame):
    table = Table(frame)
    variance = np.nanvar(table.read(0, N), axis=0)
    at = 0
    for use in table.recipe.uses:
        assert variance[at : at + use.width].sum() == pytest.approx(1.0)
        at += use.width


@pytest.mark.parametrize("how", ["standardised", "scaled", "given"])
def test_decoding_gives_the_table_back(frame, how):
    table = Table(frame).suited(how)
    back = table.recipe.decode(table.read(0, N))
    np.testing.assert_allclose(back["age"], frame["age"])
    np.testing.assert_allclose(back["paid"], frame["paid"], atol=1e-12)
    np.testing.assert_allclose(back["plan"], pd.get_dummies(frame["plan"]), atol=1e-12)
    town = np.where(frame["town"].isna().to_numpy()[:, None], np.nan, pd.get_dummies(frame["town"]))
    np.testing.assert_allclose(back["town"], town, atol=1e-12)


def test_frames_files_and_queries_give_the_same_rows(frame, tmp_path):
    frame = frame[["customer id", "age", "visits", "town", "paid"]]
    want = Table(frame).read(0, N)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    lazy = pl.from_pandas(frame).lazy()
    duckdb = pytest.importorskip("duckdb")
    query = duckdb.sql("select * from frame")
    for data in (pl.from_pandas(frame), lazy, query, tmp_path / "t.csv", tmp_path / "t.parquet", pa.table(frame)):
        np.testing.assert_array_equal(Table(data).read(0, N), want)


def test_a_table_larger_than_memory_gives_the_same_bits(tmp_path):
    rng = np.random.default_rng(0)
    n = 70_000
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.gamma(2.0, size=n), "c": rng.choice(list("xyz"), n)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    held = Table(tmp_path / "t.csv")
    with unmix.config(memory_budget=1 << 20):
        spooled = Table(tmp_path / "t.csv")
        assert held.in_memory
        assert not spooled.in_memory
        assert spooled.recipe == held.recipe
        labels = unmix.KMeans(3, random_state=0).fit(spooled).predict(spooled)
    np.testing.assert_array_equal(labels, unmix.KMeans(3, random_state=0).fit(held).predict(held))


def test_float32_stays_float32():
    x = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    model = unmix.KMeans(2, random_state=0).fit(Table(pd.DataFrame(x, columns=["a", "b"])))
    assert model.cluster_centers_.dtype == np.float32


def test_weights_come_from_their_column(frame):
    heavy = frame.assign(times=np.arange(N) % 3)
    table = Table(heavy, weights="times")
    assert "times" not in table.names
    np.testing.assert_array_equal(table.weights, np.arange(N) % 3)


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("name", list(unmix.models()))
def test_every_model_takes_a_table_and_new_frames(name, frame, tmp_path):
    numbers = ["visits"] if name == "LatentDirichletAllocation" else ["visits", "paid", "plan"]
    if name not in ("LatentDirichletAllocation", "NMF"):
        numbers += ["town", "age"] if unmix.models()[name].missing else []
    table, cls = Table(frame, columns=numbers), unmix.models()[name]
    size = "n_clusters" if "n_clusters" in cls().get_params() else "n_components"
    size = {} if name in ("RobustPCA", "GaussianImputer", "RoleCover") else {size: 1 if numbers == ["visits"] else 2}
    given = {"random_state": 0, "threshold": 0.5}  # from where on a cell is a 1, for models of yes and no
    given = {k: v for k, v in given.items() if k in cls().get_params()}
    model = cls(**size).set_params(**given).fit(table)
    assert model.recipe_.columns == [c for c in frame.columns if c in numbers]
    want = model.transform(table)
    shuffled = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(model.transform(shuffled), want)
    model.save(tmp_path / "m.unmix")
    np.testing.assert_array_equal(unmix.load(tmp_path / "m.unmix").transform(pl.from_pandas(frame)), want)
    np.testing.assert_array_equal(model.transform(np.asarray(table.suited(cls.columns_as).read(0, N))), want)
    assert "recipe_" not in vars(clone(model))


def test_a_fit_to_an_array_forgets_the_table(frame):
    model = unmix.KMeans(2, random_state=0).fit(Table(frame))
    model.fit(np.random.default_rng(0).normal(size=(20, 2)))
    assert "recipe_" not in vars(model)


def test_new_tables_that_lack_a_column_are_refused(frame):
    model = unmix.KMeans(2, random_state=0).fit(Table(frame))
    with pytest.raises(TableError, match=r"no column 'age' \(is it 'Age' here\?\)"):
        model.predict(frame.rename(columns={"age": "Age"}))


def test_a_level_that_the_fit_did_not_see_is_not_observed(frame):
    model = unmix.KMeans(2, random_state=0).fit(Table(frame))
    strange, missing = frame.copy(), frame.copy()
    strange["town"], missing["town"] = "Atlantis", None
    np.testing.assert_array_equal(model.transform(strange), model.transform(missing))


def test_forged_recipes_are_refused(frame, tmp_path):
    model = unmix.KMeans(2, random_state=0).fit(Table(frame))
    use = model.recipe_.uses[0]
    for forged in (
        model.recipe_._replace(uses=model.recipe_.uses[1:]),
        model.recipe_._replace(how="magic"),
        model.recipe_._replace(uses=(use._replace(scale=0.0), *model.recipe_.uses[1:])),
        model.recipe_._replace(uses=(use._replace(centers=(float("nan"),)), *model.recipe_.uses[1:])),
        model.recipe_._replace(uses=(use._replace(levels=("a", "b", "c")), *model.recipe_.uses[1:])),
        "recipe",
    ):
        vars(model)["recipe_"] = forged
        with pytest.raises(PackError):
            model.save(tmp_path / "m.unmix")  # which reads what it wrote, as `load` does


def test_unscaled_columns_hide_groups_that_a_table_shows():
    wine = load_wine(as_frame=True)
    raw = unmix.KMeans(3, n_init=10, random_state=0).fit(wine.data)
    table = unmix.KMeans(3, n_init=10, random_state=0).fit(Table(wine.data))
    assert adjusted_rand_score(wine.target, raw.labels_) < 0.4
    assert adjusted_rand_score(wine.target, table.labels_) > 0.88
    plain = unmix.KMeans(3, n_init=10, random_state=0).fit(Table(wine.data, scale="none"))
    assert adjusted_rand_score(raw.labels_, plain.labels_) == 1


# ---------------------------------------------------------------- mixtures


def test_mixture_chooses_families_by_the_kind_of_each_column(frame, group):
    names = ["age", "visits", "town", "plan", "paid"]
    model = unmix.Mixture(2, random_state=0, n_init=3).fit(frame[names])
    codes = frame[names].assign(
        town=frame["town"].map({"Bonn": 0, "Ulm": 1}), plan=frame["plan"].cat.codes, paid=frame["paid"].astype(float)
    )
    family = [
        ("gaussian", ["age"]),
        ("poisson", ["visits"]),
        ("categorical", ["town", "plan"]),
        ("bernoulli", ["paid"]),
    ]
    plain = unmix.Mixture(2, family=family, random_state=0, n_init=3).fit(codes.astype(float))
    np.testing.assert_allclose(model.predict_proba(frame[names]), plain.predict_proba(codes.astype(float)), rtol=1e-9)
    assert adjusted_rand_score(group, model.labels_) > 0.9
    assert model.levels_ == {"town": ("Bonn", "Ulm"), "plan": ("basic", "plus", "pro")}
    assert clone(model).family == "auto"


def test_mixture_takes_strings_under_categorical(frame):
    model = unmix.Mixture(2, family="categorical", random_state=0).fit(frame[["town", "plan"]])
    assert model.parameters_["probabilities"].shape == (2, 2, 3)
    np.testing.assert_allclose(model.parameters_["probabilities"].sum(axis=2), 1.0)
    model = unmix.Mixture(2, family=[("categorical", ["town"]), ("gaussian", ["age"])], random_state=0)
    assert model.fit(frame[["town", "age"]]).levels_ == {"town": ("Bonn", "Ulm")}


def test_mixture_of_an_array_is_gaussian():
    X = np.random.default_rng(0).normal(size=(60, 2))
    one, two = (unmix.Mixture(2, random_state=0, **f).fit(X) for f in ({}, {"family": "gaussian"}))
    np.testing.assert_array_equal(one.means_, two.means_)


def test_mixture_names_columns_in_errors(frame):
    with pytest.raises(ValueError, match="column 'town' holds categories, but the family Gaussian needs"):
        unmix.Mixture(2, family="gaussian").fit(frame[["town", "age"]])
    with pytest.raises(ValueError, match=r"column 'age' holds .* but the family Poisson needs"):
        unmix.Mixture(2, family=[("poisson", ["age", "visits"])]).fit(frame[["visits", "age"]].dropna())
    with pytest.raises(TableError, match="'since': the column holds dates"):
        unmix.Mixture(2).fit(frame[["age", "since"]])


def test_select_and_outliers_take_tables(frame, group):
    answer = unmix.select(unmix.Mixture(n_init=3), Table(frame), k=range(1, 5), random_state=0)
    assert answer.k == 2
    assert adjusted_rand_score(group, answer.model.predict(frame)) > 0.9
    detector = unmix.OutlierDetector(random_state=0).fit(Table(frame))
    assert detector.p_values(frame).shape == (N,)


# ---------------------------------------------------------------- pipelines


def test_encoder_is_the_table_in_a_pipeline(frame):
    encoder = TableEncoder().set_output(transform="pandas")
    out = encoder.fit_transform(frame)
    assert list(out.columns) == Table(frame).names == list(encoder.get_feature_names_out())
    np.testing.assert_array_equal(out, Table(frame).read(0, N))
    pipe = make_pipeline(TableEncoder(drop=["plan"]), unmix.KMeans(2, random_state=0)).fit(frame)
    half = frame.iloc[::2]
    np.testing.assert_array_equal(pipe.predict(half), pipe.predict(frame)[::2])
    assert clone(encoder).get_params()["scale"] == "auto"


def test_nothing_passed_in_is_changed(frame, tmp_path):
    before = frame.copy(deep=True)
    frame.to_csv(tmp_path / "t.csv")
    stamp = os.stat(tmp_path / "t.csv").st_mtime_ns, (tmp_path / "t.csv").read_bytes()
    unmix.KMeans(2, random_state=0).fit(Table(frame))
    unmix.KMeans(2, random_state=0).fit(Table(tmp_path / "t.csv"))
    pd.testing.assert_frame_equal(frame, before)
    assert stamp == (os.stat(tmp_path / "t.csv").st_mtime_ns, (tmp_path / "t.csv").read_bytes())


def test_columns_that_are_called_numbers_count_like_the_others(frame):
    town = frame.assign(code=pd.Categorical(np.arange(N) % 7 * 100))
    table = Table(town, columns=["age", "visits"], kinds={"since": "number", "code": "number"})
    np.testing.assert_allclose(np.nanvar(table.read(0, N), axis=0), 1.0)
    assert kinds(table)["code"] == ("number", "used")


def test_truth_values_and_large_numbers_may_be_categories():
    frame = pd.DataFrame({"flag": [True, False, True, None] * 5, "code": [10**16, 3, 7, 3] * 5})
    frame["x"] = np.arange(20.0) ** 2
    table = Table(frame, kinds={"flag": "category", "code": "category"})
    rows = table.read(0, 4)
    assert table.names == ["flag = true", "code = 3", "code = 7", "code = 10000000000000000", "x"]
    np.testing.assert_array_equal(np.isnan(rows[:, 0]), [False, False, False, True])
    assert not np.isnan(rows[:, 1:]).any()


def test_infinite_cells_are_not_observed_and_said():
    table = Table({"x": [1.0, 2.0, float("inf"), 4.0, -float("inf")], "y": [1.0, 5.0, 2.0, 8.0, 3.0]})
    np.testing.assert_array_equal(np.isnan(table.read(0, 5)[:, 0]), [False, False, True, False, True])
    assert "2 infinite cells of 'x' are taken for missing" in table.notes
    one = Table({"x": [1.0, 2.0, float("inf"), 4.0], "y": [1.0, 5.0, 2.0, 8.0]})
    assert "1 infinite cell of 'x' is taken for missing" in one.notes


def test_names_of_levels_are_unlike_names_of_columns():
    table = Table({"a": ["b", "c", "d", "b", "c", "d"] * 2, "a = b": np.arange(12.0) ** 2})
    assert len(set(table.names)) == len(table.names) == 4


def test_some_rows_are_a_table_of_their_own():
    frame = pd.DataFrame({"id": [f"a{i}" for i in range(40)], "x": [*range(39), 9999.0], "c": list("uv") * 20})
    table = Table(frame)
    mine = table.only(np.arange(40) != 39)
    assert (mine.n, mine.role("id"), mine.recipe.columns) == (39, ["id"], ["x", "c"])
    assert mine.recipe.uses[0].scale == pytest.approx(np.std(range(39)))
    some = table.only([2, 3, 7])
    assert some.raw.slice(0, 3, ["x"]).column(0).to_pylist() == [2.0, 3.0, 7.0]
    model = unmix.KMeans(2, random_state=0).fit(mine)
    assert len(model.predict(table)) == 40  # read by the recipe of the other rows


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e-200, 1e200, 1e300, 1.7e308])
def test_columns_of_any_size_count_alike(size):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, 80) * size, "b": rng.normal(size=80)})
    frame["w"] = rng.uniform(0.5, 1, 80) * size
    table = unmix.Table(frame, weights="w")
    x = table.read(0, 80)
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(x.std(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(table.recipe.decode(x)["a"], frame["a"], rtol=1e-9, atol=1e-9 * size)
    assert table.columns[0].kind in ("number", "integer")


def test_one_cell_of_any_size_breaks_no_table():
    frame = pd.DataFrame({"a": np.linspace(0.5, 3.0, 90) ** 2, "b": np.cos(np.arange(90.0))})
    for cells in ([1e200], [1.7e308, -1.7e308]):
        far = frame.copy()
        far.loc[: len(cells) - 1, "a"] = cells
        x = unmix.Table(far).read(0, 90)
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x.std(axis=0), 1.0)
        holes = far.copy()
        holes.loc[5:20, "b"] = np.nan
        filled = unmix.Imputer(random_state=0).fit(holes).transform(holes)
        assert np.isfinite(filled.to_numpy()).all()


def test_what_is_seen_in_pieces_of_unlike_size_is_what_is_seen_at_once(monkeypatch):
    x = np.concatenate([np.zeros(5), np.full(5, 1e-320), np.linspace(1, 2, 5), np.linspace(-3, 5, 5) * 1e200])
    monkeypatch.setattr("unmix.table.kinds.PIECE_ROWS", 5)
    for part in (x[:10] * 1e20, x[:15], x, x[::-1]):
        (column,) = unmix.Table({"x": part}, kinds={"x": "number"}).columns
        size = np.abs(part).max()
        np.testing.assert_allclose(column.seen.mean, (part / size).mean() * size, rtol=1e-12)
        np.testing.assert_allclose(column.seen.deviation, (part / size).std() * size, rtol=1e-12)


def test_rows_that_do_not_rise_are_refused():
    table = unmix.Table(pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0) ** 2}))
    for rows in ([5, 3], [2, 2], [-1, 3], [8, 9]):
        with pytest.raises(ValueError, match="rows must be numbers that rise, of 0 to 8"):
            table.rows(rows)
    with pytest.raises(ValueError, match=r"rows: \(4,\) truth values of a table of 9 rows"):
        table.rows(np.ones(4, bool))
    assert table.rows([0, 3, 8])["a"].to_pylist() == [0, 3, 8]


def test_a_part_is_of_about_the_size_that_was_asked_for():
    table = unmix.Table(np.random.default_rng(0).normal(size=(3000, 2)))
    assert [table.part(rows).n for rows in (10, 100, 1200)] == [10, 100, 1200]
