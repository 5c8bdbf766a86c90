"""
Factors that can be read
========================

Principal components mix what belongs together. Factor analysis gives each column noise of its own, and a rotation
makes loadings large or small, so that factors have names.
"""

# %%
# Nine tests, three abilities; the last test needs two of them.
import matplotlib.pyplot as plt
import numpy as np

import unmix

rng = np.random.default_rng(0)
planted = np.zeros((3, 9))
planted[0, :3], planted[1, 3:6], planted[2, 6:] = [0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0.9, 0.8, 0.5]
planted[0, 8] = 0.5
X = rng.normal(size=(1000, 3)) @ planted + rng.normal(size=(1000, 9)) * np.sqrt(1 - (planted**2).sum(axis=0))
X[rng.random(X.shape) < 0.1] = np.nan  # tests that were missed

found = {
    "planted": planted,
    "principal components": unmix.PCA(3).fit(X).components_,
    "factors as found": unmix.FactorAnalysis(3).fit(X).components_,
    "after varimax": unmix.FactorAnalysis(3, rotation="varimax").fit(X).components_,
}
fig, axes = plt.subplots(2, 2, figsize=(8, 3.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, loadings) in zip(axes.ravel(), found.items(), strict=True):
    shade = ax.imshow(loadings, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    ax.set(title=name, xticks=range(9), xticklabels=[f"test {j + 1}" for j in range(9)], yticks=range(3))
    ax.tick_params(axis="x", rotation=60)
_ = fig.colorbar(shade, ax=axes, label="loading")

# %%
# How many factors are there? Ask.
print(unmix.select("FactorAnalysis", X, range(1, 7), random_state=0))
