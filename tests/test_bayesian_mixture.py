import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_t
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture as Reference

import unmix
from unmix.engine.block import Block
from unmix.mixture import BayesianGaussianMixture
from unmix.model import fit_together

KINDS = ["full", "tied", "diag", "spherical"]
PRIORS = ["dirichlet_process", "dirichlet_distribution"]


def groups(n=400, d=3, K=3, gap=3.0, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(K, size=n)
    means, axes = gap * rng.normal(size=(K, d)), np.eye(d) + 0.3 * rng.normal(size=(K, d, d))
    return 5.0 + means[label] + np.einsum("nij,nj->ni", axes[label], rng.normal(size=(n, d))), label


def quiet_fit(model, X, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few passes, or parts that collapse on purpose
        return model.fit(X, **kwargs)


def same_start(X, K, **args):
    """Ours and scikit-learn's, both from the rows assigned to the nearest of some points."""
    centres = 3.0 * np.random.default_rng(1).normal(size=(K, X.shape[1]))
    mean = X.mean(axis=0)

    def nearest(x):
        return ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)

    class Ours(BayesianGaussianMixture):
        def stages(self, shape):
            return [self]

        def start(self, before, data, rng):
            return super().start(nearest(data.x - mean), data, rng)

    class Theirs(Reference):
        def _initialize_parameters(self, X, random_state, xp=None):
            self._initialize(X, np.eye(K)[nearest(X - mean)])

    with unmix.config(acceleration=False):
        return quiet_fit(Ours(K, **args), X), quiet_fit(Theirs(n_components=K, **args), X)


NAMES = [
    "weights_",
    "means_",
    "covariances_",
    "precisions_",
    "precisions_cholesky_",
    "degrees_of_freedom_",
    "mean_precision_",
    "weight_concentration_",
    "mean_prior_",
    "covariance_prior_",
    "weight_concentration_prior_",
    "mean_precision_prior_",
    "degrees_of_freedom_prior_",
]


@pytest.mark.parametrize("passes", [1, 15])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_same_start_same_passes_same_numbers_as_scikit_learn(kind, prior, passes):
    X, _ = groups()
    args = {"covariance_type": kind, "weight_concentration_prior_type": prior, "max_iter": passes, "tol": 0.0}
    ours, theirs = same_start(X, 5, reg_covar=0.0, **args)
    for name in NAMES:
        a, b = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-8)
    if passes == 1:  # ε enters our densities too: the same but for its own size
        ours, theirs = same_start(X, 5, reg_covar=1e-6, **args)
        np.testing.assert_allclose(ours.means_, theirs.means_, atol=1e-6)
        np.testing.assert_allclose(ours.covariances_, theirs.covariances_, atol=1e-6)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_scikit_learns_where_both_have_converged(kind, prior):
    X, _ = groups(gap=4.0)
    ours, theirs = same_start(
        X, 4, covariance_type=kind, weight_concentration_prior_type=prior, max_iter=1500, tol=1e-12
    )
    assert ours.converged_
    assert ours.lower_bound_ == pytest.approx(float(np.squeeze(theirs.lower_bound_)), abs=1e-6)


def test_the_bound_of_one_component_is_the_evidence():
    """log p(X) as a product of predictive t distributions, each row given those before it."""
    X, _ = groups(n=60)
    prior = {"mean_precision_prior": 0.7, "degrees_of_freedom_prior": 4.5, "covariance_prior": 2.0 * np.eye(3) + 0.3}
    model = BayesianGaussianMixture(1, mean_prior=[1.0, 2.0, 3.0], reg_covar=0.0, tol=1e-12, **prior).fit(X)
    beta, nu, m, S = 0.7, 4.5, np.array([1.0, 2.0, 3.0]), 2.0 * np.eye(3) + 0.3
    log_p = 0.0
    for x in X:
        df = nu - 2
        log_p += multivariate_t(m, S * (beta + 1) / (beta * df), df).logpdf(x)
        S = S + beta / (beta + 1) * np.outer(x - m, x - m)
        m, beta, nu = (beta * m + x) / (beta + 1), beta + 1, nu + 1
    plain = BayesianGaussianMixture(
        1, mean_prior=[1.0, 2.0, 3.0], reg_covar=0.0, weight_concentration_prior_type=PRIORS[1], tol=1e-12, **prior
    ).fit(X)
    assert plain.log_evidence_ == pytest.approx(log_p, abs=1e-8)
    assert model.log_evidence_ < plain.log_evidence_  # a stick has a divergence, a Dirichlet of one has none


@pytest.mark.parametrize("hole", [0.0, 0.25])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_never_falls(kind, prior, hole):
    X, _ = groups(gap=1.5)
    X = np.where(np.random.default_rng(2).random(X.shape) < hole, np.nan, X)
    for reg, acceleration in ((1e-6, True), (2.0, False)):
        args = {"covariance_type": kind, "weight_concentration_prior_type": prior, "reg_covar": reg}
        with unmix.config(acceleration=acceleration):
            model = quiet_fit(BayesianGaussianMixture(6, max_iter=30, tol=0.0, random_state=0, **args), X)
        objective = np.array([s.objective for s in model.trace_ if s.accepted])
        assert (np.diff(objective) <= 1e-11).all()
        assert objective[-1] < objective[0] - 1e-3


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_the_planted_number_is_found_and_the_rest_reported(kind, prior):
    rng = np.random.default_rng(0)
    means = np.array([[0, 0, 0, 0], [8, 0, 3, 0], [0, 8, 0, -4], [-7, -7, 0, 5.0]])
    label = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=800)
    X = means[label] + rng.normal(size=(800, 4))
    args = {"covariance_type": kind, "weight_concentration_prior_type": prior, "weight_concentration_prior": 1e-3}
    model = BayesianGaussianMixture(10, max_iter=1000, tol=1e-6, random_state=0, **args)
    with pytest.warns(ConvergenceWarning, match=r"components \[.*\] have vanished: 4 hold the rows"):
        model.fit(X)
    assert model.n_active_ == 4
    assert adjusted_rand_score(label, model.labels_) > 0.98
    np.testing.assert_allclose(np.sort(model.weights_)[-4:], [0.1, 0.2, 0.3, 0.4], atol=0.04)
    assert np.sort(model.weights_)[:-4].sum() < 0.01


def test_log_evidence_prefers_the_planted_number():
    X, _ = groups(n=300, gap=5.0)
    args = {"weight_concentration_prior_type": PRIORS[1], "weight_concentration_prior": 1.0, "tol": 1e-6}
    bounds = [
        quiet_fit(BayesianGaussianMixture(k, n_init=3, max_iter=500, random_state=0, **args), X).log_evidence_
        for k in (1, 2, 3, 4, 5)
    ]
    assert np.argmax(bounds) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells_and_weights(kind):
    X, label = groups(n=600, gap=5.0)
    rng = np.random.default_rng(3)
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    model = quiet_fit(BayesianGaussianMixture(3, covariance_type=kind, max_iter=300, tol=1e-6, random_state=0), holes)
    whole = quiet_fit(BayesianGaussianMixture(3, covariance_type=kind, max_iter=300, tol=1e-6, random_state=0), X)
    gaps = ((model.means_[:, None] - whole.means_) ** 2).sum(axis=2).min(axis=0)
    assert gaps.max() < 0.1
    assert adjusted_rand_score(label, model.predict(holes)) > 0.85
    b, U = Block(np.nan_to_num(holes), None, None, ~np.isnan(holes)), model._parts_
    empty = Block(np.vstack([b.x, np.zeros((1, 3))]), None, None, np.vstack([b.observed, np.zeros((1, 3), bool)]))
    np.testing.assert_allclose(model.local(U, empty).stats.N, model.local(U, b).stats.N)  # a blank row is no row
    assert model.score_samples(np.full((1, 3), np.nan))[0] == 0.0
    w = rng.integers(0, 3, size=len(X)).astype(float)
    args = {"covariance_type": kind, "max_iter": 8, "tol": 0.0, "random_state": 0}
    weighted = quiet_fit(BayesianGaussianMixture(3, **args), holes, sample_weight=w)
    repeated = quiet_fit(BayesianGaussianMixture(3, **args), np.repeat(holes, w.astype(int), axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-7)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-9)


def hostile():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    yield "duplicates", np.repeat(x[:2], 20, axis=0), 5
    yield "all rows equal", np.ones((30, 3)), 4
    yield "constant columns", np.hstack([x, np.full((40, 2), 7.0)]), 3
    yield "as many components as rows", x[:12], 12
    yield "one far point", np.vstack([x, np.full((1, 3), 1e8)]), 3
    yield "more columns than rows", rng.normal(size=(10, 30)), 3
    yield "one row", x[:1], 1
    yield "collinear", x[:, [0, 0, 1, 1]], 2
    holes = np.where(rng.random(x.shape) < 0.5, np.nan, x)
    holes[0] = np.nan
    yield "holes", holes, 4


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("X", "K"), [pytest.param(X, K, id=name) for name, X, K in hostile()])
def test_hostile_data_never_crash(X, K, kind, prior):
    args = {"covariance_type": kind, "weight_concentration_prior_type": prior}
    model = quiet_fit(BayesianGaussianMixture(K, random_state=0, **args), X)
    assert model.result_ in ("converged", "max_iter")
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite(model.log_evidence_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"n_components": 50}, "n_components=50"),
        ({"degrees_of_freedom_prior": 1.5}, "degrees_of_freedom_prior=1.5: give more than 2"),
        ({"mean_prior": [0.0, 1.0]}, "mean_prior has shape"),
        ({"covariance_prior": np.ones((2, 2))}, "covariance_prior has shape"),
        ({"covariance_prior": -np.eye(3)}, "covariance_prior is not positive definite"),
        ({"covariance_type": "diag", "covariance_prior": [1.0, 0.0, 1.0]}, "covariance_prior is not positive definite"),
    ],
)
def test_wrong_priors_are_named(args, message):
    X, _ = groups(n=40)
    with pytest.raises(ValueError, match=message):
        BayesianGaussianMixture(**({"n_components": 3} | args)).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_grown_parts_are_those_of_one_component_more(kind):
    X, _ = groups(gap=5.0)
    (fit,) = fit_together([BayesianGaussianMixture(2, covariance_type=kind)], X, [None], [0])
    three = BayesianGaussianMixture(3, covariance_type=kind, random_state=0).at(fit.shape)
    U = three.neighbour(fit, True, np.random.default_rng(0))
    assert U.counts.sum() == pytest.approx(len(X))
    assert len(np.unique(U.means, axis=0)) == 3
    out = three.local(U, Block(X))
    after = three.update(U, out.stats)
    assert three.local(after, Block(X)).loss + three.penalty(after) < out.loss + three.penalty(U)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_merge_joins_what_was_one(kind, prior):
    X, _ = groups(gap=5.0)
    args = {"covariance_type": kind, "weight_concentration_prior_type": prior, "random_state": 0}
    (fit,) = fit_together([BayesianGaussianMixture(3, **args)], X, [None], [0])
    three, four = (BayesianGaussianMixture(K, **args).at(fit.shape) for K in (3, 4))
    stats = three.local(fit.U, Block(X)).stats
    pieces = np.array([[1.0, 0, 0], [0, 0.3, 0], [0, 0, 1.0], [0, 0.7, 0]])  # component 1 in two of them
    cut = stats._replace(N=pieces @ stats.N, A=pieces @ stats.A, B=stats.B if kind == "tied" else pieces @ stats.B)
    pieces = fit._replace(U=four.update(fit.U, cut), stats=cut)
    got, want = three.neighbour(pieces, False, np.random.default_rng(0)), three.update(fit.U, stats)
    for name in ("counts", "means", "covariances", "dof", "weights"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-9, err_msg=name)
    assert three.local(got, Block(X)).loss == pytest.approx(three.local(want, Block(X)).loss, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e153, 1e160, 1e307])
def test_numbers_without_squares_are_refused(kind, scale):
    X = scale * np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match=r"X reaches .* squares of that are beyond float64: multiply X by 1e"):
        BayesianGaussianMixture(2, covariance_type=kind, random_state=0).fit(X)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_fits_of_one_pass_that_go_on_are_one_long_fit(kind, prior):
    X, _ = groups()
    args = {"covariance_type": kind, "weight_concentration_prior_type": prior, "tol": 0.0, "random_state": 0}
    with unmix.config(acceleration=False):
        whole = quiet_fit(BayesianGaussianMixture(5, max_iter=5, **args), X)
        steps = BayesianGaussianMixture(5, max_iter=1, warm_start=True, **args)
        bounds = [bound for _ in range(5) for bound in quiet_fit(steps, X).lower_bounds_]
    assert bounds == whole.lower_bounds_
    assert (np.diff([*bounds, whole.lower_bound_]) >= 0).all()
    np.testing.assert_array_equal(steps.means_, whole.means_)
    np.testing.assert_array_equal(steps.covariances_, whole.covariances_)


def test_going_on_takes_the_priors_of_now():
    X, _ = groups()
    model = quiet_fit(BayesianGaussianMixture(3, warm_start=True, random_state=0), X)
    quiet_fit(model.set_params(mean_prior=np.zeros(3), covariance_prior=2.0 * np.eye(3)), X)
    np.testing.assert_allclose(model.mean_prior_, 0.0, atol=1e-12)
    np.testing.assert_array_equal(model.covariance_prior_, 2.0 * np.eye(3))
    assert model.stages_ == []
    quiet_fit(model.set_params(weight_concentration_prior_type="dirichlet_distribution"), X)
    assert model.stages_  # another posterior: it starts anew


def test_without_a_pass_the_start_is_the_answer():
    X, _ = groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = BayesianGaussianMixture(3, max_iter=0, random_state=0).fit(X)
    assert (model.n_iter_, model.converged_, model.lower_bounds_) == (0, False, [])
    after = quiet_fit(BayesianGaussianMixture(3, max_iter=1, random_state=0), X)
    assert after.lower_bounds_ == [model.lower_bound_]


def test_tol_is_a_gain_of_the_whole_bound():
    from sklearn.datasets import make_blobs

    X, _ = make_blobs(2000, centers=4, random_state=1, cluster_std=2.0)
    model = quiet_fit(unmix.BayesianGaussianMixture(10, max_iter=500, random_state=0), X)
    assert (model.weights_ > 0.1).sum() == 4
    assert len(model.lower_bounds_) == model.n_iter_
