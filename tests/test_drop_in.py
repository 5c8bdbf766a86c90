"""Models that have a namesake in scikit-learn take its place in code, in its own tests, and on the way back."""

import copy
import importlib.util
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.utils import all_estimators

import unmix
from unmix.model.peer import counterpart

HERE = Path(__file__).parent / "drop_in"
sys.path.insert(0, str(HERE))
import differences  # noqa: E402
import plugin  # noqa: E402

KINDS = ("private", "wording", "difference")
ENOUGH = 0.94  # of a file's tests must pass (of all: 95 %), those of private functions and of wording aside
NAMESAKES = plugin.namesakes()
OURS = {name: getattr(unmix, name) for name in NAMESAKES}
THEIRS = {name: counterpart(cls) for name, cls in OURS.items()}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
namesake = pytest.mark.parametrize("name", NAMESAKES)

# ---------------------------------------------------------------- scikit-learn's own tests


def test_every_namesake_is_held_to_scikit_learns_tests():
    there = {name for name, _ in all_estimators()}
    assert set(NAMESAKES) == there & set(unmix.models()), "a model with the name of a class of scikit-learn has a peer"
    asked = {name for section in differences.SECTIONS.values() for name in section.names}
    assert asked == set(NAMESAKES), "give each namesake a section in drop_in/differences.py"
    for section in differences.SECTIONS.values():
        assert all(kind in KINDS and reason for kind, reason in section.entries.values())


@pytest.fixture(scope="module")
def of_each(tmp_path_factory):
    """What came of each file of scikit-learn's tests: all are run in one process, which takes long to begin."""
    folder = tmp_path_factory.mktemp("drop_in")
    ways = [str(HERE), str(Path(unmix.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {"PYTHONPATH": os.pathsep.join(ways), "SKLEARN_SEED": "42"}
    environment["DROP_IN_REPORT"] = str(report := folder / "report.json")
    options = f"-p plugin -p no:cacheprovider -c {os.devnull} --rootdir / -q --tb=line --pyargs".split()
    command = [sys.executable, "-m", "pytest", *options, *differences.SECTIONS]
    told = subprocess.run(
        command, env=os.environ | environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert report.exists(), told.stdout[-2000:] + told.stderr[-2000:]
    assert told.returncode in (0, 1), told.stdout[-2000:] + told.stderr[-2000:]
    found: dict[str, dict[str, str]] = {module: {} for module in differences.SECTIONS}
    for test, outcome in json.loads(report.read_text()).items():
        file, name = test.split("::", 1)
        if not outcome.startswith("skipped"):
            found[next(m for m in found if file.endswith(m.replace(".", "/") + ".py"))][name] = outcome
    return {module: Outcomes.of(outcomes, module) for module, outcomes in found.items()}


class Outcomes(NamedTuple):
    """Tests of a file: how many pass and how many count, which fail for no reason, which reasons hold no longer."""

    passed: int
    counted: int  # but for those of private functions and of wording
    unknown: dict[str, str]
    stale: set[str]

    @classmethod
    def of(cls, outcomes, module):
        entries = differences.SECTIONS[module].entries
        failed = {k: v for k, v in outcomes.items() if not v.startswith("passed")}
        reasons = {k: [e for e in entries if re.match(e, k)] for k in failed}
        kinds = Counter(entries[found[0]][0] for found in reasons.values() if found)
        print(f"{module}: {len(outcomes) - len(failed)} of {len(outcomes)} pass; {dict(kinds)}")
        return cls(
            len(outcomes) - len(failed),
            len(outcomes) - kinds["private"] - kinds["wording"],
            {k: failed[k] for k, found in reasons.items() if not found},
            set(entries) - {e for found in reasons.values() for e in found},
        )


scikit_learns = pytest.mark.skipif(
    any(importlib.util.find_spec(module) is None for module in differences.SECTIONS),
    reason="scikit-learn's tests are not installed",
)


@scikit_learns
@pytest.mark.slow
@pytest.mark.parametrize("module", differences.SECTIONS)
def test_scikit_learns_own_tests_in_one_process(module, of_each):
    found = of_each[module]
    assert found.counted
    assert not found.unknown, f"fails for no known reason: {found.unknown}"
    assert not found.stale, f"no longer fails, take it off the list: {found.stale}"
    assert found.passed >= ENOUGH * found.counted


@scikit_learns
@pytest.mark.slow
def test_of_all_of_scikit_learns_tests_95_percent_pass_in_one_process(of_each):
    every = of_each.values()
    assert sum(found.passed for found in every) >= 0.95 * sum(found.counted for found in every)


# ---------------------------------------------------------------- what can be asked for


@namesake
def test_every_parameter_of_scikit_learn_is_taken(name):
    known = {(method, parameter) for who, method, parameter in differences.SIGNATURES if who == name}
    differs = set()
    methods = [m for m in dir(THEIRS[name]) if m == "__init__" or (m[0] != "_" and callable(getattr(THEIRS[name], m)))]
    for method in methods:
        assert hasattr(OURS[name], method), method
        theirs = inspect.signature(getattr(THEIRS[name], method)).parameters
        ours = inspect.signature(getattr(OURS[name], method)).parameters
        by_place = [k for k, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        places = [k for k, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        for k, p in theirs.items():
            if p.kind is p.VAR_KEYWORD:
                continue
            same = k in ours and (p.default is ours[k].default or p.default == ours[k].default)
            if not same or (k in by_place and places[by_place.index(k) : by_place.index(k) + 1] != [k]):
                differs.add((method, k))
    assert differs == known


# ---------------------------------------------------------------- what a fit has found


@pytest.mark.parametrize("cls", unmix.models().values(), ids=lambda cls: cls.__name__)
def test_what_methods_compute_with_cannot_be_set_from_outside(cls):
    """`km.cluster_centers_ = C` would change what is seen and leave `predict` as it was: it is refused."""
    model, X, _ = cls.example(np.random.default_rng(0))
    model.fit(X)
    arrays = {k: v for k, v in vars(model).items() if k[0] != "_" and k[-1] == "_" and isinstance(v, np.ndarray)}
    shown = {k: v for k, v in arrays.items() if len(v) != len(X)}
    shown.pop("lower_bounds_", None)  # how the fit went
    for estimator in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for name, value in shown.items():
            with pytest.raises(AttributeError, match=rf"{name} is a result: {cls.__name__} .* would not change; \w+"):
                setattr(estimator, name, value + 1)
    for name, value in shown.items():  # as the same numbers in a file that is mapped into memory
        setattr(model, name, value.copy())
    for name in set(arrays) - set(shown):  # those of single rows are read by no method
        setattr(model, name, arrays[name][::-1])
    model.remark_ = model.remark = "mine"
    model.remark_ = "still mine"
    again = clone(model).fit(X)  # and a fit goes on writing its own
    for name, value in shown.items():
        np.testing.assert_array_equal(getattr(again.fit(X), name), value)


def test_the_remedy_is_named():
    X = rows("iris")
    with pytest.raises(AttributeError, match=r"fit from parts of your own \(init\) or set it on .* to_sklearn\(\)"):
        fitted("KMeans", X).cluster_centers_ = X[:3]
    with pytest.raises(AttributeError, match=r"\(.*means_init.*\)"):
        fitted("GaussianMixture", X).means_ = X[:3]
    with pytest.raises(AttributeError, match="change; fit again"):
        unmix.RobustPCA(tol=1e-2).fit(X).components_ = X[:3]
    plain = fitted("KMeans", X).to_sklearn()
    plain.cluster_centers_ = X[[0, 60, 120]].copy()
    assert set(plain.predict(X[[0, 60, 120]])) == {0, 1, 2}


# ---------------------------------------------------------------- the way back

TIGHT = {  # whose transform iterates: to the end, so that both give the same
    "NMF": {"tol": 1e-14, "max_iter": 20000},
    "LatentDirichletAllocation": {"mean_change_tol": 1e-14, "max_doc_update_iter": 20000},
}
SINGLE = {"LatentDirichletAllocation": {"max_doc_update_iter": 500}}  # float32 never gets to such a tolerance
EXACT = {
    "BayesianGaussianMixture": {"reg_covar": 0.0},  # else its log-density has a term that scikit-learn's has not
    "KernelPCA": {"fit_inverse_transform": True},
}
ANSWERS = ("predict", "transform", "predict_proba", "score", "score_samples", "inverse_transform", "bic", "aic")


def rows(data):
    return load_iris().data if data == "iris" else load_digits().data[:500, 10:30]


def fitted(name, X, **params):
    number = "n_clusters" if name == "KMeans" else "n_components"
    return OURS[name](**{number: 3, "random_state": 0, **EXACT.get(name, {}), **params}).fit(X)


def tight(name, dtype):
    return TIGHT.get(name, {}) | (SINGLE.get(name, {}) if dtype == np.float32 else {})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("data", ["iris", "digits"])
@namesake
def test_the_way_back_gives_the_same_answers(name, data, dtype):
    X = rows(data).astype(dtype)
    ours = fitted(name, X, **tight(name, dtype))
    theirs = ours.to_sklearn()
    assert type(theirs) is THEIRS[name]
    assert theirs.n_features_in_ == X.shape[1]
    again = pickle.loads(pickle.dumps(theirs))
    asked = [m for m in ANSWERS if hasattr(theirs, m) and hasattr(ours, m)]
    assert len(asked) >= 2
    for method in asked:
        given = ours.transform(X) if method == "inverse_transform" else X
        wanted = np.asarray(getattr(ours, method)(given))
        for estimator in (theirs, again):
            got = getattr(estimator, method)(given)
            close = 1e-5 if dtype == np.float32 else 1e-6 if name in TIGHT else 1e-10
            np.testing.assert_allclose(got, wanted, rtol=close, atol=close * abs(wanted).max(), err_msg=method)
    for attribute in ours.peer.attributes.split():
        own = getattr(ours, attribute)
        np.testing.assert_array_equal(np.asarray(getattr(theirs, attribute), np.asarray(own).dtype), own, attribute)


OTHERWISE = {  # parameters beside the defaults, whose fits can be handed on as well
    "PCA": [{"whiten": True}, {"svd_solver": "arpack"}, {"n_components": 0.9}],
    "TruncatedSVD": [{"algorithm": "arpack"}, {"n_components": 4}],
    "KernelPCA": [{"kernel": "rbf"}, {"kernel": "poly", "gamma": 0.02, "degree": 2}, {"n_components": None}],
    "FactorAnalysis": [{"rotation": "varimax"}, {"noise_variance_init": np.ones(4)}, {"n_components": 9}],
    "FastICA": [{"algorithm": "deflation"}, {"whiten": "arbitrary-variance"}, {"fun": "cube"}],
    "KMeans": [{"init": "random"}, {"init": rows("iris")[[0, 60, 120]]}],
    "GaussianMixture": [{"covariance_type": kind} for kind in ("tied", "diag", "spherical")],
    "BayesianGaussianMixture": [{"covariance_type": kind} for kind in ("tied", "diag", "spherical")],
    "NMF": [{"init": "custom", "components_init": rows("iris")[[0, 60, 120]]}, {"alpha_W": 0.01}],
    "LatentDirichletAllocation": [{"doc_topic_prior": np.full(3, 0.2)}, {"topic_word_prior": 0.5}],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@namesake
def test_whatever_the_parameters_what_came_back_answers_the_same_and_can_be_fitted(name, dtype):
    X = rows("iris").astype(dtype)
    for params in OTHERWISE[name]:
        ours = fitted(name, X, **(tight(name, dtype) | params))
        theirs = ours.to_sklearn()
        asked = ("predict", "transform") if "whiten" in params else ("predict", "transform", "score")  # see differences
        for method in [m for m in asked if hasattr(theirs, m) and hasattr(ours, m)]:
            wanted = np.asarray(getattr(ours, method)(X))
            close = 1e-5 if dtype == np.float32 else 1e-6 if name in TIGHT else 1e-10
            np.testing.assert_allclose(
                getattr(theirs, method)(X), wanted, rtol=close, atol=close * abs(wanted).max(), err_msg=f"{params}"
            )
        clone(theirs).set_params(**{k: 5 for k in ("max_iter",) if k in theirs.get_params()}).fit(X)


def test_the_digits_of_single_precision_come_back():
    """Where the noise is small beside the factors, float32 attributes would lose two digits of the density."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(500, 3)) @ rng.normal(size=(3, 8)) + 1e-3 * rng.normal(size=(500, 8))).astype(np.float32)
    ours = unmix.FactorAnalysis(3).fit(X)
    wanted = ours.score_samples(X)
    np.testing.assert_allclose(ours.to_sklearn().score_samples(X), wanted, rtol=0, atol=1e-5 * abs(wanted).max())


@namesake
def test_what_came_back_is_plain_scikit_learn(name):
    X = rows("iris")
    params = {} if name == "FactorAnalysis" else {"max_iter": 20} if "max_iter" in OURS[name]().get_params() else {}
    ours = fitted(name, X, **params)
    theirs = ours.to_sklearn()
    known = THEIRS[name]().get_params()
    for k, v in ours.get_params().items():
        if k in known and k != "solver":
            assert theirs.get_params()[k] == v, k
    assert not any("unmix" in str(type(v)) for v in vars(theirs).values())
    anew = clone(theirs).fit(X)
    fresh = THEIRS[name](**theirs.get_params()).fit(X)
    for attribute in ours.peer.attributes.split():
        np.testing.assert_array_equal(getattr(anew, attribute), getattr(fresh, attribute), err_msg=attribute)
    first = next(a for a in ours.peer.attributes.split() if isinstance(getattr(ours, a), np.ndarray))
    before = getattr(ours, first).copy()
    getattr(theirs, first)[...] = 0
    assert np.array_equal(getattr(ours, first), before)  # nothing is shared


def test_the_way_back_of_what_scikit_learn_does_not_have():
    X = rows("iris")
    with pytest.raises(ValueError, match=r"to_sklearn: .*metric='cosine'"):
        fitted("KMeans", X, metric="cosine").to_sklearn()
    with pytest.raises(ValueError, match="no landmarks"):
        fitted("KernelPCA", X, n_landmarks=20).to_sklearn()
    with pytest.raises(ValueError, match="oblique"):
        fitted("FactorAnalysis", X, rotation="promax").to_sklearn()
    with pytest.raises(ValueError, match="one doc_topic_prior for all topics"):
        fitted("LatentDirichletAllocation", X, doc_topic_prior=np.array([0.1, 0.2, 0.3])).to_sklearn()
    with pytest.raises(Exception, match="not fitted"):
        unmix.PCA(2).to_sklearn()
    parallel = fitted("PCA", X, n_components="parallel")
    assert parallel.to_sklearn().n_components == parallel.n_components_
    assert fitted("KMeans", X, init="spread").to_sklearn().init == "k-means++"
    assert type(type("Mine", (unmix.KMeans,), {})(3).fit(X).to_sklearn()) is THEIRS["KMeans"]
    divergence = fitted("NMF", X, beta_loss="kullback-leibler").to_sklearn()
    assert divergence.solver == "mu"
    assert divergence.transform(X).shape == (150, 3)
    assert [n for n, c in unmix.models().items() if hasattr(c(), "to_sklearn")] == list(NAMESAKES)


def test_a_fit_of_rows_with_holes_comes_back_too():
    X = rows("iris").copy()
    X[::10, 2] = np.nan
    ours = fitted("PCA", X)
    np.testing.assert_allclose(
        ours.to_sklearn().transform(rows("iris")), ours.transform(rows("iris")), rtol=1e-8, atol=1e-9
    )
