"""
Groups that overlap
===================

A hard label hides that a row lies between two groups. A mixture says how much of each a row is, and what each group
looks like.
"""

# %%
# Iris: petals of three species, two of which touch. Ellipses hold 86 % of a component's rows (two standard
# deviations).
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.datasets import load_iris

import unmix

X = load_iris().data[:, 2:]
model = unmix.GaussianMixture(3, n_init=5, random_state=0).fit(X)
z = model.predict_proba(X)
doubt = 1 - z.max(axis=1)

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
drawn = ax.scatter(*X.T, c=doubt, cmap="magma_r", vmin=0, vmax=0.5, s=30, ec="0.5", lw=0.5)
for mean, C in zip(model.means_, model.covariances_, strict=True):
    size, axes = np.linalg.eigh(C)
    turn = np.degrees(np.arctan2(*axes[::-1, 1]))
    ax.add_patch(Ellipse(mean, *4 * np.sqrt(size[::-1]), angle=turn, fill=False, lw=1.5))
ax.set(xlabel="length of petals (cm)", ylabel="width of petals (cm)")
_ = fig.colorbar(drawn, label="probability that the label is wrong")

# %%
# Most rows are beyond doubt. Those between the two species are not, and the model says so:
for i in np.argsort(doubt)[::-1][:3]:
    print(f"flower {i}: petals of {X[i, 0]} × {X[i, 1]} cm, memberships {z[i].round(2)}")

# %%
# A cell that is missing does not stop it: the membership is then by what was seen.
print(model.predict_proba([[4.9, np.nan], [np.nan, 1.7]]).round(2))
