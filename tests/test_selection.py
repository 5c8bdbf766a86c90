"""How many parts: criteria against their definitions, choices on planted data, and "none" where there are none."""

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

import unmix
from unmix.model import fit_together
from unmix.selection.criteria import likeness


def blobs(k, n=300, d=2, apart=8.0, seed=0):
    rng = np.random.default_rng(seed)
    places = [(0, 0), (1, 0), (0.5, 0.9), (1.5, 0.9), (0, 1.8), (1, 1.8)]  # no three of them in a line
    centres = np.array([[apart * a, apart * b] + [0.0] * (d - 2) for a, b in places[:k]])
    label = np.arange(n) % k
    return centres[label] + rng.standard_normal((n, d)), label


def quietly(f, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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


def test_likenesses_keep_mean_and_axes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3)) @ rng.standard_normal((3, 3)) + 5
    for kind in ("uniform", "gaussian"):
        Y = likeness(X, kind, rng)
        _, axes = np.linalg.eigh(np.cov(X.T))
        turned = axes.T @ np.cov(Y.T) @ axes
        off = abs(turned - np.diag(np.diag(turned))).max()
        assert off < 0.15 * turned.max()
    np.testing.assert_allclose(np.cov(likeness(X, "gaussian", rng).T), np.cov(X.T), rtol=0.2, atol=0.2)


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
    X = np.concatenate([rng.standard_normal((400, 1)) * 0.2 + c for c in (0, 1, 20, 21)])  # pairs of pairs
    answer = quietly(unmix.select, unmix.KMeans(n_init=5), X, range(1, 8), ["gap", "silhouette"], random_state=0)
    assert set(answer.votes) == {"gap", "silhouette"}
    if answer.k is None:
        assert "disagree" in answer.reason
        assert answer.model is None


def test_the_estimator_in_a_pipeline():
    X, _ = blobs(3)
    pipe = make_pipeline(StandardScaler(), unmix.Select(unmix.KMeans(n_init=3), range(1, 7), random_state=0))
    found = quietly(pipe.fit_predict, X)
    assert pipe[-1].k_ == 3
    assert len(np.unique(found)) == 3
    assert pipe.transform(X).shape == (len(X), 3)
    again = clone(pipe).set_params(select__k=[2])
    quietly(again.fit, X)
    assert again[-1].k_ in (1, 2)


def test_table_and_pictures():
    X, _ = blobs(3)
    answer = quietly(unmix.select, unmix.KMeans(), X, range(1, 6), random_state=0)
    assert list(answer.table["k"]) == [1, 2, 3, 4, 5]
    assert np.isnan(answer.table["silhouette"][0])
    assert "k = 3" in answer._repr_html_()
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = answer.plot()
    assert ax.get_title() == "k = 3"
    plt.close(ax.figure)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"k": []}, "whole numbers"),
        ({"k": [0, 1]}, "at least 1"),
        ({"k": [500]}, "rows"),
        ({"criterion": "bic"}, "choose from silhouette"),
        ({"criterion": "magic"}, "choose from"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        unmix.select(unmix.KMeans(), blobs(2, n=50)[0], **kwargs)


def test_a_model_without_k():
    with pytest.raises(ValueError, match="no k to choose"):
        unmix.select(StandardScaler(), np.eye(3))


def test_warm_starts_never_make_it_worse():
    X = np.random.default_rng(0).standard_normal((500, 4))
    for model in (unmix.KMeans(), unmix.GaussianMixture(tol=1e-6)):
        answer = quietly(unmix.select, model, X, range(1, 8), random_state=0)
        assert (np.diff(answer.columns["objective"]) < 1e-9).all()
