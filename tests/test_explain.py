"""What a fit found, in the units of the table, beside pandas' group-by."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.preprocessing import StandardScaler

import unmix
from unmix.explanation.words import decimals, number, percent, shortened


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 3, 400)
    frame = pd.DataFrame(
        {
            "nr": [f"P{i:04d}" for i in range(400)],
            "income": rng.normal(0, 4_000, 400) + np.array([30_000, 50_000, 90_000])[who],
            "age": rng.normal(0, 3, 400) + np.array([25, 60, 40])[who],
            "town": np.where(rng.random(400) < 0.8, np.array(["Ulm", "Bonn", "Kiel"])[who], "Trier"),
            "smokes": np.where(rng.random(400) < np.array([0.9, 0.1, 0.1])[who], "yes", "no"),
            "member": rng.random(400) < 0.5,
        }
    )
    frame.loc[rng.random(400) < 0.1, "age"] = np.nan
    frame.loc[rng.random(400) < 0.1, "town"] = None
    return frame


@pytest.mark.parametrize("model", [unmix.KMeans(3, random_state=0), unmix.Mixture(3, random_state=0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_centres_and_shares_are_those_of_a_group_by(frame, model, weighted):
    w = np.random.default_rng(1).integers(1, 4, len(frame)).astype(float) if weighted else np.ones(len(frame))
    table = unmix.Table(frame)
    model = model.fit(table, sample_weight=w)
    found = unmix.explain(model, table, sample_weight=w if weighted else None)
    again = frame.loc[frame.index.repeat(w.astype(int))]
    labels = model.predict(table)[again.index]
    plain = again.groupby(labels)
    assert [g.label for g in found.groups] == [0, 1, 2]
    for g in found.groups:
        mine, others = plain.get_group(g.label), again[labels != g.label]
        assert g.rows == (model.predict(table) == g.label).sum()
        assert g.share == pytest.approx(len(mine) / len(again))
        for name in ("income", "age", "member"):
            assert g.centre[name] == pytest.approx(mine[name].mean())
            assert g.spread[name] == pytest.approx(mine[name].std(ddof=0))
        for name in ("town", "smokes"):
            shares = mine[name].value_counts(normalize=True)
            assert g.centre[name] == pytest.approx({level: shares.get(level, 0.0) for level in g.centre[name]})
        trait = next(t for t in g.traits if t.column == "age")
        effect = (mine["age"].mean() - others["age"].mean()) / again["age"].std(ddof=0)
        assert trait.effect == pytest.approx(effect)
        assert (trait.value, trait.others) == pytest.approx((mine["age"].mean(), others["age"].mean()))
    assert found.centre["age"] == pytest.approx(again["age"].mean())


def test_categories_are_told_by_the_level_that_differs_most(frame):
    table = unmix.Table(frame)
    found = unmix.explain(unmix.KMeans(3, random_state=0).fit(table), table)
    young = min(found.groups, key=lambda g: g.centre["age"])
    traits = {t.column: t for t in young.traits}
    assert (traits["town"].level, traits["smokes"].level) == ("Ulm", "yes")
    assert traits["smokes"].value > 0.8 > 0.2 > traits["smokes"].others
    assert "smokes = yes" in young.words or "town = Ulm" in young.words
    assert found.units[0].name == "income"
    assert "member" not in young.words


def test_the_typical_row_is_the_nearest_one(frame):
    table = unmix.Table(frame[["nr", "income", "age"]].dropna(), id="nr")
    model = unmix.KMeans(3, random_state=0).fit(table)
    found = unmix.explain(model, table)
    nearest = model.transform(table).argmin(axis=0)  # centres of k-means are means
    assert [g.typical.row for g in found.groups] == nearest.tolist()
    kept = frame[["nr", "income", "age"]].dropna().reset_index(drop=True)
    assert [g.typical.cells["nr"] for g in found.groups] == kept["nr"][nearest].tolist()
    assert kept["nr"][nearest[0]] in str(found)


def test_blocks_do_not_matter(frame):
    table = unmix.Table(frame)
    model = unmix.KMeans(3, random_state=0).fit(table)
    whole = unmix.explain(model, table).to_dict()
    with unmix.config(block_rows=7):
        parts = unmix.explain(model, table).to_dict()
    for a, b in zip(whole["groups"], parts["groups"], strict=True):
        assert a["centre"] == pytest.approx({k: pytest.approx(v) for k, v in b["centre"].items()})
    json.dumps(whole)


def test_arrays_sparse_rows_and_estimators_of_others():
    X = np.repeat([[0.0, 5.0], [9.0, 5.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 2))
    ours = unmix.KMeans(2, random_state=0).fit(X)
    dense, sparse = unmix.explain(ours, X), unmix.explain(unmix.KMeans(2, random_state=0).fit(X), sp.csr_array(X))
    for a, b in zip(dense.groups, sparse.groups, strict=True):
        assert a.centre == pytest.approx(b.centre)
        assert a.centre["0"] == pytest.approx(ours.cluster_centers_[a.label, 0])
        assert a.traits[0].column == "0"
    theirs = unmix.explain(TheirKMeans(2, n_init=1, random_state=0).fit(X), X)
    assert sorted(g.rows for g in theirs.groups) == [20, 20]
    scaler = StandardScaler().fit(X)
    with pytest.raises(TypeError, match="neither groups nor components"):
        unmix.explain(scaler, X)


def test_loadings_of_standardised_columns_are_correlations(frame):
    numbers = frame[["income", "age"]].dropna().assign(twice=lambda f: 2 * f["income"] + 1)
    table = unmix.Table(numbers)
    model = unmix.PCA(2).fit(table)
    found = unmix.explain(model, table)
    assert found.explained == pytest.approx(1.0)
    scores = model.transform(table)
    for i, component in enumerate(found.components):
        wanted = {c: np.corrcoef(numbers[c], scores[:, i])[0, 1] for c in numbers}
        assert component.loadings == pytest.approx(wanted, abs=5e-3)  # sd over n and over n − 1
        sizes = [abs(v) for v in component.loadings.values()]
        assert sizes == sorted(sizes, reverse=True)
    factors = unmix.explain(unmix.FactorAnalysis(1).fit(table), table)
    assert 0 < factors.explained < 1


def test_parts_are_shares(frame):
    X = np.abs(np.random.default_rng(0).normal(size=(60, 5)))
    table = unmix.Table(pd.DataFrame(X, columns=list("abcde")))
    for model in (unmix.NMF(2, random_state=0), unmix.LatentDirichletAllocation(2, random_state=0)):
        found = unmix.explain(model.fit(table), table)
        assert [sum(c.loadings.values()) for c in found.components] == pytest.approx([1.0, 1.0])
        assert found.explained is None
        assert "%" in str(found)


def test_text_fits_the_screen(frame):
    from unmix.explanation.words import as_text

    table = unmix.Table(frame)
    found = unmix.explain(unmix.KMeans(8, random_state=0).fit(table), table)
    for width in (60, 100):
        lines = as_text(found, width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines if line.startswith("group"))
    assert "group 8" in as_text(found, 60)


def test_numbers_as_people_read_them():
    assert [decimals(s) for s in (0.012, 1.5, 23.0, 4e5, 0.0, float("nan"))] == [3, 1, 0, 0, 2, 2]
    assert [number(v, 1) for v in (-0.01, 12345.67, float("nan"), 3.2e12)] == ["0.0", "12,345.7", "–", "3.2e+12"]
    assert [percent(p) for p in (0, 0.0001, 0.05, 0.5, 0.95, 0.9999, 1)] == [
        "0%", "<0.1%", "5.0%", "50%", "95.0%", ">99.9%", "100%",
    ]  # fmt: skip
    assert shortened("a_very_long_name_indeed", 10) == "a_very…eed"


def test_a_mixture_tells_its_groups_without_rows(frame, tmp_path):
    table = unmix.Table(frame)
    model = unmix.Mixture(3, random_state=0).fit(table)
    model.save(tmp_path / "m.unmix")
    alone, beside = unmix.explain(unmix.load(tmp_path / "m.unmix")), unmix.explain(model, table)
    assert alone.drawn
    for a, b in zip(alone.groups, beside.groups, strict=True):
        assert a.share == pytest.approx(b.share, abs=0.02)
        assert a.centre["income"] == pytest.approx(b.centre["income"], rel=0.02)
        assert a.centre["town"] == pytest.approx(b.centre["town"], abs=0.03)
    assert "rows" not in str(alone).splitlines()[0]
    with pytest.raises(ValueError, match="give the rows"):
        unmix.explain(unmix.KMeans(3, random_state=0).fit(table))
    components = unmix.PCA(2).fit(table)
    assert unmix.explain(components).to_dict() == unmix.explain(components, table).to_dict()


def test_a_long_table_is_never_held():
    import tracemalloc

    from unmix.explanation.columns import Plain, sums

    X = np.random.default_rng(0).normal(size=(400_000, 20))  # 64 MB
    plain = Plain(unmix.as_source(X))
    labels = [np.zeros(10_000, int)] * 40
    tracemalloc.start()
    sums(plain, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * X.nbytes


def test_shares_count_rows_that_have_holes():
    frame = pd.DataFrame({"a": np.r_[np.zeros(50), np.ones(50)], "b": np.r_[np.zeros(50), np.ones(50)]})
    frame = frame + np.random.default_rng(0).normal(0, 0.01, frame.shape)
    frame.loc[:24, "a"], frame.loc[25:49, "b"] = np.nan, np.nan
    model = unmix.KMeans(2, random_state=0).fit(unmix.Table(frame))
    assert [g.share for g in unmix.explain(model, frame).groups] == [0.5, 0.5]


def test_loadings_are_correlations_of_every_level_with_the_component():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 400)
    frame = pd.DataFrame(
        {"a": kind + rng.normal(0, 0.3, 400), "b": rng.normal(size=400), "c": np.array(list("xyz"))[kind]}
    )
    table = unmix.Table(frame)
    model = unmix.PCA(2).fit(table)
    z, rows = model.transform(table), table.read(0, 400)
    for i, part in enumerate(unmix.explain(model, table).components):
        for name, loading in part.loadings.items():
            assert loading == pytest.approx(np.corrcoef(z[:, i], rows[:, table.names.index(name)])[0, 1], abs=5e-3)


def test_loadings_of_columns_that_miss_what_would_be_far_out_are_correlations_still():
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 20, 300)
    frame = {"age": age, "height": 80 + 5 * age + rng.normal(size=300), "weight": 10 + 3 * age + rng.normal(size=300)}
    frame["late"] = np.where(
        age > 12, age + 0.1 * rng.normal(size=300), np.nan
    )  # of which most of its range is not seen
    table = unmix.Table(frame)
    found = unmix.explain(unmix.PCA(2).fit(table), table)
    assert max(abs(v) for c in found.components for v in c.loadings.values()) <= 1 + 1e-9
