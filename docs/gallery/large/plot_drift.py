"""
Data that keep coming, and change
=================================

``partial_fit`` takes one batch at a time and forgets old ones little by little, so centres follow groups that move.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import unmix

rng = np.random.default_rng(0)
start, speed = np.array([[-6.0, 0], [6, 0], [0, 6]]), np.array([[0.03, 0.04], [-0.02, 0.05], [0.05, -0.05]])
model = unmix.KMeans(3, random_state=0)
fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
path = []
for t in range(100):
    kind = rng.integers(3, size=60)
    batch = (start + t * speed)[kind] + rng.normal(size=(60, 2)) * 0.7
    model.partial_fit(batch, rate=0.2 if t else None)
    path.append(model.cluster_centers_.copy())
    if t % 10 == 0:
        ax.scatter(*batch.T, s=4, lw=0, color=plt.cm.viridis(t / 100))
for k in range(3):
    ax.plot(*np.array(path)[:, k].T, color="C3", lw=2)
ax.set(xticks=[], yticks=[], aspect="equal", title="batches from early (dark) to late, and the centres")
truth = start + 99 * speed
off = np.sqrt(((path[-1][:, None] - truth[None]) ** 2).sum(axis=2)).min(axis=1)
print("centres off the truth at the end, by at most", off.max().round(2))
