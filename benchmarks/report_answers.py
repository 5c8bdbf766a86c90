"""What `unmix.report` says of sixteen tables: how many groups, how sure, and how far they are the known classes.

    python -m benchmarks.report_answers                       # all of them
    python -m benchmarks.report_answers iris golub            # some
    python -m benchmarks.report_answers --save pages          # and write the pages there
    python -m benchmarks.report_answers --alone               # without scikit-learn, which takes most of the time

Columns of the classes are given as labels: they are in no fit. ARI is the adjusted Rand index of the page's groups with
the classes, over the rows that the page looked at. Beside it stands the best index of scikit-learn's `KMeans` and
`GaussianMixture` of each type of covariance, ten starts each, that are told the true number of classes, on
standardised columns: which of them is best is known from the classes alone. Covariances of more than a hundred columns
are diagonal or spherical. Golub has a line of its own, since there the columns as they are matter, too.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.io import arff
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import unmix
from benchmarks.harness import tell

DATA = Path(os.environ.get("UNMIX_DATA", Path(__file__).parents[2] / "shared" / "data"))
NARROW = 100  # columns, up to which covariances are full
STARTS = 10
HEAD = (
    f"{'table':14} {'rows × columns':>14}  {'groups':>6} {'range':>7} {'word':5} {'model':16} {'classes':>7} {'ARI':>5}"
)
HEAD += f" {'theirs':>6}  {'seconds':>7}"


class Asked(NamedTuple):
    """A table, and which of its columns are classes."""

    frame: pd.DataFrame
    classes: list[str]


def bundled(name: str, classes: bool = True) -> Asked:
    """A table of scikit-learn's."""
    found = getattr(datasets, f"load_{name}")(as_frame=True)
    return Asked(found.data.assign(**({"class": found.target.astype(str)} if classes else {})), ["class"] * classes)


def stored(path: str, *classes: str, drop: tuple[str, ...] = (), **how: Any) -> Asked:
    """A table from the folder of real data."""
    return Asked(pd.read_csv(DATA / path, **how).drop(columns=[*drop]), [*classes])


def golub() -> Asked:
    """Expression of 5000 genes in 38 samples of three kinds of leukaemia."""
    cells = np.loadtxt(DATA / "golub-all-aml/ALL_AML_data.txt.gz")
    names = (DATA / "golub-all-aml/ALL_AML_samples.txt").read_text().split("\n")[: cells.shape[1]]
    kinds = ["AML" if "AML" in name else name.split("_")[-1] for name in names]
    return Asked(pd.DataFrame(cells.T).add_prefix("gene ").assign(kind=kinds), ["kind"])


def letter() -> Asked:
    """Sixteen measures of each of 20 000 printed letters."""
    with gzip.open(DATA / "letter/letter.arff.gz", "rt") as f:
        frame = pd.DataFrame(arff.loadarff(f)[0])
    last = frame.columns[-1]
    return Asked(frame.assign(**{last: frame[last].str.decode("ascii")}), [last])


def pbmc3k() -> Asked:
    """Expression of 2000 genes in 2638 cells, whose types are those of a clustering."""
    cells = sp.load_npz(DATA / "pbmc3k/pbmc3k_lognorm_2000genes.npz").toarray()
    kinds = pd.read_csv(DATA / "pbmc3k/cells.csv.gz")["classified"]
    with gzip.open(DATA / "pbmc3k/genes.txt.gz", "rt") as f:
        names = f.read().split("\n")
    return Asked(pd.DataFrame(cells, columns=names[: cells.shape[1]]).assign(**{"cell type": kinds}), ["cell type"])


def drawn(law: str) -> Asked:
    """Rows without groups: unrelated columns, or one Gaussian with axes of several lengths."""
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(500, 6)) if law == "noise" else rng.normal(size=(500, 5)) @ rng.normal(size=(5, 5))
    return Asked(pd.DataFrame(cells).add_prefix("x"), [])


TABLES: dict[str, Callable[[], Asked]] = {
    "wine": lambda: bundled("wine"),
    "digits": lambda: bundled("digits"),
    "breast-cancer": lambda: bundled("breast_cancer"),
    "iris": lambda: bundled("iris"),
    "diabetes": lambda: bundled("diabetes", classes=False),
    "airquality": lambda: stored("missing/airquality.csv", drop=("rownames",)),
    "horse-colic": lambda: stored("missing/horse-colic.csv.gz", header=None, na_values="?"),
    "boys": lambda: stored("missing/boys.csv.gz"),
    "faithful": lambda: stored("small-mixtures/faithful.csv", drop=("rownames",)),
    "crabs": lambda: stored("small-mixtures/crabs.csv", "sp", "sex", drop=("rownames", "index")),
    "golub": golub,
    "spambase": lambda: stored("spambase/spambase.csv.gz", "spam"),
    "letter": letter,
    "pbmc3k": pbmc3k,
    "noise": lambda: drawn("noise"),
    "gaussian": lambda: drawn("gaussian"),
}


def theirs(X: np.ndarray, classes: np.ndarray) -> tuple[float, str]:
    """The best index of scikit-learn's clusterings into the true number of groups, and which has it."""
    k = len(np.unique(classes))
    types = ("full", "tied", "diag", "spherical") if X.shape[1] <= NARROW else ("diag", "spherical")
    models: dict[str, Any] = {"k-means": KMeans(k, n_init=STARTS, random_state=0)}
    models |= {t: GaussianMixture(k, covariance_type=t, n_init=STARTS, random_state=0) for t in types}  # type: ignore[arg-type]
    return max((adjusted_rand_score(classes, model.fit_predict(X)), name) for name, model in models.items())


def line(name: str, alone: bool, save: Path | None) -> None:
    """Ask about a table, and print what was answered."""
    frame, names = TABLES[name]()
    begin = time.perf_counter()
    report = unmix.report(frame, title=name, label=names)
    seconds = time.perf_counter() - begin
    found = report.to_dict()["groups"]
    low, high = found["range"]
    told = f"{name:14} {f'{len(frame):,} × {frame.shape[1] - len(names):,}':>14}  {found['groups']:>6} "
    told += f"{f'{low}-{high}' if high > low else low!s:>7} {found['sureness']:5} {found.get('model', '–'):16}"
    if names:
        classes = frame[names].astype(str).agg(" ".join, axis=1).to_numpy()
        looked = np.array(found.get("rows") or range(1, len(frame) + 1)) - 1
        own = adjusted_rand_score(classes[looked], found.get("labels", np.zeros(len(looked))))
        told += f" {len(np.unique(classes)):>7} {own:5.2f}"
        if not alone:
            X = frame.drop(columns=names).to_numpy(dtype=np.float64)
            told += " {:6.2f} {}".format(*theirs(StandardScaler().fit_transform(X), classes))
            told += "; as given {:.2f} {}".format(*theirs(X, classes)) if name == "golub" else ""
    tell(f"{told}  {seconds:.0f} s")
    tell(f"    {found['answer']}")
    if save:
        save.mkdir(parents=True, exist_ok=True)
        report.save(save / f"{name}.html")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("tables", nargs="*", metavar="name", help=f"of {', '.join(TABLES)}")
    asked.add_argument("--alone", action="store_true", help="without scikit-learn")
    asked.add_argument("--save", type=Path, metavar="folder", help="where pages are written")
    given = asked.parse_args()
    if unknown := set(given.tables) - set(TABLES):
        asked.error(f"no table is called {', '.join(sorted(unknown))}: take of {', '.join(TABLES)}")
    warnings.simplefilter("ignore")
    tell(HEAD)
    for name in given.tables or TABLES:
        line(name, given.alone, given.save)


if __name__ == "__main__":
    main()
