"""A pytest plugin: scikit-learn's own tests meet our classes under its names, and what came of each is written down.

Loaded with `-p` before scikit-learn's test files are collected, so that their imports find our classes. A test counts
where it makes one of our models; the outcome of those goes, as JSON, to the file named by DROP_IN_REPORT.
"""

from __future__ import annotations

import importlib
import json
import os

import pytest

import unmix

made: list[str] = []
factorised: dict[bytes, unmix.NMF] = {}
outcomes: dict[str, str] = {}


def namesakes() -> dict[str, str]:
    """Our models that scikit-learn has a class of the same name for, and its package."""
    return {name: cls.peer.home for name, cls in unmix.models().items() if cls.peer}


def non_negative_factorization(X, W=None, H=None, n_components="auto", *, update_H=True, **params):
    """NMF as a function, which in scikit-learn is the class under another name; H is held where it is known already."""
    if update_H:
        model = unmix.NMF(n_components, **params)
        W = model.fit_transform(X, W=W, H=H)
        factorised[model.components_.tobytes()] = model
    else:
        model = factorised[H.tobytes()]
        W = model.transform(X)
    return W, model.components_, model.n_iter_


def fastica(X, n_components=None, *, return_X_mean=False, compute_sources=True, return_n_iter=False, **params):
    """FastICA as a function: the whitening, the unmixing of white rows, the sources."""
    model = unmix.FastICA(n_components, **params)
    S = model.fit_transform(X)
    K, mean = (model.whitening_, model.mean_) if model.whiten else (None, None)
    W = model.components_ @ model.whitener()
    return [K, W, S, *[mean] * return_X_mean, *[model.n_iter_] * return_n_iter]


def pytest_configure(config):
    """Put our classes in the place of scikit-learn's."""
    for name, home in namesakes().items():
        ours = getattr(unmix, name)
        setattr(importlib.import_module(home), name, ours)
    importlib.import_module("sklearn.decomposition._nmf").non_negative_factorization = non_negative_factorization
    importlib.import_module("sklearn.decomposition").fastica = fastica
    importlib.import_module("sklearn.decomposition").non_negative_factorization = non_negative_factorization

    def counted(cls, *args, **kwargs):
        made.append(cls.__name__)
        return object.__new__(cls)

    unmix.Model.__new__ = counted


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    made.clear()
    yield


def pytest_runtest_logreport(report):
    if report.when == "call" and made:
        message = "" if report.passed or report.skipped else str(report.longrepr).strip().splitlines()[-1]
        outcomes[report.nodeid] = report.outcome + (": " + message if message else "")


def pytest_sessionfinish():
    with open(os.environ["DROP_IN_REPORT"], "w") as f:
        json.dump(outcomes, f)
