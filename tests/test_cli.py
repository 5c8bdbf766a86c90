"""The command line, as a person meets it."""

import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import unmix
from unmix.cli.main import main


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1, size=(50, 2)) for c in [(0, 0), (9, 0), (0, 9)]])
    lines = ["height,width,copies", *(f"{a},{b},1" for a, b in X)]
    lines[4] = ",1.0,1"  # an empty cell: not observed
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def test_help_teaches_and_models_are_listed():
    out = run("--help").output
    assert "unmix fit GaussianMixture table.csv --k 3" in out
    listed = run("models").output
    assert all(name in listed for name in unmix.models())


def test_help_is_quick():
    code = "from unmix.cli.main import main; main(['--help'])"
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    bare = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import click"], check=True, capture_output=True)
        bare.append(time.perf_counter() - begin)
    assert min(times) < max(0.15, 1.5 * min(bare))


def test_a_first_session(table, tmp_path):
    assert "150 rows × 3 columns" in run("info", table).output
    fitted = run("fit", "kmeans", table, "--k", 3, "--columns", "height,width")
    assert fitted.exit_code == 0, fitted.output
    assert "converged" in fitted.output
    model = tmp_path / "table.unmix"
    assert unmix.load(model).cluster_centers_.shape == (3, 2)
    assert "cluster_centers_" in run("info", model).output
    done = run("transform", model, table, "--labels", "--out", tmp_path / "labels.csv")
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "labels.csv").read_text().split()
    assert len(lines) == 151
    assert len(set(lines[1:51])) == 1
    done = run("transform", model, table, "--out", tmp_path / "z.npy")
    assert np.load(tmp_path / "z.npy").shape == (150, 3)


def test_weights_come_from_a_column(table, tmp_path):
    done = run("fit", "PCA", table, "--k", 1, "--weights", "copies", "--out", tmp_path / "m.unmix")
    assert done.exit_code == 0, done.output
    assert list(unmix.load(tmp_path / "m.unmix").feature_names_in_) == ["height", "width"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["fit", "KMean", "FILE"], "Did you mean KMeans?"),
        (["fit", "KMeans", "FILE", "--set", "clusters=3"], "NAME is one of"),
        (["fit", "KMeans", "FILE", "--k", "500"], "n_clusters=500"),
        (["fit", "KMeans", "FILE", "--k", "0"], "n_clusters"),
        (["fit", "KMeans", "FILE", "--columns", "heigth"], "height"),
        (["fit", "NMF", "FILE", "--k", "2", "--columns", "height"], "Negative values"),
        (["transform", "FILE", "FILE", "--out", "x.csv"], "damaged"),
    ],
)
def test_errors_are_sentences(table, args, says):
    out = run(*(str(table) if a == "FILE" else a for a in args))
    assert out.exit_code != 0
    assert says in out.output
    assert "Traceback" not in out.output
    assert not table.with_suffix(".unmix").exists()
