import itertools
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.special import digamma, gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Reference

import unmix
from unmix.engine.block import Block
from unmix.engine.draws import generator
from unmix.engine.trace import Fit
from unmix.mixture import Bernoulli, Categorical, Family, Mixture, Student
from unmix.mixture.families import counts, over, sums
from unmix.testing import check_model

LABEL = np.arange(900) % 3


def planted(family, rng, label=LABEL):
    """Rows of three components of a family, and the parameters."""
    d, n = 6, len(label)
    if family == "bernoulli":
        p = np.array([[0.9, 0.8, 0.1, 0.2, 0.5, 0.1], [0.1, 0.2, 0.9, 0.8, 0.5, 0.2], [0.2, 0.9, 0.2, 0.9, 0.9, 0.9]])
        return (rng.random((n, d)) < p[label]).astype(float), {"probabilities": p}
    if family == "categorical":
        p = rng.dirichlet(np.full(4, 0.4), size=(3, d))
        return (rng.random((n, d, 1)) > p.cumsum(axis=2)[label]).sum(axis=2).clip(0, 3).astype(float), {
            "probabilities": p
        }
    if family == "multinomial":
        p = rng.dirichlet(np.full(d, 0.7), size=3)
        return np.array([rng.multinomial(20, p[k]) for k in label]).astype(float), {"probabilities": p}
    if family == "poisson":
        rates = rng.uniform(1.0, 12.0, size=(3, d))
        return rng.poisson(rates[label]).astype(float), {"rates": rates}
    if family == "exponential":
        means = np.exp(rng.uniform(-1.5, 1.5, size=(3, d)))
        return rng.exponential(means[label]), {"means": means}
    means, widths = 3.0 * rng.normal(size=(3, d)) + 1.0, rng.uniform(0.5, 1.5, size=(3, d))
    x, u = rng.normal(size=(n, d)), 1.0
    if family == "student":
        u = np.sqrt(rng.chisquare(4.0, size=(n, 1)) / 4.0)
    return means[label] + widths[label] * x / u, {"means": means, "variances": widths**2}


FAMILIES = ["gaussian", "bernoulli", "categorical", "multinomial", "poisson", "exponential", "student"]
WITH_HOLES = [f for f in FAMILIES if f != "multinomial"]


def holed(X, rng, share):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def quiet_fit(model, X, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few passes, or parts that collapse on purpose
        return model.fit(X, **kwargs)


# Two to six standard errors of the smallest component (600 rows), were its rows known; larger where cells are missing.
TOLERANCE = {
    "bernoulli": 0.06, "categorical": 0.06, "multinomial": 0.03, "poisson": 0.5, "exponential": 0.5, "gaussian": 0.25,
    "student": 0.4,
}  # fmt: skip


@pytest.mark.parametrize("hole", [0.0, 0.2])
@pytest.mark.parametrize("family", FAMILIES)
def test_planted_parameters_are_found(family, hole):
    if hole and family == "multinomial":
        pytest.skip("refuses missing cells")
    rng = np.random.default_rng(1)
    label = rng.choice(3, p=[0.5, 0.3, 0.2], size=3000)
    X, truth = planted(family, rng, label)
    X = holed(X, rng, hole)
    model = quiet_fit(Mixture(3, family=family, n_init=3, tol=1e-7, max_iter=500, random_state=0), X)
    first = next(iter(truth))
    apart = np.abs(model.parameters_[first][:, None] - truth[first]).reshape(3, 3, -1).mean(axis=2)
    order = apart.argmin(axis=0)
    assert sorted(order) == [0, 1, 2]
    for name, value in truth.items():
        np.testing.assert_allclose(model.parameters_[name][order], value, atol=TOLERANCE[family] * (1 + hole))
    np.testing.assert_allclose(model.weights_[order], [0.5, 0.3, 0.2], atol=0.06)
    if family == "student":
        assert (np.abs(model.parameters_["df"] - 4.0) < 1.5).all()


def brute(family, x, k, P):
    """log p of the observed cells of one row, by SciPy."""
    o = ~np.isnan(x)
    if family == "bernoulli":
        return stats.bernoulli(P["probabilities"][k][o]).logpmf(x[o]).sum()
    if family == "categorical":
        return sum(np.log(P["probabilities"][k][j][int(x[j])]) for j in np.flatnonzero(o))
    if family == "multinomial":
        return stats.multinomial(int(x.sum()), P["probabilities"][k]).logpmf(x)
    if family == "poisson":
        return stats.poisson(P["rates"][k][o]).logpmf(x[o]).sum()
    if family == "exponential":
        return stats.expon(scale=P["means"][k][o]).logpdf(x[o]).sum()
    if family == "gaussian":
        return stats.norm(P["means"][k][o], np.sqrt(P["variances"][k][o])).logpdf(x[o]).sum()
    if not o.any():
        return 0.0
    return stats.multivariate_t(P["means"][k][o], np.diag(P["variances"][k][o]), P["df"][k]).logpdf(x[o])


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_by_scipy(family):
    rng = np.random.default_rng(0)
    X, _ = planted(family, rng)
    X = X if family == "multinomial" else holed(X, rng, 0.2)
    model = quiet_fit(Mixture(3, family=family, random_state=0), X)
    x = X[:40].copy()
    if family != "multinomial":
        x[5] = np.nan
    log_z = np.array([[brute(family, r, k, model.parameters_) for k in range(3)] for r in x]) + np.log(model.weights_)
    log_p = np.logaddexp.reduce(log_z, axis=1)
    np.testing.assert_allclose(model.score_samples(x), log_p, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(x), np.exp(log_z - log_p[:, None]), atol=1e-8)
    if family != "multinomial":
        assert model.score_samples(x)[5] == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(model.predict_proba(x)[5], model.weights_)


def first_parts(model, b):
    """The parts that a fit of these rows starts from: those of the labels that a short k-means hands on."""
    stage, rng = model.stages(model.shape)[0], generator(0, "init")
    data = stage.open(b, rng)
    U = stage.start(None, data, rng)
    for _ in range(stage.most):
        U, _ = stage.step(U, data, rng)
        if stage.goal(U, 0.0):
            break
    return model.start(stage.hand(U, data), b, rng)


@pytest.mark.parametrize("hole", [0.0, 0.2])
def test_bernoulli_is_brute_force_em_step_for_step(hole):
    rng = np.random.default_rng(0)
    X = holed(planted("bernoulli", rng)[0][:150], rng, hole)
    w = rng.integers(0, 3, size=len(X)).astype(float)
    observed = ~np.isnan(X)
    b = Block(np.nan_to_num(X), w, None, observed if hole else None)
    model = Mixture(3, family="bernoulli")
    U = first_parts(model, b)
    weights, p = U.weights.copy(), U.families[0].probabilities.copy()
    for _ in range(25):
        density = np.tile(weights, (len(X), 1))
        for i, k, j in itertools.product(range(len(X)), range(3), range(6)):
            if observed[i, j]:
                density[i, k] *= p[k, j] if X[i, j] == 1 else 1 - p[k, j]
        out = model.local(U, b)
        assert out.loss == pytest.approx(-w @ np.log(density.sum(axis=1)), rel=1e-12)
        z = density / density.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(out.z, z, atol=1e-12)
        weights = w @ z / w.sum()
        for k, j in itertools.product(range(3), range(6)):
            share = w * z[:, k] * observed[:, j]
            p[k, j] = (share * np.nan_to_num(X[:, j])).sum() / share.sum()
        U = model.update(U, out.stats)
        np.testing.assert_allclose(U.weights, weights, atol=1e-12)
        np.testing.assert_allclose(U.families[0].probabilities, p, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_gaussian_is_scikit_learns_diagonal_mixture(offset):
    rng = np.random.default_rng(0)
    X = planted("gaussian", rng)[0] + offset
    model = Mixture(3, family="gaussian", tol=0.0, max_iter=12, random_state=0)
    U = first_parts(model, Block(X))
    P = U.families[0]
    args = {"weights_init": U.weights, "means_init": P.means + P.shift, "precisions_init": 1.0 / P.variances}
    theirs = quiet_fit(Reference(3, covariance_type="diag", reg_covar=0.0, tol=0.0, max_iter=12, **args), X)
    for _ in range(12):
        U = model.update(U, model.local(U, Block(X)).stats)
    np.testing.assert_allclose(U.weights, theirs.weights_, atol=1e-6)
    np.testing.assert_allclose(U.families[0].means + U.families[0].shift, theirs.means_, rtol=1e-6)
    np.testing.assert_allclose(U.families[0].variances, theirs.covariances_, rtol=1e-3 if offset else 1e-8)


@pytest.mark.parametrize("df", [None, 3.0])
def test_student_update_is_the_maximum(df):
    """No small change of any parameter raises the expected log-likelihood of rows and their weights u."""
    rng = np.random.default_rng(0)
    X = holed(planted("student", rng)[0][:300], rng, 0.2)
    seen, x = (~np.isnan(X)).astype(float), np.nan_to_num(X)
    z, family = rng.dirichlet(np.ones(2), len(X)), Student(df)
    P = family.start(x, np.ones(len(X)), seen, z)
    p = seen.sum(axis=1, keepdims=True)

    def expected(Q):
        """E log p(x, u) under the weights that P implies."""
        gap = (x[:, None] - (Q.means + Q.shift)) ** 2 / Q.variances
        old = ((x[:, None] - (P.means + P.shift)) ** 2 / P.variances * seen[:, None]).sum(axis=2)
        a, b = (P.df + p) / 2, (P.df + old) / 2
        u, log_u = a / b, digamma(a) - np.log(b)
        rows = 0.5 * (
            p * log_u - u * (gap * seen[:, None]).sum(axis=2) - (np.log(Q.variances) * seen[:, None]).sum(axis=2)
        )
        half = Q.df / 2
        gamma = half * np.log(half) - gammaln(half) + (half - 1) * log_u - half * u
        return (z * (rows + gamma * (p > 0))).sum()

    Q = family.update(P, family.stats(P, x, seen, z))
    best = expected(Q)
    assert best > expected(P)
    for name in ("means", "variances") + (("df",) if df is None else ()):
        value = getattr(Q, name)
        for index in np.ndindex(value.shape):
            for step in (-1e-3, 1e-3):
                other = value.copy()
                other[index] += step * max(1.0, abs(value[index]))
                assert expected(Q._replace(**{name: other})) < best, (name, index)
    if df is not None:
        assert (Q.df == df).all()


def test_student_stands_far_rows_that_move_a_gaussian():
    rng = np.random.default_rng(0)
    X, truth = planted("gaussian", rng)
    X[:30] = 60.0 * rng.normal(size=(30, 6))
    robust = quiet_fit(Mixture(3, family="student", n_init=3, max_iter=500, tol=1e-6, random_state=0), X)
    plain = quiet_fit(Mixture(3, family="gaussian", n_init=3, max_iter=500, tol=1e-6, random_state=0), X)
    assert adjusted_rand_score(LABEL[30:], robust.predict(X[30:])) > 0.97
    error = [((m.means_[:, None] - truth["means"]) ** 2).mean(axis=2).min(axis=0).max() for m in (robust, plain)]
    assert error[0] < 0.05 < error[1]


@pytest.mark.parametrize("acceleration", [False, True])
@pytest.mark.parametrize("family", [*FAMILIES, Student(df=2.0)], ids=str)
def test_the_objective_never_rises(family, acceleration):
    rng = np.random.default_rng(3)
    X, _ = planted(family if isinstance(family, str) else "student", rng)
    X = X if family == "multinomial" else holed(X, rng, 0.15)
    model = Mixture(4, family=family, tol=0.0, max_iter=40, init_params="random", random_state=1)
    with unmix.config(acceleration=acceleration):
        trace = quiet_fit(model, X).trace_
    objective = np.array([s.objective for s in trace if s.accepted])
    assert (np.diff(objective) <= 1e-10 * np.abs(objective[:-1])).all()
    assert objective[-1] < objective[0] - 1e-3


def law_case(family):
    """A subclass whose example is of the family, for the laws."""

    class Case(Mixture):
        @classmethod
        def example(cls, rng):
            X, _ = planted(family, rng, LABEL[:300])
            return cls(3, family=family, tol=1e-4, random_state=0), X, lambda model: None

    return Case


@pytest.mark.parametrize("family", FAMILIES)
def test_the_laws_hold_for_every_family(family):
    sparse = ["sparse"] * (family in ("gaussian", "bernoulli", "poisson", "multinomial"))
    check_model(law_case(family), laws=["additive", "weights", "online", "float32", *sparse])  # which raises


@pytest.mark.parametrize("family", ["categorical", "exponential", "student"])
def test_csr_is_refused_where_it_is_not_cheap(family):
    X, _ = planted(family, np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"family .* needs dense data.*toarray"):
        Mixture(3, family=family).fit(sp.csr_array(X))


def test_columns_of_different_kinds():
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=1500)
    counts_, bits = (
        rng.poisson(np.array([[2.0, 6.0], [5.0, 3.0]])[label]),
        rng.random((1500, 2)) < np.array([[0.2, 0.7], [0.6, 0.3]])[label],
    )
    level = np.where(
        label == 1, rng.choice(3, p=[0.6, 0.3, 0.1], size=1500), rng.choice(3, p=[0.1, 0.3, 0.6], size=1500)
    )
    real = rng.normal(2.0 * label, 1.0)
    X = np.column_stack([real, counts_[:, 0], bits, level, counts_[:, 1]])
    holes = holed(X, rng, 0.1)
    family = [("gaussian", [0]), ("poisson", [1, 5]), (Bernoulli(), [2, 3]), ("categorical", 4)]
    model = quiet_fit(Mixture(2, family=family, n_init=3, tol=1e-6, max_iter=300, random_state=0), holes)
    k = np.argsort(model.parameters_[0]["means"][:, 0])
    np.testing.assert_allclose(model.parameters_[0]["means"][k, 0], [0.0, 2.0], atol=0.2)
    np.testing.assert_allclose(model.parameters_[1]["rates"][k], [[2.0, 6.0], [5.0, 3.0]], atol=0.5)
    np.testing.assert_allclose(model.parameters_[2]["probabilities"][k], [[0.2, 0.7], [0.6, 0.3]], atol=0.08)
    np.testing.assert_allclose(model.parameters_[3]["probabilities"][k, 0, 0], [0.1, 0.6], atol=0.08)
    alone = [quiet_fit(Mixture(2, family=f, random_state=0), holes[:, np.atleast_1d(c)]) for f, c in family[:3]]
    joint = adjusted_rand_score(label, model.predict(holes))
    assert (
        joint
        > max(
            adjusted_rand_score(label, m.predict(holes[:, np.atleast_1d(c)]))
            for m, (_, c) in zip(alone, family[:3], strict=True)
        )
        + 0.1
    )
    # densities multiply: the log-density is that of the groups given the component
    x = holes[:20]
    P, log_z = model.parameters_, np.tile(np.log(model.weights_), (20, 1))
    for i, c in itertools.product(range(20), range(2)):
        for (f, columns), values in zip(
            [("gaussian", [0]), ("poisson", [1, 5]), ("bernoulli", [2, 3]), ("categorical", [4])], P, strict=True
        ):
            log_z[i, c] += brute(f, x[i, columns], c, values)
    np.testing.assert_allclose(model.score_samples(x), np.logaddexp.reduce(log_z, axis=1), atol=1e-9)
    assert model.n_parameters() == 1 + 4 + 4 + 4 + 4
    drawn, _ = model.sample(3000)
    assert set(np.unique(drawn[:, 4])) == {0.0, 1.0, 2.0}
    np.testing.assert_allclose(drawn[:, [0, 1, 5]].mean(axis=0), X[:, [0, 1, 5]].mean(axis=0), atol=0.3)
    assert not hasattr(model, "means_")
    with pytest.raises(ValueError, match="without means"):
        model.inverse_transform(model.transform(x))


class Geometric(Family):
    """p(x) = p (1 − p)^x."""

    def log_density(self, P, x, seen):
        return x @ np.log1p(-P[0]).T + over(seen, np.log(P[0]))

    def stats(self, P, x, seen, z):
        return counts(z, seen, x.shape[1]), sums(z, x)

    def update(self, P, stats):
        N, A = stats
        return (np.clip(N / np.maximum(N + A, 1e-300), 1e-9, 1 - 1e-9),)

    def sample(self, P, k, n, rng):
        return rng.geometric(P[0][k], (n, P[0].shape[1])) - 1.0


def test_a_family_of_ones_own():
    rng = np.random.default_rng(0)
    truth = np.array([[0.5, 0.1, 0.3], [0.05, 0.6, 0.2]])
    X = holed(rng.geometric(truth[rng.integers(2, size=3000)]) - 1.0, rng, 0.2)
    model = quiet_fit(Mixture(2, family=Geometric(), tol=1e-7, max_iter=500, random_state=0), X)
    p = model.parameters_["0"]
    np.testing.assert_allclose(p[p[:, 0].argsort()[::-1]], truth, atol=0.04)
    objective = np.array([s.objective for s in model.trace_ if s.accepted])
    assert (np.diff(objective) <= 1e-12).all()
    assert model.n_parameters() == 7
    assert repr(model.family) == "Geometric()"
    assert repr(Student(df=2.0)) == "Student(df=2.0)"
    drawn, y = model.sample(5000)
    np.testing.assert_allclose(drawn[y == 0].mean(axis=0), 1 / p[0] - 1, rtol=0.1)
    assert np.isfinite(model.icl(X))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_of_what_it_sampled_finds_it_again(family):
    rng = np.random.default_rng(2)
    X, _ = planted(family, rng)
    model = quiet_fit(Mixture(3, family=family, n_init=3, max_iter=300, tol=1e-6, random_state=0), X)
    drawn, y = model.sample(6000)
    again = quiet_fit(Mixture(3, family=family, n_init=3, max_iter=300, tol=1e-6, random_state=0), drawn)
    assert adjusted_rand_score(y, again.predict(drawn)) > adjusted_rand_score(y, model.predict(drawn)) - 0.05
    assert again.score(drawn) == pytest.approx(model.score(drawn), abs=0.05)


@pytest.mark.parametrize(
    "family", ["poisson", "student", [("bernoulli", [0, 2, 4]), ("bernoulli", [1, 3, 5])]], ids=str
)
def test_save_load_and_stream(family, tmp_path):
    X, _ = planted(family if isinstance(family, str) else "bernoulli", np.random.default_rng(0))
    model = quiet_fit(Mixture(3, family=family, random_state=0), X)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(Mixture.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    with unmix.config(block_rows=64):
        a = quiet_fit(Mixture(3, family=family, random_state=0), X)
        b = quiet_fit(Mixture(3, family=family, random_state=0), lambda: iter(np.array_split(X, 7)))
    np.testing.assert_array_equal(a.weights_, b.weights_)


@pytest.mark.parametrize(
    "family",
    [
        Student(df=4.0),
        [(Student(df=4.0), range(4)), ("gaussian", [4, 5])],
        {Student(): np.array([0, 1]), "gaussian": [2, 3, 4, 5]},
        {"student": [0, 1, 2], "gaussian": [3, 4, 5]},
    ],
    ids=["object", "range", "dict of objects", "dict"],
)
def test_families_are_saved_with_their_parameters(family, tmp_path):
    X, _ = planted("student", np.random.default_rng(0))
    model = quiet_fit(Mixture(3, family=family, random_state=0), X)
    model.save(tmp_path / "m")
    again = unmix.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    kinds = [(repr(f), columns) for f, columns in model._groups()]
    assert [(repr(f), columns) for f, columns in again._groups()] == kinds
    refit = quiet_fit(again, X)
    np.testing.assert_array_equal(refit.weights_, model.weights_)
    assert model.family is family


@pytest.mark.parametrize("mixed", [False, True])
def test_a_family_of_ones_own_is_not_saved_and_the_remedy_works(mixed, tmp_path):
    X = np.random.default_rng(0).geometric(0.3, size=(100, 2)) - 1.0
    family = [(Geometric(), [0]), ("poisson", [1])] if mixed else Geometric()
    model = quiet_fit(Mixture(2, family=family, random_state=0), X)
    with pytest.raises(ValueError, match=r"Geometric\(\), a class of your own.*joblib\.dump"):
        model.save(tmp_path / "m")
    joblib.dump(model, tmp_path / "m")
    np.testing.assert_array_equal(joblib.load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_by_name(kind, tmp_path):
    frames = pytest.importorskip(kind)
    rng = np.random.default_rng(0)
    label = np.arange(300) % 2
    data = {
        "age": rng.normal(5.0 * label, 1.0),
        "visits": rng.poisson(1.0 + 5.0 * label),
        "calls": rng.poisson(3.0, 300),
    }
    X, values = frames.DataFrame(data), np.column_stack(list(data.values()))
    named = [("poisson", ["calls", "visits"]), ("gaussian", "age")]
    model = quiet_fit(Mixture(2, family=named, random_state=0), X)
    numbered = quiet_fit(Mixture(2, family=[("poisson", [2, 1]), ("gaussian", [0])], random_state=0), values)
    np.testing.assert_array_equal(model.predict_proba(X), numbered.predict_proba(values))
    np.testing.assert_array_equal(model.means_, numbered.means_)
    assert model.score(X) == numbered.score(values)
    assert model.sample(5)[0].shape == (5, 3)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(unmix.load(tmp_path / "m").predict(X), model.predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several k some do not converge
        answer = unmix.select(Mixture(family=named), X, range(1, 4), random_state=0)
    assert answer.k == 2
    assert [columns for _, columns in answer.model.family] == [[2, 1], [0]]
    model.partial_fit(X)
    with pytest.raises(ValueError, match=r"column 'wage', but X has the columns \['age', 'visits', 'calls'\]"):
        Mixture(2, family=[("poisson", ["calls", "visits"]), ("gaussian", "wage")]).fit(X)
    with pytest.raises(ValueError, match=r"column 'calls', but X has no column names: give column numbers"):
        Mixture(2, family=named).fit(values)
    with pytest.raises(ValueError, match=r"names the column 0\.5"):
        Mixture(2, family=[("gaussian", [0.5, 1, 2])]).fit(values)


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        (
            "log_density",
            lambda a: a[:, :1],
            r"`log_density` of the family Geometric\(\) gave .* \(100, 1\): .* \(100, 3\)",
        ),
        ("log_density", lambda a: a.T, r"gave the shape \(3, 100\): it should be \(100, 3\)"),
        ("sample", lambda a: a[:, :1], r"`sample` of the family .* gave the shape \(\d+, 1\): it should be \(\d+, 2\)"),
        ("mean", lambda a: np.zeros(7), r"`mean` of the family .* gave the shape \(7,\): it should be \(3, 2\)"),
    ],
)
def test_wrong_shapes_of_a_family_of_ones_own_are_named(method, wrong, message):
    class Wrong(Geometric):
        def __repr__(self):
            return "Geometric()"

    setattr(Wrong, method, lambda self, *args: wrong(getattr(Geometric, method)(self, *args)))
    X = np.random.default_rng(0).geometric(0.3, size=(100, 2)) - 1.0
    with pytest.raises(ValueError, match=message):
        quiet_fit(Mixture(3, family=Wrong(), random_state=0), X).sample(50)


@pytest.mark.parametrize("scale", [1e152, 1e160, 1e307, 1e-160])
@pytest.mark.parametrize("family", ["gaussian", "student", "exponential"])
def test_numbers_without_squares_are_refused(family, scale):
    X = scale * np.abs(np.random.default_rng(0).normal(size=(50, 3)))
    with pytest.raises(ValueError, match=r"X reaches .* squares of that are beyond float64: multiply X by 1e"):
        Mixture(2, family=family, random_state=0).fit(X)


def refit(model, family, K, X):
    """What `select` calls `neighbour` with: an unfitted model of K components, and the fit of another number."""
    stats = model.local(model.parts, Block(X)).stats
    fit = Fit(model.parts, None, 0.0, 0.0, model.shape, model.trace_, model.result_, "", stats, model.stages_)
    return Mixture(K, family=family, random_state=0).at(model.shape), fit


KINDS = [*FAMILIES, [("poisson", [0, 2, 4]), (Categorical(), [1, 3, 5])]]


@pytest.mark.parametrize("family", KINDS, ids=str)
def test_merge_joins_what_was_one(family):
    X, _ = planted(family if isinstance(family, str) else "categorical", np.random.default_rng(0))
    three = quiet_fit(Mixture(3, family=family, random_state=0), X)
    other, fit = refit(three, family, 3, X)
    fs, who = [f for f, _ in three._groups()], [0, 1, 2, 1]  # component 1 in two pieces
    share = np.array([1.0, 0.3, 1.0, 0.7])
    U = fit.U._replace(
        weights=fit.U.weights[who] * share,
        families=tuple(f.take(P, who) for f, P in zip(fs, fit.U.families, strict=True)),
    )
    stats = three.local(U, Block(X)).stats
    got = other.neighbour(fit._replace(U=U, stats=stats), False, np.random.default_rng(0))
    order = got.weights.argsort()
    want = other.update(fit.U, fit.stats)
    np.testing.assert_allclose(got.weights[order], np.sort(want.weights), rtol=1e-10)
    for f, P, Q in zip(fs, got.families, want.families, strict=True):
        for name, value in f.public(Q).items():
            np.testing.assert_allclose(f.public(P)[name][order], value[want.weights.argsort()], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("family", KINDS, ids=str)
def test_grown_parts_are_those_of_one_component_more(family):
    X, _ = planted(family if isinstance(family, str) else "categorical", np.random.default_rng(0))
    two = quiet_fit(Mixture(2, family=family, random_state=0), X)
    other, fit = refit(two, family, 3, X)
    U = other.neighbour(fit, True, np.random.default_rng(0))
    j = int(fit.U.weights.argmax())
    halves = np.array([U.weights[2] if k == j else 0.0 for k in (0, 1)])
    np.testing.assert_allclose(U.weights[:2] + halves, fit.stats.N / len(X), rtol=1e-10)
    assert U.weights.sum() == pytest.approx(1.0)
    before = other.local(U, Block(X))
    assert before.z.shape == (len(X), 3)
    after = other.local(other.update(U, before.stats), Block(X))
    assert after.loss < before.loss - 1.0  # not the saddle of two equal halves
    for f, P, Q in zip([f for f, _ in two._groups()], U.families, fit.U.families, strict=True):
        for name, value in f.public(P).items():
            np.testing.assert_allclose(value[1 - j], f.public(Q)[name][1 - j], atol=0.1, rtol=0.1)


@pytest.mark.parametrize(("family", "seed"), [("bernoulli", 1), ("poisson", 0)])
def test_select_gains_by_cutting_and_joining(family, seed, monkeypatch):
    rng, K, ks = np.random.default_rng(seed), 6, range(1, 9)
    label = np.arange(1200) % K
    if family == "bernoulli":
        p = rng.beta(0.6, 0.6, (K, 16))
        X = (rng.random((1200, 16)) < p[label]).astype(float)
    else:
        X = rng.poisson(rng.uniform(1.0, 9.0, (K, 8))[label]).astype(float)

    def objectives():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of several k some do not converge
            answer = unmix.select(Mixture(family=family), X, ks, "bic", random_state=seed)
        return answer.columns["objective"], answer.k

    warm, k = objectives()
    monkeypatch.setattr(Mixture, "neighbour", unmix.model.Model.neighbour)
    fresh, _ = objectives()
    assert (warm <= fresh + 1e-12).all()
    assert fresh[K - 1] - warm[K - 1] > 0.1  # one start missed a part of those that were planted
    assert k == K


def test_components_of_a_family_of_ones_own_are_cut_only_where_it_says_how():
    X = np.random.default_rng(0).geometric(np.repeat([[0.5, 0.1], [0.05, 0.6]], 200, axis=0)) - 1.0

    class Declared(Geometric):
        shared = ()

    for family, some in ((Geometric(), False), (Declared(), True)):
        model = quiet_fit(Mixture(2, family=family, random_state=0), X)
        other, fit = refit(model, family, 3, X)
        assert (other.neighbour(fit, True, np.random.default_rng(0)) is not None) == some
        assert (other.neighbour(fit, False, np.random.default_rng(0)) is not None) == some


def test_parameters_are_counted():
    rng = np.random.default_rng(0)
    wanted = {
        "gaussian": 36,
        "bernoulli": 18,
        "categorical": 54,
        "multinomial": 15,
        "poisson": 18,
        "exponential": 18,
        "student": 39,
    }
    for family, n in wanted.items():
        assert quiet_fit(Mixture(3, family=family, random_state=0), planted(family, rng)[0]).n_parameters() == n + 2


def test_the_number_of_components_is_found():
    X, _ = planted("poisson", np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several k some do not converge
        models = [Mixture(k, family="poisson", n_init=3, random_state=0).fit(X) for k in (1, 2, 3, 4, 5)]
    assert np.argmin([m.bic(X) for m in models]) == np.argmin([m.icl(X) for m in models]) == 2


@pytest.mark.parametrize(
    ("family", "cell", "message"),
    [
        ("bernoulli", 0.5, r"column 2 holds 0\.5, but the family Bernoulli needs 0 or 1"),
        ("poisson", -1.0, r"holds -1, but the family Poisson needs whole numbers"),
        ("poisson", 1.5, r"holds 1\.5, but the family Poisson"),
        ("multinomial", 1.5, r"holds 1\.5, but the family Multinomial"),
        ("multinomial", np.nan, r"missing cell in row 63 of a block, and the family Multinomial needs every cell"),
        ("categorical", -1.0, r"needs levels 0, 1, 2"),
        ("exponential", -0.1, r"needs numbers of at least 0"),
        ("gamma", 1.0, r"'family' parameter of Mixture"),
        ([("poisson", [0, 1])], 1.0, r"names column 2 0 times: name each column once"),
        ([("poisson", [0, 1, 2, 3, 4, 5]), ("gaussian", [5])], 1.0, r"names column 5 2 times"),
        ([("poisson", [0, 9])], 1.0, r"X has the columns 0 to 5"),
        ([("gamma", [0])], 1.0, r"family 'gamma': give 'auto', one of gaussian"),
        (["poisson"], 1.0, r"give pairs such as"),
    ],
)
def test_wrong_cells_and_families_are_named(family, cell, message):
    X, _ = planted("bernoulli", np.random.default_rng(0))
    X[7, 2] = cell
    with pytest.raises(ValueError, match=message):
        Mixture(2, family=family).fit(X)


def test_a_level_that_the_start_did_not_see():
    X, _ = planted("categorical", np.random.default_rng(0))
    model = quiet_fit(Mixture(3, family="categorical", random_state=0), X)
    X[3, 1] = 7
    with pytest.raises(ValueError, match=r"level 7, but only 4 levels are known: give Categorical\(levels=8\)"):
        model.predict(X)
    wide = quiet_fit(Mixture(3, family=Categorical(levels=9), random_state=0), X)
    assert wide.parameters_["probabilities"].shape == (3, 6, 9)
    assert np.isfinite(wide.score_samples(np.full((1, 6), 8.0))).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "case", ["equal rows", "zeros", "as many as rows", "one row", "constant column", "far", "mostly missing"]
)
def test_hostile_data_never_crash(family, case):
    rng = np.random.default_rng(0)
    X, _ = planted(family, rng)
    X, K = X[:40], 3
    if case == "equal rows":
        X = np.tile(X[:1], (20, 1))
    elif case == "zeros":
        X = np.zeros((20, 4))
    elif case == "as many as rows":
        X, K = X[:8], 8
    elif case == "one row":
        X, K = X[:1], 1
    elif case == "constant column":
        X[:, 1] = 1.0
    elif case == "far" and family not in ("bernoulli", "categorical"):
        X[0] = 1e6
    elif case == "mostly missing" and family != "multinomial":
        X = holed(X, rng, 0.6)
        X[2] = np.nan
    model = quiet_fit(Mixture(K, family=family, random_state=0), X)
    assert model.result_ in ("converged", "max_iter")
    assert np.isfinite(model.lower_bound_)
    for value in model.parameters_.values():
        assert np.isfinite(value).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-9)


def test_components_without_width_are_reported():
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 3)), 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"components \[.*\] have a variance at its floor"):
        Mixture(2, random_state=0, max_iter=500).fit(X)
