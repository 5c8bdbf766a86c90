"""How often intervals hold the truth after imputation: `python -m benchmarks.imputation_coverage [--tables 500]`.

Planted tables, rows of a Gaussian; of all columns but the first, cells go missing, the likelier the larger the first is
(missing at random). Counted are 95 % intervals of the coefficients of a regression of the last column on the others,
pooled over the draws by Rubin's rules, and 90 % intervals of single cells, mean ± 1.645 standard deviations.

`--imputer` does the same of `Imputer`, which has to find out what the rows are: of a Gaussian, of a pair of columns of
which half the larger ones are gone, of groups, of curves; with means of columns and, of the curves, the coefficients of
a parabola. Errors of these are counted as for any law of the residuals (White). Beside it `GaussianImputer`, and the
tables without holes.
"""

from __future__ import annotations

import argparse

import numpy as np

import unmix


def planted(rng, n, d, share):
    """Rows, the same with holes, and the coefficients of the regression of the last column on the others."""
    loads = rng.normal(size=(2, d))
    covariance = loads.T @ loads + np.diag(rng.uniform(0.3, 1.0, d))
    X = rng.multivariate_normal(rng.normal(size=d), covariance, n)
    likely = 1 / (1 + np.exp(-(X[:, 0] - X[:, 0].mean()) / X[:, 0].std()))
    gone = rng.random((n, d)) < (share * d / (d - 1) * likely / likely.mean())[:, None]
    gone[:, 0] = False
    return X, np.where(gone, np.nan, X), np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])


def regression(X):
    """Coefficients of the last column on the others, and their squared standard errors."""
    A = np.column_stack([np.ones(len(X)), X[:, :-1]])
    inverse = np.linalg.inv(A.T @ A)
    coefficients = inverse @ A.T @ X[:, -1]
    rest = X[:, -1] - A @ coefficients
    return coefficients[1:], (np.diag(inverse) * (rest @ rest) / (len(X) - A.shape[1]))[1:]


def robust(A, y):
    """Coefficients, and their squared standard errors whatever the residuals are."""
    inverse = np.linalg.inv(A.T @ A)
    coefficients = inverse @ A.T @ y
    rest = (y - A @ coefficients) ** 2 * (len(y) / (len(y) - A.shape[1]))
    return coefficients, np.diag(inverse @ (A.T * rest) @ A @ inverse)


def slopes_and_means(X):
    """Of the last column on the others, of the columns but the first."""
    slopes, errors = robust(np.column_stack([np.ones(len(X)), X[:, :-1]]), X[:, -1])
    return np.r_[slopes[1:], X[:, 1:].mean(axis=0)], np.r_[errors[1:], X[:, 1:].var(axis=0, ddof=1) / len(X)]


def parabola_too(X):
    """The same, and the second column as a parabola of the first."""
    plain, bent = slopes_and_means(X), robust(np.vander(X[:, 0], 3), X[:, 1])
    return tuple(np.r_[a, b] for a, b in zip(plain, bent, strict=True))


def gaussian(rng, n):
    """Two factors, five columns, always the same."""
    loads = np.random.default_rng(1).normal(size=(2, 5))
    return rng.normal(size=(n, 2)) @ loads + rng.normal(size=(n, 5)) * np.array([0.6, 0.7, 0.8, 0.9, 1.0])


def pair(rng, n):
    """Two columns of correlation 0.7."""
    return rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], n)


def groups(rng, n):
    """Three groups."""
    centres = 2.2 * np.random.default_rng(5).normal(size=(3, 4))
    within = np.array([[1, 0.5, 0, 0], [0, 0.8, 0.4, 0], [0, 0, 0.9, -0.5], [0, 0, 0, 0.6]])
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 4)) @ within


def curves(rng, n):
    """Functions of the first column."""
    t = rng.uniform(-2, 2, n)
    means = np.column_stack([t, t**2, np.sin(2 * t), 0.5 * t + 0.25 * t**2])
    return means + rng.normal(size=(n, 4)) * np.array([0.0, 0.3, 0.3, 0.4])


KINDS = {  # rows, share that is missing, how steeply it rises with the first column, what is asked
    gaussian: (200, 0.3, 1.0, slopes_and_means),
    pair: (120, 0.25, 2.0, slopes_and_means),
    groups: (300, 0.3, 1.0, slopes_and_means),
    curves: (250, 0.3, 1.0, parabola_too),
}


def holed(rng, X, share, steep):
    """Rows whose cells go missing by the first column, which stays."""
    n, d = X.shape
    likely = 1 / (1 + np.exp(-steep * (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()))
    gone = rng.random((n, d)) < (share * d / (d - 1) * likely / likely.mean())[:, None]
    gone[:, 0] = False
    return np.where(gone, np.nan, X)


def compared(kind, tables, imputers, draws=20, seed=0):
    """The share of pooled 95 % intervals that hold the truth: without holes, then by each imputer; cells of each."""
    n, share, steep, asked = KINDS[kind]
    truth = asked(kind(np.random.default_rng(seed), 500_000))[0]
    inside, cells = [[] for _ in range(1 + len(imputers))], [[] for _ in imputers]
    for i in range(tables):
        rng = np.random.default_rng([seed, 1, i])
        X = kind(rng, n)
        holes = holed(rng, X, share, steep)
        value, square = asked(X)
        inside[0].append(np.abs(value - truth) < 1.96 * np.sqrt(square))
        for k, make in enumerate(imputers):
            model = make(i).fit(holes)
            found = [asked(table) for table in model.impute(holes, n_draws=draws, random_state=i)]
            pooled = unmix.pool(*map(np.array, zip(*found, strict=True)), df_complete=n - X.shape[1])
            inside[1 + k].append((pooled.low < truth) & (truth < pooled.high))
            mean, deviation = model.impute(holes, return_std=True)
            gone = np.isnan(holes)
            cells[k].append((np.abs(X - mean)[gone] < 1.645 * deviation[gone]).mean())
    return [float(np.mean(one)) for one in inside], [float(np.mean(one)) for one in cells]


def coverage(tables, n=200, d=5, share=0.3, draws=20, seed=0, **parameters):
    """The share of intervals that hold the truth: of coefficients, and of cells."""
    coefficients, cells = [], []
    for i in range(tables):
        rng = np.random.default_rng([seed, i])
        X, holes, truth = planted(rng, n, d, share)
        model = unmix.GaussianImputer(random_state=i, **{"n_bootstrap": draws, **parameters}).fit(holes)
        found = [regression(table) for table in model.impute(holes, n_draws=draws, random_state=i)]
        pooled = unmix.pool(*map(np.array, zip(*found, strict=True)), df_complete=n - d)
        coefficients.append((pooled.low < truth) & (truth < pooled.high))
        mean, deviation = model.impute(holes, return_std=True)
        gone = np.isnan(holes)
        cells.append((np.abs(X - mean)[gone] < 1.645 * deviation[gone]).mean())
    return float(np.mean(coefficients)), float(np.mean(cells))


def main(arguments=None):
    """Print a line for each kind of table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imputation_coverage", description=__doc__)
    parser.add_argument("--tables", type=int, default=500, help="tables of each kind (500)")
    parser.add_argument("--draws", type=int, default=20, help="imputed tables of each (20)")
    parser.add_argument("--imputer", action="store_true", help="of Imputer, on tables of several kinds")
    options = parser.parse_args(arguments)
    unmix.set_config(progress=False)
    if options.imputer:
        print("| table | rows | without holes | Imputer | GaussianImputer | 90 % of cells: Imputer, GaussianImputer |")
        print("|---|---|---|---|---|---|")
        both = [lambda i: unmix.Imputer(random_state=i), lambda i: unmix.GaussianImputer(random_state=i)]
        for kind, (n, *_) in KINDS.items():
            inside, cells = compared(kind, options.tables, both, options.draws)
            told = " | ".join(f"{v:.1%}" for v in inside)
            print(f"| {kind.__name__} | {n} | {told} | {cells[0]:.1%}, {cells[1]:.1%} |", flush=True)
        return
    print("| rows | columns | missing | parameters | 95 % of coefficients | 90 % of cells |\n|---|---|---|---|---|---|")
    for n, d, share in ((200, 5, 0.3), (60, 5, 0.3), (1000, 5, 0.3), (200, 5, 0.1), (200, 15, 0.3)):
        for word, how in (("drawn", {}), ("taken for known", {"n_bootstrap": 0})):
            found = coverage(options.tables, n, d, share, options.draws, **how)
            print(f"| {n} | {d} | {share:.0%} | {word} | {found[0]:.1%} | {found[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()
