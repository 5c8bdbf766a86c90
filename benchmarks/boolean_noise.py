"""Roles under noise, in the manner of Frank et al. (2012): what is found of planted roles, and of new users.

`python -m benchmarks.boolean_noise [draws] [--setup three|five] [--save]`

D = 50 permissions. "three": K = 3 roles, N = 350 users, 50 for each of the 7 sets of one to three roles. "five": K = 5,
N = 450 users, 30 for each of the 15 sets of one or two roles. A role has each permission with probability 0.4, so that
two roles share four tenths of what either has. A share ε of all cells is noise, 0 to 60 %: a 1 with probability r = ½.

- parameter mismatch: mean |û − u| over the cells of the roles, matched as well as can be; of models that give
  probabilities these are compared. In percent.
- generalisation error: as many new users with the same noise, of whom half of the cells, drawn for each, are shown; the
  share of the others that is predicted other than it is without noise. In percent.
- ε̂ − ε, where noise is estimated: the mean, and the largest in size, over draws.

Every method is told K, and nothing else. `--save` keeps the means in boolean_noise.json, from which the docs have their
picture.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

import unmix

D, DENSITY, R = 50, 0.4, 0.5
LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
FILE = Path(__file__).with_name("boolean_noise.json")
Fitted = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray], float]  # roles, predicted cells of holed rows, ε̂


class Setup(NamedTuple):
    """How many roles, how many of them a user has, and users for each set of roles."""

    k: int
    most: int
    each: int


SETUPS = {"three": Setup(3, 3, 50), "five": Setup(5, 2, 30)}


class Planted(NamedTuple):
    """Roles, cells of some users, cells of others with holes, and these without noise and holes."""

    roles: np.ndarray
    X: np.ndarray
    shown: np.ndarray
    truth: np.ndarray


def planted(setup: Setup, noise: float, draw: int) -> Planted:
    """One draw: the same roles and users at every level of noise."""
    rng = np.random.default_rng([draw, setup.k])
    roles = rng.random((setup.k, D)) < DENSITY
    sets = np.array(
        [np.isin(np.arange(setup.k), s) for m in range(1, setup.most + 1) for s in combinations(range(setup.k), m)]
    )
    truth = np.repeat(sets, setup.each, axis=0) @ roles

    def noisy() -> np.ndarray:
        wrong = rng.random(truth.shape) < noise
        return np.where(wrong, rng.random(truth.shape) < R, truth).astype(float)

    X, new = noisy(), noisy()
    hidden = rng.random(truth.shape).argsort(axis=1) < D // 2
    return Planted(roles, X, np.where(hidden, np.nan, new), truth)


def boolean(model: Any, X: np.ndarray) -> Fitted:
    """A model without probabilities: cells by the product of assignments and roles."""
    model.fit(X)
    return model.roles_, lambda holes: model.inverse_transform(model.transform(holes)) > 0.5, np.nan


def multi(setup: Setup, X: np.ndarray, seed: int) -> Fitted:
    """Cells by their probability, as those of the mixtures."""
    model = unmix.MultiAssignmentClustering(setup.k, max_roles=setup.most, random_state=seed).fit(X)
    return model.roles_, lambda holes: model.impute(holes) > 0.5, model.noise_rate_


def mixture(few: bool) -> Callable[[Setup, np.ndarray, int], Fitted]:
    """A Bernoulli mixture of K components, or of one for each set of roles."""

    def fit(setup: Setup, X: np.ndarray, seed: int) -> Fitted:
        sets = sum(1 for m in range(1, setup.most + 1) for _ in combinations(range(setup.k), m))
        model = unmix.Mixture(setup.k if few else sets, family="bernoulli", n_init=10, random_state=seed).fit(X)
        return model.means_, lambda holes: model.impute(holes) > 0.5, np.nan

    return fit


METHODS: dict[str, Callable[[Setup, np.ndarray, int], Fitted]] = {
    "MultiAssignmentClustering": multi,
    "DiscreteBasis": lambda s, X, seed: boolean(unmix.DiscreteBasis(s.k), X),
    "RoleMiner fast": lambda s, X, seed: boolean(unmix.RoleMiner(s.k), X),
    "RoleMiner complete": lambda s, X, seed: boolean(unmix.RoleMiner(s.k, method="complete"), X),
    "Bernoulli mixture, K": mixture(True),
    "Bernoulli mixture, sets": mixture(False),
    "RoundedSVD": lambda s, X, seed: boolean(unmix.RoundedSVD(s.k), X),
}


def mismatch(found: np.ndarray, roles: np.ndarray) -> float:
    """Mean |û − u| of roles matched as well as can be."""
    cost = np.abs(found[:, None].astype(float) - roles[None]).mean(axis=2)
    return float(cost[linear_sum_assignment(cost)].mean())


def measure(setup: Setup, noise: float, draw: int) -> dict[str, tuple[float, float, float, float]]:
    """Mismatch, generalisation error, ε̂ − ε and seconds of every method."""
    data, out = planted(setup, noise, draw), {}
    hidden = np.isnan(data.shown)
    for name, method in METHODS.items():
        began = time.perf_counter()
        roles, predict, rate = method(setup, data.X, draw)
        seconds = time.perf_counter() - began
        wrong = float((predict(data.shown) != data.truth)[hidden].mean())
        out[name] = 100 * mismatch(roles, data.roles), 100 * wrong, rate - noise, seconds
    return out


def main() -> None:
    """Print the table; keep it if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boolean_noise")
    parser.add_argument("draws", nargs="?", type=int, default=10)
    parser.add_argument("--setup", choices=SETUPS, default="three")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept: dict[str, Any] = {name: {"mismatch": [], "generalisation": []} for name in METHODS}
    for noise in LEVELS:
        runs = [measure(SETUPS[options.setup], noise, draw) for draw in range(options.draws)]
        for name in METHODS:
            values = np.array([run[name] for run in runs])
            mean = values.mean(axis=0)
            rate = "" if np.isnan(mean[2]) else f"  ε̂ − ε {mean[2]:+.3f}, at most {np.abs(values[:, 2]).max():.3f}"
            print(f"{noise:.0%}  {name:26} {mean[0]:6.2f} {mean[1]:6.2f} {mean[3]:7.2f} s{rate}", flush=True)
            kept[name]["mismatch"].append(round(mean[0], 3))
            kept[name]["generalisation"].append(round(mean[1], 3))
    if options.save:
        known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        known[options.setup] = {"noise": LEVELS, "draws": options.draws, "methods": kept}
        FILE.write_text(json.dumps(known, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
