"""`unmix.roles`: access lists as people have them, roles and wrong grants that were planted, files that are written."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import unmix
from unmix.access import access_list, is_access_list, review
from unmix.access.grants import calibrated, expected, listed
from unmix.cli.main import main
from unmix.table import TableError

DATA = Path(os.environ.get("UNMIX_DATA", "../shared/data"))


def planted(n=400, d=60, k=6, seed=0):
    """Users with one or two of some roles."""
    rng = np.random.default_rng(seed)
    roles = np.zeros((k, d), bool)
    for r in range(k):
        roles[r, rng.permutation(d)[:12]] = True
    members = np.zeros((n, k), bool)
    members[np.arange(n), rng.integers(k, size=n)] = True
    members[np.arange(n), rng.integers(k, size=n)] = True
    return members @ roles, roles, members


def as_pairs(X):
    return [(f"u{i}", f"p{j}") for i, j in np.argwhere(X)]


# ------------------------------------------------------------------ reading


def test_every_form_of_a_list_is_the_same_list(tmp_path):
    X, _, _ = planted(20, 9, 3)
    X = X[X.any(axis=1)][:, X.any(axis=0)]
    pairs = as_pairs(X)
    (tmp_path / "a.csv").write_text("account,group name\n" + "".join(f"{u},{p}\n" for u, p in pairs))
    (tmp_path / "b.csv").write_text("who is it;granted;x\n" + "".join(f"{u};{p};1.5\n" for u, p in pairs))
    frame = pd.DataFrame(X.astype(int), columns=[f"p{j}" for j in range(X.shape[1])])
    frame.insert(0, "name", [f"u{i}" for i in range(len(X))])
    frame.to_csv(tmp_path / "m.csv", index=False)
    lines = [" ".join([f"u{i}", *(f"p{j}" for j in np.flatnonzero(row))]) for i, row in enumerate(X)]
    (tmp_path / "r.rmp").write_text("# made by hand\n" + "\n".join(lines))
    lists = [
        access_list(pairs),
        access_list(np.array(pairs)),
        access_list(tmp_path / "a.csv"),
        access_list(unmix.Table(tmp_path / "a.csv")),
        access_list(tmp_path / "b.csv", names=["who is it", "granted"]),
        access_list(tmp_path / "m.csv"),
        access_list(frame),
        access_list(tmp_path / "r.rmp"),
    ]
    for found in lists:
        order = [found.users.index(f"u{i}") for i in range(len(X))]
        columns = [found.permissions.index(f"p{j}") for j in range(X.shape[1])]
        assert np.array_equal(found.ones.toarray()[np.ix_(order, columns)], X)
    for found in (access_list(X), access_list(sp.csr_matrix(X)), access_list(X.astype(float))):
        assert np.array_equal(found.ones.toarray(), X)


def test_pairs_that_are_twice_and_ids_with_blanks_are_told():
    found = access_list([("ann ", "read"), ("ann", " read"), ("bob", "write"), ("", "write")])
    assert (found.users, found.permissions, found.ones.nnz) == (["ann", "bob"], ["read", "write"], 2)
    assert found.notes == [
        "2 ids had blanks before or behind them, which are no part of them",
        "1 lines without a user or a permission left out",
        "1 grants occur more than once; each counts once",
    ]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([("", "read")], "access list is empty"),
        (np.zeros((3, 4)), "access list is empty"),
        (np.array([[0.0, 1.0, 2.0], [1.0, 0.0, np.nan]]), "X holds 2.0"),
        (sp.csr_matrix([[0, 3, 1]]), "X holds 3"),
        (pd.DataFrame({"a": ["x", "y"], "b": [1, 2], "c": ["q", "r"]}), "which columns hold users"),
        (pd.DataFrame({"id": ["x", "y"], "b": [1, 0], "c": [0, 1], "e": [1, 7]}), "'e' holds 7"),
        (pd.DataFrame({"user": [], "permission": []}), "no rows"),
    ],
)
def test_bad_lists_are_refused_in_a_sentence(bad, words):
    with pytest.raises(TableError, match=words):
        unmix.roles(bad)


def test_unknown_cells_are_neither_granted_nor_judged():
    X, _, _ = planted()
    cells = X.astype(float)
    cells[:, 0] = np.nan
    cells[0, 1:] = X[0, 1:]
    found = unmix.roles(cells)
    assert not any(c["permission"] == "permission1" for c in found.to_dict()["review"])


# ------------------------------------------------------------------ wrong grants


def test_expected_cells_leave_themselves_out():
    X, _, _ = planted(30, 12, 3)
    for x in (X, X.T.copy()):
        plain = expected(x.astype(np.float32))
        other = x.copy()
        other[3, 5] = ~other[3, 5]
        penalties = {}
        for name, cells in (("plain", x), ("other", other)):
            y = cells.astype(float)
            own = [k for k in range(y.shape[1]) if k != 5]
            rows = [k for k in range(len(y)) if k != 3]
            A = y[np.ix_(rows, own)]
            for penalty in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
                w = np.linalg.solve(A.T @ A + penalty * np.eye(len(own)), A.T @ y[rows, 5])
                penalties[name, penalty] = float(y[3, own] @ w)
        assert any(abs(plain[3, 5] - penalties["plain", p]) < 1e-3 for p in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
        assert all(abs(penalties["plain", p] - penalties["other", p]) < 1e-12 for p in (1.0, 30.0))


def test_shares_of_bins_rise_and_hold_enough_of_both():
    rng = np.random.default_rng(1)
    score = rng.random(50_000).astype(np.float32)
    p, rates = calibrated(score, rng.random(50_000) < score)
    assert np.abs(p - score).mean() < 0.03
    assert (np.diff(rates) >= 0).all()
    assert listed(np.array([1.0, 0.9, 0.5]), 0.1) == 2
    assert listed(np.array([0.5]), 0.1) == 0


def test_planted_wrong_grants_are_found_at_the_rate_promised():
    X, _, _ = planted(1500, 300, 10)
    flipped = np.random.default_rng(2).random(X.shape) < 0.05
    found = review(sp.csr_array(X ^ flipped), fdr=0.1)
    called = np.vstack([found.extra[: found.extras], found.missing[: found.missings]])
    right = flipped[tuple(called.T)]
    assert right.mean() > 0.87
    assert right.sum() > 0.3 * flipped.sum()
    assert 0.03 < found.rate < 0.05


def test_nothing_is_called_wrong_in_a_list_that_is_right():
    X, _, _ = planted(1500, 300, 10)
    found = review(sp.csr_array(X))
    assert (found.extras, found.missings) == (0, 0)


@pytest.mark.slow
def test_flips_of_a_real_list_are_found_at_the_rate_promised():
    if not (DATA / "hp-roles").is_dir():
        pytest.skip("UNMIX_DATA does not name the folder of data")
    from benchmarks.wrong_grants import draw, loaded

    found = draw(loaded("apj"), 0.03, 0, 0.1)
    assert found["fdr"] < 0.13
    assert found["found"] > 0.3


# ------------------------------------------------------------------ roles


def test_planted_roles_come_back_and_nobody_gets_anything_new():
    X, roles, _ = planted()
    found = unmix.roles(X).found
    assert {*map(tuple, found.roles.tolist())} >= {*map(tuple, roles.tolist())}
    assert not (found.given & ~X).any()
    assert found.coverage == 1.0
    assert (found.stable > 0.9).sum() >= len(roles)
    assert found.explained.tolist().count("fully") == len(X)


def test_roles_of_a_noisy_list_are_those_behind_it():
    X, roles, _ = planted(1000, 200, 8)
    flipped = np.random.default_rng(2).random(X.shape) < 0.03
    found = unmix.roles(X ^ flipped, 8).found
    both = found.roles.astype(int) @ roles.T.astype(int)
    either = found.roles.sum(axis=1)[:, None] + roles.sum(axis=1) - both
    assert (both / either).max(axis=0).mean() > 0.9


def test_the_number_of_roles_is_given_or_refused():
    X, _, _ = planted()
    assert len(unmix.roles(X, 3, fdr=None).found.names) == 3
    with pytest.raises(ValueError, match="n_roles=0"):
        unmix.roles(X, 0)
    with pytest.raises(ValueError, match=r"fdr=1\.5"):
        unmix.roles(X, fdr=1.5)


def test_attributes_name_roles():
    X, _, members = planted(60, 20, 2)
    X, members = X[members.sum(axis=1) == 1], members[members.sum(axis=1) == 1]
    staff = pd.DataFrame({"id": [f"u{i}" for i in range(len(X))], "team": np.where(members[:, 0], "sales", "stock")})
    found = unmix.roles(as_pairs(X), users=staff, fdr=None)
    assert {"team sales", "team stock"} <= set(found.found.names)
    with pytest.raises(TableError, match="none of the users"):
        unmix.roles(as_pairs(X), users=staff.assign(id="nobody"))


def test_dormant_direct_and_excluded_are_left_out():
    X, _, _ = planted()
    pairs = as_pairs(X)
    emergency = pairs[0]
    found = unmix.roles(pairs, dormant=["u7", "u9"], exclude=["p3"], direct=[emergency])
    told = found.to_dict()
    assert told["users"]["left_out"] == {"dormant users": 2, "excluded permissions": 1, "direct grants": 1}
    assert emergency not in {(c["user"], c["permission"]) for c in told["review"]}
    assert not {"u7", "u9"} & {m for role in told["list"] for m in role["members"]}
    with pytest.raises(TableError, match="'nobody'"):
        unmix.roles(pairs, dormant=["nobody"])
    with pytest.raises(TableError, match="no grant of the list"):
        unmix.roles(pairs, direct=[("u7", "p99")])


# ------------------------------------------------------------------ pages and files


@pytest.fixture
def file(tmp_path):
    """Pairs in a file."""
    path = tmp_path / "access.csv"
    path.write_text("user,permission\n" + "".join(f"{u},{p}\n" for u, p in as_pairs(planted()[0])))
    return path


def test_the_command_writes_what_can_be_imported(file, tmp_path):
    page, folder = tmp_path / "roles.html", tmp_path / "out"
    asked = ["roles", str(file), "--out", str(page), "--csv", str(folder), "--json"]
    told = json.loads(CliRunner().invoke(main, asked, catch_exceptions=False).stdout)
    assert "<h2>What to review first</h2>" in page.read_text()
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("roles", "assignments", "direct", "review")}
    held = tables["assignments"].merge(tables["roles"])[["user", "permission"]].drop_duplicates()
    granted = pd.read_csv(file)
    assert len(held.merge(granted)) == len(held) == len(granted) - len(tables["direct"])
    assert [r["role"] for r in told["list"]] == list(dict.fromkeys(tables["roles"]["role"]))
    again = CliRunner().invoke(main, asked)
    assert again.exit_code == 1
    assert "exists" in again.output


def test_the_command_says_what_is_wrong(file, tmp_path):
    (tmp_path / "empty.csv").write_text("user,permission\n")
    (tmp_path / "odd.csv").write_text("a,b,c\nx,y,z\nv,w,z\n")
    for asked, words in (
        ([str(tmp_path / "empty.csv")], "no rows"),
        ([str(tmp_path / "odd.csv")], "which columns hold users"),
        ([str(file), "--names", "user,right"], "no column 'right'"),
        ([str(file), "--out", "roles.pdf"], ".html"),
        ([str(file), "--csv", str(file)], "is a file"),
    ):
        ran = CliRunner().invoke(main, ["roles", *asked])
        assert ran.exit_code == 1, ran.output
        assert words in ran.output


def test_the_report_tells_the_roles_of_an_access_list():
    X, _, _ = planted(24, 10, 2)
    frame = pd.DataFrame(as_pairs(X), columns=["user", "permission"])
    assert unmix.report(frame).to_dict()["access"]["coverage"] == 1.0


def test_a_table_of_users_who_have_a_group_is_no_access_list():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": [f"u{i}" for i in range(60)], "group": rng.choice(["a", "b"], 60)})
    assert is_access_list(unmix.Table(frame.assign(age=rng.normal(size=60)), kinds={"group": "category"}).raw)
    wide = frame.assign(**{f"x{j}": rng.normal(size=60) for j in range(3)})
    assert not is_access_list(unmix.Table(wide).raw)


def test_of_a_long_table_few_rows_are_looked_at(monkeypatch):
    raw = unmix.Table(pd.DataFrame(np.random.default_rng(0).normal(size=(5000, 12))).add_prefix("x")).raw
    asked, whole = [], raw.slice
    monkeypatch.setattr(raw, "slice", lambda a, b, names: asked.append(b - a) or whole(a, b, names))
    assert not is_access_list(raw)
    assert asked == [1000]
