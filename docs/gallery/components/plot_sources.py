"""
Three signals, three sensors
============================

What each sensor measures is a mixture. If the sources are independent, ``FastICA`` finds them; that they are
uncorrelated, which is all that ``PCA`` asks for, is not enough.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import unmix

t = np.linspace(0, 8, 2000)
sources = np.column_stack([np.sin(2 * t) + 0.1 * np.sin(9 * t), np.sign(np.sin(3.1 * t)), (1.3 * t) % 1 - 0.5])
sources += 0.05 * np.random.default_rng(0).normal(size=sources.shape)
mixing = np.array([[1, 1, 1], [0.5, 2, 1.0], [1.5, 1, 2]])
measured = sources @ mixing.T

model = unmix.FastICA(3, random_state=0).fit(measured)
panels = {
    "sources": sources,
    "measured": measured,
    "FastICA": model.transform(measured),
    "PCA": unmix.PCA(3).fit_transform(measured),
}
fig, axes = plt.subplots(3, 4, figsize=(10, 4), layout="constrained", sharex=True)
for column, (name, signals) in zip(axes.T, panels.items(), strict=True):
    column[0].set_title(name)
    for ax, signal in zip(column, signals.T, strict=True):
        ax.plot(t, signal, lw=0.8)
        ax.set(xticks=[], yticks=[])

# %%
# Order, sign and scale of sources do not come back: nothing in the mixtures shows them. How well each can be
# relied on is told:
print("stability:", model.stability_.round(3))
