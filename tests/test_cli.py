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
    def seconds(code):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return time.perf_counter() - begin

    heavy = "{'numpy', 'sklearn', 'rich', 'pyarrow', 'numba'}"
    code = "import sys; from unmix.cli.main import main; main(['--help'], standalone_mode=False)"
    code += f"; assert not {heavy} & set(sys.modules)"
    pairs = [(seconds(code), seconds("import click")) for _ in range(7)]
    ours, bare = (min(p) for p in zip(*pairs, strict=True))
    assert ours < max(0.15, 2.5 * bare)  # on a busy machine even importing click alone takes longer than that


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


def test_a_reader_that_has_enough_is_no_error():
    command = f"{sys.executable} -c 'from unmix.cli.main import main; main()' models"
    out = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True, check=False)
    assert out.stdout.startswith("PCA: ")
    assert "Error" not in out.stderr
