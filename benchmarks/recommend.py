"""Recommenders: the time to an error of held-out ratings beside other packages, and `main`: how good predictions are.

`python -m benchmarks.recommend` prints errors, intervals and folds of the ratings in UNMIX_DATA: MovieLens 100k (the
u1 split and the five given folds) and Douban (3000 × 3000). Ranks and all else are chosen within the training part.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Case, Quality, Target, contestant

RANKS = (5, 10, 20)
RIDGES = (6.0, 12.0, 18.0, 24.0)  # of least squares on real ratings
RIDGE = 6.0  # of the planted ratings: of 2, 4, 6, 9 and 13 that with the least error after 15 passes
GOAL = 0.613  # RMSE of held-out ratings, of which 0.5 is noise
PASSES = {  # the fewest that reach it; stochastic gradients: of those tried, 100, 110, …
    "unmix": 14,
    "cmfrec": 15,
    "cmfrec, conjugate gradients": 16,
    "cornac": 100,
    "Surprise": 120,
    "implicit": 15,
}
STEPS = {"rate": 0.02, "ridge": 0.03}  # of stochastic gradients: the best of six and three tried


# ---------------------------------------------------------------- beside other packages


@dataclass
class Epochs(Case):
    """Planted ratings; each contestant makes the fewest passes over them that reach the error."""

    shape: tuple[int, int, int, int] = (6000, 4000, 32, 1_000_000)  # users, items, rank, ratings

    def data(self, size: str) -> Any:
        n, d, k, m = self.shape
        if size != "full":
            n, d, k, m = (300, 200, 4, 6000) if size == "quick" else (600, 400, k, 30_000)
        rng = np.random.default_rng(0)
        cell = np.unique(rng.integers(n * d, size=int(1.15 * m)))
        cell = rng.permutation(cell)[:m]
        i, j = np.divmod(cell, d)
        Z, V = rng.standard_normal((n, k)) / k**0.25, rng.standard_normal((d, k)) / k**0.25
        r = 3.5 + 0.3 * rng.standard_normal(n)[i] + 0.3 * rng.standard_normal(d)[j] + 0.5 * (Z[i] * V[j]).sum(axis=1)
        r = (r + 0.5 * rng.standard_normal(m)).astype(np.float32)
        held = np.zeros(m, bool)
        held[: m // 10] = True
        X = sp.csr_array((r[~held], (i[~held], j[~held])), shape=(n, d))
        return X, i[held], j[held], r[held], k

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """RMSE of held-out ratings."""
        r = data[3]
        return float(np.sqrt(np.mean((np.asarray(result["predicted"], np.float64) - r) ** 2)))

    @contestant("unmix", note="PMF, posterior='map', float32")
    def ours(self, data: Any, goal: Any) -> Any:
        import unmix

        unmix.set_config(progress=False)
        X, i, j, _, k = data
        passes = PASSES["unmix"]
        model = unmix.PMF(k, posterior="map", regularization=RIDGE, max_iter=passes, tol=0, random_state=0)
        return lambda: model.fit(X), lambda m: {"predicted": m.predict(i, j), "passes": passes}

    def cmfrec(self, data: Any, name: str, conjugate: bool) -> Any:
        """Both ways, with biases."""
        from cmfrec import CMF

        X, i, j, _, k = data
        how = {"method": "als", "use_cg": conjugate, "niter": PASSES[name], "verbose": False}
        model = CMF(k=k, lambda_=RIDGE, user_bias=True, item_bias=True, use_float=True, nthreads=os.cpu_count(), **how)
        coo = sp.coo_matrix(X)
        return lambda: model.fit(coo), lambda m: {"predicted": m.predict(i, j), "passes": PASSES[name]}

    @contestant("cmfrec", needs="cmfrec", note="CMF, Cholesky, biases, float32")
    def theirs(self, data: Any, goal: Any) -> Any:
        return self.cmfrec(data, "cmfrec", False)

    @contestant("cmfrec, conjugate gradients", needs="cmfrec", note="CMF, its default, biases, float32")
    def by_gradients(self, data: Any, goal: Any) -> Any:
        return self.cmfrec(data, "cmfrec, conjugate gradients", True)

    @contestant("cornac", needs="cornac", note="MF by stochastic gradients; making its set of ratings is not timed")
    def gradients(self, data: Any, goal: Any) -> Any:
        import cornac

        X, i, j, _, k = data
        coo = sp.coo_matrix(X)
        train = cornac.data.Dataset.from_uir(
            list(zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True))
        )
        how = {"learning_rate": STEPS["rate"], "lambda_reg": STEPS["ridge"], "use_bias": True, "seed": 0}
        model = cornac.models.MF(k=k, max_iter=PASSES["cornac"], **how)
        user, item = (
            np.array([known.get(v, -1) for v in at]) for at, known in ((i, train.uid_map), (j, train.iid_map))
        )

        def read(m: Any) -> dict[str, Any]:
            z, v = np.vstack([m.u_factors, 0 * m.u_factors[:1]]), np.vstack([m.i_factors, 0 * m.i_factors[:1]])
            biases = np.append(m.u_biases, 0.0)[user] + np.append(m.i_biases, 0.0)[item]
            predicted = m.global_mean + biases + (z[user] * v[item]).sum(axis=1)
            return {"predicted": predicted, "passes": PASSES["cornac"]}

        return lambda: model.fit(train), read

    @contestant(
        "Surprise", needs="surprise", note="SVD by stochastic gradients; making its set of ratings is not timed"
    )
    def surprise(self, data: Any, goal: Any) -> Any:
        import pandas as pd
        from surprise import SVD, Dataset, Reader

        X, i, j, _, k = data
        coo, passes = sp.coo_matrix(X), PASSES["Surprise"]
        frame = pd.DataFrame({"user": coo.row, "item": coo.col, "rating": coo.data})
        train = Dataset.load_from_df(frame, Reader(rating_scale=(-20, 30))).build_full_trainset()
        model = SVD(n_factors=k, n_epochs=passes, lr_all=STEPS["rate"], reg_all=STEPS["ridge"], random_state=0)

        def read(m: Any) -> dict[str, Any]:
            predicted = [m.predict(int(a), int(b), clip=False).est for a, b in zip(i, j, strict=True)]
            return {"predicted": predicted, "passes": passes}

        return lambda: model.fit(train), read

    @contestant(
        "implicit", needs="implicit", note="ALS of another objective (preferences): its time is beside, not compared"
    )
    def preferences(self, data: Any, goal: Any) -> Any:
        from implicit.als import AlternatingLeastSquares

        X, i, j, _, k = data
        model = AlternatingLeastSquares(factors=k, iterations=PASSES["implicit"], regularization=RIDGE, random_state=0)
        rows = sp.csr_matrix(X)

        def fit() -> Any:
            model.fit(rows, show_progress=False)
            return model

        def read(m: Any) -> dict[str, Any]:
            return {"predicted": (m.user_factors[i] * m.item_factors[j]).sum(axis=1), "passes": PASSES["implicit"]}

        return fit, read


CASES = [
    Epochs(
        name="recommend-als",
        title="PMF, rank 32, a million planted ratings of 6000 users, to the same error of those held out",
        quality=Quality("RMSE of held-out ratings", goal=GOAL),
        targets=(Target(1.5, ("cmfrec", "cmfrec, conjugate gradients")), Target(5, ("Surprise",))),
    ),
]


# ---------------------------------------------------------------- how good predictions are


def folder() -> Path:
    """Where the ratings are."""
    return Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))


def movielens() -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The u1 split, and the five given folds."""
    import pandas as pd

    where, names = folder() / "ml-100k", ["user", "item", "rating", "time"]
    every = pd.read_csv(where / "u.data.gz", sep="\t", names=names)
    train, test = (pd.read_csv(where / f"u1.{s}.gz", sep="\t", names=names) for s in ("base", "test"))
    folds = []
    for f in range(1, 6):
        held = pd.read_csv(where / f"u{f}.test.gz", sep="\t", names=names)
        out = every.merge(held[["user", "item"]], how="left", indicator=True)["_merge"] == "both"
        folds.append((every[~out.to_numpy()], held))
    return train, test, folds


def douban() -> tuple[Any, Any]:
    """The given split."""
    import pandas as pd

    d = np.load(folder() / "douban-3k" / "douban.npz")
    parts = []
    for part in ("train", "test"):
        user, item = d[part].T
        parts.append(pd.DataFrame({"user": user, "item": item, "rating": d[f"{part}_rating"]}))
    return parts[0], parts[1]


def chosen_rank(train: Any, ranks: tuple[int, ...] = RANKS) -> int:
    """The rank that predicts a tenth of the training part best, fitted to the rest of it."""
    from unmix import PMF
    from unmix.recommend import evaluate, split

    inner, held = split(train, "random", test=0.1, random_state=0)
    errors = {k: evaluate(PMF(k, max_iter=30, random_state=0).fit(inner), held).rmse for k in ranks}
    return min(errors, key=lambda k: errors[k])


def chosen_ridge(train: Any, ranks: tuple[int, ...] = RANKS) -> tuple[int, float]:
    """The rank and λ of least squares, chosen the same way."""
    from unmix import PMF
    from unmix.recommend import evaluate, split

    inner, held = split(train, "random", test=0.1, random_state=0)
    how = {"posterior": "map", "max_iter": 100, "random_state": 0}
    errors = {
        (k, ridge): evaluate(PMF(k, regularization=ridge, **how).fit(inner), held).rmse
        for k in ranks
        for ridge in RIDGES
    }
    return min(errors, key=lambda which: errors[which])


def by_users(model: Any, train: Any, test: Any) -> list[float]:
    """Coverage of 90 % intervals in each third of the users, by how many ratings they have in training."""
    from unmix.recommend import evaluate

    activity = train["user"].value_counts()
    rank = activity.rank(method="first") / len(activity)
    part = np.ceil(3 * test["user"].map(rank).fillna(0.01)).clip(1, 3)
    return [evaluate(model, test[part == i]).coverage for i in (1, 2, 3)]


def line(name: str, model: Any, train: Any, test: Any, seconds: float) -> None:
    """One line of the table."""
    from unmix.recommend import evaluate

    s = evaluate(model, test)
    more = ""
    if np.isfinite(s.coverage):
        held = "/".join(f"{v:.1%}" for v in by_users(model, train, test))
        more = f"  90 %: {s.coverage:.1%} ({held} by users)  log {s.log_score:.4f}, constant {s.log_score_constant:.4f}"
    print(f"{name:38s} RMSE {s.rmse:.4f}  MAE {s.mae:.4f}  {seconds:5.1f} s{more}", flush=True)


def accuracy(which: str) -> None:
    """Errors on one set."""
    from unmix import PMF
    from unmix.recommend import Neighbours

    train, test = douban() if which == "douban" else movielens()[:2]
    print(f"== {which}: {len(train):,} ratings, {len(test):,} held out")
    rank = chosen_rank(train)
    k, ridge = chosen_ridge(train)
    print(f"chosen within the training part: rank {rank}; of least squares rank {k} and λ = {ridge:g}")
    models = {
        "biases alone, PMF(0)": PMF(0, random_state=0),
        f"PMF({rank})": PMF(rank, random_state=0),
        f"PMF({k}, posterior='map'), λ = {ridge:g}": PMF(k, posterior="map", regularization=ridge, random_state=0),
        "Neighbours(by='item')": Neighbours(),
        "Neighbours(by='user')": Neighbours(by="user"),
    }
    for name, model in models.items():
        began = time.perf_counter()
        model.fit(train)
        line(name, model, train, test, time.perf_counter() - began)


def five_folds() -> None:
    """The five given folds of MovieLens; the rank is chosen in each."""
    from unmix import PMF
    from unmix.recommend import evaluate

    found = []
    for f, (train, test) in enumerate(movielens()[2]):
        rank = chosen_rank(train)
        model, plain = PMF(rank, random_state=0).fit(train), PMF(0, random_state=0).fit(train)
        s, b = evaluate(model, test), evaluate(plain, test)
        found.append((s.rmse, s.mae, s.coverage, s.log_score, s.log_score_constant, b.rmse))
        print(
            f"fold {f + 1}: rank {rank}, RMSE {s.rmse:.4f}, biases alone {b.rmse:.4f}, 90 %: {s.coverage:.1%}",
            flush=True,
        )
    mean = np.mean(found, axis=0)
    print(
        f"mean: RMSE {mean[0]:.4f}, MAE {mean[1]:.4f}, 90 %: {mean[2]:.1%}, log {mean[3]:.4f} (constant "
        f"{mean[4]:.4f}), biases alone {mean[5]:.4f}"
    )


def folding() -> None:
    """New users from ten ratings, beside a fit that saw the same ten."""
    import pandas as pd

    from unmix import PMF
    from unmix.recommend import evaluate

    every = movielens()[2]
    whole = pd.concat(every[0], ignore_index=True)
    rng = np.random.default_rng(0)
    users = whole["user"].unique()
    new = set(rng.permutation(users)[: len(users) // 5].tolist())
    mine = whole[whole["user"].isin(new)].sample(frac=1, random_state=0)
    ten = mine.groupby("user").head(10)
    rest, old = mine.drop(ten.index), whole[~whole["user"].isin(new)]
    full = PMF(10, random_state=0).fit(pd.concat([old, ten]))
    folded = PMF(10, random_state=0).fit(old).fold_in(ten)
    a, b = evaluate(full, rest), evaluate(folded, rest)
    print(
        f"new users, ten ratings: folded in {b.rmse:.4f}, in a full fit {a.rmse:.4f}, {b.rmse / a.rmse - 1:+.2%}; "
        f"90 %: {b.coverage:.1%}"
    )


def main() -> None:
    """Print what was asked for."""
    import unmix

    parser = argparse.ArgumentParser(prog="python -m benchmarks.recommend", description=__doc__)
    parser.add_argument("what", nargs="*", default=["u1", "folds", "douban", "new users"])
    unmix.set_config(progress=False)
    warnings.filterwarnings("ignore", message=".*not converged")  # fits of few passes, to choose a rank
    for what in parser.parse_args().what:
        {"u1": lambda: accuracy("u1"), "douban": lambda: accuracy("douban"), "folds": five_folds}.get(what, folding)()


if __name__ == "__main__":
    main()
