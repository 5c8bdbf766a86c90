"""Short versions of the attacks (`make attack`), and that they find what there is to find."""

import os
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

sys.path.insert(0, str(Path(__file__).parents[1]))

import unmix
from attack import __main__ as program
from attack import arrays, files, harness, interrupts, kills
from attack.harness import Child, Report, attacks, generator, spoken
from attack.mutations import KINDS

SECONDS = 2.5


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(attacks().keys() - {"workers"}))  # a test of the engine kills a Dask worker
def test_a_short_attack_finds_nothing(name):
    report = Report(name, 0)
    attacks()[name].run(report, generator(0, name), time.monotonic() + SECONDS)
    assert report.tried > 0
    assert not report.findings


def crash():
    os.abort()


def sleep():
    time.sleep(60)


def fail():
    raise KeyError("x")


@pytest.mark.slow
def test_a_child_that_dies_hangs_or_fails_is_told_from_one_that_answers():
    assert Child(crash).answer()[0] == "died"
    assert Child(sleep).answer(1.0)[0] == "hung"
    assert "KeyError" in Child(fail).answer()[1]
    assert Child(max, 3, 4).answer() == ("value", 4)


def test_findings_are_an_exit_status(monkeypatch, capsys):
    def run(report, rng, until):
        report.count("toys", 2)
        report.found("it breaks", f"toy({rng.integers(100)})")

    monkeypatch.setattr(program, "attacks", lambda: {"toy": types.SimpleNamespace(SHARE=1.0, run=run)})
    assert program.main(["--minutes", "0", "--seed", "7"]) == 1
    first = capsys.readouterr().out
    assert "seed 7" in first
    assert "it breaks" in first
    program.main(["--minutes", "0", "--seed", "7"])
    assert capsys.readouterr().out.splitlines()[:3] == first.splitlines()[:3]  # everything follows from the seed


def test_every_mutation_makes_another_file_and_the_same_one_again(tmp_path):
    assert files.make("PCA", False, str(tmp_path / "good"), 1)
    data = (tmp_path / "good").read_bytes()
    for kind, mutate in KINDS.items():
        made = [mutate(data, np.random.default_rng(seed)) for seed in range(8)]
        assert made == [mutate(data, np.random.default_rng(seed)) for seed in range(8)], kind
        assert any(m != data for m in made), kind


def test_a_reader_that_trusts_files_is_found(tmp_path, monkeypatch):
    assert files.make("PCA", False, str(tmp_path / "good"), 1)
    monkeypatch.setattr(files, "BATCH", 40)
    monkeypatch.setattr(harness.unmix.PCA, "_restore", lambda self, state: self.__dict__.update(state))
    at = types.SimpleNamespace(value=0)
    assert any(files.batch("PCA", False, str(tmp_path / "good"), seed, at)[1] for seed in range(9))


def test_a_reader_that_takes_more_memory_than_the_file_is_found(tmp_path, monkeypatch):
    assert files.make("KMeans", False, str(tmp_path / "large"), 0)
    monkeypatch.setattr(files, "LARGE_BATCH", 6)
    at, load = types.SimpleNamespace(value=0), harness.unmix.load
    assert not files.batch("KMeans", False, str(tmp_path / "large"), 0, at)[1]
    monkeypatch.setattr(harness.unmix, "load", lambda path: (Path(path).read_bytes(), load(path))[1])
    found = files.batch("KMeans", False, str(tmp_path / "large"), 0, at)[1]
    assert any("MiB for a file" in what for what in found)


def test_a_resumed_fit_with_other_bits_is_found(tmp_path):
    report = Report("kills", 0)
    answers = {"digest": 1}

    class Fake:
        def __init__(self, *args):
            pass

        def begun(self):
            pass

        def answer(self, patience=None):
            return "value", (answers["digest"], 0.1)

    saved, kills.Child = kills.Child, Fake
    try:
        kills.one(report, generator(0, "kills"), ("PCA", 1), ("value", (1, 0.1)), tmp_path / "state")
        assert not report.findings
        answers["digest"] = 2
        kills.one(report, generator(0, "kills"), ("PCA", 1), ("value", (1, 0.1)), tmp_path / "state")
        assert len(report.findings) == 1
    finally:
        kills.Child = saved


def test_an_answer_that_is_not_finite_is_found(monkeypatch):
    monkeypatch.setattr(harness.unmix.PCA, "encode", lambda self, U, b: np.full((len(b.x), 3), np.nan))
    assert arrays.use("PCA", "Fortran", 0, False) == "its answer is not finite"


def test_a_model_that_is_half_written_is_found(monkeypatch, tmp_path):
    finish = harness.unmix.PCA.publish

    def torn(self, fit):
        finish(self, fit)
        self.components_ = self.components_[:1]

    monkeypatch.setattr(harness.unmix.PCA, "publish", torn)
    with pytest.raises(ValueError, match="explained_variance_"):
        interrupts.interrupted("PCA", 5.0, 1, str(tmp_path))


@pytest.mark.parametrize(
    "broken",
    [
        lambda: np.linalg.svd(np.full((3, 3), np.nan)),
        lambda: np.linalg.cholesky(-np.eye(3)),
        lambda: scipy.linalg.eigh(np.full((3, 3), np.nan)),
        lambda: np.ones(3) + np.ones(4),
    ],
)
def test_what_arithmetic_says_is_no_sentence_of_ours(broken):
    with pytest.raises(ValueError, match=r"\w") as told:
        broken()
    assert not spoken(told.value)


def test_a_refusal_in_a_sentence_is():
    with pytest.raises(ValueError, match="n_samples=2 should be") as told:
        unmix.KMeans(3).fit(np.ones((2, 2)))
    assert spoken(told.value)
