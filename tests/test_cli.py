"""The command line, as a person meets it: journeys on tables with text, dates, categories and holes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

import unmix
from unmix.cli.main import main

MAIN = [sys.executable, "-c", "from unmix.cli.main import main; main(prog_name='unmix')"]
COMMANDS = ("info", "select", "cluster", "reduce", "outliers", "impute", "fit", "apply", "models", "completion")
FORMATS = ("csv", "tsv", "parquet", "feather", "jsonl", "xlsx")


def test_the_package_is_the_command():
    """0.3 s: for those whose path has no scripts."""
    done = subprocess.run([sys.executable, "-m", "unmix", "--version"], capture_output=True, text=True, check=True)
    assert unmix.__version__ in done.stdout


@pytest.fixture(scope="module")
def frame():
    """Three groups of people, with whatever else tables hold."""
    rng = np.random.default_rng(0)
    who = np.arange(150) % 3
    frame = pd.DataFrame(
        {
            "code": [f"{i:05d}" for i in range(150)],
            "age": (np.array([25, 45, 70])[who] + rng.normal(0, 2, 150)).round(1),
            "income": (np.array([2e4, 9e4, 3e4])[who] + rng.normal(0, 2e3, 150)).round(0),
            "visits": rng.poisson(np.array([1, 5, 20])[who]),
            "town": np.where(rng.random(150) < 0.85, np.array(["Ulm", "Bonn", "Kiel"])[who], "Trier"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, 150), unit="D"),
            "remark": [f'said {i} things, "all" of them; different each time' for i in range(150)],
            "truth": np.array(["young", "rich", "old"])[who],
        }
    )
    frame.loc[4, "age"] = np.nan
    frame.loc[[7, 9], "town"] = None
    return frame


@pytest.fixture
def table(frame, tmp_path):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def numbers(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1, size=(50, 2)) for c in [(0, 0), (9, 0), (0, 9)]])
    path = tmp_path / "numbers.csv"
    pd.DataFrame(X, columns=["height", "width"]).assign(copies=1).to_csv(path, index=False)
    return path


def run(*args, **more):
    return CliRunner().invoke(main, [str(a) for a in args], **more)


def fine(*args, **more):
    """A command that succeeds, and changes no file that was there before."""
    folder = next((os.path.dirname(str(a)) for a in args if os.path.isfile(str(a))), None)
    before = hashes(folder)
    done = run(*args, **more)
    assert done.exit_code == 0, (done.output, done.exception)
    assert all(hashes(folder)[name] == digest for name, digest in before.items())
    return done


def hashes(folder):
    if folder is None:
        return {}
    files = [os.path.join(folder, name) for name in os.listdir(folder)]
    return {name: hashlib.sha256(open(name, "rb").read()).hexdigest() for name in files if os.path.isfile(name)}


def frame_of(path):
    """A written file, codes as text."""
    kind = str(path).rpartition(".")[2]
    if kind in ("csv", "tsv"):
        return pd.read_csv(path, sep="\t" if kind == "tsv" else ",", dtype={"code": str}, parse_dates=["since"])
    if kind == "jsonl":
        return pd.read_json(path, lines=True, dtype={"code": str}, convert_dates=["since"])
    if kind == "xlsx":
        return pd.read_excel(path, dtype={"code": str})
    return pd.read_parquet(path) if kind == "parquet" else pd.read_feather(path)


# ---------------------------------------------------------------- help


def test_help_begins_with_the_journey():
    out = run("--help").output
    assert (
        out.index("unmix info table.csv") < out.index("unmix cluster table.csv --out groups.csv") < out.index("Options")
    )
    assert "Exit codes" in out
    for command in COMMANDS:
        told = run(command, "--help")
        assert told.exit_code == 0
        assert "Examples" in told.output or command in ("models", "completion")


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
    assert ours < max(0.3, 4 * bare)  # on a busy machine even importing click alone takes longer than that


def test_models_are_listed():
    told = fine("models").output
    assert all(name in told for name in unmix.models())
    assert json.loads(fine("models", "--json").stdout)["KMeans"]["k"] == "n_clusters"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_UNMIX_COMPLETE" in fine("completion", shell).output


# ---------------------------------------------------------------- journeys


def test_info_tells_every_column(table, frame):
    done = fine("info", table)
    assert "150 rows, 8 columns, of which 5 can be used" in done.stdout
    for name in frame:
        assert name in done.stdout
    assert "left out: it holds dates" in done.stdout
    assert "note: taken for names of the rows: 'code'" in done.stderr
    assert "next:  unmix cluster" in done.stderr
    told = json.loads(fine("info", table, "--json", "--label", "truth", "--as", "text:town").stdout)
    columns = {c["name"]: c for c in told["columns"]}
    assert columns["age"]["missing"] == 1
    assert columns["age"]["mean"] == pytest.approx(frame["age"].mean())
    assert (columns["truth"]["role"], columns["town"]["role"], columns["since"]["kind"]) == (
        "label",
        "left out",
        "date",
    )


def test_cluster_without_a_number_asks_how_many(table, frame, tmp_path):
    out, model = tmp_path / "groups.csv", tmp_path / "groups.unmix"
    done = fine("cluster", table, "--label", "truth", "--out", out, "--save", model)
    assert "3 groups in 150 rows (Mixture" in done.stdout
    assert "unmix select" in done.stderr
    assert "so the model is Mixture" in done.stderr
    written = pd.read_csv(out, dtype={"code": str}, parse_dates=["since"])
    pd.testing.assert_frame_equal(written[list(frame)], frame, check_dtype=False)
    assert list(written)[-2:] == ["group", "probability"]
    assert adjusted_rand_score(frame["truth"], written["group"]) == 1
    assert sorted(written["group"].unique()) == [1, 2, 3]
    new = tmp_path / "new.csv"
    frame.iloc[::-1].assign(group="mine").to_csv(new, index=False)  # another order, and a name that is taken
    fine("apply", model, new, "--out", tmp_path / "applied.csv")
    applied = pd.read_csv(tmp_path / "applied.csv")
    assert applied["group (2)"].tolist() == written["group"].tolist()[::-1]
    assert (applied["group"] == "mine").all()
    told = fine("info", model).stdout
    assert "a fitted Mixture" in told
    assert "income" in told


def test_centres_are_in_the_units_of_the_table(table, frame):
    done = fine("cluster", table, "--k", 3, "--drop", "truth", "--model", "kmeans", "--json")
    told = json.loads(done.stdout)
    assert done.stderr == ""
    rich = max(told["groups"], key=lambda g: g["centre"]["income"])
    mine = frame[frame["truth"] == "rich"]
    assert rich["rows"] == 50
    assert rich["centre"]["income"] == pytest.approx(mine["income"].mean())
    assert rich["centre"]["town"]["Bonn"] == pytest.approx((mine["town"] == "Bonn").sum() / mine["town"].notna().sum())
    assert rich["traits"][0]["column"] == "income"
    text = fine("cluster", table, "--k", 3, "--drop", "truth", "--model", "kmeans").stdout
    assert f"income: {mine['income'].mean():,.0f} (others" in text


@pytest.mark.parametrize("kind", FORMATS)
def test_files_in_and_files_out_hold_the_same_columns(frame, tmp_path, kind):
    source, out = tmp_path / f"table.{kind}", tmp_path / f"groups.{kind}"
    writers = {"parquet": frame.to_parquet, "feather": frame.to_feather}
    if kind in writers:
        writers[kind](source)
    elif kind == "jsonl":
        frame.assign(since=frame["since"].dt.strftime("%Y-%m-%d")).to_json(source, orient="records", lines=True)
    elif kind == "xlsx":
        frame.to_excel(source, index=False)
    else:
        frame.to_csv(source, index=False, sep="\t" if kind == "tsv" else ",")
    fine("cluster", source, "--k", 3, "--model", "KMeans", "--label", "truth", "--out", out)
    written = frame_of(out)
    assert list(written) == [*frame, "group"]
    assert adjusted_rand_score(frame["truth"], written["group"]) == 1
    for name in frame:
        mine, theirs = written[name].astype(object).where(written[name].notna(), None), frame[name].astype(object)
        assert mine.tolist() == theirs.where(frame[name].notna(), None).tolist(), name
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_a_text_that_looks_like_a_formula_stays_text(frame, tmp_path):
    import openpyxl

    frame.assign(remark="=1+1").to_csv(tmp_path / "table.csv", index=False)
    fine("cluster", tmp_path / "table.csv", "--k", 3, "--model", "KMeans", "--out", tmp_path / "x.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    cell = sheet.cell(2, 1 + list(frame).index("remark"))
    assert (cell.value, cell.data_type) == ("=1+1", "s")


def test_reduce(table, frame, tmp_path):
    out = tmp_path / "scores.parquet"
    done = fine("reduce", table, "--k", 2, "--columns", "age,income,visits", "--out", out)
    assert "2 components" in done.stdout
    written = pd.read_parquet(out)
    assert list(written)[-2:] == ["component 1", "component 2"]
    told = json.loads(fine("reduce", table, "--columns", "age,income,visits", "--json").stdout)
    first = told["components"][0]["loadings"]
    for name in first:
        with_score = np.corrcoef(frame[name].fillna(frame[name].mean()), written["component 1"])[0, 1]
        assert first[name] == pytest.approx(with_score, abs=0.02)
    assert "NMF" in fine("reduce", table, "--model", "nmf", "--k", 2, "--columns", "visits,income").stdout


def test_outliers(frame, tmp_path):
    odd = frame.copy()
    odd.loc[17, ["age", "income", "visits"]] = [140.0, 9e6, 400]
    odd.to_csv(tmp_path / "table.csv", index=False)
    done = fine("outliers", tmp_path / "table.csv", "--label", "truth", "--out", tmp_path / "odd.csv")
    assert "1 row of 150 looks odd" in done.stdout
    assert "00017" in done.stdout
    assert "income: 9,000,000" in done.stdout
    written = pd.read_csv(tmp_path / "odd.csv")
    assert written["odd"].to_numpy().nonzero()[0].tolist() == [17]
    assert written["p_value"].argmin() == 17
    told = json.loads(fine("outliers", tmp_path / "table.csv", "--json").stdout)
    assert told["oddest"][0]["row"] == 18
    assert told["oddest"][0]["id"] == {"code": "00017"}


def test_select(numbers, tmp_path):
    done = fine("select", numbers, "--drop", "copies", "--k", "1-5", "--plot", tmp_path / "how_many.png")
    assert done.stdout.startswith("3 groups")
    assert "→  3" in done.stdout
    assert (tmp_path / "how_many.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(fine("select", numbers, "GaussianMixture", "--k", "1,2,3,4", "--json").stdout)
    assert (told["k"], told["table"]["k"]) == (3, [1, 2, 3, 4])
    assert run("select", numbers, "--k", "few").exit_code == 2


def test_fit_saves_and_apply_gives_numbers(numbers, tmp_path):
    fitted = fine("fit", "kmeans", numbers, "--k", 3, "--columns", "height,width")
    assert "converged" in fitted.stdout
    model = tmp_path / "numbers.unmix"
    assert unmix.load(model).cluster_centers_.shape == (3, 2)
    told = fine("info", model).stdout
    assert "height" in told
    assert "group 3" in told
    again = run("fit", "kmeans", numbers, "--k", 3)
    assert again.exit_code == 1
    assert "--out" in again.stderr
    assert "--force" in again.stderr
    fine("transform", model, numbers, "--labels", "--out", tmp_path / "labels.csv")  # as it was called before
    assert pd.read_csv(tmp_path / "labels.csv")["group"].nunique() == 3
    assert run("fit", "PCA", numbers, "--k", 1, "--out", model, "--force").exit_code == 0
    assert "1 component" in fine("info", model).stdout


def test_weights_come_from_a_column(numbers, tmp_path):
    fine("fit", "PCA", numbers, "--k", 1, "--weights", "copies", "--out", tmp_path / "m.unmix")
    assert list(unmix.load(tmp_path / "m.unmix").feature_names_in_) == ["height", "width"]


def test_arrays_and_sparse_matrices(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.poisson(3, (40, 6)) * [1, 1, 1, 0, 0, 0], rng.poisson(3, (40, 6)) * [0, 0, 0, 1, 1, 1]])
    sp.save_npz(tmp_path / "counts.npz", sp.csr_matrix(X.astype(float)))
    assert "80 rows × 6 columns" in fine("info", tmp_path / "counts.npz").stdout
    fine("fit", "NMF", tmp_path / "counts.npz", "--k", 2, "--out", tmp_path / "parts.unmix")
    fine("apply", tmp_path / "parts.unmix", tmp_path / "counts.npz", "--out", tmp_path / "z.parquet")
    assert list(pd.read_parquet(tmp_path / "z.parquet")) == ["component 1", "component 2"]
    np.save(tmp_path / "x.npy", X.astype(float))
    fine("cluster", tmp_path / "x.npy", "--k", 2, "--out", tmp_path / "x.csv")
    written = pd.read_csv(tmp_path / "x.csv")
    assert written.shape == (80, 7)
    np.testing.assert_array_equal(written.iloc[:, :6], X)
    assert adjusted_rand_score(np.repeat([0, 1], 40), written["group"]) == 1


def test_large_tables_ask_some_of_their_rows_how_many(numbers, monkeypatch):
    monkeypatch.setattr("unmix.cli.choose.ENOUGH", 40)
    monkeypatch.setattr("unmix.table.part.PIECES", 20)
    done = fine("select", numbers, "--drop", "copies", "--k", "1-5")
    assert "how many was asked of 40 rows" in done.stderr
    assert done.stdout.startswith("3 groups")


def test_batches_do_not_matter(table, tmp_path, monkeypatch):
    fine("cluster", table, "--k", 3, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr("unmix.cli.tables.CHUNK", 1 << 10)
    with unmix.config(block_rows=7):
        fine("cluster", table, "--k", 3, "--out", tmp_path / "pieces.csv")
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "pieces.csv").read_text()


# ---------------------------------------------------------------- what is said, and where


def test_results_and_notes_go_different_ways(table):
    done = fine("cluster", table, "--k", 3)
    assert "note:" not in done.stdout
    assert "group" not in done.stderr.replace("each row with its group", "").replace("groups.csv", "")
    assert f"next:  unmix cluster {table} --k 3 --out groups.csv" in done.stderr  # the same options, and one more
    assert fine("cluster", table, "--k", 3, "--quiet").stderr == ""
    piped = fine("cluster", table, "--k", 3, "--out", "-")
    assert piped.stdout.count("\n") == 151
    assert "3 groups" in piped.stderr


def test_standard_input(table):
    with open(table, "rb") as f:
        done = subprocess.run([*MAIN, "cluster", "-", "--k", "3", "--json"], stdin=f, capture_output=True, check=True)
    assert json.loads(done.stdout)["rows"] == 150


@pytest.mark.parametrize("width", [60, 100])
def test_text_fits_the_screen(table, width):
    for args in (["info", table], ["cluster", table, "--k", 8], ["reduce", table, "--k", 3], ["outliers", table]):
        done = run(*args, env={"COLUMNS": str(width)})
        assert max(map(len, done.stdout.splitlines())) <= width, args


def test_warnings_are_sentences_and_an_exit_code(numbers):
    done = run("fit", "GaussianMixture", numbers, "--k", 8, "--set", "max_iter=2", "--drop", "copies")
    assert done.exit_code == 3
    assert "note: GaussianMixture" in done.stderr
    assert "Warning" not in done.stderr
    assert ".py" not in done.stderr
    assert numbers.with_suffix(".unmix").exists()


# ---------------------------------------------------------------- nothing is lost


@pytest.mark.parametrize("forced", [[], ["--force"]])
def test_an_input_is_never_overwritten(table, tmp_path, forced, monkeypatch):
    before = hashes(tmp_path)
    (tmp_path / "link.csv").symlink_to(table)
    os.link(table, tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    ways = ["table.csv", "./table.csv", "../" + tmp_path.name + "/table.csv", "link.csv", "hard.csv", table]
    for out in ways:
        done = run("cluster", table, "--k", 2, "--out", out, *forced)
        assert done.exit_code == 1, out
        assert "is what is read" in done.stderr
    assert run("cluster", "link.csv", "--k", 2, "--save", "table.csv", *forced).exit_code == 1
    assert run("fit", "KMeans", "table.csv", "--k", 2, "--checkpoint", "table.csv", *forced).exit_code == 1
    assert run("select", "table.csv", "--plot", "table.csv", *forced).exit_code == 1
    assert {name: hashes(tmp_path)[name] for name in before} == before


def test_an_existing_file_needs_force(table, tmp_path):
    other = tmp_path / "mine.csv"
    other.write_text("precious")
    for option in ("--out", "--save"):
        done = run("cluster", table, "--k", 2, option, other)
        assert done.exit_code == 1
        assert "--force" in done.stderr
        assert other.read_text() == "precious"
    fine_now = run("cluster", table, "--k", 2, "--out", other, "--force")
    assert fine_now.exit_code == 0
    assert "group" in other.read_text()
    assert run("cluster", table, "--k", 2, "--out", tmp_path / "a.csv", "--save", tmp_path / "a.csv").exit_code == 1
    assert "is a folder" in run("cluster", table, "--k", 2, "--out", tmp_path).stderr


def test_a_file_that_appears_meanwhile_is_kept(table, tmp_path, monkeypatch):
    from unmix.cli import ends

    def meanwhile(*args):
        (tmp_path / "out.csv").write_text("precious")
        return write(*args)

    write = ends.write_beside
    monkeypatch.setattr(ends, "write_beside", meanwhile)
    done = run("cluster", table, "--k", 2, "--out", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert (tmp_path / "out.csv").read_text() == "precious"


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_stopped_leaves_nothing_half_written(tmp_path, by, code):
    rng = np.random.default_rng(0)
    work, kept = tmp_path / "work", tmp_path / "kept"
    work.mkdir()
    kept.mkdir()
    pd.DataFrame(rng.normal(size=(20_000, 30))).to_csv(work / "t.csv", index=False)
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + MAIN[2]
    endless = ["--model", "GaussianMixture", "--set", "tol=0", "--set", "max_iter=1000000"]
    args = ["cluster", "t.csv", "--k", "8", *endless, "--memory", "0.01"]
    process = subprocess.Popen(
        [sys.executable, "-c", hearing, *args, "--out", "o.csv", "--save", "m.unmix"],
        cwd=work,
        env={**os.environ, "TMPDIR": str(kept)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    began = time.monotonic()
    while not os.listdir(kept) and time.monotonic() - began < 60:  # the table is kept in a file as soon as it is read
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(by)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, (out, err)
    assert "Traceback" not in err
    assert ("half-written" in err) == (by == signal.SIGINT)
    assert os.listdir(work) == ["t.csv"]
    assert os.listdir(kept) == []


def test_a_reader_that_has_enough_is_no_error():
    command = f"{sys.executable} -c 'from unmix.cli.main import main; main()' models"
    out = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True, check=False)
    assert out.stdout.startswith("PCA: ")
    assert "Error" not in out.stderr


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["FILE"], 2, "unmix info"),
        (["clustr", "FILE"], 2, "did you mean 'cluster'?"),
        (["cluster", "FILE", "--modle", "KMeans"], 2, "--model"),
        (["fit", "KMean", "FILE"], 2, "did you mean KMeans?"),
        (["cluster", "FILE", "--model", "PCA"], 2, "unmix reduce"),
        (["reduce", "FILE", "--model", "KMeans"], 2, "unmix cluster"),
        (["fit", "KMeans", "FILE", "--set", "n_cluster=3"], 2, "n_clusters"),
        (["cluster", "FILE", "--as", "categry:town"], 2, "category"),
        (["cluster", "FILE", "--as", "town"], 2, "--as category:"),
        (["cluster", "FILE", "--k", "500"], 1, "500"),
        (["cluster", "FILE", "--k", "0"], 2, "--k"),
        (["cluster", "FILE", "--columns", "incme"], 1, "did you mean 'income'"),
        (["cluster", "FILE", "--columns", "since"], 1, "dates"),
        (["cluster", "FILE", "--weights", "town"], 1, "numbers"),
        (["fit", "NMF", "FILE", "--k", "2", "--columns", "delta"], 1, "egative"),
        (["apply", "FILE", "FILE", "--out", "x.csv"], 1, "damaged"),
        (["apply", "none.unmix", "FILE"], 1, "there is no file"),
        (["cluster", "none.csv"], 1, "there is no file"),
        (["cluster", "FILE", "--out", "none/x.csv"], 1, "there is no folder"),
        (["cluster", "FILE", "--out", "x.docx"], 1, ".parquet"),
        (["cluster", "FILE", "--out", "x"], 1, ".parquet"),
    ],
)
def test_errors_are_sentences(frame, tmp_path, monkeypatch, args, code, says):
    monkeypatch.chdir(tmp_path)
    frame.assign(delta=frame["age"] - 40).to_csv("table.csv", index=False)
    done = run(*("table.csv" if a == "FILE" else a for a in args))
    assert done.exit_code == code, done.output
    assert says in done.stderr
    assert "Traceback" not in done.output
    assert done.stderr.count("Error: ") == 1
    assert os.listdir(tmp_path) == ["table.csv"]


BAD = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "header_alone": b"a,b\n",
    "text_alone": b"x\nfoo\nbar\nbaz\nqux\nquux\n",
    "identifiers_alone": b"id,when\n1,2024-01-01\n2,2024-01-02\n3,2024-01-03\n",
    "ragged": b"a,b,c\n1,2\n3,4,5,6\n7,8,9\n1,2,3\n",
    "parquet": b"PAR1" + b"\0" * 40,
    "nan_alone": b"a,b\n,\n,\n,\n",
}


@pytest.mark.parametrize("name", list(BAD))
@pytest.mark.parametrize("command", ["info", "select", "cluster", "reduce", "outliers"])
def test_bad_files_are_told_in_a_sentence(tmp_path, name, command):
    path = tmp_path / f"{name}.csv"
    path.write_bytes(BAD[name])
    done = run(command, path)
    shown = command == "info" and "no column can be used" in done.stderr  # which is what there is to tell
    assert done.exit_code == (0 if shown else 1)
    assert shown or done.stderr.splitlines()[-1].startswith("Error: ")
    assert "bug" not in done.stderr
    assert path.read_bytes() == BAD[name]
    assert os.listdir(tmp_path) == [path.name]


def test_odd_but_good_files(tmp_path):
    (tmp_path / "one.csv").write_text("x\n1\n2\n3\n9\n8\n9.5\n")
    (tmp_path / "twice.csv").write_text("a,a,b\n1,2,x\n3,4,y\n5,6,x\n7,9,y\n")
    for name in ("one.csv", "twice.csv"):
        fine("info", tmp_path / name)
        assert run("cluster", tmp_path / name, "--k", 2, "--out", tmp_path / f"o_{name}").exit_code in (0, 3)
        assert "group" in (tmp_path / f"o_{name}").read_text()


def test_what_nobody_expected_is_a_bug_and_says_so(table, monkeypatch):
    def broken(*_, **__):
        raise KeyError("surprise")

    monkeypatch.setattr("unmix.cli.tables.Table", broken)
    done = run("cluster", table)
    assert done.exit_code == 1
    assert "this is a bug" in done.stderr
    assert unmix.__version__ in done.stderr
    assert "UNMIX_DEBUG=1" in done.stderr
    monkeypatch.setenv("UNMIX_DEBUG", "1")
    assert isinstance(run("cluster", table).exception, KeyError)


def test_times_of_day_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": pd.date_range("2021-03-13 12:12:07", periods=60, freq="7h"), "x": rng.normal(size=60)})
    frame["day"] = pd.date_range("2021-03-13", periods=60)
    frame["y"] = rng.normal(size=60)
    frame.to_csv(tmp_path / "t.csv", index=False)
    fine("cluster", tmp_path / "t.csv", "-k", 2, "--out", tmp_path / "o.csv")
    written = pd.read_csv(tmp_path / "o.csv", dtype=str)
    assert written["t"].tolist() == frame["t"].astype(str).tolist()
    assert written["day"].tolist() == frame["day"].dt.strftime("%Y-%m-%d").tolist()


def test_info_shows_a_table_that_cannot_be_used(tmp_path):
    (tmp_path / "t.csv").write_text("name,day\n" + "".join(f"Anna {i},2020-01-{i + 1:02d}\n" for i in range(20)))
    done = fine("info", tmp_path / "t.csv")
    assert "0 can be used" in done.stdout
    assert "no column can be used" in done.stderr


def test_a_saved_detector_judges_new_rows(table, tmp_path):
    fine("outliers", table, "--save", tmp_path / "d.unmix", "--out", tmp_path / "o.csv")
    fine("apply", tmp_path / "d.unmix", table, "--out", tmp_path / "n.csv")
    assert pd.read_csv(tmp_path / "n.csv")["p_value"].between(0, 1).all()
