"""Neither the unit of the data nor that of the weights matters, or the model says what does.

The law of units is in `unmix.testing.scale`; here are that of weights, the options of each model, and the ends of the
range.
"""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import unmix
from unmix import (
    NMF,
    PCA,
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedoids,
    LatentDirichletAllocation,
    Mixture,
    RobustPCA,
)
from unmix.testing.scale import answers, same_in_another_unit

MODELS = unmix.models()

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def laws(law):
    """Every model, those exempt from the law skipped with the reason that the docs show."""
    marks = {n: [pytest.mark.skip(reason=c.exempt[law])] if law in c.exempt else [] for n, c in MODELS.items()}
    return pytest.mark.parametrize("cls", [pytest.param(c, id=n, marks=marks[n]) for n, c in MODELS.items()])


def law_scale_of_weights(model, X, power):
    """What a fit says of the rows does not change when all weights are multiplied by a number.

    It is asked at the optimum, since first parts may depend on how many rows the weights stand for.
    """
    if "tol" in model.get_params():
        model.set_params(tol=1e-8 * model.tol)
    w = np.ones(len(X))
    w[::3], w[1::3] = 0.5, 1.5  # as many as they weigh
    w[: 3 * (len(X) // 7) : 3], w[1 : 3 * (len(X) // 7) : 3] = 0.0, 1.0
    one = answers(model, X, sample_weight=w)
    other = answers(model, X, sample_weight=np.ldexp(w, power))
    for name in ("transform", "predict"):
        if name in one:
            assert one[name].shape == other[name].shape, name
            top = np.abs(one[name]).max(initial=0.0)
            np.testing.assert_allclose(other[name], one[name], rtol=0, atol=1e-6 * top, err_msg=name)


@laws("scale of weights")
@pytest.mark.parametrize("power", [-20, -3, 10])
def test_the_scale_of_weights_does_not_matter(cls, power):
    model, X, _ = cls.example(np.random.default_rng(0))
    law_scale_of_weights(model, np.asarray(X), power)


# ---------------------------------------------------------------- options


def rows_of(name, seed=0):
    return np.asarray(MODELS[name].example(np.random.default_rng(seed))[1])


def constant_beside(x):
    return np.column_stack([x, np.ones(len(x))])


ONE = dict.fromkeys(("inertia_", "within_variation_", "between_variation_", "total_variation_"), 1)
NONE = dict.fromkeys((*ONE, "transform"), 0)
OPTIONS = {
    "PCA full": (PCA(3, svd_solver="full"), rows_of("PCA"), {}),
    "PCA arpack": (PCA(3, svd_solver="arpack", random_state=0), rows_of("PCA"), {}),
    "PCA randomized": (PCA(3, svd_solver="randomized", random_state=0), rows_of("PCA"), {}),
    "PCA mle": (PCA("mle"), rows_of("PCA"), {}),
    "PCA parallel": (PCA("parallel", random_state=0), rows_of("PCA"), {}),
    "PCA whitened": (PCA(3, whiten=True), rows_of("PCA"), {"transform": 0}),
    "PCA of few rows": (PCA(3), rows_of("PCA")[:8], {}),
    "varimax": (FactorAnalysis(3, rotation="varimax"), rows_of("FactorAnalysis"), {}),
    "promax": (FactorAnalysis(3, rotation="promax"), rows_of("FactorAnalysis"), {}),
    "factors, a constant column": (FactorAnalysis(3), constant_beside(rows_of("FactorAnalysis")), {}),
    "cosine": (KMeans(4, metric="cosine", random_state=0), rows_of("KMeans"), NONE | {"cluster_centers_": 0}),
    "mahalanobis": (KMeans(4, metric="mahalanobis", random_state=0), rows_of("KMeans"), NONE),
    "manhattan": (KMeans(4, metric="manhattan", random_state=0), rows_of("KMeans"), ONE),
    "linear kernel": (KernelKMeans(2, kernel="linear", random_state=0), rows_of("KernelKMeans"), ONE | {"transform": 1}
                      | {"inertia_": 2}),
    "cosine kernel": (KernelKMeans(2, kernel="cosine", random_state=0), rows_of("KernelKMeans"), {}),
    "cosine medoids": (KMedoids(4, metric="cosine", random_state=0), rows_of("KMedoids"), NONE),
    "manhattan medoids": (KMedoids(4, metric="manhattan", random_state=0), rows_of("KMedoids"), {}),
    "tied": (GaussianMixture(3, covariance_type="tied", random_state=0), rows_of("GaussianMixture"), {}),
    "diag": (GaussianMixture(3, covariance_type="diag", random_state=0), rows_of("GaussianMixture"), {}),
    "priors": (BayesianGaussianMixture(3, covariance_type="diag", random_state=0), rows_of("GaussianMixture"), {}),
    "far from zero": (Mixture(3, random_state=0), np.abs(rows_of("Mixture")) + 0.1, {}),
    "student": (Mixture(3, family="student", random_state=0), np.abs(rows_of("Mixture")) + 0.1, {}),
    "multiplicative": (NMF(4, solver="mu", random_state=0), rows_of("NMF"), {}),
    "divergence": (NMF(4, beta_loss="kullback-leibler", random_state=0), rows_of("NMF"), {"reconstruction_err_": None}),
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(("dtype", "p"), [(np.float64, 300), (np.float64, -300), (np.float32, 40), (np.float32, -40)])
def test_options_do_not_depend_on_the_unit(option, dtype, p):
    """Without extrapolation, which weighs statistics of different units against each other."""
    with unmix.config(acceleration=False):
        same_in_another_unit(*OPTIONS[option][:2], dtype, p, OPTIONS[option][2])


@pytest.mark.parametrize("model", [PCA(3), FactorAnalysis(3)], ids=repr)
@pytest.mark.parametrize(("dtype", "p"), [(np.float64, 300), (np.float64, -300), (np.float32, 40), (np.float32, -40)])
def test_missing_cells_in_any_unit(model, dtype, p):
    X = rows_of(type(model).__name__)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    with unmix.config(acceleration=False):
        same_in_another_unit(model, X, dtype, p)


# ---------------------------------------------------------------- the ends of the range


@laws("scale")
@pytest.mark.parametrize("p", [63, -63, 100, -100, 660, -660, 1000, -1000])
def test_at_the_ends_of_the_range_the_answer_is_right_or_there_is_none(cls, p):
    model, X, _ = cls.example(np.random.default_rng(0))
    try:
        same_in_another_unit(model, np.asarray(X) / np.abs(X).max(), np.float64 if abs(p) > 100 else np.float32, p)
    except ValueError as refusal:
        told = re.fullmatch(r"X .* (\de[+-]\d+) in size, .* beyond .*: multiply X by (1e[+-]\d+)", str(refusal))
        assert told, refusal
        size, factor = (float(number) for number in told.groups())
        assert 0.1 < size * factor < 10 or abs(np.log10(factor)) == 300


@pytest.mark.parametrize("size", [1e-25, 1e19, 1e30])
def test_distances_of_single_precision_beyond_its_squares(size):
    X = rows_of("KMeans")
    one, other = (KMeans(4, random_state=0).fit(x) for x in (X, (X * size).astype(np.float32)))
    apart = other.transform((X * size).astype(np.float32))
    assert apart.dtype == np.float32
    np.testing.assert_allclose(apart / size, one.transform(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", [PCA(2), FactorAnalysis(2), KMedoids(2), KernelKMeans(2, kernel="linear")], ids=repr)
@pytest.mark.parametrize(("size", "dtype"), [(1e-200, np.float64), (1e200, np.float64), (1e-25, np.float32)])
def test_sizes_that_gave_nonsense_or_a_raw_error(model, size, dtype):
    X = (size * np.random.default_rng(0).normal(size=(50, 4))).astype(dtype)
    if type(model) is KMedoids and dtype == np.float32:
        assert model.fit(X).inertia_ > 0  # it adds up in float64
        return
    with pytest.raises(ValueError, match=rf"X reaches .* beyond {np.dtype(dtype)}: multiply X by 1e[+-]\d+$"):
        model.fit(X)


def test_mixtures_of_rows_far_from_zero_and_large():
    """Their origin was kept in single precision, which ends at 1e38."""
    X = np.repeat([[2.0, 9.0], [9.0, 2.0]], 100, axis=0) + np.random.default_rng(0).normal(size=(200, 2))
    for family in ("gaussian", "student"):
        model = Mixture(2, family=family, random_state=0).fit(1e40 * X)
        assert sorted(np.round(model.means_[:, 0] / 1e40).tolist()) == [2, 9]


def test_subnormal_data_are_refused_with_a_factor_that_is_a_number():
    for model in (NMF(2), RobustPCA()):
        with pytest.raises(ValueError, match=r"multiply X by 1e\+300$"):
            model.fit(np.full((20, 3), 1e-320))


def test_sparse_and_streamed_rows_are_refused_as_well():
    X = 1e200 * np.random.default_rng(0).normal(size=(60, 4))
    for rows in (sp.csr_array(X), lambda: iter(np.array_split(X, 3))):
        with pytest.raises(ValueError, match="multiply X by 1e-200"):
            PCA(2).fit(rows)


# ---------------------------------------------------------------- weights that sum to less than the rows


def normalised(n, seed=0):
    w = np.random.default_rng(seed).uniform(0.5, 1.5, n)
    return w / w.sum()


@pytest.mark.parametrize("how", ["auto", "full", "covariance_eigh", "randomized", "arpack", "stream", "nan", "wide"])
def test_pca_with_weights_that_sum_to_one(how):
    X = rows_of("PCA")
    w = normalised(len(X))
    if how == "wide":
        X, w = X[:8], normalised(8)
    if how == "nan":
        X[::7, 1] = np.nan
    data = (lambda: iter(np.array_split(X, 3))) if how == "stream" else X
    solver = how if how in ("full", "covariance_eigh", "randomized", "arpack") else "auto"
    one, other = (PCA(3, svd_solver=solver, random_state=0).fit(data, sample_weight=v) for v in (w * len(w), w))
    assert one.n_components_ == other.n_components_ == 3
    for name in ("components_", "explained_variance_", "noise_variance_", "mean_"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-5, atol=1e-8, err_msg=name)


def test_pca_of_batches_with_small_weights_has_as_many_components_as_rows_allow():
    X = rows_of("PCA")
    model = PCA()
    for part in np.array_split(X, 4):
        model.partial_fit(part, sample_weight=np.full(len(part), 1e-6))
    assert model.n_components_ == 10
    whole = PCA().fit(X)
    np.testing.assert_allclose(model.explained_variance_, whole.explained_variance_, rtol=1e-6)


def test_robust_pca_with_weights_that_sum_to_one():
    model, X, check = RobustPCA.example(np.random.default_rng(0))
    check(model.fit(X, sample_weight=np.full(len(X), 1 / len(X))))


@pytest.mark.parametrize("cls", [BayesianGaussianMixture, LatentDirichletAllocation])
@pytest.mark.parametrize("total", [1.0, 0.7])
def test_priors_outweigh_weights_that_sum_to_one(cls, total):
    model, X, _ = cls.example(np.random.default_rng(0))
    told = rf"sample_weight sums to {total:g}, as if .* beside the priors: scale it so that it sums to the number"
    with pytest.warns(UserWarning, match=told):
        model.fit(X, sample_weight=total * normalised(len(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, sample_weight=len(X) * normalised(len(X)))


@pytest.mark.parametrize("cls", [KMeans, KMedoids, unmix.SoftKMeans, GaussianMixture, BayesianGaussianMixture, Mixture])
def test_rows_far_beyond_those_of_the_fit_are_refused(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    for method in ("transform", "score"):
        with pytest.raises(ValueError, match=r"X reaches 1e\+200 in size"):
            getattr(model, method)(np.full_like(X, 1e200, dtype=float)[:3])


@pytest.mark.parametrize("cls", [KMeans, GaussianMixture, BayesianGaussianMixture])
def test_single_precision_is_not_left_silently(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.astype(np.float32))
    with pytest.raises(ValueError, match=r"X reaches 1e\+19 in size"):
        model.transform(np.full_like(X, 1e19, dtype=np.float32)[:3])


@pytest.mark.parametrize("cls", [PCA, FactorAnalysis, KMeans, GaussianMixture, Mixture])
def test_one_huge_cell_anywhere_is_refused(cls):
    X = np.random.default_rng(0).normal(size=(40_000, 3))
    X[33_333, 1] = 1e200
    with pytest.raises(ValueError, match=r"X reaches 1e\+200 in size"):
        cls().fit(X)
