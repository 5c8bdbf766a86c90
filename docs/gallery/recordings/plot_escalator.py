"""
An escalator without its people
===============================

A film from a subway station. ``RobustPCA`` parts what is always there, or comes round again and again as steps do, from
those who pass.

The film is the escalator of the I2R data set, ``escalator_data.mat`` of RLprojects-envs/FAST_RCPA on GitHub: 200
frames of 130×160 pixels, in grey levels from 0 to 255.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import loadmat

import unmix

film = loadmat(Path(os.environ["UNMIX_DATA"]) / "escalator-video" / "escalator_data.mat")["X"].astype(np.float32)
model = unmix.RobustPCA(tol=1e-4, random_state=0).fit(film)  # pixels are the rows

fig, axes = plt.subplots(3, 3, figsize=(9.6, 7), layout="constrained")
parts = {"film": (film, 0, 255, "gray"), "background": (model.low_rank_, 0, 255, "gray")}
parts["moving"] = model.sparse_, -120, 120, "RdBu_r"
for row, frame in zip(axes, (10, 50, 90), strict=True):
    for ax, (title, (part, low, high, colours)) in zip(row, parts.items(), strict=True):
        ax.imshow(part[:, frame].reshape(160, 130).T, cmap=colours, vmin=low, vmax=high)
        ax.set(xticks=[], yticks=[], title=title if row is axes[0] else None)
    row[0].set_ylabel(f"frame {frame}")

# %%
# Red is lighter than the background, blue is darker. The clock above left moves, too. Where somebody stands for a
# while, as on the left in the first frame, a faint ghost stays in the background.
share = np.mean(np.abs(model.sparse_) > 25)
print(f"rank {model.rank_}; {share:.1%} of the cells are more than 25 levels off the background")

# %%
# :doc:`../../background` tells what is computed.
