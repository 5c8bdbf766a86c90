"""`unmix impute`: empty cells filled, said how well, and nothing else changed."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from unmix.cli.main import main


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    who = np.arange(120) % 3
    frame = pd.DataFrame(
        {
            "code": [f"{i:05d}" for i in range(120)],
            "age": (np.array([25, 45, 70])[who] + rng.normal(0, 2, 120)).round(1),
            "visits": rng.poisson(np.array([1, 5, 20])[who]).astype(float),
            "town": np.array(["Ulm", "Bonn", "Kiel"])[who],
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, 120), unit="D"),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[1::9, "visits"] = np.nan
    frame.loc[2::11, "town"] = None
    frame.loc[5, "since"] = pd.NaT
    return frame


@pytest.fixture
def table(frame, tmp_path):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def run(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def fine(*args):
    done = run(*args)
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def test_a_table_is_filled_and_nothing_else_changed(table, frame, tmp_path):
    out, std = tmp_path / "filled.csv", tmp_path / "sure.csv"
    before = table.read_bytes()
    told = fine("impute", table, "--out", out, "--std", std, "--draws", 2)
    assert table.read_bytes() == before
    filled = pd.read_csv(out, dtype={"code": str}, parse_dates=["since"])
    assert list(filled.columns) == list(frame.columns)
    for name in frame.columns:
        seen = frame[name].notna()
        assert (filled[name][seen] == frame[name][seen]).all(), name
    assert not filled[["age", "visits", "town"]].isna().any().any()
    assert filled["since"].isna().sum() == 1
    assert (filled["visits"] == filled["visits"].round()).all()
    holes = frame[["age", "visits", "town"]].isna().sum().sum()
    assert f"{holes} empty cells" in told.output
    assert "age" in told.output
    assert "%" in told.output
    sure = pd.read_csv(std)
    assert (sure["age"][frame["age"].notna()] == 0).all()
    assert (sure["age"][frame["age"].isna()] > 0).all()
    draws = [pd.read_csv(tmp_path / f"filled-{i}.csv") for i in (1, 2)]
    assert (draws[0]["age"] != draws[1]["age"]).any()
    assert not draws[0]["town"].isna().any()


def test_nothing_is_overwritten(table, tmp_path):
    out = tmp_path / "filled.csv"
    out.write_text("mine")
    for arguments, said in (
        (["--out", out], "exists"),
        (["--out", table], "is what is read"),
        (["--out", tmp_path / "new.csv", "--std", out], "exists"),
        (["--draws", 2], "--out"),
        (["--out", tmp_path / "new.txt"], "not written"),
        (["--out", tmp_path / "new.csv", "--std", tmp_path / "new.csv", "--force"], "is the same file as --out"),
        (["--out", tmp_path / "new.csv", "--std", tmp_path / "new-1.csv", "--draws", 2], "is the same file as --std"),
    ):
        done = run("impute", table, *arguments)
        assert done.exit_code in (1, 2)
        assert said in done.output
    assert out.read_text() == "mine"
    (tmp_path / "new-1.csv").write_text("mine")
    assert run("impute", table, "--out", tmp_path / "new.csv", "--draws", 1).exit_code == 1
    assert not (tmp_path / "new.csv").exists()


def test_one_document_for_machines(table, frame):
    found = json.loads(fine("impute", table, "--json").output)
    assert found["empty"] == frame[["age", "visits", "town"]].isna().sum().sum()
    assert found["chosen"] in found["scores"]
    by = {c["name"]: c for c in found["columns"]}
    assert by["age"]["error"] < by["age"]["baseline"]
    assert by["town"]["error"] < 0.5


def test_a_kept_imputer_fills_other_rows(table, frame, tmp_path):
    kept, new, out = tmp_path / "i.unmix", tmp_path / "new.csv", tmp_path / "new_filled.csv"
    fine("impute", table, "--save", kept)
    frame.iloc[:30].assign(more=1).to_csv(new, index=False)
    fine("apply", kept, new, "--out", out)
    filled = pd.read_csv(out)
    assert not filled[["age", "visits", "town"]].isna().any().any()
    assert (filled["more"] == 1).all()
    assert "Imputer" in fine("info", kept).output


def test_to_the_standard_output_and_from_an_array(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 1] = X[:, 0]
    X[3, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    done = fine("impute", tmp_path / "x.npy", "--out", "-", "--quiet")
    assert len(done.stdout.strip().splitlines()) == 41
