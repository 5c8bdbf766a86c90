"""The comparison of ways to choose k: so that it cannot rot, and that its problems are what it says."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import how_many, sureness
from benchmarks.how_many import Method, compare, planted, separation


def test_a_model_is_asked_about_the_sets_that_suit_it(monkeypatch):
    monkeypatch.setattr(how_many.np, "loadtxt", lambda path, ndmin: np.zeros((1, 1)))
    means, mixtures = ([name for name, _, _ in how_many.published("sets", column)] for column in (0, 1))
    both = [f"sipu/{s}" for s in ("a1", "a2", "a3", "s1", "s2", "s3", "s4")]
    assert means == [*both, "fcps/hepta", "fcps/tetra", "fcps/twodiamonds"]
    assert mixtures == [*both, "fcps/engytime", "fcps/hepta", "fcps/lsun", "fcps/tetra", "fcps/twodiamonds"]


def test_separation_is_in_standard_deviations():
    means = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 100.0]])
    axes = np.array([np.diag([1.0, 9.0]), np.diag([3.0, 9.0]), np.eye(2)])
    assert separation(means, axes) == pytest.approx(3.0)  # 6 apart, standard deviations of 1 and 3 along that line


def test_planted_gaussians_come_from_the_seed_and_have_the_promised_size():
    first, again = list(planted(4)), list(planted(4))
    for (_, k, X), (_, _, Y) in zip(first, again, strict=True):
        np.testing.assert_array_equal(X, Y)
        assert 2 <= k <= 8
        assert 500 <= len(X) <= 2000
        assert X.shape[1] in (2, 5, 10)
        assert np.isfinite(X).all()


@pytest.mark.filterwarnings("ignore:Mean of empty slice")  # of those that never answer
def test_everybody_is_in_the_table(capsys):
    def broken(X, most):
        yield 3
        raise RuntimeError

    methods = [
        Method(("right",), "sys", lambda X, most: [len(X)]),
        Method(("undecided",), "sys", lambda X, most: [None]),
        Method(("half", "other half"), "sys", broken),
        Method(("absent",), "no_such_module", lambda X, most: [len(X)]),
        Method(("largest",), "sys", lambda X, most: [most]),
    ]
    right = compare(methods, [(str(k), k, np.zeros((k, 1))) for k in (3, 10)])
    assert right == {"right": 2, "undecided": 0, "half": 1, "other half": 0, "absent": 0, "largest": 0}
    out = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert out[2] == ["3", "3", "**3**", "?", "**3**", "RuntimeError", "missing", "7"]
    assert out[3] == ["10", "10", "**10**", "?", "3", "RuntimeError", "missing", "16"]
    assert out[4] == ["right of 2", "", "2", "0", "1", "–", "–", "0"]


def test_select_is_asked_where_there_is_nothing():
    ones = how_many.noise(1)
    assert len(ones) == 8
    assert sum(ones.values()) >= 7


def test_planted_tables_are_what_they_say():
    for seed in range(12):
        t, again = sureness.planted(seed), sureness.planted(seed)
        np.testing.assert_array_equal(t.numbers, again.numbers)
        assert t.k == len(np.unique(t.label)) == 1 + seed // 2 % 8
        assert 300 <= len(t.numbers) <= 2000
        assert 2 <= t.numbers.shape[1] + t.codes.shape[1] <= 31
        assert (t.codes.shape[1] > 0) == (t.kind == "categories")
        x = sureness.encoded(t)
        d = t.numbers.shape[1]
        np.testing.assert_allclose(x[:, :d].var(axis=0), 1)
        varying = sum(len(np.unique(c)) > 1 for c in t.codes.T)
        assert x[:, d:].var(axis=0).sum() == pytest.approx(varying)  # every category counts as one column
    assert {name for name, _, _ in sureness.asked(sureness.planted(2))} == {"KMeans", "GaussianMixture", sureness.RAW}


def test_words_and_ranges_are_counted(capsys):
    said = [
        sureness.Said("KMeans", 3, 3, 3, 3, "sure", 1.0),
        sureness.Said("KMeans", 4, 3, 2, 4, "open", 1.0),
        sureness.Said("KMeans", 5, 3, 2, 4, "open", 1.0),
        sureness.Said(sureness.RAW, 5, 1, 1, 1, "sure", 1.0),  # a table that k-means cannot know is counted apart
    ]
    sureness.report(said)
    out = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert ["KMeans", "3", "33%", "67%", "3", "2.33", "1.0"] in out
    assert ["sure", "1", "100%"] in out
    assert ["open", "2", "0%"] in out
