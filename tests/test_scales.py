"""Neither the unit of the data nor that of the weights matters, or the model says what does.

The law of units is in `unmix.testing.scale`; here are that of weights, the options of each model, and the ends of the
range.
"""

import re
import warnings
from fractions import Fraction

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
    KernelPCA,
    KMeans,
    KMedoids,
    LatentDirichletAllocation,
    Mixture,
    RobustPCA,
)
from unmix.model.telling import are_shares
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


@laws("scale of weights")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("power", [332, -332, 890, -890])
def test_extreme_weights_do_not_matter_either(cls, dtype, power):
    """They are divided by a power of two: all but sums of them are the same to the bit."""
    model, X, _ = cls.example(np.random.default_rng(0))
    X, w = np.asarray(X, dtype), np.random.default_rng(1).choice([0.5, 1.0, 1.5], len(X))
    sums = {"inertia_": 1, "objective_": 1, "reconstruction_err_": 0.5, "singular_values_": 0.5, "lambda_": -0.5}
    sums |= {"eigenvalues_": 1, "eigenvectors_": 0.5, "spectral_error_": 0.5}
    for v in (w, np.ones(len(X))):
        one, other = answers(model, X, sample_weight=v), answers(model, X, sample_weight=np.ldexp(v, power))
        for name, value in one.items():
            with np.errstate(over="ignore", under="ignore"):  # √w of 2^332 is beyond float32
                wanted = (value * 2.0 ** (power * sums.get(name, 0))).astype(value.dtype)
            np.testing.assert_array_equal(other[name], wanted, err_msg=name)
    one, other = (model.score(X, sample_weight=v) for v in (w, np.ldexp(w, power)))
    assert other == pytest.approx(one * 2.0**power if cls in (KMeans, KMedoids) else one)


def test_the_objective_of_robust_pca_counts_the_weights_of_the_user():
    """λ and ‖L‖_* grow with √w, and the objective is told for each unit of weight."""
    model, X, _ = RobustPCA.example(np.random.default_rng(0))
    one = model.fit(X, sample_weight=np.full(len(X), 2.0**30)).trace_[-1].objective, model.score(X)
    other = model.fit(X, sample_weight=np.full(len(X), 2.0**80)).trace_[-1].objective, model.score(X)
    assert other == pytest.approx([2.0**-25 * v for v in one], rel=1e-3)


@pytest.mark.parametrize("cls", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_weights_whose_products_leave_float64_are_refused(cls, size):
    model, X, _ = cls.example(np.random.default_rng(0))
    told = rf"sample_weight reaches {size:.1e}, .*: scale it so that it sums to the number of rows$".replace("+", r"\+")
    with pytest.raises(ValueError, match=told):
        model.fit(X, sample_weight=np.full(len(X), size))


@pytest.mark.parametrize("cls", [BayesianGaussianMixture, LatentDirichletAllocation])
def test_extreme_weights_are_not_weighed_against_priors(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    for fit in (model.fit, model.partial_fit, KMeans(2).partial_fit):
        with pytest.raises(ValueError, match=r"reaches 1.0e\+100, which is no number of rows to weigh against"):
            fit(X, sample_weight=np.full(len(X), 1e100))


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
    "linear kernel PCA": (KernelPCA(2, random_state=0), rows_of("KernelPCA"), {"transform": 1, "eigenvalues_": 2}
                          | {"gamma": 0, "gamma_": 0}),
    "kernel PCA by landmarks": (KernelPCA(2, kernel="rbf", gamma=0.25, n_landmarks=40, random_state=0),
                                rows_of("KernelPCA"), {}),
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
@pytest.mark.parametrize(
    ("dtype", "p"), [(np.float64, 300), (np.float64, -300), (np.float64, -500), (np.float32, 40), (np.float32, -40)]
)
def test_missing_cells_in_any_unit(model, dtype, p):
    X = rows_of(type(model).__name__)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    with unmix.config(acceleration=False):
        same_in_another_unit(model, X, dtype, p)


# ---------------------------------------------------------------- where the numbers lie in memory


def unaligned(x):
    """The same numbers at an odd address."""
    out = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def read_only(x):
    out = x.copy()
    out.setflags(write=False)
    return out


LAYOUTS = {
    "unaligned": unaligned,
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "negative strides": lambda x: x[::-1].copy()[::-1],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("cls", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_where_the_numbers_lie_in_memory_does_not_matter(cls, dtype):
    model, X, _ = cls.example(np.random.default_rng(0))
    X, w = np.ascontiguousarray(X, dtype), np.random.default_rng(1).uniform(0.5, 1.5, len(X))
    for fit in ({}, {"sample_weight": w}):
        one = answers(model, X, **fit)
        for name, laid in LAYOUTS.items():
            other = answers(model, laid(X), **{k: laid(v) for k, v in fit.items()})
            assert {k for k in one if one[k].tobytes() != other[k].tobytes()} == set(), name


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


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (np.full(2000, 100 / 2000), True),  # percent
        (100 * normalised(2000), True),
        (np.full(3, 0.2), True),
        (np.full(20, 0.3), False),
        (np.full(20_000, 0.05), False),  # as many as 1000 rows
        (np.linspace(0, 1, 2000) ** 30, False),  # memberships of a rare cluster: sum to 65, some near 1
        (np.r_[np.ones(50), np.zeros(5000)], False),
        (normalised(50) * 50, False),
    ],
)
def test_weights_that_look_like_shares(weights, told):
    assert are_shares(weights) == told


@pytest.mark.parametrize("cls", [KMeans, KMedoids, unmix.SoftKMeans, GaussianMixture, BayesianGaussianMixture, Mixture])
def test_rows_far_beyond_those_of_the_fit_are_refused(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    for method in ("transform", "score"):
        with pytest.raises(ValueError, match=r"X reaches 1e\+200 in size"):
            getattr(model, method)(np.full_like(X, 1e200, dtype=float)[:3])


def nearest(centers, X, power):
    """The nearest centre of each row by exact arithmetic, over the observed cells."""
    exact = [[Fraction(float(v)) for v in u] for u in centers]
    rows = [[None if np.isnan(v) else Fraction(float(v)) for v in x] for x in X]
    away = [[sum(abs(v - c) ** power for v, c in zip(x, u, strict=True) if v is not None) for u in exact] for x in rows]
    return [distances.index(min(distances)) for distances in away]


def with_holes(x):
    return np.where(np.random.default_rng(2).random(x.shape) < 0.2, np.nan, x)


FAR_OUT = {
    "dense": (KMeans(4, random_state=0), np.asarray),
    "holes": (KMeans(4, random_state=0), with_holes),
    "sparse": (KMeans(4, random_state=0), sp.csr_array),
    "manhattan": (KMeans(4, metric="manhattan", random_state=0), np.asarray),
    "manhattan, holes": (KMeans(4, metric="manhattan", random_state=0), with_holes),
    "soft": (unmix.SoftKMeans(4, random_state=0), np.asarray),
    "soft, holes": (unmix.SoftKMeans(4, random_state=0), with_holes),
    "soft, sparse": (unmix.SoftKMeans(4, random_state=0), sp.csr_array),
    "medoids": (KMedoids(4, random_state=0), np.asarray),
    "medoids, holes": (KMedoids(4, random_state=0), with_holes),
    "linear kernel": (KernelKMeans(4, kernel="linear", random_state=0), np.asarray),
}


@pytest.mark.parametrize("size", [1.0, 1e8, 1e15, 1e20, 1e100])
@pytest.mark.parametrize("case", FAR_OUT)
def test_rows_far_out_belong_to_the_nearest_centre(case, size):
    """‖x − u‖² is the same for all u, to rounding; ‖u‖² − 2⟨x, u⟩ is not."""
    (model, form), X = FAR_OUT[case], rows_of("KMeans")
    model.fit(X)
    labels = model.labels_
    centers = [X[labels == k].mean(axis=0) for k in range(4)] if "kernel" in case else model.cluster_centers_
    rows = form(size * np.random.default_rng(1).standard_normal((60, 4)))
    dense = rows.toarray() if sp.issparse(rows) else rows
    wanted = nearest(centers, dense, 1 if "manhattan" in case else 2)
    assert model.predict(rows).tolist() == wanted
    if "soft" in case:
        assert model.transform(rows).argmax(axis=1).tolist() == wanted


def test_rows_far_out_whose_distances_say_nothing_are_refused():
    model = KMedoids(4, metric="manhattan", random_state=0).fit(rows_of("KMeans"))
    with pytest.raises(ValueError, match=r"X reaches 1e\+20 in size, .* equally far .*: are its units those"):
        model.predict(np.full((2, 4), 1e20))


def test_a_loss_that_is_no_number_is_refused():
    X = rows_of("NMF").astype(np.float32)
    model = NMF(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="loss of X is beyond float32: are its units"):
        model.score(X * np.float32(1e18))


def test_factors_of_single_precision_with_one_row_far_out():
    """Its columns were alike to rounding: LAPACK's own error."""
    X = rows_of("FactorAnalysis").astype(np.float32)
    X[7] *= 1e7
    assert np.isfinite(FactorAnalysis(3).fit(X).components_).all()


@pytest.mark.parametrize("cls", [KMeans, GaussianMixture, BayesianGaussianMixture])
def test_single_precision_is_not_left_silently(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.astype(np.float32))
    with pytest.raises(ValueError, match=r"X reaches 1e\+19 in size"):
        model.transform(np.full_like(X, 1e19, dtype=np.float32)[:3])


@pytest.mark.parametrize("cls", [PCA, FactorAnalysis, KMeans, GaussianMixture, Mixture])
@pytest.mark.parametrize("holes", [False, True])
def test_one_huge_cell_anywhere_is_refused(cls, holes):
    X = np.random.default_rng(0).normal(size=(40_000, 3))
    X[33_333, 1] = 1e200
    X[33_334, 0] = np.nan if holes else 0.0
    with pytest.raises(ValueError, match=r"X reaches 1e\+200 in size"):
        cls().fit(X)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (unmix.KernelKMeans(3, random_state=0), "gamma"),
        (unmix.GaussianMixture(3, random_state=0), "lower reg_covar"),
        (unmix.BayesianGaussianMixture(n_components=3, random_state=0), "lower reg_covar"),
    ],
)
def test_parameters_in_the_units_of_x_are_named_where_they_drown_it(model, words):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 4)) + c for c in (0, 8, 16)]) * 2.0**-40
    with pytest.warns(UserWarning, match=words):
        model.fit(X)
