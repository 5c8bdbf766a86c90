"""
Means filled in look surer than they are
========================================

A regression on a table with holes. Filling in means and going on as if nothing had been missing gives intervals
that are too narrow. Draws, pooled by Rubin's rules, give those that the data support.
"""

# %%
# y = 1 + 2x + noise; x is empty where y is large.
import matplotlib.pyplot as plt
import numpy as np

import unmix

rng = np.random.default_rng(1)


def slope(x, y):
    """The coefficient of x, and its variance."""
    A = np.column_stack([np.ones_like(x), x])
    inverse = np.linalg.inv(A.T @ A)
    b = inverse @ A.T @ y
    return b[1], inverse[1, 1] * ((y - A @ b) ** 2).sum() / (len(x) - 2)


found = {"column means": [], "conditional means": [], "20 draws, pooled": []}
for _ in range(30):
    x = rng.normal(size=120)
    X = np.column_stack([x, 1 + 2 * x + rng.normal(size=120)])
    X[(X[:, 1] > 0.5) & (rng.random(120) < 0.8), 0] = np.nan
    model = unmix.GaussianImputer(random_state=0).fit(X)
    flat = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    for name, filled in (("column means", flat), ("conditional means", model.impute(X))):
        b, v = slope(*filled.T)
        found[name].append((b - 1.98 * v**0.5, b + 1.98 * v**0.5))
    each = np.array([slope(*draw.T) for draw in model.impute(X, n_draws=20)])
    pooled = unmix.pool(*each.T)
    found["20 draws, pooled"].append((float(pooled.low), float(pooled.high)))

# %%
# Thirty tables each; red intervals miss the true slope.
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, intervals) in zip(axes, found.items(), strict=True):
    hit = [low <= 2 <= high for low, high in intervals]
    for i, ((low, high), good) in enumerate(zip(intervals, hit, strict=True)):
        ax.plot([low, high], [i, i], color="C0" if good else "C3", lw=1.5)
    ax.axvline(2, color="black", lw=1)
    ax.set(title=f"{name}: {sum(hit)} of 30", yticks=[], xlabel="slope of x")
