"""Neither the unit of the data nor that of the weights matters, or the model says what does.

Laws over all models by discovery, then the options of each, then the ends of the range.
"""

import numpy as np
import pytest

import unmix

MODELS = unmix.models()
POWERS = [(np.float64, p) for p in (40, -40, 300, -300)] + [(np.float32, p) for p in (40, -40)]
CLOSE = {np.float64: 1e-6, np.float32: 1e-4}  # of the largest number: fits end by rules, which rounding decides

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def laws(law):
    """Every model, those exempt from the law skipped with the reason that the docs show."""
    marks = {n: [pytest.mark.skip(reason=c.exempt[law])] if law in c.exempt else [] for n, c in MODELS.items()}
    return pytest.mark.parametrize("cls", [pytest.param(c, id=n, marks=marks[n]) for n, c in MODELS.items()])


def times(value, degree, p):
    """A number, or an array of numbers, times 2^(degree p); anything else as it is."""
    if not degree or isinstance(value, (str, type(None))) or callable(value):
        return value
    return np.ldexp(np.asarray(value, dtype=np.float64), degree * p)[()]


def scaled(model, p, degrees):
    """The same model with its parameters in a unit 2^p times smaller."""
    params = model.get_params(deep=False)
    return type(model)(**{k: times(v, degrees.get(k), p) for k, v in params.items()})


def answers(model, X, **fit):
    """All that a fit gives in numbers: attributes, and what it says of the rows."""
    model.fit(X, **fit)
    out = {k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"}
    out = {k: np.asarray(v) for k, v in out.items() if isinstance(v, (float, int, np.ndarray)) and k != "n_iter_"}
    out["transform"] = np.asarray(model.transform(X))
    if "predict" in dir(model):
        out["predict"] = model.predict(X)
    return out


def law_scale(model, X, dtype, p, degrees=None):
    """The answers for 2^p X are those for X times a power of 2^p that the class names."""
    degrees = type(model).degrees | (degrees or {})
    X = X.astype(dtype)
    one = answers(scaled(model, 0, degrees), X)
    other = answers(scaled(model, p, degrees), X * dtype(2.0) ** p)
    assert one.keys() == other.keys()
    for name, value in one.items():
        if (degree := degrees.get(name, 0)) is None:
            continue
        assert other[name].dtype == value.dtype, name
        back = times(other[name], -degree, p)
        if value.dtype.kind in "iub":
            assert np.array_equal(back, value), name
        else:
            top = np.abs(value).max(initial=0.0)
            np.testing.assert_allclose(back, value, rtol=0, atol=CLOSE[dtype] * top, err_msg=name)


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


@laws("scale")
@pytest.mark.parametrize(("dtype", "p"), POWERS)
def test_scaling_the_data_scales_the_parts(cls, dtype, p):
    model, X, _ = cls.example(np.random.default_rng(0))
    law_scale(model, np.asarray(X), dtype, p)


@laws("scale of weights")
@pytest.mark.parametrize("power", [-20, -3, 10])
def test_the_scale_of_weights_does_not_matter(cls, power):
    model, X, _ = cls.example(np.random.default_rng(0))
    law_scale_of_weights(model, np.asarray(X), power)
