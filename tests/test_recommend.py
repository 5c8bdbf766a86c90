"""Baselines, evaluation, splits that do not leak, and `unmix recommend`."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from test_pmf import planted

import unmix
from unmix import PMF
from unmix.cli.main import main
from unmix.recommend import ContentRidge, Neighbours, evaluate, folds, ranking, split
from unmix.recommend.evaluation import scores

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def frame():
    return planted()[0]


# ---------------------------------------------------------------- baselines


def test_a_neighbour_by_hand():
    X = np.random.default_rng(0).normal(size=(8, 2))
    X[:6, 1] += 2 * X[:6, 0]
    i, j = np.nonzero(np.arange(16).reshape(8, 2) != 15)
    ratings = pd.DataFrame({"user": i, "item": np.array(["a", "b"])[j], "rating": X[i, j]})
    model = Neighbours(shrinkage=0.0, damping=0.0, regularization=0.0).fit(ratings)
    e = model.ratings_.toarray() - model.mean_ - model.user_biases_[:, None] - model.item_biases_
    common = model.ratings_.toarray().all(axis=1)
    likeness = (e[common, 0] @ e[common, 1]) / np.linalg.norm(e[common, 0]) / max(np.linalg.norm(e[common, 1]), 1e-300)
    np.testing.assert_allclose(model.similarities_[0, 1], likeness, atol=1e-8)
    expected = model.mean_ + model.user_biases_[7] + model.item_biases_[1]
    expected += e[7, 0] * (likeness > 0)
    np.testing.assert_allclose(model.predict([7], ["b"]), expected, atol=1e-8)


@pytest.mark.parametrize("by", ["item", "user"])
def test_neighbours_beat_biases(frame, by):
    train, test = split(frame, "random", test=0.1, random_state=0)
    own = evaluate(Neighbours(by=by, shrinkage=10.0).fit(train), test)
    assert own.rmse < 0.95 * evaluate(PMF(0, random_state=0).fit(train), test).rmse
    assert np.isnan(own.coverage)
    assert len(Neighbours(by=by).fit(train).recommend(1000, 3)) == 3


def test_content_knows_what_features_say():
    rng = np.random.default_rng(0)
    F, W = rng.standard_normal((40, 3)), rng.standard_normal((200, 3))
    X = 3 + W @ F.T + 0.2 * rng.standard_normal((200, 40))
    i, j = np.nonzero(rng.random(X.shape) < 0.5)
    ratings = pd.DataFrame({"user": i, "item": j, "rating": X[i, j]})
    train, test = split(ratings, "random", test=0.1, random_state=0)
    assert evaluate(ContentRidge(F, penalty=1.0).fit(train), test).rmse < 0.5
    order = rng.permutation(40)
    other = ContentRidge(F[order], items=order, penalty=1.0).fit(train)
    np.testing.assert_allclose(other.coef_, ContentRidge(F, penalty=1.0).fit(train).coef_)
    for bad, message in ((ContentRidge(), "features=None"), (ContentRidge(F[:5]), "5 rows for 40 items")):
        with pytest.raises(ValueError, match=message):
            bad.fit(train)


# ---------------------------------------------------------------- evaluation


def test_scores_by_hand():
    s = scores(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 2.0]), np.ones(4))
    assert (s.rmse, s.mae, s.coverage, s.n) == (1.0, 0.5, 0.75, 4)
    np.testing.assert_allclose(s.log_score, -0.5 * np.log(2 * np.pi) - 0.5 * 4 / 4)
    np.testing.assert_allclose(s.log_score, s.log_score_constant)


def test_ranking_by_hand():
    class Fixed:
        user_ids_, item_ids_, known_users = np.array([1, 2]), np.array([1, 2, 3, 4]), 2

        def recommend(self, user, n):
            from unmix.recommend._asking import Recommended

            return [Recommended(i, 0.0, 0.0) for i in ([3, 1, 2] if user == 1 else [4, 3, 1])[:n]]

    test = pd.DataFrame({"user": [1, 1, 2, 9], "item": [1, 4, 3, 1], "rating": [5, 5, 5, 5]})
    found = ranking(Fixed(), test, n=3, liked=4)
    assert found.users == 2
    np.testing.assert_allclose([found.precision, found.recall], [1 / 3, (1 / 2 + 1) / 2])
    ideal = 1 + 1 / np.log2(3)
    np.testing.assert_allclose(found.ndcg, (1 / np.log2(3) / ideal + 1 / np.log2(3)) / 2)
    with pytest.raises(ValueError, match="no user of the test part likes anything"):
        ranking(Fixed(), test, liked=9)


def test_lists_are_better_by_factors_than_by_averages():
    every = planted(share=1.0)[0]
    train, test = split(every, "user", test=0.5, random_state=0)
    own = ranking(PMF(2, random_state=0).fit(train), test, n=5)
    plain = ranking(PMF(0, random_state=0).fit(train), test, n=5)
    assert own.ndcg > 1.1 * plain.ndcg


@pytest.mark.parametrize("how", ["random", "user", "time", "new users"])
def test_splits_do_not_leak(frame, how):
    train, test = split(frame, how, test=0.25, random_state=0)
    assert len(train) + len(test) == len(frame)
    assert not set(train.index) & set(test.index)
    assert 0.2 < len(test) / len(frame) < 0.3
    if how == "time":
        assert train["time"].max() < test["time"].min()
    if how == "user":
        assert set(test["user"]) <= set(train["user"])
        assert (test["user"].value_counts() / frame["user"].value_counts()).max() <= 0.5
    if how == "new users":
        assert not set(test["user"]) & set(train["user"])
    again = split(frame, how, test=0.25, random_state=0)
    assert again[1].index.equals(test.index)


def test_ratings_of_one_moment_are_on_one_side():
    frame = pd.DataFrame({"user": range(10), "item": range(10), "rating": 1.0, "time": [1, 1, 1, 1, 2, 2, 2, 2, 2, 3]})
    train, test = split(frame, "time", test=0.3)
    assert set(train["time"]) == {1}
    assert set(test["time"]) == {2, 3}


def test_folds_hold_everything_once(frame):
    parts = folds(frame, 4, random_state=0)
    assert sorted(i for _, test in parts for i in test.index) == sorted(frame.index)
    for wrong in (1, 10**9):
        with pytest.raises(ValueError, match="give a number of folds"):
            folds(frame, wrong)


def test_splits_that_cannot_be(frame):
    for kwargs, message in (
        ({"how": "luck"}, "how='luck'"),
        ({"test": 1.0}, "test=1.0"),
        ({"how": "time", "time": "when"}, "time='when'"),
    ):
        with pytest.raises(ValueError, match=message):
            split(frame, **kwargs)
    with pytest.raises(ValueError, match="no column 'item'"):
        split(frame.drop(columns="item"))


# ---------------------------------------------------------------- the command line


def run(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture
def file(frame, tmp_path):
    path = tmp_path / "ratings.csv"
    frame.rename(columns={"user": "userId", "item": "movieId", "rating": "stars"}).to_csv(path, index=False)
    return path


def test_recommend_for_one_user(file):
    done = run("recommend", file, "--user", 1003, "--n", 4, "--components", 2, "--json")
    assert done.exit_code in (0, 3), done.output
    told = json.loads(done.stdout)
    (one,) = told["recommended"]
    assert one["user"] == 1003
    assert len(one["items"]) == 4
    assert told["checked"]["rmse"] < told["biases_alone"]["rmse"]
    said = run("recommend", file, "--user", 1003, "--components", 2, "--no-check")
    assert "for 1003" in said.stdout
    assert "±" in said.stdout


def test_recommend_for_everybody_and_again_from_the_file(file, tmp_path):
    out, kept = tmp_path / "lists.csv", tmp_path / "taste.unmix"
    done = run("recommend", file, "--out", out, "--n", 3, "--components", 2, "--no-check", "--save", kept)
    assert done.exit_code in (0, 3), done.output
    lists = pd.read_csv(out)
    assert list(lists.columns) == ["user", "rank", "item", "rating", "std"]
    assert len(lists) == 600
    again = run("recommend", kept, "--user", 1003, "--n", 3, "--json")
    items = [r["item"] for r in json.loads(again.stdout)["recommended"][0]["items"]]
    assert items == lists["item"][lists["user"] == 1003].tolist()


def test_a_file_without_names_and_ratings_that_come_twice(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "u.data"
    rows = [(u, i, rng.integers(1, 6), 881250949 + u) for u in range(1, 30) for i in range(1, 12) if (u + i) % 3]
    path.with_suffix(".tsv").write_text("".join("\t".join(map(str, r)) + "\n" for r in [*rows, rows[0]]))
    done = run("recommend", path.with_suffix(".tsv"), "--user", 5, "--components", 1, "--no-check", "--json")
    assert done.exit_code in (0, 3), done.output
    told = json.loads(done.stdout)
    assert told["ratings"] == len(rows)
    assert any("rated again" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--user", "nobody"], "--user nobody: there is no rating of this user"),
        (["--user", "7"], "the first of its 200 is 1000"),
        (["--user", 1003, "--names", "a,b"], "give three names"),
        (["--user", 1003, "--names", "a,b,c"], "no column 'a'"),
        ([], "say for whom"),
    ],
)
def test_what_the_command_refuses(file, args, message):
    done = run("recommend", file, *args, "--components", 1, "--no-check")
    assert done.exit_code in (1, 2)
    assert message in done.output + done.stderr


def test_a_table_that_holds_no_ratings(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    done = run("recommend", path, "--user", 1)
    assert done.exit_code == 1
    assert "which column holds the user?" in done.output + done.stderr
    text = tmp_path / "text.csv"
    text.write_text("user,item,rating\nann,tea,good\nbob,rum,bad\n")
    assert "no number" in run("recommend", text, "--user", "ann").stderr
    unmix.KMeans(1).fit(np.eye(3)).save(tmp_path / "m.unmix")
    assert "holds a KMeans" in run("recommend", tmp_path / "m.unmix", "--user", 1).stderr


BLANKS = """who,what,stars
"Ann Lee","green tea",5
"Ann Lee",rum,1
 Bob ,"green tea",4
 Bob ,ale,2
Cid,rum,3
Cid,,2
,ale,2
Dan,ale,
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("user,item,rating\n", "holds only a header"),
        ("user,item,rating\nann,tea,\n,tea,3\n", "holds no rating"),
        ("user,item,rating\nann,tea,good\nbob,rum,5\nann,rum,4\n", "a rating is 'good', which is no number"),
    ],
)
def test_files_that_hold_no_rating(tmp_path, text, message):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    done = run("recommend", path, "--user", "ann")
    assert done.exit_code == 1
    assert message in done.stderr


def test_names_with_blanks_and_lines_that_lack_something(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(BLANKS)
    ask = ["--names", "who,what,stars", "--components", 1, "--seed", 0]
    done = run("recommend", path, "--user", "Ann Lee", *ask, "--json")
    assert done.exit_code in (0, 3), done.output
    told = json.loads(done.stdout)
    assert told["ratings"] == 5
    assert any("3 lines without a user, an item or a rating" in note for note in told["notes"])
    assert [r["item"] for r in told["recommended"][0]["items"]] == ["ale"]
    nobody = run("recommend", path, "--user", "Dan", *ask)  # who has no rating
    assert nobody.exit_code == 1
    assert "no rating of this user" in nobody.stderr
    assert "fold_in" not in nobody.stderr
