"""BLAS is limited to one thread inside fits, and has as many as before once they are over, whatever happens in them."""

import gc
import threading

import numpy as np
import pytest
from sklearn.cluster import KMeans as Theirs
from threadpoolctl import threadpool_info, threadpool_limits

import unmix
from unmix.engine import runners
from unmix.engine.runners import one_blas_thread
from unmix.validate import stability

THREADS = 3  # of BLAS, before the fits


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(400, 6))


@pytest.fixture(autouse=True)
def several():
    """BLAS has several threads, whatever the machine has, and must have as many after the test."""
    with threadpool_limits(limits=THREADS, user_api="blas"):
        if numbers() != {THREADS}:
            pytest.skip("this BLAS has one thread")
        yield
        assert numbers() == {THREADS}


def numbers():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def together(*functions):
    """Run functions in threads of their own, which live on until all are done; what BLAS has then."""
    done, over = threading.Barrier(len(functions) + 1), threading.Event()

    def run(f):
        try:
            f()
        finally:
            done.wait()
            over.wait()

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    done.wait()
    out = numbers()
    over.set()
    for thread in threads:
        thread.join()
    return out


def test_the_limit_is_lifted_by_whoever_leaves_last():
    """Also where another thread set it, and still lives."""
    first, second = threading.Event(), threading.Event()
    seen = []

    def early():
        with one_blas_thread():
            first.set()
            second.wait()
        seen.append(numbers())

    def late():
        first.wait()
        with one_blas_thread():
            second.set()
            while not seen:
                pass
            seen.append(numbers())

    assert together(early, late) == {THREADS}
    assert seen == [{1}, {1}]


@pytest.mark.parametrize("name", ["KMeans", "GaussianMixture", "PCA", "KMedoids"])
def test_fits_in_several_threads(name, X):
    def fit():
        model, _, _ = unmix.models()[name].example(np.random.default_rng(0))
        for _ in range(5):
            model.fit(X).transform(X)

    assert together(fit, fit, fit, fit) == {THREADS}


def test_models_of_others_on_our_threads(X):
    assert together(*[lambda: stability(Theirs(2, n_init=1), X, n=3, n_jobs=2)] * 2) == {THREADS}


def test_fits_that_fail(X):
    bad = X.copy()
    bad[300, 2] = np.inf

    def fail():
        for _ in range(5):
            with unmix.config(block_rows=50, n_jobs=2), pytest.raises(ValueError, match="infinity"):
                unmix.KMeans(2, random_state=0).fit(bad)

    assert together(fail, fail, lambda: unmix.PCA(2).fit(X)) == {THREADS}


def test_an_error_whose_traceback_is_kept(X, monkeypatch):
    """As a notebook keeps it: the pass that it broke off is in it."""
    model = unmix.KMeans(2, random_state=0).fit(X)

    def broken(*args):
        raise MemoryError

    monkeypatch.setattr(runners, "added", broken)
    with unmix.config(block_rows=50, n_jobs=2), pytest.raises(MemoryError) as kept:
        model.score(X)
    assert numbers() == {THREADS}
    del kept


def test_rows_that_nobody_fetches_any_more(X):
    rows = unmix.KMeans(2, random_state=0).fit(X).stream("encode", X)
    next(rows)
    assert numbers() == {1}
    del rows
    gc.collect()
    assert numbers() == {THREADS}


def test_ctrl_c_before_the_block_begins():
    def interrupted():
        one_blas_thread().__enter__()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert numbers() == {THREADS}


def test_a_limit_that_others_lift_meanwhile_stays_lifted():
    """The other order: somebody else's limit is found, and gone before the fit is over."""
    other = threadpool_limits(limits=1, user_api="blas")
    with one_blas_thread():
        other.restore_original_limits()
        assert numbers() == {THREADS}
    assert numbers() == {THREADS}


def test_a_limit_of_the_user_is_kept(X):
    with threadpool_limits(limits=1, user_api="blas"):
        unmix.PCA(2).fit(X)
        assert numbers() == {1}


def test_where_there_is_one_thread_nothing_is_set(monkeypatch):
    def refuse(self, threads):
        raise AssertionError(f"set to {threads}")

    with threadpool_limits(limits=1, user_api="blas"), monkeypatch.context() as patch:
        patch.setattr(runners.Blas, "_set", refuse)
        with one_blas_thread():
            assert numbers() == {1}
