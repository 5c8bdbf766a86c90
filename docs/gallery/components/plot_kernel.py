"""
Noise off a curve
=================

Rows near a curve, with noise. Components in the space of a kernel bend with the curve; projecting on a few of them
and going back takes the noise off. A line cannot do that.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import unmix

rng = np.random.default_rng(0)
angle = rng.uniform(0, 1.5 * np.pi, 400)
curve = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + angle / 4)[:, None]
noisy = curve + 0.12 * rng.normal(size=curve.shape)

kernel = unmix.KernelPCA(8, kernel="rbf", gamma=0.8, fit_inverse_transform=True, alpha=0.02, random_state=0)
line = unmix.PCA(1)
cleaned = {type(m).__name__: m.inverse_transform(m.fit_transform(noisy)) for m in (line, kernel)}
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharex=True, sharey=True)
for ax, (name, rows) in zip(axes, {"noisy": noisy, **cleaned}.items(), strict=True):
    ax.scatter(*noisy.T, s=5, color="0.8", lw=0)
    ax.scatter(*rows.T, s=6, c=angle, cmap="viridis", lw=0)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[])
for name, rows in {"noisy": noisy, **cleaned}.items():
    off = np.sqrt(((rows[:, None] - curve[None]) ** 2).sum(axis=2)).min(axis=1)
    print(f"{name}: {off.mean():.3f} from the curve on average")
