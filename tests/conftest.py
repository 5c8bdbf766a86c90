import os
import sys
from pathlib import Path

import pytest

if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):  # set before NumPy is there to read it
    share = str(max(1, (os.cpu_count() or 1) // workers))  # threads that wait by spinning take the others' cores
    os.environ |= {"OPENBLAS_NUM_THREADS": share, "OMP_NUM_THREADS": share}


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets; tests that need it are skipped where it is missing."""
    folder = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("set UNMIX_DATA to the folder of real data sets to run this")
    return folder


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two worker processes, for as long as a file needs it: idle, it takes a tenth of a core."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests go to whichever process is free, but those named `…_on_dask` to one: the cluster starts once.

    So do those named `…_in_a_browser`, and `…_in_one_process`, which share what takes long to find out.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            name = nodeid.split("[")[0]
            return next(
                (kind for kind in ("_on_dask", "_in_a_browser", "_in_one_process") if name.endswith(kind)), nodeid
            )

    return Scheduling(config, log)


sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))  # the skeleton is a model too: the tests run it
