"""Whose state a checkpoint is, and what happens to it when things go wrong."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from test_laws import At, Killed, kill

import unmix

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
    from unmix.io import pack

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
    from unmix.io import pack

    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    path = tmp_path / "state"
    left = tmp_path / f".state.{int(gone.stdout)}.1.part"
    mine, others = tmp_path / f".state.{os.getpid()}.1.part", tmp_path / f".other.{int(gone.stdout)}.1.part"
    for file in (left, mine, others):
        file.write_bytes(b"torn")
    pack.write(path, {"a": 1})
    assert {p.name for p in tmp_path.iterdir()} == {"state", mine.name, others.name}
