"""
Which rows do not belong?
=========================

``OutlierDetector`` needs no share of outliers to be told, and what it calls odd is odd at a rate that you choose.
It also says which cell makes a row odd.
"""

# %%
# Two groups of opposite slope, and five rows that are ordinary in each column by itself.
import matplotlib.pyplot as plt
import numpy as np

import unmix

rng = np.random.default_rng(0)
slope = rng.choice([-1, 1], 400)
x = rng.normal(size=400)
X = np.column_stack([x + 3 * slope, slope * 0.8 * x + 0.3 * rng.normal(size=400)])
odd = np.array([[0, 0], [3, 2.4], [-3, 2.4], [4.5, -1.5], [-4.6, -1.7]])
rows = np.vstack([X, odd])

detector = unmix.OutlierDetector(random_state=0)
said = detector.fit_predict(rows)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.scatter(*rows[said == 1].T, s=8, color="0.6", lw=0, label="ordinary")
ax.scatter(*rows[said == -1].T, s=60, marker="X", color="C3", ec="white", label="odd")
ax.legend(frameon=False)
print("planted rows that were found:", int((said[-5:] == -1).sum()), "of 5; others:", int((said[:-5] == -1).sum()))

# %%
# Among rows of pure noise nothing is odd, and nothing is called so.
noise = rng.normal(size=(400, 5))
print("called odd in noise:", int((unmix.OutlierDetector(random_state=0).fit_predict(noise) == -1).sum()))

# %%
# Why is a row odd? In the units of the table, with what would be usual given the other cells of the row.
from sklearn.datasets import load_wine

wine = load_wine(as_frame=True).data
wine.loc[17, "alcohol"] = 1.4  # a decimal point in the wrong place
judge = unmix.OutlierDetector(random_state=0).fit(wine)
for why in judge.reasons(wine, np.argsort(judge.scores_)[::-1][:3], most=1):
    print(f"row {why.row}: {why.name} is {why.value:.4g}, usual are {why.usual:.3g} ± {why.spread:.2g}")
