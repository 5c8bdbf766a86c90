"""
Which clustering sees which shape?
==================================

Four clusterings look at four planes. None is best: each has its own idea of what a group is.

- ``KMeans``: rows near a centre. Round groups of like size.
- ``KMedoids``: rows near a typical row, by any distance. Rows far out do not pull it away.
- ``GaussianMixture``: rows of one Gaussian. Groups of any slope and width.
- ``KernelKMeans``: rows that are linked by near ones. Groups of any shape.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons

import unmix

rng = np.random.default_rng(0)
blobs = make_blobs(300, centers=3, random_state=8)[0]
planes = {
    "round groups": (blobs, 3),
    "slopes and widths": (blobs @ [[0.6, -0.6], [-0.4, 0.8]] * [1, 1.2], 3),
    "rows far out": (np.vstack([blobs[:150] * 0.5, rng.uniform(-60, 60, (6, 2))]), 3),
    "moons": (make_moons(300, noise=0.06, random_state=0)[0], 2),
    "rings": (make_circles(300, noise=0.05, factor=0.4, random_state=0)[0], 2),
}

# %%
# A kernel's width is a choice: ``gamma`` is larger where groups are thin.
fig, axes = plt.subplots(len(planes), 4, figsize=(9, 10.5), layout="constrained")
for row, (name, (X, k)) in zip(axes, planes.items(), strict=True):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    models = [
        unmix.KMeans(k, n_init=5, random_state=0),
        unmix.KMedoids(k, metric="euclidean", random_state=0),
        unmix.GaussianMixture(k, n_init=5, random_state=0),
        unmix.KernelKMeans(k, kernel="rbf", gamma=15.0 if k == 2 else 1.0, n_init=20, random_state=0),
    ]
    for ax, model in zip(row, models, strict=True):
        labels = model.fit_predict(X)
        ax.scatter(*X.T, c=labels, cmap="viridis", s=7, lw=0)
        ax.set(xticks=[], yticks=[], title=type(model).__name__ if row is axes[0] else None)
    row[0].set_ylabel(name)

# %%
# See :doc:`../../clustering` for their equations, and :doc:`../../how_many` for how many groups to ask for.
