"""
What would the empty cells hold?
================================

A fifth of the cells of a table are hidden. ``Imputer`` tries several models on cells that it hides itself, takes
what fills those best, and says how far off it expects to be.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import unmix

# sphinx_gallery_thumbnail_number = 2
truth = load_breast_cancer(as_frame=True).data.iloc[:300, :8]
rng = np.random.default_rng(0)
frame = truth.mask(rng.random(truth.shape) < 0.2)
_ = unmix.plot.missing(frame)

# %%
imputer = unmix.Imputer(random_state=0).fit(frame)
print(imputer.reason_)
print(imputer.report())

# %%
# What was filled in, beside what had been there. Bars are to hold nine of ten.
filled, std = imputer.impute(frame, return_std=True)
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
for ax, name in zip(axes, ["mean radius", "mean texture", "mean smoothness"], strict=True):
    gone = frame[name].isna()
    ax.axline([truth[name].mean()] * 2, slope=1, color="0.6", lw=1)
    ax.errorbar(truth[name][gone], filled[name][gone], 1.645 * std[name][gone], fmt=".", lw=0.7, ms=6)
    ax.set(title=name, xlabel="hidden", ylabel="filled in")
gone = frame.isna()
inside = ((truth - filled).abs() <= 1.645 * std).to_numpy()[gone.to_numpy()].mean()
print(f"{inside:.0%} of the hidden cells lie within their bars")
