"""How often intervals hold the truth after imputation: `python -m benchmarks.imputation_coverage [--tables 500]`.

Planted tables, rows of a Gaussian; of all columns but the first, cells go missing, the likelier the larger the first is
(missing at random). Counted are 95 % intervals of the coefficients of a regression of the last column on the others,
pooled over the draws by Rubin's rules, and 90 % intervals of single cells, mean ± 1.645 standard deviations.
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
    options = parser.parse_args(arguments)
    unmix.set_config(progress=False)
    print("| rows | columns | missing | parameters | 95 % of coefficients | 90 % of cells |\n|---|---|---|---|---|---|")
    for n, d, share in ((200, 5, 0.3), (60, 5, 0.3), (1000, 5, 0.3), (200, 5, 0.1), (200, 15, 0.3)):
        for word, how in (("drawn", {}), ("taken for known", {"n_bootstrap": 0})):
            found = coverage(options.tables, n, d, share, options.draws, **how)
            print(f"| {n} | {d} | {share:.0%} | {word} | {found[0]:.1%} | {found[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()
