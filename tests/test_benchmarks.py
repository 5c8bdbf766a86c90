"""The benchmarks' harness: so that it cannot rot, and so that its figures mean what they say."""

import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


from benchmarks import harness, processor
from benchmarks.__main__ import again, cases, main
from benchmarks.harness import OURS, Case, Goal, Quality, Row, Run, Target, contestant, judge, least_passes

MB = 1_000_000


@dataclass
class Toy(Case):
    """Contestants whose time, memory and quality are known."""

    def data(self, size):
        return np.zeros(10)

    def score(self, data, result):
        return result["error"]

    @contestant("unmix")
    def ours(self, data, goal):
        def fit():
            time.sleep(0.05)
            return np.ones(40 * MB // 8).sum()

        return fit, lambda out: {"error": 1.0, "passes": None if goal is None else goal.passes}

    @contestant("slow")
    def slow(self, data, goal):
        return lambda: time.sleep(2.0), lambda out: {"error": 1.0, "passes": 7}

    @contestant("poor")
    def poor(self, data, goal):
        return lambda: None, lambda out: {"error": 2.0}

    @contestant("absent", needs="no_such_module")
    def absent(self, data, goal):
        raise AssertionError

    @contestant("broken")
    def broken(self, data, goal):
        def fit():
            raise RuntimeError("it does not work")

        return fit, lambda out: {}


def test_measures_time_memory_and_quality():
    case = Toy("toy", "A toy", Quality("error"), (Target(2, ("slow", "poor", "absent")),), "slow")
    report = case.measure("full", repeat=2)
    rows = {r[0]: dict(zip(report.head, r, strict=True)) for r in report.rows}
    assert list(rows) == ["unmix", "slow", "poor", "absent", "broken"]
    assert 0.05 <= float(rows["unmix"]["best s"]) < 1  # far from both on a busy machine too
    assert float(rows["slow"]["best s"]) >= 2
    if rows["unmix"]["peak MB"] != "–":
        assert 39 <= float(rows["unmix"]["peak MB"]) < 60
        assert float(rows["slow"]["peak MB"]) < 10
    assert rows["unmix"]["passes"] == "7"  # the goal told it
    assert rows["unmix"]["runs"] == rows["slow"]["runs"] == "2"
    assert rows["poor"]["reached"] == "no, by 1.0e+00"
    assert rows["absent"]["best s"] == "–"
    assert rows["broken"]["best s"] == "failed"
    assert any("no_such_module is not installed" in n for n in report.notes)
    assert any("it does not work" in n for n in report.notes)
    (verdict,) = report.verdicts
    assert verdict.met
    assert verdict.measured.endswith("× slow")  # the poor one is faster, but did not reach the quality
    assert not report.broken
    assert "A toy" in harness.page({"native": harness.Whole("a machine", 2, 1.0, [report])})


@pytest.mark.parametrize(
    ("ours", "error", "met"), [(1.0, 1.0, True), (1.04, 1.0, True), (1.2, 1.0, False), (0.5, 1.1, False)]
)
def test_verdict(ours, error, met):
    """Level is within 5 %; fast but worse is missed."""
    rows = {OURS: Row(OURS, [Run(ours, 0, error, None)]), "rival": Row("rival", [Run(1.0, 0, 1.0, None)])}
    assert judge(Target(1, ("rival",)), rows, 1.0, Quality("error")).met is met


def test_whether_onedal_was_limited_is_told(monkeypatch):
    monkeypatch.delenv(processor.ASKED, raising=False)
    assert processor.limit_onedal() == ""
    monkeypatch.setenv(processor.ASKED, "avx2")
    monkeypatch.setitem(sys.modules, "daal4py", None)
    assert processor.limit_onedal() == "oneDAL was not limited (ModuleNotFoundError)"


def test_cases_that_are_measured_again_take_their_places():
    def whole(*reports):
        return harness.Whole("a machine", 2, 1.0, [harness.Report(n, n, ("x",), [(v,)], []) for n, v in reports])

    run = harness.Whole.of(again(asdict(whole(("one", "1"), ("two", "2"))), whole(("two", "3"))))
    assert [(r.name, r.rows, bool(r.notes)) for r in run.reports] == [("one", [("1",)], False), ("two", [("3",)], True)]
    first, last = list(cases())[:1], list(cases())[-1:]
    run = harness.Whole.of(again(asdict(whole((*last, "1"))), whole((*first, "2"))))  # a case that was not there
    assert [r.name for r in run.reports] == first + last


@pytest.mark.parametrize("but", ["--quick", "--only=unmix"])
def test_what_is_put_on_the_page_is_measured_in_full(but, capsys):
    with pytest.raises(SystemExit):
        main(["startup", "--again", but])
    assert "--again is for the page" in capsys.readouterr().err


def test_quality_gap():
    assert Quality("error").gap(11, 10) == pytest.approx(0.1)
    assert Quality("likelihood", higher=True).gap(-11, -10) == pytest.approx(0.1)
    assert Quality("likelihood", higher=True).gap(-9, -10) < 0
    assert not Quality("error").reached(math.nan, 1.0)
    assert Quality("error", goal=1.0).reached(1.0 + 1e-7, 1.0)


def test_least_passes():
    for need in (1, 2, 3, 7, 8, 30):
        asked = []
        assert least_passes(lambda p, n=need, a=asked: a.append(p) or p >= n, 2, 40) == need
    assert least_passes(lambda p: False, 2, 40) == 40


def test_scorers_agree_with_scikit_learn():
    """The yardstick of each case, against what scikit-learn says of its own fits."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import NMF, FactorAnalysis
    from sklearn.mixture import GaussianMixture

    every = cases()
    case = every["kmeans-clustered-200kx64"]
    X, U = case.data("quick")
    m = KMeans(len(U), init=U, n_init=1, max_iter=3).fit(X)
    assert case.score((X, U), {"centers": m.cluster_centers_}) == pytest.approx(m.inertia_, rel=1e-9)

    for kind in ("full", "diag"):
        case = every[f"gaussian_mixture-{kind}"]
        X, (w, means, _), _ = data = case.data("quick")
        m = GaussianMixture(len(w), covariance_type=kind, means_init=means, max_iter=2, tol=0, random_state=0).fit(X)
        got = case.score(data, {"w": m.weights_, "means": m.means_, "covariances": m.covariances_})
        assert got == pytest.approx(m.score(X), rel=1e-9)

    case = every["factor_analysis"]
    X, k = data = case.data("quick")
    m = FactorAnalysis(k).fit(X)
    got = case.score(data, {"W": m.components_, "psi": m.noise_variance_, "mean": m.mean_})
    assert got == pytest.approx(m.score(X), rel=1e-9)

    case = every["factor_analyzers"]
    X, (w, _, _, _) = data = case.data("quick")
    m = GaussianMixture(len(w), max_iter=2, tol=0, random_state=0).fit(X)
    got = case.score(data, {"w": m.weights_, "means": m.means_, "covariances": m.covariances_})
    assert got == pytest.approx(m.score(X), rel=1e-9)

    for name in ("nmf-frobenius-dense", "nmf-kullback-leibler-sparse"):
        case = every[name]
        X, W, H = data = case.data("warm")
        m = NMF(len(H), init="custom", solver="mu", beta_loss=case.loss, max_iter=5)
        W = m.fit_transform(X, W=W, H=H)
        err = m.reconstruction_err_**2
        err = err / (X * X).sum() if case.loss == "frobenius" else err / 2 / X.sum()
        assert case.score(data, {"W": W, "H": m.components_}) == pytest.approx(err, rel=1e-6)


def test_low_rank_rivals_recover_the_planted_matrix():
    case = cases()["robust_pca-small"]
    data = case.data("quick")
    for name in ("ALM, Gram", "ALM, SVD"):
        fit, read = case.contestants()[name].build(case, data, None)
        assert case.score(data, read(fit())) < 1e-6


def test_perplexity_prefers_the_planted_topics():
    case = cases()["lda"]
    data = case.data("quick")
    n, words, k = 500, 500, 10
    topics = np.random.default_rng(0).dirichlet(np.full(words, 0.05), k)  # the first draw of the case
    assert data.train.shape == (n, words)
    flat = np.asarray(data.train.sum(axis=0))[None] * np.ones((k, 1)) + 1.0
    assert case.score(data, {"topics": topics}) < 0.6 * case.score(data, {"topics": flat})


@pytest.mark.slow
def test_a_real_case_runs_through(capsys):
    """One tiny case beside scikit-learn, through the command line; the inertia must be the same for both."""
    pytest.importorskip("unmix.cluster.kmeans")
    arguments = ["kmeans-clustered-200kx64", "--quick", "--repeat", "1", "--only", "unmix", "scikit-learn"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.count(" yes |") == 2
    assert "failed" not in out


def test_every_case_states_a_target_and_names_its_rivals():
    for case in cases().values():
        if isinstance(case, Case):
            names = set(case.contestants())
            assert OURS in names
            assert case.targets
            assert all(set(t.rivals) <= names for t in case.targets)
            assert case.quality.goal is not None or case.reference in names


def test_goal_without_passes():
    assert Goal(1.0).passes is None
