"""A Dask client that is closed, or loses its scheduler, is named, with the way out."""

import numpy as np
import pytest

import unmix

distributed = pytest.importorskip("distributed")
CLOSED = r"the Dask client .* is clos(ed|ing): open a new Client and pass it as unmix\.config\(runner=…\)"


@pytest.fixture
def client():
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None, set_as_default=False
    ) as client:
        yield client


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(400, 6))


class After:
    """A callback that does something after the first pass."""

    def __init__(self, what):
        self.what = what

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.what()
        return False


@pytest.mark.parametrize("method", ["fit", "transform", "score"])
def test_a_client_that_is_closed(method, client, X):
    model = unmix.KMeans(3, random_state=0).fit(X)
    client.close()
    with unmix.config(runner=client), pytest.raises(RuntimeError, match=CLOSED):
        getattr(model, method)(X)


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_client_that_is_closed_during_a_fit(what, client, X):
    close = client.close if what == "client" else client.cluster.close
    model = unmix.KMeans(8, random_state=0).set_callbacks(After(close))
    with unmix.config(runner=client, block_rows=50), pytest.raises(RuntimeError, match="open a new Client"):
        model.fit(X)


def test_errors_of_the_data_are_as_they_were(client, X):
    X[300, 2] = np.inf
    with unmix.config(runner=client, block_rows=50), pytest.raises(ValueError, match="row 300, column 2 holds inf"):
        unmix.KMeans(3, random_state=0).fit(X)
