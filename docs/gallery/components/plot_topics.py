"""
Topics, planted and found
=========================

Twenty-five words stand on a square of five by five. Each of ten topics is a row or a column of the square, and each
document mixes a few of them. From nothing but the counts of words the topics come back.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import unmix

# sphinx_gallery_thumbnail_number = 2
rng = np.random.default_rng(0)
square = np.arange(25).reshape(5, 5)
topics = np.zeros((10, 25))
for i in range(5):
    topics[i, square[i]] = topics[5 + i, square[:, i]] = 0.2
shares = rng.dirichlet(np.full(10, 0.2), size=1500)
counts = np.array([rng.multinomial(80, s @ topics) for s in shares])


def show(rows, title):
    fig, axes = plt.subplots(2, 5, figsize=(6.4, 3), layout="constrained")
    for ax, row in zip(axes.ravel(), rows, strict=True):
        ax.imshow(row.reshape(5, 5), cmap="gray_r", vmin=0)
        ax.set(xticks=[], yticks=[])
    fig.suptitle(title)


show(counts[:10], "ten documents")

# %%
model = unmix.LatentDirichletAllocation(
    10, doc_topic_prior=0.2, learning_method="batch", max_iter=150, random_state=1
).fit(counts)
found = model.components_ / model.components_.sum(axis=1, keepdims=True)
show(found, "the topics that were found")

# %%
# How near are they? Each planted topic, beside the found one that is nearest:
distance = 0.5 * np.abs(topics[:, None] - found[None]).sum(axis=2)
print("words that differ, at most:", f"{distance.min(axis=1).max():.0%}")
