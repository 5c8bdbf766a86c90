"""Does `unmix.select` know what it knows? Planted tables, the range that it states, and its words for sureness.

`python -m benchmarks.sureness [even|odd|fresh] [draws]`

A table has 1 to 8 groups, 300 to 2000 rows and 2 to 30 columns. The nearest two groups are 3 to 6 standard deviations
apart, along the line that joins them; weights and covariances are unequal. In a third of the tables columns are in
units of their own, 0.001 to 1000 of the others'; in a third some columns are categories of 2 to 5 levels. A table is
asked of two models: k-means on columns of variance 1 (a category is as many columns of 0 and 1, with a variance of 1
together: as `unmix.Table` makes them), and the mixture that suits it, on the columns as they are. Tables in units of
their own are asked of k-means as they are, too, which cannot know them: there the reason should say so.

The words and the widths of ranges were chosen on the tables with even seeds. Some of the odd ones were looked at on the
way, too, and so were tables from seed 100 to 249; "fresh" are tables from seed 250 on, which were asked once, when
nothing was changed any more.
"""

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import unmix
from benchmarks.harness import table, tell
from benchmarks.how_many import separation

GROUPS, ROWS, COLUMNS, APART = (1, 8), (300, 2000), (2, 30), (3.0, 6.0)
KINDS = ("numbers", "units", "categories")
RAW = "KMeans, raw"


class Planted(NamedTuple):
    """A table whose groups are known."""

    name: str
    kind: str
    k: int
    numbers: np.ndarray
    codes: np.ndarray  # of categories, from 0 on
    label: np.ndarray


def planted(seed: int) -> Planted:
    """The table of a seed; seeds 2i and 2i + 1 have as many groups."""
    rng = np.random.default_rng((seed, 2026))
    k, kind = GROUPS[0] + seed // 2 % GROUPS[1], KINDS[seed // 2 % len(KINDS)]
    d, n = int(rng.integers(COLUMNS[0], COLUMNS[1] + 1)), int(rng.integers(ROWS[0], ROWS[1] + 1))
    apart, weights = rng.uniform(*APART), rng.uniform(1, 3, size=k)
    c = int(rng.integers(1, max(d // 2, 1) + 1)) if kind == "categories" else 0
    d = max(d - c, 2)
    turned = np.linalg.qr(rng.standard_normal((k, d, d)))[0] if not c else np.broadcast_to(np.eye(d), (k, d, d))
    axes = turned * np.exp(rng.uniform(-np.log(2), np.log(2), size=(k, 1, d)))
    means = rng.standard_normal((k, d))
    if k > 1:
        means *= apart / separation(means, axes)
    label = rng.choice(k, size=n, p=weights / weights.sum())
    X = means[label] + np.einsum("nij,nj->ni", axes[label], rng.standard_normal((n, d)))
    if kind == "units":
        X *= 10 ** rng.uniform(-3, 3, size=d)
    codes = np.zeros((n, c))
    for j in range(c):
        share = rng.dirichlet(np.ones(rng.integers(2, 6)), size=k)
        codes[:, j] = (rng.random((n, 1)) > np.cumsum(share, axis=1)[label][:, :-1]).sum(axis=1)
    return Planted(f"{seed}: {n}×{d}+{c}, {apart:.1f} sd", kind, k, X, codes, label)


def encoded(t: Planted) -> np.ndarray:
    """Numbers of variance 1, and categories as columns of 0 and 1 whose variances add up to 1."""
    columns = [(t.numbers - t.numbers.mean(axis=0)) / t.numbers.std(axis=0)]
    for code in t.codes.T:
        hot = (code[:, None] == np.unique(code)).astype(float)
        total = hot.var(axis=0).sum()
        if total > 0:
            columns.append((hot - hot.mean(axis=0)) / np.sqrt(total))
    return np.hstack(columns)


def asked(t: Planted) -> Iterator[tuple[str, Any, np.ndarray]]:
    """The models that are asked, and the rows that each gets."""
    yield "KMeans", unmix.KMeans(n_init=3), encoded(t)
    if t.kind == "categories":
        d, c = t.numbers.shape[1], t.codes.shape[1]
        family = [("gaussian", list(range(d))), ("categorical", list(range(d, d + c)))]
        yield "Mixture", unmix.Mixture(family=family), np.hstack([t.numbers, t.codes])
    else:
        yield "GaussianMixture", unmix.GaussianMixture(), t.numbers
    if t.kind == "units":
        yield RAW, unmix.KMeans(n_init=3), t.numbers


class Said(NamedTuple):
    """What `select` said of a table, and what is true."""

    model: str
    truth: int
    k: int
    low: int
    high: int
    sureness: str
    seconds: float


def ask(seeds: range) -> list[Said]:
    """Ask about the tables of some seeds, and print each answer."""
    out = []
    for t in map(planted, seeds):
        for name, model, X in asked(t):
            begin = time.perf_counter()
            a = unmix.select(model, X, random_state=0)
            out.append(Said(name, t.k, a.k, *a.range, a.sureness, time.perf_counter() - begin))
            wrong = "" if a.k == t.k else " | " + a.reason
            tell(f"{t.name} {t.kind} | {name} | {t.k} groups: {a.sentence}{wrong}")
    return out


def report(said: list[Said]) -> None:
    """Print how often ranges hold the truth, how wide they are, and how often each word was right."""
    models = list(dict.fromkeys(s.model for s in said))
    main = [s for s in said if s.model != RAW]
    by = {**{name: [s for s in said if s.model == name] for name in models}, f"all but “{RAW}”": main}
    lines = []
    for name, some in by.items():
        width = [s.high - s.low + 1 for s in some]
        held = np.mean([s.low <= s.truth <= s.high for s in some])
        right = np.mean([s.k == s.truth for s in some])
        seconds = np.mean([s.seconds for s in some])
        lines.append(
            (
                name,
                str(len(some)),
                f"{right:.0%}",
                f"{held:.0%}",
                f"{np.median(width):g}",
                f"{np.mean(width):.2f}",
                f"{seconds:.1f}",
            )
        )
    head = ("model", "answers", "k is right", "range holds it", "median width", "mean width", "seconds")
    tell("\n" + table(head, lines) + "\n")
    words: dict[str, list[bool]] = defaultdict(list)
    for s in main:
        words[s.sureness].append(s.k == s.truth)
    order = [w for w in ("sure", "open") if w in words]
    lines = [(w, str(len(words[w])), f"{np.mean(words[w]):.0%}") for w in order]
    tell(table(("word", "answers", "k is right"), lines) + "\n")


def main(part: str = "fresh", draws: str = "50") -> None:
    warnings.simplefilter("ignore")
    most = int(draws)
    report(ask({"even": range(0, 2 * most, 2), "odd": range(1, 2 * most, 2), "fresh": range(250, 250 + most)}[part]))


if __name__ == "__main__":
    main(*sys.argv[1:])
