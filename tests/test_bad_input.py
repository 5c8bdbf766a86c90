"""Hostile input, for every model: an error that names argument, value and remedy, or a documented answer."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import unmix

MODELS = unmix.models()
every = pytest.mark.parametrize("cls", MODELS.values(), ids=MODELS.keys())
COUNTED = {n: c for n, c in MODELS.items() if {"n_clusters", "n_components"} & set(c().get_params())}
counted = pytest.mark.parametrize("cls", COUNTED.values(), ids=COUNTED.keys())
pytestmark = pytest.mark.filterwarnings("ignore")  # hostile data: what is asked is that they are fitted or refused


def problem(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    return model, np.asarray(X, dtype=float)


def k_name(model):
    return "n_clusters" if "n_clusters" in model.get_params() else "n_components"


def small(cls, k=1):
    """A model with few parts, for tiny data."""
    model, _ = problem(cls)
    return model.set_params(**{k_name(model): k}) if cls in COUNTED.values() else model


@every
def test_empty_data(cls):
    model, _ = problem(cls)
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
        model.fit(np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"0 feature\(s\).*minimum of 1"):
        model.fit(np.empty((3, 0)))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.fit(np.ones(3))


@every
@pytest.mark.parametrize("shape", [(1, 4), (5, 1), (1, 1)])
def test_one_row_and_one_column(cls, shape):
    X = np.abs(np.random.default_rng(0).normal(size=shape)) + 1
    model = small(cls)
    try:
        Z = model.fit(X).transform(X)
    except ValueError as e:
        assert any(word in str(e) for word in ("n_samples", "n_features", k_name(model), "sample", "row")), e
        assert not hasattr(model, "trace_")
    else:
        assert np.isfinite(Z).all()
        assert len(Z) == shape[0]


@every
def test_constant_columns_and_duplicate_rows(cls):
    model, X = problem(cls)
    X[:, 0] = 3.0
    assert np.isfinite(pickle.loads(pickle.dumps(model)).fit(X).transform(X)).all()
    same = np.tile(np.abs(X[:1]) + 1, (40, 1))
    assert np.isfinite(small(cls).fit(same).transform(same)).all()


@every
def test_all_zero(cls):
    X = np.zeros((20, 4))
    assert np.isfinite(small(cls).fit(X).transform(X)).all()


@every
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_named(cls, value):
    model, X = problem(cls)
    X[5, 1] = value
    with pytest.raises(ValueError, match=rf"infinity.*row 5, column 1 holds {value}.*Replace"):
        model.fit(X)
    assert not hasattr(model, "trace_")


@counted
def test_more_parts_than_rows(cls):
    model, X = problem(cls)
    name = k_name(model)
    model.set_params(**{name: 50})
    try:
        Z = model.fit(X[:7]).transform(X[:7])
    except ValueError as e:
        assert name in str(e)
        assert "50" in str(e)
        assert "7" in str(e) or f"{X.shape[1]} columns" in str(e)
    else:
        assert np.isfinite(Z).all()


@counted
@pytest.mark.parametrize("bad", [0, -1, 2.5, "three"])
def test_bad_number_of_parts(cls, bad):
    model, X = problem(cls)
    name = k_name(model)
    if bad == 2.5 or (bad == 0 and cls.__name__ in ("PCA", "ProbabilisticPCA", "RobustPCA", "FactorAnalysis", "PMF")):
        bad = -3
    with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__}.*Got {bad!r}"):
        model.set_params(**{name: bad}).fit(X)


@every
def test_negative_values(cls):
    model, X = problem(cls)
    X = np.abs(X)
    X[4, 2] = -0.5
    if not cls.nonnegative:
        model.fit(X)
        return
    with pytest.raises(
        ValueError, match=rf"Negative values in data passed to {cls.__name__}: row 4, column 2 holds -0.5"
    ):
        model.fit(X)


@every
def test_weights(cls):
    model, X = problem(cls)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, sample_weight=np.full(len(X), np.nan))


@every
def test_new_data_with_other_columns(cls):
    import pandas as pd

    model, X = problem(cls)
    names = [f"c{j}" for j in range(X.shape[1])]
    model.fit(pd.DataFrame(X, columns=names))
    assert list(model.feature_names_in_) == names
    with pytest.raises(
        ValueError, match=f"X has {X.shape[1] - 1} features, but {cls.__name__} is expecting {X.shape[1]}"
    ):
        model.transform(X[:, 1:])
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(pd.DataFrame(X, columns=names[::-1]))


@every
def test_strings_and_wrong_types(cls, tmp_path):
    import pandas as pd

    model, X = problem(cls)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame["c1"] = frame["c1"].astype(object)
    frame.loc[3, "c1"] = "blue"
    with pytest.raises(ValueError, match=r"'c1'.*'?blue"):
        model.fit(frame)
    frame.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(ValueError, match=r"c1.*blue"):
        model.fit(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError, match=r"no such file\.csv"):
        model.fit("no such file.csv")
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        model.fit(X + 1j)
    assert not hasattr(model, "trace_")


@every
def test_a_file_that_ends_in_the_middle(cls, tmp_path):
    model, X = problem(cls)
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"x\.npy"):
        model.fit(tmp_path / "x.npy")
    assert not hasattr(model, "trace_")


@every
def test_not_fitted(cls):
    model, X = problem(cls)
    with pytest.raises(NotFittedError):
        model.transform(X)
    with pytest.raises(NotFittedError):
        model.save("nowhere")


@every
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale(cls, scale):
    model, X = problem(cls)
    if cls.__name__ == "LatentDirichletAllocation":
        scale = 1e3 if scale > 1 else 1.0  # counts
    fitted = model.fit(X * scale)
    assert np.isfinite(fitted.transform(X * scale)).all()


@every
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_comes_is_fitted_or_refused_in_words(cls, data):
    n = data.draw(st.integers(1, 12))
    d = data.draw(st.integers(1, 5))
    cells = st.sampled_from([0.0, 1.0, -1.0, 2.5, 1e-300, 1e12, np.nan, np.inf, 3.0, 7.0])
    X = np.array(data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n)))
    model = small(cls, data.draw(st.integers(1, 4)))
    if "max_iter" in model.get_params():
        model.set_params(max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five passes do not converge
        try:
            model.fit(X)
        except ValueError as e:
            assert len(str(e)) > 20
            assert not hasattr(model, "trace_")
        else:
            Z = model.transform(X)
            assert np.isfinite(np.asarray(Z)).all()
