"""The report: what it says of planted tables, of real ones, and of hostile text."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

import unmix
from unmix.explanation.rows import reasons
from unmix.table import TableError


def planted(seed, k=3, n=300, apart=6.0):
    """Groups that differ in `height` and `weight` alone, holes in `weight`, two rows far out."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % k
    angle = 2 * np.pi * label / k
    frame = pd.DataFrame(
        {
            "height": 170 + 10 * (apart * np.cos(angle) + rng.normal(size=n)),
            "weight": 70 + 8 * (apart * np.sin(angle) + rng.normal(size=n)),
            "noise a": rng.normal(size=n),
            "noise b": rng.normal(size=n),
        }
    )
    frame.loc[[7, 50], ["noise a", "noise b"]] = [[30.0, -28.0], [-31.0, 30.0]]
    frame.loc[rng.choice(n, 30, replace=False), "weight"] = np.nan
    return frame, label


@pytest.fixture(scope="module")
def found():
    frame, label = planted(0)
    return unmix.report(frame, title="planted"), label


def test_a_planted_table_is_told_right(found):
    report, label = found
    told = report.to_dict()
    assert told["groups"]["groups"] == 3
    whole = np.setdiff1d(np.flatnonzero(planted(0)[0].notna().all(axis=1)), [7, 50])
    assert adjusted_rand_score(label[whole], np.array(told["groups"]["labels"])[whole]) > 0.97
    for apart in told["groups"]["apart"]:
        assert apart[0].split(":")[0] in ("height", "weight")
    assert {8, 51} <= set(told["odd"]["rows"])
    assert len(told["odd"]["rows"]) <= 5
    assert told["contents"]["empty_cells"] == 30
    assert "weight" in told["holes"]["known"]


def test_the_page_says_what_the_report_says(found):
    page = found[0].html()
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for sentence in found[0].summary:
        assert sentence in text
    assert "unmix.select(" in text
    assert "row 8" in text


def test_the_page_needs_nothing_else(found):
    page = found[0].html()
    assert len(page) < 5e6
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", body)
    assert "@import" not in page
    assert "url(" not in body


def test_the_code_on_the_page_gives_its_numbers():
    frame, _ = planted(1)
    report = unmix.report(frame)
    groups = next(s for s in report.sections if s.key == "groups")
    scope = {"X": frame}
    exec(groups.code, scope)
    assert scope["answer"].k == groups.facts["groups"]


@pytest.mark.parametrize("seed", range(2))
def test_a_level_that_only_odd_rows_have_is_no_column_of_the_others(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 3))
    frame = pd.DataFrame(x, columns=list("abc")).assign(kind=np.where(np.arange(200) == 3, "rare", "usual"))
    frame.loc[3, ["a", "b", "c"]] = [40.0, -40.0, 40.0]
    told = unmix.report(frame).to_dict()
    assert told["odd"]["rows"] == [4]
    assert told["groups"]["groups"] == 1


def test_the_summary_is_no_surer_than_the_search():
    data = datasets.load_breast_cancer(as_frame=True).data
    groups = next(s for s in unmix.report(data).sections if s.key == "groups")
    asked = {text.split(":")[0]: "(sure)" in text for text in groups.why if text.startswith(("KMeans", "GaussianM"))}
    assert set(asked) == {"KMeans", "GaussianMixture"}
    assert groups.answer.startswith("The rows fall into") == asked[groups.facts["model"]]


@pytest.mark.parametrize("seed", range(2))
def test_noise_and_one_cloud_have_no_groups(seed):
    rng = np.random.default_rng(seed)
    uniform = unmix.report(rng.uniform(size=(300, 4)))
    cloud = unmix.report(rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)))
    for report in (uniform, cloud):
        told = report.to_dict()
        assert told["groups"]["groups"] == 1
        assert "no clear groups" in told["groups"]["answer"]
        assert told["odd"]["odd"] <= 1


def test_wine_falls_into_its_three_kinds():
    wine = datasets.load_wine(as_frame=True)
    told = unmix.report(wine.data).to_dict()
    assert told["groups"]["groups"] == 3
    assert adjusted_rand_score(wine.target, told["groups"]["labels"]) > 0.92


def amounts(seed, k, n=48, d=400):
    """Amounts that vary by factors in more columns than rows; groups differ in one column of twenty."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % k
    spread = np.exp(rng.normal(-0.9, 0.5, d))
    apart = 4.0 * rng.normal(size=(k, d)) * (rng.random(d) < 0.05)
    shared = rng.normal(size=(n, 3)) @ (0.6 * rng.normal(size=(3, d)) * (rng.random((3, d)) < 0.3))
    logs = rng.normal(6, 1.5, d) + spread * (apart[label] + shared + rng.normal(size=(n, d)))
    return pd.DataFrame(np.exp(logs).round(2)).add_prefix("gene "), label


@pytest.mark.parametrize("k", [2, 3])
def test_groups_are_found_where_columns_outnumber_rows(k):
    frame, label = amounts(k, k)
    report = unmix.report(frame)
    groups = next(s for s in report.sections if s.key == "groups")
    assert groups.facts["groups"] == k
    assert adjusted_rand_score(label, groups.facts["labels"]) > 0.9
    assert "more columns than rows" in " ".join(groups.said)
    scope = {"X": frame}
    exec(groups.code, scope)
    assert scope["model"].n_clusters == k
    fitted = np.arange(len(frame)) if "odd" not in scope else np.flatnonzero(~scope["odd"])
    assert adjusted_rand_score(np.array(groups.facts["labels"])[fitted], scope["model"].labels_) == 1


@pytest.mark.parametrize("seed", range(2))
def test_one_cloud_of_more_columns_than_rows_has_no_groups(seed):
    for frame in (amounts(seed, 1)[0], pd.DataFrame(np.random.default_rng(seed).normal(size=(40, 60))).add_prefix("x")):
        told = unmix.report(frame).to_dict()["groups"]
        assert told["groups"] == 1
        assert "no clear groups" in told["answer"]


def test_three_kinds_of_leukaemia_are_told_apart(data_folder):
    cells = np.loadtxt(data_folder / "golub-all-aml/ALL_AML_data.txt.gz").T
    names = (data_folder / "golub-all-aml/ALL_AML_samples.txt").read_text().split("\n")[: len(cells)]
    kinds = ["AML" if "AML" in name else name.split("_")[-1] for name in names]
    told = unmix.report(pd.DataFrame(cells).add_prefix("gene ")).to_dict()["groups"]
    assert told["groups"] == 3
    assert adjusted_rand_score(kinds, told["labels"]) > 0.9


def pieces(seed, k=4, n=300, d=20):
    """Rows that are sums of parts, each of columns of its own; most rows have two of the parts."""
    rng = np.random.default_rng(seed)
    U = np.zeros((k, d))
    for i, columns in enumerate(np.array_split(np.arange(d), k)):
        U[i, columns] = rng.uniform(1, 3, len(columns))
    Z = rng.gamma(2.0, 1.0, (n, k)) * (rng.random((n, k)) < 0.5)
    return Z, U


@pytest.mark.parametrize("seed", range(2))
def test_rows_that_are_sums_of_parts_are_taken_apart(seed):
    Z, U = pieces(seed)
    noise = 1 + 0.05 * np.random.default_rng(seed).standard_normal((len(Z), U.shape[1]))
    frame = pd.DataFrame(np.abs(Z @ U * noise), columns=[f"p{j // 5 + 1}c{j % 5}" for j in range(20)])
    report = unmix.report(frame)
    told = report.to_dict()["parts"]
    assert (told["model"], told["parts"]) == ("NMF", 4)
    assert [{name[:2] for name in part[:5]} for part in told["columns"]].count({"p1"}) == 1
    assert all(len({name[:2] for name in part[:5]}) == 1 for part in told["columns"])
    assert "Rows are sums of 4 parts" in told["answer"]
    scope = {"X": frame}
    exec(next(s for s in report.sections if s.key == "parts").code, scope)
    assert scope["model"].n_components_ == 4


def test_counts_of_words_have_topics():
    rng = np.random.default_rng(0)
    words = np.repeat(np.eye(3), 20, axis=1) / 20
    share = rng.dirichlet([0.2] * 3, 400)
    counts = np.vstack([rng.multinomial(40, p) for p in share @ words])
    frame = pd.DataFrame(counts, columns=[f"{'abc'[j // 20]}{j % 20}" for j in range(60)])
    told = unmix.report(frame).to_dict()["parts"]
    assert (told["model"], told["parts"]) == ("LatentDirichletAllocation", 3)
    assert sorted({name[0] for name in topic} for topic in told["columns"]) == [{"a"}, {"b"}, {"c"}]


@pytest.mark.parametrize("change", ["negative", "full", "few"])
def test_parts_are_told_only_of_amounts_of_which_many_are_zero(change):
    Z, U = pieces(0)
    x = Z @ U
    x = {"negative": x - 1, "full": x + 1, "few": x[:, ::4]}[change]
    assert "parts" not in unmix.report(x).to_dict()


def test_a_cell_that_does_not_fit_its_row_is_named():
    rng = np.random.default_rng(0)
    height = rng.normal(170, 10, 400)
    share = {"arm": 0.45, "leg": 0.5, "shoe": 0.25}
    frame = pd.DataFrame({"height": height, **{name: s * height + rng.normal(0, 1, 400) for name, s in share.items()}})
    frame.loc[30, "arm"] = 0.45 * 190  # usual for an arm, not for this one
    frame.loc[30, ["height", "leg", "shoe"]] = [155.0, 77.5, 38.75]
    told = unmix.report(frame).to_dict()["odd"]
    assert {"row": 31, "column": "arm"} in told["cells"]
    assert len(told["cells"]) <= 3
    assert "cell" in told["answer"]


def test_cells_of_rows_alike_are_not_odd():
    found = [
        len(unmix.report(np.random.default_rng(i).normal(size=(200, 5))).to_dict()["odd"]["cells"]) for i in range(3)
    ]
    assert sum(found) <= 1


def test_text_that_looks_like_a_page_is_shown_and_not_run():
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({nasty: rng.normal(size=60), "b": rng.normal(size=60), "c": rng.choice([nasty, "y"], 60)})
    page = unmix.report(frame, title=nasty).html()
    body = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    data = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL).group(1)
    assert "<" not in data
    json.loads(data)
    assert "<img" not in body
    assert "<script>alert" not in page
    assert html.escape(nasty) in body


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_few_rows_are_told_about_too(n):
    frame = pd.DataFrame({"a": np.arange(n) * 1.5, "b": list("uvuvuvuvuvuv")[:n], "c": np.linspace(0, 1, n) ** 2})
    try:
        report = unmix.report(frame)
    except TableError:
        assert n == 1  # no column varies
        return
    assert f"{n} rows" in report.summary[0]


def test_columns_without_values_and_copies_are_told():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    frame = pd.DataFrame({"x": x, "again": 2 * x + 1, "flat": np.r_[np.zeros(98), 1, 2], "gone": np.nan, "y": x**2})
    frame = pd.concat([frame, frame.iloc[:5]], ignore_index=True)
    remarks = " ".join(unmix.report(frame).to_dict()["contents"]["remarks"])
    assert "'x' and 'again' say the same" in remarks
    assert "'flat' hardly varies" in remarks
    assert "5 rows are copies" in remarks


def test_columns_are_alike_by_the_rows_that_have_both():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdef"))
    frame["again"] = frame["a"] * 3 - 1
    for name in "bcdef":  # few rows are complete, and in these b is c
        frame.loc[rng.choice(200, 100, replace=False), name] = np.nan
    whole = frame.index[frame.notna().all(axis=1)]
    frame.loc[whole, "b"] = frame.loc[whole, "c"]
    frame.loc[rng.choice(200, 90, replace=False), "again"] = np.nan
    remarks = " ".join(unmix.report(frame).to_dict()["contents"]["remarks"])
    assert "'a' and 'again' say the same" in remarks
    assert "'b'" not in remarks


def test_no_remark_is_left_out_unsaid():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["x", "y"])
    for j in range(8):
        frame[f"flat {j}"] = (np.arange(100) == 3 * j).astype(float)
        frame[f"again {j}"] = frame["x"] * (j + 2)
    remarks = unmix.report(frame).to_dict()["contents"]["remarks"]
    assert any("and 3 more hardly vary: at least 99.0% of their cells" in text for text in remarks)
    assert remarks[-1] == f"So do {9 * 8 // 2 - 5} pairs of columns more."


def test_names_are_written_as_they_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    frame = pd.DataFrame(
        {name: x * sign + 0.3 * rng.normal(size=100) for name, sign in (("a-b", 1), ("c-d", -1), ("e", 1))}
    )
    made = next(s for s in unmix.report(frame).sections if s.key == "components").shown[1]
    assert all(name in made.rows[0][1] for name in ("a-b", "c-d"))
    assert "−0." in made.rows[0][1]


def test_numbers_are_written_as_their_column_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"a": x, "b": x + 0.1 * rng.normal(size=300), "c": rng.poisson(0.05, size=300)})
    frame["d"] = (1000 * x + 50 * rng.normal(size=300)).round().astype(int)
    frame.loc[10, ["d", "c"]] = [-80_000, 9]
    odd = next(s for s in unmix.report(frame).sections if s.key == "odd")
    shown = " ".join(" ".join(row) for part in odd.shown for row in getattr(part, "rows", []))
    assert "-80,000" in shown
    assert "c: 9 (usually 0)" in shown
    assert "e+0" not in shown
    spread = next(part for part in odd.shown if hasattr(part, "kind"))
    assert "The last bar also holds" in spread.caption
    assert spread.values["bins"][-1]["odd"] >= 1
    assert spread.values["bins"][-1]["high"] < 0.1 * 80_000


def test_names_that_are_numbers_are_not_taken_for_values():
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[7] = [9.0, -0.1, -8.0]
    frame = pd.DataFrame(x, columns=["1988", "1989", "1990"])
    [why] = reasons(unmix.Table(frame), [7])
    assert why == "column 1990: -8.0 (usually -1.5 to 1.7); column 1988: 9.0 (usually -2.3 to 1.6)"
    flat = np.where(np.arange(60) == 7, 5.0, np.where(np.arange(60) % 30 == 0, 1.0, 0.0))
    assert reasons(unmix.Table(pd.DataFrame({"mostly 0": flat})), [7]) == ["mostly 0: 5 (usually 0)"]
    frame["1988"] += 30.0 * (np.arange(60) % 2)
    table = unmix.Table(frame)
    groups = unmix.explain(unmix.KMeans(2, random_state=0).fit(table), table).groups
    assert groups[0].traits[0].text.startswith("column 1988: ")


def test_iris_is_told_in_plain_words():
    report = unmix.report(datasets.load_iris(as_frame=True).data)
    groups, components = (next(s for s in report.sections if s.key == key) for key in ("groups", "components"))
    assert "3 groups (30%, 33% and 37% of them), but how many is open: 2 to 4 can be defended." in groups.answer
    assert components.answer.startswith("1 component (a combination of columns) tells 73% of what varies, the others")
    assert "It is mostly 'petal length (cm)'" in components.answer
    said = {part.kind: part.caption for part in groups.shown if hasattr(part, "kind")}
    assert "Component 1 is mostly 'petal length (cm)', 'petal width (cm)'" in said["dots"]
    assert "higher (purple) or lower (brown)" in said["heat"]
    assert "lower is better" in said["curve"]
    assert "chosen as said above" in said["curve"]  # the lowest is at 2


def test_one_column_is_told_as_one():
    x = np.random.default_rng(0).normal(size=8)  # too few rows for any other question
    assert unmix.report(pd.DataFrame({"a": x})).summary[0] == "8 rows and 1 column, of numbers; no cell is empty."
    told = unmix.report(pd.DataFrame({"a": x, "b": 1.0})).summary[0]
    assert told == "8 rows and 2 columns, of which 1 is used (of numbers); no cell is empty."


def test_two_columns_are_all_directions_there_are():
    frame, _ = planted(0)
    groups = next(s for s in unmix.report(frame[["height", "weight"]].dropna()).sections if s.key == "groups")
    said = {part.kind: part.caption for part in groups.shown if hasattr(part, "kind")}
    assert said["dots"] == "Rows by their two columns, by group."
    assert "chosen as said above" not in said["curve"]  # it is the lowest


def test_only_some_rows_of_a_long_table_are_looked_at():
    rng = np.random.default_rng(0)
    n = 30_000
    label = rng.integers(3, size=n)
    frame = pd.DataFrame(6 * rng.normal(size=(3, 4))[label] + rng.normal(size=(n, 4)), columns=list("abcd"))
    report = unmix.report(frame)
    told = report.to_dict()
    assert told["contents"]["rows"] == n
    assert told["groups"]["groups"] == 3
    rows = np.array(told["groups"]["rows"]) - 1
    assert adjusted_rand_score(label[rows], told["groups"]["labels"]) > 0.9
    assert "spread evenly over the 30,000" in report.html()
    assert len(report.html()) < 2e6


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from unmix.cli.main import main

    monkeypatch.chdir(tmp_path)
    planted(2, n=120)[0].to_csv("people.csv", index=False)
    before = Path("people.csv").read_bytes()
    done = CliRunner().invoke(main, ["report", "people.csv", "--quiet"])
    assert done.exit_code == 0, done.output
    assert Path("people-report.html").stat().st_size < 5e6
    assert "fall into 3 groups" in done.output
    assert Path("people.csv").read_bytes() == before
    again = CliRunner().invoke(main, ["report", "people.csv"])
    assert again.exit_code == 1
    assert "exists" in again.output
    for wrong, words in (("people.csv", "end its name in .html"), ("nowhere/x.html", "there is no folder")):
        refused = CliRunner().invoke(main, ["report", "people.csv", "-o", wrong])
        assert refused.exit_code == 1
        assert words in refused.output


def long_table(monkeypatch, n=1200):
    """A table of which a report looks at some rows: three groups, holes, rows that do not fit, a rare flag."""
    monkeypatch.setattr("unmix.reporting.view.ROWS", 400)
    frame = planted(0, n=n)[0].sample(frac=1, random_state=0, ignore_index=True)
    frame.loc[[9, 51], ["noise a", "noise b"]] = [[30.0, -28.0], [-31.0, 30.0]]
    frame["flag"] = (np.arange(n) == 1).astype(int)  # which is not among the rows that are looked at
    frame.insert(0, "who", [f"p{i:05d}" for i in range(n)])
    return frame


def test_the_lines_of_python_give_the_numbers_of_some_rows_too(monkeypatch):
    frame = long_table(monkeypatch)
    report = unmix.report(frame)
    facts = report.to_dict()
    assert "the 400 rows looked at" in facts["groups"]["answer"].lower()
    assert facts["contents"]["answer"].endswith("All that follows is of 400 rows, spread evenly over the 1,200.")
    assert (
        "'flag' hardly varies: 100% of its cells are the same in the 400 rows looked at."
        in facts["contents"]["remarks"]
    )
    scopes = {}
    for section in report.sections:
        scopes[section.key] = {"X": frame}
        exec(section.code, scopes[section.key])
    assert scopes["groups"]["answer"].k == facts["groups"]["groups"] == 3
    assert scopes["components"]["pca"].n_components_ == facts["components"]["components"]
    assert scopes["odd"]["odd"].sum() == facts["odd"]["odd"]
    odd_cells = scopes["odd"]["judge"].odd_cells().any(axis=1).sum() if "judge" in scopes["odd"] else 0
    assert odd_cells == len(facts["odd"]["cells"])
    assert scopes["holes"]["imputer"].chosen_ == facts["holes"]["chosen"]


def test_a_category_of_two_levels_is_compared_by_one_of_them():
    rng = np.random.default_rng(0)
    label = np.arange(300) % 2
    frame = pd.DataFrame(rng.normal(size=(300, 3)) + 6 * label[:, None], columns=list("abc"))
    frame["sex"] = np.where(label ^ (rng.random(300) < 0.03), "m", "f")
    groups = next(s for s in unmix.report(frame).sections if s.key == "groups")
    heat = next(part for part in groups.shown if getattr(part, "kind", "") == "heat")
    told = {cell["group"]: cell["value"] for cell in heat.values["cells"] if cell["column"].startswith("sex = ")}
    assert len(told) == 2
    assert sum(told.values()) == pytest.approx(0, abs=0.02)
    assert min(told.values()) < -1.5


def test_what_would_be_filled_is_shown(found):
    holes = next(s for s in found[0].sections if s.key == "holes")
    shown = holes.shown[-1]
    assert shown.heads == ["row", "column", "would hold", "give or take"]
    assert 1 <= len(shown.rows) <= 12
    frame = planted(0)[0]
    for row, column, value, spread in shown.rows:
        assert np.isnan(frame[column][int(row.removeprefix("row ")) - 1])
        assert 0 < float(value) < 150
        assert float(spread.removeprefix("±")) > 0


def test_the_cells_of_the_page_are_those_of_the_facts():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 1))
    frame = pd.DataFrame(z @ np.ones((1, 5)) + 0.1 * rng.normal(size=(300, 5)), columns=list("abcde"))
    frame.loc[[10, 20], ["a", "d"]] = [[4.0, 0.0], [0.0, -5.0]]
    odd = next(s for s in unmix.report(frame).sections if s.key == "odd")
    shown = next(part for part in odd.shown if getattr(part, "heads", [""])[1:2] == ["column"])
    assert [(f"row {c['row']}", c["column"]) for c in odd.facts["cells"]][: len(shown.rows)] == [
        (row[0], row[1]) for row in shown.rows
    ]


def test_where_one_cloud_explains_as_much_the_facts_say_so(monkeypatch):
    monkeypatch.setattr("unmix.reporting.groups.one_cloud", lambda best, seed: True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.exp(rng.normal(size=(300, 3))), columns=list("abc"))
    groups = next(s for s in unmix.report(frame).sections if s.key == "groups")
    assert groups.facts["groups"] == 1
    assert groups.facts["range"][0] == 1
    assert "no clear groups" in groups.answer


def test_copies_with_an_empty_cell_are_copies():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame.loc[0, "b"] = np.nan
    frame = pd.concat([frame, frame.iloc[:1]], ignore_index=True)
    assert any("1 row is a copy" in text for text in unmix.report(frame).to_dict()["contents"]["remarks"])


def test_what_was_asked_is_taken_as_it_comes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd")).assign(n=rng.integers(1, 4, 60))
    report = unmix.report(frame, columns=frame.columns[:3], weights="n", scale="none")
    assert "columns=['a', 'b', 'c']" in report.sections[0].code
    assert any("'n' are not used" in note for note in report.notes)
    components = next(s for s in report.sections if s.key == "components")
    assert "columns are taken as they are" in components.said[0]
    assert 'href="#' not in report._repr_html_()
    array = unmix.report(rng.normal(size=(60, 3)))
    scope = {"X": rng.normal(size=(60, 3))}
    exec("import unmix; table = unmix.Table(X)", scope)
    assert list(array.to_dict()["contents"]["columns"]) == [c.name for c in scope["table"].columns]


def test_a_title_that_is_no_text_is_written(tmp_path):
    report = unmix.report(np.random.default_rng(0).normal(size=(30, 2)), title="caf\udce9.csv")
    assert "caf?.csv" in report.save(tmp_path / "page.html").read_text("utf-8")
    with pytest.raises(FileExistsError, match="has appeared"):
        report.save(tmp_path / "page.html", replace=False)


def test_the_command_says_what_the_models_warned_of(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from unmix.cli.main import main

    monkeypatch.chdir(tmp_path)
    planted(2, n=60)[0].to_csv("sales.2023.csv", index=False)
    whole = unmix.report

    def warning(*given, **how):
        found = whole(*given, **how)
        found.notes.append("a component collapsed")
        return found

    monkeypatch.setattr(unmix, "report", warning)
    done = CliRunner().invoke(main, ["report", "sales.2023.csv", "--json"])
    assert done.exit_code == 0, done.output
    assert "a component collapsed" in json.loads(done.stdout)["notes"]
    assert Path("sales.2023-report.html").exists()
