"""Whose state a checkpoint is, and what happens to it when things go wrong."""

import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import unmix
from unmix.io import pack
from unmix.testing.ends import At, Killed, kill

X = np.random.default_rng(0).standard_normal((300, 5))


def killed(path, model, data=X):
    """Leave a checkpoint of a fit after its third step."""
    with unmix.config(checkpoint=path, checkpoint_seconds=0.0), pytest.raises(Killed):
        pickle.loads(pickle.dumps(model)).set_callbacks(At(3, kill)).fit(data)
    assert path.exists()


@pytest.mark.parametrize(
    ("seed", "other"),
    [(np.int64(1), np.int64(2)), (1, np.int32(2)), (np.random.RandomState(1), np.random.RandomState(2))],
)
def test_another_seed_is_another_fit(seed, other, tmp_path):
    path = tmp_path / "state"
    model = unmix.KMeans(8, random_state=seed, max_iter=30)
    killed(path, model)
    with unmix.config(checkpoint=path), pytest.raises(ValueError, match="belongs to another fit \\(other parameters"):
        unmix.KMeans(8, random_state=other, max_iter=30).fit(X)
    with unmix.config(checkpoint=path):
        resumed = pickle.loads(pickle.dumps(model)).fit(X)
    fresh = pickle.loads(pickle.dumps(model)).fit(X)
    assert np.array_equal(resumed.cluster_centers_, fresh.cluster_centers_)


@pytest.mark.parametrize("i", [1, 17, 150, 298])
def test_one_other_cell_is_other_data(i, tmp_path):
    path, changed = tmp_path / "state", X.copy()
    killed(path, unmix.KMeans(8, random_state=0))
    changed[i, 2] += 1e-9
    with unmix.config(checkpoint=path), pytest.raises(ValueError, match="other data"):
        unmix.KMeans(8, random_state=0).fit(changed)


def test_another_cell_of_a_frame_among_the_parameters(tmp_path):
    path, first = tmp_path / "state", pd.DataFrame(X[:100])
    killed(path, unmix.KMeans(100, init=first))
    other = first.copy()
    other.iloc[50, 2] += 1
    with unmix.config(checkpoint=path), pytest.raises(ValueError, match="other parameters"):
        unmix.KMeans(100, init=other).fit(X)


def test_a_model_file_is_not_a_checkpoint(tmp_path):
    path = tmp_path / "model.unmix"
    unmix.KMeans(3, random_state=0).fit(X).save(path)
    before = path.read_bytes()
    with unmix.config(checkpoint=path), pytest.raises(ValueError, match="is a file of unmix, but not a checkpoint"):
        unmix.KMeans(3, random_state=0).fit(X)
    assert path.read_bytes() == before


def test_a_full_disk_does_not_end_a_fit(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pack, "write", full)
    truth = unmix.KMeans(8, random_state=0).fit(X)
    with (
        unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0),
        warnings.catch_warnings(record=True) as told,
    ):
        warnings.simplefilter("always")
        model = unmix.KMeans(8, random_state=0).fit(X)
    assert np.array_equal(model.cluster_centers_, truth.cluster_centers_)
    (warning,) = told
    assert "state' could not be written ([Errno 28] No space left on device): the fit goes on" in str(warning.message)


def test_what_a_killed_process_left_is_swept_away(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    path = tmp_path / "state"
    left = tmp_path / f".state.{int(gone.stdout)}.1.part"
    mine, others = tmp_path / f".state.{os.getpid()}.1.part", tmp_path / f".other.{int(gone.stdout)}.1.part"
    for file in (left, mine, others):
        file.write_bytes(b"torn")
    pack.write(path, {"a": 1})
    assert {p.name for p in tmp_path.iterdir()} == {"state", mine.name, others.name}


SCRIPT = """
import sys
import numpy as np
import unmix
from unmix.testing.ends import At, kill
X = np.random.default_rng(0).standard_normal((100, 3))
def power_of(power):
    return lambda a, b: (abs(a - b) ** power).sum()
model = unmix.KMedoids(9, metric=power_of(float(sys.argv[1])), init="random", random_state=0)
with unmix.config(checkpoint={path!r}, checkpoint_seconds=0.0):
    if len(sys.argv) > 2:
        model.set_callbacks(At(3, kill))
    print(model.fit(X).medoid_indices_.tolist())
"""


@pytest.mark.slow
def test_a_function_among_the_parameters_is_known_again_in_another_process(tmp_path):
    path = tmp_path / "state"
    script = SCRIPT.format(path=str(path))

    def run(*args):
        return subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, check=False)

    assert "Killed" in run("1", "killed").stderr
    assert path.exists()
    assert "belongs to another fit (other parameters)" in run("2").stderr  # another function of the same name
    assert run("1").stdout.startswith("[")
    assert not path.exists()


def test_arrays_inside_parameters_tell_fits_apart(tmp_path):
    X, V = np.random.default_rng(0).standard_normal((200, 40)), np.eye(40)
    with unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0):
        model = unmix.KMedoids(9, metric="mahalanobis", metric_params={"VI": V}, init="random", random_state=0)
        with pytest.raises(Killed):
            model.set_callbacks(At(2, kill)).fit(X)
        V = V.copy()
        V[20, 20] = 9.0  # which `repr` leaves out
        with pytest.raises(ValueError, match="other parameters"):
            unmix.KMedoids(9, metric="mahalanobis", metric_params={"VI": V}, init="random", random_state=0).fit(X)


def test_medoids_of_another_memory_budget_are_not_resumed(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 3))
    model = unmix.KMedoids(5, init="random", random_state=0)
    with unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0):
        with pytest.raises(Killed):
            pickle.loads(pickle.dumps(model)).set_callbacks(At(2, kill)).fit(X)
        with (
            unmix.config(memory_budget=4 * 100**2),
            pytest.raises(
                ValueError,
                match=r"does not fit this run: it has medoids of all rows, but .* allows samples of 100",
            ),
        ):
            model.fit(X)


def test_ctrl_c_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    calls, opened = [], zipfile.ZipFile.open

    def broken(self, *args, **more):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return opened(self, *args, **more)

    X = np.random.default_rng(0).standard_normal((300, 3))
    path = tmp_path / "state"
    truth = unmix.KMedoids(20, init="random", random_state=0).fit(X)
    with unmix.config(checkpoint=path, checkpoint_seconds=0.0):
        monkeypatch.setattr(zipfile.ZipFile, "open", broken)
        stopped = unmix.KMedoids(20, init="random", random_state=0).fit(X)
        monkeypatch.undo()
        assert stopped.result_ == "stopped"
        assert [p.name for p in tmp_path.iterdir()] == ["state"]
        assert np.array_equal(unmix.KMedoids(20, init="random", random_state=0).fit(X).labels_, truth.labels_)


def test_several_threads_write_one_file(tmp_path):
    path = tmp_path / "file"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda i: pack.write(path, {"a": np.full(1000, i)}), range(40)))
    assert len(set(pack.read(path)["a"])) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_of_other_stages_is_refused(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 3))
    with unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0):
        with pytest.raises(Killed):
            unmix.GaussianMixture(3, random_state=0).set_callbacks(At(3, kill)).fit(X)
        with pytest.raises(ValueError, match="belongs to another fit"):
            unmix.GaussianMixture(3, init_params="random", random_state=0).fit(X)


def test_who_stopped_a_fit_may_go_on_with_it(tmp_path):
    X = np.random.default_rng(0).standard_normal((600, 3))
    truth = unmix.KMedoids(20, init="random", random_state=0).fit(X)
    assert len(truth.trace_) > 2
    with unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0):
        first = unmix.KMedoids(20, init="random", random_state=0).set_callbacks(At(2, lambda: True)).fit(X)
        assert first.result_ == "stopped"
        again = unmix.KMedoids(20, init="random", random_state=0).fit(X)
    assert again.result_ == "converged"
    assert np.array_equal(again.medoid_indices_, truth.medoid_indices_)
    assert len(again.trace_) == len(truth.trace_)


def test_a_checkpoint_belongs_to_the_parts_that_a_fit_goes_on_from(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3))
    file = tmp_path / "fit"
    args = {"max_iter": 8, "tol": 0.0, "random_state": 0, "warm_start": True}
    model, whole = (unmix.GaussianMixture(3, **args).fit(X) for _ in range(2))
    with unmix.config(checkpoint=file, checkpoint_seconds=0), pytest.raises(Killed):
        model.set_callbacks(At(4, kill)).fit(X)
    with unmix.config(checkpoint=file), pytest.raises(ValueError, match="other first parts"):
        unmix.GaussianMixture(3, **args).fit(X)
    with unmix.config(checkpoint=file):
        model.set_callbacks().fit(X)
    np.testing.assert_array_equal(model.means_, whole.fit(X).means_)
    assert not file.exists()


def test_a_checkpoint_belongs_to_the_factors_that_a_fit_was_given(tmp_path):
    rng = np.random.default_rng(0)
    X, W, H = rng.random((60, 5)), rng.random((60, 2)), rng.random((2, 5))
    model = unmix.NMF(2, init="custom", tol=0.0, max_iter=20)
    with unmix.config(checkpoint=tmp_path / "fit", checkpoint_seconds=0), pytest.raises(Killed):
        model.set_callbacks(At(4, kill)).fit(X, W=W, H=H)
    with unmix.config(checkpoint=tmp_path / "fit"), pytest.raises(ValueError, match="other first parts"):
        model.set_callbacks().fit(X, W=W, H=2 * H + 1)
