"""How many parts: criteria against their definitions, choices on planted data, and "none" where there are none."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import unmix
from unmix.engine.sources import as_source
from unmix.model import fit_together
from unmix.selection.asked import size_of
from unmix.selection.criteria import column_means
from unmix.selection.likeness import Likeness, one_mode
from unmix.selection.question import Question


def blobs(k, n=300, d=2, apart=8.0, seed=0):
    rng = np.random.default_rng(seed)
    places = [(0, 0), (1, 0), (0.5, 0.9), (1.5, 0.9), (0, 1.8), (1, 1.8)]  # no three of them in a line
    centres = np.array([[apart * a, apart * b] + [0.0] * (d - 2) for a, b in places[:k]])
    label = np.arange(n) % k
    return centres[label] + rng.standard_normal((n, d)), label


def question(model, X):
    return Question(model, size_of(model), [1, 2], as_source(X), None, 0, 5, 20)


def quietly(f, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many k some do not converge; what is said of them is tested by itself
        return f(*args, **kwargs)


# ---------------------------------------------------------------- fits that share passes


@pytest.mark.parametrize("cls", [unmix.KMeans, unmix.GaussianMixture, unmix.NMF, unmix.FactorAnalysis])
def test_fits_that_share_passes_have_the_same_bits(cls):
    X = np.abs(blobs(3, d=6)[0])
    alone = [cls(k, random_state=0) for k in (1, 2, 4)]
    together = [clone(m) for m in alone]
    for m in alone:
        quietly(m.fit, X)
    quietly(fit_together, together, X, [None] * 3, [0] * 3)
    for a, b in zip(alone, together, strict=True):
        assert [s.objective for s in a.trace_] == [s.objective for s in b.trace_]
        assert np.array_equal(a.transform(X), b.transform(X))


def test_fits_that_share_passes_read_each_pass_once():
    X = blobs(3)[0]
    reads = []

    def stream():
        reads.append(1)
        yield from np.array_split(X, 7)

    models = [unmix.KMeans(k, random_state=0, tol=0, max_iter=4) for k in (2, 3, 4, 5)]
    quietly(fit_together, models, stream, [None] * 4, [0] * 4)
    many = len(reads)
    reads.clear()
    quietly(unmix.KMeans(2, random_state=0, tol=0, max_iter=4).fit, stream)
    assert many <= len(reads) + 4 * 2  # each model draws its own sample; the passes are shared


def test_weights_of_fits_that_share_passes_are_their_own():
    X, label = blobs(2)
    weights = [np.where(label == i, 1.0, 0.0) for i in range(2)]
    models = [unmix.GaussianMixture(1, random_state=0) for _ in range(2)]
    quietly(fit_together, models, X, weights, [0, 0])
    for i, m in enumerate(models):
        np.testing.assert_allclose(m.means_[0], X[label == i].mean(axis=0), rtol=1e-9)


# ---------------------------------------------------------------- criteria


def test_information_criteria_are_scikit_learns():
    X = load_iris().data
    answer = quietly(
        unmix.select, unmix.GaussianMixture(tol=1e-8, max_iter=500), X, [1, 2, 3], ["bic", "aic"], random_state=0
    )
    for i, k in enumerate((1, 2, 3)):
        m = unmix.GaussianMixture(k)
        peer = Peer(k, tol=1e-10, max_iter=1000, n_init=10, random_state=0).fit(X)
        assert answer.columns["bic"][i] <= peer.bic(X) + 1e-3 * abs(peer.bic(X)), m
        assert answer.columns["bic"][i] - answer.columns["aic"][i] == pytest.approx(peer.bic(X) - peer.aic(X), rel=1e-9)


def test_silhouette_is_scikit_learns():
    X, _ = blobs(3)
    answer = quietly(unmix.select, unmix.KMeans(), X, [2, 3, 4], "silhouette", random_state=0)
    truth = silhouette_score(X, unmix.KMeans(3, random_state=0).fit_predict(X))
    assert answer.columns["silhouette"][1] == pytest.approx(truth, abs=1e-9)
    assert answer.k == 3


def test_integrated_likelihood_adds_the_entropy():
    X, _ = blobs(2, apart=3.0)
    answer = quietly(unmix.select, unmix.GaussianMixture(), X, [1, 2], ["bic", "icl"], random_state=0)
    z = unmix.GaussianMixture(2, random_state=0).fit(X).predict_proba(X)
    entropy = -(z * np.log(np.maximum(z, 1e-300))).sum()
    both = answer.columns["icl"] - answer.columns["bic"]
    assert both[0] == pytest.approx(0, abs=1e-9)
    assert both[1] == pytest.approx(2 * entropy, rel=0.05)


def test_held_out_likelihood_is_that_of_rows_not_seen():
    X, _ = blobs(3)
    answer = quietly(unmix.select, unmix.GaussianMixture(), X, range(1, 6), "heldout", random_state=0)
    assert answer.k == 3
    assert (np.diff(answer.columns["heldout"][:3]) < 0).all()
    assert answer.columns["heldout_se"].all()


@pytest.mark.parametrize("make", [unmix.PCA, unmix.NMF])
def test_held_out_entries_find_the_rank(make):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 1.0, (120, 3)) @ rng.gamma(1.0, 1.0, (3, 15)) + 0.2 * rng.random((120, 15))
    answer = quietly(unmix.select, make(random_state=0), X, range(1, 6), "entries", random_state=0)
    assert answer.k == 3


def test_columns_without_a_cell_are_guessed_by_the_mean_of_all():
    x = np.array([[4.0, np.nan, 1.0], [2.0, np.nan, np.nan]])
    np.testing.assert_allclose(column_means(x, np.array([1.0, 3.0])), [2.5, 11 / 5, 1.0])


def test_held_out_entries_rise_again():
    X = np.random.default_rng(0).standard_normal((60, 8))
    answer = quietly(unmix.select, unmix.PCA(random_state=0), X, range(1, 6), "entries", random_state=0)
    assert answer.k == 1
    assert answer.columns["entries"][-1] > answer.columns["entries"][0]


def test_topics_by_held_out_words():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.05), 4)
    X = sp.csr_array([rng.multinomial(80, rng.dirichlet(np.full(4, 0.2)) @ topics) for _ in range(300)]).astype(float)
    answer = quietly(unmix.select, unmix.LatentDirichletAllocation(max_iter=30), X, [1, 2, 4, 8], random_state=0)
    assert answer.criterion == "heldout"
    assert answer.k == 4


def test_gap_chooses_the_number_of_blobs_and_one_for_noise():
    X, _ = blobs(4)
    assert quietly(unmix.select, unmix.KMeans(n_init=3), X, range(1, 8), "gap", random_state=0).k == 4
    noise = np.random.default_rng(0).random((300, 2))
    assert quietly(unmix.select, unmix.KMeans(n_init=3), noise, range(1, 8), "gap", random_state=0).k == 1


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_likenesses_keep_mean_axes_and_holes(holes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3)) @ rng.standard_normal((3, 3)) + 5
    seen = np.where(rng.random(X.shape) < holes, np.nan, X)
    for kind in ("uniform", "gaussian"):
        Y = Likeness(question(unmix.KMeans(), seen), seen, None).draw(kind, rng)
        assert np.array_equal(np.isnan(Y), np.isnan(seen))
        Y = np.ma.cov(np.ma.masked_invalid(Y), rowvar=False).filled(0)
        _, axes = np.linalg.eigh(np.cov(X.T))
        turned = axes.T @ Y @ axes
        off = abs(turned - np.diag(np.diag(turned))).max()
        assert off < 0.15 * turned.max()
    np.testing.assert_allclose(Y, np.cov(X.T), rtol=0.2, atol=0.2)  # the Gaussian's


def test_a_density_of_one_mode():
    rng = np.random.default_rng(0)
    v = rng.exponential(size=4000)
    share, value = one_mode(v, np.ones(len(v)))
    np.testing.assert_allclose(np.interp([0.1, 0.5, 0.9], share, value), -np.log([0.9, 0.5, 0.1]), rtol=0.1)
    density = np.diff(share) / np.diff(value)
    assert (np.diff(density) <= 1e-9).sum() >= len(density) - 4
    two = np.concatenate([rng.normal(-5, 1, 2000), rng.normal(5, 1, 2000)])
    share, value = one_mode(two, np.ones(len(two)))
    density = np.diff(share) / np.diff(value)
    top = density.argmax()
    assert (np.diff(density[: top + 1]) >= -1e-9).all()
    assert (np.diff(density[top:]) <= 1e-9).all()
    assert np.interp(0.5, value, share) - np.interp(-0.5, value, share) > 0.03  # the valley is filled
    weighted = one_mode(two, np.where(two < 0, 1.0, 1e-9))
    assert np.interp(0.95, *weighted) < 0


def test_likenesses_keep_to_what_a_column_can_hold():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 300), rng.poisson(50, 300), rng.random(300)]).astype(float)
    X[:30, 0] = np.nan
    Y = Likeness(question(unmix.KMeans(), X), X, None).draw("gaussian", rng)
    assert np.array_equal(np.isnan(Y), np.isnan(X))
    assert np.array_equal(np.sort(Y[30:, 0]), np.sort(X[30:, 0]))
    assert (Y[:, 1] == np.round(Y[:, 1])).all()
    assert len(np.unique(Y[:, 2])) == 300
    w = np.where(X[:, 1] > 50, 1.0, 0.0)
    Y = Likeness(question(unmix.KMeans(), X), X[w > 0], w[w > 0]).draw("box", rng)
    assert (Y[:, 1] > 50).all()


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize(
    "model", [unmix.KMeans(n_init=5), unmix.GaussianMixture(), unmix.GaussianMixture(covariance_type="diag")]
)
def test_the_number_of_planted_groups(model, k):
    X, _ = blobs(k, n=100 * k)
    answer = quietly(unmix.select, model, X, range(1, 10), random_state=0)
    assert answer.k == k, str(answer)
    assert len(answer.model.predict(X)) == len(X)
    assert "comes next" in answer.reason


@pytest.mark.parametrize("model", [unmix.KMeans(), unmix.GaussianMixture()])
@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_no_structure(model, kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3)) * [1, 2, 5] if kind == "gaussian" else rng.random((300, 3)) * [1, 2, 5]
    answer = quietly(unmix.select, model, X, range(1, 6), random_state=0)
    assert answer.k == 1
    assert "no structure" in str(answer)
    assert (answer.model.predict(X) == 0).all()


@pytest.mark.parametrize(
    "model", [unmix.KMeans(metric="hamming", n_init=3), unmix.Mixture(family="bernoulli", n_init=3)]
)
def test_groups_of_yes_and_no(model):
    rng = np.random.default_rng(0)
    p = np.repeat([[0.1] * 12, [0.9] * 6 + [0.1] * 6, [0.1] * 6 + [0.9] * 6], 120, axis=0)
    X = (rng.random(p.shape) < p).astype(float)
    assert quietly(unmix.select, model, X, range(1, 6), random_state=0).k == 3
    noise = (rng.random((360, 12)) < 0.3).astype(float)
    assert quietly(unmix.select, model, noise, range(1, 5), random_state=0).k == 1


def test_a_component_without_width_is_not_chosen():
    X = load_iris().data  # petal widths are rounded: a component on one value has any likelihood
    answer = quietly(unmix.select, unmix.GaussianMixture(), X, range(1, 9), random_state=0)
    assert answer.k == 2
    assert not answer.model.notes(answer.model._parts_)


def test_missing_cells_and_weights():
    X, label = blobs(3, n=600)
    w = np.where(label == 2, 0.0, 1.0)
    assert quietly(unmix.select, unmix.GaussianMixture(), X, range(1, 5), sample_weight=w, random_state=0).k == 2
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    assert quietly(unmix.select, unmix.GaussianMixture(), X, range(1, 6), random_state=0).k == 3


def test_disagreement_is_said():
    rng = np.random.default_rng(3)
    tight = [(x + a, y + b) for x, y in ((0, 0), (40, 0), (0, 40)) for a, b in ((0, 0), (3, 0), (0, 3))]
    X = np.concatenate([rng.standard_normal((60, 2)) * 0.2 + c for c in tight])  # three groups of three
    answer = quietly(unmix.select, unmix.KMeans(n_init=5), X, range(1, 11), ["gap", "silhouette"], random_state=0)
    assert answer.votes == {"gap": 9, "silhouette": 3}
    assert answer.k is None
    assert "disagree" in answer.reason
    assert answer.model is None
    with pytest.raises(ValueError, match="no k was chosen: The criteria disagree"):
        quietly(unmix.Select(unmix.KMeans(n_init=5), range(1, 11), ["gap", "silhouette"], random_state=0).fit, X)


# ---------------------------------------------------------------- every model, every kind of data


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("make", [unmix.PCA, unmix.FactorAnalysis])
def test_factors_by_likelihood_whatever_the_unit(make, scale):
    rng = np.random.default_rng(0)
    X = scale * (3 * rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(300, 8)))
    answer = quietly(unmix.select, make(), X, random_state=0)  # "auto" asks for no more than 8 columns allow
    assert answer.k == 2, str(answer)
    assert "Not possible" not in answer.reason
    assert "Not possible: k = 9, 10" in quietly(unmix.select, make(), X, range(1, 11), random_state=0).reason
    nll = quietly(unmix.select, make(), X, range(1, 5), "nll", random_state=0)
    assert nll.columns["nll"][2] == pytest.approx(-make(3).fit(X).score(X), rel=1e-3, abs=1e-3)
    assert nll.k == 2


@pytest.mark.parametrize("criterion", ["silhouette", "gap", "stability"])
def test_rows_of_no_weight_are_no_rows(criterion):
    X, _ = blobs(4, d=3)
    rng = np.random.default_rng(0)
    more = np.vstack([X, rng.uniform(-30, 30, (600, 3))])
    w = np.r_[np.ones(300), np.zeros(600)]
    answer = quietly(
        unmix.select, unmix.KMeans(n_init=3), more, range(1, 6), criterion, sample_weight=w, random_state=0
    )
    assert answer.k == 4, str(answer)
    noise = np.vstack([rng.normal(size=(300, 3)), X])
    answer = quietly(unmix.select, unmix.KMeans(), noise, range(1, 6), sample_weight=w[:600], random_state=0)
    assert answer.k == 1, str(answer)


def test_weights_that_are_shares():
    X, _ = blobs(3)
    w = np.full(len(X), 0.01)
    given = {"sample_weight": w, "random_state": 0}
    assert quietly(unmix.select, unmix.KMeans(n_init=3), X, range(1, 6), "silhouette", **given).k == 3


@pytest.mark.parametrize("model", [unmix.KMeans(n_init=2), unmix.GaussianMixture(covariance_type="spherical")])
def test_missing_cells_make_no_groups_and_hide_none(model):
    ones, twos = 0, 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        holes = rng.random((200, 4)) < 0.4
        noise = rng.random((200, 4)) if seed % 2 else rng.normal(size=(200, 4))
        ones += quietly(unmix.select, model, np.where(holes, np.nan, noise), range(1, 5), random_state=0).k == 1
        X = rng.normal(size=(200, 4)) + 3.5 * (np.arange(200) % 2)[:, None]
        twos += quietly(unmix.select, model, np.where(holes, np.nan, X), range(1, 5), random_state=0).k == 2
    assert ones == 5
    assert twos >= 4


@pytest.mark.parametrize("kind", ["exponential", "lognormal", "standard_t"])
def test_a_skewed_or_wide_cloud_is_one(kind):
    ones = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(4, size=(300, 2)) if kind == "standard_t" else getattr(rng, kind)(size=(300, 2))
        ones += quietly(unmix.select, unmix.KMeans(), X, range(1, 7), random_state=0).k == 1
    assert ones >= 5


@pytest.mark.parametrize("model", [unmix.KMeans(n_init=3), unmix.KMedoids(n_init=3)])
def test_columns_that_follow_from_others_change_nothing(model):
    X, _ = blobs(3, n=150)
    for more in (X.sum(axis=1), X, np.full((150, 2), 0.5), np.ones(150)):
        answer = quietly(unmix.select, model, np.column_stack([X, more]), range(1, 6), random_state=0)
        assert (answer.k, answer.criterion) == (3, "icl"), str(answer)


def test_as_many_groups_as_different_rows():
    X = np.array([[0.5, 0.5], [8.5, 0.5], [0.5, 8.5]])[np.arange(150) % 3]
    for model in (unmix.KMeans(n_init=3), unmix.KMedoids(n_init=3)):
        assert quietly(unmix.select, model, X, range(1, 4), "silhouette", random_state=0).k == 3
    answer = quietly(unmix.select, unmix.GaussianMixture(), X, range(1, 4), random_state=0)
    assert answer.k == 3  # a component without width has any likelihood, unless it is given some
    assert "reg_covar=0.14 instead of 1e-06, because components collapsed (at k = 2, 3)" in answer.reason


def test_one_factor_is_structure():
    rng = np.random.default_rng(0)
    X = np.outer(rng.gamma(2, size=100), rng.gamma(2, size=8)) + 0.01 * rng.random((100, 8))
    answer = quietly(unmix.select, unmix.NMF(), X, range(1, 4), random_state=0)
    assert answer.title == "k = 1"
    assert "no structure" not in answer.reason


def test_starts_that_were_given_for_one_k():
    X, label = blobs(3)
    centres = np.array([X[label == i].mean(axis=0) for i in range(3)])
    for model in (
        unmix.KMeans(init=centres),
        unmix.GaussianMixture(means_init=centres),
        unmix.KMedoids(init=[0, 1, 2]),
    ):
        answer = quietly(unmix.select, model, X, [3], random_state=0)
        assert answer.k == 3


def test_a_column_that_few_rows_have():
    X, _ = blobs(3, n=6000)
    X = np.column_stack([X, np.full(6000, np.nan)])
    X[[10, 5990], 2] = 1.5, 2.5
    for model in (unmix.KMeans(), unmix.GaussianMixture(covariance_type="diag", max_iter=20)):
        assert quietly(unmix.select, model, X, range(1, 5), random_state=0).k is not None


def test_frames_are_quiet():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(blobs(3)[0], columns=["a", "b"])
    w = np.r_[0.0, np.ones(len(X) - 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for criterion in ("icl", "silhouette", "heldout"):
            model = unmix.KMeans(n_init=3) if criterion != "heldout" else unmix.GaussianMixture(max_iter=500)
            assert unmix.select(model, X, range(1, 5), criterion, sample_weight=w, random_state=0).k == 3


def test_held_out_rows_are_among_those_that_count():
    X, _ = blobs(2, n=150)
    w = np.r_[np.ones(20), np.zeros(130)]
    answer = quietly(unmix.select, unmix.GaussianMixture(), X, [1, 2], "heldout", sample_weight=w, random_state=0)
    assert np.isfinite(answer.columns["heldout"]).all()


def test_shares_are_refused():
    X, _ = blobs(3)
    with pytest.raises(ValueError, match="sample_weight sums to 1, as if there were that many rows"):
        unmix.select(unmix.KMeans(), X, [1, 2], sample_weight=np.full(len(X), 1 / len(X)))


def test_mixtures_of_mixed_columns():
    rng = np.random.default_rng(0)
    group = np.arange(300) % 2
    X = np.column_stack([rng.poisson(5 + 10 * group), rng.normal(size=300) + 6 * group]).astype(float)
    model = unmix.Mixture(family=[("poisson", [0]), ("gaussian", [1])])
    assert quietly(unmix.select, model, X, range(1, 5), random_state=0).k == 2
    X = np.column_stack([rng.poisson(5, 300), rng.normal(size=300)]).astype(float)
    assert quietly(unmix.select, model, X, range(1, 5), random_state=0).k == 1
    yes = (rng.random((300, 8)) < np.where(group, 0.9, 0.1)[:, None]).astype(float)
    yes[rng.random(yes.shape) < 0.2] = np.nan
    assert quietly(unmix.select, unmix.Mixture(family="bernoulli"), yes, range(1, 5), random_state=0).k == 2
    one = rng.poisson(np.where(group, 3, 20))[:, None].astype(float)
    assert quietly(unmix.select, unmix.Mixture(family="poisson"), one, range(1, 5), random_state=0).k == 2


def test_silhouettes_are_by_the_models_distance():
    rng = np.random.default_rng(0)
    ways = np.eye(3)[np.arange(300) % 3] + 0.05 * rng.random((300, 3))
    X = ways * rng.lognormal(0, 1.5, (300, 1))
    answer = quietly(unmix.select, unmix.KMeans(metric="cosine", n_init=3), X, range(1, 6), random_state=0)
    assert answer.k == 3, str(answer)
    labels = unmix.KMeans(3, metric="cosine", n_init=3, random_state=0).fit_predict(X)
    assert answer.columns["silhouette"][2] == pytest.approx(silhouette_score(X, labels, metric="cosine"), abs=1e-6)
    X, _ = blobs(3)
    K = X @ X.T
    own = np.diagonal(K)
    D = np.sqrt(np.maximum(own[:, None] + own - 2 * K, 0))
    plain = quietly(unmix.select, unmix.KMedoids(n_init=3), X, range(2, 6), "silhouette", random_state=0)
    given = {
        unmix.KMedoids(metric="precomputed", n_init=3): D,
        unmix.KernelKMeans(kernel="precomputed", n_init=5): K,
        unmix.KernelKMeans(kernel="linear", n_init=5): X,
    }
    for model, rows in given.items():
        answer = quietly(unmix.select, model, rows, range(2, 6), "silhouette", random_state=0)
        assert answer.k == 3
        assert answer.columns["silhouette"][1] == pytest.approx(plain.columns["silhouette"][1], abs=1e-6)


def test_rounded_rows_have_no_more_groups():
    rng = np.random.default_rng(0)
    X = np.round(20 * (3 * rng.normal(size=(200, 1)) + 0.5 * rng.normal(size=(200, 3))))
    assert quietly(unmix.select, unmix.KMeans(), X, range(1, 5), random_state=0).k == 1


@pytest.mark.parametrize(
    "model",
    [
        unmix.KMeans(max_size=120, n_init=3),
        unmix.SoftKMeans(beta=5.0, n_init=3),
        unmix.KMedoids(n_init=3),
        unmix.KernelKMeans(gamma=0.02, n_init=10),
        unmix.BayesianGaussianMixture(n_init=3),
        unmix.Mixture(family="gaussian", n_init=3),
    ],
)
def test_every_clustering_finds_the_groups(model):
    X, _ = blobs(3)
    answer = quietly(unmix.select, model, X, range(1, 6), random_state=0)
    assert answer.k == 3, str(answer)


@pytest.mark.parametrize("model", [unmix.KMeans(n_init=3), unmix.GaussianMixture(), unmix.Mixture(family="gaussian")])
def test_held_out_entries_of_clusterings(model):
    X, _ = blobs(3, d=4)
    X = X @ np.random.default_rng(0).normal(size=(4, 4))
    answer = quietly(unmix.select, model, X, range(1, 5), "entries", random_state=0)
    assert answer.columns["entries"][2] < 0.5 * answer.columns["entries"][0]


def test_sparse_rows():
    X, _ = blobs(3)
    X = np.abs(X)
    for criterion in ("silhouette", "gap"):
        rows = sp.csr_array(X)
        assert quietly(unmix.select, unmix.KMeans(n_init=3), rows, range(1, 6), criterion, random_state=0).k == 3


def test_the_seed_of_the_model_counts():
    X = np.random.default_rng(0).normal(size=(200, 5))
    first, again = (quietly(unmix.select, unmix.KMeans(random_state=3), X, range(1, 8)) for _ in range(2))
    assert np.array_equal(first.columns["objective"], again.columns["objective"])


def test_fits_that_collapsed_are_named():
    X, _ = blobs(2)
    for model in (unmix.GaussianMixture(reg_covar=0.0), unmix.GaussianMixture(reg_covar=1e-30)):  # somebody's choice
        answer = quietly(unmix.select, model, np.repeat(X[:4], 50, axis=0), range(2, 5), random_state=0)
        assert "collapsed in every fit, so do not trust this" in answer.reason
    X = np.vstack([X, np.repeat(X[:1], 50, axis=0)])
    answer = quietly(unmix.select, unmix.GaussianMixture(n_init=3), X, range(1, 6), random_state=0)
    assert "because components collapsed" in answer.reason  # fitted again with some width, so nothing is left out
    assert answer.columns["sound"].all()
    model = unmix.GaussianMixture(n_init=3, reg_covar=1e-7)  # somebody's choice
    answer = quietly(unmix.select, model, X, range(1, 6), random_state=0)
    assert "Left out, because something collapsed: k = " in answer.reason
    assert answer.reason.startswith("The best value is at k = ")
    assert answer.columns["sound"][answer.k - 1]


def test_the_estimator_in_a_pipeline():
    X, _ = blobs(3)
    pipe = make_pipeline(StandardScaler(), unmix.Select(unmix.KMeans(n_init=3), range(1, 7), random_state=0))
    found = quietly(pipe.fit_predict, X)
    assert pipe[-1].k_ == 3
    assert len(np.unique(found)) == 3
    assert pipe.transform(X).shape == (len(X), 3)
    frame = clone(pipe).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["kmeans0", "kmeans1", "kmeans2"]
    again = unmix.Select(unmix.GaussianMixture(), range(1, 5), random_state=0)
    assert not hasattr(pipe[-1], "predict_proba")
    assert quietly(again.fit, X).predict_proba(X).shape == (len(X), again.k_)
    assert again.score(X) == pytest.approx(again.score_samples(X).mean())
    np.testing.assert_allclose(
        again.inverse_transform(again.transform(X)), again.model_.predict_proba(X) @ again.model_.means_
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).predict(X), again.labels_)
    again = clone(pipe).set_params(select__k=[2])
    quietly(again.fit, X)
    assert again[-1].k_ in (1, 2)


@parametrize_with_checks(
    [unmix.Select(m, range(1, 3), random_state=0) for m in (unmix.KMeans(n_init=1), unmix.GaussianMixture())],
)
@pytest.mark.filterwarnings("ignore")  # small random data: some k do not converge
def test_scikit_learns_checks(estimator, check, monkeypatch):
    monkeypatch.setattr("unmix.selection.likeness.LIKENESSES", 4)  # the protocol is checked here, not the answer
    check(estimator)


def test_a_person_sees_what_it_is_at(capfd, monkeypatch):
    monkeypatch.setattr("unmix.engine.callbacks.AFTER", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if this were a terminal
    X, _ = blobs(3)
    for progress in (False, True):
        with unmix.config(progress=progress):
            quietly(unmix.select, unmix.KMeans(), X, range(1, 6), "stability", random_state=0)
        said = capfd.readouterr().err
        assert ("select KMeans" in said) == progress
    assert "judging by stability" in said
    assert "Traceback" not in said


def test_table_and_pictures():
    X, _ = blobs(3)
    answer = quietly(unmix.select, unmix.KMeans(), X, range(1, 6), ["silhouette", "icl"], random_state=0)
    assert list(answer.table["k"]) == [1, 2, 3, 4, 5]
    assert np.isnan(answer.table["silhouette"][0])
    assert "k = 3" in answer._repr_html_()
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = answer.plot()
    assert [panel.get_title(loc="left") for panel in ax] == [
        "Silhouette: high is good",
        "Classification likelihood (ICL): low is good",
    ]
    np.testing.assert_allclose(ax[1].lines[0].get_ydata(), answer.columns["icl"])  # values as they are, in their unit
    assert answer.sentence in ax[0].figure.get_suptitle().replace("\n", " ")
    plt.close(ax[0].figure)
    _, given = plt.subplots()
    one = quietly(unmix.select, unmix.KMeans(), X, range(1, 6), random_state=0)
    assert one.plot(given) is given
    assert len(answer.plot(given)) == 2  # one below the other, within these
    with pytest.raises(ValueError, match="ax holds 3 axes: give 2, one for each of silhouette, icl"):
        answer.plot(plt.subplots(3)[1])
    plt.close("all")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"k": []}, "whole numbers"),
        ({"k": [0, 1]}, "at least 1"),
        ({"k": [500]}, "n_samples=50 should be >= n_clusters=500"),
        ({"criterion": "bic"}, "choose from icl, silhouette"),
        ({"criterion": "magic"}, "choose from"),
        ({"criterion": []}, "choose from"),
        ({"criterion": None}, "choose from"),
        ({"k": None}, "whole numbers"),
        ({"k": [1, 2.5]}, "whole numbers"),
        ({"folds": 1}, "folds=1: give a whole number of at least 2"),
        ({"folds": 51, "criterion": "entries"}, "folds=51: give a whole number of at least 2, at most 50"),
        ({"folds": 2.5}, "folds=2.5"),
        ({"references": 1}, "references=1"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        unmix.select(unmix.KMeans(), blobs(2, n=50)[0], **kwargs)


def test_a_model_without_k():
    with pytest.raises(ValueError, match="no k to choose"):
        unmix.select(StandardScaler(), np.eye(3))


def test_a_model_of_another_package():
    with pytest.raises(ValueError, match=r"sklearn.GaussianMixture: give a model of unmix"):
        unmix.select(Peer(), np.eye(3))


def test_warm_starts_never_make_it_worse():
    X = np.random.default_rng(0).standard_normal((500, 4))
    for model in (unmix.KMeans(), unmix.GaussianMixture(tol=1e-6)):
        answer = quietly(unmix.select, model, X, range(1, 8), random_state=0)
        assert (np.diff(answer.columns["objective"]) < 1e-9).all()


@pytest.mark.parametrize("model", [unmix.NMF(), unmix.PCA(), unmix.KMeans(), unmix.RobustPCA()])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_hidden_cells_of_columns_that_do_not_vary(model, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few different rows
        assert unmix.select(model, np.full((30, 4), value), range(1, 4), criterion="entries", random_state=0).k == 1


def test_a_start_that_names_rows_is_for_these_rows_alone():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = unmix.KMedoids(3, init=[0, 1, 59])
    assert unmix.select(model, X, [3], criterion="stability", random_state=0).k == 1
    with pytest.raises(ValueError, match=r"init of KMedoids refers to rows of X.*by name"):
        unmix.validate.stability(model, X)


# ---------------------------------------------------------------- how sure


def test_groups_that_are_far_apart_are_sure():
    X, _ = blobs(3)
    answer = quietly(unmix.select, unmix.KMeans(n_init=3), X, random_state=0)
    assert (answer.k, answer.range, answer.sureness) == (3, (3, 3), "sure")
    assert answer.sentence == "3 groups (sure)."
    assert answer.reason.startswith("The classification likelihood (ICL) chooses 3; k = ")
    assert "All of 10 halves of the rows agree." in answer.reason


def test_groups_that_overlap_are_not_sure():
    X, _ = blobs(3, n=150, apart=3.0)
    answers = [
        quietly(unmix.select, unmix.KMeans(n_init=3), blobs(3, 150, 2, 3.0, s)[0], random_state=0) for s in range(4)
    ]
    assert sum(a.sureness != "sure" for a in answers) >= 3
    assert all(a.range[0] <= a.k <= a.range[1] for a in answers)
    told = next(a for a in answers if a.range[0] < a.range[1])
    assert f"{told.range[0]} to {told.range[1]} are defensible" in str(told)
    assert (
        quietly(unmix.select, unmix.KMeans(n_init=3), X, random_state=0).reason == answers[0].reason
    )  # of the seed alone


def test_halves_are_counted_twice_and_share_no_row():
    from unmix.selection.halves import PAIRS, _split

    X, _ = blobs(2, n=51)
    pieces = _split(question(unmix.KMeans(), X), X)
    assert len(pieces) == 2 * PAIRS
    for a, b in zip(pieces[::2], pieces[1::2], strict=True):
        assert np.array_equal(np.sort(np.r_[a, b]), np.arange(51))


def test_the_range_widens_by_itself_and_an_explicit_one_does_not():
    grid = 8.0 * np.array([(i % 4 + 0.3 * (i // 4), i // 4) for i in range(14)])
    X = grid[np.arange(700) % 14] + np.random.default_rng(0).standard_normal((700, 2))
    answer = quietly(unmix.select, unmix.KMeans(n_init=5), X, random_state=0)
    assert answer.k == 14
    assert list(answer.columns["k"]) == list(range(1, 21))
    short = quietly(unmix.select, unmix.KMeans(n_init=5), X, range(1, 8), random_state=0)
    assert list(short.columns["k"]) == list(range(1, 8))
    if short.k == 7:
        assert "7 is the largest k that was tried" in short.reason
    assert short.sureness != "sure"
    few = quietly(unmix.select, unmix.KMeans(), X[:14], random_state=0)  # no more than n allows
    assert few.columns["k"].max() <= 14


def test_a_column_that_dominates_is_named():
    pd = pytest.importorskip("pandas")
    X, _ = blobs(3, d=3, apart=6.0)
    rows = pd.DataFrame(X, columns=["a", "b", "c"]).assign(pay=np.random.default_rng(0).normal(0, 1000, len(X)))
    answer = quietly(unmix.select, unmix.KMeans(n_init=3), rows, random_state=0)
    assert answer.reason.startswith("Column 'pay' holds nearly all of the variance")
    assert "With columns of equal variance the answer would be 3." in answer.reason
    assert answer.range[1] >= 3
    assert answer.sureness == "open"
    same = quietly(unmix.select, unmix.KMeans(n_init=3), X, random_state=0)
    assert "variance" not in same.reason


def test_one_hot_columns_are_one_category():
    from unmix.selection.columns import categories

    rng = np.random.default_rng(0)
    level, other = rng.integers(0, 3, 300), rng.integers(0, 2, 300)
    hot = (level[:, None] == np.arange(3)) * 1.7 - 0.4
    x = np.column_stack([hot, rng.normal(size=300), other, 1 - other, rng.integers(0, 5, 300)])
    found = categories(x)
    assert [c.columns for c in found] == [[0, 1, 2], [4, 5], [6]]
    for c, truth in zip(found, (level, other, x[:, 6]), strict=True):
        pairs = {(a, b) for a, b in zip(c.codes, truth, strict=True)}
        assert len(pairs) == len(np.unique(truth))  # one level for one
    x[:5, :3] = np.nan
    assert (categories(x)[0].codes[:5] == -1).all()


def test_shares_are_the_likelihood_of_a_category():
    from unmix.selection.clouds import shares

    codes, label = np.array([0, 0, 1, 1, 1, -1]), np.array([0, 0, 0, 1, 1, 1])
    log_l = 2 * np.log(2 / 3) + np.log(1 / 3)  # the second group has one level only
    assert shares(codes, np.ones(6), label) == pytest.approx(2 * np.log(6) - 2 * log_l)


def test_categories_make_no_groups_and_hide_none():
    rng = np.random.default_rng(0)
    hot = (rng.integers(0, 4, 400)[:, None] == np.arange(4)) / 0.87
    noise = np.hstack([rng.normal(size=(400, 3)), hot])
    assert quietly(unmix.select, unmix.KMeans(n_init=3), noise, random_state=0).k == 1
    X, label = blobs(3, n=400, d=3, apart=6.0)
    tied = (np.where(rng.random(400) < 0.8, label, rng.integers(0, 3, 400))[:, None] == np.arange(3)) / 0.8
    answer = quietly(unmix.select, unmix.KMeans(n_init=3), np.hstack([X / X.std(axis=0), hot, tied]), random_state=0)
    assert answer.k == 3, str(answer)


def test_a_cloud_without_gaps_that_two_groups_describe():
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics import adjusted_rand_score

    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    answer = quietly(unmix.select, unmix.KMeans(n_init=3), X, random_state=0)
    assert (answer.k, answer.range) == (2, (1, 2))
    assert adjusted_rand_score(data.target, answer.model.predict(X)) > 0.6
    assert "there are no gaps" in answer.reason
    assert "2 groups describe it usefully" in answer.reason


def test_one_cloud_that_two_gaussians_describe_better():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) * 3.0])  # one within the other
    answer = quietly(unmix.select, unmix.GaussianMixture(), X, range(1, 5), "auto", random_state=0)
    assert answer.votes == {"icl": 1, "bic": 2}
    assert answer.k == 1
    assert answer.range == (1, 2)
    assert "2 overlapping parts describe the shape of one group better than 1" in answer.reason


def test_units_that_a_ridge_would_hide():
    X, _ = blobs(3)
    answer = quietly(unmix.select, unmix.GaussianMixture(), X * [1e-4, 1.0], range(1, 6), random_state=0)
    assert answer.k == 3, str(answer)
    assert "instead of 1e-06, because some columns vary hardly more than that" in answer.reason
    own = unmix.GaussianMixture(reg_covar=1e-3)
    assert quietly(unmix.select, own, X, range(1, 6), random_state=0).model.reg_covar == 1e-3
    assert own.reg_covar == 1e-3


def test_a_model_by_its_name_or_class():
    X, _ = blobs(3)
    for model in ("KMeans", "kmeans", unmix.KMeans):
        assert quietly(unmix.select, model, X, range(1, 5), random_state=0).k == 3
    with pytest.raises(ValueError, match=r"model='KMean' is no model of unmix: did you mean 'KMeans'\?"):
        unmix.select("KMean", X)
    with pytest.raises(ValueError, match="model='xyz' is no model of unmix: take one of PCA"):
        unmix.select("xyz", X)
    with pytest.raises(ValueError, match=r"model is an array of shape \(300, 2\): give the model first"):
        unmix.select(X, unmix.KMeans())
    with pytest.raises(ValueError, match="model is a list: give the model first"):
        unmix.select(X.tolist(), "KMeans")


@pytest.mark.parametrize("model", [unmix.KMeans(n_init=3), unmix.GaussianMixture(), "KMeans"])
def test_saved_and_loaded(model, tmp_path):
    X, _ = blobs(3)
    before = quietly(unmix.Select(model, range(1, 6), random_state=0).fit, X)
    before.save(tmp_path / "select.unmix")
    for after in (unmix.load(tmp_path / "select.unmix"), unmix.Select.load(tmp_path / "select.unmix")):
        assert repr(after) == repr(before)
        assert (after.k_, after.range_, after.sureness_, after.reason_) == (3, (3, 3), "sure", before.reason_)
        np.testing.assert_array_equal(after.predict(X), before.predict(X))
        np.testing.assert_array_equal(after.labels_, before.labels_)
        assert str(after.selection_) == str(before.selection_)
        assert after.selection_.votes == before.selection_.votes
        assert after.selection_.table.equals(before.selection_.table)


def _again(estimator, path):
    estimator.save(path)
    return unmix.load(path)


def test_a_file_that_contradicts_itself(tmp_path):
    X, _ = blobs(3)
    before = quietly(unmix.Select(unmix.KMeans(n_init=3), range(1, 6), random_state=0).fit, X)
    wrong = {
        "k_": (2, "model_ is no model of 2 parts"),
        "n_features_in_": (3, "model_ is of other columns"),
        "model_": (StandardScaler(), "StandardScaler of sklearn"),
    }
    for name, (value, message) in wrong.items():
        after = pickle.loads(pickle.dumps(before))
        setattr(after, name, value)
        with pytest.raises(ValueError, match=message):
            _again(after, tmp_path / "wrong.unmix")


def test_a_page_escapes_what_it_shows():
    pd = pytest.importorskip("pandas")
    X, _ = blobs(2)
    rows = pd.DataFrame({"<b>a</b>": X[:, 0] * 1000, "b": X[:, 1]})
    page = quietly(unmix.select, unmix.KMeans(), rows, range(1, 4), random_state=0)._repr_html_()
    assert "&lt;b&gt;a" in page
    assert "<b>a</b>" not in page


@pytest.mark.parametrize(
    "search",
    [
        lambda model, X: unmix.select(model, X, random_state=0),
        lambda model, X: unmix.OutlierDetector(model, random_state=0).fit(X),
    ],
    ids=["select", "outliers"],
)
def test_ctrl_c_ends_a_search_and_not_one_of_its_fits_alone(search, monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 3))
    passes, before = [0], unmix.GaussianMixture.update

    def update(self, U, stats):
        passes[0] += 1
        if passes[0] == 3:
            raise KeyboardInterrupt
        return before(self, U, stats)

    monkeypatch.setattr(unmix.GaussianMixture, "update", update)
    model = unmix.GaussianMixture(2, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        search(model, X)
    passes[0] = 0
    with pytest.warns(UserWarning, match="interrupted"):
        assert model.fit(X).result_ == "stopped"


def test_many_groups_of_a_curve_are_said_to_be_perhaps_its_pieces():
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 6 * np.pi, 600)
    answer = unmix.select(
        "KMeans", np.column_stack([t, 3 * np.sin(t)]) + 0.05 * rng.normal(size=(600, 2)), random_state=0
    )
    assert answer.k > 6
    assert answer.sureness == "open"
    assert "pieces of one gradient" in answer.reason
