"""
The parts of digits
===================

``NMF`` adds parts and never takes any away, so its parts are strokes. Components of ``PCA`` add and subtract, and
look like nothing in particular.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import unmix

X = load_digits().data
parts = unmix.NMF(16, random_state=0, max_iter=1000).fit(X)
axes_of = unmix.PCA(16).fit(X)

fig = plt.figure(figsize=(8, 4.2), layout="constrained")
for side, (name, U, low, colours) in zip(
    fig.subfigures(1, 2),
    [("NMF: strokes", parts.components_, 0, "gray_r"), ("PCA: contrasts", axes_of.components_, -1, "RdBu_r")],
    strict=True,
):
    side.suptitle(name)
    for ax, u in zip(side.subplots(4, 4).ravel(), U, strict=True):
        ax.imshow(u.reshape(8, 8) / np.abs(u).max(), cmap=colours, vmin=low, vmax=1)
        ax.set(xticks=[], yticks=[])

# %%
# A digit is a few strokes. The largest three of this one:
z = parts.transform(X[:1])[0]
top = np.argsort(z)[::-1][:3]
pictures = [X[0], *(z[a] * parts.components_[a] for a in top), z @ parts.components_]
names = ["a digit", *(f"stroke {a + 1}" for a in top), "all its strokes"]
fig, axes = plt.subplots(1, 5, figsize=(8, 1.9), layout="constrained")
for ax, picture, name in zip(axes, pictures, names, strict=True):
    ax.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    ax.set(xticks=[], yticks=[], title=name)
