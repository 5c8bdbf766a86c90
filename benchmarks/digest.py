"""Every number that models give on their examples, so that a change of the inside can be shown to change nothing.

    python -m benchmarks.digest record before.npz            # at the old commit
    python -m benchmarks.digest compare before.npz           # at the new one, on the same machine
    python -m benchmarks.digest compare before.npz PCA NMF   # some models

Public attributes, outputs and the objectives of each pass, on the example and on iris: dense, CSR, with NaN, float32,
weights, n_init = 3, after `partial_fit`; and the same for variants of the parameters. `compare` lists what differs in
any bit, and by how much.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_iris

import unmix

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "PCA": [
        *({"svd_solver": s} for s in ("full", "covariance_eigh", "arpack", "randomized")),
        *({"n_components": k} for k in (None, 0.9, "mle", "parallel", 0)),
        {"whiten": True},
    ],
    "ProbabilisticPCA": [{"method": "em"}, *({"n_components": k} for k in (None, 0.9, "mle", "parallel", 0))],
    "FactorAnalysis": [*({"rotation": r} for r in ("varimax", "quartimax", "promax")), {"n_components": None}],
    "FastICA": [{"algorithm": "deflation"}, {"fun": "exp"}, {"fun": "cube"}, {"whiten": "arbitrary-variance"}],
    "RobustPCA": [{"n_components": 2}, {"mu": 0.5, "max_iter": 30}],
    "KMeans": [
        *({"init": i} for i in ("random", "partition", "spread")),
        *({"metric": m} for m in ("cosine", "mahalanobis", "manhattan")),
        {"metric": "manhattan", "init": "spread"},
        {"min_size": 40, "max_size": 100},
        {"n_clusters": 12},
    ],
    "SoftKMeans": [{"beta": 0.5}, {"init": "random"}],
    "KernelKMeans": [{"kernel": "linear"}, {"kernel": "poly"}],
    "KMedoids": [{"metric": "manhattan"}, {"method": "alternate"}, {"init": "build"}, {"init": "random"}],
    "GaussianMixture": [
        *({"covariance_type": c} for c in ("tied", "diag", "spherical")),
        *({"init_params": i} for i in ("k-means++", "random", "random_from_data")),
        {"n_components": 6, "covariance_type": "diag"},
    ],
    "BayesianGaussianMixture": [
        *({"covariance_type": c} for c in ("tied", "diag", "spherical")),
        {"weight_concentration_prior_type": "dirichlet_distribution"},
        {"init_params": "random"},
    ],
    "Mixture": [
        {"family": "student"},
        {"family": [("student", [0, 1]), ("gaussian", [2, 3])]},
        {"init_params": "random"},
    ],
    "NMF": [
        {"solver": "mu"},
        {"beta_loss": "kullback-leibler"},
        {"alpha_W": 0.01, "l1_ratio": 0.5},
        {"beta_loss": "kullback-leibler", "alpha_W": 0.01},
        *({"init": i} for i in ("random", "nndsvd", "nndsvdar")),
    ],
    "LatentDirichletAllocation": [
        {"doc_topic_prior": "auto", "topic_word_prior": "auto"},
        {"learning_method": "online"},
        {"evaluate_every": 1},
    ],
}  # fmt: skip
OTHER_DATA = {"bernoulli": 2, "categorical": 4, "poisson": 9, "multinomial": 9, "exponential": 9}  # whole numbers below
HIDDEN = ("trace_", "result_", "stages_", "feature_names_in_")


def main() -> None:
    """Record or compare."""
    what, path, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    now = {}
    for name, cls in unmix.models().items():
        if not names or name in names:
            now |= {f"{name}/{k}": v for k, v in of_model(cls).items()}
            print(name, file=sys.stderr, flush=True)
    if what == "record":
        np.savez(path, **now)
        print(f"{len(now)} entries in {path}")
        return
    before = {k: v for k, v in np.load(path).items() if not names or k.split("/")[0] in names}
    different = 0
    for key in sorted(before.keys() | now.keys()):
        if key not in now or key not in before:
            print(f"{key}: only {'before' if key in before else 'now'}")
        elif before[key].dtype != now[key].dtype or before[key].shape != now[key].shape:
            print(f"{key}: {before[key].dtype} {before[key].shape} → {now[key].dtype} {now[key].shape}")
        elif before[key].tobytes() != now[key].tobytes():
            a, b = before[key], now[key]
            if a.dtype.kind in "fiu":
                by = np.nanmax(np.abs(a - b), initial=0.0) / max(np.nanmax(np.abs(a), initial=0.0), 1e-300)
                print(f"{key}: differs by {by:.1e} of the largest")
            else:
                print(f"{key}: {a} → {b}")
        else:
            continue
        different += 1
    print(f"{different} of {len(before)} entries differ")
    sys.exit(bool(different))


def of_model(cls: Any) -> dict[str, np.ndarray]:
    """All cases of a model."""
    out = {}
    name = cls.__name__
    for i, more in enumerate([{}, *VARIANTS.get(name, ())]):
        label = "example" if not more else "+".join(f"{k}={v}" for k, v in more.items())
        model, X, _ = cls.example(np.random.default_rng(0))
        out |= of_example(cls, model.set_params(**more), np.asarray(X, np.float64), label.replace("/", " "), i == 0)
    iris = load_iris().data  # which converges less quickly than what was planted
    out |= of_example(cls, cls.example(np.random.default_rng(0))[0], iris, "iris", False)
    if name == "KMeans":
        bits = (np.median(X, axis=0) < X).astype(float)
        out |= of_example(cls, model.set_params(**VARIANTS["KMeans"][-1], metric="hamming"), bits, "hamming", False)
    if name == "Mixture":
        rng = np.random.default_rng(1)
        for family, top in OTHER_DATA.items():
            x = np.floor(top * rng.beta(*np.array([[1, 3, 2, 1], [3, 1, 1, 2]])[:, None, :].repeat(300, 1))).clip(
                0, top - 1
            )
            x[:150] = top - 1 - x[:150]
            model, _, _ = cls.example(rng)
            out |= of_example(cls, model.set_params(family=family, n_components=2), x, family, False)
    return out


def of_example(cls: Any, model: Any, X: np.ndarray, label: str, whole: bool) -> dict[str, np.ndarray]:
    """One set of parameters on the kinds of data that the model takes."""
    rng, cases = np.random.default_rng(1), {"dense": X}
    holes = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    w = rng.integers(0, 3, size=len(X)).astype(float)
    cases |= {"float32": X.astype(np.float32)}
    if cls.sparse:
        cases |= {"csr": sp.csr_array(X)}
    if cls.missing:
        cases |= {"nan": holes, "nan32": holes.astype(np.float32)}
    out = {}
    for case, x in cases.items():
        out |= keyed(f"{label}/{case}", model, lambda m, x=x: m.fit(x), x)
    out |= keyed(f"{label}/weights", model, lambda m: m.fit(X, sample_weight=w), X)
    if "n_init" in model.get_params():
        out |= keyed(f"{label}/n_init", model.set_params(n_init=3), lambda m: m.fit(X), X)
    if hasattr(model, "partial_fit"):
        half = len(X) // 2
        data = {"partial": X, "partial_nan": holes} if cls.missing else {"partial": X}
        for case, x in data.items():
            out |= keyed(f"{label}/{case}", model, lambda m, x=x: m.partial_fit(x[:half]).partial_fit(x[half:]), x)
        out |= keyed(f"{label}/fit_partial", model, lambda m: m.fit(X).partial_fit(X[:half], sample_weight=w[:half]), X)
    if whole:  # in small blocks, as larger data come
        with unmix.config(block_rows=64):
            out |= keyed(f"{label}/blocks", model, lambda m: m.fit(X), X)
    return out


def keyed(label: str, model: Any, fit: Any, x: Any) -> dict[str, np.ndarray]:
    """Attributes, outputs and objectives of a fit; what is refused, by its message."""
    from sklearn.base import clone

    try:
        fitted = fit(clone(model))
    except (ValueError, TypeError) as error:
        return {f"{label}/error": np.array(str(error)[:80])}
    out = {}
    for name, value in vars(fitted).items():
        if name.endswith("_") and not name.startswith("_") and name not in HIDDEN:
            for i, part in enumerate(flat(value)):
                out[f"{label}/{name}{i or ''}"] = part
    for name in ("transform", "predict", "predict_proba", "score_samples", "score"):
        if hasattr(fitted, name):
            try:
                out[f"{label}/{name}()"] = np.asarray(getattr(fitted, name)(x))
            except (ValueError, TypeError, AttributeError):
                continue
    with suppress(ValueError, TypeError, AttributeError):
        out[f"{label}/inverse_transform()"] = np.asarray(fitted.inverse_transform(fitted.transform(x)))
    out[f"{label}/objectives"] = np.array([s.objective for s in fitted.trace_])
    return {k: v for k, v in out.items() if v.dtype.kind in "fiubU"}


def flat(value: Any) -> list[np.ndarray]:
    """The arrays and numbers of an attribute."""
    if isinstance(value, dict):
        return [a for k in sorted(value) for a in flat(value[k])]
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in flat(v)]
    return [np.asarray(value)]


if __name__ == "__main__":
    main()
