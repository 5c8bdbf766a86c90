"""Outliers of linear models by density, by what lies outside their plane (Q), and by T² within it."""

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.decomposition import PCA as SklearnPCA

import unmix
from unmix import NMF, PCA, FactorAnalysis, GaussianMixture, KMeans, RobustPCA, Select
from unmix.io.pack import PackError
from unmix.outlier import OutlierDetector, cell_scores, scores
from unmix.outlier.units import wrong_units


def plane(n, seed=0, d=8):
    """Rows near a plane of two dimensions."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(np.random.default_rng(99).normal(size=(d, 2)))[0].T
    return rng.normal(size=(n, 2)) * [5.0, 2.0] @ V + 0.3 * rng.normal(size=(n, d)) + 1.0, V


def uniform(p, step):
    """Whether p-values on a grid of 1/step are uniform: spread over their step they would be continuous."""
    return kstest(p - np.random.default_rng(0).uniform(size=len(p)) / step, "uniform").pvalue > 0.01


def test_scores_are_their_definitions():
    X, _ = plane(300)
    model = PCA(2).fit(X)
    z, new = model.transform(X), plane(20, seed=1)[0]
    residual = X - model.inverse_transform(z)
    tau = np.abs(residual).mean(axis=0)
    r = (new - model.inverse_transform(model.transform(new))) / tau
    Q = np.sqrt((r**2).mean(axis=1))
    np.testing.assert_allclose(scores(model, new, reference=X, by="reconstruction"), Q)
    np.testing.assert_allclose(cell_scores(model, new, reference=X, by="reconstruction"), r)
    T2 = (model.transform(new) ** 2 / model.explained_variance_).sum(axis=1)
    np.testing.assert_allclose(scores(model, new, reference=X, by="hotelling"), T2 * 300 / 299)
    white = PCA(2, whiten=True).fit(X)
    np.testing.assert_allclose(scores(white, new, reference=X, by="hotelling"), T2 * 300 / 299)
    for by in (None, "density"):
        np.testing.assert_allclose(scores(model, new, by=by), -model.score_samples(new))
        np.testing.assert_allclose(cell_scores(model, new, by=by), cell_scores(model, new))
    np.testing.assert_allclose(cell_scores(model, new, by="hotelling"), cell_scores(model, new))  # T² has no cells


def test_each_question_sees_its_own_outliers():
    """A row far out within the plane is no surprise to Q, a row beside the plane none to T²."""
    X, V = plane(400)
    along, beside = 1.0 + 40.0 * V[0], X[0].copy()
    normal = np.linalg.svd(V)[2][-1]
    beside += 4.0 * normal
    new = np.array([along, beside, plane(1, seed=5)[0][0]])
    for model in (PCA(2), FactorAnalysis(2)):
        p = {
            by: OutlierDetector(model, by=by, random_state=0).fit(X).p_values(new)
            for by in ("density", "reconstruction", "hotelling")
        }
        assert (p["density"][:2] == 1 / 401).all()
        assert p["reconstruction"][0] > 0.01
        assert p["reconstruction"][1] == 1 / 401
        assert p["hotelling"][0] == 1 / 401
        assert p["hotelling"][1] > 0.01
        assert min(v[2] for v in p.values()) > 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a Heywood case among 40 rows
@pytest.mark.parametrize("by", ["reconstruction", "hotelling"])
@pytest.mark.parametrize("model", [PCA(2), pytest.param(FactorAnalysis(2), marks=pytest.mark.slow)])
def test_p_values_of_clean_rows_are_uniform(model, by):
    own, new = [], []
    for i in range(60):
        X, _ = plane(60, seed=i)
        detector = OutlierDetector(model, cv=3, by=by, random_state=i).fit(X[:-1])
        own.append(detector.p_values_[0])
        new.append(detector.p_values(X[-1:])[0])
    assert uniform(np.array(own), 59)
    assert uniform(np.array(new), 60)


def test_p_values_of_cells_outside_the_plane_are_uniform_and_find_the_wrong_cell():
    own, new = [], []
    for i in range(120):
        X, _ = plane(60, seed=i)
        detector = OutlierDetector(PCA(2), cv=3, by="reconstruction", cells=True, random_state=i).fit(X[:-1])
        own.append(detector.cell_p_values_[0, 3])
        new.append(detector.cell_p_values(X[-1:])[0, 3])
    assert uniform(np.array(own), 59)
    assert uniform(np.array(new), 60)
    X, _ = plane(300)
    wrong = X[:1].copy()
    wrong[0, 4] += 6.0
    detector = OutlierDetector(PCA(2), by="reconstruction", cells=True, random_state=0).fit(X[1:])
    assert detector.cell_p_values(wrong)[0, 4] == 1 / 300
    assert detector.p_values(wrong)[0] == 1 / 300
    [reason] = detector.reasons(wrong, [0], most=1)
    assert reason.column == 4
    assert reason.usual == pytest.approx(X[0, 4], abs=4.0)


# ---------------------------------------------------------------- sparse residuals of robust PCA


def corrupted(n, seed, wrong=0.02):
    """Rank two, a little noise, and some cells that have nothing to do with it."""
    rng = np.random.default_rng(seed)
    U = np.random.default_rng(99).normal(size=(2, 20))
    X = rng.normal(size=(n, 2)) @ U + 0.01 * rng.normal(size=(n, 20))
    cells = rng.random(X.shape) < wrong
    return np.where(cells, X + rng.choice([-8.0, 8.0], X.shape), X), cells


def test_sparse_residuals_of_new_rows_are_what_the_plane_leaves():
    X, _ = corrupted(100, 0)
    new, cells = corrupted(30, 1, wrong=0.05)
    model = RobustPCA(2, random_state=0).fit(X)
    sparse = new - model.inverse_transform(model.transform(new))
    tau = np.abs(X - model.inverse_transform(model.transform(X))).mean(axis=0)
    tau = np.maximum(tau, 1e-3 * tau.mean())
    for by in (None, "reconstruction"):
        np.testing.assert_allclose(cell_scores(model, new, reference=X, by=by), sparse / tau)
        np.testing.assert_allclose(scores(model, new, reference=X, by=by), np.sqrt(((sparse / tau) ** 2).mean(axis=1)))
    np.testing.assert_array_equal(np.abs(sparse) > 4.0, cells)


@pytest.mark.slow
def test_p_values_of_robust_pca_are_uniform():
    own, new = [], []
    for i in range(30):
        X, _ = corrupted(60, i, wrong=0.0)
        detector = OutlierDetector(RobustPCA(2, tol=1e-4), cv=3, random_state=i).fit(X[:-1])
        own.append(detector.p_values_[0])
        new.append(detector.p_values(X[-1:])[0])
    assert uniform(np.array(own), 59)
    assert uniform(np.array(new), 60)


def test_p_values_of_robust_pca_are_small_for_wrong_cells():
    X, _ = corrupted(200, 7, wrong=0.0)
    wrong, cells = corrupted(40, 8, wrong=0.05)
    detector = OutlierDetector(RobustPCA(2, tol=1e-5), cv=4, cells=True, random_state=0).fit(X)
    p, each = detector.p_values(wrong), detector.cell_p_values(wrong)
    assert (p[cells.any(axis=1)] == 1 / 201).all()
    assert (each[cells] == 1 / 201).all()
    assert np.median(each[~cells]) > 0.2


# ---------------------------------------------------------------- what may be asked of whom


def test_questions_that_a_model_cannot_answer_are_refused():
    X = np.abs(plane(40)[0])
    for model, by in (
        (NMF(2), "density"),
        (NMF(2), "hotelling"),
        (RobustPCA(2), "hotelling"),
        (KMeans(2), "reconstruction"),
        (GaussianMixture(1), "reconstruction"),
        (SklearnPCA(2), "reconstruction"),
    ):
        with pytest.raises(TypeError, match=f"{type(model).__name__} cannot be asked by='{by}'"):
            scores(model.fit(X), X, by=by)
    with pytest.raises(ValueError, match="by='q': choose one of 'density', 'reconstruction', 'hotelling'"):
        scores(PCA(2).fit(X), X, by="q")
    with pytest.raises(ValueError, match="'by' parameter"):
        OutlierDetector(PCA(2), by="q").fit(X)


def test_missing_cells_sparse_rows_and_selections():
    X, _ = plane(200)
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    for by in ("reconstruction", "hotelling"):
        p = OutlierDetector(PCA(2), cv=4, by=by, random_state=0).fit(holes).p_values(holes[:50])
        assert np.isfinite(p).all()
        chosen = Select(PCA(), k=range(1, 4), random_state=0).fit(X)
        np.testing.assert_array_equal(scores(chosen, X, by=by), scores(chosen.model_, X, by=by))


@pytest.mark.parametrize("by", ["density", "reconstruction", "hotelling"])
def test_a_detector_is_saved_with_its_question(by, tmp_path):
    X, _ = plane(80)
    judge = OutlierDetector(PCA(2), cv=3, by=by, cells=True, random_state=0).fit(X)
    judge.save(tmp_path / "odd.unmix")
    same = unmix.load(tmp_path / "odd.unmix")
    assert same.by == by
    np.testing.assert_array_equal(same.p_values(X), judge.p_values(X))
    np.testing.assert_array_equal(same.cell_p_values(X), judge.cell_p_values(X))


def test_units_of_another_question_are_noticed(tmp_path):
    X, _ = plane(80)
    judge = OutlierDetector(PCA(2), cv=3, by="hotelling", random_state=0).fit(X)
    known = judge.models_, judge._units_, judge._cell_units_, 8, False
    assert wrong_units(*known, "hotelling") == ""
    assert wrong_units(*known, "reconstruction") == "its units are not those of its models"
    assert "cannot be asked" in wrong_units([RobustPCA(2).fit(X)] * 3, *known[1:], "hotelling")
    judge.set_params(by="reconstruction")
    with pytest.raises(PackError, match="units"):
        judge.save(tmp_path / "odd.unmix")


def test_streams_are_judged_as_arrays_are(tmp_path):
    X, _ = plane(150)
    np.save(tmp_path / "x.npy", X)
    for by in ("reconstruction", "hotelling"):
        a, b = (OutlierDetector(PCA(2), cv=3, by=by, random_state=0).fit(x) for x in (X, tmp_path / "x.npy"))
        np.testing.assert_allclose(a.scores_, b.scores_, rtol=1e-6)
