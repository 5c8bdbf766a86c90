"""
Somebody walks through the picture
==================================

The room is the same in every frame: a matrix of low rank. Who walks through covers few pixels, by a lot: a sparse
matrix. ``RobustPCA`` parts the two. Nobody says which pixels are which.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import unmix

n, height, width = 60, 30, 40
y, x = np.mgrid[:height, :width]
room = 120 + 40 * np.cos(x / 5) * np.cos(y / 8)
film = (1 + 0.2 * np.sin(np.arange(n) / 9))[:, None, None] * room
for t in range(n):
    film[t, 8:24, (t // 2 + 4) % width :][:, :4] = 240

model = unmix.RobustPCA(random_state=0).fit(film.reshape(n, -1))
fig, axes = plt.subplots(2, 3, figsize=(8, 4), layout="constrained")
for row, t in zip(axes, (10, 50), strict=True):
    panels = {"frame": film, "background": model.low_rank_, "moving": model.sparse_}
    for ax, (name, part) in zip(row, panels.items(), strict=True):
        ax.imshow(part.reshape(film.shape)[t], cmap="gray", vmin=0, vmax=240)
        ax.set(xticks=[], yticks=[], title=name)
print(f"rank {model.rank_}; {np.mean(np.abs(model.sparse_) > 1):.1%} of the pixels move")

# %%
# More in :doc:`../../background`, with a film of an escalator.
